"""The default on streams that chose none of its constants: ``held_streams``, once.

    python -m benchmarks.host.held_back            # models and simple predictors: docs/data/held-back.csv
    python -m benchmarks.host.held_back --river    # river's models, a quarter of an hour: docs/data/held-back-river.csv
    python -m benchmarks.host.held_back --show     # tables of both files, in docs/benchmarks.md
    python -m benchmarks.host.held_back --why      # of each loss of the default: without a stage, and shown the rows again

``held_streams`` says how its data come here.  Each row is predicted, then learned, in float32; error: that of ``first_results``,
over the second half of the rows.  No target is a spec without limits; other columns of bytes are ``ram`` of its target.  Tables
divide errors by that of the best simple predictor: the running mean or the most frequent class, the last label, two linear
models.  An error of classes counts at least half of one row.
"""

from __future__ import annotations

import argparse
import math
import tomllib
from collections.abc import Callable, Iterator
from multiprocessing import Pool
from typing import Any

import numpy as np

from benchmarks.host.first_results import (
    DATA,
    SIMPLE,
    error_of,
    learned,
    minimal,
    state_bytes,
)
from benchmarks.host.held_streams import CLASSES, NUMBERS, held
from benchmarks.tables import Rows, load, markdown, publish, save
from pykernel.host.model import HostModel
from pykernel.host.simple import LastAndMajority, LastAndMean, linear_specs
from pykernel.spec.model import Spec, make_spec

MODELS: dict[str, dict[str, Any]] = {
    "no target": {},
    **{f"{ram:,} bytes": {"target": {"ram": ram}} for ram in (500, 1024, 2048, 4096, 16384)},
    "krls-t, 32 vectors": {"reduction": {"n_max": 32}},
}
"""Specs without a rule.  The last was the default before the waves."""
PATHS = DATA / "held-back.csv", DATA / "held-back-river.csv"
PROCESSES = 2


def count(name: str) -> int:
    return int(held(name)[1].max()) + 1 if name in CLASSES else 0


def rows_of(name: str) -> list[dict[str, Any]]:
    """What our models and the simple predictors do on a stream."""
    (x, y), classes = held(name), count(name)
    last, mean = (LastAndMajority(classes) if classes else LastAndMean()).step(y)
    found: list[tuple[str, np.ndarray, int]] = [
        ("running mean", mean, 4 * max(classes, 2)),
        ("last label", last, 4),
    ]
    specs = {called: minimal(x.shape[1], classes, **more) for called, more in MODELS.items()}
    for called, spec in {**specs, **linear_specs(specs["no target"])}.items():
        found.append((called, learned(HostModel(spec), x, y)[0], state_bytes(spec)))
    return [written(name, *each) for each in found]


def river_models(classes: int) -> dict[str, Callable[[], Any]]:
    from river import forest, neighbors, preprocessing, rules, tree

    def scaled(model: Any) -> Any:
        return preprocessing.StandardScaler() | model

    if classes:
        return {
            "river KNN": lambda: scaled(neighbors.KNNClassifier(engine=neighbors.SWINN(seed=0))),
            "river Hoeffding adaptive tree": lambda: scaled(tree.HoeffdingAdaptiveTreeClassifier(seed=0)),
            "river ARF": lambda: scaled(forest.ARFClassifier(seed=0)),
        }
    return {
        "river KNN": lambda: scaled(neighbors.KNNRegressor(engine=neighbors.SWINN(seed=0))),
        "river Hoeffding adaptive tree": lambda: scaled(tree.HoeffdingAdaptiveTreeRegressor(seed=0)),
        "river AMRules": lambda: scaled(rules.AMRules()),
        "river ARF": lambda: scaled(forest.ARFRegressor(seed=0)),
    }


def river_rows(name: str) -> list[dict[str, Any]]:
    """What river's models do on a stream, standardised as its own examples do."""
    (x, y), classes, found = held(name), count(name), []
    for called, make in river_models(classes).items():
        model, answers = make(), np.zeros(len(y))
        for t in range(len(y)):
            sample = dict(enumerate(x[t].tolist()))
            answers[t] = model.predict_one(sample) or 0
            model.learn_one(sample, y[t].item())
        found.append(written(name, called, answers, model._raw_memory_usage))
    return found


def written(name: str, predictor: str, answers: np.ndarray, size: int) -> dict[str, Any]:
    x, y = held(name)
    error = f"{error_of(answers, y, count(name)):.6g}"
    values = (name, *x.shape, predictor, error, size)
    return dict(zip(("stream", "rows", "inputs", "predictor", "error", "state_bytes"), values, strict=True))


def measure(rows: Callable[[str], list[dict[str, Any]]]) -> Iterator[dict[str, Any]]:
    with Pool(PROCESSES) as pool:
        for found in pool.imap(rows, [*NUMBERS, *CLASSES]):
            print(found[0]["stream"], *(f"{row['predictor']} {row['error']}" for row in found), flush=True)
            yield from found


