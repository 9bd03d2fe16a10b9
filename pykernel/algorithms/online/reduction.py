"""Keeping the expansion within its budget (Mitchinson et al. 2003, section 2).

This module decides which vector to remove, and how the others replace it.

Candidates for removal are the n stored vectors and, as number n, the newest sample.  The newest sample takes no memory
until it is certain to stay.  The candidates' multipliers are those after learning the sample.  All scores together
take O(N^2) with matrices, or O(N D) without.

Where k(x, x) is not 1 for every x, the normalised kernel k(a, b) / sqrt(k(a, a) k(b, b)) is used.  Then
f(x) / sqrt(k(x, x)) is an expansion of the normalised kernel, and the stored multipliers are alpha_i sqrt(k(v_i, v_i)).
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelFunction
from pykernel.algorithms.kernels import gaussian, one_minus_exp
from pykernel.algorithms.online.complex_inverse import (
    border_complex,
    express_complex,
    project_lsridge,
    release_complex,
    ridge_diagonal,
    shrink,
)
from pykernel.algorithms.online.hooks import fills, leave, move
from pykernel.algorithms.online.inverse_gram import (
    border,
    border_inverse,
    border_squared,
    express,
    inverse_column,
    inverse_diagonal,
    inverse_norms,
    inverse_times,
    penalised_losses,
    release,
    release_inverse,
    release_squared,
    watch,
)
from pykernel.algorithms.online.neighbours import (
    find_neighbour,
    introduce_neighbour,
    introduce_overlap,
    isolation,
    lose_neighbour,
    lose_overlap,
    measure_row,
    renew_overlap,
    unsure,
)
from pykernel.algorithms.online.state import (
    AGE_MOST,
    FAINT,
    FRESH,
    SEARCHES,
    Metric,
    OnlineModel,
    Projection,
    Tie,
    kept,
    place,
    settle,
)
from pykernel.dialect import DIM, Bool, Index, Real, absolute, kernel, real

# --------------------------------------------------------------------------------------------------- candidates


@kernel
def only_grows(m: OnlineModel) -> Bool:
    """Whether no stored vector is ever removed."""
    if m.before or m.truncates_old or m.truncates_small:
        return False
    return m.newest_only or (fills(m) and not m.thresholds)


@kernel
def candidates(m: OnlineModel) -> Index:
    """Number of candidates for removal."""
    if m.rounds:
        return m.n[0] + m.newest[0]
    return m.n[0] + 1


@kernel
def stand_alone(m: OnlineModel) -> None:
    """The stored vectors, as they are, are the only candidates: there is no newest sample.  O(N)."""
    m.newest[0] = 0
    m.inverse_kappa[0] = real(0)
    for i in range(m.n[0]):
        for o in range(len(m.error)):
            m.beta[i, o] = m.alpha[i, o]


@kernel
def multiplier(m: OnlineModel, i: Index, o: Index) -> Real:
    """A candidate's new multiplier, before any removal."""
    if m.drafts:
        return m.beta[i, o]
    if i < m.n[0]:
        return kept(m, m.alpha[i, o])
    return m.step[o]


@kernel
def magnitude(m: OnlineModel, i: Index) -> Real:
    """|alpha_i|: the largest of a candidate's multipliers."""
    largest = absolute(multiplier(m, i, 0))
    if not m.single:
        for o in range(1, len(m.alpha[0])):
            a = absolute(multiplier(m, i, o))
            if a > largest:
                largest = a
    return largest


@kernel
def energy(m: OnlineModel, i: Index, part: Real) -> Real:
    """part times the sum over o of alpha_i^2, computed without subnormal numbers."""
    a = multiplier(m, i, 0)
    total = a * (a * part)
    if not m.single:
        for o in range(1, len(m.alpha[0])):
            a = multiplier(m, i, o)
            total += a * (a * part)
    return total


@kernel
def age_of(m: OnlineModel, i: Index) -> Index:
    """Number of samples learned since a candidate was stored or repeated; -1 for the newest sample."""
    if i == m.n[0]:
        return -1
    return m.age[i]


