"""Streams against slow twins that read line by line and keep everything."""

import io
import os
import stat

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.errors import UserError
from pykernel.expansion import Status
from pykernel.host import HostModel
from pykernel.spec import make_spec
from pykernel.streams import BATCH, Errors, Simulation, prediction_lines, read_samples, whole_file

pytestmark = pytest.mark.usefixtures("compiled")
INPUTS, LABEL = ("a", "b"), "y"


def read(text, rows=BATCH):
    data = text.encode() if isinstance(text, str) else text
    batches = list(read_samples(io.BytesIO(data), "data.csv", INPUTS, LABEL, rows))
    return np.concatenate([b.x for b in batches]), np.concatenate([b.y for b in batches]), batches


def spec(technique="mklms", n_max=6, **changes):
    content = {
        "name": "m",
        "input": {"columns": list(INPUTS), "limit": 100.0},
        "label": {"column": LABEL, "limit": 50.0},
        "kernel": {"sigma": 1.0},
        "reduction": {"technique": technique, "n_max": n_max},
    }
    return make_spec(content | changes)


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


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "data.csv: is empty; its first line must name the columns, such as a,b,y"),
        ("\n\n", "is empty"),
        ("a,b,y\n", "holds a header but no rows"),
        ("a,c,y\n1,2,3\n", "line 1: names no column 'b'; it names 'a', 'c', 'y'"),
        ("a,B,y\n1,2,3\n", "did you mean|it names 'a', 'B', 'y'"),
        ("a,bb,y\n1,2,3\n", "did you mean 'bb'"),
        ("1,2,3\n1,2,3\n", "it holds numbers; put a line with the columns' names before it"),
        ("a;b;y\n1;2;3\n", "separated by semicolons; separate them by commas"),
        ("a,b,a,y\n1,2,3,4\n", "line 1: names the column 'a' 2 times; rename all but one"),
        ("a,b,y\n1,2,3\n1,2\n", "line 3: has 2 cells, but the header names 3 columns"),
        ("a,b,y\n1,2,3,\n", "line 2: has 4 cells"),
        ("a,b,y\n1,2,3\n\n1,two,3\n", "line 4: column 'b' is 'two', not a number; correct the cell"),
        ("a,b,y\n1,2,three\n", "line 2: column 'y' is 'three', not a number"),
        ('a,b,y\n1,"2,5",3\n', "line 2: column 'b' is '2,5', not a number; write a point"),
        ("a,b,y\n1,,3\n", "line 2: column 'b' is empty; write nan"),
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


def test_the_place_is_told_beyond_the_first_batch():
    text = "a,b,y\n" + "1,2,3\n" * 10 + "1,2,oops\n"
    with pytest.raises(UserError, match="line 12: column 'y' is 'oops'"):
        read(text, rows=4)


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


# --------------------------------------------------------------------------------------------------------- writing


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.csv"
    path.write_text("before")
    with pytest.raises(RuntimeError), whole_file(path) as file:
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "before"
    with whole_file(path) as file:
        file.write(b"after")
    assert path.read_text() == "after"
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]


def test_links_folders_and_devices_are_not_replaced(tmp_path):
    target = tmp_path / "target"
    target.write_text("kept")
    (tmp_path / "link").symlink_to(target)
    for path, kind in ((tmp_path / "link", "link"), (tmp_path, "folder"), ("/dev/null", "device")):
        with pytest.raises(UserError, match=f"is a {kind}"), whole_file(path):
            pass
    with pytest.raises(UserError, match="No such file"), whole_file(tmp_path / "absent" / "out.csv"):
        pass
    assert target.read_text() == "kept" and (tmp_path / "link").is_symlink()


# ---------------------------------------------------------------------------------------------------------- errors


@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.integers(0, 99))
def test_sums_of_errors_are_those_of_the_whole_table(parts, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(sum(parts), 2))
    table[rng.random(len(table)) < 0.2, rng.integers(0, 2)] = np.nan
    errors, start = Errors(("p", "q"), moments=64), 0
    for rows in parts:
        errors.add(table[start : start + rows])
        start += rows
    assert errors.rows == len(table) and len(errors.sums) <= 64
    for first in (0, len(table) // 2, len(table) - 1):
        summary = errors.summary(first)
        assert first - errors.spacing < summary["first_row"] <= first
        rest = table[summary["first_row"] :]
        rest = rest[np.isfinite(rest).all(axis=1)]
        assert summary["scored"] == len(rest)
        for i, name in enumerate("pq"):
            if len(rest):
                assert summary["mae"][name] == pytest.approx(np.abs(rest[:, i]).mean())
                assert summary["rmse"][name] == pytest.approx(np.sqrt((rest[:, i] ** 2).mean()))
            else:
                assert summary["mae"][name] is None
    middles, curve = errors.curve(5)
    assert curve.shape == (len(middles), 2) and (np.diff(middles) > 0).all()


# ------------------------------------------------------------------------------------------------------ simulation


def twin(a_spec, x, y, delay, refresh_every):
    """One row at a time, everything kept."""
    model, known, rows, statuses = HostModel(a_spec), [], [], {}
    for t in range(len(x)):
        prediction = model.predict(x[t])[0]
        last, mean = (known[-1], np.mean(known)) if known else (0.0, 0.0)
        status = None
        if t >= delay:
            status = Status(model.learn(x[t - delay], y[t - delay])[0])
            label = np.float32(y[t - delay])
            if np.isnan(label):
                status = None
            else:
                statuses[status.name.lower()] = statuses.get(status.name.lower(), 0) + 1
                if abs(label) <= a_spec.label.limit:
                    known.append(float(label))
        truth = np.float32(y[t])
        scored = abs(truth) <= a_spec.label.limit and not np.isnan(prediction)
        rows.append(
            (prediction, status, [abs(float(p) - float(truth)) for p in (prediction, last, mean)] if scored else None)
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
    scored = np.array([row[2] for row in rows if row[2]], float).reshape(-1, 3)
    assert report["all"]["scored"] == len(scored)
    if len(scored):
        np.testing.assert_allclose(list(report["all"]["mae"].values()), scored.mean(axis=0), rtol=1e-9)
    cells = [line.split(",") for line in lines.splitlines()]
    assert [cell[0] for cell in cells] == [str(t) for t in range(samples)]
    assert [cell[3] for cell in cells] == ["" if row[1] is None else row[1].name.lower() for row in rows]
    assert [np.float32(cell[1] or "nan").tobytes() for cell in cells] == [np.float32(row[0]).tobytes() for row in rows]


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
        (1000.0, 1.0, r"b is 1000 and \[input\] limit is 100; raise that limit or scale"),
        (1.0, 60.0, r"y is 60 and \[label\] limit is 50; raise that limit or scale"),
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
