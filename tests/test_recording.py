"""From a device to a table: the recorder's C, its frames, and ``pykernel table`` at a port."""

import contextlib
import csv
import io
import itertools
import json
import os
import pty
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import tty
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.errors import UserError
from pykernel.gen.compilers import compile_c, find_compilers
from pykernel.gen.write import write_files
from pykernel.rows.frames import FORMAT, PARTS, Frames, decoded, logged
from pykernel.spec.model import make_spec
from pykernel.targets.board import coded
from pykernel.tuning.tables import infer
from pykernel.workflows import record
from pykernel.workflows.record import is_recording
from pykernel.workflows.requests import TableOf
from pykernel.workflows.table import run as table
from tests.support.built import built
from tests.support.every_model import MODELS, content_of

MAIN = """
#include "NAME_log.h"
#include <stdio.h>
static NAME_log_t recorder;
static void send(void *to, const uint8_t *bytes, uint32_t count)
{
    (void)fwrite(bytes, 1, count, (FILE *)to);
}
int main(void)
{
    static struct { FIELDS } given;
    uint8_t parts;
    NAME_log_begin(&recorder, send, stdout);
    while (fread(&parts, 1, 1, stdin) == 1 && READS) {
        NAME_row_t row = {0};
        SETS
        NAME_log(&recorder, &row);
    }
    NAME_log_call(&recorder, "freeze 1");
    return 0;
}
"""


def recorder(spec, folder, kinds):
    """A program that records rows with parts of these kinds, part -> (C type, count), which it reads from its input."""
    write_files(folder / "m", built(spec, ("recorder",)).files)
    text = MAIN.replace("NAME", spec.name)
    fields = "".join(f"{kind} {part}[{count}]; " for part, (kind, count) in kinds.items())
    reads = " && ".join(f"fread(given.{part}, sizeof given.{part}, 1, stdin) == 1" for part in kinds)
    sets = "".join(f"if (parts & {1 << PARTS.index(part)}) {{ row.{part} = given.{part}; }} " for part in kinds)
    (folder / "main.c").write_text(text.replace("FIELDS", fields).replace("READS", reads).replace("SETS", sets))
    sources = [folder / "main.c", *sorted((folder / "m" / "src").glob("*.c"))]
    compile_c(find_compilers()[0], sources, folder / "run", ["-O1", f"-I{folder / 'm' / 'src'}"], ())
    return folder / "run"


@pytest.mark.in_turn(135)
@pytest.mark.parametrize(("rule", "precision", "stage"), MODELS)
def test_what_the_c_records_reads_back(rule, precision, stage, tmp_path):
    """Every model's rows, with any parts and any bits; and no frame is longer than the header says."""
    content = content_of(rule, precision, stage)
    if content is None:
        pytest.skip("the rule has no such stage")
    spec = make_spec(content)
    header = built(spec, ("recorder",)).files[f"src/{spec.name}_log.h"]
    declared = re.findall(r"^    const (\w+) \*(\w+);", header, re.MULTILINE)
    columns = spec.sample_columns or [f"x{j}" for j in range(spec.width)]
    outputs = spec.program.label_array(spec.capacities).shape
    answers = int(np.prod(spec.program.written(spec.program.asks).shape(spec.capacities)))
    counts = {"x": len(columns), "label": outputs[0] if outputs else 1, "answer": answers}
    kinds = {part: (kind, counts.get(part, 1)) for kind, part in declared}
    program, rng = recorder(spec, tmp_path, kinds), np.random.default_rng(0)
    types = {"float": "<f4", "double": "<f8", "int16_t": "<i2", "int32_t": "<i4", "uint32_t": "<u4", "int8_t": "i1"}
    rows, given = [], b""
    for _ in range(60):
        parts, row = int(rng.integers(64)), {}
        given += bytes([parts])
        for part, (kind, count) in kinds.items():
            data = rng.integers(256, size=count * np.dtype(types[kind]).itemsize).astype(np.uint8).tobytes()
            data = data if rng.random() < 0.9 else bytes(len(data))
            given += data
            row[part] = np.frombuffer(data, types[kind]) if parts >> PARTS.index(part) & 1 else None
        rows.append(row)
    sent = subprocess.run([program], input=given, stdout=subprocess.PIPE, check=True).stdout
    most = int(re.search(rf"{spec.name.upper()}_LOG_BYTES (\d+)u", header)[1])
    assert max(map(len, sent.split(b"\0"))) + 2 <= most
    frames = Frames("port")
    told = [each for at in range(0, len(sent), 7) for each in frames.feed(sent[at : at + 7])]
    assert {each.kind for each in told} == {"row"} and (frames.damaged, frames.early) == (0, 0)
    names, *cells = frames.header, *(each.cells for each in told)
    assert names[1 : 1 + len(columns)] == list(columns) and cells[-1][names.index("call")] == "freeze 1"
    order = {"time": [0], "x": range(1, 1 + counts["x"]), "status": [names.index("status")]}
    order["answer"] = range(len(names) - answers, len(names))
    if "label" in kinds:
        order["label"] = range(1 + counts["x"], 1 + counts["x"] + counts["label"])
    if "hash" in kinds:
        order["hash"] = [names.index("state_hash")]
    assert order.keys() == kinds.keys()
    for row, found in zip(rows, cells, strict=False):
        for part, value in row.items():
            texts = [found[at] for at in order[part]]
            if value is None:
                assert texts == [""] * len(texts)
            elif part == "hash":
                assert texts == [f"{value[0]:08x}"]
            elif part == "time":
                assert int(texts[0]) % 2**32 == value[0]
            else:
                again = np.array([float(text) for text in texts]).astype(value.dtype)
                assert (again.tobytes() == value.tobytes()) or np.array_equal(again, value, equal_nan=True)


