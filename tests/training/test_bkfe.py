"""Batch BKFE on the host: the alternating method and its closed form, features, bounds, and what they become on a device."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.approximation import Approximation
from pykernel import MercerKernel, select_basis
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.training import bkfe
from pykernel.training import subspace as hosted
from pykernel.training.bkfe import bkfe as solve
from pykernel.training.subspace import HostSubspace, affine_of_model

GAUSSIAN = MercerKernel("gaussian", gamma=0.3)
KERNELS = (
    GAUSSIAN,
    MercerKernel("laplacian", gamma=0.4),
    MercerKernel("matern52", gamma=1.0),
    MercerKernel("linear"),
    MercerKernel("polynomial", gamma=0.5, coef0=1.0, degree=3),
    MercerKernel("linear", normalise=True),
    MercerKernel("polynomial", gamma=0.5, degree=2, normalise=True),
)
DIGITS_GAMMA, CANCER_GAMMA = 0.1067, 0.0248  # 1 / the median squared distance of a sample of pairs


def samples(count=40, dim=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, dim))


def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.data / 16, data.target


def cancer():
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    data = load_breast_cancer()
    return StandardScaler().fit_transform(data.data), data.target


# ----------------------------------------------------------------------------------------------------------- the solver


@st.composite
def problems(draw):
    """Rows with repeats, zeros and odd scales; a kernel; a rank that may be beyond the rows; a shrinkage of any size."""
    count, dim = draw(st.integers(1, 14)), draw(st.integers(1, 3))
    x = samples(count, dim, draw(st.integers(0, 2**16))) * draw(st.sampled_from([0.01, 0.3, 1.0, 4.0]))
    repeated = draw(st.integers(0, count - 1))
    x[:repeated] = x[-1]
    if draw(st.booleans()):
        x[0] = 0.0
    return x, draw(st.sampled_from(KERNELS)), draw(st.integers(1, 18)), 10.0 ** draw(st.integers(-12, 3))


def objective(gram: np.ndarray, a: np.ndarray, q: np.ndarray, shrinkage: float) -> float:
    """1/2 |Phi - Phi A Q|^2 + lambda / 2 (|Phi A|^2 + |Q|^2) by K = Phi'Phi: paper 001, equation 5.  O(N^2 r).

    gram: (N, N), a: (N, r), q: (r, N).
    """
    ka = gram @ a
    g = a.T @ ka
    fit = np.trace(gram) - 2 * np.sum(ka * q.T) + np.sum(g * (q @ q.T))
    return float(0.5 * fit + 0.5 * shrinkage * (np.trace(g) + np.sum(q * q)))


@settings(max_examples=150, deadline=None)
@given(problems(), st.integers(0, 99))
def test_the_objective_never_rises_and_is_never_below_the_closed_forms(problem, seed):
    x, kernel, rank, shrinkage = problem
    gram = kernel.gram(x, x)
    best = solve(gram, rank, shrinkage)
    walked = solve(gram, rank, shrinkage, method="alternating", iterations=60, seed=seed)
    scale = np.trace(gram) + 1e-300
    for found in (best, walked):
        assert found.a.shape == (len(x), rank) and found.q.shape == (rank, len(x))
        assert all(np.isfinite(part).all() for part in (found.a, found.q, found.objective, found.eigenvalues))
        assert (np.diff(found.eigenvalues) <= 1e-12 * (found.eigenvalues[0] + 1e-300)).all()
    # what A'KA can lose, of little shrinkage: A is large then, with columns that nearly cancel
    noise = 1e-12 * scale + 1e-15 * np.abs(walked.a).sum() ** 2 * np.abs(gram).max()
    assert (np.diff(walked.objective) <= noise).all()
    assert walked.objective[-1] >= best.objective[0] - noise
    # what they report is the objective at what they return
    assert objective(gram, best.a, best.q, shrinkage) == pytest.approx(best.objective[0], abs=1e-11 * scale)
    if shrinkage >= 1e-5 * math.sqrt(scale):
        assert objective(gram, walked.a, walked.q, shrinkage) == pytest.approx(walked.objective[-1], abs=1e-9 * scale)


def test_the_closed_form_thresholds_singular_values():
    """Against the definition, by the singular value decomposition of samples themselves (linear kernel)."""
    x, shrinkage = samples(30, 6), 2.0
    u, sigma, vt = np.linalg.svd(x.T, full_matrices=False)
    for rank in (1, 3, 6, 8):
        found = solve(x @ x.T, rank, shrinkage)
        lowered = np.maximum(sigma[:rank] - shrinkage, 0)
        kept = min(rank, 6)
        np.testing.assert_allclose(x.T @ found.a @ found.q, (u[:, :kept] * lowered) @ vt[:kept], atol=1e-12)
        np.testing.assert_allclose(found.eigenvalues[:kept], lowered, atol=1e-12)
        assert found.kept == (lowered > 0).sum()
        value = 0.5 * np.sum((x.T - x.T @ found.a @ found.q) ** 2)
        value += shrinkage / 2 * (np.sum((x.T @ found.a) ** 2) + np.sum(found.q**2))
        assert found.objective == pytest.approx([value], rel=1e-13)


@pytest.mark.parametrize("kernel", KERNELS[:5], ids=lambda kernel: kernel.function)
def test_alternating_ends_where_the_closed_form_is(kernel):
    gram = kernel.gram(samples(40), samples(40))
    shrinkage = 0.1 * math.sqrt(np.trace(gram) / 40)
    best = solve(gram, 4, shrinkage)
    for seed in range(3):
        walked = solve(gram, 4, shrinkage, method="alternating", iterations=20_000, tolerance=1e-15, seed=seed)
        assert walked.converged
        assert walked.objective[-1] == pytest.approx(best.objective[0], rel=1e-10)
        np.testing.assert_allclose(walked.eigenvalues, best.eigenvalues, rtol=1e-4, atol=1e-9)
        # L Q and Khat do not depend on how the factors are turned
        size = np.abs(gram).max()
        np.testing.assert_allclose(walked.a @ walked.q, best.a @ best.q, atol=1e-4 * np.abs(best.a @ best.q).max())
        mine, other = (f.q.T @ (f.a.T @ gram @ f.a) @ f.q for f in (walked, best))
        np.testing.assert_allclose(mine, other, atol=1e-4 * size)


def test_the_gradient_is_zero_at_the_optimum_and_only_there():
    gram, shrinkage, step = GAUSSIAN.gram(samples(15), samples(15)), 0.2, 1e-5
    best = solve(gram, 3, shrinkage)

    def slope(a, q, da, dq):
        up, down = (objective(gram, a + s * da, q + s * dq, shrinkage) for s in (step, -step))
        return (up - down) / (2 * step)

    random = np.random.default_rng(1)
    moved = best.a + 0.05 * random.normal(size=best.a.shape)
    steepest = 0.0
    for i in np.ndindex(15, 3):
        unit = np.zeros((15, 3))
        unit[i] = 1.0
        nothing = np.zeros((15, 3))
        for da, dq in ((unit, nothing.T), (nothing, unit.T)):
            assert abs(slope(best.a, best.q, da, dq)) < 1e-8
            steepest = max(steepest, abs(slope(moved, best.q, da, dq)))
    assert steepest > 0.1


def test_kernel_pca_is_the_limit_of_small_shrinkage():
    """scikit-learn's centres; the Gram matrix of phi and -phi is centred as it is, with twice the eigenvalues."""
    from sklearn.decomposition import KernelPCA

    x, new = samples(60), samples(10, seed=1)
    gram, cross = GAUSSIAN.gram(x, x), GAUSSIAN.gram(new, x)
    pca = KernelPCA(5, kernel="precomputed", eigen_solver="dense").fit(np.block([[gram, -gram], [-gram, gram]]))
    found = solve(gram, 5, 1e-9)
    np.testing.assert_allclose(found.eigenvalues**2, pca.eigenvalues_ / 2, rtol=1e-6)
    subspace = HostSubspace(GAUSSIAN, x, found.a, 1e-9)
    projected = pca.transform(np.hstack([cross, -cross]))
    z = subspace.features(new)
    np.testing.assert_allclose(z @ z.T, projected @ projected.T, atol=1e-7)
    # and the shrinkage lowers each of its singular values, nothing else
    for shrinkage in (0.1, 0.5):
        shrunken = HostSubspace(GAUSSIAN, x, solve(gram, 5, shrinkage).a, shrinkage)
        sigma = np.sqrt(pca.eigenvalues_ / 2)
        z = shrunken.features(x)
        directions = pca.eigenvectors_[:60] * np.sqrt(2)
        expected = directions * np.maximum(sigma - shrinkage, 0) ** 2 @ directions.T
        np.testing.assert_allclose(z @ z.T, expected, atol=1e-9)


