"""Merge the learned states of several devices into one state, from which a model can continue to learn.

All devices have the same spec, and each has learned from different samples.

Sums.  Recursive least squares keeps P = (sum phi phi' + I / s)^-1 and the weights w = P sum phi y.  Here phi are the
features of a sample, y is its label, and s is the prior variance of a weight.  The sums of several devices can be
added, so the merged state equals the state of one model that has learned all samples.  Normalised least mean squares
keeps no sums, so the merged weights are the mean of the devices' weights.

Answers.  A new model is trained, by its usual update, on the devices' answers to inputs from the region where the
devices have learned. These inputs are the vectors that the devices store, and random inputs with the means and standard
deviations that the devices' standardisers have estimated.  The nearer an input is to the inputs of a device, the more
weight this device's answer has.  Because ordinary updates produce the merged state, it is valid, whatever the rule and its
stages store (C. Bucila, R. Caruana, A. Niculescu-Mizil, Model Compression, 2006).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pykernel.algorithms.linear import FeatureKind, Gain
from pykernel.dialect import Memory
from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.migrate import require_meaning
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from pykernel.telling import QUIET, Watch, raise_first_error

ASKED, DRAWN = 20_000, 400
"""Maximum number of inputs (stored vectors and random inputs) at which all devices predict, and maximum number of random inputs
per device.
"""
ROUNDS = 10
"""Number of training passes over all answers. Each pass uses a different order.  The state with the smallest residual is kept."""
SURE = 1e-3
"""The variance of each device's inputs is increased by this fraction of the variance of all devices' inputs.

Without this increase, the weight of a device with a single vector would be infinite.
"""
STRANGE = 3.0
"""The answers of each device are predicted from those of the other devices. A device disagrees with the others if the
error of this prediction is above STRANGE times the median error of all devices, and above a tenth of the answers'
standard deviation.
"""


@dataclass(frozen=True)
class Merged:
    """A merged state for ``spec``.

    way: "sums", "mean" or "answers".  deviations: for each device, the root mean square difference between the other devices' joint
    answers and this device's answers, at inputs from the region where this device has learned.  left: the root mean
    square difference between the merged model's answers and the joint answers of all devices.  ``deviations`` and
    ``left`` are divided by the answers' standard deviation, and are None for sums and means.
    """

    spec: Spec
    data: bytes
    way: str
    deviations: Mapping[str, float | None]
    left: float | None = None

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about devices that disagree with the others.  With only two devices there is no warning, because
        either device may be wrong.
        """
        told = {name: each for name, each in self.deviations.items() if each is not None}
        usual = max(float(np.median([*told.values()])), 0.1 / STRANGE) if len(told) > 2 else np.inf
        return tuple(
            f"{name} answers differently from the other devices; is one of its sensors broken, or are its surroundings different? "
            "merge the other devices without this one, and compare"
            for name, each in told.items()
            if each > STRANGE * usual
        )

    @property
    def state_hash(self) -> int:
        return snapshot.read(self.spec, self.data).state_hash


def merge(spec: Spec, states: Mapping[str, bytes], into: Spec | None = None, watch: Watch = QUIET) -> Merged:
    """Merge the states of several devices into one state.

    states: name of a device -> its snapshot, or the bytes of its state.  into: the spec of the merged state, by default ``spec``.
    ``into`` may differ from ``spec`` in the budget and in parameters that do not change the meaning of a state.  The order
    of the states does not change the result.

    Cost: O(K F^3) for the sums of K devices with F features.  A merge by answers uses at most ASKED inputs in total.
    Each input costs one prediction by every device, and ROUNDS updates and predictions of the new model.  Raises
    UserError if the states cannot be merged.
    """
    into = spec if into is None else into
    require_meaning(spec, into, "the merged state")
    if len(states) < 2:
        raise UserError(f"{spec.name}: the number of states is {len(states)}; give two or more, one from each device")
    given = {name: _device(spec, name, data) for name, data in states.items()}
    # sums are rounded, and questions are drawn, one device after the other: an order of their own makes the result the same
    # in whatever order the states are given
    devices = {name: given[name] for name in sorted(given, key=lambda name: (bytes(given[name].memory.bytes), name))}
    way = _way(spec)
    deviations: Mapping[str, float | None] = dict.fromkeys(devices)
    left = None
    if way == "answers":
        model, deviations, left = taught(into.inner, devices, watch)
    else:
        model = (add_sums if way == "sums" else mean_weights)(spec.inner, into.inner, devices)
    outer = HostModel(into)
    outer.memory.copy_from(model.memory, into.inner.program.persistent)
    return Merged(into, snapshot.save(outer), way, {name: deviations[name] for name in states}, left)


