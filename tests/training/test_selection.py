"""pykernel.training.selection: every cell is what training anew gives, the choice and its optimism are by their definitions, and
results do not depend on where they were computed."""

import csv
import re
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.bases import arguments
from pykernel.bases.gram import MercerKernel
from pykernel.errors import UserError
from pykernel.training import selection
from pykernel.training.coding import Targets
from pykernel.training.selection import bias_of_minimum, default_ridges, default_widths, select, stratified_folds
from tests.support import ROOT, retraining

WIDTHS, RIDGES = [0.6, 1.0, 2.5], [0.01, 0.3, 5.0]


def two_clouds(l=24, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    positions = np.concatenate([np.arange(classes), rng.integers(0, classes, l - classes)])
    return rng.normal(size=(l, 2)) + 1.2 * positions[:, None], positions


def curve(l=24, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (l, 2))
    return x, np.sin(2 * x[:, :outputs]) + 0.1 * rng.normal(size=(l, outputs))


def gram_of(kernel, width, a, b, coef0=1.0, degree=3):
    """By the definitions, element by element."""
    formula = {
        "gaussian": lambda u, v: np.exp(-((u - v) @ (u - v)) / (2 * width**2)),
        "laplacian": lambda u, v: np.exp(-width * np.abs(u - v).sum()),
        "polynomial": lambda u, v: (width * (u @ v) + coef0) ** degree,
        "linear": lambda u, v: u @ v,
        "sigmoid": lambda u, v: np.tanh(width * (u @ v) + coef0),
    }[kernel]
    return np.array([[formula(u, v) for v in b] for u in a])


def same(one, other):
    assert (one.best, one.taken, one.optimism) == (other.best, other.taken, other.optimism)
    for a, b in ((one.press, other.press), (one.error, other.error)):
        assert (a is None and b is None) or a.tobytes() == b.tobytes()
    return True


# ------------------------------------------------------------------------------------------------ what a cell holds

CASES = [
    ("kfd", "gaussian", "deleted", "classes", None),
    ("kfd", "gaussian", "kept", "classes", None),
    ("kfd", "laplacian", 4, "classes", [1, 5, 6, 17]),
    ("kfd", "polynomial", "deleted", "many", [0, 3, 9, 11, 20]),
    ("kfd", "sigmoid", "deleted", "classes", "vectors"),
    ("ls-svm", "gaussian", "deleted", "classes", None),
    ("ls-svm", "linear", 5, "values", None),
    ("ls-svm", "laplacian", "deleted", "many", None),
    ("krr", "gaussian", "deleted", "values", None),
    ("krr", "polynomial", 6, "outputs", None),
]


@pytest.mark.parametrize("model, kernel, cv, labels, basis", CASES)
def test_every_cell_is_what_training_anew_gives(model, kernel, cv, labels, basis):
    count, coding, positions = 3 if labels == "many" else 2, "counts" if model == "kfd" else "signs", None
    if labels in ("classes", "many"):
        x, positions = two_clouds(classes=count)
        targets = Targets.of_classes(positions, count, coding)
    else:
        x, y = curve(outputs=2 if labels == "outputs" else 1)
        targets = Targets.of_values(y)
    vectors, columns = x, np.arange(len(x))
    if basis == "vectors":
        vectors, columns = np.random.default_rng(5).normal(size=(6, 2)), np.full(6, -1)
        basis = vectors
    elif basis is not None:
        basis = columns = np.array(basis)
        vectors = x[columns]
    widths = None if kernel == "linear" else WIDTHS
    found = select(model, x, targets, kernel, widths, RIDGES, cv=cv, basis=basis, seed=3)
    if isinstance(cv, int):
        folds = stratified_folds(targets, cv, 3)
        groups = folds
    else:
        folds, groups = np.arange(len(x)), stratified_folds(targets, 10, 3)
    assert found.press.shape == (len(widths or [1]), 3) and (found.error is None) == (positions is None)
    parts = []
    for i, width in enumerate(widths or [1.0]):
        for j, ridge in enumerate(RIDGES):
            gram = gram_of(kernel, width, x, vectors)
            task = retraining.Task(
                model, gram, columns, ridge, None if positions is not None else targets.values, positions, count, coding
            )
            predictions = retraining.left_out(task, folds, "kept" if cv == "kept" else "deleted")
            squares = np.square(predictions - task.targets).mean(axis=1)
            assert found.press[i, j] == pytest.approx(squares.mean(), rel=1e-6)
            each = squares
            if positions is not None:
                each = (retraining.decided(predictions) != positions).astype(float)
                assert found.error[i, j] == each.mean()
            parts.append([each[groups == k].mean() for k in range(groups.max() + 1)])
    # Tibshirani and Tibshirani (2009), fold after fold
    at = found.taken[0] * 3 + found.taken[1]
    sizes = [np.mean(groups == k) for k in range(groups.max() + 1)]
    bias = sum(size * (parts[at][k] - min(part[k] for part in parts)) for k, size in enumerate(sizes))
    assert found.optimism == pytest.approx(bias, rel=1e-6, abs=1e-12) and found.optimism >= 0
    assert found.corrected == pytest.approx(found.value + bias, rel=1e-6)


def test_a_width_is_decomposed_once_on_one_thread(monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    x, positions = two_clouds()
    calls = []

    def counted(*arguments):
        calls.append({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
        return problem(*arguments)

    problem = selection.problem
    monkeypatch.setattr(selection, "problem", counted)
    with threadpool_limits(2):  # the tests run with one
        before = threadpool_info()
        select("kfd", x, Targets.of_classes(positions, 2, "counts"), "gaussian", WIDTHS, np.geomspace(1e-3, 10, 30))
        assert calls == [{1}] * 3 and threadpool_info() == before


# ---------------------------------------------------------------------------------------------------------- the choice


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=4, max_size=4), min_size=1, max_size=4),
    st.sampled_from(["gaussian", "laplacian"]),
    st.sampled_from(["error", "press"]),
)
def test_ties_go_to_press_then_the_larger_ridge_then_the_smoother_kernel(cells, kernel, by):
    table = np.array(cells, float)
    error, press = table[..., 0], table[..., 1]

    def key(cell):
        i, j = cell
        rough = -i if kernel == "gaussian" else i  # sigma ascends, and so does gamma
        return (*([error[cell]] if by == "error" else []), press[cell], -j, rough)

    expected = sorted(((i, j) for i in range(len(cells)) for j in range(4)), key=key)
    assert selection._ranked(kernel, by, error, press) == expected


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(20, 24), st.sampled_from([1, 1.015, 1.0201, 1.03, np.inf])), min_size=4, max_size=4
        ),
        min_size=1,
        max_size=4,
    ).filter(lambda cells: any(np.isfinite(press) for row in cells for _, press in row)),
    st.sampled_from(["gaussian", "laplacian"]),
    st.sampled_from(["error", "press"]),
)
def test_of_cells_within_one_percent_the_largest_ridge_is_taken_then_the_smoothest_kernel(cells, kernel, by):
    table = np.array(cells, float)
    error, press = np.where(np.isfinite(table[..., 1]), table[..., 0] / 2000, np.inf), table[..., 1]
    every = [(i, j) for i in range(len(cells)) for j in range(4) if np.isfinite(press[i, j])]
    if by == "error":  # rates of 1.0 % to 1.2 %
        least = min(error[cell] for cell in every)
        every = [cell for cell in every if error[cell] <= 1.01 * least]
    least = min(np.sqrt(press[cell]) for cell in every)
    every = [cell for cell in every if np.sqrt(press[cell]) <= 1.01 * least + 1e-12]
    expected = max(every, key=lambda cell: (cell[1], cell[0] if kernel == "gaussian" else -cell[0]))
    assert selection._taken(kernel, by, error, press) == expected
    assert selection._alike(by, error, press).sum() == len(every)


