"""Pictures of the guide: the way of a row through a model, what a budget does, what a plan promises.

    python -m benchmarks.host.pictures    # docs/data/pictures

row       the functions that an update calls, in the order in which the plain Python engine calls them.
budget    one removal from a full budget of a model that learned a sine: the remaining vectors as they are, and with the projection.
promises  docs/data/plan-promises.csv.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch
from matplotlib.style import context

from benchmarks.tables import DATA, load
from pykernel.files import whole_file
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

OUT = DATA / "pictures"
BLUE, RED, GREY = "#0072b2", "#d55e00", "#666666"
STEPS = {
    "complete": ("[input] missing", "fill in a missing value"),
    "refusal": ("limits", "refuse what is not finite or beyond max_abs: nothing changes"),
    "see": ("[input] standardise", "subtract the mean, divide by the standard deviation"),
    "remain": ("[label] center, [linear]", "subtract the mean and the linear part from the label"),
    "hear": ("[label] clip", "clip the label, then compute the residual y - f(x)"),
    "insert": ("[reduction] n_max", "store the input as a vector"),
    "choose": ("[reduction] technique", "if the budget is full: choose the vector that is missed least"),
    "project": ("projection", "the other vectors make up for it"),
    "assimilate": ("[learning] rule", "learn: change the weights"),
    "judge_interval": ("[interval]", "compare the label with the interval"),
    "conclude": ("[label] gain, [linear]", "mean, gain and linear part learn"),
    "settle_inputs": ("[input] standardise", "mean and standard deviation learn"),
}
"""Functions of pykernel.algorithms -> the key that asks for them, and what they do."""


def row(path: Path) -> None:
    content = {
        "input": {"columns": ["a", "b"], "missing": "hold", "standardise": True},
        "label": {"column": "y", "center": True, "gain": True, "clip": 3.0},
        **{"linear": {}, "interval": {}, "kernel": {"sigma": 1.0}},
        **{"learning": {"rule": "krls-t"}, "reduction": {"n_max": 4}},
    }
    model, rng = HostModel(make_spec({"name": "m", **content}), engine="python"), np.random.default_rng(0)
    x, called = rng.normal(size=(50, 2)), dict[str, None]()
    model.update(x, np.sin(x[:, 0]))

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name in STEPS:
            called[frame.f_code.co_name] = None

    sys.setprofile(look)
    model.update(np.array([[0.5, np.nan]]), np.array([0.4]))
    sys.setprofile(None)
    if missing := STEPS.keys() - called.keys():
        raise RuntimeError(f"an update calls no {missing}")
    figure, axes = canvas(7.6, 0.46 * len(called) + 0.6)
    axes.axis("off")
    axes.set(xlim=(0, 10), ylim=(-len(called) + 0.4, 1.1))
    axes.text(1.7, 0.75, "a row and its label", ha="center", color=GREY)
    for i, name in enumerate(called):
        key, does = STEPS[name]
        axes.add_patch(FancyBboxPatch((0.1, -i - 0.3), 3.2, 0.6, boxstyle="round,pad=0.04", fc="#e8f1f8", ec=BLUE))
        axes.annotate("", (1.7, -i + 0.34), (1.7, -i + 0.66), arrowprops={"arrowstyle": "->", "color": GREY})
        axes.text(1.7, -i, key, ha="center", va="center", family="monospace", fontsize=8)
        axes.text(3.6, -i, does, va="center", fontsize=9)
    store(figure, path)


def budget(path: Path) -> None:
    spec = make_spec(
        {
            **{"name": "m", "precision": "float64", "input": {"dim": 1}, "kernel": {"sigma": 0.8}},
            **{"learning": {"rule": "klms", "eta": 0.5}, "reduction": {"n_max": 8}},
        }
    )
    model, rng = HostModel(spec), np.random.default_rng(1)
    x = rng.uniform(-3, 3, (200, 1))
    model.update(x, np.sin(1.5 * x[:, 0]))
    vectors, weights = (np.array(model.memory.field(name)) for name in ("v", "alpha"))
    vectors, weights = vectors.reshape(-1)[:8], weights.reshape(-1)[:8]

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return np.exp(-((a[:, None] - b) ** 2) / (2 * 0.8**2))

    grid = np.linspace(-3.5, 3.5, 300)
    removed = int(np.argsort(np.abs(weights))[2])
    kept = np.arange(8) != removed
    beta = np.linalg.solve(
        kernel(vectors[kept], vectors[kept]) + 1e-3 * np.eye(7), kernel(vectors[kept], vectors[[removed]])[:, 0]
    )
    figure, axes = canvas(7.6, 3)
    axes.plot(grid, kernel(grid, vectors) @ weights, color=GREY, lw=4, alpha=0.4, label="before: 8 vectors")
    axes.plot(
        grid, kernel(grid, vectors[kept]) @ weights[kept], "--", color=RED, label="one removed, the others as they were"
    )
    made_up = weights[kept] + beta * weights[removed]
    axes.plot(grid, kernel(grid, vectors[kept]) @ made_up, color=BLUE, label="one removed, the others make up for it")
    axes.plot(vectors[kept], np.zeros(7), "^", color=GREY)
    axes.plot(vectors[[removed]], [0], "x", color=RED, ms=9, mew=2)
    axes.set(xlabel="input; triangles: stored vectors, cross: the removed one", ylabel="f(x)")
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncol=3)
    store(figure, path)


def promises(path: Path) -> None:
    rows = sorted(load(DATA / "plan-promises.csv"), key=lambda row: float(row["truth"]) / float(row["promised"]))
    figure, axes = canvas(7.6, 3)
    for i, each in enumerate(rows):
        promised, within, truth = (float(each[key]) for key in ("promised", "within", "truth"))
        colour = BLUE if each["holds"] == "yes" else RED
        axes.plot([i, i], [max(0, 1 - within / promised), 1 + within / promised], color=colour, lw=5, alpha=0.3)
        axes.plot(i, truth / promised, "o", color=colour, ms=4)
    axes.axhline(1, color=GREY, lw=0.8)
    axes.set(
        ylabel="error on later rows / promised error", xticks=[], xlabel="plans; bars: the promised range; red: outside"
    )
    store(figure, path)


def canvas(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def store(figure: Figure, path: Path) -> None:
    with context({"svg.hashsalt": "pykernel", "svg.fonttype": "none"}), whole_file(path) as file:
        figure.savefig(file, format="svg", metadata={"Date": None})


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    OUT.mkdir(exist_ok=True)
    for draw in (row, budget, promises):
        draw(OUT / f"{draw.__name__}.svg")


if __name__ == "__main__":
    main()
