"""The command ``pykernel prove``: no call of the C leaves an array, overflows, or takes a number out of its range."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pykernel.cli import output
from pykernel.cli.options import JSON, SPEC, TRUST_CODE, command, option, read_spec
from pykernel.errors import CheckFailed

if TYPE_CHECKING:
    from pykernel.workflows.prove import Proved


@command(
    spec_file=SPEC,
    level=option(
        "--level",
        value="state|snapshot|wild|finite",
        text="The memory from which calls begin; may be repeated.",
        kind=list[str],
        without="state and snapshot",
    ),
    call=option("--call", value="NAME", text="Only this call, such as update; may be repeated.", kind=list[str]),
    timeout=option("--timeout", value="S", text="Seconds for the analysis of one call.", kind=float, default=600.0),
    kept=option("--output", "-o", value="FOLDER", text="Keep annotated C, drivers and logs here.", kind=Path),
    record=option("--record", value="FOLDER", text="Write the verdict to VALIDITY.md of this project.", kind=Path),
    trust=TRUST_CODE,
    as_json=JSON,
)
def prove(
    spec_file: Path,
    level: list[str] | None,
    call: list[str] | None,
    timeout: float,
    kept: Path | None,
    record: Path | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Prove that no call of the C leaves an array or overflows.

    Frama-C analyses each public function once, from every memory that NAME_load accepts and with every input. The ranges
    that the memory declares hold again after the call: so they hold after any number of calls.

        pykernel prove spec.toml
        pykernel prove spec.toml --call update --timeout 60

    It needs Frama-C, Why3 and Z3: apt install frama-c-base why3 z3.

    Columns: alarms are places where the analysis could not exclude an error; ranges says how many declared ranges are
    proved to hold after the call; reached says how many statements of its functions the analysis reached. What the proof
    says, and what it does not: docs/proof.md.

    Exit codes: 0 proved, 1 not proved, 2 bad input, or no Frama-C.
    """
    from pykernel.workflows.prove import prove as run

    spec = read_spec(spec_file, trust)
    levels = {"level": level} if level else {}
    found = run(spec, **levels, call=call, timeout=timeout, output=kept, record=record, watch=output.Printing(as_json))
    if as_json:
        output.print_json(found.report)
    else:
        print_proof(found)
    if not found.ok:
        raise CheckFailed(found.verdict)


def print_proof(found: Proved) -> None:
    columns = ("call", "from", "proved", "alarms", "ranges", "reached", "seconds")
    rows = [
        [
            row["call"],
            row["level"],
            output.Styled("yes", "green") if row["proved"] else output.Styled("NO", "bold red"),
            str(row["alarms"]),
            f"{row['proved_ranges']} of {row['ranges']}" if row["ranges"] else "-",
            f"{row['reached']} of {row['statements']}" if row["statements"] else "-",
            f"{row['seconds']:.1f}",
        ]
        for row in found.rows
    ]
    output.show_table(f"what no call of {found.name} does, by {found.tools}", columns, rows, words=(0, 1))
    for alarm in found.alarms:
        output.show(*alarm_told(alarm), "")
    for row in found.rows:
        if not row["proved"] and not row["alarms"]:
            output.show(f"{row['call']} ({row['level']}): {row['why']}", "")
    left = dict.fromkeys(name for row in found.rows for name in row["unreached"])
    if left:
        output.show(f"statements that no such call reaches: {', '.join(left)}", "")
    steps = f"{found.proved_nan_steps} of {found.nan_steps} steps about NaN proved by WP and Z3"
    output.show(steps, f"configuration {found.config_hash}; {found.seconds:g} s in all")
    if found.ok:
        output.show("", found.verdict)


def alarm_told(alarm: Mapping[str, Any]) -> list[str]:
    """Lines about an alarm: what it may mean, the line of C, how the call got there."""
    lines = [f"{alarm['file']}:{alarm['line']}: {alarm['meaning']}, in {alarm['call']} ({alarm['level']})"]
    lines += [f"    {alarm['code']}"] if alarm["code"] else []
    lines += [f"    not proved: {alarm['condition']}"] if alarm["condition"] else []
    return [*lines, *([f"    called by: {' < '.join(alarm['stack'])}"] if alarm["stack"] else [])]
