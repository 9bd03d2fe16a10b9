"""The reducers against their definitions, and the factor of the inverse Gram matrix against the matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.expansion import Status
from pykernel.host import HostModel
from pykernel.spec import Spec, make_spec
from tests.naive import Twin

pytestmark = pytest.mark.usefixtures("compiled")


def spec(technique: str, n_max: int, dim: int = 1, precision: str = "float64", **parameters: Any) -> Spec:
    """Parameters by their name in the spec; ``limit`` is the label's."""
    reduction = {k: parameters[k] for k in ("ridge", "gate") if k in parameters}
    learning = {k: parameters[k] for k in ("eta", "rho") if k in parameters}
    return make_spec(
        {
            "name": "m",
            "precision": precision,
            "input": {"dim": dim},
            "label": {"limit": parameters.get("limit", 1e6)},
            "kernel": {"sigma": parameters.get("sigma", 0.5)},
            "learning": learning,
            "reduction": {"technique": technique, "n_max": n_max, **reduction},
        }
    )


def in_use(model: HostModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """v, alpha and m without the slots that are free."""
    n = int(model.memory.field("n")[0])
    field = model.memory.field
    return field("v")[:n].copy(), field("alpha")[:n].copy(), field("m")[:n, :n].copy()


def factor_error(model: HostModel) -> float:
    """max |m' m (K + ridge I) - I| in float64."""
    v, _, m = (part.astype(float) for part in in_use(model))
    sigma, ridge = model.spec.kernel.sigma, model.spec.reduction.ridge
    k = np.exp(-((v[:, None] - v[None]) ** 2).sum(-1) / (2 * sigma**2)) + ridge * np.eye(len(v))
    return float(np.abs(m.T @ m @ k - np.eye(len(v))).max())


def sinc_samples(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-3, 3, (count, 1))
    return x, np.sinc(x[:, 0])


def lorenz(count: int) -> tuple[np.ndarray, np.ndarray]:
    """States of Lorenz's system with unit variance, and the next first coordinate (Euler steps of 0.01, every 5th)."""
    states, s = np.empty((5 * count + 5, 3)), np.array([1.0, 1.0, 20.0])
    for t in range(len(states)):
        a, b, c = s
        s = s + 0.01 * np.array([10 * (b - a), a * (28 - c) - b, a * b - 8 / 3 * c])
        states[t] = s
    states = states[::5]
    states = (states - states.mean(0)) / states.std(0)
    return states[:-1], states[1:, 0]


# ------------------------------------------------------------------------------------------ the definitions


@st.composite
def problems(draw: st.DrawFn) -> tuple[Spec, np.ndarray, np.ndarray]:
    technique = draw(st.sampled_from(["nt", "fklms", "mklms"]))
    n_max, dim = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    ridge = draw(st.sampled_from([1e-5, 1e-3, 1e-2]))
    made = spec(
        technique,
        n_max,
        dim,
        sigma=draw(st.sampled_from([0.2, 0.5, 1.0, 3.0])),
        eta=draw(st.sampled_from([0.05, 0.3, 0.9])),
        rho=draw(st.sampled_from([0.0, 0.0, 0.02, 0.5])),
        ridge=ridge,
        gate=draw(st.sampled_from([2 * ridge, 0.05, 0.3] if technique == "mklms" else [0.0, 1e-3, 0.05, 0.3])),
        limit=draw(st.sampled_from([1e6, 1e6, 1.0])),
    )
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    samples = draw(st.integers(15, 60))
    x = rng.uniform(-2, 2, (samples, dim))
    if draw(st.booleans()):
        x = np.round(4 * x) / 4  # equal distances, repeats
    repeats = rng.random(samples) < draw(st.sampled_from([0.0, 0.3]))
    x[repeats] = x[rng.integers(0, samples, int(repeats.sum()))]
    scale = draw(st.sampled_from([1.0, 1.0, 1e-3]))
    return made, x, scale * np.sin(3 * x.sum(1)) * (rng.random(samples) < 0.9)


@given(problems())
def test_every_update_does_what_the_definitions_say(problem: tuple[Spec, np.ndarray, np.ndarray]) -> None:
    spec, x, y = problem
    model = HostModel(spec)
    twin = Twin(
        spec.reduction.technique,
        spec.kernel.sigma,
        spec.learning.eta,
        spec.learning.rho,
        spec.reduction.ridge,
        spec.gate,
        spec.reduction.n_max,
        spec.label.limit,
    )
    largest = spec.label.limit * 1e-6
    for t in range(len(x)):
        before = bytes(model.memory.bytes[: model.memory.layout.ends["Expansion"]])
        largest = max(largest, np.abs(twin.alpha).max(initial=0), abs(y[t]))
        (predicted,) = model.predict(x[t])
        assert abs(predicted - twin.predict(x[t])) <= 1e-7 * largest * spec.reduction.n_max
        (status,) = model.learn(x[t], y[t])
        if status == Status.REFUSED_MULTIPLIER:
            assert bytes(model.memory.bytes[: len(before)]) == before
            return  # the twin has no way back, and that it was necessary is tested elsewhere
        place = None
        if status in (Status.ADDED, Status.REPLACED):
            (place,) = (int(i) for i in np.flatnonzero((in_use(model)[0] == x[t]).all(1)))
        twin.update(x[t], y[t], int(status), place)
        v, alpha, _ = in_use(model)
        np.testing.assert_array_equal(v, np.array(twin.v).reshape(v.shape))
        np.testing.assert_allclose(alpha, twin.alpha, rtol=0, atol=1e-7 * max(largest, np.abs(alpha).max()))
    if spec.reduction.technique == "mklms":
        assert factor_error(model) < 1e-8


# --------------------------------------------------------------------------------------------------- the factor

# worst |m'm (K + ridge I) - I| in float32 at ridge 1e-3, gate 2e-3.  The first two are the note's (section 10, 1e5
# samples), which absorb or discard nearly every sample; noise as labels makes every second to fourth sample replace a
# vector, and those numbers were measured here.  After a refresh the error is eps times the matrix's condition.
STREAMS = {  # task, noise as labels: budget, sigma, drift, after a refresh
    ("sinc", False): (16, 0.5, 9e-4, 1e-4),
    ("lorenz", False): (32, 1.0, 2e-5, 2e-6),
    ("sinc", True): (16, 0.5, 2.5e-3, 1e-4),
    ("lorenz", True): (32, 1.0, 3e-4, 5e-6),
}


@pytest.mark.parametrize(("task", "noise"), STREAMS)
def test_the_factor_drifts_slowly_and_refresh_restores_it(task: str, noise: bool, exhaustive: bool) -> None:
    n_max, sigma, drift, fresh = STREAMS[task, noise]
    samples = (600_000 if noise else 100_000) if exhaustive else 10_000
    rng = np.random.default_rng(0)
    x, y = sinc_samples(rng, samples) if task == "sinc" else lorenz(samples)
    if noise:
        y = rng.normal(size=samples)
    made = spec("mklms", n_max, x.shape[1], "float32", sigma=sigma, eta=0.5 if noise else 0.1, ridge=1e-3, gate=2e-3)
    model = HostModel(made)
    worst, changes = 0.0, 0
    for part in range(0, samples, 1000):
        statuses = model.learn(x[part : part + 1000], y[part : part + 1000])
        assert (statuses > 0).all()
        changes += int(np.isin(statuses, (Status.ADDED, Status.REPLACED)).sum())
        worst = max(worst, factor_error(model))
    before = model.predict(x[:50])
    model.refresh()
    print(f"{task}: drift {worst:.1e} over {changes} changes, {factor_error(model):.1e} after refresh")
    assert not noise or changes > samples / 6
    assert worst < 10 * drift
    assert factor_error(model) < 10 * fresh
    np.testing.assert_array_equal(model.predict(x[:50]), before)  # refresh changes no multiplier


def test_refresh_rebuilds_from_anything() -> None:
    x, y = sinc_samples(np.random.default_rng(1), 200)
    model = HostModel(spec("mklms", 12, ridge=1e-3))
    model.learn(x, y)
    model.memory.field("m")[...] = np.nan
    model.memory.field("m")[12:] = 0
    model.refresh()
    assert factor_error(model) < 1e-10
    few = HostModel(spec("mklms", 12, ridge=1e-3))
    few.refresh()
    assert not any(few.memory.bytes)


# ---------------------------------------------------------------------------------------------------- tie rules


def test_fklms_ties_keep_the_larger_multiplier_and_stay_bounded() -> None:
    """Both of the closest pair always tie; the note saw 1e32 and more when the older one stayed (section 8.3)."""
    for seed in range(5):
        x, y = sinc_samples(np.random.default_rng(seed), 3000)
        model = HostModel(spec("fklms", 14, eta=0.1, gate=0.0))
        statuses = model.learn(x, y)
        assert (statuses > 0).all()
        assert np.abs(in_use(model)[1]).max() < 10
    # the closest pair is 0 and 0.1; the first keeps its large multiplier
    model = HostModel(spec("fklms", 3, eta=0.5, gate=0.0))
    model.learn([[0.0], [2.0], [0.1]], [10.0, 1.0, 0.0])
    alpha = in_use(model)[1]
    assert abs(alpha[0]) > abs(alpha[2])
    assert model.learn([[-2.0]], [1.0]) == Status.REPLACED
    assert in_use(model)[0][:, 0].tolist() == [0.0, 2.0, -2.0]
    # stored and newest are the closest pair, and the newest is the smaller
    assert model.learn([[2.05]], model.predict([[2.05]])) == Status.DISCARDED


def test_nt_ties_keep_the_newest() -> None:
    model = HostModel(spec("nt", 2, sigma=0.01, eta=0.5, gate=0.0))
    assert model.learn([[0.0], [1.0], [2.0]], [1.0, -1.0, 1.0]).tolist() == [1, 1, Status.REPLACED]
    assert in_use(model)[0][:, 0].tolist() == [2.0, 1.0]
    assert model.learn([[3.0]], [0.9]) == Status.DISCARDED


@given(st.integers(0, 2**32), st.sampled_from([1, 2, 5, 16]), st.sampled_from([1, 3]))
def test_cached_neighbours_are_those_of_a_search(seed: int, n_max: int, dim: int) -> None:
    """Exact where positive, else a lower bound (reduction.py); grids make distances equal."""
    rng = np.random.default_rng(seed)
    x = np.round(rng.uniform(-2, 2, (80, dim)) * 4) / 4 if seed % 2 else rng.uniform(-2, 2, (80, dim))
    model = HostModel(spec("fklms", n_max, dim, "float32", eta=0.2, gate=0.0))
    y = np.sin(2 * x.sum(1))
    for t in range(len(x)):
        model.learn(x[t], y[t])
        v = in_use(model)[0]
        distance = ((v[:, None] - v[None]) ** 2).astype(np.float32)
        total = np.zeros(distance.shape[:2], np.float32)
        for j in range(dim):  # in the product's order
            total += distance[:, :, j]
        np.fill_diagonal(total, np.float32(1e38))
        cached, exact = model.memory.field("neighbour")[: len(v)], total.min(1)
        np.testing.assert_array_equal(cached[cached > 0], exact[cached > 0])
        assert (-cached[cached <= 0] <= exact[cached <= 0]).all()
