"""The experiments of ``paper_003.py``: what one task computes, with the product's own models.

A task is a dictionary of plain values, and so is its result: they go to other processes and machines, and into the
results file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.compare.tasks import sinc
from pykernel.algorithms.online.klms import KLMS
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.targets.build import model_image
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import UnicornModel

SIGMA, ETA, SAMPLES, PASSES = 0.5, 0.1, 100, 10
"""The report gives eta, samples and passes; sigma = 0.5 gives its reference error (the reference row of the results)."""
GRID = np.linspace(-3, 3, 601)
STATUS = KLMS["real"].status
LOST = STATUS.REFUSED_MULTIPLIER, STATUS.RESTARTED
DISCARDED, REPLACED = 3, 2
DIVERGED = 1.0
"""A mean squared error above this, or a status of LOST: the function to be learned is within 1 of zero."""
WITH_FACTOR = frozenset({"klms", "mklms", "sup", "ls", "lsreg", "lsridge"})


def content_of(
    reduction: Mapping[str, Any],
    learning: Mapping[str, Any] | None = None,
    *,
    exact: bool = True,
    sigma: float = SIGMA,
    eta: float | None = ETA,
) -> dict[str, Any]:
    """A spec's content.  exact: float64 with as little absorbed as a kept inverse allows; else float32 and the defaults.

    The fast techniques have the projection that the report gives them, eq. 16.
    """
    reduction = dict(reduction)
    if reduction.get("technique") in ("fklms", "fmklms", "afklms", "afmklms"):
        reduction = {"projection": "fklms", **reduction}
    rule = {"eta": eta} if eta is not None else {}
    if exact:
        parts = {reduction.get("technique", "mklms"), reduction.get("projection")}
        if parts & WITH_FACTOR:
            reduction = {"ridge": 0.0, "ald_threshold": 1e-7, **reduction}
        else:
            reduction = {"ald_threshold": 0.0, **reduction}
        if parts & {"lsreg", "lsridge"}:
            reduction = {"penalty": 1e-6, **reduction}
    return {
        "name": "report",
        "precision": "float64" if exact else "float32",
        "input": {"dim": 1},
        "kernel": {"sigma": sigma},
        "learning": {"rule": "klms", **rule, **(learning or {})},
        "reduction": reduction,
    }


def accepted(content: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The content as the spec takes it, forced, and why it would be refused otherwise ("" if it would not).

    Where a key has no meaning for a technique it is left out.  None, with the reason, where the spec refuses it all the
    same.
    """

    def refusal(tried: dict[str, Any]) -> str:
        try:
            make_spec(tried)
        except UserError as error:
            return str(error)
        return ""

    given = content["reduction"]
    reasons = []
    for leave in (
        (),
        ("ridge",),
        ("ald_threshold",),
        ("ridge", "ald_threshold"),
        ("penalty",),
        ("penalty", "ridge"),
        ("force",),
    ):
        kept = {key: value for key, value in given.items() if key not in leave}
        forced = {**content, "reduction": kept if leave == ("force",) else {**kept, "force": True}}
        reasons.append(refusal(forced))
        if not reasons[-1]:
            return forced, refusal({**content, "reduction": kept})
    return None, reasons[0]


def summary(model: HostModel, statuses: np.ndarray) -> dict[str, float]:
    """What became of one realisation."""
    n = int(np.ravel(model.memory.field("n"))[0])
    with np.errstate(over="ignore", invalid="ignore"):
        mse = float(np.mean((model.predict(GRID[:, None]).astype(float) - np.sinc(GRID)) ** 2))
    gaps = np.diff(np.sort(model.memory.field("v")[:n, 0].astype(float))) if n > 1 else np.zeros(1)
    moves = np.count_nonzero((statuses == DISCARDED) | (statuses == REPLACED))
    return {
        "mse": mse,
        "vectors": n,
        "largest": float(np.abs(model.memory.field("alpha")[:n]).max(initial=0.0)),
        "lost": int(np.count_nonzero(np.isin(statuses, LOST))),
        "discarded": float(np.count_nonzero(statuses == DISCARDED) / moves) if moves else 0.0,
        "gap_min": float(gaps.min()),
        "gap_median": float(np.median(gaps)),
        "gap_max": float(gaps.max()),
    }


def learn(model: HostModel, seed: int, passes: int = PASSES) -> dict[str, float]:
    """One realisation: the samples in the same order in each pass."""
    x, y = sinc(seed, SAMPLES)
    model.reset()
    return summary(model, model.update(np.tile(x, (passes, 1)), np.tile(y, passes)))


def realise(task: Mapping[str, Any]) -> dict[str, list[float]]:
    """Realisations ``first`` … ``stop`` - 1 of a spec: a list for each measure."""
    model = HostModel(make_spec(task["content"]))
    runs = [learn(model, seed, task.get("passes", PASSES)) for seed in range(task["first"], task["stop"])]
    return {key: [run[key] for run in runs] for key in runs[0]}


