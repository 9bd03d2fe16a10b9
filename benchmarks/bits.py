"""The bits that a spec computes: for the corpus of tests/host and for the results that rest on them."""

from __future__ import annotations

import hashlib
import itertools

import numpy as np
import numpy.typing as npt

from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec


def samples_of(spec: Spec, samples: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.generic]]:
    """A stream of exact fractions, on every platform the same: new places, repeats, one input that is no number."""
    whole, functions = spec.program.is_int16, spec.program.label_array(spec.capacities)
    seeds = itertools.accumulate(itertools.repeat(0), lambda seed, _: (seed * 75 + 74) % 65537, initial=1)
    drawn = np.array(list(itertools.islice(seeds, 1, samples * spec.width + 1)), np.int64).reshape(samples, spec.width)
    x = (drawn - 32768) / 2.0**14  # within +-2
    x[5::7] = x[4:-1:7][: len(x[5::7])]
    y = x[:, 0] * x[:, -1] - x.sum(1) / 4
    x[samples // 2, 0] = np.nan if not whole else x[samples // 2, 0]
    if functions.is_class:
        return x, (np.floor(y).astype(np.int32) % len(spec.label.classes)).astype(np.int32)
    if not functions.shape:
        return x, y
    several = [y * (o + 1) / 2 for o in range(functions.shape[0])]
    return x, np.stack(several, 1) if several else np.zeros((samples, 0))


def bits_of(spec: Spec, samples: int, dead: bool = False, lost: bool = False) -> str:
    """Digest of answers, statuses and what is kept, after a stream (of three times the samples, if these are raw); in
    plain Python, which compiles nothing.  dead: the first input is always zero.  lost: the labels of the second third are those of
    other samples."""
    model = HostModel(spec, engine="python")
    x, y = samples_of(spec, samples if spec.signal is None else 3 * samples)
    x[:, 0] *= 1.0 - dead
    if lost:
        y[len(y) // 3 : 2 * len(y) // 3] = y[len(y) // 3 : 2 * len(y) // 3][::-1].copy()
    digest = hashlib.sha256()

    def take(values: object) -> None:
        array = np.ascontiguousarray(values)
        digest.update(array.astype(array.dtype.newbyteorder("<")).tobytes())

    for values in model.prequential(x, y):
        take(values)
    for name in spec.program.questions:
        if model.has(name) and spec.signal is None:
            for values in model.ask(name, x[:4]):
                take(values)
    memory = spec.memory(identity(spec).drop)
    memory.copy_from(model.memory)
    take(np.frombuffer(memory.bytes, np.uint8)[: spec.program.state_bytes(memory.layout)])
    return digest.hexdigest()[:16]
