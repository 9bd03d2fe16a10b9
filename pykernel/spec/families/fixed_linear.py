"""Linear models that learn in whole numbers: how inputs, labels and slopes are scaled, so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from pydantic import Field

from pykernel.algorithms.int16.nlms import FIXED_LINEAR, LINE_MOST
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec.families.fixed import (
    Conversion,
    WholeSpec,
    complain_of_counts,
    complain_of_ranges,
    complain_of_rate,
    conversion,
    learning_rate,
)
from pykernel.spec.families.fixed_online import complain_of_label_range, frame_parameters
from pykernel.spec.family import Family, Refuse
from pykernel.spec.kernel_settings import validate_scaling
from pykernel.spec.sections import Label, Learning

LABEL_BITS = 23
"""log2 of the label's limit, in the label's unit."""


class FixedLinearLearning(Learning):
    """How a sample changes the model."""

    eta: float = Field(
        0.1, gt=0, le=1, description="learning rate: the part of an error that one sample corrects; at least 1 / 65,536"
    )


REHEARSED = 64
"""Samples of the self-test."""


class FixedLinearSpec(WholeSpec):
    label: Label = Label()
    learning: FixedLinearLearning = FixedLinearLearning()

    @property
    def family(self) -> Family:
        return FIXED_LINEAR_MODELS

    @property
    def unit(self) -> int:
        """The number that stands for 1 in the converted inputs: a power of two."""
        return self.scale_found[1]

    @property
    def conversion(self) -> Conversion:
        return self.scale_found[0]

    @cached_property
    def scale_found(self) -> tuple[Conversion, int]:
        """The conversion of counts, and the number that stands for 1 in the converted inputs."""
        # |z|^2 + 1 fits in 32 bits
        most = min(16383.0, 65535 / math.sqrt(self.dim + 1))
        unit = 2 ** math.floor(math.log2(most))
        while (made := conversion(self, unit)).reach.max() > most and unit > 1:
            unit //= 2
        return made, unit

    @property
    def label_shift(self) -> int:
        return LABEL_BITS - math.ceil(math.log2(self.label_max_abs))


class FixedLinearModels:
    """f(x) = slope'x + constant, learned by normalised LMS."""

    rules: tuple[str, ...] = ("nlms",)
    programs: Mapping[LabelKind, Program] = FIXED_LINEAR
    online = True
    spec = FixedLinearSpec

    def why_ignored(self, spec: FixedLinearSpec, section: str, key: str) -> str | None:
        return None

    def validate(self, spec: Any, refuse: Refuse) -> None:
        complain_of_ranges(spec, refuse)
        validate_scaling(spec, refuse)
        complain_of_counts(spec, refuse)
        complain_of_label_range(spec, refuse)
        complain_of_rate("[learning] eta", spec.learning.eta, refuse)
        if spec.unit < 16:
            refuse(
                "[input] scale",
                "makes inputs so large that 1 is next to nothing beside them; it must bring them near to 1, such as 3 / max_abs",
            )

    def capacities(self, spec: FixedLinearSpec) -> dict[str, int]:
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs, "SCALES": 1 if spec.conversion.alike else spec.dim}

    def size_bound(self, spec: FixedLinearSpec) -> int:
        return spec.outputs * (spec.dim + 4) + spec.dim + 8

    def unit(self, spec: FixedLinearSpec, question: str) -> float:
        """What 1 is worth in an answer."""
        return float(2.0**-spec.label_shift)

    def parameters(self, spec: FixedLinearSpec) -> dict[str, Any]:
        reach = max(int(spec.conversion.reach.max()), spec.unit)
        rate, doublings = learning_rate(spec.learning.eta)

        return {
            **spec.conversion.parameters(),
            **frame_parameters(spec, reach, float(spec.unit) ** 2),
            "unit": spec.unit,
            "line_most": min(2**30 - 1, LINE_MOST * 2**16 // ((spec.dim + 1) * reach)),
            "line_step": 2**30 // reach,
            "eta": rate,
            "eta_shift": 16 - doublings,
            "rehearsed": REHEARSED,
        }


FIXED_LINEAR_MODELS: Family = FixedLinearModels()
