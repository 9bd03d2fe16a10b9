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
    out=option("--output", "-o", value="FILE", text="The .npy or .csv file to write.", kind=Path, default=...),
    columns=option("--columns", value="A,B", text="Which columns, in this order.", without="all with numbers"),
    label=option("--label", value="Y", text="For .csv: a column that stays as it is, as the last."),
    like=option("--like", value="FIRST", text="For .csv: a table that convert wrote; the same columns.", kind=Path),
    precision=option("--precision", value="TYPE", text="Of .npy: float32 or float64.", default="float32"),
    force=option("--force", text="Overwrite FILE.", kind=bool, default=False),
    as_json=JSON,
)
def convert(
    data: str,
    out: Path,
    columns: str | None,
    label: str | None,
    like: Path | None,
    precision: str,
    force: bool,
    as_json: bool,
) -> None:
    """Write a table as .npy, or as a .csv table of numbers alone.

    Of .npy any row can be read directly: convert a large CSV file, or a Parquet file with large row groups, before pykernel
    basis. The table may be larger than memory. The file is read once. Rows of a CSV file with a missing cell are left out
    and counted. Other files with missing cells are refused.

        pykernel convert year.csv --output year.npy
        pykernel convert year.csv --label flow --output ready.csv

    In a .csv file to write, a column of few words becomes one column of 0 and 1 for each word, and a column of dates or times
    phases of the day and of the week. Cells are empty where a value is missing. Constant columns are left out. A later table gets
    the same columns with --like ready.csv, whatever words and constants it has.

    Columns: the command prints their names and, of .npy, their positions in the new file.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    need_free(out, data, force)
    from pykernel.tuning.tables import notes_of

    if out.suffix.lower() == ".csv":
        need_free(notes_of(out), data, force)
    if precision not in ("float32", "float64"):
        raise UserError(f"--precision is {precision}; it must be float32 or float64")
    import numpy as np

    from pykernel.cli.work.convert import convert_csv, convert_table
    from pykernel.rows import TEXTS

    kind, text = np.dtype(precision), data == "-" or Path(data).suffix.lower() in TEXTS
    if out.suffix.lower() == ".csv":
        if not text:
            raise UserError(f"{data}: is no table of text; only these become a .csv file: give --output with .npy")
        _prepare(data, out, columns, label, like, as_json)
        return
    if like is not None:
        raise UserError(f"--like is for a .csv file, and {out} is none; leave it out")
    if label is not None:
        raise UserError(f"--label is for a .csv file, and {out} is none; leave it out")
    read, rows = (convert_csv if text else convert_table)(data, out, words(columns), kind, as_json)
    names = read["inputs"]
    if as_json:
        output.print_json({"output": str(out), "rows": rows, "columns": names, "precision": precision, "data": read})
        return
    size = rows * len(names) * kind.itemsize + 128
    output.show_facts(
        ("columns", ", ".join(f"{j}: {each}" for j, each in enumerate(names))),
        ("file", f"{out}, {rows:,} rows of {precision}, {size:,} bytes"),
    )


def _prepare(data: str, out: Path, columns: str | None, label: str | None, like: Path | None, as_json: bool) -> None:
    """Write a .csv table of numbers alone, and tell how its columns are made."""
    from pykernel.cli.work.convert import prepare_table
    from pykernel.tuning.tables import notes_of

    if like is not None and (columns is not None or label is not None):
        raise UserError("--like says which columns there are; leave --columns and --label out")
    read, origins = prepare_table(data, out, words(columns), label, as_json, like)
    made = {new: origin.how for new, origin in origins.items() if origin.how != new}
    if as_json:
        told = {"rows": read["rows"], "made": made, "notes": str(notes_of(out)), "data": read}
        output.print_json({"output": str(out), **told})
        return
    output.show_facts(
        *(("made", f"{each} = {how}") for each, how in made.items()),
        ("file", f"{out}, {read['rows']:,} rows; the device must compute the same inputs"),
        ("notes", f"{notes_of(out)}, for plan and fit: specs and headers then tell how inputs are made"),
    )
