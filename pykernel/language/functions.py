"""From kernels to their typed representation: read, typed, checked, and specialised."""

from __future__ import annotations

import functools

from pykernel.dialect import Kernel, Precision, ratio, reachable
from pykernel.language.check_types import check_types
from pykernel.language.effects import check_effects
from pykernel.language.ir import Functions
from pykernel.language.specialise import Specialised, specialise

_typed = functools.cache(check_types)
"""The typed representation of one kernel, which many programs share."""


@functools.cache
def checked_functions(kernels: tuple[Kernel, ...]) -> Functions:
    """The typed representation of the kernels and of everything that they call.  Raises DialectError."""
    functions: Functions = {}
    for kernel in reachable((ratio, *kernels)):  # what ``/`` becomes
        if kernel.intrinsic is None:
            if kernel.name in functions:
                raise TypeError(
                    f"two kernels are called {kernel.name}: {functions[kernel.name].file} and {kernel.file}"
                )
            functions[kernel.name] = _typed(kernel)
    check_effects(functions)
    return functions


@functools.lru_cache(maxsize=64)
def specialised_functions(
    roots: tuple[Kernel, ...],
    choices: tuple[tuple[str, int], ...],
    precision: Precision,
    fields: tuple[str, ...] = (),
) -> Specialised:
    """The functions that the roots need, for some choices: (name, value).  fields: those that may be dropped.

    Models with the same choices share their functions; sizes and numbers may differ.
    """
    return specialise(checked_functions(roots), [root.name for root in roots], dict(choices), precision, fields)
