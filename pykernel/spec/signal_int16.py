"""Raw signals in integers (int16): how channels, measures and features are scaled so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.spec.signal import Row, SignalSection, capacities, cosines, plan_of, shared_parameters

FULL = 32767
"""Largest magnitude of a count."""
MEASURED = ("mean", "rms", "std", "min", "max", "range", "crossings", "change", "band")
"""Kinds of measures that integer models can compute."""
PERIOD_MOST = 65536
"""Longest period, in raw samples.  Up to this period, the error of a phase is at most 2^-15 of a turn."""
BAND_WINDOW = 4096
"""Longest window for features of frequency bands, in raw samples."""


@dataclass(frozen=True)
class Channels:
    """How raw samples are represented by counts; each field has the shape (channels,).

    resolution: the value of one count.  most: the largest accepted count.  fill: the power of two by which counts are
    multiplied to fill 16 bits; the unit of most measures is 1 / fill of a count.
    """

    resolution: np.ndarray
    most: np.ndarray
    fill: np.ndarray


def channels_of(signal: SignalSection) -> Channels:
    count = len(signal.channels)
    limit = np.array(np.broadcast_to(np.array(signal.max_abs, float), count))
    resolution = 2.0 ** np.ceil(np.log2(limit / FULL))
    if signal.resolution is not None:
        resolution = np.array(np.broadcast_to(np.array(signal.resolution, float), count))
    with np.errstate(over="ignore"):
        most = np.minimum(np.floor(limit / resolution * (1 + 1e-9)), 2.0**62).astype(np.int64)
    fill = 2 ** np.floor(np.log2(FULL / np.clip(most, 1, FULL))).astype(np.int64)
    return Channels(resolution, most, fill)


def complain(signal: SignalSection) -> None:
    """Raise ValueError for features that integer models cannot compute, and for unsuitable ranges or resolutions of
    channels.
    """
    if "max_abs" not in signal.model_fields_set:
        raise ValueError("max_abs is missing; int16 needs the range of each channel: one number or a list")
    for key in ("max_abs", "resolution"):
        numbers = getattr(signal, key)
        if isinstance(numbers, tuple) and len(numbers) != len(signal.channels):
            raise ValueError(
                f"{key} holds {len(numbers)} numbers; it must hold {len(signal.channels)}, one for each channel"
            )
    for row in plan_of(signal).measures:
        if row.kind not in (*MEASURED, "value"):
            *others, last = MEASURED[:-1]
            raise ValueError(
                f"features has {row.kind}, which is not available with precision int16; choose {', '.join(others)} or {last}, or "
                "precision float32"
            )
    if signal.log:
        raise ValueError("log is not available with precision int16; remove log, or choose precision float32")
    if signal.bands and (signal.window or 0) > BAND_WINDOW:
        raise ValueError(f"window is {signal.window}; bands in int16 need a window of at most {BAND_WINDOW}")
    if max(signal.periods, default=0) > PERIOD_MOST:
        raise ValueError(
            f"periods holds {max(signal.periods)}; with precision int16, a period is at most {PERIOD_MOST} raw samples: give shorter "
            "periods, or choose precision float32"
        )
    channels = channels_of(signal)
    for j, name in enumerate(signal.channels):
        if not 1 <= channels.most[j] <= FULL:
            raise ValueError(
                f"resolution is {channels.resolution[j]:g} for {name}, so its max_abs is {channels.most[j]:,} counts; "
                f"max_abs must be from 1 to {FULL:,} counts"
            )


def _units(signal: SignalSection) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Return two lists of (value of one count, largest magnitude): one for the measures, and one for the features."""
    plan, found = plan_of(signal), channels_of(signal)
    one = found.resolution / found.fill

    def of_measure(row: Row) -> tuple[float, float]:
        unit = float(one[row.of])
        if row.kind == "crossings":
            return 2.0**-15, FULL * 2.0**-15
        if row.kind == "band":
            return unit, FULL * unit
        limit = float(found.most[row.of] * found.resolution[row.of])
        return (2 * unit, 2 * limit) if row.kind in ("range", "change") else (unit, limit)

    measures = [of_measure(row) for row in plan.measures]

    def of_feature(row: Row) -> tuple[float, float]:
        if row.kind == "phase":
            return 2.0**-14, 1.0
        unit, limit = measures[row.of]
        return (2 * unit, 2 * limit) if row.kind == "difference" else (unit, limit)

    return measures, [of_feature(row) for row in plan.features]


def measure_units(signal: SignalSection) -> np.ndarray:
    """Return the value of one count of each measure, (MEASURES,)."""
    return np.array([unit for unit, _ in _units(signal)[0]])


def _centers(signal: SignalSection, written: Mapping[str, Any]) -> list[float]:
    """Return the centers that are subtracted from the features: the user's, or 0 if the user gave none."""
    center, count = written.get("center"), len(plan_of(signal).features)
    known = isinstance(center, (list, tuple)) and len(center) == count
    return [float(c) for c in center] if known else [0.0] * count  # type: ignore[union-attr]


