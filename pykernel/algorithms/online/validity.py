"""Checks of a saved state.  A snapshot is not trusted: the checks tell whether learning can lead to such a state."""

from pykernel.algorithms.kernel_choice import KernelConfig, plain_value
from pykernel.algorithms.kernels import NORM_LEAST
from pykernel.algorithms.online.reduction import AGE_MOST
from pykernel.algorithms.online.rules import WEIGHT_MOST
from pykernel.algorithms.online.state import (
    FAINT,
    FAR,
    FRESH,
    LARGEST_ELEMENT,
    LARGEST_FACTOR,
    Expansion,
    OnlineConfig,
    Rule,
    settle,
)
from pykernel.algorithms.stages import StageConfig, Stages, valid_stages
from pykernel.dialect import Bool, Constant, Real, absolute, kernel, real

LARGEST_REAL = Constant(float32=3.4028234663852886e38, float64=1.7976931348623157e308)


@kernel
def valid_vectors(s: Expansion, c: OnlineConfig, f: StageConfig, q: KernelConfig) -> Bool:
    """Whether vectors and multipliers are within their limits, without NaN or too small multipliers.  O(N D)."""
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
            if not (absolute(s.alpha[i, o]) <= c.alpha_limit) or settle(s.alpha[i, o]) != s.alpha[i, o]:
                return False
        if c.keeps_diagonal:
            if i >= n:
                if s.diagonal[i] != real(0):
                    return False
            elif not (s.diagonal[i] > NORM_LEAST) or s.diagonal[i] != plain_value(q, s.v[i], s.v[i]):
                return False
        if c.keeps_ages:
            if s.age[i] < 0 or s.age[i] > AGE_MOST or (i >= n and s.age[i] != 0):
                return False
        if c.fades:
            if i >= n:
                if s.claim[i] != real(0):
                    return False
            elif not (s.claim[i] >= FAINT and s.claim[i] <= FRESH):
                return False
        if c.keeps_neighbours:
            if not (absolute(s.neighbour[i]) <= FAR) or (i >= n and s.neighbour[i] != real(0)):
                return False
        if c.keeps_overlap:
            if not (s.overlap[i] >= real(0) and s.overlap[i] <= real(2 * len(s.v))):
                return False
            if i >= n and s.overlap[i] != real(0):
                return False
    return True


@kernel
def valid_factor(s: Expansion) -> Bool:
    """Whether no element of m can lead to an infinity.  O(N^2).

    The check does not compare m with the vectors, because that takes O(N^3).  Predictions do not depend on m, and
    refresh() computes m again.
    """
    n = s.n[0]
    if not (s.drift[0] >= real(0) and s.drift[0] <= LARGEST_REAL):
        return False
    for j in range(len(s.v)):
        p = real(0)
        for i in range(len(s.v)):
            if not element_valid(s.m[i, j], LARGEST_FACTOR, i < n and j < n):
                return False
            p += s.m[i, j] * s.m[i, j]
        # no inverse has a column of zeros
        if j < n and p == real(0):
            return False
    return True


@kernel
def element_valid(element: Real, limit: Real, inside: Bool) -> Bool:
    """Whether an element of a matrix is within its limit, and zero if it is outside of the part in use."""
    return absolute(element) <= limit and (inside or element == real(0))


@kernel
def valid_matrices(s: Expansion, c: OnlineConfig) -> Bool:
    """Whether the elements of the other matrices are within their limits.  O(N^2)."""
    n = s.n[0]
    for i in range(len(s.v)):
        for j in range(len(s.v)):
            inside = i < n and j < n
            if c.keeps_inverse:
                if not element_valid(s.inverse[i, j], LARGEST_ELEMENT, inside):
                    return False
            if c.keeps_squared:
                if not element_valid(s.squared[i, j], LARGEST_ELEMENT * LARGEST_ELEMENT, inside):
                    return False
            if c.keeps_complex:
                if not element_valid(s.z_re[i, j], LARGEST_ELEMENT * LARGEST_ELEMENT, inside):
                    return False
                if not element_valid(s.z_im[i, j], LARGEST_ELEMENT * LARGEST_ELEMENT, inside):
                    return False
            if c.rule == Rule.KRLS_T:
                if not element_valid(s.deficit[i, j], LARGEST_ELEMENT, inside):
                    return False
            if c.rule == Rule.ALD_KRLS:
                if not element_valid(s.covariance[i, j], LARGEST_ELEMENT, inside):
                    return False
    if c.rule == Rule.KRLS_T:
        if not (s.power[0] >= real(0) and s.power[0] <= c.power_limit):
            return False
        if not (s.weight[0] >= real(0) and s.weight[0] <= real(2) * WEIGHT_MOST):
            return False
    return True


@kernel
def valid(s: Expansion, a: Stages, c: OnlineConfig, f: StageConfig, q: KernelConfig) -> Bool:
    """Whether learning could have led to this state.  O(N D), with matrices O(N^2 + N D).

    Counts must be within their capacity.  Numbers must be finite and within their limits.  Unused places must be zero.
    """
    if s.n[0] < 0 or s.n[0] > len(s.v):
        return False
    if s.frozen[0] != 0 and s.frozen[0] != 1:
        return False
    if not valid_vectors(s, c, f, q):
        return False
    if c.keeps_factor or c.keeps_overlap:
        if s.probe[0] < 0 or s.probe[0] > s.n[0]:
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