# ------------------------------------------------------------------------------------------------------- scores


@kernel
def survey(m: OnlineModel) -> None:
    """Compute the numbers that the candidates' scores need.  O(N^2) or less."""
    if m.metric == Metric.KLMS or m.metric == Metric.MKLMS or m.metric == Metric.SUP:
        inverse_diagonal(m)
    if m.metric == Metric.LS:
        inverse_norms(m)
    if m.metric == Metric.LSREG:
        penalised_losses(m)
    if m.metric == Metric.LSRIDGE or m.projection == Projection.LSRIDGE:
        shrink(m, candidates(m))
    if m.metric == Metric.LSRIDGE:
        ridge_diagonal(m, candidates(m))
    if m.metric == Metric.FMKLMS:
        count = candidates(m)
        for i in range(count):
            m.score[i] = weighted_isolation(m, i)


@kernel
def weighted_isolation(m: OnlineModel, i: Index) -> Real:
    """alpha_i^2 (1 - max_j k_ij), or a lower bound.  Mitchinson et al. 2003, eq. 18."""
    if m.function == KernelFunction.GAUSSIAN:
        return energy(m, i, one_minus_exp(m.gamma * isolation(m, i)))
    return energy(m, i, isolation(m, i))


@kernel
def ridge_loss(m: OnlineModel, i: Index) -> Real:
    """sum_o shrunk_i^2 / W_ii."""
    part = real(1) / m.score[i]
    total = real(0)
    for o in range(len(m.alpha[0])):
        total += m.shrunk[i, o] * (m.shrunk[i, o] * part)
    return total


@kernel
def cost(m: OnlineModel, i: Index) -> Real:
    """The cost of removing a candidate, after survey().  O(1) for each output.  Mitchinson et al. 2003, section 2."""
    if m.metric == Metric.MAGNITUDE:
        return magnitude(m, i)
    if m.metric == Metric.AGE:
        return real(0)  # ages are compared as they are, see precedes()
    if m.metric == Metric.KLMS:
        return real(1) / m.score[i]
    if m.metric == Metric.MKLMS:
        return energy(m, i, real(1) / m.score[i])
    if m.metric == Metric.SUP:
        return magnitude(m, i) * (real(1) / m.score[i])
    if m.metric == Metric.LS:
        return energy(m, i, real(1) / m.score[i])
    if m.metric == Metric.LSREG or m.metric == Metric.FMKLMS:
        return m.score[i]
    if m.metric == Metric.LSRIDGE:
        return ridge_loss(m, i)
    if m.metric == Metric.FKLMS:
        return isolation(m, i)
    return overlap_score(m, i)


@kernel
def score(m: OnlineModel, i: Index) -> Real:
    """A candidate's score: the cost of its removal, times its claim to stay if claims fade.  O(1) for each output."""
    if m.fades:
        if i < m.n[0] and m.claim[i] < real(1):
            return m.claim[i] * cost(m, i)
    return cost(m, i)


@kernel
def overlap_of(m: OnlineModel, i: Index) -> Real:
    """A candidate's sum of k_ij^2 over the others.  O(1), for the newest sample O(N)."""
    n = m.n[0]
    if i < n:
        if m.rounds and m.newest[0] == 0:
            return m.overlap[i]
        return m.overlap[i] + m.k[i] * m.k[i]
    total = real(0)
    for j in range(n):
        total += m.k[j] * m.k[j]
    return total


@kernel
def overlap_score(m: OnlineModel, i: Index) -> Real:
    """1 - sum_j k_ij^2, with AFMKLMS times alpha_i^2.  Mitchinson et al. 2003, section 5."""
    rest = real(1) - overlap_of(m, i)
    if m.metric == Metric.AFKLMS:
        return rest
    return energy(m, i, rest)


