"""Estimators that learned sample by sample, as kernel machines that learn no more: what a smaller one is trained to answer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.importers.sklearn import LEARNS
from pykernel.importers.steps import steps_of
from pykernel.training.trained import Machine

Answers = Callable[[np.ndarray], np.ndarray]


def learns(estimator: Any) -> bool:
    """Whether it goes on learning, with a state of its own."""
    return hasattr(type(steps_of(estimator)[-1][1]), LEARNS)


def read_learned(estimator: Any) -> tuple[Machine, Answers]:
    """The stored vectors as a machine, and what the whole model answers at rows of scaled inputs, (rows, F).

    The machine lacks what no kernel computes: the running mean and gain of the labels, the linear part, limits.  Raises
    UserError.
    """
    from sklearn.pipeline import Pipeline

    *before, (_, model) = steps_of(estimator)
    where = type(model).__name__
    if not hasattr(model, "model_"):
        raise UserError(f"the {where} has learned nothing yet; call its fit or partial_fit first")
    host = copy.deepcopy(model.model_)
    if before:
        spec, memory = getattr(model, LEARNS)("model", Pipeline(before))
        host = HostModel(spec)
        host.memory.copy_from(memory)
    spec, memory = host.spec, host.memory
    if spec.signal is not None or spec.real.is_integer or spec.kernel is None or not _has(memory, "v", "alpha", "n"):
        raise UserError(f"{where}: stores no vectors of its inputs as numbers; vectors is for models that do")
    n = int(memory.field("n")[0])
    if not n:
        raise UserError(f"{where}: stores no vectors yet; let it learn more")
    center, scale = spec.scaling
    if spec.standardises:
        center, scale = (np.array(memory.field(name), np.float64) for name in ("mean", "scale"))
    kernel = MercerKernel.of(spec)
    classes = getattr(model, "classes_", None)
    calibration = getattr(model, "calibration_", None)
    weights = np.array(memory.field("alpha")[:n], np.float64)
    machine = Machine(
        where,
        kernel.function,
        np.array(memory.field("v")[:n], np.float64),
        weights,
        np.zeros(weights.shape[1]),
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
        normalise=kernel.normalise,
        custom=kernel.custom,
        max_value=kernel.max_value,
        alpha=kernel.alpha,
        center=None if center is None else np.array(center, np.float64),
        scale=None if scale is None else np.array(scale, np.float64),
        classes=None if classes is None else tuple(classes.tolist()),
        calibration=None if calibration is None else np.array(calibration, np.float64),
        columns=spec.input.columns,
    )

    def answers(z: np.ndarray) -> np.ndarray:
        x = z if machine.scale is None else z / machine.scale
        x = x if machine.center is None else x + machine.center
        return np.asarray(host.predict(x), np.float64).reshape(len(x), -1)

    return machine, answers


def _has(memory: Any, *names: str) -> bool:
    try:
        return all(memory.field(name) is not None for name in names)
    except (KeyError, ValueError, AttributeError):
        return False
