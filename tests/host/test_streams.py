"""Streams against slow twins that read line by line and keep everything."""

import bz2
import csv
import functools
import gzip
import io
import json
import lzma
import re
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score, recall_score

from pykernel.algorithms.online.klms import KLMS
from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.host.alarms import Alarms
from pykernel.host.model import HostModel
from pykernel.host.monitoring import Monitoring
from pykernel.host.predictions import prediction_header, prediction_lines
from pykernel.host.samples import BATCH, read_samples, samples_of
from pykernel.host.scores import Errors
from pykernel.host.simple import LastAndMajority, linear_specs
from pykernel.host.simulation import Simulation
from pykernel.rows.recordings import recordings_of
from pykernel.spec.model import make_spec
from pykernel.workflows.simulate import simulate
from tests.support.specs import named
from tests.support.toys import TOYS, toy_spec

Status: Any = KLMS["real"].status

INPUTS, LABEL = ("a", "b"), "y"


def read(text, rows=BATCH):
    data = text.encode() if isinstance(text, str) else text
    batches = list(read_samples(io.BytesIO(data), "data.csv", INPUTS, LABEL, rows))
    return np.concatenate([b.x for b in batches]), np.concatenate([b.y for b in batches]), batches


def spec(technique="mklms", n_max=6, **changes):
    content = {
        "name": "m",
        "input": {"columns": list(INPUTS), "max_abs": 100.0},
        "label": {"column": LABEL, "max_abs": 50.0},
        "kernel": {"sigma": 1.0},
        "reduction": {"technique": technique, "n_max": n_max},
    }
    return make_spec(named(content | changes))


# --------------------------------------------------------------------------------------------------------- reading


def test_columns_are_found_by_name_in_any_order_and_quoting():
    x, y, _ = read('\ufeffnote, y ,"b",a\r\n"x, and\ny",1,-2.5,3e2\r\n\r\n,,inf,nan\r\n')
    np.testing.assert_array_equal(x, [[300, -2.5], [np.nan, np.inf]])
    np.testing.assert_array_equal(y, [1, np.nan])


@given(st.integers(1, 40), st.integers(1, 12), st.randoms(use_true_random=False))
def test_batches_hold_every_row_once(rows, size, random):
    table = [
        [random.choice([random.gauss(0, 1e9), random.gauss(0, 1e-300), 0.1]) for _ in range(3)] for _ in range(rows)
    ]
    missing = {i for i in range(rows) if random.random() < 0.3}
    text = "a,b,y\n" + "".join(
        f"{a!r},{b!r},{'  ' if i in missing else repr(y)}\n" for i, (a, b, y) in enumerate(table)
    )
    x, y, batches = read(text, size)
    assert [len(b.x) for b in batches[:-1]] == [size] * (len(batches) - 1)
    assert batches[-1].position == len(text)
    np.testing.assert_array_equal(x, [row[:2] for row in table])
    np.testing.assert_array_equal(y, [np.nan if i in missing else row[2] for i, row in enumerate(table)])


@given(
    table=st.lists(
        st.tuples(st.floats(width=32), st.floats(allow_nan=False), st.none() | st.floats(allow_nan=False)), min_size=1
    ),
    separator=st.sampled_from(",;\t"),
    comma=st.booleans(),
    bom=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
    gaps=st.sets(st.integers(0, 20)),
    random=st.randoms(use_true_random=False),
)
def test_a_table_in_any_dialect_holds_the_same_numbers(table, separator, comma, bom, end, gaps, random):
    mark = "," if comma and separator != "," else "."

    def cell(value):
        text = "" if value is None else repr(value).replace(".", mark)
        text = random.choice([f'"{text}"', text])
        return random.choice([text, f" {text}"]) if separator != "\t" or text else text

    when = "2024-01-02 03:04:05,5" if separator != "," else '"02.01.2024, 3:04"'
    lines = [separator.join(["when", "y", '"b"', "two words", " a "])]
    for i, (a, b, y) in enumerate(table):
        numbers = [cell(y), cell(None if i in gaps else b), "Tor 3.1", cell(a)]
        lines.append(separator.join([when, *numbers]))
        if random.random() < 0.2:
            lines.append("")
    text = ("\ufeff" if bom else "") + ("sep=;" + end if separator == ";" and random.random() < 0.2 else "")
    x, y, _ = read(text + end.join(lines) + end, random.randint(1, 9))
    expected = [[a, np.nan if i in gaps else b] for i, (a, b, _) in enumerate(table)]
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(y, [np.nan if y is None else y for *_, y in table])


