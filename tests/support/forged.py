"""States that ``load`` accepts and no learning leads to: matrices of other vectors, multipliers at their limits.

What is forged is read off the model: a field that no answer depends on is a matrix, or another memory of the rule's own; answers
are linear in multipliers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from pykernel.dialect import Memory, ends_of
from pykernel.host.identity import specialised
from pykernel.host.model import HostModel
from tests.support.following import is_valid

LEAST = -0.6
"""Powers of ten from here on.  A covariance that is much smaller is that of a model that has learned for long."""


def fields(model: HostModel) -> tuple[list[str], list[str], list[str]]:
    """Real arrays of the rule's own: those that no answer depends on, those in which answers are linear, and others."""
    rng, memory = np.random.default_rng(0), model.memory
    x = rng.uniform(-2, 2, (8, model.spec.width)).astype(model.spec.real.dtype)
    kept = {slot.name for slot in memory.layout.slots}
    found: tuple[list[str], list[str], list[str]] = ([], [], [])
    for struct in model.spec.program.persistent:
        for name in (name for name in struct.fields if name in kept):
            field = memory.field(name)
            if field.dtype.kind == "f" and field.size > 1 and field.any():
                value, answers = field.copy(), []
                for factor in (1.0, 1.5, 2.0):
                    field[...] = value * field.dtype.type(factor)
                    answers.append(model.predict(x))
                field[...] = value
                first, second = np.diff(answers, axis=0)
                found[int(first.any()) if np.allclose(first, second, rtol=1e-3) else 2].append(name)
    return found


def forged(model: HostModel, rng: np.random.Generator) -> Iterator[str]:
    """Forge the model's memory again and again; what was done, each time that it is valid.  Ends at once where nothing can be forged."""
    hidden, linear, _ = fields(model)
    # only of rules that see at once that an error is too large; doubt needs more labels than follow here
    linear = linear if {"strays", "errs_wildly"} & specialised(model.spec).functions.keys() else []
    good = model.memory.buffer.copy()
    while hidden or linear:
        model.memory.buffer[...] = good
        done = [_forge(model.memory, rng, model, name) for name in _some(rng, hidden)]
        if linear:
            done += [_at_limit(model.memory, rng, model, name) for name in _some(rng, linear) if rng.random() < 0.3]
        if done and is_valid(model):
            yield ", ".join(done)


def others_forged(model: HostModel, rng: np.random.Generator, count: int) -> Iterator[str]:
    """The same of vectors and what else answers depend on: ``count`` forgeries, those of them that are valid."""
    *_, others = fields(model)
    good = model.memory.buffer.copy()
    for name in itertools.islice(itertools.cycle(others), count):
        model.memory.buffer[...] = good
        done = _forge(model.memory, rng, model, name)
        if is_valid(model):
            yield done


def _some(rng: np.random.Generator, names: list[str]) -> list[str]:
    return list(rng.permutation(names)[: rng.integers(1, 3)])


def _forge(memory: Memory, rng: np.random.Generator, model: HostModel, name: str) -> str:
    field = memory.field(name)
    used = np.flatnonzero(field)
    flat, size = field.reshape(-1), len(used)
    how = int(rng.integers(6))
    flat[used] = (
        lambda: flat[used] * 10.0 ** rng.uniform(LEAST, 4),
        lambda: flat[used] * (1 + rng.normal(size=size) * 10.0 ** rng.uniform(-2, 1)),
        lambda: rng.permutation(flat[used]),
        lambda: rng.normal(size=size) * 10.0 ** rng.uniform(0, 3),
        lambda: flat[used] * rng.choice([-1, 1], size),
        lambda: flat[used] * np.where(np.arange(size) == rng.integers(size), 10.0 ** rng.uniform(LEAST, 6), 1),
    )[how]()
    low, high = _range(model, name)
    np.clip(field, low, high, field)
    return f"{name} {how}"


def _at_limit(memory: Memory, rng: np.random.Generator, model: HostModel, name: str) -> str:
    """One of the numbers in use, or all, at an end of their range."""
    field = memory.field(name)
    used = np.flatnonzero(field)
    some = rng.choice(used, 1) if rng.random() < 0.5 else used
    low, high = (np.broadcast_to(end, field.shape).reshape(-1) for end in _range(model, name))
    field.reshape(-1)[some] = np.where(rng.random(len(some)) < 0.5, low[some], high[some])
    return f"{name} at a limit"


def _range(model: HostModel, name: str) -> tuple[np.ndarray, np.ndarray]:
    spec = model.spec
    given = next(struct.ranges.get(name) for struct in spec.program.persistent if name in struct.fields)
    if given is None:
        return np.array(-np.inf), np.array(np.inf)
    low, high = ends_of(given, model.memory.capacities, spec.config, spec.real)
    return np.asarray(low), np.asarray(high)
