"""The tables and the phrases of docs/novelty.md, from the results of run.py and compare.py."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

Rows = Sequence[Mapping[str, str]]
Results = Mapping[str, Rows]

NAMES = {
    "okfeb": "okfeb, 48 vectors",
    "okfeb, small": "okfeb, 32 vectors",
    "largest": "max \\|z\\|",
    "mahalanobis": "Mahalanobis",
    "quadratic": "Mahalanobis, products too",
    "gaussians": "48 Gaussians",
    "gaussians, small": "12 Gaussians",
    "centroids": "250 centroids",
}
SHORT = ("okfeb", "small", "max \\|z\\|", "Mahal.", "products", "48 G.", "12 G.", "centroids")


def load(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results(folder: Path) -> Results:
    return {name: load(folder / f"{name}.csv") for name in ("tuning", "detection", "cost", "tour", "device")}


def one(rows: Rows, **wanted: str) -> Mapping[str, str]:
    (row,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return row


def number(text: str) -> str:
    return f"{int(text):,}"


def part(text: str, digits: int = 3) -> str:
    return f"{float(text):.{digits}f}".removeprefix("0") if float(text) < 1 else f"{float(text):.{digits}f}"


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in [heads, ["---"] * len(heads), *rows])


# ------------------------------------------------------------------------------------------------------------ tables


def tour_table(found: Results) -> str:
    """What the monitor and the two simplest said of each part of the tour."""
    heads = ["samples", "what happens", "okfeb: alarms", "after", "in alarm", "max \\|z\\|", "Mahalanobis"]
    lines = []
    for row in (row for row in found["tour"] if row["detector"] == "okfeb"):
        others = [
            one(found["tour"], detector=name, **{"from": row["from"]})["alarms"] for name in ("largest", "mahalanobis")
        ]
        span = f"{number(row['from'])} to {number(row['to'])}"
        lines.append([span, row["what"], row["alarms"], row["after"], row["samples"], *others])
    return markdown(heads, lines)


def summary_table(found: Results) -> str:
    heads = ["detector", "state", "flash", "update, mean", "largest", "AUC, subtle", "missed", "AUC, gross", "missed"]
    heads += ["false alarms for each 10,000"]
    lines = []
    for name, text in NAMES.items():
        cost = one(found["cost"], detector=name)
        subtle, gross = (one(found["detection"], detector=name, fault=f"all {kind}") for kind in ("subtle", "gross"))
        cells = [number(cost[key]) for key in ("state_bytes", "flash_bytes", "update_mean", "update_max")]
        for row in (subtle, gross):
            share = 100 * int(row["missed"]) / (int(row["seeds"]) * int(row["faults"]))
            cells += [f"{part(row['auc'])} ± {part(row['auc_error'])}", f"{share:.0f} %"]
        cells.append(f"{float(subtle['false_alarms']):.1f} ± {float(subtle['false_alarms_error']):.1f}")
        lines.append([text, *cells])
    return markdown(heads, lines)


def faults(found: Results) -> list[tuple[str, str]]:
    kinds = [(row["fault"], row["grade"]) for row in found["detection"] if row["detector"] == "okfeb"]
    return [(kind, grade) for kind, grade in kinds if not kind.startswith("all") and kind != "none"]


def area_table(found: Results) -> str:
    lines = []
    for kind, grade in faults(found):
        rows = [one(found["detection"], detector=name, fault=kind, grade=grade) for name in NAMES]
        best = max(float(row["auc"]) for row in rows)
        cells = [f"**{part(r['auc'])}**" if float(r["auc"]) > best - 0.0005 else part(r["auc"]) for r in rows]
        error = max(float(row["auc_error"]) for row in rows)
        lines.append([kind, grade, f"{100 * float(rows[0]['inside']):.0f} %", *cells, part(f"{error}")])
    return markdown(["fault", "size", "inside", *SHORT, "error"], lines)


def delay_table(found: Results) -> str:
    lines = []
    for kind, grade in [("none", ""), *faults(found)]:
        rows = [one(found["detection"], detector=name, fault=kind, grade=grade) for name in NAMES]
        lines.append([kind, grade, *(f"{row['delay'] or '-'} ({row['missed']})" for row in rows)])
    return markdown(["fault", "size", *SHORT], lines)


def tuning_table(found: Results) -> str:
    lines = []
    for name, text in NAMES.items():
        rows = [row for row in found["tuning"] if row["detector"] == name]
        best = one(rows, chosen="yes")
        areas = sorted(float(row["auc"]) for row in rows)
        cells = [f"{len(rows)}", part(f"{areas[0]}"), part(f"{areas[len(areas) // 2]}"), part(f"{areas[-1]}")]
        lines.append([text, *cells, best["parameters"]])
    return markdown(["detector", "tried", "worst", "median", "best", "chosen"], lines)


TABLES: Mapping[str, Callable[[Results], str]] = {
    "tour": tour_table,
    "summary": summary_table,
    "areas": area_table,
    "delays": delay_table,
    "tuning": tuning_table,
}


def fill(page: str, folder: Path) -> str:
    """The page with each table between ``<!-- name -->`` and ``<!-- end -->``."""
    found = results(folder)
    for name, table in TABLES.items():
        pattern = rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)"
        if not re.search(pattern, page, re.DOTALL):
            raise ValueError(f"the page has no place for {name!r}")
        text = table(found)
        page = re.sub(pattern, lambda _, text=text: f"\n{text}\n", page, count=1, flags=re.DOTALL)
    return page