def test_many_rows_give_what_few_do(monkeypatch):
    gram = GAUSSIAN.gram(x := samples(300, 2), x)
    dense = solve(gram, 6, 0.1)
    monkeypatch.setattr(bkfe, "DENSE", 100)
    by_size = solve(gram, 6, 0.1)
    np.testing.assert_allclose(by_size.a, dense.a, atol=1e-10)
    np.testing.assert_allclose(by_size.objective, dense.objective, rtol=1e-12)
    assert by_size.a.tobytes() == solve(gram, 6, 0.1).a.tobytes()
    monkeypatch.setattr(hosted, "WHOLE", 100)
    with pytest.raises(UserError, match="x has 300 rows; for more than 100 rows, give a basis"):
        HostSubspace.fit(x, GAUSSIAN, 6, 0.1)


# ------------------------------------------------------------------------------------------------------------- features


def naive(subspace, x):
    """q, z'z, e2 and k(x, x), written out."""
    kernel, a, shrinkage = subspace.kernel, subspace.a, subspace.shrinkage
    g = a.T @ kernel.gram(subspace.vectors, subspace.vectors) @ a
    v = kernel.gram(x, subspace.vectors) @ a
    q = np.linalg.solve(g + shrinkage * np.eye(len(g)), v.T).T
    self_value = np.array([kernel.gram(row[None], row[None])[0, 0] for row in x])
    return q, q @ g @ q.T, self_value - 2 * np.sum(v * q, axis=1) + np.sum((q @ g) * q, axis=1), self_value


