"""What the host computes of vectors with the device's own kernel values: the tables of a basis, and what a user's kernel is
judged by.  It is written here so that tables in the C do not depend on the machine that made them."""

from __future__ import annotations

from pykernel.algorithms.extents import N_MAX, PACKED
from pykernel.algorithms.kernel_choice import KernelConfig, custom_kernel, kernel_value
from pykernel.dialect import DIM, Index, Real, Struct, kernel, real, sqrt


class Vectors(Struct):
    """Some vectors."""

    vectors: Real[N_MAX, DIM]


class Factor(Struct):
    """L, L L' = K of the vectors, and a number on K's diagonal."""

    packed: Real[PACKED]  # row by row up to the diagonal, of which reciprocals are kept


@kernel
def factorise_vectors(v: Vectors, f: Factor, q: KernelConfig, least: Real, noise: Real) -> Index:
    """Write L.  Returns the first vector that depends on those before it, or -1.  O(N^2 D + N^3).

    noise: what is added to K's diagonal.

    A vector depends on the others if they express all of it but at most ``least`` of k(x, x).
    """
    dependent = -1
    row = 0
    for i in range(len(v.vectors)):
        rest = kernel_value(q, v.vectors[i], v.vectors[i]) + noise
        own = rest
        other = 0
        for j in range(i):
            total = kernel_value(q, v.vectors[i], v.vectors[j])
            for k in range(j):
                total -= f.packed[row + k] * f.packed[other + k]
            total *= f.packed[other + j]
            f.packed[row + j] = total
            rest -= total * total
            other += j + 1
        if not (rest > least * own):
            if dependent < 0:
                dependent = i
            rest = real(1)
        f.packed[row + i] = real(1) / sqrt(rest)
        row += i + 1
    return dependent


@kernel
def custom_values(v: Vectors, q: KernelConfig, x: Real[DIM], values: Real[N_MAX]) -> Index:
    """A user's k(x, v) for each vector v, as the user's function returns it.  O(N) of its calls."""
    for j in range(len(v.vectors)):
        values[j] = custom_kernel(q, x, v.vectors[j])
    return 0


@kernel
def custom_square(q: KernelConfig, x: Real[DIM], value: Real[1]) -> Index:
    """A user's k(x, x)."""
    value[0] = custom_kernel(q, x, x)
    return 0
