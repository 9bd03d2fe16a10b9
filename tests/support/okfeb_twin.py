"""Online feature extraction on a budget (rule "okfeb") by its definitions, in float64: slow, meant to be trusted by reading it.

All vectors are kept as rows, the Gram matrix is computed anew for each sample, and nothing is updated by a formula of
its own: G = A'KA, P = K^-1, e2 = |phi - L q|^2 multiplied out, each update as what it does to L = Phi A in function space,
each removal as a least-squares problem in an explicit feature space, for every candidate.  The ridge head solves its
normal equations from scratch.  Where a choice hangs on rounding, ``Tie`` is raised, and whoever follows stops there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pykernel.spec.model import Spec
from tests.support.nystrom_twin import Kernel, targets_of

DONE, ADDED, REPLACED, CENSORED = range(4)
REFUSED_INPUT, REFUSED_LABEL = -1, -2
CLOSE = 1e-7
"""Relative difference below which a choice between two numbers is a matter of rounding."""
ETA = {"constant": 1.0, "normalised": 0.5, "decreasing": 8.0, "averaged": 8.0}


def moved(threshold: float, change: float) -> float:
    """The threshold whose odds t / (1 - t) are so many times those of this one, from 2^-20 to 2^20."""
    odds = float(np.clip(threshold / (1 - threshold) * change, 2.0**-20, 2.0**20))
    return odds / (1 + odds)


def bounded(threshold: float) -> float:
    """The threshold nearest to this that may be."""
    return float(np.clip(threshold, 1 / (1 + 2.0**20), 2.0**20 / (1 + 2.0**20)))


class Tie(Exception):
    """Rounding decides what is to be done next."""


def apart(a: float, b: float, scale: float) -> None:
    """Raise Tie if a and b differ by rounding; equal numbers that are exact (zeros) do not."""
    if a != b and abs(a - b) <= CLOSE * max(abs(a), abs(b)) + 1e-12 * scale:
        raise Tie(f"{a!r} and {b!r}")


def features_of(gram: np.ndarray) -> np.ndarray:
    """F with F F' = gram: rows are explicit feature vectors of the same inner products."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def projected(f: np.ndarray, y: np.ndarray, gone: int) -> tuple[np.ndarray, float]:
    """argmin over A of |F'_-gone A - F' y|^2, with a zero row for the one that is gone, and the minimum."""
    left = [i for i in range(len(f)) if i != gone]
    a = np.zeros_like(y)
    if left:
        a[left] = np.linalg.lstsq(f[left].T, f.T @ y, rcond=None)[0]
    return a, float(np.sum((f.T @ (y - a)) ** 2))


def upper_factor(g: np.ndarray, least: float = 2.0**-40) -> np.ndarray:
    """R, R'R = G, upper triangular; a coordinate that those before it say all of has a zero row."""
    n = len(g)
    r = np.zeros((n, n))
    for i in range(n):
        if 0 < g[i, i] <= 1e-12 * np.trace(g):
            raise Tie("a column of L that is next to nothing")
        pivot = g[i, i] - r[:i, i] @ r[:i, i]
        if g[i, i] > 0:
            apart(pivot, least * g[i, i], g[i, i])
        if not (pivot > least * g[i, i]):
            continue
        r[i, i:] = (g[i, i:] - r[:i, i] @ r[:i, i:]) / np.sqrt(pivot)
    return r


@dataclass
class RidgeHead:
    """min sum f^age |y - w'(z, 1)|^2 + ridge |w|^2; where samples fade, one coordinate's ridge is refilled in turn."""

    size: int  # with the bias
    outputs: int
    ridge: float
    forgetting: float
    turn: int = 0
    a: np.ndarray = field(init=False)
    b: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.a, self.b = self.ridge * np.eye(self.size), np.zeros((self.size, self.outputs))

    def learn(self, z: np.ndarray, y: np.ndarray) -> None:
        f = self.forgetting
        self.a, self.b = f * self.a, f * self.b
        if f < 1:
            self.a[self.turn, self.turn] += (1 - f**self.size) * self.ridge
            self.turn = (self.turn + 1) % self.size
        one = np.append(z, 1.0)
        self.a, self.b = self.a + np.outer(one, one), self.b + np.outer(one, y)

    @property
    def weights(self) -> np.ndarray:
        """(size, outputs)."""
        return np.linalg.solve(self.a, self.b)


