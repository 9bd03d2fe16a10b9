"""The figures of docs/guide/signals.md: what each feature sees, what window and hop do, aliasing and clipping.

    python -m examples.signals.figures [-o docs/data/signals]

All features are those of pykernel's own stage.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from benchmarks.figures import COLOURS
from benchmarks.tables import DATA
from pykernel.files import whole_file
from pykernel.host.signal import SignalStage
from pykernel.spec.model import make_spec

RATE, SECONDS, WINDOW, HOP = 128, 6, 64, 8
SAMPLES = RATE * SECONDS
TIME = np.arange(SAMPLES) / RATE
BLUE, ORANGE, GREY, SHADE = COLOURS[0], COLOURS[1], "#777777", "#F3E3C3"
FIRST, SECOND = (1.2, 2.4), (3.6, 4.8)
"""Seconds in which something happens."""


def features(raw: np.ndarray, **signal: Any) -> tuple[np.ndarray, np.ndarray]:
    """When each step ends, in seconds, and its features, (steps, features)."""
    raw = raw[:, None] if raw.ndim == 1 else raw
    names = [f"x{i}" for i in range(raw.shape[1])]
    spec = make_spec({"name": "figure", "signal": {"channels": names, "max_abs": 100.0} | signal, "novelty": {}})
    found = SignalStage(spec).steps(raw)
    return found.rows / RATE, found.features


# --------------------------------------------------------------------------------------------------------- signals


def during(span: tuple[float, float]) -> np.ndarray:
    return (span[0] <= TIME) & (span[1] > TIME)


def tone(hertz: float | np.ndarray) -> np.ndarray:
    return np.sin(2 * np.pi * np.cumsum(np.broadcast_to(hertz, SAMPLES)) / RATE)


def noise(size: float, seed: int = 0) -> np.ndarray:
    return size * np.random.default_rng(seed).normal(size=SAMPLES)


def blows(height: float) -> np.ndarray:
    """One each half second."""
    found = np.zeros(SAMPLES)
    found[RATE // 4 :: RATE // 2] = height
    return found


def by_turns(before: Any, one: Any, other: Any) -> np.ndarray:
    """``one`` in the first span, ``other`` in the second."""
    return np.where(during(FIRST), one, np.where(during(SECOND), other, before))


LIFTED = by_turns(tone(10), 2 + tone(10), 3 * tone(10)) + noise(0.1)
SPIKED = tone(4) * 0.5 + noise(0.1) - 3 * (np.abs(TIME - 1.8) < 0.02) + 3 * (np.abs(TIME - 4.2) < 0.02)
FASTER = by_turns(tone(3), tone(10), tone(24))
RAMPS = np.interp(TIME, [0, *FIRST, *SECOND, SECONDS], [0, 0, 3, 3, 0, 0]) + noise(0.1)
PAIR = np.stack([tone(5) + noise(0.1), by_turns(noise(0.7, 2), tone(5), -tone(5)) + noise(0.1, 3)], axis=1)


@dataclass(frozen=True)
class Panel:
    """A feature: the signal, the keys of [signal], and what one sees."""

    name: str
    seen: str
    raw: np.ndarray
    signal: Mapping[str, Any] = field(default_factory=dict)
    lines: Sequence[str] = ()


def windowed(name: str, seen: str, raw: np.ndarray, lines: Sequence[str] = (), **signal: Any) -> Panel:
    chosen = {"window": WINDOW, "hop": HOP, "features": [name]} | signal
    return Panel(name, seen, raw, {key: value for key, value in chosen.items() if value}, lines)


BANDS = {"features": None, "bands": [[4, 16], [16, 40]], "rate": RATE}
PANELS = (
    windowed("mean", "the offset, not the size", LIFTED),
    windowed("rms", "offset and size", LIFTED),
    windowed("std", "the size, not the offset", LIFTED),
    windowed("min", "the lowest sample", SPIKED),
    windowed("max", "the highest sample", SPIKED),
    windowed("range", "both", SPIKED),
    windowed("crest", "a blow, even if rms stays", by_turns(tone(10), tone(10) + blows(3), 3 * tone(10)) + noise(0.1)),
    windowed("skewness", "which side the peaks point to", by_turns(0, blows(3), -blows(3)) + noise(0.4)),
    windowed("kurtosis", "rare peaks; below 0 for a tone", by_turns(0, blows(4), 2 * tone(10)) + noise(0.6)),
    windowed("crossings", "how fast, by the sign", FASTER),
    windowed("change", "speed times size", FASTER),
    windowed("slope", "up or down", RAMPS),
    windowed("correlation", "together or opposed", PAIR),
    windowed("bands", "how much is slow, and fast", FASTER, ["4 to 16 Hz", "16 to 40 Hz"], **BANDS),
    windowed("centroid", "the mean frequency, in Hz", FASTER + noise(0.3), rate=RATE),
    windowed("dominant", "the loudest frequency, in Hz", tone(6) + by_turns(0, 2 * tone(20), 2 * tone(40)), rate=RATE),
    windowed("flatness", "noise, not a tone", by_turns(tone(10), noise(0.8), tone(24)) + noise(0.02, 5), rate=RATE),
    Panel("lags", "the signal, half a second ago", RAMPS, {"lags": [64]}),
    Panel("differences", "the move in half a second", RAMPS, {"lags": [], "differences": [64]}),
    Panel("averages", "the latest second, smoothed", RAMPS + noise(0.5, 6), {"lags": [], "averages": [128]}),
    Panel(
        "periods",
        "where in a period of two seconds",
        np.roll(np.clip(tone(0.5), 0.3, 1), 40) + noise(0.05),
        {"lags": [], "periods": [256]},
        ["cosine", "sine"],
    ),
)

# --------------------------------------------------------------------------------------------------------- drawing


def saved(figure: Figure, path: Path) -> None:
    """As SVG, the same bytes for the same figure."""
    FigureCanvasSVG(figure)
    with matplotlib.rc_context({"svg.hashsalt": path.stem}), whole_file(path) as file:
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def bare(axis: Any, signal: bool = False) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8, length=2)
    axis.set_xlim(0, SECONDS)
    axis.margins(y=0.15)
    if signal:
        axis.spines[["left", "bottom"]].set_visible(False)
        axis.tick_params(bottom=False, labelbottom=False)
        axis.set_yticks([])


def shade(axis: Any, *spans: tuple[float, float]) -> None:
    for span in spans:
        axis.axvspan(*span, color=SHADE, linewidth=0)


def feature_figure() -> Figure:
    columns = 3
    rows = -(-len(PANELS) // columns)
    figure = Figure(figsize=(9, 1.95 * rows), layout="constrained")
    figure.get_layout_engine().set(hspace=0.03, wspace=0.04)
    grid = figure.add_gridspec(rows, columns)
    for i, panel in enumerate(PANELS):
        above, below = grid[divmod(i, columns)].subgridspec(2, 1, hspace=0.02).subplots(sharex=True)
        bare(above, signal=True)
        bare(below)
        for axis in (above, below):
            if panel.name != "periods":
                shade(axis, FIRST, SECOND)
        raw = panel.raw if panel.raw.ndim == 2 else panel.raw[:, None]
        for j, channel in enumerate(raw.T):
            above.plot(TIME, channel - 4 * j, color=(GREY, "#444444")[j], linewidth=0.6)
        above.set_title(panel.name, loc="left", fontsize=10, fontweight="bold", pad=3)
        above.set_title(panel.seen, loc="right", fontsize=8.5, color="#444444", pad=3)
        when, values = features(panel.raw, **panel.signal)
        for line, colour, dashes in zip(values.T, (BLUE, ORANGE), ("-", "--"), strict=False):
            below.plot(when, line, dashes, color=colour, linewidth=1.5)
        for name, colour, right in zip(panel.lines, (BLUE, ORANGE), (False, True), strict=False):
            below.text(0.98 if right else 0.02, 0.98, name, color=colour, fontsize=8, va="top", transform=below.transAxes, ha="right" if right else "left")  # fmt: skip
        if panel.lines:
            below.margins(y=0.35)
        below.locator_params(axis="y", nbins=3)
        below.set_xticks(range(0, SECONDS + 1, 2))
        if i + columns >= len(PANELS):
            below.set_xlabel("seconds", fontsize=8.5)
    return figure


def window_figure() -> Figure:
    """A burst in noise; rms of windows of three lengths, and of two hops."""
    burst = (3.25, 3.75)
    raw = noise(0.5, 7) + during(burst) * 1.5 * tone(20)
    figure = Figure(figsize=(9, 6.4), layout="constrained")
    axes = figure.subplots(5, 1, sharex=True)
    bare(axes[0], signal=True)
    axes[0].plot(TIME, raw, color=GREY, linewidth=0.6)
    axes[0].set_title("the signal: a burst of half a second in noise", loc="left", fontsize=10)
    shown = (
        (16, 16, "window 16: shows where the burst begins and ends, but noise moves it"),
        (64, 32, "window 64, as long as the burst, hop 32: clear, and half a window late"),
        (64, 64, "window 64, hop 64: half the answers, and here the burst falls between two windows"),
        (256, 128, "window 256: calm, but low, late and long"),
    )
    for axis, (window, hop, text) in zip(axes[1:], shown, strict=True):
        bare(axis)
        when, values = features(raw, window=window, hop=hop, features=["rms"])
        axis.plot(when, values[:, 0], "o-", color=BLUE, linewidth=1.2, markersize=3)
        axis.set_title(text, loc="left", fontsize=10)
        axis.set_ylim(0.2, 1.5)
        axis.set_ylabel("rms", fontsize=9)
    for axis in axes:
        shade(axis, burst)
    axes[-1].set_xlabel("seconds", fontsize=9)
    return figure


def aliasing_figure() -> Figure:
    """A tone above half the rate, and a tone above the sensor's limit."""
    figure = Figure(figsize=(9, 5.6), layout="constrained")
    (fast, cut), (seen, measured) = figure.subplots(2, 2)
    fine = np.linspace(0, 0.2, 2000)
    few = np.arange(0, 0.2, 1 / RATE)
    fast.plot(fine, np.sin(2 * np.pi * 118 * fine), color="#BBBBBB", linewidth=0.8)
    fast.plot(few, np.sin(2 * np.pi * 118 * few), "o-", color=BLUE, markersize=4, linewidth=1.2)
    fast.set_title(f"aliasing: 118 Hz, sampled {RATE} times a second", loc="left", fontsize=10)
    fast.set_xlabel("seconds", fontsize=9)
    true = np.arange(2, 2 * RATE + 1, 2)
    told = [features(np.sin(2 * np.pi * f * TIME + 0.3), window=64, rate=RATE, features=["dominant"])[1][-1, 0] for f in true]  # fmt: skip
    seen.plot(true, told, color=BLUE, linewidth=1.5)
    seen.axvline(RATE / 2, color=GREY, linewidth=0.8, linestyle=":")
    seen.text(RATE / 2 + 3, 64, "half the rate", fontsize=8.5, color="#444444", va="center")
    seen.set_xlabel("true frequency, Hz", fontsize=9)
    seen.set_ylabel("dominant, Hz", fontsize=9)
    seen.set_ylim(0, 72)
    part = TIME < 1
    cut.plot(TIME[part], 2 * tone(6)[part], color="#BBBBBB", linewidth=0.8)
    cut.plot(TIME[part], np.clip(2 * tone(6), -1, 1)[part], color=BLUE, linewidth=1.5)
    cut.set_title("clipping: a tone of 6 Hz, twice the sensor's limit", loc="left", fontsize=10)
    cut.set_xlabel("seconds", fontsize=9)
    sizes = np.linspace(0.5, 4, 36)
    keys = {"window": 128, "rate": RATE, "bands": [[5, 7], [15, 33]], "features": ["crest"]}
    table = np.array([features(np.clip(size * tone(6), -1, 1), **keys)[1][-1] for size in sizes])
    for values, text, style in zip(
        (table[:, 0], table[:, 2] / table[:, 1]), ("crest", "band of 15 to 33 Hz, in parts of that of 5 to 7 Hz"), ("-", "--"), strict=True
    ):  # fmt: skip
        measured.plot(sizes, values, style, color=BLUE if text == "crest" else ORANGE, linewidth=1.5, label=text)
    measured.axvline(1, color=GREY, linewidth=0.8, linestyle=":")
    measured.set_xlabel("size / limit of the sensor", fontsize=9)
    measured.set_ylim(0, 2)
    measured.legend(frameon=False, fontsize=8.5, loc="center right")
    for axis in (fast, cut, seen, measured):
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8, length=2)
    return figure


FIGURES = {"features": feature_figure, "windows": window_figure, "aliasing": aliasing_figure}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=DATA / "signals")
    out = parser.parse_args(words).out
    for name, draw in FIGURES.items():
        with matplotlib.rc_context({"path.simplify_threshold": 0.4}):
            saved(draw(), out / f"{name}.svg")


if __name__ == "__main__":
    main()
