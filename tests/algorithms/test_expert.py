"""The linear expert beside a model: a twin by least squares with a whole matrix, its bounds, and what it promises."""

import itertools
import math

import numpy as np
import pytest

from pykernel.algorithms.expert import EXPERT_BLOCK, EXPERT_KNOWN, EXPERT_VARIANCE, FIXED_AT, LAST_PART, PIVOT_LEAST
from pykernel.dialect import FLOAT64
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.host.snapshot import load, save
from pykernel.spec.model import make_spec
from pykernel.spec.stages import GAIN_HORIZON
from tests.support import DOCS

RULES = ("klms", "krls-t", "fb-krls", "spectrum-ekf", "spectrum-nlms", "nystrom-rls", "okfeb")


def spec_of(rule="spectrum-nlms", precision="float64", outputs=1, mixture=True, last=0, **learning):
    content = {
        "name": "m",
        "precision": precision,
        "input": {"dim": 3, "standardise": True, "clip": 3.0, "max_abs": 1e6},
        "label": {"max_abs": 1e6} | ({"outputs": outputs} if outputs > 1 else {}),
        "kernel": {"sigma": 1.5},
        "learning": {"rule": rule} | learning,
    }
    if rule in ("klms", "krls-t", "fb-krls", "okfeb", "nystrom-rls"):
        content["reduction"] = {"n_max": 6}
    if rule == "nystrom-rls":
        content["basis"] = {"method": "stream"}
        content["learning"]["samples"] = 16
    if rule == "okfeb":
        content["learning"]["features"] = 4
        content["label"]["column"] = "y"
    return make_spec(content | ({"mixture": {"forgetting": 0.99, "last": last}} if mixture else {}))


def series(rng, n, outputs=1):
    x = np.cumsum(0.1 * rng.normal(size=(n, 3)), axis=0) + np.array([5.0, -2.0, 0.0])
    y = x @ rng.normal(size=(3, outputs)) + 0.3 * np.sin(2 * x[:, :1]) + 0.05 * rng.normal(size=(n, outputs)) + 100
    return x, y if outputs > 1 else y[:, 0]


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(("outputs", "last"), [(1, 0), (1, 2), (2, 0)])
def test_the_answer_is_the_mean_of_the_model_and_of_least_squares(outputs, last):
    """last: of so many labels the newest is an input of a question, and the oldest of what is learned."""
    rng = np.random.default_rng(0)
    alone, mixed = HostModel(spec_of(outputs=outputs, mixture=False)), HostModel(spec_of(outputs=outputs, last=last))
    kept, power_of_first, most = [0.0] * last, 0.0, EXPERT_VARIANCE.value(FLOAT64)

    def inputs(row, which):
        known = fixed and last and count >= FIXED_AT
        unit = LAST_PART.value(FLOAT64) / math.sqrt(power_of_first) if known else 0.0
        label = np.clip((kept[which] - center) * unit, -1000, 1000) if known else 0.0
        return np.concatenate([np.clip((row - offset) * scale, -1000, 1000), [1.0], [label] * bool(last)])

    forgetting, count, fixed = 0.99, 0, False
    powers, offset, scale, weights, p = np.zeros((2, outputs)), None, None, None, None
    x, y = series(rng, 600, outputs)
    y[300:] *= 1 + 20 * bool(last)  # far beyond the first labels
    for t in range(len(x)):
        label = np.atleast_1d(y[t])
        model = np.atleast_1d(np.ravel(alone.predict(x[t])))
        expected = model
        if fixed:
            expert = weights @ inputs(x[t], -1)
            if count >= EXPERT_KNOWN:
                shares = powers**-8.0
                expected = (shares[0] * model + shares[1] * expert) / shares.sum(axis=0)
        np.testing.assert_allclose(np.ravel(mixed.predict(x[t])), expected, rtol=1e-7, atol=1e-7)
        if fixed:
            expert = weights @ (phi := inputs(x[t], 0))
            count = min(count + 1, GAIN_HORIZON)
            for power, answer in zip(powers, (model, expert), strict=True):
                power += 2 / (count + 1) * (np.square(label - answer) - power)
        elif mixed.memory.field("observed")[0] >= FIXED_AT:
            offset = mixed.memory.field("mean").copy()
            scale = mixed.memory.field("scale").copy()
            center = mixed.memory.field("expert_center")[0]
            fixed, phi = True, inputs(x[t], 0)
            weights = np.zeros((outputs, len(phi)))
            p = np.eye(len(phi)) * most
        if fixed:
            gain = p @ phi / (forgetting + phi @ p @ phi)
            weights = weights + np.outer(label - weights @ phi, gain)
            p = (p - np.outer(gain, phi @ p)) / forgetting
        if fixed and last:
            p -= max(0.0, p[4, 4] - most) * np.outer(p[4], p[4]) / p[4, 4] ** 2
            kept, square = [*kept[1:], y[t]], (y[t] - center) ** 2
            if count < FIXED_AT:
                power_of_first += 2 / (count + 2) * (square - power_of_first)
        for each in (alone, mixed):
            assert each.update(x[t], label if outputs > 1 else label[0]) >= 0


