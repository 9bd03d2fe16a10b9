"""docs/training-on-device.md says what was measured, and what the C takes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from pykernel.gen.project import build
from pykernel.spec.families.batch import LEAST, LEAST_OF_TRACE
from pykernel.spec.model import make_spec
from tests.support.pages import measured, table, text_of

PAGE = text_of("training-on-device.md")


def test_the_least_ridges_are_those_of_the_page():
    first, second = table(PAGE, "## The least ridge")
    assert [float(cell) for cell in first[1:]] == [LEAST["float32"], LEAST["float64"]]
    assert [float(cell) for cell in second[1:]] == [LEAST_OF_TRACE["float32"], LEAST_OF_TRACE["float64"]]


def test_errors_are_as_measured():
    rows = measured("training-limits.csv")
    found = table(PAGE, "The table shows the largest relative errors of float32")
    assert [float(row[0]) for row in found] == sorted({float(row["part"]) for row in rows})
    for part, *cells in found:
        for cell, (dense, error) in zip(
            cells, ((d, e) for d in (True, False) for e in ("prediction_error", "press_error")), strict=True
        ):
            worst = max(
                float(r[error]) for r in rows if float(r["part"]) == float(part) and (r["rule"] != "kfd") == dense
            )
            assert cell == f"{worst:.1e}"


def test_accepted_ridges_keep_two_digits_of_the_leave_one_out_error():
    for row in measured("training-limits.csv"):
        least = (LEAST_OF_TRACE if row["rule"] == "kfd" else LEAST)["float32"]
        if float(row["part"]) >= least:
            assert float(row["press_error"]) < 1e-2 and float(row["prediction_error"]) < 1e-2, row


def test_costs_are_as_measured():
    rows = measured("training-cost.csv")
    keys = ("target", "rule", "size", "state_bytes", "ram_bytes", "predict", "update", "train", "assess")
    expected = [
        [row[key] if key in ("target", "rule") or not row[key] else f"{int(row[key]):,}" for key in keys]
        for row in rows
    ]
    assert table(PAGE, "The next table is for four inputs") == expected
    assert all(row["compiler"] in PAGE for row in rows)


@pytest.mark.in_turn
@pytest.mark.parametrize("classes", [None, 2, 3])
@pytest.mark.parametrize("rule", ["krr", "ls-svm", "kfd"])
def test_memory_is_as_the_formulas_say(rule: str, classes: int | None) -> None:
    if rule == "kfd" and classes is None:
        return
    dim, size, outputs = 3, 8, {None: 2, 2: 1, 3: 3}[classes]
    content: dict[str, Any] = {
        "name": "m",
        "input": {"dim": dim},
        "label": {"classes": [f"c{i}" for i in range(classes)]} if classes else {"outputs": 2},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": rule, "ridge": 1.0},
    }
    names = {"DIM": dim, "OUTPUTS": outputs, "CLASSES": classes, "L": size, "P": size}
    if rule == "kfd":
        content["expansion"] = {"vectors": np.eye(size, dim).tolist()}
    else:
        content["learning"]["samples"] = size
    formulas = table(PAGE, "## What it costs")

    def words(row: int) -> int:
        cell = formulas[row][2 if rule == "kfd" else 1]
        parts = cell.split(", or ")
        text = parts[1].removesuffix(" for classes") if classes and len(parts) > 1 else parts[0]
        text = re.sub(r"([\w)]) (?=\()", r"\1 * ", text)
        text = re.sub(r"(\w+) (?=[A-Z])", r"\1 * ", text)
        value = eval(text, {"__builtins__": {}}, names)
        assert float(value).is_integer()
        return int(value)

    figures = build(make_spec(content)).figures
    counters = 0 if rule == "kfd" else 2
    assert figures["state_bytes"] == 4 * (words(0) + counters + words(1))
    assert figures["work_bytes"] == 4 * words(2)
