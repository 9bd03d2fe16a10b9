"""What n vectors leave of a Gram matrix's trace, and what choosing them takes: our methods, scikit-learn's, the limit.

    python -m benchmarks.host.basis_table [--seeds 10] [-o docs] [--quick] [--show]

tr R / tr K over all rows, computed anew from the vectors; the limit is what the eigenvalues beyond number n sum to, which
no n vectors can be below, on the data or not.  Gaussian kernel, 2 sigma^2 = D / 2.  Residuals are means over the seeds;
times are CPU time of one thread from the rows to the basis, kernel values included, the median of three runs.

Writes basis-table.csv and basis-table.png to the output folder and the tables into docs/benchmarks.md.  Boston and
Abalone are fetched by pip once (benchmarks/basis_data.py); --quick takes bundled data alone.
"""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import benchmarks.papers.basis_pages as pages
import benchmarks.papers.basis_reference as reference
from benchmarks import basis_data
from benchmarks.kept import Kept
from benchmarks.papers import basis_tasks, compared
from benchmarks.tables import Rows, load, markdown, publish, save
from pykernel.bases import basis, candidates, gram, greedy, pivoted, select, sgma
from pykernel.errors import UserError

WIDTH = 0.5
SIZES = (25, 50, 100, 200)
SETS = ("boston", "abalone", "digits")
NAMES = {"boston": "Boston housing, 506 x 13", "abalone": "Abalone, 4,174 x 10", "digits": "Digits, 1,797 x 64"}
SEEDS = 10
METHODS: dict[str, tuple[str, dict[str, Any], bool]] = {
    "exhaustive": ("exhaustive", {}, False),
    "fvs": ("fvs", {}, False),
    "sgma": ("sgma", {}, True),
    "sgma, rule 4.3": ("sgma", {"rule": "4.3"}, True),
    "efvs": ("efvs", {}, True),
    "efvs, lazy": ("efvs", {"lazy": True}, True),
    "k-means": ("k-means", {}, True),
    "rpcholesky": ("rpcholesky", {}, True),
    "pivoted-cholesky": ("pivoted-cholesky", {}, False),
    "leverage": ("leverage", {}, True),
    "uniform": ("uniform", {}, True),
    "auto": ("auto", {}, False),
}
"""Name: method, options, whether seeds matter."""
FVS_ROWS, FVS_SIZES = 600, (25, 50, 100)
"""FVS takes O(l^2 n^3); the exhaustive recursion chooses the same rows."""
BASELINE = "Nystroem (scikit-learn)"
LIMIT = "limit"

# residual / limit of an independent implementation of the papers: NumPy, the same kernel, 3 seeds (Boston 5; k-means 2)
EARLIER: dict[str, dict[str, dict[int, float]]] = {
    "boston": {
        "exhaustive": {25: 0.3292 / 0.2625, 100: 0.1000 / 0.0590},
        "sgma": {25: 0.3378 / 0.2625, 100: 0.1012 / 0.0590},
        "sgma, rule 4.3": {25: 0.3548 / 0.2625, 100: 0.1100 / 0.0590},
        "efvs, lazy": {25: 0.3672 / 0.2625, 100: 0.1117 / 0.0590},
        "k-means": {25: 0.3287 / 0.2625, 100: 0.0859 / 0.0590},
        "rpcholesky": {25: 0.4428 / 0.2625, 100: 0.1328 / 0.0590},
        "pivoted-cholesky": {25: 0.7116 / 0.2625, 100: 0.1482 / 0.0590},
        "leverage": {25: 0.4787 / 0.2625, 100: 0.1585 / 0.0590},
        "uniform": {25: 0.4526 / 0.2625, 100: 0.1683 / 0.0590},
    },
    "abalone": {
        "exhaustive": {50: 0.0492 / 0.0355, 100: 0.0215 / 0.0138, 200: 0.0068 / 0.0035},
        "sgma": {50: 0.0544 / 0.0355, 100: 0.0235 / 0.0138, 200: 0.0079 / 0.0035},
        "sgma, rule 4.3": {50: 0.0670 / 0.0355, 100: 0.0308 / 0.0138, 200: 0.0101 / 0.0035},
        "efvs, lazy": {50: 0.0638 / 0.0355, 100: 0.0279 / 0.0138, 200: 0.0112 / 0.0035},
        "k-means": {50: 0.0547 / 0.0355, 100: 0.0249 / 0.0138, 200: 0.0080 / 0.0035},
        "rpcholesky": {50: 0.0794 / 0.0355, 100: 0.0324 / 0.0138, 200: 0.0107 / 0.0035},
        "pivoted-cholesky": {50: 0.2832 / 0.0355, 100: 0.0871 / 0.0138, 200: 0.0251 / 0.0035},
        "leverage": {50: 0.1449 / 0.0355, 100: 0.0405 / 0.0138, 200: 0.0134 / 0.0035},
        "uniform": {50: 0.0895 / 0.0355, 100: 0.0452 / 0.0138, 200: 0.0217 / 0.0035},
    },
    # of USPS digits, 2,007 x 256, whose limits are .1610 and .0697
    "digits": {
        "exhaustive": {50: 0.2304 / 0.1610, 200: 0.1136 / 0.0697},
        "sgma": {50: 0.2387 / 0.1610, 200: 0.1160 / 0.0697},
        "sgma, rule 4.3": {50: 0.2499 / 0.1610, 200: 0.1234 / 0.0697},
        "efvs, lazy": {50: 0.2563 / 0.1610, 200: 0.1265 / 0.0697},
        "k-means": {50: 0.1980 / 0.1610, 200: 0.0997 / 0.0697},
        "rpcholesky": {50: 0.2822 / 0.1610, 200: 0.1331 / 0.0697},
        "pivoted-cholesky": {50: 0.3684 / 0.1610, 200: 0.1842 / 0.0697},
        "leverage": {50: 0.3002 / 0.1610, 200: 0.1351 / 0.0697},
        "uniform": {50: 0.2738 / 0.1610, 200: 0.1382 / 0.0697},
    },
}

