"""How good alarms are: the monitor and the other detectors on many seeds, with faults of every kind and size.

For each seed: WARMUP samples to settle in, NORMAL normal ones, which count false alarms; from the state at their end, for
each fault, and once without one, a copy of machine and model goes on for WINDOW samples.  AUC: the probability that the
alarm level in the fault is above the level in normal operation (Mann and Whitney).  Parameters are chosen on TUNING seeds,
by the mean AUC of all faults; results are of other seeds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from detectors import detector
from machine import FAULTS, Drive, Fault, inside
from numba import njit

from pykernel import HostModel, Spec
from pykernel.spec.model import make_spec
from pykernel.tuning.costs import memory_bytes

WARMUP, NORMAL, WINDOW = 4000, 12_000, 250
TUNING = range(1000, 1016)
ALARMS = (4, 5)
"""Statuses that are alarms: NOVEL and HELD."""
Branch = Fault | None
"""None: nothing goes wrong."""
Choice = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """One seed's samples: until the faults begin, and of each branch from there."""

    normal: np.ndarray
    branches: Mapping[Branch, np.ndarray]

    @classmethod
    def of(cls, seed: int, normal: int = NORMAL) -> Trial:
        machine = Drive(seed)
        x = machine.run(WARMUP + normal).x
        copies = {fault: machine.copy(1_000_000 + 100 * seed + i) for i, fault in enumerate((None, *FAULTS))}
        return cls(x, {fault: copy.run(WINDOW, fault).x for fault, copy in copies.items()})


@dataclass(frozen=True)
class Outcome:
    """What a model made of a trial.  auc and delay (samples until the alarm, -1 if none came) are of each branch."""

    false_alarms: float  # for each 10,000 normal samples
    auc: Mapping[Branch, float]
    delay: Mapping[Branch, int]


@njit(cache=True)
def levels(scores: np.ndarray, smoothing: float, first: float) -> np.ndarray:
    """The alarm level after each score, as the device smooths it; first: the level before."""
    found, level = np.empty(len(scores)), first
    for t in range(len(scores)):
        level += smoothing * (scores[t] - level)
        found[t] = level
    return found


def area(normal: np.ndarray, fault: np.ndarray) -> float:
    """The area under the ROC curve."""
    order = np.sort(normal)
    below = np.searchsorted(order, fault, "left") + np.searchsorted(order, fault, "right")
    return float(below.mean() / 2 / len(order))


def outcome(spec: Spec, trial: Trial) -> Outcome:
    assert spec.novelty is not None
    model, smoothing = HostModel(spec), spec.novelty.smoothing
    scores, statuses = model.prequential(trial.normal)
    level = levels(scores, smoothing, float(scores[0]))
    alarmed = np.isin(statuses, ALARMS)
    begun = alarmed[WARMUP:] & ~alarmed[WARMUP - 1 : -1]
    normal, kept = level[WARMUP:], bytes(model.memory.bytes)
    auc, delay = {}, {}
    for fault, x in trial.branches.items():
        model.memory.bytes[:] = kept
        scores, statuses = model.prequential(x)
        at = np.flatnonzero(np.isin(statuses, ALARMS))
        auc[fault] = area(normal, levels(scores, smoothing, float(level[-1])))
        delay[fault] = int(at[0]) if len(at) else -1
    return Outcome(1e4 * float(begun.mean()), auc, delay)


# ---------------------------------------------------------------------------------------------------------- choosing

