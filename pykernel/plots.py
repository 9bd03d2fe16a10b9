"""Figures, with matplotlib if it is installed (the extra ``plot``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra
from pykernel.streams import whole_file

# Okabe and Ito's palette: told apart by colour-blind readers, and by lightness in print
COLOURS = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#999999")
TRUTH = "#222222"


def error_figure(
    path: Path,
    title: str,
    rows: np.ndarray,
    curves: Mapping[str, np.ndarray],
    ylabel: str,
    xlabel: str,
    excerpt: tuple[np.ndarray, Mapping[str, np.ndarray], str, str] | None = None,
) -> None:
    """Error over time as PNG, one line for each predictor, the model's first and boldest.

    excerpt: (positions, {"predicted": ..., "true": ...}, x label, y label) of a second panel below.
    Raises MissingExtra without matplotlib.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a plot", "plot") from None

    figure = Figure(figsize=(8, 6.4 if excerpt else 4), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.subplots(2 if excerpt else 1, squeeze=False, height_ratios=(3, 2) if excerpt else None)[:, 0]
    _lines(axes[0], rows, curves, COLOURS)
    axes[0].set_title(title, loc="left", fontsize=12, fontweight="bold")
    axes[0].set_xlabel(xlabel)
    axes[0].set_ylabel(ylabel)
    axes[0].set_ylim(bottom=0)
    if excerpt:
        positions, lines, below, beside = excerpt
        _lines(axes[1], positions, lines, (COLOURS[0], TRUTH))
        axes[1].set_xlabel(below)
        axes[1].set_ylabel(beside)
        axes[1].set_ylim(bottom=0)
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def _lines(axes: Any, x: np.ndarray, curves: Mapping[str, np.ndarray], colours: Sequence[str]) -> None:
    for i, y in enumerate(curves.values()):
        axes.plot(x, y, color=colours[i], linewidth=1.3 if i else 2.6, zorder=1 if i else 2)
    ends = [float(y[np.isfinite(y)][-1]) if np.isfinite(y).any() else 0.0 for y in curves.values()]
    _label_ends(axes, float(x[-1]), ends, list(curves), colours)
    axes.set_xlim(x[0], x[-1])
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


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