@st.composite
def subspaces(draw):
    """Any A, not only the optimum: also of a rank beyond the vectors, with columns of zeros."""
    count, dim, rank = draw(st.integers(1, 8)), draw(st.integers(1, 3)), draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**16))
    a = samples(count, rank, seed + 1) * draw(st.sampled_from([0.1, 1.0, 5.0]))
    a[:, : draw(st.integers(0, rank - 1))] = 0.0
    x = samples(count, dim, seed)
    x[: draw(st.integers(0, count - 1))] = x[-1]
    return HostSubspace(draw(st.sampled_from(KERNELS)), x, a, 10.0 ** draw(st.integers(-2, 2)))


@settings(max_examples=150, deadline=None)
@given(subspaces(), st.integers(0, 999), st.booleans())
def test_features_are_their_definitions_and_the_bounds_hold(subspace, seed, repeats):
    x = np.vstack([samples(9, subspace.vectors.shape[1], seed), subspace.vectors, np.zeros_like(subspace.vectors[:1])])
    if repeats:
        x[1] = x[0]
    q, khat, left, self_value = naive(subspace, x)
    gram = subspace.kernel.gram(x, x)
    size, shrinkage = np.abs(gram).max(), subspace.shrinkage
    near = {"rtol": 1e-7, "atol": 1e-8 * (size + np.abs(q).max() ** 2)}
    np.testing.assert_allclose(subspace.coordinates(x), q, **near)
    np.testing.assert_allclose(subspace.residual(x), left, **near)
    for triangular in (False, True):
        z = subspace.features(x, triangular)
        np.testing.assert_allclose(z @ z.T, khat, **near)
        np.testing.assert_allclose(
            subspace.kernel.gram(x, subspace.vectors) @ subspace.expansion(triangular), z, **near
        )
    score = subspace.score(x)
    assert ((score >= 0) & (score <= 1)).all() and (score[self_value == 0] == 0).all()
    # 0 <= Khat <= K, a coordinate's norm, and the identities
    eigenvalues = np.linalg.eigvalsh(gram - z @ z.T)
    assert eigenvalues[0] >= -1e-10 * size
    assert (np.sum(q**2, axis=1) <= self_value / (4 * shrinkage) * (1 + 1e-9) + 1e-9 * size).all()
    told = Approximation.of(subspace, x)
    assert told.trace == pytest.approx(np.trace(gram - khat) / len(x), abs=1e-9 * size)
    assert told.trace_bound == pytest.approx(told.trace, abs=1e-9 * size)
    assert told.frobenius == pytest.approx(np.linalg.norm(gram - khat) / len(x), abs=1e-9 * size)
    assert told.spectral == pytest.approx(max(0.0, eigenvalues[-1]) / len(x), abs=1e-9 * size)
    slack = 1e-9 * size
    assert told.spectral <= told.frobenius + slack and told.frobenius <= told.trace + slack
    assert told.frobenius <= told.residual_bound + slack
    # kernel ridge regression
    y, n = samples(len(x), 1, seed)[:, 0], len(x)
    for ridge in (1e-2, 1.0):
        full, approximate = (m @ np.linalg.solve(m + ridge * np.eye(n), y) for m in (gram, z @ z.T))
        assert np.linalg.norm(full - approximate) <= told.krr(ridge, y) + 1e-6 * size
        assert told.krr(ridge, y) <= min(n * told.spectral / ridge * (1 + 1e-6), 1.0) * np.linalg.norm(y) + slack


