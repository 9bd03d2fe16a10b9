"""KRLS-T, recursive least squares in which forgetting leads back to the prior: a Gaussian process on the samples seen so far.

S. Van Vaerenbergh, M. Lazaro-Gredilla, I. Santamaria, Kernel recursive least-squares tracker for time-varying regression,
2012, algorithm 1.

The function is kept in the coordinates z of posterior.py.  In these coordinates, the prior covariance is I, and the
posterior covariance S is between 0 and I.  Without forgetting, the model keeps a factor of S.

With forgetting, a factor of lambda S + (1 - lambda) I would cost O(N^3), so the model keeps S itself.  No eigenvalue of S is
ever below min(1 - lambda, noise) / 2.  A sample changes S in only one direction: the variance q in this direction, which is
at least 1 - lambda, becomes q v / (q + v), where v is at least the noise.  Rounding errors are far smaller than this lower
bound on the eigenvalues, because no element of S is above 1.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import bounded, clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.frame import Status, refusal
from pykernel.algorithms.online import hooks, posterior
from pykernel.algorithms.online.budget import budgeted, compare
from pykernel.algorithms.online.candidates import step_bearable
from pykernel.algorithms.online.inverse_gram import LEAST_LENGTH, limit_combination
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
    leave_mean,
    renew_multipliers,
)
from pykernel.algorithms.online.projections import project_klms
from pykernel.algorithms.online.state import LOOSE
from pykernel.algorithms.packed import (
    lower_transposed_times,
    lower_transposed_twice,
    row_of,
    symmetric_downdate,
    symmetric_times,
)
from pykernel.algorithms.release import release_coordinate, release_coordinate_of
from pykernel.algorithms.stages import noise, trust
from pykernel.dialect import DIM, Bool, Constant, Index, Real, Struct, absolute, between, kernel, real, sqrt
from pykernel.dialect.program import Entry

LARGEST_ERROR = Constant(float32=1e15, float64=1e120)
"""Errors are clipped to this before the function's variance is learned from them.  Unit: the label limit.  Valid errors are far smaller."""
WEIGHT_HORIZON = Constant(1_000_000.0)
"""The function's variance is estimated from at most about this many of the latest samples."""
COVARIANCE_MOST = Constant(2.0)
"""A limit above all elements of S, which are at most 1."""


