"""Intervals around answers: a naive twin of every rule's, what they promise."""

import csv
import itertools
import math
from statistics import NormalDist

import numpy as np
import pytest

from benchmarks.host.first_streams import stream
from pykernel.algorithms.interval import INTERVAL_KNOWN, STRETCH_MOST
from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.host.simulation import Simulation
from pykernel.spec.interval import PACE
from pykernel.spec.model import make_spec
from pykernel.spec.stages import GAIN_HORIZON

LEVEL = 0.8
CASES = {
    "klms": {"learning": {"rule": "klms"}},
    "klms, before": {"learning": {"rule": "klms"}, "reduction": {"n_max": 6, "when": "before"}},
    "krls-t": {"learning": {"rule": "krls-t", "forgetting": 0.999, "noise": "auto"}},
    "fb-krls": {"learning": {"rule": "fb-krls"}},
    "knlms": {"learning": {"rule": "knlms"}},
    "spectrum-ekf": {"learning": {"rule": "spectrum-ekf", "features": 4}, "reduction": None},
    "rls": {"learning": {"rule": "rls"}, "reduction": None, "kernel": None},
    "rff-rls": {"learning": {"rule": "rff-rls", "features": 8}, "reduction": None},
    "nystrom-rls": {"learning": {"rule": "nystrom-rls", "samples": 16}, "basis": {"method": "stream"}},
    "okfeb": {"learning": {"rule": "okfeb", "features": 4}},
}
STAGED = {"gain": True, "clip": 4.0, "low": -1.2, "high": 1.5}


def spec_of(case="klms", precision="float64", outputs=1, stages="all", level=LEVEL, **more):
    """stages: all that the rule can have, or none but what it needs."""
    content = {
        "name": "m",
        "precision": precision,
        "input": {"dim": 2, "max_abs": 100.0, "standardise": stages == "all"},
        "label": {"max_abs": 50.0, "columns": [f"y{o}" for o in range(outputs)]} | (STAGED if stages == "all" else {}),
        "kernel": {"sigma": 1.0},
        "reduction": {"n_max": 6},
        "interval": {"level": level},
    } | CASES[case]
    if stages == "all" and case not in ("rls", "rff-rls"):
        content["mixture"] = {}
        if case != "fb-krls":
            content |= {"linear": {}, "label": content["label"] | {"center": True}}
    return make_spec({key: value for key, value in (content | more).items() if value is not None})


def series(n, outputs=1, seed=0):
    """A function that turns round, with some labels far away, some that none is, and some inputs that none is."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    f = np.sin(2 * x[:, 0]) + 0.3 * x[:, 1]
    y = np.where(np.arange(n) < n // 2, f, -f)[:, None] * np.arange(1, outputs + 1) + 0.1 * rng.normal(
        size=(n, outputs)
    )
    y[rng.random(n) < 0.02] += 5
    y[rng.random(n) < 0.02, 0] = np.nan
    x[rng.random(n) < 0.02, 0] = 1e9
    return x, y if outputs > 1 else y[:, 0]


def twin(spec, answers, y, counted):
    """What intervals should be: the paper's recursion for each output, from the answers before each label."""
    z, most = NormalDist().inv_cdf((1 + spec.interval.level) / 2), spec.label.max_abs
    low, high = (
        (-math.inf if spec.label.low is None else spec.label.low),
        (math.inf if spec.label.high is None else spec.label.high),
    )
    ends, n = np.full((2, *answers.shape), np.nan), 0
    s, squares = np.zeros(answers.shape[1]), np.zeros(answers.shape[1])
    for t, (answer, label) in enumerate(zip(answers, y, strict=True)):
        half = z * np.sqrt(squares) * np.exp(s)
        lower, upper = answer - half, answer + half
        if n < INTERVAL_KNOWN:
            lower, upper = np.minimum(answer, -most), np.maximum(answer, most)
        ends[0, t], ends[1, t] = np.clip(lower, low, high), np.clip(upper, low, high)
        if counted[t]:
            count = min(n + 1, GAIN_HORIZON)
            error = label - answer
            if n >= INTERVAL_KNOWN:
                step = PACE * math.sqrt(GAIN_HORIZON / count)
                s = np.clip(
                    s + step * ((np.abs(error) > half) - (1 - spec.interval.level)), -STRETCH_MOST, STRETCH_MOST
                )
            squares = squares + 2 / (count + 1) * (error * error - squares)
            n += 1
    return ends


def run(spec, x, y, delay=0):
    """Answers, ends (2, rows, outputs), statuses."""
    found, statuses = {}, None
    for question in ("predict", "interval"):
        found[question], statuses = HostModel(spec).prequential(x, y, delay=delay, question=question)
    ends = found["interval"].reshape(len(x), 2, spec.outputs).transpose(1, 0, 2)
    return found["predict"].reshape(len(x), spec.outputs), ends, statuses


CHEAP = [("klms", "all", 2), ("okfeb", "none", 1), ("rls", "none", 1)]
"""Each model takes a second to compile: the other tests take one of these three."""
TWINS = [
    each if each in CHEAP else pytest.param(*each, marks=pytest.mark.exhaustive)
    for each in itertools.product(CASES, ("all", "none"), (1, 2))
]


@pytest.mark.parametrize(("case", "stages", "outputs"), TWINS)
def test_intervals_are_those_of_a_naive_twin(case, stages, outputs):
    """Within every rule and every stage; refused samples and warm-up rows do not count."""
    spec = spec_of(case, outputs=outputs, stages=stages)
    x, y = series(700, outputs)
    answers, ends, statuses = run(spec, x, y)
    status = spec.program.status
    counted = (statuses >= 0) & (statuses != getattr(status, "OBSERVED", -99))
    assert (statuses < 0).any() and counted.sum() > 500
    asked = np.isfinite(answers).all(axis=1)
    expected = twin(spec, answers, y.reshape(answers.shape), counted)[:, asked]
    np.testing.assert_allclose(ends[:, asked], expected, rtol=1e-8, atol=1e-8)
    assert np.isnan(ends[:, ~asked]).all() and (~asked).any()
    assert (ends[0, asked] <= answers[asked]).all() and (answers[asked] <= ends[1, asked]).all()


