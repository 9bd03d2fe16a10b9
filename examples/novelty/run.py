"""The whole way of a monitor: simulate it, generate its C, prove that the C does the same, run it, see the alarms.

    python examples/novelty/run.py [-o FOLDER] [--docs docs/data/novelty]

One stream of the machine: rows to settle in, normal operation, faults that are repaired, one that an operator rejects, a change
that an operator acknowledges.  FOLDER (default: novelty-out) gets the C project, rows.txt and alarms.csv; --docs also writes the
figure and the output that docs/guide/monitor-settings.md shows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from machine import FAULTS, SENSORS, Drive, Fault  # noqa: E402

from pykernel import HostModel, Spec, check, generate, load_spec  # noqa: E402
from pykernel.algorithms.novelty.state import GmmStatus  # noqa: E402
from pykernel.files import whole_file  # noqa: E402
from pykernel.gen.compilers import find_compilers  # noqa: E402
from pykernel.gen.project import build  # noqa: E402

SEED = 0
TARGET, CHAIN, LEVEL = "cortex-m4f", "zig", "-O2"
NOVEL, HELD = GmmStatus.NOVEL, GmmStatus.HELD
BUTTONS = {"-": "", "a": "acknowledge", "r": "reject"}
"""What is pressed after a row, as rows.txt has it, and what is called then."""


@dataclass(frozen=True)
class Part:
    """What happens for how long."""

    rows: int
    text: str
    fault: Fault | None = None
    button: str = "-"
    pressed: int = 0  # after which row of the part


def fault(name: str) -> Fault:
    return next(found for found in FAULTS if found.name == name)


NORMAL, OTHER_BRAKE = Part(1500, "normal"), Fault("drag", 0.6, "another brake")
TOUR = (
    Part(4000, "settling in"),
    Part(2000, "normal"),
    Part(200, "a brake drags", fault("drag, large")),
    NORMAL,
    Part(200, "stuck band 3", fault("stuck, whole")),
    NORMAL,
    Part(100, "imbalance, rejected", fault("imbalance, large"), "r", 10),
    NORMAL,
    Part(100, "imbalance again", fault("imbalance, large")),
    NORMAL,
    Part(1000, "another brake, acknowledged", OTHER_BRAKE, "a", 10),
    Part(4000, "the other brake still", OTHER_BRAKE),
)


@dataclass(frozen=True)
class Record:
    """rows: (rows, 8) float32, as the device will read them; gears: (rows,); buttons: of BUTTONS, a letter for each row."""

    rows: np.ndarray
    gears: np.ndarray
    buttons: str

    def pieces(self) -> Iterator[tuple[np.ndarray, str]]:
        """The rows up to each button that is pressed, and what is called then; at the end nothing is."""
        first = 0
        for t, button in enumerate(self.buttons):
            if button != "-" or t + 1 == len(self.buttons):
                yield self.rows[first : t + 1], BUTTONS[button]
                first = t + 1


@dataclass(frozen=True)
class Course:
    """What a model said of each row."""

    statuses: np.ndarray
    states: np.ndarray  # level, threshold, rows since the alarm began, (rows, 3)
    shares: np.ndarray  # of each sensor in the alarm, (rows, 8); 0 where there is none
    kinds: np.ndarray  # a GmmStatus of each row in alarm

    @property
    def alarms(self) -> np.ndarray:
        return np.isin(self.statuses, (NOVEL, HELD))

    @property
    def levels(self) -> np.ndarray:
        return self.states[:, 0]

    @property
    def thresholds(self) -> np.ndarray:
        return self.states[:, 1]


def record(parts: Sequence[Part] = TOUR, seed: int = SEED) -> Record:
    machine = Drive(seed)
    streams = [machine.run(part.rows, part.fault) for part in parts]
    buttons = ["-" * part.pressed + part.button + "-" * (part.rows - part.pressed - 1) for part in parts]
    rows = np.concatenate([stream.x for stream in streams]).astype(np.float32)
    return Record(rows, np.concatenate([stream.gear for stream in streams]), "".join(buttons))


def simulate(spec: Spec, stream: Record) -> tuple[Course, HostModel]:
    """Row by row, since level, threshold and blame are read after each."""
    model, rows = HostModel(spec), len(stream.rows)
    found = Course(
        np.empty(rows, np.int32),
        np.empty((rows, 3), np.float32),
        np.zeros((rows, len(SENSORS)), np.float32),
        np.zeros(rows, np.int32),
    )
    for t, (row, button) in enumerate(zip(stream.rows, stream.buttons, strict=True)):
        found.statuses[t] = model.update(row[None])[0]
        found.states[t] = model.read("alarm")[0]
        if found.statuses[t] in (NOVEL, HELD):
            found.shares[t], found.kinds[t] = model.read("blame")
        if button != "-":
            model.call(BUTTONS[button])
    return found, model


# ------------------------------------------------------------------------------------------------------ on the device


def run_firmware(folder: Path, stream: Record) -> list[list[str]]:
    """Compile firmware.c with the generated C, feed it the rows; the lines that it prints."""
    lines = (
        f"{button} {' '.join(f'{value:.9g}' for value in row)}\n"
        for row, button in zip(stream.rows, stream.buttons, strict=True)
    )
    (folder / "rows.txt").write_text("".join(lines))
    program, compiler = folder / "firmware", find_compilers()[0]
    sources = [str(HERE / "firmware.c"), str(folder / "monitor" / "src" / "monitor.c")]
    options = ["-O2", "-std=c99", "-ffp-contract=off", f"-I{folder / 'monitor' / 'src'}", "-o", str(program)]
    subprocess.run([*compiler.command, *options, *sources], check=True)
    with (folder / "rows.txt").open() as rows:
        done = subprocess.run([program], stdin=rows, capture_output=True, text=True, check=True)
    (folder / "alarms.csv").write_text(done.stdout)
    return [line.split(",") for line in done.stdout.splitlines()]


def kind_of(kind: int) -> str:
    """A word for what is wrong."""
    return GmmStatus(kind).name.lower() if kind in (*range(GmmStatus.JUMP, GmmStatus.REGIME + 1),) else "unknown"


def said(course: Course) -> list[list[str]]:
    """The lines that the firmware should print."""
    found = []
    for t in np.flatnonzero(course.alarms):
        (level, threshold, since), shares = course.states[t], course.shares[t]
        most, second = np.argsort(-shares, kind="stable")[:2]
        told = [str(t), str(int(since)), f"{level:.9g}", f"{threshold:.9g}", kind_of(course.kinds[t])]
        other = SENSORS[second] if shares[second] >= shares[most] / 2 else ""
        found.append([*told, SENSORS[most], f"{shares[most]:.9g}", other])
    return found


def emulate(spec: Spec, stream: Record) -> dict[str, Any]:
    """All rows on an emulated CPU: what they took, and whether memory, answers and statuses are the simulation's."""
    from pykernel.targets.build import model_image, toolchain
    from pykernel.targets.target import find_target
    from pykernel.targets.unicorn_runner import UnicornModel

    project, target = build(spec), find_target(TARGET)
    image = model_image(project, target, CHAIN, level=LEVEL)
    device, host = UnicornModel(project, image), HostModel(spec, project.drop)
    device.paint_stack()
    equal = True
    for rows, button in stream.pieces():
        answers, statuses = device.prequential(rows, np.zeros((len(rows), 0), np.float32))
        expected, reported = host.prequential(rows)
        equal = equal and np.array_equal(answers, expected) and np.array_equal(statuses, reported)
        if button:
            equal = equal and device.call(button) == host.call(button)
        (shares, kind), (expected, reported_kind) = device.read("blame"), host.read("blame")
        equal = equal and np.array_equal(shares, expected) and kind == reported_kind
        equal = equal and bytes(device.memory.bytes) == bytes(host.memory.bytes)
    costs = {name: np.array(device.costs[name]) for name in ("novelty", "update")}
    return {
        "equal": bool(equal),
        "flash_bytes": image.flash_bytes,
        "stack_bytes": device.machine.stack_used(),
        "calls": {name: (round(float(taken.mean())), int(taken.max())) for name, taken in costs.items()},
        "others": {
            name: device.other_calls[name] for name in ("blame", "acknowledge", "reject") if name in device.other_calls
        },
        "compiler": f"{CHAIN} {toolchain(target, CHAIN).version} {LEVEL}",
    }


