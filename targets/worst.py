"""The most expensive call that can be found: a search that tries to be unkind."""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.targets.unicorn_runner import Call, UnicornModel

TRIES = 1000
INSTRUCTIONS = 100_000_000
"""A search ends after that many tries, or after that many emulated instructions: with soft floating point, sooner."""
POOL = 16  # states kept


def worst_call(model: UnicornModel, name: str, x: np.ndarray, y: np.ndarray, seed: int = 0, tries: int = TRIES) -> Call:
    """The call of a question or update with most instructions, by hill climbing from the stream's most expensive one.

    Each try takes a state and a sample, of the most expensive call so far or by chance, changes the sample, and counts.
    Every state is reached by updates from one that the stream reached: what is found can happen.  Depends on nothing
    but the arguments.
    """
    rng = np.random.default_rng(seed)
    best = model.hardest[name]
    states = [best.state, model.contents()]
    end = model.machine.instructions + INSTRUCTIONS
    for _ in range(tries):
        if model.machine.instructions > end:
            break
        if rng.random() < 0.6:
            state, sample, label = best.state, best.x, best.y
        else:
            i = rng.integers(len(x))
            state, sample, label = states[rng.integers(len(states))], x[i], y[i]
        sample, label = _changed(sample, label, x, y, rng)
        model.restore(state)
        call, status = model.measure(name, state, sample, label)
        if status >= 0 and call.instructions > best.instructions:
            best = call
        if rng.random() < 0.3:  # from here on, a state further
            if not model.program.learns:
                continue  # there is one state
            if name != "update":
                status = model.take("update", sample, label)
            if status >= 0:
                states = [*states[-POOL + 1 :], model.contents()]
    return best


def _changed(
    sample: np.ndarray, label: Any, x: np.ndarray, y: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Another sample: near, far, between two, on the axes, or the same with another label."""
    other = x[rng.integers(len(x))]
    kind = rng.integers(8)
    with np.errstate(all="ignore"):
        if kind == 0:
            sample = other
        elif kind == 1:
            sample = sample * (1 + 2.0 ** -rng.uniform(1, 24) * rng.normal(size=sample.shape))
        elif kind == 2:
            sample = sample * 2.0 ** rng.integers(-8, 9)
        elif kind == 3:
            sample = sample + rng.uniform() * (other - sample)
        elif kind == 4:
            sample = np.where(rng.random(sample.shape) < 0.5, sample, other)
        elif kind == 5:
            sample = np.where(rng.random(sample.shape) < 0.5, sample, 0)
        if rng.random() < 0.5:
            scaled = rng.random() < 0.5 and y.dtype.kind == "f"
            label = label * rng.choice([-1.0, 0.0, 0.5, 2.0, 1024.0]) if scaled else y[rng.integers(len(y))]
        return sample.astype(x.dtype), np.asarray(label, y.dtype)
