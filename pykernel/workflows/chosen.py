"""``fit`` with vectors chosen among rows: hold out rows, train an estimator, freeze it as a spec, and estimate its
error.
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from pykernel.bases.baselines import choose_method
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import METHODS, select_basis
from pykernel.errors import UserError, option
from pykernel.estimators import batch as kernel_machines
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.importers.importing import compare
from pykernel.importers.sklearn import read_estimator
from pykernel.parallel import checked_jobs, cores, one_thread
from pykernel.spec.families.nystrom import LEAST_ALD_THRESHOLD
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.renamed import word_meant
from pykernel.telling import duration, number, rate
from pykernel.training.closed_form import Targets, error_rate, press, problem
from pykernel.training.reduced import ReducedProblem
from pykernel.training.selection import (
    Function,
    Selection,
    default_ridges,
    default_widths,
    stratified_folds,
    width_name,
)
from pykernel.training.trained import Distance, Machine, content
from pykernel.tuning.columns import uneven
from pykernel.tuning.plan import parse_amount
from pykernel.tuning.tables import LabelledTable
from pykernel.workflows.asked import MANY_ROWS, FitAsked
from pykernel.workflows.given import method_options, positive_numbers

COMPARED_ROWS = 1000
"""Most rows on which the written spec is compared with the trained estimator."""
COARSE = 0.05
"""Rounding that moves a prediction by more than this part of a typical error is worth a warning."""
LEAST_RIDGE = 1e-6
"""Smallest default ridge of ls-svm and krr in float32, as a fraction of the Gram matrix's trace."""
TELL_SECONDS = 2.0
"""If the work is expected to take longer, the command says so before."""
MEASURED_ROWS = 400
"""Number of rows on which one width is timed, to estimate the time for all widths and all rows."""
SPAWNED = 2.0
"""Seconds that other processes need to start."""
LARGE = 16 * 1024
"""If vectors and weights need more bytes, fewer vectors are tried as well, unless the user gave the size."""
NEARLY = 1.02
"""A smaller model counts as nearly as good if its error is at most this factor times the large model's error."""
SIZES = (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Numbers of vectors that are tried for a smaller model."""
CONFIRMED = 4
"""Most sizes that are fully trained, as with --n-max: another width and ridge may be chosen for them."""
MUCH = 0.5
"""A smaller model must need at most this fraction of the large model's bytes."""


@dataclass(frozen=True)
class Found:
    """The results to print and to write.

    wrong: if vectors are chosen among rows, the cross-validated loss of each training row, (l,).
    """

    report: dict[str, Any]
    spec: Spec
    selection: Selection | None
    wrong: np.ndarray | None = None


def fit(options: FitAsked, table: LabelledTable) -> Found:
    """Choose, train and freeze.  Assumptions, and the expected time, are printed before the work."""
    if options.loss is not None:
        raise UserError(f"{option('loss')} is of {option('model')} trained; leave it out")
    train, test = held_out(table, options.hold_out, options.seed)
    job = Job(options, table, train, scales(table, train, options.standardise))
    limit = None if options.flash is None else parse_amount(options.flash, "flash")
    vectors = job.vectors(limit)
    machine = job.machine(vectors)
    if options.plot and _single(machine):
        raise UserError(
            f"{option('plot')} draws the error over a grid, but there is one width and one ridge; give several"
        )
    options.watch.note(f"assumed: {'; '.join(table.assumed)}")
    seconds = job.seconds(machine, vectors)
    if seconds > TELL_SECONDS:
        options.watch.tell(f"this will take about {duration(seconds)}: {job.work(machine, vectors)}")
    trained, spec, rounding, size = job.run(vectors, limit)
    with job.waiting("testing the spec"):
        report = _report(job, trained, test, spec, rounding, size)
    report["smaller"] = None
    if limit is None and vectors is None and size > LARGE:
        report["smaller"] = job.smaller(report, trained)
        if report["smaller"]:
            report["warnings"].append(_advice(report))
    machine = _estimator(trained)
    return Found(report, spec, machine.selection_, losses(table, table.y[train], machine.loo_predictions_, job.targets))


def losses(table: LabelledTable, y: np.ndarray, predictions: np.ndarray, targets: Targets) -> np.ndarray:
    """The squared error of each row; for classes, 1 if the class is wrong, else 0; (rows,)."""
    if table.classes is None:
        return np.asarray(np.square(predictions.ravel() - y))
    return np.asarray(targets.classify(predictions.reshape(len(y), -1)) != y, np.float64)


def _estimator(trained: Any) -> Any:
    """The estimator without the scaler of its pipeline."""
    return trained[-1] if hasattr(trained, "steps") else trained


def _advice(report: Mapping[str, Any]) -> str:
    """A sentence about a smaller model that is nearly as good."""
    shown = rate if report["classes"] else number
    small = report["smaller"]
    return (
        f"the model takes {report['flash_bytes']:,} bytes of flash; with {option('n_max')} {small['n']} its error is "
        f"{shown(small['error'])} in place of {shown(report['errors']['cross_validated'])}, in "
        f"{small['flash_bytes']:,} bytes"
    )


# ---------------------------------------------------------------------------------------------------------------- rows


def held_out(table: LabelledTable, part: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the training rows, and of the rows that are held out: a random fraction ``part``, of each class."""
    if not 0 <= part < 1:
        raise UserError(f"{option('hold_out')} is {part:g}; it must be from 0 to below 1, such as 0.3")
    if seed < 0:
        raise UserError(f"seed is {seed}; it must be 0 or more")
    if seed >= 2**32:
        raise UserError(f"seed is {seed}; it must be at most {2**32 - 1}")
    labels = table.y if table.classes else np.zeros(len(table.y), np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    test = np.zeros(len(labels), bool)
    for k in np.unique(labels):
        rows = order[labels[order] == k]
        test[rows[: min(round(part * len(rows)), len(rows) - 1)]] = True
    if part and not test.any():
        raise UserError(f"{option('hold_out')} {part:g} of {len(labels):,} rows is none; give a larger part")
    if (~test).sum() < 2:
        raise UserError(f"{option('hold_out')} {part:g} leaves 1 row to train on; give a smaller part")
    return np.flatnonzero(~test), np.flatnonzero(test)


def scales(table: LabelledTable, train: np.ndarray, wanted: bool | None) -> bool:
    """Whether inputs are to be standardised."""
    if wanted is None:
        wanted = uneven(table.x[train])
        if wanted:
            table.assumed.append("inputs standardised: their scales differ, or are far from zero")
    return wanted


# --------------------------------------------------------------------------------------------------------- the model


@dataclass(frozen=True)
class Job:
    """The arguments, the table, the positions of its training rows, and whether inputs are standardised."""

    options: FitAsked
    table: LabelledTable
    train: np.ndarray
    scales: bool

    # ---- the estimator

    @property
    def trained_for(self) -> str:
        """The precision of the estimator.

        A model for int16 is trained in another precision, and rounded afterwards.
        """
        return "float32" if self.options.precision == "int16" else self.options.precision

    def machine(self, vectors: int | None) -> Any:
        """The estimator, not fitted.  vectors: how many to choose; None: all rows."""
        options, table = self.options, self.table
        parameters: dict[str, Any] = {
            "jobs": checked_jobs(options.jobs) or self._processes(vectors),
            "progress": options.watch.bars,
            "precision": self.trained_for,
            "random_state": options.seed,
        }
        parameters |= _kernel_parameters(options) | {"cv": _cross_validation(options.cv)}
        parameters |= _class_parameters(options, table)
        if vectors is not None:
            parameters |= {"basis": vectors, "basis_params": self._basis_parameters()}
        kinds = {
            ("kfd", True): kernel_machines.KernelFisherClassifier,
            ("ls-svm", True): kernel_machines.LSSVMClassifier,
            ("ls-svm", False): kernel_machines.LSSVMRegressor,
            ("krr", True): kernel_machines.KernelRidgeClassifier,
            ("krr", False): kernel_machines.KernelRidgeRegressor,
        }
        machine = kinds[table.model, table.classes is not None](options.kernel, **parameters)
        if options.ridge is None and self.trained_for == "float32" and table.model != "kfd":
            machine.ridge = resolved_ridges(machine, table.model, self.x)
        return machine

    def _processes(self, vectors: int | None) -> int:
        rows = len(self.train)
        return cores() if rows * (vectors or rows) ** 2 >= MANY_ROWS**3 else 1

    def _basis_parameters(self) -> dict[str, Any]:
        """Parameters for the choice of vectors.

        A vector that float32 can hardly distinguish from the span of the vectors before it is not chosen.
        """
        epsilon = LEAST_ALD_THRESHOLD.get(self.trained_for, 0.0)
        method = self.options.basis or "auto"
        return {"method": method, "epsilon": epsilon} | method_options(self.options.with_, method)

    @cached_property
    def x(self) -> np.ndarray:
        """Inputs to train on, (l, d), scaled as they will be."""
        x = self.table.x[self.train]
        if not self.scales:
            return x
        from sklearn.preprocessing import StandardScaler

        return np.asarray(StandardScaler().fit_transform(x))

    @cached_property
    def targets(self) -> Targets:
        return self._targets(np.arange(len(self.train)))

    def _targets(self, rows: np.ndarray) -> Targets:
        y, classes = self.table.y[self.train[rows]], self.table.classes
        if classes is None:
            return Targets.of_values(y)
        coding: Any = self.options.coding or ("counts" if self.table.model == "kfd" else "signs")
        return Targets.of_classes(y, len(classes), coding)

    # ---- how many vectors

    def vectors(self, limit: int | None) -> int | None:
        """How many vectors are to be chosen; None for all rows.  limit: bytes of flash."""
        options, rows = self.options, len(self.train)
        method = options.basis or "auto"
        if method not in METHODS:
            number = f"; for {method} vectors give {option('n_max')} {method}" if method.isdigit() else ""
            raise UserError(f"{option('basis')} {method} is not known; there are: {', '.join(METHODS)}{number}")
        if options.n_max is not None and not 1 <= options.n_max <= rows:
            raise UserError(
                f"{option('n_max')} is {options.n_max}; it must be from 1 to {rows:,}, the number of rows to train on"
            )
        if options.basis is not None and options.n_max is None and limit is None:
            raise UserError(
                f"{option('basis')} says how vectors are chosen, but every row is a vector; give {option('n_max')} or {option('flash')}, too"
            )
        if options.with_ is not None and options.n_max is None and limit is None:
            raise UserError(
                f"{option('with')} says how vectors are chosen, but every row is a vector; give {option('n_max')} or {option('flash')}, too"
            )
        self._basis_parameters()  # raises UserError for invalid options
        if limit is None:
            return options.n_max
        fits = self.fitting(limit)
        if fits >= (options.n_max or rows) or options.kernel == "linear":
            return options.n_max
        self.table.assumed.append(f"at most {fits:,} vectors, as {option('flash')} holds {limit:,} bytes")
        return fits

    def fitting(self, limit: int) -> int:
        """How many vectors fit into ``limit`` bytes of flash.  Raises UserError if not even one fits."""
        fixed, each = self._sizes()
        fits = (limit - fixed) // each
        if fits < 1:
            raise UserError(
                f"{option('flash')} is {limit:,} bytes, but one vector of {self.x.shape[1]} inputs with its weights takes "
                f"{fixed + each:,}; give more, or fewer {option('inputs')}"
            )
        return fits

    def _sizes(self) -> tuple[int, int]:
        """Bytes of flash without vectors, and bytes of one vector with its weights, if distances are computed by
        differences.
        """
        options, classes, d = self.options, len(self.table.classes or ()), self.x.shape[1]
        functions = classes if classes > 2 else 1
        found = []
        for n in (8, 16):
            rng = np.random.default_rng(0)
            scale = np.ones(d) if self.scales else None
            made = Machine(
                "the table", options.kernel, 1e-3 * rng.normal(size=(n, d)), np.ones((n, functions)), np.zeros(functions),
                gamma=1.0, coef0=options.coef0, degree=options.degree, center=scale, scale=scale,
            )  # fmt: skip
            spec = make_spec(
                content(made, options.called, options.precision, 1.0, distance="differences"), self.table.name
            )
            found.append(build(spec).figures["const_bytes"])
        each = (found[1] - found[0]) // 8
        return found[0] - 8 * each, max(each, 1)

    # ---- the work

    def run(self, vectors: int | None, limit: int | None) -> tuple[Any, Spec, dict[str, Any], int]:
        """The trained estimator, its spec, the comparison of both, and the bytes of flash."""
        while True:
            trained = self.trained(vectors)
            with self.waiting("comparing the spec with the trained model"):
                x = self.table.x[self.train]
                spec, rounding = _frozen(trained, self.options, self.table, x)
                size = build(spec.inner).figures["const_bytes"]
                if limit is not None and size > limit:  # distances by products need one more number for each vector
                    spec, rounding = _frozen(trained, self.options, self.table, x, "differences")
                    size = build(spec.inner).figures["const_bytes"]
            if limit is None or size <= limit:
                return trained, spec, rounding, size
            assert spec.expansion is not None
            count = len(spec.expansion.vectors)
            vectors = count - max(1, math.ceil((size - limit) / self._sizes()[1]))
            if vectors < 1:
                raise UserError(
                    f"{option('flash')} is {limit:,} bytes, but a model of {count} vectors takes {size:,}; give more"
                )

    def trained(self, vectors: int | None) -> Any:
        machine = self.machine(vectors)
        trained = pipeline(machine, self.scales)
        with plainly(machine), one_thread:  # so that the spec's bits do not depend on how many there are
            trained.fit(self.table.x[self.train], self.table.y[self.train])
        return trained

    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        with self.options.watch.progress() as show:
            show(0.0, what)
            yield

    # ---- how long it takes

    def grid(self, machine: Any) -> tuple[Sequence[float], Sequence[float]]:
        """Widths and ridges that will be tried."""
        widths = _given_widths(machine) or default_widths(machine.kernel, self.x)
        middle = widths[len(widths) // 2]
        model: Any = self.table.model
        default = default_ridges(model, _mercer(machine, middle), self.x)
        return sorted(widths), sorted(machine.ridge or default)

    def work(self, machine: Any, vectors: int | None) -> str:
        """Words for the work that takes time."""
        widths, ridges = self.grid(machine)
        on = "" if vectors is None else f" and {vectors:,} vectors"
        jobs = machine.jobs if isinstance(machine.jobs, int) else 1
        where = f", in {jobs} processes" if jobs > 1 else ""
        return f"{len(widths)} widths and {len(ridges)} ridges on {len(self.train):,} rows{on}{where}"

    def seconds(self, machine: Any, vectors: int | None) -> float:
        """An estimate of the time to choose and train.  One width is timed on some rows.

        A decomposition takes O(l^3), a ridge O(l^2) (by folds O(l^3)); with n vectors both take O(l n^2), but choosing
        the vectors among all pairs of rows takes O(l^2 n).
        """
        widths, ridges = self.grid(machine)
        jobs = machine.jobs if isinstance(machine.jobs, int) else 1
        once, each = self._timed(machine, vectors, widths[len(widths) // 2], ridges)
        rounds = 0 if len(widths) * len(ridges) == 1 else math.ceil(len(widths) / jobs)
        return rounds * (once + len(ridges) * each) + (SPAWNED if jobs > 1 and rounds else 0.0) + once + each

    def _timed(self, machine: Any, vectors: int | None, width: float, ridges: Sequence[float]) -> tuple[float, float]:
        """Expected seconds of a width, and of each of its ridges."""
        rows = len(self.train)
        some = np.unique(np.linspace(0, rows - 1, max(MEASURED_ROWS, 2 * (vectors or 0))).astype(np.int64))
        x, targets, times = self.x[some], self._targets(some), rows / len(some)
        kernel, model, ridge = _mercer(machine, width), self.table.model, ridges[-1]
        folds = None if isinstance(machine.cv, str) else stratified_folds(targets, min(machine.cv, len(some)))
        with one_thread, contextlib.suppress(UserError):  # an error is reported later, by the actual work
            start = time.perf_counter()
            if vectors is not None:
                parameters = self._basis_parameters()
                method = parameters.pop("method")
                method = choose_method(rows, vectors)[0] if method == "auto" else method
                basis = select_basis(x, kernel, vectors, method, **parameters)
                chosen = time.perf_counter() - start
                reduced = ReducedProblem(model, basis, x, targets)  # type: ignore[arg-type]
                middle = time.perf_counter()
                reduced.leave_one_out(ridge) if folds is None else reduced.leave_fold_out(ridge, folds)
                last = time.perf_counter()
                power = 2 if method in ("exhaustive", "fvs") else 1
                return chosen * times**power + (middle - start - chosen) * times, (last - middle) * times
            whole = problem(model, kernel.gram(x, x), targets)  # type: ignore[arg-type]
            middle = time.perf_counter()
            whole.leave_one_out(ridge) if folds is None else whole.leave_fold_out(ridge, folds)
            last = time.perf_counter()
            return (middle - start) * times**3, (last - middle) * times ** (2 if folds is None else 3)
        return 0.0, 0.0

    # ---- a smaller one

    def smaller(self, report: Mapping[str, Any], trained: Any) -> dict[str, Any] | None:
        """The smallest model that is nearly as good, as --n-max would train it; None if there is none."""
        machine = _estimator(trained)
        if machine.kernel in ("sigmoid", "linear"):
            return None
        fixed, each = self._sizes()
        fits = [n for n in SIZES if fixed + n * each <= MUCH * report["flash_bytes"] and n < len(self.train)]
        with self.waiting("trying fewer vectors"), one_thread:
            promising = self._promising(machine, fits, report["errors"]["cross_validated"])
        for n in promising[:CONFIRMED]:
            small = self.trained(n)
            with self.waiting("measuring the smaller model"):
                spec, _ = _frozen(small, self.options, self.table, self.table.x[self.train][:1])
                size = build(spec.inner).figures["const_bytes"]
            error = _errors(self.table, _estimator(small), self.table.y[self.train])["cross_validated"]
            if self._nearly(error, report["errors"]["cross_validated"]) and size <= MUCH * report["flash_bytes"]:
                return {"n": n, "error": error, "flash_bytes": size}
        return None

    def _promising(self, machine: Any, sizes: Sequence[int], error: float) -> list[int]:
        """Sizes, ascending, that are probably nearly as good, by their leave-one-out error.

        The first vectors of one basis are used, with the chosen width and down to half of it: with a wide kernel, a few
        vectors already span all rows within the precision of float32.
        """
        if not sizes:
            return []
        widths, ridges = self.grid(machine)
        taken, rough = machine._mercer_kernel.width, 1 if width_name(machine.kernel) == "gamma" else -1
        octaves = {width: rough * math.log2(width / taken) for width in widths}
        found: set[int] = set()
        for width in sorted((each for each in widths if -0.01 < octaves[each] < 1.1), key=octaves.__getitem__)[:3]:
            kernel = machine._mercer_kernel.with_width(width)
            basis = select_basis(self.x, kernel, sizes[-1], **self._basis_parameters(), seed=self.options.seed)
            for n in sorted({min(n, len(basis)) for n in sizes} - found):
                path = ReducedProblem(machine._model, basis.head(n), self.x, self.targets).leave_one_out_path(ridges)
                measure = error_rate if self.table.classes else press
                least = min(measure(self.targets, predictions) for predictions in path)
                if self._nearly(least if self.table.classes else root(least), error):
                    found.add(n)
        return sorted(found)

    def _nearly(self, error: float | None, large: float) -> bool:
        """Whether an error is nearly the large model's error; for classes, one more wrong row is also allowed."""
        more = 1 / len(self.train) if self.table.classes else 0.0
        return error is not None and error <= max(NEARLY * large, large + more)


def _kernel_parameters(options: FitAsked) -> dict[str, Any]:
    """Widths, ridges and constants."""
    known = get_args(Function)
    if options.kernel not in known:
        remedy = word_meant(options.kernel, known, f"there are: {', '.join(known)}")
        raise UserError(f"{option('kernel')} {options.kernel} is not known; {remedy}")
    widths = {"gaussian": "sigma", "linear": None}.get(options.kernel, "gamma")
    given = {"sigma": options.sigma, "gamma": options.gamma, "ridge": options.ridge}
    for name in ("sigma", "gamma"):
        if given[name] is not None and name != widths:
            remedy = f"it has {option(widths)}" if widths else "it has no width"
            raise UserError(f"{option(name)} is not of the {options.kernel} kernel; {remedy}")
    parameters: dict[str, Any] = {
        name: positive_numbers(value, name) for name, value in given.items() if value not in (None, "")
    }
    if options.kernel in ("polynomial", "sigmoid"):
        parameters["coef0"] = options.coef0
    if options.kernel == "polynomial":
        parameters["degree"] = options.degree
    return parameters


def _class_parameters(options: FitAsked, table: LabelledTable) -> dict[str, Any]:
    """Parameters for classes: their coding, and the criterion that is minimised."""
    given = {name: text for name, text in (("coding", options.coding), ("by", options.by)) if text is not None}
    if table.classes is not None:
        return given
    for name, text in given.items():
        if text != "press":
            raise UserError(f"{option(name)} {text} is for classes, but {table.column} is a number")
    return {}


def resolved_ridges(machine: Any, model: Any, x: np.ndarray) -> list[float]:
    """The default ridges of ls-svm or krr, without ridges that are too small for predictions in float32.

    Weights are residuals r / ridge.  l of them are summed, with an error of up to 2^-24 l r / ridge, which is within
    COARSE r for ridges from 1.2e-6 l on.
    """
    widths = sorted(_given_widths(machine) or default_widths(machine.kernel, x))
    ridges = default_ridges(model, _mercer(machine, widths[len(widths) // 2]), x)
    return [ridge for ridge in ridges if ridge >= 0.99 * LEAST_RIDGE * ridges[-1]]


def _given_widths(machine: Any) -> Any:
    """The widths that were given as options; None if there are none."""
    return {"gaussian": machine.sigma, "linear": [1.0]}.get(machine.kernel, machine.gamma)


def _mercer(machine: Any, width: float) -> MercerKernel:
    gamma = 0.5 / width**2 if machine.kernel == "gaussian" else width
    return MercerKernel(machine.kernel, gamma, machine.coef0, machine.degree)


def _single(machine: Any) -> bool:
    """Whether there is nothing to choose."""
    widths = _given_widths(machine)
    return widths is not None and machine.ridge is not None and len(widths) == len(machine.ridge) == 1


def _cross_validation(given: str | int) -> str | int:
    text = str(given)
    if text in ("deleted", "kept"):
        return text
    if text.isascii() and text.isdigit() and int(text) >= 2:
        return int(text)
    raise UserError(f"{option('cv')} is {text!r}; it must be deleted, kept, or a number of folds from 2")


@contextlib.contextmanager
def plainly(machine: Any) -> Iterator[None]:
    """Within the block, errors do not begin with the estimator's name."""
    try:
        yield
    except UserError as error:
        raise UserError(str(error).removeprefix(f"{type(machine).__name__}: ")) from None


def pipeline(machine: Any, scales: bool) -> Any:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), machine) if scales else machine


def _frozen(
    trained: Any, options: FitAsked, table: LabelledTable, x: np.ndarray, distance: Distance = "auto"
) -> tuple[Spec, dict[str, Any]]:
    """The spec, with the names of the table's columns and classes; and its comparison with the estimator on some rows
    of x.

    With a signal stage, the inner model is compared.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about rounding: the error is measured below
        source = read_estimator(trained)
    # the error's sentence must begin with the file or option that it is about
    source = replace(source, source=table.name)
    columns: list[str] | None = table.inputs
    if table.stage is not None:
        source, columns = replace(source, signal=table.stage.plain), None
    made = content(source, options.called, options.precision, None, columns, table.classes, distance, table.x)
    spec = make_spec(made | {"label": made.get("label", {}) | table.label()}, table.name)
    beyond = len(table.x) - int(spec.inner.accepts(table.x).sum())
    if beyond:
        raise UserError(
            f"{beyond:,} of {len(table.x):,} rows hold inputs beyond {spec.input_max_abs:.3g}, up to where this model cannot "
            f"overflow in {options.precision}; scale the columns alike, or take a lower {option('degree')}, or {option('precision')} float64"
        )
    return spec, compare(spec.inner, replace(source, signal=None), trained, x[:: -(-len(x) // COMPARED_ROWS)])


# --------------------------------------------------------------------------------------------------------- estimates


def root(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _errors(table: LabelledTable, machine: Any, y: np.ndarray) -> dict[str, float | None]:
    """The cross-validated error, the same with its optimism added, and the error without a model."""
    found = machine.selection_
    errors: dict[str, float | None] = {"cross_validated": float(machine.loo_error_)}
    errors["trivial"] = without_model(table, y)
    if table.classes:
        if found is not None:
            errors["cross_validated"] = float(found.error[found.taken])
            errors["corrected"] = found.corrected if found.by == "error" else None
    else:
        errors["cross_validated"] = root(float(machine.loo_error_) if found is None else found.value)
        errors["corrected"] = root(found.corrected) if found is not None else None
    return errors


def without_model(table: LabelledTable, y: np.ndarray) -> float:
    """The error of always predicting the most frequent class, or the mean of the other rows."""
    if table.classes:
        return float(1 - np.bincount(y).max() / len(y))
    return root(float(np.square((y - y.mean()) * len(y) / (len(y) - 1)).mean()))


def too_coarse(table: LabelledTable, spec: Spec, rounding: Mapping[str, Any], typical: float, remedy: str) -> list[str]:
    """Warnings if rounding changes predictions by a large fraction of a typical error."""
    if not (rounding["difference"] > COARSE * typical or rounding["classes_differ"]):
        return []
    what = f"predictions differ by up to {rounding['difference']:.3g} from those of the trained model"
    if table.classes:
        what += f", and {rounding['classes_differ']:,} of {rounding['rows']:,} rows get another class"
    return [f"in {spec.precision}, {what}; {remedy}"]


def _report(
    job: Job, trained: Any, test: np.ndarray, spec: Spec, rounding: Mapping[str, Any], size: int
) -> dict[str, Any]:
    table, train, machine = job.table, job.train, _estimator(trained)
    found, errors = machine.selection_, _errors(table, machine, table.y[train])
    told = [*table.warnings, *([] if found is None or found.edge is None else [found.edge])]
    typical = root(float(machine.loo_press_ if table.classes else machine.loo_error_))
    told += too_coarse(table, spec, rounding, typical, f"take larger ridges, or {option('precision')} float64")
    errors |= on_test_rows(spec, table, test)
    name = width_name(machine.kernel)
    taken = ({name: machine.kernel_[name]} if name else {}) | {"ridge": machine.ridge_}
    best = taken
    if found is not None:
        cell = found.cell(*found.best)
        best = ({name: cell["width"]} if name else {}) | {"ridge": cell["ridge"]}
    basis = None if machine.reduced_ is None else machine.reduced_.basis
    assert spec.expansion is not None
    return {
        "name": spec.name,
        "model": table.model,
        "precision": spec.precision,
        "kernel": machine.kernel_,
        "rows": len(train),
        **({} if table.stage is None else {"raw_rows": dict(table.stage.raw_rows)}),
        "held_out_rows": len(test),
        "inputs": table.inputs,
        "label": table.column,
        "classes": table.classes,
        "assumed": table.assumed,
        "measure": "error_rate" if table.classes else "rmse",
        "by": found.by if found is not None else None,
        "cv": found.cv if found is not None else "deleted",
        "best": best,
        "taken": taken,
        "reason": None if found is None else found.reason,
        "errors": errors,
        "optimism": found.optimism if found is not None else None,
        "table": found.table if found is not None else [],
        "widths": found.table_of_widths if found is not None else [],
        "vectors": len(spec.expansion.vectors),
        "basis": None if basis is None else {key: getattr(basis, key) for key in ("method", "reason", "stopped")},
        "flash_bytes": size,
        "rounding": rounding,
        "warnings": told,
    }


def on_test_rows(spec: Spec, table: LabelledTable, test: np.ndarray) -> dict[str, float | None]:
    """The error on rows held out, and its standard deviation, by the spec as the device computes it."""
    if not len(test):
        return {}
    model, deviation = HostModel(spec.inner), None
    if table.classes:
        error = float((model.classify(table.x[test]) != table.y[test]).mean())
        deviation = math.sqrt(error * (1 - error) / len(test))
    else:
        squares = np.square(np.asarray(model.predict(table.x[test]), np.float64).ravel() - table.y[test])
        error = root(float(squares.mean()))
        if len(test) > 1 and error:  # standard deviation of a square root, to first order
            deviation = float(squares.std(ddof=1)) / math.sqrt(len(test)) / (2 * error)
    return {"held_out": error, "held_out_deviation": deviation}