# ------------------------------------------------------------------------------------------------------------ tasks


def nystroem(task: Mapping[str, Any]) -> dict[str, Any]:
    """scikit-learn's: residuals from its own features, and CPU seconds of fit."""
    from sklearn.kernel_approximation import Nystroem

    x, kernel = basis_tasks.kernel_of(task)
    curve, seconds = [], []
    for n in task["n"]:
        start = time.process_time()
        model = Nystroem(kernel="rbf", gamma=kernel.gamma, n_components=n, random_state=task["seed"]).fit(x)
        seconds.append(time.process_time() - start)
        z = model.transform(x)
        curve.append(float(1 - (z * z).sum(axis=1).mean()))
    return {"curve": curve, "seconds": seconds}


KINDS = {**basis_tasks.KINDS, "nystroem": nystroem}


def run_task(task: Mapping[str, Any], shared: Any = None) -> Any:
    return KINDS[task["kind"]](task)


def plan(quick: bool, sets: Sequence[str], seeds: int) -> Iterator[dict[str, Any]]:
    """All tasks; what is timed has the kind "steps"."""
    sizes = (5, 10) if quick else SIZES
    for name in sets:
        rows = 300 if quick else 0
        common = {"data": name, "rows": rows, "width": WIDTH, "n": list(sizes)}
        yield {"kind": "limit", **common, "method": LIMIT}
        for label, (method, options, random) in METHODS.items():
            told = {**common, "label": label, "method": method, "options": options}
            if method == "fvs":
                if len(basis_data.load(name).x) > FVS_ROWS:
                    continue
                told["n"] = [n for n in sizes if n in FVS_SIZES or quick]
            for seed in range(seeds if random else 1):
                yield {"kind": "select", **told, "seed": seed}
            yield {"kind": "steps", **told, "runs": 3, "seconds": 0.05 if quick else 20.0}
        for seed in range(seeds):
            yield {"kind": "nystroem", **common, "label": BASELINE, "method": BASELINE, "seed": seed}


def measure(quick: bool, sets: Sequence[str], seeds: int, jobs: int | None, path: Path) -> list[dict[str, str]]:
    tasks = list(plan(quick, sets, seeds))
    sources, product = (reference, basis_tasks, compared), (basis, candidates, gram, greedy, pivoted, select, sgma)
    picked = basis_tasks.sample()
    found: dict[int, Any] = {}
    # times last, and alone; scikit-learn's fits are timed, too
    timed = ("steps", "nystroem")
    for alone in (False, True):
        some = [task for task in tasks if (task["kind"] in timed) == alone]
        context = [pages.digest([*sources, *(product if alone else ())]), picked]
        options: dict[str, Any] = {"results": path, "context": context, "title": "times" if alone else "residuals"}
        with Kept(run_task, jobs=1 if alone else jobs, **options) as workers:
            found.update(zip(map(id, some), workers.run(some), strict=True))
    cells: dict[tuple[str, str, int], dict[str, list[float]]] = {}
    for task in tasks:
        result, label = found[id(task)], task.get("label", LIMIT)
        for at, n in enumerate(task["n"]):
            cell = cells.setdefault((task["data"], label, n), {"residual": [], "ms": []})
            if task["kind"] == "limit":
                cell["residual"].append(result[at])
            elif "curve" in result:
                cell["residual"].append(result["curve"][at])
            if "seconds" in result:
                cell["ms"].append(1e3 * result["seconds"][at])
    rows = []
    for (name, label, n), cell in cells.items():
        values = pages.statistics(cell["residual"])
        earlier = EARLIER[name].get(label, {}).get(n)
        ratio = float(np.mean(cell["residual"])) / cells[name, LIMIT, n]["residual"][0]
        rows.append(
            {
                "data": name,
                "method": label,
                "n": f"{n}",
                "seeds": values["runs"],
                "residual": values["mean"],
                "error": values["error"],
                "ratio": pages.number(ratio),
                "earlier": "" if earlier is None else pages.number(earlier),
                "ms": pages.number(float(np.median(cell["ms"]))) if cell["ms"] else "",
            }
        )
    return rows


