"""Models in whole numbers (precision int16): how inputs, weights and kernel values are scaled, so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import Field, PrivateAttr, field_validator

from pykernel.algorithms.fixed.frozen import CERTAIN, FIXED_FROZEN, FixedFunction
from pykernel.dialect import Index
from pykernel.dialect.program import NOTHING, LabelKind, Program
from pykernel.spec import kernel_settings
from pykernel.spec.base import Spec
from pykernel.spec.families.frozen import DECISIONS, Expansion, FrozenModels
from pykernel.spec.family import Family, Refuse
from pykernel.spec.sections import KernelSection, Learning, Numbers, ScaledInput

COUNTS = 32767
"""Largest magnitude of a count; -32768 stands for what is no number."""
LARGEST = 2**31 - 1
FUNCTIONS = {"gaussian": FixedFunction.GAUSSIAN, "linear": FixedFunction.LINEAR}
OCTAVES = range(31, 15, -1)
"""Powers of two by which a squared distance may be divided: the larger, the finer."""
FALL_ROOM = 15
"""Most places by which a weight's product is shifted, besides its octaves: 16 octaves stay."""


class WholeInput(ScaledInput):
    """What a model sees in whole numbers: each input in the counts of its sensor."""

    max_abs: float | Numbers | None = Field(  # type: ignore[assignment]
        None,
        description="largest |x − center|, a number for each input or one for all: a sample with a larger one is refused",
    )
    resolution: float | Numbers | None = Field(
        None,
        description="what one count is worth in the input's unit, a number for each input or one for all, such as 1 for an ADC's readings; if not given, the power of two with which counts are largest",
    )

    @field_validator("max_abs", "resolution", mode="before")
    @classmethod
    def _positive(cls, given: Any) -> Any:
        for value in given if isinstance(given, (list, tuple)) else [given]:
            if value is not None and not (isinstance(value, (int, float)) and 0 < value < math.inf):
                raise ValueError(f"holds {value!r}; a number above zero must be given for each input, or one for all")
        return given


@dataclass(frozen=True)
class Conversion:
    """From counts to the kernel's unit: z = ((x - center) factor + rounding) / 2^shift, rounded down."""

    center: np.ndarray
    most: np.ndarray
    factor: np.ndarray
    rounding: np.ndarray
    shift: np.ndarray

    @property
    def alike(self) -> bool:
        """Whether all inputs are converted in the same way."""
        return all((values == values[0]).all() for values in self.tables.values())

    @property
    def tables(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in ("center", "most", "factor", "rounding", "shift")}

    def parameters(self) -> dict[str, Any]:
        """Values of FixedInputConfig's fields."""
        tables = {name: values[:1] if self.alike else values for name, values in self.tables.items()}
        return {**tables, "each": not self.alike, "reach": int(self.reach.max())}

    @property
    def reach(self) -> np.ndarray:
        """Largest magnitude of each converted input."""
        ends = [(e * self.factor + self.rounding) >> self.shift for e in (-self.most, self.most)]
        return np.abs(ends).max(0)


def limits(spec: Spec) -> np.ndarray:
    """Largest |x - center| of each input, (DIM,)."""
    return np.broadcast_to(np.array(spec.input.max_abs, float), spec.dim)


def centers(spec: Spec) -> np.ndarray:
    center, _ = spec.scaling
    return np.zeros(spec.dim) if center is None else np.array(center, float)


def resolutions(spec: Spec) -> np.ndarray:
    """What one count of each input is worth, (DIM,)."""
    given = getattr(spec.input, "resolution", None)
    if given is not None:
        return np.array(np.broadcast_to(np.array(given, float), spec.dim))
    return 2.0 ** np.ceil(np.log2((limits(spec) + np.abs(centers(spec))) / COUNTS))


def conversion(spec: Spec, unit: float) -> Conversion:
    """How counts are converted; unit: how many of the kernel's units are 1 in the scaled inputs."""
    resolution, center, most = resolutions(spec), centers(spec), limits(spec)
    _, scale = spec.scaling
    each = unit * resolution * (np.ones(spec.dim) if scale is None else np.array(scale, float))
    counts = np.rint(center / resolution)
    reach = np.minimum(np.floor(most / resolution * (1 + 1e-9)), COUNTS - np.abs(counts))
    shift = np.clip(np.floor(np.log2(COUNTS / np.abs(each))), 0, 30)
    lost = (counts - center / resolution) * each
    whole = [counts, reach, np.rint(each * 2**shift), np.rint((0.5 + lost) * 2**shift), shift]
    return Conversion(*(values.astype(np.int64) for values in whole))


