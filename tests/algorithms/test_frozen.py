"""Frozen models against their definitions in float64."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.algorithms.frame import Status
from pykernel.gen.check import same_numbers
from pykernel.host.model import HostModel
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import Spec, make_spec
from pykernel.training.rounding import device_bound
from tests.support.retraining import KERNELS, Inputs

PRECISIONS = ("float32", "float64")


class Twin(Inputs):
    """The definitions of the spec's [expansion], written out."""

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec)
        expansion, real = spec.expansion, spec.real.dtype
        assert expansion is not None and expansion.weights is not None and expansion.bias is not None
        self.vectors = np.array(expansion.vectors, real).astype(float)
        self.weights = np.array(expansion.weights, real).astype(float)
        self.bias = np.array(expansion.bias, real).astype(float)
        self.decision, self.support_class = expansion.decision, expansion.support_class or ()
        self.break_ties, self.calibration = expansion.break_ties, expansion.calibration

    def weights_of(self, i: int) -> np.ndarray:
        """Vector i's weight in each function, (functions,)."""
        if self.decision == "functions":
            return self.weights[i]
        found = []
        for a, b in itertools.combinations(range(self.classes), 2):
            own = self.support_class[i]
            found.append(self.weights[i][b - 1] if own == a else self.weights[i][a] if own == b else 0.0)
        return np.array(found)

    def functions(self, x: np.ndarray) -> np.ndarray:
        k = self.gram(self.scaled(x)[None], self.vectors)[0]
        return self.bias + sum(k[i] * self.weights_of(i) for i in range(len(k)))

    def votes(self, f: np.ndarray) -> np.ndarray:
        votes, of = np.zeros(self.classes), dict(zip(itertools.combinations(range(self.classes), 2), f, strict=True))
        for (a, b), value in of.items():
            votes[a if value > 0 else b] += 1
        return votes

    def clear(self, f: np.ndarray) -> np.ndarray:
        """votes + bounded confidence."""
        of = dict(zip(itertools.combinations(range(self.classes), 2), f, strict=True))
        s = np.array(
            [sum(v if a == c else -v if b == c else 0.0 for (a, b), v in of.items()) for c in range(self.classes)]
        )
        return self.votes(f) + s / (3 * (np.abs(s) + 1))

    def predict(self, f: np.ndarray) -> np.ndarray:
        if self.decision == "ovo_vote":
            return self.clear(f)
        low, high = self.spec.label.low, self.spec.label.high
        return np.clip(f, -np.inf if low is None else low, np.inf if high is None else high)

    def classify(self, f: np.ndarray) -> int:
        if self.decision == "functions":
            return int(f[0] > 0) if len(f) == 1 else int(np.argmax(f))
        return int(np.argmax(self.clear(f) if self.break_ties else self.votes(f)))

    def each_probability(self, f: np.ndarray) -> np.ndarray:
        assert self.calibration is not None
        arguments = [a * value + b for (a, b), value in zip(self.calibration, f, strict=True)]
        return np.array([1 / (1 + np.exp(min(argument, 700.0))) for argument in arguments])

    def probability(self, f: np.ndarray) -> np.ndarray:
        p = self.each_probability(f)
        return np.array([1 - p[0], p[0]]) if len(p) == 1 else p / p.sum()

    # ---- what rounding may change

    def rounding(self, x: np.ndarray) -> np.ndarray:
        """Bound of what the precision takes from the functions' values, (functions,)."""
        function, gamma, coef0, degree = self.kernel
        eps, total = float(np.finfo(self.spec.real.dtype).eps), np.zeros(len(self.bias))
        size = np.abs(self.bias)  # of what is added up
        u = self.scaled(x)
        steps = len(u) + 4
        for i, v in enumerate(self.vectors):
            k = abs(self.gram(u[None], v[None])[0, 0])
            lost = 2 * eps * np.sum(np.abs(self.scale) * (np.abs(x) + np.abs(self.center)))  # of x, scaled
            product = np.sum(np.abs(u * v)) + lost * np.abs(v).max()
            if function == "gaussian":
                exponent = gamma * (np.sum((u - v) ** 2) + 2 * lost / eps * np.abs(u - v).max())
                if self.spec.expansion is not None and self.spec.expansion.distance == "products":
                    exponent = gamma * (np.abs(u).sum() + np.abs(v).sum()) ** 2
                error = k * np.expm1(min(steps * eps * exponent, 50.0)) + 4 * eps * k + 2.0**-59
            elif function == "laplacian":
                error = k * np.expm1(min(steps * eps * gamma * (np.abs(u - v).sum() + lost / eps), 50.0)) + 4 * eps * k
                error += 2.0**-59
            else:
                argument = gamma * product + abs(coef0)
                error = steps * eps * {"linear": product, "sigmoid": argument + 2}.get(function, 0.0)
                if function == "polynomial":
                    error = (steps + degree) * eps * degree * argument**degree
            total += (error + 2 * eps * k) * np.abs(self.weights_of(i))
            size = size + k * np.abs(self.weights_of(i))
        return total + len(self.vectors) * eps * (size + 1e-30)


