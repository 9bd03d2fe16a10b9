"""Paper 003 by its definitions, in float64: slow, and meant to be trusted by reading it.

Nothing is cached and nothing is updated: Gram matrices are written out, every candidate is removed in turn, and the
multipliers that stay are solved for.  Where two choices are equal but for rounding, the twin accepts the product's
and follows it.
"""

from __future__ import annotations

import numpy as np

from pykernel.expansion import Status

CLOSE = 1e-9
"""Relative difference below which a choice between two numbers is a matter of rounding."""
TINY = 2.0**-100


def kernel(a: np.ndarray, b: np.ndarray, sigma: float) -> float:
    """Eq. 15, and nothing below 2^-60."""
    k = float(np.exp(-np.sum((a - b) ** 2) / (2 * sigma**2)))
    return k if k >= 2.0**-60 else 0.0


def gram(v: list[np.ndarray], sigma: float) -> np.ndarray:
    """Eq. 7."""
    return np.array([[kernel(a, b, sigma) for b in v] for a in v])


def close(a: float, b: float) -> bool:
    return abs(a - b) <= CLOSE * max(abs(a), abs(b))


class Disagreement(AssertionError):
    """The product chose what the definitions do not allow."""


class Twin:
    """A budgeted expansion: ``technique`` is nt, fklms or mklms, the other parameters are the spec's."""

    def __init__(
        self, technique: str, sigma: float, eta: float, rho: float, ridge: float, gate: float, n_max: int, limit: float
    ) -> None:
        self.technique, self.sigma, self.eta, self.rho, self.n_max = technique, sigma, eta, rho, n_max
        self.ridge, self.gate = ridge, gate
        self.alpha_limit = 2.0**20 * limit
        self.v: list[np.ndarray] = []
        self.alpha = np.zeros(0)

    def predict(self, x: np.ndarray) -> float:
        """Eq. 1."""
        return float(sum(a * kernel(v, x, self.sigma) for a, v in zip(self.alpha, self.v, strict=True)))

    def update(self, x: np.ndarray, y: float, status: int, place: int | None) -> None:
        """Learn (x, y).  The product's answer was ``status``, and it stored x in ``place`` if it stored it.

        Raises Disagreement if the definitions allow no such answer.
        """
        step = self.eta * (y - self.predict(x))  # eq. 2, 4
        step = 0.0 if abs(step) < TINY else step
        decayed = np.array([self._settled(a) for a in (1 - self.eta * self.rho) * self.alpha])  # eq. 5
        outcomes = self._outcomes(x, step, decayed)
        if (status, place) not in outcomes:
            raise Disagreement(f"{Status(status).name} at {place}; allowed: {sorted(outcomes, key=str)}")
        alpha = outcomes[status, place]
        if np.abs(alpha).max() > self.alpha_limit * (1 - CLOSE):
            raise Disagreement("a multiplier beyond its limit was stored")
        if place is not None:
            self.v[place : place + 1] = [x]
        self.alpha = np.array([self._settled(a) for a in alpha])

    def _settled(self, a: float) -> float:
        return 0.0 if abs(a) < TINY else float(a)

    def _outcomes(self, x: np.ndarray, step: float, alpha: np.ndarray) -> dict[tuple[int, int | None], np.ndarray]:
        """(status, place) -> multipliers afterwards, for each answer that rounding allows; mostly there is one."""
        n = len(self.v)
        if any(np.array_equal(v, x) for v in self.v):
            twin = next(i for i, v in enumerate(self.v) if np.array_equal(v, x))
            return {(Status.MERGED, None): alpha + step * np.eye(n)[twin]}
        outcomes: dict[tuple[int, int | None], np.ndarray] = {}
        new = self._novelty(x)
        if new <= self.gate * (1 + CLOSE) + 1e-12:
            outcomes[Status.ABSORBED, None] = self._absorbed(x, step, alpha)
            if new <= self.gate * (1 - CLOSE) - 1e-12:
                return outcomes
        if n < self.n_max:
            outcomes[Status.ADDED, n] = np.append(alpha, step)
            return outcomes
        v, alpha = [*self.v, x], np.append(alpha, step)
        for r in self._removable(v, alpha):
            left = self._projected(v, alpha, r)
            if r == n:
                outcomes[Status.DISCARDED, None] = left[:n]
            else:
                left[r] = left[n]
                outcomes[Status.REPLACED, r] = left[:n]
        return outcomes

    # ---- near-duplicates

    def _novelty(self, x: np.ndarray) -> float:
        """What stored vectors leave over of the sample: the nearest alone, or (with a Gram matrix) all."""
        if not self.v:
            return 1.0
        k = np.array([kernel(v, x, self.sigma) for v in self.v])
        if self.technique == "mklms":
            regularised = gram(self.v, self.sigma) + self.ridge * np.eye(len(k))
            return float(1 + self.ridge - k @ np.linalg.solve(regularised, k))
        nearest = min(np.sum((v - x) ** 2) for v in self.v)
        return float(-np.expm1(-nearest / self.sigma**2))  # 1 - k^2

    def _absorbed(self, x: np.ndarray, step: float, alpha: np.ndarray) -> np.ndarray:
        k = np.array([kernel(v, x, self.sigma) for v in self.v])
        if self.technique == "mklms":
            return alpha + step * np.linalg.solve(gram(self.v, self.sigma) + self.ridge * np.eye(len(k)), k)
        nearest = int(np.argmin([np.sum((v - x) ** 2) for v in self.v]))
        return alpha + step * k[nearest] * np.eye(len(k))[nearest]

    # ---- the reduction, n_max + 1 vectors of which one must go; the last one is the newest

    def _removable(self, v: list[np.ndarray], alpha: np.ndarray) -> list[int]:
        """The vector that the technique removes, and others that only rounding tells from it."""
        size = np.abs(alpha)
        last = len(v) - 1
        if self.technique == "fklms":
            return self._of_closest_pair(v, size)
        if self.technique == "nt":
            score = size
        else:
            score = np.array([self._loss(v, alpha, r) for r in range(last + 1)])
        near = [r for r in range(last + 1) if close(score[r], score.min())]
        if all(score[r] == 0 for r in near):
            # exact ties: the smaller |alpha|, of equals a stored one, of those the first
            near = [min(near, key=lambda r: (size[r], r == last, r))]
        return near

    def _of_closest_pair(self, v: list[np.ndarray], size: np.ndarray) -> list[int]:
        """Eq. 17: both of the closest pair have the same score, and the one with the smaller |alpha| goes."""
        distance = np.array([[np.sum((a - b) ** 2) for b in v] for a in v])
        np.fill_diagonal(distance, np.inf)
        nearest = distance.min(axis=1)
        tied = np.flatnonzero(nearest == nearest.min())
        removable = {int(r) for r in tied if size[r] <= size[tied].min() * (1 + CLOSE)}
        # pairs that rounding may have put first
        for i, j in np.argwhere((distance > nearest.min()) & (distance <= nearest.min() * (1 + CLOSE))):
            removable |= {int(i), int(j)}
        return sorted(removable)

    def _projected(self, v: list[np.ndarray], alpha: np.ndarray, r: int) -> np.ndarray:
        """Multipliers after the removal of r; its own place holds zero."""
        kept = [i for i in range(len(v)) if i != r]
        k = gram(v, self.sigma) + (self.ridge if self.technique == "mklms" else 0) * np.eye(len(v))
        left = np.zeros(len(v))
        left[kept] = alpha[kept]
        if self.technique == "fklms":
            left[kept] += k[kept, r] * alpha[r]  # eq. 16
        elif self.technique == "mklms":
            # eq. 12: what is nearest to the removed part, in the (regularised) norm of K
            left[kept] += np.linalg.solve(k[np.ix_(kept, kept)], k[kept, r] * alpha[r])
        return left

    def _loss(self, v: list[np.ndarray], alpha: np.ndarray, r: int) -> float:
        """Squared (regularised) norm of what the removal of r takes from the function, by doing it."""
        k = gram(v, self.sigma) + self.ridge * np.eye(len(v))
        lost = alpha - self._projected(v, alpha, r)
        return float(lost @ k @ lost)
