"""Vectors trained on the PC, frozen on the device or learning there: errors on what comes after the recording.

    python -m benchmarks.host.learned_vectors          # docs/data/learned-vectors.csv, and the tables in docs/online.md
    python -m benchmarks.host.learned_vectors --show   # the tables of the file

The first third of each raw stream is the recording: vectors are trained on it, and models that learn start from it
(``generate(start=...)``).  Models that go on from the trained function begin after the recording.  Every row is predicted, then
learned.  error: root mean square over the second half of the stream.  bytes: RAM, of bikes.  The vectors are const data in flash.

Constants of the rules were chosen on every second stream, and are judged on the others.
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
SHOWN = ("bikes", "water flow", "chicks", "airline", "trump", "thermistor")
"""Beside the means of all streams.  The first five are public recordings, the last a model of a sensor."""
NLMS, RLS = "expansion-nlms", "expansion-rls"
FROZEN, ANEW = "frozen", "`nystrom-rls`, from the recording"
EMPTY, STARTED = "no rule, from empty", "no rule, from the recording"
CHOOSING, JUDGING = tuple(REGRESSION)[0::2], tuple(REGRESSION)[1::2]
OTHERS: tuple[tuple[str, dict[str, Any], bool], ...] = (
    *((NLMS, {"eta": eta}, True) for eta in (0.1, 0.2, 0.5, 1.0)),
    *((RLS, {"prior_variance": variance}, True) for variance in (1.0, 10.0, 100.0)),
    *((RLS, {"forgetting": forgetting}, True) for forgetting in (0.995, 0.9995)),
    (NLMS, {}, False),
    (NLMS, {"eta": 0.1}, False),
    (RLS, {}, False),
)
"""Rule, keys, and whether there is a gain: what the defaults were chosen from."""


def apart(vectors: np.ndarray, gamma: float) -> list[list[float]]:
    """The vectors, without those that others span as far as float32 resolves: nystrom-rls refuses such."""
    kept: list[np.ndarray] = []
    for v in vectors:
        k = np.exp(-gamma * ((np.array(kept).reshape(-1, len(v)) - v) ** 2).sum(1))
        gram = np.exp(-gamma * ((np.array(kept)[:, None] - np.array(kept)[None]) ** 2).sum(2)) if kept else np.eye(0)
        if 1 - k @ np.linalg.lstsq(gram, k, rcond=None)[0] > LEAST:
            kept.append(v)
    return [v.tolist() for v in kept]


def anew(frozen: Spec, label_most: float) -> Spec:
    """The same vectors, and weights that are learned anew, from zero."""
    content = frozen.model_dump(exclude_unset=True)
    content["expansion"] = {"vectors": apart(np.array(content["expansion"]["vectors"]), content["kernel"]["gamma"])}
    label = {"column": "y", "center": True, "max_abs": 10 * label_most}
    learn = {"rule": "nystrom-rls", "ridge": RIDGE, "forgetting": FORGETTING}
    return make_spec(content | {"label": label, "learning": learn, "basis": {"method": "given"}})


def going_on(frozen: Spec, rule: str, keys: dict[str, Any] | None = None, gain: bool = True) -> Spec:
    """The frozen model, which goes on learning."""
    content = frozen.model_dump(exclude_unset=True)
    label = {"column": "y"} | ({} if gain else {"gain": False})
    return make_spec(content | {"label": label, "learning": {"rule": rule} | (keys or {})})


def called(rule: str, keys: dict[str, Any], gain: bool) -> str:
    words = [
        f"`{rule}`",
        *(f"`{key} = {value:g}`" for key, value in keys.items()),
        *([] if gain else ["`gain = false`"]),
    ]
    return ", ".join(words)


def models(x: np.ndarray, y: np.ndarray) -> Iterator[tuple[str, Spec]]:
    """Name and spec.  x, y: the recording."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a fit that is no better than a linear one: the table shows that
        frozen = (
            TrainedKernelRegressor(min(VECTORS, len(x) // 4), random_state=0, progress=False).fit(x, y).to_spec("m")
        )
    most = float(np.abs(y).max()) or 1.0
    yield FROZEN, frozen
    yield f"`{NLMS}`", going_on(frozen, NLMS)
    yield f"`{RLS}`", going_on(frozen, RLS)
    yield ANEW, anew(frozen, most)
    default: dict[str, Any] = {"name": "m", "input": {"dim": x.shape[1]}, "label": {"column": "y"}}
    yield EMPTY, make_spec(default)
    yield STARTED, make_spec(default)
    for rule, keys, gain in OTHERS:
        yield called(rule, keys, gain), going_on(frozen, rule, keys, gain)


def measure() -> Iterator[dict[str, Any]]:
    for name in REGRESSION:
        x, y = stream(name)
        cut = len(x) // 3
        for model_name, spec in models(x[:cut], y[:cut]):
            model = HostModel(spec)
            if not spec.program.learns:
                answers = model.predict(x).reshape(-1)
            else:
                answers = np.full(len(x), np.nan)
                if model_name in (ANEW, STARTED):
                    model.update(x[:cut], y[:cut])
                begin = 0 if model_name == EMPTY else cut
                answers[begin:] = model.prequential(x[begin:], y[begin:])[0].reshape(-1)
            ram = build(spec).figures["ram_bytes"] if name == SHOWN[0] else ""
            yield {"stream": name, "model": model_name, "error": f"{error_of(answers, y, 0):.6g}", "ram_bytes": ram}
        print(name, flush=True)


def parts_of(rows: Rows, model: str) -> dict[str, float]:
    """Each stream's error, in parts of that of the frozen vectors."""
    found = {(row["stream"], row["model"]): float(row["error"]) for row in rows}
    return {name: found[name, model] / max(found[name, FROZEN], 1e-12) for name in REGRESSION}


def mean(parts: dict[str, float], of: tuple[str, ...]) -> str:
    return f"{math.exp(float(np.mean(np.log([parts[name] for name in of])))):.2f}"


def table(rows: Rows) -> str:
    """Errors in parts of those of the frozen vectors."""
    lines = []
    others = {called(*other) for other in OTHERS}
    for model in dict.fromkeys(row["model"] for row in rows):
        if model in others:
            continue
        parts = parts_of(rows, model)
        ram = next(row["ram_bytes"] for row in rows if (row["stream"], row["model"]) == (SHOWN[0], model))
        shown = (f"{parts[name]:.2f}" for name in SHOWN)
        means = mean(parts, CHOOSING), mean(parts, JUDGING)
        lines.append([model, *shown, *means, f"{max(parts.values()):.2f}", f"{int(ram):,}"])
    head = [
        "model",
        *SHOWN,
        f"{len(CHOOSING)} streams",
        f"the other {len(JUDGING)}",
        "worst of all",
        f"RAM, {SHOWN[0]}",
    ]
    return markdown(head, lines)


def choice(rows: Rows) -> str:
    """The same of other constants, and of the rules without a gain."""
    lines = []
    for model in [f"`{NLMS}`", f"`{RLS}`", *(called(*other) for other in OTHERS)]:
        parts = parts_of(rows, model)
        worst = (f"{max(parts[name] for name in half):.2f}" for half in (CHOOSING, JUDGING))
        means = mean(parts, CHOOSING), mean(parts, JUDGING)
        lines.append([model, means[0], next(worst), means[1], next(worst)])
    half = len(CHOOSING)
    return markdown(["model", f"{half} streams", "worst", f"the other {half}", "worst of these"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the tables of the file")
    path = DATA / "learned-vectors.csv"
    rows = load(path) if parser.parse_args().show else save(path, list(measure()))
    publish({"learned-vectors": table(rows), "learned-vectors-choice": choice(rows)}, DATA.parent / "online.md")
    print(table(rows), choice(rows), sep="\n")


if __name__ == "__main__":
    main()