class FixedFrozenSpec(Spec):
    precision: Literal["int16"] = Field("int16", description="whole numbers only, on both sides")  # type: ignore[assignment]
    input: WholeInput
    kernel: KernelSection | None = None
    learning: Learning = Learning()
    expansion: Expansion | None = None

    _scales: Any = PrivateAttr(None)

    @property
    def family(self) -> Family:
        return FIXED_FROZEN_MODELS

    @property
    def scales(self) -> Scales | None:
        """How the model's numbers are scaled; None if 16 bits do not hold them."""
        if self._scales is None:
            self._scales = FIXED_FROZEN_MODELS.scales(self)  # type: ignore[attr-defined]
        return self._scales  # type: ignore[no-any-return]

    def accepts(self, x: np.ndarray) -> np.ndarray:
        return np.asarray((np.abs(x - centers(self)) <= limits(self)).all(axis=1))

    def raw_inputs(self, x: Any) -> np.ndarray:
        """Counts; what 16 bits do not hold, and NaN, is -32768, which every model refuses."""
        with np.errstate(invalid="ignore", over="ignore"):
            counts = np.rint(np.array(x, float, order="C", ndmin=2) / resolutions(self))
            return np.where(np.abs(counts) <= COUNTS, counts, -32768).astype(np.int16)

    def in_units(self, question: str, answers: np.ndarray) -> np.ndarray:
        if self.program.questions[question].scalar is Index:
            return answers
        return np.where(answers == NOTHING, np.nan, answers * self.family.unit(self, question))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Scales:
    """What is chosen for one model."""

    conversion: Conversion
    octave: int
    vectors: np.ndarray  # (N, DIM) or, linear, (FUNCTIONS, DIM): the factors
    weights: np.ndarray  # (N, WEIGHTS)
    weight_shift: int
    label_shift: int  # answers are in units of 2^-label_shift
    bias: np.ndarray