def test_a_samples_residual_is_what_is_left_of_it_after_the_optimum():
    """In the batch: e2 summed and |q|^2 summed are the objective's own terms, sigma by sigma."""
    x, shrinkage = samples(50), 0.3
    found = solve(GAUSSIAN.gram(x, x), 4, shrinkage)
    subspace = HostSubspace(GAUSSIAN, x, found.a, shrinkage)
    np.testing.assert_allclose(subspace.coordinates(x), found.q.T, atol=1e-10)
    np.testing.assert_allclose(subspace.eigenvalues, found.eigenvalues, atol=1e-10)
    sigma2 = np.linalg.eigvalsh(GAUSSIAN.gram(x, x))[::-1]
    told = Approximation.of(subspace, x)
    kept = np.sqrt(sigma2[:4]) > shrinkage
    assert told.residual * 50 == pytest.approx(sigma2.sum() - sigma2[:4][kept].sum() + kept.sum() * shrinkage**2)
    lost = np.where(kept, 2 * shrinkage * np.sqrt(sigma2[:4]) - shrinkage**2, sigma2[:4])
    assert told.spectral * 50 == pytest.approx(max(lost.max(), sigma2[4]))
    assert told.coordinates * 50 == pytest.approx((np.sqrt(sigma2[:4]) - shrinkage)[kept].sum())


def test_directions_vanish_where_the_shrinkage_says_so_and_nothing_is_nan():
    x = samples(20)
    sigma = np.sqrt(np.linalg.eigvalsh(GAUSSIAN.gram(x, x))[::-1])
    for shrinkage, kept in ((0.5 * (sigma[2] + sigma[3]), 3), (1.001 * sigma[0], 0), (1e9, 0)):
        for method in ("closed", "alternating"):
            subspace = HostSubspace.fit(x, GAUSSIAN, 6, shrinkage, method=method, iterations=20_000, tolerance=0)
            if method == "closed":
                assert subspace.kept == kept and subspace.rank == 6
            assert (subspace.eigenvalues[kept:] < 1e-3).all()
            z, score = subspace.features(x, triangular=True), subspace.score(x)
            assert np.isfinite(z).all() and np.isfinite(score).all()
            if not kept:
                assert np.abs(z).max() < 1e-3
                np.testing.assert_allclose(score, 1, atol=1e-6)
    empty = HostSubspace.fit(x, GAUSSIAN, 6, 1e9)
    with pytest.raises(UserError, match="no direction of the subspace is left"):
        empty.to_spec("m")
    assert repr(HostSubspace.fit(x, GAUSSIAN, 6, 0.5 * (sigma[2] + sigma[3]))).startswith(
        "<HostSubspace: rank 3 of 6 on 20"
    )
    # a Gram matrix of nothing, one row, and the same row again
    assert solve(np.zeros((3, 3)), 2, 0.1).kept == 0
    assert not solve(np.zeros((3, 3)), 2, 0.1, method="alternating").q.any()
    for rows, shrinkage in ((1, 1e-14), (5, 1e-14), (5, 0.1)):
        same = HostSubspace.fit(np.ones((rows, 2)), GAUSSIAN, 3, shrinkage)
        assert same.kept == 1
        expected = ((math.sqrt(rows) - shrinkage) / math.sqrt(rows)) ** 2
        np.testing.assert_allclose(np.sum(same.features(np.ones((2, 2))) ** 2, axis=1), expected)


