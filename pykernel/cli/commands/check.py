"""The command ``pykernel check``: does the C compute what the host computes?"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pykernel.cli import inputs, output
from pykernel.cli.options import Engine, Json, SpecFile, TrustCode, option, takes
from pykernel.errors import CheckFailed, UserError

if TYPE_CHECKING:
    from pykernel.gen.check import Report
    from pykernel.spec.model import Spec


LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
ON_TARGETS = 1000
"""Random samples on a target, if the command does not say how many."""


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    spec_file: SpecFile
    target: Annotated[
        list[str] | None,
        option("--target", value="TARGET", text="Run on this emulated CPU, or on all."),
    ] = None
    toolchain: Annotated[
        str | None,
        option("--toolchain", value="zig|gcc", text="Compiles for the target.", without="the first found", rare=True),
    ] = None
    emulator: Annotated[
        str | None,
        option("--emulator", value="unicorn|qemu", text="Runs the target.", without="the first found", rare=True),
    ] = None
    level: Annotated[str, option("--level", value="-O2|-Os|…", text="Optimisation for the target.", rare=True)] = "-O2"
    board: Annotated[
        str | None,
        option("--board", value="URL", text="Run on the board at this port."),
    ] = None
    baud: Annotated[int, option("--baud", value="N", text="Speed of the board's line.", rare=True)] = 115_200
    clock: Annotated[
        str | None, option("--clock", value="HZ", text="The processor's clock, such as 48M.", rare=True)
    ] = None
    rate: Annotated[
        str | None, option("--rate", value="HZ", text="Samples a second: the share of the processor.", rare=True)
    ] = None
    current: Annotated[
        str | None, option("--current", value="UA", text="Microamperes per MHz: the charge a day.", rare=True)
    ] = None
    data: Annotated[
        str | None,
        option("--data", value="CSV", text="Learn these rows.", without="random ones"),
    ] = None
    log: Annotated[
        Path | None,
        option("--log", value="CSV", text="Write what the board answered, for pykernel replay.", rare=True),
    ] = None
    samples: Annotated[
        int | None,
        option("--samples", value="N", text="Random samples to learn.", without="100000; elsewhere 1000"),
    ] = None
    seed: Annotated[int, option("--seed", value="S", text="Seed of the random samples.")] = 0
    record: Annotated[
        Path | None,
        option("--record", value="FOLDER", text="Write the results to VALIDITY.md of this generated project."),
    ] = None
    trust: TrustCode = False
    engine: Engine = None
    as_json: Json = False


@takes(CheckOptions)
def check(options: CheckOptions) -> None:
    """Check that the C computes what the host computes, to the byte.

    The C is generated and compiled with each compiler on this machine, with and without optimisation. The C and the
    simulation learn the same random samples, including difficult ones. Then their whole memories are compared.

        pykernel check spec.toml
        pykernel check spec.toml --target cortex-m4f --target rv32imac --record out/
        pykernel check spec.toml --board /dev/ttyACM0 --record out/

    A board needs the firmware of pykernel generate --with-check (docs/boards.md).

    Columns: equal says whether the bytes are equal. Code and constants are bytes of flash. For a target, flash is the
    whole program, RAM is the model, stack is the largest use. The second table counts the instructions of one call; worst
    is the most expensive call that a search found, and no call takes more than bound (docs/bounds.md). Instead: what
    simple predictors would keep.

    A spec's [target] sets limits: RAM, flash, instructions, cycles. For all but RAM the model runs on that CPU, too.

    Exit codes: 0 equal, 1 not equal or beyond the [target], 2 bad input (or no compiler, no board, or a model too large for a target's part).
    """
    from pykernel.gen.record import record, require_project
    from pykernel.host.simple import simple_bytes
    from pykernel.targets.check import exceeded

    spec = inputs.read_spec(options.spec_file, options.trust)
    samples = options.samples
    if samples is None:
        samples = ON_TARGETS if options.target or options.board else 100_000
    need_possible(options, samples)
    if options.record:
        require_project(options.record, spec)
    report = run(spec, options, samples)
    on_target = check_own_target(spec, options)
    if options.record:
        record(options.record, spec, report)
    simple = simple_bytes(spec)
    loads = loads_of(spec, options, report.rows)
    rows = [*report.rows, *on_target]
    equal = all(row["equal"] for row in rows)
    too_much = exceeded(spec, report.figures, [*(report.rows if options.target else []), *on_target]) if equal else []
    if options.as_json:
        found: dict[str, Any] = {"ok": equal and not too_much, "check": rows, "sizes": report.figures}
        found |= {"simple_bytes": simple, "exceeded": too_much} | ({"load": loads} if loads else {})
        output.print_json(found)
    else:
        shown = output.print_board if options.board else output.print_targets if options.target else output.print_check
        shown(report.rows)
        output.print_loads(loads)
        if on_target:
            output.print_targets(on_target)
        output.print_sizes(report.figures, simple)
    if not equal:
        raise CheckFailed(output.first_difference(rows))
    if too_much:
        large = any(" takes " in sentence for sentence in too_much)
        smaller = "; a smaller [reduction] n_max takes less" if large and spec.has("reduction", "n_max") else ""
        raise CheckFailed("; ".join(too_much) + smaller)


def need_possible(options: CheckOptions, samples: int) -> None:
    """Refuses numbers that mean nothing, and options of targets without a target."""
    if samples < 1:
        raise UserError(f"samples is {samples}; it must be 1 or more")
    if options.seed < 0:
        raise UserError(f"seed is {options.seed}; it must be 0 or more")
    if options.level not in LEVELS:
        raise UserError(f"level {options.level!r} is not known; there are: {', '.join(LEVELS)}")
    given = None if options.level == "-O2" else options.level
    for name, value in (
        ("--toolchain", options.toolchain),
        ("--emulator", options.emulator),
        ("--level", given),
    ):
        if value and not options.target:
            raise UserError(f"{name} {value} is for targets; add --target …, or --target all")
    for name, value in (("--clock", options.clock), ("--rate", options.rate), ("--current", options.current)):
        if value is not None:
            amount(value, name)
        if value and not options.rate:
            raise UserError(f"{name} {value} needs the samples a second, too; add --rate …")
    if options.rate and not (options.target or options.board):
        raise UserError("--rate is for targets and boards; add --target … or --board …")
    if options.rate and options.target and not options.clock:
        raise UserError("--rate needs the processor's clock, too; add --clock …")
    if options.baud < 1:
        raise UserError(f"baud is {options.baud}; it must be 1 or more")
    if options.board == "":
        raise UserError("--board has no value; give a port, such as /dev/ttyACM0")
    if options.board and options.target:
        raise UserError("--board and --target are two checks; give one of them")
    if options.log and not options.board:
        raise UserError(f"--log {options.log} is for boards; add --board …")
    if options.log and options.data:
        inputs.need_not_data(options.log, options.data)
    if options.data and options.samples:
        raise UserError("--samples is for random samples; leave it out, or --data")


def loads_of(spec: Spec, options: CheckOptions, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The share of the processor, and the charge, of each row; nothing if they were not asked for."""
    from pykernel.targets.load import load_of

    if options.rate is None:
        return []
    clock = None if options.clock is None else amount(options.clock, "--clock")
    rate, current = amount(options.rate, "--rate"), amount(options.current, "--current") if options.current else None
    found = []
    for row in rows:
        load, name = load_of(spec, row, clock, rate), row.get("board") or row["target"]
        if load is None:
            found.append({"target": name, "cycles": None})
            continue
        found.append(
            {
                "target": name,
                "kind": load.kind,
                "cycles": round(load.most),
                "microseconds": load.seconds * 1e6,
                "share": load.share,
                **({} if current is None else {"mah_a_day": load.charge(current)}),
            }
        )
    return found


def amount(text: str, name: str) -> float:
    """A number such as 48M, 32.768k or 0.1."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)([kKM]?)", text, re.ASCII)
    value = (
        float(found[1]) * {"": 1, "k": 1e3, "M": 1e6}[found[2].replace("K", "k")] if found and len(text) < 30 else 0.0
    )
    if value <= 0:
        example = {"--clock": "48M", "--rate": "10", "--current": "120"}[name]
        raise UserError(f"{name} is {text[:40]!r}; it must be a number above 0, such as {example}")
    if name == "--clock" and value < 1000:
        raise UserError(f"--clock is {text}, which is {value:g} Hz; of megahertz write {text}M")
    return value


def check_own_target(spec: Spec, options: CheckOptions) -> list[Any]:
    """What the CPU of the spec's [target] says, where limits need it and the command does not name it."""
    limits = spec.target
    if limits is None or limits.name is None or not (limits.flash or limits.instructions or limits.cycles):
        return []
    if {"all", limits.name} & set(options.target or ()):
        return []
    return run(spec, replace(options, target=[limits.name], board=None, log=None), options.samples or ON_TARGETS).rows


def run(spec: Spec, options: CheckOptions, samples: int) -> Report:
    """The comparison, with this machine's compilers, on targets or on a board."""
    stream = inputs.read_rows(spec, options.data) if options.data else None
    with output.progress(options.as_json) as show, contextlib.ExitStack() as stack:
        if options.board:
            from pykernel.files import whole_file
            from pykernel.targets.check import check_board

            log = None
            if options.log:
                log = io.TextIOWrapper(stack.enter_context(whole_file(options.log)), "utf-8", write_through=True)
            report = check_board(spec, options.board, None, samples, options.seed, stream, options.baud, log, show)
            if log:
                log.detach()
            return report
        if not options.target:
            from pykernel.gen.check import check as check_here

            return check_here(spec, samples=samples, seed=options.seed, stream=stream, progress=show)
        from pykernel.targets.check import check_targets

        return check_targets(
            *(spec, options.target, None, samples, options.seed, options.toolchain, options.emulator, stream),
            level=options.level,
            progress=show,
        )
