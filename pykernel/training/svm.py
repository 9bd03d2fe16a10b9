"""Train support vector machines by an interior-point method on a Gram matrix of low rank.  Paper 002, section 6.1.

    duals = Dual.of_classes(positions, 2, most=10.0)            # C = 10; or [Dual.of_values(y, epsilon, most)]
    found = train(x, MercerKernel("gaussian", gamma=0.5), duals, n_max=400)
    found.model.predict(x_new), found.reached

There are l rows and n basis vectors.  K~ = Z Z' approximates the Gram matrix K of the rows, where Z (l, n) are the
features of a greedy basis.  The machine with K instead of K~ is called the full machine.  The dual of a machine is

    min 1/2 beta' K~ beta + c'u    with    beta_i = sum of s_j u_j over the variables j of row i,  1'beta = 0,  0 <= u <= h

For classes, a row has one variable: s is 1 or -1, c = -1, and h is C times the row's weight.  For regression, a row has
two variables, one for a label above the tube (s = 1) and one for a label below it (s = -1), with c = epsilon - s y.  The
machine's function is f = K~ beta + b, where b is the multiplier of 1'beta = 0.  The primal is 1/2 beta' K~ beta + sum_j h_j
max(0, -(s_j f + c_j)), with the hinge loss or the epsilon-insensitive loss.

Each step of Mehrotra's predictor-corrector method solves the reduced KKT system twice.  The matrix of this system is
K~ plus a positive diagonal matrix, so a step takes O(l n^2) by Woodbury's identity (``LowRankSystem``).  K - K~ is
positive semidefinite, because the basis spans a subspace of the function space.  Therefore the function of the low-rank
machine, a sum over n vectors, belongs to the full machine's function space, and

    the function's primal objective - the full machine's optimum  <=  1/2 beta' (K - K~) beta + the low-rank machine's own gap

``judged`` measures this bound and the residual of the full machine's KKT conditions.  If the residual is too large, the basis grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np

from pykernel.bases.arguments import checked_count, checked_numbers, checked_positive
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.parallel import one_thread
from pykernel.rows import Rows, as_rows
from pykernel.training.low_rank import LowRankSystem
from pykernel.training.reduced import FeatureRows, ReducedModel

GAP = 1e-9
"""The interior-point method ends when its duality gap is at most this fraction of the objective, or when rounding prevents
further progress."""
LEAST, LARGEST = 1e-50, 1e9
"""Smallest and largest accepted product of C and a sample's weight, in units of the targets."""
ENOUGH = 1e-6
"""If the relative duality gap of a solution is above this number, the problem is reported as not solved."""
STEPS = 200
"""Maximum number of interior-point steps.  Usually 10 to 40 are needed."""
BOUNDARY = 0.995
"""A step covers this fraction of the distance to the nearest bound."""
STALLED = 1e-7
"""Smallest useful step length.  In shorter steps, rounding errors dominate."""
FIRST = 64
"""Number of vectors in the first basis.  Each further basis has twice as many vectors as the one before it."""
KEPT = 2**27
"""Features of at most this many numbers (1 GiB) are kept in memory.  Larger ones are computed again in each pass."""
JUDGES = 2**28
"""The residual of the full machine is computed on all rows if at most this many kernel values are needed, otherwise on
DRAWN rows.
"""
DRAWN = 2000
"""Number of rows that are drawn for the residual of the full machine."""
BLOCK = 2**22
"""Maximum number of kernel values in memory at once; they need 32 MB."""
INSIDE = 0.03
"""A starting point from an earlier solution is moved away from the bounds by this fraction of the distance between the
bounds.  Starting points nearer to the bounds need more steps (docs/records.md, svm).
"""


