"""Boards that are none: QEMU's, with the firmware of ``generate --for check``, at a pseudo terminal or a socket; and
boards with faults, in a time of their own."""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import subprocess
import time
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pykernel.gen.firmware import CHUNK
from pykernel.gen.project import Project, build
from pykernel.spec.model import Spec
from pykernel.targets import board
from pykernel.targets.board import coded, opened, sealed
from pykernel.targets.build import Image, model_image
from pykernel.targets.target import Region, find_target
from tests.support.interrupts import PATIENCE

CMSDK = """
#define UART(at) (*(volatile uint32_t *)({base}u + (at)))
static void open_uart(void) {{ UART(16) = 16u; UART(8) = 3u; }}
static void put_uart(uint8_t byte) {{ while ((UART(4) & 1u) != 0u) {{ }} UART(0) = byte; }}
static uint8_t get_uart(void) {{ while ((UART(4) & 2u) == 0u) {{ }} return (uint8_t)UART(0); }}
"""
NRF51 = """
#define UART(at) (*(volatile uint32_t *)(0x40002000u + (at)))
static void open_uart(void) { UART(0x500) = 4u; UART(8) = 1u; UART(0) = 1u; }
static void put_uart(uint8_t byte)
{ UART(0x11C) = 0u; UART(0x51C) = byte; while (UART(0x11C) == 0u) { } }
static uint8_t get_uart(void)
{ while (UART(0x108) == 0u) { } UART(0x108) = 0u; return (uint8_t)UART(0x518); }
"""
NS16550 = """
#define UART(at) (*(volatile uint8_t *)(0x10000000u + (at)))
static void open_uart(void) { }
static void put_uart(uint8_t byte) { while ((UART(5) & 0x20u) == 0u) { } UART(0) = byte; }
static uint8_t get_uart(void) { while ((UART(5) & 1u) == 0u) { } return UART(0); }
"""
PL011 = """
#define UART(at) (*(volatile uint32_t *)(0x40034000u + (at)))
static void open_uart(void) { UART(0x2C) = 0x70u; UART(0x30) = 0x301u; }
static void put_uart(uint8_t byte) { while ((UART(0x18) & 0x20u) != 0u) { } UART(0) = byte; }
static uint8_t get_uart(void) { while ((UART(0x18) & 0x10u) != 0u) { } return (uint8_t)UART(0); }
"""
UARTS = {
    "cortex-m0plus": NRF51,
    "cortex-m3": CMSDK.format(base="0x40004000"),
    "cortex-m4f": CMSDK.format(base="0x40004000"),
    "cortex-m7f": CMSDK.format(base="0x40004000"),
    "cortex-m33f": CMSDK.format(base="0x40200000"),
    "rv32imac": NS16550,
    "rv32imc": NS16550,
    "rv32imafc": NS16550,
}
START_ARM = """
#include <stdint.h>
int main(void);
void _start(void);
extern const uint32_t device_stack;
struct vectors { const uint32_t *stack; void (*start)(void); };
extern const struct vectors device_vectors;
__attribute__((section(".start"), used)) const struct vectors device_vectors = {&device_stack, _start};
void _start(void)
{
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xE000ED88u |= 0x00F00000u;
    __asm__ volatile("dsb\\nisb" : : : "memory");
#endif
    main();
}
"""
START_RISCV = """
__asm__(".section .start, \\"ax\\"\\n.globl _start\\n.type _start, @function\\n_start:\\n"
        "la sp, device_stack\\nli t0, 0x2000\\n.word 0x3002A073\\nj main\\n.text\\n");
"""


def filled_in(main: str, uart: str, folder: str) -> str:
    """The program for a board without an operating system, with its two functions filled in as a user would."""
    bodies = iter(("put_uart(byte);", "return get_uart();"))
    main = re.sub(r"^#error .*$", lambda _: f"    {next(bodies)}", main, flags=re.MULTILINE)
    main = main.replace(f"../{folder}/check.h", "check.h")
    main = re.sub(r"^    /\* here: .*$", "    open_uart();", main, flags=re.MULTILINE)
    return main.replace("#include <stddef.h>\n", "#include <stddef.h>\n#include <stdint.h>\n" + uart, 1)


