"""A custom kernel: a user's Python file that a spec names.

The file is executed only with the user's permission.  The kernel is checked before it is used.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.algorithms.kernel_choice import KernelConfig, custom_kernel
from pykernel.algorithms.tables import Vectors, custom_square, custom_values
from pykernel.dialect import DIM, Kernel, Memory, Precision, Real, reachable, substitute
from pykernel.dialect.program import Settings
from pykernel.engine.engines import make_executor
from pykernel.errors import UserError
from pykernel.files import read_plain

SIGNATURE = "(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real"
READS = ("gamma", "coef0", "degree")
"""The fields of the config q that a custom kernel may use."""
SIZE_LIMIT = 2**20
POINTS = 48
"""Number of rows in the sample on which symmetry, bounds and eigenvalues are checked.  The checks cost O(POINTS^2 D + POINTS^3)."""
NEGATIVE = 1e-6
"""How far an eigenvalue may be below zero in float64, as a fraction of the largest eigenvalue.  This tolerance allows
for rounding errors in the user's formula.  In float32, the tolerance is 100 machine epsilons.
"""


def load(
    folder: Path, source: str, name: str, announce: Callable[[str], None] | None = None, where: str = "spec"
) -> Kernel:
    """Return the kernel ``name`` that the file ``folder / source`` defines.  The file is EXECUTED, once for each version of
    its content.

    announce: called with the file's path before the file is executed.  Raises UserError if there is no such file or
    kernel, if the file raises an exception, or if a model cannot use the kernel.  The message is one sentence that
    begins with ``where`` or with the file's path.
    """
    path = folder / source
    try:
        whole = path.resolve(strict=True)
        if not whole.is_relative_to(folder.resolve()):
            raise UserError(
                f"{where}: [kernel] source {source} is outside the spec's folder; copy the file into that folder"
            )
        content = read_plain(whole, SIZE_LIMIT)
    except FileNotFoundError:
        raise UserError(
            f"{where}: [kernel] source is {source}, but the spec's folder has no such file; copy the file into that folder"
        ) from None
    except (OSError, RuntimeError) as error:  # RuntimeError: circular links
        raise UserError(
            f"{where}: [kernel] source {source} cannot be read ({getattr(error, 'strerror', None) or error}); give a plain .py file"
        ) from None
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} (from 0) is not UTF-8; save the file as UTF-8") from None
    if announce is not None:
        announce(str(path))
    return _loaded(str(path), name, content)


@functools.cache
def _loaded(path: str, name: str, content: bytes) -> Kernel:
    module = _executed(path, content)
    found = vars(module).get(name)
    if isinstance(found, Kernel) and found.intrinsic is None:
        # a process that unpickles the kernel executes ``content`` again
        found.rebuild = (_loaded, (path, name, content))
        judge_source(found)
        return found
    there = sorted(n for n, value in vars(module).items() if isinstance(value, Kernel) and str(value.file) == path)
    if found is not None and name not in there:
        raise UserError(f"{path}: {name} is not a kernel of the dialect; write @kernel above def {name}{SIGNATURE}")
    raise UserError(
        f"{path}: there is no kernel {name}; "
        + (f"the file has {', '.join(there)}" if there else "no function is marked @kernel")
    )


@functools.cache
def _executed(path: str, content: bytes) -> types.ModuleType:
    """Execute the file as a separate module, so that files with the same name, or versions of one file, do not clash."""
    # the module's name depends only on the content, so that Numba finds the compiled code again even if the file was moved
    digest = hashlib.sha256(content).hexdigest()[:16]
    module = types.ModuleType(f"pykernel_custom_{digest}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    try:
        exec(compile(content, path, "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        del sys.modules[module.__name__]
        if not isinstance(error, (Exception, SystemExit)):
            raise  # Ctrl-C
        raise UserError(_why(path, error)) from None
    for value in vars(module).values():
        if isinstance(value, Kernel) and str(value.file) == path:
            # the text that was executed; the file may have changed since then
            value.source = content.replace(b"\r\n", b"\n")
    return module


def _why(path: str, error: BaseException) -> str:
    """Return one sentence that says what went wrong when a file was compiled or executed."""
    if isinstance(error, (SyntaxError, ValueError)) and not error.__traceback__.tb_next:  # type: ignore[union-attr]
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{path}{line}: is not Python: {_line(getattr(error, 'msg', None) or error)}; correct it"
    lines = [f":{step.lineno}" for step in traceback.extract_tb(error.__traceback__) if step.filename == path]
    line = lines[-1] if lines else ""
    return f"{path}{line}: raises {type(error).__name__}{f': {_line(error)}' if str(error) else ''} when it is executed; correct it"


def _line(message: Any) -> str:
    text = ascii(" ".join(str(message).split()))[1:-1]
    return text if len(text) <= 160 else text[:157] + "..."


# ----------------------------------------------------------------------------------------- checks of the source


@functools.cache
def judge_source(kernel: Kernel) -> None:
    """Refuse a kernel that has the wrong signature, writes to arrays, reads fields of q other than ``READS``, or calls ``kernel_value``."""
    from pykernel.language.functions import checked_functions
    from pykernel.language.ir import (
        DialectError,  # raised by the generator's reader, whose messages are the most precise
    )

    file, kinds = kernel.file, list(kernel.params.values())
    if kinds != [KernelConfig, Real[DIM], Real[DIM]] or kernel.returns != Real:
        raise UserError(f"{file}: {kernel.name} has the wrong signature; declare it as {kernel.name}{SIGNATURE}")
    try:
        parts = reachable([kernel])
        checked_functions((kernel,))
    except DialectError as error:
        raise UserError(str(error)) from None
    except (TypeError, SyntaxError) as error:
        raise UserError(f"{file}: {_line(error)}; correct it") from None
    if custom_kernel in parts:
        raise UserError(
            f"{file}: {kernel.name} calls kernel_value, which would call {kernel.name} again, in an endless recursion; call another kernel"
        )
    for part in parts:
        if part.intrinsic is not None:
            continue
        for step in dis.get_instructions(part.function.__code__):
            if step.opname == "STORE_SUBSCR":
                raise UserError(
                    f"{file}: {part.name} writes to an array; a kernel may only read arrays: use a local variable"
                )
            if (
                step.opname == "LOAD_ATTR"
                and KernelConfig in part.params.values()
                and step.argval in KernelConfig.fields
                and step.argval not in READS
            ):
                raise UserError(
                    f"{file}: {part.name} uses q.{step.argval}; a kernel may use only q.{', q.'.join(READS)}"
                )


# ----------------------------------------------------------------------------------------- checks of the values


def custom_gram(
    kernel: Kernel, config: Any, precision: Precision, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays of values of a user's kernel: k(a_i, b_j) with the shape (len(a), len(b)), and k(a_i, a_i) with
    the shape (len(a), 1).

    config: KernelConfig in ``precision``.  a, b: inputs, (rows, DIM), in ``precision``.  The kernel is called
    O(len(a) len(b)) times.  Raises DialectError for a kernel that the dialect does not allow.
    """
    memory = Memory((Vectors,), precision, {"N_MAX": len(b), "DIM": a.shape[1]})
    memory.field("vectors")[...] = b
    values, square = (substitute(each, {custom_kernel: kernel}) for each in (custom_values, custom_square))
    executor = make_executor([values, square], memory, Settings({KernelConfig: config}))
    found = np.zeros((len(a), len(b)), precision.dtype), np.zeros((len(a), 1), precision.dtype)
    for each, answers in zip((values, square), found, strict=True):
        executor.rows(a, np.zeros(len(a), np.int32), ask=each, answers=answers)
    return found