def test_the_table_and_its_best_cell():
    x, positions = two_clouds(40)
    found = select("kfd", x, Targets.of_classes(positions, 2, "counts"), "gaussian", WIDTHS[::-1], RIDGES)
    assert found.widths.tolist() == WIDTHS and len(found.table) == 9
    first, taken = found.table[0], found.cell(*found.taken)
    assert first == found.cell(*found.best) and first["error"] == found.error.min() == found.error[found.best]
    assert (found.width, found.ridge, found.value) == (taken["width"], taken["ridge"], taken["error"])
    ordered = [(row["error"], row["press"]) for row in found.table]
    assert ordered == sorted(ordered)
    for i, row in enumerate(found.table_of_widths):
        of_width = [each for each in found.table if each["width"] == WIDTHS[i]]
        assert row == (taken if i == found.taken[0] else of_width[0])
    by_press = select("kfd", x, Targets.of_classes(positions, 2, "counts"), "gaussian", WIDTHS, RIDGES, by="press")
    assert by_press.table[0]["press"] == found.press.min() and by_press.press.tobytes() == found.press.tobytes()
    assert by_press.value == by_press.press[by_press.taken] <= 1.01**2 * found.press.min()


@pytest.mark.parametrize(
    "widths, ridges, says",
    [
        ([0.01, 1.0, 1000.0], [1e-9, 0.1, 1e9], None),
        (
            [1.0, 1000.0],
            [1e-9, 0.1, 1e9],
            "the best cell is on the border of the grid: sigma 1 is the smallest value tried",
        ),
        ([0.01, 1.0], [1e-9, 0.1], "sigma 1 is the largest value tried, and ridge 0.1 is the largest value tried"),
        ([1.0], [0.1], None),
        ([1.0], [0.1, 1e9], "the best cell is on the border of the grid: ridge 0.1 is the smallest value tried"),
    ],
)
def test_a_best_cell_on_the_border_is_told(widths, ridges, says):
    x, y = curve(60)
    found = select("krr", x, Targets.of_values(y), "gaussian", widths, ridges)
    assert (found.width, found.ridge) == (1.0, 0.1)
    assert found.edge is None if says is None else says in found.edge and "wider grid" in found.edge


