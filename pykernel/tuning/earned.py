"""What the parts of a signal earn: a planned model without each kind of feature, and with other windows.

Each trial is the planned model, of the same size and with the same values; only its width changes with the number of
features, as the width by default does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pykernel.errors import MissingExtra, UserError
from pykernel.spec.defaults import length, width
from pykernel.spec.signal import SPECTRAL
from pykernel.tuning.combinations import Content
from pykernel.tuning.plan import CALLS, Search, Trial
from pykernel.tuning.stage import Stage, dump
from pykernel.tuning.sweep import cost_task
from pykernel.tuning.trials import Table

TARGET = "cortex-m4f"
"""Where instructions are counted, if the plan has no target."""
LISTS = {"lags": "lag", "differences": "difference", "averages": "average", "periods": "period"}


@dataclass(frozen=True)
class Variant:
    """Another signal: its name in tables, and what it is."""

    name: str
    signal: Content
    delay: int
    shown: Content = field(default_factory=dict)


def groups_of(signal: Content) -> list[tuple[str, str, Any]]:
    """Kinds of features that may be dropped: (name, key of [signal], what is taken out of it)."""
    given = signal.get("features") or []
    lists = given.values() if isinstance(given, dict) else [given]
    found = [(name, "features", name) for name in dict.fromkeys(name for names in lists for name in names)]
    found += [(f"{low:g} to {high:g} Hz", "bands", [low, high]) for low, high in signal.get("bands") or []]
    return found + [
        (f"{word} {n}", key, n) for key, word in LISTS.items() for n in dict.fromkeys(signal.get(key) or [])
    ]


def without(signal: Content, key: str, what: Any) -> Content:
    """The signal without one kind of feature, and without what only that kind needs."""

    def rest(values: Sequence[Any]) -> list[Any]:
        return [value for value in values if (list(value) if isinstance(value, (list, tuple)) else value) != what]

    given = signal[key]
    left = {name: rest(names) for name, names in given.items()} if isinstance(given, dict) else rest(given)
    made = signal | {key: left}
    if not made.get("bands"):
        made = {name: value for name, value in made.items() if name not in ("bands", "log")}
    features = made.get("features")
    if not features:
        made.pop("features", None)
    lists = features.values() if isinstance(features, dict) else [features or []]
    if not made.get("bands") and not any(name in SPECTRAL for names in lists for name in names):
        made.pop("rate", None)
    return made


def lean_variants(table: Table) -> list[Variant]:
    """The signal without each kind of feature that its spec can do without."""
    stage = _stage(table)
    signal = stage.base["signal"]
    made = [Variant(name, without(signal, key, what), table.delay) for name, key, what in groups_of(signal)]
    return [variant for variant in made if _possible(stage, variant)]


def window_variants(table: Table) -> list[Variant]:
    """Windows of half and of double the length, each with hops of all, half and a quarter of it.

    None for forecasts, whose truth is the mean of a window: errors of other windows are of other truths.
    """
    stage = _stage(table)
    spec = stage.plain
    signal = stage.base["signal"]
    if spec.signal is None or spec.signal.window is None or spec.forecasts:
        return []
    made = []
    for window in (spec.signal.window // 2, 2 * spec.signal.window):
        for hop in (window, window // 2, window // 4):
            if hop >= 2 and window % hop == 0:
                delay = math.ceil(table.delay * spec.stride / hop)
                changed = signal | {"window": window, "hop": hop}
                shown = {"window": window, "hop": hop}
                made.append(Variant(f"window {window}, hop {hop}", changed, delay, shown))
    return [variant for variant in made if _possible(stage, variant)]


def _stage(table: Table) -> Stage:
    assert table.stage is not None
    return table.stage


def _possible(stage: Stage, variant: Variant) -> bool:
    try:
        return stage.with_signal(variant.signal).plain.dim > 0
    except UserError:
        return False


@dataclass
class Earned:
    """The trials of a planned model with other signals.  target: where instructions are counted; None: nowhere, for ``note``."""

    search: Search
    winner: Trial
    target: str | None = TARGET
    note: str = ""

    def __post_init__(self) -> None:
        from pykernel.targets.check import choose

        self.target = self.search.limits.target or self.target
        try:
            choose([self.target or TARGET], None, "unicorn")
        except (MissingExtra, UserError) as error:
            self.target, self.note = None, f"instructions were not counted: {error}"

    # ---- one trial

    def rows(self, variants: Sequence[Variant]) -> list[Content]:
        """Of each variant its error, steps that were judged, bytes and instructions; or the reason why there is none.

        instructions: of the most expensive call; per_sample: of a raw sample, the mean.
        """
        tasks = [self._moved(variant) for variant in variants]
        found = self.search.workers.run(tasks)
        told = [self._told(variant, task, row) for variant, task, row in zip(variants, tasks, found, strict=True)]
        self._count(told)
        return told

    def _moved(self, variant: Variant) -> Content:
        """The task of the planned model with another signal."""
        arm, table = self.winner.arm, self.search.table
        after = _stage(table).with_signal(variant.signal).plain
        values, dim = dict(self.winner.values), _dim(table)
        sigma = values.get("kernel.sigma", arm.own.get("kernel.sigma"))
        if sigma is not None:
            default = length if table.y is None else width
            wider = 1.0 if after.dim == dim else default(after.dim) / default(dim)
            values["kernel.sigma"] = float(f"{sigma * wider:.4g}") if wider != 1 else sigma
        before = arm.made.content["input"]
        given = before | Stage.seen(after)
        if after.real.is_integer:  # scaled by numbers of its own features
            given |= {
                key: value for key, value in dump(after)["input"].items() if key in ("center", "scale", "max_abs")
            }
        made = replace(arm.made, content=arm.made.content | {"input": given})
        task = {"do": "judge", "ram": self.search.limits.ram, **made.task(self.winner.size, values)}
        return task | {"signal": variant.signal, "delay": variant.delay}

    def _told(self, variant: Variant, task: Content, found: Content) -> Content:
        told = found.get("learning") or found.get("frozen")
        row = {
            "name": variant.name,
            **variant.shown,
            "signal": variant.signal,
            "instructions": None,
            "per_sample": None,
        }
        if told is None or found.get("diverged") or not math.isfinite(told["error"]):
            diverged = "the model diverges" if found.get("diverged") else "too few steps were answered"
            return row | {"error": None, "reason": found.get("reason", diverged)}
        row |= {"error": told["error"], "deviation": told["deviation"], "judged": told["scored"], "reason": None}
        stage = _stage(self.search.table).with_signal(variant.signal)
        whole = stage.around(found.get("spec") or task["spec"])
        return row | {"ram_bytes": found["ram_bytes"], "spec": dump(whole)}

    def _count(self, rows: Sequence[Content]) -> None:
        """Fill in the instructions."""
        counted = [row for row in rows if self.target is not None and row["error"] is not None]
        tasks = [cost_task(row["spec"], str(self.target)) for row in counted]
        for row, costs in zip(counted, self.search.workers.run(tasks), strict=True):
            calls = [costs[name]["max"] for name in CALLS if costs.get(name)]
            if calls and costs.get("update"):
                row |= {"instructions": max(calls), "per_sample": costs["update"]["mean"]}

    # ---- all of them

    def all(self, lean: Sequence[Variant], windows: Sequence[Variant]) -> Content:
        """Everything that there is to tell, and the ``leaner`` model: without all kinds that do not earn theirs, as far as it is
        as good without them together."""
        table = self.search.table
        given = _stage(table).base["signal"]
        shown = {key: given.get(key) for key in ("window", "hop")}
        shown["hop"] = shown["hop"] or shown["window"]
        here = Variant("planned", given, table.delay, shown)
        planned = self._told(here, {"spec": self.winner.content}, self.winner.found)
        self._count([planned])
        rest = self.rows([*lean, *windows])
        features, other = rest[: len(lean)], rest[len(lean) :]
        limit = self.search.as_good_as(self.winner)
        for row in features:
            row["earns"] = row["error"] is None or row["error"] > limit
            row["costs"] = _less(planned, row, "instructions")
            known = row["error"] is not None and planned["error"]
            row["change"] = row["error"] / planned["error"] - 1 if known else None
        leaner = self._leaner(features, limit)
        for row in (planned, *features, *other):
            row.pop("spec", None)
        found = {"target": self.target, "note": self.note, "planned": planned, "features": features, "windows": other}
        return found | {"leaner": leaner}

    def _leaner(self, features: Sequence[Content], limit: float) -> Content | None:
        best: Content | None = None
        dropped: list[str] = []
        parts = {name: (key, what) for name, key, what in groups_of(_stage(self.search.table).base["signal"])}
        signal = _stage(self.search.table).base["signal"]
        spare = [row for row in features if not row["earns"]]
        for row in sorted(spare, key=lambda row: (-(row["costs"] or 0), row["error"])):
            changed = Variant(
                ", ".join([*dropped, row["name"]]), without(signal, *parts[row["name"]]), self.search.table.delay
            )
            if not _possible(_stage(self.search.table), changed):
                continue
            (found,) = [row] if not dropped else self.rows([changed])
            if found["error"] is not None and found["error"] <= limit:
                best, signal = found, changed.signal
                dropped.append(row["name"])
        return None if best is None else best | {"dropped": dropped}


def _less(planned: Content, row: Content, key: str) -> int | None:
    return None if row[key] is None or planned[key] is None else planned[key] - row[key]


def _dim(table: Table) -> int:
    return int(table.x.shape[1])
