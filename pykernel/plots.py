"""Figures, with matplotlib if it is installed (the extra ``plot``)."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra
from pykernel.files import whole_file
from pykernel.telling import tick

# Okabe and Ito's palette: told apart by colour-blind readers, and by lightness in print
COLOURS = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#999999")
TRUTH = "#222222"


@contextlib.contextmanager
def png(path: Path, width: float, height: float) -> Iterator[Any]:
    """A figure of this size in inches, which is written when the block ends.  Raises MissingExtra without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("a plot", "plot") from None
    figure = Figure(figsize=(width, height), layout="constrained", dpi=150)
    yield figure
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def _plain_ticks(axes: Any) -> None:
    """Ticks as people write them: 1,000, not 1e3."""
    from matplotlib.ticker import FuncFormatter, LogFormatter

    class Plain(LogFormatter):
        """Numbers at those places that matplotlib finds far enough apart."""

        def __call__(self, value: float, at: int | None = None) -> str:
            return tick(value) if super().__call__(value, at) else ""

    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            axis.set_major_formatter(Plain())
            axis.set_minor_formatter(Plain(labelOnlyBase=False, minor_thresholds=(1.5, 0.5)))
        else:
            axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))


SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAYS = (1, 2, 5, 10)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240)
DAY = 86_400


