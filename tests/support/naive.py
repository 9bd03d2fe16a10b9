"""Paper 003 and the rules beside it by their definitions, in float64: slow, and meant to be trusted by reading it.

Nothing is cached and nothing is updated: Gram matrices are written out, every candidate is removed in turn, and the
multipliers that stay are solved for.  Where two choices are equal but for rounding, the twin accepts the product's
and follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.algorithms.online.klms import KLMS
from pykernel.algorithms.online.state import SEARCHES
from pykernel.spec.families.online import ridge_of
from pykernel.spec.model import Spec

CLOSE = 1e-9
"""Relative difference below which a choice between two numbers is a matter of rounding."""
TINY = 2.0**-100
OWN_PROJECTION = {
    "nt": "none",
    "at": "none",
    "klms": "klms",
    "mklms": "klms",
    "sup": "klms",
    "ls": "ls",
    "lsreg": "ls",
    "lsridge": "lsridge",
    "fklms": "bounded",
    "fmklms": "bounded",
    "afklms": "bounded",
    "afmklms": "bounded",
}
PROJECTIONS = ("none", "klms", "fklms", "bounded", "ls", "lsridge")
"""What ``_projected`` knows.  OWN_PROJECTION and this are the twin's own; tests/test_registries.py compares the names."""
INVERSE = {"klms", "mklms", "sup", "ls", "lsreg"}
"""Metrics and projections for which (K + ridge I)^-1 is kept."""
RADIAL = ("gaussian", "laplacian", "matern12", "matern32", "matern52", "rational-quadratic")
"""Kernels of a - b, with k(x, x) = 1."""
KERNELS = (*RADIAL, "polynomial", "linear")
RULES = ("klms", "qklms", "krls-t", "fb-krls", "sw-krls", "ald-krls", "knlms")


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Squared distances between the rows of a and those of b."""
    return np.asarray(np.sum((a[:, None] - b[None]) ** 2, axis=-1))


def kernels(a: np.ndarray, b: np.ndarray, sigma: float) -> np.ndarray:
    """Eq. 15 for the rows of a and those of b, and nothing below 2^-60; with a = b, the Gram matrix of eq. 7."""
    k = np.exp(-distances(a, b) / (2 * sigma**2))
    return np.where(k >= 2.0**-60, k, 0.0)


def kernel_values(spec: Spec, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The spec's k between the rows of a and those of b, written out; nothing below 2^-60 of those that fade."""
    kernel = spec.kernel
    assert kernel is not None
    gamma = kernel.gamma if kernel.gamma is not None else 0.0
    if kernel.function == "gaussian":
        return kernels(a, b, float(kernel.sigma) if kernel.sigma is not None else np.sqrt(0.5 / gamma))
    if kernel.function == "laplacian":
        k = np.exp(-gamma * np.abs(a[:, None] - b[None]).sum(-1))
        return np.where(k >= 2.0**-60, k, 0.0)
    if kernel.function == "rational-quadratic":
        k = (1 + gamma * distances(a, b)) ** -kernel.alpha
        return np.where(k >= 2.0**-60, k, 0.0)
    if kernel.function == "matern12":
        k = np.exp(-gamma * np.sqrt(distances(a, b)))
        return np.where(k >= 2.0**-60, k, 0.0)
    if kernel.function in ("matern32", "matern52"):
        r = gamma * np.sqrt(distances(a, b))
        k = (1 + r + (r * r / 3 if kernel.function == "matern52" else 0.0)) * np.exp(-r)
        return np.where(np.exp(-r) >= 2.0**-60, k, 0.0)
    product = np.einsum("id,jd->ij", a, b)
    k = {"polynomial": (gamma * product + kernel.coef0) ** kernel.degree, "linear": product}[kernel.function]
    if kernel.normalise:
        root = np.sqrt(np.outer(*(np.diagonal(kernel_values_plain(spec, v)) for v in (a, b))))
        return np.divide(k, root, out=np.zeros_like(k), where=root > 0)
    return np.asarray(k)


def kernel_values_plain(spec: Spec, a: np.ndarray) -> np.ndarray:
    """The same before it is normalised, of one set with itself."""
    assert spec.kernel is not None
    return kernel_values(spec.model_copy(update={"kernel": spec.kernel.model_copy(update={"normalise": False})}), a, a)


def at_most(a: float, bound: float, fuzz: float = 1e-12) -> list[bool]:
    """Whether a <= bound; both answers where rounding decides, what the numbers say first."""
    answer = a <= bound
    return [answer, not answer] if abs(a - bound) <= CLOSE * abs(bound) + fuzz else [answer]


def settled(a: np.ndarray) -> np.ndarray:
    """Multipliers as they are stored."""
    return np.where(np.abs(a) < TINY, 0.0, a)


class Disagreement(AssertionError):
    """The product chose what the definitions do not allow."""


