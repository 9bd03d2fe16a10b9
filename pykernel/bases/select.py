"""Choosing a basis: methods by name.  A selection shows its progress, and can be interrupted and continued.

A method is a class (``pykernel.bases.candidates.Selector``) that adds one vector at a time, and a line in ``SELECTORS``.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pykernel.bases.arguments import checked_count, checked_fraction, need_kernel
from pykernel.bases.baselines import (
    KMeans,
    PivotedCholesky,
    RandomlyPivotedCholesky,
    RidgeLeverage,
    Uniform,
    choose_method,
)
from pykernel.bases.basis import LEAST_EPSILON, NUMBERS, Basis, block_rows, read_npz, write_npz
from pykernel.bases.bound import Watch
from pykernel.bases.candidates import MEMORY, Selector
from pykernel.bases.gram import MercerKernel, PrecomputedKernel
from pykernel.bases.greedy import Efvs, Fvs
from pykernel.bases.sgma import Exhaustive, Sgma, SgmaInPasses, beyond_memory
from pykernel.bases.skfa import Skfa
from pykernel.bases.swaps import refine
from pykernel.errors import UserError, did_you_mean
from pykernel.parallel import one_thread, whole_task, working
from pykernel.rows import Rows, as_rows

# a new method: a class and a line
SELECTORS: dict[str, type[Selector]] = {
    "fvs": Fvs,
    "efvs": Efvs,
    "sgma": Sgma,
    "exhaustive": Exhaustive,
    "skfa": Skfa,
    "rpcholesky": RandomlyPivotedCholesky,
    "pivoted-cholesky": PivotedCholesky,
    "leverage": RidgeLeverage,
    "k-means": KMeans,
    "uniform": Uniform,
}
METHODS = ("auto", *SELECTORS)
OF_SOME = ("candidates", "points")
"""What ``select_basis`` takes for the methods that have it."""
CHECKPOINT_SECONDS = 60.0
NOTHING = "no row can be chosen: k(x, x) is zero for each; leave out rows of zeros or take another kernel"


def select_basis(
    x: Any,
    kernel: MercerKernel | Literal["precomputed"],
    n_max: int,
    method: str = "auto",
    *,
    seed: int = 0,
    candidates: int | None = 59,
    points: int | None = 59,
    tau: float = 0.0,
    confidence: float | None = None,
    epsilon: float = 1e-10,
    swaps: int = 0,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: str | Callable[[int, float], None] | None = None,
    **options: Any,
) -> Basis:
    """Choose at most n_max vectors whose span in feature space comes close to all rows.

    Parameters
    ----------
    x : (l, D) array, memmap, path of an .npy or Parquet file, pyarrow Table, or Rows
    kernel : MercerKernel or "precomputed"
        "precomputed": x is the Gram matrix, (l, l). The basis then has positions as its vectors; ``features`` of new
        samples takes their kernel values with all l, (rows, l).
    n_max : int
        Largest number of vectors.
    method : one of METHODS
        "auto" chooses by size, as ``pykernel.bases.baselines.choose_method`` describes. Its options are
        ``prefer="time"`` and ``memory`` (bytes).
    seed : int
        Seed of the random numbers.
    candidates, points : int or None
        For "efvs", "sgma" and "skfa". candidates: number of rows that are tried for each vector (rho, kappa). points: number
        of rows where a candidate is scored (v). None: all rows.
    tau : float
        Stop when tr R / tr K is at most this; 0: never.
    confidence : float, optional
        Where tr R / tr K is estimated: stop when it is at most tau with this probability, measured on rows that were drawn
        aside, about 600 / tau of them for 0.95 (``pykernel.bases.bound``).  Not given: stop when the estimate is at most tau.
    epsilon : float
        Rows with delta < epsilon count as spanned, and are not chosen.
    swaps : int
        After the choice, at most so many rounds in which each vector is exchanged for a row that is better
        (``pykernel.bases.swaps``).
    checkpoint : path, optional
        The finished part is saved in this file, every minute and after an interruption. The same call continues from
        the file, and finds the same basis, bit for bit. When the basis is complete, the file is removed.
    progress : str or function, optional
        The title of a progress bar; or a function of n and tr R / tr K.
    **options
        Options of the method: parameters of its class.

    Raises
    ------
    UserError
        One sentence says what was wrong: an argument out of range, an option that the method does not have, a
        checkpoint of other data, or rows that cannot be chosen.
    """
    rows, kernel = _rows_and_kernel(x, kernel, method)
    arguments: dict[str, Any] = {
        "n_max": checked_count(n_max, "n_max", 1),
        "seed": checked_count(seed, "seed", 0),
        "candidates": None if candidates is None else checked_count(candidates, "candidates", 1),
        "points": None if points is None else checked_count(points, "points", 1),
        "tau": checked_fraction(tau, "tau", 0.0, "0, to never stop for it,"),
        "epsilon": checked_fraction(
            epsilon, "epsilon", LEAST_EPSILON, f"{LEAST_EPSILON:g}, below which rounding decides,"
        ),
    }
    swaps = checked_count(swaps, "swaps", 0)
    if confidence is not None:
        confidence = _checked_confidence(confidence, arguments["tau"], swaps)
    if method not in METHODS:
        remedy = did_you_mean(method, METHODS, f"it must be one of {', '.join(METHODS)}")
        raise UserError(f"there is no method {method!r}; {remedy}")
    reason = ""
    if method == "auto":
        hints = {name: options.pop(name) for name in ("prefer", "memory") if name in options}
        method, reason = choose_method(len(rows), arguments["n_max"], arguments["candidates"], **hints)
        options["memory"] = hints.get("memory", MEMORY)  # the memory limit of "auto" also holds for the chosen method
    if not (progress is None or isinstance(progress, str) or callable(progress)):
        raise UserError(f"progress is {progress!r}; it must be a title, or a function of n and tr R / tr K")
    keeper = None
    if checkpoint is not None:
        told = {"method": method, **arguments, **options} | ({} if confidence is None else {"confidence": confidence})
        keeper = _Keeper(Path(checkpoint), {**fingerprint(rows, kernel), "arguments": repr(sorted(told.items()))})
    with one_thread:  # so that the choice does not depend on how many there are
        watch = None
        if confidence is not None:
            watch = Watch(rows, kernel, arguments["n_max"], arguments["tau"], confidence, arguments["seed"])
            arguments["tau"] = 0.0
        selector = make_selector(method, rows, kernel, **arguments, **options)
        if keeper is not None:
            keeper.resume(selector)
        _advance(selector, arguments["n_max"], progress, keeper, watch)
        basis = selector.basis()
        if not len(basis):
            raise UserError(NOTHING)
        if watch is not None:
            watch.follow(basis)
            basis = watch.told(basis)
        if swaps:
            with _saving(keeper, selector), working("exchanging" if isinstance(progress, str) else None):
                basis = refine(basis, rows, swaps, seed=arguments["seed"], epsilon=arguments["epsilon"])
    if keeper is not None:
        keeper.path.unlink(missing_ok=True)
    return replace(basis, reason=reason)


def _checked_confidence(confidence: Any, tau: float, swaps: int) -> float:
    if not tau:
        raise UserError("confidence is for tau, and tau is 0; give the part that may be left out, such as tau=0.01")
    if swaps:
        raise UserError("swaps does not go with confidence: what was measured would be exchanged; give one of them")
    return checked_fraction(confidence, "confidence", LEAST_EPSILON, "just above 0, such as 0.95,")


def _rows_and_kernel(x: Any, kernel: Any, method: str) -> tuple[Rows, MercerKernel]:
    if isinstance(kernel, str) and kernel == "precomputed":
        kernel = PrecomputedKernel(matrix=as_rows(x).take(np.arange(len(as_rows(x)))))
        x = kernel.positions
    need_kernel(kernel)
    if isinstance(kernel, PrecomputedKernel):
        if method == "k-means":
            raise UserError(
                "k-means moves vectors between samples, and a Gram matrix has none there; take another method"
            )
        if (kernel.matrix.diagonal() < 0).any():
            raise UserError("the Gram matrix has a number below 0 on its diagonal; it must be positive semidefinite")
    rows = as_rows(x)
    if not len(rows):
        raise UserError("x has no rows; a basis needs at least one")
    return rows, kernel


def make_selector(method: str, rows: Rows, kernel: MercerKernel, n_max: int, **arguments: Any) -> Selector:
    """The selector of a method's name, at its start.  Raises UserError for options that it does not have."""
    in_passes = method == "sgma" and beyond_memory(rows, n_max, arguments)
    kind = SgmaInPasses if in_passes else SELECTORS[method]
    taken, common = keywords(kind), (*keywords(Selector), *OF_SOME)
    options = [name for name in taken if name not in common]
    for option in arguments:
        if option not in (*common, *options):
            has = f"its options are {', '.join(options)}" if options else "it has none"
            raise UserError(f"{method} has no option {option!r}; {did_you_mean(option, options, has)}")
    return kind(rows, kernel, n_max, **{name: arguments[name] for name in arguments if name in taken})


