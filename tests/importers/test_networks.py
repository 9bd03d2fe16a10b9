"""Networks with one hidden layer compute what ONNX's reference and scikit-learn do; all others are refused in a sentence."""

import json
import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from onnx.helper import make_node
from onnx.reference import ReferenceEvaluator
from scipy.special import softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from benchmarks.host.import_errors import data, scaled
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.importers import importing
from pykernel.importers.importing import from_sklearn, load_model
from pykernel.importers.sklearn import read_estimator
from pykernel.spec.model import load_spec, make_spec
from pykernel.training.trained import content
from tests.importers.test_importing import (
    doubles,
    graph,
    node,
    read_as_the_reference,
    refused_at_once,
    to_onnx,
    write,
)

RNG = np.random.default_rng(0)
W1, B1, W2, B2 = (RNG.normal(size=size).astype(np.float32) for size in ((6, 4), 6, (3, 6), 3))
UNITS = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "logistic", "": "identity"}
ENDS = {"": 2, "Softmax": 3, "Softmax, two": 2, "Sigmoid": 1, "ArgMax": 3}
"""What stands at the end, and how many values the last layer makes."""


def pytorch(x, y, at, weights, bias, **keys):
    """A layer as torch.onnx.export writes it (2.14, both exporters)."""
    keys = {"alpha": 1.0, "beta": 1.0, "transB": 1} | keys
    return [node("Gemm", [x, f"{at}.weight", f"{at}.bias"], y, **keys)], {f"{at}.weight": weights, f"{at}.bias": bias}


def keras(x, y, at, weights, bias):
    """As tf2onnx writes it, and skl2onnx, which adds a table of one row."""
    nodes = [
        node("MatMul", [x, f"dense_{at}/kernel"], f"dense_{at}/MatMul"),
        node("Add", [f"dense_{at}/MatMul", f"{at}b"], y),
    ]
    return nodes, {f"dense_{at}/kernel": weights.T.copy(), f"{at}b": bias if at else bias[None]}


def plain(x, y, at, weights, bias):
    """Without a bias."""
    return [node("MatMul", [x, f"{at}w"], y)], {f"{at}w": weights.T.copy()}


def network(layer=pytorch, unit="Relu", end="", before=(), after=(), values=(W1, B1, W2, B2), outputs=None, **tables):
    """A file of two layers, what stands before the first, and what stands behind the last, "z"."""
    first, own = layer(before[-1].output[0] if before else "x", "h", 0, *values[:2])
    last, more = layer("u" if unit else "h", "y" if end else "z", 2, *values[2:])
    ends = (
        [node(end.partition(",")[0], ["y"], "z", **({"axis": 1} if end[:3] in ("Sof", "Arg") else {}))] if end else []
    )
    units = [node(unit, ["h"], "u")] if unit else []
    return graph(*before, *first, *units, *last, *ends, *after, tables=own | more | tables, outputs=outputs)


BEFORE = {
    "nothing": ((), {}),
    "Flatten, Sub, Div": (
        (node("Flatten", ["x"], "f", axis=1), node("Sub", ["f", "c"], "a"), node("Div", ["a", "d"], "b")),
        {"c": np.array([1, 2, 3, 4], np.float32), "d": np.array([0.5, 2, 1, 4], np.float32)},
    ),
    "Reshape, Identity": (
        (node("Reshape", ["x", "shape"], "r", allowzero=1), node("Identity", ["r"], "i")), {"shape": np.array([-1, 4])},
    ),
}  # fmt: skip


