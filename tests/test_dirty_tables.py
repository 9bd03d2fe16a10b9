"""Tables as newcomers have them: every command reads one alike, tells the same about it, or refuses it with one sentence."""

import contextlib
import io
import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.bases.select import SELECTORS
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.host.samples import read_samples, samples_of
from pykernel.rows.arrays import Part
from pykernel.rows.columns import MISSING, Column, Columns, apart_rows, coarse_told
from pykernel.rows.recordings import recordings_of
from pykernel.rows.text import _positions
from pykernel.spec.model import load_spec, make_spec
from pykernel.telling import data_lines, data_sentences
from pykernel.tuning.combinations import input_limit
from pykernel.tuning.samples import look, read
from pykernel.tuning.tables import MODELS, infer, read_table, sentinels
from pykernel.workflows.fit_job import held_out
from pykernel.workflows.requests import Plan
from pykernel.workflows.search import Asked, planned_data

SPEC = make_spec({"name": "m", "input": {"columns": ["a", "b"]}, "label": {"column": "y"}, "kernel": {"sigma": 1.0}})


def column(cells, **options):
    found = Column("t.csv", "a", **options)
    return found, found.read(cells, range(2, 2 + len(cells)))


def test_words_among_numbers_are_missing_and_a_column_of_words_is_none():
    few, values = column(["1.5", " n/a ", "", "error", "nan", *map(str, range(19))])
    assert few.holds_numbers and np.isnan(values[1:5]).all() and values[0] == 1.5 and values[-1] == 18
    assert (few.cells, few.numbers, few.words, few.others, few.first) == (24, 20, 1, 3, ("n/a", 3))
    few.need_numbers()
    many, _ = column(["1.5", "error", "off", *map(str, range(20))])
    assert not many.holds_numbers
    with pytest.raises(UserError, match=r"t.csv, line 3: column 'a' is 'error', not a number; 2 of 23 cells are words"):
        many.need_numbers()
    # however many they are, words for a missing value stand for nothing else
    gaps, _ = column(["N/A", "-", "NULL", "?", "2"])
    assert gaps.holds_numbers and gaps.others == 4
    assert not column(["", "n/a"])[0].holds_numbers
    infinite, values = column(["1", "-inf", "2"])
    assert infinite.infinite == 1 and values[1] == -np.inf and infinite.others == 0


@pytest.mark.parametrize(
    "cell, remedy",
    [
        ("1,234.5", "without a thousands separator"),
        ("1'234", "without a thousands separator"),
        ("2,5", "write a decimal point instead of the comma"),
        ("3.2 mm", "without its unit"),
        ("21.5°C", "without its unit"),
        ("40%", "without its unit"),
        ("24_03", "digits 0 to 9, without underscores"),
        ("\uff14\uff12", "digits 0 to 9, without underscores"),
    ],
)
def test_a_number_in_another_notation_is_never_taken_for_a_missing_value(cell, remedy):
    cells = [*map(str, range(99)), cell]
    with pytest.raises(UserError, match=f"line 101: column 'a' is .*{remedy}"):
        column(cells)
    found, _ = column(cells, named=False)
    assert found.holds_numbers
    with pytest.raises(UserError, match=remedy):
        found.refuse_notation()


@pytest.mark.parametrize(
    "values, told",
    [
        ([*range(50), -9999, -9999], {-9999: 2}),
        ([*range(50), -9999, 65535, -9999, 65535, -9999], {-9999: 3, 65535: 2}),
        ([3.5, 4.5, -1e20, -1e20], {-1e20: 2}),
        ([980, 1040, 999, 999, 999], {}),  # within the others
        ([*range(0, 60_000, 1000), 65535, 65535], {}),  # a sensor at its limit, near the others
        ([*range(50), -9999], {}),  # once: it may be real
        ([0, 1, 0, 500, 500, 500], {}),  # no number that stands for nothing by custom
        ([7, 7, 7, -9999, -9999], {}),
    ],
)
@pytest.mark.parametrize("size", [2, 100])
def test_sentinels_are_named_and_numbers_that_may_be_honest_are_not(values, told, size):
    seen, cells = Columns(), [repr(float(value)) for value in values]
    seen.begin("t.csv", ["a"])
    for some in itertools.batched(cells, size) if hasattr(itertools, "batched") else [cells]:
        table = seen.read(Part({"a": list(some)}, range(len(some)), 0))
        assert np.isfinite(table).all()  # told, and not changed
    assert {each["value"]: each["cells"] for each in seen.report()["sentinels"]} == told


def test_sentinels_in_an_array_are_named_too(tmp_path):
    x = np.random.default_rng(0).normal(size=(500, 3))
    x[::50, 1] = -9999
    np.save(tmp_path / "x.npy", x)
    samples = read(str(tmp_path / "x.npy"), (), None, (), False)
    look(samples)
    (found,) = samples.data["sentinels"]
    assert (found["column"], found["value"], found["cells"]) == ("1", -9999, 10)
    assert (samples.rows.take(np.arange(500)) == x).all()