# --------------------------------------------------------------------------------------------------------- the dual


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual of one function.  rows, sign, cost, most: (q,), the row, s, c and h of each variable.  count: l, the number of
    rows.

    unit: the scale of differences between function values.  It is 1 for classes; for regression, it is the larger of
    epsilon and the labels' standard deviation.
    """

    rows: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    most: np.ndarray
    count: int
    unit: float = 1.0

    @classmethod
    def of_classes(cls, positions: Any, count: int, most: Any) -> list[Self]:
        """Return the duals for classes.  With two classes, there is one function, which is positive for class 1.  With more
        classes, there is one function for each class, which separates this class from all others.

        positions: (l,), 0 to count - 1; most: C, or an array (l,) with C times each sample's weight.  Raises UserError.
        """
        places = np.asarray(positions)
        owners = [1] if count == 2 else list(range(count))
        every, most = np.arange(len(places)), _most(most, len(places))
        made = [
            cls(every, np.where(places == owner, 1.0, -1.0), np.full(len(places), -1.0), most, len(places))
            for owner in owners
        ]
        for owner, dual in zip(owners, made, strict=True):
            if dual.one_sided:
                raise UserError(
                    f"class {owner} has {'all' if dual.sign[0] > 0 else 'none'} of the rows; give rows of this class and of other classes"
                )
        return made

    @classmethod
    def of_values(cls, y: Any, epsilon: float, most: Any) -> Self:
        """Return the dual for regression.

        y: (l,); epsilon: half the tube's width; most: C, or an array (l,) with C times each sample's weight.  Raises UserError.
        """
        y = checked_numbers(y, "targets")
        if y.ndim != 1 or not y.size:
            raise UserError(f"targets have the shape {y.shape}; it must be (rows,)")
        if not 0 <= epsilon <= 1e75:
            raise UserError(f"epsilon is {epsilon:g}; it must be a number from 0 to 1e75")
        unit = max(float(y.std()), epsilon) or 1.0
        sign = np.repeat([1.0, -1.0], len(y))
        rows, both = np.tile(np.arange(len(y)), 2), np.tile(_most(most, len(y), unit), 2)
        return cls(rows, sign, epsilon - sign * y[rows], both, len(y), unit)

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """Return, for each row, the sum of ``values`` (q,) over the row's variables, (l,)."""
        return np.bincount(self.rows, values, minlength=self.count)

    def beta(self, u: np.ndarray) -> np.ndarray:
        return self.of_rows(self.sign * u)

    def margin(self, f: np.ndarray) -> np.ndarray:
        """Return s f + c, (q,), which is below 0 where a row has a loss, and 0 where a row is on the margin."""
        return self.sign * f[self.rows] + self.cost

    def primal(self, square: float, f: np.ndarray) -> float:
        """Return the primal objective.  square: the function's squared norm, beta' K~ beta."""
        return square / 2 + float(self.most @ np.maximum(-self.margin(f), 0.0))

    def dual(self, square: float, u: np.ndarray) -> float:
        return -square / 2 - float(self.cost @ u)

    @cached_property
    def least(self) -> float:
        """1e-5 times the objective for f = 0 or, if this objective is 0, 1e-5 times ``unit`` times the sum of h.

        This number is added to objectives that are used as divisors, because they may be 0.
        """
        return 1e-5 * (self.primal(0.0, np.zeros(self.count)) or float(self.most.sum()) * self.unit)

    @property
    def one_sided(self) -> float:
        """The sign s, 1 or -1, if it is the same for all rows, else 0."""
        return float(self.sign[0]) if abs(self.sign.sum()) == len(self.sign) else 0.0

    def part(self, rows: np.ndarray) -> Self:
        """Return the dual for some of the rows.  rows: their positions, in ascending order."""
        place = np.full(self.count, -1)
        place[rows] = np.arange(len(rows))
        mine = place[self.rows] >= 0
        return type(self)(
            place[self.rows[mine]], self.sign[mine], self.cost[mine], self.most[mine], len(rows), self.unit
        )


def asked(
    x: Any, duals: Sequence[Dual], n_max: int, first: int, tolerance: float
) -> tuple[Rows, list[Dual], int, int, float]:
    """Check and return the arguments of ``train`` in this module and in ``lp``.  Raises UserError."""
    rows, duals = as_rows(x), list(duals)
    if not duals:
        raise UserError("there is no dual; give one dual for each function")
    for dual in duals:
        if dual.count != len(rows):
            raise UserError(
                f"there are {len(rows):,} rows, but a dual has {dual.count:,}; the two numbers must be equal"
            )
    n_max, tolerance = checked_count(n_max, "n_max", 1), checked_positive(tolerance, "tolerance")
    return rows, duals, n_max, min(checked_count(first, "first", 1), len(rows)), tolerance


