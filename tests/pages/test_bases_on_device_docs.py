"""docs/bases-on-device.md says what was measured, what the C takes, and what its example prints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.gen.project import build
from pykernel.spec.model import load_spec, make_spec
from tests.support.pages import blocks, commands_print, measured, table, text_of

PAGE = text_of("bases-on-device.md")
METHODS = ("eigenvalues", "SGMA, 59 candidates", *["stream"] * 5, "sgma on the device", "efvs on the device")
METHODS += ("randomly pivoted Cholesky", "uniform")
ROWS = ("", "", "200", "6N", "3N", "2N", "N", "200", "200", "", "")


# ------------------------------------------------------------------------------------------------- what it costs


def test_costs_are_as_measured() -> None:
    rows = measured("streaming-cost.csv")
    keys = ("state_bytes", "ram_bytes", "flash_bytes", "predict", "update", "added", "tried", "replaced", "select")
    expected = [
        [row["method"], row["n"], row["rows"], *(f"{int(row[key]):,}" if row[key] else "" for key in keys)]
        for row in rows
    ]
    assert table(PAGE, "## Instructions") == expected
    assert {(row["n"], row["method"]) for row in rows} >= {(n, "stream") for n in ("16", "32", "64")}
    assert {row["target"] for row in rows} == {"cortex-m4f"} and all(row["compiler"] in PAGE for row in rows)
    for row in rows:
        if row["method"] == "stream" and row["n"] == "32":
            assert 2 * int(row["replaced"]) / 168e6 < 10e-3


@pytest.mark.exhaustive
@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("forgetting", [1.0, 0.99])
def test_memory_is_as_the_formulas_say(forgetting: float, outputs: int) -> None:
    names = {"D": 3, "N": 5, "M": 12, "Y": outputs}
    vectors = np.random.default_rng(0).normal(size=(5, 3)).round(2)

    def value(text: str) -> int:
        text = re.sub(r"([\w)]) (?=\()", r"\1 * ", text)
        text = re.sub(r"(\w+) (?=[A-Z])", r"\1 * ", text)
        found = eval(text, {"__builtins__": {}}, names)
        assert float(found).is_integer()
        return int(found)

    seen = []
    for row in table(PAGE, "## Memory"):
        for method in re.findall(r"`(\w+)`", row[0]):
            learning: dict[str, Any] = {"rule": "nystrom" if method == "nystrom" else "nystrom-rls"}
            content: dict[str, Any] = {"name": "m", "input": {"dim": 3, "max_abs": 10.0}, "kernel": {"sigma": 1.0}}
            content["label"] = {"outputs": outputs}
            if learning["rule"] == "nystrom":
                weights = np.ones((5, outputs)).tolist()
                content["expansion"] = {"vectors": vectors.tolist(), "weights": weights, "bias": [1.0] * outputs}
            else:
                learning["forgetting"] = forgetting
                content["basis"] = {"method": method}
                if "cache = false" in row[0]:
                    content["basis"]["cache"] = False
                if method == "given":
                    content["expansion"] = {"vectors": vectors.tolist()}
                else:
                    learning["samples"] = 12
                    content["reduction"] = {"n_max": 5}
            figures = build(make_spec(content | {"learning": learning})).figures
            state = 0 if row[1] == "none" else value(row[1]) + int(forgetting < 1)
            constants = 0 if row[3] == "none" else value(row[3])
            assert figures["state_bytes"] == 4 * state, method
            assert figures["work_bytes"] == 4 * value(row[2]), method
            assert figures["const_bytes"] == 4 * constants, method
            seen.append(method)
    assert seen == ["nystrom", "given", "stream", "stream", "efvs", "sgma"]


# ------------------------------------------------------------------------------------------------- how good it is


def held_out(data: str, n: str, method: str, rows: str) -> float:
    (found,) = (
        row
        for row in measured("streaming-quality.csv")
        if (row["data"], row["n"], row["method"], row["rows"]) == (data, n, method, rows)
    )
    return float(found["held_out"])


def test_quality_is_as_measured() -> None:
    found = table(PAGE, "## How good")
    assert [row[:2] for row in found] == [
        [d, n] for d in ("abalone", "boston", "bikeshare") for n in ("16", "32", "64")
    ]
    for data, n, *cells in found:
        expected = [held_out(data, n, method, rows) for method, rows in zip(METHODS, ROWS, strict=True)]
        assert cells == [f"{value:.4f}".lstrip("0") for value in expected]


def test_what_the_page_says_of_the_quality_holds() -> None:
    for data in ("abalone", "boston", "bikeshare"):
        for n in ("16", "32", "64"):
            best, pivots = (held_out(data, n, m, "") for m in ("SGMA, 59 candidates", "randomly pivoted Cholesky"))
            assert best <= held_out(data, n, "stream", "3N") <= pivots
            if (data, n) != ("boston", "64"):
                assert best <= held_out(data, n, "stream", "6N") <= pivots
            assert held_out(data, n, "stream", "N") > 0.9 * pivots
            single = [held_out(data, n, method, "3N") for method in ("stream", "stream, float64")]
            assert abs(single[0] - single[1]) <= 0.0005
        assert held_out(data, "16", "sgma on the device", "200") < 1.05 * held_out(data, "16", "stream", "200")
        assert held_out(data, "64", "sgma on the device", "200") > held_out(data, "64", "stream", "200")
    assert held_out("abalone", "16", "stream", "200") < 1.02 * held_out("abalone", "16", "SGMA, 59 candidates", "")


# ------------------------------------------------------------------------------------------------------ its example


def test_the_specs_of_the_page_are_specs(tmp_path: Path) -> None:
    found = [text for _, language, text in blocks(PAGE) if language == "toml"]
    assert len(found) == 1
    for i, text in enumerate(found):
        (tmp_path / f"{i}.toml").write_text(text)
        load_spec(tmp_path / f"{i}.toml")


@pytest.mark.exhaustive
def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    assert commands_print(PAGE, tmp_path) == 1
