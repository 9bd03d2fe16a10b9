"""Simple predictors of alarms: distances by their definition, and their bytes."""

import numpy as np
import pytest

from pykernel.host.simple import Distances, simple_bytes
from pykernel.host.simulation import Simulation
from pykernel.spec.model import make_spec
from tests.support.every_model import DOUBT


def in_parts(step, rows, length):
    return np.concatenate([step(rows[i : i + length]) for i in range(0, len(rows), length)])


@pytest.mark.parametrize("dim", [1, 3])
def test_distances_are_those_to_the_rows_before_the_block(dim: int) -> None:
    rng = np.random.default_rng(dim)
    x = (rng.normal(size=(600, dim)) @ rng.normal(size=(dim, dim)) + 100).astype(np.float32)
    x[77, 0] = np.nan
    found = in_parts(Distances(dim).step, x, 37)
    np.testing.assert_array_equal(found, Distances(dim).step(x))
    assert (found[:50] == 0).all() and np.isnan(found[77]).all()
    for row in (50, 99, 350, 599):
        before = x[: row // 50 * 50].astype(float)
        before = before[np.isfinite(before).all(axis=1)]
        z = (x[row] - before.mean(axis=0)) / before.std(axis=0)
        correlation = np.corrcoef(before.T).reshape(dim, dim) + Distances.RIDGE * np.eye(dim)
        expected = [np.abs(z).max(), np.sqrt(z @ np.linalg.inv(correlation) @ z)]
        np.testing.assert_allclose(found[row], expected, rtol=1e-6)


def test_about_the_last_thousand_rows_count() -> None:
    x = np.random.default_rng(0).normal(size=(20_000, 2)).astype(np.float32)
    x[10_000:] += 20
    far = Distances(2).step(x)[:, 0]
    assert far[10_000:10_050].min() > 10 and far[-1000:].max() < 7


def test_a_constant_input_that_moves_is_far_and_many_inputs_have_no_mahalanobis_distance() -> None:
    x = np.ones((200, 300), np.float32)
    x[150, 7] = 1.1
    distances = Distances(300)
    found = distances.step(x)[:, 0]
    assert distances.names == ("max |z|",) and found[150] > 1e6 and (np.delete(found, 150) < 1e-3).all()


@pytest.mark.parametrize(
    ("content", "bytes"),
    [
        # the linear model: three weights, a triangle of 3 rows, three moments of each input, its first, a mean, five counts, and doubt
        (
            {"label": {"column": "y"}},
            {"last label": 4, "running mean": 8, "linear model": 4 * (3 + 6 + 6 + 2 + 1 + 5) + DOUBT},
        ),
        ({"label": {"column": "y"}, "precision": "float64"}, {"last label": 8, "running mean": 12}),
        ({"label": {"column": "y", "classes": ["a", "b", "c"]}}, {"last label": 4, "majority class": 12}),
        ({"novelty": {}}, {"max |z|": 16, "Mahalanobis distance": 20}),
        ({"learning": {"rule": "okfeb"}, "kernel": {"sigma": 1.0}}, {}),
    ],
)
def test_bytes_of_simple_predictors(content: dict, bytes: dict) -> None:
    found = simple_bytes(make_spec({"name": "m", "input": {"dim": 2}} | content))
    assert {name: found[name] for name in bytes} == bytes and bool(found) == bool(bytes)


def test_errors_are_those_of_the_numbers_in_the_file():
    """Labels that float32 rounds to one number are not predicted without an error; and it is said, with what helps."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    y = 1e8 + np.sin(np.arange(600) / 7) + 0.5 * x[:, 0]
    content = {
        "name": "m",
        "input": {"columns": ["a", "b"]},
        "label": {"column": "flow", "max_abs": 1e9},
        "learning": {"rule": "nlms"},
    }
    told = {}
    for precision, offset in (("float32", 0.0), ("float64", 0.0), ("float32", 1e8)):
        simulation = Simulation(make_spec(content | {"precision": precision}))
        list(simulation.run(x, y - offset))
        told[precision, offset] = simulation.report()
    coarse = told["float32", 0.0]
    errors = {key: report["second_half"]["rmse"]["last label"] for key, report in told.items()}
    assert errors["float32", 0.0] == pytest.approx(y[300:].std(), rel=0.1)
    assert errors["float64", 0.0] == pytest.approx(np.sqrt(np.mean(np.diff(y)[299:] ** 2)), rel=1e-6)
    assert errors["float32", 1e8] == pytest.approx(errors["float64", 0.0], rel=1e-5)
    assert (
        coarse["warnings"][0].startswith("flow is near 1e+08, with a standard deviation of ")
        and "subtract 100000000 from it" in coarse["warnings"][0]
    )
    assert not any("subtract" in line for key in (("float64", 0.0), ("float32", 1e8)) for line in told[key]["warnings"])
