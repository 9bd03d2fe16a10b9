"""The calls of a program with a signal stage: they take raw samples, and the model gets features.

How the model learns depends on the source of labels.  The label of a forecast is a measure of a later step: the stage
keeps the measures of earlier steps, and computes the earlier features again when the label arrives.  Other models get their
labels from elsewhere, or have none.
"""

from pykernel.algorithms.signal.lags import intact_signal, keep, make_features_of, on_time, skip, tick
from pykernel.algorithms.signal.state import (
    CHANNELS,
    MEASURES,
    SignalModel,
    SignalStatus,
    acceptable_sample,
)
from pykernel.algorithms.signal.window import take_raw, valid_blocks
from pykernel.dialect import (
    DIM,
    Bool,
    Index,
    Real,
    Variable,
    absolute,
    kernel,
    placeholder,
)

Answer = Variable("Answer")
"""The type of the result that a read-only call of the inner model writes."""
Truth = Variable("Truth")
"""The type of the inner model's labels."""


@placeholder
def inner_ask(m: SignalModel, x: Real[DIM], y: Answer) -> Index:
    """A read-only call of the inner model, such as predict()."""


@placeholder
def inner_learn(m: SignalModel, x: Real[DIM], y: Truth) -> Index:
    """The update of the inner model."""


@placeholder
def inner_learn_alone(m: SignalModel, x: Real[DIM]) -> Index:
    """The update of an inner model without labels."""


@placeholder
def inner_expect(m: SignalModel, x: Real[DIM]) -> Index:
    """Announce to the inner model that the label of x will come later."""
    return 0


@placeholder
def inner_miss(m: SignalModel, refused: Index) -> Index:
    """The inner model's status for a refused raw sample."""
    return refused


@placeholder
def inner_valid(m: SignalModel) -> Bool:
    """Whether learning could have led to the inner model's state."""


@kernel
def step(m: SignalModel, x: Real[CHANNELS]) -> Bool:
    """Take a raw sample.  Returns True if the sample has led to new features."""
    ended = take_raw(m, x)
    tick(m)
    if ended == 0:
        return False
    keep(m)
    if m.steps[0] <= m.oldest:
        return False
    make_features_of(m, 0, 0, m.features)
    m.ready[0] = 1
    if m.awaits:
        m.waiting[0] = 1
    return True


@kernel
def concluded(status: Index) -> Index:
    """The model's status, or PASSED_OVER if the raw sample was taken, but the model refused the features or the
    label."""
    if status >= 0 or status == SignalStatus.REFUSED_STATE:
        return status
    return SignalStatus.PASSED_OVER


@kernel
def receive(m: SignalModel, x: Real[CHANNELS]) -> Index:
    """Take the raw sample x.  O(channels + periods).  At the end of a step, also O(features) and O(measures blocks),
    and O(W log W) for each spectrum of W samples.

    Returns READY if there are new features, otherwise GATHERING.  A negative status says why the sample was refused; a refused
    sample changes nothing.
    """
    if not intact_signal(m):
        return SignalStatus.REFUSED_STATE
    if not acceptable_sample(m, x):
        return SignalStatus.REFUSED_SAMPLE
    fresh = step(m, x)
    return SignalStatus.READY if fresh else SignalStatus.GATHERING


@kernel
def come_true(m: SignalModel) -> Real:
    """The newest step's value of the measure that is forecast."""
    return m.kept[m.latest[0], m.label_measure]


@kernel
def push_alone(m: SignalModel, x: Real[CHANNELS]) -> Index:
    """Take the raw sample x; if it leads to new features, the model learns them.

    Returns GATHERING if there are no new features, otherwise the model's status, or PASSED_OVER if the model refuses the features.
    A negative status means that the raw sample was refused and that nothing changed, with one exception: REFUSED_STATE can
    also come from the model, after the raw sample was taken.
    """
    received = receive(m, x)
    if received == SignalStatus.REFUSED_SAMPLE:
        return inner_miss(m, received)
    if received != SignalStatus.READY:
        return received
    status = inner_learn_alone(m, m.features)
    return concluded(status)


@kernel
def push_forecast(m: SignalModel, x: Real[CHANNELS]) -> Index:
    """Take the raw sample x.  If x ends a step, the model learns to forecast this step's value from earlier features.

    Returns GATHERING if there are no new features.  Returns READY if there are new features, but no earlier features from
    which this step could have been forecast.  Otherwise returns the model's status, or PASSED_OVER if the model refuses
    the earlier features or the label.  A negative status means that the raw sample was refused and that nothing changed,
    with one exception: REFUSED_STATE can also come from the model, after the raw sample was taken.
    """
    received = receive(m, x)
    if received != SignalStatus.READY:
        return received
    status = 0
    early = m.steps[0] <= m.oldest + m.ahead
    if not early:
        make_features_of(m, m.ahead, 1, m.earlier)
        truth = come_true(m)
        status = inner_learn(m, m.earlier, truth)
    if m.ahead > 1 and status != SignalStatus.REFUSED_STATE:
        # announce that the label of these features comes later: the model may store its forecast until then
        expected = inner_expect(m, m.features)
        if expected == SignalStatus.REFUSED_STATE:
            return expected
    return SignalStatus.READY if early else concluded(status)