def _most(most: Any, count: int, unit: float = 1.0) -> np.ndarray:
    values = np.broadcast_to(checked_numbers(most, "C times the weights"), (count,)).copy()
    if not (values > 0).all():
        raise UserError(f"C times a weight is {values.min():g}; it must be above 0")
    for value in (values.min(), values.max()):
        if not LEAST <= value / unit <= LARGEST:
            raise UserError(
                f"C times a weight is {value:g}; it must be from {LEAST * unit:g} to {LARGEST * unit:g}, because "
                "rounding errors dominate outside this range"
            )
    return values


# ------------------------------------------------------------------------------------------- the interior-point method


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of one dual.  u: (q,).  lower, upper: (q,), the multipliers of the bounds 0 and h of u.  bias: b.
    gap: the duality gap as a fraction of the primal objective.
    """

    u: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    bias: float
    steps: int
    gap: float

    def settled(self, dual: Dual) -> np.ndarray:
        """Return u, with each variable moved onto a bound if its distance to the bound is smaller than the bound's
        multiplier.  Variables are measured in units of their mean, and multipliers in the targets' unit.
        """
        typical = (self.u.mean() + 1e-10 * dual.most.mean()) / dual.unit
        found = np.where(self.u < typical * self.lower, 0.0, self.u)
        return np.where(dual.most - self.u < typical * self.upper, dual.most, found)


@dataclass(frozen=True, eq=False)
class _Point:
    """A point inside the bounds.  u and room = h - u; z and w, their multipliers; bias: b.  The arrays are (q,) and
    positive.
    """

    u: np.ndarray
    room: np.ndarray
    z: np.ndarray
    w: np.ndarray
    bias: float

    @classmethod
    def first(cls, dual: Dual, features: FeatureRows, before: Solution | None) -> Self:
        """Return the middle of the box, or a point inside the box near an earlier solution."""
        if before is None:
            u, bias, least = dual.most / 2, 0.0, dual.unit
        else:
            u, bias = np.clip(before.u, INSIDE * dual.most, (1 - INSIDE) * dual.most), before.bias
            least = INSIDE * dual.unit
        margin = dual.margin(_product(features, dual.beta(u))[0] + bias)
        return cls(u, dual.most - u, np.maximum(margin, 0.0) + least, np.maximum(-margin, 0.0) + least, bias)

    @property
    def mu(self) -> float:
        return float(self.u @ self.z + self.room @ self.w) / (2 * len(self.u))

    def longest(self, by: _Point) -> float:
        """Return the largest multiple of the direction ``by`` for which u, h - u, z and w stay nonnegative."""
        pairs = ((self.u, by.u), (self.room, by.room), (self.z, by.z), (self.w, by.w))
        return 1 / max(*(float((-step / now).max()) for now, step in pairs), 1e-300)

    def moved(self, by: _Point, step: float) -> _Point:
        return _Point(
            self.u + step * by.u,
            self.room + step * by.room,
            self.z + step * by.z,
            self.w + step * by.w,
            self.bias + step * by.bias,
        )


class _Newton:
    """Newton steps from a point, with one factorisation for two directions.

    The conditions, with multipliers z of u >= 0 and w of u <= h, are  s f + c - z + w = 0,  1'beta = 0,  u z = mu,
    (h - u) w = mu.  A step eliminates z, w and u.  With d = z / u + w / (h - u), 1 / sigma_i = the sum of
    1 / d_j over the variables j of row i, and g the right-hand side of the first condition after the elimination, the
    step solves

        (K~ + diag(sigma)) dbeta + 1 db = sigma * (sum of s_j g_j / d_j),    1'dbeta = -1'beta
    """

    def __init__(self, dual: Dual, features: FeatureRows, at: _Point, f: np.ndarray, off: float) -> None:
        self.dual, self.at, self.off = dual, at, off
        self.d = at.z / at.u + at.w / at.room
        self.sigma = 1 / dual.of_rows(1 / self.d)
        self.residual = at.z - at.w - dual.margin(f)
        self.system = LowRankSystem(features, self.sigma)
        self.one = self.system.solve(np.ones(dual.count))

    def step(self, at_zero: np.ndarray, at_most: np.ndarray) -> _Point:
        """Return the direction that changes u z by ``at_zero`` and (h - u) w by ``at_most``, to first order."""
        at, s = self.at, self.dual.sign
        g = s * (self.residual + at_zero / at.u - at_most / at.room)
        right = self.sigma * self.dual.of_rows(g / self.d)
        free = self.system.solve(right)
        bias = (free.sum() + self.off) / self.one.sum()
        moved = right - self.sigma * (free - bias * self.one)  # K~ dbeta + db
        u = s * (g - moved[self.dual.rows]) / self.d
        return _Point(u, -u, (at_zero - at.z * u) / at.u, (at_most + at.w * u) / at.room, float(bias))


def _product(features: FeatureRows, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return K~ beta (l,) and Z'beta (n,)."""
    w = np.zeros(features.width)
    for start, z in features:
        w += z.T @ beta[start : start + len(z)]
    return np.concatenate([z @ w for _, z in features]), w


