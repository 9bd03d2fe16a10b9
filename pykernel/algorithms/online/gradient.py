"""A gradient step on a sample's squared error, which sets the sample's multiplier (Mitchinson et al. 2003, equations 2 to 6)."""

from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.online.candidates import step_bearable
from pykernel.algorithms.online.hooks import propose, share_of_nearest
from pykernel.algorithms.online.projections import project_klms
from pykernel.algorithms.online.state import OnlineModel, kept, settle
from pykernel.dialect import Bool, Real, absolute, kernel


@kernel
def limited(m: OnlineModel, step: Real) -> Real:
    """A gradient step.  [limits_step] The step is clipped to +- step_limit."""
    if m.limits_step:
        return bounded(step, m.step_limit)
    return step


@kernel
def limited_by_norm(m: OnlineModel, step: Real) -> Real:
    """A gradient step in units of sqrt(k(x, x)).  [limits_step] The step is limited so that f(x) changes by at most
    step_limit."""
    if m.limits_step:
        most = m.step_limit / m.norm[0]
        return bounded(step, most)
    return step


@kernel
def propose_gradient(m: OnlineModel) -> None:
    """Propose the multiplier eta e for the sample, where e is the error, and the multipliers (1 - eta rho) alpha for
    the stored vectors.
    Mitchinson et al. 2003, eq. 2-5."""
    for o in range(len(m.error)):
        step = settle(limited(m, m.eta * m.error[o]) if m.unit else limited_by_norm(m, m.eta * m.error[o]))
        if m.drafts:
            m.beta[m.n[0], o] = step
        else:
            m.step[o] = step
    if m.drafts:
        for i in range(m.n[0]):
            for o in range(len(m.error)):
                m.beta[i, o] = kept(m, m.alpha[i, o])


@kernel
def give_to_nearest(m: OnlineModel) -> Bool:
    """Add the sample's multiplier, or a share of it, to the multiplier of the nearest vector.  O(1).

    [not drafts] Returns False if the sum is out of range.  [drafts] Returns True; bearable() checks the range.
    """
    i = m.nearest[0]
    share = share_of_nearest(m)
    if m.drafts:
        for o in range(len(m.error)):
            m.beta[i, o] += share * m.beta[m.n[0], o]
    else:
        for o in range(len(m.error)):
            m.step[o] = settle(kept(m, m.alpha[i, o]) + share * m.step[o])
            if not (absolute(m.step[o]) <= m.alpha_limit):
                return False
    return True


@kernel
def adapt_gradient(m: OnlineModel, close: Bool) -> Bool:
    """If the sample is close to a vector, add the sample's multiplier, or a share of it, to the vector's multiplier.
    Otherwise project the sample onto all vectors.  The multiplier is the one that the rule proposes."""
    propose(m)
    fits = step_bearable(m)
    if close:
        shared = give_to_nearest(m)
        fits = fits and shared
    elif m.keeps_factor:
        project_klms(m, m.n[0])
    return fits
