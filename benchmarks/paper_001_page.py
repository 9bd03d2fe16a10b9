"""The figures, and the tables and phrases of docs/paper-001.md, from the results of ``paper_001.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import basis_pages as pages
import matplotlib
import numpy as np
from basis_pages import COLOURS, Results, chosen, curve, value
from matplotlib.figure import Figure
from paper_004_page import claim, markdown

from pykernel.streams import whole_file

NAMES = {
    "digits": "Digits",
    "breast_cancer": "Breast cancer",
    "bikeshare": "Bike rentals",
    "diabetes": "Diabetes",
    "subspaces": "Subspaces",
    "stationary": "no switch",
}
HEADS = {"svm": "linear SVM", "logistic": "logistic", "ridge": "ridge"}
BATCH, FULL, RANK, SECOND = "batch BKFE", "Nyström, rank B", "Nyström, rank r", "Nyström, rank r, second pass"
LIMIT, FROZEN = "kernel PCA of the regime", "Nyström of the first regime"
BASIS, HORIZON = "streaming basis, rank B", "streaming basis, rank B, horizon 500"
STYLES: dict[str, dict[str, Any]] = {
    BATCH: {"color": "#222222", "linestyle": ":"},
    FULL: {"color": "#777777", "linestyle": "--"},
    RANK: {"color": "#009E73", "marker": "s"},
    SECOND: {"color": "#56B4E9", "marker": "^"},
    "drop": {"color": "#D55E00", "marker": "o"},
    "exact": {"color": "#0072B2", "marker": "o"},
    "exact, hybrid": {"color": "#CC79A7", "marker": "v"},
    "exact, rls": {"color": "#E69F00", "marker": "D"},
}


def keep(figure: Figure, path: Path) -> None:
    """As SVG, with nothing in it that changes from run to run."""
    with (
        matplotlib.rc_context({"svg.hashsalt": path.stem}),
        whole_file(path.with_suffix(".svg")) as file,
    ):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def unique(rows: Iterable[Any], *keys: str) -> list[Any]:
    """Values in the order in which they come; of one key as they are, of several as tuples."""
    return list(dict.fromkeys(row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys) for row in rows))


def short(x: float, digits: int = 3) -> str:
    """Without the zero before the point."""
    return f"{x:.{digits}f}".replace("0.", ".", 1) if 0 <= x < 1 else f"{x:.{digits}f}"


# ----------------------------------------------------------------------------------------------------------- figures


def figure_1(results: Results, path: Path) -> None:
    """Towards kernel PCA."""
    rows = results["convergence"]
    updates = [update for update in unique(rows, "update") if update != "rls"]
    figure, axes = pages.canvas(12, 4.2, len(updates), sharey=True)
    for axis, update in zip(axes, updates, strict=True):
        for at, step in enumerate(unique(chosen(rows, update=update), "step")):
            n, ratio = curve(rows, update=update, step=step)
            axis.plot(n, ratio - 1, "o-", color=COLOURS[at], markersize=4, linewidth=1.4, label=step)
        n, ratio = curve(rows, update="rls")
        axis.plot(n, ratio - 1, "--", color="#222222", linewidth=1.4, label="rls")
        axis.set(xscale="log", yscale="log", xlabel="samples", title=update)
    axes[0].set_ylabel("residual / that of batch BKFE − 1")
    axes[0].legend(frameon=False, fontsize=8)
    keep(figure, path)


def figure_2(results: Results, path: Path) -> None:
    """Approximation error by rank, and by budget."""
    rows = [row for row in results["approximation"] if row["data"] == "digits" and row["precision"] != "float32"]
    budget = "100" if chosen(rows, B="100") else rows[0]["B"]
    figure, axes = pages.canvas(10, 4.4, 2, sharey=True)
    for axis, key, fixed in ((axes[0], "r", {"B": budget}), (axes[1], "B", {"r": "10"})):
        for case, style in STYLES.items():
            x, y = curve(rows, key, "frobenius", case=case, **fixed)
            axis.plot(x, y, linewidth=1.4, markersize=4, label=case, **style)
        axis.set(xscale="log", yscale="log")
        ticks = sorted({int(row[key]) for row in chosen(rows, **fixed)})
        axis.set_xticks(ticks, labels=[f"{tick}" for tick in ticks])
        axis.xaxis.set_minor_formatter(lambda *_: "")
    axes[0].set(xlabel="rank r", ylabel="|K − K̂| / N, Frobenius", title=f"digits, B = {budget}")
    axes[1].set(xlabel="budget B", title="digits, r = 10")
    axes[1].legend(frameon=False, fontsize=8)
    keep(figure, path)


LINES: dict[str, dict[str, Any]] = {
    LIMIT: {"color": "#222222", "linestyle": ":"},
    FROZEN: {"color": "#777777", "linestyle": "--"},
    HORIZON: {"color": "#56B4E9", "linestyle": "--"},
    "drop": {"color": "#D55E00"},
    "exact": {"color": "#0072B2"},
    "exact, β 0.95": {"color": "#009E73"},
    "exact, rls, f 0.98, β 0.95": {"color": "#E69F00"},
}


def figure_3(results: Results, path: Path) -> None:
    """Residual as samples come, of two regimes in turn."""
    streams = [stream for stream in unique(results["levels"], "stream") if stream != "stationary"]
    figure, axes = pages.canvas(10, 7, 1, len(streams), sharex=True)
    for axis, stream in zip(axes, streams, strict=True):
        for case, style in LINES.items():
            n, level = curve(results["levels"], stream=stream, case=case)
            axis.plot(n, level, linewidth=1.4, label=case, **style)
        last = max(int(row["n"]) for row in results["levels"])
        segments = max(int(row["segment"]) for row in results["switching"])
        for segment in range(1, segments):
            axis.axvline(segment * last / segments, color="#bbbbbb", linewidth=0.8)
        axis.set(ylabel="mean residual of 50 samples", title=NAMES[stream], ylim=(0, None))
    axes[-1].set_xlabel("samples")
    axes[0].legend(frameon=False, fontsize=8, ncols=2)
    keep(figure, path)


def figure_4(results: Results, path: Path) -> None:
    """What forgetting costs without a switch, and what it buys after one."""
    rows = results["switching"]
    figure, axes = pages.canvas(10, 4.6, 2)
    segments = unique(rows, "segment")
    for axis, stream in zip(axes, ("subspaces", "digits"), strict=True):
        for at, case in enumerate(case for case in unique(rows, "case") if case.startswith(("drop", "exact"))):
            still = value(rows, stream="stationary", case=case, segment=segments[-1])
            after = [value(rows, "soon", stream=stream, case=case, segment=each) for each in segments[1:]]
            marker = "s" if case.startswith("drop") else "D" if "rls" in case else "v" if "hybrid" in case else "o"
            axis.plot(still, np.mean(after), marker, color=COLOURS[at % len(COLOURS)], markersize=6, label=case)
        axis.set(xlabel="residual at the end, no switch (digits)", title=f"{NAMES[stream]}: 100 samples after a switch")
    axes[0].set_ylabel("residual")
    axes[1].legend(frameon=False, fontsize=7)
    keep(figure, path)


SHOWN = {
    "OKFEB, exact": ("#0072B2", "o"),
    "OKFEB, drop": ("#D55E00", "o"),
    "batch BKFE": ("#222222", "d"),
    "Nyström, r features": ("#009E73", "s"),
    "Nyström, B features": ("#56B4E9", "s"),
    "Nyström, equal memory": ("#777777", "s"),
    "Fourier, r features": ("#E69F00", "^"),
    "Fourier, B features": ("#CC79A7", "^"),
    "Fourier, equal memory": ("#B8860B", "^"),
}


def figure_5(results: Results, path: Path) -> None:
    """Accuracy by features, and by numbers that the map takes."""
    rows = results["learning"]
    pairs = unique(rows, "data", "head")
    wanted = [pair for pair in (("digits", "logistic"), ("bikeshare", "ridge")) if pair in pairs] or pairs[:2]
    figure, axes = pages.canvas(11, 4.4 * len(wanted), 2, len(wanted))
    for row, (data, head) in enumerate(wanted):
        for axis, key in ((axes[2 * row], "features"), (axes[2 * row + 1], "words")):
            for case, (colour, marker) in SHOWN.items():
                if key == "words" and case == BATCH:
                    continue  # as many vectors as rows
                x, y = curve(rows, key, data=data, head=head, case=case)
                axis.plot(x, y, marker=marker, color=colour, markersize=5, linewidth=1, label=case)
            for case, style in (("kernel machine", "--"), ("linear", ":")):
                found = [float(each["mean"]) for each in chosen(rows, data=data, head=head, case=case)]
                if found:
                    axis.axhline(found[0], linestyle=style, color="#222222", linewidth=1, label=case)
            axis.set(xscale="log", xlabel=key if key == "features" else "numbers of the map")
        what = "mean squared error / variance" if head == "ridge" else "accuracy"
        axes[2 * row].set(ylabel=what, title=f"{NAMES[data]}, {HEADS[head]}")
    axes[1].legend(frameon=False, fontsize=7)
    keep(figure, path)


def figure_6(results: Results, path: Path) -> None:
    """CPU time against N."""
    rows = results["times"]
    figure, (left, right) = pages.canvas(10, 4.4, 2)
    for at, case in enumerate(unique(rows, "case")):
        n, ms = curve(rows, "N", "ms", case=case)
        style = {"color": COLOURS[at % len(COLOURS)], "linestyle": "--" if at >= len(COLOURS) else "-"}
        left.plot(n, ms, marker="o", markersize=4, linewidth=1.4, label=case, **style)
        right.plot(n, 1e3 * ms / n, marker="o", markersize=4, linewidth=1.4, **style)
    left.set(xscale="log", yscale="log", xlabel="samples N", ylabel="CPU time (ms)")
    right.set(xscale="log", yscale="log", xlabel="samples N", ylabel="CPU time for a sample (µs)")
    left.legend(frameon=False, fontsize=7)
    keep(figure, path)


def figure_7(results: Results, path: Path) -> None:
    """Censoring: what is reached, and what it costs."""
    rows = [row for row in results["censoring"] if row["wanted"]]
    figure, (left, right) = pages.canvas(10, 4.2, 2)
    for at, (stream, fading) in enumerate(unique(rows, "stream", "fading")):
        wanted, rate = curve(rows, "wanted", "rate", stream=stream, fading=fading)
        label = f"{'digits, ' if stream == 'stationary' else 'digits that switch, '}β = {fading}"
        label = label.replace("digits, β", "digits, no switch, β")
        left.plot(wanted, rate, "o-", color=COLOURS[at], markersize=4, linewidth=1.4, label=label)
        _, error = curve(rows, "wanted", stream=stream, fading=fading)
        right.plot(rate, error, "o-", color=COLOURS[at], markersize=4, linewidth=1.4)
    left.plot((0, 1), (0, 1), ":", color="#222222", linewidth=1)
    left.set(xlabel="censored part that was asked for", ylabel="reached, with a full budget")
    right.set(xlabel="censored part", ylabel="residual at the end of a segment")
    left.legend(frameon=False, fontsize=8)
    keep(figure, path)


FIGURES: dict[str, Callable[[Results, Path], None]] = {
    f"figure-{number}": draw
    for number, draw in enumerate((figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, figure_7), 1)
}


# ------------------------------------------------------------------------------------------------------------ tables


def table_batch(results: Results) -> str:
    rows = chosen(results["batch"], what="excess")
    shown = [row for row in rows if row["at"] in ("1", "2", "3", "6", "11", "21", "51", "101", "201", "501", "1000")]
    return markdown(
        ["iterations", *(row["at"] for row in shown)],
        [
            ["objective / closed form − 1, mean", *(f"{float(row['mean']):.1e}" for row in shown)],
            ["largest", *(f"{float(row['most']):.1e}" for row in shown)],
        ],
    )


def table_convergence(results: Results) -> str:
    rows = results["convergence"]
    at = [n for n in ("100", "400", "1200", "2000") if chosen(rows, n=n)]
    body = []
    for update, step in unique(rows, "update", "step"):
        cells = [short(value(rows, update=update, step=step, n=n)) for n in at]
        last = {"update": update, "step": step, "n": at[-1]}
        cells += [short(value(rows, key, **last)) for key in ("objective", "affinity")]
        body.append([update, step or "–", *cells])
    heads = [f"residual, {int(n):,}" for n in at]
    return markdown(["update", "step", *heads, f"objective, {int(at[-1]):,}", "same directions"], body)


def table_approximation(results: Results) -> str:
    rows = results["approximation"]
    body = []
    for data in unique(rows, "data"):
        for rank, budget in ((5, 50), (10, 50), (10, 100), (20, 100), (20, 200)):
            cells = []
            for case in (BATCH, FULL, RANK, SECOND, "drop", "exact", "exact, hybrid", "exact, rls"):
                found = chosen(rows, data=data, r=f"{rank}", B=f"{budget}", case=case)
                found = [row for row in found if row["precision"] != "float32"]
                cells.append(
                    f"{short(float(found[0]['mean']))} / {short(float(found[0]['frobenius']))}" if found else "–"
                )
            body.append([NAMES[data], f"{rank}, {budget}", *cells])
    heads = [BATCH, FULL, RANK, SECOND, "drop", "exact", "exact, hybrid", "exact, rls"]
    return markdown(["", "r, B", *heads], body)


def table_others(results: Results) -> str:
    """What is in no column of the table before."""
    rows = results["approximation"]
    body = []
    told = [("drop, rls", "float64"), ("drop, decreasing step", "float64"), ("exact, nonparametric", "float64")]
    told += [("drop", "float32"), ("exact", "float32"), (BASIS, "")]
    for case, precision in told:
        cells = []
        for data in unique(rows, "data"):
            found = chosen(rows, data=data, r="10", B="50", case=case, precision=precision)
            cells.append(f"{short(float(found[0]['mean']))} / {short(float(found[0]['frobenius']))}")
        body.append([case + (", float32" if precision == "float32" else ""), *cells])
    return markdown(["r = 10, B = 50", *(NAMES[data] for data in unique(rows, "data"))], body)


def table_bounds(results: Results) -> str:
    rows = results["approximation"]
    body = []
    for data in unique(rows, "data"):
        for case in (BATCH, "drop", "exact"):
            wanted = {"data": data, "r": "10", "B": "50", "case": case}
            (row,) = [each for each in chosen(rows, **wanted) if each["precision"] != "float32"]
            true, trace, usual = (float(row[key]) for key in ("frobenius", "trace bound", "usual bound"))
            body.append([NAMES[data], case, short(true), short(trace), short(usual), f"{usual / trace:.1f}"])
    return markdown(["r = 10, B = 50", "", "error", "trace bound", "usual bound", "usual / trace"], body)


def table_krr(results: Results) -> str:
    rows = results["bounds"]
    return markdown(
        ["r", *(row["r"] for row in rows)],
        [
            ["fit differs by, in parts of the labels", *(row["off"] for row in rows)],
            ["bound", *(row["bound"] for row in rows)],
        ],
    )


def table_switching(results: Results) -> str:
    rows = results["switching"]
    body = []
    for case in unique(rows, "case"):
        cells = []
        for stream in ("subspaces", "digits"):
            for segment in ("2", "3", "4"):
                wanted = {"stream": stream, "case": case, "segment": segment}
                cells.append(f"{short(value(rows, 'soon', **wanted))} / {short(value(rows, **wanted))}")
        cells.append(short(value(rows, stream="stationary", case=case, segment="4")))
        body.append([case, *cells])
    heads = [f"{NAMES[stream]}, {segment}" for stream in ("subspaces", "digits") for segment in (2, 3, 4)]
    return markdown(["", *heads, "no switch"], body)


def table_censoring(results: Results) -> str:
    rows = results["censoring"]
    body = []
    for wanted, eps in unique(rows, "wanted", "eps"):
        cells = []
        for stream, fading in unique(rows, "stream", "fading"):
            (row,) = chosen(rows, stream=stream, fading=fading, wanted=wanted, eps=eps)
            cells += [f"{100 * float(row['rate']):.1f} %", f"{short(float(row['soon']))} / {short(float(row['mean']))}"]
        body.append([f"{float(wanted):.0%}".replace("%", " %") if wanted else f"ε = {eps}", *cells])
    heads = []
    for stream, fading in unique(rows, "stream", "fading"):
        heads += [f"{'no switch' if stream == 'stationary' else 'switch'}, β = {fading}: reached", "residual"]
    return markdown(["asked for", *heads], body)


def cell(rows: Sequence[Any], head: str) -> str:
    if not rows:
        return "–"
    row = rows[0]
    digits = 3
    return f"{short(float(row['mean']), digits)} ± {short(float(row['error']), digits)}"


def table_learning(results: Results) -> str:
    rows = [row for row in results["learning"] if row["head"] != "ridge"]
    return learning_table(rows)


def table_regression(results: Results) -> str:
    rows = [row for row in results["learning"] if row["head"] == "ridge"]
    return learning_table(rows)


def learning_table(rows: Sequence[Any]) -> str:
    pairs = unique(rows, "data", "head")
    body = []
    for rank, budget in unique(rows, "r", "B"):
        for case in unique(chosen(rows, r=rank, B=budget), "case"):
            if case in ("linear", "kernel machine"):
                continue
            body.append(
                [
                    f"{rank}, {budget}",
                    case,
                    *(
                        cell(chosen(rows, data=data, head=head, r=rank, B=budget, case=case), head)
                        for data, head in pairs
                    ),
                ]
            )
    for case, name in (("linear", "raw inputs, linear"), ("kernel machine", "RBF kernel machine")):
        body.append(["", name, *(cell(chosen(rows, data=data, head=head, case=case), head) for data, head in pairs)])
    return markdown(["r, B", "features", *(f"{NAMES[data]}, {HEADS[head]}" for data, head in pairs)], body)


def table_memory(results: Results) -> str:
    """Features, and numbers of the map, of the digits."""
    rows = chosen(results["learning"], data="digits", head="logistic")
    body = []
    for case in unique(rows, "case"):
        if case in ("linear", "kernel machine"):
            continue
        cells = []
        for rank, budget in unique(rows, "r", "B"):
            (row,) = chosen(rows, r=rank, B=budget, case=case)
            cells.append(f"{row['features']}; {int(row['words']):,}")
        body.append([case, *cells])
    return markdown(["features; numbers", *(f"{rank}, {budget}" for rank, budget in unique(rows, "r", "B"))], body)


def table_times(results: Results) -> str:
    rows = results["times"]
    sizes = unique(rows, "N")
    body = []
    for case in unique(rows, "case"):
        cells = []
        for size in sizes:
            found = chosen(rows, case=case, N=size)
            cells.append(f"{float(found[0]['learning']):.3g} + {float(found[0]['features']):.3g}" if found else "–")
        body.append([case, *cells])
    return markdown(["µs for a sample: learning + features", *(f"N = {int(size):,}" for size in sizes)], body)


TABLES: dict[str, Callable[[Results], str]] = {
    name.removeprefix("table_"): made for name, made in list(globals().items()) if name.startswith("table_")
}


# ------------------------------------------------------------------------------------------------ numbers of the text


FACTS: dict[str, Callable[[Results], str]] = {
    name.removeprefix("fact_"): made for name, made in list(globals().items()) if name.startswith("fact_")
}
_ = claim
