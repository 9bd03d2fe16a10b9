"""Specs of integer models (precision int16): their inputs and labels, and the families of models that were trained
elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from pydantic import Field, field_validator

from pykernel.algorithms.int16.frozen import CERTAIN, INT16_FROZEN
from pykernel.algorithms.int16.kernels import ONE
from pykernel.dialect import Index
from pykernel.dialect.program import NO_COUNT, NOTHING, LabelKind, Program
from pykernel.spec import kernel_settings, signal_int16
from pykernel.spec.base import Spec
from pykernel.spec.families.frozen import DECISIONS, Expansion, FrozenModels
from pykernel.spec.families.int16_errors import FrozenErrors, spread, weights_of_functions
from pykernel.spec.families.int16_scales import (
    BENT,
    COUNTS,
    EIGHT,
    FALL_ROOM,
    FUNCTIONS,
    LARGEST,
    OCTAVES,
    PRODUCTS,
    Conversion,
    Scales,
    added,
    centers,
    conversion,
    counted,
    degree_of,
    factors,
    farthest,
    kernel_parameters,
    limits,
    offsets,
    products,
    resolutions,
    units_of,
)
from pykernel.spec.family import Family, Refuse
from pykernel.spec.sections import KernelSection, Label, Learning, Numbers, ScaledInput, shown_value
from pykernel.spec.signal import SignalSection


class Int16Input(ScaledInput):
    """Inputs of an integer model, which takes each input as a count of its sensor."""

    max_abs: float | Numbers | None = Field(  # type: ignore[assignment]
        None,
        description="largest magnitude of an input: a sample with a larger one is refused. As a list, which `center` requires: the largest |x − center| of each input",
    )
    resolution: float | Numbers | None = Field(
        None,
        description="the value of one count in the input's unit, such as 1 for an ADC's readings: one number for all inputs, or a list with one for each; if not given, the smallest power of two for which the counts fit in 16 bits",
    )
    offset: float | Numbers | None = Field(
        None,
        description="the value of an input whose count is 0: one number for all inputs, or a list with one for each; if not given, 0 if `resolution` is given, else `center`",
    )

    @field_validator("max_abs", "resolution", mode="before")
    @classmethod
    def _positive(cls, numbers: Any) -> Any:
        for value in numbers if isinstance(numbers, (list, tuple)) else [numbers]:
            if value is not None and not (isinstance(value, (int, float)) and 1e-20 <= value <= 1e20):
                raise ValueError(
                    f"holds {shown_value(value)}; give one number from 1e-20 to 1e20 for all inputs, or one for each input"
                )
        return numbers


class Int16Family(Family, Protocol):
    """Integer models that share a program."""

    # the rules that ``plan`` tries for a device without an FPU, best first, each with its technique or None
    planned: tuple[tuple[str, str | None], ...] = ()

    def scales(self, spec: Any) -> Scales | None:
        """Return the scales of a model's values, or None if the values do not fit in 16 bits."""

    def unit(self, spec: Any, question: str) -> float:
        """Return the value that the integer 1 represents in the results of ``question``, such as ``predict``."""
        return float(2.0**-spec.label_shift)


def complain_of_rate(where: str, eta: float, refuse: Refuse) -> None:
    """Refuse learning rates that would be rounded to 0."""
    if eta < 1 / 65536:
        refuse(where, f"is {eta:g}; it must be at least {1 / 65536:.2g}, the smallest learning rate of int16")


