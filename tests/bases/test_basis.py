"""The basis and the driver of its selection: what every method keeps to, files, refusals."""

import json
import os
import re
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykernel import Basis, MercerKernel, select_basis
from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.kernels import inner_product, squared_distance
from pykernel.bases import basis
from pykernel.bases.select import METHODS, SELECTORS, make_selector
from pykernel.dialect import DIM, Real, real
from pykernel.dialect import kernel as dialect_kernel
from pykernel.errors import UserError
from pykernel.rows import as_rows

NAMED = tuple(SELECTORS)


def by(value):
    """An id; "exhaustive" alone is a mark of conftest.py, and would be skipped."""
    return f"by {value}"


GAUSSIAN = MercerKernel("gaussian", gamma=0.5)
ARRAYS = ("vectors", "indices", "factor", "trace")
KERNELS = {
    "gaussian": GAUSSIAN,
    "laplacian": MercerKernel("laplacian", gamma=0.7),
    "matern52": MercerKernel("matern52", gamma=1.5),
    "linear": MercerKernel("linear"),
    "polynomial": MercerKernel("polynomial", gamma=0.5, coef0=1.0, degree=2),
    "cosine": MercerKernel("linear", normalise=True),
    "cosine of a polynomial": MercerKernel("polynomial", gamma=0.5, degree=3, normalise=True),
}


def samples(count=60, dim=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, dim))


def same(a, b):
    return (
        all(getattr(a, name).tobytes() == getattr(b, name).tobytes() for name in ARRAYS)
        and (a.exact, a.evaluations, a.method, a.stopped, a.reason) == (b.exact, b.evaluations, b.method, b.stopped, b.reason)
        and a.kernel == b.kernel
    )  # fmt: skip


# --------------------------------------------------------------------------------------- what every method keeps to


def data(draw):
    """Rows with repeats and rows of zeros."""
    dim = draw(st.integers(1, 3))
    distinct = draw(st.integers(1, 12))
    x = np.round(np.random.default_rng(draw(st.integers(0, 2**16))).normal(size=(distinct, dim)), 2)
    repeats = draw(st.lists(st.integers(0, distinct - 1), max_size=6))
    zeros = draw(st.integers(0, 2))
    return np.vstack([x, x[repeats], np.zeros((zeros, dim))])


