"""The estimators' base classes, which check parameters, inputs and labels.

``Streaming`` is the base class of estimators that learn sample by sample.
"""

from __future__ import annotations

import contextlib
import copy
import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.pipeline import Pipeline  # type: ignore[import-untyped]
from sklearn.utils import check_random_state  # type: ignore[import-untyped]
from sklearn.utils.multiclass import check_classification_targets  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted, validate_data  # type: ignore[import-untyped]

from pykernel.algorithms.stages import VARIANCE_LEAST
from pykernel.bases.gram import MercerKernel
from pykernel.dialect import Memory
from pykernel.errors import UserError
from pykernel.estimators.parameters import LEFT_OUT, POSITIVE, Declared, Parameter, one_of, plain, short
from pykernel.host.model import HostModel
from pykernel.importers.place import Place
from pykernel.importers.sklearn import spec_columns
from pykernel.importers.steps import FILE, affine_of, affine_types, scaler_types
from pykernel.spec.base import require_order
from pykernel.spec.model import Spec, make_spec, visible_name
from pykernel.spec.sections import Input
from pykernel.training.trained import class_names

FEW = 4096
"""Arrays of up to this many numbers are checked by ``_as_is``, which is faster than scikit-learn's checks.  For larger arrays,
scikit-learn's checks take little time compared with learning."""
LATER = {"reset": False}
"""Options for scikit-learn's checks after ``fit``: the number of inputs and their names must be the same as in ``fit``."""
INSIDE = ("pykernel.estimators.", "pykernel.river.", "river.", "sklearn.")


