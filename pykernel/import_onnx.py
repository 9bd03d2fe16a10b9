"""Support vector machines in ONNX files (ai.onnx.ml), as skl2onnx and others write them.

Nothing of a graph is executed but a few elementwise operations on 64 made-up rows, behind the machine: whether it ends
in the machine's values or in scikit-learn's votes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from pykernel.errors import MissingExtra, UserError
from pykernel.machine import Machine, array_of, checked, require_classes, votes
from pykernel.spec import DIM_LIMIT, OUTPUTS_LIMIT, _shown

try:
    import onnx
    from onnx import TensorProto, numpy_helper
except ImportError as error:
    raise MissingExtra("reading .onnx files", "import") from error

AFFINE = ("Scaler", "Add", "Sub", "Mul", "Div", "Cast", "Identity")
"""What may stand before the machine."""
AFTER = tuple("Abs Add ArrayFeatureExtractor Cast Concat Div Identity Less Mul Neg Sign Sum ZipMap".split())
"""What skl2onnx makes of a machine's values: scikit-learn's votes, the sign of a OneClassSVM."""
KERNELS = {"LINEAR": "linear", "POLY": "polynomial", "RBF": "gaussian", "SIGMOID": "sigmoid"}
MACHINES = ("SVMClassifier", "SVMRegressor")
FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE)
NUMBERS = (*FLOATS, TensorProto.INT32, TensorProto.INT64)
PROBED = 64
STRANGE = (
    "makes something of its decision values that is neither these nor scikit-learn's votes; save the model without"
)


def read_onnx(data: bytes) -> tuple[Machine, Any]:
    """The machine in an ONNX file, and the model.  Raises UserError, one sentence without the file's name."""
    try:
        model = onnx.load_model_from_string(data)
    except Exception:
        raise UserError("is not an ONNX model; save it with onnx.save") from None
    graph = model.graph
    found = [node for node in graph.node if node.op_type in MACHINES and node.domain == "ai.onnx.ml"]
    if len(found) != 1:
        others = sorted({node.op_type for node in graph.node})
        raise UserError(
            f"holds {len(found) or 'no'} support vector machines; it must hold one SVMClassifier or SVMRegressor"
            + (f", and has {_shown(', '.join(others))}" if others and not found else "")
        )
    (node,) = found
    tables = _tables(graph)
    center, factor, width = _before(model, node, tables)
    machine = _classifier(node) if node.op_type == "SVMClassifier" else _regressor(node)
    for values in (center, factor):
        if values.size not in (1, machine.dim):
            raise UserError(f"scales {values.size} inputs, but its vectors have {machine.dim} numbers")
    if width not in (None, machine.dim):
        raise UserError(f"takes {width} inputs, but its vectors have {machine.dim} numbers")
    center, factor = (np.broadcast_to(values, (machine.dim,)).copy() for values in (center, factor))
    if center.any() or (factor != 1).any():
        machine = replace(machine, center=center, factor=factor)
    return checked(_decided(model, node, machine, tables), node.op_type), model


# --------------------------------------------------------------------------------------------------- the machine


def _attributes(node: Any) -> dict[str, Any]:
    return {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}


def _text(value: Any, default: str) -> str:
    return default if value is None else value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _kernel(node: Any, has: dict[str, Any]) -> dict[str, Any]:
    where, name = node.op_type, _text(has.get("kernel_type"), "LINEAR")
    if name not in KERNELS:
        raise UserError(f"{where}: kernel_type is {_shown(name)}; it must be LINEAR, POLY, RBF or SIGMOID")
    transform = _text(has.get("post_transform"), "NONE")
    if transform != "NONE":
        raise UserError(f"{where}: post_transform is {_shown(transform)}; it must be NONE")
    found: dict[str, Any] = {"function": KERNELS[name]}
    if name == "LINEAR":
        return found
    gamma, coef0, degree = array_of(has.get("kernel_params", ()), (3,), where, "kernel_params")
    if not gamma > 0:
        raise UserError(f"{where}: gamma is {gamma:g}, and the kernel knows nothing of its inputs; it must be above 0")
    found["gamma"] = float(gamma)
    if name != "RBF":
        found["coef0"] = float(coef0)
    if name == "POLY":
        if degree not in range(1, 10):
            raise UserError(f"{where}: degree is {degree:g}; it must be a whole number from 1 to 9")
        found["degree"] = int(degree)
    return found


