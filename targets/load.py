"""What a model takes of a processor that does other things, too: its time, and with a data sheet's figure its charge."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pykernel.spec.model import Spec

DAY = 86_400  # seconds


@dataclass(frozen=True)
class Load:
    """Of each sample, with all that a firmware calls for it.

    most, mean: cycles.  kind: where they are from: "measured" on a board, "proved", or "estimated".
    """

    most: float
    mean: float
    kind: str
    hertz: float
    rate: float

    @property
    def seconds(self) -> float:
        return self.most / self.hertz

    @property
    def share(self) -> float:
        """The part of the processor's time, at most; above 1: samples come faster than they are learned."""
        return self.seconds * self.rate

    def charge(self, microamperes_per_megahertz: float) -> float:
        """Milliampere-hours a day, if the processor sleeps, for nothing, in between; at most those of one that never does."""
        cycles = min(self.mean * self.rate, self.hertz)  # a second
        ampere_seconds = microamperes_per_megahertz * 1e-12 * cycles * DAY
        return ampere_seconds / 3.6


def load_of(spec: Spec, row: Mapping[str, Any], clock: float | None, rate: float) -> Load | None:
    """The load in a row of ``check_targets`` or ``check_board``; None if it has no cycles.

    clock: cycles a second, where the row does not know it.  rate: samples a second.
    """
    calls = [spec.program.asks, *([spec.program.learner] if spec.program.learns else [])]
    times, hertz = row.get("times", {}), row.get("hertz") or clock
    bounds = [row.get("bounds", {}).get(call, {}) for call in calls]
    proved = all(bound.get("cycles") for bound in bounds)
    timed = all(call in times for call in calls)
    if not hertz or not (timed or (proved and all(row.get(call) for call in calls))):
        return None
    if timed:
        mean = sum(times[call]["mean"] for call in calls)
    else:  # instructions that were counted, at the cycles that they have in the bound
        mean = sum(row[call]["mean"] * b["cycles"] / b["instructions"] for call, b in zip(calls, bounds, strict=True))
    if not proved:
        return Load(sum(times[call]["max"] for call in calls), mean, "measured", hertz, rate)
    kind = "estimated" if any(bound["estimated"] for bound in bounds) else "proved"
    return Load(sum(bound["cycles"] for bound in bounds), mean, kind, hertz, rate)
