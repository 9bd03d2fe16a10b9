"""The memory of a model: structs, configurations, and the positions of the fields in the bytes of the C struct."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.dialect.types import INTEGERS, PRECISIONS, Array, Index, Precision, Ranged, Real, Scalar, Uint8

_structs: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {}


def _intern(cls: type, fields: Mapping[str, Any]) -> None:
    """Register the class.  Raises TypeError if another class of the same name has other fields or is in another module.

    Numba distinguishes two named tuples by name and types only, so each name must have one meaning.
    """
    signature = (cls.__module__, tuple((name, str(kind)) for name, kind in fields.items()))
    if _structs.setdefault(cls.__name__, signature) != signature:
        raise TypeError(
            f"a struct called {cls.__name__} exists already in {_structs[cls.__name__][0]}; choose another name"
        )
    names = namedtuple(cls.__name__, list(fields))  # type: ignore[misc]
    views = type(cls.__name__, (Views, names), {"__module__": cls.__module__})
    views.__qualname__ = f"{cls.__qualname__}.views"
    cls.views = views  # type: ignore[attr-defined]


def fields_of(cls: type[Struct] | type[Config]) -> tuple[tuple[str, str], ...]:
    """Return the names and kinds of the fields, as text."""
    return _structs[cls.__name__][1]


class Views:
    """A struct's arrays or a configuration's numbers, as kernels take them: a named tuple that Numba passes by
    address.
    """

    @functools.cached_property
    def _table(self) -> np.ndarray:
        """Words of 8 bytes: the address and the shape of each array, and the value of each number."""
        words: list[Any] = []
        for value in self:  # type: ignore[attr-defined]
            if isinstance(value, np.ndarray):
                if not value.flags.c_contiguous:
                    raise ValueError("a field's elements are not contiguous in memory")
                words += [value.ctypes.data, *value.shape]
            elif isinstance(value, np.floating):
                words.append(int.from_bytes(value.tobytes().ljust(8, b"\0"), "little"))
            else:
                words.append(int(value) % 2**64)
        return np.array(words, np.uint64)

    @functools.cached_property
    def _address(self) -> int:
        return self._table.ctypes.data  # type: ignore[no-any-return]


class Struct:
    """Memory of a model.  A struct's fields are scalars (written ``s.n[0]`` in Python) and arrays of fixed capacity.

    ranges: field -> the range of the field's numbers, for fields that declare a range (see ``between``).
    after: field -> the name of a count; or the names of several counts, if each program has only one of them.  The
    field's numbers are zero while the program's count is 0.
    units: (field, parameter, power) for each field whose numbers are proportional to this power of a parameter.  When the
    parameter changes, a factor converts the field.
    soon: field -> its value, a number or a parameter, just before an event that takes too many samples for a self-test.
    """

    fields: dict[str, Array]
    units: tuple[tuple[str, str, int], ...] = ()
    soon: Mapping[str, Any] = {}
    scalars: frozenset[str]
    ranges: dict[str, Ranged]
    after: dict[str, str]
    views: type

    def __init_subclass__(cls) -> None:
        given = inspect.get_annotations(cls, eval_str=True)
        declared = {name: kind for name, kind in given.items() if isinstance(kind, Ranged)}
        cls.ranges = {name: kind for name, kind in declared.items() if kind.least is not None}
        cls.after = {name: kind.after for name, kind in declared.items() if kind.after}
        annotations = {name: kind.kind if isinstance(kind, Ranged) else kind for name, kind in given.items()}
        for name, kind in annotations.items():
            scalar = kind.scalar if isinstance(kind, Array) else kind
            if scalar not in (Real, *INTEGERS) or (isinstance(kind, Array) and ... in kind.extents):
                raise TypeError(
                    f"{cls.__name__}.{name}: a field must be Real, an integer type, or an array of one of these types with fixed extents"
                )
        if strange := sorted({name for name, _, _ in cls.units} - annotations.keys()):
            raise TypeError(f"{cls.__name__}: {strange[0]} is listed in 'units', but is not a field")
        cls.scalars = frozenset(name for name, kind in annotations.items() if isinstance(kind, Scalar))
        cls.fields = {name: kind[1] if isinstance(kind, Scalar) else kind for name, kind in annotations.items()}
        _intern(cls, annotations)


class Config:
    """Parameters: numbers, choices (IntEnum or bool), and tables of numbers that no kernel writes.

    In C, numbers become macros and tables become ``static const`` arrays.  Choices are fixed when the C code is
    generated.

    tunable: parameters that control learning and predictions, but do not change the meaning of the numbers in memory.
    A state stays valid when a tunable parameter changes.
    unseen: parameters that change the C code and its speed, but not the results.
    """

    fields: dict[str, Any]
    tunable: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    views: type

    def __init_subclass__(cls) -> None:
        cls.fields = inspect.get_annotations(cls, eval_str=True)
        for what in ("tunable", "unseen"):
            if strange := sorted(set(getattr(cls, what)) - set(cls.fields)):
                raise TypeError(f"{cls.__name__}: {strange[0]} is listed in '{what}', but is not a parameter")
        for name, kind in cls.fields.items():
            if isinstance(kind, Array):
                if kind.scalar not in (Real, *INTEGERS) or ... in kind.extents or len(kind.extents) > 2:
                    raise TypeError(
                        f"{cls.__name__}.{name}: a table must hold Real or integers, and must have one or two fixed extents"
                    )
            elif kind not in (Real, Index) and not is_choice(kind):
                raise TypeError(f"{cls.__name__}.{name}: a parameter must be Real, Index, bool, an IntEnum or a table")
        _intern(cls, cls.fields)
        cls.views.__reduce__ = _as_fixed  # type: ignore[method-assign,assignment]

    @classmethod
    def of(cls, precision: Precision, values: Mapping[str, Any], capacities: Mapping[str, int] | None = None) -> Any:
        """Return the parameters in the form that kernels take, rounded once to the precision.  Tables are copied and are
        read-only.

        Raises ValueError if a table's number does not fit in the precision or in the integer type, or if a table's
        shape differs from its extents for these capacities.  Without capacities, only the number of dimensions is
        compared.
        """

        def taken(name: str, kind: Any) -> Any:
            if not isinstance(kind, Array):
                return precision.real(values[name]) if kind is Real else int(values[name])
            given = np.asarray(values[name])
            shape = kind.shape(capacities) if capacities is not None else given.shape
            if given.shape != shape or given.ndim != len(kind.extents):
                raise ValueError(f"{cls.__name__}.{name} has shape {given.shape}; the shape of {kind} must be {shape}")
            dtype = kind.scalar.dtype(precision)
            with np.errstate(over="ignore"):
                table = np.array(given, dtype if kind.scalar is Real else np.int64, order="C")
            limits = np.finfo(dtype) if kind.scalar is Real else np.iinfo(dtype)
            # written with "not", so that NaN is refused
            if not ((table >= limits.min) & (table <= limits.max)).all():
                raise ValueError(f"{cls.__name__}.{name} holds a number that does not fit in {kind.scalar}")
            return table.astype(dtype)

        return _fixed(cls.views, *(taken(name, kind) for name, kind in cls.fields.items()))


Part = type[Struct] | type[Config]
"""A part of a model."""


class Model:
    """The structs and configurations (the parts) of a model under one name.

    In a kernel, ``m.v`` is the field v, whichever part has it.  A subclass names its own ``parts``, and also
    has the parts of its base classes.  A kernel may pass its model to a callee that expects only some of the parts.
    """

    parts: tuple[Part, ...] = ()
    owners: dict[str, Part]  # field -> the part that has it

    def __init_subclass__(cls) -> None:
        above = [part for base in cls.__mro__[1:] for part in vars(base).get("parts", ())]
        cls.parts = tuple(dict.fromkeys([*above, *vars(cls).get("parts", ())]))
        cls.owners = {}
        for part in cls.parts:
            for name in part.fields:
                if name in cls.owners:
                    raise TypeError(
                        f"{cls.__name__}: {cls.owners[name].__name__} and {part.__name__} have a field called {name}; rename one"
                    )
                cls.owners[name] = part


def parts_of(kind: Any) -> tuple[Part, ...]:
    """Return the structs and configurations that a parameter of this kind represents; an empty tuple for a number or an
    array.
    """
    if isinstance(kind, type) and issubclass(kind, Model):
        return kind.parts
    return (kind,) if isinstance(kind, type) and issubclass(kind, (Struct, Config)) else ()


def _as_fixed(views: Any) -> tuple[Any, ...]:
    return _fixed, (type(views), *views)


def _fixed(views: type, *values: Any) -> Any:
    """Return a configuration with read-only tables.

    Pickling and copying lose the read-only flag, and Numba treats a writable array as another type.
    """
    for value in values:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
    return views(*values)


def is_choice(kind: Any) -> bool:
    return isinstance(kind, type) and (kind is bool or issubclass(kind, IntEnum))


@dataclass(frozen=True)
class Slot:
    """The position of a field in the memory's bytes."""

    name: str
    array: Array
    scalar: bool
    shape: tuple[int, ...]
    offset: int
    nbytes: int
    struct: str  # the struct to which the field belongs; "" for padding