def time_ticks(times: np.ndarray, rows: np.ndarray, most: int = 6) -> list[tuple[float, str]]:
    """Rows at round times, and the times as text.  times: seconds since 1970, which never fall, of these rows."""
    first, last = float(times[0]), float(times[-1])
    rough = (last - first) / most
    step = next((each for each in (*SECONDS, *(DAY * days for days in DAYS)) if each >= rough), None)
    if step is not None:
        count = math.floor(last / step) - math.ceil(first / step) + 1
        at = [float(step * (math.ceil(first / step) + k)) for k in range(count)]
        start, end = (0, 10) if step >= DAY else (5, 16) if step >= 60 else (11, 19)
    else:
        start, end = 0, 7
        months = next((each for each in MONTHS if each * 28 * DAY >= rough), MONTHS[-1])
        year = datetime.fromtimestamp(first, UTC).year
        dates = (datetime(year + k // 12, 1 + k % 12, 1, tzinfo=UTC) for k in range(0, 12 * MONTHS[-1], months))
        at = [date.timestamp() for date in itertools.takewhile(lambda date: date.timestamp() <= last, dates)]
        at = [each for each in at if each >= first]
    return [(float(np.interp(each, times, rows)), time_text(each)[start:end]) for each in at]


def time_text(seconds: float) -> str:
    """A time as text, in UTC."""
    return datetime.fromtimestamp(round(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")


def heading(axes: Any, title: str, pad: float | None = None) -> None:
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", pad=pad)


def open_frame(axes: Any, grid: bool = True) -> None:
    """No frame above and at the right; with a grid, lines of equal heights below the curves."""
    axes.spines[["top", "right"]].set_visible(False)
    if grid:
        axes.grid(axis="y", color="#dddddd", linewidth=0.7)
        axes.set_axisbelow(True)


@dataclass(frozen=True)
class Band:
    """Intervals around the answers of some rows: the answers are subtracted from the labels and from both ends."""

    positions: np.ndarray
    errors: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    ylabel: str


def error_figure(
    path: Path,
    title: str,
    rows: np.ndarray,
    curves: Mapping[str, np.ndarray],
    ylabel: str,
    xlabel: str,
    excerpt: tuple[np.ndarray, Mapping[str, np.ndarray], str, str] | None = None,
    band: Band | None = None,
    times: np.ndarray | None = None,
) -> None:
    """Error over time as PNG, one line for each predictor, the model's first and boldest.

    excerpt: (positions, {"predicted": ..., "true": ...}, x label, y label) of a second panel below.  band: what that panel shows in its
    place.  times: of each row, in seconds since 1970.
    Raises MissingExtra without matplotlib.
    """
    below = excerpt or band
    with png(path, 8, 6.4 if below else 4) as figure:
        axes = figure.subplots(2 if below else 1, squeeze=False, height_ratios=(3, 2) if below else None)[:, 0]
        _lines(axes[0], rows, curves, COLOURS)
        heading(axes[0], title)
        axes[0].set(xlabel=xlabel, ylabel=ylabel, ylim=(0, None))
        if excerpt:
            positions, lines, under, beside = excerpt
            _lines(axes[1], positions, lines, (COLOURS[0], TRUTH))
            axes[1].set(xlabel=under, ylabel=beside)
            if all(np.nanmin(line) >= 0 for line in lines.values()):
                axes[1].set_ylim(0, None)
        if band:
            _draw_band(axes[1], band, xlabel)
        _show_times(axes[: 1 if excerpt else None], times)


def _show_times(every: Sequence[Any], times: np.ndarray | None) -> None:
    """Write times at the axes of rows."""
    for axes in every if times is not None else ():
        low, high = (min(max(0, round(end)), len(times) - 1) for end in axes.get_xlim())  # type: ignore[arg-type]
        marks = time_ticks(times[low : high + 1], np.arange(low, high + 1)) if high > low else []  # type: ignore[index]
        if marks:
            axes.set_xticks([row for row, _ in marks], [text for _, text in marks])
            axes.set_xlabel("time")


def _draw_band(axes: Any, band: Band, xlabel: str) -> None:
    within = (band.errors >= band.lower) & (band.errors <= band.upper)
    axes.fill_between(band.positions, band.lower, band.upper, color=COLOURS[0], alpha=0.25, linewidth=0)
    for chosen, colour in ((within, TRUTH), (~within, COLOURS[1])):
        axes.plot(band.positions[chosen], band.errors[chosen], ".", color=colour, markersize=4)
    axes.set(xlabel=xlabel, ylabel=band.ylabel, xlim=(band.positions[0], band.positions[-1]))
    open_frame(axes)
    _plain_ticks(axes)


def _lines(axes: Any, x: np.ndarray, curves: Mapping[str, np.ndarray], colours: Sequence[str]) -> None:
    for i, y in enumerate(curves.values()):
        axes.plot(x, y, color=colours[i], linewidth=1.3 if i else 2.6, zorder=1 if i else 2)
    ends = [float(y[np.isfinite(y)][-1]) if np.isfinite(y).any() else 0.0 for y in curves.values()]
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


SIMPLE = "simple predictor"
"""The group of the simple baselines, which every model should beat; drawn in grey."""


@dataclass(frozen=True)
class Panel:
    """Error against one kind of cost.

    points: (cost, error, group, label, whether the point is on the Pareto front).
    """

    xlabel: str
    points: Sequence[tuple[float, float, str, str, bool]]
    chosen: Mapping[str, int]  # points that get a ring: name -> position in points


def pareto_figure(path: Path, title: str, ylabel: str, panels: Sequence[Panel]) -> None:
    """Error against cost as PNG, one panel for each kind of cost, with the Pareto front: points that no other point
    beats in both error and cost.

    Raises MissingExtra without matplotlib.
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


def error_surface(
    path: Path,
    title: str,
    widths: np.ndarray,
    ridges: np.ndarray,
    values: np.ndarray,
    marked: tuple[int, int],
    measure: str,
    width: str,
) -> None:
    """Cross-validated error over kernel widths (W,) and ridges (R,), both ascending, as PNG, with a cell marked.

    values: (W, R).  The figure is a heat map, darkest at the least error; it is a line if there is only one width or
    one ridge.  All values far above the median have the same, lightest colour.  width: the parameter's name, sigma or
    gamma, or empty.  Raises MissingExtra without matplotlib.
    """
    i, j = marked
    label = f"{measure} {values[i, j]:.4g}\n{f'{width} {widths[i]:.3g}, ' if width else ''}ridge {ridges[j]:.3g}"
    flat = min(values.shape) == 1
    with png(path, 7.4, 4.8) as figure:
        axes = figure.subplots()
        if flat:
            across, xlabel = (ridges, "ridge") if len(ridges) > 1 else (widths, width)
            at = (across[max(marked)], values[i, j])
            axes.plot(across, values.ravel(), "o-", color=COLOURS[0], markersize=4)
            axes.set(xlabel=xlabel, ylabel=measure, ylim=(0, None))
            open_frame(axes)
        else:
            at = (ridges[j], widths[i])
            _heat_map(figure, axes, widths, ridges, values, measure)
            axes.set(yscale="log", xlabel="ridge", ylabel=width)
        axes.set_xscale("log")
        heading(axes, title)
        axes.plot(*at, "o", markersize=13, markerfacecolor="none", markeredgecolor=COLOURS[1], markeredgewidth=2.4)
        # the label stands beside the ring, on the side with more room; for a line it stands well above the minimum
        right, above = axes.transAxes.inverted().transform(axes.transData.transform(at)) < 0.5
        offset = 70 if flat else 12 if above else -12
        axes.annotate(
            label,
            at,
            xytext=(12 if right else -12, offset),
            textcoords="offset points",
            ha="left" if right else "right",
            va="bottom" if offset > 0 else "top",
            fontsize=9,
            bbox={"boxstyle": "round", "facecolor": "white", "edgecolor": COLOURS[1], "alpha": 0.9},
        )


def _heat_map(figure: Any, axes: Any, widths: np.ndarray, ridges: np.ndarray, values: np.ndarray, measure: str) -> None:
    least, most = float(values.min()), float(values.max())
    # the range of colours covers the values that could be chosen, not the worst values
    top = max(min(most, 2 * float(np.median(values)) - least), np.nextafter(least, np.inf))
    mesh = axes.pcolormesh(_borders(ridges), _borders(widths), values, cmap="viridis", vmin=least, vmax=top)
    bar = figure.colorbar(mesh, ax=axes, extend="max" if most > top else "neither")
    bar.set_label(measure)


def _borders(values: np.ndarray) -> np.ndarray:
    """Borders of the cells around positions on a logarithmic axis: one border more than there are values."""
    logs = np.log(values)
    middles = (logs[1:] + logs[:-1]) / 2
    return np.exp(np.concatenate([[2 * logs[0] - middles[0]], middles, [2 * logs[-1] - middles[-1]]]))


LANES = 6
"""Most inputs of which a figure marks alarms."""


def course_figure(
    path: Path,
    title: str,
    curves: Mapping[str, np.ndarray],
    names: Sequence[str],
    ylabel: str,
    xlabel: str,
    blamed: Sequence[tuple[str, float]] = (),
    times: np.ndarray | None = None,
) -> None:
    """A model's answers over time as PNG: the mean and the largest answer of each window.  For a model that raises
    alarms: the mean level, the highest level, the threshold, and the times of the alarms.

    curves: as ``scores.Course.curves`` has them.  blamed: the input that each alarm is about, and the alarm's row; alarms
    of the LANES inputs with most alarms have their own marks.  Raises MissingExtra without matplotlib.
    """
    rows = curves["row"]
    lines = {f"{name}, mean": curves["mean"][:, i] for i, name in enumerate(names)}
    colours = [GROUPS[i % len(GROUPS)] for i in range(len(names))]
    with png(path, 8, 4) as figure:
        axes = figure.subplots()
        if np.isfinite(curves["threshold"]).any():
            lines = {"level": curves["level"]} | lines | {"threshold": curves["threshold"]}
            colours = [COLOURS[0], *(["#999999"] * len(names)), TRUTH]
        else:
            for i, colour in enumerate(colours):
                axes.plot(rows, curves["largest"][:, i], color=colour, linewidth=0.7, alpha=0.6)
        _lines(axes, rows, lines, colours)
        lanes = {"alarms": rows[curves["alarm"]]} if curves["alarm"].any() else {}
        for name, _ in Counter(name for name, _ in blamed).most_common(LANES):
            lanes[name] = np.array([row for each, row in blamed if each == name])
        for number, (name, at) in enumerate(lanes.items()):
            _alarms(axes, name[:30], at, 1.02 + 0.045 * number)
        heading(axes, title, pad=14 + 10 * max(0, len(lanes) - 1))
        axes.set(xlabel=xlabel, ylabel=ylabel, ylim=(min(0.0, axes.get_ylim()[0]), None))
        _show_times([axes], times)


def _alarms(axes: Any, name: str, rows: np.ndarray, height: float) -> None:
    """A mark above the axes at each of these rows, and a name at the right."""
    axes.plot(
        rows,
        np.full(len(rows), height),
        "|",
        color=COLOURS[1],
        markersize=7,
        transform=axes.get_xaxis_transform(),
        clip_on=False,
    )
    axes.annotate(
        name.replace("$", r"\$"),
        (1, height),
        xycoords="axes fraction",
        xytext=(6, 0),
        textcoords="offset points",
        color=COLOURS[1],
        fontsize=8,
        va="center",
        annotation_clip=False,
    )


def basis_figure(path: Path, title: str, trace: np.ndarray, exact: bool, limit: Sequence[float] | None) -> None:
    """The part of the kernel matrix's trace that 0, ..., n vectors leave out, as PNG.

    trace: tr R / tr K after 0, ..., n vectors.  limit: the least possible values, from the eigenvalues.

    Raises MissingExtra without matplotlib.
    """
    number = np.arange(1, len(trace))
    with png(path, 7, 4) as figure:
        axes = figure.subplots()
        measured = "left out" + ("" if exact else " (estimated)")
        axes.plot(number, trace[1:], color=COLOURS[0], linewidth=2, label=measured)
        if limit is not None:
            axes.plot(number, limit[1:], color=TRUTH, linestyle="--", linewidth=1, label="at best (eigenvalues)")
        if trace[-1] > 0 and (limit is None or limit[-1] > 0):
            axes.set_yscale("log")
        axes.set(xlabel="vectors", ylabel="tr R / tr K")
        heading(axes, title[:90])
        open_frame(axes, grid=False)
        axes.legend(frameon=False)
