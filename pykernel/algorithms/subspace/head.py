"""A linear model on features that move: ridge regression by recursive least squares, or logistic regression by gradients.

It learns from the features of a sample before the subspace learns the sample.  So it follows the moving subspace.
"""

from pykernel.algorithms.elementary import clipped, exp_negative, logistic, winner
from pykernel.algorithms.packed import solve_lower, solve_upper, take_up
from pykernel.algorithms.subspace.state import RANK, SubspaceModel
from pykernel.dialect import OUTPUTS, Bool, Index, Real, Struct, between, extent, kernel, real

HEAD = extent("HEAD", "(r + 1) (r + 2) / 2: size of a triangle with a row for each feature and one for the constant")


class Head(Struct):
    """The head predicts f(x) = coefficients' (z(x), 1) from the features z(x)."""

    # factor R: R'R = ridge I + fading sum of (z, 1) (z, 1)'; rows begin at the diagonal
    r: between(Real[HEAD], "-sum_limit", "sum_limit")
    # coefficients of the features, then of the constant
    coefficients: between(Real[RANK + 1, OUTPUTS], "-coefficient_limit", "coefficient_limit")
    turn: between(Index, 0, RANK)  # the coefficient whose ridge is refilled next


class HeadModel(SubspaceModel):
    parts = (Head,)


@kernel
def evaluate(m: HeadModel, y: Real[OUTPUTS]) -> None:
    """Compute the functions' values at the features m.z.  O(r) for each function."""
    last = len(m.z) - 1
    for o in range(len(y)):
        total = m.coefficients[last, o]
        for i in range(last):
            total += m.coefficients[i, o] * m.z[i]
        y[o] = total


# ------------------------------------------------------------------------------------------------ ridge regression


@kernel
def move_coefficients(m: HeadModel) -> None:
    """Change the coefficients by (R'R)^-1 m.gain times m.error, after the row m.gain was added to R.  O(r^2)."""
    solve_lower(m.r, m.gain, len(m.gain), len(m.gain))
    solve_upper(m.r, m.gain, len(m.gain), len(m.gain))
    for i in range(len(m.gain)):
        for o in range(len(m.error)):
            m.coefficients[i, o] = clipped(
                m.coefficients[i, o] + m.gain[i] * m.error[o], -m.coefficient_limit, m.coefficient_limit
            )


@kernel
def fade(m: HeadModel) -> None:
    """Reduce the weight of earlier samples.  Then refill the ridge of the coefficient whose turn it is.  O(r^2)."""
    for i in range(len(m.r)):
        m.r[i] = m.root_forgetting * m.r[i]
    turn = m.turn[0]
    for i in range(len(m.row)):
        m.row[i] = m.refill if i == turn else real(0)
        m.gain[i] = m.row[i]
    for o in range(len(m.error)):
        m.error[o] = -(m.refill * m.coefficients[turn, o])
    take_up(m.r, m.row, m.head_least, turn, len(m.row), len(m.row))
    move_coefficients(m)
    m.turn[0] = turn + 1 if turn + 1 < len(m.row) else 0


@kernel
def in_turn(m: HeadModel) -> Bool:
    """Whether turn is the number of a coefficient, even in overwritten memory."""
    if m.forgets:
        return m.turn[0] >= 0 and m.turn[0] < len(m.coefficients)
    return True


@kernel
def learn_ridge(m: HeadModel) -> None:
    """Learn by recursive least squares.  Givens rotations update R, and the gain updates the coefficients.  O(r^2).

    S. Haykin, Adaptive Filter Theory, square-root RLS; min sum forgetting^(t - s) |y_s - f(x_s)|^2 + ridge
    |coefficients|^2.
    """
    if m.r[0] == real(0):
        at = 0
        for i in range(len(m.z)):
            m.r[at] = m.root_ridge
            at = at + len(m.z) - i
    if m.forgets:
        fade(m)
    evaluate(m, m.answers)
    for o in range(len(m.error)):
        m.error[o] = m.y[o] - m.answers[o]
    for i in range(len(m.z)):
        m.row[i] = m.z[i]
        m.gain[i] = m.z[i]
    take_up(m.r, m.row, m.head_least, 0, len(m.row), len(m.row))
    move_coefficients(m)


# --------------------------------------------------------------------------------------------- logistic regression


@kernel
def probabilities(m: HeadModel, y: Real[OUTPUTS]) -> None:
    """Convert the functions' values to probabilities: of the second of two classes, or of each class.  O(classes)."""
    if m.single:
        y[0] = logistic(y[0])
    else:
        best = winner(y)
        top = y[best]
        total = real(0)
        for o in range(len(y)):
            y[o] = exp_negative(y[o] - top)
            total += y[o]
        inverse = real(1) / total
        for o in range(len(y)):
            y[o] = y[o] * inverse


@kernel
def learn_logistic(m: HeadModel, share: Real) -> None:
    """Learn by a step down the gradient of -log p + share |coefficients|^2 / 2.  O(r) for each class.

    The step is a part of the safe step.  The second derivative along (z, 1) is at most (|z|^2 + 1) / 4, or
    (|z|^2 + 1) / 2 with more than two classes.
    """
    length = real(0)
    for i in range(len(m.z)):
        length += m.z[i] * m.z[i]
    step = m.head_eta * (real(1) / length)
    keep = real(1) - step * share
    if keep < real(0):
        keep = real(0)
    evaluate(m, m.answers)
    probabilities(m, m.answers)
    for o in range(len(m.error)):
        # a label is 1 or -1
        wanted = real(1) if m.y[o] > real(0) else real(0)
        m.error[o] = step * (wanted - m.answers[o])
    for i in range(len(m.z)):
        for o in range(len(m.error)):
            m.coefficients[i, o] = clipped(
                keep * m.coefficients[i, o] + m.error[o] * m.z[i], -m.coefficient_limit, m.coefficient_limit
            )


@kernel
def learn_labels(m: HeadModel, share: Real) -> None:
    """Learn that the functions should be m.y at the features m.z."""
    if m.logistic:
        learn_logistic(m, share)
    else:
        learn_ridge(m)


@kernel
def forget_labels(m: HeadModel) -> None:
    """Forget what the head learned."""
    for i in range(len(m.r)):
        m.r[i] = real(0)
    for i in range(len(m.coefficients)):
        for o in range(len(m.coefficients[0])):
            m.coefficients[i, o] = real(0)
    m.turn[0] = 0


@kernel
def valid_head(m: HeadModel) -> Bool:
    """Whether R is zero, or has a diagonal that can be divided by."""
    if not m.logistic:
        at = 0
        for i in range(len(m.coefficients)):
            if m.r[0] != real(0) and not (m.r[at] >= m.head_least):
                return False
            for j in range(len(m.coefficients) - i):
                if m.r[0] == real(0) and m.r[at + j] != real(0):
                    return False
            at = at + len(m.coefficients) - i
    return True
