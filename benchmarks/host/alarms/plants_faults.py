"""Faults of sensors and machines, and where they lie in a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.host.alarms.plants_draws import SETTLING, Plant, follow
from benchmarks.host.alarms.stream import Fault

GAP = 200  # rows without a fault between two faults, at least
COUNTS = 300  # so many rows of a lasting change count as a fault
TRIES = 40
LEAST = 0.7  # a fault changes a sensor by this part of what is new in it, at least, as a root mean square


class Sensors(NamedTuple):
    """What is usual for each sensor, (D,)."""

    spread: np.ndarray  # standard deviation, robust
    new: np.ndarray  # standard deviation of what the other sensors do not say; no less than half a count

    @classmethod
    def of(cls, plant: Plant, rows: np.ndarray) -> Sensors:
        low, high = np.quantile(rows, [0.25, 0.75], axis=0)
        count = np.array([sensor.count for sensor in plant.sensors])
        whole = np.maximum(rows.std(axis=0), count / 2)
        spread = np.where(high > low, np.maximum(0.741 * (high - low), count / 2), whole)
        covariance = np.cov((rows / whole).T).reshape(len(count), -1) + 1e-6 * np.eye(len(count))
        alone = whole / np.sqrt(np.diag(np.linalg.inv(covariance)))
        return cls(spread, np.maximum(np.minimum(alone, spread), count / 2))


class Case(NamedTuple):
    """A fault in the making: at the rows first, .., last - 1 of ``rows`` (T, D), which have no faults yet.  ``other``: the
    same rows in a regime that the machine normally never has."""

    rng: np.random.Generator
    plant: Plant
    usual: Sensors
    rows: np.ndarray
    other: np.ndarray
    first: int
    last: int
    size: str

    def much(self, channel: int) -> float:
        """An amount in the sensor's unit.  A small one is large beside what the other sensors do not say, and stays within
        the sensor's range if they say nearly everything."""
        new, spread = self.usual.new[channel], self.usual.spread[channel]
        if self.size == "small":
            return float(min(self.rng.uniform(3, 6) * new, self.rng.uniform(0.7, 1.2) * spread))
        return float(self.rng.uniform(*{"medium": (1.0, 2.0), "large": (3.0, 6.0)}[self.size]) * spread)

    def degree(self, small: float, medium: float, large: float) -> float:
        return {"small": small, "medium": medium, "large": large}[self.size] * float(self.rng.uniform(0.8, 1.25))

    def sign(self) -> float:
        return float(self.rng.choice([-1.0, 1.0]))

    def before(self, channel: int) -> np.ndarray:
        """What the sensor said in the last rows."""
        return self.rows[max(self.first - 500, 0) : self.first, channel]


Change = Callable[[Case, int, np.ndarray], np.ndarray]


