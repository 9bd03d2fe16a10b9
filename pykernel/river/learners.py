"""The estimators behind River's models: the same parameters with the same meaning, but nothing is derived from data.

A model of River starts with the first sample, and a single sample does not show the scale of a stream.  So limits are
the spec's defaults, and widths are the spec's or the user's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pykernel.estimators.base import KERNEL, Streaming, label_section
from pykernel.estimators.monitor import Telling
from pykernel.estimators.online import BudgetedKernelClassifier, BudgetedKernelRegressor
from pykernel.estimators.subspace import OnlineKernelSubspace
from pykernel.importers.place import Place
from pykernel.spec.defaults import completed
from pykernel.spec.families.gmm import GMM_MODELS
from pykernel.spec.family import Family


class FromFirst(Streaming):
    """An estimator that starts from the names of its inputs, before it has seen any."""

    _afresh = "take a clone()"
    _name: str

    @property
    def _where(self) -> Place:
        return Place(self._name)

    def begin(self, columns: Sequence[Any], rows: np.ndarray, classes: Sequence[Any]) -> None:
        """Make the model before its first sample.  rows: samples (n, inputs) for parameters that need a scale."""
        self.n_features_in_ = len(columns)
        if all(isinstance(name, str) for name in columns):
            self.feature_names_in_ = np.array(columns, object)
        self._start(rows, *self._about(classes))

    def _about(self, classes: Sequence[Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        return None, {}


class Regression(FromFirst, BudgetedKernelRegressor):
    _name = "Regressor"

    def _about(self, classes: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return {}, {"_outputs": None}


class Classification(FromFirst, BudgetedKernelClassifier):
    _name = "Classifier"

    def _about(self, classes: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        about = {"classes_": list(classes), "_forecasts": (np.zeros((0, 1)), np.zeros(0, np.int32), 0)}
        return label_section(self._columns, [], classes=classes), about

    def name(self, classes: Sequence[Any]) -> None:
        """Give names to the classes.  Names are only in the spec; kernels do not use them."""
        content = self.spec_.model_dump(exclude_unset=True)
        label = content["label"] | label_section(None, [], classes=classes)
        self.spec_ = self._made({**content, "label": label}, self.spec_.custom)


class Subspace(FromFirst, OnlineKernelSubspace):
    """A spec with [novelty] and without a rule; inputs are in running standard deviations, unless a width is given."""

    def _has_kernel(self, values: Mapping[str, Any]) -> bool:
        return bool(self._stated(*KERNEL))

    def _sections(self, values: Mapping[str, Any]) -> dict[str, Any]:
        content = super()._sections(values)
        del content["learning"]["rule"]
        return {"novelty": {}, **content}


class Monitoring(Telling, Subspace):
    """A bank of Gaussians, or where a parameter of a subspace is given, a subspace."""

    _name = "AnomalyDetector"

    @classmethod
    def _families(cls) -> list[Family]:
        return [*super()._families(), GMM_MODELS]


class Features(Subspace):
    _name = "Transformer"

    def _sections(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {"subspace": {}, **super()._sections(values)}

    def _made(self, content: dict[str, Any], custom: Any) -> Any:
        """Make the model without alarms.

        The alarms were needed only so that a spec without a rule gives a subspace.
        """
        made = dict(completed(content))
        made.pop("novelty", None)
        return super()._made(made, custom)
