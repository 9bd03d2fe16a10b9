"""Kernel features that follow a stream, and monitors, as a scikit-learn estimator.

It learns sample by sample with the host model of rule "okfeb", bit for bit as on the device.  ``subspace_head`` learns labels on
the features; ``subspace_batch`` solves the whole problem in one step, in float64.  All export their features, and linear
models of the features, to C.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import (  # type: ignore[import-untyped]
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from pykernel.bases.gram import MercerKernel
from pykernel.estimators.base import KERNEL, Streaming
from pykernel.estimators.monitor import Detector
from pykernel.estimators.online import COMMON
from pykernel.estimators.parameters import (
    Parameter,
    moved,
    of_keys,
    plain,
    whole,
)
from pykernel.estimators.subspace_batch import PIVOT, coefficients, exported, frozen_machine
from pykernel.spec.families.subspace import SUBSPACE_MODELS, rank_of
from pykernel.spec.family import Family
from pykernel.spec.kernel_settings import largest
from pykernel.spec.model import Spec
from pykernel.training.subspace import Approximation, HostSubspace
from pykernel.training.trained import Machine

NAMED = {
    ("learning", "features"): "n_components",
    ("learning", "forgetting"): "head_forgetting",
    ("learning", "eta"): "head_eta",
}
"""Keys whose parameters have other names: those of the model that learns labels on the features."""
OWN = {
    "false_alarm_rate": Parameter(
        "novelty",
        kind=float | None,
        text="""float
        Wanted part of the samples of normal operation that are in alarm, for example 0.001; the threshold of novelty
        adapts to this rate. None: there are no alarms; 0.01 if ``smoothing``, ``warmup`` or ``relearn_after`` is given.""",
    ),
    "n_epochs": Parameter(
        default=1,
        kind=int,
        must=whole(1),
        text="""int
        Number of passes of ``fit`` over the data, in order.""",
    ),
}
"""Parameters that are told in other words than those of the spec."""
HEAD = ("head", "ridge", "head_forgetting", "head_eta", "label_max_abs")
"""Parameters of estimators that learn labels."""


class OnlineSubspace(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Streaming):
    """Base of the online estimators: features, novelty and exports."""

    _without: ClassVar[Sequence[str]] = ("rule", "force")
    _defaults: ClassVar[dict[str, Any]] = {"n_components": 16, "n_max": 64}

    @classmethod
    def _families(cls) -> list[Family]:
        return [SUBSPACE_MODELS]

    @classmethod
    def _declared(cls) -> dict[str, Parameter]:
        keys = of_keys(cls._families(), ("subspace", "learning", "reduction", "novelty"), NAMED)
        first = {name: keys[name] for name in ("n_components", "n_max")}
        return moved(first | KERNEL | keys | COMMON | OWN, {"ald_threshold": "budget", "threshold": "false_alarm_rate"})

    def transform(self, X: Any) -> np.ndarray:
        """Features of samples, z(x).  O(n_max (n_features + n_components)) each.

        ``z(x)'z(y)`` approximates ``k(x, y)``. Features that the subspace has not got yet are zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        z : ndarray of shape (n_samples, n_components)
            The numbers that the device's ``NAME_features`` writes, in float64; NaN, with a warning, where it would
            refuse the input as beyond ``input_max_abs``.
        """
        X = self._inputs(X)
        return self._finite(self.model_.ask("features", X)[0])

    def novelty(self, X: Any) -> np.ndarray:
        """How much of each sample is new to the model: the part of its squared length that the features leave out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            ``|phi(x) - L q(x)|^2 / k(x, x)``, from 0 to 1, as the device's ``NAME_novelty`` computes it; NaN, with a
            warning, where it would refuse the input.
        """
        X = self._inputs(X)
        return self._finite(self.model_.novelty(X))

    def score_samples(self, X: Any) -> np.ndarray:
        """How usual each sample is: its novelty with the sign turned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            From -1, new, to 0.
        """
        return -self.novelty(X)

    def approximation(self, X: Any) -> Approximation:
        """How well features approximate the kernel on samples, with the bounds.  O(n^2 n_features).

        In float64, of the subspace as it is now.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        report : pykernel.training.subspace.Approximation
        """
        X = self._inputs(X)
        return self.subspace_.approximation(X)

    def refresh(self) -> Self:
        """Compute G, and with ``budget="exact"`` the inverse Gram matrix, again from the vectors.  O(n_max^3 + n_max^2
        n_features).

        This removes accumulated rounding errors. It is never called automatically, because it changes the state: to
        keep the same bytes, the device must do it at the same sample.
        """
        return super().refresh()

    @property
    def subspace_(self) -> HostSubspace:
        """L as it is now, in float64: the kernel, the expansion vectors in use and A."""
        check_is_fitted(self)
        vectors, a = self._held()
        return HostSubspace(MercerKernel.of(self.spec_), vectors, a, self._shrinkage)

    @property
    def offset_(self) -> float:
        """The score below which a sample is new: minus the threshold, which follows ``false_alarm_rate``.

        -1, which nothing is below, while the model warms up.
        """
        if not self._watches():
            raise AttributeError(f"{self._where} has no offset_: it was given neither false_alarm_rate nor threshold")
        check_is_fitted(self)
        assert self.spec_.novelty is not None
        if int(self.model_.memory.field("seen")[0]) < self.spec_.novelty.warmup:
            return -1.0
        return -float(self.model_.read("alarm")[0][1])

    def frozen_spec(
        self,
        name: str,
        model: Any = None,
        *,
        precision: str | None = None,
        max_abs: float | None = None,
        scaler: Any = None,
    ) -> Spec:
        """The features as they are now, or a linear model of them, as a frozen kernel expansion for the device.

        ``z(x) = W' k(v, x)`` with the expansion vectors v in use; weights of z are collapsed into W. It learns nothing,
        and takes ``n (n_features + o)`` numbers of flash for n vectors and o functions, and no state.

        Parameters
        ----------
        name : str
            Prefix of every symbol and file in C.
        model : fitted linear regressor or classifier, or KMeans, default=None
            One that learned what transform returns: with ``coef_`` and ``intercept_``, such as Ridge or
            LogisticRegression, or with ``cluster_centers_``. None: ``NAME_predict`` writes the features.
        precision : {"float32", "float64"}, default=None
            None: that of the model.
        max_abs : float, default=None
            Largest magnitude of an input. None: a million times the largest in the expansion vectors, or less where
            that could overflow.
        scaler : fitted scaler, default=None
            StandardScaler, MinMaxScaler, MaxAbsScaler or RobustScaler that scaled the inputs.

        Returns
        -------
        spec : Spec
            Rule "frozen"; ``HostModel(spec)`` computes what the device will.

        Raises
        ------
        UserError
            If a name or number cannot be; if the model is not linear, or learned something else than these features.

        Warns
        -----
        UserWarning
            If weights are so large, for little shrinkage, that float32 is too coarse for what they add up to.
        """
        check_is_fitted(self)
        machine = self._machine(model, scaler)
        return exported(machine, name, self.spec_.precision if precision is None else precision, plain(max_abs))

    def _machine(self, model: Any = None, scaler: Any = None) -> Machine:
        """The frozen map, or a linear model of it."""
        vectors, a = self._held()
        w = a @ coefficients(self._gram(), self._shrinkage, PIVOT[self.spec_.precision])
        return frozen_machine(self, MercerKernel.of(self.spec_), vectors, w, model, scaler)

    @property
    def _shrinkage(self) -> float:
        return float(self.spec_.subspace.shrinkage)

    def _held(self) -> tuple[np.ndarray, np.ndarray]:
        """The expansion vectors in use, (n, DIM), and A, (n, RANK), in float64."""
        memory = self.model_.memory
        n = int(memory.field("n")[0])
        self._where.need(n, "has no expansion vectors, as every sample was refused; see status_counts_")
        return memory.field("v")[:n].astype(np.float64), memory.field("a")[:n].astype(np.float64)

    def _gram(self) -> np.ndarray:
        """G as the device has it, (RANK, RANK), in float64."""
        packed = self.model_.memory.field("g").astype(np.float64)
        rank = rank_of(self.spec_)
        gram = np.zeros((rank, rank))
        gram[np.tril_indices(rank)] = packed
        return cast(np.ndarray, gram + np.tril(gram, -1).T)

    def _watches(self) -> bool:
        """Whether there are alarms."""
        mine = self._parameters().items()
        return any(p.section == "novelty" and getattr(self, name) is not None for name, p in mine)

    def _has_kernel(self, values: Mapping[str, Any]) -> bool:
        return True

    def _sections(self, values: Mapping[str, Any]) -> dict[str, Any]:
        content = super()._sections(values)
        return content | {"learning": {"rule": "okfeb", **content.get("learning", {})}}

    def _label(self, y: Any, names: list[str]) -> tuple[Any, dict[str, Any]]:
        label, about = super()._label(y, names)
        # without names or a number of labels, the spec would have no labels
        named = label is None or label.keys() & {"classes", "column", "columns"}
        return label if named else {"outputs": 1} | (label or {}), about

    def _largest(self, content: Mapping[str, Any]) -> float:
        """Also |q|^2 stays far from overflow."""
        shrinkage, most = content.get("subspace", {}).get("shrinkage", 0.1), super()._largest(content)
        if content["kernel"].get("normalise") or type(shrinkage) not in (int, float) or shrinkage <= 0:
            return most
        # the product of k and a sum of |q|^2 <= k / (4 lambda); rounding limits the sum
        precision = content["precision"]
        return min(most, math.sqrt(largest(precision) * shrinkage * (2.0**-26 if precision == "float32" else 2.0**-60)))

    def _monitored(self, X: Any, y: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Ask, then learn: (novelty, alarms)."""
        check_is_fitted(self)
        X, y = self._validated(X, y, reset=False)
        novelty, statuses = self.model_.prequential(X, self._encoded(y), question="novelty")
        self._counted(statuses)
        return novelty.astype(np.float64), np.isin(statuses, self.spec_.program.alarms)

    @property
    def _n_features_out(self) -> int:
        return rank_of(self.spec_)