def search(task: Mapping[str, Any]) -> dict[str, list[float]]:
    """As ``realise``, with the threshold of each realisation bisected so that it ends with at most n_max vectors.

    task["threshold"]: section and key.  That is hindsight, which a device does not have; it makes sizes comparable.
    """
    section, key = task["threshold"]
    runs = []
    for seed in range(task["first"], task["stop"]):
        low, high, best = np.log(task["low"]), np.log(task["high"]), None
        for _ in range(task["steps"]):
            middle = (low + high) / 2
            content = task["content"]
            content = {**content, section: {**content[section], key: float(np.exp(middle))}}
            run = learn(HostModel(make_spec(content)), seed, task.get("passes", PASSES))
            if run["vectors"] <= task["n_max"]:
                best, high = {**run, "threshold": float(np.exp(middle))}, middle
            else:
                low = middle
        if best is None:
            raise RuntimeError(f"no {key} up to {task['high']} leaves {task['n_max']} vectors")
        runs.append(best)
    return {name: [run[name] for run in runs] for name in runs[0]}


def count_instructions(task: Mapping[str, Any]) -> dict[str, list[float]]:
    """Instructions of each presentation, of several specs: on an emulated Cortex-M7, in float32.

    reach: inputs are uniform within it.  The model is full before the first presentation that is counted; no sample comes
    twice.  Raises RuntimeError if the device's memory is not the host's in the end.
    """
    rng, target, before = np.random.default_rng(0), find_target("cortex-m7f"), task["before"]
    x = rng.uniform(-task["reach"], task["reach"], (before + task["count"], 1))
    y = np.sinc(x[:, 0]) if task["labels"] == "sinc" else rng.normal(size=len(x))
    found = {}
    for name, content in task["contents"].items():
        project = build(make_spec(content))
        host, device = HostModel(project.spec, project.drop), UnicornModel(project, model_image(project, target, "gcc"))
        host.update(x[:before], y[:before])
        device.memory.bytes[:] = host.memory.bytes
        device.visit("update", x[before:], y[before:])
        host.update(x[before:], y[before:])
        if bytes(device.memory.bytes) != bytes(host.memory.bytes):
            raise RuntimeError(f"{name}, N = {task['n_max']}: the memory is not the host's")
        found[name] = list(map(float, device.costs["update"]))
    return found


KINDS = {"realise": realise, "search": search, "count": count_instructions}


def run_task(task: Mapping[str, Any], shared: Any = None) -> dict[str, list[float]]:
    """Compute one task."""
    return KINDS[task["kind"]](task)


# --------------------------------------------------------------------------------------- single models, for figures


def expansion(model: HostModel) -> tuple[np.ndarray, np.ndarray]:
    """Expansion vectors (n,) and multipliers (n,) of a model with one input and one output."""
    n = int(np.ravel(model.memory.field("n"))[0])
    return model.memory.field("v")[:n, 0].astype(float), np.ravel(model.memory.field("alpha"))[:n].astype(float)


def trained(reduction: Mapping[str, Any], seed: int = 0, **options: Any) -> HostModel:
    """The report's task learned once."""
    model = HostModel(spec_of(reduction, **options))
    learn(model, seed)
    return model


def spec_of(reduction: Mapping[str, Any], learning: Mapping[str, Any] | None = None, **options: Any) -> Spec:
    content, reason = accepted(content_of(reduction, learning, **options))
    if content is None:
        raise UserError(reason)
    return make_spec(content)


def present(model: HostModel, vectors: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
    """Samples whose labels make their multipliers the given ones; the statuses."""
    eta = model.spec.learning.eta
    statuses = []
    for v, a in zip(vectors, multipliers, strict=True):
        label = model.predict([[v]])[0] + a / eta
        statuses.append(model.update([[v]], [label])[0])
    return np.array(statuses)


def one_removal(
    technique: str, vectors: np.ndarray, multipliers: np.ndarray, removed: int, sigma: float
) -> tuple[HostModel, HostModel]:
    """A model of these vectors, and what a technique leaves of it when one of them is made to go.

    The one that goes is presented last to a full model whose only candidate is the newest sample.
    """
    rest = np.delete(np.arange(len(vectors)), removed)
    order = np.append(rest, removed)
    budget = {"technique": technique, "n_max": len(vectors)}
    whole = HostModel(spec_of(budget, sigma=sigma, eta=0.5))
    reduced = HostModel(spec_of({**budget, "n_max": len(rest), "candidates": "newest"}, sigma=sigma, eta=0.5))
    for model in (whole, reduced):
        statuses = present(model, vectors[order], multipliers[order])
        if (statuses < 0).any() or (model is reduced and statuses[-1] != DISCARDED):
            raise RuntimeError(f"{technique}: statuses {statuses.tolist()}")
    return whole, reduced
