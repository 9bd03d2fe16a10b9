"""Read support vector machines, linear models and networks with one hidden layer from ONNX files, as skl2onnx, PyTorch and
others write them.

Files are untrusted.  Three known parts of a graph are read into plain arrays: a chain of operations that scale the
input, the machine, and the operations on the machine's values.  A file with anything else is refused.  This module then
computes the three parts in NumPy; no other code runs the graph.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.importers.onnx_graph import CLASSIFIERS, FLOAT, FLOATS, NUMBERS, TEXT, Graph, Node, read_graph
from pykernel.importers.place import Place
from pykernel.importers.sklearn import network, of_pairs, require_targets, told_apart
from pykernel.importers.steps import FILE, Affine, behind, kernel_of, require_inputs
from pykernel.spec.model import DIM_LIMIT, shown_value
from pykernel.training.machine import Machine, array_of, checked, require_classes, votes

AFFINE = ("Scaler", "Add", "Sub", "Mul", "Div", "Cast", "Identity", "Flatten", "Reshape")
"""Operations that may come before the machine."""
AFTER = tuple("Abs Add ArrayFeatureExtractor Cast Concat Div Identity Less Mul Neg Normalizer Sign Sum ZipMap".split())
"""Operations that skl2onnx writes after a machine, for scikit-learn's votes, the sign of a OneClassSVM, and
probabilities that sum to 1."""
OUTPUTS = ("ArgMax", "Reshape", "Sigmoid", "Softmax", "Sub")
"""Further operations that may come after a network, for probabilities and the class."""
UNITS = {"Relu": "relu", "Sigmoid": "logistic", "Tanh": "tanh"}
"""Operation of hidden units -> the kernel function."""
KERNELS = {"LINEAR": "linear", "POLY": "polynomial", "RBF": "gaussian", "SIGMOID": "sigmoid"}
MACHINES, NETWORK = (*CLASSIFIERS, "LinearRegressor", "SVMRegressor"), "network"
"""Operations that are models, and the name of the node that replaces the operations of a network's layers."""
PROBED, PROBED_VALUES = 64, 2**24
"""Number of test rows used to identify the operations after the machine, and the maximum number of values that these
operations may compute for the test rows.
"""
STRANGE = (
    "computes a result that is neither the decision values nor scikit-learn's votes, probabilities or class; save the model "
    "without this result"
)


@dataclass(frozen=True)
class Source:
    """The computation in a file: operations that scale the input x, then the machine in ``node``."""

    steps: list[Callable[[np.ndarray], np.ndarray]]
    node: Node
    # made from the node; ``functions`` uses all of it for a network, only its kernel and vectors for an SVM
    machine: Machine

    def functions(self, x: np.ndarray) -> np.ndarray:
        """Return the machine's values at rows of x, (rows, F), in float64. The values are computed with the file's
        operations; their signs are those that ``Machine`` uses.
        """
        z = np.asarray(x, np.float64)
        for step in self.steps:
            z = step(z)
        has, classifier = self.node.has, self.node.kind == "SVMClassifier"
        if self.node.kind == NETWORK:
            return self.machine.functions(z)
        if self.node.kind.startswith("Linear"):
            bias = has["intercepts"]
            scores = z @ has["coefficients"].reshape(len(bias), -1).T + bias
            if self.node.kind == "LinearRegressor" or len(bias) > 2:
                return np.asarray(scores)
            return np.asarray(scores[:, 1:] - scores[:, :1] if _transform(self.node) == "SOFTMAX" else scores[:, 1:])
        sizes = has["vectors_per_class"] if classifier else [has["n_supports"]]
        coefficients, k = has["coefficients"].reshape(-1, sum(sizes)), self.machine.values(z)
        if not classifier:
            return np.asarray(k @ coefficients.T + has["rho"])
        ends, pairs = np.cumsum([0, *sizes]), []
        for i in range(len(sizes)):
            for j in range(i + 1, len(sizes)):
                own, other = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
                pairs.append(k[:, own] @ coefficients[j - 1, own] + k[:, other] @ coefficients[i, other])
        values = np.column_stack(pairs) + has["rho"]
        return -values if len(sizes) == 2 else values


