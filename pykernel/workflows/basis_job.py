"""What ``fit`` does for a basis: it chooses width, ridge and vectors, and computes the weights, the spec and the part of tr K that is left
out.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.bases.basis import Basis, block_rows
from pykernel.bases.gram import KERNELS, MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError, shown_option
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.parallel import one_thread
from pykernel.progress import Show
from pykernel.request.kinds import Numbers, positive_numbers, words
from pykernel.rows import ScaledRows
from pykernel.spec.defaults import round_limit
from pykernel.spec.families.nystrom import LEAST_ALD_THRESHOLD
from pykernel.spec.kernel_settings import MATERN_UNITS
from pykernel.spec.model import Spec, make_spec
from pykernel.telling import root_of_mean_square, without_model_phrase
from pykernel.training.bkfe import bkfe_on_basis
from pykernel.training.closed_form import Model
from pykernel.training.coding import Targets
from pykernel.training.reduced import ReducedModel, ReducedProblem, nystrom_content, select_reduced
from pykernel.training.selection import Selection, default_widths, width_name
from pykernel.training.vectors import MANY, class_targets, train, value_targets
from pykernel.training.vectors import Rows as TrainingRows
from pykernel.tuning.samples import Samples, Scaled, Seen, look, read, scaled
from pykernel.workflows.arguments import (
    BASIS_MODELS,
    COARSE,
    COMPARED_ROWS,
    TRAINED,
    called,
    method_options,
    need_known,
    width,
)
from pykernel.workflows.fit_request import DEFAULT_RIDGE
from pykernel.workflows.fit_request import Fit as Asked

LEARNING = ("nystrom-rls", "kfd")
"""Rules of models whose weights the device learns."""
TUNED_ROWS = 5000
"""Largest number of rows that are used to choose the width.  From a larger table, this many rows are drawn."""
LIMIT_ROWS = 3000
"""Largest number of rows for which the Gram matrix's eigenvalues are computed, to compare the basis with the best possible one."""
PULL = 1e-2
"""Factor of the penalty that pulls the trained widths towards their initial values, for a model whose weights the device learns.
With a smaller factor, kernels become so wide that their functions are nearly linearly dependent."""
MARGIN = 1.01
"""Smallest residual of a chosen vector, as a multiple of the smallest residual that the spec's precision allows.

The multiple is above 1, because rounding the elements of a vector changes the vector's residual.  In float32, the smallest
allowed residual is 0.001 k(x, x).  The multiple 1.01 adds 0.00001 k(x, x), which is 170 times the rounding error of k(x, x).
"""


# ------------------------------------------------------------------------------------------------- arguments


@dataclass(frozen=True)
class Request:
    """The options, checked and converted to numbers.

    n_max: largest number of vectors.  model: the model that is fitted to the label.  epsilon: smallest residual of a
    vector.  widths, ridges: values to try, or None to derive them from the data.  of_method: further options of the
    method that chooses the vectors.
    """

    options: Asked
    n_max: int
    model: Model
    epsilon: float
    widths: list[float] | None
    ridges: list[float] | None
    of_method: dict[str, Any]


def requested(options: Asked, n_max: int) -> Request:
    """Return the options, checked and converted to numbers.  Raises UserError, before any computation starts, for an invalid
    model, kernel or number.
    """
    model = _model(options)
    if options.precision not in LEAST_ALD_THRESHOLD:
        raise UserError(f"{shown_option('precision')} is {options.precision}; it must be float32 or float64")
    # the spec's precision sets the smallest residual that a vector may have
    epsilon = 1e-10 if not options.makes_spec else MARGIN * LEAST_ALD_THRESHOLD[options.precision]
    own, wanted = width(options, [each for each in KERNELS if each != "sigmoid"], " here")
    widths = [1.0] if own is None else _numbers(options, wanted, own)
    ridges = _numbers(options, options.ridge, "ridge")
    of_method = method_options(options.with_, (options.method or "auto"))
    return Request(options, n_max, model, of_method.pop("epsilon", epsilon), widths, ridges, of_method)


