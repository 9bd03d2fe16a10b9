"""KRLS-T, recursive least squares that forgets towards its prior: a Gaussian process of the samples that were seen.

S. Van Vaerenbergh, M. Lazaro-Gredilla, I. Santamaria, Kernel recursive least-squares tracker for time-varying regression,
2012, algorithm 1.

Without forgetting, the model keeps a triangle L, the factor of the posterior covariance of the function at the vectors:
Sigma = L L'.  The invariant: Sigma is a covariance whatever the bits of L are, and every variance is a sum of squares.
Rounding changes L by parts of itself: a sample multiplies columns by at most 1, a new vector is a new row, and one that
goes takes its row along.  Sigma falls far below the prior K: K - Sigma would have none of its digits, turn indefinite,
and diverge.

With forgetting, lambda Sigma + (1 - lambda) K would cost O(N^3) in a factor.  There the model keeps D = K - Sigma, of which
forgetting is only lambda D, errors included.
"""

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.frame import Status, refusal
from pykernel.algorithms.online import hooks
from pykernel.algorithms.online.budget import budgeted, compare
from pykernel.algorithms.online.candidates import largest_step
from pykernel.algorithms.online.inverse_gram import inverse_times
from pykernel.algorithms.online.projections import project_klms
from pykernel.algorithms.online.state import LARGEST_ELEMENT, LARGEST_FACTOR, OnlineModel, as_element
from pykernel.algorithms.online.validity import keeps
from pykernel.algorithms.packed import leave_factor, narrow_factor, row_of
from pykernel.algorithms.stages import noise, trust
from pykernel.dialect import DIM, Bool, Constant, Index, Real, Struct, between, floor_shift, kernel, real, sqrt
from pykernel.dialect.program import Entry

LEAST_LEARNED = Constant(float32=2.0**-20, float64=2.0**-49)
"""Smaller shares of a variance, of one sample, are lost in rounding."""
LARGEST_ERROR = Constant(float32=1e15, float64=1e120)
"""Far above any error, in label limits, from which the function's variance is learned."""
ROUNDED = Constant(float32=2.0**-36, float64=2.0**-94)
"""What each sample's roundings of multipliers add to a variance, times the ridge, in parts of the prior: 4,096 times the
square of a rounding.  Multipliers are 1 / sqrt(ridge) at most.

With such an error at each sample, and noise r, what can be known comes to rest at a variance of sqrt(ROUNDED r / ridge).  Below,
Sigma stays as it is, and the mean learns on: else Sigma would fall to what is not true, and the errors would add up.
"""
LEAST_ROOT = Constant(2.0**-50)
"""Smaller standard deviations, in parts of the prior, count as zero: their squares would leave the range of float32."""
WEIGHT_MOST = Constant(1_000_000.0)
"""The estimate of the function's variance reaches back so many samples at most."""


