"""The options of ``pykernel basis``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli.options import Inputs, Json, Name, Precision, Standardise, With, argument, option
from pykernel.workflows.asked import BASIS_MODELS, DEFAULT_RIDGE


@dataclass(frozen=True, kw_only=True)
class BasisOptions:
    data: Annotated[str, argument("DATA", ".npy, .parquet, .arrow or .csv file, or a folder.")]
    n_max: Annotated[int, option("--n-max", "-n", value="N", text="Largest number of vectors.")] = 100
    output: Annotated[Path | None, option("--output", "-o", value="SPEC", text="The spec to write.")] = None
    save: Annotated[
        Path | None, option("--save", value="NPZ", text="The basis to write, for Basis.load in Python.")
    ] = None
    method: Annotated[
        str,
        option(
            "--method",
            value="METHOD",
            text="efvs, sgma, trained, … (docs/bases.md).",
            without="auto",
        ),
    ] = "auto"
    inputs: Inputs = None
    label: Annotated[
        str | None,
        option("--label", value="Y", text="The label's column; in .npy, its position.", without="none"),
    ] = None
    classes: Annotated[str | None, option("--classes", value="A,B", text="The label's classes, in this order.")] = None
    model: Annotated[
        str | None,
        option(
            "--model",
            value="|".join(BASIS_MODELS),
            text="Ridge regression on the label, without a bias or with it.",
            without="ls-svm; krr with --learn",
            rare=True,
        ),
    ] = None
    learn: Annotated[bool, option("--learn", text="The device continues to learn the weights.")] = False
    kfd: Annotated[bool, option("--kfd", text="The device trains a kernel Fisher discriminant.")] = False
    features: Annotated[
        int | None,
        option(
            "--features",
            value="R",
            text="Compute R features of a subspace (BKFE) instead of the coordinates.",
            without="none",
            rare=True,
        ),
    ] = None
    shrinkage: Annotated[
        float,
        option("--shrinkage", value="L", text="For --features: taken from each singular value.", rare=True),
    ] = 0.1
    kernel: Annotated[
        str,
        option(
            "--kernel", value="KERNEL", text="gaussian, laplacian, matern12, matern32, matern52, polynomial or linear."
        ),
    ] = "gaussian"
    sigma: Annotated[
        str | None,
        option("--sigma", value="S,S", text="Gaussian width, or several.", without="by the data"),
    ] = None
    gamma: Annotated[
        str | None,
        option(
            "--gamma", value="G,G", text="Width of the other kernels, or several.", without="by the data", rare=True
        ),
    ] = None
    coef0: Annotated[float, option("--coef0", value="C", text="Constant of the polynomial.", rare=True)] = 1.0
    degree: Annotated[int, option("--degree", value="N", text="Degree of the polynomial, 1 to 9.", rare=True)] = 3
    normalise: Annotated[
        bool,
        option("--normalise", text="Use k(a, b) / sqrt(k(a, a) k(b, b)); polynomial, linear.", rare=True),
    ] = False
    ridge: Annotated[
        str | None,
        option(
            "--ridge",
            value="R,R",
            text="Ridges to try.",
            without=f"by the data; {DEFAULT_RIDGE} without a label",
            rare=True,
        ),
    ] = None
    candidates: Annotated[
        int,
        option("--candidates", value="K", text="efvs, sgma: rows tried for a vector; 0: all.", rare=True),
    ] = 59
    points: Annotated[
        int, option("--points", value="V", text="efvs: rows that judge a candidate; 0: all.", rare=True)
    ] = 59
    with_: With = None
    tau: Annotated[
        float,
        option("--tau", value="T", text="Stop when at most this part is left out; 0: never.", rare=True),
    ] = 0.0
    confidence: Annotated[
        float | None,
        option(
            "--confidence",
            value="P",
            text="Stop for --tau when it is true with this probability.",
            without="when the estimate is",
            rare=True,
        ),
    ] = None
    standardise: Standardise = None
    shards: Annotated[int, option("--shards", value="S", text="Choose in S parts, then from their choices.")] = 1
    jobs: Annotated[
        str | None,
        option(
            "--jobs",
            value="N|ADDRESS",
            text="For shards: processes, or a Dask scheduler.",
            without="all cores",
            rare=True,
        ),
    ] = None
    checkpoint: Annotated[
        Path | None,
        option("--checkpoint", value="FILE", text="Keep progress on Ctrl-C; the same call goes on."),
    ] = None
    seed: Annotated[int, option("--seed", value="S", text="Seed of all draws.", rare=True)] = 0
    precision: Precision = "float32"
    name: Name = None
    plot: Annotated[Path | None, option("--plot", value="PNG", text="Plot the part left out against n.")] = None
    force: Annotated[bool, option("--force", text="Overwrite SPEC, NPZ and PNG.")] = False
    as_json: Json = False
