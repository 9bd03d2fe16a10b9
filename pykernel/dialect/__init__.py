"""The dialect: typed Python that means the same in plain NumPy, in Numba and in generated C.

An algorithm is written once, as functions marked ``@kernel`` whose annotations give every type:

>>> class Line(Struct):
...     slope: Real[DIM]
>>> @kernel
... def predict(s: Line, x: Real[DIM]) -> Real:
...     y = real(0)
...     for j in range(len(x)):
...         y += s.slope[j] * x[j]
...     return y

``bind(predict, FLOAT32)`` gives the Numba function, ``bind(predict, FLOAT32, jit=False)`` the same on checked
NumPy scalars; ``pykernel.gen`` prints it as C.  State lives in one structured array (``allocate``) whose bytes are
the C struct's bytes.  ``docs/dialect.md`` lists what may be written.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import hashlib
import importlib
import inspect
import platform
import re
import shutil
import sys
import time
import types
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

INDEX_MAX = 2**31 - 1
SOURCES = {
    path.name: path.read_bytes().replace(b"\r\n", b"\n")
    for path in map(Path(__file__).with_name, ("__init__.py", "structs.py"))
}
"""What makes machine code of kernels, as it was when this process began."""

# ------------------------------------------------------------------------------------------------------- types


@dataclass(frozen=True)
class Extent:
    """An array's size: an expression over capacities, such as ``N_MAX`` or ``N_MAX + 1``; doc: what it counts."""

    text: str
    doc: str = field(default="", compare=False)

    def __add__(self, other: int) -> Extent:
        return Extent(f"({self.text} + {int(other)})")

    def __sub__(self, other: int) -> Extent:
        return Extent(f"({self.text} - {int(other)})")

    def __mul__(self, other: Extent | int) -> Extent:
        return Extent(f"({self.text} * {other.text if isinstance(other, Extent) else int(other)})")

    @property
    def symbols(self) -> list[str]:
        return re.findall(r"[A-Z_]+", self.text)

    def value(self, capacities: Mapping[str, int]) -> int:
        missing = [name for name in self.symbols if name not in capacities]
        if missing:
            raise KeyError(f"no value for the capacity {missing[0]}")
        return int(eval(self.text, {"__builtins__": {}}, dict(capacities)))


