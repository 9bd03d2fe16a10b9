"""Removing vectors that are old, or have small multipliers or low scores, in addition to the vector that a sample replaces.

Mitchinson et al. 2003.
"""

from pykernel.algorithms.online.candidates import commit, magnitude, stand_alone
from pykernel.algorithms.online.projections import bearable, locate, project
from pykernel.algorithms.online.reduction import choose, close_gap, negligible, take_out
from pykernel.algorithms.online.state import OnlineModel
from pykernel.dialect import Index, Real, absolute, kernel, real


@kernel
def smallness(m: OnlineModel, i: Index) -> Real:
    """The largest magnitude of a vector's stored multipliers."""
    largest = real(0)
    for o in range(len(m.alpha[0])):
        if absolute(m.alpha[i, o]) > largest:
            largest = absolute(m.alpha[i, o])
    return largest


@kernel
def stale(m: OnlineModel, older: Index) -> Index:
    """Position of the first vector whose multipliers are too small, or whose age plus ``older`` is too large; n if there is no
    such vector.  O(N)."""
    n = m.n[0]
    for i in range(n):
        if m.truncates_old:
            if m.age[i] >= m.truncate_age - older:
                return i
        if m.truncates_small:
            if older > 0:
                if magnitude(m, i) < m.truncate_below:
                    return i
            elif smallness(m, i) < m.truncate_below:
                return i
    return n


@kernel
def trim(m: OnlineModel) -> None:
    """Remove vectors that are too old or whose multipliers are too small, then vectors whose score is at most lambda_max, but at
    most ``removals`` vectors in all."""
    for turn in range(m.removals):
        if m.n[0] == 0:
            break
        r = m.n[0]
        if m.truncates_old or m.truncates_small:
            r = stale(m, 0)
            if r < m.n[0]:
                locate(m, r)
        if m.thresholds and not m.newest_only:
            if r == m.n[0]:
                stand_alone(m)
                r = choose(m)
                if not negligible(m, r):
                    break
                project(m, r)
                if not bearable(m, r):
                    break
                commit(m)
        if r == m.n[0]:
            break
        take_out(m, r, m.n[0])
        close_gap(m, r)
