"""Check a recording before a model is planned for it: find rows that are unlike all other rows, and raw waveforms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pykernel.errors import shown_option
from pykernel.host.model import HostModel
from pykernel.spec.defaults import completed
from pykernel.spec.model import make_spec
from pykernel.tuning.data import Table
from pykernel.tuning.tables import listed

LASTS = 20
"""Alarms are joined if fewer than this many rows lie between them, and reported if they have at least this many rows."""
KNOWN, RELEARN, FEWEST = 1500, 400, 400
"""KNOWN: number of rows at the beginning of each pass over the recording, at most a quarter of it, that raise no alarms.
RELEARN: number of rows in alarm after which a state becomes normal.  FEWEST: minimum number of rows of a recording in
which unlike rows are searched for."""
LONGEST_PERIOD, WAVES, CHANNELS, PERIODS = 200, 0.3, 8, 8
"""LONGEST_PERIOD: longest period of an oscillation, in rows.  WAVES: minimum autocorrelation at a lag of one period.  At a lag of half a
period, the autocorrelation must be below -WAVES.  CHANNELS: maximum number of channels.  PERIODS: minimum number of periods in a window.
"""


def unlike(x: np.ndarray) -> list[tuple[int, int]]:
    """Return the first and the last row, counted from 0, of each long stretch that is unlike all other rows.

    In such a stretch, two monitors are in alarm: one that has learned the earlier rows, and one that has learned the later rows.  A state
    that occurs twice is therefore not reported.  Near the two ends of the recording (KNOWN), one of the monitors has
    learned too few rows, so the alarm of the other monitor suffices.
    """
    known = min(KNOWN, len(x) // 4)
    novelty = {"life": "known", "warmup": min(500, known // 2), "commissioning": known, "relearn_after": RELEARN}
    spec = make_spec(dict(completed({"name": "both", "input": {"dim": x.shape[1]}, "novelty": novelty})))
    alarms = [int(status) for status in spec.program.alarms]
    before, behind = (np.isin(HostModel(spec).update(rows), alarms) for rows in (x, x[::-1]))
    before[:known] = behind[:known] = True
    at = np.flatnonzero(before & behind[::-1])
    parts = np.split(at, np.flatnonzero(np.diff(at) > LASTS) + 1)
    return [(int(part[0]), int(part[-1])) for part in parts if len(part) >= LASTS]


def states_told(x: np.ndarray) -> str:
    """Return a sentence about the normal states of a recording, and about a monitor's reaction to another state."""
    model = HostModel(make_spec(dict(completed({"name": "states", "input": {"dim": x.shape[1]}, "novelty": {}}))))
    model.update(x)
    count = int((model.read("regimes")[0] > 0).sum())
    known = f"{count} normal states" if count > 1 else "one normal state"
    return (
        f"after this recording, a monitor knows {known}; any other state raises an alarm until the monitor has "
        "learned it as normal, or the firmware acknowledges it"
    )


def period_of(x: np.ndarray) -> int | None:
    """Return the median period, in rows, of the columns that oscillate.  O(D rows log rows).

    The result is None if fewer than half of the varying columns oscillate.
    """
    found, moving = [], 0
    for column in np.where(np.isfinite(x), x, np.nan).T:
        away = np.nan_to_num(column - np.nanmean(column)) if np.isfinite(column).any() else np.zeros(1)
        alike = np.fft.irfft(np.abs(np.fft.rfft(away, 2 * len(away))) ** 2)[: LONGEST_PERIOD + 1]
        if alike[0] > 0:
            moving, alike = moving + 1, alike / alike[0]
            half = int(np.argmax(alike < -WAVES))
            later = half + int(np.argmax(alike[half:] > WAVES))
            if half and later > half:
                found.append(later + int(np.argmax(alike[later : later + half])))
    return int(np.median(found)) if found and 2 * len(found) >= moving else None


def told_of(table: Table, columns: Sequence[str], rows: int) -> list[str]:
    """Return sentences about the recording.  rows: the number of recorded rows.  The table may have only the last of these rows."""
    (unit, first), told = ("row", 1 + rows - len(table.x)) if table.stage is None else ("step", 1), list[str]()
    if table.y is None and table.devices is None and len(table.x) >= FEWEST and (found := unlike(table.x)):
        named = listed([f"{first + begin:,} to {first + end:,}" for begin, end in found])
        told.append(
            f"{unit}s {named} are unlike all other {unit}s: if the machine was faulty then, leave these {unit}s "
            "out, because a monitor learns them as normal"
        )
    # if the label oscillates as well, the inputs are not raw waveforms
    beside = None if table.y is None or table.of_classes else period_of(table.y.reshape(len(table.y), -1))
    if table.stage is None and table.x.shape[1] <= CHANNELS and beside is None and (period := period_of(table.x)):
        window, channels = max(64, 1 << (PERIODS * period - 1).bit_length()), ", ".join(f'"{name}"' for name in columns)
        model, features = ("monitor", '"rms", "change", "kurtosis"'), ("model", '"mean", "rms", "std"')
        what, taken = model if table.y is None else features
        novelty = "[novelty] and " * (table.y is None)
        told.append(
            f"the columns oscillate with a period of about {period} rows: if they are raw waveforms, a {what} that uses signal features is usually better; "
            f"use {shown_option('spec')} with a spec that has {novelty}[signal] channels = [{channels}], window = {window}, features = [{taken}]"
        )
    return told
