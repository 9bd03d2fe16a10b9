"""How far rounding may take a frozen model's values from those of exact arithmetic: a bound for each row.

A forward error analysis to first order in the unit roundoff u, with a hundredth on top for the rest (N. J. Higham,
Accuracy and Stability of Numerical Algorithms, 2002, sections 2 to 4).  Everything is computed in float64, from the row
itself: kernel values as they are, sums as they grow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.spatial.distance import cdist  # type: ignore[import-untyped]

from pykernel.bases.gram import NORM_LEAST, MercerKernel
from pykernel.dialect import PRECISIONS
from pykernel.errors import option
from pykernel.spec.model import Spec
from pykernel.training.trained import Machine

COARSE, SEEN = 0.1, 1000
"""The part of a function's spread that rounding may move it by without a warning, and at how many of its vectors."""
NOTED_VALUES = 2**21
"""Most kernel values for that."""

SLACK = 1.01
"""For terms in u^2, and for the bound's own rounding."""
LEAST = 2.0**-50
"""More than any kernel value that the device takes for zero, where e^-r is below 2^-60: Matern kernels are larger."""
VALUES = 2**20
"""Kernel values that are held at once."""


def device_bound(spec: Spec, x: np.ndarray, rounded: float | np.ndarray = 0.0) -> np.ndarray:
    """How far the device's functions may be from exact ones at rows of x, (rows, F), which its precision holds.

    rounded: of whole numbers, by how many counts exact inputs may be beside x, one number or (DIM,).
    """
    assert spec.expansion is not None
    if spec.real.is_integer:
        bound = spec.family.error_bound(spec, rounded)  # type: ignore[attr-defined]
        return np.broadcast_to(bound, (len(x), len(bound)))
    return error_bound(machine_of(spec), x, spec.precision, spec.expansion.distance)


def source_bound(machine: Machine, x: np.ndarray) -> np.ndarray:
    """How far the source's own values, in float64, may be from the machine's exact ones at rows of x, (rows, F).

    Where several of the source's sums became one, it added up more terms (``gross``), and more often (``mixes``).
    """
    found = error_bound(machine, x, "float64", "products", shifted=True) * (1 + machine.mixes)
    if machine.gross is not None:
        values = np.abs(machine.values(machine.scaled(x)))
        found = found + 2.0**-52 * (machine.mixes + len(machine.vectors)) * (values @ machine.gross)
    if machine.function == "rational-quadratic":  # (1 + s)^-alpha, where the sum is rounded
        values = machine.values(machine.scaled(x))
        found = found + 2.0**-52 * machine.alpha * (values @ np.abs(machine.columns_of_weights()))
    return np.asarray(found)


def machine_of(spec: Spec) -> Machine:
    """What a frozen spec holds."""
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
        phases=None if expansion.phases is None else np.array(expansion.phases, float),
    )