@kernel
def precedes(m: OnlineModel, i: Index, r: Index) -> Bool:
    """Whether to remove candidate i rather than r, if both have the same score."""
    if m.metric == Metric.AGE:
        if age_of(m, i) != age_of(m, r):
            return age_of(m, i) > age_of(m, r)
    if m.tie == Tie.NEWEST:
        return age_of(m, i) < age_of(m, r)
    if m.tie == Tie.OLDEST:
        return age_of(m, i) > age_of(m, r)
    return magnitude(m, i) < magnitude(m, r)


@kernel
def first_certain(m: OnlineModel, count: Index) -> Index:
    """The first candidate whose score is exact, not a lower bound.  O(N)."""
    for i in range(count):
        if not unsure(m, i):
            return i
    return 0


@kernel
def first_bound(m: OnlineModel, count: Index) -> Index:
    """The first candidate whose score is only a lower bound; count, if there is none.  O(N)."""
    for i in range(count):
        if unsure(m, i):
            return i
    return count


@kernel
def cheapest(m: OnlineModel) -> Index:
    """Position of the candidate with the smallest score.  precedes() and then the position decide ties."""
    count = candidates(m)
    r = 0
    if m.keeps_neighbours:
        r = first_certain(m, count)
    least = score(m, r)
    first = r + 1
    for i in range(first, count):
        if m.keeps_neighbours:
            if unsure(m, i):
                continue
        value = score(m, i)
        if value < least or (value == least and precedes(m, i, r)):
            least = value
            r = i
    return r


@kernel
def resolve_neighbours(m: OnlineModel) -> None:
    """Search for the lost neighbours that the choice depends on, at most SEARCHES.  O(N), and O(N D) for each search.

    A score that is computed from a lower bound is a lower bound.  The smallest exact score is certainly the smallest
    if every lower bound is larger.
    """
    count = candidates(m)
    for turn in range(SEARCHES):
        lost = count
        least = real(0)
        for i in range(count):
            value = score(m, i)
            if i == 0 or value <= least:
                bound = unsure(m, i)
                # an exact score must not hide an equal lower bound
                if i == 0 or value < least or bound:
                    least = value
                    lost = count
                    if bound:
                        lost = i
        if m.before and lost == count:
            # every sample removes a vector: use the remaining search for another lost neighbour
            lost = first_bound(m, count)
        if lost == count:
            break
        if lost < m.n[0]:
            m.searched[turn] = lost
            m.lost[turn] = m.neighbour[lost]
            m.searches[0] = turn + 1
        find_neighbour(m, lost)
        if m.metric == Metric.FMKLMS:
            m.score[lost] = weighted_isolation(m, lost)


@kernel
def unsearch(m: OnlineModel) -> None:
    """Take back what the searches of an update wrote that is refused: it changes nothing."""
    if m.keeps_neighbours:
        for turn in range(m.searches[0]):
            m.neighbour[m.searched[turn]] = m.lost[turn]


@kernel
def choose(m: OnlineModel) -> Index:
    """Position of the candidate to remove.  O(N^2 + N D) with a Gram matrix, mostly O(N D) without one."""
    if m.newest_only:
        if only_grows(m) or candidates(m) > m.n[0]:
            survey_newest(m)
            return m.n[0]
    survey(m)
    if m.keeps_neighbours:
        resolve_neighbours(m)
    return cheapest(m)


@kernel
def survey_newest(m: OnlineModel) -> None:
    """Compute the numbers that the newest sample's score needs."""
    n = m.n[0]
    if m.metric == Metric.KLMS or m.metric == Metric.MKLMS or m.metric == Metric.SUP:
        m.score[n] = m.inverse_kappa[0]
    if m.metric == Metric.LS:
        total = real(1)
        for j in range(n):
            total += m.u[j] * m.u[j]
        m.score[n] = total * m.inverse_kappa[0] * m.inverse_kappa[0]
    if m.metric == Metric.LSREG:
        penalised_losses(m)
    if m.metric == Metric.LSRIDGE or m.projection == Projection.LSRIDGE:
        shrink(m, n + 1)
    if m.metric == Metric.LSRIDGE:
        ridge_diagonal(m, n + 1)
    if m.metric == Metric.FMKLMS:
        m.score[n] = weighted_isolation(m, n)