# ------------------------------------------------------------------------------------------------------------ shown


def names(rows: Rows) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in rows))


def labels(rows: Rows, name: str) -> list[str]:
    return list(dict.fromkeys(row["method"] for row in rows if row["data"] == name))


def cell_of(rows: Rows, name: str, label: str, n: int) -> Mapping[str, str] | None:
    found = [row for row in rows if (row["data"], row["method"], row["n"]) == (name, label, f"{n}")]
    return found[0] if found else None


def milliseconds(text: str) -> str:
    value = float(text)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def tables(rows: Rows) -> dict[str, str]:
    """For each set: residual, (residual / limit), milliseconds; then the ratios beside those measured earlier."""
    made = {}
    sizes = sorted({int(row["n"]) for row in rows})
    for name in names(rows):
        body = []
        for label in labels(rows, name):
            line = [f"**{label}**" if label == LIMIT else label]
            for n in sizes:
                cell = cell_of(rows, name, label, n)
                if cell is None:
                    line.append("–")
                elif label == LIMIT:
                    line.append(f"{float(cell['residual']):.4f}")
                else:
                    parts = f"{float(cell['residual']):.4f} ({float(cell['ratio']):.2f})"
                    line.append(f"{parts} {milliseconds(cell['ms'])} ms")
            body.append(line)
        made[f"bases, {name}"] = markdown([NAMES[name], *(f"n = {n}" for n in sizes)], body)
    body = []
    for label in METHODS:
        line = [label]
        for name in names(rows):
            cells = [cell for n in sizes if (cell := cell_of(rows, name, label, n)) is not None and cell["earlier"]]
            line.append(
                "; ".join(f"{c['n']}: {float(c['ratio']):.2f} ({float(c['earlier']):.2f})" for c in cells) or "–"
            )
        if any(text != "–" for text in line[1:]):
            body.append(line)
    made["bases, ratios"] = markdown(["residual / limit", *(NAMES[name].split(",")[0] for name in names(rows))], body)
    return made


def draw(rows: Rows, path: Path) -> None:
    """Residual over CPU time, a line for each method."""
    sets = names(rows)
    figure, axes = pages.canvas(4.2 * len(sets), 4.4, len(sets))
    for axis, name in zip(axes, sets, strict=True):
        shown = [label for label in labels(rows, name) if label not in (LIMIT, "auto", "sgma, rule 4.3", "efvs", "fvs")]
        for label in shown:
            at = [*METHODS, BASELINE].index(label)
            found = [row for row in rows if (row["data"], row["method"]) == (name, label)]
            ms, left = ([float(row[key]) for row in found] for key in ("ms", "residual"))
            style = {"linestyle": "--" if label == BASELINE else "-", "marker": "osv^D"[at % 5]}
            axis.plot(ms, left, color=pages.COLOURS[at % 8], linewidth=1.3, markersize=4, label=label, **style)
        for row in rows:
            if (row["data"], row["method"]) == (name, LIMIT):
                axis.axhline(float(row["residual"]), color="#222222", linewidth=0.8, linestyle=":")
        axis.set(xscale="log", yscale="log", xlabel="CPU time (ms)", title=NAMES[name])
    axes[0].set_ylabel("trace residual")
    axes[-1].legend(frameon=False, fontsize=7)
    pages.keep(figure, path)


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, help="processes, of all but the times; as many as cores if not given")
    parser.add_argument("--results", type=Path, help="file of finished tasks (OUT/basis-table.jsonl)")
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="few rows, small n, bundled data: does it work?")
    parser.add_argument("--show", action="store_true", help="measure nothing: tables and figure from the CSV file")
    given = parser.parse_args(words)
    path = given.out / "basis-table.csv"
    try:
        if given.show:
            rows = load(path)
        else:
            sets, missing = pages.available(SETS[-1:] if given.quick else SETS)
            for sentence in missing:
                print(f"basis_table: {sentence}", file=sys.stderr)
            with threadpool_limits(1):
                seeds = 2 if given.quick else given.seeds
                measured = measure(given.quick, sets, seeds, given.jobs, given.results or path.with_suffix(".jsonl"))
            if missing and given.out == DATA:
                raise UserError(
                    "docs/data/basis-table.csv stays as it is; give another folder (-o) for the sets that are there"
                )
            rows = save(path, measured)
    except UserError as error:
        print(f"basis_table: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    draw(rows, path.with_suffix(".png"))
    made = tables(rows)
    if given.out == DATA:
        publish(made)
    for name, table in made.items():
        print(f"{name}\n\n{table}")


if __name__ == "__main__":
    main()
