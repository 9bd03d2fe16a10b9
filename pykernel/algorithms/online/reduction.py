"""Keeping the expansion within its budget (Mitchinson et al. 2003, section 2).

This module decides which vector to remove, and how the others replace it.

Candidates for removal are the n stored vectors and, as number n, the newest sample.  The newest sample takes no memory
until it is certain to stay.  The candidates' multipliers are those after learning the sample.  All scores together
take O(N^2) with matrices, or O(N D) without.

Where k(x, x) is not 1 for every x, the normalised kernel k(a, b) / sqrt(k(a, a) k(b, b)) is used.  Then
f(x) / sqrt(k(x, x)) is an expansion of the normalised kernel, and the stored multipliers are alpha_i sqrt(k(v_i, v_i)).
"""

from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.kernel_choice import KernelConfig, KernelFunction
from pykernel.algorithms.kernels import gaussian, one_minus_exp
from pykernel.algorithms.online.complex_inverse import (
    border_complex,
    express_complex,
    project_lsridge,
    release_complex,
    ridge_diagonal,
    shrink,
)
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
    Expansion,
    Metric,
    OnlineConfig,
    Projection,
    Rule,
    Tie,
    Work,
    kept,
    place,
    settle,
)
from pykernel.dialect import DIM, Bool, Index, Real, absolute, kernel, real

# --------------------------------------------------------------------------------------------------- candidates


@kernel
def candidates(s: Expansion, w: Work, c: OnlineConfig) -> Index:
    """Number of candidates for removal."""
    if c.rounds:
        return s.n[0] + w.newest[0]
    return s.n[0] + 1


@kernel
def multiplier(s: Expansion, w: Work, c: OnlineConfig, i: Index, o: Index) -> Real:
    """A candidate's new multiplier, before any removal."""
    if c.drafts:
        return w.beta[i, o]
    if i < s.n[0]:
        return kept(c, s.alpha[i, o])
    return w.step[o]


@kernel
def magnitude(s: Expansion, w: Work, c: OnlineConfig, i: Index) -> Real:
    """|alpha_i|: the largest of a candidate's multipliers."""
    largest = absolute(multiplier(s, w, c, i, 0))
    if not c.single:
        for o in range(1, len(s.alpha[0])):
            a = absolute(multiplier(s, w, c, i, o))
            if a > largest:
                largest = a
    return largest


@kernel
def energy(s: Expansion, w: Work, c: OnlineConfig, i: Index, part: Real) -> Real:
    """part times the sum over o of alpha_i^2, computed without subnormal numbers."""
    a = multiplier(s, w, c, i, 0)
    total = a * (a * part)
    if not c.single:
        for o in range(1, len(s.alpha[0])):
            a = multiplier(s, w, c, i, o)
            total += a * (a * part)
    return total


@kernel
def age_of(s: Expansion, i: Index) -> Index:
    """Number of samples learned since a candidate was stored or repeated; -1 for the newest sample."""
    if i == s.n[0]:
        return -1
    return s.age[i]


# ------------------------------------------------------------------------------------------------------- scores


