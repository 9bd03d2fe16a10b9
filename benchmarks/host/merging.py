"""States of several devices merged into one, on public data that are split by site and by person; writes docs/data/merging.csv.

    python -m benchmarks.host.merging --air FOLDER --updrs FILE    # and seglearn's set, if the package is installed
    python -m benchmarks.host.merging --show

None of the data is shipped here.  The way of merging was chosen with a look at these sets.  Sets that are not given keep their lines.

air      Beijing Multi-Site Air Quality (UCI, CC BY 4.0): the folder of 12 CSV files, one for each station, of hours of four years.
         PM2.5 from PM10, SO2, NO2, CO, O3, temperature, pressure, dew point and wind; rows that are complete.  Devices learn rows of
         the first two years, and are judged on every 25th row of the third.  "together": each station has every 20th row;
         "apart": station k has 600 rows of the k-th twelfth of the time; "96 devices": each station is eight, by turns of rows.
updrs    Parkinsons Telemonitoring (UCI, CC BY 4.0), parkinsons_updrs.data: 42 people; the motor score from 16 measures of the voice,
         age, sex and day.  Each person is a device and learns three rows of four; judged on the fourth rows of all people.
watch    in the package seglearn (pip install seglearn; --no-deps is enough), BSD-3: seven exercises of ten people.  The
         exercise from means and deviations of six channels in windows of 100 samples.  Seven people are devices; judged on two
         others, who have taught nobody; "later" is the tenth.

Models: "32 vectors", what a spec with [reduction] n_max = 32 and no rule gets; "waves", what one without gets; and for numbers rff-rls
with 64 features, scaled by the first device's rows.  An error is the root mean square error in parts of the labels' deviation, or the part of wrong classes.

    alone           the median device
    best            the best device, as nobody could know
    mean            the mean of all devices' answers: the memory of all devices
    merged          one state
    one model       the same model, which learned all rows of all devices, by turns
    trained         trained vectors (``TrainedKernelRegressor``, ``TrainedKernelClassifier``, 32) on all rows: frozen
    alone, later    the median device, after it has learned 168 rows more of one place or person, on what comes after
    merged, later   the same from the merged state
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, DOCS, Rows, load, markdown, merged, publish, save
from pykernel import TrainedKernelClassifier, TrainedKernelRegressor, merge
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

PATH, PAGE = DATA / "merging.csv", DOCS / "merging.md"
WEEK, ROOM, FEATURES = 168, 32, 64
ERRORS = ("alone", "best", "mean", "merged", "one model", "trained", "alone, later", "merged, later")
AIR = ("PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "WSPM")

Table = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Fleet:
    """devices: the rows that each has learned.  test: rows that judge.  later: rows of one place that nobody has learned."""

    name: str
    devices: Sequence[Table]
    test: Table
    later: Table
    classes: int = 0


# ---------------------------------------------------------------------------------------------------------------- data


def complete(path: Path) -> Table:
    """Rows without a gap of a station."""
    rows = []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cells = [row[name].strip() for name in (*AIR, "PM2.5")]
            rows.append([float("nan") if cell in ("NA", "") else float(cell) for cell in cells])
    found = np.array(rows)
    found[np.isnan(found).any(axis=1)] = np.nan
    return found[:, :-1], found[:, -1]


def known(table: Table, rows: slice | np.ndarray) -> Table:
    x, y = table[0][rows], table[1][rows]
    there = ~np.isnan(y)
    return x[there], y[there]


def air(folder: Path) -> Iterator[Fleet]:
    stations = [complete(path) for path in sorted(folder.glob("PRSA_Data_*.csv"))]
    year = 365 * 24
    test = joined([known(each, slice(2 * year, 3 * year, 25)) for each in stations])
    later = known(stations[0], slice(2 * year, 2 * year + 3 * WEEK))
    span = 2 * year // len(stations)
    yield Fleet("air, together", [known(each, slice(k, 2 * year, 20)) for k, each in enumerate(stations)], test, later)
    apart = [cut(known(each, slice(k * span, (k + 1) * span)), 600) for k, each in enumerate(stations)]
    yield Fleet("air, apart", apart, test, later)
    yield Fleet("air, 2 devices apart", [apart[0], apart[len(apart) // 2]], test, later)
    many = [known(each, slice(turn * 7, 2 * year, 56)) for each in stations for turn in range(8)]
    yield Fleet("air, 96 devices", many, test, later)


def stations_of(folder: Path, rows: slice) -> list[Table]:
    return [known(complete(path), rows) for path in sorted(folder.glob("PRSA_Data_*.csv"))]


def tables_of_people(path: Path) -> list[Table]:
    """Voices and motor scores of each person."""
    table = np.loadtxt(path, delimiter="," if "," in path.read_text()[:200] else None, skiprows=1)
    names = [1, 2, 3, *range(6, table.shape[1])]
    people = [table[table[:, 0] == person] for person in np.unique(table[:, 0])]
    return [(rows[:, names], rows[:, 4]) for rows in people]


def updrs(path: Path) -> Iterator[Fleet]:
    people = tables_of_people(path)
    fourth = [np.arange(len(y)) % 4 == 3 for _, y in people]
    devices = [(x[~mark], y[~mark]) for (x, y), mark in zip(people, fourth, strict=True)]
    judged = joined([(x[mark], y[mark]) for (x, y), mark in zip(people, fourth, strict=True)])
    yield Fleet("updrs", devices[1:], judged, devices[0])


def tables_of_watch() -> list[Table]:
    """Windows and exercises of each person."""
    from seglearn.datasets import load_watch  # type: ignore[import-not-found]

    data = load_watch()
    people: dict[int, list[tuple[np.ndarray, int]]] = {}
    for signal, label, person in zip(data["X"], data["y"], data["subject"], strict=True):
        for begin in range(0, len(signal) - 99, 100):
            window = np.asarray(signal[begin : begin + 100], float)
            people.setdefault(int(person), []).append((np.concatenate([window.mean(0), window.std(0)]), int(label)))
    tables = []
    for person in sorted(people):
        # an hour of exercises has them by turns, a recording one after the other
        order = np.random.default_rng(person).permutation(len(people[person]))
        windows = [people[person][i] for i in order]
        tables.append((np.array([x for x, _ in windows]), np.array([y for _, y in windows])))
    return tables


def watch() -> Iterator[Fleet]:
    tables = tables_of_watch()
    classes = 1 + max(int(y.max()) for _, y in tables)
    yield Fleet("watch", tables[:7], joined(tables[7:-1]), tables[-1], classes)


def joined(tables: Sequence[Table]) -> Table:
    return np.concatenate([x for x, _ in tables]), np.concatenate([y for _, y in tables])


def cut(table: Table, rows: int) -> Table:
    return table[0][:rows], table[1][:rows]


def by_turns(tables: Sequence[Table]) -> Table:
    """All rows, as devices would have had them at the same time."""
    place = np.concatenate([np.arange(len(y)) / len(y) for _, y in tables])
    x, y = joined(tables)
    order = np.argsort(place, kind="stable")
    return x[order], y[order]


# -------------------------------------------------------------------------------------------------------------- models


def tried(fleet: Fleet) -> Iterator[tuple[str, Fleet, Spec]]:
    """Models, with the fleet as they see it."""
    dim = fleet.test[0].shape[1]
    label: dict[str, Any] = {"classes": [f"c{k}" for k in range(fleet.classes)]} if fleet.classes else {}
    content: dict[str, Any] = {"name": "fleet", "input": {"dim": dim}, "label": label}
    yield "32 vectors", fleet, make_spec(content | {"reduction": {"n_max": ROOM}})
    yield "waves", fleet, make_spec(content)
    if not fleet.classes:
        content = {
            **{"name": "fleet", "input": {"dim": dim, "max_abs": 1e3}, "kernel": {"sigma": float(np.sqrt(dim))}},
            **{
                "label": {"max_abs": float(10 * np.abs(fleet.test[1]).max())},
                "learning": {"rule": "rff-rls", "features": FEATURES},
            },
        }
        yield "rff-rls", scaled(fleet), make_spec(content)


def scaled(fleet: Fleet) -> Fleet:
    """Inputs in deviations of the first device's, as a spec would have them given."""
    x, _ = fleet.devices[0]
    center, scale = x.mean(0), 1 / (x.std(0) + 1e-3 * np.abs(x).max(0) + 1e-9)

    def of(table: Table) -> Table:
        return np.clip((table[0] - center) * scale, -30, 30), table[1]

    return replace(fleet, devices=[of(each) for each in fleet.devices], test=of(fleet.test), later=of(fleet.later))


