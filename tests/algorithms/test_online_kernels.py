"""Online learning with every kernel: against the definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.kernels import inner_product, polynomial, squared_distance
from pykernel.algorithms.online.klms import KLMS
from pykernel.dialect import DIM, Kernel, Real, kernel, real
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.families.online import RULES
from pykernel.spec.model import Spec, make_spec
from tests.support.compilers import in_one_build
from tests.support.following import (
    FIXED,
    GRADIENT,
    PROJECTIONS,
    TECHNIQUES,
    assert_sound,
    follow,
    held,
    in_use,
    kept,
    learned,
    persistent,
    spec_of,
    strategy_keys,
    undoubted,
)
from tests.support.naive import Twin, kernel_values

Status = KLMS["real"].status

KERNELS: dict[str, dict[str, Any]] = {
    "laplacian": {"function": "laplacian", "gamma": 0.8},
    "matern12": {"function": "matern12", "gamma": 1.0},
    "matern32": {"function": "matern32", "gamma": 1.5},
    "matern52": {"function": "matern52", "gamma": 2.0},
    "rational-quadratic": {"function": "rational-quadratic", "gamma": 0.8, "alpha": 0.6},
    "polynomial": {"function": "polynomial", "gamma": 0.5, "coef0": 0.5, "degree": 3},
    "linear": {"function": "linear"},
    "cosine": {"function": "linear", "normalise": True},
    "polynomial cosine": {"function": "polynomial", "gamma": 0.5, "coef0": 0.1, "degree": 2, "normalise": True},
}
LIMIT = 20.0
"""Of inputs, where the polynomial's values must not overflow."""


def made_of(
    kernel: str, rule: str = "klms", technique: str = "mklms", n_max: int = 8, dim: int = 2, **keys: Any
) -> Spec:
    if rule in ("krls-t", "fb-krls") and "projection" not in keys:
        keys["projection"] = "klms"
    if rule not in FIXED:
        keys.setdefault("force", True)
    inputs = {"max_abs": LIMIT, **keys.pop("input", {})}
    return spec_of(technique, n_max, dim, kernel=KERNELS[kernel], rule=rule, input=inputs, **keys)


# ------------------------------------------------------------------------------------------ the definitions


@st.composite
def problems(draw: st.DrawFn) -> tuple[Spec, np.ndarray, np.ndarray]:
    """Any kernel but the Gaussian with any rule, technique, projection and strategy; repeats, multiples, the origin."""
    kernel, rule = draw(st.sampled_from(sorted(KERNELS))), draw(st.sampled_from((*RULES, "klms")))
    technique = draw(st.sampled_from(TECHNIQUES))
    keys: dict[str, Any] = {"ridge": draw(st.sampled_from([1e-3, 1e-2]))}
    keys["ald_threshold"] = draw(st.sampled_from([2 * keys["ridge"], 0.05, 0.3]))
    if rule in (*GRADIENT, "fb-krls", "knlms"):
        keys["eta"] = draw(st.sampled_from([0.05, 0.3, 0.9]))
    if rule in GRADIENT:
        keys["rho"] = draw(st.sampled_from([0.0, 0.02]))
        if draw(st.integers(0, 3)) == 0:
            keys["step_limit"] = 0.1
        if draw(st.booleans()):
            keys["projection"] = draw(st.sampled_from(PROJECTIONS))
    if rule == "qklms":
        keys["quantisation"] = draw(st.sampled_from([0.1, 0.5, 0.9]))
    if rule == "krls-t":
        keys |= {"forgetting": draw(st.sampled_from([1.0, 0.99])), "noise": draw(st.sampled_from([0.01, 0.3]))}
    if rule not in FIXED:
        keys |= draw(strategy_keys(rule, technique))
    kind = draw(st.sampled_from(["real", "real", "reals", "class"]))
    if kind != "real":
        keys["classes" if kind == "class" else "outputs"] = draw(st.integers(2, 3))
    spec = made_of(kernel, rule, technique, draw(st.integers(1, 7)), draw(st.integers(1, 3)), **keys)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(15, 35))
    x = rng.uniform(-2, 2, (count, spec.dim))
    for row in np.flatnonzero(rng.random(count) < 0.3):
        # what was seen, half of it, its opposite, or nothing
        x[row] = x[rng.integers(0, count)] * rng.choice([1.0, 1.0, 0.5, -1.0, 0.0])
    if spec.label.classes is not None:
        return spec, x, (x.sum(1) > 0).astype(int) + (x[:, 0] > 1) * (len(spec.label.classes) > 2)
    y = np.sin(np.outer(x.sum(1), 2 - np.arange(spec.outputs))) + 0.3 * x[:, :1]
    return spec, x, y[:, 0] if spec.label_kind == "real" else y


