"""Is a plan of two minutes as good as a long sweep?  docs/data/plan-streams.csv.

    python -m benchmarks.host.plan_streams          # an hour or more

Ten streams of first_streams.py, raw, at most 1,000 rows.  plan: ``pykernel plan`` with its default time, every kind of model.
sweep: ``pykernel sweep`` of all rules and techniques with budgets 8, 16, 32 and 64 and three refinements, on a spec with
columns and standardised inputs.  Both errors are root mean squares over the last 30 % of the rows, where models go on learning.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from benchmarks.host.first_streams import raw
from benchmarks.tables import DATA, save
from pykernel.parallel import Workers
from pykernel.spec.model import make_spec
from pykernel.tuning import sweep
from pykernel.tuning.plan import Limits, Search, arms, model_name
from pykernel.tuning.trials import Table, judge, simple, work

STREAMS = (
    "friedman 1", "sinc", "bikes", "mackey-glass", "plant", "diabetes", "stocks", "narma", "friction", "thermistor",
)  # fmt: skip
ROWS, SECONDS = 1000, 120.0


def planned(table: Table, base: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    with Workers(work, table) as workers:
        course = Search(arms(base, table.x, None, None), table, workers, Limits(), 0, sweep.techniques())
        course.run(lambda _: sys.maxsize if time.monotonic() - began < SECONDS else 0)
    best = course.winner()
    assert best is not None
    learner = course.winner(learning=True)
    assert learner is not None
    return {
        "plan": f"{best.score:.5g}",
        "plan_model": model_name(best),
        "plan_learning": f"{learner.score:.5g}",
        "plan_learning_model": model_name(learner),
        "plan_trials": len(course.trials),
        "plan_seconds": round(time.monotonic() - began),
    }


def swept(table: Table, base: dict[str, Any]) -> dict[str, Any]:
    began = time.monotonic()
    data = sweep.Data(table.x, table.labels)
    largest = 2 * float(np.abs(table.labels).max())
    content = {**base, "input": {**base["input"], "standardise": True}, "label": {**base["label"], "max_abs": largest}}
    spec = make_spec({**content, "kernel": {"sigma": 1.0}})
    groups, refused = sweep.plan_groups(spec, data, sweep.rules(), sweep.techniques(), sweep.SIZES)
    with Workers(sweep.work, (data.x, data.y), context=sweep.context(spec, data)) as workers:
        found = sweep.sweep(spec, data, workers, groups, refused, "rmse")
    row = found.rows[0]
    told = judge(make_spec(row["spec"]), table)["learning"]
    name = " ".join(str(row[key]) for key in ("rule", "technique", "size") if row[key] is not None)
    return {
        "sweep": f"{told['error']:.5g}",
        "sweep_model": name,
        "sweep_tries": found.tries,
        "sweep_seconds": round(time.monotonic() - began),
    }


def main() -> None:
    rows = []
    for name in STREAMS:
        x, y = (values[:ROWS].astype(float) for values in raw(name))
        table = Table(x, y)
        base = {"name": "model", "input": {"dim": x.shape[1]}, "label": {"outputs": 1}}
        least = min(row["error"] for row in simple(make_spec(base), table).values())
        rows.append({"stream": name, "simple": f"{least:.5g}"} | planned(table, base) | swept(table, base))
        print(*rows[-1].values(), flush=True)
        save(DATA / "plan-streams.csv", rows)


if __name__ == "__main__":
    main()
