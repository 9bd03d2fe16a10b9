"""What ``pykernel sweep`` writes: the table, the plot, and the specs of what is best."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykernel.cli.output import MEASURES, model_name
from pykernel.errors import MissingExtra
from pykernel.files import whole_file
from pykernel.plots import Panel, pareto_figure
from pykernel.spec.model import Spec, make_spec
from pykernel.tuning.sweep import Data, Sweep, instructions


def picks_of(found: Sweep) -> dict[str, int]:
    every = {"best": found.best, "cheapest": found.cheapest, "fastest": found.fastest}
    return {name: i for name, i in every.items() if i is not None}


def write(out: Path, base: Spec, found: Sweep) -> dict[str, Any]:
    """The table, the plot and the specs; their paths."""
    specs = {}
    for name, i in picks_of(found).items():
        specs[name] = str(out / f"{name}.toml")
        with whole_file(specs[name]) as file:
            file.write(make_spec(found.rows[i]["spec"]).to_toml().encode())
    with whole_file(out / "sweep.csv") as file:
        file.write(_csv(found).encode())
    note = None
    if found.rows:
        try:
            pareto_figure(
                out / "pareto.png",
                f"{base.name}: error against cost",
                f"{MEASURES[found.by]}, second half",
                _panels(found),
            )
        except MissingExtra as missing:
            note = str(missing)
    plot = str(out / "pareto.png") if found.rows and note is None else None
    return {"specs": specs, "csv": str(out / "sweep.csv"), "plot": plot, "plot_note": note}


def _panels(found: Sweep) -> list[Any]:
    picks = picks_of(found)
    bytes_ = [(row["ram_bytes"], row[found.by], row["rule"], model_name(row), row["front"]) for row in found.rows]
    panels = [Panel("bytes of RAM", bytes_, {name: picks[name] for name in ("best", "cheapest") if name in picks})]
    measured = [i for i, row in enumerate(found.rows) if instructions(row) is not None]
    if measured:
        points = [
            (instructions(row), row[found.by], row["rule"], model_name(row), row["instruction_front"])
            for row in (found.rows[i] for i in measured)
        ]
        chosen = {name: measured.index(picks[name]) for name in ("best", "fastest") if picks.get(name) in measured}
        panels.append(Panel(f"instructions of an update, {found.target} (mean)", points, chosen))  # type: ignore[arg-type]
    return panels


def _csv(found: Sweep) -> str:
    """One line for each rule, technique and size: errors, costs, the values that were best; or why there is nothing."""
    measures = [key for key in MEASURES if any(key in row for row in found.rows)]
    values = list(dict.fromkeys(name for row in found.rows for name in row["values"]))
    costs = ("update_mean", "update_max", "predict_mean", "predict_max", "flash_bytes", "stack_bytes")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head = ["rule", "technique", "size", *measures, "state_bytes", "work_bytes", "ram_bytes", *costs]
    writer.writerow([*head, "front", "instruction_front", "picked", *values, "tried", "diverged", "reason"])
    picked = {i: name for name, i in reversed(picks_of(found).items())}
    for i, row in enumerate(found.rows):
        cells = [row["rule"], row["technique"], row["size"], *(row.get(key) for key in measures)]
        cells += [row["state_bytes"], row["work_bytes"], row["ram_bytes"], *_cost_cells(row["costs"])]
        cells += [int(row["front"]), int(row["instruction_front"]), picked.get(i)]
        cells += [*(row["values"].get(name) for name in values), row["tried"], row["diverged"], None]
        writer.writerow(cells)
    for row in found.refused:
        blank = [None] * (len(measures) + 3 + len(costs) + 3 + len(values) + 2)
        writer.writerow([row["rule"], row["technique"], row["size"], *blank, row["reason"]])
    return text.getvalue()


def _cost_cells(costs: Mapping[str, Any] | None) -> list[Any]:
    if not costs or "refused" in costs:
        return [None] * 6
    calls = [costs[call][key] if costs.get(call) else None for call in ("update", "predict") for key in ("mean", "max")]
    return [*calls, costs["flash_bytes"], costs["stack_bytes"]]


def report_of(base: Spec, data: Data, found: Sweep) -> dict[str, Any]:
    return {
        "name": base.name,
        "rows": len(data.x),
        **data.raw_rows,
        "delay": data.delay,
        "score": found.by,
        "table": found.rows,
        "refused": found.refused,
        "trivial": found.trivial,
        **picks_of(found),
        "tries": found.tries,
        "target": found.target,
        "note": found.note,
    }
