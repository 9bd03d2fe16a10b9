"""Learned states of several devices as one state, which goes on learning.

All devices have the same spec, and each has learned from its own samples.  What they know together is a teacher,

    g(x) = sum_k c_k(x) f_k(x),   c_k(x) proportional to u_k(x)^-p,   sum_k c_k(x) = 1

f_k is the answer of device k to the raw input x, and u_k its novelty there, the part of the sample that its vectors cannot
express.  With the exponent p the other devices foretell best what each device answers at its own vectors; with a recording,
all foretell its labels best.

Models that store vectors.  Of the vectors of all devices, those are taken whose kernel functions leave least of g at all of
them (orthogonal least squares: S. Chen, C. F. N. Cowan, P. M. Grant, 1991).  A new model learns them by the rule's own steps,
from labels that make its answers those of g.  So the merged state is one that learning leads to, whatever the rule keeps beside
vectors and multipliers.

Recursive least squares keeps P = (sum phi phi' + I / s)^-1 and w = P sum phi y.  Sums of several devices add up, so the merged
state is that of one model that has learned all samples.  Normalised least mean squares keeps no sums: there the merged
function is the mean of the functions.

Other models that standardise their inputs, such as waves.  A new model learns what each device answers to inputs like those that it
has seen: drawn with the mean and the deviation of each input, which its standardiser knows.

Monitors keep statistics of their rows (``pykernel.training.merged_monitors``).

Statistics of inputs and labels of models with vectors are those of all samples, as far as their horizons tell.  The linear part of a model is
the mean of all.  How far the rule has been right, and its noise, are learned anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres  # type: ignore[import-untyped]

from pykernel.algorithms.linear import FeatureKind, Gain
from pykernel.algorithms.online.state import OnlineStatus
from pykernel.bases.gram import MercerKernel
from pykernel.dialect import Memory
from pykernel.engine.engines import make_executor
from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.migrate import require_meaning
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from pykernel.telling import QUIET, Watch
from pykernel.training.merged_monitors import MergedMonitor, merged_monitor

POWERS = (4, 8, 2, 1, 0, 16)
"""Exponents that are tried.  Of equal ones the first is taken: two devices cannot tell which is better."""
SURE = 1e-3
"""Novelty counts at least this part of its median: a device that stores a sample is not infinitely sure."""
CANDIDATES = 1000
"""So many vectors of all devices are candidates at most, drawn with the same chance: the choice is O(candidates * vectors * N)."""
RIDGE = 1e-6
"""Of the least squares, in parts of the mean square of a kernel function; ten times as much each time that a multiplier or a label
would leave its range."""
CHOICES = 4
"""Choices of vectors at most."""
ROUNDS = 60
"""Rounds of labels, each of N updates, at most."""
TOLERANCES = (1e-4, 1e-3, 1e-2, 0.1)
"""What may be left of the answers, in parts of these; the next one where a multiplier would leave its range."""
REPEATS = 64
"""The vectors are learned again until the merged model is as sure of them as the devices together, at most so often."""
TOLD, TOLD_EACH, TOLD_OTHERS = 20_000, 400, 100
"""Rehearsed rows of all devices, of each, and of each of which the others are asked, at most."""
BLOCK = 100
"""Rows of a recording that choose, or judge, in a row."""
PLACES = ("capacity COMPONENTS", "pairs_a_row")
"""What the spec of a merged monitor may have otherwise."""
STRANGE = 3.0
"""A device disagrees if the others foretell it so many times worse than the median device, and worse than a tenth of what answers
vary."""


@dataclass(frozen=True)
class Share:
    """What one device gave.  vectors: how many of its vectors were taken; weight: the mean of c_k at all vectors, 1 / devices if
    all know equally much.  foretold: root mean square of what the others answer at its vectors less its answers, in parts of
    the answers' deviation; of a monitor, how far its regimes are from the nearest ones of the others, in parts of the distance from
    which a row is strange.  None where the way has no such thing.  error: with a recording, its error there; of a monitor, the part of
    the rows in alarm.  regimes: of a monitor, how many it knows.
    """

    name: str
    vectors: int | None = None
    weight: float | None = None
    foretold: float | None = None
    disagrees: bool = False
    error: float | None = None
    regimes: int | None = None


@dataclass(frozen=True)
class Merged:
    """A state for ``spec``.  way: "vectors", "samples", "sums", "mean" or "regimes".  power: the exponent p.  left: root mean square of what
    the model leaves of the teacher at all vectors, in parts of its deviation; of a monitor, bits a row that the lack of places costs.
    errors: with a recording, of the mean of all devices, of the teacher and of the merged model: root mean square, or the part of
    wrong classes; of a monitor, the part of the rows in alarm.  regimes: of a monitor, how many it knows.  remarks: sentences.
    """

    spec: Spec
    data: bytes
    way: str
    devices: tuple[Share, ...]
    vectors: int | None
    power: int | None = None
    left: float | None = None
    errors: Mapping[str, float] | None = None
    regimes: int | None = None
    remarks: tuple[str, ...] = ()

    @property
    def memory(self) -> Memory:
        return snapshot.read(self.spec, self.data).memory

    @property
    def warnings(self) -> tuple[str, ...]:
        why = (
            "knows regimes that none of the others knows: other surroundings, or a fault that became normal?"
            if self.way == "regimes"
            else "answers otherwise than the other devices do: a broken sensor, or other surroundings?"
        )
        return self.remarks + tuple(
            f"{each.name} {why} merge the others without it, and compare" for each in self.devices if each.disagrees
        )

    @property
    def state_hash(self) -> int:
        return snapshot.read(self.spec, self.data).state_hash


@dataclass(frozen=True)
class _Device:
    """A device's model, with the vectors that it stores as raw inputs, (n, D)."""

    name: str
    model: HostModel
    vectors: np.ndarray

    @classmethod
    def of(cls, spec: Spec, name: str, data: bytes) -> _Device:
        memory = snapshot.device_memory(spec, data, name)
        if not snapshot.is_valid(spec, memory):
            raise UserError(f"{name}: holds a number that learning cannot give; leave this device out")
        model = HostModel(spec.inner)
        model.memory.copy_from(memory)
        return cls(name, model, raw_inputs(model.spec, model.memory, _stored(model)))

    def knows(self, way: str) -> bool:
        """Whether the device has learned what the way needs: vectors, or statistics of inputs; sums may be empty."""
        if way == "samples":
            return int(self.model.memory.field("observed")[0]) >= max(1, self.model.spec.config.input_warmup)
        return way != "vectors" or len(self.vectors) > 0

    def answers(self, x: np.ndarray) -> np.ndarray:
        """(rows, OUTPUTS)."""
        found = np.asarray(self.model.predict(x), np.float64).reshape(len(x), -1)
        if not np.isfinite(found).all():
            raise UserError(f"{self.name}: refuses inputs that other devices have stored; leave this device out")
        # a function of a class is to be 1 or more, or -1 or less: what lies beyond differs from device to device by chance
        return np.clip(found, -1, 1) if self.model.spec.program.label_kind == "class" else found

    def novelty(self, x: np.ndarray) -> np.ndarray:
        """(rows,); 1 everywhere of a model without vectors."""
        return np.asarray(self.model.novelty(x), np.float64) if self.model.has("novelty") else np.ones(len(x))


