"""The figures, and the tables and phrases of docs/paper-002.md, from the results of ``paper_002.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks import basis_data
from benchmarks.papers.basis_pages import Results, canvas, chosen, curve, keep, value
from benchmarks.papers.paper_004_page import claim, markdown

NAMES = {
    "abalone": "Abalone",
    "boston": "Boston housing",
    "digits": "Digits",
    "bikeshare": "Bike rentals",
    "diabetes": "Diabetes",
}
KAPPA = ("1", "2", "5", "10", "20", "50", "59", "100", "200", "all")
SYSTEMS = {
    "pca": ("principal components", "#222222"),
    "sgma": ("SGMA", "#0072B2"),
    "uniform": ("uniform picks", "#D55E00"),
}
RULE_COLOURS = {"4.1": "#009E73", "4.2": "#0072B2", "4.3": "#E69F00", "uniform": "#D55E00", "limit": "#222222"}


def sets(results: Results, name: str) -> list[str]:
    return list(dict.fromkeys(row["data"] for row in results.get(name, ())))


# ----------------------------------------------------------------------------------------------------------- figures


def figure_1(results: Results, path: Path) -> None:
    """Residuals by subset size."""
    names = sets(results, "subsets")
    figure, axes = canvas(4.3 * len(names), 4, len(names))
    for axis, name in zip(axes, names, strict=True):
        for at, kappa in enumerate(KAPPA):
            n, mean = curve(results["subsets"], data=name, kappa=kappa)
            shade = 0.75 * (1 - at / (len(KAPPA) - 1))
            if len(n):
                axis.plot(n, mean, color=(shade, shade, 0.3 + 0.7 * shade), linewidth=1.2, label=f"κ = {kappa}")
        axis.plot(*curve(results["subsets"], data=name, kappa="limit"), ":", color="#D55E00", label="eigenvalue limit")
        axis.set(yscale="log", xlabel="basis vectors n", title=NAMES[name])
    axes[0].set_ylabel("tr(K − K̃) / tr K")
    axes[-1].legend(frameon=False, fontsize=7)
    keep(figure, path)


def figure_2(results: Results, path: Path) -> None:
    """Regularised risk and test error, relative to those of the full model: figures 2 and 5."""
    names = sets(results, "risk")
    figure, axes = canvas(4.6 * len(names), 6.6, len(names), 2, sharex="col")
    for column, name in enumerate(names):
        for row, key in enumerate(("risk", "error")):
            axis = axes[row * len(names) + column]
            for system, (text, colour) in SYSTEMS.items():
                n, mean = curve(results["risk"], key=f"{key}_to_full", data=name, system=system)
                axis.plot(n, mean, "o-", color=colour, markersize=3, linewidth=1.3, label=text)
            axis.axhline(1, color="#777777", linewidth=0.8)
            axis.set(xscale="log", yscale="log")
            axis.set_title(NAMES[name] if not row else "")
            axis.set_xlabel("n" if row else "")
            axis.set_ylabel(("R_reg", "test error")[row] + " / full model's" if not column else "")
    axes[0].legend(frameon=False, fontsize=8)
    keep(figure, path)


def figure_3(results: Results, path: Path) -> None:
    """SGMA against PCA."""
    names = sets(results, "subsets")
    figure, axes = canvas(4.3 * len(names), 3.8, len(names))
    for axis, name in zip(axes, names, strict=True):
        for kappa, text, colour in (
            ("1", "uniform", "#D55E00"),
            ("59", "SGMA", "#0072B2"),
            ("limit", "PCA", "#222222"),
        ):
            axis.plot(*curve(results["subsets"], data=name, kappa=kappa), "o-", color=colour, markersize=3, label=text)
        axis.set(yscale="log", xlabel="n", title=NAMES[name])
    axes[0].set_ylabel("tr(K − K̃) / tr K")
    axes[0].legend(frameon=False, fontsize=8)
    keep(figure, path)


def figure_4(results: Results, path: Path) -> None:
    """The first vectors of one run, as images."""
    x = basis_data.load("digits").x.reshape(-1, 8, 8)
    rows = results["pictures"]
    rules = list(dict.fromkeys(row["rule"] for row in rows))
    figure, axes = canvas(10, 0.8 * len(rules) + 0.1, 20, len(rules))
    for axis in axes:
        axis.axis("off")
    for row in rows:
        axis = axes[20 * rules.index(row["rule"]) + int(row["position"])]
        axis.imshow(x[int(row["row"])], cmap="gray_r", interpolation="nearest")
        axis.set_title(row["digit"], fontsize=8)
    keep(figure, path)


def figure_5(results: Results, path: Path) -> None:
    """Rules: trace and Frobenius norm, relative to the least possible."""
    names = sets(results, "rules")
    figure, axes = canvas(9, 3.6 * len(names), 2, len(names))
    for row, name in enumerate(names):
        for column, (key, text) in enumerate((("mean", "trace residual"), ("frobenius", "Frobenius residual"))):
            axis = axes[2 * row + column]
            n, least = curve(results["rules"], key=key, data=name, rule="limit")
            for rule in ("4.1", "4.2", "4.3", "uniform"):
                _, mean = curve(results["rules"], key=key, data=name, rule=rule)
                axis.plot(n, mean / least, "o-", color=RULE_COLOURS[rule], markersize=4, label=rule)
            axis.set(xlabel="n", ylabel="residual / least", title=f"{NAMES[name]}: {text}")
    axes[0].legend(frameon=False, fontsize=8)
    keep(figure, path)


FIGURES: dict[str, Callable[[Results, Path], None]] = {
    "figure-1": figure_1,
    "figure-2": figure_2,
    "figure-3": figure_3,
    "figure-4": figure_4,
    "figure-5": figure_5,
}


# ------------------------------------------------------------------------------------------------------------ tables


def residual(results: Results, name: str, kappa: str, n: int) -> float:
    return value(results["subsets"], data=name, kappa=kappa, n=f"{n}")


def table_subsets(results: Results) -> str:
    places = [(name, n) for name in sets(results, "subsets") for n in ((50, 150) if name == "boston" else (50, 200))]
    body = [[kappa, *(f"{residual(results, name, kappa, n):.4f}" for name, n in places)] for kappa in (*KAPPA, "limit")]
    return markdown(["κ", *(f"{NAMES[name]}, n = {n}" for name, n in places)], body)


def table_pca(results: Results) -> str:
    body = []
    for row in chosen(results["widths"], case="SGMA"):
        least = chosen(results["widths"], data=row["data"], width=row["width"], case="PCA")[0]
        drawn = chosen(results["widths"], data=row["data"], width=row["width"], case="uniform")[0]
        ratios = [f"{float(row[f'at {n}']) / float(least[f'at {n}']):.2f}" for n in (10, 50, 100, 200)]
        atoms = [
            " / ".join(each[f"vectors for {part}"] or ">200" for each in (row, least, drawn))
            for part in ("0.1", "0.01", "0.001")
        ]
        body.append([NAMES[row["data"]], f"{float(row['width']):g} D", *ratios, *atoms])
    heads = [*(f"n = {n}" for n in (10, 50, 100, 200)), *(f"vectors for {part}" for part in ("10 %", "1 %", "0.1 %"))]
    return markdown(["", "2σ²", *heads], body)


def table_readings(results: Results) -> str:
    body = []
    for reading in dict.fromkeys(row["reading"] for row in results["readings"]):
        rows = chosen(results["readings"], reading=reading)
        best = min(rows, key=lambda row: float(row["mean"]))
        told = reading.replace("2 sigma^2", "2σ²").replace("sigma^2", "σ²").replace("sigma", "σ")
        at = value(rows, ridge="0.01")
        body.append([told, f"{at:.2f}", best["ridge"], f"{float(best['mean']):.2f} ± {float(best['error']):.2f}"])
    return markdown(["width", "test error at Λm = 0.01", "best Λm", "test error there"], body)


def table_digits(results: Results) -> str:
    body = [
        [
            row["rule"],
            f"{float(row['width']):g} D",
            f"{float(row['mean']):.2f}",
            f"{float(row['least']):.0f} … {float(row['most']):.0f}",
            f"{100 * float(row['nine']):.0f} %",
        ]
        for row in results["digits"]
    ]
    return markdown(["rule", "2σ²", "digits among the first 10, mean", "least … most", "nine or ten"], body)


def table_preconditioning(results: Results) -> str:
    rows = results["preconditioning"]
    body = []
    sizes = list(dict.fromkeys(row["n"] for row in rows if row["n"] != "0"))
    for ridge in dict.fromkeys(row["ridge"] for row in rows):
        body.append([ridge, "none", f"{value(rows, ridge=ridge, method='none'):.0f}", *[""] * (len(sizes) - 1)])
        for method in ("sgma", "rpcholesky", "uniform"):
            body.append(["", method, *(f"{value(rows, ridge=ridge, method=method, n=n):.0f}" for n in sizes)])
    return markdown(["λ", "basis", *(f"n = {n}" for n in sizes)], body)


def table_bounds(results: Results) -> str:
    """Serfling's radius and what is missed are in the text: ``fact_serfling``, ``fact_bound``."""
    body = []
    for row in results["bounds"]:
        cells = [f"{float(row[key]):.3f}" for key in ("mean", "hoeffding_radius", "enough")]
        body.append([NAMES[row["data"]], row["n"], row["points"], *cells])
    return markdown(["", "n", "rows drawn", "mean δ", "radius", "would be enough"], body)


