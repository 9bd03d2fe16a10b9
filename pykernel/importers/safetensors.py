"""Files of named arrays as safetensors writes them: eight bytes of length, a JSON header, and the numbers.

Files are untrusted.  Nothing in them is executed.  The header gives the type, shape and bytes of each array; a file
whose numbers do not agree is refused.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np

from pykernel.importers.place import Place
from pykernel.spec.model import shown_value

HEADER_LIMIT, ARRAYS = 2**20, 10_000
"""Most bytes of a header, and most arrays of a file."""
TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",  # the upper half of an F32
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U8": "<u1",
    "BOOL": "|b1",
}
"""The types of arrays."""
FILE = Place("")
DAMAGED = "save it again with safetensors.torch.save_file"


def read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """The arrays of a file, by name.  Raises UserError, one sentence."""
    length = int.from_bytes(data[:8], "little")
    FILE.need(8 <= 8 + length <= len(data), f"is not a whole file of safetensors; {DAMAGED}")
    FILE.need(
        length <= HEADER_LIMIT, f"has a header of more than {HEADER_LIMIT:,} bytes; save the model's state_dict() alone"
    )
    try:
        header = json.loads(data[8 : 8 + length].decode(), object_pairs_hook=_once)
    except ValueError:
        raise FILE.error(f"has a header that is not JSON; {DAMAGED}") from None
    FILE.need(isinstance(header, dict), f"has a header that names no arrays; {DAMAGED}")
    header.pop("__metadata__", None)
    FILE.need(len(header) <= ARRAYS, f"holds more than {ARRAYS:,} arrays; save the model's state_dict() alone")
    numbers = memoryview(data)[8 + length :]
    arrays, taken = {}, []
    for name, about in header.items():
        kind, shape, (start, end) = _entry(name, about, len(numbers))
        array = np.frombuffer(numbers[start:end], kind).reshape(shape)
        arrays[name] = (array.astype("<u4") << 16).view("<f4") if about["dtype"] == "BF16" else array
        taken.append((start, end))
    # the format: without overlaps, and without bytes between
    adjacent = all(end == start for (_, end), (start, _) in pairwise(sorted(taken)))
    FILE.need(
        adjacent and sum(end - start for start, end in taken) == len(numbers),
        f"has arrays that overlap, or bytes that belong to none; {DAMAGED}",
    )
    return arrays


def _entry(name: str, about: Any, size: int) -> tuple[np.dtype[Any], list[int], list[int]]:
    """Type, shape and byte range of an array.  Raises an error if they do not agree."""
    FILE.need(
        isinstance(about, dict) and isinstance(about.get("dtype"), str),
        f"does not say of what type {shown_value(name)} is; {DAMAGED}",
    )
    named = f"{shown_value(name)} of type {shown_value(about['dtype'])}"
    FILE.need(about["dtype"] in TYPES, f"holds {named}; those that are read are {', '.join(TYPES)}")
    kind = np.dtype(TYPES[about["dtype"]])
    shape: Any = about.get("shape")
    offsets: Any = about.get("data_offsets")
    FILE.need(
        _whole(shape) and len(shape) <= 8 and _whole(offsets) and len(offsets) == 2,
        f"does not say which numbers {shown_value(name)} has; {DAMAGED}",
    )
    start, end = offsets
    FILE.need(
        start <= end <= size and end - start == math.prod(shape) * kind.itemsize and max(shape, default=0) <= size,
        f"says of {shown_value(name)} a shape that is not that of its bytes; {DAMAGED}",
    )
    return kind, shape, offsets


def _whole(values: Any) -> bool:
    """Whether values are a list of whole numbers from 0."""
    return isinstance(values, list) and all(type(value) is int and value >= 0 for value in values)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name twice")
    return dict(pairs)
