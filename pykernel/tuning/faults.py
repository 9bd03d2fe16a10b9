"""Put textbook faults into the rows of a recording, to evaluate the monitors of a plan.

Faults of one sensor come from R. Isermann, Fault-Diagnosis Systems, 2006 (offset, drift, gain, noise, lag), and from K. Ni and others,
Sensor network data fault types, 2009 (spikes, stuck values, dropouts); oscillation, as in control loops, is added.  Faults of the
machine, which move several sensors at once, come from J. J. Downs, E. F. Vogel, A plant-wide industrial process control problem, 1993
(the Tennessee Eastman process: step, random variation, slow drift, sticking valve); a regime that was never seen is added.  Sizes are
from 1 to 20, in units of a sensor's residual standard deviation after a linear prediction from the other sensors.  The size of a fault
in several sensors is the square root of the sum of the squared sizes in these sensors.

Machines rarely fail only once: a loose contact recurs, one fault follows another, and many faults occur when a run begins.  Faults
therefore occur in five manners (``MANNERS``), with about the same number of faults in each manner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

SMALLEST, SMALL, LARGEST = 1.0, 4.0, 20.0
"""Smallest size of a fault, largest size of a small fault, and largest size of any fault.  Sizes are drawn log-uniformly."""
SHORTEST, LONGEST = 20, 300
"""Minimum and maximum number of rows of a fault."""
ROOM = 6500
"""Minimum number of rows in one repetition of the recording, so that the faults of any manner fit into it."""
APART, RARE, OFTEN = 200, 6300, 600
"""Number of rows without a fault before each group of faults: APART plus a random number, whose mean is RARE for rare
faults and OFTEN for other faults."""
MANNERS = ("rare", "repeated", "in succession", "with a run", "dense and small")
"""How faults occur.

Rare: a single fault of 40 to 300 rows.  Repeated: the same fault, 20 to 60 rows long, 4 to 12 times, with 60 to 200 rows in between.
In succession: two different faults, 5 to 50 rows apart.  With a run: a fault that begins up to 20 rows after the
machine's state changes.  Dense and small: the same small fault, 20 rows long, 8 times, with 100 to 480 rows in between.
"""
CHANGE, ABRUPT, NEAR_RUN = 0.5, 4.0, 20
"""A run begins where a sensor's means over the previous and the next NEAR_RUN rows differ by more than CHANGE times the
sensor's standard deviation, and by more than ABRUPT times its standard deviation within these rows.
"""
COUNT = 128
"""Wanted number of faults in a trial.  The rows are repeated until this number, or a maximum number of repetitions, is
reached."""
PROMISED = 256
"""Wanted number of faults from which a plan estimates the error that it promises."""
SHOWS = 0.5
"""A fault is *visible* if the root mean square of the change that it causes is at least this number, in the units of a
fault's size.  If a fault is not visible, another one is drawn.
"""
TRIES = 30
NEAR = 100
"""Number of rows whose mean is the machine's operating point."""
WHOLE = 0.01
"""The differences between a sensor's values count as multiples of a step if they deviate by less than this fraction of the step."""


