"""Models that learn in int16: how labels, multipliers and their sums are scaled so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from pykernel.algorithms.int16.frame import VALUE_MOST
from pykernel.algorithms.int16.kernels import ONE
from pykernel.algorithms.int16.klms import INT16_ONLINE
from pykernel.algorithms.int16.stages import GAIN_SIZE
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.state import Metric, Tie
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings, stages
from pykernel.spec.families.int16 import (
    Int16Family,
    Int16Spec,
    complain_of_inputs,
    complain_of_kernel,
    complain_of_rate,
)
from pykernel.spec.families.int16_errors import faded
from pykernel.spec.families.int16_scales import (
    COUNTS,
    FUNCTIONS,
    LARGEST,
    OCTAVES,
    Scales,
    conversion,
    counted,
    farthest,
    kernel_parameters,
    learning_rate,
    unit_of,
)
from pykernel.spec.families.online import FAILS, failure
from pykernel.spec.families.online_keys import N_MAX_LIMIT
from pykernel.spec.family import Models, Refuse
from pykernel.spec.sections import KernelSection, Label, Learning, Of, Section
from pykernel.spec.stages import LinearPart


class CountedLabel(Label):
    """The label of an integer model without stages."""

    offset: float = Field(
        0.0,
        description="the label that is represented by 0 counts: the device stores labels and predictions as counts relative to this value, and `max_abs` is the largest |y − offset|",
    )


HEADROOM = 4
"""log2 of the largest multiplier, in units of the label's limit."""
REST = 2
"""log2 of the largest residual that the label's stages pass on to the rule, in units of the label's limit."""


class Int16Rule(Learning):
    """How a sample changes the model."""

    eta: float = Field(
        0.5, gt=0, le=1, description="learning rate: the part of an error that one sample corrects; at least 1 / 65,536"
    )
    rho: float = Field(0.0, ge=0, description="decay: each sample multiplies every multiplier by 1 - eta rho")
    step_limit: float | None = Field(
        None, gt=0, description="largest change of f(x) when the sample x is learned; it limits the effect of outliers"
    )
    quantisation: Annotated[float, Of("qklms")] = Field(
        0.3,
        gt=0,
        le=2,
        description="a sample that is at most this many sigma from an expansion vector is not stored; it changes the multiplier of that vector",
    )


class Int16Reduction(Section):
    """How the number of expansion vectors is kept within the budget."""

    technique: Literal["nt", "at", "fklms", "fmklms"] = Field(
        "fklms",
        description="which vector is removed. nt: the vector with the smallest multiplier; at: the oldest vector; fklms: one of the two closest vectors; fmklms: as fklms, weighted by multipliers",
    )
    projection: Literal["none", "fklms", "bounded"] | None = Field(
        None,
        description='how the multipliers of the other vectors compensate for the removed vector: `"none"`, `"fklms"` (eq. 16) or `"bounded"` (as `"fklms"`, but the multipliers added to the other vectors sum to at most the removed multiplier)',
    )
    n_max: int = Field(32, ge=1, le=N_MAX_LIMIT, description="the budget: the largest number of expansion vectors")
    ald_threshold: Annotated[float, Of("klms")] = Field(
        2e-3,
        ge=0,
        lt=1,
        description="a sample x is absorbed by the expansion vectors, not stored, if 1 − k(v, x)² is at most this for the nearest vector v",
    )
    force: bool = Field(False, description="allow a combination of technique and projection that is known to diverge")


class Int16Label(CountedLabel):
    """The label of an integer model with stages."""

    center: bool = Field(
        False, description="subtract the label's running mean before the model learns, and add it to the prediction"
    )
    gain: bool = Field(
        False,
        description="multiply the model's output by a gain from 0 to 1, which is smaller if recent outputs were wrong",
    )
    horizon: int = Field(
        1024,
        ge=16,
        le=65536,
        description="with `center`: how many of the latest labels the running mean describes; rounded to the nearest power of two",
    )


class Int16OnlineSpec(Int16Spec):
    label: Int16Label = Int16Label()
    kernel: KernelSection | None = None
    linear: LinearPart | None = None
    learning: Int16Rule = Int16Rule()
    reduction: Int16Reduction = Int16Reduction()

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        return super().derived | {"reduction": {"projection": projection_of(self)}}

    @property
    def alpha_shift(self) -> int:
        """log2 of the largest multiplier, chosen so that a sum of n_max multipliers stays within VALUE_MOST."""
        return math.floor(math.log2(VALUE_MOST / self.reduction.n_max))


def _radius(function: str, value: float) -> float:
    """Return the gamma |a - b|, or for a Gaussian the gamma |a - b|^2, at which the kernel's value is ``value``."""
    if function in ("gaussian", "laplacian", "matern12"):
        return -math.log(value)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if faded(function, middle) > value else (low, middle)
    return low


