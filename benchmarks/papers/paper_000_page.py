"""The figures, and the tables and phrases of docs/paper-000.md, from the results of ``paper_000.py``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import benchmarks.papers.basis_pages as pages
from benchmarks.papers.basis_pages import COLOURS, Results, chosen, curve, value
from benchmarks.papers.paper_004_page import claim, markdown

RHO = ("1", "5", "20", "59", "200", "all")
V = ("20", "59", "200", "all")
DEFINED, FVS, LITERAL, GAIN, EXHAUSTIVE = "FVS, as defined", "FVS", "EFVS, literal", "EFVS", "exhaustive"
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
            for case, style in ((DEFINED, ":"), (FVS, "--")):
                left.plot(*curve(results["times"], key="ms", data=timed, case=case), style, color="#222222", label=case)
        right.plot(
            *curve(results["residuals"], data=data, case="limit"), ":", color="#222222", label="eigenvalue limit"
        )
        left.set(xlabel="basis vectors n", ylabel="CPU time (ms)", yscale="log", title=f"({'ac'[row]}) run time")
        right.set(xlabel="basis vectors n", ylabel="mean δ", yscale="log", title=f"({'bd'[row]}) mean relative error")
        left.set_ylim(top=left.get_ylim()[1] * 8)
        if left.lines:
            left.legend(frameon=False, fontsize=7, loc="upper left", ncols=2)
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
    styles = {DEFINED: ("#222222", "s"), FVS: ("#777777", "s"), LITERAL: ("#D55E00", "o"), GAIN: ("#0072B2", "o")}
    styles |= {"EFVS, lazy": ("#56B4E9", "^"), EXHAUSTIVE: ("#009E73", "D")}
    for case, (colour, marker) in styles.items():
        points = []
        for row in chosen(results.get("times", ()), case=case):
            errors = {"FVS, as defined": "FVS", FVS: "FVS", "exhaustive": "exhaustive"}
            wanted = {"data": data, "case": errors.get(case, "EFVS"), "rho": row["rho"], "v": row["v"], "n": row["n"]}
            found = chosen(results["residuals"], **wanted)
            if found and row["n"] in ("60", "100", "5"):
                points.append((float(row["ms"]), float(found[0]["mean"])))
        if points:
            axis.plot(*zip(*sorted(points), strict=True), marker, color=colour, markersize=5, label=case, alpha=0.8)
    axis.set(
        xscale="log", yscale="log", xlabel="CPU time (ms)", ylabel="mean δ", title="error and time, n = 60 and 100"
    )
    if axis.lines:
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


def fact_same(results: Results) -> str:
    rows = results["same"]
    sets = list(dict.fromkeys(row["data"] for row in rows))
    return claim(
        all(row["equal"] == row["n"] for row in rows),
        f"the same {rows[0]['n']} rows of {rows[0]['l']}, in the same order, on {len(sets)} sets",
    )


def fact_bordering(results: Results) -> str:
    times = {n: timed(results, DEFINED, n) / timed(results, FVS, n) for n in (20, 60, 100)}
    return claim(
        min(times.values()) > 1.5,
        f"`FVS, as defined` takes {times[20]:.1f} times as long at n = 20, {times[60]:.1f} times at n = 60, and {times[100]:.1f} times at n = 100",
    )


def fact_all_candidates(results: Results) -> str:
    times = {n: timed(results, DEFINED, n) / timed(results, LITERAL, n) for n in (20, 60, 100)}
    gain = {n: timed(results, DEFINED, n) / timed(results, GAIN, n) for n in (60, 100)}
    return claim(
        times[60] > 1.1 and gain[60] > 3,
        f"`FVS, as defined` takes {times[60]:.1f} times as long as `EFVS, literal` at n = 60, and {times[100]:.1f} times at n = 100. "
        f"Compared with the form `EFVS`, which computes only the increase of J, it takes {gain[60]:.0f} times as long at n = 60, "
        f"and {gain[100]:.0f} times at n = 100",
    )


def fact_rho(results: Results) -> str:
    faster = timed(results, LITERAL, 60) / timed(results, LITERAL, 60, "59")
    more = {rho: error(results, "EFVS", 60, rho) / error(results, "EFVS", 60) - 1 for rho in RHO}
    digits = error(results, "EFVS", 60, "59", data="digits") / error(results, "EFVS", 60, data="digits") - 1
    return claim(
        faster > 4 and max(more["59"], digits) < 0.06 < more["5"] < more["1"],
        f"at n = 60, `EFVS, literal` takes {faster:.1f} times as long with all candidates as with ρ = 59. Compared with all candidates, "
        f"ρ = 59 leaves out {100 * more['59']:.0f} % more (ρ = 200: {100 * more['200']:.0f} %, ρ = 20: {100 * more['20']:.0f} %, "
        f"ρ = 5: {100 * more['5']:.0f} %, ρ = 1: {100 * more['1']:.0f} %). On the digits, ρ = 59 leaves out {100 * digits:.0f} % more",
    )


def fact_v(results: Results) -> str:
    faster = timed(results, LITERAL, 60, "59") / timed(results, LITERAL, 60, "59", "59")
    more = {v: error(results, "EFVS", 60, "59", v) / error(results, "EFVS", 60, "59") - 1 for v in ("200", "59", "20")}
    digits = error(results, "EFVS", 60, "59", "59", "digits") / error(results, "EFVS", 60, "59", data="digits") - 1
    return claim(
        faster > 1.2 and 0.03 < more["59"] < more["20"] and more["200"] < more["59"] and digits < 0.06,
        f"at n = 60 and ρ = 59, `EFVS, literal` takes {faster:.1f} times as long with all rows as with v = 59. Compared with all rows, "
        f"v = 59 leaves out {100 * more['59']:.0f} % more (v = 200: {100 * more['200']:.0f} %, v = 20: {100 * more['20']:.0f} %). "
        f"On the digits, v = 59 leaves out {100 * digits:.0f} % more",
    )


def fact_random(results: Results) -> str:
    one, drawn = error(results, "EFVS", 60, "1"), error(results, "uniform", 60)
    return claim(
        abs(one / drawn - 1) < 0.05, f"EFVS leaves out {one:.3f} at n = 60, and uniform picks leave out {drawn:.3f}"
    )


def fact_alone(results: Results) -> str:
    """Of the columns of the residuals' table."""
    pairs = [
        [error(results, case, n, "59", "59", data) for case in ("EFVS", "EFVS, R and T drawn alone")]
        for data in ("boston", "digits")
        for n in (20, 60, 100)
    ]
    less = sum(apart < alone for apart, alone in pairs)
    return claim(less >= len(pairs) - 1, f"less in {less} of {len(pairs)} columns of the table")