def _stored(model: HostModel) -> np.ndarray:
    """Vectors as the rule sees inputs, (n, D)."""
    if "v" not in {name for struct in model.spec.program.persistent for name in struct.fields}:
        return np.zeros((0, model.spec.width))
    return np.array(model.memory.field("v")[: int(model.memory.field("n")[0])], np.float64)


def raw_inputs(spec: Spec, memory: Memory, z: np.ndarray) -> np.ndarray:
    """Inputs as they come, from inputs as the rule sees them: both (rows, D)."""
    if spec.standardises:
        scale = np.array(memory.field("scale"), np.float64)
        return np.asarray(z / np.where(scale > 0, scale, 1.0) + np.array(memory.field("mean"), np.float64))
    return spec.unscaled(z)


def seen_inputs(spec: Spec, memory: Memory, x: np.ndarray) -> np.ndarray:
    """The inverse of ``raw_inputs``, within what the rule sees."""
    if spec.standardises:
        z = (x - np.array(memory.field("mean"), np.float64)) * np.array(memory.field("scale"), np.float64)
        return np.clip(z, -spec.config.clip, spec.config.clip)
    center, scale = spec.scaling
    z = x if center is None else x - np.array(center)
    return z if scale is None else z * np.array(scale)


# ------------------------------------------------------------------------------------------------------------ teacher