@given(st.binary(max_size=600))
def test_any_bytes_are_frames_or_not(data):
    assert decoded(coded(data)[:-1]) == data if len(max(data.split(b"\0"), key=len)) < 254 else True
    frames = Frames("port")
    list(frames.feed(data))
    infinite = [each for each in frames.feed(b"\0" + data + b"\0")]
    assert all(each.kind in ("row", "lost", "began") for each in infinite)


# ---------------------------------------------------------------------------------------------------- a made-up device


def framed(content):
    """One frame, with runs of up to 254 bytes."""
    data, out = content + zlib.crc32(content).to_bytes(4, "little"), bytearray()
    for piece in (data + b"\0").split(b"\0")[:-1]:
        while len(piece) >= 254:
            out += b"\xff" + piece[:254]
            piece = piece[254:]
        out += bytes([len(piece) + 1]) + piece
    return b"\0" + bytes(out) + b"\0"


def hello(first=1, names=("ax", "ay", "flow", "prediction"), start=0):
    kind = struct.pack("<3s3sHHHIH", bytes([FORMAT, first, 1]), b"fff", 2, 1, len(names) - 3, 7, start)
    named = (framed(b"N" + struct.pack("<H", i) + name.encode()) for i, name in enumerate(names))
    return framed(b"B" + kind) + b"".join(named)


def row(number, *values, start=0):
    return framed(b"R" + struct.pack("<HIBIfffi", start, number, 1 | 2 | 4 | 16, number * 10 % 2**32, *values, 0))


def rows(first, last, start=0, other=0.0):
    """other: what makes the values those of another day, or of another device."""
    return [row(i, np.sin(i / 5) + other, np.cos(i / 7), np.sin(i / 5) + 1, start=start) for i in range(first, last)]