def streamed(text):
    """What is read of a table in parts: (x, y) with NaN where a value is missing, and what is told."""
    seen = Columns()
    batches = list(samples_of(SPEC, io.BytesIO(text), "t.csv", 3, seen))
    x, y = np.concatenate([b.x for b in batches]), np.concatenate([b.y for b in batches])
    assert all(each["then"] == "read" for each in seen.report()["sentinels"])
    # who has the whole table in memory, takes sentinels for missing values
    return (
        np.column_stack([seen.columns[name].emptied(x[:, j]) for j, name in enumerate("ab")]),
        seen.columns["y"].emptied(y),
        seen.report(),
    )


def all_readings(text):
    """What each command reads of a table, as ``streamed``; or its sentence."""

    def in_parts():
        return streamed(text)

    def line_by_line():
        with pytest.MonkeyPatch.context() as patch:  # no line is read otherwise
            patch.setattr("pykernel.rows.text._decoded", lambda lines: [])
            return streamed(text)

    def planned():
        table = infer(io.BytesIO(text), "t.csv", ["a", "b"], "y")
        return table.x, table.y, table.data

    def trained():
        table = read_table(io.BytesIO(text), "t.csv", ["a", "b"], "y", (), "ls-svm")
        return table.x, table.y, table.data

    def chosen():
        Path("t.csv").write_bytes(text)
        table = read("t.csv", ["a", "b"], "y", (), False)
        return table.rows.x, table.y, table.data

    found = []
    for command in (in_parts, line_by_line, planned, trained, chosen):
        try:
            found.append(command())
        except UserError as error:
            assert "\n" not in str(error) and len(str(error)) < 400 and "t.csv" in str(error)
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "cell",
    [
        "",
        " ",
        "nan",
        "-NaN",
        "inf",
        "1e999",
        "1_0",
        "0x1p3",
        "\uff11",
        "\u00a01",
        "1\x0b",
        "1 #",
        "n/a",
        '1"',
        '"1"',
        "1\r",
        "1,2",
        "1\x00",
        '"a\n1,1,1,b"',
    ],
)
@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("place", [1, 3])  # of a column that is read, and of another
def test_lines_read_at_once_are_read_as_one_by_one(cell, separator, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).normal(size=(40, 4)).astype(str)
    rows[7, place] = cell
    text = "\n".join(map(separator.join, [["a", "b", "y", "z"], *rows])).encode()
    at_once, one_by_one, *_ = all_readings(text)
    np.testing.assert_equal(at_once, one_by_one)


CELLS = st.one_of(
    st.floats(-100, 100).map(repr),
    st.sampled_from(
        [
            "",
            " ",
            "n/a",
            "-9999",
            "inf",
            "nan",
            "oops",
            "1,5",
            "3 mm",
            '"',
            '"x',
            "\0",
            "\ufeff",
            "7,8",
            "é",
            "1_0",
            "1e999",
        ]
    ),
    st.text(max_size=3),
)


@given(st.data())
def test_a_dirty_table_is_read_alike_by_every_command_or_refused_with_one_sentence(tmp_path_factory, data):
    rows = data.draw(st.integers(22, 30))
    numbers = np.random.default_rng(rows).uniform(-5, 5, (rows, 3)).round(3)
    cells = numbers.astype(str).tolist()
    dirty = data.draw(st.integers(0, 3))
    for _ in range(dirty):
        row, at = data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, 2))
        cells[row][at] = data.draw(CELLS)
    lines = [",".join(row) for row in cells]
    if data.draw(st.integers(0, 4)) == 0:
        lines[data.draw(st.integers(0, rows - 1))] += data.draw(st.sampled_from([",", ",1", '"', "\r"]))
    head = data.draw(st.sampled_from(["a,b,y"] * 6 + ["\ufeffa,b,y", "a,a,y", "a,c,y", "A,b,y", ' a ,"b",y']))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.getbasetemp())
        found = all_readings("\n".join([head, *lines, ""]).encode("utf-8", "surrogatepass"))
    quick, careful, *_ = found
    np.testing.assert_equal(quick, careful)
    found = found[1:]
    refused = [each for each in found if isinstance(each, str)]
    if refused:
        assert len(refused) == len(found), refused
        if dirty < 2:  # of several faults, one command may meet another first
            assert len({each.partition(";")[0] for each in refused}) == 1, refused
        return
    x, y, told = found[0]
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y)
    np.testing.assert_array_equal(found[1][0], x)
    np.testing.assert_array_equal(found[1][1], y)
    x, y = x[whole], y[whole]
    usual = ~apart_rows(np.column_stack([x, y]))  # what lies apart trains no basis
    for each, rows in zip(found[2:], (slice(None), usual), strict=True):
        np.testing.assert_array_equal(each[0], x[rows])
        np.testing.assert_array_equal(each[1], y[rows])
    for key in ("rows", "inputs", "label", "not_numeric", "infinite", "sentinels"):
        assert all(each[2][key] == told[key] for each in found), key


