"""Convert models that have learned sample by sample to fixed kernel machines.  Smaller machines are then trained to
give the same answers.

The learned state comes from an estimator, or from a device that has saved it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.bases.gram import MercerKernel
from pykernel.dialect import Memory
from pykernel.errors import UserError
from pykernel.files import bytes_of
from pykernel.host.merging import raw_inputs
from pykernel.host.model import HostModel
from pykernel.host.snapshot import device_memory, is_valid, most_bytes
from pykernel.importers.place import Place
from pykernel.importers.sklearn import LEARNS
from pykernel.importers.steps import steps_of
from pykernel.spec.families.int16_scales import unit_of
from pykernel.spec.model import Spec
from pykernel.training.machine import Machine

Answers = Callable[[np.ndarray], np.ndarray]
RIDGE = 1e-6
"""Ridge of the regression on the stored vectors, relative to the mean of k(v, v)."""


LEFT_OUT = ("variance", "probability", "novelty", "interval")
"""Answers of a model that are lost when it is converted, because the smaller machine gives only predictions."""


def learns(estimator: Any) -> bool:
    """Return whether an estimator learns sample by sample."""
    return hasattr(type(steps_of(estimator)[-1][1]), LEARNS)


def read_learned(estimator: Any) -> tuple[Machine, Answers]:
    """Return the machine that an estimator has learned, and a function that computes the estimator's answers. Raises
    UserError.
    """
    from sklearn.pipeline import Pipeline

    *before, (_, model) = steps_of(estimator)
    where = Place(type(model).__name__)
    if not hasattr(model, "model_"):
        raise UserError(f"the {where} has learned nothing yet; call its fit or partial_fit first")
    spec, memory = model.model_.spec, model.model_.memory
    if before:
        spec, memory = getattr(model, LEARNS)("model", Pipeline(before))
    machine, answers = machine_of(spec, copy.deepcopy(memory), where)
    classes, calibration = (getattr(model, name, None) for name in ("classes_", "calibration_"))
    return replace(
        machine,
        classes=None if classes is None else tuple(classes.tolist()),
        calibration=None if calibration is None else np.array(calibration, np.float64),
    ), answers


def read_state(spec: Spec, state: str | Path) -> tuple[Machine, Answers]:
    """Return the machine in a file that a device has saved, and a function that computes the whole model's answers.

    state: path of a snapshot, or of a file with the NAME_STATE_BYTES bytes of the state.  The file is untrusted.  Raises UserError.
    """
    where = Place.of_file(state)
    if not spec.program.persistent:
        raise UserError(f"{spec.name} learns nothing on the device, so it has no state; leave {where} out")
    memory = device_memory(spec, bytes_of(Path(state), most_bytes(spec)), where)
    # a state without header and CRC has not been checked yet
    where.need(is_valid(spec, memory), "holds a number that learning cannot produce; do not use this state")
    machine, answers = machine_of(spec, memory, Place(spec.name))
    others = [f"{spec.name}: its {name} is left out" for name in LEFT_OUT if HostModel(spec.inner).has(name)]
    return replace(machine, notes=tuple(others)), answers


def machine_of(spec: Spec, memory: Memory, where: Place) -> tuple[Machine, Answers]:
    """Return the stored vectors as a machine, and a function that computes the whole model's answers. The function
    takes rows of scaled inputs and returns an array (rows, F).

    If the state has floating-point weights of its vectors, the machine contains only the model's kernel part: without
    the labels' running mean, the gain, the linear part, and the limits of the predictions.  If the state's weights are
    integers or belong to other coordinates, the machine's weights are fitted to the model's answers at the vectors by
    ridge regression, after the mean of these answers has been subtracted.

    where: the beginning of error messages.  O(n^2 (n + D)) for n vectors of D inputs.  Raises UserError.
    """
    host = HostModel(spec.inner)
    host.memory.copy_from(memory)
    known = {name for struct in memory.structs for name in struct.fields}
    where.need(host.has("predict"), "learns no function of its inputs; only a model that predicts can be made smaller")
    where.need(
        spec.expansion is not None or "v" in known,
        "stores no vectors of its inputs; only a model that stores vectors can be made smaller",
    )
    vectors = _vectors(spec, memory)
    where.need(len(vectors), "stores no vectors yet; let it learn more")
    center, scale = (None if each is None else np.array(each, np.float64) for each in spec.scaling)
    if spec.standardises:
        center, scale = (np.array(memory.field(name), np.float64) for name in ("mean", "scale"))

    def answers(z: np.ndarray) -> np.ndarray:
        return np.asarray(host.predict(raw_inputs(spec, memory, z)), np.float64).reshape(len(z), -1)

    kernel, at_vectors = MercerKernel.of(spec), answers(vectors)
    where.need(np.isfinite(at_vectors).all(), "gives no prediction for some of its stored vectors; let it learn more")
    where.need(
        len(vectors) == 1 or np.ptp(at_vectors, axis=0).any(),
        "gives the same answer for all its vectors; let it learn more",
    )
    if {"alpha", "v"} <= known and not spec.real.is_int16:
        weights = np.array(memory.field("alpha")[: len(vectors)], np.float64)
    else:
        gram = kernel.gram(vectors, vectors)
        ridge = RIDGE * float(np.trace(gram)) / len(gram) or 1.0
        weights = np.linalg.lstsq(gram + ridge * np.eye(len(gram)), at_vectors - at_vectors.mean(axis=0), rcond=None)[0]
    label = spec.label.model_dump(exclude_unset=True, include={"column", "columns", "outputs", "low", "high"})
    machine = Machine(
        where,
        kernel.function,
        vectors,
        weights,
        np.zeros(weights.shape[1]),
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
        normalise=kernel.normalise,
        custom=kernel.custom,
        max_value=kernel.max_value,
        alpha=kernel.alpha,
        center=center,
        scale=scale,
        classes=spec.label.classes,
        columns=spec.sample_columns,
        label=label or None,
        signal=None if spec.signal is None else spec,
    )
    return machine, answers


def _vectors(spec: Spec, memory: Memory) -> np.ndarray:
    """Return the stored vectors as scaled inputs, (n, DIM), from the spec's [expansion] or, without this section, from
    the state.
    """
    if spec.expansion is not None:
        return np.array(spec.expansion.vectors, np.float64)
    found = np.array(memory.field("v")[: int(memory.field("n")[0])], np.float64)
    if spec.real.is_int16:
        found = found / unit_of(spec, spec.scales.octave)  # type: ignore[attr-defined]
    return found