class Posterior(Struct):
    """The memory of KRLS-T in addition to the mean and, without forgetting, a factor of S."""

    # with forgetting: S, packed
    covariance: between(Real[(N_MAX + 1) * (N_MAX + 2) // 2], -COVARIANCE_MOST, COVARIANCE_MOST)
    power: between(Real, 0, "power_limit")  # estimated variance of the function, in units of label_max_abs^2
    # number of samples in the estimate of the variance; with forgetting, the effective number
    weight: between(Real, 0, WEIGHT_HORIZON * 2)

    units = (("power", "label_scale", 2),)


class KrlsTModel(FactorModel):
    parts = (Posterior,)


@kernel
def noise_at(m: KrlsTModel) -> Real:
    """The ratio of the sample's noise variance to the function's prior variance at the sample."""
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
def foresee(m: KrlsTModel) -> None:
    """Compute h, the covariances of the function's value at the sample with the coordinates z.  Also compute the
    variance of the function's value at the sample, kappa + l'h.  O(N^2)."""
    spread = m.kappa[0]
    if m.forgets:
        n = m.n[0]
        symmetric_times(m.covariance, m.l, m.h, n)
        for i in range(n):
            m.h[i] = m.forgetting * m.h[i] + m.forgotten * m.l[i]
            spread += m.l[i] * m.h[i]
    else:
        known = foresee_by_factor(m)
        spread += known
    # only rounding can move the variance below kappa or above the prior variance
    m.spread[0] = clipped(spread, m.kappa[0], m.ridge_diagonal)


@kernel
def propose_posterior(m: KrlsTModel) -> None:
    """Propose the posterior mean: T' (sqrt(lambda) expected + g h) - g u for the vectors, and g for the sample.

    g = e / s_y^2, where e is the error, and s_y^2 = noise + the variance from foresee().  O(N^2), and O(N^2 / 2) for
    each further output.
    Van Vaerenbergh et al. 2012, algorithm 1.
    """
    n = m.n[0]
    foresee(m)
    inverse = real(1) / (noise_at(m) + m.spread[0])
    for o in range(len(m.error)):
        g = m.error[o] * inverse
        draft_mean(m, o, m.root_forgetting, g)
        if o == 0:
            lower_transposed_twice(m.t, m.l, m.ph, m.u, m.ph, n)
            limit_combination(m, n)
        else:
            lower_transposed_times(m.t, m.ph, m.ph, 0, n)
        m.beta[n, o] = g
        for i in range(n):
            m.beta[i, o] = m.ph[i] - g * m.u[i]


@kernel
def learn_power(m: KrlsTModel, inverse: Real) -> None:
    """Update the estimate of the function's variance.  inverse: 1 / s_y^2."""
    if m.weight[0] < WEIGHT_HORIZON:
        m.weight[0] = m.forgetting * m.weight[0] + real(1)
    squares = real(0)
    for o in range(len(m.error)):
        e = m.error[o] * m.label_scale
        if not m.unit:
            e = bounded(e, LARGEST_ERROR)
        squares += e * e
    squares = squares * (real(1) / real(len(m.error)))
    power = m.power[0] + (squares * inverse - m.power[0]) * (real(1) / m.weight[0])
    m.power[0] = clipped(power, real(0), m.power_limit)


@kernel
def learn_covariance(m: KrlsTModel, inverse: Real) -> None:
    """Update S to lambda S + (1 - lambda) I - h h' / s_y^2.  O(N^2)."""
    symmetric_downdate(m.covariance, m.h, m.forgetting, inverse, m.forgotten, m.n[0])


@kernel
def propose(m: KrlsTModel) -> None:
    """Propose the posterior mean.  O(N^2)."""
    if m.unsure:
        m.label_noise[0] = noise(m)
    propose_posterior(m)


@kernel
def adapt(m: KrlsTModel, close: Bool) -> Bool:
    """Propose the posterior mean for a sample that is projected onto the vectors."""
    propose(m)
    fits = step_bearable(m)
    project_klms(m, m.n[0])
    return fits


@kernel
def assimilate(m: KrlsTModel, stored: Bool) -> None:
    """Update the mean and the covariance for a sample, whether or not the sample is stored.  O(N^2)."""
    inverse = real(1) / (noise_at(m) + m.spread[0])
    learn_power(m, inverse)
    learn_mean(m, m.root_forgetting, inverse)
    if m.forgets:
        learn_covariance(m, inverse)
    else:
        learn_factor(m, noise_at(m), m.kappa[0])


@kernel
def enter(m: KrlsTModel, n: Index) -> None:
    """Add the sample's own coordinate to S and to the mean.  O(N)."""
    row = row_of(n)
    own = sqrt(m.kappa[0])
    scatter = noise_at(m)
    step = own / (scatter + m.spread[0])
    enter_mean(m, n, step)
    if m.forgets:
        for j in range(n):
            m.covariance[row + j] = -(m.h[j] * step)
        m.covariance[row + n] = real(1) - own * step
    else:
        for j in range(n):
            m.root[row + j] = -(m.share[j] * own)
        m.root[row + n] = sqrt(scatter / (scatter + m.kappa[0]))


@kernel
def leave(m: KrlsTModel, r: Index, count: Index) -> None:
    """Remove the coordinate of vector r from S and the mean, given the rotations of release().  O(N^2)."""
    leave_mean(m, r, count)
    if m.forgets:
        release_coordinate_of(m.covariance, m.p, m.q, m.score, m.u, r, count)
    else:
        release_coordinate(m.root, m.p, m.q, m.score, m.u, m.loading, m.h, r, count, LEAST_LENGTH)


@kernel
def largest_variance(m: KrlsTModel) -> Real:
    """The prior variance, which is 1, plus a tolerance for rounding errors."""
    return real(1) + LOOSE


@kernel
def sound(m: KrlsTModel) -> Bool:
    """Whether each variance in S is between zero and the prior variance.  If S is not a covariance matrix, this check soon fails.  O(N)."""
    if m.forgets:
        at = 0
        for i in range(len(m.v)):
            if not (real(0) <= m.covariance[at] and m.covariance[at] <= largest_variance(m)):
                return False
            at = at + i + 2
    return True


@kernel
def keeps_posterior(m: KrlsTModel) -> Bool:
    """Whether learning could have led to this state.  O(N^2 + N D)."""
    if m.forgets:
        for i in range(len(m.covariance)):
            if not (absolute(m.covariance[i]) <= largest_variance(m)):
                return False
    return sound(m) and keeps_mean(m)


@kernel
def vacant(m: KrlsTModel, at: Index) -> Bool:
    """Whether the unused element ``at`` of S or of L is zero."""
    if m.forgets:
        return m.covariance[at] == real(0)
    return m.root[at] == real(0)


@kernel
def remembered(m: KrlsTModel, value: Real) -> Real:
    """The mean after forgetting: before a sample is learned, forgetting moves the mean towards zero."""
    if m.forgets:
        return m.root_forgetting * value
    return value


@kernel
def variance(m: KrlsTModel, x: Real[DIM], y: Real[1]) -> Index:
    """Write to y the expected variance of the label around f(x), in the square of the label's unit.

    O(N^2 + N D).  Van Vaerenbergh et al. 2012.
    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    compare(m, x)
    if m.unsure:
        m.label_noise[0] = noise(m)
    foresee(m)
    power = m.power[0]
    # before the first sample, assume the largest possible variance
    if m.weight[0] == real(0):
        power = real(1)
    if not m.unit:
        if m.norm[0] == real(0):
            y[0] = m.noise * power * m.label_max_abs * m.label_max_abs
            if m.unsure:
                y[0] = m.label_noise[0] * power * m.label_max_abs * m.label_max_abs
            return Status.DONE
        power = m.own[0] * power
    y[0] = (noise_at(m) + m.spread[0]) * power * m.label_max_abs * m.label_max_abs
    if m.gains:
        # the gain reduces each output: add the square of the largest reduction
        most = real(0)
        for o in range(len(m.error)):
            left = (real(1) - trust(m, o)) * m.error[o]
            if left * left > most:
                most = left * left
        y[0] += most
    return Status.DONE


KRLS_T = budgeted(
    {
        hooks.propose: propose,
        hooks.adapt: adapt,
        hooks.assimilate: assimilate,
        hooks.enter: enter,
        hooks.leave: leave,
        hooks.vacant: vacant,
        hooks.combines: hooks.always,
        hooks.solves: hooks.always,
        hooks.spreads: hooks.always,
        hooks.sound: sound,
        posterior.largest_variance: largest_variance,
        hooks.renewed: renew_multipliers,
        frame.remembered: remembered,
        frame.keeps: keeps_posterior,
        FactorModel: KrlsTModel,
    },
    KrlsTModel,
    (CovarianceFactor, Posterior, Expectation),
    (Entry("variance", variance, "question"),),
)
