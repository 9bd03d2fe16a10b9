"""docs/paper-001.md: its numbers are those of the results; what must hold of them does, computed again."""

import itertools

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("threadpoolctl")
pytest.importorskip("matplotlib")

import benchmarks.papers.paper_001_page as page
import benchmarks.papers.paper_001_tasks as tasks
from benchmarks import tables
from benchmarks.papers import basis_pages, paper_001
from tests.support import DATA
from tests.support.papers import goes_on

COMMAND = paper_001
FOLDER = DATA / "paper-001"
NAMES = ("batch", "convergence", "approximation", "bounds", "switching", "levels", "censoring", "learning", "times")
RESULTS = {name: tables.load(FOLDER / f"{name}.csv") for name in NAMES}


# ---------------------------------------------------------------------------------------------------------- the page


def test_the_results_are_complete():
    """What the full plan would run is what the files hold, with as many runs."""
    for experiment in paper_001.plan(False, ()):
        rows = RESULTS[experiment.name]
        keys = [key for key in ("data", "stream", "case", "r", "B", "head", "update", "step", "N") if key in rows[0]]
        told: dict[tuple[str, ...], int] = {}
        for task in experiment.tasks:
            key = tuple(f"{task[key]}" for key in keys if key in task)
            told[key] = told.get(key, 0) + 1
        shown = {tuple(row[key] for key in keys) for row in rows}
        assert not keys or shown == set(told), experiment.name
    for row in RESULTS["learning"]:
        assert row["runs"] == f"{paper_001.SEEDS}"


# ------------------------------------------------------------------------------------------------- what must be so


@pytest.mark.exhaustive
def test_the_alternation_never_rises_and_ends_at_the_closed_form(quick):
    for results in (RESULTS, quick[0]):
        of = {row["what"]: row for row in results["batch"] if row["what"] not in ("excess", "rank", "scale")}
        assert float(of["rises"]["most"]) < 1e-12
        assert float(of["thresholded"]["most"]) < 1e-9
        assert abs(float(of["measured"]["most"])) < 1e-9
        assert abs(float(of["trace"]["most"])) < 1e-9
        assert float(of["least eigenvalue"]["least"]) > -1e-9
        reached = [float(row["mean"]) for row in results["batch"] if row["what"] == "excess"]
        assert all(a >= b >= 0 for a, b in itertools.pairwise(reached))


@pytest.mark.exhaustive
def test_nothing_is_below_the_batch_optimum(quick):
    for results in (RESULTS, quick[0]):
        for row in results["convergence"]:
            assert float(row["objective"]) > 1 - 1e-9
            assert 0 <= float(row["affinity"]) < 1 + 1e-6


def test_bounds_hold(quick):
    """|K - Khat|_F / N below the trace bound, that below the usual one; and of kernel ridge regression."""
    for results in (RESULTS, quick[0]):
        for row in results["approximation"]:
            assert float(row["frobenius"]) <= float(row["trace bound"]) * 1.001
            assert float(row["trace bound"]) <= float(row["usual bound"]) * 1.001
        for row in results["bounds"]:
            assert float(row["off"]) <= float(row["bound"])


def test_exact_projection_is_better_than_dropping(quick):
    """Without a switch, at every rank and budget that both have; and neither is below batch BKFE."""
    for results in (RESULTS, quick[0]):
        rows = [row for row in results["approximation"] if row["precision"] != "float32"]
        for row in basis_pages.chosen(rows, case="exact"):
            wanted = {key: row[key] for key in ("data", "r", "B")}
            for key in ("mean", "frobenius"):
                drop, best = (basis_pages.value(rows, key, case=case, **wanted) for case in ("drop", "batch BKFE"))
                assert best < float(row[key]) < drop, wanted


def test_censoring_reaches_what_is_asked_for(quick):
    for results, allowed in ((RESULTS, 0.01), (quick[0], 0.05)):
        for row in results["censoring"]:
            if row["wanted"]:
                assert abs(float(row["rate"]) - float(row["wanted"])) <= allowed, row


