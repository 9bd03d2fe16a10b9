"""Does a net of eight waves learn in whole numbers?  And with how few bits?

    python -m benchmarks.host.spectrum_whole           # docs/data/spectrum-whole.csv, and tables of docs/spectrum.md and whole-numbers.md
    python -m benchmarks.host.spectrum_whole --show    # only the tables of the file

`spectrum-ekf` and "the default": what a spec without a rule gets; of classes, what it gets, and one without a rule but with a budget.

error: root mean square over the second half of each stream of benchmarks/host/first_streams.py, over that of the best simple
predictor; of classes, the part that is wrong, at least half of a row.  Models have the stages of the default of whole numbers: label's mean, linear part, gain.  Inputs have known centers.
"range": a third of an input's range stands for its deviation, as by default; "deviation": it is given.  Of float32,
inputs are standardised as they come.  Without stages, all precisions see the same inputs and labels.

Fewer bits: after each sample, the numbers of the state are rounded to so many, of which 16 u is the largest weight.
State: bytes; predict and update: instructions on a Cortex-M0+ (GCC -O2), medians; for three inputs, and three classes.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks.host.first_results import SIMPLE, error_of, read
from benchmarks.host.first_streams import CLASS_VARIANTS, CLASSES, REGRESSION, stream
from benchmarks.tables import DATA, Rows, load, markdown, publish, save
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.defaults import width
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.check import check_targets

RESULTS = DATA / "spectrum-whole.csv"
VARIANTS = ("as is", "noise")
STAGES: dict[str, Any] = {"label": {"center": True, "gain": True}, "linear": {}}
RATED = {"learning": {"eta": 0.4}}
"""A spec of numbers with a learning rate gets spectrum-nlms, with its own default here."""
ROOM = 1.001
"""Ranges are so much larger than what comes: no sample is refused."""
WEIGHT_MOST = 16.0
"""Largest weight in units of the output, where weights have fewer bits."""
BITS: dict[str, dict[str, int]] = {
    "frequencies of 12 bits": {"frequencies": 12},
    "frequencies of 8 bits": {"frequencies": 8},
    "weights of 16 bits": {"weights": 16},
    "weights of 12 bits": {"weights": 12},
    "weights of 8 bits": {"weights": 8},
}
FILTER = "`spectrum-ekf`, int16"
DEFAULT = "the default, float32"
SAME = "`spectrum-ekf`, float32"
WHOLE = "`spectrum-nlms`, int16"
QKLMS = "`qklms` with 32 vectors, int16"
REAL = "`spectrum-nlms`, float32"
GIVEN = ", deviations given"
BARE = ", no stages"
LOST = 1.08
"""From here on an error is worth a line."""


def default_of(reach: np.ndarray, label: dict[str, Any], **more: Any) -> Spec:
    """What a spec without a rule gets.  reach: the largest magnitudes of the inputs, whose centers are zero."""
    content = {"name": "wave", "precision": "int16", "input": {"dim": len(reach), "max_abs": reach.tolist()}}
    return make_spec(content | {"label": label} | more)


def wide(reach: np.ndarray) -> dict[str, Any]:
    """Inputs of floats."""
    return {"dim": len(reach), "max_abs": float(reach.max())}


def as_floats(spec: Spec) -> Spec:
    """The same model, which standardises its inputs as they come."""
    said = spec.model_dump(include={"kernel": {"sigma"}, "linear": {"eta"}, "label": {"max_abs", "horizon"}})
    content = {"name": "wave", "learning": {"rule": spec.learning.rule}, **said}
    content |= {"input": wide(np.array(spec.input.max_abs)) | {"standardise": True}}
    return make_spec(content | {"label": said["label"] | STAGES["label"]})


def spec_of(
    rule: str, precision: str, reach: np.ndarray, scale: np.ndarray | None, label: float, staged: bool = True
) -> Spec:
    """reach: the largest magnitudes of the inputs, whose centers are zero.  scale: None to standardise them as they come."""
    dim = len(reach)
    content: dict[str, Any] = {"name": "wave", "precision": precision}
    content |= {"input": wide(reach), "label": {"max_abs": label}}
    content["kernel"] = {"sigma": float(f"{width(dim):.4g}")}
    if precision == "int16":
        content["input"] = {"dim": dim, "max_abs": reach.tolist()}
        if scale is not None:
            content["input"]["scale"] = scale.tolist()
    elif staged:
        content["input"] |= {"standardise": True, "clip": 3.0}
    if staged:
        content |= {"label": content["label"] | STAGES["label"], "linear": STAGES["linear"]}
    if rule == "qklms":
        return make_spec(content | {"kernel": {"sigma": 0.5 * float(f"{math.sqrt(dim):.4g}")}, "reduction": {}})
    return make_spec(content | {"learning": {"rule": rule}})


def coarsened(spec: Spec, bits: dict[str, int], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Answers of a model whose state has fewer bits: it is rounded after each sample."""
    model, answers = HostModel(spec), np.zeros(len(y))
    field, config = model.memory.field, spec.config
    for t in range(len(y)):
        answers[t] = np.ravel(model.prequential(x[t : t + 1], y[t : t + 1])[0])[0]
        if "frequencies" in bits:
            grain, most = 2.0 ** (16 - bits["frequencies"]), 2 ** (bits["frequencies"] - 1) - 1
            w = field("frequencies")
            w[...] = np.clip(np.rint(w / grain), -most, most) * grain
        if "weights" in bits:
            unit = 2.0 ** max(int(field("level")[0] >> config.level_shift).bit_length(), config.unit_least)
            most = 2 ** (bits["weights"] - 1) - 1
            grain = WEIGHT_MOST * unit / (most + 1)
            for name in ("a", "b"):
                weights = field(name)
                weights[...] = np.clip(
                    np.rint(np.clip(np.rint(weights / grain), -most, most) * grain), -(2**31), 2**31 - 1
                )
    return answers


