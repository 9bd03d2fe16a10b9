"""Keeping the expansion within its budget (Mitchinson et al. 2003, section 2): which vector is removed, and how.

If k(x, x) differs from 1 for some x, the normalised kernel k(a, b) / sqrt(k(a, a) k(b, b)) is used.  Then
f(x) / sqrt(k(x, x)) is an expansion of the normalised kernel, and the stored multipliers are alpha_i sqrt(k(v_i, v_i)).
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.online.candidates import age_of, candidates, magnitude, multiplier, only_grows
from pykernel.algorithms.online.complex_inverse import ASTRAY, border_complex, correct_complex, release_complex, shrink
from pykernel.algorithms.online.hooks import enter, leave
from pykernel.algorithms.online.inverse_gram import (
    border,
    border_inverse,
    border_squared,
    include_newest,
    release,
    release_inverse,
    release_squared,
)
from pykernel.algorithms.online.neighbours import (
    find_neighbour,
    introduce_neighbour,
    introduce_overlap,
    lose_neighbour,
    lose_overlap,
    renew_overlap,
    unsure,
)
from pykernel.algorithms.online.projections import project_late, projects_late
from pykernel.algorithms.online.state import AGE_MOST, FAINT, FRESH, SEARCHES, OnlineModel, Tie, place, settle
from pykernel.algorithms.online.techniques import comparable, cost, goes_first, survey, survey_newest, survey_one
from pykernel.dialect import DIM, Bool, Index, Real, absolute, kernel, real, unroll


@kernel
def score(m: OnlineModel, i: Index) -> Real:
    """A candidate's score: the cost of removing the candidate.  [fades] The cost of a stored vector is multiplied by
    the vector's claim to stay if the claim is below 1.  O(1) for each output."""
    if m.fades:
        if i < m.n[0] and m.claim[i] < real(1):
            return m.claim[i] * cost(m, i)
    return cost(m, i)


@kernel
def precedes(m: OnlineModel, i: Index, r: Index) -> Bool:
    """Whether to remove candidate i rather than candidate r if i and r have the same score."""
    by_technique = goes_first(m, i, r)
    if by_technique != 0:
        return by_technique > 0
    if m.tie == Tie.NEWEST:
        return age_of(m, i) < age_of(m, r)
    if m.tie == Tie.OLDEST:
        return age_of(m, i) > age_of(m, r)
    return magnitude(m, i) < magnitude(m, r)


@kernel
def first_certain(m: OnlineModel, count: Index) -> Index:
    """The first candidate whose score is exact, not a lower bound; 0 if there is none.  O(N)."""
    for i in range(count):
        if not unsure(m, i):
            return i
    return 0


@kernel
def first_bound(m: OnlineModel, count: Index) -> Index:
    """The first candidate whose score is only a lower bound; ``count`` if all scores are exact.  O(N)."""
    for i in range(count):
        if unsure(m, i):
            return i
    return count


@kernel
def cheapest(m: OnlineModel) -> Index:
    """Position of the candidate with the smallest score.  Ties are decided by precedes(), and then by position.
    [keeps_neighbours] Candidates whose score is only a lower bound are left out."""
    count = candidates(m)
    r = 0
    if m.keeps_neighbours:
        r = first_certain(m, count)
    least = score(m, r)
    first = r + 1
    for i in range(first, count):
        if m.keeps_neighbours:
            if unsure(m, i):
                continue
        value = score(m, i)
        if value < least or (value == least and precedes(m, i, r)):
            least = value
            r = i
    return r


@kernel
def resolve_neighbours(m: OnlineModel) -> None:
    """For vectors that have lost their nearest neighbour, search for the new one if the choice depends on it; at most SEARCHES
    searches.  O(N), and O(N D) for each search.

    A score that is computed from a lower bound on a distance is itself a lower bound.  The smallest exact score is certainly
    the smallest of all scores if it is below every lower bound.
    """
    count = candidates(m)
    for turn in range(SEARCHES):
        lost = count
        least = real(0)
        for i in range(count):
            value = score(m, i)
            if i == 0 or value <= least:
                bound = unsure(m, i)
                # if a lower bound equals the smallest exact score, a search is still needed
                if i == 0 or value < least or bound:
                    least = value
                    lost = count
                    if bound:
                        lost = i
        if m.before and lost == count:
            # every sample leads to a removal, so use a remaining search for another vector that has lost its neighbour
            lost = first_bound(m, count)
        if lost == count:
            break
        find_neighbour(m, lost)
        survey_one(m, lost)


@kernel
def choose(m: OnlineModel) -> Index:
    """Position of the candidate to remove.  [keeps_factor] O(N^2 + N D).  [not keeps_factor] Mostly O(N D)."""
    if m.keeps_complex:
        shrink(m)
    if m.newest_only:
        if only_grows(m) or candidates(m) > m.n[0]:
            survey_newest(m)
            return m.n[0]
    survey(m)
    if m.keeps_neighbours:
        resolve_neighbours(m)
    return cheapest(m)


@kernel
def negligible(m: OnlineModel, r: Index) -> Bool:
    """Whether the chosen candidate's score is at most lambda_max."""
    return comparable(m, score(m, r)) <= m.lambda_max


# --------------------------------------------------------------------------------------------- vectors come and go