# -------------------------------------------------------------------------------------------------------- the optimism


def test_the_optimism_is_the_papers_mean_where_folds_are_equal():
    # two candidates, four folds: the second is chosen; the first is better in the last fold alone, by 0.4
    errors = np.array([[0.5, 0.6, 0.7, 0.1], [0.2, 0.3, 0.4, 0.5]])
    assert bias_of_minimum(errors, 1, np.array([0, 1, 2, 3, 3, 2, 1, 0])) == pytest.approx(0.4 / 4)
    assert bias_of_minimum(errors, 1, np.array([0, 1, 2, 3, 3, 3, 3, 3])) == pytest.approx(0.4 * 5 / 8)


@pytest.mark.exhaustive
@pytest.mark.in_turn
@pytest.mark.parametrize("cv", ["deleted", 5])
def test_labels_of_noise_have_a_true_error_of_a_half(cv):
    """What the least of the grid promises is too little, and the corrected estimate is nearer the truth."""
    least, corrected = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x, positions = rng.normal(size=(40, 3)), rng.permutation(np.arange(40) % 2)
        found = select("ls-svm", x, Targets.of_classes(positions, 2, "signs"), cv=cv, seed=seed)
        least.append(found.value)
        corrected.append(found.corrected)
    assert np.mean(least) < 0.42
    assert abs(np.mean(corrected) - 0.5) < abs(np.mean(least) - 0.5) / 1.5


# ----------------------------------------------------------------------------------------------- wherever it is computed


@pytest.fixture(scope="module")
def whole():
    x, positions = two_clouds(80, 3)
    targets = Targets.of_classes(positions, 3, "counts")
    return x, targets, select("kfd", x, targets)


@pytest.mark.exhaustive
def test_processes_give_the_same_bits(whole):
    x, targets, here = whole
    assert same(select("kfd", x, targets, jobs=2), here)


# ----------------------------------------------------------------------------------------------------- folds and grids


@given(st.lists(st.integers(0, 3), min_size=4, max_size=60), st.integers(2, 12), st.integers(0, 3))
def test_folds_are_equal_within_classes_and_in_all(positions, count, seed):
    targets = Targets.of_classes(np.array(positions), 4, "counts")
    if count > len(positions):
        with pytest.raises(UserError, match="the number of folds must be from 2"):
            stratified_folds(targets, count, seed)
        return
    folds = stratified_folds(targets, count, seed)
    for chosen in [np.array(positions) == k for k in range(4)] + [np.ones(len(positions), bool)]:
        sizes = np.bincount(folds[chosen], minlength=count)
        assert sizes.max() - sizes.min() <= 1
    assert (folds == stratified_folds(targets, count, seed)).all()


