"""Kernels as callables: compiled by Numba and cached on disk, or plain Python that checks what C would not survive."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import platform
import shutil
import sys
import time
import types
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.dialect.interpreter import Checked, checked
from pykernel.dialect.kernels import Kernel, reachable, real
from pykernel.dialect.memory import Config, Struct, fields_of, is_choice
from pykernel.dialect.types import FLOAT32, Array, Bool, Constant, Index, Precision, Real

SOURCES = {
    str(path.relative_to(Path(__file__).parent)): path.read_bytes().replace(b"\r\n", b"\n")
    for path in sorted(Path(__file__).parent.rglob("*.py"))
}
"""What makes machine code of kernels, as it was when this process began."""


def sources_digest(roots: Iterable[Kernel]) -> str:
    """Digest of every file that the kernels and what they call were read from, of the globals that they use, and of
    what compiles them."""
    kernels = reachable(roots)
    parts = {(k.file.name, k.source) for k in kernels} | set(SOURCES.items())
    for k in kernels:
        # a constant, a choice or a struct may come from a file that holds no kernel
        values = {**k.globals_used(), **k.params}
        parts |= {(k.name, f"{name} = {_meaning(value)}".encode()) for name, value in values.items()}
    digest = hashlib.sha256()
    for name, content in sorted(parts):
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()


def _meaning(value: Any) -> str:
    """What compiled code holds of a global."""
    if isinstance(value, Kernel):
        return f"{value.function.__module__}.{value.function.__qualname__}"
    if isinstance(value, Constant):
        return repr([np.asarray(number, float).tolist() for number in value.by_precision.values()])
    if isinstance(value, type) and issubclass(value, IntEnum):
        return repr([(member.name, int(member)) for member in value])
    if isinstance(value, type) and issubclass(value, (Struct, Config)):
        return repr(fields_of(value))
    return repr(value) if isinstance(value, (bool, int, float)) else ""


def bind(k: Kernel, precision: Precision, jit: bool = True) -> Callable:
    """The kernel as a callable for one precision.

    With ``jit`` it is compiled by Numba, once for all capacities, from signatures that the annotations give, and
    cached on disk under a digest of every source it depends on.  Without, it runs as plain Python on NumPy scalars
    and arrays that refuse what C would not survive: negative or too large positions, results beyond int32.
    """
    return _bind(k, precision, jit, True)


@functools.cache
def _bind(k: Kernel, precision: Precision, jit: bool, outermost: bool) -> Callable:
    if k.intrinsic is not None:
        return k.intrinsic(precision, jit)
    if outermost:
        reachable([k])  # raises if one calls itself
    function = k.function
    space: dict[str, Any] = {"__builtins__": function.__globals__["__builtins__"], "__name__": function.__module__}
    for name, value in k.globals_used().items():
        if isinstance(value, Kernel):
            value = _callable(value, k, precision) if jit else _bind(value, precision, False, False)
        elif isinstance(value, Constant):
            value = value.value(precision) if jit or not value.is_table else Checked(value.value(precision))
        elif value is real:
            value = precision.real
        space[name] = value
    bound = types.FunctionType(function.__code__, space, function.__name__)
    bound.__qualname__ = f"{function.__qualname__}__{precision}"
    bound.__module__, bound.__doc__ = function.__module__, function.__doc__
    if not jit:
        return checked(bound) if outermost else bound
    return _compile(k, bound, precision, outermost)


def _callable(callee: Kernel, caller: Kernel, precision: Precision) -> Callable:
    """A callee, for Numba: inlined, or compiled once and called by address."""
    bound = _bind(callee, precision, True, not callee.inline)
    if callee.inline or callee.intrinsic is not None:
        return bound
    from pykernel.dialect.numba_structs import by_address

    return by_address(callee.name, bound, signature(callee, precision), f"{precision}_{_digest(callee)}")


@functools.cache
def _digest(k: Kernel) -> str:
    return hashlib.sha256(sources_digest([k]).encode()).hexdigest()[:20]


def _compile(k: Kernel, bound: types.FunctionType, precision: Precision, outermost: bool) -> Callable:
    import numba

    import pykernel.dialect.numba_structs  # noqa: F401 - tells Numba how views are taken, before it meets one
    from pykernel.dialect.compile_cache import CompileCache

    options = {"error_model": "numpy", "nogil": True}
    if not outermost:
        # inlined into what calls them, as C compilers do; three times slower otherwise
        return numba.njit(forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(bound)
    folder = _cache_folder(k)
    dispatcher = numba.njit(**options)(bound)
    if folder:
        dispatcher._cache = CompileCache(bound, folder)
    if not k.driver:
        dispatcher.compile(signature(k, precision))
        dispatcher.disable_compile()
        try:
            _verify_types(k, dispatcher, precision)
        except TypeError:
            # what is loaded from the cache is not verified again
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
            raise
    return dispatcher


def signature(k: Kernel, precision: Precision) -> Any:
    """The kernel's Numba signature, from its annotations."""
    return numba_type(k.returns, precision)(*(numba_type(kind, precision) for kind in k.params.values()))


