"""Closed-form cross-validation against retraining, fold by fold (tests/support/retraining.py)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pykernel.training.closed_form import FisherProblem, RidgeProblem, problem
from pykernel.training.coding import Targets, error_rate, press
from tests.support.retraining import MODELS, Task, decided, left_out, objective_without, worst_condition

EPS = float(np.finfo(float).eps)
WAYS = [("deleted", True), ("deleted", False), ("kept", True), ("kept", False)]


# ------------------------------------------------------------------------------------------------------- problems


def gram_of(kernel: str, a: np.ndarray, b: np.ndarray, width: float) -> np.ndarray:
    """Kernel values of the rows of a and those of b, written out."""
    difference, product = a[:, None] - b[None], a @ b.T
    if kernel == "gaussian":
        return np.exp(-np.sum(difference**2, axis=-1) / (2 * width**2))
    if kernel == "laplacian":
        return np.exp(-np.sum(np.abs(difference), axis=-1) / width)
    return {"linear": product, "polynomial": (product / width + 1) ** 3, "sigmoid": np.tanh(product / width - 0.5)}[
        kernel
    ]


@st.composite
def tasks(draw: st.DrawFn, models: tuple[str, ...] = MODELS, labels: str = "any", largest: int = 40) -> Task:
    """A model, samples with repeats, classes of very different sizes or numbers, a ridge over 12 decades."""
    model = draw(st.sampled_from([*models, *models[:1]]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    count, dim = int(rng.integers(3, min(largest, rng.choice([5, 15, 40])) + 1)), draw(st.integers(1, 5))
    x = rng.normal(size=(count, dim))
    if draw(st.booleans()):
        x = np.round(2 * x) / 2
    repeats = rng.random(count) < draw(st.sampled_from([0.0, 0.0, 0.3, 0.9]))
    x[repeats] = x[rng.integers(0, count, int(repeats.sum()))]
    kinds = ["gaussian", "laplacian", "linear", "polynomial", *(["sigmoid"] if model == "kfd" else [])]
    kernel, width = draw(st.sampled_from(kinds)), draw(st.sampled_from([0.3, 1.0, 3.0]))
    columns, vectors = np.arange(count), x
    basis = draw(st.sampled_from(["dense", "distinct", "several"])) if model == "kfd" else "dense"
    if basis != "dense":
        size = int(rng.integers(1, count + 4))
        # each sample is at most one vector, or some are several; some vectors are no samples
        columns = rng.permutation(count + 3)[:size] if basis == "distinct" else rng.integers(0, count, size)
        columns[(rng.random(size) < rng.choice([0.0, 0.3, 1.0])) | (columns >= count)] = -1
        vectors = np.where(columns[:, None] < 0, rng.normal(size=(size, dim)), x[columns])
    gram = gram_of(kernel, x, vectors, width)
    size = max(float(np.linalg.norm(gram, 2)), 1e-3)
    ridge = (size**2 if model == "kfd" else size) * 10.0 ** draw(st.floats(-11, 1))
    if labels == "values" or (labels == "any" and draw(st.integers(0, 3)) == 0):
        outputs = draw(st.integers(1, 3))
        values = draw(st.sampled_from([1.0, 1e-3, 1e4])) * rng.normal(size=(count, outputs)) + rng.normal(size=outputs)
        return Task(model, gram, columns, ridge, values=values)
    classes = draw(st.integers(2, min(4, count)))
    share = draw(st.sampled_from([1.0, 0.5, 0.1])) ** np.arange(classes)
    positions = rng.choice(classes, count, p=share / share.sum())
    if rng.random() < 0.9:  # mostly each has at least one
        positions[rng.permutation(count)[:classes]] = rng.permutation(classes)
    coding = draw(st.sampled_from(["counts", "signs"]))
    return Task(model, gram, columns, ridge, positions=positions, count=classes, coding=coding)


@st.composite
def folded(draw: st.DrawFn, /, **parameters: Any) -> tuple[Task, np.ndarray]:
    """A task and folds of any sizes, with numbers that are not in a row."""
    task = draw(tasks(**parameters))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    folds = rng.integers(0, draw(st.integers(2, len(task))), len(task))
    folds[rng.permutation(len(task))[:2]] = [0, 1]  # not all in one
    return task, (3 * folds if draw(st.booleans()) else folds)


def targets_of(task: Task) -> Targets:
    if task.positions is None:
        assert task.values is not None
        return Targets.of_values(task.values)
    return Targets.of_classes(task.positions, task.count, task.coding)  # type: ignore[arg-type]


def dense(task: Task) -> bool:
    return np.array_equal(task.columns, np.arange(len(task)))


def solver(task: Task) -> FisherProblem | RidgeProblem:
    return problem(task.model, task.gram, targets_of(task), None if dense(task) else task.columns)  # type: ignore[arg-type]


def margin(task: Task, folds: np.ndarray, expected: np.ndarray, column: str = "deleted") -> float:
    """What float64 retraining resolves: by the condition number of the worst of the systems that it solves."""
    scale = max(np.abs(expected).max(), np.abs(task.targets).max())
    return float(1000 * EPS * worst_condition(task, folds, column) * scale)


def assert_close(task: Task, folds: np.ndarray, found: np.ndarray, expected: np.ndarray, column: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=margin(task, folds, expected, column))


# ---------------------------------------------------------------------------------------------- against retraining


def ways(task: Task) -> list[tuple[str, bool]]:
    """Forms of cross-validation, but those that retraining cannot do: see test_a_kept_column_changes_nothing."""
    return [(column, recode) for column, recode in WAYS if task.model == "kfd" or column == "deleted"]


@given(tasks())
def test_leave_one_out_is_retraining(task: Task) -> None:
    folds, solved = np.arange(len(task)), solver(task)
    for column, recode in ways(task):
        found = solved.leave_one_out(task.ridge, column=column, recode=recode)  # type: ignore[arg-type]
        assert_close(task, folds, found, left_out(task, folds, column, recode), column)


@given(folded())
def test_leave_fold_out_is_retraining(problem: tuple[Task, np.ndarray]) -> None:
    task, folds = problem
    solved = solver(task)
    for column, recode in ways(task):
        found = solved.leave_fold_out(task.ridge, folds, column=column, recode=recode)  # type: ignore[arg-type]
        assert_close(task, folds, found, left_out(task, folds, column, recode), column)


@given(tasks())
def test_solve_is_training(task: Task) -> None:
    """Coefficients where they are determined well enough, and predictions at the samples always."""
    solution = solver(task).solve(task.ridge)
    alpha, bias = task.solution()
    assert solution.alpha.shape == alpha.shape and solution.bias.shape == bias.shape
    if task.model == "krr":
        assert not solution.bias.any()
    expected = task.gram @ alpha + bias
    size = max(np.abs(expected).max(), np.abs(task.targets).max())
    rounding = 100 * EPS * task.condition()
    np.testing.assert_allclose(task.gram @ solution.alpha + solution.bias, expected, rtol=0, atol=rounding * size)
    scale = max(np.abs(alpha).max(), np.abs(task.targets).max() / max(np.abs(task.gram).max(), 1e-3))
    np.testing.assert_allclose(solution.alpha, alpha, rtol=0, atol=10 * rounding * scale)


@given(folded(models=("ls-svm", "krr")))
def test_a_kept_column_changes_nothing_where_alpha_is_weighed_by_the_gram_matrix(
    problem: tuple[Task, np.ndarray],
) -> None:
    """A column without a residual gets no coefficient: minimised literally over all columns, and by the closed form."""
    task, folds = problem
    solved = solver(task)
    for recode in (True, False):
        for kept, deleted in (
            (solved.leave_one_out(task.ridge, "kept", recode), solved.leave_one_out(task.ridge, "deleted", recode)),
            (
                solved.leave_fold_out(task.ridge, folds, "kept", recode),
                solved.leave_fold_out(task.ridge, folds, "deleted", recode),
            ),
        ):
            np.testing.assert_array_equal(kept, deleted)
        if task.ridge > 1e-4 * np.linalg.norm(task.gram, 2):
            fold = folds == folds[0]
            found = solved.leave_fold_out(task.ridge, folds, "kept", recode)[fold]
            expected = objective_without(task, fold, recode)
            scale = max(np.abs(expected).max(), np.abs(task.targets).max())
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * scale)


@given(tasks(labels="classes"))
def test_mistakes_and_press_are_counted_as_they_are_defined(task: Task) -> None:
    targets, folds = targets_of(task), np.arange(len(task))
    assert task.positions is not None
    np.testing.assert_allclose(targets.values, task.targets, rtol=1e-15)
    found = solver(task).leave_one_out(task.ridge)
    np.testing.assert_array_equal(targets.classify(found), decided(found))
    np.testing.assert_array_equal(targets.mistakes(found), decided(found) != task.positions)
    assert error_rate(targets, found) == pytest.approx(np.mean(decided(found) != task.positions), abs=1e-15)
    assert press(targets, found) == pytest.approx(np.mean((task.targets - found) ** 2), rel=1e-12)
    expected = left_out(task, folds)
    unsure = np.sort(expected, axis=1)[:, -1] if expected.shape[1] == 1 else np.ptp(np.sort(expected)[:, -2:], axis=1)
    if (np.abs(unsure) > 2 * margin(task, folds, expected)).all():
        assert error_rate(targets, found) == pytest.approx(np.mean(decided(expected) != task.positions), abs=1e-15)


def test_of_equal_functions_the_first_wins_and_zero_is_the_first_class() -> None:
    three = Targets.of_classes(np.array([0, 1, 2]), 3, "signs")
    np.testing.assert_array_equal(
        three.classify(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0], [0.0, 0.0, 0.0]])), [0, 1, 0]
    )
    two = Targets.of_classes(np.array([0, 1, 1]), 2, "counts")
    np.testing.assert_array_equal(two.classify(np.array([[0.0], [1e-300], [-1.0]])), [0, 1, 0])
    np.testing.assert_array_equal(two.mistakes(np.array([[0.0], [0.0], [1.0]])), [False, True, False])


# ------------------------------------------------------------------------------------------------------ properties


@given(tasks(largest=15))
def test_folds_of_one_sample_are_leave_one_out(task: Task) -> None:
    solved, folds = solver(task), np.random.default_rng(len(task)).permutation(len(task))
    for column, recode in WAYS:
        one = solved.leave_one_out(task.ridge, column, recode)  # type: ignore[arg-type]
        fold = solved.leave_fold_out(task.ridge, folds, column, recode)  # type: ignore[arg-type]
        assert_close(task, folds, fold, one, column)


@given(folded(largest=15), st.integers(0, 2**32))
def test_the_order_of_samples_and_of_vectors_does_not_matter(problem: tuple[Task, np.ndarray], seed: int) -> None:
    task, folds = problem
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(task))
    place = np.append(np.argsort(order), -1)  # of a sample among the permuted ones
    vectors = order if dense(task) else rng.permutation(len(task.columns))
    permuted = replace(
        task,
        gram=task.gram[np.ix_(order, vectors)],
        columns=place[task.columns[vectors]],
        values=None if task.values is None else task.values[order],
        positions=None if task.positions is None else task.positions[order],
    )
    a, b = solver(task), solver(permuted)
    for column, recode in WAYS:
        for found, expected in (
            (b.leave_one_out(task.ridge, column, recode), a.leave_one_out(task.ridge, column, recode)),  # type: ignore[arg-type]
            (
                b.leave_fold_out(task.ridge, folds[order], column, recode),  # type: ignore[arg-type]
                a.leave_fold_out(task.ridge, folds, column, recode),  # type: ignore[arg-type]
            ),
        ):
            assert_close(task, folds, found, expected[order], column)


@given(tasks(models=("kfd",), labels="classes"))
def test_it_is_fishers_discriminant(task: Task) -> None:
    """Mika et al. 1999: alpha = (N_w + mu I)^-1 (m_1 - m_2), and the threshold at the projection of the overall mean.

    N_w and the means are of the rows of the Gram matrix; the factor between the two is in the note's A1.
    """
    assert task.positions is not None
    two = replace(task, positions=np.minimum(task.positions, 1), count=2, coding="counts")
    assert two.positions is not None
    assume(0 < two.positions.sum() < len(task))
    first, second = task.gram[two.positions == 1], task.gram[two.positions == 0]
    n1, n2, n = len(first), len(second), len(task)
    m1, m2 = first.mean(axis=0), second.mean(axis=0)
    within = sum((rows - rows.mean(axis=0)).T @ (rows - rows.mean(axis=0)) for rows in (first, second))
    w = np.linalg.solve(within + two.ridge * np.eye(len(m1)), m1 - m2)
    factor = n / (1 + n1 * n2 / n * (m1 - m2) @ w)
    solution = solver(two).solve(two.ridge)
    rounding = 1e3 * EPS * two.condition()
    largest = max(np.abs(factor * w).max(), np.abs(two.targets).max() / max(np.abs(two.gram).max(), 1e-3))
    np.testing.assert_allclose(solution.alpha[:, 0], factor * w, rtol=0, atol=rounding * largest)
    threshold = -solution.alpha[:, 0] @ (n1 * m1 + n2 * m2) / n
    size = np.abs(task.gram).max(axis=0).sum() * largest + 1
    assert solution.bias[0] == pytest.approx(threshold, abs=rounding * size)


@given(folded(), st.sampled_from([1e-30, 1e-16, 1e-13, 1e6, 1e30]))
def test_never_nan(problem: tuple[Task, np.ndarray], relative: float) -> None:
    """At ridges that nothing resolves, too: repeats and columns of zeros make the system singular."""
    task, folds = problem
    gram = np.where(np.arange(task.gram.shape[1]) == 0, 0.0, task.gram) if task.model == "kfd" else task.gram
    task = replace(task, gram=gram)
    solved = solver(task)
    size = max(float(np.linalg.norm(gram, 2)), 1e-3)
    ridge = relative * (size**2 if task.model == "kfd" else size)
    assert np.isfinite(solved.solve(ridge).alpha).all() and np.isfinite(solved.solve(ridge).bias).all()
    for column, recode in WAYS:
        assert np.isfinite(solved.leave_one_out(ridge, column, recode)).all()  # type: ignore[arg-type]
        assert np.isfinite(solved.leave_fold_out(ridge, folds, column, recode)).all()  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------------- other formulas


def rings(count: int, rng: np.random.Generator, share: float = 0.25) -> tuple[np.ndarray, np.ndarray]:
    """The paper's data: class 1 a Gaussian, the other an annulus of radius 4."""
    positions = (rng.random(count) < share).astype(int)
    positions[:3] = [0, 1, 1]
    radius, angle = rng.normal(4, 1, count), rng.uniform(0, 2 * np.pi, count)
    ring = radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.where(positions[:, None] == 1, rng.normal(size=(count, 2)), ring), positions