def erratum(results: Results, entry: str, what: str = "right") -> float:
    return value(results["errata"], "value", entry=entry, what=what)


TABLES: dict[str, Callable[[Results], str]] = {
    name.removeprefix("table_"): made for name, made in list(globals().items()) if name.startswith("table_")
}


# ------------------------------------------------------------------------------------------------ numbers of the text


def spread(values: Iterable[float], digits: int = 0) -> str:
    """Least to most, in per cent."""
    found = [100 * value for value in values]
    return f"{min(found):.{digits}f} to {max(found):.{digits}f} %"


def places(results: Results) -> list[tuple[str, int]]:
    return [(name, n) for name in sets(results, "subsets") for n in ((50, 150) if name == "boston" else (50, 200))]


def fact_enough(results: Results) -> str:
    more = [residual(results, name, "59", n) / residual(results, name, "all", n) - 1 for name, n in places(results)]
    ten = [residual(results, name, "10", n) / residual(results, name, "all", n) - 1 for name, n in places(results)]
    return claim(
        max(more) < 0.25 and max(ten) > max(more),
        f"59 candidates leave out {spread(more)} more than all rows as candidates, and 10 leave out {spread(ten)} more",
    )


def fact_limits(results: Results) -> str:
    left = [residual(results, "digits", "limit", n) for n in (50, 200)]
    return claim(abs(left[0] - 0.161) < 0.02, f"the limits are {left[0]:.3f} and {left[1]:.3f} at n = 50 and 200")


