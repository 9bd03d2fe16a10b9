"""A Kalman filter in int16: its twin in unbounded integers, what bounds P, what is proved, and what is learned."""

import math

import numpy as np
import pytest

from pykernel.algorithms.doubt import DoubtStatus
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.families.int16_spectrum import NUMBERS_MOST
from pykernel.spec.model import make_spec
from tests.support.following import is_valid
from tests.support.hard_streams import streams_of_numbers
from tests.support.random_specs import random_spec
from tests.support.specs import assert_refused_in_int16
from tests.support.whole_filter import WholeFilter

RULE = "spectrum-ekf"


def spec_of(precision="int16", dim=3, sigma=1.2, reach=3.0, label=None, staged=False, **learning):
    content = {
        "name": "wave",
        "precision": precision,
        "input": {"dim": dim, "max_abs": reach},
        "label": label if "classes" in (label or {}) else {"max_abs": 4.0} | (label or {}),
        "kernel": {"sigma": sigma},
        "learning": {"rule": RULE} | learning,
    }
    if staged:
        content |= {"label": content["label"] | {"center": True, "gain": True}, "linear": {}}
        content["input"] |= {"scale": [1.0] * dim} if precision == "int16" else {"standardise": True, "clip": 3.0}
    return make_spec(content)


def stream(rng, n, dim=3, outputs=1):
    x = np.clip(rng.normal(size=(n, dim)), -3, 3)
    y = np.sin(2 * x[:, :1] + np.arange(outputs)) + 0.3 * x[:, :1] * x[:, -1:] + 0.05 * rng.normal(size=(n, outputs))
    return x, np.clip(y, -4, 4)


# ------------------------------------------------------------------------------------------------------ the twin

TWINNED = {
    "one input": ({"dim": 1}, 1.0),
    "two": ({"dim": 2, "noise": 0.01}, 1.0),
    "three": ({}, 1.0),
    "three, narrow": ({"sigma": 0.05, "noise": 1e-3}, 1.0),
    "quiet labels": ({"noise": 0.1, "forgetting": 0.5}, 1e-3),
    "loud noise": ({"noise": 1e3, "forgetting": 0.9999}, 1.0),
    "five in blocks": ({"dim": 5, "features": 6, "block": 2}, 1.0),
    "eight": ({"dim": 8, "sigma": 2.8}, 1.0),
    "sixteen": ({"dim": 16, "sigma": 4.0}, 0.3),
    "one wave": ({"dim": 1, "features": 1, "noise": 1e-3}, 1.0),
    "three outputs": ({"label": {"outputs": 3}}, 1.0),
    "two classes": ({"label": {"classes": ["a", "b"]}}, 1.0),
    "three classes": ({"label": {"classes": ["a", "b", "c"]}}, 1.0),
}


