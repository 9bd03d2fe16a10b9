"""The figures, and the tables and phrases of docs/paper-004.md, from the results of ``paper_004.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import benchmarks.papers.paper_004_tasks as tasks
from pykernel.files import whole_file

Rows = Sequence[Mapping[str, str]]
Results = Mapping[str, Rows]

FITTED_FROM = 100
"""Slopes are fitted to sizes from here on."""
SHOWN = (10, 30, 50, 100, 200, 500)
DIRECT, DIRECT_GRAM, DIRECT_PRODUCTS, CORRECTIONS, HAT, KEPT, EXACT, PATH, TRAINING, ESTIMATE = tasks.METHODS[:10]
FOLD_DIRECT, FOLD_CORRECTIONS, FOLD_CLOSED = tasks.METHODS[10:]

# Okabe and Ito's palette
LINES: dict[str, dict[str, Any]] = {
    DIRECT: {"color": "#D55E00", "marker": "o"},
    DIRECT_GRAM: {"color": "#D55E00", "marker": "s", "linestyle": "--"},
    DIRECT_PRODUCTS: {"color": "#D55E00", "marker": "^", "linestyle": ":"},
    CORRECTIONS: {"color": "#0072B2", "marker": "s", "linestyle": "--"},
    HAT: {"color": "#0072B2", "marker": "o"},
    EXACT: {"color": "#009E73", "marker": "o"},
    PATH: {"color": "#009E73", "marker": "s", "linestyle": "--"},
    TRAINING: {"color": "#777777", "marker": ".", "linestyle": ":"},
}
SETTINGS = {
    ("0.5", "0.01"): "#D55E00",
    ("0.5", "0.1"): "#E69F00",
    ("0.5", "1"): "#009E73",
    ("0.1", "1"): "#0072B2",
    ("2", "1"): "#CC79A7",
}


# --------------------------------------------------------------------------------------------------------- selecting


def select(rows: Rows, **wanted: str) -> list[Mapping[str, str]]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def one(rows: Rows, **wanted: str) -> Mapping[str, str]:
    (row,) = select(rows, **wanted)
    return row


def curve(rows: Rows, key: str, **wanted: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes, and a column's values, of the rows chosen."""
    chosen = sorted(select(rows, **wanted), key=lambda row: int(row["l"]))
    return np.array([int(row["l"]) for row in chosen]), np.array([float(row[key]) for row in chosen])


def errors(results: Results, key: str, gamma: str, ridge: str, experiment: str = "leave-one-out") -> dict[int, float]:
    l, values = curve(results["errors"], key, experiment=experiment, gamma=gamma, ridge=ridge)
    return dict(zip(l.tolist(), values.tolist(), strict=True))


def slope(results: Results, method: str) -> float:
    """Of log time over log l, least squares."""
    l, ms = curve(results["times"], "median_ms", method=method)
    fitted = l >= min(FITTED_FROM, l[-2])
    return float(np.polyfit(np.log(l[fitted]), np.log(ms[fitted]), 1)[0])


def timed(results: Results, method: str, l: int, key: str = "median_ms") -> float:
    return float(one(results["times"], method=method, l=f"{l}")[key])


def erratum(results: Results, entry: str, what: str = "right") -> float:
    return float(one(results["errata"], entry=entry, what=what)["value"])


# ----------------------------------------------------------------------------------------------------------- figures


def canvas(width: float, height: float, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained", dpi=120)
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, columns, squeeze=False, **options)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
        axis.set_xscale("log")
        axis.set_xlabel("training patterns l")
    return figure, axes