class Posterior(Struct):
    """What KRLS-T knows of the function beside its mean."""

    # with forgetting: D = K - Sigma, prior minus posterior covariance of the function at the expansion vectors
    deficit: between(Real[N_MAX, N_MAX], -LARGEST_ELEMENT, LARGEST_ELEMENT)
    # without: L of Sigma = L L', packed; its rows are in the order in which the vectors came
    root: between(Real[N_MAX * (N_MAX + 1) // 2], -LARGEST_FACTOR, LARGEST_FACTOR)
    power: between(Real, 0, "power_limit")  # estimated variance of the function, in units of label_max_abs^2
    weight: between(Real, 0, WEIGHT_MOST * 2)  # number of samples behind that estimate
    order: between(Index[N_MAX], 0, N_MAX - 1)  # the vector of each row of L


class KrlsTModel(OnlineModel):
    parts = (Posterior,)


@kernel
def noise_at(m: KrlsTModel) -> Real:
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
def vector_of(m: KrlsTModel, i: Index) -> Index:
    """The vector of row i of L.  No loop leaves the arrays, even if the memory was overwritten."""
    vector = m.order[i]
    if vector < 0 or vector >= len(m.v):
        return 0
    return vector


@kernel
def foresee_by_factor(m: KrlsTModel) -> None:
    """Compute a = L'u, p = L a and the variance kappa + a'a.  O(N^2)."""
    n = m.n[0]
    for j in range(n):
        m.loading[j] = real(0)
    row = 0
    for i in range(n):
        u = m.u[vector_of(m, i)]
        for j in range(i + 1):
            m.loading[j] += m.root[row + j] * u
        row = row + i + 1
    spread = m.kappa[0]
    row = 0
    for i in range(n):
        p = real(0)
        for j in range(i + 1):
            p += m.root[row + j] * m.loading[j]
        m.h[vector_of(m, i)] = p
        spread += m.loading[i] * m.loading[i]
        row = row + i + 1
    # only rounding, or a forged state, exceeds the prior variance
    m.spread[0] = clipped(spread, real(0), m.ridge_diagonal)


@kernel
def foresee_by_deficit(m: KrlsTModel) -> None:
    """Compute h = lambda D u = k - p and the variance 1 + ridge - u'h.  O(N^2)."""
    n = m.n[0]
    reduction = real(0)
    for i in range(n):
        h = real(0)
        for j in range(n):
            h += m.deficit[i, j] * m.u[j]
        h = m.forgetting * h
        # h is a covariance with the sample; the limit keeps rounding errors from growing
        h = clipped(h, -m.ridge_diagonal, m.ridge_diagonal)
        m.h[i] = h
        reduction += m.u[i] * h
    # rounding must not take the variance out of its range
    m.spread[0] = clipped(m.ridge_diagonal - reduction, real(0), m.ridge_diagonal)


@kernel
def foresee(m: KrlsTModel) -> None:
    """Compute the posterior variance of the function at the sample, and its covariances p with the function at the vectors."""
    if m.forgets:
        foresee_by_deficit(m)
    else:
        foresee_by_factor(m)


@kernel
def propose_posterior(m: KrlsTModel) -> None:
    """Propose the posterior mean: [sqrt(lambda) alpha - g P (k - p); g], where g = e / s_y^2.  O(N^2).

    s_y^2 = noise + the variance of foresee().  Van Vaerenbergh et al. 2012, algorithm 1.
    """
    n = m.n[0]
    foresee(m)
    inverse_times(m, m.h, m.ph, n)
    if not m.forgets:
        # P (k - p) = u - P p, of a p that has all its digits
        for i in range(n):
            m.ph[i] = m.u[i] - m.ph[i]
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
def learn_power(m: KrlsTModel, inverse: Real) -> None:
    """Update the estimate of the function's variance, given 1 / s_y^2."""
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


@kernel
def learn_deficit(m: KrlsTModel, inverse: Real) -> None:
    """Update D = lambda D + p p' / s_y^2.  Afterwards p is in h.  O(N^2)."""
    n = m.n[0]
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
            m.deficit[i, j] = as_element(m.forgetting * m.deficit[i, j] + share * m.h[j])


@kernel
def border_deficit(m: KrlsTModel, r: Index, n: Index) -> None:
    """Write the sample's row and column of D, as vector r of n: k - p noise / s_y^2.  O(N)."""
    share = m.spread[0] * (real(1) / (noise_at(m) + m.spread[0]))
    for j in range(n):
        if j != r:
            value = clipped(m.k[j] - m.h[j] + m.h[j] * share, -m.ridge_diagonal, m.ridge_diagonal)
            m.deficit[r, j] = value
            m.deficit[j, r] = value
    m.deficit[r, r] = m.ridge_diagonal - m.spread[0] + m.spread[0] * share


@kernel
def learn_factor(m: KrlsTModel) -> None:
    """Update L, and prepare the row that the sample gets if it is stored.  O(N^2)."""
    n = m.n[0]
    kappa = m.kappa[0]
    scatter = noise_at(m)
    known = real(0)
    for j in range(n):
        known += m.loading[j] * m.loading[j]
    if known * known * m.kappa_least >= ROUNDED * scatter:
        narrow_factor(m.root, m.loading, m.h, m.ph, scatter, kappa, n)
    for j in range(n):
        m.loading[j] = clipped(m.loading[j], -m.ridge_diagonal, m.ridge_diagonal)
    m.loading[n] = sqrt(kappa * (scatter / (scatter + kappa)))


@kernel
def propose(m: KrlsTModel) -> None:
    """Propose the posterior mean.  O(N^2)."""
    if m.unsure:
        m.label_noise[0] = noise(m)
    propose_posterior(m)


@kernel
def adapt(m: KrlsTModel, close: Bool) -> Bool:
    """The posterior mean, with the sample projected on the vectors."""
    propose(m)
    fits = largest_step(m) <= m.alpha_limit
    project_klms(m, m.n[0])
    return fits


@kernel
def assimilate(m: KrlsTModel, stored: Bool) -> None:
    """The covariance learns the sample, whether or not it is stored.  O(N^2)."""
    inverse = real(1) / (noise_at(m) + m.spread[0])
    learn_power(m, inverse)
    if m.forgets:
        learn_deficit(m, inverse)
    else:
        learn_factor(m)


@kernel
def row_with(m: KrlsTModel, r: Index) -> Index:
    """The row of L that has vector r."""
    for i in range(m.n[0]):
        if m.order[i] == r:
            return i
    return 0


@kernel
def enter(m: KrlsTModel, r: Index) -> None:
    """The sample has become vector r, and the last row of L.  O(N)."""
    if m.forgets:
        border_deficit(m, r, m.n[0])
    else:
        last = m.n[0] - 1
        row = row_of(last)
        for j in range(last + 1):
            m.root[row + j] = m.loading[j]
        m.order[last] = r


@kernel
def leave(m: KrlsTModel, r: Index) -> None:
    """Forget vector r's row and column of Sigma.  O(N) in D, O(N^2) in L."""
    if m.forgets:
        for j in range(m.n[0]):
            m.deficit[r, j] = real(0)
            m.deficit[j, r] = real(0)
    else:
        last = m.n[0] - 1
        place = row_with(m, r)
        leave_factor(m.root, m.loading, m.h, m.ph, place, last + 1, LEAST_ROOT)
        for i in range(place, last):
            m.order[i] = m.order[i + 1]
        m.order[last] = 0


@kernel
def move(m: KrlsTModel, r: Index, last: Index) -> None:
    """Move the last row and column of Sigma.  O(N)."""
    if m.forgets:
        for j in range(m.n[0]):
            m.deficit[r, j] = m.deficit[last, j]
            m.deficit[last, j] = real(0)
        for j in range(m.n[0]):
            m.deficit[j, r] = m.deficit[j, last]
            m.deficit[j, last] = real(0)
    elif r < last:
        m.order[row_with(m, last)] = r


@kernel
def vacant(m: KrlsTModel, i: Index, j: Index) -> Bool:
    """D, or L, is zero where a place is not in use."""
    if m.forgets:
        return m.deficit[i, j] == real(0)
    if j > i:
        return True
    return m.root[floor_shift(i * (i + 1), 1) + j] == real(0)


@kernel
def keeps_order(m: KrlsTModel) -> Bool:
    """Whether learning could have led to this state: also, each vector has a row.  O(N^2 + N D)."""
    if not m.forgets:
        for i in range(len(m.v)):
            if i >= m.n[0]:
                if m.order[i] != 0:
                    return False
            else:
                if m.order[i] >= m.n[0]:
                    return False
                for j in range(i):
                    if m.order[j] == m.order[i]:
                        return False
    return keeps(m)


@kernel
def remembered(m: KrlsTModel, value: Real) -> Real:
    """Forgetting takes the mean towards zero before the sample is learned."""
    if m.forgets:
        return m.root_forgetting * value
    return value


@kernel
def variance(m: KrlsTModel, x: Real[DIM], y: Real[1]) -> Index:
    """Write to y the expected variance of the label around f(x).  Its unit is the square of the label's unit.

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
        # the part of the rule's answer that the gain leaves out, of the output where it is largest
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
        hooks.move: move,
        hooks.vacant: vacant,
        hooks.solves: hooks.always,
        hooks.spreads: hooks.always,
        frame.remembered: remembered,
        frame.keeps: keeps_order,
    },
    KrlsTModel,
    (Posterior,),
    (Entry("variance", variance, "question"),),
)
