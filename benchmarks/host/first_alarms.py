"""Alarms by a spec that names no rule: which faults in raw sensor data it sees, beside other settings and simple distances.

    python -m benchmarks.host.first_alarms          # docs/data/first-alarms.csv, some minutes
    python -m benchmarks.host.first_alarms --show

Streams: those of first_streams.py that have at least 1,250 rows and at most 40 columns; inputs, and labels that are numbers,
are the sensors.  One sensor at a time gets a fault, every 120 rows from row 560 on.  A spike: two rows, 4 standard
deviations.  An offset of 2.  A drift from 0 to 4.  Stuck at one value.  Noise of 2.  All but the spike last 40 rows.  "small"
faults have 0.6 of that.  A predictor's level has a threshold that 0.5 % of the rows without a fault exceed, so that all have
the same rate of false alarms.

detected: part of the faults with a level above the threshold, mean of all streams.  delay: rows until then, 40 if never.
false_alarms: "own threshold" is the default as it is: the part of the rows in alarm in the second half of each stream
without faults, median and 90 % quantile, where ``false_alarm_rate`` is 0.01.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.host.first_streams import CLASSES, REGRESSION, raw
from benchmarks.tables import DATA, Rows, load, markdown, progress_bar, publish, save
from pykernel.host.simple import Distances
from pykernel.host.simulate import Monitoring
from pykernel.spec.defaults import completed
from pykernel.spec.model import Spec, make_spec

FIRST = 560
SIZES = {"large": 1.0, "small": 0.6}
DEFAULT = "spec without a rule"
VARIANTS: dict[str, dict[str, Any]] = {
    DEFAULT: {},
    "sigma / 2": {"sigma": 0.5},
    "sigma x 2": {"sigma": 2.0},
    "8 features": {"learning": {"features": 8}},
    "16 features": {"learning": {"features": 16}},
    "n_max 48": {"reduction": {"n_max": 48}},
    "clip 3": {"input": {"clip": 3.0}},
    "clip 10": {"input": {"clip": 10.0}},
    "smoothing 1": {"novelty": {"smoothing": 1.0}},
    "smoothing 0.2": {"novelty": {"smoothing": 0.2}},
    "relearn_after 0": {"novelty": {"relearn_after": 0}},
    "relearn_after 300": {"novelty": {"relearn_after": 300}},
    "update rls": {"subspace": {"update": "rls"}},
}
COLUMNS = ("predictor", "faults", "kind", "detected", "delay")
FAULTS = ("spike", "offset", "drift", "stuck", "noise")
LONG, EVERY, GUARD = 40, 120, 20
"""Rows of a fault; rows between the beginnings of two faults; rows after a fault that do not count as normal, because
levels are smoothed."""
FALSE_ALARMS = 0.005
"""Every predictor gets the threshold that is exceeded in this fraction of the rows without a fault."""


def faulty(
    x: np.ndarray,
    deviation: np.ndarray,
    kind: str,
    size: float = 1.0,
    first: int | None = None,
    every: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The rows with faults, one input at a time, and the number of each row's fault, 0 for none.

    deviation: standard deviation of each input.  The kinds of faults: a spike of 4 deviations for 2 rows; an offset of
    2 deviations; a drift to 4 deviations; a stuck value; noise of 2 deviations.  size: a factor of all these.
    first, every: the row in which the first fault begins, and the rows between the beginnings of two faults.
    """
    rng = np.random.default_rng(FAULTS.index(kind))
    x, which = x.copy(), np.zeros(len(x), int)
    moving = np.flatnonzero(deviation > 0)
    every = every or min(EVERY, max(len(x) // 4, LONG + GUARD // 2))
    starts = range(every // 2 if first is None else first, len(x) - LONG, every)
    for number, start in enumerate(starts if len(moving) else (), 1):
        j, sign = rng.choice(moving), rng.choice([-1, 1])
        unit, rows = sign * size * deviation[j], slice(start, start + (2 if kind == "spike" else LONG))
        if kind == "stuck":
            x[rows, j] = x[start, j]
        elif kind == "noise":
            x[rows, j] += rng.normal(0, 2 * abs(unit), LONG)
        else:
            x[rows, j] += {"spike": 4 * unit, "offset": 2 * unit, "drift": 4 * unit * np.arange(LONG) / LONG}[kind]
        which[rows] = number
    return x, which


def detected(level: np.ndarray, which: np.ndarray) -> tuple[float, float]:
    """The fraction of the faults that is detected, and the mean delay in rows, at the false alarm rate FALSE_ALARMS."""
    normal = np.convolve(which > 0, np.ones(GUARD + 1))[: len(which)] == 0
    if not which.any() or not normal.any():
        return math.nan, math.nan
    above = level > np.quantile(level[normal], 1 - FALSE_ALARMS)
    first = []
    for number in range(1, which.max() + 1):
        rows = np.flatnonzero(which == number)
        first.append(np.flatnonzero(above[rows[0] : rows[-1] + 2]))
    return float(np.mean([len(f) > 0 for f in first])), float(np.mean([f[0] if len(f) else LONG for f in first]))


def sensors(name: str) -> np.ndarray:
    x, y = raw(name)
    return (np.column_stack([x, y]) if name in REGRESSION else x).astype(float)


def streams() -> Iterator[str]:
    for name in (*REGRESSION, *CLASSES):
        if len(raw(name)[0]) >= 1250 and raw(name)[0].shape[1] <= 40:
            yield name


def variant(dim: int, changes: Mapping[str, Any]) -> Spec:
    content: dict[str, Any] = {"name": "first", "input": {"columns": [f"x{i}" for i in range(dim)]}, "novelty": {}}
    made: dict[str, Any] = dict(completed(content))
    for section, keys in changes.items():
        if section == "sigma":
            section, keys = "kernel", {"sigma": keys * made["kernel"]["sigma"]}
        made[section] = {**made.get(section, {}), **keys}
    return make_spec(made)


def levels(spec: Spec, x: np.ndarray) -> np.ndarray:
    """Level and threshold after each row, (rows, 2)."""
    return np.concatenate([steps.states for steps in Monitoring(spec).run(x, np.zeros((len(x), 0)))])


def watched(names: list[str]) -> Iterator[str]:
    with progress_bar() as bar:
        yield from bar.track(names, description="streams")


def measure() -> list[dict[str, Any]]:
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    alarms = []
    for name in watched(list(streams())):
        x = sensors(name)
        spec = variant(x.shape[1], {})
        own = levels(spec, x)[len(x) // 2 :]
        alarms.append(float((own[:, 0] > own[:, 1]).mean()))
        for size in SIZES:
            for kind in FAULTS:
                changed, which = faulty(x, x.std(axis=0), kind, SIZES[size], FIRST, EVERY)
                simple = Distances(x.shape[1])
                each = dict(zip(simple.names, simple.step(changed).T, strict=True))
                each |= {how: levels(variant(x.shape[1], changes), changed)[:, 0] for how, changes in VARIANTS.items()}
                for how, level in each.items():
                    found.setdefault((how, size, kind), []).append(detected(level[FIRST:], which[FIRST:]))
    rows = [
        dict(zip(COLUMNS, (*key, *np.round(np.mean(values, axis=0), 3).tolist()), strict=True))
        for key, values in found.items()
    ]
    for quantile in (0.5, 0.9):
        part = round(float(np.quantile(alarms, quantile)), 4)
        rows.append(
            dict(
                zip(
                    COLUMNS,
                    (f"own threshold, {quantile:.0%} of streams", "none", "false alarms", part, ""),
                    strict=True,
                )
            )
        )
    return rows


def table(rows: Rows) -> str:
    """Detected, of large faults by kind, then of all and of small ones."""
    made = []
    for name in dict.fromkeys(str(row["predictor"]) for row in rows if row["faults"] in SIZES):
        of = {(row["faults"], row["kind"]): row for row in rows if row["predictor"] == name}
        large = [float(of["large", kind]["detected"]) for kind in FAULTS]
        small = [float(of["small", kind]["detected"]) for kind in FAULTS]
        made.append(
            [
                name.replace("|", "\\|"),
                *(f"{value:.2f}" for value in large),
                f"{np.mean(large):.2f}",
                f"{np.mean(small):.2f}",
            ]
        )
    return markdown(["predictor or changed setting", *FAULTS, "all", "all, small faults"], made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--show", action="store_true", help="only the table of what was measured, in docs/novelty.md, too"
    )
    options = parser.parse_args()
    if not options.show:
        save(DATA / "first-alarms.csv", measure())
    made = table(load(DATA / "first-alarms.csv"))
    publish({"first-alarms": made}, DATA.parent / "novelty.md")
    print(made)


if __name__ == "__main__":
    main()