@pytest.mark.parametrize("name", ["switching", "pressure"])
def test_the_level_is_kept_also_after_a_drift(name, exhaustive):
    """docs/data/intervals.csv: within 0.03 of the level overall, and 0.05 in the 100 rows after a drift."""
    x, y = stream(name)
    base = {"name": "m", "input": {"columns": [f"x{i}" for i in range(x.shape[1])]}, "label": {"column": "y"}}
    half = len(y) // 2
    y = np.where(np.arange(len(y)) < half, y, 2 * y.mean() - y)
    for more in ({}, {"target": {"ram": 1}}) if exhaustive else ({"target": {"ram": 1}},):
        simulation = Simulation(make_spec(base | more | {"interval": {"level": 0.9}}))
        for _ in simulation.run(x, y):
            pass
        found = simulation.report()["interval"]
        assert abs(found["all"]["inside"] - 0.9) < 0.03 and found["level"] == 0.9
        _, ends, _ = run(simulation.spec, x, y)
        after = slice(half, half + 100)
        assert np.mean((ends[0, after, 0] <= y[after]) & (y[after] <= ends[1, after, 0])) >= 0.85
        assert abs(found["all"]["width"] - np.diff(ends[:, 60:, 0], axis=0).mean()) < 0.1 * found["all"]["width"]


def test_a_simulation_tells_what_the_intervals_cover(tmp_path, capsys):
    """Its answers and its model are those of a simulation without intervals; what it tells is what its file says."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(500, 2))
    y = x @ [1.0, -1.0] + 0.1 * rng.normal(size=500)
    lines = [f"{a:.6g},{b:.6g},{c:.6g}\n" for (a, b), c in zip(x, y, strict=True)]
    (tmp_path / "d.csv").write_text("".join(["a,b,y\n", *lines]), encoding="utf-8")
    spec = 'name = "m"\nprecision = "float64"\n[learning]\nrule = "rls"\n[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "y"\n'
    tables = []
    for more in ("", "[interval]\nlevel = 0.8\n"):
        (tmp_path / "s.toml").write_text(spec + more, encoding="utf-8")
        words = ["simulate", tmp_path / "s.toml", tmp_path / "d.csv", "-o", tmp_path / "o.csv", "--delay", "3"]
        with pytest.raises(SystemExit) as stopped:
            main([*map(str, words), *(["--report", str(tmp_path / "p.html")] if more else [])])
        assert not stopped.value.code
        with (tmp_path / "o.csv").open(encoding="utf-8") as file:
            tables.append(list(csv.DictReader(file)))
    plain, covered = tables
    assert [row | {"lower": r["lower"], "upper": r["upper"]} for row, r in zip(plain, covered, strict=True)] == covered
    later = [{key: float(row[key]) for key in ("lower", "label", "upper")} for row in covered[250:]]
    inside = np.mean([row["lower"] <= row["label"] <= row["upper"] for row in later])
    width = np.mean([row["upper"] - row["lower"] for row in later])
    said = f"intervals at 80.0 %: {100 * inside:.1f} % of the labels are inside, with mean width {width:.4g}, over the second half"
    assert said in capsys.readouterr().out and abs(inside - 0.8) < 0.05
    assert (tmp_path / "p.html").stat().st_size > 10_000


def test_the_widest_interval_is_a_number_within_the_limits_of_labels():
    """Labels of 1e24 in float32: the widest interval does not overflow, nor does the narrowest vanish where labels are 1e-18."""
    rng = np.random.default_rng(3)
    for limit in (1e24, 1e-18):
        model = HostModel(spec_of("rls", "float32", label={"max_abs": limit}, level=0.99, stages="none"))
        x = rng.normal(size=(300, 2))
        model.update(x, 0.5 * limit * np.tanh(x[:, 0] + 0.1 * rng.normal(size=300)))
        lower, upper = model.interval(x)
        assert ((upper - lower) > 0.01 * limit).all() and ((upper - lower) < limit).all()
        model.memory.field("error_power")[...], model.memory.field("stretch")[...] = 2.0**121, 4.0
        assert np.isfinite(model.interval(x)).all()


REFUSED = [
    ({"label": {"classes": ["a", "b"]}}, r"\[interval\] is for labels that are numbers; leave it out"),
    ({"precision": "int16", "input": {"dim": 2, "max_abs": 4.0}}, r"\[interval\] belongs to .*; klms in int16 does not have it: leave it out"),
    ({"learning": {"rule": "krr"}}, r"\[interval\] belongs to .*; krr does not have it: leave it out"),
    ({"learning": {"rule": "frozen"}, "expansion": {"vectors": [[0.0, 0.0]], "weights": [[1.0]], "bias": [0.0]}}, r"\[interval\] belongs to .*; frozen does not have it"),
    ({"learning": {"rule": "okfeb"}, "label": {}}, r"\[interval\] is for labels that are numbers; leave it out"),
    ({"interval": {"level": 0.995}}, r"\[interval\] level is 0.995; it must be less than or equal to 0.99"),
    ({"interval": {"level": 0.4}}, r"\[interval\] level is 0.4; it must be greater than or equal to 0.5"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    base = {"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "interval": {}}
    with pytest.raises(UserError, match=says):
        make_spec(base | change)
