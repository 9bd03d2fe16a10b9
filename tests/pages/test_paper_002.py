"""docs/paper-002.md: its numbers are those of the results; what must hold of them does, computed again."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("threadpoolctl")
pytest.importorskip("matplotlib")


import benchmarks.papers.basis_reference as reference
import benchmarks.papers.paper_002_page as page
import benchmarks.papers.paper_002_tasks as tasks
from benchmarks import tables
from benchmarks.papers import basis_pages, paper_002
from tests.support import DATA, DOCS
from tests.support.papers import goes_on

COMMAND = paper_002
FOLDER = DATA / "paper-002"
TEXT = tables.read(DOCS / "paper-002.md")
SPACED = " ".join(TEXT.split())
NAMES = {
    "subsets", "widths", "risk", "readings", "rules", "digits", "pictures", "preconditioning", "bounds", "gains", "errata"
}  # fmt: skip
RESULTS = {name: tables.load(FOLDER / f"{name}.csv") for name in sorted(NAMES)}


# ---------------------------------------------------------------------------------------------------------- the page


def test_the_rearrangement_is_as_measured():
    """Of 2.3: the page's two numbers are those of the results that docs/bases.md links to."""
    rows = basis_pages.chosen(tables.load(DATA / "swaps.csv"), set="digits", method="sgma", vectors="60", rounds="2")
    after, before = (np.mean([float(row[key]) for row in rows]) for key in ("error", "greedy"))
    assert after < before
    assert f"the exchanges reduce the residual of 60 vectors of SGMA from {before:.3f} to {after:.3f}" in TEXT


def test_the_results_are_complete():
    plan = {experiment.name: experiment.tasks for experiment in paper_002.plan(False, paper_002.SETS)}
    assert set(plan) == NAMES
    for name, keys in {"subsets": ("data", "kappa"), "rules": ("data", "rule"), "widths": ("data", "case")}.items():
        assert {tuple(row[k] for k in keys) for row in RESULTS[name]} == {tuple(t[k] for k in keys) for t in plan[name]}
    assert {row["runs"] for row in RESULTS["digits"]} == {f"{paper_002.DIGIT_RUNS}"}


# ------------------------------------------------------------------------------------------------- what must be so


def test_nothing_is_below_the_eigenvalue_limit(quick):
    for results in (RESULTS, quick[0]):
        least = {(row["data"], row["n"]): float(row["mean"]) for row in results["subsets"] if row["kappa"] == "limit"}
        assert all(float(row["least"]) >= least[row["data"], row["n"]] * (1 - 1e-3) for row in results["subsets"])
        for row in results["rules"]:
            (limit,) = basis_pages.chosen(results["rules"], data=row["data"], rule="limit", n=row["n"])
            assert float(row["frobenius"]) >= float(limit["frobenius"]) * (1 - 1e-3)


def test_more_candidates_are_better(quick):
    """In the mean, from five vectors on: the first few decide little."""
    for results in (RESULTS, quick[0]):
        for name in page.sets(results, "subsets"):
            for n in (5, 10, 20):
                one, some, every = (page.residual(results, name, kappa, n) for kappa in ("1", "59", "all"))
                assert one > some > every, (name, n)


def test_full_rank_is_the_least_risk(quick):
    """No reduced system has a smaller R_reg than all rows; and it falls with n."""
    for results in (RESULTS, quick[0]):
        for name in page.sets(results, "risk"):
            for system in page.SYSTEMS:
                _, risk = basis_pages.curve(results["risk"], key="risk_to_full", data=name, system=system)
                assert (risk > 0.9999).all()
                assert (np.diff(risk) < 1e-3).all(), (name, system)


