"""How integer models scale their values: inputs, the kernel's distances, and learning rates, as integers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.algorithms.int16.kernels import Int16Function
from pykernel.spec import kernel_settings
from pykernel.spec.base import Spec

EIGHT = 127
"""Largest magnitude of an 8-bit integer."""
COUNTS = 32767
"""Largest magnitude of a count.  -32768 means "not a number"."""
ROUNDED = 0.5 + 3 * 2.0**-9
"""Largest rounding error of ``NAME_counts``, in counts: half a count, plus the float32 rounding errors of a 15-bit number in three
places: the difference from the offset, the factor and the product."""
LARGEST = 2**31 - 1
FUNCTIONS = {
    "gaussian": Int16Function.GAUSSIAN,
    "laplacian": Int16Function.LAPLACIAN,
    "matern12": Int16Function.MATERN12,
    "matern32": Int16Function.MATERN32,
    "matern52": Int16Function.MATERN52,
    "polynomial": Int16Function.POLYNOMIAL,
    "linear": Int16Function.LINEAR,
    "relu": Int16Function.RELU,
    "tanh": Int16Function.TANH,
    "logistic": Int16Function.LOGISTIC,
    "identity": Int16Function.IDENTITY,
}
BENT = {"tanh": 18, "logistic": 17}
"""Hidden units whose values are at most 1 -> the smallest octave.  At this octave, a'b times STEEP / 2^16 needs no
further shift.  STEEP is a constant of ``pykernel.algorithms.int16.kernels``."""
OCTAVES = {
    # squared distances; a larger power of two is finer
    "gaussian": range(31, 15, -1),
    # absolute distances, which are small numbers
    "laplacian": range(31, 3, -1),
    # products of inputs
    **dict.fromkeys(("polynomial", "relu", "identity"), range(40, -30, -1)),
    **{function: range(40, least - 1, -1) for function, least in BENT.items()},
    # roots of squared distances; a root has 16 bits
    **dict.fromkeys(kernel_settings.MATERN, range(16, 3, -1)),
}
"""Kernel -> the octaves that are allowed, finest first.  The distance or the product of which the kernel is a function
is divided by 2^octave."""
PRODUCTS = ("polynomial", "relu", "tanh", "logistic", "identity")
"""Kernels that are functions of the product of an input and a vector."""
FALL_ROOM = 15
"""Maximum number of bits by which the product of a weight and a kernel value is shifted because of the weights' scale.  The total
shift is at most 31 bits, which leaves 16 bits for the kernel value's power of two."""


@dataclass(frozen=True, eq=False)
class Conversion:
    """Conversion of a count x to the kernel's unit: z = ((x - center) factor + rounding) / 2^shift, rounded down.

    most: the largest |x - center| that is accepted.
    """

    center: np.ndarray
    most: np.ndarray
    factor: np.ndarray
    rounding: np.ndarray
    shift: np.ndarray

    def error(self, spec: Spec, unit: float, rounded: float | np.ndarray = 0.0) -> np.ndarray:
        """The largest error of each converted input, in the kernel's unit, (DIM,).

        rounded: the largest rounding error of the count itself, in counts: one number for all inputs, or (DIM,).
        """
        resolution, rounding = resolutions(spec), 2.0**-self.shift
        each = unit * resolution * factors(spec)
        offset = (self.center * resolution - centers(spec) + offsets(spec)) * each / resolution
        lost = np.abs(self.rounding * rounding - 0.5 - offset)
        return np.asarray(
            0.5 + rounding + lost + self.most * np.abs(self.factor * rounding - each) + rounded * np.abs(each)
        )

    @property
    def alike(self) -> bool:
        """Whether all inputs are converted in the same way."""
        return all((values == values[0]).all() for values in vars(self).values())

    @property
    def sizes(self) -> dict[str, int]:
        """Values of Int16InputConfig's extents."""
        return {"SCALES": 1 if self.alike else len(self.center)}

    def parameters(self) -> dict[str, Any]:
        """Values of Int16InputConfig's fields."""
        tables = {name: values[:1] if self.alike else values for name, values in vars(self).items()}
        return {**tables, "each": not self.alike, "reach": int(self.reach.max())}

    @property
    def reach(self) -> np.ndarray:
        """Largest magnitude of each converted input."""
        ends = [(e * self.factor + self.rounding) >> self.shift for e in (-self.most, self.most)]
        return np.abs(ends).max(0)


@dataclass(frozen=True, eq=False)
class Scales:
    """The scales that are chosen for one model.

    octave: the distance or the product of which the kernel is a function is divided by 2^octave.  For linear models,
    the integer 2^octave represents a scaled input of 1; for sparse spectra, it represents sigma.  Labels and
    predictions are in units of 2^-label_shift.
    """

    conversion: Conversion
    octave: int
    label_shift: int


def limits(spec: Spec) -> np.ndarray:
    """Largest |x - center| of each input, (DIM,)."""
    return np.broadcast_to(np.array(spec.input.max_abs, float), spec.dim)


def centers(spec: Spec) -> np.ndarray:
    """Center of each input, (DIM,)."""
    center, _ = spec.scaling
    return np.zeros(spec.dim) if center is None else np.array(center, float)


def factors(spec: Spec) -> np.ndarray:
    """Factor by which the spec scales each input, (DIM,)."""
    _, scale = spec.scaling
    return np.ones(spec.dim) if scale is None else np.array(scale, float)


def resolutions(spec: Spec) -> np.ndarray:
    """The value of one count of each input, in the input's unit, (DIM,)."""
    given = getattr(spec.input, "resolution", None)
    if given is not None:
        return np.array(np.broadcast_to(np.array(given, float), spec.dim))
    return 2.0 ** np.ceil(np.log2((limits(spec) + np.abs(centers(spec) - offsets(spec))) / COUNTS))