@dataclass(frozen=True)
class _Teacher:
    """What the devices know together at some inputs.  answers: (K, rows, OUTPUTS), novelty: (K, rows)."""

    answers: np.ndarray
    novelty: np.ndarray

    @classmethod
    def at(cls, devices: Sequence[_Device], x: np.ndarray) -> _Teacher:
        novelty = np.stack([device.novelty(x) for device in devices])
        least = SURE * float(np.median(novelty)) or SURE
        return cls(np.stack([device.answers(x) for device in devices]), np.maximum(novelty, least))

    def weights(self, power: int) -> np.ndarray:
        """c_k of each row, (K, rows)."""
        # the surest device has 1, so that no power overflows
        powers = (self.novelty / self.novelty.min(axis=0)) ** -float(power)
        return np.asarray(powers / powers.sum(axis=0))

    def g(self, power: int) -> np.ndarray:
        """(rows, OUTPUTS)."""
        return np.asarray(np.einsum("kl,klo->lo", self.weights(power), self.answers))

    def without(self, k: int, rows: np.ndarray) -> _Teacher:
        """What the others know at some of the rows."""
        others = np.arange(len(self.answers)) != k
        return _Teacher(self.answers[others][:, rows], self.novelty[others][:, rows])


def orthogonal_least_squares(columns: np.ndarray, target: np.ndarray, count: int) -> list[int]:
    """Positions of at most ``count`` columns (L, C), chosen one by one so that least of the target (L, O) is left.  O(L C count)."""
    left, free = np.array(target, np.float64), np.array(columns, np.float64)
    first = np.square(free).sum(axis=0)
    taken: list[int] = []
    for _ in range(min(count, free.shape[1])):
        norms = np.square(free).sum(axis=0)
        # what is left of a column that others express is rounding
        known = norms > 1e-9 * first
        known[taken] = False
        if not known.any():
            break
        gains = np.where(known, np.square(free.T @ left).sum(axis=1) / np.where(known, norms, 1.0), -1.0)
        best = int(np.argmax(gains))
        taken.append(best)
        q = free[:, best] / np.sqrt(norms[best])
        left -= np.outer(q, q @ left)
        free -= np.outer(q, q @ free)
    return taken


# ------------------------------------------------------------------------------------------------------------ vectors


