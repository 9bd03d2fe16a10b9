"""Result tables of an independent float64 implementation, which the device's program and the host's solver must give again.

The numbers below come from a NumPy implementation that was written from the derivations alone: Gram matrices written out,
G = A'KA formed anew, samples stored in a row more than the budget before one is chosen to go, steps and the ridge's share
limited and columns started again as the documentation says.  It shares no code with the product.  The stream is made here again, from Python's own
generator, whose numbers are promised.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np
import pytest

from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

pytest.importorskip("scipy")

GAMMA, SHRINKAGE = 0.3, 0.1
CHOSEN = (10, 57, 199, 200, 300, 599)
"""Samples whose e2 is in the table: regimes change at 200 and 400."""


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


def state(model: HostModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Expansion vectors (n, D), A (n, r) and G (r, r)."""
    n = int(model.memory.field("n")[0])
    a = model.memory.field("a")[:n].copy()
    g = np.zeros((a.shape[1], a.shape[1]))
    rows, columns = np.tril_indices(len(g))
    g[rows, columns] = g[columns, rows] = model.memory.field("g")
    return model.memory.field("v")[:n].copy(), a, g


def residual(model: HostModel, x: np.ndarray) -> float:
    """The mean of e2, k(x, x) = 1."""
    return float(model.novelty(x).mean())


def best(x: np.ndarray, rank: int) -> float:
    """What the best subspace of this rank leaves over, without shrinkage: kernel principal components."""
    return 1 - float(np.linalg.eigvalsh(gram(x, x))[-rank:].sum()) / len(x)


class Expected(NamedTuple):
    e2: tuple[float, ...]  # of the chosen samples, before they are learned
    late: float  # the mean of e2 over the last regime
    trace: float  # tr G at the end
    rows: float  # |A|^2
    vectors: float  # the sum of all numbers of the expansion vectors
    n: int
    censored: int


