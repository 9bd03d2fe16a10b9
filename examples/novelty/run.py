"""The whole way of a monitor: simulate it, generate its C, prove that the C does the same, run it, see the alarms.

    python examples/novelty/run.py [-o FOLDER] [--docs docs/data/novelty]

One stream of the machine: samples to settle in, normal operation, three faults that are repaired, a change that stays.
FOLDER (default: novelty-out) gets the C project, samples.txt and alarms.csv; --docs also writes the tables and figures that
docs/novelty.md shows.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from detectors import detector  # noqa: E402
from machine import FAULTS, SENSORS, Drive, Fault  # noqa: E402

from pykernel import HostModel, Spec, check, generate, load_spec  # noqa: E402
from pykernel.files import whole_file  # noqa: E402
from pykernel.gen.compilers import find_compilers  # noqa: E402
from pykernel.gen.project import build  # noqa: E402

SEED = 0
TARGET, CHAIN, LEVEL = "cortex-m4f", "zig", "-O2"
NOVEL, HELD = 4, 5
BESIDE = {"largest": "max |z|", "mahalanobis": "Mahalanobis"}
"""What the figure shows beside the monitor."""
WINDOWS = {"largest": 1000, "mahalanobis": 16_000}
"""The best of those that compare.py tried."""


@dataclass(frozen=True)
class Part:
    """What happens for how long."""

    samples: int
    text: str
    fault: Fault | None = None


def fault(name: str) -> Fault:
    return next(found for found in FAULTS if found.name == name)


TOUR = (
    Part(4000, "settling in"),
    Part(2000, "normal"),
    Part(200, "slip", fault("slip, large")),
    Part(1500, "normal"),
    Part(200, "stuck sensor", fault("stuck, whole")),
    Part(1500, "normal"),
    Part(100, "imbalance", fault("imbalance, large")),
    Part(1500, "normal"),
    Part(1000, "other gears from here on", fault("mesh, medium")),
    Part(4000, "still", fault("mesh, medium")),
)


@dataclass(frozen=True)
class Course:
    """What a model said of each sample."""

    scores: np.ndarray
    statuses: np.ndarray
    levels: np.ndarray
    thresholds: np.ndarray

    @property
    def alarms(self) -> np.ndarray:
        return np.isin(self.statuses, (NOVEL, HELD))


def record(parts: Sequence[Part] = TOUR, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """The samples, as the device will read them, (samples, 8) float32, and the gear of each."""
    machine = Drive(seed)
    streams = [machine.run(part.samples, part.fault) for part in parts]
    x = np.concatenate([stream.x for stream in streams]).astype(np.float32)
    return x, np.concatenate([stream.gear for stream in streams])


def simulate(spec: Spec, x: np.ndarray) -> tuple[Course, HostModel]:
    """Sample by sample, since level and threshold are read after each."""
    model = HostModel(spec)
    scores, statuses = np.empty(len(x), np.float32), np.empty(len(x), np.int32)
    state = np.empty((len(x), 2), np.float32)
    for t in range(len(x)):
        score, status = model.prequential(x[t : t + 1])
        scores[t], statuses[t] = score[0], status[0]
        state[t] = model.read("alarm")[0]
    return Course(scores, statuses, state[:, 0], state[:, 1]), model


# ------------------------------------------------------------------------------------------------------ on the device


def run_firmware(folder: Path, x: np.ndarray) -> list[list[str]]:
    """Compile firmware.c with the generated C, feed it the samples; the lines that it prints."""
    np.savetxt(folder / "samples.txt", x, fmt="%.9g")
    program, compiler = folder / "firmware", find_compilers()[0]
    sources = [str(HERE / "firmware.c"), str(folder / "monitor" / "src" / "monitor.c")]
    options = ["-O2", "-std=c99", "-ffp-contract=off", f"-I{folder / 'monitor' / 'src'}", "-o", str(program)]
    subprocess.run([*compiler.command, *options, *sources], check=True)
    with (folder / "samples.txt").open() as samples:
        done = subprocess.run([program], stdin=samples, capture_output=True, text=True, check=True)
    (folder / "alarms.csv").write_text(done.stdout)
    return [line.split(",") for line in done.stdout.splitlines()]


def said(course: Course) -> list[list[str]]:
    """The lines that the firmware should print."""
    return [
        [str(t), "held" if course.statuses[t] == HELD else "learned"]
        + [f"{value:.9g}" for value in (course.levels[t], course.thresholds[t])]
        for t in np.flatnonzero(course.alarms)
    ]


def emulate(spec: Spec, x: np.ndarray) -> dict[str, Any]:
    """All samples on an emulated CPU: what they took, and whether memory, answers and statuses are the simulation's."""
    from pykernel.targets.build import model_image, toolchain
    from pykernel.targets.target import find_target
    from pykernel.targets.unicorn_runner import UnicornModel

    project, target = build(spec), find_target(TARGET)
    image = model_image(project, target, CHAIN, level=LEVEL)
    device, host = UnicornModel(project, image), HostModel(spec, project.drop)
    device.paint_stack()
    answers, statuses = device.prequential(x, np.zeros((len(x), 0), np.float32))
    expected, reported = host.prequential(x)
    equal = np.array_equal(answers, expected) and np.array_equal(statuses, reported)
    equal = equal and bytes(device.memory.bytes) == bytes(host.memory.bytes)
    costs = {name: np.array(device.costs[name]) for name in ("novelty", "update")}
    return {
        "equal": "yes" if equal else "NO",
        "samples": len(x),
        "state_bytes": project.figures["state_bytes"],
        "ram_bytes": project.figures["ram_bytes"],
        "flash_bytes": image.flash_bytes,
        "stack_bytes": device.machine.stack_used(),
        **{f"{name}_mean": round(float(taken.mean())) for name, taken in costs.items()},
        **{f"{name}_max": int(taken.max()) for name, taken in costs.items()},
        "compiler": f"{CHAIN} {toolchain(target, CHAIN).version} {LEVEL}",
    }