# ------------------------------------------------------------------------------------------------------------ results


def happened(course: Course, parts: Sequence[Part]) -> Iterator[str]:
    """A line for each part: rows in alarm, rows until the first, rows held, what is blamed most often."""
    yield f"{'rows':>15}  {'what happens':28} {'in alarm':>8} {'first after':>11} {'held':>5}  blamed"
    start = 0
    for part in parts:
        here = slice(start, start + part.rows)
        at = np.flatnonzero(course.alarms[here])
        held, first = int((course.statuses[here] == HELD).sum()), int(at[0]) if len(at) else ""
        blamed = ""
        if len(at):
            sensors = Counter(SENSORS[j] for j in course.shares[here][at].argmax(axis=1))
            kinds = Counter(kind_of(kind) for kind in course.kinds[here][at])
            blamed = f"  {sensors.most_common(1)[0][0]}, {kinds.most_common(1)[0][0]}"
        span = f"{start:,}-{start + part.rows - 1:,}"
        yield f"{span:>15}  {part.text:28} {len(at):8} {first:>11} {held:5}{blamed}"
        start += part.rows


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=Path("novelty-out"))
    parser.add_argument("--docs", type=Path, help="also write what docs/guide/monitor-settings.md shows")
    parser.add_argument("--samples", type=int, default=100_000, help="random samples of the check")
    chosen = parser.parse_args(words)
    chosen.out.mkdir(parents=True, exist_ok=True)

    said_here: list[str] = []

    def tell(line: str) -> None:
        said_here.append(line)
        print(line)

    spec, stream = load_spec(HERE / "monitor.toml"), record()
    rows = f"{len(stream.rows):,} rows"
    course, _ = simulate(spec, stream)
    tell(f"simulated    {rows} of {len(SENSORS)} sensors, {int(course.alarms.sum())} of them in alarm")

    project = generate(spec, chosen.out / "monitor", force=True)
    state, ram = project.figures["state_bytes"], project.figures["ram_bytes"]
    tell(f"generated    C: {ram:,} bytes of RAM, {state:,} of them are what is learned")

    report = check(spec, samples=chosen.samples)
    builds = ", ".join(f"{row['compiler']} {row['flags']}" for row in report.rows)
    tell(f"checked      {chosen.samples:,} random rows, {builds}: memory {'equal' if report.ok else 'NOT EQUAL'}")

    same = run_firmware(chosen.out, stream) == said(course)
    tell(f"firmware     {rows}: {'the alarms' if same else 'NOT the alarms'} of the simulation")

    device = emulate(spec, stream)
    tell(f"{TARGET}   {rows}: memory, answers and statuses {'equal' if device['equal'] else 'NOT EQUAL'}")
    tell(
        f"             {device['flash_bytes']:,} bytes of flash, {device['stack_bytes']} of stack ({device['compiler']})"
    )
    for name, (mean, most) in device["calls"].items():
        tell(f"             {name}: {mean:,} instructions, at most {most:,}")
    for name, most in device["others"].items():
        tell(f"             {name}: at most {most:,}")
    tell("")
    for line in happened(course, TOUR):
        tell(line)
    if not (report.ok and same and device["equal"]):
        sys.exit("the C does not compute what the simulation computes")

    if chosen.docs is not None:
        from figures import alarm_figure

        chosen.docs.mkdir(parents=True, exist_ok=True)
        output = "".join(f"{line.rstrip()}\n" for line in said_here)
        with whole_file(chosen.docs / "output.txt") as file:
            file.write(output.encode())
        alarm_figure(chosen.docs / "alarms.svg", TOUR, stream.gears, course)


if __name__ == "__main__":
    main()