def cells(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def recorded(folder, data, *words):
    (folder / "log.bin").write_bytes(data)
    return table(TableOf(str(folder / "log.bin"), output=str(folder / "first.csv"), force=True)).report


def test_what_is_lost_is_seen_and_never_guessed(tmp_path):
    sent = rows(0, 500)
    whole = recorded(tmp_path, hello() + b"".join(sent))
    assert (whole["rows"], whole["lost"], whole["damaged"], whole["framed"]) == (500, 0, 0, True)
    clean = cells(tmp_path / "first.csv")
    assert float(clean[3]["ax"]) == np.float32(np.sin(3 / 5)) and clean[3]["time"] == "30"
    assert list(clean[0]) == ["time", "ax", "ay", "flow", "status", "call", "state_hash", "prediction"]
    broken = bytearray(sent[100])
    broken[9] ^= 0x10
    some = [*sent[:40], *sent[43:100], b"text of the firmware\r\n", bytes(broken), *sent[101:]]
    report = recorded(tmp_path, hello() + b"".join(some))
    assert (report["rows"], report["lost"], report["damaged"]) == (496, 4, 1)
    found = cells(tmp_path / "first.csv")
    empty = dict.fromkeys(found[0], "")
    assert found == [empty if i in (40, 41, 42, 100) else each for i, each in enumerate(clean)]


def test_a_table_of_frames_is_the_table_that_is_recorded_of_it(tmp_path):
    """`plan` and others take both, and inputs are what the model was given alone."""
    recorded(tmp_path, hello() + b"".join(rows(0, 200)))
    found = []
    for name in ("log.bin", "first.csv"):
        with open(tmp_path / name, "rb") as file:
            read = infer(file, name, (), "flow")
        found.append(read)
        left = {each["column"]: each["why"] for each in read.data["left_out"]}
        assert read.inputs == ["ax", "ay"] and {left[each] for each in logged([*left])} == {"logged"}
    assert np.array_equal(found[0].x, found[1].x) and np.array_equal(found[0].y, found[1].y)


def test_a_device_that_begins_anew_gets_another_table(tmp_path):
    again = hello() + b"".join(rows(0, 30))
    report = recorded(tmp_path, hello() + b"".join(rows(0, 50)) + again)
    assert [len(cells(each)) for each in report["files"]] == [50, 30] and report["rows"] == 80
    with open(tmp_path / "log.bin", "rb") as file, pytest.raises(UserError, match=r"after row 50 .*--output FIRST.csv"):
        infer(file, "log.bin", (), "flow")
    assert [Path(each).name for each in report["files"]] == ["first.csv", "first-2.csv"]
    # no file of another recording is written over
    (tmp_path / "first.csv").unlink()
    report = table(TableOf(str(tmp_path / "log.bin"), output=str(tmp_path / "first.csv"))).report
    assert [Path(each).name for each in report["files"]] == ["first.csv", "first-3.csv"]
    # where its first frames are lost, its numbers tell it
    for again in ({"start": 8}, {"other": 0.1}):
        for before, heard in ((50, range(3, 30)), (5000, range(3, 30)), (20, range(30, 50))):
            sent = [*rows(0, before, start=7), *rows(heard.start, heard.stop, **{"start": 7} | again)]
            if "start" not in again and heard.start > before:
                continue  # rows that go on: nothing tells another start
            report = recorded(tmp_path, hello(start=7) + b"".join(sent))
            assert [len(cells(each)) for each in report["files"]] == [before, heard.stop]
            assert report["lost"] == heard.start and report["repeated"] == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", [0, 7])
def test_the_numbers_of_rows_tell_what_the_cable_did(start, tmp_path):
    """Out for a while, a frame that comes twice, blocks in another order: one table, and every missing row is counted."""
    sent, begin = rows(0, 300, start), hello(start=start)
    for lost in (1, 40_000, 65_536, 200_000):
        report = recorded(tmp_path, begin + b"".join([*sent, *rows(300 + lost, 320 + lost, start)]))
        assert (report["rows"], report["lost"], len(report["files"])) == (320, lost, 1)
        assert len(cells(tmp_path / "first.csv")) == 320 + lost
    for twice in ([*sent[:100], *sent[99:]], [*sent[:100], *sent[50:]]):
        report = recorded(tmp_path, begin + begin * (start > 0) + b"".join(twice))
        assert (report["rows"], report["lost"], report["repeated"], len(report["files"])) == (
            300,
            0,
            len(twice) - 300,
            1,
        )
    swapped = [*sent[:100], *sent[110:120], *sent[100:110], *sent[120:]]
    report = recorded(tmp_path, begin + b"".join(swapped))
    assert (report["rows"], report["lost"], report["repeated"], len(report["files"])) == (290, 10, 10, 1)
    # no table of a million empty rows
    report = recorded(tmp_path, begin + b"".join([*sent, *rows(2**31 - 9, 2**31 - 1, start)]))
    assert (report["rows"], report["lost"], len(report["files"])) == (308, 0, 2)


@pytest.mark.parametrize("begins", [(0, 0), (1000, 900), (5000, 50), (70_000, 0)])
@pytest.mark.parametrize("starts", [(0, 0), (3, 3), (3, 4)])
def test_two_recorders_on_one_line_are_named(begins, starts, tmp_path):
    each = [rows(first, first + 400, start, i) for i, (first, start) in enumerate(zip(begins, starts, strict=True))]
    mixed = b"".join(itertools.chain.from_iterable(zip(*each, strict=True)))
    with pytest.raises(
        UserError, match=r"the rows of two recorders come in turn .*; give each recorder a line of its own"
    ):
        recorded(tmp_path, hello(start=starts[0]) + mixed)


@pytest.mark.parametrize("data", [b"", b"\0", np.random.default_rng(0).bytes(30_000)])
@pytest.mark.parametrize("name", ["log.bin", "log.csv"])
def test_where_no_frame_is_found_the_baud_rate_is_named(name, data, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=r"baud rate|is empty"):
        table(TableOf(str(tmp_path / name), output=str(tmp_path / "first.csv"), force=True))


def test_a_listener_that_comes_late_waits_for_the_names(tmp_path):
    report = recorded(tmp_path, b"".join(rows(10, 20)) + hello(0) + b"".join(rows(20, 40)))
    assert (report["rows"], report["lost"], report["early"]) == (20, 0, 10)
    (tmp_path / "log.bin").write_bytes(b"".join(rows(10, 20)))
    with pytest.raises(UserError, match="not all names of the columns arrived"):
        recorded(tmp_path, b"".join(rows(10, 20)) + hello(0)[:20])


def test_a_file_below_dev_is_a_file():
    assert not is_recording("/dev/shm/no-such.csv") and not is_recording("/dev/fd/77")
    assert all(
        map(is_recording, ("/dev/ttyACM0", "/dev/ttyUSB0@9600", "COM3", "socket://localhost:1", "rfc2217://host:2"))
    )


def test_only_what_was_recorded_is_a_column(tmp_path):
    few = [framed(b"R" + struct.pack("<HIBff", 0, i, 2, i, i % 3)) for i in range(40)]
    report = recorded(tmp_path, hello() + b"".join(few))
    assert report["rows"] == 40 and list(cells(tmp_path / "first.csv")[0]) == ["ax", "ay", "flow"]


# --------------------------------------------------------------------------------------------------------------- a port


class Recording:
    """``pykernel table`` in a process of its own."""

    def __init__(self, source, out, *words, before=lambda: None):
        def begin():
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a background job ignores it
            before()

        self.out, how = out, {"preexec_fn": begin}
        command = [sys.executable, "-m", "pykernel", "table", source, "-o", out, "--json", *words]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how
        )

    def wait_open(self, port, seconds=60):
        """Until the port is open.  Whatever came before is thrown away; pyserial makes four ends of pipes after that."""
        end, there = time.monotonic() + seconds, Path(f"/proc/{self.process.pid}/fd")
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                links = [os.readlink(each) for each in there.iterdir()]
                if port in links and sum(link.startswith("pipe:") for link in links) >= 6:
                    return
            time.sleep(0.02)
        raise AssertionError("the port was not opened")

    def wait_for(self, lines, seconds=60):
        """Until the table has so many lines."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            with contextlib.suppress(OSError):
                if Path(self.out).read_bytes().count(b"\n") >= lines:
                    return
            time.sleep(0.02)
        raise AssertionError(self.process.communicate(timeout=10) if self.process.poll() is not None else "no rows")

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        try:
            out, err = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
        return self.process.returncode, json.loads(out) if out else {}, err


@pytest.fixture
def line():
    ours, theirs = pty.openpty()
    for each in (ours, theirs):
        tty.setraw(each)
    yield ours, os.ttyname(theirs)
    for each in (ours, theirs):
        with contextlib.suppress(OSError):
            os.close(each)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_all(how, line, tmp_path):
    ours, port = line
    run = Recording(port, str(tmp_path / "first.csv"))
    run.wait_open(port)
    for piece in [hello(), *rows(0, 200)]:
        os.write(ours, piece)
    run.wait_for(201)
    code, report, _ = run.end(how)
    assert (code, report["rows"], report["lost"]) == (0, 200, 0) and len(cells(tmp_path / "first.csv")) == 200


def test_lines_of_text_are_read_too(line, tmp_path):
    """What comes before the columns' names is passed over, as are broken lines; names are those of the last words before numbers."""
    ours, port = line
    run = Recording(port, str(tmp_path / "first.csv"))
    run.wait_open(port)
    os.write(ours, b"9,1\nbooting, please wait\na,face\n")
    for i in range(100):
        os.write(ours, b"%d,0x1.8p1\r\n" % i if i != 50 else b"5\xff\xfe,\n")
    run.wait_for(100)
    code, report, _err = run.end()
    assert code == 0 and (report["rows"], report["framed"], report["columns"]) == (99, False, ["a", "face"])
    assert report["damaged"] and cells(tmp_path / "first.csv")[3] == {"a": "3", "face": "0x1.8p1"}


