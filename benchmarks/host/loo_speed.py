"""Cross-validation in closed form against retraining: time, agreement, and how both grow with the number of samples.

    python -m benchmarks.host.loo_speed [--rounds 3] [-o docs] [--quick]

One thread, float64.  All contenders of a size take turns in one process; a cell is the median over the rounds, in CPU
time of the thread, and includes everything from the Gram matrix on.  Retraining is no straw man: it trains by LAPACK's
Cholesky factorisation; KFD's normal equations are formed once, and each fold's rows and columns are taken out of them
in O(l^2), so that nothing but the factorisation is O(l^3).

The data are paper 004's: a quarter bivariate normal, three quarters an annulus around it.  Kernel exp(-gamma |a-b|^2).

Writes loo-speed.csv and loo-speed.png to the output folder and the tables into docs/benchmarks.md.
"""

from __future__ import annotations

import os

from benchmarks.tables import DATA

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.linalg.blas import dsyr, dsyrk
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.spatial.distance import cdist

from benchmarks.figures import COLOURS, TRUTH
from benchmarks.tables import Rows, load, markdown, progress_bar, publish, save
from pykernel.files import whole_file
from pykernel.training.closed_form import MODELS, Model, problem
from pykernel.training.targets import Targets

SIZES = (100, 200, 500, 1000)
ROUNDS = 3
BLOCK_SECONDS = 0.05
"""A turn lasts about so long, where one run is shorter."""
GAMMA = 0.5
RIDGES: dict[Model, float] = {"kfd": 1.0, "ls-svm": 0.1, "krr": 0.1}
FOLDS = 10
PATH = 20
"""Ridges of a path: from a thousandth of the model's ridge to a thousand times it."""

METHODS = {
    "direct": "retraining",
    "inverse": "closed form, one inverse",
    "closed": "closed form",
    "next ridge": "closed form, each further ridge",
    "path": f"closed form, {PATH} ridges",
    "direct folds": f"retraining, {FOLDS} folds",
    "closed folds": f"closed form, {FOLDS} folds",
    "next ridge folds": f"closed form, {FOLDS} folds, each further ridge",
    "path folds": f"closed form, {FOLDS} folds, {PATH} ridges",
}
COLUMNS = ("model", "l", "method", "seconds", "rounds", "difference")


def data(l: int) -> tuple[np.ndarray, np.ndarray]:
    """Paper 004, section 3: inputs (l, 2) and classes (l,); class 1 is the quarter in the middle."""
    rng = np.random.default_rng(l)
    middle = rng.permutation(l) < l // 4
    angle, radius = rng.uniform(0, 2 * np.pi, l), rng.normal(4, 1, l)
    ring = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.where(middle[:, None], rng.normal(size=(l, 2)), ring), middle.astype(np.int64)


def gram_of(x: np.ndarray) -> np.ndarray:
    return np.exp(-GAMMA * cdist(x, x, "sqeuclidean"))


def ridges(model: Model) -> np.ndarray:
    return RIDGES[model] * np.logspace(-3, 3, PATH)


# -------------------------------------------------------------------------------------------------------- retraining


def retrained(model: Model, gram: np.ndarray, classes: np.ndarray, ridge: float, edges: Sequence[int]) -> np.ndarray:
    """(l,): what each sample is predicted by the model trained without its fold, the samples between two edges."""
    if model == "kfd":
        return fisher_retrained(gram, classes, ridge, edges)
    l, y = len(gram), 2.0 * classes - 1
    left = np.empty(l)
    both = np.stack([y, np.ones(l)], axis=1) if model == "ls-svm" else y[:, None]
    for a, b in pairwise(edges):
        rest = np.r_[0:a, b:l]
        solved = factor_solved(without(gram, a, b, ridge), both[rest])
        alpha = solved[:, 0]
        bias = 0.0
        if model == "ls-svm":
            bias = alpha.sum() / solved[:, 1].sum()
            alpha = alpha - bias * solved[:, 1]
        left[a:b] = gram[a:b, :a] @ alpha[:a] + gram[a:b, b:] @ alpha[a:] + bias
    return left


