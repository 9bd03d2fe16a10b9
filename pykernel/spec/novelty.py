"""[novelty]: when a row is an alarm, and the parameters of the monitor's threshold."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from pykernel.algorithms.novelty.threshold import LEVEL_MOST, LONG
from pykernel.spec.sections import Counts, Section, Within, shown_value

THRESHOLD_HORIZON = 1000
UPPER = 0.1
"""The fraction of rows above the threshold's quantile; twice the false-alarm rate if that is more."""
SHAPE, SHAPE_ARMED = 0.2, 0.05
"""Shape of the generalised Pareto distribution beyond the quantile; 0 would be an exponential tail.  The second value is for monitors that
arm: an armed threshold can hardly fall, so it must begin at the level that small false-alarm rates need."""
CORRECTION, UNDONE = 0.02, 2e-4
"""Changes of the threshold, in mean excesses: a row in alarm raises it by the first value (more for small rates), a quiet row lowers it by
the second (more for large rates).  All were chosen on simulated plants (docs/records.md, alarms)."""
EXCESS_ARMED = 3.0
"""Largest mean excess once the monitor is armed, in units of a level's usual spread."""
HELD, HELD_RATE, REFILL = 20, 1000, 1.5
"""Once armed, the threshold learns from a limited number of rows in alarm: HELD + HELD_RATE · rate in a row.  Each further row allows
REFILL · rate more, where rate is the false-alarm rate."""

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
"""Unit of time -> seconds."""


def rows_of(given: Any, info: ValidationInfo) -> Any:
    """Convert a time such as "8 h" to a number of rows; return anything else unchanged.  Raises ValueError."""
    if not isinstance(given, str):
        return given
    if given == "never":
        return LONG
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(s|min|h|d)", given)
    if found is None:
        raise ValueError(f'is {shown_value(given)}; it must be a number of rows, or a time such as "90 s" or "8 h"')
    if (rate := (info.context or {}).get("rows_a_second")) is None:
        raise ValueError(f"is {given!r}; give a number of rows, or the raw samples a second, too, as [signal] rate")
    return round(float(found[1]) * SECONDS[found[2]] * rate)


Counted = Annotated[int, Field(ge=2, le=LONG)]
RowsOrTime = Annotated[Counted, BeforeValidator(rows_of, json_schema_input_type=Counted | str)]
"""A number of rows; also a time, if the number of rows per second is known."""


class Novelty(Section):
    """When a row is an alarm."""

    false_alarm_rate: Annotated[float, Within(float32=(1e-6, 0.25), float64=(1e-12, 0.25))] = Field(
        0.01,
        gt=0,
        le=0.25,
        description="the part of the rows of normal operation that are in alarm; the threshold adapts until it is so",
    )
    smoothing: float = Field(0.7, ge=0.01, le=1, description="level = (1 − smoothing) · level + smoothing · score")
    warmup: RowsOrTime = Field(
        500,
        description="number of rows without alarms at first; the threshold learns from a quarter of them on",
    )
    relearn_after: RowsOrTime = Field(
        80,
        description='in an alarm nothing is learned, for at most this many rows; what lasts longer is the new normal. `"never"`: 16,777,216, as long as rows are counted',
    )
    life: Literal["known", "changing", "fixed"] = Field(
        "known",
        description='how the machine lives. `"known"`: after commissioning its normal states are known, and the monitor is armed: what is new is normal after `relearn_after` rows of one alarm. `"changing"`: it gets new states, which soon become normal, and so does a fault that repeats. `"fixed"`: armed, with a threshold that no longer learns',
    )
    commissioning: Annotated[
        RowsOrTime, Counts('is not of life "changing"; leave it out', ("novelty.life",), ("known", "fixed"))
    ] = Field(
        1500,
        description="number of rows after the warm-up until the monitor is armed; let the machine run through its normal states in them",
    )


def threshold_parameters(novelty: Novelty) -> dict[str, Any]:
    """Values of ThresholdConfig."""
    rate, arms = novelty.false_alarm_rate, novelty.life != "changing"
    upper = max(UPPER, 2 * rate)
    shape = SHAPE_ARMED if arms else SHAPE
    ratio = float(Decimal(upper / rate) ** Decimal(str(shape)))  # the same on every machine
    tail = (1 - shape) * (ratio - 1) / shape
    return {
        "alarm_rate": rate,
        "upper": upper,
        "tail": tail,
        "level_end": LEVEL_MOST.by_precision["float32"],
        "inside": 1 - rate / upper,
        "correction": min(max(CORRECTION, UNDONE / rate), 100 * CORRECTION),
        "smoothing": novelty.smoothing,
        "excess_first": 1.0,
        "excess_least": 0.05,
        "excess_limit": EXCESS_ARMED,
        "shift_limit": max(1.0, tail / 2),
        "threshold_horizon": THRESHOLD_HORIZON,
        "arms": arms,
        "fixed": novelty.life == "fixed",
        "commissioning": novelty.commissioning,
        "tokens_most": HELD + HELD_RATE * rate,
        "token_rate": REFILL * rate,
    }