def _model(options: Asked) -> Model:
    model: Any = options.model
    if model is not None:
        need_known(model, BASIS_MODELS, "model")
    if options.rule == "kfd":
        if model is not None:
            raise UserError(
                f"{shown_option('model', model)} does not go with {shown_option('rule', 'kfd')}, which is itself a model; leave {shown_option('model')} out"
            )
        return "kfd"
    if options.rule == "nystrom-rls" and model == "ls-svm":
        raise UserError(
            f"{shown_option('model', 'ls-svm')} has a bias, but a model that learns on the device has none; "
            f"give {shown_option('model', 'krr')}, or leave {shown_option('model')} out"
        )
    return model or ("krr" if options.rule == "nystrom-rls" else "ls-svm")


def _numbers(options: Asked, value: Numbers, name: str) -> list[float] | None:
    """Return the values to try, in ascending order."""
    if value is None:
        return None
    numbers = sorted(set(positive_numbers(value, name)))
    if len(numbers) > 1 and options.label is None:
        raise UserError(
            f"{shown_option(name)} holds several values, but without a label, fit cannot choose among them; give one value, or {shown_option('label')}"
        )
    return numbers


# --------------------------------------------------------------------------------------------------------- the work


@dataclass(frozen=True)
class Chosen:
    """The chosen basis.

    seconds: the time in which the vectors were chosen, without the choice of the width.  selection: the choice of the
    ridge; None without a label.  machine: the weights; None if the device gets no weights.  With --features,
    ``machine`` computes the features, and ``sigma`` holds their singular values.
    """

    basis: Basis
    seconds: float
    selection: Selection | None
    machine: ReducedModel | None
    sigma: np.ndarray | None = None


def begin(request: Request, show: Show) -> Job:
    """Read the rows, and check them in one pass.  For the method "trained", the vectors are trained here, too."""
    options = request.options
    names, classes = words(options.inputs), words(options.classes)
    samples = read(str(options.data), names, options.label, classes, options.rule == "kfd", show)
    if options.makes_spec:  # raises UserError for names that no spec can contain, before any computation starts
        inputs = {"dim": samples.rows.dim} if samples.inputs is None else {"columns": samples.inputs}
        make_spec({"name": called(options), "input": inputs, "kernel": {"sigma": 1.0}}, samples.name)
    if samples.column is None:
        samples.assumed.append(
            f"without a label, fit chooses a basis and trains no predictor; to predict a column, name it with {shown_option('label')}"
        )
    seen = look(samples, show)
    options.watch.data(samples.data)
    if (options.method or "auto") == TRAINED:
        rows, moved = _moved(request, samples, seen, show)
        return Job(**vars(replace(request, widths=[1.0])), samples=samples, scaled=rows, moved=moved)
    return Job(**vars(request), samples=samples, scaled=scaled(samples, seen, options.standardise))


def _moved(request: Request, samples: Samples, seen: Seen, show: Show) -> tuple[Scaled, np.ndarray]:
    """Train vectors and widths.  Returns the rows scaled by the trained widths, and an array of shape (n, D) with the vectors,
    which are scaled in the same way.  After this scaling, the kernel's width is 1.
    """
    assert samples.y is not None
    options, n_max = request.options, request.n_max
    rng, count = np.random.default_rng(options.seed), len(samples.rows)
    at = np.sort(rng.choice(count, MANY, replace=False, shuffle=False)) if count > MANY else np.arange(count)
    x, y, counts = samples.rows.take(at), samples.y[at], np.ones(len(at))
    if n_max > len(x):
        raise UserError(
            f"{shown_option('n_max')} is {n_max}; with {shown_option('method', 'trained')}, give at most {len(x):,}, the number of rows to train on"
        )
    targets = class_targets(y, len(samples.classes)) if samples.classes else value_targets(y[:, None], counts)[0]
    trained = train(
        TrainingRows(x, targets, counts),
        n_max,
        "classes" if samples.classes else "squared",
        seed=options.seed,
        pull=PULL,
        tell=lambda part: show(part, f"training {n_max} vectors"),
    )
    if trained.interrupted:
        raise KeyboardInterrupt
    scale = np.broadcast_to(np.exp(trained.model.log_scale), seen.mean.shape).copy()
    largest = np.maximum(np.abs(seen.low - seen.mean), np.abs(seen.high - seen.mean)) * scale
    rows = Scaled(ScaledRows(samples.rows, seen.mean, scale), seen.mean, scale, largest)
    return rows, (trained.model.vectors - seen.mean) * scale


