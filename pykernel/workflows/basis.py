"""A basis chosen from many rows, as a spec for the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.errors import Interrupted, UserError, option
from pykernel.files import all_or_none, need_different, need_free
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import QUIET, Watch, refuse, simple_errors
from pykernel.workflows.asked import TRAINED, BasisAsked, asked
from pykernel.workflows.given import Numbers, need_report, stated, write_file

if TYPE_CHECKING:
    from pykernel.bases.basis import Basis
    from pykernel.report.document import Document
    from pykernel.workflows.basis_job import Job


@dataclass(frozen=True, repr=False)
class BasisFound:
    """Vectors whose span in feature space is close to all rows.

    basis: the vectors, their kernel and coordinates.  spec: what the device predicts or learns on them; None if only the basis was saved.
    report: all that was found, as ``pykernel basis --json`` prints it.
    """

    basis: Basis
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


def basis(
    data: str | Path,
    *,
    n_max: int = 100,
    output: str | Path | None = None,
    save: str | Path | None = None,
    method: str = "auto",
    inputs: str | Sequence[str] | None = None,
    label: str | None = None,
    classes: str | Sequence[str] | None = None,
    model: str | None = None,
    learn: bool = False,
    kfd: bool = False,
    features: int | None = None,
    shrinkage: float = 0.1,
    kernel: str = "gaussian",
    sigma: Numbers = None,
    gamma: Numbers = None,
    coef0: float = 1.0,
    degree: int = 3,
    normalise: bool = False,
    ridge: Numbers = None,
    candidates: int = 59,
    points: int = 59,
    with_: str | Mapping[str, Any] | None = None,
    tau: float = 0.0,
    confidence: float | None = None,
    standardise: bool | None = None,
    shards: int = 1,
    jobs: str | int | None = None,
    checkpoint: str | Path | None = None,
    seed: int = 0,
    precision: str = "float32",
    name: str | None = None,
    plot: str | Path | None = None,
    force: bool = False,
    watch: Watch = QUIET,
) -> BasisFound:
    """Choose a basis from up to millions of rows, with a spec: what ``pykernel basis`` does.

    For arrays, use ``select_basis`` or ``KernelBasis``.  docs/bases.md gives the cost of each method.

    Parameters
    ----------
    data : path
        A .csv, .npy, .parquet or .arrow file, or a folder of these.
    n_max : int
        Most vectors.
    output, save, plot : path, optional
        Files for the spec, the basis (``Basis.load`` reads it) and a report, FILE.html.  With ``save`` alone no spec is made.
    method, with_ : str, dict
        How vectors are chosen, and options of that method.
    inputs : list of str, optional
        Columns; by default, all others with numbers.
    label, classes : str, list of str, optional
        The column to predict, and its classes; without it the spec computes coordinates.
    model, ridge : str, numbers
        krr or ls-svm on the label, and ridges to try.
    learn, kfd : bool
        Whether the device learns the weights, or trains a kernel Fisher discriminant.
    features, shrinkage : int, float
        Number of features of a subspace that replace the coordinates; the number that is subtracted from each singular
        value.
    kernel, sigma, gamma, coef0, degree, normalise : str, numbers, bool
        The kernel, and widths to try.
    candidates, points : int
        Rows tried for a vector, rows that judge it; 0 for all.
    tau, confidence : float
        Stop when at most this fraction is left out; the confidence with which this must hold.
    standardise : bool, optional
        Whether inputs are scaled; by default, if their scales differ.
    shards, jobs, checkpoint : int, int, path
        Parts to choose in, processes, and the file in which progress is kept.
    seed : int
        Of all draws.
    precision, name : str
        The device's numbers, and the prefix in C.
    force : bool
        Whether files are overwritten.
    watch : Watch
        Who is told how far the work is.

    Raises
    ------
    UserError
        One sentence says what is wrong with the data or an argument.  No file is written then.
    """
    given, arguments = asked(BasisAsked, locals()), stated(locals(), basis)
    _need_possible(given)
    from pykernel.workflows import basis_job as work

    request = work.requested(given)
    try:
        with watch.progress() as show:
            job = work.begin(request, show)
        chosen = job.run()
        spec = work.spec_of(job, chosen) if given.makes_spec else None
        report = work.report_of(job, chosen, spec)
    except KeyboardInterrupt:
        if given.checkpoint is None or not given.checkpoint.exists():
            raise Interrupted from None
        kept = f"; {given.checkpoint} contains the finished part: run the same command to continue"
        raise Interrupted(kept) from None
    page = _write(report, job, chosen.basis, spec, arguments)
    return BasisFound(chosen.basis, spec, report, page)


def _need_possible(given: BasisAsked) -> None:
    """Raises UserError for arguments that do not fit together, and for files that cannot be written, before the work
    starts.
    """
    for path in (given.output, given.save, given.plot):
        need_free(path, given.data, given.force)
    need_free(given.checkpoint, given.data, True)  # a checkpoint may exist: the work goes on from there
    need_different([given.output, given.save, given.plot, given.checkpoint])
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
        (given.shards < 1, f"{shards} is {given.shards}; it must be 1 or more"),
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
        *(
            (value < 0, f"{option(name)} is {value}; it must be a number of rows, or 0 for all")
            for name, value in (("candidates", given.candidates), ("points", given.points))
        ),
    )
    content = {"name": given.called, "precision": given.precision, "input": {"dim": 1}, "kernel": {"sigma": 1.0}}
    make_spec(content, "pykernel basis")


def _need_trained(given: BasisAsked) -> None:
    """Raises UserError for arguments that do not fit to trained vectors, which need a label and a single process."""
    if not given.learn or given.label is None:
        why = "is for weights that the device continues to learn; give"
        raise UserError(f"{option('method')} {TRAINED} {why} {option('learn')} and {option('label')}")
    widths = ("sigma", "gamma", "kernel", "with_", "standardise")
    given.need_unset((*widths, "shards", "tau", "checkpoint", "candidates", "points"), "method")


def _write(report: dict[str, Any], job: Job, basis: Basis, spec: Spec | None, arguments: Mapping[str, Any]) -> Document:
    """The spec, the basis and the report; all of them, or none.  Returns the report for people."""
    from pykernel.gen.project import inside
    from pykernel.report.bases import based

    given = job.options
    for key, path in (("output", given.output), ("spec", given.output), ("save", given.save), ("plot", given.plot)):
        report[key] = str(path) if path else None
    page = based(report, arguments, inside(spec) if spec is not None else {})
    with all_or_none():
        if spec is not None and given.output is not None:
            write_file(given.output, spec.to_toml())
        if given.save is not None:
            basis.save(given.save)
        if given.plot is not None:
            page.write(given.plot)
    if given.checkpoint is not None and given.shards > 1:
        given.checkpoint.unlink(missing_ok=True)
    return page