class FixedFrozenModels(FrozenModels):
    """Expansions that were trained elsewhere, in whole numbers."""

    programs: Mapping[LabelKind, Program] = FIXED_FROZEN
    spec = FixedFrozenSpec  # type: ignore[assignment]

    def why_ignored(self, spec: Spec, section: str, key: str) -> str | None:
        if (section, key) == ("label", "max_abs"):
            return "changes nothing: the model learns no label; leave it out"
        return super().why_ignored(spec, section, key)  # type: ignore[arg-type]

    def validate(self, spec: Any, refuse: Refuse) -> None:
        if spec.expansion is None:
            refuse("[expansion]", "is missing; a frozen model must have vectors, weights and bias")
        if spec.kernel is None:
            refuse("[kernel]", 'is missing; frozen needs one, such as function = "gaussian" with sigma')
        if spec.kernel.function not in FUNCTIONS:
            *others, last = FUNCTIONS
            refuse(
                "[kernel] function",
                f"is {spec.kernel.function}, which int16 does not compute; it must be {', '.join(others)} or {last}, or the "
                "precision float32",
            )
        if spec.kernel.normalise:
            refuse(
                "[kernel] normalise", "is of reals: int16 does not divide; leave it out, or choose precision float32"
            )
        if spec.input.max_abs is None:
            refuse(
                "[input] max_abs",
                "is missing; whole numbers need the range of each input: write the largest |x - center| that the sensor "
                "gives, one number or a list",
            )
        for key in ("max_abs", "resolution"):
            given = getattr(spec.input, key)
            if isinstance(given, tuple) and len(given) != spec.dim:
                refuse(f"[input] {key}", f"holds {len(given)} numbers; it must hold {spec.dim}, one for each input")
        kernel_settings.validate_function(spec, refuse)
        kernel_settings.validate_scaling(spec, refuse)
        self._complain_of_tables(spec, refuse)
        self._complain_of_decision(spec, refuse)
        if spec.expansion.decision == "ovo_vote":
            refuse(
                "[expansion] decision",
                'is "ovo_vote", whose predictions int16 does not compute, for they are no whole numbers; "ovo" has the same '
                "NAME_classify",
            )
        self._complain_of_counts(spec, refuse)
        self._complain_of_scales(spec, refuse)

    def _complain_of_counts(self, spec: Spec, refuse: Refuse) -> None:
        """Refuse inputs whose range does not fit in counts of 16 bits, or is below one."""
        resolution, most, center = resolutions(spec), limits(spec), centers(spec)
        names = spec.input.columns or [f"x[{j}]" for j in range(spec.dim)]
        for j, name in enumerate(names):
            largest = (most[j] + abs(center[j])) / resolution[j]
            if largest > COUNTS * (1 + 1e-9):
                refuse(
                    "[input] resolution",
                    f"is {resolution[j]:g} for {name}, which then has up to {largest:,.0f} counts; it must be at least "
                    f"{(most[j] + abs(center[j])) / COUNTS:.3g}",
                )
            if most[j] / resolution[j] < 1:
                refuse(
                    "[input] resolution",
                    f"is {resolution[j]:g} for {name}, more than its max_abs of {most[j]:g}; it must be lower",
                )

    def _complain_of_scales(self, spec: Any, refuse: Refuse) -> None:
        scales = spec.scales
        if scales is None:
            _, scale = spec.scaling
            far = np.sqrt(np.sum((limits(spec) * np.abs(1.0 if scale is None else np.array(scale))) ** 2))
            refuse(
                "[input] max_abs",
                f"lets inputs be {far:.3g} from the center, where the kernel's width is {spec.length_scale:.3g}: too far for 16 "
                "bits; it must be lower, or the kernel wider",
            )

    # ---- scales

    def scales(self, spec: Any) -> Scales | None:
        """How a model's numbers are scaled; None if 16 bits do not hold them."""
        if spec.kernel.function == "linear":
            return self._linear(spec)
        expansion = spec.expansion
        vectors, rate = np.array(expansion.vectors, float), kernel_settings.rate(spec)
        for octave in OCTAVES:
            unit = math.sqrt(rate * 2.0**octave)
            if unit * np.abs(vectors).max() > COUNTS:
                continue
            made = conversion(spec, unit)
            whole, reach = np.rint(unit * vectors).astype(np.int64), made.reach
            far = np.sum((reach + np.abs(whole)) ** 2, axis=1).max()
            # the last: any input that the memory may hold times any vector
            if (
                reach.max() <= COUNTS
                and far < 2**32
                and reach.max() * np.abs(whole).sum(1).max() <= LARGEST
                and (np.abs(made.factor) <= COUNTS).all()
            ):
                return self._weighted(spec, made, octave, whole)
        return None

    def _weighted(self, spec: Any, made: Conversion, octave: int, vectors: np.ndarray) -> Scales:
        expansion = spec.expansion
        weights, bias = np.array(expansion.weights, float), np.array(expansion.bias, float)
        exponent = math.floor(math.log2(COUNTS / max(np.abs(weights).max(), 2.0**-100)))
        sums = self._sums(spec, np.abs(weights))
        # the most that a function can be, in units of which 2^31 must hold all
        most = float((sums + np.abs(bias)).max())
        label_shift = exponent + 16
        if most > 0:
            label_shift = min(
                label_shift, math.floor(math.log2((LARGEST - 2 * len(weights)) / (most * (1 + 2.0**-12))))
            )
        shift = exponent + 16 - label_shift
        if shift > FALL_ROOM:
            exponent, shift = exponent - (shift - FALL_ROOM), FALL_ROOM
        whole = np.rint(weights * 2.0**exponent).astype(np.int64)
        # each term is rounded down: by half a unit in the mean
        counted = np.rint(bias * 2.0**label_shift + self._sums(spec, np.ones_like(weights)) / 2)
        return Scales(made, octave, vectors, whole, shift, label_shift, counted.astype(np.int64))

    def _sums(self, spec: Any, weights: np.ndarray) -> np.ndarray:
        """The sum of all vectors' weights in each function, (FUNCTIONS,)."""
        expansion = spec.expansion
        if expansion.decision == "functions":
            return np.asarray(weights.sum(0))
        return np.asarray(self._spread(spec, weights).sum(0))

    def _spread(self, spec: Any, weights: np.ndarray) -> np.ndarray:
        """The weights of each vector in each function, (N, FUNCTIONS); pairs: in those of its own class."""
        expansion = spec.expansion
        if expansion.decision == "functions":
            return weights
        classes, own = len(spec.label.classes), np.array(expansion.support_class)
        pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
        spread = np.zeros((len(weights), len(pairs)))
        for at, (a, b) in enumerate(pairs):
            spread[own == a, at] = weights[own == a, b - 1]
            spread[own == b, at] = weights[own == b, a]
        return spread

    def _linear(self, spec: Any) -> Scales:
        expansion = spec.expansion
        factors = self._spread(spec, np.array(expansion.weights, float)).T @ np.array(expansion.vectors, float)
        bias = np.array(expansion.bias, float)
        _, scale = spec.scaling
        far = float((limits(spec) * np.abs(1.0 if scale is None else np.array(scale))).max())
        unit, fine = (
            math.floor(math.log2(COUNTS / far)),
            math.floor(math.log2(COUNTS / max(np.abs(factors).max(), 2.0**-100))),
        )
        while True:
            made = conversion(spec, 2.0**unit)
            whole = np.rint(factors * 2.0**fine).astype(np.int64)
            label_shift = unit + fine
            counted = np.rint(bias * 2.0**label_shift)
            largest = made.reach.max() * np.abs(whole).sum(1) + np.abs(counted)
            if largest.max() <= LARGEST and made.reach.max() <= COUNTS:
                return Scales(made, 31, whole, np.zeros((1, 1), np.int64), 0, label_shift, counted.astype(np.int64))
            # what is finer gives way
            if unit - math.log2(COUNTS / far) > fine - math.log2(COUNTS / max(np.abs(factors).max(), 2.0**-100)):
                unit -= 1
            else:
                fine -= 1

    def capacities(self, spec: Any) -> dict[str, int]:
        found = super().capacities(spec)
        scales = spec.scales
        alike = scales is not None and scales.conversion.alike
        return {name: found[name] for name in ("DIM", "N_MAX", "OUTPUTS", "CLASSES", "FUNCTIONS", "WEIGHTS")} | {
            "SCALES": 1 if alike else spec.dim
        }

    def unit(self, spec: Any, question: str) -> float:
        """What 1 is worth in an answer."""
        if question == "probability":
            return 1 / CERTAIN
        scales = spec.scales
        return 1.0 if scales is None or question != "predict" else 2.0**-scales.label_shift

    def parameters(self, spec: Any) -> dict[str, Any]:
        expansion, functions = spec.expansion, self._functions(spec)
        scales = spec.scales
        assert scales is not None
        made, linear = scales.conversion, spec.kernel.function == "linear"
        capacities = self.capacities(spec)
        count, dim, one = capacities["N_MAX"], spec.dim, 2.0**scales.label_shift

        def counted(bound: float | None, otherwise: int) -> int:
            return otherwise if bound is None else int(np.clip(np.rint(bound * one), -LARGEST, LARGEST))

        return {
            "function": FUNCTIONS[spec.kernel.function],
            "decision": DECISIONS[expansion.decision],
            "single": functions == 1,
            "breaks_ties": expansion.break_ties,
            "calibrated": expansion.calibration is not None,
            "clamps": spec.label.low is not None or spec.label.high is not None,
            **made.parameters(),
            "products": expansion.distance == "products",
            "octave": scales.octave,
            "vectors": np.zeros((count, dim)) if linear else scales.vectors,
            "norms": np.zeros(count) if linear else (scales.vectors**2).sum(1),
            "weights": np.zeros((count, capacities["WEIGHTS"])) if linear else scales.weights,
            "factors": scales.vectors if linear else np.zeros((functions, dim)),
            "bias": scales.bias,
            "support_class": expansion.support_class or np.zeros(count, int),
            "weight_shift": scales.weight_shift,
            "last_octave": 31 - scales.weight_shift,
            "low": counted(spec.label.low, -LARGEST),
            "high": counted(spec.label.high, LARGEST),
        } | _calibration(expansion.calibration, functions, one)


def _calibration(given: Any, functions: int, one: float) -> dict[str, Any]:
    """The numbers of ``calibrate``: functions, in units of 1 / one, to octaves / 2^16."""
    pairs = -np.array(given if given is not None else np.zeros((functions, 2)), float)
    slopes, offsets = (pairs * math.log2(math.e) * 2.0**16).T
    slopes, offsets = slopes / one, np.clip(np.rint(offsets), -(2.0**28), 2.0**28)
    # beyond 17 octaves a probability is 0 or 1
    with np.errstate(divide="ignore"):
        limits = np.clip((np.abs(offsets) + 17 * 2.0**16) / np.abs(slopes), 1, LARGEST)
    coarse = np.maximum(np.ceil(np.log2(limits + 1)) - 15, 0)
    steep = np.maximum(np.abs(slopes) * 2.0**coarse, 2.0**-16)
    shift = np.clip(np.floor(np.log2(COUNTS / steep)), 0, 31)
    whole = np.clip(np.rint(slopes * 2.0**coarse * 2.0**shift), -COUNTS, COUNTS)
    return {"limits": np.floor(limits), "coarse": coarse, "slope": whole, "slope_shift": shift, "offset": offsets}


FIXED_FROZEN_MODELS: Family = FixedFrozenModels()