def solve(
    dual: Dual, features: FeatureRows, before: Solution | None = None, tell: Callable[[float], None] = lambda part: None
) -> Solution:
    """Solve a dual by Mehrotra's predictor-corrector method.  O(l n^2) per step.

    before: an earlier solution, near which the method starts.  tell: a function that is called with the completed
    fraction of the work, which is estimated from the gap.
    """
    at = _Point.first(dual, features, before)
    best, widest, steps = None, None, 0
    while True:
        beta = dual.beta(at.u)
        low, w = _product(features, beta)
        square, off = float(w @ w), float(beta.sum())
        primal = dual.primal(square, low + at.bias)
        # if 1'beta is not 0, the dual changes by b times 1'beta
        gap = max(0.0, primal - dual.dual(square, at.u) + abs(at.bias * off)) / (primal + dual.least)
        if best is None or gap < best.gap:
            best = Solution(at.u, at.z, at.w, at.bias, steps, gap)
        if gap <= GAP or steps == STEPS:
            return best
        widest = max(widest or gap, gap)
        tell(math.log(widest / gap) / math.log(widest / GAP))
        newton = _Newton(dual, features, at, low + at.bias, off)
        predicted = newton.step(-at.u * at.z, -at.room * at.w)
        mu = at.mu
        target = mu * (at.moved(predicted, min(1.0, at.longest(predicted))).mu / mu) ** 3
        corrected = newton.step(
            target - at.u * at.z - predicted.u * predicted.z, target - at.room * at.w - predicted.room * predicted.w
        )
        step = min(1.0, BOUNDARY * at.longest(corrected))
        if not step > STALLED:
            return best
        at, steps = at.moved(corrected, step), steps + 1


# ------------------------------------------------------------------------------------------------- the full machine


@dataclass(frozen=True)
class Round:
    """The result for one basis.  Steps and objective are summed over all functions, and gap is the largest relative
    gap.  Three fields compare the machine with the full machine, whose Gram matrix is K:

    residual: the largest residual of a function's KKT conditions, in units of the targets.  The residual is twice the violation
    at the best b (LIBSVM's m - M, which LIBSVM's ``tol`` limits).
    excess: an upper bound on (the function's objective - the full machine's) / the function's objective.
    judges: number of rows on which residual and excess were measured.  If not all rows were used, excess is an estimate, and
    residual is the largest among the rows used.
    """

    vectors: int
    trace: float
    steps: int
    objective: float
    gap: float
    residual: float
    excess: float
    judges: int


