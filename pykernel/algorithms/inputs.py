"""Checking inputs, and scaling them by constants."""

from pykernel.dialect import DIM, Bool, Config, Real, absolute, kernel, unroll


class InputConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.kernel_settings``."""

    rescales: bool  # whether inputs are scaled by constants
    input_center: Real[DIM]  # numbers that are subtracted from the inputs
    input_scale: Real[DIM]  # factors by which the inputs are multiplied after input_center is subtracted
    input_max_abs: Real  # largest |x_j| that is accepted
    ranged: bool  # whether each input has its own range
    input_low: Real[DIM]  # if each input has its own range: the smallest accepted value of each input
    input_high: Real[DIM]  # if each input has its own range: the largest accepted value of each input

    tunable = frozenset("input_max_abs ranged input_low input_high".split())


@kernel
def acceptable(q: InputConfig, x: Real[DIM]) -> Bool:
    """Whether every input is a number within its range."""
    if q.ranged:
        for j in range(len(x)):
            # not "if (.. < low or .. > high)": NaN must fail
            if not (x[j] >= q.input_low[j] and x[j] <= q.input_high[j]):
                return False
    else:
        for j in unroll(len(x)):
            # not "if (.. > limit)": NaN must fail
            if not (absolute(x[j]) <= q.input_max_abs):
                return False
    return True


@kernel
def rescale(q: InputConfig, x: Real[DIM], out: Real[DIM]) -> None:
    """(x - center) scale.  O(D)."""
    for j in range(len(x)):
        out[j] = (x[j] - q.input_center[j]) * q.input_scale[j]
