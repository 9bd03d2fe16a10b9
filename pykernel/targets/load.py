"""Compute a model's share of the processor's time and, with a figure from the data sheet, the electric charge that it uses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pykernel.spec.model import Spec

DAY = 86_400  # seconds


@dataclass(frozen=True)
class Load:
    """Cycles for each sample, summed over all functions that a firmware calls for a sample.

    most, mean: largest and mean number of cycles.  If there is a signal stage, ``most`` is for the raw sample that ends
    a step.
    kind: the source of ``most``: "measured" on a board or in an emulator, "proved", or "estimated".
    """

    most: float
    mean: float
    kind: str
    hertz: float
    rate: float
    answered: float = 0.0  # largest number of cycles to answer an alarm after the sample

    @property
    def seconds(self) -> float:
        return self.most / self.hertz

    @property
    def share(self) -> float:
        """The fraction of the processor's time that the model takes if every sample takes the largest number of cycles.

        If this fraction exceeds 1, the next sample can arrive before the processor has learned the last one.
        """
        return self.seconds * self.rate

    @property
    def mean_share(self) -> float:
        """The mean fraction of the processor's time that the model takes.  If this fraction exceeds 1, no queue of
        samples is long enough.
        """
        return self.mean / self.hertz * self.rate

    @property
    def waiting(self) -> int:
        """Number of samples that a queue must hold: those that arrive while the slowest sample is learned and its alarm
        is answered.
        """
        return math.ceil((self.most + self.answered) / self.hertz * self.rate) - 1

    def charge(self, microamperes_per_megahertz: float) -> float:
        """Return the charge in milliampere-hours per day.

        The processor is assumed to sleep between samples, and to draw no current while it sleeps.  The result is at most the
        charge of a processor that never sleeps.
        """
        cycles = min(self.mean * self.rate, self.hertz)  # cycles per second
        ampere_seconds = microamperes_per_megahertz * 1e-12 * cycles * DAY
        return ampere_seconds / 3.6


def load_of(spec: Spec, row: Mapping[str, Any], clock: float | None, rate: float) -> Load | None:
    """Return the load from a row of ``check_targets`` or ``check_board``, or None if the row has no cycles or the clock
    is not known.

    clock: cycles per second, for rows without ``hertz``.  rate: samples per second.
    """
    calls = [spec.program.asks, *([spec.program.learner] if spec.program.learns else [])]
    if spec.signal is not None and spec.program.alarms:
        calls = [spec.program.learner]  # no question is asked, because the status says whether there is an alarm
    times, hertz = row.get("times", {}), row.get("hertz") or clock
    bounds = [row.get("bounds", {}).get(call, {}) for call in calls]
    proved = all(bound.get("cycles") for bound in bounds)
    timed = all(call in times for call in calls)
    if not hertz or not (timed or (proved and all(row.get(call) for call in calls))):
        return None
    # the question is asked once per step
    often = [1 / spec.stride if call == spec.program.asks else 1.0 for call in calls]
    if timed:
        means = [times[call]["mean"] for call in calls]
    else:  # the mean of the counted instructions, times the bound's cycles per instruction
        means = [row[call]["mean"] * b["cycles"] / b["instructions"] for call, b in zip(calls, bounds, strict=True)]
    mean = sum(part * each for part, each in zip(often, means, strict=True))
    if not proved:
        return Load(sum(times[call]["max"] for call in calls), mean, "measured", hertz, rate)
    kind = "estimated" if any(bound["estimated"] for bound in bounds) else "proved"
    answers = [entry.name for entry in spec.program.entries if entry.answers]
    answered = max((row["bounds"].get(call, {}).get("cycles") or 0 for call in answers), default=0)
    return Load(sum(bound["cycles"] for bound in bounds), mean, kind, hertz, rate, answered)
