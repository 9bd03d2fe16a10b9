"""The figures of ``paper_003.py``: 1 to 8 are those of the report, the others show what it leaves open.

Figures 1 to 4 and 7 are computed here, from single models; the others draw the tables.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, ScalarFormatter

import benchmarks.papers.paper_003_tasks as tasks
from pykernel.files import whole_file
from pykernel.host.model import HostModel

Rows = Sequence[Mapping[str, str]]

# Okabe and Ito's palette; dashes and markers tell apart what shares a colour
STYLES: dict[str, dict[str, Any]] = {
    "klms": {"color": "#0072B2", "marker": "o"},
    "mklms": {"color": "#D55E00", "marker": "s"},
    "ls": {"color": "#009E73", "marker": "^"},
    "lsreg": {"color": "#009E73", "marker": "v", "linestyle": "--"},
    "lsridge": {"color": "#009E73", "marker": "<", "linestyle": ":"},
    "sup": {"color": "#CC79A7", "marker": "P"},
    "fklms": {"color": "#56B4E9", "marker": "D"},
    "fmklms": {"color": "#E69F00", "marker": "d"},
    "afklms": {"color": "#56B4E9", "marker": "x", "linestyle": "--"},
    "afmklms": {"color": "#E69F00", "marker": "+", "linestyle": "--"},
    "nt": {"color": "#777777", "marker": "."},
    "at": {"color": "#777777", "marker": "1", "linestyle": "--"},
}
TRUTH, REMOVED = "#222222", "#D55E00"


def label(name: str) -> str:
    return {"lsreg": "LSreg", "lsridge": "LSridge"}.get(name, name.upper() if name in STYLES else name)


def style(name: str) -> dict[str, Any]:
    return {"markersize": 4, "linewidth": 1.4, **STYLES[name]}


def canvas(width: float, height: float, *shape: int, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained", dpi=120)
    FigureCanvasAgg(figure)
    axes = figure.subplots(*(shape or (1, 1)), squeeze=False, **options)
    for one in axes.flat:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(color="#dddddd", linewidth=0.6)
        one.set_axisbelow(True)
    return figure, axes[0, 0] if not shape else axes[0] if shape[0] == 1 else axes


def save(figure: Figure, path: Path) -> None:
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def select(rows: Rows, **wanted: str) -> list[Mapping[str, str]]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def curve(rows: Rows, method: str, **wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """Budgets and mean squared errors of a method; NaN where half of the realisations or more diverged."""
    chosen = sorted(select(rows, method=method, **wanted), key=lambda row: int(row["n_max"]))
    n = np.array([int(row["n_max"]) for row in chosen])
    mse = [float(row["mse_mean"]) if 2 * int(row["diverged"]) < int(row["realisations"]) else np.nan for row in chosen]
    return n, np.array(mse)


def reference(rows: Rows) -> float:
    (row,) = select(rows, experiment="reference", method="none removed", parameter=f"sigma {tasks.SIGMA}")
    return float(row["mse_mean"])


# ------------------------------------------------------------------------------------------- the report's figures


@functools.cache
def truncation_example() -> dict[str, np.ndarray]:
    """100 noisy samples learned with decay: ages and |multipliers|, and the ages of what truncation leaves."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (100, 1))
    y = np.sinc(x[:, 0]) + rng.normal(size=100)
    held = {}
    for name, reduction in (("all", {}), ("below", {"truncate_below": 0.1}), ("age", {"truncate_age": 35})):
        learning = {"rho": 0.1}
        model = HostModel(tasks.spec_of({"technique": "nt", "n_max": 100, **reduction}, learning, eta=0.5))
        model.update(x, y)
        vectors, multipliers = tasks.expansion(model)
        age = 99 - np.array([np.flatnonzero(x[:, 0] == v)[0] for v in vectors])
        order = np.argsort(age)
        held[f"{name} age"], held[f"{name} size"] = age[order], np.abs(multipliers)[order]
    return held


