"""Raw streams of first_streams.py, with faults of one sensor each that are put in."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.host.alarms.rivals import settling
from benchmarks.host.alarms.stream import Fault, Stream
from benchmarks.host.first_streams import CLASSES, REGRESSION, raw

EVERY = 600
"""Rows of a stream for each fault, at least."""
FAULTS = ("spike", "offset", "drift", "stuck", "noise")
"""A spike of four standard deviations for two rows, an offset of two, a drift to four, one value, noise of two."""
SAYS = {"offset": "jump", "drift": "drift", "stuck": "stuck", "noise": "noise"}
SPIKE, LONG = 2, 40
"""Rows of a spike, and of the others."""


def sensors(name: str) -> np.ndarray:
    """A raw stream's inputs, and its label if that is a number, (rows, sensors)."""
    x, y = raw(name)
    return (np.column_stack([x, y]) if name in REGRESSION else x).astype(float)


def raw_names() -> Iterator[str]:
    """Raw streams of first_streams.py with at least 1,250 rows and at most 40 columns."""
    for name in (*REGRESSION, *CLASSES):
        if len(raw(name)[0]) >= 1250 and raw(name)[0].shape[1] <= 40:
            yield name


def put_in(
    x: np.ndarray, deviation: np.ndarray, kind: str, start: int, order: np.ndarray, long: int = LONG
) -> Fault | None:
    """Put a fault into rows (rows, sensors); None if it changes nothing.

    deviation: the unit of each sensor, (sensors,).  order: a permutation of the sensors; the fault is in one of them that moves.
    long: rows of a fault that is no spike.
    """
    rng = np.random.default_rng(FAULTS.index(kind))
    moving = np.flatnonzero(deviation[order] > 0)
    if not len(moving):
        return None
    j = int(order[rng.choice(moving)])
    unit = float(rng.choice([-1, 1])) * deviation[j]
    last = start + (SPIKE if kind == "spike" else long)
    before = x[start:last, j].copy()
    if kind == "stuck":
        x[start:last, j] = x[start, j]
    elif kind == "noise":
        x[start:last, j] += rng.normal(0, 2 * abs(unit), long)
    else:
        x[start:last, j] += {"spike": 4 * unit, "offset": 2 * unit, "drift": 4 * unit * np.arange(long) / long}[kind]
    return Fault(kind, start, last, (j,), SAYS.get(kind, "")) if (x[start:last, j] != before).any() else None


def raw_streams(seed: int) -> Iterator[Stream]:
    """The 40 raw streams, one to three faults in each, all kinds in turn."""
    for number, name in enumerate(raw_names()):
        x = sensors(name)
        rng = np.random.default_rng([seed, number])
        deviation, first = x.std(axis=0), settling(len(x))
        count = max(1, (len(x) - first) // EVERY)
        every = (len(x) - first) // count
        faults = []
        for i in range(count):
            start = first + i * every + int(rng.integers(every // 4, every // 2))
            order = rng.permutation(x.shape[1])  # which sensor it is
            faults.append(put_in(x, deviation, FAULTS[(seed + number + i) % len(FAULTS)], start, order))
        yield Stream(name, "raw streams", x.astype(np.float32), tuple(fault for fault in faults if fault is not None))
