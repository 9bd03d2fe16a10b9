"""The command ``pykernel replay``: what a device has logged, done again."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pykernel.cli import inputs, output
from pykernel.cli.options import Engine, Json, SpecFile, TrustCode, argument, option, takes
from pykernel.errors import CheckFailed, UserError
from pykernel.files import bytes_of, open_data

if TYPE_CHECKING:
    from pykernel.host.replay import Replay
    from pykernel.spec.model import Spec


@dataclass(frozen=True, kw_only=True)
class ReplayOptions:
    spec_file: SpecFile
    log: Annotated[str, argument("LOG", "A CSV file; - reads standard input.")]
    state: Annotated[Path | None, option("--state", value="FILE", text="The device's state at the end of the log.")] = (
        None
    )
    start: Annotated[Path | None, option("--start", value="FILE", text="The device's state before the log.")] = None
    trust: TrustCode = False
    engine: Engine = None
    as_json: Json = False


@takes(ReplayOptions)
def replay(options: ReplayOptions) -> None:
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
    from pykernel.host.replay import Replay, differing_fields
    from pykernel.host.snapshot import device_memory
    from pykernel.spec.family import STATE_LIMIT

    spec = inputs.read_spec(options.spec_file, options.trust)
    most, state, start = 2 * STATE_LIMIT, options.state, options.start
    at_end = device_memory(spec, bytes_of(state, most), str(state)) if state else None
    run = Replay(spec, bytes_of(start, most), str(start)) if start else Replay(spec)
    name = follow(run, spec, options)
    if at_end is None and not any(run.compared.values()):
        raise UserError(nothing_compared(spec, name))
    fields = differing_fields(spec, at_end, run.model.memory) if at_end is not None else []
    ok = run.difference is None and not fields
    if options.as_json:
        output.print_json({"ok": ok} | run.report() | {"fields": fields})
    else:
        print_replay(run.report(), fields)
    if not ok:
        what = f"{name}, {run.difference}" if run.difference else f"{state}: {fields[0]['field']} differs"
        advice = run.advice()
        raise CheckFailed(f"{what}; {advice}" if advice else what)


def follow(run: Replay, spec: Spec, options: ReplayOptions) -> str:
    """Replay the log up to the first difference, or to its end if there is a state to compare with.

    Returns the log's name.
    """
    from pykernel.host.replay import read_log

    with contextlib.ExitStack() as stack:
        name, file, size = open_data(options.log, stack)
        show = stack.enter_context(output.progress(options.as_json, size))
        for rows in read_log(file, name, spec):
            if run.run(rows) and options.state is None:
                break
            show(rows.position, f"replaying {spec.name}")
    return name


def nothing_compared(spec: Spec, name: str) -> str:
    from pykernel.host.replay import ANSWERS

    asks = spec.inner.program.asks
    answer = ANSWERS.get(asks, asks)
    what = f"state_hash, status or {answer}, or give --state" if spec.program.learns else f"status or {answer}"
    return f"{name}: holds nothing to compare with; record {what}"


def print_replay(report: Mapping[str, Any], fields: Sequence[Mapping[str, Any]]) -> None:
    table = output.new_table("compared", "rows")
    for kind, count in report["compared"].items():
        table.add_row(kind, f"{count:,}")
    updates, end = report["updates"], report["state_hash"]
    done = f", {updates:,} updates replayed; the state's hash is {end}" if end else " replayed"
    output.show_table(f"{report['name']}: {report['rows']:,} rows{done}", table)
    if fields:
        differing = output.new_table("field", "values that differ", "first on the device", "on the host")
        for row in fields:
            differing.add_row(row["field"], f"{row['values']:,}", row["device"], row["host"])
        output.show_table("the state at the end", differing)