def test_equation_7_minimises_the_risk():
    """The product's reduced regression: no other weights in the span have a smaller R_reg."""
    from pykernel.bases.gram import MercerKernel
    from pykernel.bases.select import select_basis

    task = {"data": "diabetes", "width": 5.0, "train": 120, "test": 60, "seed": 1}
    x, y, x_test, _, gamma = tasks.split(task)
    basis = select_basis(x, MercerKernel("gaussian", gamma=gamma), 12, "sgma")
    ((risk, predictions),) = tasks.reduced(basis, x, y, 0.5, x_test, [12])
    z = reference.coordinates(
        reference.gaussian(gamma, basis.vectors, basis.vectors), reference.gaussian(gamma, basis.vectors, x)
    ).T
    w = reference.ridge(z, y, 0.5)
    assert risk == pytest.approx(tasks.regularised(y, z @ w, float(w @ w), 0.5), rel=1e-9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = w + 0.01 * rng.normal(size=12) * abs(w)
        assert tasks.regularised(y, z @ other, float(other @ other), 0.5) > risk
    assert len(predictions) == 60


def test_the_bounds_hold(quick):
    """Neither radius is exceeded more often than in five of a hundred draws."""
    for results in (RESULTS, quick[0]):
        for row in results["bounds"]:
            for kind in ("hoeffding", "serfling"):
                assert max(float(row[f"{kind}_{side}"]) for side in ("above", "below")) < 0.05
                assert float(row[f"{kind}_radius"]) > float(row["enough"])
            # as printed, the probability would be at least this
            assert float(row["half_above"]) < float(row["half_printed"])


def test_formulas_as_corrected_are_right(quick):
    for results in (RESULTS, quick[0]):
        for entry in ("eq. 19", "algorithm 2", "algorithm 2, trace", "eq. 10"):
            assert page.erratum(results, entry) < 1e-12, entry
        assert page.erratum(results, "eq. 19", "printed") > 0.01
        assert page.erratum(results, "eq. 10", "printed") > 0.01
        assert page.erratum(results, "symmetry", "column") > 0.01 > page.erratum(results, "symmetry", "function")
        assert page.erratum(results, "symmetry", "least eigenvalue") > -1e-12
        assert float(results["gains"][0]["random_most"]) > 1.5 and int(results["gains"][0]["grown"]) > 0


def test_a_basis_preconditions(quick):
    for results in (RESULTS, quick[0]):
        for ridge in {row["ridge"] for row in results["preconditioning"]}:
            rows = basis_pages.chosen(results["preconditioning"], ridge=ridge)
            plain = basis_pages.value(rows, method="none")
            for method in ("sgma", "rpcholesky", "uniform"):
                n, iterations = basis_pages.curve(rows, method=method)
                assert iterations[-1] < 0.5 * plain and (np.diff(iterations) < 0).all(), (method, n)


def test_the_results_are_what_is_computed_now(quick):
    """The first run of each case that the quick command shares with the page."""
    shared = 0
    for name, keys in {
        "subsets": ("data", "kappa", "n"),
        "digits": ("rule", "width"),
        "pictures": ("rule", "position"),
    }.items():
        theirs = {tuple(row[key] for key in keys): row for row in RESULTS[name]}
        for now in quick[0][name]:
            then = theirs[tuple(now[key] for key in keys)]
            if name == "pictures":
                assert now == then
            else:
                assert float(now["first"]) == pytest.approx(float(then["first"]), rel=1e-6), now
            shared += 1
    assert shared > 50
    assert quick[0]["errata"] == RESULTS["errata"] or [row["entry"] for row in quick[0]["errata"]] == [
        row["entry"] for row in RESULTS["errata"]
    ]


# ------------------------------------------------------------------------------------------------------- the command


def test_the_command_goes_on_where_it_stopped(quick, capsys):
    before = goes_on(
        quick,
        paper_002.main,
        capsys,
        NAMES - {"readings"},
        [f"{name}.png" for name in page.FIGURES],
        lambda task: task["kind"] != "classes",
    )
    for name in NAMES - {"readings"}:
        assert (quick[1] / f"{name}.csv").read_bytes() == before[f"{name}.csv"]
    # figures and tables again, of what is there
    paper_002.main(["--show", "-o", str(quick[1])])
    assert (quick[1] / "subsets.csv").read_bytes() == before["subsets.csv"]
