"""A Nystroem basis on the device: against its definitions in float64 and after a restart."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from pykernel.algorithms.basis.nystrom_rls import NYSTROM_RLS
from pykernel.algorithms.doubt import DoubtStatus
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.families import nystrom
from pykernel.spec.model import Spec, make_spec
from tests.support.nystrom_twin import (
    KERNELS,
    LIMITS,
    Kernel,
    Twin,
    WichmannHill,
    first_seeds,
    greedy,
    trace_residual,
)
from tests.support.retraining import Call, assert_finite, label_of, made, persistent

NystromStatus = NYSTROM_RLS["real"].status

PRECISIONS = ("float32", "float64")
QUESTIONS = ("predict", "classify", "features", "residual")
LABELS: dict[str, dict[str, Any]] = {
    "number": {"max_abs": 50.0},
    "numbers": {"outputs": 2, "max_abs": 50.0},
    "two classes": {"classes": ["no", "yes"]},
    "three classes": {"classes": ["rest", "tap", "shake"]},
}
METHODS = tuple(nystrom.METHODS)


def spec_of(
    precision: str = "float64",
    kernel: str = "gaussian",
    label: str = "number",
    method: str = "stream",
    n: int = 6,
    rows: int = 18,
    dim: int = 2,
    ald_threshold: float = 1e-3,
    ridge: float = 0.1,
    forgetting: float = 1.0,
    seed: int = 0,
    input: dict[str, Any] | None = None,
    **basis: Any,
) -> Spec:
    learning: dict[str, Any] = {"rule": "nystrom-rls", "ridge": ridge, "forgetting": forgetting}
    made: dict[str, Any] = {
        "name": "gate",
        "precision": precision,
        "input": {"dim": dim, "max_abs": LIMITS.get(kernel, 20.0)} | (input or {}),
        "label": LABELS[label],
        "kernel": KERNELS[kernel],
    }
    if method == "given":
        vectors = np.random.default_rng(n).normal(size=(n, dim)).astype(np.float32).astype(float)
        made |= {"learning": learning, "expansion": {"vectors": vectors.tolist()}}
    else:
        made |= {
            "learning": learning | {"samples": rows, "seed": seed},
            "reduction": {"n_max": n, "ald_threshold": ald_threshold},
        }
    return make_spec(made | {"basis": {"method": method} | basis})


# --------------------------------------------------------------------------------------------- calls, and the state


def held(model: Any) -> np.ndarray:
    """The product's vectors, float64."""
    field = model.memory.field
    return np.asarray(field("v")[: field("n")[0]].astype(float))


