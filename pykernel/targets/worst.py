"""Search for the most expensive call of a function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pykernel.dialect import Memory, Slot
from pykernel.host.snapshot import is_valid
from pykernel.targets.unicorn_runner import Call, UnicornModel

TRIES = 1000
INSTRUCTIONS = 100_000_000
"""A search ends after TRIES tries or after INSTRUCTIONS emulated instructions.  With software floating point, the limit
on instructions is usually reached first.
"""
POOL = 16  # number of states that are kept
FARTHEST = (*2.0 ** np.arange(24, 0, -1), 0.0)
"""Factors for elements of a state, the largest first.  The search takes the first factor with which the device accepts
the changed state.
"""
FACTORS = (-1.0, 0.0, 1e-3, 0.5, 2.0, 1e3)


def worst_call(model: UnicornModel, name: str, x: np.ndarray, y: np.ndarray, seed: int = 0, tries: int = TRIES) -> Call:
    """Search for the most expensive call of a question or update, by hill climbing from the most expensive call in the
    stream.

    Each try begins with a state and a sample (from the most expensive call so far, or at random), changes the sample, and
    counts the instructions of a call.  Every state that is tried can occur on a device: as a state in the stream, as
    the state after a call, or as the state in a snapshot, possibly forged, that the device accepts.
    The result depends only on the arguments.
    """
    rng = np.random.default_rng(seed)
    best = model.hardest[name]
    states = [best.state, model.contents()]
    end = model.machine.instructions + INSTRUCTIONS
    slots = range(len(_saved(model, model.memory)) if model.program.valid else 0)
    first = [_forged(model, best.state, [(slot, slice(None), FARTHEST)]) for slot in slots]
    for _ in range(tries):
        if model.machine.instructions > end:
            break
        if rng.random() < 0.6:
            state, sample, label = best.state, best.x, best.y
        else:
            i = rng.integers(len(x))
            state, sample, label = states[rng.integers(len(states))], x[i], y[i]
        if first:
            # the forged states come first, with the sample of the most expensive call
            state, sample, label = first.pop(), best.x, best.y
        else:
            sample, label = _changed(sample, label, x, y, rng)
            if rng.random() < 0.2:
                state = _elsewhere(model, state, rng)
        model.restore(state)
        call, status = model.measure(name, state, sample, label)
        if status >= 0 and call.instructions > best.instructions:
            best = call
        if rng.random() < 0.3:  # keep the state after an update
            if not model.program.learns:
                continue  # the model has only one state
            if name != model.program.learner:
                status = model.take(model.program.learner, sample, label)
            if status >= 0:
                states = [*states[-POOL + 1 :], model.contents()]
    return best


def _elsewhere(model: UnicornModel, state: bytes, rng: np.random.Generator) -> bytes:
    """Return the state to which a call other than the update leads, or a state that is loaded from a snapshot, in which
    some elements may have been changed.
    """
    program = model.program
    kind, changes = rng.integers(4), []
    if kind == 0 and program.actions:
        return model.after(state, str(rng.choice(program.actions)))
    if kind == 1:
        return model.after(state, "init")
    for _ in range(0 if kind == 2 or program.valid is None else int(rng.integers(1, 4))):
        slot = int(rng.integers(len(_saved(model, model.memory))))
        at = slice(None) if rng.random() < 0.3 else slice(int(rng.integers(2**31)), None)
        changes.append((slot, at, FARTHEST if rng.random() < 0.3 else (float(rng.choice(FACTORS)),)))
    return _forged(model, state, changes)


def _saved(model: UnicornModel, memory: Memory) -> list[Slot]:
    kept = model.program.state_bytes(memory.layout)
    return [slot for slot in memory.layout.slots if slot.struct and slot.offset < kept]


def _forged(model: UnicornModel, state: bytes, changes: Sequence[tuple[int, slice, Sequence[float]]]) -> bytes:
    """Return a saved state in which elements of some fields have been multiplied by factors.

    changes: (field, slice of its elements, factors).  The first factor with which the device accepts the state is used.
    """
    memory = model.spec.memory(tuple(model.project.drop))
    kept = model.program.state_bytes(memory.layout)
    memory.bytes[:kept] = state[:kept]  # working memory is not saved
    saved = _saved(model, memory)
    for slot, at, factors in changes:
        values = memory.field(saved[slot].name).reshape(-1)
        at = slice(at.start % len(values), None) if at.start else at
        before = values.copy()
        for factor in factors:
            with np.errstate(over="ignore", invalid="ignore"):
                values[at] = (before[at] * factor).astype(values.dtype)
            if is_valid(model.spec, memory):
                break
            values[:] = before
    return bytes(memory.bytes)


def _changed(
    sample: np.ndarray, label: Any, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return a sample and a label that are made from the given ones.

    The sample is moved slightly, scaled, mixed with another row, set to 0 in some inputs, replaced by another row, or
    left as it is.
    """
    other = x[rng.integers(len(x))]
    with np.errstate(all="ignore"):
        match rng.integers(8):
            case 0:
                sample = other
            case 1:
                sample = sample * (1 + 2.0 ** -rng.uniform(1, 24) * rng.normal(size=sample.shape))
            case 2:
                sample = sample * 2.0 ** rng.integers(-8, 9)
            case 3:
                sample = sample + rng.uniform() * (other - sample)
            case 4:
                sample = np.where(rng.random(sample.shape) < 0.5, sample, other)
            case 5:
                sample = np.where(rng.random(sample.shape) < 0.5, sample, 0)
        if rng.random() < 0.5:
            scaled = rng.random() < 0.5 and y.dtype.kind == "f"
            label = label * rng.choice([-1.0, 0.0, 0.5, 2.0, 1024.0]) if scaled else y[rng.integers(len(y))]
        return sample.astype(x.dtype), np.asarray(label, y.dtype)
