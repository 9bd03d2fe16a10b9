"""Vectors and rows of matrices: products, sums, copies, zeros.

Sums start with a given number and add element by element: another order would give other bits.
"""

from pykernel.dialect import Bool, Index, Real, kernel, real


@kernel
def plus_product(start: Real, a: Real[...], b: Real[...], n: Index) -> Real:
    """start + a'b.  O(n)."""
    total = start
    for i in range(n):
        total += a[i] * b[i]
    return total


@kernel
def minus_product(start: Real, a: Real[...], b: Real[...], n: Index) -> Real:
    """start - a'b.  O(n)."""
    total = start
    for i in range(n):
        total = total - a[i] * b[i]
    return total


@kernel
def add_multiple(out: Real[...], factor: Real, a: Real[...], n: Index) -> None:
    """Add factor times a to out.  O(n)."""
    for i in range(n):
        out[i] += factor * a[i]


@kernel
def multiply(a: Real[...], factor: Real, n: Index) -> None:
    """Multiply a by factor.  O(n)."""
    for i in range(n):
        a[i] = factor * a[i]


@kernel
def copy(a: Real[...], out: Real[...], n: Index) -> None:
    """Write a to out.  O(n)."""
    for i in range(n):
        out[i] = a[i]


@kernel
def zero(a: Real[...], n: Index) -> None:
    """Set a to zero.  O(n)."""
    for i in range(n):
        a[i] = real(0)


@kernel
def all_zero(a: Real[...], n: Index) -> Bool:
    """Whether all elements are zero.  O(n)."""
    for i in range(n):
        if a[i] != real(0):
            return False
    return True


@kernel
def empty_from(a: Real[...], first: Index, n: Index) -> Bool:
    """Whether all elements from number ``first`` on are zero; ``first`` may be any number, because it may have been
    read from storage."""
    for i in range(n):
        if i >= first and a[i] != real(0):
            return False
    return True
