"""Matern, normalised and custom kernels: accuracy, bounds and Gram matrices."""

from __future__ import annotations

import functools
import math
from typing import Any

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import RBF, Matern, RationalQuadratic
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel

from pykernel.algorithms.kernel_choice import custom_kernel, kernel_value, self_value
from pykernel.algorithms.kernels import cosine_similarity as cosine_kernel
from pykernel.algorithms.kernels import inverse_power, matern32, matern52
from pykernel.bases.gram import KERNELS, MercerKernel
from pykernel.dialect import FLOAT32, FLOAT64, Memory, Precision, substitute
from pykernel.dialect.types import REALS
from pykernel.engine.engines import make_executor
from pykernel.errors import UserError
from pykernel.spec.kernel_settings import FUNCTIONS, HIDDEN, INDEFINITE, UNIT, bound, parameters, reach
from pykernel.spec.model import Spec, make_spec
from tests.support import custom_kernels
from tests.support.dialect_cases import numba_function

BOTH = pytest.mark.parametrize("precision", [FLOAT32, FLOAT64], ids=str)
MATERN = {"matern32": (matern32, 3), "matern52": (matern52, 5)}


# ------------------------------------------------------------------------------------------------- Matern: accuracy


@numba.njit
def _each(matern, squares, values):  # type: ignore[no-untyped-def]
    for i in range(len(squares)):
        values[i] = matern(squares[i] / squares[i], squares[i])


def matern_values(name: str, squares: np.ndarray) -> np.ndarray:
    values = np.zeros_like(squares)
    _each(numba_function(MATERN[name][0], REALS[str(squares.dtype)]), squares, values)
    return values


def exactly(name: str, r: float) -> Any:
    x = mpmath.mpf(float(r))
    return (1 + x if name == "matern32" else 1 + x + x * x / 3) * mpmath.exp(-x)


@pytest.mark.in_turn(27)
@BOTH
@pytest.mark.parametrize("name", MATERN)
def test_matern_kernels_are_accurate(name: str, precision: Precision) -> None:
    rng = np.random.default_rng(5)
    r = np.concatenate([2.0 ** rng.uniform(-30, 5.3, 2000), rng.uniform(0, 41, 2000)])
    squares = np.square(r).astype(precision.dtype)
    rounded = np.sqrt(squares)
    with mpmath.workdps(40):
        exact = [exactly(name, x) for x in rounded]
        ulps = [
            float(abs(mpmath.mpf(float(found)) - true) / float(np.spacing(precision.real(float(true)))))
            for found, true in zip(matern_values(name, squares), exact, strict=True)
        ]
    assert max(ulps) <= {"matern32": 3, "matern52": 4}[name]


@BOTH
@pytest.mark.parametrize("name", MATERN)
@pytest.mark.in_turn
def test_matern_kernels_are_at_most_1_and_fall(name: str, precision: Precision, exhaustive: bool) -> None:
    """Never above 1, 1 at 0, and no value above that of a smaller distance by more than the rounding of both."""
    if precision is FLOAT32 and exhaustive:
        start, stop = np.array([2.0**-20, 45.0**2], np.float32).view(np.int32)
        parts = [np.arange(a, min(a + 2**24, stop), dtype=np.int32).view(np.float32) for a in range(start, stop, 2**24)]
    else:
        near = np.square(np.float64(2.0) ** np.linspace(-26, 5.5, 200_000)).astype(precision.dtype)
        parts = [near, np.nextafter(near, precision.real(9e9))]
        parts = [np.sort(np.concatenate(parts))]
    least = precision.real(1)
    for squares in parts:
        values = matern_values(name, squares)
        assert values.max() <= 1 and values.min() >= 0
        running = np.minimum.accumulate(np.minimum(values, least))
        assert (values - running <= 6 * np.spacing(np.maximum(running, np.finfo(precision.dtype).tiny))).all()
        least = min(least, running[-1])
    far = np.array([42.0**2, 1e4, 1e18, np.finfo(precision.dtype).max / 8], precision.dtype)
    assert (matern_values(name, far) == 0).all()


@numba.njit
def _powers(of, alpha, squares, values):  # type: ignore[no-untyped-def]
    for i in range(len(squares)):
        values[i] = of(squares[i] / squares[i], alpha, squares[i])


