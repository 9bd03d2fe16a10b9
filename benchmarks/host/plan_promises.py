"""Does a planned model err as much as ``pykernel plan`` promised, on rows that the plan never saw?

    python -m benchmarks.host.plan_promises              # docs/data/plan-promises.csv, ten minutes
    python -m benchmarks.host.plan_promises --others     # ten other tables, with which the promise was made; no file

Ten tables of first_streams.py: a plan sees the first rows, later ones tell the truth.  Each plan promises twice: for a device that
gets labels, and for one that gets none.  A promise holds if the truth lies within ±.  Width: of ±, over half of the interval of 95 %
of a test on as many later rows as were judged, by the same blocks.  Times: by how much the model is larger than the smallest of all that
were tried with at most NEAR times its error on the later rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.host.first_streams import CLASSES, raw
from benchmarks.tables import DATA, Rows, markdown, progress_bar, publish, save
from pykernel.host.model import HostModel
from pykernel.parallel import Workers
from pykernel.spec.model import Spec, make_spec
from pykernel.tuning.arms import Trial, arms
from pykernel.tuning.combinations import techniques, trained_at_once
from pykernel.tuning.costs import Limits
from pykernel.tuning.data import Table
from pykernel.tuning.plan import Search, model_name
from pykernel.tuning.promises import NEAR, NEW, Losses, promise
from pykernel.tuning.tasks import work
from pykernel.workflows.plan import FLASH, RAM

TABLES = {
    "bikes": 1000, "narma": 500, "sinc": 300, "thermistor": 1000, "plant": 400, "diabetes": 300,
    "digits": 600, "breast cancer": 300, "phishing": 500, "waveform": 600,
}  # fmt: skip
OTHERS = {
    "friedman 1": 300, "friction": 600, "pressure": 600, "battery": 800, "stocks": 600,
    "wine": 110, "sea": 500, "segments": 500, "friedman 2": 200, "lorenz": 500,
}  # fmt: skip
"""Rows that a plan sees; up to as many later ones are the truth: nobody knows a season that was not recorded."""
TRIALS = 40


def losses_of(spec: Spec, labels: str, x: np.ndarray, y: np.ndarray, seen: int, most: int | None = None) -> Losses:
    """Of the later rows, at most ``most``, as the model lives: one that learns has learned all rows before, and goes on if labels come."""
    model, question = HostModel(spec), "classify" if spec.label.classes else "predict"
    if not spec.program.learns:
        answers, _ = model.ask(question, x)
    else:
        model.update(x[:seen], y[:seen])
        if trained_at_once(spec):
            model.train()
        answers = np.array(model.ask(question, x)[0], float).reshape(len(y))
        if labels == "always":
            answers[seen:] = model.prequential(x[seen:], y[seen:], question=question)[0].reshape(len(y) - seen)
    answers, y = np.asarray(answers, float).reshape(y.shape)[seen:][:most], y[seen:][:most]
    of_classes = bool(spec.label.classes)
    lost = (answers != y).astype(float) if of_classes else np.square(answers - y)
    return Losses.of(lost, np.isfinite(answers), of_classes, None if of_classes else answers - y)


def rows_of(name: str, seen: int) -> list[dict[str, Any]]:
    x, y = (values[: 2 * seen] for values in raw(name))
    y = y.astype(np.int32) if name in CLASSES else y.astype(float)
    table = Table(x[:seen], y[:seen])
    label = {"classes": [f"class {i}" for i in range(int(y.max()) + 1)]} if name in CLASSES else {"outputs": 1}
    base = {"name": "model", "input": {"dim": x.shape[1]}, "label": label}
    found, limits = [], Limits(None, RAM, FLASH)
    for labels in ("always", "never"):
        with Workers(work, table) as workers:
            course = Search(
                arms(base, table, None, None, None, labels), table, workers, limits, 0, techniques(), labels
            )
            course.run(lambda search: TRIALS - len(search.trials))
            found.append(row_of(course, labels, name, x, y))
    return found


def row_of(course: Search, labels: str, name: str, x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    won, seen = course.winner(), len(course.table.x)
    assert won is not None and won.report is not None
    told, first = promise(course.honest()), won.report["error"]

    def truth(trial: Trial) -> Losses:
        return losses_of(make_spec(trial.content), labels, x, y, seen)

    smaller = [trial for trial in course.candidates() if 4 * trial.bytes <= won.bytes]
    course.finish(won)
    found, fresh = truth(won), losses_of(make_spec(won.content), labels, x, y, seen, seen - course.table.split)
    as_good = [trial.bytes for trial in smaller if truth(trial).error <= NEAR * found.error]
    return {
        "table": name,
        "rows": seen,
        "labels": labels,
        "model": model_name(won),
        "bytes": won.bytes,
        "chosen": f"{first:.5g}",
        "promised": f"{told['error']:.5g}",
        "within": f"{told['within']:.5g}",
        "truth": f"{found.error:.5g}",
        "later": int(found.rows.sum()),
        "width": f"{told['within'] / (promise(fresh)['within'] / NEW):.3f}",
        "times": f"{won.bytes / min([won.bytes, *as_good]):.2f}",
        "holds": "yes" if abs(found.error - told["error"]) <= told["within"] else "no",
    }


def table_of(rows: Rows) -> str:
    heads = ("table", "rows", "labels", "planned", "promised", "±", "true", "holds", "width", "times")
    keys = ("table", "rows", "labels", "model", "promised", "within", "truth", "holds", "width", "times")
    shown: dict[str, Callable[[str], str]] = {key: "{:.3g}".format for key in ("promised", "within", "truth")}
    return markdown(
        heads,
        [[shown[key](float(row[key])) if key in shown else row[key] for key in keys] for row in rows],  # type: ignore[arg-type]
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--others", action="store_true")
    options, rows = parser.parse_args(), []
    with progress_bar() as progress:
        for name, seen in progress.track((OTHERS if options.others else TABLES).items(), description="tables"):
            for row in rows_of(name, seen):
                rows.append(row)
                print(*row.values(), sep="; ", flush=True)
    for labels in ("always", "never"):
        own = [row for row in rows if row["labels"] == labels]
        holds, width = sum(row["holds"] == "yes" for row in own), np.median([float(row["width"]) for row in own])
        large = sum(float(row["times"]) > 4 for row in own)
        print(
            f"labels {labels}: {holds} of {len(own)} promises hold, median width {width:.2f}, {large} models too large"
        )
    if not options.others:
        publish({"plan promises": table_of(save(DATA / "plan-promises.csv", rows))})


if __name__ == "__main__":
    main()