def lower(packed: np.ndarray, n: int) -> np.ndarray:
    """L of its rows up to the diagonal, of which reciprocals are kept."""
    l = np.zeros((n, n))
    l[np.tril_indices(n)] = packed[: n * (n + 1) // 2]
    np.fill_diagonal(l, 1 / np.diag(l))
    return l


def upper(packed: np.ndarray, n_max: int, n: int) -> np.ndarray:
    """R of its rows from the diagonal on."""
    r = np.zeros((n_max, n_max))
    r[np.triu_indices(n_max)] = packed
    return r[:n, :n]


def agrees(model: Any, twin: Twin) -> None:
    """Vectors and random numbers exactly; factor, regression and reservoir to rounding."""
    field, n = model.memory.field, len(twin.model)
    vectors, gram = twin.model.vectors, twin.kernel.gram(twin.model.vectors, twin.model.vectors)
    if twin.method != "given":
        assert field("n")[0] == n
        np.testing.assert_array_equal(field("v")[:n], vectors)
        assert not field("v")[n:].any() and not field("l")[n * (n + 1) // 2 :].any()
        seeds = tuple(field("seeds").tolist())
        assert seeds == twin.random.seeds or (
            seeds == (0, 0, 0) and twin.random.seeds == first_seeds(twin.spec.learning.seed)
        )
        l = lower(field("l"), n)
        np.testing.assert_allclose(l @ l.T, gram, rtol=0, atol=1e-10 * np.abs(gram).max(initial=1.0))
        assert (np.diag(l) > 0).all()
        rows = len(twin.reservoir)
        np.testing.assert_array_equal(field("rows")[:rows], twin.reservoir.x)
        assert not field("rows")[rows:].any() and field("count")[0] == rows
        np.testing.assert_array_equal(field("labels")[:rows], twin.reservoir.y)
    elif not field("r").any():  # before the first sample, which writes the ridge
        assert not twin.model.b.any() and not field("coefficients").any()
        return
    r = upper(field("r"), twin.n_max, n)
    rounding = twin.rounding()
    np.testing.assert_allclose(r.T @ r, twin.model.a, rtol=0, atol=rounding * np.trace(twin.model.a) if n else 0)
    weights = twin.weights
    np.testing.assert_allclose(
        field("coefficients")[:n], weights, rtol=0, atol=rounding * max(1.0, np.abs(weights).max(initial=0))
    )
    assert not field("coefficients")[n:].any()


def follow(model: HostModel, twin: Twin, calls: list[Call]) -> Counter[str]:
    """Make calls of the product and of its twin, and compare all that can be seen after each."""
    seen: Counter[str] = Counter()
    for call in calls:
        before = persistent(model)
        status, values = made(model, call)
        more = {"held": held(model)} if call[0] in ("update", "select") and twin.method != "given" else {}
        allowed = getattr(twin, call[0])(*call[1:], status, **more)
        assert status in allowed, f"{call[0]} gave {NystromStatus(status).name}; allowed: {allowed}"
        if status < 0 or call[0] in QUESTIONS:
            assert persistent(model) == before, f"{call[0]}, {NystromStatus(status).name}, changed the state"
        if status < 0:
            assert (values == -1).all() if call[0] == "classify" else np.isnan(values).all()
        elif call[0] in QUESTIONS:
            answers(twin, call, values)
        else:
            agrees(model, twin)
            assert_finite(model)
        seen[f"{call[0]}: {NystromStatus(status).name}"] += 1
    return seen


def answers(twin: Twin, call: Call, values: np.ndarray) -> None:
    name, x = call
    expected, rounding = twin.answer(name, x), twin.rounding()
    if name == "classify":
        f = twin.value(x)
        apart = np.abs(f[0]) if len(f) == 1 else np.diff(np.sort(f))[-1]
        if apart > 2 * rounding * (1 + np.abs(f).max()):
            assert values[0] == expected[0]
        return
    size = 1.0 if name == "residual" else 1 + np.abs(expected).max(initial=0)
    if name == "features":
        size += np.sqrt(twin.kernel.value(twin.scaled(x), twin.scaled(x)))
    np.testing.assert_allclose(values, expected, rtol=0, atol=rounding * size)


# ------------------------------------------------------------------------------------------------------ sequences


@st.composite
def specs(draw: st.DrawFn, precisions: tuple[str, ...] = ("float64",)) -> Spec:
    method = draw(st.sampled_from(METHODS))
    n, dim = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    inputs = {"center": [0.5] * dim, "scale": [0.75] * dim} if draw(st.booleans()) else {}
    more: dict[str, Any] = {}
    if method != "given":
        more["horizon"] = draw(st.sampled_from([0, 0, 30, 1000]))
    if method == "stream":
        more["cache"] = draw(st.booleans())
    if method in ("efvs", "sgma"):
        more |= {"candidates": draw(st.sampled_from([1, 3, 59])), "tau": draw(st.sampled_from([0.0, 0.2]))}
    if method == "efvs":
        more["points"] = draw(st.sampled_from([1, 4, 59]))
    words = (
        draw(st.sampled_from(precisions)),
        draw(st.sampled_from(sorted(KERNELS))),
        draw(st.sampled_from(sorted(LABELS))),
        method,
        n,
        draw(st.integers(2 * n, 4 * n)),
        dim,
        draw(st.sampled_from([1e-3, 1e-2, 0.2])),
        draw(st.sampled_from([1.0, 0.1, 1e-2])),
        draw(st.sampled_from([1.0, 1.0, 0.99, 0.8])),
        draw(st.integers(0, 2**31 - 1)),
        inputs,
    )
    try:
        return spec_of(*words, **more)
    except UserError as error:  # of given vectors
        assert "nearly a linear combination of the rows before it" in str(error)
        reject()


NAMES = ["update"] * 16 + ["predict"] * 2 + ["features", "residual", "classify", "select", "restart"]


def sequence_of(spec: Spec, names: list[str], seed: int) -> list[Call]:
    """Samples with repeats, the origin, and all that is refused, between everything else."""
    rng, real = np.random.default_rng(seed), spec.real.dtype
    program = spec.program
    there = {entry.name for entry in program.entries_for(spec.config)}
    found: list[Call] = []
    taken: list[np.ndarray] = []
    bad = [np.nan, np.inf, -np.inf, spec.input.max_abs * 1.01, -spec.input.max_abs, float(np.finfo(real).max)]
    for name in names:
        if name not in there:
            continue
        if name in ("select", "restart"):
            found.append((name,))
            continue
        x = rng.normal(size=spec.dim) * rng.choice([1.0, 1.0, spec.input.max_abs / 7])
        chance = rng.random()
        if taken and chance < 0.2:
            x = taken[rng.integers(len(taken))] * rng.choice([1.0, 1 + 1e-4, 1 + 1e-7])
        elif chance < 0.25:
            x = np.array(spec.input.center) if spec.input.center is not None else np.zeros(spec.dim)
        if rng.random() < 0.05:
            x = np.where(np.arange(spec.dim) == rng.integers(spec.dim), rng.choice(bad), x)
        x = x.astype(real)
        if np.isfinite(x).all() and np.abs(x).max() <= spec.input.max_abs:
            taken.append(x)
        if name != "update":
            found.append((name, x))
            continue
        f = np.sin(x.sum()) + 0.1 * rng.normal() if np.isfinite(x).all() and np.abs(x).max() < 1e6 else 0.0
        found.append((name, x, label_of(spec, f, rng)))
    return found


@st.composite
def sequences(draw: st.DrawFn, /, most: int = 80, **parameters: Any) -> tuple[Spec, list[Call]]:
    spec = draw(specs(**parameters))
    names = draw(st.lists(st.sampled_from(NAMES), max_size=most))
    return spec, sequence_of(spec, names, draw(st.integers(0, 2**32)))


# ----------------------------------------------------------------------------------------------- the twin's own


def points_of(count: int, dim: int = 2, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, dim))


# --------------------------------------------------------------------------------------------------- definitions


@given(sequences())
def test_every_call_does_what_the_definitions_say(sequence: tuple[Spec, list[Call]]) -> None:
    spec, some_calls = sequence
    follow(HostModel(spec), Twin(spec), some_calls)


LONG: dict[str, dict[str, Any]] = {
    "gaussian": {},
    "wide": {"kernel": "wide", "n": 8, "rows": 24, "forgetting": 0.995},
    "laplacian": {"kernel": "laplacian", "label": "numbers", "horizon": 100, "ald_threshold": 0.3},
    "matern": {"kernel": "matern32", "label": "three classes", "cache": False},
    "polynomial": {"kernel": "polynomial", "dim": 3, "label": "two classes", "forgetting": 0.98},
    "cubic": {"kernel": "cubic", "dim": 3, "n": 9, "rows": 30, "forgetting": 0.999},
    "cosine": {"kernel": "cosine", "dim": 3, "n": 7, "horizon": 60},
    "linear": {"kernel": "linear", "dim": 4, "n": 3, "rows": 9, "input": {"center": [0.5] * 4, "scale": [1.5] * 4}},
    "efvs": {"method": "efvs", "kernel": "matern52", "candidates": 5, "points": 7, "label": "numbers"},
    "efvs, far": {
        "method": "efvs",
        "kernel": "polynomial",
        "dim": 3,
        "candidates": 4,
        "points": 6,
        "ald_threshold": 0.02,
    },
    "sgma": {"method": "sgma", "kernel": "laplacian", "candidates": 5, "forgetting": 0.99, "horizon": 80},
    "sgma, far": {"method": "sgma", "kernel": "cubic", "candidates": 30, "tau": 0.05, "label": "two classes"},
    "given": {"method": "given", "kernel": "polynomial", "label": "three classes", "forgetting": 0.99},
}


@pytest.mark.exhaustive
@pytest.mark.in_turn(108)
@pytest.mark.parametrize("case", LONG)
def test_it_goes_on_for_long(case: str) -> None:
    """The same statuses, the same vectors, the same predictions; every status comes up."""
    spec = spec_of(**LONG[case])
    rng = np.random.default_rng(0)
    rarely = np.where(np.isin(NAMES, ["restart"]), 0.1, 1.0)
    names = rng.choice(NAMES, 1000, p=rarely / rarely.sum()).tolist()
    seen = follow(
        HostModel(spec),
        Twin(spec),
        [("select",), *sequence_of(spec, names, 1)][spec.basis.method not in ("efvs", "sgma") :],
    )
    wanted = {
        "update: DONE",
        "update: REFUSED_INPUT",
        "update: REFUSED_LABEL",
        "predict: DONE",
        "predict: REFUSED_INPUT",
    }
    if spec.basis.method == "stream":
        wanted |= {"update: ADDED", "update: REPLACED"}
    if spec.basis.method in ("efvs", "sgma"):
        wanted |= {"select: DONE", "select: TOO_FEW"}
    assert wanted <= set(seen), seen


def stream_of(count: int, dim: int = 2, seed: int = 0, spread: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = spread * rng.normal(size=(count, dim))
    return x, np.sin(2 * x.sum(1)) + 0.05 * rng.normal(size=count)


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("cache", [True, False])
def test_a_sample_that_loses_leaves_the_basis_alone(cache: bool, precision: str) -> None:
    """DONE changes no byte of vectors and factor; ADDED none of those before; and many lose at a full budget."""
    model = HostModel(spec_of(precision, n=8, rows=24, cache=cache))
    x, y = stream_of(3000)
    seen: Counter[int] = Counter()
    for row, label in zip(x, y, strict=True):
        before = {name: model.memory.field(name).copy() for name in ("v", "l", "n")}
        full = before["n"][0] == 8
        status = int(model.update(row[None], [label])[0])
        same = all(model.memory.field(name).tobytes() == old.tobytes() for name, old in before.items())
        assert same == (status == NystromStatus.DONE)
        if status == NystromStatus.ADDED:
            n = before["n"][0]
            assert not full and (model.memory.field("v")[:n] == before["v"][:n]).all()
            assert (model.memory.field("l")[: n * (n + 1) // 2] == before["l"][: n * (n + 1) // 2]).all()
        seen[status, full] += 1
    assert seen[NystromStatus.DONE, True] > 1000 and seen[NystromStatus.REPLACED, True] > 10, seen


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_swaps_make_the_basis_better(precision: str) -> None:
    """The reservoir's own trace never grows by a swap, but for rounding; over the stream the basis beats its first one."""
    spec = spec_of(precision, n=10, rows=60)
    model, kernel = HostModel(spec), Kernel(spec)
    x, y = stream_of(2500)
    x = x.astype(spec.real.dtype).astype(float)
    first = last = np.zeros(0)
    for row, label in zip(x, y, strict=True):
        vectors, rows = held(model), model.memory.field("rows").astype(float)
        status = int(model.update(row[None], [label])[0])
        if status == NystromStatus.ADDED:
            first = held(model)
        if status == NystromStatus.REPLACED:
            last = held(model)
            before, after = (trace_residual(kernel, rows, v) for v in (vectors, last))
            assert after <= before * (1 + 1e-6 if precision == "float64" else 1 + 1e-3)
            np.testing.assert_array_equal(last[-1], row)
    assert len(first) == len(last) == 10
    fresh = stream_of(1000, seed=9)[0]
    assert trace_residual(kernel, fresh, last) < 0.9 * trace_residual(kernel, fresh, first)


def test_of_vectors_that_the_reservoir_does_not_miss_the_first_goes() -> None:
    """Samples so far apart that k = 0: what is no row of the reservoir is missed by none, and neither is the sample."""
    model = HostModel(spec_of(n=3, rows=6, dim=1, input={"max_abs": 1e4}))
    vectors, rows = model.memory.field("v"), model.memory.field("rows")
    seen = Counter[str]()
    for t in range(600):
        known, kept = vectors[:, 0].copy(), rows[:, 0].copy()
        (status,) = model.update(np.array([[10.0 * t]]), np.zeros(1))
        if t < 6:
            continue
        missing = [i for i in range(3) if known[i] not in kept]
        if missing:
            del_first = [*known[: missing[0]], *known[missing[0] + 1 :], 10.0 * t]
            assert status == NystromStatus.REPLACED and vectors[:, 0].tolist() == del_first
        else:
            assert status == NystromStatus.DONE and (vectors[:, 0] == known).all()
        seen[NystromStatus(status).name] += 1
    assert min(seen["REPLACED"], seen["DONE"]) > 20


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kernel", ["gaussian", "wide", "cubic", "matern52"])
def test_hundreds_of_swaps_leave_the_factor_right(kernel: str, precision: str) -> None:
    """A stream whose place moves: L L' = K_SS, and the rows' coordinates are those of the vectors."""
    size = 6 if kernel == "cubic" else 12
    spec = spec_of(precision, kernel, n=size, rows=3 * size, ald_threshold=1e-3, horizon=60, forgetting=0.99, dim=3)
    model, twin = HostModel(spec), Kernel(spec)
    rng, part = np.random.default_rng(3), spec.input.max_abs / 6.7
    x = rng.normal(size=(12_000, 3)) + 3 * np.sin(np.arange(12_000) / 150)[:, None]
    x = np.clip(x * min(part, 1.0), -spec.input.max_abs, spec.input.max_abs)
    statuses = model.update(x, np.sin(x.sum(1)))
    assert (statuses == NystromStatus.REPLACED).sum() > 100, Counter(statuses.tolist())
    n, field = int(model.memory.field("n")[0]), model.memory.field
    vectors, l = held(model), lower(field("l").astype(float), n)
    gram = twin.gram(vectors, vectors)
    room = 3000 * np.finfo(spec.real.dtype).eps
    assert np.abs(l @ l.T - gram).max() <= room * np.abs(gram).max()
    fresh = rng.normal(size=(50, 3)).astype(spec.real.dtype)
    found = model.ask("features", fresh)[0][:, :n].astype(float)
    cross = twin.gram(fresh.astype(float), vectors)
    np.testing.assert_allclose(found @ l.T, cross, rtol=0, atol=room * np.abs(cross).max())


# ----------------------------------------------------------------------------------------- EFVS and SGMA, and select


@pytest.mark.in_turn(108)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", ["efvs", "sgma"])
@pytest.mark.parametrize("kernel", ["gaussian", "matern32", "polynomial", "cosine", "linear"])
def test_with_all_candidates_and_points_it_is_the_brute_force(kernel: str, method: str, precision: str) -> None:
    """FVS, rule 4.2: each candidate put into the basis in turn, and the criterion computed anew."""
    dim = 9 if kernel == "linear" else 3
    for seed in range(4):
        spec = spec_of(
            precision,
            kernel,
            method=method,
            n=6,
            rows=40,
            dim=dim,
            candidates=64,
            **{"points": 64} if method == "efvs" else {},
        )
        model = HostModel(spec)
        x = points_of(40, dim, seed) * np.random.default_rng(seed).uniform(0.5, 2, (40, 1))
        x[7] = x[3]
        x = x.astype(spec.real.dtype)
        model.update(x, x.sum(1))
        seeds = model.memory.field("seeds").copy()
        assert model.call("select") == NystromStatus.DONE
        expected, margins = greedy(Kernel(spec), x.astype(float), 6, method, 1e-3)
        assert min(margins) > 2e-5  # no choice is a matter of rounding
        np.testing.assert_array_equal(held(model), x[expected])
        assert (model.memory.field("seeds") == seeds).all()  # nothing was drawn


@pytest.mark.parametrize("method", ["efvs", "sgma"])
def test_choosing_stops_where_it_should(method: str) -> None:
    x = points_of(30)
    for tau in (0.5, 0.1, 0.02):
        spec = spec_of(method=method, n=15, rows=30, tau=tau)
        model, kernel = HostModel(spec), Kernel(spec)
        model.update(x, x[:, 0])
        model.call("select")
        n = len(held(model))
        assert 0 < n < 15
        assert trace_residual(kernel, x, held(model)) <= 30 * tau < trace_residual(kernel, x, held(model)[:-1])
    spec = spec_of(method=method, n=15, rows=30)
    model = HostModel(spec)
    model.update(np.tile(x[:3], (10, 1)), np.zeros(30))  # nobody alive after three
    assert model.call("select") == NystromStatus.DONE and len(held(model)) == 3
    model = HostModel(spec_of(kernel="linear", method=method, n=5, rows=30))
    model.update(np.zeros((30, 2)), np.zeros(30))  # nobody alive at all
    assert model.call("select") == NystromStatus.DONE and len(held(model)) == 0
    assert model.predict(x).tolist() == [0.0] * 30


@pytest.mark.parametrize(("method", "drawn"), [("efvs", "candidates"), ("efvs", "points"), ("sgma", "candidates")])
def test_random_numbers_are_drawn_only_where_there_is_a_choice(method: str, drawn: str) -> None:
    """As many rows as candidates, or points: all of them, and no draw; with one row more, one for each."""
    for count in (5, 6):
        spec = spec_of(method=method, n=1, rows=18, **{drawn: 5})
        model, random = HostModel(spec), WichmannHill(first_seeds(0))
        model.update(points_of(count), np.zeros(count))
        assert model.call("select") == NystromStatus.DONE
        for _ in range(5 if count == 6 else 0):
            random.draw()
        assert tuple(model.memory.field("seeds").tolist()) == random.seeds


def test_a_basis_that_was_chosen_knows_the_reservoir() -> None:
    """What predicts after select is ridge regression on the reservoir's rows, and more samples join."""
    spec = spec_of(method="sgma", n=8, rows=30, ridge=0.05)
    model, twin = HostModel(spec), Twin(spec)
    x, y = stream_of(90)
    model.update(x[:70], y[:70])
    assert not model.predict(x).any()  # no basis yet
    model.call("select")
    rows = model.memory.field("rows").astype(float)
    labels = np.array([y[np.flatnonzero((x == row).all(1))[0]] for row in rows])
    for taught, told in ((rows, labels), (np.vstack([rows, x[70:]]), np.append(labels, y[70:]))):
        z = np.array([twin.features_of(row, held(model)) for row in taught])
        w = np.linalg.solve(z.T @ z + 0.05 * np.eye(8), z.T @ told)
        np.testing.assert_allclose(model.predict(x), [twin.features_of(row, held(model)) @ w for row in x], atol=1e-8)
        model.update(x[70:], y[70:])


# ------------------------------------------------------------------------------------------------- least squares


@pytest.mark.parametrize("kernel", ["gaussian", "cubic", "matern52"])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_given_basis_learns_reduced_kernel_ridge_regression(precision: str, kernel: str) -> None:
    """alpha = (K_mn' K_mn + ridge K_nn)^-1 K_mn' y of all samples since the restart, whatever came before."""
    spec = spec_of(precision, kernel, "numbers", "given", n=7, dim=3, ridge=0.5)
    model, own = HostModel(spec), Kernel(spec)
    vectors = np.array(spec.expansion.vectors)
    x, y = stream_of(300, 3)
    x = np.clip(x, -2.9, 2.9).astype(np.float32).astype(float)
    y = np.column_stack([y, np.cos(x[:, 0])])
    for part in (slice(0, 100), slice(100, 300)):
        model.update(x[part], y[part])
        cross = own.gram(x[part], vectors)
        alpha = np.linalg.solve(cross.T @ cross + 0.5 * own.gram(vectors, vectors), cross.T @ y[part])
        expected = own.gram(x, vectors) @ alpha
        room = 1e-8 if precision == "float64" else 2e-3
        np.testing.assert_allclose(model.predict(x), expected, rtol=0, atol=room * np.abs(expected).max())
        model.call("restart")
        assert not model.predict(x).any()


@pytest.mark.in_turn
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("forgetting", [1.0, 0.999, 0.9])
def test_the_ridge_stays_and_nothing_grows(forgetting: float, precision: str) -> None:
    """No sample for one coordinate for 20,000 samples: its ridge does not fade, and weights stay numbers."""
    spec = spec_of(precision, method="given", n=4, forgetting=forgetting, ridge=0.2)
    model = HostModel(spec)
    far = np.full((20_000, 2), 15.0) + np.random.default_rng(0).normal(size=(20_000, 2))
    model.update(far, np.ones(20_000))
    r = upper(model.memory.field("r").astype(float), 4, 4)
    smallest, largest = np.linalg.eigvalsh(r.T @ r)[[0, -1]]
    part = forgetting**4
    assert 0.2 * part * 0.9 <= smallest <= largest <= 0.2 / part * 1.1
    x, y = stream_of(4000)
    model.update(x, y)
    assert_finite(model)
    assert np.abs(model.predict(x)).max() < 10


def test_forgetting_follows_what_changes() -> None:
    x = stream_of(4000, spread=1.0)[0]
    y, errors = np.sin(x.sum(1)), {}
    for forgetting in (1.0, 0.99):
        model = HostModel(spec_of("float32", n=16, rows=48, forgetting=forgetting))
        model.update(x[:2000], y[:2000])
        anew = model.update(x[2000:3500], -y[2000:3500]) == DoubtStatus.RESTARTED
        # what forgets nothing becomes useless, and begins anew
        assert anew.any() == (forgetting == 1.0)
        errors[forgetting] = np.mean((model.predict(x[3500:]) + y[3500:]) ** 2)
    assert errors[0.99] < errors[1.0] < 0.05, errors


# ----------------------------------------------------------------------------------------------- restart, snapshots


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("method", METHODS)
def test_restart_forgets_everything(method: str, precision: str) -> None:
    spec = spec_of(precision, method=method, forgetting=0.99)
    model, fresh = HostModel(spec), HostModel(spec)
    x, y = stream_of(300)
    model.update(x, y)
    model.call("select")
    model.call("restart")
    assert persistent(model) == persistent(fresh)
    for each in (model, fresh):
        each.update(x[:100], y[:100])
        each.call("select")
    assert persistent(model) == persistent(fresh)


# --------------------------------------------------------------------------------------------------- frozen models


def frozen_spec(
    precision: str, kernel: str, label: str, n: int = 6, dim: int = 2, weights: bool = True, **input: Any
) -> Spec:
    rng = np.random.default_rng(n)
    vectors = rng.normal(size=(n, dim)).astype(np.float32).astype(float)
    outputs = {"number": 1, "numbers": 2, "two classes": 1, "three classes": 3}[label]
    expansion: dict[str, Any] = {"vectors": vectors.tolist()}
    labels = LABELS[label]
    if weights:
        values = rng.normal(size=(n, outputs)).astype(np.float32).astype(float)
        expansion |= {
            "weights": values.tolist(),
            "bias": rng.normal(size=outputs).astype(np.float32).astype(float).tolist(),
        }
    else:
        labels = {"outputs": n}
    return make_spec(
        {
            "name": "map",
            "precision": precision,
            "input": {"dim": dim, "max_abs": LIMITS.get(kernel, 20.0)} | input,
            "label": labels,
            "kernel": KERNELS[kernel],
            "learning": {"rule": "nystrom"},
            "expansion": expansion,
        }
    )


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.in_turn(36)
def test_a_frozen_map_computes_its_definition(kernel: str, label: str, precision: str) -> None:
    n = 3 if kernel == "linear" else 6
    inputs = {"center": [0.5, -1.0, 2.0], "scale": [0.5, 1.0, -2.0]} if label == "numbers" else {}
    spec = frozen_spec(precision, kernel, label, n, 3, **inputs)
    model, own = HostModel(spec), Kernel(spec)
    vectors, weights = np.array(spec.expansion.vectors), np.array(spec.expansion.weights)
    x = np.clip(1.5 * points_of(40, 3, 4), -2.9, 2.9).astype(spec.real.dtype)
    x[0] = 25.0
    x[1] = spec.input.center or 0.0
    s = x.astype(float) if not inputs else (x.astype(float) - inputs["center"]) * inputs["scale"]
    gram = own.gram(vectors, vectors)
    z = np.linalg.solve(np.linalg.cholesky(gram), own.gram(vectors, s)).T
    squares = np.maximum(own.own(s), 1e-30)
    delta = np.clip(1 - np.sum(z**2, 1) / squares, 0, 1)
    delta[own.own(s) == 0] = 0
    rounding = 30 * np.finfo(spec.real.dtype).eps * np.linalg.cond(gram)
    found, statuses = model.ask("features", x)
    assert statuses.tolist() == [-1] + [0] * 39 and np.isnan(found[0]).all()
    size = np.abs(z[1:]).max()
    np.testing.assert_allclose(found[1:], z[1:], rtol=0, atol=rounding * size)
    np.testing.assert_allclose(model.ask("residual", x)[0][1:, 0], delta[1:], rtol=0, atol=rounding)
    f = z @ weights + np.array(spec.expansion.bias)
    got = model.predict(x).reshape(40, -1)
    np.testing.assert_allclose(got[1:], f[1:], rtol=0, atol=8 * rounding * np.abs(f[1:]).max())
    if spec.label.classes:
        apart = np.abs(f[:, 0]) if f.shape[1] == 1 else np.diff(np.sort(f, 1), axis=1)[:, -1]
        sure = apart > 16 * rounding * np.abs(f[1:]).max()
        sure[0] = False
        expected = (f[:, 0] > 0).astype(int) if f.shape[1] == 1 else f.argmax(1)
        assert sure.sum() > 10 and (model.classify(x)[sure] == expected[sure]).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_map_without_weights_predicts_its_features(precision: str) -> None:
    spec = frozen_spec(precision, "matern52", "number", 5, weights=False)
    model, x = HostModel(spec), points_of(30)
    np.testing.assert_array_equal(model.predict(x), model.ask("features", x)[0])


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_the_frozen_map_of_a_streams_basis_has_its_features(kernel: str, precision: str) -> None:
    """What a device chose may be put into flash: the same features, but for rounding."""
    source = HostModel(spec_of(precision, kernel, n=5, rows=15))
    x, y = stream_of(400)
    source.update(x, y)
    content = {
        "name": "map",
        "precision": precision,
        "input": {"dim": 2, "max_abs": 20.0},
        "label": {"outputs": 5},
        "kernel": KERNELS[kernel],
        "learning": {"rule": "nystrom"},
        "expansion": {"vectors": held(source).tolist()},
    }
    frozen = HostModel(make_spec(content))
    room = 1e-9 if precision == "float64" else 2e-3
    z = source.ask("features", x)[0]
    np.testing.assert_allclose(frozen.ask("features", x)[0], z, rtol=0, atol=room * np.abs(z).max())