# fmt: off
CASES: dict[str, tuple[dict[str, Any], Expected]] = {
    "parametric drop": (
        {"update": "parametric", "budget": "drop", "step": "constant", "eta": 1.0, "window": 0},
        Expected((0.36752326727, 0.20368836300, 0.17471096751, 0.94336918327, 0.79224524996, 0.51120770492),
                 0.39323077555, 2.2707772020, 0.8557454680, -39.1115009696, 16, 0),
    ),
    "parametric exact": (
        {"update": "parametric", "budget": "exact", "step": "constant", "eta": 1.0, "window": 0, "ald_threshold": 1e-06},
        Expected((0.36752326727, 0.06683859097, 0.05775740732, 0.91174016063, 0.96502233146, 0.38205935994),
                 0.66386367640, 15.0337675446, 10.3784315734, -29.7373266689, 16, 0),
    ),
    "parametric exact, fading": (
        {"update": "parametric", "budget": "exact", "step": "constant", "eta": 1.0, "window": 0, "fading": 0.95, "ald_threshold": 1e-06},
        Expected((0.36752326727, 0.06389454791, 0.05883631337, 0.90162947442, 0.84062674722, 0.08735772781),
                 0.44190953530, 10.0475146784, 3.5030953982, -54.1450116534, 16, 0),
    ),
    "parametric drop, fading, window": (
        {"update": "parametric", "budget": "drop", "step": "constant", "eta": 1.0, "window": 100, "fading": 0.98},
        Expected((0.36752326727, 0.20138310892, 0.16074724181, 0.94377342240, 0.77594283192, 0.21995650499),
                 0.32508306377, 2.5162535511, 0.9221724651, -55.0289769548, 16, 0),
    ),
    "parametric exact, ald_threshold, window": (
        {"update": "parametric", "budget": "exact", "step": "constant", "eta": 0.5, "window": 100, "ald_threshold": 0.05},
        Expected((0.38448544985, 0.08119211305, 0.04017028622, 0.91181471953, 0.99040703974, 0.19379857294),
                 0.61079128008, 9.3472607160, 6.8838285805, -23.8124002264, 16, 0),
    ),
    "parametric exact, normalised": (
        {"update": "parametric", "budget": "exact", "step": "normalised", "eta": 0.5, "window": 100, "ald_threshold": 1e-06},
        Expected((0.32469508528, 0.30704768542, 0.17377506315, 0.92128021549, 0.46244079519, 0.15634207919),
                 0.22829578143, 218.1722995864, 103.6666970292, -54.8149567685, 16, 0),
    ),
    "parametric exact, decreasing": (
        {"update": "parametric", "budget": "exact", "step": "decreasing", "eta": 1.5, "window": 0, "ald_threshold": 1e-06},
        Expected((0.32110948693, 0.05995060331, 0.02392896052, 0.90694826440, 0.99980849517, 0.86978726975),
                 0.88336781148, 5.3552352018, 10.6120852559, -29.7806487660, 16, 0),
    ),
    "parametric exact, averaged": (
        {"update": "parametric", "budget": "exact", "step": "averaged", "eta": 1.5, "window": 100, "ald_threshold": 1e-06},
        Expected((0.32078531383, 0.05856882179, 0.02163108605, 0.90858015229, 0.99981837652, 0.78703575490),
                 0.85781206681, 5.8857659249, 41.2948963025, -29.1133641452, 16, 0),
    ),
    "parametric exact, insensitive": (
        {"update": "parametric", "budget": "exact", "step": "constant", "eta": 1.0, "window": 0, "insensitivity": 0.3, "ald_threshold": 1e-06},
        Expected((0.41861467031, 0.06187062100, 0.09699330430, 0.91742077213, 0.67393501813, 0.14110937573),
                 0.69146037803, 9.5239446238, 8.5190032665, -26.4466351941, 16, 306),
    ),
    "nonparametric drop": (
        {"update": "nonparametric", "budget": "drop", "step": "constant", "eta": 1.0, "window": 0},
        Expected((0.41492815884, 0.17033182091, 0.04420448073, 0.90660096194, 0.97382235618, 0.85800391897),
                 0.91194689145, 9.6056152716, 12.1460548835, -26.0514175256, 16, 0),
    ),
    "nonparametric exact, ald_threshold": (
        {"update": "nonparametric", "budget": "exact", "step": "normalised", "eta": 0.5, "window": 100, "ald_threshold": 0.05},
        Expected((0.41238775277, 0.13270115384, 0.02698207836, 0.91074041657, 0.37929297918, 0.06278890757),
                 0.27677330103, 130.3788682787, 120.7775506523, -41.8048387066, 16, 0),
    ),
    "hybrid drop, normalised": (
        {"update": "hybrid", "budget": "drop", "step": "normalised", "eta": 1.5, "window": 100},
        Expected((0.40712379247, 0.10900732162, 0.03601830193, 0.91514036206, 0.46006968490, 0.09960708802),
                 0.21884360393, 14.2623653172, 4.4902663947, -59.1013876139, 16, 0),
    ),
    "hybrid exact, fading": (
        {"update": "hybrid", "budget": "exact", "step": "constant", "eta": 1.0, "window": 0, "fading": 0.95, "ald_threshold": 1e-06},
        Expected((0.41449538320, 0.15546564982, 0.02678788572, 0.90199304778, 0.94166153471, 0.15847905589),
                 0.52644476475, 17.3147448225, 12.8832860616, -48.0418211118, 16, 0),
    ),
    "hybrid exact, ald_threshold": (
        {"update": "hybrid", "budget": "exact", "step": "normalised", "eta": 1.5, "window": 0, "ald_threshold": 0.05},
        Expected((0.40197886784, 0.09643588059, 0.05463546479, 0.91184642953, 0.46903185588, 0.08982015794),
                 0.22383797868, 1169.4757370841, 482.2163705413, -52.3584302872, 16, 0),
    ),
    "rls drop": (
        {"update": "rls", "budget": "drop"},
        Expected((0.27553257999, 0.23110544846, 0.86825974180, 0.99331076588, 0.69969975505, 0.34649512485),
                 0.85959082941, 3.6464426121, 0.6670326946, -52.6470099367, 16, 0),
    ),
    "rls exact": (
        {"update": "rls", "budget": "exact", "ald_threshold": 1e-06},
        Expected((0.27553257999, 0.04171885245, 0.02463952687, 0.90555453069, 0.99980978963, 0.85782737087),
                 0.85924130316, 10.1719604224, 19.7863891922, -26.0694323908, 16, 0),
    ),
    "rls exact, forgetting, fading": (
        {"update": "rls", "budget": "exact", "forgetting": 0.98, "fading": 0.95, "ald_threshold": 1e-06},
        Expected((0.27512990623, 0.03779587153, 0.03582428947, 0.90790938367, 0.66634033378, 0.08016487187),
                 0.39621216306, 8.4982801710, 4.1259880235, -53.9930104776, 16, 0),
    ),
    "rls exact, forgetting, ald_threshold": (
        {"update": "rls", "budget": "exact", "forgetting": 0.98, "ald_threshold": 0.05},
        Expected((0.27398387976, 0.03392136588, 0.03448568280, 0.91420565774, 0.71843429986, 0.05312902361),
                 0.42141029546, 10.6098206934, 6.3615912818, -50.6895155373, 16, 0),
    ),
}
# fmt: on


