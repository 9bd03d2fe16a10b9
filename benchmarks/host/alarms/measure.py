"""What a detector's levels and alarms are worth on a stream whose faults are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.host.alarms.rivals import Detector, settling
from benchmarks.host.alarms.stream import Fault, Stream

GUARD = 60
"""Rows after a fault that are neither faulty nor free of faults: levels are smoothed."""
RATES = (0.01, 0.005, 0.001)
"""False rows, parts of the rows without faults."""
OWN = 0.01
"""What detectors are asked for in ``own()``."""
ALPHAS = (0.001, 0.01, 0.05)
LONG = 200
"""A stream tells a rate alpha by itself if it has so many rows / alpha; then alpha is known to a tenth or so."""


class Seen(NamedTuple):
    """Of a stream's faults."""

    events: float  # part of the faults with a row in alarm
    rows: float  # part of the faulty rows in alarm
    delay: float  # mean rows until the first one; a fault that is not seen counts with all of its rows


def judged_faults(stream: Stream) -> list[Fault]:
    """The faults that begin when detectors have settled."""
    return [fault for fault in stream.faults if fault.first >= settling(len(stream.rows))]


def sound(stream: Stream) -> np.ndarray:
    """The rows that count as free of faults, (T,): settled, and not within GUARD rows after a fault."""
    found = np.arange(len(stream.rows)) >= settling(len(stream.rows))
    for fault in stream.faults:
        found[fault.first : fault.last + GUARD] = False
    return found


def threshold(levels: np.ndarray, rate: float) -> float:
    """The least level that at most a part ``rate`` of the levels is above."""
    return float(np.sort(levels)[len(levels) - 1 - int(rate * len(levels))])


def seen(faults: Iterable[Fault], alarms: np.ndarray) -> Seen:
    """Which faults some alarms tell.  alarms: (T,)."""
    first, rows, count = [], 0, 0
    for fault in faults:
        at = np.flatnonzero(alarms[fault.first : fault.last])
        first.append(int(at[0]) if len(at) else -1)
        rows, count = rows + len(at), count + fault.lasts
    lasts = [fault.lasts for fault in faults]
    delays = [d if d >= 0 else most for d, most in zip(first, lasts, strict=True)]
    return Seen(float(np.mean([d >= 0 for d in first])), rows / count, float(np.mean(delays)))


def at_equal_rates(stream: Stream, levels: np.ndarray, rate: float) -> Seen:
    """With the threshold that a part ``rate`` of the rows without faults is above.  A level that is no number is below all others."""
    known = np.nan_to_num(levels, nan=-np.inf, posinf=np.finfo(float).max)
    return seen(judged_faults(stream), known > threshold(known[sound(stream)], rate))


def own(stream: Stream, alarms: np.ndarray) -> tuple[float, Seen]:
    """With a detector's own alarms: the part of the rows without faults that are in alarm, and what is seen."""
    return float(alarms[sound(stream)].mean()), seen(judged_faults(stream), alarms)


def measured(detector: Detector, stream: Stream) -> dict[str, Any]:
    """A line of docs/data/alarms.csv."""
    levels, (alarms,) = detector.judged(stream.rows, OWN)
    one, half, tenth = (at_equal_rates(stream, levels, rate) for rate in RATES)
    false, told = own(stream, alarms)
    return {
        "faults": len(judged_faults(stream)),
        "events_1": round(one.events, 4),
        "rows_1": round(one.rows, 4),
        "events_05": round(half.events, 4),
        "rows_05": round(half.rows, 4),
        "events_01": round(tenth.events, 4),
        "rows_01": round(tenth.rows, 4),
        "delay_1": round(one.delay, 2),
        "own_false": round(false, 5),
        "own_events": round(told.events, 4),
        "own_rows": round(told.rows, 4),
        "bytes": detector.bytes(stream.rows.shape[1]),
    }


def rates(detector: Detector, stream: Stream) -> Iterator[dict[str, Any]]:
    """Lines of docs/data/alarms-rates.csv: rows in alarm of a stream without faults, and its rows, after settling."""
    _, each = detector.judged(stream.rows, *ALPHAS)
    for alpha, alarms in zip(ALPHAS, each[:, settling(len(stream.rows)) :], strict=True):
        yield {"alpha": alpha, "alarms": int(alarms.sum()), "rows": len(alarms)}


def pooled(counts: Iterable[tuple[str, int, int]], alpha: float) -> Iterator[tuple[str, int, int]]:
    """Name, rows in alarm and rows of streams that are long enough for alpha; shorter ones are put together in their order.

    The last pool takes in what is left over.  It may be too short only if it is the one pool, and no stream is long.
    """
    least = LONG / alpha
    pools: list[list[tuple[str, int, int]]] = []
    open_pool: list[tuple[str, int, int]] = []
    for each in counts:
        if each[2] >= least:
            yield each
            continue
        open_pool.append(each)
        if sum(rows for _, _, rows in open_pool) >= least:
            pools.append(open_pool)
            open_pool = []
    if open_pool:
        pools = [*pools[:-1], pools[-1] + open_pool] if pools else [open_pool]
    for pool in pools:
        name = pool[0][0] if len(pool) == 1 else f"{pool[0][0]} and {len(pool) - 1} more"
        yield name, sum(alarms for _, alarms, _ in pool), sum(rows for _, _, rows in pool)