@kernel
def keeps_order(m: OnlineModel) -> Bool:
    """Whether vectors are kept in order of arrival, as the rows of matrices are."""
    return m.keeps_factor or m.keeps_complex


@kernel
def append(m: OnlineModel) -> None:
    """Add the sample to the stored matrices as vector n.  O(N^2).

    [keeps_factor] Needs the results of express() and combination().
    [keeps_complex] Needs the results of express_complex().
    """
    n = m.n[0]
    if m.keeps_squared:
        border_squared(m, n)
    if m.keeps_inverse:
        border_inverse(m, n)
    if m.keeps_factor:
        border(m, n)
    if m.keeps_complex:
        border_complex(m, n)
    enter(m, n)


@kernel
def take_out(m: OnlineModel, r: Index, count: Index) -> None:
    """Remove vector r from the data that are stored for ``count`` vectors.  [keeps_factor] If P or Q is kept, p must contain P_:r.
    [keeps_neighbours] measure_row() must have set row.  [keeps_overlap] measure_row() must have set row.
    [keeps_factor] O(N^2).  [not keeps_factor] O(N).

    count: n, or n + 1 after append().
    """
    if m.keeps_squared or m.keeps_inverse:
        if count > m.n[0]:
            include_newest(m, r)
    if m.keeps_squared:
        release_squared(m, r, count)
    if m.keeps_inverse:
        release_inverse(m, r, count)
    if m.keeps_factor:
        release(m, r, count)
        if projects_late(m):
            project_late(m, r)
    if m.keeps_complex:
        release_complex(m, r, count)
    if m.keeps_neighbours:
        lose_neighbour(m, r)
    if m.keeps_overlap:
        lose_overlap(m, r)
    leave(m, r, count)


@kernel
def put_in(m: OnlineModel, x: Real[DIM], r: Index, newest: Index) -> None:
    """Store the sample, which is candidate ``newest``, as vector r: after the last vector, or at a free position.  O(N + D).

    Mitchinson et al. 2003, eq. 3-6.
    """
    # the condition is never true; it prevents a GCC warning
    if r >= len(m.v):
        return
    place(m, x, r)
    if m.keeps_diagonal:
        m.diagonal[r] = m.own[0]
    for o in range(len(m.alpha[0])):
        m.alpha[r, o] = settle(multiplier(m, newest, o))
    if r == m.n[0]:
        m.n[0] = r + 1
    if m.keeps_neighbours:
        introduce_neighbour(m, r)
    if m.keeps_overlap:
        introduce_overlap(m, r)
    if m.keeps_ages:
        m.age[r] = 0
    if m.fades:
        m.claim[r] = FRESH
    if m.keeps_complex:
        for turn in range(2):
            if m.probe[0] != ASTRAY:
                correct_complex(m)


@kernel
def close_gap(m: OnlineModel, r: Index) -> None:
    """Move each vector after the removed vector r to the preceding position.  O(N D)."""
    last = m.n[0] - 1
    # the condition is never true; it prevents a GCC warning
    if last >= len(m.v):
        return
    for i in range(r, last):
        for j in unroll(len(m.v[0])):
            m.v[i, j] = m.v[i + 1, j]
        for o in range(len(m.alpha[0])):
            m.alpha[i, o] = m.alpha[i + 1, o]
        if m.keeps_diagonal:
            m.diagonal[i] = m.diagonal[i + 1]
        if m.keeps_ages:
            m.age[i] = m.age[i + 1]
        if m.fades:
            m.claim[i] = m.claim[i + 1]
        if m.keeps_neighbours:
            m.neighbour[i] = m.neighbour[i + 1]
            m.distance[i] = m.distance[i + 1]
        if m.keeps_overlap:
            m.overlap[i] = m.overlap[i + 1]
        if m.keeps_overlap:
            m.k[i] = m.k[i + 1]
    for j in range(len(m.v[0])):
        m.v[last, j] = real(0)
    for o in range(len(m.alpha[0])):
        m.alpha[last, o] = real(0)
    if m.keeps_diagonal:
        m.diagonal[last] = real(0)
    if m.keeps_ages:
        m.age[last] = 0
    if m.fades:
        m.claim[last] = real(0)
    if m.keeps_neighbours:
        m.neighbour[last] = real(0)
    if m.keeps_overlap:
        m.overlap[last] = real(0)
    if m.keeps_overlap or m.keeps_complex:
        if m.probe[0] > last:
            m.probe[0] = 0
    m.n[0] = last


@kernel
def grow_older(m: OnlineModel) -> None:
    """Update the ages, the claims and one overlap after a sample has been learned."""
    if m.fades:
        for i in range(m.n[0]):
            # a sample renews the claims of vectors near the sample
            renewed = FRESH * absolute(m.k[i])
            faded = m.fading * m.claim[i]
            m.claim[i] = clipped(renewed if renewed > faded else faded, FAINT, FRESH)
    if m.keeps_ages:
        for i in range(m.n[0]):
            if m.age[i] < AGE_MOST:
                m.age[i] += 1
    if m.keeps_overlap:
        if m.n[0] > 0:
            turn = m.probe[0]
            if turn < 0 or turn >= m.n[0]:
                turn = 0
            m.probe[0] = turn + 1
            renew_overlap(m, turn)
