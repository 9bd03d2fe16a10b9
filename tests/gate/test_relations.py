"""The gate: relations between parts, walked with every declared model and with draws that cover pairs of features."""

import contextlib
import os

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.host.snapshot import is_valid
from pykernel.spec.model import make_spec
from tests.gate.models import RECIPES, Covering, declared_models
from tests.gate.relations import DECLARED, RELATIONS, Case

DAILY, IN_TURN, NIGHTLY = 8, 3, 400
MODELS = declared_models()


def walk(relations, content, seed):
    case = Case(content, seed)
    wrong = [f"{name}: {each}" for name, holds in relations.items() for each in holds(case)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.in_turn(54)
@pytest.mark.parametrize("rule, precision, stage", [each for each in MODELS if each[0] not in RECIPES])
def test_declared_models(rule, precision, stage):
    walk(RELATIONS | DECLARED, MODELS[rule, precision, stage], 0)


@pytest.mark.in_turn
@pytest.mark.parametrize("task, precision, stage", [each for each in MODELS if each[0] in RECIPES])
def test_default_models(task, precision, stage):
    walk(RELATIONS | DECLARED, MODELS[task, precision, stage], 0)


def test_drawn_models():
    covering = Covering(1)
    for index in range(DAILY):
        drawn = covering.draw(index)
        walk(RELATIONS, drawn.content, index)


@pytest.mark.exhaustive
def test_fresh_draws(exhaustive):
    seed = int.from_bytes(os.urandom(4), "little")
    covering = Covering(seed)
    for index in range(NIGHTLY if exhaustive else IN_TURN):
        drawn = covering.draw(index)
        walk(RELATIONS, drawn.content, index)


def test_classes_that_are_counted_for_their_weights_are_forgotten():
    content = {"name": "m", "learning": {"rule": "nystrom-rls"}, "kernel": {"sigma": 1.0}, "mixture": {}}
    content |= {"input": {"dim": 2, "standardise": True}, "reduction": {"n_max": 5}}
    walk(RELATIONS, content | {"label": {"classes": ["a", "b", "c"], "weights": "balanced"}}, 0)


STANDARDISED = [each for each, content in MODELS.items() if content.get("input", {}).get("standardise")]


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("rule, precision, stage", STANDARDISED)
def test_the_largest_inputs_that_a_spec_allows_leave_a_state_that_learning_gives(rule, precision, stage):
    content, spec = MODELS[rule, precision, stage], None
    for power in range(308, -1, -1):
        with contextlib.suppress(UserError):
            spec = make_spec(content | {"input": content["input"] | {"max_abs": 10.0**power}})
            break
    case = Case(spec.model_dump(exclude_unset=True), 0)
    model, (_, y) = case.model(), case.hostile
    x = case.rng.choice([-1.0, 0.0, 1.0], (case.rows, spec.width)) * spec.input_max_abs
    for row, label in zip(x, y, strict=True):
        case.feed(model, row[None], label[None])
        assert is_valid(spec, model.memory)


def test_a_monitors_alarms_hardly_depend_on_the_order_of_columns():
    """Its factors have a floor in each row: after the warm-up that moves levels by less than a half, and alarms in
    fewer than one row of two hundred (the worst of six such streams)."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 4)) @ rng.normal(size=(4, 4)) + 5.0
    spec = make_spec({"name": "m", "precision": "float64", "input": {"dim": 4}, "novelty": {}})
    (_, one, told), (_, other, also) = (
        HostModel(spec).prequential_alarms(x[:, order]) for order in ([0, 1, 2, 3], [3, 0, 1, 2])
    )
    assert 0 < np.abs(one - other)[200:, 0].max() < 0.5
    assert (told != also).mean() < 0.005


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule, precision, stage", MODELS)
def test_after_a_long_life_a_state_is_still_one_that_learning_gives(rule, precision, stage):
    """Sums that no row takes far leave a declared range after tens of thousands of rows, or of calls."""
    case = Case(MODELS[rule, precision, stage], 0)
    model = case.model()
    if not case.program.learns:
        return
    (x, y), (far, also), rng = case.plain, case.hostile, case.rng
    for block in range(40):
        rows = rng.integers(case.rows, size=1000)
        case.feed(model, x[rows], y[rows])
        assert is_valid(case.spec, model.memory), f"after {block} blocks and a plain one"
        case.feed(model, far, also)
        if model.exists("acknowledge"):
            model.call("acknowledge")
        assert is_valid(case.spec, model.memory), f"after {block + 1} blocks"
