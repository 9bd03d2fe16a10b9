"""Linear programming machines, whose penalty is the 1-norm of the weights instead of |f|^2, so that most weights are 0.  Paper 002,
section 6.2.

    duals = Dual.of_classes(positions, 2, most=1.0)            # C = 1; or [Dual.of_values(y, epsilon, most)]
    found = train(x, MercerKernel("gaussian", gamma=0.5), duals, n_max=64)
    found.model.predict(x_new), found.reached

l rows, n vectors v_j, f(x) = sum_j alpha_j k(v_j, x) + b.  ``pykernel.training.svm.Dual`` defines the losses, and s, c and h of each
variable.  HiGHS's simplex method solves the dual.  The dual is faster to solve than the primal, because it has few
constraints apart from the bounds on its variables:

    min  sum_j |alpha_j| + sum_i h_i max(0, -(s_i f(x_i) + c_i))
    max  -c'u    with    |k_j'beta| <= 1 for each vector,  1'beta = 0,  0 <= u <= h,  beta_i = sum of s u over row i's variables

In the first line, i counts the variables, and x_i is the row of variable i.  k_j contains the kernel values of vector j
and all rows.  alpha and b are the multipliers of the dual's constraints.  |k_j'beta| is the *price* of vector j.  If
the price of a row is above 1, adding the row as a vector would lower the objective.  The training follows the paper's
loop (solve on a subset, judge, generate more basis functions), and starts from a greedy basis.  Each round adds the
rows with the highest prices, and removes vectors whose weight is 0 and whose price is low.

**A bound.**  Let p be the largest price of all rows, or 1 if no price is above 1.  Then u / p is feasible in the dual
of the machine that has all l rows as vectors.  Therefore -c'u / p is a lower bound on the optimum of this machine, even
with rounding errors.  ``Round.excess`` is the objective's relative distance to the largest bound so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.optimize import linprog  # type: ignore[import-untyped]
from scipy.sparse import csc_array  # type: ignore[import-untyped]

from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.parallel import one_thread
from pykernel.rows import Rows, as_rows, each_row
from pykernel.training.svm import ENOUGH, FIRST, Dual, asked, part_of, short

LEFT = 1e-9
"""Weights smaller than this fraction of the largest weight are set to 0."""
NEAR = 0.9
"""Two limits.  A vector with the weight 0 stays if its price is above NEAR.  If the cosine between two rows in the
kernel's feature space is above NEAR, only the row with the higher price is added in a round.
"""
AMONG = 8
"""If at most m rows may be added in a round, they are chosen from the AMONG * m rows with the highest prices."""
WIDER = 4
"""The training stops adding vectors when more than WIDER * ``n_max`` vectors have nonzero weights, because most of
these vectors would be removed later.
"""
MOST = 2**26
"""Vectors are added only while the number of rows times the number of vectors is at most this number.  So many kernel
values need 512 MB, and the linear program's matrix and its copies in SciPy need several times as much.
"""
BLOCK = 2**22
"""Maximum number of kernel values in memory at once; they need 32 MB."""
Tell = Callable[[float, str], None]
"""A function that is called with the completed fraction of the work, and a text that says what is being done."""


# ------------------------------------------------------------------------------------------------ one linear program


@dataclass(frozen=True, eq=False)
class Solution:
    """The solution of one linear program: alpha (n,), b, the dual's u (q,), and the number of simplex steps.  u is
    feasible except that prices may be above 1.
    """

    alpha: np.ndarray
    bias: float
    u: np.ndarray
    steps: int


def solve(dual: Dual, values: np.ndarray) -> Solution:
    """Solve the linear program of a machine with n vectors.  values: (l, n), k(x_i, v_j).  Raises UserError if HiGHS
    finds no solution.

    The linear program is scaled: functions are in the targets' unit, kernel values are divided by the largest value of
    their vector, and u is divided by the mean of h or by the reciprocal of the largest kernel value, whichever is
    smaller.
    """
    q, n = len(dual.sign), values.shape[1]
    scale = np.abs(values).max(axis=0)
    scale[scale == 0] = 1.0
    part = min(float(dual.most.mean()), 1 / float(scale.max()))
    limit = 1 / (part * scale)
    matrix = np.zeros((n + 1, q + n))
    np.multiply((values / scale).T[:, dual.rows], dual.sign, out=matrix[:n, :q])
    matrix[n, :q] = dual.sign
    matrix[np.arange(n), q + np.arange(n)] = -1.0
    result = linprog(
        np.concatenate([dual.cost / dual.unit, np.zeros(n)]),
        A_eq=csc_array(matrix),
        b_eq=np.zeros(n + 1),
        bounds=np.column_stack([np.concatenate([np.zeros(q), -limit]), np.concatenate([dual.most / part, limit])]),
        method="highs-ds",
    )
    if result.x is None or result.status != 0:
        raise UserError(f"HiGHS cannot solve the linear program with {n:,} vectors; scale the data, or use a smaller C")
    alpha = -result.eqlin.marginals[:n] * (dual.unit / scale)
    alpha[np.abs(alpha) <= LEFT * np.abs(alpha).max(initial=0.0)] = 0.0
    return Solution(
        alpha, -float(result.eqlin.marginals[n]) * dual.unit, feasible(dual, part * result.x[:q]), result.nit
    )


def feasible(dual: Dual, u: np.ndarray) -> np.ndarray:
    """Clip u to [0, h].  Then scale down the variables with s = 1 or those with s = -1, whichever have the larger sum,
    so that 1'beta = 0.
    """
    u = np.clip(u, 0.0, dual.most)
    above, below = u[dual.sign > 0].sum(), u[dual.sign < 0].sum()
    least = min(above, below)
    return u * np.where(dual.sign > 0, least / max(above, 1e-300), least / max(below, 1e-300))


def prices(kernel: MercerKernel, rows: Rows, beta: np.ndarray) -> np.ndarray:
    """Return the price |k_i'beta| of each row, (l,).  O(l m D) for m rows whose beta is not 0."""
    support = np.flatnonzero(beta)
    if not len(support):
        return np.zeros(len(rows))
    vectors, size = rows.take(support), max(1, BLOCK // len(support))
    return np.abs(each_row(rows, size, lambda block: kernel.gram(block, vectors) @ beta[support]))


# -------------------------------------------------------------------------------------------------------- the loop


@dataclass(frozen=True)
class Round:
    """The result for one set of vectors.  Steps and objective are summed over all functions.

    weighted: number of vectors with a nonzero weight in any function.  gap: the largest relative duality gap of any
    function, (objective - dual) / objective, which is due to rounding.  residual: the highest price of any row minus 1,
    or 0 if no price is above 1.  excess: an upper bound on (objective - optimum) / objective, the largest over all
    functions.  The optimum is that of the machine in which every row is a vector.
    """

    vectors: int
    weighted: int
    steps: int
    objective: float
    gap: float
    residual: float
    excess: float


@dataclass(frozen=True, eq=False)
class SparseModel:
    """f(x) = k(x, vectors) alpha + bias.  vectors: (n, D); alpha: (n, o); bias: (o,)."""

    kernel: MercerKernel
    vectors: np.ndarray
    alpha: np.ndarray
    bias: np.ndarray

    def predict(self, x: Any) -> np.ndarray:
        """Return the functions' values, (l, o).  x: l rows, in any form that ``as_rows`` accepts.  O(n D) for each row."""
        return each_row(as_rows(x), max(1, BLOCK // len(self.vectors)), self._of, len(self.bias))

    def _of(self, block: np.ndarray) -> np.ndarray:
        return self.kernel.gram(block, self.vectors) @ self.alpha + self.bias


@dataclass(frozen=True, eq=False)
class Trained:
    """The result of ``train``.

    model: the machine, without vectors whose weights are all 0.  start: vectors for a warm start, namely those with
    nonzero weights before vectors were removed to satisfy ``n_max``.  beta: (l, o), the dual coefficients of the rows.
    rounds: the result for each set of vectors.  reached: a sentence about the last result.  interrupted: whether Ctrl-C
    ended the training.
    """

    model: SparseModel
    start: np.ndarray
    beta: np.ndarray
    rounds: Sequence[Round]
    stopped: str
    interrupted: bool = False

    @property
    def good(self) -> bool:
        """Whether every price is at most 1 + ``tolerance``, and the relative duality gap is at most ENOUGH."""
        return not self.stopped and self.rounds[-1].gap <= ENOUGH

    @property
    def reached(self) -> str:
        """A sentence about the result, and the reason why no more vectors were added."""
        last, rows = self.rounds[-1], len(self.beta)
        told = (
            f"{last.weighted:,} of {last.vectors:,} vectors have nonzero weights, and with all {rows:,} rows as vectors the objective "
            f"would be at most {short(100 * last.excess)} % lower"
        )
        if last.gap > ENOUGH:
            told += (
                f"; rounding errors leave a relative duality gap of {last.gap:.1g}; scale the data, or use a smaller C"
            )
        return f"{told}; {self.stopped}" if self.stopped else told


@dataclass(frozen=True, eq=False)
class _Function:
    """A solution, with the price of each row (l,) and of each vector (n,), the objective, and a lower bound on the
    optimum of the machine in which every row is a vector.
    """

    solution: Solution
    price: np.ndarray
    own: np.ndarray
    objective: float
    gap: float
    bound: float

    @classmethod
    def of(cls, dual: Dual, values: np.ndarray, rows: Rows, kernel: MercerKernel, bound: float) -> Self:
        """Solve the linear program of one function.  values: (l, n), kernel values of the vectors.  bound: a known lower
        bound.
        """
        found = solve(dual, values)
        beta = dual.beta(found.u)
        objective = float(np.abs(found.alpha).sum()) + dual.primal(0.0, values @ found.alpha + found.bias)
        price, own, least = prices(kernel, rows, beta), np.abs(beta @ values), dual.dual(0.0, found.u)
        gap = max(0.0, objective - least / max(1.0, float(own.max()))) / (objective + dual.least)
        return cls(found, price, own, objective, gap, max(bound, least / max(1.0, float(price.max()))))

    @property
    def residual(self) -> float:
        return max(0.0, float(self.price.max()) - 1)

    @property
    def excess(self) -> float:
        return part_of(self.objective - self.bound, self.objective)

    def on(self, stay: np.ndarray, more: int) -> Self:
        """Return the function for the vectors that stay and ``more`` new vectors, whose weights are 0."""
        alpha = np.concatenate([self.solution.alpha[stay], np.zeros(more)])
        own = np.concatenate([self.own[stay], np.ones(more)])
        return replace(self, solution=replace(self.solution, alpha=alpha, steps=0), own=own)


def train(
    x: Any,
    kernel: MercerKernel,
    duals: Sequence[Dual],
    *,
    n_max: int = 1024,
    first: int = FIRST,
    tolerance: float = 0.1,
    basis: Basis | None = None,
    start: np.ndarray | None = None,
    method: str = "auto",
    seed: int = 0,
    tell: Tell = lambda part, text: None,
    **options: Any,
) -> Trained:
    """Solve on a set of vectors, and change the set until the price of every row is at most 1 + ``tolerance``.

    Parameters
    ----------
    x : (l, D) array, or anything else that ``as_rows`` accepts
    kernel : MercerKernel
    duals : sequence of Dual
        One dual for each function.  The functions share the vectors.
    n_max : int
        Maximum number of vectors with nonzero weights.  While more vectors have nonzero weights, those that contribute
        least are removed (at most half of the vectors at a time), and the weights of the others are computed again.
    first : int
        Number of vectors in the first set.
    tolerance : float
        Largest amount by which a price may exceed 1.
    basis : Basis, optional
        If given, the vectors of this basis are used, and no others are added.
    start : (n, D) array, optional
        The first set of vectors, for example from an earlier solution.
    method, seed, **options
        Arguments of ``select_basis``, which chooses the first set.

    Ctrl-C ends the training: the result is that of the last finished set.  If no set is finished, KeyboardInterrupt is
    raised.

    Raises
    ------
    UserError
        If an argument is invalid, or if no vector can be chosen.  The message is one sentence.
    """
    rows, duals, n_max, first, tolerance = asked(x, duals, n_max, first, tolerance)
    functions: list[_Function] = []
    rounds: list[Round] = []
    stopped, interrupted = "", False
    with one_thread:
        vectors = start if basis is None else basis.vectors
        if vectors is None:
            tell(0.0, f"choosing {first:,} vectors")
            vectors = select_basis(rows, kernel, first, method, seed=seed, **options).vectors
        try:
            while True:
                functions = _solved(duals, rows, kernel, vectors, functions, tolerance, tell)
                rounds.append(_round(functions))
                if rounds[-1].residual <= tolerance or rounds[-1].weighted > WIDER * n_max:
                    break
                if basis is not None:
                    stopped = "the basis was given, so it does not grow"
                    break
                fell = len(rounds) < 2 or rounds[-1].objective < (1 - LEFT) * rounds[-2].objective
                stay = _stay(functions) if fell else np.ones(len(vectors), bool)
                new = _entering(rows, kernel, vectors, functions, max(first, int(stay.sum())), tolerance)
                if not len(new) or len(rows) * (stay.sum() + len(new)) > MOST:
                    stopped = (
                        "more vectors would take too much memory"
                        if len(new)
                        else "all rows that could be added are already vectors, up to rounding errors"
                    )
                    break
                functions = [each.on(stay, len(new)) for each in functions]
                vectors = np.concatenate([vectors[stay], new])
        except KeyboardInterrupt:
            if not rounds:
                raise
            stopped, interrupted = "it was interrupted", True
        start = vectors[_sizes(kernel, vectors, functions) > 0]
        while (fewer := _fewer(kernel, vectors, functions, n_max)) is not None:
            vectors = fewer
            functions = _solved(duals, rows, kernel, vectors, functions, 0.0, tell)
            rounds.append(_round(functions))
            stopped = stopped if interrupted else f"at most {n_max:,} vectors were allowed"
    alpha = _alpha(functions)
    weighted = np.asarray(alpha.any(axis=1))
    weighted[0] |= not weighted.any()
    return Trained(
        SparseModel(kernel, vectors[weighted], alpha[weighted], np.array([each.solution.bias for each in functions])),
        start if len(start) else vectors[:1],
        np.column_stack([dual.beta(each.solution.u) for dual, each in zip(duals, functions, strict=True)]),
        rounds, stopped, interrupted,
    )  # fmt: skip


def _sizes(kernel: MercerKernel, vectors: np.ndarray, functions: Sequence[_Function]) -> np.ndarray:
    """Return the size of each vector's contribution to the functions, (n,)."""
    return np.asarray(np.sqrt(kernel.diagonal(vectors)) * np.abs(_alpha(functions)).sum(axis=1))


def _fewer(kernel: MercerKernel, vectors: np.ndarray, functions: Sequence[_Function], n_max: int) -> np.ndarray | None:
    """Return the vectors that contribute most, or None if at most n_max vectors have nonzero weights.

    At most half of the vectors are removed at a time, because only new weights show how well the remaining vectors
    replace the removed ones.
    """
    size = _sizes(kernel, vectors, functions)
    left = np.count_nonzero(size)
    return vectors[np.sort(np.argsort(-size, kind="stable")[: max(n_max, left // 2)])] if left > n_max else None


def _solved(
    duals: Sequence[Dual],
    rows: Rows,
    kernel: MercerKernel,
    vectors: np.ndarray,
    before: Sequence[_Function],
    tolerance: float,
    tell: Tell,
) -> list[_Function]:
    """Return the functions for ``vectors``, in the order of ``duals``.

    A function is not solved again if its prices were already low enough before the last change of the vectors.
    """
    values = each_row(rows, max(1, BLOCK // len(vectors)), lambda block: kernel.gram(block, vectors), len(vectors))
    made: list[_Function] = []
    for o, dual in enumerate(duals):
        tell(o / len(duals), f"solving with {len(vectors):,} vectors")
        last = before[o] if before else None
        if last is not None and last.residual <= tolerance and len(last.own) == len(vectors):
            made.append(last)
        else:
            made.append(_Function.of(dual, values, rows, kernel, last.bound if last else 0.0))
    return made


def _round(functions: Sequence[_Function]) -> Round:
    alpha = _alpha(functions)
    return Round(
        vectors=len(alpha),
        weighted=int(np.count_nonzero(alpha.any(axis=1))),
        steps=sum(each.solution.steps for each in functions),
        objective=sum(each.objective for each in functions),
        gap=max(each.gap for each in functions),
        residual=max(each.residual for each in functions),
        excess=max(each.excess for each in functions),
    )


def _alpha(functions: Sequence[_Function]) -> np.ndarray:
    return np.column_stack([each.solution.alpha for each in functions])


def _stay(functions: Sequence[_Function]) -> np.ndarray:
    """Return a Boolean array (n,) that is True for the vectors with a nonzero weight or a high price in any function."""
    return _alpha(functions).any(axis=1) | (np.max([each.own for each in functions], axis=0) > NEAR)


def _entering(
    rows: Rows, kernel: MercerKernel, vectors: np.ndarray, functions: Sequence[_Function], most: int, tolerance: float
) -> np.ndarray:
    """Return the rows with the highest prices, (m, D), leaving out rows that are similar to a chosen row or are already
    vectors.
    """
    price = np.max([each.price for each in functions], axis=0)
    order = np.argsort(-price, kind="stable")[: AMONG * most]
    asked = rows.take(order[price[order] > 1 + tolerance / 2])
    size = np.sqrt(kernel.diagonal(asked))[:, None]
    there = np.abs(kernel.gram(asked, vectors)) / (size * np.sqrt(kernel.diagonal(vectors)))
    like = np.abs(kernel.gram(asked, asked)) / (size * size.T)
    taken: list[int] = []
    for j in np.flatnonzero(there.max(axis=1) < 1 - LEFT):
        if len(taken) < most and not (like[j, taken] > NEAR).any():
            taken.append(int(j))
    return asked[taken]


def left_out(
    duals: Sequence[Dual],
    kernel: MercerKernel,
    x: Any,
    folds: np.ndarray,
    *,
    tell: Tell = lambda part, text: None,
    **options: Any,
) -> np.ndarray:
    """Return, for each row, the values of functions that were trained without the row's fold, (l, o).  options: as for
    ``train``.

    folds: (l,), the fold of each row.  If all rows outside the fold have the same target, 1 or -1, the function is
    constant and has this value.
    """
    rows, each_fold = as_rows(x), np.unique(folds)
    values = np.empty((len(rows), len(duals)))
    for k, fold in enumerate(each_fold):
        tell(k / len(each_fold), f"leaving out fold {k + 1} of {len(each_fold)}")
        asked, others = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        parts = [dual.part(others) for dual in duals]
        sides = np.array([part.one_sided for part in parts])
        values[asked] = sides
        if not sides.all():
            trained = train(rows.take(others), kernel, [part for part in parts if not part.one_sided], **options)
            values[np.ix_(asked, sides == 0)] = trained.model.predict(rows.take(asked))
    return values
