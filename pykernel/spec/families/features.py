"""Checks of [kernel] and of tables, and limits for linear models on features, shared by the families of kernel models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from pykernel.spec import kernel_settings, stages
from pykernel.spec.base import Spec
from pykernel.spec.family import Refuse

LEAST_RIDGE = {"float32": 1e-6, "float64": 1e-14}
"""Smallest ridge of a linear model on features, as a fraction of the largest k(x, x)."""


def never(where: str, message: str) -> NoReturn:
    """The ``Refuse`` for a spec that has already been accepted.  If it is called, there is a bug."""
    raise AssertionError(f"{where} {message}")


def largest_value(spec: Spec, refuse: Refuse = never) -> float:
    """Return the largest k(x, x).  Refuse input limits for which k(x, x) overflows."""
    return kernel_settings.bound(spec, refuse, kernel_settings.reach(spec))


def need_definite(spec: Spec, refuse: Refuse) -> float:
    """Refuse kernels that are not positive definite or cannot be computed.  Return the largest k(x, x)."""
    kernel_settings.validate(spec, refuse)
    if spec.kernel.function == "sigmoid":
        refuse(
            "[kernel] function",
            f'is "sigmoid", which is not positive definite; {spec.learning.rule} needs a positive definite kernel',
        )
    return largest_value(spec, refuse)


# ------------------------------------------------------------------------------------------ tables of [expansion]


def need_count(
    refuse: Refuse, key: str, values: Sequence[Any] | None, count: int, of: str, unit: str = "numbers"
) -> None:
    """Refuse a key of [expansion] unless it has ``count`` values.  of: what each value belongs to, such as "vector"."""
    if values is not None and len(values) != count:
        has, have = ("has", "have") if unit == "rows" else ("holds", "hold")
        refuse(f"[expansion] {key}", f"{has} {len(values)} {unit}; it must {have} {count}, one for each {of}")


def need_width(refuse: Refuse, key: str, rows: Sequence[Sequence[float]], width: int, of: str = "") -> None:
    """Refuse a table of [expansion] unless each row has ``width`` numbers.  of: text that the message adds after ``width``."""
    for i, row in enumerate(rows):
        if len(row) != width:
            refuse(f"[expansion] {key}", f"has {len(row)} numbers in row {i}; each row must have {width}{of}")


def need_vectors(spec: Spec, refuse: Refuse, most: float = math.inf) -> None:
    """Refuse vectors if one has the wrong length, or if there are more than ``most`` of them."""
    vectors = spec.expansion.vectors
    if len(vectors) > most:
        refuse("[expansion] vectors", f"has {len(vectors)} rows; it must have at most {most}")
    need_width(refuse, "vectors", vectors, spec.dim, ", one for each input")


def need_weights(spec: Spec, refuse: Refuse, width: int, functions: int) -> None:
    """Refuse weights unless they have a row for each vector, and a bias unless it has a number for each function."""
    tables = spec.expansion
    need_count(refuse, "weights", tables.weights, len(tables.vectors), "vector", "rows")
    need_width(refuse, "weights", tables.weights, width)
    need_count(refuse, "bias", tables.bias, functions, "function")


def need_sums(spec: Spec, refuse: Refuse, value: float, slope: float = 1.0, offset: float = 0.0) -> None:
    """Refuse weights for which a prediction f, or ``slope`` f + ``offset``, overflows.

    value: the largest magnitude that is multiplied by a weight.
    """
    most = kernel_settings.largest(spec.precision)
    with np.errstate(over="ignore"):
        sums = np.abs(np.array(spec.expansion.weights, float)).sum(0).max() * value
        sums += np.abs(spec.expansion.bias or 0.0).max()
        argument = sums * slope + offset
    if not argument <= most:
        refuse(
            "[expansion] weights",
            f"can make numbers in a prediction as large as {argument:g}; they must stay below {most:g} in {spec.precision}",
        )


# ------------------------------------------------------------------------------- recursive least squares on features


def coefficient_limit(spec: Spec, ridge: float, length: float) -> float:
    """An upper bound on the coefficients c: |c| <= |y| |z| / ridge for a least-squares solution, times a safety margin.

    y: labels.  z: feature vectors.  length: the largest |z|.  Logistic solutions stay far below the bound.
    """
    return 2.0**10 * stages.label_unit(spec) * max(1.0, length / ridge, 1 / math.sqrt(ridge))


def sum_limit(spec: Spec, ridge: float, length: float) -> float:
    """An upper bound on the elements of R, where R is a square root of the moment matrix.

    length: an upper bound on the norm of the feature vector.
    """
    return (2.0**14 if spec.precision == "float32" else 2.0**28) * (length + math.sqrt(ridge))


def need_threshold(spec: Spec, refuse: Refuse, threshold: float, least: dict[str, float]) -> None:
    """Refuse a residual threshold that would be lost in rounding errors.  least: the smallest allowed threshold for each precision."""
    if threshold < least[spec.precision]:
        refuse(
            "[reduction] ald_threshold",
            f"is {threshold:g}; it must be {least[spec.precision]:g} or more for {spec.precision}",
        )


def need_ridge(spec: Any, refuse: Refuse, value: float) -> None:
    """Refuse a ridge that is negligible compared with the features, or too large.  value: the largest k(x, x)."""
    ridge, part = spec.learning.ridge, LEAST_RIDGE[spec.precision]
    if not part * value <= ridge <= 1e12:
        refuse(
            "[learning] ridge",
            f"is {ridge:g}; it must be at least {part * value:.3g} ({part:g} of the largest k(x, x)) and at most 1e12 for {spec.precision}",
        )


def need_coefficients(spec: Any, refuse: Refuse, length: float, sums: float, size: int) -> None:
    """Refuse labels for which a sum of ``size`` products of coefficients and elements of R can overflow.

    length: the largest norm of a feature vector.  sums: the bound on the elements of R that ``sum_limit`` returns.
    """
    ridge = spec.learning.ridge
    limit = coefficient_limit(spec, ridge, length)
    if not limit * max(1.0, sums) * size <= kernel_settings.largest(spec.precision):
        refuse(
            "[label] max_abs",
            f"is {spec.label_max_abs:g}: with ridge {ridge:g}, coefficients can reach {limit:.3g}, so large that sums overflow "
            f"{spec.precision}; lower max_abs",
        )