def fisher_retrained(gram: np.ndarray, classes: np.ndarray, ridge: float, edges: Sequence[int]) -> np.ndarray:
    """Targets are coded anew for each fold; the bias is eliminated: (K'JK + ridge I) alpha = K'Jy, J = I - 11'/n."""
    l = len(gram)
    left = np.empty(l)
    products, sums = gram.T @ gram, gram.sum(axis=0)
    of_class = gram.T @ classes
    for a, b in pairwise(edges):
        rest, n = np.r_[0:a, b:l], l - (b - a)
        total = sums[rest] - gram[a:b][:, rest].sum(axis=0)
        inside = classes[rest].sum()
        system = without(products, a, b, ridge)
        gone = np.asfortranarray(gram[a:b][:, rest])
        if b - a == 1:
            system = dsyr(-1.0, gone[0], lower=1, a=system, overwrite_a=1)
        else:
            system = dsyrk(-1.0, gone, beta=1.0, c=system, trans=1, lower=1, overwrite_c=1)
        system = dsyr(-1.0 / n, total, lower=1, a=system, overwrite_a=1)
        # y sums to zero: K'Jy = K'y
        one = of_class[rest] - gone.T @ classes[a:b]
        right = n / inside * one - n / (n - inside) * (total - one)
        alpha = factor_solved(system, right[:, None])[:, 0]
        bias = -(total @ alpha) / n
        left[a:b] = gone @ alpha + bias
    return left


def without(a: np.ndarray, begin: int, end: int, ridge: float) -> np.ndarray:
    """A copy without rows and columns from begin to end, in Fortran's order, with the ridge on its diagonal."""
    n = len(a) - (end - begin)
    part = np.empty((n, n), order="F")
    # symmetric: what is copied as rows is stored as columns
    rows = part.T
    rows[:begin, :begin], rows[:begin, begin:] = a[:begin, :begin], a[:begin, end:]
    rows[begin:, :begin], rows[begin:, begin:] = a[end:, :begin], a[end:, end:]
    part[np.arange(n), np.arange(n)] += ridge
    return part


