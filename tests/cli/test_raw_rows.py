"""Of raw signals: which raw row, and which second, a step and an alarm end with, also behind gaps; and a warm-up that is over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pykernel.spec.model import load_spec

SPEC = """name = "pump"
[signal]
channels = ["a", "b"]
window = 32
hop = 8
rate = 100
max_abs = 50
features = ["rms", "mean"]
bands = [[5, 20]]
[novelty]
warmup = 60
"""


def test_steps_and_alarms_are_told_with_their_raw_rows_and_seconds(
    tmp_path: Path, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pump.toml").write_text(SPEC)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 2))
    x[3000:3200] += 9
    lines = [f"{a:.6g},{b:.6g}" for a, b in x]
    for row in (0, 700, 701, 1500, 2999):
        lines[row] = ","
    Path("all.csv").write_text("a,b\n" + "\n".join(lines) + "\n")
    code, out, err = run("simulate", "pump.toml", "all.csv", "--output", "out.csv", "--json")
    assert code == 0, err
    told = np.genfromtxt("out.csv", delimiter=",", names=True, usecols=(0, 1))
    # by brute force: a step ends at a row behind 32 rows without a gap, and each 8 rows from there on
    expected, since = [], 0
    for row, line in enumerate(lines):
        since = 0 if line == "," else since + 1
        if since >= 32 and (since - 32) % 8 == 0:
            expected.append(row)
    assert told["raw_row"].tolist() == expected and told["row"].tolist() == list(range(len(expected)))
    surest = max(json.loads(out)["alarms"]["listed"], key=lambda alarm: alarm["level"])
    assert (
        surest["first_raw_row"] == expected[surest["first_row"]]
        and surest["last_raw_row"] == expected[surest["last_row"]]
    )
    assert surest["from_seconds"] == surest["first_raw_row"] / 100 and 30 <= surest["from_seconds"] < 31
    assert f"{surest['from_seconds']:.2f}" in run("simulate", "pump.toml", "all.csv")[1]

    # what goes on from a learned state has no warm-up: its first rows are judged, too
    Path("first.csv").write_text("a,b\n" + "\n".join(lines[:2000]) + "\n")
    Path("later.csv").write_text("a,b\n" + "\n".join(lines[2000:]) + "\n")
    assert run("simulate", "pump.toml", "first.csv", "--save", "first.bin")[0] == 0
    report = json.loads(run("simulate", "pump.toml", "later.csv", "--start", "first.bin", "--json")[1])
    assert report["alarms"]["judged"] == report["rows"]
    new = json.loads(run("simulate", "pump.toml", "later.csv", "--json")[1])
    assert new["alarms"]["judged"] == new["rows"] - load_spec("pump.toml").novelty.warmup
