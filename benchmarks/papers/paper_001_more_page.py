"""The figures, the tables and the phrases of docs/paper-001.md that come from ``paper_001_more.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

import benchmarks.papers.basis_pages as pages
from benchmarks.papers.basis_pages import COLOURS, Results, chosen, curve, value
from benchmarks.papers.paper_001_page import NAMES, keep, name_lines, short, unique
from benchmarks.papers.paper_004_page import claim
from benchmarks.tables import markdown

STREAMS = {
    "bikes": "Bike rentals, inputs",
    "bikes, a day": "Bike rentals, a day",
    "water": "Water flow, a day",
    "stocks": "Stocks",
    "gearbox": "Gearbox",
}
SETS = {
    "digits": "the digits",
    "breast_cancer": "breast cancer",
    "bikeshare": "the bike rentals",
    "diabetes": "diabetes",
}
FORGETTING = ("exact, β 0.999", "exact, β 0.99", "exact, β 0.95", "drop", "rls, f 0.98, β 0.95")
PLAIN, FROZEN = "exact", "frozen"
CAME, SHUFFLED = "as it came", "shuffled"


# ----------------------------------------------------------------------------------------------------------- figures


def figure_1(results: Results, path: Path) -> None:
    """The gradient."""
    rows = results["gradient"]
    drawn, axes = pages.canvas(11, 4.6, 2, sharey=True)
    colours = dict(zip(unique(rows, "case"), COLOURS, strict=False))
    for axis, update in zip(axes, ("parametric", "nonparametric"), strict=True):
        for case in unique(chosen(rows, update=update), "case"):
            for ridge, line in (("fixed", "-"), ("λ/n", "--")):
                n, size = curve(rows, case=case, ridge=ridge)
                label = f"{case.removesuffix(', A')}, ridge {ridge}"
                axis.plot(n, size, line, color=colours[case], marker="o", markersize=3, linewidth=1.4, label=label)
        axis.set(xscale="log", yscale="log", xlabel="samples", title=update)
        axis.legend(frameon=False, fontsize=7, ncols=2, loc="lower left")
    axes[0].set_ylabel("norm of the gradient of the cost so far")
    keep(drawn, path)


def figure_2(results: Results, path: Path) -> None:
    """Real streams and the gearbox, by budget."""
    rows = results["streams"]
    there = unique(rows, "stream")
    drawn, axes = pages.canvas(13, 5.6, len(there), 2, sharex=True)
    colours = dict(zip(unique(rows, "case"), ("#222222", *COLOURS), strict=False))
    for line, order in enumerate((CAME, SHUFFLED)):
        for column, stream in enumerate(there):
            axis = axes[line * len(there) + column]
            for case in unique(rows, "case"):
                n, left = curve(rows, x="B", stream=stream, order=order, case=case)
                axis.plot(n, left, color=colours[case], marker="o", markersize=3, linewidth=1.3, label=case)
            axis.set(xscale="log", title=f"{STREAMS[stream]}, {order}" if line else STREAMS[stream])
            axis.title.set_fontsize(8)
            axis.set_xticks(n, [f"{b:.0f}" for b in n])
            axis.minorticks_off()
            if line:
                axis.set_xlabel("B")
            if not column:
                axis.set_ylabel("left before it is learned")
    name_lines(drawn, axes[0], 7)
    keep(drawn, path)


FIGURES: dict[str, Callable[[Results, Path], None]] = {"figure-1": figure_1, "figure-2": figure_2}


# ------------------------------------------------------------------------------------------------------------ tables


def parts(x: str | float) -> str:
    """Three digits, of small and of large numbers."""
    return f"{float(x):,.0f}" if float(x) >= 100 else f"{float(x):.3g}"


def table_classification(results: Results) -> str:
    lines = []
    for row in chosen(results["classification"], case="OKFEB, exact"):
        line = [NAMES[row["data"]], row["c"], row["r"]]
        line += [parts(row[key]) for key in ("mean", "below", "above", "spectral", "trace", "usual", "nothing")]
        line += [f"{float(row['off']):.2f}; {float(row['off bound']):.2f}; {parts(row['off before'])}"]
        line += [f"{short(float(row['accuracy']))}; {short(float(row['accuracy hat']))}", f"{float(row['differ']):.1%}"]
        lines.append(line)
    heads = ["data", "c", "r", "loss", "at least", "at most", "before: \\|K − K̂\\|₂", "trace", "usual", "f = 0"]
    heads += ["f − f̂; at most; before", "accuracy on K; on K̂", "told otherwise"]
    return markdown(heads, lines)


def slope(results: Results, case: str, ridge: str, least: int = 400, key: str = "mean") -> float:
    """Exponent of n, from so many samples on."""
    n, size = curve(results["gradient"], key=key, case=case, ridge=ridge)
    return float(np.polyfit(np.log(n[n >= least]), np.log(size[n >= least]), 1)[0])


def table_gradient(results: Results) -> str:
    rows, lines = results["gradient"], []
    shown = ("25", "100", "400", "1600", "6400", "12800")
    for case, update, ridge in unique(rows, "case", "update", "ridge"):
        told = {"case": case, "ridge": ridge}
        line = [update, case.removesuffix(", A"), ridge, *(f"{value(rows, n=n, **told):.1e}" for n in shown)]
        line += [f"{slope(results, case, ridge):.2f}", f"{value(rows, 'excess', n=shown[-1], **told):.1%}"]
        lines.append(line)
    heads = ["update", "step", "ridge", *(f"n = {int(n):,}" for n in shown), "exponent", "cost above the least"]
    return markdown(heads, lines)


def table_choice(results: Results) -> str:
    rows = results["choice"]
    sets = unique(rows, "data")
    lines = []
    for way in unique(rows, "way"):
        line = [way]
        for data in sets:
            (row,) = chosen(rows, way=way, data=data)
            cost = f"{float(row['cost']):+.3f} ± {float(row['cost error']):.3f}"
            line.append(f"{short(float(row['mean']))} ({cost}); {row['shrinkage']}, {row['r']}")
        lines.append(line)
    return markdown(["chosen by", *(NAMES[data] for data in sets)], lines)


def table_streams(results: Results) -> str:
    rows, lines = results["streams"], []
    cases = unique(rows, "case")
    for stream, order, b in unique(rows, "stream", "order", "B"):
        there = chosen(rows, stream=stream, order=order, B=b)
        least = min(float(row["mean"]) for row in there)
        line = [STREAMS[stream], order, b]
        for case in cases:
            (row,) = chosen(there, case=case)
            text = short(float(row["mean"]))
            line.append(f"**{text}**" if float(row["mean"]) == least else text)
        lines.append([*line, short(float(there[0]["limit"]))])
    return markdown(["stream", "order", "B", *cases, "kernel PCA of all"], lines)


RLS = "rls, f 0.98, β 0.95"
BUDGETS = (12, 24, 48, 96)


def row_of(results: Results, stream: str, order: str, b: int, case: str) -> Mapping[str, str]:
    (row,) = chosen(results["streams"], stream=stream, order=order, B=f"{b}", case=case)
    return row


def off(results: Results, stream: str, b: int, order: str = CAME, case: str = RLS) -> tuple[float, float]:
    """How much less is left than without forgetting, and its standard error."""
    row = row_of(results, stream, order, b, case)
    return -float(row["over exact"]), float(row["over exact error"])


def table_forgetting(results: Results) -> str:
    lines = []
    for stream in STREAMS:
        gains = ["{:.3f} ± {:.3f}".format(*off(results, stream, b)).replace("-", "−") for b in BUDGETS]
        lines.append([STREAMS[stream], *gains])
    return markdown(["stream", *(f"B = {b}" for b in BUDGETS)], lines)


TABLES: dict[str, Callable[[Results], str]] = {
    "bound for classification": table_classification,
    "gradient": table_gradient,
    "choice": table_choice,
    "real streams": table_streams,
    "forgetting": table_forgetting,
}


# ------------------------------------------------------------------------------------------------ numbers of the text


def span(values: Iterable[float], digits: str = ".2f") -> str:
    found = list(values)
    return f"{min(found):{digits}} to {max(found):{digits}}"


def fact_classification(results: Results) -> str:
    rows = results["classification"]
    after, before = ([float(row[key]) / float(row["mean"]) for row in rows] for key in ("above", "spectral"))
    says = [row for row in rows if float(row["spectral"]) < float(row["nothing"])]
    return claim(
        min(after) >= 1 and min(before) > 1 and {row["c"] for row in says} == {"0.1"},
        f"after training {min(after):.2f} to {max(after):.0f} times what it bounds; before, from \\|K − K̂\\|₂, "
        f"{min(before):.0f} to {max(before):,.0f} times, and below what f = 0 loses in {len(says)} of {len(rows)} cells, "
        "all with c = 0.1",
    ).replace("\\\\", "\\")


def fact_predictions(results: Results) -> str:
    rows = results["classification"]
    loose = [float(row["off bound"]) / float(row["off"]) for row in rows]
    told = {
        data: [float(row["differ"]) for row in chosen(rows, data=data, c="1")] for data in ("digits", "breast_cancer")
    }
    return claim(
        min(loose) > 1,
        f"Predictions differ by {1 / max(loose):.2f} to {1 / min(loose):.2f} times what they may; with c = 1 "
        f"{100 * min(told['digits']):.0f} to {100 * max(told['digits']):.0f} % of the test digits and "
        f"{100 * min(told['breast_cancer']):.1f} to {100 * max(told['breast_cancer']):.1f} % of breast cancer's are told "
        "otherwise",
    )


def fact_rank(results: Results) -> str:
    """Batch BKFE: from some rank on the bound no longer falls."""
    rows = chosen(results["classification"], data="breast_cancer", c="1", case="batch BKFE")
    at = {row["r"]: (float(row["mean"]), float(row["spectral"])) for row in rows}
    return claim(
        at["50"][1] == at["20"][1] and at["50"][0] < 0.6 * at["20"][0],
        f"with batch BKFE, c = 1, breast cancer, the loss is {at['20'][0]:.2f} above that on K with r = 20 and "
        f"{at['50'][0]:.2f} with r = 50, and the bound {at['20'][1]:.1f} with both",
    )


def fact_gradient(results: Results) -> str:
    falls = {
        (case, ridge): slope(results, case, ridge)
        for case in ("η 1", "η 8", "η 1, A", "η 8, A")
        for ridge in ("λ/n", "fixed")
    }
    least, eight = ([falls[case, ridge] for ridge in ("λ/n", "fixed")] for case in ("η 1", "η 8"))
    own = [falls[case, ridge] for case in ("η 1, A", "η 8, A") for ridge in ("λ/n", "fixed")]
    first, last = (value(results["gradient"], case="η 1", ridge="λ/n", n=n) for n in ("400", "12800"))
    return claim(
        max(falls.values()) < 0 and min(least) > -0.1 and max(eight) < -0.2,
        f"from 400 to 12,800 samples it falls from {first:.3f} to {last:.3f} with η = 1, as n^−{-max(least):.2f}; "
        f"with η = 8 as n^−{-max(eight):.2f} to n^−{-min(eight):.2f}; with steps in A as n^−{-max(own):.2f} to "
        f"n^−{-min(own):.2f}",
    )


def fact_halving(results: Results) -> str:
    slower = 2 ** (-1 / slope(results, "η 1", "λ/n"))
    return claim(slower > 1e4, "halving the gradient takes more than ten thousand times the samples")


def fact_scale(results: Results) -> str:
    told = {"case": "normalised, A", "ridge": "λ/n", "n": "12800"}
    size, scale, excess = (value(results["gradient"], key, **told) for key in ("mean", "scale", "excess"))
    other = value(results["gradient"], case="η 8", ridge="λ/n", n="12800")
    return claim(
        size < other and excess > 0.5,
        f"with the normalised step and λ/n the nonparametric update ends at {size:.4f}, lower than all steps of the propositions, but "
        f"tr G is {scale:,.0f} and the cost {1 + excess:.1f} times the least",
    )


def fact_window(results: Results) -> str:
    told = {"n": "12800", "ridge": "fixed"}
    stays = [value(results["gradient"], case=case, **told) for case in ("averaged", "constant")]
    excess = [value(results["gradient"], "excess", case=case, **told) for case in ("averaged", "constant")]
    return claim(
        slope(results, "averaged", "fixed") > -0.1,
        f"the averaged and the constant step, which track, stay at {span(stays, '.3f')}, and {100 * min(excess):.1f} to "
        f"{100 * max(excess):.1f} % above the least cost",
    )


def cost_of(results: Results, data: str, way: str) -> str:
    (row,) = chosen(results["choice"], data=data, way=way)
    return f"{float(row['cost']):.3f} ± {float(row['cost error']):.3f}"


def fact_choice(results: Results) -> str:
    """Against hindsight; and that a choice of lambda gains nothing over 0.1."""
    rows = results["choice"]
    both, only = (
        {data: value(rows, "cost", data=data, way=way) for data in unique(rows, "data")}
        for way in ("validation", "validation of r, λ = 0.1")
    )
    costs = ", ".join(f"{cost_of(results, data, 'validation')} on {name}" for data, name in SETS.items())
    return claim(
        max(only[data] - both[data] for data in both) < 0.004,
        f"validation costs {costs}, against hindsight; with λ = 0.1 and r alone chosen it is within "
        f"{max(abs(only[data] - both[data]) for data in both):.3f} of that",
    )


def fact_novelty(results: Results) -> str:
    rows = results["choice"]
    off = {
        data: value(rows, data=data, way="novelty still falls by 5 %") - value(rows, data=data, way="validation")
        for data in unique(rows, "data")
    }
    few = {data: value(rows, "cost", data=data, way="λ = 0.1, r = B / 5") for data in unique(rows, "data")}
    return claim(
        max(off.values()) < 0.004,
        f"Without labels, r as large as novelty still falls by 5 % is at most {max(off.values()):.3f} worse than validation, "
        f"and r = B / 5 costs up to {max(few.values()):.3f}",
    )


def fact_product(results: Results) -> str:
    rows = results["choice"]
    costs = {
        way: max(value(rows, "cost", data=data, way=f"`choose_rank`, {way}") for data in unique(rows, "data"))
        for way in ("labels", "no labels")
    }
    few = max(value(rows, "cost", data=data, way="λ = 0.1, r = B / 5") for data in unique(rows, "data"))
    return claim(
        max(costs.values()) < few,
        f"`choose_rank` chooses for this rule on a batch subspace of B vectors: it costs at most {costs['labels']:.3f} with labels, and "
        f"{costs['no labels']:.3f} without",
    )


def fact_streams(results: Results) -> str:
    pays = {
        stream: [b for b in BUDGETS if off(results, stream, b)[0] > 2 * off(results, stream, b)[1]]
        for stream in STREAMS
    }
    return claim(
        pays["bikes"] == pays["gearbox"] == pays["bikes, a day"] == list(BUDGETS) and not pays["stocks"],
        "Forgetting pays at every budget on bike rentals and gearbox",
    )


def fact_middle(results: Results) -> str:
    bikes, day = (off(results, stream, 48) for stream in ("bikes", "bikes, a day"))
    flat = [off(results, stream, 48) for stream in ("water", "stocks")]
    return claim(
        all(gain < 2 * error for gain, error in flat),
        f"in their order, forgetting leaves {bikes[0]:.3f} ± {bikes[1]:.3f} less of the bike rentals' inputs and "
        f"{day[0]:.3f} ± {day[1]:.3f} of their days (B = 48); of water flow and stocks no less",
    )


def fact_shuffled(results: Results) -> str:
    costs = [-off(results, stream, b, SHUFFLED)[0] for stream in STREAMS for b in (48, 96) if stream != "water"]
    return claim(
        min(costs) > 0,
        f"in random order the same forgetting costs {span(costs, '.3f')} at B = 48 and 96, but for water",
    )


def fact_frozen(results: Results) -> str:
    worse = {
        stream: [-off(results, stream, b, case=FROZEN)[0] for b in BUDGETS]
        for stream in ("bikes", "gearbox", "stocks", "water", "bikes, a day")
    }
    return claim(
        min(min(v) for v in worse.values()) > 0,
        f"Frozen maps leave {span(worse['bikes'])} more than learning without forgetting on the bike rentals' inputs, "
        f"{span(worse['gearbox'])} on the gearbox, {min(worse['water']):.3f} to {max(worse['stocks']):.3f} on the others",
    )


def fact_which(results: Results) -> str:
    """How far RLS is from the best, and where dropping is best and worst, in order."""
    rows = chosen(results["streams"], order=CAME)
    behind, ends = [], {}
    for stream, b in unique(rows, "stream", "B"):
        there = {row["case"]: float(row["mean"]) for row in chosen(rows, stream=stream, B=b)}
        behind.append(there[RLS] - min(there.values()))
        ends[stream, b] = (min(there, key=lambda case: there[case]), max(there, key=lambda case: there[case]))
    return claim(
        all(ends["bikes", b][0] == "drop" for b in ("12", "24", "48"))
        and all(ends[stream, b][1] == "drop" for stream in ("water", "stocks") for b in ("12", "24")),
        f"RLS with f = 0.98 and β = 0.95 is at most {max(behind):.3f} from the best in order. "
        "Dropping is the best on the bike rentals' inputs up to B = 48, and the worst on water flow and stocks up to B = 24",
    )


def fact_near(results: Results) -> str:
    found = {
        s: (float(row_of(results, s, CAME, 48, RLS)["mean"]), float(row_of(results, s, CAME, 48, RLS)["limit"]))
        for s in STREAMS
    }
    return claim(
        all(found[s][0] < found[s][1] for s in ("bikes", "gearbox")),
        f"{found['bikes'][0]:.3f} is less than the {found['bikes'][1]:.3f} that kernel PCA of all rows leaves, and "
        f"{found['gearbox'][0]:.3f} less than {found['gearbox'][1]:.3f}",
    )


FACTS: dict[str, Callable[[Results], str]] = {
    name.removeprefix("fact_"): made for name, made in list(globals().items()) if name.startswith("fact_")
}
