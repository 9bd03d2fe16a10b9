"""Estimators in .skops files.

A file is loaded only if all types that it asks for belong to models that can be imported.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra
from pykernel.importers.sklearn import types
from pykernel.importers.steps import FILE
from pykernel.spec.model import shown_value
from pykernel.training.trained import FILE_LIMIT

try:
    import skops.io
except ImportError as error:
    raise MissingExtra("reading .skops files", "import") from error

SAVE = "save it with skops.io.dump"
SCHEMA_LIMIT, OBJECTS = 8 * 2**20, 20_000
"""Most bytes of the description of a file's objects, and most objects; a large pipeline has a few hundred objects."""
PLAIN = frozenset(
    """builtins.dict builtins.float builtins.int builtins.list builtins.slice builtins.str builtins.tuple builtins.bool
    numpy.dtype numpy.ndarray numpy.float64 numpy.float32 numpy.int64 numpy.int32 numpy.bool numpy.bool_ numpy.str_
    numpy.random.mtrand.RandomState sklearn.gaussian_process.kernels.Hyperparameter
    scipy.sparse._csr.csr_matrix scipy.sparse._csr.csr_array scipy.sparse._csc.csc_matrix scipy.sparse._csc.csc_array
    """.split()
)
"""Types of the attributes of models.  The types of the models themselves are in ``importers.sklearn.types``."""
UNUSED = ("_loss_function_", "closs", "score_func")
"""Attributes of scikit-learn's models that only training uses: functions, and losses in C. They are not loaded."""
NOTHING = {
    "__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": "null", "is_json": True,
}  # fmt: skip
"""How skops writes None."""
SKOPS_NODES = {
    "DTypeNode": ("numpy.dtype",),
    "DictNode": ("builtins.dict",),
    "JsonNode": ("builtins.",),
    "ListNode": ("builtins.list",),
    "NdArrayNode": ("numpy.",),
    "ObjectNode": ("sklearn.", "pykernel."),
    "RandomStateNode": ("numpy.random.mtrand.RandomState",),
    "SliceNode": ("builtins.slice",),
    "SparseMatrixNode": ("scipy.sparse.",),
    "TupleNode": ("builtins.tuple", "sklearn.gaussian_process.kernels.Hyperparameter"),
    "TypeNode": ("builtins.", "numpy."),
}
"""The ways in which skops may create objects, and the types for each.  None of them calls a function that the file
names; only a type's __setstate__ is called."""


def load_skops(data: bytes, trusted: Sequence[str]) -> Any:
    """The estimator in a .skops file.  Raises UserError before anything is loaded if it asks for another type.

    trusted: further types that it may ask for.
    """
    FILE.need(zipfile.is_zipfile(io.BytesIO(data)), f"is not a file that skops wrote; {SAVE}")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        FILE.need("schema.json" in archive.namelist(), f"is not a file that skops wrote; {SAVE}")
        about = _unpacked(archive, "schema.json", SCHEMA_LIMIT)
        own = types()
        schema, asked, files = json.loads(about), set(), []
        for count, node in enumerate(_objects(schema)):
            FILE.need(count < OBJECTS, f"holds more than {OBJECTS:,} objects; save the model without")
            kind, loader = f"{node.get('__module__')}.{node.get('__class__')}", str(node.get("__loader__"))
            makes = kind.startswith(SKOPS_NODES.get(loader, ()))
            FILE.need(
                kind in trusted or (makes and (kind in PLAIN or kind in own)),
                f"asks for {shown_value(kind if makes else f'{kind} ({loader})')}, which is not among the types that can be "
                "imported; if you trust the file's author, name it in trusted",
            )
            asked.add(kind)
            content = node.get("content")
            attributes = content.get("content") if isinstance(content, dict) else None
            if loader == "ObjectNode" and kind.startswith("sklearn.") and isinstance(attributes, dict):
                attributes.update((name, NOTHING.copy()) for name in UNUSED if name in attributes)
            # refuse references to objects by number: with a few objects that contain each other, skops would read an
            # object a huge number of times.  skops itself writes each object in full
            node.pop("__id__", None)
            if isinstance(node.get("file"), str):
                files.append((node["file"], loader))
        copy = _copy(archive, json.dumps(schema).encode(), files)
    return skops.io.loads(copy, trusted=sorted(asked))


def _objects(schema: Any) -> Iterator[dict[str, Any]]:
    """The objects in a schema."""
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if "__class__" in node or "__loader__" in node:
                yield node
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)


def _copy(archive: zipfile.ZipFile, about: bytes, files: Sequence[tuple[str, str]]) -> bytes:
    """A copy of the archive with only the files that objects ask for, after a check of their sizes and arrays."""
    out, left, done = io.BytesIO(), FILE_LIMIT - len(about), set()
    with zipfile.ZipFile(out, "w") as copy:
        copy.writestr("schema.json", about)
        for name, loader in files:
            content = _unpacked(archive, name, left)
            left -= len(content)  # counted again for each object that reads the file
            if loader == "SparseMatrixNode":
                with zipfile.ZipFile(io.BytesIO(content)) as parts:
                    for part in parts.namelist():
                        array = _unpacked(parts, part, left)
                        left -= len(array)
                        _require_array(array)
            elif loader == "NdArrayNode":
                _require_array(content)
            if name not in done:
                done.add(name)
                copy.writestr(name, content)
    return out.getvalue()


def _unpacked(archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """The content of a file in an archive.  No more bytes are unpacked than the archive declares."""
    info = archive.getinfo(name)
    FILE.need(info.file_size <= limit, f"unpacks to more than {FILE_LIMIT:,} bytes; no device holds such a model")
    # with other compression methods, Python unpacks everything at once
    FILE.need(
        info.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
        f"is packed by another method than zip's usual one; {SAVE}",
    )
    with archive.open(info) as file:
        return file.read(info.file_size)


def _require_array(content: bytes) -> None:
    """Raises an error unless the content is an .npy file of numbers or text with the number of bytes that its header
    gives.
    """
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    FILE.need(version in ((1, 0), (2, 0)), f"holds an array of a format that is not known; {SAVE}")
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(file)
    whole = math.prod(shape) * dtype.itemsize == len(content) - file.tell() and dtype.itemsize > 0
    plain = not dtype.hasobject and max(shape, default=0) <= len(content)
    FILE.need(whole and plain, "holds an array that is damaged; save it again")
