"""docs/paper-001.md: classification, the gradient, lambda and r, real streams; and what measures them is right."""

import itertools

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("threadpoolctl")
pytest.importorskip("matplotlib")

import benchmarks.papers.basis_reference as reference
import benchmarks.papers.paper_001_more as script
import benchmarks.papers.paper_001_more_page as page
import benchmarks.papers.paper_001_more_tasks as more
import benchmarks.papers.paper_001_tasks as tasks
from benchmarks import tables
from pykernel.training.bkfe import bkfe
from tests.support import DATA

FOLDER = DATA / "paper-001-more"
RESULTS = {name: tables.load(FOLDER / f"{name}.csv") for name in script.RESULTS}


def test_the_results_are_complete():
    keys = {
        "classification": ("data", "c", "r", "case"),
        "gradient": ("case", "update", "ridge"),
        "choice": ("data",),
        "streams": ("stream", "order", "B", "case"),
    }
    for experiment in script.plan(False, ()):
        names = keys[experiment.name]
        wanted = {
            tuple(f"{each[key]:g}" if key == "c" else f"{each[key]}" for key in names) for each in experiment.tasks
        }
        assert {tuple(row[key] for key in names) for row in RESULTS[experiment.name]} == wanted


def test_bounds_hold():
    """Of losses: below what is known before, above what is known after; of predictions: the root of twice the excess."""
    for row in RESULTS["classification"]:
        found = {key: float(row[key]) for key in ("below", "mean", "above", "spectral", "trace", "usual")}
        values = list(found.values())
        assert all(a <= b * (1 + 1e-3) for a, b in itertools.pairwise(values)), row
        assert float(row["off"]) <= float(row["off bound"]) <= float(row["off before"])
    for row in RESULTS["gradient"]:
        assert float(row["excess"]) > -1e-6, row


def test_the_gradient_is_that_of_explicit_images():
    """The norm by kernel values against -1/n sum (phi - L q) q' + rho L, and that against differences of the cost."""
    given = {"data": "diabetes", "rows": 25, "width": 1.0, "r": 3, "shrinkage": 0.2, "B": 25, "seed": 1, "at": [60]}
    given |= {"ridge": "λ/n", "subspace": {"update": "parametric", "step": "decreasing", "window": 1 << 22}}
    found = more.walk(given)
    x = reference.data("diabetes", 25)
    gamma = reference.gamma(x, 1.0)
    drawn = np.random.default_rng([1, 9]).integers(25, size=60)
    model = tasks.HostModel(tasks.spec_of(x.shape[1], gamma, given))
    model.update(x[drawn])
    vectors, a = tasks.learned(model)
    values, u = np.linalg.eigh(reference.gaussian(gamma, x, x))
    images = (u * np.sqrt(np.maximum(values, 0))).T  # a column for each row
    where = [int(np.abs(x - v).sum(1).argmin()) for v in vectors]
    basis, phi, rho = images[:, where] @ a, images[:, drawn], 0.2 / 60

    def cost(basis):
        q = np.linalg.solve(basis.T @ basis + 0.2 * np.eye(3), basis.T @ phi)
        return (((phi - basis @ q) ** 2).sum() + 0.2 * (q**2).sum()) / 120 + rho / 2 * (basis**2).sum()

    q = np.linalg.solve(basis.T @ basis + 0.2 * np.eye(3), basis.T @ phi)
    gradient = -(phi - basis @ q) @ q.T / 60 + rho * basis
    along = np.random.default_rng(0).normal(size=basis.shape)
    assert (cost(basis + 1e-5 * along) - cost(basis - 1e-5 * along)) / 2e-5 == pytest.approx((gradient * along).sum())
    assert found["gradient"][0] == pytest.approx(np.linalg.norm(gradient), rel=1e-6)
    assert found["scale"][0] == pytest.approx((basis**2).sum())


def test_the_least_cost_is_batch_bkfes():
    k = reference.gram("diabetes", 1.0, 60)
    least = more.least(k, np.full(60, 1 / 60), 4, 0.1, 0.1 / 60)
    assert least == pytest.approx(float(bkfe(k, 4, 0.1).objective[-1]) / 60)


@pytest.mark.exhaustive
def test_the_results_are_what_is_computed_now():
    """A run of each kind."""
    plan = {experiment.name: experiment.tasks for experiment in script.plan(False, ())}
    (task,) = [
        t
        for t in plan["streams"]
        if (t["stream"], t["order"], t["B"], t["case"]) == ("bikes", "as it came", 12, "drop")
    ]
    row = page.row_of(RESULTS, "bikes", "as it came", 12, "drop")
    assert np.mean(more.track(task)["blocks"]) == pytest.approx(float(row["mean"]), rel=1e-3)
    found = more.choose(next(t for t in plan["choice"] if (t["data"], t["seed"]) == ("diabetes", 0)))
    for way, told in found["ways"].items():
        (row,) = [row for row in RESULTS["choice"] if (row["data"], row["way"]) == ("diabetes", way)]
        assert told["error"] == pytest.approx(float(row["first"]), rel=1e-4)


@pytest.mark.exhaustive
def test_the_command_runs(tmp_path):
    script.main(["--quick", "--jobs", "1", "-o", str(tmp_path)])
    assert {path.name for path in tmp_path.glob("*.csv")} == {f"{name}.csv" for name in script.RESULTS}
    assert {path.name for path in tmp_path.glob("*.svg")} == {f"{name}.svg" for name in page.FIGURES}
