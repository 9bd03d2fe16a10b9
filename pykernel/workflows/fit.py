"""A kernel machine trained on a table, chosen by cross-validation, frozen for the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import Interrupted, UserError, need_package, option
from pykernel.files import all_or_none, need_free
from pykernel.gen.project import inside
from pykernel.host.origin import with_origin
from pykernel.host.scores import Ranges
from pykernel.report.common import table_read
from pykernel.report.document import Document, Section
from pykernel.report.fits import fitted
from pykernel.request.kinds import path_of, words
from pykernel.request.option import function, stated
from pykernel.rows.recordings import Recordings, recordings_of
from pykernel.spec.model import Spec, load_spec, make_spec
from pykernel.telling import counted, number, rate, refuse, simple_errors
from pykernel.tuning.tables import MODELS, LabelledTable, noted, read_table
from pykernel.workflows.given import called, need_known, need_report, opened, write_file
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.requests import Fit

if TYPE_CHECKING:
    from pykernel.training.selection import Selection
    from pykernel.workflows.fit_job import Found


@dataclass(frozen=True, repr=False)
class FittedTable:
    """A machine trained on a table.

    spec: the frozen model, for ``generate`` and ``check``.  report: all that was found, as ``pykernel fit --json`` prints it.
    selection: errors of all widths and ridges, where vectors were chosen among rows.
    """

    spec: Spec
    report: dict[str, Any]
    selection: Selection | None
    page: Document
    """The result for people: ``page.write("report.html")``; a notebook shows it."""

    def _repr_html_(self) -> str:
        return self.page._repr_html_()

    @property
    def error(self) -> float:
        """The cross-validated root mean square error; for classes, the fraction of rows with a wrong class."""
        return self.report["errors"]["cross_validated"]

    @property
    def warnings(self) -> list[str]:
        """What is probably not as it was meant, a sentence each."""
        return self.report["warnings"]

    def __repr__(self) -> str:
        shown, errors = rate if self.report["classes"] else number, self.report["errors"]
        told = {"cross-validated": "cross_validated", "held out": "held_out"}
        lines = [
            f"fit of {self.report['name']}: {self.report['model']}, {counted(self.report)}; {self.report['measure']}"
        ]
        lines += [f"  {text:16} {shown(errors[key])}" for text, key in told.items() if key in errors]
        lines += [f"  {name:16} {shown(error)}" for name, error in simple_errors(self.report).items()]
        lines.append(f"  {self.report['vectors']:,} vectors, {self.report['flash_bytes']:,} bytes of flash")
        return "\n".join([*lines, *(f"  {sentence}" for sentence in self.warnings)])


def run(given: Fit) -> FittedTable:
    """What ``pykernel fit`` does.  Leave-one-out costs O(l^3) for each width of l rows, O(l n^2) with n vectors."""
    many = recordings_of(given.data)
    given = replace(given, data=str(given.data) if many is None else many.source)
    _need_possible(given)
    table = _read(given, many)
    need_package("sklearn", "pykernel fit", "sklearn")
    with given.watch.progress() as show:
        show(0.0, "starting")
        if table.model == "trained":
            from pykernel.workflows.trained import fit as train
        elif table.model in ("svm", "lp"):
            from pykernel.workflows.svm import fit as train
        elif given.model is None:
            from pykernel.workflows.trained import fit_beside as train
        else:
            from pykernel.workflows.chosen import fit as train

    try:
        found = train(given, table)
    except KeyboardInterrupt:
        raise Interrupted from None
    found = replace(found, spec=with_origin(found.spec, str(given.data), found.report["data"], table.x))
    return FittedTable(found.spec, found.report, found.selection, _write(found, given, _page(table), stated(given)))


def _need_possible(given: Fit) -> None:
    """Raises UserError, before the work starts, for an unknown model, and if an output cannot be written."""
    if given.model is not None:
        need_known(given.model, MODELS, "model")
    for path in (given.output, given.plot):
        need_free(path_of(path), str(given.data), given.force)
    if given.plot and given.output and Path(given.plot).absolute() == Path(given.output).absolute():
        raise UserError(f"{given.plot}: is named for both the spec and the report; give two names")
    need_report(given.plot)
    content: dict[str, Any] = {"name": called(given), "precision": given.precision, "input": {"dim": 1}}
    kernel: dict[str, Any] = {"function": "gaussian", "sigma": 1.0}
    if given.precision == "int16":
        # try an empty frozen model: it is refused if int16 does not have this kernel
        kernel = {"function": given.kernel} | ({} if given.kernel == "linear" else {"gamma": 1.0})
        content |= {"input": {"dim": 1, "max_abs": 1.0}, "learning": {"rule": "frozen"}}
        content |= {"expansion": {"vectors": [[0.0]], "weights": [[0.0]], "bias": [0.0]}}
    make_spec(content | {"kernel": kernel}, "pykernel fit")


def _read(given: Fit, many: Recordings | None) -> LabelledTable:
    """Read the table.  Raises UserError if a spec cannot contain the names of its columns."""
    names, classes, signal, label = words(given.inputs), words(given.classes), None, given.label
    if given.signal is not None:
        names, label, known, signal = _of_signal(given)
        classes = classes or known
    if many is not None:
        refuse((signal is not None, f"{option('signal')} makes steps of one recording's rows; give one file"))
        with given.watch.progress(many.size) as show:
            table = read_table(many, str(given.data), names, label, classes, given.model, show)
        table.assumed.append(f"{len(many):,} devices: those that judge are left out whole")
    else:
        with opened(str(given.data), given.watch) as (source, file, show):
            table = read_table(file, source, names, label, classes, given.model, show, signal)
        noted(table.data, str(given.data))
    if table.stage is not None:
        return table
    make_spec(table.content | {"name": called(given), "kernel": {"sigma": 1.0}}, table.name)
    return table


def _of_signal(given: Fit) -> tuple[list[str], str, list[str], dict[str, Any]]:
    """Channels, label, classes, and the parts of the spec that define the steps of raw rows: precision and [signal]."""
    if given.inputs is not None:
        inputs, signal = option("inputs"), option("signal")
        raise UserError(f"{inputs} is for data without {signal}; with it, [signal] names the channels")
    if isinstance(given.signal, str | Path):
        spec, where = load_spec(given.signal), str(given.signal)
    else:
        spec, where = spec_and_memory(given.signal)[0], "the spec"
    if spec.signal is None:
        raise UserError(f"{where}: has no [signal]; give a spec that has one, or leave {option('signal')} out")
    label = given.label or spec.label.column
    if label is None:
        raise UserError(f"{where}: [label] names no column; give {option('label')}")
    content = spec.signal.model_dump(mode="json", exclude_unset=True)
    classes = list(spec.label.classes or ()) if label == spec.label.column else []
    return list(spec.signal.channels), label, classes, {"precision": given.precision, "signal": content}


def _page(table: LabelledTable) -> Section:
    """The table as it was read, for a report."""
    labels = [] if table.classes else [table.y.astype(np.float64)]
    ranges = Ranges([*table.inputs, *([table.column or "label"] if labels else [])])
    ranges.add(np.column_stack([table.x, *labels]))
    shares = ", ".join(f"{name} {rate(float((table.y == i).mean()))}" for i, name in enumerate(table.classes or ()))
    told = f"Rows of each class of {table.column}: {shares}." if shares else ""
    return table_read(ranges.report(), ranges.courses(), ranges.rows, told)


def _write(found: Found, given: Fit, read: Section, arguments: Mapping[str, Any]) -> Document:
    """The spec and the report, or none of them.  Returns the report for people."""
    spec = None if given.output is None else str(given.output)
    found.report.update(output=spec, spec=spec, plot=str(given.plot) if given.plot else None)
    drawn = None if found.selection is None else found.selection.surface_told()
    page = fitted(found.report, arguments, read, drawn, inside(found.spec))
    with all_or_none():
        if given.output is not None:
            write_file(Path(given.output), found.spec.to_toml())
        if given.plot is not None:
            page.write(Path(given.plot))
    return page


fit = function(Fit, run)