@dataclass(frozen=True)
class Job(Request):
    """The options and the rows.  moved: trained vectors, (n, D), scaled like the rows."""

    samples: Samples
    scaled: Scaled
    moved: np.ndarray | None = None

    @property
    def draws(self) -> dict[str, Any]:
        return {"candidates": self.options.candidates or None, "points": self.options.points or None}

    def run(self) -> Chosen:
        options, rows = self.options, self.scaled.rows
        selection, machine, sigma = None, None, None
        with one_thread:  # so that the spec's bits do not depend on the number of threads
            kernel = self._mercer(self._width())
            start = time.perf_counter()
            basis = self._at_once(kernel)
            seconds = time.perf_counter() - start
            if self.samples.y is not None:  # the ridge is chosen by cross-validation on all rows
                how: dict[str, Any] = {"basis": basis, "seed": options.seed, "progress": options.watch.bars}
                selection = select_reduced(self.model, rows, self._targets(), kernel, None, self.ridges, **how)
                if options.makes_spec and options.rule not in LEARNING:
                    machine = ReducedProblem(self.model, basis, rows, self._targets()).solve(selection.ridge)
            if options.features is not None:
                w, sigma = bkfe_on_basis(basis, rows, options.features, options.shrinkage)
                machine = ReducedModel("krr", basis, w, np.zeros(len(sigma)))
        return Chosen(basis, seconds, selection, machine, sigma)

    def _mercer(self, width: float) -> MercerKernel:
        options = self.options
        gamma = 0.5 / width / width if options.kernel == "gaussian" else width
        coef0, degree = (options.coef0, options.degree) if options.kernel == "polynomial" else (0.0, 1)
        return MercerKernel(options.kernel, gamma, coef0, degree, options.normalise)

    def _width(self) -> float:
        """Return the width.  If there are several to choose from, this is the best one on a sample of the rows."""
        options, rows = self.options, self.scaled.rows
        at, x = self._sample()
        widths = self.widths
        if widths is None:
            widths = self._default_widths(x, self.samples.y is not None)
        if len(widths) == 1:
            return widths[0]
        if len(x) < len(rows):
            self.samples.assumed.append(f"the width was chosen on {len(x):,} of {len(rows):,} rows")
        tuned = select_reduced(
            self.model,
            x,
            self._targets(at),
            self._mercer(1.0),
            widths,
            self.ridges,
            basis=min(self.n_max, len(x)),
            method=options.method or "auto",
            epsilon=self.epsilon,
            seed=options.seed,
            progress=options.watch.bars,
            **self.draws,
            **self.of_method,
        )
        return tuned.width

    def _at_once(self, kernel: MercerKernel) -> Basis:
        options = self.options
        if self.moved is not None:
            return self._of_moved(kernel, self.moved)
        return select_basis(
            self.scaled.rows,
            kernel,
            self.n_max,
            (options.method or "auto"),
            seed=options.seed,
            tau=options.tau,
            confidence=options.confidence,
            epsilon=self.epsilon,
            progress="vectors" if options.watch.bars else None,
            **self.draws,
            **self.of_method,
        )

    def _of_moved(self, kernel: MercerKernel, vectors: np.ndarray) -> Basis:
        """Return a basis of the trained vectors.  It omits vectors that, within the device's precision, lie in the span of the others.

        The part of tr K that this basis leaves out is measured on a sample of the rows.
        """
        basis = select_basis(vectors, kernel, len(vectors), "pivoted-cholesky", epsilon=self.epsilon)
        z = basis.features(self._sample()[1])
        trace = 1 - np.concatenate([[0.0], np.cumsum(np.square(z).mean(axis=0))])
        nowhere = np.full(len(basis), -1, np.int64)
        return replace(basis, indices=nowhere, trace=trace.clip(0), exact=False, method=TRAINED, stopped="n_max")

    def _sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Draw at most TUNED_ROWS rows.  Returns their positions in ascending order, and the rows themselves."""
        count = len(self.scaled.rows)
        at = np.arange(count)
        if count > TUNED_ROWS:
            at = np.sort(
                np.random.default_rng(self.options.seed).choice(count, TUNED_ROWS, replace=False, shuffle=False)
            )
        return at, self.scaled.rows.take(at)

    def _targets(self, at: np.ndarray | None = None) -> Targets:
        """Return the targets of the rows ``at``, or of all rows."""
        samples = self.samples
        assert samples.y is not None
        y = samples.y if at is None else samples.y[at]
        if samples.classes is None:
            # for trained vectors, subtract the mean, as [label] center does on the device
            return Targets.of_values(y if self.moved is None else y - samples.y.mean())
        return Targets.of_classes(y, len(samples.classes), "counts" if self.model == "kfd" else "signs")

    def _default_widths(self, x: np.ndarray, several: bool) -> list[float]:
        function: Any = self.options.kernel
        widths = list(default_widths(function, x))
        if function in MATERN_UNITS:
            lengths = reversed(default_widths("gaussian", x))
            widths = [float(f"{MATERN_UNITS[function] / length:.3g}") for length in lengths]
        if several:
            return widths
        middle = widths[len(widths) // 2]
        if function != "linear":
            gaussian = function == "gaussian"
            what = "half the median distance between rows" if gaussian else "from the rows' distances or magnitudes"
            self.samples.assumed.append(f"{width_name(function)} {middle:g}, {what}")
        return [middle]


# --------------------------------------------------------------------------------------------------------- the spec


def spec_of(job: Job, chosen: Chosen) -> Spec:
    """Return a spec whose model uses the basis.

    The rule decides what the device does with this model: it only predicts, it learns the weights (nystrom-rls), or it
    trains a discriminant (kfd).
    """
    options, samples, machine = job.options, job.samples, chosen.machine
    label: dict[str, Any] | None = None
    if samples.column is not None:
        label = {"column": samples.column} if samples.inputs is not None else {}
        label |= {"classes": samples.classes} if samples.classes else {}
    content = nystrom_content(
        chosen.basis,
        called(options),
        options.precision,
        job.scaled.largest,
        columns=None if samples.inputs is None else tuple(samples.inputs),
        label=label,
        weights=None if machine is None else machine.w,
        bias=None if machine is None else machine.bias,
        center=job.scaled.center,
        scale=job.scaled.scale,
    )
    if options.rule in LEARNING:
        content["label"] = label or {}
        content |= _learning(job, chosen.selection)
    if options.rule == "nystrom-rls" and samples.y is not None and not samples.classes:
        content["label"]["max_abs"] = round_limit(samples.y)
        if job.moved is not None:  # the vectors were trained together with a bias
            content["label"]["center"] = True
    return make_spec(content, samples.name)


def _learning(job: Job, selection: Selection | None) -> dict[str, Any]:
    """Return the spec's sections for a model that learns on the device."""
    if job.options.rule == "kfd":
        assert selection is not None
        return {"learning": {"rule": "kfd", "ridge": selection.ridge}}
    best = selection.ridge if selection is not None else (job.ridges or [DEFAULT_RIDGE])[0]
    return {"learning": {"rule": "nystrom-rls", "ridge": best}, "basis": {"method": "given"}}


