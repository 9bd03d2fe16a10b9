"""The linear rules against definitions in float64, and against what devices are fed."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.algorithms.extents import FEATURES
from pykernel.algorithms.linear import LINEAR
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.families.linear import RECURSIVE, RULES, WINDUP, random_count, random_features
from pykernel.spec.model import Spec, make_spec
from tests.support.every_model import DOUBT
from tests.support.naive import kernel_values

LinearStatus = LINEAR["real"].status

BOTH = pytest.mark.parametrize("precision", ["float32", "float64"])
EACH = pytest.mark.parametrize("rule", RULES)
PERSISTENT = ["weights", "root", "origin", "started", "frozen", "mean", "variance", "scale", "observed"]


def spec_of(rule: str, precision: str = "float64", dim: int = 3, learning: Any = None, **sections: Any) -> Spec:
    content = {
        "name": "line",
        "precision": precision,
        "learning": {"rule": rule} | ({"features": 12} if rule == "rff-rls" else {}) | (learning or {}),
        **({"kernel": {"sigma": 1.5}} if rule == "rff-rls" else {}),
    }
    return make_spec(content | sections | {"input": {"dim": dim} | sections.get("input", {})})


def model_of(rule: str, *args: Any, **sections: Any) -> HostModel:
    return HostModel(spec_of(rule, *args, **sections))


def state(model: HostModel) -> bytes:
    return b"".join(model.memory.field(name).tobytes() for name in PERSISTENT)


# ------------------------------------------------------------------------------------------- definitions, to compare


def features(spec: Spec, x: np.ndarray) -> np.ndarray:
    """What the rule makes of inputs, (rows, F), the constant last."""
    columns = [x]
    if spec.learning.rule == "quadratic-rls":
        i, j = np.triu_indices(spec.dim)
        columns.append(x[:, i] * x[:, j])
    if spec.learning.rule == "rff-rls":
        kernel = spec.kernel
        z, phases = random_features(spec.learning.seed, random_count(spec), spec.dim, kernel.function)
        omega = z / kernel.sigma if kernel.sigma is not None else z * kernel.gamma
        columns = [np.sqrt(2 / len(z)) * np.cos(x @ omega.T + 2 * np.pi * phases)]
    return np.column_stack([*columns, np.ones(len(x))])


def least_squares(phi: np.ndarray, y: np.ndarray, penalty: float, forgetting: float) -> np.ndarray:
    """Each sample weighs forgetting^age, the penalty as if it were the oldest."""
    weight = np.sqrt(forgetting ** np.arange(len(phi) - 1, -1, -1))
    prior = math.sqrt(penalty * forgetting ** len(phi)) * np.eye(phi.shape[1])
    rows = np.concatenate([weight[:, None] * phi, prior])
    targets = np.concatenate([weight[:, None] * y, np.zeros((phi.shape[1], y.shape[1]))])
    return np.linalg.lstsq(rows, targets, rcond=None)[0]


class Twin:
    """One sample at a time, with inverses written out: (outputs, F) weights and the features' inverse correlation."""

    def __init__(self, spec: Spec) -> None:
        self.spec, self.seen, self.brought_back = spec, 0, 0
        count = spec.capacities["FEATURES"]
        self.weights, self.p = np.zeros((spec.outputs, count)), spec.learning.prior_variance * np.eye(count)
        self.mean, self.variance = np.zeros(spec.dim), np.zeros(spec.dim)
        self.origin: np.ndarray | None = None
        self.seen_last = np.zeros(spec.dim)

    def features(self, x: np.ndarray) -> np.ndarray:
        if self.spec.input.standardise:
            clip = self.spec.input.clip
            x = np.clip((x - self.mean) / np.sqrt(self.variance + 2.0**-80), -clip, clip) if self.seen else 0 * x
        if self.spec.learning.rule in ("rls", "quadratic-rls"):
            self.seen_last = x
            x = x - (x if self.origin is None else self.origin)
        return features(self.spec, x[None])[0]

    def predict(self, x: np.ndarray) -> np.ndarray:
        return self.weights @ self.features(x)

    def observe(self, x: np.ndarray) -> None:
        self.seen = min(self.seen + 1, self.spec.input.horizon)
        rate, off = 2 / (self.seen + 1), x - self.mean
        self.mean = self.mean + off * rate
        self.variance = (1 - rate) * (self.variance + off * off * rate)

    def learn(self, x: np.ndarray, y: Any) -> None:
        learning, outputs = self.spec.learning, self.spec.outputs
        if self.spec.input.standardise and self.seen < self.spec.input.warmup:
            self.observe(x)
            return
        phi = self.features(x)
        found = self.weights @ phi
        error = y - found
        if self.spec.label.classes:
            target = np.where(np.arange(outputs) == (y if outputs > 1 else y - 1), 1, -1)
            error = np.where(target * found >= 1, 0, target - found)
        if learning.rule == "nlms":
            self.weights = self.weights + learning.eta * np.outer(error, phi) / (phi @ phi)
        elif error.any() or not self.spec.label.classes:
            part, direction = learning.forgetting, self.p @ phi
            spread = phi @ direction
            limit = WINDUP * len(phi) * learning.prior_variance
            widest = int(self.p.diagonal().argmax())
            winds_up = part < 1 and np.trace(self.p) > limit
            part = 1.0 if winds_up else part
            if self.origin is None and learning.rule in ("rls", "quadratic-rls"):
                self.origin = self.seen_last
            self.weights = self.weights + np.outer(error, direction / (part + spread))
            self.p = (self.p - np.outer(direction, direction) / (part + spread)) / part
            if winds_up and self.p[widest, widest] > learning.prior_variance:
                self.brought_back += 1
                variance, column = self.p[widest, widest], self.p[widest]
                self.p = self.p - np.outer(column, column) * (variance - learning.prior_variance) / variance**2
        if self.spec.input.standardise:
            self.observe(x)


