"""The result of a simulation of one device, and its figures."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.host.monitoring import Monitoring
from pykernel.host.seen import LABELS, Seen
from pykernel.host.simulation import Simulation
from pykernel.report.document import Document, Result
from pykernel.report.figures import Lane, Line, Plot, Span
from pykernel.telling import unit_of

LATEST = 200
"""Number of points in the figure of the latest forecasts.  A point stands for one row or several consecutive rows."""


@dataclass(frozen=True, repr=False)
class Simulated(Result):
    """The result of a simulation: how a model would have performed on a recording.

    report: all results, as ``pykernel simulate --json`` prints them.  simulation: an object with the model after the last row
    (``simulation.model``) and the model's errors over time (``simulation.errors.curve()``); without labels, the answers over time.
    """

    report: dict[str, Any]
    simulation: Simulation | Monitoring
    seen: Seen
    asked: dict[str, Any]

    @functools.cached_property
    def page(self) -> Document:
        from pykernel.gen.project import inside  # slow to load
        from pykernel.report import common
        from pykernel.report.simulated import simulated

        seen, simulation, spec = self.seen, self.simulation, self.seen.spec
        hash_sentence = f"NAME_hash returns this hash after these {simulation.rows:,} rows; pykernel check --data runs the C code and compares its hash with this one"
        memory = simulation.model.memory if spec.signal is None and not self.report.get("delay") else None
        read = common.table_read(seen.table.report(), seen.table.courses(), seen.table.rows)
        times, unit = functools.cache(seen.times), unit_of(self.report)
        plot, rule = functools.partial(Plot, xlabel=unit, times=times), spec.learning.rule
        if isinstance(simulation, Monitoring):
            plots = _course(simulation, plot, unit)
        else:
            plots = _errors(simulation, seen, plot, unit)
        model = lambda: common.inside(inside(spec, memory, hash_sentence))  # noqa: E731
        return simulated(self.report, self.asked, rule, read, plots, times, model)

    @property
    def measure(self) -> str:
        """The name of the measure in ``error``: rmse or error_rate."""
        return "error_rate" if self.report.get("classes") else "rmse"

    @property
    def error(self) -> float | None:
        """The model's error over the second half; None for a model without labels, or if no row has a label."""
        return None if isinstance(self.simulation, Monitoring) else self.report["second_half"][self.measure]["model"]

    @property
    def simple(self) -> dict[str, float | None]:
        """The errors of simple predictors over the second half."""
        if isinstance(self.simulation, Monitoring):
            return {}
        return {name: error for name, error in self.report["second_half"][self.measure].items() if name != "model"}

    @property
    def advice(self) -> list[str]:
        """Sentences that say why the model is bad and what to change."""
        return [f"{each['test']}: {each['why']}; {each['change']}" for each in self.report.get("advice", ())]

    def __repr__(self) -> str:
        return "\n  advice: ".join([super().__repr__(), *self.advice])


# -------------------------------------------------------------------------------------------------------------- figures


def _course(simulation: Monitoring, plot: Callable[..., Plot], unit: str) -> dict[str, list[Plot]]:
    """Draw the answers.

    For a model that raises alarms, draw the level and the threshold, and mark the alarms: one lane has all alarms, and
    each of the inputs that are blamed most often has a lane with its alarms.
    """
    course, asks, warm, lanes = simulation.course, simulation.spec.program.asks, simulation.warm, []
    there, names = course.curves(first=warm), course.names
    at, kinds = there["row"], [f"c{i % 9}" for i in range(2 * len(names))]
    title = section = "Answers"
    if simulation.alarms is not None:
        title, section, kinds[: len(names)] = "Level, threshold and alarms", "Level and alarms", ["c6"] * len(names)
        listed = simulation.alarms.listed
        rows = np.array([(alarm["first_row"] + alarm["last_row"]) / 2 for alarm in listed])
        blamed = np.array([alarm["input"] for alarm in listed], object)
        most_blamed = Counter(blamed).most_common(LABELS)
        lanes = [Lane("alarms", rows), *(Lane(name, rows[blamed == name]) for name, _ in most_blamed)]
    lines = [Line(f"{name}, mean", at, y, kind) for name, y, kind in zip(names, there["mean"].T, kinds, strict=False)]
    if np.isfinite(there["threshold"]).any():
        lines += [Line("threshold", at, there["threshold"], "c1"), Line("level, highest", at, there["level"], "model")]
    else:
        both = zip(names, there["largest"].T, kinds[len(names) :], strict=True)
        lines += [Line(f"{name}, largest", at, y, kind) for name, y, kind in both]
    note = f"after the warm-up of {warm:,} {unit}s" if warm else ""
    return {section: [plot(title, ylabel=asks, lines=lines, lanes=lanes, zero=True, note=note)]}


def _errors(simulation: Simulation, seen: Seen, plot: Callable[..., Plot], unit: str) -> dict[str, list[Plot]]:
    """Draw forecasts, errors over time, and intervals."""
    # fewer windows for few rows, so that each window is a mean of several rows
    at, errors = simulation.errors.curve(max(4, min(60, simulation.rows // 20)))
    both = enumerate(zip(simulation.errors.names, errors.T, strict=True))
    lines = [Line(name, at, y, f"c{i}" if i else "model") for i, (name, y) in both]
    ylabel = f"fraction of {unit}s with a wrong class" if simulation.classes else "mean absolute error"
    # a logarithmic axis cannot show an error of 0
    log, marks = bool((errors[np.isfinite(errors)] > 0).all()), {"second half": simulation.rows / 2}
    course = plot("Error over time", ylabel=ylabel, lines=lines, log=log, zero=not log, marks=marks)
    return {
        "Forecast and truth": _forecasts(seen, plot, unit),
        "Errors": [course],
        "Intervals": _intervals(simulation, plot, unit),
    }


def _forecasts(seen: Seen, plot: Callable[..., Plot], unit: str) -> list[Plot]:
    rows, high, low = seen.forecasts.lines()
    plots = []
    for i, label in enumerate(seen.shown):
        lines = [
            Line(name, rows, high[:, j], kind, None if low is None else low[:, j])
            for j, name, kind in ((2 * i, "truth", "truth"), (2 * i + 1, "forecast", "model thin"))
        ]
        plots.append(plot(f"{label}: all {unit}s", ylabel=label, lines=lines))
        if len(rows) > 2 * LATEST:
            latest = [each.latest(LATEST) for each in lines]
            plots.append(plot(f"{label}: the end", ylabel=label, lines=latest))
    return plots


def _intervals(simulation: Simulation, plot: Callable[..., Plot], unit: str) -> list[Plot]:
    """Draw the latest intervals and labels, relative to the forecasts."""
    if simulation.coverage is None or not len(ends := simulation.coverage.latest):
        return []
    answers, truth, lower, upper = ends.T
    places = np.arange(simulation.rows - len(ends), simulation.rows, dtype=float)
    error, within = truth - answers, (truth >= lower) & (truth <= upper)
    outside = ~within & np.isfinite(error)
    dots = [
        Line(f"label, {name}", places[which], error[which], kind)
        for name, which, kind in (("inside", within, "truth dot"), ("outside", outside, "c1 dot"))
        if which.any()
    ]
    spans = [Span("interval", places, lower - answers, upper - answers)]
    ylabel = f"label - forecast ({simulation.labels[0]})"
    return [plot(f"The latest {len(ends)} {unit}s", ylabel=ylabel, spans=spans, dots=dots)]