def warn(sentence: str) -> None:
    """Issue a warning that points to the estimator's caller, not to a line of this package, River or scikit-learn."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, stacklevel=level)


class KernelEstimator(Declared, BaseEstimator):
    """The base class of all estimators: it checks parameters and inputs, and makes the parts of a spec that all estimators share."""

    def _given(self) -> dict[str, Any]:
        """Return the values of all parameters, in the order of the signature.

        Raises UserError for the first parameter with an invalid value.
        """
        values = {}
        for name, parameter in self._parameters().items():
            values[name] = plain(getattr(self, name))
            if (must := parameter.must) is not None and not must.holds(values[name]):
                raise self._where.error(f"{name} is {short(values[name])}; it must be {must.be}")
        return values

    def _stated(self, *names: str) -> list[str]:
        """Return the given names whose parameters differ from their defaults."""
        known = self._parameters()

        def stated(name: str) -> bool:
            given, default = getattr(self, name), known[name].default
            return not (given is default or (np.isscalar(given) and plain(given) == default))

        return [name for name in names if stated(name)]

    def _sections(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the content of a spec, except [kernel], with the parameters' values unchanged.

        A parameter is left out if it is None, or if it is a flag with its default value.
        """
        content: dict[str, Any] = {}
        for name, p in self._parameters().items():
            value = values[name]
            if p.section in (None, "kernel") or value is None or (value is p.default and isinstance(value, bool)):
                continue
            part = content.setdefault(p.section, {}) if p.section else content
            part[p.key or name] = value
        return content

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31))

    @property
    def _where(self) -> Place:
        """The beginning of an error message: the name of the estimator."""
        return Place(type(self).__name__)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Prefix the message of any UserError raised in the block with this estimator's name."""
        try:
            yield
        except UserError as error:
            raise self._where.error(str(error)) from None

    def _as_is(self, X: Any, options: Mapping[str, Any] = LATER) -> bool:
        """Return True if scikit-learn's checks would certainly return ``X`` unchanged, so that these checks (50 µs) can be skipped."""
        mine = vars(self)
        return (
            options == LATER
            and type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and 0 < X.size <= FEW
            and X.shape[1] == mine.get("n_features_in_")
            and "feature_names_in_" not in mine
            and bool(np.isfinite(X).all())
        )

    def _inputs(self, X: Any) -> np.ndarray:
        if self._as_is(X):
            return cast(np.ndarray, X)
        check_is_fitted(self)
        return cast(np.ndarray, self._checked(X, reset=False))

    def _checked(self, X: Any, **options: Any) -> Any:
        """Run scikit-learn's checks, and return the checked inputs or, if ``options`` contains "y", (inputs, labels)."""
        finite = "allow-nan" if self._completes else True
        return validate_data(self, X, dtype=np.float64, ensure_all_finite=finite, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._completes
        return tags

    @property
    def _completes(self) -> bool:
        """Whether the model replaces missing inputs (NaN)."""
        return getattr(self, "missing", None) not in (None, "refuse")

    # ---- to a spec

    def _made(self, content: dict[str, Any], custom: Any) -> Spec:
        return make_spec(content, self._where, custom)

    @property
    def _columns(self) -> tuple[str, ...] | None:
        """The inputs' names, or None if the inputs have no names or a spec cannot contain these names."""
        return spec_columns(getattr(self, "feature_names_in_", None))

    def _input_section(self, columns: tuple[str, ...] | None) -> dict[str, Any]:
        return {"dim": self.n_features_in_} if columns is None else {"columns": list(columns)}

    def _scaling(self, scaler: Any) -> tuple[np.ndarray, np.ndarray, tuple[str, ...] | None]:
        """Return (center, scale, names) for a fitted scaler or a pipeline of scalers.

        The scaler maps x to (x - center) * scale.
        names: the inputs' names, from the scaler if it has them, otherwise from the model; None if neither has names.
        """
        where, (*kinds, last) = self._where, [kind.__name__ for kind in scaler_types()]
        where.need(
            isinstance(scaler, (Pipeline, *affine_types())),
            f"scaler is a {type(scaler).__name__}; it must be a fitted {', '.join(kinds)} or {last}",
        )
        check_is_fitted(scaler)
        affine = affine_of(scaler, Place(f"{where}: scaler"))
        Place(affine.mixed_by).need(
            affine.matrix is None,
            "mixes inputs, but the model can only shift and scale each input separately; put only scalers and selections "
            "before the model",
        )
        where.need(
            affine.width == self.n_features_in_,
            f"scaler has {affine.width} inputs, but the model has {self.n_features_in_}",
        )
        names = getattr(scaler, "feature_names_in_", None)
        names = None if names is None else spec_columns([names[at] for at in affine.taken])
        return affine.center, affine.scale, names or self._columns

    # ---- the kernel

    def _alone(self, *names: str) -> None:
        """Raise UserError if one of these parameters is given in addition to a MercerKernel, which has parameters of its own."""
        for name in self._stated(*names):
            given = short(getattr(self, name))
            raise self._where.error(
                f"{name} is {given}, but kernel is a MercerKernel with parameters of its own; leave {name} out"
            )


class Absent(UserError, AttributeError):
    """A fitted estimator does not have this attribute.

    It is an AttributeError, so that the attribute counts as absent when scikit-learn reads all attributes to show an estimator
    in a notebook.
    """


# -------------------------------------------------------------------------------------------------------------- labels


def column_names(y: Any) -> list[str]:
    """Return the names of a data frame's columns, or a series' name as a list.

    The list is empty if ``y`` has no names, or if a spec cannot contain them.
    """
    names: list[Any] = list(y.columns) if hasattr(y, "columns") else [getattr(y, "name", None)]
    try:
        return [visible_name(name) for name in names] if len(set(names)) == len(names) else []
    except (TypeError, ValueError, AttributeError):  # the names are not text, or contain invisible characters
        return []


def label_section(
    columns: Sequence[str] | None, names: list[str], outputs: int = 1, classes: Sequence[Any] | None = None
) -> dict[str, Any]:
    """Return the section [label] of a spec, with the classes or the number of outputs.

    The labels' names are included only if the inputs have names, too, and no input has the same name as a label.
    """
    label: dict[str, Any] = {} if classes is None else {"classes": class_names(classes)}
    if columns and names and not set(names) & set(columns):
        return label | ({"columns": names} if outputs > 1 else {"column": names[0]})
    return label | ({"outputs": outputs} if outputs > 1 else {})


def _is_row(y: Any, kinds: str, X: Any) -> bool:
    """Return True if ``y`` is an array of 8-byte numbers, one for each sample, with a ``dtype.kind`` in ``kinds``."""
    return (
        type(y) is np.ndarray
        and y.shape == (len(X),)
        and y.dtype.kind in kinds
        and y.dtype.itemsize == 8
        and y.dtype.isnative
    )


class Regresses:
    """Mixin for estimators whose labels are numbers, one or several for each sample."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.multi_output = True
        return tags

    def _validated(self, X: Any, y: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        if self._as_is(X, options) and _is_row(y, "f", X) and np.isfinite(y).all():  # type: ignore[attr-defined]
            return X, y
        X, y = self._checked(X, y=y, y_numeric=True, multi_output=True, **options)  # type: ignore[attr-defined]
        FILE.need(not hasattr(y, "toarray"), f"{type(self).__name__} takes labels as a dense array, not a sparse one")
        return X, np.asarray(y, np.float64)


class Classifies:
    """Mixin for estimators whose labels are classes."""

    classes_: np.ndarray

    def _validated(self, X: Any, y: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        if self._as_is(X, options) and _is_row(y, "iu", X):  # type: ignore[attr-defined]
            return X, y
        X, y = self._checked(X, y=y, **options)  # type: ignore[attr-defined]
        check_classification_targets(y)
        return X, y

    def _classes_of(self, y: np.ndarray) -> np.ndarray:
        """Return the different classes, sorted.  Raises UserError if there are fewer than two classes."""
        classes, where = np.unique(y), Place(type(self).__name__)
        where.need(
            len(classes) > 1,
            f"y holds one class, {classes.tolist()[0]!r}; a classifier needs samples of two or more classes",
        )
        return classes


# ----------------------------------------------------------------------------------------------------- sample by sample


class Streaming(KernelEstimator):
    """Base of estimators that learn sample by sample, with the host model.

    The host model runs the source from which the device's C is printed, and computes the same bits.
    """

    spec_: Spec
    model_: HostModel
    status_counts_: dict[str, int]

    def refresh(self) -> Self:
        """Remove the rounding errors accumulated in the factor of the Gram matrix.  O(n_max^3 + n_max^2 n_features).

        Call this method about once per 1000 updates that store a vector, if the technique or rule keeps such a factor.
        For models without such a factor, the method does nothing. The method is never called automatically, because it
        changes the state: the device must call NAME_refresh after the same sample, or the two states will differ.
        """
        check_is_fitted(self)
        self.model_.refresh()
        return self

    def to_spec(self, name: str, scaler: Any = None) -> Spec:
        """Return the model's spec under the given name, without the learned state: a device built from it starts untrained.

        To include the learned state, call ``pykernel.generate(model, out, name=…)``, which also accepts a whole
        pipeline with scalers.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        scaler : fitted scaler or Pipeline of scalers, default=None
            The steps before the model: StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler or selections of columns.
            If they are given, the device takes unscaled inputs. For a model that standardises its inputs, the scaler
            changes only the names and the limit of the inputs.

        Returns
        -------
        spec : Spec
            ``to_spec(name).to_toml()`` returns the text of the spec file.

        Raises
        ------
        UserError
            If a name is invalid, or a step is not a scaler. With a scaler, also if the rule cannot center and scale its
            inputs, or if the scaler maps an input of 0 to a value whose magnitude is not below ``input_max_abs``.
        """
        check_is_fitted(self)
        spec = self.spec_
        content = {**spec.model_dump(exclude_unset=True), "name": name}
        if scaler is None:
            return self._made(content, spec.custom)
        center, scale, names = self._scaling(scaler)
        # the model's limit, in the unit of the unscaled inputs
        reach, middle = spec.input.max_abs / np.abs(scale), np.abs(center)
        # a model that standardises its inputs takes the largest limit, which causes no overflow; other models take the smallest
        max_abs = float((reach + middle).max() if spec.standardises else (reach - middle).min())
        self._where.need(
            max_abs > 0,
            f"input_max_abs is {self._limits}, but the scaler maps an input of 0 to a value of this magnitude or more; "
            "learn with a larger input_max_abs",
        )
        inputs = {k: v for k, v in content["input"].items() if k not in ("columns", "dim")} | {"max_abs": max_abs}
        if not spec.standardises:
            self._where.need(
                spec.has("input", "center"),
                f"rule {spec.learning.rule} cannot center and scale its inputs; {self._instead_of_scaler}",
            )
            inputs |= {"center": center.tolist(), "scale": scale.tolist()}
        return self._made({**content, "input": self._input_section(names) | inputs}, spec.custom)

    def __pykernel_learned__(self, name: str, scaler: Any) -> tuple[Spec, Memory]:
        """Return the spec and the state of a model that takes unscaled inputs.  ``pykernel.generate`` calls this method for a pipeline."""
        spec, memory = self.to_spec(name, scaler), copy.deepcopy(self.model_.memory)
        if not self.spec_.standardises:
            return spec, memory
        # convert running means and variances to the unit of the unscaled inputs
        center, scale, _ = self._scaling(scaler)
        mean, variance, factor = (memory.field(key) for key in ("mean", "variance", "scale"))
        if memory.field("observed")[0] > 0:
            mean[:] = mean / scale + center
            variance[:] = variance / scale**2
            factor[:] = 1 / np.sqrt(np.maximum(variance, VARIANCE_LEAST.value(spec.real)))
        return spec, memory

    # ---- learning: methods that subclasses override for a family or a kind of labels

    def _validated(self, X: Any, y: Any, **options: Any) -> tuple[np.ndarray, Any]:
        if self._as_is(X, options):
            return X, None
        return self._checked(X, **options), None

    def _label(self, y: Any, names: list[str]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        """Return (entries, attributes).

        entries: the entries of the spec's [label] that are derived from the samples, or None for models without labels.
        attributes: the fitted attributes to set, with their values.
        """
        return None, {}

    def _encoded(self, y: Any) -> Any:
        """Convert labels to the form that the host model takes."""
        return None

    def _has_kernel(self, values: Mapping[str, Any]) -> bool:
        return False

    def _epochs(self) -> int:
        """Return the number of passes of ``fit`` over the data.  ``spec_`` must exist."""
        return 1

    _instead_of_scaler = (
        "leave the rule out (rule=None), so that the device standardises the inputs, or use a rule with a kernel, "
        "such as krls-t"
    )

    def _remedy(self) -> str:
        """Say what to do if learning diverges."""
        return "lower eta"

    # ---- learning: shared by all families

    def _stream(self, X: Any, y: Any, *, fits: bool = False, afresh: bool, known: Any = None) -> Self:
        """Learn the samples in order.

        fits: whether to make all passes of ``fit`` instead of one.  afresh: whether to begin with a new model.
        known: all labels that may occur.
        """
        names = column_names(y)
        X, y = self._validated(X, y, reset=afresh)
        if afresh:
            self._start(X, *self._label(y if known is None else known, names))
        require_order({"labels": self.spec_.label_columns}, {"labels": names}, self._where, "y")
        self._learn(X, self._encoded(y), self._epochs() if fits else 1)
        return self

    def _start(self, X: np.ndarray, label: dict[str, Any] | None, about: dict[str, Any]) -> None:
        """Make a new model.

        Parameters that are not given are derived from the data, or get the spec's defaults.
        """
        values = self._given()
        content, limits = self._sections(values), {}
        if self._has_kernel(values):
            content["kernel"] = self._kernel_section(values, X)
            limits = product_limit(content["kernel"], X.shape[1], content["precision"])
        content["input"] = self._input_section(self._columns) | limits | content.get("input", {})
        if label is not None:
            content["label"] = content.get("label", {}) | label
        self.spec_ = self._made({"name": "model", **content}, getattr(values.get("kernel"), "custom", None))
        self.model_ = HostModel(self.spec_)
        self.status_counts_ = {status.name: 0 for status in self.spec_.program.status}
        for name, value in about.items():
            setattr(self, name, value)

    def _learn(self, X: np.ndarray, y: Any, epochs: int) -> None:
        self._counted(np.concatenate([self.model_.update(X, y) for _ in range(epochs)]))

    _afresh = "call fit, or partial_fit on a clone"

    def _counted(self, statuses: np.ndarray) -> None:
        """Count the statuses of updates.

        Warns about updates that were refused or that restarted the model: after the first such update, and then roughly
        each time their number doubles.
        """
        spec, status, counts = self.spec_, self.spec_.program.status, self.status_counts_
        met = {status(code): count for code, count in Counter(statuses.tolist()).items()}
        for each, count in met.items():
            counts[each.name] += count
        lost = {each for each in status if each < 0 or each.name == "RESTARTED"}
        refused = sum(counts[each.name] for each in lost)
        before = refused - sum(count for each, count in met.items() if each in lost)
        if before.bit_length() == refused.bit_length():
            return
        names, remedies = {each.name for each in met}, []
        if names & {"RESTARTED", "REFUSED_MULTIPLIER", "REFUSED_WEIGHT"}:
            unrelated = ", or labels had nothing to do with their inputs" if "RESTARTED" in names else ""
            remedies.append(f"learning diverged{unrelated}: {self._remedy()}")
        if "REFUSED_INPUT" in names:
            missing = ", or leave out samples whose inputs are all missing" if spec.completes else ""
            remedies.append(f"raise input_max_abs from {self._limits}{missing}")
        if "REFUSED_LABEL" in names:
            remedies.append(f"raise label_max_abs from {spec.label.max_abs:g}")
        todo = "; ".join([*remedies, f"to start afresh, {self._afresh}"])
        what = "were refused or restarted the model" if counts.get("RESTARTED") else "were refused"
        warn(f"{refused:,} of {sum(counts.values()):,} updates {what}: {todo}")

    @property
    def _limits(self) -> str:
        """The common limit of all inputs, or the limit of each input, as text."""
        return ", ".join(f"{each:g}" for each in np.ravel(self.spec_.input.max_abs))

    def _finite(self, values: np.ndarray) -> np.ndarray:
        """Convert results of the host model to float64, and warn about samples that the device would refuse."""
        refused = np.count_nonzero(np.isnan(values.reshape(len(values), -1)[:, 0]))
        if refused:
            warn(
                f"{refused} of {len(values)} samples have an input beyond the limit of {self._limits}; their results are NaN"
            )
        return values.astype(np.float64)

    # ---- the kernel, some of whose parameters are derived from the inputs

    def _kernel_section(self, values: Mapping[str, Any], X: np.ndarray) -> dict[str, Any]:
        """Return the spec's [kernel]."""
        given = values["kernel"]
        if not isinstance(given, MercerKernel):
            return kernel_section(values, X)
        self._alone(*(name for name in KERNEL if name != "kernel"))
        if given.custom is None:
            return kernel_section({**values, **given.section(), "kernel": given.function}, X)
        bounded = values["input_max_abs"] is not None
        within = "the kernel's max_value holds only for inputs within this limit"
        self._where.need(bounded, f"input_max_abs must be given with a custom kernel, because {within}")
        return given.section()


SCALED = POSITIVE | one_of("scale") | LEFT_OUT
KERNEL = {
    "kernel": Parameter(
        "kernel",
        kind=str | MercerKernel | None,
        text="""{"gaussian", "laplacian", "matern12", "matern32", "matern52", "polynomial", "linear"} or MercerKernel, \
default="gaussian"
        ``k(a, b)``: ``exp(-gamma |a - b|_1)`` for "laplacian"; ``exp(-r)``, ``(1 + r) exp(-r)`` and
        ``(1 + r + r^2 / 3) exp(-r)`` with ``r = gamma |a - b|`` for "matern12", "matern32", "matern52";
        ``(gamma a'b + coef0)^degree`` for "polynomial"; ``a'b`` for "linear". A MercerKernel is used with its
        own gamma, coef0, degree and normalise; if it is a custom kernel, ``input_max_abs`` must be given.""",
    ),
    "sigma": Parameter(
        "kernel",
        kind=float | str | None,
        must=SCALED,
        text="""float or "scale", default="scale"
        Width of the kernel ``exp(-|a - b|^2 / (2 sigma^2))``, in the inputs' unit. "scale":
        ``sigma^2 = n_features * v / 2``, where ``v`` is the mean variance of the features in the data of ``fit`` or
        of the first ``partial_fit``. This is the width of ``SVR(gamma="scale")`` on centred data.""",
    ),
    "gamma": Parameter(
        "kernel",
        kind=float | str | None,
        must=SCALED,
        text="""float or "scale", default="scale"
        The kernel's gamma. For "gaussian", gamma is ``1 / (2 sigma^2)``, and may be given instead of ``sigma``. With
        "scale", gamma is computed from the width that ``sigma="scale"`` gives: ``1 / (sigma sqrt(2 n_features))`` for
        "laplacian"; ``1 / sigma``, ``sqrt(3) / sigma`` and ``sqrt(5) / sigma`` for "matern12", "matern32" and
        "matern52"; and ``1 / (2 sigma^2)`` for "polynomial".""",
    ),
    "coef0": Parameter("kernel", kind=float | None),
    "degree": Parameter("kernel", kind=int | None),
    "normalise": Parameter("kernel", default=False, kind=bool),
}
"""Parameters of the kernel, for families that derive the kernel's scale from the inputs."""


def width(sigma: Any, X: np.ndarray) -> float:
    """Return ``sigma`` or, if it is not a number, a width that is derived from the inputs."""
    if sigma not in (None, "scale"):
        return cast(float, sigma)
    with np.errstate(over="ignore"):
        found = math.sqrt(X.var(axis=0).sum() / 2)
    if math.isnan(found):  # leave out missing values
        there = [column[~np.isnan(column)] for column in X.T]
        found = math.sqrt(sum(column.var() for column in there if len(column)) / 2)
    if found == 0:
        samples = "1 sample" if len(X) == 1 else f"{len(X)} equal samples"
        raise ValueError(
            f'sigma="scale" is derived from the differences between the first samples, but X has only {samples}; '
            "start with more samples, or give sigma as a number"
        )
    return found


SCALES: dict[str, Callable[[float, int], float]] = {
    "laplacian": lambda sigma, dim: 1 / (sigma * math.sqrt(2 * dim)),
    "matern12": lambda sigma, dim: 1 / sigma,
    "matern32": lambda sigma, dim: math.sqrt(3) / sigma,
    "matern52": lambda sigma, dim: math.sqrt(5) / sigma,
    "polynomial": lambda sigma, dim: 0.5 / sigma**2,
}
"""Kernel -> a function that returns the kernel's gamma for a width and a number of inputs."""


def kernel_section(values: Mapping[str, Any], X: np.ndarray) -> dict[str, Any]:
    """Return the section [kernel] of a spec for a kernel that is given by name."""
    function, gamma = values["kernel"] or "gaussian", values["gamma"]
    given = {key: values.get(key) for key in (*KERNEL, "alpha") if key != "kernel"}  # only a MercerKernel has alpha
    section = {key: value for key, value in given.items() if value is not None and value is not False}
    scaled = gamma in (None, "scale")
    if scaled:
        section.pop("gamma", None)
    if "sigma" in section or (scaled and function == "gaussian"):
        section["sigma"] = width(values["sigma"], X)
    if scaled and function in SCALES:
        section["gamma"] = SCALES[function](width("scale", X), X.shape[1])
    return section if scaled and function == "gaussian" else {**section, "function": function}


def product_limit(section: Mapping[str, Any], dim: int, precision: str) -> dict[str, Any]:
    """Return {"max_abs": limit} for [input], so that the product of two values of a polynomial or linear kernel cannot overflow.

    Return {} for other kernels, or if the default limit is small enough.
    """
    function, usual = section.get("function"), Input.model_fields["max_abs"].default
    degree, coef0 = section.get("degree", 3 if function == "polynomial" else 1), section.get("coef0", 0.0)
    known = type(degree) is int and degree >= 1 and type(coef0) in (int, float)  # the spec refuses other values
    if function not in ("polynomial", "linear") or not known:
        return {}
    largest = 1e16 if precision == "float32" else 1e140
    # k(x, x) is at most (gamma dim max_abs^2 + coef0)^degree
    found = math.sqrt(max(largest ** (1 / degree) - coef0, 1.0) / dim / section.get("gamma", 1.0))
    return {"max_abs": found} if found < usual else {}