@dataclass(frozen=True)
class Layout:
    slots: tuple[Slot, ...]
    nbytes: int
    ends: dict[str, int]  # struct name -> offset of the first byte after the struct

    def dtype(self, precision: Precision) -> np.dtype:
        return np.dtype(
            {
                "names": [slot.name for slot in self.slots],
                "formats": [(slot.array.scalar.dtype(precision), slot.shape) for slot in self.slots],
                "offsets": [slot.offset for slot in self.slots],
                "itemsize": self.nbytes,
            }
        )


def layout(
    structs: Sequence[type[Struct]], precision: Precision, capacities: Mapping[str, int], drop: Iterable[str] = ()
) -> Layout:
    """Place the fields, one struct after the other.

    Within a struct, reals come first, then integers, with wider types before narrower ones.  Padding is a separate
    field, reserved_STRUCT.
    """
    return _layout(tuple(structs), precision, tuple(sorted(capacities.items())), frozenset(drop))


@functools.lru_cache(maxsize=256)
def _layout(
    structs: tuple[type[Struct], ...],
    precision: Precision,
    capacities: tuple[tuple[str, int], ...],
    dropped: frozenset[str],
) -> Layout:
    """Compute ``layout``.  Results are cached, because a search makes thousands of models with only a few different layouts."""
    slots: dict[str, Slot] = {}
    ends: dict[str, int] = {}
    offset, extents = 0, dict(capacities)

    def place(name: str, array: Array, scalar: bool, owner: str) -> None:
        nonlocal offset
        shape = array.shape(extents)
        size = int(np.prod(shape, dtype=np.int64)) * array.scalar.dtype(precision).itemsize
        if name in slots:
            raise TypeError(f"two structs of one model have a field called {name}; rename one")
        slots[name] = Slot(name, array, scalar, shape, offset, size, owner)
        offset += size

    for struct in structs:
        kept = {name: array for name, array in struct.fields.items() if name not in dropped}
        widths = {
            name: 8 if array.scalar is Real else array.scalar.dtype(precision).itemsize for name, array in kept.items()
        }
        for name in sorted(kept, key=lambda name: -widths[name]):  # fields of equal width keep their order
            place(name, kept[name], name in struct.scalars, struct.__name__)
        if missing := -offset % precision.alignment:
            narrow = Uint8[missing] if missing % 4 else Index[missing // 4]
            place(f"reserved_{struct.__name__.lower()}", narrow, missing == 4, "")
        ends[struct.__name__] = offset
    return Layout(tuple(slots.values()), offset, ends)


class Memory:
    """One model's bytes and the views that kernels work on.

    ``buffer`` is the C struct.  The generator drops fields that no code uses.  Such fields are listed in ``drop``
    and stored outside ``buffer``, so that the views keep their types and every kernel runs unchanged.

    ``lock`` is held while a kernel runs on the memory.  Each copy of the memory has its own lock.
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
        self.lock = threading.RLock()
        self._aside: dict[str, np.ndarray] = {}
        self._views: dict[type[Struct], Any] = {}
        for struct in structs:
            for name, array in struct.fields.items():
                if name not in self.buffer.dtype.names:  # type: ignore[operator]
                    self._aside[name] = np.zeros(array.shape(capacities), array.scalar.dtype(precision))

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

    def copy_from(self, other: Memory, structs: Iterable[type[Struct]] | None = None) -> None:
        """Copy the numbers of another memory.  structs: the structs to copy; None copies all."""
        for struct in self.structs if structs is None else structs:
            for name in struct.fields:
                self.field(name)[...] = other.field(name)

    def __getstate__(self) -> dict[str, Any]:
        fields = {name: np.array(self.field(name)) for struct in self.structs for name in struct.fields}
        return {"init": (self.structs, self.precision.name, self.capacities, list(self._aside)), "fields": fields}

    def __setstate__(self, state: dict[str, Any]) -> None:
        structs, precision, capacities, drop = state["init"]
        self.__init__(structs, PRECISIONS[precision], capacities, drop)  # type: ignore[misc]
        for name, value in state["fields"].items():
            self.field(name)[...] = value