def offsets(spec: Spec) -> np.ndarray:
    """The value of each input at a count of 0, rounded to float32 as in ``NAME_counts``, (DIM,).

    The default is 0 if the resolution is given, because the counts may then be a sensor's raw readings.  Otherwise the default
    is the center.
    """
    given, resolution = (getattr(spec.input, key, None) for key in ("offset", "resolution"))
    default = centers(spec) if resolution is None else 0.0
    return np.broadcast_to(np.array(default if given is None else given, np.float32), spec.dim).astype(float)


def conversion(spec: Spec, unit: float) -> Conversion:
    """Return the conversion of counts to the kernel's unit.  unit: a scaled input of 1, in the kernel's unit."""
    resolution, center, most = resolutions(spec), centers(spec) - offsets(spec), limits(spec)
    each = unit * resolution * factors(spec)
    counts = np.rint(center / resolution)
    reach = np.minimum(np.floor(most / resolution * (1 + 1e-9)), COUNTS - np.abs(counts))
    shift = np.clip(np.floor(np.log2(COUNTS / np.abs(each))), 0, 30)
    lost = (counts - center / resolution) * each
    whole = [counts, reach, np.rint(each * 2**shift), np.rint((0.5 + lost) * 2**shift), shift]
    # no model accepts factors beyond 2^40; the clipping keeps the computations here from overflowing
    return Conversion(*(np.clip(values, -(2.0**40), 2.0**40).astype(np.int64) for values in whole))


def counted(bound: float | None, one: float, otherwise: int, zero: float = 0.0) -> int:
    """Return bound - zero in units of 1 / one, rounded and clipped to 32 bits.  If ``bound`` is None, return ``otherwise``."""
    return otherwise if bound is None else int(np.clip(np.rint((bound - zero) * one), -LARGEST, LARGEST))


def learning_rate(eta: float) -> tuple[int, int]:
    """Return (factor, power): eta is approximately factor 2^-16 / 2^power, and ``factor`` is from 2^15 to 2^16 - 1."""
    doublings = math.floor(math.log2(1 / eta))
    return min(65535, round(eta * 2**doublings * 65536)), doublings


def unit_of(spec: Any, octave: int) -> float:
    """Return a scaled input of 1, in the kernel's unit.

    In this unit, a distance of 2^octave halves the exponential in the kernel's formula; for a Gaussian kernel, the
    integers are squared distances.  For kernels of PRODUCTS, the integer 2^octave represents a product of 1.
    """
    if spec.kernel.function in PRODUCTS:
        return math.sqrt((spec.kernel.gamma or 1.0) * 2.0**octave)
    distance = kernel_settings.rate(spec) * 2.0**octave
    return math.sqrt(distance) if spec.kernel.function == "gaussian" else distance


def units_of(spec: Any, octave: int) -> tuple[float, float]:
    """Return (inputs, vectors): the factors that convert scaled inputs and vectors to integers.

    For hidden units, the two factors differ, so that the largest input and the largest weight become equally large integers.
    Weights that were rounded to 8 bits become 8-bit integers instead.
    """
    unit, ratio = unit_of(spec, octave), 1.0
    if spec.kernel.function in kernel_settings.HIDDEN:
        vectors = np.array(spec.expansion.vectors, float)
        weight, reach = np.abs(vectors).max(), (limits(spec) * np.abs(factors(spec))).max()
        if weight and np.allclose(vectors, in_eight_bits(vectors), rtol=0, atol=1e-7 * weight):
            return unit * unit * weight / EIGHT, EIGHT / weight
        ratio = math.sqrt((weight or 1.0) / reach)
    return unit * ratio, unit / ratio


def in_eight_bits(vectors: np.ndarray) -> np.ndarray:
    """Return the vectors of hidden units, with elements rounded to multiples of 1 / EIGHT of the largest element."""
    step = np.abs(vectors).max() / EIGHT
    return np.asarray(np.rint(vectors / step) * step if step else vectors)


def farthest(function: str, octave: int, differences: np.ndarray) -> float:
    """The largest result of the `@kernel` function ``distance``.  differences: absolute differences, (..., DIM)."""
    if function == "laplacian":
        return float(differences.sum(-1).max()) * 2.0 ** max(0, 16 - octave)
    return float((differences**2).sum(-1).max())


def kernel_parameters(spec: Any, octave: int) -> dict[str, Any]:
    """Values of Int16KernelConfig's fields."""
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
        "degree": degree_of(spec),
        "odd": degree_of(spec) % 2 == 1,
        "multiplies": function in PRODUCTS,
        "hidden": function in kernel_settings.HIDDEN,
        "octave_shift": octave - BENT.get(function, octave),
    }


def degree_of(spec: Any) -> int:
    """The exponent of a'b in the polynomial kernel; 1 for other kernels."""
    return int(spec.kernel.degree) if spec.kernel.function == "polynomial" else 1


def products(spec: Any, made: Conversion, octave: int, vectors: np.ndarray) -> np.ndarray:
    """The largest |a'b + offset| for each vector, in integers, (N,)."""
    return np.asarray(np.abs(vectors) @ made.reach + np.abs(added(spec, octave)))


def added(spec: Any, octave: int) -> np.ndarray:
    """The offset that is added to a'b for each vector, in the unit of a'b, (N,)."""
    given = spec.expansion.offsets if spec.kernel.function in kernel_settings.HIDDEN else None
    count, coef0 = len(spec.expansion.vectors), spec.kernel.coef0 if spec.kernel.function == "polynomial" else 0.0
    return np.rint(np.array(given if given is not None else [coef0] * count, float) * 2.0**octave)