def test_sentinels_of_a_table_are_missing_and_beyond_what_a_device_takes():
    rows = [f"{i % 51 * 10},{-9999 if i % 10 == 1 else i % 5},{-9999 if i % 25 == 3 else i}" for i in range(100)]
    text = "\n".join(["a,b,y", *rows, ""]).encode()
    table = infer(io.BytesIO(text), "t.csv", (), "y")
    assert np.nanmax(np.abs(table.x)) == 500 and np.isnan(table.x[:, 1]).sum() == 10 and np.isnan(table.y).sum() == 4
    assert sentinels(table.data) == [-9999] and table.data["missing"]["rows"] == 10
    assert "10 cells of b are -9999, far from all others (0 to 4); treated as missing" in " ".join(
        data_lines(table.data)
    )
    assert input_limit(table.x, sentinels(table.data)) == 5000 and input_limit(table.x, [65535.0]) == 5000
    assert len(read_table(io.BytesIO(text), "t.csv", (), "y", (), "krr").x) == 86
    found = [input_limit(np.array([0.0, each]), [-9999.0, 1e20]) for each in (999.0, 1000.1, 4900.0, 9990.0, 20_000.0)]
    assert found == [5000.0, 5000.0, 7000.0, 9990.0, 200_000.0]
    # a label of few whole numbers may be of classes
    few = "\n".join(["a,y", *(f"{i % 9},{(0, 1, 255)[i % 3]}" for i in range(60)), ""]).encode()
    assert set(infer(io.BytesIO(few), "t.csv", (), "y").y) == {0, 1, 255}


def newcomer(path):
    rng = np.random.default_rng(3)
    rows = []
    for i in range(200):
        flow, heat, valve = rng.uniform(1, 5), rng.uniform(5, 25), ("closed", "half", "open")[i % 3]
        y = flow + np.sin(heat) + (valve == "open")
        flow_cell = "n/a" if i in (7, 90) else f"{flow:.3f}"
        heat_cell = "-9999" if i % 50 == 1 else f"{heat:.2f}"
        rows.append(f"2024-01-{1 + i // 24:02} {i % 24:02}:00,B12,{flow_cell},{heat_cell},{valve},{y:.3f}")
    path.write_text("\n".join(["time,site,flow,heat,valve,y", *rows, ""]))


