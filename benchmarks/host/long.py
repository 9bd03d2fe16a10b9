"""The gate of numerics: whether every rule in float32 stays what it is in float64; writes docs/data/long.csv.

    python -m benchmarks.host.long [--only RULE …] [--million] [--jobs 2] [--part 1] [--show]

On a smooth stream the samples repeat what is known, so that rounding errors have time to add up:

    lorenz    states of Lorenz's system of unit variance; the first one a step of 0.05 later
    mackey    four values of a Mackey-Glass series, six steps apart; the value six steps later
    sines     four values of a sum of three sines, and the next one
    ramp      an input that goes from -2 to 2 and back in 200,000 samples, beside a faster sine; a function of both
    constant  inputs that stay for 5,000 samples on average, then jump
    sensors   a pressure of 1013 hPa and a temperature of 300 K, both of deviation 1 and slow, and a valve from 0 to 1; a
              quadratic function of the three

Inputs and labels are numbers of float32 in both precisions, so that only computing differs.  Labels have unit variance, and noise of
0.05 on top.  A seed gives another noise, and another beginning of the stream.

Rules are at their defaults for the given sigma and budget, and at limits of their keys that the spec accepts; ``SIZES`` has the
widths, the budgets, and how many samples the five seeds have.  Rules in ``LONG`` learn a million samples of each stream, too.  No default depends on the precision.

An error is the root mean square of f(x) - y, for y without noise, in a tenth of the stream.  Of models without labels it is that of the
answer, the novelty; a smaller one is as wrong as a larger one, and the ratio is that of the larger to the smaller.  "e1" to "e10" are medians over the seeds: of float64's errors, and of float32's in parts of float64's with the
same seed.  "refused": updates, over all seeds.  "unsound": models that are not ``valid`` at the end, or hold a number that is not
finite.

The contract: no update is refused, no model is unsound, and in each tenth the error of float32 is at most ``MOST_WORSE`` times that of
float64, or at most C ε max |y|, where C ε is ``FINE`` (ε = 2^-23, C = 2^13; of models without labels max |y| is 1).

Rules that choose which vector goes make other choices after a single rounding: then tenths are better or worse by chance.  So
"in the mean" tells whether the geometric mean of the ten ratios is at most ``MOST_WORSE``; tenths in which both errors are below C ε max
|y| do not count.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.parallel import Workers
from pykernel.spec.model import Spec, make_spec

OUT = DATA / "long.csv"
NOISE, TENTHS, CHUNK = 0.05, 10, 10_000
SEEDS = 5
SIZES = ((2.0, 8, 50_000), (4.0, 32, 20_000), (1.0, 64, 8_000))
"""sigma, the budget, and the samples of each seed."""
MILLION = (4.0, 16, 1_000_000)
"""The same, for one seed of the rules in ``LONG``."""

MOST_WORSE, FINE = 1.05, 2.0**-10
"""What the gate allows: an error of so many times that of float64, or of so many times the largest label."""

Content = dict[str, Any]


def expanded(rule: str, **learning: Any) -> Content:
    """A rule that goes on with vectors that are given: here with some of the stream, and weights of zero."""
    return {"learning": {"rule": rule, **learning}, "expansion": {}}


RULES: dict[str, Content] = {
    "krls-t": {"learning": {"rule": "krls-t"}},
    "krls-t, sup": {"learning": {"rule": "krls-t"}, "reduction": {"technique": "sup"}},
    "krls-t, forgetting 0.9999": {"learning": {"rule": "krls-t", "forgetting": 0.9999}},
    "krls-t, forgetting 0.99": {"learning": {"rule": "krls-t", "forgetting": 0.99}},
    "krls-t, least ridge and noise": {"learning": {"rule": "krls-t", "noise": 1e-4}, "reduction": {"ridge": 1e-4}},
    "krls-t, the same, forgetting 0.9999": {
        "learning": {"rule": "krls-t", "noise": 1e-4, "forgetting": 0.9999},
        "reduction": {"ridge": 1e-4},
    },
    "no rule, with a budget": {},
    "no rule": {},
    "klms": {"learning": {"rule": "klms"}},
    "klms, least ridge": {"learning": {"rule": "klms"}, "reduction": {"ridge": 1e-4}},
    "klms, ls": {"learning": {"rule": "klms"}, "reduction": {"technique": "ls"}},
    "klms, lsreg": {"learning": {"rule": "klms"}, "reduction": {"technique": "lsreg"}},
    "klms, lsridge": {"learning": {"rule": "klms"}, "reduction": {"technique": "lsridge"}},
    "klms, fmklms": {"learning": {"rule": "klms"}, "reduction": {"technique": "fmklms"}},
    "qklms": {"learning": {"rule": "qklms"}},
    "fb-krls": {"learning": {"rule": "fb-krls"}},
    "fb-krls, least ridge": {"learning": {"rule": "fb-krls"}, "reduction": {"ridge": 1e-2}},
    "sw-krls": {"learning": {"rule": "sw-krls"}},
    "sw-krls, least ridge": {"learning": {"rule": "sw-krls"}, "reduction": {"ridge": 1e-3}},
    "ald-krls": {"learning": {"rule": "ald-krls"}},
    "ald-krls, least ridge": {"learning": {"rule": "ald-krls"}, "reduction": {"ridge": 1e-4}},
    "knlms": {"learning": {"rule": "knlms"}},
    "nlms": {"learning": {"rule": "nlms"}},
    "rls": {"learning": {"rule": "rls"}},
    "rls, forgetting 0.99": {"learning": {"rule": "rls", "forgetting": 0.99}},
    "quadratic-rls": {"learning": {"rule": "quadratic-rls"}},
    "quadratic-rls, forgetting 0.99": {"learning": {"rule": "quadratic-rls", "forgetting": 0.99}},
    "rff-rls": {"learning": {"rule": "rff-rls"}},
    "rff-rls, forgetting 0.999": {"learning": {"rule": "rff-rls", "forgetting": 0.999}},
    "nystrom-rls": {"learning": {"rule": "nystrom-rls"}},
    "nystrom-rls, forgetting 0.999": {"learning": {"rule": "nystrom-rls", "forgetting": 0.999}},
    "nystrom-rls, least ridge": {"learning": {"rule": "nystrom-rls", "ridge": 1e-6}},
    "expansion-nlms": expanded("expansion-nlms"),
    "expansion-rls": expanded("expansion-rls"),
    "expansion-rls, most forgetting": expanded("expansion-rls", forgetting=0.9999),
    "spectrum-ekf": {"learning": {"rule": "spectrum-ekf"}},
    "spectrum-nlms": {"learning": {"rule": "spectrum-nlms"}},
    "okfeb": {"learning": {"rule": "okfeb"}},
    "okfeb, rls": {"learning": {"rule": "okfeb"}, "subspace": {"update": "rls"}},
    "okfeb, fading 0.98": {"learning": {"rule": "okfeb"}, "subspace": {"fading": 0.98}},
    "okfeb, drop": {"learning": {"rule": "okfeb"}, "subspace": {"budget": "drop"}},
    "okfeb, drop, fading 0.98": {"learning": {"rule": "okfeb"}, "subspace": {"budget": "drop", "fading": 0.98}},
    "okfeb, with labels": {"learning": {"rule": "okfeb"}},
    "gmm": {"learning": {"rule": "gmm"}},
}
LONG = (
    *("krls-t", "krls-t, forgetting 0.9999", "krls-t, least ridge and noise", "no rule", "ald-krls, least ridge", "quadratic-rls"),
    *("nystrom-rls", "okfeb"),
)  # fmt: skip
LABELLESS = ("okfeb", "okfeb, rls", "okfeb, fading 0.98", "okfeb, drop", "okfeb, drop, fading 0.98", "gmm")
LINEAR = ("nlms", "rls", "rls, forgetting 0.99", "quadratic-rls", "quadratic-rls, forgetting 0.99")
RANDOM = ("rff-rls", "rff-rls, forgetting 0.999", "spectrum-ekf", "spectrum-nlms")
SIZELESS = (*LINEAR, *RANDOM, "no rule", "gmm")
"""Rules without a budget: one size is enough."""


def unit(values: np.ndarray) -> np.ndarray:
    return np.asarray((values - values.mean(0)) / values.std(0))


Stream = tuple[np.ndarray, np.ndarray]


def lorenz(count: int, seed: int = 0) -> Stream:
    states = np.empty((count + 1, 3))
    a, b = map(float, np.random.default_rng(seed).uniform(1, 10, 2))
    c = 20.0
    for row in states:
        for _ in range(5):
            a, b, c = a + 0.1 * (b - a), b + 0.01 * (a * (28 - c) - b), c + 0.01 * (a * b - 8 / 3 * c)
        row[:] = a, b, c
    states = unit(states)
    return states[:-1], states[1:, 0]


def mackey(count: int, seed: int = 0) -> Stream:
    series = np.random.default_rng(seed).uniform(0.8, 1.3, 18).tolist()
    for _ in range(count + 24):
        late = series[-18]
        series.append(0.9 * series[-1] + 0.2 * late / (1 + late**10))
    values = unit(np.array(series[18:]))
    return np.stack([values[lag : lag + count] for lag in (0, 6, 12, 18)], 1), values[24 : 24 + count]


def sines(count: int, seed: int = 0) -> Stream:
    t, p = np.arange(count + 4), np.random.default_rng(seed).uniform(0, 6, 3)
    values = unit(np.sin(0.11 * t + p[0]) + 0.5 * np.sin(0.037 * t + p[1]) + 0.3 * np.sin(0.29 * t + p[2]))
    return np.stack([values[lag : lag + count] for lag in range(4)], 1), values[4:]


def ramp(count: int, seed: int = 0) -> Stream:
    t = np.arange(count) + int(np.random.default_rng(seed).integers(200_000))
    slow, fast = 4 * np.abs((t / 100_000) % 2 - 1) - 2, np.sin(0.05 * t)
    return np.stack([slow, fast], 1), unit(np.sin(2 * slow) + 0.5 * slow * fast)


def constant(count: int, seed: int = 0) -> Stream:
    rng = np.random.default_rng(seed)
    place = np.cumsum(rng.random(count) < 1 / 5_000)
    x = rng.uniform(-2, 2, (place[-1] + 1, 3))[place]
    return x, unit(np.sin(1.3 * x[:, 0]) + 0.6 * np.cos(x[:, 1] * x[:, 2]))


def sensors(count: int, seed: int = 0) -> Stream:
    t, p = np.arange(count), np.random.default_rng(seed).uniform(0, 6, 5)
    pressure = unit(np.sin(t / 480 + p[0]) + 0.5 * np.sin(t / 75 + p[1]))
    temperature = unit(np.sin(t / 800 + p[2]) + 0.4 * np.sin(t / 21 + p[3]))
    valve = 0.5 + 0.4 * np.sin(t / 10 + p[4])
    clean = unit(pressure + 0.5 * temperature + 0.4 * pressure * temperature + valve * pressure)
    return np.stack([1013 + pressure, 300 + temperature, valve], 1), clean


STREAMS: dict[str, Callable[[int, int], Stream]] = {
    each.__name__: each for each in (lorenz, mackey, sines, ramp, constant, sensors)
}


@functools.lru_cache(maxsize=4)
def stream_of(name: str, samples: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels, and what labels are without noise."""
    x, clean = STREAMS[name](samples, seed)
    y = clean + NOISE * np.random.default_rng([1, seed]).normal(size=samples)
    return x.astype(np.float32).astype(float), y.astype(np.float32).astype(float), clean