def fact_fifty(results: Results) -> str:
    less = [1 - residual(results, name, "200", n) / residual(results, name, "50", n) for name, n in places(results)]
    return claim(max(less) < 0.15, f"200 candidates leave out {spread(less)} less than 50")


def at_width(results: Results, name: str, width: str, case: str, key: str) -> float:
    (row,) = chosen(results["widths"], data=name, width=width, case=case)
    return float(row[key])


def fact_ratios(results: Results) -> str:
    def of(n: int) -> list[float]:
        key = f"at {n}"
        names = sets(results, "widths")
        return [
            at_width(results, name, "0.5", "SGMA", key) / at_width(results, name, "0.5", "PCA", key) for name in names
        ]

    ten, most = of(10), of(200)
    return claim(
        min(of(100)) > 1.2,
        f"SGMA leaves out {min(ten):.2f} to {max(ten):.2f} times as much as PCA with n = 10, and {min(most):.2f} to {max(most):.2f} times "
        "as much with n = 200",
    )


def fact_one_per_cent(results: Results) -> str:
    key = "vectors for 0.01"
    mine, least = (at_width(results, "abalone", "0.5", case, key) for case in ("SGMA", "PCA"))
    (drawn,) = chosen(results["widths"], data="abalone", width="0.5", case="uniform")
    return claim(
        least < mine < 250 and not drawn[key],
        f"1 % takes {mine:.0f} of 4,174 rows with SGMA, {least:.0f} components with PCA, and more than 200 uniform picks",
    )


def fact_smoother(results: Results) -> str:
    ratios = {
        width: at_width(results, "abalone", width, "SGMA", "at 200")
        / at_width(results, "abalone", width, "PCA", "at 200")
        for width in ("0.5", "1", "2")
    }
    return claim(
        ratios["0.5"] < ratios["1"] < ratios["2"],
        f"on Abalone with n = 200, it is {ratios['0.5']:.1f} for 2σ² = D/2, {ratios['1']:.1f} for 2σ² = D, and {ratios['2']:.1f} for 2σ² = 2D",
    )


def of_risk(results: Results, name: str, system: str, n: int, key: str) -> float:
    return float(chosen(results["risk"], data=name, system=system, n=f"{n}")[0][key])


def fact_errors(results: Results) -> str:
    def told(name: str) -> str:
        errors = [of_risk(results, name, system, 100, "error_mean") for system in SYSTEMS]
        full = float(chosen(results["risk"], data=name, system="full")[0]["error_mean"])
        digits = 2 if full < 100 else 0
        *shown, last = (f"{value:,.{digits}f}" for value in (errors[1], errors[0], errors[2], full))
        return f"the test error on {NAMES[name]} is {shown[0]} with SGMA, {shown[1]} with PCA, {shown[2]} with uniform picks and {last} with all rows"

    parts = "; ".join(told(name) for name in sets(results, "risk"))
    return claim(bool(parts), f"with n = 100, {parts}")