@kernel
def negligible(m: OnlineModel, r: Index) -> Bool:
    """Whether the chosen candidate's score is at most lambda_max."""
    value = score(m, r)
    if m.metric == Metric.FKLMS and m.function == KernelFunction.GAUSSIAN:
        value = one_minus_exp(m.gamma * value)
    if m.metric == Metric.LS or m.metric == Metric.LSRIDGE:
        value = value * (real(1) / real(candidates(m)))
    return value <= m.lambda_max


# -------------------------------------------------------------------------------------------------- projections


@kernel
def project_klms(m: OnlineModel, r: Index) -> None:
    """beta = alpha - P_:r alpha_r / P_rr, where P includes the newest sample.  Needs P_:r in p.  O(N).

    Mitchinson et al. 2003, eq. 12.
    """
    n = m.n[0]
    if only_grows(m) or r == n:
        for i in range(n):
            for o in range(len(m.alpha[0])):
                m.beta[i, o] += m.u[i] * m.beta[n, o]
    else:
        share = m.u[r] * m.inverse_kappa[0]
        scale = real(1) / (m.p[r] + m.u[r] * share)
        for o in range(len(m.alpha[0])):
            g = m.beta[r, o] * scale
            for i in range(n):
                m.beta[i, o] -= (m.p[i] + m.u[i] * share) * g
            m.beta[n, o] += share * g


@kernel
def project_fklms(m: OnlineModel, r: Index) -> None:
    """beta = alpha + K_:r alpha_r, as if the other vectors were orthogonal.  Needs row.  O(N).

    Mitchinson et al. 2003, eq. 16.
    """
    n = m.n[0]
    for i in range(n):
        if i != r:
            value = m.k[i]
            if r < n:
                value = gaussian(m.gamma, m.row[i]) if m.function == KernelFunction.GAUSSIAN else m.row[i]
            for o in range(len(m.alpha[0])):
                m.beta[i, o] += value * m.beta[r, o]
    if r < n:
        for o in range(len(m.alpha[0])):
            m.beta[n, o] += m.k[r] * m.beta[r, o]


@kernel
def project_bounded(m: OnlineModel, r: Index) -> None:
    """beta = alpha + K_:r alpha_r, where K_:r is divided by the sum of its magnitudes if the sum is above 1.  O(N).

    Mitchinson et al. 2003, eq. 16, treats the other vectors as orthogonal.  Where vectors are close together, their
    parts would add up to more than alpha_r, and multipliers would grow without limit.  The division prevents this.
    Needs row.
    """
    n = m.n[0]
    total = real(0)
    for i in range(n):
        if i != r:
            m.q[i] = m.k[i]
            if r < n:
                m.q[i] = gaussian(m.gamma, m.row[i]) if m.function == KernelFunction.GAUSSIAN else m.row[i]
            total += absolute(m.q[i])
    if not m.before and r < n:
        # in rounds after the sample was stored, the loop above has counted the sample already
        if not (m.rounds and m.newest[0] == 0):
            total += absolute(m.k[r])
    scale = real(1)
    if total > real(1):
        scale = real(1) / total
    for o in range(len(m.alpha[0])):
        part = m.beta[r, o] * scale
        for i in range(n):
            if i != r:
                m.beta[i, o] += m.q[i] * part
        if r < n:
            m.beta[n, o] += m.k[r] * part


@kernel
def project_ls(m: OnlineModel, r: Index) -> None:
    """beta = alpha - Q_:r alpha_r / Q_rr, where Q = P^2 and P includes the newest sample.  O(N^2).

    Mitchinson et al. 2003, eq. 14.
    """
    n = m.n[0]
    # first p = P_:r, then q = P p
    share = -m.inverse_kappa[0]
    if is_stored(m, r):
        share = m.u[r] * m.inverse_kappa[0]
        inverse_column(m, r)
    else:
        for i in range(n):
            m.p[i] = real(0)
    for i in range(n):
        m.p[i] += m.u[i] * share
    m.p[n] = -share
    inverse_times(m, m.p, m.q, n)
    product = -m.p[n]
    for i in range(n):
        product += m.u[i] * m.p[i]
    product = product * m.inverse_kappa[0]
    for i in range(n):
        m.q[i] += m.u[i] * product
    m.q[n] = -product
    scale = real(1) / m.q[r]
    for o in range(len(m.alpha[0])):
        g = m.beta[r, o] * scale
        for i in range(n):
            m.beta[i, o] -= m.q[i] * g
        m.beta[n, o] -= m.q[n] * g


