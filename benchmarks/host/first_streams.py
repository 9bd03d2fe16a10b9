"""The streams of the benchmark of first results: raw, as their sources have them, at most 3,000 rows each.

The list was committed before any default was tuned on it, and no stream is ever removed.  Sources: scikit-learn, the files
and generators that river brings (``pip install river``), pykernel's own bike rentals, and equations that are written out here.
A stream is (inputs (rows, DIM), labels (rows,)) in float64; labels of classes are positions, int64.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.compare.tasks import lorenz_path, mackey_glass_path

Stream = tuple[np.ndarray, np.ndarray]
ROWS = 3000


def _sklearn(name: str, **how: Any) -> Stream:
    import sklearn.datasets

    found = getattr(sklearn.datasets, name)(**how)
    x, y = (found.data, found.target) if hasattr(found, "data") else found
    return np.asarray(x, float), np.asarray(y)


def _shuffled(stream: Stream) -> Stream:
    """Sets that are sorted by label, in an order without meaning."""
    order = np.random.default_rng(0).permutation(len(stream[0]))
    return stream[0][order], stream[1][order]


def _river(name: str, labels: Callable[[Any], Any] = float, **how: Any) -> Stream:
    """Rows of a set or of a generator.  A word is its position among the words of its column, a date the day it stands for."""
    from river import datasets
    from river.datasets import synth

    source = getattr(synth, name)(seed=0, **how) if hasattr(synth, name) else getattr(datasets, name)()
    rows = list(itertools.islice(iter(source), ROWS))
    columns = list(zip(*(list(row.values()) for row, _ in rows), strict=True))
    return np.array([_numbers(column) for column in columns]).T, np.array([labels(y) for _, y in rows])


def _numbers(column: Iterable[Any]) -> list[float]:
    values = list(column)
    if hasattr(values[0], "timestamp"):
        return [value.timestamp() / 86400 for value in values]
    if isinstance(values[0], str):
        known = {word: float(i) for i, word in enumerate(dict.fromkeys(values))}
        return [known[word] for word in values]
    return [float(value) for value in values]


def _positions(stream: Stream) -> Stream:
    """Classes by number, in the order of their names."""
    return stream[0], np.unique(stream[1], return_inverse=True)[1]


def _river_classes(name: str, **how: Any) -> Stream:
    return _positions(_river(name, str, **how))


# ------------------------------------------------------------------------------------------------ written-out ones


def lagged(series: np.ndarray, lags: int) -> Stream:
    """Predict the next value of a series from the last ``lags`` values."""
    x = np.lib.stride_tricks.sliding_window_view(series, lags)[:-1]
    return np.array(x[:ROWS]), np.array(series[lags:][:ROWS])


def mackey_glass(delay: int = 17) -> Stream:
    """M. C. Mackey, L. Glass 1977, Euler steps of 0.1, every tenth value; the last four values predict six ahead."""
    s = mackey_glass_path(10 * (ROWS + 300) + 10 * delay, delay)
    s = s[10 * delay + 1000 :: 10]
    taken = np.arange(18, len(s) - 6)
    x = np.stack([s[taken - lag] for lag in (0, 6, 12, 18)], axis=1)
    return x[:ROWS], s[taken + 6][:ROWS]


def random_walk() -> Stream:
    return lagged(np.random.default_rng(1).normal(size=ROWS + 4).cumsum(), 3)


def prices() -> Stream:
    """Like a price: a walk of logarithms whose steps are quiet and wild by turns."""
    rng = np.random.default_rng(2)
    wild = np.exp(0.02 * rng.normal(size=ROWS + 4).cumsum())
    return lagged(100 * np.exp((0.005 * wild * rng.normal(size=ROWS + 4)).cumsum()), 3)


def logistic_map() -> Stream:
    s = np.empty(ROWS + 2)
    s[0] = 0.3
    for t in range(len(s) - 1):
        s[t + 1] = 3.9 * s[t] * (1 - s[t])
    return lagged(s, 1)


def lorenz() -> Stream:
    """E. N. Lorenz 1963, Runge-Kutta steps of 0.02; x three steps ahead from (x, y, z)."""
    states = lorenz_path(ROWS + 203)[200:]
    return states[:-3], states[3:, 0]


def plant() -> Stream:
    """K. S. Narendra, K. Parthasarathy 1990: the next output of a plant from two outputs and the input."""
    rng = np.random.default_rng(3)
    u, y = rng.uniform(-2, 2, ROWS + 2), np.zeros(ROWS + 3)
    for t in range(1, ROWS + 2):
        y[t + 1] = y[t] * y[t - 1] * (y[t] + 2.5) / (1 + y[t] ** 2 + y[t - 1] ** 2) + u[t]
    return np.stack([y[1:-2], y[:-3], u[1:-1]], axis=1)[:ROWS], y[2:-1][:ROWS]


def narma() -> Stream:
    """NARMA of order 10 (A. F. Atiya, A. G. Parlos 2000), from the last ten inputs."""
    u, y = np.random.default_rng(4).uniform(0, 0.5, ROWS + 10), np.zeros(ROWS + 11)
    for t in range(9, ROWS + 10):
        y[t + 1] = 0.3 * y[t] + 0.05 * y[t] * y[t - 9 : t + 1].sum() + 1.5 * u[t - 9] * u[t] + 0.1
    return np.lib.stride_tricks.sliding_window_view(u, 10)[:ROWS].copy(), y[10 : ROWS + 10]


def thermistor() -> Stream:
    """Degrees from counts of a converter and a supply voltage: a divider with a thermistor, Steinhart and Hart's formula."""
    rng = np.random.default_rng(5)
    celsius = 25 + 20 * np.sin(np.arange(ROWS) / 200) + rng.normal(0, 3, ROWS)
    ohms = 10_000 * np.exp(3950 * (1 / (celsius + 273.15) - 1 / 298.15))
    volts = 3.3 + rng.normal(0, 0.03, ROWS)
    counts = np.round(4095 * ohms / (ohms + 10_000) * volts / 3.3)
    return np.stack([counts, 1000 * volts], axis=1), celsius


