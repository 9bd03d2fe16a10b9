"""A basis chosen from many rows, as a spec for the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.errors import Interrupted, UserError, option
from pykernel.files import all_or_none, need_different, need_free
from pykernel.request.kinds import path_of
from pykernel.request.option import function, stated
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import refuse, simple_errors
from pykernel.workflows.given import TRAINED, called, need_report, need_unset, write_file
from pykernel.workflows.requests import Basis

if TYPE_CHECKING:
    from pykernel.bases.basis import Basis as Found
    from pykernel.report.document import Document
    from pykernel.workflows.basis_job import Job


@dataclass(frozen=True, repr=False)
class BasisFound:
    """Vectors whose span in feature space is close to all rows.

    basis: the vectors, their kernel and coordinates.  spec: what the device predicts or learns on them; None if only the basis was saved.
    report: all that was found, as ``pykernel basis --json`` prints it.
    """

    basis: Found
    spec: Spec | None
    report: dict[str, Any]
    page: Document
    """The result for people: ``page.write("report.html")``; a notebook shows it."""

    def _repr_html_(self) -> str:
        return self.page._repr_html_()

    @property
    def left_out(self) -> list[float]:
        """The fraction of tr K that 0, 1, ... vectors leave out."""
        return self.report["left_out"]

    @property
    def warnings(self) -> list[str]:
        """What is probably not as it was meant, a sentence each."""
        return self.report["warnings"]

    def __repr__(self) -> str:
        report = self.report
        lines = [f"basis of {report['vectors']:,} vectors, by {report['method']}, of {report['rows']:,} rows"]
        lines.append(f"  left out {100 * self.left_out[-1]:.3g} %{'' if report['exact'] else ', estimated'}")
        if errors := report["errors"]:
            simple = "".join(f", {name} {error:.4g}" for name, error in simple_errors(report).items())
            lines.append(f"  leave-one-out {report['measure']} {errors['leave_one_out']:.4g}{simple}")
        if self.spec is not None:
            lines.append(f"  rule {report['rule']}, {report['flash_bytes']:,} bytes of flash")
        return "\n".join([*lines, *(f"  {sentence}" for sentence in self.warnings)])


def run(given: Basis) -> BasisFound:
    """What ``pykernel basis`` does; docs/bases.md gives the cost of each method."""
    _need_possible(given)
    from pykernel.workflows import basis_job as work

    request = work.requested(given)
    try:
        with given.watch.progress() as show:
            job = work.begin(request, show)
        chosen = job.run()
        spec = work.spec_of(job, chosen) if given.makes_spec else None
        report = work.report_of(job, chosen, spec)
    except KeyboardInterrupt:
        raise Interrupted from None
    page = _write(report, job, chosen.basis, spec, stated(given))
    return BasisFound(chosen.basis, spec, report, page)


def _need_possible(given: Basis) -> None:
    """Raises UserError for arguments that do not fit together, and for files that cannot be written, before the work
    starts.
    """
    for path in (given.output, given.save, given.plot):
        need_free(path_of(path), str(given.data), given.force)
    need_different([path_of(path) for path in (given.output, given.save, given.plot)])
    need_report(given.plot)
    if given.method == TRAINED:
        _need_trained(given)
    label, learn, kfd, output = option("label"), option("learn"), option("kfd"), option("output")
    tau, shards, confidence = option("tau"), option("shards"), option("confidence")
    features, count = option("features"), given.features
    refuse(
        (given.learn and given.kfd, f"{learn} and {kfd} are two models; give one of them"),
        (
            (given.learn or given.kfd) and not given.makes_spec,
            f"{learn if given.learn else kfd} needs a spec; give {output} SPEC",
        ),
        (given.kfd and given.label is None, f"{kfd} separates classes; give {label}, their column"),
        (
            count is not None and given.label is not None,
            f"{features} needs no label; leave out {label} or {features}",
        ),
        (
            count is not None and given.learn,
            f"{learn} learns a label, which {features} has not; leave one of them out",
        ),
        (count is not None and not given.makes_spec, f"{features} needs a spec; give {output} SPEC"),
        (
            count is not None and not 1 <= count <= given.n_max,
            f"{features} is {count}; it must be from 1 to {option('n_max')}, which is {given.n_max}",
        ),
        (
            count is not None and not 0 < given.shrinkage < float("inf"),
            f"{option('shrinkage')} is {given.shrinkage:g}; it must be above 0",
        ),
        (
            given.classes is not None and given.label is None,
            f"{option('classes')} needs a label; give {label}, its column",
        ),
        (
            given.tau and given.shards > 1,
            f"{tau} does not go with {shards}: the part left out is known only at the end; leave {tau} out",
        ),
        (
            given.confidence is not None and not given.tau,
            f"{confidence} is for {tau}; give the part that may be left out, such as {tau} 0.01",
        ),
        (
            given.jobs is not None and given.shards == 1,
            f"{option('jobs')} is only for shards; give {shards} 2 or more",
        ),
    )
    content = {"name": called(given), "precision": given.precision, "input": {"dim": 1}, "kernel": {"sigma": 1.0}}
    make_spec(content, "pykernel basis")


def _need_trained(given: Basis) -> None:
    """Raises UserError for arguments that do not fit to trained vectors, which need a label and a single process."""
    if not given.learn or given.label is None:
        why = "is for weights that the device continues to learn; give"
        raise UserError(f"{option('method')} {TRAINED} {why} {option('learn')} and {option('label')}")
    widths = ("sigma", "gamma", "kernel", "with_", "standardise")
    need_unset(given, (*widths, "shards", "tau", "candidates", "points"), "method")


def _write(report: dict[str, Any], job: Job, basis: Found, spec: Spec | None, arguments: Mapping[str, Any]) -> Document:
    """The spec, the basis and the report; all of them, or none.  Returns the report for people."""
    from pykernel.gen.project import inside
    from pykernel.report.bases import based

    given = job.options
    for key, path in (("output", given.output), ("spec", given.output), ("save", given.save), ("plot", given.plot)):
        report[key] = str(path) if path else None
    page = based(report, arguments, inside(spec) if spec is not None else {})
    with all_or_none():
        if spec is not None and given.output is not None:
            write_file(Path(given.output), spec.to_toml())
        if given.save is not None:
            basis.save(Path(given.save))
        if given.plot is not None:
            page.write(Path(given.plot))
    return page


basis = function(Basis, run)