@pytest.mark.exhaustive
@pytest.mark.parametrize("layer", [pytorch, keras, plain])
@pytest.mark.filterwarnings("ignore:.*probabilities are left out")
def test_a_network_is_what_the_reference_computes(layer, tmp_path):
    x = RNG.normal(size=(60, 4)).astype(np.float32).astype(float) * 2 + 1
    for (unit, function), (end, count), (before, tables) in product(UNITS.items(), ENDS.items(), BEFORE.values()):
        model = network(layer, unit, end, before, values=(W1, B1, W2[:count], B2[:count]), **tables)
        path = write(tmp_path / "m.onnx", model)
        (known,) = ReferenceEvaluator(doubles(model)).run(None, {"x": x})
        for precision, most in (("float64", 1e-12), ("float32", 1e-4)):
            spec, (source, read) = load_model(path, precision=precision), importing.read_file(path)
            found = importing.compare(spec, source, read, x)
            assert found["ok"] and found["refused"] == 0 and found["undecided"] < 10, (unit, end, found)
            host = HostModel(spec)
            assert (spec.kernel.function, len(spec.expansion.vectors)) == (function, len(W1))
            assert spec.label.classes == (tuple("012")[: max(2, count)] if end else None)
            values = host.predict(x).reshape(60, -1)
            if not end:
                assert np.abs(values - known).max() < most
            elif end == "ArgMax":
                assert np.array_equal(host.classify(x), known.ravel()) and spec.expansion.calibration is None
            elif count > 2:
                assert np.abs(softmax(values, axis=1) - known).max() < most and not host.has("probability")
            else:
                p, _ = host.ask("probability", x)
                assert np.abs(p[:, -known.shape[1] :] - known).max() < most
                assert np.array_equal(host.classify(x), known[:, -1] > 0.5)


TARGETS = ("numbers", "several", "two", "three", "text")


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_what_skl2onnx_writes_of_networks_is_the_estimator(tmp_path):
    """Each activation with each target, input type and kind of scaler, in turns."""
    x, held, y = data()
    y["several"] = np.column_stack([y["numbers"], y["numbers"] ** 2, y["three"]])
    y["text"] = np.array(["low", "mid", "high"])[y["three"]]
    for at, (activation, target) in enumerate(product(UNITS.values(), TARGETS)):
        kind = MLPRegressor if at % 5 < 2 else MLPClassifier
        sizes = () if at in (3, 6) else (9,)
        model = kind(hidden_layer_sizes=sizes, activation=activation, random_state=at)
        estimator = scaled(model, (StandardScaler, MinMaxScaler)[at % 2]).fit(x, y[target])
        options = {"zipmap": False} if kind is MLPClassifier and at % 3 else None
        path = write(tmp_path / "m.onnx", to_onnx(estimator, (np.float32, np.float64)[at % 4 == 1], options=options))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            spec = load_model(path, "m", precision="float64")
            known = from_sklearn(estimator, "m", precision="float64")
        left_out = sum(
            "probabilities are left out, because the softmax of 3 classes is not supported" in str(w.message)
            for w in said
        )
        assert left_out == (2 if target in ("three", "text") else 0)
        source, read = importing.read_file(path)
        assert importing.compare(spec, source, read, held)["ok"]
        assert importing.compare(spec, source, None, held)["ok"]
        assert (spec.label, spec.expansion.calibration) == (known.label, known.expansion.calibration)
        assert spec.kernel.function == known.kernel.function == (activation if sizes else "linear")
        host, other = HostModel(spec), HostModel(known)
        np.testing.assert_allclose(host.predict(held), other.predict(held), atol=1e-4)
        if kind is MLPClassifier:
            assert (host.classify(held) == other.classify(held)).mean() > 0.99


