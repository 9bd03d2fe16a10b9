"""Width and ridge of kernel ridge regression from a 20 x 20 grid by exact leave-one-out: select() beside GridSearchCV.

    python -m benchmarks.host.grid_search [--compared 50,100,200] [--alone 100,200,500,1000] [--resume] [-o docs]

All contenders see the same data and the same grid, and take turns, one width (20 ridges) each, in one process with one
thread; CPU time of the thread is what counts.  Their 400 mean squared errors must agree to 1e-8, or the script stops.

select       pykernel.training.selection: one eigendecomposition for each width, all ridges from it
GridSearchCV scikit-learn's GridSearchCV(KernelRidge(kernel="rbf"), cv=LeaveOneOut()): trains 400 l models
loop         the same without its overhead: one Gram matrix for each width, then l Cholesky factors for each ridge

Writes grid-search.csv and grid-search.png to the output folder and the tables into docs/benchmarks.md.  About 15 minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from sklearn.datasets import make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from threadpoolctl import threadpool_limits

from benchmarks.tables import DATA, Rows, load, markdown, progress_bar, publish, save
from pykernel.files import whole_file
from pykernel.training.selection import Model, select
from pykernel.training.targets import Targets

DIM, GRID = 5, 20
COMPARED, ALONE = (50, 100, 200), (100, 200, 500, 1000)
AGREE = 1e-8
"""Largest relative difference between the contenders' scores."""
MODELS: tuple[Model, ...] = ("krr", "ls-svm", "kfd")
NAMES = {"select": "pykernel", "GridSearchCV": "GridSearchCV", "loop": "bare loop"}

Contender = Callable[[np.ndarray, np.ndarray, float, Sequence[float]], np.ndarray]
"""x (l, d), y (l,), one sigma and all ridges -> mean squared leave-one-out errors, one for each ridge."""


def data(l: int) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's first function of five inputs, with noise of 1; y about zero, as kernel ridge regression has no bias."""
    x, y = make_friedman1(l, DIM, noise=1.0, random_state=0)
    return x, y - y.mean()


def grid() -> tuple[list[float], list[float]]:
    """Widths from 1/20 to 10 (the inputs are in 0 to 1), ridges from 1e-4 to 100."""
    return np.geomspace(0.05, 10, GRID).tolist(), np.geomspace(1e-4, 100, GRID).tolist()


def by_selection(x: np.ndarray, y: np.ndarray, sigma: float, ridges: Sequence[float]) -> np.ndarray:
    return select("krr", x, Targets.of_values(y), "gaussian", [sigma], ridges).press[0]


def by_grid_search(x: np.ndarray, y: np.ndarray, sigma: float, ridges: Sequence[float]) -> np.ndarray:
    candidates = {"gamma": [1 / (2 * sigma**2)], "alpha": list(ridges)}
    found = GridSearchCV(
        KernelRidge(kernel="rbf"), candidates, cv=LeaveOneOut(), scoring="neg_mean_squared_error", refit=False
    ).fit(x, y)
    # LeaveOneOut's mean over folds is the mean over samples
    return -found.cv_results_["mean_test_score"]


def by_loop(x: np.ndarray, y: np.ndarray, sigma: float, ridges: Sequence[float]) -> np.ndarray:
    gram = np.exp(-cdist(x, x, "sqeuclidean") / (2 * sigma**2))
    errors = np.empty((len(ridges), len(y)))
    for row, ridge in zip(errors, ridges, strict=True):
        for i in range(len(y)):
            rest = np.arange(len(y)) != i
            matrix = gram[np.ix_(rest, rest)]
            matrix.flat[:: len(matrix) + 1] += ridge
            row[i] = y[i] - gram[i, rest] @ cho_solve(cho_factor(matrix, overwrite_a=True, check_finite=False), y[rest])
    return np.square(errors).mean(axis=1)


CONTENDERS: Mapping[str, Contender] = {"select": by_selection, "GridSearchCV": by_grid_search, "loop": by_loop}


def compare(l: int, contenders: Mapping[str, Contender], show: Callable[[], None]) -> list[dict[str, Any]]:
    """Seconds of each for the whole grid, and how far its scores are from the first's.  Raises if they do not agree."""
    x, y = data(l)
    widths, ridges = grid()
    seconds, scores = dict.fromkeys(contenders, 0.0), {name: [] for name in contenders}
    for sigma in widths:
        for name, contender in contenders.items():
            start = time.thread_time()
            scores[name].append(contender(x, y, sigma, ridges))
            seconds[name] += time.thread_time() - start
        show()
    first = np.array(scores["select"])
    rows = []
    for name in contenders:
        apart = float(np.abs(np.array(scores[name]) / first - 1).max())
        if apart > AGREE:
            raise SystemExit(f"l = {l}: {name} differs from select by {apart:g}, which is more than {AGREE:g}")
        rows.append(row_of(name, "krr", l, seconds[name], seconds["select"], apart))
    return rows


def row_of(name: str, model: str, l: int, seconds: float, ours: float, apart: float | None) -> dict[str, Any]:
    return {
        "contender": name,
        "model": model,
        "l": l,
        "seconds": f"{seconds:.4g}",
        "per_select": f"{seconds / ours:.4g}",
        "apart": "" if apart is None else f"{apart:.2g}",
    }


