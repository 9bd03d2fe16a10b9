"""Types of the dialect: numbers, arrays whose sizes are named capacities, precisions, constants."""

from __future__ import annotations

import functools
import math
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

import numpy as np

INDEX_MAX = 2**31 - 1


@dataclass(frozen=True)
class Extent:
    """An array's size: an expression over capacities, such as ``DIM`` or ``DIM + 1``.  doc: a description of the size.

    public: whether the header defines the macro for the size even if no code reads this macro; true for sizes that users
    choose.
    """

    text: str
    doc: str = field(default="", compare=False)
    public: bool = field(default=False, compare=False)

    def __add__(self, other: int) -> Extent:
        return Extent(f"({self.text} + {int(other)})")

    def __sub__(self, other: int) -> Extent:
        return Extent(f"({self.text} - {int(other)})")

    def __mul__(self, other: Extent | int) -> Extent:
        return Extent(f"({self.text} * {other.text if isinstance(other, Extent) else int(other)})")

    def __floordiv__(self, other: int) -> Extent:
        return Extent(f"({self.text} // {int(other)})")

    @property
    def symbols(self) -> list[str]:
        return list(_read(self.text)[0])

    def value(self, capacities: Mapping[str, int]) -> int:
        symbols, code = _read(self.text)
        for name in symbols:
            if name not in capacities:
                raise KeyError(f"the capacity {name} has no value")
        return int(eval(code, {"__builtins__": {}}, dict(capacities)))


@functools.cache
def _read(text: str) -> tuple[tuple[str, ...], types.CodeType]:
    """Return the capacities that an expression names, and the compiled expression.  Results are cached, because every
    model evaluates the same expressions.
    """
    return tuple(re.findall(r"[A-Z_]+", text)), compile(text, "<extent>", "eval")


