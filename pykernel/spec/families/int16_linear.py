"""Linear models that learn in whole numbers: how inputs, labels and slopes are scaled, so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pykernel.algorithms.int16.nlms import INT16_LINEAR, LINE_MOST
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec.families.int16 import Int16Family, Int16Spec, complain_of_inputs, complain_of_rate
from pykernel.spec.families.int16_online import CountedLabel, complain_of_label_range, frame_parameters
from pykernel.spec.families.int16_scales import Scales, conversion, learning_rate
from pykernel.spec.family import Models, Refuse
from pykernel.spec.sections import Learning

LABEL_BITS = 23
"""log2 of the label's limit, in the label's unit."""


class Int16LinearLearning(Learning):
    """How a sample changes the model."""

    eta: float = Field(
        0.1, gt=0, le=1, description="learning rate: the part of an error that one sample corrects; at least 1 / 65,536"
    )


REHEARSED = 64
"""Samples of the self-test."""


class Int16LinearSpec(Int16Spec):
    label: CountedLabel = CountedLabel()
    learning: Int16LinearLearning = Int16LinearLearning()


class Int16LinearModels(Models, Int16Family):
    """f(x) = slope'x + constant, learned by normalised LMS."""

    rules: Mapping[str, str] = {"nlms": "linear"}
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
                "makes inputs so large that 1 is next to nothing beside them; it must bring them near to 1, such as 3 / max_abs",
            )

    def scales(self, spec: Int16LinearSpec) -> Scales:
        # |z|^2 + 1 fits in 32 bits
        most = min(16383.0, 65535 / math.sqrt(spec.dim + 1))
        octave = math.floor(math.log2(most))
        while (made := conversion(spec, 2.0**octave)).reach.max() > most and octave > 0:
            octave -= 1
        return Scales(made, octave, LABEL_BITS - math.ceil(math.log2(spec.label_max_abs)))

    def capacities(self, spec: Int16LinearSpec) -> dict[str, int]:
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs} | spec.conversion.sizes

    def parameters(self, spec: Int16LinearSpec) -> dict[str, Any]:
        unit, (rate, doublings) = 2**spec.scales.octave, learning_rate(spec.learning.eta)
        reach = max(int(spec.conversion.reach.max()), unit)
        return {
            **spec.conversion.parameters(),
            **frame_parameters(spec, reach, float(unit) ** 2),
            "unit": unit,
            "line_most": min(2**30 - 1, LINE_MOST * 2**16 // ((spec.dim + 1) * reach)),
            "line_step": 2**30 // reach,
            "eta": rate,
            "eta_shift": 16 - doublings,
            "rehearsed": REHEARSED,
        }


INT16_LINEAR_MODELS = Int16LinearModels()
