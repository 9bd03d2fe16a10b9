"""Monitors of several devices merged into one, on public data that are split by device and by regime; writes docs/data/merged-monitors.csv.

    python -m benchmarks.host.merged_monitors --air FOLDER --skab SKAB/data    # and seglearn's set, if the package is installed
    python -m benchmarks.host.merged_monitors --show

None of the data is shipped here, and none of it has chosen a constant: sets, splits and measures were named before they were read.  Sets that
are not given keep their lines.

SKAB     github.com/waico/SKAB: a water circuit with eight sensors, 34 experiments with labelled faults.  Experiment i belongs to device
         i mod 8, which learns the sound rows of its first third; judged on the other two thirds of all experiments.
air      Beijing Multi-Site Air Quality (UCI, CC BY 4.0), as for merging.py, and PM2.5 as a tenth sensor.  Station k has learned the k-th
         twelfth of the first two years; judged on the third year of all stations, with faults that are put in (alarms/raw.py).
watch    in the package seglearn: six channels of a watch, seven exercises.  Device k has learned exercise k of seven people; judged on
         all exercises of three others, one after the other, with faults that are put in.

Each stream is judged from its beginning, with a copy of the state, which goes on learning, by the monitor's own threshold for 1 % of
the rows.  "anew": each 600 rows are judged from a copy of the state: a new device's first rows, with one fault (SKAB's experiments are about as
short).  components: of the devices and of the merged monitor.

    alone       the median device
    one         one monitor that learned all rows of all devices, one device after the other (SKAB: one experiment after the other)
    merged      one state

false: part of the rows without faults in alarm; events: part of the faults with a row in alarm; rows: part of the faulty rows in alarm.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.alarms.measure import GUARD
from benchmarks.host.alarms.raw import EVERY, FAULTS, put_in
from benchmarks.host.alarms.rivals import settling
from benchmarks.host.alarms.stream import Fault, Stream
from benchmarks.host.alarms.theirs import skab
from benchmarks.host.merging import complete
from benchmarks.tables import DATA, DOCS, Rows, load, markdown, merged, publish, save
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.parallel import one_thread
from pykernel.spec.model import Spec, make_spec
from pykernel.training.merging import merge

PATH, PAGE = DATA / "merged-monitors.csv", DOCS / "merging.md"
DEVICES = 8
COMPONENTS = ((4, 4), (4, 16), (16, 16))
WHO, MEASURES = ("alone", "one", "merged"), ("new_false", "new_events", "false", "events", "rows")


@dataclass(frozen=True)
class Fleet:
    """devices: the rows that each has learned.  together: all of them, as one monitor learns them.  streams: what judges."""

    name: str
    devices: Sequence[np.ndarray]
    together: np.ndarray
    streams: Sequence[Stream]


def fleet_of_circuits(folder: str) -> Fleet:
    streams = list(skab(folder))
    firsts = [stream.rows[: settling(len(stream.rows))] for stream in streams]
    sound = [rows[~stream.faulty[: len(rows)]] for stream, rows in zip(streams, firsts, strict=True)]
    devices = [np.concatenate(sound[k::DEVICES]) for k in range(DEVICES)]
    return Fleet("SKAB", devices, np.concatenate(sound), [later(stream) for stream in streams])


def later(stream: Stream) -> Stream:
    """What comes after the first third, and the faults that begin there."""
    begin = settling(len(stream.rows))
    faults = [fault._replace(first=fault.first - begin, last=fault.last - begin) for fault in stream.faults]
    return stream._replace(rows=stream.rows[begin:], faults=tuple(fault for fault in faults if fault.first >= 0))


def fleet_of_stations(folder: Path) -> Fleet:
    stations = [np.column_stack(complete(path)) for path in sorted(folder.glob("PRSA_Data_*.csv"))]
    year = 365 * 24
    span = 2 * year // len(stations)
    devices = [known(rows[k * span : (k + 1) * span]) for k, rows in enumerate(stations)]
    streams = [faulty(f"station {k}", known(rows[2 * year : 3 * year]), k) for k, rows in enumerate(stations)]
    return Fleet("air", devices, np.concatenate(devices), streams)


def known(rows: np.ndarray) -> np.ndarray:
    return rows[~np.isnan(rows).any(axis=1)].astype(np.float32)


def fleet_of_exercises() -> Fleet:
    from seglearn.datasets import load_watch  # type: ignore[import-not-found]

    data = load_watch()
    signals = [
        (int(label), int(person), np.asarray(signal, np.float32))
        for signal, label, person in zip(data["X"], data["y"], data["subject"], strict=True)
    ]
    people = sorted({person for _, person, _ in signals})
    exercises = sorted({label for label, _, _ in signals})
    devices = [
        np.concatenate([x for label, person, x in signals if label == each and person in people[:7]])
        for each in exercises
    ]
    streams = []
    for number, each in enumerate(people[7:]):
        own = sorted(((label, k) for k, (label, person, _) in enumerate(signals) if person == each))
        streams.append(faulty(f"person {each}", np.concatenate([signals[k][2] for _, k in own]), number))
    return Fleet("watch", devices, np.concatenate(devices), streams)


def faulty(name: str, rows: np.ndarray, seed: int) -> Stream:
    """Faults of one sensor each, in turn, one in each EVERY rows."""
    x, rng = rows.astype(float), np.random.default_rng(seed)
    deviation, faults = x.std(axis=0), list[Fault | None]()
    for i in range(len(x) // EVERY):
        start = i * EVERY + int(rng.integers(EVERY // 4, EVERY // 2))
        faults.append(put_in(x, deviation, FAULTS[(seed + i) % len(FAULTS)], start, rng.permutation(x.shape[1])))
    return Stream(name, "put in", x.astype(np.float32), tuple(fault for fault in faults if fault is not None))


# -------------------------------------------------------------------------------------------------------------- judged


def spec_of(dim: int, components: int) -> Spec:
    learning = {"rule": "gmm", "components": components}
    return make_spec({"name": "fleet", "input": {"dim": dim}, "novelty": {}, "learning": learning})


def judged(spec: Spec, state: bytes, streams: Sequence[Stream]) -> tuple[float, float, float]:
    """False rows, events and faulty rows in alarm, parts over all streams."""
    counts = np.zeros((3, 2))
    for stream in streams:
        model = HostModel(spec)
        snapshot.load(model, state)
        alarms = np.isin(model.prequential_alarms(stream.rows)[2], spec.program.alarms)
        free = np.ones(len(alarms), bool)
        for fault in stream.faults:
            free[fault.first : fault.last + GUARD] = False
            counts[1] += alarms[fault.first : fault.last].any(), 1
        counts[0] += alarms[free].sum(), free.sum()
        counts[2] += alarms[stream.faulty].sum(), stream.faulty.sum()
    false, events, rows = counts[:, 0] / counts[:, 1]
    return float(false), float(events), float(rows)


def pieces(streams: Sequence[Stream]) -> list[Stream]:
    """Each EVERY rows, with their fault."""
    found = []
    for stream in streams:
        for fault in stream.faults:
            begin = fault.first // EVERY * EVERY
            own = fault._replace(first=fault.first - begin, last=fault.last - begin)
            found.append(stream._replace(rows=stream.rows[begin : begin + EVERY], faults=(own,)))
    return found


def measured(spec: Spec, state: bytes, fleet: Fleet) -> dict[str, float]:
    new = judged(spec, state, fleet.streams if fleet.name == "SKAB" else pieces(fleet.streams))
    return dict(zip(MEASURES, (*new[:2], *judged(spec, state, fleet.streams)), strict=True))


def learned(spec: Spec, rows: np.ndarray) -> bytes:
    model = HostModel(spec)
    model.update(rows)
    return snapshot.save(model)


def measure(fleet: Fleet, own: int, into: int) -> dict[str, Any]:
    dim = fleet.together.shape[1]
    spec, wider = spec_of(dim, own), spec_of(dim, into)
    states = [learned(spec, rows) for rows in fleet.devices]
    found = merge(spec, {f"device {k}": state for k, state in enumerate(states)}, wider)
    alone = [measured(spec, state, fleet) for state in states]
    told = {
        "alone": {name: float(np.median([each[name] for each in alone])) for name in MEASURES},
        "one": measured(wider, learned(wider, fleet.together), fleet),
        "merged": measured(wider, found.data, fleet),
    }
    return {
        "set": fleet.name,
        "components": str(own) if own == into else f"{own}, {into}",
        "devices": len(states),
        "rows_each": int(np.median([len(rows) for rows in fleet.devices])),
        "regimes": sum(each.regimes or 0 for each in found.devices),
        "kept": found.regimes,
        "bits_lost": round(float(found.left or 0.0), 2),
        "faults": sum(len(stream.faults) for stream in fleet.streams),
    } | {f"{name}_{who}": f"{told[who][name]:.4f}" for name in MEASURES for who in WHO}


def table_of(rows: Rows) -> str:
    heads = ["set", "components", "regimes, kept", "bits lost"]
    for name in ("anew: false", "events", "goes on: false", "events", "rows"):
        heads += [f"{name}, {WHO[0]}", *WHO[1:]]
    lines = []
    for row in rows:
        line = [row["set"], row["components"], f"{row['regimes']}, {row['kept']}", row["bits_lost"]]
        for name in MEASURES:
            digits = 4 if name.endswith("false") else 2
            line += [f"{float(row[f'{name}_{who}']):.{digits}f}" for who in WHO]
        lines.append(line)
    return markdown(heads, lines)


def fleets(air: Path | None, circuits: str | None) -> Iterator[Fleet]:
    if circuits:
        yield fleet_of_circuits(circuits)
    if air:
        yield fleet_of_stations(air)
    if importlib.util.find_spec("seglearn"):
        yield fleet_of_exercises()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--air", type=Path, metavar="FOLDER")
    parser.add_argument("--skab", metavar="FOLDER")
    parser.add_argument("--show", action="store_true", help="only the table of what was measured")
    given = parser.parse_args()
    if not given.show:
        for fleet in fleets(given.air, given.skab):
            rows = []
            for own, into in COMPONENTS:
                with one_thread:
                    rows.append(measure(fleet, own, into))
                print(rows[-1], file=sys.stderr, flush=True)
            save(PATH, merged(PATH, rows, "set", [fleet.name], ["SKAB", "air", "watch"]))
    publish({"monitors": table_of(load(PATH))}, PAGE)


if __name__ == "__main__":
    main()
