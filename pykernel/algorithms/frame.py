"""The frame around every rule that learns sample by sample: everything that the rules have in common.

A rule provides its memory and the kernels of ``hooks.py``.  The frame checks memory, input and label; supports labels
that are single numbers, several numbers or classes; can switch learning off; applies the stages of inputs and labels;
and checks loaded states.  The public functions make these calls, in this order:

    update   refusal, acceptable_label -> take: warm_up, see -> follow: remain, learn (hear), judge_parts, conclude -> settle_inputs
    predict  refusal -> see -> answer -> combine
    expect   refusal -> keep_whole: as predict -> keep_answer: see -> answer

The frame is written for floating-point numbers.  In int16 programs, the same kernels have different types and stages
(``pykernel.algorithms.int16.frame``).
"""

from __future__ import annotations

from pykernel.algorithms.doubt import Doubts, DoubtStatus, despairs, ended
from pykernel.algorithms.elementary import bounded, clipped, each_class, winner
from pykernel.algorithms.expert import (
    consult,
    instruct,
    judge_both,
    mix,
    valid_expert,
)
from pykernel.algorithms.hooks import (
    Framed,
    Status,
    TakenStatus,
    answer,
    blank,
    chances,
    clear,
    intact,
    keeps,
    learn,
    miss_row,
    remembered,
    stand_by,
)
from pykernel.algorithms.inputs import acceptable
from pykernel.algorithms.interval import (
    enclose,
    find_asked,
    free_slot,
    judge_interval,
    recall,
    valid_interval,
    wait_asked,
)
from pykernel.algorithms.pending import (
    FIRST,
    FIRST_WAIT,
    GIVEN,
    NOW,
    judged_by,
    late,
    settle_pending,
    wait_on,
)
from pykernel.algorithms.poll import judge_classes, poll
from pykernel.algorithms.stages import (
    LOUD_PARTS,
    choose_otherwise,
    clamp,
    combine,
    conclude,
    gather_evidence,
    lead,
    marked,
    remain,
    see,
    settle_inputs,
    valid_stages,
    warm_up,
    warms_up,
)
from pykernel.dialect import (
    CLASSES,
    DIM,
    OUTPUTS,
    Bool,
    Constant,
    Index,
    Real,
    absolute,
    kernel,
    real,
)

LEAST_LIMIT = Constant(2.0**-20)
"""Labels are clipped to a largest distance from the prediction.  This distance is at least LEAST_LIMIT times the prediction: a
distance below the prediction's rounding error would never grow again."""


WILD = Constant(1024.0)
"""strays() multiplies the label's limit by this factor to get the largest error that can result from learning."""

# --------------------------------------------------------------------------------------------------------- questions


@kernel
def refusal(m: Framed, x: Real[DIM]) -> Index:
    """Return DONE, or the negative status that says why the input is refused."""
    if not intact(m):
        return Status.REFUSED_STATE
    accepted = acceptable(m, x)
    if not accepted:
        return Status.REFUSED_INPUT
    return Status.DONE


