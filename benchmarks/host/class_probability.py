"""How good the probabilities of classes are: each row of the raw streams of classes is asked, then learned.

    python -m benchmarks.host.class_probability          # docs/data/class-probability.csv, and tables in docs/spectrum.md
    python -m benchmarks.host.class_probability --show   # the tables of the file

log_loss: mean of -log p of the class that came, p at least 2^-24.  brier: sum over classes of squared errors.  ece: mean
difference between the largest p and how often that class came, over 15 bins of equal count.  Bins are small, so that ece is not
0 where probabilities are right: chance_ece is what it is on average if labels are drawn from these p.

part "all": from the first row on.  part "half": the second half, where the sigmoids of Platt can be judged, too: they are fitted to
what krls-t forecast in the first half, as estimators fit them.  A model "uncalibrated" tells p itself: s = 1 and e = 0.  How fast s
and e learn was chosen on streams with even numbers; the numbers begin with 0.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterator

import numpy as np

from benchmarks.host.class_front import MODELS, models
from benchmarks.host.first_results import DATA
from benchmarks.host.first_streams import CLASS_VARIANTS, CLASSES, stream
from benchmarks.tables import markdown, publish
from pykernel.host.model import HostModel
from pykernel.host.simple import linear_specs
from pykernel.spec.model import Spec, make_spec
from pykernel.training.calibration import fit_calibration, probabilities

COLUMNS = ("stream", "variant", "part", "model", "log_loss", "brier", "ece", "chance_ece")
LEAST = 2.0**-24
BINS = 15
WAVES, KRLS = "spectrum-softmax, 16", "krls-t, 32 vectors"
EXPERT = ", with a linear expert"
TOLD = (WAVES, WAVES + EXPERT, KRLS + EXPERT)
UNCALIBRATED = ", uncalibrated"
PLATT, SOFTENED = f"{KRLS}, Platt's sigmoids", "linear model, softmax of 3 f"
BASE = "shares of the classes so far"
RIVER = "river's softmax regression", "river's logistic regressions, one against the rest"
assert {WAVES, KRLS} <= MODELS.keys()


def softmax(f: np.ndarray) -> np.ndarray:
    """Probabilities of each class; two classes have the functions -f and f."""
    f = np.column_stack([-f, f]) if f.ndim == 1 else f
    e = np.exp(f - f.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def told(spec: Spec, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the device's NAME_probability writes, and the same without calibration: (rows, classes) each."""
    model = HostModel(spec)
    found: tuple[list[np.ndarray], list[np.ndarray]] = [], []
    s, e = (model.memory.field(name) for name in ("told_sharpness", "random_part"))
    for t in range(len(y)):
        found[0].append(model.probability(x[t])[0])
        kept = s[0], e[0]
        s[0], e[0] = 1.0, 1e-30
        found[1].append(model.probability(x[t])[0])
        s[0], e[0] = kept
        model.update(x[t], int(y[t]))
    return np.array(found[0], float), np.array(found[1], float)


def shares(y: np.ndarray, count: int) -> np.ndarray:
    """How often each class came so far, and once more."""
    came = np.cumsum(y[:, None] == np.arange(count), axis=0) - (y[:, None] == np.arange(count)) + 1.0
    return np.asarray(came / came.sum(axis=1, keepdims=True))


def of_river(x: np.ndarray, y: np.ndarray, count: int) -> Iterator[tuple[str, np.ndarray]]:
    from river import linear_model, multiclass, preprocessing

    logistic = linear_model.LogisticRegression()
    kinds = (
        linear_model.SoftmaxRegression(),
        logistic if count == 2 else multiclass.OneVsRestClassifier(logistic),
    )
    for name, kind in zip(RIVER, kinds, strict=True):
        model, p = preprocessing.StandardScaler() | kind, np.zeros((len(y), count))
        for t in range(len(y)):
            sample = dict(enumerate(x[t].tolist()))
            for each, value in model.predict_proba_one(sample).items():
                p[t, int(each)] = value
            # what says nothing, or does not know a class yet
            p[t] = p[t] / p[t].sum() if p[t].sum() > 0 else 1 / count
            model.learn_one(sample, bool(y[t]) if count == 2 and kind is logistic else int(y[t]))
        yield name, p