@dataclass(frozen=True)
class Array:
    """An array of elements of one scalar type.  An extent of ``...`` (one dimension only) accepts a vector of any length."""

    scalar: Scalar
    extents: tuple[Extent | int | types.EllipsisType, ...]

    def shape(self, capacities: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(e.value(capacities) if isinstance(e, Extent) else int(e) for e in self.extents)  # type: ignore[arg-type]

    def __str__(self) -> str:
        sizes = ("..." if e is ... else e.text if isinstance(e, Extent) else str(e) for e in self.extents)
        return f"{self.scalar}[{', '.join(sizes)}]"


@dataclass(frozen=True)
class Scalar:
    """A type of numbers.

    stored: NumPy's name for the type in memory, or "" for the type of the bound precision.
    wide: the type that a number has in expressions, if it differs from the type in memory.
    """

    name: str
    stored: str = ""
    wide: Scalar | None = None

    def __getitem__(self, extents: Any) -> Array:
        return Array(self, extents if isinstance(extents, tuple) else (extents,))

    def __str__(self) -> str:
        return self.name

    @property
    def value(self) -> Scalar:
        """The type that a number has in expressions, after it has been read from memory."""
        return self.wide or self

    def dtype(self, precision: Precision) -> np.dtype:
        return np.dtype(self.stored) if self.stored else precision.dtype


Real = Scalar("Real")
"""A floating-point number of the bound precision."""
Index = Scalar("Index", "<i4")
"""An int32: a count, a position, or any other integer in an expression.  Results must fit in int32."""
Bool = Scalar("Bool")
"""A truth value.  A Bool can be a local or a result, but not a field."""
Word = Scalar("Word", "<u4")
"""A uint32.  Results are taken modulo 2^32."""
Int = Scalar("Int", "<i4", Index)
"""An int32 field that is neither a count nor a position, such as a weight.  In expressions, an Int is an Index."""
Int8 = Scalar("Int8", "|i1", Index)
"""Int8, Int16, Uint8 and Uint16 exist only in memory.  A number is widened to an Index when it is read,
and the generator proves that every written number fits into its type.
"""
Int16 = Scalar("Int16", "<i2", Index)
Uint8 = Scalar("Uint8", "|u1", Index)
Uint16 = Scalar("Uint16", "<u2", Index)
INTEGERS = (Index, Int, Word, Int16, Uint16, Int8, Uint8)
"""All integer types, the widest first, which is the order of fields in memory."""


class Variable:
    """A type variable for kernels that several rules share.  ``substitute`` replaces it with an actual type."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


Bound = Union[Extent, float, str, "Constant"]
"""One end of a range."""


@dataclass(frozen=True)
class Ranged:
    """A field's type and the range of the field's numbers; see ``between``."""

    kind: Scalar | Array
    least: Bound | None
    most: Bound | None
    after: str = ""

    def __str__(self) -> str:
        return str(self.kind)


def between(kind: Scalar | Array, least: Bound | None, most: Bound | None, after: str = "") -> Any:
    """Return a field's type with its range, both ends included: ``n: between(Index, 0, N_MAX)``.

    An end is a number, a constant, a capacity, or the name of a parameter with an optional minus sign: "-reach".  For
    reals, an end may also be a product: "-2 * reach".

    Code that reads the field may rely on the range.  A state with a number outside the range is refused.  For integer
    fields, the generator proves that no number outside the range is ever written.
    after: the name of a field that is a count; or several names, separated by spaces, if each program has only one of
    these fields.  While the count is 0, all numbers of the field are 0, and any other state is refused.  If only
    ``after`` is needed, least and most are None.
    """
    return Ranged(kind, least, most, after)


def ends_of(ranged: Ranged, capacities: Mapping[str, int], config: Any, precision: Precision) -> tuple[Any, Any]:
    """Return the range of a field, for one model's capacities, parameters and precision."""
    return end_of(ranged.least, capacities, config, precision), end_of(ranged.most, capacities, config, precision)


def end_of(bound: Bound | None, capacities: Mapping[str, int], config: Any, precision: Precision) -> Any:
    """Return one end of a range."""
    if isinstance(bound, Extent):
        return bound.value(capacities)
    if isinstance(bound, Constant):
        return bound.value(precision)
    if isinstance(bound, str):
        factors = bound.removeprefix("-").split(" * ")
        values = [float(each) if each[0].isdigit() else getattr(config, each) for each in factors]
        value = values[0]
        if len(values) > 1:
            value = precision.real(min(math.prod(map(float, values)), float(np.finfo(precision.dtype).max)))
        return -value if bound.startswith("-") else value
    return bound


_extents: dict[str, Extent] = {}


def extent(name: str, doc: str, public: bool = False) -> Extent:
    """Return the capacity of this name; make it if it does not exist yet.  ``doc`` is the comment on the capacity's
    macro in C.
    """
    return _extents.setdefault(name, Extent(name, doc, public))


def extents() -> Mapping[str, Extent]:
    """Return all capacities that have been made so far, by name."""
    return _extents


DIM = extent("DIM", "number of inputs, D", public=True)
OUTPUTS = extent("OUTPUTS", "number of values that a prediction writes", public=True)
CLASSES = extent("CLASSES", "number of classes")


@dataclass(frozen=True)
class Precision:
    """The type of a model's numbers: a floating-point type to which ``Real`` is bound, or int16 for models without
    reals.
    """

    name: str
    dtype: np.dtype
    bits: int  # bits of the fraction
    bias: int  # bias of the exponent

    @property
    def is_int16(self) -> bool:
        """Whether models of this precision have no reals.  The inputs of such models are int16 numbers."""
        return self.dtype.kind == "i"

    @property
    def alignment(self) -> int:
        """Each struct's size in bytes is a multiple of this number."""
        return 4 if self.is_int16 else self.dtype.itemsize

    @property
    def real(self) -> type[np.floating]:
        return self.dtype.type  # type: ignore[return-value]

    @property
    def integer(self) -> type[np.signedinteger]:
        """The integer type of the same width, for float32 and float64."""
        return np.int32 if self.dtype.itemsize == 4 else np.int64

    def __str__(self) -> str:
        return self.name


FLOAT32 = Precision("float32", np.dtype("<f4"), 23, 127)
FLOAT64 = Precision("float64", np.dtype("<f8"), 52, 1023)
INT16 = Precision("int16", np.dtype("<i2"), 15, 0)
PRECISIONS = {p.name: p for p in (FLOAT32, FLOAT64, INT16)}
REALS = {p.name: p for p in (FLOAT32, FLOAT64)}
"""The precisions in which models have reals."""


class Constant:
    """A real, or a table of reals or integers.  Reals are rounded once to the bound precision.  A constant has one value, or
    one value for each precision.

    scalar: Real, or the type of a table's integers.
    """

    def __init__(self, value: Any = None, /, scalar: Scalar = Real, **by_precision: Any) -> None:
        self.by_precision = by_precision or {name: value for name in (REALS if scalar is Real else PRECISIONS)}
        self.scalar = scalar

    def value(self, precision: Precision) -> Any:
        if self.scalar is not Real:
            return np.asarray(self.by_precision[precision.name], self.scalar.dtype(precision))
        rounded = np.asarray(self.by_precision[precision.name], precision.dtype)
        return rounded if rounded.ndim else precision.real(rounded)

    def __neg__(self) -> Constant:
        return self * -1

    def __mul__(self, other: Constant | int) -> Constant:
        """Return the product as a constant.  The product can be used only as the end of a range, because it has no name
        in kernels.
        """
        factor = other.by_precision if isinstance(other, Constant) else dict.fromkeys(self.by_precision, other)
        return Constant(**{name: value * factor[name] for name, value in self.by_precision.items()})

    @property
    def is_table(self) -> bool:
        return np.ndim(next(iter(self.by_precision.values()))) > 0
