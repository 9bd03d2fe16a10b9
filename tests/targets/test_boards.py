"""The check on a board: this PC as one, QEMU's, an Arduino in simavr; damaged frames, and what ends a check."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import threading
import time
import tty
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.errors import UserError
from pykernel.gen.check import Reference
from pykernel.gen.firmware import CHUNK
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.host.identity import identity
from pykernel.rows.frames import decoded
from pykernel.spec.model import Spec, make_spec
from pykernel.targets import board
from pykernel.targets.board import BoardModel, Link, coded, opened, sealed
from pykernel.targets.check import check_board
from tests.support import ROOT, arduino, boards
from tests.support.built import built
from tests.support.tools import lacking, need, needs

needs_gcc = needs("gcc", would="this PC as a board")

SPECS: dict[str, dict[str, Any]] = {
    "number": {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"technique": "fklms", "n_max": 8}},
    "numbers": {"label": {"columns": ["u", "v"]}, "learning": {"rule": "nlms"}},
    "class": {
        "label": {"classes": ["a", "b", "c"]},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "klms"},
        "reduction": {"technique": "nt", "n_max": 8},
    },
    "none": {"kernel": {"sigma": 1.0}, "learning": {"rule": "okfeb"}, "reduction": {"n_max": 6}},
    "double": {
        "precision": "float64",
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "krls-t"},
        "reduction": {"n_max": 5},
    },
    "whole": {
        "precision": "int16",
        "input": {"dim": 3, "max_abs": 4.0},
        "label": {"max_abs": 4.0},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "klms"},
        "reduction": {"technique": "fklms", "n_max": 8},
    },
}


def spec_of(kind: str = "number", name: str = "m") -> Spec:
    return make_spec({"name": name, "input": {"dim": 3}} | SPECS[kind])


def link_of(spec: Spec, line: board.Line) -> Link:
    return Link("the board", line, int(built(spec).figures["config_hash"], 16))


@pytest.fixture(scope="module")
def on_this_pc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return boards.on_this_pc(built(spec_of(), also=("check",)), tmp_path_factory.mktemp("board"))


# ------------------------------------------------------------------------------------------------------------- frames


@given(st.binary(max_size=CHUNK))
def test_a_frame_has_no_zero_but_its_last_byte(data: bytes) -> None:
    frame = sealed(b"A", 7, data)
    assert frame.index(0) == len(frame) - 1 and len(frame) <= 62
    assert opened(frame[:-1]) == (b"A", 7, data)


@given(st.lists(st.integers(1, 255), min_size=1, max_size=60).map(bytes))
def test_any_bytes_are_a_frame_or_none(data: bytes) -> None:
    found = decoded(data)
    assert found is None or coded(found)[:-1] == data


@given(st.binary(max_size=CHUNK), st.integers(0, 7), st.data())
def test_a_changed_bit_is_found(data: bytes, bit: int, draw: st.DataObject) -> None:
    frame = bytearray(sealed(b"A", 3, data))
    frame[draw.draw(st.integers(0, len(frame) - 1))] ^= 1 << bit
    assert all(opened(part) is None for part in bytes(frame).split(b"\0") if part)


# -------------------------------------------------------------------------------------------------- this PC as a board


@pytest.mark.exhaustive
@needs_gcc
@pytest.mark.parametrize("kind", SPECS)
def test_every_kind_of_model(kind: str, tmp_path: Path) -> None:
    spec = spec_of(kind)
    project = built(spec, also=("check",))
    line = boards.Pipe(boards.on_this_pc(project, tmp_path))
    try:
        model = BoardModel(project, link_of(spec, line))
        row = Reference(project, None, *mixed_stream(spec, 200, 1)).verdict(model)
    finally:
        line.close()
    assert row["equal"], row["first_difference"]
    assert model.board.name == "a board" and model.board.compiler.startswith("gcc ")


@pytest.mark.in_turn(9)
@needs_gcc
@pytest.mark.parametrize("system", boards.STUBS)
def test_the_programs_of_operating_systems_with_stubs(system: str, tmp_path: Path) -> None:
    spec = spec_of()
    project = built(spec, also=("check",))
    line = boards.Pipe(boards.with_stubs(project, tmp_path, system))
    try:
        model = BoardModel(project, link_of(spec, line))
        assert Reference(project, None, *mixed_stream(spec, 30, 1)).verdict(model)["equal"]
    finally:
        line.close()
    assert model.board.name in ("a zephyr", "an esp") and set(model.ticks["update"]) == {7}


class Noise:
    """One byte in a hundred arrives with a bit changed."""

    def __init__(self, seed: int, rate: float = 0.01) -> None:
        self.rng, self.rate = np.random.default_rng(seed), rate

    def __call__(self, data: bytes) -> bytes:
        hit = self.rng.random(len(data)) < self.rate
        flips = hit * (1 << self.rng.integers(0, 8, len(data)))
        return bytes((np.frombuffer(data, np.uint8) ^ flips.astype(np.uint8)).tolist())


@needs_gcc
def test_damaged_bytes_change_nothing_but_the_time(on_this_pc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(board, "PAUSE", 0.01)
    spec = spec_of()
    project = built(spec, also=("check",))
    line = boards.Pipe(on_this_pc, noise=Noise(0))
    try:
        link = link_of(spec, line)
        row = Reference(project, None, *mixed_stream(spec, 100, 2)).verdict(BoardModel(project, link))
    finally:
        line.close()
    assert row["equal"], row["first_difference"]
    assert link.damaged > 100


@needs_gcc
def test_a_wrong_bit_on_the_board_is_found(tmp_path: Path) -> None:
    """Negative control: the board computes something else."""
    spec = spec_of()
    project = build(spec, also=("check",))
    source = project.files["src/m.c"]
    wrong = re.sub(r"(#define M_ETA 0\.\d+)f", r"\g<1>001f", source)
    assert wrong != source
    project.files["src/m.c"] = wrong
    line = boards.Pipe(boards.on_this_pc(project, tmp_path))
    try:
        row = Reference(project, None, *mixed_stream(spec, 40, 1)).verdict(BoardModel(project, link_of(spec, line)))
    finally:
        line.close()
    assert not row["equal"] and "update 0" in row["first_difference"]


@needs_gcc
def test_what_another_host_began_is_ended(on_this_pc: Path, exhaustive: bool) -> None:
    """A check that was interrupted, anywhere: the next one works."""
    spec = spec_of()
    project = built(spec, also=("check",))
    line = boards.Pipe(on_this_pc)
    stream = mixed_stream(spec, 20, 3)
    reference = Reference(project, None, *stream)
    try:
        for stop in (1, 3, 10, 80) if exhaustive else (1, 80):
            link, answer, said = link_of(spec, line), line.write, 0

            def cut(data: bytes, answer: Any = answer, stop: int = stop) -> None:
                nonlocal said
                said += 1
                if said > stop:
                    raise OSError("the host has gone")
                # the last answer arrives in part
                answer(data[: len(data) // 2] if said == stop else data)

            line.write = cut  # type: ignore[method-assign]
            with pytest.raises(UserError, match="the line was cut"):
                reference.verdict(BoardModel(project, link))
            line.write = answer  # type: ignore[method-assign]
        assert reference.verdict(BoardModel(project, link_of(spec, line)))["equal"]
    finally:
        line.close()


@needs_gcc
def test_noise_alone_breaks_nothing_under_sanitizers(tmp_path: Path) -> None:
    """Any bytes, then a check: the board neither hangs nor leaves its arrays."""
    spec = spec_of()
    project = built(spec, also=("check",))
    program = boards.on_this_pc(project, tmp_path, ("-fsanitize=address,undefined", "-fno-sanitize-recover=all"))
    line = boards.Pipe(program)
    rng = np.random.default_rng(0)
    try:
        for _ in range(200):
            kind = b"AX"[int(rng.integers(2))]
            data = rng.integers(0, 256, int(rng.integers(0, 90))).astype(np.uint8).tobytes()
            line.write(data + b"\0" if rng.random() < 0.5 else sealed(bytes([kind]), int(rng.integers(256)), data[:50]))
        row = Reference(project, None, *mixed_stream(spec, 20, 3)).verdict(BoardModel(project, link_of(spec, line)))
        assert row["equal"]
    finally:
        line.close()


@pytest.mark.exhaustive
@needs_gcc
def test_the_command_and_its_log(on_this_pc: Path, tmp_path: Path, run: Any) -> None:
    """`check --board` at a terminal, with a record and a log; `replay` repeats the log."""
    spec = spec_of()
    file, out, log = str(tmp_path / "m.toml"), str(tmp_path / "out"), str(tmp_path / "log.csv")
    (tmp_path / "m.toml").write_text(spec.to_toml())
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    process = subprocess.Popen([on_this_pc], stdin=ours, stdout=ours)
    try:
        assert run("generate", file, "-o", out, "--for", "check")[0] == 0
        words = ["check", file, "--board", os.ttyname(theirs), "--samples", "60"]
        code, said, _ = run(*words, "--record", out, "--log", log)
        assert code == 0 and "60 samples on the board" in said and "yes" in said
        assert "the board a board" in (tmp_path / "out" / "VALIDITY.md").read_text()
        assert "60 updates replayed" in run("state", "replay", file, log)[1]
        # the folder is still pykernel's, and keeps its firmware
        (tmp_path / "m.toml").write_text(spec.to_toml().replace("n_max = 8", "n_max = 9"))
        assert run("generate", file, "-o", out)[0] == 0
        assert "examples/m_check/check.c" in (tmp_path / "out" / "manifest.json").read_text()
        assert run("generate", file, "-o", out, "--for", "check")[0] == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


# ------------------------------------------------------------------------------------------------------ what ends it


class Scripted:
    """A line on which these bytes come, and what is written is lost."""

    def __init__(self, *said: bytes, end: Exception | None = None) -> None:
        self.said, self.end, self.timeout = list(said), end, 0.0

    def read(self, size: int = 1) -> bytes:
        if not self.said and self.end:
            raise self.end
        return self.said.pop(0) if self.said else b""

    def write(self, data: bytes) -> None:
        pass

    def close(self) -> None:
        pass


def hello(config_hash: int, number: int = 1, protocol: int = board.PROTOCOL) -> bytes:
    numbers = bytes([protocol]) + b"".join(n.to_bytes(4, "little") for n in (config_hash, 0)) + b"\x01\x01"
    return sealed(b"H", number, numbers)


OURS = identity(spec_of()).config_hash


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (Scripted(), "no data arrived"),
        (Scripted(b"Hello, I am another program\r\n" * 3), "another program runs on the board and says 'Hello"),
        (Scripted(bytes(range(128, 256)) * 3), r"is the speed right \(--baud\)"),
        (Scripted(hello(OURS ^ 1)), "the board has another model"),
        (Scripted(hello(OURS, protocol=9)), "another version of pykernel"),
        (
            Scripted(hello(OURS), sealed(b"W", 2, b"bg"), hello(OURS, 3), sealed(b"R", 4, b"0"), hello(OURS, 1)),
            "restarted in the middle",
        ),
        (
            Scripted(hello(OURS), sealed(b"W", 2, b"bg"), hello(OURS, 3), sealed(b"Z", 4, b"")),
            "asked for data that the check",
        ),
        (Scripted(hello(OURS), sealed(b"W", 2, b"bg"), hello(OURS, 3)), "has sent nothing for"),
        (
            Scripted(hello(OURS), end=OSError("device reports readiness to read but returned no data")),
            "the line was cut",
        ),
    ],
)
def test_each_end_is_a_sentence(line: Scripted, sentence: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FIRST_WORD", 0.2), ("SILENCE", 0.2), ("PAUSE", 0.01)):
        monkeypatch.setattr(board, name, value)
    spec = spec_of()
    with pytest.raises(UserError, match=sentence) as caught:
        BoardModel(built(spec), link_of(spec, line))
    assert str(caught.value).startswith("the board: ") and "\n" not in str(caught.value)


JOB = bytes(range(200)) * 3
"""What a board with faults reads; it writes as many bytes."""


def faulty(talk: Any = boards.FaultyBoard.good, **more: Any) -> boards.FaultyBoard:
    return boards.FaultyBoard(talk, OURS, JOB, len(JOB), **more)


def checked(line: boards.FaultyBoard, jobs: int = 3) -> board.Board:
    """Who the board is, after some jobs of ten samples."""
    link = Link("the board", line, OURS, clock=line.clock)
    met = link.meet()
    for _ in range(jobs):
        assert link.job(JOB, len(JOB), 10) == bytes(len(JOB))
    return met


ONE_HOUR = 3600.0
FAULTS: dict[str, tuple[boards.FaultyBoard, str]] = {
    "HELLO for ever": (
        faulty(lambda self: boards.always(*self.hello())(self)),
        "reported .* that it was ready, but did not begin",
    ),
    "HELLO for ever, slowly": (
        faulty(lambda self: boards.always(*self.hello(), wait=9)(self)),
        "did not finish a part",
    ),
    "writes where HELLO is due": (faulty(boards.always(b"W", b"x")), "told .* times to stop an earlier check"),
    "reads length 0": (faulty(boards.always(b"R", b"\0", after=3)), "asked for data that the check does not have"),
    "reads too much": (faulty(boards.always(b"R", b"\xff", after=3)), "asked for data that the check does not have"),
    "a byte a minute": (faulty(rate=1 / 60), "no data arrived|not frames"),
    "a byte a minute, in frames": (faulty(boards.always(b"W", b"x", after=3, wait=59)), "did not finish a part"),
    "a frame of one byte each second": (
        faulty(boards.always(b"W", b"x", after=3, wait=1)),
        "did not finish a part",
    ),
    "absurd sizes": (faulty(lambda self: boards.always(*self.hello((255, 255)))(self)), "another version of pykernel"),
    "wrong CRC for ever": (faulty(bend=boards.with_wrong_crc), "not frames|arrive damaged"),
    "a reset in the middle": (faulty(boards.restarting(9)), "restarted in the middle"),
    "another model": (faulty(lambda self: boards.always(*self.hello(None, OURS ^ 1))(self)), "another model"),
    "a closed port": (faulty(boards.closing), "the line was cut"),
    "a boot loader": (
        faulty(bend=lambda frame: b"boot: waiting for an image\r\n"),
        "another program runs on the board",
    ),
    "zeros for ever": (faulty(bend=lambda frame: bytes(9)), "not frames|damaged"),
    "any other question": (faulty(boards.always(b"Z", b"", after=3)), "asked for data that the check does not have"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_check_ends_with_a_sentence_whatever_the_board_does(fault: str) -> None:
    line, sentence = FAULTS[fault]
    with pytest.raises(UserError, match=sentence) as caught:
        checked(line)
    assert "\n" not in str(caught.value) and line.now < ONE_HOUR


def test_a_board_without_a_fault_and_one_that_says_everything_twice() -> None:
    assert checked(faulty()).name == "a board"
    assert checked(faulty(copies=2)).name == "a board"
    assert checked(faulty(rate=30.0)).name == "a board"  # 300 baud


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("seed", range(4))
def test_a_check_ends_with_any_mixture_of_faults(seed: int, exhaustive: bool) -> None:
    ended = set()
    for each in range(1000 if exhaustive else 15):
        line = faulty(boards.any_fault(1000 * seed + each))
        try:
            checked(line)
            ended.add("equal")
        except AssertionError:
            ended.add("other bytes")  # which the comparison finds
        except UserError as error:
            assert "\n" not in str(error) and str(error).isprintable(), ascii(str(error))
            ended.add(str(error).split(":")[1][:20])
        assert line.now < ONE_HOUR
    assert len(ended) > 3, ended


@pytest.mark.parametrize(
    "name", [b"x[/nope]", b"\x1b[2Jx", b"a\nb\tc", b"\xff\xfe", "‮abc".encode(), b"[red]" * 19, b"|<b>`"]
)
def test_a_hostile_name_is_plain_text(name: bytes) -> None:
    met = checked(faulty(name=name), 1)
    assert met.name.isascii() and met.name.isprintable() and len(met.name) == len(name)


def test_an_empty_port_is_no_check_of_this_pc(tmp_path: Path, run: Any) -> None:
    (tmp_path / "m.toml").write_text(spec_of().to_toml())
    code, _, complaint = run("check", str(tmp_path / "m.toml"), "--board", "")
    assert code == 2 and "--board has no value" in complaint


@pytest.mark.exhaustive
@needs_gcc
def test_a_board_beside_the_limits_of_a_target(on_this_pc: Path, tmp_path: Path, monkeypatch: Any, run: Any) -> None:
    """The [target]'s own CPU is emulated besides, once."""
    pytest.importorskip("unicorn")
    opened_lines = []

    def line(url: str, baud: int) -> boards.Pipe:
        opened_lines.append(boards.Pipe(on_this_pc))
        return opened_lines[-1]

    monkeypatch.setattr("pykernel.targets.check.open_port", line)
    limited = SPECS["number"] | {"target": {"name": "cortex-m4f", "instructions": 1_000_000}}
    (tmp_path / "m.toml").write_text(make_spec({"name": "m", "input": {"dim": 3}} | limited).to_toml())
    code, said, complaint = run("check", str(tmp_path / "m.toml"), "--board", "here", "--samples", "20")
    assert code == 0 and "cortex-m4f" in said and len(opened_lines) == 1, complaint


