"""What a monitor sees, beside the rivals of ``pykernel plan`` and detectors of scikit-learn and River, and what each `[novelty] life` loses; two tables of docs/guide/monitor-settings.md.

    python -m benchmarks.host.alarms          # docs/data/alarms-lives.csv, alarms-rivals.csv
    python -m benchmarks.host.alarms --show   # the tables of the files

Streams: the raw streams of first_streams.py with at least 1,250 rows and at most 40 columns, into which a fault of one sensor is put every
600 rows; two pumps with four speeds and eight faults each, of four kinds; a fault of 8 deviations in 40 of 150 rows, and noise in
place of it; faults that begin with a run of a machine, or soon after; streams that are normal throughout; and machines that get new states.  None
of them chose a constant of the monitor, but the raw streams were looked at when the lives were made.

All detectors judge a row by the rows before it.  Rivals that are trained see the first 2,000 rows (a third of a short stream), in which no
fault counts; the others go on learning.  Each rival has one setting.  A rival's threshold is the one that as many rows without faults are above as the
monitor has in alarm there: rivals are given the stream's own faultless rows to choose it, the monitor is not.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from benchmarks.host.first_streams import CLASSES, REGRESSION, raw
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.host.monitoring import Monitoring
from pykernel.host.simple import Rivals
from pykernel.parallel import Workers, one_thread
from pykernel.spec.defaults import completed
from pykernel.spec.model import make_spec
from pykernel.tuning.costs import memory_bytes

LIVES = ("known", "changing", "fixed")
GUARD = 60
"""Rows after a fault that are neither faulty nor free of faults: levels are smoothed."""
SETTLING = 2000
RATES = (0.01, 0.001)
EVERY = 600
"""Rows of a raw stream for each fault, at least."""
KINDS = ("spike", "offset", "drift", "stuck", "noise")
"""A spike of four standard deviations for two rows; for forty an offset of two, a drift to four, one value, noise of two."""
Found = Iterator[tuple[str, float]]
Alarms = Callable[[np.ndarray, float], np.ndarray]
"""(rows, false alarm rate) -> which rows are in alarm."""


class Fault(NamedTuple):
    """The rows first, .., last - 1."""

    first: int
    last: int


class Stream(NamedTuple):
    """Rows in time order, (T, D), and their faults, which do not overlap."""

    rows: np.ndarray
    faults: tuple[Fault, ...]

    @property
    def settled(self) -> int:
        """The rows that nobody is judged on."""
        return min(SETTLING, len(self.rows) // 3)

    @property
    def judged(self) -> list[Fault]:
        return [fault for fault in self.faults if fault.first >= self.settled]

    @property
    def sound(self) -> np.ndarray:
        """The rows that count as free of faults, (T,)."""
        found = np.arange(len(self.rows)) >= self.settled
        for fault in self.faults:
            found[fault.first : fault.last + GUARD] = False
        return found

    def seen(self, alarms: np.ndarray) -> tuple[float, float]:
        """Parts of the faults with a row in alarm, and of the faulty rows in alarm."""
        each = [alarms[fault.first : fault.last] for fault in self.judged]
        return float(np.mean([part.any() for part in each])), float(np.concatenate(each).mean())

    def seen_at(self, levels: np.ndarray, rate: float) -> tuple[float, float]:
        """The same with the threshold that a part ``rate`` of the rows without faults is above."""
        known = np.sort(levels[self.sound])
        return self.seen(levels > known[len(known) - 1 - int(rate * len(known))])


def monitor(life: str) -> Alarms:
    """A spec without a rule, for a machine that lives so."""

    def alarms(rows: np.ndarray, rate: float = 0.01) -> np.ndarray:
        content = {"name": "first", "input": {"columns": [f"x{i}" for i in range(rows.shape[1])]}}
        spec = make_spec(dict(completed(content | {"novelty": {"life": life, "false_alarm_rate": rate}})))
        steps = Monitoring(spec).run(np.asarray(rows, float), np.zeros((len(rows), 0)))
        return np.isin(np.concatenate([each.statuses for each in steps]), [int(each) for each in spec.program.alarms])

    return alarms


# ------------------------------------------------------------------------------------------------------------ rivals


def trained(module: str, name: str, **keys: Any) -> Callable[[np.ndarray, int], np.ndarray]:
    """Levels of a detector of scikit-learn that is fitted on the first rows, on standardised inputs."""

    def levels(rows: np.ndarray, settled: int) -> np.ndarray:
        from sklearn.preprocessing import StandardScaler

        detector = getattr(importlib.import_module(f"sklearn.{module}"), name)(**keys)
        scaled = StandardScaler().fit(rows[:settled]).transform(rows)
        return -np.asarray(detector.fit(scaled[:settled]).score_samples(scaled))

    return levels


def half_space_trees(rows: np.ndarray, settled: int) -> np.ndarray:
    from river import anomaly, compose, preprocessing

    model, levels = compose.Pipeline(preprocessing.MinMaxScaler(), anomaly.HalfSpaceTrees(seed=0)), []
    for row in rows.tolist():
        named = dict(enumerate(row))
        levels.append(model.score_one(named))
        model.learn_one(named)
    return np.array(levels)


RIVALS: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "16 Gaussians, trained": trained("mixture", "GaussianMixture", n_components=16, reg_covar=1e-3, random_state=0),
    "isolation forest, trained": trained("ensemble", "IsolationForest", random_state=0),
    "one-class support vectors, trained": trained("svm", "OneClassSVM", nu=0.01),
    "half-space trees (River)": half_space_trees,
}


# ----------------------------------------------------------------------------------------------------------- machines


def runs(rng: np.random.Generator, rows: int, states: int, shortest: int, longest: int) -> np.ndarray:
    """The state of each row, (rows,): one after the other, at random."""
    found: list[int] = []
    while len(found) < rows:
        found += [int(rng.integers(states))] * int(rng.integers(shortest, longest))
    return np.array(found[:rows])


def machine(rng: np.random.Generator, state: np.ndarray, sensors: int = 5) -> np.ndarray:
    """Sensors that follow a machine's state, some of them slowly, and have a load in common."""
    rows = len(state)
    place = rng.normal(0, 6, size=(int(state.max()) + 1, sensors))
    x, load = place[state] + rng.normal(size=(rows, sensors)), np.zeros(rows)
    noise = rng.normal(size=rows)
    for t in range(1, rows):
        load[t] = 0.95 * load[t - 1] + 0.3 * noise[t]
    x += load[:, None] * rng.normal(1, 0.3, size=sensors)
    slow = x[:, -1].copy()
    for t in range(1, rows):  # a temperature
        slow[t] = 0.97 * slow[t - 1] + 0.03 * x[t, -1]
    x[:, -1] = slow + 0.1 * rng.normal(size=rows)
    return x


