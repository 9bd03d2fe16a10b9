"""What docs/data/fronts.csv shows: the picture, and the tables of docs/benchmarks.md.

python -m benchmarks.device.fronts_page
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.tables import DATA, Rows, load, markdown, publish
from pykernel.files import whole_file

FIGURE = DATA / "fronts.svg"
FAMILIES = {
    "trained vectors": ("o", "-", "0", "0"),
    "trained vectors, int16": ("o", "-", "0", "1"),
    "chosen vectors": ("x", ":", "0", "0"),
    "full machine": ("*", "", "0", "0"),
    "network, emlearn": ("s", "--", "0.5", "0.5"),
    "network, by hand": ("D", "-.", "0.5", "0.5"),
    "network, by hand, int8": ("D", "-.", "0.5", "1"),
    "trees, emlearn": ("^", "--", "0.7", "0.7"),
    "boosted trees, m2cgen": ("v", ":", "0.7", "0.7"),
}
"""Marker, line, grey of both, and what fills the marker."""
BUDGETS = {"flash": (1024, 2048, 4096, 8192, 16384, 32768), "predict": (300, 1000, 3000, 10000)}
TABLES, SIZE = 3, 16
"""Tables; vectors, and hidden units, that the sentences compare."""


@dataclass(frozen=True)
class Point:
    """One model of a table over all splits: medians, and the range of the errors."""

    data: str
    family: str
    size: str
    variant: str
    error: float
    least: float
    most: float
    flash: float
    predict: float


def points(rows: Rows) -> list[Point]:
    """In the order of the file; without those that do not fit the part.

    Sizes of a full machine and of no other family differ from split to split: they are left out of what makes a model.
    """
    found: dict[tuple[str, ...], Rows] = {}
    for row in rows:
        size = "" if row["family"] == "full machine" else row["size"]
        if row["error"]:
            found.setdefault((row["data"], row["family"], size, row["variant"]), []).append(row)
    made = []
    for key, same in found.items():
        errors = [float(row["error"]) for row in same]
        costs = [median(float(row[name]) for row in same) for name in ("flash", "predict")]
        made.append(Point(*key, median(errors), min(errors), max(errors), *costs))
    return made


def front(of_family: list[Point], cost: str) -> list[Point]:
    """Those than which no other has less error at no more cost, the cheapest first."""
    kept: list[Point] = []
    for point in sorted(of_family, key=lambda p: (getattr(p, cost), p.error)):
        if not kept or point.error < kept[-1].error:
            kept.append(point)
    return kept


def told(error: float, classes: bool) -> str:
    return f"{error:.1%}".replace("%", " %") if classes else f"{error:.1f}"


def budgets(found: list[Point], data: str, cost: str) -> list[list[str]]:
    """Of each family the least error within each budget; the least of all in bold."""
    classes, lines, limits = is_class(found, data), [], BUDGETS[cost]
    best = [
        min((p.error for p in found if p.data == data and getattr(p, cost) <= limit), default=None) for limit in limits
    ]
    for family in FAMILIES:
        cells = []
        for limit, least in zip(limits, best, strict=True):
            errors = [p.error for p in found if (p.data, p.family) == (data, family) and getattr(p, cost) <= limit]
            text = told(min(errors), classes) if errors else "-"
            cells.append(f"**{text}**" if errors and min(errors) == least else text)
        lines.append([data, family, *cells])
    return lines


def is_class(found: list[Point], data: str) -> bool:
    return max(p.error for p in found if p.data == data) < 1


ALIKE = 0.05
"""Median errors of few splits that differ by less than this part count as equal."""


def every(found: list[Point]) -> str:
    lines = []
    for p in found:
        classes, name = is_class(found, p.data), f"{p.family}: {p.size}" if p.size else p.family
        name += f" x {p.variant}" if p.variant else ""
        spread = f"{told(p.error, classes)} ({told(p.least, classes)} to {told(p.most, classes)})"
        lines.append([p.data, name, spread, f"{p.flash:,.0f}", f"{p.predict:,.0f}"])
    return markdown(["data", "model", "error", "flash", "instructions"], lines)


def at(found: list[Point], data: str, family: str, size: int = SIZE) -> Point:
    (point,) = [p for p in found if (p.data, p.family, p.size) == (data, family, str(size))]
    return point


def compared(found: list[Point], other: str, mine: str, what: Callable[[Point], float], margin: float = 0) -> list[str]:
    """Tables on which another family's model of the same size has less of something than ours, by more than this part."""
    names = dict.fromkeys(p.data for p in found)
    return [name for name in names if (1 + margin) * what(at(found, name, other)) < what(at(found, name, mine))]