@given(
    rule=st.sampled_from(RECURSIVE),
    dim=st.integers(1, 5),
    outputs=st.sampled_from([1, 3]),
    samples=st.integers(1, 200),
    forgetting=st.sampled_from([1.0, 0.99, 0.98]),
    prior_variance=st.sampled_from([0.01, 1.0, 50.0]),
    seed=st.integers(0, 999),
)
def test_recursive_is_batch_least_squares(rule, dim, outputs, samples, forgetting, prior_variance, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(samples, dim)), rng.normal(size=(samples, outputs))
    learning = {"forgetting": forgetting, "prior_variance": prior_variance}
    model = model_of(rule, "float64", dim, learning, label={"outputs": outputs})
    phi = features(model.spec, x - x[0] if rule != "rff-rls" else x)
    predictions, statuses = model.prequential(x, y[:, 0] if outputs == 1 else y)
    assert (statuses == LinearStatus.DONE).all()
    weights = least_squares(phi, y, 1 / prior_variance, forgetting)
    np.testing.assert_allclose(model.memory.field("weights"), weights.T, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.predict(x).reshape(y.shape), phi @ weights, rtol=1e-6, atol=1e-7)
    earlier = least_squares(phi[:-1], y[:-1], 1 / prior_variance, forgetting)
    np.testing.assert_allclose(predictions[-1].reshape(-1), phi[-1] @ earlier, rtol=1e-6, atol=1e-7)
    inverse = np.linalg.inv(
        phi.T @ (forgetting ** np.arange(samples - 1, -1, -1)[:, None] * phi)
        + forgetting**samples / prior_variance * np.eye(phi.shape[1])
    )
    root = np.zeros(inverse.shape)
    root[np.tril_indices(len(root))] = model.memory.field("root")
    np.testing.assert_allclose(root @ root.T, inverse, rtol=1e-6, atol=1e-7)


