"""Could the monitor, rule gmm, keep its numbers in int16?  What it sees if its means and roots are rounded after every row.

    python -m benchmarks.host.alarms.whole_numbers          # docs/data/alarms-whole.csv, some minutes

A sensor's numbers are rounded to multiples of its range / 2^15, and for comparison of its range / 2^23; the range is twice the
largest value of the first 2,000 rows.  Everything else stays in float32.  Public plants with the seed 0, the first of each kind.
Columns: as of ``measure.measured``.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from multiprocessing import Pool
from typing import Any

import numpy as np

from benchmarks.host.alarms.measure import at_equal_rates, own
from benchmarks.host.alarms.plants import plants
from benchmarks.host.alarms.stream import Stream
from benchmarks.tables import DATA, save
from pykernel.host.model import HostModel
from pykernel.spec.defaults import completed
from pykernel.spec.model import Spec, make_spec

BITS = (0, 15, 23)
"""Bits of a rounded number without its sign; 0: float32 as it is."""
ROWS = 20_000


def monitor(dim: int) -> Spec:
    return make_spec(dict(completed({"name": "watch", "input": {"dim": dim}, "novelty": {}})))


def rounding(bits: int, rows: np.ndarray) -> dict[str, np.ndarray]:
    """The grain of each number of the fields that are rounded."""
    dim = rows.shape[1]
    grain = 2 * np.abs(rows[:2000]).max(axis=0) / 2.0**bits + 1e-30
    packed = np.concatenate([grain[i:] for i in range(dim)])
    twice = np.tile(grain, 2)
    joint = np.concatenate([twice[i:] for i in range(2 * dim)])
    return {"means": grain, "middle": grain, "roots": packed, "joint": joint}


def judged(stream: Stream, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Levels, and which rows are in alarm, (T,)."""
    rows = stream.rows[:ROWS]
    model = HostModel(monitor(rows.shape[1]))
    if not bits:
        _, states, statuses = model.prequential_alarms(rows)
    else:
        grains = rounding(bits, rows)
        states, statuses = np.zeros((len(rows), 3), np.float32), np.zeros(len(rows), np.int32)
        for t in range(len(rows)):
            _, states[t : t + 1], statuses[t : t + 1] = model.prequential_alarms(rows[t : t + 1])
            for name, grain in grains.items():
                field = model.memory.field(name)
                field[...] = np.rint(field / grain) * grain
    return states[:, 0].astype(float), np.isin(statuses, model.spec.program.alarms)


def line(job: tuple[Stream, int]) -> dict[str, Any]:
    stream, bits = job
    levels, alarms = judged(stream, bits)
    cut = stream._replace(rows=stream.rows[:ROWS], faults=tuple(f for f in stream.faults if f.last <= ROWS))
    false, seen = own(cut, alarms)
    one, tenth = at_equal_rates(cut, levels, 0.01), at_equal_rates(cut, levels, 0.001)
    told = {"events_1": one.events, "events_01": tenth.events, "rows_1": one.rows}
    told |= {"own_false": false, "own_events": seen.events}
    return {"bits": bits, "kind": stream.kind, "stream": stream.name, **{k: round(v, 4) for k, v in told.items()}}


def jobs() -> Iterator[tuple[Stream, int]]:
    kinds = set()
    for stream in plants(0):
        if stream.kind not in kinds and any(fault.last <= ROWS for fault in stream.faults):
            kinds.add(stream.kind)
            yield from ((stream, bits) for bits in BITS)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with Pool(2) as pool:
        rows = []
        for row in pool.imap(line, jobs()):
            rows.append(row)
            print(*row.values(), flush=True)
    save(DATA / "alarms-whole.csv", rows)
    for bits in BITS:
        mine = [row for row in rows if row["bits"] == bits]
        print(bits, {key: round(float(np.mean([row[key] for row in mine])), 3) for key in mine[0] if "_" in key})


if __name__ == "__main__":
    main()
