"""Does a planned monitor see as many faults of a machine as ``pykernel plan`` promised?

    python -m benchmarks.host.alarms.plan_truth              # docs/data/alarm-plan.csv, some minutes
    python -m benchmarks.host.alarms.plan_truth --others     # the plants with which pykernel/tuning/faults.py was tried; no file

Ten plants, the first of each kind (but dense faults).  The plants' faults are rare, so the promise is that of rare faults; the part of
all is beside it.  A plan sees 10,000 rows without a fault.
The truth: the planned monitor learns other streams of the plant from their beginning, with the plant's own faults, by its own
threshold, until there are enough faults.  A fault is missed if no row of it is in alarm.  Other rows: those outside of faults and
of the 20 rows after each.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.alarms.plants import faulty, sound
from benchmarks.host.alarms.plants_draws import PLANTS, Plant
from benchmarks.tables import DATA, ROOT, Rows, markdown, progress_bar, publish, save
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from pykernel.tuning.promises import deviation_of
from pykernel.tuning.trials import GUARD
from pykernel.workflows.plan import plan

ROWS, RECORDED = 10_000, 100
"""Rows that the plan sees, and their seed."""
TRIALS, LEAST, FIRST_SEED = 24, 240, 200
NEAR = 0.1


def chosen(others: bool) -> list[Plant]:
    kinds: dict[str, list[Plant]] = {}
    for plant in PLANTS:
        if plant.kind != "dense faults":
            kinds.setdefault(plant.kind, []).append(plant)
    return [plant for each in kinds.values() for plant in (each[1:] if others else each[:1])]


def names(plant: Plant) -> list[str]:
    if plant.lags > 1:
        return [f"value {i}" for i in range(plant.lags)]
    return [f"{each.name} {i}" for i, each in enumerate(plant.sensors)]


def planned(plant: Plant, folder: Path) -> dict[str, Any]:
    rows, file = sound(plant, RECORDED).rows[:ROWS], folder / "rows.csv"
    np.savetxt(file, rows, delimiter=",", header=",".join(names(plant)), comments="", fmt="%.9g")
    found = plan(file, trials=TRIALS, output=folder / "plan")
    return found.report | {"made": found.spec}


def alarms(spec: Spec, rows: np.ndarray) -> np.ndarray:
    return np.isin(HostModel(spec).update(rows), [int(status) for status in spec.program.alarms])


def truth(spec: Spec, plant: Plant) -> dict[str, float]:
    """What the monitor makes of the plant's own faults."""
    columns = [names(plant).index(name) for name in spec.input.columns or ()]
    missed: list[bool] = []
    others = np.zeros(2, int)
    for seed in itertools.count(FIRST_SEED):
        stream = faulty(plant, seed)
        now = alarms(spec, stream.rows[:, columns])
        quiet = np.arange(len(now)) >= spec.novelty.warmup
        for fault in stream.faults:
            missed.append(not now[fault.first : fault.last].any())
            quiet[fault.first : fault.last + GUARD] = False
        others += int(quiet.sum()), int((now & quiet).sum())
        if len(missed) >= LEAST:
            break
    part = float(np.mean(missed))
    told = {"missed": part, "deviation": deviation_of(part, len(missed)), "other_rows": others[1] / others[0]}
    return {"faults": len(missed)} | told


def row(plant: Plant) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        report = planned(plant, Path(folder))
    winner, found = report["winner"], truth(report["made"], plant)
    told, (missed, faults), verdict = winner["learning"], winner["manners"]["rare"], report["verdict"]
    promised = {"missed": missed / faults, "other_rows": told["other_rows"]}
    holds = all(abs(part - found[key]) <= NEAR for key, part in promised.items())
    said = {None: f"{verdict['simple']} sees as many", "model": ""}.get(verdict["winner"], f"take {verdict['winner']}")
    return {
        "plant": plant.name,
        "kind": plant.kind,
        "inputs": report["made"].dim,
        "model": winner["model"],
        "bytes": winner["bytes"],
        "faults_planned": faults,
        "missed_planned": round(missed / faults, 4),
        "all_missed_planned": round(told["error"], 4),
        "all_within": round(told["within"], 4),
        "other_rows_planned": round(told["other_rows"], 4),
        **{key: round(value, 4) for key, value in found.items()},
        "holds": "yes" if holds else "no",
        "verdict": said,
    }


def table_of(rows: Rows) -> str:
    """What docs/choosing.md shows."""
    heads = ("plant", "planned", "rare ones missed: promised", "true", "±", "other rows: promised", "true", "holds")

    def cells(row: dict[str, str]) -> list[str]:
        parts = [
            row[key]
            for key in (
                "missed_planned",
                "missed",
                "deviation",
                "other_rows_planned",
                "other_rows",
            )
        ]
        shown = [f"{100 * float(part):.1f} %" for part in parts]
        return [f"{row['plant']}: {row['kind']}", row["model"], *shown, row["holds"]]

    return markdown(heads, [cells(row) for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--others", action="store_true")
    options = parser.parse_args()
    rows = []
    with progress_bar() as progress:
        for plant in progress.track(chosen(options.others), description="plants"):
            rows.append(row(plant))
            print(*(f"{key} {value}" for key, value in rows[-1].items()), sep="; ", flush=True)
    print(f"{sum(each['holds'] == 'yes' for each in rows)} of {len(rows)} promises hold within {NEAR:g}")
    if not options.others:
        publish({"alarm plan": table_of(save(DATA / "alarm-plan.csv", rows))}, ROOT / "docs" / "choosing.md")


if __name__ == "__main__":
    main()