def judged(
    dual: Dual, solution: Solution, features: FeatureRows, generator: np.random.Generator
) -> tuple[float, float, int]:
    """Return residual, excess and judges of one function, as ``Round`` defines them.

    O(judges (support vectors) D).
    """
    rows, kernel = features.rows, features.basis.kernel
    u = solution.settled(dual)
    beta = dual.beta(u)
    support = np.flatnonzero(beta)
    some = np.arange(dual.count)
    if dual.count * len(support) > JUDGES:
        some = np.sort(generator.choice(dual.count, min(DRAWN, dual.count), replace=False))
    low, w = _product(features, beta)
    full, vectors, size = np.empty(len(some)), rows.take(support), max(1, BLOCK // max(1, len(support)))
    for start in range(0, len(some), size):
        block = some[start : start + size]
        full[start : start + len(block)] = kernel.gram(rows.take(block), vectors) @ beta[support]
    more = float(beta[some] @ (full - low[some])) * dual.count / len(some)
    place = np.full(dual.count, -1)
    place[some] = np.arange(len(some))
    mine = place[dual.rows] >= 0
    s, u, most = dual.sign[mine], u[mine], dual.most[mine]
    # for each variable, the b that puts its row on the margin: a lower or an upper limit on b
    border = -s * dual.cost[mine] - full[place[dual.rows[mine]]]
    least = border[np.where(s > 0, u < most, u > 0)].max(initial=-math.inf)
    largest = border[np.where(s > 0, u > 0, u < most)].min(initial=math.inf)
    primal = dual.primal(float(w @ w), low + solution.bias)
    missing = solution.gap * (primal + dual.least) + max(more, 0.0) / 2
    return max(0.0, least - largest) / dual.unit, part_of(missing, primal), len(some)


def part_of(missing: float, objective: float) -> float:
    """Return ``missing`` as a fraction of the objective, clipped to [0, 1], or 0 if the objective is not above 0."""
    return min(1.0, max(0.0, missing) / objective) if objective > 0 else 0.0


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of ``train``.  model: f(x) = z(x)'w + bias = k(x, vectors) alpha + bias, with one function for each
    dual.

    beta: (l, o), the dual coefficients of the rows.  A row with a nonzero coefficient is a support vector of the
    function.  rounds: the result for each basis.  reached: a sentence about the last result.  interrupted: whether
    Ctrl-C ended the training.
    """

    model: ReducedModel
    beta: np.ndarray
    solutions: Sequence[Solution]
    rounds: Sequence[Round]
    tolerance: float
    stopped: str
    interrupted: bool = False

    @property
    def good(self) -> bool:
        """Whether the full machine's conditions hold within the tolerance, and the duality gap is at most ENOUGH."""
        return self.rounds[-1].residual <= self.tolerance and self.rounds[-1].gap <= ENOUGH

    @property
    def reached(self) -> str:
        """A sentence about the result, and the reason why the basis did not grow further."""
        last, rows = self.rounds[-1], len(self.beta)
        every = last.judges == rows
        on = f"all {rows:,} rows" if every else f"{last.judges:,} of {rows:,} rows, drawn at random,"
        told = (
            f"with {last.vectors:,} vector{'s' * (last.vectors != 1)} the KKT residual on {on} is "
            f"{short(last.residual)}, and with the full Gram matrix the "
            f"objective would be at most {'' if every else 'about '}{short(100 * last.excess)} % lower"
        )
        if last.gap > ENOUGH:
            told += f"; the interior-point method stopped at a relative duality gap of {last.gap:.1g}; scale the data, or use a smaller C"
        return told if self.good else f"{told}; {self.stopped}"


def train(
    x: Any,
    kernel: MercerKernel,
    duals: Sequence[Dual],
    *,
    n_max: int = 1024,
    first: int = FIRST,
    tolerance: float = 0.1,
    basis: Basis | None = None,
    method: str = "auto",
    seed: int = 0,
    keep: int = KEPT,
    tell: Callable[[float, str], None] = lambda part, text: None,
    **options: Any,
) -> Trained:
    """Solve on a basis, check the full machine's conditions, and double the number of vectors until these conditions
    hold.

    Parameters
    ----------
    x : (l, D) array, or anything else that ``as_rows`` accepts
    kernel : MercerKernel
    duals : sequence of Dual
        One dual for each function: ``Dual.of_classes(…)``, ``[Dual.of_values(…)]``.  All functions use the same bases.
    n_max, first : int
        Maximum number of vectors, and number of vectors in the first basis.  A value above the number of rows is reduced
        to that number.
    tolerance : float
        Largest accepted residual of the KKT conditions with K, in units of the targets.  The residual is twice the
        violation at the best b.
    basis : Basis, optional
        If given, this basis is used and does not grow.
    method, seed, **options
        Arguments of ``select_basis``, which chooses the vectors.
    keep : int
        Features are kept in memory if they have at most this many elements.
    tell : function
        Called with the completed fraction of the work for a basis, and a description of the work.

    Ctrl-C ends the training: the result is that of the last finished basis.  If no basis is finished, KeyboardInterrupt
    is raised.

    Raises
    ------
    UserError
        If an argument is invalid, or if no vector can be chosen.  The message is one sentence.
    """
    rows, duals, n_max, first, tolerance = asked(x, duals, n_max, first, tolerance)
    n, n_max = min(first, n_max), min(n_max, len(rows))
    generator = np.random.default_rng(seed)
    rounds: list[Round] = []
    trained: Trained | None = None
    before: Sequence[Solution | None] = [None] * len(duals)
    try:
        with one_thread:
            while True:
                tell(0.0, f"choosing {n:,} vectors")
                chosen = basis if basis is not None else select_basis(rows, kernel, n, method, seed=seed, **options)
                features = FeatureRows(chosen, rows, keep=keep)
                solutions = []
                for k, (dual, last) in enumerate(zip(duals, before, strict=True)):
                    # with two variables per row, the middle of the box is a better start than the last solution
                    near = last if len(dual.rows) == dual.count else None
                    words = f"training with {len(chosen):,} vectors"
                    solutions.append(solve(dual, features, near, partial(_told, tell, words, k, len(duals))))
                tell(1.0, f"checking the machine with {len(chosen):,} vectors")
                trained = _trained(duals, solutions, features, tolerance, rounds, generator)
                rounds, before = list(trained.rounds), solutions
                if trained.good:
                    return trained
                if basis is not None:
                    return replace(trained, stopped="the basis was given, so it does not grow")
                if len(chosen) < n or n == len(rows):
                    return replace(trained, stopped="no other row would extend the basis")
                if n == n_max:
                    return replace(trained, stopped=f"at most {n_max:,} vectors were allowed")
                n = min(2 * n, n_max)
    except KeyboardInterrupt:
        if trained is None:
            raise
        return replace(trained, stopped="it was interrupted", interrupted=True)


def short(number: float) -> str:
    """Return the number as text with two significant digits."""
    return f"{float(f'{number:.2g}'):g}"


def _told(tell: Callable[[float, str], None], words: str, k: int, count: int, part: float) -> None:
    tell((k + part) / count, words)


def _trained(
    duals: Sequence[Dual],
    solutions: Sequence[Solution],
    features: FeatureRows,
    tolerance: float,
    rounds: Sequence[Round],
    generator: np.random.Generator,
) -> Trained:
    betas = [dual.beta(each.settled(dual)) for dual, each in zip(duals, solutions, strict=True)]
    products = [_product(features, dual.beta(each.u)) for dual, each in zip(duals, solutions, strict=True)]
    objectives = [
        dual.primal(float(w @ w), low + each.bias)
        for dual, each, (low, w) in zip(duals, solutions, products, strict=True)
    ]
    judgements = [judged(dual, each, features, generator) for dual, each in zip(duals, solutions, strict=True)]
    last = Round(
        vectors=len(features.basis),
        trace=float(features.basis.trace[-1]),
        steps=sum(each.steps for each in solutions),
        objective=sum(objectives),
        gap=max(each.gap for each in solutions),
        residual=float(max(each[0] for each in judgements)),
        excess=float(max(each[1] for each in judgements)),
        judges=min(each[2] for each in judgements),
    )
    return Trained(
        ReducedModel(
            "svm",
            features.basis,
            np.column_stack([w for _, w in products]),
            np.array([each.bias for each in solutions]),
        ),
        np.column_stack(betas),
        solutions,
        [*rounds, last],
        tolerance,
        "",
    )


def left_out(
    duals: Sequence[Dual],
    basis: Basis,
    x: Any,
    folds: np.ndarray,
    tell: Callable[[float, str], None] = lambda part, text: None,
) -> np.ndarray:
    """Return, for each row, the values of functions that were trained without the row's fold, (l, o).  The same basis is
    used for all folds, because it does not depend on the targets.

    folds: (l,), the fold of each row.  If all rows outside the fold have the same target, 1 or -1, the function is
    constant and has this value.
    """
    rows = as_rows(x)
    values = np.empty((len(rows), len(duals)))
    with one_thread:
        each_fold = np.unique(folds)
        for k, fold in enumerate(each_fold):
            tell(k / len(each_fold), f"leaving out fold {k + 1} of {len(each_fold)}")
            asked, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            features, there = FeatureRows(basis, rows.take(others), keep=KEPT), basis.features(rows.take(asked))
            for o, dual in enumerate(duals):
                part = dual.part(others)
                if part.one_sided:
                    values[asked, o] = part.one_sided
                    continue
                solution = solve(part, features)
                values[asked, o] = there @ _product(features, part.beta(solution.u))[1] + solution.bias
    return values
