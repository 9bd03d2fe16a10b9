"""How a sample changes the multipliers, before any reduction: the rules of learning.

Each rule proposes multipliers for the n stored vectors and, as number n, for the sample, all in beta.  A sample that is
not to be stored is then projected onto the stored ones.  The matrices that a rule keeps of its own change afterwards,
when nothing can be refused any more.
"""

from pykernel.algorithms.online.inverse_gram import inverse_column, inverse_times
from pykernel.algorithms.online.reduction import multiplier
from pykernel.algorithms.online.state import (
    WEIGHT_MOST,
    OnlineModel,
    Rule,
    as_element,
    clipped,
    kept,
    settle,
)
from pykernel.dialect import Constant, Index, Real, absolute, kernel, real, sqrt

LEAST_LEARNED = Constant(float32=2.0**-20, float64=2.0**-49)
"""Smaller shares of a variance, of one sample, are lost in rounding."""
LEAST_NARROWED = Constant(float32=2.0**-15, float64=2.0**-44)
"""The same, in parts of a multiplier's variance."""


LARGEST_ERROR = Constant(float32=1e15, float64=1e120)
"""Far above any error, in label limits, from which the function's variance is learned."""


@kernel
def limited(m: OnlineModel, step: Real) -> Real:
    """A gradient step, kept within its limit."""
    if m.limits_step:
        return clipped(step, -m.step_limit, m.step_limit)
    return step


@kernel
def limited_by_norm(m: OnlineModel, step: Real) -> Real:
    """A gradient step in units of sqrt(k(x, x)), limited so that f(x) changes by at most step_limit."""
    if m.limits_step:
        most = m.step_limit / m.norm[0]
        return clipped(step, -most, most)
    return step


@kernel
def noise_at(m: OnlineModel) -> Real:
    """Variance of the sample's noise / prior variance of the function at the sample."""
    if m.unit:
        if m.unsure:
            return m.label_noise[0]
        return m.noise
    part = m.noise / m.own[0]
    if m.unsure:
        part = m.label_noise[0] / m.own[0]
    if part < m.noise_least:
        return m.noise_least
    return part


@kernel
def propose_gradient(m: OnlineModel) -> None:
    """Propose eta e for the sample, and (1 - eta rho) alpha for the others.  Mitchinson et al. 2003, eq. 2-5."""
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
def propose_normalised(m: OnlineModel, own: Real) -> None:
    """Propose alpha + g k with g = eta e / (epsilon + k'k), and g for the sample.  O(N).

    own: k(x, x) if the sample is stored, which makes it a part of k; else 0.
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
def propose_interpolation(m: OnlineModel) -> None:
    """Propose f(x) = y with as little other change as possible: [alpha - u e / kappa; e / kappa].  O(N).

    If alpha = P y before, then also afterwards.  Van Vaerenbergh et al. 2010, and Engel et al. 2004, eq. 3.16.
    """
    n = m.n[0]
    for o in range(len(m.error)):
        step = m.error[o] * (real(1) / m.kappa[0])
        m.beta[n, o] = step
        for i in range(n):
            m.beta[i, o] = m.alpha[i, o] - m.u[i] * step


@kernel
def foresee(m: OnlineModel) -> None:
    """Compute h = lambda D u and 1 + ridge - u'h, the posterior variance of the function at the sample.  O(N^2)."""
    n = m.n[0]
    reduction = real(0)
    for i in range(n):
        h = real(0)
        for j in range(n):
            h += m.deficit[i, j] * m.u[j]
        if m.forgets:
            h = m.forgetting * h
        # h is a covariance with the sample; the limit keeps rounding errors from growing
        h = clipped(h, -m.ridge_diagonal, m.ridge_diagonal)
        m.h[i] = h
        reduction += m.u[i] * h
    # rounding must not take the variance out of its range
    m.spread[0] = clipped(m.ridge_diagonal - reduction, real(0), m.ridge_diagonal)


@kernel
def propose_posterior(m: OnlineModel) -> None:
    """Propose the posterior mean: [sqrt(lambda) alpha - g P h; g], where g = e / s_y^2.  O(N^2).

    Sigma is the covariance of the function's values at the vectors.  The model stores D = K - Sigma instead: then
    forgetting towards the prior is only lambda D, without any kernel value.  s_y^2 = noise + the variance of foresee().
    Van Vaerenbergh et al. 2012, algorithm 1.
    """
    n = m.n[0]
    foresee(m)
    inverse_times(m, m.h, m.ph, n)
    inverse = real(1) / (noise_at(m) + m.spread[0])
    for o in range(len(m.error)):
        g = m.error[o] * inverse
        m.beta[n, o] = g
        for i in range(n):
            a = m.alpha[i, o]
            if m.forgets:
                a = m.root_forgetting * a
            m.beta[i, o] = a - g * m.ph[i]