# ------------------------------------------------------------------------------------------------- report and files


def report_of(job: Job, chosen: Chosen, spec: Spec | None) -> dict[str, Any]:
    samples, basis, selection = job.samples, chosen.basis, chosen.selection
    report: dict[str, Any] = {
        "rows": len(samples.rows),
        "inputs": samples.data["inputs"],
        "label": samples.column,
        "classes": samples.classes,
        "assumed": samples.assumed,
        "data": samples.data,
        "kernel": basis.kernel.section(),
        "chosen": _taken(basis.kernel, selection),
        "method": basis.method,
        "reason": basis.reason,
        "stopped": basis.stopped,
        "vectors": len(basis),
        "left_out": basis.trace.tolist(),
        "exact": basis.exact,
        "bound": basis.bound,
        "confidence": job.options.confidence,
        "limit": _limit_of(job, basis.kernel, len(basis)),
        "kernel_values": basis.evaluations,
        "seconds": chosen.seconds,
        **_errors(samples, selection),
        "typical_error": None if selection is None else root_of_mean_square(float(selection.press[selection.taken])),
        "features": _features(job, chosen),
        "warnings": [],
    }
    if spec is not None:
        report |= {"name": spec.name, "rule": spec.learning.rule, "flash_bytes": build(spec).figures["const_bytes"]}
        if spec.learning.rule == "nystrom":
            report["rounding"] = _compare(job, chosen, spec)
            report["warnings"] += _rounding_warnings(report, chosen, spec)
    return report


