"""What a program with a signal stage is called with: raw samples go in, and the model sees features.

What learns depends on where labels are from: of a forecast the label is a measure some steps later, and the stage keeps the
rows of which the features are made again when it comes; else labels come from elsewhere, or there are none.
"""

from __future__ import annotations

from typing import Any

from pykernel.algorithms.selftest import strained
from pykernel.algorithms.signal.lags import intact_signal, keep, make_features_of, on_time, skip, tick
from pykernel.algorithms.signal.state import (
    CHANNELS,
    MEASURES,
    Signal,
    SignalConfig,
    SignalStatus,
    SignalWork,
    acceptable_sample,
)
from pykernel.algorithms.signal.window import take_raw, valid_blocks
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Index,
    Model,
    Real,
    absolute,
    around,
    kernel,
    placeholder,
    real,
)

Answer: Any = Real[OUTPUTS]
"""In a template: what a question of the model writes."""
Truth: Any = Real
"""In a template: a label."""


@placeholder
def inner_ask(x: Real[DIM], y: Answer) -> Index:
    """A question of the model inside."""


@placeholder
def inner_learn(x: Real[DIM], y: Real) -> Index:
    """The update of the model inside."""


@placeholder
def inner_learn_alone(x: Real[DIM]) -> Index:
    """The update of the model inside, where there are no labels."""


@placeholder
def inner_rehearse(x: Real[DIM]) -> None:
    """The rehearsal of the model inside."""


@placeholder
def inner_valid() -> Bool:
    """Whether learning could have led to the model inside."""


@kernel
def step(g: Signal, w: SignalWork, k: SignalConfig, x: Real[CHANNELS]) -> Bool:
    """Take a raw sample; whether there are new features."""
    ended = take_raw(g, w, k, x)
    tick(g, k)
    if ended == 0:
        return False
    keep(g, w)
    if g.steps[0] <= k.oldest:
        return False
    make_features_of(g, k, 0, 0, g.features)
    g.ready[0] = 1
    if k.awaits:
        g.waiting[0] = 1
    return True


@kernel
def concluded(status: Index) -> Index:
    """The model's refusal, where the raw sample was taken."""
    if status >= 0 or status == SignalStatus.REFUSED_STATE:
        return status
    return SignalStatus.PASSED_OVER


@kernel
def push(g: Signal, w: SignalWork, k: SignalConfig, x: Real[CHANNELS]) -> Index:
    """Take the raw sample x.  O(channels); where a step ends, O(features) and O(measures blocks) more.

    Returns READY if there are new features, GATHERING if not.  Below 0: why the sample was refused; nothing is changed.
    """
    if not intact_signal(g, k):
        return SignalStatus.REFUSED_STATE
    if not acceptable_sample(k, x):
        return SignalStatus.REFUSED_SAMPLE
    fresh = step(g, w, k, x)
    return SignalStatus.READY if fresh else SignalStatus.GATHERING


@kernel
def come_true(g: Signal, k: SignalConfig) -> Real:
    """What should have been forecast for the newest step."""
    return g.kept[g.latest[0], k.label_measure]


@around
def push_alone(g: Signal, w: SignalWork, k: SignalConfig, model: Model, x: Real[CHANNELS]) -> Index:
    """Take the raw sample x; where a step ends, the model learns the new features.

    Returns GATHERING if no step ends, else what the model says; PASSED_OVER if it refuses the features.  Below 0: why the
    sample was refused; nothing is changed.
    """
    if not intact_signal(g, k):
        return SignalStatus.REFUSED_STATE
    if not acceptable_sample(k, x):
        return SignalStatus.REFUSED_SAMPLE
    fresh = step(g, w, k, x)
    if not fresh:
        return SignalStatus.GATHERING
    status = inner_learn_alone(model, g.features)
    return concluded(status)


@around
def push_forecast(g: Signal, w: SignalWork, k: SignalConfig, model: Model, x: Real[CHANNELS]) -> Index:
    """Take the raw sample x; where a step ends, the model learns what it should have forecast for it.

    Returns GATHERING if there are no features; READY if there are some, but were none when the forecast for this step was due;
    else what the model says, PASSED_OVER if it refuses the sample.  Below 0: why the raw sample was refused; nothing is
    changed.
    """
    if not intact_signal(g, k):
        return SignalStatus.REFUSED_STATE
    if not acceptable_sample(k, x):
        return SignalStatus.REFUSED_SAMPLE
    fresh = step(g, w, k, x)
    if not fresh:
        return SignalStatus.GATHERING
    if g.steps[0] <= k.oldest + k.ahead:
        return SignalStatus.READY
    make_features_of(g, k, k.ahead, 1, w.earlier)
    truth = come_true(g, k)
    status = inner_learn(model, w.earlier, truth)
    return concluded(status)


@around
def label(g: Signal, model: Model, y: Truth) -> Index:
    """Learn that y is the label of the newest features.

    Returns what the model says, or NO_WINDOW if there are none or if they have a label already.
    """
    if g.waiting[0] == 0:
        return SignalStatus.NO_WINDOW
    status = inner_learn(model, g.features, y)
    if status >= 0:
        g.waiting[0] = 0
    return status


