"""What protects a model that learns in the field: standardised inputs, limits, the freeze switch, refresh."""

import numpy as np
import pytest

from pykernel.algorithms.online.klms import KLMS
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.support.following import factor_error, undoubted
from tests.support.specs import named

Status = KLMS["real"].status


def spec_of(technique="mklms", precision="float64", dim=2, **sections):
    content = {
        "name": "m",
        "precision": precision,
        "input": {"dim": dim},
        "kernel": {"sigma": 1.0},
        "reduction": {"technique": technique, "n_max": 10},
    }
    return make_spec(
        named(
            {key: content.get(key, {}) | value for key, value in sections.items()}
            | {key: value for key, value in content.items() if key not in sections}
        )
    )


def data(samples=400, dim=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(samples, dim))
    return x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=samples)


# ----------------------------------------------------------------------------------------------- standardiser


def test_mean_and_deviation_weigh_sample_k_by_k_until_the_horizon_and_exponentially_after():
    spec = spec_of(input={"standardise": True, "horizon": 50})
    model = HostModel(spec)
    x, y = data(200)
    x = x * [3.0, 0.01] + [100.0, -5.0]
    model.update(x[:50], y[:50])
    weights = np.arange(1, 51)
    average = np.average(x[:50], axis=0, weights=weights)
    spread = np.average((x[:50] - average) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(model.memory.field("mean"), average, rtol=1e-12)
    np.testing.assert_allclose(model.memory.field("variance"), spread, rtol=1e-9)
    np.testing.assert_allclose(model.memory.field("scale"), 1 / np.sqrt(spread), rtol=1e-9)
    mean, variance = model.memory.field("mean").copy(), model.memory.field("variance").copy()
    model.update(x[50:], y[50:])
    for row in x[50:]:
        difference = row - mean
        mean += difference * 2 / 51
        variance = (1 - 2 / 51) * (variance + difference**2 * 2 / 51)
    np.testing.assert_allclose(model.memory.field("mean"), mean, rtol=1e-9)
    np.testing.assert_allclose(model.memory.field("variance"), variance, rtol=1e-9)
    assert model.memory.field("observed")[0] == 50


def test_the_standardiser_makes_one_sigma_fit_sensors_of_different_ranges():
    x, y = data(1000)
    x = x * [1000.0, 0.001] + [5000.0, 0.0]
    errors = []
    for standardise in (False, True):
        model = HostModel(spec_of(input={"standardise": standardise}))
        predictions, _ = model.prequential(x, y)
        errors.append(np.abs(predictions - y)[500:].mean())
    assert errors[1] < 0.6 * errors[0]


def test_the_first_samples_are_observed_and_outliers_are_clipped():
    model = HostModel(spec_of(input={"standardise": True, "warmup": 20, "clip": 3.0, "max_abs": 1e9}))
    x, y = data(100)
    statuses = model.update(x, y)
    assert (statuses[:20] == Status.OBSERVED).all() and (statuses[20:] != Status.OBSERVED).all()
    model.update([[1e9, -1e9]], [0.0])
    assert np.abs(model.memory.field("v")).max() <= 3.0


# ----------------------------------------------------------------------------------------------------- limits


def test_predictions_are_clamped_and_learning_is_not():
    x, y = data()
    free, clamped = HostModel(spec_of()), HostModel(spec_of(label={"low": -0.2, "high": 0.3}))
    (p, s), (q, u) = free.prequential(x, y), clamped.prequential(x, y)
    assert q.tobytes() == np.clip(p, -0.2, 0.3).tobytes() and (p < -0.2).any() and (p > 0.3).any()
    assert s.tobytes() == u.tobytes() and undoubted(free) == undoubted(clamped)


@pytest.mark.parametrize("technique", ["nt", "fklms", "mklms"])
def test_one_poisoned_label_changes_the_function_by_no_more_than_the_step_limit(technique):
    model = HostModel(spec_of(technique, learning={"step_limit": 0.25}, label={"max_abs": 1e9}))
    x, y = data()
    model.update(x, y)
    grid = np.random.default_rng(1).normal(size=(500, 2))
    here = np.array([[0.05, 0.07]])
    before, at = model.predict(grid), model.predict(here)[0]
    # NT removes a vector and hands nothing on
    removed = np.abs(model.memory.field("alpha")).min() if technique == "nt" else 0.0
    status = model.update(here, [1e9])[0]
    assert status > 0
    assert abs(model.predict(here)[0] - at) <= 0.25 * 1.01 + removed
    if technique != "fklms":
        assert np.abs(model.predict(grid) - before).max() < 1.0


# ---------------------------------------------------------------------------------------------------- refresh


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_refresh_mends_a_factor_gone_wrong(precision):
    """Of overwritten memory, say.  What learning itself leaves of rounding errors needs no refresh."""
    # noise to learn, and decay: most samples replace a vector
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-2, 2, (1500, 2)), rng.normal(size=1500)
    model = HostModel(spec_of(precision=precision, learning={"rho": 0.2}))
    statuses = model.update(x, y)
    rounding = np.finfo(precision).eps
    assert (statuses == Status.REPLACED).mean() > 0.1 and factor_error(model) < 1e6 * rounding
    model.memory.field("t")[:] *= 1 + 0.05 * rng.normal(size=model.memory.field("t").shape)
    assert factor_error(model) > 0.02
    predictions = model.predict(x)
    model.refresh()
    assert factor_error(model) < 1e5 * rounding
    assert model.predict(x).tobytes() == predictions.tobytes()
