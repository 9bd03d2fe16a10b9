"""What one sample costs in Python: River's face and scikit-learn's beside the kernel's own time, and a model of River for scale.

    python -m benchmarks.host.river_overhead       # docs/data/river-overhead.csv, and the table in docs/guide/river.md

Default models, 8 inputs, full budget, optimised code.  CPU time of one thread; the four take turns in blocks of 100 samples, and each cell
is the least of its blocks.  kernel_us: the model's loop over the block, without Python between samples.  river_us:
learn_one, predict_one or score_one of dictionaries.  sklearn_us: partial_fit or predict of a row.  linear_us:
river.linear_model's LinearRegression, or LogisticRegression, of the same dictionaries, without a scaler.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.tables import DATA, Rows, markdown, publish, save
from pykernel.engine.llvm import OPTIMISED
from pykernel.host.model import HostModel

FILE = DATA / "river-overhead.csv"
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
    samples, rows = [dict(zip("abcdefgh", row, strict=True)) for row in x.tolist()], np.split(x, len(x))

    def each(call: Callable[..., Any], *streams: Any) -> Callable[[int], None]:
        def run(start: int) -> None:
            for given in zip(*(stream[start : start + BLOCK] for stream in streams), strict=True):
                call(*given)

        return run

    def block(call: Callable[..., Any], *streams: np.ndarray) -> Callable[[int], None]:
        return lambda start: call(*(stream[start : start + BLOCK] for stream in streams))

    def kind(
        model: Any, asked: Mapping[str, tuple[str, str]], linear: Any = None, labels: np.ndarray | None = None
    ) -> Iterator[tuple[str, str, Mapping[str, Callable[[int], None]]]]:
        """asked: River's question -> the host model's and scikit-learn's."""
        taught = [] if labels is None else [labels.tolist()]
        estimator = type(model)().partial_fit(x[:FIRST], *([] if labels is None else [labels[:FIRST]]))
        for given in zip(samples[:FIRST], *(stream[:FIRST] for stream in taught), strict=True):
            model.learn_one(*given)
            if linear is not None:
                linear.learn_one(*given)
        optimise(model.model_, x, y)
        host, name = HostModel(model.spec_), type(model).__name__
        host.memory.buffer[...] = model.model_.memory.buffer
        learned = [] if labels is None else [labels.astype(np.int64) if labels.dtype == bool else labels]
        ways = {
            "kernel": block(host.update, x, *learned),
            "river": each(model.learn_one, samples, *taught),
            "sklearn": each(estimator.partial_fit, rows, *(np.split(stream, len(x)) for stream in learned)),
        }
        yield name, "learn_one", ways | ({"linear": each(linear.learn_one, samples, *taught)} if linear else {})
        for call, (question, method) in asked.items():
            ways = {
                "kernel": block(functools.partial(host.ask, question), x),
                "river": each(getattr(model, call), samples),
                "sklearn": each(getattr(estimator, method), rows),
            }
            yield name, call, ways | ({"linear": each(getattr(linear, call), samples)} if linear else {})

    chances = {"predict_one": ("classify", "predict"), "predict_proba_one": ("probability", "predict_proba")}
    yield from kind(Regressor(), {"predict_one": ("predict", "predict")}, linear_model.LinearRegression(), y)
    yield from kind(Classifier(), chances, linear_model.LogisticRegression(), y > 0)
    yield from kind(AnomalyDetector(), {"score_one": ("novelty", "score_samples")})


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
        "River interface, µs",
        "over the kernel, µs",
        "scikit-learn interface, µs",
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

    publish(tables(load(FILE)))


if __name__ == "__main__":
    main()
