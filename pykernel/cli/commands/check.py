"""The command ``pykernel check``: does the C compute what the host computes?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli import inputs, output
from pykernel.cli.options import Engine, Json, SpecFile, TrustCode, given_of, option, takes
from pykernel.errors import CheckFailed


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
    from pykernel.workflows.check import check as run

    spec = inputs.read_spec(options.spec_file, options.trust)
    given = given_of(options, "spec_file", "trust")
    found = run(spec, watch=output.Printing(options.as_json), **given)
    if options.as_json:
        output.print_json(found.report)
    else:
        shown = output.print_board if options.board else output.print_targets if options.target else output.print_check
        shown(found.rows)
        output.print_loads(found.loads)
        if found.on_target:
            output.print_targets(found.on_target)
        output.print_sizes(found.figures, found.simple_bytes)
    if not found.equal:
        raise CheckFailed(output.first_difference([*found.rows, *found.on_target]))
    if found.exceeded:
        large = any(" takes " in sentence for sentence in found.exceeded)
        smaller = "; a smaller [reduction] n_max takes less" if large and spec.has("reduction", "n_max") else ""
        raise CheckFailed("; ".join(found.exceeded) + smaller)
