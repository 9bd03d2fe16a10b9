"""docs/paper-004.md: its numbers are those of the results; what must hold of them does, computed again."""

import numpy as np
import pytest

pytest.importorskip("scipy")
pytest.importorskip("threadpoolctl")
pytest.importorskip("matplotlib")

import benchmarks.papers.paper_004_page as page
import benchmarks.papers.paper_004_tasks as tasks
from benchmarks import tables
from benchmarks.papers import paper_004
from tests.support import DATA
from tests.support.papers import goes_on

COMMAND = paper_004
FOLDER = DATA / "paper-004"
NAMES = ("errors", "times", "selection", "errata")
RESULTS = {name: tables.load(FOLDER / f"{name}.csv") for name in NAMES}
ROUNDING = 1e-20
"""Of relative squared errors: ten digits."""


# ---------------------------------------------------------------------------------------------------------- the page


def test_the_results_are_complete():
    rows = list(paper_004.plan_errors(paper_004.Extent()))
    wanted = [(row.experiment, row.case, f"{row.gamma:g}", f"{row.ridge:g}", f"{row.l}", "20") for row in rows]
    keys = ("experiment", "case", "gamma", "ridge", "l", "trials")
    assert [tuple(row[key] for key in keys) for row in RESULTS["errors"]] == wanted
    timed = [(row["l"], row["method"], row["trials"]) for row in RESULTS["times"]]
    assert timed == [(f"{l}", name, "20") for l in paper_004.SIZES for name in tasks.METHODS]
    chosen = {(row["l"], row["trials"]) for row in RESULTS["selection"]}
    assert chosen == {(f"{l}", f"{paper_004.SELECTION_TRIALS}") for l in paper_004.SELECTION_SIZES}


# ------------------------------------------------------------------------------------------------- what must be so


def test_the_exact_form_is_retraining(quick):
    """Of every model, coding and way to leave out, on the page and computed now; no sample is classified otherwise."""
    for results in (RESULTS, quick[0]):
        for row in results["errors"]:
            assert max(float(row["exact_max"]), float(row["exact_recoded_max"])) < ROUNDING, row
            assert row["exact_rate_differs"] == "0", row


def test_the_papers_estimate_is_retraining_where_the_basis_is_fixed(quick):
    for results in (RESULTS, quick[0]):
        for row in results["errors"]:
            fixed = row["case"] in tasks.BASES[:2] or row["experiment"] in ("ls-svm", "krr")
            assert float(row["e_max"]) < ROUNDING if fixed else float(row["e_mean"]) > 1e-5, row
            assert not row["formula_max"] or float(row["formula_max"]) < ROUNDING, row


def test_the_papers_error_falls_where_the_kernel_is_smooth(quick):
    """And rises first where it is narrow and the ridge small."""
    for results in (RESULTS, quick[0]):
        smooth = list(page.errors(results, "e_mean", "0.1", "1").values())
        assert smooth == sorted(smooth, reverse=True) and smooth[0] > 20 * smooth[-1]
        rough = page.errors(results, "e_mean", "0.5", "0.01")
        assert max(rough, key=rough.__getitem__) in (20, 30, 50) and max(rough.values()) > 0.2
        assert all(rough[l] > e for l, e in page.errors(results, "e_mean", "0.1", "1").items())


def test_printed_signs_are_wrong(quick):
    for results in (RESULTS, quick[0]):
        for entry in page.FORMULAS:
            right, printed = (page.erratum(results, entry, what) for what in ("right", "printed"))
            assert right < 1e-9 and (printed > 0.1 or entry == "bias"), entry
        for entry in ("coding, direction", "normal equations", "fisher"):
            assert page.erratum(results, entry) < 1e-9, entry


def test_the_results_are_what_is_computed_now(quick):
    """The first trial of each experiment that the quick command shares with the page."""
    keys = ("experiment", "case", "gamma", "ridge", "l")
    theirs = {tuple(row[key] for key in keys): row for row in RESULTS["errors"]}
    shared = [(row, theirs[key]) for row in quick[0]["errors"] if (key := tuple(row[k] for k in keys)) in theirs]
    assert len(shared) == len(quick[0]["errors"])
    for now, then in shared:
        assert float(now["e_of_0"]) == pytest.approx(float(then["e_of_0"]), rel=1e-6, abs=ROUNDING), now
    assert quick[0]["errata"][0].keys() == RESULTS["errata"][0].keys()


def test_retraining_is_what_scikit_learn_computes():
    """Two independent references: ridge regression on kernel values is eq. 4, and kernel ridge regression."""
    pytest.importorskip("sklearn")
    from sklearn.kernel_ridge import KernelRidge
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import LeaveOneOut, cross_val_predict

    x, first = tasks.patterns(40, 3)
    gram, y, alone = tasks.gaussian(0.5, x, x), tasks.coded(first), np.arange(40)[:, None]
    ours = tasks.retrained(gram, first, [0.1], alone, np.full(40, -1))[0, :, 0]
    fixed = cross_val_predict(Ridge(0.1, solver="svd"), gram, y, cv=LeaveOneOut())
    np.testing.assert_allclose(ours, fixed, rtol=1e-9)
    ours = tasks.retrained(gram, first, [0.1], alone, np.arange(40))[0]
    for i in (0, 17, 39):
        kept = np.delete(np.arange(40), i)
        for targets, f in ((y[kept], ours[i, 0]), (tasks.coded(first[kept]), ours[i, 1])):
            model = Ridge(0.1, solver="svd").fit(gram[np.ix_(kept, kept)], targets)
            assert f == pytest.approx(model.predict(gram[i : i + 1, kept])[0], rel=1e-9)
    theirs = cross_val_predict(KernelRidge(alpha=0.1, kernel="precomputed"), gram, y, cv=LeaveOneOut())
    np.testing.assert_allclose(tasks.retrained_ridge(gram, y, 0.1, alone, bias=False), theirs, rtol=1e-9)


# ------------------------------------------------------------------------------------------------------- the command


def test_the_command_goes_on_where_it_stopped(quick, capsys):
    before = goes_on(
        quick,
        paper_004.main,
        capsys,
        NAMES,
        [f"{name}.png" for name in page.FIGURES],
        lambda task: task.get("folds") != 5,
    )
    for name in ("errors.csv", "times.csv", "selection.csv"):
        assert (quick[1] / name).read_bytes() == before[name]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["direct_gram", "direct_products", "corrections", "hat", "fold_direct"])
def test_methods_that_differ_are_noticed(name, monkeypatch):
    """What is timed computes the same residuals; a slip stops the benchmark."""
    task = {"kind": "times", "l": 20, "trial": 0}
    assert set(tasks.times(task)) == set(tasks.METHODS)
    right = getattr(tasks, name)
    monkeypatch.setattr(tasks, name, lambda *given: right(*given) * 1.001)
    with pytest.raises(RuntimeError, match="is not"):
        tasks.times(task)


def test_corrections_of_folds_are_the_closed_form():
    """The one method whose residuals no other that is timed has."""
    x, first = tasks.patterns(40, 1)
    folds = np.arange(40) % 7
    literal = tasks.fold_corrections(x, tasks.coded(first), 0.5, 0.1, folds)
    np.testing.assert_allclose(
        literal, tasks.fold_closed(x, tasks.targets_of(first), 0.5, 0.1, folds, "kept"), rtol=1e-9
    )


def test_bad_arguments_are_one_sentence(capsys):
    with pytest.raises(SystemExit) as stopped:
        paper_004.main(["--trials", "1"])
    assert stopped.value.code == 2
    assert "trials must be 2 or more" in capsys.readouterr().err
