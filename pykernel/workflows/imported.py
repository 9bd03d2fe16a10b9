"""What ``pykernel import`` does: a model that was trained elsewhere, as a frozen spec, compared with its source."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pykernel.errors import UserError, option
from pykernel.files import need_not_data
from pykernel.gen.project import build
from pykernel.host.samples import read_samples
from pykernel.importers.importing import (
    compare,
    compare_smaller,
    inputs_of,
    ranging,
    read_device,
    read_file,
    spec_of_file,
    told_of_file,
)
from pykernel.parallel import working
from pykernel.rows.columns import Columns
from pykernel.spec.model import Spec
from pykernel.spec.signal import raw_samples_needed
from pykernel.telling import QUIET
from pykernel.training.distilled import MANY, Distilled, distil
from pykernel.training.trained import Machine
from pykernel.workflows.given import opened, prefix, write_file
from pykernel.workflows.requests import Import

CHECKED = 1000
"""Most rows that are compared with the source."""
RAW = 2**17
"""Most raw samples for the comparison, in addition to the samples before the first features."""


def run_import(given: Import) -> tuple[Spec, dict[str, Any]]:
    """The spec, and a report: the spec's contents and, with data, the comparison with the model.  The spec is written, unless that failed."""
    model, out, state, data, vectors = given.model, given.output, given.start, given.data, given.vectors
    for path in (model, state, data):
        if path is not None:
            need_not_data(out, str(path))
    if out.exists() and not given.force:
        raise UserError(f"{out}: is there already; give another file, or {option('force')} to replace it")
    source, answers = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if state is None:
            machine, source = read_file(model)
        else:
            machine, answers = read_device(
                model, state, vectors, given.trust_code, lambda path: given.watch.tell(f"executing {path}")
            )
    names = _all_words(given.inputs)
    rows = _rows_needed(machine, vectors)
    read: dict[str, Any] = {}
    x = None if data is None else _first_rows(data, machine.columns if names is None else names, rows, read)
    name = prefix(out) if given.name is None else given.name
    how = (name, given.precision, given.max_abs, names, _all_words(given.classes), given.distance)
    with told_of_file(model):
        seen = None if x is None else inputs_of(machine, x)
        ranges = ranging(machine, seen)
    found, before = None, None
    if vectors is not None:
        if answers is None:  # with answers, the machine is only a part of the model and has no spec
            with contextlib.suppress(UserError):  # it cannot have a spec
                before = build(spec_of_file(model, machine, *how, ranges)[0]).figures["const_bytes"]
        with told_of_file(model), working("training"):
            found = distil(machine, vectors, seen, answers=answers)
        machine = found.machine
    spec, told = spec_of_file(model, machine, *how, ranges)
    told += [" ".join(str(warning.message).split()) for warning in caught]
    report = {"imported": str(model)} | _contents(spec, machine)
    report |= {"output": str(out), "spec": str(out), "warnings": [*dict.fromkeys(told)], "data": read or None}
    if found is not None:
        report["lost"] = _lost(found, before)
        if seen is not None:
            report["rounding"] = compare_smaller(spec, machine, seen[:CHECKED])
    elif x is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about column names: the columns are selected by the spec's names
            report["rounding"] = compare(spec, machine, source, x)
    given.watch.data(read or None)
    report["ok"] = data is None or report["rounding"]["ok"]
    if report["ok"]:
        write_file(out, spec.to_toml())
    return spec, report


def _contents(spec: Spec, machine: Machine) -> dict[str, Any]:
    """What the spec holds, as plain values for the report."""
    kernel, expansion, figures = spec.kernel, spec.expansion, build(spec).figures
    assert kernel is not None and expansion is not None
    assert expansion.weights is not None and expansion.bias is not None
    return {
        "source": machine.source,
        "name": spec.name,
        "kernel": {key: value for key, value in kernel.model_dump(exclude_unset=True).items() if value is not None},
        "inputs": list(spec.input.columns or map(str, range(spec.dim))),
        "max_abs": spec.input.max_abs,
        "vectors": len(expansion.vectors),
        "weights": sum(map(len, expansion.weights)),
        "functions": len(expansion.bias),
        "classes": list(spec.label.classes) if spec.label.classes else None,
        "decision": expansion.decision,
        "distance": expansion.distance,
        "probabilities": expansion.calibration is not None,
        "flash_bytes": figures["const_bytes"],
        **{key: figures[key] for key in ("error_bound", "error_measured") if key in figures},
    }


def _all_words(given: str | None) -> list[str] | None:
    """All words between commas, also empty and repeated ones, so that an error message can name these."""
    return None if given is None else [word.strip() for word in given.split(",")]


def _rows_needed(machine: Machine, vectors: int | None) -> int:
    """How many rows of a table are compared, or with ``vectors`` trained on; for raw samples, as many as give as many
    steps.
    """
    if machine.signal is None or machine.signal.signal is None:
        return CHECKED if vectors is None else MANY
    signal = machine.signal.signal
    return RAW if vectors is not None else raw_samples_needed(signal) + min((CHECKED - 1) * signal.step, RAW)


def _first_rows(data: str, columns: Sequence[str] | None, rows: int, read: dict[str, Any]) -> np.ndarray:
    """The inputs, or the raw samples, of the first rows of a table, (rows, DIM).  read: receives what was read."""
    if columns is None:
        raise UserError(f"{data}: the model does not name its inputs; add {option('inputs')} with their columns")
    with opened(data, QUIET) as (name, file, _):
        batch = next(read_samples(file, name, columns, (), rows, seen=(seen := Columns())))
        seen.end()
    read |= seen.report()
    return batch.x


def _lost(found: Distilled, before: int | None) -> dict[str, Any]:
    """The loss of a smaller machine, as plain values for the report."""
    return {
        "vectors_before": found.vectors_before,
        "flash_bytes_before": before,
        "rows": found.rows,
        "made_up": found.made_up,
        "error": None if found.error is None else asdict(found.error),
        "classes_differ": None if found.classes_differ is None else asdict(found.classes_differ),
        "steps": found.steps,
    }