@dataclass
class _Merging:
    """What all steps know.  spec, into: of the models inside of signals.  power, union, teacher: of what is taught."""

    spec: Spec
    into: Spec
    devices: Sequence[_Device]
    rows: tuple[np.ndarray, np.ndarray] | None
    show: Watch
    power: int = POWERS[0]

    @cached_property
    def union(self) -> np.ndarray:
        """Vectors of all devices as raw inputs, (L, D), one below the other."""
        return np.concatenate([device.vectors for device in self.devices])

    @cached_property
    def owners(self) -> np.ndarray:
        """Number of the device that stores each of them, (L,)."""
        return np.repeat(np.arange(len(self.devices)), [len(device.vectors) for device in self.devices])

    @cached_property
    def teacher(self) -> _Teacher:
        return _Teacher.at(self.devices, self.union)

    @cached_property
    def deviation(self) -> float:
        """Of the devices' answers at all vectors."""
        found = self.teacher.answers.reshape(-1, self.teacher.answers.shape[-1])
        return float(np.sqrt(found.var(axis=0).sum())) or 1.0

    def choose_power(self) -> None:
        """The exponent with which devices foretell each other best, or the recording's labels."""
        if self.rows is not None:
            x, y = (each[_chooses(len(each))] for each in self.rows)
            at_rows = _Teacher.at(self.devices, x)
            scores = [self.error(at_rows.g(power), y) for power in POWERS]
        else:
            scores = [float(np.mean([self.foretold(k, power) for k in range(len(self.devices))])) for power in POWERS]
        self.power = POWERS[int(np.argmin(scores))]

    def foretold(self, k: int, power: int) -> float:
        """Mean square of what the others answer at the vectors of device k, less its own answers."""
        rows = np.flatnonzero(self.owners == k)
        others = self.teacher.without(k, rows).g(power)
        return float(np.square(others - self.teacher.answers[k][rows]).sum(axis=1).mean()) if len(rows) else 0.0

    def error(self, answers: np.ndarray, y: np.ndarray) -> float:
        """Root mean square, or the part of wrong classes; answers: (rows, OUTPUTS)."""
        if self.spec.program.label_kind != "class":
            return float(np.sqrt(np.square(answers - y.reshape(answers.shape)).sum(axis=1).mean()))
        return float(np.mean(_classes(answers) != y))

    def taught(self) -> tuple[HostModel, np.ndarray, np.ndarray]:
        """The merged model, the positions of its vectors in the union, and what it should answer at all of the union."""
        self.choose_power()
        g = self.teacher.g(self.power)
        start = HostModel(self.into)
        pool_stages(self.into, self.devices, start.memory)
        z = seen_inputs(self.into, start.memory, self.union)
        rest = g - led(self.into, start.memory, z)
        kernel = MercerKernel.of(self.into)
        room = self.into.capacities[self.into.program.budget.capacity]  # type: ignore[union-attr]
        free = np.arange(len(z))
        if len(z) > CANDIDATES:
            free = np.sort(np.random.default_rng(0).choice(len(z), CANDIDATES, replace=False))
        pupil = _Pupil(self.into, start, self.show)
        for _ in range(CHOICES):
            chosen = free[orthogonal_least_squares(kernel.gram(z, z[free]), rest, room)]
            wanted = self.fitted(kernel.gram(z, z[chosen]), rest, chosen)
            stored = pupil.stores(z[chosen], wanted[chosen])
            if stored.all():
                break
            # what the rule takes for a repetition of another vector leaves its place to a third one
            free = np.setdiff1d(free, chosen[~stored])
            chosen = chosen[stored]
        else:
            wanted = self.fitted(kernel.gram(z, z[chosen]), rest, chosen)
        pupil.teach(z[chosen], wanted[chosen], self.union[chosen])
        pupil.make_sure(z[chosen], wanted[chosen], self.union[chosen], self.known(chosen))
        return pupil.model, chosen, g

    def known(self, chosen: np.ndarray) -> float:
        """The variance of labels with which the devices together know some of the vectors, in the mean: that of the surest device, or
        where devices differ by more, the variance of their answers.
        """
        if not self.devices[0].model.has("variance"):
            return np.inf
        least = np.min([device.model.variance(self.union[chosen]) for device in self.devices], axis=0)
        apart = np.square(self.teacher.answers - self.teacher.g(self.power)).mean(axis=2)
        return float(np.maximum(least, (self.teacher.weights(self.power) * apart).sum(axis=0)[chosen]).mean())

    def fitted(self, columns: np.ndarray, rest: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The combination of columns (L, n) next to the rest (L, OUTPUTS) whose multipliers the rule accepts."""
        ridge = RIDGE * float(np.square(columns).sum(axis=0).mean())
        limit, most = self.into.config.remainder_limit, self.into.config.alpha_limit
        while True:
            weights = np.linalg.solve(columns.T @ columns + ridge * np.eye(len(chosen)), columns.T @ rest)
            wanted = columns @ weights
            if max(np.abs(weights).max() / most, np.abs(wanted[chosen]).max() / limit) <= 1:
                return wanted
            ridge *= 10


class _Pupil:
    """A model that begins with the pooled stages, and whose rule is taught.  Vectors z are inputs as the rule sees them, x the same
    as raw inputs; labels and answers are the rule's own.
    """

    def __init__(self, spec: Spec, start: HostModel, watch: Watch) -> None:
        lesson = spec.program.teach
        assert lesson is not None
        self.spec, self.start, self.watch, self.kernel, self.model = spec, start, watch, lesson.kernel, HostModel(spec)
        settings = lesson.settings(spec.program, spec.real, spec.config_values, spec.capacities)
        self.executor = make_executor([lesson.kernel], self.model.memory, settings)

    def learn(self, z: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Learn each vector once; returns the statuses."""
        real, statuses = self.spec.real.dtype, np.zeros(len(z), np.int32)
        given = np.ascontiguousarray(z, real), np.ascontiguousarray(labels, real)
        self.executor.rows(given[0], statuses, learn=self.kernel, y=given[1])
        return statuses

    def learn_anew(self, z: np.ndarray, labels: np.ndarray) -> np.ndarray:
        self.model.memory.copy_from(self.start.memory)
        return self.learn(z, labels)

    def answers(self, z: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(rows, OUTPUTS)"""
        return np.asarray(self.model.predict(x).reshape(len(z), -1) - led(self.spec, self.start.memory, z), np.float64)

    def stores(self, z: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Which of the vectors the rule stores, (n,)."""
        return np.asarray(self.learn_anew(z, labels) == OnlineStatus.ADDED)

    def teach(self, z: np.ndarray, wanted: np.ndarray, x: np.ndarray) -> None:
        """Learn the vectors from the labels that make the answers there ``wanted``.

        With vectors that are given and room for all of them, answers are linear in the labels.  A round, n updates, is a product
        with that matrix, so GMRES finds the labels (Y. Saad, M. Schultz, 1986).  Raises UserError if no labels are accepted.
        """
        rounds = itertools.count(1)
        with self.watch.progress(None) as shown:

            def answered(labels: np.ndarray) -> np.ndarray:
                shown(next(rounds), "teaching the merged model")
                self.learn_anew(z, labels.reshape(wanted.shape))
                return self.answers(z, x).ravel()

            product = LinearOperator((wanted.size, wanted.size), matvec=answered, dtype=np.float64)
            for tolerance in TOLERANCES:
                found, _ = gmres(product, wanted.ravel(), rtol=tolerance, restart=ROUNDS, maxiter=1)
                labels = found.reshape(wanted.shape)
                if (self.learn_anew(z, labels) >= 0).all():
                    return
        raise UserError(
            f"{self.spec.name}: refuses what its devices know together, because a multiplier would leave its range; give a "
            "larger [label] max_abs"
        )

    def make_sure(self, z: np.ndarray, wanted: np.ndarray, x: np.ndarray, variance: float) -> None:
        """Learn the vectors again, until the mean of their variances is at most this one; a rule whose answers become worse stops before."""
        most = 2 * np.square(self.answers(z, x) - wanted).sum() + TOLERANCES[0] * np.square(wanted).sum()
        kept = HostModel(self.spec)
        for _ in range(REPEATS):
            if variance == np.inf or np.mean(self.model.variance(x)) <= variance:
                return
            kept.memory.copy_from(self.model.memory)
            self.learn(z, wanted)
            if not np.square(self.answers(z, x) - wanted).sum() <= most:
                self.model.memory.copy_from(kept.memory)
                return


def _classes(answers: np.ndarray) -> np.ndarray:
    """The class of each row (rows, OUTPUTS), whose function is largest; two classes share one function."""
    return np.asarray(answers.argmax(axis=1) if answers.shape[1] > 1 else (answers[:, 0] > 0).astype(int))


def _chooses(rows: int) -> np.ndarray:
    """Which rows of a recording choose: every other hundred.  The others judge."""
    return np.arange(rows) // BLOCK % 2 == 0


# -------------------------------------------------------------------------------------------------------------- stages


def pool_stages(spec: Spec, devices: Sequence[_Device], memory: Memory) -> None:
    """Write the statistics of all devices' inputs and labels to the memory, and the linear part.

    Each device counts as many samples as it has, its horizon at most.
    """
    config = spec.config

    def of(name: str) -> np.ndarray:
        return np.array([device.model.memory.field(name) for device in devices], np.float64)

    if spec.standardises:
        each = of("values_seen") if config.completes else of("observed")
        total = np.maximum(each.sum(axis=0), 1.0)
        mean = (each * of("mean")).sum(axis=0) / total
        variance = (each * (of("variance") + np.square(of("mean") - mean))).sum(axis=0) / total
        memory.field("mean")[...] = mean
        memory.field("variance")[...] = variance
        # as the device computes it
        real = spec.real.real
        floor = real(2.0**-80)
        memory.field("scale")[...] = [real(1) / np.sqrt(value + floor) for value in memory.field("variance")]
        memory.field("observed")[0] = min(int(of("observed").sum()), config.input_horizon)
        if config.completes:
            memory.field("values_seen")[...] = np.minimum(each.sum(axis=0), memory.field("observed")[0])
            memory.field("scale")[memory.field("values_seen") == 0] = 0
    if config.centers:
        counts = of("averaged")
        memory.field("center")[...] = (counts * of("center")).sum(axis=0) / max(counts.sum(), 1.0)
        memory.field("averaged")[0] = min(int(counts.sum()), config.center_horizon)
    if config.leads:
        # the mean of the devices' linear functions: beyond all vectors it goes on as they do
        slopes, scale = of("slopes"), np.ones(spec.width)
        constant = slopes[:, :, -1] + (of("center") if config.centers else 0.0)
        slopes = slopes[:, :, :-1]
        if spec.standardises:
            slopes = slopes * of("scale")[:, None]
            constant = constant + (slopes * (mean - of("mean"))[:, None]).sum(axis=2)
            scale = np.array(memory.field("scale"), np.float64)
        center = np.array(memory.field("center"), np.float64) if config.centers else 0.0
        found = np.column_stack([slopes.mean(axis=0) / np.where(scale > 0, scale, 1.0), constant.mean(axis=0) - center])
        memory.field("slopes")[...] = np.clip(found, -config.linear_limit, config.linear_limit)


def led(spec: Spec, memory: Memory, z: np.ndarray) -> np.ndarray:
    """What stages answer without the rule, at inputs as the rule sees them: (rows, OUTPUTS)."""
    found = np.zeros((len(z), spec.outputs))
    if spec.config.centers:
        found += np.array(memory.field("center"), np.float64)
    if spec.config.leads:
        slopes = np.array(memory.field("slopes"), np.float64)
        found += z @ slopes[:, :-1].T + slopes[:, -1]
    return found


# ------------------------------------------------------------------------------------------------------- linear models


def add_sums(spec: Spec, devices: Sequence[_Device]) -> HostModel:
    """Recursive least squares: the model that has learned all samples of all devices.  O(K F^3) for F features.

    Raises UserError for a state whose covariance no samples give.
    """
    model, config = HostModel(spec), spec.config
    expanded = spec.expansion is not None
    prior = float(config.prior_variance if expanded else config.start**2)
    features = model.memory.field("weights").shape[1]
    nothing, lower = np.eye(features) / prior, np.tril_indices(features)
    precision, products, origin = nothing, np.zeros((features, spec.outputs)), None
    for device in devices:
        memory = device.model.memory
        if not expanded and not memory.field("started")[0]:
            continue
        triangle = np.zeros((features, features))
        triangle[lower] = memory.field("settled" if expanded else "root")
        if expanded:
            own = _inverse(prior * np.eye(features) - (triangle + np.tril(triangle, -1).T), device.name)
        else:
            own = _inverse(triangle @ triangle.T, device.name)
        center = np.array(memory.field("origin"), np.float64)
        origin = center if origin is None else origin
        move = moved_features(config.feature_kind, center - origin, features) if config.centres else np.eye(features)
        precision = precision + move @ (own - nothing) @ move.T
        products += move @ own @ np.array(memory.field("weights"), np.float64).T
    covariance = _inverse(precision, spec.name)
    model.memory.field("weights")[...] = (covariance @ products).T
    if expanded:
        model.memory.field("settled")[...] = (prior * np.eye(features) - covariance)[lower]
    elif origin is not None:
        model.memory.field("root")[...] = np.linalg.cholesky(covariance)[lower]
        model.memory.field("origin")[...] = origin
        model.memory.field("started")[0] = 1
    return model


def _inverse(matrix: np.ndarray, where: str) -> np.ndarray:
    """Of a positive definite matrix.  Raises UserError for another."""
    try:
        factor = np.linalg.inv(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        raise UserError(
            f"{where}: what was learned is no sum of samples; leave out the device whose state is damaged"
        ) from None
    return np.asarray(factor.T @ factor)


def moved_features(kind: FeatureKind, by: np.ndarray, features: int) -> np.ndarray:
    """M with phi(x - a) = M phi(x - b), for b - a = by: inputs, then products, then 1."""
    moved, dim = np.eye(features), len(by)
    moved[:dim, -1] = by
    if kind == FeatureKind.PRODUCTS:
        pairs = [(i, j) for i in range(dim) for j in range(i, dim)]
        for row, (i, j) in enumerate(pairs, dim):
            moved[row, i] += by[j]
            moved[row, j] += by[i]
            moved[row, -1] = by[i] * by[j]
    return moved


def mean_weights(spec: Spec, devices: Sequence[_Device]) -> HostModel:
    """The function is the mean of the functions."""
    model = HostModel(spec)
    model.memory.field("weights")[...] = np.mean([device.model.memory.field("weights") for device in devices], axis=0)
    return model


# ---------------------------------------------------------------------------------------------------------- rehearsals


def rehearsed(spec: Spec, devices: Sequence[_Device], watch: Watch) -> tuple[HostModel, list[float], float]:
    """A new model that has learned what the devices answer to inputs like those that they have seen.

    Inputs are drawn with the mean and deviation of each that the device's standardiser knows, and learned by turns.  Returns the
    model; of each device, how far the mean of the others' answers at its inputs is from its own; and how far the model's are: both in
    parts of the answers' deviation.  O(K^2) answers to some hundred rows.
    """
    count, rng = max(TOLD // len(devices), 50), np.random.default_rng(0)
    count, most = min(count, TOLD_EACH), spec.input_max_abs
    drawn = []
    for device in devices:
        mean, variance = (np.array(device.model.memory.field(name), np.float64) for name in ("mean", "variance"))
        drawn.append(np.clip(mean + np.sqrt(variance) * rng.normal(size=(count, len(mean))), -most, most))
    with watch.progress(len(devices)) as shown:
        model, answers = HostModel(spec), []
        for k, device in enumerate(devices):
            shown(k, f"asking {device.name}")
            answers.append(device.answers(drawn[k]))
        foretold = []
        for k, x in enumerate(drawn):
            shown(k, f"asking the others about {devices[k].name}")
            few = x[:TOLD_OTHERS]
            others = np.mean([device.answers(few) for i, device in enumerate(devices) if i != k], axis=0)
            foretold.append(_rms(others - answers[k][: len(few)]))
    x = np.stack(drawn, axis=1).reshape(-1, drawn[0].shape[1])
    told = np.stack(answers, axis=1).reshape(len(x), -1)
    if spec.program.label_kind == "class":
        y = _classes(told)
    else:
        y = np.clip(told, -spec.config.label_limit, spec.config.label_limit)
        y = y if spec.program.label_kind == "reals" else y[:, 0]
    model.update(x, y)
    deviation = float(np.sqrt(told.var(axis=0).sum())) or 1.0
    learned = _Device("merged", model, np.zeros((0, x.shape[1]))).answers(x)
    return model, [each / deviation for each in foretold], _rms(learned - told) / deviation


# -------------------------------------------------------------------------------------------------------------- result


def merge(
    spec: Spec,
    states: Mapping[str, bytes],
    into: Spec | None = None,
    rows: tuple[np.ndarray, np.ndarray] | None = None,
    watch: Watch = QUIET,
) -> Merged:
    """One state from those of several devices.

    states: name -> a snapshot, or the bytes of the state.  into: the spec of the merged state, which may have another budget, and
    other parameters that leave the meaning of a state; without it ``spec``.  rows: a recording (x (rows, D), y) that no device has
    learned: every other hundred rows choose p, the rest judges; of monitors, which choose nothing, all rows do.

    With L vectors of K devices, N places and D inputs: O(K L (N D + N^2)) for the teacher, O(min(L, 1000) L N) for the choice, and some
    hundred rounds of N updates.  Raises UserError.
    """
    into = spec if into is None else into
    way = _way(spec, into)
    if len(states) < 2:
        raise UserError(f"{spec.name}: {len(states)} state; give two or more, one of each device")
    devices = [_Device.of(spec, name, data) for name, data in states.items()]
    merging, taught = _Merging(spec.inner, into.inner, devices, rows, watch), way == "vectors"
    if empty := [device.name for device in devices if not device.knows(way)]:
        raise UserError(f"{empty[0]}: has learned nothing yet; leave this device out")
    left, shares = None, [Share(each.name) for each in devices]
    monitor: MergedMonitor | None = None
    if taught:
        model, chosen, g = merging.taught()
        shares = _shares(merging, chosen)
        left = _rms(model.predict(merging.union).reshape(g.shape) - g) / merging.deviation
    elif way == "regimes":
        monitor = merged_monitor(spec.inner, into.inner, {each.name: each.model for each in devices}, watch)
        model, left = monitor.model, monitor.lost
        strange = [apart and each > 1 for each, apart in zip(monitor.foretold, _strange(monitor.foretold), strict=True)]
        shares = [
            replace(share, weight=part, foretold=each, disagrees=apart, regimes=own)
            for share, part, each, apart, own in zip(
                shares, monitor.parts, monitor.foretold, strange, monitor.regimes, strict=True
            )
        ]
    elif way == "samples":
        model, foretold, left = rehearsed(into.inner, devices, watch)
        shares = [
            replace(share, foretold=each, disagrees=strange)
            for share, each, strange in zip(shares, foretold, _strange(foretold), strict=True)
        ]
    else:
        model = (add_sums if way == "sums" else mean_weights)(into.inner, devices)
    outer = HostModel(into)
    for struct in into.inner.program.persistent:
        for name in struct.fields:
            outer.memory.field(name)[...] = model.memory.field(name)
    data = snapshot.as_file(outer)
    errors = None
    if rows is not None and monitor is not None:
        shares = [
            replace(share, error=alarmed(each.model, rows[0])) for share, each in zip(shares, devices, strict=True)
        ]
        errors = {"merged": alarmed(model, rows[0])}
    elif rows is not None:
        x, y = (np.asarray(each)[~_chooses(len(each))] for each in rows)
        at_rows = _Teacher.at(devices, x)
        shares = [
            replace(share, error=merging.error(own, y)) for share, own in zip(shares, at_rows.answers, strict=True)
        ]
        errors = {
            "mean of devices": merging.error(at_rows.g(0), y),
            **({"teacher": merging.error(at_rows.g(merging.power), y)} if taught else {}),
            "merged": merging.error(model.predict(x).reshape(len(x), -1), y),
        }
    vectors = int(model.memory.field("n")[0]) if taught else None
    power = merging.power if taught else None
    merged = Merged(into, data, way, tuple(shares), vectors, power, left, errors)
    return merged if monitor is None else replace(merged, regimes=monitor.found, remarks=monitor.remarks)


def alarmed(monitor: HostModel, x: np.ndarray) -> float:
    """The part of the rows (rows, D) in alarm, of a copy of the monitor, which learns on."""
    model = HostModel(monitor.spec)
    model.memory.copy_from(monitor.memory)
    statuses = model.prequential_alarms(x)[2]
    return float(np.isin(statuses, model.spec.program.alarms).mean())


def _shares(merging: _Merging, chosen: np.ndarray) -> list[Share]:
    weights = merging.teacher.weights(merging.power).mean(axis=1)
    foretold = [merging.foretold(k, merging.power) ** 0.5 / merging.deviation for k in range(len(weights))]
    return [
        Share(device.name, int((merging.owners[chosen] == k).sum()), float(weights[k]), foretold[k], strange)
        for k, (device, strange) in enumerate(zip(merging.devices, _strange(foretold), strict=True))
    ]


def _strange(foretold: Sequence[float]) -> list[bool]:
    """Which devices the others foretell far worse than the usual one.  Of two devices, each disagrees with the other as much."""
    usual = max(float(np.median(foretold)), 0.1 / STRANGE) if len(foretold) > 2 else np.inf
    return [each > STRANGE * usual for each in foretold]


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.square(errors).sum(axis=-1).mean()))


def _way(spec: Spec, into: Spec) -> str:
    """How states of a spec are merged.  Raises UserError if they cannot be."""
    monitors = spec.inner.program.name == "gmm"
    # a monitor's places are its budget, and how many pairs of them a row compares follows from it
    require_meaning(spec, into, "the merged state", PLACES if monitors else ())
    program, config = spec.inner.program, spec.inner.config
    names = {name for struct in program.persistent for name in struct.fields}
    if spec.real.is_integer:
        raise UserError(f"{spec.name}: has precision int16; merge takes models of float32 and float64")
    if not program.learns:
        raise UserError(f"{spec.name}: learns nothing on the device, so that there are no states to merge")
    if monitors:
        return "regimes"
    if program.teach is not None and program.budget is not None and {"alpha", "v"} <= names:
        return "vectors"
    if program.name in ("linear", "expansion") and not (config.standardises or config.centers or config.leads):
        if config.gain == Gain.NLMS:
            return "mean"
        if program.name == "expansion" or not config.forgets:
            return "sums"
        raise UserError(
            f"{spec.name}: forgets, so that what its devices have added up is no sum; merge models without forgetting"
        )
    if program.teach is not None and spec.standardises:
        return "samples"
    if program.name == "okfeb":
        raise UserError(
            f"{spec.name}: is a subspace, whose vectors, weights and moments only learning makes agree; merge monitors of rule gmm, which "
            "[novelty] alone makes"
        )
    raise UserError(
        f"{spec.name}: rule {spec.learning.rule} keeps neither samples nor statistics of its inputs, so that nobody knows where each device "
        "has learned; merge models with [reduction] n_max, with [input] standardise, or of rule rls, quadratic-rls, rff-rls or nlms"
    )
