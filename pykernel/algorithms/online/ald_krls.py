"""ALD-KRLS, recursive least squares on a dictionary that only grows.

Y. Engel, S. Mannor, R. Meir, The kernel recursive least-squares algorithm, 2004: a sample is stored unless it is
approximately linearly dependent on the stored samples, which are called the dictionary.  C, called P in the paper, is the
covariance of the dictionary's labels, in units of the noise variance.

The model keeps the mean of the function in the coordinates z = T f of posterior.py.  In these coordinates, C becomes
T C T' = L L', and the model keeps L.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.online import hooks
from pykernel.algorithms.online.budget import budgeted
from pykernel.algorithms.online.hooks import absorbed
from pykernel.algorithms.online.interpolation import propose_interpolation
from pykernel.algorithms.online.inverse_gram import combination
from pykernel.algorithms.online.posterior import (
    CovarianceFactor,
    Expectation,
    FactorModel,
    draft_mean,
    enter_mean,
    foresee_by_factor,
    keeps_mean,
    learn_factor,
    learn_mean,
    renew_multipliers,
)
from pykernel.algorithms.online.state import LARGEST_FACTOR, OnlineStatus
from pykernel.algorithms.packed import lower_transposed_times, row_of
from pykernel.dialect import Bool, Index, Real, kernel, real, sqrt


@kernel
def noise_of(m: FactorModel) -> Real:
    """The noise variance of y / sqrt(k(x, x)) that gives all errors of f equal weight."""
    if m.unit:
        return real(1)
    return real(1) / (m.norm[0] * m.norm[0])


@kernel
def absorb_by_dictionary(m: FactorModel) -> None:
    """Propose multipliers by recursive least squares: T' (expected + h e / (noise + l'h)).  O(N^2), and O(N^2 / 2) for each output.

    Engel et al. 2004, eq. 3.12-3.14, where C is called P.
    """
    n = m.n[0]
    known = foresee_by_factor(m)
    m.spread[0] = noise_of(m) + known
    inverse = real(1) / m.spread[0]
    for o in range(len(m.error)):
        draft_mean(m, o, real(1), m.error[o] * inverse)
        lower_transposed_times(m.t, m.ph, m.ph, 0, n)
        for i in range(n):
            m.beta[i, o] = m.ph[i]


@kernel
def propose(m: FactorModel) -> None:
    """Propose multipliers for which f(x) = y; the sample becomes a vector.  O(N^2)."""
    combination(m, m.n[0])
    propose_interpolation(m)


@kernel
def adapt(m: FactorModel, close: Bool) -> Bool:
    """Propose multipliers for a sample that depends linearly on the dictionary, or for which there is no room."""
    absorb_by_dictionary(m)
    return True


@kernel
def assimilate(m: FactorModel, stored: Bool) -> None:
    """Update the mean and the covariance for a sample that is not stored; enter() adds a stored sample.  Engel et al. 2004, eq. 3.13."""
    if not stored:
        learn_mean(m, real(1), real(1) / m.spread[0])
        learn_factor(m, noise_of(m), real(0))


@kernel
def enter(m: FactorModel, n: Index) -> None:
    """Extend C by a row and a column of zeros with noise_of() on the diagonal, and extend the mean so that f(x) = y.
    O(N^2).  Engel et al. 2004, eq. 3.15."""
    row = row_of(n)
    scale = real(1) / sqrt(m.kappa[0])
    lower_transposed_times(m.root, m.l, m.loading, 0, n)
    for j in range(n):
        m.root[row + j] = bounded(-(m.loading[j] * scale), LARGEST_FACTOR)
    m.root[row + n] = scale if m.unit else bounded(scale / m.norm[0], LARGEST_FACTOR)
    if not m.unit:
        # where k(x, x) is near zero, a variance could exceed its limit; it is then reduced, so such samples are learned more slowly
        total = real(0)
        for j in range(n + 1):
            total += m.root[row + j] * m.root[row + j]
        most = real(0.5) * LARGEST_FACTOR
        if total > most * most:
            part = most / sqrt(total)
            for j in range(n + 1):
                m.root[row + j] = m.root[row + j] * part
    enter_mean(m, n, scale)


@kernel
def outcome(m: FactorModel, close: Bool) -> Index:
    """The status of a sample that was not stored: DISCARDED if the full dictionary was the only reason."""
    if m.kappa[0] > m.ald_threshold and not close:
        return OnlineStatus.DISCARDED
    return absorbed(m)


@kernel
def vacant(m: FactorModel, at: Index) -> Bool:
    """Whether the unused element ``at`` of L is zero."""
    return m.root[at] == real(0)


ALD_KRLS = budgeted(
    {
        hooks.propose: propose,
        hooks.combines: hooks.always,
        hooks.adapt: adapt,
        hooks.assimilate: assimilate,
        hooks.enter: enter,
        hooks.outcome: outcome,
        hooks.vacant: vacant,
        hooks.fills: hooks.always,
        hooks.solves: hooks.always,
        hooks.spreads: hooks.always,
        hooks.renewed: renew_multipliers,
        frame.keeps: keeps_mean,
    },
    FactorModel,
    (CovarianceFactor, Expectation),
)
