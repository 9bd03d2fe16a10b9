"""The command ``pykernel replay``: what a device has logged, done again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import ENGINE, JSON, SPEC, TRUST_CODE, argument, command, option, read_spec
from pykernel.errors import CheckFailed, UserError
from pykernel.files import bytes_of
from pykernel.workflows.given import opened


@command(
    spec_file=SPEC,
    log=argument("LOG", "A CSV file; - reads standard input."),
    state=option("--state", value="FILE", text="The device's state at the end of the log.", kind=Path),
    start=option("--start", value="FILE", text="The device's state before the log.", kind=Path),
    trust=TRUST_CODE,
    engine=ENGINE,
    as_json=JSON,
)
def replay(spec_file: Path, log: str, state: Path | None, start: Path | None, trust: bool, as_json: bool) -> None:
    """Repeat what a device logged, and name the first difference.

    The log is a table of text. Its first line names the columns, in any order: the inputs, the label, and at least
    one of state_hash (NAME_hash after this row), status (what NAME_update returned) and prediction:

        x0,x1,label,state_hash

    An empty cell means: not recorded. A row without a label was predicted, not learned. docs/replay.md describes all
    columns, and logs of models without labels. FILE is a snapshot from NAME_save, or the first NAME_STATE_BYTES bytes
    of the model. With --state, the command also names the fields that differ.

        pykernel replay spec.toml log.csv --state end.bin

    Exit codes: 0 equal, 1 not equal, 2 bad input.
    """
    from pykernel.host.replay import ANSWERS, Replay, differing_fields, read_log
    from pykernel.host.snapshot import device_memory
    from pykernel.spec.family import STATE_LIMIT

    spec = read_spec(spec_file, trust)
    most = 2 * STATE_LIMIT
    at_end = device_memory(spec, bytes_of(state, most), str(state)) if state else None
    run = Replay(spec, bytes_of(start, most), str(start)) if start else Replay(spec)
    with opened(log, output.Printing(as_json)) as (name, file, show):
        for rows in read_log(file, name, spec):
            if run.run(rows) and state is None:  # a state is compared at the end of the log
                break
            show(rows.position, f"replaying {spec.name}")
    if at_end is None and not any(run.compared.values()):
        asks = spec.inner.program.asks
        answer = ANSWERS.get(asks, asks)
        what = f"state_hash, status or {answer}, or give --state" if spec.program.learns else f"status or {answer}"
        raise UserError(f"{name}: holds nothing to compare with; record {what}")
    fields = differing_fields(spec, at_end, run.model.memory) if at_end is not None else []
    ok = run.difference is None and not fields
    output.print_report({"ok": ok} | run.report() | {"fields": fields}, as_json, print_replay)
    if not ok:
        what = f"{name}, {run.difference}" if run.difference else f"{state}: {fields[0]['field']} differs"
        advice = run.advice()
        raise CheckFailed(f"{what}; {advice}" if advice else what)


def print_replay(report: Mapping[str, Any]) -> None:
    updates, end = report["updates"], report["state_hash"]
    done = f", {updates:,} updates replayed; the state's hash is {end}" if end else " replayed"
    compared = [(kind, f"{count:,}") for kind, count in report["compared"].items()]
    output.show_table(f"{report['name']}: {report['rows']:,} rows{done}", ("compared", "rows"), compared)
    if report["fields"]:
        columns = ("field", "values that differ", "first on the device", "on the host")
        rows = [(row["field"], f"{row['values']:,}", row["device"], row["host"]) for row in report["fields"]]
        output.show_table("the state at the end", columns, rows)
