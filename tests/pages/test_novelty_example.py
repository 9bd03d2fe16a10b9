"""docs/guide/monitor-settings.md: the example of examples/novelty runs, the firmware does what the simulation does, the tables are the results."""

from __future__ import annotations

import re
import sys
import tomllib

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from benchmarks.host import alarms
from benchmarks.tables import DATA, DOCS, load, read
from pykernel import check, load_spec
from pykernel.algorithms.novelty.state import GmmStatus
from pykernel.spec.model import make_spec
from tests.support import ROOT
from tests.support.compilers import QUICK
from tests.support.pages import stand

EXAMPLE = ROOT / "examples" / "novelty"
FOLDER = DATA / "novelty"
sys.path.insert(0, str(EXAMPLE))

import run  # noqa: E402
from machine import FAULTS, SENSORS, Drive, inside  # noqa: E402

SPEC = load_spec(EXAMPLE / "monitor.toml")
TEXT = read(DOCS / "guide/monitor-settings.md")
WORDS = " ".join(TEXT.split())
OUTPUT = (FOLDER / "output.txt").read_text(encoding="utf-8")


# ---------------------------------------------------------------------------------------------------------- the page


def test_the_pages_blocks_are_the_results() -> None:
    made = alarms.tables(*(load(DATA / f"alarms-{name}.csv") for name in ("lives", "rivals")))
    assert stand(made)
    files = re.findall(r"\]\(\.\./(data/[\w./-]+)\)", TEXT)
    assert files and all((ROOT / "docs" / file).is_file() for file in files)


def test_the_examples_cost_is_what_it_printed() -> None:
    said = " ".join(OUTPUT.split())
    ((mean, most),) = re.findall(r"update: ([\d,]+) instructions, at most ([\d,]+)", said)
    ((flash, compiler, level),) = re.findall(r"([\d,]+) bytes of flash, .*? \((\w+) .*? (-O\d)\)", said)
    assert f"an update of this monitor takes {mean} instructions on average, and at most {most}." in WORDS
    assert f"Compiled by {compiler} with `{level}`, the code of this monitor takes {flash} bytes of flash." in WORDS


def test_the_text_is_of_these_results() -> None:
    assert len(alarms.raw_streams()) == 40 and "into 40 recorded streams and the data of two simulated pumps" in WORDS
    streams = {row["streams"].rpartition(",")[0] for row in load(DATA / "alarms-rivals.csv")}
    assert streams == {"raw streams", "pumps"}


def test_the_monitor_keeps_its_rate_and_sees_repeated_faults() -> None:
    """What monitor-settings.md promises of `life = "known"`, of the measured lives."""
    value = {row["what"]: float(row["value"]) for row in load(DATA / "alarms-lives.csv") if row["life"] == "known"}
    for rate in ("5 %", "1 %", "0.1 %"):
        assert value[f"normal throughout, {rate}: most"] < 3, rate
    assert value["8 deviations in 40 of 150 rows: of bursts 301 to 400"] > 0.8


def test_numbers_in_the_text() -> None:
    (written,) = (tomllib.loads(text) for text in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL))
    spec, bare = make_spec(written), make_spec({key: written[key] for key in ("name", "input")} | {"novelty": {}})
    assert spec == bare and SPEC.learning.rule == bare.learning.rule == "gmm"
    defaults = {f"[novelty] {key}": getattr(bare.novelty, key) for key in type(bare.novelty).model_fields}
    defaults["[learning] components"] = bare.learning.components
    for key, value in defaults.items():
        assert f"| `{key}` | {value} |" in WORDS, key
    assert bare.input.max_abs == 1e12 and "| `[input] max_abs` | 10¹² |" in WORDS
    named = make_spec(written | {"learning": {"rule": "gmm", "components": 8}})
    assert named.input.max_abs == 1e6 and "the default of `max_abs` is 10⁶ instead of 10¹²" in WORDS
    found = bare.family.parameters(bare)
    assert found["patience"] == 20 and "(in the warm-up, 20 rows)" in WORDS
    assert found["relearn_soon"] == bare.novelty.relearn_after // 6 and "only `relearn_after` / 6 rows" in WORDS
    quiet = 1 / (found["correction"] * found["alarm_rate"])
    assert quiet == pytest.approx(5000) and "the threshold takes thousands of rows to fall" in WORDS
    assert bare.novelty.warmup + bare.novelty.commissioning == 2000 and "in the first 2,000 rows" in WORDS
    kinds = {status.name for status in GmmStatus if GmmStatus.UNKNOWN <= status <= GmmStatus.REGIME}
    assert kinds == set(re.findall(r"^\| `([A-Z]+)` \|", TEXT, re.MULTILINE))


