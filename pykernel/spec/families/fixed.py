"""Models in whole numbers (precision int16): how inputs, weights and kernel values are scaled, so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator

from pykernel.algorithms.int16.frozen import CERTAIN, FIXED_FROZEN
from pykernel.algorithms.int16.kernels import FALL, NATURAL, ONE, POWERS, ROOTS, STEPS, THIRD, FixedFunction
from pykernel.dialect import Index
from pykernel.dialect.program import NO_COUNT, NOTHING, LabelKind, Program
from pykernel.spec import kernel_settings, signal_whole
from pykernel.spec.base import Spec
from pykernel.spec.families.frozen import DECISIONS, Expansion, FrozenModels
from pykernel.spec.family import Family, Refuse
from pykernel.spec.sections import KernelSection, Learning, Numbers, ScaledInput, shown_value

COUNTS = 32767
"""Largest magnitude of a count.  -32768 means "not a number"."""
ROUNDED = 0.5 + 4 * 2.0**-9
"""Largest rounding error of ``NAME_counts``, in counts: half a count, and the error of four float32 operations on a
number of 15 bits."""
LARGEST = 2**31 - 1
FUNCTIONS = {
    "gaussian": FixedFunction.GAUSSIAN,
    "laplacian": FixedFunction.LAPLACIAN,
    "matern12": FixedFunction.MATERN12,
    "matern32": FixedFunction.MATERN32,
    "matern52": FixedFunction.MATERN52,
    "polynomial": FixedFunction.POLYNOMIAL,
    "linear": FixedFunction.LINEAR,
}
MOST_NORMS = 3000
"""Most vectors for which the error bound uses a Gram matrix."""
OCTAVES = range(31, 15, -1)
"""Powers of two by which a squared distance may be divided: the larger, the finer."""
ABSOLUTE_OCTAVES = range(31, 3, -1)
"""Powers of two by which an absolute distance may be divided; these distances are small numbers."""
PRODUCT_OCTAVES = range(40, -30, -1)
"""Powers of two by which a product of inputs may be divided."""
ROOT_OCTAVES = range(16, 3, -1)
"""Powers of two by which the root of a squared distance may be divided; a root has 16 bits."""
FALL_ROOM = 15
"""Most bits by which the product of a weight is shifted, in addition to its octaves: 16 octaves remain."""


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
            if value is not None and not (isinstance(value, (int, float)) and 1e-20 <= value <= 1e20):
                raise ValueError(
                    f"holds {shown_value(value)}; a number from 1e-20 to 1e20 must be given for each input, or one for all"
                )
        return given


@dataclass(frozen=True, eq=False)
class Conversion:
    """From counts to the kernel's unit: z = ((x - center) factor + rounding) / 2^shift, rounded down."""

    center: np.ndarray
    most: np.ndarray
    factor: np.ndarray
    rounding: np.ndarray
    shift: np.ndarray

    def error(self, spec: Spec, unit: float, rounded: float | np.ndarray = 0.0) -> np.ndarray:
        """The largest error of each converted input, in the kernel's unit, (DIM,).

        rounded: the largest rounding error of the count itself, in counts, one number or (DIM,).
        """
        resolution, (_, scale) = resolutions(spec), spec.scaling
        each = unit * resolution * (np.ones(spec.dim) if scale is None else np.array(scale, float))
        rounding = 2.0**-self.shift
        offset = (self.center * resolution - centers(spec)) * each / resolution
        lost = np.abs(self.rounding * rounding - 0.5 - offset)
        return np.asarray(
            0.5 + rounding + lost + self.most * np.abs(self.factor * rounding - each) + rounded * np.abs(each)
        )

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
    """The value of one count of each input, in the input's unit, (DIM,)."""
    given = getattr(spec.input, "resolution", None)
    if given is not None:
        return np.array(np.broadcast_to(np.array(given, float), spec.dim))
    return 2.0 ** np.ceil(np.log2((limits(spec) + np.abs(centers(spec))) / COUNTS))


