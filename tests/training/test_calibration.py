"""Platt's sigmoid: the minimiser that a general optimiser finds, and what becomes of it where there is little to fit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_expit

from pykernel.training.calibration import (
    fit_calibration,
    fit_sigmoid,
    platt_targets,
    probabilities,
)


@st.composite
def problems(draw):
    """Decision values and classes: of any overlap, unit, offset, imbalance and number of repeats."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(2, 60))
    positive = rng.random(count) < draw(st.sampled_from([0.1, 0.5, 0.9]))
    positive[:2] = True, False
    f = rng.normal(size=count) + draw(st.floats(-2.0, 5.0)) * positive
    if draw(st.booleans()):
        f = f.round()
    return f, positive


def cross_entropy(f, positive, a, b):
    """The loss, also where probabilities underflow."""
    z, t = a * f + b, platt_targets(positive)
    return -(t * log_expit(-z) + (1 - t) * log_expit(z)).sum()


def written_out(f, positive):
    """The loss and its gradient as the papers write them."""
    n = int(positive.sum())
    t = np.array([(n + 1) / (n + 2) if p else 1 / (len(f) - n + 2) for p in positive])

    def loss(ab):
        s = ab[0] * f + ab[1]
        p = 1 / (1 + np.exp(s))
        return -np.sum(t * np.log(p) + (1 - t) * np.log(1 - p)), np.array([np.sum((t - p) * f), np.sum(t - p)])

    return loss


@given(problems())
def test_it_is_the_minimiser(problem):
    f, positive = problem
    a, b = fit_sigmoid(f, positive)
    loss = written_out(f, positive)
    assert cross_entropy(f, positive, a, b) == pytest.approx(loss((a, b))[0], rel=1e-12)
    found = minimize(
        loss, (-0.1, 0.0), jac=True, method="L-BFGS-B", bounds=[(None, 0), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 1000},
    )  # fmt: skip
    assert loss((a, b))[0] <= found.fun + 1e-10 * (1 + found.fun)
    gradient = loss((a, b))[1]
    assert a <= 0 and abs(gradient[1]) <= 1e-7 * len(f)
    if a < 0:
        assert abs(gradient[0]) <= 1e-7 * np.abs(f).sum()
        np.testing.assert_allclose((a, b), found.x, rtol=1e-3, atol=1e-3)
    elif np.ptp(f):  # what falls would fit better, or as well
        assert gradient[0] <= 1e-9


