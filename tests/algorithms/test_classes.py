"""Classes by waves and by a mixture with a linear expert: twins from the formulas, bounds, and what is promised."""

import math

import numpy as np
import pytest

from pykernel.algorithms.expert import (
    EXPERT_KNOWN,
    EXPERT_VARIANCE,
    FIXED_AT,
    RANDOM_LEAST,
    RANDOM_MOST,
    SHARP_LEAST,
    SHARP_MOST,
)
from pykernel.algorithms.poll import (
    RANDOM_FIRST,
    RANDOM_RATE,
    SHARP_FIRST,
    SHARP_RATE,
    SHARP_STEP,
    TOLD_RATE,
)
from pykernel.algorithms.spectrum import FREQUENCY_MOST, WEIGHT_MOST
from pykernel.algorithms.spectrum_softmax import FLAT
from pykernel.dialect import FLOAT64
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.host.simulation import Simulation
from pykernel.host.snapshot import load, save
from pykernel.spec.families.spectrum import count_of, orthogonal_features
from pykernel.spec.model import make_spec
from pykernel.spec.stages import GAIN_HORIZON
from tests.support.following import undoubted
from tests.support.hard_streams import streams_of_classes

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


class Told:
    """Probabilities p as they are told: (1 - e) p^s / sum p^s + e / k, and how s and e follow the labels."""

    def __init__(self):
        constants = TOLD_RATE, SHARP_STEP, SHARP_LEAST, SHARP_MOST, RANDOM_FIRST, RANDOM_RATE, RANDOM_LEAST, RANDOM_MOST
        self.rate, self.step, self.least, self.most, self.e, self.e_rate, *self.e_range = (
            float(each.value(FLOAT64)) for each in constants
        )
        self.s = 1.0

    def __call__(self, p):
        z = self.s * np.log(np.maximum(p, 2.0**-24))
        self.c = np.exp(z) / np.exp(z).sum()
        return (1 - self.e) * self.c + self.e / len(p)

    def learn(self, p, label):
        q = self(p)[label]
        guess = self.e / len(p) / q
        slope = (self.c - (np.arange(len(p)) == label)) @ (self.s * np.log(np.maximum(p, 2.0**-24)))
        part = min(max(self.rate * (1 - guess) * slope, -self.step), self.step)
        self.s = min(max(self.s * (1 - part), self.least), self.most)
        self.e = min(max(self.e + self.e_rate * (guess - self.e), self.e_range[0]), self.e_range[1])


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


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("classes", [2, 3])
def test_the_rule_is_its_formulas(classes):
    rng = np.random.default_rng(0)
    spec = spec_of(classes=classes, mixture=False, features=4)
    model, twin, told = HostModel(spec), Waves(spec), Told()
    x, y = stream(rng, 3000, classes, wrong=0.1)
    for t in range(len(x)):
        z = seen(model, x[t])
        if t % 7 == 0 and t > 16:
            np.testing.assert_allclose(np.ravel(model.probability(x[t])), told(twin.chances(z)), atol=1e-9)
        if t >= spec.input.warmup:
            told.learn(twin.chances(z), y[t])
            twin.learn(z, y[t])
        assert model.update(x[t], int(y[t])) >= 0
    np.testing.assert_allclose(model.memory.field("frequencies"), twin.w, rtol=1e-7, atol=1e-9)
    found = [model.memory.field(name)[0] for name in ("told_sharpness", "random_part")]
    np.testing.assert_allclose(found, [told.s, told.e], rtol=1e-7)
    assert told.e > 0.03


def score(f, label, p):
    """Brier's score, and 1 more for a wrong class."""
    right = np.arange(len(p)) == label
    best = int(f[0] > 0) if len(f) == 1 else int(f.argmax())
    return np.square(p - right).sum() + float(best != label)