def conversion(spec: Spec, unit: float) -> Conversion:
    """The conversion of counts to the kernel's unit.  unit: how many of the kernel's units a scaled input of 1 is."""
    resolution, center, most = resolutions(spec), centers(spec), limits(spec)
    _, scale = spec.scaling
    each = unit * resolution * (np.ones(spec.dim) if scale is None else np.array(scale, float))
    counts = np.rint(center / resolution)
    reach = np.minimum(np.floor(most / resolution * (1 + 1e-9)), COUNTS - np.abs(counts))
    shift = np.clip(np.floor(np.log2(COUNTS / np.abs(each))), 0, 30)
    lost = (counts - center / resolution) * each
    whole = [counts, reach, np.rint(each * 2**shift), np.rint((0.5 + lost) * 2**shift), shift]
    # no model accepts factors beyond 2^40; the clipping keeps the computations here from overflowing
    return Conversion(*(np.clip(values, -(2.0**40), 2.0**40).astype(np.int64) for values in whole))


def counted(bound: float | None, one: float, otherwise: int) -> int:
    """A bound of predictions in units of 1 / one, within 32 bits."""
    return otherwise if bound is None else int(np.clip(np.rint(bound * one), -LARGEST, LARGEST))


def learning_rate(eta: float) -> tuple[int, int]:
    """(factor, power): the rate is factor 2^-16 / 2^power, with the largest power for which the factor is at most
    2^16.
    """
    doublings = math.floor(math.log2(1 / eta))
    return min(65535, round(eta * 2**doublings * 65536)), doublings


def complain_of_rate(where: str, eta: float, refuse: Refuse) -> None:
    """Refuse learning rates that would be rounded to 0."""
    if eta < 1 / 65536:
        refuse(where, f"is {eta:g}; it must be at least {1 / 65536:.2g}, for int16 has 65536 steps of it")


def complain_of_ranges(spec: Any, refuse: Refuse) -> None:
    """Refuse inputs without a range, or with one for another number of inputs."""
    if spec.input.max_abs is None:
        refuse(
            "[input] max_abs",
            "is missing; whole numbers need the range of each input: write the largest |x - center| that the sensor gives, one "
            "number or a list",
        )
    for key in ("max_abs", "resolution"):
        given = getattr(spec.input, key)
        if isinstance(given, tuple) and len(given) != spec.dim:
            refuse(f"[input] {key}", f"holds {len(given)} numbers; it must hold {spec.dim}, one for each input")


def complain_of_kernel(spec: Any, refuse: Refuse) -> None:
    """Refuse kernels that whole numbers do not compute."""
    if spec.kernel is None:
        refuse("[kernel]", f'is missing; {spec.learning.rule} needs one, such as function = "gaussian" with sigma')
    if spec.kernel.function not in FUNCTIONS:
        *others, last = FUNCTIONS
        refuse(
            "[kernel] function",
            f"is {spec.kernel.function}, which int16 does not compute; it must be {', '.join(others)} or {last}, or the "
            "precision float32",
        )
    if spec.kernel.normalise:
        refuse("[kernel] normalise", "is of reals: int16 does not divide; leave it out, or choose precision float32")
    kernel_settings.validate_function(spec, refuse)


def complain_of_counts(spec: Spec, refuse: Refuse) -> None:
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