def keywords(kind: type[Selector]) -> dict[str, str]:
    """What a method takes by keyword, with the annotation: what every method takes first, then its options."""
    parameters = [each for made in (Selector, kind) for each in inspect.signature(made).parameters.values()]
    return {each.name: str(each.annotation) for each in parameters if each.kind == each.KEYWORD_ONLY}


def _advance(selector: Selector, n_max: int, progress: Any, keeper: _Keeper | None, watch: Watch | None) -> None:
    """Step until no vector is added, or until the watch has proven enough."""
    done = 0 if progress is None else len(selector.basis())
    with _saving(keeper, selector), _display(progress, n_max, done) as show:
        while not (watch is not None and _proven(watch, selector)):
            with whole_task():  # an interrupt waits for the step's end, so that the state is whole
                going = selector.step()
            if not going:
                return
            show(selector)
            if keeper is not None and keeper.due():
                keeper.save(selector)


def _proven(watch: Watch, selector: Selector) -> bool:
    watch.follow(selector.basis())
    return watch.enough


@contextlib.contextmanager
def _display(
    progress: str | Callable[[int, float], None] | None, n_max: int, done: int
) -> Iterator[Callable[[Selector], None]]:
    """A function that shows the progress after a step."""
    if callable(progress):

        def tell(selector: Selector) -> None:
            basis = selector.basis()
            progress(len(basis), float(basis.trace[-1]))

        yield tell
    else:
        with working(progress, n_max, done) as advance:
            yield lambda selector: advance()