@dataclass(frozen=True)
class Array:
    """Elements of one scalar type; an extent of ``...`` (one dimension only) takes a vector of any length."""

    scalar: Scalar
    extents: tuple[Extent | int | types.EllipsisType, ...]

    def shape(self, capacities: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(e.value(capacities) if isinstance(e, Extent) else int(e) for e in self.extents)  # type: ignore[arg-type]

    def __str__(self) -> str:
        sizes = ("..." if e is ... else e.text if isinstance(e, Extent) else str(e) for e in self.extents)
        return f"{self.scalar}[{', '.join(sizes)}]"


@dataclass(frozen=True)
class Scalar:
    name: str

    def __getitem__(self, extents: Any) -> Array:
        return Array(self, extents if isinstance(extents, tuple) else (extents,))

    def __str__(self) -> str:
        return self.name


Real = Scalar("Real")
"""A floating-point number of the bound precision."""
Index = Scalar("Index")
"""A count or position: int32 in the state and in C; results must fit in int32."""
Bool = Scalar("Bool")
"""A truth value; a local or a result, never a field."""

_extents: dict[str, Extent] = {}


def extent(name: str, doc: str) -> Extent:
    """A capacity; ``doc`` stands beside its macro in C."""
    return _extents.setdefault(name, Extent(name, doc))


def extent_docs() -> dict[str, str]:
    return {name: known.doc for name, known in _extents.items()}


DIM = extent("DIM", "inputs")
N_MAX = extent("N_MAX", "the budget: most expansion vectors")
OUTPUTS = extent("OUTPUTS", "values that a prediction writes")
FEATURES = extent("FEATURES", "what the inputs are made into; each has a weight")
L_MAX = extent("L_MAX", "most samples that a training takes")
P_MAX = extent("P_MAX", "vectors of the basis")
M_MAX = extent("M_MAX", "rows of the reservoir")
PACKED = extent("PACKED", "numbers of a packed symmetric matrix")
CLASSES = extent("CLASSES", "what a label can be")
FUNCTIONS = extent("FUNCTIONS", "sums of kernel values that predictions are made of")
WEIGHTS = extent("WEIGHTS", "weights of an expansion vector")
ROWS = extent("ROWS", "expansion vectors, and one more if they are odd")
ROW = extent("ROW", "numbers of a vector and its weights in one row")


@dataclass(frozen=True)
class Precision:
    """What ``Real`` is bound to."""

    name: str
    dtype: np.dtype
    bits: int  # bits of the fraction
    bias: int  # of the exponent

    @property
    def real(self) -> type[np.floating]:
        return self.dtype.type  # type: ignore[return-value]

    @property
    def integer(self) -> type[np.signedinteger]:
        """The integer with as many bits."""
        return np.int32 if self.dtype.itemsize == 4 else np.int64

    def __str__(self) -> str:
        return self.name


FLOAT32 = Precision("float32", np.dtype("<f4"), 23, 127)
FLOAT64 = Precision("float64", np.dtype("<f8"), 52, 1023)
PRECISIONS = {p.name: p for p in (FLOAT32, FLOAT64)}


class Constant:
    """A real, or a table of reals, rounded once to the bound precision; one value or one for each precision."""

    def __init__(self, value: Any = None, /, **by_precision: Any) -> None:
        self.by_precision = by_precision or {name: value for name in PRECISIONS}

    def value(self, precision: Precision) -> Any:
        rounded = np.asarray(self.by_precision[precision.name], precision.dtype)
        return rounded if rounded.ndim else precision.real(rounded)

    @property
    def is_table(self) -> bool:
        return np.ndim(self.by_precision["float64"]) > 0


# ----------------------------------------------------------------------------------------------------- structs

_structs: dict[str, tuple[str, tuple]] = {}


def _intern(cls: type, fields: Mapping[str, Any]) -> None:
    """Numba tells two named tuples apart by name and types only: one name, one meaning."""
    signature = (cls.__module__, tuple((name, str(kind)) for name, kind in fields.items()))
    if _structs.setdefault(cls.__name__, signature) != signature:
        raise TypeError(
            f"a struct called {cls.__name__} exists already in {_structs[cls.__name__][0]}; choose another name"
        )
    names = namedtuple(cls.__name__, list(fields))  # type: ignore[misc]
    views = type(cls.__name__, (Views, names), {"__module__": cls.__module__})
    views.__qualname__ = f"{cls.__qualname__}.views"
    cls.views = views  # type: ignore[attr-defined]


class Views:
    """A struct's arrays or a configuration's numbers, as kernels take them: a named tuple that Numba takes by address."""

    @functools.cached_property
    def _table(self) -> np.ndarray:
        """For each array its address and shape, for each number itself, eight bytes each."""
        words: list[Any] = []
        for value in self:  # type: ignore[attr-defined]
            if isinstance(value, np.ndarray):
                if not value.flags.c_contiguous:
                    raise ValueError("a field's elements do not follow each other in memory")
                words += [value.ctypes.data, *value.shape]
            elif isinstance(value, np.floating):
                words.append(int.from_bytes(value.tobytes().ljust(8, b"\0"), "little"))
            else:
                words.append(int(value) % 2**64)
        return np.array(words, np.uint64)

    @functools.cached_property
    def _address(self) -> int:
        return self._table.ctypes.data  # type: ignore[no-any-return]

    @functools.cached_property
    def _struct_type(self) -> Any:
        from pykernel.dialect.structs import struct_type

        return struct_type(type(self).__name__, self._asdict())  # type: ignore[attr-defined]


class Struct:
    """Memory of a model: reals and indices, scalars (reached as ``s.n[0]``) or arrays of fixed capacity."""

    fields: dict[str, Array]
    scalars: frozenset[str]
    views: type

    def __init_subclass__(cls) -> None:
        annotations = inspect.get_annotations(cls, eval_str=True)
        for name, kind in annotations.items():
            scalar = kind.scalar if isinstance(kind, Array) else kind
            if scalar not in (Real, Index) or (isinstance(kind, Array) and ... in kind.extents):
                raise TypeError(
                    f"{cls.__name__}.{name}: a field is Real or Index, or an array of them with fixed extents"
                )
        cls.scalars = frozenset(name for name, kind in annotations.items() if isinstance(kind, Scalar))
        cls.fields = {name: kind[1] if isinstance(kind, Scalar) else kind for name, kind in annotations.items()}
        _intern(cls, annotations)


class Config:
    """Parameters: numbers, choices (IntEnum or bool), and tables of numbers that no kernel writes.

    In C, numbers are macros and tables ``static const``; choices are decided when it is generated.
    """

    fields: dict[str, Any]
    views: type

    def __init_subclass__(cls) -> None:
        cls.fields = inspect.get_annotations(cls, eval_str=True)
        for name, kind in cls.fields.items():
            if isinstance(kind, Array):
                if kind.scalar not in (Real, Index) or ... in kind.extents or len(kind.extents) > 2:
                    raise TypeError(
                        f"{cls.__name__}.{name}: a table is of Real or Index, with one or two fixed extents"
                    )
            elif kind not in (Real, Index) and not is_choice(kind):
                raise TypeError(f"{cls.__name__}.{name}: a parameter is Real, Index, bool, an IntEnum or a table")
        _intern(cls, cls.fields)
        cls.views.__reduce__ = _as_fixed  # type: ignore[method-assign,assignment]

    @classmethod
    def of(cls, precision: Precision, values: Mapping[str, Any], capacities: Mapping[str, int] | None = None) -> Any:
        """The parameters as kernels take them, rounded once to the precision; tables are copied and cannot be written.

        Raises ValueError for a table of another shape than its extents have with the capacities (without these, of
        another number of dimensions), or with numbers that the precision or int32 cannot hold.
        """

        def taken(name: str, kind: Any) -> Any:
            if not isinstance(kind, Array):
                return precision.real(values[name]) if kind is Real else int(values[name])
            given = np.asarray(values[name])
            shape = kind.shape(capacities) if capacities is not None else given.shape
            if given.shape != shape or given.ndim != len(kind.extents):
                raise ValueError(f"{cls.__name__}.{name} has shape {given.shape}; it must be {kind}, {shape}")
            with np.errstate(over="ignore"):
                table = np.array(given, precision.dtype if kind.scalar is Real else np.int64, order="C")
            largest = np.finfo(precision.dtype).max if kind.scalar is Real else INDEX_MAX
            # not "> largest": NaN must fail
            if not (np.abs(table) <= largest).all():
                raise ValueError(f"{cls.__name__}.{name} holds a number that does not fit in {kind.scalar}")
            return table if kind.scalar is Real else table.astype(np.int32)

        return _fixed(cls.views, *(taken(name, kind) for name, kind in cls.fields.items()))


def _as_fixed(views: Any) -> tuple[Any, ...]:
    return _fixed, (type(views), *views)


def _fixed(views: type, *values: Any) -> Any:
    """A configuration whose tables cannot be written: unpickled and copied ones could be, a type of its own to Numba."""
    for value in values:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return views(*values)


def is_choice(kind: Any) -> bool:
    return isinstance(kind, type) and (kind is bool or issubclass(kind, IntEnum))


@dataclass(frozen=True)
class Slot:
    """Where a field lies in the state's bytes."""

    name: str
    array: Array
    scalar: bool
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    struct: str  # the struct it belongs to; "" for padding


@dataclass(frozen=True)
class Layout:
    slots: tuple[Slot, ...]
    nbytes: int
    ends: dict[str, int]  # struct name -> offset of its first byte after the end

    def dtype(self, precision: Precision) -> np.dtype:
        return np.dtype(
            {
                "names": [slot.name for slot in self.slots],
                "formats": [
                    (precision.dtype if slot.array.scalar is Real else "<i4", slot.shape) for slot in self.slots
                ],
                "offsets": [slot.offset for slot in self.slots],
                "itemsize": self.nbytes,
            }
        )


def layout(
    structs: Sequence[type[Struct]], precision: Precision, capacities: Mapping[str, int], drop: Iterable[str] = ()
) -> Layout:
    """Place fields: struct by struct, reals first, then indices, padding spelt out as a field of its own."""
    slots: list[Slot] = []
    ends: dict[str, int] = {}
    offset, dropped = 0, frozenset(drop)

    def place(name: str, array: Array, scalar: bool, owner: str) -> None:
        nonlocal offset
        shape = array.shape(capacities)
        size = int(np.prod(shape, dtype=np.int64)) * (precision.dtype.itemsize if array.scalar is Real else 4)
        if any(slot.name == name for slot in slots):
            raise TypeError(f"two structs of one model have a field called {name}; rename one")
        slots.append(Slot(name, array, scalar, shape, offset, size, owner))
        offset += size

    for struct in structs:
        for kind in (Real, Index):
            for name, array in struct.fields.items():
                if array.scalar is kind and name not in dropped:
                    place(name, array, name in struct.scalars, struct.__name__)
        if offset % precision.dtype.itemsize:
            place(f"reserved_{struct.__name__.lower()}", Index[1], True, "")
        ends[struct.__name__] = offset
    return Layout(tuple(slots), offset, ends)


class Memory:
    """One model's bytes and the views that kernels work on.

    ``buffer`` is the C struct.  Fields in ``drop`` (which the generator found unused) live outside of it, so that the
    views keep their types and every kernel runs unchanged.
    """

    def __init__(
        self,
        structs: Sequence[type[Struct]],
        precision: Precision,
        capacities: Mapping[str, int],
        drop: Iterable[str] = (),
    ) -> None:
        self.structs, self.precision, self.capacities = tuple(structs), precision, dict(capacities)
        self.layout = layout(structs, precision, capacities, drop)
        self.buffer = np.zeros((), self.layout.dtype(precision))
        self._aside: dict[str, np.ndarray] = {}
        self._views: dict[type[Struct], Any] = {}
        for struct in structs:
            for name, array in struct.fields.items():
                if name not in self.buffer.dtype.names:  # type: ignore[operator]
                    kind = precision.dtype if array.scalar is Real else np.dtype("<i4")
                    self._aside[name] = np.zeros(array.shape(capacities), kind)

    def field(self, name: str) -> np.ndarray:
        return self._aside[name] if name in self._aside else self.buffer[name]

    def view(self, struct: type[Struct]) -> Any:
        if struct not in self._views:
            self._views[struct] = struct.views(*(self.field(name) for name in struct.fields))
        return self._views[struct]

    @property
    def bytes(self) -> memoryview:
        return self.buffer.reshape(1).view(np.uint8).data

    def clear(self) -> None:
        for struct in self.structs:
            for name in struct.fields:
                self.field(name)[...] = 0

    def copy_from(self, other: Memory) -> None:
        for struct in self.structs:
            for name in struct.fields:
                self.field(name)[...] = other.field(name)

    def __getstate__(self) -> dict[str, Any]:
        fields = {name: np.array(self.field(name)) for struct in self.structs for name in struct.fields}
        drop = list(self._aside)
        return {"init": (self.structs, self.precision.name, self.capacities, drop), "fields": fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        structs, precision, capacities, drop = state["init"]
        self.__init__(structs, PRECISIONS[precision], capacities, drop)  # type: ignore[misc]
        for name, value in state["fields"].items():
            self.field(name)[...] = value


# ----------------------------------------------------------------------------------------------------- kernels


@dataclass(eq=False)
class Kernel:
    """A function of the dialect.  ``driver`` functions loop over samples on the host; the generator never meets them."""

    function: types.FunctionType
    driver: bool = False
    inline: bool = True
    intrinsic: Callable[[Precision, bool], Callable] | None = None
    names: Mapping[str, Kernel] = field(default_factory=dict)  # what globals stand for, in place of the file's own
    params: dict[str, Any] = field(init=False)
    returns: Any = field(init=False)
    source: bytes = field(init=False, repr=False)
    # of a kernel that cannot be imported: what an unpickling process calls, and with what
    rebuild: tuple[Any, ...] | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        # now: the file may be edited while the process goes on with what it has read
        self.source = self.file.read_bytes().replace(b"\r\n", b"\n") if self.file.exists() else b""
        annotations = inspect.get_annotations(self.function, eval_str=True)
        self.returns = annotations.pop("return", None)
        self.params = annotations
        functools.update_wrapper(self, self.function)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.names:
            raise TypeError(f"{self.name} with other names cannot be pickled; pickle what it is made of")
        return self.rebuild or (_imported, (self.function.__module__, self.function.__qualname__))

    def renamed(self, names: Mapping[str, Kernel]) -> Kernel:
        """The same function, for which these globals stand for other kernels."""
        twin = object.__new__(Kernel)
        # not made anew, which would read a file that may have changed since
        twin.__dict__.update({**self.__dict__, "names": {**self.names, **names}})
        return twin

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def file(self) -> Path:
        return Path(self.function.__code__.co_filename)

    def globals_used(self) -> dict[str, Any]:
        space = {**self.function.__globals__, **self.names}
        return {name: space[name] for name in self._global_names if name in space}

    @functools.cached_property
    def _global_names(self) -> dict[str, None]:
        # not co_names: a field may have the name of a kernel
        code = dis.get_instructions(self.function.__code__)
        return dict.fromkeys(step.argval for step in code if step.opname == "LOAD_GLOBAL")

    def callees(self) -> list[Kernel]:
        return [value for value in self.globals_used().values() if isinstance(value, Kernel)]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"{self.name} is source for two runtimes; call bind({self.name}, FLOAT32) and use what it returns"
        )


def kernel(function: Callable) -> Kernel:
    """Mark a function of the dialect; every parameter and result needs an annotation."""
    return Kernel(function)  # type: ignore[arg-type]


def entry(function: Callable) -> Kernel:
    """Mark a kernel that is called from outside, or large: Numba compiles it once, everything else into its callers."""
    return Kernel(function, inline=False)  # type: ignore[arg-type]


def driver(function: Callable) -> Kernel:
    """Mark a host-only loop around kernels (calls from Python cost microseconds, calls inside do not)."""
    return Kernel(function, driver=True, inline=False)  # type: ignore[arg-type]


def intrinsic(implement: Callable[[Precision, bool], Callable]) -> Callable[[Callable], Kernel]:
    """Mark a function that each runtime brings itself: ``implement(precision, jit)`` here, ``runtime_c/NAME.h`` in C."""
    return lambda function: Kernel(function, intrinsic=implement)  # type: ignore[arg-type]


def real(value: float) -> float:
    """The number (a literal, or an Index) as a Real; replaced when a kernel is bound."""
    raise TypeError("real() is only for use inside kernels")


def _imported(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def substitute(k: Kernel, stand_ins: Mapping[Kernel, Kernel]) -> Kernel:
    """The kernel with each placeholder, wherever it is called on the way down, replaced; itself if none is.

    One kernel and one replacement give one result, so that it is compiled and checked once.
    """
    return _substituted(k, tuple(stand_ins.items()))


@functools.cache
def _substituted(k: Kernel, stand_ins: tuple[tuple[Kernel, Kernel], ...]) -> Kernel:
    for placeholder, own in stand_ins:
        if k is placeholder:
            return own
    called = {name: value for name, value in k.globals_used().items() if isinstance(value, Kernel)}
    names = {name: new for name, old in called.items() if (new := _substituted(old, stand_ins)) is not old}
    return k.renamed(names) if names else k


unroll = range
"""range, for a loop so short and so often run that C compilers are asked to write it out."""


def reachable(roots: Iterable[Kernel]) -> list[Kernel]:
    """Every kernel that the roots call, callees first."""
    order: list[Kernel] = []
    done: set[Kernel] = set()

    def visit(k: Kernel, path: tuple[Kernel, ...]) -> None:
        if k in path:
            raise TypeError(f"{k.name} calls itself; the dialect has no recursion")
        if k not in done:
            for callee in k.callees():
                visit(callee, (*path, k))
            done.add(k)
            order.append(k)

    for root in roots:
        visit(root, ())
    return order


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
        return repr(_structs[value.__name__][1])
    return repr(value) if isinstance(value, (bool, int, float)) else ""


# ----------------------------------------------------------------------------------------------------- binding


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
        return _checked(bound) if outermost else bound
    return _compile(k, bound, precision, outermost)


def _callable(callee: Kernel, caller: Kernel, precision: Precision) -> Callable:
    """A callee, for Numba: inlined, or compiled once and called by address."""
    bound = _bind(callee, precision, True, not callee.inline)
    if callee.inline or callee.intrinsic is not None:
        return bound
    from pykernel.dialect.structs import by_address

    return by_address(callee.name, bound, signature(callee, precision), f"{precision}_{_digest(callee)}")


@functools.cache
def _digest(k: Kernel) -> str:
    return hashlib.sha256(sources_digest([k]).encode()).hexdigest()[:20]


def _compile(k: Kernel, bound: types.FunctionType, precision: Precision, outermost: bool) -> Callable:
    import numba

    import pykernel.dialect.structs  # noqa: F401 - tells Numba how views are taken, before it meets one
    from pykernel.compile_cache import CompileCache

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
    from numba.core import types as nt

    from pykernel.dialect.structs import StructType

    real_type = nt.float32 if precision is FLOAT32 else nt.float64

    def numba_type(kind: Any, readonly: bool = False) -> Any:
        if kind is None:
            return nt.none
        if kind in (Real, Index, Bool):
            return {Real: real_type, Index: nt.int64, Bool: nt.boolean}[kind]
        if isinstance(kind, Array):
            return nt.Array(real_type if kind.scalar is Real else nt.int32, len(kind.extents), "C", readonly=readonly)
        if is_choice(kind):
            return nt.int64
        tables = issubclass(kind, Config)
        return StructType(kind.__name__, tuple((name, numba_type(f, tables)) for name, f in kind.fields.items()))

    return numba_type(k.returns)(*(numba_type(kind) for kind in k.params.values()))


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


# ------------------------------------------------------------------------------- plain execution, with checks


class Checked:
    """An array that refuses what would be undefined in C."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def _position(self, key: Any) -> tuple[int, ...]:
        position = key if isinstance(key, tuple) else (key,)
        for axis, i in enumerate(position):
            if type(i) is not int or not 0 <= i < self.array.shape[axis]:
                raise IndexError(f"position {key!r} in an array of shape {self.array.shape}")
        return position

    def __getitem__(self, key: Any) -> Any:
        value = self.array[self._position(key)]
        if isinstance(value, np.ndarray):
            return Checked(value)
        return int(value) if self.array.dtype.kind == "i" else value

    def __setitem__(self, key: Any, value: Any) -> None:
        position = self._position(key)
        value = int(value) if isinstance(value, IntEnum) else value
        wanted = int if self.array.dtype.kind == "i" else self.array.dtype.type
        if type(value) is not wanted or len(position) != self.array.ndim:
            raise TypeError(f"a {type(value).__name__} stored into an array of {self.array.dtype}")
        if wanted is int and not -INDEX_MAX - 1 <= value <= INDEX_MAX:
            raise OverflowError(f"{value} does not fit in int32")
        self.array[position] = value


def _checked(function: Callable) -> Callable:
    def wrap(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return Checked(value)
        if isinstance(value, tuple):
            return type(value)(*map(wrap, value)) if hasattr(value, "_fields") else tuple(map(wrap, value))
        return value

    @functools.wraps(function)
    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*map(wrap, args))

    return run


# ------------------------------------------------------------------------------------------------- intrinsics


def _jit(function: Callable) -> Callable:
    import numba

    return numba.njit(forceinline=True, error_model="numpy")(function)


def _pow2(precision: Precision, jit: bool) -> Callable:
    integer, number, bias, bits = precision.integer, precision.real, precision.bias, precision.bits
    if jit:
        return _jit(lambda k: integer(integer(k + bias) << bits).view(number))

    def plain(k: int) -> np.floating:
        if not -bias < k <= bias:
            raise OverflowError(f"pow2({k}) is not a normal {precision} number")
        return np.ldexp(number(1), k)

    return plain


@intrinsic(lambda precision, jit: _jit(lambda x: np.sqrt(x)) if jit else np.sqrt)
def sqrt(x: Real) -> Real:  # type: ignore[valid-type]
    """The correctly rounded square root."""


@intrinsic(lambda precision, jit: _jit(lambda x: abs(x)) if jit else abs)
def absolute(x: Real) -> Real:  # type: ignore[valid-type]
    """The magnitude |x|."""


@intrinsic(lambda precision, jit: _jit(lambda x: np.int64(x)) if jit else int)
def truncate(x: Real) -> Index:  # type: ignore[valid-type]
    """The integer part, rounded toward zero; |x| < 2^31 (undefined otherwise: guard before)."""


@intrinsic(_pow2)
def pow2(k: Index) -> Real:  # type: ignore[valid-type]
    """Two to the power k, exactly; k within the exponents of normal numbers."""
