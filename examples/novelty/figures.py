"""The figure of docs/guide/monitor-settings.md, with matplotlib."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from machine import GEARS, SENSORS
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.figures import COLOURS
from pykernel.files import whole_file

ALARM, TRUTH, GREY = "#D55E00", "#F5C77E", "#777777"
MERGED = 5
"""Rows of which the figure shows the largest level."""
HIGHEST = 1.4
"""Levels are cut off at so many times the highest threshold."""
STEPS = (0.1, 0.3, 0.6, 1.1)
"""Shares in an alarm have dots of these sizes; smaller shares are not drawn."""


def saved(figure: Figure, path: Path) -> None:
    """As SVG, the same bytes for the same figure."""
    FigureCanvasSVG(figure)
    with matplotlib.rc_context({"svg.hashsalt": path.stem, "path.simplify_threshold": 0.3}), whole_file(path) as file:
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def bare(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_axisbelow(True)


def alarm_figure(path: Path, parts: Sequence[Any], gears: np.ndarray, course: Any) -> None:
    """Level, threshold and alarms after the first part, what each sensor has of an alarm, and the gear."""
    start = parts[0].rows
    figure = Figure(figsize=(10, 6.4), layout="constrained")
    top, middle, bottom = figure.subplots(3, 1, sharex=True, height_ratios=[3, 2.2, 0.7])
    for axis in (top, middle, bottom):
        bare(axis)
        at, last = 0, None
        for part in parts:
            if part.fault is not None:
                axis.axvspan(at, at + part.rows, color=TRUTH, alpha=0.5, linewidth=0)
                if axis is top and part.fault is not last:
                    place, words = axis.get_xaxis_transform(), {"fontsize": 8, "color": GREY, "rotation": 20}
                    axis.text(at, 1.02, part.text, transform=place, **words)
            at, last = at + part.rows, part.fault
    t = np.arange(start, len(gears))
    levels, thresholds, alarmed = (each[start:] for each in (course.levels, course.thresholds, course.alarms))
    high = HIGHEST * float(thresholds.max())
    whole = len(t) // MERGED * MERGED
    top.plot(
        t[:whole:MERGED], np.fmin(levels[:whole].reshape(-1, MERGED).max(1), high), color=COLOURS[0], linewidth=0.7
    )
    top.plot(t[:whole:MERGED], thresholds[:whole:MERGED], color="black", linewidth=1.2, linestyle="--")
    top.plot(t[alarmed], np.full(int(alarmed.sum()), 1.08 * high), "|", color=ALARM, markersize=7, markeredgewidth=0.7)
    top.set_ylim(min(0.0, float(levels.min())), 1.15 * high)
    top.set_ylabel("level")
    shares = course.shares[start:]
    for least, most in itertools.pairwise(STEPS):
        rows, which = np.nonzero((shares > least) & (shares <= most))
        middle.plot(t[rows], which, "o", color=ALARM, alpha=0.35, markersize=8 * most, markeredgewidth=0)
    middle.set_yticks(range(len(SENSORS)), list(SENSORS), fontsize=7)
    middle.set_ylim(len(SENSORS) - 0.5, -0.5)
    middle.set_ylabel("blamed")
    shifts = np.r_[start, start + 1 + np.flatnonzero(np.diff(gears[start:])), len(gears) - 1]
    bottom.step(shifts, gears[shifts], where="post", color=GREY, linewidth=0.6)
    bottom.set_yticks(range(len(GEARS)), list(GEARS), fontsize=7)
    bottom.set_ylabel("gear")
    bottom.set_xlabel("row")
    bottom.set_xlim(start, len(gears))
    told = [
        top.plot([], [], color=COLOURS[0], label=f"level (largest of {MERGED} rows, cut off)")[0],
        top.plot([], [], color="black", linestyle="--", label="threshold")[0],
        top.plot([], [], "|", color=ALARM, markersize=9, label="row in alarm")[0],
        top.fill_between([], [], color=TRUTH, alpha=0.5, label="fault or change"),
    ]
    figure.legend(handles=told, loc="outside lower center", ncols=4, frameon=False)
    saved(figure, path)