def figure_1(rows: Rows, costs: Rows, output: Path) -> None:
    held = truncation_example()
    age, size = held["all age"], held["all size"]
    figure, (left, right) = canvas(9, 3.8, 1, 2, width_ratios=(3, 2))
    kinds = {
        "neither": ((age <= 35) & (size >= 0.1), STYLES["klms"]["color"], "o"),
        "old only": ((age > 35) & (size >= 0.1), STYLES["fmklms"]["color"], "^"),
        "small only": ((age <= 35) & (size < 0.1), STYLES["sup"]["color"], "v"),
        "old and small": ((age > 35) & (size < 0.1), STYLES["nt"]["color"], "x"),
    }
    for name, (chosen, colour, marker) in kinds.items():
        left.plot(age[chosen], size[chosen], marker, color=colour, markersize=5, label=f"{name} ({chosen.sum()})")
    left.axvline(35.5, color=TRUTH, linewidth=0.8, linestyle="--")
    left.axhline(0.1, color=TRUTH, linewidth=0.8, linestyle="--")
    left.set(xlabel="age (presentations)", ylabel="|multiplier|", title="Fig. 1: what truncation would drop")
    left.legend(frameon=False)
    for height, (name, text) in enumerate((("below", "truncate_below = 0.1"), ("age", "truncate_age = 35"))):
        right.plot(held[f"{name} age"], np.full(len(held[f"{name} age"]), height), "|", color=TRUTH, markersize=16)
        right.annotate(text, (0, height + 0.22))
    right.set(xlabel="age of the vectors held", yticks=[], ylim=(-0.5, 1.6), title="what it leaves")
    save(figure, output / "figure-1.png")


@functools.cache
def projections(sigma: float) -> dict[str, dict[str, Any]]:
    """Five vectors at -2 … 2 with multipliers 1, the fourth of which goes: what each projection makes of the rest."""
    vectors, multipliers = np.arange(-2.0, 3.0), np.ones(5)
    results: dict[str, dict[str, Any]] = {}
    for technique in ("klms", "ls", "fklms"):
        whole, reduced = tasks.one_removal(technique, vectors, multipliers, 3, sigma)
        grid = np.linspace(-5, 5, 1001)
        lost = whole.predict(grid[:, None]) - reduced.predict(grid[:, None])
        at_centres = whole.predict(vectors[:, None]) - reduced.predict(vectors[:, None])
        kept, beta = tasks.expansion(reduced)
        change = multipliers.copy()
        change[[int(v + 2) for v in kept]] -= beta
        gram = np.exp(-((vectors[:, None] - vectors) ** 2) / (2 * sigma**2))
        results[technique] = {
            "beta": beta[np.argsort(kept)],
            "largest": float(np.abs(lost).max()),
            "rms": float(np.sqrt(np.mean(at_centres**2))),
            "norm": float(change @ gram @ change),
            "grid": grid,
            "whole": whole.predict(grid[:, None]),
            "reduced": reduced.predict(grid[:, None]),
            "centres": whole.predict(vectors[:, None]),
        }
    return results


def projection_figure(name: str, sigma: float, coupling: str, output: Path) -> None:
    figure, axes = canvas(10, 3.4, 1, 3, sharey=True)
    for axis, (technique, result) in zip(axes, projections(sigma).items(), strict=True):
        axis.plot(result["grid"], result["whole"], color=TRUTH, linewidth=1.2, label="five vectors")
        axis.plot(result["grid"], result["reduced"], color=STYLES[technique]["color"], linewidth=1.8, linestyle="--")
        axis.plot(np.arange(-2, 3), result["centres"], "x", color=TRUTH, label="expansion vectors")
        axis.plot([1], result["centres"][3:4], "s", color=REMOVED, fillstyle="none", markersize=9, label="removed")
        axis.set(xlabel="x", xlim=(-4, 4), title=f"{label(technique)}: error at most {result['largest']:.3f}")
    axes[0].set_ylabel("f(x)")
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(f"Fig. {name}: one removal, {coupling} coupling (σ = {sigma})", fontsize=11)
    save(figure, output / f"figure-{name}.png")


def figure_2(rows: Rows, costs: Rows, output: Path) -> None:
    projection_figure("2", 0.9, "strong", output)


def figure_3(rows: Rows, costs: Rows, output: Path) -> None:
    projection_figure("3", 0.5, "moderate", output)