FIXED: Mapping[str, Sequence[Choice]] = {
    "largest": [{"window": window} for window in (1000, 4000, 16_000)],
    "mahalanobis": [{"window": window} for window in (1000, 4000, 16_000)],
    "quadratic": [{"window": window} for window in (1000, 4000, 16_000)],
    "gaussians": [
        {"members": members, "window": window, "prior": prior, "apart": 5.0}
        for members, window, prior in itertools.product((4, 8, 12, 16, 48), (4000,), (0.15, 0.3))
    ],
    "centroids": [
        {"members": members, "window": window, "apart": apart}
        for members, window, apart in itertools.product((250,), (30, 300), (0.0, 0.5, 0.7, 1.0))
    ],
}
"""What is tried of each detector; those in banks up to the memory of the monitor."""
MONITOR: Sequence[Choice] = [
    {"sigma": sigma, "shrinkage": shrinkage, "censoring": censoring, "fading": fading}
    for sigma, shrinkage in itertools.product((1.2, 1.5, 2.0), (0.1, 0.2))
    for censoring, fading in ((0.0, 1.0), (0.8, 1.0), (0.9, 1.0), (0.8, 0.9995), (0.9, 0.9995))
]
VARIANTS: Sequence[Choice] = [
    {},
    *({"sigma": sigma} for sigma in (0.6, 2.4, 4.8)),
    *({"n_max": n_max, "features": features} for n_max, features in ((24, 6), (48, 6), (48, 24), (96, 24))),
    *({"censoring": censoring} for censoring in (0.0, 0.5, 0.98)),
    *({"fading": fading} for fading in (1.0, 0.9999, 0.998, 0.99)),
    *({"step": step} for step in ("normalised", "averaged", "decreasing")),
    {"budget": "drop"},
    {"update": "hybrid"},
    {"update": "rls", "forgetting": 0.999},
]
"""What is changed of the monitor, one thing at a time, to see what it matters."""
SMALL = {"n_max": 32, "features": 8}
"""A second monitor, of half the memory."""
SUBTLE, GROSS = 0.9, 0.1
"""Faults are subtle if at least so many of their samples are within the range of every sensor; gross, if at most so many."""
ORDER = ("okfeb", "okfeb, small", "largest", "mahalanobis", "quadratic", "gaussians", "gaussians, small", "centroids")
FEW = 4
"""Gaussians in a second, small bank."""
Say = Callable[[str], None]


def monitor(spec: Spec, choice: Choice) -> Spec:
    """The monitor with other parameters."""
    content = spec.model_dump(exclude_unset=True)
    for section, keys in {
        "kernel": ("sigma",),
        "learning": ("features",),
        "reduction": ("n_max",),
        "subspace": ("shrinkage", "censoring", "fading", "update", "budget", "step", "forgetting"),
    }.items():
        content[section] |= {key: choice[key] for key in keys if key in choice}
    return make_spec(content)


def models(spec: Spec) -> Iterator[tuple[str, Choice, Spec]]:
    """Everything that is tried: the kind, its parameters and its spec; the monitor's memory is the largest."""
    for choice in MONITOR:
        yield "okfeb", choice, monitor(spec, choice)
        yield "okfeb, small", SMALL | choice, monitor(spec, SMALL | choice)
    limit = memory_bytes(spec)["state_bytes"]
    for kind, choices in FIXED.items():
        for choice in choices:
            other = detector(spec, kind, **choice)
            if memory_bytes(other)["state_bytes"] <= limit:
                yield kind, choice, other
            if kind == "gaussians" and choice["members"] <= FEW:
                yield "gaussians, small", choice, other


def shown(choice: Choice) -> str:
    return ", ".join(
        f"{name} {value if isinstance(value, str) else format(value, 'g')}" for name, value in choice.items()
    )


def tune(spec: Spec, seeds: Iterable[int] = TUNING, say: Say = print) -> list[dict[str, Any]]:
    """A row for each model that was tried; ``chosen`` is the best of its kind."""
    found, rows = [Trial.of(seed) for seed in seeds], []
    for kind, choice, model in models(spec):
        say(f"{kind}: {shown(choice)}")
        runs = [outcome(model, trial) for trial in found]
        auc = np.mean([run.auc[fault] for run in runs for fault in FAULTS])
        alarms = np.mean([run.false_alarms for run in runs])
        size = memory_bytes(model)["state_bytes"]
        rows.append(
            {"detector": kind, "parameters": shown(choice), "state_bytes": size, "auc": f"{auc:.4f}"}
            | {"false_alarms": f"{alarms:.2f}", "seeds": len(found), "chosen": ""}
        )
    for kind in dict.fromkeys(row["detector"] for row in rows):
        best = max((row for row in rows if row["detector"] == kind), key=lambda row: float(row["auc"]))
        best["chosen"] = "yes"
    return rows


