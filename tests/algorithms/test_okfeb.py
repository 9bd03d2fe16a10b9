"""Online feature extraction on a budget (rule "okfeb"): against its definitions in float64, restored."""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from pykernel.algorithms.subspace.state import SubspaceStatus
from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.host.snapshot import is_valid
from pykernel.spec.families import subspace as declared
from pykernel.spec.model import Spec, make_spec
from tests.support.nystrom_twin import KERNELS, LIMITS, Kernel
from tests.support.okfeb_twin import (
    ADDED,
    CENSORED,
    DONE,
    REFUSED_INPUT,
    REPLACED,
    Tie,
    Twin,
    features_of,
    projected,
)
from tests.support.retraining import Call, assert_finite, label_of, made, persistent

PRECISIONS = ("float32", "float64")
UPDATES, STEPS, BUDGETS = (tuple(each) for each in (declared.UPDATES, declared.STEPS, declared.BUDGETS))
QUESTIONS = ("novelty", "features", "predict", "classify", "probability")
LABELS: dict[str, dict[str, Any]] = {
    "none": {},
    "number": {"column": "y", "max_abs": 50.0},
    "numbers": {"outputs": 2, "max_abs": 50.0},
    "two classes": {"classes": ["no", "yes"]},
    "three classes": {"classes": ["rest", "tap", "shake"]},
}


def spec_of(
    precision: str = "float64",
    kernel: str = "gaussian",
    label: str = "none",
    r: int = 3,
    n: int = 8,
    dim: int = 2,
    ald_threshold: float | None = None,
    learning: dict[str, Any] | None = None,
    input: dict[str, Any] | None = None,
    **subspace: Any,
) -> Spec:
    made: dict[str, Any] = {
        "name": "gate",
        "precision": precision,
        "input": {"dim": dim, "max_abs": LIMITS.get(kernel, 20.0)} | (input or {}),
        "kernel": KERNELS[kernel],
        "learning": {"rule": "okfeb", "features": r} | (learning or {}),
        "reduction": {"n_max": n, "force": True} | ({} if ald_threshold is None else {"ald_threshold": ald_threshold}),
    }
    if label != "none":
        made["label"] = LABELS[label]
    return make_spec(made | ({"subspace": subspace} if subspace else {}))


# --------------------------------------------------------------------------------------------- calls, and the state


def symmetric(packed: np.ndarray, size: int, n: int) -> np.ndarray:
    """The leading n rows and columns of a matrix that is packed by rows up to the diagonal."""
    full = np.zeros((size, size))
    full[np.tril_indices(size)] = packed.astype(float)
    return np.asarray((full + np.tril(full, -1).T)[:n, :n])


def vectors_of(model: Any) -> np.ndarray:
    return np.asarray(model.memory.field("v")[: model.memory.field("n")[0]].astype(float))


