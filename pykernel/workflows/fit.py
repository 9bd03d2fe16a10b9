"""Train a kernel machine on a table, choose its parameters by cross-validation, and freeze it for the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from pykernel.errors import Interrupted, UserError, need_package, shown_option
from pykernel.files import all_or_none, need_free
from pykernel.gen.project import inside
from pykernel.host.origin import with_origin
from pykernel.host.scores import Ranges
from pykernel.report.common import table_read
from pykernel.report.document import Document, Result, Section
from pykernel.report.fits import fitted
from pykernel.request.kinds import path_of, words
from pykernel.request.option import checked, declared, function, stated
from pykernel.rows.columns import coarse_told
from pykernel.rows.recordings import Recordings, recordings_of
from pykernel.spec.model import Spec, load_spec, make_spec
from pykernel.telling import expected_error_sentences, percent, raise_first_error
from pykernel.tuning.notes import noted
from pykernel.tuning.tables import MODELS, LabelledTable, read_table
from pykernel.workflows.arguments import (
    called,
    need_known,
    need_report,
    need_unweighted,
    opened,
    trained_by,
    write_file,
)
from pykernel.workflows.fit_request import Fit
from pykernel.workflows.models import spec_and_memory

if TYPE_CHECKING:
    from pykernel.bases.basis import Basis
    from pykernel.training.selection import Selection
    from pykernel.workflows.fit_job import Found


@dataclass(frozen=True, repr=False)
class FittedTable(Result):
    """A machine trained on a table, or a basis of its rows.

    spec: the model, for ``generate`` and ``check``; None if only a basis was written.  report: all results, as ``pykernel fit --json``
    prints them.  selection: errors of all widths and ridges, if vectors were chosen among rows.  basis: the vectors, their kernel and
    coordinates, if a basis was requested.
    """

    spec: Spec | None
    report: dict[str, Any]
    page: Document
    """The result as a document.  ``page.write("report.html")`` writes it to a file, and a notebook shows it."""
    selection: Selection | None = None
    basis: Basis | None = None

    @property
    def error(self) -> float | None:
        """The cross-validated root mean square error; for classes, the fraction of rows with a wrong class.  None without a label."""
        return self.report["errors"].get("cross_validated")

    @property
    def left_out(self) -> list[float]:
        """For each n from 0, the fraction of tr K that the first n vectors of the basis do not capture."""
        return self.report["left_out"]


def run(request: Fit) -> FittedTable:
    """Run ``pykernel fit``.  Leave-one-out on l rows costs O(l^3) for each width if all rows are vectors, and O(l n^2) with n vectors."""
    request = _filled(request)
    try:
        if request.of_basis:
            from pykernel.workflows import basis

            chosen = basis.fit(request)
            return FittedTable(chosen.spec, chosen.report, chosen.page, basis=chosen.basis)
        return _trained(request)
    except KeyboardInterrupt:
        raise Interrupted from None


def _filled(request: Fit) -> Fit:
    """Return the arguments; values that were not given are taken from the spec.  The spec itself remains an argument only if it has [signal].

    The width is not taken from the spec but chosen again: every spec has a width, so a width in the spec does not mean that the user
    wants to keep it.
    """
    if request.spec is None:
        return request
    spec = load_spec(request.spec) if isinstance(request.spec, str | Path) else spec_and_memory(request.spec)[0]
    need_unweighted(spec)
    content, said = spec.model_dump(mode="json", exclude_unset=True), dict[str, Any]()
    for each in declared(Fit):
        section, _, key = (each.opt.key or "").rpartition(".")
        value = (content.get(section) or {} if section else content).get(key)
        other = each.name == "rule" and value not in get_args(each.kinds[0])  # fit does not make models with this rule
        if value is not None and not other and each.name not in ("name", "sigma", "gamma"):
            said[each.name] = value
    if spec.signal is None:
        said |= {"inputs": spec.input.columns}
    elif request.inputs is not None:
        raise UserError(
            f"{shown_option('inputs')} names columns, but the spec's [signal] already names its channels; leave {shown_option('inputs')} out"
        )
    elif request.label is None and spec.label.column is None:
        raise UserError(f"the spec's [label] names no column; give {shown_option('label')}")
    said |= {"label": spec.label.column}
    if request.label not in (None, spec.label.column):
        said.pop("classes", None)
    own = {name: value for name, value in said.items() if getattr(request, name) == getattr(Fit, name)}
    return checked(replace(request, **own, spec=None if spec.signal is None else spec))


def _trained(request: Fit) -> FittedTable:
    many = recordings_of(request.data)
    request = replace(request, data=str(request.data) if many is None else many.source)
    _need_possible(request)
    table = _read(request, many)
    numbers = table.x if table.classes else np.column_stack([table.x, table.y])
    type_of = np.dtype(np.float32 if request.precision == "float32" else np.float64)
    table.warnings += filter(None, [coarse_told(numbers, [*table.inputs, str(table.column)], type_of)])
    need_package("sklearn", "pykernel fit", "sklearn")
    with request.watch.progress() as show:
        show(0.0, "starting")
        if table.model == "trained":
            from pykernel.workflows.trained import fit as train
        elif table.model == "network":
            from pykernel.workflows.network import fit as train
        elif table.model in ("svm", "lp"):
            from pykernel.workflows.svm import fit as train
        elif request.model is None:
            from pykernel.workflows.beside import fit as train
        else:
            from pykernel.workflows.chosen import fit as train
    result = train(request, table)
    result.report["warnings"] += expected_error_sentences(result.report)
    spec = with_origin(result.spec, str(request.data), result.report["data"], table.x)
    result = replace(result, spec=trained_by(request, spec))
    return FittedTable(
        result.spec, result.report, _write(result, request, _page(table), stated(request)), result.selection
    )


def _need_possible(request: Fit) -> None:
    """Raise UserError, before any computation starts, if the model is unknown or an output cannot be written."""
    if request.model is not None:
        need_known(request.model, MODELS, "model")
    need_free(path_of(request.output), str(request.data), request.force)
    need_free(path_of(request.report), str(request.data), force=True)  # every command overwrites its report
    if request.report and request.output and Path(request.report).absolute() == Path(request.output).absolute():
        raise UserError(f"{request.report}: is given for both the spec and the report; give two different names")
    need_report(request.report)
    content: dict[str, Any] = {"name": called(request), "precision": request.precision, "input": {"dim": 1}}
    kernel: dict[str, Any] = {"function": "gaussian", "sigma": 1.0}
    if request.precision == "int16":
        # a frozen model with one zero vector: make_spec refuses it if int16 does not have this kernel
        kernel = {"function": request.kernel} | ({} if request.kernel == "linear" else {"gamma": 1.0})
        content |= {"input": {"dim": 1, "max_abs": 1.0}, "learning": {"rule": "frozen"}}
        content |= {"expansion": {"vectors": [[0.0]], "weights": [[0.0]], "bias": [0.0]}}
    make_spec(content | {"kernel": kernel}, "pykernel fit")


def _read(request: Fit, many: Recordings | None) -> LabelledTable:
    """Read the table.  Raises UserError if a spec cannot contain the names of the table's columns."""
    names, classes, signal, label = words(request.inputs), words(request.classes), None, request.label
    if isinstance(request.spec, Spec) and (stage := request.spec.signal) is not None:
        names = list(stage.channels)
        signal = {"precision": request.precision, "signal": stage.model_dump(mode="json", exclude_unset=True)}
    assert label is not None
    if many is not None:
        raise_first_error(
            (signal is not None, "[signal] makes steps from the rows of a single recording; give one file")
        )
        with request.watch.progress(many.size) as show:
            table = read_table(many, str(request.data), names, label, classes, request.model, show)
        table.assumed.append(f"{len(many):,} devices: errors are estimated on whole devices that are left out")
    else:
        with opened(str(request.data), request.watch) as (source, file, show):
            table = read_table(file, source, names, label, classes, request.model, show, signal)
        noted(table.data, str(request.data))
    if table.stage is not None:
        return table
    make_spec(table.content | {"name": called(request), "kernel": {"sigma": 1.0}}, table.name)
    return table


