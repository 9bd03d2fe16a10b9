"""Recursive least squares against batch ridge regression, and against itself without Numba."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.errors import UserError
from pykernel.host import HostModel
from pykernel.linear import WINDUP, LinearSpec, LinearStatus, least_squares


def ridge(x, y, penalty, forgetting):
    """Batch twin: each sample weighs forgetting^age, the penalty as if it were the oldest."""
    weight = forgetting ** np.arange(len(x) - 1, -1, -1)
    gram = x.T @ (weight[:, None] * x) + penalty * forgetting ** len(x) * np.eye(x.shape[1])
    return np.linalg.solve(gram, x.T @ (weight * y)), np.linalg.inv(gram)


@given(
    dim=st.integers(1, 9),
    samples=st.integers(1, 200),
    forgetting=st.sampled_from([1.0, 0.99, 0.98]),
    covariance=st.sampled_from([0.01, 1.0, 50.0]),
    seed=st.integers(0, 999),
)
def test_is_batch_ridge_regression(dim, samples, forgetting, covariance, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(samples, dim)), rng.normal(size=samples)
    model = least_squares(dim, precision="float64", forgetting=forgetting, covariance=covariance)
    predictions, statuses = model.run(x, y)
    assert (statuses == LinearStatus.DONE).all()
    weights, p = ridge(x, y, 1 / covariance, forgetting)
    root = model.memory.field("root")
    np.testing.assert_allclose(model.memory.field("weights"), weights, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(root.T @ root, p, rtol=1e-7, atol=1e-9)
    earlier, _ = ridge(x[:-1], y[:-1], 1 / covariance, forgetting)
    assert predictions[-1] == pytest.approx(earlier @ x[-1], rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("forgetting", [1.0, 0.9])
def test_plain_python_and_numba_agree_to_the_byte(precision, forgetting):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(150, 4)) * 10.0 ** rng.integers(-20, 5, (150, 1))
    y = rng.normal(size=150) * 10.0 ** rng.integers(-20, 8, 150)
    x[::17, 2], x[5::17, 0], y[::13], y[5::13] = np.nan, 1e7, np.inf, np.nan
    spec = LinearSpec(4, precision, forgetting)
    jitted, plain = HostModel(spec), HostModel(spec, jit=False)
    for i in range(len(x)):
        before = bytes(jitted.memory.buffer[["weights", "root", "started"]].tobytes())
        status = jitted.learn(x[i], y[i])
        assert plain.learn(x[i], y[i]) == status
        assert bytes(plain.memory.bytes) == bytes(jitted.memory.bytes)
        if status < 0:
            assert jitted.memory.buffer[["weights", "root", "started"]].tobytes() == before
    assert np.isfinite(jitted.memory.field("root")).all()


def test_a_signal_that_stands_still_does_not_wind_up():
    model = least_squares(3, forgetting=0.98)
    still = np.tile([1.0, 2.0, 0.0], (50_000, 1))
    model.learn(still, np.full(len(still), 5.0))
    trace = float((model.memory.field("root").astype(float) ** 2).sum())
    assert trace <= 1.03 * WINDUP * 3 * 100.0
    assert model.predict([[1, 2, 0]]) == pytest.approx(5, rel=1e-5)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 3))  # nothing was forgotten during the pause, so it takes some
    model.learn(x, x @ [1.0, -2.0, 3.0])
    np.testing.assert_allclose(model.memory.field("weights"), [1, -2, 3], atol=1e-3)


@pytest.mark.parametrize(
    "wrong, word",
    [
        ({"dim": 0}, "dim"),
        ({"dim": 2, "forgetting": 1.1}, "forgetting"),
        ({"dim": 2, "covariance": 0.0}, "covariance"),
        ({"dim": 2, "covariance": 1e10, "input_limit": 1e15}, "overflow"),
        ({"dim": 2, "precision": "float16"}, "float16"),
    ],
)
def test_impossible_settings_are_refused(wrong, word):
    with pytest.raises(UserError, match=word):
        LinearSpec(**wrong)