def judge_values(kernel: Kernel, config: Any, precision: Precision, reach: np.ndarray) -> None:
    """Refuse a function if a seeded sample of inputs shows that it is not a positive semidefinite kernel.

    On the sample, the function must be symmetric, finite and within the declared bound, and its Gram matrix must have
    no negative eigenvalues.  This is a test, not a proof.

    config: KernelConfig in ``precision``.  reach: the largest magnitude of each scaled input, (DIM,).  Raises UserError.
    """
    x, most, name = sample(reach).astype(precision.dtype), float(config.max_value), kernel.name
    try:
        gram, _ = custom_gram(kernel, config, precision, x, x)
    except (UserError, TypeError, ValueError) as error:
        raise UserError(f"{kernel.file}: {name} cannot be compiled: {_line(error)}; see docs/dialect.md") from None
    eps = float(np.finfo(precision.dtype).eps)
    wide = gram.astype(float)

    def at(i: int, j: int) -> str:
        return f"for inputs {_numbers(x[i])} and {_numbers(x[j])}" if i != j else f"if both inputs are {_numbers(x[i])}"

    def first(wrong: np.ndarray) -> tuple[int, int]:
        i, j = np.argwhere(wrong)[0]
        return int(i), int(j)

    if (wrong := ~np.isfinite(wide)).any():
        i, j = first(wrong)
        raise UserError(
            f"[kernel] {name} is {wide[i, j]:g} {at(i, j)}; it must be finite for all inputs within [input] max_abs"
        )
    if (wrong := np.diag(np.diag(wide) < 0)).any():
        i, j = first(wrong)
        raise UserError(f"[kernel] {name} is {wide[i, i]:g} {at(i, i)}; k(x, x) must not be negative")
    if (wrong := np.abs(wide) > most * (1 + 1e3 * eps)).any():
        i, j = first(np.abs(wide) == np.abs(wide).max())
        raise UserError(
            f"[kernel] max_value is {most:g}, but {name} is {wide[i, j]:g} {at(i, j)}; |k(a, b)| must not exceed max_value"
        )
    roots = np.sqrt(np.diag(wide))
    if (wrong := np.abs(wide - wide.T) > 1e3 * eps * np.maximum(np.abs(wide), roots[:, None] * roots)).any():
        i, j = first(wrong)
        raise UserError(
            f"[kernel] {name} is not symmetric: it is {wide[i, j]:g} {at(i, j)}, and {wide[j, i]:g} with the inputs swapped"
        )
    # scale the diagonal to 1, so that a kernel that grows with its inputs is checked at all scales
    used = np.diag(wide) > 1e6 * float(np.finfo(precision.dtype).tiny)
    if (wrong := np.abs(wide) > NEGATIVE * most)[~used].any():
        i, j = first(wrong & ~used[:, None])
        raise UserError(
            f"[kernel] {name} is not positive semidefinite: it is 0 {at(i, i)}, but {wide[i, j]:g} {at(i, j)}"
        )
    scaled = wide[np.ix_(used, used)] / roots[used][:, None] / roots[used]
    values = np.linalg.eigvalsh((scaled + scaled.T) / 2) if used.any() else np.zeros(1)
    if values[0] < -max(NEGATIVE, 100 * eps) * max(values[-1], 1.0) or np.abs(scaled).max(initial=0) > 1 + 1e3 * eps:
        raise UserError(
            f"[kernel] {name} is not positive semidefinite: the cosine-normalised Gram matrix of {len(values)} inputs has "
            f"eigenvalues from {values[0]:.3g} to {values[-1]:.3g}; none may be negative"
        )


def sample(reach: np.ndarray) -> np.ndarray:
    """Return inputs within their bounds, (POINTS, DIM): points near the origin, close neighbours of these points,
    points of many magnitudes, points at the limits, and the zero vector.
    """
    rng, dim = np.random.default_rng(20260), len(reach)
    unit = np.minimum(reach, 1.0)
    third = POINTS // 3
    normal = np.clip(rng.normal(size=(third, dim)), -1, 1) * unit
    near = normal[: third // 2] * (1 - 2.0**-6 * rng.random((third // 2, dim)))
    sizes = 10.0 ** rng.uniform(-4, 0, (third, 1))
    wide = rng.uniform(-1, 1, (third, dim)) * sizes * reach
    corners = rng.choice([-1.0, 1.0], (POINTS - 2 * third - third // 2 - 1, dim)) * reach
    return np.concatenate([normal, near, wide, corners, np.zeros((1, dim))])


def _numbers(x: np.ndarray) -> str:
    shown = ", ".join(f"{float(v):.4g}" for v in x[:4])
    return f"[{shown}{', ...' if len(x) > 4 else ''}]"