class Sensors(NamedTuple):
    """Properties of each sensor, (D,).

    own: residual standard deviation after a linear prediction from the other sensors, or 0 for a constant sensor.
    step: all values differ from ``origin`` by multiples of this number, which is 0 if there is no step.  low, high:
    range of a sensor that has only two values, infinite for other sensors.
    """

    own: np.ndarray
    step: np.ndarray
    origin: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, x: np.ndarray) -> Sensors:
        """Find the properties from rows x, (rows, D), NaN where a value is missing.  O(rows (D^2 + D log rows) + D^3)."""
        dim, columns = x.shape[1], [np.unique(column[np.isfinite(column)]) for column in x.T]
        spread = np.array([float(column[np.isfinite(column)].std()) if len(values) > 1 else 0.0
                           for column, values in zip(x.T, columns, strict=True)])  # fmt: skip
        own, moving = spread.copy(), np.flatnonzero(spread > 0)
        whole = x[:, moving][np.isfinite(x[:, moving]).all(axis=1)]
        if len(moving) and len(whole) > 2 * len(moving):
            z = (whole - whole.mean(axis=0)) / np.maximum(whole.std(axis=0), 1e-30)
            inverse = np.linalg.inv(z.T @ z / len(z) + 1e-6 * np.eye(len(moving)))
            left = z @ inverse / np.diag(inverse)
            own[moving] = np.minimum(1.0, usual_spread(left)) * spread[moving]
        step = np.array([step_of(values) for values in columns])
        origin = np.array([values[0] if len(values) else 0.0 for values in columns])
        two = [len(values) == 2 for values in columns]
        ends = [
            (values[0], values[-1]) if both else (-np.inf, np.inf) for values, both in zip(columns, two, strict=True)
        ]
        low, high = np.array(ends).reshape(dim, 2).T
        return cls(np.where(own > 0, np.maximum(own, step / 2), 0.0), step, origin, low, high)

    def read(self, values: np.ndarray, sensor: int) -> np.ndarray:
        """Return the values as the sensor reads them: rounded to its step and clipped to its range."""
        step, origin = self.step[sensor], self.origin[sensor]
        if step > 0:
            values = np.round((values - origin) / step) * step + origin
        return np.clip(values, self.low[sensor], self.high[sensor])


def usual_spread(x: np.ndarray) -> np.ndarray:
    """Estimate the standard deviation of each column from its quartiles, so that rare large values have no influence.  Returns (D,).

    If the two quartiles of a column are equal, the ordinary standard deviation is returned.
    """
    low, high = np.quantile(x, [0.25, 0.75], axis=0)
    return np.where(high > low, 0.741 * (high - low), x.std(axis=0))


def step_of(values: np.ndarray) -> float:
    """Return the step between these ascending values: all their differences are multiples of it, within WHOLE.

    Returns 0 if there is no such step, or if it is below the rounding error.
    """
    if len(values) < 2:
        return 0.0
    away, step = values - values[0], float(np.diff(values).min())
    if step < 1e-6 * np.abs(values).max():
        return 0.0
    step = float(away[-1] / round(away[-1] / step))
    return step if np.abs(away / step - np.round(away / step)).max() < WHOLE else 0.0


class Case(NamedTuple):
    """A fault to be put into one or several columns (sensors) of ``rows``, from row ``first`` to row ``last`` - 1."""

    rng: np.random.Generator
    rows: np.ndarray
    first: int
    last: int
    sensor: int
    size: float  # in units of ``own``
    own: np.ndarray  # residual standard deviations, (D,), as in ``Sensors``
    steps: np.ndarray  # the steps of the sensors' values, (D,)

    @property
    def values(self) -> np.ndarray:
        return self.rows[:, self.sensor]

    @property
    def x(self) -> np.ndarray:
        return self.values[self.first : self.last]

    @property
    def block(self) -> np.ndarray:
        """The values of all sensors in the faulty rows, (n, D)."""
        return self.rows[self.first : self.last]

    @property
    def before(self) -> np.ndarray:
        """The sensor's finite values in the 500 rows before the fault, or in the first two rows if the fault begins there."""
        found = self.values[max(0, self.first - 500) : max(2, self.first)]
        return found[np.isfinite(found)]

    @property
    def much(self) -> float:
        return float(self.size * self.own[self.sensor])

    @property
    def time(self) -> np.ndarray:
        """The numbers 1, 2, .., n, one for each faulty row."""
        return np.arange(1, self.last - self.first + 1)

    def sign(self) -> float:
        return float(self.rng.choice([-1.0, 1.0]))


def between(rng: np.random.Generator, least: float, most: float) -> float:
    """Draw a log-uniform random number."""
    return float(np.exp(rng.uniform(math.log(least), math.log(most))))


def bias(case: Case) -> np.ndarray:
    return case.x + case.sign() * case.much


def drift(case: Case) -> np.ndarray:
    return case.x + case.sign() * case.much * case.time / len(case.x)


