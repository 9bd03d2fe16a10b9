"""plan of specs with a [signal]: what is written keeps what was promised, and what features are said to earn is so."""

import json

import numpy as np
import pytest

from pykernel.errors import MissingExtra
from pykernel.gen.project import build
from pykernel.host.samples import samples_of
from pykernel.host.signal import steps_of
from pykernel.spec.model import load_spec, make_spec
from pykernel.targets import check as targets
from pykernel.tuning.earned import fewer_lags, groups_of, more_of, without
from pykernel.tuning.trials import Table, judge

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


@pytest.fixture
def uncounted(monkeypatch):
    """As on a machine without an emulator."""

    def missing(*arguments):
        raise MissingExtra("emulating cortex-m4f", "emulate")

    monkeypatch.setattr(targets, "choose", missing)


def simulated(run, spec, data, *words):
    code, out, err = run("simulate", spec, data, "--json", *words)
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize(
    ("name", "rules", "words", "measure"),
    [
        ("rent", "rls,frozen", [], "mae"),
        pytest.param("rent", "klms,krls-t,ls-svm,nystrom-rls,okfeb", [], "rmse", marks=pytest.mark.exhaustive),
        ("gauge", "nlms,kfd", ["--delay", "2"], "error_rate"),
        pytest.param("whole", "nlms,qklms", [], "mae", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.exhaustive
def test_the_specs_that_a_sweep_writes_have_the_error_and_the_bytes_that_it_promised(
    folder, run, name, rules, words, measure
):
    small = ["--rule", rules, "--technique", "mklms,fklms", *SMALL]
    code, out, err = run("sweep", f"{name}.toml", f"{name}.csv", *small, *words, "--score", measure, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert {row["rule"] for row in found["table"]} == set(rules.split(",")), found["unusable"]
    for row in found["table"]:
        spec = make_spec(row["spec"])
        assert spec.signal == load_spec(f"{name}.toml").signal
        assert row["ram_bytes"] == build(spec).figures["ram_bytes"]
        (folder / "one.toml").write_text(spec.to_toml())
        how = (
            ["--train-every", str(row["train_every"])]
            if "train_every" in row
            else words
            if spec.inner.program.learns
            else []
        )
        told = simulated(run, "one.toml", f"{name}.csv", *how, *(words if "train_every" in row else []))
        assert told["second_half"][measure]["model"] == row[measure], row["rule"]
    assert load_spec(found["specs"]["best"]).to_toml() == make_spec(found["table"][0]["spec"]).to_toml()
    # a row that is missing is a gap: 23 steps of the lags are lost, and two truths before it and at the end each
    assert found["rows"] == {"gauge": 399}.get(name, 500 - 23 - 24)


def on_steps(spec_file, data, content, delay=0):
    """Errors of a model, as a plan judges it, on steps that are made here."""
    spec = make_spec(content)
    with open(data, "rb") as file:
        batches = list(steps_of(spec, samples_of(spec, file, data)))
    x, y = (np.concatenate([getattr(batch, part) for batch in batches]) for part in ("x", "y"))
    found = judge(spec.inner, Table(x, y, delay))
    return (found["learning"] or found["frozen"])["error"], len(x)


@pytest.mark.exhaustive
def test_a_plan_says_which_features_and_windows_earn_what_they_take(folder, run, uncounted):
    words = ["--only", "nlms,frozen", "--trials", "6", "--jobs", "1", "--json"]
    code, out, err = run("plan", "gauge.csv", "--spec", "gauge.toml", *words)
    tried = "without each kind of feature, with each other kind, with other windows and hops: at most 26 trials, about"
    assert code == 0 and tried in err, err
    found = json.loads(out)
    told, winner = found["signal"], found["winner"]
    promised = (winner["learning"] or winner["frozen"])["error"]
    assert (
        told["planned"]["error"]
        == promised
        == on_steps("gauge.toml", "gauge.csv", toml("pykernel-plan/planned.toml"))[0]
    )
    rows = {row["name"]: row for row in told["features"]}
    assert set(rows) == {"rms", "crossings", "mean"}
    assert rows["rms"]["earns"] and rows["rms"]["error"] > promised + 0.05
    assert not rows["mean"]["earns"] and told["target"] is None and "emulate" in told["note"]
    windows = {(row["window"], row["hop"]): row for row in told["windows"]}
    assert set(windows) == {(16, 4), (16, 16), (8, 8), (8, 4), (8, 2), (32, 32), (32, 16), (32, 8)}
    # the labels stand at every eighth row: of hops below, not all steps are judged
    assert 110 < windows[32, 8]["judged"] < 125 and abs(windows[8, 2]["judged"] - windows[8, 8]["judged"]) <= 2
    leaner = load_spec(found["leaner_spec"])
    assert leaner.name == "gauge" and "rms" in leaner.signal.features and "mean" not in leaner.signal.features
    error, _ = on_steps("gauge.toml", "gauge.csv", toml(found["leaner_spec"]))
    assert error == told["leaner"]["error"] and set(told["leaner"]["dropped"]) <= {"mean", "crossings"}
    code, out, err = run("plan", "gauge.csv", "--spec", "gauge.toml", *words[:-1], "-o", "again")
    assert (
        code == 0 and "what features earn" in out and "other windows and hops" in out and "leaner    without" in out
    ), err
    for name in ("planned", "leaner"):
        assert (folder / "again" / f"{name}.toml").read_text() == (
            folder / "pykernel-plan" / f"{name}.toml"
        ).read_text()


def toml(path):
    return load_spec(path).model_dump(mode="json", exclude_unset=True)


def test_a_plan_of_a_forecast_judges_the_truth_that_comes_later(folder, run, uncounted):
    words = ["--only", "rls", "--trials", "2", "--jobs", "1", "--json"]
    code, out, err = run("plan", "rent.csv", "--spec", "rent.toml", *words)
    assert code == 0, err
    found = json.loads(out)
    assert found["winner"]["learning"]["error"] == on_steps("rent.toml", "rent.csv", toml(found["spec"]), 1)[0]
    assert found["signal"]["windows"] == []
    assert {row["name"] for row in found["signal"]["added"]} == {"difference 1", "average 4", "lags 2 to 4"}
    rows = {row["name"]: row for row in found["signal"]["features"]}
    assert set(rows) == {"lag 0", "lag 1", "lag 23", "period 24", "lags 1, 23"}
    assert load_spec(found["spec"]).signal.ahead == 2
    code, _, err = run("plan", "rent.csv", "--spec", "rent.toml", *words, "--delay", "3")
    assert code == 2 and "[signal] ahead says when the truth comes" in err


def test_what_is_better_than_the_planned_model_gets_a_spec(folder, run, uncounted):
    """Of a swing, the mean alone does not say which way it goes."""
    words = ["--only", "rls", "--trials", "1", "--jobs", "1", "--json"]
    code, out, err = run("plan", "gauge.csv", "--spec", "swing.toml", *words)
    assert code == 0, err
    found = json.loads(out)
    told = found["signal"]
    planned, better, added = told["planned"], told["better"], {row["name"]: row for row in told["added"]}
    assert set(added) == {*"rms std min max range crest skewness kurtosis crossings change slope".split()} | {
        "difference 1",
        "average 4",
        "lag 1",
    }
    assert added["slope"]["earns"] and added["slope"]["change"] < -0.3 and not added["kurtosis"]["earns"]
    error, _ = on_steps("swing.toml", "gauge.csv", toml(found["better_spec"]), 1)
    assert error == better["error"] < planned["error"] - max(planned["deviation"], better["deviation"])
    assert better["error"] == min(row["error"] for row in told["added"])
    # as far ahead; of another window, the truth is another one, whatever its error
    windows = {(row["window"], row["hop"]): row for row in told["windows"]}
    assert {size: row["signal"]["ahead"] for size, row in windows.items()} == {
        (8, 2): 4,
        (8, 8): 1,
        (4, 4): 2,
        (4, 2): 4,
        (16, 8): 1,
        (16, 4): 2,
    }
    assert windows[8, 2]["last_label"] == pytest.approx(planned["last_label"], rel=0.1)
    assert planned["last_label"] == pytest.approx(found["simple"]["last label"]["error"])
    assert windows[16, 4]["error"] < better["error"] and better["signal"]["window"] == 8


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
    told = found["signal"]
    assert told["target"] == "cortex-m0plus" and all(row["costs"] > 0 for row in told["features"])
    assert all(row["costs"] > 0 for row in told["added"] if row["reason"] is None)
    # of longer hops a raw sample takes less
    each = {(row["window"], row["hop"]): row["per_sample"] for row in told["windows"]}
    assert each[32, 32] < each[32, 16] < each[32, 8]


def test_a_kind_of_feature_is_dropped_with_what_only_it_needs():
    signal = {"channels": ["a", "b"], "window": 16, "rate": 100.0, "log": True}
    signal |= {
        "features": {"a": ["mean", "centroid"], "b": ["mean"]},
        "bands": [[1, 10.0]],
        "lags": [0, 2],
        "periods": [7],
    }
    groups = {name: (key, what) for name, key, what in groups_of(signal)}
    assert list(groups) == ["mean", "centroid", "1 to 10 Hz", "lag 0", "lag 2", "period 7"]
    assert without(signal, *groups["centroid"])["features"] == {"a": ["mean"], "b": ["mean"]}
    bare = without(without(signal, *groups["1 to 10 Hz"]), *groups["centroid"])
    assert not {"bands", "log", "rate"} & set(bare) and bare["lags"] == [0, 2]
    assert without(signal, *groups["lag 2"])["lags"] == [0] and signal["lags"] == [0, 2]


def test_each_kind_that_a_spec_lacks_is_added_where_it_can_be_computed():
    signal = {"channels": ["a", "b"], "window": 16, "features": {"a": ["mean"], "b": ["rms"]}, "lags": [0, 2, 9, 1]}
    more = dict(more_of(signal))
    assert {"std", "correlation", "difference 1", "average 4", "lags 3 to 6"} <= set(more)
    assert not {"mean", "rms", "centroid"} & set(more)
    assert more["std"]["features"] == {"a": ["mean", "std"], "b": ["rms", "std"]}
    assert more["lags 3 to 6"]["lags"] == [0, 2, 9, 1, 3, 4, 5, 6]
    assert fewer_lags(signal) == [("lags 2, 9", signal | {"lags": [0, 1]})] and fewer_lags({"lags": [0, 1]}) == []
    more = dict(more_of({"channels": ["a"], "window": 8, "rate": 80.0, "features": ["dominant"]}))
    assert {"centroid", "flatness"} <= set(more) and more["lag 1"]["lags"] == [0, 1]
    assert more["bands of an octave from 10 Hz"]["bands"] == [[10.0, 20.0], [20.0, 40.0]]
    assert set(dict(more_of({"channels": ["a"], "averages": [7]}))) == {"difference 1", "lag 1"}