def spec_of(rule: str, x: np.ndarray, sigma: float, n_max: int, precision: str) -> Spec:
    """The rule's spec for inputs like these."""
    content: Content = {"name": "smooth", "precision": precision, "input": {"dim": x.shape[1], "max_abs": 2000.0}}
    content |= {name: dict(section) for name, section in RULES[rule].items()}
    if rule not in LABELLESS:
        content["label"] = {"column": "y", "max_abs": 10.0}
    if not rule.startswith("no rule") and rule not in (*LINEAR, "gmm"):
        content["kernel"] = {"sigma": sigma}
    if "expansion" in content:
        vectors = x[:: len(x) // n_max][:n_max].tolist()
        content["expansion"] = {"vectors": vectors, "weights": [[0.0]] * n_max, "bias": [0.0]}
    elif rule not in SIZELESS:
        content["reduction"] = {"n_max": n_max, **content.get("reduction", {})}
    return make_spec(content, rule)


@dataclass(frozen=True)
class Run:
    """refused: number of updates that were.  sound: whether the state is valid at the end.  errors: of each tenth."""

    refused: int
    sound: bool
    errors: list[float]


def run(spec: Spec, x: np.ndarray, y: np.ndarray, clean: np.ndarray) -> Run:
    """Forecast and learn each sample.  Nothing is refreshed."""
    model, refused, squares = HostModel(spec), 0, np.empty(len(x))
    labelled = spec.label_kind != "none"
    for start in range(0, len(x), CHUNK):
        part = slice(start, start + CHUNK)
        answers, statuses = model.prequential(x[part], y[part] if labelled else None)
        refused += int((statuses < 0).sum())
        squares[part] = (np.asarray(answers, float).reshape(-1) - (clean[part] if labelled else 0)) ** 2
    fields = [model.memory.field(name) for struct in spec.program.persistent for name in struct.fields]
    finite = all(np.isfinite(field).all() for field in fields)
    errors = [float(np.sqrt(part.mean())) for part in np.array_split(squares, TENTHS)]
    return Run(refused, finite and snapshot.is_valid(spec, model.memory), errors)


def both(task: Mapping[str, Any], shared: Any = None) -> dict[str, Any]:
    """One seed in both precisions; the keys of a task are those of ``tasks_of``."""
    x, y, clean = stream_of(task["stream"], task["samples"], task["seed"])
    found = {}
    for precision in ("float64", "float32"):
        done = run(spec_of(task["rule"], x, task["sigma"], task["n_max"], precision), x, y, clean)
        found[precision] = {"refused": done.refused, "unsound": int(not done.sound), "errors": done.errors}
    labelled = task["rule"] not in LABELLESS
    return {**found, "largest": float(np.abs(clean).max()) if labelled else 1.0}


def tasks_of(rule: str, million: bool = False) -> Iterator[dict[str, Any]]:
    """Of the five seeds, or of the one that learns a million samples."""
    sizes = (MILLION,) if million else SIZES[:1] if rule in SIZELESS else SIZES
    every = [(*size, seed) for size in sizes for seed in range(1 if million else SEEDS)]
    for stream in STREAMS:
        for sigma, n_max, samples, seed in every:
            yield {"rule": rule, "stream": stream, "sigma": sigma, "n_max": n_max, "samples": samples, "seed": seed}


def rows_of(tasks: list[dict[str, Any]], found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Two rows for each setting, of which there are some seeds."""
    settings: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for task, each in zip(tasks, found, strict=True):
        settings.setdefault(tuple(task[key] for key in ("rule", "stream", "sigma", "n_max", "samples")), []).append(
            each
        )
    for (rule, stream, sigma, n_max, samples), seeds in settings.items():
        wide, narrow = (np.array([each[p]["errors"] for each in seeds]) for p in ("float64", "float32"))
        ratios = np.maximum(narrow, 1e-12) / np.maximum(wide, 1e-12)
        if rule in LABELLESS:
            ratios = np.maximum(ratios, 1 / ratios)
        shown = {"float64": np.median(wide, 0), "float32": np.median(ratios, 0)}
        for precision, errors in shown.items():
            yield {
                **{"rule": rule, "stream": stream, "sigma": f"{sigma:g}", "n_max": n_max, "samples": samples},
                **{"seeds": len(seeds), "largest": f"{np.median([each['largest'] for each in seeds]):.3g}"},
                **{"precision": precision},
                **{key: sum(each[precision][key] for each in seeds) for key in ("refused", "unsound")},
                **{f"e{i + 1}": f"{e:.4g}" for i, e in enumerate(errors)},
            }


# -------------------------------------------------------------------------------------------------- what came out


@dataclass(frozen=True)
class Verdict:
    """One rule on one stream in one size.  ratios: of the tenths in which an error is above the floor.  worst: the largest one of
    a tenth in which float32's is, or 0.
    """

    row: Mapping[str, str]
    ratios: np.ndarray
    worst: float

    @property
    def mean(self) -> float:
        return float(np.exp(np.log(self.ratios).mean())) if len(self.ratios) else 1.0

    @property
    def works(self) -> bool:
        return not int(self.row["refused"]) and not int(self.row["unsound"])

    @property
    def held(self) -> bool:
        return self.works and self.worst <= MOST_WORSE

    @property
    def held_in_the_mean(self) -> bool:
        return self.works and self.mean <= MOST_WORSE


def errors_of(row: Mapping[str, str]) -> np.ndarray:
    return np.array([float(row[f"e{i + 1}"]) for i in range(TENTHS)])


def verdicts(rows: Rows) -> Iterator[Verdict]:
    for wide, narrow in zip(rows[::2], rows[1::2], strict=True):
        assert (wide["precision"], narrow["precision"]) == ("float64", "float32")
        ratios, floor = errors_of(narrow), FINE * float(narrow["largest"])
        above = ratios * errors_of(wide) > floor
        counted = above | (errors_of(wide) > floor)
        yield Verdict(narrow, np.maximum(ratios[counted], 1e-3), float(ratios[above].max(initial=0.0)))


def table_of(rows: Rows) -> str:
    """For each rule: refused updates, float32's error in parts of float64's, and whether the contract is held."""
    every, lines = list(verdicts(rows)), []
    for rule in dict.fromkeys(row["rule"] for row in rows):
        own = [each for each in every if each.row["rule"] == rule]
        worst, row = max(own, key=lambda each: each.worst), max(own, key=lambda each: each.worst).row
        size = "" if rule in SIZELESS else f"σ {row['sigma']}, {row['n_max']} vectors, "
        where = f"{row['stream']}, {size}{int(row['samples']):,} samples"
        ratios = np.concatenate([errors_of(each.row) for each in own])
        lines.append([
            *(rule, f"{sum(int(each.row['refused']) for each in own)}", f"{np.median(ratios):.2f}"),
            f"{max(each.mean for each in own):.2f}",
            *(("below the floor", "") if worst.worst == 0 else (f"{worst.worst:.2f}", where)),
            f"{sum(each.held for each in own)} of {len(own)}",
            f"{sum(each.held_in_the_mean for each in own)} of {len(own)}",
        ])  # fmt: skip
    heads = ["rule", "refused", "median", "largest mean", "worst tenth", "where", "held", "in the mean"]
    return markdown(heads, lines)


def beside(rows: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    """The rows among those of the file, in the place of those of the same rule and number of seeds."""
    mine = {(row["rule"], str(row["seeds"])) for row in rows}
    kept = [row for row in load(OUT) if (row["rule"], row["seeds"]) not in mine] if OUT.is_file() else []
    return sorted([*kept, *rows], key=lambda row: (list(RULES).index(row["rule"]), -int(row["seeds"])))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*", default=list(RULES), choices=list(RULES), metavar="RULE")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--million", action="store_true", help="only the seed that learns a million samples")
    parser.add_argument("--part", type=float, default=1.0, help="learn this part of the samples, and write nothing")
    parser.add_argument("--show", action="store_true", help="only fill the page from the file")
    given = parser.parse_args()
    if not given.show:
        with Workers(both, jobs=given.jobs, title="gate") as workers:
            seeds = [] if given.million else [(rule, False) for rule in given.only]
            for rule, million in [*seeds, *((rule, True) for rule in given.only if rule in LONG)]:
                tasks = list(tasks_of(rule, million))
                for task in tasks:
                    task["samples"] = int(task["samples"] * given.part)
                rows = list(rows_of(tasks, workers.run(tasks)))
                print(table_of(rows).splitlines()[-1], file=sys.stderr, flush=True)
                if given.part == 1:
                    save(OUT, beside(rows))
    if given.part == 1:
        publish({"long streams": table_of(load(OUT))})


if __name__ == "__main__":
    main()