def figure_4(rows: Rows, costs: Rows, output: Path) -> None:
    model = tasks.trained({"technique": "fklms", "n_max": 10, "when": "before"})
    vectors, multipliers = tasks.expansion(model)
    figure, axis = canvas(7, 3.8)
    axis.plot(tasks.GRID, np.sinc(tasks.GRID), ":", color=TRUTH, label="sinc")
    axis.plot(tasks.GRID, model.predict(tasks.GRID[:, None]), color=STYLES["fklms"]["color"], label="FKLMS, 10 vectors")
    axis.plot(vectors, multipliers, "o", color=STYLES["mklms"]["color"], fillstyle="none", label="vectors, multipliers")
    gaps = np.diff(np.sort(vectors))
    axis.set(xlabel="x", ylabel="f(x), multiplier")
    axis.set_title(f"Fig. 4: FKLMS, neighbours {gaps.min():.2f} to {gaps.max():.2f} apart", fontsize=11)
    axis.legend(frameon=False)
    save(figure, output / "figure-4.png")


COST_TECHNIQUES = ("nt", "fklms", "fmklms", "afklms", "klms", "mklms", "sup", "lsridge", "ls", "lsreg")


def exponent(costs: Rows, technique: str, task: str, least: int) -> float:
    """Slope on log-log axes, from that budget on."""
    points = [
        (int(row["n_max"]), float(row["instructions"]))
        for row in select(costs, technique=technique, task=task)
        if int(row["n_max"]) >= least
    ]
    n, cost = np.array(points).T
    return float(np.polyfit(np.log(n), np.log(cost), 1)[0])


def figure_5(rows: Rows, costs: Rows, output: Path) -> None:
    figure, (left, right) = canvas(10, 4.2, 1, 2)
    for task, axis in (("sinc", left), ("noise", right)):
        for technique in COST_TECHNIQUES:
            chosen = select(costs, technique=technique, task=task)
            if chosen:
                n = [int(row["n_max"]) for row in chosen]
                text = label(technique)
                if task == "noise":
                    text += f"  N^{exponent(costs, technique, 'noise', 64):.1f}"
                axis.plot(n, [float(row["instructions"]) for row in chosen], **style(technique), label=text)
    left.set(xlabel="budget N", ylabel="instructions per presentation (Cortex-M7)", title="Fig. 5: the report's task")
    left.set_ylim(bottom=0)
    left.xaxis.set_major_locator(MaxNLocator(integer=True))
    right.set(xscale="log", yscale="log", xlabel="budget N", title="vectors apart, larger budgets (slope from 64 on)")
    right.set_xticks([32, 64, 128, 256], labels=["32", "64", "128", "256"], minor=False)
    right.set_xticks([], minor=True)
    right.yaxis.set_major_formatter(ScalarFormatter())
    left.legend(frameon=False, fontsize=8, ncols=2)
    right.legend(frameon=False, fontsize=7, ncols=2, loc="upper left")
    right.set_ylim(top=1e8)
    save(figure, output / "figure-5.png")


def budget_figure(
    title: str, rows: Rows, methods: Sequence[str], path: Path, when: str = "before", **more: tuple[Any, Any]
) -> None:
    figure, axis = canvas(7.5, 4.4)
    for method in methods:
        n, mse = curve(rows, method, experiment="budget", settings="report", when=when)
        if len(n):
            axis.plot(n, mse, **style(method), label=label(method))
    for name, (x, y) in more.items():
        axis.plot(x, y, color=TRUTH, linestyle=":", linewidth=1.2, label=name)
    axis.axhline(reference(rows), color=TRUTH, linewidth=1, linestyle="--", label="reference: none removed")
    axis.set(yscale="log", xlabel="budget N", ylabel="mean squared error, mean of realisations", title=title)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(frameon=False, fontsize=8, loc="upper right")
    save(figure, path)


def figure_6(rows: Rows, costs: Rows, output: Path) -> None:
    budget_figure(
        "Fig. 6: accuracy against budget", rows, ("klms", "mklms", "ls", "fklms", "fmklms"), output / "figure-6.png"
    )


