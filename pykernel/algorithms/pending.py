"""Late labels: a label that comes late is compared with the prediction that was made for its sample, not with the
prediction that the model would make when the label comes.

The model keeps learning until the label comes, so its prediction at that time would be better than the prediction that
was made.  Firmware whose labels come late therefore calls ``expect`` when it predicts.  This call stores the
predictions of the model's parts, and the label of the same sample is later compared with these predictions.  Only one
prediction waits at a time; meanwhile, the labels of other samples are not compared with any prediction.

An expected label is recognised by its sample's mark (a weighted sum of the inputs), and by the number of calls of
``expect`` and ``update`` since the prediction, which must be at least half of the last delay.  Without the second
condition, the label of another sample with the same inputs (such as the same hour of the day) could be mistaken for
the expected label.  The first expected label is used only to measure the delay.  If a label does not come, its
prediction is dropped.  Some time after the firmware has stopped calling ``expect``, each label is again compared with
the prediction at the time of learning.
"""

from pykernel.dialect import OUTPUTS, Bool, Constant, Index, Model, Real, Struct, between, floor_shift, kernel

FIRST_WAIT = 256
"""Number of calls for which the first prediction waits for its label.  If the label does not come, the next prediction
waits twice as long.  Once a delay is known, predictions wait for three times this delay, plus LEAST_WAIT."""
LEAST_WAIT = 16
MOST_WAIT = 2**24
"""Once the waiting time has reached this many calls, it is no longer extended when a label does not come."""
LONGEST = 3 * MOST_WAIT + LEAST_WAIT
ANSWER_MOST = Constant(float32=3e38, float64=1e308)
"""Largest magnitude of a prediction."""
NOW, GIVEN, NOTHING, FIRST = 0, 1, 2, 3
"""The prediction with which a label is compared.  NOW: the prediction at the time of learning.  GIVEN: the prediction
that waited for this label.  NOTHING: no prediction.  FIRST: no prediction, because this is the first expected label."""


class Pending(Struct):
    """A prediction whose label has not come yet."""

    # number of calls for which a prediction waits for its label; 0: labels come at once
    longest_wait: between(Index, 0, LONGEST)
    waited: between(Index, 0, LONGEST)  # calls since the stored prediction; 0: no prediction waits
    last_wait: between(Index, 0, LONGEST)  # number of calls for which the last prediction waited
    mark: between(Real, -ANSWER_MOST, ANSWER_MOST)  # the mark of the sample whose prediction is stored
    given_value: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # the rule's own predictions
    given_lead: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # what the stages added to the rule's own predictions
    given_expert: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # the linear expert's predictions


class PendingWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    verdict: between(Index, NOW, FIRST)  # the prediction with which the label is compared


class Awaiting(Model):
    """A model that may wait for labels."""

    parts = Pending, PendingWork


@kernel
def late(m: Awaiting) -> Bool:
    """Whether labels come late."""
    return m.longest_wait[0] > 0


@kernel
def wait_on(m: Awaiting) -> None:
    """Count one more call while a prediction waits.  After longest_wait calls, drop the prediction, let the next
    prediction wait longer, and reduce the last delay."""
    if m.waited[0] < m.longest_wait[0]:
        m.waited[0] += 1
    else:
        m.waited[0] = 0
        last = m.last_wait[0] - floor_shift(m.last_wait[0], 4)
        m.last_wait[0] = last if last > 0 else 0
        if m.longest_wait[0] > 0 and m.longest_wait[0] < MOST_WAIT:
            m.longest_wait[0] += floor_shift(m.longest_wait[0], 3 if m.last_wait[0] > 0 else 0)


@kernel
def judged_by(m: Awaiting, mark: Real) -> Index:
    """The prediction with which the label of a sample with this mark is compared: NOW, GIVEN, NOTHING or FIRST."""
    if not late(m):
        return NOW
    if m.waited[0] <= 0 or m.waited[0] < floor_shift(m.last_wait[0], 1) or mark != m.mark[0]:
        return NOTHING
    return GIVEN if m.last_wait[0] > 0 else FIRST


@kernel
def settle_pending(m: Awaiting) -> None:
    """If the learned label belongs to the waiting prediction, release the prediction and store how long it waited.
    Otherwise count one more call or, if no prediction waits, reduce longest_wait by 1."""
    if m.verdict[0] == GIVEN or m.verdict[0] == FIRST:
        m.last_wait[0] = m.waited[0]
        m.longest_wait[0] = LEAST_WAIT + 3 * (m.waited[0] if m.waited[0] < MOST_WAIT else MOST_WAIT)
        m.waited[0] = 0
    elif m.waited[0] > 0:
        wait_on(m)
    elif m.longest_wait[0] > 0:
        m.longest_wait[0] -= 1
