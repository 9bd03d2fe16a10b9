"""The options of ``pykernel fit``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli.options import CsvData, Inputs, Json, Name, Precision, SpecOut, Standardise, With, option
from pykernel.workflows.asked import MANY_ROWS


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    data: CsvData
    output: SpecOut
    label: Annotated[str | None, option("--label", value="Y", text="The label's column.", without="the last")] = None
    inputs: Inputs = None
    signal: Annotated[
        Path | None,
        option(
            "--signal",
            value="SPEC",
            text="Spec whose [signal] makes the inputs of raw rows.",
            without="none",
            rare=True,
        ),
    ] = None
    classes: Annotated[
        str | None,
        option(
            "--classes",
            value="A,B",
            text="Classes; of two, the second is positive.",
            without="sorted",
        ),
    ] = None
    model: Annotated[
        str | None,
        option("--model", value="MODEL", text="kfd, ls-svm, krr or trained.", without="kfd; ls-svm for numbers"),
    ] = None
    kernel: Annotated[
        str,
        option(
            "--kernel",
            value="KERNEL",
            text="gaussian, laplacian, matern12, matern32, matern52, polynomial, linear or sigmoid (kfd).",
        ),
    ] = "gaussian"
    sigma: Annotated[
        str | None, option("--sigma", value="S,S", text="Gaussian widths to try.", without="by the data")
    ] = None
    gamma: Annotated[
        str | None,
        option("--gamma", value="G,G", text="Widths of other kernels to try.", without="by the data", rare=True),
    ] = None
    coef0: Annotated[float, option("--coef0", value="C", text="Constant of polynomial and sigmoid.", rare=True)] = 1.0
    degree: Annotated[int, option("--degree", value="N", text="Degree of the polynomial, 1 to 9.", rare=True)] = 3
    ridge: Annotated[str | None, option("--ridge", value="R,R", text="Ridges to try.", without="by the data")] = None
    coding: Annotated[
        str | None,
        option(
            "--coding",
            value="counts|signs",
            text="How classes are coded: by how frequent they are, or +1 and -1.",
            without="counts of kfd, signs of the others",
            rare=True,
        ),
    ] = None
    n_max: Annotated[
        int | None,
        option("--n-max", "-n", value="N", text="Most vectors.", without="every row; 16 of trained"),
    ] = None
    basis: Annotated[
        str | None,
        option(
            "--basis",
            value="METHOD",
            text="How: efvs, sgma, … (docs/bases.md).",
            without="auto",
        ),
    ] = None
    with_: With = None
    flash: Annotated[str | None, option("--flash", value="BYTES", text="Limit for vectors and weights.")] = None
    cv: Annotated[
        str,
        option(
            "--cv", value="deleted|kept|S", text="Leave-one-out by retraining, by paper 004, or S folds.", rare=True
        ),
    ] = "deleted"
    by: Annotated[
        str | None,
        option(
            "--by",
            value="error|press",
            text="What the chosen width and ridge minimise.",
            without="error of classes",
            rare=True,
        ),
    ] = None
    loss: Annotated[
        str | None,
        option(
            "--loss",
            value="squared|absolute",
            text="What trained vectors minimise for numbers.",
            without="squared",
            rare=True,
        ),
    ] = None
    hold_out: Annotated[float, option("--hold-out", value="PART", text="Keep this part of the rows for a test.")] = 0.0
    standardise: Standardise = None
    seed: Annotated[int, option("--seed", value="S", text="Seed of folds, the hold-out and the basis.", rare=True)] = 0
    jobs: Annotated[
        str | None,
        option(
            "--jobs",
            value="N|ADDRESS",
            text="Processes, or a Dask scheduler.",
            without=f"1; all cores from {MANY_ROWS:,} rows that are vectors",
            rare=True,
        ),
    ] = None
    precision: Precision = "float32"
    name: Name = None
    plot: Annotated[Path | None, option("--plot", value="PNG", text="Draw the error over the grid.")] = None
    force: Annotated[bool, option("--force", text="Overwrite SPEC and PNG.")] = False
    as_json: Json = False