def pressure() -> Stream:
    """Flow in litres a minute from a pressure difference in pascal and a temperature in kelvin: a root, noise, slow drift."""
    rng = np.random.default_rng(6)
    flow = np.clip(40 + 25 * np.sin(np.arange(ROWS) / 90) + rng.normal(0, 6, ROWS), 0, None)
    kelvin = 290 + 8 * np.sin(np.arange(ROWS) / 700) + rng.normal(0, 0.2, ROWS)
    drift = np.linspace(0, 30, ROWS)
    return np.stack([101_325 + 0.4 * flow**2 * 293 / kelvin + drift + rng.normal(0, 5, ROWS), kelvin], axis=1), flow


def friction() -> Stream:
    """Torque from speed (R. Stribeck 1902): a jump at zero, a minimum, viscous beyond."""
    rng = np.random.default_rng(7)
    speed = 30 * np.sin(np.arange(ROWS) / 35) * rng.uniform(0.6, 1, ROWS)
    torque = np.sign(speed) * (0.6 + 0.5 * np.exp(-((np.abs(speed) / 4) ** 2))) + 0.03 * speed
    return speed[:, None], torque + rng.normal(0, 0.03, ROWS)


def battery() -> Stream:
    """Open-circuit volts of a cell from charge and temperature, while it ages."""
    rng = np.random.default_rng(8)
    charge = np.abs((np.arange(ROWS) / 150) % 2 - 1)
    celsius = 20 + 10 * np.sin(np.arange(ROWS) / 400) + rng.normal(0, 1, ROWS)
    volts = (
        3.0 + 0.7 * charge + 0.35 * np.exp(-12 * (1 - charge)) - 0.3 * np.exp(-18 * charge) + 0.0015 * (celsius - 20)
    )
    return np.stack([100 * charge, celsius], axis=1), volts - 0.05 * np.arange(ROWS) / ROWS + rng.normal(0, 0.004, ROWS)