def pump(seed: int) -> Stream:
    """Eight faults of four kinds after row 4,000: a leak, wear, a sensor that is stuck, noise."""
    rng, rows = np.random.default_rng([72, seed]), 24_000
    x = machine(rng, runs(rng, rows, 4, 200, 900))
    step, faults = np.median(np.abs(np.diff(x, axis=0)), axis=0) * 1.5, []
    for number in range(8):
        j = int(rng.integers(5))
        first = 4500 + 2400 * number + int(rng.integers(600))
        last = first + int(rng.integers(60, 200))
        changes = (-4 * step[j], np.linspace(0, 6, last - first) * step[j], x[first, j] - x[first:last, j])
        x[first:last, j] += changes[number % 4] if number % 4 < 3 else 3 * step[j] * rng.normal(size=last - first)
        faults.append(Fault(first, last))
    return Stream(x, tuple(faults))


def sensors(name: str) -> np.ndarray:
    """A raw stream's inputs, and its label if that is a number, (rows, sensors)."""
    x, y = raw(name)
    return (np.column_stack([x, y]) if name in REGRESSION else x).astype(float)


def put_in(x: np.ndarray, unit: float, kind: str, first: int, j: int) -> Fault:
    """Put a fault into one sensor's rows."""
    last, rng = first + (2 if kind == "spike" else 40), np.random.default_rng(KINDS.index(kind))
    drift = 4 * unit * np.linspace(0, 1, last - first)
    stuck, noise = x[first, j] - x[first:last, j], rng.normal(0, 2 * abs(unit), last - first)
    x[first:last, j] += {"spike": 4 * unit, "offset": 2 * unit, "drift": drift, "stuck": stuck, "noise": noise}[kind]
    return Fault(first, last)