@pytest.mark.in_turn(54)
@EACH
@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize(
    "label", [{}, {"outputs": 2}, {"classes": ["no", "yes"]}, {"classes": ["a", "b", "c"]}], ids=str
)
def test_each_step_is_the_definitions(rule, standardise, label):
    """Predictions before each of 300 samples, through warmup, forgetting and margins."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 2)) * [1.0, 3.0] + [0.0, 1.0]
    learning = {"eta": 0.3} if rule == "nlms" else {"forgetting": 0.995}
    inputs = {"dim": 2, "standardise": standardise, "warmup": 5, "horizon": 50, "clip": 2.0} if standardise else {}
    model = model_of(rule, "float64", 2, learning, input=inputs, label=label)
    y: Any = np.sin(x[:, 0]) + 0.3 * x[:, 1]
    if "outputs" in label:
        y = np.column_stack([y, x[:, 0] * x[:, 1]])
    if "classes" in label:
        y = np.digitize(y, [0.2] if len(label["classes"]) == 2 else [-0.3, 0.6])
    twin, expected = Twin(model.spec), []
    for row, target in zip(x, y, strict=True):
        expected.append(twin.predict(row))
        twin.learn(row, target)
    predictions, statuses = model.prequential(x, y)
    np.testing.assert_allclose(predictions.reshape(300, -1), expected, rtol=1e-7, atol=1e-8)
    assert (statuses[:5] == (LinearStatus.OBSERVED if standardise else LinearStatus.DONE)).all()
    assert (statuses[5:] == LinearStatus.DONE).all()
    if "classes" in label:
        values = model.predict(x).reshape(300, -1)
        highest = values.argmax(1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        np.testing.assert_array_equal(model.classify(x), highest)
        assert (highest == y)[150:].mean() > 0.75


def test_random_features_are_those_of_the_gaussian_kernel():
    """Rahimi and Recht 2007, claim 1: phi(a)'phi(b) differs from k(a, b) by a few 1 / sqrt(number)."""
    spec = spec_of("rff-rls", learning={"features": 2000, "seed": 7}, kernel={"sigma": 1.5})
    a, b = np.random.default_rng(0).normal(size=(2, 200, 3))
    phi = [features(spec, part)[:, :-1] for part in (a, b)]
    kernel = np.exp(-((a - b) ** 2).sum(1) / (2 * 1.5**2))
    assert np.abs((phi[0] * phi[1]).sum(1) - kernel).max() < 4 / math.sqrt(2000)
    frequencies, phases = random_features(7, 2000, 3)
    assert abs(frequencies.mean()) < 0.04 and abs(frequencies.std() - 1) < 0.04
    assert abs(np.corrcoef(frequencies.T) - np.eye(3)).max() < 0.08
    assert phases.min() >= 0 and phases.max() < 1 and abs(np.histogram(phases, 10)[0] - 200).max() < 60


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("function", ["laplacian", "matern12", "matern32", "matern52"])
def test_random_features_of_other_kernels(function):
    """The same claim for heavy tails; and the model's own table, in turns, is what the kernel's frequencies are."""
    spec = spec_of("rff-rls", learning={"features": 2000, "seed": 3}, kernel={"function": function, "gamma": 1.5})
    a, b = np.random.default_rng(0).normal(size=(2, 300, 3))
    a[:50] = b[:50] + np.linspace(0, 3, 50)[:, None] * [1, 0, 0]  # near ones, where the kernels differ most
    phi = [features(spec, part)[:, :-1] for part in (a, b)]
    exact = np.diagonal(kernel_values(spec, a, b))
    assert exact.max() > 0.99 and exact.min() < 0.1
    assert np.abs((phi[0] * phi[1]).sum(1) - exact).max() < 4 / math.sqrt(2000)
    others = [
        {"function": name, "gamma": 1.5}
        for name in ("laplacian", "matern12", "matern32", "matern52")
        if name != function
    ]
    for other in others:  # which that bound tells apart
        wrong = np.diagonal(kernel_values(spec_of("rff-rls", kernel=other), a, b))
        assert np.abs(wrong - exact).max() > 2 * np.abs((phi[0] * phi[1]).sum(1) - exact).max()
    z, _ = random_features(3, 2000, 3, function)
    np.testing.assert_allclose(spec.config_values["frequencies"], 1.5 * z / (2 * np.pi), rtol=1e-12)
    more, _ = random_features(3, 2001, 3, function)
    np.testing.assert_array_equal(more[:2000], z)