def test_many_rows_of_one_kind_of_none_and_of_any_size(monkeypatch):
    """Eigenvalues that are equal, zero, near overflow or near underflow, by Lanczos and otherwise."""
    monkeypatch.setattr(bkfe, "DENSE", 50)
    linear, x = MercerKernel("linear"), samples(200)
    clusters = np.repeat(50.0 * np.eye(5), 40, axis=0)
    for rank, expected in ((3, [1, 1, 1]), (8, [1, 1, 1, 1, 1, 0, 0, 0])):
        for basis in (None, 9):
            subspace = HostSubspace.fit(clusters, GAUSSIAN, rank, 0.1, basis=basis)
            np.testing.assert_allclose(subspace.eigenvalues, (math.sqrt(40) - 0.1) * np.array(expected), atol=1e-10)
    np.testing.assert_allclose(solve(np.eye(200), 10, 0.1).eigenvalues, 0.9)
    for rows in (np.zeros((200, 3)), np.zeros((20, 3))):
        nothing = HostSubspace.fit(rows, linear, 2, 0.1)
        told = Approximation.of(nothing, rows)
        assert nothing.kept == 0 and (told.frobenius, told.trace, nothing.score(rows).max()) == (0, 0, 0)
    ordinary = HostSubspace.fit(x, linear, 2, 1.0)
    for size in (1e-120, 1e120):
        subspace = HostSubspace.fit(size * x, linear, 2, size)
        np.testing.assert_allclose(subspace.eigenvalues / size, ordinary.eigenvalues, rtol=1e-9)
        np.testing.assert_allclose(subspace.residual(size * x) / size**2, ordinary.residual(x), rtol=1e-6)
    # eigenvalues that rounding made are no directions
    assert solve(linear.gram(x, x), 6, 1e-10).kept == 3
    twice = HostSubspace(GAUSSIAN, x, np.hstack([samples(200, 2)] * 2), 1e-300)
    once = HostSubspace(GAUSSIAN, x, samples(200, 2), 1e-300)
    np.testing.assert_allclose(twice.score(x), once.score(x), atol=1e-10)
    np.testing.assert_allclose(
        twice.features(x) @ twice.features(x).T, once.features(x) @ once.features(x).T, atol=1e-10
    )
    # nothing left but the shrinkage's part
    full = HostSubspace.fit(x, linear, 5, 1e-6)
    assert full.kept == 3 and full.score(x).max() < 1e-10
    assert 0 < Approximation.of(full, x).spectral < 1e-6


# --------------------------------------------------------------------------------------------------------- on a basis


def test_on_a_basis_it_is_the_optimum_within_its_span():
    x = samples(80)
    basis = select_basis(x, GAUSSIAN, 12, "efvs", seed=3)
    subspace = HostSubspace.fit(x, GAUSSIAN, 4, 0.2, basis=basis)
    assert subspace.vectors.tobytes() == basis.vectors.tobytes() and subspace.a.shape == (12, 4)
    # the same problem on the projections, whose Gram matrix is the Nystroem kernel's
    z = basis.features(x)
    best = solve(z @ z.T, 4, 0.2)
    np.testing.assert_allclose(subspace.eigenvalues, best.eigenvalues, rtol=1e-9)
    gram = GAUSSIAN.gram(x, x)
    cross = GAUSSIAN.gram(x, basis.vectors)

    def cost(a):
        g = a.T @ GAUSSIAN.gram(basis.vectors, basis.vectors) @ a
        v = cross @ a
        return 0.5 * (np.trace(gram) - np.sum(v * np.linalg.solve(g + 0.2 * np.eye(4), v.T).T)) + 0.1 * np.trace(g)

    here = cost(subspace.a)
    assert here == pytest.approx(best.objective[0] + 0.5 * (np.trace(gram) - np.sum(z**2)), rel=1e-12)
    random = np.random.default_rng(0)
    for size in (1e-4, 1e-2, 1.0):
        assert all(cost(subspace.a + size * random.normal(size=subspace.a.shape)) > here for _ in range(5))
    # all rows as the basis: the batch's
    full = HostSubspace.fit(x, GAUSSIAN, 4, 0.2)
    everything = HostSubspace.fit(x, GAUSSIAN, 4, 0.2, basis=80, selector="pivoted-cholesky", epsilon=1e-14)
    np.testing.assert_allclose(everything.score(x), full.score(x), atol=1e-9)
    # a rank beyond the basis
    assert HostSubspace.fit(x, GAUSSIAN, 9, 0.2, basis=5).kept == 5