@dataclass
class LogisticHead:
    """Gradient steps on the negative log-likelihood of each sample, and its share of the ridge."""

    size: int
    classes: int
    ridge: float
    eta: float
    weights: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.weights = np.zeros((self.size, 1 if self.classes == 2 else self.classes))

    def probability(self, z: np.ndarray) -> np.ndarray:
        f = self.weights.T @ np.append(z, 1.0)
        if self.classes == 2:
            f = np.array([0.0, f[0]])
        e = np.exp(f - f.max())
        return np.asarray(e / e.sum())

    def learn(self, z: np.ndarray, label: int, samples: float) -> None:
        one, p, target = np.append(z, 1.0), self.probability(z), np.eye(self.classes)[label]
        error = (p - target)[1:] if self.classes == 2 else p - target
        step = self.eta * (4 if self.classes == 2 else 2) / (z @ z + 1)
        keep = max(0.0, 1 - step * self.ridge / samples)
        self.weights = keep * self.weights - step * np.outer(one, error)


@dataclass
class Seen:
    """What step 1 finds of a sample."""

    x: np.ndarray
    own: float  # k(x, x)
    k: np.ndarray
    q: np.ndarray
    e2: float
    g: np.ndarray

    @property
    def z(self) -> np.ndarray:
        return np.asarray(upper_factor(self.g) @ self.q)

    @property
    def score(self) -> float:
        return float(np.clip(self.e2 / self.own, 0, 1)) if self.own > 0 else 0.0


