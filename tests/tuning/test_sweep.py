"""pykernel sweep: the same table however it is computed, the planted optimum, costs as generated, reasons for the rest."""

import csv
import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.simulate import Simulation
from pykernel.parallel import Workers
from pykernel.spec.model import make_spec
from pykernel.tuning import combinations
from pykernel.tuning import sweep as search
from pykernel.tuning.combinations import Known, combine, rules
from pykernel.tuning.costs import memory_bytes, target_costs
from pykernel.tuning.sweep import Data
from pykernel.tuning.tasks import work
from tests.support import interrupts
from tests.support.specs import named

SPEC = """
name = "flow"
[input]
columns = ["a", "b"]
[label]
column = "y"
[kernel]
sigma = 1.0
[reduction]
n_max = 8
"""
SMALL = ["--rule", "klms", "--technique", "nt,mklms", "--n-max", "4,8", "--rounds", "1", "--target", "none"]


def stream(rows=300, seed=0):
    """Noise-free, and of one width: a sum of four Gaussians."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (rows, 2))
    centres, heights = np.array([[-1, -1], [1, 1], [-1, 1], [1, -1]]), np.array([2, 1, -1, -2])
    y = (heights * np.exp(-np.square(x[:, None] - centres).sum(2) / (2 * 0.8**2))).sum(1)
    return x, y


def base(**reduction):
    content = {"name": "flow", "input": {"columns": ["a", "b"]}, "label": {"column": "y"}, "kernel": {"sigma": 1.0}}
    return make_spec(named(content | ({"reduction": reduction} if reduction else {})))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    x, y = stream()
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "data.csv").write_text("a,b,y\n" + "".join(f"{p},{q},{v}\n" for (p, q), v in zip(x, y, strict=True)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.suffix in (".toml", ".csv")}


# ------------------------------------------------------------------------------------------- the same, however it ran


@pytest.fixture
def whole(folder, run):
    code, out, err = run("sweep", "spec.toml", "data.csv", *SMALL, "--jobs", "1", "-o", "whole")
    assert code == 0, err
    assert "at most" in err and "cheapest within 5 %" in out
    return written(folder / "whole")


@pytest.mark.exhaustive
def test_processes_a_dask_cluster_and_a_second_time_give_the_same_files(folder, run, whole):
    assert {"best.toml", "cheapest.toml", "sweep.csv"} <= set(whole)
    assert run("sweep", "spec.toml", "data.csv", *SMALL, "--jobs", "2", "-o", "two")[0] == 0
    assert written(folder / "two") == whole

    code, out, err = run(
        "sweep", "spec.toml", "data.csv", *SMALL, "--json", "-o", "again", "--results", "two/results.jsonl"
    )
    assert code == 0, err
    again = json.loads(out)
    assert written(folder / "again") == whole
    assert again["reused"] >= again["trials"] > 40  # nothing was run again
    assert (folder / "two" / "results.jsonl").read_text().count("\n") >= again["trials"]
    assert again["trials"] <= again["most_trials"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.exhaustive
def test_a_dask_cluster_gives_the_same_files(folder, run, whole):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        code, _, err = run("sweep", "spec.toml", "data.csv", *SMALL, "--jobs", address, "-o", "dask")
    assert code == 0, err
    assert written(folder / "dask") == whole


SCRIPT = """
import functools, sys
import pykernel.tuning.tasks
from pykernel.cli.app import main
from tests.support.interrupts import pause

work, calls = pykernel.tuning.tasks.work, []

@functools.wraps(work)
def paused(task, shared):
    calls.append(task)
    if len(calls) == 6:
        pause(".")
    return work(task, shared)

