"""Checks of a saved state.  A snapshot is not trusted: the checks tell whether learning can lead to such a state."""

from pykernel.algorithms.kernel_choice import KernelConfig, plain_value
from pykernel.algorithms.kernels import NORM_LEAST
from pykernel.algorithms.online.state import (
    FAINT,
    Expansion,
    OnlineConfig,
    Rule,
    settle,
)
from pykernel.algorithms.stages import StageConfig, Stages, valid_stages
from pykernel.dialect import Bool, absolute, kernel, real


@kernel
def valid_vectors(s: Expansion, c: OnlineConfig, f: StageConfig, q: KernelConfig) -> Bool:
    """Whether vectors are within their limits, multipliers not too small, and unused places zero.  O(N D)."""
    n = s.n[0]
    limit = q.input_max_abs
    if f.standardises:
        limit = f.clip
    elif q.rescales:
        limit = c.scaled_limit
    for i in range(len(s.v)):
        for j in range(len(s.v[0])):
            if i >= n and s.v[i, j] != real(0):
                return False
            # not "if (.. > limit)": NaN must fail
            if not (absolute(s.v[i, j]) <= limit):
                return False
        for o in range(len(s.alpha[0])):
            if i >= n and s.alpha[i, o] != real(0):
                return False
            if settle(s.alpha[i, o]) != s.alpha[i, o]:
                return False
        if c.keeps_diagonal:
            if i >= n:
                if s.diagonal[i] != real(0):
                    return False
            elif not (s.diagonal[i] > NORM_LEAST) or s.diagonal[i] != plain_value(q, s.v[i], s.v[i]):
                return False
        if c.keeps_ages:
            if i >= n and s.age[i] != 0:
                return False
        if c.fades:
            if i >= n:
                if s.claim[i] != real(0):
                    return False
            elif s.claim[i] < FAINT:
                return False
        if c.keeps_neighbours:
            if i >= n and s.neighbour[i] != real(0):
                return False
        if c.keeps_overlap:
            if i >= n and s.overlap[i] != real(0):
                return False
    return True


@kernel
def valid_factor(s: Expansion) -> Bool:
    """Whether m has zeros in unused places.  O(N^2).

    The check does not compare m with the vectors, because that takes O(N^3).  Predictions do not depend on m, and
    refresh() computes m again.  No inverse has a column of zeros, but release() can leave one of a forged m, and goes
    on from it.
    """
    n = s.n[0]
    for j in range(len(s.v)):
        for i in range(len(s.v)):
            if (i >= n or j >= n) and s.m[i, j] != real(0):
                return False
    return True


@kernel
def valid_matrices(s: Expansion, c: OnlineConfig) -> Bool:
    """Whether the other matrices are zero in unused places.  O(N^2)."""
    n = s.n[0]
    for i in range(len(s.v)):
        for j in range(len(s.v)):
            if i >= n or j >= n:
                if c.keeps_inverse:
                    if s.inverse[i, j] != real(0):
                        return False
                if c.keeps_squared:
                    if s.squared[i, j] != real(0):
                        return False
                if c.keeps_complex:
                    if s.z_re[i, j] != real(0) or s.z_im[i, j] != real(0):
                        return False
                if c.rule == Rule.KRLS_T:
                    if s.deficit[i, j] != real(0):
                        return False
                if c.rule == Rule.ALD_KRLS:
                    if s.covariance[i, j] != real(0):
                        return False
    return True


@kernel
def valid(s: Expansion, a: Stages, c: OnlineConfig, f: StageConfig, q: KernelConfig) -> Bool:
    """Whether learning could have led to this state.  O(N D), with matrices O(N^2 + N D).

    The ranges that the fields declare hold already.  Unused places must be zero.
    """
    if not valid_vectors(s, c, f, q):
        return False
    if c.keeps_factor or c.keeps_overlap:
        if s.probe[0] > s.n[0]:
            return False
    if c.keeps_factor:
        if not valid_factor(s):
            return False
    if not valid_matrices(s, c):
        return False
    if f.standardises:
        if s.n[0] > 0 and a.observed[0] < f.input_warmup:
            return False
    return valid_stages(a, f, q.input_max_abs)
