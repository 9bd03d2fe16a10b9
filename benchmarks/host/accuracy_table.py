"""Accuracy at equal bytes: every technique, rule and linear baseline on the demo's stream, within so much RAM.

    python -m benchmarks.host.accuracy_table [--only NAME …] [-o docs] [--quick]

The bike rentals of the demo: each hour is predicted, then learned, so a label comes one hour late.  For each budget of
bytes a predictor gets the largest N_max (or number of random features) with which its whole struct, working memory
included, fits.  Its other settings are those of a small fixed grid with the least mean absolute error over the first
quarter of the year; the table shows the error over the second half, which had no part in the choice.  A predictor with
several things to set has a larger grid: "tried" says how large.

Writes accuracy.csv and accuracy.png to the output folder and the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, load, markdown, merged, progress_bar, publish, save
from pykernel.algorithms.online.klms import KLMS
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.errors import UserError
from pykernel.files import whole_file
from pykernel.host.bikeshare import DAY, bikeshare, lagged, mean_error
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.tuning.costs import memory_bytes

Status = KLMS["real"].status

KILOBYTES = (1, 2, 4, 8, 16)
MOST, MOST_WAVES = 1024, 256
"""Largest N_max and number of features, and number of waves that is looked at."""

SIGMAS = (0.35, 0.5, 0.7, 1.0, 1.5, 2.2)
WIDE = (1.0, 1.5, 2.2, 3.3)
ETAS = (0.2, 0.4, 0.6, 0.8)
FORGETTING = (1.0, 0.9995, 0.998, 0.99)

# keys of the spec, as section.key
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Predictor:
    """What every spec of it has, and the values that are tried; size: the key that the bytes decide.

    default: the spec names no rule; the default is what fits the bytes.
    """

    fixed: Settings
    grid: Mapping[str, Sequence[Any]]
    size: str | None = "reduction.n_max"
    default: bool = False


def gradient(rule: str = "klms", **reduction: Any) -> Predictor:
    fixed = {"learning.rule": rule} | {f"reduction.{key}": value for key, value in reduction.items()}
    return Predictor(fixed, {"kernel.sigma": SIGMAS, "learning.eta": ETAS})


def recursive(rule: str, technique: str, grid: Mapping[str, Sequence[Any]]) -> Predictor:
    fixed = {"learning.rule": rule, "reduction.technique": technique}
    return Predictor(fixed, {"kernel.sigma": WIDE} | grid)


KRLST = {"learning.noise": (0.03, 0.1, 0.3), "learning.forgetting": FORGETTING}
PREDICTORS: dict[str, Predictor] = {
    **{technique: gradient(technique=technique) for technique in TECHNIQUES},
    **{f"qklms, {technique}": gradient("qklms", technique=technique) for technique in ("nt", "fklms", "mklms")},
    **{f"krls-t, {technique}": recursive("krls-t", technique, KRLST) for technique in ("sup", "mklms")},
    "fb-krls, sup": recursive("fb-krls", "sup", {"reduction.ridge": (1e-2, 3e-2, 0.1, 0.3)}),
    "sw-krls": Predictor(
        {"learning.rule": "sw-krls"}, {"kernel.sigma": WIDE, "reduction.ridge": (1e-3, 1e-2, 3e-2, 0.1, 0.3)}
    ),
    "ald-krls": Predictor(
        {"learning.rule": "ald-krls"},
        {"kernel.sigma": WIDE, "reduction.ald_threshold": (0.002, 0.02, 0.1, 0.3, 0.6)},
    ),
    "knlms": Predictor(
        {"learning.rule": "knlms"},
        {"kernel.sigma": SIGMAS, "learning.eta": (0.05, 0.1, 0.2, 0.4), "learning.coherence": (0.5, 0.8, 0.95)},
    ),
    "spectrum-nlms": Predictor(
        {"learning.rule": "spectrum-nlms"},
        {"kernel.sigma": WIDE, "learning.eta": (0.2, 0.4, 0.6, 0.9)},
        "learning.features",
    ),
    "spectrum-ekf": Predictor(
        {"learning.rule": "spectrum-ekf"},
        {"kernel.sigma": WIDE, "learning.noise": (0.03, 0.1, 0.3), "learning.forgetting": FORGETTING[1:]},
        "learning.features",
    ),
    "no rule": Predictor({}, {}, None, default=True),
    "nlms": Predictor({"learning.rule": "nlms"}, {"learning.eta": (0.01, 0.03, 0.1, 0.3, 1.0)}, None),
    "rls": Predictor({"learning.rule": "rls"}, {"learning.forgetting": (*FORGETTING, 0.98)}, None),
    "quadratic-rls": Predictor({"learning.rule": "quadratic-rls"}, {"learning.forgetting": FORGETTING}, None),
    "rff-rls": Predictor(
        {"learning.rule": "rff-rls"},
        {"kernel.sigma": (1.5, 2.2, 3.3, 5.0), "learning.forgetting": FORGETTING},
        "learning.features",
    ),
}
DIVERGED = 200.0
"""Errors that the figure leaves out; the mean error of predicting 0 is about so much."""
LINEAR = ("nlms", "rls", "quadratic-rls", "rff-rls")
COLUMNS = ("predictor", "budget", "n", "ram_bytes", "state_bytes", "settings", "tried", "tuned_on", "error", "refused")


def spec_of(settings: Settings) -> Spec:
    content: dict[str, Any] = {
        "name": "demo",
        "input": {"dim": 8, "max_abs": 10.0},
        "label": {"max_abs": 10_000.0},
    }
    for key, value in settings.items():
        section, name = key.split(".")
        content.setdefault(section, {})[name] = value
    return make_spec(content)


def trials(predictor: Predictor, n: int | None) -> Iterator[dict[str, Any]]:
    """Settings of each point of the grid."""
    for values in product(*predictor.grid.values()):
        chosen = dict(zip(predictor.grid, values, strict=True))
        yield {**predictor.fixed, **chosen, **({predictor.size: n} if predictor.size else {})}


def ram(predictor: Predictor, n: int | None) -> int:
    """The most bytes that any point of the grid takes: forgetting may need a field that 1 does without."""
    points = list(trials(predictor, n))
    return max(memory_bytes(spec_of(settings))["ram_bytes"] for settings in (points[0], points[-1]))


def largest(predictor: Predictor, most_bytes: int) -> int | None:
    """The largest size that fits, 0 where the size is not free; None where nothing fits."""
    if predictor.size is None:
        return 0 if ram(predictor, None) <= most_bytes else None
    waves = str(predictor.fixed.get("learning.rule")).startswith("spectrum")
    low, high = 2, (MOST_WAVES if waves else MOST) + 1  # of these the first fits, the second does not
    if ram(predictor, low) > most_bytes:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if ram(predictor, middle) <= most_bytes:
            low = middle
        else:
            high = middle
    return low


def tuned(predictor: Predictor, n: int, x: np.ndarray, y: np.ndarray, thin: int = 1) -> tuple[Spec, Settings, float]:
    """The best of every ``thin``-th point of the grid over the first quarter: its spec, its settings, its error there."""
    quarter = len(y) // 4
    best: tuple[float, Spec, Settings] | None = None
    for settings in list(trials(predictor, n or None))[::thin]:
        spec = spec_of(settings)
        forecasts = HostModel(spec).prequential(x[:quarter], y[:quarter])[0]
        error = float(np.abs(forecasts - y[:quarter]).mean())
        if best is None or error < best[0]:
            best = error, spec, {key: settings[key] for key in predictor.grid}
    assert best is not None and memory_bytes(best[1])["ram_bytes"] <= ram(predictor, n or None)
    return best[1], best[2], best[0]


def row(name: str, budget: int, x: np.ndarray, y: np.ndarray, thin: int = 1) -> dict[str, Any]:
    """What a predictor reaches within a budget of bytes; blank where it does not fit."""
    predictor = PREDICTORS[name]
    if predictor.default:
        predictor = replace(predictor, fixed={"target.ram": budget})
    made: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"predictor": name, "budget": budget}
    n = largest(predictor, budget)
    if n is None:
        return made
    spec, settings, error = tuned(predictor, n, x, y, thin)
    forecasts, statuses = HostModel(spec).prequential(x, y)
    return (
        made
        | memory_bytes(spec)
        | {
            "n": n or "",
            "settings": ", ".join(f"{key.split('.')[1]} {value:g}" for key, value in settings.items()),
            "tried": len(list(trials(predictor, None))[::thin]),
            "tuned_on": f"{error:.2f}",
            "error": f"{mean_error(forecasts, y):.2f}",
            "refused": int(np.sum(statuses == Status.REFUSED_MULTIPLIER)),
        }
    )


def measure(
    names: Sequence[str], budgets: Sequence[int], x: np.ndarray, y: np.ndarray, tick: Callable[[], None], thin: int = 1
) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        for budget in budgets:
            try:
                made = row(name, budget, x, y, thin)
            except UserError as refused:
                print(f"{name}: {refused}", file=sys.stderr)
                made = {}
            tick()
            if made:
                rows.append({key: made[key] for key in COLUMNS})
    return rows


def tables(rows: Rows) -> dict[str, str]:
    """Error of each predictor at each budget, with its size; the best of a column in bold."""
    budgets = sorted({int(row["budget"]) for row in rows})
    found: dict[str, dict[int, Mapping[str, str]]] = {}
    for one in rows:
        found.setdefault(one["predictor"], {})[int(one["budget"])] = one
    best = {
        budget: min(float(there[budget]["error"]) for there in found.values() if there[budget]["error"])
        for budget in budgets
    }
    lines = []
    for name, there in found.items():
        line = [name]
        for budget in budgets:
            one = there[budget]
            cell = "–"
            if one["error"]:
                cell = f"{float(one['error']):.1f}"
                cell = f"**{cell}**" if float(one["error"]) == best[budget] else cell
                cell += f" ({one['n']})" if one["n"] else ""
                cell += " †" if int(one["refused"]) else ""
            line.append(cell)
        fitting = [one for one in there.values() if one["error"]]
        lines.append([*line, fitting[0]["tried"] if fitting else "", fitting[-1]["settings"] if fitting else ""])
    heads = ["predictor", *(f"{budget:,} B" for budget in budgets), "tried", "settings with the most bytes"]
    return {"accuracy": markdown(heads, lines)}


def draw(rows: Rows, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    _, y, _ = bikeshare()
    curves: dict[str, list[tuple[float, float]]] = {}
    for one in rows:
        if one["error"] and float(one["error"]) < DIVERGED:
            curves.setdefault(one["predictor"], []).append((float(one["ram_bytes"]), float(one["error"])))
    figure = Figure(figsize=(11, 5.6), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2, sharey=True, sharex=True)
    level = mean_error(lagged(y, DAY), y)
    groups = {
        "Techniques, with the paper's rule": [name for name in curves if name in TECHNIQUES],
        "Other rules, and linear models": [name for name in curves if name not in TECHNIQUES],
    }
    every = sorted(point for points in curves.values() for point in points)
    lowest = np.minimum.accumulate([error for _, error in every])
    colours = ("#0072B2", "#D55E00", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#222222")
    for axes, (title, names) in zip(panels, groups.items(), strict=True):
        for i, name in enumerate(names):
            # what does not depend on the budget is one point
            points = sorted(set(curves[name]))
            style = {"color": colours[i % len(colours)], "marker": "os^"[i // len(colours)], "ms": 4, "lw": 1.3}
            axes.plot(*zip(*points, strict=True), ":" if name in LINEAR else "-", label=name, **style)
        axes.step([cost for cost, _ in every], lowest, where="post", color="#bbbbbb", linewidth=4, zorder=1)
        axes.axhline(level, color="#999999", linewidth=0.8)
        axes.annotate("same hour yesterday", (0.01, level), xycoords=("axes fraction", "data"), va="bottom", fontsize=8)
        axes.set_xscale("log", base=2)
        axes.set_ylim(25, 1.4 * level)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("bytes of RAM, working memory included")
        axes.set_title(title, loc="left", fontsize=11, fontweight="bold")
        axes.grid(color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower left", fontsize=7.5, ncols=2, framealpha=0.9)
    panels[0].set_ylabel("mean absolute error, second half (rentals per hour)")
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, default=DATA)
    parser.add_argument("--quick", action="store_true", help="three predictors, few settings, one month: does it work?")
    parser.add_argument("--only", nargs="+", choices=tuple(PREDICTORS), metavar="NAME", help="keep the others' rows")
    parser.add_argument("--show", action="store_true", help="learn nothing: table and figure from the CSV file")
    chosen = parser.parse_args(words)
    path = chosen.out / "accuracy.csv"
    if chosen.show:
        rows = load(path)
    else:
        x, y, _ = bikeshare()
        names, budgets, thin = chosen.only or tuple(PREDICTORS), tuple(1024 * k for k in KILOBYTES), 1
        if chosen.quick:
            names, budgets, thin = ("nt", "mklms", "rls"), (512, 1024), 7
            x, y = x[: 30 * DAY], y[: 30 * DAY]
        with progress_bar() as bar:
            task = bar.add_task("learning", total=len(names) * len(budgets))
            made = measure(names, budgets, x, y, lambda: bar.advance(task), thin)
        rows = save(path, merged(path, made, "predictor", names, tuple(PREDICTORS)))
    draw(rows, path.with_suffix(".png"))
    made = tables(rows)
    if chosen.out == DATA:
        publish(made)
    print("\n".join(made.values()))


if __name__ == "__main__":
    main()
