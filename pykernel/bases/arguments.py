"""Check the arguments for choosing a basis and for training.  A wrong argument raises UserError with a one-sentence message."""

from __future__ import annotations

import contextlib
import math
import operator
import os
from collections.abc import Collection
from numbers import Real
from typing import Any

import numpy as np

from pykernel.errors import UserError


def checked_count(value: Any, name: str, least: int, most: int | None = None) -> int:
    range_ = f"of {least} or more" if most is None else f"from {least} to {most:,}"
    try:
        count = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        count = None
    if count is None or count < least or (most is not None and count > most):
        raise UserError(f"{name} is {value!r}; it must be a whole number {range_}")
    return count


def checked_fraction(value: Any, name: str, least: float, least_text: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not least <= number < 1:
        raise UserError(f"{name} is {value!r}; it must be a number {least_text} and less than 1")
    return number


def checked_positive(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise UserError(f"{name} is {value!r}; it must be a number above zero")
    return float(value)


def checked_numbers(array: Any, what: str) -> np.ndarray:
    """Return the numbers as a float64 array.  All must be finite."""
    try:
        values = np.asarray(array, np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{what} must be numbers") from None
    if not np.isfinite(values).all():
        raise UserError(
            f"{what} must be finite numbers; there is a NaN or an infinity among them: leave out the rows that have one"
        )
    return values


def checked_table(
    table: Any,
    what: str,
    shape_text: str = "(rows, inputs)",
    shape: tuple[int | None, int | None] = (None, None),
    least: int = 0,
) -> np.ndarray:
    """Return a table of finite numbers, (rows, columns), in float64.

    shape_text: the required shape in words, for the error message.  shape: the required numbers of rows and columns; None
    allows any number that is at least ``least``.
    """
    values = checked_numbers(table, what)
    fits = values.ndim == 2 and all(
        count >= least if wanted is None else count == wanted for count, wanted in zip(values.shape, shape, strict=True)
    )
    if not fits:
        raise UserError(f"the shape of {what} is {values.shape}; it must be {shape_text}")
    return values


def checked_gram(matrix: Any, tolerance: float = 1e-6) -> np.ndarray:
    """Return the Gram matrix of samples, (l, l), in float64.

    tolerance: the largest allowed difference between the matrix and its transpose, as a fraction of the largest value.
    The default allows for rounding errors in float32.
    """
    gram = checked_table(matrix, "the Gram matrix", "(samples, samples), square", least=1)
    if gram.shape[0] != gram.shape[1]:
        raise UserError(f"the shape of the Gram matrix is {gram.shape}; it must be (samples, samples), square")
    skew = float(np.abs(gram - gram.T).max())
    if skew > tolerance * float(np.abs(gram).max()):
        raise UserError(
            f"the Gram matrix is not symmetric: values on the two sides of the diagonal differ by {skew:.3g}"
        )
    return gram


def need_choice(value: Any, name: str, choices: Collection[Any]) -> None:
    if value not in choices:
        told = ", ".join(str(choice) for choice in choices)
        raise UserError(f"{name} is {value!r}; it must be one of {told}")


def need_memory(size: int, memory: int, what: str, instead: str) -> None:
    """Raise UserError if ``what``, which takes ``size`` bytes, does not fit into ``memory`` bytes."""
    if size > memory:
        raise UserError(
            f"{what} takes {size / 2**20:,.0f} MB, but only {memory / 2**20:,.0f} MB are allowed; {instead}"
        )


def physical_memory() -> int | None:
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def need_machine(size: int, what: str, instead: str) -> None:
    """Raise UserError if ``what`` needs more memory than this machine has."""
    there = physical_memory()
    if there is not None and size > there:
        raise UserError(
            f"{what} takes about {size / 2**30:,.1f} GiB, and this machine has {there / 2**30:,.1f}; {instead}"
        )


def need_kernel(kernel: Any) -> None:
    if not hasattr(kernel, "gram"):
        kind = type(kernel).__name__
        raise UserError(f"kernel is a {kind}; it must be a MercerKernel, such as MercerKernel('gaussian', gamma=0.5)")