def _vectors(has: dict[str, Any], count: int, where: str) -> np.ndarray:
    numbers = has.get("support_vectors", ())
    if count < 1 or not len(numbers) or len(numbers) % count:
        raise UserError(f"{where}: {len(numbers):,} numbers are not {count:,} support vectors; save the model again")
    dim = len(numbers) // count
    if dim > DIM_LIMIT:
        raise UserError(f"{where}: takes {dim:,} inputs; a model takes from 1 to {DIM_LIMIT:,}")
    return array_of(numbers, (len(numbers),), where, "support_vectors").reshape(count, dim)


def _classifier(node: Any) -> Machine:
    """As libsvm has it: of two classes, the function is above 0 for the first."""
    has, where = _attributes(node), node.op_type
    sizes = list(has.get("vectors_per_class", ()))
    if not sizes:
        raise UserError(f"{where}: has no support vectors but weights of inputs; import the estimator it was made of")
    labels = has.get("classlabels_ints") or [
        _text(label, "") for label in has.get("classlabels_strings", ())
    ]  # fmt: skip
    count, n = len(sizes), sum(sizes)
    require_classes(count, where)
    if len(labels) != count or min(sizes) < 0:
        raise UserError(
            f"{where}: vectors_per_class is {_shown(sizes)} for {len(labels)} classes; save the model again"
        )
    vectors, functions = _vectors(has, n, where), count * (count - 1) // 2
    weights = array_of(has.get("coefficients", ()), ((count - 1) * n,), where, "coefficients").reshape(count - 1, n).T
    bias = array_of(has.get("rho", ()), (functions,), where, "rho")
    machine = Machine(where, vectors=vectors, weights=weights, bias=bias, classes=tuple(labels), **_kernel(node, has))
    probable = len(has.get("prob_a", ())) > 0
    if count == 2:
        machine = replace(machine, weights=-weights, bias=-bias)
        if probable:
            a, b = (array_of(has.get(name, ()), (1,), where, name) for name in ("prob_a", "prob_b"))
            machine = replace(machine, calibration=np.column_stack([a, -b]))
        return machine
    notes = (f"{where}: prob_a and prob_b are left out, for {count} classes have no probabilities in C",)
    owners = np.repeat(np.arange(count), sizes)
    return replace(machine, decision="pairs", owners=owners, notes=notes if probable else ())


def _regressor(node: Any) -> Machine:
    has, where = _attributes(node), node.op_type
    count = int(has.get("n_supports", 0))
    if count == 0:
        raise UserError(f"{where}: has no support vectors but weights of inputs; import the estimator it was made of")
    if int(has.get("n_targets", 1)) != 1:
        raise UserError(f"{where}: n_targets is {has['n_targets']}; it must be 1")
    vectors = _vectors(has, count, where)
    weights = array_of(has.get("coefficients", ()), (count,), where, "coefficients").reshape(count, 1)
    bias = array_of(has.get("rho", ()), (1,), where, "rho")
    classes = (-1, 1) if has.get("one_class", 0) else None
    return Machine(where, vectors=vectors, weights=weights, bias=bias, classes=classes, **_kernel(node, has))


# ------------------------------------------------------------------------------------------------- before and after


def _tables(graph: Any) -> dict[str, np.ndarray]:
    """Constant tensors by name; those that are no numbers are left out."""
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.output) == 1:
            for attribute in node.attribute:
                if attribute.name == "value" and attribute.HasField("t"):
                    tensors[node.output[0]] = attribute.t
    found = {}
    for name, tensor in tensors.items():
        if tensor.data_location == TensorProto.EXTERNAL:
            raise UserError(f"keeps {_shown(name)} in another file; save it with its data inside")
        if tensor.data_type in NUMBERS:
            try:
                found[name] = numpy_helper.to_array(tensor)
            except (TypeError, ValueError):
                raise UserError(f"table {_shown(name)} is damaged; save the model again") from None
    return found


