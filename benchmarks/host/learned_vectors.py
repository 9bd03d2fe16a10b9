"""Vectors trained on the PC, frozen on the device or learning there: errors on what comes after the recording.

    python -m benchmarks.host.learned_vectors          # docs/data/learned-vectors.csv, and the table in docs/online.md
    python -m benchmarks.host.learned_vectors --show   # the table of the file

The first third of each raw stream is the recording: vectors are trained on it, and models that learn start from it
(``generate(start=...)``).  Then every row is predicted, then learned.  error: root mean square over the second half of the stream.
bytes: RAM.  The vectors themselves are const data in flash.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.host.first_results import error_of
from benchmarks.host.first_streams import REGRESSION, stream
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel import TrainedKernelRegressor
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec

VECTORS = 16
RIDGE, FORGETTING, LEAST = 0.01, 0.999, 0.002
SHOWN = ("bikes", "water flow", "chicks", "battery", "thermistor")
"""Beside the mean of all streams.  The first three are public recordings, the others public models of sensors."""
FROZEN, WEIGHTS = "frozen vectors", "their weights learn"
EMPTY, STARTED = "no rule, from empty", "no rule, from the recording"


def apart(vectors: np.ndarray, gamma: float) -> list[list[float]]:
    """The vectors, without those that others span as far as float32 resolves: the rule refuses such."""
    kept: list[np.ndarray] = []
    for v in vectors:
        k = np.exp(-gamma * ((np.array(kept).reshape(-1, len(v)) - v) ** 2).sum(1))
        gram = np.exp(-gamma * ((np.array(kept)[:, None] - np.array(kept)[None]) ** 2).sum(2)) if kept else np.eye(0)
        if 1 - k @ np.linalg.lstsq(gram, k, rcond=None)[0] > LEAST:
            kept.append(v)
    return [v.tolist() for v in kept]


def learning(frozen: Spec, label_most: float) -> Spec:
    """The same vectors, and weights that learn by recursive least squares."""
    content = frozen.model_dump(exclude_unset=True)
    content["expansion"] = {"vectors": apart(np.array(content["expansion"]["vectors"]), content["kernel"]["gamma"])}
    label = {"column": "y", "center": True, "max_abs": 10 * label_most}
    learn = {"rule": "nystrom-rls", "ridge": RIDGE, "forgetting": FORGETTING}
    return make_spec(content | {"label": label, "learning": learn, "basis": {"method": "given"}})


def models(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Spec, bool]]:
    """Name, spec, and whether the model starts from the recording (x, y)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that is no better than a linear one: the table shows that
        frozen = (
            TrainedKernelRegressor(min(VECTORS, len(x) // 4), random_state=0, progress=False).fit(x, y).to_spec("m")
        )
    most = float(np.abs(y).max()) or 1.0
    yield FROZEN, frozen, False
    yield WEIGHTS, learning(frozen, most), True
    default: dict[str, Any] = {"name": "m", "input": {"dim": x.shape[1]}, "label": {"column": "y"}}
    yield EMPTY, make_spec(default), False
    yield STARTED, make_spec(default), True


def measure() -> Iterator[dict[str, Any]]:
    for name in REGRESSION:
        x, y = stream(name)
        cut = len(x) // 3
        for called, spec, started in models(x[:cut], y[:cut]):
            model = HostModel(spec)
            if not spec.program.learns:
                answers = model.predict(x).reshape(-1)
            else:
                answers = np.full(len(x), np.nan)
                if started:
                    model.update(x[:cut], y[:cut])
                begin = cut if started else 0
                answers[begin:] = model.prequential(x[begin:], y[begin:])[0].reshape(-1)
            ram = build(spec).figures["ram_bytes"]
            yield {"stream": name, "model": called, "error": f"{error_of(answers, y, 0):.6g}", "ram_bytes": ram}
        print(name, flush=True)


def table(rows: Rows) -> str:
    """Errors in parts of those of the frozen vectors."""
    found = {(row["stream"], row["model"]): float(row["error"]) for row in rows}
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        parts = {name: found[name, model] / max(found[name, FROZEN], 1e-12) for name in REGRESSION}
        mean = math.exp(float(np.mean(np.log(list(parts.values())))))
        ram = next(row["ram_bytes"] for row in rows if (row["stream"], row["model"]) == (SHOWN[0], model))
        lines.append([model, *(f"{parts[name]:.2f}" for name in SHOWN), f"{mean:.2f}", f"{int(ram):,}"])
    return markdown(["model", *SHOWN, f"all {len(REGRESSION)}, geometric mean", f"RAM, {SHOWN[0]}"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the table of the file")
    path = DATA / "learned-vectors.csv"
    rows = load(path) if parser.parse_args().show else save(path, list(measure()))
    publish({"learned-vectors": table(rows)}, DATA.parent / "online.md")
    print(table(rows))


if __name__ == "__main__":
    main()
