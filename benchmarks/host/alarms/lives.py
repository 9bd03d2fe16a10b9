"""What each `[novelty] life` sees, and what it loses: docs/data/alarms-lives.csv, a table in docs/novelty.md.

    python -m benchmarks.host.alarms.lives          # five minutes
    python -m benchmarks.host.alarms.lives --show

Streams: two pumps with four speeds and eight faults each, of four kinds; a fault of 8 deviations in 40 of 150 rows, and noise in place
of it; faults that begin with a run of a machine, or soon after; the raw streams and held plants of ``run.py``, into which faults are
put; streams that are normal throughout; and machines that get new states.  None of them chose a constant of the monitor, but the
raw streams and the held plants were looked at when the lives were made.  A line of the table is a mean over streams, or what it says.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.host.alarms import page
from benchmarks.host.alarms.held_second import held
from benchmarks.host.alarms.measure import at_equal_rates, judged_faults, own
from benchmarks.host.alarms.raw import raw_streams
from benchmarks.host.alarms.rivals import Bare, Gaussians
from benchmarks.host.alarms.stream import Fault, Stream
from benchmarks.tables import DATA, Rows, load, save
from pykernel.parallel import Workers, one_thread

PATH = DATA / "alarms-lives.csv"
LIVES = ("known", "changing", "fixed")
Found = Iterator[tuple[str, float]]


class Living(Bare):
    """A spec without a rule, for a machine that lives so."""

    def __init__(self, life: str) -> None:
        super().__init__()
        self.life = life

    def content(self, dim: int) -> dict[str, Any]:
        made = super().content(dim)
        return made | {"novelty": {"life": self.life}}

    def alarms(self, rows: np.ndarray, rate: float = 0.01) -> np.ndarray:
        return np.asarray(self.judged(rows, rate)[1][0])


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
    """Eight faults of four kinds after row 4,000."""
    rng, rows = np.random.default_rng([72, seed]), 24_000
    x = machine(rng, runs(rng, rows, 4, 200, 900))
    step, faults = np.median(np.abs(np.diff(x, axis=0)), axis=0) * 1.5, []
    for number in range(8):
        kind, j = ("leak", "wear", "stuck", "noise")[number % 4], int(rng.integers(5))
        first = 4500 + 2400 * number + int(rng.integers(600))
        last = first + int(rng.integers(60, 200))
        if kind == "leak":
            x[first:last, j] -= 4 * step[j]
        elif kind == "wear":
            x[first:last, j] += np.linspace(0, 6, last - first) * step[j]
        elif kind == "stuck":
            x[first:last, j] = x[first, j]
        else:
            x[first:last, j] += 3 * step[j] * rng.normal(size=last - first)
        faults.append(Fault(kind, first, last, (j,)))
    return Stream(f"pump {seed}", "pumps", x, tuple(faults))


# ----------------------------------------------------------------------------------------------------------- measured


def pumps(ours: Living) -> Found:
    for rate in (0.01, 0.001):
        told = []
        for stream in map(pump, (1, 2)):
            alarms = ours.alarms(stream.rows, rate)
            trained = Gaussians(reg=1e-3, nearest=True).levels(stream.rows)
            false, seen = own(stream, alarms)
            told.append([8 * seen.events, false / rate, 8 * at_equal_rates(stream, trained, max(false, rate)).events])
        mean = np.mean(told, axis=0)
        yield f"pumps, {100 * rate:g} %: of 8 faults seen", mean[0]
        yield f"pumps, {100 * rate:g} %: false rows / asked", mean[1]
        yield f"pumps, {100 * rate:g} %: of 8 faults seen by 16 trained Gaussians with as many false rows", mean[2]


def repeats(ours: Living) -> Found:
    rows = np.arange(63_000)
    burst = (rows >= 3000) & (rows % 150 < 40)
    for name in ("8 deviations", "noise × 4 of one sensor"):
        x = np.random.default_rng(3).normal(size=(len(rows), 4))
        if name == "8 deviations":
            x[burst] += 8.0
        else:
            x[burst, 0] *= 4.0
        seen = ours.alarms(x)[3000:].reshape(-1, 150)[:, :40].mean(axis=1)
        yield f"{name} in 40 of 150 rows: part of bursts 7 to 12 in alarm", seen[6:12].mean()
        yield f"{name} in 40 of 150 rows: of bursts 301 to 400", seen[300:].mean()


def starts(ours: Living) -> Found:
    for after in (0, 5, 10, 20, 50):
        parts = []
        for seed in range(20):
            rng = np.random.default_rng([7, seed])
            x, first = machine(rng, np.repeat(rng.integers(3, size=32), 200)), 6000 + after
            x[first : first + 60, 1] += 8.0
            parts.append(ours.alarms(x)[first : first + 60].mean())
        yield f"a fault of 60 rows, {after} rows after a run begins: part in alarm", np.mean(parts)


def put_in(ours: Living) -> Found:
    for source, every in (("raw streams", raw_streams), ("held plants", held)):
        for rate in (0.01, 0.001):
            told = []
            for stream in every(0):
                if judged_faults(stream):
                    false, seen = own(stream, ours.alarms(stream.rows, rate))
                    told.append([seen.events, seen.rows, false / rate])
            found = np.array(told)
            yield f"{source}, {100 * rate:g} %: events", found[:, 0].mean()
            yield f"{source}, {100 * rate:g} %: faulty rows", found[:, 1].mean()
            yield f"{source}, {100 * rate:g} %: false rows / asked, median", np.median(found[:, 2])
            yield f"{source}, {100 * rate:g} %: false rows / asked, 90 % below", np.quantile(found[:, 2], 0.9)


def quiet(ours: Living) -> Found:
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
        parts = [ours.alarms(x, rate)[2000:].mean() / rate for x in lives]
        yield f"normal throughout, {100 * rate:g} %: false rows / asked, least", min(parts)
        yield f"normal throughout, {100 * rate:g} %: most", max(parts)


def changes(ours: Living) -> Found:
    for name, shortest, longest in (("lasting 200 to 900 rows", 200, 900), ("lasting 30 to 60 rows", 30, 60)):
        parts = []
        for seed in range(4):
            rng = np.random.default_rng([5, seed])
            state = runs(rng, 16_000, 4, shortest, longest)
            state[(state == 3) & (np.arange(16_000) < 6000)] = 0  # comes first at row 6,000
            parts.append(ours.alarms(machine(rng, state))[2000:].mean() / 0.01)
        yield f"a fourth state comes at row 6,000, {name}: false rows / asked", np.mean(parts)


MEASURED: tuple[Callable[[Living], Found], ...] = (pumps, repeats, starts, put_in, quiet, changes)


def work(task: Mapping[str, Any], shared: Any) -> list[dict[str, Any]]:
    with one_thread:
        found = MEASURED[task["measure"]](Living(task["life"]))
        return [{"life": task["life"], "what": what, "value": round(float(value), 4)} for what, value in found]


def table(rows: Rows) -> str:
    value = {(row["life"], row["what"]): float(row["value"]) for row in rows}
    what = page.names(rows, "what")
    made = [[each, *(page.number(value[life, each], 2) for life in LIVES)] for each in what]
    return page.markdown(["", *(f'"{life}"' for life in LIVES)], made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only the table of what was measured")
    if not parser.parse_args().show:
        tasks = [{"life": life, "measure": i} for i in range(len(MEASURED)) for life in LIVES]
        with Workers(work, jobs=2, title="lives") as workers:
            save(PATH, [row for rows in workers.run(tasks) for row in rows])
    page.place({"alarms-lives": table(load(PATH))})


if __name__ == "__main__":
    main()