@kernel
def is_stored(m: OnlineModel, r: Index) -> Bool:
    """Whether a candidate is a stored vector."""
    if m.newest_only:
        return False
    return r < m.n[0]


@kernel
def locate(m: OnlineModel, r: Index) -> None:
    """Compute the numbers that take_out() needs for stored vector r.  O(N^2 + N D)."""
    if m.projection == Projection.FKLMS or m.projection == Projection.BOUNDED or m.keeps_neighbours or m.keeps_overlap:
        measure_row(m, r)
    if m.keeps_factor:
        inverse_column(m, r)


@kernel
def project(m: OnlineModel, r: Index) -> Bool:
    """Change the multipliers in beta so that the other vectors replace candidate r.  False: one is out of range.

    Also computes the numbers that take_out() needs.
    """
    if m.projection == Projection.LSRIDGE:
        project_lsridge(m, r, candidates(m))
    if m.projection == Projection.LS:
        project_ls(m, r)
    if is_stored(m, r):
        locate(m, r)
    if m.projection == Projection.KLMS:
        project_klms(m, r)
    if m.projection == Projection.FKLMS:
        project_fklms(m, r)
    if m.projection == Projection.BOUNDED:
        project_bounded(m, r)
    return bearable(m, r)


@kernel
def bearable(m: OnlineModel, r: Index) -> Bool:
    """Whether every multiplier, except that of r, is within its range."""
    if m.drafts:
        count = candidates(m)
        for i in range(count):
            if i != r:
                for o in range(len(m.alpha[0])):
                    if not (absolute(m.beta[i, o]) <= m.alpha_limit):
                        return False
    return True


@kernel
def commit(m: OnlineModel) -> None:
    """Copy the new multipliers of the stored vectors to the model."""
    if m.drafts:
        for i in range(m.n[0]):
            for o in range(len(m.alpha[0])):
                m.alpha[i, o] = settle(m.beta[i, o])
    elif m.decays:
        for i in range(m.n[0]):
            for o in range(len(m.alpha[0])):
                m.alpha[i, o] = kept(m, m.alpha[i, o])


# --------------------------------------------------------------------------------------------- vectors come and go


@kernel
def take_out(m: OnlineModel, r: Index) -> None:
    """Remove vector r from the stored matrices; its place stays.  Needs P_:r in p, and distances in row."""
    if m.keeps_squared:
        release_squared(m, r)
    if m.keeps_inverse:
        release_inverse(m, r)
    if m.keeps_factor:
        release(m, r)
    if m.keeps_complex:
        release_complex(m, r)
    if m.keeps_neighbours:
        lose_neighbour(m, r)
    if m.keeps_overlap:
        lose_overlap(m, r)
    leave(m, r)


