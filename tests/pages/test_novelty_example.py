"""examples/novelty: it runs, its detectors do what they say, and docs/novelty.md says what was measured."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from tests.support import ROOT
from tests.support.compilers import QUICK

EXAMPLE = ROOT / "examples" / "novelty"
FOLDER = ROOT / "docs" / "data" / "novelty"
sys.path.insert(0, str(EXAMPLE))

import compare  # noqa: E402
import page  # noqa: E402
import run  # noqa: E402
import study  # noqa: E402
from detectors import detector  # noqa: E402
from machine import FAULTS, SENSORS, Drive, inside  # noqa: E402

from pykernel import HostModel, check, load_spec  # noqa: E402
from pykernel.tuning.costs import memory_bytes  # noqa: E402

SPEC = load_spec(EXAMPLE / "monitor.toml")
TEXT = (ROOT / "docs" / "novelty.md").read_text(encoding="utf-8")
WORDS = " ".join(TEXT.split())
RESULTS = page.results(FOLDER)
KINDS = {
    "largest": {"window": 500},
    "mahalanobis": {"window": 500},
    "quadratic": {"window": 500},
    "gaussians": {"members": 4, "window": 500, "prior": 0.3, "apart": 5.0},
    "centroids": {"members": 30, "window": 50, "apart": 0.5},
}


# ---------------------------------------------------------------------------------------------------------- the page


def test_the_pages_blocks_are_the_results_and_its_claims_hold():
    """verdict() fails where a sentence is not so."""
    assert page.fill(TEXT, FOLDER) == TEXT
    # and one of benchmarks/host/first_alarms.py
    assert TEXT.count("<!-- end -->") == len(page.BLOCKS) + 1


def test_the_results_are_of_this_monitor_and_complete():
    best = page.one(RESULTS["tuning"], detector="okfeb", chosen="yes")
    specs = dict(study.chosen(SPEC, RESULTS["tuning"]))
    assert specs["okfeb"] == SPEC
    assert tuple(specs) == study.ORDER == tuple(page.NAMES)
    for name, spec in specs.items():
        size = memory_bytes(spec)
        cost = page.one(RESULTS["cost"], detector=name)
        assert (int(cost["state_bytes"]), int(cost["ram_bytes"])) == (size["state_bytes"], size["ram_bytes"])
        assert cost["equal"] == "yes" and size["state_bytes"] <= int(best["state_bytes"])
    assert page.one(RESULTS["device"], equal="yes")["samples"] == str(sum(part.samples for part in run.TOUR))
    branches = {(row["detector"], row["fault"], row["grade"]) for row in RESULTS["detection"]}
    wanted = {("none", ""), ("all subtle", ""), ("all gross", ""), *((f.kind, f.grade) for f in FAULTS)}
    assert branches == {(name, *branch) for name in page.NAMES for branch in wanted}
    assert {row["seeds"] for row in RESULTS["detection"]} == {"24"} and "24 other seeds" in WORDS
    assert {row["seeds"] for row in RESULTS["tuning"]} == {f"{len(study.TUNING)}"} and "on 16 seeds" in WORDS


def test_numbers_in_the_text():
    rate, half = SPEC.novelty.false_alarm_rate, np.log(0.5) / np.log(SPEC.subspace.fading)
    assert f"{round(0.1 / (0.1 * rate), -2):,.0f} quiet samples" in WORDS
    assert f"in {100 * (1 - np.exp(-rate * study.WINDOW)):.0f} of 100 cases" in WORDS
    assert f"has halved after {round(half, -2):,.0f}" in WORDS
    for name in ("largest", "mahalanobis"):
        assert f"{page.one(RESULTS['cost'], detector=name)['state_bytes']}" in WORDS[WORDS.index('"after"') :][:400]
    assert f"{sum(part.samples for part in run.TOUR):,} samples" in TEXT
    before, change, after = [row for row in RESULTS["tour"] if row["detector"] == "okfeb"][-3:]
    odds = [float(row["threshold"]) / (1 - float(row["threshold"])) for row in (before, after)]
    assert np.log(odds[1] / odds[0]) / (0.1 * rate) > 100_000
    assert SPEC.novelty.relearn_after <= int(change["held"]) < int(change["samples"]), "held, then learned"
    assert int(after["samples"]) < int(change["samples"]) / 10 and float(after["level"]) < float(change["level"])
    for file in re.findall(r"\]\((data/novelty/[\w.]+)\)", TEXT):
        assert (ROOT / "docs" / file).is_file()


# -------------------------------------------------------------------------------------------------------- the example


def test_the_tour_is_what_the_page_shows():
    """The simulation of today gives the alarms of tour.csv, and the firmware prints them."""
    x, _ = run.record()
    course, model = run.simulate(SPEC, x)
    rows = [{key: str(value) for key, value in row.items()} for row in run.happened({"okfeb": course}, run.TOUR)]
    assert rows == [row for row in RESULTS["tour"] if row["detector"] == "okfeb"]
    assert study.levels(course.scores, SPEC.novelty.smoothing, float(course.scores[0])) == pytest.approx(
        course.levels, rel=1e-5
    )
    again = HostModel(SPEC)
    assert np.array_equal(again.prequential(x)[1], course.statuses)
    assert bytes(again.memory.bytes) == bytes(model.memory.bytes)


@pytest.fixture(scope="module")
def short():
    """A spec whose alarms begin early, and samples with a fault."""
    content = SPEC.model_dump(exclude_unset=True)
    content["novelty"] |= {"warmup": 200, "relearn_after": 20}
    parts = (run.Part(300, "normal"), run.Part(60, "imbalance", run.fault("imbalance, large")), run.Part(100, "normal"))
    return type(SPEC).model_validate(content), run.record(parts)[0]


@pytest.mark.exhaustive
def test_the_firmware_says_what_the_simulation_says(short, tmp_path):
    pytest.importorskip("unicorn")
    from pykernel import generate

    spec, x = short
    generate(spec, tmp_path / "monitor")
    course, _ = run.simulate(spec, x)
    assert course.alarms.sum() > 20 and (course.statuses == run.HELD).any()
    assert run.run_firmware(tmp_path, x) == run.said(course)
    assert run.emulate(spec, x[:250])["equal"] == "yes"


def test_faults_are_what_they_are_called():
    machine = Drive(1)
    normal = machine.run(6000).x
    shares = {f.name: inside(machine.copy(2).run(300, f).x, normal) for f in FAULTS}
    assert all(shares[f"slip, {grade}"] > 0.7 for grade in ("small", "medium", "large")), shares
    assert shares["stuck, whole"] > 0.9 and shares["imbalance, large"] < 0.1
    for row in RESULTS["detection"]:  # what the page says of the tour's faults
        if row["fault"] in ("slip", "stuck"):
            assert float(row["inside"]) > 0.9
    # a copy goes on as the original would
    a, b = machine.copy(3), machine.copy(3)
    assert np.array_equal(a.run(50).x, b.run(50).x) and a.run(5).x.shape == (5, len(SENSORS))


# ------------------------------------------------------------------------------------------------------ the detectors


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", list(KINDS))
def test_detectors_are_equal_in_c(kind, short):
    spec = detector(short[0], kind, **KINDS[kind])
    report = check(spec, samples=3000, levels=("-O2",), compilers=[QUICK[0].name])
    assert report.ok, report.rows


def reference(kind: str, x: np.ndarray, window: int, prior: float) -> np.ndarray:
    """Scores in float64, from covariances that are inverted anew at each sample."""
    u = (x.astype(float) - np.array(SPEC.input.center)) * np.array(SPEC.input.scale)
    if kind == "quadratic":
        i, j = np.tril_indices(u.shape[1])
        u = np.column_stack([u, u[:, i] * u[:, j]])
    mean, covariance, scores = u[0].copy(), prior**2 * np.eye(u.shape[1]), []
    variance = np.zeros(u.shape[1])
    for t, sample in enumerate(u):
        d = sample - mean
        if kind == "largest":
            scores.append(np.max(np.abs(d) / np.sqrt(variance + prior**2)))
        else:
            scores.append(np.sqrt(d @ np.linalg.solve(covariance, d)))
        part = 1 / (min(t + 2, window) + 1)
        covariance = (1 - part) * (covariance + part * np.outer(d, d))
        variance = (1 - part) * (variance + part * d * d)
        mean = mean + part * d
    return np.array(scores)


@pytest.mark.parametrize("kind", ["largest", "mahalanobis", "quadratic"])
def test_scores_are_those_of_the_definition(kind, short):
    """In float32 after 3,000 samples of a window of 500, against float64 without any update of an inverse."""
    x = Drive(4).run(3000).x.astype(np.float32)
    content = {"warmup": 1_000_000, "false_alarm_rate": 3e-4, "smoothing": 0.2}
    spec = SPEC.model_copy(update={"novelty": type(SPEC.novelty)(**content)})
    scores, _ = HostModel(detector(spec, kind, **KINDS[kind])).prequential(x)
    expected = reference(kind, x, 500, 0.05)
    assert scores[50:] == pytest.approx(expected[50:], rel=0.02)


@pytest.mark.exhaustive
def test_the_quick_comparison_runs(tmp_path, monkeypatch):
    """Of few seeds: the columns of the page's results, and figures."""
    pytest.importorskip("unicorn")
    folder = tmp_path / "novelty"
    folder.mkdir()
    (folder / "tuning.csv").write_bytes((FOLDER / "tuning.csv").read_bytes())
    monkeypatch.setattr(study, "WARMUP", 4000)
    compare.main(["--quick", "--docs", str(folder)])
    found = page.load(folder / "detection.csv")
    assert list(found[0]) == list(RESULTS["detection"][0]) and len(found) == len(RESULTS["detection"])
    assert (folder / "areas.svg").read_text().startswith("<?xml")
    subtle = {row["detector"]: float(row["auc"]) for row in found if row["fault"] == "all subtle"}
    assert subtle["okfeb"] > subtle["largest"]