def fact_all_at_once(results: Results) -> str:
    mine = timed(results, EXHAUSTIVE, 100)
    others = [timed(results, GAIN, 100, "59", v) for v in ("all", "59")]
    defined = timed(results, DEFINED, 60) / timed(results, EXHAUSTIVE, 60)
    more = error(results, "EFVS", 100, "59", "59") / error(results, EXHAUSTIVE, 100) - 1
    return claim(
        mine < others[0] and defined > 50 and more > 0.05,
        f"{milliseconds(mine)} ms for n = 100 (at n = 60, FVS as defined takes {defined:.0f} times as long). EFVS takes "
        f"{milliseconds(others[0])} ms with ρ = 59. With v = 59, too, it takes {milliseconds(others[1])} ms and leaves out "
        f"{100 * more:.0f} % more than all candidates on all rows",
    )


def fact_flat(results: Results) -> str:
    def of(case: str, l: int, key: str) -> float:
        return value(results["cost"], key, case=case, l=f"{l}")

    most = max(int(row["l"]) for row in results["cost"])
    lazy = [of("EFVS, lazy", l, "evaluations") for l in (500, most)]
    eager = [of("EFVS, eager", l, "evaluations") for l in (500, most)]
    ms = [[of(f"EFVS, {form}", l, "ms") for l in (500, most)] for form in ("lazy", "eager")]
    return claim(
        lazy[1] / lazy[0] < 1.01 and eager[1] / eager[0] > 2 and ms[0][1] / ms[0][0] < 1.6 < ms[1][1] / ms[1][0],
        f"with {500} rows, the lazy form computes {lazy[0]:,.0f} kernel values in {milliseconds(ms[0][0])} ms; with {most:,} rows, it "
        f"computes {lazy[1]:,.0f} values in {milliseconds(ms[0][1])} ms. The listing computes {eager[0]:,.0f} values in "
        f"{milliseconds(ms[1][0])} ms with {500} rows, and {eager[1]:,.0f} values in {milliseconds(ms[1][1])} ms with {most:,} rows",
    )


