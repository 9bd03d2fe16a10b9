"""Draw the figures of a report as HTML: lines, bands and marks over rows; error against bytes; a map of errors.

Lines are SVG with integer coordinates.  Text is HTML, which keeps its size in a narrow window.  A figure is complete
without its script (``page.SCRIPT``), which lets the reader zoom and read values.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from pykernel.report.markup import Html, element
from pykernel.telling import axis_tick, formatted_number

TALL = 1000
"""The height of a figure, in the integer coordinates of its lines."""
FINEST = 30_000
"""A figure's largest width, in integer coordinates."""
KNOTS = 200
"""The largest number of rows whose times are stored in a figure.  The times of the rows in between are interpolated."""
ROOM = 0.06
"""The free space above the largest value, and below the smallest, as a fraction of the range of the values."""
SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200)
DAYS = (1, 2, 5, 10)
MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240)
DAY = 86_400


def time_ticks(times: np.ndarray, rows: np.ndarray, most: int = 6) -> list[tuple[float, str]]:
    """Return the ticks at round times: pairs of a position and the time as text.  times: seconds since 1970 for each of
    ``rows``, never decreasing.
    """
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
    """Format a time in UTC."""
    return datetime.fromtimestamp(round(seconds), UTC).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(frozen=True)
class Line:
    """Values at ascending positions; NaN is a gap.  kind: the line's style.

    With ``low``, each position stands for the rows up to the next position. ``y`` is then the largest value of these
    rows, ``low`` is the smallest, and both lines are drawn.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    kind: str
    low: np.ndarray | None = None

    def latest(self, count: int) -> Line:
        """Return the line with only its last ``count`` points."""
        return replace(self, x=self.x[-count:], y=self.y[-count:], low=None if self.low is None else self.low[-count:])


@dataclass(frozen=True)
class Span:
    """The area between two lines at ascending positions."""

    name: str
    x: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Lane:
    """A row of marks above a figure, with a name."""

    name: str
    x: np.ndarray


@dataclass
class Axis:
    """An axis from ``low`` to ``high``, logarithmic if ``log``, with integer coordinates from 0 to ``steps``."""

    low: float
    high: float
    steps: int
    log: bool = False

    def __post_init__(self) -> None:
        if not self.high > self.low:
            self.low, self.high = (self.low / 2, self.low * 2) if self.log else (self.low - 0.5, self.low + 0.5)

    def part(self, values: np.ndarray | float) -> np.ndarray:
        """Return the relative positions of values: 0 at the low end of the axis, 1 at the high end."""
        if not self.log:
            return np.asarray((np.asarray(values, float) - self.low) / (self.high - self.low))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(np.asarray(values, float) / self.low) / math.log(self.high / self.low))

    def ticks(self, most: int = 6) -> list[float]:
        if self.log and self.high / self.low >= 8:
            tens = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for digits in ((1, 2, 5), (1, 3), (1,)):
                values = [digit * 10.0**k for k in tens for digit in digits]
                values = [value for value in values if self.low <= value <= self.high]
                if len(values) <= most:
                    return values
            return values[:: -(-len(values) // most)]
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(digit * power for digit in (1, 2, 5, 10) if digit * power >= rough * (1 - 1e-9))
        return [k * step for k in range(math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9) + 1)]


@dataclass
class Plot:
    """A figure over rows: lines, a span and marks."""

    title: str
    xlabel: str
    ylabel: str
    lines: Sequence[Line] = ()
    spans: Sequence[Span] = ()
    dots: Sequence[Line] = ()
    lanes: Sequence[Lane] = ()
    log: bool = False
    zero: bool = False
    """Whether the vertical axis is extended to 0."""
    note: str = ""
    marks: Mapping[str, float] = field(default_factory=dict)
    """Names of positions that are marked with a vertical line."""
    times: Callable[[], np.ndarray | None] = lambda: None
    """Returns the time of each row in seconds since 1970, or None. If the times are known, the horizontal axis shows times."""

    def html(self) -> Html:
        every = [*self.lines, *self.dots]
        places = [each.x for each in every] + [each.x for each in self.spans]
        x = np.concatenate([np.asarray(each, float) for each in places])
        values = [each.y for each in every] + [each.low for each in every if each.low is not None]
        values += [part for span in self.spans for part in (span.low, span.high)]
        y = np.concatenate([np.asarray(each, float) for each in values])
        y = y[np.isfinite(y) & (y > 0)] if self.log else y[np.isfinite(y)]
        if not len(x) or not len(y):
            return Html("")
        across, up = Axis(float(x.min()), float(x.max()), _steps(every, x)), self._up(y)
        parts = [_area(span, across, up) for span in self.spans]
        parts += [_path(line, across, up) for line in self.lines] + [_dots(line, across, up) for line in self.dots]
        knots, marks = self._times(across)
        xlabel = "time" if knots else self.xlabel
        lanes = [_lane(lane, across) for lane in self.lanes if len(lane.x)]
        return element(
            "figure",
            element("figcaption", element("b", self.title), f" {self.note}" if self.note else ""),
            _legend([*self.lines, *self.dots], self.spans),
            *lanes,
            element(
                "div",
                _ticks("y", up, self.ylabel),
                _ticks("x", across, marks=marks),
                *(_mark(name, at, across) for name, at in self.marks.items() if across.low < at < across.high),
                _drawing(across, up, parts),
                class_="plot",
                data_x=f"{across.low:.9g} {across.high:.9g}",
                data_y=f"{up.low:.6g} {up.high:.6g} {int(up.log)}",
                data_t=knots or None,
            ),
            element("div", xlabel, class_="xl"),
        )

    def _times(self, across: Axis) -> tuple[str, list[tuple[float, str]] | None]:
        """Return the rows and times between which the script interpolates, and the axis's ticks. Without known times, the
        result is "" and None.
        """
        times = self.times()
        if times is None or across.high >= len(times) + 1:
            return "", None
        low, high = max(0, math.floor(across.low)), min(len(times) - 1, math.ceil(across.high))
        rows = np.unique(np.linspace(low, high, KNOTS).astype(int))
        marks = time_ticks(times[low : high + 1], np.arange(low, high + 1)) if high > low else []
        if not marks:
            return "", None
        return " ".join(f"{row} {round(times[row])}" for row in rows.tolist()), marks

    def _up(self, y: np.ndarray) -> Axis:
        low, high = float(y.min()), float(y.max())
        if self.zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if self.log:
            room = max((high / low) ** ROOM, 1.05)
            return Axis(low / room, high * room, TALL, True)
        room = ROOM * (high - low) or 0.5
        return Axis(low if self.zero and low == 0 else low - room, high + room, TALL)


def _steps(lines: Sequence[Line], x: np.ndarray) -> int:
    """Return the number of integer coordinates that the horizontal axis needs: one for each position, or two if a line
    has an envelope (``low``).
    """
    apart = min((float(np.diff(line.x).min()) for line in lines if len(line.x) > 1), default=1.0)
    doubled = 2 if any(line.low is not None for line in lines) else 1
    return max(1, min(FINEST, doubled * round((float(x.max()) - float(x.min())) / max(apart, 1e-12))))


def _whole(line_x: np.ndarray, y: np.ndarray, across: Axis, up: Axis) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the integer coordinates of points, and a Boolean array that is True for the points that can be drawn."""
    there = np.isfinite(y) & (y > 0 if up.log else True)
    down = np.where(there, np.clip((1 - up.part(np.where(there, y, up.high))) * up.steps, -TALL, 2 * TALL), 0)
    return np.rint(across.part(line_x) * across.steps).astype(int), np.rint(down).astype(int), there


