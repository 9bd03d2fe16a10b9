"""Recursive least squares in int16: a twin in unbounded integers, what bounds P, what is proved, and what is learned."""

import math

import numpy as np
import pytest

from pykernel.algorithms.doubt import DoubtStatus
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.families.int16_linear import SPREAD_MOST
from pykernel.spec.model import make_spec
from tests.support.following import is_valid
from tests.support.hard_streams import streams_of_numbers
from tests.support.random_specs import random_spec
from tests.support.whole_expansion import WholeLine


def content_of(dim=3, reach=4.0, label=None, rule="rls", precision="int16", **learning):
    return {
        "name": "line",
        "precision": precision,
        "input": {"dim": dim, "max_abs": reach},
        "label": label or {"max_abs": 8.0},
        "learning": {"rule": rule} | learning,
    }


def spec_of(*args, **keys):
    return make_spec(content_of(*args, **keys))


def stream(rng, n, dim=3, outputs=1, noise=0.1):
    """A linear function of standard normal inputs."""
    x = np.clip(rng.normal(size=(n, dim)), -4, 4)
    w = rng.normal(size=(dim, outputs)) / math.sqrt(dim)
    return x, np.clip(x @ w + 0.5 + noise * rng.normal(size=(n, outputs)), -8, 8)


# ------------------------------------------------------------------------------------------------------ the twin

TWINNED = {
    "one input": {"dim": 1},
    "three": {},
    "loud": {"prior_variance": 1e-3, "forgetting": 0.6},
    "certain and long": {"prior_variance": 100.0, "forgetting": 1.0},
    "five, uneven": {"dim": 5, "reach": [0.01, 4.0, 4.0, 20.0, 0.5]},
    "sixteen": {"dim": 16},
    "sixteen, long": {"dim": 16, "prior_variance": 1.0, "forgetting": 1.0},
    "three outputs": {"label": {"outputs": 3, "max_abs": 8.0}},
    "large labels": {"label": {"max_abs": 3e6}},
    "two classes": {"label": {"classes": ["a", "b"]}},
    "three classes": {"label": {"classes": ["a", "b", "c"]}},
}


