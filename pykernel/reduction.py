"""Keeping the expansion within its budget (Mitchinson et al. 2003, section 2): which vector goes, and who takes up its part.

The budget is kept *after* each presentation: with N_MAX vectors stored, the newest sample is a candidate for removal
like the others, but it takes no memory until it is certain to stay.
"""

from pykernel.dialect import DIM, Index, Real, absolute, kernel, real, sqrt
from pykernel.expansion import (
    FAR,
    Expansion,
    OnlineConfig,
    Status,
    Work,
    acceptable,
    commit,
    decay,
    kept,
    place,
    settle,
)
from pykernel.kernels import gaussian, squared_distance

# ------------------------------------------------------------------------------------------- near-duplicates


@kernel
def absorb_in_nearest(s: Expansion, w: Work, c: OnlineConfig, step: Real) -> Index:
    """Give the sample's part to the expansion vector nearest to it, in the measure k that they share.  O(N)."""
    i = w.nearest[0]
    a = settle(kept(c, s.alpha[i]) + step * gaussian(c.gamma, w.nearest_distance[0]))
    if not (absolute(a) <= c.alpha_limit):
        return Status.REFUSED_MULTIPLIER
    if c.decays:
        decay(s, c)
    s.alpha[i] = a
    if w.nearest_distance[0] > real(0):
        return Status.ABSORBED
    return Status.MERGED


# --------------------------------------------------------------------------------------------- truncation: NT


@kernel
def reduce_by_magnitude(s: Expansion, c: OnlineConfig, x: Real[DIM], step: Real) -> Index:
    """Drop the smallest multiplier; of equals, a stored one before the newest.  O(N + D).  Section 2, NT."""
    r = 0
    smallest = absolute(s.alpha[0])
    for i in range(1, s.n[0]):
        if absolute(s.alpha[i]) < smallest:
            smallest = absolute(s.alpha[i])
            r = i
    stays = absolute(step) >= kept(c, smallest)
    if c.decays:
        decay(s, c)
    if not stays:
        return Status.DISCARDED
    place(s, x, r)
    s.alpha[r] = step
    return Status.REPLACED


# ------------------------------------------------------------------------------- fast sparsity control: FKLMS
#
# 1 - max_j k_ij is smallest where the distance to the nearest vector is: no kernel value is needed to choose.
# w.neighbour caches those distances.  When a vector's neighbour goes, its entry stays as a lower bound (negated),
# and it is searched for again only if the choice depends on it.


@kernel
def lesser(a: Real, b: Real) -> Real:
    """The smaller of two numbers."""
    if a < b:
        return a
    return b


@kernel
def find_neighbour(s: Expansion, w: Work, i: Index) -> None:
    """Compute the distance from expansion vector i to its nearest.  O(N D)."""
    nearest = FAR
    for j in range(s.n[0]):
        if j != i:
            nearest = lesser(squared_distance(s.v[i], s.v[j]), nearest)
    w.neighbour[i] = nearest


@kernel
def introduce_neighbour(s: Expansion, w: Work, i: Index) -> None:
    """Let the expansion vectors know the sample as neighbour, now that it is number i.  O(N)."""
    nearest = FAR
    for j in range(s.n[0]):
        if j != i:
            nearest = lesser(w.distance[j], nearest)
            if w.distance[j] <= absolute(w.neighbour[j]):
                w.neighbour[j] = w.distance[j]
    w.neighbour[i] = nearest


@kernel
def choose_by_neighbour(s: Expansion, w: Work, c: OnlineConfig, step: Real) -> Index:
    """Position of the vector whose nearest one is closest (n: the newest); of equals, the smaller |alpha|.

    Both of the closest pair always tie, and keeping the older one diverges.  O(N) and a search, O(N D), for each
    lost neighbour that matters.  Mitchinson et al. 2003, eq. 17.
    """
    n = s.n[0]
    for turn in range(len(w.neighbour)):
        smallest = w.nearest_distance[0]
        for i in range(n):
            smallest = lesser(absolute(w.neighbour[i]), smallest)
        unsure = n
        for i in range(n):
            if w.neighbour[i] <= real(0) and -w.neighbour[i] == smallest and w.distance[i] > smallest:
                unsure = i
        if unsure == n:
            break
        find_neighbour(s, w, unsure)
    smallest = w.nearest_distance[0]
    for i in range(n):
        smallest = lesser(absolute(w.neighbour[i]), smallest)
    r = n
    magnitude = c.alpha_limit
    for i in range(n):
        a = absolute(kept(c, s.alpha[i]))
        if lesser(absolute(w.neighbour[i]), w.distance[i]) == smallest and (r == n or a < magnitude):
            magnitude = a
            r = i
    if r == n or (w.nearest_distance[0] == smallest and absolute(step) < magnitude):
        return n
    return r


