"""The command ``pykernel generate``: a model as C."""

from __future__ import annotations

from pathlib import Path

from pykernel.cli import output
from pykernel.cli.options import JSON, SPEC, TRUST_CODE, command, option, read_spec
from pykernel.errors import UserError


@command(
    spec_file=SPEC,
    out=option("--output", "-o", value="FOLDER", text="Where the project goes.", kind=Path, default=...),
    start=option(
        "--start", value="FILE", text="The device starts from this state, or from what these rows teach.", kind=Path
    ),
    force=option("--force", text="Overwrite files that were changed by hand.", kind=bool, default=False),
    with_check=option(
        "--with-check",
        text="Also the firmware with which pykernel check --board tests a board.",
        kind=bool,
        default=False,
    ),
    also=option("--for", value="NAME", text="Also files for micropython: a user C module."),
    trust=TRUST_CODE,
    as_json=JSON,
)
def generate(
    spec_file: Path,
    out: Path,
    start: Path | None,
    force: bool,
    with_check: bool,
    also: str | None,
    trust: bool,
    as_json: bool,
) -> None:
    """Generate a model's C project: plain C99, without allocation.

        pykernel generate spec.toml -o out/
        pykernel generate spec.toml --start recorded.csv -o out/
        pykernel generate spec.toml --start state.bin -o out/

    A spec says what the model sees and how it learns. Everything else has a default:

        name = "flow"

        [input]
        columns = ["temperature", "humidity"]

        [kernel]
        sigma = 1.5

        [reduction]
        n_max = 32

    Columns: state is the memory for what the model learned. Work is the memory for intermediate results. Both are in one
    struct that you own. Constants are in flash.

    Exit codes: 0 done, 2 bad input (nothing is written then).
    """
    from pykernel.workflows.generate import generate as run

    if also not in (None, "micropython"):
        raise UserError(f"--for {also}: generate knows micropython; other toolchains take every folder as it is")
    spec = read_spec(spec_file, trust)
    watch = output.Printing(as_json)
    module = also is not None
    made = run(spec, out, start=start, force=force, with_check=with_check, micropython=module, watch=watch)
    files = [str(file) for file in made.files]
    started = {"data": watch.read} if start is not None else {}
    report = {"output": str(made.folder), "files": files, "sizes": made.figures} | started
    output.print_report(report, as_json, lambda _: output.show_document(made.page, verdict=False))
