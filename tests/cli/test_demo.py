"""The demo's claims, and that its output is what it says."""

import csv
import functools
import json
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.host import bikeshare as stream
from pykernel.workflows import demo
from tests.support.compilers import QUICK


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    told, out = [], tmp_path_factory.mktemp("demo") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "check", functools.partial(demo.check, levels=("-O2",), compilers=[QUICK[0].name]))
        made, _ = demo.run_demo(out, progress=lambda part, what: told.append((part, what)))
    assert [part for part, _ in told] == sorted(part for part, _ in told) and told[-1][0] == 1
    return made


def test_the_features_are_what_the_readme_of_the_data_says():
    x, y, names = stream.bikeshare()
    assert x.shape == (8645, 8) and y.shape == (8645,) and len(names) == 8
    with resources.files("pykernel.data").joinpath("bikeshare.csv").open() as file:
        rows = list(csv.DictReader(file))
    for i in (0, 17, 5000, 8644):
        row, got = {k: float(v) for k, v in rows[i].items()}, dict(zip(names, x[i], strict=True))
        assert np.arctan2(got["hour_sin"], got["hour_cos"]) % (2 * np.pi) == pytest.approx(row["hour"] * np.pi / 12)
        assert got["halfday_sin"] == pytest.approx(2 * got["hour_sin"] * got["hour_cos"], abs=1e-12)
        assert got["halfday_cos"] == pytest.approx(got["hour_cos"] ** 2 - got["hour_sin"] ** 2, abs=1e-12)
        assert (got["workingday"] + 1) / 2 == row["workingday"] and y[i] == row["rentals"]
        assert (got["temperature"] + 2) / 4 == pytest.approx(row["temperature"])
        assert (got["humidity"] + 1) / 2 == pytest.approx(row["humidity"]) and got["weather"] + 0.5 == row["weather"]


@pytest.mark.exhaustive
def test_a_budgeted_model_beats_every_baseline(result):
    error = {row["predictor"]: row["mae"] for row in result["accuracy"]}
    # the baselines as measured once with other code
    expected = {
        "the default, spectrum-ekf": 36.5,
        "last hour": 55.5,
        "same hour yesterday": 57.8,
        "running mean": 111.3,
        "linear RLS": 69.3,
        "quadratic RLS": 49.7,
    }
    assert error.keys() == expected.keys()
    for name, value in expected.items():
        assert error[name] == pytest.approx(value, rel=0.015), name


@pytest.mark.exhaustive
def test_the_c_does_the_same(result):
    assert result["ok"] and all(row["equal"] for row in result["check"])
    assert {row["samples"] for row in result["check"] if "target" not in row} == {8645}
    assert all(Path(file).is_file() for file in result["files"])


@pytest.mark.exhaustive
def test_the_next_commands_work_and_repeat_the_run(result, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["simulate", result["spec"], result["csv"], "--json"])
    report = json.loads(capsys.readouterr().out)
    assert stopped.value.code == 0
    assert report["second_half"]["mae"]["model"] == pytest.approx(result["accuracy"][0]["mae"], rel=1e-9)
    assert report["second_half"]["mae"]["last label"] == pytest.approx(result["accuracy"][1]["mae"], rel=1e-9)
    assert report["statuses"] == result["statuses"]


@pytest.mark.exhaustive
def test_the_report_has_the_errors_of_every_week(result):
    page = Path(result["report"]).read_text(encoding="utf-8")
    names = re.findall(r'data-name="([^"]*)"', page)
    assert names == [
        "the default, spectrum-ekf",
        "last hour",
        "same hour yesterday",
        "linear RLS",
        "quadratic RLS",
        "predicted",
        "rented",
    ]
    points = [len(re.findall(r"-?\d+", d)) // 2 for d in re.findall(r' d="([^"]*)"', page)]
    assert points == [8645 // 168] * 5 + [168] * 2


def test_impossible_requests(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="this folder cannot be created"):
        demo.run_demo(tmp_path / "file")


def test_trivial_baselines_use_only_the_past():
    y = np.array([3.0, 5.0, 10.0])
    np.testing.assert_array_equal(stream.lagged(y, 1), [0, 3, 5])
    np.testing.assert_array_equal(stream.running_mean(y), [0, 3, 4])
