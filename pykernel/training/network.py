"""Networks with one hidden layer, trained as scikit-learn users would train them: on standardised data, by L-BFGS, with
a penalty chosen on held-out rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from pykernel.parallel import one_thread
from pykernel.training.vectors import MANY

PENALTIES = (1e-3, 0.1, 3.0)
STEPS = 500
HELD_OUT = 0.25
"""This fraction of the rows, the last ones, is held out to choose the penalty.  If fewer than two rows are held out, the
largest penalty is used.
"""


def trained_network(
    x: np.ndarray, y: np.ndarray, units: int, classes: bool, seed: int = 0, penalties: Sequence[float] = PENALTIES
) -> tuple[Any, float]:
    """Fit a network with ``units`` rectified linear units; return the estimator and the chosen penalty.

    y: labels, (n,) or (n, outputs).  classes: whether the labels are classes.
    O(STEPS n (D + O) units).  If there are more than MANY rows, MANY of them are drawn and kept in their order.
    """
    from sklearn.compose import TransformedTargetRegressor  # type: ignore[import-untyped]
    from sklearn.neural_network import MLPClassifier, MLPRegressor  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline  # type: ignore[import-untyped]
    from sklearn.preprocessing import StandardScaler  # type: ignore[import-untyped]

    def fitted(alpha: float, rows: slice) -> Any:
        kind = MLPClassifier if classes else MLPRegressor
        plain = kind(hidden_layer_sizes=(units,), solver="lbfgs", alpha=alpha, max_iter=STEPS, random_state=seed)
        model = make_pipeline(StandardScaler(), plain)
        if not classes:
            model = TransformedTargetRegressor(model, transformer=StandardScaler())
        return model.fit(x[rows], y[rows])

    if len(x) > MANY:
        drawn = np.sort(np.random.default_rng(seed).permutation(len(x))[:MANY])
        x, y = x[drawn], y[drawn]
    first = round((1 - HELD_OUT) * len(x))
    tried = penalties if len(x) - first > 1 else penalties[-1:]
    # use one thread, so that the result does not depend on the number of threads
    with one_thread, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # L-BFGS need not converge, because the result is judged on held-out rows
        scores = [fitted(alpha, slice(first)).score(x[first:], y[first:]) if len(tried) > 1 else 0.0 for alpha in tried]
        taken = tried[int(np.argmax(scores))]
        return fitted(taken, slice(None)), taken
