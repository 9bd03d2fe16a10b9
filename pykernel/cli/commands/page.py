"""The command ``pykernel page``: a model that learns in a browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli import inputs, output
from pykernel.cli.options import CsvData, Json, SpecFile, TrustCode, option, takes
from pykernel.files import need_free


@dataclass(frozen=True, kw_only=True)
class PageOptions:
    spec_file: SpecFile
    data: CsvData
    out: Annotated[Path, option("--output", "-o", value="HTML", text="The page to write.")]
    force: Annotated[bool, option("--force", text="Overwrite the file.")] = False
    trust: TrustCode = False
    as_json: Json = False


@takes(PageOptions)
def page(options: PageOptions) -> None:
    """Make a page in which the generated C learns recorded data.

    The page is one file and needs no network. In the browser, the C runs as WebAssembly: it predicts each row, then
    learns it. The page shows forecast and truth, the error beside simple forecasts, alarms, the stored vectors, and the
    hash of the state beside this PC's. Readers can drop a CSV file of their own on it.

        pykernel page spec.toml data.csv -o page.html

    Exit codes: 0 done, 2 bad input (nothing is written then).
    """
    from pykernel.files import whole_file
    from pykernel.gen.check import as_taken
    from pykernel.host.samples import read_rows
    from pykernel.targets.page import make_page

    spec = inputs.read_spec(options.spec_file, options.trust)
    need_free(options.out, options.data, options.force)
    with output.progress(options.as_json) as show:
        show(0, "reading")
        inputs.need_no_signal(spec, "a page")
        x, y = as_taken(spec, *read_rows(spec, options.data))
        show(0.1, "compiling and simulating")
        text = make_page(spec, x, y)
    with whole_file(options.out) as file:
        file.write(text.encode())
    if options.as_json:
        output.print_json({"page": str(options.out), "rows": len(x), "bytes": len(text.encode())})
    else:
        output.show(f"{options.out}: {len(x):,} rows, {len(text.encode()):,} bytes; open it in a browser")