@pytest.mark.exhaustive
def test_two_recorders_at_one_port_and_a_full_disk(line, tmp_path):
    ours, port = line
    first = Recording(port, str(tmp_path / "first.csv"))
    first.wait_open(port)
    os.write(ours, hello() + b"".join(rows(0, 10)))
    first.wait_for(11)
    second = subprocess.run(
        [sys.executable, "-m", "pykernel", "table", port, "-o", tmp_path / "second.csv"], capture_output=True, text=True
    )
    assert second.returncode == 2 and "no other program" in second.stderr and second.stderr.count("\n") == 1
    first.end()

    def few():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    full = Recording(port, str(tmp_path / "full.csv"), before=few)
    full.wait_open(port)
    for piece in [hello(), *rows(0, 200)]:
        os.write(ours, piece)
        time.sleep(0.001)
    out, err = full.process.communicate(timeout=60)
    assert full.process.returncode == 2 and "File too large" in out + err
    text = (tmp_path / "full.csv").read_text()
    assert text.endswith("\n") and len(cells(tmp_path / "full.csv")) > 20
    assert all(len(each) == 8 for each in csv.reader(io.StringIO(text)))


def test_a_cable_that_is_pulled_is_waited_for(tmp_path):
    link, runs = tmp_path / "port", []
    run = None
    for first in (0, 20):
        ours, theirs = pty.openpty()
        for each in (ours, theirs):
            tty.setraw(each)
        link.unlink(missing_ok=True)
        link.symlink_to(os.ttyname(theirs))
        port = os.ttyname(theirs)
        os.close(theirs)
        run = run or Recording(f"/dev/../{link}", str(tmp_path / "first.csv"))
        run.wait_open(port)
        os.write(ours, (hello() if first == 0 else b"") + b"".join(rows(first, first + 10)))
        run.wait_for(1 + 10 * (len(runs) + 1) + 10 * (first > 0))
        runs.append(ours)
        os.close(ours)
    code, report, _err = run.end()
    assert code == 0 and (report["rows"], report["lost"]) == (20, 10)