@kernel
def respond(m: Framed, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Write the prediction f(x) to y: scale the inputs, compute the rule's own prediction, and apply the stages."""
    if m.scales:
        see(m, x)
        answer(m, m.x, y)
        combine(m, m.x, y)
    else:
        answer(m, x, y)
        combine(m, x, y)
    if m.mixes:
        if m.votes:
            poll(m, x, y)
        else:
            mix(m, x, y)
    if m.clamps:
        clamp(m, y)


@kernel
def predict(m: Framed, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Predict: write f(x) to y.  O(answer).

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    respond(m, x, y)
    return Status.DONE


@kernel
def interval(m: Framed, x: Real[DIM], bounds: Real[OUTPUTS * 2]) -> Index:
    """Write to ``bounds`` the interval that should contain the label of x: first the lower ends of all outputs, then the upper ends.

    Until the errors of 20 labels are known, the interval covers every possible label.  O(answer).
    Returns DONE, or REFUSED_INPUT with ``bounds`` unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    respond(m, x, m.answered)
    enclose(m, m.answered, bounds)
    return Status.DONE


@kernel
def most_likely(m: Framed, x: Real[DIM]) -> Index:
    """The most likely class of x, or a negative status if the input was refused."""
    refused = predict(m, x, m.y)
    if refused < 0:
        return refused
    return winner(m.y)


@kernel
def classify(m: Framed, x: Real[DIM], label: Index[1]) -> Index:
    """Write to ``label`` the number of the most likely class of x, counted from 0.  O(answer).

    Returns DONE, or REFUSED_INPUT with ``label`` unchanged.
    """
    best = most_likely(m, x)
    if best < 0:
        return best
    label[0] = best
    return Status.DONE


@kernel
def whole_chances(m: Framed, x: Real[DIM], p: Real[CLASSES]) -> None:
    """Write the probability of each class at x to p; if there is a linear expert, this is the joint probability of model and expert."""
    if m.votes:
        respond(m, x, m.y)
        each_class(m.polled, p)
    else:
        chances(m, x, p)


@kernel
def probability(m: Framed, x: Real[DIM], p: Real[CLASSES]) -> Index:
    """Write the probability of each class at x to p.  O(answer).

    Returns DONE, or REFUSED_INPUT with p unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    whole_chances(m, x, p)
    return Status.DONE


# ---------------------------------------------------------------------------------------------------------- learning


@kernel
def miss(m: Framed, y: Real, value: Real) -> Real:
    """The error y - f(x), where value = f(x).  [separates] For a class, the error is 0 if y f(x) >= 1."""
    if m.separates:
        if y * value >= real(1):
            return real(0)
    return y - value


@kernel
def hear(m: Framed) -> None:
    """Clip the label, then turn m.error from f(x) into the error y - f(x)."""
    for o in range(len(m.y)):
        value = m.error[o]
        m.value[o] = value
        if m.limits:
            m.most[o] += LEAST_LIMIT * absolute(value)
            m.y[o] = clipped(m.y[o], value - m.most[o], value + m.most[o])
        m.error[o] = miss(m, m.y[o], remembered(m, value))


@kernel
def strays(m: Framed, scale: Real) -> Bool:
    """Whether an error that hear() computed is too large to result from learning.  O(1) for each output.

    scale: with least squares, the square root of 1 + phi'P phi, where phi contains the sample's features, and P is the
    covariance of the weights.

    With least squares, sum e^2 / (1 + phi'P phi) over all samples is at most sum y^2, so no error in the first WILD^2
    samples can exceed WILD times the label's limit times scale.  [separates] For classes, samples without an error are
    skipped, so errors may be larger.
    """
    most = WILD * m.label_limit * scale
    if m.separates:
        most = WILD * most
    for o in range(len(m.y)):
        if not (absolute(m.error[o]) <= most):
            return True
    return False


@kernel
def judge_parts(m: Framed, x: Real[DIM]) -> None:
    """Update the error statistics of interval, model and expert with the label.  If the label was announced, it is
    compared with the predictions that were stored for it."""
    if m.votes:
        if m.verdict[0] == GIVEN:
            judge_classes(m, m.label, m.given_value, m.given_expert)
        elif m.verdict[0] == NOW:
            judge_classes(m, m.label, m.value, m.expert_answer)
    if m.covers:
        judge_interval(m, x, m.label, m.value)
    if m.mixes and not m.votes and m.verdict[0] <= GIVEN:
        judge_both(m, x, m.label, m.value)


@kernel
def follow(m: Framed, x: Real[DIM]) -> Index:
    """Learn a sample, and update the stages that its label passes through.  x: the input that is passed to the rule."""
    for o in range(len(m.y)):
        m.label[o] = m.y[o]
    if m.follows:
        remain(m, x, m.label, m.y)
    status = learn(m, x)
    if status >= 0 and not ended(m, status):
        if m.doubts >= Doubts.DISTANCES or m.covers:
            recall(m, x, m.value)
        if m.expects:
            judge_parts(m, x)
        if m.follows:
            conclude(m, x, m.label, m.y, m.value)
        if m.expects:
            if m.covers:
                settle_asked(m)
            settle_pending(m)
    return status


@kernel
def staged_error(m: Framed, x: Real[DIM], y: Real[OUTPUTS]) -> Real:
    """The model's squared errors, summed over the outputs; errors are in units of 2^-40 of the label's limit.
    x: the input that is passed to the rule.  y: working memory."""
    answer(m, x, y)
    combine(m, x, y)
    total = real(0)
    for o in range(len(y)):
        size = bounded((m.y[o] - y[o]) * m.label_unit, LOUD_PARTS)
        total += size * size
    return total


@kernel
def try_otherwise(m: Framed, x: Real[DIM]) -> Real:
    """By how much the squared error would decrease if outlying inputs were treated the other way: clipped instead of
    replaced by held values, or replaced instead of clipped.  The result is (a - b) / (a + b), where a is the actual
    squared error, and b is the squared error with the other treatment.  O(answer)."""
    any_outlies = choose_otherwise(m, x)
    if any_outlies:
        own = staged_error(m, m.x, m.value)
        other = staged_error(m, m.other, m.value)
        if own + other > real(0):
            return (own - other) / (own + other)
    return real(0)


@kernel
def answer_before(m: Framed, x: Real[DIM]) -> None:
    """If the rule learns from a prediction other than the returned one, store the returned prediction before the sample
    is learned.  O(answer)."""
    if m.hears_other:
        respond(m, x, m.answered)


@kernel
def begin_anew(m: Framed) -> None:
    """Forget everything except what the doubt is based on."""
    if m.doubts >= Doubts.DISTANCES:
        usual = m.usual_size[0]
        needed = m.needed[0]
        searching = m.searching[0]
        clear(m)
        m.usual_size[0] = usual
        m.needed[0] = needed
        m.searching[0] = searching
    else:
        clear(m)


@kernel
def take(m: Framed, x: Real[DIM]) -> Index:
    """Learn the sample x, whose labels are in m.y; both have been checked."""
    if m.frozen[0] != 0:
        return stand_by(m, x)
    if m.expects:
        mark = marked(m, x)
        m.verdict[0] = judged_by(m, mark)
        if m.covers:
            find_asked(m, mark)
    warming = warm_up(m, x, m.y)
    if warming:
        if m.expects:
            if m.verdict[0] == FIRST:
                settle_pending(m)
        return TakenStatus.OBSERVED
    status = 0
    if m.covers:
        answer_before(m, x)
    if m.mixes:
        consult(m, x, False)
    if m.scales:
        see(m, x)
        if m.holds:
            gain = try_otherwise(m, x)
            status = follow(m, m.x)
            # a refused sample must not change the evidence
            if status >= 0:
                gather_evidence(m, x, gain)
        else:
            status = follow(m, m.x)
    else:
        status = follow(m, x)
    if status >= 0 and not ended(m, status):
        if m.mixes:
            instruct(m, x, m.label)
        settle_inputs(m, x)
        if m.doubts >= Doubts.DISTANCES:
            hopeless = despairs(m)
            if hopeless:
                status = DoubtStatus.RESTARTED
    if ended(m, status):
        begin_anew(m)
    return status


@kernel
def acceptable_label(m: Framed, y: Real) -> Bool:
    """Whether a label is a number within its limit."""
    # not "if (.. > limit)": NaN must fail
    return absolute(y) <= m.label_limit


@kernel
def acceptable_class(m: Framed, label: Index) -> Bool:
    """Whether there is a class with this number."""
    return label >= 0 and label < m.classes


@kernel
def update(m: Framed, x: Real[DIM], y: Real) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(learn).
    Returns a status: 0 or more says what happened to the sample; a negative status says why the sample was refused, and the
    model is then unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    if not acceptable_label(m, y):
        return Status.REFUSED_LABEL
    m.y[0] = y
    return take(m, x)


@kernel
def update_many(m: Framed, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(learn).
    Returns a status: 0 or more says what happened to the sample; a negative status says why the sample was refused, and the
    model is then unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    for o in range(len(y)):
        if not acceptable_label(m, y[o]):
            return Status.REFUSED_LABEL
        m.y[o] = y[o]
    return take(m, x)


@kernel
def taught(m: Framed, own: Bool) -> Real:
    """The target value of a class's function.  own: whether the input belongs to this class."""
    return real(1) if own else real(-1)


@kernel
def take_class(m: Framed, x: Real[DIM], label: Index) -> Index:
    """Learn the sample x of class ``label``; both have been checked."""
    for o in range(len(m.y)):
        m.y[o] = taught(m, label == (1 if m.single else o))
    return take(m, x)


@kernel
def update_class(m: Framed, x: Real[DIM], label: Index) -> Index:
    """Learn one sample: the input x belongs to the class whose number, counted from 0, is ``label``.

    The prediction f(x) has one value for each class; the largest value belongs to the predicted class.
    With two classes, f(x) is a single value; if it is positive, the second class is predicted, otherwise the first.
    O(learn).
    Returns a status: 0 or more says what happened to the sample; a negative status says why the sample was refused, and the
    model is then unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    if not acceptable_class(m, label):
        return Status.REFUSED_LABEL
    return take_class(m, x, label)


@kernel
def begin_waiting(m: Framed, x: Real[DIM]) -> None:
    """Start waiting for the label of x.  O(D)."""
    m.mark[0] = marked(m, x)
    m.waited[0] = 1


@kernel
def keep_parts(m: Framed, x: Real[DIM], seen: Real[DIM]) -> None:
    """Store the predictions of the model's parts for x.  seen: x in the form that is passed to the rule.  O(answer)."""
    if m.mixes:
        consult(m, x, True)
    answer(m, seen, m.given_value)
    for o in range(len(m.y)):
        m.given_lead[o] = lead(m, seen, o)
        if m.mixes:
            m.given_expert[o] = m.expert_answer[o]


@kernel
def keep_answer(m: Framed, x: Real[DIM]) -> None:
    """Store the prediction for x until the label of x comes.  O(answer)."""
    begin_waiting(m, x)
    if m.mixes or m.gains:
        if m.scales:
            see(m, x)
            keep_parts(m, x, m.x)
        else:
            keep_parts(m, x, x)


@kernel
def keep_whole(m: Framed, x: Real[DIM]) -> None:
    """Store the complete prediction as well, because the label will be compared with the interval around this
    prediction.  O(answer)."""
    wait_asked(m)
    slot = free_slot(m)
    if slot >= 0:
        respond(m, x, m.answered)
        for o in range(len(m.y)):
            m.asked[slot, o] = m.answered[o]
        m.asked_mark[slot] = marked(m, x)
        m.asked_wait[slot] = 1
        m.unasked[0] = 0


@kernel
def settle_asked(m: Framed) -> None:
    """Release the stored complete prediction with which the learned label was compared."""
    wait_asked(m)
    if m.asked_slot[0] >= 0:
        m.asked_wait[m.asked_slot[0]] = 0


@kernel
def begun(m: Framed) -> Bool:
    """Whether predictions can be compared with labels: the rule must have begun to learn, and the units of the expert,
    if there is one, must be fixed."""
    if m.mixes:
        if m.compared[0] == 0:
            return False
    return not warms_up(m)


@kernel
def expect(m: Framed, x: Real[DIM]) -> Index:
    """Announce that the label of x will come later, and store the current prediction for x until then.  O(answer).

    Only one prediction waits for its label at a time: until this label comes, further calls store no prediction.  For
    intervals, however, up to 16 predictions wait at the same time.
    Returns DONE, or FROZEN if learning is switched off, or a status below 0 that says why the input was refused.
    If the result is not DONE, nothing has changed.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    if m.frozen[0] != 0:
        return TakenStatus.FROZEN
    if not m.expects:
        return Status.DONE
    if not late(m):
        m.longest_wait[0] = FIRST_WAIT
    has_begun = begun(m)
    # before the delay of labels is known, a repeated input could be mistaken for the input whose label was announced
    if m.covers and has_begun and m.last_wait[0] > 0:
        keep_whole(m, x)
    if m.waited[0] > 0:
        wait_on(m)
    elif has_begun:
        keep_answer(m, x)
    elif m.last_wait[0] == 0:
        begin_waiting(m, x)
    return Status.DONE


@kernel
def update_alone(m: Framed, x: Real[DIM]) -> Index:
    """Learn one sample x.

    O(learn).
    Returns a status: 0 or more says what happened to the sample; a negative status says why the sample was refused, and the
    model is then unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return miss_row(m, refused)
    return take(m, x)


# --------------------------------------------------------------------------------------------------- the whole model


@kernel
def freeze(m: Framed, frozen: Index) -> Index:
    """Switch learning off (1) or on (0).  While learning is off, update checks the sample but learns nothing."""
    m.frozen[0] = 0
    if frozen != 0:
        m.frozen[0] = 1
    return Status.DONE


@kernel
def restart(m: Framed) -> Index:
    """Forget everything that the model learned.  Returns DONE."""
    frozen = m.frozen[0]
    clear(m)
    m.frozen[0] = frozen
    return Status.DONE


@kernel
def valid(m: Framed) -> Bool:
    """Whether learning could have led to this state; the ranges of the fields are checked elsewhere."""
    if not keeps(m):
        return False
    if m.mixes:
        if not valid_expert(m):
            return False
    if m.covers:
        if not valid_interval(m):
            return False
    return valid_stages(m, blank(m))
