"""Stages around a rule that learns sample by sample: their sections of a spec, and the parameters of their kernels."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pykernel.spec.family import Refuse
from pykernel.spec.sections import Label, Section


class StagedLabel(Label):
    """What a model learns to predict sample by sample, and may take the mean off."""

    center: bool = Field(
        False, description="take the label's running mean off before the model learns, and add it to the prediction"
    )
    gain: bool = Field(
        False, description="multiply what the model answers by how far it has been right lately, from 0 to 1"
    )
    horizon: int = Field(
        1000, ge=10, le=1_000_000, description="with `center`: how many of the latest labels the running mean describes"
    )


class LinearPart(Section):
    """A linear function of the inputs beside the model, which learns what the linear function leaves."""

    eta: float = Field(0.02, gt=0, le=1, description="learning rate of the linear part (normalised LMS)")


GAIN_HORIZON = 300
REMAINDER = 2.0
"""What the label's stages leave is within this many times the label's limit."""


def label_unit(spec: Any) -> float:
    """The limit of what the rule has to learn."""
    return float(spec.label_max_abs * (REMAINDER if spec.label.center or spec.linear is not None else 1.0))


def validate(spec: Any, refuse: Refuse) -> None:
    """Refuse stages that do not fit what is learned."""
    if spec.label.classes is None:
        if spec.linear is not None and not spec.input.standardise:
            refuse("[linear]", "needs inputs of a known size; add standardise = true to [input]")
        return
    for where, given in (("[label] center", spec.label.center), ("[label] gain", spec.label.gain)):
        if given:
            refuse(where, "is for labels that are numbers; leave it out for classes")
    if spec.linear is not None:
        refuse("[linear]", "is for labels that are numbers; leave it out for classes")


def parameters(spec: Any, most: float) -> dict[str, Any]:
    """Values of StageConfig; most: the largest answer of the rule."""
    limit, label = spec.label_max_abs, spec.label
    staged = label.center or spec.linear is not None
    widest = most + (limit * (2 + spec.input.clip * spec.dim) if staged else 0.0)
    return {
        "standardises": spec.input.standardise,
        "centers": label.center,
        "leads": spec.linear is not None,
        "weighs": label.gain,
        "clamps": label.low is not None or label.high is not None,
        "clip": spec.input.clip,
        "warmup": spec.input.warmup,
        "horizon": spec.input.horizon,
        "center_horizon": label.horizon,
        "gain_horizon": GAIN_HORIZON,
        "linear_eta": spec.linear.eta if spec.linear is not None else 0.0,
        "linear_limit": limit,
        "remainder_limit": REMAINDER * limit,
        "label_limit": limit,
        "label_unit": 1 / limit,
        "low": label.low if label.low is not None else -widest,
        "high": label.high if label.high is not None else widest,
    }