class Int16OnlineModels(Models):
    """Expansions f(x) = sum_i alpha_i k(v_i, x) under a budget, in integers."""

    rules: Mapping[str, str] = {"klms": "kernel", "qklms": "kernel"}
    programs: Mapping[LabelKind, Program] = INT16_ONLINE
    online = True
    spec = Int16OnlineSpec
    planned: tuple[tuple[str, str | None], ...] = (
        ("qklms", "nt"),
        ("klms", "fmklms"),
        ("klms", "fklms"),
        ("klms", "nt"),
    )

    def validate(self, spec: Any, refuse: Refuse) -> None:
        complain_of_learned_kernel(spec, refuse)
        complain_of_inputs(spec, refuse)
        complain_of_label(spec, refuse)
        complain_of_width(spec, refuse)
        self._complain_of_learning(spec, refuse)
        if not spec.reduction.force:
            self._complain_of_pairs(spec, refuse)

    def _complain_of_learning(self, spec: Any, refuse: Refuse) -> None:
        learning, least = spec.learning, 2.0 ** -(spec.label_shift + 1)
        complain_of_rate("[learning] eta", learning.eta, refuse)
        if spec.linear is not None:
            complain_of_rate("[linear] eta", spec.linear.eta, refuse)
        if learning.step_limit is not None and learning.step_limit < least:
            refuse(
                "[learning] step_limit",
                f"is {learning.step_limit:g}, which int16 rounds to 0 if labels reach {spec.label_max_abs:g}; it must be at least "
                f"{least:.2g}",
            )
        if learning.rho > 0 and _keep(spec) in (0, 65536):
            refuse(
                "[learning] rho",
                f"is {learning.rho:g}, but 1 - eta rho must be from {1 / 65536:.2g} to {1 - 1 / 65536:.6g}, the range of int16",
            )

    def _complain_of_pairs(self, spec: Any, refuse: Refuse) -> None:
        pair = (spec.reduction.technique, projection_of(spec))
        if pair in FAILS:
            refuse("[reduction] projection", failure(pair))

    def scales(self, spec: Any) -> Scales | None:
        label_shift = spec.alpha_shift - HEADROOM - math.ceil(math.log2(spec.label_max_abs))
        for octave in OCTAVES[spec.kernel.function]:
            made = conversion(spec, unit_of(spec, octave))
            reach = int(made.reach.max())
            # the state stores a distance as a signed number
            fits = farthest(spec.kernel.function, octave, np.full((1, spec.dim), 2.0 * reach)) <= LARGEST
            if reach <= COUNTS and fits and abs(made.factor).max() <= COUNTS:
                return Scales(made, octave, label_shift)
        return None

    def capacities(self, spec: Int16OnlineSpec) -> dict[str, int]:
        return {"DIM": spec.dim, "N_MAX": spec.reduction.n_max, "OUTPUTS": spec.outputs} | spec.conversion.sizes

    def unit(self, spec: Int16OnlineSpec, question: str) -> float:
        return 1 / ONE if question == "novelty" else 2.0**-spec.label_shift

    def parameters(self, spec: Any) -> dict[str, Any]:
        learning, reduction, octave, function = spec.learning, spec.reduction, spec.scales.octave, spec.kernel.function
        metric, unit = TECHNIQUES[reduction.technique].metric, unit_of(spec, octave)
        one, most = 2.0**spec.label_shift, 2**spec.alpha_shift
        if learning.rule == "qklms":
            near = learning.quantisation * spec.length_scale
        else:  # a sample is near if 1 - k^2 <= ald_threshold
            radius = _radius(function, math.sqrt(1 - reduction.ald_threshold))
            gamma = kernel_settings.rate(spec) * math.log(2)
            near = math.sqrt(radius / gamma) if function == "gaussian" else radius / gamma
        near *= unit
        near = near * 2.0 ** max(0, 16 - octave) if function == "laplacian" else near**2
        return {
            **spec.conversion.parameters(),
            **frame_parameters(spec, int(spec.conversion.reach.max()), unit**2),
            **kernel_parameters(spec, octave),
            "narrow": bool(2 * spec.conversion.reach.max() <= COUNTS),
            "quantises": learning.rule == "qklms",
            "metric": metric,
            "projection": PROJECTIONS[projection_of(spec)].number,
            "tie": Tie.SMALLER,
            "decays": learning.rho > 0,
            "limits_step": learning.step_limit is not None,
            "keeps_neighbours": metric in (Metric.FKLMS, Metric.FMKLMS),
            "keeps_ages": metric is Metric.AGE,
            "eta": min(max(round(learning.eta * 65536), 1), 65535),
            "keep": min(_keep(spec), 65535),
            "alpha_most": most,
            "step_limit": max(1, round(min((learning.step_limit or 1) * one, most))),
            "ald_distance": round(min(near, LARGEST - 1)),
            "rehearsed": spec.rehearsed(2 * reduction.n_max + 32, reduction.n_max),
        }


