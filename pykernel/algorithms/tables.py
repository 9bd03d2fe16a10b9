"""Values that the host computes from kernel values, with the same bits as the device: the tables of a basis, and the
numbers that check a user's kernel.  This code is written in the dialect, so that tables in the C code do not depend on
the machine that computed them."""

from pykernel.algorithms.extents import N_MAX, PACKED
from pykernel.algorithms.kernel_choice import KernelConfig, custom_kernel, kernel_value
from pykernel.algorithms.packed import factorise
from pykernel.dialect import DIM, Constant, Index, Real, Struct, kernel, real

BEYOND = Constant(float32=2.0**120, float64=2.0**1000)
"""A limit far above every element of a factor."""


class Vectors(Struct):
    """The vectors whose kernel values are computed."""

    vectors: Real[N_MAX, DIM]


class Factor(Struct):
    """The Cholesky factor L, where L L' = K.  K is the kernel matrix of the vectors, with a constant added to its
    diagonal."""

    packed: Real[PACKED]  # row by row up to the diagonal; diagonal elements are kept as reciprocals


@kernel
def factorise_vectors(v: Vectors, f: Factor, q: KernelConfig, least: Real, noise: Real) -> Index:
    """Write the factor L.  Returns the index of the first vector that depends on the vectors before it, or -1 if there
    is none.  O(N^2 D + N^3).

    noise: the constant that is added to K's diagonal.

    A vector depends on the vectors before it if its pivot in the factorisation is at most ``least`` times its element
    on K's diagonal.
    """
    row = 0
    for i in range(len(v.vectors)):
        for j in range(i + 1):
            f.packed[row + j] = kernel_value(q, v.vectors[i], v.vectors[j])
        f.packed[row + i] += noise
        row += i + 1
    factorise(f.packed, f.packed, len(v.vectors), real(0), least, real(0), real(0), BEYOND)
    row = 0
    for i in range(len(v.vectors)):
        if f.packed[row + i] == real(0):
            return i
        row += i + 1
    return -1


@kernel
def custom_values(v: Vectors, q: KernelConfig, x: Real[DIM], values: Real[N_MAX]) -> Index:
    """Write the user's k(x, v) for each vector v to ``values``, as the user's function returns it.  O(N) calls of the
    user's function."""
    for j in range(len(v.vectors)):
        values[j] = custom_kernel(q, x, v.vectors[j])
    return 0


@kernel
def custom_square(q: KernelConfig, x: Real[DIM], value: Real[1]) -> Index:
    """Write the user's k(x, x) to ``value``."""
    value[0] = custom_kernel(q, x, x)
    return 0
