"""Programs with a signal stage, either around a model or without one."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pykernel.algorithms.signal import calls, int16_lags, int16_spectrum, int16_window, lags, spectrum, state, window
from pykernel.algorithms.signal.int16_state import Int16Signal, Int16SignalConfig, Int16SignalModel, Int16SignalWork
from pykernel.algorithms.signal.state import (
    CHANNELS,
    MEASURES,
    Signal,
    SignalConfig,
    SignalModel,
    SignalStatus,
    SignalWork,
    StepConfig,
)
from pykernel.dialect import DIM, Config, Int, Int16, Model, Real, Struct, substitute
from pykernel.dialect.program import Entry, Program


@dataclass(frozen=True)
class Stage:
    """The stage, in floating point or in integers.  stand_ins: replacements for floating-point kernels and types."""

    memory: type[Struct]
    work: type[Struct]
    config: type[Config]
    model: type[Model]
    stand_ins: Mapping[Any, Any]


REALS = Stage(Signal, SignalWork, SignalConfig, SignalModel, {})
INT16 = Stage(
    Int16Signal,
    Int16SignalWork,
    Int16SignalConfig,
    Int16SignalModel,
    {
        Real: Int,
        Real[DIM]: Int16[DIM],
        Real[CHANNELS]: Int16[CHANNELS],
        Real[MEASURES]: Int16[MEASURES],
        state.acceptable_sample: int16_window.acceptable_sample,
        window.take_raw: int16_window.take_raw,
        window.begin_block: int16_window.begin_block,
        window.add_sample: int16_window.add_sample,
        window.end_block: int16_window.nothing,
        window.combine_blocks: int16_window.nothing,
        window.measure_shapes: int16_window.nothing,
        window.measure_tones: int16_window.no_tones,
        window.put_measure: int16_window.put_measure,
        window.mean_of: int16_window.mean_of,
        window.rms_of: int16_window.rms_of,
        window.std_of: int16_window.std_of,
        window.range_of: int16_window.range_of,
        window.change_of: int16_window.change_of,
        window.crossings_of: int16_window.crossings_of,
        spectrum.spectrum_of: int16_spectrum.spectrum_of,
        spectrum.band_of: int16_spectrum.band_of,
        lags.put_feature: int16_lags.put_feature,
        lags.change_since: int16_lags.change_since,
        lags.mean_of_steps: int16_lags.mean_of_steps,
        lags.put_phase: int16_lags.put_phase,
        lags.fit_features: int16_lags.fit_features,
        calls.come_true: int16_lags.come_true,
        calls.valid_signal: calls.valid_steps,
    },
)


def _alone(stage: Stage) -> Program:
    """Return the program that computes features without a model."""
    return Program(
        name="signal",
        structs=(stage.memory, stage.work),
        persistent=(stage.memory,),
        configs=(StepConfig, stage.config),
        statuses=(SignalStatus,),
        entries=(
            Entry("signal", calls.signal, "reading"),
            Entry("measures", calls.measures, "reading"),
            Entry("remade", calls.remade, "reading"),
            Entry("push", calls.receive, "update"),
            Entry("gap", calls.gap, "switch"),
        ),
        valid=calls.valid_signal,
        stand_ins={SignalModel: stage.model, **stage.stand_ins},
    )


FEATURES, INT16_FEATURES = _alone(REALS), _alone(INT16)
"""Programs that compute features without a model."""


@functools.cache
def with_signal(inner: Program, forecasts: bool) -> Program:
    """Build the program that puts a signal stage around another program.  The result is cached.

    forecasts: whether the label is a measure of a later step; if not, the label comes from elsewhere.
    """
    stage = INT16 if inner.is_int16 else REALS
    learn = inner.entry(inner.learner) if inner.learns else None
    unlabelled = inner.label is None
    around: Any = type("SignalAroundModel", (stage.model,), {"parts": (*inner.structs, *inner.configs)})
    stand_ins: dict[Any, Any] = {
        **stage.stand_ins,
        SignalModel: around,
        stage.model: around,
    }
    if inner.valid is not None:
        stand_ins[calls.inner_valid] = inner.valid
    if inner.missed is not None:
        stand_ins[calls.inner_miss] = inner.missed
    if learn is not None:
        stand_ins[calls.inner_learn_alone if unlabelled else calls.inner_learn] = learn
        stand_ins[calls.Truth] = inner.label
    promise = next((entry.kernel for entry in inner.entries if entry.kind == "promise"), None)
    if promise is not None:
        stand_ins[calls.inner_expect] = promise
    entries = list[Entry]()
    if learn is None:
        entries.append(Entry("push", calls.receive, "update"))
    elif unlabelled:
        entries.append(Entry("push", calls.push_alone, "update"))
    elif forecasts:
        entries.append(Entry("push", calls.push_forecast, "update"))
    else:
        entries += [
            Entry("push", calls.receive, "gather"),
            Entry("label", calls.label, "label"),
            Entry("push_labelled", calls.push_labelled, "update"),
        ]
    for entry in inner.entries:
        if entry.kind == "question":
            asked = stand_ins | {calls.inner_ask: entry.kernel, calls.Answer: inner.questions[entry.name]}
            name = asked_of_newest(entry.name, forecasts)
            kernel = substitute(calls.ask_newest, asked, alias=name)
            entries.append(replace(entry, name=name, kernel=kernel, kind="reading", of=entry.name))
        elif entry.kind not in ("update", "visit", "promise"):
            entries.append(entry)
    entries += [Entry("signal", calls.signal, "reading"), Entry("gap", calls.gap, "switch")]
    # the answer to the inner program's main question comes first, because the first entry of the kind "reading" becomes
    # the main question of the new program
    entries.sort(key=lambda entry: entry.of != inner.asks)
    return Program(
        name=inner.name,
        structs=(stage.memory, *inner.persistent, stage.work, *inner.structs[len(inner.persistent) :]),
        persistent=(stage.memory, *inner.persistent),
        configs=(StepConfig, stage.config, *inner.configs),
        statuses=(*inner.statuses, SignalStatus),
        entries=tuple(entries),
        valid=calls.valid_around if inner.valid is not None else calls.valid_signal,
        alarms=inner.alarms,
        between=inner.between,
        budget=inner.budget,
        stand_ins=stand_ins,
    )


def asked_of_newest(question: str, forecasts: bool) -> str:
    """The name of the read-only call that answers a question for the newest features, instead of for a given x.

    If the model forecasts, the answer refers to a later time, as in ``forecast`` and ``forecast_variance``.  Otherwise it
    refers to the newest features, as in ``classify_newest``, ``novelty_newest`` and ``predict_newest``.
    """
    if not forecasts:
        return f"{question}_newest"
    return "forecast" if question == "predict" else f"forecast_{question}"
