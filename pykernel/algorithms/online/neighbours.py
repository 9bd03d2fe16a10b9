"""The fast techniques keep no Gram matrix.  They keep nearest neighbours, or sums of squared kernel values.

1 - max_j |k_ij| is smallest for the vector with the smallest distance to its nearest vector.  The distance is squared
for the Gaussian kernel, and 1 - |k| for others.  s.neighbour contains these distances.  When a vector's neighbour is
removed, its entry stays as a lower bound, negated.  The new neighbour is searched for only if a choice depends on it.
The number of searches in one choice is limited; after that, the choice is among the vectors whose distance is exact.
The entries are therefore part of the model.
"""

from pykernel.algorithms.kernel_choice import KernelConfig, KernelFunction
from pykernel.algorithms.kernels import gaussian, squared_distance
from pykernel.algorithms.online.state import FAR, Expansion, OnlineConfig, Work, alike
from pykernel.dialect import Bool, Index, Real, absolute, kernel, real


@kernel
def lesser(a: Real, b: Real) -> Real:
    """The smaller of two numbers."""
    if a < b:
        return a
    return b


@kernel
def measure_row(s: Expansion, w: Work, c: OnlineConfig, q: KernelConfig, r: Index) -> None:
    """row_j = |v_j - v_r|^2; for other kernels than the Gaussian, k_jr.  O(N D)."""
    for j in range(s.n[0]):
        if q.function == KernelFunction.GAUSSIAN:
            w.row[j] = squared_distance(s.v[j], s.v[r])
        else:
            # for other kernels k_jr, from which distances are computed
            w.row[j] = alike(s, c, q, j, s.v[r], s.diagonal[r])


@kernel
def row_distance(w: Work, j: Index) -> Real:
    """The distance 1 - |k| that an element of row stands for."""
    return real(1) - absolute(w.row[j])


@kernel
def find_neighbour(s: Expansion, c: OnlineConfig, q: KernelConfig, i: Index) -> None:
    """Compute the distance from expansion vector i to its nearest neighbour.  O(N D)."""
    nearest = FAR if q.function == KernelFunction.GAUSSIAN else real(1)
    for j in range(s.n[0]):
        if j != i:
            if q.function == KernelFunction.GAUSSIAN:
                nearest = lesser(squared_distance(s.v[i], s.v[j]), nearest)
            else:
                nearest = lesser(real(1) - absolute(alike(s, c, q, i, s.v[j], s.diagonal[j])), nearest)
    s.neighbour[i] = nearest


@kernel
def introduce_neighbour(s: Expansion, w: Work, q: KernelConfig, i: Index) -> None:
    """Update the distances to the nearest neighbours after the sample was stored as vector i.  O(N)."""
    nearest = FAR if q.function == KernelFunction.GAUSSIAN else real(1)
    for j in range(s.n[0]):
        if j != i:
            nearest = lesser(w.distance[j], nearest)
            if w.distance[j] <= absolute(s.neighbour[j]):
                s.neighbour[j] = w.distance[j]
    s.neighbour[i] = nearest


@kernel
def lose_neighbour(s: Expansion, w: Work, q: KernelConfig, r: Index) -> None:
    """Vector r is removed.  Where r was the nearest, the distance becomes a lower bound.  Needs row.  O(N)."""
    for i in range(s.n[0]):
        if i != r and s.neighbour[i] == (w.row[i] if q.function == KernelFunction.GAUSSIAN else row_distance(w, i)):
            s.neighbour[i] = -(w.row[i] if q.function == KernelFunction.GAUSSIAN else row_distance(w, i))


@kernel
def isolation(s: Expansion, w: Work, c: OnlineConfig, i: Index) -> Real:
    """Distance from a candidate to its nearest neighbour, or a lower bound."""
    if i == s.n[0]:
        return w.nearest_distance[0]
    if c.rounds and w.newest[0] == 0:
        return absolute(s.neighbour[i])
    return lesser(absolute(s.neighbour[i]), w.distance[i])


@kernel
def unsure(s: Expansion, w: Work, c: OnlineConfig, i: Index) -> Bool:
    """Whether isolation() is only a lower bound."""
    if i == s.n[0] or s.neighbour[i] > real(0):
        return False
    if c.rounds and w.newest[0] == 0:
        return True
    return w.distance[i] > -s.neighbour[i]


# ------------------------------------------------------------------------------------------------- overlaps


@kernel
def introduce_overlap(s: Expansion, w: Work, i: Index) -> None:
    """Add the sample's squared kernel values to the sums, after it was stored as vector i.  O(N)."""
    total = real(0)
    for j in range(s.n[0]):
        if j != i:
            squared = w.k[j] * w.k[j]
            s.overlap[j] += squared
            total += squared
    s.overlap[i] = total


@kernel
def lose_overlap(s: Expansion, w: Work, q: KernelConfig, r: Index) -> None:
    """Subtract the squared kernel values of vector r, which is removed, from the sums.  Needs row.  O(N)."""
    for j in range(s.n[0]):
        if j != r:
            value = gaussian(q.gamma, w.row[j]) if q.function == KernelFunction.GAUSSIAN else w.row[j]
            rest = s.overlap[j] - value * value
            if rest < real(0):
                rest = real(0)
            s.overlap[j] = rest


@kernel
def renew_overlap(s: Expansion, c: OnlineConfig, q: KernelConfig, i: Index) -> None:
    """Compute the sum of vector i again.  This removes rounding errors.  O(N D)."""
    total = real(0)
    for j in range(s.n[0]):
        if j != i:
            value = (
                gaussian(q.gamma, squared_distance(s.v[i], s.v[j]))
                if q.function == KernelFunction.GAUSSIAN
                else alike(s, c, q, i, s.v[j], s.diagonal[j])
            )
            total += value * value
    s.overlap[i] = total