def test_measuring_is_what_the_definitions_say():
    """Map's residual and objective by explicit feature vectors of a linear kernel's Gram matrix."""
    rng = np.random.default_rng(1)
    x, vectors, a = rng.normal(size=(30, 4)), rng.normal(size=(7, 4)), rng.normal(size=(7, 3)) / 3
    gamma, shrinkage = 0.2, 0.3
    every = np.vstack([x, vectors])
    values, u = np.linalg.eigh(np.exp(-gamma * ((every[:, None] - every[None]) ** 2).sum(-1)))
    phi = (u * np.sqrt(np.maximum(values, 0)))[: len(x)]  # rows: images in a space of finite dimension
    basis = ((u * np.sqrt(np.maximum(values, 0)))[len(x) :]).T @ a
    q = np.linalg.solve(basis.T @ basis + shrinkage * np.eye(3), basis.T @ phi.T)
    left = ((phi.T - basis @ q) ** 2).sum(0)
    found = tasks.Map(vectors, a, gamma, shrinkage)
    assert found.residual(x) == pytest.approx(left.mean(), rel=1e-9)
    objective = (left.sum() + shrinkage * ((q**2).sum() + (basis**2).sum())) / 2 / len(x)
    assert found.objective(x) == pytest.approx(objective, rel=1e-9)
    z = found.features(x)
    np.testing.assert_allclose(z @ z.T, q.T @ (basis.T @ basis) @ q, atol=1e-10)
    top = np.linalg.svd(phi.T)[0][:, :2]
    inner = np.linalg.qr(basis)[0].T @ top
    gram = phi @ phi.T
    w, v = np.linalg.eigh(gram)
    found_share = tasks.affinity(found, x, v[:, ::-1][:, :2], w[::-1][:2])
    assert found_share == pytest.approx((inner**2).sum(0).mean(), rel=1e-7)


@pytest.mark.parametrize("update", ["parametric", "nonparametric"])
def test_a_step_is_down_the_gradient(update):
    """Of 1/2 |phi - L q|^2 + rho / 2 |L|^2 at fixed q, by differences in A; equation 16 times K is equation 19."""
    rng = np.random.default_rng(2)
    x, gamma, shrinkage = rng.normal(size=(40, 3)), 0.3, 0.2
    task = {"r": 4, "B": 60, "shrinkage": shrinkage, "subspace": {"update": update, "window": 25}}
    model = tasks.HostModel(tasks.spec_of(3, gamma, task))
    model.update(x[:-1])
    vectors, a = tasks.learned(model)
    q = tasks.Map(vectors, a, gamma, shrinkage).coordinates(x[-1:])[0][0]
    model.update(x[-1:])
    after, moved = tasks.learned(model)
    assert len(after) == len(vectors) + 1
    k = np.exp(-gamma * ((after[:, None] - after[None]) ** 2).sum(-1))
    before = np.vstack([a, np.zeros(4)])

    def objective(a):
        left = -a @ q
        left[-1] += 1  # phi is the newest vector's image
        return left @ k @ left / 2 + shrinkage / 25 / 2 * np.trace(a.T @ k @ a)

    gradient = np.zeros_like(before)
    for i in np.ndindex(before.shape):
        step = np.zeros_like(before)
        step[i] = 1e-5
        gradient[i] = (objective(before + step) - objective(before - step)) / 2e-5
    taken = moved - before if update == "nonparametric" else k @ (moved - before)
    cosine = (taken * gradient).sum() / np.linalg.norm(taken) / np.linalg.norm(gradient)
    assert cosine == pytest.approx(-1, abs=1e-8)


def test_memory_is_compared_like_for_like():
    for row in RESULTS["learning"]:
        if row["case"] in ("Nyström, equal memory", "Fourier, equal memory"):
            wanted = {key: row[key] for key in ("data", "head", "r", "B")}
            (mine,) = basis_pages.chosen(RESULTS["learning"], case="OKFEB, exact", **wanted)
            assert 0.9 * int(mine["words"]) < int(row["words"]) <= int(mine["words"])


def test_the_results_are_what_is_computed_now(quick):
    """The first run of each case that the quick command shares with the page."""
    for name, keys in (("approximation", ("data", "r", "B", "case", "precision")), ("bounds", ("data", "r"))):
        theirs = {tuple(row[key] for key in keys): row for row in RESULTS[name]}
        for now in quick[0][name]:
            then = theirs[tuple(now[key] for key in keys)]
            key = "first" if name == "approximation" else "off"
            assert float(now[key]) == pytest.approx(float(then[key]), rel=1e-4), now


# ------------------------------------------------------------------------------------------------------- the command


def test_the_command_goes_on_where_it_stopped(quick, capsys):
    before = goes_on(
        quick,
        paper_001.main,
        capsys,
        NAMES,
        [f"{name}.svg" for name in page.FIGURES],
        lambda task: task.get("case") != "exact",
    )
    for name in before:
        assert (quick[1] / name).read_bytes() == before[name], name