# ----------------------------------------------------------------------------------------------------------- tables


def ratios(rows: Rows, classes: bool) -> dict[str, dict[str, float]]:
    """By stream, by predictor: error over that of the best simple one."""
    found: dict[str, dict[str, float]] = {}
    for name in CLASSES if classes else NUMBERS:
        own = [row for row in rows if row["stream"] == name]
        errors = {row["predictor"]: max(float(row["error"]), 1 / int(row["rows"]) if classes else 1e-12) for row in own}
        best = min(errors[each] for each in SIMPLE)
        found[name] = {each: error / best for each, error in errors.items()}
    return found


def summary(rows: Rows, classes: bool) -> str:
    found, lines = ratios(rows, classes), []
    for name in dict.fromkeys(each for row in found.values() for each in row):
        each = np.array([row[name] for row in found.values()])
        sizes = [int(row["state_bytes"]) for row in rows if row["predictor"] == name and row["stream"] in found]
        figures = math.exp(float(np.mean(np.log(each)))), float(np.median(each)), float(each.max())
        lines.append(
            [name, *(f"{value:.2f}" for value in figures), str(int((each > 1).sum())), f"{np.median(sizes):,.0f}"]
        )
    return markdown(["", "geometric mean", "median", "worst", f"losses, of {len(found)}", "bytes"], lines)


def every(rows: Rows, classes: bool) -> str:
    """A row for each stream; losses are bold."""
    found, lines = ratios(rows, classes), []
    shown = [name for name in dict.fromkeys(each for row in found.values() for each in row) if name not in SIMPLE]
    for name, row in found.items():
        first = next(each for each in rows if each["stream"] == name)
        cells = [f"**{row[each]:.2f}**" if row[each] > 1 else f"{row[each]:.2f}" for each in shown]
        lines.append(
            [name, f"{int(first['rows']):,}", first["inputs"], min(SIMPLE, key=lambda each: row[each]), *cells]
        )
    return markdown(["", "rows", "D", "best simple one", *shown], lines)


def causes() -> str:
    """Where the default loses to the best simple predictor: ratios without one of its stages, and, in a second pass over the same
    rows, of the default and the best simple predictor of that pass.
    """
    lines, rows = [], load(PATHS[0])
    for classes in (False, True):
        for name in (each for each, row in ratios(rows, classes).items() if row["no target"] > 1):
            (x, y), known = held(name), count(name)
            spec = minimal(x.shape[1], known)
            stages = [("mixture",)] if known else [("mixture",), ("linear",), ("label", "gain"), ("label", "clip")]
            found = [error_of(learned(HostModel(without(spec, *each)), x, y)[0], y, known) for each in stages]
            best = min(float(row["error"]) for row in rows if row["stream"] == name and row["predictor"] in SIMPLE)
            twice = [again(each, x, y, known) for each in (spec, *linear_specs(spec).values())]
            cells = [f"{error / best:.2f}" for error in found] + [""] * (4 - len(found))
            lines.append([name, *cells, f"{twice[0] / min(twice[1:]):.2f}"])
    heads = ["without [mixture]", "without [linear]", "without gain", "without clip"]
    return markdown(["", *heads, "second pass"], lines)


def without(spec: Spec, section: str, key: str | None = None) -> Spec:
    """A spec without a rule, written out but for one stage."""
    content = tomllib.loads(spec.to_toml())
    if key is None:
        del content[section]
    else:
        del content[section][key]
    return make_spec(content)


def again(spec: Spec, x: np.ndarray, y: np.ndarray, classes: int) -> float:
    answers, _, _ = learned(HostModel(spec), np.concatenate([x, x]), np.concatenate([y, y]))
    return error_of(answers[len(y) :], y, classes)


def measured() -> Rows:
    return [row for path in PATHS if path.is_file() for row in load(path)]


def tables(rows: Rows) -> dict[str, str]:
    """By their names in docs/benchmarks.md."""
    found = {}
    for kind, classes in (("numbers", False), ("classes", True)):
        found[f"held-back-{kind}"] = summary(rows, classes)
        found[f"held-back-{kind}-all"] = every(rows, classes)
    return found


def show() -> None:
    made = tables(measured())
    publish(made)
    print(*made.values(), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--river", action="store_true", help="river's models")
    parser.add_argument("--show", action="store_true", help="only the tables of what was measured")
    parser.add_argument("--why", action="store_true", help="what the default's losses come from")
    options = parser.parse_args()
    if options.why:
        made = causes()
        publish({"held-back-why": made})
        print(made)
        return
    if not options.show:
        save(PATHS[options.river], list(measure(river_rows if options.river else rows_of)))
    show()


if __name__ == "__main__":
    main()