@functools.cache
def edge_removal() -> dict[str, dict[str, Any]]:
    """Sixteen vectors, evenly spaced, and one more that hardly any of them reaches, which is made to go."""
    vectors = np.append(np.linspace(-3, 1.5, 16), 3.0)
    multipliers = np.sinc(vectors)
    multipliers[-1] = 0.5
    results: dict[str, dict[str, Any]] = {}
    for technique in ("ls", "lsridge", "klms"):
        whole, reduced = tasks.one_removal(technique, vectors, multipliers, 16, 0.5)
        kept, beta = tasks.expansion(reduced)
        results[technique] = {
            "vectors": kept,
            "largest": float(np.abs(beta).max()),
            "whole": whole.predict(tasks.GRID[:, None]),
            "reduced": reduced.predict(tasks.GRID[:, None]),
            "at": whole.predict(vectors[:, None]),
            "all": vectors,
        }
        chooser = HostModel(tasks.spec_of({"technique": technique, "n_max": 16}, sigma=0.5, eta=0.5))
        tasks.present(chooser, vectors, multipliers)
        left, beta = tasks.expansion(chooser)
        results[technique] |= {
            "choice": float(*set(vectors) - set(left)),
            "largest_if_chosen": float(np.abs(beta).max()),
        }
    return results


def figure_7(rows: Rows, costs: Rows, output: Path) -> None:
    figure, axes = canvas(10, 3.6, 1, 3, sharey=True)
    for axis, (technique, result) in zip(axes, edge_removal().items(), strict=True):
        axis.plot(tasks.GRID, result["whole"], color=TRUTH, linewidth=1.2, label="17 vectors")
        axis.plot(tasks.GRID, result["reduced"], color=STYLES[technique]["color"], linestyle="--", linewidth=1.8)
        axis.plot(result["all"][:-1], result["at"][:-1], "o", color=TRUTH, fillstyle="none", markersize=4, label="kept")
        axis.plot(result["all"][-1:], result["at"][-1:], "s", color=REMOVED, fillstyle="none", label="removed")
        axis.set(xlabel="x", title=f"{label(technique)}: |multiplier| up to {result['largest']:,.1f}")
        axis.set_ylim(1.5 * result["whole"].min() - 1, 1.5 * result["whole"].max() + 1)
    axes[0].set_ylabel("f(x)")
    axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle("Fig. 7: a vector at the edge is made to go", fontsize=11)
    save(figure, output / "figure-7.png")


def figure_8(rows: Rows, costs: Rows, output: Path) -> None:
    budget_figure(
        "Fig. 8: LS with a penalty on multipliers",
        rows,
        ("mklms", "ls", "lsreg", "lsridge"),
        output / "figure-8.png",
        **{"LSreg, nothing absorbed (rounding)": curve(rows, "lsreg", experiment="gate")},
    )


# ---------------------------------------------------------------------------------------------------- beyond the report


@functools.cache
def equispaced_floor(n: int) -> float:
    """Least mean squared error of a model with n vectors evenly spaced from -3 to 3."""
    centres = np.linspace(-3, 3, n)
    basis = np.exp(-((tasks.GRID[:, None] - centres) ** 2) / (2 * tasks.SIGMA**2))
    weights = np.linalg.lstsq(basis, np.sinc(tasks.GRID), rcond=None)[0]
    return float(np.mean((basis @ weights - np.sinc(tasks.GRID)) ** 2))


def figure_9(rows: Rows, costs: Rows, output: Path) -> None:
    n = np.arange(4, 13)
    floor = {"least squares, N evenly spaced": (n, np.array([equispaced_floor(k) for k in n]))}
    budget_figure(
        "Few vectors: KLMS is as good as evenly spaced vectors can be",
        rows,
        ("klms", "mklms", "sup", "fklms", "fmklms", "afklms", "nt"),
        output / "figure-9.png",
        "after",
        **floor,
    )


def figure_10(rows: Rows, costs: Rows, output: Path) -> None:
    figure, axis = canvas(7.5, 4.4)
    for method in ("klms", "mklms", "ls", "lsridge", "fklms", "fmklms"):
        for settings, line in (("report", "-"), ("defaults", ":")):
            n, mse = curve(rows, method, experiment="budget", settings=settings, when="after")
            name = label(method) if settings == "report" else None
            axis.plot(n, mse, **{**style(method), "linestyle": line, "markersize": 3}, label=name)
    axis.axhline(reference(rows), color=TRUTH, linewidth=1, linestyle="--", label="reference: none removed")
    axis.set(yscale="log", xlabel="budget N", ylabel="mean squared error, mean of realisations")
    axis.set_title("float64 as in the report (lines), float32 at the defaults (dotted)", fontsize=11)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(frameon=False, fontsize=9)
    save(figure, output / "figure-10.png")