def shifts_of(signal: SignalSection, centers: Sequence[float]) -> list[int]:
    """Return, for each feature, the smallest k for which the feature, divided by 2^k, fits in 16 bits both before and
    after its center is subtracted.
    """
    return [
        next(k for k in range(64) if limit + 2 * abs(center) <= (FULL - (center != 0)) * unit * 2**k)
        for (unit, limit), center in zip(_units(signal)[1], centers, strict=True)
    ]


def inputs_of(signal: SignalSection, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model's inputs as keys of [input].  written: the keys that the user wrote.

    If no scale is given, features are scaled so that their largest magnitude is 1.
    """
    features, centers = _units(signal)[1], _centers(signal, written)
    names = [row.name for row in plan_of(signal).features]
    for (_, limit), center, name in zip(features, centers, names, strict=True):
        if not abs(center) <= limit:
            raise ValueError(
                f"[input] center has {center:g} for {name}, but the magnitude of this feature is at most {limit:g}; give a center nearer to 0"
            )
    units = [unit * 2**shift for (unit, _), shift in zip(features, shifts_of(signal, centers), strict=True)]
    # a center is rounded to a count
    reach = [
        limit + (abs(center) + unit if center else 0.0)
        for (_, limit), center, unit in zip(features, centers, units, strict=True)
    ]
    own: dict[str, Any] = {"columns": names, "max_abs": reach, "resolution": units}
    if (narrower := written.get("max_abs")) is not None:
        own["max_abs"] = _narrowed(narrower, reach, names)
    if written.get("scale") is None:
        own["scale"] = [1 / limit for _, limit in features]
    return own


def _narrowed(ranges: Any, reach: Sequence[float], names: Sequence[str]) -> Any:
    """Return the ranges that the user wrote, to which the device will clip the features.

    Raises ValueError if the number of ranges is wrong, or if a range is larger than its feature can ever be.
    """
    values = list(ranges) if isinstance(ranges, (list, tuple)) else [ranges] * len(names)
    if len(values) != len(names):
        raise ValueError(
            f"[input] max_abs holds {len(values)} numbers; it must hold {len(names)}, one for each feature"
        )
    for value, most, name in zip(values, reach, names, strict=True):
        if isinstance(value, (int, float)) and value > most * (1 + 1e-9):
            raise ValueError(
                f"[input] max_abs has {value:g} for {name}, but |x - center| of this feature is at most {most:g}; give a smaller limit"
            )
    return ranges


def parameters(
    signal: SignalSection,
    label_column: str | None,
    awaits: bool,
    label_one: float,
    units: Sequence[float],
    reach: tuple[np.ndarray, np.ndarray],
) -> dict[str, Any]:
    """Return the values of Int16SignalConfig.

    label_one: the device's number for a label of 1.  units: for each feature, the value of one count.
    reach: for each feature, the smallest and the largest count that the model accepts.
    """
    plan, channels = plan_of(signal), channels_of(signal)
    shared = shared_parameters(signal, MEASURED, label_column, awaits)
    kinds = {row.kind for row in plan.measures}
    ratio = float(measure_units(signal)[shared["label_measure"]]) * label_one
    if ratio > 65535 and label_column in signal.channels:
        raise ArithmeticError("a count of the channel is worth more than 2^16 counts of the label")
    places = min(31, math.floor(math.log2(65535 / ratio))) if ratio > 0 else 0
    kept = capacities(signal, False)["RAW_KEPT"]
    own = [unit for unit, _ in _units(signal)[1]]
    shifts = [round(math.log2(unit / before)) for unit, before in zip(units, own, strict=True)]
    lowest, highest = (np.clip(end, -FULL, FULL) for end in reach)
    return shared | {
        "has_squares": bool({"rms", "std"} & kinds),
        "sample_most": channels.most.tolist(),
        "fill": channels.fill.tolist(),
        "block_most": FULL * signal.step,
        "window": max(2, signal.window or 1),
        "label_factor": max(1, math.floor(ratio * 2**places)),
        "label_places": max(0, places),
        # for one side of the spectrum; the squared weights of a Hann window sum to 3/8 of its length
        "band_factor": round(2 * 2.0**32 * 2.0**-13 * 2 * math.sqrt(0.5 / 0.375)),
        "fourier_levels": kept.bit_length() - 2,
        "cosines": [round(32768 * value) for value in cosines(kept)[: kept // 4 + 1]],
        "has_coarse": any(shifts),
        "made_shift": shifts,
        "has_narrow": bool((lowest > -FULL).any() or (highest < FULL).any()),
        "made_low": lowest.tolist(),
        "made_high": highest.tolist(),
        "period_share": [min(2**31 - 1, round(2**31 / period)) for period in shared["period"]],
    }


def raw_counts_told(signal: SignalSection, names: Sequence[str]) -> list[str]:
    """Return a line for each channel, with the value of one count and the range of accepted counts."""
    found = channels_of(signal)
    return [
        f"{name}: 1 count is {resolution:.6g}; from {-most} to {most}"
        for name, resolution, most in zip(names, found.resolution, found.most, strict=True)
    ]