def test_blocks_of_inputs_learn_as_if_the_others_were_noise():
    """The covariance's blocks, each updated with the gain of its own, and the variance that all blocks give the answer."""
    rng, dim = np.random.default_rng(0), 18
    content = {"name": "m", "precision": "float64", "input": {"dim": dim, "standardise": True, "max_abs": 1e6}}
    model = HostModel(
        make_spec(
            content
            | {
                "kernel": {"sigma": 4.0},
                "learning": {"rule": "spectrum-nlms"},
                "mixture": {"blocks": True, "forgetting": 1.0},
            }
        )
    )
    x = rng.normal(size=(400, dim)) @ (np.eye(dim) + 0.3 * rng.normal(size=(dim, dim)))
    y = x @ rng.normal(size=dim) + 0.1 * rng.normal(size=len(x))
    first = FIXED_AT
    model.update(x[: first + 1], y[: first + 1])
    field, blocks = (
        model.memory.field,
        [slice(i, min(i + EXPERT_BLOCK, dim + 1)) for i in range(0, dim + 1, EXPERT_BLOCK)],
    )
    offset, scale, center = field("expert_offset").copy(), field("expert_scale").copy(), field("expert_center")[0]
    assert field("compared")[0] == 1 and len(blocks) == 3
    weights, ps = (
        field("expert_weights")[0].copy(),
        [np.eye(b.stop - b.start) * EXPERT_VARIANCE.value(FLOAT64) for b in blocks],
    )
    for t in range(first, len(x)):
        phi, given = np.append((x[t] - offset) * scale, 1.0), t > first
        if given:
            model.update(x[t], y[t])
        parts = [p @ phi[b] for b, p in zip(blocks, ps, strict=True)]
        whole = 1.0 + sum(phi[b] @ part for b, part in zip(blocks, parts, strict=True))
        error = (y[t] - center - weights @ phi) if given else 0.0
        for b, p, part in zip(blocks, ps, parts, strict=True):
            weights[b] += part * error / whole
            p -= np.outer(part, part) / whole
    np.testing.assert_allclose(field("expert_weights")[0], weights, rtol=1e-6, atol=1e-9)