@pytest.mark.in_turn(13)
@pytest.mark.parametrize("name", TWINNED)
def test_the_twin_in_unbounded_integers_has_the_same_numbers(name, exhaustive):
    """Answers and the whole state, so that no sum of the rule has wrapped around."""
    spec = spec_of(**TWINNED[name])
    model, twin = HostModel(spec), WholeLine(spec)
    rows = (10_000 if exhaustive else 1_000) // (1 + spec.dim // 8)
    x, y = stream(np.random.default_rng(4), rows, spec.dim, spec.outputs)
    x *= np.minimum(np.array(spec.input.max_abs) / 4, 1.0)
    # the function turns round; rows of zeros, rows that stand still, and inputs at their limits
    y[rows // 2 :] *= -1
    x[rows // 4 : rows // 4 + 20] = 0
    x[rows // 3 : rows // 3 + 20] = 0.999 * np.array(spec.input.max_abs) * np.sign(x[rows // 3 : rows // 3 + 20])
    x[rows // 2 : rows // 2 + 40] = x[rows // 2]
    y *= spec.label_max_abs / 8 if "max_abs" in spec.label.model_fields_set else 1
    classes = len(spec.label.classes or ())
    labels = np.digitize(y[:, 0], [-0.3, 0.3][: classes - 1]).astype(np.int32) if classes else y
    made = spec.conversion
    converted = ((spec.raw_inputs(x).astype(np.int64) - made.center) * made.factor + made.rounding) >> made.shift
    for t, z in enumerate(converted):
        answers = np.ravel(model.predict(x[t])) * 2.0**spec.label_shift
        np.testing.assert_array_equal(answers, twin.answers(z), f"row {t}")
        taught = np.ravel(spec.raw_labels(labels[t])).astype(np.int64)
        if classes:
            own = np.arange(spec.outputs) == labels[t] if spec.outputs > 1 else np.array([labels[t] == 1])
            taught = np.where(own, spec.config.one, -spec.config.one).astype(np.int64)
        assert model.update(x[t], labels[t] if classes or spec.outputs > 1 else labels[t, 0]) == 0
        twin.learn(z, taught)
    np.testing.assert_array_equal(model.memory.field("learned"), twin.weights)
    np.testing.assert_array_equal(model.memory.field("covariance"), twin.covariance.packed)
    assert twin.covariance.renewed == 1, "P never begins anew"


# -------------------------------------------------------------------------------------------------- what bounds P


def parts_of_prior(model):
    """The eigenvalues of P in parts of P0, ascending."""
    size = len(model.spec.config.prior)
    p = np.zeros((size, size))
    p[np.tril_indices(size)] = model.memory.field("covariance")[0] / 2**27
    return np.linalg.eigvalsh(p + np.tril(p, -1).T)


HARD = [(1, {}), (3, {}), (3, {"prior_variance": 1e-3}), (8, {"prior_variance": 100.0}), (16, {"prior_variance": 1.0}), (40, {}), (100, {})]  # fmt: skip


@pytest.mark.in_turn(13)
@pytest.mark.parametrize(
    "length", [10_000, pytest.param(1_000_000, marks=pytest.mark.exhaustive)], ids=["short", "long"]
)
@pytest.mark.parametrize(("dim", "learning"), HARD, ids=str)
def test_no_stream_leads_p_out_of_its_bounds(dim, learning, length):
    """With the longest memory (1 - lambda) P0 <= P <= P0 but for rounding, and learning leads to no state that is refused."""
    rows = max(length // (1 + dim // 8), 2_000)
    for name, x, y in streams_of_numbers(np.random.default_rng(1), rows):
        x = np.clip(np.tile(x, (1, -(-dim // 3)))[:, :dim], -9, 9) / 3
        y = np.clip(y, -1e5, 1e5)
        label = {"max_abs": float(1.01 * np.abs(y).max())}
        model = HostModel(spec_of(dim, 3.0, label=label, forgetting=1.0, **learning))
        for part in np.array_split(np.arange(rows), 20):
            _, statuses = model.prequential(x[part], y[part])
            parts = parts_of_prior(model) * 2.0**model.spec.config.forgets
            assert np.isin(statuses, (0, DoubtStatus.RESTARTED)).all() and parts.min() >= 0.25, (name, parts.min())
            assert parts.max() <= 1.01 * 2.0**model.spec.config.forgets, name
        assert is_valid(model), name


def test_whatever_lies_in_the_memory_it_learns_again():
    """Random bytes in place of what was learned: answers stay numbers, and soon they are right."""
    x, y = stream(np.random.default_rng(2), 4000)
    for seed in range(5):
        model, rng = HostModel(spec_of()), np.random.default_rng(seed)
        for name in ("learned", "covariance"):
            field = model.memory.field(name)
            field[...] = rng.integers(-(2**31), 2**31, field.shape)
        answers, statuses = model.prequential(x, y[:, 0])
        assert (statuses == 0).all() and np.isfinite(answers).all()
        assert math.sqrt(np.mean((np.ravel(answers) - y[:, 0])[3000:] ** 2)) < 0.11


# ------------------------------------------------------------------------------------------------- what is proved


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(3, 150))])
@pytest.mark.parametrize("rule", ["nlms", "rls"])
def test_no_number_of_any_model_leaves_its_type(rule, seed):
    """``build`` proves it, or refuses; the ends of all keys are frequent."""
    build(random_spec(np.random.default_rng(seed), rule, precision="int16"))


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("label", [{"max_abs": 1e-6}, {"outputs": 3, "max_abs": 1e6}, {"classes": list("ab")}], ids=str)
@pytest.mark.parametrize(("dim", "reach"), [(1, 30.0), (2, 1e-4), (60, 1.0), (300, 0.5)])
def test_nor_of_models_at_the_ends_of_the_scales(dim, reach, label):
    assert build(spec_of(dim, reach, label=label, prior_variance=min(100.0, SPREAD_MOST / (2 + dim * reach**2))))


# ------------------------------------------------------------------------------------------------ what is learned


def error_of(spec, x, y, first=0):
    return math.sqrt(np.mean((np.ravel(HostModel(spec).prequential(x, y)[0]) - y)[first:] ** 2))


@pytest.mark.parametrize("dim", [1, 5, 16])
def test_it_finds_the_least_squares(dim):
    """A function that stays, and the longest memory: weights as those of float64 over all samples, to a part of the noise."""
    x, y = stream(np.random.default_rng(0), 4000, dim)
    model = HostModel(spec_of(dim, forgetting=1.0))
    model.update(x, y[:, 0])
    features = np.column_stack([x, np.ones(len(x))])
    least = features @ np.linalg.lstsq(features, y[:, 0], rcond=None)[0]
    assert math.sqrt(np.mean((np.ravel(model.predict(x)) - least) ** 2)) < 0.1 * 0.02 * math.sqrt(dim + 1)


def test_it_errs_as_the_rule_of_reals_with_the_same_memory():
    """The weights wander half way through: what is forgotten then is what 1 - forgetting says."""
    rng = np.random.default_rng(1)
    x, y = stream(rng, 6000, 5)
    y[3000:] = x[3000:] @ rng.normal(size=(5, 1)) / 2
    for forgetting in (0.99, 0.998):
        wrong = {
            precision: error_of(spec_of(5, precision=precision, prior_variance=10.0, forgetting=forgetting), x, y[:, 0])
            for precision in ("float32", "int16")
        }
        assert wrong["int16"] <= 1.05 * wrong["float32"], (forgetting, wrong)


def test_a_longer_memory_than_32_bits_hold_is_the_longest_one():
    longest = spec_of(forgetting=1.0).config.forgets
    assert longest == 24 > spec_of(forgetting=0.998).config.forgets == 21
    assert [spec_of(dim, 1.0, forgetting=1.0).config.forgets for dim in (63, 64, 126, 127)] == [24, 22, 22, 20]
    assert spec_of(forgetting=0.6, prior_variance=1e-3).config.forgets == 1


REFUSED = [
    ({"learning": {"rule": "rls", "prior_variance": 1e4}}, r"\[learning\] prior_variance is 10000.0; it must be"),
    (
        {"input": {"dim": 2, "max_abs": 60.0}},
        r"\[learning\] prior_variance is 10; for inputs this large it must be at most 2.3; a smaller \[input\] scale",
    ),
    ({"learning": {"rule": "rls", "eta": 0.2}}, r"eta belongs to .*; rls does not have it"),
    ({"learning": {"rule": "nlms", "forgetting": 0.9}}, r"forgetting belongs to .*; nlms does not have it"),
    ({"label": {}}, r"\[label\] max_abs is missing"),
    ({"input": {"dim": 2}}, r"\[input\] max_abs is missing"),
    ({"input": {"dim": 2, "max_abs": 1e5}}, r"\[input\] scale makes the scaled inputs so large"),
]


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    with pytest.raises(UserError, match=says):
        make_spec(content_of(2) | change)