# ----------------------------------------------------------------------------------------------------- checkpoints


@dataclass
class _Keeper:
    """The checkpoint of a selection: when it is written, and the data and arguments to which it belongs."""

    path: Path
    about: dict[str, Any]
    seconds: float = CHECKPOINT_SECONDS
    next: float = field(init=False)

    def __post_init__(self) -> None:
        self.next = time.monotonic() + self.seconds

    def due(self) -> bool:
        return time.monotonic() >= self.next

    def save(self, selector: Selector) -> None:
        start = time.monotonic()
        write_npz(self.path, {"format": "pykernel checkpoint 1", **self.about}, selector.state())
        end = time.monotonic()
        # writing takes at most a tenth of the time
        self.next = end + max(self.seconds, 10 * (end - start))

    def resume(self, selector: Selector) -> None:
        if not self.path.parent.is_dir():
            raise UserError(f"there is no folder {self.path.parent} for the checkpoint; make it, or give another path")
        if not self.path.exists():
            return
        stored, state = read_npz(self.path, "pykernel checkpoint 1", "select_basis(..., checkpoint=...)")
        others = {"data": "other data", "kernel": "another kernel", "arguments": "other arguments"}
        for name, other in {**others, "versions": "another version of pykernel or NumPy"}.items():
            if stored.get(name) != self.about[name]:
                raise UserError(
                    f"{self.path} is a checkpoint of {other}; give another file, or remove it to start anew"
                )
        try:
            selector.restore(state)
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise UserError(f"{self.path} is damaged ({error}); remove it to start anew") from error


@contextlib.contextmanager
def _saving(keeper: _Keeper | None, selector: Selector) -> Iterator[None]:
    """An interrupt writes the checkpoint, but not in the middle of a step: then the old checkpoint stays."""
    try:
        yield
    except KeyboardInterrupt:
        if keeper is None or not (selector.whole or keeper.path.exists()):
            raise
        if selector.whole:
            keeper.save(selector)
        raise KeyboardInterrupt(
            f"stopped; {keeper.path} contains the finished part; make the same call to continue"
        ) from None


def fingerprint(rows: Rows, kernel: MercerKernel) -> dict[str, Any]:
    """Digests of the data and the kernel to which a checkpoint belongs.

    For more than 32 MB of data, only 4,096 evenly spaced rows are digested.
    """
    count = len(rows)
    digest = hashlib.blake2b(f"{count} {rows.dim}".encode(), digest_size=16)
    if count * rows.dim <= NUMBERS:
        for _, block in rows.blocks(block_rows(0, rows.dim)):
            digest.update(block.tobytes())
    else:
        digest.update(rows.take(np.linspace(0, count - 1, 4096).astype(np.int64)).tobytes())
    versions = f"{version('pykernel-mcu')} {np.__version__}"
    return {"data": digest.hexdigest(), "kernel": kernel.described(), "versions": versions}