def test_the_papers_count_of_mistakes_is_wrong() -> None:
    """sign(y) r <= -1 counts other samples than those that are misclassified."""
    x, positions = rings(60, np.random.default_rng(3))
    gram = gram_of("gaussian", x, x, 1.5)
    task = Task("kfd", gram, np.arange(60), 1.0, positions=positions, count=2)
    targets = targets_of(task)
    found = solver(task).leave_one_out(1.0, "kept", False)
    residual = np.sign(task.targets) - found
    rate = error_rate(targets, found)
    assert rate == np.mean(np.sign(task.targets) * residual >= 1) == np.mean(decided(found) != positions)
    assert rate != np.mean(np.sign(task.targets) * residual <= -1)


# ------------------------------------------------------------------------------------------------------- stability


def exact(task: Task, fold: np.ndarray) -> np.ndarray:
    """One fold's retraining, row and column deleted, with 60 digits."""
    with mpmath.workdps(60):
        rest = task.rest(fold, "deleted", True)
        k, y = mpmath.matrix(rest.gram.tolist()), mpmath.matrix(rest.targets.tolist())
        one, size = mpmath.ones(len(rest), 1), len(rest)
        system, right = mpmath.zeros(size + 1), mpmath.zeros(size + 1, y.cols)
        system[:size, :size] = (k.T * k if task.model == "kfd" else k) + float(task.ridge) * mpmath.eye(size)
        system[:size, size] = k.T * one if task.model == "kfd" else one
        system[size, :size] = system[:size, size].T
        system[size, size] = size if task.model == "kfd" else 0
        right[:size, :] = k.T * y if task.model == "kfd" else y
        right[size, :] = one.T * y if task.model == "kfd" else mpmath.zeros(1, y.cols)
        if task.model == "krr":
            system, right = system[:size, :size], right[:size, :]
        theta = mpmath.lu_solve(system, right)
        row = mpmath.matrix(task.gram[fold][:, ~fold].tolist())
        f = row * theta[:size, :] + (theta[size, :] if task.model != "krr" else mpmath.zeros(1, y.cols))
        return np.array([[float(value) for value in f[i, :]] for i in range(f.rows)])


