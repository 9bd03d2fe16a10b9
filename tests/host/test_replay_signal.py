"""Replay of raw rows: what the C answered to them, gaps, labels that come later; and a row that was changed."""

import io

import numpy as np
import pytest

from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference
from pykernel.gen.compilers import compiler, find_compilers
from pykernel.gen.project import build, state_hash
from pykernel.gen.streams import raw_stream
from pykernel.host.model import HostModel
from pykernel.host.replay import Replay, log_header, log_rows, read_log
from pykernel.spec.model import make_spec
from pykernel.targets.board import BoardModel, Link
from pykernel.targets.check import write_log
from tests.support import boards

SIGNAL = {"channels": ["a", "b"], "window": 8, "hop": 4, "features": ["mean", "rms"], "periods": [24]}
KINDS = {
    "forecast": {"label": {"column": "b"}, "learning": {"rule": "rls"}},
    "numbers": {"label": {"column": "y"}, "learning": {"rule": "nlms"}},
    "classes": {"label": {"column": "y", "classes": ["off", "on"]}, "reduction": {"n_max": 6}},
    "monitor": {"novelty": {"warmup": 20}},
}


def spec_of(kind):
    return make_spec({"name": "gauge", "signal": SIGNAL, **KINDS[kind]})


def run(log, spec, batch=64):
    replay = Replay(spec)
    for rows in read_log(io.BytesIO(log.encode()), "log.csv", spec, batch):
        replay.run(rows)
    return replay


def text_of(lines):
    return "".join(",".join(line) + "\n" for line in lines)


@pytest.mark.skipif(not find_compilers(), reason="needs a C compiler")
@pytest.mark.in_turn
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_c_logged_of_raw_rows_replays_and_a_changed_cell_is_found(kind):
    """As `check --board --log` writes it: NaN, infinities and saturation among the rows."""
    spec = spec_of(kind)
    x, y = raw_stream(spec, 600, seed=3)
    device = CModel(build(spec), compiler("gcc"), ("-O1",))
    device.call("init")
    lines = [log_header(spec)]
    for start in range(0, len(x), 100):
        part = slice(start, start + 100)
        answers, statuses = device.prequential(x[part], y[part])
        lines += log_rows(spec, x[part], y[part], answers, statuses, device.call("hash") & 0xFFFFFFFF)
    replay = run(text_of(lines), spec)
    assert replay.difference is None and replay.updates == 600 and replay.exact
    assert replay.compared["status"] == 600 and replay.compared["state_hash"] == 6
    assert run(text_of(lines), spec, batch=7).hash == replay.hash
    at = lines[0].index("a")
    for line in lines[301:]:  # the first accepted number from there on
        if abs(float(line[at])) < 1:
            line[at] = "2.5"
            break
    found = run(text_of(lines), spec).difference
    assert found is not None and 299 < found.row < 400 and (found.after, found.kind) >= (299, "")


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("kind", ["numbers", "classes"])
def test_gaps_and_labels_that_come_later(kind):
    """NAME_push of rows without a label, NAME_label alone, NAME_gap as a call; against the same calls, one by one."""
    spec = spec_of(kind)
    x = np.random.default_rng(4).normal(size=(200, 2)).astype(np.float32)
    device = HostModel(spec, build(spec).drop, "python")
    lines = [["a", "b", "label", "call", "status", "state_hash"]]

    def does(name, *arguments, cells):
        status = int(device.executor.call(spec.program.entry(name), *arguments))
        lines.append([*cells, str(status), f"{state_hash(spec, device.memory):08x}"])
        return status

    for t, row in enumerate(x):
        numbers = [f"{value:.9g}" for value in row]
        if t % 50 == 40:
            does("gap", 3, cells=["", "", "", "gap 3"])
        if t % 3 == 0:
            label = int(row[0] > 0) if kind == "classes" else np.float32(row[0])
            does("push_labelled", row, label, cells=[*numbers, f"{label:.9g}", ""])
        elif does("push", row, cells=[*numbers, "", ""]) > 0:
            label = int(row[1] > 0) if kind == "classes" else np.float32(row[1])
            does("label", label, cells=["", "", f"{label:.9g}", ""])
    replay = run(text_of(lines), spec)
    assert replay.difference is None and replay.updates == 200
    assert replay.compared["state_hash"] == replay.compared["status"] == len(lines) - 1 > 210
    without = [line for line in lines if line[3] != "gap 3"]
    assert run(text_of(without), spec).difference.kind in ("status", "state_hash")


@pytest.mark.skipif(not find_compilers(), reason="needs a C compiler")
@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_board_logged_of_raw_rows_replays(kind, tmp_path):
    spec = spec_of(kind)
    project = build(spec, also=("check",))
    line = boards.Pipe(boards.on_this_pc(project, tmp_path))
    log = io.StringIO()
    try:
        model = BoardModel(project, Link("the board", line, int(project.figures["config_hash"], 16)))
        x, y = raw_stream(spec, 200, 2)
        assert Reference(project, None, x, y).verdict(model)["equal"]
        write_log(log, model, x, y)
    finally:
        line.close()
    replay = run(log.getvalue(), spec)
    assert replay.difference is None and replay.updates == replay.compared["status"] == 200