def variants(spec: Spec, seeds: Iterable[int] = TUNING, say: Say = print) -> list[dict[str, Any]]:
    """A row for each variant: the mean AUC of all faults, and of the seed where it is least."""
    found, rows = [Trial.of(seed) for seed in seeds], []
    for choice in VARIANTS:
        say(f"variant: {shown(choice)}")
        model = monitor(spec, choice)
        runs = [outcome(model, trial) for trial in found]
        areas = [float(np.mean([run.auc[fault] for fault in FAULTS])) for run in runs]
        mean, error = mean_and_error(areas)
        alarms = float(np.mean([run.false_alarms for run in runs]))
        rows.append(
            {"changed": shown(choice), "state_bytes": memory_bytes(model)["state_bytes"], "auc": f"{mean:.4f}"}
            | {"auc_error": f"{error:.4f}", "least": f"{min(areas):.4f}", "false_alarms": f"{alarms:.2f}"}
            | {"seeds": len(found)}
        )
    return rows


def chosen(spec: Spec, rows: Sequence[Mapping[str, Any]]) -> dict[str, Spec]:
    """The best of each kind."""
    wanted = {(row["detector"], row["parameters"]) for row in rows if row["chosen"]}
    found = {kind: model for kind, choice, model in models(spec) if (kind, shown(choice)) in wanted}
    return {kind: found[kind] for kind in ORDER}


# ------------------------------------------------------------------------------------------------------------ results


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))


def detection(
    spec: Mapping[str, Spec], seeds: Sequence[int], normal: int = NORMAL, say: Say = print
) -> list[dict[str, Any]]:
    """A row for each detector and branch: AUC, alarms in time and their delay; of the branch without a fault, by chance."""
    ranges: dict[Branch, list[float]] = {fault: [] for fault in (None, *FAULTS)}
    runs: dict[str, list[Outcome]] = {kind: [] for kind in spec}
    for seed in seeds:
        say(f"seed {seed}")
        trial = Trial.of(seed, normal)
        for fault, x in trial.branches.items():
            ranges[fault].append(inside(x, trial.normal))
        for kind, model in spec.items():
            runs[kind].append(outcome(model, trial))
    shares = {fault: float(np.mean(found)) for fault, found in ranges.items()}
    groups: dict[tuple[str, str], list[Branch]] = {("none", ""): [None]}
    groups |= {(fault.kind, fault.grade): [fault] for fault in FAULTS}
    groups["all subtle", ""] = [fault for fault in FAULTS if shares[fault] >= SUBTLE]
    groups["all gross", ""] = [fault for fault in FAULTS if shares[fault] <= GROSS]
    rows = []
    for kind, found in runs.items():
        alarms, alarms_error = mean_and_error([run.false_alarms for run in found])
        for (name, grade), faults in groups.items():
            auc, error = mean_and_error([float(np.mean([run.auc[fault] for fault in faults])) for run in found])
            delays = np.array([run.delay[fault] for run in found for fault in faults])
            there = delays[delays >= 0]
            rows.append(
                {
                    "detector": kind,
                    "fault": name,
                    "grade": grade,
                    "inside": f"{np.mean([shares[fault] for fault in faults]):.3f}",
                    "seeds": len(found),
                    "faults": len(faults),
                    "auc": f"{auc:.4f}",
                    "auc_error": f"{error:.4f}",
                    "missed": int((delays < 0).sum()),
                    "delay": f"{np.median(there):g}" if len(there) else "",
                    "false_alarms": f"{alarms:.3f}",
                    "false_alarms_error": f"{alarms_error:.3f}",
                }
            )
    return rows
