"""Sections of a spec for the stages around a rule that learns sample by sample, and the parameters of the stages' kernels."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pykernel.algorithms.doubt import Doubts
from pykernel.algorithms.expert import EXPERT_LIMIT
from pykernel.algorithms.stages import PARTS
from pykernel.spec import interval, kernel_settings
from pykernel.spec.base import Spec
from pykernel.spec.expert import Mixture as Mixture
from pykernel.spec.family import Refuse
from pykernel.spec.interval import IntervalSection as IntervalSection
from pykernel.spec.sections import Counts, KernelSection, Label, Numbers, Section, StandardisedInput


class StagedLabel(Label):
    """A label that is learned sample by sample; its running mean may be subtracted first."""

    center: bool = Field(
        False, description="subtract the label's running mean before the model learns, and add it to the prediction"
    )
    gain: bool = Field(
        False,
        description="multiply the rule's prediction by a gain from 0 to 1, which is smaller if recent predictions were wrong",
    )
    clip: float | None = Field(
        None,
        ge=2,
        le=1000,
        description="a label that is more than this many root mean square errors away from the prediction is clipped to this distance, so that an outlying label changes the model only a little",
    )
    weights: Annotated[
        Numbers | Literal["balanced"] | None, Counts("is for classes; leave it out", ("label_kind",), ("class",))
    ] = Field(
        None,
        description='with `[mixture]`: a weight for each class, such as the cost of missing it; the class with the largest product of probability and weight is predicted. `"balanced"`: the weight of a class is 1 / √(its share of the labels). The weights do not change `NAME_probability`',
    )
    horizon: int = Field(
        2000,
        ge=10,
        le=1_000_000,
        description="with `center`: the running mean is taken over about this many of the latest labels",
    )


ContinuedGain = Annotated[
    bool,
    Counts("is for labels that are numbers; leave it out", ("label_kind",), ("real", "reals")),
    Field(
        description="multiply the part of the model that was learned on the device by a gain from 0 to 1. The gain is smaller if this part was wrong recently, so that the model is never much worse than the trained one. Not for classes"
    ),
]


class ContinuedLabel(StagedLabel):
    """The label of a model that continues from a trained one.

    The gain multiplies only what was learned on the device, not the trained function.
    """

    gain: ContinuedGain = True


class LinearPart(Section):
    """A linear function of the inputs.  The model learns the residual of this function; a prediction is the sum of the two."""

    eta: float = Field(0.02, gt=0, le=1, description="learning rate of the linear part (normalised LMS)")


class StagedSpec(Spec):
    """A kernel model that may have all stages around its rule."""

    label: StagedLabel = StagedLabel()
    kernel: KernelSection | None = None
    linear: LinearPart | None = None
    mixture: Mixture | None = None
    interval: IntervalSection | None = None


GAIN_HORIZON = 300
NOISE = {"noise_first": 0.1, "noise_known": 0.05, "noise_low": 0.01, "noise_high": 3.0}
"""Parameters for noise = "auto", tuned with benchmarks/host/first_streams.py."""
REMAINDER = 2.0
"""Bound on the residual that the label's stages leave to the rule, as a multiple of the label's limit."""


def label_unit(spec: Any) -> float:
    """Return the largest magnitude of the values that the rule learns."""
    return float(spec.label_max_abs * (REMAINDER if _moves(spec) else 1.0))


def estimates_noise(spec: Any) -> bool:
    return getattr(spec.learning, "noise", None) == "auto" and spec.has("learning", "noise")


def _moves(spec: Any) -> bool:
    """Return whether the label's stages subtract something from the label, so that the rule learns the difference."""
    return isinstance(spec.label, StagedLabel) and (spec.label.center or getattr(spec, "linear", None) is not None)


def sized(spec: Any) -> bool:
    """Return whether the magnitude of the inputs is known: they are standardised, or the family has no standardisation."""
    return bool(spec.standardises or not isinstance(spec.input, StandardisedInput))


def validate(spec: Any, refuse: Refuse) -> None:
    """Refuse stages that do not fit the kind of label or the rule."""
    linear = getattr(spec, "linear", None)
    if spec.standardises and spec.scaling != (None, None):
        refuse(
            "[input]",
            "has standardise = true, and also center or scale, but inputs can be scaled in only one way; leave out either standardise, or both center and scale",
        )
    mixture = getattr(spec, "mixture", None)
    if getattr(spec.input, "outliers", "clip") == "hold":
        if not spec.standardises:
            refuse("[input] outliers", 'is "hold", which needs the usual range of each input; add standardise = true')
        if spec.label_kind == "none":
            refuse(
                "[input] outliers",
                'is "hold", which works only with labels, and this model has no labels; leave outliers out',
            )
    if spec.label_kind == "none":
        if mixture is not None:
            refuse("[mixture]", "is learned from labels; this model has no labels: leave [mixture] out")
    elif mixture is not None and not sized(spec):
        refuse("[mixture]", "needs inputs of known magnitude; add standardise = true to [input]")
    if spec.label.weights is not None and spec.label_kind == "class":
        if not votes(spec):
            refuse(
                "[label] weights",
                "needs the class probabilities that a linear expert computes; add [mixture]",
            )
        if spec.label.weights != "balanced":
            if len(spec.label.weights) != len(spec.label.classes):
                refuse("[label] weights", f"must hold one number for each of the {len(spec.label.classes)} classes")
            if not all(1e-4 <= each <= 1e4 for each in spec.label.weights):
                refuse("[label] weights", "holds a number outside the range from 0.0001 to 10000")
    if spec.label_kind in ("real", "reals"):
        if linear is not None and not sized(spec):
            refuse("[linear]", "needs inputs of known magnitude; add standardise = true to [input]")
        return
    for_numbers = {
        "[label] center": spec.label.center,
        "[label] gain": gains(spec),
        "[label] clip": spec.label.clip is not None,
        "[linear]": linear is not None,
        "[interval]": getattr(spec, "interval", None) is not None,
    }
    for where in [where for where in for_numbers if for_numbers[where]]:
        if where == "[linear]" and spec.label_kind == "class":
            refuse(where, "is for labels that are numbers; [mixture] is the linear part for classes")
        refuse(where, "is for labels that are numbers; leave it out")