@pytest.mark.parametrize(
    ("rule", "classes"), [("spectrum-softmax", 3), ("spectrum-softmax", 2), ("klms", 3), ("krls-t", 2)]
)
@pytest.mark.in_turn
def test_the_probability_is_the_mean_of_the_models_and_of_least_squares(rule, classes):
    rng = np.random.default_rng(1)
    first, rate, step = (float(c.value(FLOAT64)) for c in (SHARP_FIRST, SHARP_RATE, SHARP_STEP))
    least, most = (float(c.value(FLOAT64)) for c in (SHARP_LEAST, SHARP_MOST))
    alone, mixed = HostModel(spec_of(rule, classes, mixture=False)), HostModel(spec_of(rule, classes))
    functions, learns_own = (1 if classes == 2 else classes), rule != "spectrum-softmax"
    sharp, wrong, count, told = [first if learns_own else 1.0, first], np.zeros(2), 0, Told()
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
        np.testing.assert_allclose(found, told(expected), atol=1e-8)
        answers = 2 * told(expected) - 1
        np.testing.assert_allclose(np.ravel(mixed.predict(x[t])), answers[-functions:], atol=1e-8)
        assert int(np.ravel(mixed.classify(x[t]))[0]) == found.argmax() == expected.argmax()
        if t >= mixed.spec.input.warmup:
            told.learn(expected, y[t])
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


def weighted(spec, weights):
    content = spec.model_dump(exclude_unset=True)
    return make_spec(content | {"label": {**content["label"], "weights": weights}})


@pytest.mark.parametrize(
    ("rule", "classes"), [("spectrum-softmax", 3), ("spectrum-softmax", 2), ("klms", 3), ("krls-t", 2)]
)
def test_the_class_that_is_named_has_the_largest_weight_times_probability(rule, classes):
    """And nothing else changes: not what is learned, nor the probabilities; balanced weights are 1 / sqrt of shares."""
    plain, weights = spec_of(rule, classes), np.array([1.0, 7.0, 0.2])[:classes]
    x, y = stream(np.random.default_rng(4), 1500, classes, wrong=0.2)
    y = np.where(np.random.default_rng(5).random(1500) < 0.7, 0, y)
    asked = x[:400]
    model, given, balanced = (
        HostModel(each) for each in (plain, weighted(plain, weights.tolist()), weighted(plain, "balanced"))
    )
    for each in (model, given, balanced):
        each.prequential(x, y)
        assert each.probability(asked).tobytes() == model.probability(asked).tobytes()
    assert undoubted(given) == undoubted(model)
    shares = np.bincount(y[-1200:], minlength=classes) / 1200
    told = np.ravel(balanced.memory.field("class_share"))
    np.testing.assert_allclose(told, shares[-len(told) :], atol=0.03)
    own = np.append(1 - told, told) if classes == 2 else told
    for each, w in ((given, weights), (balanced, own**-0.5)):
        expected = w * each.probability(asked)
        expected = 2 * expected / expected.sum(axis=1, keepdims=True) - 1
        found = each.predict(asked).reshape(400, -1)
        np.testing.assert_allclose(found, expected[:, -found.shape[1] :], atol=1e-8)
        assert (np.ravel(each.classify(asked)) == expected.argmax(axis=1)).all()
        assert (np.ravel(each.classify(asked)) != np.ravel(model.classify(asked))).any()