# ------------------------------------------------------------------------------------------------------------ specs


def rounded(values: np.ndarray) -> Any:
    """As float32 holds them: what a spec says is then what either precision computes with."""
    return values.astype(np.float32).astype(float).tolist()


@st.composite
def specs(draw: st.DrawFn, precisions: tuple[str, ...] = PRECISIONS) -> Spec:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dim, count = draw(st.integers(1, 6)), draw(st.integers(1, 12))
    function = draw(st.sampled_from(KERNELS))
    kernel: dict[str, Any] = {"function": function}
    if function == "gaussian" and draw(st.booleans()):
        kernel["sigma"] = draw(st.sampled_from([0.25, 1.0, 4.0]))
    elif function != "linear":
        kernel["gamma"] = draw(st.sampled_from([0.125, 0.5, 2.0]))
    if function in ("polynomial", "sigmoid"):
        kernel["coef0"] = draw(st.sampled_from([0.0, 1.0, -0.5]))
    if function == "polynomial":
        kernel["degree"] = draw(st.integers(1, 9))
    inputs: dict[str, Any] = {"dim": dim, "max_abs": 16.0}
    if draw(st.booleans()):
        inputs |= {"center": rounded(rng.normal(size=dim)), "scale": rounded(rng.uniform(0.2, 2, dim))}
    kind = draw(st.sampled_from(["real", "reals", "class", "pairs"]))
    label: dict[str, Any] = {}
    expansion: dict[str, Any] = {}
    functions = columns = draw(st.integers(2, 3)) if kind == "reals" else 1
    if kind == "reals":
        label = {"outputs": functions}
    elif kind != "real":
        classes = draw(st.integers(2 if kind == "class" else 3, 5))
        label = {"classes": [f"class {i}" for i in range(classes)]}
        functions = columns = 1 if classes == 2 else classes
        if kind == "pairs":
            functions, columns = classes * (classes - 1) // 2, classes - 1
            expansion["decision"] = draw(st.sampled_from(["ovo", "ovo_vote"]))
            expansion["support_class"] = sorted(rng.integers(0, classes, count).tolist())
            if draw(st.booleans()):
                expansion["break_ties"] = True
        elif draw(st.booleans()):
            expansion["calibration"] = rounded(rng.normal(size=(functions, 2)) * [3, 1])
    if kind in ("real", "reals") and draw(st.booleans()):
        label |= {"low": -0.5, "high": 0.75}
    scale = draw(st.sampled_from([1.0, 1.0, 1e-3, 1e3]))
    expansion |= {
        "vectors": rounded(rng.normal(size=(count, dim))),
        "weights": rounded(scale * rng.normal(size=(count, columns))),
        "bias": rounded(0.3 * scale * rng.normal(size=functions)),
    }
    if function == "gaussian" and draw(st.booleans()):
        expansion["distance"] = "products"
    return make_spec(
        {
            "name": "gate",
            "precision": draw(st.sampled_from(precisions)),
            "input": inputs,
            "label": label,
            "kernel": kernel,
            "learning": {"rule": "frozen"},
            "expansion": expansion,
        }
    )


