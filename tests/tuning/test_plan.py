"""pykernel plan: limits are kept on the target, nothing better that was tried keeps them, and what is missing is told."""

import io
import json
import re

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.spec.model import load_spec
from pykernel.targets.check import check_targets
from pykernel.tuning import plan
from pykernel.tuning.plan import Limits, infer, make_limits, nearest_miss, parse_amount

QUICK = ["--rule", "klms", "--technique", "nt,mklms", "--rounds", "0", "--jobs", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (260, 2))
    y = np.sin(2 * x[:, 0]) + x[:, 1] ** 2 / 2
    rows = "".join(f"{i},{p:.5g},{q:.5g},on,{v:.5g}\n" for i, ((p, q), v) in enumerate(zip(x, y, strict=True)))
    (tmp_path / "data.csv").write_text("row,a,b,mode,y\n" + rows)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---------------------------------------------------------------------------------------------------------- the plan


def test_limits_are_kept_on_the_target_and_nothing_better_that_was_tuned_keeps_them(folder, run):
    pytest.importorskip("unicorn")
    limits = ["--ram", "700", "--flash", "16k", "--instructions", "60k", "--target", "cortex-m0plus"]
    code, out, err = run("plan", "data.csv", "--inputs", "a,b", *limits, *QUICK, "--json")
    assert code == 0, err
    found = json.loads(out)
    spec, winner = load_spec("pykernel-plan/planned.toml"), found["winner"]
    assert (spec.learning.rule, spec.reduction.technique) == (winner["rule"], winner["technique"])
    # measured again, on another stretch of the data
    rows = np.genfromtxt("data.csv", delimiter=",", skip_header=1, usecols=(1, 2, 4))[100:]
    again = check_targets(spec, ["cortex-m0plus"], stream=(rows[:, :2], rows[:, 2]), tries=0).rows[0]
    assert again["equal"] and again["samples"] == 160
    assert again["ram_bytes"] + again["stack_bytes"] <= 700 and again["flash_bytes"] <= 16384
    assert max(again["update"]["max"], again["predict"]["max"]) <= 60_000
    assert found["verified"]["equal"] and found["verified"]["samples"] == 260
    assert found["verified"]["update"]["worst"] <= 60_000 and max(found["uses"].values()) <= 1

    # sizes that were tuned include one that nearly uses up a limit
    assert max(found["uses"].values()) > 0.7
    missed = {(row["rule"], row["technique"], row["size"]) for row in found["misses"]}
    better = [row for row in found["table"] if row["mae"] < winner["mae"]]
    assert all((row["rule"], row["technique"], row["size"]) in missed for row in better)
    code, out, _ = run("simulate", "pykernel-plan/planned.toml", "data.csv", "--json")
    assert json.loads(out)["second_half"]["mae"]["model"] == winner["mae"]


@pytest.mark.exhaustive
def test_a_tighter_limit_gives_a_smaller_model(folder, run):
    pytest.importorskip("unicorn")
    limits = ["--ram", "500", "--flash", "16k", "--instructions", "60k", "--target", "cortex-m0plus"]
    code, out, err = run("plan", "data.csv", "--inputs", "a,b", *limits, *QUICK, "-o", "less")
    assert code == 0, err
    assert "the memory is equal to the simulation's" in out and "500 B" in out and "instructions of a call" in out
    assert load_spec("less/planned.toml").memory().layout.nbytes < 500


@pytest.mark.exhaustive
def test_the_nearest_miss_is_named_and_following_its_advice_leads_to_a_plan(folder, run):
    pytest.importorskip("unicorn")
    words = ["plan", "data.csv", "--inputs", "a,b", "--target", "cortex-m0plus", *QUICK]
    limits = {"--ram": "200", "--flash": "3k", "--instructions": "2000"}
    code, out, err = run(*words, *[part for pair in limits.items() for part in pair])
    error = err.splitlines()[-1]
    assert code == 1 and out == "" and "Traceback" not in err
    assert error.startswith(
        "error: nothing fits 200 bytes of RAM, 3,072 of flash, 2,000 instructions on cortex-m0plus; the"
    )
    assert "klms nt 4" in error
    # the verification takes other calls, too, and searches longer: its advice may go a little further
    for _ in range(3):
        advice = dict(re.findall(r"(--\w+) (\d+)", error))
        assert advice and set(advice) <= set(limits)
        limits |= advice
        code, out, err = run(*words, *[part for pair in limits.items() for part in pair], "--json")
        if code == 0:
            break
        error = err.splitlines()[-1]
    assert code == 0, err
    assert json.loads(out)["winner"]["technique"] == "nt"
    assert int(limits["--ram"]) < 500 and int(limits["--instructions"]) < 20_000


