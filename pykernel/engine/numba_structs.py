"""Structs and configurations in Numba: each is one pointer to a table of its fields.  A field is a number, or the
address and shape of an array.

If structs were tuples of arrays, each call would have hundreds of arguments, and LLVM would take minutes.  The table
does not change while a kernel runs.  Loads from the table are marked as invariant, so LLVM does each load only once.
"""

from __future__ import annotations

import itertools
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)
from numba.np.arrayobj import populate_array

from pykernel.dialect import Array, Bool, Config, Index, Precision, Real, Views, Word, is_choice


class StructType(types.Type):
    """Numba's type of a struct or configuration.  fields: (name, Numba type) of each field, in the order of the table.
    places: dict that maps the name of each field to the position of its first word in the table.

    An array takes one word for its address and one for each dimension.
    """

    def __init__(self, name: str, fields: tuple[tuple[str, Any], ...]) -> None:
        words = [1 + kind.ndim if isinstance(kind, types.Array) else 1 for _, kind in fields]
        self.fields = dict(fields)
        self.places = dict(zip(self.fields, itertools.accumulate([0, *words]), strict=False))
        super().__init__(f"{name}({', '.join(f'{field}: {kind}' for field, kind in fields)})")


@register_model(StructType)
class StructModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: StructType) -> None:
        super().__init__(manager, kind, ir.IntType(8).as_pointer())


@typeof_impl.register(Views)  # type: ignore[untyped-decorator]
def typeof_views(views: Views, context: Any) -> StructType:
    known = vars(views)
    if "_struct_type" not in known:
        known["_struct_type"] = struct_type(type(views).__name__, views._asdict())  # type: ignore[attr-defined]
    return known["_struct_type"]  # type: ignore[no-any-return]


@unbox(StructType)  # type: ignore[untyped-decorator]
def unbox_struct(kind: StructType, views: Any, c: Any) -> NativeValue:
    number = c.pyapi.object_getattr_string(views, "_address")
    address = c.pyapi.long_as_ulonglong(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, ir.IntType(8).as_pointer()))


@infer_getattr
class StructAttributes(AttributeTemplate):
    key = StructType

    def generic_resolve(self, kind: StructType, attribute: str) -> Any:
        return kind.fields.get(attribute)


@lower_getattr_generic(StructType)  # type: ignore[untyped-decorator]
def field_of(context: Any, builder: Any, kind: StructType, pointer: Any, name: str) -> Any:
    field, word = kind.fields[name], kind.places[name]

    def load(position: int, of: Any) -> Any:
        at = builder.gep(pointer, [ir.Constant(ir.IntType(64), 8 * position)])
        value = builder.load(builder.bitcast(at, of.as_pointer()))
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if not isinstance(field, types.Array):
        return load(word, context.get_value_type(field))
    element, length = context.get_data_type(field.dtype), context.get_value_type(types.intp)
    size = context.get_abi_sizeof(element)
    shape = [load(word + 1 + axis, length) for axis in range(field.ndim)]
    strides = [length(size)]
    for extent in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], extent))
    array = context.make_array(field)(context, builder)
    populate_array(array, load(word, element.as_pointer()), shape, strides, size, None)
    return array._getvalue()


def struct_type(name: str, values: dict[str, Any]) -> StructType:
    """Return the type of a struct or configuration that holds these arrays and numbers."""

    def of(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return types.Array(_scalar(value.dtype), value.ndim, "C", readonly=not value.flags.writeable)
        return _scalar(np.dtype(type(value))) if isinstance(value, np.floating) else types.int64

    return StructType(name, tuple((field, of(value)) for field, value in values.items()))


def _scalar(dtype: np.dtype) -> Any:
    return numba.from_dtype(dtype)


def numba_type(kind: Any, precision: Precision, readonly: bool = False) -> Any:
    """Return Numba's type for a kind of the dialect.  readonly: whether an array is read-only, as in a configuration."""
    if kind is None:
        return types.none
    if kind in (Real, Index, Word, Bool):
        return {Real: _scalar(precision.dtype), Index: types.int64, Word: types.int64, Bool: types.boolean}[kind]
    if isinstance(kind, Array):
        return types.Array(_scalar(kind.scalar.dtype(precision)), len(kind.extents), "C", readonly=readonly)
    if is_choice(kind):
        return types.int64
    fields = {name: numba_type(field, precision, issubclass(kind, Config)) for name, field in kind.fields.items()}
    return StructType(kind.__name__, tuple(fields.items()))