def test_the_command_compares_a_network_with_its_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "net.onnx", network(end="Softmax"))
    write(tmp_path / "gate.onnx", network(end="Sigmoid", values=(W1, B1, W2[:1], B2[:1])))
    pd.DataFrame(RNG.normal(size=(400, 4)), columns=list("abcd")).to_csv("x.csv", index=False)
    words = ("--inputs", "a,b,c,d", "--data", "x.csv", "--force")
    code, out, err = run("import", "net.onnx", "-o", "net.toml", *words, "--set", "label.classes=p,q,r")
    assert code == 0 and "probabilities are left out" in err
    for text in ("net: network, float32", "relu", "p, q, r", "comparison with the original model"):
        assert text in out
    code, out, err = run("import", "gate.onnx", "-o", "gate.toml", *words, "--json")
    report = json.loads(out)
    assert (code, err) == (0, "") and report["ok"] and report["probabilities"] and report["vectors"] == 6
    assert report["rounding"]["rows"] == 400 and 0 < report["rounding"]["difference"] <= report["rounding"]["allowed"]
    # fewer units are vectors of a gaussian machine, for which rows are needed
    code, out, err = run("import", "gate.onnx", "-o", "gate.toml", *words, "--vectors", "4")
    assert code == 0 and "difference from the model with 6 vectors, on 80 left-out rows" in out
    code, out, err = run("import", "gate.onnx", "-o", "gate.toml", "--force", "--vectors", "4")
    assert (
        code == 2
        and "weights of the inputs, so no rows can be generated from them; give rows with the option --data" in err
    )
    code, out, err = run("import", "gate.onnx", "-o", "gate.toml", *words, "--set", "precision=int16")
    assert code == 0 and "gate: network, int16" in out
    # what simulate compares with
    code, out, err = run("import", "gate.onnx", "-o", "gate.toml", *words, "--label", "kind")
    assert code == 0 and load_spec("gate.toml").label.column == "kind", err
    code, out, err = run("import", "gate.onnx", "-o", "gate.toml", *words, "--label", "kind,other")
    assert code == 2 and "--label names 2 columns; it must name 1, one for each label that the model predicts" in err


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore:.*probabilities are left out")
def test_any_file_is_what_the_reference_computes_or_is_refused(tmp_path, exhaustive):
    x, _, y = data()
    ends = [(end, count) for end, count in ENDS.items() if end != "Softmax, two"]
    whole = [
        network(layer, unit, end, before, values=(W1, B1, W2[:count], B2[:count]), **tables)
        for (before, tables), layer, unit, (end, count) in product(BEFORE.values(), (pytorch, keras), UNITS, ends)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for target in ("two", "three"):
            model = scaled(MLPClassifier(hidden_layer_sizes=(5,), random_state=0, max_iter=50)).fit(x, y[target])
            whole += 8 * [to_onnx(model, options={"zipmap": False})]
    assert read_as_the_reference(whole, tmp_path / "m.onnx", 20_000 if exhaustive else 500) > len(whole) + 20


# ------------------------------------------------------------------------------------------------------ what is refused


def many(count):
    """A network of so many layers."""
    found = [
        pytorch(f"a{i}", f"a{i + 1}", i, np.eye(4, dtype=np.float32), np.ones(4, np.float32)) for i in range(count)
    ]
    nodes = [each for nodes, _ in found for each in nodes]
    nodes[0].input[0] = "x"
    return graph(*nodes, tables={name: table for _, tables in found for name, table in tables.items()})


def changed(change, **how):
    model = network(**how)
    change(model.graph)
    return model


def wide(units):
    return network(values=[np.zeros(size, np.float32) for size in ((units, 4), units, (1, units), 1)])


TALL = {"w": np.ones((4, 6), np.float32)}
REFUSED = {
    "network: has 2 hidden layers, but only one is supported; run all its layers except the last in another runtime": lambda: many(3),
    "network: has 4999 hidden layers": lambda: many(5_000),
    "network: has 100,000 hidden units; a model has at most 65,536": lambda: wide(100_000),
    "has 'Gelu' where its next layer must be; only Relu, Sigmoid, Tanh or nothing": lambda: network(unit="Gelu"),
    "has 'BatchNormalization' where its next layer": lambda: changed(
        lambda g: (g.node.insert(2, node("BatchNormalization", ["u"], "n")), g.node[3].input.__setitem__(0, "n"))),
    "has nothing where its next layer must be": lambda: changed(lambda g: g.node[2].input.__setitem__(0, "x")),
    "changes the decision values with a 'Relu'": lambda: network(end="Relu"),
    "changes the decision values with a 'LogSoftmax'": lambda: network(end="LogSoftmax"),
    "has a 'Conv' before its network; only operations that treat each input separately may come before it: Scaler, Add": lambda: network(before=[node("Conv", ["x", "x"], "b")]),
    # numbers
    "its Gemm has transA 1; transA must be 0": lambda: network(lambda *a: pytorch(*a, transA=1)),
    "its Gemm has alpha 2.0; alpha must be 1": lambda: network(lambda *a: pytorch(*a, alpha=2.0)),
    "its Gemm has beta nan; beta must be 1": lambda: network(lambda *a: pytorch(*a, beta=float("nan"))),
    "its Gemm has the attribute 'alpha', which differs from ONNX's definition": lambda: network(lambda *a: pytorch(*a, alpha=1)),
    "its Gemm has the attribute 'transC', which differs from": lambda: network(lambda *a: pytorch(*a, transC=0)),
    "network: the table of its last layer has shape (5, 3); it must be (6, 3) to fit the other parts": lambda: network(
        values=(W1, B1, W2[:, :5], B2)),
    "its Gemm computes 6 values, but the numbers added to them have shape (5,)": lambda: network(values=(W1, B1[:5], W2, B2)),
    "its Gemm computes 6 values, but the numbers added to them have shape (6, 4)": lambda: changed(
        lambda g: g.node[0].input.__setitem__(2, "0.weight")),
    "its Gemm computes 6 values, but the numbers added to them have shape (0,)": lambda: changed(lambda g: g.node[0].input.__setitem__(2, "x")),
    "its MatMul must take, in this order, the values of the previous node and a two-dimensional table of floats": lambda: graph(
        node("MatMul", ["w", "x"]), tables=TALL),
    "its MatMul must take, in this order, the values of the previous node and a two-dimensional table": lambda: graph(
        node("MatMul", ["x", "w"]), tables={"w": np.ones((4, 6), int)}),
    "its MatMul must take, in this order, the values of the previous node": lambda: graph(node("MatMul", ["x", "w"]), tables={"w": np.ones((2, 4, 6))}),
    "has a table before its network": lambda: graph(node("MatMul", ["v", "w"]), tables=TALL | {"v": np.ones((6, 4), np.float32)}),
    "network: has 0 targets; a model has from 1 to 64": lambda: network(values=(W1, B1, W2[:0], B2[:0])),
    "network: has 65 targets": lambda: network(values=(W1, B1, np.ones((65, 6), np.float32), np.ones(65, np.float32))),
    "network: takes 2,000 inputs; a model takes from 1 to 1,024": lambda: network(
        values=(np.ones((6, 2000), np.float32), B1, W2, B2)),
    "takes 4 inputs, but its vectors have 5 numbers": lambda: network(values=(np.ones((6, 5), np.float32), B1, W2, B2)),
    "table '0.bias' holds numbers that are not finite": lambda: network(values=(W1, B1 * np.nan, W2, B2)),
    "keeps table '0.weight' in another file; save the model with all data in one file": lambda: changed(
        lambda g: g.initializer[0].external_data.add(key="location", value="m.onnx.data")),
    "table '2.weight' is damaged": lambda: changed(lambda g: g.initializer[2].dims.__setitem__(0, 2**40)),
    # shapes
    "its Flatten changes the shape of the input; the shape must be (samples, 4)": lambda: network(
        before=[node("Flatten", ["x"], "b", axis=0)]),
    "its Reshape changes the shape of the input": lambda: network(
        before=[node("Reshape", ["x", "s"], "b")], s=np.array([2, -1, 4])),
    "its Reshape changes the shape of the input;": lambda: network(before=[node("Reshape", ["s", "x"], "b")], s=np.array([-1, 4])),
    "its input has 3 dimensions; it must have two": lambda: changed(
        lambda g: g.input[0].type.tensor_type.shape.dim.add(dim_value=4)),
    # what stands behind
    "ends in 3 sigmoids, one for each label; for several classes, only a Softmax is supported": lambda: network(end="Sigmoid"),
    "neither the decision values nor scikit-learn's votes, probabilities or class": lambda: network(
        after=[node("Add", ["z", "x"], "q")]),
    "neither the decision values nor scikit-learn's votes, probabilities": lambda: changed(
        lambda g: g.node[3].attribute[0].__setattr__("i", 0), end="Softmax"),
    "neither the decision values nor scikit-learn's votes": lambda: changed(
        lambda g: g.node[3].attribute[0].__setattr__("i", 0), end="ArgMax"),
    "neither the decision values nor": lambda: network(after=[node("Reshape", ["z", "s"], "q")], s=np.full(100_000, 2**40)),
    "neither the decision values": lambda: network(after=[make_node("ArrayFeatureExtractor", ["z", "s"], ["q"], domain="ai.onnx.ml")], s=np.array(7)),
    "also gives 'h', which is not a result of the machine": lambda: network(outputs=["z", "h"]),
    "the labels of its ZipMap differ from the names of its classes": lambda: network(
        end="Softmax", after=[node("ZipMap", ["z"], "q", classlabels_int64s=[1, 2, 3])]),
    "holds a 'Relu' that is not part of the model": lambda: network(before=[node("Relu", ["x"], "b")], unit="Tanh") and changed(
        lambda g: g.node.insert(0, node("Relu", ["x"], "q"))),
}  # fmt: skip


@pytest.mark.parametrize("sentence", REFUSED)
def test_other_files_are_refused_at_once(sentence, tmp_path):
    refused_at_once(write(tmp_path / "m.onnx", REFUSED[sentence]()), sentence)


def several_labels(x, y):
    return MLPClassifier(max_iter=5).fit(x, np.column_stack([y["two"], y["three"] > 0]))


def broken(x, y, **attributes):
    model = MLPRegressor(hidden_layer_sizes=(3,), max_iter=5).fit(x, y["numbers"])
    vars(model).update(attributes)
    return model


ESTIMATORS = {
    "MLPRegressor: has 2 hidden layers, but only one is supported; .* to a pykernel model": lambda x, y: MLPRegressor(
        hidden_layer_sizes=(4, 3), max_iter=5).fit(x, y["numbers"]),
    "MLPClassifier: its labels are 'multilabel-indicator'; a model must choose one of several classes": several_labels,
    "MLPRegressor: out_activation_ is 'exp', which is not supported; it must be identity": lambda x, y: MLPRegressor(
        loss="poisson", max_iter=5).fit(x, y["two"]),
    "CalibratedClassifierCV: its MLPClassifier has no decision_function, so its probabilities are calibrated, which is not supported": lambda x, y:
        CalibratedClassifierCV(scaled(MLPClassifier(max_iter=5)), ensemble=False).fit(x, y["two"]),
    "MLPClassifier is not fitted": lambda x, y: MLPClassifier(),
    "activation is 'fourier', which is not supported; it must be one of relu, tanh, logistic, identity": lambda x, y: broken(
        x, y, activation="fourier"),
    "some of its 3 layers are missing": lambda x, y: broken(x, y, intercepts_=[]),
    "the bias of its first layer holds numbers that are not finite": lambda x, y: broken(
        x, y, intercepts_=[np.full(3, np.inf), np.ones(1)]),
    "the table of its last layer has shape": lambda x, y: broken(x, y, intercepts_=[np.ones(3), np.ones(2)]),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sentence", ESTIMATORS)
def test_other_estimators_are_refused_in_a_sentence(sentence):
    x, _, y = data()
    with pytest.raises(UserError, match=sentence) as error:
        from_sklearn(ESTIMATORS[sentence](x, y), "m")
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


@pytest.mark.filterwarnings("ignore")
def test_what_weights_do_not_tell_must_be_given():
    """Fewer vectors and int16 need rows of inputs, or their ranges."""
    x, held, y = data()
    for activation, target in zip(UNITS.values(), ("numbers", "two", "three", "numbers"), strict=True):
        kind = MLPRegressor if target == "numbers" else MLPClassifier
        model = scaled(kind(hidden_layer_sizes=(8,), activation=activation, random_state=0)).fit(x, y[target])
        with pytest.raises(UserError, match=f"which this {activation} model does not contain; give max_abs "):
            from_sklearn(model, "m", precision="int16")
        with pytest.raises(UserError, match=r"weights of the inputs, .*; give rows with the option data"):
            from_sklearn(model, "m", vectors=4)
        assert len(from_sklearn(model, "m", vectors=4, data=x).expansion.vectors) == 4
        spec = from_sklearn(model, "m", precision="int16", data=x)
        found = importing.compare(spec, read_estimator(model), model, held)
        assert found["ok"] and found["undecided"] < 15 and found["refused"] == 0


@pytest.mark.filterwarnings("ignore")
def test_rows_between_two_classes_are_undecided():
    """Where the two largest values are the same but for rounding, the class may be another one; that is no failure."""
    x, _, y = data()
    model = scaled(MLPClassifier(hidden_layer_sizes=(12,), random_state=0)).fit(x, y["three"])
    rng = np.random.default_rng(0)
    first, last = x[rng.integers(len(x), size=(2, 2000))]
    of = model.predict(first)
    for _ in range(25):
        middle = (first + last) / 2
        same = (model.predict(middle) == of)[:, None]
        first, last = np.where(same, middle, first), np.where(same, last, middle)
    rows = first
    spec = from_sklearn(model, "m", precision="int16", data=x)
    found, taken = importing.compare(spec, read_estimator(model), model, rows), rows[spec.accepts(spec.as_seen(rows))]
    assert found["ok"] and 0 < found["undecided"] < len(rows)
    assert 0 < (HostModel(spec).classify(taken) != model.predict(taken)).sum() < found["undecided"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_inputs_far_from_the_rows_are_refused(precision):
    x, _, y = data()
    model = scaled(MLPRegressor(hidden_layer_sizes=(8,), random_state=0)).fit(x, y["numbers"])
    spec = from_sklearn(model, "m", precision=precision, data=x)
    low, high = x.min(0), x.max(0)
    assert spec.accepts(np.array([low, high])).all()
    assert not spec.accepts(high + 1.6 * np.diag(high - low)).any()
    if precision == "float32":
        assert from_sklearn(model, "m").accepts(high + 100 * np.diag(high - low)).all()


def dense(size=400):
    """Inputs, and labels that few hidden units make: a number, and one of two words."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(size, 6)) * [1, 10, 0.1, 1, 1, 1] + [0, 50, 0, 0, 0, 0]
    y = np.maximum((x - x.mean(0)) / x.std(0) @ rng.normal(size=(6, 3)), 0).sum(axis=1)
    return x, y, np.where(y > np.median(y), "much", "little")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("words", [False, True])
def test_weights_have_eight_bits_where_the_rows_tell_no_difference(words):
    """A third of the flash of the hidden layer, the answers within what was allowed; 16 bits without rows, and where they matter."""
    x, y, named = dense()
    model = scaled(
        (MLPClassifier if words else MLPRegressor)(
            hidden_layer_sizes=(8,), solver="lbfgs", max_iter=300, random_state=0
        )
    )
    model.fit(x, named if words else y)
    machine, whole = read_estimator(model), from_sklearn(model, "m", precision="int16", max_abs=100.0)
    spec = from_sklearn(model, "m", precision="int16", data=x)
    assert spec.config.eight and not whole.config.eight
    assert build(whole).figures["const_bytes"] - build(spec).figures["const_bytes"] > 8 * 6 / 2
    found = importing.compare(spec, machine, model, x)
    assert found["ok"] and found["undecided"] <= 0.1 * len(x)
    f = HostModel(spec).predict(x).ravel()
    exact = importing.source_functions(model, x).ravel()
    if words:
        assert np.mean((f > 0) != (exact > 0)) <= 0.003
    else:
        assert np.sqrt(np.mean((f - exact) ** 2)) < 0.0101 * exact.std()
    # weights of large columns that cancel cannot be rounded
    steep = np.column_stack([x, x[:, :1] + x[:, 3:4] + 1e-3 * x[:, 4:5]])
    layer = replace(
        machine,
        vectors=np.array([[-300.0, 0, 0, -300.0, 0, 0, 300.0]]), weights=np.ones((1, 1)), bias=np.zeros(1), offsets=np.zeros(1),
        center=None, scale=None, function="identity",
    )  # fmt: skip
    assert not make_spec(content(layer, "m", "int16", seen=steep)).config.eight
