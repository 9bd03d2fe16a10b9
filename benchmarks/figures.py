"""Figures of the pages, with matplotlib."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogFormatter

from pykernel.files import whole_file
from pykernel.report.figures import SIMPLE, Panel
from pykernel.telling import axis_tick

# Okabe and Ito's palette: told apart by colour-blind readers, and by lightness in print
COLOURS = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#999999")
TRUTH = "#222222"


@contextlib.contextmanager
def png(path: Path, width: float, height: float) -> Iterator[Any]:
    """A figure of this size in inches, which is written when the block ends."""
    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    yield figure
    with whole_file(path) as file:
        figure.savefig(file, format="png")


class Plain(LogFormatter):
    """Numbers as people write them, at those places that matplotlib finds far enough apart."""

    def __call__(self, value: float, at: int | None = None) -> str:
        return axis_tick(value) if super().__call__(value, at) else ""


def _plain_ticks(axes: Any) -> None:
    """Ticks as people write them: 1,000, not 1e3."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(Plain())
            axis.set_minor_formatter(Plain(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))
        else:
            axis.set_major_formatter(FuncFormatter(lambda value, _: axis_tick(value)))


def heading(axes: Any, title: str) -> None:
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold")


def open_frame(axes: Any) -> None:
    """No frame above and at the right; lines of equal heights below the curves."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


def error_figure(path: Path, title: str, weeks: Mapping[str, np.ndarray], week: Mapping[str, np.ndarray]) -> None:
    """The demo's errors as PNG: of each week one line for each predictor, the model's first and boldest; below, the hours of one week."""
    with png(path, 8, 6.4) as figure:
        above, below = figure.subplots(2, height_ratios=(3, 2))
        _lines(above, np.arange(1, len(next(iter(weeks.values()))) + 1), weeks, COLOURS)
        heading(above, title)
        above.set(xlabel="week", ylabel="mean absolute error\n(rentals per hour)", ylim=(0, None))
        _lines(below, np.arange(7 * 24) / 24, week, (COLOURS[0], TRUTH))
        below.set(xlabel="day of a week in autumn", ylabel="rentals per hour")


def _lines(axes: Any, x: np.ndarray, curves: Mapping[str, np.ndarray], colours: Sequence[str]) -> None:
    for i, y in enumerate(curves.values()):
        axes.plot(x, y, color=colours[i], linewidth=1.3 if i else 2.6, zorder=1 if i else 2)
    ends = [float(y[-1]) for y in curves.values()]
    _label_ends(axes, float(x[-1]), ends, list(curves), colours)
    axes.set_xlim(x[0], x[-1])
    open_frame(axes)
    _plain_ticks(axes)


def _label_ends(axes: Any, x: float, heights: Sequence[float], names: Sequence[str], colours: Sequence[str]) -> None:
    """Each line's name beside its end, moved apart where they would overlap."""
    low, high = axes.get_ylim()
    low = min(low, 0.0)
    gap = 0.075 * (high - low)
    order = np.argsort(heights)
    placed = np.array(heights)[order]
    for _ in range(200):
        close = np.diff(placed) < gap
        if not close.any():
            break
        for i in np.flatnonzero(close):
            push = (gap - (placed[i + 1] - placed[i])) / 2 + 1e-9 * gap
            placed[i] -= push
            placed[i + 1] += push
        placed = placed + max(0.0, low - placed[0])
    for height, i in zip(placed, order, strict=True):
        axes.annotate(
            names[i],
            (x, height),
            xytext=(6, 0),
            textcoords="offset points",
            color=colours[i],
            va="center",
            fontweight="normal" if i else "bold",
            annotation_clip=False,
        )


# as many as there may be rules; Okabe and Ito's, then greys
GROUPS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#555555", "#B8A600")
MARKS = ("o", "s", "^")


def pareto_figure(path: Path, title: str, ylabel: str, panels: Sequence[Panel]) -> None:
    """Error against cost as PNG, one panel for each kind of cost, with the Pareto front: points that no other point
    beats in both error and cost.
    """
    groups = list(dict.fromkeys(point[2] for panel in panels for point in panel.points))
    # after the last colour the colours repeat, with another marker
    styles = {group: {"color": GROUPS[i % len(GROUPS)], "marker": MARKS[i // len(GROUPS) % len(MARKS)]}
              for i, group in enumerate(groups)} | {SIMPLE: {"color": "#555555", "marker": "o"}}  # fmt: skip
    errors = [point[1] for panel in panels for point in panel.points]
    with png(path, 6.2 * len(panels), 5.2) as figure:
        every = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
        for axes, panel in zip(every, panels, strict=True):
            _front(axes, panel, styles)
        heading(every[0], title)
        every[0].set_ylabel(ylabel)
        if errors and min(errors) > 0:
            if max(errors) > 4 * min(errors):
                every[0].set_yscale("log")
            # room for names; a point far above the others is left out, because it would squeeze the others together
            front = max((point[1] for panel in panels for point in panel.points if point[4]), default=0.0)
            top = max(1.6 * front, 2.2 * float(np.median(errors)))
            every[0].set_ylim(0.7 * min(errors), min(1.6 * max(errors), top))
        for axes in every:
            _plain_ticks(axes)
        low, high = every[0].get_ylim()
        seen = {point[2] for panel in panels for point in panel.points if low <= point[1] <= high}
        groups = [group for group in groups if group in seen]
        handles = [every[0].plot([], [], linestyle="none", label=group, **styles[group])[0] for group in groups]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(len(groups), 3 * len(panels)), frameon=False
        )


def _label_front(axes: Any, front: Sequence[tuple[float, float, str]]) -> None:
    """Write slanted names above the points of the front.

    The ends get their names first; a name without room is left out.
    """
    span = math.log(front[-1][0] / front[0][0]) or 1.0
    taken: list[float] = []
    order = [0, len(front) - 1, *range(1, len(front) - 1)]
    for i in dict.fromkeys(order):
        cost, error, label = front[i]
        at = math.log(cost / front[0][0]) / span
        if all(abs(at - other) > 0.1 for other in taken):
            taken.append(at)
            axes.annotate(
                label, (cost, error), xytext=(2, 5), textcoords="offset points", fontsize=7, color=TRUTH, rotation=40
            )


def _front(axes: Any, panel: Panel, styles: Mapping[str, Mapping[str, str]]) -> None:
    for cost, error, group, _, on in panel.points:
        axes.plot(
            cost,
            error,
            **styles[group],
            markersize=6 if on else 4,
            alpha=1.0 if on else 0.45,
            zorder=3 if on else 2,
        )
    front = sorted((cost, error, label) for cost, error, _, label, on in panel.points if on)
    if front:
        costs, errors, _ = zip(*front, strict=True)
        axes.step(costs, errors, where="post", color=TRUTH, linewidth=1.0, zorder=1)
        _label_front(axes, front)
    names: dict[int, list[str]] = {}
    for name, i in panel.chosen.items():
        names.setdefault(i, []).append(name)
    for k, (i, called) in enumerate(names.items()):
        cost, error = panel.points[i][:2]
        axes.plot(cost, error, "o", markersize=14, markerfacecolor="none", markeredgecolor=TRUTH, markeredgewidth=1.4)
        axes.annotate(
            ", ".join(called),
            (cost, error),
            xytext=(0, -18 - 11 * k),
            textcoords="offset points",
            ha="center",
            fontsize=8.5,
            fontweight="bold",
        )
    axes.set(xscale="log", xlabel=panel.xlabel)
    axes.margins(x=0.12)
    open_frame(axes)
