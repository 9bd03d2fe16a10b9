"""The command ``pykernel basis``: a basis chosen from many rows, as a spec for the device."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pykernel.cli.options import (
    INPUTS,
    JSON,
    NAME,
    PLOT,
    PRECISION,
    STANDARDISE,
    WITH,
    argument,
    command,
    option,
)
from pykernel.cli.output import Printing, print_report, show_document, warn
from pykernel.errors import UserError
from pykernel.workflows.asked import BASIS_MODELS, DEFAULT_RIDGE


@command(
    data=argument("DATA", ".npy, .parquet, .arrow or .csv file, or a folder."),
    n_max=option("--n-max", "-n", value="N", text="Largest number of vectors.", kind=int, default=100),
    output=option("--output", "-o", value="SPEC", text="The spec to write.", kind=Path),
    save=option("--save", value="NPZ", text="The basis to write, for Basis.load in Python.", kind=Path),
    method=option(
        "--method", value="METHOD", text="efvs, sgma, trained, … (docs/bases.md).", default="auto", without="auto"
    ),
    inputs=INPUTS,
    label=option("--label", value="Y", text="The label's column; in .npy, its position.", without="none"),
    classes=option("--classes", value="A,B", text="The label's classes, in this order."),
    model=option(
        "--model",
        value="|".join(BASIS_MODELS),
        text="Ridge regression on the label, without a bias or with it.",
        without="ls-svm; krr with --learn",
        rare=True,
    ),
    learn=option("--learn", text="The device continues to learn the weights.", kind=bool, default=False),
    kfd=option("--kfd", text="The device trains a kernel Fisher discriminant.", kind=bool, default=False),
    features=option(
        "--features",
        value="R",
        text="Compute R features of a subspace (BKFE) instead of the coordinates.",
        kind=int,
        without="none",
        rare=True,
    ),
    shrinkage=option(
        "--shrinkage",
        value="L",
        text="For --features: taken from each singular value.",
        kind=float,
        default=0.1,
        rare=True,
    ),
    kernel=option(
        "--kernel",
        value="KERNEL",
        text="gaussian, laplacian, matern12, matern32, matern52, polynomial or linear.",
        default="gaussian",
    ),
    sigma=option("--sigma", value="S,S", text="Gaussian width, or several.", without="by the data"),
    gamma=option(
        "--gamma", value="G,G", text="Width of the other kernels, or several.", without="by the data", rare=True
    ),
    coef0=option("--coef0", value="C", text="Constant of the polynomial.", kind=float, default=1.0, rare=True),
    degree=option("--degree", value="N", text="Degree of the polynomial, 1 to 9.", kind=int, default=3, rare=True),
    normalise=option(
        "--normalise",
        text="Use k(a, b) / sqrt(k(a, a) k(b, b)); polynomial, linear.",
        kind=bool,
        default=False,
        rare=True,
    ),
    ridge=option(
        "--ridge",
        value="R,R",
        text="Ridges to try.",
        without=f"by the data; {DEFAULT_RIDGE} without a label",
        rare=True,
    ),
    candidates=option(
        "--candidates", value="K", text="efvs, sgma: rows tried for a vector; 0: all.", kind=int, default=59, rare=True
    ),
    points=option(
        "--points", value="V", text="efvs: rows that judge a candidate; 0: all.", kind=int, default=59, rare=True
    ),
    with_=WITH,
    tau=option(
        "--tau",
        value="T",
        text="Stop when at most this part is left out; 0: never.",
        kind=float,
        default=0.0,
        rare=True,
    ),
    confidence=option(
        "--confidence",
        value="P",
        text="Stop for --tau when it is true with this probability.",
        kind=float,
        without="when the estimate is",
        rare=True,
    ),
    standardise=STANDARDISE,
    shards=option("--shards", value="S", text="Choose in S parts, then from their choices.", kind=int, default=1),
    jobs=option(
        "--jobs", value="N|ADDRESS", text="For shards: processes, or a Dask scheduler.", without="all cores", rare=True
    ),
    checkpoint=option("--checkpoint", value="FILE", text="Keep progress on Ctrl-C; the same call goes on.", kind=Path),
    seed=option("--seed", value="S", text="Seed of all draws.", kind=int, default=0, rare=True),
    precision=PRECISION,
    name=NAME,
    plot=PLOT,
    force=option("--force", text="Overwrite SPEC, NPZ and FILE.", kind=bool, default=False),
    as_json=JSON,
)
def basis(output: Path | None, save: Path | None, as_json: bool, **given: Any) -> None:
    """Choose a basis from up to millions of rows, for a spec.

    A basis is rows whose span in feature space is close to all rows. With --label the spec predicts the label, else
    coordinates.

        pykernel basis flow.csv --label flow --n-max 40 --output flow.toml

    Columns: left out is the part of tr K that the basis misses. At best is the part that the best possible one misses.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    from pykernel.workflows.basis import basis as run

    if output is None and save is None:
        raise UserError("nothing is to be written; give --output SPEC, --save NPZ, or both")
    with stopped_by_sigterm():
        found = run(output=output, save=save, **given, watch=Printing(as_json))
    print_report(found.report, as_json, lambda _: show_document(found.page))
    warn(*found.report["warnings"])


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Within the block, SIGTERM has the effect of Ctrl-C: the current vector is finished, and the progress is kept."""
    before = signal.getsignal(signal.SIGTERM)
    if before != signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return
    # also if interrupts are ignored, as in a background job
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