@pytest.mark.exhaustive
def test_a_plan_for_classes_and_from_a_spec(folder, run):
    pytest.importorskip("unicorn")
    text = (folder / "data.csv").read_text().splitlines()
    lines = [
        line.rpartition(",")[0] + (",high" if float(line.rpartition(",")[2]) > 0.5 else ",low") for line in text[1:]
    ]
    (folder / "kinds.csv").write_text("\n".join([text[0], *lines]))
    words = [
        "--technique",
        "nt",
        "--rule",
        "klms",
        "--rounds",
        "0",
        "--jobs",
        "1",
        "--target",
        "cortex-m4f",
        "--ram",
        "600",
    ]
    code, out, err = run("plan", "kinds.csv", "--inputs", "a,b", "--label", "y", *words, "--json", "-o", "kinds")
    assert code == 0, err
    found = json.loads(out)
    assert found["score"] == "error_rate" and found["winner"]["error_rate"] < 0.4
    assert load_spec("kinds/planned.toml").label.classes == ("high", "low")
    (folder / "own.toml").write_text((folder / "kinds" / "planned.toml").read_text().replace("planned", "kinds"))
    code, out, err = run("plan", "kinds.csv", "--spec", "own.toml", *words, "-o", "own")
    assert code == 0, err
    assert load_spec("own/planned.toml").name == "kinds"


def test_the_search_for_the_largest_size_asks_little_and_finds_it():
    """Against invented costs, whatever their growth and whichever limit stops it."""

    class Known(plan.Fit):
        pass

    class Combination:
        rule, technique, budget = "klms", "nt", ("reduction", "n_max")

    for power in (0.7, 1.0, 2.0, 2.6):
        for limit in (30, 400, 9_000, 10**7):
            for most in (5, 40, 256):
                limits = Limits("cortex-m0plus", 10**6, 10**6, limit)

                def costs(size, power=power):
                    calls = {"mean": 1.0, "max": int(7 + 3 * size**power), "worst": None}
                    return {"update": calls, "predict": None, "ram_bytes": size, "stack_bytes": 1, "flash_bytes": 1}

                fit = Known(Combination(), limits, {}, most)
                asked = 0
                while asked < plan.PROBES and (size := fit.next()) is not None:
                    assert plan.LEAST <= size <= most
                    fit.take(size, costs(size))
                    asked += 1
                fitting = [n for n in range(plan.LEAST, most + 1) if costs(n)["update"]["max"] <= plan.HEADROOM * limit]
                if not fitting:
                    assert fit.fits is None
                else:
                    assert fitting[-1] / plan.CLOSE - 1 <= fit.fits <= fitting[-1]


# ------------------------------------------------------------------------------------------------- a spec from the data


def inferred(text, inputs=(), label=None):
    return infer(io.BytesIO(text.encode()), "data.csv", inputs, label)


def test_a_spec_is_made_from_the_columns_of_numbers():
    header = "v;kind;Uhrzeit;id;;a;b;y\n"
    found = inferred(header + "".join(f"5;on;1:{i};{i};0;{i % 7};{i % 3},5;{i * 30}\n" for i in range(10, 50)))
    assert found.spec.input.columns == ("a", "b") and found.spec.label.column == "y"
    assert found.spec.input.max_abs == 20 and found.spec.label.max_abs == 5000  # 2 * 6 and 2 * 1470, upwards
    assert not found.spec.input.standardise
    reasons = "v (always the same), kind (text, such as 'on'), Uhrzeit (a time, such as '1:10'), id (a time)"
    assert f"without {reasons}" in found.assumed and "label y" in found.assumed
    assert found.x.shape == (40, 2) and found.y[2] == 360 and found.x[0].tolist() == [3, 1.5]
    assert inferred("a,b,y\n1,2,3\n2,1,\n", ["b"], "a").spec.input.columns == ("b",)
    assert np.isnan(inferred("a,b,y\n1,2,3\n2,1,\n").y[1])


