"""How a sample changes the multipliers, before any reduction: the rules of learning.

Each rule proposes multipliers for the n stored vectors and, as number n, for the sample, all in beta.  A sample that is
not to be stored is then projected onto the stored ones.  The matrices that a rule keeps of its own change afterwards,
when nothing can be refused any more.
"""

from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.algorithms.online.inverse_gram import inverse_column, inverse_times
from pykernel.algorithms.online.reduction import multiplier
from pykernel.algorithms.online.state import (
    WEIGHT_MOST,
    Expansion,
    OnlineConfig,
    Rule,
    Work,
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
def limited(c: OnlineConfig, step: Real) -> Real:
    """A gradient step, kept within its limit."""
    if c.limits_step:
        return clipped(step, -c.step_limit, c.step_limit)
    return step


@kernel
def limited_by_norm(w: Work, c: OnlineConfig, step: Real) -> Real:
    """A gradient step in units of sqrt(k(x, x)), limited so that f(x) changes by at most step_limit."""
    if c.limits_step:
        most = c.step_limit / w.norm[0]
        return clipped(step, -most, most)
    return step


@kernel
def noise_at(w: Work, c: OnlineConfig, q: KernelConfig) -> Real:
    """Variance of the sample's noise / prior variance of the function at the sample."""
    if q.unit:
        if c.unsure:
            return w.noise[0]
        return c.noise
    part = c.noise / w.own[0]
    if c.unsure:
        part = w.noise[0] / w.own[0]
    if part < c.noise_least:
        return c.noise_least
    return part


@kernel
def propose_gradient(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Propose eta e for the sample, and (1 - eta rho) alpha for the others.  Mitchinson et al. 2003, eq. 2-5."""
    for o in range(len(w.error)):
        step = settle(limited(c, c.eta * w.error[o]) if q.unit else limited_by_norm(w, c, c.eta * w.error[o]))
        if c.drafts:
            w.beta[s.n[0], o] = step
        else:
            w.step[o] = step
    if c.drafts:
        for i in range(s.n[0]):
            for o in range(len(w.error)):
                w.beta[i, o] = kept(c, s.alpha[i, o])


@kernel
def propose_normalised(s: Expansion, w: Work, c: OnlineConfig, own: Real) -> None:
    """Propose alpha + g k with g = eta e / (epsilon + k'k), and g for the sample.  O(N).

    own: k(x, x) if the sample is stored, which makes it a part of k; else 0.
    Richard, Bermudez and Honeine 2009, KNLMS.
    """
    n = s.n[0]
    length = c.epsilon + own
    for i in range(n):
        length += w.k[i] * w.k[i]
    inverse = real(1) / length
    for o in range(len(w.error)):
        g = c.eta * w.error[o] * inverse
        w.beta[n, o] = g
        for i in range(n):
            w.beta[i, o] = s.alpha[i, o] + g * w.k[i]


@kernel
def propose_interpolation(s: Expansion, w: Work) -> None:
    """Propose f(x) = y with as little other change as possible: [alpha - u e / kappa; e / kappa].  O(N).

    If alpha = P y before, then also afterwards.  Van Vaerenbergh et al. 2010, and Engel et al. 2004, eq. 3.16.
    """
    n = s.n[0]
    for o in range(len(w.error)):
        step = w.error[o] * (real(1) / w.kappa[0])
        w.beta[n, o] = step
        for i in range(n):
            w.beta[i, o] = s.alpha[i, o] - w.u[i] * step


@kernel
def foresee(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Compute h = lambda D u and 1 + ridge - u'h, the posterior variance of the function at the sample.  O(N^2)."""
    n = s.n[0]
    reduction = real(0)
    for i in range(n):
        h = real(0)
        for j in range(n):
            h += s.deficit[i, j] * w.u[j]
        if c.forgets:
            h = c.forgetting * h
        # h is a covariance with the sample; the limit keeps rounding errors from growing
        h = clipped(h, -c.ridge_diagonal, c.ridge_diagonal)
        w.h[i] = h
        reduction += w.u[i] * h
    # rounding must not take the variance out of its range
    w.spread[0] = clipped(c.ridge_diagonal - reduction, real(0), c.ridge_diagonal)


@kernel
def propose_posterior(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Propose the posterior mean: [sqrt(lambda) alpha - g P h; g], where g = e / s_y^2.  O(N^2).

    Sigma is the covariance of the function's values at the vectors.  The model stores D = K - Sigma instead: then
    forgetting towards the prior is only lambda D, without any kernel value.  s_y^2 = noise + the variance of foresee().
    Van Vaerenbergh et al. 2012, algorithm 1.
    """
    n = s.n[0]
    foresee(s, w, c)
    inverse_times(s, w.h, w.ph, n)
    inverse = real(1) / (noise_at(w, c, q) + w.spread[0])
    for o in range(len(w.error)):
        g = w.error[o] * inverse
        w.beta[n, o] = g
        for i in range(n):
            a = s.alpha[i, o]
            if c.forgets:
                a = c.root_forgetting * a
            w.beta[i, o] = a - g * w.ph[i]


@kernel
def learn_posterior(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Update D = lambda D + p p' / s_y^2, where p = k - h, and the estimate of the function's variance.  O(N^2).

    Afterwards p is in h.
    """
    n = s.n[0]
    inverse = real(1) / (noise_at(w, c, q) + w.spread[0])
    if s.weight[0] < WEIGHT_MOST:
        s.weight[0] = c.forgetting * s.weight[0] + real(1)
    squares = real(0)
    for o in range(len(w.error)):
        e = w.error[o] * c.label_scale
        if not q.unit:
            e = clipped(e, -LARGEST_ERROR, LARGEST_ERROR)
        squares += e * e
    squares = squares * (real(1) / real(len(w.error)))
    power = s.power[0] + (squares * inverse - s.power[0]) * (real(1) / s.weight[0])
    s.power[0] = clipped(power, real(0), c.power_limit)
    largest = real(0)
    for i in range(n):
        w.h[i] = w.k[i] - w.h[i]
        part = w.h[i] * w.h[i] * inverse
        if part > largest:
            largest = part
    # skip smaller changes: rounding would apply them to small elements only, and K - D would be no covariance any more
    if largest < LEAST_LEARNED:
        inverse = real(0)
    for i in range(n):
        share = w.h[i] * inverse
        for j in range(n):
            value = s.deficit[i, j]
            if c.forgets:
                value = c.forgetting * value
            s.deficit[i, j] = as_element(value + share * w.h[j])


@kernel
def border_deficit(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, r: Index, n: Index) -> None:
    """Write the sample's row and column of D, as vector r of n: h + p s^2 / s_y^2, where s^2 is its variance.  O(N)."""
    share = w.spread[0] * (real(1) / (noise_at(w, c, q) + w.spread[0]))
    for j in range(n):
        if j != r:
            # h = k - p
            value = clipped(w.k[j] - w.h[j] + w.h[j] * share, -c.ridge_diagonal, c.ridge_diagonal)
            s.deficit[r, j] = value
            s.deficit[j, r] = value
    s.deficit[r, r] = c.ridge_diagonal - w.spread[0] + w.spread[0] * share


@kernel
def rescale_combination(s: Expansion, w: Work) -> None:
    """Convert u from the normalised kernel to k(x, .) itself: u_i sqrt(k(x, x) / k(v_i, v_i)).  O(N)."""
    for i in range(s.n[0]):
        w.u[i] = w.u[i] * (w.norm[0] / sqrt(s.diagonal[i]))


@kernel
def absorb_by_dictionary(s: Expansion, w: Work, q: KernelConfig) -> None:
    """Propose multipliers by recursive least squares: alpha + P h e / (1 + u'h), where h = C u.  O(N^2).

    Engel et al. 2004, eq. 3.12-3.14; C is their P.
    """
    n = s.n[0]
    # C belongs to values of f, not of f / sqrt(k(x, x)), so that all errors count equally
    if not q.unit:
        rescale_combination(s, w)
    total = real(1)
    length = real(0)
    for i in range(n):
        length += w.u[i] * w.u[i]
    length = sqrt(length)
    for i in range(n):
        h = real(0)
        for j in range(n):
            h += s.covariance[i, j] * w.u[j]
        # no variance is above 1; the limit keeps rounding errors from growing
        h = clipped(h, -length, length)
        w.h[i] = h
        total += h * w.u[i]
    # 1 + u'C u is at least 1; rounding may give less
    if total < real(1):
        total = real(1)
    w.spread[0] = total
    if q.unit:
        inverse_times(s, w.h, w.ph, n)
    else:
        for i in range(n):
            w.u[i] = w.h[i] / sqrt(s.diagonal[i])
        inverse_times(s, w.u, w.ph, n)
    inverse = real(1) / total
    if not q.unit:
        inverse = inverse * w.norm[0]
    for o in range(len(w.error)):
        g = w.error[o] * inverse
        for i in range(n):
            w.beta[i, o] = s.alpha[i, o] + w.ph[i] * g


@kernel
def learn_dictionary(s: Expansion, w: Work) -> None:
    """Update C = C - h h' / (1 + u'h).  O(N^2).  Engel et al. 2004, eq. 3.13."""
    n = s.n[0]
    inverse = real(1) / w.spread[0]
    enough = False
    for i in range(n):
        if w.h[i] * w.h[i] * inverse > LEAST_NARROWED * s.covariance[i, i]:
            enough = True
    # skip smaller changes, as in learn_posterior()
    if not enough:
        inverse = real(0)
    for i in range(n):
        share = w.h[i] * inverse
        for j in range(n):
            s.covariance[i, j] = as_element(s.covariance[i, j] - share * w.h[j])


@kernel
def absorb_as_label(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Move the label y of the nearest vector by eta e: alpha + P_:nearest eta e.  O(N^2).

    Labels are not stored, but alpha = P y contains them.
    """
    n = s.n[0]
    inverse_column(s, w, w.nearest[0])
    for o in range(len(w.error)):
        g = c.eta * w.error[o]
        if not c.radial:
            # how much the sample says about the vector's label
            g = w.k[w.nearest[0]] * g
        for i in range(n):
            w.beta[i, o] = s.alpha[i, o] + w.p[i] * g


@kernel
def move_labels(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Move the label of each stored vector by eta k_i e, more where the sample is nearer: alpha + eta e u.  O(N).

    Van Vaerenbergh et al. 2010 move labels by eta k_i (y - y_i), even where f is right at both places.
    """
    for o in range(len(w.error)):
        g = c.eta * w.error[o]
        for i in range(s.n[0]):
            w.beta[i, o] = s.alpha[i, o] + w.u[i] * g


@kernel
def propose_labels(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Move the labels, then propose f(x) = y; the remaining error is (1 - eta k'u) e.  O(N)."""
    move_labels(s, w, c)
    rest = real(1) - c.eta * (c.ridge_diagonal - w.kappa[0])
    for o in range(len(w.error)):
        step = w.error[o] * rest * (real(1) / w.kappa[0])
        w.beta[s.n[0], o] = step
        for i in range(s.n[0]):
            w.beta[i, o] -= w.u[i] * step


@kernel
def propose(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Propose new multipliers, with the sample as vector n.  O(N), with KRLS_T O(N^2)."""
    if c.rule == Rule.KRLS_T:
        propose_posterior(s, w, c, q)
    elif c.rule == Rule.FB_KRLS or c.rule == Rule.ALD_KRLS:
        if c.relabels:
            propose_labels(s, w, c)
        else:
            propose_interpolation(s, w)
    elif c.rule == Rule.KNLMS:
        propose_normalised(s, w, c, real(1))
    else:
        propose_gradient(s, w, c, q)


@kernel
def largest_step(s: Expansion, w: Work, c: OnlineConfig) -> Real:
    """The sample's largest multiplier."""
    largest = real(0)
    for o in range(len(w.error)):
        a = absolute(multiplier(s, w, c, s.n[0], o))
        # NaN counts as the largest
        if not (a <= largest):
            largest = a
    return largest
