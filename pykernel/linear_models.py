"""Linear models in a spec: their rules, checks and parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pykernel.families import Family, Refuse
from pykernel.linear import LINEAR, WINDUP
from pykernel.program import LabelKind, Program

if TYPE_CHECKING:
    from pykernel.spec import Spec


class LinearModels:
    """Weights on the inputs."""

    rules: tuple[str, ...] = ("nlms", "rls", "quadratic-rls", "rff-rls")
    programs: Mapping[LabelKind, Program] = {"real": LINEAR}

    def unused(self, spec: Spec, section: str, key: str) -> str | None:
        return None

    def complain(self, spec: Spec, refuse: Refuse) -> None:
        return None

    def capacities(self, spec: Spec) -> dict[str, int]:
        return {"DIM": spec.dim}

    def reals(self, spec: Spec) -> int:
        return spec.dim**2 + 4 * spec.dim + 8

    def parameters(self, spec: Spec) -> dict[str, Any]:
        learning, limit = spec.learning, spec.label.limit
        return {
            "forgets": learning.forgetting < 1,
            "forgetting": learning.forgetting,
            "start": math.sqrt(learning.covariance),
            "trace_limit": WINDUP * spec.dim * learning.covariance,
            "input_limit": spec.input.limit,
            "label_limit": limit,
            "weight_limit": min(2.0**20 * limit, 2.0**100),
            "rehearsal_input": min(1.0, spec.input.limit),
            "rehearsal_label": min(1.0, limit),
        }


LINEAR_MODELS: Family = LinearModels()