@given(problems(), st.sampled_from([1e-100, 1e-6, 3.0, 1e9, 1e200]), st.floats(-3.0, 3.0))
def test_it_follows_the_unit_and_the_zero_of_the_values(problem, unit, zero):
    f, positive = problem
    a, b = fit_sigmoid(f, positive)
    scaled_a, scaled_b = fit_sigmoid(unit * (f + zero), positive)
    assert scaled_a * unit == pytest.approx(a, rel=1e-5, abs=1e-7)
    assert scaled_b == pytest.approx(b - a * zero, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("far", [1e2, -1e2, 1e8, -1e8])
def test_one_far_value_does_not_stop_it(far):
    """Newton's steps follow the values' spread; what is left to win is a second derivative's worth of nothing."""
    f, positive = np.array([-1.0, -0.5, 0.2, 0.4, far, 0.1]), np.array([0, 0, 1, 1, 1, 0], bool)
    a, b = fit_sigmoid(f, positive)
    if far < 0:  # what falls is not followed
        assert a == 0
        return
    assert a < 0
    p, basis = 1 / (1 + np.exp(a * f + b)), np.column_stack([f / far, np.ones(6)])
    gradient = basis.T @ (platt_targets(positive) - p)
    assert gradient @ np.linalg.solve(basis.T * (p * (1 - p)) @ basis, gradient) < 1e-12


def test_separated_classes_have_a_finite_sigmoid():
    """Its ends are Platt's targets, as two values can be met exactly."""
    f = np.repeat([-1.0, 1.0], [30, 10])
    a, b = fit_sigmoid(f, f > 0)
    np.testing.assert_allclose(1 / (1 + np.exp(a * np.array([-1.0, 1.0]) + b)), [1 / 32, 11 / 12], rtol=1e-9)
    assert platt_targets(f > 0)[[0, -1]] == pytest.approx([1 / 32, 11 / 12])
    wide = np.concatenate([np.linspace(-9, -1, 500), np.linspace(1, 9, 500)])
    a, b = fit_sigmoid(wide, wide > 0)
    assert -20 < a < -1 and abs(b) < 1e-6


@pytest.mark.parametrize("value", [0.0, -1.0, 1e300, 1e-310])
def test_values_that_say_nothing_give_the_share(value):
    positive = np.arange(12) < 3
    share = platt_targets(positive).mean()
    noise = 1 + np.random.default_rng(0).integers(-9, 10, 12) * np.finfo(float).eps
    for f in (np.full(12, value), value * noise):
        a, b = fit_sigmoid(f, positive)
        assert a == 0 and 1 / (1 + math.exp(b)) == pytest.approx(share)


def test_values_that_differ_by_rounding_are_one():
    f, positive = 1e-16 * np.arange(10.0), np.arange(10) > 4
    assert fit_sigmoid(f, positive)[0] < -1e15 and fit_sigmoid(f, positive, resolution=1e-12)[0] == 0
    assert (fit_calibration(f[:, None], positive, 2, resolution=1e-12)[:, 0] == 0).all()


def test_a_wrong_direction_is_not_followed():
    positive = np.arange(40) % 4 == 0
    f = np.where(positive, -1.0, 1.0) + np.random.default_rng(0).normal(size=40)
    a, b = fit_sigmoid(f, positive)
    assert a == 0 and 1 / (1 + math.exp(b)) == pytest.approx(platt_targets(positive).mean())
    assert fit_sigmoid(-f, positive)[0] < 0
    for c in (-0.1, -1e-3, 0.0):  # and it is the best of those that do not fall
        assert cross_entropy(f, positive, a, b) <= min(cross_entropy(f, positive, c, b + d) for d in (-0.1, 0.0, 0.1))


@pytest.mark.parametrize("positive", [np.zeros(9, bool), np.ones(9, bool)])
def test_a_class_without_samples_is_improbable_everywhere(positive):
    a, b = fit_sigmoid(np.linspace(-1, 1, 9), positive)
    assert abs(a) < 1e-9 and 1 / (1 + math.exp(b)) == pytest.approx(10 / 11 if positive.all() else 1 / 11)


@given(st.integers(2, 5), st.integers(0, 2**32), st.sampled_from([1e-3, 1.0, 1e3, 1e30]))
def test_probabilities_are_probabilities(count, seed, unit):
    rng = np.random.default_rng(seed)
    positions = np.concatenate([np.arange(count), rng.integers(0, count, 40)])
    shape = (len(positions), 1 if count == 2 else count)
    f = unit * rng.normal(size=shape)
    calibration = fit_calibration(f, positions, count)
    assert calibration.shape == (shape[1], 2) and (calibration[:, 0] <= 0).all()
    new = np.vstack(
        [unit * rng.normal(size=shape) * 10.0 ** rng.integers(-3, 9, shape), np.full((2, shape[1]), -1e250)]
    )
    p = probabilities(new, calibration)
    assert p.shape == (len(new), count)
    assert ((p >= 0) & (p <= 1)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    sigmoids = 1 / (1 + np.exp(np.minimum(calibration[:, 0] * f + calibration[:, 1], 700)))
    expected = np.hstack([1 - sigmoids, sigmoids]) if count == 2 else sigmoids / sigmoids.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(f, calibration), expected, rtol=1e-9, atol=1e-15)


def test_classes_that_are_all_improbable_are_told_apart():
    p = probabilities([[-800.0, -801.0, -900.0]], [[-1.0, 0.0]] * 3)
    np.testing.assert_allclose(p[0], np.array([1, math.exp(-1), math.exp(-100)]) / (1 + math.exp(-1)), rtol=1e-12)


def test_shapes_that_cannot_be():
    with pytest.raises(
        ValueError, match=r"values have shape \(3, 2\); for 2 classes and 3 samples, the shape must be \(3, 1\)"
    ):
        fit_calibration(np.zeros((3, 2)), [0, 1, 1], 2)
    with pytest.raises(
        ValueError, match=r"values have shape \(3,\), and classes have shape \(2,\); both shapes must be"
    ):
        fit_sigmoid(np.zeros(3), [True, False])
    with pytest.raises(ValueError, match="a decision value is not finite"):
        fit_sigmoid([0.0, math.nan], [True, False])


@settings(max_examples=12)
@given(problems(), st.integers(0, 2**32))
def test_a_weight_is_a_number_of_samples(problem, seed):
    f, positive = problem
    weights = np.random.default_rng(seed).integers(1, 4, len(f))
    a, b = fit_sigmoid(f, positive, weights=weights)
    repeated = fit_sigmoid(np.repeat(f, weights), np.repeat(positive, weights))
    sizes = np.repeat(f, weights), np.repeat(positive, weights)
    assert cross_entropy(*sizes, a, b) == pytest.approx(cross_entropy(*sizes, *repeated), rel=1e-9)