def bare_metal(spec: Spec, target_name: str, chain: str = "gcc", uart: str = "", flash: int | None = None) -> Image:
    """The firmware for a QEMU machine; uart, flash: of another machine with the CPU."""
    target, project = find_target(target_name), build(spec, also=("check",))
    extra = firmware_of(project)
    main = project.files["examples/bare-metal-check/main.c"]
    extra["main.c"] = filled_in(main, uart or UARTS[target_name], f"{spec.name}_check")
    extra["start.c"] = START_RISCV if target_name.startswith("rv32") else START_ARM
    assert target.qemu is not None
    stack = target.qemu.ram.start + target.qemu.ram.bytes - 8192
    flags = (f'-DCHECK_BOARD="a {target_name}"', "-DCHECK_HZ=25000000", "-DCHECK_STACK_LOW=stack_low")
    extra["stack.c"] = f'__asm__(".globl stack_low\\n.set stack_low, {stack}\\n");\n'
    place = target.qemu.flash if flash is None else Region(start=flash, bytes=2**20)
    return model_image(project, target, chain, extra=extra, flags=flags, flash=place, ram=target.qemu.ram)


def firmware_of(project: Project) -> dict[str, str]:
    """What all boards compile beside the model."""
    folder = f"examples/{project.spec.name}_check/"
    return {
        path.removeprefix(folder): text
        for path, text in project.files.items()
        if path.startswith(folder) and not path.endswith(".ino")
    }


@contextmanager
def running(words: Sequence[str], pty: str = r"/dev/pts/\d+") -> Iterator[str]:
    """A program that says which pseudo terminal it has; the terminal."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said = ""
        while not (found := re.search(pty, said)):
            line = process.stdout.readline()
            assert line, said
            said += line
        yield found[0]
    finally:
        process.kill()
        process.communicate()


def qemu_words(image: Image, target_name: str) -> list[str]:
    qemu = find_target(target_name).qemu
    assert qemu is not None and shutil.which(qemu.command)
    words = [qemu.command, "-M", qemu.machine, "-display", "none", "-monitor", "none", "-kernel", str(image.elf)]
    return words + (["-bios", "none"] if "riscv" in qemu.command else [])


@contextmanager
def at_a_terminal(image: Image, target_name: str) -> Iterator[str]:
    with running([*qemu_words(image, target_name), "-serial", "pty"]) as url:
        yield url


@contextmanager
def at_a_socket(image: Image, target_name: str) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    words = [*qemu_words(image, target_name), "-serial", f"tcp:127.0.0.1:{port},server=on,wait=off,nodelay=on"]
    process = subprocess.Popen(words)
    try:
        for _ in range(20 * PATIENCE):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"socket://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def written(project: Project, folder: Path) -> Mapping[str, Path]:
    """The project's files in a folder."""
    for path, text in project.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return {path: folder / path for path in project.files}


PIPES = """
#include <stdlib.h>
#include <unistd.h>
static void open_uart(void) { }
static void put_uart(uint8_t byte) { if (write(1, &byte, 1) != 1) { exit(1); } }
static uint8_t get_uart(void) { uint8_t byte = 0u; if (read(0, &byte, 1) != 1) { exit(0); } return byte; }
"""


def on_this_pc(project: Project, folder: Path, flags: Sequence[str] = ()) -> Path:
    """The firmware as a program of this machine, whose line are its standard input and output."""
    text = filled_in(project.files["examples/bare-metal-check/main.c"], PIPES, f"{project.spec.name}_check")
    return _compiled(project, folder, text, ["-std=c99", "-D_POSIX_C_SOURCE=200809L", *flags])


def _compiled(project: Project, folder: Path, main: str, flags: Sequence[str]) -> Path:
    files, name = written(project, folder), project.spec.name
    (folder / "board.c").write_text(main)
    sources = [str(files[path]) for path in files if re.fullmatch(rf"(src|examples/{name}_check)/\w+\.c", path)]
    words = ["gcc", "-Wall", "-Wextra", "-Werror", "-O1", "-ffp-contract=off", *flags, f"-I{folder / 'src'}"]
    words += [f"-I{folder / f'examples/{name}_check'}", str(folder / "board.c"), *sources]
    subprocess.run([*words, "-o", str(folder / "board")], check=True)
    return folder / "board"


