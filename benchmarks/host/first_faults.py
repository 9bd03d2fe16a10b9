"""What faults in a stream cost a spec that names no rule, and linear models: error with the fault over error without.

    python -m benchmarks.host.first_faults          # docs/data/first-faults.csv, and the table of docs/reference/rules.md

Streams: the numbers of first_streams.py as they are.  Errors are root mean squares over those rows of the second half whose
labels are sound.

outlying labels: of rows from 60 on, 0.4 %, drawn at random, are 200 standard deviations away.
first input, first label: the first row is 1,000 standard deviations away.
quiet inputs, quiet labels: over the first third, everything moves a ten-thousandth as much as later.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.host.first_results import SMALL, minimal
from benchmarks.host.first_streams import REGRESSION, raw
from benchmarks.tables import DATA, Rows, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.host.simple import linear_specs
from pykernel.spec.model import Spec

Fault = Callable[[np.ndarray, np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]
OFF = {"label": {"column": "y", "clip": 1000.0}}


def outlying(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    wrong = rng.random(len(y)) < 0.004
    wrong[:60] = False
    return x, y + wrong * rng.choice([-200, 200], len(y)) * y.std()


def first_input(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return x + np.eye(len(x), 1) * 1e3 * x.std(axis=0), y


def first_label(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return x, y + np.eye(len(y), 1)[:, 0] * 1e3 * y.std()


def _quieter(values: np.ndarray) -> np.ndarray:
    late = np.arange(len(values)) >= len(values) // 3
    loud = np.where(late, 1.0, 1e-4).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(values.mean(axis=0) + loud * (values - values.mean(axis=0)))


def quiet_inputs(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return _quieter(x), y


def quiet_labels(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    return x, _quieter(y)


FAULTS: dict[str, Fault] = {
    "outlying labels": outlying,
    "first input": first_input,
    "first label": first_label,
    "quiet inputs": quiet_inputs,
    "quiet labels": quiet_labels,
}


def predictors(dim: int) -> dict[str, Spec]:
    default = minimal(dim, 0)
    specs = {"spec without a rule": default, "the same, labels not limited": minimal(dim, 0, **OFF)}
    return specs | {"spec for a small target": minimal(dim, 0, **SMALL)} | linear_specs(default)


def error(spec: Spec, x: np.ndarray, y: np.ndarray, sound: np.ndarray) -> float:
    answers, _ = HostModel(spec).prequential(x, y)
    missed = (np.nan_to_num(np.reshape(answers, -1)).astype(float) - y)[len(y) // 2 :]
    return float(np.sqrt(np.mean(missed[sound[len(y) // 2 :]] ** 2)))


def table(rows: Rows) -> str:
    made = []
    for name in dict.fromkeys(row["predictor"] for row in rows):
        line = [name]
        for fault in FAULTS:
            found = [float(row["ratio"]) for row in rows if row["predictor"] == name and row["fault"] == fault]
            line.append(f"{np.median(found):.2f} / {np.quantile(found, 0.9):.2f}")
        made.append(line)
    return markdown(["", *FAULTS], made)


def main() -> None:
    rows: list[dict[str, Any]] = []
    for name in REGRESSION:
        x, y = raw(name)
        for called, spec in predictors(x.shape[1]).items():
            usual = error(spec, x, y, np.ones(len(y), bool))
            for fault, make in FAULTS.items():
                faulty, labels = make(x, y, np.random.default_rng(zlib.crc32(name.encode())))
                sound = labels == y if fault == "outlying labels" else np.ones(len(y), bool)
                ratio = error(spec, faulty, labels, sound) / max(usual, 1e-12)
                rows.append({"stream": name, "predictor": called, "fault": fault, "ratio": f"{ratio:.4g}"})
    publish({"first-faults": table(save(DATA / "first-faults.csv", rows))})
    print(table(save(DATA / "first-faults.csv", rows)))


if __name__ == "__main__":
    main()
