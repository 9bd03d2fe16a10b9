"""The tables of docs/paper-003.md, from the results of ``paper_003.py``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

import benchmarks.papers.paper_003_figures as figures

Rows = Sequence[Mapping[str, str]]
SHOWN = (4, 6, 8, 10, 12, 14, 16, 20, 24)


def cell(row: Mapping[str, str] | None) -> str:
    """Mean and standard deviation, and how many realisations diverged."""
    if row is None:
        return ""
    diverged, realisations = int(row["diverged"]), int(row["realisations"])
    if 2 * diverged >= realisations:
        return "diverges"
    text = short(row["mse_mean"]) + " ± " + short(row["mse_std"])
    return f"{text}, {diverged} diverge" if diverged else text


def short(value: str | float) -> str:
    """Two digits: 4.9e-5."""
    mantissa, exponent = f"{float(value):.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in body)])


def by_budget(rows: Rows, shown: Sequence[int] = SHOWN, **wanted: str) -> str:
    chosen = figures.select(rows, **wanted)
    methods = list(dict.fromkeys(row["method"] for row in chosen))
    found = {(row["method"], int(row["n_max"])): row for row in chosen}
    return markdown(
        ["method", *map(str, shown)], [[method, *(cell(found.get((method, n))) for n in shown)] for method in methods]
    )


def before(rows: Rows, costs: Rows) -> str:
    return by_budget(rows, experiment="budget", settings="report", when="before")


def baselines(rows: Rows, costs: Rows) -> str:
    return by_budget(rows, (6, 8, 10, 12, 14, 16, 20), experiment="baselines")


def references(rows: Rows, costs: Rows) -> str:
    chosen = figures.select(rows, experiment="reference", method="none removed")
    return markdown(
        ["σ", *(row["parameter"].split()[1] for row in chosen)], [["error", *(cell(row) for row in chosen)]]
    )


def pairs(rows: Rows, costs: Rows) -> str:
    tables = []
    for settings in ("report", "defaults"):
        chosen = figures.select(rows, experiment="pairs", settings=settings, n_max="14")
        found = {tuple(row["method"].split(" + ")): row for row in chosen}
        metrics, ways = (list(dict.fromkeys(pair[i] for pair in found)) for i in (0, 1))

        def shown(row: Mapping[str, str] | None) -> str:
            if row is None:
                return ""
            text = short(row["mse_mean"]) if not int(row["diverged"]) else f"diverges {row['diverged']}"
            return text + (" (forced)" if row["refused_unless_forced"] else "")

        body = [[metric, *(shown(found.get((metric, way))) for way in ways)] for metric in metrics]
        tables.append(markdown([f"{settings}: metric", *ways], body))
    return "\n\n".join(tables)


def removals(rows: Rows, costs: Rows) -> str:
    body = []
    for name, sigma in (("2", 0.9), ("3", 0.5)):
        for technique, result in figures.projections(sigma).items():
            beta = ", ".join(f"{b:.4f}" for b in result["beta"])
            numbers = [f"{result[key]:.3f}" for key in ("largest", "rms", "norm")]
            body.append([f"{name}, σ = {sigma}", technique, beta, *numbers])
    header = ["figure", "projection", "multipliers of -2, -1, 0, 2", "largest error", "r.m.s. at the five", "‖f − f'‖²"]
    return markdown(header, body)


TABLES: dict[str, Callable[[Rows, Rows], str]] = {
    "before": before,
    "baselines": baselines,
    "references": references,
    "pairs": pairs,
    "removals": removals,
}


# ------------------------------------------------------------------------------------------------ numbers of the text


def ratios(rows: Rows, over: str, under: str, settings: str = "report", when: str = "before") -> dict[int, float]:
    """By budget, a method's mean error in parts of another's; NaN where one diverges."""
    n, a = figures.curve(rows, over, experiment="budget", settings=settings, when=when)
    m, b = figures.curve(rows, under, experiment="budget", settings=settings, when=when)
    if not np.array_equal(n, m):
        raise ValueError(f"{over} and {under} are not there for the same budgets")
    return {int(k): float(r) for k, r in zip(n, a / b, strict=True)}


def to_reference(rows: Rows, method: str, least: int = 4) -> list[float]:
    n, mse = figures.curve(rows, method, experiment="budget", settings="report", when="before")
    return [float(r) for r in mse[n >= least] / figures.reference(rows)]


def span(values: Sequence[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def one(rows: Rows, **wanted: str) -> Mapping[str, str]:
    (row,) = figures.select(rows, **wanted)
    return row


def claim(holds: bool, text: str) -> str:
    """The text, if what it says is so."""
    if not holds:
        raise ValueError(f"the results do not say: {text}")
    return text


def fact_reference(rows: Rows, costs: Rows) -> str:
    row = one(rows, experiment="reference", method="none removed", parameter="sigma 0.5")
    mean, error = float(row["mse_mean"]), float(row["mse_std"]) / np.sqrt(int(row["realisations"]))
    return claim(abs(mean - 4.76e-5) < 2 * error, f"{mean * 1e5:.2f}e-5 with a standard error of {error * 1e5:.2f}e-5")


def fact_enough(rows: Rows, costs: Rows) -> str:
    klms, mklms = to_reference(rows, "klms", 14), to_reference(rows, "mklms", 14)
    return claim(
        max(klms) < 1.05 and mklms[0] < 1.25 and max(mklms[2:]) < 1.05,
        f"from N = 14 on, KLMS has {min(klms):.2f} to {max(klms):.2f} times the error without removals, and MKLMS {min(mklms):.2f} to {max(mklms):.2f} "
        "times",
    )


def fact_fast(rows: Rows, costs: Rows) -> str:
    values = [[r for n, r in ratios(rows, fast, "klms").items() if n >= 14] for fast in ("fklms", "fmklms")]
    return claim(
        min(map(min, values)) > 1.5,
        f"from N = 14 on, FKLMS has {span(values[0])} times the error of KLMS, and FMKLMS {span(values[1])} times",
    )


def winning(parts: Mapping[int, float]) -> list[int]:
    return [n for n, r in parts.items() if r < 1]


def fact_starved(rows: Rows, costs: Rows) -> str:
    parts = ratios(rows, "klms", "mklms")
    worse = [n for n, r in parts.items() if r > 1.05 and n <= 12]
    better = [n for n, r in parts.items() if r < 0.95]
    return claim(
        worse == list(range(worse[0], worse[-1] + 1)) and better == list(range(better[0], better[-1] + 1)),
        f"MKLMS has the smaller error from N = {worse[0]} to {worse[-1]}: at N = 8, the error of KLMS is {parts[8]:.1f} times as large. "
        f"KLMS has the smaller error from N = {better[0]} to {better[-1]}: at N = 12, the error of MKLMS is {1 / parts[12]:.1f} times "
        "as large",
    )


def fact_starved_fast(rows: Rows, costs: Rows) -> str:
    parts = ratios(rows, "fklms", "fmklms")
    few, many = [r for n, r in parts.items() if n <= 7], [r for n, r in parts.items() if n >= 11]
    return claim(
        min(few) > 1 and max(many) < 1.2,
        f"Up to N = 7, FKLMS has {span(few)} times the error of FMKLMS; from N = 11 on, it has {span(many)} times this error",
    )


def fact_ls(rows: Rows, costs: Rows) -> str:
    parts = list(ratios(rows, "ls", "mklms").values())
    return claim(max(parts) < 1.5, f"LS has {span(parts)} times the error of MKLMS")


def fact_hump(rows: Rows, costs: Rows) -> str:
    parts = [r for n, r in ratios(rows, "ls", "mklms").items() if 12 <= n <= 20]
    rowset = figures.select(rows, experiment="budget", method="ls", settings="report", when="before")
    largest = max(float(row["multiplier_max"]) for row in rowset if 12 <= int(row["n_max"]) <= 20)
    return claim(
        max(parts) < 1.05 and largest < 10,
        f"from N = 12 to 20, LS has at most {max(parts):.2f} times the error of MKLMS, and no multiplier exceeds {largest:.1f}",
    )


def fact_lsreg(rows: Rows, costs: Rows) -> str:
    literal, consistent = (list(ratios(rows, name, "mklms").values()) for name in ("lsreg", "lsridge"))
    return claim(
        max(literal) < 1.5 and max(consistent) < 1.5,
        f"with the penalty in the metric only, as printed, LS has {span(literal)} times the error of MKLMS; with the penalty also in the "
        f"projection, {span(consistent)} times",
    )


def fact_edge(rows: Rows, costs: Rows) -> str:
    found = figures.edge_removal()
    largest = {name: result["largest"] for name, result in found.items()}
    return claim(
        largest["ls"] > 10 * largest["lsridge"],
        f"LS leaves multipliers up to {largest['ls']:,.0f}, LSridge up to {largest['lsridge']:.1f} and "
        f"KLMS up to {largest['klms']:.1f}",
    )


def fact_choice(rows: Rows, costs: Rows) -> str:
    found = figures.edge_removal()["ls"]
    return claim(
        found["choice"] < 2 and found["largest_if_chosen"] < 10,
        f"it removes the one at x = {found['choice']:.1f}, and no multiplier exceeds {found['largest_if_chosen']:.1f}",
    )


def fact_even(rows: Rows, costs: Rows) -> str:
    row = one(rows, experiment="budget", method="fklms", settings="report", when="before", n_max="10")
    return (
        f"with N = 10, the gaps between neighbours are {float(row['gap_min']):.2f} to {float(row['gap_max']):.2f} wide, "
        f"with a median of {float(row['gap_median']):.2f} (each number is the median of the realisations)"
    )


def fact_truncation(rows: Rows, costs: Rows) -> str:
    held = figures.truncation_example()
    old, small = held["all age"] > 35, held["all size"] < 0.1
    both = int((old & small).sum())
    return claim(
        both > 0.8 * old.sum(),
        f"{both} of the {old.sum()} vectors older than 35 samples are among the {small.sum()} whose multiplier is smaller than 0.1",
    )


def fact_cost(rows: Rows, costs: Rows) -> str:
    at = {
        name: float(one(costs, technique=name, task="sinc", n_max="24")["instructions"])
        for name in ("fklms", "klms", "ls")
    }
    return claim(
        at["fklms"] < at["klms"] < at["ls"],
        f"at N = 24, KLMS takes {at['klms'] / at['fklms']:.1f} times as many instructions as FKLMS, and LS {at['ls'] / at['fklms']:.1f} times as many",
    )


def fact_exponents(rows: Rows, costs: Rows) -> str:
    names = ("fklms", "fmklms", "klms", "mklms", "ls", "lsridge")
    slopes = {name: figures.exponent(costs, name, "noise", 64) for name in names}
    return claim(
        slopes["fklms"] < 1.1 and max(slopes.values()) < 2.1,
        f"from N = 64 to 256, the instructions grow with these powers of N: "
        f"{', '.join(f'{figures.label(name)} {slope:.1f}' for name, slope in slopes.items())}",
    )


def fact_ties(rows: Rows, costs: Rows) -> str:
    chosen = figures.select(rows, experiment="budget", method="fklms, oldest goes", settings="report", when="before")
    lost = {int(row["n_max"]): int(row["diverged"]) for row in chosen}
    from_8 = [count for n, count in lost.items() if n >= 8]
    least, most = min(from_8), max(from_8)
    counted = f"{least} to {most}" if least < most else most
    return claim(least > 75, f"{counted} of 100 realisations diverge at each N from 8 on")


def fact_afmklms(rows: Rows, costs: Rows) -> str:
    chosen = figures.select(rows, experiment="budget", method="afmklms", settings="report", when="before")
    lost = [int(row["diverged"]) for row in chosen]
    return claim(min(lost) > 50, f"{min(lost)} to {max(lost)} of 100 realisations diverge, at every N")


def fact_afklms(rows: Rows, costs: Rows) -> str:
    parts = [r for n, r in ratios(rows, "afklms", "klms").items() if n >= 12]
    return claim(min(parts) > 3, f"{span(parts)} times the error of KLMS from N = 12 on")


def fact_newest(rows: Rows, costs: Rows) -> str:
    found = {
        name: float(
            one(rows, experiment="budget", method=name, settings="report", when="after", n_max="14")["newest_goes"]
        )
        for name in ("klms", "mklms", "fklms")
    }
    return claim(
        min(found.values()) > 0.8,
        ", ".join(f"{100 * part:.0f} % with {figures.label(name)}" for name, part in found.items()),
    )


def fact_lambda(rows: Rows, costs: Rows) -> str:
    chosen = figures.select(rows, experiment="lambda_max")
    held = {(row["method"], *row["parameter"].split(", ")): float(row["vectors"]) for row in chosen}
    more = [held[m, t, "newest"] / held[m, t, "all"] - 1 for m, t, c in held if c == "all" and m != "fklms"]
    return claim(min(more) > -0.02, f"{100 * min(more):.0f} to {100 * max(more):.0f} % more vectors remain")


def fact_unrefused(rows: Rows, costs: Rows) -> str:
    found = [row for row in figures.select(rows, experiment="pairs") if int(row["diverged"])]
    taken = [row for row in found if not row["refused_unless_forced"]]
    return claim(
        all(row["settings"] == "report" for row in taken) and len(taken) < len(found) / 2,
        " and ".join(f"{row['method']} ({row['diverged']} of {row['realisations']})" for row in taken),
    )


def to_exact(rows: Rows, name: str) -> list[float]:
    """A method's errors at the defaults, in parts of those in float64 without ridge and ald_threshold, for all budgets."""
    _, ours = figures.curve(rows, name, experiment="budget", settings="defaults", when="after")
    _, exact = figures.curve(rows, name, experiment="budget", settings="report", when="after")
    return [float(r) for r in ours / exact]