@kernel
def survey(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Compute the numbers that the candidates' scores need.  O(N^2) or less."""
    if c.metric == Metric.KLMS or c.metric == Metric.MKLMS or c.metric == Metric.SUP:
        inverse_diagonal(s, w)
    if c.metric == Metric.LS:
        inverse_norms(s, w)
    if c.metric == Metric.LSREG:
        penalised_losses(s, w, c)
    if c.metric == Metric.LSRIDGE or c.projection == Projection.LSRIDGE:
        shrink(s, w, c, candidates(s, w, c))
    if c.metric == Metric.LSRIDGE:
        ridge_diagonal(s, w, c, candidates(s, w, c))
    if c.metric == Metric.FMKLMS:
        count = candidates(s, w, c)
        for i in range(count):
            w.score[i] = weighted_isolation(s, w, c, q, i)


@kernel
def weighted_isolation(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, i: Index) -> Real:
    """alpha_i^2 (1 - max_j k_ij), or a lower bound.  Mitchinson et al. 2003, eq. 18."""
    if q.function == KernelFunction.GAUSSIAN:
        return energy(s, w, c, i, one_minus_exp(q.gamma * isolation(s, w, c, i)))
    return energy(s, w, c, i, isolation(s, w, c, i))


@kernel
def ridge_loss(s: Expansion, w: Work, i: Index) -> Real:
    """sum_o shrunk_i^2 / W_ii."""
    part = real(1) / w.score[i]
    total = real(0)
    for o in range(len(s.alpha[0])):
        total += w.shrunk[i, o] * (w.shrunk[i, o] * part)
    return total


@kernel
def cost(s: Expansion, w: Work, c: OnlineConfig, i: Index) -> Real:
    """The cost of removing a candidate, after survey().  O(1) for each output.  Mitchinson et al. 2003, section 2."""
    if c.metric == Metric.MAGNITUDE:
        return magnitude(s, w, c, i)
    if c.metric == Metric.AGE:
        return real(0)  # ages are compared as they are, see precedes()
    if c.metric == Metric.KLMS:
        return real(1) / w.score[i]
    if c.metric == Metric.MKLMS:
        return energy(s, w, c, i, real(1) / w.score[i])
    if c.metric == Metric.SUP:
        return magnitude(s, w, c, i) * (real(1) / w.score[i])
    if c.metric == Metric.LS:
        return energy(s, w, c, i, real(1) / w.score[i])
    if c.metric == Metric.LSREG or c.metric == Metric.FMKLMS:
        return w.score[i]
    if c.metric == Metric.LSRIDGE:
        return ridge_loss(s, w, i)
    if c.metric == Metric.FKLMS:
        return isolation(s, w, c, i)
    return overlap_score(s, w, c, i)


@kernel
def score(s: Expansion, w: Work, c: OnlineConfig, i: Index) -> Real:
    """A candidate's score: the cost of its removal, times its claim to stay if claims fade.  O(1) for each output."""
    if c.fades:
        if i < s.n[0] and s.claim[i] < real(1):
            return s.claim[i] * cost(s, w, c, i)
    return cost(s, w, c, i)


@kernel
def overlap_of(s: Expansion, w: Work, c: OnlineConfig, i: Index) -> Real:
    """A candidate's sum of k_ij^2 over the others.  O(1), for the newest sample O(N)."""
    n = s.n[0]
    if i < n:
        if c.rounds and w.newest[0] == 0:
            return s.overlap[i]
        return s.overlap[i] + w.k[i] * w.k[i]
    total = real(0)
    for j in range(n):
        total += w.k[j] * w.k[j]
    return total


@kernel
def overlap_score(s: Expansion, w: Work, c: OnlineConfig, i: Index) -> Real:
    """1 - sum_j k_ij^2, with AFMKLMS times alpha_i^2.  Mitchinson et al. 2003, section 5."""
    rest = real(1) - overlap_of(s, w, c, i)
    if c.metric == Metric.AFKLMS:
        return rest
    return energy(s, w, c, i, rest)


@kernel
def precedes(s: Expansion, w: Work, c: OnlineConfig, i: Index, r: Index) -> Bool:
    """Whether to remove candidate i rather than r, if both have the same score."""
    if c.metric == Metric.AGE:
        if age_of(s, i) != age_of(s, r):
            return age_of(s, i) > age_of(s, r)
    if c.tie == Tie.NEWEST:
        return age_of(s, i) < age_of(s, r)
    if c.tie == Tie.OLDEST:
        return age_of(s, i) > age_of(s, r)
    return magnitude(s, w, c, i) < magnitude(s, w, c, r)


@kernel
def first_certain(s: Expansion, w: Work, c: OnlineConfig, count: Index) -> Index:
    """The first candidate whose score is exact, not a lower bound.  O(N)."""
    for i in range(count):
        if not unsure(s, w, c, i):
            return i
    return 0


@kernel
def first_bound(s: Expansion, w: Work, c: OnlineConfig, count: Index) -> Index:
    """The first candidate whose score is only a lower bound; count, if there is none.  O(N)."""
    for i in range(count):
        if unsure(s, w, c, i):
            return i
    return count


@kernel
def cheapest(s: Expansion, w: Work, c: OnlineConfig) -> Index:
    """Position of the candidate with the smallest score.  precedes() and then the position decide ties."""
    count = candidates(s, w, c)
    r = 0
    if c.keeps_neighbours:
        r = first_certain(s, w, c, count)
    least = score(s, w, c, r)
    first = r + 1
    for i in range(first, count):
        if c.keeps_neighbours:
            if unsure(s, w, c, i):
                continue
        value = score(s, w, c, i)
        if value < least or (value == least and precedes(s, w, c, i, r)):
            least = value
            r = i
    return r


@kernel
def resolve_neighbours(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Search for the lost neighbours that the choice depends on, at most SEARCHES.  O(N), and O(N D) for each search.

    A score that is computed from a lower bound is a lower bound.  The smallest exact score is certainly the smallest
    if every lower bound is larger.
    """
    count = candidates(s, w, c)
    for turn in range(SEARCHES):
        lost = count
        least = real(0)
        for i in range(count):
            value = score(s, w, c, i)
            if i == 0 or value <= least:
                bound = unsure(s, w, c, i)
                # an exact score must not hide an equal lower bound
                if i == 0 or value < least or bound:
                    least = value
                    lost = count
                    if bound:
                        lost = i
        if c.before and lost == count:
            # every sample removes a vector: use the remaining search for another lost neighbour
            lost = first_bound(s, w, c, count)
        if lost == count:
            break
        if lost < s.n[0]:
            w.searched[turn] = lost
            w.lost[turn] = s.neighbour[lost]
            w.searches[0] = turn + 1
        find_neighbour(s, c, q, lost)
        if c.metric == Metric.FMKLMS:
            w.score[lost] = weighted_isolation(s, w, c, q, lost)


@kernel
def unsearch(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Take back what the searches of an update wrote that is refused: it changes nothing."""
    if c.keeps_neighbours:
        for turn in range(w.searches[0]):
            s.neighbour[w.searched[turn]] = w.lost[turn]


@kernel
def choose(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> Index:
    """Position of the candidate to remove.  O(N^2 + N D) with a Gram matrix, mostly O(N D) without one."""
    if c.newest_only:
        if candidates(s, w, c) > s.n[0]:
            survey_newest(s, w, c, q)
            return s.n[0]
    survey(s, w, c, q)
    if c.keeps_neighbours:
        resolve_neighbours(s, w, c, q)
    return cheapest(s, w, c)


@kernel
def survey_newest(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Compute the numbers that the newest sample's score needs."""
    n = s.n[0]
    if c.metric == Metric.KLMS or c.metric == Metric.MKLMS or c.metric == Metric.SUP:
        w.score[n] = w.inverse_kappa[0]
    if c.metric == Metric.LS:
        total = real(1)
        for j in range(n):
            total += w.u[j] * w.u[j]
        w.score[n] = total * w.inverse_kappa[0] * w.inverse_kappa[0]
    if c.metric == Metric.LSREG:
        penalised_losses(s, w, c)
    if c.metric == Metric.LSRIDGE or c.projection == Projection.LSRIDGE:
        shrink(s, w, c, n + 1)
    if c.metric == Metric.LSRIDGE:
        ridge_diagonal(s, w, c, n + 1)
    if c.metric == Metric.FMKLMS:
        w.score[n] = weighted_isolation(s, w, c, q, n)


@kernel
def negligible(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, r: Index) -> Bool:
    """Whether the chosen candidate's score is at most lambda_max."""
    value = score(s, w, c, r)
    if c.metric == Metric.FKLMS and q.function == KernelFunction.GAUSSIAN:
        value = one_minus_exp(q.gamma * value)
    if c.metric == Metric.LS or c.metric == Metric.LSRIDGE:
        value = value * (real(1) / real(candidates(s, w, c)))
    return value <= c.lambda_max


# -------------------------------------------------------------------------------------------------- projections


@kernel
def project_klms(s: Expansion, w: Work, c: OnlineConfig, r: Index) -> None:
    """beta = alpha - P_:r alpha_r / P_rr, where P includes the newest sample.  Needs P_:r in p.  O(N).

    Mitchinson et al. 2003, eq. 12.
    """
    n = s.n[0]
    if r == n:
        for i in range(n):
            for o in range(len(s.alpha[0])):
                w.beta[i, o] += w.u[i] * w.beta[n, o]
    else:
        share = w.u[r] * w.inverse_kappa[0]
        scale = real(1) / (w.p[r] + w.u[r] * share)
        for o in range(len(s.alpha[0])):
            g = w.beta[r, o] * scale
            for i in range(n):
                w.beta[i, o] -= (w.p[i] + w.u[i] * share) * g
            w.beta[n, o] += share * g


@kernel
def project_fklms(s: Expansion, w: Work, q: KernelConfig, r: Index) -> None:
    """beta = alpha + K_:r alpha_r, as if the other vectors were orthogonal.  Needs row.  O(N).

    Mitchinson et al. 2003, eq. 16.
    """
    n = s.n[0]
    for i in range(n):
        if i != r:
            value = w.k[i]
            if r < n:
                value = gaussian(q.gamma, w.row[i]) if q.function == KernelFunction.GAUSSIAN else w.row[i]
            for o in range(len(s.alpha[0])):
                w.beta[i, o] += value * w.beta[r, o]
    if r < n:
        for o in range(len(s.alpha[0])):
            w.beta[n, o] += w.k[r] * w.beta[r, o]


@kernel
def project_bounded(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, r: Index) -> None:
    """beta = alpha + K_:r alpha_r, where K_:r is divided by the sum of its magnitudes if the sum is above 1.  O(N).

    Mitchinson et al. 2003, eq. 16, treats the other vectors as orthogonal.  Where vectors are close together, their
    parts would add up to more than alpha_r, and multipliers would grow without limit.  The division prevents this.
    Needs row.
    """
    n = s.n[0]
    total = real(0)
    for i in range(n):
        if i != r:
            w.q[i] = w.k[i]
            if r < n:
                w.q[i] = gaussian(q.gamma, w.row[i]) if q.function == KernelFunction.GAUSSIAN else w.row[i]
            total += absolute(w.q[i])
    if not c.before and r < n:
        # in rounds after the sample was stored, the loop above has counted the sample already
        if not (c.rounds and w.newest[0] == 0):
            total += absolute(w.k[r])
    scale = real(1)
    if total > real(1):
        scale = real(1) / total
    for o in range(len(s.alpha[0])):
        part = w.beta[r, o] * scale
        for i in range(n):
            if i != r:
                w.beta[i, o] += w.q[i] * part
        if r < n:
            w.beta[n, o] += w.k[r] * part


@kernel
def project_ls(s: Expansion, w: Work, c: OnlineConfig, r: Index) -> None:
    """beta = alpha - Q_:r alpha_r / Q_rr, where Q = P^2 and P includes the newest sample.  O(N^2).

    Mitchinson et al. 2003, eq. 14.
    """
    n = s.n[0]
    # first p = P_:r, then q = P p
    share = -w.inverse_kappa[0]
    if is_stored(s, c, r):
        share = w.u[r] * w.inverse_kappa[0]
        inverse_column(s, w, r)
    else:
        for i in range(n):
            w.p[i] = real(0)
    for i in range(n):
        w.p[i] += w.u[i] * share
    w.p[n] = -share
    inverse_times(s, w.p, w.q, n)
    product = -w.p[n]
    for i in range(n):
        product += w.u[i] * w.p[i]
    product = product * w.inverse_kappa[0]
    for i in range(n):
        w.q[i] += w.u[i] * product
    w.q[n] = -product
    scale = real(1) / w.q[r]
    for o in range(len(s.alpha[0])):
        g = w.beta[r, o] * scale
        for i in range(n):
            w.beta[i, o] -= w.q[i] * g
        w.beta[n, o] -= w.q[n] * g


@kernel
def is_stored(s: Expansion, c: OnlineConfig, r: Index) -> Bool:
    """Whether a candidate is a stored vector."""
    if c.newest_only:
        return False
    return r < s.n[0]


@kernel
def locate(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, r: Index) -> None:
    """Compute the numbers that take_out() needs for stored vector r.  O(N^2 + N D)."""
    if c.projection == Projection.FKLMS or c.projection == Projection.BOUNDED or c.keeps_neighbours or c.keeps_overlap:
        measure_row(s, w, c, q, r)
    if c.keeps_factor:
        inverse_column(s, w, r)


@kernel
def project(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, r: Index) -> Bool:
    """Change the multipliers in beta so that the other vectors replace candidate r.  False: one is out of range.

    Also computes the numbers that take_out() needs.
    """
    if c.projection == Projection.LSRIDGE:
        project_lsridge(s, w, c, r, candidates(s, w, c))
    if c.projection == Projection.LS:
        project_ls(s, w, c, r)
    if is_stored(s, c, r):
        locate(s, w, c, q, r)
    if c.projection == Projection.KLMS:
        project_klms(s, w, c, r)
    if c.projection == Projection.FKLMS:
        project_fklms(s, w, q, r)
    if c.projection == Projection.BOUNDED:
        project_bounded(s, w, c, q, r)
    return acceptable(s, w, c, r)


@kernel
def acceptable(s: Expansion, w: Work, c: OnlineConfig, r: Index) -> Bool:
    """Whether every multiplier, except that of r, is within its range."""
    if c.drafts:
        count = candidates(s, w, c)
        for i in range(count):
            if i != r:
                for o in range(len(s.alpha[0])):
                    if not (absolute(w.beta[i, o]) <= c.alpha_limit):
                        return False
    return True


@kernel
def commit(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Copy the new multipliers of the stored vectors to the model."""
    if c.drafts:
        for i in range(s.n[0]):
            for o in range(len(s.alpha[0])):
                s.alpha[i, o] = settle(w.beta[i, o])
    elif c.decays:
        for i in range(s.n[0]):
            for o in range(len(s.alpha[0])):
                s.alpha[i, o] = kept(c, s.alpha[i, o])


# --------------------------------------------------------------------------------------------- vectors come and go


@kernel
def take_out(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, r: Index) -> None:
    """Remove vector r from the stored matrices; its place stays.  Needs P_:r in p, and distances in row."""
    if c.keeps_squared:
        release_squared(s, w, r)
    if c.keeps_inverse:
        release_inverse(s, w, r)
    if c.keeps_factor:
        release(s, w, r)
    if c.keeps_complex:
        release_complex(s, w, r)
    if c.keeps_neighbours:
        lose_neighbour(s, w, q, r)
    if c.keeps_overlap:
        lose_overlap(s, w, q, r)
    if c.rule == Rule.KRLS_T:
        for j in range(s.n[0]):
            s.deficit[r, j] = real(0)
            s.deficit[j, r] = real(0)


@kernel
def put_in(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, x: Real[DIM], r: Index) -> None:
    """Store the sample as vector r, in a free place or after the last vector.  Mitchinson et al. 2003, eq. 3-6."""
    n = s.n[0]
    fresh = r == n
    count = n
    if fresh:
        count = n + 1
    else:
        w.k[r] = real(0)
    if c.keeps_factor:
        if not fresh:
            express(s, w, c, n - 1, n)
        if c.keeps_squared:
            border_squared(s, w, r, count)
        if c.keeps_inverse:
            border_inverse(s, w, r, count)
        border(s, w, count - 1, r, count)
    if c.keeps_complex:
        if not fresh:
            express_complex(s, w, c, n)
        border_complex(s, w, r, count)
    place(s, x, r)
    if c.keeps_diagonal:
        s.diagonal[r] = w.own[0]
    for o in range(len(s.alpha[0])):
        s.alpha[r, o] = settle(multiplier(s, w, c, n, o))
    s.n[0] = count
    if c.keeps_neighbours:
        introduce_neighbour(s, w, q, r)
    if c.keeps_overlap:
        introduce_overlap(s, w, r)
    if c.keeps_ages:
        s.age[r] = 0
    if c.fades:
        s.claim[r] = FRESH
    if c.keeps_factor:
        if not fresh:
            watch(s, c, q, r)


@kernel
def close_gap(s: Expansion, c: OnlineConfig, w: Work, r: Index) -> None:
    """Move the last vector to place r, whose vector was removed.  O(N + D), and O(N) for each matrix."""
    last = s.n[0] - 1
    # this cannot happen, but GCC does not know that and warns
    if last >= len(s.v):
        return
    for j in range(len(s.v[0])):
        s.v[r, j] = s.v[last, j]
        s.v[last, j] = real(0)
    for o in range(len(s.alpha[0])):
        s.alpha[r, o] = s.alpha[last, o]
        s.alpha[last, o] = real(0)
    if c.keeps_diagonal:
        s.diagonal[r] = s.diagonal[last]
        s.diagonal[last] = real(0)
    if c.keeps_ages:
        s.age[r] = s.age[last]
        s.age[last] = 0
    if c.fades:
        s.claim[r] = s.claim[last]
        s.claim[last] = real(0)
    if c.keeps_neighbours:
        s.neighbour[r] = s.neighbour[last]
        s.neighbour[last] = real(0)
    if c.keeps_overlap:
        s.overlap[r] = s.overlap[last]
        s.overlap[last] = real(0)
    if c.keeps_factor:
        for i in range(last):
            s.m[i, r] = s.m[i, last]
            s.m[i, last] = real(0)
    if c.keeps_factor or c.keeps_overlap:
        if s.probe[0] > last:
            s.probe[0] = last
    for j in range(s.n[0]):
        if c.keeps_inverse:
            s.inverse[r, j] = s.inverse[last, j]
            s.inverse[last, j] = real(0)
        if c.keeps_squared:
            s.squared[r, j] = s.squared[last, j]
            s.squared[last, j] = real(0)
        if c.keeps_complex:
            s.z_re[r, j] = s.z_re[last, j]
            s.z_im[r, j] = s.z_im[last, j]
            s.z_re[last, j] = real(0)
            s.z_im[last, j] = real(0)
        if c.rule == Rule.KRLS_T:
            s.deficit[r, j] = s.deficit[last, j]
            s.deficit[last, j] = real(0)
    for j in range(s.n[0]):
        if c.keeps_inverse:
            s.inverse[j, r] = s.inverse[j, last]
            s.inverse[j, last] = real(0)
        if c.keeps_squared:
            s.squared[j, r] = s.squared[j, last]
            s.squared[j, last] = real(0)
        if c.keeps_complex:
            s.z_re[j, r] = s.z_re[j, last]
            s.z_im[j, r] = s.z_im[j, last]
            s.z_re[j, last] = real(0)
            s.z_im[j, last] = real(0)
        if c.rule == Rule.KRLS_T:
            s.deficit[j, r] = s.deficit[j, last]
            s.deficit[j, last] = real(0)
    s.n[0] = last


@kernel
def grow_older(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig) -> None:
    """Update ages and claims after one more sample was learned."""
    if c.fades:
        for i in range(s.n[0]):
            # the claim that this sample supports
            renewed = FRESH * absolute(w.k[i])
            faded = c.fading * s.claim[i]
            s.claim[i] = clipped(renewed if renewed > faded else faded, FAINT, FRESH)
    if c.keeps_ages:
        for i in range(s.n[0]):
            if s.age[i] < AGE_MOST:
                s.age[i] += 1
    if c.keeps_overlap:
        if s.n[0] > 0:
            turn = s.probe[0]
            if turn < 0 or turn >= s.n[0]:
                turn = 0
            s.probe[0] = turn + 1
            renew_overlap(s, c, q, turn)
