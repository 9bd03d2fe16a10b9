"""Least squares, systems and neighbours on a basis, against what is written out: dense solves, and training anew."""

import math
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.papers.neighbours import KernelNeighbours, distance_bounds
from benchmarks.papers.preconditioning import gram_operator
from pykernel.bases import arguments
from pykernel.bases.basis import Basis
from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.errors import UserError
from pykernel.training import reduced, selection
from pykernel.training.closed_form import problem
from pykernel.training.coding import Targets, error_rate
from pykernel.training.low_rank import LowRankSystem
from pykernel.training.reduced import ReducedProblem, basis_of, select_reduced
from tests.support import ROOT
from tests.support.retraining import Task, left_out

PAGE = ROOT / "docs" / "reduced.md"

KERNELS = {
    "gaussian": MercerKernel("gaussian", gamma=0.3),
    "matern52": MercerKernel("matern52", gamma=0.7),
    "polynomial": MercerKernel("polynomial", gamma=0.4, coef0=1.0, degree=3),
    "linear": MercerKernel("linear"),
    "cosine": MercerKernel("polynomial", gamma=0.4, coef0=0.5, degree=2, normalise=True),
}
MODELS = ("krr", "ls-svm", "kfd")


def rows(count=60, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, dim))
    x[-2:] = x[:2]
    return x


def small_basis(kernel, x, n=9):
    """n of the rows, one after another, as far as they are independent; made without the product's own elimination."""
    chosen = []
    for i in range(0, len(x), 3):
        gram = kernel.gram(x[[*chosen, i]], x[[*chosen, i]])
        if len(chosen) < n and np.linalg.eigvalsh(gram)[0] > 1e-6 * gram.diagonal().max():
            chosen.append(i)
    factor = np.linalg.cholesky(kernel.gram(x[chosen], x[chosen]))
    trace = np.linspace(1, 0.1, len(chosen) + 1)
    return Basis(kernel, x[chosen], np.array(chosen), factor, trace, True, 0, "rpcholesky", "n_max")


def labels(kind, x, seed=1):
    """Targets, and the same for tests/support/retraining.py."""
    rng = np.random.default_rng(seed)
    if kind == "values":
        y = np.column_stack([np.sin(x[:, 0]) + 5, rng.normal(size=len(x))])
        return Targets.of_values(y), {"values": y}
    coding, count = kind
    positions = rng.integers(0, count, len(x))
    positions[:count] = np.arange(count)
    return Targets.of_classes(positions, count, coding), {"positions": positions, "count": count, "coding": coding}


def brute(model, basis, x, ridge, told):
    """A task of tests/support/retraining.py: kfd on the features whose ridge is |w|^2; without a bias by centring nothing."""
    features = basis.kernel.gram(x, basis.vectors) if model == "kfd" else basis.features(x)
    return Task("kfd", features, np.full(features.shape[1], -1), ridge, **told)


def retrained(model, basis, x, ridge, told, folds):
    task = brute(model, basis, x, ridge, told)
    if model != "krr":
        return left_out(task, folds, "kept")
    predictions = np.empty(task.targets.shape)
    for number in np.unique(folds):
        fold = folds == number
        rest = task.rest(fold, "kept", True)
        z, y = rest.gram, rest.targets
        matrix = np.vstack([z, np.sqrt(ridge) * np.eye(z.shape[1])])
        right = np.vstack([y, np.zeros((z.shape[1], y.shape[1]))])
        predictions[fold] = task.gram[fold] @ np.linalg.lstsq(matrix, right, rcond=-1)[0]
    return predictions


KINDS = ["values", ("counts", 2), ("counts", 3), ("signs", 3)]


# ---------------------------------------------------------------------------------------------------- least squares


