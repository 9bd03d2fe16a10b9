"""Bound the rounding error in a frozen model's values, for each row.

This is a forward error analysis to first order in the unit roundoff u; one per cent is added for higher orders (N. J.
Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 2 to 4).  The bound is computed in float64 for
each row, with the row's actual kernel values and partial sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist  # type: ignore[import-untyped]

from pykernel.bases.gram import NORM_LEAST, MercerKernel
from pykernel.dialect import PRECISIONS
from pykernel.errors import shown_option
from pykernel.spec.families.int16_scales import EIGHT
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import Spec
from pykernel.training.machine import Machine

COARSE, SEEN = 0.1, 1000
"""COARSE: a rounding error above this fraction of the function's standard deviation causes a warning.  SEEN: maximum
number of vectors that are checked.
"""
NOTED_VALUES = 2**21
"""Maximum number of kernel values in one evaluation of the functions for the check.  At least 16 vectors are checked,
even if this takes more kernel values.
"""

SLACK = 1.01
"""Factor that covers terms of order u^2 and the rounding errors of the bound itself."""
LEAST = 2.0**-50
"""An upper bound on the kernel values that the device replaces with zero.  The device does this if the exponential e^-r
in the kernel's formula is below 2^-60.  Matern kernels multiply e^-r by a factor above 1, so their values are larger.
"""
VALUES = 2**20
"""Maximum number of kernel values in memory at once."""


def device_bound(spec: Spec, x: np.ndarray, rounded: float | np.ndarray = 0.0) -> np.ndarray:
    """Return an upper bound on the error of the device's functions at rows of x, (rows, F).  The elements of x must be
    representable in the device's precision.

    rounded: for integer models, the largest rounding error of the inputs in counts, as one number or (DIM,).
    """
    assert spec.expansion is not None
    if spec.real.is_int16:
        bound = spec.family.error_bound(spec, rounded)  # type: ignore[attr-defined]
        return np.broadcast_to(bound, (len(x), len(bound)))
    return error_bound(machine_of(spec), x, spec.precision, spec.expansion.distance)


def source_bound(machine: Machine, x: np.ndarray) -> np.ndarray:
    """Return an upper bound on the difference between the source's float64 values and the machine's exact values at
    rows of x, (rows, F).

    If several sums of the source were merged into one sum, the source adds up larger terms (``gross``) and more of them
    (``mixes``).
    """
    bound = error_bound(machine, x, "float64", "products", shifted=True) * (1 + machine.mixes)
    if machine.gross is not None:
        values = np.abs(machine.values(machine.scaled(x)))
        bound = bound + 2.0**-52 * (machine.mixes + len(machine.vectors)) * (values @ machine.gross)
    if machine.function == "rational-quadratic":  # (1 + s)^-alpha, where the sum is rounded
        values = machine.values(machine.scaled(x))
        bound = bound + 2.0**-52 * machine.alpha * (values @ np.abs(machine.columns_of_weights()))
    return np.asarray(bound)


def weights_bound(spec: Spec, machine: Machine, x: np.ndarray) -> np.ndarray:
    """Return an upper bound on the change in the machine's functions at rows of x, (rows, F), if the weights of hidden
    units are rounded to 8 bits.
    """
    rounded, inner = machine_of(spec.inner), spec.inner
    if not (inner.real.is_int16 and inner.kernel.function in HIDDEN and inner.family.parameters(inner)["eight"]):
        return np.zeros((len(x), len(machine.bias)))
    z, step = rounded.scaled(x), np.abs(rounded.vectors).max() / EIGHT
    moved = np.abs(rounded.functions(z) - machine.functions(machine.scaled(x)))
    # no hidden unit has a slope above 1
    most = step / 2 * np.abs(z).sum(axis=1)[:, None] * np.abs(rounded.columns_of_weights()).sum(axis=0)
    return np.asarray(np.minimum(moved, most * (1 + 1e-9)))


def machine_of(spec: Spec) -> Machine:
    """Return the machine of a frozen spec."""
    expansion, kernel = spec.expansion, MercerKernel.of(spec)
    assert expansion is not None and expansion.weights is not None and expansion.bias is not None
    return Machine(
        spec.name,
        kernel.function,
        np.array(expansion.vectors, float),
        np.array(expansion.weights, float),
        np.array(expansion.bias, float),
        gamma=kernel.gamma,
        coef0=kernel.coef0,
        degree=kernel.degree,
        decision=expansion.decision,
        support_class=None if expansion.support_class is None else np.array(expansion.support_class),
        center=None if spec.scaling[0] is None else np.array(spec.scaling[0], float),
        scale=None if spec.scaling[1] is None else np.array(spec.scaling[1], float),
        normalise=kernel.normalise,
        custom=kernel.custom,
        max_value=kernel.max_value,
        alpha=kernel.alpha,
        offsets=None if expansion.offsets is None else np.array(expansion.offsets, float),
    )


def error_bound(
    machine: Machine, x: np.ndarray, precision: str, distance: str = "differences", shifted: bool = False
) -> np.ndarray:
    """Return an upper bound on the error of the machine's functions at rows of x, (rows, F), if they are computed in
    ``precision``.  O(rows n D).

    The bound assumes that the parameters are first rounded to this precision, and that sums are computed in the order
    of the vectors.  For a custom kernel, the error of a value is assumed to be at most 16 u times the kernel's bound.
    shifted: whether inputs may be scaled before they are centered, x * scale - center * scale, as in MinMaxScaler.
    """
    u = float(np.finfo(PRECISIONS[precision].dtype).eps) / 2
    weights, rows = machine.columns_of_weights(), max(1, VALUES // max(1, len(machine.vectors)))
    with np.errstate(all="ignore"):  # after an overflow, the bound is infinite or NaN
        parts = [
            _of_rows(machine, weights, x[i : i + rows], precision, u, distance, shifted) for i in range(0, len(x), rows)
        ]
    return np.concatenate(parts) if parts else np.zeros((0, len(machine.bias)))


def _of_rows(
    machine: Machine, weights: np.ndarray, x: np.ndarray, precision: str, u: float, distance: str, shifted: bool
) -> np.ndarray:
    z, lost = _scaled(machine, x, precision, u, shifted)
    k = machine.values(z)
    error = _kernel_error(machine, z, lost, k, u, distance)
    found = np.empty((len(x), len(machine.bias)))
    for o, bias in enumerate(machine.bias):
        used = np.flatnonzero(weights[:, o])
        w = weights[used, o]
        terms = k[:, used] * w
        # rounding errors of the weight, of the product, and of each partial sum
        sums = np.abs(np.cumsum(terms, axis=1) + (0.0 if distance == "products" else bias)).sum(axis=1)
        last = np.abs(terms.sum(axis=1) + bias)
        inexact = error[:, used] @ np.abs(w) + 2 * u * np.abs(terms).sum(axis=1)
        found[:, o] = (1 + len(used) * u) * inexact + u * (sums + last + abs(bias))
    return SLACK * found


def _scaled(machine: Machine, x: np.ndarray, precision: str, u: float, shifted: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the scaled inputs and the largest error of each, both (rows, DIM)."""
    z, center, scale = x, machine.center, machine.scale
    lost = 2 * u * np.abs(x) if shifted else np.zeros_like(x)
    if center is not None:
        z = z - center
        held = center.astype(PRECISIONS[precision].dtype).astype(np.float64)
        lost = lost + np.abs(center - held) + u * np.abs(z)
    if scale is not None:
        z = z * scale
        # rounding errors of the scale and of the product
        lost = lost * np.abs(scale) + 2 * u * np.abs(z)
    return z, lost


