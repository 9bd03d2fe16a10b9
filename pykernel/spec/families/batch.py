"""Specs of models that are trained in one step on the device: checks of the keys, and the parameters of the `@kernel` functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from pykernel.algorithms.batch.kfd import FISHER
from pykernel.algorithms.batch.krr import BATCH
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings
from pykernel.spec.base import Spec
from pykernel.spec.families.features import largest_value, need_vectors, never
from pykernel.spec.family import Family, Models, Refuse
from pykernel.spec.sections import TRIED_RIDGE, KernelSection, Learning, ScaledInput, VectorsSection, Within

BASIS_LIMIT = 1024

LEAST = {"float32": 1e-4, "float64": 1e-12}
"""Smallest ridge, as a fraction of the Gram matrix's largest row sum; see docs/training-on-device.md."""
LEAST_OF_TRACE = {"float32": 1e-6, "float64": 1e-14}
"""Smallest ridge of a discriminant, as a fraction of the trace of R'R; see docs/training-on-device.md.  R'R is the
scatter matrix plus the ridge times I, and R is its triangular factor."""
FREE = {"float32": 1e-2, "float64": 1e-6}
"""Smallest value of 1 - leverage for which a sample's leave-one-out error is computed: the formula divides by 1 - leverage."""
MOST = {"float32": 10_000, "float64": 1_000_000}
"""Maximum number of samples that a discriminant collects before it must be restarted: each sample adds rounding errors to R."""


class BatchLearning(Learning):
    """How a model is trained in one step on the stored samples."""

    ridge: Annotated[float, TRIED_RIDGE] = Field(0.1, gt=0, description="added to the Gram matrix's diagonal")
    samples: int = Field(
        64,
        ge=2,
        le=4096,
        description="number of samples that are kept for training; each further sample replaces the oldest sample",
    )


class FisherLearning(Learning):
    """How a discriminant is trained in one step."""

    ridge: Annotated[float, Within(float32=(1e-9, 1e12), float64=(1e-30, 1e12)), TRIED_RIDGE] = Field(
        0.1, gt=0, description="weight of the penalty |alpha|^2"
    )


class BatchSpec(Spec):
    input: ScaledInput
    kernel: KernelSection | None = None
    learning: BatchLearning = BatchLearning()


class FisherSpec(Spec):
    input: ScaledInput
    kernel: KernelSection | None = None
    learning: FisherLearning = FisherLearning()
    expansion: VectorsSection | None = None


class BatchModels(Models):
    """Kernel ridge regression and LS-SVM."""

    rules: Mapping[str, str] = {"krr": "kernel", "ls-svm": "kernel"}
    spec = BatchSpec
    programs: Mapping[LabelKind, Program] = BATCH

    def validate(self, spec: BatchSpec, refuse: Refuse) -> None:
        kernel_settings.validate(spec, refuse)
        ridge, least, most = spec.learning.ridge, LEAST[spec.precision], kernel_settings.largest(spec.precision)
        value, alpha_limit = largest_value(spec, refuse), self._alpha_limit(spec)
        assert spec.kernel is not None
        if (spec.kernel.function in kernel_settings.UNIT or spec.kernel.normalise) and ridge < least:
            refuse(
                "[learning] ridge",
                f"is {ridge:g}; it must be {least:g} or more for {spec.precision}, otherwise training always fails",
            )
        top = 1e15 if spec.precision == "float32" else 1e120
        if not alpha_limit <= top:
            refuse(
                "[label] max_abs",
                f"is {spec.label_max_abs:g}: multipliers can reach {alpha_limit:.3g} with ridge {ridge:g}, and must "
                f"stay below {top:g} for {spec.precision}; lower max_abs",
            )
        if not alpha_limit * (spec.learning.samples + 1) * value <= most:
            refuse(
                "[input] max_abs", f"is {spec.input_max_abs:g}, so large that predictions can overflow; lower max_abs"
            )

    def _alpha_limit(self, spec: BatchSpec) -> float:
        learning = spec.learning
        return 2.0**10 * math.sqrt(learning.samples) * spec.label_max_abs * max(1.0, 1 / learning.ridge)

    def capacities(self, spec: BatchSpec) -> dict[str, int]:
        samples = spec.learning.samples
        return {
            "DIM": spec.dim,
            "L_MAX": samples,
            "PACKED": samples * (samples + 1) // 2,
            "OUTPUTS": spec.outputs,
        }

    def parameters(self, spec: BatchSpec) -> dict[str, Any]:
        alpha_limit = self._alpha_limit(spec)
        most = 1e37 if spec.precision == "float32" else 1e305
        return kernel_settings.parameters(spec) | {
            "biased": spec.learning.rule == "ls-svm",
            "separates": spec.label_kind == "class",
            "single": spec.outputs == 1,
            "clamps": spec.label.low is not None or spec.label.high is not None,
            "ridge": spec.learning.ridge,
            "least": LEAST[spec.precision],
            "scaled_limit": 1.01 * float(kernel_settings.reach(spec).max()),
            "label_max_abs": spec.label_max_abs,
            "alpha_limit": alpha_limit,
            "press_limit": 1.01 * alpha_limit**2,
            "low": spec.label.low if spec.label.low is not None else -most,
            "high": spec.label.high if spec.label.high is not None else most,
            "classes": len(spec.label.classes or ()),
        }