@dataclass(frozen=True)
class Model:
    """An expansion: vectors (n, DIM), multipliers (n, OUTPUTS), presentations since each vector came or was repeated.

    ``claim`` is each vector's claim to stay: 4 where a sample is, less the farther the last ones were.

    ``values`` and ``spread`` are what the recursive rules keep, as their papers write it: the mean and covariance of
    the function at the vectors (krls-t), the stored labels (fb-krls), P (ald-krls).
    """

    v: np.ndarray
    alpha: np.ndarray
    age: np.ndarray
    claim: np.ndarray
    values: np.ndarray
    spread: np.ndarray

    def __len__(self) -> int:
        return len(self.v)

    def take(self, positions: list[int]) -> Model:
        return Model(
            self.v[positions],
            self.alpha[positions],
            self.age[positions],
            self.claim[positions],
            self.values[positions],
            self.spread[np.ix_(positions, positions)],
        )

    def plus(self, x: np.ndarray, alpha: np.ndarray) -> Model:
        """One more vector, the newest, of age 0; what the rule keeps of it is for the rule to say."""
        n = len(self)
        spread = np.zeros((n + 1, n + 1))
        spread[:n, :n] = self.spread
        return Model(
            np.vstack([self.v, x]),
            np.vstack([self.alpha, alpha]),
            np.append(self.age, 0),
            np.append(self.claim, 4.0),
            np.vstack([self.values, np.zeros(len(alpha))]),
            spread,
        )


Status: Any = KLMS["real"].status
Outcome = tuple[IntEnum, Model]


