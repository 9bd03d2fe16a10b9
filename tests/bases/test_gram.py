"""Kernels: Gram matrices against their definition and scikit-learn, the dialect's against them, three ways the same bits."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern, RationalQuadratic
from sklearn.metrics.pairwise import pairwise_kernels

from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value
from pykernel.bases.gram import MercerKernel
from pykernel.dialect import DIM, Real, kernel
from pykernel.errors import UserError
from pykernel.spec.kernel_settings import FUNCTIONS, HIDDEN, MATERN
from tests.support.dialect_cases import Box

CHOICES = [(name, 1) for name in FUNCTIONS if name not in ("polynomial", "custom")] + [
    ("polynomial", d) for d in (1, 2, 3, 4, 9)
]


def definition(name: str, a: np.ndarray, b: np.ndarray, gamma: float, coef0: float, degree: int) -> float:
    """k(a, b), each sum rounded once."""
    product = math.fsum(x * y for x, y in zip(a, b, strict=True))
    if name == "gaussian":
        return math.exp(-gamma * math.fsum((x - y) ** 2 for x, y in zip(a, b, strict=True)))
    if name == "laplacian":
        return math.exp(-gamma * math.fsum(abs(x - y) for x, y in zip(a, b, strict=True)))
    if name == "rational-quadratic":
        return (1 + gamma * math.dist(a, b) ** 2) ** -1.0
    if name == "fourier":
        return math.cos(2 * math.pi * product)
    if name in MATERN:
        r = gamma * math.dist(a, b)
        return {"matern12": 1, "matern32": 1 + r, "matern52": 1 + r + r * r / 3}[name] * math.exp(-r)
    if name == "polynomial":
        return (gamma * product + coef0) ** degree
    return {
        "sigmoid": math.tanh(gamma * product + coef0), "linear": product, "identity": product, "tanh": math.tanh(product),
        "relu": max(product, 0.0), "logistic": 1 / (1 + math.exp(-product)),
    }[name]  # fmt: skip


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(0, 6), st.integers(1, 12), st.sampled_from(CHOICES))
def test_gram_matrices_are_their_definition_and_scikit_learns(
    seed: int, rows: int, others: int, dim: int, choice: tuple[str, int]
) -> None:
    (name, degree), rng = choice, np.random.default_rng(seed)
    a, b = rng.normal(size=(rows, dim)), rng.normal(size=(others, dim))
    gamma, coef0 = float(np.exp(rng.uniform(-6, 2))), float(rng.normal())
    found = MercerKernel(name, gamma, coef0, degree).gram(a, b)
    assert found.shape == (rows, others) and found.dtype == np.float64
    known = np.array([[definition(name, x, y, gamma, coef0, degree) for y in b] for x in a]).reshape(rows, others)
    # of a sum's terms, not of the sum: they may cancel
    size = 1.0
    if name in ("polynomial", "linear"):
        size = (
            (gamma * (np.abs(a) @ np.abs(b).T) + abs(coef0)) ** degree if name == "polynomial" else np.abs(a) @ abs(b).T
        )
    elif name in HIDDEN:
        size = 1 + np.abs(a) @ abs(b).T
    elif name != "sigmoid":
        size = np.maximum(known, 1e-300)
    assert (np.abs(found - known) <= 1e-14 * (20 + degree * dim) * np.maximum(1, 1 + gamma * dim * 30) * size).all()
    if not others:
        return
    options: dict[str, Any] = {} if name == "linear" else {"gamma": gamma}
    options |= {"coef0": coef0} if name in ("polynomial", "sigmoid") else {}
    options |= {"degree": degree} if name == "polynomial" else {}
    if name == "rational-quadratic":
        theirs = RationalQuadratic(math.sqrt(0.5 / gamma), 1.0)(a, b)
    elif name in HIDDEN:
        theirs = known
    elif name in MATERN:
        nu = {"matern12": 0.5, "matern32": 1.5, "matern52": 2.5}[name]
        theirs = Matern(math.sqrt(2 * nu) / gamma, nu=nu)(a, b)
    else:
        theirs = pairwise_kernels(a, b, {"gaussian": "rbf"}.get(name, name), **options)
    np.testing.assert_allclose(found, theirs, rtol=1e-9, atol=1e-12 * float(np.max(size)))


def test_gaussian_values_of_near_rows_lose_no_digit() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(1000, 1, (20, 4))
    step = np.ldexp(rng.integers(1, 64, (20, 4)), -30)
    found = MercerKernel("gaussian", 3.0).gram(a, a + step).diagonal()
    exact = -np.expm1(-3.0 * np.square((a + step) - a).sum(1))
    np.testing.assert_allclose(1 - found, exact, rtol=0, atol=2.0**-52)
    assert (MercerKernel("gaussian").gram(a, a).diagonal() == 1).all()


def test_what_overflows_is_zero_or_refused() -> None:
    large = np.full((1, 3), 1e200)
    assert MercerKernel("gaussian").gram(large, -large) == 0 and MercerKernel("laplacian").gram(large, -large) == 0
    for name in ("linear", "polynomial"):
        with pytest.raises(UserError, match=f"values of the {name} kernel overflow"):
            MercerKernel(name).gram(large, large)
    for other in (1e200, -1e200):
        with pytest.raises(UserError, match="sigmoid kernel overflow"):
            MercerKernel("sigmoid").gram(np.array([[1e200, 1e200]]), np.array([[1e200, other]]))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("cosine", [[1.0]], [[1.0]]), {}, "no kernel 'cosine'; it must be one of gaussian, laplacian"),
        (("linear", [1.0], [[1.0]]), {}, r"the shape of a is \(1,\)"),
        (("linear", [[1.0]], [[1.0, 2.0]]), {}, "rows of a have 1 numbers, and rows of b have 2"),
        (("linear", [[1.0]], [[np.nan]]), {}, "b must be finite numbers; there is a NaN"),
        (("gaussian", [[1.0]], [[1.0]]), {"gamma": 0.0}, "gamma is 0.0"),
        (("sigmoid", [[1.0]], [[1.0]]), {"coef0": math.inf}, "coef0 is inf"),
        (("polynomial", [[1.0]], [[1.0]]), {"degree": 10}, "degree is 10; it must be a whole number from 1 to 9"),
        (("polynomial", [[1.0]], [[1.0]]), {"degree": 2.5}, "degree is 2.5"),
    ],
)
def test_refusals(arguments: tuple, options: dict, message: str) -> None:
    name, a, b = arguments
    with pytest.raises(UserError, match=message):
        MercerKernel(name, **options).gram(a, b)


# ------------------------------------------------------------------------------------------------- in the dialect


@kernel
def compare(s: Box, q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:  # type: ignore[valid-type]
    s.total[0] = kernel_value(q, a, b)
    return s.total[0]  # what is only written, C does without


def test_without_scipy_a_sentence_says_what_to_install(tmp_path):
    (tmp_path / "d.csv").write_text("a,y\n1,2\n3,4\n")
    (tmp_path / "m.onnx").write_text("")
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['scipy', 'sklearn', 'onnx', 'threadpoolctl']))\n"
        "from pykernel.cli.app import main\n"
        "for command in (['fit', 'd.csv', '-o', 'q.toml'], ['import', 'm.onnx', '-o', 'q.toml']):\n"
        "    try:\n        main(command)\n    except SystemExit as stopped:\n        print(stopped.code)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    lines = run.stderr.splitlines()
    assert run.stdout == "2\n2\n" and len(lines) == 2 and all("install with: " in line for line in lines), run.stderr
