"""Trained expansions that go on learning in int16: the frozen bits, a twin in unbounded integers, and what is learned."""

import math

import numpy as np
import pytest

from pykernel.algorithms.doubt import DoubtStatus
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec import kernel_settings
from pykernel.spec.families.expansion import INT16_EXPANSION_MODELS, SOFTMAX
from pykernel.spec.families.int16_scales import FUNCTIONS, in_eight_bits
from pykernel.spec.model import make_spec
from tests.algorithms.test_expansion import content_of, inputs
from tests.support.every_model import DOUBT
from tests.support.following import is_valid
from tests.support.hard_streams import streams_of_numbers
from tests.support.random_specs import random_spec
from tests.support.whole_expansion import WholeExpansion

EACH = pytest.mark.parametrize("rule", INT16_EXPANSION_MODELS[0].rules)
INPUT = {"dim": 3, "max_abs": [20.0] * 3, "center": [0.5, -1.0, 2.0], "scale": [1.5, 0.5, -0.75]}
LEARNED = [name for name in FUNCTIONS if name in kernel_settings.UNIT or name in kernel_settings.HIDDEN]
KINDS = {"one": {"max_abs": 7.0}, "several": {"max_abs": 7.0}, "two classes": {}, "classes": {}}


def whole_content(rule, kind="one", function="gaussian", precision="int16", **sections):
    """Random tables with inputs whose range is known; a model that learns also has a range of labels."""
    content = content_of(rule, kind, function, True, precision, **sections)
    content["input"] = INPUT if precision == "int16" else INPUT | {"max_abs": 20.0}
    label = {key: value for key, value in content["label"].items() if key != "max_abs"}
    content["label"] = label | (KINDS[kind] | sections.get("label", {}) if rule != "frozen" else {})
    return content


def model_of(*args, **sections):
    return HostModel(make_spec(whole_content(*args, **sections)))


def labels_of(x, kind):
    """Labels that the trained functions do not tell."""
    y = 3 + 2 * np.sin(x.sum(1)) + 0.1 * np.cos(50 * x[:, 0])
    if "classes" in kind:
        return (x[:, 0] > 0.5).astype(np.int32) + (x[:, 1] > -1) * (kind == "classes")
    return y if kind == "one" else np.column_stack([y, -y, np.clip(x[:, 1], -7, 7)])


def rows(count, seed=0):
    x = inputs(count, seed)
    return x[make_spec(whole_content("frozen")).accepts(x)]


# ------------------------------------------------------------------------------------------------- at power-on


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("function", [*LEARNED, "products"])
@pytest.mark.parametrize("kind", KINDS)
def test_before_the_first_sample_it_answers_what_the_frozen_model_does(function, kind):
    """To the bit, also after a restart; and no other input is refused."""
    kernel, more = ("gaussian", {"distance": "products"}) if function == "products" else (function, {})
    if function in kernel_settings.HIDDEN:
        more = more | {"offsets": np.linspace(-1, 1, 9).tolist()}
    if "classes" in kind:
        more = more | {"calibration": [[-1.5, 0.25]] * (1 if kind == "two classes" else 3)}
    frozen, x = model_of("frozen", kind, kernel, expansion=more), inputs(400)
    for rule in [*INT16_EXPANSION_MODELS[0].rules, *([SOFTMAX] if "classes" in kind else [])]:
        own = {key: value for key, value in more.items() if rule != SOFTMAX or key != "calibration"}
        model = model_of(rule, kind, kernel, expansion=own)
        assert model.spec.label_shift == frozen.spec.label_shift
        for _ in range(2):
            probable = ["probability"] if rule != SOFTMAX else []
            for name in ["predict", *(["classify", *probable] if "classes" in kind else [])]:
                for ours, theirs in zip(model.ask(name, x), frozen.ask(name, x), strict=True):
                    np.testing.assert_array_equal(ours, theirs, name)
            fresh = snapshot.save(model)
            model.update(rows(20), labels_of(rows(20), kind))
            assert snapshot.save(model) != fresh
            model.reset()


