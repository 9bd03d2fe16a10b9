"""Probabilities from decision values: Platt's sigmoid, p = 1 / (1 + exp(a f + b)).

Platt (1999), *Probabilistic outputs for support vector machines*, in: Advances in Large Margin Classifiers.  The
minimisation, by Newton's method with backtracking, follows Lin, Lin and Weng (2007), *A note on Platt's probabilistic
outputs for support vector machines*, Machine Learning 68.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax  # type: ignore[import-untyped]

STEPS = 100
"""Maximum number of Newton steps.  About ten steps are usually needed."""
SUFFICIENT = 1e-4
"""A step is accepted if the loss decreases by at least this fraction of the decrease that the gradient predicts
(Armijo's rule).
"""
SAME = 64 * np.finfo(np.float64).eps
"""All decision values are treated as equal if half their range is at most this fraction of the largest magnitude,
because the differences may be rounding errors.
"""


def platt_targets(positive: Any, weights: Any = None) -> np.ndarray:
    """Return the sigmoid's targets: (N+ + 1) / (N+ + 2) for positive samples, and 1 / (N- + 2) for negative samples.

    N+ and N- are the sums of the weights of the positive and of the negative samples.  positive: (l,) bool; weights:
    (l,), the sample weights.  The targets (l,) lie strictly between 0 and 1, so that the sigmoid's parameters stay
    finite even if the values separate the classes.  See Platt (1999), section 2.1.
    """
    positive = np.asarray(positive, bool)
    each = np.ones(len(positive)) if weights is None else np.asarray(weights, np.float64)
    n, others = float(each[positive].sum()), float(each[~positive].sum())
    return np.where(positive, (n + 1) / (n + 2), 1 / (others + 2))


def fit_sigmoid(values: Any, positive: Any, resolution: float = 0.0, weights: Any = None) -> tuple[float, float]:
    """Return (a, b) of the best sigmoid with a <= 0, so that p does not decrease with f.  O(l) for each of about ten
    steps.

    values: (l,) finite decision values of samples that the function was not trained on.  positive: (l,) bool.  weights:
    (l,), positive sample weights.  resolution: all values are treated as equal if half their range is at most
    ``resolution``, or at most SAME times the largest magnitude, because the differences may be rounding errors.

    The minimiser is unique unless all values are equal.  If all values are equal, or if a decreasing sigmoid would fit
    better because the function is worse than chance on unseen samples, then a = 0, and the probability is the weighted
    mean of the targets.  The result depends on the unit of the values: for ``c f + d`` with c > 0, the result is
    (a / c, b - a d / c).

    Raises ValueError if the shapes differ, if there are no samples, or if a value is not finite.
    """
    f, positive = np.asarray(values, np.float64), np.asarray(positive, bool)
    if f.ndim != 1 or f.shape != positive.shape or not len(f):
        raise ValueError(
            f"decision values have shape {f.shape}, and classes have shape {positive.shape}; both shapes must be (samples,), with at least one sample"
        )
    if not np.isfinite(f).all():
        raise ValueError("a decision value is not finite; probabilities can be fitted only to finite values")
    t = platt_targets(positive, weights)
    each = np.ones(len(t)) if weights is None else np.asarray(weights, np.float64)
    share = float(t.mean() if weights is None else each @ t / each.sum())
    constant = 0.0, math.log((1 - share) / share)
    centre, reach = f.min() / 2 + f.max() / 2, f.max() / 2 - f.min() / 2
    if reach <= max(SAME * np.abs(f).max(), resolution, 1e-280):
        return constant
    a, b = _newton((f - centre) / reach, t, each, constant[1])
    if a >= 0:  # the problem is convex, so the best a <= 0 is then on the boundary, a = 0
        return constant
    return a / reach, b - a * centre / reach


def _newton(z: np.ndarray, t: np.ndarray, each: np.ndarray, b: float) -> tuple[float, float]:
    """Return the minimiser (a, b) for values within [-1, 1].  The search starts at a = 0.  Lin et al. (2007), appendix C."""

    def loss(a: float, b: float) -> float:
        s = a * z + b
        return float(-(each * (t * log_expit(-s) + (1 - t) * log_expit(s))).sum())

    a, now = 0.0, loss(0.0, b)
    for _ in range(STEPS):
        p = expit(-(a * z + b))
        # second and first derivatives of each sample's loss with respect to s
        w, d = (
            each * p * (1 - p),
            each * (t - p),
        )
        # with the weighted mean subtracted from the values, the Hessian is diagonal
        mean = (w @ z) / w.sum()
        away = z - mean
        step_a = -(d @ away) / ((w * away) @ away + 1e-12)
        step_b = -d.sum() / w.sum() - step_a * mean
        slope = (d @ z) * step_a + d.sum() * step_b
        if not slope < -1e-9 * (1 + now):  # this close to the minimum, one more full step squares the error
            return a + step_a, b + step_b
        part = 1.0
        while not (then := loss(a + part * step_a, b + part * step_b)) < now + SUFFICIENT * part * slope:
            part /= 2
            if part < 1e-10:
                return a, b
        a, b, now = a + part * step_a, b + part * step_b, then
    return a, b


def fit_calibration(
    values: Any, positions: Any, count: int, resolution: float = 0.0, weights: Any = None
) -> np.ndarray:
    """Fit a sigmoid for each function, and return the parameters, (o, 2): one row (a, b) for each function.

    values: (l, o) decision values of samples that the functions were not trained on.  With two classes, the only
    function is that of the second class (o = 1); with more classes, there is one function for each class.  positions:
    (l,), the index of each sample's class, 0 to count - 1.  resolution, weights: as in ``fit_sigmoid``.
    """
    values, positions = np.asarray(values, np.float64), np.asarray(positions)
    functions = 1 if count == 2 else count
    if values.shape != (len(positions), functions):
        raise ValueError(
            f"decision values have shape {values.shape}; for {count} classes and {len(positions)} samples, the shape must "
            f"be {(len(positions), functions)}"
        )
    owners = [1] if count == 2 else range(count)
    return np.array(
        [fit_sigmoid(values[:, o], positions == owner, resolution, weights) for o, owner in enumerate(owners)]
    )


def probabilities(values: Any, calibration: Any) -> np.ndarray:
    """Return the probability of each class, (n, k).  Rows sum to 1.  O(n k).

    values: (n, o) decision values; calibration: (o, 2).  One function gives [1 - p, p].  Several functions give p_o
    divided by the sum of all p_o, computed from logarithms, so that the result is accurate even if every p_o is tiny.
    """
    values, calibration = np.asarray(values, np.float64), np.asarray(calibration, np.float64)
    z = values * calibration[:, 0] + calibration[:, 1]
    if z.shape[1] == 1:
        return np.exp(np.hstack([log_expit(z), log_expit(-z)]))
    return np.exp(log_softmax(log_expit(-z), axis=1))