@pytest.mark.parametrize("kernel", KERNELS)
def test_reduced_ridge_is_equation_7_and_the_full_model_with_the_nystroem_kernel(kernel):
    kernel, x = KERNELS[kernel], rows()
    basis = small_basis(kernel, x)
    targets, told = labels("values", x)
    y, ridge = told["values"], 0.37
    model = ReducedProblem("krr", basis, x, targets).solve(ridge)
    k, k_ss = kernel.gram(x, basis.vectors), kernel.gram(basis.vectors, basis.vectors)
    # paper 002, equation 7, with the transposes that it lacks; and by QR of [K_mn; sqrt(m Lambda) L']
    alpha = np.linalg.solve(k.T @ k + ridge * k_ss, k.T @ y)
    stacked = np.vstack([k, np.sqrt(ridge) * np.linalg.cholesky(k_ss).T])
    by_qr = np.linalg.lstsq(stacked, np.vstack([y, np.zeros((len(k_ss), 2))]), rcond=-1)[0]
    full = k @ np.linalg.solve(k_ss, k.T)
    weights = np.linalg.solve(full + ridge * np.eye(len(x)), y)
    new = np.random.default_rng(5).normal(size=(20, 3))
    by_full = kernel.gram(new, basis.vectors) @ np.linalg.solve(k_ss, k.T @ weights)
    scale = np.abs(y).max()
    assert np.abs(model.predict(new) - by_full).max() < 1e-10 * scale
    assert np.abs(model.predict(new) - kernel.gram(new, basis.vectors) @ alpha).max() < 1e-9 * scale
    assert np.abs(model.predict(new) - kernel.gram(new, basis.vectors) @ by_qr).max() < 1e-10 * scale
    assert np.abs(model.predict(new) - kernel.gram(new, basis.vectors) @ model.alpha).max() < 1e-10 * scale


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_primal_on_features_is_the_dual_lssvm_with_the_nystroem_kernel(kernel):
    kernel, x = KERNELS[kernel], rows()
    basis = small_basis(kernel, x)
    targets, _ = labels("values", x)
    machine = ReducedProblem("ls-svm", basis, x, targets)
    z = basis.features(x)
    dual = problem("ls-svm", z @ z.T, targets)
    for ridge in (1e-3, 1.0):
        model, solution = machine.solve(ridge), dual.solve(ridge)
        assert np.abs(model.predict(x) - (z @ z.T @ solution.alpha + solution.bias)).max() < 1e-10
        assert np.abs(model.bias - solution.bias).max() < 1e-10
        assert np.abs(machine.leave_one_out(ridge) - dual.leave_one_out(ridge)).max() < 1e-10


