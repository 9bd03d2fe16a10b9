"""The detectors of run.py, with the settings that it chose, on data that others recorded: docs/data/alarms-theirs.csv.

    python -m benchmarks.host.alarms.theirs --skab SKAB/data --nab NAB    # and sktime's sets, if sktime is installed
    python -m benchmarks.host.alarms.theirs --show

None of it is shipped here.  Sets that are not given keep their lines.

SKAB    github.com/waico/SKAB, licence GPL-3: a water circuit with eight sensors, 34 experiments with one or more faults.
        The folder has valve1/, valve2/ and other/, CSV files with the columns anomaly and changepoint.
NAB     github.com/numenta/NAB, licence MIT since 2024, AGPL-3 before: 58 series of one number.  The folder has data/ and
        labels/combined_windows.json.  A window is a tenth of the series, divided by its anomalies.
mitdb, yahoo    in the package sktime (pip install sktime; --no-deps is enough), licence BSD-3: one series of one number each,
        an electrocardiogram of MIT-BIH and a series of Yahoo's set S5.

A fault is a run of rows that are labelled.  Faults that begin in the first third of a series (``rivals.settling``) do not count.  Many
last hundreds of rows: there, 1 % false rows see nearly every fault by chance, and what tells detectors apart is the part of
the faulty rows.  "version": sktime's, or a digest of the files that were read.
"""

from __future__ import annotations

import argparse
import csv
import functools
import hashlib
import importlib.metadata
import importlib.util
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.alarms import page
from benchmarks.host.alarms.measure import judged_faults, measured
from benchmarks.host.alarms.rivals import DETECTORS, named, of
from benchmarks.host.alarms.run import SETTINGS, chosen, here
from benchmarks.host.alarms.stream import Fault, Stream
from benchmarks.tables import DATA, load, merged, save
from pykernel.errors import UserError
from pykernel.parallel import Workers, one_thread

PATH = DATA / "alarms-theirs.csv"
SKAB_SENSORS, SKAB_FOLDERS = 8, ("valve1", "valve2", "other")


def table(path: Path, separator: str = ",") -> tuple[list[str], list[list[str]]]:
    """Heads and rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        heads, *rows = csv.reader(file, delimiter=separator)
    return heads, rows


def runs(labelled: np.ndarray, kind: str, channels: int) -> tuple[Fault, ...]:
    """Faults of labelled rows, (T,).  Nobody says which sensors they change."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], labelled, [False]]).astype(int)))
    pairs = edges.reshape(-1, 2).tolist()
    return tuple(Fault(kind, first, last, tuple(range(channels))) for first, last in pairs)


def skab(folder: str) -> Iterator[Stream]:
    for path in (path for name in SKAB_FOLDERS for path in sorted(Path(folder, name).glob("*.csv"))):
        heads, rows = table(path, ";")
        x = np.array([row[1 : 1 + SKAB_SENSORS] for row in rows], np.float32)
        labelled = np.array([float(row[heads.index("anomaly")]) > 0 for row in rows])
        yield Stream(f"{path.parent.name}/{path.stem}", "SKAB", x, runs(labelled, path.parent.name, SKAB_SENSORS))


def nab(folder: str) -> Iterator[Stream]:
    with Path(folder, "labels", "combined_windows.json").open(encoding="utf-8") as file:
        windows: dict[str, list[list[str]]] = json.load(file)
    for name, each in windows.items():
        _, rows = table(Path(folder, "data", name))
        times = np.array([row[0] for row in rows])  # "2014-07-01 00:30:00": their order is that of words
        labelled = np.zeros(len(rows), bool)
        for first, last in each:
            labelled |= (times >= first[:19]) & (times <= last[:19])
        x = np.array([[row[1]] for row in rows], np.float32)
        yield Stream(name.removesuffix(".csv"), "NAB", x, runs(labelled, name.split("/")[0], 1))