def finish(figure: Figure, axes: Sequence[Any], sizes: Iterable[int], path: Path) -> None:
    for axis in axes:
        axis.set_xticks([l for l in sizes if l in (*SHOWN, 20, 300)], minor=False)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
        axis.xaxis.set_minor_formatter(lambda *_: "")
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def figure_1(results: Results, path: Path) -> None:
    figure, (axis,) = canvas(7.5, 5)
    for name, style in LINES.items():
        l, ms = curve(results["times"], "median_ms", method=name)
        low, high = (curve(results["times"], key, method=name)[1] for key in ("low_ms", "high_ms"))
        text = f"{name} (slope {slope(results, name):.1f})"
        axis.plot(l, ms, markersize=4, linewidth=1.4, label=text, **style)
        axis.fill_between(l, low, high, color=style["color"], alpha=0.15, linewidth=0)
    axis.set_yscale("log")
    axis.set(ylabel="CPU time (ms)", title="Figure 1: run time of leave-one-out cross-validation")
    axis.legend(frameon=False, fontsize=8)
    finish(figure, [axis], l.tolist(), path)


def figure_2(results: Results, path: Path) -> None:
    figure, (left, right) = canvas(10, 4.4, 2)
    for (gamma, ridge), colour in SETTINGS.items():
        wanted = {"experiment": "leave-one-out", "gamma": gamma, "ridge": ridge}
        text = f"γ = {gamma}, μ = {ridge}"
        l, mean = curve(results["errors"], "e_mean", **wanted)
        low, high = (curve(results["errors"], key, **wanted)[1] for key in ("e_low", "e_high"))
        left.plot(l, mean, "o-", color=colour, markersize=4, linewidth=1.6, label=text)
        left.fill_between(l, low, high, color=colour, alpha=0.12, linewidth=0)
        right.plot(*curve(results["errors"], "exact_max", **wanted), "o-", color=colour, markersize=4, label=text)
    for axis in (left, right):
        axis.set_yscale("log")
    left.set(ylabel="relative error e", title="Figure 2: the paper's estimate\n(mean; band: middle half of the trials)")
    right.set(title="The exact closed form\n(largest of the trials)")
    left.legend(frameon=False, fontsize=8)
    finish(figure, [left, right], l.tolist(), path)


def figure_3(results: Results, path: Path) -> None:
    figure, axes = canvas(12, 3.6, 3, sharey=True)
    for axis, (gamma, ridge) in zip(axes, (("0.5", "0.01"), ("0.5", "1"), ("0.1", "1")), strict=True):
        wanted = {"experiment": "leave-one-out", "gamma": gamma, "ridge": ridge}
        for key, text, style in (
            ("rate_recoded", "retraining, and the exact closed form", {"color": "#222222", "linewidth": 2.6}),
            ("rate_kept", "the paper's estimate", {"color": "#D55E00", "linewidth": 1.4, "marker": "o"}),
        ):
            l, rate = curve(results["errors"], key, **wanted)
            axis.plot(l, rate, label=text, markersize=4, **style)
        axis.set_title(f"γ = {gamma}, μ = {ridge}")
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("leave-one-out error rate")
    axes[0].legend(frameon=False, fontsize=8)
    finish(figure, axes, l.tolist(), path)


FIGURES: dict[str, Callable[[Results, Path], None]] = {"figure-1": figure_1, "figure-2": figure_2, "figure-3": figure_3}


# ------------------------------------------------------------------------------------------------------------ tables


def short(value: str | float) -> str:
    """Two digits: 4.9e-5."""
    mantissa, exponent = f"{float(value):.1e}".split("e")
    return f"{mantissa}e{int(exponent)}" if float(value) else "0"


def markdown(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)])