@pytest.mark.parametrize("method", METHODS, ids=by)
@settings(max_examples=settings().max_examples * 2 // 5)
@given(st.data())
@pytest.mark.in_turn
def test_a_basis_is_what_its_definition_says(method, data_of):
    draw = data_of.draw
    x, kernel = data(draw), KERNELS[draw(st.sampled_from(sorted(KERNELS)))]
    n_max, seed, epsilon = draw(st.integers(1, len(x) + 2)), draw(st.integers(0, 99)), 1e-3
    whole = kernel.gram(x, x)
    if not whole.any():
        with pytest.raises(UserError, match=r"no row can be chosen: k\(x, x\) is zero for every row"):
            select_basis(x, kernel, n_max, method, seed=seed)
        return
    found = select_basis(x, kernel, n_max, method, seed=seed, epsilon=epsilon)
    n, scale = len(found), whole.diagonal().max()
    assert 1 <= n <= min(n_max, len(x))
    assert found.vectors.shape == (n, x.shape[1]) and found.factor.shape == (n, n) and found.trace.shape == (n + 1,)
    assert (found.vectors == x[found.indices]).all() and len(set(found.indices.tolist())) == n
    # K_SS = L L', and nothing that was chosen was spanned before
    own = kernel.gram(found.vectors, found.vectors)
    assert (found.factor == np.tril(found.factor)).all()
    np.testing.assert_allclose(found.factor @ found.factor.T, own, rtol=0, atol=1e-13 * scale)
    assert (found.factor.diagonal() ** 2 >= epsilon * own.diagonal() * (1 - 1e-9)).all()
    # features are the Nystroem kernel's, delta is R_ii / k_ii
    across = kernel.gram(x, found.vectors)
    nystroem = across @ np.linalg.solve(own, across.T)
    z = found.features(x)
    np.testing.assert_allclose(z @ z.T, nystroem, rtol=0, atol=1e-10 * scale)
    left = (whole - nystroem).diagonal()
    delta = np.divide(left, whole.diagonal(), out=np.zeros(len(x)), where=whole.diagonal() > 0)
    np.testing.assert_allclose(found.residual(x), delta, rtol=0, atol=1e-10)
    # the trace after each vector
    if found.exact:
        wanted = [
            whole.trace() - np.trace(across[:, :k] @ np.linalg.solve(own[:k, :k], across[:, :k].T))
            for k in range(n + 1)
        ]
        np.testing.assert_allclose(found.trace, np.array(wanted) / whole.trace(), rtol=0, atol=1e-10)
        tails = np.append(np.cumsum(np.linalg.eigvalsh(whole).clip(0))[::-1], 0)[: n + 1]
        assert (found.trace >= tails / whole.trace() - 1e-10).all()
        assert (np.diff(found.trace) <= 0).all()
    # why it stopped
    if n == n_max:
        assert found.stopped == "n_max"
    elif found.stopped == "exhausted":
        assert n == len(x)
    else:
        assert found.stopped == "spanned" and (delta <= epsilon * (1 + 1e-6)).all()
    assert same(select_basis(x, kernel, n_max, method, seed=seed, epsilon=epsilon), found)


@pytest.mark.in_turn
@pytest.mark.parametrize("method", NAMED, ids=by)
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_the_head_is_what_a_smaller_selection_gives(method, kernel):
    x, options = samples(80), {"lazy": True} if method == "efvs" else {}  # whose form depends on n_max
    found = select_basis(x, KERNELS[kernel], 25, method, seed=3, epsilon=1e-9, **options)
    z = found.features(x)
    for k in (1, 2, 7, len(found)):
        head, fewer = found.head(k), select_basis(x, KERNELS[kernel], k, method, seed=3, epsilon=1e-9, **options)
        assert (head.indices == fewer.indices).all() and (head.vectors == fewer.vectors).all()
        np.testing.assert_allclose(head.factor, fewer.factor, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(head.trace, fewer.trace, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(head.features(x), z[:, :k], rtol=0, atol=1e-12)
        assert len(head) == k and fewer.trace.shape == (k + 1,)
        assert head.stopped == ("n_max" if k < len(found) else found.stopped)


@pytest.mark.parametrize("method", NAMED, ids=by)
def test_it_stops_as_soon_as_the_residual_is_small_enough(method):
    x = samples(100)
    options = {"lazy": False} if method == "efvs" else {}
    found = select_basis(x, GAUSSIAN, 90, method, seed=1, tau=0.3, **options)
    assert found.stopped == "tau" and found.exact
    assert found.trace[-1] <= 0.3 < found.trace[-2]


@pytest.mark.parametrize("method", NAMED, ids=by)
def test_each_kernel_value_is_counted(method):
    class Counted(MercerKernel):
        def gram(self, a, b):
            values = super().gram(a, b)
            count.append(values.size)
            return values

    count = []
    x, kernel = samples(70), Counted("gaussian", gamma=0.5)
    found = select_basis(x, kernel, 12, method, seed=1)
    assert found.evaluations == sum(count)


def test_digits_near_singular_matrices():
    """Down to delta = 1e-12 features are those of 60 digits, whatever the condition of K_SS."""
    x, kernel = np.linspace(-1, 1, 200)[:, None], MercerKernel("gaussian", gamma=2.0)
    found = select_basis(x, kernel, 200, "pivoted-cholesky", epsilon=1e-12)
    assert found.stopped == "spanned" and np.linalg.cond(kernel.gram(found.vectors, found.vectors)) > 1e11
    n, some = len(found), x[::17]
    with mpmath.workdps(60):

        def row(a):
            return mpmath.matrix(
                [mpmath.exp(-2 * (mpmath.mpf(float(a)) - mpmath.mpf(float(v))) ** 2) for v in found.vectors[:, 0]]
            )

        own = mpmath.matrix(n, n)
        for i in range(n):
            own[i, :] = row(found.vectors[i, 0]).T
        wanted = [float(1 - (b.T * mpmath.lu_solve(own, b))[0]) for b in (row(a) for a in some[:, 0])]
    assert max(wanted) < 2e-12
    np.testing.assert_allclose(found.residual(some), wanted, rtol=0, atol=1e-13)
    own = kernel.gram(found.vectors, found.vectors)
    np.testing.assert_allclose(found.factor @ found.factor.T, own, rtol=0, atol=1e-15 * n)
    assert (np.diff(found.trace) <= 0).all() and 0 <= found.trace[-1] < 1e-12


@pytest.mark.parametrize("method", METHODS, ids=by)
def test_rows_of_a_file_give_the_same_basis(method, tmp_path):
    x = samples(300)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    found = [select_basis(rows, GAUSSIAN, 9, method, seed=2) for rows in (x, tmp_path / "x.npy", mapped)]
    assert same(found[0], found[1]) and same(found[0], found[2])
    assert found[0].features(tmp_path / "x.npy").tobytes() == found[0].features(x).tobytes()


def test_blocks_do_not_change_features(monkeypatch):
    x = samples(500)
    found = select_basis(x, GAUSSIAN, 20, "rpcholesky")
    whole, delta = found.features(x), found.residual(x)
    monkeypatch.setattr(basis, "NUMBERS", 20 * 64)
    np.testing.assert_allclose(found.features(x), whole, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.residual(x), delta, rtol=0, atol=1e-14)


# ------------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_saved_comes_back(kernel, tmp_path):
    found = select_basis(samples(), KERNELS[kernel], 6, "auto")
    found.save(tmp_path / "basis.npz")
    back = Basis.load(tmp_path / "basis.npz")
    assert same(back, found) and back.features(samples(5)).tobytes() == found.features(samples(5)).tobytes()
    assert [file.name for file in tmp_path.iterdir()] == ["basis.npz"]


@dialect_kernel
def rational_quadratic(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:  # type: ignore[valid-type]
    return real(1) / (real(1) + q.gamma * squared_distance(a, b))


@dialect_kernel
def product(q: KernelConfig, a: Real[DIM], b: Real[DIM]) -> Real:  # type: ignore[valid-type]
    return inner_product(a, b)


def test_a_basis_of_a_kernel_of_ones_own_wants_that_kernel(tmp_path):
    own, other = (MercerKernel("custom", gamma=0.5, custom=k, max_value=9.0) for k in (rational_quadratic, product))
    x, path = samples() / 2, tmp_path / "basis.npz"
    for method in ("auto", "rpcholesky", "efvs"):
        found = select_basis(x, own, 8, method)
        gram = 1 / (1 + 0.5 * ((x[:, None] - x) ** 2).sum(2))
        np.testing.assert_allclose(
            found.residual(x), 1 - np.diag(gram[:, found.indices] @ np.linalg.solve(
                gram[np.ix_(found.indices, found.indices)], gram[found.indices])), rtol=0, atol=1e-12)  # fmt: skip
    found.save(path)
    sentence = r"basis.npz was made with a custom kernel, 'rational_quadratic'; give it as kernel="
    with pytest.raises(UserError, match=sentence):
        Basis.load(path)
    for wrong in (other, replace(own, gamma=0.51), GAUSSIAN):
        with pytest.raises(
            UserError, match="was made with a kernel other than the given one; give the kernel of the file"
        ):
            Basis.load(path, kernel=wrong)
    assert same(Basis.load(path, kernel=own), found)


def test_a_file_is_not_trusted(tmp_path):
    path = tmp_path / "basis.npz"
    found = select_basis(samples(), GAUSSIAN, 5, "rpcholesky")
    found.save(path)
    whole = path.read_bytes()
    with np.load(path) as file:
        arrays = dict(file)

    def refused(match, **changes):
        np.savez(path, **{**arrays, **changes})
        with pytest.raises(UserError, match=match):
            Basis.load(path)

    nan = found.factor.copy()
    nan[2, 1] = np.nan
    for changes in (
        {"factor": found.factor[:4]}, {"factor": nan}, {"factor": found.factor * 1.001}, {"indices": found.indices[:3]},
        {"trace": found.trace[1:]}, {"vectors": found.vectors * 1.001}, {"vectors": found.vectors.astype(np.float32)},
        {"indices": found.indices.astype(np.float64)},
    ):  # fmt: skip
        refused("does not hold a basis: its arrays do not fit together", **changes)
    told = json.loads(arrays["about"].tobytes())
    refused("does not hold a basis", about=np.frombuffer(json.dumps({**told, "stopped": "tired"}).encode(), np.uint8))
    refused("was not written by Basis.save: it is a pykernel basis 9",
            about=np.frombuffer(json.dumps({**told, "format": "pykernel basis 9"}).encode(), np.uint8))  # fmt: skip
    refused("not a complete basis", about=np.frombuffer(json.dumps({"format": told["format"]}).encode(), np.uint8))
    np.savez(path, **{name: value for name, value in arrays.items() if name != "trace"})
    with pytest.raises(UserError, match=r"is not a complete basis \('trace'\)"):
        Basis.load(path)
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(UserError, match=r"basis.npz is damaged or was not written by Basis.save"):
            Basis.load(path)
    np.savez(path, about=np.array([object()]))  # a pickle
    with pytest.raises(UserError, match=r"is damaged or was not written by Basis\.save"):
        Basis.load(path)
    with pytest.raises(UserError, match="there is no file"):
        Basis.load(tmp_path / "absent.npz")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    found = select_basis(samples(), GAUSSIAN, 5, "rpcholesky")
    found.save(tmp_path / "basis.npz")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"basis.npz: cannot be written: No space left on device; free some space"):
        found.head(2).save(tmp_path / "basis.npz")
    assert len(Basis.load(tmp_path / "basis.npz")) == 5 and len(list(tmp_path.iterdir())) == 1
    with pytest.raises(UserError, match=r"absent/basis.npz: cannot be written"):
        found.save(tmp_path / "absent" / "basis.npz")


# --------------------------------------------------------------------------------------------------------- progress


def test_progress_is_told_or_drawn(capsys):
    told = []
    found = select_basis(samples(), GAUSSIAN, 6, "rpcholesky", progress=lambda n, trace: told.append((n, trace)))
    assert [n for n, _ in told] == list(range(1, 7))
    np.testing.assert_allclose([trace for _, trace in told], found.trace[1:], rtol=1e-12)
    assert same(select_basis(samples(), GAUSSIAN, 6, "rpcholesky", progress="a [title]"), found)
    assert capsys.readouterr() == ("", "")  # nobody is watching


# --------------------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"n_max": 0}, "n_max is 0; it must be a whole number of 1 or more"),
        ({"n_max": 2.0}, "n_max is 2.0; it must be a whole number of 1 or more"),
        ({"n_max": True}, "n_max is True; it must be a whole number of 1 or more"),
        ({"seed": -1}, "seed is -1; it must be a whole number of 0 or more"),
        ({"candidates": 0}, "candidates is 0; it must be a whole number of 1 or more"),
        ({"points": "all"}, "points is 'all'; it must be a whole number of 1 or more"),
        ({"tau": 1.0}, "tau is 1.0; it must be a number of at least 0 (0: never stop early) and less than 1"),
        ({"tau": float("nan")}, "tau is nan; it must be a number of at least 0"),
        (
            {"epsilon": 0.0},
            "epsilon is 0.0; it must be a number of at least 1e-14 (below that, rounding errors decide) and less than 1",
        ),
        ({"epsilon": None}, "epsilon is None; it must be a number"),
        ({"method": "nystrom"}, "there is no method 'nystrom'; it must be one of auto, fvs, efvs"),
        ({"method": "pivoted-cholesky", "blocks": 3}, "has no option 'blocks'; its options are memory"),
        ({"method": "rpcholesky", "block": 0}, "block is 0; it must be a whole number from 1 to 65,536"),
        ({"method": "rpcholesky", "block": 10**9}, "block is 1000000000; it must be a whole number from 1 to 65,536"),
        ({"method": "rpcholesky", "memory": -1}, "memory, in bytes, is -1; it must be a whole number of 0 or more"),
        ({"method": "auto", "memory": 0.5}, "memory, in bytes, is 0.5; it must be a whole number of 1 or more"),
        ({"x": np.zeros((0, 3))}, "x has no rows; a basis needs at least one"),
        ({"x": np.full((4, 3), np.nan)}, "row 0 (from 0): column 0 is nan"),
        ({"x": np.zeros(4)}, "has the shape (4,); give an array of two dimensions, "),
        (
            {"x": np.zeros((4, 3)), "kernel": MercerKernel("linear")},
            "no row can be chosen: k(x, x) is zero for every row",
        ),
        ({"progress": True}, "progress is True; it must be a title, or a function of n and tr R / tr K"),
        (
            {"kernel": "gaussian"},
            "kernel is a str; it must be a MercerKernel, such as MercerKernel('gaussian', gamma=0.5)",
        ),
    ],
)
def test_bad_input_gets_a_sentence(arguments, sentence):
    given = {"x": samples(10), "kernel": GAUSSIAN, "n_max": 3, "method": "pivoted-cholesky", **arguments}
    with pytest.raises(UserError, match=re.escape(sentence)) as refused:
        select_basis(given.pop("x"), given.pop("kernel"), given.pop("n_max"), **given)
    assert "\n" not in str(refused.value)


def test_too_many_vectors_are_refused_before_memory_is_taken():
    rows = np.lib.stride_tricks.as_strided(np.zeros(1), (10**6, 1), (0, 0))
    for method in ("rpcholesky", "efvs"):
        sentence = r"n_max is 1,000,000; it must be at most 32,768, because L alone would take 8,000 GB"
        with pytest.raises(UserError, match=sentence):
            select_basis(rows, GAUSSIAN, 10**6, method)


def test_bad_use_of_a_basis_gets_a_sentence():
    found = select_basis(samples(10), GAUSSIAN, 3, "rpcholesky")
    for call, sentence in (
        (lambda: found.head(0), "n is 0; it must be a whole number from 1 to 3"),
        (lambda: found.head(4), "n is 4; it must be a whole number from 1 to 3"),
        (lambda: found.features(samples(4, dim=2)), "rows of x have 2 numbers, but vectors of the basis have 3"),
        (lambda: found.residual(samples(4, dim=5)), "rows of x have 5 numbers, but vectors of the basis have 3"),
        (lambda: make_selector("rpcholesky", as_rows(samples(4)), GAUSSIAN, 2, exact=True), "has no option 'exact'"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=re.escape(sentence)):
            call()


# ---------------------------------------------------------------------------------------------------- docs/bases.md
