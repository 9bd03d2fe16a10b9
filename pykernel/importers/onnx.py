"""Support vector machines and linear models in ONNX files (ai.onnx.ml), as skl2onnx and others write them.

Files are untrusted.  Three known parts of a graph are read into plain arrays: a chain of operations that scale the
input, the machine, and the operations on the machine's values.  A file with anything else is refused.  The parts are
then computed here in NumPy; no other code sees the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.spec.model import DIM_LIMIT, OUTPUTS_LIMIT, shown_value
from pykernel.training.trained import Machine, array_of, checked, require_classes, votes

try:
    import onnx
    from onnx import AttributeProto, TensorProto, numpy_helper
except ImportError as error:
    raise MissingExtra("reading .onnx files", "import") from error

ONNX_LIMIT, NODES = 4 * 2**20, 2**14
"""Most bytes and nodes of a file.

A parsed file takes up to 100 times its bytes; the votes of 64 classes take 9,500 nodes.
"""
JOINED = OUTPUTS_LIMIT
"""Most inputs of a node: a class's votes."""
ML, FLOATS, FLOAT_LISTS = "ai.onnx.ml", (TensorProto.FLOAT, TensorProto.DOUBLE), AttributeProto.FLOATS
SVM = {
    "coefficients": FLOAT_LISTS,
    "kernel_params": FLOAT_LISTS,
    "kernel_type": AttributeProto.STRING,
    "post_transform": AttributeProto.STRING,
    "rho": FLOAT_LISTS,
    "support_vectors": FLOAT_LISTS,
}
OPERATIONS: dict[str, tuple[str, int, int, dict[str, int]]] = {
    **{kind: ("", 1, 1, {}) for kind in ("Abs", "Identity", "Neg", "Sign")},
    **{kind: ("", 2, 2, {}) for kind in ("Add", "Div", "Less", "Mul", "Sub")},
    "ArrayFeatureExtractor": (ML, 2, 2, {}),
    "Cast": ("", 1, 1, {"to": AttributeProto.INT, "saturate": AttributeProto.INT}),
    "Concat": ("", 1, JOINED, {"axis": AttributeProto.INT}),
    "Constant": ("", 0, 0, {"value": AttributeProto.TENSOR}),
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
    "Scaler": (ML, 1, 1, {"offset": FLOAT_LISTS, "scale": FLOAT_LISTS}),
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
"""The operations that are known: domain, fewest and most inputs, attributes and their types."""
AFFINE = ("Scaler", "Add", "Sub", "Mul", "Div", "Cast", "Identity")
"""What may stand before the machine."""
AFTER = tuple("Abs Add ArrayFeatureExtractor Cast Concat Div Identity Less Mul Neg Normalizer Sign Sum ZipMap".split())
"""The operations that skl2onnx writes after a machine: scikit-learn's votes, the sign of a OneClassSVM, and
probabilities that sum to 1."""
KERNELS = {"LINEAR": "linear", "POLY": "polynomial", "RBF": "gaussian", "SIGMOID": "sigmoid"}
CLASSIFIERS = ("LinearClassifier", "SVMClassifier")
MACHINES = (*CLASSIFIERS, "LinearRegressor", "SVMRegressor")
NUMBERS = {
    TensorProto.FLOAT: np.float32,
    TensorProto.DOUBLE: np.float64,
    TensorProto.INT32: np.int32,
    TensorProto.INT64: np.int64,
}
PROBED, PROBED_VALUES = 64, 2**24
"""Number of test rows with which the operations after the machine are identified, and most numbers computed for
this.
"""
STRANGE = (
    "makes something of its decision values that is neither these nor scikit-learn's votes; save the model without"
)


@dataclass(frozen=True)
class Node:
    """A node of a graph.  kind: the operation's name, with its domain where the operation is not known."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    has: dict[str, Any]  # its attributes


@dataclass(frozen=True)
class Graph:
    """A graph.  Each node comes after the nodes whose results it takes, and each name has one meaning."""

    nodes: list[Node]
    tables: dict[str, np.ndarray]
    input: str
    type: int  # type of the input's numbers
    width: int | None  # number of inputs, if the file gives it
    outputs: list[str]


@dataclass(frozen=True)
class Source:
    """The computation in a file: steps that scale the input x, then the machine in ``node``."""

    steps: list[tuple[Node, np.ndarray | None, bool]]  # an operation, its constant, and whether the variable is first
    node: Node

    def functions(self, x: np.ndarray) -> np.ndarray:
        """The machine's values at rows of x, (rows, F), in float64, computed with the file's operations; signs as in
        Machine.
        """
        z = np.asarray(x, np.float64)
        for node, constant, first in self.steps:
            if node.kind == "Scaler":
                z = (z - node.has["offset"]) * node.has["scale"]
            elif constant is not None:
                a, b = (z, constant) if first else (constant, z)
                z = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}[node.kind](a, b)
        has, classifier = self.node.has, self.node.kind == "SVMClassifier"
        if self.node.kind.startswith("Linear"):
            bias = has["intercepts"]
            scores = z @ has["coefficients"].reshape(len(bias), -1).T + bias
            if self.node.kind == "LinearRegressor" or len(bias) > 2:
                return np.asarray(scores)
            return np.asarray(scores[:, 1:] - scores[:, :1] if _transform(self.node) == "SOFTMAX" else scores[:, 1:])
        sizes = has["vectors_per_class"] if classifier else [has["n_supports"]]
        vectors = has["support_vectors"].reshape(sum(sizes), -1)
        coefficients = has["coefficients"].reshape(-1, sum(sizes))
        k = np.array([self._kernel(row, vectors) for row in z]).reshape(len(z), len(vectors))
        if not classifier:
            return np.asarray(k @ coefficients.T + has["rho"])
        ends, found = np.cumsum([0, *sizes]), []
        for i in range(len(sizes)):
            for j in range(i + 1, len(sizes)):
                own, other = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
                found.append(k[:, own] @ coefficients[j - 1, own] + k[:, other] @ coefficients[i, other])
        values = np.column_stack(found) + has["rho"]
        return -values if len(sizes) == 2 else values

    def _kernel(self, row: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        name = _text(self.node.has.get("kernel_type"), "LINEAR")
        if name == "LINEAR":
            return np.asarray(vectors @ row)
        gamma, coef0, degree = self.node.has["kernel_params"]
        if name == "RBF":
            return np.asarray(np.exp(-gamma * np.square(vectors - row).sum(axis=1)))
        argument = gamma * (vectors @ row) + coef0
        return np.asarray(np.tanh(argument) if name == "SIGMOID" else argument ** int(degree))


def read_onnx(data: bytes) -> tuple[Machine, Source]:
    """The machine in an ONNX file, and a Source that computes the same values as the file.

    Raises UserError, one sentence.
    """
    if len(data) > ONNX_LIMIT:
        raise UserError(f"has more than {ONNX_LIMIT:,} bytes; give the estimator itself, or a .skops file of it")
    try:
        model = onnx.load_model_from_string(data)
    except Exception:
        raise UserError("is not an ONNX model; save it with onnx.save") from None
    graph = _graph(model)
    found = [node for node in graph.nodes if node.kind in MACHINES]
    if len(found) != 1:
        others = sorted({node.kind for node in graph.nodes})
        raise UserError(
            f"holds {f'{len(found)} models' if found else 'no model'} that can be read; it must hold one {', '.join(MACHINES[:-1])} or {MACHINES[-1]}"
            + (f", and has {shown_value(', '.join(others))}" if others and not found else "")
        )
    (node,) = found
    chain = _before(graph, node)
    after, labels, values = _after(graph, node)
    part = {id(other) for other in (*chain, node, *after)}
    for other in graph.nodes:
        if id(other) not in part:
            raise UserError(f"holds a {shown_value(other.kind)} that is no part of the model; save the model without")
    makers = {"SVMClassifier": _classifier, "SVMRegressor": _regressor}
    machine = makers.get(node.kind, _linear)(node)
    steps, center, scale = _scaling(graph, chain, machine.dim)
    if center.any() or (scale != 1).any():
        machine = replace(machine, center=center, scale=scale)
        if machine.linear and machine.largest is not None:
            with np.errstate(all="ignore"):  # scales of 0 are refused below
                machine = replace(machine, largest=float((machine.largest / np.abs(scale) + np.abs(center)).max()))
    decided = _linear_decided if machine.largest is not None else _decided
    return checked(decided(graph, node, after, labels, values, machine), node.kind), Source(steps, node)


# ----------------------------------------------------------------------------------------------------- the graph


def _graph(model: Any) -> Graph:
    """The graph of a file.  Only this object is used later, not the file."""
    graph = model.graph
    for what, there in (
        ("functions of its own", model.functions),
        ("sparse tables", graph.sparse_initializer),
        ("quantised numbers", graph.quantization_annotation),
    ):
        if len(there):
            raise UserError(f"holds {what}, which are not read; save the model without")
    for what, there in (
        ("nodes", graph.node),
        ("tables", graph.initializer),
        ("inputs", graph.input),
        ("outputs", graph.output),
    ):
        if len(there) > NODES:
            raise UserError(f"holds {len(there):,} {what}; a model has at most {NODES:,}")
    tables: dict[str, np.ndarray] = {}
    known: set[str] = set()

    def define(name: str) -> None:
        if name in known:
            raise UserError(f"makes {shown_value(name)} twice; each name must stand for one thing")
        known.add(name)

    for tensor in graph.initializer:
        define(tensor.name)
        _read_table(tables, tensor.name, tensor)
    # old files list their tables as inputs as well
    inputs = [value for value in graph.input if value.name not in known]
    if len(inputs) != 1:
        raise UserError(f"has {len(inputs)} inputs; it must have one, a row of numbers for each sample")
    define(inputs[0].name)
    kind = inputs[0].type.tensor_type
    if kind.elem_type not in NUMBERS:
        raise UserError("its input is no table of numbers; save the model with an input of floats")
    nodes = []
    for proto in graph.node:
        node = _node(proto)
        for name in node.inputs:
            if name and name not in known:
                raise UserError(
                    f"its {shown_value(node.kind)} takes {shown_value(name)}, which nothing before it makes"
                )
        for name in node.outputs:
            define(name)
        if node.kind == "Constant":
            _read_table(tables, node.outputs[0], node.has.get("value"))
        else:
            nodes.append(node)
    outputs = [value.name for value in graph.output]
    if len(set(outputs)) != len(outputs) or not known.issuperset(outputs):
        raise UserError("names a result that no node computes, or names it twice; save the model again")
    dims = kind.shape.dim
    width = dims[1].dim_value if len(dims) == 2 and dims[1].HasField("dim_value") else 0
    return Graph(nodes, tables, inputs[0].name, kind.elem_type, width or None, outputs)


def _node(proto: Any) -> Node:
    kind, domain = proto.op_type, "" if proto.domain == "ai.onnx" else proto.domain
    if len(proto.input) > JOINED or len(proto.output) > JOINED:
        raise UserError(f"its {shown_value(kind)} takes or makes more than {JOINED} tables; save the model without")
    inputs, outputs = tuple(proto.input), tuple(name for name in proto.output if name)
    if kind not in OPERATIONS or domain != OPERATIONS[kind][0]:
        return Node(
            f"{domain or 'ai.onnx'}.{kind}" if domain not in ("", ML) or kind in OPERATIONS else kind,
            inputs,
            outputs,
            {},
        )
    _, least, most, attributes = OPERATIONS[kind]
    if not least <= len(inputs) <= most or "" in inputs or not 1 <= len(outputs) <= (2 if kind in CLASSIFIERS else 1):
        raise UserError(f"its {kind} has {len(inputs)} inputs and {len(outputs)} outputs; save the model again")
    if kind in CLASSIFIERS and len(proto.output) > 1 and not proto.output[0]:
        raise UserError(f"its {kind} does not give the class; save the model again")
    has: dict[str, Any] = {}
    for attribute in proto.attribute:
        name = attribute.name
        if name in has or attributes.get(name) != attribute.type or attribute.ref_attr_name:
            raise UserError(
                f"its {kind} has {shown_value(name)}, which is not as ONNX defines it; save the model again"
            )
        has[name] = _value(attribute)
    for name in {"Cast": ["to"], "Concat": ["axis"]}.get(kind, []):
        if name not in has:
            raise UserError(f"its {kind} has no {name}; save the model again")
    return Node(kind, inputs, outputs, has)


def _value(attribute: Any) -> Any:
    if attribute.type == AttributeProto.FLOATS:
        return np.fromiter(attribute.floats, np.float64, len(attribute.floats))
    if attribute.type == AttributeProto.INTS:
        return list(attribute.ints)
    if attribute.type == AttributeProto.STRINGS:
        return list(attribute.strings)
    return {AttributeProto.INT: attribute.i, AttributeProto.STRING: attribute.s}.get(attribute.type, attribute.t)


def _read_table(tables: dict[str, np.ndarray], name: str, tensor: Any) -> None:
    """Read a table of numbers; tables of other types are skipped."""
    if tensor is None or tensor.data_type not in NUMBERS:
        return
    if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
        raise UserError(f"keeps {shown_value(name)} in another file; save it with its data inside")
    dims = list(tensor.dims)
    if any(size < 0 for size in dims) or math.prod(dims) > ONNX_LIMIT:
        raise UserError(f"table {shown_value(name)} is damaged; save the model again")
    try:
        table = np.array(numpy_helper.to_array(tensor))
    except (TypeError, ValueError):
        raise UserError(f"table {shown_value(name)} is damaged; save the model again") from None
    if not np.isfinite(table).all():
        raise UserError(f"table {shown_value(name)} holds numbers that are not finite; save the model again")
    tables[name] = table


# --------------------------------------------------------------------------------------------------- the machine


def _text(value: Any, default: str) -> str:
    return default if value is None else value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _kernel(node: Node) -> dict[str, Any]:
    where, has = node.kind, node.has
    name = _text(has.get("kernel_type"), "LINEAR")
    if name not in KERNELS:
        raise UserError(f"{where}: kernel_type is {shown_value(name)}; it must be LINEAR, POLY, RBF or SIGMOID")
    _transform(node)
    found: dict[str, Any] = {"function": KERNELS[name]}
    if name == "LINEAR":
        return found
    gamma, coef0, degree = array_of(has.get("kernel_params", ()), (3,), where, "kernel_params")
    if not gamma > 0:
        raise UserError(f"{where}: gamma is {gamma:g}, so the kernel would ignore its inputs; it must be above 0")
    found["gamma"] = float(gamma)
    if name != "RBF":
        found["coef0"] = float(coef0)
    if name == "POLY":
        if degree not in range(1, 10):
            raise UserError(f"{where}: degree is {degree:g}; it must be a whole number from 1 to 9")
        found["degree"] = int(degree)
    return found


def _transform(node: Node) -> str:
    """The name of the operation that a machine applies to its own values (post_transform)."""
    transform = _text(node.has.get("post_transform"), "NONE")
    known = ("NONE", "LOGISTIC", "SOFTMAX") if node.kind == "LinearClassifier" else ("NONE",)
    if transform not in known:
        raise UserError(f"{node.kind}: post_transform is {shown_value(transform)}; it must be {' or '.join(known)}")
    return transform


def _labels(has: dict[str, Any], numbers: str) -> list[Any]:
    return [*has.get(numbers, ()), *(_text(label, "") for label in has.get("classlabels_strings", ()))]


def _vectors(has: dict[str, Any], count: int, where: str) -> np.ndarray:
    numbers = has.get("support_vectors", ())
    if count < 1 or not len(numbers) or len(numbers) % count:
        raise UserError(f"{where}: {len(numbers):,} numbers are not {count:,} support vectors; save the model again")
    dim = len(numbers) // count
    if dim > DIM_LIMIT:
        raise UserError(f"{where}: takes {dim:,} inputs; a model takes from 1 to {DIM_LIMIT:,}")
    return array_of(numbers, (len(numbers),), where, "support_vectors").reshape(count, dim)


def _classifier(node: Node) -> Machine:
    """A support vector classifier, with libsvm's signs: for two classes, the function is above 0 for the first
    class.
    """
    has, where = node.has, node.kind
    sizes = list(has.get("vectors_per_class", ()))
    if not sizes:
        raise UserError(f"{where}: has weights instead of support vectors; import the original estimator")
    labels = _labels(has, "classlabels_ints")
    count, n = len(sizes), sum(sizes)
    require_classes(count, where)
    if len(labels) != count or min(sizes) < 0:
        raise UserError(
            f"{where}: vectors_per_class is {shown_value(sizes)} for {len(labels)} classes; save the model again"
        )
    vectors, functions = _vectors(has, n, where), count * (count - 1) // 2
    weights = array_of(has.get("coefficients", ()), ((count - 1) * n,), where, "coefficients").reshape(count - 1, n).T
    bias = array_of(has.get("rho", ()), (functions,), where, "rho")
    machine = Machine(where, vectors=vectors, weights=weights, bias=bias, classes=tuple(labels), **_kernel(node))
    probable = len(has.get("prob_a", ())) > 0
    if count == 2:
        machine = replace(machine, weights=-weights, bias=-bias)
        if probable:
            a, b = (array_of(has.get(name, ()), (1,), where, name) for name in ("prob_a", "prob_b"))
            machine = replace(machine, calibration=np.column_stack([a, -b]))
        return machine
    notes = (f"{where}: prob_a and prob_b are left out, for {count} classes have no probabilities in C",)
    support_class = np.repeat(np.arange(count), sizes)
    return replace(machine, decision="ovo", support_class=support_class, notes=notes if probable else ())


def _regressor(node: Node) -> Machine:
    has, where = node.has, node.kind
    count = int(has.get("n_supports", 0))
    if count == 0:
        raise UserError(f"{where}: has weights instead of support vectors; import the original estimator")
    if int(has.get("n_targets", 1)) != 1:
        raise UserError(f"{where}: n_targets is {has['n_targets']}; it must be 1")
    vectors = _vectors(has, count, where)
    weights = array_of(has.get("coefficients", ()), (count,), where, "coefficients").reshape(count, 1)
    bias = array_of(has.get("rho", ()), (1,), where, "rho")
    classes = (-1, 1) if has.get("one_class", 0) else None
    return Machine(where, vectors=vectors, weights=weights, bias=bias, classes=classes, **_kernel(node))


def _linear(node: Node) -> Machine:
    """A linear model, coefficients x + intercepts; two classes have one function, which is above 0 for the second
    class.
    """
    has, where, transform = node.has, node.kind, _transform(node)
    labels = _labels(has, "classlabels_ints") if node.kind == "LinearClassifier" else None
    rows = int(has.get("targets", 1)) if labels is None else len(labels)
    if labels is not None:
        require_classes(rows, where)
    elif not 1 <= rows <= OUTPUTS_LIMIT:
        raise UserError(f"{where}: has {rows} targets; a model has from 1 to {OUTPUTS_LIMIT}")
    numbers = has.get("coefficients", ())
    if not len(numbers) or len(numbers) % rows or len(numbers) // rows > DIM_LIMIT:
        raise UserError(
            f"{where}: {len(numbers):,} coefficients are not {rows} rows of one for each input, up to {DIM_LIMIT:,}; save the "
            "model again"
        )
    coef = array_of(numbers, (len(numbers),), where, "coefficients").reshape(rows, -1)
    bias = array_of(has.get("intercepts", ()), (rows,), where, "intercepts")
    if labels is not None and rows == 2:
        if transform == "SOFTMAX":
            coef, bias = coef[1:] - coef[:1], bias[1:] - bias[:1]
        elif (coef[0] != -coef[1]).any() or bias[0] != -bias[1]:
            raise UserError(
                f"{where}: the coefficients of its two classes differ by more than their sign; save it with SOFTMAX"
            )
        else:
            coef, bias = coef[1:], bias[1:]
    functions = len(bias)
    classes = None if labels is None else tuple(labels)
    return Machine(where, "linear", vectors=coef, weights=np.eye(functions), bias=bias, classes=classes, largest=1.0)


# ------------------------------------------------------------------------------------------------- before and after


def _before(graph: Graph, node: Node) -> list[Node]:
    """The nodes between the input and the machine, in order."""
    makers = {name: other for other in graph.nodes for name in other.outputs}
    chain: list[Node] = []
    (wanted,) = node.inputs
    while wanted != graph.input:
        maker = makers.get(wanted)
        if maker is None or maker.kind not in AFFINE:
            what = "a table" if maker is None else f"a {shown_value(maker.kind)}"
            raise UserError(
                f"gives its {node.kind} {what}; before it there may be {', '.join(AFFINE)}, each number of an input for "
                "itself"
            )
        chain.insert(0, maker)
        variable = [name for name in maker.inputs if name not in graph.tables]
        if len(variable) != 1:
            raise UserError(f"its {maker.kind} does not scale the input by constants")
        (wanted,) = variable
    return chain


def _scaling(
    graph: Graph, chain: Sequence[Node], dim: int
) -> tuple[list[tuple[Node, np.ndarray | None, bool]], np.ndarray, np.ndarray]:
    """The operations with their constants; and the center and scale of the map x -> (x - center) * scale that they
    compute.
    """
    if graph.width not in (None, dim):
        raise UserError(f"takes {graph.width} inputs, but its vectors have {dim} numbers")
    center, scale, steps, kind = np.zeros(dim), np.ones(dim), [], graph.type
    for node in chain:
        constant, first = None, node.inputs[0] not in graph.tables
        if node.kind == "Cast":
            kind = node.has.get("to", 0)
            if kind not in FLOATS:
                raise UserError("casts its inputs to a type that is neither float nor double")
        elif node.kind == "Scaler":
            kind = TensorProto.FLOAT
        elif node.kind != "Identity":
            constant = graph.tables[node.inputs[1 if first else 0]]
            if constant.ndim > 2 or constant.size != (constant.shape or (1,))[-1]:
                raise UserError(
                    f"its {node.kind} takes a table of shape {shown_value(constant.shape)}; it must be a number for each input"
                )
            if kind not in FLOATS or constant.dtype != NUMBERS[kind]:
                raise UserError(
                    f"its {node.kind} takes inputs and a table of two types, or whole numbers; cast them to floats before"
                )
            constant = constant.astype(np.float64).ravel()
        steps.append((node, constant, first))
        slope, offset = _slope_and_offset(node, constant, first)
        for values in (slope, offset):
            if values.size not in (1, dim):
                raise UserError(f"scales {values.size} inputs, but its vectors have {dim} numbers")
        # slope (x - center) scale + offset
        with np.errstate(all="ignore"):
            scale = scale * slope
            center = center - offset / scale
    return steps, center, scale


def _slope_and_offset(node: Node, constant: np.ndarray | None, first: bool) -> tuple[np.ndarray, np.ndarray]:
    """Slope and offset of an operation x -> slope x + offset."""
    one, zero = np.ones(1), np.zeros(1)
    if node.kind == "Scaler":
        scale, offset = (node.has.get(name, np.zeros(0)) for name in ("scale", "offset"))
        if not scale.size or not offset.size or len({scale.size, offset.size} - {1}) > 1:
            raise UserError(f"its Scaler has {scale.size} scales and {offset.size} offsets; save the model again")
        return scale, -offset * scale
    if constant is None:
        return one, zero
    if node.kind == "Add":
        return one, constant
    if node.kind == "Mul":
        return constant, zero
    if node.kind == "Sub":
        return (one, -constant) if first else (-one, constant)
    if not first:
        raise UserError("divides by its input")
    with np.errstate(all="ignore"):
        return 1 / constant, zero


def _after(graph: Graph, node: Node) -> tuple[list[Node], set[str], set[str]]:
    """The nodes after the machine; the names of results that are the class; and the names of results computed from
    values.
    """
    classifier, after = node.kind in CLASSIFIERS, []
    labels, values = ({node.outputs[0]}, set(node.outputs[1:])) if classifier else (set(), set(node.outputs))
    maps: set[str] = set()
    for other in graph.nodes:  # each node comes after the nodes whose results it takes
        if labels.intersection(other.inputs):
            if other.kind != "Identity" and other.has.get("to") not in (*NUMBERS, TensorProto.STRING):
                raise UserError(f"changes the class by a {shown_value(other.kind)}, which has no C")
            labels.update(other.outputs)
        elif values.intersection(other.inputs):
            if other.kind not in AFTER or maps.intersection(other.inputs):
                raise UserError(f"changes the decision values by a {shown_value(other.kind)}, which has no C")
            values.update(other.outputs)
            maps.update(other.outputs if other.kind == "ZipMap" else ())
        else:
            continue
        after.append(other)
    for name in graph.outputs:
        if name not in labels and name not in values:
            raise UserError(
                f"also gives {shown_value(name)}, which is no result of the machine; save the model without"
            )
    return after, labels, values


def _decided(
    graph: Graph, node: Node, after: Sequence[Node], labels: set[str], values: set[str], machine: Machine
) -> Machine:
    """The machine with the decision that the graph computes from its values: votes, or the sign of a OneClassSVM."""
    _require_named(after, machine)
    ends = [name for name in graph.outputs if name in values]
    classifier, probable = node.kind == "SVMClassifier", len(node.has.get("prob_a", ())) > 0
    width = len(machine.classes or ()) if probable else len(machine.bias)
    # test with small values and with large values
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(PROBED, width)) * np.geomspace(0.01, 1e4, PROBED)[:, None]).astype(np.float32)
    made = _computed([n for n in after if not labels.intersection(n.outputs)], node.outputs[-1], rows, graph.tables)
    for name in ends:
        found = made[name]
        if _same(found, rows) or (classifier and width == 1 and _same(found, -rows)):
            continue  # of two classes, raw_scores have the sign of scikit-learn's decision_function
        if not classifier and _same(found, np.sign(rows)):
            machine = replace(machine, classes=(-1, 1))
        elif (
            machine.support_class is not None and not probable and _same(found, votes(rows, len(machine.classes or ())))
        ):
            machine = replace(machine, decision="ovo_vote")
        else:
            raise UserError(STRANGE)
    return machine


def _require_named(after: Sequence[Node], machine: Machine) -> None:
    for other in after:
        if other.kind == "ZipMap" and tuple(_labels(other.has, "classlabels_int64s")) != machine.classes:
            raise UserError("gives its values names that are not those of its classes; save the model again")


def _linear_decided(
    graph: Graph, node: Node, after: Sequence[Node], labels: set[str], values: set[str], machine: Machine
) -> Machine:
    """The linear machine, with probabilities if the graph computes a kind of probabilities that our C has."""
    _require_named(after, machine)
    transform, functions = _transform(node), len(machine.bias)
    rng = np.random.default_rng(0)
    f = rng.normal(size=(PROBED, functions)) * np.geomspace(0.01, 100, PROBED)[:, None]
    scores = np.hstack([-f, f]) if machine.classes is not None and functions == 1 else f
    if transform != "NONE":
        scores = np.exp(np.minimum(scores, 0)) / (1 + np.exp(-np.abs(scores)))
        if transform == "SOFTMAX" and functions > 1:
            scores = np.exp(f - f.max(axis=1, keepdims=True))
            scores /= scores.sum(axis=1, keepdims=True)
    rows = scores.astype(np.float32)
    made = _computed([n for n in after if not labels.intersection(n.outputs)], node.outputs[-1], rows, graph.tables)
    sure = transform != "NONE" and functions == 1
    for name in (name for name in graph.outputs if name in values):
        found = made[name]
        if _same(found, rows) or (functions == 1 and _same(found, rows[:, 1:])):
            continue  # for two classes, the result is both signs, or the second one
        if transform != "LOGISTIC" or not _same(found, rows / rows.sum(axis=1, keepdims=True)):
            raise UserError(STRANGE)
        sure = True
    if sure:
        return replace(machine, calibration=np.tile([-1.0, 0.0], (functions, 1)))
    note = f"{node.kind}: probabilities are left out; those of {functions} classes have C if LOGISTIC and a Normalizer make them"
    return machine if transform == "NONE" else replace(machine, notes=(note,))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-5, atol=1e-6))


def _computed(
    nodes: Iterable[Node], scores: str, rows: np.ndarray, tables: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The results of nodes for rows of the machine's values.

    Constants are single numbers; the total size is limited.
    """
    made, left = {scores: rows}, PROBED_VALUES
    for node in nodes:
        taken = [made[name] if name in made else tables.get(name) for name in node.inputs]
        for name, array in zip(node.inputs, taken, strict=True):
            if array is None or (name not in made and array.size != 1):
                raise UserError(STRANGE)
        try:
            left -= _numbers_of(node, taken)
            if left < 0:
                raise UserError(STRANGE)
            with np.errstate(all="ignore"):
                made[node.outputs[0]] = _result(node, taken)
        except (LookupError, TypeError, ValueError):  # operations that do not fit together
            raise UserError(STRANGE) from None
    return made


def _numbers_of(node: Node, taken: Sequence[Any]) -> int:
    """How many numbers a node computes."""
    if node.kind == "Concat":
        return sum(array.size for array in taken)
    return math.prod(np.broadcast_shapes(*(array.shape for array in taken)))


def _result(node: Node, taken: Sequence[Any]) -> np.ndarray:
    """The result of a node for arrays, as ONNX defines it.

    Raises LookupError, TypeError or ValueError if it is not defined.
    """
    first, kind = taken[0], node.kind
    if kind in ("Identity", "ZipMap"):
        return np.asarray(first)
    if kind == "Cast":
        if not np.isfinite(first).all():
            raise ValueError
        return np.asarray(first.astype(NUMBERS[node.has["to"]]))
    if kind == "ArrayFeatureExtractor":
        (index,) = taken[1].ravel().tolist()
        if taken[1].dtype != np.int64 or first.ndim < 2 or not 0 <= index < first.shape[-1]:
            raise IndexError
        return np.asarray(first[..., [index]])
    if any(array.dtype != first.dtype for array in taken) or first.dtype == bool:
        raise TypeError
    if kind == "Concat":
        return np.concatenate(taken, axis=node.has["axis"])
    if kind == "Normalizer":
        if _text(node.has.get("norm"), "MAX") != "L1" or first.dtype.kind != "f":
            raise TypeError
        return np.asarray(first / np.maximum(np.abs(first).sum(axis=1, keepdims=True), 1e-30))
    if kind == "Sum":
        total = first
        for array in taken[1:]:
            total = total + array
        return np.asarray(total)
    if kind == "Div" and first.dtype.kind != "f":
        raise TypeError
    one = {"Abs": np.abs, "Neg": np.negative, "Sign": np.sign}
    two = {"Add": np.add, "Div": np.divide, "Less": np.less, "Mul": np.multiply}
    return np.asarray(one[kind](first) if kind in one else two[kind](*taken))