def sktime_set(name: str) -> Iterator[Stream]:
    _, rows = table(sktime_folder() / name / f"{name}.csv")
    x = np.array([[row[0]] for row in rows], np.float32)
    yield Stream(name, name, x, runs(np.array([float(row[1]) > 0 for row in rows]), name, 1))


def sktime_folder() -> Path:
    """Where sktime has its data.  Nothing of it is imported: its dependencies are not needed."""
    found = importlib.util.find_spec("sktime")
    if found is None or not found.submodule_search_locations:
        raise UserError("sktime is not installed, so mitdb and yahoo are left out; pip install --no-deps sktime")
    return Path(found.submodule_search_locations[0], "datasets", "data")


@functools.lru_cache(maxsize=4)
def streams(kind: str, folder: str) -> tuple[Stream, ...]:
    """Raises UserError if the folder has no such data."""
    try:
        found = tuple({"SKAB": skab, "NAB": nab}[kind](folder) if kind in ("SKAB", "NAB") else sktime_set(kind))
    except (OSError, ValueError, IndexError) as error:
        raise UserError(f"{folder or 'sktime'}: {kind} cannot be read there: {error}") from None
    if not found:
        raise UserError(
            f"{folder}: there are no CSV files of {kind}; give the folder that has valve1, valve2 and other"
        )
    return found


def version(kind: str, folder: str) -> str:
    if kind in ("SKAB", "NAB"):
        digest = hashlib.sha256()
        for stream in streams(kind, folder):
            digest.update(f"{stream.name} {stream.faults}".encode() + stream.rows.tobytes())
        return f"sha256 {digest.hexdigest()[:12]}"
    return f"sktime {importlib.metadata.version('sktime')}"


def work(task: Mapping[str, Any], shared: Any) -> list[dict[str, Any]]:
    """A detector on a set; a slow one on its first stream."""
    kind, name, setting = task["kind"], task["name"], task["setting"]
    told = version(kind, task["folder"])
    rows = []
    with one_thread:
        for stream in [s for s in streams(kind, task["folder"]) if judged_faults(s)][: 1 if named(name).slow else None]:
            head = {"detector": name, "setting": setting, "kind": kind, "stream": stream.name, "version": told}
            rows.append(head | measured(of(name, setting), stream))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skab", metavar="PATH", help="SKAB's folder data")
    parser.add_argument("--nab", metavar="PATH", help="NAB's folder, with data and labels")
    parser.add_argument("--show", action="store_true", help="only the tables of what was measured")
    options = parser.parse_args()
    if not options.show:
        sets = {kind: path for kind, path in (("SKAB", options.skab), ("NAB", options.nab)) if path}
        try:
            sktime_folder()
            sets |= {"mitdb": "", "yahoo": ""}
        except UserError as error:
            print(error, file=sys.stderr)
        if not SETTINGS.is_file():
            raise UserError(f"{SETTINGS} is not there; python -m benchmarks.host.alarms.run chooses the settings")
        settings = chosen(load(SETTINGS))
        names = [name for name in here(list(DETECTORS)) if name in settings]
        for kind, folder in sets.items():
            judged = [len(judged_faults(stream)) for stream in streams(kind, folder)]
            labelled = sum(len(stream.faults) for stream in streams(kind, folder))
            print(f"{kind}: {len(judged)} streams, {sum(judged)} of {labelled} faults are judged", file=sys.stderr)
        tasks = [
            {"name": name, "setting": settings[name], "kind": kind, "folder": folder}
            for kind, folder in sets.items()
            for name in names
        ]
        with Workers(work, jobs=2, title="alarms") as workers:
            found = [row for rows in workers.run(tasks) for row in rows]
        if found:
            save(PATH, merged(PATH, found, "kind", list(sets), ["SKAB", "NAB", "mitdb", "yahoo"]))
    page.place(page.theirs(load(PATH)))


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(str(error))