@pytest.mark.parametrize("name", ["check", "page"])
def test_names_that_the_firmware_has_are_refused(name: str) -> None:
    with pytest.raises(UserError, match=r"give the model another name|choose another"):
        build(spec_of(name=name), also=("check",))


def test_answers_that_all_arrive_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The board repeats its question: the sentence is about the wire to it."""
    monkeypatch.setattr(board, "SILENCE", 0.2)
    spec = spec_of()
    lines = Scripted(hello(OURS), *[sealed(b"W", 2, b"bg")] * 100_000)
    lines.read = lambda size=1: (time.sleep(0.005), lines.said.pop(0))[1]  # type: ignore[method-assign]
    with pytest.raises(UserError, match="arrive damaged at the board"):
        BoardModel(built(spec), link_of(spec, lines))


@pytest.mark.parametrize(
    "url",
    ["hwgrep://(", "loop://?x=1", "/dev/there-is-none", "socket://127.0.0.1:1", "no-such-scheme://x", "/etc/passwd"],
)
def test_a_line_that_cannot_be_opened(url: str) -> None:
    with pytest.raises(UserError, match=r"cannot be opened|no data arrived|another program"):
        check_board(spec_of(), url, samples=3)


# ------------------------------------------------------------------------------------------------------------ emulators

QEMU = needs("qemu-system-arm", "arm-none-eabi-gcc", would="equal bytes over a UART")


@pytest.mark.exhaustive
@QEMU
def test_a_cortex_m4f_at_a_terminal() -> None:
    spec = spec_of(name="flow")
    image = boards.bare_metal(spec, "cortex-m4f")
    with boards.at_a_terminal(image, "cortex-m4f") as url:
        report = check_board(spec, url, samples=60)
    (row,) = report.rows
    assert report.ok, row["first_difference"]
    assert row["board"] == "a cortex-m4f" and row["hertz"] == 25_000_000
    assert {"predict", "update", "selftest"} <= set(row["times"]) and 200 < row["stack_bytes"] < 2000


@QEMU
@pytest.mark.exhaustive
@pytest.mark.parametrize("where", [boards.at_a_terminal, boards.at_a_socket])
@pytest.mark.parametrize("kind", ["number", "class", "whole", "none"])
@pytest.mark.parametrize("target", boards.UARTS)
def test_every_machine(target: str, kind: str, where: Any) -> None:
    chain = "zig" if target.startswith("rv32") else "gcc"
    need(*(["qemu-system-riscv32"] if chain == "zig" else []), would="equal bytes over its UART")
    spec = spec_of(kind, name="flow")
    image = boards.bare_metal(spec, target, chain)
    with where(image, target) as url:
        report = check_board(spec, url, samples=300)
    assert report.ok, report.rows[0]["first_difference"]


@QEMU
@pytest.mark.exhaustive
def test_a_reset_in_the_middle(tmp_path: Path) -> None:
    """QEMU's machine is reset while it works: a sentence, and the next check is equal."""
    spec = spec_of(name="flow")
    image = boards.bare_metal(spec, "cortex-m3")
    monitor = tmp_path / "monitor"
    words = [*boards.qemu_words(image, "cortex-m3"), "-serial", "pty"]
    words[words.index("-monitor") + 1] = f"unix:{monitor},server=on,wait=off"
    with boards.running(words) as url:
        timer = threading.Timer(1.5, lambda: boards.say_to(monitor, "system_reset\n"))
        timer.start()
        with pytest.raises(UserError, match="restarted in the middle"):
            check_board(spec, url, samples=30_000)
        assert check_board(spec, url, samples=100).ok