@kernel
def put_in(m: OnlineModel, x: Real[DIM], r: Index) -> None:
    """Store the sample as vector r, in a free place or after the last vector.  Mitchinson et al. 2003, eq. 3-6."""
    n = m.n[0]
    fresh = only_grows(m) or r == n
    count = n + 1
    if not fresh:
        count = n
        m.k[r] = real(0)
    if m.keeps_factor:
        if not fresh:
            express(m, n - 1, n)
        if m.keeps_squared:
            border_squared(m, r, count)
        if m.keeps_inverse:
            border_inverse(m, r, count)
        border(m, count - 1, r, count)
    if m.keeps_complex:
        if not fresh:
            express_complex(m, n)
        border_complex(m, r, count)
    place(m, x, r)
    if m.keeps_diagonal:
        m.diagonal[r] = m.own[0]
    for o in range(len(m.alpha[0])):
        m.alpha[r, o] = settle(multiplier(m, n, o))
    m.n[0] = count
    if m.keeps_neighbours:
        introduce_neighbour(m, r)
    if m.keeps_overlap:
        introduce_overlap(m, r)
    if m.keeps_ages:
        m.age[r] = 0
    if m.fades:
        m.claim[r] = FRESH
    if m.keeps_factor:
        if only_grows(m):
            # nothing is removed, so nothing is measured; older states have this field
            m.probe[0] = m.probe[0] if m.probe[0] < count else 0
        elif not fresh:
            watch(m, r)


@kernel
def close_gap(m: OnlineModel, r: Index) -> None:
    """Move the last vector to place r, whose vector was removed.  O(N + D), and O(N) for each matrix."""
    last = m.n[0] - 1
    # this cannot happen, but GCC does not know that and warns
    if last >= len(m.v):
        return
    for j in range(len(m.v[0])):
        m.v[r, j] = m.v[last, j]
        m.v[last, j] = real(0)
    for o in range(len(m.alpha[0])):
        m.alpha[r, o] = m.alpha[last, o]
        m.alpha[last, o] = real(0)
    if m.keeps_diagonal:
        m.diagonal[r] = m.diagonal[last]
        m.diagonal[last] = real(0)
    if m.keeps_ages:
        m.age[r] = m.age[last]
        m.age[last] = 0
    if m.fades:
        m.claim[r] = m.claim[last]
        m.claim[last] = real(0)
    if m.keeps_neighbours:
        m.neighbour[r] = m.neighbour[last]
        m.neighbour[last] = real(0)
    if m.keeps_overlap:
        m.overlap[r] = m.overlap[last]
        m.overlap[last] = real(0)
    if m.keeps_factor:
        for i in range(last):
            m.m[i, r] = m.m[i, last]
            m.m[i, last] = real(0)
    if m.keeps_factor or m.keeps_overlap:
        if m.probe[0] > last:
            m.probe[0] = last
    for j in range(m.n[0]):
        if m.keeps_inverse:
            m.inverse[r, j] = m.inverse[last, j]
            m.inverse[last, j] = real(0)
        if m.keeps_squared:
            m.squared[r, j] = m.squared[last, j]
            m.squared[last, j] = real(0)
        if m.keeps_complex:
            m.z_re[r, j] = m.z_re[last, j]
            m.z_im[r, j] = m.z_im[last, j]
            m.z_re[last, j] = real(0)
            m.z_im[last, j] = real(0)
    for j in range(m.n[0]):
        if m.keeps_inverse:
            m.inverse[j, r] = m.inverse[j, last]
            m.inverse[j, last] = real(0)
        if m.keeps_squared:
            m.squared[j, r] = m.squared[j, last]
            m.squared[j, last] = real(0)
        if m.keeps_complex:
            m.z_re[j, r] = m.z_re[j, last]
            m.z_im[j, r] = m.z_im[j, last]
            m.z_re[j, last] = real(0)
            m.z_im[j, last] = real(0)
    move(m, r, last)
    m.n[0] = last


@kernel
def grow_older(m: OnlineModel) -> None:
    """Update ages and claims after one more sample was learned."""
    if m.fades:
        for i in range(m.n[0]):
            # the claim that this sample supports
            renewed = FRESH * absolute(m.k[i])
            faded = m.fading * m.claim[i]
            m.claim[i] = clipped(renewed if renewed > faded else faded, FAINT, FRESH)
    if m.keeps_ages:
        for i in range(m.n[0]):
            if m.age[i] < AGE_MOST:
                m.age[i] += 1
    if m.keeps_overlap:
        if m.n[0] > 0:
            turn = m.probe[0]
            if turn < 0 or turn >= m.n[0]:
                turn = 0
            m.probe[0] = turn + 1
            renew_overlap(m, turn)


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