@given(problems())
def test_every_update_does_what_the_definitions_say(problem: tuple[Spec, np.ndarray, np.ndarray]) -> None:
    follow(*problem)


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("technique", TECHNIQUES)
@pytest.mark.parametrize("kernel", ["polynomial", "matern32"])
def test_what_is_kept_stays_what_it_is_by_definition(kernel: str, technique: str) -> None:
    """Matrices of the normalised kernel and k(v, v) itself, after many replacements and after a refresh."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, (1500, 3))
    model = HostModel(made_of(kernel, technique=technique, n_max=10, dim=3, eta=0.2, rho=0.1))
    statuses = model.update(x, rng.normal(size=len(x)))
    assert learned(statuses[statuses != Status.RESTARTED])  # afmklms
    assert (statuses == Status.REPLACED).sum() > 20
    for _ in range(2):
        for name, expected in kept(model).items():
            scale = np.abs(expected).max(initial=1.0)
            np.testing.assert_allclose(held(model, name), expected, rtol=0, atol=1e-6 * scale, err_msg=name)
        v = in_use(model, "v")
        if kernel == "polynomial":
            np.testing.assert_allclose(
                in_use(model, "diagonal"), np.diagonal(kernel_values(model.spec, v, v)), rtol=1e-12
            )
        model.refresh()
    assert_sound(model)


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("kernel", ["linear", "polynomial"])
@pytest.mark.parametrize("rule", RULES)
def test_a_kernel_with_norms_is_the_cosine_of_it_with_labels_in_their_parts(kernel: str, rule: str) -> None:
    """f(x) / sqrt(k(x, x)) is learned by the normalised kernel, y / sqrt(k(x, x)) being its labels.

    Of the rules that weigh all errors alike it is only so where k(x, x) is the same for all.
    """
    rng = np.random.default_rng(3)
    x = rng.uniform(-2, 2, (150, 3))
    x *= 2 / np.linalg.norm(x, axis=1, keepdims=True)
    y = np.sin(x.sum(1))
    plain = made_of(kernel, rule, "sup", 10, 3, **({"noise": 0.05} if rule == "krls-t" else {}))
    own = float(kernel_values(plain, x[:1], x[:1])[0, 0])
    section = KERNELS[kernel] | {"normalise": True}
    keys = {"noise": 0.05 / own} if rule == "krls-t" else {}
    if rule in ("krls-t", "fb-krls"):
        keys["projection"] = "klms"
    cosine = spec_of("sup", 10, 3, kernel=section, rule=rule, input={"max_abs": LIMIT}, **keys)
    a, b = HostModel(plain), HostModel(cosine)
    first, second = a.prequential(x, y), b.prequential(x, y / np.sqrt(own))
    np.testing.assert_array_equal(first[1], second[1])
    if rule != "ald-krls":  # whose variance of a label is 1, in the label's unit
        np.testing.assert_allclose(first[0], np.sqrt(own) * second[0], rtol=0, atol=1e-9)
    np.testing.assert_allclose(a.novelty(x), b.novelty(x), rtol=0, atol=1e-9)


def test_krls_t_with_room_for_all_is_ridge_regression_in_the_inputs() -> None:
    """A linear kernel: |w|^2 noise + squared errors, of any lengths of samples; and the variance of its labels."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)) * 10.0 ** rng.uniform(-1, 1, (60, 1))
    y = x @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=60)
    made = spec_of(
        "sup",
        64,
        3,
        kernel={"function": "linear"},
        rule="krls-t",
        noise=0.05,
        ridge=1e-8,
        ald_threshold=1.5e-8,
        force=True,
    )
    model = HostModel(made)
    assert learned(model.update(x, y))
    weights = np.linalg.solve(x.T @ x + 0.05 * np.eye(3), x.T @ y)
    probes = rng.normal(size=(40, 3))
    np.testing.assert_allclose(model.predict(probes), probes @ weights, rtol=0, atol=1e-5)
    left = np.sum(probes * np.linalg.solve(np.eye(3) + x.T @ x / 0.05, probes.T).T, axis=1)
    expected = (0.05 + left) * float(model.memory.field("power")[0]) * made.label.max_abs**2
    np.testing.assert_allclose(model.variance(probes), expected, rtol=1e-3)