def _kernel_error(
    machine: Machine, z: np.ndarray, lost: np.ndarray, k: np.ndarray, u: float, distance: str
) -> np.ndarray:
    """Return the largest errors of the kernel values k, (rows, n), for rows z with errors up to ``lost``."""
    v, function, gamma = machine.vectors, machine.function, machine.gamma
    if function == "custom":
        return np.full_like(k, 16 * u * (machine.max_value or 1.0))
    if function in ("linear", "polynomial", "sigmoid", *HIDDEN):
        size = np.abs(z) @ np.abs(v).T
        error = _product_error(machine, z @ v.T, size, lost @ np.abs(v).T, u)
        return _normalised_error(machine, z, lost, k, error, u) if machine.normalise else error
    steps = z.shape[1] + 6  # number of roundings in the computation of an exponent
    if function == "laplacian":
        off = lost.sum(axis=1)[:, None] + u * np.abs(v).sum(axis=1)
        far = cdist(z, v, "cityblock")
        return _exponential_error(k, gamma * far, gamma * (off + steps * u * (far + off)), 4 * u)
    # the largest error of |z - v|, due to the errors of z and the rounding of v
    length = np.sqrt(np.square(v).sum(axis=1))
    off = np.sqrt(np.square(lost).sum(axis=1))[:, None] + u * length
    far = cdist(z, v, "euclidean")
    if function == "gaussian":
        moved, rounded, size = (2 * far + off) * off, 4 * u, np.square(far + off)
        if distance == "products":
            # the device computes |z|^2 + |v|^2 - 2 z'v, and the kernel value as the product of two powers of two
            rounded, size = 10 * u, np.square(z).sum(axis=1)[:, None] + 2 * np.abs(z) @ np.abs(v).T + np.square(length)
        return _exponential_error(k, gamma * np.square(far), gamma * (moved + steps * u * size), rounded)
    if function == "rational-quadratic":
        # error of the exponent alpha ln(1 + s), with s = gamma |z - v|^2
        square, moved = gamma * np.square(far), gamma * ((2 * far + off) * off + (steps + 2) * u * np.square(far + off))
        exponent = machine.alpha * np.log1p(square)
        moved = machine.alpha * moved / (1 + np.maximum(square - moved, 0)) + 8 * u * exponent
        return _exponential_error(k, exponent, moved, 4 * u)
    off = gamma * (off + steps * u * (far + off))
    if function == "matern12":
        return _exponential_error(k, gamma * far, off, 4 * u)
    # an upper bound on |dk/dr| between r - off and r + off
    low, high = np.maximum(gamma * far - off, 0), gamma * far + off
    slope = np.exp(-low) * high * (1 if function == "matern32" else (1 + high) / 3)
    return np.asarray(np.minimum(slope * off, 1) + 8 * u * k + LEAST)


