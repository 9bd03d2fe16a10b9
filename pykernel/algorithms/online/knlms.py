"""KNLMS, normalised least mean squares on a dictionary that only grows and whose coherence is limited.

C. Richard, J. C. M. Bermudez, P. Honeine, Online prediction of time series data with kernels, 2009.
"""

from pykernel.algorithms.online import hooks
from pykernel.algorithms.online.budget import budgeted
from pykernel.algorithms.online.hooks import absorbed
from pykernel.algorithms.online.state import OnlineModel, OnlineStatus
from pykernel.dialect import Bool, Index, Real, kernel, real


@kernel
def propose_normalised(m: OnlineModel, own: Real) -> None:
    """Propose the multipliers alpha + g k for the vectors and g for the sample.  O(N).

    g = eta e / (epsilon + k'k), where e is the error.
    own: k(x, x)^2 if the sample is stored, because k then includes k(x, x); else 0.
    Richard, Bermudez and Honeine 2009, KNLMS.
    """
    n = m.n[0]
    length = m.epsilon + own
    for i in range(n):
        length += m.k[i] * m.k[i]
    inverse = real(1) / length
    for o in range(len(m.error)):
        g = m.eta * m.error[o] * inverse
        m.beta[n, o] = g
        for i in range(n):
            m.beta[i, o] = m.alpha[i, o] + g * m.k[i]


@kernel
def propose(m: OnlineModel) -> None:
    """Propose multipliers for a sample that is stored, where k(x, x) = 1."""
    propose_normalised(m, real(1))


@kernel
def adapt(m: OnlineModel, close: Bool) -> Bool:
    """Propose multipliers for a sample that is too similar to the dictionary to be stored, or for which there is no room."""
    propose_normalised(m, real(0))
    return True


@kernel
def outcome(m: OnlineModel, close: Bool) -> Index:
    """The status of a sample that was not stored: DISCARDED if the full dictionary was the only reason."""
    if not close:
        return OnlineStatus.DISCARDED
    return absorbed(m)


KNLMS = budgeted(
    {
        hooks.propose: propose,
        hooks.adapt: adapt,
        hooks.outcome: outcome,
        hooks.fills: hooks.always,
        hooks.spreads: hooks.always,
    },
)
