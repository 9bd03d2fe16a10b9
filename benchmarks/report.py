"""The tables and the figure of docs/report.md, from results that are measured elsewhere.

python -m benchmarks.report
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.host.first_results import SIMPLE, ratios
from benchmarks.tables import DATA, DOCS, load, markdown, place, read, write
from pykernel.files import whole_file

PAGE, FIGURE = DOCS / "report.md", DATA / "report.svg"
TARGETS = {"cortex-m4f": "Cortex-M4F", "cortex-m0plus": "Cortex-M0+", "rv32imac": "RV32IMAC", "cortex-m3": "Cortex-M3"}
WHERE = "cortex-m0plus, gcc -O2"
DEFAULT = "spec without a rule"


def bounds() -> dict[str, np.ndarray]:
    """Of each target, each preset's bound of a call over the most that was counted, at -O2 in float32."""
    found: dict[str, list[float]] = {}
    for row in load(DATA / "bounds.csv"):
        if (row["precision"], row["level"]) == ("float32", "-O2") and row["bound"] and row["worst"]:
            found.setdefault(row["target"], []).append(int(row["bound"]) / int(row["worst"]))
    return {target: np.array(found[target]) for target in TARGETS if target in found}


def bounds_table() -> str:
    return markdown(
        ["target", "calls", "median", "90 %", "largest"],
        [
            [
                TARGETS[target],
                str(len(each)),
                *(f"{q:.2f}" for q in (np.median(each), np.quantile(each, 0.9), each.max())),
            ]
            for target, each in bounds().items()
        ],
    )


def whole_rows() -> Iterator[tuple[str, float, float]]:
    """Calls on a Cortex-M0+: (what, instructions in float32, in int16)."""
    rows = [row for row in load(DATA / "whole-numbers.csv") if row["where"] == WHERE]
    values = {(r["part"], r["model"], r["what"], r["precision"]): float(r["value"]) for r in rows}
    for part, model, what, precision in values:
        told = {"instructions": "predicts", "update, median": "learns"}.get(what)
        if precision == "float32" and told and (part, model, what, "int16") in values:
            name = f"{model}, {told}"
            yield name, values[part, model, what, "float32"], values[part, model, what, "int16"]


def whole_table() -> str:
    rows = ([name, f"{real:,.0f}", f"{whole:,.0f}", f"{real / whole:.0f}"] for name, real, whole in whole_rows())
    return markdown(["instructions on a Cortex-M0+", "float32", "int16", "ratio"], rows)


def defaults() -> dict[str, np.ndarray]:
    """Errors of a spec that names no rule, over those of the best simple predictor of each stream."""
    return {
        "numbers": ratios(DEFAULT, False, SIMPLE),
        "classes": ratios(DEFAULT, True, SIMPLE),
    }


def defaults_table() -> str:
    return markdown(
        ["streams with", "streams and variants", "better than the best simple one", "median", "90 %", "worst"],
        [
            [
                name,
                str(len(each)),
                f"{(each < 1).mean():.0%}".replace("%", " %"),
                *(f"{q:.2f}" for q in (np.median(each), np.quantile(each, 0.9), each.max())),
            ]
            for name, each in defaults().items()
        ],
    )


def page(text: str) -> str:
    """The page with all tables in their places."""
    made = {"bounds": bounds_table(), "whole": whole_table(), "defaults": defaults_table()}
    for name, table in made.items():
        text = place(text, f"report {name}", table)
    return text


def figure(path: Path) -> None:
    """Bounds over what was counted; float32 over int16; errors of the default over the best simple predictor."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    with pyplot.rc_context({"svg.hashsalt": "report", "font.size": 9, "svg.fonttype": "none"}):
        drawn, (left, middle, right) = pyplot.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
        for i, each in enumerate(bounds().values()):
            left.plot(each, np.full(len(each), i) + np.linspace(-0.2, 0.2, len(each)), "o", ms=3, color="#0072b2")
            left.plot([np.median(each)] * 2, [i - 0.32, i + 0.32], color="#d55e00", lw=2)
        left.set(yticks=range(len(bounds())), yticklabels=[TARGETS[t] for t in bounds()], xlim=(0.95, None))
        left.set(title="bound / most counted", xlabel="each call of each preset; median in orange")
        rows = list(whole_rows())[::-1]
        middle.barh(range(len(rows)), [real / whole for _, real, whole in rows], color="#009e73")
        middle.set(yticks=range(len(rows)), title="float32 / int16", xlabel="instructions, Cortex-M0+")
        middle.set_yticklabels([name for name, *_ in rows], fontsize=7)
        for (name, each), colour, style in zip(defaults().items(), ("#0072b2", "#d55e00"), ("-", "--"), strict=True):
            values = np.clip(np.sort(each), 0.3, 1.6)
            right.plot(values, np.arange(1, len(each) + 1) / len(each), style, color=colour, label=name)
        right.axvline(1, color="0.6", lw=1)
        right.set(title="default / best simple", xlabel="error, a ratio", ylabel="part of the streams", xlim=(0.3, 1.6))
        right.legend(frameon=False)
        for axes in (left, middle, right):
            axes.spines[["top", "right"]].set_visible(False)
        with whole_file(path) as file:
            drawn.savefig(file, format="svg", metadata={"Date": None})
        pyplot.close(drawn)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    write(PAGE, page(read(PAGE)))
    figure(FIGURE)


if __name__ == "__main__":
    main()