def test_qklms_measures_in_the_kernels_own_unit() -> None:
    """Stored vectors are more than quantisation / gamma apart, or their angle's sine is more than it."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, (1500, 2))
    for name in KERNELS:
        model = HostModel(made_of(name, "qklms", "nt", 400, quantisation=0.6))
        assert set(model.update(x, np.sin(x[:, 0]))) <= {Status.ADDED, Status.ABSORBED}
        v, gamma = in_use(model, "v"), KERNELS[name].get("gamma", 1.0)
        norm = 1 if name == "laplacian" else 2
        distance = gamma * np.linalg.norm(v[:, None] - v[None], norm, axis=-1)
        every = gamma * np.linalg.norm(x[:, None] - v[None], norm, axis=-1)
        if name not in ("laplacian", "matern12", "matern32", "matern52"):
            own = [np.sqrt(np.diagonal(kernel_values(model.spec, part, part))) for part in (v, x)]
            cosine = kernel_values(model.spec, v, v) / np.outer(own[0], own[0])
            distance = np.sqrt(1 - np.clip(cosine, -1, 1) ** 2)
            every = np.sqrt(1 - np.clip(kernel_values(model.spec, x, v) / np.outer(own[1], own[0]), -1, 1) ** 2)
        np.fill_diagonal(distance, 9)
        assert 1 < len(v) < 400 and distance.min() > 0.6 and every.min(1).max() <= 0.6 + 1e-9


# --------------------------------------------------------------------------------------------------- nothing


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kernel", ["linear", "cosine"])
@pytest.mark.in_turn
def test_a_sample_that_the_kernel_takes_for_zero_does_no_harm(kernel: str, rule: str) -> None:
    for precision in ("float32", "float64"):
        model = HostModel(made_of(kernel, rule, "sup", 6, 2, precision=precision))
        nothing = np.array([[0.0, 0.0], [-0.0, 1e-300], [1e-12, 0.0]][: 3 if precision == "float32" else 2])
        for turn in range(2):
            before = undoubted(model)
            assert (model.update(nothing, np.ones(len(nothing))) == Status.DISCARDED).all()
            assert undoubted(model) == before
            assert not model.predict(nothing).any() and not model.novelty(nothing).any()
            if rule == "krls-t":
                assert (model.variance(nothing) > 0).all() and np.isfinite(model.variance(nothing)).all()
            if turn == 0:
                assert learned(model.update([[1.0, 0.0], [0.5, 2.0], [3.0, 1.0]], [1.0, -1.0, 0.5]))
                assert_sound(model)


# ---------------------------------------------------------------------------------------- hostile, and in bits


@st.composite
def streams(draw: st.DrawFn) -> tuple[Spec, np.ndarray, np.ndarray]:
    """Samples from 1e-20 to the limit, with repeats, multiples, zeros, NaN and infinities."""
    kernel, rule = draw(st.sampled_from(sorted(KERNELS))), draw(st.sampled_from((*RULES, "klms")))
    technique, dim = draw(st.sampled_from(TECHNIQUES)), draw(st.integers(1, 3))
    keys: dict[str, Any] = {"precision": draw(st.sampled_from(["float32", "float64"]))}
    if rule in GRADIENT:
        keys |= draw(st.sampled_from([
            {}, {}, {"when": "before"}, {"truncate_below": 0.01, "removals": 2}, {"truncate_age": 5, "rho": 0.3},
            {"projection": "klms"}, {"projection": "ls"}, {"candidates": "newest"}, {"step_limit": 0.1},
        ]))  # fmt: skip
    if rule == "krls-t":
        keys |= {"forgetting": draw(st.sampled_from([1.0, 0.9])), "noise": draw(st.sampled_from([1e-3, 100.0]))}
    if rule not in FIXED and technique != "at" and keys.get("when") != "before" and draw(st.integers(0, 3)) == 0:
        keys |= {"lambda_max": 1e-3, "removals": 2}
    if draw(st.integers(0, 3)) == 0:
        keys["input"] = {"standardise": True, "warmup": 2}
    limit = draw(st.sampled_from([LIMIT, LIMIT, 300.0, 1e-6]))
    keys["input"] = keys.get("input", {}) | {"max_abs": limit}
    if rule == "krls-t":
        keys["max_abs"] = draw(st.sampled_from([1e3, 1e-10]))
    else:
        keys["max_abs"] = draw(st.sampled_from([1e6, 1e-15, 1e20]))
    made = made_of(kernel, rule, technique, draw(st.integers(1, 7)), dim, **keys)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count = draw(st.integers(10, 60))
    x, y = rng.normal(size=(count, dim)) * min(1.0, limit), rng.normal(size=count) * min(1.0, made.label.max_abs)
    if draw(st.booleans()):
        x *= np.minimum(10.0 ** rng.integers(-20, 4, (count, 1)), limit / np.abs(x).max(1, keepdims=True))
    if draw(st.booleans()):
        y = np.clip(y * 10.0 ** rng.integers(-20, 20, count), -made.label.max_abs, made.label.max_abs)
    for row in np.flatnonzero(rng.random(count) < 0.3):
        x[row] = x[rng.integers(0, count)] * rng.choice([1.0, 0.5, -1.0, 0.0])
    odd = rng.random(count) < 0.05
    x[odd, 0] = rng.choice([np.nan, np.inf, -np.inf, 1e-45, 3e38], int(odd.sum()))
    y[rng.random(count) < 0.05] = np.nan
    with np.errstate(over="ignore"):
        return made, x.astype(made.real.dtype), y.astype(made.real.dtype)


@given(streams())
def test_no_sample_makes_a_state_unsound(stream: tuple[Spec, np.ndarray, np.ndarray]) -> None:
    made, x, y = stream
    model = HostModel(made)
    for t in range(len(x)):
        before, predicted = persistent(model), model.predict(x[t])
        (status,) = model.update(x[t], y[t])
        if status < 0:
            assert persistent(model) == before
        refused = not (np.abs(x[t]) <= made.config.input_max_abs).all()
        assert (status == Status.REFUSED_INPUT) == refused
        assert np.isnan(predicted) if refused else np.isfinite(predicted)
        if not refused:
            assert np.isfinite(model.novelty(x[t])).all()
        assert_sound(model)
    model.refresh()
    assert_sound(model)


@pytest.mark.parametrize("rule", (*RULES, "klms"))
def test_of_inputs_that_are_nearly_zero_a_state_is_sound(rule: str) -> None:
    """Variances of a linear function's multipliers are 1 / k(x, x) there."""
    rng = np.random.default_rng(0)
    model = HostModel(made_of("linear", rule, "mklms", 3, 2, precision="float32"))
    for x in rng.normal(size=(60, 2)) * 10.0 ** rng.uniform(-8, 0, (60, 1)):
        model.update(x, rng.normal(size=1))
        assert_sound(model)