def complain_of_inputs(spec: Any, refuse: Refuse) -> None:
    """Refuse inputs if their range is missing, does not fit in 16-bit counts or is below one count, or if a list has the wrong length."""
    if spec.input.max_abs is None:
        refuse(
            "[input] max_abs",
            "is missing; int16 needs the range of each input: write the largest |x| that the sensors give; with center, write "
            "a list with the largest |x - center| of each input",
        )
    if spec.input.center is not None and not isinstance(spec.input.max_abs, tuple):
        most = ", ".join([f"{spec.input.max_abs:g}"] * min(spec.dim, 3)) + (", …" if spec.dim > 3 else "")
        refuse(
            "[input] max_abs",
            f"is {spec.input.max_abs:g}, the largest |x| of all inputs; with center, int16 needs the largest |x - center| of each "
            f"input: write a list, such as [{most}]",
        )
    for key, numbers in (("resolution", spec.input.resolution), ("offset", spec.input.offset)):
        if isinstance(numbers, tuple) and len(numbers) != spec.dim:
            refuse(f"[input] {key}", f"holds {len(numbers)} numbers; it must hold {spec.dim}, one for each input")
    kernel_settings.validate_scaling(spec, refuse)
    names = spec.input.columns or [f"x[{j}]" for j in range(spec.dim)]
    middle, units = centers(spec) - offsets(spec), spec.input.resolution
    for name, resolution, most, center in zip(names, resolutions(spec), limits(spec), middle, strict=True):
        largest = most + abs(center)
        cure = (
            f", or bring [input] offset nearer to center, because the device counts {name} - offset"
            if most < abs(center)
            else ""
        )
        if largest / resolution > COUNTS * (1 + 1e-9):
            refuse(
                "[input] resolution",
                f"is {resolution:g} for {name}, which then has up to {largest / resolution:,.0f} counts; give at least "
                f"{largest / COUNTS:.3g}{cure}",
            )
        if most / resolution < 1:
            refuse(
                "[input] resolution",
                f"is {resolution:g} for {name}, more than max_abs, {most:g}; give a smaller one{cure if units is None else ''}",
            )


def complain_of_kernel(spec: Any, refuse: Refuse) -> None:
    """Refuse kernels that int16 does not support."""
    if spec.kernel is None:
        refuse("[kernel]", f'is missing; {spec.learning.rule} needs one, such as function = "gaussian" with sigma')
    if spec.kernel.function not in FUNCTIONS:
        *others, last = FUNCTIONS
        refuse(
            "[kernel] function",
            f"is {spec.kernel.function}, which int16 does not compute; choose {', '.join(others)} or {last}, or "
            "precision float32",
        )
    if spec.kernel.normalise:
        refuse(
            "[kernel] normalise",
            "needs a division, which int16 does not have; leave normalise out, or choose precision float32",
        )
    kernel_settings.validate_function(spec, refuse)


