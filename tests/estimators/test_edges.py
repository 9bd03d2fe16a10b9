"""Every parameter of the estimators that learn sample by sample at the edges: one sentence, or a model."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import pykernel.estimators.online as online
from pykernel.estimators import monitor
from pykernel.spec.families.online_keys import RULES as BUDGETED
from tests.spec.test_edges import REALS, WHOLE

ESTIMATORS = (
    online.BudgetedKernelRegressor,
    online.BudgetedKernelClassifier,
    monitor.OnlineMonitor,
)
RULES = (*BUDGETED, "nlms", "rls", "rff-rls")
SIZES = {"n_epochs", "n_max", "features", "n_components"}
"""Not beyond what a spec may have, but work for minutes."""


def mutants() -> Iterator[tuple[Any, dict[str, Any]]]:
    for estimator in ESTIMATORS:
        names = estimator().get_params()
        for rule in RULES if "rule" in names else (None,):
            kept = {"rule": rule} if rule is not None else {}
            kept |= {"sigma": 1.0} if "sigma" in names and rule not in ("nlms", "rls") else {}
            for name in names:
                for edge in (*REALS, *WHOLE) if name not in SIZES else ():
                    yield estimator, kept | {name: edge}


def test_a_parameter_at_an_edge_is_refused_in_a_sentence_or_learned_with(exhaustive: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 2)), np.array([0.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    learned = refused = 0
    for estimator, parameters in itertools.islice(mutants(), 0, None, 1 if exhaustive else 211):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UserWarning)  # advice: all samples were refused
            try:
                estimator(**parameters).fit(x, y)
                learned += 1
            except ValueError as error:
                refused += 1
                assert "\n" not in str(error) and "domain error" not in str(error), (parameters, str(error))
            except BaseException as error:
                raise AssertionError(f"{error!r} of {estimator.__name__}(**{parameters})") from error
    assert learned > 0 and refused > 0
