"""docs/paper-003.md: its numbers are those of the results, and the results are what the product computes."""

import json

import numpy as np
import pytest

from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.support import DATA

pytest.importorskip("matplotlib")

import benchmarks.papers.paper_003_tasks as tasks
from benchmarks.papers import paper_003
from benchmarks.results import TREE

ROWS = paper_003.read_table(DATA / "paper-003" / "results.csv")


@pytest.fixture
def fresh():
    if why := TREE.stale("paper-003"):
        pytest.skip(f"the results are to be measured again, as `make stale` says: {why[0]}")


@pytest.mark.exhaustive
@pytest.mark.usefixtures("fresh")
def test_the_results_are_complete():
    """One row for each that the command computes, of 100 realisations, with the same refusals as now."""

    def key(experiment, method, settings, when, n_max, parameter, forced):
        return experiment, method, settings, when, str(n_max), parameter, forced

    plan = paper_003.plan_accuracy(100)
    assert plan.refused == {}
    wanted = [key(*(getattr(row, name) for name in FIELDS)) for row in plan.rows]
    assert [key(*(row[name] for name in COLUMNS)) for row in ROWS] == wanted
    assert {row["realisations"] for row in ROWS} == {"100"}


FIELDS = ("experiment", "method", "settings", "when", "n_max", "parameter", "forced")
COLUMNS = (*FIELDS[:-1], "refused_unless_forced")


@pytest.mark.exhaustive
@pytest.mark.usefixtures("fresh")
def test_the_results_are_what_the_product_computes():
    """The first realisation of every method, rule and strategy, computed again."""
    plan = paper_003.plan_accuracy(1)
    chosen = {}
    for row, line in zip(plan.rows, ROWS, strict=True):
        if row.n_max in (8, 14, 100):
            chosen[row.experiment, row.method, row.settings, row.when, row.parameter] = (row, line)
    assert len(chosen) > 200
    for key, (row, line) in chosen.items():
        (task,) = row.tasks
        now = tasks.run_task(task)["mse"][0]
        # float64 arithmetic is ours and equal everywhere; the mean over the grid is NumPy's
        assert now == pytest.approx(float(line["mse_of_0"]), rel=1e-9, nan_ok=True), key


def test_reducing_before_with_one_more_is_reducing_after():
    """Sections 3 and 4 of the report differ by one vector: the model that a presentation sees is the same."""
    x, y = tasks.sinc(3, tasks.SAMPLES)
    for technique in ("klms", "mklms"):
        before, after = (
            HostModel(tasks.spec_of({"technique": technique, "n_max": n, **when}))
            for n, when in ((11, {"when": "before"}), (10, {}))
        )
        for i in range(60):
            before.update(x[i : i + 1], y[i : i + 1])
            after.update(x[i : i + 1], y[i : i + 1])
        # before's newest has not competed yet; when it has, what is left is after's
        before.update([[100.0]], [0.0])
        np.testing.assert_allclose(before.predict(tasks.GRID[:, None]), after.predict(tasks.GRID[:, None]), atol=1e-12)


@pytest.mark.exhaustive
def test_the_command_goes_on_where_it_stopped(tmp_path, capsys):
    words = ["--realisations", "2", "--jobs", "1", "--figures", "1,3,4,7,11", "-o", str(tmp_path)]
    paper_003.main(words)
    first = capsys.readouterr().out
    assert {path.name for path in tmp_path.glob("*.png")} == {f"figure-{i}.png" for i in (1, 3, 4, 7, 11)}
    finished = (tmp_path / "tasks.jsonl").read_bytes().splitlines(keepends=True)
    assert f"{len(finished)} of {len(finished)} tasks computed" in first
    # stopped in the middle of a line
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(finished[:20]) + finished[20][:50])
    paper_003.main(words)
    assert f"{len(finished) - 20} of {len(finished)} tasks computed" in capsys.readouterr().out
    again = (tmp_path / "tasks.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["result"] for line in again] == [json.loads(line)["result"] for line in finished]


@pytest.mark.exhaustive
def test_specs_of_the_report_absorb_next_to_nothing():
    """float64, no ridge, and no ald_threshold that is not the least, but where the page says so."""
    for row in paper_003.plan_accuracy(1).rows:
        if row.settings == "report" and row.experiment in ("budget", "pairs", "reference", "gate"):
            spec = make_spec(row.tasks[0]["content"])
            assert spec.precision == "float64"
            assert spec.reduction.ald_threshold in ((1e-12,) if row.experiment == "gate" else (0, 1e-7))
            assert spec.reduction.ridge == 0 or "ridge" not in spec.reduction.model_fields_set