# ------------------------------------------------------------------------------------------------------------ results


def happened(courses: Mapping[str, Course], parts: Sequence[Part]) -> list[dict[str, Any]]:
    """For each part and model: alarms, samples until the first, samples in alarm, samples held."""
    rows, start = [], 0
    for part in parts:
        here = slice(start, start + part.samples)
        for name, course in courses.items():
            alarmed = course.alarms[here]
            begun = alarmed & ~np.r_[course.alarms[start - 1] if start else False, alarmed[:-1]]
            at = np.flatnonzero(alarmed)
            rows.append(
                {"from": start, "to": start + part.samples - 1, "what": part.text, "detector": name}
                | {"alarms": int(begun.sum()), "after": int(at[0]) if len(at) else "", "samples": len(at)}
                | {"held": int((course.statuses[here] == HELD).sum())}
                | {"level": f"{course.levels[here].mean():.3g}", "threshold": f"{course.thresholds[here][-1]:.3g}"}
            )
        start += part.samples
    return rows


def save(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with whole_file(path) as file:
        file.write(text.getvalue().encode())


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=Path("novelty-out"))
    parser.add_argument("--docs", type=Path, help="also write what docs/novelty.md shows")
    parser.add_argument("--samples", type=int, default=100_000, help="random samples of the check")
    chosen = parser.parse_args(words)
    chosen.out.mkdir(parents=True, exist_ok=True)

    said_here: list[str] = []

    def tell(line: str) -> None:
        said_here.append(line)
        print(line)

    spec = load_spec(HERE / "monitor.toml")
    x, gears = record()
    course, _ = simulate(spec, x)
    tell(f"simulated    {len(x):,} samples of {len(SENSORS)} sensors, {int(course.alarms.sum())} of them alarms")

    project = generate(spec, chosen.out / "monitor", force=True)
    state, ram = project.figures["state_bytes"], project.figures["ram_bytes"]
    tell(f"generated    C: {ram:,} bytes of RAM, {state:,} of them are what is learned")

    report = check(spec, samples=chosen.samples)
    builds = ", ".join(f"{row['compiler']} {row['flags']}" for row in report.rows)
    tell(f"checked      {chosen.samples:,} random samples, {builds}: memory {'equal' if report.ok else 'NOT EQUAL'}")

    lines = run_firmware(chosen.out, x)
    same = lines == said(course)
    tell(f"firmware     {len(x):,} samples, {len(lines)} alarms: {'those' if same else 'NOT those'} of the simulation")

    device = emulate(spec, x)
    tell(
        f"{TARGET}   {len(x):,} samples: memory, answers and statuses {'equal' if device['equal'] == 'yes' else 'NOT EQUAL'}"
    )
    tell(f"             {device['flash_bytes']:,} bytes of flash, {device['stack_bytes']} of stack")
    for name in ("novelty", "update"):
        tell(f"             {name}: {device[f'{name}_mean']:,} instructions, at most {device[f'{name}_max']:,}")
    tell("")
    rows = happened({"okfeb": course}, TOUR)
    tell(f"{'samples':>15}  {'what happens':24} {'alarms':>6} {'first after':>11} {'in alarm':>8} {'held':>5}")
    for row in rows:
        span = f"{row['from']:,}-{row['to']:,}"
        tell(f"{span:>15}  {row['what']:24} {row['alarms']:6} {row['after']:>11} {row['samples']:8} {row['held']:5}")
    if not (report.ok and same and device["equal"] == "yes"):
        sys.exit("the C does not compute what the simulation computes")

    if chosen.docs is not None:
        from figures import alarm_figure

        chosen.docs.mkdir(parents=True, exist_ok=True)
        courses = {"okfeb": course}
        for kind in BESIDE:
            courses[kind] = simulate(detector(spec, kind, window=WINDOWS[kind]), x)[0]
        (chosen.docs / "output.txt").write_text("".join(f"{line.rstrip()}\n" for line in said_here))
        save(chosen.docs / "tour.csv", happened(courses, TOUR))
        save(chosen.docs / "device.csv", [device])
        alarm_figure(chosen.docs / "alarms.svg", TOUR, gears, courses, BESIDE)


if __name__ == "__main__":
    main()
