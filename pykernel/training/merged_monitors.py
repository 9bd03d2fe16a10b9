"""Monitors (rule gmm) of several devices as one, which knows the regimes of all.

What a monitor keeps are statistics of the rows that it has learned, and statistics add up.  Where a device has learned fewer rows
than its horizon, they are plain sums, so that those of the merged monitor are the ones of a monitor that has learned all rows; beyond,
each device's are those of its latest rows, and so are the merged ones.  No device has learned rows in alarm, and of a large innovation only
a part.  After a new regime a device counts its earlier rows as few, and they count as few here.

Regimes.  The union of all, each with its weight, mean and root.  Moments of two regimes that become one add up exactly
(``bank.merge_roots``).  A monitor that sees all rows itself could have drawn the limits between regimes elsewhere: which row belongs to
which is not decided again.  Two regimes become one by the device's own kernels, on a memory with more places,

- if their rows, told by one Gaussian, are more surprising by fewer bits than the numbers of a second Gaussian cost,
  D (D + 3) / 4 log2(rows) (J. Rissanen, Modeling by shortest data description, 1978): then they are one regime of two devices,
- and while there are more regimes than places: always the two whose merging loses least, of all pairs of all devices.

The weights add up to at most WEIGHT_MOST rows, as on a device, so that they fade alike.  Candidates are no knowledge and are left
out.  What one device has rejected stays rejected, even where another one has learned it as normal.

Course.  Covariances of a row before and its row are sums, each about the mean of its device; about the common mean, differences of the
means come in, as they do on a device whose regimes change.  The few pairs that no device has seen, from the last row of one to the first of
the next, are left out.  Repeats are sums, too; the smallest step is the smallest one of all.

Usual surprises.  A device's surprise at a row is known only as its mean and spread, and the merged monitor is surprised otherwise: a
regime has a smaller part of all rows, and merged regimes are wider.  By how much is found on rows that are drawn from the device's own
regimes and course, and added; real rows have heavier tails than drawn ones, so the device's own mean and spread are kept beneath.
Mean and spread of these, over all devices, are the usual surprise of the merged monitor and its spread.

Threshold.  Levels count in spreads, so each device's quantile, excess and threshold are converted to the merged spreads, for that one of
both surprises that puts them higher.  Above its quantile, and above its threshold, the levels of a device fall off exponentially; the
merged quantile and threshold are those that the wanted parts of the rows of all devices exceed.  So they lie nearer to the loudest
device's than to the mean.

The machine that goes on from the state is none of those that have taught it.  So course, usual surprises and threshold count as few rows as
after a new regime on a device (``gmm.quicken``), and what was foretold wrongly is soon learned.  But an alarm stops learning from the first
row on.

All that tells about the present is that of a quiet monitor: no alarm, no blame, no candidate, level 0.  The row before is that of a device, since
only real rows have the steps of a sensor's converter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.optimize import brentq  # type: ignore[import-untyped]

from pykernel.algorithms.novelty.bank import WEIGHT_LEAST, deviations, look_around, loss_of_merging, merge_nearest
from pykernel.algorithms.novelty.course import innovate, surprise_by_course
from pykernel.algorithms.novelty.gmm import AGAIN_FOLLOWED, AGAIN_JUDGED, AGAIN_TAUGHT, JUDGED
from pykernel.algorithms.novelty.state import WEIGHT_MOST
from pykernel.algorithms.novelty.threshold import LEVEL_MOST, SCORE_MOST, SHIFT_MOST, threshold_of
from pykernel.dialect import Memory
from pykernel.engine.engines import make_executor
from pykernel.errors import UserError, option
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from pykernel.telling import Watch

POOL = 200
"""Regimes of all devices that are compared with each other at most; beyond, those that lose least are merged before others come."""
DRAWN = 400
"""Rows that are drawn from what each device knows."""
LOST = 1.0
"""Bits by which rows are more surprising because there are too few places, in the mean, from which this is told."""


@dataclass(frozen=True)
class MergedMonitor:
    """foretold: of each device, how far its regimes are from the nearest ones that another device knows, in parts of the distance from
    which a row is strange, in the mean of its rows.  parts: of all rows.  regimes: how many of each device; found: of the
    merged monitor.  lost: bits a row that the lack of places costs.  remarks: sentences.
    """

    model: HostModel
    foretold: tuple[float, ...]
    parts: tuple[float, ...]
    regimes: tuple[int, ...]
    found: int
    lost: float
    remarks: tuple[str, ...]


class Seen:
    """A monitor's memory, and what its own kernels say of rows as the rule sees them."""

    def __init__(self, spec: Spec, memory: Memory) -> None:
        self.spec, self.memory = spec, memory
        self._x = np.zeros(memory.field("before").shape, spec.real.dtype)
        self._whitened = np.zeros_like(self._x)
        self._kernels = make_executor(
            [look_around, innovate, surprise_by_course, deviations, threshold_of], memory, spec.config
        )
        self._calls: dict[str, Callable[[], object]] = {
            kernel.name: self._kernels.bound(kernel, self._x) for kernel in (look_around, innovate)
        } | {"surprise_by_course": self._kernels.bound(surprise_by_course)}

    def of(self, name: str) -> np.ndarray:
        """A field in float64."""
        return np.array(self.memory.field(name), np.float64)

    def number(self, name: str) -> float:
        return float(self.memory.field(name)[0])

    @property
    def normal(self) -> np.ndarray:
        """Places of the regimes that are not rejected."""
        known = int(self.number("known"))
        return np.flatnonzero(self.memory.field("rejected")[:known] == 0)

    @property
    def rejected(self) -> np.ndarray:
        known = int(self.number("known"))
        return np.flatnonzero(self.memory.field("rejected")[:known] != 0)

    @property
    def threshold(self) -> float:
        return float(self._kernels.call(threshold_of))

    def look(self, x: np.ndarray) -> float:
        """The squared distance of a row from the nearest regime, in parts of that from which a row is strange.  O(K D^2)."""
        self._x[...] = x
        self._calls["look_around"]()
        return self.number("distance") / float(self.spec.config.outlying)

    def forbids(self, x: np.ndarray) -> bool:
        """Whether a row is of a regime that was rejected: not only within its reach."""
        self.look(x)
        if not self.number("forbidden"):
            return False
        self._x[...] = x
        for k in self.rejected:
            self._kernels.call(deviations, int(k), self._x, self._whitened)
            if np.square(self._whitened, dtype=np.float64).sum() <= self.spec.config.outlying:
                return True
        return False

    def by_bank(self, rows: np.ndarray) -> np.ndarray:
        """Surprises, (rows,).  O(rows K D^2)."""
        found = np.zeros(len(rows))
        for i, x in enumerate(rows):
            self.look(x)
            found[i] = self.memory.field("surprise")[1]
        return found

    def by_course(self, pairs: np.ndarray) -> np.ndarray:
        """Surprises of rows after rows, (rows,), whatever the bank says.  pairs: (rows, 2 D).  O(rows D^2)."""
        before, found, dim = self.memory.field("before").copy(), np.zeros(len(pairs)), len(self._x)
        for i, pair in enumerate(pairs):
            self.memory.field("before")[...], self._x[...] = pair[:dim], pair[dim:]
            self._calls["innovate"]()
            self.memory.field("surprise")[1] = np.inf
            self._calls["surprise_by_course"]()
            found[i] = self.memory.field("surprise")[0]
        self.memory.field("before")[...] = before
        return found

    @cached_property
    def drawn(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows like those of the regimes, and rows after rows like those of the course.

        Of the course, regimes are not told apart: its joint Gaussian has the moments of all of them together.
        """
        rng, dim = np.random.default_rng(0), len(self._x)
        weights, noise = self.of("weights")[self.normal], rng.normal(size=(DRAWN, 3 * dim))
        places = self.normal[np.searchsorted(np.cumsum(weights)[:-1] / weights.sum(), rng.random(DRAWN), "right")]
        means, roots = self.of("means"), [unpacked(root, dim) for root in self.of("roots")]
        rows = np.stack([means[k] + noise[i, :dim] @ roots[k] for i, k in enumerate(places)])
        pairs = np.tile(self.of("middle"), 2) + noise[:, dim:] @ unpacked(self.of("joint"), 2 * dim)
        most = self.spec.input_max_abs
        return np.clip(rows, -most, most), np.clip(pairs, -most, most)


def unpacked(packed: np.ndarray, n: int) -> np.ndarray:
    """An upper triangle (n, n), from its rows from the diagonal on."""
    triangle = np.zeros((n, n))
    triangle[np.triu_indices(n)] = packed
    return triangle


def merged_monitor(spec: Spec, into: Spec, models: Mapping[str, HostModel], watch: Watch) -> MergedMonitor:
    """One monitor from several, all of one spec.  O(L^2 D^3) for L regimes of all devices, and O(devices DRAWN K D^2).

    Raises UserError for a device that has not learned enough, and where there is no room for what was rejected.
    """
    names, config = list(models), spec.config
    devices = [Seen(spec, model.memory) for model in models.values()]
    for name, device in zip(names, devices, strict=True):
        watched, rows = int(device.number("watched")), int(device.number("surprised"))
        if watched < config.warmup or rows < JUDGED or not device.number("taught"):
            raise UserError(f"{name}: is still in its warm-up, after {watched} rows; leave this device out")
    remarks = [
        f"{name} is in alarm: of that, nothing is taken over; NAME_acknowledge makes it a regime, NAME_reject one that never may be normal"
        for name, device in zip(names, devices, strict=True)
        if device.number("episode")
    ]
    # the row before is a usual one
    last = min(devices, key=lambda device: device.look(device.of("before")))
    model = HostModel(into)
    for name in (slot.name for slot in last.memory.layout.slots if slot.struct == "Stages"):
        model.memory.field(name)[...] = last.memory.field(name)
    model.memory.field("frozen")[0] = 0
    model.memory.field("before")[...] = last.memory.field("before")
    add_courses(devices, model)
    with watch.progress(1) as shown:
        shown(0, "comparing regimes")
        lost, dropped = add_banks(spec, devices, model)
    remarks += [
        f"a regime that {names[k]} has learned as normal is one that another device has rejected; it stays rejected"
        for k in dropped
    ]
    merged = Seen(into, model.memory)
    add_thresholds(devices, merged)
    found, places = int(merged.number("known")), into.capacities["COMPONENTS"]
    if lost > LOST:
        remarks.append(
            f"{places} places are too few for the regimes of all devices: rows are {lost:.1f} bits more surprising than to all regimes, and subtle faults are missed; "
            f"let {option('into')} name a spec with more [learning] components"
        )
    weights = [float(device.of("weights")[device.normal].sum()) for device in devices]
    return MergedMonitor(
        model,
        tuple(foretold(devices, k) for k in range(len(devices))),
        tuple(each / sum(weights) for each in weights),
        tuple(int(device.number("known")) for device in devices),
        found,
        lost,
        tuple(remarks),
    )


def foretold(devices: Sequence[Seen], k: int) -> float:
    """How far the regimes of a device are from what the others know, in the mean of its rows: 1, strange to all of them."""
    own = devices[k]
    means, weights = own.of("means")[own.normal], own.of("weights")[own.normal]
    far = [min(other.look(mean) for i, other in enumerate(devices) if i != k) for mean in means]
    return float(weights @ np.sqrt(far) / weights.sum())


# --------------------------------------------------------------------------------------------------------------- bank


@dataclass
class Pool:
    """Regimes of all devices on a memory of more places than a device's, on which the device's own kernels merge them."""

    spec: Spec
    least_step: np.ndarray
    losses: np.ndarray = field(init=False)
    lost: float = 0.0

    def __post_init__(self) -> None:
        capacities = self.spec.capacities | {"COMPONENTS": POOL}
        self.memory = self.spec.program.memory(self.spec.real, capacities)
        self.memory.field("least_step")[...] = self.least_step
        self.kernels = make_executor([loss_of_merging, merge_nearest], self.memory, self.spec.config)
        self.losses = np.full((POOL, POOL), np.inf)

    @property
    def count(self) -> int:
        return int(self.memory.field("known")[0])

    def places(self, rejected: bool) -> np.ndarray:
        return np.flatnonzero((self.memory.field("rejected")[: self.count] != 0) == rejected)

    def take(self, device: Seen, k: int) -> None:
        """Take a regime of a device in.  O(POOL D^3)."""
        rejected = bool(device.memory.field("rejected")[k])
        while self.count == POOL:
            self.merge(self.best(rejected)[0])
        for name in ("means", "roots", "counts", "weights", "rejected"):
            self.memory.field(name)[self.count] = device.memory.field(name)[k]
        self.memory.field("known")[0] += 1
        self.compare(self.count - 1)

    def compare(self, new: int) -> None:
        """Losses of merging a regime with each other of its kind."""
        self.losses[new, :] = self.losses[:, new] = np.inf
        for k in self.places(bool(self.memory.field("rejected")[new])):
            if k != new:
                self.losses[max(k, new), min(k, new)] = self.kernels.call(loss_of_merging, int(k), int(new))

    def best(self, rejected: bool) -> tuple[tuple[int, int], float]:
        """The two regimes that lose least, and by how many bits more than a second Gaussian costs."""
        places = self.places(rejected)
        own = self.losses[np.ix_(places, places)]
        second, first = (int(places[i]) for i in np.unravel_index(np.argmin(own), own.shape))
        dim, weights = len(self.least_step), self.memory.field("weights")
        rows = max(2.0, float(weights[first] + weights[second]))
        return (first, second), float(self.losses[second, first]) - dim * (dim + 3) / 4 * np.log2(rows)

    def merge(self, pair: tuple[int, int]) -> None:
        """Make two regimes one; the last one moves to the place that is free then."""
        first, second = pair
        if not self.memory.field("rejected")[first]:
            self.lost += float(self.losses[second, first])
        self.memory.field("merge_first")[0], self.memory.field("merge_second")[0] = first, second
        free, end = int(self.kernels.call(merge_nearest)), self.count - 1
        for name in ("means", "roots", "counts", "weights", "rejected"):
            values = self.memory.field(name)
            values[free] = values[end]
            values[end] = 0
        self.losses[free, :free], self.losses[free + 1 : end, free] = (
            self.losses[end, :free],
            self.losses[end, free + 1 : end],
        )
        self.losses[end, :] = self.losses[:, end] = np.inf
        self.memory.field("known")[0] = end
        self.compare(first)

    def reduce(self, rejected: bool, room: int) -> None:
        """Merge what is the same, and what is more than the room."""
        while len(places := self.places(rejected)) > 1:
            pair, more = self.best(rejected)
            if more > 0 and len(places) <= room:
                break
            self.merge(pair)


def add_banks(spec: Spec, devices: Sequence[Seen], model: HostModel) -> tuple[float, list[int]]:
    """Regimes of all devices: how many bits a row is more surprising because there are too few places, and numbers of devices
    with a regime that another one has rejected.
    """
    places = model.spec.capacities["COMPONENTS"]
    pool, dropped = Pool(spec, model.memory.field("least_step")), []
    for k, device in enumerate(devices):
        others = [other for i, other in enumerate(devices) if i != k and len(other.rejected)]
        for place in range(int(device.number("known"))):
            mean = device.memory.field("means")[place]
            if place in device.normal and any(other.forbids(mean) for other in others):
                dropped.append(k)
            else:
                pool.take(device, place)
    if not len(pool.places(False)):
        raise UserError(
            f"{spec.name}: each regime of each device is one that another device has rejected; leave devices out"
        )
    pool.reduce(True, POOL)
    rejected = len(pool.places(True))
    if rejected >= places:
        raise UserError(
            f"{spec.name}: the devices have rejected {rejected} regimes, and beside a normal one there is room for {places - 1}; "
            f"let {option('into')} name a spec with more [learning] components"
        )
    pool.reduce(False, places - rejected)
    weights, bank = np.array(pool.memory.field("weights"), np.float64), model.memory
    normal = pool.places(False)
    rows = weights[normal].sum()
    share = min(1.0, WEIGHT_MOST / rows)
    order = [*normal[np.argsort(-weights[normal], kind="stable")], *pool.places(True)]
    for to, k in enumerate(order):
        for name in ("means", "roots", "counts", "rejected"):
            bank.field(name)[to] = pool.memory.field(name)[k]
        bank.field("weights")[to] = max(share * weights[k], float(WEIGHT_LEAST.value(spec.real)))
    bank.field("known")[0] = len(order)
    return pool.lost / rows, sorted(set(dropped))


# ------------------------------------------------------------------------------------------------------------- course


def parts_by(devices: Sequence[Seen], count: str) -> np.ndarray:
    """Part of the rows that each device has, (K,)."""
    rows = np.array([device.number(count) for device in devices])
    return np.asarray(rows / rows.sum())


def together(devices: Sequence[Seen], count: str, most: int) -> int:
    return int(min(sum(device.number(count) for device in devices), most))


def add_courses(devices: Sequence[Seen], model: HostModel) -> None:
    """The moments of all pairs of rows, the part of repeats and the smallest steps.  O(K D^3)."""
    memory, config, parts = model.memory, model.spec.config, parts_by(devices, "followed")
    middles = np.stack([device.of("middle") for device in devices])
    middle, dim = parts @ middles, middles.shape[1]
    # roots below each other, and the differences of the means: a triangle of them all needs no squares, and is as wide as they are
    stacked: list[np.ndarray] = [
        np.sqrt(p) * unpacked(each.of("joint"), 2 * dim) for p, each in zip(parts, devices, strict=True)
    ]
    stacked.append(np.sqrt(parts)[:, None] * np.tile(middles - middle, 2))
    triangle = np.asarray(np.linalg.qr(np.concatenate(stacked), mode="r"))
    triangle *= np.where(np.diag(triangle) < 0, -1.0, 1.0)[:, None]
    memory.field("middle")[...] = middle
    memory.field("joint")[...] = triangle[np.triu_indices(2 * dim)]
    memory.field("repeats")[...] = np.clip(parts @ np.stack([device.of("repeats") for device in devices]), 0, 1)
    steps = np.stack([device.memory.field("least_step") for device in devices])
    least = np.where(steps > 0, steps, np.inf).min(axis=0)
    memory.field("least_step")[...] = np.where(np.isfinite(least), least, 0)
    memory.field("followed")[0] = together(devices, "followed", AGAIN_FOLLOWED)
    memory.field("watched")[0] = together(devices, "watched", config.watched_most)


# ---------------------------------------------------------------------------------------------------------- threshold


def add_thresholds(devices: Sequence[Seen], merged: Seen) -> None:
    """What surprises are usual for the merged monitor, and its threshold, from those of all devices."""
    memory, config, parts = merged.memory, merged.spec.config, parts_by(devices, "surprised")
    surprises = np.stack([expected(device, merged) for device in devices])
    usual = np.einsum("k,kir->i", parts, surprises) / surprises.shape[2]
    above = np.square(np.maximum(surprises - usual[:, None], 0)).mean(axis=2)
    spread = 2 * parts @ above
    most = float(SCORE_MOST.value(merged.spec.real))
    memory.field("usual")[...] = np.clip(usual, -most, most)
    memory.field("spread")[...] = spread
    memory.field("surprised")[0] = together(devices, "surprised", AGAIN_JUDGED)

    louder = surprises.mean(axis=2) - usual
    scale = np.sqrt(np.stack([device.of("spread") for device in devices]) / np.maximum(spread, 1e-30))
    offset = louder / np.sqrt(np.maximum(spread, 1e-30))

    def converted(levels: Sequence[float]) -> np.ndarray:
        return np.asarray((scale * np.array(levels)[:, None] + offset).max(axis=1))

    taught, upper, rate = parts_by(devices, "taught"), float(config.upper), float(config.alarm_rate)
    excess = np.maximum(scale.max(axis=1) * [device.number("excess") for device in devices], config.excess_least)
    quantiles = converted([device.number("quantile") for device in devices])
    quantile = exceeded(taught, quantiles, excess, upper)
    mean_excess = beyond(taught, quantiles, excess, upper, quantile)
    wanted = exceeded(taught, converted([device.threshold for device in devices]), excess, rate)
    level = float(LEVEL_MOST.value(merged.spec.real))
    quantile = min(max(quantile, -level), level)
    memory.field("quantile")[0] = quantile
    memory.field("excess")[0] = min(max(mean_excess, config.excess_least), 2 * level)
    memory.field("taught")[0] = together(devices, "taught", AGAIN_TAUGHT)
    # without a shift the threshold is q + c e
    shift = (wanted - merged.threshold) / merged.number("excess")
    memory.field("shift")[0] = min(max(shift, -0.7 * config.tail), float(SHIFT_MOST.value(merged.spec.real)))


def expected(device: Seen, merged: Seen) -> np.ndarray:
    """How surprising a device's rows are to the merged monitor, by the course and by the bank, (2, DRAWN)."""
    rows, pairs = device.drawn
    found = []
    for i, (own, there) in enumerate(
        [(device.by_course(pairs), merged.by_course(pairs)), (device.by_bank(rows), merged.by_bank(rows))]
    ):
        usual, spread = device.of("usual")[i], device.of("spread")[i]
        above = 2 * np.square(np.maximum(own - own.mean(), 0)).mean()
        # drawn rows with the mean and the spread that the device's real ones had
        found.append(usual + (own - own.mean()) * np.sqrt(spread / max(above, 1e-30)) + (there - own))
    return np.stack(found)


def exceeded(parts: np.ndarray, levels: np.ndarray, excess: np.ndarray, rate: float) -> float:
    """The level that a part ``rate`` of all rows exceeds, if each device's rows exceed its own level at this rate."""

    def more(level: float) -> float:
        return float(parts @ np.minimum(1.0, rate * np.exp(np.minimum((levels - level) / excess, 700.0))) - rate)

    low, high = float(levels.min()), float(levels.max())
    return high if more(low) <= 0 or low == high else float(brentq(more, low, high))


def beyond(parts: np.ndarray, levels: np.ndarray, excess: np.ndarray, rate: float, level: float) -> float:
    """By how much the rows that exceed a level exceed it, in the mean."""
    certain = levels + excess * np.log(rate)  # below, all rows of a device are above it
    tail = rate * np.exp(np.minimum((levels - level) / excess, -np.log(rate)))
    total = excess * tail + np.maximum(certain - level, 0)
    return float(parts @ total / (parts @ tail))