@kernel
def project_fklms(s: Expansion, w: Work, c: OnlineConfig, r: Index, step: Real) -> None:
    """Multipliers after the removal of vector r (n: the newest), taking the others as orthogonal.

    O(N D).  Mitchinson et al. 2003, eq. 16.
    """
    n = s.n[0]
    if r == n:
        for i in range(n):
            w.beta[i] = settle(kept(c, s.alpha[i]) + w.k[i] * step)
    else:
        removed = kept(c, s.alpha[r])
        for i in range(n):
            if i != r:
                distance = squared_distance(s.v[i], s.v[r])
                w.beta[i] = settle(kept(c, s.alpha[i]) + gaussian(c.gamma, distance) * removed)
                # i loses its neighbour; the distance stays as a bound
                if w.neighbour[i] == distance:
                    w.neighbour[i] = -distance
        w.beta[r] = settle(step + w.k[r] * removed)


@kernel
def reduce_by_neighbour(s: Expansion, w: Work, c: OnlineConfig, x: Real[DIM], step: Real) -> Index:
    """Drop one of the closest pair and hand its part to the others.  O(N D).  Mitchinson et al. 2003, FKLMS."""
    r = choose_by_neighbour(s, w, c, step)
    project_fklms(s, w, c, r, step)
    if not acceptable(s, w, c):
        return Status.REFUSED_MULTIPLIER
    commit(s, w)
    if r == s.n[0]:
        return Status.DISCARDED
    place(s, x, r)
    introduce_neighbour(s, w, r)
    return Status.REPLACED


# ----------------------------------------------------------------------- sparsity control with the Gram matrix
#
# P = (K + ridge I)^-1 is kept as a square root, P = m' m: inserting borders it, removing is one Householder
# reflection, and P_ii = |m_:i|^2 cannot turn negative.  m has no particular shape.


@kernel
def express(s: Expansion, w: Work, c: OnlineConfig, rows: Index, columns: Index) -> None:
    """u = P k and kappa = 1 + ridge - k' P k from the leading part of m.  O(N^2)."""
    for j in range(columns):
        w.u[j] = real(0)
    kappa = c.ridge_diagonal
    for i in range(rows):
        l = real(0)
        for j in range(columns):
            l += s.m[i, j] * w.k[j]
        kappa -= l * l
        for j in range(columns):
            w.u[j] += l * s.m[i, j]
    w.kappa[0] = kappa


@kernel
def border(s: Expansion, w: Work, c: OnlineConfig, row: Index, column: Index, columns: Index) -> None:
    """Add to m the vector that express() was given, with its own row and column.  O(N)."""
    kappa = w.kappa[0]
    if kappa < c.kappa_least:
        kappa = c.kappa_least
    scale = real(1) / sqrt(kappa)
    for j in range(columns):
        s.m[row, j] = -(scale * w.u[j])
    s.m[row, column] = scale


@kernel
def inverse_diagonal(s: Expansion, w: Work) -> None:
    """p_i = P_ii.  O(N^2)."""
    n = s.n[0]
    for j in range(n):
        w.p[j] = real(0)
    for i in range(n):
        for j in range(n):
            w.p[j] += s.m[i, j] * s.m[i, j]


@kernel
def inverse_column(s: Expansion, w: Work, r: Index) -> None:
    """p = P_:r.  O(N^2)."""
    n = s.n[0]
    for j in range(n):
        w.p[j] = real(0)
    for i in range(n):
        g = s.m[i, r]
        for j in range(n):
            w.p[j] += g * s.m[i, j]


@kernel
def release(s: Expansion, w: Work, r: Index) -> None:
    """Take vector r out of m, given p = P_:r; its column becomes zero and the last row is free.  O(N^2).

    The reflection I - 2 h h' / h'h with h = m_:r + sign |m_:r| e_last sends column r to the last row, and
    h' m = P_r: + sign |m_:r| m_last: needs no further product.
    """
    n = s.n[0]
    last = n - 1
    norm = sqrt(w.p[r])
    pivot = s.m[last, r]
    scale = real(1) / (w.p[r] + absolute(pivot) * norm)
    if pivot < real(0):
        norm = -norm
    for j in range(n):
        w.p[j] = (w.p[j] + norm * s.m[last, j]) * scale
    for i in range(last):
        h = s.m[i, r]
        for j in range(n):
            s.m[i, j] -= h * w.p[j]
        s.m[i, r] = real(0)


