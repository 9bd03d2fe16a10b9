"""Run a stream on the host and on emulated CPUs or a board, compare the results byte for byte, and count instructions."""

from __future__ import annotations

import csv
import dataclasses
import datetime
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO, get_args

import numpy as np

from pykernel.dialect import Memory
from pykernel.engine.choice import engines_of_a_check
from pykernel.errors import CheckFailed, MissingExtra, UserError
from pykernel.gen.check import Devices, Progress, Reference, Report
from pykernel.gen.project import build
from pykernel.gen.streams import stream_of
from pykernel.host.replay import log_header, log_rows
from pykernel.spec.model import Spec
from pykernel.spec.sections import TargetSection
from pykernel.targets.board import BAUD, BoardModel, Link, open_port
from pykernel.targets.bound import Bound, call_bounds
from pykernel.targets.build import (
    Image,
    TooLarge,
    emulator_command,
    found_toolchains,
    has_module,
    model_image,
    refuse_large_ram,
    stack_bound,
    toolchain,
)
from pykernel.targets.jobs import JobModel
from pykernel.targets.process_runner import ProcessModel
from pykernel.targets.target import Emulator, Target, Toolchain, all_targets, find_target
from pykernel.targets.unicorn_runner import UnicornModel
from pykernel.targets.wasm_runner import WasmModel
from pykernel.targets.worst import TRIES, worst_call

Way = tuple[Target, Toolchain, Emulator]
WHEELS = ("unicorn", "wasmtime")
"""Emulators that run in this process; all other emulators are separate programs."""
LOGGED = 100
"""Number of rows between two hashes in a log."""


def check_targets(
    spec: Spec,
    names: Sequence[str],
    memory: Memory | None = None,
    samples: int = 1000,
    seed: int = 0,
    chain: str | None = None,
    emulator: str | None = None,
    stream: tuple[np.ndarray, np.ndarray] | None = None,
    level: str = "-O2",
    tries: int = TRIES,
    progress: Progress | None = None,
    devices: Devices = (),
) -> Report:
    """Run a stream through the host and through the C code on each target, and compare states, statuses and outputs.

    names: targets, or "all" for those targets whose tools are installed on this machine, whose parts have enough RAM
    and flash for the model, and which support the model's precision.
    chain, emulator: the toolchain and the emulator; None: for each target, the first one that is installed on this
    machine.
    tries: number of tries in the search for the most expensive call; 0 means no search.
    For other arguments, see ``pykernel.gen.check``.

    Raises UserError if a name is not known, a tool is missing, or the model does not fit a part.
    """
    say = progress or (lambda fraction, text: None)
    x, y = stream_of(spec, samples, seed, stream)
    ways = choose(names, chain, emulator)
    say(0.0, "generating C")
    project = build(spec, memory)
    if "all" in names:
        ways = [way for way in ways if project.figures["precision"] in way[0].precisions] or ways[:1]
    else:
        for target, _, _ in ways:
            refuse_large_ram(project, target)
    engine, *others = engines_of_a_check()
    say(0.05, f"simulating with {engine}")
    reference = Reference(project, memory, x, y, engine, devices)
    rows, too_large = [], []
    for i, way in enumerate(ways):
        say(0.1 + 0.9 * i / len(ways), f"{way[0].name}: {way[1]}, {way[2]}")
        try:
            rows.append(_row(reference, *way, level=level, seed=seed, tries=tries))
        except TooLarge as error:
            too_large.append(error)
    if too_large and not ("all" in names and rows):
        raise too_large[0]
    witnesses = [reference.witness(other, say) for other in others]
    say(1.0, "done")
    return reference.report(rows, witnesses)


def check_board(
    spec: Spec,
    url: str,
    memory: Memory | None = None,
    samples: int = 1000,
    seed: int = 0,
    stream: tuple[np.ndarray, np.ndarray] | None = None,
    baud: int = BAUD,
    log: TextIO | None = None,
    progress: Progress | None = None,
    devices: Devices = (),
) -> Report:
    """Run a stream through the host and through the C code on a board with the firmware of ``generate --for check``.

    url: a port, or any other URL that pyserial supports: /dev/ttyACM0, COM3, socket://host:port, rfc2217://host:port.
    log: if given, the stream runs on the board once more, and the board's answers are written to this file for
    ``pykernel state replay``.
    For other arguments, see ``pykernel.gen.check``.

    In the report's row, ``times`` maps each function to statistics of its times, in ticks of the board's counter.
    ``hertz`` is the number of ticks per second; if it is not known, it is 0, and a tick is a CPU cycle.

    Raises UserError if there is no board, if the board has another model, or if the line is cut.
    """
    say = progress or (lambda fraction, text: None)
    x, y = stream_of(spec, samples, seed, stream)
    project = build(spec, memory)
    link = Link(url, open_port(url, baud), int(project.figures["config_hash"], 16), baud)
    try:
        say(0.0, f"waiting for the board at {url}")
        model = BoardModel(project, link)
        engine, *others = engines_of_a_check()
        say(0.0, f"simulating with {engine}")
        reference = Reference(project, memory, x, y, engine, devices)
        model.progress = lambda done: say(min(0.99, done / len(x) / (2 if log else 1)), f"{model.board.name} at {url}")
        verdict = reference.verdict(model)
        if log:
            write_log(log, model, x, y)
    finally:
        link.line.close()
    witnesses = [reference.witness(other, say) for other in others]
    say(1.0, "done")
    figures = project.figures
    row = {
        "board": model.board.name,
        "url": url,
        "compiler": model.board.compiler,
        "flags": "",
        "date": datetime.date.today().isoformat(),
        "samples": len(x),
        "state_bytes": figures["state_bytes"],
        "ram_bytes": figures["ram_bytes"],
        "stack_bytes": model.stack_bytes or None,
        "hertz": model.board.hertz,
        "times": timed(model),
        "damaged_frames": link.damaged,
    }
    return reference.report([row | verdict], witnesses)