# --------------------------------------------------------------------------------------------------- frozen, collapsed


def collapse(subspace, model, triangular=False):
    theta, bias = affine_of_model(model, subspace.rank)
    return subspace.expansion(triangular) @ theta, bias


def test_linear_models_of_features_collapse_to_kernel_expansions():
    from sklearn.cluster import KMeans
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR, LinearSVC

    random = np.random.default_rng(0)
    middles = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
    y = random.integers(0, 3, 150)
    x = middles[y] + 0.7 * random.normal(size=(150, 2))
    subspace = HostSubspace.fit(x, GAUSSIAN, 6, 0.1, basis=20)
    z = subspace.features(x)
    kernel_values = GAUSSIAN.gram(x, subspace.vectors)
    names = np.array(["left", "right", "top"])
    for model in (
        LogisticRegression().fit(z, names[y]),
        LogisticRegression().fit(z, names[(y == 1).astype(int)]),
        make_pipeline(StandardScaler(), LinearSVC()).fit(z, names[y]),
        RidgeClassifier().fit(z, names[y]),
        KMeans(3, n_init=3, random_state=0).fit(z),
        KMeans(2, n_init=3, random_state=0).fit(z),
    ):
        said = model.predict(z)
        spec = subspace.to_spec("classes", model, precision="float64")
        classes = list(getattr(model, "classes_", range(getattr(model, "n_clusters", 0))))
        assert [str(name) for name in classes] == list(spec.label.classes)
        assert len(spec.expansion.vectors) == 20
        np.testing.assert_array_equal(np.array(classes)[HostModel(spec).classify(x)], said)
        if isinstance(model, LogisticRegression) and len(classes) == 2:
            np.testing.assert_allclose(HostModel(spec).probability(x), model.predict_proba(z), atol=1e-10)
        else:
            assert spec.expansion.calibration is None
    targets = np.column_stack([np.sin(x[:, 0]), x[:, 1]])
    for model, taught in (
        (Ridge(0.1), targets[:, 0]), (LinearRegression(), targets),
        (make_pipeline(StandardScaler(), Ridge(1.0)), targets),
    ):  # fmt: skip
        model.fit(z, taught)
        weights, bias = collapse(subspace, model)
        expected = model.predict(z).reshape(150, -1)
        np.testing.assert_allclose(kernel_values @ weights + bias, expected, atol=1e-9)
        spec = subspace.to_spec("numbers", model, precision="float64")
        np.testing.assert_allclose(HostModel(spec).predict(x).reshape(150, -1), expected, atol=1e-9)
    # by hand, on the device's features
    theta = random.normal(size=(2, 6))
    weights, bias = collapse(subspace, (theta, [1.0, 2.0]), True)
    z = subspace.features(x, triangular=True)
    np.testing.assert_allclose(kernel_values @ weights + bias, z @ theta.T + [1.0, 2.0], atol=1e-10)
    for model, sentence in (
        (SVC().fit(z, y == 1), "SVC is not an affine function of the features"),
        (SVR().fit(z, targets[:, 0]), "SVR is not an affine function of the features"),
        (Ridge().fit(z[:, :2], y), "Ridge does not compute numbers from 6 numeric features"),
        ((theta[:, :2], 0.0), "it must be (outputs, 6) or (6,)"),
        ((theta, [1.0, 2.0, 3.0]), "give one number for each output"),
        (KMeans(1).fit(z), "it must be (2 or more, 6)"),
        (object(), "object has neither decision_function nor predict"),
    ):
        with pytest.raises(UserError, match=re.escape(sentence)):
            collapse(subspace, model)


def test_a_frozen_map_that_float32_is_too_coarse_for_is_told():
    x = samples(60, 2)
    smooth = MercerKernel("gaussian", gamma=0.01)
    with pytest.warns(UserWarning, match="the features m: float32 may change its values by up to"):
        coarse = HostSubspace.fit(x, smooth, 12, 1e-5)
        spec = coarse.to_spec("m")
    assert np.abs(HostModel(spec).predict(x) - coarse.features(x)).max() > 3e-3 * coarse.features(x).std(axis=0).min()
    exact = coarse.to_spec("m", precision="float64")
    np.testing.assert_allclose(HostModel(exact).predict(x), coarse.features(x), atol=1e-8)