def test_balanced_weights_name_a_rare_class():
    """Machines of which few fail, and no function of the inputs says surely which: half of what F1 lacks comes back."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(12_000, 3))
    chance = 1 / (1 + np.exp(5.5 - 2 * x[:, 0] - x[:, 1] ** 2))
    y = (rng.random(len(x)) < chance).astype(int)
    plain = make_spec({"name": "m", "input": {"dim": 3}, "label": {"classes": ["runs", "fails"]}})

    def f1(named):
        named, truth = np.ravel(named)[4000:], y[4000:]
        return 2 * (named & truth).sum() / max(1, named.sum() + truth.sum())

    found = [
        f1(HostModel(spec).prequential(x, y, question="classify")[0]) for spec in (plain, weighted(plain, "balanced"))
    ]
    best = max(f1((chance > threshold).astype(int)) for threshold in np.linspace(0.02, 0.98, 49))
    assert 0.02 < y.mean() < 0.1 and found[0] < 0.7 * best, (y.mean(), found, best)
    assert found[1] - found[0] > 0.5 * (best - found[0]), (found, best)
    told = []
    for spec, labels in ((plain, y), (weighted(plain, "balanced"), y), (plain, (x[:, 0] > 0).astype(int))):
        simulation = Simulation(spec)
        assert [*simulation.run(x, labels)]
        told.append({each["test"] for each in simulation.report()["advice"]})
    assert told == [{"a class is missed"}, set(), set()]


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
    "collinear": 0.15, "one class": 0.001, "one class, then another": 0.001, "sorted": 0.02, "separable": 0.03, "steps": 0.5,
}  # fmt: skip
"""Streams whose classes can be told apart; in "steps", all inputs change their scale by 10^6 every 1,000 rows."""


@pytest.mark.in_turn(9)
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
        assert (p[np.arange(500), model.classify(x[:500])] == p.max(axis=1)).all(), name
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


REFUSED = [
    ({"label": {}}, r"\[label\] classes is missing; spectrum-softmax separates classes"),
    (
        {"learning": {"rule": "spectrum-softmax", "noise": 0.1}},
        "noise belongs to krls-t, spectrum-ekf and spectrum-nlms; spectrum-softmax does not have it",
    ),
    ({"learning": {"rule": "spectrum-nlms", "frequency_eta": 0.1}}, "frequency_eta belongs to spectrum-softmax"),
    ({"linear": {}}, r"\[linear\] is for labels that are numbers; \[mixture\] is the linear part for classes"),
    (
        {"label": {"classes": ["a", "b"], "weights": "balanced"}},
        r"\[label\] weights needs the class probabilities that a linear expert computes; add \[mixture\]",
    ),
    (
        {"label": {"classes": ["a", "b"], "weights": [1.0, 2, 3]}, "mixture": {}},
        "must hold one number for each of the 2 classes",
    ),
    (
        {"label": {"classes": ["a", "b"], "weights": [1.0, 0.0]}, "mixture": {}},
        "outside the range from 0.0001 to 10000",
    ),
    (
        {"label": {"weights": "balanced"}, "learning": {"rule": "klms"}},
        r"\[label\] weights is for classes; leave it out",
    ),
    ({"mixture": {}, "input": {"dim": 2}}, r"\[mixture\] needs inputs of known magnitude; add standardise"),
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


def test_simulate_tells_the_log_loss_of_what_was_asked_before_each_label_came():
    rng = np.random.default_rng(6)
    x, y = stream(rng, 1200, 3, wrong=0.1)
    y = np.where(rng.random(1200) < 0.1, -1, y)
    y[:9], delay = -1, 4
    simulation = Simulation(spec_of("klms"), delay)
    for part in np.split(np.arange(1200), [1, 7, 150, 152]):
        for _ in simulation.run(x[part], y[part]):
            pass
    found = simulation.report()["log_loss"]
    model, came, losses = HostModel(spec_of("klms")), np.ones(3), []
    for t in range(1200):
        # scored are rows after the first label that is known
        known = y[: max(0, t - delay)]
        p = model.probability(x[t])[0].astype(float)
        model.expect(x[t])
        losses.append([math.nan] * 2 if y[t] < 0 or (known < 0).all() else -np.log([p[y[t]], came[y[t]] / came.sum()]))
        if t >= delay and y[t - delay] >= 0:
            model.update(x[t - delay], int(y[t - delay]))
            came[y[t - delay]] += 1
    for part, first in (("all", 0), ("second_half", 600)):
        np.testing.assert_allclose([*found[part].values()], np.nanmean(losses[first:], axis=0), rtol=1e-6)
    assert found["second_half"]["model"] < 0.9 * found["second_half"]["base rate"]
    simulation = Simulation(spec_of("klms", mixture=False))
    assert [*simulation.run(x, y)] and "log_loss" not in simulation.report()


def test_where_answers_round_to_one_number_the_class_is_none_of_a_smaller_probability():
    """64 classes by chance: 2 q - 1 is coarser than q, and near ties are frequent."""
    rng = np.random.default_rng(7)
    content = spec_of("klms", precision="float32").model_dump(exclude_unset=True)
    spec = make_spec({**content, "label": {"classes": [f"c{i}" for i in range(64)]}})
    model = HostModel(spec)
    x = rng.normal(size=(4000, 3))
    model.update(x[:1000], rng.integers(0, 64, 1000))
    # nearly the same function for all classes
    for name in ("alpha", "expert_weights"):
        values = model.memory.field(name)
        values *= np.float32(1e-6)
    p, y = model.probability(x), model.predict(x)
    ties = (y == y.max(axis=1, keepdims=True)).sum(axis=1)
    assert (ties > 1).mean() > 0.05
    assert (p[np.arange(len(p)), model.classify(x)] == p.max(axis=1)).all()
    assert (np.abs(p.sum(axis=1) - 1) < 4e-6).all()