STUBS = {
    "zephyr": {
        "zephyr/device.h": "struct device { int32_t unused; };\n#define DEVICE_DT_GET(node) NULL\n",
        "zephyr/drivers/uart.h": """#include <stdlib.h>
#include <unistd.h>
static inline void uart_poll_out(const struct device *uart, unsigned char byte)
{ (void)uart; if (write(1, &byte, 1) != 1) { exit(1); } }
static inline int uart_poll_in(const struct device *uart, unsigned char *byte)
{ (void)uart; if (read(0, byte, 1) != 1) { exit(0); } return 0; }
""",
        "zephyr/kernel.h": """#include <stdint.h>
static inline uint32_t k_cycle_get_32(void) { static uint32_t now; return now += 7; }
static inline int sys_clock_hw_cycles_per_sec(void) { return 64000000; }
""",
    },
    "esp-idf": {
        "driver/uart.h": """#include <stdlib.h>
#include <unistd.h>
#define UART_NUM_0 0
#define portMAX_DELAY 0xFFFFFFFFu
static inline int uart_write_bytes(int uart, const void *bytes, int count)
{ (void)uart; if (write(1, bytes, (size_t)count) != count) { exit(1); } return count; }
static inline int uart_read_bytes(int uart, void *bytes, int count, uint32_t wait)
{ (void)uart; (void)wait; if (read(0, bytes, (size_t)count) != count) { exit(0); } return count; }
static inline int uart_driver_install(int a, int b, int c, int d, void *e, int f)
{ return a + b + c + d + f + (e != NULL); }
""",
        "esp_cpu.h": "static inline uint32_t esp_cpu_get_cycle_count(void) { static uint32_t now; return now += 7; }\n",
        "esp_idf_version.h": "#define ESP_IDF_VERSION_VAL(a, b, c) ((a) * 10000 + (b) * 100 + (c))\n#define ESP_IDF_VERSION 50100\n",
        "esp_log.h": "#define ESP_LOG_NONE 0\n#define esp_log_level_set(what, level) ((void)(what), (void)(level))\n",
        "freertos/FreeRTOS.h": "",
        "freertos/task.h": "",
    },
}
"""What is used of an operating system, made up over standard input and output: path -> text."""
MACROS = {
    "zephyr": ["-D__ZEPHYR__", '-DCONFIG_BOARD="a zephyr"'],
    "esp-idf": ["-DESP_PLATFORM", '-DCONFIG_IDF_TARGET="an esp"'],
}
MAINS = {"zephyr": "examples/zephyr-check/src/main.c", "esp-idf": "examples/esp-idf-check/main/main.c"}


def with_stubs(project: Project, folder: Path, system: str) -> Path:
    """The firmware for an operating system, which is made up, as a program of this machine."""
    for path, text in STUBS[system].items():
        (folder / "stubs" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "stubs" / path).write_text(text)
    main = project.files[MAINS[system]].replace(f"../../{project.spec.name}_check/", "")
    main += "" if system == "zephyr" else "int main(void)\n{\n    app_main();\n    return 0;\n}\n"
    return _compiled(project, folder, main, ["-std=gnu11", *MACROS[system], f"-I{folder / 'stubs'}"])


class Pipe:
    """A program's standard input and output as a line; ``noise`` changes what passes."""

    def __init__(self, *words: str | Path, noise: Callable[[bytes], bytes] = bytes) -> None:
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None and self.process.stdout is not None
        self.there, self.here = self.process.stdin.fileno(), self.process.stdout.fileno()
        self.noise = noise
        self.timeout: float | None = 0.05

    def read(self, size: int = 1) -> bytes:
        ready, _, _ = select.select([self.here], [], [], self.timeout)
        data = os.read(self.here, 4096) if ready else b""
        if ready and not data:
            raise OSError("the program has ended")
        return self.noise(data)

    def write(self, data: bytes) -> None:
        os.write(self.there, self.noise(data))

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def say_to(path: Path, text: str) -> None:
    """A line to QEMU's monitor."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(path))
        line.recv(1000)
        line.sendall(text.encode())
        time.sleep(0.2)


NODE_MODULES = Path(__file__).parents[2] / "build" / "node_modules"


def in_node(package: str, image: Path, folder: Path) -> Pipe:
    """The firmware on a board that a package of npm's emulates."""
    if not (folder / "node_modules").exists():
        (folder / "node_modules").symlink_to(NODE_MODULES)
    script = folder / f"{package}.mjs"
    script.write_text((Path(__file__).parent / f"{package}_board.mjs").read_text())
    return Pipe("node", script, image)


# ----------------------------------------------------------------------------------------------------- boards with faults

Talk = Generator[tuple[bytes, bytes], bytes, None]


def pieces(data: bytes) -> Iterator[bytes]:
    return (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))