@needs(*arduino.TOOLS, would="equal bytes on an Uno and a Mega")
@pytest.mark.exhaustive
@pytest.mark.parametrize("which", arduino.BOARDS)
@pytest.mark.parametrize("kind", ["number", "numbers", "class", "none", "whole"])
def test_an_arduino(kind: str, which: str, tmp_path: Path) -> None:
    """The sketch, in simavr: equal bytes, and timer 1's cycles are those of its clock."""
    spec = spec_of(kind, name="flow")
    elf = arduino.sketch(build(spec, also=("check",)), tmp_path, which)
    mcu = arduino.BOARDS[which][0]
    with boards.running([str(arduino.simulator(tmp_path)), mcu, "16000000", str(elf)]) as url:
        report = check_board(spec, url, samples=200)
    (row,) = report.rows
    assert report.ok, row["first_difference"]
    assert row["board"].startswith("Arduino ") and row["hertz"] == 16_000_000 and row["stack_bytes"] > 100
    if (kind, which) == ("number", "uno"):
        # the page shows this very run; when timer 1 overflows differs from run to run
        page = (ROOT / "docs" / "guide/boards.md").read_text()
        told = {line.split()[0]: line.replace(",", "").split()[1:] for line in page.splitlines() if line[:2] == "  "}
        for call in ("predict", "update", "selftest"):
            times = [row["times"][call][key] for key in ("calls", "min", "median", "max")]
            assert [float(n) for n in told[call][:4]] == pytest.approx(times, rel=2e-3, abs=60)
        assert f"yes   {row['ram_bytes']} B   {row['stack_bytes']} B" in page