def error_bound(
    machine: Machine, x: np.ndarray, precision: str, distance: str = "differences", shifted: bool = False
) -> np.ndarray:
    """How far functions computed in a precision may be from the machine's exact ones at rows of x, (rows, F).

    O(rows n D).  The machine's numbers are rounded to the precision first, and sums taken in the order of its vectors.  Of a
    kernel of your own nothing is known: its values count as exact to 16 u of their bound.  shifted: inputs may be scaled
    before they are centered, x * scale - center * scale, as MinMaxScaler does.
    """
    u = float(np.finfo(PRECISIONS[precision].dtype).eps) / 2
    weights, rows = machine.columns_of_weights(), max(1, VALUES // max(1, len(machine.vectors)))
    with np.errstate(all="ignore"):  # what overflows has no bound
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
        # w rounded, the product rounded, the sum rounded as it grows
        sums = np.abs(np.cumsum(terms, axis=1) + (0.0 if distance == "products" else bias)).sum(axis=1)
        last = np.abs(terms.sum(axis=1) + bias)
        inexact = error[:, used] @ np.abs(w) + 2 * u * np.abs(terms).sum(axis=1)
        found[:, o] = (1 + len(used) * u) * inexact + u * (sums + last + abs(bias))
    return SLACK * found


def _scaled(machine: Machine, x: np.ndarray, precision: str, u: float, shifted: bool) -> tuple[np.ndarray, np.ndarray]:
    """The scaled inputs, and how far each of them may be off, both (rows, DIM)."""
    z, center, scale = x, machine.center, machine.scale
    lost = 2 * u * np.abs(x) if shifted else np.zeros_like(x)
    if center is not None:
        z = z - center
        held = center.astype(PRECISIONS[precision].dtype).astype(np.float64)
        lost = lost + np.abs(center - held) + u * np.abs(z)
    if scale is not None:
        z = z * scale
        # the scale itself, and the product
        lost = lost * np.abs(scale) + 2 * u * np.abs(z)
    return z, lost


def _kernel_error(
    machine: Machine, z: np.ndarray, lost: np.ndarray, k: np.ndarray, u: float, distance: str
) -> np.ndarray:
    """Of kernel values k of rows z that may be off by lost, (rows, n)."""
    v, function, gamma = machine.vectors, machine.function, machine.gamma
    if function == "custom":
        return np.full_like(k, 16 * u * (machine.max_value or 1.0))
    if function in ("linear", "polynomial", "sigmoid", "fourier"):
        size = np.abs(z) @ np.abs(v).T
        error = _product_error(machine, z @ v.T, size, lost @ np.abs(v).T, u)
        return _normalised_error(machine, z, lost, k, error, u) if machine.normalise else error
    steps = z.shape[1] + 6  # roundings on the way to an exponent
    if function == "laplacian":
        off = lost.sum(axis=1)[:, None] + u * np.abs(v).sum(axis=1)
        far = cdist(z, v, "cityblock")
        return _exponential_error(k, gamma * far, gamma * (off + steps * u * (far + off)), 4 * u)
    # how far |z - v| may be off, as the vectors are rounded, too
    length = np.sqrt(np.square(v).sum(axis=1))
    off = np.sqrt(np.square(lost).sum(axis=1))[:, None] + u * length
    far = cdist(z, v, "euclidean")
    if function == "gaussian":
        moved, rounded, size = (2 * far + off) * off, 4 * u, np.square(far + off)
        if distance == "products":
            # |z|^2 + |v|^2 - 2 z'v, and two powers of two in place of one
            rounded, size = 10 * u, np.square(z).sum(axis=1)[:, None] + 2 * np.abs(z) @ np.abs(v).T + np.square(length)
        return _exponential_error(k, gamma * np.square(far), gamma * (moved + steps * u * size), rounded)
    if function == "rational-quadratic":
        # of the exponent alpha ln(1 + s), by s = gamma |z - v|^2
        square, moved = gamma * np.square(far), gamma * ((2 * far + off) * off + (steps + 2) * u * np.square(far + off))
        exponent = machine.alpha * np.log1p(square)
        moved = machine.alpha * moved / (1 + np.maximum(square - moved, 0)) + 8 * u * exponent
        return _exponential_error(k, exponent, moved, 4 * u)
    off = gamma * (off + steps * u * (far + off))
    if function == "matern12":
        return _exponential_error(k, gamma * far, off, 4 * u)
    # |dk/dr| is no larger between r - off and r + off
    low, high = np.maximum(gamma * far - off, 0), gamma * far + off
    slope = np.exp(-low) * high * (1 if function == "matern32" else (1 + high) / 3)
    return np.asarray(np.minimum(slope * off, 1) + 8 * u * k + LEAST)


def _exponential_error(k: np.ndarray, exponent: np.ndarray, error: np.ndarray, rounded: float) -> np.ndarray:
    """Of k = e^-exponent, where the exponent may be off by error, and a value is rounded by a part of itself."""
    upwards = np.where(error < 1, k * np.expm1(np.minimum(error, 1)), np.exp(-np.maximum(exponent - error, 0)))
    return np.asarray(np.minimum(upwards, 1) + rounded * k + LEAST)


def _product_error(machine: Machine, product: np.ndarray, size: np.ndarray, off: np.ndarray, u: float) -> np.ndarray:
    """Of a kernel of z'v; size: |z|'|v|, off: how far z'v may be off as z is."""
    error = off + (machine.dim + 2) * u * (size + off)  # v rounded, products, sums
    if machine.function == "linear":
        return error
    if machine.function == "fourier":
        turns = product + machine.turns
        error = error + u * (np.abs(machine.turns) + np.abs(turns))
        slope = np.minimum(np.abs(np.sin(2 * np.pi * turns)) + 2 * np.pi * error, 1)
        return np.asarray(np.minimum(2 * np.pi * slope * error, 2) + 4 * u)
    argument = np.abs(machine.gamma * product + machine.coef0)
    error = machine.gamma * error + 3 * u * (machine.gamma * np.abs(product) + abs(machine.coef0))
    if machine.function == "sigmoid":
        slope = np.cosh(np.maximum(argument - error, 0)) ** -2
        return np.asarray(np.minimum(slope * error, 2) + 4 * u * np.tanh(argument))
    reach = argument + error
    return np.asarray(reach**machine.degree - argument**machine.degree + machine.degree * u * reach**machine.degree)


def _normalised_error(
    machine: Machine, z: np.ndarray, lost: np.ndarray, k: np.ndarray, error: np.ndarray, u: float
) -> np.ndarray:
    """Of k(z, v) / sqrt(k(z, z) k(v, v)), k(z, v) off by error."""
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
    """What of the source is left out of the spec, and whether float32 is too coarse for it.

    Where weights are large and cancel out, as a Gaussian process without noise has them, their rounding is not small
    beside what they add up to.  What is said of it is a bound, for the inputs that the machine's vectors are.
    """
    found = list(machine.notes)
    if spec.precision != "float32" or machine.function == "custom" or not len(machine.vectors):
        return found
    count = len(machine.vectors)
    at = np.linspace(0, count - 1, min(count, SEEN, max(16, NOTED_VALUES // count)), dtype=int)
    vectors, x = machine.vectors[at], machine.inputs()[at]
    exact = machine.functions(vectors)
    held = x.astype(np.float32).astype(np.float64)
    # what rounding the inputs does is computed, here and there as badly as it can be; what it does to the rest is bounded
    half, rng = np.spacing(np.abs(held).astype(np.float32)).astype(np.float64) / 2, np.random.default_rng(0)
    inputs = [held, *(x + half * rng.choice((-1.0, 1.0), x.shape) for _ in range(8))]
    moved = np.max([np.abs(machine.functions(machine.scaled(rows)) - exact) for rows in inputs], axis=0)
    moved = (moved + device_bound(spec, held)).max(axis=0)
    # between them, too: those of a support vector machine lie where its value is 1, or 0
    between = machine.functions((vectors + np.roll(vectors, 1, axis=0)) / 2)
    spread = np.vstack([exact, between]).std(axis=0)
    with np.errstate(all="ignore"):
        worst = int(np.argmax(np.where(spread > 0, moved / spread, 0.0)))
    if spread[worst] > 0 and moved[worst] > COARSE * spread[worst]:
        which = "its vectors" if len(at) == count else f"{len(at):,} of its vectors"
        found.append(
            f"{machine.source}: float32 may move its values by up to {_above(moved[worst])} at {which}, around which they "
            f"vary by {spread[worst]:.2g}; use {option('precision')} float64, or fit it with more "
            "regularisation (a larger alpha, a smaller C)"
        )
    return found


def _above(value: float) -> str:
    """Two digits of a number that is no smaller."""
    text = f"{value:.2g}"
    return text if float(text) >= value else f"{value * 1.05:.2g}"
