"""Stages around a rule: a mean, a linear part and a gain do what their formulas say, and wait until the rule has accepted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.stages import GAIN_HORIZON
from tests.support.compilers import in_one_build

RULES = ("klms", "qklms", "krls-t", "ald-krls", "knlms", "nlms", "rls", "nystrom-rls", "okfeb")
STAGES: dict[str, tuple[dict[str, Any], bool]] = {
    "mean": ({"center": True}, False),
    "gain": ({"gain": True}, False),
    "linear": ({}, True),
    "limit": ({"clip": 3.0}, False),
    "all": ({"center": True, "gain": True, "clip": 4.0, "horizon": 50}, True),
}


def spec_of(rule: str, stages: str | None, precision: str = "float64", outputs: int = 1, **input: Any) -> Spec:
    label, linear = STAGES[stages] if stages else ({}, False)
    made: dict[str, Any] = {
        "name": "m",
        "precision": precision,
        "input": {"dim": 2, **input},
        "label": {"max_abs": 100.0, "outputs": outputs} | label,
        "learning": {"rule": rule},
    }
    if rule not in ("nlms", "rls"):
        made |= {"kernel": {"sigma": 1.0}, "reduction": {"n_max": 6}}
        if rule == "okfeb":
            made["learning"]["features"] = 4
        if linear:
            made["linear"] = {}
    return make_spec(made)


def stream_of(rows: int, outputs: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 2)) * [3.0, 0.1] + [10.0, -1.0]
    z = (x - [10.0, -1.0]) / [3.0, 0.1]
    y = 40 + 5 * z[:, :1] + np.sin(2 * z[:, 1:]) * np.arange(1, outputs + 1) + rng.normal(0, 0.1, (rows, outputs))
    return x, y


class Around:
    """The formulas of docs/maths in float64, around a model without label stages that sees standardised inputs."""

    def __init__(self, spec: Spec) -> None:
        label = spec.label.model_copy(update={"center": False, "gain": False, "clip": None, "low": None, "high": None})
        self.linear = getattr(spec, "linear", None)
        staged = spec.label.center or self.linear is not None
        label = label.model_copy(update={"max_abs": spec.label.max_abs * (2 if staged else 1)})
        bare: dict[str, Any] = {"label": label, "input": spec.input.model_copy(update={"standardise": False})}
        if "linear" in type(spec).model_fields:
            bare["linear"] = None
        self.rule, self.spec = HostModel(spec.model_copy(update=bare)), spec
        n, d = spec.outputs, spec.dim
        self.mean, self.power, self.seen = np.zeros(d), np.zeros(d), 0
        self.center, self.labels, self.slopes = np.zeros(n), 0, np.zeros((n, d + 1))
        self.agreement, self.strength, self.judged = np.zeros(n), np.zeros(n), 0
        self.left, self.shock, self.label_shock, self.outlying = np.zeros(n), 0.0, 0.0, 0

    def seen_by_rule(self, x: np.ndarray) -> np.ndarray:
        if not self.spec.input.standardise:
            return x
        scale = 1 / np.sqrt(self.power + 2.0**-80) if self.seen else np.zeros(len(x))
        return np.clip((x - self.mean) * scale, -self.spec.input.clip, self.spec.input.clip)

    def lead(self, z: np.ndarray) -> np.ndarray:
        return self.center + self.slopes @ np.append(z, 1)

    def predict(self, x: np.ndarray) -> np.ndarray:
        z = self.seen_by_rule(x)
        k = np.reshape(self.rule.predict(z[None]), -1)
        gain = np.ones(len(k))
        if self.spec.label.gain and self.judged >= 20:
            known = self.strength > 0
            gain[known] = np.clip(self.agreement[known] / self.strength[known], 0, 1)
        return np.asarray(self.lead(z) + gain * k)

    def update(self, x: np.ndarray, y: np.ndarray) -> int:
        if self.spec.input.standardise and self.seen < self.spec.input.warmup:
            self.observe(x)
            if self.spec.label.center:
                self.average(y)
            return 6
        z = self.seen_by_rule(x)
        k = np.reshape(self.rule.predict(z[None]), -1)
        limit = self.spec.label.max_abs
        r = np.clip(y - self.lead(z), -2 * limit, 2 * limit)
        if self.spec.label.center and not self.labels:
            r = np.zeros(len(r))
        if self.spec.label.clip is not None and self.judged >= 20:
            edge = self.spec.input.standardise and (np.abs(z) >= self.spec.input.clip).any()
            most = self.spec.label.clip * (1 + self.label_shock) * (4 if edge else 1) * np.sqrt(self.left)
            most[self.left == 0] = np.inf
            most = most + 2.0**-20 * np.abs(k)
            far = np.abs(r - k) > most
            y = np.where(far, self.lead(z) + k + np.sign(r - k) * most, y)
            r = np.where(far, k + np.sign(r - k) * most, r)
            self.label_shock = 2 * self.label_shock + 1 if far.any() else 0.0
            self.outlying += int(far.any())
        (status,) = self.rule.update(z[None], r[None] if len(r) > 1 else r)
        if status < 0:
            return int(status)
        self.judged = min(self.judged + 1, GAIN_HORIZON)
        rate = 2 / (self.judged + 1)
        self.agreement += rate * (r * k / limit**2 - self.agreement)
        self.strength += rate * (k * k / limit**2 - self.strength)
        self.left += rate * ((r - k) ** 2 - self.left)
        if self.linear is not None:
            step = self.linear.eta * r / (1 + z @ z)
            self.slopes = np.clip(self.slopes + np.outer(step, np.append(z, 1)), -limit, limit)
        if self.spec.label.center:
            self.average(y)
        if self.spec.input.standardise:
            self.observe(x)
        return int(status)

    def average(self, y: np.ndarray) -> None:
        self.labels = min(self.labels + 1, self.spec.label.horizon)
        self.center += (y - self.center) * 2 / (self.labels + 1)

    def observe(self, x: np.ndarray) -> None:
        self.seen = min(self.seen + 1, self.spec.input.horizon)
        late = self.seen > self.spec.input.warmup
        allowed = 5 * (1 + self.shock)
        most = np.where(late & (self.power > 0), allowed * np.sqrt(self.power + 2.0**-80), np.inf)
        self.shock = 2 * self.shock + 1 if (np.abs(x - self.mean) > most).any() else 0.0
        rate, difference = 2 / (self.seen + 1), np.clip(x - self.mean, -most, most)
        self.mean += rate * difference
        self.power = (1 - rate) * (self.power + rate * difference**2)


def fits(rule: str, stages: str) -> bool:
    return not (rule in ("nlms", "rls") and "linear" in stages)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("stages", STAGES)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.in_turn(90)
def test_stages_are_their_formulas(rule: str, stages: str, outputs: int) -> None:
    if not fits(rule, stages):
        pytest.skip("a linear rule has no linear part beside it")
    spec = spec_of(rule, stages, outputs=outputs, standardise=True)
    model, twin = HostModel(spec), Around(spec)
    x, y = stream_of(400, outputs)
    y[50] = 1e3  # refused
    x[80] *= 30  # far outside: it moves the mean little
    x[120:124] *= 5  # another scale
    y[[150, 200, 201, 202]] += 40
    for t in range(len(x)):
        np.testing.assert_allclose(
            np.reshape(model.predict(x[t : t + 1]), -1), twin.predict(x[t]), rtol=1e-7, atol=1e-7
        )
        (status,) = model.update(x[t : t + 1], y[t : t + 1] if outputs > 1 else y[t])
        assert status == (-2 if t == 50 else twin.update(x[t], y[t]))
    assert twin.judged == GAIN_HORIZON
    assert spec.label.clip is None or twin.outlying >= 2


@pytest.mark.exhaustive
@pytest.mark.parametrize("center", [False, True])
def test_noise_is_estimated_by_what_the_model_leaves(center: bool, exhaustive: bool) -> None:
    """Each step is the one of a model that is told this noise; the noise is u / (1 - u) of the latest 300 labels."""
    content = {
        "name": "m", "precision": "float64", "input": {"dim": 2, "standardise": True},
        "label": {"max_abs": 100.0, "center": center}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 8},
    }  # fmt: skip
    learning = {"rule": "krls-t", "forgetting": 0.999}
    spec = make_spec(content | {"learning": learning | {"noise": "auto"}})
    model = HostModel(spec)
    x, y = stream_of(600, 1)
    y = y[:, 0] - (0 if center else 40)
    left = power = 0.0
    count, noises = 0, [0.1]
    for t in range(len(x)):
        mean = float(model.memory.field("center")[0]) if center else 0.0
        told = HostModel(make_spec(content | {"learning": learning | {"noise": noises[-1]}}))
        for name in (slot.name for slot in told.memory.layout.slots):
            told.memory.field(name)[...] = model.memory.field(name)
        k = float(model.predict(x[t : t + 1])[0]) - mean
        assert told.update(x[t : t + 1], y[t : t + 1]) == model.update(x[t : t + 1], y[t : t + 1])
        for name in ("alpha", "covariance", "power", "n"):
            np.testing.assert_allclose(told.memory.field(name), model.memory.field(name), rtol=1e-9, atol=1e-12)
        if t >= 16:
            count = min(count + 1, GAIN_HORIZON)
            left += ((y[t] - mean - k) ** 2 - left) * 2 / (count + 1)
            power += ((y[t] - mean) ** 2 - power) * 2 / (count + 1)
            u = min(left / power, 1)
            noises.append(min(max(u / max(1 - u, 0.05), 0.01), 3.0) if count >= 20 else 0.1)
    assert len(set(noises)) > 0.7 * len(x) and min(noises) < 0.1
    report = in_one_build(make_spec(content | {"learning": learning | {"noise": "auto"}, "precision": "float32"}),
                   samples=4000 if exhaustive else 1500)  # fmt: skip
    assert report.ok, [row["first_difference"] for row in report.rows]


def test_stages_that_mean_nothing_are_refused() -> None:
    for changed, says in (
        ({"label": {"classes": ["a", "b"], "center": True}}, r"\[label\] center is for labels that are numbers"),
        ({"label": {"classes": ["a", "b"], "gain": True}}, r"\[label\] gain is for labels that are numbers"),
        ({"label": {"classes": ["a", "b"], "clip": 5.0}}, r"\[label\] clip is for labels that are numbers"),
        ({"label": {"outputs": 1}, "linear": {}}, r"\[linear\] needs inputs of known magnitude"),
        (
            {"input": {"dim": 2, "standardise": True, "scale": [1, 1]}, "learning": {"rule": "okfeb"}},
            "has standardise = true, and also center or scale",
        ),
        (
            {"label": {"center": True}, "learning": {"rule": "nystrom-rls"}, "basis": {"method": "sgma"}},
            "has already stored",
        ),
        (
            {"label": {"center": True}, "learning": {"rule": "okfeb"}},
            r"\[label\] center is for labels that are numbers",
        ),
        (
            {"label": {"center": True}, "learning": {"rule": "fb-krls"}},
            r"changes labels that fb-krls has already stored",
        ),
    ):
        base: dict[str, Any] = {"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}}
        with pytest.raises(UserError, match=says):
            make_spec(base | changed)


@pytest.mark.in_turn
@pytest.mark.parametrize("deviation", [0.1, 0.5, 2.0])
def test_the_variance_covers_the_labels(deviation: float) -> None:
    """Of raw labels, 95 % lie within 1.96 standard deviations of the prediction, by krls-t with all stages."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(4000, 2))
    y = 50 + np.sin(2 * z[:, 0]) + z[:, 1] + deviation * rng.normal(size=len(z))
    x = z * [1, 100] + [0, 1000]
    model = HostModel(
        make_spec({"name": "m", "input": {"dim": 2}, "label": {"outputs": 1}, "reduction": {"n_max": 32}})
    )
    model.update(x[:2000], y[:2000])
    within = []
    for start in range(2000, 4000, 10):
        part = slice(start, start + 10)
        variances, _ = model.ask("variance", x[part])
        within += (np.abs(y[part] - model.predict(x[part])) <= 1.96 * np.sqrt(variances.ravel())).tolist()
        model.update(x[part], y[part])
    assert 0.92 < np.mean(within) < 0.97


def test_faults_are_forgotten() -> None:
    """Outlying labels, an outlying start and a change of scale leave the default model's error within half of what it was."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=(3000, 3))
    y = 20 + z[:, 0] + np.sin(2 * z[:, 1]) + rng.normal(0, 0.1, len(z))

    def error(x: np.ndarray, labels: np.ndarray) -> float:
        answers, _ = HostModel(make_spec({"name": "m", "input": {"dim": 3}, "label": {"outputs": 1}})).prequential(
            x, labels
        )
        sound = np.abs(labels - y) < 1e-9
        return float(np.sqrt(np.mean((np.reshape(answers, -1) - y)[1500:][sound[1500:]] ** 2)))

    usual = error(z, y)
    wrong = rng.random(len(y)) < 0.004
    late = np.where(np.arange(len(z)) < 1000, 1e-4, 1.0)[:, None]
    start = np.eye(len(z), 1) * 1e3
    for x, labels in (
        (z, np.where(wrong, rng.choice([-200.0, 200.0], len(y)), y)),
        (z + start, y),
        (z, y + start[:, 0]),
        (z * late, y),
    ):
        assert error(x, labels) < 1.5 * usual
