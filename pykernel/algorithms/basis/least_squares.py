"""Least squares on coordinates, sample by sample, that goes along when the coordinates turn, come and go.

min sum_s forgetting^(t - s) |y_s - f(z_s)|^2 + ridge |coefficients|^2 for f(z) = coefficients' z: kept is R, R'R = ridge I
+ sum z z' (faded), upper triangular and packed, which takes up each sample by Givens rotations; coefficients follow the
error of their own prediction by the gain (R'R)^-1 z (S. Haykin, Adaptive Filter Theory, square-root RLS).  So rounding
errors do not add up: where R has become so large that samples no longer change it, the gain stays, small.  Coordinates
are orthonormal: where they turn, R's columns do; without the last coordinate, R has neither its last row nor column.
"""

from pykernel.algorithms.basis.coordinates import NystromConfig, NystromWork
from pykernel.algorithms.elementary import clipped
from pykernel.algorithms.extents import N_MAX, PACKED
from pykernel.algorithms.packed import solve_lower, solve_upper, take_up
from pykernel.dialect import OUTPUTS, Bool, Index, Real, Struct, between, kernel, real, sqrt


class Regression(Struct):
    """The functions f(x) = coefficients' z(x), where z(x) are the coordinates."""

    # factor R; rows begin at the diagonal, and the first row has N_MAX places
    r: between(Real[PACKED], "-sum_limit", "sum_limit")
    # coefficients of the coordinates
    coefficients: between(Real[N_MAX, OUTPUTS], "-coefficient_limit", "coefficient_limit")
    turn: between(Index, 0, N_MAX - 1)  # the coordinate whose ridge is refilled next


@kernel
def clear_coordinate(g: Regression, i: Index) -> None:
    """Nothing is known of coordinate i, behind all that are in use.  O(N)."""
    row = 0
    for k in range(i):
        g.r[row + i - k] = real(0)
        row = row + len(g.coefficients) - k
    for j in range(len(g.coefficients) - i):
        g.r[row + j] = real(0)
    for o in range(len(g.coefficients[0])):
        g.coefficients[i, o] = real(0)


@kernel
def begin_coordinate(g: Regression, c: NystromConfig, i: Index) -> None:
    """Coordinate i, behind all that are in use, is in use: nothing is known of it but the ridge.  O(N)."""
    row = 0
    for k in range(i):
        row = row + len(g.coefficients) - k
    g.r[row] = c.root_ridge


@kernel
def turn_coordinates(g: Regression, c: NystromConfig, k: Index, cosine: Real, sine: Real) -> None:
    """Update R and the coefficients after a rotation of coordinates k and k + 1.  R becomes triangular again.  O(N)."""
    row = 0
    for i in range(k + 1):
        at = row + k - i
        old = g.r[at]
        g.r[at] = cosine * old + sine * g.r[at + 1]
        g.r[at + 1] = cosine * g.r[at + 1] - sine * old
        row = row + len(g.coefficients) - i
    # row: of coordinate k + 1; the one above: of k
    above = row - (len(g.coefficients) - k)
    filled = sine * g.r[row]
    g.r[row] = cosine * g.r[row]
    length = sqrt(g.r[above] * g.r[above] + filled * filled)
    if length < c.least:
        length = c.least
    # not quotients: libraries differ in subnormal ones
    inverse = real(1) / length
    co = g.r[above] * inverse
    si = filled * inverse
    g.r[above] = length
    for j in range(1, len(g.coefficients) - k):
        upper = g.r[above + j]
        lower = g.r[row + j - 1]
        g.r[above + j] = co * upper + si * lower
        g.r[row + j - 1] = co * lower - si * upper
    for o in range(len(g.coefficients[0])):
        old = g.coefficients[k, o]
        g.coefficients[k, o] = cosine * old + sine * g.coefficients[k + 1, o]
        g.coefficients[k + 1, o] = cosine * g.coefficients[k + 1, o] - sine * old


@kernel
def drop_coordinate(g: Regression, w: NystromWork, c: NystromConfig, last: Index) -> None:
    """Drop the last coordinate in use: the result is least squares on the other coordinates.  O(N^2 / 2).

    R_rest c_rest + r_last c_last, R's right side, does not change.
    """
    at = 0
    for i in range(last):
        w.u[i] = g.r[at + last - i]
        at = at + len(g.coefficients) - i
    solve_upper(g.r, w.u, last, len(g.coefficients))
    for o in range(len(g.coefficients[0])):
        lost = g.coefficients[last, o]
        for i in range(last):
            g.coefficients[i, o] = clipped(
                g.coefficients[i, o] + w.u[i] * lost, -c.coefficient_limit, c.coefficient_limit
            )
    clear_coordinate(g, last)


@kernel
def follow(g: Regression, w: NystromWork, c: NystromConfig, n: Index) -> None:
    """Change the coefficients by (R'R)^-1 w.t times w.error, after the row w.t was added to R.  O(n^2)."""
    solve_lower(g.r, w.t, n, len(g.coefficients))
    solve_upper(g.r, w.t, n, len(g.coefficients))
    for o in range(len(w.error)):
        for i in range(n):
            g.coefficients[i, o] = clipped(
                g.coefficients[i, o] + w.t[i] * w.error[o], -c.coefficient_limit, c.coefficient_limit
            )


@kernel
def fade(g: Regression, w: NystromWork, c: NystromConfig, n: Index) -> None:
    """Reduce the weight of earlier samples.  Then refill the ridge of the coordinate whose turn it is.  O(N^2)."""
    for i in range(len(g.r)):
        g.r[i] = c.root_forgetting * g.r[i]
    turn = g.turn[0]
    if turn < n:
        for i in range(n):
            w.t[i] = real(0)
            w.u[i] = real(0)
        w.t[turn] = c.refill
        w.u[turn] = c.refill
        for o in range(len(w.error)):
            w.error[o] = -(c.refill * g.coefficients[turn, o])
        take_up(g.r, w.u, c.least, turn, n, len(g.coefficients))
        follow(g, w, c, n)
    g.turn[0] = turn + 1
    if g.turn[0] >= len(g.coefficients):
        g.turn[0] = 0


@kernel
def learn_coordinates(g: Regression, w: NystromWork, c: NystromConfig, n: Index) -> None:
    """Learn that the functions should be w.target where the coordinates are w.z.  O(N^2)."""
    for o in range(len(w.error)):
        error = w.target[o]
        for i in range(n):
            error = error - g.coefficients[i, o] * w.z[i]
        w.error[o] = error
    for i in range(n):
        w.t[i] = w.z[i]
        w.u[i] = w.z[i]
    take_up(g.r, w.u, c.least, 0, n, len(g.coefficients))
    follow(g, w, c, n)


@kernel
def valid_regression(g: Regression, c: NystromConfig, n: Index) -> Bool:
    """Whether R and the coefficients are zero beyond those in use, and R can be divided by."""
    row = 0
    for i in range(len(g.coefficients)):
        for j in range(len(g.coefficients) - i):
            if i + j >= n and g.r[row + j] != real(0):
                return False
        if i < n and not (g.r[row] >= c.least):
            return False
        for o in range(len(g.coefficients[0])):
            if i >= n and g.coefficients[i, o] != real(0):
                return False
        row = row + len(g.coefficients) - i
    return True