def fact_orders(results: Results) -> str:
    """Where three orders of magnitude of the trace are gone."""
    parts = []
    for name in sets(results, "risk"):
        rows = [row for row in chosen(results["risk"], data=name, system="sgma") if float(row["residual"]) <= 1e-3]
        if rows:
            first = min(rows, key=lambda row: int(row["n"]))
            parts.append((name, int(first["n"]), float(first["error_to_full"]) - 1, float(first["risk_to_full"]) - 1))
    (name, n, error, risk), *_ = parts
    return claim(
        0.02 < error < 0.1,
        f"with n = {n} on {NAMES[name]}, the residual is below a thousandth, and the test error differs by {100 * error:+.1f} % "
        f"and the risk by {100 * risk:+.1f} % from those of all rows",
    )


def fact_fewer(results: Results) -> str:
    def more(name: str, n: int) -> str:
        return f"{100 * (of_risk(results, name, 'sgma', n, 'error_to_full') - 1):+.1f} %"

    return claim(
        of_risk(results, "boston", "sgma", 75, "error_to_full") > 1.02,
        f"on {NAMES['boston']}, 100 of 350 vectors change the test error by {more('boston', 100)}, and 75 vectors by {more('boston', 75)}; "
        f"on {NAMES['bikeshare']}, 200 of 3,000 vectors change it by {more('bikeshare', 200)}",
    )


def fact_uniform(results: Results) -> str:
    more = {
        name: [of_risk(results, name, system, 200, "error_to_full") - 1 for system in ("sgma", "uniform")]
        for name in sets(results, "risk")
    }
    residuals = [of_risk(results, "bikeshare", system, 200, "residual") for system in ("uniform", "sgma")]
    (a, b), (c, d) = more["boston"], more["bikeshare"]
    return claim(
        a < b and c > d,
        f"the test error on Boston housing differs from that of all rows by {100 * a:+.1f} % with SGMA and by {100 * b:+.1f} % with uniform "
        f"picks. On the bike rentals, it differs by {100 * c:+.1f} % with SGMA, but only by {100 * d:+.1f} % with uniform picks, although they "
        f"leave out {residuals[0] / residuals[1]:.1f} times as much",
    )


def fact_digits(results: Results) -> str:
    four_two = chosen(results["digits"], rule="4.2", width="0.5")[0]
    drawn = chosen(results["digits"], rule="uniform", width="0.5")[0]
    return claim(
        float(four_two["mean"]) > float(drawn["mean"]),
        f"the first ten vectors show {float(four_two['mean']):.1f} different digits on average, and at least nine in "
        f"{100 * float(four_two['nine']):.0f} % of {four_two['runs']} runs; ten uniform picks show {float(drawn['mean']):.1f} on average, and at "
        f"least nine in {100 * float(drawn['nine']):.0f} %",
    )


def of_rule(results: Results, name: str, rule: str, n: int, key: str = "mean") -> float:
    return value(results["rules"], key, data=name, rule=rule, n=f"{n}")


def fact_rules(results: Results) -> str:
    name, n = "boston", 100
    trace = [of_rule(results, name, rule, n) for rule in ("4.1", "4.2", "4.3")]
    norm = [of_rule(results, name, rule, n, "frobenius") for rule in ("4.1", "4.2", "4.3")]
    return claim(
        trace[1] < min(trace[0], trace[2]),
        f"on {NAMES[name]} with n = {n}, rule 4.2 leaves out {trace[1]:.4f} of the trace (rule 4.1: {trace[0]:.4f}, rule 4.3: {trace[2]:.4f}) "
        f"and {norm[1]:.4f} of the Frobenius norm (rule 4.1: {norm[0]:.4f}, rule 4.3: {norm[2]:.4f})",
    )


def fact_frobenius(results: Results) -> str:
    cells = [(name, n) for name in sets(results, "rules") for n in (10, 20, 50, 100)]
    ahead = {
        key: sum(of_rule(results, name, "4.2", n, key) < of_rule(results, name, "4.1", n, key) for name, n in cells)
        for key in ("mean", "frobenius")
    }
    return claim(
        min(ahead.values()) == len(cells),
        f"rule 4.2 leaves out less than rule 4.1 in all {len(cells)} cases (two data sets, each with n = 10, 20, 50 and 100), both of the trace "
        "and of the Frobenius norm",
    )