# -------------------------------------------------------------------------------------------- a custom kernel


@kernel
def mine(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """The polynomial kernel, written once more."""
    return polynomial(q.gamma, q.coef0, q.degree, inner_product(a, b))


@kernel
def wild(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:
    """A kernel but for single values, where it is NaN, too large, negative or not symmetric."""
    if a[0] == real(0.25):
        return (a[1] - a[1]) / (b[1] - b[1])
    if b[0] == real(0.5):
        return real(1e30)
    if a[1] == real(0.75):
        return -real(2) * squared_distance(a, b)
    if b[1] == real(1.25):
        return a[0]
    return polynomial(q.gamma, q.coef0, q.degree, inner_product(a, b))


def custom_spec(own: Kernel, rule: str = "klms", technique: str = "mklms", **keys: Any) -> Spec:
    section = {"function": "custom", "source": "mine.py", "kernel": own.name, "max_value": 1e8, **KERNELS["polynomial"]}
    section["function"] = "custom"
    projection = {"projection": "klms"} if rule in ("krls-t", "fb-krls") else {}
    reduction = {} if rule in FIXED else {"technique": technique, "force": True, **projection}
    content = {
        "name": "m",
        "precision": keys.pop("precision", "float64"),
        "input": {"dim": 2, "max_abs": LIMIT},
        "kernel": section | keys,
        "learning": {"rule": rule},
        "reduction": {"n_max": 6, **reduction},
    }
    return make_spec(content, custom=own)


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("normalise", [False, True])
def test_a_custom_kernel_is_used_as_any_other(rule: str, normalise: bool) -> None:
    rng = np.random.default_rng(5)
    x = rng.uniform(-2, 2, (200, 2))
    name = "polynomial cosine" if normalise else "polynomial"
    parameters = {key: value for key, value in KERNELS[name].items() if key != "function"}
    a = HostModel(custom_spec(mine, rule, **parameters))
    b = HostModel(made_of(name, rule, n_max=6, **({"projection": "klms"} if rule in ("krls-t", "fb-krls") else {})))
    first, second = a.prequential(x, np.sin(x[:, 0])), b.prequential(x, np.sin(x[:, 0]))
    np.testing.assert_array_equal(first[1], second[1])
    assert first[0].tobytes() == second[0].tobytes() and (first[1] == Status.REPLACED).any() == (
        rule not in ("ald-krls", "knlms")
    )
    assert_sound(a)


@pytest.mark.in_turn(27)
@pytest.mark.parametrize(
    ("rule", "technique"), [("klms", "fmklms"), ("klms", "lsreg"), ("krls-t", "sup"), ("qklms", "afklms")]
)
def test_a_wrong_kernel_gives_numbers_and_equal_bytes(rule: str, technique: str) -> None:
    """Its Gram matrix is none, so that what is kept of it may be beyond all bounds; predictions are not."""
    rng = np.random.default_rng(6)
    x = np.round(rng.uniform(-2, 2, (400, 2)) * 4) / 4  # the poles are met
    for normalise in (False, True):
        made = custom_spec(wild, rule, technique, precision="float32", normalise=normalise)
        model = HostModel(made)
        for t in range(len(x)):
            model.update(x[t], np.sin(x[t, 0]))
            assert np.isfinite(model.predict(x[t]))
        for field in ("v", "alpha", "diagonal"):
            assert np.isfinite(model.memory.field(field)).all()
    assert in_one_build(made, samples=2_000).ok


# ---------------------------------------------------------------------------------------------------- the spec


@pytest.mark.in_turn(27)
@pytest.mark.parametrize(("technique", "more"), [("nt", 1), ("mklms", 0), ("fklms", 0)])
def test_memory_is_what_the_page_says(technique: str, more: int) -> None:
    """N numbers in the state, and 2 of work (nt: N + 2), where the kernel is normalised by k(v, v); else none."""
    gaussian = build(spec_of(technique, 8, 2, "float32")).figures
    for name in ("laplacian", "linear", "cosine"):
        figures = build(made_of(name, technique=technique, n_max=8, dim=2, precision="float32")).figures
        state, ram = (4 * 8, 4 * (8 + 2 + 8 * more)) if name != "laplacian" else (0, 0)
        assert figures["state_bytes"] - gaussian["state_bytes"] == state
        assert figures["ram_bytes"] - gaussian["ram_bytes"] == ram


@pytest.mark.parametrize(
    ("kernel", "keys", "words"),
    [
        ({"function": "sigmoid", "gamma": 1.0}, {}, "sigmoid, which is not positive definite"),
        ({"function": "fourier"}, {}, "fourier, which only models with trained vectors can have; .* needs a positive definite kernel \\(rff-rls"),
        ({"function": "matern32"}, {}, r"\[kernel\] gamma is missing; a matern32 kernel"),
        ({"function": "polynomial", "gamma": 1.0, "coef0": -1.0}, {}, "coef0 is -1; it must be 0 or more"),
        ({"function": "polynomial", "gamma": 1.0}, {"precision": "float32"}, "max_abs is 1e\\+06.* polynomial kernel can"),
        ({"function": "polynomial", "gamma": 1.0, "degree": 2}, {"input": {"max_abs": 1e5}, "precision": "float32"}, "must be at most 3e\\+17"),
        ({"function": "linear", "gamma": 1.0}, {}, "gamma belongs to .* linear does not have it"),
        ({"function": "laplacian", "gamma": 1.0, "normalise": True}, {}, "normalise changes nothing"),
        ({"function": "linear"}, {"rule": "qklms", "quantisation": 1.5}, "quantisation is 1.5; with a linear kernel it is the sine"),
        ({"function": "linear"}, {"rule": "krls-t", "technique": "sup", "max_abs": 1e12, "precision": "float32"}, "the variance overflows"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(kernel: dict[str, Any], keys: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        spec_of(kernel=kernel, **{"technique": "mklms", **keys})


def test_the_twin_knows_its_kernels() -> None:
    """The definitions that everything here is compared with: against scikit-learn's."""
    pairwise = pytest.importorskip("sklearn.metrics.pairwise")
    gaussian_process = pytest.importorskip("sklearn.gaussian_process.kernels")
    x = np.random.default_rng(0).normal(size=(6, 3))
    expected = {
        "laplacian": pairwise.laplacian_kernel(x, gamma=0.8),
        "matern12": gaussian_process.Matern(1.0, nu=0.5)(x),
        "rational-quadratic": gaussian_process.RationalQuadratic(np.sqrt(0.5 / 0.8 / 0.6), 0.6)(x),
        "matern32": gaussian_process.Matern(np.sqrt(3) / 1.5, nu=1.5)(x),
        "matern52": gaussian_process.Matern(np.sqrt(5) / 2.0, nu=2.5)(x),
        "polynomial": pairwise.polynomial_kernel(x, degree=3, gamma=0.5, coef0=0.5),
        "linear": x @ x.T,
        "cosine": pairwise.cosine_similarity(x),
    }
    for name, gram in expected.items():
        np.testing.assert_allclose(kernel_values(made_of(name, dim=3), x, x), gram, rtol=1e-12, atol=1e-12)
    assert Twin(made_of("polynomial")).power_of(np.array([1.0, 1.0])) == pytest.approx((0.5 * 2 + 0.5) ** 3)