def test_rff_rls_learns_what_its_kernel_would():
    """A prediction is that of ridge regression with the features, so near that with the kernel: e^-|x - v|_1 has a kink."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (300, 1))
    y = np.abs(x[:, 0])
    errors = {}
    for kernel in ({"function": "laplacian", "gamma": 1.0}, {"sigma": 1.0}):
        model = HostModel(spec_of("rff-rls", dim=1, learning={"features": 300}, kernel=kernel))
        model.update(x, y)
        errors[kernel.get("function")] = float(np.abs(model.predict([[0.0]])[0]))
    assert errors["laplacian"] < 0.5 * errors[None], errors


def test_a_seed_means_the_same_for_ever():
    frequencies, phases = random_features(0, 2, 2)
    np.testing.assert_array_equal(frequencies * 2**16, [[66375, 45858], [-42381, 1852]])
    assert phases.tolist() == [0.420571580830845, 0.4049341374504143]
    more, others = random_features(0, 5, 2)
    np.testing.assert_array_equal(more[:2], frequencies)
    np.testing.assert_array_equal(others[:2], phases)
    assert not np.isin(random_features(1, 5, 2)[0], more).any()


# ----------------------------------------------------------------------------------------------- the same bytes


@pytest.mark.in_turn(18)
@BOTH
@EACH
def test_weights_that_would_leave_their_range_are_refused(rule, precision):
    """Labels within a tiny limit cannot lead to weights beyond 2^20 times it; inputs near zero would need them."""
    learning = {} if rule == "nlms" else {"prior_variance": 1e12}
    inputs = {"max_abs": 1e6 if rule == "nlms" else 10.0}
    model = model_of(rule, precision, 1, learning, input=inputs, label={"max_abs": 1e-3})
    rng, statuses = np.random.default_rng(0), []
    limit = model.config.weight_limit
    for _ in range(2000):
        x = np.sign(rng.normal()) * 1e-9 if rule != "nlms" else 1e5 * rng.normal()
        before = state(model)
        status = int(model.update([[x]], [1e-3 * np.sign(x)])[0])
        statuses.append(status)
        assert status >= 0 or state(model) == before
    assert np.abs(model.memory.field("weights")).max() <= limit
    if rule in ("rls", "quadratic-rls"):
        assert LinearStatus.REFUSED_WEIGHT in statuses


@EACH
def test_the_struct_holds_what_the_rule_needs(rule):
    spec = spec_of(rule, "float32", 3)
    count = spec.capacities[FEATURES.text]
    assert count == {"nlms": 4, "rls": 4, "quadratic-rls": 10, "rff-rls": 13}[rule]
    project = build(spec)
    header, code = project.files["src/line.h"], project.files["src/line.c"]
    assert ("root" in header) == (rule != "nlms") and ("started" in header) == (rule != "nlms")
    assert not re.search(r"\b(mean|trace)[;\[]", header)
    assert ("line_frequencies" in code) == (rule == "rff-rls")
    numbers = count + (0 if rule == "nlms" else count * (count + 1) // 2) + (1 if rule == "nlms" else 2)
    numbers += 3 if rule in ("rls", "quadratic-rls") else 0
    assert project.figures["state_bytes"] == 4 * numbers + DOUBT
    assert project.figures["const_bytes"] == (4 * 12 * 4 if rule == "rff-rls" else 0)
    assert "line_classify" not in header and "line_novelty" not in header and "line_refresh" not in header


# ------------------------------------------------------------------------------------------- long runs, and limits


@pytest.mark.parametrize("rule", ["rls", "quadratic-rls"])
def test_float32_has_digits_for_inputs_far_from_zero(rule):
    """A pressure of 1013 hPa and a temperature of 300 K that vary by 1: in the raw inputs the condition number is above 1e10."""
    rng = np.random.default_rng(0)
    off = rng.normal(size=(20_000, 2))
    clean = off @ [1.0, -0.5] + (0.4 * off[:, 0] * off[:, 1] if rule == "quadratic-rls" else 0)
    x = (off + np.array([1013, 300])).astype(np.float32)
    model = model_of(rule, "float32", 2, {"forgetting": 0.999}, input={"max_abs": 2000.0})
    forecasts, statuses = model.prequential(x, clean + 0.05 * rng.normal(size=len(x)))
    assert (statuses == LinearStatus.DONE).all()
    assert np.sqrt(np.mean((forecasts - clean)[10_000:] ** 2)) < 0.004


@pytest.mark.parametrize("rule", ["rls", "quadratic-rls"])
def test_a_signal_that_stands_still_does_not_wind_up(rule):
    model = model_of(rule, "float32", 2, {"forgetting": 0.98})
    still = np.tile([1.0, 2.0], (50_000, 1))
    model.update(still, np.full(len(still), 5.0))
    count = model.spec.capacities["FEATURES"]
    trace = float((model.memory.field("root").astype(float) ** 2).sum())
    assert trace <= 1.03 * WINDUP * count * 100.0
    assert model.predict([[1, 2]]) == pytest.approx(5, rel=1e-5)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    model.update(x, x @ [1.0, -2.0] + 4)
    weights = model.memory.field("weights")[0]
    # the constant is f at the first sample
    np.testing.assert_allclose([*weights[:2], weights[-1]], [1, -2, 1 - 4 + 4], atol=5e-3)


def test_forgetting_goes_on_where_one_direction_has_wound_up():
    """One input stands still for 3000 samples, and the function goes on changing in the others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 3))
    x[1000:4000, 1] = 0.25
    phase = np.arange(6000) / 300
    y = np.sin(phase) * x[:, 0] + np.cos(phase) * x[:, 2] + x[:, 1]
    learning = {"forgetting": 0.98}
    model = model_of("rls", "float64", 3, learning)
    twin, expected = Twin(model.spec), []
    for row, target in zip(x, y, strict=True):
        expected.append(twin.predict(row)[0])
        twin.learn(row, target)
    assert twin.brought_back >= 2
    np.testing.assert_allclose(model.prequential(x, y)[0], expected, rtol=1e-4, atol=1e-4)
    error = np.abs(model_of("rls", "float32", 3, learning).prequential(x, y)[0] - y)
    assert error[2500:4000].mean() < 1.3 * error[500:1000].mean()
    assert error[4005:].mean() < 1.3 * error[500:1000].mean()


