"""What false_alarm_rate promises: the part of the rows in alarm of machines without faults.

    python -m benchmarks.host.alarms.rates          # docs/data/alarm-rates.csv, a minute
    python -m benchmarks.host.alarms.rates --show

The monitor is that of a bare [novelty], the streams are those of ``plants.fault_free``.  A line of alarm-rates.csv: the rows after the warm-up, and those of them in alarm.

The promise (``kept``): a monitor's median part in alarm is within 30 % of what it was asked for, and 90 % of the streams stay below
twice that.  A stream tells by itself if it has at least 200 / rate rows.  Shorter ones are put together, in their order.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.host.alarms.measure import pooled
from benchmarks.host.alarms.plants import fault_free
from benchmarks.host.alarms.stream import Stream
from benchmarks.tables import DATA, load, markdown, save
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

RATES = (0.001, 0.01, 0.05)
SEEDS = (0, 1, 2)


class Kept(NamedTuple):
    """How a rate was kept, in parts of what was asked for."""

    median: float
    most: float  # what 90 % of the streams stay below
    worst: float
    streams: int  # each one stream, or several short ones


def monitor(dim: int, rate: float) -> Spec:
    return make_spec({"name": "monitor", "input": {"dim": dim}, "novelty": {"false_alarm_rate": rate}})


def in_alarm(spec: Spec, stream: Stream) -> tuple[int, int]:
    """After the warm-up: the rows in alarm, and all rows."""
    statuses = HostModel(spec).update(stream.rows.astype(float))[spec.novelty.warmup :]
    return int(np.isin(statuses, [int(status) for status in spec.program.alarms]).sum()), len(statuses)


def kept(counts: Iterable[tuple[int, int]], rate: float) -> Kept:
    named = (("", alarms, rows) for alarms, rows in counts)
    parts = np.array([alarms / rows for _, alarms, rows in pooled(named, rate)]) / rate
    return Kept(float(np.median(parts)), float(np.quantile(parts, 0.9)), float(parts.max()), len(parts))


def table() -> str:
    found = load(DATA / "alarm-rates.csv")
    lines = []
    for rate in RATES:
        rows = [row for row in found if float(row["rate"]) == rate]
        one = kept([(int(row["alarms"]), int(row["rows"])) for row in rows], rate)
        parts = (f"{100 * rate * part:.3g} %" for part in (one.median, one.most, one.worst))
        lines.append([f"{100 * rate:g} %", *parts, str(one.streams)])
    return markdown(["asked for", "median", "90 % of the streams below", "worst", "streams"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true")
    if not parser.parse_args().show:
        rows = []
        for seed in SEEDS:
            for stream in fault_free(seed):
                for rate in RATES:
                    alarms, every = in_alarm(monitor(stream.rows.shape[1], rate), stream)
                    head = {"rate": rate, "seed": seed, "stream": stream.name}
                    rows.append(head | {"alarms": alarms, "rows": every})
        save(DATA / "alarm-rates.csv", rows)
    print(table())


if __name__ == "__main__":
    main()