class Twin:
    """A model of the spec's technique, rule and strategy."""

    def __init__(self, spec: Spec) -> None:
        reduction, learning = spec.reduction, spec.learning
        self.rule = learning.rule
        self.metric = reduction.technique
        self.projection = reduction.projection or OWN_PROJECTION[reduction.technique]
        if self.rule == "sw-krls":
            self.metric, self.projection = "at", "klms"
        if self.rule == "knlms":
            self.metric, self.projection = "nt", "none"
        assert spec.kernel is not None
        for name, known in (
            (self.rule, RULES), (self.metric, OWN_PROJECTION), (self.projection, PROJECTIONS), (spec.kernel.function, KERNELS),
        ):  # fmt: skip
            assert name in known, f"the twin in {__file__} has no definition of {name}"
        self.spec, self.function = spec, spec.kernel.function
        self.gaussian, self.radial = self.function == "gaussian", self.function in RADIAL
        self.unit = self.radial or spec.kernel.normalise
        self.sigma = spec.length_scale if self.gaussian else 0.0
        self.ridge, self.n_max = ridge_of(spec), reduction.n_max
        self.eta, self.rho, self.step_limit = learning.eta, learning.rho, learning.step_limit
        self.coherence, self.epsilon = learning.coherence, learning.epsilon
        self.quantisation, self.forgetting, self.noise = learning.quantisation, learning.forgetting, learning.noise
        self.has_inverse = bool({self.metric, self.projection} & INVERSE) or "krls" in self.rule
        self.has_ridge = self.has_inverse or "lsridge" in (self.metric, self.projection)
        self.ald_threshold = reduction.ald_threshold if reduction.ald_threshold is not None else 2 * self.ridge
        self.penalty = reduction.penalty
        self.mu = self.penalty * (self.n_max + 1) / self.n_max  # fixed: what eq. 20 has at N_MAX + 1 candidates
        self.when, self.newest_only = reduction.when, reduction.candidates == "newest"
        self.fading, self.relabel = reduction.fading, learning.relabel
        self.lambda_max, self.removals, self.tie = reduction.lambda_max, reduction.removals, reduction.tie
        self.below, self.old = reduction.truncate_below, reduction.truncate_age
        self.classes = len(spec.label.classes) if spec.label.classes is not None else 0
        self.outputs = spec.outputs
        self.label_max_abs = 1.0 if self.classes else spec.label.max_abs
        self.alpha_limit = float(spec.config.alpha_limit)
        self.noise_least = 1e-4 if spec.precision == "float32" else 1e-10
        self.power, self.weight = 0.0, 0.0  # krls-t: mean squared standardised error, and of how many
        empty = np.zeros((0, self.outputs))
        self.nearest_one = 0  # which vector is taken for the nearest
        nobody = np.zeros(0)
        self.empty = self.model = Model(
            np.zeros((0, spec.dim)), empty, np.zeros(0, int), nobody, empty, np.zeros((0, 0))
        )

    # ---- what a model answers

    def gram(self, model: Model) -> np.ndarray:
        """K, and the ridge wherever a Gram matrix is inverted: so much of each k(v, v)."""
        ridge = self.ridge if self.has_ridge else 0.0
        k = kernel_values(self.spec, model.v, model.v)
        return k + ridge * np.diag(np.diagonal(k))

    def kernels(self, model: Model, x: np.ndarray) -> np.ndarray:
        return np.asarray(kernel_values(self.spec, x[None], model.v)[0])

    def power_of(self, x: np.ndarray) -> float:
        """k(x, x)."""
        return 1.0 if self.unit else float(kernel_values(self.spec, x[None], x[None])[0, 0])

    def norms(self, v: np.ndarray) -> np.ndarray:
        """sqrt(k(v, v)) of each row, (n, 1)."""
        return np.sqrt([self.power_of(row) for row in v]).reshape(-1, 1)

    def is_nothing(self, x: np.ndarray) -> bool:
        """Whether the kernel takes a sample for zero."""
        return not self.radial and not kernel_values_plain(self.spec, x[None])[0, 0] > 2.0**-500

    def normalised(self, model: Model) -> Model:
        """The expansion of k / sqrt(k k) that f / sqrt(k) is: what reduction weighs."""
        return replace(model, alpha=model.alpha * self.norms(model.v))

    def normal_gram(self, model: Model) -> np.ndarray:
        norms = self.norms(model.v)
        return np.asarray(self.gram(model) / (norms * norms.T))

    def noise_at(self, x: np.ndarray) -> float:
        return self.noise if self.unit else max(self.noise, self.noise_least * self.power_of(x))

    def value(self, model: Model, x: np.ndarray) -> np.ndarray:
        """Eq. 1, (OUTPUTS,)."""
        return np.asarray(self.kernels(model, x) @ model.alpha)

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.value(self.model, x)

    def classify(self, x: np.ndarray) -> int:
        f = self.predict(x)
        return int(f[0] > 0) if len(f) == 1 else int(np.argmax(f))

    def novelty(self, x: np.ndarray, model: Model | None = None) -> float:
        """What stored vectors leave over of the sample: with a Gram matrix all of them, else the nearest."""
        model = self.model if model is None else model
        if self.is_nothing(x):
            return 0.0
        if not len(model):
            return 1.0 + (self.ridge if self.has_inverse else 0.0)
        if self.has_inverse:
            k, own = self.kernels(model, x), self.power_of(x)
            return float((own * (1 + self.ridge) - k @ np.linalg.solve(self.gram(model), k)) / own)
        nearest = self.distances(model, x).min()
        return float(-np.expm1(-nearest / self.sigma**2) if self.gaussian else nearest * (2 - nearest))  # 1 - k^2

    def variance(self, x: np.ndarray) -> float:
        """KRLS-T's predictive variance of the next label (Van Vaerenbergh et al. 2012, eq. 19 and 25)."""
        model = self._forgetful(self.model)
        k = self.kernels(model, x)
        q = np.linalg.solve(self.gram(model), k)
        power = self.power / self.weight if self.weight else self.label_max_abs**2
        own = self.power_of(x)
        return float((self.noise_at(x) + own * (1 + self.ridge) - k @ q + q @ model.spread @ q) * power)

    def distances(self, model: Model, x: np.ndarray) -> np.ndarray:
        """Squared ones for the Gaussian kernel; 1 - |cos| of the angle in the kernel's space for others."""
        if self.gaussian:
            return np.asarray(distances(x[None], model.v)[0])
        cosine = np.abs(self.kernels(model, x)) / (self.norms(model.v)[:, 0] * np.sqrt(self.power_of(x)))
        return np.where((model.v == x).all(1), 0.0, 1 - np.minimum(cosine, 1.0))

    def nearest(self, model: Model, x: np.ndarray) -> list[int]:
        """The nearest vector, and others that rounding may take for it."""
        distance = self.distances(model, x)
        first = int(distance.argmin())
        return [first] + [i for i in np.flatnonzero(distance - distance[first] <= self.fuzz) if i != first]

    @property
    def fuzz(self) -> float:
        """Rounding of 1 - |cos|; squared distances are exact."""
        return 0.0 if self.gaussian else 1e-13

    # ---- one presentation

    def update(
        self,
        x: np.ndarray,
        label: object,
        status: int | None = None,
        held: tuple[np.ndarray, np.ndarray] | None = None,
        age: np.ndarray | None = None,
    ) -> IntEnum:
        """Learn (x, label).  The product's answer was ``status``, and it now holds vectors and multipliers (v, alpha).

        ``age``: how old its vectors are, if it knows.

        Raises Disagreement if the definitions allow no such answer with these vectors.  Without an answer the twin
        goes by itself.
        """
        outcomes = list(self._presented(x, label))
        if status is None or held is None:
            chosen, model = outcomes[0]
        else:
            same = []
            for allowed, model in outcomes:
                order = self._order(model, held[0], age) if allowed == status else None
                if order is not None:
                    same.append((allowed, model.take(order)))
            if not same:
                raise Disagreement(
                    f"{Status(status).name}, holding {held[0].tolist()}; allowed: "
                    + " or ".join(f"{allowed.name}, holding {model.v.tolist()}" for allowed, model in outcomes)
                )
            # by different ways to the same vectors, where rounding decides
            alpha = held[1]

            def difference(outcome: Outcome) -> float:
                other = age is not None and (outcome[1].age != age).any()
                return float(np.abs(outcome[1].alpha - alpha).max(initial=0.0)) + (1e-9 if other else 0.0)

            chosen, model = min(same, key=difference)
        learns = not self.is_nothing(x) and not self._sure(x, label)
        if self.rule == "krls-t" and chosen is not Status.RESTARTED and learns:
            self._learn_power(x, label)
        if chosen is Status.RESTARTED:
            self.power, self.weight = 0.0, 0.0
        self.model = model
        return chosen

    def _within_limits(self, outcome: Outcome) -> Iterator[Outcome]:
        """A model with a multiplier beyond its limit begins anew."""
        status, model = outcome
        largest = np.abs(self.normalised(model).alpha).max(initial=0.0) / self.alpha_limit
        if status is Status.RESTARTED or largest <= 1 + 1e-6:
            yield status, model
        if largest > 1 - 1e-6:
            yield Status.RESTARTED, self.empty

    @staticmethod
    def _order(model: Model, v: np.ndarray, age: np.ndarray | None) -> list[int] | None:
        """Where the product's vectors are in the model, equal ones by their ages; None if they are others."""
        if len(v) != len(model):
            return None
        order: list[int] = []
        for k, row in enumerate(v):
            equal = [i for i, w in enumerate(model.v) if np.array_equal(w, row) and i not in order]
            if not equal:
                return None
            order.append(min(equal, key=lambda i: age is not None and model.age[i] != age[k]))
        return order

    def _presented(self, x: np.ndarray, label: object) -> Iterator[Outcome]:
        """Every (status, model) that rounding allows; mostly there is one.  The first is what exact numbers give."""
        if self.is_nothing(x) or self._sure(x, label):
            yield Status.DISCARDED, self.model
            return
        starts, full = [self.model], False
        if self.when == "before" and len(self.model) == self.n_max:
            everyone = list(range(self.n_max))
            starts = [self._without(self.model, r) for r in self._removable(self.model, everyone, competes=False)]
            full = True
        for start in starts:
            if np.abs(self.normalised(start).alpha).max(initial=0.0) > self.alpha_limit:
                yield Status.RESTARTED, self.empty
                continue
            for outcome in self._learned(start, x, label):
                for status, model in self._within_limits(outcome):
                    if status is Status.RESTARTED:
                        yield status, self.empty
                    else:
                        for trimmed in self._trimmed(self._faded(model, x), self.removals):
                            yield (Status.REPLACED if full and status is Status.ADDED else status), trimmed

    def _faded(self, model: Model, x: np.ndarray) -> Model:
        """Claims after a sample: those of vectors near it are renewed."""
        near = np.abs(self.kernels(model, x)) / (self.norms(model.v)[:, 0] * np.sqrt(self.power_of(x)))
        return replace(model, claim=np.clip(np.maximum(4 * near, self.fading * model.claim), 2.0**-60, 4))

    def _sure(self, x: np.ndarray, label: object) -> bool:
        """Least squares would take what a classifier is sure of as evidence that it need not learn: it is left out."""
        recursive = self.rule in ("krls-t", "fb-krls", "sw-krls", "ald-krls")
        return bool(self.classes) and recursive and not self._error(self._forgetful(self.model), x, label).any()

    def _error(self, model: Model, x: np.ndarray, label: object) -> np.ndarray:
        """Eq. 2; a classifier's targets are +-1, and what is right by more than the margin is no error."""
        f = self.value(model, x)
        if not self.classes:
            return np.asarray(np.atleast_1d(np.asarray(label, float)) - f)
        target = np.array([1.0 if label == o else -1.0 for o in range(self.outputs)])
        if self.classes == 2:
            target = np.array([1.0 if label == 1 else -1.0])
        return np.asarray(np.where(target * f >= 1, 0.0, target - f))

    def _learned(self, model: Model, x: np.ndarray, label: object) -> Iterator[Outcome]:
        """One presentation, without what goes afterwards."""
        model = self._forgetful(replace(model, age=model.age + 1))
        error = self._error(model, x, label)
        learn = {
            "krls-t": self._tracker,
            "fb-krls": self._fixed_budget,
            "sw-krls": self._fixed_budget,
            "ald-krls": self._engel,
            "knlms": self._richard,
        }.get(self.rule, self._gradient)
        if learn == self._gradient:  # eq. 4
            error = self.eta * error
            if self.step_limit is not None:
                error = np.clip(error, -self.step_limit, self.step_limit)
            error = settled(error)
        for near, spanned in self._kinships(model, x):
            for nearest in self.nearest(model, x) if len(model) else [0]:
                self.nearest_one = nearest
                for status, outcome in learn(model, x, error, near, spanned):
                    if status not in (Status.MERGED, Status.ABSORBED):
                        yield status, outcome
                        continue
                    if near:  # the repeated vector is young again
                        age = outcome.age.copy()
                        age[nearest] = 0
                        outcome = replace(outcome, age=age)
                    repeats, distance = (model.v == x).all(1).any(), self.distances(model, x).min()
                    if repeats or distance < self.fuzz:
                        yield Status.MERGED, outcome
                    if not repeats:
                        yield Status.ABSORBED, outcome

    def _kinships(self, model: Model, x: np.ndarray) -> Iterator[tuple[bool, bool]]:
        """Whether the nearest vector takes the sample up, and whether all together do, as far as rounding leaves open."""
        near, spanned = [False], [False]
        if len(model) and self.rule == "knlms":
            cosine = np.abs(self.kernels(model, x)) / (self.norms(model.v)[:, 0] * np.sqrt(self.power_of(x)))
            near = [not new for new in at_most(float(cosine.max()), self.coherence)]
        elif len(model) and self.rule != "sw-krls":
            distance = float(self.distances(model, x).min())
            if (model.v == x).all(1).any():
                near = [True]
            elif self.rule == "qklms":
                near = self._quantised(model, x)
            elif self.has_ridge and distance < self.fuzz:
                near = [True, False]
            elif not self.has_ridge:
                near = at_most(self.novelty(x, model), self.ald_threshold)
            if self.has_inverse:
                spanned = at_most(self.novelty(x, model), self.ald_threshold)
        for a in near:
            for b in spanned:
                yield a, b

    def _quantised(self, model: Model, x: np.ndarray) -> list[bool]:
        """Whether a vector is within quantisation: in sigmas, in 1 / gamma, or as the sine of the angle."""
        gamma = self.spec.kernel.gamma if self.spec.kernel is not None else None
        if self.gaussian:
            return at_most(float(distances(x[None], model.v).min()), (self.quantisation * self.sigma) ** 2)
        if self.function == "laplacian":
            return at_most(float(np.abs(x - model.v).sum(1).min()) * (gamma or 0.0), self.quantisation)
        if self.radial and self.function != "rational-quadratic":
            return at_most(float(np.sqrt(distances(x[None], model.v).min())) * (gamma or 0.0), self.quantisation)
        cosine = 1 - self.distances(model, x).min()
        return at_most(float(1 - cosine**2), self.quantisation**2)

    # ---- rules.  What they are given of the error is eta e for the first

    def _gradient(self, model: Model, x: np.ndarray, step: np.ndarray, near: bool, spanned: bool) -> Iterator[Outcome]:
        """Eq. 3-6, and QKLMS (Chen et al. 2012)."""
        own = self.power_of(x)
        step = step / own
        if np.abs(step).max() * np.sqrt(own) > self.alpha_limit:
            yield Status.RESTARTED, self.empty
            return
        model = replace(model, alpha=settled((1 - self.eta * self.rho) * model.alpha))
        if near:
            share = np.zeros(len(model))
            nearest = self.nearest_one
            share[nearest] = self.kernels(model, x)[nearest] / self.power_of(model.v[nearest])
            if self.rule == "qklms" and self.radial:
                share[nearest] = 1.0
        elif spanned:
            share = np.linalg.solve(self.gram(model), self.kernels(model, x))
        else:
            yield from self._inserted(model.plus(x, step))
            return
        yield Status.ABSORBED, replace(model, alpha=settled(model.alpha + np.outer(share, step)))

    def _forgetful(self, model: Model) -> Model:
        """KRLS-T's model after some time without samples: back to the prior (Van Vaerenbergh et al. 2012, eq. 27)."""
        if self.rule != "krls-t":
            return model
        k, part = self.gram(model), self.forgetting
        left = replace(model, values=np.sqrt(part) * model.values, spread=part * model.spread + (1 - part) * k)
        return self._solved(left)

    def _tracker(self, model: Model, x: np.ndarray, error: np.ndarray, near: bool, spanned: bool) -> Iterator[Outcome]:
        """KRLS-T (Van Vaerenbergh, Lazaro-Gredilla and Santamaria 2012, algorithm 1).

        ``values`` is mu, ``spread`` Sigma: mean and covariance of the function at the vectors.
        """
        mu, sigma, k = model.values, model.spread, self.kernels(model, x)
        q = np.linalg.solve(self.gram(model), k)
        h = sigma @ q
        variance = self.power_of(x) * (1 + self.ridge) - k @ q + q @ h
        noise = self.noise_at(x)
        gain = error / (noise + variance)
        if np.abs(gain).max() * np.sqrt(self.power_of(x)) > self.alpha_limit:
            yield Status.RESTARTED, self.empty
        elif near or spanned:
            spread = sigma - np.outer(h, h) / (noise + variance)
            yield Status.ABSORBED, self._solved(replace(model, values=mu + np.outer(h, gain), spread=spread))
        else:
            p = np.append(h, variance)
            spread = np.block([[sigma, h[:, None]], [h[None], np.array([[variance]])]])
            spread = spread - np.outer(p, p) / (noise + variance)
            mu = np.vstack([mu, q @ mu]) + np.outer(p, gain)
            grown = replace(model.plus(x, np.zeros(self.outputs)), values=mu, spread=spread)
            yield from self._inserted(self._solved(grown))

    def _learn_power(self, x: np.ndarray, label: object) -> None:
        """The labels' variance in parts of what the model expects: its maximum likelihood (ibid., section III-D)."""
        model = self._forgetful(self.model)
        k = self.kernels(model, x)
        q = np.linalg.solve(self.gram(model), k)
        expected = self.noise_at(x) + self.power_of(x) * (1 + self.ridge) - k @ q + q @ model.spread @ q
        self.power = self.forgetting * self.power + np.mean(self._error(model, x, label) ** 2) / expected
        self.weight = self.forgetting * self.weight + 1

    def _solved(self, model: Model) -> Model:
        """Multipliers with which the function has the rule's values at the vectors."""
        return replace(model, alpha=settled(np.linalg.solve(self.gram(model), model.values)))

    def _fixed_budget(
        self, model: Model, x: np.ndarray, error: np.ndarray, near: bool, spanned: bool
    ) -> Iterator[Outcome]:
        """Least squares on the stored samples (Van Vaerenbergh et al. 2010): ``values`` are their labels.

        A sample that is not stored moves the label of the nearest; with relabel every sample moves all, by eta k(v, x) e.
        """
        label = self.value(model, x) + error
        if self.relabel:
            share = self.kernels(model, x) / self.power_of(x)
            model = replace(model, values=model.values + self.eta * np.outer(share, error))
        if near or spanned:
            values = model.values.copy()
            if not self.relabel:
                nearest = self.nearest_one
                # what its label has to do with this one
                share = 1.0 if self.radial else self.kernels(model, x)[nearest] / self.power_of(x)
                values[nearest] += self.eta * error * share
            yield Status.ABSORBED, self._solved(replace(model, values=values))
            return
        grown = model.plus(x, np.zeros(self.outputs))
        grown = self._solved(replace(grown, values=np.vstack([model.values, label])))
        if np.abs(self.normalised(grown).alpha).max() > self.alpha_limit:
            yield Status.RESTARTED, self.empty
        yield from self._inserted(grown)

    def _engel(self, model: Model, x: np.ndarray, error: np.ndarray, near: bool, spanned: bool) -> Iterator[Outcome]:
        """ALD-KRLS (Engel, Mannor and Meir 2004, table 1): ``spread`` is their P = (A'A)^-1."""
        inverse, p = np.linalg.inv(self.gram(model)), model.spread
        k = self.kernels(model, x)
        a = inverse @ k
        if near or spanned or len(model) == self.n_max:
            q = p @ a / (1 + a @ p @ a)
            alpha = model.alpha + np.outer(inverse @ q, error)
            status = Status.ABSORBED if near or spanned else Status.DISCARDED
            yield status, replace(model, alpha=settled(alpha), spread=p - np.outer(q, a @ p))
            return
        step = error / (self.power_of(x) * (1 + self.ridge) - k @ a)
        grown = model.plus(x, step)
        grown.spread[-1, -1] = 1.0
        grown.alpha[:-1] -= np.outer(a, step)
        yield Status.ADDED, replace(grown, alpha=settled(grown.alpha))

    def _richard(self, model: Model, x: np.ndarray, error: np.ndarray, near: bool, spanned: bool) -> Iterator[Outcome]:
        """KNLMS (Richard, Bermudez and Honeine 2009), of the normalised expansion: ``h`` holds its kernel values."""
        own = np.sqrt(self.power_of(x))
        stored = not near and len(model) < self.n_max
        grown = model.plus(x, np.zeros(self.outputs)) if stored else model
        norms = self.norms(grown.v)
        h = self.kernels(grown, x) / (norms[:, 0] * own)
        alpha = norms * grown.alpha + np.outer(h, self.eta / (self.epsilon + h @ h) * error / own)
        status = Status.ADDED if stored else Status.ABSORBED if near else Status.DISCARDED
        yield status, replace(grown, alpha=settled(alpha / norms))

    # ---- strategies: the newest is the last of the model

    def _inserted(self, model: Model) -> Iterator[Outcome]:
        """Decay and insertion are done; truncation makes room, or else reduction."""
        newest = len(model) - 1
        full = newest == self.n_max
        stale = [i for i in range(newest) if self._stale(model, i)]
        if self._stale(model, newest):
            yield Status.DISCARDED, model.take(list(range(newest)))
            return
        if full and stale:
            yield Status.REPLACED, self._dropped(model, stale[0])
            return
        candidates = [newest] if self.newest_only else list(range(newest + 1))
        goes = [full]
        if self.lambda_max is not None and not full:
            goes = self._negligible(model, candidates)
        for needed in goes:
            if not needed:
                yield Status.ADDED, model
                continue
            for r in self._removable(model, candidates):
                yield (Status.DISCARDED if r == newest else Status.REPLACED), self._without(model, r)

    def _stale(self, model: Model, i: int) -> bool:
        small = self.below is not None and np.abs(self.normalised(model).alpha[i]).max() < self.below
        return bool(small or (self.old is not None and model.age[i] >= self.old))

    def _negligible(self, model: Model, candidates: list[int]) -> list[bool]:
        """Whether the least score is at most lambda_max."""
        assert self.lambda_max is not None
        score, fuzz = self._scores(model, candidates)
        least = int(score.argmin())
        answers = at_most(score[least], self.lambda_max, fuzz[least] + 1e-12)
        # of vectors that lost their nearest neighbour, a choice asks for the new ones of SEARCHES: the least score may be unknown
        lost = self.metric in ("fklms", "fmklms") and len(candidates) > SEARCHES + 1
        return [*answers, False] if lost and answers == [True] else answers

    def _trimmed(self, model: Model, removals: int) -> Iterator[Model]:
        """Up to so many further vectors go: stale ones, then those whose score is at most lambda_max."""
        stale = [i for i in range(len(model)) if self._stale(model, i)]
        if removals and stale:
            yield from self._trimmed(self._dropped(model, stale[0]), removals - 1)
        elif removals and len(model) and self.lambda_max is not None and not self.newest_only:
            everyone = list(range(len(model)))
            for needed in self._negligible(model, everyone):
                if not needed:
                    yield model
                    continue
                for r in self._removable(model, everyone, competes=False):
                    left = self._without(model, r)
                    if np.abs(self.normalised(left).alpha).max(initial=0.0) > self.alpha_limit:
                        yield model
                    else:
                        yield from self._trimmed(left, removals - 1)
        else:
            yield model

    def _dropped(self, model: Model, r: int) -> Model:
        """The model without r, the last one in its place; where a matrix is kept, all others keep their order."""
        order = list(range(len(model)))
        if self.spec.config.keeps_factor or self.spec.config.keeps_complex:
            return model.take(order[:r] + order[r + 1 :])
        order[r] = order[-1]
        return model.take(order[:-1])

    def _without(self, model: Model, r: int) -> Model:
        """The same, but the others take up the part of r."""
        left = replace(model, alpha=settled(self._projected(model, r, self.projection)))
        if self.rule in ("krls-t", "fb-krls", "sw-krls") and self.projection == "klms":
            return self._solved(self._dropped(model, r))  # the values at the others stay
        return self._dropped(left, r)

    # ---- projections and metrics, by doing the removal

    def _projected(self, model: Model, r: int, projection: str) -> np.ndarray:
        """Multipliers after the removal of r; its own row holds zero."""
        k, alpha = self.gram(model), model.alpha
        kept = [i for i in range(len(model)) if i != r]
        beta = np.zeros_like(alpha)
        if not kept:
            return beta
        if projection == "none":
            beta[kept] = alpha[kept]
        elif projection == "klms":  # eq. 12
            beta[kept] = np.linalg.solve(k[np.ix_(kept, kept)], k[kept] @ alpha)
        elif projection in ("fklms", "bounded"):  # eq. 16, K of the others taken as its diagonal
            own = self.norms(model.v[kept]) ** 2
            # bounded: the parts, of normalised vectors, add up to 1 at most
            parts = np.abs(self.normal_gram(model)[kept, r]).sum() if projection == "bounded" else 1.0
            beta[kept] = alpha[kept] + np.outer(k[kept, r], alpha[r]) / own / max(1.0, parts)
        else:  # of errors in parts of sqrt(k(v, v))
            k, norms, alpha = self.normal_gram(model), self.norms(model.v), self.normalised(model).alpha
            a = k[:, kept]
            if projection == "ls":  # eq. 14
                beta[kept] = np.linalg.pinv(a, rcond=1e-15) @ (k @ alpha)
            else:  # what minimises eq. 20, times N
                beta[kept] = np.linalg.solve(a.T @ a + self.mu * np.eye(len(kept)), a.T @ (k @ alpha))
            beta = beta / norms
        return beta

    def _score(self, model: Model, k: np.ndarray, r: int) -> float:
        """What the removal of r costs; k is the normalised Gram matrix, with the ridge."""
        n, norms = len(model), self.norms(model.v)
        plain, model = model, self.normalised(model)
        kept = [i for i in range(n) if i != r]
        size, power = np.abs(model.alpha[r]).max(), np.sum(model.alpha[r] ** 2)
        others = kernel_values(self.spec, model.v[[r]], model.v[kept])[0] / (norms[r, 0] * norms[kept, 0])
        if self.metric == "nt":
            return float(size)
        if self.metric == "at":
            return -float(model.age[r])
        if self.metric in ("klms", "mklms", "sup"):  # eq. 13
            g = self.gram(plain)  # the part of k(v, v) that the others leave over
            kappa = g[r, r] - (g[r, kept] @ np.linalg.solve(g[np.ix_(kept, kept)], g[kept, r]) if kept else 0.0)
            kappa = kappa / norms[r, 0] ** 2
            return float(kappa * {"klms": 1.0, "mklms": power, "sup": size}[self.metric])
        if self.metric in ("ls", "lsreg", "lsridge"):
            beta = self._projected(plain, r, "lsridge" if self.metric == "lsridge" else "ls") * norms
            lost = np.sum((k @ (model.alpha - beta)) ** 2) / n  # after eq. 14
            if self.metric == "ls":
                return float(lost)
            if self.metric == "lsreg":
                return float(lost + self.penalty / max(n - 1, 1) * np.sum(beta**2))  # eq. 20
            # what the removal adds to the minimum of eq. 20
            least = np.linalg.solve(k @ k + self.mu * np.eye(n), k @ k @ model.alpha)
            before = np.sum((k @ (model.alpha - least)) ** 2) + self.mu * np.sum(least**2)
            return float(lost + (self.mu * np.sum(beta**2) - before) / n)
        if self.metric in ("fklms", "fmklms"):  # eq. 17, 18
            new = 1 - np.abs(others).max(initial=0.0)
            if self.gaussian:
                new = -np.expm1(-distances(model.v[[r]], model.v[kept]).min(initial=np.inf) / (2 * self.sigma**2))
            return float(new * (power if self.metric == "fmklms" else 1.0))
        return float((1 - np.sum(others**2)) * (power if self.metric == "afmklms" else 1.0))  # section 5

    def _scores(self, model: Model, candidates: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Scores, and what rounding of the multipliers and of the kernel values may have changed in them."""
        k = self.normal_gram(model)
        score = np.array([self._score(model, k, r) for r in candidates])
        if self.fading < 1:
            score = score * np.minimum(model.claim[candidates], 1.0)
        model = self.normalised(model)
        size = np.abs(model.alpha[candidates]).max(axis=1)
        rounding = 1e-10 * np.abs(model.alpha).max(initial=0.0)
        squared = self.outputs * ((size + rounding) ** 2 - size**2)
        if self.metric in ("nt", "sup"):
            return score, np.full(len(score), rounding)
        if self.metric == "lsridge":  # a difference of sums over the whole model
            return score, squared + 1e-13 * np.sum(np.abs(model.alpha)) ** 2
        if self.metric in ("mklms", "ls", "lsreg", "fmklms", "afmklms"):
            return score, squared + 1e-13 * self.outputs * size**2
        exact = self.metric == "at" or (self.metric == "fklms" and self.gaussian and self.fading == 1)
        return score, np.full(len(score), 0.0 if exact else 1e-13)

    def _of_pairs(self, model: Model, candidates: list[int], near: set[int], size: np.ndarray) -> set[int]:
        """Those of near whose multiplier is not the larger of a closest pair."""
        k = np.abs(kernel_values(self.spec, model.v, model.v)) / (self.norms(model.v) * self.norms(model.v).T)
        np.fill_diagonal(k, -1.0)
        kept = set()
        for i in near:
            row = k[candidates[i], candidates]
            partners = {int(j) for j in np.flatnonzero(row >= row.max() - 1e-12)}
            if not partners <= near or any(size[i] <= size[j] + 1e-10 * size.max() for j in partners):
                kept.add(i)
        return kept

    def _removable(self, model: Model, candidates: list[int], competes: bool = True) -> list[int]:
        """Whom the technique removes (first), and others that only rounding tells from it."""
        score, fuzz = self._scores(model, candidates)
        model = self.normalised(model)
        if self.metric == "fklms" and self.gaussian:  # distances are exact, so ties are, and each closest pair is one
            score = (distances(model.v, model.v) + np.diag(np.full(len(model), 1e300))).min(axis=1)[candidates]
            score = score * (np.minimum(model.claim[candidates], 1.0) if self.fading < 1 else 1.0)
        size, age = np.abs(model.alpha[candidates]).max(axis=1), model.age[candidates]
        least = int(np.argmin(score))
        rounding = fuzz + fuzz[least] + CLOSE * abs(score[least])
        near = {i for i in range(len(candidates)) if score[i] - score[least] <= rounding[i]}
        tied = [i for i in near if score[i] == score[least]]
        exact = self.metric == "at" or (self.metric == "fklms" and self.gaussian and self.fading == 1)
        exact = exact or (not size[tied].any() and self.metric not in ("klms", "lsreg", "lsridge", "afklms", "fklms"))

        # a stored one before the newest, of those the first
        def order(i: int) -> tuple[float, bool, int]:
            key = {"smaller": size[i], "newest": float(age[i]), "oldest": -float(age[i])}[self.tie]
            return key, competes and candidates[i] == len(model) - 1, i

        if self.metric == "fklms" and not self.gaussian and self.tie == "smaller" and self.fading == 1:
            near = self._of_pairs(model, candidates, near, size)
            tied = [i for i in tied if i in near]
        first = min(tied, key=order)
        if exact:
            near -= set(tied)
            if self.tie == "smaller" and size[first] > 0:
                near |= {i for i in tied if size[i] <= size[first] + 1e-10 * size.max()}
        return [candidates[i] for i in [first, *sorted(near - {first})]]