def gain(case: Case) -> np.ndarray:
    """The sensor becomes more or less sensitive, around the median of its latest values."""
    middle, spread = np.median(case.before), max(float(case.before.std()), 1e-30)
    return middle + (case.x - middle) * (1 + case.much / spread) ** case.sign()


def stuck(case: Case) -> np.ndarray:
    return np.full(len(case.x), case.before[-1])


def stuck_with_dither(case: Case) -> np.ndarray:
    """The sensor is stuck, but its last digit still changes."""
    step = case.steps[case.sensor]
    count = step if step > 0 else 0.05 * case.much
    return stuck(case) + count * case.rng.integers(-1, 2, len(case.x))


def noise(case: Case) -> np.ndarray:
    return case.x + case.much * case.rng.standard_normal(len(case.x))


def spikes(case: Case) -> np.ndarray:
    hit = case.rng.random(len(case.x)) < case.rng.uniform(0.05, 0.2)
    return case.x + hit * case.rng.choice([-2.0, 2.0], len(case.x)) * case.much


def another_time(case: Case) -> np.ndarray:
    """The sensor repeats its values from another time, so that only its relation to the other sensors is unusual."""
    start = int(case.rng.integers(0, len(case.values) - len(case.x) + 1))
    return case.values[start : start + len(case.x)]


def slow(case: Case) -> np.ndarray:
    """The sensor follows the true value with a lag."""
    kept = math.exp(-1 / between(case.rng, 5, 50))
    found, now = np.empty(len(case.x)), float(case.before[-1])
    for i, value in enumerate(case.x.tolist()):
        now = kept * now + (1 - kept) * value if math.isfinite(value) else now
        found[i] = now
    return found


def dropouts(case: Case) -> np.ndarray:
    """Now and then, a few values are replaced, in some faults by 0 and in others by the minimum of the latest values."""
    starts = case.rng.random(len(case.x)) < 1 / 12
    gone = np.convolve(starts, np.ones(int(case.rng.integers(1, 6))))[: len(case.x)] > 0
    return np.where(gone, 0.0 if case.rng.random() < 0.5 else case.before.min(), case.x)


def oscillation(case: Case) -> np.ndarray:
    return case.x + case.much * np.sin(2 * np.pi * case.time / between(case.rng, 4, 40))


def together(case: Case, course: np.ndarray) -> np.ndarray:
    """Several sensors change with the time course ``course``, (n,), by random amounts.  Returns the values of all sensors, (n, D)."""
    moving = np.flatnonzero(case.own > 0)
    some = case.rng.choice(moving, int(case.rng.integers(min(2, len(moving)), len(moving) + 1)), replace=False)
    parts = np.zeros(len(case.own))
    parts[some] = case.rng.standard_normal(len(some))
    return case.block + np.outer(course, case.size * case.own * parts / math.sqrt(float(parts @ parts)))


def leak(case: Case) -> np.ndarray:
    """Several sensors follow a step with a lag."""
    return together(case, 1 - np.exp(-case.time / between(case.rng, 1, 20)))


def wear(case: Case) -> np.ndarray:
    return together(case, case.time / len(case.x))


def unrest(case: Case) -> np.ndarray:
    """Several sensors follow a random variation."""
    kept = math.exp(-1 / between(case.rng, 1, 20))
    course, now = np.empty(len(case.x)), 0.0
    for i, new in enumerate(case.rng.standard_normal(len(case.x)).tolist()):
        now = kept * now + math.sqrt(1 - kept * kept) * new
        course[i] = now
    return together(case, course)


def sticking(case: Case) -> np.ndarray:
    """Several sensors follow a sawtooth, as if a valve stuck and slipped."""
    return together(case, 2 * ((case.time / between(case.rng, 8, 80)) % 1) - 1)


def place_of(rows: np.ndarray) -> np.ndarray:
    """Return the machine's operating point: the mean of these rows, (D,), NaN for a column without values."""
    there = np.isfinite(rows)
    return np.where(there, rows, 0.0).sum(axis=0) / np.where(there.any(axis=0), there.sum(axis=0), np.nan)


