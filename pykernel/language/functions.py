"""Read, type, check and specialise kernels: from source to typed representation."""

from __future__ import annotations

import functools

from pykernel.dialect import Kernel, Precision, ratio, reachable
from pykernel.language.check_types import check_types
from pykernel.language.effects import check_effects
from pykernel.language.ir import Functions
from pykernel.language.specialise import Specialised, specialise

_typed = functools.cache(check_types)
"""Return the typed representation of one kernel.  Results are cached, because many programs share their kernels."""


@functools.cache
def checked_functions(kernels: tuple[Kernel, ...]) -> Functions:
    """Return the typed representation of the kernels and of everything that they call.  Raises DialectError."""
    functions: Functions = {}
    for kernel in reachable((ratio, *kernels)):  # ``/`` becomes a call of ratio
        if kernel.intrinsic is None:
            if kernel.name in functions:
                raise TypeError(
                    f"two kernels have the name {kernel.name}: {functions[kernel.name].file} and {kernel.file}"
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
    """Return the functions that the roots need, specialised for the choices.  choices: (name, value) of each choice.
    fields: the fields that may be dropped.

    Models with the same choices share their functions, even if sizes and numbers differ.
    """
    return specialise(checked_functions(roots), [root.name for root in roots], dict(choices), precision, fields)
