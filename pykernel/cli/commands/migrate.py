"""The command ``pykernel migrate``: a saved state for a changed spec."""

from __future__ import annotations

from pathlib import Path

from pykernel.cli import output
from pykernel.cli.options import JSON, TRUST_CODE, argument, command, option, read_spec


@command(
    old=argument("OLD", "The spec that the state was learned with.", kind=Path),
    state=argument("STATE", "A snapshot, from NAME_save or NAME_store.", kind=Path),
    new=argument("NEW", "The spec of the new firmware.", kind=Path),
    out=option("--output", "-o", value="FILE", text="The snapshot to write.", kind=Path, default=...),
    force=option("--force", text="Overwrite FILE.", kind=bool, default=False),
    trust=TRUST_CODE,
    as_json=JSON,
)
def migrate(old: Path, state: Path, new: Path, out: Path, force: bool, trust: bool, as_json: bool) -> None:
    """Make a saved state one of a changed spec.

    A learning rate, a limit, a horizon and other numbers that only say how learning goes on may differ: a device loads
    such a state itself. A larger [reduction] n_max adds empty places; predictions keep their bits. For a smaller one,
    vectors are removed as the technique of OLD removes them. Another rule, kernel, scaling or input is refused.

        pykernel migrate old.toml state.bin new.toml -o new-state.bin

    Columns: there are none. The command prints the keys that changed, and how many vectors there are.

    Exit codes: 0 done, 2 bad input, or a state that cannot be converted (nothing is written then).
    """
    from pykernel.files import bytes_of, need_free, whole_file
    from pykernel.host.migrate import migrate as migrated
    from pykernel.host.snapshot import most_bytes

    need_free(out, str(state), force)
    before, after = (read_spec(path, trust) for path in (old, new))
    data = bytes_of(state, most_bytes(before))
    made = migrated(before, data, after, str(state))
    with whole_file(out) as file:
        file.write(made.data)
    if as_json:
        output.print_json(
            {"output": str(out), "changed": list(made.changed), "vectors": made.vectors, "removed": made.removed}
        )
        return
    output.show(f"{out}: changed: {', '.join(made.changed) or 'nothing'}")
    if made.vectors is not None:
        output.show(f"vectors: {made.vectors}" + (f", after {made.removed} were removed" if made.removed else ""))