def read_onnx(data: bytes) -> tuple[Machine, Source]:
    """Return the machine in an ONNX file, and a Source that computes the same values as the file.

    Raises UserError, one sentence.
    """
    graph = _with_network(read_graph(data))
    models = [node for node in graph.nodes if node.kind in (*MACHINES, NETWORK)]
    many = f"{len(models)} models" if models else "no model"
    others = "" if models else shown_value(", ".join(sorted({node.kind for node in graph.nodes})))
    FILE.need(
        len(models) == 1,
        f"holds {many} that can be read; the file must hold one {', '.join(MACHINES)} or network with one hidden layer"
        + (f", but it has only {others}" if graph.nodes and others else ""),
    )
    (node,) = models
    chain = _before(graph, node)
    after = _after(graph, node)
    part = {id(other) for other in (*chain, node, *after.nodes)}
    for other in graph.nodes:
        FILE.need(
            id(other) in part,
            f"holds a {shown_value(other.kind)} that is not part of the model; save only the model",
        )
    makers = {
        "SVMClassifier": _classifier,
        "SVMRegressor": _regressor,
        NETWORK: lambda node: network(Place(NETWORK), **node.has),
    }
    machine = makers.get(node.kind, _linear)(node)
    steps, affine = _scaling(graph, chain, machine.dim)
    with np.errstate(all="ignore"):  # scales of 0 are refused below
        machine = behind(machine, affine, Place(node.kind))
    decided = _decided if machine.largest is None else _network_decided if node.kind == NETWORK else _linear_decided
    machine = checked(decided(graph, node, after, machine), node.kind)
    return machine, Source(steps, node, machine)


# --------------------------------------------------------------------------------------------------- the machine


def _text(value: Any, default: str) -> str:
    return default if value is None else value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _kernel(node: Node, where: Place) -> dict[str, Any]:
    name = _text(node.has.get("kernel_type"), "LINEAR")
    where.need(name in KERNELS, f"kernel_type is {shown_value(name)}; it must be LINEAR, POLY, RBF or SIGMOID")
    _transform(node)
    numbers: Any = ()
    if name != "LINEAR":
        numbers = array_of(node.has.get("kernel_params", ()), (3,), where, "kernel_params")
    return kernel_of(where, KERNELS[name], dict(zip(("gamma", "coef0", "degree"), numbers, strict=False)))


def _transform(node: Node) -> str:
    """Return the name of the operation that a machine applies to its own values (post_transform)."""
    transform = _text(node.has.get("post_transform"), "NONE")
    known = ("NONE", "LOGISTIC", "SOFTMAX") if node.kind == "LinearClassifier" else ("NONE",)
    Place(node.kind).need(
        transform in known, f"post_transform is {shown_value(transform)}; it must be {' or '.join(known)}"
    )
    return transform


def _labels(has: dict[str, Any], numbers: str) -> list[Any]:
    return [*has.get(numbers, ()), *(_text(label, "") for label in has.get("classlabels_strings", ()))]