class WholeSpec(Spec):
    """A model of whole numbers."""

    precision: Literal["int16"] = Field("int16", description="whole numbers only, on both sides")  # type: ignore[assignment]
    input: WholeInput

    @property
    def conversion(self) -> Conversion:
        """How counts are converted."""
        raise NotImplementedError

    @property
    def label_shift(self) -> int:
        """Labels and answers are in units of 2 to minus this power."""
        raise NotImplementedError

    def accepted(self, x: np.ndarray) -> np.ndarray:
        counts = self.raw_inputs(x).astype(np.int64).reshape(np.shape(x))
        if self.signal is not None:
            return np.asarray(np.abs(counts) <= signal_whole.channels_of(self.signal).most)
        made = self.conversion
        return np.asarray(np.abs(counts - made.center) <= made.most)

    def limit_told(self, j: int) -> str:
        return f"{limits(self)[j]:g} from the center, {centers(self)[j]:g}"

    def raw_inputs(self, x: Any) -> np.ndarray:
        """Inputs as counts.  A number that does not fit into 16 bits, or NaN, becomes -32768, which every model
        refuses.

        Computed in float32, as in ``NAME_counts`` in C.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            x = np.array(x, np.float32, order="C", ndmin=2)
            counts = np.floor(x * self.counts_per_unit + np.float32(0.5))
            return np.where(np.abs(counts) <= COUNTS, counts, -32768).astype(np.int16)

    def raw_labels(self, y: Any) -> np.ndarray:
        """Labels in units of 2^-label_shift.

        A label that does not fit into 32 bits, or NaN, becomes -2^31, which every model refuses.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            counts = np.rint(np.array(y, float, order="C") * 2.0**self.label_shift)
            return np.where(np.abs(counts) <= LARGEST, counts, NOTHING).astype(np.int32)

    def as_seen(self, x: np.ndarray) -> np.ndarray:
        counts = self.raw_inputs(x)
        return np.where(counts == -32768, np.nan, counts * self.resolutions)

    def in_units(self, question: str, answers: np.ndarray) -> np.ndarray:
        if question == "signal":
            return np.where(answers == NO_COUNT, np.nan, answers * resolutions(self))
        asked = self.program.written(question)
        if asked.scalar is Index:
            return answers
        return np.where(answers == NOTHING, np.nan, answers * self.answer_unit(question))

    def answer_unit(self, question: str) -> float:
        """The value of 1 in a question's answer, in the label's unit.

        With a signal stage: in the answer of its reading.
        """
        return float(self.family.unit(self, self.program.answering[question]))  # type: ignore[attr-defined]

    def counts_told(self) -> list[str]:
        """One line for each input: the value of a count, and the accepted counts; a single line if all inputs are
        alike.
        """
        if self.signal is not None:
            return signal_whole.raw_counts_told(self.signal, self.signal.channels)
        made = self.conversion
        names = self.input.columns or [f"x[{j}]" for j in range(self.dim)]
        rows = [
            f"1 count is {resolution:.6g}; from {center - most} to {center + most}"
            for resolution, center, most in zip(resolutions(self), made.center, made.most, strict=True)
        ]
        if len(set(rows)) == 1:
            return [f"each input: {rows[0]}"]
        return [f"{name}: {row}" for name, row in zip(names, rows, strict=True)]

    @property
    def counts_per_unit(self) -> np.ndarray:
        """For each number of a sample: how many counts are 1 in its unit, (DIM,) or (CHANNELS,)."""
        return (1 / self.resolutions).astype(np.float32)

    @property
    def resolutions(self) -> np.ndarray:
        """For each number of a sample: the value of one count, (DIM,) or (CHANNELS,)."""
        return resolutions(self) if self.signal is None else signal_whole.channels_of(self.signal).resolution

    def signal_values(self, awaits: bool) -> dict[str, Any]:
        assert self.signal is not None
        made, one = self.conversion, 2.0**self.label_shift
        reach = made.center - made.most, made.center + made.most
        return signal_whole.parameters(self.signal, self.label.column, awaits, one, resolutions(self).tolist(), reach)

    def signal_inputs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        assert self.signal is not None
        return signal_whole.inputs_of(self.signal, given)

    @property
    def feature_units(self) -> tuple[np.ndarray, np.ndarray]:
        assert self.signal is not None
        return signal_whole.measure_units(self.signal), resolutions(self)


class FixedFrozenSpec(WholeSpec):
    kernel: KernelSection | None = None
    learning: Learning = Learning()
    expansion: Expansion | None = None

    @property
    def family(self) -> Family:
        return FIXED_FROZEN_MODELS

    @cached_property
    def scales(self) -> Scales | None:
        """How the model's numbers are scaled; None if 16 bits do not hold them."""
        return FIXED_FROZEN_MODELS.scales(self)  # type: ignore[attr-defined, no-any-return]

    @property
    def conversion(self) -> Conversion:
        assert self.scales is not None
        return self.scales.conversion

    @property
    def label_shift(self) -> int:
        assert self.scales is not None
        return self.scales.label_shift