def _taken(kernel: MercerKernel, selection: Selection | None) -> dict[str, float]:
    """Return the kernel's width and the ridge as a dict: name -> value."""
    name = width_name(kernel.function)  # type: ignore[arg-type]
    taken = {name: float(f"{kernel.width:.6g}")} if name else {}
    return taken | ({"ridge": selection.ridge} if selection else {})


def _errors(samples: Samples, selection: Selection | None) -> dict[str, Any]:
    """Return the leave-one-out error, and the error of always predicting the mean or the most frequent class."""
    if selection is None or samples.y is None:
        return {"errors": {}, "measure": None, "simple": {}}
    if samples.classes:
        assert selection.error is not None
        measure, error = "error_rate", float(selection.error[selection.taken])
        simple = float(1 - np.bincount(samples.y).max() / len(samples.y))
    else:
        measure, error = "rmse", root_of_mean_square(float(selection.press[selection.taken]))
        simple = float(samples.y.std())
    known = {without_model_phrase(samples.classes): {measure: simple}}
    return {"errors": {"cross_validated": error}, "measure": measure, "simple": known}


def _features(job: Job, chosen: Chosen) -> dict[str, Any] | None:
    """Return the number of features, their singular values, and the part of tr K that the features leave out."""
    if chosen.sigma is None:
        return None
    rows = job.scaled.rows
    total = sum(
        float(chosen.basis.kernel.self_values(block).sum()) for _, block in rows.blocks(block_rows(1, rows.dim))
    )
    known = float(np.square(chosen.sigma - job.options.shrinkage).sum())
    return {
        "count": len(chosen.sigma),
        "shrinkage": job.options.shrinkage,
        "singular_values": chosen.sigma.tolist(),
        "left_out": 1 - known / total,
    }


def _rounding_warnings(report: dict[str, Any], chosen: Chosen, spec: Spec) -> list[str]:
    difference, typical = report["rounding"]["difference"], report["typical_error"]
    if chosen.sigma is not None:
        # features have no error, so the difference is compared with the root mean square of the smallest feature
        typical = (float(chosen.sigma[-1]) - report["features"]["shrinkage"]) / math.sqrt(report["rows"])
    if chosen.machine is None or difference <= COARSE * typical:
        return []
    return [
        f"in {spec.precision}, predictions differ by up to {difference:.3g} from those in float64 on this PC; "
        f"use a larger {shown_option('ridge' if chosen.sigma is None else 'shrinkage')}, fewer vectors, or {shown_option('precision', 'float64')}"
    ]


def _limit_of(job: Job, kernel: MercerKernel, n: int) -> list[float] | None:
    """Return a list with, for each number of vectors from 0 to n, the smallest fraction of tr K that a basis of this size can leave out.

    For m vectors, this fraction is the sum of all eigenvalues of K / tr K except the m largest.  For l rows, the cost
    is O(l^3).  With more than LIMIT_ROWS rows, the result is None.
    """
    rows = job.scaled.rows
    if len(rows) > LIMIT_ROWS:
        return None
    x = rows.take(np.arange(len(rows)))
    values = np.linalg.eigvalsh(kernel.gram(x, x))[::-1].clip(0)
    left = values.sum() - np.concatenate([[0.0], np.cumsum(values[:n])])
    return [float(each) for each in (left / values.sum()).clip(0)]


def _compare(job: Job, chosen: Chosen, spec: Spec) -> dict[str, Any]:
    """Return the number of compared rows, and the largest difference between the device's outputs and outputs computed in float64."""
    at = np.unique(np.linspace(0, len(job.samples.rows) - 1, COMPARED_ROWS).astype(np.int64))
    predicted = np.asarray(HostModel(spec).predict(job.samples.rows.take(at)), np.float64).reshape(len(at), -1)
    x = job.scaled.rows.take(at)
    expected = chosen.basis.features(x) if chosen.machine is None else chosen.machine.predict(x)
    return {"rows": len(at), "difference": float(np.abs(predicted - expected).max())}
