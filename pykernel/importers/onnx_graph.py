"""Read the graph of an ONNX file into plain arrays: nodes with known operations, and tables of numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra
from pykernel.importers.steps import FILE
from pykernel.spec.model import OUTPUTS_LIMIT, shown_value

try:
    import onnx
    from onnx import AttributeProto, TensorProto, numpy_helper
except ImportError as error:
    raise MissingExtra("reading .onnx files", "import") from error

ONNX_LIMIT, NODES = 4 * 2**20, 2**14
"""Maximum size of a file in bytes, and maximum number of nodes.  Parsing needs up to 100 bytes of memory for each
byte of the file, and the votes of 64 classes take 9,500 nodes.
"""
JOINED = OUTPUTS_LIMIT
"""Maximum number of inputs or outputs of a node.  Nodes that add up the votes for a class have the most inputs."""
ML, FLOAT_LISTS = "ai.onnx.ml", AttributeProto.FLOATS
FLOAT, TEXT, FLOATS = TensorProto.FLOAT, TensorProto.STRING, (TensorProto.FLOAT, TensorProto.DOUBLE)
SVM = {
    "coefficients": FLOAT_LISTS,
    "kernel_params": FLOAT_LISTS,
    "kernel_type": AttributeProto.STRING,
    "post_transform": AttributeProto.STRING,
    "rho": FLOAT_LISTS,
    "support_vectors": FLOAT_LISTS,
}
OPERATIONS: dict[str, tuple[str, int, int, dict[str, int]]] = {
    **{kind: ("", 1, 1, {}) for kind in ("Abs", "Identity", "Neg", "Relu", "Sigmoid", "Sign", "Tanh")},
    **{kind: ("", 2, 2, {}) for kind in ("Add", "Div", "Less", "MatMul", "Mul", "Sub")},
    "ArgMax": ("", 1, 1, dict.fromkeys(("axis", "keepdims", "select_last_index"), AttributeProto.INT)),
    "ArrayFeatureExtractor": (ML, 2, 2, {}),
    "Cast": ("", 1, 1, {"to": AttributeProto.INT, "saturate": AttributeProto.INT}),
    "Concat": ("", 1, JOINED, {"axis": AttributeProto.INT}),
    "Constant": ("", 0, 0, {"value": AttributeProto.TENSOR}),
    "Flatten": ("", 1, 1, {"axis": AttributeProto.INT}),
    "Gemm": ("", 2, 3, {
        "alpha": AttributeProto.FLOAT,
        "beta": AttributeProto.FLOAT,
        "transA": AttributeProto.INT,
        "transB": AttributeProto.INT,
    }),
    "LinearClassifier": (ML, 1, 1, {
        "classlabels_ints": AttributeProto.INTS,
        "classlabels_strings": AttributeProto.STRINGS,
        "coefficients": FLOAT_LISTS,
        "intercepts": FLOAT_LISTS,
        "multi_class": AttributeProto.INT,
        "post_transform": AttributeProto.STRING,
    }),
    "LinearRegressor": (ML, 1, 1, {
        "coefficients": FLOAT_LISTS,
        "intercepts": FLOAT_LISTS,
        "post_transform": AttributeProto.STRING,
        "targets": AttributeProto.INT,
    }),
    "Normalizer": (ML, 1, 1, {"norm": AttributeProto.STRING}),
    "Reshape": ("", 2, 2, {"allowzero": AttributeProto.INT}),
    "Scaler": (ML, 1, 1, {"offset": FLOAT_LISTS, "scale": FLOAT_LISTS}),
    "Softmax": ("", 1, 1, {"axis": AttributeProto.INT}),
    "Sum": ("", 1, JOINED, {}),
    "SVMClassifier": (ML, 1, 1, SVM | {
        "classlabels_ints": AttributeProto.INTS,
        "classlabels_strings": AttributeProto.STRINGS,
        "prob_a": FLOAT_LISTS,
        "prob_b": FLOAT_LISTS,
        "vectors_per_class": AttributeProto.INTS,
    }),
    "SVMRegressor": (ML, 1, 1, SVM | {
        "n_supports": AttributeProto.INT,
        "n_targets": AttributeProto.INT,
        "one_class": AttributeProto.INT,
    }),
    "ZipMap": (ML, 1, 1, {
        "classlabels_int64s": AttributeProto.INTS,
        "classlabels_strings": AttributeProto.STRINGS,
    }),
}  # fmt: skip
"""Known operation -> its domain, the minimum number of inputs, the maximum number, and a dict of attribute -> type."""
CLASSIFIERS = ("LinearClassifier", "SVMClassifier")
NUMBERS = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
}


@dataclass(frozen=True)
class Node:
    """A node of a graph.

    kind: the operation's name.  The domain precedes the name if ONNX does not define the domain, or if the operation is
    known only in another domain.
    """

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    has: dict[str, Any]  # the node's attributes


@dataclass(frozen=True)
class Graph:
    """A graph.  Each node comes after the nodes whose results it takes, and each name has one meaning."""

    nodes: list[Node]
    tables: dict[str, np.ndarray]
    input: str
    type: int  # type of the input's numbers
    width: int | None  # length of the input's rows, if the file gives this length
    outputs: list[str]


def read_graph(data: bytes) -> Graph:
    """Return the graph in a file.  Only this object is used later, not the file.  Raises UserError, one sentence."""
    FILE.need(
        len(data) <= ONNX_LIMIT,
        f"has more than {ONNX_LIMIT:,} bytes; give the estimator to pykernel.from_sklearn",
    )
    try:
        model = onnx.load_model_from_string(data)
    except Exception:
        raise FILE.error("is not an ONNX model; save it with onnx.save") from None
    return _graph(model)


def _graph(model: Any) -> Graph:
    graph = model.graph
    for what, there in (
        ("model-local functions", model.functions),
        ("sparse tables", graph.sparse_initializer),
        ("quantised numbers", graph.quantization_annotation),
    ):
        FILE.need(not len(there), f"holds {what}, which are not supported; save the model without them")
    for what, there in (
        ("nodes", graph.node),
        ("tables", graph.initializer),
        ("inputs", graph.input),
        ("outputs", graph.output),
    ):
        FILE.need(len(there) <= NODES, f"holds {len(there):,} {what}; a model has at most {NODES:,}")
    tables: dict[str, np.ndarray] = {}
    known: set[str] = set()

    def define(name: str) -> None:
        FILE.need(name not in known, f"defines {shown_value(name)} twice; each name must have one meaning")
        known.add(name)

    for tensor in graph.initializer:
        define(tensor.name)
        _read_table(tables, tensor.name, tensor)
    # old files list their tables as inputs as well
    inputs = [value for value in graph.input if value.name not in known]
    FILE.need(len(inputs) == 1, f"has {len(inputs)} inputs; it must have one input, a row of numbers for each sample")
    define(inputs[0].name)
    kind = inputs[0].type.tensor_type
    FILE.need(kind.elem_type in NUMBERS, "its input is not a table of numbers; save the model with an input of floats")
    nodes = []
    for proto in graph.node:
        node = _node(proto)
        for name in node.inputs:
            FILE.need(
                not name or name in known,
                f"its {shown_value(node.kind)} takes {shown_value(name)}, which no earlier node computes",
            )
        for name in node.outputs:
            define(name)
        if node.kind == "Constant":
            _read_table(tables, node.outputs[0], node.has.get("value"))
        else:
            nodes.append(node)
    outputs = [value.name for value in graph.output]
    FILE.need(
        len(set(outputs)) == len(outputs) and known.issuperset(outputs),
        "lists an output that no node computes, or lists an output twice; save the model again",
    )
    dims = kind.shape.dim
    FILE.need(len(dims) in (0, 2), f"its input has {len(dims)} dimensions; it must have two, (samples, inputs)")
    width = dims[1].dim_value if len(dims) == 2 and dims[1].HasField("dim_value") else 0
    return Graph(nodes, tables, inputs[0].name, kind.elem_type, width or None, outputs)


def _node(proto: Any) -> Node:
    kind, domain = proto.op_type, "" if proto.domain == "ai.onnx" else proto.domain
    FILE.need(
        max(len(proto.input), len(proto.output)) <= JOINED,
        f"its {shown_value(kind)} has more than {JOINED} inputs or outputs; save the model without this node",
    )
    inputs, outputs = tuple(proto.input), tuple(name for name in proto.output if name)
    if kind not in OPERATIONS or domain != OPERATIONS[kind][0]:
        return Node(
            f"{domain or 'ai.onnx'}.{kind}" if domain not in ("", ML) or kind in OPERATIONS else kind,
            inputs,
            outputs,
            {},
        )
    _, least, most, attributes = OPERATIONS[kind]
    classifies = kind in CLASSIFIERS
    FILE.need(
        least <= len(inputs) <= most and "" not in inputs and 1 <= len(outputs) <= (2 if classifies else 1),
        f"its {kind} has an invalid number of inputs or outputs ({len(inputs)} and {len(outputs)}); save the model again",
    )
    classless = classifies and not proto.output[0]
    FILE.need(not classless, f"its {kind} does not give the class; save the model again")
    has: dict[str, Any] = {}
    for attribute in proto.attribute:
        name = attribute.name
        FILE.need(
            name not in has and attributes.get(name) == attribute.type and not attribute.ref_attr_name,
            f"its {kind} has the attribute {shown_value(name)}, which differs from ONNX's definition; save the model again",
        )
        has[name] = _value(attribute)
    for name in {"Cast": ["to"], "Concat": ["axis"]}.get(kind, []):
        FILE.need(name in has, f"its {kind} has no attribute '{name}'; save the model again")
    return Node(kind, inputs, outputs, has)


def _value(attribute: Any) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    return np.fromiter(value, np.float64, len(value)) if attribute.type == AttributeProto.FLOATS else value


def _read_table(tables: dict[str, np.ndarray], name: str, tensor: Any) -> None:
    """Read a table of numbers or strings.  Tables of other types are skipped."""
    if tensor is None or tensor.data_type not in (*NUMBERS, TEXT):
        return
    elsewhere = tensor.data_location == TensorProto.EXTERNAL or tensor.external_data
    FILE.need(
        not elsewhere, f"keeps table {shown_value(name)} in another file; save the model with all data in one file"
    )
    damaged = FILE.error(f"table {shown_value(name)} is damaged; save the model again")
    if min(tensor.dims, default=0) < 0 or math.prod(tensor.dims) > ONNX_LIMIT:
        raise damaged
    try:
        tables[name] = np.array(numpy_helper.to_array(tensor))
    except (TypeError, ValueError):
        raise damaged from None
    FILE.need(
        tensor.data_type == TEXT or np.isfinite(tables[name]).all(),
        f"table {shown_value(name)} holds numbers that are not finite; save the model again",
    )