def fact_kronecker(results: Results) -> str:
    pairs = [
        [of_rule(results, name, rule, 100) for rule in ("Kronecker", "uniform")] for name in sets(results, "rules")
    ]
    parts = [
        f"{a:.3f} against {b:.3f} on {NAMES[name]}" for name, (a, b) in zip(sets(results, "rules"), pairs, strict=True)
    ]
    return claim(all(abs(a / b - 1) < 0.08 for a, b in pairs), "; ".join(parts))


def fact_bound(results: Results) -> str:
    rows = chosen(results["bounds"], points="59")
    radius, enough = ([float(row[key]) for row in rows] for key in ("serfling_radius", "enough"))
    parts = [a / b for a, b in zip(radius, enough, strict=True)]
    misses = max(
        float(row[f"{kind}_{side}"])
        for row in results["bounds"]
        for kind in ("hoeffding", "serfling")
        for side in ("above", "below")
    )
    return claim(
        misses < 0.05 and min(parts) > 1.3,
        f"with 59 rows drawn, the radius is {min(radius):.2f} to {max(radius):.2f}, which is {min(parts):.1f} to {max(parts):.0f} times what "
        f"would be enough; {100 * misses:.2f} % of the draws exceed it, although 5 % are allowed",
    )


def fact_serfling(results: Results) -> str:
    off = [abs(float(row["serfling_radius"]) - float(row["hoeffding_radius"])) for row in results["bounds"]]
    return claim(max(off) < 5e-4, "Serfling's bound holds, with the same radius to three digits")


def fact_direction(results: Results) -> str:
    row = chosen(results["bounds"], data="boston", n="20", points="59")[0]
    return claim(
        float(row["half_above"]) < float(row["half_printed"]),
        f"a deviation of at least half the radius would have a probability of at least {float(row['half_printed']):.2f}, but on Boston housing "
        f"with n = 20 and 59 rows drawn, its frequency is {float(row['half_above']):.3f}",
    )


def fact_iterations(results: Results) -> str:
    def of(ridge: str, method: str, n: str) -> str:
        return f"{value(results['preconditioning'], ridge=ridge, method=method, n=n):,.0f}"

    rows = results["preconditioning"]
    return claim(
        value(rows, ridge="0.1", method="sgma", n="100") < 0.3 * value(rows, ridge="0.1", method="none"),
        f"{of('0.1', 'none', '0')} iterations without a basis, {of('0.1', 'sgma', '50')} with 50 vectors of SGMA, {of('0.1', 'sgma', '100')} with "
        f"100, {of('0.1', 'sgma', '200')} with 200 and {of('0.1', 'sgma', '400')} with 400",
    )


def fact_symmetry(results: Results) -> str:
    column, function = erratum(results, "symmetry", "column"), erratum(results, "symmetry", "function")
    return claim(
        column > 0.01 and function < 1e-12,
        f"in column space, K̃ and its transpose differ by up to {column:.2f} times the largest element of K",
    )


def fact_growing(results: Results) -> str:
    row = results["gains"][0]
    part = float(row["grown"]) / float(row["compared"])
    return claim(
        part > 0.01,
        f"on {NAMES[row['data']]}, {100 * part:.0f} % of {float(row['compared']):,.0f} gains grew when another vector was chosen, by a factor of up "
        f"to {float(row['most']):.2f}; in random Gram matrices of four points, the factor was up to {float(row['random_most']):.1f}",
    )


def fact_reading(results: Results) -> str:
    def at(reading: str) -> float:
        return value(results["readings"], reading=reading, ridge="0.01")

    first, second, third = (at(f"{name} = 10 D") for name in ("2 sigma^2", "sigma^2", "sigma"))
    return claim(
        first < second < third, f"the test error is {first:.1f} with 2σ² = 10 D, and {third:.1f} with σ = 10 D"
    )


def fact_nineteen(results: Results) -> str:
    more = erratum(results, "eq. 19", "printed")
    return claim(more > 0.01, f"out {100 * more:.0f} % more than the least")


def fact_operator(results: Results) -> str:
    more, part = erratum(results, "eq. 10", "printed"), erratum(results, "eq. 10", "part")
    return claim(
        more > 0.01,
        f"in {100 * part:.0f} % of random matrices, the column that gives the least Frobenius norm of K − K̃ gives an operator norm that is up to "
        f"{100 * more:.0f} % larger than the least",
    )


FACTS: dict[str, Callable[[Results], str]] = {
    name.removeprefix("fact_"): made for name, made in list(globals().items()) if name.startswith("fact_")
}
