"""A model for a person, or a place, that nobody knew before: what learning on the device is worth; writes docs/data/personal.csv.

    python -m benchmarks.host.personal --air FOLDER --updrs FILE    # and seglearn's set, if the package is installed
    python -m benchmarks.host.personal --show

The sets are those of ``benchmarks.host.merging``, and who has them gives their place.  Each person or place is left out once: models
learn the rows of all others, then forecast and learn the rows of the one left out.  air: 1 in 20 hours of two years, of 12
stations; updrs: 42 people; watch: 10 people.  Models of 32 vectors:

    frozen          trained vectors, from the others; it never learns
    weights         the same vectors; their weights learn (expansion-nlms)
    vectors         no rule, with n_max = 32: it has learned the others' rows one by one, and goes on
    merged          the same from the merged states of the others' devices (``pykernel.merge``)
    alone           no rule, with n_max = 32, from nothing
    default         waves, the model without n_max, from nothing

"from", "to": which labels of the new person were known when a row was forecast.  An error is the root mean square error in parts of the
labels' deviation over all, or the part of wrong classes: the median over people and places.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.merging import ROOM, Table, by_turns, cut, joined, stations_of, tables_of_people, tables_of_watch
from benchmarks.tables import DATA, DOCS, Rows, load, markdown, merged, publish, save
from pykernel import TrainedKernelClassifier, TrainedKernelRegressor, merge
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.parallel import Workers, one_thread
from pykernel.spec.model import Spec, make_spec

PATH, PAGE = DATA / "personal.csv", DOCS / "merging.md"
EDGES = (0, 10, 30, 100, 300)
KINDS = ("frozen", "weights", "vectors", "merged", "alone", "default")


def tables(name: str, place: str) -> tuple[list[Table], int]:
    """Rows of each person or place, and the number of classes."""
    if name == "air":
        year = 365 * 24
        return [cut(each, 400) for each in stations_of(Path(place), slice(0, 2 * year, 20))], 0
    if name == "updrs":
        return tables_of_people(Path(place)), 0
    found = tables_of_watch()
    return found, 1 + max(int(y.max()) for _, y in found)


def spec_of(dim: int, classes: int, **sections: Any) -> Spec:
    label: dict[str, Any] = {"classes": [f"c{k}" for k in range(classes)]} if classes else {}
    return make_spec({"name": "personal", "input": {"dim": dim}, "label": label, **sections})


def models(others: Sequence[Table], classes: int) -> Iterator[tuple[str, HostModel]]:
    """Each kind, before it sees the new person."""
    x, y = joined(others)
    kind = TrainedKernelClassifier if classes else TrainedKernelRegressor
    trained = kind(n_vectors=ROOM, random_state=0).fit(x, y).to_spec("personal")
    yield "frozen", HostModel(trained)
    content = trained.model_dump(exclude_unset=True)
    content["learning"] = {"rule": "expansion-nlms"}
    content["label"] = content.get("label", {}) | ({} if classes else {"max_abs": float(10 * np.abs(y).max())})
    yield "weights", HostModel(make_spec(content))
    spec = spec_of(x.shape[1], classes, reduction={"n_max": ROOM})
    known = HostModel(spec)
    known.update(*by_turns(others))
    yield "vectors", known
    states = []
    for table in others:
        device = HostModel(spec)
        device.update(*table)
        states.append(snapshot.save(device))
    fleet = HostModel(spec)
    snapshot.load(fleet, merge(spec, states).data)
    yield "merged", fleet
    yield "alone", HostModel(spec)
    yield "default", HostModel(spec_of(x.shape[1], classes))


def work(task: dict[str, Any], shared: Any = None) -> list[list[float]]:
    """Of each kind the errors between two edges, of one who is left out; NaN behind the last row."""
    every, classes = tables(task["set"], task["place"])
    x, y = every[task["left"]]
    deviation = joined(every)[1].std()
    found = []
    with one_thread:
        for _, model in models([table for k, table in enumerate(every) if k != task["left"]], classes):
            question = "classify" if classes else "predict"
            answers = (
                model.prequential(x, y, question=question)[0]
                if model.spec.program.learns
                else model.ask(question, x)[0][:, 0]
            )
            wrong = answers != y if classes else np.square((np.nan_to_num(answers) - y) / deviation)
            parts = [wrong[a:b] for a, b in zip(EDGES, (*EDGES[1:], len(y)), strict=True)]
            means = [float(part.mean()) if len(part) >= 10 else float("nan") for part in parts]
            found.append(means if classes else [mean**0.5 for mean in means])
    return found


def rows_of(name: str, place: str, jobs: int) -> Iterator[dict[str, Any]]:
    every, _ = tables(name, place)
    with Workers(work, jobs=jobs, title=name) as workers:
        found = np.array(workers.run([{"set": name, "place": place, "left": k} for k in range(len(every))]))
    for k, kind in enumerate(KINDS):
        errors = found[:, k]
        for i, (a, b) in enumerate(zip(EDGES, (*EDGES[1:], ""), strict=True)):
            there = errors[:, i][~np.isnan(errors[:, i])]
            if len(there):
                yield {
                    "set": name,
                    "left out": len(there),
                    "model": kind,
                    "from": a,
                    "to": b,
                    "error": f"{np.median(there):.3f}",
                }


def table_of(rows: Rows) -> str:
    heads, lines = ["labels of the new one", *KINDS], []
    for name in dict.fromkeys(row["set"] for row in rows):
        for a in EDGES:
            own = {row["model"]: row for row in rows if row["set"] == name and row["from"] == str(a)}
            if own:
                first = own["frozen"]
                until = f" to {first['to']}" if first["to"] else " and more"
                lines.append([f"{name}, {a}{until} ({first['left out']})", *(own[kind]["error"] for kind in KINDS)])
    return markdown(heads, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--air", metavar="FOLDER")
    parser.add_argument("--updrs", metavar="FILE")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--show", action="store_true", help="only the table of what was measured")
    given = parser.parse_args()
    if not given.show:
        sets = {name: place for name in ("air", "updrs") if (place := getattr(given, name))}
        sets |= {"watch": ""} if importlib.util.find_spec("seglearn") else {}
        for name, place in sets.items():
            rows = list(rows_of(name, place, given.jobs))
            print(name, "done", file=sys.stderr, flush=True)
            save(PATH, merged(PATH, rows, "set", [name], ("air", "updrs", "watch")))
    publish({"personal": table_of(load(PATH))}, PAGE)


if __name__ == "__main__":
    main()