def factor_solved(system: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Overwrites the system."""
    factor, info = dpotrf(system, lower=1, overwrite_a=1, clean=0)
    if info:
        raise RuntimeError(f"the system is not positive definite at row {info}")
    solved, _ = dpotrs(factor, right, lower=1)
    return solved


# ------------------------------------------------------------------------------------- closed form, from one inverse


def by_inverse(model: Model, gram: np.ndarray, classes: np.ndarray, ridge: float) -> np.ndarray:
    """The formulas for one ridge, from the inverse of the system: fewer operations than a decomposition, and digits."""
    l = len(gram)
    system = np.asfortranarray(gram.T @ gram if model == "kfd" else gram)
    if model != "kfd":
        system = system.copy(order="F")
    else:
        total = gram.sum(axis=0)
        system = dsyr(-1.0 / l, total, lower=1, a=system, overwrite_a=1)
    system[np.arange(l), np.arange(l)] += ridge
    inverse, _ = dpotri(dpotrf(system, lower=1, overwrite_a=1, clean=0)[0], lower=1, overwrite_c=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    if model != "kfd":
        y = 2.0 * classes - 1
        if model == "ls-svm":
            row = inverse.sum(axis=0)
            inverse -= np.outer(row, row / row.sum())
        return y - inverse @ y / np.diag(inverse)
    centred = gram - total / l
    t = classes.astype(float)
    product = centred @ inverse
    share = 1 - 1 / l - np.einsum("ij,ij->i", product, centred)
    g, d = np.diag(product), np.diag(inverse)
    alpha = product.T @ t
    residual = t - t.mean() - centred @ alpha
    member = t - (d * residual + g * alpha) / (d * share + g**2)
    inside = t.sum() - t
    return (l - 1) / inside * member - (l - 1) / (l - 1 - inside) * (1 - member)


# --------------------------------------------------------------------------------------------------------- measuring


@dataclass
class Contender:
    """run() -> predictions; times: seconds of one run, turn by turn."""

    model: Model
    l: int
    method: str
    run: Callable[[], np.ndarray]
    times: list[float] = field(default_factory=list)
    difference: float = 0.0
    count: int = 1

    def begin(self, seconds: float, truth: np.ndarray | None) -> np.ndarray:
        """Run once to see how long it takes and how far the predictions are from retraining's."""
        start = time.thread_time()
        predictions = self.run()
        self.count = max(1, int(seconds / max(time.thread_time() - start, 1e-6)))
        if truth is not None:
            self.difference = float(np.abs(predictions - truth).max())
        return predictions

    def turn(self) -> None:
        start = time.thread_time()
        for _ in range(self.count):
            self.run()
        self.times.append((time.thread_time() - start) / self.count)


def contenders(model: Model, l: int) -> dict[str, Contender]:
    x, classes = data(l)
    gram, ridge = gram_of(x), RIDGES[model]
    targets = Targets.of_classes(classes, 2, "counts" if model == "kfd" else "signs")
    alone = list(range(l + 1))
    edges = [round(l * k / FOLDS) for k in range(FOLDS + 1)]
    folds = np.repeat(np.arange(FOLDS), np.diff(edges))
    ready = problem(model, gram, targets)

    def path() -> np.ndarray:
        fresh = problem(model, gram, targets)
        return np.stack([fresh.leave_one_out(value)[:, 0] for value in ridges(model)])

    def path_of_folds() -> np.ndarray:
        fresh = problem(model, gram, targets)
        return np.stack([fresh.leave_fold_out(value, folds)[:, 0] for value in ridges(model)])

    runs: dict[str, Callable[[], np.ndarray]] = {
        "direct": lambda: retrained(model, gram, classes, ridge, alone),
        "inverse": lambda: by_inverse(model, gram, classes, ridge),
        "closed": lambda: problem(model, gram, targets).leave_one_out(ridge)[:, 0],
        "next ridge": lambda: ready.leave_one_out(ridge)[:, 0],
        "path": path,
        "direct folds": lambda: retrained(model, gram, classes, ridge, edges),
        "closed folds": lambda: problem(model, gram, targets).leave_fold_out(ridge, folds)[:, 0],
        "next ridge folds": lambda: ready.leave_fold_out(ridge, folds)[:, 0],
        "path folds": path_of_folds,
    }
    return {method: Contender(model, l, method, run) for method, run in runs.items()}


def measure(l: int, rounds: int, seconds: float, tick: Callable[[str], None]) -> list[dict[str, str]]:
    """All models and methods of a size take turns."""
    every: list[Contender] = []
    for model in MODELS:
        found = contenders(model, l)
        truth = found["direct"].begin(seconds, None)
        truth_of_folds = found["direct folds"].begin(seconds, None)
        for method, one in found.items():
            if method.startswith("path"):
                one.begin(seconds, None)
            elif not method.startswith("direct"):
                one.begin(seconds, truth_of_folds if method.endswith("folds") else truth)
        every += found.values()
    for _ in range(rounds):
        for one in every:
            one.turn()
            tick(f"l = {l}, {one.model}, {one.method}")
    return [
        dict(
            zip(
                COLUMNS,
                (
                    one.model,
                    str(one.l),
                    one.method,
                    f"{np.median(one.times):.4g}",
                    str(rounds),
                    "" if one.method.startswith(("path", "direct")) else f"{one.difference:.1e}",
                ),
                strict=True,
            )
        )
        for one in every
    ]


# ----------------------------------------------------------------------------------------------------------- showing


def series(rows: Rows) -> dict[tuple[str, str], dict[int, float]]:
    """(model, method) -> l -> seconds."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for row in rows:
        found.setdefault((row["model"], row["method"]), {})[int(row["l"])] = float(row["seconds"])
    return found


def slope(times: dict[int, float]) -> float:
    """On log-log axes, by least squares over all sizes."""
    return float(np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0])


def shown(seconds: float) -> str:
    """Milliseconds below a second, three digits."""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{1e3 * seconds:.0f} ms" if seconds >= 0.1 else f"{1e3 * seconds:.3g} ms"


def ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def tables(rows: Rows) -> dict[str, str]:
    found = series(rows)
    sizes = sorted({int(row["l"]) for row in rows})
    models = list(dict.fromkeys(row["model"] for row in rows))
    heads = ["", *(f"l = {l}" for l in sizes), "slope"]
    made: dict[str, list[list[str]]] = {"loo speed": [], "loo speed, folds": []}
    for model in models:
        for method, name in METHODS.items():
            times = found[model, method]
            reference = "direct folds" if method.endswith("folds") else "direct"
            # a path takes retraining as many times as it has ridges
            often = PATH if method.startswith("path") else 1
            cells = [shown(times[l]) for l in sizes]
            if method != reference:
                ratios = [ratio(often * found[model, reference][l] / times[l]) for l in sizes]
                cells = [f"{cell} ({value})" for cell, value in zip(cells, ratios, strict=True)]
            place = "loo speed, folds" if method.endswith("folds") else "loo speed"
            made[place].append([f"{model}, {name}", *cells, f"{slope(times):.2f}"])
    return {name: markdown(heads, lines) for name, lines in made.items()} | {"loo speed, in words": words(rows)}


def words(rows: Rows) -> str:
    found = series(rows)
    models = list(dict.fromkeys(row["model"] for row in rows))
    few, many = (end(found[models[0], "direct"]) for end in (min, max))

    def times(reference: str, method: str, l: int, often: int = 1) -> str:
        """The least and the largest of the models."""
        ratios = sorted(often * found[model, reference][l] / found[model, method][l] for model in models)
        return f"{ratio(ratios[0])} to {ratio(ratios[-1])}"

    differences = [float(row["difference"]) for row in rows if row["difference"]]
    return (
        f"- Retraining takes {times('direct', 'closed', few)} times as long as the closed form with {few} samples, "
        f"{times('direct', 'closed', many)} times with {many}; for {PATH} ridges {times('direct', 'path', few, PATH)}, and "
        f"{times('direct', 'path', many, PATH)} times.\n"
        f"- With {FOLDS} folds and {many} samples: {times('direct folds', 'closed folds', many)} times for one ridge, "
        f"{times('direct folds', 'path folds', many, PATH)} times for {PATH}.\n"
        f"- No prediction differs from retraining's by more than {max(differences):.1e}.\n"
    )


def draw(rows: Rows, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    found = series(rows)
    models = list(dict.fromkeys(row["model"] for row in rows))
    figure = Figure(figsize=(3.6 * len(models), 4.4), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    # colour, line, marker, and how much higher the slope is written: two of the lines nearly meet
    lines = {
        "direct": (TRUTH, "-", "o", 0),
        "path": (COLOURS[1], "-", "s", 5),
        "closed": (COLOURS[0], "-", "o", -5),
        "inverse": (COLOURS[3], "--", "^", 0),
        "next ridge": (COLOURS[4], ":", "o", 0),
    }
    for axes, model in zip(panels, models, strict=True):
        for method, (colour, line, marker, higher) in lines.items():
            times = found[model, method]
            points = zip(*times.items(), strict=True)
            axes.plot(*points, line, color=colour, marker=marker, ms=4, label=METHODS[method])
            l = max(times)
            if len(times) > 1:
                axes.annotate(
                    f"{slope(times):.1f}",
                    (l, times[l]),
                    xytext=(5, higher),
                    textcoords="offset points",
                    fontsize=8,
                    color=colour,
                    va="center",
                )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(sorted({l for times in found.values() for l in times}))
        axes.minorticks_off()
        axes.xaxis.set_major_formatter("{x:.0f}")
        axes.margins(x=0.12)
        axes.set_title(model, loc="left", fontsize=11, fontweight="bold")
        axes.set_xlabel("l, samples")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("seconds for leave-one-out (CPU time)")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=8.5
    )
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds: does it work?")
    parser.add_argument("--show", action="store_true", help="measure nothing: tables and figure from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "loo-speed.csv"
    if chosen.show:
        rows = load(path)
    else:
        sizes, rounds, seconds = SIZES, chosen.rounds, BLOCK_SECONDS
        if chosen.quick:
            sizes, rounds, seconds = (20, 40), 2, 0.001
        measured = []
        with progress_bar() as bar:
            task = bar.add_task("measuring", total=len(sizes) * rounds * len(MODELS) * len(METHODS))
            for l in sizes:
                measured += measure(l, rounds, seconds, lambda name: bar.update(task, advance=1, description=name))
        rows = save(path, measured)
    draw(rows, path.with_suffix(".png"))
    made = tables(rows)
    if chosen.out == DATA:
        publish(made)
    for name, table in made.items():
        print(f"{name}\n\n{table}")


if __name__ == "__main__":
    main()
