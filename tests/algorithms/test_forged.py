"""What ``load`` accepts, learns: a forged state, which no learning leads to, is soon as good as a new model."""

import functools
import itertools

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec, rules
from tests.support.built import built
from tests.support.every_model import Content, content_of
from tests.support.following import is_valid
from tests.support.forged import forged, others_forged

ROWS = 250
"""So many good rows, and the model answers as a new one that has learned them."""
VARIANTS: list[Content] = [
    {},
    {"learning": {"forgetting": 0.99}},
    {"reduction": {"technique": "lsridge", "force": True}},
]


def spec_of(rule: str, precision: str, variant: Content) -> Spec | None:
    """The rule's plain model with the keys of a variant; None if it has none of them, or learns no label."""
    content = content_of(rule, precision, "plain")
    if content is None:
        return None
    try:
        spec = make_spec(content | {section: {**content.get(section, {}), **keys} for section, keys in variant.items()})
    except UserError:
        return None
    return spec if spec.program.valid is not None and spec.label_kind in ("real", "class") else None


MODELS = [
    pytest.param(spec, id=f"{rule}-{precision}-{number}")
    for rule, precision, (number, variant) in itertools.product(rules(), ("float32", "float64"), enumerate(VARIANTS))
    if (spec := spec_of(rule, precision, variant)) is not None
]
"""Every rule that learns labels and has a state to load."""


def rows(spec: Spec, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    x = rng.uniform(-2, 2, (count, spec.width)).astype(spec.real.dtype)
    f = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, -1]
    return x, np.digitize(f, [-0.5, 0.5]) if spec.label_kind == "class" else f.astype(spec.real.dtype)


def error(model: HostModel, x: np.ndarray, y: np.ndarray) -> float:
    answers = model.predict(x)
    if model.spec.label_kind == "class":
        return float((answers.argmax(1) != y).mean())
    return float(np.sqrt(np.mean((answers - y) ** 2)))


@functools.cache
def device_of(spec: Spec) -> CModel:
    return CModel(built(spec), find_compilers()[0], ("-O1",))


@pytest.mark.in_turn(45)
@pytest.mark.parametrize("spec", MODELS)
def test_a_forged_state_that_is_accepted_learns_as_a_new_one(spec: Spec, exhaustive: bool) -> None:
    """No good row is refused, the state can be saved at each step, host and C agree, and the error is soon as of a new model."""
    rng, drop = np.random.default_rng(7), identity(spec).drop
    model, fresh, honest = (HostModel(spec, drop) for _ in range(3))
    for taught in (model, honest):
        taught.update(*rows(spec, np.random.default_rng(8), 300))
    x, y = rows(spec, rng, ROWS)
    judged = rows(spec, rng, 150)
    for learned in (fresh, honest):
        learned.update(x, y)
    allowed = 3 * max(error(fresh, *judged), error(honest, *judged)) + 0.02
    device, end = device_of(spec), spec.program.state_bytes(model.memory.layout)
    for what in itertools.islice(forged(model, rng), 60 if exhaustive else 6):
        device.memory.buffer[...] = model.memory.buffer
        statuses = []
        for i in range(ROWS):
            statuses.extend(model.update(x[i : i + 1], y[i : i + 1]))
            assert i % 50 > 10 or is_valid(model), (what, i)
        assert min(statuses) >= 0, what
        assert error(model, *judged) <= allowed, what
        assert (device.visit("update", x, y) == np.array(statuses)).all(), what
        assert bytes(device.memory.bytes)[:end] == bytes(model.memory.bytes)[:end], what
        loaded = HostModel(spec, drop)
        snapshot.load(loaded, snapshot.save(model))
        assert bytes(loaded.memory.bytes)[:end] == bytes(model.memory.bytes)[:end], what


@pytest.mark.in_turn(45)
@pytest.mark.parametrize("spec", MODELS)
def test_what_is_computed_again_agrees_with_the_rest(spec: Spec, exhaustive: bool) -> None:
    """``load`` does not compare matrices with vectors; where these were forged, an action makes new ones, and the state is valid."""
    model = HostModel(spec, identity(spec).drop)
    model.update(*rows(spec, np.random.default_rng(8), 300))
    actions = {entry.name for entry in spec.program.entries_for(spec.config)}.intersection(spec.program.between)
    for what in others_forged(model, np.random.default_rng(9), 60 if exhaustive else 12):
        for action in sorted(actions):
            getattr(model, action)()
        assert is_valid(model), what
