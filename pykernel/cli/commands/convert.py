"""The command ``pykernel convert``: a table as an array on disk, from which any row can be read at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pykernel.cli import output
from pykernel.cli.options import Json, argument, option, takes
from pykernel.errors import UserError
from pykernel.files import need_free
from pykernel.workflows.given import words


@dataclass(frozen=True, kw_only=True)
class ConvertOptions:
    data: Annotated[
        str, argument("DATA", "A .csv, .parquet, .arrow or .npy file, or a folder; - reads CSV from standard input.")
    ]
    out: Annotated[Path, option("--output", "-o", value="NPY", text="The file to write.")]
    columns: Annotated[
        str | None,
        option("--columns", value="A,B", text="Which columns, in this order.", without="all with numbers"),
    ] = None
    precision: Annotated[str, option("--precision", value="TYPE", text="Of the numbers: float32 or float64.")] = (
        "float32"
    )
    force: Annotated[bool, option("--force", text="Overwrite NPY.")] = False
    as_json: Json = False


@takes(ConvertOptions)
def convert(options: ConvertOptions) -> None:
    """Write a table as .npy, so that any row can be read directly.

    Convert a large CSV file, or a Parquet file with large row groups, before pykernel basis. The table may be larger
    than memory. The file is read once. Rows of a CSV file with an empty cell are left out and counted. Other files with
    empty cells are refused.

        pykernel convert year.csv --output year.npy

    Columns: the command prints their names and their positions in the new file.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    need_free(options.out, options.data, options.force)
    if options.precision not in ("float32", "float64"):
        raise UserError(f"--precision is {options.precision}; it must be float32 or float64")
    import numpy as np

    from pykernel.cli.work.convert import convert_csv, convert_table
    from pykernel.rows import TEXTS

    kind, out = np.dtype(options.precision), options.out
    converting = convert_csv if options.data == "-" or Path(options.data).suffix.lower() in TEXTS else convert_table
    made = converting(options.data, out, words(options.columns), kind, options.as_json)
    if options.as_json:
        report = {"file": str(out), "rows": made.rows, "without": made.without, "columns": made.names}
        output.print_json(report | {"precision": options.precision})
        return
    if made.without:
        output.show(f"left out  {made.without:,} rows with an empty cell")
    output.show(f"columns   {', '.join(f'{j}: {each}' for j, each in enumerate(made.names))}")
    size = made.rows * len(made.names) * kind.itemsize + 128
    output.show(f"file      {out}, {made.rows:,} rows of {options.precision}, {size:,} bytes")
