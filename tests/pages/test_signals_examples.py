"""examples/signals: docs/signals-examples.md says what was measured, and the measures are those of today's models."""

import re
from typing import get_args

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from examples.signals import figures, page, study
from examples.signals.data import RATE
from pykernel import check, load_spec
from pykernel.spec.signal import FeatureName
from tests.support import ROOT
from tests.support.compilers import QUICK
from tests.support.pages import stand, text_of

FOLDER = ROOT / "examples" / "signals"
TEXT = text_of("signals-examples.md")
FOUND = page.results()


def column(name, by, key, **wanted):
    rows = [row for row in FOUND[name] if all(row[k] == v for k, v in wanted.items())]
    return {row[by]: float(row[key]) for row in rows}


def test_the_pages_tables_are_the_results_and_its_specs_are_the_files():
    assert stand({name: page.TABLES[name](rows) for name, rows in FOUND.items()})
    blocks = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 3
    for block, name in zip(blocks, study.RECORDED, strict=True):
        assert block in (FOLDER / f"{name}.toml").read_text(encoding="utf-8")


def test_the_pages_claims_hold():
    for ahead, better in (("1", True), ("24", False)):
        errors = column("forecast", "predictor", "mae", ahead=ahead)
        others = min(error for name, error in errors.items() if name != "model")
        assert (errors["model"] < others) is better
    chosen, new = (column("exercises", "method", key) for key in ("chosen_on", "new"))
    assert min(chosen, key=chosen.get) == "model" and min(new, key=new.get) == "random forest, 100 trees"
    assert max(new["nearest centroid"], chosen["nearest centroid"]) < 22
    assert new["model"] > max(new["logistic regression"], new["support vector machine"])
    seen = column("bearing", "score", "seen, outer race, same load")
    assert {seen[name] for name in seen if "same features" in name} == {100} and seen["kurtosis alone"] > 95
    (own,) = (row for row in FOUND["bearing"] if row["score"] == "model")
    assert {own[key] for key in own if key.startswith("after")} == {"0"} and int(own["false_alarms"]) <= 2
    assert {own[key] for key in own if key.startswith("seen")} == {"100"}
    assert column("bearing", "score", "auc, outer race, same load")["rms alone"] == 0
    assert {row["bytes"] for row in FOUND["bearing"] if row["score"].startswith("max")} == {
        "56"
    } and "takes only 56 bytes" in TEXT
    tried = page.load(page.DATA / "signals" / "tried.csv")
    shipped = {row["example"]: row for row in tried if row["changed"] == "as shipped"}
    errors = {row["changed"]: float(row["error"]) for row in tried if row["example"] == "exercises"}
    assert min(errors.values()) >= float(shipped["exercises"]["error"]) - 0.5
    assert errors["running scale, sigma 3.46"] > 1.2 * errors["as shipped"]
    (bold,) = (row for row in tried if row["changed"] == "n_max 96, noise 0.1")
    assert float(bold["own_learned"]) < float(shipped["exercises"]["own_learned"])
    assert float(bold["error"]) > float(shipped["exercises"]["error"])
    smaller = [row for row in tried if row["example"] == "bicycles" and row["changed"] != "n_max 96"]
    assert min(float(row["error"]) for row in smaller) == float(shipped["bicycles"]["error"])
    (slow,) = (row for row in FOUND["cost"] if (row["example"], row["target"]) == ("bearing", "cortex-m0plus"))
    assert RATE * int(slow["mean"]) > 64e6, "the Cortex-M0+ is too slow for the bearing"


def test_the_forecast_of_today_is_the_one_of_the_page():
    rows = [{key: str(value) for key, value in row.items()} for row in study.forecast()]
    assert rows == FOUND["forecast"]


def test_each_feature_has_a_panel_and_moves_in_it():
    names = {panel.name for panel in figures.PANELS}
    assert names == {*get_args(FeatureName), "bands", "lags", "differences", "averages", "periods"}
    for panel in figures.PANELS:
        when, values = figures.features(panel.raw, **panel.signal)
        assert np.isfinite(values).all() and len(when) == len(values)
        before = when < figures.FIRST[0]
        assert (np.ptp(values, axis=0) > 2 * np.ptp(values[before], axis=0)).any() or panel.name == "periods"


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", list(study.RECORDED))
def test_the_examples_are_equal_in_c(name):
    report = check(load_spec(FOLDER / f"{name}.toml"), samples=20_000, levels=("-O2",), compilers=[QUICK[0].name])
    assert report.ok, report.rows
