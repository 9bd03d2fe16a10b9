"""Coordinates of samples in the subspace of feature space that the basis vectors span; adding and removing basis vectors.

K_SS = L L' is the Gram matrix of the basis S, and k_S(x) is the vector of kernel values between x and the basis
vectors.  Let phi(x) be the image of x in feature space.  Its projection onto the subspace has the coordinates
z(x) = L^-1 k_S(x) with respect to orthonormal axes; each new basis vector adds one coordinate.  The coordinates of
several samples are the rows of a partial Cholesky factor of the samples' Gram matrix (A. J. Smola, B. Schoelkopf,
Sparse greedy matrix approximation for machine learning, 2000).  The residual k(x, x) - |z|^2 is the squared length of
the part of phi(x) that the basis cannot express (G. Baudat, F. Anouar, Feature vector selection, 2003; G. C. Cawley,
N. L. C. Talbot, Efficient formation of a basis in a kernel induced feature space, 2002).
"""

from enum import IntEnum

from pykernel.algorithms.extents import M_MAX, N_MAX, PACKED
from pykernel.algorithms.hooks import FrameConfig
from pykernel.algorithms.inputs import InputConfig
from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value, self_value
from pykernel.algorithms.packed import row_of, substitute_forward
from pykernel.algorithms.random_numbers import LARGEST_PERIOD
from pykernel.algorithms.stages import Sample
from pykernel.algorithms.vectors import copy, minus_product, zero
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Config,
    Constant,
    Index,
    Model,
    Real,
    Struct,
    between,
    kernel,
    real,
    sqrt,
)

SMALLEST_RESIDUAL = Constant(float32=2.0**-90, float64=2.0**-900)
"""Residuals of at most this value are treated as zero.  The reciprocal square root of a larger residual is far from overflow."""


class Method(IntEnum):
    """The ways in which a basis is chosen."""

    GIVEN = 0  # the basis is constant
    # a sample is added with probability residual / k(x, x); if the basis is full, the sample replaces the least important vector
    STREAM = 1
    EFVS = 2  # each step draws candidates from the reservoir, and adds the one that most reduces the relative residuals of random rows
    SGMA = 3  # each step draws candidates from the reservoir, and adds the one that most reduces the sum of all rows' residuals


class NystromStatus(IntEnum):
    """Statuses of models that choose a basis."""

    ADDED = 1  # the sample was added to the basis; the budget was not full
    REPLACED = 2  # the budget was full: the sample replaced the least important basis vector
    TOO_FEW = -4  # there is no sample from which a basis could be chosen


class DeviceBasis(Struct):
    """The basis that the device chooses: vectors that span a subspace of feature space."""

    v: between(Real[N_MAX, DIM], "-scaled_limit", "scaled_limit")  # scaled basis vectors
    l: Real[PACKED]  # L, where L L' = K_SS; each row ends with the reciprocal of its diagonal element
    seeds: between(Index[3], 0, LARGEST_PERIOD - 1)  # state of the random number generator; zero before the first draw
    n: between(Index, 0, N_MAX)  # number of basis vectors in use; unused places are zero


class NystromWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    z: Real[N_MAX]  # coordinates of the input
    t: Real[N_MAX]  # working memory: coordinates of a row of the reservoir, a column of L^-1, or the regression's gain
    u: Real[N_MAX]  # working memory: K_SS^-1 k_S of a row of the reservoir, or the row that is added to R
    a: Real[N_MAX]  # K_SS^-1 k_S of the sample
    spread: Real[N_MAX]  # the diagonal of K_SS^-1
    loss: Real[N_MAX]  # P_jj times the increase in the rows' residuals if basis vector j is removed; see least_missed()
    rest: Real[M_MAX]  # residual of each row
    share: Real[M_MAX]  # 1 / k(x, x) for each row x; 0 if k(x, x) is treated as zero
    order: Index[M_MAX]  # rows that may become basis vectors
    points: Index[M_MAX]  # rows over which a candidate's gain is summed
    kappa: Real  # residual of the sample: k(x, x) - |z|^2, the squared length of the part that the basis cannot express
    own: Real  # k(x, x)


class NystromConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.nystrom``."""

    method: Method
    bounded: bool  # whether predictions are clipped to the range from least_value to largest_value
    varies: bool  # whether prior_variance is given, so that the variance of a label can be computed
    weighs: bool  # whether predictions are weighted sums of the coordinates, not the coordinates themselves
    forgets: bool  # whether forgetting < 1
    caches: bool  # whether the reservoir keeps its rows' coordinates
    vectors: Real[N_MAX, DIM]  # scaled basis vectors
    factor_rows: Real[PACKED]  # L, where L L' = K_SS + noise I; diagonal elements are stored as their reciprocals
    weights: Real[N_MAX, OUTPUTS]  # weight of each coordinate in each function
    bias: Real[OUTPUTS]  # constant of each function
    prior_variance: Real  # prior variance of the function's value where k(x, x) = 1
    label_variance: Real  # variance of a label around the function's value
    ald_threshold: Real  # a sample cannot join the basis if its relative residual is at most this
    tau: Real  # the basis is complete when the mean relative residual of the reservoir's rows is at most this
    candidates: Index  # rho: number of candidates that are compared in each step
    sampled: Index  # v: number of rows over which EFVS sums a candidate's gain
    horizon: Index  # how many of the latest samples the reservoir represents
    seed_1: Index  # initial state of the random number generator, in three parts
    seed_2: Index
    seed_3: Index
    root_ridge: Real  # square root of the ridge, the weight of |coefficients|^2
    least: Real  # smallest allowed diagonal element of the regression's factor
    root_forgetting: Real  # square root of the forgetting factor
    refill: (
        Real  # the only nonzero element of the row that restores a coefficient's ridge in R while earlier samples fade
    )
    coefficient_limit: Real  # largest coefficient of a coordinate
    sum_limit: Real  # bound on the magnitude of every element of the regression's factor
    scaled_limit: Real  # bound on the magnitude of every scaled input
    coordinate_limit: Real  # bound on the magnitude of every coordinate, which is at most sqrt(k(x, x))
    turned_limit: Real  # bound on the magnitude of every rotated coordinate
    reciprocal_limit: Real  # bound on the reciprocal square root of every residual
    solved_limit: Real  # bound on the magnitude of every element of K_SS^-1 k
    label_max_abs: Real  # largest |value| that the functions have to learn
    least_value: Real  # smallest prediction
    largest_value: Real  # largest prediction

    tunable = frozenset(
        "bounded least_value largest_value root_forgetting refill coefficient_limit label_max_abs".split()
    )


class GivenModel(Model):
    """A model whose basis is in constant tables."""

    parts = Sample, NystromWork, NystromConfig, FrameConfig, InputConfig, KernelConfig


class BasisModel(GivenModel):
    """A model whose basis may also be in memory, where it can change."""

    parts = (DeviceBasis,)


# --------------------------------------------------------------------------------------------------- coordinates


@kernel
def left_over(m: GivenModel, x: Real[DIM], n: Index) -> None:
    """Compute k(x, x), and the residual that the first n coordinates leave."""
    own = self_value(m, x)
    rest = minus_product(own, m.z, m.z, n)
    m.own[0] = own
    # rounding may make the residual negative
    m.kappa[0] = rest if rest > real(0) else real(0)


@kernel
def project_given(m: GivenModel, x: Real[DIM]) -> None:
    """For a constant basis, compute the coordinates and the residual of a scaled input.  O(N^2 / 2 + N D)."""
    for i in range(len(m.z)):
        m.z[i] = kernel_value(m, m.vectors[i], x)
    substitute_forward(m.factor_rows, m.z, len(m.z), m.coordinate_limit)
    left_over(m, x, len(m.z))


@kernel
def project(m: BasisModel, x: Real[DIM]) -> None:
    """Compute the coordinates and the residual of a scaled input.  O(N^2 / 2 + N D)."""
    if m.method == Method.GIVEN:
        project_given(m, x)
    else:
        for i in range(m.n[0]):
            m.z[i] = kernel_value(m, m.v[i], x)
        substitute_forward(m.l, m.z, m.n[0], m.coordinate_limit)
        left_over(m, x, m.n[0])


# -------------------------------------------------------------------------------------- a basis that grows and shrinks


@kernel
def append(m: BasisModel, x: Real[DIM]) -> None:
    """Append the scaled input x to the basis.  Its coordinates are in m.z, and its residual is in m.kappa.  O(N + D)."""
    n = m.n[0]
    row = row_of(n)
    length = sqrt(m.kappa[0])
    for i in range(n):
        m.l[row + i] = m.z[i]
    m.l[row + n] = real(1) / length
    copy(x, m.v[n], len(x))
    m.n[0] = n + 1
    m.z[n] = length
    m.kappa[0] = real(0)


@kernel
def invert_diagonal(m: BasisModel) -> None:
    """Write the diagonal of K_SS^-1 to m.spread: the squared lengths of L^-1's columns.  O(n^3 / 6)."""
    n = m.n[0]
    first = 0
    for j in range(n):
        m.t[j] = m.l[first + j]
        total = m.t[j] * m.t[j]
        row = first + j + 1
        for i in range(j + 1, n):
            part = real(0)
            for k in range(j, i):
                part += m.l[row + k] * m.t[k]
            m.t[i] = -(part * m.l[row + i])
            total += m.t[i] * m.t[i]
            row = row + i + 1
        m.spread[j] = total
        first = first + j + 1


@kernel
def rotate_pair(z: Real[...], k: Index, cosine: Real, sine: Real) -> None:
    """Rotate coordinates k and k + 1 in the plane that they span."""
    old = z[k]
    z[k] = cosine * old + sine * z[k + 1]
    z[k + 1] = cosine * z[k + 1] - sine * old


@kernel
def close_up(m: BasisModel, r: Index) -> None:
    """Remove basis vector r and its row of L.  Later rows move up, and the last row becomes zero.  O(N^2 / 2 + N D)."""
    last = m.n[0] - 1
    row = row_of(r)
    for i in range(r, last):
        below = row + i + 1
        for j in range(i + 1):
            m.l[row + j] = m.l[below + j]
        copy(m.v[i + 1], m.v[i], len(m.v[0]))
        row = below
    for j in range(last + 1):
        m.l[row + j] = real(0)
    zero(m.v[last], len(m.v[0]))
    m.n[0] = last