def _before(model: Any, node: Any, tables: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, int | None]:
    """(center, factor, inputs if told) of x -> (x - center) * factor, what the machine is given of the input x."""
    graph = model.graph
    inputs = [value for value in graph.input if value.name not in tables]
    if len(inputs) != 1:
        raise UserError(f"has {len(inputs)} inputs; it must have one, a row of numbers for each sample")
    makers = {name: other for other in graph.node for name in other.output if name}
    chain: list[Any] = []
    wanted = node.input[0] if len(node.input) == 1 else ""
    while wanted != inputs[0].name:
        maker = makers.get(wanted)
        if maker is None or maker.op_type not in AFFINE or len(chain) == len(graph.node):
            what = "nothing that is known" if maker is None else f"a {_shown(maker.op_type)}"
            raise UserError(
                f"gives its {node.op_type} {what}; before it there may be {', '.join(AFFINE)}, each number of an input "
                "for itself"
            )
        chain.append(maker)
        variable = [name for name in maker.input if name not in tables]
        if len(variable) != 1:
            raise UserError(f"its {maker.op_type} does not scale the input by constants")
        (wanted,) = variable
    center, factor = np.zeros(1), np.ones(1)
    for maker in reversed(chain):
        slope, offset = _slope_and_offset(maker, wanted, tables)
        sizes = {a.size for a in (center, factor, slope, offset)} - {1}
        if len(sizes) > 1:
            raise UserError(f"scales {' and then '.join(map(str, sorted(sizes)))} inputs")
        wanted = maker.output[0]
        # slope (x - center) factor + offset
        factor = factor * slope
        with np.errstate(all="ignore"):
            center = center - offset / factor
    dims = inputs[0].type.tensor_type.shape.dim
    width = dims[1].dim_value if len(dims) == 2 and dims[1].HasField("dim_value") else None
    return center, factor, width or None


