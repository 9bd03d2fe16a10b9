"""The field's tasks as streams: equations, noise and settings as their sources have them, and the report's sinc.

A stream is inputs (rows, DIM) and labels (rows,), in float64, rounded to TWELVE digits behind the point; the same seed
gives the same stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Stream = tuple[np.ndarray, np.ndarray]
DIGITS = 12
"""Behind the point: the last ones differ between machines' sine and hyperbolic tangent."""


# ------------------------------------------------------------------------------------------------------------ equations


def lorenz_path(steps: int, start: tuple[float, float, float] = (1.0, 1.0, 20.0), h: float = 0.02) -> np.ndarray:
    """States (steps, 3) of Lorenz's system with 10, 28 and 8/3, by Runge and Kutta's fourth order."""

    def slope(v: np.ndarray) -> np.ndarray:
        return np.array([10 * (v[1] - v[0]), v[0] * (28 - v[2]) - v[1], v[0] * v[1] - 8 / 3 * v[2]])

    path, v = [], np.array(start)
    for _ in range(steps):
        a = slope(v)
        b = slope(v + h / 2 * a)
        c = slope(v + h / 2 * b)
        v = v + h / 6 * (a + 2 * b + 2 * c + slope(v + h * c))
        path.append(v)
    return np.array(path)


def mackey_glass_path(steps: int, delay: int, start: float = 1.2) -> np.ndarray:
    """Mackey and Glass's dx/dt = 0.2 x(t - delay) / (1 + x(t - delay)^10) - 0.1 x, by Euler steps of 0.1: (steps,).

    x is ``start`` up to t = 0, the path's value number 10 delay.
    """
    s = np.full(steps, start)
    for t in range(10 * delay, steps - 1):
        past = s[t - 10 * delay]
        s[t + 1] = s[t] + 0.1 * (0.2 * past / (1 + past**10) - 0.1 * s[t])
    return s


def embedded(series: np.ndarray, lags: int) -> np.ndarray:
    """Row t: the last ``lags`` values of a series, the latest first; (len - lags + 1, lags)."""
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(series, lags)[:, ::-1])


# -------------------------------------------------------------------------------------------------------------- streams


def sinc(seed: int, rows: int = 100) -> Stream:
    """x uniform in [-3, 3], y = sin(pi x) / (pi x), without noise."""
    x = np.random.default_rng(seed).uniform(-3, 3, rows)
    return x[:, None], np.round(np.sinc(x), DIGITS)


def lorenz(seed: int, rows: int) -> Stream:
    """The next x of Lorenz's system, every 0.02, from the last six; the start is drawn, and 1,000 steps from it are left out."""
    a, b, c = np.random.default_rng(seed).normal(0, 1, 3)
    series = np.round(lorenz_path(rows + 1006, (1 + a, 1 + b, 20 + c))[1000:, 0], DIGITS)
    return embedded(series[:-1], 6), series[6:]


def mackey_glass(seed: int, rows: int) -> Stream:
    """Delay 30, a value every 6, noise of deviation 0.04 on all: the next value from the last ten."""
    rng = np.random.default_rng(seed)
    path = mackey_glass_path(60 * (rows + 60), 30, float(rng.uniform(0.9, 1.5)))
    series = path[3000::60][: rows + 10]
    series = np.round(series + rng.normal(0, 0.04, len(series)), DIGITS)
    return embedded(series[:-1], 10), series[10:]


def channel(seed: int, rows: int) -> Stream:
    """A symbol +-1 two steps back from five received values: z = s + 0.5 s_-1, r = z - 0.9 z^2 + noise of deviation 0.4."""
    rng = np.random.default_rng(seed)
    s = rng.choice([-1.0, 1.0], rows + 5)
    z = s[1:] + 0.5 * s[:-1]
    r = np.round(z - 0.9 * z**2 + rng.normal(0, 0.4, len(z)), DIGITS)
    return embedded(r, 5), s[3:-2]


def switching(seed: int, rows: int) -> Stream:
    """A linear channel behind which is tanh, and which changes half way: its output from the last four symbols +-1.

    Noise is 20 dB below the output.
    """
    rng = np.random.default_rng(seed)
    x = embedded(rng.choice([-1.0, 1.0], rows + 3), 4)
    before, after = np.array([1, 0.0668, -0.4764, 0.8070]), np.array([1, -0.4326, -0.6656, 0.7153])
    clean = np.tanh(np.where(np.arange(rows) < rows // 2, x @ before, x @ after))
    return x, np.round(clean + rng.normal(0, 0.1 * np.sqrt(np.mean(clean**2)), rows), DIGITS)


def recursion(seed: int, rows: int) -> Stream:
    """d = (0.8 - 0.5 exp(-d_-1^2)) d_-1 - (0.3 + 0.9 exp(-d_-1^2)) d_-2 + 0.1 sin(pi d_-1), from the last two.

    It begins at 0.1, 0.1; what is seen of it has noise of deviation 0.1.
    """
    d = np.full(rows + 2, 0.1)
    for t in range(2, len(d)):
        last, fading = d[t - 1], np.exp(-(d[t - 1] ** 2))
        d[t] = (0.8 - 0.5 * fading) * last - (0.3 + 0.9 * fading) * d[t - 2] + 0.1 * np.sin(np.pi * last)
    seen = np.round(d + np.random.default_rng(seed).normal(0, 0.1, len(d)), DIGITS)
    return embedded(seen[:-1], 2), seen[2:]


# ---------------------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Task:
    """A named stream, and what its sources set.

    rows: of one seed, if nothing else is asked for.  sigma: the Gaussian kernel's width, for all rules.  settings: keys of
    rules that a source sets for this task.  sources: keys of the bibliography.
    """

    make: Callable[[int, int], Stream]
    rows: int
    sigma: float
    sources: tuple[str, ...]
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def _width(a: float) -> float:
    """Of exp(-a |x - y|^2), in digits that a human writes."""
    return float(f"{np.sqrt(0.5 / a):.4g}")


TASKS: Mapping[str, Task] = {
    "channel": Task(channel, 2000, _width(0.1), ("liu2008",)),
    "lorenz": Task(lorenz, 3000, 32.0, ("lorenz1963", "vanvaerenbergh2013")),
    "mackey-glass": Task(mackey_glass, 2000, _width(1.0), ("mackey1977", "liu2008"), {"klms": {"eta": 0.2}}),
    "recursion": Task(
        recursion, 5000, _width(3.73), ("richard2009",), {"knlms": {"coherence": 0.5, "eta": 0.09, "epsilon": 0.03}}
    ),
    "sinc": Task(sinc, 1000, 0.5, ("mitchinson2003",), {"klms": {"eta": 0.1}}),
    "switching": Task(switching, 1000, 1.0, ("vanvaerenbergh2006",), {"sw-krls": {"ridge": 0.1}}),
}
