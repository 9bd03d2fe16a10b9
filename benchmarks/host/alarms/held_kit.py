"""What the held-out plants are made of: sensors, faults in them, and how a fault finds its place.

A plant is a function that walks through a simulated machine and hands the true values to its sensors.
All randomness is drawn before the walk.  A run with faults and a run without them see the same weather.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

import numpy as np
from scipy.signal import lfilter

from benchmarks.host.alarms.stream import Fault, Stream

SOUND_FIRST = 2000  # rows at the start that are always sound; each sound regime is visited in them
GAP = 400  # the fewest sound rows between two faults
SHARE = 0.039  # the most rows after the first sound ones that may be faulty


class Sensor(NamedTuple):
    """One sensor: its name with unit, its noise, its quantisation step, its tails (Student's degrees of freedom)."""

    name: str
    noise: float
    step: float = 0.0
    tails: float = 0.0


class Plan(NamedTuple):
    """A fault that can happen to a plant; its size is drawn between a hard one and an easy one."""

    kind: str
    how: str  # offset, gain, creep, stuck, noise; process or slow: the machine itself
    channels: tuple[str, ...]  # the sensor at fault, and then those that follow it
    low: float  # physical units of the sensor; for "stuck": how much the sound sensor must move at least
    high: float
    says: str
    where: tuple[str, float, float] | None = None  # this sensor must mostly be in this range for the fault to be seen
    least: int = 60  # rows that it lasts at least
    tail: int = 0  # rows at its end in which the machine recovers
    sign: int = 0  # -1, 1; 0: either
    loop: bool = False  # a controller reads the sensor, or the machine itself has the fault


class Event(NamedTuple):
    """A planned fault with its size, in the rows first, .., last - 1 (which include its tail)."""

    plan: Plan
    first: int
    last: int
    size: float


class Plant(NamedTuple):
    """A machine: its walk, its sensors and what can happen to it."""

    name: str
    kind: str
    run: Callable[[Sim], None]
    sensors: tuple[Sensor, ...]
    plans: tuple[Plan, ...]

    def channel(self, name: str) -> int:
        return [sensor.name.split()[0] for sensor in self.sensors].index(name)


def _maker(how: str, says: str):
    def make(channels: str, low: float, high: float, kind: str = "", **more) -> Plan:
        names = tuple(channels.split())
        more.setdefault("least", 100 if how == "creep" else 60)
        return Plan(kind or f"{how} {names[0]}", how, names, low, high, says, **more)

    return make


offset, gain = _maker("offset", "jump"), _maker("gain", "jump")
creep, stuck, noisy = _maker("creep", "drift"), _maker("stuck", "stuck"), _maker("noise", "noise")


def process(name: str, says: str, channels: str, low: float, high: float, *, slow: bool = False, **more) -> Plan:
    """A fault of the machine and not of a sensor; the walk reads its size as ``sim.upset[name]``."""
    how = "slow" if slow else "process"
    return Plan(name, how, tuple(channels.split()), low, high, says, sign=1, loop=True, **more)


def generator(seed: int, name: str, part: int) -> np.random.Generator:
    return np.random.default_rng([seed, crc32(name.encode()), part])


class Sim:
    """One run of a plant: what the walk draws from, writes to, and is upset by."""

    def __init__(self, plant: Plant, seed: int, rows: int, events: tuple[Event, ...] = ()):
        self.plant, self.rows = plant, rows
        self.rng = generator(seed, plant.name, 0)
        wide = (rows, len(plant.sensors))
        self.out = np.zeros(wide)
        noise_rng, extra_rng = generator(seed, plant.name, 1), generator(seed, plant.name, 2)
        noise = np.empty(wide)
        for c, sensor in enumerate(plant.sensors):
            plain = noise_rng.standard_t(sensor.tails, rows) if sensor.tails else noise_rng.normal(size=rows)
            noise[:, c] = sensor.noise * plain
        extra = extra_rng.normal(size=wide)
        factor, hold = np.ones(wide), np.zeros(wide, bool)
        self.upset = {plan.kind: np.zeros(rows) for plan in plant.plans if plan.how in ("process", "slow")}
        for event in events:
            plan, size = event.plan, event.size
            span = slice(event.first, event.last - plan.tail)
            ramp = np.linspace(0.0, 1.0, span.stop - span.start + 1)[1:]
            if plan.how in ("process", "slow"):
                self.upset[plan.kind][span] = size * (ramp if plan.how == "slow" else 1.0)
                continue
            c = plant.channel(plan.channels[0])
            if plan.how == "offset":
                noise[span, c] += size
            elif plan.how == "gain":
                factor[span, c] *= 1.0 + size
            elif plan.how == "creep":
                noise[span, c] += size * ramp
            elif plan.how == "noise":
                noise[span, c] += size * extra[span, c]
            else:
                hold[span, c] = True
        self._noise, self._factor, self._hold = noise, factor, hold
        self._lists = None

    def record(self, channel: str, true: np.ndarray) -> np.ndarray:
        """What a sensor shows of true values that are known for all rows at once."""
        c = self.plant.channel(channel)
        shown, step = (true + self._noise[:, c]) * self._factor[:, c], self.plant.sensors[c].step
        shown = np.round(shown / step) * step if step else shown
        source = np.where(self._hold[:, c], 0, np.arange(self.rows))
        self.out[:, c] = shown[np.maximum.accumulate(source)]
        return self.out[:, c]

    def read(self, t: int, c: int, true: float) -> float:
        """What sensor c shows in row t, for walks in which a controller reads it."""
        if self._lists is None:
            parts = (self._noise, self._factor, self._hold)
            self._lists = [part.T.tolist() for part in parts]
        noise, factor, hold = self._lists
        if hold[c][t]:
            shown = self.out[t - 1, c]
        else:
            shown, step = (true + noise[c][t]) * factor[c][t], self.plant.sensors[c].step
            shown = round(shown / step) * step if step else shown
        self.out[t, c] = shown
        return float(shown)

    def regimes(self, count: int, dwell: tuple[int, int], weights=None) -> np.ndarray:
        """Which regime runs in each row.  The first rows visit all of them, for there the machine is commissioned."""
        rng, found = self.rng, []
        short = max(int(SOUND_FIRST * 0.95 / (2 * count)), 20)
        for _ in range(2):
            for regime in rng.permutation(count):
                found += [int(regime)] * int(short * rng.uniform(0.6, 1.0))
        chance = np.ones(count) if weights is None else np.asarray(weights, float)
        while len(found) < self.rows:
            others = np.where(np.arange(count) == found[-1], 0.0, chance) if count > 1 else chance
            regime = int(rng.choice(count, p=others / others.sum()))
            found += [regime] * int(np.exp(rng.uniform(*np.log(dwell))))
        return np.array(found[: self.rows])

    def wander(self, tau: float, sigma: float) -> np.ndarray:
        """An autoregressive process with this time constant in rows and this standard deviation."""
        keep = float(np.exp(-1.0 / tau))
        draws = self.rng.normal(size=self.rows) * sigma * np.sqrt(1.0 - keep**2)
        return lfilter([1.0], [1.0, -keep], draws)


def lag(values: np.ndarray, tau: float, start: float | None = None) -> np.ndarray:
    """First-order lag with this time constant in rows."""
    keep = float(np.exp(-1.0 / tau))
    begin = float(values[0]) if start is None else start
    return lfilter([1.0 - keep], [1.0, -keep], values, zi=[keep * begin])[0]


def _fits(plan: Plan, plant: Plant, clean: np.ndarray, first: int, last: int) -> bool:
    if plan.where is not None:
        name, low, high = plan.where
        seen = clean[first : last - plan.tail, plant.channel(name)]
        if np.mean((seen >= low) & (seen <= high)) < 0.8:
            return False
    if plan.how == "stuck":
        seen = clean[first - 1 : last, plant.channel(plan.channels[0])]
        return bool(np.sqrt(np.mean((seen[1:] - seen[0]) ** 2)) >= plan.low and np.any(seen[1:20] != seen[0]))
    return True


def place(plant: Plant, seed: int, rows: int, clean: np.ndarray) -> tuple[Event, ...]:
    """Eight or more faults for a stream: at least one of each word, of mixed sizes, where they can be seen."""
    rng = generator(seed, plant.name, 3)
    for _ in range(50):
        placed = _attempt(plant, rng, rows, clean)
        if len(placed) >= 8 and {plan.says for plan, _, _ in placed} == {plan.says for plan in plant.plans}:
            break
    else:
        raise ValueError(f"no room for eight faults in {plant.name}")
    events = []
    ranks = (rng.permutation(len(placed)) + rng.uniform(size=len(placed))) / len(placed)
    for (plan, first, last), rank in zip(placed, ranks, strict=True):
        size = plan.low * (plan.high / plan.low) ** rank
        sign = plan.sign or int(rng.choice([-1, 1]))
        events.append(Event(plan, first, last, float(size * sign)))
    return tuple(sorted(events, key=lambda event: event.first))


def _attempt(plant: Plant, rng: np.random.Generator, rows: int, clean: np.ndarray) -> list[tuple[Plan, int, int]]:
    """Choose faults and their rows, the words first, until the share of faulty rows is used up."""
    order = [plant.plans[i] for i in rng.permutation(len(plant.plans))]
    words = {plan.says: plan for plan in order}
    queue = list(words.values()) + [plan for plan in order if plan not in words.values()]
    budget = int(SHARE * (rows - SOUND_FIRST))
    most = max(2, -(-8 // len(plant.sensors)))  # faults of one sensor
    placed: list[tuple[Plan, int, int]] = []
    for i, plan in enumerate(queue):
        others = max(7 - len(placed), 0)
        free = budget - sum(last - first for _, first, last in placed) - plan.least - plan.tail
        same = sum(plan.channels[0] == other.channels[0] for other, _, _ in placed)
        if free < 60 * others or same >= most:
            continue
        spare = max(free - sum(later.least + later.tail for later in queue[i + 1 : i + 1 + others]), 0)
        longest = min(spare, 300 - plan.least - plan.tail, 120 if plan.how in ("creep", "slow") else 60)
        for _ in range(2000):
            lasts = plan.least + plan.tail + int(rng.uniform() ** 2 * longest)
            first = int(rng.integers(SOUND_FIRST + 200, rows - lasts - 100))
            if any(first < end + GAP and first + lasts + GAP > begin for _, begin, end in placed):
                continue
            if _fits(plan, plant, clean, first, first + lasts):
                placed.append((plan, first, first + lasts))
                break
    return placed


def simulate(plant: Plant, seed: int, rows: int, events: tuple[Event, ...] = ()) -> np.ndarray:
    """The rows of one run, (rows, D), float32."""
    sim = Sim(plant, seed, rows, events)
    plant.run(sim)
    return sim.out.astype(np.float32)


def stream(plant: Plant, seed: int, rows: int, events: tuple[Event, ...] = ()) -> Stream:
    """One run as a stream, with its faults as labels."""
    faults = tuple(
        Fault(e.plan.kind, e.first, e.last, tuple(map(plant.channel, e.plan.channels)), e.plan.says) for e in events
    )
    return Stream(f"{plant.name}/{seed}", plant.kind, simulate(plant, seed, rows, events), faults)