# -------------------------------------------------------------------------------------------------------- the example


@pytest.mark.exhaustive
def test_the_tour_is_what_the_page_shows() -> None:
    """The simulation of today gives the lines of output.txt."""
    course, _ = run.simulate(SPEC, run.record())
    lines = [line.rstrip() for line in run.happened(course, run.TOUR)]
    assert OUTPUT.splitlines()[-len(lines) :] == lines
    # what the page says of it
    starts = np.cumsum([0, *(part.rows for part in run.TOUR)])
    where = {part.text: slice(*starts[i : i + 2]) for i, part in enumerate(run.TOUR)}
    in_alarm = {text: int(course.alarms[here].sum()) for text, here in where.items() if text != "normal"}
    stuck = where["stuck band 3"]
    assert SENSORS[course.shares[stuck].sum(axis=0).argmax()] == "band3"
    assert (course.statuses[stuck] == run.HELD).sum() <= SPEC.novelty.relearn_after < stuck.stop - stuck.start
    assert 0 < in_alarm["another brake, acknowledged"] < 200 and in_alarm["imbalance again"] > 0


def test_the_pieces_of_a_stream_are_its_rows_and_buttons() -> None:
    stream = run.record()
    pieces = list(stream.pieces())
    assert np.array_equal(np.concatenate([rows for rows, _ in pieces]), stream.rows)
    assert [name for _, name in pieces] == ["reject", "acknowledge", ""]


@pytest.mark.exhaustive
def test_the_firmware_says_what_the_simulation_says(tmp_path) -> None:
    pytest.importorskip("unicorn")
    from pykernel import generate

    content = SPEC.model_dump(exclude_unset=True)
    content["novelty"] |= {"warmup": 200, "false_alarm_rate": 0.01}
    spec, fault = type(SPEC).model_validate(content), run.fault("imbalance, large")
    parts = (
        *(run.Part(300, "normal"), run.Part(60, "imbalance", fault, "r", 8)),
        *(run.Part(100, "normal"), run.Part(60, "drag", run.fault("drag, large"), "a", 8), run.Part(100, "normal")),
    )
    stream = run.record(parts)
    generate(spec, tmp_path / "monitor")
    course, _ = run.simulate(spec, stream)
    assert course.alarms.sum() > 10 and (course.statuses == run.HELD).any()
    assert run.run_firmware(tmp_path, stream) == run.said(course)
    assert run.emulate(spec, run.Record(stream.rows[:380], stream.gears[:380], stream.buttons[:380]))["equal"]
    report = check(spec, samples=3000, levels=("-O2",), compilers=[QUICK[0].name])
    assert report.ok, report.rows


def test_faults_are_what_they_are_called() -> None:
    machine = Drive(1)
    normal = machine.run(6000).x
    shares = {f.name: inside(machine.copy(2).run(300, f).x, normal) for f in FAULTS}
    assert all(shares[f"slip, {grade}"] > 0.7 for grade in ("small", "medium", "large")), shares
    # what the page says of the tour's faults
    assert shares["stuck, whole"] > 0.9 and shares["drag, large"] > 0.75 and shares["imbalance, large"] < 0.1
    assert "every sensor stays in its normal range in most rows" in WORDS
    # a copy goes on as the original would
    a, b = machine.copy(3), machine.copy(3)
    assert np.array_equal(a.run(50).x, b.run(50).x) and a.run(5).x.shape == (5, len(SENSORS))
