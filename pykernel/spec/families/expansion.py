"""Specs of trained expansions that continue to learn, in floating point or in integers: checks of the keys, and the parameters of
the `@kernel` functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from pykernel.algorithms.expansion import EXPANSION, EXPANSION_SOFTMAX
from pykernel.algorithms.int16.covariance import KNOWN, NOISE
from pykernel.algorithms.int16.expansion import INT16_EXPANSION, INT16_EXPANSION_SOFTMAX
from pykernel.algorithms.linear import FeatureKind, Gain
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings, stages
from pykernel.spec.families.features import need_vectors, never
from pykernel.spec.families.frozen import Expansion, FrozenModels, folded_rows
from pykernel.spec.families.int16 import Int16Family, Int16FrozenModels, Int16Spec, complain_of_rate
from pykernel.spec.families.int16_linear import learned_sizes
from pykernel.spec.families.int16_online import (
    Int16Label,
    complain_of_label,
    complain_of_learned_kernel,
    frame_parameters,
)
from pykernel.spec.families.int16_scales import BENT, COUNTS, LARGEST, PRODUCTS, products, units_of
from pykernel.spec.families.int16_spectrum import NUMBERS_MOST
from pykernel.spec.families.linear import REHEARSED
from pykernel.spec.family import Family, Refuse
from pykernel.spec.sections import (
    TRIED_ETA,
    GivenInput,
    KernelSection,
    Learning,
    Of,
    Rate,
    Tried,
    Within,
)

SOFTMAX = "expansion-softmax"
RULES = {"expansion-nlms": Gain.NLMS, "expansion-rls": Gain.RLS, SOFTMAX: Gain.RLS}


class ExpansionLearning(Learning):
    """How a sample changes the model.  The defaults come from measurements on streams (docs/records.md, learned-vectors)."""

    eta: Annotated[float, Of("expansion-nlms"), Rate(), TRIED_ETA] = Field(
        0.5, gt=0, lt=2, description="learning rate: the fraction of a sample's error that its update corrects"
    )
    forgetting: Annotated[float | None, Of("expansion-rls", SOFTMAX), Tried(3, 0.98, 0.9998, "memory")] = Field(
        None,
        ge=0.5,
        le=0.9999,
        description="forgetting factor: about the last 1 / (1 - forgetting) samples count. If not given, 0.998; with `expansion-softmax`, 0.9995",
    )
    prior_variance: Annotated[
        float,
        Of("expansion-rls", SOFTMAX),
        Within(float32=(1e-9, 1e9), float64=(1e-60, 1e60)),
        Tried(10, 1e-2, 1e4),
    ] = Field(
        10.0,
        gt=0,
        description="prior variance of the corrections to the trained weights, relative to the variance of the labels' noise; with `expansion-softmax`, whose functions are log odds, it is absolute. With smaller values, the model stays nearer to the trained function. int16: from 0.001 to 1,000; with `expansion-softmax`, from 0.004 to 4,000",
    )


class Continued:
    """Mixin for the specs of trained models that continue to learn: the default of ``forgetting`` depends on the rule."""

    @property
    def derived(self: Any) -> dict[str, dict[str, Any]]:
        found = {"forgetting": forgetting_of(self)}
        known: dict[str, dict[str, Any]] = super().derived  # type: ignore[misc]
        return known | {"learning": found} if RULES[self.learning.rule] == Gain.RLS else known


class ExpansionSpec(Continued, stages.StagedSpec):
    input: GivenInput
    label: stages.ContinuedLabel = stages.ContinuedLabel()
    learning: ExpansionLearning = ExpansionLearning()
    expansion: Expansion | None = None

    @property
    def family(self) -> Family:
        return next(family for family in EXPANSION_MODELS if self.learning.rule in family.rules)


def forgetting_of(spec: Any) -> float:
    return spec.learning.forgetting or (0.9995 if spec.learning.rule == SOFTMAX else 0.998)


def prior_of(spec: Any) -> float:
    """The prior variance in the recursion's units.

    For ``expansion-softmax``, the prior variance is divided by 4, because the second derivative of the loss -log p is
    assumed to be 1/4.
    """
    return float(spec.learning.prior_variance / (4 if spec.learning.rule == SOFTMAX else 1))


def need_tables(spec: Any, refuse: Refuse) -> None:
    """Refuse a spec that has no vectors, or whose functions separate pairs of classes.

    Also refuse weights without a bias, and a bias or a calibration without weights.
    """
    rule, tables = spec.learning.rule, spec.expansion
    if tables is None:
        refuse("[expansion]", f"is missing; {rule} must have vectors, and also weights and bias if these were trained")
    if tables.decision != "functions":
        refuse(
            "[expansion] decision",
            f'is "{tables.decision}", whose functions separate pairs of classes; {rule} needs a function for each class',
        )
    for key in ("bias", "calibration") if tables.weights is None else ():
        if getattr(tables, key) is not None:
            refuse(f"[expansion] {key}", "is given without weights; give both or neither")
    if tables.weights is not None and tables.bias is None:
        refuse("[expansion] bias", "is missing; weights need a bias")


class ExpansionModels(FrozenModels):
    """Models that start with the tables of a frozen model, and learn additional weights."""

    rules: Mapping[str, str] = dict.fromkeys(("expansion-nlms", "expansion-rls"), "kernel")
    programs: Mapping[LabelKind, Program] = EXPANSION
    spec: type[Any] = ExpansionSpec

    def validate(self, spec: Any, refuse: Refuse) -> None:
        largest = kernel_settings.largest(spec.precision)
        need_tables(spec, refuse)
        tables = spec.expansion
        stages.validate(spec, refuse)
        kernel_settings.validate(spec, refuse)
        if tables.calibration is not None and spec.mixture is not None:
            refuse(
                "[expansion] calibration",
                "fixes the probabilities, but [mixture] learns them; leave calibration or [mixture] out",
            )
        self._complain_of_tables(spec, refuse)
        self._complain_of_decision(spec, refuse)
        value = self._complain_of_numbers(spec, refuse)
        spec.check_size(refuse)
        # the left side is an upper bound on phi'P phi, where phi are the features and P is the weights' covariance
        if not (len(tables.vectors) + 1) * max(1.0, value) ** 2 * max(1.0, prior_of(spec)) <= largest:
            refuse(
                "[input] max_abs",
                f"is {spec.input_max_abs:g}, so large that k(x, v) can reach {value:.3g} and sums overflow {spec.precision}; lower "
                "max_abs",
            )
        far = stages.farthest(spec)
        if spec.linear is not None and not max(far * far, spec.label_max_abs * (2 + far)) <= largest:
            refuse(
                "[linear]",
                f"overflows {spec.precision}: predictions can reach {spec.label_max_abs * (2 + far):.3g}, and sums of squared "
                f"inputs {far * far:.3g}; lower [input] max_abs or [label] max_abs",
            )

    def capacities(self, spec: Any) -> dict[str, int]:
        features = len(spec.expansion.vectors) + 1
        sizes = {
            "DIM": spec.dim,
            "FEATURES": features,
            "OUTPUTS": spec.outputs,
            "PACKED": features * (features + 1) // 2,
        }
        return sizes | stages.probabilities(spec, spec.expansion.calibration is not None)

    def _trained(self, spec: Any) -> tuple[np.ndarray, np.ndarray]:
        """Multipliers (N, OUTPUTS) and bias (OUTPUTS,) of the trained functions."""
        tables, outputs = spec.expansion, spec.outputs
        if tables.weights is None:
            return np.zeros((len(tables.vectors), outputs)), np.zeros(outputs)
        return np.array(tables.weights, float), np.array(tables.bias, float)

    def parameters(self, spec: Any) -> dict[str, Any]:
        tables, outputs, dim = spec.expansion, spec.outputs, spec.dim
        vectors, begins = np.array(tables.vectors, float), tables.weights is not None
        folded, square_limit = np.zeros((len(vectors), dim + 1)), 0.0
        if tables.distance == "products":
            folded, square_limit = folded_rows(spec)
        calibration = np.array(tables.calibration or np.zeros((outputs, 2)), float)
        value = kernel_settings.bound(spec, never, np.abs(vectors).max(0))
        multipliers, bias = self._trained(spec)
        features, largest = len(vectors) + 1, 1e37 if spec.precision == "float32" else 1e300
        limit = min(2.0**20 * stages.label_unit(spec), 2.0**100, largest / features / max(1.0, value))
        trained = float((np.abs(multipliers).sum(0) * value + np.abs(bias)).max())
        most = min(limit * features * max(1.0, value), largest)
        return (
            stages.parameters(spec, most + trained)
            | kernel_settings.parameters(spec)
            | {
                "gain": RULES[spec.learning.rule],
                "eta": spec.learning.eta,
                "forgetting": forgetting_of(spec),
                "prior_variance": prior_of(spec),
                "settled_limit": 1.01 * prior_of(spec),
                "weight_limit": limit,
                # parameters that only other linear models use
                "forgets": False,
                "centres": False,
                "origin_limit": 0.0,
                "start": 0.0,
                "trace_limit": 0.0,
                "root_limit": 0.0,
                "feature_kind": FeatureKind.INPUTS,
                "amplitude": 1.0,
                "frequencies": np.zeros((len(vectors), dim)),
                "phases": np.zeros(len(vectors)),
                "adds": begins and self._functions(spec) < outputs,
                "trained_classes": max(2, self._functions(spec)),
                "begins": begins,
                "continues": begins and spec.label_kind != "class",
                "products": tables.distance == "products",
                "calibrated": tables.calibration is not None,
                "vectors": vectors,
                "shifts": tables.offsets or np.zeros(len(vectors)),
                "multipliers": multipliers,
                "bias": bias,
                "folded": folded,
                "square_limit": square_limit,
                "calibration_slopes": -calibration[:, 0],
                "calibration_offsets": -calibration[:, 1],
                "rehearsed": spec.rehearsed(REHEARSED),
            }
        )


def refuse_calibration(spec: Any, refuse: Refuse) -> None:
    if spec.expansion is not None and spec.expansion.calibration is not None:
        refuse("[expansion] calibration", f"fixes the probabilities, but {SOFTMAX} learns them; leave calibration out")


class SoftmaxModels(ExpansionModels):
    """Classifiers that learn weights in addition to the tables of a frozen classifier, which may have fewer classes."""

    rules: Mapping[str, str] = {SOFTMAX: "kernel"}
    programs: Mapping[LabelKind, Program] = EXPANSION_SOFTMAX

    def validate(self, spec: Any, refuse: Refuse) -> None:
        super().validate(spec, refuse)
        refuse_calibration(spec, refuse)

    def _functions(self, spec: Any) -> int:
        known = len(spec.expansion.bias or ())
        return known if known == 1 or 3 <= known < spec.outputs else int(spec.outputs)

    _weights = _functions

    def capacities(self, spec: Any) -> dict[str, int]:
        return super().capacities(spec) | stages.probabilities(spec, True)

    def parameters(self, spec: Any) -> dict[str, Any]:
        return super().parameters(spec) | {"sharpens": False}

    def _trained(self, spec: Any) -> tuple[np.ndarray, np.ndarray]:
        multipliers, bias = super()._trained(spec)
        added = spec.outputs - len(bias)
        if added <= 0:
            return multipliers, bias
        if len(bias) == 1:  # one function, the log odds of class 1, becomes two: one for each class
            multipliers, bias, added = multipliers * [-0.5, 0.5], bias * [-0.5, 0.5], added - 1
        return np.pad(multipliers, ((0, 0), (0, added))), np.pad(bias, (0, added))


EXPANSION_MODELS: tuple[Family, ...] = (ExpansionModels(), SoftmaxModels())
"""One family for each program."""


WEIGHT_BITS, HEADROOM = 30, 8
"""WEIGHT_BITS: log2 of the largest weight, in the weights' unit.  HEADROOM: log2 of the largest weight, in units of the label's limit.
The largest weight is much larger than the label's limit, because similar vectors get large weights of both signs."""
LEAST_BITS = 11
"""log2 of the smallest allowed [label] max_abs, in units of 2^-label_shift."""


