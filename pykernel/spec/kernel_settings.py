"""The kernel and the scaling of a spec: checks, and the parameters of ``kernel_choice``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pykernel.algorithms.kernel_choice import KERNEL_RULES, Reach
from pykernel.spec.base import Spec
from pykernel.spec.family import Refuse
from pykernel.spec.sections import SQUARED, StandardisedInput

FUNCTIONS = {name: rule.number for name, rule in KERNEL_RULES.items()}
MATERN_UNITS = {name: rule.length for name, rule in KERNEL_RULES.items() if rule.length is not None}
"""Kernel -> the gamma for which its length scale is 1.  Only kernels that are functions of gamma |a - b| have an entry."""
MATERN = tuple(MATERN_UNITS)
INDEFINITE = tuple(name for name, rule in KERNEL_RULES.items() if not rule.definite)
"""Kernels that are not positive definite."""
HIDDEN = tuple(name for name, rule in KERNEL_RULES.items() if rule.hidden)
"""Kernels that are functions of a'b and of each vector's offset: units of a network's hidden layer, and random features."""
ACTIVATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fourier": lambda turns: np.cos(2 * np.pi * turns),
    "relu": lambda t: np.maximum(t, 0.0),
    "tanh": np.tanh,
    "logistic": lambda t: 0.5 + 0.5 * np.tanh(t / 2),
    "identity": lambda t: t,
}
"""Name in ``HIDDEN`` -> its function of a'b + offset, in float64."""
UNIT = tuple(name for name, rule in KERNEL_RULES.items() if rule.unit)
"""Kernels with k(x, x) = 1 for every x."""


def largest(precision: str) -> float:
    """Return the limit on intermediate results, which is several orders of magnitude below overflow."""
    return 1e300 if precision == "float64" else 1e35


def validate(spec: Spec, refuse: Refuse) -> None:
    """Refuse kernels with missing, superfluous or out-of-range keys, and scalings of the wrong length."""
    validate_function(spec, refuse)
    validate_scaling(spec, refuse)


def validate_function(spec: Spec, refuse: Refuse) -> None:
    """Refuse kernels with missing, superfluous or out-of-range keys."""
    rule, kernel = spec.learning.rule, spec.kernel
    if kernel is None:
        refuse("[kernel]", f'is missing; {rule} needs a kernel, such as function = "gaussian" with sigma')
    if kernel.sigma is not None and kernel.gamma is not None:
        refuse("[kernel]", "has both sigma and gamma, which is 1 / (2 sigma^2); leave one of them out")
    if kernel.function == "gaussian" and kernel.sigma is None and kernel.gamma is None:
        refuse("[kernel]", "has neither sigma nor gamma; a gaussian kernel must have one of them")
    if kernel.function in HIDDEN and not spec.has("expansion", "offsets"):
        refuse(
            "[kernel] function",
            f"is {kernel.function}, which only models with trained vectors can have; {rule} needs a positive definite kernel"
            + (" (rff-rls learns with random Fourier features)" if kernel.function == "fourier" else ""),
        )
    if kernel.gamma is None and kernel.function not in (*HIDDEN, "gaussian", "linear", "custom"):
        refuse("[kernel] gamma", f"is missing; a {kernel.function} kernel must have it")
    low, high = SQUARED.ends(spec.precision)
    for key, top in (("sigma", high), ("gamma", high), ("alpha", high), ("max_value", largest(spec.precision))):
        value = getattr(kernel, key)
        if value is not None and not low <= value <= top:
            refuse(f"[kernel] {key}", f"is {value:g}; it must be from {low:g} to {top:g} for {spec.precision}")
    if abs(kernel.coef0) > high:
        refuse("[kernel] coef0", f"is {kernel.coef0:g}; its magnitude must be at most {high:g} for {spec.precision}")


def validate_scaling(spec: Spec, refuse: Refuse) -> None:
    """Refuse a center or a scale that has the wrong length, or numbers beyond the precision's limits."""
    low, high = SQUARED.ends(spec.precision)
    for key, values in zip(("center", "scale"), spec.scaling, strict=True):
        if values is not None and len(values) != spec.dim:
            refuse(f"[input] {key}", f"holds {len(values)} numbers; it must hold {spec.dim}, one for each input")
        if values is not None and max(map(abs, values)) > high:
            refuse(
                f"[input] {key}",
                f"holds {max(map(abs, values)):g}; magnitudes must be at most {high:g} for {spec.precision}",
            )
    _, scale = spec.scaling
    if scale is not None and min(map(abs, scale)) < low:
        refuse("[input] scale", f"holds {min(map(abs, scale)):g}; magnitudes must be at least {low:g}")


