"""Trained expansions that go on learning: against the frozen model, and against definitions in NumPy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.families.expansion import RULES, SOFTMAX
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import make_spec
from tests.support.every_model import DOUBT
from tests.support.naive import kernel_values
from tests.support.random_specs import FUNCTIONS

OF_NUMBERS = [rule for rule in RULES if rule != SOFTMAX]
EACH = pytest.mark.parametrize("rule", OF_NUMBERS)
Content = dict[str, Any]
SCALED: Content = {"dim": 3, "max_abs": 20.0, "center": [0.5, -1.0, 2.0], "scale": [1.5, 0.5, -0.75]}
PRODUCTS: Content = {"distance": "products"}
LABELS: dict[str, Content] = {
    "one": {"column": "y", "max_abs": 1e3},
    "several": {"outputs": 3, "max_abs": 1e3},
    "two classes": {"classes": ["a", "b"]},
    "classes": {"classes": ["a", "b", "c"]},
}


def content_of(
    rule: str = "frozen",
    kind: str = "one",
    function: str = "gaussian",
    trained: bool = True,
    precision: str = "float64",
    size: int = 9,
    **sections: Any,
) -> Content:
    """Trained tables of random numbers; sections: more keys of these sections."""
    rng = np.random.default_rng(5)
    functions = {"one": 1, "several": 3, "two classes": 1, "classes": 3}[kind]
    content: Content = {
        "name": "m",
        "precision": precision,
        "input": SCALED,
        "label": LABELS[kind],
        "kernel": {"function": function} | ({} if function in ("linear", *HIDDEN) else {"gamma": 0.3}),
        "learning": {"rule": rule},
        "expansion": {"vectors": rng.normal(size=(size, 3)).tolist()},
    }
    weights = {"weights": rng.normal(size=(size, functions)).tolist(), "bias": rng.normal(size=functions).tolist()}
    content["expansion"] |= weights if trained else {}
    for section, keys in sections.items():
        content[section] = content.get(section, {}) | keys
    return content


def model_of(*args: Any, **sections: Any) -> HostModel:
    return HostModel(make_spec(content_of(*args, **sections)))


def inputs(rows: int, seed: int = 0) -> np.ndarray:
    """Raw inputs; some of them far from all vectors."""
    rng = np.random.default_rng(seed)
    x = np.array(SCALED["center"]) + rng.normal(size=(rows, 3)) / np.array(SCALED["scale"])
    x[::17] = rng.uniform(-20, 20, size=x[::17].shape)
    return x


# ------------------------------------------------------------------------------------------------- at power-on


@pytest.mark.in_turn(45)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("function", [*FUNCTIONS, "products"])
def test_before_the_first_sample_it_answers_what_the_frozen_model_does(function: str, precision: str) -> None:
    """To the byte: each kernel, label and order of sums, with probabilities; and after a restart again."""
    x = inputs(200)
    kernel, more = (function, {}) if function != "products" else ("gaussian", PRODUCTS)
    more = more | ({"offsets": np.linspace(-1, 1, 9).tolist()} if function in HIDDEN else {})
    for label in LABELS:
        if "classes" in label:
            more = more | {"calibration": [[-1.5, 0.25]] * (1 if label == "two classes" else 3)}
        frozen = model_of("frozen", label, kernel, True, precision, expansion=more)
        questions = ["predict", *(["classify", "probability"] if "classes" in label else [])]
        for rule in RULES if "classes" in label else OF_NUMBERS:
            own = {key: value for key, value in more.items() if rule != SOFTMAX or key != "calibration"}
            model = model_of(rule, label, kernel, True, precision, expansion=own)
            for _ in range(2):
                for name in questions if rule != SOFTMAX else questions[:2]:
                    for ours, theirs in zip(model.ask(name, x), frozen.ask(name, x), strict=True):
                        assert ours.tobytes() == theirs.tobytes(), (label, rule, name)
                model.update(x[:20], (x[:20, 0] > 0).astype(np.int32) if "classes" in label else _labels(x[:20], label))
                assert "classes" in label or snapshot.save(model) != snapshot.save(HostModel(model.spec))
                model.reset()


def _labels(x: np.ndarray, label: str) -> np.ndarray:
    y = 3 + 2 * np.sin(x.sum(1)) + 0.1 * np.cos(50 * x[:, 0])
    return y if label == "one" else np.column_stack([y, -y, x[:, 1]])


# ------------------------------------------------------------------------------------------------- definitions


def features(content: Content, x: np.ndarray) -> np.ndarray:
    spec = make_spec(content)
    seen = (x - np.array(SCALED["center"])) * np.array(SCALED["scale"])
    return np.column_stack([kernel_values(spec, np.array(content["expansion"]["vectors"]), seen).T, np.ones(len(x))])


class Twin:
    """The definitions: w + eta e phi / |phi|^2, and a Kalman filter whose covariance goes back to the prior."""

    def __init__(self, content: Content, outputs: int) -> None:
        self.learning = content["learning"]
        tables = content["expansion"]
        size = len(tables["vectors"]) + 1
        self.weights = np.zeros((size, outputs))
        self.trained = np.zeros((size, outputs))
        if "weights" in tables:
            self.trained = np.vstack([tables["weights"], tables["bias"]])
        softmax = self.learning["rule"] == SOFTMAX
        self.prior = self.learning.get("prior_variance", 10.0) / (4 if softmax else 1) * np.eye(size)
        self.covariance = self.prior.copy()

    def learn(self, phi: np.ndarray, error: np.ndarray) -> None:
        if self.learning["rule"] == "expansion-nlms":
            self.weights += self.learning.get("eta", 0.5) * np.outer(phi, error) / (phi @ phi)
            return
        after = np.linalg.inv(np.linalg.inv(self.covariance) + np.outer(phi, phi))
        self.weights += np.outer(after @ phi, error)
        forgetting = self.learning.get("forgetting", 0.9995 if self.learning["rule"] == SOFTMAX else 0.998)
        self.covariance = forgetting * after + (1 - forgetting) * self.prior


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("learning", [{}, {"eta": 0.1, "forgetting": 0.95, "prior_variance": 1.0}], ids=str)
@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("rule", RULES)
def test_it_learns_what_the_definition_says(rule: str, label: str, learning: Content) -> None:
    learning = {key: value for key, value in learning.items() if (key == "eta") == (rule == "expansion-nlms")}
    numbers = "classes" not in label
    if numbers and rule == SOFTMAX:
        with pytest.raises(UserError, match=r"\[label\] classes is missing; expansion-softmax separates classes"):
            make_spec(content_of(rule, label))
        return
    content = content_of(rule, label, learning=learning, **({"label": {"gain": False}} if numbers else {}))
    x = inputs(300, 1)
    classes = (x[:, 0] > 0.5).astype(np.int32) + (x[:, 1] > -1) * (label == "classes")
    y = _labels(x, label).reshape(len(x), -1) if numbers else classes
    model, phi = HostModel(make_spec(content)), features(content, x)
    twin = Twin(content, {"one": 1, "several": 3, "two classes": 1, "classes": 3}[label])
    for t in range(len(x)):
        answer = phi[t] @ (twin.trained + twin.weights)
        np.testing.assert_allclose(model.predict(x[t : t + 1]).ravel(), answer, rtol=1e-6, atol=1e-6)
        if numbers:
            error = y[t] - answer
        elif rule == SOFTMAX:
            # Newton's step with second derivatives of 1/4
            odds = np.exp(np.append(0, answer) if len(answer) == 1 else answer - answer.max())
            error = 4 * ((np.arange(len(odds)) == y[t]) - odds / odds.sum())[-len(answer) :]
        else:
            wanted = np.where(np.arange(len(answer)) == y[t], 1, -1) if len(answer) > 1 else np.array([2 * y[t] - 1])
            error = np.where(wanted * answer >= 1, 0, wanted - answer)
        model.update(x[t : t + 1], y[t : t + 1] if y.ndim == 1 or y.shape[1] > 1 else y[t])
        if error.any():
            twin.learn(phi[t], error)


STAGES: dict[str, Content] = {
    "gain": {},
    "center": {"label": {"center": True, "gain": False}},
    "linear": {"linear": {}},
    "clip": {"label": {"clip": 3.0}},
    "mixture": {"mixture": {}},
    "all": {"label": {"center": True, "clip": 5.0}, "linear": {}, "mixture": {}, "interval": {}},
    "hold": {"label": {"center": True}, "input": {"missing": "hold"}},
}


@pytest.mark.in_turn(45)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("label", ["one", "several"])
@EACH
def test_every_stage_sees_what_the_trained_function_has_left(rule: str, label: str, stage: str) -> None:
    """A model with weights, of labels y, is f_0 plus a model without weights, of labels y - f_0."""
    content = content_of(rule, label, **copy.deepcopy(STAGES[stage]))
    whole = HostModel(make_spec(content))
    rest = HostModel(make_spec(content | {"expansion": {"vectors": content["expansion"]["vectors"]}}))
    x = inputs(400, 2)
    y = _labels(x, label).reshape(len(x), -1)
    y[50::61] += 40
    trained = model_of("frozen", label).predict(x).reshape(len(x), -1)
    shown = np.where(np.arange(3) == 1, np.nan, x[::1]) if stage == "hold" else x
    shown = np.where((np.arange(len(x)) % 7 == 3)[:, None], shown, x)
    if stage == "hold":
        whole_row, trained = HostModel(make_spec(content)), trained.copy()
        for t in range(len(x)):  # what stands in for a missing input is in f_0, too
            trained[t] = whole_row.predict(shown[t : t + 1]).ravel()
            full = shown[t].copy()
            full[1] = x[:t][~np.isnan(shown[:t, 1]), 1][-1] if np.isnan(full[1]) and t else full[1]
            trained[t] = model_of("frozen", label).predict(full[None]).ravel()
    for t in range(len(x)):
        row, own = shown[t : t + 1], y[t] if label == "one" else y[t : t + 1]
        left = y[t] - trained[t] if label == "one" else (y[t] - trained[t])[None]
        np.testing.assert_allclose(
            whole.predict(row).ravel(), trained[t] + rest.predict(row).ravel(), rtol=1e-7, atol=1e-7
        )
        if stage == "all" and t > 30:
            mine, other = (m.ask("interval", row)[0].reshape(2, -1) for m in (whole, rest))
            np.testing.assert_allclose(mine, trained[t] + other, rtol=1e-7, atol=1e-7)
        assert whole.update(row, own) == rest.update(row, left)
    assert snapshot.save(whole) != snapshot.save(model_of(rule, label, **copy.deepcopy(STAGES[stage])))


def test_limits_of_predictions_are_those_of_the_whole_answer() -> None:
    bounded = {"label": {"low": 2.0, "high": 4.0}, "interval": {}}
    model, x = model_of("expansion-nlms", **bounded), inputs(400, 3)
    model.update(x, _labels(x, "one"))
    answers, ends = model.predict(x).ravel(), model.ask("interval", x)[0].reshape(len(x), 2)
    assert ((answers >= 2) & (answers <= 4) & (ends >= 2).all(1) & (ends <= 4).all(1)).all()
    assert len(np.unique(answers)) > 100


# ------------------------------------------------------------------------------------------------- classes


def of_classes(known: int, named: int, seed: int = 0, **sections: Any) -> HostModel:
    """A network that was trained for ``known`` classes, of which ``named`` can come; all have the same hidden layer."""
    functions, rng = (1 if known == 2 else known), np.random.default_rng(seed)
    hidden = np.random.default_rng(99).normal(size=(9, 3))
    tables = {"vectors": hidden.tolist(), "weights": rng.normal(size=(9, functions)).tolist()}
    tables["bias"] = rng.normal(size=functions).tolist()
    label = {"classes": [f"c{i}" for i in range(named)]} | sections.pop("label", {})
    content = content_of(SOFTMAX, "classes", "relu", **({"kernel": {"function": "relu"}} | sections))
    return HostModel(make_spec(content | {"label": label, "expansion": tables}))


@pytest.mark.parametrize("known", [2, 3, 4])
def test_a_class_that_was_not_trained_changes_no_first_answer_and_is_learned(known: int) -> None:
    x = inputs(4000, 5)
    old, new = of_classes(known, known), of_classes(known, known + 1)
    first = old.classify(x)
    assert (new.classify(x) == first).all()
    probabilities = new.ask("probability", x)[0]
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-9)
    # where x[0] is large, it is the new one
    y = np.where(x[:, 0] > 1.5, known, first).astype(np.int32)
    new.update(x[:3000], y[:3000])
    found, came = new.classify(x[3000:]), y[3000:] == known
    assert np.mean(found != y[3000:]) < np.mean(came) and np.mean(found[came] == known) > 0.5
    new.reset()
    assert (new.classify(x) == first).all()


@pytest.mark.parametrize("weights", [None, [1.0, 1.0, 1.0, 900.0], "balanced"])
@pytest.mark.parametrize("mixture", [False, True])
@pytest.mark.parametrize("known", [2, 3])
def test_a_class_that_never_came_is_never_named(known: int, mixture: bool, weights: Any) -> None:
    """Nor is it told as more likely than a random label; the most likely class is the one that is named."""
    if weights and not mixture:
        return
    x, label = inputs(300, 7), {"weights": weights} if weights else {}
    first = of_classes(known, known).classify(x)
    model = of_classes(known, 4, label=label, **({"mixture": {}} if mixture else {}))
    for t in range(200):
        told, named = model.ask("probability", x)[0], model.classify(x)
        np.testing.assert_allclose(told.sum(1), 1, rtol=1e-9)
        assert (told[:, known:] <= 0.9 / 4).all() and (named < known).all()
        assert weights or (named == told.argmax(1)).all()
        if t == 0:
            assert weights or (named == first).all()
            assert (told[:, known:] <= 0.01).all()
        model.update(x[t : t + 1], np.array([t % known], np.int32))


@pytest.mark.exhaustive
@pytest.mark.in_turn
@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_of_a_head_are_calibrated(classes: int) -> None:
    """Over the second half: the mean of what is told for a class is its part of the labels, also among doubtful rows; and it is
    nearer to the labels than the softmax of the functions."""
    rng, x = np.random.default_rng(6), inputs(6000, 6)
    truth = of_classes(classes, classes, 1).predict(x).reshape(len(x), -1) / 3
    odds = np.exp(np.column_stack([np.zeros(len(x)), truth]) if classes == 2 else truth)
    y = (rng.random(len(x))[:, None] > np.cumsum(odds / odds.sum(1, keepdims=True), 1)[:, :-1]).sum(1).astype(np.int32)
    mixed, plain = of_classes(classes, classes, mixture={}), of_classes(classes, classes)
    told, alone, raw = np.empty((3, len(x), classes))
    for t in range(len(x)):
        row, label = x[t : t + 1], y[t : t + 1]
        told[t], alone[t] = (model.ask("probability", row)[0] for model in (mixed, plain))
        f = plain.predict(row).ravel()
        f = np.exp(f - f.max()) if classes > 2 else np.exp(np.append(0, f) - max(0, f[0]))
        raw[t] = f / f.sum()
        mixed.update(row, label)
        plain.update(row, label)
    half = slice(len(x) // 2, None)

    def loss(p: np.ndarray) -> float:
        return -float(np.mean(np.log(np.maximum(p[np.arange(len(x)), y], 1e-9))[half]))

    assert loss(alone) < loss(raw) and loss(told) < loss(alone)
    for c in range(classes):
        for low, high in ((0, 1), (0.1, 0.5), (0.5, 0.9)):
            within = (told[half, c] >= low) & (told[half, c] <= high)
            allowed = 0.04 + 1 / np.sqrt(max(within.sum(), 1))
            assert not within.any() or abs(told[half, c][within].mean() - (y[half] == c)[within].mean()) < allowed


# ------------------------------------------------------------------------------------------------- what it promises


@EACH
def test_labels_that_the_trained_function_explains_but_for_noise_cost_nothing(rule: str) -> None:
    """The gain: there is nothing to learn, and the error is that of the frozen model, within a hundredth."""
    x, rng = inputs(6000, 4), np.random.default_rng(4)
    frozen = model_of("frozen").predict(x).ravel()
    y = frozen + rng.normal(size=len(x))
    answers = model_of(rule).prequential(x, y)[0].ravel()
    assert np.mean((y - answers)[1000:] ** 2) < 1.02 * np.mean((y - frozen)[1000:] ** 2)
    free = model_of(rule, label={"gain": False}).prequential(x, y)[0].ravel()
    assert np.mean((y - free)[1000:] ** 2) > np.mean((y - answers)[1000:] ** 2)


@EACH
def test_100000_smooth_rows_in_float32_leave_no_growing_error(rule: str) -> None:
    """A slow walk on a circle, then one point for long, then the circle: after some rounds the errors are those of before."""
    model = model_of(rule, precision="float32", size=12, label={"center": True, "clip": 5.0}, linear={})
    t = np.arange(100_000)
    angle = np.where((t > 40_000) & (t < 80_000), 0.3, t / 300)
    x = np.column_stack([np.cos(angle), np.sin(angle), np.cos(angle / 7)]) + np.array(SCALED["center"])
    y = np.sin(2 * angle) + 0.5 * np.cos(angle / 3) + 100
    answers, statuses = model.prequential(x, y)[:2]
    error = np.abs(y - answers.ravel())
    assert np.isfinite(error).all() and (np.asarray(statuses) == 0).all()
    assert snapshot.save(model) and error[95_000:].max() < 1.5 * error[2_000:40_000].max() + 1e-3
    assert error[60_000:79_000].max() < 0.01


# ------------------------------------------------------------------------------------------------- as C


def test_the_tables_are_const_and_ram_holds_what_is_learned() -> None:
    """N + 1 numbers for each output, two of the gain, three and four counts of answers that wait, two counters, whether learning is
    off, and doubt; no matrix with nlms."""
    size = 9
    states = {
        rule: build(make_spec(content_of(rule, precision="float32"))).figures["state_bytes"] for rule in OF_NUMBERS
    }
    assert states["expansion-nlms"] == 4 * (size + 1 + 2 + 3 + 4 + 2) + DOUBT
    assert states["expansion-rls"] == states["expansion-nlms"] + 4 * (size + 1) * (size + 2) // 2
    code = build(make_spec(content_of("expansion-nlms", precision="float32"))).files["src/m.c"]
    assert "const M_FLASH float m_vectors" in code and "m_frequencies" not in code


# ------------------------------------------------------------------------------------------------- refusals

REFUSED: tuple[tuple[Content, str], ...] = (
    ({"expansion": None}, r"\[expansion\] is missing; expansion-nlms must have vectors"),
    ({"input": {"standardise": True}}, r"standardise belongs to .*; expansion-nlms does not have it: leave it out"),
    (
        {"expansion": {"decision": "ovo"}},
        'decision is "ovo", whose functions separate pairs of classes; expansion-nlms',
    ),
    ({"expansion": {"weights": None}}, r"\[expansion\] bias is given without weights"),
    ({"expansion": {"bias": None}}, r"\[expansion\] bias is missing"),
    ({"expansion": {"weights": [[1.0]]}}, r"weights has 1 rows; it must have 9, one for each vector"),
    ({"learning": {"forgetting": 0.9}}, "forgetting belongs to .*; expansion-nlms"),
    ({"kernel": {"function": "polynomial"}, "input": {"max_abs": 1e6}}, "overflow"),
    ({"kernel": {"function": "linear"}, "input": {"max_abs": 1e18}, "linear": {}}, "overflow"),
)


@pytest.mark.parametrize(("change", "sentence"), REFUSED, ids=str)
def test_what_does_not_go_together_is_refused(change: Content, sentence: str) -> None:
    content = content_of("expansion-nlms", precision="float32")
    for section, keys in change.items():
        merged = content.get(section, {}) | keys if isinstance(keys, dict) else keys
        if section == "kernel" and keys["function"] == "linear":
            merged = keys
        content[section] = merged
        if isinstance(merged, dict):
            content[section] = {key: value for key, value in merged.items() if value is not None}
    with pytest.raises(UserError, match=sentence):
        make_spec({key: value for key, value in content.items() if value is not None})


def test_of_classes_stages_of_numbers_are_refused() -> None:
    for keys, sentence in (({"gain": False}, "gain is for labels that are numbers"), ({"clip": 5.0}, "clip is for")):
        with pytest.raises(UserError, match=sentence):
            make_spec(content_of("expansion-nlms", "classes", label=keys))
    learned = {"expansion": {"calibration": [[-1.0, 0.0]] * 3}, "mixture": {}}
    with pytest.raises(UserError, match=r"calibration fixes the probabilities, but \[mixture\] learns them"):
        make_spec(content_of("expansion-nlms", "classes", **learned))
