"""The tables and the phrases of docs/novelty.md, from the results of run.py and compare.py."""

from __future__ import annotations

import csv
import re
import textwrap
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
    "gaussians": "16 Gaussians",
    "gaussians, small": "4 Gaussians",
    "centroids": "250 centroids",
}
SHORT = ("okfeb", "small", "max \\|z\\|", "Mahal.", "products", "16 G.", "4 G.", "centroids")


def load(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def results(folder: Path) -> Results:
    found: dict[str, Rows] = {
        name: load(folder / f"{name}.csv") for name in ("tuning", "variants", "detection", "cost", "tour", "device")
    }
    return found | {"output": [{"text": (folder / "output.txt").read_text(encoding="utf-8")}]}


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
    heads = [
        "samples",
        "what happens",
        "okfeb: alarms",
        "after",
        "in alarm",
        "level",
        "threshold",
        "max \\|z\\|",
        "Mahalanobis",
    ]
    lines = []
    for row in (row for row in found["tour"] if row["detector"] == "okfeb"):
        others = [
            one(found["tour"], detector=name, **{"from": row["from"]})["alarms"] for name in ("largest", "mahalanobis")
        ]
        span = f"{number(row['from'])} to {number(row['to'])}"
        lines.append(
            [span, row["what"], *(row[key] for key in ("alarms", "after", "samples", "level", "threshold")), *others]
        )
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


def variants_table(found: Results) -> str:
    lines = []
    for row in found["variants"]:
        area_and_error = f"{part(row['auc'])} ± {part(row['auc_error'])}"
        alarms = f"{float(row['false_alarms']):.1f}"
        lines.append(
            [row["changed"] or "nothing", number(row["state_bytes"]), area_and_error, part(row["least"]), alarms]
        )
    return markdown(["changed", "state", "AUC", "of the worst seed", "false alarms for each 10,000"], lines)


# ------------------------------------------------------------------------------------------------------------- text


def group(found: Results, name: str, kind: str) -> Mapping[str, str]:
    return one(found["detection"], detector=name, fault=f"all {kind}")


def area(found: Results, name: str, kind: str = "subtle") -> float:
    return float(group(found, name, kind)["auc"])


def share(found: Results, name: str, kind: str = "subtle") -> str:
    row = group(found, name, kind)
    return f"{100 * int(row['missed']) / (int(row['seeds']) * int(row['faults'])):.0f} %"


def claim(holds: bool, text: str) -> str:
    """The text; ValueError if the results say otherwise."""
    if not holds:
        raise ValueError(f"the results no longer say: {text}")
    return text


def clearly(found: Results, better: str, worse: str, kind: str = "subtle") -> bool:
    """Whether the difference of two AUCs is more than twice what their standard errors leave open."""
    errors = [float(group(found, name, kind)["auc_error"]) for name in (better, worse)]
    return area(found, better, kind) - area(found, worse, kind) > 2 * (errors[0] ** 2 + errors[1] ** 2) ** 0.5


def verdict(found: Results) -> str:
    """What the results say, sentence by sentence; each fails to be made if it is not so."""
    cost = {name: one(found["cost"], detector=name) for name in NAMES}
    ratio = int(cost["okfeb"]["update_mean"]) / int(cost["largest"]["update_mean"])
    size = int(cost["okfeb"]["state_bytes"]) / int(cost["largest"]["state_bytes"])
    gross = [area(found, name, "gross") for name in NAMES]
    spread = {name: sorted(float(r["auc"]) for r in found["tuning"] if r["detector"] == name) for name in NAMES}
    lines = [
        claim(
            max(gross) - area(found, "largest", "gross") < 0.02
            and int(group(found, "largest", "gross")["missed"]) <= 4,
            f"**For gross faults max |z| is enough**: AUC {part(str(area(found, 'largest', 'gross')))} against "
            f"{part(str(area(found, 'okfeb', 'gross')))}, {share(found, 'largest', 'gross')} missed, at 1/{size:.0f} of the "
            f"bytes and 1/{ratio:.0f} of the instructions; Mahalanobis distance, {number(cost['mahalanobis']['state_bytes'])} "
            f"bytes, misses {share(found, 'mahalanobis', 'gross')}. Take these first, and look whether they are enough.",
        ),
        claim(
            clearly(found, "okfeb", "largest") and clearly(found, "okfeb", "mahalanobis"),
            f"**For subtle faults the monitor is better than max |z| and Mahalanobis distance**: AUC "
            f"{part(str(area(found, 'okfeb')))} against {part(str(area(found, 'largest')))} and "
            f"{part(str(area(found, 'mahalanobis')))}; {share(found, 'okfeb')} missed against {share(found, 'largest')} and "
            f"{share(found, 'mahalanobis')}. These two take {number(cost['largest']['state_bytes'])} and "
            f"{number(cost['mahalanobis']['state_bytes'])} bytes; they could not use more.",
        ),
    ]
    products = f"AUC {part(str(area(found, 'quadratic')))} with {number(cost['quadratic']['state_bytes'])} bytes, the monitor of "
    products += f"{number(cost['okfeb, small']['state_bytes'])} bytes has {part(str(area(found, 'okfeb, small')))}"
    if clearly(found, "okfeb, small", "quadratic"):
        lines.append(f"**With products** Mahalanobis distance is worse than a monitor of its memory: {products}.")
    elif clearly(found, "quadratic", "okfeb, small"):
        lines.append(f"**With products** Mahalanobis distance is better than a monitor of its memory: {products}.")
    else:
        lines.append(f"**With products** Mahalanobis distance is about as good as a monitor of its memory: {products}.")
    sizes = {name: number(cost[name]["state_bytes"]) for name in NAMES}
    lines.append(
        claim(
            clearly(found, "gaussians", "okfeb") and spread["gaussians"][0] < spread["okfeb"][0],
            f"**A bank of Gaussians is better than the monitor on this machine**: AUC {part(str(area(found, 'gaussians')))} with "
            f"16 of them, {sizes['gaussians']} bytes, against {part(str(area(found, 'okfeb')))} with {sizes['okfeb']}; "
            f"{part(str(area(found, 'gaussians, small')))} with one for each gear, {sizes['gaussians, small']} bytes. But you "
            f"must choose how many, how wide and how far apart: over the settings of the table above, AUC of all faults goes from "
            f"{part(str(spread['gaussians'][0]))} to {part(str(spread['gaussians'][-1]))}, the monitor's from "
            f"{part(str(spread['okfeb'][0]))} to {part(str(spread['okfeb'][-1]))}.",
        )
    )
    points = f"{part(str(area(found, 'centroids')))} against {part(str(area(found, 'okfeb')))}, at "
    points += f"{number(cost['centroids']['update_mean'])} instructions against {number(cost['okfeb']['update_mean'])}"
    if clearly(found, "centroids", "okfeb"):
        lines.append(f"**As many centroids as the memory holds are better, too**: AUC {points} for an update.")
    elif clearly(found, "okfeb", "centroids"):
        lines.append(f"**As many centroids as the memory holds are worse**: AUC {points} for an update.")
    else:
        lines.append(f"**As many centroids as the memory holds are about as good**: AUC {points} for an update.")
    lines.append(
        "If you need only alarms, try centroids and Gaussians, too. okfeb has three advantages: nobody must know the number of "
        "regimes, the score is between 0 and 1, and the same memory gives features for a classifier or a regression that is "
        "trained beside it, with any kernel."
    )
    return "".join(f"{wrapped(line)}\n" for line in lines)


def wrapped(line: str) -> str:
    return textwrap.fill(f"- {line}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def quoted(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


HERE = Path(__file__).parent
BLOCKS: Mapping[str, Callable[[Results], str]] = {
    "spec": lambda found: quoted("toml", (HERE / "monitor.toml").read_text(encoding="utf-8")),
    "firmware": lambda found: quoted("c", (HERE / "firmware.c").read_text(encoding="utf-8")),
    "output": lambda found: quoted("text", found["output"][0]["text"]),
    "tour": tour_table,
    "variants": variants_table,
    "tuning": tuning_table,
    "summary": summary_table,
    "verdict": verdict,
    "areas": area_table,
    "delays": delay_table,
}


def fill(page: str, folder: Path) -> str:
    """The page with each block between ``<!-- name -->`` and ``<!-- end -->``."""
    found = results(folder)
    for name, block in BLOCKS.items():
        pattern = rf"(?<=<!-- {name} -->\n).*?(?=<!-- end -->)"
        if not re.search(pattern, page, re.DOTALL):
            raise ValueError(f"the page has no place for {name!r}")
        text = block(found)
        page = re.sub(pattern, lambda _, text=text: f"\n{text}\n", page, count=1, flags=re.DOTALL)
    return page
