"""The figures, and the tables and phrases of docs/paper-000.md, from the results of ``paper_000.py``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import basis_pages as pages
from basis_pages import COLOURS, Results, chosen, curve, value
from paper_004_page import markdown

RHO = ("1", "5", "20", "59", "200", "all")
V = ("20", "59", "200", "all")
DEFINED, BORDERED, LITERAL, GAIN, EXHAUSTIVE = "FVS, as defined", "FVS, bordered", "EFVS, literal", "EFVS", "exhaustive"
NAMES = {"boston": "Boston housing", "digits": "Digits", "diabetes": "Diabetes"}


def first(results: Results, name: str) -> str:
    """The set that a figure shows: Boston, if it is there."""
    found = list(dict.fromkeys(row["data"] for row in results[name]))
    return "boston" if "boston" in found else found[0]


# ----------------------------------------------------------------------------------------------------------- figures


def figure_1(results: Results, path: Path) -> None:
    """As the paper's: (a), (b) rho varies; (c), (d) v varies, with rho = 59."""
    data, timed = first(results, "residuals"), first(results, "times") if results.get("times") else ""
    figure, axes = pages.canvas(10, 7.4, 2, 2)
    for row, (key, counts, fixed) in enumerate((("rho", RHO, {"v": "all"}), ("v", V, {"rho": "59"}))):
        left, right = axes[2 * row : 2 * row + 2]
        for at, count in enumerate(counts):
            wanted = {key: count, **fixed}
            colour, text = COLOURS[at], f"{'ρ' if key == 'rho' else 'v'} = {count.replace('all', '∞')}"
            if timed:
                n, ms = curve(results["times"], key="ms", data=timed, case=LITERAL, **wanted)
                left.plot(
                    n, ms, "o-", color=colour, markersize=4, linewidth=1.4, label=f"EFVS, {text}" if len(n) else None
                )
            n, mean = curve(results["residuals"], data=data, case="EFVS", **wanted)
            right.plot(n, mean, "o-", color=colour, markersize=4, linewidth=1.4, label=text if len(n) else None)
        if timed:
            for case, style in ((DEFINED, ":"), (BORDERED, "--")):
                left.plot(*curve(results["times"], key="ms", data=timed, case=case), style, color="#222222", label=case)
        right.plot(
            *curve(results["residuals"], data=data, case="limit"), ":", color="#222222", label="eigenvalue limit"
        )
        left.set(xlabel="basis vectors n", ylabel="CPU time (ms)", yscale="log", title=f"({'ac'[row]}) run time")
        right.set(xlabel="basis vectors n", ylabel="mean δ", yscale="log", title=f"({'bd'[row]}) mean relative error")
        left.legend(frameon=False, fontsize=7)
        right.legend(frameon=False, fontsize=7)
    pages.keep(figure, path)


def figure_2(results: Results, path: Path) -> None:
    """Cost against l."""
    figure, (left, right) = pages.canvas(10, 4.2, 2)
    for at, case in enumerate(dict.fromkeys(row["case"] for row in results["cost"])):
        for axis, key in ((left, "ms"), (right, "evaluations")):
            l, found = curve(results["cost"], "l", key, case=case)
            axis.plot(l, found, "o-", color=COLOURS[at], markersize=4, linewidth=1.4, label=case)
    for axis, text in ((left, "CPU time (ms)"), (right, "kernel values")):
        axis.set(xscale="log", yscale="log", xlabel="rows l", ylabel=text)
    left.legend(frameon=False, fontsize=8)
    pages.keep(figure, path)


def figure_3(results: Results, path: Path) -> None:
    """What time buys: error over time, of what was timed."""
    data = first(results, "residuals")
    figure, (axis,) = pages.canvas(7.5, 4.6)
    styles = {DEFINED: ("#222222", "s"), BORDERED: ("#777777", "s"), LITERAL: ("#D55E00", "o"), GAIN: ("#0072B2", "o")}
    styles |= {"EFVS, lazy": ("#56B4E9", "^"), EXHAUSTIVE: ("#009E73", "D")}
    for case, (colour, marker) in styles.items():
        points = []
        for row in chosen(results.get("times", ()), case=case):
            errors = {"FVS, as defined": "FVS", "FVS, bordered": "FVS", "exhaustive": "exhaustive"}
            wanted = {"data": data, "case": errors.get(case, "EFVS"), "rho": row["rho"], "v": row["v"], "n": row["n"]}
            found = chosen(results["residuals"], **wanted)
            if found and row["n"] in ("60", "100", "5"):
                points.append((float(row["ms"]), float(found[0]["mean"])))
        if points:
            axis.plot(*zip(*sorted(points), strict=True), marker, color=colour, markersize=5, label=case, alpha=0.8)
    axis.set(
        xscale="log", yscale="log", xlabel="CPU time (ms)", ylabel="mean δ", title="error and time, n = 60 and 100"
    )
    axis.legend(frameon=False, fontsize=8)
    pages.keep(figure, path)


FIGURES: dict[str, Callable[[Results, Path], None]] = {"figure-1": figure_1, "figure-2": figure_2, "figure-3": figure_3}


# ------------------------------------------------------------------------------------------------------------ tables


def milliseconds(ms: float) -> str:
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


