"""The figures, and the tables and phrases of docs/paper-001.md, from the results of ``paper_001.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import benchmarks.papers.basis_pages as pages
from benchmarks.papers.basis_pages import COLOURS, Results, chosen, curve, value
from benchmarks.papers.paper_004_page import claim, markdown
from pykernel.files import whole_file

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
SGMA = "SGMA, rank r, second pass"
LIMIT, FROZEN = "kernel PCA of the regime", "Nyström of the first regime"
BASIS, HORIZON = "streaming basis, rank B", "streaming basis, rank B, horizon 500"
STYLES: dict[str, dict[str, Any]] = {
    BATCH: {"color": "#222222", "linestyle": ":"},
    FULL: {"color": "#777777", "linestyle": "--"},
    RANK: {"color": "#009E73", "marker": "s"},
    SECOND: {"color": "#56B4E9", "marker": "^"},
    SGMA: {"color": "#56B4E9", "marker": "x", "linestyle": "--"},
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


def name_lines(figure: Figure, axis: Any, columns: int) -> None:
    """A legend below the panels."""
    figure.legend(
        *axis.get_legend_handles_labels(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8
    )


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
    colours = dict(zip(unique([row for row in rows if row["step"]], "step"), COLOURS, strict=False))
    figure, axes = pages.canvas(12, 4.4, len(updates), sharey=True)
    for axis, update in zip(axes, updates, strict=True):
        for step in unique(chosen(rows, update=update), "step"):
            n, ratio = curve(rows, update=update, step=step)
            axis.plot(n, ratio - 1, "o-", color=colours[step], markersize=4, linewidth=1.4, label=step)
        n, ratio = curve(rows, update="rls")
        axis.plot(n, ratio - 1, "--", color="#222222", linewidth=1.4, label="rls")
        axis.set(xscale="log", yscale="log", xlabel="samples", title=update)
    axes[0].set_ylabel("residual / that of batch BKFE − 1")
    name_lines(figure, axes[0], 6)
    keep(figure, path)


def figure_2(results: Results, path: Path) -> None:
    """Approximation error by rank, and by budget."""
    rows = [row for row in results["approximation"] if row["data"] == "digits" and row["precision"] != "float32"]
    budget = "100" if chosen(rows, B="100") else rows[0]["B"]
    figure, axes = pages.canvas(10, 5, 2, sharey=True)
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
    name_lines(figure, axes[1], 5)
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
    name_lines(figure, axes[0], 4)
    keep(figure, path)


def figure_4(results: Results, path: Path) -> None:
    """What forgetting costs without a switch, and what it buys after one."""
    rows = results["switching"]
    figure, axes = pages.canvas(10, 5, 2)
    segments = unique(rows, "segment")
    for axis, stream in zip(axes, ("subspaces", "digits"), strict=True):
        for at, case in enumerate(case for case in unique(rows, "case") if case.startswith(("drop", "exact"))):
            still = value(rows, stream="stationary", case=case, segment=segments[-1])
            after = [value(rows, "soon", stream=stream, case=case, segment=each) for each in segments[1:]]
            marker = "s" if case.startswith("drop") else "D" if "rls" in case else "v" if "hybrid" in case else "o"
            axis.plot(still, np.mean(after), marker, color=COLOURS[at % len(COLOURS)], markersize=6, label=case)
        axis.set(xlabel="residual at the end, no switch (digits)", title=f"{NAMES[stream]}: 100 samples after a switch")
    axes[0].set_ylabel("residual")
    name_lines(figure, axes[1], 5)
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
    name_lines(figure, axes[0], 4)
    keep(figure, path)


def figure_6(results: Results, path: Path) -> None:
    """CPU time against N."""
    rows = results["times"]
    figure, (left, right) = pages.canvas(10, 5, 2)
    for at, case in enumerate(unique(rows, "case")):
        n, ms = curve(rows, "N", "ms", case=case)
        style = {"color": COLOURS[at % len(COLOURS)], "linestyle": "--" if at >= len(COLOURS) else "-"}
        left.plot(n, ms, marker="o", markersize=4, linewidth=1.4, label=case, **style)
        right.plot(n, 1e3 * ms / n, marker="o", markersize=4, linewidth=1.4, **style)
    left.set(xscale="log", yscale="log", xlabel="samples N", ylabel="CPU time (ms)")
    right.set(xscale="log", yscale="log", xlabel="samples N", ylabel="CPU time for a sample (µs)")
    name_lines(figure, left, 3)
    keep(figure, path)


def figure_7(results: Results, path: Path) -> None:
    """Censoring: what is reached, and what it costs."""
    rows = [row for row in results["censoring"] if row["wanted"]]
    figure, (left, right) = pages.canvas(10, 4.2, 2)
    for at, (stream, fading) in enumerate(unique(rows, "stream", "fading")):
        wanted, rate = curve(rows, "wanted", "rate", stream=stream, fading=fading)
        label = f"digits{', no switch' if stream == 'stationary' else ' that switch'}, β = {fading}"
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
            for case in (BATCH, FULL, RANK, SECOND, SGMA, "drop", "exact", "exact, hybrid", "exact, rls"):
                found = chosen(rows, data=data, r=f"{rank}", B=f"{budget}", case=case)
                found = [row for row in found if row["precision"] != "float32"]
                cells.append(
                    f"{short(float(found[0]['mean']))} / {short(float(found[0]['frobenius']))}" if found else "–"
                )
            body.append([NAMES[data], f"{rank}, {budget}", *cells])
    heads = [BATCH, FULL, RANK, SECOND, SGMA, "drop", "exact", "exact, hybrid", "exact, rls"]
    return markdown(["", "r, B", *heads], body)


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


def excess(results: Results, iterations: int) -> float:
    """The largest of the starts."""
    return value(results["batch"], "most", what="excess", at=f"{iterations}")


def reached(results: Results, update: str, step: str, n: int, key: str = "mean") -> float:
    """After n samples: the residual (or another column) of online updates without a budget."""
    return value(results["convergence"], key, update=update, step=step, n=f"{n}")


def left(results: Results, case: str, data: str = "digits", r: int = 10, b: int = 50, key: str = "mean") -> float:
    """Residual (or another column) after one pass, float64."""
    rows = [row for row in results["approximation"] if row["precision"] != "float32"]
    return value(rows, key, data=data, case=case, r=f"{r}", B=f"{b}")


def cells(results: Results, *cases: str, key: str = "mean") -> list[list[float]]:
    """The same of every set, rank and budget of the table that all the cases have."""
    found = []
    for data, r, b in unique(results["approximation"], "data", "r", "B"):
        if (int(r), int(b)) in ((5, 50), (10, 50), (10, 100), (20, 100), (20, 200)):
            found.append([left(results, case, data, int(r), int(b), key) for case in cases])
    return found


def after(results: Results, stream: str, case: str, segment: int | None = None, key: str = "soon") -> float:
    """100 samples after a switch (or with key mean: at the segment's end), mean of segments 2 to 4 if none is given."""
    segments = (segment,) if segment else (2, 3, 4)
    rows = results["switching"]
    return float(np.mean([value(rows, key, stream=stream, case=case, segment=f"{each}") for each in segments]))


def score(results: Results, data: str, head: str, case: str, r: int = 20, b: int = 100, key: str = "mean") -> float:
    return value(results["learning"], key, data=data, head=head, case=case, r=f"{r}", B=f"{b}")


def scored(results: Results, data: str, head: str, case: str, r: int = 20, b: int = 100) -> str:
    return f"{score(results, data, head, case, r, b):.3f} ± {score(results, data, head, case, r, b, 'error'):.3f}"


def took(results: Results, case: str, n: int = 16_000, key: str = "learning") -> float:
    """Microseconds for a sample."""
    return value(results["times"], key, case=case, N=f"{n}")


def percent(values: Sequence[float]) -> str:
    """In per cent, least to most."""
    low, high = 100 * min(values), 100 * max(values)
    return f"{low:.0f} to {high:.0f} %" if f"{low:.0f}" != f"{high:.0f}" else f"{low:.0f} %"


def fact_alternation(results: Results) -> str:
    rises = value(results["batch"], "most", what="rises")
    told = {n: excess(results, n) for n in (11, 101, 201)}
    return claim(
        rises < 1e-12 and told[201] < 1e-5 and told[11] > 1e-3,
        f"the objective never rises. The largest relative difference from the closed-form optimum, over five random starts, is "
        f"{told[11]:.1e} after 11 iterations, {told[101]:.1e} after 101, and {told[201]:.1e} after 201".replace(
            "e-0", "e-"
        ),
    )


def fact_closed(results: Results) -> str:
    off = value(results["batch"], "most", what="thresholded")
    return claim(off < 1e-10, f"with K = V S² V′, K̂ is V (S − λ)₊² V′ to within {off:.0e}".replace("e-0", "e-"))


def fact_rank(results: Results) -> str:
    of = {at: int(value(results["batch"], what="rank", at=at)) for at in ("0.1", "1", "4")}
    return claim(
        of["0.1"] > 500 and of["4"] < 10,
        f"{of['0.1']} of the 600 singular values of 600 digits are above λ = 0.1, {of['1']} are above 1, and {of['4']} above 4",
    )


def fact_scale(results: Results) -> str:
    rows = chosen(results["batch"], what="scale")
    n, trace = (np.array([float(row[key]) for row in rows]) for key in ("at", "mean"))
    slope = float(np.polyfit(np.log(n), np.log(trace), 1)[0])
    return claim(
        0.4 < slope < 0.6,
        f"The optimum grows with the number of samples: tr G is {trace[0]:.1f} at N = {n[0]:.0f} and {trace[-1]:.1f} at "
        f"N = {n[-1]:.0f}, and grows about as N^{slope:.2f}",
    )


def fact_parametric(results: Results) -> str:
    told = []
    for step in ("decreasing", "constant", "averaged"):
        told.append([reached(results, "parametric", step, n) for n in (400, 2000)])
    same = [reached(results, "parametric", step, 2000, "affinity") for step in ("decreasing", "constant", "averaged")]
    return claim(
        all(1 < late < early < 1.1 for early, late in told) and max(same) < 0.99,
        f"with the decreasing step, the residual divided by the optimum's is {told[0][0]:.3f} after one pass and {told[0][1]:.3f} after "
        f"five; with the constant step, {told[1][0]:.3f} and {told[1][1]:.3f}; with the averaged step, {told[2][0]:.3f} and "
        f"{told[2][1]:.3f}. After five passes, the subspace contains {percent(same)} of the squared length of kernel PCA's directions",
    )


def fact_nonparametric(results: Results) -> str:
    fast = [reached(results, "nonparametric", "normalised, η 1.5", n) for n in (400, 2000)]
    slow = [reached(results, "nonparametric", "decreasing", n) for n in (400, 2000)]
    dearer = took(results, "OKFEB, exact, nonparametric", 4000) / took(results, "OKFEB, exact", 4000)
    return claim(
        1 < fast[1] < fast[0] < 1.1 < slow[1] < slow[0] and dearer > 4,
        f"With the normalised step and η = 1.5, the residual divided by the optimum's is {fast[0]:.3f} after one pass and {fast[1]:.3f} after "
        f"five; with the decreasing step, it is {slow[0]:.3f} and {slow[1]:.3f}. A nonparametric update takes {dearer:.0f} times as long as "
        "a parametric one (B = 50)",
    )


def fact_budget(results: Results) -> str:
    mean = [1 - exact / drop for exact, drop in cells(results, "exact", "drop")]
    error = [drop / exact for exact, drop in cells(results, "exact", "drop", key="frobenius")]
    return claim(
        min(mean) > 0.03 and min(error) > 1.1,
        f"in all {len(mean)} rows of the table, `exact` leaves {percent(mean)} less than `drop`, and the K̂ of `drop` is "
        f"{min(error):.1f} to {max(error):.1f} times as far from K",
    )


def fact_censoring(results: Results) -> str:
    rows = [row for row in results["censoring"] if row["wanted"] and float(row["wanted"]) > 0]
    off = max(abs(float(row["rate"]) - float(row["wanted"])) for row in rows)
    still = {
        row["wanted"]: float(row["mean"])
        for row in chosen(results["censoring"], stream="stationary", fading="1", eps="")
    }
    return claim(
        off < 0.01 and 1 < still["0.6"] / still["0"] < 1.06,
        f"rates from 20 to 90 % are reached within {100 * off:.1f} percentage points. Without a switch, censoring 60 % raises the "
        f"residual by {100 * (still['0.6'] / still['0'] - 1):.1f} %, and censoring 90 % raises it by "
        f"{100 * (still['0.9'] / still['0'] - 1):.1f} %",
    )


def fact_bounds(results: Results) -> str:
    rows = [row for row in results["approximation"] if row["case"] in (BATCH, "drop", "exact") and row["r"] != "40"]
    loose = [float(row["usual bound"]) / float(row["trace bound"]) for row in rows]
    trace = [float(row["trace bound"]) / float(row["frobenius"]) for row in rows]
    krr = [float(row["bound"]) / float(row["off"]) for row in results["bounds"]]
    return claim(
        min(loose) > 1.5 and min(trace) > 1 and min(krr) > 1,
        f"the trace bound is {min(trace):.0f} to {max(trace):.0f} times the error, and the usual bound is {min(loose):.1f} to "
        f"{max(loose):.1f} times the trace bound. The bound for ridge regression is {min(krr):.0f} to {max(krr):.0f} times the difference "
        "that it bounds",
    )


def fact_fourier(results: Results) -> str:
    mine, theirs = (scored(results, "digits", "logistic", case) for case in ("OKFEB, exact", "Fourier, r features"))
    errors = [scored(results, "bikeshare", "ridge", case) for case in ("OKFEB, exact", "Fourier, r features")]
    return claim(
        score(results, "digits", "logistic", "OKFEB, exact")
        > score(results, "digits", "logistic", "Fourier, r features") + 0.1
        and score(results, "bikeshare", "ridge", "OKFEB, exact")
        < score(results, "bikeshare", "ridge", "Fourier, r features"),
        f"with 20 features (B = 100), the accuracy on the digits is {mine} against {theirs} with Fourier features; the error on the "
        f"bike rentals is {errors[0]} against {errors[1]}",
    )


def fact_nystroem(results: Results) -> str:
    cases = ("OKFEB, exact", "Nyström, r features")
    digits = [scored(results, "digits", "logistic", case) for case in cases]
    cancer = [scored(results, "breast_cancer", "logistic", case) for case in cases]
    rentals = [scored(results, "bikeshare", "ridge", case) for case in cases]
    return claim(
        abs(score(results, "digits", "logistic", cases[0]) - score(results, "digits", "logistic", cases[1])) < 0.02,
        f"with 20 features (B = 100), the accuracy on the digits is {digits[0]} against {digits[1]} with Nyström features, and on breast "
        f"cancer {cancer[0]} against {cancer[1]}; the error on the bike rentals is {rentals[0]} against {rentals[1]}",
    )


def fact_tracking(results: Results) -> str:
    cases = (LIMIT, FROZEN, "exact", "exact, β 0.95", "drop")
    of = {case: after(results, "digits", case) for case in cases}
    return claim(
        of["exact, β 0.95"] < of["exact"] and of["drop"] < of["exact"] and of[LIMIT] < of["exact, β 0.95"],
        f"on the digits, 100 samples after a switch, `exact` leaves {of['exact, β 0.95']:.3f} with β = 0.95 and {of['exact']:.3f} without "
        f"forgetting; `drop` leaves {of['drop']:.3f} without forgetting. For comparison, kernel PCA of each regime leaves {of[LIMIT]:.3f}",
    )


def fact_flat(results: Results) -> str:
    cases = ("OKFEB, drop", "OKFEB, exact", "OKFEB, exact, rls")
    growth = [took(results, case, 64_000) / took(results, case, 1000) for case in cases]
    cost = [took(results, case, 64_000) for case in cases]
    return claim(
        max(growth) < 1.3,
        f"with 64,000 samples (B = 50, r = 10), one sample takes {cost[0]:.1f} µs with `drop`, {cost[1]:.1f} µs with `exact` and "
        f"{cost[2]:.1f} µs with `rls`: {min(growth):.2f} to {max(growth):.2f} times as long as with 1,000 samples",
    )


def fact_stream(results: Results) -> str:
    basis, mine = left(results, BASIS), left(results, "exact")
    return claim(
        basis < mine,
        f"pykernel's streaming basis is online Nyström in fixed memory. On the digits with B = 50, it leaves {basis:.3f} with its "
        f"50 coordinates; OKFEB leaves {mine:.3f} with 10 coordinates",
    )


def fact_static(results: Results) -> str:
    found = cells(results, "exact", RANK, SECOND, SGMA)
    below = sum(mine < rank for mine, rank, *_ in found)
    second = sum(mine < two for mine, _, two, _ in found)
    best = sum(sgma < mine for mine, *_, sgma in found)
    more = [mine / sgma - 1 for mine, *_, sgma in found]
    nearer = sum(mine < two for mine, two in cells(results, "exact", SECOND, key="frobenius"))
    alike = [
        abs(score(results, data, head, "OKFEB, exact") - score(results, data, head, case))
        for data, head in unique([row for row in results["learning"] if row["head"] != "ridge"], "data", "head")
        for case in ("Nyström, r features", "batch BKFE")
    ]
    return claim(
        below >= len(found) - 1 and best >= len(found) - 2 and max(alike) < 0.02,
        f"OKFEB with `exact` leaves less than *Nyström, rank r* in {below} of {len(found)} rows, and less than *second pass* in {second}. The "
        f"K̂ of `exact` is nearer to K than the K̂ of *second pass* in only {nearer} rows. If all samples are at hand, SGMA can choose the B "
        f"vectors: the best r directions in their span leave less than OKFEB in {best} rows. OKFEB leaves up to {100 * max(more):.0f} % "
        f"more. The accuracies of OKFEB, rank-r Nyström and batch BKFE at r = 20 differ by at most {max(alike):.3f}",
    )


def fact_memory(results: Results) -> str:
    cases = ("OKFEB, exact", "Nyström, equal memory", "Fourier, equal memory")
    numbers = int(score(results, "digits", "logistic", cases[0], key="words"))
    features = [int(score(results, "digits", "logistic", case, key="features")) for case in cases]
    digits = [scored(results, "digits", "logistic", case) for case in cases]
    rentals = [scored(results, "bikeshare", "ridge", case) for case in cases]
    worst = [score(results, "digits", "logistic", case) for case in cases]
    return claim(
        worst[0] < min(worst[1:]),
        f"if a map may take {numbers:,} numbers, as OKFEB's does with r = 20 and B = 100, the accuracy on the digits is {digits[0]} with "
        f"OKFEB's {features[0]} features, {digits[1]} with {features[1]} Nyström features and {digits[2]} with {features[2]} Fourier "
        f"features. In equal memory, the errors on the bike rentals are {rentals[0]}, {rentals[1]} and {rentals[2]}",
    )


def fact_speed(results: Results) -> str:
    mine = took(results, "OKFEB, exact"), took(results, "OKFEB, exact", key="features")
    fourier, nystroem = (took(results, case, key="features") for case in ("Fourier, B features", "Nyström, rank r"))
    return claim(
        min(mine) > nystroem,
        f"OKFEB takes {mine[0]:.1f} µs to learn a sample and {mine[1]:.1f} µs to compute its features. Ten Nyström features take "
        f"{nystroem:.2f} µs, and 50 Fourier features take {fourier:.2f} µs",
    )


def fact_retention(results: Results) -> str:
    again = [after(results, "digits", case, 3) for case in ("exact", "exact, β 0.95")]
    fresh = [after(results, "digits", case, 2) for case in ("exact", "exact, β 0.95")]
    last = [after(results, "digits", case, 2, "mean") for case in ("exact", "exact, β 0.95")]
    return claim(
        fresh[1] < fresh[0] and last[1] < last[0] and again[0] < again[1],
        f"Without forgetting, a second regime of 1,000 samples is hardly learned: {last[0]:.3f} is left at its end, against {last[1]:.3f} "
        f"with β = 0.95. But the first regime is still known when it comes back: 100 samples after the switch back, {again[0]:.3f} is left "
        f"without forgetting, and {again[1]:.3f} with β = 0.95",
    )


def fact_steps(results: Results) -> str:
    rls = reached(results, "rls", "", 100)
    grown = [reached(results, "parametric", step, 2000, "objective") for step in ("normalised", "normalised, η 1.5")]
    slow = [reached(results, update, "decreasing", 2000) for update in ("hybrid", "nonparametric")]
    return claim(
        rls < reached(results, "parametric", "constant", 100) and min(grown) > 3 and min(slow) > 1.1,
        "`rls` is ahead from the start. The normalised step ignores the scale of L: with the parametric update, the objective ends at "
        f"{grown[0]:.1f} times the optimum for η = 0.5, and {grown[1]:.1f} times for η = 1.5. The features do not depend on the scale, so the "
        "residual suffers less. The hybrid and nonparametric updates divide the step by the largest row sum of |K|, so decreasing steps "
        f"become too small: the residual stays at {slow[0]:.3f} and {slow[1]:.3f} times the optimum's.",
    )


def fact_ranks(results: Results) -> str:
    exact = [mine / best - 1 for mine, best in cells(results, "exact", BATCH)]
    drop = [mine / other - 1 for mine, other in cells(results, "drop", RANK)]
    farther = [mine / other for mine, other in cells(results, "drop", RANK, key="frobenius")]
    return claim(
        max(exact) < 0.25 and min(farther) > 1 and max(map(abs, drop)) < 0.12,
        f"`exact` leaves {percent(exact)} more than batch BKFE. The residual of `drop` differs from that of rank-r Nyström by "
        f"{100 * min(drop):+.0f} to {100 * max(drop):+.0f} %, and its K̂ is {min(farther):.2f} to {max(farther):.2f} times as far from K.",
    )


def fact_drained(results: Results) -> str:
    names = unique(results["approximation"], "data")
    step = [left(results, "drop, decreasing step", data) for data in names]
    rls = [left(results, "drop, rls", data) for data in names]
    return claim(
        min(step + rls) > 0.6,
        "`drop` needs a constant or normalised step. With r = 10 and B = 50, `drop` leaves "
        f"{min(step):.2f} to {max(step):.2f} with the decreasing step, and {min(rls):.2f} to {max(rls):.2f} with the update `rls`: the row of "
        "A of a new sample is small, so `drop` removes the sample at once",
    )


def fact_switches(results: Results) -> str:
    rls = after(results, "digits", "exact, rls, f 0.98, β 0.95")
    mine = after(results, "digits", "exact, β 0.95"), after(results, "digits", "exact, β 0.95", key="mean")
    drop = after(results, "digits", "drop", key="mean")
    still = [
        value(results["switching"], stream="stationary", case=case, segment="4") for case in ("exact", "exact, β 0.95")
    ]
    return claim(
        rls < mine[0] and mine[1] < drop and still[0] < still[1] < still[0] * 1.1,
        f"On the digits, `rls` with f = 0.98 and β = 0.95 follows fastest: {rls:.3f} is left 100 samples after a switch. At the end of "
        f"a segment, `exact` with β = 0.95 leaves {mine[1]:.3f}, and `drop` {drop:.3f}. Without a switch, β = 0.95 raises the residual by "
        f"{100 * (still[1] / still[0] - 1):.0f} %.",
    )


def fact_censored(results: Results) -> str:
    rows = results["censoring"]
    fixed = {row["eps"]: float(row["rate"]) for row in chosen(rows, stream="stationary", fading="1", wanted="")}
    saved = 1 - took(results, "OKFEB, exact, 0.8 censored") / took(results, "OKFEB, exact")
    return claim(
        fixed["0.6"] > fixed["0.2"] and saved > 0.05,
        f"With a fixed threshold ε, the rate is hard to predict: without a switch, ε = 0.2 censors {100 * fixed['0.2']:.0f} % of the samples, "
        f"0.4 censors {100 * fixed['0.4']:.0f} %, and 0.6 censors {100 * fixed['0.6']:.0f} %. Censoring 80 % saves {100 * saved:.0f} % "
        "of the learning time.",
    )


def fact_raw(results: Results) -> str:
    pairs = (("digits", "logistic"), ("breast_cancer", "logistic"), ("bikeshare", "ridge"), ("diabetes", "ridge"))
    raw = [scored(results, data, head, "linear") for data, head in pairs]
    mine = [scored(results, data, head, "OKFEB, exact") for data, head in pairs]
    means = [[score(results, data, head, case) for case in ("linear", "OKFEB, exact")] for data, head in pairs]
    return claim(
        means[0][1] - means[0][0] < 0.01 and means[1][1] - means[1][0] < 0.01 and means[2][1] < 0.8 * means[2][0],
        f"the raw inputs are as good as 20 features on the digits (accuracy {raw[0]} against {mine[0]}), breast cancer ({raw[1]} against "
        f"{mine[1]}) and diabetes (error {raw[3]} against {mine[3]}), but not on the bike rentals (error {raw[2]} against {mine[2]})",
    )


def fact_times(results: Results) -> str:
    batch = [took(results, BATCH, n) for n in (500, 4000)]
    mine = took(results, "OKFEB, exact", 4000)
    return claim(
        batch[1] > batch[0] and batch[1] / mine > 10,
        f"Batch BKFE takes {batch[0]:.0f} µs for a sample at N = 500, and {batch[1]:.0f} µs at N = 4,000, where it takes "
        f"{batch[1] / mine:.0f} times as long as OKFEB.",
    )


FACTS: dict[str, Callable[[Results], str]] = {
    name.removeprefix("fact_"): made for name, made in list(globals().items()) if name.startswith("fact_")
}
