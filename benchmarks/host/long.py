"""Long smooth streams: whether an online rule in float32 stays what it is in float64; writes docs/data/long.csv.

    python -m benchmarks.host.long [--samples 1000000] [--only RULE …] [--show]

On a smooth stream the samples repeat what is known, so that rounding errors have time to add up:

    lorenz    states of Lorenz's system of unit variance; the first one a step of 0.05 later
    mackey    four values of a Mackey-Glass series, six steps apart; the value six steps later
    sines     four values of a sum of three sines, and the next one
    ramp      an input that goes from -2 to 2 and back in 200,000 samples, beside a faster sine; a function of both
    constant  inputs that stay for 5,000 samples on average, then jump

Labels have noise of 0.05, of unit variance without.  Rules at their defaults for the given sigma and budget, with technique
`sup` where there is one, and at limits of their keys.  "refused": number of updates that were.  "e1" to "e10": root mean
squared error of the forecast, against labels without noise, in each tenth of the stream; with float32 divided by that of float64.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tables import DATA, DOCS, Rows, load, markdown, merged, progress_bar, publish, save
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

OUT = DATA / "long.csv"
SAMPLES, NOISE, TENTHS, CHUNK = 1_000_000, 0.05, 10, 10_000
SIZES = ((1.0, 32), (2.0, 16), (4.0, 32))
"""sigma, and the budget."""

MOST_WORSE, FINE = 1.3, 0.005
"""What the gate allows: an error of so many times that of float64, or of so many times this."""

RULES: dict[str, dict[str, Any]] = {
    "krls-t": {"learning": {"rule": "krls-t"}},
    "krls-t, forgetting 0.9999": {"learning": {"rule": "krls-t", "forgetting": 0.9999}},
    "krls-t, forgetting 0.99": {"learning": {"rule": "krls-t", "forgetting": 0.99}},
    "krls-t, least ridge and noise": {"learning": {"rule": "krls-t", "noise": 1e-3}, "reduction": {"ridge": 1e-4}},
    "klms": {"learning": {"rule": "klms"}, "reduction": {"technique": "mklms"}},
    "qklms": {"learning": {"rule": "qklms"}, "reduction": {"technique": "mklms"}},
    "fb-krls": {"learning": {"rule": "fb-krls"}},
    "sw-krls": {"learning": {"rule": "sw-krls"}},
    "ald-krls": {"learning": {"rule": "ald-krls"}},
    "ald-krls, least ridge": {"learning": {"rule": "ald-krls"}, "reduction": {"ridge": 1e-4}},
    "knlms": {"learning": {"rule": "knlms"}},
}
SELECTING = ("krls-t", "fb-krls")


def unit(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean(0)) / values.std(0))


def lorenz(count: int) -> tuple[np.ndarray, np.ndarray]:
    states = np.empty((count + 1, 3))
    a, b, c = 1.0, 1.0, 20.0
    for row in states:
        for _ in range(5):
            a, b, c = a + 0.1 * (b - a), b + 0.01 * (a * (28 - c) - b), c + 0.01 * (a * b - 8 / 3 * c)
        row[:] = a, b, c
    states = unit(states)
    return states[:-1], states[1:, 0]


def mackey(count: int) -> tuple[np.ndarray, np.ndarray]:
    series = [1.2] * 18
    for _ in range(count + 24):
        late = series[-18]
        series.append(0.9 * series[-1] + 0.2 * late / (1 + late**10))
    values = unit(np.array(series[18:]))
    return np.stack([values[lag : lag + count] for lag in (0, 6, 12, 18)], 1), values[24 : 24 + count]


def sines(count: int) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(count + 4)
    values = unit(np.sin(0.11 * t) + 0.5 * np.sin(0.037 * t + 1) + 0.3 * np.sin(0.29 * t + 2))
    return np.stack([values[lag : lag + count] for lag in range(4)], 1), values[4:]


def ramp(count: int) -> tuple[np.ndarray, np.ndarray]:
    t = np.arange(count)
    slow, fast = 4 * np.abs((t / 100_000) % 2 - 1) - 2, np.sin(0.05 * t)
    return np.stack([slow, fast], 1), unit(np.sin(2 * slow) + 0.5 * slow * fast)


def constant(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    place = np.cumsum(rng.random(count) < 1 / 5_000)
    x = rng.uniform(-2, 2, (place[-1] + 1, 3))[place]
    return x, unit(np.sin(1.3 * x[:, 0]) + 0.6 * np.cos(x[:, 1] * x[:, 2]))


STREAMS = {"lorenz": lorenz, "mackey": mackey, "sines": sines, "ramp": ramp, "constant": constant}


def spec_of(rule: str, dim: int, sigma: float, n_max: int, precision: str) -> Spec:
    given = RULES[rule]
    technique = {"technique": "sup"} if given["learning"]["rule"] in SELECTING else {}
    content = {
        "name": "smooth",
        "precision": precision,
        "input": {"dim": dim, "max_abs": 100.0},
        "label": {"max_abs": 10.0},
        "kernel": {"sigma": sigma},
        **given,
        "reduction": {"n_max": n_max, **technique, **given.get("reduction", {})},
    }
    return make_spec(content, rule)


@dataclass(frozen=True)
class Run:
    """refused: number of updates that were.  errors: of each tenth."""

    refused: int
    errors: list[float]

    @property
    def error(self) -> float:
        """Of the whole stream."""
        return float(np.sqrt(np.mean(np.square(self.errors))))


def run(spec: Spec, x: np.ndarray, clean: np.ndarray) -> Run:
    """Forecast and learn each sample.  Nothing is refreshed."""
    y = clean + NOISE * np.random.default_rng(0).normal(size=len(clean))
    model, refused, squares = HostModel(spec), 0, np.empty(len(x))
    for start in range(0, len(x), CHUNK):
        part = slice(start, start + CHUNK)
        forecast, statuses = model.prequential(x[part], y[part])
        refused += int((statuses < 0).sum())
        squares[part] = (np.asarray(forecast, float).reshape(-1) - clean[part]) ** 2
    errors = [float(np.sqrt(part.mean())) for part in np.array_split(squares, TENTHS)]
    return Run(refused, errors)


def measured(rule: str, samples: int) -> Iterator[dict[str, Any]]:
    for name, generate in STREAMS.items():
        x, clean = generate(samples)
        for sigma, n_max in SIZES:
            right = [1.0] * TENTHS
            for precision in ("float64", "float32"):
                found = run(spec_of(rule, x.shape[1], sigma, n_max, precision), x, clean)
                shown = [e / r for e, r in zip(found.errors, right, strict=True)]
                yield {
                    **{"rule": rule, "stream": name, "sigma": f"{sigma:g}", "n_max": n_max, "precision": precision},
                    **{"refused": found.refused},
                    **{f"e{i + 1}": f"{e:.3g}" for i, e in enumerate(shown)},
                }
                right = found.errors


def table_of(rows: Rows) -> str:
    """For each rule: refused updates, and float32's error of a whole stream in parts of float64's."""

    def errors(row: Mapping[str, str]) -> np.ndarray:
        return np.array([float(row[f"e{i + 1}"]) for i in range(TENTHS)])

    lines = []
    for rule in dict.fromkeys(row["rule"] for row in rows):
        wide, narrow = ([r for r in rows if r["rule"] == rule and r["precision"] == p] for p in ("float64", "float32"))
        parts = [
            float(np.linalg.norm(errors(a) * errors(b)) / np.linalg.norm(errors(a)))
            for a, b in zip(wide, narrow, strict=True)
        ]
        worst = narrow[int(np.argmax(parts))]
        where = f"{worst['stream']}, sigma {worst['sigma']}, {worst['n_max']} vectors"
        refused = sum(int(row["refused"]) for row in narrow)
        lines.append([rule, f"{refused}", f"{np.median(parts):.2f}", f"{min(parts):.2f}", f"{max(parts):.2f}", where])
    return markdown(["rule", "refused", "median", "least", "most", "where"], lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--only", nargs="*", default=list(RULES), choices=list(RULES), metavar="RULE")
    parser.add_argument("--show", action="store_true", help="only fill the page from the file")
    given = parser.parse_args()
    if not given.show:
        with progress_bar() as bar:
            for rule in bar.track(given.only, description="rules"):
                rows = list(measured(rule, given.samples))
                save(OUT, merged(OUT, rows, "rule", [rule], list(RULES)))
    publish({"long streams": table_of(load(OUT))}, DOCS / "online.md")


if __name__ == "__main__":
    main()