def samples(spec: Spec, count: int, seed: int = 0) -> np.ndarray:
    """Inputs near and far, at the vectors, at and beyond the limit, NaN and infinities, as the device takes them."""
    rng, real, limit = np.random.default_rng(seed), spec.real.dtype, spec.input.max_abs
    x = rng.normal(size=(count, spec.dim))
    assert spec.expansion is not None
    vectors = np.array(spec.expansion.vectors)
    at = rng.random(count) < 0.2
    x[at] = vectors[rng.integers(0, len(vectors), int(at.sum()))]
    tiny = rng.random(count) < 0.1
    x[tiny] *= 10.0 ** rng.uniform(-45, 0, (int(tiny.sum()), 1))
    odd = rng.random(count) < 0.25
    values = [limit, -limit, np.nextafter(real.type(limit), np.inf, dtype=real), np.nan, np.inf, -np.inf, limit / 3]
    x[odd, rng.integers(0, spec.dim, int(odd.sum()))] = rng.choice(values, int(odd.sum()))
    return x.astype(real)


def apart(values: np.ndarray, rounding: float) -> bool:
    """Whether the largest value is larger than all others by more than rounding."""
    ordered = np.sort(values)
    return len(values) < 2 or bool(ordered[-1] - ordered[-2] > rounding)


# ------------------------------------------------------------------------------------------------- the definitions


@given(specs(), st.integers(0, 2**32))
def test_answers_are_those_of_the_definition(spec: Spec, seed: int) -> None:
    """In either precision to its own rounding; labels wherever rounding does not decide them."""
    model, twin, x = HostModel(spec), Twin(spec), samples(spec, 40, seed)
    answers = {question: model.ask(question, x) for question in spec.program.questions if model.has(question)}
    assert ("probability" in answers) == (twin.calibration is not None)
    for i, row in enumerate(x):
        for name, (values, statuses) in answers.items():
            refused = not twin.accepted(row)
            assert statuses[i] == (Status.REFUSED_INPUT if refused else Status.DONE), name
            if refused:
                assert (values[i] == -1).all() if name == "classify" else np.isnan(values[i]).all()
        if not twin.accepted(row):
            continue
        f, rounding = twin.functions(row.astype(float)), twin.rounding(row.astype(float))
        clear = np.abs(f) > rounding
        if twin.decision != "ovo_vote":
            error = np.abs(answers["predict"][0][i] - twin.predict(f))
            assert (error <= rounding).all(), (error, rounding)
        elif clear.all():
            error = np.abs(answers["predict"][0][i] - twin.predict(f))
            assert (error <= rounding.sum() + 8 * np.finfo(spec.real.dtype).eps).all(), (error, rounding)
        if "classify" in answers:
            decided = clear.all() if twin.decision != "functions" or len(f) == 1 else apart(f, 2 * rounding.max())
            if twin.decision != "functions" and twin.break_ties:
                decided = decided and apart(twin.clear(f), 2 * rounding.sum() + 1e-6)
            if decided:
                assert answers["classify"][0][i, 0] == twin.classify(f)
        if "probability" in answers:
            p, eps = answers["probability"][0][i], float(np.finfo(spec.real.dtype).eps)
            assert twin.calibration is not None
            slope, offset = np.abs(twin.calibration).T
            lost = (slope * (rounding + 4 * eps * np.abs(f)) + 4 * eps * offset).max()
            expected, size = twin.probability(f), twin.each_probability(f).sum()
            assert ((p >= 0) & (p <= 1)).all() and p.sum() == pytest.approx(1, abs=4 * eps)
            if len(f) == 1 or size > 1e-12:  # what nearly no class has is shared as rounding wants it
                faint = len(f) * 2.0**-60 / size  # e^x below 2^-60 is none
                assert (np.abs(p - expected) <= 4 * np.expm1(min(lost, 50)) + 8 * eps + faint).all(), (p, expected)