# ----------------------------------------------------------------------------------------------------------------- uses


def split(x, y, seed):
    from sklearn.model_selection import train_test_split

    return train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)


def test_the_score_tells_what_is_unlike_the_data():
    from sklearn.metrics import roc_auc_score

    x, y = digits()
    known, train = y != 8, np.arange(len(y)) % 2 == 0
    subspace = HostSubspace.fit(x[known & train], MercerKernel("gaussian", gamma=DIGITS_GAMMA), 50, 0.1)
    assert roc_auc_score(~known[~train], subspace.score(x[~train])) > 0.75
    noise = np.random.default_rng(0).permuted(x[~train], axis=1)
    assert subspace.score(noise).min() > np.quantile(subspace.score(x[known & ~train]), 0.99)

    # -------------------------------------------------------------def test_refusals():
    x = samples(6)
    gram = GAUSSIAN.gram(x, x)
    subspace = HostSubspace.fit(x, GAUSSIAN, 2, 0.1)
    lopsided, negative = gram.copy(), -gram
    lopsided[0, 1] = 2.0
    indefinite = np.full((6, 6), -1.0) + 2 * np.eye(6)
    basis = select_basis(x, GAUSSIAN, 3)
    for call, sentence in (
        (lambda: solve(gram, 0, 0.1), "rank is 0"),
        (lambda: solve(gram, 2, 0.0), "shrinkage is 0.0; it must be a number above zero"),
        (lambda: solve(gram, 2, "a"), "shrinkage is 'a'"),
        (lambda: solve(gram[:3], 2, 0.1), "the shape of the Gram matrix is (3, 6); it must be (samples, samples), square"),
        (lambda: solve(gram * np.inf, 2, 0.1), "the Gram matrix must be finite numbers; there is a NaN"),
        (lambda: solve(lopsided, 2, 0.1), "is not symmetric"),
        (lambda: solve(negative, 2, 0.1), "the diagonal of the Gram matrix has negative values"),
        (lambda: solve(indefinite, 6, 0.1, method="alternating"), "has negative eigenvalues"),
        (lambda: solve(gram, 2, 0.1, method="other"), "method is 'other'; it must be one of closed, alternating"),
        (lambda: solve(gram, 2, 0.1, method="alternating", tolerance=1.0), "tolerance is 1"),
        (lambda: solve(gram, 2, 0.1, method="alternating", iterations=0), "iterations is 0"),
        (lambda: HostSubspace("gaussian", x, x, 0.1), "kernel is a str; it must be a MercerKernel"),
        (lambda: HostSubspace(GAUSSIAN, x[:0], x[:0], 0.1), "the shape of vectors is (0, 3)"),
        (lambda: HostSubspace(GAUSSIAN, x, x[:2], 0.1), "the shape of a is (2, 3); it must be (6, r)"),
        (lambda: HostSubspace(GAUSSIAN, x * np.nan, x, 0.1), "vectors must be finite numbers"),
        (lambda: HostSubspace.fit(x[:0], GAUSSIAN, 2, 0.1), "x has no rows"),
        (lambda: HostSubspace.fit(x, "gaussian", 2, 0.1), "kernel is a str; it must be a MercerKernel"),
        (lambda: HostSubspace.fit(x, GAUSSIAN, 2, 0.1, selector="sgma"), "selector can be used only to choose a basis"),
        (lambda: HostSubspace.fit(x, GAUSSIAN, 2, 0.1, basis=3, method="alternating"), 'method must be "closed"'),
        (lambda: HostSubspace.fit(x, GAUSSIAN, 2, 0.1, basis=basis, selector="sgma"), "but a basis is given"),
        (lambda: HostSubspace.fit(x, KERNELS[1], 2, 0.1, basis=basis), "chosen with another kernel"),
        (lambda: subspace.features(x[:, :2]), "rows of x have 2 numbers, but vectors of the subspace have 3"),
    ):  # fmt: skip
        with pytest.raises(UserError, match=re.escape(sentence)):
            call()