@pytest.mark.parametrize("coding", ["counts", "signs"])
def test_fisher_on_a_basis_is_the_discriminant_whose_columns_stay(coding):
    x = rows()
    basis = small_basis(KERNELS["gaussian"], x)
    targets, _ = labels((coding, 3), x)
    machine = ReducedProblem("kfd", basis, x, targets)
    same = problem("kfd", basis.kernel.gram(x, basis.vectors), targets, basis.indices)
    folds = np.arange(len(x)) % 7
    for ridge in (1e-4, 0.1, 10.0):
        found, expected = machine.coefficients(ridge), same.solve(ridge)
        assert np.abs(found.alpha - expected.alpha).max() < 1e-9 * np.abs(expected.alpha).max()
        assert np.abs(found.bias - expected.bias).max() < 1e-9
        values = basis.kernel.gram(x, basis.vectors) @ expected.alpha + expected.bias
        assert np.abs(machine.solve(ridge).predict(x) - values).max() < 1e-9
        assert np.abs(machine.leave_one_out(ridge) - same.leave_one_out(ridge, "kept")).max() < 1e-9
        assert np.abs(machine.leave_fold_out(ridge, folds) - same.leave_fold_out(ridge, folds, "kept")).max() < 1e-9


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("large", [False, True], ids=["blocks", "merged"])
def test_leaving_out_equals_training_anew(model, kind, large, monkeypatch):
    if large:  # folds of more than 5 are merged, of all sizes
        monkeypatch.setattr(reduced, "SMALL_FOLD", 5)
    monkeypatch.setattr(reduced, "BLOCK", 40)  # several blocks of rows
    x = rows(47)
    basis = small_basis(KERNELS["polynomial" if model == "krr" else "gaussian"], x, 5)
    targets, told = labels(kind, x)
    folds = np.random.default_rng(2).permutation(np.repeat([0, 1, 2, 3, 7], [20, 9, 8, 8, 2]))
    ridges = [1e-6, 0.2, 30.0]
    for keep in (0, reduced.KEPT):
        machine = ReducedProblem(model, basis, x, targets, keep=keep)
        one, several = machine.leave_one_out_path(ridges), machine.leave_fold_out_path(ridges, folds)
        for r, ridge in enumerate(ridges):
            for found, parts in ((one[r], np.arange(len(x))), (several[r], folds)):
                expected = retrained(model, basis, x, ridge, told, parts)
                assert np.abs(found - expected).max() < 1e-8 * max(1, np.abs(targets.values).max())
        assert np.abs(one[1] - machine.leave_one_out(0.2)).max() < 1e-13 * max(1, np.abs(targets.values).max())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_leaving_out_equals_training_anew_for_any_data(data):
    """Widths, ridges, repeats, classes that a fold empties, more features than rows."""
    draw = data.draw
    count, dim = draw(st.integers(3, 25)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    x = np.round(rng.normal(size=(count, dim)), draw(st.integers(0, 3)))
    kernel = MercerKernel("gaussian", gamma=draw(st.sampled_from([0.01, 0.3, 5.0])))
    basis = basis_of(x[: draw(st.integers(1, count))], kernel, epsilon=1e-6)
    model = draw(st.sampled_from(MODELS))
    kind = draw(st.sampled_from(KINDS)) if count >= 4 else "values"
    targets, told = labels(kind, x, draw(st.integers(0, 99)))
    ridge = 10.0 ** draw(st.integers(-3, 2))
    folds = rng.integers(0, draw(st.integers(2, count)), count)
    folds[0], folds[1] = 0, 1
    machine = ReducedProblem(model, basis, x, targets)
    if kind != "values" and len(np.unique(told["positions"])) < told["count"]:
        return
    for parts in (np.arange(count), folds):
        if kind != "values" and any(
            len(np.unique(told["positions"][parts != part])) < told["count"] for part in np.unique(parts)
        ):  # retraining.py does not train classes without samples
            continue
        found = machine.leave_fold_out(ridge, parts)
        expected = retrained(model, basis, x, ridge, told, parts)
        assert np.abs(found - expected).max() < 1e-7 * max(1.0, np.abs(targets.values).max())
        if len(np.unique(parts)) == count:
            assert np.abs(machine.leave_one_out(ridge) - found).max() < 1e-7 * max(1.0, np.abs(found).max())


def test_a_ridge_near_nothing_gives_finite_numbers():
    x = rows()
    basis = basis_of(x, KERNELS["gaussian"], epsilon=1e-12)
    assert len(basis) == len(x) - 2  # without the repeats
    targets, _ = labels("values", x)
    for model in MODELS:
        machine = ReducedProblem(model, basis, x, targets)
        assert np.isfinite(machine.leave_one_out_path([1e-40, 1e-12])).all()
        with pytest.raises(UserError, match="need a ridge of at least"):
            machine.solve(1e-80)


@pytest.mark.parametrize("model", ["krr", "ls-svm"])
def test_a_sample_with_a_coordinate_to_itself_loses_the_ridges_digits(model):
    """Samples so far apart that K = I: without a sample its prediction is 0, or the others' mean."""
    x = 1e3 * np.arange(40)[:, None]
    y = np.random.default_rng(0).normal(size=40)
    machine = ReducedProblem(model, basis_of(x, KERNELS["gaussian"]), x, Targets.of_values(y))
    expected = (y.sum() - y) / 39 if model == "ls-svm" else np.zeros(40)
    for ridge in (1.0, 1e-3, 1e-6, 1e-9, 1e-12):
        assert np.abs(machine.leave_one_out(ridge)[:, 0] - expected).max() < 2e-14 + 2e-14 / ridge


# -------------------------------------------------------------------------------------------------------- selection


@pytest.mark.parametrize("cv", ["deleted", 5])
def test_the_grid_is_what_each_cell_gives(cv):
    x = rows(80)
    targets, _ = labels(("counts", 3), x)
    kernel = MercerKernel("gaussian")
    found = select_reduced(
        "ls-svm", x, targets, kernel, [0.5, 2.0], [0.01, 1.0, 100.0], basis=12, cv=cv, method="rpcholesky", seed=3
    )
    folds = None if cv == "deleted" else selection.stratified_folds(targets, 5, 3)
    for i, sigma in enumerate([0.5, 2.0]):
        own = MercerKernel("gaussian", gamma=1 / (2 * sigma**2))
        basis = select_basis(x, own, 12, "rpcholesky", seed=3)
        machine = ReducedProblem("ls-svm", basis, x, targets)
        for j, ridge in enumerate([0.01, 1.0, 100.0]):
            left = machine.leave_one_out(ridge) if folds is None else machine.leave_fold_out(ridge, folds)
            assert found.error[i, j] == error_rate(targets, left)
            assert np.isclose(found.press[i, j], np.mean((targets.values - left) ** 2), rtol=1e-12)
    assert found.error[found.best] == found.error.min()
    assert found.model == "ls-svm" and found.kernel == "gaussian" and 0 <= found.optimism < 1


def test_a_basis_brings_its_kernel_and_other_widths_keep_its_vectors():
    x = rows(80)
    targets, _ = labels("values", x)
    basis = select_basis(x, MercerKernel("gaussian", gamma=0.5), 10, "rpcholesky")
    alone = select_reduced("krr", x, targets, basis.kernel, basis=basis)
    assert alone.widths.tolist() == [1.0] and len(alone.ridges) == 17
    several = select_reduced("krr", x, targets, basis.kernel, [1.0, 3.0], alone.ridges, basis=basis)
    assert several.press[0] == pytest.approx(alone.press[0], rel=1e-9)
    with pytest.raises(UserError, match="method is for choosing"):
        select_reduced("krr", x, targets, basis.kernel, basis=basis, method="rpcholesky")


def test_given_vectors_leave_out_what_earlier_ones_span():
    kernel, x = KERNELS["polynomial"], rows(12)
    basis = basis_of(np.vstack([x[:3], x[:2], x[3:7]]), kernel, indices=[0, 1, 2, 0, 1, 3, 4, 5, 6])
    assert basis.indices.tolist() == [0, 1, 2, 3, 4, 5, 6]
    gram = kernel.gram(basis.vectors, basis.vectors)
    assert np.abs(basis.factor @ basis.factor.T - gram).max() < 1e-13 * np.abs(gram).max()
    linear = basis_of(rows(20), KERNELS["linear"])
    assert len(linear) == 3 and linear.trace[-1] < 1e-12
    z = linear.features(rows(20))
    assert np.abs(z @ z.T - rows(20) @ rows(20).T).max() < 1e-12


# ---------------------------------------------------------------------------------------------------------- systems


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**20), st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_woodbury_has_the_backward_error_of_elimination(seed, n, decades, several):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(n, 40))
    c = rng.normal(size=(count, n))
    sigma = 10.0 ** -rng.uniform(0, decades, count)
    b = rng.normal(size=(count, 3) if several else count)
    system, dense = LowRankSystem(c, sigma), c @ c.T + np.diag(sigma)
    norm = np.linalg.norm(dense, 2)

    def backward(x):
        return np.linalg.norm(dense @ x - b) / (norm * np.linalg.norm(x) + np.linalg.norm(b))

    assert np.abs(system.product(b) - dense @ b).max() < 1e-13 * norm * np.abs(b).max() * count
    assert backward(system.solve(b)) < 1e-14