@kernel
def choose_by_mklms(s: Expansion, w: Work, c: OnlineConfig, step: Real) -> Index:
    """Position of the vector with the least alpha_i^2 kappa_i (n: the newest); of equals, the smaller |alpha|.

    With the newest bordered in, P_ii = |m_:i|^2 + u_i^2 / kappa and kappa_i = 1 / P_ii.  O(N^2) for all candidates.
    Mitchinson et al. 2003, after eq. 13.
    """
    n = s.n[0]
    inverse_diagonal(s, w)
    inverse = real(1) / w.kappa[0]
    r = n
    # products of normal numbers only, and no quotient that could be subnormal
    least = step * (step * w.kappa[0])
    magnitude = absolute(step)
    for i in range(n):
        a = kept(c, s.alpha[i])
        score = a * (a / (w.p[i] + w.u[i] * w.u[i] * inverse))
        if score < least or (score == least and absolute(a) <= magnitude and (r == n or absolute(a) < magnitude)):
            least = score
            magnitude = absolute(a)
            r = i
    return r


@kernel
def project_klms_newest(s: Expansion, w: Work, c: OnlineConfig, step: Real) -> None:
    """Multipliers after the removal of the newest: beta = alpha + u step.  O(N).  Mitchinson et al. 2003, eq. 12."""
    for i in range(s.n[0]):
        w.beta[i] = settle(kept(c, s.alpha[i]) + w.u[i] * step)


@kernel
def project_klms(s: Expansion, w: Work, c: OnlineConfig, r: Index, step: Real) -> None:
    """Multipliers after the removal of stored vector r, the newest taking its place.

    beta = alpha - P_:r alpha_r / P_rr, P with the newest bordered in.  Leaves P_:r, without it, in p.  O(N^2).
    Mitchinson et al. 2003, eq. 12.
    """
    inverse_column(s, w, r)
    inverse = real(1) / w.kappa[0]
    share = w.u[r] * inverse
    g = kept(c, s.alpha[r]) / (w.p[r] + w.u[r] * share)
    for i in range(s.n[0]):
        w.beta[i] = settle(kept(c, s.alpha[i]) - (w.p[i] + w.u[i] * share) * g)
    w.beta[r] = settle(step + share * g)


@kernel
def append_to_factor(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Border m with the sample as the next vector."""
    border(s, w, c, s.n[0], s.n[0], s.n[0])


@kernel
def replace_in_factor(s: Expansion, w: Work, c: OnlineConfig, r: Index) -> None:
    """Put the sample in the place of vector r, given p = P_:r.  O(N^2)."""
    n = s.n[0]
    release(s, w, r)
    w.k[r] = real(0)
    express(s, w, c, n - 1, n)
    border(s, w, c, n - 1, r, n)


@kernel
def watch(s: Expansion, c: OnlineConfig, r: Index) -> None:
    """Measure one element of (K + ridge I) P - I, where P = m' m, next to the vector r just stored.  O(N D).

    m_:r has one element, so P_:r is known; it is multiplied with the row of another vector, each in its turn.
    """
    n = s.n[0]
    i = s.probe[0]
    if i == r:
        i += 1
    if i < 0 or i >= n:
        i = 0
    s.probe[0] = i + 1
    if i != r:
        total = real(0)
        for j in range(n):
            value = c.ridge_diagonal
            if j != i:
                value = gaussian(c.gamma, squared_distance(s.v[i], s.v[j]))
            total += value * s.m[n - 1, j]
        residual = absolute(total * s.m[n - 1, r])
        if residual > s.drift[0]:
            s.drift[0] = residual


@kernel
def reduce_by_mklms(s: Expansion, w: Work, c: OnlineConfig, x: Real[DIM], step: Real) -> Index:
    """Remove the vector whose loss changes the function least, and project onto the others.  O(N^2 + N D)."""
    r = choose_by_mklms(s, w, c, step)
    if r == s.n[0]:
        project_klms_newest(s, w, c, step)
    else:
        project_klms(s, w, c, r, step)
    if not acceptable(s, w, c):
        return Status.REFUSED_MULTIPLIER
    commit(s, w)
    if r == s.n[0]:
        return Status.DISCARDED
    replace_in_factor(s, w, c, r)
    place(s, x, r)
    watch(s, c, r)
    return Status.REPLACED


@kernel
def absorb_by_projection(s: Expansion, w: Work, c: OnlineConfig, step: Real) -> Index:
    """Express the sample by the expansion vectors; it adds too little to be one.  O(N)."""
    project_klms_newest(s, w, c, step)
    if not acceptable(s, w, c):
        return Status.REFUSED_MULTIPLIER
    commit(s, w)
    return Status.ABSORBED


@kernel
def rebuild_factor(s: Expansion, w: Work, c: OnlineConfig) -> None:
    """Compute m afresh from the expansion vectors, which removes the rounding errors it has gathered.  O(N^3)."""
    for t in range(len(s.alpha)):
        if t == s.n[0]:
            break
        for i in range(t):
            w.k[i] = gaussian(c.gamma, squared_distance(s.v[i], s.v[t]))
        express(s, w, c, t, t)
        for j in range(s.n[0]):
            s.m[t, j] = real(0)
        border(s, w, c, t, t, t)
    s.drift[0] = real(0)
