"""The commands ``pykernel snapshot show``, ``diff`` and ``to-json``: a state that a device has saved."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pykernel.cli import output
from pykernel.cli.help import PlainCommand, PlainGroup
from pykernel.cli.options import JSON, SPEC, TRUST_CODE, argument, command, read_spec
from pykernel.errors import CheckFailed
from pykernel.files import bytes_of

if TYPE_CHECKING:
    from pykernel.host.snapshot import Snapshot
    from pykernel.spec.model import Spec

snapshot_app = typer.Typer(cls=PlainGroup, context_settings={"help_option_names": ["-h", "--help"]})
SNAPSHOT = argument("FILE", "A snapshot, from NAME_save or NAME_store.", Path)


@snapshot_app.callback()
def snapshot() -> None:
    """Look at a state that a device has saved.

    A snapshot is a model that NAME_save wrote to a buffer, or NAME_store to a slot. It has NAME_SNAPSHOT_BYTES bytes.
    These commands check it as the device does: format, kind of state, length, CRC-32, then every number.

        pykernel snapshot show spec.toml state.bin
    """


@snapshot_app.command("show", cls=PlainCommand)
@command(
    spec_file=SPEC,
    file=SNAPSHOT,
    trust=TRUST_CODE,
    as_json=JSON,
)
def snapshot_show(spec_file: Path, file: Path, trust: bool, as_json: bool) -> None:
    """Show the values in a saved state.

        pykernel snapshot show spec.toml state.bin

    Columns: not zero is the number of values that are not zero. Unused places are zero. The state's hash is the number
    that NAME_hash returns.

    Exit codes: 0 done, 2 bad input, or a snapshot that the device would refuse.
    """
    spec, (found,) = read_snapshots(spec_file, trust, file)
    output.print_report(identity(spec, found) | {"fields": found.ranges()}, as_json, print_state)


def print_state(report: Mapping[str, Any]) -> None:
    cells = [
        (
            row["field"],
            " x ".join(map(str, row["shape"])),
            f"{row['nonzero']:,}",
            shown(row["least"]),
            shown(row["largest"]),
        )
        for row in report["fields"]
    ]
    title = f"{report['name']}, kind of state {report['state_kind']}, save number {report['sequence']}"
    columns = ("field", "shape", "not zero", "least", "largest")
    output.show_table(f"{title}; the state's hash is {report['state_hash']}", columns, cells)


@snapshot_app.command("diff", cls=PlainCommand)
@command(
    spec_file=SPEC,
    first=argument("A", "A snapshot.", kind=Path),
    second=argument("B", "Another snapshot.", kind=Path),
    trust=TRUST_CODE,
    as_json=JSON,
)
def snapshot_diff(spec_file: Path, first: Path, second: Path, trust: bool, as_json: bool) -> None:
    """Compare two saved states, byte for byte.

        pykernel snapshot diff spec.toml monday.bin friday.bin

    Columns: how many values of a field differ, the position of the first of them, and its value in A and in B. How often
    each state was saved (the sequence number) does not count.

    Exit codes: 0 equal, 1 not equal, 2 bad input.
    """
    from pykernel.host.snapshot import difference

    _, (a, b) = read_snapshots(spec_file, trust, first, second)
    rows = difference(a, b)
    if as_json:
        output.print_json({"ok": not rows, "fields": rows})
    elif rows:
        cells = [
            (row["field"], f"{row['values']:,}", ", ".join(map(str, row["first"])), shown(row["a"]), shown(row["b"]))
            for row in rows
        ]
        columns = ("field", "values that differ", "first at", "in A", "in B")
        output.show_table(f"{first} (A) and {second} (B)", columns, cells)
    else:
        output.show("equal")
    if rows:
        raise CheckFailed(f"{first} and {second} differ, first in {rows[0]['field']}")


@snapshot_app.command("to-json", cls=PlainCommand)
@command(
    spec_file=SPEC,
    file=SNAPSHOT,
    trust=TRUST_CODE,
)
def snapshot_to_json(spec_file: Path, file: Path, trust: bool) -> None:
    """Print all values of a saved state as one JSON object.

        pykernel snapshot to-json spec.toml state.bin > state.json

    Columns: there are none. The keys of state are the fields of the C struct.

    Exit codes: 0 done, 2 bad input, or a snapshot that the device would refuse.
    """
    spec, (found,) = read_snapshots(spec_file, trust, file)
    output.print_json(identity(spec, found) | {"state": found.state()})


def identity(spec: Spec, found: Snapshot) -> dict[str, Any]:
    """What a snapshot is of."""
    hashes = {name: f"{getattr(found, name):08x}" for name in ("state_kind", "state_hash")}
    return {"name": spec.name, "state_kind": hashes["state_kind"], "sequence": found.sequence} | hashes


def read_snapshots(spec_file: Path, trust: bool, *files: Path) -> tuple[Spec, list[Snapshot]]:
    from pykernel.host.snapshot import most_bytes, read

    spec = read_spec(spec_file, trust)
    return spec, [read(spec, bytes_of(path, most_bytes(spec)), str(path)) for path in files]


def shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.9g}"