# -------------------------------------------------------------------------------------------------------- neighbours


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n", [1, 6])
def test_distances_are_bounded_and_neighbours_exact(kernel, n):
    kernel, x = KERNELS[kernel], rows(70)
    basis = small_basis(kernel, x, n)
    queries = np.vstack([np.random.default_rng(8).normal(size=(9, 3)), x[:2], basis.vectors[:1]])
    squares = kernel.diagonal(queries)[:, None] + kernel.diagonal(x) - 2 * kernel.gram(queries, x)
    exact = np.sqrt(np.maximum(squares, 0))
    low, high = distance_bounds(basis, queries, x)
    slack = 1e-6 * math.sqrt(np.abs(kernel.diagonal(np.vstack([queries, x]))).max())
    assert (low <= exact + slack).all() and (exact <= high + slack).all()
    # a basis vector has no residual: both bounds are the distance
    assert np.abs(low[-1] - high[-1]).max() < slack and np.abs(low[-1] - exact[-1]).max() < 10 * slack
    neighbours = KernelNeighbours(basis, x)
    for count in (1, 4, 70):
        distances, indices = neighbours.kneighbors(queries, count)
        expected = np.sort(exact, axis=1)[:, :count]
        assert np.abs(distances - expected).max() < slack
        assert np.abs(np.take_along_axis(exact, indices, 1) - distances).max() < slack
        assert all(len(set(places)) == count for places in indices.tolist())
    least, most, indices = neighbours.bounded(queries, 5)
    assert np.abs(np.take_along_axis(low, indices, 1) - least).max() < slack
    assert np.abs(np.take_along_axis(high, indices, 1) - most).max() < slack


