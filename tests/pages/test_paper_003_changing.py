"""docs/paper-003.md on functions that change: its numbers are those of the results, and those what the product computes."""

import json

import numpy as np
import pytest

from tests.support import DATA

pytest.importorskip("matplotlib")
pytest.importorskip("unicorn")

import benchmarks.papers.paper_003_changing as changing
import benchmarks.papers.paper_003_changing_page as page
from benchmarks import tables
from benchmarks.results import TREE

FOLDER = DATA / "paper-003-changing"
RESULTS = {name: tables.load(FOLDER / f"{name}.csv") for name in ("errors", "effort", "chosen")}


def test_the_results_are_complete():
    added = {(technique, what) for technique, what, _ in changing.variants()}
    shown = [(row["stream"], row["technique"], row["added"]) for row in RESULTS["errors"]]
    assert sorted(shown) == sorted((stream, *each) for stream in changing.STREAMS for each in added)
    assert {row["seeds"] for row in RESULTS["errors"]} == {str(len(changing.JUDGING))}
    planned = [
        (stream, kind, technique, changing.told(setting))
        for kind, technique, setting in changing.strategies()
        for stream in changing.CHANGING
    ]
    assert [(r["stream"], r["kind"], r["technique"], r["setting"]) for r in RESULTS["effort"]] == planned
    levels = {(row["stream"], row["level"], row["kind"]) for row in RESULTS["chosen"]}
    assert len(levels) == len(RESULTS["chosen"]) == len(changing.CHANGING) * len(page.LEVELS) * len(page.KINDS)


def test_what_was_chosen_is_the_cheapest_that_is_good_enough():
    for row in RESULTS["chosen"]:
        wanted = float(row["level"]) * page.best_error(RESULTS["effort"], row["stream"])
        best = page.cheapest(RESULTS["effort"], row["stream"], row["kind"], wanted)
        assert (best["setting"] if best else "") == row["setting"], row


@pytest.mark.exhaustive
def test_settings_are_of_the_kind_that_they_are_counted_as():
    """Truncation alone redistributes nothing; sparsity control alone drops nothing as stale."""
    for kind, _, setting in changing.strategies():
        spec = changing.spec_of(setting)
        stale = "truncate_age" in setting or "truncate_below" in setting
        if kind == "truncation":
            assert spec.reduction.technique in ("nt", "at") and spec.reduction.ald_threshold == 0
        elif kind == "sparsity":
            assert not stale
            assert spec.reduction.technique not in ("nt", "at") or spec.reduction.n_max == changing.ROOM
        else:
            assert stale or (spec.reduction.technique == "nt" and spec.reduction.n_max < changing.ROOM)


def test_the_results_are_what_the_product_computes():
    """Of two settings the errors, on all the streams that judge."""
    for row in (RESULTS["errors"][0], RESULTS["errors"][-1]):
        setting = json.loads(row["setting"])
        found = changing.learned(setting, (row["stream"],), changing.JUDGING)[row["stream"]]
        assert np.mean(found["errors"]) == pytest.approx(float(row["error"]), rel=1e-3)


@pytest.mark.exhaustive
def test_instructions_are_those_of_the_device():
    pytest.importorskip("ziglang")
    if why := TREE.stale("paper-003-changing"):
        pytest.skip(f"the results are to be measured again, as `make stale` says: {why[0]}")
    row = next(row for row in RESULTS["chosen"] if row["kind"] == "both" and row["setting"])
    found = changing.counted(json.loads(row["setting"]), (row["stream"],), changing.COUNTED[changing.JUDGING])
    assert np.mean(found[row["stream"]]) == pytest.approx(float(row["instructions"]), rel=1e-3)


@pytest.mark.exhaustive("minutes")
def test_the_command_goes_on_where_it_stopped(tmp_path, capsys):
    pytest.importorskip("ziglang")
    words = ["--quick", "--jobs", "1", "-o", str(tmp_path)]
    changing.main(words)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"errors.csv", "effort.csv", "chosen.csv", "effort.png", "tasks.jsonl"}
    kept = before["tasks.jsonl"].splitlines(keepends=True)[:10]
    (tmp_path / "tasks.jsonl").write_bytes(b"".join(kept))
    changing.main(words)
    for name in ("errors.csv", "effort.csv", "chosen.csv"):
        assert (tmp_path / name).read_bytes() == before[name], name