class Int16ContinuedLabel(Int16Label):
    """The label of an integer model that continues from a trained one."""

    gain: stages.ContinuedGain = True


class Int16ExpansionSpec(Continued, Int16Spec):
    label: Int16ContinuedLabel = Int16ContinuedLabel()
    kernel: KernelSection | None = None
    linear: stages.LinearPart | None = None
    learning: ExpansionLearning = ExpansionLearning()
    expansion: Expansion | None = None

    @property
    def family(self) -> Any:
        return next(family for family in INT16_EXPANSION_MODELS if self.learning.rule in family.rules)


class Int16ExpansionModels(Int16FrozenModels):
    """Integer models that start with the tables of a frozen model, and learn additional weights."""

    rules: Mapping[str, str] = ExpansionModels.rules
    programs: Mapping[LabelKind, Program] = INT16_EXPANSION
    spec: type[Any] = Int16ExpansionSpec
    planned: tuple[tuple[str, str | None], ...] = ()

    def validate(self, spec: Any, refuse: Refuse) -> None:
        need_tables(spec, refuse)
        if spec.expansion.weights is None:
            refuse("[expansion] weights", "are missing; an int16 model can only continue from trained weights")
        complain_of_learned_kernel(spec, refuse, (*kernel_settings.UNIT, *kernel_settings.HIDDEN))
        complain_of_label(spec, refuse)
        need_vectors(spec, refuse, NUMBERS_MOST - 1)
        complain_of_rate("[learning] eta", spec.learning.eta, refuse)
        given = spec.learning.prior_variance
        if not 1e-3 <= prior_of(spec) <= 1e3:
            part = given / prior_of(spec)
            refuse(
                "[learning] prior_variance",
                f"is {given:g}; it must be from {1e-3 * part:g} to {1e3 * part:g} for int16",
            )
        self._complain_of_machine(spec, refuse)
        if spec.label_max_abs < (least := 2.0 ** (LEAST_BITS - spec.label_shift)):
            refuse(
                "[label] max_abs",
                f"is {spec.label_max_abs:g}; with these trained weights, it must be at least {least:.2g} for int16",
            )

    def capacities(self, spec: Any) -> dict[str, int]:
        return super().capacities(spec) | learned_sizes(len(spec.expansion.vectors) + 1)

    def parameters(self, spec: Any) -> dict[str, Any]:
        learning, filters = spec.learning, RULES[spec.learning.rule] == Gain.RLS
        reach, squares = int(spec.conversion.reach.max()), units_of(spec, spec.scales.octave)[0] ** 2
        size, full = len(spec.expansion.vectors) + 1, 2.0**spec.label_shift
        lifted, unit = self._feature(spec)
        finer, limit = math.ceil(math.log2(size)), math.ceil(math.log2(spec.label_max_abs))
        # a unit of the corrections is at least 8 units of the prediction, so that three numbers that have 32 bits in
        # the prediction's unit can be added in the unit of the corrections without overflow
        places = min(WEIGHT_BITS - HEADROOM - limit - finer, spec.label_shift - 3)
        return {
            **super().parameters(spec),
            **frame_parameters(spec, reach, squares, places),
            # for classes, the label's memory holds predictions
            "label_room": LARGEST if spec.label_kind == "class" else math.floor(spec.label_max_abs * full),
            "filters": filters,
            "refines": False,
            "coarser": spec.label_shift - places,
            "sure": 2 ** max(0, places + 5),
            "octave_lift": max(0, 17 - places),
            "octave_drop": max(0, places - 17),
            "error_lift": max(0, places - 13),
            "error_drop": max(0, 13 - places),
            "weight_places": finer + 15 - unit,
            "sum_places": finer,
            "unit_lift": lifted,
            "feature_unit": unit,
            "constant": min(2**unit, COUNTS),
            "weight_most": 2**WEIGHT_BITS - 1,
            "rate": min(65535, max(1, round((1 if filters else learning.eta) * 2**15))),
            "prior": np.full(size, 2**KNOWN),
            "noise": round(2**NOISE / prior_of(spec)) if filters else 0,
            "forgets": round(-math.log2(1 - forgetting_of(spec))),
            "rehearsed": spec.rehearsed(REHEARSED),
        }

    def _feature(self, spec: Any) -> tuple[int, int]:
        """Return (lift, unit).

        The values of the hidden units are multiplied by 2^lift, so that the largest value has 15 bits.  The integer 2^unit then
        represents a value of 1.
        """
        if spec.kernel.function not in PRODUCTS or spec.kernel.function in BENT:
            return 0, 15
        scales = spec.scales
        most = products(spec, spec.conversion, scales.octave, scales.vectors).max()
        lifted = min(31 - math.floor(math.log2(max(1, most))), 32 - scales.octave)
        return lifted, scales.octave - 17 + lifted


class Int16SoftmaxModels(Int16ExpansionModels):
    """Integer classifiers that learn probabilities."""

    rules: Mapping[str, str] = SoftmaxModels.rules
    programs: Mapping[LabelKind, Program] = INT16_EXPANSION_SOFTMAX

    def validate(self, spec: Any, refuse: Refuse) -> None:
        refuse_calibration(spec, refuse)
        super().validate(spec, refuse)


INT16_EXPANSION_MODELS: tuple[Int16Family, ...] = (Int16ExpansionModels(), Int16SoftmaxModels())