# ------------------------------------------------------------------------------------------------------------ memory


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_rows(tmp_path):
    """200,000 x 16 from a file: 40 vectors, leave-one-out for 4 ridges, 10 folds, in less than the features would take.

    The file is 26 MB, features are 64 MB.  Peaks are the process's own, above what it needs for 20,000 rows.
    """
    path = tmp_path / "x.npy"
    rng = np.random.default_rng(0)
    np.save(path, rng.normal(size=(200_000, 16)))
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(f"""
        import resource, sys
        import numpy as np
        from pykernel.training.closed_form import Targets
        from pykernel.bases.gram import MercerKernel
        from pykernel.training.reduced import ReducedProblem, basis_of
        from pykernel.rows import as_rows

        rows = as_rows({str(path)!r})
        class Some:
            dim = 16
            def __init__(self, count): self.count = count
            def __len__(self): return self.count
            def take(self, indices): return rows.take(indices)
            def blocks(self, size):
                for start in range(0, self.count, size):
                    yield start, rows.take(np.arange(start, min(start + size, self.count)))

        basis = basis_of(rows.take(np.arange(40)), MercerKernel("gaussian", gamma=0.05))
        peaks = []
        for count in (20_000, 200_000):
            x = Some(count)
            targets = Targets.of_values(np.sin(np.arange(count)))
            machine = ReducedProblem("ls-svm", basis, x, targets, keep=0)
            one = machine.leave_one_out_path([0.01, 0.1, 1.0, 10.0])
            ten = machine.leave_fold_out_path([0.1], np.arange(count) % 10)
            assert np.abs(one[1] - ten[0]).max() < 0.1
            machine.solve(0.1).predict(x)
            peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        print(*peaks)
        """)
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    few, many = map(int, done.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024
    assert (many - few) * unit < 40 * 2**20, (few, many)


# ---------------------------------------------------------------------------------------------------------- refusals


def test_refusals_say_what_is_wrong(monkeypatch):
    x = rows()
    basis = small_basis(KERNELS["gaussian"], x)
    targets, _ = labels("values", x)

    def many_folds():
        monkeypatch.setattr(reduced, "SMALL_FOLD", 5)
        with monkeypatch.context() as here:
            here.setattr(arguments, "physical_memory", lambda: 1000)
            ReducedProblem("krr", basis, x, targets).leave_fold_out(1.0, np.arange(60) % 2)

    cases = {
        "model is 'svm'": lambda: ReducedProblem("svm", basis, x, targets),
        "60 rows, but targets for 30": lambda: ReducedProblem("krr", basis, x, Targets.of_values(np.zeros(30))),
        "rows have 2 inputs, and basis vectors have 3": lambda: ReducedProblem("krr", basis, x[:, :2], targets),
        "one sample": lambda: ReducedProblem("krr", basis, x[:1], Targets.of_values([1.0])),
        "ridge is 0": lambda: ReducedProblem("krr", basis, x, targets).solve(0),
        "there is no ridge": lambda: ReducedProblem("krr", basis, x, targets).leave_one_out_path([]),
        "folds must be": lambda: ReducedProblem("krr", basis, x, targets).leave_fold_out(1.0, [0, 1]),
        "leaving out 2 folds with 9 basis vectors takes": many_folds,
        "all samples are in one fold": lambda: ReducedProblem("krr", basis, x, targets).leave_fold_out(1.0, [0] * 60),
        "sigma holds 0": lambda: LowRankSystem(x, np.zeros(60)),
        "sigma must be one number": lambda: LowRankSystem(x, np.ones(7)),
        "right-hand side has the shape": lambda: LowRankSystem(x, 1.0).solve(np.ones(7)),
        "ridge is -1": lambda: gram_operator(basis.kernel, x, -1.0),
        "count of neighbours is 61; it must be a whole number from 1 to 60": lambda: KernelNeighbours(basis, x).kneighbors(x, 61),
        "no vector of the basis": lambda: basis_of(np.zeros((3, 2)), KERNELS["linear"]),
        r"the shape of vectors is \(3,\); it must be \(rows, inputs\)": lambda: basis_of(np.zeros(3), KERNELS["linear"]),
        "finite numbers": lambda: basis_of([[np.nan]], KERNELS["linear"]),
        "cv is 'all'": lambda: select_reduced("krr", x, targets, basis.kernel, basis=5, cv="all"),
        '"by" is .error.': lambda: select_reduced("krr", x, targets, basis.kernel, basis=5, by="error"),
    }  # fmt: skip
    for message, call in cases.items():
        with pytest.raises(UserError, match=message):
            call()


# ---------------------------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("model", ["ls-svm", "krr"])
@pytest.mark.parametrize("small", [0, 256])
def test_folds_of_weighted_rows_are_those_of_repeated_ones(model, small, monkeypatch):
    monkeypatch.setattr(reduced, "SMALL_FOLD", small)
    rng = np.random.default_rng(5)
    x, y, weights = rng.normal(size=(60, 2)), rng.normal(size=60), rng.integers(1, 4, 60)
    basis = reduced.basis_of(x[:6], MercerKernel("gaussian", gamma=0.5))
    folds = rng.permutation(60) % 3
    once = reduced.ReducedProblem(model, basis, x, Targets.of_values(y, weights))
    often = reduced.ReducedProblem(
        model, basis, np.repeat(x, weights, axis=0), Targets.of_values(np.repeat(y, weights))
    )
    first = np.cumsum(weights) - weights
    for left, of_repeated in zip(
        once.leave_fold_out_path([0.01, 1.0], folds),
        often.leave_fold_out_path([0.01, 1.0], np.repeat(folds, weights)),
        strict=True,
    ):
        assert left == pytest.approx(of_repeated[first], abs=1e-10)
