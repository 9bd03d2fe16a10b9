"""What a comparison is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli.options import Engine, Jobs, Json, option


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    task: Annotated[
        list[str] | None,
        option(
            "--task",
            value="TASK",
            text="channel, lorenz, mackey-glass, recursion, sinc, switching; or several: a,b.",
            without="all of them",
        ),
    ] = None
    data: Annotated[str | None, option("--data", value="CSV", text="Your own stream instead; needs --spec.")] = None
    spec_file: Annotated[
        Path | None, option("--spec", value="SPEC", text="Spec with the columns, the label and the kernel of --data.")
    ] = None
    rule: Annotated[
        list[str] | None, option("--rule", value="RULE", text="Compare this, or these: a,b.", without="all")
    ] = None
    technique: Annotated[
        list[str] | None,
        option("--technique", value="TECHNIQUE", text="With this, or each of these.", without="each rule's default"),
    ] = None
    n_max: Annotated[int, option("--n-max", "-n", value="N", text="Budget: vectors, or random features.")] = 32
    seeds: Annotated[int, option("--seeds", value="S", text="Number of streams of each task.")] = 10
    rows: Annotated[int | None, option("--rows", value="N", text="Length of a stream.", without="the task's")] = None
    set_: Annotated[
        list[str] | None,
        option("--set", value="[RULE.]KEY=V", text="A key of all rules that have it, or of one.", without="the task's"),
    ] = None
    precision: Annotated[str, option("--precision", value="TYPE", text="float32 or float64.")] = "float32"
    jobs: Jobs = None
    out: Annotated[Path, option("--output", "-o", value="FOLDER", text="Folder for the results.")] = Path("compared")
    engine: Engine = None
    as_json: Json = False