@cache
def raw_streams() -> tuple[Stream, ...]:
    """One fault or more in each, all kinds in turn."""
    found = []
    for number, name in enumerate([*REGRESSION, *CLASSES]):
        x = sensors(name)
        if len(x) < 1250 or x.shape[1] > 40:
            continue
        rng, deviation, settled = np.random.default_rng([0, number]), x.std(axis=0), min(SETTLING, len(x) // 3)
        moving, count = np.flatnonzero(deviation), max(1, (len(x) - settled) // EVERY)
        every, faults = (len(x) - settled) // count, []
        for i in range(count):
            j, first = int(rng.choice(moving)), settled + i * every + int(rng.integers(every // 4, every // 2))
            faults.append(
                put_in(x, float(rng.choice([-1, 1])) * deviation[j], KINDS[(number + i) % len(KINDS)], first, j)
            )
        changed = (x != sensors(name)).any(axis=1)  # a sensor that repeats its value may be stuck there already
        found.append(
            Stream(x.astype(np.float32), tuple(each for each in faults if changed[each.first : each.last].any()))
        )
    return tuple(found)


# ----------------------------------------------------------------------------------------------------------- measured


@cache
def with_faults() -> tuple[tuple[str, Stream], ...]:
    return (*(("raw streams", each) for each in raw_streams()), ("pumps", pump(1)), ("pumps", pump(2)))


def beside(task: Mapping[str, Any], shared: Any) -> list[dict[str, Any]]:
    """What the monitor sees of a stream, and its rivals with as many false rows."""
    found, (source, stream) = [], with_faults()[task["stream"]]
    with one_thread:
        dim = stream.rows.shape[1]
        rivals = dict(zip(Rivals.numbers(dim), Rivals(dim).step(stream.rows).T, strict=True))
        rivals |= {name: make(stream.rows, stream.settled).astype(float) for name, make in RIVALS.items()}
        for rate in RATES:
            alarms = monitor("known")(stream.rows, rate)
            false = float(alarms[stream.sound].mean())
            seen = {"the monitor": stream.seen(alarms)}
            seen |= {
                name: stream.seen_at(np.nan_to_num(levels, nan=-1e300, posinf=1e300), false)
                for name, levels in rivals.items()
            }
            for name, (faults, rows) in seen.items():
                told = {"faults": round(faults, 4), "rows": round(rows, 4), "false": round(false / rate, 4)}
                found.append({"streams": f"{source}, {100 * rate:g} %", "detector": name} | told)
    return found


def repeats(ours: Alarms) -> Found:
    rows = np.arange(63_000)
    burst = (rows >= 3000) & (rows % 150 < 40)
    for name in ("8 deviations", "noise × 4 of one sensor"):
        x = np.random.default_rng(3).normal(size=(len(rows), 4))
        if name == "8 deviations":
            x[burst] += 8.0
        else:
            x[burst, 0] *= 4.0
        seen = ours(x, 0.01)[3000:].reshape(-1, 150)[:, :40].mean(axis=1)
        yield f"{name} in 40 of 150 rows: part of bursts 7 to 12 in alarm", seen[6:12].mean()
        yield f"{name} in 40 of 150 rows: of bursts 301 to 400", seen[300:].mean()


def starts(ours: Alarms) -> Found:
    for after in (0, 5, 10, 20, 50):
        parts = []
        for seed in range(20):
            rng = np.random.default_rng([7, seed])
            x, first = machine(rng, np.repeat(rng.integers(3, size=32), 200)), 6000 + after
            x[first : first + 60, 1] += 8.0
            parts.append(ours(x, 0.01)[first : first + 60].mean())
        yield f"a fault of 60 rows, {after} rows after a run begins: part in alarm", np.mean(parts)


def quiet(ours: Alarms) -> Found:
    """At least 100 alarms are asked for in each stream."""
    for rate in (0.05, 0.01, 0.001):
        rows, parts = max(20_000, int(100 / rate)) + 2000, []
        rng = np.random.default_rng(11)
        smooth = rng.normal(size=(rows, 4))
        for t in range(1, rows):
            smooth[t] = 0.9 * smooth[t - 1] + smooth[t]
        lives = [
            rng.normal(size=(rows, 4)),
            smooth,
            rng.standard_t(3, size=(rows, 4)),
            rng.lognormal(size=(rows, 4)),
            rng.binomial(8, 0.5, (rows, 4)).astype(float),
            np.sin(np.arange(rows)[:, None] / (3.0, 11.0, 40.0)) + 0.1 * rng.normal(size=(rows, 3)),
            machine(rng, runs(rng, rows, 3, 100, 400)),
            machine(rng, runs(rng, rows, 2, 20, 60), 8),
        ]
        parts = [ours(x, rate)[2000:].mean() / rate for x in lives]
        yield f"normal throughout, {100 * rate:g} %: false rows / asked, least", min(parts)
        yield f"normal throughout, {100 * rate:g} %: most", max(parts)


def changes(ours: Alarms) -> Found:
    for name, shortest, longest in (("lasting 200 to 900 rows", 200, 900), ("lasting 30 to 60 rows", 30, 60)):
        parts = []
        for seed in range(4):
            rng = np.random.default_rng([5, seed])
            state = runs(rng, 16_000, 4, shortest, longest)
            state[(state == 3) & (np.arange(16_000) < 6000)] = 0  # comes first at row 6,000
            parts.append(ours(machine(rng, state), 0.01)[2000:].mean() / 0.01)
        yield f"a fourth state comes at row 6,000, {name}: false rows / asked", np.mean(parts)


def put_in_faults(ours: Alarms) -> Found:
    for source in ("raw streams", "pumps"):
        for rate in RATES:
            told = []
            for stream in (each for name, each in with_faults() if name == source):
                alarms = ours(stream.rows, rate)
                told.append([*stream.seen(alarms), alarms[stream.sound].mean() / rate])
            found = np.array(told)
            yield f"{source}, {100 * rate:g} %: part of the faults seen", found[:, 0].mean()
            yield f"{source}, {100 * rate:g} %: part of the faulty rows", found[:, 1].mean()
            yield f"{source}, {100 * rate:g} %: false rows / asked, median", np.median(found[:, 2])


MEASURED: tuple[Callable[[Alarms], Found], ...] = (put_in_faults, repeats, starts, quiet, changes)


def work(task: Mapping[str, Any], shared: Any) -> list[dict[str, Any]]:
    with one_thread:
        found = MEASURED[task["measure"]](monitor(task["life"]))
        return [{"life": task["life"], "what": what, "value": round(float(value), 4)} for what, value in found]


def tables(lives: Rows, beside: Rows) -> dict[str, str]:
    value = {(row["life"], row["what"]): float(row["value"]) for row in lives}
    lines = [
        [what, *(f"{value[life, what]:.2f}" for life in LIVES)] for what in dict.fromkeys(row["what"] for row in lives)
    ]

    def mean(where: str, detector: str, key: str) -> str:
        found = [float(row[key]) for row in beside if (row["streams"], row["detector"]) == (where, detector)]
        return f"{np.mean(found):.2f}"

    where, names = (list(dict.fromkeys(row[key] for row in beside)) for key in ("streams", "detector"))
    found = [
        [name.replace("|", "\\|"), *(mean(each, name, key) for each in where for key in ("faults", "rows"))]
        for name in names
    ]
    asked = [f"{float(mean(each, names[0], 'false')):.2f}" for each in where]
    found.append(["*false rows / asked*", *(cell for each in asked for cell in (each, ""))])
    return {
        "alarms-lives": markdown(["", *(f'"{life}"' for life in LIVES)], lines),
        "alarms-sizes": sizes(),
        "alarms-rivals": markdown(["", *(f"{each}: {what}" for each in where for what in ("faults", "rows"))], found),
    }


def sizes() -> str:
    """Bytes of RAM in float32, by sensors and components."""
    made, components = [], (2, 4, 8, 16)
    for dim in (1, 3, 6, 12, 24):
        learning = ({"rule": "gmm", "components": k} for k in components)
        specs = (make_spec({"name": "m", "input": {"dim": dim}, "learning": each}) for each in learning)
        made.append([f"{dim}", *(f"{memory_bytes(spec)['ram_bytes']:,}" for spec in specs)])
    return markdown(["sensors", *(f"{k} components" for k in components)], made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only the tables of what was measured")
    paths = DATA / "alarms-lives.csv", DATA / "alarms-rivals.csv"
    if not parser.parse_args().show:
        tasks = [{"life": life, "measure": i} for i in range(len(MEASURED)) for life in LIVES]
        with Workers(work, jobs=2, title="lives") as workers:
            save(paths[0], [row for rows in workers.run(tasks) for row in rows])
        with Workers(beside, jobs=2, title="rivals") as workers:
            each = [{"stream": i} for i in range(len(with_faults()))]
            save(paths[1], sorted((row for rows in workers.run(each) for row in rows), key=lambda row: row["streams"]))
    publish(tables(*map(load, paths)))


if __name__ == "__main__":
    main()