def _way(spec: Spec) -> str:
    """Return the way to merge states of this spec: "sums", "mean" or "answers". Raises UserError if they cannot be merged."""
    program, config, rule = spec.inner.program, spec.inner.config, spec.learning.rule
    raise_first_error(
        (
            program.label_kind == "none",
            f"{spec.name}: learns without labels, and only models that learn from labels can be merged; start each device from "
            "the state of the device that has seen the most samples",
        ),
        (spec.real.is_int16, f"{spec.name}: has precision int16; only float32 and float64 models can be merged"),
    )
    if program.name in ("linear", "expansion") and not (config.standardises or config.centers or config.leads):
        if config.gain == Gain.NLMS:
            return "mean"
        if program.name == "expansion" or not config.forgets:
            return "sums"
        raise UserError(
            f"{spec.name}: uses forgetting, so the sums that its devices keep cannot be added; leave out [learning] forgetting "
            "in models that are to be merged"
        )
    if program.budget is None and not spec.standardises:
        raise UserError(
            f"{spec.name}: a state of rule {rule} does not show which inputs its device has learned from; merging needs "
            "[reduction] n_max, [input] standardise, or one of the rules rls, quadratic-rls, rff-rls, nlms and expansion-rls"
        )
    return "answers"


def _device(spec: Spec, name: str, data: bytes) -> HostModel:
    memory = snapshot.device_memory(spec, data, name)
    if not snapshot.is_valid(spec, memory):
        raise UserError(f"{name}: holds a number that learning cannot produce; leave this device out")
    model = HostModel(spec.inner)
    model.memory.copy_from(memory)
    return model


# ------------------------------------------------------------------------------------------------------------- answers