@pytest.mark.in_turn
@pytest.mark.parametrize("name", CASES)
def test_a_stream_leaves_what_the_independent_implementation_has(name: str) -> None:
    keys, expected = CASES[name]
    model, x = HostModel(spec_of(**keys)), stream()
    e2, statuses = model.prequential(x)
    np.testing.assert_allclose(e2[list(CHOSEN)], expected.e2, rtol=0, atol=1e-9)
    assert e2[400:].mean() == pytest.approx(expected.late, abs=1e-9)
    v, a, g = state(model)
    assert len(v) == expected.n and (statuses == 3).sum() == expected.censored
    assert v.sum() == pytest.approx(expected.vectors, abs=1e-9)
    assert (a**2).sum() == pytest.approx(expected.rows, rel=1e-8)
    assert np.trace(g) == pytest.approx(expected.trace, rel=1e-8)
    # and G is what it stands for
    np.testing.assert_allclose(g, a.T @ gram(v, v) @ a, rtol=0, atol=1e-9 * np.trace(g))


BATCH = {
    # rank, shrinkage: objective, mean of e2, |K - Khat|_F / N, tr(K - Khat) / N, tr G;
    # e2 of five points elsewhere, the first one's features times each one's;
    # the objective after 1, 2, 5 and 12 alternations from a start that is a formula
    (3, 0.1): (
        (15.308804198756, 0.479496696279, 0.151768691587, 0.510293473292, 9.239033103747),
        (0.847647139793, 0.876348038636, 0.519536784245, 0.718478377107, 0.706669544589),
        (0.142828407777, 0.126354367698, 0.200311652606, 0.192287514707, 0.191860061608),
        (19.853122074867, 18.340627980681, 16.245804528232, 15.365404159830),
    ),
    (6, 1.0): (
        (20.587209355707, 0.359625675927, 0.199130500343, 0.686240311857, 9.798439077907),
        (0.847686388687, 0.8746421179, 0.447232095577, 0.710594479107, 0.686337912505),
        (0.076032701975, 0.060811433702, 0.118304161849, 0.103195283812, 0.104721102647),
        (23.926238341030, 20.824879878187, 20.661458004493, 20.587955763001),
    ),
}


@pytest.mark.parametrize(("rank", "shrinkage"), BATCH)
def test_the_batch_solution_is_the_independent_one(rank: int, shrinkage: float) -> None:
    from benchmarks.papers.approximation import Approximation
    from pykernel.training.bkfe import bkfe
    from pykernel.training.subspace import HostSubspace

    numbers, outside, similar, history = BATCH[rank, shrinkage]
    x, y = stream(60, period=20), stream(5, period=5, seed=3)
    k = gram(x, x)
    found = bkfe(k, rank, shrinkage)
    subspace = HostSubspace(MercerKernel("gaussian", gamma=GAMMA), x, found.a, shrinkage)
    near = Approximation.of(subspace, x)
    assert found.objective[-1] == pytest.approx(numbers[0], rel=1e-10)
    assert (near.residual, near.frobenius, near.trace) == pytest.approx(numbers[1:4], rel=1e-9)
    assert np.trace(found.a.T @ k @ found.a) == pytest.approx(numbers[4], rel=1e-10)
    z = subspace.features(y)
    np.testing.assert_allclose(subspace.residual(y), outside, rtol=1e-9)
    np.testing.assert_allclose(z @ z[0], similar, rtol=1e-9)
    start = np.fromfunction(lambda i, j: 1 / (1 + (i + 3 * j) % 7), (60, rank))
    steps = bkfe(k, rank, shrinkage, method="alternating", iterations=12, tolerance=0, start=start)
    np.testing.assert_allclose(steps.objective[[0, 1, 4, 11]], history, rtol=1e-10)


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
        traces = [np.trace(state(model)[2]) for part in np.split(x, 4) if (model.update(part) >= 0).all()]
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
            seen.append(np.trace(state(model)[2]))
        traces[eta], left[eta] = np.mean(seen), residual(model, x[:300])
    assert traces[1.0] > 1.2 * traces[0.5] and traces[1.95] > 1.2 * traces[1.0]
    assert left[1.95] > 0.95 * left[1.0]
    with pytest.raises(UserError, match="overshoots its own sample"):
        spec_of(eta=2.0)