@BOTH
@pytest.mark.parametrize("alpha", [0.01, 0.5, 3.0, 1e5])
@pytest.mark.in_turn(36)
def test_rational_quadratic_kernels_are_accurate(alpha: float, precision: Precision) -> None:
    """As the exponential function is, of an exponent that is rounded a few times: also where k is nearly Gaussian."""
    rng = np.random.default_rng(6)
    squares = (2.0 ** np.concatenate([rng.uniform(-40, 100, 2000), rng.uniform(-3, 3, 2000)])).astype(precision.dtype)
    power, values = precision.real(alpha), np.zeros_like(squares)
    _powers(numba_function(inverse_power, precision), power, squares, values)
    assert values.max() <= 1 and values.min() >= 0
    with mpmath.workdps(40):
        for square, found in zip(squares, values, strict=True):
            exponent = mpmath.mpf(float(power)) * mpmath.log(1 + mpmath.mpf(float(square)), 2)
            if exponent > 60.001:
                assert found == 0
            elif exponent < 59.999:
                exact = mpmath.mpf(2) ** -exponent
                assert abs(found - exact) <= float(np.finfo(precision.dtype).eps) * exact * (2 + 4 * exponent)


# --------------------------------------------------------------------------------------- kernel_value of any config


def section(name: str, **more: Any) -> dict[str, Any]:
    """A [kernel] for each of KINDS."""
    made: dict[str, Any] = {"function": name.removesuffix("-normalised")}
    if made["function"] in ("polynomial", "sigmoid"):
        made |= {"gamma": 0.25, "coef0": 0.5}
    elif made["function"] == "custom":
        made |= {"source": "custom_kernels.py", "kernel": "products", "max_value": 1e12, "coef0": 0.25}
    elif made["function"] != "linear":
        made["gamma"] = 0.5
    if made["function"] == "rational-quadratic":
        made["alpha"] = 0.75
    return made | ({"normalise": True} if name.endswith("-normalised") else {}) | more


KINDS = [
    *(name for name in FUNCTIONS if name not in HIDDEN),
    "polynomial-normalised",
    "linear-normalised",
    "custom-normalised",
]


def spec_of(content: dict[str, Any]) -> Spec:
    own = content["kernel"].get("kernel")
    return make_spec(content, custom=None if own is None else getattr(custom_kernels, own))


@functools.cache
def frozen(name: str, precision: str = "float32", dim: int = 3, limit: float = 50.0) -> Spec:
    made = {"name": "flow", "precision": precision, "input": {"dim": dim, "max_abs": limit}, "kernel": section(name)}
    made |= {"learning": {"rule": "frozen"}}
    return spec_of(made | {"expansion": {"vectors": [[0.1] * dim], "weights": [[1.0]], "bias": [0.0]}})