def _page(table: LabelledTable) -> Section:
    """Return the section of a report that describes the table as it was read."""
    labels = [] if table.classes else [table.y.astype(np.float64)]
    ranges = Ranges([*table.inputs, *([table.column or "label"] if labels else [])])
    ranges.add(np.column_stack([table.x, *labels]))
    shares = ", ".join(f"{name} {percent(float((table.y == i).mean()))}" for i, name in enumerate(table.classes or ()))
    classes_sentence = f"Classes of {table.column}, with their shares of the rows: {shares}." if shares else ""
    return table_read(ranges.report(), ranges.courses(), ranges.rows, classes_sentence)


def _write(result: Found, request: Fit, read: Section, arguments: Mapping[str, Any]) -> Document:
    """Write the spec and the report: both files or neither.  Returns the report as a document."""
    spec = None if request.output is None else str(request.output)
    result.report.update(output=spec, spec=spec, report=str(request.report) if request.report else None)
    drawn = None if result.selection is None else result.selection.surface_told()
    page = fitted(result.report, arguments, read, drawn, inside(result.spec))
    with all_or_none():
        if request.report is not None:
            page.write(Path(request.report))
        if (
            request.output is not None
        ):  # written last, so that a failed run can be repeated: without --force, fit does not replace this file
            write_file(Path(request.output), result.spec.to_toml())
    return page


fit = function(Fit, run)