@EACH
def test_labels_larger_than_all_that_was_trained_make_the_unit_coarser(rule):
    x = rows(300)
    model, frozen = model_of(rule, label={"max_abs": 1e4}), model_of("frozen")
    shift = model.spec.label_shift
    assert shift < frozen.spec.label_shift and 1e4 * 2.0**shift < 2**31
    np.testing.assert_allclose(model.predict(x), frozen.predict(x), atol=12 * 2.0**-shift, rtol=0)
    assert model.update(x[0], 1e4) == 0


# ------------------------------------------------------------------------------------------------------ the twin

EIGHT_BITS = {
    "vectors": in_eight_bits(np.random.default_rng(0).normal(size=(9, 3))).tolist(),
    "offsets": np.linspace(-1, 1, 9).tolist(),
}
TWINNED = {
    "a slow rate": ("expansion-nlms", "one", {"eta": 0.01}, {}),
    "a fast rate": ("expansion-nlms", "several", {"eta": 1.9}, {}),
    "two classes": ("expansion-nlms", "two classes", {}, {}),
    "many vectors": ("expansion-nlms", "one", {}, {"size": 150, "kernel": {"gamma": 0.01}}),
    "as by default": ("expansion-rls", "one", {}, {}),
    "loud": ("expansion-rls", "several", {"prior_variance": 1e-3, "forgetting": 0.5}, {}),
    "certain": ("expansion-rls", "classes", {"prior_variance": 1e3}, {}),
    "long": ("expansion-rls", "two classes", {"forgetting": 0.9999}, {}),
    "wide": ("expansion-rls", "one", {"prior_variance": 1e3}, {"size": 40, "kernel": {"gamma": 1e-3}}),
    "narrow": ("expansion-rls", "one", {"forgetting": 0.9999, "prior_variance": 1e3}, {"kernel": {"gamma": 2.0}}),
    **{
        f"{function}, {kind}": (
            rule,
            kind,
            {},
            {"function": function, "expansion": {"offsets": np.linspace(-1, 1, 9).tolist()}},
        )
        for function, rule, kind in (
            ("relu", "expansion-rls", "one"),
            ("relu", "expansion-nlms", "several"),
            ("tanh", "expansion-rls", "classes"),
            ("logistic", "expansion-rls", "several"),
            ("identity", "expansion-rls", "two classes"),
            ("relu", SOFTMAX, "classes"),
            ("tanh", SOFTMAX, "two classes"),
        )
    },
    "weights of 8 bits": ("expansion-rls", "one", {}, {"function": "relu", "expansion": EIGHT_BITS}),
    "softmax": (SOFTMAX, "classes", {}, {}),
    "softmax of two, certain": (SOFTMAX, "two classes", {"prior_variance": 1e3}, {}),
    "one vector": ("expansion-rls", "one", {}, {"size": 1}),
}


