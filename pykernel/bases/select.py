"""Choose a basis by a named method, and display the progress.

A method is a subclass of ``pykernel.bases.candidates.Selector`` that adds one vector at a time.  ``SELECTORS`` maps the
methods' names to these classes.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from pykernel.bases.arguments import checked_count, checked_fraction, need_kernel
from pykernel.bases.basis import LEAST_EPSILON, Basis
from pykernel.bases.bound import Watch
from pykernel.bases.candidates import MEMORY, Selector
from pykernel.bases.gram import MercerKernel
from pykernel.bases.greedy import Efvs, Fvs
from pykernel.bases.pivoted import PivotedCholesky, RandomlyPivotedCholesky
from pykernel.bases.sgma import Exhaustive, Sgma, SgmaInPasses, beyond_memory
from pykernel.bases.skfa import Skfa
from pykernel.bases.swaps import refine
from pykernel.errors import UserError, did_you_mean
from pykernel.parallel import one_thread
from pykernel.progress import working
from pykernel.rows import Rows, as_rows

# add a line here for each new method
SELECTORS: dict[str, type[Selector]] = {
    "fvs": Fvs,
    "efvs": Efvs,
    "sgma": Sgma,
    "exhaustive": Exhaustive,
    "skfa": Skfa,
    "rpcholesky": RandomlyPivotedCholesky,
    "pivoted-cholesky": PivotedCholesky,
}
METHODS = ("auto", *SELECTORS)
OF_SOME = ("candidates", "points")
"""Arguments of ``select_basis`` that only some methods accept."""
NOTHING = "no row can be chosen: k(x, x) is zero for every row; leave out rows of zeros, or take another kernel"


def choose_method(rows: int, n_max: int, candidates: int | None = 59, *, memory: int = MEMORY) -> tuple[str, str]:
    """Return the method that "auto" chooses for l rows, and the reason in one sentence.

    The method is "exhaustive" if K and C fit into memory (8 l (l + n_max) <= memory) and n_max > l / candidates, because K
    then has fewer values than all columns that "sgma" would compute.  Otherwise the method is "sgma" if
    n_max + 2 * candidates columns fit into memory (8 l (n_max + 2 * candidates) <= memory).  Otherwise the method is
    "efvs", whose cost does not depend on l.  If ``candidates`` is None (all rows), the method is "exhaustive" if K and
    C fit into memory; if they do not fit, the formulas use 59 candidates.
    """
    memory = checked_count(memory, "memory, in bytes,", 1)
    n, allowed = min(n_max, rows), f"{memory / 2**20:,.4g} MB"
    tried = candidates or 59
    fits = 8 * rows * (rows + n) <= memory
    if fits and (candidates is None or n * tried > rows):
        compared = "every row is a candidate" if candidates is None else f"{n:,} vectors > {rows:,} rows / {tried}"
        return "exhaustive", f"the Gram matrix fits into {allowed}, and {compared}"
    if 8 * rows * (n + 2 * tried) <= memory:
        why = f"{n:,} vectors <= {rows:,} rows / {tried}" if fits else "the Gram matrix does not fit"
        return "sgma", f"{why}, and {n:,} + 2 x {tried} columns of {rows:,} rows fit into {allowed}"
    return "efvs", f"{n:,} + 2 x {tried} columns of {rows:,} rows do not fit into {allowed}"


def select_basis(
    x: Any,
    kernel: MercerKernel,
    n_max: int,
    method: str | type[Selector] = "auto",
    *,
    seed: int = 0,
    candidates: int | None = 59,
    points: int | None = 59,
    tau: float = 0.0,
    confidence: float | None = None,
    epsilon: float = 1e-10,
    swaps: int = 0,
    progress: str | Callable[[int, float], None] | None = None,
    **options: Any,
) -> Basis:
    """Choose at most n_max vectors whose span in feature space approximates all rows.

    Parameters
    ----------
    x : (l, D) array, memmap, path of an .npy or Parquet file, pyarrow Table, or Rows
    kernel : MercerKernel
    n_max : int
        Maximum number of vectors.
    method : one of METHODS, or your own subclass of ``pykernel.bases.candidates.Selector``
        "auto" chooses a method according to the sizes of the matrices (see ``choose_method``), and accepts the
        option ``memory``, in bytes.
    seed : int
        Seed of the random numbers.
    candidates, points : int or None
        candidates: for "efvs", "sgma" and "skfa", the number of rows that are tried for each vector (rho, kappa).
        points: for "efvs", the number of rows on which a candidate is scored (v).  None: all rows.
    tau : float
        Stop when tr R / tr K is at most this number.  "efvs" and "fvs" compare the mean of delta = R_ii / k_ii instead.
        If tau is 0, this condition is not tested.
    confidence : float, optional
        If the method only estimates tr R / tr K, stop when a test shows, with this probability, that the true value is
        at most tau.  The test uses separately drawn rows; a confidence of 0.95 needs about 600 / tau rows
        (``pykernel.bases.bound``).  If not given, stop when the estimate is at most tau.
    epsilon : float
        Rows with delta < epsilon are treated as spanned, and are not chosen.
    swaps : int
        Maximum number of rounds after the selection in which each vector may be exchanged for a better row
        (``pykernel.bases.swaps``).
    progress : str or function, optional
        The title of a progress bar, or a function of n and tr R / tr K.
    **options
        Options of the method: parameters of its class.

    Raises
    ------
    UserError
        If an argument is out of range, the method does not have one of the options, or no row can be chosen.
    """
    need_kernel(kernel)
    rows = as_rows(x)
    if not len(rows):
        raise UserError("x has no rows; a basis needs at least one")
    arguments: dict[str, Any] = {
        "n_max": checked_count(n_max, "n_max", 1),
        "seed": checked_count(seed, "seed", 0),
        "candidates": None if candidates is None else checked_count(candidates, "candidates", 1),
        "points": None if points is None else checked_count(points, "points", 1),
        "tau": checked_fraction(tau, "tau", 0.0, "of at least 0 (0: never stop early)"),
        "epsilon": checked_fraction(
            epsilon, "epsilon", LEAST_EPSILON, f"of at least {LEAST_EPSILON:g} (below that, rounding errors decide)"
        ),
    }
    swaps = checked_count(swaps, "swaps", 0)
    if confidence is not None:
        confidence = _checked_confidence(confidence, arguments["tau"], swaps)
    if isinstance(method, str) and method not in METHODS:
        remedy = did_you_mean(method, METHODS, f"it must be one of {', '.join(METHODS)}")
        raise UserError(f"there is no method {method!r}; {remedy}")
    reason = ""
    if method == "auto":
        memory = options.setdefault("memory", MEMORY)  # the memory limit of "auto" also holds for the chosen method
        method, reason = choose_method(len(rows), arguments["n_max"], arguments["candidates"], memory=memory)
    if not (progress is None or isinstance(progress, str) or callable(progress)):
        raise UserError(f"progress is {progress!r}; it must be a title, or a function of n and tr R / tr K")
    with one_thread:  # use one thread, so that the choice does not depend on the number of threads
        watch = None
        if confidence is not None:
            watch = Watch(rows, kernel, arguments["n_max"], arguments["tau"], confidence, arguments["seed"])
            arguments["tau"] = 0.0
        selector = make_selector(method, rows, kernel, **arguments, **options)
        _advance(selector, arguments["n_max"], progress, watch)
        basis = selector.basis()
        if not len(basis):
            raise UserError(NOTHING)
        if watch is not None:
            watch.follow(basis)
            basis = watch.with_bound(basis)
        if swaps:
            with working("exchanging" if isinstance(progress, str) else None):
                basis = refine(basis, rows, swaps, seed=arguments["seed"], epsilon=arguments["epsilon"])
    return replace(basis, reason=reason)


def _checked_confidence(confidence: Any, tau: float, swaps: int) -> float:
    if not tau:
        raise UserError("confidence has no effect while tau is 0; give the part that may be left out, such as tau=0.01")
    if swaps:
        raise UserError(
            "swaps does not go with confidence, because swaps would change the basis that was measured; "
            "leave one of them out"
        )
    return checked_fraction(confidence, "confidence", LEAST_EPSILON, "above 0, such as 0.95,")


def make_selector(
    method: str | type[Selector], rows: Rows, kernel: MercerKernel, n_max: int, **arguments: Any
) -> Selector:
    """Return a new selector of a method.  Raises UserError for options that the method does not have."""
    in_passes = method == "sgma" and beyond_memory(rows, n_max, arguments)
    kind = SgmaInPasses if in_passes else SELECTORS[method] if isinstance(method, str) else method
    taken, common = keywords(kind), (*keywords(Selector), *OF_SOME)
    options = [name for name in taken if name not in common]
    for option in arguments:
        if option not in (*common, *options):
            has = f"its options are {', '.join(options)}" if options else "it has none"
            raise UserError(f"{kind.method} has no option {option!r}; {did_you_mean(option, options, has)}")
    return kind(rows, kernel, n_max, **{name: arguments[name] for name in arguments if name in taken})


def keywords(kind: type[Selector]) -> dict[str, str]:
    """Return the keyword parameters of a method with their annotations: first the parameters that all methods have, then
    the method's own options.
    """
    parameters = [each for made in (Selector, kind) for each in inspect.signature(made).parameters.values()]
    return {each.name: str(each.annotation) for each in parameters if each.kind == each.KEYWORD_ONLY}


def _advance(selector: Selector, n_max: int, progress: Any, watch: Watch | None) -> None:
    """Step until no vector is added, or until the watch has proven that at most tau is left out."""
    with _display(progress, n_max) as show:
        while not (watch is not None and _proven(watch, selector)) and selector.step():
            show(selector)


def _proven(watch: Watch, selector: Selector) -> bool:
    watch.follow(selector.basis())
    return watch.enough


@contextlib.contextmanager
def _display(progress: str | Callable[[int, float], None] | None, n_max: int) -> Iterator[Callable[[Selector], None]]:
    """Yield a function that shows the progress after a step."""
    if callable(progress):

        def tell(selector: Selector) -> None:
            basis = selector.basis()
            progress(len(basis), float(basis.trace[-1]))

        yield tell
    else:
        with working(progress, n_max) as advance:
            yield lambda selector: advance()
