"""The options of ``pykernel sweep`` and ``pykernel plan``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli.options import CsvData, Delay, Engine, Jobs, Json, SpecFile, option

# fields of the last base come first, which is the order of arguments and of --help


@dataclass(frozen=True, kw_only=True)
class OfSweep:
    """Options that only a sweep has."""

    spec_file: SpecFile
    n_max: Annotated[
        str,
        option("--n-max", "-n", value="N,N", text="Budgets to try: numbers of expansion vectors (or random features)."),
    ] = "8,16,32,64"
    score: Annotated[
        str | None, option("--score", value="MEASURE", text="What to minimise: mae or rmse.", without="mae")
    ] = None
    rounds: Annotated[int, option("--rounds", value="N", text="Number of refinements of the grid.")] = 3
    target: Annotated[str, option("--target", value="TARGET", text="CPU on which to count instructions, or none.")] = (
        "cortex-m4f"
    )
    output: Annotated[Path, option("--output", "-o", value="FOLDER", text="Folder for the results.")] = Path(
        "pykernel-sweep"
    )


@dataclass(frozen=True, kw_only=True)
class OfPlan:
    """Options that only a plan has."""

    label: Annotated[
        str | None, option("--label", value="Y", text="The column to predict.", without="none: a monitor with alarms")
    ] = None
    inputs: Annotated[
        str | None,
        option("--inputs", value="A,B", text="The input columns.", without="all numbers but the label"),
    ] = None
    spec_file: Annotated[Path | None, option("--spec", value="SPEC", text="Spec that names columns.")] = None
    ram: Annotated[
        str | None,
        option("--ram", value="BYTES", text="Limit, such as 4k.", without="any"),
    ] = None
    flash: Annotated[
        str | None,
        option("--flash", value="BYTES", text="Limit for code and constants.", without="the part's"),
    ] = None
    instructions: Annotated[
        str | None,
        option("--instructions", value="N", text="Limit for one call, in the worst case.", without="any"),
    ] = None
    cycles: Annotated[
        str | None,
        option(
            "--cycles",
            value="N",
            text="The same in cycles, for a CPU whose cycles are known.",
            without="any",
            rare=True,
        ),
    ] = None
    target: Annotated[
        str | None,
        option("--target", value="TARGET", text="The CPU, emulated.", without="any"),
    ] = None
    time: Annotated[float, option("--time", value="SECONDS", text="Time for trials.")] = 120.0
    trials: Annotated[
        int | None, option("--trials", value="N", text="Make so many trials, however long they take.")
    ] = None
    seed: Annotated[int, option("--seed", value="S", text="Seed of the trials.")] = 0
    output: Annotated[Path, option("--output", "-o", value="FOLDER", text="Folder for the spec.")] = Path(
        "pykernel-plan"
    )


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Options that both commands have."""

    data: CsvData
    delay: Delay = 0
    rule: Annotated[list[str] | None, option("--rule", value="RULE", text="Try only this, or these: a,b.")] = None
    technique: Annotated[
        list[str] | None, option("--technique", value="TECHNIQUE", text="Try only this, or these: a,b.")
    ] = None
    jobs: Jobs = None
    results: Annotated[
        Path | None,
        option(
            "--results", value="FILE", text="Where finished runs are kept.", without="FOLDER/results.jsonl", rare=True
        ),
    ] = None
    engine: Engine = None
    as_json: Json = False


@dataclass(frozen=True, kw_only=True)
class SweepOptions(SearchOptions, OfSweep):
    pass


@dataclass(frozen=True, kw_only=True)
class PlanOptions(SearchOptions, OfPlan):
    pass