@kernel
def label(m: SignalModel, y: Truth) -> Index:
    """Learn that y is the label of the newest features.

    Returns the model's status.  Returns NO_WINDOW, and changes nothing, if there are no features or if the newest features already
    have a label.
    """
    if m.waiting[0] == 0:
        return SignalStatus.NO_WINDOW
    status = inner_learn(m, m.features, y)
    if status >= 0:
        m.waiting[0] = 0
    return status


@kernel
def push_labelled(m: SignalModel, x: Real[CHANNELS], y: Truth) -> Index:
    """Take the raw sample x; if it leads to new features, learn that y is their label.

    Returns GATHERING if there are no new features, and PASSED_OVER if the model refuses the features or the label:
    label() may then be called for these features.  Otherwise returns the model's status.  A negative status means that
    the raw sample was refused and that nothing changed, with one exception: REFUSED_STATE can also come from the model,
    after the raw sample was taken.
    """
    received = receive(m, x)
    if received != SignalStatus.READY:
        return received
    status = label(m, y)
    return concluded(status)


@kernel
def ask_newest(m: SignalModel, y: Answer) -> Index:
    """Write the model's result for the newest features to y.  Returns NO_FEATURES, with y unchanged, if there are no features yet."""
    if m.ready[0] == 0:
        return SignalStatus.NO_FEATURES
    return inner_ask(m, m.features, y)


@kernel
def signal(m: SignalModel, y: Real[DIM]) -> Index:
    """Write the newest features to y.  Returns NO_FEATURES, with y unchanged, if there are no features yet.  O(D)."""
    if m.ready[0] == 0:
        return SignalStatus.NO_FEATURES
    for f in range(len(y)):
        y[f] = m.features[f]
    return 0


@kernel
def measures(m: SignalModel, y: Real[MEASURES]) -> Index:
    """Write the measures of the newest step to y.  Returns NO_FEATURES, with y unchanged, if there are no
    measures since init or since the last gap."""
    if not intact_signal(m):
        return SignalStatus.REFUSED_STATE
    if m.steps[0] == 0:
        return SignalStatus.NO_FEATURES
    for i in range(len(y)):
        y[i] = m.kept[m.latest[0], i]
    return 0


@kernel
def remade(m: SignalModel, y: Real[DIM]) -> Index:
    """Write the features of the newest step to y, computed anew from the measures that are kept.  Returns NO_FEATURES, with y
    unchanged, if too few steps are kept."""
    if m.steps[0] <= m.oldest:
        return SignalStatus.NO_FEATURES
    make_features_of(m, 0, 0, y)
    return 0


@kernel
def gap(m: SignalModel, missing: Index) -> Index:
    """Report that ``missing`` raw samples were lost: windows and lags are emptied, and phases advance by ``missing`` samples.
    O(periods).

    Periods begin with the first raw sample after init.  If they should begin n samples earlier, call gap(n) before that
    sample.  The model keeps what it has learned.  Returns 0.  If ``missing`` is negative, returns REFUSED_GAP and changes
    nothing.
    """
    if not intact_signal(m):
        return SignalStatus.REFUSED_STATE
    if missing < 0:
        return SignalStatus.REFUSED_GAP
    if missing > 0:
        m.gathered[0] = 0
        m.blocks[0] = 0
        m.begun[0] = 0
        m.steps[0] = 0
        m.ready[0] = 0
        m.waiting[0] = 0
    skip(m, missing)
    return 0


@kernel
def valid_steps(m: SignalModel) -> Bool:
    """Whether all clocks are within their periods, and the flags are consistent: features need enough steps, and only
    features that exist can wait for a label.  O(periods)."""
    if not on_time(m):
        return False
    if m.ready[0] == 1 and m.steps[0] <= m.oldest:
        return False
    return not (m.awaits and m.waiting[0] == 1 and m.ready[0] == 0)


@kernel
def valid_signal(m: SignalModel) -> Bool:
    """Whether raw samples within their limit could have led to this state.  O(features + measures rows + channels W +
    blocks (channels + pairs))."""
    for f in range(len(m.features)):
        if not (absolute(m.features[f]) <= m.made_limit[f]):
            return False
    for r in range(len(m.kept)):
        for i in range(len(m.kept[0])):
            if not (absolute(m.kept[r, i]) <= m.measure_limit[i]):
                return False
    if m.has_spectrum:
        for t in range(len(m.raw_kept)):
            for j in range(len(m.raw_kept[0])):
                if not (absolute(m.raw_kept[t, j]) <= m.sample_max_abs):
                    return False
    if m.windows and not valid_blocks(m):
        return False
    return valid_steps(m)


@kernel
def valid_around(m: SignalModel) -> Bool:
    """Whether raw samples and labels could have led to this state of the stage and of the model."""
    return valid_signal(m) and inner_valid(m)
