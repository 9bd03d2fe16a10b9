"""Bounds on the difference between a frozen integer model and the same model in real numbers.  docs/int16-bounds.md derives the bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from pykernel.algorithms.int16.frozen import CERTAIN
from pykernel.algorithms.int16.kernels import FALL, NATURAL, ONE, POWERS, ROOTS, STEPS, THIRD
from pykernel.spec import kernel_settings
from pykernel.spec.families.int16_scales import (
    BENT,
    PRODUCTS,
    centers,
    degree_of,
    factors,
    limits,
    products,
    resolutions,
    unit_of,
    units_of,
)

MOST_NORMS = 3000
"""Largest number of vectors for which the error bound uses a Gram matrix."""


class FrozenErrors:
    """Frozen integer models: their values in real and in integer arithmetic, and bounds on the difference between these values."""

    def functions(self, spec: Any, x: np.ndarray) -> np.ndarray:
        """The functions in float64 at the rows of x, (samples, FUNCTIONS).  The integer model approximates these values."""
        values = _real_values(
            spec, (x - centers(spec)) * factors(spec), np.array(spec.expansion.vectors, float), spec.expansion.offsets
        )
        return np.asarray(values @ weights_of_functions(spec) + np.array(spec.expansion.bias))

    def int16_functions(self, spec: Any, x: np.ndarray) -> np.ndarray:
        """The functions of a Gaussian expansion, computed in integers at the rows of x, (samples, FUNCTIONS).

        The results are exactly those of the device, converted to the label's unit.  They are NaN for inputs beyond their limits.
        Nothing is compiled; the cost is O(samples N (DIM + FUNCTIONS)).
        """
        assert spec.kernel.function == "gaussian" and spec.expansion.decision == "functions"
        scales, made = spec.scales, spec.conversion
        counts = spec.raw_inputs(x).astype(np.int64) - made.center
        z = ((counts * made.factor + made.rounding) >> made.shift).astype(np.float64)
        v = scales.vectors.astype(np.float64)
        # integers below 2^53 are exact in float64, whatever the order of the sum
        square = (z * z).sum(1)[:, None] + (v * v).sum(1) - 2 * z @ v.T
        octaves = square.astype(np.int64) >> max(0, scales.octave - 16)
        values, places = powers(octaves), np.minimum((octaves >> 16) + scales.weight_shift, 31)
        total = np.tile(scales.bias, (len(z), 1))
        for value, place, weights in zip(values.T[:, :, None], places.T[:, :, None], scales.weights, strict=True):
            total += (value * weights) >> place
        return np.where((np.abs(counts) <= made.most).all(1)[:, None], total * 2.0**-scales.label_shift, np.nan)

    def answers(self, spec: Any, x: np.ndarray) -> np.ndarray:
        """The functions, clipped to [label] ``low`` and ``high``, (samples, FUNCTIONS).  ``predict`` approximates these
        values.
        """
        low, high = spec.label.low, spec.label.high
        return np.asarray(
            np.clip(self.functions(spec, x), -np.inf if low is None else low, np.inf if high is None else high)
        )

    def error_bound(self, spec: Any, rounded: float | np.ndarray = 0.0) -> np.ndarray:
        """An upper bound on the error of each function, for all inputs within their limits, (FUNCTIONS,).

        rounded: the largest rounding error of an input's count, in counts: one number for all inputs, or (DIM,).  It is
        ``ROUNDED`` if the counts are computed from floats.
        docs/int16-bounds.md derives the bound.
        """
        weights, one, octave = weights_of_functions(spec), 2.0**spec.label_shift, spec.scales.octave
        vectors, function = np.array(spec.expansion.vectors, float), spec.kernel.function
        if function == "linear":
            near = spec.conversion.error(spec, 2.0**octave, rounded)
            real = weights.T @ vectors * one / 2.0**octave
            lost = np.abs(spec.scales.vectors - real) @ spec.conversion.reach + np.abs(real) @ near
            return np.asarray((lost + 0.5) / one)
        unit, own = units_of(spec, octave)
        near = spec.conversion.error(spec, unit, rounded)
        apart = near + np.abs(spec.scales.vectors - vectors * own)
        # ``whole``: the rounded weights; ``counted``: the error from rounding each term to the unit of predictions
        whole = spread(spec, spec.scales.weights * 2.0**-spec.scales.weight_shift)
        counted = (spread(spec, np.ones_like(spec.scales.weights)).sum(0) / 2 + 1) / one
        if function in BENT:
            return np.asarray(counted + self._bent_bound(spec, near, apart, whole * (ONE / one), weights))
        if function in PRODUCTS:
            whole = whole * 2.0 ** (16 + degree_of(spec) * (octave - 32)) / one
            return np.asarray(counted + self._power_bound(spec, near, apart, whole, weights))
        return np.asarray(counted + self._radial_bound(spec, near, apart, whole * (ONE / one), weights))

    def _radial_bound(
        self, spec: Any, near: np.ndarray, apart: np.ndarray, whole: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """``error_bound`` for kernels that depend on a distance, without the errors from rounding the terms, (FUNCTIONS,).

        near: the largest error of each input.  apart: the largest error of each difference between an input and a vector.
        whole: the rounded weights.
        """
        vectors, unit = np.array(spec.expansion.vectors, float), unit_of(spec, spec.scales.octave)
        # 1. errors of the kernel values
        small = value_error(spec.kernel.function) + 2.0 ** (spec.scales.weight_shift - 31)
        bound = small * np.abs(whole).sum(0)
        # 2. errors of inputs, vectors and weights, bounded for each vector separately
        values = _moved_by(spec.kernel.function, apart, spec.scales.octave)
        each = values @ np.abs(whole) + np.abs(whole - weights).sum(0)
        if len(vectors) > MOST_NORMS:
            return np.asarray(bound + each)
        # alternatively, bounded by norms in the kernel's Hilbert space: |f(x)| is at most |f|, and |f(x) - f(y)| is at most
        # |f| times the distance between k(x, .) and k(y, .)
        both = np.concatenate([vectors, spec.scales.vectors / unit])
        gram = _real_values(spec, both, both)
        made_of = np.concatenate([-weights, whole])
        slack = 1e-15 * len(both) * np.abs(made_of).sum(0) ** 2
        change = np.sqrt(np.maximum(np.einsum("if,ij,jf->f", made_of, gram, made_of, optimize=True), 0) + slack)
        own = gram[len(vectors) :, len(vectors) :]
        norm = np.sqrt(np.maximum(np.einsum("if,ij,jf->f", whole, own, whole, optimize=True), 0) + slack)
        moved = math.sqrt(max(0.0, 2 - 2 * float(_real_values(spec, near[None] / unit, np.zeros((1, spec.dim)))[0, 0])))
        return np.asarray(bound + np.minimum(each, change + norm * moved))

    def _power_bound(
        self, spec: Any, near: np.ndarray, apart: np.ndarray, whole: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """``error_bound`` for polynomial kernels and unbounded hidden units, without the errors from rounding the terms, (FUNCTIONS,)."""
        degree, octave, (most, wrong) = degree_of(spec), spec.scales.octave, self._products(spec, near, apart)
        largest = (most / 2.0**octave) ** degree
        moved = ((most + wrong) / 2.0**octave) ** degree - largest
        cut = (1 + 2.0**-15) ** (degree + 1) - 1
        return np.asarray((moved + cut * largest) @ np.abs(whole) + (largest + moved) @ np.abs(whole - weights))

    def _products(self, spec: Any, near: np.ndarray, apart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays, (N,): the largest |a'b + offset| of each vector, in integers, and the largest error of this sum."""
        vectors, octave, reach = np.abs(spec.scales.vectors), spec.scales.octave, spec.conversion.reach
        # 0.5: offsets are rounded to integers
        return products(spec, spec.conversion, octave, vectors), vectors @ near + (apart - near) @ (reach + near) + 0.5

    def _bent_bound(
        self, spec: Any, near: np.ndarray, apart: np.ndarray, whole: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """``error_bound`` for hidden units whose values are at most 1, without the errors from rounding the terms, (FUNCTIONS,)."""
        steepest = 1.0 if spec.kernel.function == "tanh" else 0.25
        found = steepest * self._products(spec, near, apart)[1] / 2.0**spec.scales.octave
        return np.asarray((found + bent_error(spec.kernel.function)) @ np.abs(whole) + np.abs(whole - weights).sum(0))

    def measured_error(self, spec: Any, predict: Callable[[np.ndarray], np.ndarray], rows: int = 2000) -> np.ndarray:
        """The largest difference between the integer model's predictions and ``answers`` on random inputs, (FUNCTIONS,).

        predict: a function that computes the integer model's predictions.  rows: number of random inputs; if the kernel has
        k(x, x) = 1, half of the inputs are near vectors.
        """
        rng, center, limit = np.random.default_rng(0), centers(spec), limits(spec)
        vectors = spec.unscaled(np.array(spec.expansion.vectors, float))
        x = center + limit * rng.uniform(-1, 1, (rows, spec.dim))
        some = (
            vectors[rng.integers(0, len(vectors), rows // 2)]
            if spec.kernel.function in kernel_settings.UNIT
            else x[: rows // 2]
        )
        x[: rows // 2] = some + 0.1 * limit * rng.uniform(-1, 1, some.shape)
        far = spec.conversion.most * resolutions(spec)
        x = spec.as_seen(np.clip(x, center - far, center + far))
        x = x[spec.accepts(x)]
        return np.asarray(np.abs(predict(x) - self.answers(spec, x)).max(0, initial=0.0))


def spread(spec: Any, weights: np.ndarray) -> np.ndarray:
    """The weight of each vector in each function, (N, FUNCTIONS).

    If each function separates a pair of classes, a vector has weight 0 in every function whose pair does not include the vector's
    class.
    """
    if spec.expansion.decision == "functions":
        return weights
    classes, own = len(spec.label.classes), np.array(spec.expansion.support_class)
    pairs = list(itertools.combinations(range(classes), 2))
    found = np.zeros((len(weights), len(pairs)))
    for at, (a, b) in enumerate(pairs):
        found[own == a, at] = weights[own == a, b - 1]
        found[own == b, at] = weights[own == b, a]
    return found


def weights_of_functions(spec: Any) -> np.ndarray:
    """The spec's weight of each vector in each function, (N, FUNCTIONS)."""
    return spread(spec, np.array(spec.expansion.weights, float))


def _real_values(spec: Any, a: np.ndarray, b: np.ndarray, offsets: Sequence[float] | None = None) -> np.ndarray:
    """Kernel values in float64 between the rows of a and of b, (len(a), len(b)).  Hidden units include their offsets."""
    kernel, rate = spec.kernel, kernel_settings.rate(spec)
    if kernel.function in kernel_settings.HIDDEN:
        return np.asarray(
            kernel_settings.ACTIVATIONS[kernel.function](a @ b.T + (0.0 if offsets is None else np.array(offsets)))
        )
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
    """A Matern kernel's value at r = gamma |a - b|."""
    return {"matern12": 1.0, "matern32": 1 + r, "matern52": 1 + r + r * r / 3}[function] * np.exp(-r)


def _moved_by(function: str, apart: np.ndarray, octave: int) -> np.ndarray:
    """Return, for each vector, the largest error of its kernel values over all inputs, (N,).

    apart: the largest errors of the differences between an input and a vector, (N, DIM).
    """
    if function == "laplacian":
        return np.asarray(2.0 ** (apart.sum(1) / 2.0**octave) - 1)
    far = np.sqrt((apart**2).sum(1))
    if function != "gaussian":
        return np.asarray(far * (math.log(2) * _slopes(function)[0] / 2.0**octave))
    # if the kernel value is 2^-u, the error of u is at most 2 far sqrt(u) + far^2
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
    """Compute the kernel ``power`` for each number of an array."""
    first = np.array(POWERS.by_precision["int16"])[(u >> 10) & (STEPS - 1)]
    return np.asarray(first - (((first * (u & 1023)) >> 10) * FALL >> 16))


def _power_error() -> float:
    """The largest error of the kernel ``power`` over all arguments."""
    u = np.arange(65536)
    # the argument is cut to a multiple of 2^-16; the error is largest if the bits cut off are all zeros or all ones
    return float(max(np.abs(powers(u) / ONE - 2.0 ** -((u + end) / 65536)).max() for end in (0, 1)))


POWER_ERROR = _power_error()


@cache
def bent_error(function: str) -> float:
    """The largest error of ``logistic`` over all arguments, or that of tanh, which is computed from ``logistic``."""
    t = np.arange(17 * 65536)
    octaves = np.minimum(t >> 16, 16)
    falls = np.where(t < 16 * 65536, powers(t) >> (octaves + 1), 0)
    found = np.minimum(2 * (CERTAIN * CERTAIN // (CERTAIN + falls)), ONE) / ONE
    # rounding in the conversion of a'b to the exponent t changes t by less than 4, and the bits cut off by less than 1
    wrong = float(np.abs(found - 1 / (1 + 2.0 ** -(t / 65536))).max()) + 5 * 0.25 * math.log(2) / 65536
    return 2 * wrong if function == "tanh" else wrong


@cache
def root_error() -> float:
    """The largest relative error of the kernel ``root`` over all arguments, not counting the bits that its shift cuts off."""
    table, part = np.array(ROOTS.by_precision["int16"]), np.arange(0, 32769, 64)
    first, last = table[:-1, None], table[1:, None]
    exact = 32768 * np.sqrt(1 + (np.arange(96)[:, None] + part / 32768) / 32)
    line = first + (last - first) * part / 32768
    # between two of these points the error changes by less than 1e-9; the ignored bits are 1 / 32768 of a table step
    return float(max(np.abs((line - cut) / exact - 1).max() for cut in (0, 1))) + 1e-6


@cache
def value_error(function: str) -> float:
    """The largest error of a kernel value over all distances, if the distance itself is exact."""
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
