"""Errors of contenders over samples, as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.figures import GROUPS, heading, open_frame, png

LINES = ("-", "--", ":")
Curve = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Positions, means, standard errors (NaN where there is none)."""


def learning_curves(path: Path, panels: Mapping[str, Mapping[str, Curve]], ylabel: str) -> None:
    """Errors over samples as PNG, a panel for each task, a line with its standard error for each contender."""
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    names = list(dict.fromkeys(name for panel in panels.values() for name in panel))
    styles = {name: {"color": GROUPS[i % len(GROUPS)], "linestyle": LINES[i // len(GROUPS) % len(LINES)]}
              for i, name in enumerate(names)}  # fmt: skip
    with png(path, max(7, 5.2 * columns), 4.2 * rows + 0.6) as figure:
        every = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, (title, curves) in zip(every, panels.items(), strict=False):
            for name, (positions, mean, error) in curves.items():
                axes.plot(positions, mean, linewidth=1.4, **styles[name])
                if np.isfinite(error).any():
                    axes.fill_between(
                        positions, mean - error, mean + error, color=styles[name]["color"], alpha=0.2, linewidth=0
                    )
            heading(axes, title)
            axes.set_xlabel("samples")
            open_frame(axes)
        for axes in every[len(panels) :]:
            axes.set_axis_off()
        every[0].set_ylabel(ylabel)
        handles = [every[0].plot([], [], label=name, **styles[name])[0] for name in names]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(names), 3 * columns), frameon=False)
