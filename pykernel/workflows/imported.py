"""Run ``pykernel import``: turn a model that was trained elsewhere into a frozen spec, and compare the spec's outputs with the model's."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pykernel.errors import CheckFailed, UserError, shown_option
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
from pykernel.progress import working
from pykernel.report.document import Facts, Found, Part, Table, document_of_parts
from pykernel.rows.columns import Columns
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.signal import raw_samples_needed
from pykernel.telling import QUIET, byte_count, path_word
from pykernel.training.distilled import MANY, Distilled, distil
from pykernel.training.machine import Machine
from pykernel.workflows.arguments import opened, prefix, write_file
from pykernel.workflows.requests import Import

CHECKED = 1000
"""Largest number of rows on which the spec is compared with the original or the smaller model."""
RAW = 2**17
"""Largest number of raw samples in the comparison, not counting the samples before the first features.  A
smaller model is trained on at most this many raw samples."""


def run(request: Import) -> Found:
    """Import a model.  Returns the spec's contents and, with data, the comparison.  The spec is written unless the comparison fails."""
    model, out, state, data, vectors = request.model, request.output, request.start, request.data, request.vectors
    for path in (model, state, data):
        if path is not None:
            need_not_data(out, str(path))
    if out.exists() and not request.force:
        raise UserError(f"{out}: already exists; give another file, or {shown_option('force')} to replace it")
    source, answers = None, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if state is None:
            machine, source = read_file(model)
        else:
            machine, answers = read_device(
                model, state, vectors, request.trust_code, lambda path: request.watch.tell(f"executing {path}")
            )
    names = _all_words(request.inputs)
    rows = _rows_needed(machine, vectors)
    read: dict[str, Any] = {}
    x = None if data is None else _first_rows(data, machine.columns if names is None else names, rows, read)
    name = prefix(out) if request.name is None else request.name
    how = (name, request.precision, request.max_abs, names, _all_words(request.classes), request.distance)
    with told_of_file(model):
        seen = None if x is None else inputs_of(machine, x)
        ranges = ranging(machine, seen)
    distilled, before = None, None
    if vectors is not None:
        if answers is None:  # with a device's state, the machine is only a part of the model, so there is no spec
            with contextlib.suppress(UserError):  # not every model can become a spec
                before = build(spec_of_file(model, machine, *how, ranges)[0]).figures["const_bytes"]
        with told_of_file(model), working("training"):
            distilled = distil(machine, vectors, seen, answers=answers)
        machine = distilled.machine
    spec, warned = spec_of_file(model, machine, *how, ranges)
    spec = _labelled(spec, _all_words(request.label))
    warned += [" ".join(str(warning.message).split()) for warning in caught]
    report = {"imported": str(model)} | _contents(spec, machine)
    report |= {"output": str(out), "spec": str(out), "warnings": [*dict.fromkeys(warned)], "data": read or None}
    if distilled is not None:
        report["lost"] = _lost(distilled, before)
        if seen is not None:
            report["rounding"] = compare_smaller(spec, machine, seen[:CHECKED])
    elif x is not None:
        with warnings.catch_warnings():
            # ignore warnings about column names, because the columns are selected by the spec's names
            warnings.simplefilter("ignore")
            report["rounding"] = compare(spec, machine, source, x)
    request.watch.data(read or None)
    report["ok"] = data is None or report["rounding"]["ok"]
    wrong = None
    if report["ok"]:
        write_file(out, spec.to_toml())
    else:
        wrong = CheckFailed(
            "{data}: the spec and the model disagree: decision values differ by up to {difference:.3g}, and the predicted class differs "
            "in {classes_differ:,} rows; nothing was written".format(data=data, **report["rounding"])
        )
    parts = [_contents_table(report, spec), *_lost_parts(report), *_compared(report), Facts([("spec", report["spec"])])]
    return Found(report, document_of_parts(*parts, next=[f"pykernel generate {path_word(out)} -o out/"]), wrong)


def _labelled(spec: Spec, columns: list[str] | None) -> Spec:
    """Return the spec with ``columns`` as the columns of its labels.  Raises UserError if there are too many or too few columns."""
    if columns is None:
        return spec
    wanted = 1 if spec.label.classes else spec.outputs
    if len(columns) != wanted:
        raise UserError(
            f"{shown_option('label')} names {len(columns)} columns; it must name {wanted}, one for each label that the model predicts"
        )
    content = spec.model_dump(mode="json", exclude_unset=True)
    named = {"columns": columns} if len(columns) > 1 else {"column": columns[0]}
    if len(columns) > 1:
        content.get("label", {}).pop("outputs", None)
    return make_spec(
        content | {"label": {**content.get("label", {}), **named}}, shown_option("label"), custom=spec.custom
    )