def alone(model: Model, l: int) -> dict[str, Any]:
    """Ours, the whole grid at once; of kfd with two classes, labels above and below the mean."""
    x, y = data(l)
    targets = Targets.of_classes((y > 0).astype(int), 2, "counts") if model == "kfd" else Targets.of_values(y)
    start = time.thread_time()
    select(model, x, targets, "gaussian", *grid())
    seconds = time.thread_time() - start
    return row_of("select alone", model, l, seconds, seconds, None)


# ----------------------------------------------------------------------------------------------------------- results


def slope(rows: Rows, contender: str, model: str = "krr", least: int = 0) -> float:
    """On log-log axes, from ``least`` samples on; NaN of fewer than two lengths."""
    found = series(rows, contender, model)
    lengths = [l for l in found if l >= least]
    if len(lengths) < 2:
        return float("nan")
    return float(np.polyfit(np.log(lengths), np.log([found[l] for l in lengths]), 1)[0])


def series(rows: Rows, contender: str, model: str = "krr") -> dict[int, float]:
    """l -> seconds."""
    return {
        int(row["l"]): float(row["seconds"]) for row in rows if (row["contender"], row["model"]) == (contender, model)
    }


def shown(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.3g} s"


def tables(rows: Rows) -> dict[str, str]:
    """For docs/benchmarks.md."""
    ours = series(rows, "select")
    heads = ["", *(f"l = {l}" for l in ours), "slope from 50"]
    lines = []
    for name in CONTENDERS:
        times = series(rows, name)
        ratio = {int(row["l"]): float(row["per_select"]) for row in rows if row["contender"] == name}
        cells = [f"{shown(times[l])}" + (f" ({ratio[l]:,.0f})" if name != "select" else "") for l in ours]
        lines.append([NAMES[name], *cells, f"{slope(rows, name, least=50):.2f}"])
    apart = [max(float(row["apart"]) for row in rows if row["apart"] and int(row["l"]) == l) for l in ours]
    lines.append(["largest difference", *(f"{value:.0e}" for value in apart), ""])
    lengths = list(series(rows, "select alone"))
    more = [
        [model, *(shown(series(rows, "select alone", model)[l]) for l in lengths),
         f"{slope(rows, 'select alone', model, 200):.2f}"]
        for model in MODELS
    ]  # fmt: skip
    return {
        "grid search": markdown(heads, lines),
        "grid search, alone": markdown(["model", *(f"l = {l}" for l in lengths), "slope from 200"], more),
    }


def figure(path: Path, rows: Rows) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from benchmarks.figures import COLOURS, TRUTH

    drawn = Figure(figsize=(7.4, 4.6), layout="constrained", dpi=150)
    FigureCanvasAgg(drawn)
    axes = drawn.subplots()
    lines = {"GridSearchCV": series(rows, "GridSearchCV"), "bare loop": series(rows, "loop")}
    alone_of = {f"pykernel, {model}": series(rows, "select alone", model) for model in MODELS}
    alone_of["pykernel, krr"] = series(rows, "select") | alone_of["pykernel, krr"]
    for (name, times), colour in zip((lines | alone_of).items(), COLOURS, strict=True):
        axes.plot(list(times), list(times.values()), "o-", color=colour, label=name, markersize=5)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sorted({l for times in (lines | alone_of).values() for l in times}))
    axes.set_xticklabels([f"{l:g}" for l in axes.get_xticks()])
    axes.minorticks_off()
    axes.set_xlabel("samples l")
    axes.set_ylabel("seconds of one thread")
    title = f"{GRID} x {GRID} widths and ridges by exact leave-one-out"
    axes.set_title(title, loc="left", fontsize=12, fontweight="bold", color=TRUTH)
    axes.grid(color="#dddddd", linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    with whole_file(path) as file:
        drawn.savefig(file, format="png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compared", default=",".join(map(str, COMPARED)), help="samples where all take part")
    parser.add_argument("--alone", default=",".join(map(str, ALONE)), help="samples of ours alone")
    parser.add_argument("-o", "--output", type=Path, default=DATA)
    parser.add_argument("--resume", action="store_true", help="lengths in the file are not measured again")
    arguments = parser.parse_args()
    path = arguments.output / "grid-search.csv"
    found: list[Any] = load(path) if arguments.resume and path.is_file() else []
    done = {(row["contender"], row["model"], int(row["l"])) for row in found}
    compared = [int(l) for l in arguments.compared.split(",")]
    compared = [l for l in compared if ("select", "krr", l) not in done]
    lengths = [int(l) for l in arguments.alone.split(",")]
    singly = [(model, l) for model in MODELS for l in lengths if ("select alone", model, l) not in done]
    with threadpool_limits(1), progress_bar() as progress:
        shown_as = progress.add_task("grid", total=GRID * len(compared) + len(singly))

        def advance() -> None:
            progress.advance(shown_as)

        def keep(rows: list[dict[str, Any]]) -> None:
            found.extend(rows)
            found.sort(key=lambda row: (row["contender"] == "select alone", MODELS.index(row["model"]), int(row["l"])))
            save(path, found)
            for row in rows:
                print(*row.values(), sep="\t", flush=True)

        if compared or singly:
            compare(10, CONTENDERS, lambda: None)  # whatever is loaded at first use
        for l in compared:
            keep(compare(l, CONTENDERS, advance))
        for model, l in singly:
            keep([alone(model, l)])
            advance()
    rows = load(path)
    figure(arguments.output / "grid-search.png", rows)
    made = tables(rows)
    for table in made.values():
        print(table)
    if arguments.output == DATA:
        publish(made)


if __name__ == "__main__":
    main()
