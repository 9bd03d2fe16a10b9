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
    data=option("--data", value="DATA", text="A recording that chooses and judges.", kind=str),
    force=option("--force", text="Overwrite FILE.", kind=bool, default=False),
    trust=TRUST_CODE,
    as_json=JSON,
)
def merge(
    spec_file: Path,
    states: list[Path],
    out: Path,
    into: Path | None,
    data: str | None,
    force: bool,
    trust: bool,
    as_json: bool,
) -> None:
    """Make one state of what several devices have learned.

    The devices run the same spec, each with samples of its own. The merged state has the same budget, goes on learning, and is
    loaded by NAME_restore and NAME_load. Stored vectors are raw samples of the devices: who has a state can read them.

        pykernel merge spec.toml a.bin b.bin c.bin -o merged.bin

    SPEC after --into may have another n_max, or a monitor's components. DATA has rows with labels that no device has learned: half of them choose how
    devices are weighed, the other half judges. docs/merging.md tells what is merged how.

    Columns: vectors are how many of the device's vectors were taken. weight is the device's part of the common answer, in
    the mean over all vectors. foretold is how far the others' answers at its vectors are from its own, in parts of the
    answers' deviation. error is the device's own on DATA. Of monitors: regimes are what the device knows, weight is its part of
    all rows. foretold is how far its regimes are from those of the others: 1, as far as a strange row. in alarm is the part
    of DATA's rows.

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
        data=data,
        output=out,
        watch=output.Printing(as_json),
    )
    output.print_report({"output": str(out)} | report_of(found), as_json, print_merged)
    if not as_json:
        output.warn(*found.warnings)


def print_merged(report: Mapping[str, Any]) -> None:
    ways = {
        "vectors": f"{report['vectors']} of all vectors were taken, and learned anew",
        "sums": "what the devices have summed up was added: the state is that of one model that learned all samples",
        "samples": "a new model learned their answers to inputs like those that each has seen",
        "mean": "the function is the mean of the devices' functions",
        "regimes": f"{report['regime_count']} regimes are known, of all together",
    }
    monitors = report["way"] == "regimes"
    columns = [("regime_count", 4), ("weight", 2), ("foretold", 2), ("error", 4)]
    heads = {"regime_count": "regimes", "error": "in alarm" if monitors else "error"}
    shown = [(name, digits) for name, digits in columns if any(each[name] is not None for each in report["devices"])]
    counted = report["vectors"] is not None
    titles = ("device", *(["vectors"] if counted else []), *(heads.get(name, name) for name, _ in shown))
    rows = [
        (
            each["device"],
            *([str(each["vectors"])] if counted else []),
            *("-" if each[name] is None else format(each[name], f".{digits}g") for name, digits in shown),
        )
        for each in report["devices"]
    ]
    output.show_table(f"{report['output']}: {len(rows)} devices; {ways[report['way']]}", titles, rows)
    if report["left"] is not None and not monitors:
        output.show(f"not kept of what the devices know together: {number(report['left'])} of the answers' deviation")
    if report["errors"]:
        told = ", ".join(f"{name} {number(error)}" for name, error in report["errors"].items())
        output.show(f"{'rows in alarm' if monitors else 'error on rows that chose nothing'}: {told}")
    output.show(f"state's hash: {report['state_hash']}")