def test_classes_keep_their_commas():
    a_spec = toy_spec("class", input={"columns": ["a"]}, label={"column": "state", "classes": ["1,5", "2.5"]})
    (batch,) = samples_of(a_spec, io.BytesIO(b"a;state\n0,5;1,5\n1;2.5\n"), "data.csv")
    assert batch.x.tolist() == [[0.5], [1]] and batch.y.tolist() == [0, 1]


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "data.csv: is empty; its first line must name the columns, such as a,b,y"),
        ("\n\n", "is empty"),
        ("a,b,y\n", "holds a header but no rows"),
        ("a,c,y\n1,2,3\n", "line 1: names no column 'b'; it names 'a', 'c', 'y'"),
        ("a,B,y\n1,2,3\n", "did you mean 'B'"),
        ("a,bb,y\n1,2,3\n", "did you mean 'bb'"),
        ("1,2,3\n1,2,3\n", "it holds numbers; put a line with the columns' names before it"),
        ("a b y\n1 2 3\n", "separated by spaces; separate them by commas, semicolons or tabs"),
        ("a;b;y\n1,5;2;3\n1;2.5;3\n", "line 3: column 'b' is '2.5', but numbers before it have a decimal comma"),
        ("a;b;y\n1.5;2;3\n1;2,5;3\n", "line 3: column 'b' is '2,5', but numbers before it have a decimal point"),
        (
            "a\tb\ty\n1\t2\t1.234,5\n",
            "line 2: column 'y' is '1.234,5', not a number; write the number without a thousands sep",
        ),
        ("\n\na;b;y\n1;2;3\n1;2\n", "line 5: has 2 cells.*quote cells that hold a semicolon"),
        ("a,b,a,y\n1,2,3,4\n", "line 1: names the column 'a' 2 times; rename all but one"),
        ("a,b,y\n1,2,3\n1,2\n", "line 3: has 2 cells, but the header names 3 columns"),
        ("a,b,y\n1,2,3,\n", "line 2: has 4 cells"),
        ("a,b,y\n1,2,3\n\n1,two,3\n", "line 4: column 'b' is 'two', not a number; correct the cell"),
        ("a,b,y\n1,2,three\n", "line 2: column 'y' is 'three', not a number"),
        ('a,b,y\n1,"2,5",3\n', "line 2: column 'b' is '2,5', not a number; write a decimal point"),
        (
            "a,b,y\n1,2,3\n1,3.2 mm,3\n",
            "line 3: column 'b' is '3.2 mm', not a number; write the number without its unit",
        ),
        (b"a,b,y\n1,2,3\n1,\xff,3\n", "line 3: byte 3 is not UTF-8"),
        ("a,b,y\n1,2,3\n".encode("utf-16"), "line 1: (byte 1 is not UTF-8|holds a NUL)"),
        (b"a,b,y\n1,\x002,3\n", "line 2: holds a NUL byte"),
        ('a,b,y\n1,"2,3\n', "line 2: the file ends inside a quoted cell"),
        ('a,b,y\n1,"' + "2,3\n" * 100_000, "a cell is too long; is a quote left open"),
        ("a,b,y\r1,2,3\r", "line 1: holds a carriage return"),
        (b"a,b,y\n" + b"1" * (2**20 + 1), "line 2: is longer than 1,048,576 bytes"),
        ("a,b,\x1b[2Jy\n1,2,3\n", r"it names 'a', 'b', '\\x1b\[2Jy'"),
    ],
)
def test_each_kind_of_bad_file_is_one_sentence_with_place_and_remedy(text, says):
    with pytest.raises(UserError, match=says) as error:
        read(text)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zip", ".xlsx"])
