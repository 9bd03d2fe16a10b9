"""Find the models that predict recorded data best, and with the least memory: a table, a plot, and specs of these
models.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykernel.errors import UserError, option
from pykernel.files import all_or_none, new_folder
from pykernel.gen.project import inside
from pykernel.host.samples import require_columns
from pykernel.report import sections
from pykernel.report.document import Document
from pykernel.report.figures import Panel
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import MEASURES, QUIET, Watch, model_name, number, unit_of
from pykernel.tuning.stage import dump
from pykernel.tuning.sweep import Data, Sweep, instructions, plan_groups, trivial
from pykernel.tuning.sweep import sweep as run_sweep
from pykernel.workflows import search
from pykernel.workflows.given import stated, whole_numbers, write_file
from pykernel.workflows.models import Fitted, spec_and_memory


@dataclass(frozen=True, repr=False)
class Swept:
    """What a sweep found.

    report: all results, as ``pykernel sweep --json`` prints them.  found: rows of the tried models, the best first;
    simple:
    errors of simple predictors.  specs: the best model; and the cheapest and the fastest one that are nearly as good,
    if there are any.
    """

    report: dict[str, Any]
    found: Sweep
    simple: dict[str, dict[str, float | None]]
    specs: dict[str, Spec]
    page: Document
    """The result for people: ``page.write("report.html")``; a notebook shows it."""

    def _repr_html_(self) -> str:
        return self.page._repr_html_()

    @property
    def spec(self) -> Spec | None:
        """The spec of the best model; None if no model worked."""
        return self.specs.get("best")

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For each rule, technique and size that worked: errors, bytes, values; the best first."""
        return self.found.rows

    def __repr__(self) -> str:
        lines = [f"sweep of {self.report['name']}: {len(self.rows)} models over {self.report['rows']:,} rows"]
        for name, i in self.found.picks.items():
            row = self.rows[i]
            error = f"{MEASURES[self.found.by]} {number(row[self.found.by])}"
            lines.append(f"  {name:8} {model_name(row)}: {error}, {row['ram_bytes']:,} bytes")
        return "\n".join(lines)


def sweep(
    model: Spec | Fitted,
    data: str | Path | Sequence[str | Path],
    *,
    delay: int = 0,
    rule: str | Sequence[str] | None = None,
    technique: str | Sequence[str] | None = None,
    n_max: str | int | Sequence[int] = (8, 16, 32, 64),
    score: str | None = None,
    rounds: int = 3,
    target: str | None = "cortex-m4f",
    jobs: int | str | None = None,
    results: str | Path | None = None,
    output: str | Path = "pykernel-sweep",
    plot: str | Path | None = None,
    watch: Watch = QUIET,
) -> Swept:
    """Find the models that predict recorded data best, for each size of memory: what ``pykernel sweep`` does.

    Every rule is tried with every technique and budget, and their parameters are searched from coarse to fine.  The error is that of the
    second half of the rows.

    Parameters
    ----------
    model : Spec or fitted estimator
        The parts that stay fixed: columns, precision, stages.
    data : path, or list of paths
        A table (CSV, Parquet, Arrow).  A folder, a glob, or several: many devices, one in each file.  A third of them gives vectors and
        scales, a third chooses, and a third judges: ``left_out`` is a model's error there.
    delay : int
        Labels arrive so many rows late.
    rule, technique : str or list of str, optional
        Only these.
    n_max : int or list of int
        Budgets to try.
    score : str, optional
        What to minimise: mae (the default of numbers), rmse; error_rate of classes.
    rounds : int
        Refinements of the grid, at most 20.
    target : str
        The CPU on which instructions are counted; None for none.
    jobs : int or str
        Processes, or the address of a Dask cluster.
    results : path, optional
        Where finished runs are kept; by default, in ``output``.  The same call goes on from them.
    output : path
        The folder for specs, table and report.
    plot : path, optional
        A report, FILE.html; by default ``report.html`` in ``output``.
    watch : Watch
        Who is told how far the work is.

    Raises
    ------
    UserError
        One sentence says what is wrong with the data or an argument.
    """
    asked = search.Asked(data, delay, jobs, results, output, watch, plot, stated(locals(), sweep))
    if not 0 <= rounds <= 20:
        raise UserError(f"rounds is {rounds}; it must be 0 or more, and at most 20")
    spec, _ = spec_and_memory(model)
    if spec.label_kind == "none":
        raise UserError(f"{spec.name}: has no [label], so there is no error to compare; for monitors see pykernel plan")
    require_columns(spec, spec.name)
    recorded = Data(*search.recorded(spec, asked)) if asked.many is None else search.recorded_devices(spec, asked)
    # of a [signal], the inner model learns the steps
    base = spec if recorded.stage is None else make_spec(recorded.stage.inside(spec))
    measures = ("error_rate",) if base.label_kind == "class" else ("mae", "rmse")
    if score is not None and score not in measures:
        raise UserError(f"{option('score')} {score} is not for these labels; there is: {', '.join(measures)}")
    by: Any = score or measures[0]
    tried = search.tried("rule", rule), search.tried("technique", technique)
    groups, refused = plan_groups(base, recorded, *tried, whole_numbers(n_max, "n_max"))
    place = None if target is None else search.counting_target(target)
    bound = sum(group.bound(rounds) for group in groups)
    watch.tell(
        f"at most {bound:,} runs over {len(recorded.x):,} {unit_of(recorded.raw_rows)}s, for {len(groups)} "
        f"{'combination' if len(groups) == 1 else 'combinations'} of rule, technique and size"
    )
    with new_folder(asked.output):
        with search.workers(recorded, asked, "running", bound) as workers:
            found = run_sweep(base, recorded, workers, groups, refused, by, rounds, place)
        specs = {name: asked.output / f"{name}.toml" for name in found.picks}
        report = {
            "name": base.name,
            "rows": len(recorded.x),
            **recorded.raw_rows,
            "delay": recorded.delay,
            "data": asked.read,
            "measure": found.by,
            "table": found.rows,
            "unusable": found.refused,
            "simple": found.trivial,
            **({} if recorded.devices is None else _of_devices(base, recorded)),
            "picks": found.picks,
            "trials": found.tries,
            "most_trials": bound,
            "target": found.target,
            "note": found.note,
            "specs": {name: str(path) for name, path in specs.items()},
            "output": str(asked.output),
            "csv": str(asked.output / "sweep.csv"),
            "plot": str(asked.plot),
            "reused": workers.reused,
            "results": str(workers.results.path),
        }
        made = {name: make_spec(found.rows[i]["spec"]) for name, i in found.picks.items()}
        read = search.table_read(recorded, dump(base))
        best = inside(made["best"]) if "best" in made else {}
        page = sections.swept(report, asked.stated, read, fronts_of(report), best)
        with all_or_none(asked.output):
            for name, spec in made.items():
                write_file(specs[name], spec.to_toml())
            write_file(asked.output / "sweep.csv", _csv(found))
            page.write(asked.plot)
    return Swept(report, found, found.trivial, made, page)


