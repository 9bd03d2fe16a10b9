"""Try the planned model again, each time without one kind of feature of its signal stage.

Each trial keeps the planned model's size and parameter values, except the kernel's width, which changes with the number
of features as the default width does.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pykernel.errors import UserError
from pykernel.spec.defaults import groups
from pykernel.spec.signal import SPECTRAL
from pykernel.tuning.arms import Trial
from pykernel.tuning.combinations import Content
from pykernel.tuning.plan import Search
from pykernel.tuning.stage import Stage, dump

LISTS = {"lags": "lag", "differences": "difference", "averages": "average", "periods": "period"}


def kinds_of(signal: Content) -> list[str]:
    """Return the names under the key "features" of [signal], for all channels, each name once."""
    given = signal.get("features") or []
    lists = given.values() if isinstance(given, dict) else [given]
    return list(dict.fromkeys(itertools.chain(*lists)))


def groups_of(signal: Content) -> dict[str, tuple[str, Any]]:
    """Return a dict that maps the name of each kind of feature to (key of [signal], value to remove from the key's list)."""
    found: dict[str, tuple[str, Any]] = {name: ("features", name) for name in kinds_of(signal)}
    found |= {f"{low:g} to {high:g} Hz": ("bands", [low, high]) for low, high in signal.get("bands") or []}
    return found | {f"{word} {n}": (key, n) for key, word in LISTS.items() for n in signal.get(key) or []}


def without(signal: Content, key: str, what: Any) -> Content:
    """Return [signal] without one kind of feature, and without keys that only this kind needs."""
    given = signal[key]
    lists = given if isinstance(given, dict) else {"": given}
    left = {name: [value for value in values if value != what] for name, values in lists.items()}
    made = signal | {key: left if isinstance(given, dict) else left[""]}
    unneeded = {name for name in ("bands", "features") if not made.get(name)}
    if "bands" in unneeded:
        unneeded |= {"log"} if set(SPECTRAL) & set(kinds_of(made)) else {"log", "rate"}
    return {name: value for name, value in made.items() if name not in unneeded}


def without_each(stage: Stage) -> dict[str, Stage]:
    """Return a dict that maps the name of each kind of feature to a stage without this kind.

    Stages that are not valid are left out.
    """
    found, signal = {}, stage.base["signal"]
    for name, (key, what) in groups_of(signal).items():
        with contextlib.suppress(UserError):
            other = stage.with_signal(without(signal, key, what))
            other.plain  # noqa: B018
            found[name] = other
    return found


def ablation(search: Search, winner: Trial, stages: Mapping[str, Stage]) -> list[Content]:
    """Return a dict for each stage: the planned model's error with this stage ("error"), the relative change in the error
    ("change"), the RAM in bytes ("ram_bytes") and, if the error is None, the cause ("reason").

    "earns" is True if the model needs the kind of feature that the stage lacks: without it, the error is None, or larger than
    ``Search.as_good_as`` allows.
    """
    report = winner.report
    assert report is not None
    found = search.workers.run([_task(search, winner, stage) for stage in stages.values()])
    rows = []
    for name, each in zip(stages, found, strict=True):
        own = each.get("learning") or each.get("frozen")
        row = {"name": name, "error": None, "change": None, "earns": True, "ram_bytes": each.get("ram_bytes")}
        if own is None or each.get("diverged") or not math.isfinite(own["error"]):
            why = "the model diverges" if each.get("diverged") else "the model gives predictions for too few steps"
            rows.append(row | {"reason": each.get("reason", why)})
            continue
        error = own["error"]
        change = error / report["error"] - 1 if report["error"] else None
        earns = error > search.as_good_as(report["error"])
        rows.append(row | {"error": error, "change": change, "earns": earns, "reason": None})
    return rows


def _task(search: Search, winner: Trial, stage: Stage) -> Content:
    """Return the task that tries the planned model with this stage."""
    arm, table = winner.arm, search.table
    after, dim = stage.plain, int(table.x.shape[1])
    values = dict(winner.values)
    sigma = values.get("kernel.sigma", arm.own.get("kernel.sigma"))
    if sigma is not None:
        default = groups("number", int16=False)[-1][0].sigma
        wider = 1.0 if after.dim == dim else default(after.dim) / default(dim)
        values["kernel.sigma"] = float(f"{sigma * wider:.4g}") if wider != 1 else sigma
    given = arm.made.content["input"] | Stage.seen(after)
    if after.real.is_int16:  # an int16 model has a fixed scaling: take that of this stage's features
        given |= {key: value for key, value in dump(after)["input"].items() if key in ("center", "scale", "max_abs")}
    made = replace(arm.made, content=arm.made.content | {"input": given})
    task = {"do": "judge", "ram": search.limits.ram, **made.task(winner.size, values)}
    return task | {"signal": stage.base["signal"]}
