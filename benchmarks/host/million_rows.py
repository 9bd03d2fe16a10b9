"""Choosing a basis from ten thousand to ten million rows: kernel values, time and memory, from memory and from disk.

    python -m benchmarks.host.million_rows [--folder FOLDER] [--rows 10000000] [-o docs] [--only METHOD,...] [--quick]

The data are made once, 16 columns of float32 in a folder (1.3 GB for ten million rows), by blocks with seeds of their own,
so that a smaller table is the begin of a larger one: 40 clusters of very different sizes, each stretched along four
directions of its own and bent, with noise, and one row in fifty far out.  Kernel: exp(-|a - b|^2 / 64).

Each cell is a process of its own, one thread.  seconds: the selection, without loading the libraries, and CPU time of
it (the machine may be busy with other things; reading from disk is in the first only); peak: the most
memory that was resident, in MB, before the selection and with it; error: what the basis leaves out of 20,000 rows that were
drawn, the same for all cells of a size.  Writes million-rows.csv to the output folder and the table into docs/bases.md.
"""

from __future__ import annotations

import os

from benchmarks.papers.compared import select_basis
from benchmarks.tables import DATA, ROOT

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DOCS, Rows, load, markdown, progress_bar, publish, save
from pykernel.bases.gram import MercerKernel
from pykernel.rows import as_rows, save_rows

PAGE = DOCS / "bases.md"
DIM, CLUSTERS, LATENT = 16, 40, 4
BLOCK = 2**18
GROUP = 2**16
"""Rows of a row group in the Parquet file."""
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
CHECKED = 20_000
KERNEL = MercerKernel("gaussian", gamma=1 / 64)
VECTORS = {"efvs": 100, "rpcholesky": 100, "sgma": 50, "uniform": 100}
"""Of each method; SGMA takes 59 columns of all rows for each vector."""
FEWER = {("sgma", 10_000_000): 10}
"""Vectors of a method at a size, where they are fewer."""
SOURCES = ("memory", ".npy", "Parquet")
MOST = {
    ("sgma", "memory"): 1_000_000, ("sgma", "Parquet"): 100_000,
    ("rpcholesky", "memory"): 1_000_000, ("uniform", "memory"): 0, ("uniform", "Parquet"): 0,
}  # fmt: skip
"""The most rows of a method from a source, where it is not all."""
COLUMNS = (
    "method",
    "source",
    "rows",
    "vectors",
    "seconds",
    "cpu_seconds",
    "values",
    "values_per_vector",
    "before_mb",
    "peak_mb",
    "error",
)


def block(number: int, rows: int = BLOCK) -> np.ndarray:
    """Block ``number`` of the data, (rows, DIM) float32."""
    shape = np.random.default_rng(0)
    weights = shape.dirichlet(np.full(CLUSTERS, 0.5))
    centres = 1.2 * shape.normal(size=(CLUSTERS, DIM))
    mixes = shape.normal(size=(CLUSTERS, LATENT, DIM)) * shape.gamma(1.0, 0.4, (CLUSTERS, LATENT, 1))
    bend, phase = shape.normal(size=(LATENT, DIM)), shape.uniform(0, 2 * np.pi, DIM)
    rng = np.random.default_rng([1, number])
    cluster = rng.choice(CLUSTERS, BLOCK, p=weights)
    latent = rng.normal(size=(BLOCK, LATENT))
    x = centres[cluster] + 0.4 * np.sin(latent @ bend + phase)
    for k in range(CLUSTERS):
        x[cluster == k] += latent[cluster == k] @ mixes[k]
    x += 0.1 * rng.normal(size=x.shape)
    x[rng.random(BLOCK) < 0.02] *= 2.5
    return x[:rows].astype(np.float32)


class First:
    """The first rows of a file."""

    def __init__(self, rows: Any, count: int) -> None:
        self.rows, self.dim, self.take, self.count = rows, rows.dim, rows.take, count

    def __len__(self) -> int:
        return self.count

    def blocks(self, size: int) -> Iterator[tuple[int, np.ndarray]]:
        for start, block in self.rows.blocks(size):
            if start >= self.count:
                return
            yield start, block[: self.count - start]


class Made:
    """The data as rows, made as they are read; for writing them once."""

    dim = DIM

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def take(self, indices: Any) -> np.ndarray:
        raise NotImplementedError

    def blocks(self, size: int) -> Any:
        assert size == BLOCK
        for number, start in enumerate(range(0, self.rows, BLOCK)):
            yield start, block(number, min(BLOCK, self.rows - start)).astype(np.float64)


