"""Run ``pykernel demo``: the host and the generated C code predict and then learn the hourly demand for rental bikes."""

from __future__ import annotations

import csv
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.engine.choice import chosen_engine, engine_used
from pykernel.errors import CheckFailed, UserError
from pykernel.files import all_or_none, new_folder
from pykernel.gen.check import check
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build, generate
from pykernel.host.bikeshare import DAY, bikeshare, default_spec, lagged, mean_error, running_mean
from pykernel.host.model import HostModel
from pykernel.report.checks import builds, calls
from pykernel.report.common import inside
from pykernel.report.document import Document, Facts, Found, Section, Sentence, Table
from pykernel.report.figures import Line, Plot
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.check import check_targets
from pykernel.telling import byte_count, path_word
from pykernel.workflows.arguments import write_file
from pykernel.workflows.check import first_difference
from pykernel.workflows.requests import Demo

WEEK = 7 * DAY
TARGET, TARGET_ROWS = "cortex-m4f", 500
FORGETTING = 0.999
"""Forgetting factor of the linear models: they remember about six weeks.  The data drift over the year, so linear models
that forget nothing are worse."""


def linear(x: np.ndarray, y: np.ndarray, rule: str, forgetting: float = FORGETTING) -> tuple[np.ndarray, int]:
    """Return the forecasts of a linear rule in float32, and the size of the rule's state in bytes."""
    learning = {"rule": rule, "forgetting": forgetting}
    spec = make_spec({"name": "linear", "input": {"dim": x.shape[1]}, "learning": learning})
    return HostModel(spec).prequential(x, y)[0], build(spec).figures["state_bytes"]


def baselines(x: np.ndarray, y: np.ndarray) -> dict[str, tuple[np.ndarray, int]]:
    """Return simple forecasts that the model should beat: name -> (forecasts, bytes of state)."""
    return {
        "last hour": (lagged(y, 1), 4),
        "same hour yesterday": (lagged(y, DAY), 4 * DAY),
        "running mean": (running_mean(y), 8),
        "linear RLS": linear(x, y, "rls"),
        "quadratic RLS": linear(x, y, "quadratic-rls"),
    }


def run(request: Demo) -> Found:
    with request.watch.progress() as show:
        report, page = run_demo(request.output, show)
    return Found(report, page, None if report["ok"] else CheckFailed(first_difference(report["check"])))


def run_demo(
    out: str | Path, progress: Callable[[float, str], None] = lambda part, what: None
) -> tuple[dict[str, Any], Document]:
    """Run all steps from data to a checked C project in ``out``.  Returns the figures as plain values, and a document about them.

    Writes ``out/features.csv``, ``out/spec.toml``, ``out/errors.html`` and the project
    ``out/bikeshare/``: either all of them or none.  progress: called with the fraction of the work that is done
    (0 to 1) and the name of the next step.  Without a compiler, the C code is written but not compared.  Raises UserError if the
    folder cannot be written.
    """
    with new_folder(Path(out)), engine_used(chosen_engine()):
        return _run_demo(Path(out), default_spec(), progress)


def _run_demo(out: Path, spec: Spec, progress: Callable[[float, str], None]) -> tuple[dict[str, Any], Document]:
    progress(0.0, "reading a year of bike rentals")
    x, y, names = bikeshare()
    progress(0.02, "learning the year, hour by hour")
    predictions, statuses = HostModel(spec).prequential(x, y)
    progress(0.5, "running linear models for comparison")
    others = baselines(x, y)
    here: list[dict[str, Any]] = []
    targets: list[dict[str, Any]] = []
    notes, ok = list[str](), True
    try:
        # one compiler and one engine are enough for a demonstration; pykernel check uses all of them
        report = check(
            spec,
            stream=(x, y),
            compilers=[find_compilers()[0].name],
            progress=lambda part, what: progress(0.65 + 0.25 * part, f"running the C code on the same year: {what}"),
        )
        here, ok = report.rows, report.ok
    except UserError as missing:
        notes.append(str(missing))
    progress(0.9, f"running the C code on an emulated {TARGET}, on the first {TARGET_ROWS} rows")
    try:
        targets = check_targets(spec, [TARGET], stream=(x[:TARGET_ROWS], y[:TARGET_ROWS]), tries=0).rows
    except UserError as missing:
        notes.append(str(missing))
    progress(0.95, "writing the project and the errors")
    bytes_ = build(spec).figures["state_bytes"]
    predictors = {f"the default, {spec.learning.rule}": (predictions, bytes_)} | others
    accuracy = [
        {"predictor": name, "mae": mean_error(forecasts, y), "state_bytes": size}
        for name, (forecasts, size) in predictors.items()
    ]
    counts = zip(*np.unique(statuses, return_counts=True), strict=True)
    drawn = _plots(weekly_errors(predictions, others, y, spec), week_of(predictions, y))
    with all_or_none(out):
        write_inputs(out, spec, x, y, names)
        made = generate(spec, out / spec.name)
        result = {
            "ok": ok and all(row["equal"] for row in targets),
            "rows": len(y),
            "accuracy": accuracy,
            "statuses": {spec.program.status(status).name.lower(): int(count) for status, count in counts},
            "check": [*here, *targets],
            "warnings": notes,
            "sizes": made.figures,
            "output": str(out),
            "project": str(made.folder),
            "files": [str(file) for file in made.files],
            "report": str(out / "errors.html"),
            "spec": str(out / "spec.toml"),
            "csv": str(out / "features.csv"),
        }
        document = _document(result, drawn)
        document.write(out / "errors.html")
    progress(1.0, "done")
    return result, document