@pytest.mark.in_turn(36)
@pytest.mark.parametrize("relative", [1e-12, 1e-9, 1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("model", MODELS)
def test_it_is_as_accurate_as_retraining(model: str, relative: float) -> None:
    """Against 60 digits: nothing is lost that retraining in float64, by least squares of the same system, would keep."""
    lost, resolved = 0.0, 0.0
    for seed in range(3):
        x, positions = rings(12, np.random.default_rng(seed))
        gram = gram_of("gaussian", x, x, 2.0)
        size = np.linalg.norm(gram, 2)
        ridge = relative * (size**2 if model == "kfd" else size)
        task = Task(model, gram, np.arange(12), ridge, positions=positions, count=2)
        found, retrained = solver(task).leave_one_out(ridge), left_out(task, np.arange(12))
        truth = np.vstack([exact(task, np.arange(12) == i) for i in range(12)])
        lost = max(lost, np.abs(found - truth).max() / np.abs(truth).max())
        resolved = max(resolved, np.abs(retrained - truth).max() / np.abs(truth).max())
    assert lost <= 20 * resolved + 1e-13


# --------------------------------------------------------------------------------------------------------- weights


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32), model=st.sampled_from(["ls-svm", "krr"]), coding=st.sampled_from(["counts", "signs"])
)
def test_folds_with_weights_are_left_out_as_by_retraining(seed, model, coding):
    """Weights of any sizes: of the fold nothing is left, of the others the weights stay, and so do counts of classes."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(6, 25))
    x, positions, weights = rng.normal(size=(count, 2)), rng.integers(0, 3, count), rng.exponential(size=count) + 0.01
    folds = rng.permutation(count) % int(rng.integers(2, 5))
    gram = gram_of("gaussian", x, x, 1.0)
    left = problem(model, gram, Targets.of_classes(positions, 3, coding, weights)).leave_fold_out(0.2, folds)
    for fold in np.unique(folds):
        rest, out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        targets = Targets.of_classes(positions[rest], 3, coding, weights[rest])
        found = problem(model, gram[np.ix_(rest, rest)], targets).solve(0.2)
        assert left[out] == pytest.approx(gram[np.ix_(out, rest)] @ found.alpha + found.bias, abs=1e-8)
        if len(rest) > 2:
            # the stationary point of the weighted sum of squares
            f = gram[np.ix_(rest, rest)] @ found.alpha + found.bias
            assert 0.2 * found.alpha == pytest.approx(weights[rest, None] * (targets.values - f), abs=1e-8)
            assert model == "krr" or found.alpha.sum(axis=0) == pytest.approx(0, abs=1e-8)


def test_the_unit_of_weights_changes_no_target():
    positions = np.array([0, 0, 0, 1, 2])
    targets = [Targets.of_classes(positions, 3, "counts", weight * np.arange(1.0, 6)).values for weight in (1.0, 0.01)]
    np.testing.assert_allclose(*targets)


@pytest.mark.parametrize(
    "weights, sentence",
    [
        ([1.0, 2.0], r"weights have the shape \(2,\); there must be one weight for each of the 3 samples"),
        ([1.0, 0.0, 2.0], "weights hold 0; each must be above 0, so leave out samples whose weight is 0"),
        ([1.0, float("nan"), 2.0], "weights must be finite"),
    ],
)
def test_weights_that_cannot_be(weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        Targets.of_values([1.0, 2.0, 3.0], weights)
    with pytest.raises(ValueError, match="kfd takes no sample weights"):
        problem("kfd", np.eye(3), Targets.of_values([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]))
