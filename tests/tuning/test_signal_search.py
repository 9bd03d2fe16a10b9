"""plan of specs with a [signal]: what is written keeps what was promised, and what features are said to earn is so."""

import json
import tomllib

import numpy as np
import pytest

from pykernel.gen.project import build
from pykernel.host.samples import samples_of
from pykernel.host.signal import steps_of
from pykernel.spec.model import load_spec, make_spec
from pykernel.tuning.ablation import groups_of, without
from pykernel.tuning.data import Table
from pykernel.tuning.trials import judge

SMALL = ["--n-max", "6", "--rounds", "0", "--target", "none", "--jobs", "1"]
RENT = """
name = "rent"
[signal]
channels = ["flow", "heat"]
max_abs = 1000.0
lags = [0, 1, 23]
periods = [24]
ahead = 2
[label]
column = "flow"
"""
GAUGE = """
name = "gauge"
[signal]
channels = ["ax", "ay"]
window = 16
hop = 8
features = ["rms", "crossings", "mean"]
[label]
column = "state"
classes = ["quiet", "loud"]
"""
WHOLE = RENT.replace("[signal]", 'precision = "int16"\n[signal]').replace("1000.0", "64.0").replace("ahead = 2\n", "")
SWING = """
name = "swing"
[signal]
channels = ["ax"]
window = 8
hop = 4
features = ["mean"]
ahead = 2
[label]
column = "ax"
"""
MONITOR = GAUGE[: GAUGE.index("[label]")] + "[novelty]\nwarmup = 100\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng, t = np.random.default_rng(0), np.arange(500)
    flow = 20 + 8 * np.sin(2 * np.pi * t / 24) + rng.normal(size=500)
    rows = [f"{a:.4f},{b:.4f}" for a, b in zip(flow, rng.normal(size=500), strict=True)]
    rows[300] = ",1"  # a sample that is missing
    for name in ("rent", "whole"):
        (tmp_path / f"{name}.csv").write_text("flow,heat\n" + "\n".join(rows) + "\n")
    t = np.arange(3200)
    loud = rng.random(3200 // 160).repeat(160) < 0.5
    x = np.column_stack([np.where(loud, 2.0, 1.0) * np.sin(t / 3), rng.normal(size=3200)]) + 0.3 * rng.normal(
        size=(3200, 2)
    )
    # labels stand where steps end, and one of them is not there
    names = np.where(loud, "loud", "quiet")
    told = [name if t % 8 == 7 and t != 2007 else "" for t, name in enumerate(names)]
    lines = [f"{p:.4f},{q:.4f},{name}" for (p, q), name in zip(x, told, strict=True)]
    (tmp_path / "gauge.csv").write_text("ax,ay,state\n" + "\n".join(lines) + "\n")
    for name, text in (("rent", RENT), ("gauge", GAUGE), ("swing", SWING), ("monitor", MONITOR), ("whole", WHOLE)):
        (tmp_path / f"{name}.toml").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def simulated(run, spec, data, *words):
    code, out, err = run("simulate", spec, data, "--json", *words)
    assert code == 0, err
    return json.loads(out)


def on_steps(spec_file, data, content, delay=0):
    """Errors of a model, as a plan judges it, on steps that are made here."""
    spec = make_spec(content)
    with open(data, "rb") as file:
        batches = list(steps_of(spec, samples_of(spec, file, data)))
    x, y = (np.concatenate([getattr(batch, part) for batch in batches]) for part in ("x", "y"))
    found = judge(spec.inner, Table(x, y, delay))
    return (found["learning"] or found["frozen"])["error"], len(x)


@pytest.mark.exhaustive
def test_a_plan_says_which_features_earn_their_place(folder, run):
    words = ["--only", "nlms,frozen", "--trials", "6", "--jobs", "1"]
    code, out, err = run("plan", "gauge.csv", "--spec", "gauge.toml", *words, "--json")
    assert code == 0 and "trying the planned model without one kind of feature at a time: 3 trials, about" in err, err
    found = json.loads(out)
    winner = found["winner"]
    promised = (winner["learning"] or winner["frozen"])["error"]
    assert promised == on_steps("gauge.toml", "gauge.csv", toml("pykernel-plan/planned.toml"))[0]
    rows = {row["name"]: row for row in found["signal"]["features"]}
    assert set(rows) == {"rms", "crossings", "mean"}
    assert rows["rms"]["earns"] and rows["rms"]["error"] > promised + 0.05
    assert not rows["mean"]["earns"] and rows["mean"]["ram_bytes"] < winner["ram_bytes"]
    code, out, err = run("plan", "gauge.csv", "--spec", "gauge.toml", *words, "-o", "again")
    assert code == 0 and "if one kind of feature is left out" in " ".join(out.split()) and "without rms" in out, err
    first, second = (folder / each / "planned.toml" for each in ("again", "pykernel-plan"))
    assert first.read_text() == second.read_text()


def toml(path):
    return load_spec(path).model_dump(mode="json", exclude_unset=True)


@pytest.mark.exhaustive
def test_a_plan_of_a_forecast_judges_the_truth_that_comes_later(folder, run):
    words = ["--only", "rls", "--trials", "2", "--jobs", "1", "--json"]
    code, out, err = run("plan", "rent.csv", "--spec", "rent.toml", *words)
    assert code == 0, err
    found = json.loads(out)
    assert found["winner"]["learning"]["error"] == on_steps("rent.toml", "rent.csv", toml(found["spec"]), 1)[0]
    rows = {row["name"]: row for row in found["signal"]["features"]}
    assert set(rows) == {"lag 0", "lag 1", "lag 23", "period 24"}
    for name, row in rows.items():  # each is the planned model of the signal without it
        spec = tomllib.loads((folder / found["spec"]).read_text())
        key, value = groups_of(spec["signal"])[name]
        spec["signal"] = without(spec["signal"], key, value)
        assert (row["error"], row["change"]) == (
            on_steps("rent.toml", "rent.csv", spec, 1)[0],
            row["error"] / found["winner"]["learning"]["error"] - 1,
        )
    assert load_spec(found["spec"]).signal.ahead == 2
    code, _, err = run("plan", "rent.csv", "--spec", "rent.toml", *words, "--delay", "3")
    assert code == 2 and "[signal] ahead says when the true value comes" in err


def test_labels_that_the_c_of_a_signal_cannot_learn_are_told(folder, run):
    """The device keeps the features of the newest step only; a forecast's true values come from its own channel."""

    def told(spec, data, *words):
        return sum("cannot learn labels" in each for each in simulated(run, spec, data, *words)["warnings"])

    assert told("gauge.toml", "gauge.csv", "--delay", "2") == 1
    assert not told("gauge.toml", "gauge.csv") and not told("rent.toml", "rent.csv")
    words = ["--only", "nlms", "--trials", "2", "--jobs", "1", "--delay", "2"]
    code, _, err = run("plan", "gauge.csv", "--spec", "gauge.toml", *words)
    assert code == 0 and "cannot learn labels that come 2 steps late" in err


@pytest.mark.exhaustive  # bounds of candidates, and a build for each kind of feature and each window
def test_limits_of_a_plan_are_those_of_the_whole_model(folder, run):
    pytest.importorskip("unicorn")
    words = ["--target", "cortex-m0plus", "--ram", "2k", "--flash", "24k", "--instructions", "200k"]
    code, out, err = run(
        "plan",
        "gauge.csv",
        "--spec",
        "gauge.toml",
        *words,
        "--only",
        "nlms,klms",
        "--trials",
        "6",
        "--jobs",
        "2",
        "--json",
    )
    assert code == 0, err
    found = json.loads(out)
    spec = load_spec(found["spec"])
    assert spec.target.ram == 2048 and found["verified"]["equal"] and max(found["uses"].values()) <= 1
    assert build(spec).figures["ram_bytes"] <= 2048 and found["verified"]["push_labelled"]["bound"] <= 200_000


def test_a_kind_of_feature_is_dropped_with_what_only_it_needs():
    signal = {"channels": ["a", "b"], "window": 16, "rate": 100.0, "log": True}
    signal |= {
        "features": {"a": ["mean", "centroid"], "b": ["mean"]},
        "bands": [[1, 10.0]],
        "lags": [0, 2],
        "periods": [7],
    }
    groups = groups_of(signal)
    assert list(groups) == ["mean", "centroid", "1 to 10 Hz", "lag 0", "lag 2", "period 7"]
    assert without(signal, *groups["centroid"])["features"] == {"a": ["mean"], "b": ["mean"]}
    bare = without(without(signal, *groups["1 to 10 Hz"]), *groups["centroid"])
    assert not {"bands", "log", "rate"} & set(bare) and bare["lags"] == [0, 2]
    assert without(signal, *groups["lag 2"])["lags"] == [0] and signal["lags"] == [0, 2]
