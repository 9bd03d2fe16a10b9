"""Kernels to their typed representation: read, typed, checked."""

from __future__ import annotations

import functools

from pykernel.dialect import Kernel, reachable
from pykernel.gen.check_types import check_types
from pykernel.gen.effects import check_effects
from pykernel.gen.ir import Functions


@functools.cache
def checked_functions(kernels: tuple[Kernel, ...]) -> Functions:
    """The typed representation of the kernels and of everything that they call.  Raises DialectError."""
    functions: Functions = {}
    for kernel in reachable(kernels):
        if kernel.intrinsic is None:
            if kernel.name in functions:
                raise TypeError(
                    f"two kernels are called {kernel.name}: {functions[kernel.name].file} and {kernel.file}"
                )
            functions[kernel.name] = check_types(kernel)
    check_effects(functions)
    return functions
