"""Is a plan of two minutes as good as a long sweep?  docs/data/plan-streams.csv.

    python -m benchmarks.host.plan_streams [--folder FOLDER]       # hours; with --folder an interrupted run goes on

Ten streams of first_streams.py, raw, at most 1,000 rows.  plan: 1,000 trials, which two idle cores do in less than two
minutes.  sweep: ``pykernel sweep`` on the default spec, with its default sizes and refinements.  What is chosen is judged on
the last 30 % of the rows: the root mean square error, of models that learn while they go on learning.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.host.first_streams import raw
from benchmarks.tables import DATA, ROOT, Rows, markdown, publish, save
from pykernel.parallel import Workers
from pykernel.spec.model import make_spec
from pykernel.tuning import sweep
from pykernel.tuning.arms import arms
from pykernel.tuning.combinations import rules, techniques
from pykernel.tuning.costs import Limits
from pykernel.tuning.plan import Search, model_name
from pykernel.tuning.tasks import context, work
from pykernel.tuning.trials import Table, judge, simple

STREAMS = (
    "friedman 1", "sinc", "bikes", "mackey-glass", "plant", "diabetes", "stocks", "narma", "friction", "thermistor",
)  # fmt: skip
ROWS, TRIALS = 1000, 1000


def planned(table: Table, base: dict[str, Any]) -> dict[str, Any]:
    with Workers(work, table) as workers:
        course = Search(arms(base, table, None, None), table, workers, Limits(), 0, techniques())
        course.run(lambda search: TRIALS - len(search.trials))
    best = course.winner()
    assert best is not None
    return {"plan": f"{best.score:.5g}", "plan_model": model_name(best)}


def swept(table: Table, base: dict[str, Any], results: Path | None) -> dict[str, Any]:
    data, spec = sweep.Data(table.x, table.labels), make_spec(base)
    groups, refused = sweep.plan_groups(spec, data, rules(), techniques(), sweep.SIZES)
    with Workers(work, data, context=context(data), results=results) as workers:
        found = sweep.sweep(spec, data, workers, groups, refused, "rmse")
    row = found.rows[0]
    told = judge(make_spec(row["spec"]), table)
    name = " ".join(str(row[key]) for key in ("rule", "technique", "size") if row[key] is not None)
    error = (told["learning"] or told["frozen"])["error"]
    return {"sweep": f"{error:.5g}", "sweep_model": name, "sweep_runs": found.tries}


def table_of(rows: Rows) -> str:
    keys = ("stream", "simple", "plan", "plan_model", "sweep", "sweep_model", "ratio")
    heads = ("stream", "simple", "plan", "model", "sweep", "model", "plan / sweep")
    return markdown(heads, [[row[key] for key in keys] for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    folder = parser.parse_args().folder
    rows: list[dict[str, Any]] = []
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / "rows.csv").exists():
            rows = list(csv.DictReader((folder / "rows.csv").open()))
    for name in STREAMS[len(rows) :]:
        x, y = (values[:ROWS].astype(float) for values in raw(name))
        table = Table(x, y)
        base = {"name": "model", "input": {"dim": x.shape[1]}, "label": {"outputs": 1}}
        least = min(row["error"] for row in simple(make_spec(base), table).values())
        results = None if folder is None else folder / f"{name.replace(' ', '-')}.jsonl"
        row = {"stream": name, "simple": f"{least:.5g}"} | planned(table, base) | swept(table, base, results)
        rows.append(row | {"ratio": f"{float(row['plan']) / float(row['sweep']):.3f}"})
        print(*rows[-1].values(), flush=True)
        if folder is not None:
            save(folder / "rows.csv", rows)
    publish({"plan streams": table_of(save(DATA / "plan-streams.csv", rows))}, ROOT / "docs" / "choosing.md")
    ratios = np.array([float(row["ratio"]) for row in rows])
    print(f"within 5 % on {(ratios <= 1.05).sum()} of {len(rows)} streams; median ratio {np.median(ratios):.3f}")


if __name__ == "__main__":
    main()
