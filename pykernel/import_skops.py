"""Estimators in .skops files, loaded only if all types that a file asks for are those of models."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any

from pykernel.errors import MissingExtra, UserError
from pykernel.machine import FILE_LIMIT
from pykernel.spec import _shown

try:
    import skops.io
except ImportError as error:
    raise MissingExtra("reading .skops files", "import") from error

SKOPS_TYPES = frozenset(
    """builtins.dict builtins.float builtins.int builtins.list builtins.str builtins.tuple builtins.bool
    numpy.ndarray numpy.float64 numpy.float32 numpy.int64 numpy.int32 numpy.bool numpy.bool_ numpy.str_
    numpy.random.mtrand.RandomState
    scipy.sparse._csr.csr_matrix scipy.sparse._csr.csr_array scipy.sparse._csc.csc_matrix scipy.sparse._csc.csc_array
    sklearn.pipeline.Pipeline
    sklearn.preprocessing._data.MaxAbsScaler sklearn.preprocessing._data.MinMaxScaler
    sklearn.preprocessing._data.RobustScaler sklearn.preprocessing._data.StandardScaler
    sklearn.svm._classes.NuSVC sklearn.svm._classes.NuSVR sklearn.svm._classes.OneClassSVM
    sklearn.svm._classes.SVC sklearn.svm._classes.SVR
    sklearn.kernel_ridge.KernelRidge
    sklearn.gaussian_process._gpr.GaussianProcessRegressor
    sklearn.gaussian_process.kernels.ConstantKernel sklearn.gaussian_process.kernels.Product
    sklearn.gaussian_process.kernels.RBF sklearn.gaussian_process.kernels.Sum
    sklearn.gaussian_process.kernels.WhiteKernel sklearn.gaussian_process.kernels.Hyperparameter
    pykernel.kernel_machines.KernelFisherClassifier pykernel.kernel_machines.KernelRidgeClassifier
    pykernel.kernel_machines.KernelRidgeRegressor pykernel.kernel_machines.LSSVMClassifier
    pykernel.kernel_machines.LSSVMRegressor
    pykernel.basis.Basis pykernel.gram.MercerKernel pykernel.reduced.ReducedModel""".split()
)
"""What a .skops file may ask for: the estimators that are taken over, and what their attributes are."""
SKOPS_NODES = frozenset(
    "CachedNode DictNode JsonNode ListNode NdArrayNode ObjectNode RandomStateNode SparseMatrixNode TupleNode TypeNode".split()
)
"""How skops may make objects of it: none of these calls what the file names, other than a type's own __setstate__."""


def load_skops(data: bytes, trusted: Sequence[str]) -> Any:
    """The estimator in a .skops file.  Raises UserError before anything is loaded if it asks for another type.

    trusted: further types that it may ask for.
    """
    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise UserError("is not a file that skops wrote; save it with skops.io.dump")
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if _unpacked(archive) > FILE_LIMIT or sum(map(_unpacked, _inside(archive))) > FILE_LIMIT:
            raise UserError(f"unpacks to more than {FILE_LIMIT:,} bytes; no device holds such a model")
        if "schema.json" not in archive.namelist():
            raise UserError("is not a file that skops wrote; save it with skops.io.dump")
        schema = json.loads(archive.read("schema.json"))
    asked = set()
    for kind, node in _asked_types(schema):
        if kind not in trusted and (kind not in SKOPS_TYPES or node not in SKOPS_NODES):
            what = kind if node in SKOPS_NODES else f"{kind} ({node})"
            raise UserError(
                f"asks for {_shown(what)}, which is none of the types of models that can be imported; if you trust the "
                "file's author, name it in trusted"
            )
        asked.add(kind)
    return skops.io.loads(data, trusted=sorted(asked))


def _unpacked(archive: zipfile.ZipFile) -> int:
    return sum(info.file_size for info in archive.infolist())


def _inside(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipFile]:
    """Archives within: sparse arrays."""
    for name in archive.namelist():
        if name.endswith(".npz"):
            yield zipfile.ZipFile(io.BytesIO(archive.read(name)))


def _asked_types(schema: Any) -> Iterator[tuple[str, str]]:
    """(module.type, how skops makes it) of all objects in a schema."""
    left = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            if "__class__" in node or "__loader__" in node:
                yield f"{node.get('__module__')}.{node.get('__class__')}", str(node.get("__loader__"))
            left.extend(node.values())
        elif isinstance(node, list):
            left.extend(node)
