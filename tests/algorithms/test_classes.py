"""Classes by waves and by a mixture with a linear expert: twins from the formulas, bounds, and what is promised."""

import math

import numpy as np
import pytest

from benchmarks.host.spectrum_stability import streams_of_classes
from pykernel.algorithms.expert import EXPERT_KNOWN, EXPERT_VARIANCE, FIXED_AT, SHARP_MOST
from pykernel.algorithms.poll import SHARP_FIRST, SHARP_LEAST, SHARP_RATE, SHARP_STEP
from pykernel.algorithms.spectrum import FREQUENCY_MOST, WEIGHT_MOST
from pykernel.algorithms.spectrum_softmax import FLAT
from pykernel.dialect import FLOAT64
from pykernel.errors import UserError
from pykernel.gen.check import check
from pykernel.host.model import HostModel
from pykernel.host.snapshot import load, save
from pykernel.spec.families.spectrum import count_of, orthogonal_features
from pykernel.spec.model import make_spec
from pykernel.spec.stages import GAIN_HORIZON

RULES = ("klms", "krls-t", "fb-krls", "spectrum-nlms", "nystrom-rls", "okfeb")


def spec_of(rule="spectrum-softmax", classes=3, precision="float64", mixture=True, forgetting=0.99, **learning):
    content = {
        "name": "m",
        "precision": precision,
        "input": {"dim": 3, "standardise": True, "clip": 3.0, "max_abs": 1e6},
        "label": {"classes": list("abcd")[:classes]},
        "kernel": {"sigma": 1.5},
        "learning": {"rule": rule} | learning,
    }
    if not rule.startswith("spectrum"):
        content["reduction"] = {"n_max": 6}
    if rule == "nystrom-rls":
        content |= {"basis": {"method": "stream"}, "learning": {"rule": rule, "samples": 16}}
    if rule == "okfeb":
        content["learning"]["features"] = 4
        content["subspace"] = {"head": "logistic"}
    return make_spec(content | ({"mixture": {"forgetting": forgetting}} if mixture else {}))


def stream(rng, n, classes, wrong=0.0):
    """Classes that no plane separates, in raw inputs."""
    z = rng.normal(size=(n, 3))
    y = np.digitize(np.sin(2 * z[:, 0]) + z[:, 1], [-0.4, 0.6, 1.2][: classes - 1])
    y = np.where(rng.random(n) < wrong, rng.integers(0, classes, n), y)
    return z * [0.1, 10.0, 1.0] + [5.0, -2.0, 0.0], y


def softmax(f):
    """Probabilities of each class; two classes have -f and f."""
    f = np.append(-f, f) if len(f) == 1 else f
    e = np.exp(f - f.max())
    return e / e.sum()


class Waves:
    """Softmax regression of a plane and waves, with a function for each class, also of two."""

    def __init__(self, spec):
        self.n, self.d, self.sigma = count_of(spec), spec.dim, spec.length_scale
        self.eta, self.frequency_eta = spec.learning.eta, spec.learning.frequency_eta
        self.w = orthogonal_features(spec.learning.seed, self.n, spec.dim).copy()
        self.u = np.zeros((len(spec.label.classes), 1 + spec.dim + 2 * self.n))

    def h(self, x):
        z = x / self.sigma
        angles = self.w @ z
        return np.concatenate([[1.0], math.sqrt(self.d) * z, np.cos(angles), np.sin(angles)])

    def chances(self, x):
        return softmax(self.u @ self.h(x))

    def learn(self, x, label):
        h, z, r = self.h(x), x / self.sigma, self.chances(x)
        r[label] -= 1
        waves = self.u[:, 1 + self.d :]
        cosines, sines = h[1 + self.d : 1 + self.d + self.n], h[1 + self.d + self.n :]
        d = waves[:, self.n :] * cosines - waves[:, : self.n] * sines
        share = self.frequency_eta / (1 + np.square(d).sum()) / (z @ z + FLAT.value(FLOAT64))
        self.w -= share * np.outer(r @ d, z)
        self.u -= self.eta * np.outer(r, h) / (h @ h)


def seen(model, x):
    """The input as the rule sees it."""
    field = model.memory.field
    return np.clip((x - field("mean")) * field("scale"), -3, 3)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_rule_is_its_formulas(classes):
    rng = np.random.default_rng(0)
    spec = spec_of(classes=classes, mixture=False, features=4)
    model, twin = HostModel(spec), Waves(spec)
    x, y = stream(rng, 3000, classes, wrong=0.1)
    for t in range(len(x)):
        z = seen(model, x[t])
        if t % 7 == 0 and t > 16:
            np.testing.assert_allclose(np.ravel(model.probability(x[t])), twin.chances(z), atol=1e-9)
        if t >= spec.input.warmup:
            twin.learn(z, y[t])
        assert model.update(x[t], int(y[t])) >= 0
    np.testing.assert_allclose(model.memory.field("frequencies"), twin.w, rtol=1e-7, atol=1e-9)


