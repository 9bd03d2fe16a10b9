"""``fit`` for a basis: choose a basis from many rows, and write either a spec for the device or only the basis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pykernel.bases.basis import Basis
from pykernel.errors import UserError, shown_option
from pykernel.files import all_or_none, need_different, need_free
from pykernel.gen.project import inside
from pykernel.report.bases import based
from pykernel.report.document import Document
from pykernel.request.kinds import path_of
from pykernel.request.option import stated
from pykernel.spec.model import OUTPUTS_LIMIT, Spec, make_spec
from pykernel.telling import raise_first_error
from pykernel.workflows import basis_job as work
from pykernel.workflows.arguments import (
    BASIS_MODELS,
    TRAINED,
    called,
    need_report,
    need_unset,
    trained_by,
    write_file,
)
from pykernel.workflows.fit_request import Fit

USUAL = 100
"""Default of the largest number of vectors, unless the spec has an output for each vector."""
OF_TABLES = ("flash", "hold_out", "cv", "by", "coding", "loss", "weights", "spec", "jobs")
"""Arguments that apply only to machines trained on a table in memory."""


@dataclass(frozen=True)
class Found:
    """The result of choosing a basis.  spec: None if only the basis was written."""

    spec: Spec | None
    basis: Basis
    report: dict[str, Any]
    page: Document


def fit(request: Fit) -> Found:
    """Choose a basis and write it.  docs/bases.md gives the cost of each method."""
    need_possible(request)
    usual = OUTPUTS_LIMIT if _coordinates(request) else USUAL
    converted = work.requested(request, usual if request.n_max is None else request.n_max)
    with request.watch.progress() as show:
        job = work.begin(converted, show)
    chosen = job.run()
    spec = None
    if request.makes_spec:
        spec = trained_by(request, work.spec_of(job, chosen))
    report = work.report_of(job, chosen, spec)
    return Found(spec, chosen.basis, report, _write(report, job, chosen.basis, spec, stated(request)))


def _coordinates(request: Fit) -> bool:
    """Return whether the spec has an output for each vector."""
    return request.makes_spec and request.label is None and request.rule is None and request.features is None


def need_possible(request: Fit) -> None:
    """Raise UserError, before any computation starts, if arguments contradict each other or a file cannot be written."""
    _need_table(request)
    if request.method == TRAINED:
        _need_trained(request)
    label, output, tau, confidence = map(shown_option, ("label", "output", "tau", "confidence"))
    features, count = shown_option("features"), request.features
    raise_first_error(
        (
            request.rule == "nystrom-rls" and not request.makes_spec,
            f"{shown_option('rule', request.rule)} needs a spec; give {output} SPEC",
        ),
        (
            request.model in BASIS_MODELS and request.label is None,
            f"{shown_option('model', request.model)} is trained on labels; name their column with {label}",
        ),
        (
            _coordinates(request) and (request.n_max or 0) > OUTPUTS_LIMIT,
            f"without {label}, the spec has an output for each of {request.n_max} vectors, but a spec has at most {OUTPUTS_LIMIT} outputs; "
            f"give {label}, or {shown_option('n_max')} {OUTPUTS_LIMIT}",
        ),
        (
            request.rule == "kfd" and request.label is None,
            f"{shown_option('rule', request.rule)} separates classes; name their column with {label}",
        ),
        (
            count is not None and (request.label is not None or request.rule is not None),
            f"{features} does not go with a label or a rule; leave out either {features}, or {label} and {shown_option('rule')}",
        ),
        (count is not None and not request.makes_spec, f"{features} needs a spec; give {output} SPEC"),
        (
            count is not None and not 1 <= count <= (request.n_max or USUAL),
            f"{features} is {count}; it must be from 1 to {shown_option('n_max')}, which is {request.n_max or USUAL}",
        ),
        (
            count is not None and not 0 < request.shrinkage < float("inf"),
            f"{shown_option('shrinkage')} is {request.shrinkage:g}; it must be above 0",
        ),
        (
            request.classes is not None and request.label is None,
            f"{shown_option('classes')} needs a label; name its column with {label}",
        ),
        (
            request.confidence is not None and not request.tau,
            f"{confidence} needs {tau} above 0: the fraction of the kernel matrix's trace that the basis may leave out, such as {shown_option('tau', 0.01)}",
        ),
    )
    make_spec(
        {"name": called(request), "precision": request.precision, "input": {"dim": 1}, "kernel": {"sigma": 1.0}},
        "pykernel fit",
    )


def _need_table(request: Fit) -> None:
    """Raise UserError for options of machines trained in memory, for several tables, and for files that cannot be written."""
    why = request.of_basis[0]
    asks = (
        f"without {shown_option('label')}, fit chooses a basis"
        if why == "label"
        else f"{shown_option(why)} requests a basis"
    )
    for name in OF_TABLES:
        if getattr(request, name) != getattr(Fit, name):
            raise UserError(
                f"{shown_option(name)} applies only to machines that are trained on a table in memory, but {asks}; leave {shown_option(name)} out"
                + f", or give {shown_option('label')}" * (why == "label")
            )
    folder = "a folder with the .parquet files of one table"
    remedy = f"{folder}, or {shown_option('label')}" if why == "label" else f"or {folder}"
    many = f", which comes from a single table; give one table, {remedy}"
    if not isinstance(request.data, str | Path):
        raise UserError(f"several tables were given, but {asks}{many}")
    if Path(request.data).is_dir() and not any(Path(request.data).rglob("*.parquet")):
        raise UserError(f"{request.data}: is a folder of several tables, but {asks}{many}")
    need_free(path_of(request.output), str(request.data), request.force)
    need_free(path_of(request.report), str(request.data), force=True)  # every command overwrites its report
    need_different([path_of(path) for path in (request.output, request.report)])
    need_report(request.report)


def _need_trained(request: Fit) -> None:
    """Raise UserError if the rule is not nystrom-rls, if there is no label, or if an argument does not apply to trained
    vectors.
    """
    if request.rule != "nystrom-rls" or request.label is None:
        rule = shown_option("rule", "nystrom-rls")
        raise UserError(
            f"{shown_option('method', TRAINED)} is for models whose weights the device learns; give {rule} and {shown_option('label')}"
        )
    widths = ("sigma", "gamma", "kernel", "with_", "standardise")
    need_unset(request, (*widths, "tau", "candidates", "points"), "method")


def _write(
    report: dict[str, Any], job: work.Job, basis: Basis, spec: Spec | None, asked: Mapping[str, Any]
) -> Document:
    """Write the spec (or only the basis) and the report: both files or neither.  Returns the report as a document."""
    request = job.options
    output, written = (str(path) if path else None for path in (request.output, request.report))
    report.update(output=output, spec=None if spec is None else output, report=written)
    page = based(report, asked, inside(spec) if spec is not None else {})
    with all_or_none():
        if request.report is not None:
            page.write(Path(request.report))
        if (
            spec is None
        ):  # written last, so that a failed run can be repeated: without --force, fit does not replace this file
            basis.save(Path(str(request.output)))
        elif request.output is not None:
            write_file(Path(request.output), spec.to_toml())
    return page
