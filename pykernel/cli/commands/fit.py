"""The command ``pykernel fit``: a kernel machine trained on a table, chosen by cross-validation, frozen for the device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykernel.cli.options import (
    INPUTS,
    JSON,
    MANY,
    NAME,
    PLOT,
    PRECISION,
    SPEC_OUT,
    STANDARDISE,
    WITH,
    command,
    option,
)
from pykernel.cli.output import Printing, interrupted, print_report, show_document, warn
from pykernel.workflows.asked import MANY_ROWS


@command(
    data=MANY,
    output=SPEC_OUT,
    label=option("--label", value="Y", text="The label's column.", without="the last"),
    inputs=INPUTS,
    signal=option(
        "--signal",
        value="SPEC",
        text="Spec whose [signal] makes the inputs of raw rows.",
        kind=Path,
        without="none",
        rare=True,
    ),
    classes=option("--classes", value="A,B", text="Classes; of two, the second is positive.", without="sorted"),
    model=option(
        "--model", value="MODEL", text="kfd, ls-svm, krr, svm, lp or trained.", without="kfd; ls-svm for numbers"
    ),
    kernel=option(
        "--kernel",
        value="KERNEL",
        text="gaussian, laplacian, matern12, matern32, matern52, polynomial, linear or sigmoid (kfd).",
        default="gaussian",
    ),
    sigma=option("--sigma", value="S,S", text="Gaussian widths to try.", without="by the data"),
    gamma=option("--gamma", value="G,G", text="Widths of other kernels to try.", without="by the data", rare=True),
    coef0=option("--coef0", value="C", text="Constant of polynomial and sigmoid.", kind=float, default=1.0, rare=True),
    degree=option("--degree", value="N", text="Degree of the polynomial, 1 to 9.", kind=int, default=3, rare=True),
    ridge=option("--ridge", value="R,R", text="Ridges to try; of svm, lp 1/C.", without="by the data"),
    coding=option(
        "--coding",
        value="counts|signs",
        text="How classes are coded: by how frequent they are, or +1 and -1.",
        without="counts of kfd, signs of the others",
        rare=True,
    ),
    n_max=option(
        "--n-max", "-n", value="N", text="Most vectors.", kind=int, without="as a minute allows; 16 of trained"
    ),
    basis=option("--basis", value="METHOD", text="How: efvs, sgma, … (docs/bases.md).", without="auto"),
    with_=WITH,
    flash=option("--flash", value="BYTES", text="Limit for vectors and weights."),
    cv=option(
        "--cv",
        value="deleted|kept|S",
        text="Leave-one-out by retraining, by paper 004, or S folds.",
        default="deleted",
        rare=True,
    ),
    by=option(
        "--by",
        value="error|press",
        text="What the chosen width and ridge minimise.",
        without="error of classes",
        rare=True,
    ),
    loss=option(
        "--loss",
        value="squared|absolute",
        text="What trained vectors minimise for numbers.",
        without="squared",
        rare=True,
    ),
    hold_out=option("--hold-out", value="PART", text="Keep this part of the rows for a test.", kind=float, default=0.0),
    standardise=STANDARDISE,
    seed=option("--seed", value="S", text="Seed of folds, the hold-out and the basis.", kind=int, default=0, rare=True),
    jobs=option(
        "--jobs",
        value="N|ADDRESS",
        text="Processes, or a Dask scheduler.",
        without=f"1; all cores from {MANY_ROWS:,} rows that are vectors",
        rare=True,
    ),
    precision=PRECISION,
    name=NAME,
    plot=PLOT,
    force=option("--force", text="Overwrite SPEC and FILE.", kind=bool, default=False),
    as_json=JSON,
)
def fit(output: Path, as_json: bool, **given: Any) -> None:
    """Train a kernel machine on a table, and write it as a spec for the device.

    Leave-one-out chooses width and ridge: of all cells within 1 % of the best, the largest ridge. Few vectors (--n-max, --flash)
    are trained, too, and taken if better. The model will be in flash. A label of words is a class.

        pykernel fit flowers.csv --label kind --output iris.toml --plot report.html

    Columns: errors is the part of rows that got a wrong class. PRESS is the mean squared difference to the targets. RMSE
    is the square root of PRESS.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    from pykernel.workflows.fit import fit as run

    found = run(output=output, **given, watch=Printing(as_json))
    print_report(found.report, as_json, lambda _: show_document(found.page))
    warn(*found.warnings)
    if found.report.get("interrupted"):
        raise interrupted(f"; {output} is the best so far")
