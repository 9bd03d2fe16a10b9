"""Recursive least squares on coordinates: long streams, and coordinates that turn, come and go."""

from __future__ import annotations

import numpy as np
import pytest

from pykernel.algorithms.basis.coordinates import NystromWork
from pykernel.algorithms.basis.least_squares import (
    Regression,
    begin_coordinate,
    drop_coordinate,
    learn_coordinates,
    turn_coordinates,
)
from pykernel.engine.engines import make_executor
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec


def given(size: int, precision: str = "float64", ridge: float = 0.1, outputs: int = 1) -> Spec:
    """A linear kernel on unit vectors: coordinates are the inputs."""
    return make_spec(
        {
            "name": "line",
            "precision": precision,
            "input": {"dim": size, "max_abs": 10.0},
            "label": {"max_abs": 100.0, "outputs": outputs},
            "kernel": {"function": "linear"},
            "learning": {"rule": "nystrom-rls", "ridge": ridge},
            "basis": {"method": "given"},
            "expansion": {"vectors": np.eye(size).tolist()},
        }
    )


@pytest.mark.exhaustive
def test_float32_does_not_drift_where_samples_no_longer_change_the_factor() -> None:
    # a right side that is rotated along is 2.6 % off after 8e6 samples, and goes on from there
    model, rng = HostModel(given(1, "float32")), np.random.default_rng(0)
    for _ in range(10):
        x = rng.uniform(0.5, 1, (1_000_000, 1)).astype(np.float32)
        y = 2 * x[:, 0] + 0.1 * rng.standard_normal(len(x)).astype(np.float32)
        model.update(x, y)
    assert abs(model.predict(np.ones((1, 1), np.float32))[0] - 2) < 1e-3


class Coordinates:
    """Regression, working memory and parameters, to call kernels on; beside them all that was learned, for solving anew."""

    def __init__(self, size: int, ridge: float, outputs: int) -> None:
        self.spec = given(size, ridge=ridge, outputs=outputs)
        self.model, self.ridge = HostModel(self.spec), ridge
        self.g, self.w = self.model.memory.view(Regression), self.model.memory.view(NystromWork)
        steps = (begin_coordinate, learn_coordinates, turn_coordinates, drop_coordinate)
        self.call = make_executor(steps, self.model.memory, self.model.config).call
        self.scatter, self.right, self.n = np.zeros((size, size)), np.zeros((size, outputs)), 0

    def begin(self) -> None:
        self.call(begin_coordinate, self.n)
        self.n += 1
        self.scatter[self.n - 1], self.scatter[:, self.n - 1], self.right[self.n - 1] = 0, 0, 0

    def learn(self, z: np.ndarray, y: np.ndarray) -> None:
        self.w.z[: self.n], self.model.memory.field("y")[:] = z, y
        self.call(learn_coordinates, self.n)
        self.scatter[: self.n, : self.n] += np.outer(z, z)
        self.right[: self.n] += np.outer(z, y)

    def turn(self, k: int, angle: float) -> None:
        cosine, sine = np.cos(angle), np.sin(angle)
        self.call(turn_coordinates, k, cosine, sine)
        rotation = np.eye(len(self.scatter))
        rotation[k : k + 2, k : k + 2] = [[cosine, sine], [-sine, cosine]]
        self.scatter, self.right = rotation @ self.scatter @ rotation.T, rotation @ self.right

    def drop(self) -> None:
        self.n -= 1
        self.call(drop_coordinate, self.n)

    def solved(self) -> np.ndarray:
        inside = self.scatter[: self.n, : self.n] + self.ridge * np.eye(self.n)
        return np.linalg.solve(inside, self.right[: self.n])


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_to_the_coordinates_it_is_least_squares_on_those_in_use(seed: int) -> None:
    rng = np.random.default_rng(seed)
    coordinates = Coordinates(7, float(10.0 ** rng.uniform(-3, 1)), 2)
    for step in range(400):
        n, what = coordinates.n, rng.choice(["begin", "learn", "turn", "drop"], p=[0.1, 0.65, 0.2, 0.05])
        if what == "begin" and n < 7:
            coordinates.begin()
        elif what == "learn" and n:
            coordinates.learn(rng.standard_normal(n), rng.standard_normal(2))
        elif what == "turn" and n > 1:
            coordinates.turn(int(rng.integers(n - 1)), float(rng.uniform(-np.pi, np.pi)))
        elif what == "drop" and n:
            coordinates.drop()
        n = coordinates.n
        expected = coordinates.solved() if n else np.zeros((0, 2))
        assert np.allclose(coordinates.g.coefficients[:n], expected, rtol=1e-8, atol=1e-9), step
        assert not coordinates.g.coefficients[n:].any()
