"""The check of a snapshot before it is used: whether learning could have led to this state of a subspace."""

from pykernel.algorithms.subspace.budget import CLAIM_LEAST, keeps_gram
from pykernel.algorithms.subspace.state import Budget, SubspaceModel, intact
from pykernel.algorithms.vectors import all_zero, empty_from
from pykernel.dialect import Bool, kernel, real


@kernel
def valid_subspace(m: SubspaceModel) -> Bool:
    """Whether the counts, the claims and the use of the examined column are within their limits, and the unused places
    are zero.  O(N^2 + N (D + r))."""
    n = m.n[0]
    rank = m.rank[0]
    # rank is checked again: the storage may change between two reads
    if not intact(m) or m.seen[0] < n or rank > len(m.a[0]) or m.use[0] > real(m.looks[0]):
        return False
    pairs = 0
    for i in range(len(m.v)):
        if i < n:
            pairs = pairs + i + 1
        if i >= n:
            if not all_zero(m.v[i], len(m.v[0])):
                return False
        if not empty_from(m.a[i], rank if i < n else 0, len(m.a[0])):
            return False
        if m.fades:
            if i < n and m.claim[i] < CLAIM_LEAST:
                return False
            if i >= n and m.claim[i] != real(0):
                return False
    columns = 0
    for j in range(rank):
        columns = columns + j + 1
    if not empty_from(m.g, columns, len(m.g)):
        return False
    if m.budget == Budget.EXACT:
        if not empty_from(m.root, pairs, len(m.root)):
            return False
    return not keeps_gram(m) or empty_from(m.gram, pairs, len(m.gram))
