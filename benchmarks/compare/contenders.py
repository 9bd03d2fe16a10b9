"""Rules against each other on the same streams: learning curves over several seeds, and what was set.

Errors are those of predictions before their samples are learned.  A curve's point is the mean squared error over a block of
samples; of several seeds, the mean of their errors in dB of 1, and that mean's standard error carried over to dB.
"""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.compare import sources, tasks
from benchmarks.compare.tasks import TASKS
from pykernel.dialect import sources_digest
from pykernel.errors import UserError, shown_option
from pykernel.host.model import HostModel
from pykernel.spec.families.online import KernelSpec, ridge_of
from pykernel.spec.model import FAMILIES, Spec, declared, make_spec, rules
from pykernel.tuning.costs import memory_bytes

POINTS = 50
"""Of a curve."""
STEADY = 0.75
"""The table's error is that of the samples behind this part of a stream."""
LEAST_ROWS = 2 * POINTS
SECTIONS = ("kernel", "learning", "reduction")
"""Where ``--set`` finds its keys."""
SIZES = {"n_max": "reduction", "features": "learning"}


def comparable() -> tuple[str, ...]:
    """Rules that learn every number when it comes, with nothing chosen from data before."""
    online = (rule for rule, family in rules().items() if family.online and "real" in family.programs)
    return tuple(rule for rule in online if rule not in ("nystrom-rls", "okfeb"))


@dataclass(frozen=True)
class Contender:
    """A rule with a technique (None: it has none) on a task, as a spec's content.

    settings: what was set beside the size; origin: where from, for each key: "task", "given" or "default".
    """

    task: str
    rule: str
    technique: str | None
    content: dict[str, Any]
    settings: Mapping[str, Any]
    origin: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.rule if self.technique is None else f"{self.rule} {self.technique}"


@dataclass(frozen=True)
class Setting:
    """One ``--set``: a key, its value, and the rule that it is for (None: all that have it)."""

    key: str
    value: Any
    rule: str | None = None

    def means(self, rule: str) -> str | None:
        """The section in which the rule has the key."""
        if self.rule not in (None, rule):
            return None
        return next((section for section in SECTIONS if rule in declared(section, self.key)), None)


def contenders(
    task: str,
    base: Mapping[str, Any],
    chosen: Sequence[str],
    techniques: Sequence[str],
    size: int,
    given: Sequence[Setting],
) -> tuple[list[Contender], list[tuple[str, str]]]:
    """Every rule with every technique that goes with it, and those that do not: (name, why).

    task: a name of TASKS, or any other for a stream of one's own.  base: the spec's content but its rule.  techniques: of
    rules that have some; none: each rule's own.
    """
    found, refused = [], []
    for rule in chosen:
        own = rule in declared("reduction", "technique")
        for technique in (techniques or (None,)) if own else (None,):
            content, origin = _content(task, base, rule, technique, size, given)
            try:
                spec = make_spec(content)
            except UserError as error:
                name = rule if technique is None else f"{rule} {technique}"
                refused.append((name, str(error).split(": ", 1)[-1]))
                continue
            called = getattr(spec.reduction, "technique", None) if own else None
            found.append(Contender(task, rule, called, content, _settings(spec, origin), origin))
    return found, refused


def _content(
    task: str, base: Mapping[str, Any], rule: str, technique: str | None, size: int, given: Sequence[Setting]
) -> tuple[dict[str, Any], dict[str, str]]:
    """A spec's content, and where its keys come from."""
    content: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in base.items()}
    origin: dict[str, str] = {}
    content["learning"] = {"rule": rule}
    content.pop("reduction", None)
    for key, section in SIZES.items():
        if rule in declared(section, key):
            content.setdefault(section, {})[key] = size
            origin[key] = "size"
    if technique is not None:
        content["reduction"]["technique"] = technique
    if rule not in declared("kernel", "sigma"):
        content.pop("kernel", None)
    elif "kernel" in content:
        origin |= dict.fromkeys(content["kernel"], "task")
    published = TASKS[task].settings.get(rule, {}) if task in TASKS else {}
    for origin_of, settings in (("task", [Setting(k, v) for k, v in published.items()]), ("given", given)):
        for setting in settings:
            where = setting.means(rule)
            if where is not None:
                content.setdefault(where, {})[setting.key] = setting.value
                origin[setting.key] = origin_of
    return content, origin


def _settings(spec: Spec, origin: Mapping[str, str]) -> dict[str, Any]:
    """What counts for the rule: keys that were set, and its own with their defaults."""
    found = {}
    for section in SECTIONS:
        part = getattr(spec, section, None)
        for key in type(part).model_fields if part is not None else ():
            set_here = origin.get(key, "size") != "size"
            own = section == "learning" and key not in ("rule", *SIZES) and spec.has(section, key)
            value = getattr(part, key)
            if (set_here or own) and value is not None and not (value is False and not set_here):
                found[key] = value
    if isinstance(spec, KernelSpec) and spec.config.keeps_factor:
        found["ridge"] = ridge_of(spec)
    return found


