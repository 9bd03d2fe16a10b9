"""A stopping rule whose result holds with confidence c.  The part that a growing basis leaves out is measured on rows that
are drawn separately.

Let t_n be tr R / tr K after n vectors.  m rows are drawn independently of each other and of the selection; in each draw,
row i has the probability k_ii / tr K.  Each delta_i = R_ii / k_ii lies in [0, 1], and the expectation of delta_i is t_n.  Let
s_n be the mean of delta_i over the m rows.  U_n is the largest p with m (s_n log(s_n / p) + (1 - s_n) log((1 - s_n) /
(1 - p))) <= log(1 / (1 - c)).  By Hoeffding's inequality in its relative-entropy form (1963, Theorem 1), U_n is an
upper bound on t_n with a probability of at least c.

If the selection stops at the first U_n <= tau, then, with a probability of at least c, at most tau is left out (proof in
docs/bases.md).  The test may be repeated after each vector without any correction, because delta_i never rises and U_n
rises with s_n.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pykernel.bases.arguments import need_memory
from pykernel.bases.basis import Basis, block_rows, share
from pykernel.bases.candidates import MEMORY
from pykernel.bases.gram import MercerKernel
from pykernel.rows import ArrayRows, Rows, each_row

SLACK, LEAST = 0.9, 0.5
"""Enough rows are drawn for a mean delta of SLACK times tau to prove that at most tau is left out.  If memory is scarce,
fewer rows are drawn, but enough for a mean delta of LEAST times tau to prove this."""


def rows_needed(tau: float, confidence: float, part: float = SLACK) -> int:
    """Return the number of rows needed to prove, from a mean delta of ``part`` times tau, that at most tau is left out.

    For a confidence of 95 %, the number is about 600 / tau.
    """
    return math.ceil(-math.log1p(-confidence) / relative_entropy(part * tau, tau))


def relative_entropy(q: float, p: float) -> float:
    """Return kl(q, p) = q log(q / p) + (1 - q) log((1 - q) / (1 - p)) of two probabilities, in nats, with 0 log 0 = 0."""
    first = q * math.log(q / p) if q > 0 else 0.0
    if p >= 1:
        return first if q >= 1 else math.inf
    return first + ((1 - q) * (math.log1p(-q) - math.log1p(-p)) if q < 1 else 0.0)


def part_bound(mean: float, drawn: int, confidence: float) -> float:
    """Return a bound that, with this confidence, the part left out does not exceed.

    mean: the mean of delta over ``drawn`` rows.  The bound is computed by bisection to the last bit, and rounded up.
    """
    limit, low, high = -math.log1p(-confidence) / drawn, min(max(mean, 0.0), 1.0), 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if relative_entropy(mean, middle) <= limit else (low, middle)
    return high


class Watch:
    """Measure the part that a growing basis leaves out.

    If the method computes an exact trace, that trace is used; otherwise, the measurement is made on separately drawn
    rows.  m = ``rows_needed`` rows are drawn, or fewer if they do not fit in 1 GB.  If the data has at most m rows, all
    rows are used, and nothing is estimated.  Each vector takes m kernel values and O(m (n + D)) time.  The rows and their
    features take 8 m (n_max + D) bytes.  If k(x, x) is not 1 for every row, a pass over all rows is needed at the
    beginning.

    Attributes
    ----------
    exact : bool
        Whether ``trace`` was computed from all rows.
    trace : list of float
        The part left out after 0, 1, ... vectors.

    ``follow`` raises UserError if too few rows fit in 1 GB to prove that at most tau is left out.
    """

    def __init__(self, rows: Rows, kernel: MercerKernel, n_max: int, tau: float, confidence: float, seed: int) -> None:
        self.rows, self.kernel, self.tau, self.confidence, self.seed = rows, kernel, tau, confidence, seed
        self.capacity = min(n_max, len(rows))
        fits = MEMORY // (8 * (self.capacity + rows.dim))
        self.needed = min(rows_needed(tau, confidence), max(fits, rows_needed(tau, confidence, LEAST)))
        self.exact = self.needed >= len(rows)
        self.evaluations = 0
        self.trace = [1.0]
        self.x: np.ndarray | None = None

    def _draw(self) -> np.ndarray:
        rows, m = self.rows, min(self.needed, len(self.rows))
        need_memory(
            8 * m * (self.capacity + rows.dim),
            MEMORY,
            f"keeping the {m:,} rows that are needed to prove that the part left out is at most tau = {self.tau:g}",
            "take a larger tau, or fewer vectors",
        )
        generator = np.random.default_rng([self.seed, 3])
        if self.exact:
            at = np.arange(m)
        elif self.kernel.unit:
            at = generator.integers(len(rows), size=m)
        else:
            at = self._in_proportion(m, generator)
        x = rows.take(np.sort(at))
        self.diagonal = self.kernel.self_values(x)
        self.left = self.diagonal.copy()
        self.projected = np.zeros((self.capacity, m))
        return x

    def _in_proportion(self, m: int, generator: np.random.Generator) -> np.ndarray:
        """Draw rows with probability k_ii / tr K."""
        rows = self.rows
        diagonal = each_row(rows, block_rows(0, rows.dim), self.kernel.self_values)
        self.evaluations += len(rows)
        summed = np.cumsum(diagonal / (diagonal.max() or 1.0))
        if not summed[-1] > 0:
            return generator.integers(len(rows), size=m)
        # take the first row whose cumulative sum is above the random number: its k_ii is never 0
        at = np.searchsorted(summed, generator.random(m) * summed[-1], side="right")
        return np.minimum(at, np.searchsorted(summed, summed[-1], side="left"))

    def follow(self, basis: Basis) -> None:
        """Process the vectors that were added since the last call.  They are processed one by one, so that the bits of
        the result do not depend on the number of calls.
        """
        if basis.exact:
            self.exact, self.trace = True, basis.trace.tolist()
            return
        if self.x is None:
            self.x = self._draw()
        for n in range(len(self.trace) - 1, len(basis)):
            vector = basis.vectors[n : n + 1]
            size = block_rows(1, basis.vectors.shape[1])
            values = each_row(ArrayRows(self.x), size, lambda block: self.kernel.gram(block, vector)[:, 0])  # noqa: B023
            self.evaluations += len(self.x)
            column = (values - basis.factor[n, :n] @ self.projected[:n]) / basis.factor[n, n]
            self.projected[n] = column
            self.left = np.clip(self.left - column * column, 0.0, None)
            self.trace.append(self._part())

    def _part(self) -> float:
        """Return tr R / tr K on the measured rows.  Drawn rows have equal weights, because they were drawn with
        probabilities in proportion to k(x, x).  If all rows are used, each row has the weight k(x, x).
        """
        if self.exact:
            total = float(self.diagonal.sum())
            return float(self.left.sum() / total) if total else 0.0
        return float(share(self.left, self.diagonal).mean())

    @property
    def bound(self) -> float:
        """U_n, an upper bound on tr R / tr K over all rows, which holds with the probability ``confidence``."""
        if self.exact:
            return self.trace[-1]
        return part_bound(self.trace[-1], self.needed, self.confidence)

    @property
    def enough(self) -> bool:
        """Whether it is proven that at most tau is left out."""
        return len(self.trace) > 1 and self.bound <= self.tau

    def with_bound(self, basis: Basis) -> Basis:
        """Return the basis with its measured trace and bound.

        The bound holds with the requested confidence, no matter where the selection stopped.
        """
        return replace(
            basis,
            trace=np.array(self.trace),
            exact=self.exact,
            evaluations=basis.evaluations + self.evaluations,
            stopped="tau" if self.enough else basis.stopped,
            bound=self.bound if self.exact else max(self.bound, self.tau),
        )
