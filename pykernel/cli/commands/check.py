"""The command ``pykernel check``: does the C compute what the host computes?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import ENGINE, JSON, SPEC, TRUST_CODE, command, option, read_spec
from pykernel.errors import CheckFailed


@command(
    spec_file=SPEC,
    target=option("--target", value="TARGET", text="Run on this emulated CPU, or on all.", kind=list[str]),
    toolchain=option(
        "--toolchain", value="zig|gcc", text="Compiles for the target.", without="the first found", rare=True
    ),
    emulator=option("--emulator", value="unicorn|qemu", text="Runs the target.", without="the first found", rare=True),
    level=option("--level", value="-O2|-Os|…", text="Optimisation for the target.", default="-O2", rare=True),
    board=option("--board", value="URL", text="Run on the board at this port."),
    baud=option("--baud", value="N", text="Speed of the board's line.", kind=int, default=115_200, rare=True),
    clock=option("--clock", value="HZ", text="The processor's clock, such as 48M.", rare=True),
    rate=option("--rate", value="HZ", text="Samples a second: the share of the processor.", rare=True),
    current=option("--current", value="UA", text="Microamperes per MHz: the charge a day.", rare=True),
    data=option("--data", value="DATA", text="Rows to learn; a folder: each file anew.", without="random ones"),
    log=option("--log", value="CSV", text="Write what the board answered, for pykernel replay.", kind=Path, rare=True),
    samples=option("--samples", value="N", text="Random samples to learn.", kind=int, without="12000; elsewhere 1000"),
    seed=option("--seed", value="S", text="Seed of the random samples.", kind=int, default=0, rare=True),
    record=option(
        "--record", value="FOLDER", text="Write the results to VALIDITY.md of this generated project.", kind=Path
    ),
    plot=option("--plot", value="FILE", text="Write a report, FILE.html.", kind=Path),
    trust=TRUST_CODE,
    engine=ENGINE,
    as_json=JSON,
)
def check(
    spec_file: Path, target: list[str] | None, board: str | None, trust: bool, as_json: bool, **given: Any
) -> None:
    """Check that the C computes what the host computes, to the byte.

    Each compiler on this machine compiles the C, with and without optimisation. C and simulation learn the same random
    samples, difficult ones too; then their memories are compared. LLVM simulates; Numba is a second witness.

        pykernel check spec.toml
        pykernel check spec.toml --target cortex-m4f --target rv32imac --record out/
        pykernel check spec.toml --board /dev/ttyACM0 --record out/

    A board needs the firmware of pykernel generate --with-check (docs/boards.md).

    Columns: equal says whether the bytes are equal. Code and constants are flash, by the first compiler. For a target,
    flash is the whole program, RAM is the model, stack is the largest use. The second table counts instructions of one
    call; worst is the most that a search found, and no call takes more than bound (docs/bounds.md). Instead: what
    simple predictors would keep.

    A spec's [target] sets limits: RAM, flash, instructions, cycles. For all but RAM the model runs on that CPU, too.

    Exit codes: 0 equal, 1 not equal or beyond the [target], 2 bad input (or no compiler, no board, or a model too large for a target's part).
    """
    from pykernel.workflows.check import check as run

    spec = read_spec(spec_file, trust)
    watch = output.Printing(as_json)
    found = run(spec, target=target, board=board, **given, watch=watch)
    report = found.report | ({} if watch.read is None else {"data": watch.read})
    output.print_report(report, as_json, lambda _: output.show_document(found.page, verdict=found.ok))
    if not found.equal:
        raise CheckFailed(output.first_difference([*found.rows, *found.on_target, *found.witnesses]))
    if found.exceeded:
        large = any(" takes " in sentence for sentence in found.exceeded)
        smaller = "; a smaller [reduction] n_max takes less" if large and spec.has("reduction", "n_max") else ""
        raise CheckFailed("; ".join(found.exceeded) + smaller)
