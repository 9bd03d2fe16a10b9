"""The command ``pykernel convert``: a table as an array on disk, from which any row can be read at once."""

from __future__ import annotations

from pathlib import Path

from pykernel.cli import output
from pykernel.cli.options import JSON, argument, command, option
from pykernel.errors import UserError
from pykernel.files import need_free
from pykernel.workflows.given import words


@command(
    data=argument("DATA", "A .csv, .parquet, .arrow or .npy file, or a folder; - reads CSV from standard input."),
    out=option("--output", "-o", value="NPY", text="The file to write.", kind=Path, default=...),
    columns=option("--columns", value="A,B", text="Which columns, in this order.", without="all with numbers"),
    precision=option("--precision", value="TYPE", text="Of the numbers: float32 or float64.", default="float32"),
    force=option("--force", text="Overwrite NPY.", kind=bool, default=False),
    as_json=JSON,
)
def convert(data: str, out: Path, columns: str | None, precision: str, force: bool, as_json: bool) -> None:
    """Write a table as .npy, so that any row can be read directly.

    Convert a large CSV file, or a Parquet file with large row groups, before pykernel basis. The table may be larger
    than memory. The file is read once. Rows of a CSV file with a missing cell are left out and counted. Other files with
    missing cells are refused.

        pykernel convert year.csv --output year.npy

    Columns: the command prints their names and their positions in the new file.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    need_free(out, data, force)
    if precision not in ("float32", "float64"):
        raise UserError(f"--precision is {precision}; it must be float32 or float64")
    import numpy as np

    from pykernel.cli.work.convert import convert_csv, convert_table
    from pykernel.rows import TEXTS

    kind = np.dtype(precision)
    converting = convert_csv if data == "-" or Path(data).suffix.lower() in TEXTS else convert_table
    read, rows = converting(data, out, words(columns), kind, as_json)
    names = read["inputs"]
    if as_json:
        output.print_json({"file": str(out), "rows": rows, "columns": names, "precision": precision, "data": read})
        return
    size = rows * len(names) * kind.itemsize + 128
    output.show_facts(
        ("columns", ", ".join(f"{j}: {each}" for j, each in enumerate(names))),
        ("file", f"{out}, {rows:,} rows of {precision}, {size:,} bytes"),
    )