def make(folder: Path, rows: int) -> dict[str, str]:
    """Both files, made if they are not there."""
    import pyarrow
    import pyarrow.parquet

    folder.mkdir(parents=True, exist_ok=True)
    files = {".npy": folder / f"rows-{rows}.npy", "Parquet": folder / f"rows-{rows}.parquet"}
    if not files[".npy"].exists():
        with progress_bar() as bar:
            task = bar.add_task("writing .npy", total=rows)
            save_rows(
                Made(rows), files[".npy"], progress=lambda done, of: bar.update(task, completed=done), block=BLOCK
            )
    if not files["Parquet"].exists():
        part = files["Parquet"].with_suffix(".part")
        schema = pyarrow.schema([(f"x{j}", pyarrow.float32()) for j in range(DIM)])
        with pyarrow.parquet.ParquetWriter(part, schema) as writer:
            for _, x in as_rows(files[".npy"]).blocks(GROUP):
                narrow = x.astype(np.float32)
                columns = [pyarrow.array(narrow[:, j]) for j in range(DIM)]
                writer.write_table(pyarrow.table(columns, schema=schema), row_group_size=GROUP)
        part.rename(files["Parquet"])
    return {name: str(path) for name, path in files.items()}


def peak() -> float:
    """The most memory that was resident, in MB; NaN where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return float("nan")
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def one(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell, in this process."""
    source, l = cell["source"], cell["rows"]
    if source == "memory":
        x: Any = np.fromfile(cell["files"][".npy"], np.float32, l * DIM, offset=128).reshape(l, DIM)
        rows = as_rows(x)
    else:
        rows = First(as_rows(cell["files"][source]), l)
    # what libraries take once, whatever is chosen
    select_basis(rows.take(np.arange(200)), KERNEL, 5, cell["method"])
    before, start, begun = peak(), time.perf_counter(), time.process_time()
    basis = select_basis(rows, KERNEL, cell["vectors"], cell["method"])
    seconds, cpu, after = time.perf_counter() - start, time.process_time() - begun, peak()
    checked = np.random.default_rng(2).choice(l, min(l, CHECKED), replace=False)
    fast = as_rows(cell["files"][".npy"])
    return {
        "method": cell["method"],
        "source": source,
        "rows": l,
        "vectors": len(basis),
        "seconds": round(seconds, 4),
        "cpu_seconds": round(cpu, 4),
        "values": basis.evaluations,
        "values_per_vector": round(basis.evaluations / len(basis), 1),
        "before_mb": round(before),
        "peak_mb": round(after),
        "error": round(float(basis.residual(fast.take(np.sort(checked))).mean()), 5),
    }


def run(cell: Mapping[str, Any]) -> dict[str, Any]:
    """A cell, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.host.million_rows", "--one", json.dumps(cell)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def cells(most: int, only: set[str]) -> list[dict[str, Any]]:
    """All cells, the quick ones first."""
    return [
        {"method": method, "source": source, "rows": rows, "vectors": FEWER.get((method, rows), vectors)}
        for rows in SIZES
        if rows <= most
        for method, vectors in VECTORS.items()
        if method in only
        for source in SOURCES
        if rows <= MOST.get((method, source), most)
    ]


def tables(rows: Rows) -> str:
    """The table, as in docs/bases.md."""
    shown = []
    for row in sorted(
        rows, key=lambda row: (list(VECTORS).index(row["method"]), SOURCES.index(row["source"]), int(row["rows"]))
    ):
        memory = f"{int(row['peak_mb']) - int(row['before_mb']):,} MB"
        shown.append(
            [
                f"`{row['method']}`", row["source"], f"{int(row['rows']):,}", row["vectors"], f"{float(row['cpu_seconds']):,.2f} s",
                f"{float(row['values_per_vector']):,.0f}", memory, f"{float(row['error']):.4f}",
            ]
        )  # fmt: skip
    heads = ["method", "from", "rows", "vectors", "CPU time", "kernel values for a vector", "memory", "left out"]
    return markdown(heads, shown)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--folder", type=Path, default=Path("/tmp/pykernel-million-rows"), help="where the data are kept"
    )
    parser.add_argument("--rows", type=int, default=SIZES[-1], help="the largest size")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    parser.add_argument("--only", default=",".join(VECTORS), help="methods; the other rows of the file stay")
    parser.add_argument("--quick", action="store_true", help="100,000 rows at most, and nothing is written to docs")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(one(json.loads(arguments.one))))
        return
    only = set(arguments.only.split(","))
    most = min(arguments.rows, 100_000) if arguments.quick else arguments.rows
    files = make(arguments.folder, most if arguments.quick else arguments.rows)
    path = arguments.output / "million-rows.csv"
    wanted = cells(most, only)
    found = [row for row in load(path) if row["method"] not in only] if path.is_file() and not arguments.quick else []
    with progress_bar() as bar:
        task = bar.add_task("cells", total=len(wanted))
        for cell in wanted:
            found.append({key: str(value) for key, value in run(cell | {"files": files}).items()})
            print(*found[-1].values(), sep="\t", flush=True)
            if not arguments.quick:
                save(path, found)
            bar.advance(task)
    if not arguments.quick and arguments.output == DATA:
        publish({"million-rows": tables(load(path))}, PAGE)


if __name__ == "__main__":
    main()
