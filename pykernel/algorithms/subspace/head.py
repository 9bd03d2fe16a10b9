"""A linear model on features that move: ridge regression by recursive least squares, or logistic regression by gradients.

It learns from the features of a sample before the subspace learns the sample.  So it follows the moving subspace.
"""

from pykernel.algorithms.elementary import clipped, exp_negative, logistic
from pykernel.algorithms.kernel_choice import winner
from pykernel.algorithms.packed import solve_lower, solve_upper, take_up
from pykernel.algorithms.subspace.state import RANK, SubspaceConfig, SubspaceWork
from pykernel.dialect import OUTPUTS, Bool, Index, Real, Struct, between, extent, kernel, real

HEAD = extent("HEAD", "(r + 1) (r + 2) / 2: size of a triangle with a row for each feature and one for the constant")


class Head(Struct):
    """The head predicts f(x) = coefficients' (z(x), 1) from the features z(x)."""

    # factor R: R'R = ridge I + fading sum of (z, 1) (z, 1)'; rows begin at the diagonal
    r: between(Real[HEAD], "-sum_limit", "sum_limit")
    # coefficients of the features, then of the constant
    coefficients: between(Real[RANK + 1, OUTPUTS], "-coefficient_limit", "coefficient_limit")
    turn: between(Index, 0, RANK)  # the coefficient whose ridge is refilled next


@kernel
def evaluate(h: Head, w: SubspaceWork, y: Real[OUTPUTS]) -> None:
    """Compute the functions' values at the features w.z.  O(r) for each function."""
    last = len(w.z) - 1
    for o in range(len(y)):
        total = h.coefficients[last, o]
        for i in range(last):
            total += h.coefficients[i, o] * w.z[i]
        y[o] = total


# ------------------------------------------------------------------------------------------------ ridge regression


@kernel
def follow(h: Head, w: SubspaceWork, c: SubspaceConfig) -> None:
    """Change the coefficients by (R'R)^-1 w.gain times w.error, after the row w.gain was added to R.  O(r^2)."""
    solve_lower(h.r, w.gain, len(w.gain), len(w.gain))
    solve_upper(h.r, w.gain, len(w.gain), len(w.gain))
    for i in range(len(w.gain)):
        for o in range(len(w.error)):
            h.coefficients[i, o] = clipped(
                h.coefficients[i, o] + w.gain[i] * w.error[o], -c.coefficient_limit, c.coefficient_limit
            )


@kernel
def fade(h: Head, w: SubspaceWork, c: SubspaceConfig) -> None:
    """Reduce the weight of earlier samples.  Then refill the ridge of the coefficient whose turn it is.  O(r^2)."""
    for i in range(len(h.r)):
        h.r[i] = c.root_forgetting * h.r[i]
    turn = h.turn[0]
    for i in range(len(w.row)):
        w.row[i] = c.refill if i == turn else real(0)
        w.gain[i] = w.row[i]
    for o in range(len(w.error)):
        w.error[o] = -(c.refill * h.coefficients[turn, o])
    take_up(h.r, w.row, c.head_least, turn, len(w.row), len(w.row))
    follow(h, w, c)
    h.turn[0] = turn + 1 if turn + 1 < len(w.row) else 0


@kernel
def in_turn(h: Head, c: SubspaceConfig) -> Bool:
    """Whether turn is the number of a coefficient, even in overwritten memory."""
    if c.forgets:
        return h.turn[0] >= 0 and h.turn[0] < len(h.coefficients)
    return True


@kernel
def learn_ridge(h: Head, w: SubspaceWork, c: SubspaceConfig) -> None:
    """Learn by recursive least squares.  Givens rotations update R, and the gain updates the coefficients.  O(r^2).

    S. Haykin, Adaptive Filter Theory, square-root RLS; min sum forgetting^(t - s) |y_s - f(x_s)|^2 + ridge
    |coefficients|^2.
    """
    if h.r[0] == real(0):
        at = 0
        for i in range(len(w.z)):
            h.r[at] = c.root_ridge
            at = at + len(w.z) - i
    if c.forgets:
        fade(h, w, c)
    evaluate(h, w, w.y)
    for o in range(len(w.error)):
        w.error[o] = w.target[o] - w.y[o]
    for i in range(len(w.z)):
        w.row[i] = w.z[i]
        w.gain[i] = w.z[i]
    take_up(h.r, w.row, c.head_least, 0, len(w.row), len(w.row))
    follow(h, w, c)


# --------------------------------------------------------------------------------------------- logistic regression


@kernel
def probabilities(c: SubspaceConfig, y: Real[OUTPUTS]) -> None:
    """Convert the functions' values to probabilities: of the second of two classes, or of each class.  O(classes)."""
    if c.single:
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
def learn_logistic(h: Head, w: SubspaceWork, c: SubspaceConfig, share: Real) -> None:
    """Learn by a step down the gradient of -log p + share |coefficients|^2 / 2.  O(r) for each class.

    The step is a part of the safe step.  The second derivative along (z, 1) is at most (|z|^2 + 1) / 4, or
    (|z|^2 + 1) / 2 with more than two classes.
    """
    length = real(0)
    for i in range(len(w.z)):
        length += w.z[i] * w.z[i]
    step = c.head_eta * (real(1) / length)
    keep = real(1) - step * share
    if keep < real(0):
        keep = real(0)
    evaluate(h, w, w.y)
    probabilities(c, w.y)
    for o in range(len(w.error)):
        # a label is 1 or -1
        wanted = real(1) if w.target[o] > real(0) else real(0)
        w.error[o] = step * (wanted - w.y[o])
    for i in range(len(w.z)):
        for o in range(len(w.error)):
            h.coefficients[i, o] = clipped(
                keep * h.coefficients[i, o] + w.error[o] * w.z[i], -c.coefficient_limit, c.coefficient_limit
            )


@kernel
def learn(h: Head, w: SubspaceWork, c: SubspaceConfig, share: Real) -> None:
    """Learn that the functions should be w.target at the features w.z."""
    if c.logistic:
        learn_logistic(h, w, c, share)
    else:
        learn_ridge(h, w, c)


@kernel
def forget_labels(h: Head) -> None:
    """Forget what the head learned."""
    for i in range(len(h.r)):
        h.r[i] = real(0)
    for i in range(len(h.coefficients)):
        for o in range(len(h.coefficients[0])):
            h.coefficients[i, o] = real(0)
    h.turn[0] = 0


@kernel
def valid_head(h: Head, c: SubspaceConfig) -> Bool:
    """Whether R is zero, or has a diagonal that can be divided by."""
    if not c.logistic:
        at = 0
        for i in range(len(h.coefficients)):
            if h.r[0] != real(0) and not (h.r[at] >= c.head_least):
                return False
            for j in range(len(h.coefficients) - i):
                if h.r[0] == real(0) and h.r[at + j] != real(0):
                    return False
            at = at + len(h.coefficients) - i
    return True
