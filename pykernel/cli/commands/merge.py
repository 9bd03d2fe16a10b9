"""The command ``pykernel merge``: what several devices have learned, in one state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import JSON, SPEC, TRUST_CODE, argument, command, option, read_spec
from pykernel.telling import number


@command(
    spec_file=SPEC,
    states=argument("STATE", "Snapshots, one of each device; or a folder of .bin files.", list[Path]),
    out=option("--output", "-o", value="FILE", text="The snapshot to write.", kind=Path, default=...),
    into=option("--into", value="SPEC", text="The spec of the merged state.", kind=Path, without="the same"),
    force=option("--force", text="Overwrite FILE.", kind=bool, default=False),
    trust=TRUST_CODE,
    as_json=JSON,
)
def merge(
    spec_file: Path,
    states: list[Path],
    out: Path,
    into: Path | None,
    force: bool,
    trust: bool,
    as_json: bool,
) -> None:
    """Make one state of what several devices have learned.

    The devices run the same spec, each with samples of its own. The merged state has the same budget, goes on learning, and is
    loaded by NAME_restore and NAME_load. Stored vectors are raw samples of the devices: who has a state can read them.

        pykernel merge spec.toml a.bin b.bin c.bin -o merged.bin

    SPEC after --into may have another n_max. docs/merging.md tells what is merged how. How good the merged state is, `simulate
    --start merged.bin` tells on rows that no device has learned.

    Column foretold: how far the others' answers are from the device's own where it has learned, in parts of the answers' deviation.

    Exit codes: 0 done, 2 bad input, or models that cannot be merged (nothing is written then).
    """
    from pykernel.files import need_free
    from pykernel.workflows.merge import merge as merged
    from pykernel.workflows.merge import report_of

    need_free(out, str(states[0]), force)
    spec = read_spec(spec_file, trust)
    found = merged(
        spec,
        states,
        into=None if into is None else read_spec(into, trust),
        output=out,
        watch=output.Printing(as_json),
    )
    output.print_report({"output": str(out)} | report_of(found), as_json, print_merged)
    if not as_json:
        output.warn(*found.warnings)


def print_merged(report: Mapping[str, Any]) -> None:
    ways = {
        "sums": "what the devices have summed up was added: the state is that of one model that learned all samples",
        "mean": "the function is the mean of the devices' functions",
        "answers": "a new model learned their answers where each has learned",
    }
    rows = [
        (each["device"], "-" if each["foretold"] is None else f"{each['foretold']:.2g}") for each in report["devices"]
    ]
    output.show_table(f"{report['output']}: {len(rows)} devices; {ways[report['way']]}", ("device", "foretold"), rows)
    if report["left"] is not None:
        output.show(f"not kept of what the devices answer: {number(report['left'])} of the answers' deviation")
    output.show(f"state's hash: {report['state_hash']}")