def _vectors(has: dict[str, Any], count: int, where: Place) -> np.ndarray:
    numbers = has.get("support_vectors", ())
    where.need(
        count >= 1 and len(numbers) and len(numbers) % count == 0,
        f"{len(numbers):,} numbers do not make {count:,} support vectors of equal length; save the model again",
    )
    require_inputs(len(numbers) // count, where)
    return array_of(numbers, (len(numbers),), where, "support_vectors").reshape(count, -1)


def _classifier(node: Node) -> Machine:
    """Read a support vector classifier.  With two classes, libsvm's only function is above 0 for the first class."""
    has, where = node.has, Place(node.kind)
    sizes = list(has.get("vectors_per_class", ()))
    where.need(sizes, "has weights instead of support vectors; import the original estimator")
    labels = _labels(has, "classlabels_ints")
    count, n = len(sizes), sum(sizes)
    require_classes(count, where)
    where.need(
        len(labels) == count and min(sizes) >= 0,
        f"vectors_per_class is {shown_value(sizes)} for {len(labels)} classes; save the model again",
    )
    vectors, functions = _vectors(has, n, where), count * (count - 1) // 2
    weights = array_of(has.get("coefficients", ()), ((count - 1) * n,), where, "coefficients").reshape(count - 1, n).T
    bias, sign = array_of(has.get("rho", ()), (functions,), where, "rho"), -1 if count == 2 else 1
    kernel = _kernel(node, where)
    machine = Machine(where, vectors=vectors, weights=sign * weights, bias=sign * bias, classes=tuple(labels), **kernel)
    sigmoids = {name: has.get(name, ()) for name in ("prob_a", "prob_b")} if len(has.get("prob_a", ())) else {}
    return of_pairs(machine, sizes, sigmoids, where, "prob_a and prob_b are")


def _regressor(node: Node) -> Machine:
    has, where = node.has, Place(node.kind)
    count, targets = int(has.get("n_supports", 0)), int(has.get("n_targets", 1))
    where.need(count, "has weights instead of support vectors; import the original estimator")
    where.need(targets == 1, f"n_targets is {targets}; it must be 1")
    vectors = _vectors(has, count, where)
    weights = array_of(has.get("coefficients", ()), (count,), where, "coefficients").reshape(count, 1)
    bias = array_of(has.get("rho", ()), (1,), where, "rho")
    classes = (-1, 1) if has.get("one_class", 0) else None
    return Machine(where, vectors=vectors, weights=weights, bias=bias, classes=classes, **_kernel(node, where))


def _linear(node: Node) -> Machine:
    """Read a linear model, coefficients x + intercepts.

    For two classes, there is one function, which is above 0 for the second class.
    """
    has, where, transform = node.has, Place(node.kind), _transform(node)
    labels = _labels(has, "classlabels_ints") if node.kind == "LinearClassifier" else None
    rows = int(has.get("targets", 1)) if labels is None else len(labels)
    if labels is None:
        require_targets(rows, where)
    else:
        require_classes(rows, where)
    numbers = has.get("coefficients", ())
    where.need(
        len(numbers) and len(numbers) % rows == 0 and len(numbers) // rows <= DIM_LIMIT,
        f"{len(numbers):,} coefficients do not make {rows} rows of equal length, with at most {DIM_LIMIT:,} numbers each; save the model again",
    )
    coef = array_of(numbers, (len(numbers),), where, "coefficients").reshape(rows, -1)
    bias = array_of(has.get("intercepts", ()), (rows,), where, "intercepts")
    if labels is not None and rows == 2:
        where.need(
            transform == "SOFTMAX" or ((coef[0] == -coef[1]).all() and bias[0] == -bias[1]),
            "the coefficients of its two classes differ in more than their sign; save the model with post_transform SOFTMAX",
        )
        both = transform == "SOFTMAX"
        coef, bias = (coef[1:] - coef[:1], bias[1:] - bias[:1]) if both else (coef[1:], bias[1:])
    functions = len(bias)
    classes = None if labels is None else tuple(labels)
    return Machine(where, "linear", vectors=coef, weights=np.eye(functions), bias=bias, classes=classes, largest=1.0)


# ------------------------------------------------------------------------------------------------------- networks


def _with_network(graph: Graph) -> Graph:
    """Return the graph with the layers of a network replaced by one node, or the graph itself if it has no network."""
    layers = [node for node in graph.nodes if node.kind in ("Gemm", "MatMul")]
    if not layers or any(node.kind in MACHINES for node in graph.nodes):
        return graph
    takers = {name: node for node in reversed(graph.nodes) for name in node.inputs}
    parts: list[Node] = []
    made, tables, activation = layers[0].inputs[0], [], "identity"
    for layer in layers:
        unit = takers.get(made) if parts else layer
        if unit is not None and (unit.kind in UNITS or (len(layers) > 2 and unit is not layer)):
            activation, made = UNITS.get(unit.kind, ""), unit.outputs[0]
            parts.append(unit)
        between = shown_value(unit.kind) if (unit := takers.get(made)) else "nothing"
        FILE.need(
            layer.inputs[0] == made,
            f"has {between} where its next layer must be; only {', '.join(UNITS)} or nothing may stand between two layers",
        )
        own, made, found = _layer(graph, layer, takers)
        parts += found
        tables.append(own)
    node = Node(NETWORK, layers[0].inputs[:1], (made,), {"layers": tables, "activation": activation})
    gone = set(map(id, parts[:-1]))
    others = [node if other is parts[-1] else other for other in graph.nodes if id(other) not in gone]
    return replace(graph, nodes=others)


def _layer(graph: Graph, layer: Node, takers: dict[str, Node]) -> tuple[tuple[np.ndarray, np.ndarray], str, list[Node]]:
    """Return three things: a layer's weights (inputs, outputs) with its biases; the name of its result; and its nodes."""
    has, parts, (weights, *biases) = layer.has, [layer], (_table(graph, name) for name in layer.inputs[1:])
    FILE.need(
        weights.ndim == 2 and weights.dtype.kind == "f",
        f"its {layer.kind} must take, in this order, the values of the previous node and a two-dimensional table of floats",
    )
    for name, usual in (("transA", 0), ("alpha", 1), ("beta", 1)):
        FILE.need(has.get(name, usual) == usual, f"its Gemm has {name} {has.get(name)}; {name} must be {usual}")
    weights = weights.T if has.get("transB", 0) else weights
    added = takers.get(layer.outputs[0])
    if not biases and added is not None and added.kind == "Add":
        biases = [graph.tables[name] for name in added.inputs if name in graph.tables]
        parts += [added] if biases else []
    count, bias = weights.shape[1], biases[0] if biases else np.zeros(weights.shape[1])
    FILE.need(
        bias.dtype.kind == "f" and bias.shape in ((count,), (1, count)),
        f"its {layer.kind} computes {count:,} values, but the numbers added to them have shape {shown_value(bias.shape)}; there must be one number for each value",
    )
    return (weights, bias.ravel()), parts[-1].outputs[0], parts


def _table(graph: Graph, name: str) -> np.ndarray:
    """Return a table from the file, or an empty table if a node computes it."""
    return graph.tables.get(name, np.zeros(0))


def _network_decided(graph: Graph, node: Node, after: After, machine: Machine) -> Machine:
    """Return the network as a classifier if the graph computes probabilities or the class, else the network unchanged."""
    functions = len(machine.bias)
    f = np.vstack([_probes(functions, 100), 9 * np.eye(functions)]).astype(node.has["layers"][-1][0].dtype)
    sigmoids = 0.5 + 0.5 * np.tanh(0.5 * f)
    p, at = np.hstack([1 - sigmoids, sigmoids]), (f[:, 0] > 0).astype(int)
    if functions > 1:
        p, at = _softmax(f), f.argmax(axis=1)
    sure, classes = False, None
    for output in after.computed(graph, node, f).values():
        FILE.need(
            functions == 1 or not _same(output, sigmoids),
            f"ends in {functions} sigmoids, one for each label; for several classes, only a Softmax is supported",
        )
        if output.dtype.kind != "f" and output.size == len(at):
            values = output.ravel()
            named = [values[np.argmax(at == i)] for i in range(max(2, functions))]
            FILE.need((values == np.array(named, values.dtype)[at]).all(), STRANGE)
            classes = tuple(_text(name, "") if output.dtype == object else int(name) for name in named)
        elif _same(output, p) or (functions == 1 and _same(output, p[:, 1:])):
            sure = True
        else:
            # skl2onnx writes the values of several targets into one column
            FILE.need(_same(output, f) or _same(output, f.reshape(-1, 1)), STRANGE)
    if classes is None and sure:
        classes = tuple(range(max(2, functions)))
    if classes is not None and functions == 2:
        weights, bias = machine.weights, machine.bias
        machine = replace(machine, weights=weights[:, 1:] - weights[:, :1], bias=bias[1:] - bias[:1])
    machine = told_apart(machine, classes, Place(NETWORK)) if sure and classes else replace(machine, classes=classes)
    _require_named(after, machine)
    return machine


# ------------------------------------------------------------------------------------------------- before and after


def _before(graph: Graph, node: Node) -> list[Node]:
    """Return the nodes between the input and the machine, in order."""
    makers = {name: other for other in graph.nodes for name in other.outputs}
    chain: list[Node] = []
    (wanted,) = node.inputs
    while wanted != graph.input:
        maker = makers.get(wanted)
        if maker is None or maker.kind not in AFFINE:
            what = "a table" if maker is None else f"a {shown_value(maker.kind)}"
            raise FILE.error(
                f"has {what} before its {node.kind}; only operations that treat each input separately may come before it: {', '.join(AFFINE)}"
            )
        chain.insert(0, maker)
        variable = [name for name in maker.inputs if name not in graph.tables]
        FILE.need(
            len(variable) == 1,
            f"its {maker.kind} must take exactly one variable array; its other inputs must be constants stored in the file",
        )
        (wanted,) = variable
    return chain


ARITHMETIC = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


def _scaling(graph: Graph, chain: Sequence[Node], dim: int) -> tuple[list[Callable[[np.ndarray], np.ndarray]], Affine]:
    """Return the operations in the chain as functions, and the map x -> (x - center) * scale that they compute together."""
    FILE.need(graph.width in (None, dim), f"takes {graph.width} inputs, but its vectors have {dim} numbers")
    affine, steps, kind = Affine.identity(dim), [], graph.type
    for node in chain:
        if node.kind == "Cast":
            kind = node.has.get("to", 0)
            FILE.need(kind in FLOATS, "casts its inputs to a type that is neither float nor double")
        if node.kind in ("Flatten", "Reshape"):
            shape, same = _table(graph, node.inputs[-1]), [[-1, dim], [0, dim], [0, -1]]
            kept = shape.dtype == np.int64 and shape.tolist() in same[: 1 if node.has.get("allowzero", 0) else 3]
            kept = node.has.get("axis", 1) == 1 if node.kind == "Flatten" else kept
            FILE.need(kept, f"its {node.kind} changes the shape of the input; the shape must be (samples, {dim})")
        if node.kind in ("Cast", "Flatten", "Identity", "Reshape"):
            continue
        if node.kind == "Scaler":
            kind = FLOAT
            step, slope, offset = _scaler(node)
        else:
            step, slope, offset = _arithmetic(graph, node, kind)
        steps.append(step)
        for values in (slope, offset):
            FILE.need(values.size in (1, dim), f"scales {values.size} inputs, but its vectors have {dim} numbers")
        with np.errstate(all="ignore"):
            scale = affine.scale * slope
            affine = replace(affine, center=affine.center - offset / scale, scale=scale)
    return steps, affine


Step = tuple[Callable[[np.ndarray], np.ndarray], np.ndarray, np.ndarray]
"""An operation z -> slope z + offset: a function that computes it as the file does, the slope, and the offset."""


def _scaler(node: Node) -> Step:
    scale, offset = (node.has.get(name, np.zeros(0)) for name in ("scale", "offset"))
    FILE.need(
        scale.size and offset.size and len({scale.size, offset.size} - {1}) <= 1,
        f"its Scaler has {scale.size} scales and {offset.size} offsets; save the model again",
    )
    return lambda z: (z - offset) * scale, scale, -offset * scale


def _arithmetic(graph: Graph, node: Node, kind: int) -> Step:
    """Return the step of an Add, Sub, Mul or Div with a constant.  kind: the type of the input's numbers."""
    first = node.inputs[0] not in graph.tables
    table, operation = graph.tables[node.inputs[1 if first else 0]], ARITHMETIC[node.kind]
    FILE.need(
        table.ndim <= 2 and table.size == (table.shape or (1,))[-1],
        f"its {node.kind} takes a table of shape {shown_value(table.shape)}; the table must have one number for each input",
    )
    FILE.need(
        kind in FLOATS and table.dtype == NUMBERS[kind],
        f"its {node.kind} takes inputs and a table of different types, or of integers; cast both to float or both to double first",
    )
    FILE.need(first or node.kind != "Div", "divides by its input")
    constant, one, zero = table.astype(np.float64).ravel(), np.ones(1), np.zeros(1)
    with np.errstate(all="ignore"):
        slope, offset = {
            "Add": (one, constant),
            "Sub": (one, -constant) if first else (-one, constant),
            "Mul": (constant, zero),
            "Div": (1 / constant, zero),
        }[node.kind]
    return lambda z: operation(z, constant) if first else operation(constant, z), slope, offset


@dataclass(frozen=True)
class After:
    """The operations after the machine: their nodes, and the names of results."""

    nodes: list[Node]
    labels: set[str]  # names of results that are the class
    values: set[str]  # names of results that are computed from the machine's values

    def computed(self, graph: Graph, node: Node, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Return the graph's results that are computed from the machine's values, by name.  rows: rows of these values."""
        nodes = [other for other in self.nodes if not self.labels.intersection(other.outputs)]
        made = _computed(nodes, node.outputs[-1], rows, graph.tables)
        return {name: made[name] for name in graph.outputs if name in self.values}


def _after(graph: Graph, node: Node) -> After:
    classifier, nodes = node.kind in CLASSIFIERS, []
    labels, values = ({node.outputs[0]}, set(node.outputs[1:])) if classifier else (set(), set(node.outputs))
    maps: set[str] = set()
    for other in graph.nodes:  # each node comes after the nodes whose results it takes
        if labels.intersection(other.inputs):
            FILE.need(
                other.kind == "Identity" or other.has.get("to") in (*NUMBERS, TEXT),
                f"changes the class with a {shown_value(other.kind)}, which is not supported",
            )
            labels.update(other.outputs)
        elif values.intersection(other.inputs):
            FILE.need(
                (other.kind in AFTER or (node.kind == NETWORK and other.kind in OUTPUTS))
                and not maps.intersection(other.inputs),
                f"changes the decision values with a {shown_value(other.kind)}, which is not supported",
            )
            values.update(other.outputs)
            maps.update(other.outputs if other.kind == "ZipMap" else ())
        else:
            continue
        nodes.append(other)
    for name in graph.outputs:
        FILE.need(
            name in labels or name in values,
            f"also gives {shown_value(name)}, which is not a result of the machine; save the model without this result",
        )
    return After(nodes, labels, values)


def _decided(graph: Graph, node: Node, after: After, machine: Machine) -> Machine:
    """If the graph computes votes, or the sign of a OneClassSVM's values, return the machine with this decision; else return
    the machine unchanged.
    """
    _require_named(after, machine)
    classifier, probable = node.kind == "SVMClassifier", len(node.has.get("prob_a", ())) > 0
    width = len(machine.classes or ()) if probable else len(machine.bias)
    rows = _probes(width, 1e4).astype(np.float32)
    for found in after.computed(graph, node, rows).values():
        if _same(found, rows) or (classifier and width == 1 and _same(found, -rows)):
            continue  # for two classes, raw_scores have the sign of scikit-learn's decision_function
        if not classifier and _same(found, np.sign(rows)):
            machine = replace(machine, classes=(-1, 1))
            continue
        pairs = machine.support_class is not None and not probable
        FILE.need(pairs and _same(found, votes(rows, len(machine.classes or ()))), STRANGE)
        machine = replace(machine, decision="ovo_vote")
    return machine


def _probes(width: int, most: float) -> np.ndarray:
    """Return test rows, (PROBED, width), with values of a machine from small to large."""
    return np.random.default_rng(0).normal(size=(PROBED, width)) * np.geomspace(0.01, most, PROBED)[:, None]


def _require_named(after: After, machine: Machine) -> None:
    for other in after.nodes:
        FILE.need(
            other.kind != "ZipMap" or tuple(_labels(other.has, "classlabels_int64s")) == machine.classes,
            "the labels of its ZipMap differ from the names of its classes; save the model again",
        )


def _linear_decided(graph: Graph, node: Node, after: After, machine: Machine) -> Machine:
    """Return the linear machine, with probabilities if the graph computes probabilities of a kind that the generated C
    supports.
    """
    _require_named(after, machine)
    transform, functions = _transform(node), len(machine.bias)
    f = _probes(functions, 100)
    scores = np.hstack([-f, f]) if machine.classes is not None and functions == 1 else f
    if transform == "SOFTMAX" and functions > 1:
        scores = _softmax(f)
    elif transform != "NONE":
        scores = np.exp(np.minimum(scores, 0)) / (1 + np.exp(-np.abs(scores)))
    rows = scores.astype(np.float32)
    sure = transform != "NONE" and functions == 1
    for found in after.computed(graph, node, rows).values():
        if _same(found, rows) or (functions == 1 and _same(found, rows[:, 1:])):
            continue  # for two classes, the result has a column for each class, or only one for the second class
        FILE.need(transform == "LOGISTIC" and _same(found, rows / rows.sum(axis=1, keepdims=True)), STRANGE)
        sure = True
    if sure:
        return replace(machine, calibration=np.tile([-1.0, 0.0], (functions, 1)))
    note = f"{node.kind}: probabilities are left out; for {functions} classes, they are supported only if post_transform is LOGISTIC and a Normalizer follows"
    return machine if transform == "NONE" else replace(machine, notes=(note,))


def _softmax(f: np.ndarray) -> np.ndarray:
    e = np.exp(f - f.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-5, atol=1e-6))


def _computed(
    nodes: Iterable[Node], scores: str, rows: np.ndarray, tables: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the results of nodes for rows of the machine's values.

    Constants must be single numbers or have one dimension. The total size of all results is limited.
    """
    made, left = {scores: rows}, PROBED_VALUES
    for node in nodes:
        taken: list[Any] = [made[name] if name in made else tables.get(name) for name in node.inputs]
        for name, array in zip(node.inputs, taken, strict=True):
            FILE.need(array is not None and (name in made or array.size == 1 or array.ndim == 1), STRANGE)
        try:
            joined = node.kind in ("ArrayFeatureExtractor", "Concat", "Reshape")
            left -= sum(a.size for a in taken) if joined else math.prod(np.broadcast_shapes(*(a.shape for a in taken)))
            FILE.need(left >= 0, STRANGE)
            with np.errstate(all="ignore"):
                made[node.outputs[0]] = _result(node, taken)
        except (LookupError, TypeError, ValueError):  # the operations do not fit together
            raise FILE.error(STRANGE) from None
    return made


def _result(node: Node, taken: Sequence[Any]) -> np.ndarray:
    """Return the result that ONNX defines for a node and its input arrays.

    Raises LookupError, TypeError or ValueError if the result is not defined.
    """
    first, kind = taken[0], node.kind
    if kind in ("Identity", "ZipMap"):
        return np.asarray(first)
    if kind == "Cast":
        if not np.isfinite(first).all():
            raise ValueError
        return np.asarray(first.astype(NUMBERS[node.has["to"]]))
    if kind == "Reshape" and taken[1].dtype == np.int64 and taken[1].ndim == 1:
        return np.reshape(first, taken[1].tolist())
    if kind == "ArgMax" and node.has.get("axis", 0) in (1, -1) and not node.has.get("select_last_index", 0):
        return np.asarray(first.argmax(axis=1, keepdims=bool(node.has.get("keepdims", 1))))
    if kind == "Softmax" and node.has.get("axis", -1) in (1, -1):
        return _softmax(first)
    if kind == "ArrayFeatureExtractor" and first.ndim == 1:  # selects classes by their positions
        return np.asarray(first[taken[1].ravel()][None])
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
    if kind == "Div" and first.dtype.kind != "f":
        raise TypeError
    return np.asarray(UFUNCS[kind](*taken))


UFUNCS: dict[str, Callable[..., Any]] = {
    "Abs": np.abs, "Add": np.add, "Div": np.divide, "Less": np.less, "Mul": np.multiply, "Neg": np.negative, "Sign": np.sign,
    "Sigmoid": lambda f: 0.5 + 0.5 * np.tanh(0.5 * f), "Sub": np.subtract,
    "Sum": lambda *taken: functools.reduce(np.add, taken),
}  # fmt: skip