def fact_defaults(rows: Rows, costs: Rows) -> str:
    parts = [r for name in ("klms", "mklms", "sup", "ls") for r in to_exact(rows, name)]
    return claim(
        max(parts) < 1.5, f"KLMS, MKLMS, SUP and LS have {span(parts)} times the error of float64 with the same budget"
    )


def fact_penalty(rows: Rows, costs: Rows) -> str:
    parts = to_exact(rows, "lsridge")
    return claim(max(parts) > 2, f"LSridge has up to {max(parts):.1f} times the error")


def without_gate(rows: Rows, method: str, n_max: int) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """A row at the report's settings without an ald_threshold, and its row with one."""
    wanted = {"method": method, "settings": "report", "when": "before", "n_max": str(n_max)}
    return one(rows, experiment="gate", **wanted), one(rows, experiment="budget", **wanted)


def fact_rounding(rows: Rows, costs: Rows) -> str:
    bare, gated = without_gate(rows, "lsreg", 10)
    return claim(
        float(bare["mse_max"]) > 5 * float(gated["mse_max"]),
        f"at N = 10, its error is {cell(bare)} instead of {cell(gated)}, and {short(bare['mse_max'])} in the worst realisation",
    )


def fact_baselines(rows: Rows, costs: Rows) -> str:
    at = {
        name: float(one(rows, experiment="baselines", method=name, n_max="14")["mse_mean"])
        for name in ("krls-t", "fb-krls")
    }
    mklms = float(
        one(rows, experiment="budget", method="mklms", settings="report", when="after", n_max="14")["mse_mean"]
    )
    return claim(
        max(at.values()) < mklms / 10,
        f"with 14 vectors, the error is {short(at['krls-t'])} with KRLS-T and {short(at['fb-krls'])} with FB-KRLS, against {short(mklms)} "
        "with MKLMS",
    )


FACTS: dict[str, Callable[[Rows, Rows], str]] = {
    name.removeprefix("fact_"): value for name, value in list(globals().items()) if name.startswith("fact_")
}
