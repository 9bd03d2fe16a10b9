"""A kernel machine trained on a table, chosen by cross-validation, frozen for the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import Interrupted, UserError, need_package, option
from pykernel.files import all_or_none, need_free
from pykernel.gen.project import inside
from pykernel.host.scores import Ranges
from pykernel.report.common import table_read
from pykernel.report.document import Document, Section
from pykernel.report.fits import fitted
from pykernel.rows.recordings import recordings_of
from pykernel.spec.model import Spec, load_spec, make_spec
from pykernel.telling import QUIET, Watch, counted, number, rate, refuse, simple_errors
from pykernel.tuning.tables import MODELS, LabelledTable, noted, read_table
from pykernel.workflows.asked import FitAsked, asked
from pykernel.workflows.given import Numbers, need_known, need_report, opened, stated, words, write_file
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.simulate import with_origin

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


def fit(
    data: str | Path | Sequence[str | Path],
    *,
    output: str | Path | None = None,
    label: str | None = None,
    inputs: str | Sequence[str] | None = None,
    signal: Spec | str | Path | None = None,
    classes: str | Sequence[str] | None = None,
    model: str | None = None,
    kernel: str = "gaussian",
    sigma: Numbers = None,
    gamma: Numbers = None,
    coef0: float = 1.0,
    degree: int = 3,
    ridge: Numbers = None,
    coding: str | None = None,
    n_max: int | None = None,
    basis: str | None = None,
    with_: str | Mapping[str, Any] | None = None,
    flash: str | int | None = None,
    cv: str | int = "deleted",
    by: str | None = None,
    loss: str | None = None,
    hold_out: float = 0.0,
    standardise: bool | None = None,
    seed: int = 0,
    jobs: str | int | None = None,
    precision: str = "float32",
    name: str | None = None,
    plot: str | Path | None = None,
    force: bool = False,
    watch: Watch = QUIET,
) -> FittedTable:
    """Train a kernel machine on a table, as a spec for the device: what ``pykernel fit`` does.

    Leave-one-out chooses width and ridge.  Cost: O(l^3) for each width of l rows, O(l n^2) with n vectors.

    Parameters
    ----------
    data : path, or list of paths
        A table (CSV, Parquet, Arrow).  A folder, a glob, or several: many devices, one in each file.  Errors are then those on devices
        that are left out.
    output : path, optional
        The spec's file; without it nothing is written.
    label : str, optional
        The label's column; by default, the last.
    inputs, classes : list of str, optional
        The inputs' columns; the classes, of which with two the second is positive.
    signal : Spec or path, optional
        A spec whose [signal] makes the inputs of raw rows.
    model : str, optional
        kfd, ls-svm, krr, svm, lp or trained; by default the better of vectors that are chosen and trained.
    kernel, sigma, gamma, coef0, degree : str, numbers
        The kernel, and the widths to try.
    ridge : float or list of float, optional
        Ridges to try.
    coding, by, cv, loss : str
        How classes are coded, what is minimised, how errors are estimated, what trained vectors minimise.
    n_max, flash : int, int or str
        Most vectors; a limit for their bytes, such as "4k".
    basis, with_ : str, dict
        How vectors are chosen, and options of that method.
    hold_out : float
        The part of the rows that are kept for a test.
    standardise : bool, optional
        Whether inputs are scaled; by default, if their scales differ.
    seed, jobs : int
        Of folds, the test and the basis; processes.
    precision : str
        float32, float64 or int16.
    name : str, optional
        The prefix in C; by default as ``output`` is called, or "model".
    plot : path, optional
        A report, FILE.html.
    force : bool
        Whether files are overwritten.
    watch : Watch
        Who is told how far the work is.

    Raises
    ------
    UserError
        One sentence says what is wrong with the data or an argument.  No file is written then.
    """
    if (many := recordings_of(data)) is not None:
        data = many.source
    given, arguments = asked(FitAsked, locals()), stated(locals(), fit)
    _need_possible(given)
    table = _read(given)
    need_package("sklearn", "pykernel fit", "sklearn")
    with watch.progress() as show:
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
    found = replace(found, spec=with_origin(found.spec, given.data, found.report["data"], table.x))
    return FittedTable(found.spec, found.report, found.selection, _write(found, given, _page(table), arguments))


def _need_possible(given: FitAsked) -> None:
    """Raises UserError, before the work starts, for an unknown model, and if an output cannot be written."""
    if given.model is not None:
        need_known(given.model, MODELS, "model")
    for path in (given.output, given.plot):
        need_free(path, given.data, given.force)
    if given.plot and given.output and given.plot.absolute() == given.output.absolute():
        raise UserError(f"{given.plot}: is named for both the spec and the report; give two names")
    need_report(given.plot)
    content: dict[str, Any] = {"name": given.called, "precision": given.precision, "input": {"dim": 1}}
    kernel: dict[str, Any] = {"function": "gaussian", "sigma": 1.0}
    if given.precision == "int16":
        # try an empty frozen model: it is refused if int16 does not have this kernel
        kernel = {"function": given.kernel} | ({} if given.kernel == "linear" else {"gamma": 1.0})
        content |= {"input": {"dim": 1, "max_abs": 1.0}, "learning": {"rule": "frozen"}}
        content |= {"expansion": {"vectors": [[0.0]], "weights": [[0.0]], "bias": [0.0]}}
    make_spec(content | {"kernel": kernel}, "pykernel fit")


def _read(given: FitAsked) -> LabelledTable:
    """Read the table.  Raises UserError if a spec cannot contain the names of its columns."""
    names, classes, signal, label = words(given.inputs), words(given.classes), None, given.label
    if given.signal is not None:
        names, label, known, signal = _of_signal(given)
        classes = classes or known
    if given.many is not None:
        refuse((signal is not None, f"{option('signal')} makes steps of one recording's rows; give one file"))
        with given.watch.progress(given.many.size) as show:
            table = read_table(given.many, given.data, names, label, classes, given.model, show)
        table.assumed.append(f"{len(given.many):,} devices: those that judge are left out whole")
    else:
        with opened(given.data, given.watch) as (source, file, show):
            table = read_table(file, source, names, label, classes, given.model, show, signal)
        noted(table.data, given.data)
    if table.stage is not None:
        return table
    make_spec(table.content | {"name": given.called, "kernel": {"sigma": 1.0}}, table.name)
    return table


def _of_signal(given: FitAsked) -> tuple[list[str], str, list[str], dict[str, Any]]:
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


def _write(found: Found, given: FitAsked, read: Section, arguments: Mapping[str, Any]) -> Document:
    """The spec and the report, or none of them.  Returns the report for people."""
    spec = None if given.output is None else str(given.output)
    found.report.update(output=spec, spec=spec, plot=str(given.plot) if given.plot else None)
    drawn = None if found.selection is None else found.selection.surface_told()
    page = fitted(found.report, arguments, read, drawn, inside(found.spec))
    with all_or_none():
        if given.output is not None:
            write_file(given.output, found.spec.to_toml())
        if given.plot is not None:
            page.write(given.plot)
    return page