@kernel
def learn_posterior(m: OnlineModel) -> None:
    """Update D = lambda D + p p' / s_y^2, where p = k - h, and the estimate of the function's variance.  O(N^2).

    Afterwards p is in h.
    """
    n = m.n[0]
    inverse = real(1) / (noise_at(m) + m.spread[0])
    if m.weight[0] < WEIGHT_MOST:
        m.weight[0] = m.forgetting * m.weight[0] + real(1)
    squares = real(0)
    for o in range(len(m.error)):
        e = m.error[o] * m.label_scale
        if not m.unit:
            e = clipped(e, -LARGEST_ERROR, LARGEST_ERROR)
        squares += e * e
    squares = squares * (real(1) / real(len(m.error)))
    power = m.power[0] + (squares * inverse - m.power[0]) * (real(1) / m.weight[0])
    m.power[0] = clipped(power, real(0), m.power_limit)
    largest = real(0)
    for i in range(n):
        m.h[i] = m.k[i] - m.h[i]
        part = m.h[i] * m.h[i] * inverse
        if part > largest:
            largest = part
    # skip smaller changes: rounding would apply them to small elements only, and K - D would be no covariance any more
    if largest < LEAST_LEARNED:
        inverse = real(0)
    for i in range(n):
        share = m.h[i] * inverse
        for j in range(n):
            value = m.deficit[i, j]
            if m.forgets:
                value = m.forgetting * value
            m.deficit[i, j] = as_element(value + share * m.h[j])


@kernel
def border_deficit(m: OnlineModel, r: Index, n: Index) -> None:
    """Write the sample's row and column of D, as vector r of n: h + p s^2 / s_y^2, where s^2 is its variance.  O(N)."""
    share = m.spread[0] * (real(1) / (noise_at(m) + m.spread[0]))
    for j in range(n):
        if j != r:
            # h = k - p
            value = clipped(m.k[j] - m.h[j] + m.h[j] * share, -m.ridge_diagonal, m.ridge_diagonal)
            m.deficit[r, j] = value
            m.deficit[j, r] = value
    m.deficit[r, r] = m.ridge_diagonal - m.spread[0] + m.spread[0] * share


@kernel
def rescale_combination(m: OnlineModel) -> None:
    """Convert u from the normalised kernel to k(x, .) itself: u_i sqrt(k(x, x) / k(v_i, v_i)).  O(N)."""
    for i in range(m.n[0]):
        m.u[i] = m.u[i] * (m.norm[0] / sqrt(m.diagonal[i]))


@kernel
def absorb_by_dictionary(m: OnlineModel) -> None:
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
def learn_dictionary(m: OnlineModel) -> None:
    """Update C = C - h h' / (1 + u'h).  O(N^2).  Engel et al. 2004, eq. 3.13."""
    n = m.n[0]
    inverse = real(1) / m.spread[0]
    enough = False
    for i in range(n):
        if m.h[i] * m.h[i] * inverse > LEAST_NARROWED * m.covariance[i, i]:
            enough = True
    # skip smaller changes, as in learn_posterior()
    if not enough:
        inverse = real(0)
    for i in range(n):
        share = m.h[i] * inverse
        for j in range(n):
            m.covariance[i, j] = as_element(m.covariance[i, j] - share * m.h[j])


@kernel
def absorb_as_label(m: OnlineModel) -> None:
    """Move the label y of the nearest vector by eta e: alpha + P_:nearest eta e.  O(N^2).

    Labels are not stored, but alpha = P y contains them.
    """
    n = m.n[0]
    inverse_column(m, m.nearest[0])
    for o in range(len(m.error)):
        g = m.eta * m.error[o]
        if not m.radial:
            # how much the sample says about the vector's label
            g = m.k[m.nearest[0]] * g
        for i in range(n):
            m.beta[i, o] = m.alpha[i, o] + m.p[i] * g


@kernel
def move_labels(m: OnlineModel) -> None:
    """Move the label of each stored vector by eta k_i e, more where the sample is nearer: alpha + eta e u.  O(N).

    Van Vaerenbergh et al. 2010 move labels by eta k_i (y - y_i), even where f is right at both places.
    """
    for o in range(len(m.error)):
        g = m.eta * m.error[o]
        for i in range(m.n[0]):
            m.beta[i, o] = m.alpha[i, o] + m.u[i] * g


@kernel
def propose_labels(m: OnlineModel) -> None:
    """Move the labels, then propose f(x) = y; the remaining error is (1 - eta k'u) e.  O(N)."""
    move_labels(m)
    rest = real(1) - m.eta * (m.ridge_diagonal - m.kappa[0])
    for o in range(len(m.error)):
        step = m.error[o] * rest * (real(1) / m.kappa[0])
        m.beta[m.n[0], o] = step
        for i in range(m.n[0]):
            m.beta[i, o] -= m.u[i] * step


@kernel
def propose(m: OnlineModel) -> None:
    """Propose new multipliers, with the sample as vector n.  O(N), with KRLS_T O(N^2)."""
    if m.rule == Rule.KRLS_T:
        propose_posterior(m)
    elif m.rule == Rule.FB_KRLS or m.rule == Rule.ALD_KRLS:
        if m.relabels:
            propose_labels(m)
        else:
            propose_interpolation(m)
    elif m.rule == Rule.KNLMS:
        propose_normalised(m, real(1))
    else:
        propose_gradient(m)


@kernel
def largest_step(m: OnlineModel) -> Real:
    """The sample's largest multiplier."""
    largest = real(0)
    for o in range(len(m.error)):
        a = absolute(multiplier(m, m.n[0], o))
        # NaN counts as the largest
        if not (a <= largest):
            largest = a
    return largest
