"""A spec that names no rule, and what one changed setting costs it: docs/data/alarms-ours.csv, two tables in docs/novelty.md.

    python -m benchmarks.host.alarms.ours
    python -m benchmarks.host.alarms.ours --show

Streams: the public plants of the first seed that judges detectors, with faults and without.  Columns: ``events_1`` and ``events_01``, the
part of the faults seen with the threshold that 1 %, and 0.1 %, of a stream's own rows without faults are above; ``delay``, rows
until the first alarm at 1 %; ``false``, the rows of streams without faults in alarm with the monitor's own threshold, in parts of
those that were wanted; ``own``, the part of the faults seen with it; ``bytes``, of the median stream.  All are means over kinds of
plants, "false" is the median stream's.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.host.alarms import page
from benchmarks.host.alarms.measure import at_equal_rates, judged_faults, own
from benchmarks.host.alarms.rivals import Bare, settling
from benchmarks.host.alarms.run import JUDGED_ON, streams
from benchmarks.tables import DATA, Rows, load, save
from pykernel.parallel import Workers, one_thread
from pykernel.spec.defaults import completed
from pykernel.spec.model import make_spec
from pykernel.tuning.costs import memory_bytes

PATH = DATA / "alarms-ours.csv"
WANTED = 0.01
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "default": {},
    "components 2": {"learning": {"components": 2}},
    "components 8": {"learning": {"components": 8}},
    "components 16": {"learning": {"components": 16}},
    "false_alarm_rate 0.001": {"novelty": {"false_alarm_rate": 0.001}},
    "false_alarm_rate 0.05": {"novelty": {"false_alarm_rate": 0.05}},
    "smoothing 1": {"novelty": {"smoothing": 1.0}},
    "smoothing 0.2": {"novelty": {"smoothing": 0.2}},
    "relearn_after 20": {"novelty": {"relearn_after": 20}},
    "relearn_after 400": {"novelty": {"relearn_after": 400}},
    "warmup 200": {"novelty": {"warmup": 200}},
    "warmup 1500": {"novelty": {"warmup": 1500}},
    "commissioning 500": {"novelty": {"commissioning": 500}},
    "commissioning 4000": {"novelty": {"commissioning": 4000}},
    'life "changing"': {"novelty": {"life": "changing"}},
    'life "fixed"': {"novelty": {"life": "fixed"}},
}
"""One setting changed at a time.  No warm-up is longer than a stream's rows that judge nobody."""


DIMS, COMPONENTS = (1, 3, 6, 12, 24), (2, 4, 8, 16)
"""Of which bytes are told."""


class Changed(Bare):
    """A spec without a rule but for some keys."""

    def __init__(self, variant: str) -> None:
        super().__init__()
        self.changes = VARIANTS[variant]

    def content(self, dim: int) -> dict[str, Any]:
        """All that the default has, since a number of components needs the rule's name."""
        made = dict(completed(super().content(dim)))
        for section, keys in self.changes.items():
            made[section] = {**made[section], **keys}
        return made

    @property
    def wanted(self) -> float:
        return float(self.changes.get("novelty", {}).get("false_alarm_rate", WANTED))


def work(task: Mapping[str, Any], shared: Any) -> list[dict[str, Any]]:
    """Lines of one variant and seed, a line for each stream."""
    name, seed = task["variant"], task["seed"]
    detector, found = Changed(name), []
    with one_thread:
        for faulty, sound in zip(streams("plants", seed), streams("fault-free plants", seed), strict=True):
            levels, (alarms,) = detector.judged(faulty.rows, detector.wanted)
            _, (quiet,) = detector.judged(sound.rows, detector.wanted)
            line = {
                "variant": name,
                "kind": faulty.kind,
                "stream": faulty.name,
                "seed": seed,
                "wanted": detector.wanted,
            }
            if judged_faults(faulty):
                one, tenth = (at_equal_rates(faulty, levels, rate) for rate in (0.01, 0.001))
                told = [one.events, tenth.events, one.delay, own(faulty, alarms)[1].events]
                line |= dict(zip(("events_1", "events_01", "delay", "own"), np.round(told, 4).tolist(), strict=True))
                line["false"] = round(float(quiet[settling(len(quiet)) :].mean()), 6)
                spec = detector.spec(faulty.rows.shape[1])
                found.append(line | {"bytes": memory_bytes(spec)["state_bytes"]})
    return found


def table(rows: Rows) -> str:
    """A line for each variant."""
    kinds, made = page.names(rows, "kind"), []
    for name in VARIANTS:
        own_rows = [row for row in rows if row["variant"] == name]
        line = [name]
        for column, digits in (("events_1", 3), ("events_01", 3), ("own", 3), ("delay", 1)):
            means = [page.mean([row for row in own_rows if row["kind"] == kind], column) for kind in kinds]
            line.append(page.number(float(np.mean(means)), digits))
        parts = [float(row["false"]) / float(row["wanted"]) for row in own_rows]
        made.append([*line, f"{np.median(parts):.2f}", f"{int(np.median([int(row['bytes']) for row in own_rows])):,}"])
    heads = ("seen at 1 %", "at 0.1 %", "with its own threshold", "delay", "false rows / wanted", "bytes")
    return page.markdown(["changed", *heads], made)


def sizes() -> str:
    """Bytes of RAM in float32, by sensors and components."""
    made = []
    for dim in DIMS:
        contents = [
            {"name": "m", "input": {"dim": dim}, "learning": {"rule": "gmm", "components": k}} for k in COMPONENTS
        ]
        made.append([f"{dim}", *(f"{memory_bytes(make_spec(each))['ram_bytes']:,}" for each in contents)])
    return page.markdown(["sensors", *(f"{k} components" for k in COMPONENTS)], made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only the table of what was measured")
    if not parser.parse_args().show:
        tasks = [{"variant": name, "seed": JUDGED_ON[0]} for name in VARIANTS]
        with Workers(work, jobs=2, title="alarms") as workers:
            save(PATH, [row for rows in workers.run(tasks) for row in rows])
    page.place({"alarms-ours": table(load(PATH)), "alarms-sizes": sizes()})


if __name__ == "__main__":
    main()
