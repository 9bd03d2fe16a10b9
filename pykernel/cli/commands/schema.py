"""The command ``pykernel schema``: the declarations of all keys, for editors."""

from __future__ import annotations

from pykernel.cli import output


def schema() -> None:
    """Print a JSON Schema of specs, with which an editor completes and checks them.

        pykernel schema > spec.schema.json

    Editors with taplo (Even Better TOML) take it from a spec's first line:

        #:schema ./spec.schema.json

    Columns: none. It knows names, types and ranges of the keys that each rule has; what goes together is checked when
    the spec is read.

    Exit codes: 0 done.
    """
    from pykernel.spec.schema import spec_schema

    output.print_json(spec_schema())
