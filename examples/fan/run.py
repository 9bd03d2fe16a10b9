"""From a sensor to a replay, on an emulated Arduino Uno: record, plan, generate, flash, watch, replay.

    python examples/fan/run.py OUT

Needs pykernel, avr-gcc, avr-libc, gcc, libsimavr-dev and libelf-dev.  Takes some minutes: the Uno lives nearly as long as a real one would.
"""

import json
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLAGS = [
    "-Os",
    "-flto",
    "-mcall-prologues",
    "-std=gnu99",
    "-Wall",
    "-Wextra",
    "-ffp-contract=off",
    "-ffunction-sections",
    "-fdata-sections",
    "-Wl,--gc-sections",
]


def call(*words):
    print("$", *words, flush=True)
    subprocess.run(list(map(str, words)), check=True)


def pykernel(*words):
    call(sys.executable, "-m", "pykernel", *words)


def built(model, elf, *more):
    """The firmware for an Uno, of a folder that ``pykernel generate --for recorder`` wrote."""
    sources = [HERE / "firmware.c", HERE / "adxl345.c", HERE / "board_uno.c", *sorted((model / "src").glob("*.c"))]
    call("avr-gcc", "-mmcu=atmega328p", "-DF_CPU=16000000UL", *FLAGS, *more, f"-I{model / 'src'}", *sources, "-o", elf)
    call("avr-size", elf)


def recorded(emulated, elf, eeprom, seconds, fault, table):
    """Let the Uno run, and record what it sends."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [emulated, elf, port, eeprom, seconds, fault]
    with subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True) as board:
        try:
            assert "listening\n" in iter(board.stdout.readline, "")  # simavr has words of its own before
            pykernel("table", f"socket://127.0.0.1:{port}", "-o", table, "--force")
            assert board.wait(60) == 0
        finally:
            board.kill()


def main(out, seconds=300):
    out.mkdir(parents=True, exist_ok=True)
    emulated, eeprom = out / "emulated", out / "eeprom.bin"
    call("gcc", "-O2", HERE / "emulated.c", "-o", emulated, "-lsimavr", "-lelf", "-lm")
    eeprom.unlink(missing_ok=True)

    # a first recording, which needs no model
    pykernel("generate", HERE / "fan.toml", "-o", out / "first", "--for", "recorder", "--force")
    built(out / "first", out / "record.elf", "-DRECORD_ONLY")
    recorded(emulated, out / "record.elf", eeprom, seconds, 1e9, out / "first.csv")

    # a monitor of it, for this CPU
    pykernel("plan", out / "first.csv", "--spec", HERE / "fan.toml", "--ram", 1200, "--trials", 4, "-o", out / "plan")
    pykernel("generate", out / "plan" / "planned.toml", "-o", out / "fan", "--for", "recorder", "--force")
    built(out / "fan", out / "fan.elf")

    # it learns; then the bearing knocks, and at the end the power fails
    recorded(emulated, out / "fan.elf", eeprom, seconds, seconds - 30, out / "life.csv")
    pykernel("state", "replay", out / "plan" / "planned.toml", out / "life.csv")

    # with power again, it goes on with what it knew: from the snapshot in its EEPROM
    recorded(emulated, out / "fan.elf", eeprom, 10, 1e9, out / "again.csv")
    return alarms(out / "life.csv")


def alarms(table):
    """Seconds of the alarms in a recording."""
    header, *rows = [line.split(",") for line in table.read_text().splitlines()]
    time, status = header.index("time"), header.index("status")
    found = sorted({int(row[time]) // 1000 for row in rows if row[status] in ("4", "5")})  # FAN_NOVEL, FAN_HELD
    print("alarms in seconds", found)
    return found


if __name__ == "__main__":
    found = main(Path(sys.argv[1] if len(sys.argv) > 1 else "fan-out"))
    print(json.dumps({"first alarm": found[0] if found else None}))
