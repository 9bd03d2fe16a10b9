"""Support vector machines by an interior-point method on a Gram matrix of low rank.  Paper 002, section 6.1.

    duals = Dual.of_classes(positions, 2, most=10.0)            # C = 10; or [Dual.of_values(y, epsilon, most)]
    found = train(x, MercerKernel("gaussian", gamma=0.5), duals, n_max=400)
    found.predict(x_new), found.reached

l rows, n basis vectors, K~ = Z Z' with the features Z (l, n) of a greedy basis.  The dual of a machine is

    min 1/2 beta' K~ beta + c'u    with    beta_i = sum of s_j u_j over the variables j of row i,  1'beta = 0,  0 <= u <= h

A row of a class has one variable (s its class, 1 or -1; c = -1; h = C times the row's weight), a row with a number has two,
above and below the tube (s = 1 and -1; c = epsilon - s y).  The function is f = K~ beta + b, b the multiplier of 1'beta = 0,
and the primal is 1/2 beta' K~ beta + sum_j h_j max(0, -(s_j f + c_j)): hinge loss, and epsilon-insensitive loss.

Each step of Mehrotra's predictor and corrector solves twice with K~ + diag(sigma), the reduced KKT system, in O(l n^2) by
Woodbury's identity (``LowRankSystem``).  K is positive semidefinite, and K - K~, too (a basis in function space).  So the
function of the low-rank machine, a sum over n vectors, is a function of the full machine's space, and

    its primal objective - the full machine's optimum  <=  1/2 beta' (K - K~) beta + the low-rank machine's own gap

which ``judged`` measures, with the residual of the full machine's KKT conditions.  Where that is too large, the basis grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from scipy.linalg import solve_triangular  # type: ignore[import-untyped]

from pykernel.bases.arguments import checked_count, checked_numbers, checked_positive, need_machine
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.parallel import one_thread
from pykernel.rows import Rows, as_rows
from pykernel.training.low_rank import LowRankSystem
from pykernel.training.reduced import FeatureRows

GAP = 1e-9
"""The interior-point method ends when its duality gap is at most this part of the objective, or when rounding allows no
more."""
ENOUGH = 1e-6
"""A solution with a larger gap is told as not solved."""
STEPS = 200
"""Most steps of one solution; 10 to 40 are usual."""
BOUNDARY = 0.995
"""Part of the way to the nearest bound that a step goes."""
STALLED = 1e-7
"""Steps that are shorter gain nothing: rounding decides."""
FIRST = 64
"""Vectors of the first basis.  Each next basis has twice as many."""
KEPT = 2**27
"""Up to so many numbers, 1 GiB, features are kept; beyond, they are computed anew in each pass."""
JUDGES = 2**28
"""Up to so many kernel values the true residual is computed on all rows; beyond, on rows that are drawn."""
DRAWN = 2000
"""So many."""
BLOCK = 2**22
"""Kernel values that are held at once: 32 MB."""
INSIDE = 1e-3
"""A start from an earlier solution is moved so far from the bounds, as a part of their distance."""


# --------------------------------------------------------------------------------------------------------- the dual


@dataclass(frozen=True, eq=False)
class Dual:
    """The dual of one function.  rows, sign, cost, most: (q,), of each variable its row, s, c and h.  count: l rows.

    unit: what a difference of function values is compared with.
    """

    rows: np.ndarray
    sign: np.ndarray
    cost: np.ndarray
    most: np.ndarray
    count: int
    unit: float = 1.0

    @classmethod
    def of_classes(cls, positions: Any, count: int, most: Any) -> list[Self]:
        """One function of two classes, positive for class 1; of more, each class against the others.

        positions: (l,), 0 to count - 1; most: C, or (l,) C times a weight.  Raises UserError.
        """
        places = np.asarray(positions)
        owners = [1] if count == 2 else list(range(count))
        every, most = np.arange(len(places)), _most(most, len(places))
        made = [
            cls(every, np.where(places == owner, 1.0, -1.0), np.full(len(places), -1.0), most, len(places))
            for owner in owners
        ]
        for owner, dual in zip(owners, made, strict=True):
            if abs(dual.sign.sum()) == len(places):
                raise UserError(f"class {owner} has {'all' if dual.sign[0] > 0 else 'none'} of the rows; give both kinds")
        return made

    @classmethod
    def of_values(cls, y: Any, epsilon: float, most: Any) -> Self:
        """Regression.  y: (l,); epsilon: half of the tube's width; most: C, or (l,) C times a weight.  Raises UserError."""
        y = checked_numbers(y, "targets")
        if y.ndim != 1 or not y.size:
            raise UserError(f"targets have the shape {y.shape}; it must be (rows,)")
        if not 0 <= epsilon < math.inf:
            raise UserError(f"epsilon is {epsilon:g}; it must be a number from 0")
        sign = np.repeat([1.0, -1.0], len(y))
        rows, both = np.tile(np.arange(len(y)), 2), np.tile(_most(most, len(y)), 2)
        return cls(rows, sign, epsilon - sign * y[rows], both, len(y), float(y.std()) or 1.0)

    def of_rows(self, values: np.ndarray) -> np.ndarray:
        """(q,) -> (l,): sums over the variables of each row."""
        return np.bincount(self.rows, values, minlength=self.count)

    def beta(self, u: np.ndarray) -> np.ndarray:
        return self.of_rows(self.sign * u)

    def margin(self, f: np.ndarray) -> np.ndarray:
        """s f + c, (q,): below 0 where a row costs, 0 where it is on the margin."""
        return self.sign * f[self.rows] + self.cost

    def primal(self, square: float, f: np.ndarray) -> float:
        """square: beta' K beta."""
        return square / 2 + float(self.most @ np.maximum(-self.margin(f), 0.0))

    def dual(self, square: float, u: np.ndarray) -> float:
        return -square / 2 - float(self.cost @ u)

    def part(self, rows: np.ndarray) -> Self:
        """The dual of some rows, given by increasing positions."""
        place = np.full(self.count, -1)
        place[rows] = np.arange(len(rows))
        mine = place[self.rows] >= 0
        return type(self)(
            place[self.rows[mine]], self.sign[mine], self.cost[mine], self.most[mine], len(rows), self.unit
        )


