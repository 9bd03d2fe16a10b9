"""ALD-KRLS, recursive least squares on a dictionary that only grows.

Y. Engel, S. Mannor, R. Meir, The kernel recursive least-squares algorithm, 2004: a sample is stored if it is not
approximately linearly dependent on those before.  C, their P, is the covariance of the multipliers.
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.online import hooks
from pykernel.algorithms.online.budget import budgeted
from pykernel.algorithms.online.hooks import absorbed
from pykernel.algorithms.online.interpolation import propose_interpolation
from pykernel.algorithms.online.inverse_gram import inverse_times
from pykernel.algorithms.online.state import LARGEST_ELEMENT, OnlineModel, OnlineStatus, as_element
from pykernel.dialect import Bool, Constant, Index, Real, Struct, between, kernel, real, sqrt

LEAST_NARROWED = Constant(float32=2.0**-15, float64=2.0**-44)
"""Smaller parts of a multiplier's variance, of one sample, are lost in rounding."""


class Dictionary(Struct):
    """What ALD-KRLS knows of its dictionary's multipliers."""

    covariance: between(Real[N_MAX, N_MAX], -LARGEST_ELEMENT, LARGEST_ELEMENT)  # of the multipliers


class AldModel(OnlineModel):
    parts = (Dictionary,)


@kernel
def rescale_combination(m: OnlineModel) -> None:
    """Convert u from the normalised kernel to k(x, .) itself: u_i sqrt(k(x, x) / k(v_i, v_i)).  O(N)."""
    for i in range(m.n[0]):
        m.u[i] = m.u[i] * (m.norm[0] / sqrt(m.diagonal[i]))


@kernel
def absorb_by_dictionary(m: AldModel) -> None:
    """Propose multipliers by recursive least squares: alpha + P h e / (1 + u'h), where h = C u.  O(N^2).

    Engel et al. 2004, eq. 3.12-3.14; C is their P.
    """
    n = m.n[0]
    # C belongs to values of f, not of f / sqrt(k(x, x)), so that all errors count equally
    if not m.unit:
        rescale_combination(m)
    total = real(1)
    length = real(0)
    for i in range(n):
        length += m.u[i] * m.u[i]
    length = sqrt(length)
    for i in range(n):
        h = real(0)
        for j in range(n):
            h += m.covariance[i, j] * m.u[j]
        # no variance is above 1; the limit keeps rounding errors from growing
        h = clipped(h, -length, length)
        m.h[i] = h
        total += h * m.u[i]
    # 1 + u'C u is at least 1; rounding may give less
    if total < real(1):
        total = real(1)
    m.spread[0] = total
    if m.unit:
        inverse_times(m, m.h, m.ph, n)
    else:
        for i in range(n):
            m.u[i] = m.h[i] / sqrt(m.diagonal[i])
        inverse_times(m, m.u, m.ph, n)
    inverse = real(1) / total
    if not m.unit:
        inverse = inverse * m.norm[0]
    for o in range(len(m.error)):
        g = m.error[o] * inverse
        for i in range(n):
            m.beta[i, o] = m.alpha[i, o] + m.ph[i] * g


@kernel
def learn_dictionary(m: AldModel) -> None:
    """Update C = C - h h' / (1 + u'h).  O(N^2).  Engel et al. 2004, eq. 3.13."""
    n = m.n[0]
    inverse = real(1) / m.spread[0]
    enough = False
    for i in range(n):
        if m.h[i] * m.h[i] * inverse > LEAST_NARROWED * m.covariance[i, i]:
            enough = True
    # skip smaller changes, which rounding would apply to some elements only
    if not enough:
        inverse = real(0)
    for i in range(n):
        share = m.h[i] * inverse
        for j in range(n):
            m.covariance[i, j] = as_element(m.covariance[i, j] - share * m.h[j])


@kernel
def adapt(m: AldModel, close: Bool) -> Bool:
    """The sample depends on the dictionary, or there is no place."""
    absorb_by_dictionary(m)
    return True


@kernel
def assimilate(m: AldModel, stored: Bool) -> None:
    """A sample that is stored begins with a variance of its own; others narrow the dictionary's."""
    if not stored:
        learn_dictionary(m)


@kernel
def enter(m: AldModel, r: Index) -> None:
    """Engel et al. 2004, eq. 3.15."""
    m.covariance[r, r] = real(1)


@kernel
def outcome(m: AldModel, close: Bool) -> Index:
    """A sample that is new was discarded: the dictionary is full."""
    if m.kappa[0] > m.ald_threshold and not close:
        return OnlineStatus.DISCARDED
    return absorbed(m)


@kernel
def vacant(m: AldModel, i: Index, j: Index) -> Bool:
    """C is zero where a place is not in use."""
    return m.covariance[i, j] == real(0)


ALD_KRLS = budgeted(
    {
        hooks.propose: propose_interpolation,
        hooks.adapt: adapt,
        hooks.assimilate: assimilate,
        hooks.enter: enter,
        hooks.outcome: outcome,
        hooks.vacant: vacant,
        hooks.fills: hooks.always,
        hooks.solves: hooks.always,
        hooks.spreads: hooks.always,
    },
    AldModel,
    (Dictionary,),
)
