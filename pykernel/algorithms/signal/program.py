"""Programs with a signal stage: around a model, and alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any

from pykernel.algorithms.signal import calls, lags, whole
from pykernel.algorithms.signal.state import Signal, SignalConfig, SignalStatus, SignalWork
from pykernel.dialect import Kernel, surround
from pykernel.dialect.program import Entry, Program

WHOLE: dict[str, Any] = whole.TYPES | {
    "acceptable_sample": whole.acceptable_sample,
    "intact_signal": whole.intact_signal,
    "step": whole.step,
    "make_features_of": whole.make_features_of,
    "come_true": whole.come_true,
    "skip": surround(lags.skip, (), whole.TYPES),
    "valid_signal": whole.valid_signal,
    "rehearse_signal": whole.rehearse_signal,
}
"""What names of the stage of reals mean in whole numbers."""

REALS: dict[str, Any] = {"Signal": Signal, "SignalWork": SignalWork, "SignalConfig": SignalConfig}
"""What they are there."""


def _alone(kind: Mapping[str, Any]) -> Program:
    """Features without a model."""
    own = functools.partial(_own, kind)
    return Program(
        name="signal",
        structs=(kind["Signal"], kind["SignalWork"]),
        persistent=(kind["Signal"],),
        configs=(kind["SignalConfig"],),
        status=SignalStatus,
        unanswered=(SignalStatus.GATHERING,),
        entries=(
            Entry("signal", own(calls.signal), "reading"),
            Entry("measures", own(calls.measures), "reading"),
            Entry("push", own(calls.push), "update"),
            Entry("gap", own(calls.gap), "switch"),
        ),
        rehearse=own(calls.rehearse_alone),
        valid=own(calls.valid_signal),
    )


def _own(kind: Mapping[str, Any], kernel: Kernel) -> Kernel:
    """A kernel of the stage of reals, or the same in whole numbers."""
    if kind is REALS:
        return kernel
    return kind[kernel.name] if kernel.name in kind else surround(kernel, (), kind)


FEATURES, WHOLE_FEATURES = _alone(REALS), _alone(WHOLE)
"""Features without a model."""

_MADE: dict[tuple[int, bool], tuple[Program, Program]] = {}


def with_signal(inner: Program, forecasts: bool) -> Program:
    """The program around another; once for each.

    forecasts: whether the label is a measure that comes later, not one from elsewhere.
    """
    key = (id(inner), forecasts)
    if key not in _MADE:
        # both are kept, so that no other object gets one of their ids
        _MADE[key] = (inner, _with_signal(inner, forecasts))
    return _MADE[key][1]


def _with_signal(inner: Program, forecasts: bool) -> Program:
    kind = WHOLE if inner.whole else REALS
    own, inside = functools.partial(_own, kind), (*inner.structs, *inner.configs)
    learn = inner.entry(inner.learner) if inner.learns else None
    unlabelled = inner.label is None
    stand_ins: dict[str, Any] = {**kind, "inner_rehearse": inner.rehearse}
    if inner.valid is not None:
        stand_ins["inner_valid"] = inner.valid
    if learn is not None:
        stand_ins["inner_learn_alone" if unlabelled else "inner_learn"] = learn
        stand_ins["Truth"] = inner.label
    make = functools.partial(surround, inside=inside)
    entries = list[Entry]()
    if learn is None:
        entries.append(Entry("push", own(calls.push), "update"))
    elif unlabelled:
        entries.append(Entry("push", make(calls.push_alone, stand_ins=stand_ins, name="push"), "update"))
    elif forecasts:
        entries.append(Entry("push", make(calls.push_forecast, stand_ins=stand_ins, name="push"), "update"))
    else:
        entries += [
            Entry("push", own(calls.push), "gather"),
            Entry("label", make(calls.label, stand_ins=stand_ins), "label"),
            Entry("push_labelled", make(calls.push_labelled, stand_ins=stand_ins), "update"),
        ]
    for entry in inner.entries:
        if entry.kind == "question":
            asked = stand_ins | {"inner_ask": entry.kernel, "Answer": inner.questions[entry.name]}
            name = "forecast" if entry.name == "predict" else f"forecast_{entry.name}"
            kernel = make(calls.forecast, stand_ins=asked, name=name)
            entries.append(replace(entry, name=name, kernel=kernel, kind="reading", of=entry.name))
        elif entry.kind not in ("update", "visit"):
            entries.append(entry)
    entries += [Entry("signal", own(calls.signal), "reading"), Entry("gap", own(calls.gap), "switch")]
    # the main question first: of readings, the first one is asked
    entries.sort(key=lambda entry: entry.of != inner.asks)
    names = {member.name: member.value for kind in (inner.status, SignalStatus) for member in kind}
    status = IntEnum(inner.status.__name__, names)  # type: ignore[misc]
    status.__doc__ = inner.status.__doc__
    return Program(
        name=inner.name,
        structs=(kind["Signal"], *inner.persistent, kind["SignalWork"], *inner.structs[len(inner.persistent) :]),
        persistent=(kind["Signal"], *inner.persistent),
        configs=(kind["SignalConfig"], *inner.configs),
        status=status,
        statuses=(inner.status, SignalStatus),
        entries=tuple(entries),
        rehearse=make(calls.rehearse_around, stand_ins=stand_ins),
        valid=make(calls.valid_around, stand_ins=stand_ins) if inner.valid is not None else own(calls.valid_signal),
        alarms=inner.alarms,
        unanswered=(SignalStatus.GATHERING,),
        between=inner.between,
    )
