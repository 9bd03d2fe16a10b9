"""The figures of docs/novelty.md, with matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from machine import GEARS
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from pykernel.files import whole_file
from pykernel.plots import COLOURS

ALARM, TRUTH, GREY = "#D55E00", "#F5C77E", "#777777"
MERGED = 5
"""Samples of which the figure shows the largest level."""
NAMES = {
    "okfeb": "okfeb, 48 vectors",
    "okfeb, small": "okfeb, 32 vectors",
    "largest": "max |z|",
    "mahalanobis": "Mahalanobis",
    "quadratic": "Mahalanobis, products too",
    "gaussians": "16 Gaussians",
    "gaussians, small": "4 Gaussians",
    "centroids": "250 centroids",
}


def saved(figure: Figure, path: Path) -> None:
    """As SVG, the same bytes for the same figure."""
    FigureCanvasSVG(figure)
    with matplotlib.rc_context({"svg.hashsalt": path.stem, "path.simplify_threshold": 0.3}), whole_file(path) as file:
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def bare(axis: Any) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_axisbelow(True)


def alarm_figure(
    path: Path, parts: Sequence[Any], gears: np.ndarray, courses: Mapping[str, Any], beside: Mapping[str, str]
) -> None:
    """Level and threshold of each model after the first part, its alarms, the truth, and the gear."""
    start = parts[0].samples
    figure = Figure(figsize=(10, 7.2), layout="constrained")
    rows = figure.subplots(len(courses) + 1, 1, sharex=True, height_ratios=[3, *[2] * (len(courses) - 1), 0.7])
    t = np.arange(start, len(gears))
    for axis, (name, course) in zip(rows, courses.items(), strict=False):
        bare(axis)
        at = 0
        for part in parts:
            if part.fault is not None:
                axis.axvspan(at, at + part.samples, color=TRUTH, alpha=0.5, linewidth=0)
                if axis is rows[0] and part.text != "still":
                    axis.text(at, 1.02, part.text, transform=axis.get_xaxis_transform(), fontsize=8, color=GREY)
            at += part.samples
        level, threshold, alarmed = (values[start:] for values in (course.levels, course.thresholds, course.alarms))
        whole = len(t) // MERGED * MERGED
        largest = level[:whole].reshape(-1, MERGED).max(1)
        axis.plot(t[:whole:MERGED], largest, color=COLOURS[0], linewidth=0.7)
        axis.plot(t[:whole:MERGED], threshold[:whole:MERGED], color="black", linewidth=1.2, linestyle="--")
        top = 1.08 * float(max(level.max(), threshold.max()))
        axis.plot(t[alarmed], np.full(int(alarmed.sum()), top), "|", color=ALARM, markersize=7, markeredgewidth=0.7)
        axis.set_ylim(0, 1.06 * top)
        axis.set_ylabel(beside.get(name, "okfeb"))
    figure.legend(
        handles=[
            rows[0].plot([], [], color=COLOURS[0], label=f"level (largest of {MERGED} samples)")[0],
            rows[0].plot([], [], color="black", linestyle="--", label="threshold")[0],
            rows[0].plot([], [], "|", color=ALARM, markersize=9, label="alarm")[0],
            rows[0].fill_between([], [], color=TRUTH, alpha=0.5, label="fault or change"),
        ],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    bare(rows[-1])
    rows[-1].step(t, gears[start:], color=GREY, linewidth=0.6)
    rows[-1].set_yticks(range(len(GEARS)), list(GEARS), fontsize=7)
    rows[-1].set_ylabel("gear")
    rows[-1].set_xlabel("sample")
    rows[-1].set_xlim(start, len(gears))
    saved(figure, path)


def area_figure(path: Path, rows: Sequence[Mapping[str, str]], kinds: Sequence[str]) -> None:
    """AUC of each fault and grade, with its standard error, a line for each detector."""
    figure = Figure(figsize=(10, 5.2), layout="constrained")
    axes = figure.subplots(1, len(kinds), sharey=True, width_ratios=[3 if k != "stuck" else 1.6 for k in kinds])
    shown = list(dict.fromkeys(row["detector"] for row in rows))
    palette = dict(
        zip(
            shown,
            ("#0072B2", "#56B4E9", "#999999", "#D55E00", "#E69F00", "#009E73", "#8FD3B6", "#CC79A7"),
            strict=False,
        )
    )
    for axis, kind in zip(axes, kinds, strict=True):
        bare(axis)
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_title(kind, fontsize=10)
        grades: list[str] = []
        for i, name in enumerate(shown):
            found = [row for row in rows if row["detector"] == name and row["fault"] == kind]
            grades = [row["grade"] for row in found]
            place = np.arange(len(found)) + 0.07 * (i - (len(shown) - 1) / 2)
            means, errors = (np.array([float(row[key]) for row in found]) for key in ("auc", "auc_error"))
            style = {"linewidth": 1.8 if name.startswith("okfeb") else 0.9, "markersize": 4, "capsize": 0}
            axis.errorbar(place, means, errors, fmt="o-", color=palette[name], label=NAMES[name], **style)
        axis.set_xticks(range(len(grades)), [grade[0].upper() for grade in grades])
    axes[0].set_ylabel("area under the ROC curve")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    saved(figure, path)