def test_uneven_inputs_are_standardised():
    lines = "".join(f"{i % 7},{i % 3 * 100},{i}\n" for i in range(40))
    assert inferred("a,b,y\n" + lines).spec.input.standardise
    far = "".join(f"{i % 7 + 10000},{i % 5},{i}\n" for i in range(40))
    assert inferred("a,b,y\n" + far).spec.input.standardise


def test_a_label_of_words_is_a_class():
    found = inferred("a,y\n1,red\n2,green\n3,\n4,red\n", label="y")
    assert found.spec.label.classes == ("green", "red") and found.y.tolist() == [1, 0, -1, 1]


@pytest.mark.parametrize(
    ("text", "inputs", "label", "says"),
    [
        ("a,y\n1,2\n", [], "z", "names no column 'z'; it names 'a', 'y'"),
        ("a,y\n1,2\n", ["b"], None, "names no column 'b'"),
        ("a,k,y\n1,on,2\n", ["k"], "y", "column 'k' does not hold numbers"),
        ("k,l\non,off\n", [], None, "no column of numbers that could be the label"),
        ("k,y\non,2\n", [], None, "no column of different numbers beside the label 'y'"),
        ("y\n2\n", [], None, "names one column, 'y'"),
        ("", [], None, "is empty"),
    ],
)
def test_data_that_says_too_little_is_refused(text, inputs, label, says):
    with pytest.raises(UserError, match=re.escape(says)):
        inferred(text, inputs, label)


# ------------------------------------------------------------------------------------------------------------ bad input


def test_amounts():
    for text in ("4k", "4K", "4kB", "4KiB", "4096", " 4096 ", "4096B", "4.0k"):
        assert parse_amount(text, "--ram") == 4096
    assert parse_amount("0.5M", "--ram") == 2**19 and parse_amount("50k", "--instructions", 1000) == 50_000
    for text in ("", "k", "4 k B", "-4k", "4g", "1e3", "4k4", "٤", "nan", "0", "0.1", "9" * 40, "9999999999999"):
        with pytest.raises(UserError, match="--ram is"):
            parse_amount(text, "--ram")


def test_limits_are_the_parts_if_not_given_and_not_above():
    limits = make_limits("cortex-m0plus", None, 16384, None)
    assert (limits.ram, limits.flash, limits.instructions) == (36_864, 16_384, None)
    with pytest.raises(UserError, match=r"--ram is 65,536 bytes, but STM32G071RB, .* has 36,864"):
        make_limits("cortex-m0plus", 65536, None, None)


def test_the_nearest_miss_is_the_one_whose_worst_excess_is_least():
    limits = Limits("cortex-m0plus", 1000, 1000, 1000)
    name = {"rule": "klms", "technique": "nt"}
    misses = [
        name | {"size": 4, "ram": 900, "flash": 3000, "instructions": 10, "uses": limits.uses(900, 3000, 10)},
        name | {"size": 5, "ram": 1500, "flash": 900, "instructions": 1600, "uses": limits.uses(1500, 900, 1600)},
        name | {"size": 6, "reason": "no", "uses": {}},
    ]
    told = nearest_miss(misses, limits)
    assert "the nearest is klms nt 5, which takes 1,500 bytes of RAM, 900 of flash, 1,600 instructions" in told
    assert told.endswith("give --ram 1500 and --instructions 1700 or more")
    assert nearest_miss(misses[2:], limits).endswith(": no")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ram", "lots"], "--ram is 'lots'; it must be a number such as 4k, 4kB or 4096"),
        (["--ram", "1M"], "--ram is 1,048,576 bytes, but"),
        (["--target", "avr"], "--target avr has no emulator that counts instructions"),
        (["--target", "none"], "--target none cannot be planned for"),
        (["--spec", "x.toml", "--label", "y"], "--inputs and --label are for data without a spec"),
        (["--spec", "x.toml"], "x.toml: there is no such file"),
        (["--label", "q"], "names no column 'q'"),
        (["--rule", "best"], "--rule best is not known"),
        (["--score", "error_rate"], "--score error_rate is not for these labels"),
    ],
)
def test_bad_options_are_told_in_one_sentence(folder, run, arguments, says):
    code, out, err = run("plan", "data.csv", *arguments)
    assert code == 2 and out == "" and err.startswith("error: ") and err.count("\n") == 1 and says in err
    assert not (folder / "pykernel-plan").exists()