@pytest.mark.in_turn(22)
@pytest.mark.parametrize("name", TWINNED)
def test_the_twin_in_unbounded_integers_has_the_same_numbers(name, exhaustive):
    """Answers and the whole state, so that no sum of the rule has wrapped around."""
    rule, kind, learning, more = TWINNED[name]
    label = {} if "classes" in kind else {"gain": False}
    spec = make_spec(whole_content(rule, kind, learning=learning, label=label, **more))
    model, twin, x = HostModel(spec), WholeExpansion(spec), rows(6000 if exhaustive else 600, 1)
    y = labels_of(x, kind)
    if not label:
        y[len(x) // 2 :] = y[len(x) // 2 :][::-1]
    else:
        y[len(x) // 2 :] *= -1
    x[len(x) // 4 : len(x) // 4 + 40] = x[0]
    made = spec.conversion
    converted = ((spec.raw_inputs(x).astype(np.int64) - made.center) * made.factor + made.rounding) >> made.shift
    for t, z in enumerate(converted):
        answers = np.ravel(model.predict(x[t])) * 2.0**spec.label_shift
        np.testing.assert_array_equal(answers, twin.answers(z), f"row {t}")
        if label:
            taught = np.ravel(spec.raw_labels(y[t])).astype(np.int64)
        else:
            own = np.arange(spec.outputs) == y[t] if spec.outputs > 1 else np.array([y[t] == 1])
            taught = np.where(own, spec.config.one, -spec.config.one).astype(np.int64)
        (status,) = model.update(x[t : t + 1], y[t : t + 1])
        assert status in (0, DoubtStatus.RESTARTED)
        if status == 0:
            twin.learn(z, taught)
        else:
            twin = WholeExpansion(spec)
    np.testing.assert_array_equal(model.memory.field("learned"), twin.weights)
    if rule != "expansion-nlms":
        np.testing.assert_array_equal(model.memory.field("covariance"), twin.covariance.packed)
        assert twin.covariance.renewed == 1, "P never begins anew"


# ------------------------------------------------------------------------------------------------- what is promised


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("size", [4, 40])
@EACH
def test_no_stream_leads_to_a_state_that_is_refused(rule, size, exhaustive):
    """(1 - lambda) P0 <= P <= P0 but for rounding, with the longest memory as well."""
    learning = {"forgetting": 0.9999} if rule == "expansion-rls" else {}
    for name, x, y in streams_of_numbers(np.random.default_rng(1), 200_000 if exhaustive else 4_000):
        x, most = np.clip(x, -9, 9) / 3 + INPUT["center"], max(1e-3, float(1.01 * np.abs(y).max()))
        model = model_of(rule, size=size, label={"max_abs": most}, learning=learning)
        _, statuses = model.prequential(x, y)
        assert np.isin(statuses, (0, DoubtStatus.RESTARTED)).all() and is_valid(model), name
        if rule != "expansion-nlms":
            p = np.zeros((size + 1, size + 1))
            p[np.tril_indices(size + 1)] = model.memory.field("covariance")[0] / 2**27
            parts = np.linalg.eigvalsh(p + np.tril(p, -1).T)
            bound = 2.0**-model.spec.config.forgets
            assert parts.min() >= 0.25 * bound and parts.max() <= 1.001, (name, parts.min() / bound, parts.max())


@EACH
def test_whatever_lies_in_the_memory_it_learns_again(rule):
    """Random bytes in place of what was learned: answers stay numbers, and least squares soon are better than the trained function."""
    x, y = rows(3000, 2), labels_of(rows(3000, 2), "one")
    for seed in range(3):
        model = model_of(rule, label={"gain": False})
        rng = np.random.default_rng(seed)
        for name in ("learned", *(["covariance"] if rule != "expansion-nlms" else [])):
            field = model.memory.field(name)
            field[...] = rng.integers(-(2**31), 2**31, field.shape)
        answers, statuses = model.prequential(x, y)
        assert (statuses == 0).all() and np.isfinite(answers).all()
        late = slice(len(x) - 500, None)
        wrong = [
            float(np.abs(np.ravel(found)[late] - y[late]).mean()) for found in (answers, model_of("frozen").predict(x))
        ]
        # a gradient takes longer for weights of 256 label limits
        assert rule == "expansion-nlms" or wrong[0] < 0.5 * wrong[1], wrong


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(3, 150))])
@EACH
def test_no_number_of_any_model_leaves_its_type(rule, seed):
    """``build`` proves it, or refuses; the ends of all keys are frequent."""
    build(random_spec(np.random.default_rng(seed), rule, precision="int16"))


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("kind", KINDS)
@EACH
def test_it_learns_what_the_rule_of_reals_learns(rule, kind):
    x, wrong = rows(3000, 3), {}
    y = labels_of(x, kind)
    for precision in ("float32", "int16"):
        model = model_of(rule, kind, precision=precision)
        if "classes" in kind:
            missed = []
            for part in np.array_split(np.arange(len(x)), 60):
                missed.append(model.ask("classify", x[part])[0].ravel() != y[part])
                model.update(x[part], y[part])
            wrong[precision] = float(np.concatenate(missed)[500:].mean())
        else:
            answers = model.prequential(x, y)[0].reshape(y.shape)
            wrong[precision] = math.sqrt(np.mean((answers - y)[500:] ** 2))
    frozen = model_of("frozen", kind)
    if "classes" not in kind:
        assert wrong["int16"] < 0.6 * math.sqrt(np.mean((frozen.predict(x).reshape(y.shape) - y)[500:] ** 2))
    assert wrong["int16"] <= 1.02 * wrong["float32"] + 0.002, wrong