def numba_type(kind: Any, precision: Precision, readonly: bool = False) -> Any:
    """What Numba calls a kind; arrays of a configuration are ``readonly``."""
    from numba.core import types as nt

    from pykernel.dialect.numba_structs import StructType

    real_type = nt.float32 if precision is FLOAT32 else nt.float64
    if kind is None:
        return nt.none
    if kind in (Real, Index, Bool):
        return {Real: real_type, Index: nt.int64, Bool: nt.boolean}[kind]
    if isinstance(kind, Array):
        return nt.Array(real_type if kind.scalar is Real else nt.int32, len(kind.extents), "C", readonly=readonly)
    if is_choice(kind):
        return nt.int64
    fields = {name: numba_type(f, precision, issubclass(kind, Config)) for name, f in kind.fields.items()}
    return StructType(kind.__name__, tuple(fields.items()))


def _verify_types(k: Kernel, dispatcher: Any, precision: Precision) -> None:
    """No callee may have been compiled for other types than it declares (a silent float64 would go unseen)."""
    from numba.core import types as nt

    for callee in reachable([k]):
        if callee.intrinsic or callee.driver:
            continue
        declared = signature(callee, precision)
        compiled: Any = dispatcher if callee is k else _bind(callee, precision, True, not callee.inline)
        for actual, overload in compiled.overloads.items():
            _verify_arithmetic(callee, overload, precision)
            for given, wanted in zip(actual, declared.args, strict=True):
                if isinstance(wanted, nt.Integer):
                    # an int32 field passed as it is: widening changes nothing
                    fits = isinstance(given, (nt.Integer, nt.IntegerLiteral, nt.IntEnumMember))
                else:
                    fits = nt.unliteral(given) == wanted or (  # type: ignore[attr-defined]
                        isinstance(wanted, nt.Array) and given.dtype == wanted.dtype
                    )
                if not fits:
                    raise TypeError(f"{k.name} calls {callee.name} with {given} where it declares {wanted}")


def _verify_arithmetic(k: Kernel, overload: Any, precision: Precision) -> None:
    """No operation may compute in another precision, as an untyped literal or an Index among reals makes Numba do."""
    from numba.core import types as nt

    # empty for what was loaded from the cache: it was verified when it was compiled
    for node, types_ in getattr(overload.type_annotation, "calltypes", {}).items():
        if getattr(node, "op", "") in ("binop", "inplace_binop", "unary"):
            for kind in (types_.return_type, *types_.args):
                if isinstance(kind, nt.Float) and kind.bitwidth != precision.dtype.itemsize * 8:
                    raise TypeError(
                        f"{k.file.name}:{node.loc.line}: {k.name} computes in {kind} where Real is {precision}; "
                        "write literals and indices as real(...)"
                    )


@functools.cache
def _cache_folder(k: Kernel) -> Path | None:
    """A folder of its own for each state of the sources: Numba sees neither callees' files nor globals change."""
    import numba
    import platformdirs

    if not all(each.source for each in reachable([k])):  # typed in at a prompt
        return None
    versions = f"{sys.version}{numba.__version__}{np.__version__}{platform.machine()}"
    digest = hashlib.sha256((versions + sources_digest([k])).encode()).hexdigest()[:20]
    root = platformdirs.user_cache_path("pykernel") / "numba"
    folder = root / digest
    try:
        fresh = not folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (folder / ".used").touch()
        if fresh:
            _forget_old(root)
    except OSError:  # a read-only home: compile again in each process
        return None
    return folder


def _forget_old(root: Path, days: float = 30) -> None:
    for old in root.iterdir():
        with contextlib.suppress(OSError):  # somebody else's, or removed by another process
            if (old / ".used").stat().st_mtime < time.time() - days * 86400:
                shutil.rmtree(old, ignore_errors=True)
