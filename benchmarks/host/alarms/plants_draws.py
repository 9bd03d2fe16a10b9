"""What simulated machines are made of: sensors, noise with memory, regimes, cycles, and the list of plants."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.signal import lfilter

DAY = 288  # rows: one each five minutes
SETTLING = 2000  # rows at the start of each stream, without faults


class Sensor(NamedTuple):
    """A sensor: what a row says of it is a multiple of one count, within its limits."""

    name: str
    unit: str
    count: float
    low: float = -np.inf
    high: float = np.inf

    @property
    def digital(self) -> bool:
        return self.high - self.low <= self.count


def sensor(text: str) -> Sensor:
    """A sensor from its name (words joined by -), unit, count, and its limits, where it has them."""
    name, unit, *numbers = text.split()
    return Sensor(name, unit, *(float(number) for number in numbers))


class Draws:
    """Random numbers for one simulation.  How many are drawn must not depend on what the machine does: a simulation of
    another regime then has the same noise.  Every series is (steps,)."""

    def __init__(self, rng: np.random.Generator, steps: int, built: np.random.Generator) -> None:
        self.rng, self.steps = rng, steps
        self.built = built  # for constants of the machine, which are the same for every seed
        self.time = np.arange(steps)

    def white(self, sd: float | np.ndarray = 1.0) -> np.ndarray:
        return sd * self.rng.standard_normal(self.steps)

    def tails(self, sd: float = 1.0) -> np.ndarray:
        """Student's t with 3 degrees of freedom, scaled to a standard deviation of sd."""
        return sd / np.sqrt(3) * self.rng.standard_t(3, self.steps)

    def wander(self, time: float, sd: float = 1.0) -> np.ndarray:
        """An autoregressive process of order 1 that forgets within so many rows."""
        kept = np.exp(-1 / time)
        steps = self.rng.standard_normal(self.steps)
        steps[1:] *= np.sqrt(1 - kept**2)
        return sd * lfilter([1.0], [1.0, -kept], steps)

    def swing(self, period: float, time: float, sd: float = 1.0) -> np.ndarray:
        """An autoregressive process of order 2: it swings with a period, and forgets its phase within so many rows."""
        kept = np.exp(-1 / time)
        found = lfilter(
            [1.0], [1.0, -2 * kept * np.cos(2 * np.pi / period), kept**2], self.rng.standard_normal(self.steps)
        )
        return sd * found / found.std()

    def bursts(self, every: float, lasts: float) -> np.ndarray:
        """Mostly about 0; now and then a burst of about 1 or more, that fades."""
        starts = (self.rng.random(self.steps) < 1 / every) * self.rng.exponential(1.0, self.steps)
        return lfilter([1.0], [1.0, -np.exp(-1 / lasts)], starts)

    def phase(self, period: float, jitter: float) -> np.ndarray:
        """Where a machine is in its cycle, from 0 to 1.  Cycles differ in length by this part."""
        cycles = int(self.steps / period * 2) + 4
        ends = np.cumsum(period * np.clip(1 + jitter * self.rng.standard_normal(cycles), 0.5, 2))
        return np.interp(self.time, np.concatenate([[0.0], ends]), np.arange(cycles + 1)) % 1

    def visits(self, regimes: int, shortest: int, longest: int, late: Sequence[int] = ()) -> np.ndarray:
        """Which regime each row is in.  late[i]: the row from which on regime number regimes - len(late) + i is possible;
        as soon as it is, it comes next."""
        found = np.empty(self.steps, int)
        at, now = 0, -1
        waiting = [(row, regimes - len(late) + i) for i, row in enumerate(late)]
        open_to = list(range(regimes - len(late)))
        while at < self.steps:
            if waiting and at >= waiting[0][0]:
                now = waiting.pop(0)[1]
                open_to.append(now)
            else:
                now = int(self.rng.choice([regime for regime in open_to if regime != now]))
            lasts = int(self.rng.integers(shortest, longest + 1))
            found[at : at + lasts] = now
            at += lasts
        return found

    def steps_of(self, every: float, values: Sequence[float]) -> np.ndarray:
        """Mostly constant: a person sets another of the values now and then."""
        moved = self.rng.random(self.steps) < 1 / every
        drawn = np.asarray(values, float)[self.rng.integers(0, len(values), self.steps)]
        return drawn[np.maximum.accumulate(np.where(moved, self.time, 0))]


def follow(target: np.ndarray, time: float) -> np.ndarray:
    """What follows a target with a time constant of so many rows."""
    kept = np.exp(-1 / time)
    return np.asarray(lfilter([1 - kept], [1.0, -kept], target, zi=[kept * target[0]])[0])


def later(values: np.ndarray, rows: int) -> np.ndarray:
    """The same, so many rows later."""
    return np.concatenate([np.full(rows, values[0]), values[:-rows]])


def wave(time: np.ndarray, period: float, phase: float = 0.0) -> np.ndarray:
    return np.sin(2 * np.pi * (time / period + phase))


def hump(phase: np.ndarray, at: float, wide: float) -> np.ndarray:
    """A smooth pulse within a cycle, of height 1."""
    return np.exp(-0.5 * ((phase - at) / wide) ** 2)


Simulate = Callable[[Draws, bool], Sequence[np.ndarray]]


class Plant(NamedTuple):
    """A machine.  ``simulate(draws, other)`` gives a series for each sensor; with ``other``, what the machine normally never
    does: a regime of its own, or in ``lasting`` plants the machine after a repair."""

    name: str
    kind: str
    rows: int
    sensors: tuple[Sensor, ...]
    simulate: Simulate
    lags: int = 1  # a row holds the last so many values of the one sensor, oldest first
    dense: bool = False  # faults in a third of the rows
    lasting: bool = False  # repairs, after which the machine is another

    def random(self, *seeds: int) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(self.name.encode()), *seeds])

    def simulated(self, seed: int, other: bool) -> np.ndarray:
        """What sensors would say that have no counts and limits: (rows + lags - 1, sensors)."""
        draws = Draws(self.random(seed, 0), self.rows + self.lags - 1, self.random())
        return np.stack(self.simulate(draws, other), axis=1)

    def read(self, values: np.ndarray) -> np.ndarray:
        """What the sensors say: in counts, within limits."""
        counts, lows, highs = (np.array([getattr(s, key) for s in self.sensors]) for key in ("count", "low", "high"))
        return np.clip(np.round(values / counts) * counts, lows, highs)

    def rows_of(self, readings: np.ndarray) -> np.ndarray:
        """Readings as rows of a stream: (rows, D), float32."""
        if self.lags > 1:
            readings = np.lib.stride_tricks.sliding_window_view(readings[:, 0], self.lags)
        return np.ascontiguousarray(readings, np.float32)


PLANTS: list[Plant] = []


def plant(
    name: str, kind: str, rows: int, *sensors: str, lags: int = 1, dense: bool = False, lasting: bool = False
) -> Callable[[Simulate], Simulate]:
    """Put a simulation on the list of plants."""

    def listed(simulate: Simulate) -> Simulate:
        PLANTS.append(Plant(name, kind, rows, tuple(map(sensor, sensors)), simulate, lags, dense, lasting))
        return simulate

    return listed
