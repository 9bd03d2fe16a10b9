"""Advice: each cause is named on a stream that has it, and what is advised helps; a good model gets none."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import pykernel
from benchmarks.host import advice_figures
from benchmarks.host.first_streams import stream
from pykernel import telling
from pykernel.host.advice import Signs
from pykernel.host.scores import verdict
from pykernel.host.simulation import Simulation
from pykernel.spec.model import make_spec
from tests.support import DOCS


@pytest.mark.in_turn
@pytest.mark.parametrize("test", advice_figures.CASES)
def test_each_cause_is_named_and_what_is_advised_cuts_the_error_by_a_fifth(test: str) -> None:
    advice, before, _, _, _ = advice_figures.advised(test)
    assert [each["test"] for each in advice] == [test]
    after, now = re.search(r": the error is (\S+) instead of (\S+) \(.+: \S+\)$", advice[0]["change"]).groups()
    assert now == f"{before:.4g}" and float(after) < 0.8 * before
    if test == "labels far from 0":
        page = (DOCS / "guide/when-it-is-bad.md").read_text(encoding="utf-8")
        assert f"advice   {test}: {advice[0]['why']}\n         {advice[0]['change']}\n" in page


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("name", ["sinc", "friedman 1", "bikes", "plant"])
def test_a_good_model_gets_none(name: str) -> None:
    x, y = stream(name)
    spec = make_spec({"name": "good", "input": {"dim": x.shape[1]}, "label": {"outputs": 1}})

    def trial(changed):
        simulation, _ = advice_figures.run(x, y, changed)
        return simulation.summary(simulation.errors, len(x) // 2)["rmse"]["model"]

    simulation, _ = advice_figures.run(x, y, spec)
    assert simulation.report(trial)["advice"] == []


@pytest.mark.parametrize("rule", ["klms", "nlms", "rls", "qklms"])
@pytest.mark.parametrize("label", [0.0, 7.0, -1e6])
def test_what_is_advised_reduces_the_error_of_a_constant_label_too(rule: str, label: float) -> None:
    """Each change has a smaller error than the one before; where nothing errs, nothing is advised."""
    kernel = {"kernel": {"sigma": 1.0}} if "klms" in rule else {}
    spec = make_spec({"name": "m", "input": {"dim": 2}, "label": {"outputs": 1}, "learning": {"rule": rule}, **kernel})
    x, y = np.random.default_rng(1).normal((0, 50), 1.0, (600, 2)), np.full(600, label)

    def trial(changed):
        simulation, _ = advice_figures.run(x, y, changed)
        return simulation.summary(simulation.errors, len(x) // 2)["rmse"]["model"]

    simulation, _ = advice_figures.run(x, y, spec)
    for each in simulation.report(trial)["advice"]:
        for after, now in re.findall(r": the error is (\S+) instead of (\S+?)(?:,| \()", each["change"]):
            assert float(after) < float(now), each


@pytest.mark.parametrize("content", [{}, advice_figures.KLMS])
def test_labels_that_decide_the_error_are_named(content: dict) -> None:
    """The count, the first row, and the error of the others; in whatever batches the rows come."""
    x, y = advice_figures.plain(np.random.default_rng(0))
    spec = make_spec({"name": "m", "input": {"dim": 2}, "label": {"outputs": 1}, **content})
    sound, answers = advice_figures.run(x, y, spec)
    y[[2100, 3000, 3500]] += [200.0, -300.0, 250.0]
    simulation, answers = advice_figures.run(x, y, spec)
    told = {each["test"]: each for each in simulation.report()["advice"]}
    assert "outlying labels" not in {each["test"] for each in sound.report()["advice"]}
    assert told["outlying labels"]["value"] == 3
    assert f"row 3,001: label {y[3000]:.6g}, answer {answers[3000]:.6g}" in told["outlying labels"]["why"]
    rest = np.delete(np.arange(2000, 4000), [100, 1000, 1500])
    assert f"{np.sqrt(np.mean((answers[rest] - y[rest]) ** 2)):.4g}" in told["outlying labels"]["why"]
    assert ("[label] clip = 5" in told["outlying labels"]["change"]) == bool(content)


def test_the_command_tells_it_with_numbers_and_without_them_for_what_is_read_once(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y, spec = advice_figures.samples("labels far from 0")
    rows = "".join(f"{a:.6g},{b:.6g},{c:.6g}\n" for (a, b), c in zip(x[:1000], y[:1000], strict=True))
    Path("data.csv").write_text("x0,x1,y\n" + rows)
    Path("spec.toml").write_text(spec.to_toml())
    code, out, _ = run("simulate", "spec.toml", "data.csv", "--json")
    (advice,) = json.loads(out)["advice"]
    assert code == 0 and set(advice) == {"test", "value", "why", "change"} and " instead of " in advice["change"]
    code, out, _ = run("simulate", "spec.toml", "data.csv")
    assert f"advice    {advice['test']}: {advice['why']}" in out and advice["change"] in out
    # what is read once cannot be tried again
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(Path("data.csv").read_bytes())))
    code, out, _ = run("simulate", "spec.toml", "-", "--json")
    once, *_ = json.loads(out)["advice"]
    assert code == 0 and once["test"] == advice["test"] and once["value"] == advice["value"]
    assert advice["change"].startswith(once["change"]) and " instead of " not in once["change"]


def test_a_verdict_names_the_winner_with_the_ratio_of_the_errors() -> None:
    simple = {"last label": 0.31, "running mean": 2.0, "linear model": None}
    for model, winner, said in (
        (0.56, "last label", "last label is 1.8 times better: 0.31 against 0.56"),
        (0.31, None, "last label is as good: 0.31 against 0.31"),
        (0.315, None, "last label is as good: 0.31 against 0.315"),
        (0.306, None, "last label is as good: 0.31 against 0.306"),
        (0.32, "last label", "last label is 1.03 times better: 0.31 against 0.32"),
        (0.1, "model", "the model is 3.1 times better than last label: 0.1 against 0.31"),
        (46.5, "last label", "last label is 150 times better: 0.31 against 46.5"),
        (0.0, "model", "the model is better than last label: 0 against 0.31"),
    ):
        found = verdict(model, simple)
        assert found["winner"] == winner and telling.verdict_sentence(found) == said
        assert (found["simple"], found["error"], found["model"]) == ("last label", 0.31, model)
        assert found["ratio"] == (max(0.31, model) / min(0.31, model) if model else None)
    assert (
        telling.verdict_sentence(verdict(0.5, {"last label": 0.0}), telling.percent)
        == "last label is better: 0.0 % against 50.0 %"
    )
    assert telling.verdict_sentence(verdict(0.0, {"last label": 0.0})) == "last label is as good: 0 against 0"
    for model, others in ((None, simple), (float("nan"), simple), (1.0, {}), (1.0, {"last label": None})):
        assert verdict(model, others) is None


def test_rivals_of_a_model_that_gets_no_labels_get_none_either(run, tmp_path, monkeypatch) -> None:
    """Fitted on the first half, they stand still in the second, which is judged.  From a pipe they go on to learn, and a line says so."""
    monkeypatch.chdir(tmp_path)
    x, y = np.arange(1000) % 7 - 3.0, np.arange(1000) % 7 + np.where(np.arange(1000) < 500, 0.0, 5.0)
    table = {"vectors": [[0.0]], "weights": [[0.0]], "bias": [6.0]}
    content = {"name": "m", "input": {"columns": ["x"]}, "label": {"column": "y"}, "kernel": {"sigma": 1.0}}
    spec = make_spec(content | {"learning": {"rule": "frozen"}, "expansion": table})
    errors = pykernel.simulate(spec, (x[:, None], y)).report["second_half"]["rmse"]
    later = y[500:]
    assert errors["running mean"] == pytest.approx(np.sqrt(np.mean((later - y[:500].mean()) ** 2)))
    assert errors["linear model"] == pytest.approx(5.0, abs=0.1)  # it has learned y = x + 3
    assert errors["model"] == pytest.approx(np.sqrt(np.mean((later - 6.0) ** 2))) and "last label" not in errors
    Path("m.toml").write_text(spec.to_toml())
    text = "x,y\n" + "".join(f"{a},{b}\n" for a, b in zip(x, y, strict=True))
    Path("m.csv").write_text(text)
    assert "learned only the labels of the first 500 rows" in run("simulate", "m.toml", "m.csv")[1]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert "learn from all labels, whereas this model gets none" in run("simulate", "m.toml", "-")[1]
    learner = make_spec({key: content[key] for key in ("name", "input", "label")})
    told = pykernel.simulate(learner, (x[:, None], y))
    assert "last label" in told.simple and "simple predictors" not in told.page.html()
    assert "learned only the labels of the first 500 rows" in pykernel.simulate(spec, (x[:, None], y)).page.html()


def test_the_last_label_is_no_rival_of_a_model_that_gets_no_labels() -> None:
    content = {"name": "m", "input": {"dim": WALK_X.shape[1]}, "label": {"column": "y"}, "kernel": {"sigma": 1.0}}
    table = {"vectors": [[0.0] * WALK_X.shape[1]], "weights": [[0.0]], "bias": [float(WALK_Y.mean())]}
    spec = make_spec(content | {"learning": {"rule": "frozen"}, "expansion": table})
    for forecasts in (False, True):  # of what is measured, the last value is known
        simulation = Simulation(spec, forecasts=forecasts)
        list(simulation.run(WALK_X, WALK_Y))
        report = simulation.report()
        errors = report["second_half"]["rmse"]
        assert errors["last label"] == min(errors.values())
        assert (report["verdict"]["simple"] == "last label") == forecasts


@pytest.mark.parametrize("walk", [True, False])
def test_simulate_and_its_advice_tell_the_simple_predictors_error(run, tmp_path, walk: bool) -> None:
    """Of a random walk the last label is the best forecast, also of a model that advice has improved; of a sinc it is not."""
    x, y = (WALK_X, WALK_Y) if walk else stream("sinc")
    names = [f"x{i}" for i in range(x.shape[1])]
    table = np.column_stack([x, y])
    np.savetxt(tmp_path / "data.csv", table, delimiter=",", header=",".join([*names, "y"]), comments="", fmt="%.9g")
    spec = make_spec({"name": "m", "input": {"columns": names}, "label": {"column": "y"}})
    (tmp_path / "spec.toml").write_text(spec.to_toml())
    words = ("simulate", str(tmp_path / "spec.toml"), str(tmp_path / "data.csv"))
    report = json.loads(run(*words, "--json")[1])
    errors = report["second_half"]["rmse"]
    model, found = errors.pop("model"), report["verdict"]
    best = min(errors, key=errors.get)
    assert (found["simple"], found["error"], found["model"]) == (best, errors[best], model)
    assert found["winner"] == ("last label" if walk else "model")
    assert found["ratio"] == (model / errors[best] if walk else errors[best] / model)
    said = run(*words)[1]
    assert f"{telling.verdict_sentence(found)}, over the second half" in said
    assert found["ratio"] > 1.05 and "is as good" not in said and bool(report["advice"]) == walk
    for each in report["advice"]:
        beside = (
            f"({best}: {errors[best]:.4g})"
            if " instead of " in each["change"]
            else f"the {best} has an error of {errors[best]:.4g}"
        )
        assert beside in each["change"] + each["why"]


def test_of_errors_that_follow_each_other_the_default_alone_is_told_where_it_is_better() -> None:
    """Inputs move slowly, the model lags behind them, and the latest label brings its noise along."""
    t = np.arange(1500)
    x = np.column_stack([np.sin(t / 50), np.cos(t / 37), np.sin(t / 91)])
    y = np.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * np.random.default_rng(3).normal(size=len(t))
    lagging = {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms", "eta": 0.02}}
    found = told_of(x, y, lagging)["errors that follow each other"]
    after, before = re.match(
        r"leave \[kernel\] and \[learning\] out: .+: the error is (\S+) instead of (\S+) ", found["change"]
    ).groups()
    assert float(after) < 0.8 * float(before)
    # with a budget of few vectors, the model that needs none is told
    few = told_of(x, y, lagging | {"reduction": {"n_max": 8}})["errors that follow each other"]["change"]
    assert few.startswith("leave [kernel], [learning] and [reduction] out: ")
    # where the label's past says more than the default alone, that stays the advice
    walk = told_of(np.column_stack([WALK_X, WALK_X[:, 0]]), WALK_Y - 100, lagging)["errors that follow each other"]
    assert "[mixture] last = 1: the latest known label is an input, and leave " in walk["change"]


def test_where_a_linear_model_is_better_an_expert_is_among_the_changes() -> None:
    """Too narrow a kernel for labels that are linear; once told, and once taken."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 3))
    y = x @ [1.0, 2.0, 3.0] + 0.1 * rng.normal(size=1500)
    narrow = {
        "name": "m",
        "input": {"dim": 3, "standardise": True},
        "kernel": {"sigma": 0.2},
        "learning": {"rule": "krls-t"},
    }
    errors = []
    for content in (narrow, narrow | {"mixture": {}}):
        simulation, _ = advice_figures.run(x, y, make_spec(content))
        told = {each["test"]: each["change"] for each in simulation.report()["advice"]}
        errors.append(simulation.summary(simulation.errors, 750)["rmse"]["model"])
        assert ("[mixture]: a linear expert" in told.get("a simple predictor is better", "")) == (len(errors) == 1)
    assert errors[1] < 0.2 * errors[0]