@around
def push_labelled(g: Signal, w: SignalWork, k: SignalConfig, model: Model, x: Real[CHANNELS], y: Truth) -> Index:
    """Take the raw sample x; where a step ends, learn that y is the label of the new features.

    Returns GATHERING if no step ends, else what the model says; PASSED_OVER if it refuses the label or the sample: label may
    be called again.  Below 0: why the raw sample was refused; nothing is changed.
    """
    if not intact_signal(g, k):
        return SignalStatus.REFUSED_STATE
    if not acceptable_sample(k, x):
        return SignalStatus.REFUSED_SAMPLE
    fresh = step(g, w, k, x)
    if not fresh:
        return SignalStatus.GATHERING
    status = inner_learn(model, g.features, y)
    if status >= 0:
        g.waiting[0] = 0
    return concluded(status)


@around
def forecast(g: Signal, model: Model, y: Answer) -> Index:
    """What the model says of the newest features.  GATHERING, with y unchanged, if there are none yet."""
    if g.ready[0] == 0:
        return SignalStatus.GATHERING
    return inner_ask(model, g.features, y)


@kernel
def signal(g: Signal, y: Real[DIM]) -> Index:
    """Write the newest features to y.  GATHERING, with y unchanged, if there are none yet.  O(D)."""
    if g.ready[0] == 0:
        return SignalStatus.GATHERING
    for f in range(len(y)):
        y[f] = g.features[f]
    return 0


@kernel
def measures(g: Signal, k: SignalConfig, y: Real[MEASURES]) -> Index:
    """Write what was measured of the newest step to y.  GATHERING, with y unchanged, if there is none yet."""
    if not intact_signal(g, k):
        return SignalStatus.REFUSED_STATE
    if g.steps[0] == 0:
        return SignalStatus.GATHERING
    for i in range(len(y)):
        y[i] = g.kept[g.latest[0], i]
    return 0


@kernel
def gap(g: Signal, k: SignalConfig, missing: Index) -> Index:
    """So many raw samples are missing: windows and lags begin anew, and phases go on.  O(periods).

    Periods begin with the first raw sample after init: before it, gap(n) begins n samples later in each period.  What the
    model has learned stays.  Returns 0, or REFUSED_GAP if missing is negative; then nothing is changed.
    """
    if not intact_signal(g, k):
        return SignalStatus.REFUSED_STATE
    if missing < 0:
        return SignalStatus.REFUSED_GAP
    if missing > 0:
        g.gathered[0] = 0
        g.blocks[0] = 0
        g.begun[0] = 0
        g.steps[0] = 0
        g.ready[0] = 0
        if k.awaits:
            g.waiting[0] = 0
    skip(g, k, missing)
    return 0


@kernel
def valid_signal(g: Signal, k: SignalConfig) -> Bool:
    """Whether raw samples within their limit can have led here.  O(features + measures rows)."""
    for f in range(len(g.features)):
        if not (absolute(g.features[f]) <= k.made_limit[f]):
            return False
    for r in range(len(g.kept)):
        for i in range(len(g.kept[0])):
            if not (absolute(g.kept[r, i]) <= k.measure_limit[i]):
                return False
    if k.has_spectrum:
        for t in range(len(g.raw_kept)):
            for j in range(len(g.raw_kept[0])):
                if not (absolute(g.raw_kept[t, j]) <= k.sample_max_abs):
                    return False
    if k.windows:
        if not valid_blocks(g, k):
            return False
    if not on_time(g, k):
        return False
    if g.ready[0] == 1 and g.steps[0] <= k.oldest:
        return False
    if k.awaits:
        if g.waiting[0] == 1 and g.ready[0] == 0:
            return False
    return True


@around
def valid_around(g: Signal, k: SignalConfig, model: Model) -> Bool:
    """Whether learning could have led to this state."""
    if not valid_signal(g, k):
        return False
    return inner_valid(model)


REHEARSED = 64
"""Raw samples of the self-test."""


@kernel
def rehearse_signal(g: Signal, w: SignalWork, k: SignalConfig) -> None:
    """Take made-up raw samples."""
    seed = 1
    for t in range(REHEARSED):
        for j in range(len(w.raw)):
            seed = (seed * 75 + 74) % 65537
            w.raw[j] = k.rehearsal_sample * strained(real(seed) / real(65536) - real(0.5))
        fresh = step(g, w, k, w.raw)
        if fresh:
            w.raw[0] = g.features[0]


@around
def rehearse_around(g: Signal, w: SignalWork, k: SignalConfig, model: Model, x: Real[DIM]) -> None:
    """What the model learns of made-up samples, then what the signal stage makes of made-up raw samples."""
    inner_rehearse(model, x)
    rehearse_signal(g, w, k)


@kernel
def rehearse_alone(g: Signal, w: SignalWork, k: SignalConfig, x: Real[DIM]) -> None:
    """Take made-up raw samples."""
    rehearse_signal(g, w, k)
    x[0] = g.features[0]