def _relative(x: np.ndarray, y: np.ndarray) -> str:
    """Return points as an SVG path: the first point, then the step from each point to the next."""
    steps = zip(np.diff(x).tolist(), np.diff(y).tolist(), strict=True)
    return f"M{x[0]} {y[0]}" + (
        "l" + " ".join(f"{dx}{'' if dy < 0 else ' '}{dy}" for dx, dy in steps) if len(x) > 1 else "h0"
    )


def _outline(x: np.ndarray, y: np.ndarray, there: np.ndarray) -> str:
    """Return points as an SVG path with gaps where ``there`` is False."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], there, [False]])))
    return "".join(_relative(x[a:b], y[a:b]) for a, b in zip(edges[::2], edges[1::2], strict=True))


def _path(line: Line, across: Axis, up: Axis) -> Html:
    x, y, there = _whole(line.x, line.y, across, up)
    if line.low is not None:
        _, low, also = _whole(line.x, line.low, across, up)
        half = np.rint(
            across.part(line.x + (line.x[1] - line.x[0] if len(line.x) > 1 else 0) / 2) * across.steps
        ).astype(int)
        # at each position, draw first the value (largest or smallest) that is nearer to the largest value at the
        # previous position
        swap = np.zeros(len(x), bool)
        swap[1:] = np.abs(low[1:] - y[:-1]) < np.abs(y[1:] - y[:-1])
        first, second = np.where(swap, low, y), np.where(swap, y, low)
        x, y = np.column_stack([x, half]).ravel(), np.column_stack([first, second]).ravel()
        there = np.repeat(there & also, 2)
    return element("path", class_=f"l {line.kind}", d=_outline(x, y, there), data_name=line.name)


def _dots(line: Line, across: Axis, up: Axis) -> Html:
    x, y, there = _whole(line.x, line.y, across, up)
    d = "".join(f"M{a} {b}h0" for a, b in zip(x[there].tolist(), y[there].tolist(), strict=True))
    return element("path", class_=f"p {line.kind}", d=d)


def _area(span: Span, across: Axis, up: Axis) -> Html:
    x, high, there = _whole(span.x, span.high, across, up)
    _, low, also = _whole(span.x, span.low, across, up)
    both, d = there & also, ""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], both, [False]])))
    for a, b in zip(edges[::2], edges[1::2], strict=True):
        d += _relative(np.append(x[a:b], x[a:b][::-1]), np.append(high[a:b], low[a:b][::-1])) + "z"
    return element("path", class_="a", d=d)


def _drawing(across: Axis, up: Axis, parts: Sequence[Html]) -> Html:
    return element(
        "svg", *parts, viewBox=f"0 0 {across.steps} {up.steps}", preserveAspectRatio="none", aria_hidden="true"
    )


def _ticks(kind: str, axis: Axis, label: str = "", marks: Sequence[tuple[float, str]] | None = None) -> Html:
    """Draw the ticks of an axis.  marks: positions and texts of ticks that are not numbers."""
    side = "bottom" if kind == "y" else "left"
    parts = [
        element("i", element("b", text), style=f"{side}:{100 * float(axis.part(value)):.2f}%")
        for value, text in marks or [(value, axis_tick(value)) for value in axis.ticks()]
    ]
    return element("div", *parts, element("em", label) if label else "", class_=kind)


def _mark(name: str, at: float, across: Axis) -> Html:
    return element("u", element("b", name), style=f"left:{100 * float(across.part(at)):.2f}%", data_at=f"{at:g}")


def _lane(lane: Lane, across: Axis) -> Html:
    x = np.unique(np.rint(across.part(lane.x) * across.steps).astype(int)).tolist()
    drawing = element(
        "svg",
        element("path", class_="m", d="".join(f"M{a} 0v1" for a in x)),
        viewBox=f"0 0 {across.steps} 1",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    return element("div", element("b", lane.name), drawing, class_="lane")


def _legend(lines: Sequence[Line], spans: Sequence[Span]) -> Html:
    keys = [element("span", element("s", "", class_=line.kind), line.name) for line in lines]
    keys += [element("span", element("s", "", class_="a"), span.name) for span in spans]
    return element("div", *keys, class_="key")


# ------------------------------------------------------------------------------------------------- error against bytes


SIMPLE = "simple predictor"
"""The group of the simple baselines, which every model should beat.  Its points are grey."""


@dataclass(frozen=True)
class Panel:
    """Error against one kind of cost.

    points: (cost, error, group, label, whether the point is on the Pareto front).
    """

    xlabel: str
    points: Sequence[tuple[float, float, str, str, bool]]
    chosen: Mapping[str, int]  # points that get a ring: name -> position in points


MOST = 400
"""Largest number of points that are drawn although they are neither on the Pareto front nor chosen."""


def front(title: str, ylabel: str, panel: Panel) -> Html:
    """Draw error against cost: points, the Pareto front as a staircase, and rings around the chosen points."""
    called: dict[int, list[str]] = {}
    for name, i in panel.chosen.items():
        called.setdefault(i, []).append(name)
    points = [
        (max(cost, 1), error, group, name, on, ", ".join(called.get(i, ())))
        for i, (cost, error, group, name, on) in enumerate(panel.points)
        if math.isfinite(error)
    ]
    if not points:
        return Html("")
    least = min(point[1] for point in points)
    # points far above the median are left out, because they would squeeze the other points together
    top = max(
        [2.2 * float(np.median([point[1] for point in points])), *(1.3 * point[1] for point in points if point[4])]
    )
    main = [point for point in points if point[4] or point[5]]
    shown = [point for point in points if not (point[4] or point[5]) and point[1] <= top][:MOST] + main
    most, costs = max(point[1] for point in shown), [point[0] for point in shown]
    across = Axis(min(costs) / 1.25, max(costs) * 1.25, 1000, True)
    room = 0.06 * (most - least) or 0.5
    up = Axis(max(0.0, least - room), most + room, TALL)
    if least > 0 and most / least > 4:
        up = Axis(least / 1.15, most * 1.1, TALL, True)
    groups = dict.fromkeys(point[2] for point in (*main, *shown))
    own = [group for group in groups if group != SIMPLE]
    kinds = {group: f"c{min(i + (i > 5), 8)}" for i, group in enumerate(own)} | {SIMPLE: "c6"}
    parts, names, taken = [], [], []  # type: ignore[var-annotated]
    stairs = sorted((cost, -error) for cost, error, _, _, on, _ in points if on)
    if stairs:
        parts.append(_stairs(np.array(stairs) * [1, -1], across, up))
    for cost, error, group, name, on, chosen in shown:
        x, y = float(across.part(cost)), float(up.part(error))
        where = f"M{round(x * across.steps)} {round((1 - y) * up.steps)}h0"
        if chosen:
            parts.append(element("path", class_="ring", d=where))
        tooltip = element("title", f"{name}: {formatted_number(error)}, {cost:,.0f}")
        parts.append(element("path", tooltip, class_=f"p {kinds[group]}{'' if on else ' off'}", d=where))
    for cost, error, _, name, _, chosen in sorted(main, key=lambda point: not point[5]):
        x, y = float(across.part(cost)), float(up.part(error))
        # a name without room is left out, unless it is the name of a chosen model
        if chosen or not any(abs(x - a) < 0.3 and abs(y - b) < 0.08 for a, b in taken):
            taken.append((x, y))
            names.append(_name(f"{chosen}: {name}" if chosen else name, bool(chosen), x, y))
    return element(
        "figure",
        element("figcaption", element("b", title)) if title else "",
        element("div", *(element("span", element("s", "", class_=f"d {kinds[g]}"), g) for g in groups), class_="key"),
        element(
            "div",
            _ticks("y", up, ylabel),
            _ticks("x", across),
            _drawing(across, up, parts),
            *names,
            class_="plot front",
        ),
        element("div", panel.xlabel, class_="xl"),
    )


def _stairs(on: np.ndarray, across: Axis, up: Axis) -> Html:
    x, y, _ = _whole(on[:, 0], on[:, 1], across, up)
    d = f"M{x[0]} {y[0]}" + "".join(f"H{a}V{b}" for a, b in zip(x[1:].tolist(), y[1:].tolist(), strict=True))
    return element("path", class_="l stairs", d=d)


def _name(text: str, strong: bool, x: float, y: float) -> Html:
    """Write a name next to its point, on the side towards the middle of the figure."""
    side, at = ("right", 1 - x) if x > 0.6 else ("left", x)
    style = f"{side}:{100 * at:.1f}%;bottom:{100 * y:.1f}%"
    return element("span", text, class_="name strong" if strong else "name", style=style)


# ------------------------------------------------------------------------------------------------------ a map of errors


def heat(
    widths: np.ndarray, ridges: np.ndarray, values: np.ndarray, marked: tuple[int, int], measure: str, width: str
) -> Html:
    """Draw a heat map of the errors over kernel widths and ridges, with a ring around the cell ``marked``.  Values
    far above the median have no colour.

    width: the name of the kernel's parameter, sigma or gamma, or empty.
    """
    finite = values[np.isfinite(values)]
    if not len(finite):
        return Html("")
    least = float(finite.min())
    top = max(min(float(finite.max()), 2 * float(np.median(finite)) - least), float(np.nextafter(least, np.inf)))

    def cell(i: int, j: int) -> Html:
        value = float(values[i, j])
        good = 0.0 if not math.isfinite(value) else max(0.0, 1 - (value - least) / (top - least))
        return element(
            "td",
            formatted_number(value) if math.isfinite(value) else "-",
            class_="strong ringed" if (i, j) == marked else None,
            style=f"background:rgba(0,114,178,{0.75 * good:.2f})",
        )

    head = element(
        "tr", element("th", f"{width or 'kernel'} \\ ridge"), *(element("th", f"{each:.3g}") for each in ridges)
    )
    body = [
        element("tr", element("th", f"{each:.3g}"), *(cell(i, j) for j in range(len(ridges))))
        for i, each in enumerate(widths)
    ]
    return element(
        "figure",
        element("figcaption", element("b", measure), "; the ringed cell was chosen"),
        element("div", element("table", element("thead", head), element("tbody", *body), class_="heat"), class_="wide"),
    )


def spark(low: np.ndarray, high: np.ndarray) -> Html:
    """Draw a column's values over the rows, small enough for a line of text."""
    both = np.concatenate([low, high])
    both = both[np.isfinite(both)]
    if not len(both):
        return Html("")
    x = np.arange(len(low), dtype=float)
    across, up = (
        Axis(0.0, float(max(1, len(low) - 1)), max(1, len(low) - 1)),
        Axis(float(both.min()), float(both.max()), 30),
    )
    flat = Span("", x, low, np.where(high > low, high, low + (up.high - up.low) / 30))
    parts = [_area(flat, across, up), _path(Line("", x, high, "c0"), across, up)]
    return element("span", _drawing(across, up, parts), class_="spark")