def test_folds_differ_by_seed_and_do_not_follow_the_order():
    targets = Targets.of_values(np.arange(100.0))
    a, b = (stratified_folds(targets, 5, seed) for seed in (0, 1))
    assert (a != b).mean() > 0.5 and set(np.bincount(a)) == {20}
    assert abs(np.corrcoef(a, np.arange(100))[0, 1]) < 0.5


@pytest.mark.parametrize("kernel, power", [("gaussian", 1), ("laplacian", -1), ("polynomial", -2), ("sigmoid", -2)])
def test_default_widths_follow_the_scale_of_the_data(kernel, power):
    x = np.random.default_rng(0).normal(size=(200, 4))
    widths = np.array(default_widths(kernel, x))
    assert (np.diff(widths) > 0).all()
    assert np.array(default_widths(kernel, 50 * x)) == pytest.approx(50.0**power * widths, rel=0.01)
    if kernel == "gaussian":
        distances = [np.linalg.norm(a - b) for a in x for b in x if a is not b]
        assert widths[8] == pytest.approx(np.median(distances), rel=0.05)
        assert widths[-1] / widths[0] == pytest.approx(64, rel=0.02)


@pytest.mark.parametrize("model, power", [("krr", 1), ("ls-svm", 1), ("kfd", 2)])
@pytest.mark.parametrize("kernel", ["gaussian", "polynomial", "linear"])
def test_the_largest_default_ridge_bounds_what_it_is_added_to(model, power, kernel):
    x = np.random.default_rng(0).normal(size=(60, 3)) + 1
    width = default_widths(kernel, x)[0]
    largest = np.abs(np.linalg.eigvalsh(gram_of(kernel, width, x, x))).max()
    ridges = default_ridges(model, MercerKernel(kernel, coef0=1.0, degree=3).with_width(width), x)
    assert 0.99 * largest**power <= ridges[-1] <= 1.01 * (60 * largest) ** power
    assert (np.diff(np.log10(ridges)) == pytest.approx(0.5, abs=0.01)) and len(ridges) in (17, 25)


def test_without_a_grid_one_is_made_and_holds_something_good():
    x, y = curve(80)
    found = select("krr", x, Targets.of_values(y))
    assert found.press.shape == (13, 17) and found.edge is None
    assert found.value < 0.05 * np.var(y)
    assert same(select("krr", x, Targets.of_values(y), "gaussian", found.widths, found.ridges), found)


def test_samples_that_are_all_equal_still_have_a_grid():
    targets = Targets.of_classes(np.array([0, 1, 0, 1]), 2, "counts")
    for kernel in ("gaussian", "polynomial", "linear"):
        found = select("kfd", np.zeros((4, 2)), targets, kernel)
        assert np.isfinite(found.press).all() and found.value >= 0.5


def test_ridges_that_leave_a_matrix_indefinite_are_not_chosen():
    x, positions = two_clouds(40)
    targets = Targets.of_classes(positions, 2, "signs")
    found = select("ls-svm", x, targets, {"function": "sigmoid", "coef0": -1.0}, [0.5, 2.0], [1e-6, 1e-3, 100.0])
    assert np.isinf(found.press[:, 0]).any() and np.isfinite(found.value) and np.isfinite(found.optimism)
    assert found.ridge == 100.0
    with pytest.raises(UserError, match=r"no cell of the grid can be evaluated: ridge is 0.001; .* above"):
        select("ls-svm", x, targets, {"function": "sigmoid", "coef0": -1.0}, [2.0], [1e-6, 1e-3])


def test_widths_for_which_the_kernel_overflows_are_not_chosen():
    x, y = curve(20)
    found = select(
        "krr", 1e4 * x, Targets.of_values(y), {"function": "polynomial", "degree": 9}, [1e-8, 1e30], [1.0, 10]
    )
    assert np.isinf(found.press[1]).all() and np.isfinite(found.press[0]).all() and found.width == 1e-8
    with pytest.raises(
        UserError, match="no cell of the grid can be evaluated: values of the polynomial kernel overflow"
    ):
        select("krr", 1e4 * x, Targets.of_values(y), {"function": "polynomial", "degree": 9}, [1e30], [1.0, 10])