def write_inputs(out: Path, spec: Spec, x: np.ndarray, y: np.ndarray, names: tuple[str, ...]) -> None:
    """Write the files with which ``pykernel simulate`` can repeat the run."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, spec.label.column])
    writer.writerows(zip(*(column.astype(np.float32) for column in x.T), y.astype(int), strict=True))
    write_file(out / "features.csv", text.getvalue())
    write_file(out / "spec.toml", spec.to_toml())


def weekly_errors(
    predictions: np.ndarray, others: dict[str, tuple[np.ndarray, int]], y: np.ndarray, spec: Spec
) -> dict[str, np.ndarray]:
    """Return the mean absolute error of each whole week, for the model and all baselines except the running mean."""
    shown = {f"the default, {spec.learning.rule}": predictions}
    shown |= {name: others[name][0] for name in ("last hour", "same hour yesterday", "linear RLS", "quadratic RLS")}
    weeks = len(y) // WEEK
    return {
        name: np.abs(forecasts - y)[: weeks * WEEK].reshape(weeks, WEEK).mean(axis=1)
        for name, forecasts in shown.items()
    }


def week_of(predictions: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the predicted and the true rentals of each hour of one week in autumn, which begins at midnight."""
    week = slice(len(y) - 11 * WEEK + 5, len(y) - 10 * WEEK + 5)
    return {"predicted": predictions[week], "rented": y[week]}


def _plots(weeks: dict[str, np.ndarray], week: dict[str, np.ndarray]) -> list[Plot]:
    count = np.arange(1.0, len(next(iter(weeks.values()))) + 1)
    days = np.arange(WEEK) / DAY
    errors = [Line(name, count, each, f"c{i}" if i else "model") for i, (name, each) in enumerate(weeks.items())]
    hours = [Line(name, days, each, kind) for (name, each), kind in zip(week.items(), ("model", "truth"), strict=True)]
    return [
        Plot("The error of each week", "week", "mean absolute error (rentals per hour)", errors, zero=True),
        Plot("A week in autumn", "day", "rentals per hour", hours, zero=True),
    ]


def _document(result: dict[str, Any], drawn: list[Plot]) -> Document:
    rows = [[row["predictor"], f"{row['mae']:.1f}", byte_count(row["state_bytes"])] for row in result["accuracy"]]
    title = f"{result['rows']:,} hours of bike rentals, predicted and then learned"
    errors = Table(("predictor", "error", "state"), rows, strong=(0,), title=title)
    here, emulated = ([row for row in result["check"] if ("target" in row) == there] for there in (False, True))
    equal = [*builds(here), *builds(emulated), *map(Sentence, result["warnings"])]
    copied = f"{result['project']}   (copy it into your firmware)"
    sections = [
        Section("Errors", [errors, *drawn], "both"),
        Section("Is the memory of the C code equal to the simulation's?", equal, "both"),
        Section("Instructions of one call", calls(emulated), "both"),
        *inside(result["sizes"], "both"),
        Section("Files", [Facts([("report", result["report"]), ("project", copied)])], "both"),
    ]
    spec, table = path_word(result["spec"]), path_word(result["csv"])
    then = [f"pykernel simulate {spec} {table} --delay 24", f"pykernel generate {spec} -o out/"]
    return Document("Hourly bike rentals, predicted and then learned", "", sections, result["ok"], then)
