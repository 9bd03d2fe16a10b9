"""Checks of a saved state: whether learning could have led to the state.  Snapshots are not trusted."""

from pykernel.algorithms.kernel_choice import plain_value
from pykernel.algorithms.kernels import NORM_LEAST
from pykernel.algorithms.online.hooks import vacant
from pykernel.algorithms.online.state import (
    FAINT,
    OnlineModel,
    settle,
)
from pykernel.dialect import Bool, kernel, real


@kernel
def valid_vectors(m: OnlineModel) -> Bool:
    """Whether learning could have led to these vectors, multipliers and claims.  Unused elements must be zero.  O(N D)."""
    n = m.n[0]
    for i in range(len(m.v)):
        for j in range(len(m.v[0])):
            if i >= n and m.v[i, j] != real(0):
                return False
        for o in range(len(m.alpha[0])):
            if i >= n and m.alpha[i, o] != real(0):
                return False
            if settle(m.alpha[i, o]) != m.alpha[i, o]:
                return False
        if m.keeps_diagonal:
            if i >= n:
                if m.diagonal[i] != real(0):
                    return False
            elif not (m.diagonal[i] > NORM_LEAST) or m.diagonal[i] != plain_value(m, m.v[i], m.v[i]):
                return False
        if m.keeps_ages:
            if i >= n and m.age[i] != 0:
                return False
        if m.fades:
            if i >= n:
                if m.claim[i] != real(0):
                    return False
            elif m.claim[i] < FAINT:
                return False
        if m.keeps_neighbours:
            if i >= n and m.neighbour[i] != real(0):
                return False
        if m.keeps_overlap:
            if i >= n and m.overlap[i] != real(0):
                return False
    return True


@kernel
def valid_matrices(m: OnlineModel) -> Bool:
    """Whether all unused elements of the matrices are zero.  O(N^2).

    The check does not compare T with the vectors, because that takes O(N^3).  Predictions do not depend on T, and
    refresh() computes T again.
    """
    n = m.n[0]
    at = 0
    for i in range(len(m.v) + 1):
        # the loop does not start at n, so that the number of iterations is bounded, whatever the storage returns for n
        for j in range(i + 1):
            if i >= n:
                if m.keeps_factor:
                    if m.t[at] != real(0):
                        return False
                if m.keeps_inverse:
                    if m.inverse[at] != real(0):
                        return False
                if m.keeps_squared:
                    if m.squared[at] != real(0):
                        return False
                if m.keeps_complex:
                    if m.z_re[at] != real(0) or m.z_im[at] != real(0):
                        return False
                if not vacant(m, at):
                    return False
            at = at + 1
    return True


@kernel
def keeps(m: OnlineModel) -> Bool:
    """Whether learning could have led to this state.  [not keeps_factor] O(N D).  [keeps_factor] O(N^2 + N D).

    The caller must check the declared ranges of the fields first.  This function also checks that unused elements are
    zero.
    """
    if not valid_vectors(m):
        return False
    if m.keeps_overlap or m.keeps_complex:
        if m.probe[0] > m.n[0]:
            return False
    if m.keeps_factor or m.keeps_complex:
        return valid_matrices(m)
    return True