def score(f, label, p):
    """Brier's score, and 1 more for a wrong class."""
    right = np.arange(len(p)) == label
    best = int(f[0] > 0) if len(f) == 1 else int(f.argmax())
    return np.square(p - right).sum() + float(best != label)


@pytest.mark.parametrize(
    ("rule", "classes"), [("spectrum-softmax", 3), ("spectrum-softmax", 2), ("klms", 3), ("krls-t", 2)]
)
def test_the_probability_is_the_mean_of_the_models_and_of_least_squares(rule, classes):
    rng = np.random.default_rng(1)
    first, rate, step = (float(c.value(FLOAT64)) for c in (SHARP_FIRST, SHARP_RATE, SHARP_STEP))
    least, most = (float(c.value(FLOAT64)) for c in (SHARP_LEAST, SHARP_MOST))
    alone, mixed = HostModel(spec_of(rule, classes, mixture=False)), HostModel(spec_of(rule, classes))
    functions, learns_own = (1 if classes == 2 else classes), rule != "spectrum-softmax"
    sharp, wrong, count = [first if learns_own else 1.0, first], np.zeros(2), 0
    offset = scale = weights = p = None
    x, y = stream(rng, 500, classes)
    for t in range(len(x)):
        given = [np.ravel(alone.predict(x[t])).astype(float), np.zeros(functions)]
        if weights is not None:
            phi = np.append((x[t] - offset) * scale, 1.0)
            given[1] = weights @ phi
        chances = [softmax(s * f) for s, f in zip(sharp, given, strict=True)]
        expected = chances[0]
        if count >= EXPERT_KNOWN:
            shares = wrong**-8.0
            expected = (shares[0] * chances[0] + shares[1] * chances[1]) / shares.sum()
        found = np.ravel(mixed.probability(x[t]))
        np.testing.assert_allclose(found, expected, atol=1e-8)
        answers = 2 * expected - 1
        np.testing.assert_allclose(np.ravel(mixed.predict(x[t])), answers[-functions:], atol=1e-8)
        assert int(np.ravel(mixed.classify(x[t]))[0]) == found.argmax()
        if weights is not None:
            count = min(count + 1, GAIN_HORIZON)
            right = np.arange(classes) == y[t]
            for k in range(2):
                wrong[k] += 2 / (count + 1) * (score(given[k], y[t], chances[k]) - wrong[k])
                both = np.append(-given[k], given[k]) if classes == 2 else given[k]
                if k == 1 or learns_own:
                    part = rate * float((chances[k] - right) @ (sharp[k] * both))
                    sharp[k] = min(max(sharp[k] * (1 - min(max(part, -step), step)), least), most)
        elif mixed.memory.field("observed")[0] >= FIXED_AT:
            offset, scale = mixed.memory.field("mean").copy(), mixed.memory.field("scale").copy()
            phi = np.append((x[t] - offset) * scale, 1.0)
            weights, p = np.zeros((functions, 4)), np.eye(4) * EXPERT_VARIANCE.value(FLOAT64)
        if weights is not None:
            target = np.where(np.arange(classes) == y[t], 1.0, -1.0)[-functions:]
            error = np.where(target * (weights @ phi) >= 1, 0, target - weights @ phi)
            if error.any():
                gain = p @ phi / (0.99 + phi @ p @ phi)
                weights = weights + np.outer(error, gain)
                p = (p - np.outer(gain, phi @ p)) / 0.99
        for each in (alone, mixed):
            assert each.update(x[t], int(y[t])) >= 0


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_takes_the_expert_and_is_hardly_worse_than_it_on_a_plane(rule):
    """Three classes by planes, which no model of six vectors can follow, and labels of which some are wrong."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2000, 3)) * [0.1, 10.0, 1.0]
    y = (x @ np.array([[0.0, 20.0, -20.0], [0.0, 0.2, 0.2], [0.0, 2.0, 1.0]])).argmax(1)
    y = np.where(rng.random(len(y)) < 0.2, rng.integers(0, 3, len(y)), y)
    linear = make_spec({
        "name": "m", "input": {"dim": 3, "standardise": True}, "label": {"classes": ["a", "b", "c"]},
        "learning": {"rule": "rls", "forgetting": 0.999},
    })  # fmt: skip
    wrong = []
    for spec in (spec_of(rule, precision="float32", forgetting=0.999), linear):
        found = HostModel(spec).prequential(x, y, question="classify")[0]
        wrong.append(np.mean(np.ravel(found)[1000:] != y[1000:]))
    assert wrong[0] <= 1.1 * wrong[1], (rule, wrong)


MOST_WRONG = {
    "collinear": 0.15, "one class": 0.001, "one class, then another": 0.001, "sorted": 0.02, "separable": 0.03,
}  # fmt: skip
"""Streams whose classes can be told apart."""


@pytest.mark.parametrize(("classes", "mixture"), [(2, True), (3, False)])
def test_no_stream_leads_out_of_the_bounds_in_float32(classes, mixture, exhaustive):
    rng = np.random.default_rng(3)
    rows = 1_000_000 if exhaustive else 10_000
    for name, x, y in streams_of_classes(rng, rows, classes):
        model = HostModel(spec_of(classes=classes, precision="float32", mixture=mixture, forgetting=0.999))
        answers, statuses = model.prequential(x, y, question="classify")
        assert (statuses >= 0).all(), name
        wrong = (np.ravel(answers) != y).reshape(5, -1).mean(axis=1)
        if name not in MOST_WRONG:  # no class can be told: what is guessed must not become worse
            assert wrong[-1] <= wrong[1] + 0.05, (name, wrong)
        else:
            assert wrong[-1] <= MOST_WRONG[name], (name, wrong)
        p = model.probability(x[:500])
        assert (np.abs(p.sum(axis=1) - 1) < 4e-7).all() and (p >= 0).all(), name
        field = model.memory.field
        for weights in ("a", "b", "plane"):
            assert np.abs(field(weights)).max() < 0.1 * WEIGHT_MOST.value(model.spec.real), (name, weights)
        assert np.abs(field("frequencies")).max() <= FREQUENCY_MOST.value(model.spec.real), name
        other = HostModel(model.spec)
        load(other, save(model))
        assert save(other) == save(model), name


def test_a_model_without_a_sample_says_that_all_classes_are_alike():
    for mixture in (False, True):
        model = HostModel(spec_of(mixture=mixture))
        np.testing.assert_allclose(np.ravel(model.probability(np.zeros(3))), 1 / 3)


@pytest.mark.parametrize(("field", "wrong"), [
    ("plane", 1e5), ("plane", float("nan")), ("started", 2), ("started", 0), ("frequencies", 33.0), ("expert_sharpness", 31.0),
    ("expert_sharpness", -1.0), ("model_wrong", -1e-3), ("expert_wrong", 5.0), ("pivots", -1.0), ("expert_scale", 0.0),
])  # fmt: skip
def test_forged_states_are_refused_and_lead_nowhere(field, wrong):
    rng = np.random.default_rng(4)
    model = HostModel(spec_of(precision="float32"))
    x, y = stream(rng, 300, 3)
    model.update(x, y)
    model.memory.field(field)[...] = wrong
    with pytest.raises(UserError):
        load(HostModel(model.spec), save(model))
    # memory that was overwritten: answers stay numbers
    if np.isfinite(wrong):
        assert np.isfinite(model.probability(x[:5])).all()


def test_extremes_within_the_ranges_stay_numbers():
    """Whatever a restored state may hold: probabilities are numbers whose sum is 1, and learning goes on."""
    rng = np.random.default_rng(5)
    x, y = stream(rng, 200, 3)
    for rule in ("spectrum-softmax", "klms"):
        model = HostModel(spec_of(rule, precision="float32"))
        model.update(x, y)
        names = ("a", "b", "plane", "frequencies") if rule == "spectrum-softmax" else ("model_sharpness",)
        for name in (*names, "expert_weights", "factor", "pivots", "expert_sharpness", "model_wrong", "expert_wrong"):
            struct = next(s for s in model.memory.structs if name in s.fields)
            assert name in struct.ranges, name
        for sign in (1.0, -1.0):
            for name, size in (
                ("expert_weights", 1024.0),
                ("factor", 1e4),
                *((n, 1024.0) for n in names if n in "a b plane"),
            ):
                model.memory.field(name)[...] = sign * size
            model.memory.field("pivots")[...] = 1e6
            load(model, save(model))
            p = model.probability(x)
            assert (np.abs(p.sum(axis=1) - 1) < 4e-7).all()
            assert (model.update(x, y) >= 0).all() and np.isfinite(model.probability(x)).all()


@pytest.mark.parametrize(("rule", "classes", "precision", "mixture"), [
    ("spectrum-softmax", 3, "float32", True), ("klms", 2, "float64", True),
])  # fmt: skip
def test_host_and_c_compute_the_same_bits_with_probabilities(rule, classes, precision, mixture):
    spec = spec_of(rule, classes, precision, mixture)
    assert "probability" in [entry.name for entry in spec.program.entries_for(spec.config)]
    assert check(spec, samples=500, levels=["-O2"], compilers=["gcc"]).ok


REFUSED = [
    ({"label": {}}, r"\[label\] classes is missing; spectrum-softmax tells classes apart"),
    (
        {"learning": {"rule": "spectrum-softmax", "noise": 0.1}},
        "noise is of krls-t, spectrum-ekf and spectrum-nlms; spectrum-softmax does not have it",
    ),
    ({"learning": {"rule": "spectrum-nlms", "frequency_eta": 0.1}}, "frequency_eta is of spectrum-softmax"),
    ({"linear": {}}, r"\[linear\] is for labels that are numbers; \[mixture\] is the linear part for classes"),
    ({"mixture": {}, "input": {"dim": 2}}, r"\[mixture\] needs inputs of a known size; add standardise"),
]


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    base = {
        "name": "m",
        "input": {"dim": 2, "standardise": True},
        "label": {"classes": ["a", "b"]},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "spectrum-softmax"},
    }
    with pytest.raises(UserError, match=says):
        make_spec(base | change)
