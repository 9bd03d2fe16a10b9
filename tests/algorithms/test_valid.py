"""``valid`` of every rule: what no learning can lead to is refused, whatever the configuration."""

import contextlib
from typing import Any

import numpy as np
import pytest

from pykernel.dialect import ends_of
from pykernel.dialect.program import taken_by
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.spec.families import online
from pykernel.spec.model import Spec, make_spec
from tests.support.every_model import MODELS, content_of, with_every_section
from tests.support.following import is_valid
from tests.support.random_calls import Samples
from tests.support.random_specs import RULES, random_spec

SPECS = 1
"""Random specs of each rule."""


def learned(spec: Spec, rng: np.random.Generator) -> HostModel:
    model, samples = HostModel(spec, identity(spec).drop, raw=spec.program.is_int16), Samples(spec, rng)
    for _ in range(80):
        model.visit(spec.program.learner, samples.x()[None], samples.y()[None])
    return model


def beyond(spec: Spec, name: str, kind: np.dtype[Any]) -> list[float]:
    """What a field may never hold: no number, and what is beyond the range that it declares."""
    ranges = {key: given for struct in spec.program.persistent for key, given in struct.ranges.items()}
    found = [np.inf, -np.inf, np.nan] if kind.kind == "f" else []
    if name in ranges:
        low, high = ends_of(ranges[name], spec.capacities, spec.config, spec.real)
        limits = np.iinfo(kind) if kind.kind in "iu" else np.finfo(kind)
        with np.errstate(over="ignore"):
            further = (
                [low - 1, high + 1] if kind.kind in "iu" else [low - 1e-3 * abs(low) - 1, high + 1e-3 * abs(high) + 1]
            )
        found += [value for value in further if limits.min <= value <= limits.max]
    return found


@pytest.mark.parametrize("model", MODELS, ids=" ".join)
@pytest.mark.in_turn(135)
def test_no_state_may_have_a_number_that_is_none_or_beyond_its_range(model: tuple[str, str, str]) -> None:
    """Each field of what is saved, the first, middle and last of its elements."""
    content = content_of(*model)
    if content is None or not make_spec(content).program.persistent:
        return
    taught = learned(make_spec(with_every_section(content, *model[:2])), np.random.default_rng(29))
    assert is_valid(taught)
    for struct in taught.spec.program.persistent:
        for name in set(struct.fields) - set(identity(taught.spec).drop):
            flat = taught.memory.field(name).reshape(-1)
            for at in {0, flat.size // 2, flat.size - 1} if flat.size else ():
                for value in beyond(taught.spec, name, flat.dtype):
                    kept = flat[at]
                    flat[at] = value
                    assert not is_valid(taught), (name, at, value)
                    flat[at] = kept
    assert is_valid(taught)


@pytest.mark.parametrize("rule", online.RULES)
def test_what_no_vector_uses_is_zero(rule: str) -> None:
    """The first place that is free and the last, of every field with a row for each vector."""
    content = content_of(rule, "float32", "plain")
    assert content is not None
    model = HostModel(make_spec(content | {"reduction": {"n_max": 9}}))
    model.update(np.random.default_rng(0).uniform(-5, 5, (4, 2)), np.ones(4))
    n = int(model.memory.field("n")[0])
    assert is_valid(model) and 0 < n < 8
    for name in ("v", "alpha"):
        for at in (n, 8):
            model.memory.field(name)[at] = 0.5
            assert not is_valid(model), (name, at)
            model.memory.field(name)[at] = 0
    assert is_valid(model)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("frozen", "nystrom")])
def test_no_call_leaves_an_array_whatever_a_count_says(rule: str, exhaustive: bool) -> None:
    """Each whole number of what is saved alone, as after a fault of the RAM; plain Python checks each place in an array."""
    for seed in range(10 * SPECS if exhaustive else SPECS):
        rng = np.random.default_rng([29, seed])
        before = learned(random_spec(rng, rule), rng)
        spec, drop = before.spec, identity(before.spec).drop
        model, samples = HostModel(spec, drop, engine="python"), Samples(spec, np.random.default_rng([30, seed]))
        takes = len(taken_by(spec.program.entry("update")))
        for struct in spec.program.persistent:
            for name in set(struct.fields) - set(drop):
                kind = before.memory.field(name).dtype
                if kind.kind not in "iu" or not before.memory.field(name).size:
                    continue
                for value in (np.iinfo(kind).max, np.iinfo(kind).min, 0):
                    for entry in spec.program.entries_for(spec.config):
                        model.memory.buffer[...] = before.memory.buffer
                        model.memory.field(name)[...] = value
                        # a sum that does not fit is no place in an array
                        with contextlib.suppress(OverflowError), np.errstate(all="ignore"):
                            if entry.kind == "update":
                                model.call("update", *(samples.x(), samples.y())[:takes])
                            elif entry.kind == "question":
                                model.ask(entry.name, samples.x()[None])
                            elif entry.kind == "reading":
                                model.read(entry.name)
                            elif not taken_by(entry.kernel):
                                model.call(entry.name)
