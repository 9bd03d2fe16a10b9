"""The command ``pykernel replay``: what a device has logged, done again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import (
    DEVICES_JOBS,
    DEVICES_RESULTS,
    ENGINE,
    JSON,
    LOGS,
    SPEC,
    TRUST_CODE,
    command,
    option,
    read_spec,
)
from pykernel.errors import CheckFailed, UserError
from pykernel.telling import devices_shown, unread_told


@command(
    spec_file=SPEC,
    log=LOGS,
    state=option("--state", value="FILE", text="The device's state at the end of the log.", kind=Path),
    start=option("--start", value="FILE", text="The device's state before the log.", kind=Path),
    jobs=DEVICES_JOBS,
    results=DEVICES_RESULTS,
    trust=TRUST_CODE,
    engine=ENGINE,
    as_json=JSON,
)
def replay(spec_file: Path, trust: bool, as_json: bool, **given: Any) -> None:
    """Repeat what a device logged, and name the first difference.

    The log is a table of text. Its first line names the columns, in any order: the inputs, the label, and at least
    one of state_hash (NAME_hash after this row), status (what NAME_update returned) and prediction:

        x0,x1,label,state_hash

    An empty cell means: not recorded. A row without a label was predicted, not learned. docs/replay.md describes all
    columns, and logs of models without labels. FILE is a snapshot from NAME_save, or the first NAME_STATE_BYTES bytes
    of the model. With --state, the command also names the fields that differ.

        pykernel replay spec.toml log.csv --state end.bin
        pykernel replay spec.toml logs/

    Of a folder, or several logs, each is one device's: a table says which computed what they should.

    Exit codes: 0 equal, 1 not equal, 2 bad input.
    """
    from pykernel.workflows.replay import replay as run

    report = run(read_spec(spec_file, trust), **given, watch=output.Printing(as_json))
    wrong, shown = report.pop("wrong"), print_devices if "devices" in report else print_replay
    output.print_report(report, as_json, shown)
    unread = report.get("unread")
    sentence = unread and unread_told(unread, len(report["devices"]) + len(unread))
    if wrong is not None:
        output.warn(*[sentence] if sentence else [])
        raise CheckFailed(wrong)
    if sentence:
        raise UserError(sentence)


def print_devices(report: Mapping[str, Any]) -> None:
    """Print which devices computed what they should, and the first difference of each other one."""
    devices, differ = report["devices"], report["differ"]
    rows, words = devices_shown(devices, lambda each: not each["ok"])
    told = [
        [each["device"], f"{each['rows']:,}", "yes" if each["ok"] else "NO", (each["difference"] or {}).get("text", "")]
        for each in rows
    ]
    columns = ("device", "rows", "equal", "the first difference")
    output.show_table(f"{report['name']}: {words}, {report['rows']:,} rows replayed", columns, told, words=(0, 2, 3))
    output.show(f"{len(devices) - differ:,} of {len(devices):,} devices computed what they should")


def print_replay(report: Mapping[str, Any]) -> None:
    updates, end = report["updates"], report["state_hash"]
    done = f", {updates:,} updates replayed; the state's hash is {end}" if end else " replayed"
    compared = [(kind, f"{count:,}") for kind, count in report["compared"].items()]
    output.show_table(f"{report['name']}: {report['rows']:,} rows{done}", ("compared", "rows"), compared)
    if report["fields"]:
        columns = ("field", "values that differ", "first on the device", "on the host")
        rows = [(row["field"], f"{row['values']:,}", row["device"], row["host"]) for row in report["fields"]]
        output.show_table("the state at the end", columns, rows)