@pytest.mark.skipif(
    bool(lacking("node")) or not boards.NODE_MODULES.exists(),
    reason="needs node, rp2040js, avr8js; npm install --prefix build rp2040js avr8js",
)
@pytest.mark.exhaustive
@pytest.mark.parametrize("package", ["rp2040js", "avr8js"])
def test_boards_that_others_wrote(package: str, tmp_path: Path) -> None:
    """An RP2040 without an operating system, and an Uno with the sketch."""
    spec = spec_of(name="flow")
    project = built(spec, also=("check",))
    if package == "avr8js":
        need(*arduino.TOOLS, would="equal bytes on an Uno and a Mega")
        image = arduino.sketch(project, tmp_path, "uno").with_suffix(".hex")
    else:
        made = boards.bare_metal(spec, "cortex-m0plus", uart=boards.PL011, flash=0x1000_0000)
        image = tmp_path / "image.bin"
        subprocess.run(["arm-none-eabi-objcopy", "-O", "binary", made.elf, image], check=True)
    line = boards.in_node(package, image, tmp_path)
    try:
        model = BoardModel(project, link_of(spec, line))
        row = Reference(project, None, *mixed_stream(spec, 200, 1)).verdict(model)
    finally:
        line.close()
    assert row["equal"], row["first_difference"]
    if package == "avr8js":
        assert 30_000 < np.median(model.ticks["predict"]) < 60_000