def _slope_and_offset(maker: Any, variable: str, tables: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Of x -> slope x + offset."""
    one, zero, kind = np.ones(1), np.zeros(1), maker.op_type
    has = _attributes(maker)
    if kind == "Identity":
        return one, zero
    if kind == "Cast":
        if has.get("to") not in FLOATS:
            raise UserError("casts its inputs to a type that is neither float nor double")
        return one, zero
    if kind == "Scaler":
        scale, offset = (
            np.array(has.get(name, default), np.float64) for name, default in (("scale", one), ("offset", zero))
        )
        return scale, -offset * scale
    constant = tables[next(name for name in maker.input if name in tables)]
    if constant.ndim > 1 and constant.size != constant.shape[-1]:
        raise UserError(f"its {kind} takes a table of shape {constant.shape}; it must be one number for each input")
    constant = constant.astype(np.float64).ravel()
    first = maker.input[0] == variable
    if kind == "Add":
        return one, constant
    if kind == "Mul":
        return constant, zero
    if kind == "Sub":
        return (one, -constant) if first else (-one, constant)
    if not first:
        raise UserError("divides by its input")
    return 1 / constant, zero


def _decided(model: Any, node: Any, machine: Machine, tables: dict[str, np.ndarray]) -> Machine:
    """With what the graph makes of the machine's values: votes, or the sign of a OneClassSVM."""
    graph, classifier = model.graph, node.op_type == "SVMClassifier"
    scores = node.output[1] if classifier and len(node.output) > 1 else "" if classifier else node.output[0]
    labels, values, after = {node.output[0]} if classifier else set(), {scores} - {""}, []
    for other in graph.node:  # in topological order, by ONNX's rule
        if labels.intersection(other.input):
            if other.op_type not in ("Cast", "Identity"):
                raise UserError(f"changes the class by a {_shown(other.op_type)}, which has no C")
            labels.update(other.output)
        elif values.intersection(other.input):
            if other.op_type not in AFTER:
                raise UserError(f"changes the decision values by a {_shown(other.op_type)}, which has no C")
            values.update(other.output)
            after.append(other)
    probable = any(attribute.name == "prob_a" for attribute in node.attribute)
    width = len(machine.classes or ()) if probable else len(machine.bias)
    rows = np.random.default_rng(0).normal(size=(PROBED, width)).astype(np.float32)
    for end in (value.name for value in graph.output if value.name in values):
        made = _probe(after, scores, end, rows, tables, model)
        if _same(made, rows) or (classifier and width == 1 and _same(made, -rows)):
            continue  # of two classes, raw_scores have the sign of scikit-learn's decision_function
        if not classifier and _same(made, np.sign(rows)):
            machine = replace(machine, classes=(-1, 1))
        elif machine.owners is not None and not probable and _same(made, votes(rows, len(machine.classes or ()))):
            machine = replace(machine, decision="votes")
        else:
            raise UserError(STRANGE)
    return machine


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and bool(np.allclose(a, b, atol=1e-5))


def _probe(
    nodes: Sequence[Any], scores: str, end: str, rows: np.ndarray, tables: dict[str, np.ndarray], model: Any
) -> np.ndarray:
    """What the nodes make of rows.  They cannot take much memory: constants are single numbers, few things are joined."""
    from onnx.helper import make_graph, make_model, make_node, make_tensor_value_info
    from onnx.reference import ReferenceEvaluator

    if end == scores:
        return rows
    used = {name for node in nodes for name in node.input} - {name for node in nodes for name in node.output} - {scores}
    joins = [node for node in nodes if node.op_type == "Concat"]
    if (
        any(name not in tables or tables[name].size != 1 for name in used)
        or len(joins) > 2
        or any(len(node.input) > OUTPUTS_LIMIT for node in nodes)
    ):
        raise UserError(STRANGE)
    plain = [make_node("Identity", n.input, n.output) if n.op_type == "ZipMap" else n for n in nodes]
    graph = make_graph(
        plain,
        "after",
        [make_tensor_value_info(scores, TensorProto.FLOAT, rows.shape)],
        [make_tensor_value_info(end, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(tables[name], name) for name in sorted(used)],
    )
    try:
        with np.errstate(all="ignore"):
            (found,) = ReferenceEvaluator(make_model(graph, opset_imports=model.opset_import)).run(None, {scores: rows})
        return np.asarray(found, np.float64)
    except Exception:  # whatever the reference says of operations that do not fit together
        raise UserError(STRANGE) from None


def functions(model: Any, x: np.ndarray) -> np.ndarray:
    """What ONNX's reference implementation computes of the machine at rows of x, (rows, F), signs as Machine has them."""
    from onnx.reference import ReferenceEvaluator

    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    (node,) = (node for node in copy.graph.node if node.op_type in MACHINES)
    classifier = node.op_type == "SVMClassifier"
    kept = [attribute for attribute in node.attribute if attribute.name not in ("prob_a", "prob_b", "one_class")]
    del node.attribute[:]
    node.attribute.extend(kept)
    scores = node.output[1] if classifier else node.output[0]
    makers = {name: other for other in copy.graph.node for name in other.output}
    needed, wanted = [node], list(node.input)
    while wanted:
        if (maker := makers.get(wanted.pop())) is not None:
            needed.insert(0, maker)
            wanted.extend(maker.input)
    del copy.graph.node[:]
    copy.graph.node.extend(needed)
    del copy.graph.output[:]
    copy.graph.output.append(onnx.helper.make_tensor_value_info(scores, TensorProto.FLOAT, None))
    (given,) = (v for v in copy.graph.input if v.name not in {t.name for t in copy.graph.initializer})
    dtype = np.float64 if given.type.tensor_type.elem_type == TensorProto.DOUBLE else np.float32
    (found,) = ReferenceEvaluator(copy).run([scores], {given.name: np.asarray(x, dtype)})
    found = np.asarray(found, np.float64)
    # of two classes the reference writes (-f, f) for libsvm's f
    return found[:, :1] if classifier and len(_attributes(node)["vectors_per_class"]) == 2 else found
