"""The tables of docs/trained-vectors.md, from docs/data/trained-vectors.csv: python -m benchmarks.host.trained_vectors_page"""

from __future__ import annotations

from statistics import median

from benchmarks.tables import DATA, DOCS, load, markdown, place
from pykernel.files import whole_file

MODELS = (
    *(f"{kind} {n}" for n in (8, 16, 32) for kind in ("trained", "chosen", "network")),
    "boosted",
    "full",
)
NAMED = ("digits", "breast_cancer", "wine", "diabetes", "ImageSegments", "Phishing", "Bananas", "TrumpApproval", "fair", "randhie")  # fmt: skip
PAGE = DOCS / "trained-vectors.md"


def medians() -> dict[str, dict[str, float]]:
    """Of each table, of each model: the median of the errors."""
    found: dict[str, dict[str, list[float]]] = {}
    for row in load(DATA / "trained-vectors.csv"):
        found.setdefault(row["table"], {}).setdefault(row["model"], []).append(float(row["error"]))
    return {table: {model: median(errors) for model, errors in of.items()} for table, of in found.items()}


def verdict(found: dict[str, dict[str, float]]) -> str:
    """Against networks of as many units and against chosen vectors, over the tables that were named before."""
    lines = []
    for other in ("network", "chosen"):
        for size in (8, 16, 32):
            ratios = sorted(
                found[name][f"trained {size}"] / max(found[name][f"{other} {size}"], 1e-9) for name in NAMED
            )
            better = sum(ratio < 1 for ratio in ratios)
            worse = sum(ratio > 1 for ratio in ratios)
            lines.append(
                f"- {size} trained vectors against {size} {'hidden units' if other == 'network' else 'chosen vectors'}: better on "
                f"{better} of the ten tables, worse on {worse}; error {median(ratios):.2f} times as large in the median, "
                f"{ratios[0]:.2f} to {ratios[-1]:.2f}."
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    found = medians()
    rows = [[name, *(f"{of[model]:.3f}" for model in MODELS)] for name, of in found.items()]
    page = place(PAGE.read_text(encoding="utf-8"), "trained", markdown(["table", *MODELS], rows))
    with whole_file(PAGE) as file:
        file.write(place(page, "verdict", verdict(found)).encode())


if __name__ == "__main__":
    main()