def taught(spec: Spec, devices: Mapping[str, HostModel], watch: Watch) -> tuple[HostModel, dict[str, float], float]:
    """Train a new model on the devices' answers. Returns the model, and the values of ``Merged.deviations`` and
    ``Merged.left``.
    """
    rng = np.random.default_rng(0)
    asked = [questions(model, max(ASKED // len(devices), 2), rng) for model in devices.values()]
    if empty := [name for name, own in zip(devices, asked, strict=True) if not len(own)]:
        raise UserError(f"{empty[0]}: has learned nothing yet; leave this device out")
    x, begins = np.concatenate(asked), np.cumsum([0, *map(len, asked)])
    nearness = np.stack([log_density(own, x) for own in asked])
    device_answers, deviations = np.zeros((len(devices), len(x), spec.outputs)), {}
    with watch.progress(len(devices) + ROUNDS) as shown:
        for k, (name, device) in enumerate(devices.items()):
            shown(k, f"asking {name}")
            device_answers[k] = answers(device, x)
        deviation = float(np.sqrt(device_answers.var(axis=(0, 1)).sum())) or 1.0
        for k, name in enumerate(devices):
            own = slice(begins[k], begins[k + 1])
            others = together(np.delete(device_answers, k, 0)[:, own], np.delete(nearness, k, 0)[:, own])
            deviations[name] = _rms(others - device_answers[k, own]) / deviation
        g = together(device_answers, nearness)
        # the labels get noise as large as the differences between the devices' answers and the joint answers, because
        # without noise the model would trust its next real label completely.  If the model has a budget, the labels get
        # no noise, because its few vectors cannot average the noise out
        noise = np.sqrt(together(np.square(device_answers - g), nearness).mean(axis=0)) * (spec.program.budget is None)
        model, best, left = HostModel(spec), HostModel(spec), np.inf
        for number in range(ROUNDS):
            shown(len(devices) + number, "teaching the merged model")
            order = rng.permutation(len(x))
            model.update(x[order], labels_of(spec, g + noise * rng.normal(size=g.shape))[order])
            missed = _rms(answers(model, x) - g) / deviation
            if missed < left:
                left = missed
                best.memory.copy_from(model.memory)
    if left == np.inf:
        raise UserError(
            f"{spec.name}: [input] max_abs is too small for the inputs of the devices; give a larger max_abs"
        )
    return best, deviations, left


def labels_of(spec: Spec, answers: np.ndarray) -> np.ndarray:
    """Return the labels that train a model to give ``answers``, an array of the shape (rows, OUTPUTS)."""
    if spec.program.label_kind == "class":
        return answers.argmax(axis=1) if spec.outputs > 1 else (answers[:, 0] > 0).astype(int)
    y = np.clip(answers, -spec.config.label_limit, spec.config.label_limit)
    return y if spec.program.label_kind == "reals" else y[:, 0]


def log_density(own: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the nearness of each row of ``x`` to the region where a device has learned.

    x: (rows, D).  own: inputs from this region, as ``questions`` returns them, (own rows, D).  The nearness, (rows,),
    is the log density, up to a constant, of a Gaussian with the mean and the variances of ``own``.  The variances are
    increased as ``SURE`` describes.  The log density is divided by D, so that it does not grow with D.
    """
    variance = own.var(axis=0) + SURE * x.var(axis=0)
    variance[variance == 0] = 1.0  # a constant input does not distinguish devices
    return np.asarray(-(np.square(x - own.mean(axis=0)) / variance + np.log(variance)).mean(axis=1) / 2)


def together(device_answers: np.ndarray, nearness: np.ndarray) -> np.ndarray:
    """Return the joint answers: the mean of the devices' answers, with weights proportional to exp(nearness).

    device_answers: the answers, (K, rows, OUTPUTS) for K devices. nearness: (K, rows).
    """
    weights = np.exp(nearness - nearness.max(axis=0))
    return np.asarray(np.einsum("kl,klo->lo", weights / weights.sum(axis=0), device_answers))


def questions(model: HostModel, most: int, rng: np.random.Generator) -> np.ndarray:
    """Return at most ``most`` raw inputs from the region where a device has learned, (rows, D). If the device has
    learned nothing, the result has no rows.
    """
    spec, memory = model.spec, model.memory
    inputs = np.zeros((0, spec.width))
    if spec.standardises and int(memory.field("observed")[0]) >= max(1, spec.config.input_warmup):
        inputs = rng.normal(size=(min(DRAWN, most // 2), spec.width)) * np.sqrt(
            np.array(memory.field("variance"), np.float64)
        )
        inputs += memory.field("mean")
    if spec.program.budget is not None:
        stored = np.array(memory.field("v")[: int(memory.field("n")[0])], np.float64)
        inputs = np.concatenate([inputs, raw_inputs(spec, memory, rng.permutation(stored)[: most // 2])])
    return np.clip(inputs, *spec.input_ranges)


def raw_inputs(spec: Spec, memory: Memory, z: np.ndarray) -> np.ndarray:
    """Convert standardised or scaled inputs, (rows, D), as the rule learns them, back to raw inputs."""
    if spec.standardises:
        scale = np.array(memory.field("scale"), np.float64)
        return np.asarray(z / np.where(scale > 0, scale, 1.0) + np.array(memory.field("mean"), np.float64))
    return spec.unscaled(z)


def answers(model: HostModel, x: np.ndarray) -> np.ndarray:
    """Return the model's predictions, (rows, OUTPUTS). The predictions of a classifier are clipped to [-1, 1]."""
    found = np.asarray(model.predict(x), np.float64).reshape(len(x), -1)
    # a class's function is trained to be at least 1 for rows of the class and at most -1 for other rows; how far it
    # exceeds these limits carries no information
    return np.clip(found, -1, 1) if model.spec.program.label_kind == "class" else found


def _rms(errors: np.ndarray) -> float:
    return float(np.sqrt(np.square(errors).sum(axis=-1).mean()))


# ---------------------------------------------------------------------------------------------------------------- sums


def add_sums(spec: Spec, into: Spec, devices: Mapping[str, HostModel]) -> HostModel:
    """Return a model with spec ``into`` that equals the result of recursive least squares over all samples of all
    devices. Cost: O(K F^3) for K devices with F features.

    Raises UserError for a state with a covariance that no samples can produce.
    """
    model, config, expanded = HostModel(into), spec.config, spec.expansion is not None
    prior, start = (float(c.prior_variance if expanded else c.start**2) for c in (config, into.config))
    memory, features = model.memory, model.memory.field("weights").shape[1]
    one, lower = np.eye(features), np.tril_indices(features)
    precision, products, origin = one / start, np.zeros((features, spec.outputs)), None
    for name, device in devices.items():
        weights, center, state = (
            np.array(device.memory.field(field), np.float64)
            for field in ("weights", "origin", "settled" if expanded else "root")
        )
        if not expanded and not device.memory.field("started")[0]:
            continue
        triangle = np.zeros((features, features))
        triangle[lower] = state
        covariance = prior * one - triangle - np.tril(triangle, -1).T if expanded else triangle @ triangle.T
        own = _inverse(covariance, name)
        origin = center if origin is None else origin
        move = moved_features(config.feature_kind, center - origin, features) if config.centres else one
        precision = precision + move @ (own - one / prior) @ move.T
        products += move @ own @ weights.T
    covariance = _inverse(precision, spec.name)
    memory.field("weights")[...] = (covariance @ products).T
    if expanded:
        memory.field("settled")[...] = (start * one - covariance)[lower]
    elif origin is not None:
        memory.field("root")[...] = np.linalg.cholesky(covariance)[lower]
        memory.field("origin")[...] = origin
        memory.field("started")[0] = 1
    return model


def _inverse(matrix: np.ndarray, where: str) -> np.ndarray:
    """Return the inverse of a positive definite matrix.  Raises UserError for any other matrix."""
    try:
        factor = np.linalg.inv(np.linalg.cholesky(matrix))
    except np.linalg.LinAlgError:
        raise UserError(
            f"{where}: the covariance matrix is not positive definite; leave out the device whose state is damaged"
        ) from None
    return np.asarray(factor.T @ factor)


def moved_features(kind: FeatureKind, by: np.ndarray, features: int) -> np.ndarray:
    """Return the matrix M for which phi(x - a) = M phi(x - b), where b - a = ``by``.  phi consists of the inputs, their
    products if ``kind`` is PRODUCTS, and 1.
    """
    moved, dim = np.eye(features), len(by)
    moved[:dim, -1] = by
    if kind == FeatureKind.PRODUCTS:
        i, j = np.triu_indices(dim)
        rows = dim + np.arange(len(i))
        moved[rows, i] += by[j]
        moved[rows, j] += by[i]
        moved[rows, -1] = by[i] * by[j]
    return moved


def mean_weights(spec: Spec, into: Spec, devices: Mapping[str, HostModel]) -> HostModel:
    """Return a model whose weights are the mean of the devices' weights."""
    model = HostModel(into)
    model.memory.field("weights")[...] = np.mean(
        [device.memory.field("weights") for device in devices.values()], axis=0
    )
    return model