def figure_11(rows: Rows, costs: Rows, output: Path) -> None:
    figure, axis = canvas(7.5, 4.4)
    for technique in ("klms", "mklms", "ls", "fklms", "fmklms"):
        for candidates, line in (("all", "-"), ("newest", ":")):
            chosen = [
                row
                for row in select(rows, experiment="lambda_max", method=technique)
                if row["parameter"].endswith(candidates) and 2 * int(row["diverged"]) < int(row["realisations"])
            ]
            held, mse = [float(row["vectors"]) for row in chosen], [float(row["mse_mean"]) for row in chosen]
            name = label(technique) if candidates == "all" else None
            axis.plot(held, mse, **{**style(technique), "linestyle": line}, label=name)
    axis.axhline(reference(rows), color=TRUTH, linewidth=1, linestyle="--", label="reference: none removed")
    axis.set(yscale="log", xlabel="vectors held at the end, mean", ylabel="mean squared error, mean of realisations")
    axis.set_title("Fixed lambda_max: all candidates (lines), the newest only (dotted)", fontsize=11)
    axis.legend(frameon=False, fontsize=9)
    save(figure, output / "figure-11.png")


def figure_12(rows: Rows, costs: Rows, output: Path) -> None:
    pairs = select(rows, experiment="pairs", settings="report", n_max="14")
    metrics = list(dict.fromkeys(row["method"].split(" + ")[0] for row in pairs))
    ways = list(dict.fromkeys(row["method"].split(" + ")[1] for row in pairs))
    values = np.full((len(metrics), len(ways)), np.nan)
    figure, axis = canvas(6.4, 5.6)
    for row in pairs:
        metric, way = row["method"].split(" + ")
        i, j = metrics.index(metric), ways.index(way)
        if int(row["diverged"]):
            axis.text(j, i, f"diverges\n{row['diverged']}/{row['realisations']}", ha="center", va="center", fontsize=8)
        else:
            values[i, j] = float(row["mse_mean"])
            axis.text(j, i, f"{values[i, j]:.1e}", ha="center", va="center", fontsize=8)
    image = axis.imshow(values, cmap="YlGnBu", norm=LogNorm(2e-5, 3e-1), aspect="auto", alpha=0.6)
    axis.set_xticks(range(len(ways)), labels=ways)
    axis.set_yticks(range(len(metrics)), labels=[label(name) for name in metrics])
    axis.grid(False)
    axis.set(xlabel="projection", ylabel="metric", title="Mean squared error of every pair, N = 14")
    figure.colorbar(image, ax=axis)
    save(figure, output / "figure-12.png")


BASELINES = {
    "klms, eta 0.3": {"color": "#0072B2", "marker": "o"},
    "mklms, eta 0.3": {"color": "#D55E00", "marker": "s"},
    "qklms, eta 0.1": {"color": "#56B4E9", "marker": "x", "linestyle": "--"},
    "qklms, eta 0.5": {"color": "#56B4E9", "marker": "D"},
    "ald-krls": {"color": "#E69F00", "marker": "d"},
    "ald-krls, 1 pass": {"color": "#E69F00", "marker": "+", "linestyle": "--"},
    "fb-krls": {"color": "#009E73", "marker": "^"},
    "krls-t": {"color": "#CC79A7", "marker": "P"},
}


def figure_13(rows: Rows, costs: Rows, output: Path) -> None:
    figure, axis = canvas(7.5, 4.6)
    for name, look in BASELINES.items():
        n, mse = curve(rows, name, experiment="baselines")
        if len(n):
            axis.plot(n, mse, **{"markersize": 4, "linewidth": 1.4, **look}, label=name)
    axis.axhline(reference(rows), color=TRUTH, linewidth=1, linestyle="--", label="reference, eta 0.1")
    axis.set(yscale="log", xlabel="budget N", ylabel="mean squared error, mean of realisations")
    axis.set_title("Other rules on the same data", fontsize=11)
    axis.legend(frameon=False, fontsize=9)
    save(figure, output / "figure-13.png")


FIGURES: dict[str, Callable[[Rows, Rows, Path], None]] = {
    str(i): draw
    for i, draw in enumerate(
        (
            figure_1,
            figure_2,
            figure_3,
            figure_4,
            figure_5,
            figure_6,
            figure_7,
            figure_8,
            figure_9,
            figure_10,
            figure_11,
            figure_12,
            figure_13,
        ),
        1,
    )
}