def write_log(log: TextIO, model: BoardModel, x: np.ndarray, y: np.ndarray) -> None:
    """Initialise the model on the board, let it learn a stream, and write a log for ``pykernel state replay``."""
    lines = csv.writer(log, lineterminator="\n")
    lines.writerow(log_header(model.spec))
    model.call("init")
    for start in range(0, len(x), LOGGED):
        part = slice(start, start + LOGGED)
        answers, statuses = model.prequential(x[part], y[part])
        hashed = model.call("hash") if model.spec.program.learns else 0
        lines.writerows(log_rows(model.spec, x[part], y[part], answers, statuses, hashed))


def timed(model: JobModel) -> dict[str, dict[str, float]]:
    """Return a dictionary that maps each function whose calls were timed to statistics of its times, in ticks of the
    board's or the emulator's counter.
    """
    return {
        name: {
            "calls": len(ticks),
            "min": min(ticks),
            "mean": float(np.mean(ticks)),
            "median": float(np.median(ticks)),
            "max": max(ticks),
        }
        for name, ticks in model.ticks.items()
        if any(ticks)
    }


def choose(names: Sequence[str], chain: str | None = None, emulator: str | None = None) -> list[Way]:
    """Return a triple (target, toolchain, emulator) for each target.  "all" leaves out targets for which a tool is
    missing.

    Raises UserError if a target, toolchain or emulator is not known or not installed.  The message lists the known
    ones, or says how to install what is missing.
    """
    for word, known, what in ((chain, Toolchain, "toolchain"), (emulator, Emulator, "emulator")):
        if word is not None and word not in get_args(known):
            raise UserError(f"{what} {word!r} is not known; there are: {', '.join(get_args(known))}")
    if "all" not in names:
        return [_way(find_target(name), chain, emulator) for name in dict.fromkeys(names)]
    ways, missing = [], []
    for target in all_targets().values():
        try:
            ways.append(_way(target, chain, emulator))
        except UserError as error:
            missing.append(error)
    if not ways:
        raise missing[0]
    return ways


def _way(target: Target, chain: str | None, emulator: str | None) -> Way:
    for word, known, what in ((chain, target.toolchains, "toolchain"), (emulator, target.emulators, "emulator")):
        if word is not None and word not in known:
            raise UserError(f"{target.name} has no {what} {word}; it has: {', '.join(known)}")
    # if no toolchain is installed, the error names zig: it is a wheel, so it is the easiest to install
    chains: Sequence[Any] = [chain] if chain else found_toolchains(target) or target.toolchains[::-1]
    toolchain(target, chains[0])
    emulators: Sequence[Any] = [emulator] if emulator else found_emulators(target) or target.emulators
    if emulators[0] not in WHEELS:
        emulator_command(target, getattr(target, emulators[0]))
    elif not has_module(emulators[0]):
        raise MissingExtra(f"emulating {target.name}", "emulate")
    return target, chains[0], emulators[0]


def found_emulators(target: Target) -> list[Emulator]:
    """Return the target's emulators that are installed on this machine.  They are not started."""
    return [
        name
        for name in target.emulators
        if (has_module(name) if name in WHEELS else shutil.which(getattr(target, name).command))
    ]