def values_of(spec: Spec, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The dialect's Gram matrix and diagonal, in the spec's precision."""
    x = np.ascontiguousarray(x, spec.real.dtype)
    stand_ins = {} if spec.custom is None else {custom_kernel: spec.custom}
    value, own = (substitute(kernel, stand_ins) for kernel in (kernel_value, self_value))
    call = make_executor((value, own), Memory((), spec.real, {"DIM": x.shape[1]}), spec.config).call
    return np.array([[call(value, a, b) for b in x] for a in x]), np.array([call(own, a) for a in x])


def inputs(seed: int, rows: int, dim: int, limit: float) -> np.ndarray:
    """Inputs of all sizes up to the limit, some equal, some zero."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(rows, dim)) * 10.0 ** rng.integers(-8, 2, (rows, 1)), -limit, limit)
    x[rng.random(rows) < 0.2] = x[0]
    x[rng.random(rows) < 0.1] = 0
    x[rng.random(rows) < 0.1] = limit
    return x


@settings(max_examples=max(15, settings().max_examples // 12))
@given(st.integers(0, 2**32), st.sampled_from(KINDS), st.sampled_from(sorted(REALS)), st.integers(1, 12))
def test_values_on_the_device_are_the_hosts(seed: int, name: str, precision: str, rows: int) -> None:
    assert_hosts_values(seed, name, precision, rows)


@pytest.mark.parametrize("name", KINDS)
def test_every_kernel_is_the_host_s(name: str) -> None:
    """Each by its name, whatever examples are drawn."""
    assert_hosts_values(1, name, "float64", 12)


def assert_hosts_values(seed: int, name: str, precision: str, rows: int) -> None:
    spec = frozen(name, precision)
    x = inputs(seed, rows, 3, 50.0).astype(spec.real.dtype)
    gram, diagonal = values_of(spec, x)
    kernel, eps = MercerKernel.of(spec), float(np.finfo(spec.real.dtype).eps)
    assert np.isfinite(gram).all() and (gram == gram.T).all()
    wide = x.astype(float)
    exact, own = kernel.gram(wide, wide), kernel.diagonal(wide)
    limit = bound(spec, pytest.fail, reach(spec))
    assert np.abs(gram).max() <= limit * (1 + 100 * eps) and diagonal.max() <= limit * (1 + 100 * eps)
    if kernel.unit:
        some = gram.diagonal() != 0  # else there is no norm to be divided by
        assert (diagonal[some] == 1).all() and (own == 1).all() and np.abs(gram).max() <= 1 and np.abs(exact).max() <= 1
    else:
        assert (diagonal == gram.diagonal()).all()
    if name.endswith("normalised"):
        zero = gram.diagonal() == 0
        assert (gram.diagonal()[~zero] == 1).all() and (gram[zero] == 0).all()
        plain = MercerKernel(
            kernel.function, kernel.gamma, kernel.coef0, kernel.degree, custom=kernel.custom, max_value=kernel.max_value
        )
        # norms below 2^-60 are zero in float32
        assert (plain.diagonal(wide)[zero] <= 2.0**-59).all()
        exact[zero], exact[:, zero] = 0, 0
        assert (np.abs(gram - exact) <= 200 * eps).all()
        return
    # of the sums' terms: they may cancel
    size = np.abs(wide) @ np.abs(wide).T
    if name in ("polynomial", "custom"):
        size = MercerKernel.of(spec).gram(np.abs(wide), np.abs(wide))
    elif name == "sigmoid":
        size = np.minimum(1.0, size) + 1
    elif name != "linear":
        size = np.maximum(exact * (1 + 100 * np.abs(np.log(np.maximum(exact, 1e-30)))), 2.0**-50 / eps)
    assert (np.abs(gram - exact) <= 100 * eps * size + 1e-30).all()


@settings(max_examples=max(20, settings().max_examples // 7))
@given(
    st.integers(0, 2**32),
    st.sampled_from([k for k in KINDS if k not in INDEFINITE]),
    st.integers(2, 20),
    st.integers(1, 6),
)
def test_gram_matrices_on_the_host(seed: int, name: str, rows: int, dim: int) -> None:
    """Symmetric, positive semidefinite, the diagonal that diagonal() tells, and scikit-learn's where it has the kernel."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, dim))
    x[-1] = x[0]
    gamma = float(np.exp(rng.uniform(-5, 3)))
    made = section(name) | ({} if name.startswith("linear") else {"gamma": gamma})
    kept = {key: made[key] for key in ("gamma", "alpha", "coef0", "normalise") if key in made}
    own = {"custom": custom_kernels.products, "max_value": 1e30} if name.startswith("custom") else {}
    kernel = MercerKernel(made["function"], degree=3, **kept, **own)
    k = kernel.gram(x, x)
    size = np.abs(k).max()
    np.testing.assert_allclose(k, k.T, rtol=1e-12, atol=1e-13 * size)
    np.testing.assert_allclose(k.diagonal(), kernel.diagonal(x), rtol=1e-12)
    assert np.linalg.eigvalsh((k + k.T) / 2).min() >= -1e-12 * rows * size
    assert not kernel.unit or (kernel.self_values(np.vstack([x, np.zeros(dim)])) == 1).all()
    assert kernel.unit == (made["function"] in UNIT)
    theirs = {
        "gaussian": lambda: RBF(math.sqrt(0.5 / gamma))(x),
        "laplacian": lambda: laplacian_kernel(x, x, gamma),
        "matern32": lambda: Matern(math.sqrt(3) / gamma, nu=1.5)(x),
        "matern52": lambda: Matern(math.sqrt(5) / gamma, nu=2.5)(x),
        "matern12": lambda: Matern(1 / gamma, nu=0.5)(x),
        "rational-quadratic": lambda: RationalQuadratic(math.sqrt(0.5 / 0.75 / gamma), 0.75)(x),
        "linear-normalised": lambda: cosine_similarity(x),
    }
    if name in theirs:
        np.testing.assert_allclose(k, theirs[name](), rtol=1e-9 * (1 + gamma), atol=1e-12)
    spec = make_spec({"name": "m", "input": {"dim": dim, "max_abs": 10.0}, "learning": {"rule": "krr", "ridge": 1.0},
                      "kernel": kernel.section()}) if not own else None  # fmt: skip
    if spec is not None:
        assert MercerKernel.of(spec) == MercerKernel(kernel.function, **({"degree": spec.kernel.degree} | kept))


@pytest.mark.parametrize("name", [n for n in KERNELS if n not in ("polynomial", "linear", "sigmoid")])
def test_limits_of_stationary_kernels(name: str) -> None:
    x = np.random.default_rng(0).normal(size=(6, 3))
    np.testing.assert_allclose(MercerKernel(name, gamma=1e-9).gram(x, x), 1, atol=1e-6)
    np.testing.assert_array_equal(MercerKernel(name, gamma=1e9).gram(x, x), np.eye(6))
    assert (MercerKernel(name).gram(x * 1e200, -x * 1e200) == 0).all()


@BOTH
def test_a_cosine_is_at_most_1(precision: Precision) -> None:
    """Also where rounding has made k(a, b) larger than the root of k(a, a) k(b, b)."""
    of = numba_function(cosine_kernel, precision)
    rng = np.random.default_rng(8)
    above = 0
    for own, other in 10.0 ** rng.uniform(-3, 3, (2000, 2)):
        own, other = precision.real(own), precision.real(other)
        value = np.sqrt(own * other)
        for _ in range(3):
            above += value / np.sqrt(own * other) > 1
            assert of(value, own, other) <= 1 and of(-value, own, other) >= -1
            value = np.nextafter(value, precision.real(np.inf))
    assert above > 1000


def test_a_norm_of_zero_is_at_a_right_angle_to_everything() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0], [1e-300, 0.0]])
    for name, keys in (("linear", {}), ("polynomial", {"degree": 2, "coef0": 0.0})):
        gram = MercerKernel(name, normalise=True, **keys).gram(x, x)
        assert (gram[0] == 0).all() and (gram[2] == 0).all() and gram[1, 1] == 1


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        ({"gamma": 1.0, "normalise": True}, r"\[kernel\] normalise changes nothing: with a gaussian kernel, k\(x, x\) is 1 for every x"),
        ({"function": "matern52", "gamma": 1.0, "normalise": True}, "changes nothing"),
        ({"function": "sigmoid", "gamma": 1.0, "normalise": True}, "normalise belongs to polynomial, linear and custom kernels; sigmoid"),
        ({"function": "matern32"}, "gamma is missing; a matern32 kernel must have it"),
        ({"function": "matern32", "sigma": 1.0}, "sigma belongs to gaussian kernels; matern32 does not have it"),
        ({"function": "matern52", "gamma": 1.0, "degree": 2}, "degree belongs to polynomial and custom kernels"),
        ({"function": "linear", "source": "a.py"}, "source belongs to custom kernels; linear does not have it"),
        ({"function": "linear", "max_value": 2.0}, "max_value belongs to custom kernels"),
        ({"function": "matern32", "gamma": 1e18}, r"\[input\] max_abs is 1e\+18, with which a matern32 kernel can overflow"),
        ({"function": "polynomial", "gamma": 1.0, "degree": 1, "normalise": True}, "polynomial kernel can overflow"),
    ],
)  # fmt: skip
def test_refusals_in_a_spec(kernel: dict[str, Any], message: str) -> None:
    limit = 1e18 if kernel.get("gamma") == 1e18 else 1e10 if "degree" in kernel and "normalise" in kernel else 1.0
    content = {"name": "m", "input": {"dim": 2, "max_abs": limit}, "learning": {"rule": "krr", "ridge": 1.0}}
    with pytest.raises(UserError, match=message):
        make_spec(content | {"kernel": kernel})


def test_what_is_divided_by_cannot_overflow_beside_tiny_vectors() -> None:
    content = {
        "name": "m",
        "input": {"dim": 2, "max_abs": 1e15},
        "kernel": {"function": "polynomial", "gamma": 1.0, "degree": 3, "normalise": True},
        "learning": {"rule": "frozen"},
        "expansion": {"vectors": [[1e-20, 1e-20]], "weights": [[1.0]], "bias": [0.0]},
    }
    with pytest.raises(UserError, match="polynomial kernel can overflow"):
        make_spec(content)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": "cosine"}, "there is no kernel 'cosine'"),
        ({"function": "gaussian", "normalise": True}, "normalise does not go with a gaussian kernel"),
        ({"function": "custom"}, 'custom must be a dialect kernel if function is "custom"'),
        ({"function": "linear", "custom": custom_kernels.products}, "custom must be a dialect kernel"),
        ({"function": "custom", "custom": custom_kernels.products}, "max_value is None; it must be a bound"),
        ({"function": "matern32", "gamma": -1.0}, "gamma is -1.0"),
    ],
)
def test_refusals_of_the_host(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        MercerKernel(**arguments)


def test_a_custom_kernel_beyond_its_bound_or_no_number_is_an_error_on_the_host() -> None:
    x = np.eye(3) * 10
    with pytest.raises(
        UserError, match=r"the kernel products reaches .*, and max_value is 1; max_value must be a bound"
    ):
        MercerKernel("custom", custom=custom_kernels.products, max_value=1.0).gram(x, x)


# ------------------------------------------------------------------------------------------------ estimators, import


def test_parameters_name_what_a_kernel_is() -> None:
    for name in KINDS:
        values = parameters(frozen(name))
        unit = name.endswith("normalised") or name in UNIT
        assert (values["unit"], values["normalises"]) == (unit, name.endswith("normalised"))
        assert values["function"] == FUNCTIONS[name.removesuffix("-normalised")]
