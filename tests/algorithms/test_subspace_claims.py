"""What is claimed of subspaces that follow a stream, on points near three planes in turn."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

pytest.importorskip("scipy")

GAMMA, SHRINKAGE = 0.3, 0.1


def stream(count: int = 600, dim: int = 4, period: int = 200, seed: int = 7) -> np.ndarray:
    """Points near three tilted planes in turn, each for ``period`` samples, (count, dim)."""
    rng = random.Random(seed)

    def uniform(*shape: int) -> np.ndarray:
        return np.array([2 * rng.random() - 1 for _ in range(int(np.prod(shape)))]).reshape(shape)

    planes, centres = 1.5 * uniform(3, 2, dim), 1.5 * uniform(3, dim)
    which = np.arange(count) // period % 3
    along = uniform(count, 2)
    return np.einsum("ni,nid->nd", along, planes[which]) + centres[which] + 0.1 * uniform(count, dim)


def gram(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """By definition."""
    return np.exp(-GAMMA * ((x[:, None] - y[None]) ** 2).sum(-1))


def spec_of(n_max: int = 16, features: int = 4, ald_threshold: float | None = None, **subspace: Any) -> Spec:
    reduction: dict[str, Any] = {"n_max": n_max, "force": True} | (
        {} if ald_threshold is None else {"ald_threshold": ald_threshold}
    )
    return make_spec(
        {
            "name": "m",
            "precision": "float64",
            "input": {"dim": 4, "max_abs": 10.0},
            "kernel": {"gamma": GAMMA},
            "learning": {"rule": "okfeb", "features": features},
            "reduction": reduction,
            "subspace": {"shrinkage": SHRINKAGE} | subspace,
        }
    )


def scale(model: HostModel) -> float:
    """tr G, from its triangle."""
    packed = model.memory.field("g")
    return float(packed[np.arange(1, 1 + int(np.sqrt(2 * len(packed)))).cumsum() - 1].sum())


def residual(model: HostModel, x: np.ndarray) -> float:
    """The mean of e2, k(x, x) = 1."""
    return float(model.novelty(x).mean())


def best(x: np.ndarray, rank: int) -> float:
    """What the best subspace of this rank leaves over, without shrinkage: kernel principal components."""
    return 1 - float(np.linalg.eigvalsh(gram(x, x))[-rank:].sum()) / len(x)


# --------------------------------------------------------------------------------------------- what the paper claims


def test_recursive_least_squares_finds_the_batch_optimum() -> None:
    """Five passes over 200 samples, room for all of them: within 1 % of the best subspace of its rank."""
    x = stream(200, period=1)
    model = HostModel(spec_of(200, 6, update="rls"))
    for _ in range(5):
        model.update(x)
    assert best(x, 6) < residual(model, x) < 1.01 * best(x, 6)


def test_a_window_ends_the_growth_of_the_scale() -> None:
    """With a ridge of lambda / n no L is best for long: tr G grows as the root of n.  With lambda / min(n, W) it settles."""
    x = stream(8000, period=1)
    grown = {}
    for window in (0, 200):
        model = HostModel(spec_of(window=window))
        traces = [scale(model) for part in np.split(x, 4) if (model.update(part) >= 0).all()]
        grown[window] = traces[3] / traces[1]
    assert 1.3 < grown[0] < 1.5  # 2 ** 0.5
    assert 0.9 < grown[200] < 1.15


def test_long_steps_inflate_the_scale_and_gain_nothing() -> None:
    """mu = 4 eta lambda: noise makes L longer, and from 8 lambda on, where steps no longer contract, they are refused."""
    x = stream(4000, period=1)
    traces, left = {}, {}
    for eta in (0.5, 1.0, 1.95):
        model = HostModel(spec_of(eta=eta, window=200))
        model.update(x[:2000])
        seen = []
        for part in np.split(x[2000:], 20):
            model.update(part)
            seen.append(scale(model))
        traces[eta], left[eta] = np.mean(seen), residual(model, x[:300])
    assert traces[1.0] > 1.2 * traces[0.5] and traces[1.95] > 1.2 * traces[1.0]
    assert left[1.95] > 0.95 * left[1.0]
    with pytest.raises(UserError, match="so that each step brings L nearer to the sample"):
        spec_of(eta=2.0)
