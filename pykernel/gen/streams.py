"""Make streams of samples with which checks exercise every code path of a model."""

from typing import Any

import numpy as np

from pykernel.errors import UserError
from pykernel.spec.model import Spec


def mixed_stream(spec: Spec, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream that exercises every code path: smooth data, scales from 1e-20 to 1e20, repeats, constants, NaN
    and infinities.

    For an int16 model, the stream is converted to counts, and also has counts at the ends of the int16 range.

    Returns two arrays, in the types that the C code takes: the inputs, of shape (samples, DIM), and the labels.  Several
    labels per sample have the shape (samples, OUTPUTS) and are correlated.  Single labels have the shape (samples,); if
    they are class indices, some are invalid.  Without labels, the shape is (samples, 0).
    """
    if spec.signal is not None:
        return raw_stream(spec, samples, seed)
    rng, own = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    int16, dim, labels = spec.program.is_int16, spec.dim, spec.program.label_array(spec.capacities)
    dtype = np.dtype(np.float64) if int16 else spec.real.dtype
    x = rng.normal(size=(samples, dim)) * min(2 * spec.length_scale / np.sqrt(dim), spec.input_max_abs / 4)
    if spec.expansion is not None:
        # half of the samples are near the model's vectors, because farther away the kernel values, and so the answers,
        # are 0
        vectors = np.array(spec.expansion.vectors, float)
        visits = own.random(samples) < 0.5
        x[visits] += vectors[own.integers(0, len(vectors), samples)][visits]
    y = np.sin(x.sum(1) / spec.length_scale) + 0.1 * rng.normal(size=samples)
    positions = _classes(y, len(spec.label.classes or ()), own)
    if labels.shape:
        directions = own.normal(size=(dim, *labels.shape)) / spec.length_scale
        y = y[:, None] * own.uniform(-1, 1, labels.shape) + 0.5 * np.sin(x @ directions)
    y = y * min(1.0, spec.label.max_abs / 4) + spec.label_offset
    kind, when = rng.random(samples), np.arange(samples) / samples
    # other scales come late in the stream, because they can leave an isolated vector or a huge multiplier in the
    # model, after which samples reach fewer paths
    scale = 10.0 ** rng.uniform(-20, 20, samples)
    wild = (kind < 0.1) & (when > 0.6)
    x[wild] *= scale[wild, None]
    loud = (kind > 0.1) & (kind < 0.2) & (when > 0.8)
    y[loud] = (y[loud].T * scale[loud]).T
    lattice = (kind > 0.2) & (kind < 0.35)
    x[lattice] = np.round(x[lattice] / spec.length_scale) * spec.length_scale
    earlier = np.maximum(np.arange(samples) - rng.integers(1, 40, samples), 0)
    for low, high, factor in ((0.35, 0.41, 1.0), (0.41, 0.45, 1 + 1e-6), (0.45, 0.5, 1 + 1e-3)):
        near = np.flatnonzero((kind > low) & (kind < high))
        x[near] = x[earlier[near]] * factor
    x[samples // 2 : samples // 2 + samples // 1000] = x[samples // 2]
    x = spec.unscaled(x)
    with np.errstate(over="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    few = max(1, samples // 500)
    for values in (np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal):
        x[rng.integers(0, samples, few), rng.integers(0, dim)] = values
        rows = rng.integers(0, samples, few)
        if y.size:
            y[(rows, *(own.integers(0, width, few) for width in labels.shape))] = values
    if spec.completes:
        leave_out(x, np.random.default_rng([seed, 3]))
    x, y = as_taken(spec, x, positions if labels.is_class else y)
    if int16:
        for count in (-32768, -32767, 32767, 0):
            x[rng.integers(0, samples, few), rng.integers(0, dim)] = count
    return x, y


def leave_out(x: np.ndarray, rng: np.random.Generator) -> None:
    """Replace inputs with NaN: 10 % of all numbers; in each block of 20 rows, all numbers of about 5 % of the inputs; a few
    whole rows; and the first rows of one input.
    """
    samples, dim = x.shape
    x[rng.random(x.shape) < 0.1] = np.nan
    silent = rng.random((samples // 20 + 1, dim)) < 0.05
    x[silent.repeat(20, axis=0)[:samples]] = np.nan
    x[rng.integers(0, samples, max(1, samples // 200))] = np.nan
    x[: min(60, samples // 4), int(rng.integers(0, dim))] = np.nan


def raw_stream(spec: Spec, samples: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return a stream of raw samples that exercises every code path: waves, steps, constants, saturation, many scales,
    NaN and infinities.

    For a model that learns labels from the firmware, the labels are a noisy function of the signal.  The inputs have
    the shape (samples, CHANNELS).  The types of both arrays, and the shape of the labels, are as in ``mixed_stream``.
    """
    assert spec.signal is not None
    rng, channels = np.random.default_rng([seed, 2]), spec.width
    most, int16 = np.array(spec.signal.max_abs, float), spec.program.is_int16
    labels, t = spec.program.label_array(spec.capacities), np.arange(samples)
    dtype = np.dtype(np.float32) if int16 else spec.real.dtype
    unit = most / 16 if int16 else np.minimum(1.0, most / 16)
    x = np.sin(t[:, None] / rng.uniform(2, 30, channels) + rng.uniform(0, 6, channels))
    x += rng.normal(size=(samples, channels)) * (0.1 + 0.4 * (t[:, None] // 150 % 3))
    level = np.repeat(rng.normal(size=(samples // 64 + 1, channels)), 64, axis=0)[:samples]
    x += np.where(rng.random(samples // 64 + 1).repeat(64)[:samples, None] < 0.3, 4 * level, 0)
    part = rng.random(samples // 32 + 1).repeat(32)[:samples]
    x[part < 0.05] = np.round(x[part < 0.05])
    x[(part > 0.05) & (part < 0.1)] = 3  # a constant signal
    y = np.sin(x.sum(1)) + 0.1 * rng.normal(size=samples)
    x *= unit
    saturated = (part > 0.1) & (part < 0.15)
    x[saturated] = most * np.sign(x[saturated])
    wild = (part > 0.15) & (part < 0.2) & (t > 0.6 * samples)
    x[wild] *= 10.0 ** rng.uniform(-20, 20, (int(wild.sum()), 1))
    positions = _classes(y, len(spec.label.classes or ()), rng)
    if labels.shape:
        y = y[:, None] * rng.uniform(-1, 1, labels.shape)
    y = y * min(1.0, spec.label.max_abs / 4) + spec.label_offset
    with np.errstate(over="ignore"):
        x, y = x.astype(dtype), y.astype(dtype)
    few = max(1, samples // 500)
    for values in (np.nan, np.inf, -np.inf, np.finfo(dtype).max, np.finfo(dtype).smallest_subnormal):
        x[rng.integers(0, samples, few), rng.integers(0, channels)] = values
        if y.size and not labels.is_class:
            y[rng.integers(0, samples, few)] = values
    return as_taken(spec, x, positions if labels.is_class else y)


def _classes(y: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return class indices that depend on y.  Some of them are random, and a few are invalid."""
    positions = np.clip((y + 1.0) / 2.0 * count, 0, max(0, count - 1)).astype(np.int32)
    flipped = np.flatnonzero(rng.random(len(y)) < 0.05)
    positions[flipped] = rng.integers(0, max(1, count), len(flipped))
    for none in (-1, count, -(2**31), 2**31 - 1):
        positions[rng.integers(0, len(y), max(1, len(y) // 500))] = none
    return positions


def stream_of(
    spec: Spec, samples: int, seed: int, stream: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the stream of a check: ``stream`` or, if it is None, a mixed stream.  Raises UserError if ``samples``
    is below 1.

    If the model is a monitor whose alarms an operator can answer, the finite numbers in the first four
    fifths of a mixed stream are replaced with ``machine_rows``.  Otherwise there would be few alarms and no new states.
    A monitor with a signal stage gets the mixed stream unchanged.
    """
    if samples < 1:
        raise UserError(f"samples is {samples}; it must be 1 or more")
    if stream is not None:
        return as_taken(spec, *(stream if isinstance(stream, tuple) else (stream, None)))
    x, y = mixed_stream(spec, samples, seed)
    if any(entry.answers for entry in spec.program.entries) and spec.signal is None:
        part = x[: -(-samples * 4 // 5)]
        part[:] = np.where(np.isfinite(part), machine_rows(spec, len(part), seed), part)
    return x, y


def near_halves(spec: Any, rows: int = 4096) -> np.ndarray:
    """Return floats with which NAME_counts is tested, as an array of shape (rows, numbers of a sample): counts of all sizes,
    midpoints between two counts, and the floats next to these.
    """
    rng, shape = np.random.default_rng(0), (rows, len(spec.counts_per_unit))
    counts = (np.rint(2.0 ** rng.uniform(0, 15.01, shape)) - rng.choice([0.5, 1], shape)) * rng.choice([-1, 1], shape)
    counts[5:20] = np.nextafter(np.float32(0.5), np.float32(0))  # the sum of this number and 0.5 rounds to 1 in float32
    found = (counts / spec.counts_per_unit + spec.offsets).astype(np.float32)
    found = np.nextafter(
        found, rng.choice(np.array([-np.inf, np.inf], np.float32), shape), where=rng.random(shape) < 0.6, out=found
    )
    found[:5] = np.array([0, np.nan, np.inf, -np.inf, 3e38], np.float32)[:, None]
    return found


def machine_rows(spec: Spec, count: int, seed: int) -> np.ndarray:
    """Return rows of a machine that often changes its state, and has more states than the monitor has room for.  Some
    sensors fail: they repeat a value, or their values are shifted.  Some series of rows are multiplied by a power of 10.
    """
    rng, dim = np.random.default_rng([seed, 4]), spec.dim
    states = 1 + 2 * max(size for name, size in spec.capacities.items() if name not in ("DIM", "OUTPUTS"))
    middles, mixing = 8 * rng.normal(size=(states, dim)), 0.3 * rng.normal(size=(states, dim, dim))
    runs = list[np.ndarray]()
    while sum(map(len, runs)) < count:
        state, sensor, fault = rng.integers(states), rng.integers(dim), rng.random()
        run = rng.normal(size=(int(rng.integers(5, 120)), dim)) @ mixing[state] + middles[state]
        if fault < 0.1:
            run[:, sensor] = run[0, sensor]
        elif fault < 0.2:
            run[:, sensor] += 30 * rng.normal()
        elif fault < 0.3:
            run *= 10.0 ** rng.uniform(-15, 4)
        runs.append(run)
    return spec.unscaled(np.concatenate(runs)[:count] * min(1.0, spec.input_max_abs / 64))


def as_taken(spec: Spec, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels in the types that the C code takes.  y: None if there are no labels."""
    y = np.zeros((len(x), 0)) if y is None else y
    is_class = spec.program.label_array(spec.capacities).is_class
    labels = np.asarray(y, np.int32) if is_class else spec.raw_labels(y)
    return np.ascontiguousarray(spec.raw_inputs(x)), np.ascontiguousarray(labels)