class Twin:
    """A model of the rule "okfeb"."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.kernel, s, real = spec, Kernel(spec), spec.subspace, spec.real.dtype
        self.rank_most, self.budget = spec.learning.features, spec.capacities["N_MAX"]
        self.shrinkage, self.window = float(s.shrinkage), s.window
        self.step = s.step or ("normalised" if s.update in ("nonparametric", "hybrid") else "constant")
        self.unit = bool(spec.kernel.normalise or spec.kernel.function not in ("polynomial", "linear"))
        self.eta = ETA[self.step] if s.eta is None else float(s.eta)
        self.ald_threshold = (
            1e-2 if spec.reduction.ald_threshold is None or s.budget == "drop" else float(spec.reduction.ald_threshold)
        )
        self.classes = len(spec.label.classes or ()) if spec.label_kind != "none" else 0
        self.outputs = spec.outputs
        center, scale = spec.input.center, spec.input.scale
        self.center = np.zeros(spec.dim) if center is None else np.array(center, real).astype(float)
        self.scale = np.ones(spec.dim) if scale is None else np.array(scale, real).astype(float)
        self.begun: Counter[tuple[str, bool]] = Counter()
        """Why columns of L started again, and whether the sample was stored."""
        self.restart(DONE)

    def restart(self, status: int = DONE) -> list[int]:
        spec, r = self.spec, self.rank_most
        self.v, self.a = np.zeros((0, spec.dim)), np.zeros((0, r))
        self.claim = np.zeros(0)
        self.rank = self.seen = 0
        self.s = np.zeros((r, r))
        self.sum = self.known_part = 0.0
        self.strange = 0
        self.examined, self.looks, self.use = 0, 0, 0.0
        self.censor_threshold = 0.0
        self.head: RidgeHead | LogisticHead | None = None
        if spec.label_kind != "none":
            learning = spec.learning
            if spec.subspace.head == "logistic":
                self.head = LogisticHead(r + 1, self.classes, learning.ridge, learning.eta)
            else:
                self.head = RidgeHead(r + 1, self.outputs, learning.ridge, learning.forgetting)
        return [DONE]

    def refresh(self, status: int = DONE) -> list[int]:
        return [DONE]

    # ---- what there is, by definition

    @property
    def gram(self) -> np.ndarray:
        """K, (m, m)."""
        return self.kernel.gram(self.v, self.v)

    @property
    def g(self) -> np.ndarray:
        """G = L'L, (r, r)."""
        return np.asarray(self.a.T @ self.gram @ self.a)

    @property
    def inverse(self) -> np.ndarray:
        return np.linalg.inv(self.gram)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        return (np.asarray(x, float) - self.center) * self.scale

    def look(self, x: np.ndarray) -> Seen:
        """Step 1 for a scaled input."""
        own = self.kernel.value(x, x)
        k = self.kernel.gram(self.v, x[None])[:, 0]
        g, v = self.g, self.a.T @ k
        q = np.linalg.solve(g + self.shrinkage * np.eye(self.rank_most), v)
        return Seen(x, own, k, q, own - 2 * v @ q + q @ g @ q, g)

    def samples(self) -> float:
        """What the ridge is shared among."""
        return float(max(1, min(self.seen, self.window) if self.window else self.seen))

    # ---- calls

    def accepted(self, x: np.ndarray) -> bool:
        limit = self.spec.real.dtype.type(self.spec.input.max_abs)
        return all(np.isfinite(value) and abs(value) <= limit for value in x)

    def known(self, label: Any) -> bool:
        if label is None:
            return True
        if self.classes:
            return 0 <= label < self.classes
        limit = self.spec.real.dtype.type(self.spec.label.max_abs)
        return all(np.isfinite(value) and abs(value) <= limit for value in np.atleast_1d(label))

    def update(self, x: np.ndarray, label: Any = None, status: int = DONE) -> list[int]:
        """Learn one sample; the status."""
        if not self.accepted(x):
            return [REFUSED_INPUT]
        if not self.known(label):
            return [REFUSED_LABEL]
        sample = self.look(self.scaled(x))
        self.seen = min(self.seen + 1, 2**22)
        self.claim = np.maximum(self.claim * self.spec.subspace.fading, 2.0**-60)
        found = self._learn(sample)
        if self.head is not None:
            self._teach(sample.z, label)
        return [found]

    def _teach(self, z: np.ndarray, label: Any) -> None:
        if isinstance(self.head, LogisticHead):
            self.head.learn(z, label, self.samples())
        elif self.head is not None:
            self.head.learn(z, targets_of(label, self.classes))

    def _learn(self, sample: Seen) -> int:
        """Steps 4 to 8."""
        s, m = self.spec.subspace, len(self.v)
        vectors = np.vstack([self.v, sample.x])
        gram = self.kernel.gram(vectors, vectors)
        f = features_of(gram)
        if self.rank < self.rank_most:
            return self._start(sample, vectors, f)
        self._wonder(sample.score)
        idle = sample.own > 0 and self._examine(sample)
        if self._censors(sample.score, m):
            return CENSORED
        if sample.own <= 0:
            return DONE
        # the distance to the span of all vectors
        d = float(projected(f, np.eye(m + 1)[:, [m]], m)[1]) if m else sample.own
        stored = True
        if s.budget == "exact":
            apart(d, self.ald_threshold * sample.own, sample.own)
            stored = d >= self.ald_threshold * sample.own and sample.own > 0
        y = self._restarted(sample, gram, stored, d, idle)
        if y is None:
            y = self._stepped(sample, gram, stored)
        if np.trace(y.T @ gram @ y) > 2.0**40 * self.shrinkage:
            raise Tie("G is as large as it may become")
        claims = np.append(self.claim, 1.0)
        if stored and m < self.budget:
            self.v, self.a, self.claim = vectors, y, claims
            return ADDED
        if not stored:
            self.a = projected(f, y, m)[0][:m]
            return DONE
        if s.budget == "exact":
            all_left = [projected(f, y, j) for j in range(m + 1)]
        else:
            all_left = [(y * (np.arange(m + 1) != j)[:, None], gram[j, j] * float(y[j] @ y[j])) for j in range(m + 1)]
        costs = np.array([c * lost for c, (_, lost) in zip(claims, all_left, strict=True)])
        least = int(costs.argmin())
        for j in range(m + 1):
            if j != least:
                apart(costs[j], costs[least], costs.max())
        a = all_left[least][0]
        if least == m:
            self.a = a[:m]
            return DONE
        if s.budget == "exact":  # in the order in which they came
            rows = [*(j for j in range(m) if j != least), m]
        else:
            rows = [j if j != least else m for j in range(m)]
        self.v, self.a, self.claim = vectors[rows], a[rows], claims[rows]
        return REPLACED

    def _start(self, sample: Seen, vectors: np.ndarray, f: np.ndarray) -> int:
        """Step 4: the first samples that those before them do not express are vectors, and columns of L of length 1.

        Of the others the columns that there are learn what the vectors express.
        """
        m = len(self.v)
        # one by one (Gram-Schmidt): what the span of those before leaves over
        shares = np.linalg.lstsq(f[:m].T, f[m], rcond=None)[0]
        rest = f[m] - f[:m].T @ shares
        d = float(rest @ rest)
        apart(d, self.ald_threshold * sample.own, sample.own)
        if not d > self.ald_threshold * sample.own:
            if self.spec.subspace.budget == "exact" and m and sample.own > 0:
                gram = f @ f.T
                self.a = projected(f, self._stepped(sample, gram, False), m)[0][:m]
            return DONE
        column = np.append(-shares, 1.0) / np.sqrt(d)
        self.a = np.vstack([self.a, np.zeros(self.rank_most)])
        self.a[:, self.rank] = column
        self.v, self.claim, self.rank = vectors, np.append(self.claim, 1.0), self.rank + 1
        return ADDED

    def _censors(self, score: float, m: int) -> bool:
        """Step 5."""
        s = self.spec.subspace
        if s.insensitivity > 0:
            apart(score, s.insensitivity, 1.0)
        if score < s.insensitivity:
            return True
        if s.censoring == 0 or m < self.budget:
            return False
        if self.censor_threshold == 0:
            self.censor_threshold = bounded(score)
            return False
        apart(score, self.censor_threshold, 1.0)
        below = score <= self.censor_threshold
        change = np.exp(-0.05 * (1 - s.censoring)) if below else np.exp(0.05 * s.censoring)
        self.censor_threshold = moved(self.censor_threshold, change)
        return below

    def _wonder(self, score: float) -> None:
        """Count samples in a row that L expresses nothing of, where that is unusual."""
        apart(score, 0.95, 1.0)
        apart(self.known_part, 0.2, 1.0)
        self.strange = min(self.strange + 1, 8) if score > 0.95 and self.known_part > 0.2 else 0
        self.known_part += (1 - score - self.known_part) / self.samples()

    def _examine(self, sample: Seen) -> bool:
        """Whether the examined column is idle: without it, 256 samples are hardly worse expressed."""
        j, eye = self.examined, self.shrinkage * np.eye(self.rank_most)
        only = sample.q[j] ** 2 / np.linalg.inv(sample.g + eye)[j, j] / sample.own
        self.use += min(only, 1.0)
        apart(self.use, 0.25, 1.0)
        if self.looks < 256:
            self.looks += 1
        elif self.use > 0.25:
            self._examine_next()
        return self.looks == 256 and self.use <= 0.25

    def _examine_next(self) -> None:
        self.examined, self.looks, self.use = (self.examined + 1) % self.rank_most, 0, 0.0

    def _restarted(self, sample: Seen, gram: np.ndarray, stored: bool, d: float, idle: bool) -> np.ndarray | None:
        """A with a row for the sample, if a column of L is to start again, with what the others leave over of the sample.

        One that is nothing, or where a new regime has begun the one that counts least in (G + lambda I)^-1, or one that
        is idle.
        """
        left = sample.e2 if stored else sample.e2 - d
        squares, least = np.diag(sample.g), 2.0**-20 * self.shrinkage
        for value in squares:
            apart(float(value), least, 1e-2 * least)
        dead = bool((squares <= least).any())
        if idle and not dead:
            apart(sample.score, 2.0**-6, 1.0)
            idle = sample.score > 2.0**-6
        if not (dead or idle or self.strange == 8):
            return None
        apart(left, self.ald_threshold * sample.own, sample.own)
        if not left > self.ald_threshold * sample.own:
            return None
        column = int(np.argmax(squares <= least)) if dead else self.examined
        self.begun["new" if self.strange == 8 else "dead" if dead else "idle", stored] += 1
        if self.strange == 8:
            counts = np.diag(np.linalg.inv(sample.g + self.shrinkage * np.eye(self.rank_most)))
            column = int(counts.argmax())
            for j in range(self.rank_most):
                if j != column:
                    apart(counts[j], counts[column], 0.0)
        self.strange = 0
        if column == self.examined:
            self._examine_next()
        q = sample.q.copy()
        q[column] = 0
        rest = np.append(-self.a @ q, 1.0)
        y = np.vstack([self.a, np.zeros(self.rank_most)])
        y[:, column] = rest * np.sqrt(max(float(squares.mean()), self.shrinkage) / (rest @ gram @ rest))
        self.s[column] = self.s[:, column] = 0
        return y

    def _stepped(self, sample: Seen, gram: np.ndarray, stored: bool) -> np.ndarray:
        """A with a row for the sample, (m + 1, r): what the update makes of L, before anything goes."""
        s, q, m = self.spec.subspace, sample.q, len(self.v)
        old = np.vstack([self.a, np.zeros(self.rank_most)])
        one = np.eye(m + 1)[m]
        if s.update == "rls":
            eye = self.shrinkage * np.eye(self.rank_most)
            new = s.forgetting * self.s + np.outer(q, q)
            right = s.forgetting * old @ (self.s + eye) + np.outer(one, q)
            self.s = new
            return np.asarray(np.linalg.solve(new + eye, right.T).T)
        rho = self.shrinkage / self.samples()
        square = float(q @ q) + rho
        if self.step == "averaged":
            self.sum *= 1 - 1 / self.window
        if self.step in ("decreasing", "averaged"):
            self.sum += square
        most = 1.99 / square
        if self.step == "constant":
            mu = self.eta * 4 * self.shrinkage / sample.own if sample.own > 0 else most
        else:
            mu = self.eta / (square if self.step == "normalised" else self.sum)
        mu = min(mu, most)
        # what the ridge takes of L: a sample far from L has the longest steps, and must not make it lose L
        loss = min(mu * rho, 0.5)
        if self.step != "constant" or not self.unit:
            loss = min(loss, 1 / self.samples())
        if s.update == "parametric":
            return (1 - loss) * old + mu * np.outer(one - old @ q, q)
        # on A: rows of what is kept
        rows = m + 1 if stored else m
        k, there = gram[:rows, m], gram[:rows, :rows]
        xi = np.abs(there).sum(axis=1).max(initial=0.0)
        y = old.copy()
        if xi <= 0:
            return y
        slope = np.outer(k - there @ (old[:rows] @ q), q)  # Phi'(phi - L q) q'
        if s.update == "hybrid":
            y[:rows] = (1 - loss) * old[:rows] + mu / xi * slope
        else:
            y[:rows] = old[:rows] + (mu * slope - loss * there @ old[:rows]) / xi
        return y

    # ---- questions

    def answer(self, name: str, x: np.ndarray) -> np.ndarray:
        """What a question writes; of ``classify`` the class."""
        sample = self.look(self.scaled(x))
        if name == "novelty":
            return np.array([sample.score])
        if name == "features":
            return sample.z
        assert self.head is not None
        if name == "probability":
            assert isinstance(self.head, LogisticHead)
            return self.head.probability(sample.z)
        f = self.head.weights.T @ np.append(sample.z, 1.0)
        if name == "classify":
            return np.array([int(f[0] > 0) if len(f) == 1 else int(np.argmax(f))])
        return np.asarray(f)