def wrong(fleet: Fleet, answers: np.ndarray, y: np.ndarray) -> float:
    if fleet.classes:
        return float(np.mean(answers != y))
    return float(np.sqrt(np.mean(np.square(answers - y))) / fleet.test[1].std())


def asked(fleet: Fleet, model: HostModel, x: np.ndarray) -> np.ndarray:
    return model.classify(x) if fleet.classes else model.predict(x)


def learned(spec: Spec, table: Table, state: bytes | None = None) -> HostModel:
    model = HostModel(spec)
    if state is not None:
        snapshot.load(model, state)
    model.update(*table)
    return model


def goes_on(fleet: Fleet, spec: Spec, state: bytes) -> float:
    """The error on what comes after another 168 rows of one place, or half of them if there are fewer."""
    x, y = fleet.later
    first = min(WEEK, len(y) // 2)
    model = learned(spec, (x[:first], y[:first]), state)
    return wrong(fleet, asked(fleet, model, x[first:]), y[first:])


def error_of_trained(fleet: Fleet) -> float:
    kind = TrainedKernelClassifier if fleet.classes else TrainedKernelRegressor
    machine = kind(n_vectors=ROOM, random_state=0).fit(*joined(fleet.devices))
    return wrong(fleet, machine.predict(fleet.test[0]), fleet.test[1])


def measure(fleet: Fleet, name: str, spec: Spec, trained: float) -> dict[str, Any]:
    """trained: the error of trained vectors."""
    devices = [learned(spec, table) for table in fleet.devices]
    x, y = fleet.test
    alone = [wrong(fleet, asked(fleet, device, x), y) for device in devices]
    answers = np.mean([device.predict(x) for device in devices], axis=0)
    states = [snapshot.save(device) for device in devices]
    found = merge(spec, states)
    one = learned(spec, by_turns(fleet.devices))
    errors = {
        "alone": np.median(alone),
        "best": min(alone),
        "mean": wrong(fleet, answers.argmax(1) if fleet.classes else answers, y),
        "merged": wrong(fleet, asked(fleet, learned(spec, (x[:0], y[:0]), found.data), x), y),
        "one model": wrong(fleet, asked(fleet, one, x), y),
        "trained": trained,
        "alone, later": np.median([goes_on(fleet, spec, state) for state in states]),
        "merged, later": goes_on(fleet, spec, found.data),
    }
    head = {
        "set": fleet.name,
        "model": name,
        "devices": len(devices),
        "rows": int(np.median([len(y) for _, y in fleet.devices])),
    }
    return head | {key: f"{e:.3f}" for key, e in errors.items()}


def table_of(rows: Rows) -> str:
    heads = ["set", "model", "devices", "rows of each", *ERRORS]
    return markdown(
        heads, [[row["set"], row["model"], row["devices"], row["rows"], *(row[e] for e in ERRORS)] for row in rows]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--air", type=Path, metavar="FOLDER")
    parser.add_argument("--updrs", type=Path, metavar="FILE")
    parser.add_argument("--show", action="store_true", help="only the table of what was measured")
    given = parser.parse_args()
    if not given.show:
        fleets = [*(air(given.air) if given.air else ()), *(updrs(given.updrs) if given.updrs else ())]
        fleets += [*watch()] if importlib.util.find_spec("seglearn") else []
        order = ["air, together", "air, apart", "air, 2 devices apart", "air, 96 devices", "updrs", "watch"]
        for fleet in fleets:
            rows, trained = [], error_of_trained(fleet)
            for name, seen, spec in tried(fleet):
                rows.append(measure(seen, name, spec, trained))
                print(rows[-1], file=sys.stderr, flush=True)
            save(PATH, merged(PATH, rows, "set", [fleet.name], order))
    publish({"merged": table_of(load(PATH))}, PAGE)


if __name__ == "__main__":
    main()
