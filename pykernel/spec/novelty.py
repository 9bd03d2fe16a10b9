"""The section [novelty], which sets when a monitor raises an alarm, and the parameters of the monitor's threshold."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationInfo

from pykernel.algorithms.novelty.threshold import LEVEL_MOST, LONG
from pykernel.spec.sections import Counts, Section, Within, shown_value

THRESHOLD_HORIZON = 1000
UPPER = 0.1
"""The threshold is derived from a quantile of the levels.  The fraction of rows above this quantile is UPPER, or twice
the false-alarm rate if that is larger."""
SHAPE, SHAPE_ARMED = 0.2, 0.05
"""Shape of the generalised Pareto distribution beyond the quantile; with 0, the tail would be exponential.  The second
value is for monitors that will be armed.  After arming, the threshold can hardly fall, so it must suit small false-alarm
rates at the moment of arming."""
CORRECTION, UNDONE = 0.02, 2e-4
"""Changes of the threshold, in units of the mean excess.  A row in alarm raises the threshold by about the first value.
If the false-alarm rate is below 0.01, the rise is larger, up to 100 times the first value.  A row without an alarm
lowers the threshold by the second value.  The fall is larger if the false-alarm rate is above 0.01, and smaller if this
rate is below 0.0001.  These values were chosen on simulated plants (docs/records.md, record "alarms")."""
EXCESS_ARMED = 3.0
"""Largest mean excess of an armed monitor, in units of the usual spread of the levels."""
HELD, HELD_RATE, REFILL = 20, 1000, 1.5
"""A token bucket limits how many rows in alarm the threshold of an armed monitor learns from.  The bucket holds at
most HELD + HELD_RATE · rate tokens, where rate is the false-alarm rate.  Each learned row in alarm takes one token, and
every row adds REFILL · rate tokens."""

SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
"""Unit of time -> seconds."""


def rows_of(value: Any, info: ValidationInfo) -> Any:
    """Convert "never", or a time such as "8 h", to a number of rows.

    Raises ValueError for any other text, and for a time if the number of rows per second is not known.  A value that
    is not text is returned unchanged.
    """
    if not isinstance(value, str):
        return value
    if value == "never":
        return LONG
    found = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?(s|min|h|d)", value)
    if found is None:
        raise ValueError(f'is {shown_value(value)}; it must be a number of rows, or a time such as "90 s" or "8 h"')
    if (rate := (info.context or {}).get("rows_a_second")) is None:
        raise ValueError(
            f"is {value!r}, but the number of rows per second is not known; give a number of rows, or add [signal] rate, in raw samples per second"
        )
    return round(float(found[1]) * SECONDS[found[2]] * rate)


Counted = Annotated[int, Field(ge=2, le=LONG)]
RowsOrTime = Annotated[Counted, BeforeValidator(rows_of, json_schema_input_type=Counted | str)]
"""A number of rows, "never", or a time if the number of rows per second is known."""


class Novelty(Section):
    """The alarms of a monitor: when they are raised, and how the monitor learns during an alarm."""

    false_alarm_rate: Annotated[float, Within(float32=(1e-6, 0.25), float64=(1e-12, 0.25))] = Field(
        0.01,
        gt=0,
        le=0.25,
        description="target fraction of rows in alarm during normal operation; the threshold adapts to keep the actual fraction near it",
    )
    smoothing: float = Field(
        0.7,
        ge=0.01,
        le=1,
        description="weight of the latest row's novelty in the level: level = (1 − smoothing) · level + smoothing · novelty. An alarm lasts while the level is above the threshold",
    )
    warmup: RowsOrTime = Field(
        500,
        description="number of rows at the start that raise no alarms; the threshold begins to adapt after a quarter of these rows",
    )
    relearn_after: RowsOrTime = Field(
        80,
        description='during an alarm, the monitor stops learning for at most this many rows: a new state that lasts longer becomes normal. `"never"` stands for 16,777,216 rows, the largest count',
    )
    life: Literal["known", "changing", "fixed"] = Field(
        "known",
        description='how the monitor treats new states. `"known"`: all normal states are expected during commissioning. After commissioning, the monitor is armed: a new state becomes normal only if one alarm lasts for `relearn_after` rows. `"changing"`: new states soon become normal, and so does a fault that repeats. `"fixed"`: as with `"known"`, but once the monitor is armed, its threshold no longer adapts',
    )
    commissioning: Annotated[
        RowsOrTime,
        Counts('has no effect with life = "changing"; leave commissioning out', ("novelty.life",), ("known", "fixed")),
    ] = Field(
        1500,
        description="number of rows after the warm-up until the monitor is armed; run the machine through its normal states in this time",
    )


def threshold_parameters(novelty: Novelty) -> dict[str, Any]:
    """Return the values of ThresholdConfig."""
    rate, arms = novelty.false_alarm_rate, novelty.life != "changing"
    upper = max(UPPER, 2 * rate)
    shape = SHAPE_ARMED if arms else SHAPE
    # computed with Decimal, so that the bits are the same on every machine
    ratio = float(Decimal(upper / rate) ** Decimal(str(shape)))
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