def fact_ranks(results: Results) -> str:
    hits = [float(row["mean"]) for row in results["ranks"]]
    return claim(min(hits) > 0.949, f"in {100 * min(hits):.1f} to {100 * max(hits):.1f} % of the draws")


def fact_part(results: Results) -> str:
    parts = [100 * float(row["part"]) for row in results["ranks"]]
    return claim(min(parts) < 90, f"{min(parts):.0f} to {max(parts):.0f} % of the best gain")


def fact_dropped(results: Results) -> str:
    of = {row["what"]: float(row["value"]) for row in chosen(results["errata"], entry="dropped")}
    return claim(
        of["its gain"] > of["best other"] and of["delta"] < 1e-4,
        f"its δ is only {of['delta']:.0e}, but its gain is {of['its gain']:.3f}, and theirs at most {of['best other']:.3f}".replace(
            "e-0", "e-"
        ),
    )


def fact_epsilon(results: Results) -> str:
    gain = {row["epsilon"]: float(row["gain"]) for row in results["eliminations"]}
    gone = {row["epsilon"]: int(row["dropped"]) for row in results["eliminations"]}
    return claim(
        gain["0.1"] > 1 and gone["0.001"] == 0 and gone["0.01"] > 0,
        f"with ε = 0.1, the best dropped candidate gains up to {gain['0.1']:.2f} times as much as the best one that is kept; with ε = 0.01, "
        f"up to {gain['0.01']:.2f} times; with ε = 0.001 or less, no candidate is dropped",
    )


def fact_harmless(results: Results) -> str:
    errors = {row["epsilon"]: float(row["mean"]) for row in results["eliminations"]}
    spread = max(errors.values()) / min(errors.values()) - 1
    return claim(spread < 0.03, f"at n = 100, the values of 1 − J for four different ε are within {100 * spread:.1f} %")


def fact_unbiased(results: Results) -> str:
    rows = results["estimates"]
    away = [abs(float(row["mean"])) / float(row["error"]) for row in rows]
    row = chosen(rows, data="boston", n="20", v="59")[0]
    return claim(
        max(away) < 3.5,
        f"in all {len(rows)} settings, the mean of the estimates is within {max(away):.1f} standard errors of the true value. If 1 − J is "
        f"{float(row['true']):.2f}, a single estimate on v = 59 rows has a standard deviation of {float(row['deviation']):.3f}",
    )


def fact_stop(results: Results) -> str:
    rows = chosen(results["stops"], data="boston", form="lazy")
    late = [float(row["mean"]) / float(row["tau"]) for row in rows]
    return claim(min(late) > 1, f"1 − J at the stop is {min(late):.2f} to {max(late):.2f} times τ")


def fact_disagree(results: Results) -> str:
    part = value(results["errata"], "value", entry="relative", what="disagree")
    return claim(part > 0.02, f"{100 * part:.0f} % of the rows")


FACTS: dict[str, Callable[[Results], str]] = {
    name.removeprefix("fact_"): made for name, made in list(globals().items()) if name.startswith("fact_")
}