def _contents_table(report: Mapping[str, Any], spec: Spec) -> Table:
    """Return a table of the spec's contents."""
    kernel = dict(report["kernel"])
    function = kernel.pop("function")
    kinds = {
        "ovo": "; one for each pair of classes",
        "ovo_vote": "; one for each pair of classes, each with one vote",
    }
    rounded = "at most {error_bound:.2g}; up to {error_measured:.2g} measured on 2,000 random inputs"
    parts = {
        "kernel": ", ".join([function, *(f"{key} {value:.6g}" for key, value in kernel.items())]),
        "inputs": f"{len(report['inputs']):,}, within {spec.input_max_abs:g}{' of the center' * spec.real.is_int16}",
        **_unit_counts(report, spec),
        "functions": f"{report['functions']:,}{kinds.get(report['decision'], '')}",
        "weights": f"{report['weights']:,}",
        "classes": ", ".join(report["classes"] or ()),
        "probabilities": "yes" if report["probabilities"] else "",
        "distances": report["distance"] if function == "gaussian" else "",
        "flash": byte_count(report["flash_bytes"]),
        "rounding": rounded.format_map(report) if "error_bound" in report else "",
    }
    rows = [(part, what) for part, what in parts.items() if what]
    return Table(("part", "what"), rows, (0, 1), title=f"{report['name']}: {report['source']}, {spec.precision}")


def _unit_counts(report: Mapping[str, Any], spec: Spec) -> dict[str, str]:
    if report["kernel"]["function"] not in HIDDEN:
        return {"vectors": f"{report['vectors']:,}"}
    eight = spec.real.is_int16 and spec.inner.config.eight
    return {"hidden units": f"{report['vectors']:,}{', weights of 8 bits' * eight}"}


def _lost_parts(report: Mapping[str, Any]) -> list[Part]:
    """Say how much the outputs change with fewer vectors."""
    if (lost := report.get("lost")) is None:
        return []
    rows = []
    for key, what, size, unit in (
        ("error", "of the function", 1.0, ""),
        ("classes_differ", "of the classes", 100.0, " %"),
    ):
        if (value := lost[key]) is None:
            continue
        own = key == "error" or lost["error"] is None
        steps = [lost["steps"][step] if own else None for step in ("projected", "weighed", "moved")]
        rows.append(
            (what, *("-" if each is None else f"{size * each:.3g}{unit}" for each in (*value.values(), *steps)))
        )
    which = "made-up rows" if lost["made_up"] else "left-out rows"
    title = f"difference from the model with {lost['vectors_before']} vectors, on {lost['rows']:,} {which}"
    before, after = (byte_count(size) for size in (lost["flash_bytes_before"], report["flash_bytes"]))
    columns = ("", "error", "low", "high", "projected", "weighed", "moved")
    return [Table(columns, rows, title=title), Facts([("flash", before and f"{before} before, {after} now")])]


def _compared(report: Mapping[str, Any]) -> list[Part]:
    """Return the comparison of the spec's outputs with the model's outputs."""
    if (comparison := report.get("rounding")) is None:
        return []
    numbers = [f"{comparison[key]:,}" for key in ("rows", "refused", "undecided")]
    rounding = comparison["rounding"]
    errors = [f"{each:.2g}" for each in (comparison["difference"], *rounding.values(), comparison["allowed"])]
    differ = f"{comparison['classes_differ']:,}" if report["classes"] else "-"
    which = "smaller" if "lost" in report else "original"
    columns = (
        "rows",
        "refused",
        "undecided",
        "difference",
        *(f"of {part}" for part in rounding),
        "allowed",
        "classes differ",
    )
    return [Table(columns, [[*numbers, *errors, differ]], title=f"comparison with the {which} model")]


def _contents(spec: Spec, machine: Machine) -> dict[str, Any]:
    """Return the spec's contents, as plain values for the report."""
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


def _all_words(text: str | None) -> list[str] | None:
    """Return all words between commas.  Empty and repeated words are kept, so that an error message can name them."""
    return None if text is None else [word.strip() for word in text.split(",")]


def _rows_needed(machine: Machine, vectors: int | None) -> int:
    """Return the number of table rows that are needed for the comparison or, if ``vectors`` is given, for training.

    For a model of raw samples, these rows are raw samples.
    """
    if machine.signal is None or machine.signal.signal is None:
        return CHECKED if vectors is None else MANY
    signal = machine.signal.signal
    return RAW if vectors is not None else raw_samples_needed(signal) + min((CHECKED - 1) * signal.step, RAW)


def _first_rows(data: str, columns: Sequence[str] | None, rows: int, read: dict[str, Any]) -> np.ndarray:
    """Return the inputs, or the raw samples, of the first rows of a table, (rows, DIM).

    read: a dict to which a description of the table is added.
    """
    if columns is None:
        raise UserError(f"{data}: the model does not name its inputs; add {shown_option('inputs')} with their columns")
    with opened(data, QUIET) as (name, file, _):
        batch = next(read_samples(file, name, columns, (), rows, seen=(seen := Columns())))
        seen.end()
    read |= seen.report()
    return batch.x


def _lost(distilled: Distilled, before: int | None) -> dict[str, Any]:
    """Return the differences between a smaller machine's outputs and the model's outputs, as plain values for the report."""
    return {
        "vectors_before": distilled.vectors_before,
        "flash_bytes_before": before,
        "rows": distilled.rows,
        "made_up": distilled.made_up,
        "error": None if distilled.error is None else asdict(distilled.error),
        "classes_differ": None if distilled.classes_differ is None else asdict(distilled.classes_differ),
        "steps": distilled.steps,
    }
