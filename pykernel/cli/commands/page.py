"""The command ``pykernel page``: a model that learns in a browser."""

from __future__ import annotations

from pathlib import Path

from pykernel.cli import output
from pykernel.cli.options import CSV, JSON, SPEC, TRUST_CODE, command, option, read_spec
from pykernel.files import need_free
from pykernel.workflows.given import write_file


@command(
    spec_file=SPEC,
    data=CSV,
    out=option("--output", "-o", value="HTML", text="The page to write.", kind=Path, default=...),
    target=option(
        "--target",
        value="TARGET",
        text="Run the rows on this emulated CPU, too: instructions, bounds, hash.",
        kind=list[str],
    ),
    force=option("--force", text="Overwrite the file.", kind=bool, default=False),
    trust=TRUST_CODE,
    as_json=JSON,
)
def page(spec_file: Path, data: str, out: Path, target: list[str], force: bool, trust: bool, as_json: bool) -> None:
    """Make a page in which the generated C learns recorded data.

    The page is one file and needs no network. In the browser, the C runs as WebAssembly: it predicts each row, then
    learns it. The page shows forecast and truth, the error beside simple forecasts, a monitor's level and alarms, the stored vectors, and the
    hash of the state beside this PC's. Beside these stand figures of the report of simulate, on a logarithmic axis, and bytes by part; with
    --target the instructions of a call, and the bound. Readers can drop a CSV file of their own on it.

        pykernel page spec.toml data.csv -o page.html --target cortex-m4f

    Exit codes: 0 done, 1 an emulated CPU computes other bytes, 2 bad input. Nothing is written but with 0.
    """
    from pykernel.host.samples import read_rows
    from pykernel.rows.columns import Columns
    from pykernel.workflows.page import living_page

    spec = read_spec(spec_file, trust)
    need_free(out, data, force)
    watch, seen = output.Printing(as_json), Columns()
    with watch.progress() as show:
        show(0, "reading")
        x, y = read_rows(spec, data, seen)
        watch.data(seen.report())
        show(0.1, "compiling and simulating")
        text = living_page(spec, x, y, target)
    write_file(out, text)
    if as_json:
        output.print_json({"output": str(out), "rows": len(x), "bytes": len(text.encode()), "data": watch.read})
    else:
        output.show(f"{out}: {len(x):,} rows, {len(text.encode()):,} bytes; open it in a browser")