def jump(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return x + case.sign() * case.much(channel)


def drift(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return x + case.sign() * case.much(channel) * np.arange(1, len(x) + 1) / len(x)


def stuck(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return np.full(len(x), case.rows[case.first - 1, channel])


def stuck_with_dither(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return stuck(case, channel, x) + case.plant.sensors[channel].count * case.rng.integers(-1, 2, len(x))


def noise(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return x + case.much(channel) * case.rng.standard_normal(len(x))


def lost_correlation(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    """The sensor says what it said at another time."""
    start = int(case.rng.integers(0, len(case.rows) - len(x)))
    while abs(start - case.first) < 1000:
        start = int(case.rng.integers(0, len(case.rows) - len(x)))
    return case.rows[start : start + len(x), channel]


def gain(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    """More or less sensitive, about the middle of the last rows."""
    middle = np.median(case.before(channel))
    return middle + (x - middle) * case.degree(1.5, 2.2, 4.0) ** case.sign()


def spikes(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    hit = case.rng.random(len(x)) < case.rng.uniform(0.05, 0.2)
    return x + hit * case.rng.choice([-1.0, 1.0], len(x)) * 2 * case.much(channel)


def slow_response(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return follow(np.concatenate([case.before(channel)[-1:], x]), case.degree(5, 15, 50))[1:]


def missing_pulses(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    """Every now and then some rows at the sensor's low end."""
    starts = case.rng.random(len(x)) < 1 / 12
    gone = np.convolve(starts, np.ones(int(case.rng.integers(2, 7))))[: len(x)] > 0
    return np.where(gone, np.quantile(case.before(channel), 0.01), x)


def drop_to_zero(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return np.zeros(len(x))


def oscillation(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    return x + case.much(channel) * np.sin(2 * np.pi * np.arange(len(x)) / case.rng.uniform(4, 40))


def clipped(case: Case, channel: int, x: np.ndarray) -> np.ndarray:
    """An amplifier reaches its limit within the sensor's range."""
    return np.minimum(x, np.quantile(case.before(channel), case.rng.uniform(0.3, 0.8)))


UNSEEN, LASTING = "unseen regime", "lasting change"


class Way(NamedTuple):
    """How a kind of fault is made, and what should be said of it."""

    change: Change | None  # None: all sensors change
    says: str
    sized: bool = True
    most: int = 1  # sensors at once
    digital: bool = False  # sensible for a contact


WAYS: dict[str, Way] = {
    "jump": Way(jump, "jump", most=3),
    "drift": Way(drift, "drift", most=3),
    "stuck": Way(stuck, "stuck", sized=False, digital=True),
    "stuck with dither": Way(stuck_with_dither, "stuck", sized=False),
    "noise": Way(noise, "noise"),
    "lost correlation": Way(lost_correlation, "", sized=False, digital=True),
    "gain": Way(gain, ""),
    "spikes": Way(spikes, ""),
    "slow response": Way(slow_response, ""),
    "missing pulses": Way(missing_pulses, "", sized=False, digital=True),
    "drop to zero": Way(drop_to_zero, "", sized=False, digital=True),
    "oscillation": Way(oscillation, "", most=3),
    "clipped": Way(clipped, "", sized=False),
    UNSEEN: Way(None, "regime"),
}


def places(rng: np.random.Generator, plant: Plant, rows: int) -> tuple[list[tuple[int, int]], set[int]]:
    """First and last rows of faults, in time order, after the settling and at least GAP apart; which are lasting changes."""
    shortest, longest = (250, 900) if plant.dense else (40, 300)
    changes = 2 * plant.lasting
    left = int(rows * (rng.uniform(0.32, 0.36) if plant.dense else rng.uniform(0.022, 0.03))) - changes * COUNTS
    lengths: list[int] = []
    while left >= shortest:
        lengths.append(min(left, int(np.exp(rng.uniform(*np.log([shortest, longest]))))))
        left -= lengths[-1]
    at = {(1 + i) * (len(lengths) + changes) // (1 + changes) for i in range(changes)}
    for number in sorted(at):
        lengths.insert(number, COUNTS)
    free = rows - SETTLING - sum(lengths) - GAP * (len(lengths) + 1)
    gaps = GAP + (free * rng.dirichlet(np.full(len(lengths) + 1, 1.5))).astype(int)
    firsts = SETTLING + np.cumsum(gaps[:-1]) + np.concatenate([[0], np.cumsum(lengths[:-1])])
    return [(int(first), int(first) + length) for first, length in zip(firsts, lengths, strict=True)], at


def in_another_regime(case: Case) -> np.ndarray:
    """The way to the regime that the machine never has, and back, within the rows of the fault: (last - first, D)."""
    passed = np.arange(1, case.last - case.first + 1)
    part = case.degree(0.4, 0.7, 1.0) * (1 - np.exp(-np.minimum(passed, passed[::-1]) / 6))
    usual = case.rows[case.first : case.last]
    return usual + part[:, None] * (case.other[case.first : case.last] - usual)


def attempt(case: Case, called: str) -> tuple[np.ndarray, Fault] | None:
    """Rows of a fault (last - first, D), and the fault; None if not every drawn sensor would show it."""
    way, usual = WAYS[called], case.rows[case.first : case.last]
    dim = usual.shape[1]
    if way.change is None:
        channels = list(range(dim))
        found = in_another_regime(case)
    else:
        many = int(case.rng.integers(2, way.most + 1)) if way.most > 1 and case.rng.random() < 1 / 3 else 1
        channels = sorted(int(c) for c in case.rng.choice(dim, min(many, dim), replace=False))
        if any(case.plant.sensors[c].digital for c in channels) and not way.digital:
            return None
        if way.change is lost_correlation and np.any(case.usual.new[channels] > 0.6 * case.usual.spread[channels]):
            return None  # the other sensors know little of this one: nothing would show the fault
        found = usual.copy()
        for c in channels:
            found[:, c] = way.change(case, c, usual[:, c])
    changed = np.sqrt(np.mean((case.plant.read(found) - case.plant.read(usual)) ** 2, axis=0))
    shows = (changed >= LEAST * case.usual.new)[channels]
    if not (shows.any() if way.change is None else shows.all()):
        return None
    called = f"{called}, {case.size}" if case.size else called
    return found, Fault(called, case.first, case.last, tuple(channels), way.says)


def one(case: Case, queue: list[str]) -> tuple[np.ndarray, Fault]:
    """The first kind in the queue that shows in these rows, taken out of the queue; a jump if none does."""
    for called in (*queue, *["jump"] * TRIES):
        for _ in range(TRIES):
            size = str(case.rng.choice(["small", "medium", "large"])) if WAYS[called].sized else ""
            made = attempt(case._replace(size=size), called)
            if made is not None:
                if called in queue:
                    queue.remove(called)
                return made
    raise AssertionError(f"no fault shows in rows {case.first} to {case.last} of {case.plant.name}")


def with_faults(
    plant: Plant, rng: np.random.Generator, usual: np.ndarray, other: np.ndarray
) -> tuple[np.ndarray, list[Fault]]:
    """Put faults into what the sensors say, (T, D), not yet in counts; kinds come in turn, in an order that is drawn."""
    spots, changes = places(rng, plant, len(usual))
    sensors, away = Sensors.of(plant, usual), other - usual
    sound, found = usual.copy(), usual.copy()
    faults: list[Fault] = []
    queue: list[str] = []
    for number, (first, last) in enumerate(spots):
        if number in changes:
            part = 1.0 if number == min(changes) else -1.6  # from 0 to 1, then to -0.6
            sound[first:] += part * (1 - np.exp(-np.arange(1, len(sound) - first + 1) / 6))[:, None] * away[first:]
            found[first:] = sound[first:]
            faults.append(Fault(LASTING, first, last, tuple(range(found.shape[1])), "regime"))
            continue
        if not queue:
            queue = [str(called) for called in rng.permutation([*WAYS]) if called != UNSEEN or not plant.lasting]
        found[first:last], fault = one(Case(rng, plant, sensors, sound, other, first, last, ""), queue)
        if plant.lags > 1:  # a row holds values up to lags - 1 rows later than its first
            fault = fault._replace(first=first - plant.lags + 1, channels=tuple(range(plant.lags)))
        faults.append(fault)
    return found, faults


def inside(rows: np.ndarray, clean: np.ndarray, fault: Fault) -> bool:
    """Whether each sensor of a fault stays within what it says in 999 of 1,000 rows without faults."""
    cols = list(fault.channels)
    low, high = np.quantile(clean[:, cols], [0.0005, 0.9995], axis=0)
    part = rows[fault.first : fault.last, cols]
    return bool(np.mean(np.any((part < low) | (part > high), axis=1)) <= 0.01)