def _exponential_error(k: np.ndarray, exponent: np.ndarray, error: np.ndarray, rounded: float) -> np.ndarray:
    """Return the largest error of k = e^-exponent.

    error: the exponent's error; rounded: the relative rounding error of the value.
    """
    upwards = np.where(error < 1, k * np.expm1(np.minimum(error, 1)), np.exp(-np.maximum(exponent - error, 0)))
    return np.asarray(np.minimum(upwards, 1) + rounded * k + LEAST)


def _product_error(machine: Machine, product: np.ndarray, size: np.ndarray, off: np.ndarray, u: float) -> np.ndarray:
    """Return the largest error of a kernel that is a function of z'v.

    size: |z|'|v|.  off: the error of z'v due to errors in z.
    """
    error = off + (machine.dim + 2) * u * (size + off)  # rounding of v, of products and of sums
    if machine.function == "linear":
        return error
    if machine.function in HIDDEN:
        t = product + machine.shifts
        return _unit_error(machine.function, t, error + (machine.dim + 2) * u * np.abs(machine.shifts), u)
    argument = np.abs(machine.gamma * product + machine.coef0)
    error = machine.gamma * error + 3 * u * (machine.gamma * np.abs(product) + abs(machine.coef0))
    if machine.function == "sigmoid":
        slope = np.cosh(np.maximum(argument - error, 0)) ** -2
        return np.asarray(np.minimum(slope * error, 2) + 4 * u * np.tanh(argument))
    reach = argument + error
    return np.asarray(reach**machine.degree - argument**machine.degree + machine.degree * u * reach**machine.degree)


