"""A linear model on the features of a moving subspace: ridge regression by recursive least squares, or logistic regression by gradients.

The model is trained on the features that a sample has before the subspace learns the sample.  As the subspace moves,
the model's coefficients follow.
"""

from pykernel.algorithms.basis.least_squares import fade, take_row
from pykernel.algorithms.elementary import clipped, softmax
from pykernel.algorithms.subspace.state import RANK, SubspaceModel
from pykernel.algorithms.vectors import all_zero, plus_product
from pykernel.dialect import OUTPUTS, Bool, Index, Real, Struct, between, extent, kernel, real

HEAD = extent("HEAD", "(r + 1) (r + 2) / 2: size of a triangle with a row for each feature and one for the constant")


class Head(Struct):
    """The head predicts f(x) = coefficients' (z(x), 1) from the features z(x)."""

    # factor R: R'R = ridge I + fading sum of (z, 1) (z, 1)'; rows begin at the diagonal
    r: between(Real[HEAD], "-sum_limit", "sum_limit")
    # coefficients of the features, then of the constant
    coefficients: between(Real[RANK + 1, OUTPUTS], "-coefficient_limit", "coefficient_limit")
    turn: between(Index, 0, RANK)  # the coefficient whose ridge is restored next


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
def learn_ridge(m: HeadModel) -> None:
    """Learn by recursive least squares.  Givens rotations update R, and the gain updates the coefficients.  O(r^2).

    The coefficients minimise sum forgetting^(t - s) |y_s - f(x_s)|^2 + ridge |coefficients|^2 (S. Haykin, Adaptive Filter Theory,
    square-root RLS).
    """
    if m.r[0] == real(0):
        at = 0
        for i in range(len(m.z)):
            m.r[at] = m.root_ridge
            at = at + len(m.z) - i
    if m.forgets:
        fade(m, m.gain, m.row, len(m.row), m.head_least)
    evaluate(m, m.answers)
    for o in range(len(m.error)):
        m.error[o] = m.y[o] - m.answers[o]
    take_row(m, m.z, m.gain, m.row, len(m.row), m.head_least)


# --------------------------------------------------------------------------------------------- logistic regression


@kernel
def learn_logistic(m: HeadModel, share: Real) -> None:
    """Learn by a gradient descent step on -log p + share |coefficients|^2 / 2, where p is the probability of the
    label's class.  O(r) for each class.

    The step length is eta divided by an upper limit of the second derivative along (z, 1): (|z|^2 + 1) / 4, or
    (|z|^2 + 1) / 2 with more than two classes.
    """
    step = m.head_eta * (real(1) / plus_product(real(0), m.z, m.z, len(m.z)))
    keep = real(1) - step * share
    if keep < real(0):
        keep = real(0)
    evaluate(m, m.answers)
    softmax(m.answers)
    for o in range(len(m.error)):
        # a label is 1 or -1; the wanted probability is 1 or 0
        wanted = real(1) if m.y[o] > real(0) else real(0)
        m.error[o] = step * (wanted - m.answers[o])
    for i in range(len(m.z)):
        for o in range(len(m.error)):
            m.coefficients[i, o] = clipped(
                keep * m.coefficients[i, o] + m.error[o] * m.z[i], -m.coefficient_limit, m.coefficient_limit
            )


@kernel
def forget_labels(m: HeadModel) -> None:
    """Reset the head to its initial state."""
    for i in range(len(m.r)):
        m.r[i] = real(0)
    for i in range(len(m.coefficients)):
        for o in range(len(m.coefficients[0])):
            m.coefficients[i, o] = real(0)
    m.turn[0] = 0


@kernel
def valid_head(m: HeadModel) -> Bool:
    """Whether R is zero, or has diagonal elements that are large enough to divide by."""
    if not m.logistic:
        if m.r[0] == real(0):
            return all_zero(m.r, len(m.r))
        at = 0
        for i in range(len(m.coefficients)):
            if not (m.r[at] >= m.head_least):
                return False
            at = at + len(m.coefficients) - i
    return True