def timed(results: Results, case: str, n: int, rho: str = "all", v: str = "all") -> float:
    return value(results["times"], "ms", case=case, rho=rho, v=v, n=f"{n}")


def error(results: Results, case: str, n: int, rho: str = "all", v: str = "all", data: str = "boston") -> float:
    """Mean delta."""
    return value(results["residuals"], data=data, case=case, rho=rho, v=v, n=f"{n}")


def table_times(results: Results) -> str:
    body = []
    for case, rho, v in dict.fromkeys((row["case"], row["rho"], row["v"]) for row in results["times"]):
        ms = [milliseconds(timed(results, case, n, rho, v)) for n in (20, 60, 100)]
        told = "FVS" if case.startswith("FVS") else case if case == EXHAUSTIVE else "EFVS"
        if case.startswith("EFVS") and "lazy" not in case and v not in ("all",):
            told = ""  # residuals of small v are those of the lazy form
        errors = [f"{error(results, told, n, rho, v):.4f}" if told else "" for n in (20, 60, 100)]
        body.append([case, rho, v, *ms, *errors])
    return markdown(
        ["method", "ρ", "v", *(f"ms, n = {n}" for n in (20, 60, 100)), *(f"δ, n = {n}" for n in (20, 60, 100))], body
    )


def table_residuals(results: Results) -> str:
    body = []
    sets = list(dict.fromkeys(row["data"] for row in results["residuals"]))
    for case, rho, v in dict.fromkeys((row["case"], row["rho"], row["v"]) for row in results["residuals"]):
        cells = []
        for data in sets:
            for n in (20, 60, 100):
                found = chosen(results["residuals"], data=data, case=case, rho=rho, v=v, n=f"{n}")
                cells.append("–" if not found else f"{float(found[0]['mean']):.4f}")
        body.append([case, rho, v, *cells])
    heads = [f"{NAMES[data]}, {n}" for data in sets for n in (20, 60, 100)]
    return markdown(["method", "ρ", "v", *heads], body)


def table_cost(results: Results) -> str:
    sizes = sorted({int(row["l"]) for row in results["cost"]})
    body = []
    for case in dict.fromkeys(row["case"] for row in results["cost"]):
        cells = []
        for l in sizes:
            found = chosen(results["cost"], case=case, l=f"{l}")
            cells.append(f"{milliseconds(float(found[0]['ms']))}; {int(found[0]['evaluations']):,}" if found else "–")
        body.append([case, *cells])
    return markdown(["ms; kernel values", *(f"l = {l:,}" for l in sizes)], body)


def table_stops(results: Results) -> str:
    body = []
    for data in dict.fromkeys(row["data"] for row in results["stops"]):
        for tau in dict.fromkeys(row["tau"] for row in results["stops"]):
            row = [NAMES[data], tau]
            for form in ("lazy", "eager"):
                (found,) = chosen(results["stops"], data=data, tau=tau, form=form)
                row += [
                    found["n"],
                    f"{float(found['mean']):.3f} ({float(found['least']):.3f} … {float(found['most']):.3f})",
                ]
            body.append(row)
    return markdown(
        ["", "τ", "lazy: n", "1 − J there (least … largest)", "eager: n", "1 − J there (least … largest)"], body
    )


def table_estimates(results: Results) -> str:
    body = []
    for row in results["estimates"]:
        away = f"{float(row['mean']):+.4f} ± {float(row['error']):.4f}"
        body.append([NAMES[row["data"]], row["n"], row["v"], row["true"], away, row["deviation"]])
    return markdown(["", "n", "v", "1 − J", "estimate less truth", "standard deviation of one"], body)


def table_eliminations(results: Results) -> str:
    body = [
        [row["epsilon"], row["dropped"], f"{float(row['gain']):.2f}", f"{float(row['mean']):.4f}"]
        for row in results["eliminations"]
    ]
    return markdown(["ε", "candidates dropped, at most", "best dropped / best kept gain, at most", "δ, n = 100"], body)


def table_ranks(results: Results) -> str:
    body = [
        [NAMES[row["data"]], row["n"], f"{float(row['mean']):.3f}", f"{100 * float(row['part']):.0f} %", row["spread"]]
        for row in results["ranks"]
    ]
    return markdown(
        ["", "n", "one of the best 5 % among 59", "gain of the best of 59 / best of all", "best / median gain"], body
    )


def table_errata(results: Results) -> str:
    def of(entry: str, what: str) -> float:
        return value(results["errata"], "value", entry=entry, what=what)

    body = [
        [
            "1.2",
            "projection K_Sᵢᵀ K_SS K_Sᵢ",
            f"{of('schur', 'printed'):.3f}",
            "K_Sᵢᵀ K_SS⁻¹ K_Sᵢ",
            f"{of('schur', 'right'):.3f}",
        ],
    ]
    return markdown(["where", "printed", "Schur complement then", "should be", "Schur complement then"], body)


TABLES: dict[str, Callable[[Results], str]] = {
    name.removeprefix("table_"): made for name, made in list(globals().items()) if name.startswith("table_")
}


# ------------------------------------------------------------------------------------------------ numbers of the text


def ratio(a: float, b: float) -> str:
    return f"{a / b:.0f}" if a / b >= 9.95 else f"{a / b:.1f}"