def regime(case: Case) -> np.ndarray:
    """The operating point moves towards or away from the operating point of another time, by 0.5 to 2 times the
    distance between the two points."""
    other = int(case.rng.integers(0, len(case.rows) - NEAR + 1))
    way = place_of(case.rows[other : other + NEAR]) - place_of(case.rows[max(0, case.first - NEAR) : case.first])
    return case.block + np.outer(
        1 - np.exp(-case.time / between(case.rng, 1, 20)), case.sign() * between(case.rng, 0.5, 2) * way
    )


KINDS: dict[str, Callable[[Case], np.ndarray]] = {
    "bias": bias,
    "drift": drift,
    "gain": gain,
    "stuck": stuck,
    "stuck with dither": stuck_with_dither,
    "noise": noise,
    "spikes": spikes,
    "another time": another_time,
    "slow": slow,
    "dropouts": dropouts,
    "oscillation": oscillation,
    "leak": leak,
    "wear": wear,
    "unrest": unrest,
    "sticking valve": sticking,
    "unseen regime": regime,
}


class Fault(NamedTuple):
    """A fault in the rows first, .., last - 1.  place: where the fault begins, as a fraction of the recording."""

    kind: str
    manner: str
    first: int
    last: int
    place: float = 0.0


def runs_of(x: np.ndarray) -> np.ndarray:
    """Return the rows where the machine's state changes and a run begins, (runs,).  O(rows D)."""
    x, near = np.where(np.isfinite(x), x, place_of(x)), NEAR_RUN
    z = np.nan_to_num((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-30))
    sums = np.cumsum(np.concatenate([np.zeros((1, 2, x.shape[1])), np.stack([z, z * z], axis=1)]), axis=0) / near
    means, squares = (sums[near:] - sums[:-near]).transpose(1, 0, 2)
    within = np.maximum(squares - means**2, 0)
    jump = np.abs(means[near:] - means[:-near])
    least = np.maximum(CHANGE, ABRUPT * np.sqrt((within[near:] + within[:-near]) / 2))
    jumps = np.where(jump > least, jump, 0.0).max(axis=1, initial=0.0)
    found = []
    while len(jumps) and (at := int(jumps.argmax())) >= 0 and jumps[at] > 0:
        found.append(at + near)
        jumps[max(0, at - 2 * near) : at + 2 * near] = 0
    return np.sort(np.array(found, int))


def places(rng: np.random.Generator, manner: str, first: int, runs: np.ndarray) -> list[tuple[int, int]]:
    """Return (first row, end) for each fault of one group, in time order.  No fault begins before row ``first``.

    The list is empty if the manner needs a run, and none begins at row ``first`` or later.
    """

    count, length, gap = 1, between(rng, 2 * SHORTEST, LONGEST), 0.0
    if manner == "repeated":
        count, length, gap = int(between(rng, 4, 13)), between(rng, SHORTEST, 60), between(rng, 60, 200)
    elif manner == "dense and small":
        count, length, gap = 8, SHORTEST, between(rng, 100, 480)
    elif manner == "in succession":
        count, gap = 2, between(rng, 5, 50)
    elif manner == "with a run":
        later = runs[runs >= first]
        if not len(later):
            return []
        first = int(later[0]) + int(rng.integers(0, NEAR_RUN + 1))
    return [(at, at + int(length)) for at in (first + i * (int(length) + int(gap)) for i in range(count))]


