"""Recursive least squares on coordinates that may be rotated, added and removed.

After sample t, the regression minimises sum_s forgetting^(t - s) |y_s - f(z_s)|^2 + ridge |coefficients|^2 for
f(z) = coefficients' z.  The state consists of the coefficients and the upper triangular, packed factor R, where
R'R = ridge I + sum_s forgetting^(t - s) z_s z_s'.  Givens rotations add each sample to R, and the coefficients change
by the prediction error times the gain (R'R)^-1 z (S. Haykin, Adaptive Filter Theory, square-root RLS).  Rounding errors
do not accumulate: when R is so large that samples no longer change it, the gain is small, but still correct.  The
coordinates are orthonormal, so a rotation of coordinates rotates R's columns, and removing the last coordinate removes
R's last row and column.
"""

from pykernel.algorithms.basis.coordinates import BasisModel
from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX, PACKED
from pykernel.algorithms.packed import solve_lower, solve_upper, take_up, upper_row_of
from pykernel.algorithms.vectors import all_zero, multiply, zero
from pykernel.dialect import OUTPUTS, Bool, Index, Real, Struct, between, kernel, real, sqrt


class Regression(Struct):
    """The functions f(x) = coefficients' z(x), where z(x) are the coordinates."""

    # factor R; rows begin at the diagonal, and the first row has N_MAX places
    r: between(Real[PACKED], "-sum_limit", "sum_limit")
    # coefficients of the coordinates
    coefficients: between(Real[N_MAX, OUTPUTS], "-coefficient_limit", "coefficient_limit")
    turn: between(Index, 0, N_MAX - 1)  # the coordinate whose ridge is restored next


class RegressionModel(BasisModel):
    parts = (Regression,)


@kernel
def clear_coordinate(m: RegressionModel, i: Index) -> None:
    """Set coordinate i, which is no longer in use, to zero in R and in the coefficients.  O(N)."""
    row = 0
    for k in range(i):
        m.r[row + i - k] = real(0)
        row = row + len(m.coefficients) - k
    for j in range(len(m.coefficients) - i):
        m.r[row + j] = real(0)
    zero(m.coefficients[i], len(m.coefficients[0]))


@kernel
def begin_coordinate(m: RegressionModel, i: Index) -> None:
    """Start using coordinate i, the first unused one: the diagonal element of its row of R becomes the ridge's square
    root.  O(1)."""
    m.r[upper_row_of(i, len(m.coefficients))] = m.root_ridge


@kernel
def turn_coordinates(m: RegressionModel, k: Index, cosine: Real, sine: Real) -> None:
    """Update R and the coefficients after a rotation of coordinates k and k + 1.  R becomes triangular again.  O(N)."""
    row = 0
    for i in range(k + 1):
        at = row + k - i
        old = m.r[at]
        m.r[at] = cosine * old + sine * m.r[at + 1]
        m.r[at + 1] = cosine * m.r[at + 1] - sine * old
        row = row + len(m.coefficients) - i
    # row: where row k + 1 of R begins; above: where row k begins
    above = row - (len(m.coefficients) - k)
    filled = sine * m.r[row]
    m.r[row] = cosine * m.r[row]
    length = sqrt(m.r[above] * m.r[above] + filled * filled)
    if length < m.least:
        length = m.least
    inverse = real(1) / length
    co = m.r[above] * inverse
    si = filled * inverse
    m.r[above] = length
    for j in range(1, len(m.coefficients) - k):
        upper = m.r[above + j]
        lower = m.r[row + j - 1]
        m.r[above + j] = co * upper + si * lower
        m.r[row + j - 1] = co * lower - si * upper
    for o in range(len(m.coefficients[0])):
        old = m.coefficients[k, o]
        m.coefficients[k, o] = cosine * old + sine * m.coefficients[k + 1, o]
        m.coefficients[k + 1, o] = cosine * m.coefficients[k + 1, o] - sine * old


@kernel
def drop_coordinate(m: RegressionModel, last: Index) -> None:
    """Drop the last coordinate in use: the coefficients become the least-squares solution in the other coordinates.  O(N^2 / 2).

    The new coefficients c solve R_rest c = R_rest c_rest + r_last c_last, where c_rest and c_last are the old coefficients,
    r_last is the last column of R without its last element, and R_rest is R without its last row and column.
    """
    at = 0
    for i in range(last):
        m.u[i] = m.r[at + last - i]
        at = at + len(m.coefficients) - i
    solve_upper(m.r, m.u, last, len(m.coefficients))
    for o in range(len(m.coefficients[0])):
        lost = m.coefficients[last, o]
        for i in range(last):
            m.coefficients[i, o] = clipped(
                m.coefficients[i, o] + m.u[i] * lost, -m.coefficient_limit, m.coefficient_limit
            )
    clear_coordinate(m, last)


@kernel
def move_coefficients(m: RegressionModel, gain: Real[...], n: Index) -> None:
    """Add (R'R)^-1 g e' to the coefficients, where g is ``gain`` and e is m.error.  R must already contain the row g.  O(n^2)."""
    solve_lower(m.r, gain, n, len(m.coefficients))
    solve_upper(m.r, gain, n, len(m.coefficients))
    for i in range(n):
        for o in range(len(m.error)):
            m.coefficients[i, o] = clipped(
                m.coefficients[i, o] + gain[i] * m.error[o], -m.coefficient_limit, m.coefficient_limit
            )


@kernel
def take_row(m: RegressionModel, z: Real[...], gain: Real[...], row: Real[...], n: Index, least: Real) -> None:
    """Add the row z to R, then update the coefficients.  O(n^2).

    gain, row: working memory.  least: smallest allowed diagonal element of R.
    """
    for i in range(n):
        gain[i] = z[i]
        row[i] = z[i]
    take_up(m.r, row, least, 0, n, len(m.coefficients))
    move_coefficients(m, gain, n)


@kernel
def fade(m: RegressionModel, gain: Real[...], row: Real[...], n: Index, least: Real) -> None:
    """Reduce the weight of earlier samples.  This also reduces the ridge; each call restores the ridge of one
    coefficient, in turn.  O(N^2)."""
    multiply(m.r, m.root_forgetting, len(m.r))
    turn = m.turn[0]
    if turn < n:
        for i in range(n):
            gain[i] = real(0)
            row[i] = real(0)
        gain[turn] = m.refill
        row[turn] = m.refill
        for o in range(len(m.error)):
            m.error[o] = -(m.refill * m.coefficients[turn, o])
        take_up(m.r, row, least, turn, n, len(m.coefficients))
        move_coefficients(m, gain, n)
    m.turn[0] = turn + 1 if turn + 1 < len(m.coefficients) else 0


@kernel
def learn_coordinates(m: RegressionModel, n: Index) -> None:
    """Learn a sample: the functions' values at the coordinates m.z should be m.y.  O(N^2)."""
    for o in range(len(m.error)):
        error = m.y[o]
        for i in range(n):
            error = error - m.coefficients[i, o] * m.z[i]
        m.error[o] = error
    take_row(m, m.z, m.t, m.u, n, m.least)


@kernel
def valid_regression(m: RegressionModel, n: Index) -> Bool:
    """Whether unused places of R and of the coefficients are zero, and whether R's diagonal is large enough to divide
    by."""
    row = 0
    for i in range(len(m.coefficients)):
        for j in range(len(m.coefficients) - i):
            if i + j >= n and m.r[row + j] != real(0):
                return False
        if i < n and not (m.r[row] >= m.least):
            return False
        if i >= n and not all_zero(m.coefficients[i], len(m.coefficients[0])):
            return False
        row = row + len(m.coefficients) - i
    return True
