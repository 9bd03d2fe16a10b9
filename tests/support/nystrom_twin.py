"""A Nystroem basis on the device by its definitions, in float64: slow, and meant to be trusted by reading it.

Nothing is rotated and nothing is cached.  Features are made from the Gram matrix of the vectors each time, losses from
its explicit inverse, and least squares from the whole information matrix A = ridge I + sum beta^age z z', which a change
of the basis maps as the features are mapped.  Random numbers are integers and fractions.  Where two choices are equal
but for rounding, the twin accepts the product's and follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from pykernel.spec.model import Spec
from tests.support.retraining import Inputs

CLOSE = 1e-7
"""Relative difference below which a choice between two numbers is a matter of rounding."""
DONE, ADDED, REPLACED, REFUSED_INPUT, REFUSED_LABEL, TOO_FEW = 0, 1, 2, -1, -2, -4

KERNELS: dict[str, dict[str, Any]] = {
    "gaussian": {"gamma": 0.5},
    "wide": {"gamma": 0.02},
    "laplacian": {"function": "laplacian", "gamma": 0.5},
    "matern32": {"function": "matern32", "gamma": 0.8},
    "matern52": {"function": "matern52", "gamma": 0.8},
    "polynomial": {"function": "polynomial", "gamma": 0.5, "coef0": 1.0, "degree": 2},
    "cubic": {"function": "polynomial", "gamma": 1.0, "coef0": 0.0, "degree": 3},
    "cosine": {"function": "polynomial", "gamma": 0.5, "coef0": 0.5, "degree": 3, "normalise": True},
    "linear": {"function": "linear"},
}
LIMITS = {"polynomial": 6.0, "cubic": 3.0}
"""Of inputs, where kernel values grow with them."""


class Disagreement(AssertionError):
    """The product chose what the definitions do not allow."""


# ------------------------------------------------------------------------------------------------- random numbers


class WichmannHill:
    """Algorithm AS 183 (B. A. Wichmann, I. D. Hill, 1982), exactly."""

    def __init__(self, seeds: tuple[int, int, int]) -> None:
        self.seeds = seeds

    def draw(self) -> Fraction:
        a, b, c = self.seeds
        self.seeds = 171 * a % 30269, 172 * b % 30307, 170 * c % 30323
        a, b, c = self.seeds
        return (Fraction(a, 30269) + Fraction(b, 30307) + Fraction(c, 30323)) % 1

    def position(self, count: int) -> int:
        return int(self.draw() * count)


def first_seeds(seed: int) -> tuple[int, int, int]:
    """Where a spec's seed begins."""
    return 1 + seed % 30268, 1 + (seed // 30268 + 12345) % 30306, 1 + (seed * 7 + 6789) % 30322


# ----------------------------------------------------------------------------------------------------- the kernel


def plain_gram(function: str, gamma: float, coef0: float, degree: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """k of the rows of a and those of b, as its name says."""
    difference, product = a[:, None] - b[None], a @ b.T
    r = gamma * np.sqrt(np.sum(difference**2, axis=-1))
    if function == "gaussian":
        return np.asarray(np.exp(-gamma * np.sum(difference**2, axis=-1)))
    if function == "laplacian":
        return np.asarray(np.exp(-gamma * np.sum(np.abs(difference), axis=-1)))
    if function == "matern12":
        return np.asarray(np.exp(-r))
    if function == "matern32":
        return np.asarray((1 + r) * np.exp(-r))
    if function == "matern52":
        return np.asarray((1 + r + r * r / 3) * np.exp(-r))
    if function == "polynomial":
        return np.asarray((gamma * product + coef0) ** degree)
    assert function == "linear", function
    return np.asarray(product)


class Kernel:
    """The spec's kernel of scaled inputs, exactly; the product's has nothing below 2^-60."""

    def __init__(self, spec: Spec) -> None:
        kernel = spec.kernel
        assert kernel is not None
        gamma = kernel.gamma if kernel.sigma is None else 0.5 / kernel.sigma**2
        self.parameters = (kernel.function, gamma or 0.0, kernel.coef0, kernel.degree)
        self.normalise = kernel.normalise

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        k = plain_gram(*self.parameters, a, b)
        if self.normalise:
            norms = np.sqrt(np.outer(self._own(a), self._own(b)))
            k = np.divide(k, norms, out=np.zeros_like(k), where=norms > 0)
        return k

    def _own(self, a: np.ndarray) -> np.ndarray:
        return np.array([plain_gram(*self.parameters, row[None], row[None])[0, 0] for row in a])

    def own(self, a: np.ndarray) -> np.ndarray:
        """k(x, x) of each row."""
        return np.where(self._own(a) > 0, 1.0, 0.0) if self.normalise else self._own(a)

    def value(self, a: np.ndarray, b: np.ndarray) -> float:
        return float(self.gram(a[None], b[None])[0, 0])


# ------------------------------------------------------------------------------- definitions, from the maths alone


def residual_gram(kernel: Kernel, x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """R = K - K_:S K_SS^-1 K_S: over the rows of x."""
    if not len(vectors):
        return kernel.gram(x, x)
    cross = kernel.gram(x, vectors)
    return np.asarray(kernel.gram(x, x) - cross @ np.linalg.inv(kernel.gram(vectors, vectors)) @ cross.T)


def trace_residual(kernel: Kernel, x: np.ndarray, vectors: np.ndarray) -> float:
    """tr R over the rows of x."""
    own = kernel.own(x).sum()
    if not len(vectors):
        return float(own)
    cross = kernel.gram(x, vectors)
    return float(own - np.sum(cross * np.linalg.solve(kernel.gram(vectors, vectors), cross.T).T))


def losses(kernel: Kernel, x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """What the trace residual over the rows of x grows by if vector j is left out: sum_t (P_j. K_St)^2 / P_jj."""
    p = np.linalg.inv(kernel.gram(vectors, vectors))
    shares = p @ kernel.gram(vectors, x)
    return np.asarray((shares**2).sum(axis=1) / np.diag(p))


def greedy(
    kernel: Kernel, x: np.ndarray, n_max: int, rule: str, ald_threshold: float, tau: float = 0.0
) -> tuple[list[int], list[float]]:
    """FVS ("efvs") or rule 4.2 ("sgma") over all rows of x by trying each; and by what part each choice was ahead.

    The score of a candidate is the criterion itself: the mean relative error, or the trace, with it in the basis.
    """
    own = kernel.own(x)
    chosen: list[int] = []
    margins: list[float] = []
    while len(chosen) < n_max:
        r = residual_gram(kernel, x, x[chosen])
        delta = np.divide(np.diag(r), own, out=np.zeros(len(x)), where=own > 0)
        alive = [i for i in range(len(x)) if delta[i] > ald_threshold and i not in chosen]
        if delta.mean() <= tau or not alive:
            break
        weight = np.divide(1.0, own, out=np.zeros(len(x)), where=own > 0) if rule == "efvs" else np.ones(len(x))
        before = float(np.diag(r) @ weight)
        gains = np.array([before - np.diag(residual_gram(kernel, x, x[[*chosen, i]])) @ weight for i in alive])
        best = int(gains.argmax())
        others = [g for i, g in zip(alive, gains, strict=True) if not np.array_equal(x[i], x[alive[best]])]
        margins.append(float(1 - max(others) / gains[best]) if others else 1.0)
        chosen.append(alive[best])
    return chosen, margins


# ------------------------------------------------------------------------------------------------------ the model


@dataclass(frozen=True)
class Learned:
    """A basis and what was learned on its features z = L^-1 k_S(x): A w = b."""

    vectors: np.ndarray  # (n, D), scaled
    a: np.ndarray  # (n, n)
    b: np.ndarray  # (n, OUTPUTS)

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass
class Reservoir:
    """Samples that stand for all that came."""

    x: np.ndarray  # (rows, D), scaled
    y: np.ndarray  # (rows, OUTPUTS), targets
    seen: int = 0

    def __len__(self) -> int:
        return len(self.x)


def targets_of(label: Any, classes: int) -> np.ndarray:
    if not classes:
        return np.atleast_1d(np.asarray(label, float))
    if classes == 2:
        return np.array([1.0 if label == 1 else -1.0])
    return np.array([1.0 if label == o else -1.0 for o in range(classes)])


class Twin(Inputs):
    """A model of the rule "nystrom-rls"."""

    def __init__(self, spec: Spec) -> None:
        self.spec, real = spec, spec.real.dtype
        self.kernel = Kernel(spec)
        learning, basis = spec.learning, spec.basis
        self.method = basis.method if basis is not None else "stream"
        self.rho, self.points = (basis.candidates, basis.points) if basis is not None else (59, 59)
        self.tau, self.horizon = (basis.tau, basis.horizon) if basis is not None else (0.0, 0)
        self.horizon = max(self.horizon, learning.samples) if self.horizon else 0  # never fewer than its own rows
        self.ridge, self.beta = float(learning.ridge), float(learning.forgetting)
        self.rows, self.n_max = learning.samples, spec.capacities["N_MAX"]
        self.ald_threshold = float(spec.reduction.ald_threshold if spec.reduction.ald_threshold is not None else 1e-3)
        self.classes, self.outputs = len(spec.label.classes or ()), spec.outputs
        center, scale = spec.input.center, spec.input.scale
        self.center = np.zeros(spec.dim) if center is None else np.array(center, real).astype(float)
        self.scale = np.ones(spec.dim) if scale is None else np.array(scale, real).astype(float)
        self.restart(DONE)
        if self.method == "given":
            assert spec.expansion is not None
            self.model = self.fresh(np.array(spec.expansion.vectors, real).astype(float))

    # ---- what a model answers

    def fresh(self, vectors: np.ndarray) -> Learned:
        """Nothing learned on these vectors."""
        return Learned(vectors, self.ridge * np.eye(len(vectors)), np.zeros((len(vectors), self.outputs)))

    def factor_of(self, vectors: np.ndarray) -> np.ndarray:
        """L, K_SS = L L'."""
        return np.linalg.cholesky(self.kernel.gram(vectors, vectors))

    def features_of(self, x: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """z of one scaled input."""
        if not len(vectors):
            return np.zeros(0)
        return np.linalg.solve(self.factor_of(vectors), self.kernel.gram(vectors, x[None])[:, 0])

    def novelty(self, x: np.ndarray, vectors: np.ndarray) -> float:
        """delta of a scaled input: the part of it that is new."""
        own = self.kernel.value(x, x)
        if own <= 0:
            return 0.0
        if not len(vectors):
            return 1.0
        k = self.kernel.gram(vectors, x[None])[:, 0]
        return float(np.clip(1 - k @ np.linalg.inv(self.kernel.gram(vectors, vectors)) @ k / own, 0, 1))

    @property
    def weights(self) -> np.ndarray:
        return np.linalg.solve(self.model.a, self.model.b)

    def value(self, x: np.ndarray) -> np.ndarray:
        """f of an input as it comes, (OUTPUTS,)."""
        return np.asarray(self.features_of(self.scaled(x), self.model.vectors) @ self.weights)

    # ---- calls: what rounding allows the product to answer

    def restart(self, status: int) -> list[int]:
        """As before the first sample."""
        self.random = WichmannHill(first_seeds(self.spec.learning.seed))
        dim = self.spec.dim
        keep = getattr(self, "model", None)
        vectors = keep.vectors if self.method == "given" and keep is not None else np.zeros((0, dim))
        self.model = self.fresh(vectors)
        self.reservoir = Reservoir(np.zeros((0, dim)), np.zeros((0, self.outputs)))
        self.turn = 0
        return [DONE]

    def update(self, x: np.ndarray, label: Any, status: int, held: np.ndarray | None = None) -> list[int]:
        """Learn (x, label).  ``held``: the product's vectors afterwards, to follow it where rounding decides."""
        if not self.accepted(x):
            return [REFUSED_INPUT]
        if not self.known(label):
            return [REFUSED_LABEL]
        x, y = self.scaled(x), targets_of(label, self.classes)
        outcomes = [(DONE, self.model)]
        if self.method == "stream":
            outcomes = list(self._streamed(x, float(self.random.draw())))
        same = [model for code, model in outcomes if code == status and self._is(model, held)]
        if not same:
            raise Disagreement(
                f"status {status}, holding {None if held is None else held.tolist()}; allowed: "
                + " or ".join(f"{code}, holding {model.vectors.tolist()}" for code, model in outcomes)
            )
        self.model = self._taught(same[0], x, y)
        if self.method != "given":
            self._store(x, y)
        return [code for code, _ in outcomes]

    @staticmethod
    def _is(model: Learned, held: np.ndarray | None) -> bool:
        return held is None or (held.shape == model.vectors.shape and bool((held == model.vectors).all()))

    def _streamed(self, x: np.ndarray, u: float) -> Iterator[tuple[int, Learned]]:
        """What may become of the basis.  The first is what exact numbers give."""
        delta = self.novelty(x, self.model.vectors)
        # delta itself is known to rounding times the condition of the vectors
        n = len(self.model)
        blur = 1e-13
        if n:
            blur += 40 * np.finfo(float).eps * np.linalg.cond(self.kernel.gram(self.model.vectors, self.model.vectors))
        candidate = delta > self.ald_threshold and u < delta
        open_ = abs(delta - self.ald_threshold) <= blur or abs(u - delta) <= blur
        for answer in [candidate, not candidate] if open_ else [candidate]:
            if not answer:
                yield DONE, self.model
            elif n < self.n_max:
                yield ADDED, self.plus(self.model, x)
            elif len(self.reservoir) < self.rows:
                yield DONE, self.model
            else:
                loss = losses(self.kernel, self.reservoir.x, np.vstack([self.model.vectors, x]))
                close = np.flatnonzero(loss <= loss.min() * (1 + CLOSE) + 1e-13 * loss.max())
                for j in [int(loss.argmin()), *close.tolist()]:
                    if j == n:
                        yield DONE, self.model
                    else:
                        yield REPLACED, self.plus(self.without(self.model, j), x)

    def plus(self, model: Learned, x: np.ndarray) -> Learned:
        """One more vector: its feature was zero in all that was learned."""
        n = len(model)
        a = np.zeros((n + 1, n + 1))
        a[:n, :n], a[n, n] = model.a, self.ridge
        return Learned(np.vstack([model.vectors, x]), a, np.vstack([model.b, np.zeros((1, self.outputs))]))

    def without(self, model: Learned, j: int) -> Learned:
        """Least squares on the features that stay.

        k_S = L z; what is left of k_S has the features B z, B = L_left^-1 L_(all rows but j), with orthonormal rows.
        """
        left = [i for i in range(len(model)) if i != j]
        rows = self.factor_of(model.vectors)[left]
        b = np.linalg.solve(self.factor_of(model.vectors[left]), rows) if left else np.zeros((0, len(model)))
        return Learned(model.vectors[left], b @ model.a @ b.T, b @ model.b)

    def _taught(self, model: Learned, x: np.ndarray, y: np.ndarray) -> Learned:
        """Forgetting, the ridge of one coordinate, and the sample."""
        z = self.features_of(x, model.vectors)
        a, b = self.beta * model.a, self.beta * model.b
        if self.turn < len(model):
            a[self.turn, self.turn] += (1 - self.beta**self.n_max) * self.ridge
        self.turn = (self.turn + 1) % self.n_max
        return replace(model, a=a + np.outer(z, z), b=b + np.outer(z, y))

    def _store(self, x: np.ndarray, y: np.ndarray) -> None:
        kept = self.reservoir
        kept.seen += 1
        if len(kept) < self.rows:
            kept.x, kept.y = np.vstack([kept.x, x]), np.vstack([kept.y, y])
            return
        slot = self.random.position(min(kept.seen, self.horizon or kept.seen))
        if slot < self.rows:
            kept.x[slot], kept.y[slot] = x, y

    # ---- selection from the reservoir

    def select(self, status: int, held: np.ndarray | None = None) -> list[int]:
        """Choose the basis among the reservoir's rows, and learn these anew.  O(n M rho) kernel values, many times."""
        if not len(self.reservoir):
            return [TOO_FEW]
        chosen = self._chosen(held)
        if held is not None and not self._is(self.fresh(self.reservoir.x[chosen]), held):
            raise Disagreement(
                f"select holds {held.tolist()}; the definitions give {self.reservoir.x[chosen].tolist()}"
            )
        model, self.turn = self.fresh(self.reservoir.x[chosen]), 0
        # rows are in no order of time: all weigh the same
        z = np.array([self.features_of(x, model.vectors) for x in self.reservoir.x])
        self.model = replace(model, a=model.a + z.T @ z, b=model.b + z.T @ self.reservoir.y)
        return [DONE]

    def _chosen(self, held: np.ndarray | None) -> list[int]:
        x, chosen = self.reservoir.x, list[int]()
        own = self.kernel.own(x)
        weight = np.divide(1.0, own, out=np.zeros(len(x)), where=own > 0) if self.method == "efvs" else np.ones(len(x))
        alive = list(range(len(x)))
        while len(chosen) < self.n_max:
            r = residual_gram(self.kernel, x, x[chosen])
            delta = np.divide(np.diag(r), own, out=np.zeros(len(x)), where=own > 0)
            alive = [i for i in alive if delta[i] > self.ald_threshold]
            if delta.mean() <= self.tau or not alive:
                break
            candidates = self.drawn(alive, self.rho)
            points = self.drawn(list(alive), self.points) if self.method == "efvs" else list(range(len(x)))
            scores = [float(np.sum(r[points, c] ** 2 * weight[points]) / r[c, c]) for c in candidates]
            best = candidates[int(np.argmax(scores))]
            if held is not None and len(chosen) < len(held):
                equal = [c for c, s in zip(candidates, scores, strict=True) if s >= max(scores) * (1 - CLOSE)]
                best = next((c for c in equal if (x[c] == held[len(chosen)]).all()), best)
            chosen.append(best)
        return chosen

    def drawn(self, alive: list[int], count: int) -> list[int]:
        """So many of the living, by a partial Fisher-Yates shuffle in place; if there are no more all, without a draw."""
        if len(alive) > count:
            for i in range(count):
                j = i + self.random.position(len(alive) - i)
                alive[i], alive[j] = alive[j], alive[i]
        return alive[:count]

    # ---- questions

    def _question(self, x: np.ndarray, status: int) -> list[int]:
        return [DONE if self.accepted(x) else REFUSED_INPUT]

    predict = classify = features = residual = _question

    def answer(self, name: str, x: np.ndarray) -> np.ndarray:
        """What a question writes; of ``classify`` the class."""
        scaled = self.scaled(x)
        if name == "residual":
            return np.array([self.novelty(scaled, self.model.vectors)])
        if name == "features":
            z = np.zeros(self.n_max)
            z[: len(self.model)] = self.features_of(scaled, self.model.vectors)
            return z
        f = self.value(x)
        if name == "classify":
            return np.array([int(f[0] > 0) if len(f) == 1 else int(np.argmax(f))])
        return f

    def rounding(self) -> float:
        """What float64 may lose of predictions, relative to the largest label: by the condition of what is solved."""
        if not len(self.model):
            return 1e-12
        condition = np.linalg.cond(self.model.a) + np.linalg.cond(
            self.kernel.gram(self.model.vectors, self.model.vectors)
        )
        return float(1e3 * np.finfo(float).eps * condition)