class FisherModels(Models):
    """The kernel Fisher discriminant on a basis."""

    rules: Mapping[str, str] = {"kfd": "kernel"}
    spec = FisherSpec
    programs: Mapping[LabelKind, Program] = FISHER

    def validate(self, spec: FisherSpec, refuse: Refuse) -> None:
        if spec.expansion is None:
            refuse(
                "[expansion] vectors", "is missing; kfd must have a basis, the vectors that samples are compared with"
            )
        kernel_settings.validate(spec, refuse)
        need_vectors(spec, refuse, BASIS_LIMIT)
        value, most = self._value(spec, refuse), (1e10 if spec.precision == "float32" else 1e95)
        if not value <= most:
            refuse(
                "[input] max_abs",
                f"is {spec.input_max_abs:g}, so large that kernel values reach {value:.3g}; lower max_abs until they stay below "
                f"{most:g}",
            )

    def _value(self, spec: FisherSpec, refuse: Refuse = never) -> float:
        """The largest |k(x, v)| for the basis vectors v."""
        assert spec.expansion is not None
        return kernel_settings.bound(spec, refuse, np.abs(np.array(spec.expansion.vectors, float)).max(0))

    def capacities(self, spec: FisherSpec) -> dict[str, int]:
        assert spec.expansion is not None
        size = len(spec.expansion.vectors)
        return {
            "DIM": spec.dim,
            "P_MAX": size,
            "PACKED": size * (size + 1) // 2,
            "OUTPUTS": spec.outputs,
            "CLASSES": len(spec.label.classes or ()),
        }

    def parameters(self, spec: FisherSpec) -> dict[str, Any]:
        assert spec.expansion is not None
        ridge, value, most = spec.learning.ridge, self._value(spec), MOST[spec.precision]
        alpha_limit = 1e15 if spec.precision == "float32" else 1e100
        return kernel_settings.parameters(spec) | {
            "assesses": spec.signal is None,
            "single": spec.outputs == 1,
            "basis": np.array(spec.expansion.vectors, float),
            "ridge": ridge,
            "root_ridge": math.sqrt(ridge),
            "least": LEAST_OF_TRACE[spec.precision],
            "most": most,
            "free": FREE[spec.precision],
            "alpha_limit": alpha_limit,
            "press_limit": alpha_limit**2,
            "z_limit": 1.01 * value,
            "r_limit": 2 * (math.sqrt(ridge) + 2 * value * math.sqrt(most)),
        }


BATCH_MODELS: Family = BatchModels()
FISHER_MODELS: Family = FisherModels()
