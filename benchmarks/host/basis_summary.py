"""What other pages' measurements of bases come to, for docs/benchmarks.md: measures nothing, reads the CSV files.

    python -m benchmarks.host.basis_summary

Conjugate gradients with a basis (preconditioner.csv), a basis on the device (streaming-cost.csv), bases of up to ten million
rows (million-rows.csv), bases from shards (sharding.csv).  Each has a page and a script of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.host import million_rows, sharding
from benchmarks.tables import DATA, PAGE, Rows, load, markdown, publish


def preconditioner(rows: Rows) -> str:
    here = [row for row in rows if row["data"] == "abalone"]
    sizes = sorted({int(row["n"]) for row in here} - {0})
    lines = []
    for ridge in dict.fromkeys(row["ridge"] for row in here):
        cells: dict[str, dict[int, str]] = {}
        for row in here:
            if row["ridge"] == ridge:
                cells.setdefault(row["basis"], {})[int(row["n"])] = f"{int(row['iterations']):,}"
        for basis, found in cells.items():
            lines.append([ridge, basis, *([found[0]] * len(sizes) if 0 in found else [found[n] for n in sizes])])
    return markdown(["ridge", "basis", *(f"n = {n}" for n in sizes)], lines)


def streaming(rows: Rows) -> str:
    def count(row: Mapping[str, str], key: str) -> str:
        return f"{int(row[key]):,}" if row[key] else "–"

    keys = ("state_bytes", "ram_bytes", "flash_bytes", "predict", "update", "added", "tried", "replaced", "select")
    heads = [
        "state",
        "RAM",
        "flash",
        "predict",
        "update: no candidate",
        "added",
        "candidate that loses",
        "exchanged",
        "select",
    ]
    lines = [[row["method"], row["n"], row["rows"] or "–", *(count(row, key) for key in keys)] for row in rows]
    return markdown(["basis", "N", "rows of the reservoir", *heads], lines)


PLACES: dict[str, tuple[str, Callable[[Rows], str]]] = {
    "preconditioner": ("preconditioner", preconditioner),
    "streaming cost": ("streaming-cost", streaming),
    "million rows": ("million-rows", million_rows.tables),
    "sharding": ("sharding", sharding.table),
}
"""Place in the page: name of the CSV file, and the table."""


def tables(page: str) -> dict[str, str]:
    """Of the places that the page has, and the files that are there."""
    return {
        place: made(load(DATA / f"{name}.csv"))
        for place, (name, made) in PLACES.items()
        if f"<!-- {place} -->" in page and (DATA / f"{name}.csv").is_file()
    }


if __name__ == "__main__":
    publish(tables(PAGE.read_text(encoding="utf-8")))
