"""The command ``pykernel migrate``: a saved state for a changed spec."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli import inputs, output
from pykernel.cli.options import Json, TrustCode, argument, option, takes


@dataclass(frozen=True, kw_only=True)
class MigrateOptions:
    old: Annotated[Path, argument("OLD", "The spec that the state was learned with.")]
    state: Annotated[Path, argument("STATE", "A snapshot, from NAME_save or NAME_store.")]
    new: Annotated[Path, argument("NEW", "The spec of the new firmware.")]
    out: Annotated[Path, option("--output", "-o", value="FILE", text="The snapshot to write.")]
    force: Annotated[bool, option("--force", text="Overwrite FILE.")] = False
    trust: TrustCode = False
    as_json: Json = False


@takes(MigrateOptions)
def migrate(options: MigrateOptions) -> None:
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
    from pykernel.host.snapshot import snapshot_bytes

    need_free(options.out, str(options.state), options.force)
    old, new = (inputs.read_spec(path, options.trust) for path in (options.old, options.new))
    data = bytes_of(options.state, snapshot_bytes(old) + 1)
    made = migrated(old, data, new, str(options.state))
    with whole_file(options.out) as file:
        file.write(made.data)
    if options.as_json:
        output.print_json(
            {"file": str(options.out), "changed": list(made.changed), "vectors": made.vectors, "removed": made.removed}
        )
        return
    output.show(f"{options.out}: changed: {', '.join(made.changed) or 'nothing'}")
    if made.vectors is not None:
        output.show(f"vectors: {made.vectors}" + (f", after {made.removed} were removed" if made.removed else ""))
