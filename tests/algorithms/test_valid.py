"""``valid`` of every rule: what no learning can lead to is refused, whatever the configuration."""

import contextlib

import numpy as np
import pytest

from pykernel.dialect.program import taken_by
from pykernel.gen.model import model_code
from pykernel.host.model import HostModel
from tests.support.following import is_valid
from tests.support.random_calls import Samples
from tests.support.random_specs import RULES, random_spec

SPECS = 1
"""Random specs of each rule."""


def learned(seed: int, rule: str) -> HostModel:
    rng = np.random.default_rng([29, seed])
    spec = random_spec(rng, rule)
    model = HostModel(spec, model_code(spec).drop)
    samples = Samples(model.spec, rng)
    takes = len(taken_by(spec.program.entry("update")))
    for _ in range(80):
        model.call("update", *(samples.x(), samples.y())[:takes])
    return model


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("frozen", "nystrom")])
@pytest.mark.in_turn(5)
def test_no_state_may_have_a_number_that_is_none(rule: str, exhaustive: bool) -> None:
    """Each real field of what is saved, each of some elements: infinity and NaN are refused."""
    for seed in range(10 * SPECS if exhaustive else SPECS):
        model = learned(seed, rule)
        assert is_valid(model)
        for struct in model.spec.program.persistent:
            for name in set(struct.fields) - set(model_code(model.spec).drop):
                field = model.memory.field(name)
                if field.dtype.kind != "f" or not field.size:
                    continue
                flat = field.reshape(-1)
                for at in {0, flat.size // 2, flat.size - 1} if exhaustive else {flat.size // 2}:
                    for value in (np.inf, -np.inf, np.nan):
                        kept = flat[at]
                        flat[at] = value
                        assert not is_valid(model), (seed, name, at, value)
                        flat[at] = kept
        assert is_valid(model)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule not in ("frozen", "nystrom")])
def test_no_call_leaves_an_array_whatever_a_count_says(rule: str, exhaustive: bool) -> None:
    """Each whole number of what is saved alone, as after a fault of the RAM; plain Python checks each place in an array."""
    for seed in range(10 * SPECS if exhaustive else SPECS):
        before = learned(seed, rule)
        spec, drop = before.spec, model_code(before.spec).drop
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