Answers = Callable[[np.ndarray, np.ndarray], np.ndarray]


def reach_of(x: np.ndarray) -> np.ndarray:
    reach = ROOM * np.abs(x).max(0)
    return np.where(reach > 0, reach, 1.0)


def models(x: np.ndarray, y: np.ndarray) -> dict[str, Answers]:
    """Functions of inputs whose means are zero, and of labels; each answers with what it predicts before it learns."""
    reach, deviation = reach_of(x), x.std(0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    label, bare = ROOM * float(np.abs(y).max()), ROOM * float(np.abs(y - y.mean()).max())

    def of(spec: Spec) -> Answers:
        def answers(x: np.ndarray, y: np.ndarray) -> np.ndarray:
            found, statuses = HostModel(spec).prequential(x, y)
            assert (statuses >= 0).all()
            return np.ravel(found)

        return answers

    def fewer(spec: Spec, bits: dict[str, int]) -> Answers:
        return lambda x, y: coarsened(spec, bits, x, y)

    def centered(spec: Spec) -> Answers:
        return lambda x, y: of(spec)(x / deviation, y - y.mean()) + y.mean()

    ranged = default_of(reach, {"max_abs": label}, **RATED)
    ones = np.ones(len(reach))
    own = reach / deviation
    known = {"dim": len(reach), "max_abs": reach.tolist(), "scale": (1 / deviation).tolist()}
    given = default_of(reach, {"max_abs": label}, input=known)
    return {
        QKLMS: of(default_of(reach, {"max_abs": label}, reduction={})),
        FILTER: of(default_of(reach, {"max_abs": label})),
        FILTER + GIVEN: of(given),
        SAME: of(as_floats(given)),
        DEFAULT: of(default_of(reach, {"max_abs": label}, precision="float32", input=wide(reach))),
        WHOLE: of(ranged),
        **{name: fewer(ranged, bits) for name, bits in BITS.items()},
        QKLMS + GIVEN: of(spec_of("qklms", "int16", reach, 1 / deviation, label)),
        WHOLE + GIVEN: of(spec_of("spectrum-nlms", "int16", reach, 1 / deviation, label)),
        REAL: of(spec_of("spectrum-nlms", "float32", reach, None, label)),
        WHOLE + BARE: centered(spec_of("spectrum-nlms", "int16", own, ones, bare, staged=False)),
        REAL + BARE: centered(spec_of("spectrum-nlms", "float32", own, ones, bare, staged=False)),
    }


def of_classes(reach: np.ndarray, count: int) -> dict[str, Spec]:
    label = {"classes": [str(c) for c in range(count)]}
    return {QKLMS: default_of(reach, label, reduction={}), WHOLE: default_of(reach, label)}


Cost = tuple[Any, Any, Any]


def cost(spec: Spec, y: np.ndarray) -> Cost:
    """State, prediction and update of three inputs."""
    x = np.random.default_rng(0).uniform(-2, 2, (len(y), 3))
    (row,) = check_targets(spec, ["cortex-m0plus"], samples=len(x), chain="gcc", stream=(x, y), tries=0).rows
    assert row["equal"], row
    return build(spec).figures["state_bytes"], row["predict"]["median"], row["update"]["median"]


def costs() -> tuple[dict[str, Cost], dict[str, Cost]]:
    """By model: of numbers, of three classes."""
    rng, reach, label = np.random.default_rng(1), np.full(3, 3.0), {"max_abs": 4.0}
    y, classes = np.clip(rng.normal(size=400), -4, 4), rng.integers(0, 3, 400)
    numbers = {QKLMS: default_of(reach, label, reduction={}), FILTER: default_of(reach, label)}
    numbers[DEFAULT] = default_of(reach, label, precision="float32", input=wide(reach))
    numbers[WHOLE] = default_of(reach, label, **RATED)
    numbers[REAL] = spec_of("spectrum-nlms", "float32", reach, None, 4.0)
    kinds = {name: cost(spec, classes.astype(np.int32)) for name, spec in of_classes(reach, 3).items()}
    return {name: cost(spec, y) for name, spec in numbers.items()}, kinds


def measure() -> list[dict[str, Any]]:
    rows, simple, (numbers, kinds) = list[dict[str, Any]](), read(), costs()

    def add(name: str, variant: str, model: str, error: float, found: Cost) -> None:
        row = {"stream": name, "variant": variant, "model": model, "error": f"{error:.6g}"}
        rows.append(row | dict(zip(("state_bytes", "predict", "update"), found, strict=True)))

    for variant in VARIANTS:
        for name in REGRESSION:
            x, y = stream(name, variant)
            x = x - x.mean(0)
            least = max(min(float(simple[name, variant][each]["error"]) for each in SIMPLE), 1e-12)
            for model, answers in models(x, y).items():
                add(name, variant, model, error_of(answers(x, y), y, 0) / least, numbers.get(model, ("", "", "")))
            print(name, variant, flush=True)
    for variant in CLASS_VARIANTS:
        for name in CLASSES:
            x, y = stream(name, variant)
            x, y, count = x - x.mean(0), y.astype(np.int32), int(y.max()) + 1
            least = 0.5 / (len(y) / 2)
            best = max(min(float(simple[name, variant][each]["error"]) for each in SIMPLE), least)
            for model, spec in of_classes(reach_of(x), count).items():
                found, statuses = HostModel(spec).prequential(x, y, question="classify")
                assert (statuses >= 0).all()
                add(name, variant, model, max(error_of(found, y, count), least) / best, kinds[model])
            print(name, variant, flush=True)
    return rows


def table(rows: Rows, variants: Iterable[str]) -> str:
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        own, line = [row for row in rows if row["model"] == model], [model]
        for variant in variants:
            errors = [float(row["error"]) for row in own if row["variant"] == variant]
            line.append(f"{math.exp(float(np.mean(np.log(errors)))):.3f}")
        line += [f"{int(float(own[0][key])):,}" if own[0][key] else "" for key in ("state_bytes", "predict", "update")]
        lines.append(line)
    return markdown(["model", *variants, "state, bytes", "predict", "update"], lines)


def beside_floats(rows: Rows) -> str:
    """The default of whole numbers over that of floats: the mean of all streams as they are, and those that lose most."""
    errors = {(row["stream"], row["model"]): float(row["error"]) for row in rows if row["variant"] == "as is"}
    pairs = ((FILTER, DEFAULT), (FILTER + GIVEN, DEFAULT), (FILTER + GIVEN, SAME))
    found = {name: [errors[name, over] / errors[name, under] for over, under in pairs] for name in REGRESSION}
    lines = [
        [f"{len(found)} streams, geometric mean", *(f"{v:.2f}" for v in np.exp(np.log([*found.values()]).mean(0)))]
    ]
    worst = sorted((name for name in found if max(found[name]) > LOST), key=lambda name: -max(found[name]))
    lines += [[name, *(f"{value:.2f}" for value in found[name])] for name in worst]
    heads = ["over the default", "over the default, deviations given", "over the same model, deviations given"]
    return markdown(["error in int16 over float32", *heads], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the tables of the file")
    if not parser.parse_args().show:
        save(RESULTS, measure())
    rows = load(RESULTS)
    numbers = table([row for row in rows if row["stream"] in REGRESSION], VARIANTS)
    classes = table([row for row in rows if row["stream"] in CLASSES], CLASS_VARIANTS)
    publish({"spectrum-whole": numbers, "spectrum-whole-classes": classes}, DATA.parent / "spectrum.md")
    publish({"spectrum-whole-filter": beside_floats(rows)}, DATA.parent / "whole-numbers.md")
    print(numbers, classes, sep="\n\n")


if __name__ == "__main__":
    main()