def test_commands_tell_the_same_of_a_newcomers_table_and_convert_takes_up_every_offer(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    newcomer(Path("river.csv"))
    Path("m.toml").write_text(
        'name = "m"\n[input]\ncolumns = ["flow", "heat"]\n[label]\ncolumn = "y"\n[kernel]\nsigma = 1.0\n[reduction]\nn_max = 4\n'
    )
    fit = [
        "fit",
        "river.csv",
        "--label",
        "y",
        "--set",
        "kernel.sigma=1",
        "--set",
        "training.ridge=0.1",
        "--set",
        "training.model=krr",
        "--n-max",
        "5",
        "--force",
        "--output",
        "f.toml",
    ]
    basis = [
        "fit",
        "river.csv",
        "--label",
        "y",
        "--set",
        "learning.rule=nystrom-rls",
        "-n",
        "4",
        "--set",
        "kernel.sigma=1",
        "--set",
        "training.ridge=0.1",
        "--force",
        "--output",
        "b.toml",
    ]
    told = {}
    for name, words in (("simulate", ["simulate", "m.toml", "river.csv"]), ("fit", fit), ("basis", basis)):
        code, out, err = run(*words, "--json")
        assert code == 0, err
        told[name] = json.loads(out)["data"]
    assert len({tuple(each) for each in told.values()}) == 1  # one shape
    (code,) = told["fit"]["sentinels"]
    assert code["then"] == "missing"
    told["simulate"]["sentinels"][0]["then"] = "missing"  # which reads a table of any length, and cannot know before
    for key in ("file", "rows", "inputs", "label", "not_numeric", "infinite", "sentinels"):
        assert told["simulate"][key] == told["fit"][key] == told["basis"][key], key
    fitted = load_spec("f.toml")
    # the recorded range, and some
    assert not fitted.accepts(np.array([[3.0, -9999.0]])).any() and fitted.input_max_abs < 50.0
    assert told["fit"]["not_numeric"] == [
        {"column": "flow", "cells": 2, "of": 200, "such_as": "n/a", "line": 9, "kind": "number"}
    ]
    lines = data_lines(told["fit"])
    assert all(len(line) < 120 for line in lines)
    text = " ".join(" ".join(line.removeprefix("data").strip() for line in lines).split())
    for sentence in (
        "200 rows; 2 inputs: flow, heat left out, always the same: site",
        "left out, dates or times: time (such as '2024-01-01 00:00')",
        "left out, words: valve (closed, half, open)",
        "2 of 200 cells of flow are not numbers (first: 'n/a', line 9); treated as missing",
        "4 cells of heat are -9999, far from all others (",
        "6 rows with a missing input: left out",
        "for each word in valve; sines and cosines of the times in time: "
        "pykernel table river.csv --label y --output ready.csv",
    ):
        assert sentence in text, (sentence, text)
    code, out, _ = run(*lines[-1].split()[1:])
    assert code == 0 and "pykernel table" not in out and "empty cells there" in out
    ready = np.genfromtxt("ready.csv", delimiter=",", names=True)
    assert ready.dtype.names == (
        "time_day_sin", "time_day_cos", "time_week_sin", "time_week_cos", "flow", "heat", "valve_closed", "valve_half",
        "valve_open", "y",
    )  # fmt: skip
    assert np.isnan(ready["flow"]).sum() == 2 and np.isnan(ready["heat"]).sum() == 4
    assert ready["valve_open"].tolist() == [float(i % 3 == 2) for i in range(200)]
    np.testing.assert_allclose(ready["time_day_sin"], np.sin(2 * np.pi * (np.arange(200) % 24) / 24), atol=1e-6)
    # 1 January 2024 was a Monday
    np.testing.assert_allclose(ready["time_week_cos"], np.cos(2 * np.pi * np.arange(200) / 168), atol=1e-6)


def test_a_converted_table_keeps_its_codes_and_its_specs_say_how_inputs_are_made(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    newcomer(Path("river.csv"))
    code, out, _ = run("table", "river.csv", "--label", "y", "--output", "ready.csv")
    told = " ".join(out.split())
    assert code == 0 and "6 rows with a missing input: kept, with empty cells" in told
    assert "4 cells of heat are -9999, far from all others (" in told and "the new table has empty cells there" in told
    made = [
        "time_day_sin = sin(2 pi s / 86400), where s is time in seconds since midnight",
        "time_week_cos = cos(2 pi s / 604800), where s is time in seconds since Monday, 0:00",
        "valve_half = 1 where valve is 'half', 0 for other words",
    ]
    assert all(f"made {line}" in told for line in made)
    codes = {}
    for name in ("ready", "bare"):
        if name == "bare":
            Path("bare.csv").write_text(Path("ready.csv").read_text())
        asked = Asked(Plan(f"{name}.csv", jobs=1, output="out"))
        planned_data(asked, None, None, "y")
        codes[name], said = sentinels(asked.read), " ".join(data_lines(asked.read))
        assert ("4 cells of heat were -9999" in said and "pykernel table emptied them" in said) == (name == "ready")
    assert codes == {"ready": [-9999], "bare": []}
    # notes may be damaged: then there are none
    whole = Path("ready.inputs.json").read_text()
    known = json.loads(whole)
    for wrong in ("[]", "{", whole.replace("-9999", "1e999"), *(json.dumps(known | {key: ["x"]}) for key in known)):
        Path("ready.inputs.json").write_text(wrong)
        planned_data(asked := Asked(Plan("ready.csv", jobs=1, output="out")), None, None, "y")
        assert sentinels(asked.read) == [] and "made" not in asked.read
    Path("ready.inputs.json").write_text(whole)
    fit = [
        "--label",
        "y",
        "--set",
        "training.model=krr",
        "--set",
        "kernel.sigma=2",
        "--set",
        "training.ridge=0.1",
        "--n-max",
        "3",
        "--force",
        "--output",
        "f.toml",
    ]
    assert run("fit", "ready.csv", *fit)[0] == 0
    assert [line for line in load_spec(Path("f.toml")).input.formulas if line in made] == made
    # the engineer who reads the header sees how each input is made
    assert run("generate", "f.toml", "-o", "f/")[0] == 0
    header, readme = Path("f/src/f.h").read_text(), Path("f/README.md").read_text()
    places = load_spec(Path("f.toml")).input.columns
    for line in made:
        name, _, how = line.partition(" = ")
        assert (
            f" * x[{places.index(name)}] = {how}\n" in header and f"  - `x[{places.index(name)}] = {how}`\n" in readme
        )
    assert f"x[{places.index('flow')}] = " not in header
    assert load_spec(Path("f/f.toml")).formulas == load_spec(Path("f.toml")).formulas
    Path("ready.csv").write_text(Path("ready.csv").read_text() + "\n")  # no longer what convert wrote
    assert run("fit", "ready.csv", *fit)[0] == 0 and "seconds" not in Path("f.toml").read_text()


def test_a_later_table_gets_the_columns_of_the_first_whatever_it_holds(tmp_path, monkeypatch, run):
    """Rows of the first table give the same cells; without a word or with another, the columns stay, and a code stays a gap."""
    monkeypatch.chdir(tmp_path)
    newcomer(Path("river.csv"))
    assert run("table", "river.csv", "--label", "y", "--output", "ready.csv")[0] == 0
    head, *rows = Path("river.csv").read_text().splitlines()
    chosen = [i for i, row in enumerate(rows) if ",half," not in row][:60]
    code = next(i for i, row in enumerate(rows) if ",-9999," in row and i not in chosen)
    later = [rows[i] for i in [*chosen, code]]
    later[3] = later[3].replace(later[3].split(",")[4], "stuck")
    Path("later.csv").write_text("\n".join([head, *later, ""]))
    status, _, err = run("table", "later.csv", "--like", "ready.csv", "--output", "again.csv")
    assert (
        status == 0
        and "ready.csv has no column for some words of valve (1 of 61 cells), such as 'stuck': in these rows" in err
    )
    first, again = (Path(name).read_text().splitlines() for name in ("ready.csv", "again.csv"))
    assert first[0] == again[0]
    for row, i in enumerate([*chosen, code]):
        assert row == 3 or again[1 + row] == first[1 + i]
    assert again[4].split(",")[6:9] == ["0", "0", "0"]
    words = [
        "--set",
        "training.model=krr",
        "--set",
        "kernel.sigma=2",
        "--set",
        "training.ridge=0.1",
        "-n",
        "3",
        "-o",
        "m.toml",
    ]
    assert run("fit", "ready.csv", "--label", "y", *words)[0] == 0
    status, _, err = run("simulate", "m.toml", "later.csv")
    assert status == 2 and "pykernel table later.csv --like FIRST.csv" in err and err.count("\n") == 1
    Path("bare.csv").write_text("\n".join(line.rpartition(",")[0] for line in [head, *later]))
    assert run("table", "bare.csv", "--like", "ready.csv", "--output", "bare-ready.csv")[0] == 0
    assert Path("bare-ready.csv").read_text().splitlines()[2] == again[2].rpartition(",")[0]
    for words, said in (
        (["table", "later.csv", "--like", "river.csv"], "its notes, river.inputs.json, are missing"),
        (["table", "later.csv", "--like", "ready.csv", "--label", "y"], "leave --inputs and --label out"),
        (["table", "less.csv", "--like", "ready.csv"], "has no column 'valve', from which ready.csv was made"),
    ):
        Path("less.csv").write_text("\n".join(line.rsplit(",", 2)[0] for line in [head, *later]))  # neither valve nor y
        status, _, err = run(*words, "--output", "other.csv")
        assert status == 2 and said in err and err.count("\n") == 1 and not Path("other.csv").exists()


def test_a_code_of_one_column_is_one_in_all_columns(tmp_path, monkeypatch, run):
    """Once in another column, far from its other numbers, it is missing there, too; near to them it is a number."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 3)) * [1, 1, 8000]
    x[[3, 7], 0], x[50, 1], x[60, 2] = -9999, -9999, -9999
    lines = [f"{a:.5g},{b:.5g},{c:.5g},{a + b:.5g}" for a, b, c in x]
    Path("t.csv").write_text("a,b,c,y\n" + "\n".join(lines))
    found = infer(io.BytesIO(Path("t.csv").read_bytes()), "t.csv", (), "y")
    told = {(each["column"], each["cells"]) for each in found.data["sentinels"]}
    assert told == {("a", 2), ("b", 1)}
    assert np.isnan(found.x).sum(axis=0).tolist() == [2, 1, 0]
    Path("one.csv").write_text("a,b,c,y\n" + "\n".join(lines[50:]))  # alone there, and known from the first table
    assert run("table", "t.csv", "--label", "y", "-o", "ready.csv")[0] == 0
    assert run("table", "one.csv", "--like", "ready.csv", "-o", "like.csv")[0] == 0
    assert Path("like.csv").read_text().splitlines()[1].split(",")[1] == ""


def test_many_columns_that_are_left_out_are_counted():
    head = ",".join([*(f"w{i}" for i in range(20)), "a", "y"])
    rows = "".join(",".join([*[f"word{i % 40}"] * 20, str(i * i % 17), str(i)]) + "\n" for i in range(80))
    table = infer(io.BytesIO(f"{head}\n{rows}".encode()), "t.csv", (), "y")
    (line,) = (line for line in data_lines(table.data) if "left out" in line)
    assert "left out, words: w0 (such as 'word0'), w1 (" in line and "and 14 others" in " ".join(data_lines(table.data))
    assert len(table.data["left_out"]) == 20


@pytest.mark.parametrize("words", [1, 2])
def test_many_devices_hold_numbers_where_one_table_of_their_rows_does(words, tmp_path):
    rows = np.random.default_rng(words).normal(size=(30, 25, 3)).round(3).astype(str)
    rows[:, :words, 0] = "error"  # 4 or 8 % of all cells
    for i, device in enumerate(rows):
        (tmp_path / f"{i:02}.csv").write_text("\n".join(["a,b,y", *map(",".join, device)]))
    one = infer(io.BytesIO("\n".join(["a,b,y", *map(",".join, rows.reshape(-1, 3))]).encode()), "t.csv", (), "y")
    many = infer(recordings_of(tmp_path), "devices", (), "y")
    assert many.inputs == one.inputs == ["a", "b"][words - 1 :]
    np.testing.assert_array_equal(many.x, one.x)


def test_words_for_missing_are_no_numbers_and_in_lower_case():
    for word in MISSING - {"nan"}:
        with pytest.raises(ValueError):
            float(word)
        assert word == word.lower().strip()


LEARNING = {
    "fit": ["-o", "out.toml"],
    "fit, krr": ["--set", "training.model=krr", "-o", "out.toml"],
    "fit, classes": ["--set", "label.classes=p,q", "-o", "out.toml"],
    "plan": ["-o", "planned"],
    "fit, basis": ["--set", "learning.rule=nystrom-rls", "-n", "3", "-o", "out.toml"],
}
"""Commands that learn a label of a table, and what else they need."""


@pytest.mark.parametrize("name", LEARNING)
def test_a_label_without_one_cell_is_one_sentence(name, tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for cells in ("", "  ", "nan", "n/a"):
        Path("t.csv").write_text("a,b,y\n" + "".join(f"{i},{i * i % 7},{cells}\n" for i in range(30)))
        code, _, told = run(name.split(",")[0], "t.csv", "--label", "y", *LEARNING[name])
        assert code == 2 and told.endswith(
            "error: t.csv: the label 'y' is empty in all rows; there is nothing to learn\n"
        )
        assert [each.name for each in Path().iterdir()] == ["t.csv"]


@pytest.mark.parametrize("name", ["fit", "plan", "fit, basis", "basis of numbers"])
def test_more_columns_than_a_model_has_inputs_are_refused_before_the_work(name, tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pykernel.workflows.basis_job.Job.run", None)
    x = np.arange(6000).reshape(4, 1500)
    np.save("t.npy", x.astype(float))
    header = ",".join([*(f"x{j}" for j in range(1500)), "y"])
    Path("t.csv").write_text("\n".join([header, *(",".join([*map(str, row), "pq"[i % 2]]) for i, row in enumerate(x))]))
    if name == "basis of numbers":
        code, _, told = run("fit", "t.npy", "-n", "3", "-o", "out.toml")
        assert "error: t.npy: [input] dim is 1500; it must be less than or equal to 1024" in told
    else:
        code, _, told = run(name.split(",")[0], "t.csv", "--label", "y", *LEARNING[name])
        assert "error: t.csv: [input] columns holds 1500 names; it must hold from 1 to 1024" in told
    assert code == 2 and not Path("out.toml").exists()


def test_a_column_is_found_without_a_search_for_each():
    """Else a table of 100,000 columns takes 10^10 comparisons of names."""
    compared = 0

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            nonlocal compared
            compared += 1
            return str(self) == str(other)

    names = [Name(f"x{j}") for j in range(1000)]
    assert _positions(names, "t.csv, line 1", names[::-1]) == list(range(1000))[::-1]
    assert compared < 10 * len(names)


def of(columns, y=None):
    """A table of these columns, and of a label that depends on the first one."""
    n = len(next(iter(columns.values())))
    y = np.sin(np.arange(n)) if y is None else y
    rows = zip(*columns.values(), y, strict=True)
    text = [
        ",".join([*columns, "y"]),
        *(",".join("" if cell != cell else repr(float(cell)) for cell in row) for row in rows),
    ]
    return io.BytesIO("\n".join(text).encode())


RNG = np.random.default_rng(0)
COUNTS = {
    "t_ms": np.arange(200) * 10.0,
    "millis": np.cumsum(RNG.integers(8, 13, 200)),
    "sample": np.arange(200),
    "Unnamed: 0": np.arange(1, 201),
    "unix": 1.79e9 + np.cumsum(RNG.uniform(0.9, 1.1, 200)),
    "seconds": np.arange(200) // 4,
    "energy": np.cumsum(RNG.uniform(0, 2, 200)),
}
HONEST = {
    "noise": RNG.normal(size=200),
    "walk": np.cumsum(RNG.normal(size=200)),
    "hour": np.arange(200) % 24,
    "falling": -np.cumsum(RNG.uniform(0, 2, 200)) + 0.5 * RNG.normal(size=200),
    "stage": np.arange(200) // 60,
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_never_falls_counts_time_whatever_its_name(name):
    table = infer(of({"q": COUNTS[name]} | HONEST), "t.csv", (), "y")
    assert table.inputs == [*HONEST] and {each["column"]: each["why"] for each in table.data["left_out"]} == {
        "q": "counts"
    }
    # who names it, or has nothing else, gets it
    assert infer(of({"q": COUNTS[name]} | HONEST), "t.csv", ("q",), "y").inputs == ["q"]
    assert infer(of({"q": COUNTS[name]}), "t.csv", (), "y").inputs == ["q"]


CODES = {
    "air": (-200.0, 0.18),
    "flow": (-888.0, 0.02),
    "adc": (4095.0, 0.05),
    "scaled": (65.535, 0.01),
    "far": (-100000.0, 0.03),
}


@pytest.mark.parametrize("name", CODES)
def test_a_repeated_number_far_from_all_others_is_named_and_stays(name, tmp_path, monkeypatch, run):
    """With its line, and with what to type; where that was typed its cells are empty, also in a later table."""
    rng = np.random.default_rng(1)
    code, part = CODES[name]
    x = np.round(rng.uniform(3, 12, 400), 3)
    x[rng.random(400) < part] = code
    x[7] = x[9] = code
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(of({"a": x, "b": rng.normal(size=400)}).getvalue())
    with open("t.csv", "rb") as file:
        table = infer(file, "t.csv", ["a", "b"], "y")
    np.testing.assert_array_equal(table.x[:, 0], x)
    (told,) = table.data["outlying"]
    count, line = int((x == code).sum()), int(np.flatnonzero(x == code)[0]) + 2
    assert (told["column"], told["value"], told["cells"], told["line"]) == ("a", code, count, line)
    said = " ".join(data_lines(table.data))
    command = f"pykernel table t.csv --label y --codes={code:g} --output ready.csv"
    assert f"{count:,} cells of a are {code:g}, first in line {line}" in " ".join(said.split()) and command in " ".join(
        said.split()
    )
    for words in (("--label", "y", f"--codes={code:g}", "-o", "ready.csv"), ("--like", "ready.csv", "-o", "later.csv")):
        assert run("table", "t.csv", *words)[0] == 0
    for made in ("ready.csv", "later.csv"):
        cells = [line.split(",")[0] for line in Path(made).read_text().splitlines()[1:]]
        assert [cell == "" for cell in cells] == (x == code).tolist()
        with open(made, "rb") as file:
            assert infer(file, made, (), "y").data["outlying"] == []


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(size=999),
        RNG.lognormal(size=999),
        RNG.integers(0, 3, 999),
        RNG.standard_t(3, 999),
        RNG.poisson(1.0, 999) * 5.0,
    ],
)
def test_an_honest_column_has_nothing_apart(values):
    assert infer(of({"a": values, "b": values[::-1]}, RNG.normal(size=999)), "t.csv", (), "y").data["outlying"] == []


FITS = [
    *(["--label", "of" if model == "kfd" else "y", "--set", f"training.model={model}"] for model in MODELS),
    *(["--set", f"training.method={method}"] for method in SELECTORS),
    ["--label", "y", "--set", "training.method=efvs"],
    ["--label", "y", "--set", "training.model=trained", "--set", "precision=int16"],
]


@pytest.mark.exhaustive
@pytest.mark.in_turn(18)
@pytest.mark.parametrize("how", FITS, ids=" ".join)
def test_spikes_are_named_and_train_nothing(how, tmp_path, monkeypatch, run):
    """The device takes all other rows, and if it answers with labels, it refuses such a row, as if the table had never held it."""
    rng = np.random.default_rng(1)
    x = np.column_stack([rng.uniform(43, 67, 500), rng.uniform(0, 100, 500)])
    y = np.sin(x[:, 0] / 5) + x[:, 1] / 50
    spiked = x.copy()
    spiked[rng.choice(500, 7, replace=False), 0] = 850 + rng.normal(size=7)
    monkeypatch.chdir(tmp_path)
    for name, some in (("clean", x), ("spiked", spiked)):
        lines = of({"temp": some[:, 0], "valve": some[:, 1]}, y).getvalue().decode().split("\n")
        kinds = ["of", *(["low", "high"][int(value > 1)] for value in y)]
        Path(f"{name}.csv").write_text("\n".join(f"{line},{kind}" for line, kind in zip(lines, kinds, strict=True)))
    with open("spiked.csv", "rb") as file:
        said = " ".join(" ".join(data_lines(infer(file, "spiked.csv", (), "y").data)).split())
    assert "7 cells of temp are far from all others (43" in said and "--codes" not in said
    limits = {}
    for name in ("clean", "spiked"):
        few = () if {"training.model=svm", "training.model=lp"} & set(how) else ("-n", "8")
        code, _, err = run("fit", f"{name}.csv", "--inputs", "temp,valve", *how, *few, "-o", f"{name}.toml")
        assert code == 0, err
        spec = load_spec(f"{name}.toml")
        assert spec.accepts(x).all()
        if "--label" in how:
            assert not spec.accepts(spiked)[(spiked != x).any(axis=1)].any()
            limits[name] = np.array(spec.input.max_abs)
        else:  # a basis takes inputs far beyond its rows
            limits[name] = np.array([spec.input.center, spec.input.scale])
    np.testing.assert_allclose(limits["clean"], limits["spiked"], rtol=0.05)


@pytest.mark.exhaustive
def test_a_plan_says_what_stands_in_for_missing_inputs(tmp_path, monkeypatch, run):
    """As a model that lives so over all rows does."""
    rng = np.random.default_rng(0)
    x = np.sin(np.arange(1200)[:, None] / [40, 90]) + 0.02 * rng.normal(size=(1200, 2))
    y = x[:, 0] * x[:, 1]
    x[rng.random(x.shape) < 0.05] = np.nan
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_bytes(of({"a": x[:, 0], "b": x[:, 1]}, y).getvalue())
    code, out, err = run(
        "plan",
        "t.csv",
        "--label",
        "y",
        "--labels",
        "always",
        "--only",
        "klms",
        "--trials",
        "2",
        "--jobs",
        "1",
        "--json",
    )
    assert code == 0, err
    told = json.loads(out)["gaps"]
    assert list(told) == ["refuse", "mean", "hold"]
    planned = load_spec("pykernel-plan/planned.toml").model_dump(exclude_unset=True)
    for way, error in told.items():
        model = HostModel(make_spec(planned | {"input": planned["input"] | {"missing": way}}))
        answers = model.prequential(x, y)[0].ravel()
        there = np.isfinite(answers)
        assert there.all() == (way != "refuse")
        stands = answers[np.maximum.accumulate(np.where(there, np.arange(len(y)), 0))]
        assert error == pytest.approx(np.sqrt(np.square(stands - y)[840:].mean()), rel=1e-9)
    assert told["hold"] < min(told["refuse"], told["mean"])


@pytest.mark.exhaustive
@pytest.mark.in_turn
@pytest.mark.parametrize("command", ["plan", "fit", "table"])
def test_a_first_line_of_numbers_is_no_header(command, tmp_path, monkeypatch, run):
    rng = np.random.default_rng(1)
    monkeypatch.chdir(tmp_path)
    np.savetxt("bare.csv", rng.normal(size=(60, 3)), delimiter=",")
    names = Path("bare.csv").read_text().splitlines()[0].split(",")
    how = {"plan": ("--trials", "1", "-o", "p"), "fit": ("-o", "f.toml"), "table": ("-o", "t2.csv")}[command]
    code, _, err = run(command, "bare.csv", "--label", names[2], *how)
    assert code == 2 and "bare.csv, line 1: holds numbers, " in err and "where the columns' names should be" in err
    assert [path.name for path in tmp_path.iterdir()] == ["bare.csv"]
    # 0, 1, 2 are the names that pandas gives
    Path("bare.csv").write_text("0,1,2\n" + Path("bare.csv").read_text())
    assert run("fit", "bare.csv", "--label", "2", "-n", "2", "-o", "f.toml")[0] == 0


@pytest.mark.parametrize("text", [False, True])
def test_how_uneven_rows_are_in_time_is_told(text):
    """By a clock of numbers, or of dates; of an even one nothing."""
    rng = np.random.default_rng(2)
    steps = rng.uniform(5, 15, 300)
    for irregular in (True, False):
        times = np.cumsum(steps if irregular else np.full(300, 10.0))
        if irregular:
            times[150:] += 7200
        cells = [str(datetime.fromtimestamp(1.7e9 + at, UTC)) if text else repr(1.7e9 + float(at)) for at in times]
        lines = [
            f"{cell},{x},{y}" for cell, x, y in zip(cells, rng.normal(size=300), rng.normal(size=300), strict=True)
        ]
        table = infer(io.BytesIO("\n".join(["when,a,y", *lines]).encode()), "t.csv", (), "y")
        said = " ".join(" ".join(data_lines(table.data)).split())
        found = table.data["times"]
        if not irregular:
            assert found is None and "apart (nine" not in said
            continue
        assert found["median"] == pytest.approx(np.median(np.diff(times)), abs=0.01) and found["gaps"] == 1
        assert found["even"] == pytest.approx(steps.sum() / found["median"], abs=12)
        assert (
            f"in column when, rows are {found['median']:.4g}{' s' * text} apart (nine in ten: " in said
            and "with 1 gap more than ten times as long" in said
        )


def test_any_table_is_read_or_refused_in_a_sentence(exhaustive):
    """Whatever its columns hold: what is told of it, the rows that judge, and what float32 does not hold."""
    for seed in range(1500 if exhaustive else 60):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 120)), int(rng.integers(1, 5))
        columns = {}
        for name in [*"abcd"[:d], "y"]:
            values = [
                rng.normal(size=n),
                rng.normal(size=n) * 10.0 ** rng.integers(-300, 300),
                np.full(n, rng.normal()),
                np.cumsum(rng.uniform(0, 1, n)),
                rng.integers(0, 3, n) * 1.0,
                np.exp(5 * rng.normal(size=n)),
                np.where(rng.random(n) < 0.1, rng.choice([-200, 1e30, np.inf, -9999, 850.0]), rng.normal(size=n)),
                1e8 + rng.normal(size=n),
                rng.standard_cauchy(n),
            ][rng.integers(9)]
            columns[name] = [repr(float(value)) for value in values]
            for i in np.flatnonzero(rng.random(n) < rng.choice([0, 0.05, 0.5])):
                columns[name][i] = str(rng.choice(["", "nan", "n/a", "inf", "-inf", "x"]))
        text = "\n".join(
            [",".join(columns), *(",".join(cells) for cells in zip(*columns.values(), strict=True))]
        ).encode()
        with contextlib.suppress(UserError):
            table = infer(io.BytesIO(text), "t.csv", (), "y")
            assert all(isinstance(line, str) for line in data_lines(table.data))
            numbers = table.x if table.classes else np.column_stack([table.x, table.y])
            # what trains nothing is told
            assert apart_rows(numbers).sum() <= sum(each["cells"] for each in table.data["outlying"])
            coarse_told(numbers, [*table.inputs, "y"], np.dtype("f4"))
        for how in (0, 0.3, "0.3,last", "0.3,random"):
            with contextlib.suppress(UserError):
                table = read_table(io.BytesIO(text), "t.csv", (), "y", (), None)
                train, test = held_out(table, how, 0)
                assert not {*train} & {*test} and {*train, *test} | {*np.flatnonzero(table.apart)} == {
                    *range(len(table.y))
                }


@pytest.mark.parametrize("rows", [9, 4096, 4097])
@pytest.mark.parametrize("padding", [0, 1, 40, 3_000_000])
@pytest.mark.parametrize("last", ["", "7", "7,8", '7,"', "7,8,9"])
def test_what_a_power_failure_cuts_off_is_one_row(rows, padding, last, tmp_path):
    """Of a table that ends inside a line, or that the file system has padded with zeros, all rows before are read, and the last is
    told.  A line that ends nowhere, but has all its cells, is a row."""
    path = tmp_path / "t.csv"
    text = "".join(f"{i},{i % 5},{i % 7}\n" for i in range(rows))
    path.write_bytes(b"a,b,y\n" + text.encode() + last.encode() + bytes(padding))
    whole = last == "7,8,9" and not padding
    with path.open("rb") as file:
        if '"' in last and not padding:
            with pytest.raises(UserError, match="ends inside a quoted cell"):
                infer(file, "t.csv", ["a", "b"], "y")
            return
        table = infer(file, "t.csv", ["a", "b"], "y")
    seen = Columns()
    with path.open("rb") as file:
        batches = list(read_samples(file, "t.csv", ["a", "b"], "y", seen=seen))
    assert len(table.y) == sum(len(each.y) for each in batches) == rows + whole
    for data in (table.data, seen.report()):
        told = [each for each in data_sentences(data) if "incomplete" in each]
        assert told == [f"line {rows + 2:,}, the last, is incomplete: left out"] * (bool(last or padding) and not whole)
