"""Detectors of benchmarks/host/alarms/rivals.py on simulated plants and raw streams: which faults they see.

    python -m benchmarks.host.alarms.run                    # docs/data/alarms.csv, alarms-rates.csv, alarms-settings.csv
    python -m benchmarks.host.alarms.run --held             # alarms-held.csv, alarms-held-rates.csv: held plants
    python -m benchmarks.host.alarms.run --only "max |z|"   # the others keep their rows
    python -m benchmarks.host.alarms.run --show             # tables of what was measured, in docs/novelty.md, too

A detector's setting is the one that sees most faults of the public plants with the seed CHOSEN_ON, the mean over kinds of
plants and the three rates of false rows.  The public plants of the seeds JUDGED_ON judge it, and
the raw streams of raw.py, which nothing is chosen on.  Held plants have
these settings, too.  Ours have one setting each, the default.  Slow detectors see one seed, and the
first 40,000 (half-space trees) or 12,000 rows (robust random cut forest) of the first stream of each kind.

Columns of alarms.csv: ``measure.measured``.  events_1, rows_1, delay_1: part of the faults seen, part of the faulty rows in
alarm, rows until the first alarm, with the threshold that 1 % of the stream's own rows without faults are above; _05: 0.5 %;
_01: 0.1 %, where long faults are not seen by chance.
own_: with a detector's own alarms, where it is asked for 1 %; rivals have ``rivals.common_alarms``.
alarms-rates.csv: alarms in streams without faults.  "chance": levels at random.  It shows what long faults give away.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.alarms import page
from benchmarks.host.alarms.held_second import held, held_sound
from benchmarks.host.alarms.measure import RATES, at_equal_rates, judged_faults, measured, rates
from benchmarks.host.alarms.plants import fault_free, plants
from benchmarks.host.alarms.raw import raw_streams
from benchmarks.host.alarms.rivals import DETECTORS, named, of, smoothed, written
from benchmarks.host.alarms.stream import Stream
from benchmarks.tables import DATA, Rows, load, merged, save
from pykernel.parallel import Workers, one_thread

CHOSEN_ON, JUDGED_ON = 100, (0, 1)
TRIED = ("events_1", "events_05", "events_01")
SETTINGS = DATA / "alarms-settings.csv"


# ----------------------------------------------------------------------------------------------------------- streams


SOURCES: dict[str, Callable[[int], Iterator[Stream]]] = {
    "plants": plants,
    "fault-free plants": fault_free,
    "held": held,
    "fault-free held": held_sound,
    "raw": raw_streams,
}


@functools.lru_cache(maxsize=2)
def streams(source: str, seed: int) -> tuple[Stream, ...]:
    return tuple(SOURCES[source](seed))


def seen_by(name: str, source: str, seed: int) -> Iterator[Stream]:
    """A slow detector sees the first rows of one stream of each kind."""
    kinds, most = set(), named(name).slow
    for stream in streams(source, seed):
        if not most:
            yield stream
        elif stream.kind not in kinds:
            kinds.add(stream.kind)
            whole = tuple(fault for fault in stream.faults if fault.last <= most)
            yield stream._replace(rows=stream.rows[:most], faults=whole)


# ------------------------------------------------------------------------------------------------------------- tasks


def tried(name: str, number: int) -> list[dict[str, Any]]:
    """A setting of a detector's grid, with every smoothing, on the plants that settings are chosen on."""
    kind = named(name)
    made = [kind(smoothing, **kind.grid[number]) for smoothing in kind.smoothings]
    found: dict[str, list[list[list[float]]]] = {}
    for stream in seen_by(name, "plants", CHOSEN_ON):
        if judged_faults(stream):
            raw = made[0].raw(stream.rows)
            levels = [smoothed(raw, one.smoothing) for one in made]
            each = [[at_equal_rates(stream, level, rate).events for rate in RATES] for level in levels]
            found.setdefault(stream.kind, []).append(each)
    parts = np.mean([np.mean(each, axis=0) for each in found.values()], axis=0)  # (smoothings, rates)
    return [
        {"detector": name, "setting": written(one), **dict(zip(TRIED, part.round(4).tolist(), strict=True))}
        for one, part in zip(made, parts, strict=True)
    ]


def lines(name: str, setting: str, source: str, seed: int) -> list[dict[str, Any]]:
    """Lines of docs/data/alarms.csv, or alarms-rates.csv for streams without faults."""
    found: list[dict[str, Any]] = []
    for stream in seen_by(name, source, seed):
        detector = of(name, setting)
        head = {"detector": name, "setting": setting, "kind": stream.kind, "stream": stream.name, "seed": seed}
        if source.startswith("fault-free"):
            found += [head | line for line in rates(detector, stream)]
        elif judged_faults(stream):
            found.append(head | measured(detector, stream))
    return found


def work(task: Mapping[str, Any], shared: Any) -> list[dict[str, Any]]:
    with one_thread:
        if "number" in task:
            return tried(task["name"], task["number"])
        return lines(**task)


# --------------------------------------------------------------------------------------------------------------- run


def chosen(rows: Rows) -> dict[str, str]:
    """Detector -> its setting."""
    return {row["detector"]: row["setting"] for row in rows if row["chosen"] == "yes"}


def choose(workers: Workers, names: Sequence[str]) -> dict[str, str]:
    """Try all settings of some detectors; writes docs/data/alarms-settings.csv."""
    tasks = [{"name": name, "number": i} for name in names for i in range(len(named(name).grid))]
    found = [row for rows in workers.run(tasks) for row in rows]
    for name in names:
        own = [row for row in found if row["detector"] == name]
        best = max(own, key=lambda row: sum(row[rate] for rate in TRIED))
        for row in own:
            row["chosen"] = "yes" if row is best else "no"
    return chosen(save(SETTINGS, merged(SETTINGS, found, "detector", names, list(DETECTORS))))


def judge(
    workers: Workers, names: Sequence[str], settings: Mapping[str, str], sources: Sequence[str], to: Path
) -> None:
    """Run the chosen detectors on some sources of streams; writes their lines to a file."""
    tasks = [
        {"name": name, "setting": settings[name], "source": source, "seed": seed}
        for source in sources
        for seed in JUDGED_ON
        for name in names
        if not (named(name).slow and (seed != JUDGED_ON[0] or source.startswith("fault-free")))
    ]
    found = [row for rows in workers.run(tasks) for row in rows]
    save(to, merged(to, found, "detector", names, list(DETECTORS)))


def here(names: Sequence[str]) -> list[str]:
    """Those whose packages are installed; for the others a sentence on standard error."""
    for name in names:
        if why := named(name).why_absent():
            print(f"{name}: {why}", file=sys.stderr)
    return [name for name in names if not named(name).why_absent()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", action="store_true", help="held plants; run this once")
    parser.add_argument("--show", action="store_true", help="only the tables of what was measured")
    parser.add_argument("--only", nargs="+", metavar="DETECTOR", choices=DETECTORS, default=list(DETECTORS))
    options = parser.parse_args()
    which = "-held" if options.held else ""
    if not options.show:
        names = here(options.only)
        sources, sound = (("held",), "fault-free held") if options.held else (("plants", "raw"), "fault-free plants")
        with Workers(work, jobs=2, title="alarms") as workers:
            settings = chosen(load(SETTINGS)) if options.held else choose(workers, names)
            judge(workers, names, settings, sources, DATA / f"alarms{which}.csv")
            judge(workers, names, settings, (sound,), DATA / f"alarms{which}-rates.csv")
    page.show(which)


if __name__ == "__main__":
    main()