def complain_of_learned_kernel(spec: Any, refuse: Refuse, known: Sequence[str] = kernel_settings.UNIT) -> None:
    """Refuse kernels that int16 does not support, and kernels that are not in ``known``, such as polynomial kernels, whose values
    are unbounded.
    """
    complain_of_kernel(spec, refuse)
    if spec.kernel.function not in known:
        *names, last = [name for name in known if name in FUNCTIONS]
        refuse(
            "[kernel] function",
            f"is {spec.kernel.function}, which int16 cannot learn with; choose {', '.join(names)} or {last}, or precision "
            "float32",
        )


def complain_of_label_range(spec: Any, refuse: Refuse) -> None:
    """Refuse numeric labels without a range.  Refuse an offset if the labels are classes or channels of [signal]."""
    if spec.label_offset and (spec.label_kind == "class" or spec.forecasts):
        refuse("[label] offset", "is for labels that are numbers and not channels of [signal]; leave offset out")
    if spec.label_kind in ("real", "reals") and "max_abs" not in spec.label.model_fields_set:
        refuse(
            "[label] max_abs",
            "is missing; int16 needs the range of the labels: write the largest magnitude of a label",
        )


def complain_of_label(spec: Any, refuse: Refuse) -> None:
    """Refuse labels that ``complain_of_label_range`` refuses.  If the labels are classes, also refuse stages for numeric labels."""
    complain_of_label_range(spec, refuse)
    given = {
        "[label] center": spec.label.center,
        "[label] gain": stages.gains(spec),
        "[linear]": spec.linear is not None,
    }
    for where in [where for where in given if given[where] and spec.label_kind == "class"]:
        refuse(where, "is for labels that are numbers; leave it out")


def complain_of_width(spec: Any, refuse: Refuse) -> None:
    """Refuse kernels that are too narrow or too wide for inputs of 16 bits."""
    if spec.scales_found is None:
        refuse(
            "[input] max_abs",
            f"allows inputs that are too far apart for 16 bits with a kernel of width {spec.length_scale:.3g}; lower max_abs, "
            "or make the kernel wider",
        )
    if spec.conversion.reach.max() < 1:
        width = "sigma" if spec.kernel.sigma is not None else "gamma"
        refuse(
            f"[kernel] {width}",
            f"is {getattr(spec.kernel, width):g}, which makes the kernel so wide that all inputs within max_abs are the same in int16; make the kernel "
            "narrower, or raise max_abs",
        )


def projection_of(spec: Any) -> str:
    """Return the name of the spec's projection, or of the technique's default if the spec gives none."""
    return str(spec.reduction.projection or TECHNIQUES[spec.reduction.technique].projection)


def _keep(spec: Any) -> int:
    return round(max(1 - spec.learning.eta * spec.learning.rho, 0.0) * 65536)


STAGES = {"center": False, "horizon": 2000}
"""Keys of [label] that some families lack -> their defaults."""


def frame_parameters(spec: Any, reach: int, squares: float, places: int | None = None) -> dict[str, Any]:
    """Values of the fields of Int16StageConfig and FrameConfig, except the number of samples in the self-test.

    reach: largest magnitude of a converted input.  squares: the square of the integer that represents an input of 1.  places:
    the rule and its stages learn in units of 2^-places; if None, in the label's unit.
    """
    label, linear, finer = spec.label, getattr(spec, "linear", None), places is not None
    full, one = 2.0**spec.label_shift, 2.0 ** (spec.label_shift if places is None else places)
    center, horizon = (getattr(label, key, default) for key, default in STAGES.items())
    most, gain = math.floor(spec.label_max_abs * one), stages.gains(spec)
    rest = min(most * 2**REST, 2**29)
    bits = max(1, most).bit_length()
    pace = min(16, round(math.log2(horizon)))
    fine = max(0, min(pace, 29 - bits))
    rate, doublings = learning_rate(linear.eta if linear is not None else 0.5)

    return {
        "single": spec.outputs == 1,
        "mixes": False,
        "covers": False,
        "votes": False,
        "holds": False,
        "separates": spec.label_kind == "class",
        "classes": len(label.classes or ()),
        "doubts": stages.doubts(spec),
        "label_most": most,
        "one": math.floor(one) if spec.label_kind == "class" else 0,
        "scales": True,  # inputs are converted
        "centers": center,
        "leads": linear is not None,
        "gains": gain,
        "expects": gain,
        "follows": center or gain or linear is not None,
        "clamps": label.low is not None or label.high is not None,
        "mean_factor": 2**fine,
        "mean_shift": fine,
        "mean_most": most * 2**fine,
        "mean_pace": pace,
        "slope_most": min(2**30 - 1, 2**29 * 2**16 // (spec.dim * reach)),
        "slope_eta": rate,
        "slope_shift": 16 - doublings,
        "slope_unit": round(min(squares, 2**31 - 1)),
        "slope_step": 2**30 // reach,
        "gain_shift": max(0, bits - GAIN_SIZE.bit_length()),
        "rest_most": rest,
        "label_room": rest,
        "finer": finer,
        "low": counted(label.low, full, -LARGEST, spec.label_offset),
        "high": counted(label.high, full, LARGEST, spec.label_offset),
    }


INT16_ONLINE_MODELS: Int16Family = Int16OnlineModels()