@EACH
def test_the_tables_are_const_and_ram_holds_what_is_learned(rule):
    size, spec = 9, make_spec(whole_content(rule, "two classes"))
    code = build(spec)
    packed = (size + 1) * (size + 2) // 2
    assert code.figures["state_bytes"] == 4 * (size + 1 + 1) + DOUBT + (4 * packed if rule != "expansion-nlms" else 0)
    assert "const M_FLASH int16_t m_vectors" in code.files["src/m.c"]


REFUSED = (
    ({"expansion": None}, r"\[expansion\] is missing; expansion-nlms must have vectors"),
    (
        {"expansion": {"vectors": [[0.0] * 3]}},
        r"\[expansion\] weights are missing; an int16 model can only continue from trained",
    ),
    (
        {"expansion": {"decision": "ovo"}},
        'decision is "ovo", whose functions separate pairs of classes; expansion-nlms',
    ),
    ({"kernel": {"function": "linear"}}, "is linear, which int16 cannot learn with; choose gaussian"),
    ({"kernel": {"function": "polynomial", "gamma": 1.0}}, "is polynomial, which int16 cannot learn with"),
    ({"kernel": {"function": "sigmoid"}}, "is sigmoid, which int16 does not compute"),
    ({"label": {}}, r"\[label\] max_abs is missing"),
    ({"learning": {"rule": "expansion-nlms", "eta": 1e-6}}, "eta is 1e-06; it must be at least"),
    (
        {"learning": {"rule": "expansion-rls", "prior_variance": 1e4}},
        "prior_variance is 10000; it must be from 0.001 to 1000",
    ),
    (
        {"label": {"max_abs": 1e-6}},
        "max_abs is 1e-06; with these trained weights, it must be at least",
    ),
    ({"mixture": {}}, r"\[mixture\]"),
    ({"interval": {}}, r"\[interval\]"),
    ({"kernel": {"function": "gaussian", "sigma": 1e-4}}, "too far for 16 bits"),
)


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    content = whole_content("expansion-nlms")
    for section, keys in change.items():
        content[section] = (
            keys if section != "expansion" or keys is None or "vectors" in keys else content[section] | keys
        )
    with pytest.raises(UserError, match=says):
        make_spec({key: value for key, value in content.items() if value is not None})


def test_too_many_vectors_are_refused():
    with pytest.raises(UserError, match=r"vectors has 2047 rows; it must have at most 2046"):
        make_spec(whole_content("expansion-nlms", size=2047))


@pytest.mark.parametrize(("rule", "least"), [("expansion-rls", 0.001), (SOFTMAX, 0.004)])
def test_a_refused_prior_variance_is_told_as_it_was_given(rule, least):
    small = 0.9 * least
    with pytest.raises(
        UserError, match=rf"prior_variance is {small:g}; it must be from {least:g} to {1e6 * least:g} for int16"
    ):
        make_spec(whole_content(rule, "classes", learning={"prior_variance": small}))
    assert make_spec(whole_content(rule, "classes", learning={"prior_variance": least}))