@pytest.mark.exhaustive
def test_noise_and_a_flood_take_bounded_memory(tmp_path):
    """A socket whose end is the end of the recording."""
    server = socket.create_server(("127.0.0.1", 0))

    def flood():
        connection, _ = server.accept()
        noise = np.random.default_rng(0).integers(1, 256, 2**20).astype(np.uint8).tobytes()
        for _ in range(48):
            connection.sendall(noise)
        connection.sendall(hello() + b"".join(rows(0, 100)))
        connection.close()

    sender = threading.Thread(target=flood, daemon=True)
    sender.start()
    limit = 700 * 2**20

    def bounded():
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    run = Recording(f"socket://127.0.0.1:{server.getsockname()[1]}", str(tmp_path / "first.csv"), before=bounded)
    out, err = run.process.communicate(timeout=120)
    sender.join()
    server.close()
    report = json.loads(out)
    assert run.process.returncode == 0, err
    assert report["rows"] == 100 and report["damaged"] >= 1


def test_what_ends_a_recording_while_rows_are_written_writes_none_twice(tmp_path, monkeypatch):
    ends = [signal.SIGTERM]

    def writer(target, **how):
        real = csv.writer(target, **how)

        def writerows(some):
            for each in some:
                real.writerow(each)
                if len(each) > 1 and each[0] == "1000" and ends:
                    os.kill(os.getpid(), ends.pop())

        return SimpleNamespace(writerows=writerows)

    monkeypatch.setattr(record, "csv", SimpleNamespace(writer=writer, reader=csv.reader))
    report = recorded(tmp_path, hello() + b"".join(rows(0, 500)))
    assert not ends and report["rows"] == 500
    assert [each["time"] for each in cells(tmp_path / "first.csv")] == [str(10 * i) for i in range(500)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["/dev/no-such-port", "-o", "a.csv"], "cannot be opened"),
        (["socket://127.0.0.1:9", "-o", "a.csv"], "cannot be opened"),
        (["/dev/no-such-port", "-o", "a.npy"], "give --output a name that ends with .csv"),
        (["/dev/no-such-port", "-o", "a.csv", "--label", "y"], "leave --label out"),
    ],
)
def test_refusals_are_one_sentence(words, sentence, tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("table", *words)
    assert code == 2 and sentence in err and err.count("\n") == 1 and os.listdir() == []
