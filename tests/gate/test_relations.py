"""The gate: relations between parts, walked with every declared model and with draws that cover pairs of features."""

import os

import pytest

from tests.gate.models import Covering, declared_models
from tests.gate.relations import DECLARED, RELATIONS, Case

DAILY, NIGHTLY = 24, 400
MODELS = declared_models()


def walk(relations, content, seed):
    case = Case(content, seed)
    wrong = [f"{name}: {each}" for name, holds in relations.items() for each in holds(case)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("drawn", MODELS, ids=str)
def test_declared_models(drawn):
    walk(RELATIONS | DECLARED, drawn.content, 0)


def test_drawn_models():
    covering = Covering(1)
    for index in range(DAILY):
        drawn = covering.draw(index)
        walk(RELATIONS, drawn.content, index)


@pytest.mark.exhaustive
def test_fresh_draws():
    seed = int.from_bytes(os.urandom(4), "little")
    covering = Covering(seed)
    for index in range(NIGHTLY):
        drawn = covering.draw(index)
        walk(RELATIONS, drawn.content, index)
