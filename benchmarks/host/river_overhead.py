"""What one sample costs in Python: River's face and scikit-learn's beside the kernel's own time, and a model of River for scale.

    python -m benchmarks.host.river_overhead       # docs/data/river-overhead.csv, and the table in docs/river.md

Default models, 8 inputs, full budget, optimised code.  CPU time of one thread; the four take turns in blocks of 100 samples, and each cell
is the least of its blocks.  kernel_us: the model's loop over the block, without Python between samples.  river_us:
learn_one, predict_one or score_one of dictionaries.  sklearn_us: partial_fit or predict of a row.  linear_us:
river.linear_model's LinearRegression, or LogisticRegression, of the same dictionaries, without a scaler.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.tables import DATA, DOCS, Rows, markdown, publish, save
from pykernel import BudgetedKernelClassifier, BudgetedKernelRegressor, OnlineMonitor
from pykernel.engine.llvm import OPTIMISED
from pykernel.host.model import HostModel

FILE, PAGE = DATA / "river-overhead.csv", DOCS / "river.md"
DIM, BLOCK, ROUNDS, FIRST = 8, 100, 60, 1500


def made(count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, DIM))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=count)


def optimise(model: HostModel, x: np.ndarray, y: np.ndarray) -> None:
    """Run a model of the same code until the engine has optimised it, which all models of that code share."""
    spare, kind = HostModel(model.spec), model.spec.label_kind
    labels = None if kind == "none" else (y > 0).astype(np.int32) if kind == "class" else y
    while spare.executor.code.level != OPTIMISED:  # type: ignore[attr-defined]
        spare.update(x, labels)


def cases() -> Iterator[tuple[str, str, Mapping[str, Callable[[int], None]]]]:
    """Model, call, and what each of the four does with the block that starts at a row."""
    from river import linear_model

    from pykernel.river import AnomalyDetector, Classifier, Regressor

    x, y = made(FIRST + BLOCK * ROUNDS)
    samples, numbers, classes = [dict(zip("abcdefgh", row, strict=True)) for row in x.tolist()], y.tolist(), y > 0
    truths = classes.tolist()

    def each(call: Callable[..., Any], *streams: Any) -> Callable[[int], None]:
        def run(start: int) -> None:
            for given in zip(*(stream[start : start + BLOCK] for stream in streams), strict=True):
                call(*given)

        return run

    rows = [x[i : i + 1] for i in range(len(x))]
    labels = [y[i : i + 1] for i in range(len(x))]
    positions = [classes[i : i + 1].astype(np.int64) for i in range(len(x))]

    def block(call: Callable[..., Any], *streams: np.ndarray) -> Callable[[int], None]:
        return lambda start: call(*(stream[start : start + BLOCK] for stream in streams))

    def twin(model: Any) -> HostModel:
        """The same model, of which only the loop is timed."""
        optimise(model.model_, x, y)
        host = HostModel(model.spec_)
        host.memory.buffer[...] = model.model_.memory.buffer
        return host

    regressor, linear = Regressor(), linear_model.LinearRegression()
    estimator = BudgetedKernelRegressor().partial_fit(x[:FIRST], y[:FIRST])
    optimise(estimator.model_, x, y)
    for sample, number in zip(samples[:FIRST], numbers[:FIRST], strict=True):
        regressor.learn_one(sample, number)
        linear.learn_one(sample, number)
    host = twin(regressor)
    yield (
        "Regressor",
        "learn_one",
        {
            "kernel": block(host.update, x, y),
            "river": each(regressor.learn_one, samples, numbers),
            "sklearn": each(estimator.partial_fit, rows, labels),
            "linear": each(linear.learn_one, samples, numbers),
        },
    )
    yield (
        "Regressor",
        "predict_one",
        {
            "kernel": block(host.predict, x),
            "river": each(regressor.predict_one, samples),
            "sklearn": each(estimator.predict, rows),
            "linear": each(linear.predict_one, samples),
        },
    )

    classifier, logistic = Classifier(), linear_model.LogisticRegression()
    voter = BudgetedKernelClassifier().partial_fit(x[:FIRST], classes[:FIRST].astype(np.int64), [0, 1])
    optimise(voter.model_, x, y)
    for sample, truth in zip(samples[:FIRST], truths[:FIRST], strict=True):
        classifier.learn_one(sample, truth)
        logistic.learn_one(sample, truth)
    other = twin(classifier)
    yield (
        "Classifier",
        "learn_one",
        {
            "kernel": block(other.update, x, classes.astype(np.int32)),
            "river": each(classifier.learn_one, samples, truths),
            "sklearn": each(voter.partial_fit, rows, positions),
            "linear": each(logistic.learn_one, samples, truths),
        },
    )
    yield (
        "Classifier",
        "predict_one",
        {
            "kernel": block(other.classify, x),
            "river": each(classifier.predict_one, samples),
            "sklearn": each(voter.predict, rows),
            "linear": each(logistic.predict_one, samples),
        },
    )
    yield (
        "Classifier",
        "predict_proba_one",
        {
            "kernel": block(other.predict, x),
            "river": each(classifier.predict_proba_one, samples),
            "sklearn": each(voter.predict_proba, rows),
            "linear": each(logistic.predict_proba_one, samples),
        },
    )

    monitor = AnomalyDetector()
    watcher = OnlineMonitor().partial_fit(x[:FIRST])
    optimise(watcher.model_, x, y)
    for sample in samples[:FIRST]:
        monitor.learn_one(sample)
    third = twin(monitor)
    yield (
        "AnomalyDetector",
        "learn_one",
        {
            "kernel": block(third.update, x),
            "river": each(monitor.learn_one, samples),
            "sklearn": each(watcher.partial_fit, rows),
        },
    )
    yield (
        "AnomalyDetector",
        "score_one",
        {
            "kernel": block(third.novelty, x),
            "river": each(monitor.score_one, samples),
            "sklearn": each(watcher.score_samples, rows),
        },
    )


def measured(calls: Mapping[str, Callable[[int], None]], rounds: int) -> dict[str, float]:
    """Microseconds a sample of each: the least of the blocks."""
    least = dict.fromkeys(calls, np.inf)
    for i in range(rounds):
        for name, call in calls.items():
            start = time.thread_time_ns()
            call(FIRST + BLOCK * i)
            least[name] = min(least[name], (time.thread_time_ns() - start) / 1000 / BLOCK)
    return least


def tables(rows: Rows) -> dict[str, str]:
    def cell(value: str) -> str:
        return f"{float(value):.1f}" if value else ""

    heads = (
        "model",
        "call",
        "kernel, µs",
        "River's face, µs",
        "over the kernel, µs",
        "scikit-learn's face, µs",
        "River's linear model, µs",
    )
    keys = ("kernel_us", "river_us", "over_us", "sklearn_us", "linear_us")
    cells = [[row["model"], f"`{row['call']}`", *(cell(row[key]) for key in keys)] for row in rows]
    return {"river-overhead": markdown(heads, cells)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--show", action="store_true", help="only the table, of what was measured")
    options = parser.parse_args()
    if not options.show:
        found = []
        for model, call, calls in cases():
            us = measured(calls, options.rounds)
            row: dict[str, Any] = {"model": model, "call": call}
            row |= {"kernel_us": f"{us['kernel']:.2f}", "river_us": f"{us['river']:.2f}"}
            row |= {"over_us": f"{us['river'] - us['kernel']:.2f}", "sklearn_us": f"{us['sklearn']:.2f}"}
            row |= {"linear_us": f"{us['linear']:.2f}" if "linear" in us else ""}
            row |= {"sklearn_over_river": f"{us['sklearn'] / us['river']:.2f}"}
            found.append(row)
            print(row)
        save(FILE, found)
    from benchmarks.tables import load

    publish(tables(load(FILE)), PAGE)


if __name__ == "__main__":
    main()