def farthest(spec: Any) -> float:
    """Return the largest sum of |x| over the inputs of a linear part."""
    if isinstance(spec.input, StandardisedInput):
        return float(spec.input.clip * spec.dim)
    return float(kernel_settings.reach(spec).sum())


def gains(spec: Any) -> bool:
    """Return whether the rule's prediction is multiplied by a gain."""
    return bool(spec.has("label", "gain") and spec.label.gain)


def refuse_moving(spec: Any, refuse: Refuse, keeper: str) -> None:
    """For a model that stores labels, refuse stages that subtract from the labels, because stored labels would become
    outdated.

    keeper: the part of the model that stores labels, for the message.
    """
    for where, given in (("[label] center", spec.label.center), ("[linear]", spec.linear is not None)):
        if given:
            refuse(where, f"changes labels that {keeper} has already stored; leave it out")


def votes(spec: Any) -> bool:
    """Return whether a linear expert learns classes.  If so, the model can compute class probabilities."""
    return spec.label_kind == "class" and getattr(spec, "mixture", None) is not None


def class_weights(spec: Any) -> list[float]:
    """Return the weights of the classes.  For two classes, return only the ratio of the second weight to the first."""
    given = spec.label.weights
    if given is None or given == "balanced":
        return [1.0] * int(spec.outputs)
    return list(given) if spec.outputs > 1 else [given[1] / given[0]]


def probabilities(spec: Any, calibrated: bool = False) -> dict[str, int]:
    """Return the extent ``CLASSES`` if the model has probabilities, otherwise {}.  calibrated: whether the rule itself computes
    probabilities.
    """
    return {"CLASSES": len(spec.label.classes)} if calibrated or votes(spec) else {}


def doubts(spec: Any) -> Doubts:
    """Return what the model compares with the labels."""
    if spec.label_kind != "class":
        return Doubts.NOTHING if spec.label_kind == "none" else Doubts.DISTANCES
    return Doubts.CLASSES if getattr(spec.label, "weights", None) is None else Doubts.NEVER


def parameters(spec: Any, most: float) -> dict[str, Any]:
    """Return the values of StageConfig, InputConfig, ExpertConfig and IntervalConfig, and those of FrameConfig except
    ``rehearsed``.

    most: the largest magnitude of the rule's prediction.
    """
    limit, label, moves = spec.label_max_abs, spec.label, _moves(spec)
    linear, mixture = getattr(spec, "linear", None), getattr(spec, "mixture", None)
    mixes, ranges = mixture is not None, interval.parameters(spec)
    staged = gains(spec) or label.clip is not None or estimates_noise(spec) or ranges["covers"]
    forgetting = mixture.forgetting if mixture is not None else 1.0
    widest = most + (limit * (2 + farthest(spec)) if moves else 0.0)
    inputs, seen = kernel_settings.input_parameters(spec), spec.input
    if not isinstance(seen, StandardisedInput):
        seen = StandardisedInput(missing=seen.missing)
    return (
        NOISE
        | inputs
        | ranges
        | {
            "single": spec.outputs == 1,
            "separates": spec.label_kind == "class",
            "classes": len(label.classes or ()),
            "doubts": doubts(spec),
            "scales": spec.standardises or inputs["rescales"],
            "standardises": spec.standardises,
            "holds": seen.outliers == "hold",
            "completes": spec.completes,
            "keeps_latest": seen.missing == "hold",
            "centers": label.center,
            "leads": linear is not None,
            "gains": gains(spec),
            "limits": label.clip is not None,
            "judges": staged or mixes,
            "estimates_noise": estimates_noise(spec),
            "follows": moves or staged or (mixes and not votes(spec)),
            "mixes": mixes,
            "expects": mixes or gains(spec) or ranges["covers"],
            "votes": votes(spec),
            "sharpens": votes(spec),
            "expert_forgetting": forgetting,
            "recalls": mixture is not None and mixture.last > 0,
            "weights_classes": label.weights is not None,
            "balances": label.weights == "balanced",
            "class_weights": class_weights(spec),
            "in_blocks": mixture is not None and mixture.blocks,
            "expert_growth": 1 / forgetting,
            "expert_limit": float(EXPERT_LIMIT.value(spec.real)) * limit,
            "compared_most": GAIN_HORIZON + 1,
            "clamps": label.low is not None or label.high is not None,
            "clip": seen.clip,
            "input_warmup": seen.warmup,
            "input_horizon": seen.horizon,
            "center_horizon": label.horizon,
            "gain_horizon": GAIN_HORIZON,
            "linear_eta": linear.eta if linear is not None else 0.0,
            "linear_limit": limit,
            "remainder_limit": REMAINDER * limit,
            "label_limit": limit,
            "label_unit": PARTS / limit,
            "label_clip": label.clip or 0.0,
            "low": label.low if label.low is not None else -widest,
            "high": label.high if label.high is not None else widest,
        }
    )