def milliseconds(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table_times(results: Results) -> str:
    sizes = [l for l in sorted({int(row["l"]) for row in results["times"]}) if l in (10, 30, 100, 200, 500)]
    body = []
    for name in tasks.METHODS:
        cells = [milliseconds(timed(results, name, l)) for l in sizes]
        ratio = "" if name in tasks.METHODS[10:] else f"{timed(results, name, sizes[-1], 'direct_to_this'):,.3g}"
        body.append([name, *cells, f"{slope(results, name):.2f}", ratio])
    return markdown(["ms", *(f"l = {l}" for l in sizes), "slope", f"direct takes … times, l = {sizes[-1]}"], body)


def table_errors(results: Results) -> str:
    body = []
    for gamma, ridge in SETTINGS:
        rows = select(results["errors"], experiment="leave-one-out", gamma=gamma, ridge=ridge)
        found = {int(row["l"]): row for row in rows}
        cells = [f"{short(found[l]['e_mean'])} ± {short(found[l]['e_std'])}" for l in SHOWN if l in found]
        body.append([f"{gamma}, {ridge}", *cells, short(max(float(row["exact_max"]) for row in rows))])
    sizes = [l for l in SHOWN if l in found]
    return markdown(["γ, μ", *(f"l = {l}" for l in sizes), "exact form, worst"], body)


def percent(value: str) -> str:
    return f"{100 * float(value):.1f}"


def table_others(results: Results) -> str:
    body = []
    for row in results["errors"]:
        if row["experiment"] != "leave-one-out" and row["l"] == "100":
            name = {"folds": f"KFD, {row['case']} folds", "fixed basis": f"KFD, basis: {row['case']}"}.get(
                row["experiment"], f"{row['experiment'].upper()}, {row['case']}"
            )
            rates = [percent(row["rate_kept"]), percent(row["rate_retrained"])]
            cells = [f"{row['gamma']}, {row['ridge']}", short(row["e_mean"]), short(row["exact_max"]), *rates]
            body.append([name, *cells])
    return markdown(["", "γ, ridge", "e, column kept", "e, exact form", "error %, column kept", "retrained"], body)


def table_selection(results: Results) -> str:
    body = []
    for row in results["selection"]:
        by = {"rate": "error rate, then PRESS", "press": "PRESS"}[row["by"]]
        name = {"kept": "the paper's", "exact": "exact"}[row["estimate"]]
        cells = [percent(row["promised_mean"]), percent(row["test_mean"]), percent(row["best_mean"])]
        if row["estimate"] == "kept":
            more = f"{100 * float(row['more_than_exact']):+.1f} ± {100 * float(row['more_error']):.1f}"
            cells += [more, f"{row['as_exact']} of {row['trials']}"]
        else:
            cells += ["", ""]
        body.append([row["l"], by, name, *cells])
    header = ["l", "chosen by", "estimate", "leave-one-out %", "fresh samples %", "best of the grid %"]
    return markdown([*header, "more than exact", "same choice"], body)


FORMULAS = {
    "inverse": ("eq. 5 to 6", "C₍ᵢ₎⁻¹ = C + …", "C₍ᵢ₎⁻¹ = C⁻¹ + …"),
    "lemma": ("lemma 1", "1 − vᵀA⁻¹u ≠ 0", "1 + vᵀA⁻¹u ≠ 0"),
    "residual": ("2.1", "r = y − w·φ(x) + b", "r = y − (w·φ(x) + b)"),
    "target": ("2.1", "r = sign(y) − … in r / (1 − h)", "r = y − …, y = ±l/lⱼ as trained"),
    "count": ("2.1", "a mistake if sign(y) r ≤ −1", "sign(y) r ≥ 1, r = sign(y) − f"),
    "bias": ("1", "b = −α (l₁M₁ + l₂M₂)/l", "b = −αᵀ(l₁m₁ + l₂m₂)/l"),
    "coding": ("eq. 4", "yᵢ = l/lⱼ for both classes", "+l/l₁ and −l/l₂"),
}


def table_errata(results: Results) -> str:
    body = []
    for entry, (where, printed, right) in FORMULAS.items():
        values = [erratum(results, entry, what) for what in ("printed", "right")]
        shown = ["no number" if np.isnan(value) else f"{value:.2g}" for value in values]
        body.append([where, printed, shown[0], right, shown[1]])
    return markdown(["where", "printed", "off by", "should be", "off by"], body)


TABLES: dict[str, Callable[[Results], str]] = {
    name.removeprefix("table_"): value for name, value in list(globals().items()) if name.startswith("table_")
}


# ------------------------------------------------------------------------------------------------ numbers of the text


def claim(holds: bool, text: str) -> str:
    """The text, if what it says is so."""
    if not holds:
        raise ValueError(f"the results do not say: {text}")
    return text


def shown_time(ms: float) -> str:
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms"


def fact_noise(results: Results) -> str:
    rows = select(results["times"], l="500")
    parts = [max(abs(float(row[key]) / float(row["median_ms"]) - 1) for key in ("low_ms", "high_ms")) for row in rows]
    return claim(
        max(parts) < 0.15,
        f"at l = 500 the middle half of the data sets is within {100 * max(parts):.0f} % of the median",
    )


def fact_ratio(results: Results) -> str:
    ratios = [timed(results, name, 500, "direct_to_this") for name in (DIRECT_GRAM, DIRECT_PRODUCTS, HAT)]
    mine = [ratios[2] / ratio for ratio in ratios[:2]]
    times = [shown_time(timed(results, name, 500)) for name in (DIRECT, HAT)]
    return claim(
        ratios[2] > 50 and mine[1] > 10,
        f"at l = 500, direct leave-one-out takes {times[0]}, {ratios[2]:.0f} times as long as the hat matrix ({times[1]}); "
        f"it takes {mine[0]:.0f} times as long if it computes the Gram matrix only once, and {mine[1]:.0f} times as long "
        "if it computes ZᵀZ only once, too",
    )


def fact_slopes(results: Results) -> str:
    slopes = {name: slope(results, name) for name in (DIRECT, DIRECT_PRODUCTS, CORRECTIONS, HAT, EXACT)}
    return claim(
        min(slopes[DIRECT], slopes[DIRECT_PRODUCTS]) > max(slopes[HAT], slopes[EXACT]) + 0.3,
        f"the slopes are {slopes[DIRECT]:.1f} for direct leave-one-out ({slopes[DIRECT_PRODUCTS]:.1f} with products computed once), "
        f"{slopes[HAT]:.1f} for the hat matrix and {slopes[EXACT]:.1f} for the exact closed form",
    )


def fact_training(results: Results) -> str:
    part = [timed(results, ESTIMATE, l) / timed(results, TRAINING, l) for l in (100, 200, 300, 500)]
    return claim(
        max(part) < 0.75,
        f"For l ≥ 100, if C⁻¹ is already known, the estimate takes {min(part):.1f} to {max(part):.1f} times as long as training",
    )


def fact_refinement(results: Results) -> str:
    part = {l: timed(results, CORRECTIONS, l) / timed(results, HAT, l) for l in (100, 500)}
    return claim(
        min(part.values()) > 3,
        f"{part[100]:.0f} times as long as the hat matrix at l = 100, and {part[500]:.0f} times at l = 500",
    )


def fact_price(results: Results) -> str:
    exact, path, kept, hat = (timed(results, name, 500) for name in (EXACT, PATH, KEPT, HAT))
    return claim(
        1 < exact / hat < 6 and path < 20 * hat and exact < 1.5 * kept,
        f"at l = 500, one ridge costs {exact:.0f} ms and twenty ridges cost {path:.0f} ms; the hat matrix costs {hat:.0f} ms for each ridge",
    )


def fact_folds(results: Results) -> str:
    straight, ones, ours = (timed(results, name, 500) for name in (FOLD_DIRECT, FOLD_CORRECTIONS, FOLD_CLOSED))
    return claim(
        ones > 2 * straight,
        f"at l = 500, ten trainings take {straight:.0f} ms, the corrections {ones:.0f} ms, and the closed form {ours:.0f} ms",
    )


def approximated(results: Results) -> dict[tuple[str, str], dict[int, float]]:
    """Mean e of leave-one-out, by setting and size."""
    return {setting: errors(results, "e_mean", *setting) for setting in SETTINGS}


def setting_text(setting: tuple[str, str]) -> str:
    return f"γ = {setting[0]}, μ = {setting[1]}"


def fact_smooth(results: Results) -> str:
    e = approximated(results)["0.1", "1"]
    return claim(e[30] < 0.015 and e[100] < 0.0015, f"with γ = 0.1 and μ = 1, e is {e[30]:.4f} at l = 30")


def fact_rough(results: Results) -> str:
    e = approximated(results)["0.5", "0.01"]
    return claim(
        max(e, key=e.__getitem__) == 30 and e[100] > 0.05,
        f"with γ = 0.5 and μ = 0.01, e is {e[30]:.2f} at l = 30 and {e[100]:.2f} at l = 100",
    )


def fact_below(results: Results) -> str:
    found = {}
    for setting, e in approximated(results).items():
        least = next(l for l in e if all(value < 0.01 for m, value in e.items() if m >= l))
        found.setdefault(least, []).append(setting_text(setting))
    best, worst = (f"from l = {l} on ({'; '.join(found[l])})" for l in (min(found), max(found)))
    return claim(min(found) == 30 and max(found) == 500, f"{best} in the best case and {worst} in the worst")


def fact_exact(results: Results) -> str:
    worst = max(float(row[key]) for row in results["errors"] for key in ("exact_max", "exact_recoded_max"))
    differ = sum(int(row["exact_rate_differs"]) for row in results["errors"])
    trials = sum(int(row["trials"]) for row in results["errors"])
    return claim(
        worst < 1e-20 and differ == 0,
        f"at most {short(worst)} in all {trials:,} comparisons, and every sample gets the same class",
    )


def fact_formula(results: Results) -> str:
    worst = max(float(row["formula_max"]) for row in results["errors"] if row["formula_max"])
    return claim(worst < 1e-18, f"(they differ by at most {short(worst)})")


def fact_fixed(results: Results) -> str:
    fixed = max(float(row["e_max"]) for row in results["errors"] if row["case"] in tasks.BASES[:2])
    go = [float(row["e_mean"]) for row in select(results["errors"], case=tasks.BASES[2])]
    return claim(
        fixed < 1e-20 and min(go) > 1e-3,
        f"e is at most {short(fixed)} if they stay, and {min(go):.3f} to {max(go):.2f} if they leave with their samples",
    )


def fact_ridge(results: Results) -> str:
    worst = max(float(row["e_max"]) for row in results["errors"] if row["experiment"] in ("ls-svm", "krr"))
    return claim(worst < 1e-20, f"For LS-SVM and KRR it is exact (e at most {short(worst)})")


def fact_recoded(results: Results) -> str:
    kept, anew = (errors(results, key, "0.1", "1") for key in ("e_mean", "e_recoded_mean"))
    return claim(
        anew[30] > 2 * kept[30] and anew[100] > 2 * kept[100],
        f"with γ = 0.1 and μ = 1, e is {anew[30]:.3f} instead of {kept[30]:.3f} at l = 30",
    )


def fact_rates(results: Results) -> str:
    rows = [row for row in results["errors"] if row["experiment"] == "leave-one-out"]

    def most(key: str, least: int) -> float:
        return max(100 * float(row[key]) for row in rows if int(row["l"]) >= least)

    return claim(
        most("recoded_gap_mean", 30) < 6 and most("recoded_gap_mean", 200) < 1,
        f"For l ≥ 30, the difference between the two rates is at most {most('recoded_gap_mean', 30):.1f} points on average and "
        f"{most('recoded_gap_max', 30):.0f} points on a single data set; for l ≥ 100, it is at most {most('recoded_gap_mean', 100):.1f} and "
        f"{most('recoded_gap_max', 100):.0f} points; for l ≥ 200, at most {most('recoded_gap_mean', 200):.1f} and "
        f"{most('recoded_gap_max', 200):.0f} points",
    )


def fact_pessimistic(results: Results) -> str:
    kept, truth = (errors(results, key, "0.5", "0.01") for key in ("rate_kept", "rate_recoded"))
    return claim(
        all(kept[l] > truth[l] for l in kept),
        f"with γ = 0.5 and μ = 0.01, it is {100 * kept[30]:.1f} % instead of {100 * truth[30]:.1f} % at l = 30",
    )


def fact_s_fold(results: Results) -> str:
    e = {
        s: float(one(results["errors"], experiment="folds", case=s, gamma="0.5", ridge="0.01", l="100")["e_mean"])
        for s in ("10", "5", "2")
    }
    alone = approximated(results)["0.5", "0.01"][100]
    return claim(
        alone < e["10"] < e["5"] < e["2"],
        f"with γ = 0.5 and μ = 0.01, e is {alone:.2f} for leave-one-out and {e['2']:.1f} for two folds (l = 100)",
    )


def fact_choice(results: Results) -> str:
    more = [abs(float(row["more_than_exact"])) for row in results["selection"]]
    return claim(
        max(more) < 0.01,
        f"on fresh samples, the errors of the paper's choice and of the exact estimate's choice differ by at most {100 * max(more):.1f} points",
    )


def fact_selection(results: Results) -> str:
    def more(l: int, by: str, sign: int) -> str:
        row = one(results["selection"], l=f"{l}", by=by, estimate="kept")
        difference, error = (100 * float(row[key]) for key in ("more_than_exact", "more_error"))
        return claim(sign * difference > 2 * error, f"{sign * difference:.1f} ± {error:.2f}")

    return (
        f"By error rate, the exact estimate's choice is better by {more(30, 'rate', 1)} points at l = 30 and by "
        f"{more(300, 'rate', 1)} at l = 300; by PRESS, the paper's choice is better by {more(30, 'press', -1)} points at l = 30 "
        f"and by {more(300, 'press', -1)} at l = 300"
    )


def fact_criterion(results: Results) -> str:
    found = {
        l: [
            100 * float(one(results["selection"], l=f"{l}", by=by, estimate="exact")["test_mean"])
            for by in ("press", "rate")
        ]
        for l in (30, 100, 300)
    }
    more = [press - rate for press, rate in found.values()]
    return claim(
        min(more) > 0,
        f"models chosen by PRESS err {min(more):.1f} to {max(more):.1f} points more than those chosen by error rate",
    )


def fact_optimism(results: Results) -> str:
    row = one(results["selection"], l="30", by="rate", estimate="exact")
    promised, test = (100 * float(row[key]) for key in ("promised_mean", "test_mean"))
    return claim(
        test > 1.5 * promised,
        f"at l = 30, the chosen model's leave-one-out error is {promised:.1f} %, and its error on fresh samples {test:.1f} %",
    )


def fact_count(results: Results) -> str:
    rate, printed = (100 * erratum(results, "values", what) for what in ("rate", "printed rate"))
    return claim(
        printed > 2 * rate,
        f"the printed rule counts {printed:.0f} % of the patterns as mistakes, but only {rate:.0f} % are misclassified",
    )


def fact_coding(results: Results) -> str:
    right, printed = (100 * erratum(results, "coding", what) for what in ("right", "printed"))
    part = erratum(results, "coding, direction")
    return claim(
        printed > 50 and part < 1e-9,
        f"{printed:.0f} % of the training patterns are on the wrong side instead of {right:.0f} %",
    )


def fact_fisher(results: Results) -> str:
    angle = erratum(results, "fisher")
    return claim(
        angle < 1e-12,
        "the cosine of the angle between the two vectors of multipliers differs from 1 by less than 1e-12",
    )


FACTS: dict[str, Callable[[Results], str]] = {
    name.removeprefix("fact_"): value for name, value in list(globals().items()) if name.startswith("fact_")
}