def check_settings(given: Sequence[Setting], chosen: Sequence[str]) -> None:
    """Raises UserError for a setting that means nothing to any of the rules."""
    for setting in given:
        if not any(setting.means(rule) for rule in chosen):
            who = (
                "none of these rules has such a key"
                if setting.rule is None
                else f"{setting.rule} has none, or takes no part"
            )
            raise UserError(
                f"{shown_option('set')} {setting.key}: {who}; docs/reference/spec.md lists the keys of each rule"
            )


# ---------------------------------------------------------------------------------------------------------------- work


def work(task: Mapping[str, Any], shared: Any) -> dict[str, Any]:
    """One seed of one contender: squared errors of blocks, and of the steady part; for Workers.

    shared: (x, y) of a recorded stream, None for a task's.
    """
    x, y = TASKS[task["task"]].make(task["seed"], task["rows"]) if shared is None else shared
    model = HostModel(make_spec(task["spec"]))
    answers, statuses = model.prequential(x, y)
    squares = np.square(np.asarray(answers, float) - y)
    known = np.isfinite(squares)
    squares = np.where(known, squares, 0.0)  # a row without a label, or one that the model refuses
    edges = blocks(len(y))
    counts = np.maximum(np.add.reduceat(known, edges[:-1]), 1)
    late = slice(int(STEADY * len(y)), None)
    used = y[np.isfinite(y)]
    return {
        "curve": (np.add.reduceat(squares, edges[:-1]) / counts).tolist(),
        "steady": float(squares[late].sum() / max(1, known[late].sum())),
        "power": float(np.var(used)) if len(used) else 0.0,
        "vectors": int(np.ravel(model.memory.field("n"))[0]) if isinstance(model.spec, KernelSpec) else None,
        "refused": int((statuses < 0).sum()),
    }


def blocks(rows: int) -> np.ndarray:
    """Where blocks begin, and the end: POINTS + 1 positions."""
    return np.linspace(0, rows, POINTS + 1).round().astype(int)


def task_of(contender: Contender, seed: int, rows: int) -> dict[str, Any]:
    return {"task": contender.task, "seed": seed, "rows": rows, "spec": contender.content}


def context(data: tuple[np.ndarray, np.ndarray] | None) -> dict[str, str]:
    """What results depend on beside a task's content."""
    kernels = [entry.kernel for family in FAMILIES for program in family.programs.values() for entry in program.entries]
    digest = hashlib.sha256(b"".join(part.tobytes() for part in data or ())).hexdigest()
    streams = hashlib.sha256(inspect.getsource(tasks).encode()).hexdigest()
    return {"data": digest, "streams": streams, "sources": sources_digest(kernels)}


# -------------------------------------------------------------------------------------------------------------- results


@dataclass(frozen=True)
class Outcome:
    """A contender's curve in dB, (POINTS,), with its standard error (NaN for one seed), and a row of the table."""

    contender: Contender
    mean: np.ndarray
    error: np.ndarray
    row: Mapping[str, Any]


def decibels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of errors (seeds, ...): the mean in dB, and its standard error there; NaN for one seed."""
    mean = values.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = values.std(axis=0, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.full(mean.shape, np.nan)
        return 10 * np.log10(mean), 10 / math.log(10) * spread / mean


def outcome(contender: Contender, runs: Sequence[Mapping[str, Any]]) -> Outcome:
    """What the seeds of a contender have in common."""
    mean, error = decibels(np.array([run["curve"] for run in runs]))
    steady = np.array([run["steady"] for run in runs])
    level, spread = decibels(steady)
    relative, _ = decibels(steady / np.array([run["power"] or 1.0 for run in runs]))
    vectors = [run["vectors"] for run in runs if run["vectors"] is not None]
    spec = make_spec(contender.content)
    row = {
        "task": contender.task,
        "rule": contender.rule,
        "technique": contender.technique,
        "mse_db": float(level),
        "se_db": float(spread),
        "nmse_db": float(relative),
        "vectors": float(np.mean(vectors)) if vectors else None,
        "ram_bytes": memory_bytes(spec)["ram_bytes"],
        "refused": sum(run["refused"] for run in runs),
        "seeds": len(runs),
        "settings": dict(contender.settings),
        "origin": {key: contender.origin.get(key, "default") for key in contender.settings},
    }
    return Outcome(contender, mean, error, row)


def sources_of(found: Sequence[Contender]) -> set[str]:
    """Keys of the bibliography."""
    keys = {key for contender in found for key in sources.RULES[contender.rule]}
    keys |= {sources.TECHNIQUE for contender in found if contender.technique is not None}
    return keys | {key for contender in found if contender.task in TASKS for key in TASKS[contender.task].sources}
