"""The command ``pykernel prove``: no call of the C leaves an array, overflows, or takes a number out of its range."""

from __future__ import annotations

from pathlib import Path

from pykernel.cli import output
from pykernel.cli.options import JSON, SPEC, TRUST_CODE, command, option, read_spec
from pykernel.errors import CheckFailed


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
    output.print_report(found.report, as_json, lambda _: output.show_document(found.page, verdict=found.ok))
    if not found.ok:
        raise CheckFailed(found.verdict)
