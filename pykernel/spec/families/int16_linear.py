"""Linear models that learn in int16: how inputs, labels and slopes are scaled so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from pykernel.algorithms.int16.covariance import KNOWN, NOISE
from pykernel.algorithms.int16.linear import INT16_LINEAR, LINE_MOST
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec.families.int16 import Int16Family, Int16Spec, complain_of_inputs, complain_of_rate
from pykernel.spec.families.int16_online import CountedLabel, complain_of_label_range, frame_parameters
from pykernel.spec.families.int16_scales import Scales, conversion, learning_rate
from pykernel.spec.family import Models, Refuse
from pykernel.spec.sections import Learning, Of

LABEL_BITS = 23
"""log2 of the integer that represents the label's limit, rounded up to a power of two."""
PLACES_MOST, INPUTS_FULL = 24, 63
"""PLACES_MOST: -log2 of the smallest fraction of the prior that each sample may add to the weights' covariance P.
INPUTS_FULL: the largest number of inputs for which this fraction is used; twice as many inputs need a fraction 4 times
as large.  With smaller fractions, if the inputs stay constant for a long time, rounding removes more from P than the
samples add (tests/algorithms/test_linear_int16.py).
"""
SPREAD_MOST = 2**14
"""Largest variance of f(x) before the first sample, as a multiple of the noise variance.  One sample removes nearly all of this
variance, and P's rounding error is 2^-16 of the removed variance.  With larger variances, errors were up to 43 times as large as those
of float32 on the same streams."""


class Int16LinearLearning(Learning):
    """How a sample changes the model."""

    eta: Annotated[float, Of("nlms")] = Field(
        0.1, gt=0, le=1, description="learning rate: the part of an error that one sample corrects; at least 1 / 65,536"
    )
    forgetting: Annotated[float, Of("rls")] = Field(
        0.998,
        gt=0.5,
        le=1,
        description="forgetting factor: about the last 1 / (1 - forgetting) samples count; this number is rounded to values that are a factor of √2 apart. With prior_variance 10, a forgetting factor above 0.9992 acts like 0.9992; with prior_variance 1, one above 0.9998 acts like 0.9998. With more than 63 inputs, these limits are lower",
    )
    prior_variance: Annotated[float, Of("rls")] = Field(
        10.0,
        ge=1e-3,
        le=100,
        description="variance of the weights before the first sample, relative to the variance of the labels' noise; its inverse is the ridge penalty",
    )


REHEARSED = 64
"""Number of samples in the self-test."""


def forgotten(learning: Int16LinearLearning, dim: int) -> int:
    """Return -log2 of the fraction of the prior that each sample adds to P.

    This assumes that the weights follow a random walk, for which the filter's steady gain is 1 - forgetting.
    """
    places = math.log2(learning.prior_variance) - 2 * math.log2(max(1 - learning.forgetting, 2.0**-32))
    most = PLACES_MOST - 2 * math.ceil(math.log2(max(dim / INPUTS_FULL, 1)))
    return max(1, min(round(places), most))


def learned_sizes(size: int) -> dict[str, int]:
    """Extents for ``size`` weights that share one P."""
    return {"FEATURES": size, "GROUPS": 1, "GROUP_SIZE": size, "PACKED": size * (size + 1) // 2}


class Int16LinearSpec(Int16Spec):
    label: CountedLabel = CountedLabel()
    learning: Int16LinearLearning = Int16LinearLearning()


class Int16LinearModels(Models, Int16Family):
    """f(x) = w'x + constant, learned by normalised LMS or by recursive least squares."""

    rules: Mapping[str, str] = dict.fromkeys(("nlms", "rls"), "linear")
    programs: Mapping[LabelKind, Program] = INT16_LINEAR
    online = True
    spec = Int16LinearSpec

    def validate(self, spec: Any, refuse: Refuse) -> None:
        complain_of_inputs(spec, refuse)
        complain_of_label_range(spec, refuse)
        complain_of_rate("[learning] eta", spec.learning.eta, refuse)
        if spec.scales.octave < 4:
            refuse(
                "[input] scale",
                "makes the scaled inputs so large that the constant input 1 has no effect; the scaled inputs must be near 1: set scale to about 3 / max_abs",
            )
        most = SPREAD_MOST / (1 + float(np.sum((spec.conversion.reach / 2.0**spec.scales.octave) ** 2)))
        if spec.learning.rule == "rls" and spec.learning.prior_variance > most:
            refuse(
                "[learning] prior_variance",
                f"is {spec.learning.prior_variance:g}; for inputs this large it must be at most {most:.2g}; a smaller [input] scale "
                "brings the inputs nearer to 1 and allows larger values",
            )

    def scales(self, spec: Int16LinearSpec) -> Scales:
        # the largest |z_i| of converted inputs z for which |z|^2 + 1 fits in 32 bits; 1 stands for the constant input
        most = min(16383.0, 65535 / math.sqrt(spec.dim + 1))
        octave = math.floor(math.log2(most))
        while (made := conversion(spec, 2.0**octave)).reach.max() > most and octave > 0:
            octave -= 1
        return Scales(made, octave, LABEL_BITS - math.ceil(math.log2(spec.label_max_abs)))

    def capacities(self, spec: Int16LinearSpec) -> dict[str, int]:
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs} | spec.conversion.sizes | learned_sizes(spec.dim + 1)

    def parameters(self, spec: Int16LinearSpec) -> dict[str, Any]:
        unit, (rate, doublings) = 2**spec.scales.octave, learning_rate(spec.learning.eta)
        reach = max(int(spec.conversion.reach.max()), unit)
        return {
            **spec.conversion.parameters(),
            **frame_parameters(spec, reach, float(unit) ** 2),
            "unit": unit,
            "filters": spec.learning.rule == "rls",
            "octave": spec.scales.octave,
            "weight_places": 16 - spec.scales.octave,
            "weight_most": min(2**30 - 1, LINE_MOST * 2**16 // ((spec.dim + 1) * reach)),
            "rate": 2**15,
            "refines": True,
            "prior": np.full(spec.dim + 1, 2**KNOWN),
            "noise": round(2**NOISE / spec.learning.prior_variance),
            "forgets": forgotten(spec.learning, spec.dim),
            "line_step": 2**30 // reach,
            "eta": rate,
            "eta_shift": 16 - doublings,
            "rehearsed": REHEARSED,
        }


INT16_LINEAR_MODELS = Int16LinearModels()