def _row(
    reference: Reference, target: Target, chain: Toolchain, emulator: Emulator, level: str, seed: int, tries: int
) -> dict[str, Any]:
    project = reference.project
    row: dict[str, Any] = {
        "target": target.name,
        "part": target.part.name,
        "toolchain": chain,
        "flags": level,
        "emulator": emulator,
        "samples": len(reference.x),
        "state_bytes": project.figures["state_bytes"],
        "ram_bytes": project.figures["ram_bytes"],
    }
    compiler = toolchain(target, chain)
    row |= {"compiler": compiler.name, "version": compiler.version}
    try:
        if emulator == "wasmtime":
            module = WasmModel(project, target, level)
            return row | {"flash_bytes": module.flash_bytes} | reference.verdict(module)
        image = model_image(project, target, chain, level=level)
        row |= image.sizes | {"flash_bytes": image.flash_bytes, "stack_bound_bytes": stack_bound(image)}
        row["bounds"] = {name: dataclasses.asdict(bound) for name, bound in call_bounds(project, image).items()}
        if emulator != "unicorn":
            process = ProcessModel(project, target, chain, level=level)
            row |= reference.verdict(process) | {"stack_bytes": process.stack_bytes or None}
            refuse_large_ram(project, target, image.data_bytes, process.stack_bytes)
            times = timed(process)
            return row | ({"times": times} if times else {})
        row |= _emulate(reference, image, seed, tries)
        for call in row["calls"]:
            bound = row["bounds"].get(call, {}).get("instructions")
            most = max(row[call]["max"], row[call]["worst"] or 0)
            if bound is not None:
                row[call] |= {"bound": bound, "ratio": round(bound / most, 3)}
                if most > bound:  # this would refute the proof; it has never happened
                    raise CheckFailed(
                        f"{call} took {most:,} instructions, more than its bound of {bound:,}: this is a fault in pykernel"
                    )
        if any(bound["instructions"] is not None for bound in row["bounds"].values()):
            row["bounds"]["selftest"] = dataclasses.asdict(Bound(row["other_calls"]["selftest"]))
        return row
    except CheckFailed as error:
        return row | {"equal": False, "first_difference": str(error)}


def _emulate(reference: Reference, image: Image, seed: int, tries: int) -> dict[str, Any]:
    model = UnicornModel(reference.project, image)
    model.paint_stack()
    row = reference.verdict(model)
    for name, costs in model.costs.items():
        if costs:
            searched = tries and name in model.hardest  # the search covers the main question and the update
            worst = worst_call(model, name, reference.x, reference.y, seed, tries).instructions if searched else None
            row[name] = instruction_figures(costs, worst)
    row["calls"] = [name for name, costs in model.costs.items() if costs]
    return row | {"other_calls": model.other_calls, "stack_bytes": model.stack_bytes}


def instruction_figures(costs: Sequence[int], worst: int | None = None) -> dict[str, float | None]:
    """Return statistics of the instructions per call over a stream, and the largest number that the search found.

    ``bound`` and ``ratio`` are None until ``_row`` sets them.
    """
    return {
        "min": min(costs),
        "mean": round(float(np.mean(costs)), 1),
        "median": float(np.median(costs)),
        "max": max(costs),
        "worst": worst,
        "bound": None,
        "ratio": None,
    }


def exceeded(spec: Spec, figures: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()) -> list[str]:
    """Return a sentence for each figure that exceeds a limit in the spec's [target], and for each limit that could not
    be checked.

    figures: the project's figures.  rows: rows from ``check_targets`` in which no difference was found.  Only rows for
    the CPU in [target] are used.
    """
    limits = spec.target
    if limits is None:
        return []
    ram, found = figures["state_bytes"] + figures["work_bytes"], list[str]()
    if limits.ram is not None and ram > limits.ram:
        found.append(f"{spec.name} takes {ram:,} bytes of RAM; [target] ram is {limits.ram:,}")
    for row in rows:
        if row["target"] == limits.name:
            if limits.flash is not None and row["flash_bytes"] > limits.flash:
                found.append(
                    f"{spec.name} takes {row['flash_bytes']:,} bytes of flash on {limits.name}; [target] flash is {limits.flash:,}"
                )
            for call in filter(None, (spec.program.learner, spec.program.asks)):
                found += _exceeded_by(call, spec.name, limits, row)
    return found


def _exceeded_by(call: str, name: str, limits: TargetSection, row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sentences of ``exceeded`` about the instructions and cycles of one function."""
    bound, counted = row.get("bounds", {}).get(call, {}), row.get(call, {})
    proved, why = bound.get("instructions"), bound.get("refused") or "none was computed"
    takes = f"{name}_{call} takes {'up to ' if proved else ''}"
    most = proved or max((counted.get(key) or 0 for key in ("max", "worst")), default=0)
    if limits.instructions is not None and not most:
        yield f"[target] instructions cannot be checked: {call} has no bound on {limits.name} ({why}), and {row['emulator']} does not count instructions"
    elif limits.instructions is not None and most > limits.instructions:
        yield f"{takes}{most:,.0f} instructions on {limits.name}; [target] instructions is {limits.instructions:,}"
    if limits.cycles is None:
        return
    if proved is None:
        yield f"[target] cycles cannot be checked: {call} has no bound on {limits.name} ({why})"
    elif bound["cycles"] is None or bound["estimated"]:
        yield f"[target] cycles: on {limits.name}, a cycle count cannot be derived from the instruction count; set [target] instructions instead"
    elif bound["cycles"] > limits.cycles:
        yield f"{takes}{bound['cycles']:,} cycles on {limits.name}; [target] cycles is {limits.cycles:,}"
