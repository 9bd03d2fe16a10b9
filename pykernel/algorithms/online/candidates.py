"""The candidates for removal, and their multipliers once the sample has been learned (Mitchinson et al. 2003, section 2).

Candidates 0 to n - 1 are the stored vectors, and candidate n is the newest sample.  The newest sample is stored only when it is
certain to stay.
"""

from pykernel.algorithms.online.hooks import fills
from pykernel.algorithms.online.state import OnlineModel, kept, settle
from pykernel.dialect import Bool, Index, Real, absolute, kernel, real


@kernel
def only_grows(m: OnlineModel) -> Bool:
    """Whether no stored vector is ever removed."""
    if m.before or m.truncates_old or m.truncates_small:
        return False
    return m.newest_only or (fills(m) and not m.thresholds)


@kernel
def candidates(m: OnlineModel) -> Index:
    """Number of candidates for removal."""
    if m.rounds:
        return m.n[0] + m.newest[0]
    return m.n[0] + 1


@kernel
def is_stored(m: OnlineModel, r: Index) -> Bool:
    """Whether a candidate is a stored vector."""
    if m.newest_only:
        return False
    return r < m.n[0]


@kernel
def stand_alone(m: OnlineModel) -> None:
    """Make the stored vectors, with unchanged multipliers, the only candidates.  O(N)."""
    m.newest[0] = 0
    m.inverse_kappa[0] = real(0)
    for i in range(m.n[0]):
        for o in range(len(m.error)):
            m.beta[i, o] = m.alpha[i, o]


@kernel
def multiplier(m: OnlineModel, i: Index, o: Index) -> Real:
    """A candidate's new multiplier, before any removal."""
    if m.drafts:
        return m.beta[i, o]
    if i < m.n[0]:
        return kept(m, m.alpha[i, o])
    return m.step[o]


@kernel
def magnitude(m: OnlineModel, i: Index) -> Real:
    """|alpha_i|: the largest magnitude of a candidate's multipliers."""
    largest = absolute(multiplier(m, i, 0))
    if not m.single:
        for o in range(1, len(m.alpha[0])):
            a = absolute(multiplier(m, i, o))
            if a > largest:
                largest = a
    return largest


@kernel
def energy(m: OnlineModel, i: Index, part: Real) -> Real:
    """The sum of the squares of a candidate's multipliers, times ``part``.  The computation avoids subnormal numbers."""
    a = multiplier(m, i, 0)
    total = a * (a * part)
    if not m.single:
        for o in range(1, len(m.alpha[0])):
            a = multiplier(m, i, o)
            total += a * (a * part)
    return total


@kernel
def age_of(m: OnlineModel, i: Index) -> Index:
    """Number of samples learned since a candidate was stored or last repeated by a sample; -1 for the newest sample."""
    if i == m.n[0]:
        return -1
    return m.age[i]


@kernel
def largest_step(m: OnlineModel) -> Real:
    """The largest magnitude of the sample's multipliers."""
    largest = real(0)
    for o in range(len(m.error)):
        a = absolute(multiplier(m, m.n[0], o))
        # the condition also holds if a is NaN
        if not (a <= largest):
            largest = a
    return largest


@kernel
def step_bearable(m: OnlineModel) -> Bool:
    """Whether each of the sample's multipliers is within its range."""
    for o in range(len(m.error)):
        if m.drafts:
            if not (absolute(m.beta[m.n[0], o]) <= m.alpha_limit):
                return False
        elif not (absolute(m.step[o]) <= m.alpha_limit):
            return False
    return True


@kernel
def commit(m: OnlineModel) -> None:
    """Copy the new multipliers of the stored vectors to the model."""
    if m.drafts:
        for i in range(m.n[0]):
            for o in range(len(m.alpha[0])):
                m.alpha[i, o] = settle(m.beta[i, o])
    elif m.decays:
        for i in range(m.n[0]):
            for o in range(len(m.alpha[0])):
                m.alpha[i, o] = kept(m, m.alpha[i, o])