def with_faults(
    x: np.ndarray, sensors: Sensors, seed: int = 0, least: int = COUNT
) -> Iterator[tuple[np.ndarray, list[Fault]]]:
    """Yield (rows, faults) for each repetition of the rows: the rows with new faults of one manner, and the list of these faults.

    The manners are used in the order of MANNERS, and each gets an equal share of the faults.  least: minimum number of
    faults in all repetitions.  If the maximum number of repetitions is reached, a manner has fewer faults.  The kinds of faults are used in turn, in
    random order.
    x: (rows, D).  If there are fewer than ROOM rows, each repetition contains them several times.  Yields nothing if all sensors are
    constant, or if no fault is visible.
    """
    rows, copies, runs = len(x), math.ceil(ROOM / len(x)), runs_of(x)
    runs = np.concatenate([runs + i * rows for i in range(copies)])
    x = np.concatenate([x] * copies)
    known = np.where(np.isfinite(x), x, np.nan)
    rng, moving = np.random.default_rng(seed), np.flatnonzero(sensors.own > 0)
    manners = [manner for manner in MANNERS if manner != "with a run" or len(runs)]
    each, queue = math.ceil(least / len(manners)), list[str]()
    for manner in manners if len(moving) else ():
        count = 0
        for _ in range(2 * each):
            changed, faults, last = x.copy(), list[Fault](), 0
            while count + len(faults) < each:
                first = last + APART + int(rng.exponential(RARE if manner == "rare" else OFTEN))
                spots = places(rng, manner, first, runs)
                if not spots or spots[-1][1] > len(x):
                    break
                last = spots[-1][1]
                put = _put(rng, known, sensors, moving, changed, spots, manner, queue)
                faults += [Fault(kind, manner, first, end, first % rows / rows) for first, end, kind in put]
            if faults:
                yield changed, faults
            count += len(faults)


def _put(
    rng: np.random.Generator,
    x: np.ndarray,
    sensors: Sensors,
    moving: np.ndarray,
    changed: np.ndarray,
    spots: Sequence[tuple[int, int]],
    manner: str,
    queue: list[str],
) -> Iterator[tuple[int, int, str]]:
    """Put faults into ``changed`` at these spots: the same fault at all spots, but different faults if the manner is "in succession".

    The fault is of the first kind in the queue for which a visible fault is found; this kind is removed from the queue.
    Where the same fault is not visible at a later spot, the rows stay unchanged.  Yields (first row, end, kind) for each
    fault.
    """
    how = None
    for first, last in spots:
        if how is None or manner == "in succession":
            how = _drawn(rng, x, sensors, moving, first, last, SMALL if manner == "dense and small" else LARGEST, queue)
        if how is not None and (values := _made(*how, x, sensors, moving, first, last)) is not None:
            there = np.isfinite(values)
            changed[first:last][there] = values[there]
            yield first, last, how[0]


def _drawn(
    rng: np.random.Generator,
    x: np.ndarray,
    sensors: Sensors,
    moving: np.ndarray,
    first: int,
    last: int,
    largest: float,
    queue: list[str],
) -> tuple[str, int, float, int] | None:
    """Draw a fault that is visible in these rows.  Returns its kind, sensor, size and seed, or None if no fault is visible."""
    queue[:] = queue or [str(kind) for kind in rng.permutation([*KINDS])]
    for kind in list(queue):
        for _ in range(TRIES):
            how = kind, int(rng.choice(moving)), between(rng, SMALLEST, largest), int(rng.integers(2**32))
            if _made(*how, x, sensors, moving, first, last) is not None:
                queue.remove(kind)
                return how
    queue.clear()  # no remaining kind gives a visible fault: the next call starts again with all kinds
    return None


def _made(
    kind: str,
    sensor: int,
    size: float,
    seed: int,
    x: np.ndarray,
    sensors: Sensors,
    moving: np.ndarray,
    first: int,
    last: int,
) -> np.ndarray | None:
    """Return an array, (n, D), of these rows with the fault, or None if the fault is not visible.  Missing values are NaN."""
    case = Case(np.random.default_rng(seed), x, first, last, sensor, size, sensors.own, sensors.step)
    if not len(case.before):
        return None
    made, sound, values = KINDS[kind](case), case.block, case.block.copy()
    for j in moving if made.ndim > 1 else [sensor]:
        values[:, j] = sensors.read(made[:, j] if made.ndim > 1 else made, j)
    values = np.where(np.isfinite(sound) & np.isfinite(values), values, np.nan)
    change = (np.nan_to_num(values - sound)[:, moving] / sensors.own[moving])[
        np.isfinite(values[:, moving]).any(axis=1)
    ]
    shows = len(change) and math.sqrt(float(np.square(change).sum(axis=1).mean())) >= SHOWS
    return values if shows else None
