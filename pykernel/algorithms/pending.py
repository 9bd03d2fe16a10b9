"""Late labels: such a label judges the answer that was given, not the answer that the model would give when the label comes.

The model keeps learning while the label is on its way; when the label comes, the model is better than when it gave
the answer.  So a firmware whose labels come late calls ``expect`` when it asks for an answer.  The model keeps the
answers of its parts, and judges them by the label of the same sample.  Only one answer waits at a time; meanwhile,
the labels of other samples judge nothing.

An expected label is recognised by its sample's mark, and by the number of calls since the answer, which must be at
least half of the last delay.  Otherwise, if inputs repeat, such as the hour of the day, the label of another sample
could be mistaken for the expected one.  The first expected label judges nothing and only measures the delay.  If a
label does not come, its answer is dropped.  Some time after the firmware has stopped calling ``expect``, labels judge
as if ``expect`` had never been called.
"""

from pykernel.dialect import OUTPUTS, Bool, Constant, Index, Model, Real, Struct, between, floor_shift, kernel, real

FIRST_WAIT = 256
"""Number of calls for which the first answer waits for its label.  If the label does not come, the next answer waits
twice as long.  Once a delay is known, answers wait for three times this delay, plus LEAST_WAIT."""
LEAST_WAIT = 16
MOST_WAIT = 2**24
"""Once the waiting time has reached this many calls, it is no longer extended when a label does not come."""
LONGEST = 3 * MOST_WAIT + LEAST_WAIT
ANSWER_MOST = Constant(float32=3e38, float64=1e308)
"""Largest magnitude of an answer."""
NOW, GIVEN, NOTHING, FIRST = 0, 1, 2, 3
"""What a label judges.  NOW: the answer at the time of learning.  GIVEN: the answer that waited for this label.
NOTHING: no answer.  FIRST: no answer, because this is the first expected label."""


class Pending(Struct):
    """An answer whose label has not come yet."""

    # number of calls for which an answer waits for its label; 0: labels come at once
    longest_wait: between(Index, 0, LONGEST)
    waited: between(Index, 0, LONGEST)  # calls since the answer was given; 0: no answer waits
    last_wait: between(Index, 0, LONGEST)  # number of calls for which the last answer waited
    mark: between(Real, -ANSWER_MOST, ANSWER_MOST)  # the mark of the answer's sample
    given_value: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # what the rule answered
    given_lead: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # what the stages added to the rule's answer
    given_expert: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # what the linear expert answered


class PendingWork(Struct):
    """Intermediate results, which every call recomputes; they may be zero at first."""

    verdict: between(Index, NOW, FIRST)  # what the label judges


class Awaiting(Model):
    """A model that may wait for labels."""

    parts = Pending, PendingWork


@kernel
def late(m: Awaiting) -> Bool:
    """Whether labels come late."""
    return m.longest_wait[0] > 0


@kernel
def wait_on(m: Awaiting) -> None:
    """Count one more call while an answer waits.  After longest_wait calls, drop the answer, let the next answer wait
    longer, and reduce the last delay."""
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
    """Which answer the label of a sample with this mark judges."""
    if not late(m):
        return NOW
    if m.waited[0] <= 0 or m.waited[0] < floor_shift(m.last_wait[0], 1) or mark != m.mark[0]:
        return NOTHING
    return GIVEN if m.last_wait[0] > 0 else FIRST


@kernel
def settle_pending(m: Awaiting) -> None:
    """Release the waiting answer that the learned label has judged."""
    if m.verdict[0] == GIVEN or m.verdict[0] == FIRST:
        m.last_wait[0] = m.waited[0]
        m.longest_wait[0] = LEAST_WAIT + 3 * (m.waited[0] if m.waited[0] < MOST_WAIT else MOST_WAIT)
        m.waited[0] = 0
    elif m.waited[0] > 0:
        wait_on(m)
    elif m.longest_wait[0] > 0:
        m.longest_wait[0] -= 1


@kernel
def forget_pending(m: Awaiting) -> None:
    """Reset, as if no label had ever been expected."""
    m.longest_wait[0] = 0
    m.waited[0] = 0
    m.last_wait[0] = 0
    m.mark[0] = real(0)
    for o in range(len(m.given_value)):
        m.given_value[o] = real(0)
        m.given_lead[o] = real(0)
        m.given_expert[o] = real(0)
