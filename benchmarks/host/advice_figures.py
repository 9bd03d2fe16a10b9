"""What bad models look like, for docs/guide/when-it-is-bad.md: a stream for each test of `advice`, before and after.

python -m benchmarks.host.advice_figures [--docs docs/data/advice]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tables import ROOT
from pykernel.errors import UserError
from pykernel.host.simulation import Simulation
from pykernel.spec.model import Spec, make_spec

ROWS, SHOWN = 4000, 120
KLMS: Mapping[str, Any] = {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}}


@dataclass(frozen=True)
class Case:
    """A stream, and a spec that is bad for it."""

    stream: Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]]
    content: Mapping[str, Any]


def curve(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.sin(2 * x[:, 0]) + 0.3 * x[:, 1])


def plain(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(ROWS, 2))
    return x, curve(x) + 0.1 * rng.normal(size=ROWS)


def far_labels(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x, y = plain(rng)
    return x, y + 50


def unlike_inputs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x, y = plain(rng)
    return x * [1, 1000] + [20, 1e5], y


def noisy_labels(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(ROWS, 2))
    return x, 0.3 * curve(x) + 1.5 * rng.normal(size=ROWS)


def with_memory(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A tank: what it was counts as much as what flows in."""
    x, y = plain(rng)
    for t in range(1, ROWS):
        y[t] = 0.9 * y[t - 1] + 0.3 * y[t]
    return x, y


def many_inputs(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = rng.normal(size=(ROWS, 8))
    return x, x @ np.linspace(1, 0.3, 8) + 0.1 * rng.normal(size=ROWS)


CASES: dict[str, Case] = {
    "labels far from 0": Case(far_labels, KLMS),
    "inputs of unlike size": Case(unlike_inputs, KLMS),
    "answers too large": Case(noisy_labels, {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms", "eta": 1.2}}),
    "errors that follow each other": Case(with_memory, KLMS),
    "a simple predictor is better": Case(many_inputs, KLMS),
    "new beginnings": Case(
        plain,
        {
            "kernel": {"sigma": 3.0},
            "learning": {"rule": "klms", "eta": 1.5},
            "label": {"column": "y", "max_abs": 10.0},
            "reduction": {"technique": "fklms", "projection": "fklms", "force": True},
        },
    ),
}


def samples(name: str) -> tuple[np.ndarray, np.ndarray, Spec]:
    case = CASES[name]
    x, y = case.stream(np.random.default_rng(0))
    columns = [f"x{i}" for i in range(x.shape[1])]
    content = {"name": "bad", "input": {"columns": columns}, "label": {"column": "y"}, **case.content}
    return x, y, make_spec(content)


def run(x: np.ndarray, y: np.ndarray, spec: Spec) -> tuple[Simulation, np.ndarray]:
    """The simulation, and the model's predictions."""
    simulation = Simulation(spec)
    return simulation, np.concatenate([steps.predictions for steps in simulation.run(x, y)])


def advised(name: str) -> tuple[list[dict[str, Any]], float, float, np.ndarray, np.ndarray]:
    """The advice; the second half's error before, and after following it; and the predictions of both."""
    x, y, spec = samples(name)
    tried: list[tuple[float, np.ndarray]] = []

    def trial(changed: Spec) -> float | None:
        simulation, predictions = run(x, y, changed)
        error = simulation.summary(simulation.errors, ROWS // 2)["rmse"]["model"]
        tried.append((error, predictions))
        return error

    simulation, before = run(x, y, spec)
    report = simulation.report(trial)
    after, predictions = min(tried, key=lambda each: each[0])
    return report["advice"], report["second_half"]["rmse"]["model"], after, before, predictions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "data" / "advice")
    options = parser.parse_args()
    try:
        import matplotlib

        matplotlib.use("svg")
        from matplotlib import pyplot
    except ImportError:
        raise UserError("pictures need matplotlib; pip install matplotlib") from None
    matplotlib.rcParams["svg.hashsalt"] = "pykernel"
    options.docs.mkdir(parents=True, exist_ok=True)
    for name in CASES:
        advice, before, after, old, new = advised(name)
        for each in advice:
            print(f"{each['test']}: {each['why']}\n    {each['change']}")
        _, y, _ = samples(name)
        rows = np.arange(ROWS - SHOWN, ROWS)
        figure, axes = pyplot.subplots(2, 1, figsize=(8, 3.6), sharex=True, sharey=True, layout="constrained")
        for axis, predictions, title in (
            (axes[0], old, f"before: RMSE {before:.3g}"),
            (axes[1], new, f"after: RMSE {after:.3g}"),
        ):
            axis.plot(rows, y[rows], ".", color="#555555", markersize=4, label="label")
            axis.plot(
                rows,
                predictions[rows],
                "-",
                color="#d55e00" if axis is axes[0] else "#0072b2",
                linewidth=1.2,
                label="prediction",
            )
            axis.set_title(title, loc="left", fontsize=10)
            axis.legend(loc="upper right", fontsize=8, ncols=2)
        low, high = np.quantile(y[rows], [0, 1])
        axes[0].set_ylim(low - 0.4 * (high - low), high + 0.4 * (high - low))
        axes[1].set_xlabel("row")
        figure.savefig(options.docs / f"{name.replace(' ', '-')}.svg", metadata={"Date": None})
        pyplot.close(figure)


if __name__ == "__main__":
    main()