class Int16Spec(Spec):
    """An integer model."""

    @property
    def input_max_abs(self) -> float:
        """The largest distance of an input from its center."""
        return float(np.max(np.array(self.input.max_abs, float)))

    precision: Literal["int16"] = Field("int16", description="integer arithmetic only, on the host as on the device")  # type: ignore[assignment]
    input: Int16Input

    models: ClassVar[Int16Family]

    @cached_property
    def scales_found(self) -> Scales | None:
        """The scales of the model's values.  If the values do not fit in 16 bits, the scales are None, and the spec is refused."""
        return self.models.scales(self)

    @property
    def scales(self) -> Scales:
        assert self.scales_found is not None
        return self.scales_found

    @property
    def conversion(self) -> Conversion:
        """How counts are converted."""
        return self.scales.conversion

    @property
    def label_shift(self) -> int:
        """-log2 of the unit of labels and predictions."""
        return self.scales.label_shift

    def accepted(self, x: np.ndarray) -> np.ndarray:
        counts = self.raw_inputs(x).astype(np.int64).reshape(np.shape(x))
        if self.signal is not None:
            return np.asarray(np.abs(counts) <= signal_int16.channels_of(self.signal).most)
        made = self.conversion
        return np.asarray(np.abs(counts - made.center) <= made.most)

    def limit_told(self, j: int) -> str:
        return f"{limits(self)[j]:g}, measured from the center, {centers(self)[j]:g}"

    def raw_inputs(self, x: Any) -> np.ndarray:
        """Inputs as counts.  A number that does not fit into 16 bits, or NaN, becomes -32768, which every model
        refuses.

        The computation uses float32, like ``NAME_counts`` in C.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            x = np.array(x, np.float32, order="C", ndmin=2)
            # the product has 24 significant bits, so adding one half in float64 is exact
            counts = np.floor(((x - self.offsets.astype(np.float32)) * self.counts_per_unit).astype(float) + 0.5)
            return np.where(np.abs(counts) <= COUNTS, counts, -32768).astype(np.int16)

    def raw_labels(self, y: Any) -> np.ndarray:
        """Labels in units of 2^-label_shift.

        A label that does not fit into 32 bits, or NaN, becomes -2^31, which every model refuses.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            counts = np.rint((np.array(y, float, order="C") - self.label_offset) * 2.0**self.label_shift)
            return np.where(np.abs(counts) <= LARGEST, counts, NOTHING).astype(np.int32)

    def as_seen(self, x: np.ndarray) -> np.ndarray:
        counts = self.raw_inputs(x)
        return np.where(counts == -32768, np.nan, counts * self.resolutions + self.offsets)

    def in_units(self, question: str, answers: np.ndarray) -> np.ndarray:
        if question == "signal":
            return np.where(answers == NO_COUNT, np.nan, answers * resolutions(self))
        if self.program.written(question).scalar is Index:
            return answers
        zero = self.label_offset if self.program.answering[question] == "predict" else 0.0
        return np.where(answers == NOTHING, np.nan, answers * self.answer_unit(question) + zero)

    def answer_unit(self, question: str) -> float:
        """The value that the integer 1 represents in the results of ``question``, in the label's unit."""
        return self.models.unit(self, self.program.answering[question])

    def counts_told(self) -> list[str]:
        """Return a line for each input, with the value of a count and the accepted counts.  If all inputs are alike,
        return a single line.
        """
        if self.signal is not None:
            return signal_int16.raw_counts_told(self.signal, self.signal.channels)
        made = self.conversion
        names = self.input.columns or [f"x[{j}]" for j in range(self.dim)]
        rows = [
            f"1 count is {resolution:.6g}{f', and 0 is {zero:.9g}' if zero else ''}; from {center - most} to {center + most}"
            for resolution, zero, center, most in zip(
                resolutions(self), offsets(self), made.center, made.most, strict=True
            )
        ]
        if len(set(rows)) == 1:
            return [f"each input: {rows[0]}"]
        return [f"{name}: {row}" for name, row in zip(names, rows, strict=True)]

    @property
    def counts_per_unit(self) -> np.ndarray:
        """The number of counts per unit, for each element of a sample, (DIM,) or (CHANNELS,)."""
        return (1 / self.resolutions).astype(np.float32)

    @property
    def resolutions(self) -> np.ndarray:
        """The value of one count, for each element of a sample, (DIM,) or (CHANNELS,)."""
        return resolutions(self) if self.signal is None else signal_int16.channels_of(self.signal).resolution

    @property
    def offsets(self) -> np.ndarray:
        """The value of a count of 0, for each element of a sample, (DIM,) or (CHANNELS,)."""
        return offsets(self) if self.signal is None else np.zeros(len(self.signal.channels))

    def signal_values(self, signal: SignalSection, awaits: bool) -> dict[str, Any]:
        made, one = self.conversion, 2.0**self.label_shift
        reach = made.center - made.most, made.center + made.most
        return signal_int16.parameters(signal, self.label.column, awaits, one, resolutions(self).tolist(), reach)

    def signal_inputs(self, written: Mapping[str, Any]) -> dict[str, Any]:
        assert self.signal is not None
        return signal_int16.inputs_of(self.signal, written)

    @property
    def feature_units(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.signal is not None
        return signal_int16.measure_units(self.signal), resolutions(self)


class Int16FrozenSpec(Int16Spec):
    kernel: KernelSection | None = None
    learning: Learning = Learning()
    expansion: Expansion | None = None


@dataclass(frozen=True, eq=False)
class FrozenScales(Scales):
    """The scales and the tables of a frozen model."""

    vectors: np.ndarray  # (N, DIM); for linear kernels, the slopes of the functions, (FUNCTIONS, DIM)
    weights: np.ndarray  # (N, WEIGHTS)
    weight_shift: int
    bias: np.ndarray


class Int16FrozenModels(FrozenErrors, FrozenModels):
    """Integer models of expansions that were trained elsewhere."""

    programs: Mapping[LabelKind, Program] = INT16_FROZEN
    spec: type[Any] = Int16FrozenSpec
    planned: tuple[tuple[str, str | None], ...] = (("frozen", "trained"), ("frozen", "network"), ("frozen", "linear"))

    def validate(self, spec: Any, refuse: Refuse) -> None:
        if spec.expansion is None:
            refuse("[expansion]", "is missing; a frozen model must have vectors, weights and bias")
        if spec.label.max_abs != Label.model_fields["max_abs"].default:
            refuse("[label] max_abs", "changes nothing, because the model learns no label; leave max_abs out")
        if spec.expansion.decision == "ovo_vote":
            refuse(
                "[expansion] decision",
                'is "ovo_vote", whose predictions are not integers; use "ovo", whose NAME_classify gives the same classes',
            )
        self._complain_of_machine(spec, refuse)

    def _complain_of_machine(self, spec: Any, refuse: Refuse) -> None:
        complain_of_kernel(spec, refuse)
        complain_of_inputs(spec, refuse)
        self._complain_of_tables(spec, refuse)
        self._complain_of_decision(spec, refuse)
        if spec.scales_found is None:
            far = np.sqrt(np.sum((limits(spec) * np.abs(factors(spec))) ** 2))
            if spec.kernel.function in PRODUCTS:
                refuse(
                    "[input] max_abs",
                    f"allows inputs at a distance of {far:.3g} from the center, whose products with the vectors overflow 32 bits; reduce max_abs, the "
                    "vectors or the offsets",
                )
            refuse(
                "[input] max_abs",
                f"allows inputs at a distance of {far:.3g} from the center, which is too far for 16 bits with a kernel of width "
                f"{spec.length_scale:.3g}; lower max_abs, or make the kernel wider",
            )

    def scales(self, spec: Any) -> FrozenScales | None:
        if spec.kernel.function == "linear":
            return self._linear(spec)
        vectors, function = np.array(spec.expansion.vectors, float), spec.kernel.function
        for octave in OCTAVES[function]:
            unit, own = units_of(spec, octave)
            if own * np.abs(vectors).max() > COUNTS:
                continue
            made = conversion(spec, unit)
            whole, reach = np.rint(own * vectors).astype(np.int64), made.reach
            # an upper bound on the product of a vector and any input that the memory can hold
            product = float(reach.max()) * np.abs(whole).sum(1).max() + np.abs(added(spec, octave)).max()
            if (
                reach.max() <= COUNTS
                and (function in PRODUCTS or farthest(function, octave, reach + np.abs(whole)) < 2**32)
                and product <= LARGEST
                and (np.abs(made.factor) <= COUNTS).all()
            ):
                return self._weighted(spec, made, octave, whole)
        return None

    def _weighted(self, spec: Any, made: Conversion, octave: int, vectors: np.ndarray) -> FrozenScales:
        weights, bias = (
            np.array(spec.expansion.weights, float),
            np.array(spec.expansion.bias, float) - spec.label_offset,
        )
        exponent = math.floor(math.log2(COUNTS / max(np.abs(weights).max() * 2**16 / ONE, 2.0**-100)))
        # a kernel value is a 16-bit number, divided by 2^power and by a further power of two, which is at least 2^least
        largest, power, least = np.ones((len(weights), 1)), 0, 0
        if spec.kernel.function in PRODUCTS and spec.kernel.function not in BENT:
            reached, degree = products(spec, made, octave, vectors), degree_of(spec)
            largest = (reached[:, None] / 2.0**octave) ** degree
            power = degree * (octave - 32)
            least = degree * (31 - math.floor(math.log2(max(1, reached.max()))))
        # the largest value of a function; the unit of predictions is chosen so that the largest prediction stays below 2^31
        most = float((spread(spec, np.abs(weights) * largest).sum(0) + np.abs(bias)).max())
        label_shift = exponent + 16 + power + least
        if most > 0:
            label_shift = min(
                label_shift, math.floor(math.log2((LARGEST - 2 * len(weights)) / (most * (1 + 2.0**-12))))
            )
        if spec.program.learns:
            label_shift = min(label_shift, math.floor(math.log2(LARGEST / spec.label_max_abs)))
        shift = exponent + 16 + power - label_shift
        if shift + least > FALL_ROOM:
            exponent, shift = exponent - (shift + least - FALL_ROOM), FALL_ROOM - least
        whole = np.rint(weights * 2.0**exponent * (2**16 / ONE if power == 0 else 1)).astype(np.int64)
        # each term is rounded down, which loses half a unit on average; the bias adds this loss back
        whole_bias = np.rint(bias * 2.0**label_shift + spread(spec, np.ones_like(weights)).sum(0) / 2)
        return FrozenScales(made, octave, label_shift, vectors, whole, shift, whole_bias.astype(np.int64))

    def _linear(self, spec: Any) -> FrozenScales:
        slopes = weights_of_functions(spec).T @ np.array(spec.expansion.vectors, float)
        bias, none = np.array(spec.expansion.bias, float), np.zeros((1, 1), np.int64)
        # log2 of the factors by which inputs and slopes must be multiplied to fill 16 bits
        full = math.log2(COUNTS / float((limits(spec) * np.abs(factors(spec))).max()))
        full_slopes = math.log2(COUNTS / max(np.abs(slopes).max(), 2.0**-100))
        unit, fine = math.floor(full), math.floor(full_slopes)
        while True:
            made = conversion(spec, 2.0**unit)
            whole = np.rint(slopes * 2.0**fine).astype(np.int64)
            label_shift = unit + fine
            whole_bias = np.rint(bias * 2.0**label_shift)
            largest = made.reach.max() * np.abs(whole).sum(1) + np.abs(whole_bias)
            if largest.max() <= LARGEST and made.reach.max() <= COUNTS:
                return FrozenScales(made, unit, label_shift, whole, none, 0, whole_bias.astype(np.int64))
            # use a coarser unit for the inputs or for the slopes, whichever are closer to filling 16 bits
            if unit - full > fine - full_slopes:
                unit -= 1
            else:
                fine -= 1

    def capacities(self, spec: Any) -> dict[str, int]:
        found = super().capacities(spec)
        kept = {name: found[name] for name in ("DIM", "N_MAX", "OUTPUTS", "CLASSES", "FUNCTIONS", "WEIGHTS")}
        return kept | spec.conversion.sizes

    def unit(self, spec: Any, question: str) -> float:
        return {"probability": 1 / CERTAIN, "predict": 2.0**-spec.label_shift}.get(question, 1.0)

    def parameters(self, spec: Any) -> dict[str, Any]:
        expansion, functions, scales = spec.expansion, self._functions(spec), spec.scales
        hidden = spec.kernel.function in kernel_settings.HIDDEN
        linear, count, one = spec.kernel.function == "linear", len(spec.expansion.vectors), 2.0**spec.label_shift
        return {
            **kernel_parameters(spec, scales.octave),
            "narrow": bool(scales.conversion.reach.max() + np.abs(scales.vectors).max() <= COUNTS),
            "decision": DECISIONS[expansion.decision],
            "single": functions == 1,
            "breaks_ties": expansion.break_ties,
            "calibrated": expansion.calibration is not None,
            "clamps": spec.label.low is not None or spec.label.high is not None,
            **scales.conversion.parameters(),
            "products": expansion.distance == "products",
            "vectors": np.zeros((count, spec.dim)) if linear else scales.vectors,
            "eight": hidden and bool(np.abs(scales.vectors).max() <= EIGHT),
            "eights": np.clip(scales.vectors, -EIGHT, EIGHT) if hidden else np.zeros((count, spec.dim)),
            "norms": np.zeros(count) if linear else (scales.vectors**2).sum(1),
            "shifts": added(spec, scales.octave),
            "weights": np.zeros((count, self._weights(spec))) if linear else scales.weights,
            "factors": scales.vectors if linear else np.zeros((functions, spec.dim)),
            "bias": scales.bias,
            "support_class": expansion.support_class or np.zeros(count, int),
            "weight_shift": scales.weight_shift,
            "low": counted(spec.label.low, one, -LARGEST),
            "high": counted(spec.label.high, one, LARGEST),
        } | _calibration(expansion.calibration, functions, one)


def _calibration(calibration: Any, functions: int, one: float) -> dict[str, Any]:
    """Return the parameters of the kernel ``calibrate``.

    The kernel converts the value of a function to log2 of the odds.  The value is in units of 1 / one, and the result in units
    of 2^-16.
    """
    pairs = -np.array(calibration if calibration is not None else np.zeros((functions, 2)), float)
    slopes, offsets = (pairs * math.log2(math.e) * 2.0**16).T
    slopes, offsets = slopes / one, np.clip(np.rint(offsets), -(2.0**28), 2.0**28)
    # if the odds for or against a class are above 2^17 to 1, the probability is rounded to 1 or 0
    with np.errstate(divide="ignore"):
        limits = np.clip((np.abs(offsets) + 17 * 2.0**16) / np.abs(slopes), 1, LARGEST)
    coarse = np.maximum(np.ceil(np.log2(limits + 1)) - 15, 0)
    steep = np.maximum(np.abs(slopes) * 2.0**coarse, 2.0**-16)
    shift = np.clip(np.floor(np.log2(COUNTS / steep)), 0, 31)
    whole = np.clip(np.rint(slopes * 2.0**coarse * 2.0**shift), -COUNTS, COUNTS)
    return {
        "limits": np.floor(limits),
        "coarse": coarse,
        "steepness": whole,
        "steepness_shift": shift,
        "offset": offsets,
    }


INT16_FROZEN_MODELS: Int16Family = Int16FrozenModels()