def reach(spec: Spec) -> np.ndarray:
    """Return upper bounds on the magnitudes of the scaled inputs, (DIM,)."""
    if isinstance(spec.input, StandardisedInput) and spec.input.standardise:
        return np.full(spec.dim, spec.input.clip)
    given, factors = spec.scaling
    center = np.zeros(spec.dim) if given is None else np.array(given)
    scale = np.ones(spec.dim) if factors is None else np.array(factors)
    limits = np.array(spec.input.max_abs, float)
    return np.asarray((limits if limits.ndim else limits + np.abs(center)) * np.abs(scale))


def bound(spec: Spec, refuse: Refuse, vectors: np.ndarray) -> float:
    """Return an upper bound on |k(x, v)| for all inputs x within the limit and all vectors v within ``vectors``.

    Refuse an input limit with which a kernel value or an intermediate result could overflow.

    vectors: the largest magnitude of each element of v, (DIM,).
    """
    kernel, own = spec.kernel, reach(spec)
    assert kernel is not None
    offset = kernel.coef0
    if kernel.function in HIDDEN:
        offset = max(map(abs, spec.expansion.offsets or (0.0,)))  # type: ignore[union-attr]
    with np.errstate(over="ignore"):
        square = float(np.sum((own + vectors) ** 2))
        product = float(np.sum(own * vectors))
        if kernel.normalise:  # k(x, x) and k(v, v) are computed, too
            product = max(product, float(np.sum(own**2)), float(np.sum(vectors**2)))
        within = Reach(
            square, float(np.sum(own + vectors)), product, kernel.gamma or 1.0, offset, kernel.degree,
            kernel.max_value or 1.0,
        )  # fmt: skip
        rule = KERNEL_RULES[kernel.function]
        value = rule.most(within)
        step = max(rule.step(within), value)
        if kernel.normalise:
            step, value = max(step, value * value), 1.0  # k(a, a) k(b, b)
    if not step <= largest(spec.precision):
        refuse(
            "[input] max_abs",
            f"is {spec.input_max_abs:g}, with which a {kernel.function} kernel can overflow {spec.precision}; lower max_abs",
        )
    return value


def rate(spec: Spec) -> float:
    """Return gamma / ln 2.  If the kernel has sigma instead of gamma, gamma is 1 / (2 sigma^2)."""
    kernel = spec.kernel
    assert kernel is not None
    gamma = 0.5 / kernel.sigma / kernel.sigma if kernel.sigma is not None else kernel.gamma or 0.0
    return gamma / math.log(2)


def input_parameters(spec: Spec) -> dict[str, Any]:
    """Values of InputConfig's fields, in float64."""
    center, scale = spec.scaling
    low, high = spec.input_ranges
    return {
        "rescales": center is not None or scale is not None,
        "input_center": center if center is not None else np.zeros(spec.dim),
        "input_scale": scale if scale is not None else np.ones(spec.dim),
        "input_max_abs": spec.input_max_abs,
        "ranged": isinstance(spec.input.max_abs, tuple),
        "input_low": low,
        "input_high": high,
    }


def parameters(spec: Spec) -> dict[str, Any]:
    """Values of KernelConfig's and InputConfig's fields, in float64."""
    kernel = spec.kernel
    assert kernel is not None
    fades = KERNEL_RULES[kernel.function].fades
    return input_parameters(spec) | {
        "function": FUNCTIONS[kernel.function],
        "normalises": kernel.normalise,
        "unit": kernel.normalise or kernel.function in UNIT,
        "gamma": 0.0 if fades else kernel.gamma or (1.0 if kernel.function == "custom" else 0.0),
        "rate": rate(spec) if fades else 0.0,
        "exponent": kernel.alpha,
        "coef0": kernel.coef0,
        "degree": kernel.degree,
        "max_value": kernel.max_value or 0.0,
    }