# -------------------------------------------------------------------------------------------------------- specs

BASE = {"name": "line", "input": {"dim": 2}}


@pytest.mark.parametrize(
    ("rule", "wrong", "words"),
    [
        ("rls", {"reduction": {"n_max": 3}}, r"\[reduction\] n_max belongs to klms, .*; rls does not have it"),
        ("nlms", {"reduction": {"technique": "nt"}}, "technique belongs to klms, .*; nlms does not"),
        ("rls", {"learning": {"eta": 0.1}}, r"\[learning\] eta belongs to klms, .*nlms.*; rls does not have it"),
        ("nlms", {"learning": {"forgetting": 0.9}}, "forgetting belongs to .*rls, quadratic-rls, rff-rls.*; nlms"),
        ("rls", {"learning": {"noise": 0.9}}, "noise belongs to krls-t, .*; rls does not have it"),
        ("quadratic-rls", {"learning": {"features": 9}}, "features belongs to rff-rls, .* and okfeb; quadratic-rls"),
        ("rls", {"learning": {"seed": 9}}, "seed belongs to rff-rls, .* and nystrom-rls; rls"),
        ("rls", {"kernel": {"sigma": 1.0}}, r"\[kernel\] .*rls does not have it"),
        ("rff-rls", {}, r"\[kernel\] is missing; rff-rls needs sigma"),
        ("rff-rls", {"kernel": {"sigma": 0.0}}, r"\[kernel\] sigma is 0; it must be from 1e-18"),
        ("rff-rls", {"kernel": {"sigma": 1e-18}, "input": {"dim": 2, "max_abs": 1e18}, "learning": {"prior_variance": 1e-9}},
         "max_abs is 1e.18, too large for sigma = 1e-18"),
        ("rff-rls", {"kernel": {"function": "polynomial", "gamma": 1.0}}, "polynomial, for which rff-rls has no random Fourier"),
        ("rff-rls", {"kernel": {"function": "matern32"}}, r"\[kernel\] gamma is missing; a matern32 kernel"),
        ("rls", {"learning": {"prior_variance": 1e-30}}, "prior_variance is 1e-30; it must be from 1e-18"),
        ("rls", {"learning": {"prior_variance": 1e10}, "input": {"dim": 2, "max_abs": 1e15}}, "for which rls with prior_variance 1e.10 overflows float32"),
        ("quadratic-rls", {"input": {"dim": 2, "max_abs": 1e9}}, "max_abs is 1e.09, for which quadratic-rls with prior_variance 100 overflows"),
        ("nlms", {"input": {"dim": 2, "max_abs": 1e18}}, "max_abs is 1e.18, for which nlms overflows float32"),
        ("quadratic-rls", {"input": {"dim": 1000}}, r"\[input\] dim is 1000, which takes 505,"),
    ],
)  # fmt: skip
def test_impossible_settings_are_refused(rule, wrong, words):
    learning = {"rule": rule} | wrong.get("learning", {})
    with pytest.raises(UserError, match=words) as caught:
        make_spec(BASE | wrong | {"learning": learning})
    assert len(str(caught.value)) < 300 and str(caught.value).isprintable()
