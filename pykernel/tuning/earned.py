"""The benefit of each part of a signal stage: trials of the planned model without each kind of feature, with each
further kind, and with other windows.

Each trial is the planned model with the same size and the same values.  Only the kernel's width changes with the number
of features, as the default width does.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from pykernel.errors import UserError
from pykernel.spec.defaults import groups
from pykernel.spec.model import make_spec
from pykernel.spec.signal import SPECTRAL, FeatureName
from pykernel.targets import check
from pykernel.tuning.arms import Trial
from pykernel.tuning.combinations import Content
from pykernel.tuning.costs import CALLS, cost_task, fits
from pykernel.tuning.plan import Search
from pykernel.tuning.stage import Stage, dump
from pykernel.tuning.trials import Table, simple

TARGET = "cortex-m4f"
"""Target on which instructions are counted if the plan has no target."""
LISTS = {"lags": "lag", "differences": "difference", "averages": "average", "periods": "period"}
FIRST = {"differences": 1, "averages": 4}
"""Steps of a difference and of an average, if the spec has none."""
OCTAVES = 4
"""Bands below half the rate, each half as wide as the next, where the spec has none."""


@dataclass(frozen=True)
class Variant:
    """Another signal: its name in tables, and what it is."""

    name: str
    signal: Content
    delay: int
    shown: Content = field(default_factory=dict)


def kinds_of(signal: Content) -> list[str]:
    """The kinds of features of all channels, in order."""
    given = signal.get("features") or []
    lists = given.values() if isinstance(given, dict) else [given]
    return list(dict.fromkeys(itertools.chain(*lists)))


def groups_of(signal: Content) -> list[tuple[str, str, Any]]:
    """Kinds of features that may be dropped: (name, key of [signal], value to remove from the key)."""
    found: list[tuple[str, str, Any]] = [(name, "features", name) for name in kinds_of(signal)]
    found += [(f"{low:g} to {high:g} Hz", "bands", [low, high]) for low, high in signal.get("bands") or []]
    return found + [
        (f"{word} {n}", key, n) for key, word in LISTS.items() for n in dict.fromkeys(signal.get(key) or [])
    ]


def without(signal: Content, key: str, what: Any) -> Content:
    """The signal without one kind of feature, and without keys that only this kind needs."""

    def rest(values: Sequence[Any]) -> list[Any]:
        return [value for value in values if (list(value) if isinstance(value, (list, tuple)) else value) != what]

    given = signal[key]
    left = {name: rest(names) for name, names in given.items()} if isinstance(given, dict) else rest(given)
    made = signal | {key: left}
    unneeded = {name for name in ("bands", "features") if not made.get(name)}
    if "bands" in unneeded:
        unneeded |= {"log"} if set(SPECTRAL) & set(kinds_of(made)) else {"log", "rate"}
    return {name: value for name, value in made.items() if name not in unneeded}


def fewer_lags(signal: Content) -> list[tuple[str, Content]]:
    """The signal with only the shorter half of its lags, and the name of the removed lags; empty if there is only one
    lag.
    """
    lags = sorted(set(signal.get("lags") or []))
    far = lags[max(1, len(lags) // 2) :]
    return [(_lags(far), signal | {"lags": lags[: -len(far)]})] if len(far) > 1 else []


def more_of(signal: Content) -> list[tuple[str, Content]]:
    """Variants of the signal with one more kind of feature for all channels, or with twice as many lags.

    (name of the new features, signal) for each.
    """
    found: list[tuple[str, Content]] = []
    if signal.get("window") is not None:
        given, rate = signal.get("features") or [], signal.get("rate")
        for kind in get_args(FeatureName):
            if kind not in kinds_of(signal) and (rate is not None or kind not in SPECTRAL):
                every = {name: [*names, kind] for name, names in given.items()} if isinstance(given, dict) else None
                found.append((kind, signal | {"features": every or [*given, kind]}))
        if rate is not None and not signal.get("bands"):
            edges = [rate / 2**n for n in range(OCTAVES + 1, 0, -1)]
            bands = [[low, high] for low, high in itertools.pairwise(edges) if low >= rate / signal["window"]]
            found.append((f"bands of an octave from {bands[0][0]:g} Hz", signal | {"bands": bands}))
    found += [(f"{LISTS[key]} {n}", signal | {key: [n]}) for key, n in FIRST.items() if not signal.get(key)]
    lags = [0] if signal.get("lags") is None else list(dict.fromkeys(signal["lags"]))
    new = list(itertools.islice((n for n in itertools.count() if n not in lags), max(1, len(lags))))
    return [*found, (_lags(new), signal | {"lags": [*lags, *new]})]


def _lags(counts: Sequence[int]) -> str:
    if len(counts) > 2 and counts[-1] - counts[0] == len(counts) - 1:
        return f"lags {counts[0]} to {counts[-1]}"
    return f"lag{'s' if len(counts) > 1 else ''} {', '.join(map(str, counts))}"


def lean_variants(table: Table) -> list[Variant]:
    """The signal without each kind of feature that its spec can do without, and with half as many lags."""
    stage = _stage(table)
    signal = stage.base["signal"]
    made = [(name, without(signal, key, what)) for name, key, what in groups_of(signal)] + fewer_lags(signal)
    return _possible(stage, [Variant(name, changed, table.delay) for name, changed in made])


def rich_variants(table: Table) -> list[Variant]:
    """The signal with each kind of feature that its spec does not have, and with twice as many lags."""
    stage = _stage(table)
    return _possible(stage, [Variant(name, made, table.delay) for name, made in more_of(stage.base["signal"])])


def window_variants(table: Table) -> list[Variant]:
    """The same window with half and double the hop; windows of half and double the length, each with a hop of the
    whole, half and a quarter of the window.  The forecast stays the same number of raw samples ahead.
    """
    stage = _stage(table)
    spec = stage.plain
    if spec.signal is None or spec.signal.window is None:
        return []
    given, stride, far = spec.signal.window, spec.stride, spec.signal.ahead * spec.stride
    sizes = [(given, stride // 2), (given, 2 * stride)]
    sizes += [(window, window // part) for window in (given // 2, 2 * given) for part in (1, 2, 4)]
    made = []
    for window, hop in sizes:
        if hop < 2 or window % hop or (spec.forecasts and far % hop):
            continue
        delay = far // hop - 1 if spec.forecasts else math.ceil(table.delay * stride / hop)
        shown = {"window": window, "hop": hop}
        changed = stage.base["signal"] | shown | ({"ahead": far // hop} if spec.forecasts else {})
        made.append(Variant(f"window {window}, hop {hop}", changed, delay, shown))
    return _possible(stage, made)


def _stage(table: Table) -> Stage:
    assert table.stage is not None
    return table.stage


def _possible(stage: Stage, variants: Sequence[Variant]) -> list[Variant]:
    """The variants that give a valid spec."""
    found = []
    for variant in variants:
        with contextlib.suppress(UserError):
            stage.with_signal(variant.signal).plain  # noqa: B018
            found.append(variant)
    return found


class Earned:
    """The trials of a planned model with other signals.

    target: the target on which instructions are counted; None: they are not counted, and ``note`` says why.
    """

    def __init__(self, search: Search, winner: Trial) -> None:
        self.search, self.winner, self.note = search, winner, ""
        self.target: str | None = search.limits.target or TARGET
        try:
            check.choose([self.target], None, "unicorn")
        except UserError as error:
            self.target, self.note = None, f"instructions were not counted: {error}"

    # ---- one trial

    def rows(self, variants: Sequence[Variant]) -> list[Content]:
        """For each variant: its error, the number of scored steps, bytes and instructions; or the reason why there are
        none.

        instructions: of the most expensive call.  per_sample: mean instructions for a raw sample.
        """
        tasks = [self._moved(variant) for variant in variants]
        found = self.search.workers.run(tasks)
        told = [self._told(variant, task, row) for variant, task, row in zip(variants, tasks, found, strict=True)]
        self._count(told)
        return told

    def _moved(self, variant: Variant) -> Content:
        """The task of the planned model with another signal."""
        arm, table = self.winner.arm, self.search.table
        after, dim = _stage(table).with_signal(variant.signal).plain, int(table.x.shape[1])
        values = dict(self.winner.values)
        sigma = values.get("kernel.sigma", arm.own.get("kernel.sigma"))
        if sigma is not None:
            default = groups("monitor" if table.y is None else "number", int16=False)[-1][0].sigma
            wider = 1.0 if after.dim == dim else default(after.dim) / default(dim)
            values["kernel.sigma"] = float(f"{sigma * wider:.4g}") if wider != 1 else sigma
        given = arm.made.content["input"] | Stage.seen(after)
        if after.real.is_int16:  # the scale is computed from the variant's own features
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
        return row | {"ram_bytes": found["ram_bytes"], "last_label": found.get("last_label"), "spec": dump(whole)}

    def _count(self, rows: Sequence[Content]) -> None:
        """Fill in the instructions."""
        counted = [row for row in rows if self.target is not None and row["error"] is not None]
        tasks = [cost_task(row["spec"], str(self.target)) for row in counted]
        for row, costs in zip(counted, self.search.workers.run(tasks), strict=True):
            calls = [costs[name]["max"] for name in CALLS if costs.get(name)]
            if calls and costs.get("update"):
                row |= {"instructions": max(calls), "per_sample": costs["update"]["mean"]}

    # ---- all of them

    def all(self, lean: Sequence[Variant], rich: Sequence[Variant], windows: Sequence[Variant]) -> Content:
        """The results of all trials, and two further models.

        leaner: the model without all kinds of features that have no benefit, as far as it stays as good without all of
        them.
        better: among the variants whose error is lower by more than the deviations of both errors, the one with the
        lowest error that keeps the limits.
        """
        table = self.search.table
        stage = _stage(table)
        given, forecasts = stage.base["signal"], stage.plain.forecasts
        shown = {key: given.get(key) for key in ("window", "hop")}
        shown["hop"] = shown["hop"] or shown["window"]
        here = Variant("planned", given, table.delay, shown)
        planned = self._told(here, {"spec": self.winner.content}, self.winner.found)
        if forecasts:
            planned["last_label"] = simple(make_spec(self.winner.content), table)["last label"]["error"]
        self._count([planned])
        rest = iter(self.rows([*lean, *rich, *windows]))
        features, added, other = (list(itertools.islice(rest, len(each))) for each in (lean, rich, windows))
        limit = self.search.as_good_as(planned["error"])
        for row in [*features, *added]:
            known = row["error"] is not None and planned["error"]
            row["change"] = row["error"] / planned["error"] - 1 if known else None
        for row in features:
            row["earns"] = row["error"] is None or row["error"] > limit
            row["costs"] = _less(planned, row, "instructions")
        for row in added:
            row["earns"] = row["error"] is not None and planned["error"] > self.search.as_good_as(row["error"])
            row["costs"] = _less(row, planned, "instructions")
        leaner = self._leaner(features, limit)
        # with other windows, a forecast has other true values (means of these windows), so errors are not comparable
        comparable = [row for row in other if not forecasts or row["window"] == planned["window"]]
        named = [row | {"name": f"without {row['name']}"} for row in features]
        named += [row | {"name": f"with {row['name']}"} for row in added]
        better = self._better(planned, [*named, *comparable])
        for row in (planned, *features, *added, *other):
            row.pop("spec", None)
        found = {"target": self.target, "note": self.note, "planned": planned, "features": features, "added": added}
        return found | {"windows": other, "leaner": leaner, "better": better}

    def _better(self, planned: Content, rows: Sequence[Content]) -> Content | None:
        tried = [row for row in rows if row["error"] is not None]
        surely = [row for row in tried if planned["error"] - row["error"] > max(planned["deviation"], row["deviation"])]
        for row in sorted(surely, key=lambda row: (row["error"], row["ram_bytes"])):
            # without a target, the trial has checked the limits
            if self.search.limits.target is None or fits(self.search.measured(row["spec"])["uses"]):
                return dict(row)
        return None

    def _leaner(self, features: Sequence[Content], limit: float) -> Content | None:
        best: Content | None = None
        dropped: list[str] = []
        parts = {name: (key, what) for name, key, what in groups_of(_stage(self.search.table).base["signal"])}
        signal = _stage(self.search.table).base["signal"]
        spare = [row for row in features if not row["earns"] and row["name"] in parts]
        for row in sorted(spare, key=lambda row: (-(row["costs"] or 0), row["error"])):
            changed = Variant(
                ", ".join([*dropped, row["name"]]), without(signal, *parts[row["name"]]), self.search.table.delay
            )
            if not _possible(_stage(self.search.table), [changed]):
                continue
            (found,) = [row] if not dropped else self.rows([changed])
            if found["error"] is not None and found["error"] <= limit:
                best, signal = found, changed.signal
                dropped.append(row["name"])
        return None if best is None else best | {"dropped": dropped}


def _less(planned: Content, row: Content, key: str) -> int | None:
    return None if row[key] is None or planned[key] is None else planned[key] - row[key]