def test_a_compressed_table_is_refused_by_what_it_is(ending, tmp_path):
    text, path = b"a,b,y\n1,2,3\n", tmp_path / f"data.csv{ending}"
    if ending in (".zip", ".xlsx"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("data.csv", text)
    else:
        compress = {
            ".gz": gzip.compress,
            ".bz2": functools.partial(bz2.compress, compresslevel=1),
            ".xz": lzma.compress,
        }
        path.write_bytes(compress[ending](text))
    for reads in (lambda: simulate(spec(), path), lambda: recordings_of([str(path)] * 2)):
        with pytest.raises(UserError, match=r"data.csv.*: is compressed \(.*\); decompress it, or save it as CSV"):
            reads()
    path.write_bytes(b"BZh,a,b,y\n" + b"1,1,2,3\n" * 30)
    assert simulate(spec(), path).report["rows"] == 30


def labelled(kind):
    """A spec with names for a kind of label."""
    names = {"reals": {"columns": ["p,1", "q", "r"]}, "class": {"column": "state", "classes": ["low", "mid [x]", "1"]}}
    label = names.get(kind) or {"column": "state", "classes": ["shut", "open"]}
    return toy_spec(kind, input={"columns": list(INPUTS), "max_abs": 100.0}, label={**label, "max_abs": 50.0})


def test_several_labels_are_columns_of_a_table():
    text = 'q,a,"p,1",b,r,z\n1,2,3,4,5,x\n,2,nan,4, ,x\n'
    (batch,) = samples_of(labelled("reals"), io.BytesIO(text.encode()), "data.csv")
    np.testing.assert_array_equal(batch.x, [[2, 4], [2, 4]])
    np.testing.assert_array_equal(batch.y, [[3, 1, 5], [np.nan, np.nan, np.nan]])
    with pytest.raises(UserError, match="line 2: column 'q' is 'x', not a number"):
        list(samples_of(labelled("reals"), io.BytesIO(text.replace("1,2,3", "x,2,3").encode()), "data.csv"))
    with pytest.raises(UserError, match="names no column 'r'"):
        list(samples_of(labelled("reals"), io.BytesIO(b'q,a,"p,1",b\n1,2,3,4\n'), "data.csv"))


def test_classes_are_called_by_name_and_become_positions():
    (batch,) = samples_of(labelled("class"), io.BytesIO(b"a,state,b\n1,NaN,2\n1,low,2\n1,n/a,2\n"), "data.csv")
    assert batch.y.tolist() == [-1, 0, -1]
    text = "a,state,b\n1, mid [x] ,2\n1,low,2\n1,,2\n1,1,2\n"
    (batch,) = samples_of(labelled("class"), io.BytesIO(text.encode()), "data.csv")
    assert batch.y.tolist() == [1, 0, -1, 2] and batch.y.dtype == np.int32
    for cell, says in (
        ("lwo", "did you mean 'low'?"),
        ("2", "the classes are 'low', 'mid [x]', '1'"),
        ("1.0", "the classes are 'low', 'mid [x]', '1'"),
    ):
        with pytest.raises(UserError) as error:
            list(samples_of(labelled("class"), io.BytesIO(f"{text}1,{cell},2\n".encode()), "data.csv"))
        assert str(error.value) == f"data.csv, line 6: column 'state' is '{cell}', which is not a class; {says}"


def test_the_place_is_told_beyond_the_first_batch():
    text = "a,b,y\n" + "1,2,3\n" * 10 + "1,2,oops\n"
    with pytest.raises(UserError, match="line 12: column 'y' is 'oops'"):
        read(text, rows=4)


@pytest.mark.exhaustive
def test_memory_does_not_grow_with_the_stream():
    import tracemalloc

    class Endless(io.RawIOBase):
        """Samples made while they are read."""

        def __init__(self, rows):
            self.left, self.rest = rows, b"a,b,y\n"

        def readline(self, size=-1):
            line, self.rest = self.rest, b"0.25,0.5,1\n" if self.left else b""
            self.left -= bool(self.left)
            return line

    def peak(rows):
        simulation = Simulation(spec("nt"), delay=3)
        tracemalloc.start()
        for batch in read_samples(Endless(rows), "endless", INPUTS, LABEL):
            for _ in simulation.run(batch.x, batch.y):
                pass
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert simulation.rows == rows
        return most

    peak(10)
    assert peak(100_000) < 1.2 * peak(25_000)


# ---------------------------------------------------------------------------------------------------------- errors


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(0, 99))
def test_sums_of_errors_are_those_of_the_whole_table(parts, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(sum(parts), 2))
    table[rng.random(len(table)) < 0.2, rng.integers(0, 2)] = np.nan
    if seed % 2:
        table[0] = 1e12  # it must not take the digits of later rows
    errors, start = Errors(("p", "q"), moments=64), 0
    for rows in parts:
        errors.add(table[start : start + rows])
        start += rows
    assert errors.kept.rows == len(table) and len(errors.kept.table) <= 64
    for first in (0, len(table) // 2, len(table) - 1):
        summary = errors.summary(first)
        assert first - errors.kept.spacing < summary["first_row"] <= first
        rest = table[summary["first_row"] :]
        rest = rest[np.isfinite(rest).all(axis=1)]
        assert summary["scored"] == len(rest)
        for i, name in enumerate("pq"):
            if len(rest):
                assert summary["mae"][name] == pytest.approx(np.abs(rest[:, i]).mean())
                assert summary["rmse"][name] == pytest.approx(np.sqrt((rest[:, i] ** 2).mean()))
            else:
                assert summary["mae"][name] is None
    where, sums = errors.kept.windows(5, len(table) // 3)
    for (begin, length), part in zip(where.astype(int), sums, strict=True):
        rows = table[begin : begin + length]
        rows = rows[np.isfinite(rows).all(axis=1)]
        assert part[0] == len(rows) and part[1:3] == pytest.approx(np.abs(rows).sum(axis=0))
    middles, curve = errors.curve(5)
    assert curve.shape == (len(middles), 2) and (np.diff(middles) > 0).all()


# ------------------------------------------------------------------------------------------------------ simulation


def twin(a_spec, x, y, delay, refresh_every):
    """One row at a time, everything kept."""
    model, known, rows, statuses = HostModel(a_spec), [], [], {}
    linears = [HostModel(each) for each in linear_specs(a_spec).values()]
    # what the model sees; a linear model has more digits, and errors are those of the numbers that were given
    given = y
    with np.errstate(over="ignore"):
        x, y = x.astype(np.float32), y if y.dtype == np.int32 else y.astype(np.float32)
    for t in range(len(x)):
        prediction, lines = model.predict(x[t])[0], [linear.predict(x[t])[0] for linear in linears]
        last, mean = (known[-1], np.mean(known)) if known else (0.0, 0.0)
        begun, status = bool(known), None
        if t >= delay:
            status = Status(model.update(x[t - delay], y[t - delay])[0])
            for linear in linears:
                linear.update(x[t - delay], y[t - delay])
            label = np.float32(y[t - delay])
            if np.isnan(label):
                status = None
            else:
                statuses[status.name.lower()] = statuses.get(status.name.lower(), 0) + 1
                if abs(label) <= a_spec.label.max_abs:
                    known.append(float(label))
        truth = np.float32(y[t])
        scored = begun and abs(truth) <= a_spec.label.max_abs and not np.isnan(prediction)
        rows.append(
            (
                prediction,
                status,
                [abs(float(p) - float(given[t])) for p in (prediction, last, mean, *lines)] if scored else None,
            )
        )
        if refresh_every and (t + 1) % refresh_every == 0:
            model.refresh()
    return model, rows, statuses


@given(
    samples=st.integers(1, 70),
    delay=st.sampled_from([0, 1, 5, 30, 200]),
    size=st.integers(1, 40),
    refresh_every=st.sampled_from([0, 1, 7]),
    seed=st.integers(0, 99),
)
def test_a_simulation_in_batches_is_one_row_at_a_time(samples, delay, size, refresh_every, seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(samples, 2)), rng.normal(size=samples)
    x[rng.random(samples) < 0.1, 0] = np.nan
    x[rng.random(samples) < 0.1, 1] = 1e300
    y[rng.random(samples) < 0.2] = np.nan
    y[rng.random(samples) < 0.1] = 1e30
    a_spec = spec()
    simulation, predictions, lines = Simulation(a_spec, delay, refresh_every), [], ""
    for start in range(0, samples, size):
        for steps in simulation.run(x[start : start + size], y[start : start + size]):
            predictions.append(steps.predictions)
            lines += prediction_lines(a_spec, steps)
    with np.errstate(over="ignore"):
        model, rows, statuses = twin(a_spec, x, y, delay, refresh_every)
    assert np.concatenate(predictions).tobytes() == np.array([row[0] for row in rows]).tobytes()
    assert bytes(simulation.model.memory.bytes) == bytes(model.memory.bytes)
    report = simulation.report()
    assert report["statuses"] == statuses
    assert report["rows"] == samples and report["unlabelled"] == np.isnan(y).sum()
    assert report["waiting"] == np.count_nonzero(~np.isnan(y[max(0, samples - delay) :]))
    assert report["labelled"] - report["waiting"] == sum(statuses.values())
    scored = np.array([row[2] for row in rows if row[2]], float).reshape(-1, 5)
    assert report["all"]["scored"] == len(scored)
    if len(scored):
        np.testing.assert_allclose(list(report["all"]["mae"].values()), scored.mean(axis=0), rtol=1e-9)
    cells = [line.split(",") for line in lines.splitlines()]
    assert [cell[0] for cell in cells] == [str(t) for t in range(samples)]
    assert [cell[3] for cell in cells] == ["" if row[1] is None else row[1].name.lower() for row in rows]
    assert [np.float32(cell[1] or "nan").tobytes() for cell in cells] == [np.float32(row[0]).tobytes() for row in rows]


def twin_of_others(a_spec, x, y, delay):
    """The same for several labels, and for classes: predictions, statuses, errors of each predictor and label."""
    model, classes = HostModel(a_spec), a_spec.label.classes
    linears = [HostModel(each) for each in linear_specs(a_spec).values()]
    # what the model sees; a linear model has more digits, and errors are those of the numbers that were given
    given = y
    with np.errstate(over="ignore"):
        x, y = x.astype(np.float32), y if y.dtype == np.int32 else y.astype(np.float32)
    labels, known, predictions, statuses, errors = 1 if classes else y.shape[1], [], [], [], []
    for t in range(len(x)):
        answer = model.classify(x[t]) if classes else model.predict(x[t])[0]
        predictions.append(answer)
        if classes:
            seen = [c for (c,) in known if c is not None]
            begun = [bool(seen)]
            trivial = [[seen[-1]], [max(range(len(classes)), key=seen.count)]] if seen else [[0], [0]]
        else:
            each = [[row[o] for row in known if row[o] is not None] for o in range(labels)]
            begun = [bool(column) for column in each]
            trivial = [[column[-1] if column else 0.0 for column in each]]
            trivial += [[np.mean(column) if column else 0.0 for column in each]]
        trivial += [linear.classify(x[t]) if classes else linear.predict(x[t])[0] for linear in linears]
        refused = answer[0] < 0 if classes else np.isnan(answer[0])
        row = []
        for guess in (answer, *trivial):
            for o in range(labels):
                label = y[t] if classes else np.float32(y[t, o])
                valid = 0 <= label < len(classes) if classes else abs(label) <= 50
                error = float(guess[o] != label) if classes else abs(float(guess[o]) - float(given[t, o]))
                row.append(error if valid and begun[o] and not refused else np.nan)
        errors.append(np.reshape(row, (5, labels)))
        statuses.append(None)
        if t >= delay:
            label = y[t - delay]
            status = int(model.update(x[t - delay], y[t - delay : t - delay + 1])[0])
            for linear in linears:
                linear.update(x[t - delay], y[t - delay : t - delay + 1])
            with np.errstate(invalid="ignore"):
                if label >= 0 if classes else not np.isnan(label).any():
                    statuses[-1] = status
            if classes:
                known.append([int(label) if 0 <= label < len(classes) else None])
            else:
                known.append([float(v) if abs(v) <= 50 else None for v in label.astype(np.float32)])
    return model, predictions, statuses, np.array(errors)


@settings(max_examples=max(15, settings().max_examples // 10))
@given(
    kind=st.sampled_from(["reals", "two classes", "class"]),
    samples=st.integers(1, 60),
    delay=st.sampled_from([0, 1, 7, 100]),
    size=st.integers(1, 40),
    seed=st.integers(0, 99),
)
def test_several_labels_and_classes_are_simulated_one_row_at_a_time(kind, samples, delay, size, seed):
    a_spec, rng = labelled(kind), np.random.default_rng(seed)
    x = rng.normal(size=(samples, 2))
    x[rng.random(samples) < 0.1, 0] = np.nan
    if kind == "reals":
        y = x @ [[1, -1, 0], [0.5, 0, 2]] + rng.normal(size=(samples, 3))
        y[rng.random(samples) < 0.2, rng.integers(0, 3)] = np.nan
        y[rng.random(samples) < 0.1, rng.integers(0, 3)] = 1e30
    else:
        y = rng.integers(-1, len(a_spec.label.classes), samples).astype(np.int32)
    simulation, lines, found = Simulation(a_spec, delay), prediction_header(a_spec), []
    for start in range(0, samples, size):
        for steps in simulation.run(x[start : start + size], y[start : start + size]):
            found.append(steps.predictions)
            lines += prediction_lines(a_spec, steps)
    model, predictions, statuses, errors = twin_of_others(a_spec, x, y, delay)
    assert np.concatenate(found).tobytes() == np.array(predictions).tobytes()
    assert bytes(simulation.model.memory.bytes) == bytes(model.memory.bytes)
    report = simulation.report()
    names = ["learned", "sure", "refused_input", "refused_label"]
    codes = dict(zip(names, (1, 2, -1, -2), strict=True))
    assert report["statuses"] == {n: statuses.count(c) for n, c in codes.items() if c in statuses}
    assert report["labelled"] - report["waiting"] == sum(s is not None for s in statuses)

    def agrees(summary, table):
        """Of rows that have all errors."""
        table = table[np.isfinite(table).all(axis=(1, 2))]
        assert summary["scored"] == len(table)
        if len(table):
            kinds = {"error_rate": table} if a_spec.label.classes else {"mae": table, "rmse": table**2}
            for key, values in kinds.items():
                mean = values.mean(axis=(0, 2)) ** (0.5 if key == "rmse" else 1)
                np.testing.assert_allclose(list(summary[key].values()), mean, rtol=1e-9)

    agrees(report["all"], errors)
    if kind == "reals":
        for o, name in enumerate(["p,1", "q", "r"]):
            agrees(report["by_label"][name]["all"], errors[:, :, o : o + 1])
    else:
        table = np.array(report["confusion"])
        assert table.sum() == report["all"]["scored"]
        assert table.sum() - np.trace(table) == pytest.approx(table.sum() * (report["all"]["error_rate"]["model"] or 0))
        assert (table.sum(axis=1) <= [(y == i).sum() for i in range(len(table))]).all()

    header, *cells = csv.reader(io.StringIO(lines))
    count = 3 if kind == "reals" else 1
    assert len(header) == 2 * count + 2 and [row[0] for row in cells] == [str(t) for t in range(samples)]
    reverse = {c: n for n, c in codes.items()}
    assert [row[-1] for row in cells] == ["" if s is None else reverse[s] for s in statuses]
    for t, row in enumerate(cells):
        if kind == "reals":
            assert np.array([c or "nan" for c in row[1:4]], np.float32).tobytes() == predictions[t].tobytes()
            np.testing.assert_array_equal(np.array([c or "nan" for c in row[4:7]], np.float32), y[t].astype(np.float32))
        else:
            shown = [a_spec.label.classes[i] if i >= 0 else "" for i in (predictions[t][0], y[t])]
            assert row[1:3] == shown


def test_the_majority_is_the_first_of_equals():
    trivial = LastAndMajority(3)
    last, majority = trivial.step(np.array([2, -1, 1, 1, 2], np.int32))
    assert last.tolist() == [0, 2, 2, 1, 1] and majority.tolist() == [0, 2, 2, 1, 1]
    last, majority = trivial.step(np.array([2, -1], np.int32))
    assert last.tolist() == [2, 2] and majority.tolist() == [1, 2]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Data of every kind, specs for it, and toys in place of the models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pykernel.spec.model.FAMILIES", (TOYS,))
    for kind in ("reals", "class"):
        (tmp_path / f"{kind}.toml").write_text(labelled(kind).to_toml())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    y = x @ [[1, -1, 0], [0.5, 0, 2]]
    names = np.array(["low", "mid [x]", "1"])[np.digitize(x[:, 0], [-0.5, 0.5])]
    with (tmp_path / "data.csv").open("w") as file:
        print('a,b,"p,1",q,r,state', file=file)
        for t in range(400):
            print(*x[t], *y[t], names[t], sep=",", file=file)
    return tmp_path


def command(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", *words])
    return stopped.value.code, *capsys.readouterr()


def test_simulate_shows_each_label_and_all(folder, capsys):
    code, out, err = command(capsys, "reals.toml", "data.csv", "-o", "p.csv", "--report", "e.html", "--delay", "2")
    assert (code, err) == (0, "") and "<svg" in (folder / "e.html").read_text()
    rows = re.findall(r"^ +(p,1|q|r|all)? +(model|last label|running mean) +(\S+)", out, re.MULTILINE)
    assert [row[0] for row in rows] == ["p,1", "", "", "q", "", "", "r", "", "", "all", "", ""]
    assert float(rows[0][2]) < 0.2 * float(rows[1][2])
    header, *cells = csv.reader((folder / "p.csv").read_text().splitlines())
    assert header == [
        "row",
        "prediction p,1",
        "prediction q",
        "prediction r",
        "label p,1",
        "label q",
        "label r",
        "status",
    ]
    assert len(cells) == 400


def test_simulate_shows_errors_and_which_class_was_taken_for_which(folder, capsys):
    code, out, err = command(capsys, "class.toml", "data.csv", "-o", "p.csv", "--report", "e.html")
    assert (code, err) == (0, "") and "<svg" in (folder / "e.html").read_text()
    rates = dict(re.findall(r"(model|last label|majority class) +(\S+) %", out))
    assert float(rates["model"]) < 0.7 * float(rates["majority class"]) < float(rates["last label"])
    table = re.findall(r"^ +(low|mid \[x\]|1) +(\d+) +(\d+) +(\d+) +(\S+) +(\S+) *$", out, re.MULTILINE)
    assert [row[0] for row in table] == ["low", "mid [x]", "1"] and sum(
        int(c) for row in table for c in row[1:4]
    ) == 399
    assert {row[1] for row in csv.reader((folder / "p.csv").read_text().splitlines())} == {
        "prediction",
        "low",
        "mid [x]",
        "1",
    }
    code, out, _ = command(capsys, "class.toml", "data.csv", "--json")
    report = json.loads(out)
    assert report["classes"] == ["low", "mid [x]", "1"]
    assert [[int(c) for c in row[1:4]] for row in table] == report["confusion"]
    truth, taken = np.repeat(np.indices((3, 3)).reshape(2, 9), np.ravel(report["confusion"]), axis=1)
    for score, column in ((recall_score, 4), (f1_score, 5)):
        assert [float(row[column]) for row in table] == score(truth, taken, average=None).round(3).tolist()
    # many classes: the worst mistakes only
    text = (folder / "class.toml").read_text().replace('"low", ', '"low", "a", "b", "c", "d", "e", "f", ')
    (folder / "many.toml").write_text(text)
    code, out, _ = command(capsys, "many.toml", "data.csv")
    assert code == 0 and "The most frequent mistakes" in out and re.search(r"mid \[x\] +(low|1) +\d+", out)


def test_simulate_refuses_what_is_no_class_and_labels_without_names(folder, capsys):
    (folder / "bad.csv").write_text("a,b,state\n1,2,low\n1,2,lo w\n")
    code, out, err = command(capsys, "class.toml", "bad.csv", "-o", "p.csv")
    assert (code, out) == (
        2,
        "",
    ) and "bad.csv, line 3: column 'state' is 'lo w', which is not a class; did you mean" in err
    assert not (folder / "p.csv").exists()
    (folder / "nameless.toml").write_text(
        'name = "m"\n[input]\ncolumns = ["a"]\n[learning]\nrule = "nlms"\n[label]\noutputs = 2\n'
    )
    code, out, err = command(capsys, "nameless.toml", "data.csv")
    assert code == 2 and 'nameless.toml: [label] names no columns; add columns = ["…", "…"]' in err


def test_an_alarm_is_at_the_row_that_raised_it_in_whatever_parts_rows_come():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(900, 3))
    x[700:706] += 8.0
    found = []
    for size in (900, 90, 7):
        watch = Monitoring(make_spec({"name": "m", "input": {"dim": 3}, "novelty": {"warmup": 300}}))
        for start in range(0, 900, size):
            part = x[start : start + size]
            for _ in watch.run(part, np.zeros((len(part), 0))):
                pass
        found.append(watch.report()["alarms"]["listed"])
    (first,) = [alarm for alarm in found[0] if alarm["first_row"] <= 700 <= alarm["last_row"]]
    assert first["first_row"] == 700 and len(found[0]) > 1
    assert found[1:] == [found[0]] * 2


@pytest.mark.parametrize(("tied", "about"), [(1, r"dew or .*\n +humidity "), (0, "dew  ")])
def test_an_alarm_names_two_inputs_that_determine_each_other(tied, about, capsys, tmp_path):
    rng = np.random.default_rng(0)
    warm, dew, noise = rng.normal(size=(3, 1200))
    rows = np.column_stack([warm, dew, tied * (dew - warm) + (0.01 if tied else 1) * noise])
    rows[900:930, 1] += 6
    (tmp_path / "m.toml").write_text('name = "m"\n[input]\ncolumns = ["warm", "dew", "humidity"]\n[novelty]\n')
    np.savetxt(tmp_path / "rows.csv", rows, "%.6g", ",", header="warm,dew,humidity", comments="")
    code, out, err = command(capsys, str(tmp_path / "m.toml"), str(tmp_path / "rows.csv"))
    assert code == 0, err
    assert re.search(rf"\n +900 .* {about}", out), out


@pytest.mark.parametrize(
    ("told", "listed"),
    [
        ("AA.A", [(0, 1), (3, 3)]),
        ("A.A..A", [(0, 0), (2, 2), (5, 5)]),
        ("AxxA.", [(0, 3)]),  # refused samples between them do not count
        ("Ax.xA", [(0, 0), (4, 4)]),
        ("..xAxA", [(3, 5)]),
        ("A..a.xaA.A", [(0, 7), (9, 9)]),
    ],
)
def test_alarms_in_a_row_are_one(told, listed):
    """A: in alarm, a: the same where the model counts on after a gap, x: refused; however they come."""
    a_spec = make_spec({"name": "m", "input": {"dim": 1}, "learning": {"rule": "gmm"}})
    (alarm, *_) = (int(status) for status in a_spec.program.alarms)
    refused = next(int(s) for s in a_spec.program.status if s < 0 and s not in a_spec.program.alarms)
    done = next(int(s) for s in a_spec.program.status if s >= 0 and s not in a_spec.program.alarms)
    statuses = np.array([{"A": alarm, "a": alarm, "x": refused, ".": done}[each] for each in told])
    levels = np.linspace(0.1, 0.9, len(told))
    states = np.column_stack([levels, levels / 2, [{"A": 1, "a": 4}.get(each, 0) for each in told]])
    blame = np.tile([0.0, 1.0, alarm, np.nan], (len(told), 1))
    for size in (1, 2, len(told)):
        alarms = Alarms(a_spec)
        which = []
        for i in range(0, len(told), size):
            part = slice(i, i + size)
            which += alarms.take(np.arange(len(told))[part], statuses[part], states[part], blame[part]).tolist()
        found = alarms.report(np.zeros(3))
        assert [(each["first_row"], each["last_row"]) for each in found["listed"]] == listed
        assert (found["count"], found["samples"]) == (len(listed), told.upper().count("A"))
        assert [each["rows"] for each in found["listed"]] == np.bincount(which, minlength=len(listed) + 1)[1:].tolist()
        assert [each["level"] for each in found["listed"]] == [levels[last] for _, last in listed]
        assert all(each["threshold"] == each["level"] / 2 for each in found["listed"])


def test_a_forecast_never_sees_the_future():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(300, 2)), rng.normal(size=300)
    other = y.copy()
    other[200:] = 7.0
    delay = 20
    forecasts = []
    for labels in (y, other):
        forecasts.append(np.concatenate([s.predictions for s in Simulation(spec(), delay).run(x, labels)]))
    same = forecasts[0] == forecasts[1]
    # label 200 is learnt in step 220, after that row's forecast
    assert same[: 200 + delay + 1].all() and not same[200 + delay + 1 :].all()


@pytest.mark.parametrize(
    "x, y, says",
    [
        (1000.0, 1.0, r"b is 1000 and \[input\] max_abs is 100; raise that limit or scale"),
        (1.0, 60.0, r"y is 60 and \[label\] max_abs is 50; raise that limit or scale"),
    ],
)
def test_a_model_that_keeps_refusing_says_so(x, y, says):
    import re

    simulation = Simulation(spec())
    for _ in range(3):
        list(simulation.run(np.full((50, 2), [0.5, x]), np.full(50, y)))
    assert simulation.streak == 150 and re.search(says, simulation.warning) and "m_reset()" in simulation.warning
    list(simulation.run(np.array([[0.1, 0.2]]), np.array([1.0])))
    assert simulation.warning is None and simulation.longest_streak == 150


@pytest.mark.parametrize(
    "settings_, says",
    [
        ({"delay": -1}, "delay is -1"),
        ({"delay": 10**9}, "delay is 1000000000"),
        ({"refresh_every": -2}, "refresh-every is -2"),
    ],
)
def test_impossible_settings_are_refused(settings_, says):
    with pytest.raises(UserError, match=says):
        Simulation(spec(), **settings_)
    with pytest.raises(UserError, match="nt has nothing to refresh"):
        Simulation(spec("nt"), refresh_every=5)