@pytest.mark.exhaustive
@pytest.mark.in_turn(13)
@pytest.mark.parametrize("name", TWINNED)
def test_the_twin_in_unbounded_integers_has_the_same_numbers(name, exhaustive):
    """Answers and the whole state, so that no sum of the rule has wrapped around."""
    keys, size = TWINNED[name]
    spec = spec_of(**keys)
    model, twin = HostModel(spec), WholeFilter(spec)
    rows = (10_000 if exhaustive else 1_000) // (1 + spec.dim // 8)
    x, y = stream(np.random.default_rng(4), rows, spec.dim, spec.outputs)
    # a step, rows of zeros, and inputs at their limits
    y[rows // 2 :] *= -size
    y[: rows // 2] *= size
    x[rows // 4 : rows // 4 + 20] = 0
    x[rows // 3 : rows // 3 + 20] = 3 * np.sign(x[rows // 3 : rows // 3 + 20])
    classes = len(spec.label.classes or ())
    labels = np.digitize(y[:, 0], [-0.3, 0.3][: classes - 1]).astype(np.int32) if classes else y
    made = spec.conversion
    converted = ((spec.raw_inputs(x) - made.center) * made.factor + made.rounding) >> made.shift
    for t, z in enumerate(converted):
        if classes:
            taught = [spec.config.one if c == labels[t] else -spec.config.one for c in range(spec.outputs)]
            if classes == 2:
                taught = [spec.config.one if labels[t] == 1 else -spec.config.one]
        else:
            taught = [int(e) for e in spec.raw_labels(labels[t])]
        own = twin.answers(twin.waves(z))
        np.testing.assert_array_equal(np.ravel(model.predict(x[t])) * 2.0**spec.label_shift, own, f"row {t}")
        assert model.update(x[t], labels[t] if classes or spec.outputs > 1 else labels[t, 0]) == 0
        twin.learn(z, taught)
        if t % 50 == 0 or t == rows - 1:
            for field, expected in twin.fields().items():
                np.testing.assert_array_equal(model.memory.field(field), expected, f"{field}, row {t}")
    assert twin.covariance.renewed == 1, "P never begins anew"


# -------------------------------------------------------------------------------------------------- what bounds P


def parts_of_prior(model):
    """The eigenvalues of P in parts of P0: (blocks, size), ascending."""
    prior = np.sqrt(model.spec.config.prior.astype(float))
    size, rows = len(prior), np.tril_indices(len(prior))
    found = []
    for packed in model.memory.field("covariance"):
        p = np.zeros((size, size))
        p[rows] = packed
        p = p + np.tril(p, -1).T
        found.append(np.linalg.eigvalsh(p / np.outer(prior, prior)))
    return np.array(found)


HARD = [(1, {"noise": 1e-3}), (3, {}), (3, {"noise": 1e-2}), (8, {"noise": 0.1}), (16, {}), (3, {"features": 8, "block": 8})]  # fmt: skip


@pytest.mark.in_turn(13)
@pytest.mark.parametrize(("dim", "learning"), HARD, ids=str)
def test_no_stream_leads_p_out_of_its_bounds(dim, learning, exhaustive):
    """(1 - lambda) P0 <= P <= P0 but for rounding, and learning leads to no state that ``valid`` refuses."""
    rows = 1_000_000 if exhaustive else 10_000
    for name, x, y in streams_of_numbers(np.random.default_rng(1), rows):
        x = np.clip(np.tile(x, (1, -(-dim // 3)))[:, :dim], -9, 9) / 3
        y = np.clip(y, -1e5, 1e5)
        spec = spec_of(
            dim=dim, sigma=0.7 * math.sqrt(dim), label={"max_abs": float(1.01 * np.abs(y).max())}, **learning
        )
        model, bound = HostModel(spec), 2.0**-spec.config.forgets
        for part in np.array_split(np.arange(rows), 20):
            _, statuses = model.prequential(x[part], y[part])
            assert (statuses >= 0).all(), name
            if statuses[-1] == DoubtStatus.RESTARTED:
                continue  # nothing is left
            parts = parts_of_prior(model)
            assert parts.min() >= 0.25 * bound and parts.max() <= 1.001, (name, parts.min() / bound, parts.max())
        assert is_valid(model), name


# ------------------------------------------------------------------------------------------------- what is proved


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(3, 150))])
def test_no_number_of_any_model_leaves_its_type(seed):
    """``build`` proves it, or refuses; the ends of all keys are frequent."""
    build(random_spec(np.random.default_rng(seed), RULE, precision="int16"))


LABELS = [{"max_abs": 4.0}, {"outputs": 3, "max_abs": 50.0, "low": -1.0, "high": 20.0}, {"classes": list("ab")}]


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("label", LABELS, ids=str)
@pytest.mark.parametrize(
    ("dim", "sigma", "learning"),
    [
        (1, 1.0, {"features": 1, "noise": 1e-3, "forgetting": 0.5}),
        (16, 100.0, {"features": 16, "block": 16, "forgetting": 0.9999}),
        (29, 3e5, {"features": 64, "block": 1, "noise": 1e3}),
        (2, 3e-3, {"features": 3}),
    ],
    ids=str,
)
def test_nor_of_models_at_the_ends_of_the_scales(dim, sigma, learning, label):
    assert build(spec_of(dim=dim, sigma=sigma, reach=1.0, label=label, **learning))


# ------------------------------------------------------------------------------------------------ what is learned


@pytest.mark.parametrize("staged", [False, True])
def test_it_learns_what_the_rule_of_reals_learns(staged):
    x, y = stream(np.random.default_rng(0), 6000)
    wrong = {}
    for precision in ("float32", "int16"):
        answers, _ = HostModel(spec_of(precision, staged=staged)).prequential(x, y[:, 0])
        wrong[precision] = math.sqrt(np.mean((np.ravel(answers) - y[:, 0])[3000:] ** 2))
    assert wrong["int16"] <= 1.05 * wrong["float32"] < 0.15, wrong


def test_labels_far_from_zero_are_learned_as_others():
    """The first label is the mean, so that no wave and no slope learns what is taken off."""
    x, y = stream(np.random.default_rng(0), 1000)
    wrong = []
    for offset in (0.0, 300.0):
        spec = spec_of(staged=True, label={"max_abs": 304.0})
        answers, _ = HostModel(spec).prequential(x, y[:, 0] + offset)
        wrong.append(math.sqrt(np.mean((np.ravel(answers) - y[:, 0] - offset)[500:] ** 2)))
    assert wrong[1] <= 1.15 * wrong[0], wrong


REFUSED = [
    ({"kernel": None}, r"\[kernel\] is missing; spectrum-ekf needs sigma, the width of the kernel"),
    ({"learning": {"rule": RULE, "features": 65}}, r"\[learning\] features is 65; int16 allows at most 64"),
    ({"learning": {"rule": RULE, "block": 3}}, r"\[learning\] block is 3; it must divide 4, the value of features"),
    ({"learning": {"rule": RULE, "noise": 1e-4}}, r"noise is 0.0001; it must be from 1e-3 to 1e3"),
    ({"learning": {"rule": RULE, "features": 64}, "input": {"dim": 40, "max_abs": 1.0}}, f"at most {NUMBERS_MOST:,}"),
    ({"learning": {"rule": RULE, "eta": 0.1}}, "eta"),
    ({"kernel": {"sigma": 1e-4}}, "allows inputs that are too far apart for 16 bits"),
    ({"label": {}}, r"\[label\] max_abs is missing"),
    ({"mixture": {}}, r"\[mixture\]"),
    ({"interval": {}}, r"\[interval\]"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    assert_refused_in_int16(RULE, change, says)