def _most(most: Any, count: int) -> np.ndarray:
    values = np.broadcast_to(checked_numbers(most, "C times the weights"), (count,)).copy()
    if not (values > 0).all():
        raise UserError(f"C times a weight is {values.min():g}; it must be above 0")
    return values


# ------------------------------------------------------------------------------------------- the interior-point method


@dataclass(frozen=True, eq=False)
class Solution:
    """u (q,), its multipliers at 0 and at h (q,), and b; steps that were taken, the duality gap as a part of the primal
    objective, and whether that is small enough.
    """

    u: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    bias: float
    steps: int
    gap: float
    solved: bool

    def settled(self, dual: Dual) -> np.ndarray:
        """u with variables on their bounds put there: those that are nearer to a bound than its multiplier is to 0.

        Both in their typical sizes, the mean of u and the targets' unit.
        """
        typical = self.u.mean() / dual.unit
        found = np.where(self.u < typical * self.lower, 0.0, self.u)
        return np.where(dual.most - self.u < typical * self.upper, dual.most, found)


def _start(dual: Dual, features: FeatureRows, before: Solution | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """u, its multipliers and b.  Without an earlier solution: the middle of the box."""
    if before is None:
        u, bias, least = dual.most / 2, 0.0, dual.unit
    else:
        u, bias, least = np.clip(before.u, INSIDE * dual.most, (1 - INSIDE) * dual.most), before.bias, INSIDE * dual.unit
    margin = dual.margin(_product(features, dual.beta(u))[0] + bias)
    return u, np.maximum(margin, 0.0) + least, np.maximum(-margin, 0.0) + least, bias


def _product(features: FeatureRows, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """K~ beta (l,), and Z'beta (n,)."""
    w = np.zeros(features.width)
    for start, z in features:
        w += z.T @ beta[start : start + len(z)]
    return np.concatenate([z @ w for _, z in features]), w


def solve(
    dual: Dual, features: FeatureRows, before: Solution | None = None, tell: Callable[[float], None] = lambda part: None
) -> Solution:
    """Mehrotra's predictor-corrector.  O(l n^2) a step.

    before: a solution near to which the search starts.  tell: gets the part that is done, by the gap.

    The conditions, with multipliers z of u >= 0 and w of u <= h, are  s f + c - z + w = 0,  1'beta = 0,  u z = mu,
    (h - u) w = mu.  Newton's step eliminates z, w and u: with d = z / u + w / (h - u), of row i  1 / sigma_i = sum of 1 / d_j,

        (K~ + diag(sigma)) dbeta + db = sigma * (sum of s_j g_j / d_j),    1'dbeta = -1'beta
    """
    u, z, w, bias = _start(dual, features, before)
    s, h = dual.sign, dual.most
    room = h - u
    idle = dual.primal(0.0, np.zeros(dual.count)) or float(h.sum())
    best: Solution | None = None
    first, steps = None, 0
    while True:
        beta = dual.beta(u)
        kb, w_features = _product(features, beta)
        f, square = kb + bias, float(w_features @ w_features)
        primal = dual.primal(square, f)
        # what 1'beta misses moves the dual by b times as much
        off = beta.sum()
        gap = primal - dual.dual(square, u) + abs(bias * off)
        allowed = GAP * primal + 1e-3 * GAP * idle
        if best is None or gap / max(primal, 1e-300) < best.gap:
            best = Solution(u, z, w, bias, steps, gap / max(primal, 1e-300), gap <= allowed)
        if best.solved or steps == STEPS:
            return best
        first = first or gap
        tell(min(1.0, max(0.0, math.log(first / gap) / math.log(first / allowed))) if gap < first else 0.0)
        d = z / u + w / room
        sigma = 1 / dual.of_rows(1 / d)
        system = LowRankSystem(features, sigma)
        residual = -(dual.margin(f) - z + w)
        ones = np.ones(dual.count)

        def newton(at_zero: np.ndarray, at_most: np.ndarray, one: np.ndarray | None) -> tuple[Any, ...]:
            """du, dz, dw, db that make u z and (h - u) w larger by these, to first order; one: A^-1 1."""
            g = s * (residual + at_zero / u - at_most / room)
            right = sigma * dual.of_rows(g / d)
            if one is None:
                one, free = system.solve(np.column_stack([ones, right])).T
            else:
                free = system.solve(right)
            db = (free.sum() + off) / one.sum()
            dbeta = free - db * one
            du = (g - (right - sigma * dbeta)[dual.rows]) * s / d
            return du, (at_zero - z * du) / u, (at_most + w * du) / room, db, one

        def longest(du: np.ndarray, dz: np.ndarray, dw: np.ndarray) -> float:
            ratios = (-du / u).max(), (du / room).max(), (-dz / z).max(), (-dw / w).max()
            return 1 / max(*ratios, 1e-300)

        mu = float(u @ z + room @ w) / (2 * len(u))
        du, dz, dw, db, one = newton(-u * z, -room * w, None)
        step = min(1.0, longest(du, dz, dw))
        after = float((u + step * du) @ (z + step * dz) + (room - step * du) @ (w + step * dw)) / (2 * len(u))
        target = mu * (after / mu) ** 3
        du, dz, dw, db, _ = newton(target - u * z - du * dz, target - room * w + du * dw, one)
        step = min(1.0, BOUNDARY * longest(du, dz, dw))
        if not step > STALLED:
            return best
        u, room, z, w, bias = u + step * du, room - step * du, z + step * dz, w + step * dw, bias + step * db
        steps += 1


# ------------------------------------------------------------------------------------------------- the full machine


@dataclass(frozen=True)
class Round:
    """One basis: its vectors, and of all functions the interior-point steps, the primal objectives' sum, the largest gap as a
    part of an objective; and beside the full machine, whose Gram matrix is K:

    residual: of the KKT conditions of beta, the largest over the functions, in units of the targets: what is missing at a b
    that suits best, twice (LIBSVM's m - M, which its ``tol`` limits).
    excess: an upper bound of (the objective of the function - the full machine's) / the objective.
    judges: rows on which these two were measured; if not all, excess is an estimate, and residual the largest of these rows.
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
    """The residual and the excess of one function, and the number of rows that judge; ``Round`` has what they are.

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
    # the b at which the variable's row is on the margin: b must be at least, or at most, that
    border = -s * dual.cost[mine] - full[place[dual.rows[mine]]]
    least = border[np.where(s > 0, u < most, u > 0)].max(initial=-math.inf)
    largest = border[np.where(s > 0, u > 0, u < most)].min(initial=math.inf)
    primal = dual.primal(float(w @ w), low + solution.bias)
    excess = solution.gap + max(more, 0.0) / 2 / max(primal, 1e-300)
    return max(0.0, least - largest) / dual.unit, min(excess, 1.0), len(some)


@dataclass(frozen=True, eq=False)
class Trained:
    """f(x) = k(x, vectors) alpha + bias, with one column of alpha for each dual.

    beta: (l, o), the dual's weights of the rows; a row with another weight than 0 is a support vector of this function.
    rounds: what each basis reached.  reached: that in a sentence.  interrupted: whether Ctrl-C ended it.
    """

    basis: Basis
    w: np.ndarray
    bias: np.ndarray
    beta: np.ndarray
    solutions: Sequence[Solution]
    rounds: Sequence[Round]
    tolerance: float
    stopped: str
    interrupted: bool = False

    @property
    def alpha(self) -> np.ndarray:
        """Weights of the basis vectors, (n, o)."""
        return np.asarray(solve_triangular(self.basis.factor, self.w, lower=True, trans=1, check_finite=False))

    @property
    def support(self) -> np.ndarray:
        """Positions of the rows that are support vectors of any function."""
        return np.flatnonzero(self.beta.any(axis=1))

    def predict(self, x: Any) -> np.ndarray:
        """(rows, o)."""
        return FeatureRows(self.basis, x).of(np.asarray(x, np.float64)) @ self.w + self.bias