def inverse_of(model: Any) -> np.ndarray:
    """P = T'T of the vectors in use."""
    m = int(model.memory.field("n")[0])
    root = np.zeros((m, m))
    root[np.tril_indices(m)] = model.memory.field("root")[: m * (m + 1) // 2].astype(float)
    return np.asarray(root.T @ root)


def agrees(model: HostModel, twin: Twin, room: float = 1e-9) -> None:
    """Vectors exactly; A and G in function space, K, P, S and claims to rounding; zero beyond what is in use."""
    field, m, r = model.memory.field, len(twin.v), twin.rank_most
    spec, gram = twin.spec, twin.gram
    assert field("n")[0] == m and field("rank")[0] == twin.rank
    np.testing.assert_array_equal(field("v")[:m], twin.v)
    assert not field("v")[m:].any() and not field("a")[m:].any()
    g = twin.g
    size = max(1e-300, np.trace(g))
    off = field("a")[:m] - twin.a
    assert np.trace(off.T @ gram @ off) <= (room**2) * size, np.sqrt(np.trace(off.T @ gram @ off) / size)
    np.testing.assert_allclose(symmetric(field("g"), r, r), g, rtol=0, atol=room * size)
    if spec.subspace.budget == "exact" and m:
        assert np.abs(inverse_of(model) @ gram - np.eye(m)).max() <= 1e-8
        assert not field("root")[m * (m + 1) // 2 :].any()
    if spec.subspace.update in ("nonparametric", "hybrid") and m:
        np.testing.assert_allclose(
            symmetric(field("gram"), twin.budget, m), gram, rtol=0, atol=1e-13 * np.abs(gram).max()
        )
    if spec.subspace.update == "rls":
        np.testing.assert_allclose(
            symmetric(field("moments"), r, r), twin.s, rtol=0, atol=room * max(1.0, np.trace(twin.s))
        )
    if spec.subspace.fading < 1:
        np.testing.assert_allclose(field("claim")[:m], twin.claim, rtol=1e-12)


def answers(twin: Twin, call: Call, values: np.ndarray, room: float = 1e-8) -> None:
    name, x = call
    expected = twin.answer(name, x)
    if name == "classify":
        assert twin.head is not None
        f = twin.answer("predict", x)
        clear = np.abs(f[0]) if len(f) == 1 else np.diff(np.sort(f))[-1]
        if clear > 2 * room * (1 + np.abs(f).max()):
            assert values[0] == expected[0]
        return
    size = 1 + np.abs(expected).max(initial=0)
    if name == "features":
        size += np.sqrt(twin.kernel.value(twin.scaled(x), twin.scaled(x)))
    np.testing.assert_allclose(values, expected, rtol=0, atol=room * size)


def scramble(model: Any) -> None:
    """Working memory with anything in it: what a call finds there must not matter."""
    end = model.spec.program.state_bytes(model.memory.layout)
    model.memory.buffer.reshape(1).view(np.uint8)[end:] = 0xFF  # NaN, and -1


def follow(model: HostModel, twin: Twin, calls: list[Call], room: float = 1e-9) -> Counter[str]:
    """Make calls of the product and of its twin, and compare all that can be seen after each; until a Tie."""
    seen: Counter[str] = Counter()
    codes = twin.spec.program.status
    for call in calls:
        before = persistent(model)
        if call[0] == "snapshot":
            other = HostModel(model.spec)
            scramble(other)
            snapshot.load(other, snapshot.save(model))
            model.memory.copy_from(other.memory)
            assert persistent(model) == before
            continue
        if call[0] == "scramble":
            scramble(model)
            continue
        status, values = made(model, call)
        if call[0] == "update":
            try:
                allowed = twin.update(call[1], call[2], status)
            except Tie:
                seen["tie"] += 1
                return seen
        elif call[0] in ("refresh", "restart"):
            allowed = getattr(twin, call[0])(status)
        else:
            allowed = [DONE if twin.accepted(call[1]) else REFUSED_INPUT]
        assert status in allowed, f"{call[0]} {sum(seen.values())} gave {codes(status).name}; allowed: {allowed}"
        changes = call[0] in ("update", "refresh", "restart")
        if status < 0 or not changes:
            assert persistent(model) == before, f"{call[0]}, {codes(status).name}, changed the state"
        if status < 0:
            assert (values == -1).all() if call[0] == "classify" else np.isnan(values).all()
        elif call[0] in QUESTIONS:
            with contextlib.suppress(Tie):
                answers(twin, call, values)
        else:
            agrees(model, twin, room)
            assert_finite(model)
        seen[f"{call[0]}: {codes(status).name}"] += 1
    return seen


# ------------------------------------------------------------------------------------------------------ sequences


@st.composite
def specs(draw: st.DrawFn, precisions: tuple[str, ...] = ("float64",)) -> Spec:
    label = draw(st.sampled_from(sorted(LABELS)))
    update = draw(st.sampled_from(UPDATES))
    budget = draw(st.sampled_from(BUDGETS))
    dim = draw(st.integers(1, 4))
    r = draw(st.integers(1, 4))
    n = draw(st.integers(r, 8))
    subspace: dict[str, Any] = {
        "update": update,
        "budget": budget,
        "shrinkage": draw(st.sampled_from([0.02, 0.1, 0.1, 1.0])),
        "fading": draw(st.sampled_from([1.0, 1.0, 0.95, 0.8])),
    }
    if update == "rls":
        subspace["forgetting"] = draw(st.sampled_from([1.0, 0.98, 0.8]))
    else:
        step = draw(st.sampled_from(STEPS))
        subspace["step"] = step
        subspace["window"] = draw(st.sampled_from([20, 1000] if step == "averaged" else [0, 20, 1000]))
        if draw(st.booleans()):
            subspace["eta"] = draw(st.sampled_from([0.2, 0.7, 1.5]))
    chance = draw(st.integers(0, 3))
    if chance == 0:
        subspace["insensitivity"] = draw(st.sampled_from([0.05, 0.2]))
    elif chance == 1:
        subspace["censoring"] = draw(st.sampled_from([0.2, 0.7]))
    learning: dict[str, Any] = {}
    if label != "none":
        learning["ridge"] = draw(st.sampled_from([0.1, 1.0]))
        if "classes" in label and draw(st.booleans()):
            subspace["head"] = "logistic"
            learning["eta"] = draw(st.sampled_from([0.5, 0.1]))
        else:
            learning["forgetting"] = draw(st.sampled_from([1.0, 0.98, 0.9]))
    inputs = {"center": [0.5] * dim, "scale": [0.75] * dim} if draw(st.booleans()) else {}
    # differences of nearly equal vectors: fewer digits, so the ald_threshold stays where all of them are compared
    ald_threshold = draw(st.sampled_from([1e-2, 3e-2, 0.2])) if budget == "exact" else None
    kernel = draw(st.sampled_from(sorted(KERNELS)))
    return spec_of(
        draw(st.sampled_from(precisions)),
        kernel,
        label,
        r,
        n,
        dim,
        ald_threshold,
        learning,
        inputs,
        **subspace,
    )


NAMES = ["update"] * 24 + ["novelty", "features", "predict", "classify", "probability"]
NAMES += ["refresh", "restart", "snapshot", "scramble"]


def sequence_of(spec: Spec, names: list[str], seed: int) -> list[Call]:
    """Samples with repeats, the origin, and all that is refused, between everything else."""
    rng, real = np.random.default_rng(seed), spec.real.dtype
    there = {entry.name for entry in spec.program.entries_for(spec.config)} | {"snapshot", "scramble"}
    found: list[Call] = []
    taken: list[np.ndarray] = []
    bad = [np.nan, np.inf, -np.inf, spec.input.max_abs * 1.01, -1.01 * spec.input.max_abs, float(np.finfo(real).max)]
    for name in names:
        if name not in there:
            continue
        if name in ("refresh", "restart", "snapshot", "scramble"):
            found.append((name,))
            continue
        # within reach of each other: what learning does to a vector that nothing is near to, rounding decides
        x = np.clip(rng.normal(size=spec.dim) * rng.choice([1.0, 1.0, min(2.0, spec.input.max_abs / 4)]), -3, 3)
        chance = rng.random()
        if taken and chance < 0.15:
            x = taken[rng.integers(len(taken))] * rng.choice([1.0, 1.0, 1 + 1e-6])
        elif chance < 0.18:
            x = np.array(spec.input.center) if spec.input.center is not None else np.zeros(spec.dim)
        if rng.random() < (0.05 if name == "update" else 0.2):
            other = rng.choice(bad if name == "update" else [*bad, -spec.input.max_abs])
            x = np.where(np.arange(spec.dim) == rng.integers(spec.dim), other, x)
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


def stream_of(count: int, dim: int = 2, seed: int = 0, spread: float = 1.5) -> np.ndarray:
    return spread * np.random.default_rng(seed).normal(size=(count, dim))


def labels_for(spec: Spec, x: np.ndarray) -> Any:
    """Some function of finite rows of x; None where there are no labels."""
    f = np.sin(x.sum(1))
    if spec.label_kind == "none":
        return None
    if spec.label_kind == "class":
        return (f > 0).astype(int) if len(spec.label.classes) == 2 else np.digitize(f, [-0.4, 0.4])
    return f if spec.label_kind == "real" else np.column_stack([f, 1 - f * f])


# ----------------------------------------------------------------------------------------------- the twin's own


def learned(spec: Spec, count: int = 60) -> tuple[Twin, np.ndarray]:
    twin, x = Twin(spec), stream_of(count, spec.dim)
    for row in x:
        twin.update(row)
    return twin, x


# --------------------------------------------------------------------------------------------------- definitions


@given(sequences())
def test_every_call_does_what_the_definitions_say(sequence: tuple[Spec, list[Call]]) -> None:
    spec, some_calls = sequence
    follow(HostModel(spec), Twin(spec), some_calls)


LONG: dict[str, dict[str, Any]] = {
    "parametric": {"ald_threshold": 1e-2},
    "parametric, drop": {"budget": "drop", "fading": 0.95, "step": "averaged", "window": 50},
    "parametric, normalised": {"kernel": "wide", "step": "normalised", "ald_threshold": 1e-2, "label": "number"},
    "parametric, decreasing": {"kernel": "cosine", "dim": 3, "step": "decreasing", "ald_threshold": 1e-2, "label": "numbers"},
    "parametric, cubic": {"kernel": "cubic", "dim": 3, "ald_threshold": 1e-2, "shrinkage": 0.5, "fading": 0.98},
    "nonparametric": {"update": "nonparametric", "ald_threshold": 1e-2, "fading": 0.9, "label": "two classes"},
    "nonparametric, drop": {"update": "nonparametric", "budget": "drop", "kernel": "matern32", "step": "normalised"},
    "nonparametric, polynomial": {
        "update": "nonparametric", "n": 5, "kernel": "polynomial", "ald_threshold": 1e-2, "step": "averaged", "window": 100,
    },
    "hybrid": {"update": "hybrid", "ald_threshold": 1e-2, "fading": 0.95, "step": "averaged", "label": "three classes"},
    "hybrid, drop": {"update": "hybrid", "budget": "drop", "kernel": "laplacian", "dim": 3, "step": "decreasing"},
    "hybrid, polynomial": {"update": "hybrid", "kernel": "polynomial", "ald_threshold": 1e-2, "dim": 3, "eta": 1.8},
    "rls": {"update": "rls", "ald_threshold": 1e-2, "forgetting": 0.98, "fading": 0.95},
    "rls, drop": {"update": "rls", "budget": "drop", "fading": 0.9, "forgetting": 0.95, "kernel": "matern52"},
    "rls, linear": {"update": "rls", "kernel": "linear", "dim": 6, "r": 3, "n": 5, "ald_threshold": 1e-2, "shrinkage": 1.0},
    "censored": {"ald_threshold": 1e-2, "censoring": 0.5, "fading": 0.95, "window": 0},
    "drop, polynomial": {
        "budget": "drop", "kernel": "polynomial", "fading": 0.95, "insensitivity": 0.3, "shrinkage": 0.5, "dim": 3,
    },
    "hybrid, repeats": {"update": "hybrid", "ald_threshold": 0.3, "kernel": "polynomial", "dim": 3, "n": 6},
    "insensitive": {"budget": "drop", "insensitivity": 0.2, "fading": 0.99},
    "logistic": {
        "ald_threshold": 1e-2, "label": "two classes", "head": "logistic", "learning": {"ridge": 0.5, "eta": 0.5}, "n": 16, "r": 8,
    },
    "softmax": {
        "budget": "drop", "label": "three classes", "head": "logistic", "learning": {"ridge": 0.1, "eta": 0.3},
        "input": {"center": [0.5, -1.0], "scale": [0.75, -1.5]}, "fading": 0.95, "window": 0,
    },
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.in_turn(90)
@pytest.mark.parametrize("case", LONG)
def test_it_goes_on_for_long(case: str) -> None:
    """The same statuses, the same vectors, the same numbers to 1e-9 over many calls; every status comes up."""
    spec = spec_of(**LONG[case])
    rng = np.random.default_rng(3)
    rarely = np.where(np.isin(NAMES, ["restart"]), 0.1, 1.0)
    names = rng.choice(NAMES, 1500, p=rarely / rarely.sum()).tolist()
    # of what the C does not keep, a snapshot keeps nothing either
    seen = follow(HostModel(spec, identity(spec).drop), Twin(spec), sequence_of(spec, names, 1))
    assert not seen["tie"], seen
    wanted = {"update: DONE", "update: ADDED", "update: REPLACED", "update: REFUSED_INPUT", "novelty: DONE"}
    wanted |= {"features: DONE", "features: REFUSED_INPUT", "refresh: DONE", "restart: DONE"}
    if "label" in LONG[case]:
        wanted |= {"update: REFUSED_LABEL", "predict: DONE", "predict: REFUSED_INPUT"}
    if "censor" in case or "insensitive" in case:
        wanted |= {"update: CENSORED"}
    assert wanted <= set(seen), (wanted - set(seen), seen)


@pytest.mark.in_turn(54)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("update", ["parametric", "nonparametric", "hybrid"])
def test_a_feature_of_glitches_starts_again(update: str, budget: str) -> None:
    """Three far samples after power-on are columns of L that nothing else touches; when they are gone, others begin."""
    spec = spec_of(
        r=4, n=8, dim=3, ald_threshold=1e-2 if budget == "exact" else None, fading=0.9, update=update, budget=budget
    )
    model, twin = HostModel(spec), Twin(spec)
    x = np.vstack([np.diag([15.0, 15.0, 15.0]), np.clip(stream_of(400, 3, spread=0.7), -3, 3)])
    dead = np.zeros(4, bool)
    again = 0
    for row in x:
        before = np.diag(symmetric(model.memory.field("g"), 4, 4)) <= 2.0**-20 * 0.1
        follow(model, twin, [("update", row, None)], 1e-7)
        after = np.diag(symmetric(model.memory.field("g"), 4, 4)) <= 2.0**-20 * 0.1
        if model.memory.field("rank")[0] == 4:
            again += int((before & ~after).sum())
            dead |= after
    assert dead.sum() == 3 and again >= 3
    assert not (np.abs(vectors_of(model)) > 4).any()
    assert np.linalg.eigvalsh(symmetric(model.memory.field("g"), 4, 4))[0] > 1e-3
    clean = HostModel(spec)
    clean.update(x[3:])
    fresh = stream_of(300, 3, 7, 0.7)
    assert model.ask("novelty", fresh)[0].mean() < 1.1 * clean.ask("novelty", fresh)[0].mean()


@pytest.mark.in_turn(54)
# rls with drop loses features by itself
@pytest.mark.exhaustive
@pytest.mark.parametrize(("update", "budget"), [(u, b) for u in UPDATES for b in BUDGETS if (u, b) != ("rls", "drop")])
def test_a_new_regime_gets_a_feature(update: str, budget: str) -> None:
    """Nothing of the new is in L: its gradient is next to nothing.  After eight such samples the weakest column restarts."""
    more: dict[str, Any] = {"forgetting": 0.98} if update == "rls" else {"step": "constant"}
    spec = spec_of(
        r=3,
        n=10,
        dim=3,
        ald_threshold=1e-2 if budget == "exact" else None,
        update=update,
        budget=budget,
        label="number",
        **more,
    )
    model, twin = HostModel(spec), Twin(spec)
    x, there = stream_of(300, 3, spread=0.4), np.array([1.6, -1.6, 1.6])
    calls = [("update", row, np.float64(0.5)) for row in x]
    new = there + stream_of(60, 3, 1, spread=0.15)
    alone = [*new[:5], x[0], *new[5:12]]  # not eight in a row
    seen = follow(model, twin, calls + [("update", row, np.float64(1.0)) for row in alone], 1e-8)
    assert not seen["tie"]
    assert model.ask("novelty", new)[0].mean() > 0.9
    for name in ("snapshot", "scramble"):  # the count is part of the state
        assert not follow(model, twin, [(name,)])
    seen = follow(model, twin, [("update", row, np.float64(1.0)) for row in [new[12], -there, new[13]]], 1e-8)
    assert not seen["tie"]
    assert model.ask("novelty", new)[0].mean() < 0.8
    seen = follow(model, twin, [("update", row, np.float64(1.0)) for row in new[14:]], 1e-7)
    assert not seen["tie"]
    assert model.ask("novelty", new)[0].mean() < 0.6


IDLE = [("parametric", 1e-2, False), ("parametric", 0.7, True), ("nonparametric", 1e-2, True)]
IDLE += [("hybrid", 1e-2, True), ("hybrid", 0.7, False)]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("update", "ald_threshold", "stored"), IDLE)
def test_an_idle_column_starts_again(update: str, ald_threshold: float, stored: bool) -> None:
    """The twin agrees where a column is given to a sample that is stored, and to one that is not."""
    spec = spec_of(r=3, n=6, dim=2, ald_threshold=ald_threshold, update=update, step="constant")
    model, twin = HostModel(spec), Twin(spec)
    home, away = (
        stream_of(1500, 2, spread=0.9),
        np.array([6.0, -6.0]) + stream_of(60, 2, 1, spread=0.3),
    )
    seen = follow(model, twin, [("update", row, None) for row in [*home[:200], *away, *home[200:]]], 1e-7)
    assert not seen["tie"]
    assert twin.begun["idle", stored] and twin.begun["new", True], twin.begun


AWAY = [(1, update, 20_000) for update in ("parametric", "hybrid", "nonparametric")]
AWAY += [(2, "parametric", 20_000), (3, "parametric", 2_000)]


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(("dim", "update", "drift"), AWAY)
def test_a_model_that_went_far_comes_back(dim: int, update: str, drift: int) -> None:
    """Inputs stand still, drift to 40 kernel widths away and return; columns of L that were left there begin again.

    Each is idle: no sample touches it, and nothing but the restart of idle columns would move it.
    """
    spec = spec_of("float32", dim=dim, r=6, n=16, input={"max_abs": 100.0}, update=update, fading=0.999)
    rng = np.random.default_rng(0)
    home = rng.uniform(-1.5, 1.5, (5000, dim))
    still = np.tile(home[-1], (5000, 1))
    road = 60 * np.linspace(0, 1, drift)[:, None] + rng.uniform(-1.5, 1.5, (drift, dim))
    away = 60 + rng.uniform(-1.5, 1.5, (5000, dim))
    back = rng.uniform(-1.5, 1.5, (6000, dim))
    model, fresh = HostModel(spec), HostModel(spec)
    for part in (home, still, road, away, back[:5000]):
        model.update(part)
    fresh.update(back[:5000])
    lost, least = (one.ask("novelty", back[5000:])[0].mean() for one in (model, fresh))
    assert lost <= 1.1 * least + 0.01, (lost, least)


# --------------------------------------------------------------------------------------------------------- the start


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("update", UPDATES)
def test_the_start_waits_for_what_is_new(update: str, budget: str, precision: str) -> None:
    """A dead sensor, then one that moves: as many seeds as there are features, then the budget, then replacements."""
    spec = spec_of(precision, update=update, budget=budget, label="number", r=4, n=9, fading=0.99)
    model = HostModel(spec)
    still = np.tile([[1.0, -2.0]], (100, 1))
    statuses = model.update(still, np.ones(100))
    assert statuses[0] == ADDED and (statuses[1:] == DONE).all() and model.memory.field("n")[0] == 1
    # from its first sample the model works
    score = float(model.ask("novelty", still[:1])[0][0, 0])
    if budget == "drop":
        # L of length 1 leaves lambda^2 / (1 + lambda)^2; exact, the repeats lengthen it
        assert score == pytest.approx((0.1 / 1.1) ** 2, rel=1e-3)
    assert score < 1.001 * (0.1 / 1.1) ** 2
    assert model.predict(still[:1])[0] == pytest.approx(1.0, abs=0.05)
    x = stream_of(400)
    statuses = np.append(statuses, model.update(x, labels_for(spec, x)))
    assert model.memory.field("rank")[0] == 4 and model.memory.field("n")[0] == 9
    assert (statuses == REPLACED).sum() > 0
    assert_finite(model)


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("update", UPDATES)
def test_fewer_dimensions_than_features(update: str, budget: str, precision: str) -> None:
    """A linear kernel of two inputs never has a third independent sample: the model works with two features."""
    spec = spec_of(precision, "linear", "number", r=4, n=9, update=update, budget=budget)
    model, x = HostModel(spec), stream_of(3000)
    model.update(x, x @ [1.0, -2.0])
    assert model.memory.field("rank")[0] == model.memory.field("n")[0] == 2
    assert not model.ask("features", x)[0][:, 2:].any()
    far = x[(x**2).sum(1) > 1]
    assert model.ask("novelty", far)[0].max() < 0.1
    # features of the exact budget go on moving, and the head goes after them
    np.testing.assert_allclose(model.predict(far), far @ [1.0, -2.0], rtol=0, atol=1.0)
    assert_finite(model)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_nothing_at_all(budget: str, precision: str) -> None:
    """The origin under a linear kernel is no feature vector: no seed, no number that is none."""
    spec = spec_of(precision, "linear", budget=budget)
    model = HostModel(spec)
    assert (model.update(np.zeros((50, 2))) >= 0).all() and model.memory.field("n")[0] == 0
    assert np.isfinite(model.ask("novelty", np.zeros((1, 2)))[0]).all()
    x = stream_of(50)
    model.update(np.vstack([x, np.zeros((50, 2)), x]))
    assert model.memory.field("n")[0] == 2
    assert_finite(model)


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_seeds_are_orthonormal(budget: str, precision: str) -> None:
    """L'L = I after r seeds; with budget drop repeats between them change nothing."""
    spec = spec_of(precision, "polynomial", dim=3, r=6, n=12, budget=budget)
    model = HostModel(spec)
    times = 2 if budget == "drop" else 1
    x = np.repeat(stream_of(40, 3), times, axis=0)
    found = []
    for row in x:
        status = int(model.update(row[None])[0])
        found.append(status)
        if model.memory.field("rank")[0] == 6:
            break
    assert found == ([ADDED, DONE] if budget == "drop" else [ADDED]) * 5 + [ADDED]
    a, gram = model.memory.field("a")[:6].astype(float), Kernel(spec).gram(vectors_of(model), vectors_of(model))
    room = 1e-9 if precision == "float64" else 2e-2
    np.testing.assert_allclose(a.T @ gram @ a, np.eye(6), rtol=0, atol=room)


# -------------------------------------------------------------------------------------------------- censoring


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("wanted", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_the_wanted_part_is_censored(kernel: str, wanted: float, precision: str) -> None:
    n = 16 if kernel == "gaussian" else 8  # a quadratic kernel of three inputs spans ten dimensions
    spec = spec_of(precision, kernel, dim=3, n=n, r=4, censoring=wanted, fading=0.99)
    model, x = HostModel(spec), stream_of(12_000, 3, spread=1.0)
    if kernel == "polynomial":
        x = np.clip(x, -6, 6)
    statuses = model.update(x)
    # far from independent: the threshold follows what learning does to the scores
    for part in np.array_split(statuses[2000:], 2):
        assert np.mean(part == CENSORED) == pytest.approx(wanted, abs=0.02)
    before = statuses[: np.argmax(np.cumsum(statuses == ADDED) == n)]
    assert not (before == CENSORED).any()  # not before the budget is full


# ---------------------------------------------------------------------------------------- what the paper and note claim


def regimes(seed: int, count: int = 1000, segments: int = 4) -> tuple[np.ndarray, list[np.ndarray]]:
    """Two subspaces of three dimensions in R^20 in turn, and fresh samples of each segment's own."""
    rng = np.random.default_rng(seed)
    bases = [np.linalg.qr(rng.normal(size=(20, 3)))[0].T for _ in range(2)]
    rows = [rng.normal(size=(count, 3)) @ bases[i % 2] + 0.05 * rng.normal(size=(count, 20)) for i in range(segments)]
    fresh = [rng.normal(size=(300, 3)) @ bases[i % 2] + 0.05 * rng.normal(size=(300, 20)) for i in range(segments)]
    return np.vstack(rows), fresh


def test_forgetting_follows_a_switch_and_no_forgetting_does_not() -> None:
    """Note D4: exact with fading .95 knows the present regime at each segment's end; with 1 it keeps the first; drop follows."""
    found: dict[tuple[str, float], list[float]] = {}
    kernel = {"gamma": 0.25}
    for budget, fading in (("exact", 1.0), ("exact", 0.95), ("drop", 1.0), ("drop", 0.95)):
        ends = np.zeros(4)
        for seed in range(3):
            x, fresh = regimes(seed)
            content = {
                "name": "gate",
                "input": {"dim": 20, "max_abs": 20.0},
                "kernel": kernel,
                "learning": {"rule": "okfeb", "features": 8},
                "reduction": {"n_max": 40},
                "subspace": {"budget": budget, "fading": fading},
            }
            model = HostModel(make_spec(content))
            for i in range(4):
                model.update(x[1000 * i : 1000 * (i + 1)])
                ends[i] += model.ask("novelty", fresh[i])[0].mean() / 3
        found[budget, fading] = ends.tolist()
    first, second = found["exact", 1.0][2], found["exact", 1.0][1]
    assert second > 1.5 * found["exact", 0.95][1] and found["exact", 1.0][3] > 1.5 * found["exact", 0.95][3], found
    # what it kept
    assert second > 1.5 * first
    for case in (("exact", 0.95), ("drop", 1.0), ("drop", 0.95)):
        assert max(found[case]) < 1.25 * min(found[case]), found


@pytest.mark.in_turn
@pytest.mark.parametrize("update", ["parametric", "hybrid", "rls"])  # of nonparametric each removal, not the stream
def test_exact_projection_loses_less_than_dropping(update: str) -> None:
    """In each removal (it is the least that any coefficients lose), and in what is left over of fresh samples."""
    left = {}
    for budget in BUDGETS:
        scores = []
        for seed in range(3):
            model = HostModel(spec_of("float32", dim=4, n=24, r=6, budget=budget, update=update))
            model.update(stream_of(2500, 4, seed, 1.0))
            scores.append(model.ask("novelty", stream_of(500, 4, 99, 1.0))[0].mean())
        left[budget] = np.mean(scores)
    assert left["exact"] < left["drop"]
    twin, _ = learned(spec_of(kernel="matern32", dim=3, ald_threshold=1e-2), 40)
    f, gram = features_of(twin.gram), twin.gram
    for i in range(len(twin.v)):
        assert projected(f, twin.a, i)[1] <= gram[i, i] * (twin.a[i] @ twin.a[i]) * (1 + 1e-9)


def test_the_subspace_comes_near_the_best_one() -> None:
    """Note D2: one pass with an exact budget leaves within 20 % of what kernel PCA of all samples, shrunken, leaves."""
    x = stream_of(1500, 4, 0, 1.0)
    spec = spec_of("float64", dim=4, n=60, r=8)
    model = HostModel(spec)
    model.update(x)
    kernel = Kernel(spec)
    values = np.linalg.eigvalsh(kernel.gram(x, x))[::-1][:8]
    best = 1 - values.sum() / len(x)  # without shrinkage: below what any L of rank 8 leaves
    assert best < model.ask("novelty", x)[0].mean() < 1.3 * best


# ------------------------------------------------------------------------------------------------------------ heads


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("head", ["ridge", "logistic"])
@pytest.mark.parametrize("label", ["two classes", "three classes"])
def test_heads_tell_classes_apart(label: str, head: str, precision: str) -> None:
    """Rings, which no linear classifier of the inputs tells apart."""
    rng = np.random.default_rng(0)
    count = 2 if label == "two classes" else 3
    classes = rng.integers(count, size=4000)
    angle = rng.uniform(0, 2 * np.pi, 4000)
    radius = 0.4 + 1.2 * classes + 0.15 * rng.normal(size=4000)
    x = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    spec = spec_of(precision, label=label, r=12, n=32, head=head)
    model = HostModel(spec)
    model.update(x[:3500], classes[:3500])
    assert np.mean(model.classify(x[3500:]) == classes[3500:]) > 0.95
    if head == "logistic":
        p = model.probability(x[3500:])
        assert p.shape == (500, count) and (p >= 0).all() and np.abs(p.sum(1) - 1).max() < 1e-5
        assert (p.argmax(1) == model.classify(x[3500:])).mean() > 0.999
        assert -np.log(np.maximum(p[np.arange(500), classes[3500:]], 1e-9)).mean() < 0.35
    else:
        assert not model.has("probability")


# ---------------------------------------------------------------------------------------------------------- float32


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("labels", [False, True])
def test_what_drop_has_lost_begins_anew(labels: bool) -> None:
    """Fading, dropping and nearly dependent vectors let L grow without end: in float32 G's roundings eat it, again and again.

    Before, every element of A and G then stayed at its limit, the score at 1.
    """
    x, rng = load_digits().data, np.random.default_rng(3)
    sigma = 10 * float(np.sqrt(np.square(x - x.mean(axis=0)).sum(axis=1).mean()))
    x = np.concatenate([x[rng.permutation(len(x))] for _ in range(12)])
    content = {"name": "m", "input": {"dim": 64}, "kernel": {"sigma": sigma}, "reduction": {"n_max": 64}}
    content |= {"learning": {"rule": "okfeb", "features": 8}, "subspace": {"budget": "drop", "fading": 0.98}}
    if labels:
        content |= {"label": {"outputs": 1, "max_abs": 100.0}}
    model = HostModel(make_spec(content))
    added, worst = 0, 0.0
    for at in range(0, len(x), 500):
        rows = x[at : at + 500]
        statuses = model.update(rows, rows[:, 20]) if labels else model.update(rows)
        added += int((statuses == SubspaceStatus.ADDED).sum())
        assert_finite(model)
        assert is_valid(model.spec, model.memory)
        worst = max(worst, float(model.ask("novelty", x[:50])[0].mean()))
    assert added > 64, "nothing was lost, so that nothing was tested"
    assert worst < 0.5


# ----------------------------------------------------------------------------------------------- restart, snapshots


def test_the_count_of_samples_has_an_end() -> None:
    spec = spec_of("float32", window=0, label="two classes", head="logistic")
    model, x = HostModel(spec), stream_of(40)
    model.update(x, labels_for(spec, x))
    model.memory.field("seen")[0] = 2**22 - 2
    model.update(x, labels_for(spec, x))
    assert model.memory.field("seen")[0] == 2**22
    assert_finite(model)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_refresh_mends(precision: str) -> None:
    """G and T that are off by a tenth: after refresh they are what A and the vectors say."""
    spec = spec_of(precision, n=12, r=4, update="hybrid", ald_threshold=1e-2)
    model = HostModel(spec)
    model.update(stream_of(400))
    good = {name: model.memory.field(name).astype(float).copy() for name in ("g", "root")}
    for name, values in good.items():
        model.memory.field(name)[...] = values * 1.1
    model.refresh()
    room = 1e-9 if precision == "float64" else 1e-3
    for name, values in good.items():
        np.testing.assert_allclose(model.memory.field(name), values, rtol=0, atol=room * np.abs(values).max())


def test_the_first_vectors_are_expressed_with_the_least_shrinkage_that_is_allowed() -> None:
    """With budget drop, too: below it, L would be halved while its columns are started."""
    least = 4 * 2.0**-18
    x = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0]])
    for budget in BUDGETS:
        model = HostModel(spec_of("float32", r=4, n=4, update="parametric", budget=budget, shrinkage=least))
        model.update(x)
        z = model.features(x)
        gram = np.exp(-float(KERNELS["gaussian"]["gamma"]) * np.sum((x[:, None] - x[None]) ** 2, axis=2))
        np.testing.assert_allclose(z @ z.T, gram, atol=1e-4)
    with pytest.raises(UserError, match=r"4 features and float32, it must be at least 1\.53e-05"):
        spec_of("float32", r=4, n=4, budget="drop", shrinkage=0.9 * least)
