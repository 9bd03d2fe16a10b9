"""The figures, and the tables and phrases of docs/paper-002.md, from the results of ``paper_002.py``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import basis_data
from basis_pages import Results, canvas, chosen, curve, keep, value
from paper_004_page import markdown

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
    figure, axes = canvas(10, 1.5 * len(rules), 20, len(rules))
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
        for column, (key, text) in enumerate(
            (("mean", "trace residual"), ("frobenius", "Frobenius residual, column space"))
        ):
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
            " / ".join(each[f"vectors for {part}"] or ">400" for each in (row, least, drawn))
            for part in ("0.1", "0.01", "0.001")
        ]
        body.append([NAMES[row["data"]], f"{float(row['width']):g} D", *ratios, *atoms])
    heads = [*(f"n = {n}" for n in (10, 50, 100, 200)), *(f"vectors for {part}" for part in ("10 %", "1 %", "0.1 %"))]
    return markdown(["", "2σ²", *heads], body)


def table_risk(results: Results) -> str:
    body = []
    for name in sets(results, "risk"):
        full = chosen(results["risk"], data=name, system="full")[0]
        body.append(
            [NAMES[name], "all rows", "", f"{float(full['risk_mean']):.4g}", f"{float(full['error_mean']):.4g}", "", ""]
        )
        for n in ("10", "20", "50", "100", "200"):
            for system, (text, _) in SYSTEMS.items():
                (row,) = chosen(results["risk"], data=name, system=system, n=n)
                cells = [f"{float(row['risk_mean']):.4g}", f"{float(row['error_mean']):.4g}"]
                more = [f"{100 * (float(row[f'{key}_to_full']) - 1):+.1f} %" for key in ("risk", "error")]
                body.append([f"n = {n}", text, row["residual"], *cells, *more])
    heads = ["", "system", "tr R / tr K", "R_reg", "test error", "R_reg, more than full", "test error, more than full"]
    return markdown(heads, body)


def table_readings(results: Results) -> str:
    body = []
    for reading in dict.fromkeys(row["reading"] for row in results["readings"]):
        rows = chosen(results["readings"], reading=reading)
        best = min(rows, key=lambda row: float(row["mean"]))
        told = reading.replace("sigma^2", "σ²").replace("sigma", "σ").replace(" D", " D")
        at = value(rows, ridge="0.01")
        body.append([told, f"{at:.2f}", best["ridge"], f"{float(best['mean']):.2f} ± {float(best['error']):.2f}"])
    return markdown(["width", "test error at Λm = 0.01", "best Λm", "test error there"], body)


def table_rules(results: Results) -> str:
    body = []
    for name in sets(results, "rules"):
        for rule in dict.fromkeys(row["rule"] for row in chosen(results["rules"], data=name)):
            rows = {row["n"]: row for row in chosen(results["rules"], data=name, rule=rule)}
            cells = [
                f"{float(rows[n]['mean']):.4f}; {float(rows[n]['frobenius']):.4f}" for n in ("10", "20", "50", "100")
            ]
            body.append([NAMES[name], rule, *cells])
    return markdown(["", "rule", *(f"n = {n}" for n in (10, 20, 50, 100))], body)


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
    body = []
    for row in results["bounds"]:
        radii = [f"{float(row[key]):.3f}" for key in ("mean", "hoeffding_radius", "serfling_radius", "enough")]
        misses = [
            f"{100 * max(float(row[f'{kind}_above']), float(row[f'{kind}_below'])):.2f} %"
            for kind in ("hoeffding", "serfling")
        ]
        body.append([NAMES[row["data"]], row["n"], row["points"], *radii, *misses])
    heads = [
        "mean δ",
        "radius, Corollary 3",
        "radius, Serfling",
        "would be enough",
        "misses, Corollary 3",
        "misses, Serfling",
    ]
    return markdown(["", "n", "rows drawn", *heads], body)


def erratum(results: Results, entry: str, what: str = "right") -> float:
    return value(results["errata"], "value", entry=entry, what=what)


TABLES: dict[str, Callable[[Results], str]] = {
    name.removeprefix("table_"): made for name, made in list(globals().items()) if name.startswith("table_")
}
