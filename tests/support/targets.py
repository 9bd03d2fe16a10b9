"""The emulated microcontrollers of the tests, and which of them every run takes."""

from __future__ import annotations

from typing import Any

import pytest

EIGHT = ("cortex-m0plus", "cortex-m3", "cortex-m4f", "cortex-m7f", "cortex-m33f", "rv32imac", "rv32imc", "rv32imafc")
OFTEN = ("cortex-m0plus", "cortex-m4f")
"""Without an FPU and with one.  Of each target zig compiles a library first: some seconds."""


def rarely(*values: Any) -> Any:
    """Parameters of a test that run with --exhaustive alone."""
    return pytest.param(*values, marks=pytest.mark.exhaustive)


EACH_TARGET = [name if name in OFTEN else rarely(name) for name in EIGHT]