def answers(x: np.ndarray, y: np.ndarray, count: int) -> Iterator[tuple[str, np.ndarray]]:
    """Name -> probabilities before each row was learned, (rows, classes)."""
    half, specs = len(y) // 2, dict(models(x.shape[1], count))
    for name in TOLD:
        p, before = told(specs[name], x, y)
        yield name, p
        yield name + UNCALIBRATED, before
    f, _ = HostModel(specs[KRLS]).prequential(x, y)
    f = f.reshape(len(y), -1).astype(float)
    kept = slice(max(half // 2, half - 1000), half)
    p = probabilities(f, fit_calibration(f[kept], y[kept], count, 2.0**-23))
    p[:half] = math.nan
    yield PLATT, p
    linear = linear_specs(make_spec(specs[KRLS].model_dump(exclude_unset=True)))["linear model"]
    yield SOFTENED, softmax(3 * HostModel(linear).prequential(x, y)[0].astype(float))
    yield BASE, shares(y, count)
    yield from of_river(x, y, count)


def ece(p: np.ndarray, y: np.ndarray) -> float:
    """Expected calibration error of the most likely class."""
    sure, right = p.max(axis=1), p.argmax(axis=1) == y
    order = np.argsort(sure, kind="stable")
    return sum(abs(float(np.sum(sure[part]) - np.sum(right[part]))) for part in np.array_split(order, BINS)) / len(y)


def scores(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    own = p[np.arange(len(y)), y]
    rng, bounds = np.random.default_rng(0), p.cumsum(axis=1) / p.sum(axis=1, keepdims=True)
    drawn = [(rng.random((len(y), 1)) >= bounds[:, :-1]).sum(axis=1) for _ in range(20)]
    return {
        "log_loss": float(-np.log(np.maximum(own, LEAST)).mean()),
        "brier": float(np.square(p - np.eye(p.shape[1])[y]).sum(axis=1).mean()),
        "ece": ece(p, y),
        "chance_ece": float(np.mean([ece(p, each) for each in drawn])),
    }


def measure() -> list[dict[str, str]]:
    rows = []
    for name in CLASSES:
        for variant in CLASS_VARIANTS:
            x, y = stream(name, variant)
            y = y.astype(np.int32)
            for model, p in answers(x, y, int(y.max()) + 1):
                for part, first in (("all", 0), ("half", len(y) // 2)):
                    if not np.isnan(p[first:]).any():
                        found = {kind: f"{value:.6g}" for kind, value in scores(p[first:], y[first:]).items()}
                        rows.append({"stream": name, "variant": variant, "part": part, "model": model} | found)
            print(name, variant, flush=True)
    return rows


def of(rows: list[dict[str, str]], model: str, part: str, kind: str, parity: int | None = None) -> np.ndarray:
    """A figure of each stream and variant."""
    number = {name: i for i, name in enumerate(CLASSES)}
    return np.array(
        [
            float(row[kind])
            for row in rows
            if row["model"] == model and row["part"] == part and parity in (None, number[row["stream"]] % 2)
        ]
    )


def table(rows: list[dict[str, str]]) -> str:
    lines = []
    for model in dict.fromkeys(row["model"] for row in rows):
        line, base = [model], of(rows, BASE, "half", "log_loss")
        loss = of(rows, model, "half", "log_loss")
        line += [
            f"{math.exp(float(np.mean(np.log(loss / base)))):.3f}",
            f"{of(rows, model, 'half', 'brier').mean():.3f}",
        ]
        for kind in ("ece", "chance_ece"):
            line.append(f"{np.median(of(rows, model, 'half', kind)):.3f}")
        lines.append(line)
    return markdown(["probabilities", "log loss, base rate = 1", "Brier", "ECE", "ECE of chance"], lines)


def judged(rows: list[dict[str, str]]) -> str:
    """What the calibration does, on the streams that chose it and on the others."""
    lines = []
    for model in TOLD:
        for parity, which in enumerate(("even", "odd")):
            for part in ("all", "half"):
                ratio = of(rows, model, part, "log_loss", parity) / of(
                    rows, model + UNCALIBRATED, part, "log_loss", parity
                )
                before, after = (
                    np.median(of(rows, each, part, "ece", parity)) for each in (model + UNCALIBRATED, model)
                )
                mean = math.exp(float(np.mean(np.log(ratio))))
                lines.append([model, which, part, f"{mean:.3f}", f"{ratio.max():.3f}", f"{before:.3f}", f"{after:.3f}"])
    return markdown(["model", "streams", "rows", "log loss over uncalibrated", "worst", "ECE before", "after"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only write the tables of the file")
    path = DATA / "class-probability.csv"
    if not parser.parse_args().show:
        rows = measure()
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    with path.open() as file:
        read = list(csv.DictReader(file))
    made = {"class-probability": table(read), "class-calibration": judged(read)}
    publish(made, DATA.parent / "spectrum.md")
    print(*made.values(), sep="\n")


if __name__ == "__main__":
    main()