pykernel.tuning.tasks.work = paused
main(sys.argv[1:])
"""


@pytest.mark.in_turn(6)
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_sweep_that_was_stopped_goes_on_to_the_same_files(folder, run, whole, how):
    """It is stopped amid its sixth run."""
    command = ["sweep", "spec.toml", "data.csv", *SMALL, "--jobs", "1", "-o", "cut"]
    process = interrupts.start("-c", SCRIPT, *command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    results = folder / "cut" / "results.jsonl"
    interrupts.signalled(process, how, ".")
    _, err = process.communicate(timeout=interrupts.PATIENCE)
    kept = results.read_bytes().count(b"\n")
    if how is signal.SIGINT:
        assert process.returncode == 130
        assert b"finished runs are kept in cut/results.jsonl; run the same command to continue" in err
        assert b"Traceback" not in err
    code, out, _ = run("sweep", "spec.toml", "data.csv", *SMALL, "--jobs", "1", "-o", "cut", "--json")
    assert code == 0 and min(kept, json.loads(out)["reused"]) >= 5
    assert written(folder / "cut") == whole


def test_a_written_spec_is_what_the_table_says(folder, run, whole):
    from pykernel.spec.model import load_spec

    with (folder / "whole" / "sweep.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if not row["reason"]]
    spec = load_spec(folder / "whole" / "best.toml")
    best = rows[0]
    assert best["rule"] == spec.learning.rule and best["technique"] == spec.reduction.technique
    assert int(best["size"]) == spec.reduction.n_max and float(best["kernel.sigma"]) == spec.kernel.sigma
    code, out, _ = run("simulate", "whole/best.toml", "data.csv", "--json")
    assert code == 0
    assert (
        float(best["mae"]) == json.loads(out)["second_half"]["mae"]["model"] == min(float(row["mae"]) for row in rows)
    )
    near = [row for row in rows if float(row["mae"]) <= 1.05 * float(best["mae"])]
    cheapest = load_spec(folder / "whole" / "cheapest.toml")
    assert memory_bytes(cheapest)["ram_bytes"] == min(int(row["ram_bytes"]) for row in near)


# ------------------------------------------------------------------------------------------------------ what is found


def test_the_search_finds_what_a_dense_grid_finds():
    x, y = stream(400)
    data, spec = Data(x, y), base(technique="mklms", n_max=8)
    groups, refused = search.plan_groups(spec, data, ["klms"], ["mklms"], [8])
    assert not refused and len(groups) == 1
    with Workers(work, data, jobs=1) as workers:
        search.search(groups, workers, "mae", data)
        best = groups[0].best("mae")
        assert workers.computed <= groups[0].bound(search.ROUNDS) + 2  # those of fields
    found = groups[0].scores[best]["mae"]
    dense = [
        search.prequential(
            make_spec(groups[0].combination.with_values(8, {"kernel.sigma": s, "learning.eta": e})), data
        )["mae"]
        for s in np.geomspace(0.2, 4, 14).tolist()
        for e in np.geomspace(0.1, 1.5, 9).tolist()
    ]
    assert found <= 1.05 * min(dense)
    # the planted width is 0.8
    assert 0.5 < dict(zip(groups[0].own, best, strict=True))["kernel.sigma"] < 1.6
    # and what was given is among what was tried
    assert found <= search.prequential(spec, data)["mae"]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("kind", ["real", "reals", "class"])
@pytest.mark.parametrize("delay", [0, 7])
def test_errors_are_those_of_simulate(kind, delay):
    x, y = stream()
    label = {"real": {"column": "y"}, "reals": {"columns": ["y", "z"]}, "class": {"column": "y", "classes": ["u", "v"]}}
    labels = {"real": y, "reals": np.column_stack([y, y**2]), "class": (y > 0).astype(np.int32)}[kind]
    labels[3:200:11] = -1 if kind == "class" else np.nan
    spec = make_spec(base().model_dump(mode="json", exclude_unset=True) | {"label": label[kind]})
    found = search.prequential(spec, Data(x, labels, delay))
    simulation = Simulation(spec, delay)
    for begin in range(0, len(x), 37):
        list(simulation.run(x[begin : begin + 37], labels[begin : begin + 37]))
    report = simulation.report()["second_half"]
    for measure in ("error_rate",) if kind == "class" else ("mae", "rmse"):
        assert found[measure] == pytest.approx(report[measure]["model"], rel=1e-12) and found[measure] > 0
    assert found["diverged"] == found["inputs_refused"] == found["labels_refused"] == 0
    others = search.trivial(spec, Data(x, labels, delay))
    assert list(others) == [name for name in report[measure] if name != "model"]


points = st.lists(st.tuples(*[st.integers(0, 6)] * 2), max_size=12)


@given(points)
def test_the_front_is_what_nothing_beats(costs):
    def beats(a, b):
        return all(p <= q for p, q in zip(a, b, strict=True)) and a != b

    assert search.front(costs) == [i for i, p in enumerate(costs) if not any(beats(q, p) for q in costs)]


@given(st.floats(1e-4, 1e4))
def test_values_are_written_with_three_digits_and_stay_in_range(value):
    for knob in combinations.knobs(1.0):
        inside = min(max(value, knob.least), 0.9999 if knob.key == "forgetting" else knob.most)
        back = knob.value(knob.position(inside))
        assert knob.least <= back <= knob.most and len(f"{back:.9g}") <= 9
        assert knob.value(knob.position(back)) == back
        if isinstance(knob, combinations.Whole):
            assert back == int(back) and abs(back - inside) <= 0.5 * (1 + 1e-9)
            continue
        memory = knob.key == "forgetting"
        assert (1 - back if memory else back) == pytest.approx(
            1 - inside if memory else inside, rel=0.06 if memory else 0.006
        )


def test_forgetting_ends_at_one():
    knob = next(knob for knob in combinations.knobs(1.0) if knob.key == "forgetting")
    assert knob.value(knob.position(1.0)) == 1.0 and knob.value(knob.position(1.0) + 5) == 1.0
    assert knob.value(knob.position(0.999)) == 0.999


# --------------------------------------------------------------------------------------- what means something is tried


def combined(spec, rules, techniques):
    return combine(spec.model_dump(mode="json", exclude_unset=True), Known(stream()[0], 2.0), rules, techniques)


def test_every_rule_and_technique_is_tried_or_refused_with_a_reason():
    every, techniques = list(rules()), combinations.techniques()
    assert {"klms", "krls-t", "nlms"} <= set(every) and {"nt", "fklms", "mklms"} <= set(techniques)
    spec = base(n_max=8, ald_threshold=0.01)
    tried, refused = combined(spec, every, techniques)
    pairs = [(c.rule, c.technique) for c in tried] + [(r["rule"], r["technique"]) for r in refused]
    assert len(set(pairs)) == len(pairs) and {rule for rule, _ in pairs} == set(every)
    for rule in every:
        with_techniques = [technique for r, technique in pairs if r == rule]
        of_rule = combinations.BASES.get(rule, techniques)
        assert with_techniques == [None] or sorted(with_techniques) == sorted(of_rule)
    assert all(row["reason"] and "\n" not in row["reason"] for row in refused)
    for combination in tried:
        # a key is searched if, and only if, the spec takes it
        for knob in combinations.knobs(1.0) if combination.spec is not None else ():
            value = knob.value(knob.position(0.21)) if knob.key != "forgetting" else 0.99
            content = combination.with_values(8, {knob.name: value})
            if knob.key == "ridge":
                content.get("reduction", {}).pop("ald_threshold", None)
            try:
                make_spec(content)
                taken = (knob.section, knob.key) != combination.budget
            except UserError:
                taken = False
            assert combination.means(knob.section, knob.key) == taken, (combination.name, knob.name)


LABELLED = ("fb-krls", "sw-krls")
"""Rules that store labels, so that these cannot be centred."""


@pytest.mark.parametrize("classes", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.exhaustive
def test_every_rule_is_swept_and_simulate_says_the_same_of_what_is_written(folder, run, classes):
    """On the default spec: each rule keeps as many of its stages as it takes."""
    x, y = stream(240)
    label = ["high" if value > 0.2 else "low" for value in y] if classes else (100 * y).tolist()
    lines = [f"{p},{q},{v}\n" for (p, q), v in zip(x.tolist(), label, strict=True)]
    (folder / "data.csv").write_text("a,b,y\n" + "".join(lines))
    kinds = 'classes = ["high", "low"]\n' if classes else ""
    text = f'name = "flow"\n[input]\ncolumns = ["a", "b"]\n[label]\ncolumn = "y"\n{kinds}'
    (folder / "spec.toml").write_text(text)
    words = ["--technique", "mklms", "--n-max", "6", "--rounds", "0", "--target", "none", "--jobs", "1", "--json"]
    code, out, err = run("sweep", "spec.toml", "data.csv", *words)
    assert code == 0, err
    report, by = json.loads(out), "error_rate" if classes else "rmse"
    rows = {row["rule"]: row for row in reversed(report["table"])}
    assert set(rows) | {row["rule"] for row in report["unusable"]} == set(rules())
    untried = {"expansion-nlms", "expansion-rls", *(("fb-krls",) if classes else ("kfd", "spectrum-softmax"))}
    assert set(rules()) - set(rows) <= untried  # expansions have vectors, which a spec without any lacks
    for rule, row in rows.items():
        spec = make_spec(row["spec"])
        assert spec.learning.rule == rule
        if spec.family.online:
            assert spec.input.standardise and (classes or spec.label.center or rule in LABELLED)
            assert classes or not spec.has("reduction", "n_max") or spec.linear is not None or rule in LABELLED
        Path("one.toml").write_text(spec.to_toml())
        train = ["--train-every", str(row["train_every"])] if "train_every" in row else []
        assert bool(train) == (rule in ("krr", "ls-svm", "kfd"))
        code, out, err = run("simulate", "one.toml", "data.csv", *train, "--json")
        assert code == 0, err
        found = json.loads(out)["second_half"][by]["model"]
        assert found == pytest.approx(row[by], rel=1e-9)
        assert found < 1.05 * max(report["simple"][name][by] for name in report["simple"]), rule


def test_memory_is_what_the_generated_header_says():
    tried, _ = combined(base(), rules(), combinations.techniques())
    for i, combination in enumerate(tried):
        if i % 5 == 0 and combination.spec is not None:
            spec = make_spec(combination.with_values(5 + i % 3, {}))
            figures = build(spec).figures
            assert memory_bytes(spec) == {key: figures[key] for key in ("state_bytes", "work_bytes", "ram_bytes")}


def test_costs_are_measured_on_a_device_that_computes_the_same():
    pytest.importorskip("unicorn")
    x, y = stream()
    small, large = (target_costs(base(technique="nt", n_max=n), x, y, "cortex-m4f", 40, tries=20) for n in (4, 16))
    assert small["equal"] and large["equal"] and small["samples"] == 40 and not small["updates_refused"]
    assert small["update"]["mean"] <= small["update"]["max"] <= (small["update"]["bound"] or small["update"]["worst"])
    assert 2 < large["update"]["mean"] / small["update"]["mean"] < 5
    assert large["ram_bytes"] == memory_bytes(base(technique="nt", n_max=16))["ram_bytes"]
    assert "refused" in target_costs(base(technique="mklms", n_max=200), x, y, "cortex-m0plus", 40)


def test_what_diverges_and_what_is_refused_is_told(folder, run):
    class Diverging:
        """Stands for the workers; the search must not take what they report as diverged, however small its error."""

        def run(self, tasks):
            return [
                {"unread": []}
                if task["do"] == "fields"
                else {"mae": 0.1, "rmse": 0.1, "scored": 9, "diverged": 5, "inputs_refused": 0, "labels_refused": 0}
                for task in tasks
            ]

    x, y = stream()
    data = Data(x, y)
    groups, _ = search.plan_groups(base(), data, ["klms"], ["nt"], [4])
    search.search(groups, Diverging(), "mae", data)
    rows, hopeless = search.results(groups, Diverging(), "mae", data)
    assert not rows and len(hopeless) == 1
    assert "diverges: each of" in hopeless[0]["reason"] and "(5 at least)" in hopeless[0]["reason"]

    code, out, err = run(
        "sweep",
        "spec.toml",
        "data.csv",
        "--rule",
        "krls-t",
        "--technique",
        "nt,mklms",
        "--n-max",
        "4",
        "--rounds",
        "0",
        "--target",
        "none",
        "--jobs",
        "1",
    )
    assert code == 0, err
    assert "combinations that cannot be used" in out and "krls-t" in out
    last = Path("pykernel-sweep/sweep.csv").read_text().splitlines()[-1]
    assert last.startswith("krls-t,nt,,") and "projection" in last


def test_an_interrupt_before_the_first_run_promises_nothing(folder, run, monkeypatch):
    def interrupted(self, tasks):
        raise KeyboardInterrupt

    monkeypatch.setattr(Workers, "run", interrupted)
    code, _, err = run("sweep", "spec.toml", "data.csv", *SMALL, "--jobs", "1", "-o", "cut")
    assert code == 130 and err.endswith("error: interrupted; no file was written\n") and not Path("cut").exists()


def test_a_missing_input_is_not_taken_for_one_that_is_too_large(folder, run):
    lines = (folder / "data.csv").read_text().splitlines()
    lines[7], lines[9] = lines[7][lines[7].index(",") :], lines[9][lines[9].index(",") :]
    Path("gaps.csv").write_text("\n".join(lines) + "\n")
    quick = ["--rule", "klms", "--technique", "nt", "--n-max", "4", "--rounds", "0", "--target", "none", "--jobs", "1"]
    code, out, err = run("sweep", "spec.toml", "gaps.csv", *quick)
    assert code == 0 and "data     2 rows with a missing input: neither predicted" in out and "max_abs" not in err
    lines[11] = "1e30" + lines[11][lines[11].index(",") :]
    Path("gaps.csv").write_text("\n".join(lines) + "\n")
    code, _, err = run("sweep", "spec.toml", "gaps.csv", *quick, "-o", "other")
    assert code == 0 and "warning: 1 row is beyond [input] max_abs or [label] max_abs, and was refused" in err


def test_keys_of_the_spec_that_mean_something_are_kept():
    spec = make_spec(
        named(
            {
                "name": "flow",
                "input": {"dim": 2},
                "kernel": {"sigma": 0.7},
                "learning": {"rho": 0.01, "eta": 0.4},
                "reduction": {"n_max": 8, "tie": "newest", "technique": "fklms"},
            }
        )
    )
    tried, _ = combined(spec, ["klms", "krls-t", "rls"], ["fklms", "mklms"])
    by_name = {combination.name: combination.content for combination in tried}
    assert by_name["klms mklms"]["learning"] == {"rule": "klms", "rho": 0.01, "eta": 0.4}
    assert by_name["klms mklms"]["reduction"] == {"technique": "mklms", "n_max": 8, "tie": "newest"}
    assert "eta" not in by_name["krls-t mklms"]["learning"] and by_name["krls-t mklms"]["kernel"] == {"sigma": 0.7}
    assert "kernel" not in by_name["rls"] and "reduction" not in by_name["rls"]


# ------------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rule", "kmls"], "--rule kmls is not known; did you mean 'klms'?"),
        (["--technique", "nt,best"], "--technique best is not known; there are: nt"),
        (["--n-max", "8,many"], "it must be whole numbers with commas between"),
        (["--n-max", "0"], "N_max is 0; it must be from 1 to 4,096"),
        (["--n-max", ","], "give at least one number"),
        (["--score", "error_rate"], "--score error_rate is not for these labels; there is: mae, rmse"),
        (["--target", "z80"], "target 'z80' is not known; there are:"),
        (["--delay", "150"], "delay is 150, but the data has 300 rows"),
        (["--delay", "-1"], "delay is -1; it must be from 0"),
        (["--rounds", "-1"], "rounds is -1; it must be 0 or more"),
        (["--jobs", "0"], "--jobs is '0'; it must be a number"),
        (["--results", "data.csv"], "data.csv, line 1: is not a task's result"),
        (["-o", "data.csv"], "data.csv: cannot be made a folder"),
    ],
)
def test_bad_options_are_told_in_one_sentence(folder, run, arguments, says):
    before = (folder / "data.csv").read_bytes()
    quick = ["--rule", "klms", "--technique", "nt", "--n-max", "4", "--target", "none", "--rounds", "0"]
    given_ = {option for option in arguments if option.startswith("-")}
    kept = [part for pair in zip(quick[::2], quick[1::2], strict=True) if pair[0] not in given_ for part in pair]
    code, out, err = run("sweep", "spec.toml", "data.csv", *kept, *arguments)
    assert code == 2 and out == ""
    assert says in err.splitlines()[-1] and err.splitlines()[-1].startswith("error: ") and "Traceback" not in err
    assert (folder / "data.csv").read_bytes() == before


def test_data_without_labels_at_the_end_is_refused(folder, run):
    lines = (folder / "data.csv").read_text().splitlines()
    (folder / "data.csv").write_text("\n".join(lines[:100] + [line.rpartition(",")[0] + "," for line in lines[100:]]))
    code, _, err = run("sweep", "spec.toml", "data.csv", *SMALL)
    assert code == 2 and "the data's second half holds no labels" in err