def switching() -> Stream:
    """A linear function whose weights turn round half way."""
    rng = np.random.default_rng(9)
    x = rng.normal(size=(ROWS, 5)) * [1, 10, 0.1, 5, 2] + [0, 100, 1, -20, 0]
    z = (x - [0, 100, 1, -20, 0]) / [1, 10, 0.1, 5, 2]
    w = np.array([1.0, -2.0, 0.5, 0.0, 1.5])
    return x, np.where(np.arange(ROWS) < ROWS // 2, z @ w, -z @ w) + rng.normal(0, 0.3, ROWS)


def seasons() -> Stream:
    """A yearly and a weekly wave with a trend and noise, from the day and the value of the day before."""
    rng = np.random.default_rng(10)
    day = np.arange(ROWS + 1)
    y = (
        200
        + 0.02 * day
        + 30 * np.sin(2 * np.pi * day / 365)
        + 12 * np.sin(2 * np.pi * day / 7)
        + rng.normal(0, 4, ROWS + 1)
    )
    return np.stack([day[1:] % 7, day[1:] % 365, y[:-1]], axis=1), y[1:]


def bikes() -> Stream:
    from pykernel.host.bikeshare import bikeshare

    x, y, _ = bikeshare()
    return np.asarray(x[:ROWS], float), np.asarray(y[:ROWS], float)


def sinc() -> Stream:
    rng = np.random.default_rng(11)
    x = rng.uniform(-10, 10, ROWS)
    return x[:, None], np.sinc(x / np.pi) + rng.normal(0, 0.05, ROWS)


REGRESSION: Mapping[str, Callable[[], Stream]] = {
    "diabetes": lambda: _sklearn("load_diabetes", scaled=False),
    "friedman 1": lambda: _sklearn("make_friedman1", n_samples=ROWS, noise=1.0, random_state=0),
    "friedman 2": lambda: _sklearn("make_friedman2", n_samples=ROWS, noise=50.0, random_state=0),
    "friedman 3": lambda: _sklearn("make_friedman3", n_samples=ROWS, noise=0.1, random_state=0),
    "linear": lambda: _sklearn("make_regression", n_samples=ROWS, n_features=8, noise=20.0, random_state=0),
    "sparse": lambda: _sklearn("make_sparse_uncorrelated", n_samples=ROWS, random_state=0),
    "swiss roll": lambda: _sklearn("make_swiss_roll", n_samples=ROWS, noise=0.3, random_state=0),
    "airline": lambda: _river("AirlinePassengers"),
    "chicks": lambda: _river("ChickWeights"),
    "trump": lambda: _river("TrumpApproval"),
    "water flow": lambda: _river("WaterFlow"),
    "stocks": lambda: _river("SP500Stocks"),
    "friedman drift": lambda: _river("FriedmanDrift", drift_type="gra", position=(1000, 2000)),
    "mv": lambda: _river("Mv"),
    "planes": lambda: _river("Planes2D"),
    "bikes": bikes,
    "mackey-glass": mackey_glass,
    "random walk": random_walk,
    "prices": prices,
    "logistic map": logistic_map,
    "lorenz": lorenz,
    "plant": plant,
    "narma": narma,
    "thermistor": thermistor,
    "pressure": pressure,
    "friction": friction,
    "battery": battery,
    "switching": switching,
    "seasons": seasons,
    "sinc": sinc,
}
CLASSES: Mapping[str, Callable[[], Stream]] = {
    "digits": lambda: _positions(_shuffled(_sklearn("load_digits"))),
    "iris": lambda: _positions(_shuffled(_sklearn("load_iris"))),
    "wine": lambda: _positions(_shuffled(_sklearn("load_wine"))),
    "breast cancer": lambda: _positions(_shuffled(_sklearn("load_breast_cancer"))),
    "moons": lambda: _positions(_sklearn("make_moons", n_samples=ROWS, noise=0.25, random_state=0)),
    "circles": lambda: _positions(_sklearn("make_circles", n_samples=ROWS, noise=0.1, factor=0.5, random_state=0)),
    "hastie": lambda: _positions(_sklearn("make_hastie_10_2", n_samples=ROWS, random_state=0)),
    "quantiles": lambda: _positions(_sklearn("make_gaussian_quantiles", n_samples=ROWS, n_classes=3, random_state=0)),
    "bananas": lambda: _river_classes("Bananas"),
    "phishing": lambda: _river_classes("Phishing"),
    "segments": lambda: _river_classes("ImageSegments"),
    "shuttle": lambda: _river_classes("Shuttle"),
    "sea": lambda: _river_classes("SEA", noise=0.1),
    "agrawal": lambda: _river_classes("Agrawal"),
    "hyperplane": lambda: _river_classes("Hyperplane", n_features=8, mag_change=0.01),
    "led": lambda: _river_classes("LED", noise_percentage=0.1),
    "sine": lambda: _river_classes("Sine", has_noise=True),
    "waveform": lambda: _river_classes("Waveform", has_noise=True),
}


# -------------------------------------------------------------------------------------------------------- variants


def noisy(x: np.ndarray, y: np.ndarray) -> Stream:
    """Label noise of one standard deviation."""
    return x, y + np.random.default_rng(100).normal(0, y.std(), len(y))


def ordered(x: np.ndarray, y: np.ndarray) -> Stream:
    """Sorted by the first input."""
    order = np.argsort(x[:, 0], kind="stable")
    return x[order], y[order]


def glitches(x: np.ndarray, y: np.ndarray) -> Stream:
    """One number in a hundred is twenty standard deviations off."""
    rng = np.random.default_rng(101)
    hit = rng.random(x.shape) < 0.01
    return x + hit * 20 * x.std(0) * rng.choice([-1, 1], x.shape), y


def uneven(x: np.ndarray, y: np.ndarray) -> Stream:
    """Columns times 0.01 to 100, and offsets of as many standard deviations."""
    rng = np.random.default_rng(102)
    factor = 10.0 ** rng.uniform(-2, 2, x.shape[1])
    return x * factor + rng.uniform(-100, 100, x.shape[1]) * (x * factor).std(0), y


def raised(x: np.ndarray, y: np.ndarray) -> Stream:
    """Labels plus fifty standard deviations."""
    return x, y + 50 * y.std()


def plain(x: np.ndarray, y: np.ndarray) -> Stream:
    return x, y


def wrong_labels(x: np.ndarray, y: np.ndarray) -> Stream:
    """One class in five is drawn anew."""
    rng = np.random.default_rng(103)
    return x, np.where(rng.random(len(y)) < 0.2, rng.integers(0, y.max() + 1, len(y)), y)


VARIANTS: Mapping[str, Callable[[np.ndarray, np.ndarray], Stream]] = {
    "as is": plain,
    "noise": noisy,
    "sorted": ordered,
    "outliers": glitches,
    "scales": uneven,
    "offset": raised,
}
CLASS_VARIANTS: Mapping[str, Callable[[np.ndarray, np.ndarray], Stream]] = {
    "as is": plain,
    "noise": wrong_labels,
    "scales": uneven,
}


@functools.cache
def raw(name: str) -> Stream:
    """A stream as its source has it, at most ROWS rows of it."""
    x, y = {**REGRESSION, **CLASSES}[name]()
    return x[:ROWS], y[:ROWS]


def stream(name: str, variant: str = "as is") -> Stream:
    """A stream in one of its variants."""
    known = VARIANTS if name in REGRESSION else CLASS_VARIANTS
    return known[variant](*raw(name))