def test_wide_inputs_of_a_linear_truth_are_learned_by_default():
    """A spec without a rule once lost its expert at 48 inputs, and erred 2.5 times as much as least squares."""
    rng = np.random.default_rng(0)
    for dim in (60, 120):
        x = rng.normal(size=(2000, dim))
        y = x @ rng.normal(size=dim) / np.sqrt(dim) + 0.1 * rng.normal(size=len(x))
        spec = make_spec({"name": "m", "input": {"dim": dim}, "label": {"column": "y"}})
        found = HostModel(spec).prequential(x, y)[0]
        assert np.sqrt(np.mean((found[1000:] - y[1000:]) ** 2)) <= 0.13


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e7])
def test_a_label_that_hangs_on_the_last_one_is_told_by_it(delay, unit):
    """y = .98 y' + x + noise, in any unit: with labels d rows late, the best answer errs as the d + 1 steps since the last known one."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    y = np.zeros(len(x))
    for t in range(1, len(x)):
        y[t] = 0.98 * y[t - 1] + x[t, 0] + 0.1 * rng.normal()
    best = math.sqrt(0.1**2 + sum(0.98 ** (2 * i) * (1 + 0.1**2) for i in range(1, delay + 1)))
    content = {"name": "m", "input": {"dim": 3}, "label": {"column": "y"}}
    errors = []
    for mixture in ({}, {"mixture": {"last": delay + 1}}):
        found = HostModel(make_spec(content | mixture)).prequential(x, unit * y, delay=delay)[0]
        errors.append(math.sqrt(np.mean((found[2000:] / unit - y[2000:]) ** 2)))
    assert errors[1] <= 1.1 * best and errors[0] >= 1.3 * errors[1], (errors, best)


def test_a_last_label_at_its_center_says_nothing_however_little_the_first_ones_moved():
    """The unit of labels that hardly moved is infinite, and infinity times nothing is no number."""
    rng = np.random.default_rng(0)
    content = {"name": "m", "input": {"dim": 3}, "label": {"column": "y", "max_abs": 1e-9}, "mixture": {"last": 1}}
    model = HostModel(make_spec(content))
    x = rng.normal(size=(100, 3))
    model.update(x, 1e-10 * rng.normal(size=100))
    model.memory.field("last_labels")[...] = model.memory.field("expert_center")
    answers = []
    for power in (1.0, 1e-45):
        model.memory.field("first_power")[...] = power
        answers.append(model.predict(x[:10]).tolist())
    assert answers[0] == answers[1]


def test_the_last_label_takes_the_bytes_that_the_page_says():
    page = (DOCS / "reference/rules.md").read_text(encoding="utf-8")
    default, last = (
        build(make_spec({"name": "m", "input": {"dim": 3}, "label": {"column": "y"}} | mixture)).figures["ram_bytes"]
        for mixture in ({}, {"mixture": {"last": 1}})
    )
    assert f"takes {last - default} bytes more at D = 3" in page


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_takes_it_and_is_never_much_worse_than_least_squares(rule):
    """A linear series that no kernel of six vectors can follow: the answer is as good as recursive least squares."""
    rng = np.random.default_rng(1)
    x, y = series(rng, 3000)
    linear = make_spec({"name": "m", "input": {"dim": 3}, "learning": {"rule": "rls", "forgetting": 0.99}})
    errors = []
    for spec in (spec_of(rule, "float32"), linear):
        found = np.ravel(HostModel(spec).prequential(x, y)[0])
        errors.append(math.sqrt(np.mean((found[1500:] - y[1500:]) ** 2)))
    assert errors[0] <= 1.02 * errors[1], rule


def test_it_stays_within_its_bounds_in_float32_whatever_comes(exhaustive):
    rng = np.random.default_rng(2)
    n = 500_000 if exhaustive else 20_000
    t = np.arange(n)
    normal = rng.normal(size=(n, 3))
    streams = {
        "constant": (np.ones((n, 3)), rng.normal(size=n)),
        "collinear": (np.repeat(normal[:, :1], 3, 1), normal[:, 0]),
        "sorted": (np.sort(normal, axis=0), np.sort(normal[:, 0]) ** 2),
        "far": (1e5 + 1e-3 * normal, 1e5 * normal[:, 0]),
        "outliers": (np.clip(rng.standard_t(1.1, (n, 3)), -1e6, 1e6), np.clip(rng.standard_t(1.1, n), -1e6, 1e6)),
        "jumps": (normal * np.where(t % 4000 < 2000, 1e-3, 1e3)[:, None], np.where(t % 3000 < 1500, 1.0, 1e5) * normal[:, 1]),
    }  # fmt: skip
    for (name, (x, y)), last in itertools.product(streams.items(), (0, 3)):
        model = HostModel(spec_of("spectrum-nlms", "float32", last=last))
        assert (model.update(x, y) >= 0).all(), name
        pivots = model.memory.field("pivots")
        assert (pivots >= PIVOT_LEAST.value(model.spec.real)).all()
        assert (pivots <= EXPERT_VARIANCE.value(model.spec.real)).all()
        assert np.isfinite(model.predict(x[:100])).all(), name
        other = HostModel(model.spec)
        load(other, save(model))
        assert bytes(other.memory.bytes)[: len(save(model)) - 24] == bytes(model.memory.bytes)[: len(save(model)) - 24]


@pytest.mark.parametrize("seed", range(2))
def test_inputs_that_stand_still_do_not_make_float32_another_model(seed):
    """What forgetting makes of the directions that no input excites must not reach the weights by rounding."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.uniform(-2, 2, (300, 3)), np.repeat(rng.uniform(-2, 2, (6, 3)), 8000, axis=0)])
    y = np.sin(1.3 * x[:, 0]) + 0.6 * np.cos(x[:, 1] * x[:, 2]) + 0.05 * rng.normal(size=len(x))
    elsewhere, answers = rng.uniform(-2, 2, (200, 3)), {}
    for precision in ("float32", "float64"):
        content = {"name": "m", "precision": precision, "input": {"dim": 3}, "label": {"max_abs": 10.0}}
        model = HostModel(make_spec(content))
        model.update(x, y)
        answers[precision] = np.array([model.predict(row)[0] for row in elsewhere], float)
    assert np.sqrt(np.mean((answers["float32"] - answers["float64"]) ** 2)) < 0.2


@pytest.mark.parametrize("name", ["expert_offset", "expert_scale", "expert_center", "pivots", "center"])
def test_units_that_no_standardiser_can_know_are_refused(name):
    rng = np.random.default_rng(3)
    model = HostModel(spec_of("spectrum-nlms", "float32"))
    model.update(*series(rng, 100))
    for wrong in (3e38, -3e38):
        kept = model.memory.field(name).copy()
        model.memory.field(name)[...] = wrong
        with pytest.raises(UserError):
            load(HostModel(model.spec), save(model))
        model.memory.field(name)[...] = kept
    load(HostModel(model.spec), save(model))


REFUSED = [
    ({"input": {"dim": 3}}, r"\[mixture\] needs inputs of known magnitude; add standardise"),
    ({"label": {"classes": ["a", "b"]}, "linear": {}}, r"\[mixture\] is the linear part for classes"),
    (
        {"label": {"classes": ["a", "b"]}, "mixture": {"last": 1}},
        r"\[mixture\] last is for labels that are numbers; leave it out",
    ),
    ({"mixture": {"forgetting": 0.5}}, r"\[mixture\] forgetting is 0.5; it must be"),
    ({"learning": {"rule": "rls"}}, r"\[mixture\] belongs to .*; rls does not have it"),
    ({"precision": "int16", "input": {"dim": 3, "max_abs": 4.0}}, "klms in int16 does not have it: leave it out"),
]


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    base = {"name": "m", "input": {"dim": 3, "standardise": True}, "mixture": {}, "learning": {"rule": "klms"}}
    with pytest.raises(UserError, match=says):
        make_spec(base | ({} if "rls" in str(change) else {"kernel": {"sigma": 1.0}}) | change)