def _of_devices(base: Spec, data: Data) -> dict[str, Any]:
    """How many devices teach, choose and judge; and errors of simple predictors on those that judge."""
    assert data.devices is not None
    counts = {name: len(rows) for name, rows in data.devices._asdict().items()}
    return {"device_split": counts, "simple_left_out": trivial(base, data, judges=True)}


def fronts_of(report: Mapping[str, Any]) -> list[Panel]:
    """The error over bytes and, where they were measured, over instructions."""
    rows, picks, by = report["table"], report["picks"], report["measure"]
    if not rows:
        return []
    bytes_ = [(row["ram_bytes"], row[by], row["rule"], model_name(row), row["front"]) for row in rows]
    panels = [Panel("bytes of RAM", bytes_, {name: picks[name] for name in ("best", "cheapest") if name in picks})]
    measured = [i for i, row in enumerate(rows) if instructions(row) is not None]
    if measured:
        points = [
            (instructions(row), row[by], row["rule"], model_name(row), row["instruction_front"])
            for row in (rows[i] for i in measured)
        ]
        chosen = {name: measured.index(picks[name]) for name in ("best", "fastest") if picks.get(name) in measured}
        panels.append(Panel(f"instructions of an update, {report['target']} (mean)", points, chosen))  # type: ignore[arg-type]
    return panels


def _csv(found: Sweep) -> str:
    """One line for each rule, technique and size: errors, costs, the best values; or the reason why there are none."""
    measures = [key for key in MEASURES if any(key in row for row in found.rows)]
    values = list(dict.fromkeys(name for row in found.rows for name in row["values"]))
    left_out = [f"{key}_left_out" for key in measures if any("left_out" in row for row in found.rows)]
    head = ["rule", "technique", "size", *measures, *left_out, "state_bytes", "work_bytes", "ram_bytes"]
    head += ["update_mean", "update_max", "predict_mean", "predict_max", "flash_bytes", "stack_bytes"]
    head += ["front", "instruction_front", "picked", *values, "tried", "diverged", "reason"]
    text = io.StringIO()
    writer = csv.DictWriter(text, head, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    picked = {i: name for name, i in reversed(found.picks.items())}
    for i, row in enumerate(found.rows):
        fronts = {name: int(row[name]) for name in ("front", "instruction_front")}
        others = {f"{key}_left_out": error for key, error in row.get("left_out", {}).items()}
        writer.writerow(
            row | others | row["values"] | _cost_cells(row["costs"] or {}) | fronts | {"picked": picked.get(i)}
        )
    writer.writerows(found.refused)
    return text.getvalue()


def _cost_cells(costs: Mapping[str, Any]) -> dict[str, Any]:
    """What was measured on a target, by the names of the table's columns; for no measurement, nothing."""
    calls = {call: costs[call] for call in ("update", "predict") if costs.get(call)}
    counts = {f"{call}_{key}": figures[key] for call, figures in calls.items() for key in ("mean", "max")}
    return counts | {key: costs.get(key) for key in ("flash_bytes", "stack_bytes")}