# -------------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "change, says",
    [
        ({"model": "svm"}, "model is 'svm'; it must be one of kfd, ls-svm, krr"),
        ({"kernel": "rbf"}, "kernel is 'rbf'; it must be one of gaussian, laplacian"),
        ({"widths": [1.0, -1.0]}, "widths holds -1; each value must be above zero"),
        ({"widths": []}, "widths is empty"),
        ({"ridges": [0.0]}, "ridges holds 0; each value must be above zero"),
        ({"ridges": [np.nan]}, "ridges holds nan"),
        ({"kernel": "linear", "widths": [1.0, 2.0]}, "the linear kernel has no width"),
        ({"cv": "loo"}, 'cv is \'loo\'; it must be "deleted", "kept", or a number of folds'),
        ({"cv": True}, "cv is True"),
        ({"cv": 1}, "cv is 1; the number of folds must be from 2 to 24"),
        ({"cv": 25}, "cv is 25; the number of folds must be from 2 to 24"),
        ({"by": "auc"}, '"by" is \'auc\'; it must be "error" or "press"'),
        ({"model": "krr", "basis": np.array([1, 2])}, "only kfd takes a basis"),
        ({"basis": np.array([1, 1])}, "basis holds a position twice"),
        ({"basis": np.array([24])}, "a position that is not from 0 to 23"),
        ({"basis": np.ones((3, 5))}, "finite vectors of 2 inputs"),
        ({"basis": np.ones((3, 2)), "columns": np.array([1])}, "columns has the shape (1,)"),
        ({"jobs": 0}, "jobs is 0"),
        ({"x": np.zeros((23, 2))}, "there are 23 rows, but targets for 24 samples"),
        ({"x": np.full((24, 2), np.nan)}, "x must be finite numbers; there is a NaN or an infinity among them"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(change, says):
    x, positions = two_clouds()
    arguments = {
        "model": "kfd",
        "x": x,
        "targets": Targets.of_classes(positions, 2, "counts"),
        "ridges": [1.0],
    } | change
    with pytest.raises(UserError) as caught:
        select(**arguments)
    assert says in str(caught.value) and "\n" not in str(caught.value)


def test_regression_has_no_error_rate():
    x, y = curve()
    with pytest.raises(UserError, match='"by" is \'error\'; it must be "press", because the targets are not classes'):
        select("krr", x, Targets.of_values(y), by="error")


def test_what_memory_cannot_hold_is_refused_before_it_is_tried(monkeypatch):
    monkeypatch.setattr(arguments, "physical_memory", lambda: 2**20)
    x, positions = two_clouds(400)
    targets = Targets.of_classes(positions, 2, "counts")
    with pytest.raises(
        UserError,
        match=r"400 x 400, 2 at a time, takes about .* GiB.*fewer samples, or a basis .kfd only., or fewer jobs",
    ):
        select("kfd", x, targets, jobs=2)
    assert select("kfd", x, targets, basis=np.arange(5), widths=[1.0]).press.shape == (1, 25)


# ------------------------------------------------------------------------------------------------- what the pages say


@pytest.mark.exhaustive
def test_what_the_page_shows_is_what_the_command_prints(tmp_path):
    data = pytest.importorskip("sklearn.datasets").load_breast_cancer()
    text = (ROOT / "docs" / "guide/fit.md").read_text(encoding="utf-8")
    words = re.search(r"^pykernel (fit cancer\.csv .*)$", text, re.MULTILINE)[1].split()
    with (tmp_path / "cancer.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*(name.replace(" ", "_") for name in data.feature_names), "diagnosis"])
        for x, y in zip(data.data.tolist(), data.target, strict=True):
            writer.writerow([*map(repr, x), data.target_names[y]])
    command = [sys.executable, "-m", "pykernel", *words]
    ran = subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    printed = [line.rstrip() for line in ran.stdout.strip().splitlines()]
    estimates = printed[printed.index("What to expect") :]
    assert "\n".join(estimates) in text