@pytest.mark.in_turn(36)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("outputs", [1, 2])
@pytest.mark.parametrize("size", [0.1, 5.0, 117.0])
def test_products_are_right_up_to_the_largest_vectors_and_beyond_them(
    size: float, outputs: int, precision: str
) -> None:
    """From the vectors to where all kernel values are zero: gamma |v|^2 up to the limit; in plain Python, too."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(7, 3))
    vectors *= size / np.linalg.norm(vectors, axis=1).max()
    spec = make_spec(
        {
            "name": "gate",
            "precision": precision,
            "input": {"dim": 3, "max_abs": 1e17},
            "label": {"outputs": outputs},
            "kernel": {"function": "gaussian", "gamma": 0.5},
            "learning": {"rule": "frozen"},
            "expansion": {
                "vectors": rounded(vectors),
                "weights": rounded(rng.uniform(0.5, 1, (7, outputs))),
                "bias": [0.0] * outputs,
                "distance": "products",
            },
        }
    )
    directions = rng.normal(size=(60, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    edge = size + np.sqrt(2 * np.log(2) * 60)
    near = [vectors + scale * rng.normal(size=vectors.shape) for scale in (0.0, 1e-3, 1.0, 4.0)]
    far = [edge * factor * directions for factor in (0.9, 0.999, 1.0, 1.001, 1.1, 2.0, 1e4, 1e8, 1e14)]
    x = np.vstack([*near, -vectors, *far]).astype(spec.real.dtype)
    values, statuses = HostModel(spec).ask("predict", x)
    plain, _ = HostModel(spec, engine="python").ask("predict", x)
    assert same_numbers(values, plain) and (statuses == Status.DONE).all()
    twin = Twin(spec)
    with np.errstate(over="ignore"):
        expected = np.array([twin.functions(row.astype(float)) for row in x])
        distances = np.array([np.linalg.norm(row.astype(float) - twin.vectors, axis=1).min() for row in x])
    steps = 8 * np.finfo(spec.real.dtype).eps
    assert (np.abs(values - expected) <= expected * np.expm1(steps * 2 * edge**2) + 7 * 2.0**-59).all()
    assert not values[distances > np.sqrt(2 * np.log(2) * 61)].any()


def exact_pairs(f: np.ndarray, decision: str, break_ties: bool, precision: str) -> HostModel:
    """A classifier whose functions are exactly f, wherever it is asked."""
    classes = round((1 + np.sqrt(1 + 8 * len(f))) / 2)
    expansion = {
        "vectors": [[0.0]],
        "weights": [[0.0] * (classes - 1)],
        "bias": list(map(float, f)),
        "support_class": [0],
        "decision": decision,
    } | ({"break_ties": True} if break_ties else {})
    content = {
        "name": "gate",
        "precision": precision,
        "input": {"dim": 1},
        "label": {"classes": [str(i) for i in range(classes)]},
        "kernel": {"function": "gaussian", "gamma": 1.0},
        "learning": {"rule": "frozen"},
        "expansion": expansion,
    }
    return HostModel(make_spec(content))


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("classes", [3, 4])
def test_every_tie_of_votes_is_decided_as_libsvm_and_scikit_learn_decide_it(classes: int, precision: str) -> None:
    """All signs of all pairs, zeros among them: zero is a vote for the second of the pair."""
    pairs = classes * (classes - 1) // 2
    levels = [-1.0, 0.0, 0.5] if classes == 3 else [-1.0, 0.5]
    grid = list(itertools.product(levels, repeat=pairs))
    for f in [np.array(row) for row in grid]:
        for break_ties in (False, True):
            model = exact_pairs(f, "ovo_vote", break_ties, precision)
            twin = Twin(model.spec)
            assert model.classify([[0.0]])[0] == twin.classify(f)
            np.testing.assert_allclose(model.predict([[0.0]])[0], twin.clear(f), rtol=0, atol=1e-6)
    assert len(grid) in (27, 64)


def test_votes_are_scikit_learns() -> None:
    """_ovr_decision_function itself, with signs as SVC passes them."""
    from sklearn.utils.multiclass import _ovr_decision_function

    rng = np.random.default_rng(0)
    for classes in (3, 4, 5):
        for _ in range(20):
            f = np.round(4 * rng.normal(size=classes * (classes - 1) // 2)) / 4
            model = exact_pairs(f, "ovo_vote", True, "float64")
            expected = _ovr_decision_function(f[None] < 0, -f[None], classes)[0]
            if (f != 0).all():
                np.testing.assert_allclose(model.predict([[0.0]])[0], expected, rtol=0, atol=1e-14)
                assert model.classify([[0.0]])[0] == expected.argmax()
            raw = exact_pairs(f, "ovo", False, "float64").predict([[0.0]])[0]
            np.testing.assert_array_equal(raw, f)


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    ("f", "label"), [([0.0], 0), ([1e-30], 1), ([-1e-30], 0), ([1.0, 1.0, 0.5], 0), ([0, 2, 2], 1)]
)
def test_of_equal_functions_the_first_wins_and_zero_is_the_first_class(
    f: list[float], label: int, precision: str
) -> None:
    count = 2 if len(f) == 1 else len(f)
    content = {
        "name": "gate",
        "precision": precision,
        "input": {"dim": 1},
        "label": {"classes": [str(i) for i in range(count)]},
        "kernel": {"function": "linear"},
        "learning": {"rule": "frozen"},
        "expansion": {"vectors": [[0.0]], "weights": [[0.0] * len(f)], "bias": [float(v) for v in f]},
    }
    model = HostModel(make_spec(content))
    assert model.classify([[3.0]])[0] == label
    np.testing.assert_array_equal(model.ask("predict", [[3.0]])[0][0], np.array(f, model.spec.real.dtype))


ACTIVATIONS = {
    "fourier": lambda t: np.cos(2 * np.pi * t),
    "relu": lambda t: np.where(t > 0, t, 0),
    "tanh": np.tanh,
    "logistic": lambda t: 1 / (1 + np.exp(-t)),
    "identity": lambda t: t,
}


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("function", HIDDEN)
def test_a_hidden_layer_is_its_definition(function: str, precision: str) -> None:
    """Within the bound that `import` relies on, which is small; and a frozen network answers for no input that it refuses."""
    rng = np.random.default_rng(0)
    vectors, weights, bias = rng.normal(size=(7, 3)), rng.normal(size=(7, 2)), rng.normal(size=2)
    offsets = np.array([0.0, 1.0, -1.0, 0.5, -0.25, 0.125, -0.75])
    x = rng.normal(size=(500, 3)) * [0.1, 1.0, 10.0]
    vectors, weights, bias, x = (np.array(rounded(values)) for values in (vectors, weights, bias, x))
    tables = {
        "vectors": vectors.tolist(),
        "weights": weights.tolist(),
        "bias": bias.tolist(),
        "offsets": offsets.tolist(),
    }
    made: dict[str, Any] = {"name": "m", "precision": precision, "input": {"dim": 3, "max_abs": 50.0}}
    made |= {"label": {"outputs": 2}, "kernel": {"function": function}, "expansion": tables}
    spec = make_spec(made | {"learning": {"rule": "frozen"}})
    exact = ACTIVATIONS[function](x @ vectors.T + offsets) @ weights + bias
    bound = device_bound(spec, x)
    assert (np.abs(HostModel(spec).predict(x) - exact) <= bound).all()
    assert bound.max() < 1000 * np.finfo(spec.real.dtype).eps * np.abs(exact).max()
    assert np.isnan(HostModel(spec).predict(np.array([[0.0, 0.0, 50.1]]))).all()