def listed(names: list[str]) -> str:
    if len(names) == TABLES:
        return "all tables"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "none of the tables"


def words(found: list[Point]) -> str:
    """Where a network wins."""
    mine, other, by_hand = "trained vectors", "network, emlearn", "network, by hand"
    names = list(dict.fromkeys(p.data for p in found))
    lines = [
        "- Error of "
        + f"{SIZE} trained vectors against a network of {SIZE} hidden units: "
        + "; ".join(
            f"{name} {told(at(found, name, mine).error, is_class(found, name))} against "
            f"{told(at(found, name, other).error, is_class(found, name))}"
            for name in names
        )
        + "."
    ]
    for family, kind in ((other, "The network's C by emlearn"), (by_hand, "The network's C by hand")):
        less = {
            thing: listed(compared(found, family, mine, of))
            for thing, of in (("flash", lambda p: p.flash), ("instructions", lambda p: p.predict))
        }
        lines.append(f"- {kind} takes less flash on {less['flash']}, fewer instructions on {less['instructions']}.")
    small = listed(compared(found, "network, by hand, int8", "trained vectors, int16", lambda p: p.flash))
    fewer = listed(compared(found, "network, by hand, int8", "trained vectors, int16", lambda p: p.predict))
    lines.append(
        f"- With int8 weights, by hand, the network takes less flash than trained vectors in int16 on {small}, fewer "
        f"instructions on {fewer}."
    )
    return "\n".join(lines) + "\n"


def figure(path: Path, found: list[Point]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(p.data for p in found))
    with pyplot.rc_context({"svg.hashsalt": "fronts", "font.size": 9, "svg.fonttype": "none"}):
        drawn, grid = pyplot.subplots(
            len(names), 2, figsize=(9, 3.1 * len(names) + 0.8), layout="constrained", sharey="row", squeeze=False
        )
        for line, name in zip(grid, names, strict=True):
            for axes, cost, label in zip(line, ("flash", "predict"), ("flash, bytes", "instructions"), strict=True):
                for family, (marker, style, grey, fill) in FAMILIES.items():
                    best = front([p for p in found if (p.data, p.family) == (name, family)], cost)
                    costs = [getattr(p, cost) for p in best]
                    how = {"color": grey, "marker": marker, "mfc": fill, "mec": grey, "ms": 5, "lw": 1.2}
                    axes.plot(costs, [p.error for p in best], linestyle=style or "none", label=family, zorder=3, **how)
                    axes.vlines(costs, [p.least for p in best], [p.most for p in best], color=grey, lw=0.6)
                axes.set(xscale="log", yscale="log", xlabel=label)
                axes.minorticks_off()
                axes.grid(True, which="major", color="0.92", lw=0.6)
                axes.spines[["top", "right"]].set_visible(False)
            classes = is_class(found, name)
            ticks = (0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.4) if classes else (60, 65, 70, 80, 90, 100)
            low, high = line[0].get_ylim()
            line[0].set_yticks([tick for tick in ticks if low <= tick <= high])
            line[0].yaxis.set_major_formatter(lambda v, _, classes=classes: f"{v:.0%}" if classes else f"{v:g}")
            line[0].set(ylim=(low, high), ylabel=f"{name}: {'error rate' if classes else 'RMSE'}")
        handles, labels = grid[0][0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
        with whole_file(path) as file:
            drawn.savefig(file, format="svg", metadata={"Date": None})
        pyplot.close(drawn)


def tables(found: list[Point]) -> dict[str, str]:
    """For docs/benchmarks.md."""
    names = list(dict.fromkeys(p.data for p in found))
    made = {}
    for cost, title in (("flash", "fronts, flash"), ("predict", "fronts, instructions")):
        heads = [f"{limit // 1024} KiB" if cost == "flash" else f"{limit:,}" for limit in BUDGETS[cost]]
        lines = [line for name in names for line in budgets(found, name, cost)]
        made[title] = markdown(["data", "model", *heads], lines)
    return made | {"fronts, in words": words(found), "fronts, all models": every(found)}


def main() -> None:
    found = points(load(DATA / "fronts.csv"))
    figure(FIGURE, found)
    publish(tables(found))


if __name__ == "__main__":
    main()