class FaultyBoard:
    """A board that talks as a line of pyserial's would let it, in a time of its own: reading passes it, nobody waits.

    talk: its questions, one after the other; it is sent the answers.  How its frames leave: at most ``rate`` bytes a
    second, each ``copies`` times, and changed by ``bend``.
    """

    def __init__(
        self,
        talk: Callable[[FaultyBoard], Talk],
        config_hash: int,
        data: bytes = b"",
        expected: int = 0,
        name: bytes = b"a board",
        rate: float = 11_520.0,
        copies: int = 1,
        bend: Callable[[bytes], bytes] = bytes,
    ) -> None:
        self.config_hash, self.data, self.expected, self.name = config_hash, data, expected, name
        self.rate, self.copies, self.bend, self.timeout = rate, copies, bend, 0.05
        self.now, self.busy, self.coming, self.heard = 0.0, 0.0, list[tuple[float, int]](), b""
        self.begun, self.number, self.frame, self.closed = talk, 0, b"", False
        self.start()

    def clock(self) -> float:
        return self.now

    def start(self) -> None:
        self.talk = self.begun(self)
        self.ask(next(self.talk))

    def ask(self, question: tuple[bytes, bytes]) -> None:
        self.number = (self.number + 1) % 256
        self.frame = self.bend(sealed(question[0], self.number, question[1]))
        self.say(self.frame)

    def say(self, data: bytes) -> None:
        self.busy = max(self.busy, self.now)
        for byte in data * self.copies:
            self.busy += 1 / self.rate
            self.coming.append((self.busy, byte))

    def wait(self, seconds: float) -> None:
        """Before the next frame."""
        self.busy = max(self.busy, self.now) + seconds

    def read(self, size: int = 1) -> bytes:
        if self.closed:
            raise OSError("device reports readiness to read but returned no data")
        if not self.coming or self.coming[0][0] > self.now + self.timeout:
            self.now += self.timeout
            return b""
        self.now = max(self.now, self.coming[0][0])
        return bytes([self.coming.pop(0)[1]])

    def write(self, data: bytes) -> None:
        self.now += len(data) / 11_520
        *frames, self.heard = (self.heard + data).split(b"\0")
        for frame in frames:
            found = opened(frame)
            if found is None:
                self.say(self.frame)
            elif found[0] == board.STOP:
                self.start()
            elif found[1] == self.number:
                self.ask(self.talk.send(found[2]))

    def close(self) -> None:
        pass

    def hello(self, lengths: tuple[int, int] | None = None, config_hash: int | None = None) -> tuple[bytes, bytes]:
        words = (self.config_hash if config_hash is None else config_hash, 0)
        numbers = b"".join(word.to_bytes(4, "little") for word in words)
        return board.HELLO, bytes([board.PROTOCOL]) + numbers + bytes(lengths or (len(self.name), 3))

    def good(self) -> Talk:
        """What a board without a fault does."""
        while True:
            order = yield self.hello()
            if order == b"J":
                yield from self.taken()
            for piece in pieces(self.name + b"gcc" if order == b"?" else bytes(self.expected)):
                yield board.WRITE, piece

    def taken(self) -> Talk:
        for piece in pieces(self.data):
            found = yield board.READ, bytes([len(piece)])
            assert found == piece


def always(kind: bytes, data: bytes, after: int = 0, wait: float = 0.0) -> Callable[[FaultyBoard], Talk]:
    """The same question for ever, ``after`` so many of a good board's."""

    def talk(self: FaultyBoard) -> Talk:
        good, answer = self.good(), None
        for _ in range(after):
            answer = yield good.send(answer)  # type: ignore[arg-type]
        while True:
            self.wait(wait)
            yield kind, data

    return talk


def restarting(after: int) -> Callable[[FaultyBoard], Talk]:
    """A good board that begins again after so many questions."""

    def talk(self: FaultyBoard) -> Talk:
        while True:
            good, answer = self.good(), None
            for _ in range(after):
                answer = yield good.send(answer)  # type: ignore[arg-type]

    return talk


def closing(self: FaultyBoard) -> Talk:
    yield self.hello()
    self.closed = True
    yield self.hello()


def any_fault(seed: int) -> Callable[[FaultyBoard], Talk]:
    """A good board that does something else now and then: anything of the vocabulary."""
    import random

    def talk(self: FaultyBoard) -> Talk:
        rng = random.Random(seed)
        part = rng.choice([0.002, 0.02, 0.3, 1.0])
        good, answer = self.good(), None
        while True:
            if rng.random() >= part:
                answer = yield good.send(answer)  # type: ignore[arg-type]
                continue
            if rng.random() < 0.3:
                self.wait(rng.choice([0.1, 1.0, 9.0, 59.0, 70.0]))
            if rng.random() < 0.2:
                self.say(rng.choice([b"\0" * 50, b"boot: ok\r\n" * 9, rng.randbytes(300), coded(rng.randbytes(20))]))
            if rng.random() < 0.1:
                good, answer = self.good(), None
            self.copies = rng.choice([1, 1, 1, 2, 3])
            kind = rng.choice([b"H", b"R", b"W", b"A", b"X", b"Z", b"\0"])
            data = rng.randbytes(rng.choice([0, 1, 1, 11, CHUNK, CHUNK + 1, 200]))
            yield rng.choice(
                [(kind, data), self.hello(), (board.READ, b"\0"), (board.READ, b"\xff"), (board.WRITE, b"x")]
            )

    return talk


def with_wrong_crc(frame: bytes) -> bytes:
    return coded(b"H\1" + zlib.crc32(frame).to_bytes(4, "little"))