def test_where_a_linear_model_is_better_its_keys_are_told_and_give_its_error(run, tmp_path, monkeypatch) -> None:
    """Inputs that are much alike, and no room for the linear expert."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(1500, 30))
    x[:, 1:] = 0.3 * x[:, 1:] + x[:, :1]
    y = x @ rng.normal(size=30) + 0.5 * rng.normal(size=1500)
    monkeypatch.chdir(tmp_path)
    names = ",".join([*(f"x{i}" for i in range(30)), "y"])
    np.savetxt("data.csv", np.column_stack([x, y]), delimiter=",", header=names, comments="", fmt="%.9g")
    head = 'name = "m"\n[input]\ncolumns = ["x0..x29"]\n[label]\ncolumn = "y"\n'
    Path("m.toml").write_text(f"{head}[target]\nram = 2200\n")
    report = json.loads(run("simulate", "m.toml", "data.csv", "--json")[1])
    told = {each["test"]: each["change"] for each in report["advice"]}["a simple predictor is better"]
    keys, after, before = re.search(r"alone, \[learning\] (.+): the error is (\S+) instead of (\S+) ", told).groups()
    assert float(after) < 0.95 * float(before)
    Path("m.toml").write_text(head + "[learning]\n" + keys.replace(", ", "\n") + "\n")
    again = json.loads(run("simulate", "m.toml", "data.csv", "--json")[1])
    assert f"{again['second_half']['rmse']['model']:.4g}" == after


DRAWN = np.random.default_rng(0).normal(size=(2000, 4))
PRODUCTS = np.sin(DRAWN[:, 0]) + 0.5 * DRAWN[:, 1] * DRAWN[:, 2] + 0.1 * DRAWN[:, 3]


def told_of(x: np.ndarray, y: np.ndarray, content: dict) -> dict:
    """The findings, with changes tried on the same rows."""
    spec = make_spec({"name": "m", "input": {"dim": 3}, "label": {"outputs": 1}} | content)

    def trial(changed):
        simulation, _ = advice_figures.run(x, y, changed)
        found = simulation.summary(simulation.errors, len(x) // 2)
        return found["error_rate" if simulation.classes else "rmse"]["model"]

    simulation, _ = advice_figures.run(x, y, spec)
    return {each["test"]: each for each in simulation.report(trial)["advice"]}


@pytest.mark.parametrize(("mean", "deviation"), [(1013.0, 0.3), (1e5, 1.0)])
def test_digits_that_float32_has_not_are_told_with_what_helps(mean: float, deviation: float) -> None:
    """A quadratic model of inputs far from 0, whose first sample is 0: every status is DONE, and the error is larger than in float64."""
    x = mean + deviation * DRAWN[:, :3]
    x[0] = 0
    found = told_of(x, PRODUCTS, {"learning": {"rule": "quadratic-rls"}})["too few digits"]
    assert found["value"] > 1.3 and "the same model has an error of " in found["why"]
    assert "an input's mean is" in found["why"] and found["change"].startswith("[input] standardise = true: ")
    after, before = re.search(r": the error is (\S+) instead of (\S+) ", found["change"]).groups()
    assert float(after) < 0.95 * float(before)
    # standardised, the model has digits enough
    standardised = {"input": {"dim": 3, "standardise": True}, "learning": {"rule": "quadratic-rls"}}
    assert "too few digits" not in told_of(x, PRODUCTS, standardised)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "rule", ["nlms", "rls", "quadratic-rls", "rff-rls", "klms", "krls-t", "fb-krls", "ald-krls", "nystrom-rls"]
)
def test_rules_that_keep_their_digits_are_not_blamed(rule: str) -> None:
    x = 1013 + 0.3 * DRAWN[:, :3]
    kernel = {} if rule in ("nlms", "rls", "quadratic-rls") else {"kernel": {"function": "gaussian", "sigma": 0.6}}
    assert "too few digits" not in told_of(x, PRODUCTS, {"learning": {"rule": rule}} | kernel)


def test_where_nothing_else_helps_float64_is_told() -> None:
    """Also of classes, which a rule of products tells apart; and of a model that is standardised already."""
    x, y = 1013 + 0.3 * DRAWN[:, :3], (DRAWN[:, 1] * DRAWN[:, 2] > 0).astype(np.int32)
    x[0] = 0
    classes = {"label": {"column": "y", "classes": ["a", "b"]}, "learning": {"rule": "quadratic-rls"}}
    found = told_of(x, y, classes)["too few digits"]
    assert " % in float64, and of " in found["why"] and "[input] standardise = true: " in found["change"]

    standardised = {"input": {"dim": 3, "standardise": True}, "learning": {"rule": "rls"}}
    spec = make_spec({"name": "m", "label": {"outputs": 1}} | standardised)
    simulation, _ = advice_figures.run(x, DRAWN[:, 1] * DRAWN[:, 2] + 9, spec)
    (first, *_) = simulation.report(lambda changed: 0.01 if changed.precision == "float64" else 99.0)["advice"]
    assert first["test"] == "too few digits" and first["change"].startswith(
        'precision = "float64": the error is 0.01 instead of '
    )


@pytest.mark.parametrize("delay", [0, 3])
def test_sums_are_those_of_the_whole_stream_however_it_comes(delay: int) -> None:
    rng = np.random.default_rng(delay)
    spec = make_spec({"name": "m", "input": {"dim": 2}, "label": {"outputs": 1}})
    x, truth, errors, mean = rng.normal(5, 2, (300, 2)), *(rng.normal(3, 1, (300, 1)) for _ in range(3))
    truth[rng.random(300) < 0.1] = np.nan
    errors = np.where(np.isnan(truth), np.nan, errors)
    signs = Signs(spec, delay)
    for start in range(0, 300, 37):
        part = slice(start, start + 37)
        signs.take(x[part], truth[part], errors[part], mean[part])
    known = ~np.isnan(truth[:, 0])
    k, r = (errors + truth - mean)[known], (truth - mean)[known]
    e = np.nan_to_num(errors[:, 0])
    own = [(r * k).sum(), (k * k).sum(), e[delay + 1 :] @ e[: -delay - 1], e @ e, (r * r).sum()]
    np.testing.assert_allclose(signs.sums.since(0)[1], own, rtol=1e-9)
    away = np.where(known, np.nan_to_num(truth - mean)[:, 0] ** 2, 0)
    np.testing.assert_array_equal(signs.unusual[:, 0], delay + np.argsort(-away, kind="stable")[: len(signs.unusual)])
    table = np.column_stack([x, truth])[known]
    for ours, theirs in zip(signs.columns(), (table.mean(0), table.std(0)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


WALK = np.random.default_rng(3)
WALK_X, WALK_Y = WALK.normal(size=(1500, 2)), np.cumsum(WALK.normal(size=1500)) + 100
KLMS = {"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, "learning": {"rule": "klms", "eta": 0.1}}


@pytest.mark.parametrize(
    "content",
    [
        # limits that the default does not take
        KLMS | {"reduction": {"n_max": 4000}},
        KLMS | {"reduction": {"n_max": 32}, "label": {"max_abs": 1e16}},
        # the default of a small target
        {"name": "m", "input": {"dim": 2}, "reduction": {"n_max": 8}, "target": {"ram": 500}},
    ],
)
def test_what_cannot_be_advised_is_not(content: dict) -> None:
    simulation, _ = advice_figures.run(WALK_X, WALK_Y, make_spec(content))
    for each in simulation.report()["advice"]:
        # without a budget the default takes them
        assert "leave [kernel] and" not in each["change"]


def test_refused_inputs_are_no_reason_for_advice_and_gain_is_advised_once() -> None:
    x, y = WALK_X.copy(), np.sin(WALK_X.sum(1))
    spec = make_spec(
        {"name": "m", "input": {"dim": 2, "max_abs": 100.0}, "kernel": {"sigma": 1.0}, "learning": {"rule": "krls-t"}}
    )
    before = advice_figures.run(x, y, spec)[0].report()["advice"]
    x[500, 0] = 1e20
    assert [each["test"] for each in advice_figures.run(x, y, spec)[0].report()["advice"]] == [
        each["test"] for each in before
    ]
    constant, default = np.full((1500, 3), 2.5), make_spec({"name": "m", "input": {"dim": 3}})
    for each in advice_figures.run(constant, np.sin(WALK.normal(size=1500)), default)[0].report()["advice"]:
        assert "gain" not in each["change"]


def test_few_rows_and_models_that_do_not_learn_online_get_none() -> None:
    x, y, spec = advice_figures.samples("labels far from 0")
    simulation = Simulation(spec)
    for _ in simulation.run(x[:150], y[:150]):
        pass
    assert simulation.report()["advice"] == []


def test_missing_inputs_are_held_where_that_pays():
    """Against the answer before, which stands where a row is refused."""
    rng = np.random.default_rng(0)
    n = 1200
    steps = np.arange(n) / 30
    x = np.column_stack([np.sin(steps), np.cos(0.7 * steps), np.sin(1.3 * steps)])
    gaps = np.where(rng.random(x.shape) < 0.1, np.nan, x)
    fast = np.sin(40 * steps)
    for told in (False, True):
        inputs = np.column_stack([gaps if told else x, fast])
        y = x.sum(axis=1) + 2 * fast + 0.02 * rng.normal(size=n)
        spec = make_spec({"name": "m", "input": {"dim": 4}, "label": {"outputs": 1}})

        def error(changed, inputs=inputs, y=y):
            run = Simulation(changed)
            list(run.run(inputs, y))
            return run.summary(run.errors, n // 2)["rmse"]["model"]

        simulation = Simulation(spec)
        list(simulation.run(inputs, y))
        found = {each["test"]: each["change"] for each in simulation.report(error)["advice"]}
        assert ("missing inputs" in found) == told
        if told:
            content = spec.model_dump(exclude_unset=True)
            held = error(make_spec(content | {"input": content["input"] | {"missing": "hold"}}))
            assert found["missing inputs"].startswith(
                f'[input] missing = "hold": the error is {held:.4g}, with an answer to every row'
            )