@dataclass(frozen=True, eq=False)
class Scales:
    """The scales that are chosen for one model."""

    conversion: Conversion
    octave: int  # linear: a converted input of 1 is this power of 2
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
        complain_of_kernel(spec, refuse)
        complain_of_ranges(spec, refuse)
        kernel_settings.validate_scaling(spec, refuse)
        self._complain_of_tables(spec, refuse)
        self._complain_of_decision(spec, refuse)
        if spec.expansion.decision == "ovo_vote":
            refuse(
                "[expansion] decision",
                'is "ovo_vote", whose predictions int16 does not compute, for they are no whole numbers; "ovo" has the same '
                "NAME_classify",
            )
        complain_of_counts(spec, refuse)
        self._complain_of_scales(spec, refuse)

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
        vectors, function = np.array(spec.expansion.vectors, float), spec.kernel.function
        for octave in octaves_of(function):
            unit = unit_of(spec, octave)
            if unit * np.abs(vectors).max() > COUNTS:
                continue
            made = conversion(spec, unit)
            whole, reach = np.rint(unit * vectors).astype(np.int64), made.reach
            # the largest product of an input that the memory can hold and a vector
            product = float(reach.max()) * np.abs(whole).sum(1).max() + abs(kernel_parameters(spec, octave)["coef0"])
            if (
                reach.max() <= COUNTS
                and (function == "polynomial" or farthest(function, octave, reach + np.abs(whole)) < 2**32)
                and product <= LARGEST
                and (np.abs(made.factor) <= COUNTS).all()
            ):
                return self._weighted(spec, made, octave, whole)
        return None

    def _weighted(self, spec: Any, made: Conversion, octave: int, vectors: np.ndarray) -> Scales:
        expansion = spec.expansion
        weights, bias = np.array(expansion.weights, float), np.array(expansion.bias, float)
        exponent = math.floor(math.log2(COUNTS / max(np.abs(weights).max() * 2**16 / ONE, 2.0**-100)))
        # a kernel value is a 16-bit number, divided by 2^power and by a further power of two, at least 2^least
        largest, power, least = np.ones((len(weights), 1)), 0, 0
        if spec.kernel.function == "polynomial":
            reached = np.abs(vectors) @ made.reach + abs(kernel_parameters(spec, octave)["coef0"])
            largest = (reached[:, None] / 2.0**octave) ** spec.kernel.degree
            power = spec.kernel.degree * (octave - 32)
            least = spec.kernel.degree * (31 - math.floor(math.log2(max(1, reached.max()))))
        # the largest value of a function; the answer's unit is chosen so that it stays below 2^31
        most = float((self._sums(spec, np.abs(weights) * largest) + np.abs(bias)).max())
        label_shift = exponent + 16 + power + least
        if most > 0:
            label_shift = min(
                label_shift, math.floor(math.log2((LARGEST - 2 * len(weights)) / (most * (1 + 2.0**-12))))
            )
        shift = exponent + 16 + power - label_shift
        if shift + least > FALL_ROOM:
            exponent, shift = exponent - (shift + least - FALL_ROOM), FALL_ROOM - least
        whole = np.rint(weights * 2.0**exponent * (2**16 / ONE if power == 0 else 1)).astype(np.int64)
        # each term is rounded down, which is half a unit on average
        counted = np.rint(bias * 2.0**label_shift + self._sums(spec, np.ones_like(weights)) / 2)
        return Scales(made, octave, vectors, whole, shift, label_shift, counted.astype(np.int64))

    def _sums(self, spec: Any, weights: np.ndarray) -> np.ndarray:
        """The sum of all vectors' weights in each function, (FUNCTIONS,)."""
        expansion = spec.expansion
        if expansion.decision == "functions":
            return np.asarray(weights.sum(0))
        return np.asarray(self._spread(spec, weights).sum(0))

    def _spread(self, spec: Any, weights: np.ndarray) -> np.ndarray:
        """The weight of each vector in each function, (N, FUNCTIONS); with pairs of classes, 0 in functions of other
        classes.
        """
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
                return Scales(made, unit, whole, np.zeros((1, 1), np.int64), 0, label_shift, counted.astype(np.int64))
            # take a coarser unit
            if unit - math.log2(COUNTS / far) > fine - math.log2(COUNTS / max(np.abs(factors).max(), 2.0**-100)):
                unit -= 1
            else:
                fine -= 1

    # ---- error bounds

    def functions(self, spec: Any, x: np.ndarray) -> np.ndarray:
        """The functions in float64 at the rows of x, (samples, FUNCTIONS): the integers approximate these values."""
        expansion, (_, scale) = spec.expansion, spec.scaling
        z = (x - centers(spec)) * (1.0 if scale is None else np.array(scale, float))
        vectors = np.array(expansion.vectors, float)
        return np.asarray(
            _real_values(spec, z, vectors) @ self._spread(spec, np.array(expansion.weights, float))
            + np.array(expansion.bias)
        )

    def whole_functions(self, spec: Any, x: np.ndarray) -> np.ndarray:
        """The functions of a Gaussian expansion, computed in integers at the rows of x, (samples, FUNCTIONS).

        The results are the device's bits in the answer's unit; NaN for inputs beyond their limits.  Nothing is
        compiled: O(samples N (DIM + FUNCTIONS)).
        """
        assert spec.kernel.function == "gaussian" and spec.expansion.decision == "functions"
        scales, made = spec.scales, spec.scales.conversion
        counts = spec.raw_inputs(x).astype(np.int64) - made.center
        z = ((counts * made.factor + made.rounding) >> made.shift).astype(np.float64)
        v = scales.vectors.astype(np.float64)
        # integers below 2^53 are exact in float64, whatever the order of the sum
        square = (z * z).sum(1)[:, None] + (v * v).sum(1) - 2 * z @ v.T
        octaves = square.astype(np.int64) >> max(0, scales.octave - 16)
        values, places = powers(octaves), np.minimum((octaves >> 16) + scales.weight_shift, 32)
        total = np.tile(scales.bias, (len(z), 1))
        for value, place, weights in zip(values.T[:, :, None], places.T[:, :, None], scales.weights, strict=True):
            total += np.where(place < 32, (value * weights) >> place, 0)
        return np.where((np.abs(counts) <= made.most).all(1)[:, None], total * 2.0**-scales.label_shift, np.nan)

    def answers(self, spec: Any, x: np.ndarray) -> np.ndarray:
        """The values that ``predict`` approximates, (samples, FUNCTIONS): the functions, clipped to the label's low and
        high.
        """
        low, high = spec.label.low, spec.label.high
        return np.asarray(
            np.clip(self.functions(spec, x), -np.inf if low is None else low, np.inf if high is None else high)
        )

    def error_bound(self, spec: Any, rounded: float | np.ndarray = 0.0) -> np.ndarray:
        """The largest error of each function, for all inputs within their limits, (FUNCTIONS,).

        rounded: the largest rounding error of an input's count, in counts, one number or (DIM,); ``ROUNDED`` if the
        counts are made from floats.
        docs/whole-numbers.md derives the bound.
        """
        scales, expansion = spec.scales, spec.expansion
        made, one = scales.conversion, 2.0**scales.label_shift
        weights = self._spread(spec, np.array(expansion.weights, float))
        if spec.kernel.function == "linear":
            unit = 2.0**scales.octave
            real = weights.T @ np.array(expansion.vectors, float) * one / unit
            lost = np.abs(scales.vectors - real) @ made.reach + np.abs(real) @ made.error(spec, unit, rounded)
            return np.asarray((lost + 0.5) / one)
        unit, function = unit_of(spec, scales.octave), spec.kernel.function
        vectors, near = np.array(expansion.vectors, float), made.error(spec, unit, rounded)
        apart = near + np.abs(scales.vectors - vectors * unit)
        counted = (self._spread(spec, np.ones_like(scales.weights)).sum(0) / 2 + 1) / one
        if function == "polynomial":
            power = 2.0 ** (spec.kernel.degree * (scales.octave - 32))
            whole = self._spread(spec, scales.weights * (2.0**16 * power / one) * 2.0**-scales.weight_shift)
            return np.asarray(counted + self._power_bound(spec, near, apart, whole, weights))
        whole = self._spread(spec, scales.weights * (ONE / one) * 2.0**-scales.weight_shift)
        # 1. kernel values, and terms that are rounded to one of the answer's units
        small = value_error(function) + 2.0 ** (scales.weight_shift - 31)
        found = small * np.abs(whole).sum(0) + counted
        # 2. errors of inputs, vectors and weights: for each vector alone, with its largest errors
        values = _moved_by(function, apart, scales.octave)
        each = values @ np.abs(whole) + np.abs(whole - weights).sum(0)
        if len(vectors) > MOST_NORMS:
            return np.asarray(found + each)
        # ... or by norms: a function f of a reproducing kernel is at most its norm, and differs between two points by at
        # most its norm times the distance of their kernels
        both = np.concatenate([vectors, scales.vectors / unit])
        gram = _real_values(spec, both, both)
        made_of = np.concatenate([-weights, whole])
        slack = 1e-15 * len(both) * np.abs(made_of).sum(0) ** 2
        change = np.sqrt(np.maximum(np.einsum("if,ij,jf->f", made_of, gram, made_of, optimize=True), 0) + slack)
        own = gram[len(vectors) :, len(vectors) :]
        norm = np.sqrt(np.maximum(np.einsum("if,ij,jf->f", whole, own, whole, optimize=True), 0) + slack)
        moved = math.sqrt(max(0.0, 2 - 2 * float(_real_values(spec, near[None] / unit, np.zeros((1, spec.dim)))[0, 0])))
        return np.asarray(found + np.minimum(each, change + norm * moved))

    def _power_bound(
        self, spec: Any, near: np.ndarray, apart: np.ndarray, whole: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """The part of ``error_bound`` for a polynomial kernel, without the rounding of the terms, (FUNCTIONS,)."""
        kernel, scales = spec.kernel, spec.scales
        reach = scales.conversion.reach
        offset = kernel_parameters(spec, scales.octave)["coef0"]
        # the largest a'b + offset in integers, and its largest error
        most = np.abs(scales.vectors) @ reach + abs(offset)
        wrong = np.abs(scales.vectors) @ near + (apart - near) @ (reach + near)
        wrong += abs(offset - kernel.coef0 * 2.0**scales.octave)
        largest = (most / 2.0**scales.octave) ** kernel.degree
        moved = ((most + wrong) / 2.0**scales.octave) ** kernel.degree - largest
        cut = (1 + 2.0**-15) ** (kernel.degree + 1) - 1
        return np.asarray((moved + cut * largest) @ np.abs(whole) + (largest + moved) @ np.abs(whole - weights))

    def measured_error(self, spec: Any, found: Callable[[np.ndarray], np.ndarray], rows: int = 2000) -> np.ndarray:
        """The largest difference between the answers in integers (``found``) and the real answers, (FUNCTIONS,).

        rows: number of random inputs; half of them are near vectors.
        """
        rng, made = np.random.default_rng(0), spec.scales.conversion
        vectors = spec.unscaled(np.array(spec.expansion.vectors, float))
        x = centers(spec) + limits(spec) * rng.uniform(-1, 1, (rows, spec.dim))
        some = vectors[rng.integers(0, len(vectors), rows // 2)] if spec.kernel.function != "linear" else x[: rows // 2]
        x[: rows // 2] = some + 0.1 * limits(spec) * rng.uniform(-1, 1, some.shape)
        x = spec.as_seen(
            np.clip(x, centers(spec) - made.most * resolutions(spec), centers(spec) + made.most * resolutions(spec))
        )
        x = x[spec.accepts(x)]
        return np.asarray(np.abs(found(x) - self.answers(spec, x)).max(0, initial=0.0))

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

        return {
            **kernel_parameters(spec, scales.octave),
            "decision": DECISIONS[expansion.decision],
            "single": functions == 1,
            "breaks_ties": expansion.break_ties,
            "calibrated": expansion.calibration is not None,
            "clamps": spec.label.low is not None or spec.label.high is not None,
            **made.parameters(),
            "products": expansion.distance == "products",
            "vectors": np.zeros((count, dim)) if linear else scales.vectors,
            "norms": np.zeros(count) if linear else (scales.vectors**2).sum(1),
            "weights": np.zeros((count, capacities["WEIGHTS"])) if linear else scales.weights,
            "factors": scales.vectors if linear else np.zeros((functions, dim)),
            "bias": scales.bias,
            "support_class": expansion.support_class or np.zeros(count, int),
            "weight_shift": scales.weight_shift,
            "low": counted(spec.label.low, one, -LARGEST),
            "high": counted(spec.label.high, one, LARGEST),
        } | _calibration(expansion.calibration, functions, one)


def octaves_of(function: str) -> range:
    """Powers of two by which a distance of a kernel may be divided, the finest first."""
    if function == "gaussian":
        return OCTAVES
    if function == "polynomial":
        return PRODUCT_OCTAVES
    return ROOT_OCTAVES if function in kernel_settings.MATERN else ABSOLUTE_OCTAVES


def unit_of(spec: Any, octave: int) -> float:
    """How many of the kernel's units a scaled input of 1 is, if a distance of 2^octave halves the kernel's values.

    For a polynomial kernel: if a product of 2^octave stands for 1.
    """
    if spec.kernel.function == "polynomial":
        return math.sqrt(spec.kernel.gamma * 2.0**octave)
    distance = kernel_settings.rate(spec) * 2.0**octave
    return math.sqrt(distance) if spec.kernel.function == "gaussian" else distance


def farthest(function: str, octave: int, differences: np.ndarray) -> float:
    """The largest distance for differences of inputs, (..., DIM), in the unit of the kernel ``distance``."""
    if function == "laplacian":
        return float(differences.sum(-1).max()) * 2.0 ** max(0, 16 - octave)
    return float((differences**2).sum(-1).max())


def kernel_parameters(spec: Any, octave: int) -> dict[str, Any]:
    """Values of FixedKernelConfig's fields."""
    function = spec.kernel.function
    rooted, radial = function in kernel_settings.MATERN, function in kernel_settings.UNIT
    return {
        "function": FUNCTIONS[function],
        "rooted": rooted,
        "rises": function in ("matern32", "matern52"),
        "fine": max(0, octave - 16) if radial and not rooted else 0,
        "stretch": 2 ** max(0, 16 - octave) if function == "laplacian" else 1,
        "lift": 16 - octave if rooted else 0,
        "coef0": round(spec.kernel.coef0 * 2.0**octave) if function == "polynomial" else 0,
        "degree": spec.kernel.degree if function == "polynomial" else 1,
        "odd": spec.kernel.degree % 2 == 1,
    }


def _real_values(spec: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Kernel values in float64 between rows of a and of b, (a, b)."""
    kernel, rate = spec.kernel, kernel_settings.rate(spec)
    if kernel.function in ("linear", "polynomial"):
        products = a @ b.T
        return np.asarray(
            products if kernel.function == "linear" else (kernel.gamma * products + kernel.coef0) ** kernel.degree
        )
    if kernel.function == "laplacian":
        return np.asarray(2.0 ** -(rate * np.stack([np.abs(row - b).sum(1) for row in a])))
    squares = np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0)
    if kernel.function == "gaussian":
        return np.asarray(2.0 ** -(rate * squares))
    return np.asarray(faded(kernel.function, kernel.gamma * np.sqrt(squares)))


def faded(function: str, r: Any) -> Any:
    """A Matern kernel's value at r."""
    factor = {"matern12": 1.0, "matern32": 1 + r, "matern52": 1 + r + r * r / 3}[function]
    return factor * np.exp(-r)


def _moved_by(function: str, apart: np.ndarray, octave: int) -> np.ndarray:
    """For each vector: the largest error of its kernel values, for any input, (N,).

    apart: the largest errors of the differences between an input and a vector, (N, DIM).
    """
    if function == "laplacian":
        return np.asarray(2.0 ** (apart.sum(1) / 2.0**octave) - 1)
    far = np.sqrt((apart**2).sum(1))
    if function != "gaussian":
        return np.asarray(far * (math.log(2) * _slopes(function)[0] / 2.0**octave))
    # at a distance of u octaves, the error of the squared distance is 2 apart sqrt(u) + apart^2
    far = far[:, None] / 2.0 ** (octave / 2)
    octaves = np.linspace(0, 40, 2561)
    wrong = 2 * far * np.sqrt(octaves[1:]) + far**2
    return np.asarray((2.0 ** -octaves[:-1] * (2.0**wrong - 1)).max(1))


def _slopes(function: str) -> tuple[float, float]:
    """The largest |k'(r)| and |r k'(r)| of a Matern kernel."""
    r = np.linspace(0, 20, 20001)
    slope = {"matern12": np.ones_like(r), "matern32": r, "matern52": (r + r * r) / 3}[function] * np.exp(-r)
    return float(slope.max()), float((r * slope).max())


def powers(u: np.ndarray) -> np.ndarray:
    """The kernel ``power`` for an array of numbers."""
    first = np.array(POWERS.by_precision["int16"])[(u >> 10) & (STEPS - 1)]
    return np.asarray(first - (((first * (u & 1023)) >> 10) * FALL >> 16))


def _power_error() -> float:
    """The largest error of the kernel ``power``, for any number."""
    u = np.arange(65536)
    # bits of the argument that the kernel ignores may be all zeros or all ones
    return float(max(np.abs(powers(u) / ONE - 2.0 ** -((u + end) / 65536)).max() for end in (0, 1)))


POWER_ERROR = _power_error()


@cache
def root_error() -> float:
    """The largest relative error of the kernel ``root``, for any number, without the bits that its shift cuts off."""
    table, part = np.array(ROOTS.by_precision["int16"]), np.arange(0, 32769, 64)
    first, last = table[:-1, None], table[1:, None]
    exact = 32768 * np.sqrt(1 + (np.arange(96)[:, None] + part / 32768) / 32)
    line = first + (last - first) * part / 32768
    # between two of these points the error changes by less than 1e-9; the ignored bits are 1 / 32768 of a step
    return float(max(np.abs((line - cut) / exact - 1).max() for cut in (0, 1))) + 1e-6


@cache
def value_error(function: str) -> float:
    """The largest error of a kernel value for an exact distance, over all distances."""
    if function not in kernel_settings.MATERN:
        return POWER_ERROR
    steepest, growth = _slopes(function)
    cut = math.log(2) / 65536 * steepest
    if function == "matern12":
        return POWER_ERROR + growth * root_error() + cut
    u = np.arange(24 * 65536)
    first = powers(u)
    r = u * NATURAL >> 16
    total = first + (r * first >> 16)
    if function == "matern52":
        total += ((r * first >> 16) * 8) * (((r * THIRD >> 16) + 4) >> 3) >> 16
    found = np.minimum(total >> (u >> 16), ONE) / ONE
    wrong = np.abs(found - faded(function, u * (math.log(2) / 65536))).max()
    return float(max(wrong, faded(function, 24 * math.log(2))) + growth * root_error() + 2 * cut)


def _calibration(given: Any, functions: int, one: float) -> dict[str, Any]:
    """Parameters of the kernel ``calibrate``, which converts functions in units of 1 / one to octaves in units of
    2^-16.
    """
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