def _unit_error(function: str, t: np.ndarray, error: np.ndarray, u: float) -> np.ndarray:
    """Return the largest error of a hidden unit or a random feature.  error: the error of its argument t."""
    if function in ("relu", "identity"):
        return np.where((t + error < 0) & (function == "relu"), 0.0, error)
    if function == "fourier":
        slope = 2 * np.pi * np.minimum(np.abs(np.sin(2 * np.pi * t)) + 2 * np.pi * error, 1)
    else:
        half = 2.0 if function == "logistic" else 1.0
        slope = np.cosh(np.maximum(np.abs(t) - error, 0) / half) ** -2 / half**2
    return np.asarray(np.minimum(slope * error, 2) + 4 * u + LEAST)


def _normalised_error(
    machine: Machine, z: np.ndarray, lost: np.ndarray, k: np.ndarray, error: np.ndarray, u: float
) -> np.ndarray:
    """Return the largest error of k(z, v) / sqrt(k(z, z) k(v, v)).  error: the error of k(z, v)."""
    plain, norms, parts = replace(machine.kernel, normalise=False), [], []
    for rows, off in ((z, lost), (machine.vectors, np.zeros_like(machine.vectors))):
        square = np.square(rows).sum(axis=1)
        own = np.maximum(plain.diagonal(rows), NORM_LEAST)
        norms.append(np.sqrt(own))
        parts.append(
            _product_error(machine, square, square, (2 * np.abs(rows) + off) * off @ np.ones(machine.dim), u) / own
        )
    relative = parts[0][:, None] + parts[1]
    total = (1 + relative) * error / norms[0][:, None] / norms[1] + np.abs(k) * (relative + 4 * u)
    return np.asarray(np.minimum(total, 2) + LEAST)


def notes(machine: Machine, spec: Spec) -> list[str]:
    """Return sentences about the parts of the source that the spec leaves out, and a warning if float32 is too coarse.

    If large weights cancel out, as in a Gaussian process without noise, their rounding errors can be large compared
    with the sum.  The warning is based on the errors at the machine's vectors.  Hidden units get no warning, because
    their vectors are not inputs.  Custom kernels get no warning, either.
    """
    sentences = list(machine.notes)
    if spec.precision != "float32" or machine.function in (*HIDDEN, "custom") or not len(machine.vectors):
        return sentences
    count = len(machine.vectors)
    at = np.linspace(0, count - 1, min(count, SEEN, max(16, NOTED_VALUES // count)), dtype=int)
    vectors, x = machine.vectors[at], machine.inputs()[at]
    exact = machine.functions(vectors)
    held = x.astype(np.float32).astype(np.float64)
    # the effect of rounding the inputs is measured: once for inputs rounded to float32, and eight times for inputs with
    # random errors of half a unit in the last place; the effect of all other rounding errors is bounded
    half, rng = np.spacing(np.abs(held).astype(np.float32)).astype(np.float64) / 2, np.random.default_rng(0)
    inputs = [held, *(x + half * rng.choice((-1.0, 1.0), x.shape) for _ in range(8))]
    moved = np.max([np.abs(machine.functions(machine.scaled(rows)) - exact) for rows in inputs], axis=0)
    moved = (moved + device_bound(spec, held)).max(axis=0)
    # points between vectors are needed as well: at its vectors alone, the values of a support vector machine may hardly
    # vary, because many of the vectors lie on the margin
    between = machine.functions((vectors + np.roll(vectors, 1, axis=0)) / 2)
    spread = np.vstack([exact, between]).std(axis=0)
    with np.errstate(all="ignore"):
        worst = int(np.argmax(np.where(spread > 0, moved / spread, 0.0)))
    if spread[worst] > 0 and moved[worst] > COARSE * spread[worst]:
        which = "its vectors" if len(at) == count else f"{len(at):,} of its vectors"
        sentences.append(
            f"{machine.source}: float32 may change its values by up to {_above(moved[worst])} at {which}, compared with the "
            f"values' standard deviation of {spread[worst]:.2g}; use {shown_option('precision', 'float64')}, or fit the model with more "
            "regularisation (a larger alpha, a smaller C)"
        )
    return sentences


def _above(value: float) -> str:
    """Return the number as text, rounded up to two significant digits."""
    text = f"{value:.2g}"
    return text if float(text) >= value else f"{value * 1.05:.2g}"