class OnlineKernelSubspace(OnlineSubspace, Detector):
    """Kernel features that follow a stream, in fixed memory, bit for bit as on a microcontroller: OKFEB.

    The subspace ``L = Phi A`` of at most ``n_max`` samples v and ``n_components`` dimensions moves towards each
    sample. When the budget is full, the vector whose removal changes L least is removed. ``transform`` gives features
    z(x); ``z(x)'z(y)`` approximates ``k(x, y)``. The novelty of a sample is the part that the subspace does not
    represent. With ``false_alarm_rate`` or ``threshold`` the estimator is an outlier detector. With
    ``false_alarm_rate`` its threshold follows the stream.

    Everything is computed in ``precision`` by the same source that ``pykernel.generate`` prints as C, so a device that
    starts from a fitted estimator continues with the same bytes.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    spec_ : Spec
        The model's parameters with everything derived: what the code generator takes.
    model_ : HostModel
        The learned state, ``model_.memory``, and the functions that work on it.
    subspace_ : pykernel.training.subspace.HostSubspace
        The subspace as it is now, in float64.
    offset_ : float
        Minus the threshold as it is now; with ``false_alarm_rate`` or ``threshold``.
    status_counts_ : dict of str to int
        What became of each update since the start, by the name of the status: ADDED, REPLACED, DONE (not stored),
        CENSORED, NOVEL, HELD, REFUSED_INPUT.
    n_features_in_ : int
        Number of inputs.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the data had any; they become the spec's columns.

    See Also
    --------
    KernelSubspace : All samples at once.
    OnlineMonitor : A monitor for machines with several regimes, which says where an alarm comes from.
    OnlineSubspaceRegressor, OnlineSubspaceClassifier : With a head that learns labels on the features.
    sklearn.decomposition.IncrementalPCA : Without a kernel.
    sklearn.linear_model.SGDOneClassSVM : Another outlier detector that learns online.

    Notes
    -----
    Parameters whose default is None, or a number of the spec, mean what docs/spec.md says; alarms are there if
    ``false_alarm_rate``, ``threshold`` or another key of [novelty] is given. Parameters are read when learning starts,
    by ``fit`` or the first
    ``partial_fit``. Nothing is shuffled: the order of samples is the order of learning.

    The subspace turns as it learns, so that features before and after a ``partial_fit`` are different ones: what was
    learned on them goes with the state that they were computed with.

    An update costs O(n_max^2 + n_max (n_features + n_components) + n_components^3), with ``budget="drop"`` without the
    first.

    References
    ----------
    Sheikholeslami, F., Berberidis, D. and Giannakis, G. B. (2016). Large-scale kernel-based feature extraction via
    budgeted nonlinear subspace tracking. Algorithms 2 to 5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from pykernel import OnlineKernelSubspace
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3)) + 8 * rng.integers(0, 2, (2000, 1))
    >>> model = OnlineKernelSubspace(4, n_max=32).partial_fit(X[:1000]).partial_fit(X[1000:])
    >>> z = model.transform(X)
    >>> z.shape
    (2000, 4)
    >>> clusters = KMeans(2, n_init=3, random_state=0).fit(z)
    >>> bool(abs(np.corrcoef(clusters.labels_, X[:, 0] > 4)[0, 1]) > 0.99)
    True

    What the device will compute, still learning, and frozen, with the clusters:

    >>> model.to_spec("regimes").learning.rule
    'okfeb'
    >>> model.frozen_spec("regimes", clusters).label.classes
    ('0', '1')

    As an outlier detector:

    >>> model = OnlineKernelSubspace(4, n_max=32, false_alarm_rate=0.01).fit(X)
    >>> model.predict([[0.0, 0.0, 0.0], [8.0, 8.0, 8.0], [30.0, 0.0, 0.0]])
    array([ 1,  1, -1])
    """

    _without = (*OnlineSubspace._without, *HEAD)
    _defaults: ClassVar[dict[str, Any]] = {"n_components": 8, "n_max": 64}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if not self._watches():
            tags.estimator_type = None
        return tags

    def monitor(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """What the device tells of a stream as it learns it: each sample's novelty, then the sample is learned.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, in the order in which they come.

        Returns
        -------
        novelty : ndarray of shape (n_samples,)
            Before the sample was learned; NaN where it is refused.
        alarms : ndarray of shape (n_samples,) of bool
            Whether the level, smoothed novelty, was above the threshold; never without ``false_alarm_rate`` or
            ``threshold``.
        """
        return self._monitored(X)
