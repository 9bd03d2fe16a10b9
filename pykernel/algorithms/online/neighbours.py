"""The fast techniques keep no Gram matrix.  They keep distances to nearest neighbours, or sums of squared kernel values.

1 - max_j |k_ij| is smallest for the vector with the smallest distance to its nearest neighbour.  With the Gaussian kernel,
distances are squared; with other kernels, a distance is 1 - |k|.  m.neighbour contains the distances to the nearest
neighbours.  When a vector's neighbour is removed, the distance is negated and stays as a lower bound.  A new neighbour is
searched for only if it affects which vector is chosen.  The number of searches for one choice is limited.  Once the limit is
reached, only vectors with exact distances can be chosen.  Predictions therefore depend on the stored distances, so these
distances are part of the model.
"""

from pykernel.algorithms.kernel_choice import KernelFunction
from pykernel.algorithms.kernels import gaussian, squared_distance
from pykernel.algorithms.online.state import FAR, OnlineModel, alike, alike_stored
from pykernel.dialect import Bool, Index, Real, absolute, kernel, real


@kernel
def lesser(a: Real, b: Real) -> Real:
    """The smaller of two numbers."""
    if a < b:
        return a
    return b


@kernel
def measure_row(m: OnlineModel, r: Index) -> None:
    """row_j = |v_j - v_r|^2 for the Gaussian kernel, k_jr for other kernels.  O(N D)."""
    for j in range(m.n[0]):
        if m.function == KernelFunction.GAUSSIAN:
            m.row[j] = squared_distance(m.v[j], m.v[r])
        else:
            # row_distance() computes the distance from k_jr
            m.row[j] = alike(m, j, m.v[r], m.diagonal[r])


@kernel
def row_distance(m: OnlineModel, j: Index) -> Real:
    """The distance 1 - |k|, computed from an element of row."""
    return real(1) - absolute(m.row[j])


@kernel
def find_neighbour(m: OnlineModel, i: Index) -> None:
    """Compute the distance from expansion vector i to its nearest neighbour.  O(N D)."""
    nearest = FAR if m.function == KernelFunction.GAUSSIAN else real(1)
    for j in range(m.n[0]):
        if j != i:
            if m.function == KernelFunction.GAUSSIAN:
                nearest = lesser(squared_distance(m.v[i], m.v[j]), nearest)
            else:
                nearest = lesser(real(1) - absolute(alike(m, i, m.v[j], m.diagonal[j])), nearest)
    m.neighbour[i] = nearest


@kernel
def introduce_neighbour(m: OnlineModel, i: Index) -> None:
    """Update the distances to the nearest neighbours after the sample has been stored as vector i.  O(N)."""
    nearest = FAR if m.function == KernelFunction.GAUSSIAN else real(1)
    for j in range(m.n[0]):
        if j != i:
            nearest = lesser(m.distance[j], nearest)
            if m.distance[j] <= absolute(m.neighbour[j]):
                m.neighbour[j] = m.distance[j]
    m.neighbour[i] = nearest


@kernel
def lose_neighbour(m: OnlineModel, r: Index) -> None:
    """Prepare the removal of vector r: the distances of vectors whose neighbour was r become lower bounds.  Needs row.  O(N)."""
    for i in range(m.n[0]):
        if i != r and m.neighbour[i] == (m.row[i] if m.function == KernelFunction.GAUSSIAN else row_distance(m, i)):
            m.neighbour[i] = -(m.row[i] if m.function == KernelFunction.GAUSSIAN else row_distance(m, i))


@kernel
def isolation(m: OnlineModel, i: Index) -> Real:
    """Distance from a candidate to its nearest neighbour, or a lower bound on this distance."""
    if i == m.n[0]:
        return m.nearest_distance[0]
    if m.rounds and m.newest[0] == 0:
        return absolute(m.neighbour[i])
    return lesser(absolute(m.neighbour[i]), m.distance[i])


@kernel
def unsure(m: OnlineModel, i: Index) -> Bool:
    """Whether isolation() returns only a lower bound."""
    if i == m.n[0] or m.neighbour[i] > real(0):
        return False
    if m.rounds and m.newest[0] == 0:
        return True
    return m.distance[i] > -m.neighbour[i]


# ------------------------------------------------------------------------------------------------- overlaps


@kernel
def overlap_of(m: OnlineModel, i: Index) -> Real:
    """The sum of k_ij^2 over all candidates j other than i.  O(1); for the newest sample, O(N)."""
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
def introduce_overlap(m: OnlineModel, i: Index) -> None:
    """Add the sample's squared kernel values to the sums, after the sample has been stored as vector i.  O(N)."""
    total = real(0)
    for j in range(m.n[0]):
        if j != i:
            squared = m.k[j] * m.k[j]
            m.overlap[j] += squared
            total += squared
    m.overlap[i] = total


@kernel
def lose_overlap(m: OnlineModel, r: Index) -> None:
    """Subtract the squared kernel values of the removed vector r from the sums.  Needs row.  O(N)."""
    for j in range(m.n[0]):
        if j != r:
            value = gaussian(m.gamma, m.row[j]) if m.function == KernelFunction.GAUSSIAN else m.row[j]
            rest = m.overlap[j] - value * value
            if rest < real(0):
                rest = real(0)
            m.overlap[j] = rest


@kernel
def renew_overlap(m: OnlineModel, i: Index) -> None:
    """Recompute vector i's sum of squared kernel values.  This removes rounding errors.  O(N D)."""
    total = real(0)
    for j in range(m.n[0]):
        if j != i:
            value = alike_stored(m, i, j)
            total += value * value
    m.overlap[i] = total
