"""Labels that come late: what judges, judges the answer that was given, not that of the model which learns by then.

A model that follows its labels is better when it learns than it was when it was asked, some labels before.  So a firmware whose
labels come late says when it asks that one will come (``expect``).  The model keeps what its parts answer, and judges them by
that label.  One answer waits at a time; labels of other samples judge nothing meanwhile.

The label is known by its sample's mark, and by the calls in between, which are at least half of those of the last time: else an
input that comes back, such as the hour of the day, would be taken for it.  The first label that was expected judges nothing, and
tells how long labels take: of it, no earlier one can come back.  If a label does not come, its answer is given up.  If none is
waited for any more, labels judge as they do where none was ever expected.
"""

from pykernel.dialect import OUTPUTS, Bool, Constant, Index, Model, Real, Struct, between, floor_shift, kernel, real

FIRST_WAIT = 256
"""Calls that the first answer waits for its label; if it does not come, the next one waits twice as long.  Later ones wait three times as
long as the last one did."""
LEAST_WAIT = 16
MOST_WAIT = 2**24
"""From here on an answer waits no longer than the one before."""
LONGEST = 3 * MOST_WAIT + LEAST_WAIT
ANSWER_MOST = Constant(float32=3e38, float64=1e308)
"""Every answer is a number within."""
NOW, GIVEN, NOTHING, FIRST = 0, 1, 2, 3
"""A label judges what the model answers when it learns, the answer that waited for it, or nothing; nor does the first that was expected."""


class Pending(Struct):
    """An answer whose label has not come."""

    # 0: labels come at once; else calls that an answer waits for its label
    longest_wait: between(Index, 0, LONGEST)
    waited: between(Index, 0, LONGEST)  # calls since the answer was given; 0: none waits
    last_wait: between(Index, 0, LONGEST)  # how many calls the last one waited
    mark: between(Real, -ANSWER_MOST, ANSWER_MOST)  # of its sample
    given_value: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # what the rule answered
    given_lead: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # what was added to it
    given_expert: between(Real[OUTPUTS], -ANSWER_MOST, ANSWER_MOST)  # what the linear expert answered


class PendingWork(Struct):
    """Intermediate results.  Every call computes them anew; zeros are always valid."""

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
    """One more call while an answer waits.  After too many it is given up: the next one may wait longer, and less is made of the last wait."""
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
    """What the label of a sample with this mark judges."""
    if not late(m):
        return NOW
    if m.waited[0] <= 0 or m.waited[0] < floor_shift(m.last_wait[0], 1) or mark != m.mark[0]:
        return NOTHING
    return GIVEN if m.last_wait[0] > 0 else FIRST


@kernel
def settle_pending(m: Awaiting) -> None:
    """The label was learned: the answer that it judged waits no more."""
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
    """No label was ever expected."""
    m.longest_wait[0] = 0
    m.waited[0] = 0
    m.last_wait[0] = 0
    m.mark[0] = real(0)
    for o in range(len(m.given_value)):
        m.given_value[o] = real(0)
        m.given_lead[o] = real(0)
        m.given_expert[o] = real(0)
