"""[novelty]: when a row is an alarm, and the parameters of the threshold that every monitor has."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import Field

from pykernel.spec.sections import Counts, Section, Within

THRESHOLD_HORIZON = 1000
UPPER = 0.1
"""The threshold's quantile is exceeded by this part of the rows, or by twice the wanted rate where that is more."""
SHAPE, SHAPE_ARMED = 0.2, 0.05
"""Of the generalised Pareto distribution beyond the quantile: its tail is heavier than an exponential one (0).  A threshold that is armed
can hardly sink: it has to begin where small rates need it."""
CORRECTION, UNDONE = 0.02, 2e-4
"""A row in alarm raises the threshold by the first, in mean excesses, and by more for small rates: a quiet row lowers it by the second,
or by more for large ones.  All were chosen on the public plants (benchmarks/host/alarms)."""
EXCESS_ARMED = 3.0
"""Largest mean excess once the monitor is armed, in sizes of a level."""
HELD, HELD_RATE, REFILL = 20, 1000, 1.5
"""Once armed, so many rows in alarm teach the threshold one after the other, and 1.5 times as many as promised of those that follow."""


class NoveltySection(Section):
    """When a row is an alarm."""

    false_alarm_rate: Annotated[
        float,
        Within(float32=(1e-6, 0.25), float64=(1e-12, 0.25)),
        Counts(
            "has no use beside threshold, which does not adapt: leave one of them out", ("novelty.threshold",), (None,)
        ),
    ] = Field(
        0.01,
        gt=0,
        le=0.25,
        description="the part of the rows of normal operation that are in alarm; the threshold adapts until it is so",
    )
    smoothing: float = Field(1.0, ge=8e-6, le=1, description="level = (1 − smoothing) · level + smoothing · score")
    warmup: int = Field(
        500,
        ge=2,
        le=1_000_000,
        description="number of rows without alarms at first; the threshold learns from a quarter of them on",
    )
    relearn_after: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="in an alarm nothing is learned, for at most this many rows; what lasts longer is the new normal",
    )


def threshold_parameters(
    novelty: NoveltySection, size: float, level_end: float = 64.0, undone: float = UNDONE
) -> dict[str, Any]:
    """Values of ThresholdConfig.  size: how far apart levels usually are.  level_end: the largest one.  undone: see UNDONE."""
    rate, life = novelty.false_alarm_rate, getattr(novelty, "life", "changing")
    arms = life != "changing"
    upper = max(UPPER, 2 * rate)
    shape = SHAPE_ARMED if arms else SHAPE
    ratio = float(Decimal(upper / rate) ** Decimal(str(shape)))  # the same on every machine
    tail = (1 - shape) * (ratio - 1) / shape
    return {
        "alarm_rate": rate,
        "upper": upper,
        "tail": tail,
        "level_end": level_end,
        "inside": 1 - rate / upper,
        "correction": min(max(CORRECTION, undone / rate), 100 * CORRECTION),
        "smoothing": novelty.smoothing,
        "excess_first": size,
        "excess_least": size / 20,
        "excess_limit": EXCESS_ARMED * size,
        "shift_limit": max(1.0, tail / 2),
        "threshold_horizon": THRESHOLD_HORIZON,
        "arms": arms,
        "fixed": life == "fixed",
        "commissioning": getattr(novelty, "commissioning", 0),
        "tokens_most": HELD + HELD_RATE * rate,
        "token_rate": REFILL * rate,
    }
