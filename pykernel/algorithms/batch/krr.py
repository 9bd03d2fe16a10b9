"""Kernel ridge regression and least squares support vector machines, trained on the device.

Samples are collected in a ring buffer.  Training solves (K + ridge I) alpha = y; for LS-SVM, it also fits an unpenalised bias
(J. A. K. Suykens, J. Vandewalle, Least Squares Support Vector Machine Classifiers, 1999).  The packed Cholesky factor
of K + ridge I is inverted in place.  Let P be the inverse of the linear system's matrix.  This matrix is K + ridge I,
to which LS-SVM adds a row and a column of ones for the bias.  The diagonal of P gives leave-one-out errors at little
cost (G. C. Cawley, N. L. C. Talbot, Efficient leave-one-out cross-validation of kernel Fisher discriminant classifiers,
2003): the prediction without sample i is y_i - alpha_i / P_ii.
"""

from enum import IntEnum

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import clipped, winner
from pykernel.algorithms.extents import L_MAX, PACKED
from pykernel.algorithms.frame import Status
from pykernel.algorithms.inputs import InputConfig, rescale
from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value
from pykernel.algorithms.rule import LABELLED, UPDATES, questions, standing
from pykernel.algorithms.vectors import all_zero, copy, zero
from pykernel.dialect import (
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Constant,
    Index,
    Model,
    Real,
    Struct,
    absolute,
    between,
    kernel,
    real,
    sqrt,
)
from pykernel.dialect.program import Entry, LabelKind, Program

MASS_LEAST = Constant(2.0**-90)
"""A number is used as a divisor only if it is above this value, so that its reciprocal cannot overflow."""


class BatchStatus(IntEnum):
    """Status codes that only models trained on the device return."""

    REPLACED = 2  # the memory for samples was full: the sample replaced the oldest one
    TOO_FEW = -4  # there are fewer than two samples, or a class has no sample
    ILL_CONDITIONED = -5  # the samples are too similar for this ridge and precision: use a larger ridge
    NOT_TRAINED = -6  # there is no model yet: call train


class Samples(Struct):
    """The collected samples."""

    inputs: between(Real[L_MAX, DIM], "-scaled_limit", "scaled_limit")  # scaled inputs of the samples
    # labels of the samples, if labels are numbers
    targets: between(Real[L_MAX, OUTPUTS], "-label_max_abs", "label_max_abs")
    labels: Index[L_MAX]  # classes of the samples, if labels are classes
    count: between(Index, 0, L_MAX)  # number of collected samples; unused places are zero
    next: between(Index, 0, L_MAX - 1)  # place of the next sample


class Trained(Struct):
    """The model is f(x) = sum_i alpha_i k(v_i, x) + bias."""

    # expansion vectors: the training samples
    v: between(Real[L_MAX, DIM], "-scaled_limit", "scaled_limit")
    alpha: between(Real[L_MAX, OUTPUTS], "-alpha_limit", "alpha_limit")  # multipliers
    bias: between(Real[OUTPUTS], "-alpha_limit", "alpha_limit")
    press: between(Real, 0, "press_limit")  # mean squared leave-one-out residual of the training samples
    # leave-one-out error rate: share of the samples that are classified wrongly when left out
    mistaken: between(Real, 0, 1)
    n: between(Index, 0, L_MAX)  # number of expansion vectors in use; unused places are zero


class BatchWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    # K + ridge I, row by row up to the diagonal; then its Cholesky factor; then the inverse of the factor
    factor: Real[PACKED]
    solved: Real[L_MAX, OUTPUTS]  # multipliers of the next model
    shift: Real[OUTPUTS]  # bias of the next model
    sums: Real[L_MAX]  # row sums of |K|; then (K + ridge I)^-1 1
    spread: Real[L_MAX]  # diagonal of (K + ridge I)^-1, minus the part due to the bias
    half: Real[L_MAX]  # reciprocals of the Cholesky factor's diagonal; then the share of each label in the bias
    x: Real[DIM]  # a scaled input
    y: Real[OUTPUTS]  # function values
    squares: Real  # sum of squared leave-one-out residuals
    mistakes: Index  # leave-one-out errors: number of samples that are classified wrongly when left out


class BatchConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.batch``."""

    biased: bool  # whether the model has an unpenalised bias (LS-SVM)
    separates: bool  # whether labels are classes
    single: bool  # whether there is one function
    clamps: bool  # whether predictions are clipped to the range from low to high
    ridge: Real  # number that is added to the Gram matrix's diagonal
    least: Real  # smallest allowed ratio of the ridge to the Gram matrix's largest row sum, for this precision
    scaled_limit: Real  # bound on the magnitude of every scaled input
    label_max_abs: Real  # largest |y| that is accepted
    alpha_limit: Real  # largest allowed magnitude of a multiplier, a bias or a leave-one-out residual
    press_limit: Real  # square of alpha_limit, plus 1%
    low: Real  # smallest prediction
    high: Real  # largest prediction
    classes: Index  # number of classes

    tunable = frozenset("clamps low high label_max_abs alpha_limit press_limit".split())


class BatchModel(Model):
    parts = Samples, Trained, BatchWork, BatchConfig, InputConfig, KernelConfig


# --------------------------------------------------------------------------------------------------- predicting


@kernel
def countable(m: BatchModel) -> Bool:
    """Whether the counts of samples are within their ranges.  In overwritten memory, a count may be out of range."""
    return m.next[0] >= 0 and m.next[0] < len(m.inputs) and m.count[0] >= 0 and m.count[0] <= len(m.inputs)


@kernel
def intact(m: BatchModel) -> Bool:
    """Whether all counts are within their ranges, so that no loop runs past the end of an array, even in overwritten memory."""
    return m.n[0] >= 0 and m.n[0] <= len(m.v) and countable(m)


@kernel
def evaluate_scaled(m: BatchModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Compute the functions' values at a scaled input.  O(L D)."""
    for o in range(len(y)):
        y[o] = m.bias[o]
    for i in range(m.n[0]):
        k = kernel_value(m, m.v[i], x)
        for o in range(len(y)):
            y[o] += m.alpha[i, o] * k


@kernel
def respond(m: BatchModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x)."""
    if m.rescales:
        rescale(m, x, m.x)
        evaluate_scaled(m, m.x, m.y)
    else:
        evaluate_scaled(m, x, m.y)
    for o in range(len(y)):
        y[o] = clipped(m.y[o], m.low, m.high) if m.clamps else m.y[o]


# ---------------------------------------------------------------------------------------------------- gathering


@kernel
def gather(m: BatchModel, x: Real[DIM]) -> Index:
    """Find a place for the sample, and store the sample's inputs there.  Returns DONE or REPLACED."""
    i = m.next[0]
    if m.rescales:
        rescale(m, x, m.inputs[i])
    else:
        for j in range(len(x)):
            m.inputs[i, j] = x[j]
    m.next[0] = i + 1
    if m.next[0] == len(m.inputs):
        m.next[0] = 0
    if m.count[0] == len(m.inputs):
        return BatchStatus.REPLACED
    m.count[0] += 1
    return Status.DONE


@kernel
def acceptable_label(m: BatchModel, y: Real) -> Bool:
    """Whether a label is a number within its limit."""
    return absolute(y) <= m.label_max_abs


@kernel
def collect(m: BatchModel, x: Real[DIM]) -> Index:
    """Collect the sample x, whose labels are in m.y."""
    for o in range(len(m.y)):
        m.targets[m.next[0], o] = m.y[o]
    return gather(m, x)


@kernel
def collect_class(m: BatchModel, x: Real[DIM], label: Index) -> Index:
    """Collect the sample x of class ``label``."""
    m.labels[m.next[0]] = label
    return gather(m, x)


@kernel
def forget_samples(m: BatchModel) -> Index:
    """Forget the collected samples.  The model does not change.  O(L D)."""
    for i in range(len(m.inputs)):
        m.labels[i] = 0
        zero(m.inputs[i], len(m.inputs[0]))
        for o in range(len(m.targets[0])):
            m.targets[i, o] = real(0)
    m.count[0] = 0
    m.next[0] = 0
    return Status.DONE


# ----------------------------------------------------------------------------------------------------- training


@kernel
def represented(m: BatchModel) -> Bool:
    """Whether there are at least two samples, and at least one sample of each class.  O(L) for each class."""
    if m.count[0] < 2:
        return False
    if m.separates:
        for k in range(m.classes):
            found = False
            for i in range(m.count[0]):
                found = found or m.labels[i] == k
            if not found:
                return False
    return True


@kernel
def target(m: BatchModel, i: Index, o: Index) -> Real:
    """The label of sample i for function o.  [separates] This label is 1 if function o should be positive for the sample's
    class, otherwise -1."""
    if m.separates:
        if m.single:
            return real(1) if m.labels[i] == 1 else real(-1)
        return real(1) if m.labels[i] == o else real(-1)
    return m.targets[i, o]


@kernel
def compare(m: BatchModel) -> Real:
    """Write K + ridge I to m.factor.  Returns the largest row sum of |K|, which is at least K's largest eigenvalue.  O(L^2 D)."""
    n = m.count[0]
    at = 0
    for i in range(n):
        m.sums[i] = real(0)
        for j in range(i):
            k = kernel_value(m, m.inputs[i], m.inputs[j])
            m.factor[at] = k
            m.sums[i] += absolute(k)
            m.sums[j] += absolute(k)
            at = at + 1
        own = kernel_value(m, m.inputs[i], m.inputs[i])
        m.factor[at] = own + m.ridge
        m.sums[i] += absolute(own)
        at = at + 1
    largest = real(0)
    for i in range(n):
        if m.sums[i] > largest:
            largest = m.sums[i]
    return largest


@kernel
def factorise(m: BatchModel, n: Index) -> Bool:
    """Replace the matrix by its Cholesky factor.  Returns False if the factorisation fails.  O(L^3 / 6)."""
    row = 0
    for i in range(n):
        other = 0
        for j in range(i):
            total = m.factor[row + j]
            for k in range(j):
                total = total - m.factor[row + k] * m.factor[other + k]
            m.factor[row + j] = total * m.half[j]
            other = other + j + 1
        pivot = m.factor[row + i]
        for k in range(i):
            pivot = pivot - m.factor[row + k] * m.factor[row + k]
        # without rounding errors, the pivot would be at least the ridge
        if not (pivot >= real(0.25) * m.ridge):
            return False
        m.factor[row + i] = sqrt(pivot)
        m.half[i] = real(1) / m.factor[row + i]
        row = row + i + 1
    return True


@kernel
def invert(m: BatchModel, n: Index) -> None:
    """Replace the Cholesky factor by its inverse, row by row in place.  O(L^3 / 6)."""
    row = 0
    for i in range(n):
        other = 0
        for j in range(i):
            # from column j on, row i still contains the factor, not the inverse
            total = real(0)
            start = other
            for k in range(j, i):
                total += m.factor[row + k] * m.factor[start + j]
                start = start + k + 1
            m.factor[row + j] = -(m.half[i] * total)
            other = other + j + 1
        m.factor[row + i] = m.half[i]
        row = row + i + 1


@kernel
def spread_out(m: BatchModel, n: Index) -> Bool:
    """Compute m.sums = (K + ridge I)^-1 1, and write the diagonal of the inverse matrix, minus the part due to the
    bias, to m.spread.  O(L^2).

    Returns False if the total of m.sums or an element of m.spread is too small to divide by.  Cawley and Talbot 2003.
    """
    for i in range(n):
        m.sums[i] = real(0)
        m.spread[i] = real(0)
    mass = real(0)
    row = 0
    for i in range(n):
        half = real(0)
        for j in range(i + 1):
            half += m.factor[row + j]
            m.spread[j] += m.factor[row + j] * m.factor[row + j]
        for j in range(i + 1):
            m.sums[j] += m.factor[row + j] * half
        mass += half * half
        row = row + i + 1
    if m.biased:
        if not (mass > MASS_LEAST):
            return False
        inverse = real(1) / mass
        for i in range(n):
            m.half[i] = m.sums[i] * inverse
            m.spread[i] = m.spread[i] - m.sums[i] * m.half[i]
    for i in range(n):
        if not (m.spread[i] > MASS_LEAST):
            return False
    return True


@kernel
def solve(m: BatchModel, o: Index) -> Bool:
    """Compute the multipliers and the bias of one function.  Returns False if one of these numbers exceeds its limit.
    O(L^2).
    """
    n = m.count[0]
    mean = real(0)
    rest = real(0)
    if m.biased:
        # the bias is computed in two parts, so that a large mean of the labels does not reduce the precision
        for i in range(n):
            mean += target(m, i, o)
        mean = mean * (real(1) / real(n))
        for i in range(n):
            rest += m.half[i] * (target(m, i, o) - mean)
    if not (absolute(mean + rest) <= m.alpha_limit):
        return False
    m.shift[o] = mean + rest
    for i in range(n):
        m.solved[i, o] = real(0)
    row = 0
    for i in range(n):
        half = real(0)
        for j in range(i + 1):
            half += m.factor[row + j] * (target(m, j, o) - mean - rest)
        for j in range(i + 1):
            m.solved[j, o] += m.factor[row + j] * half
        row = row + i + 1
    for i in range(n):
        if not (absolute(m.solved[i, o]) <= m.alpha_limit):
            return False
    return True


@kernel
def leave_out(m: BatchModel) -> Bool:
    """Compute the sum of the squared leave-one-out residuals, and the number of leave-one-out errors.  Returns False if
    a residual exceeds its limit.  O(L).

    The leave-one-out residual of a sample is the residual of a model that is trained without this sample.
    """
    n = m.count[0]
    m.squares[0] = real(0)
    m.mistakes[0] = 0
    for i in range(n):
        for o in range(len(m.y)):
            y = target(m, i, o)
            residual = m.solved[i, o] * (real(1) / m.spread[i])
            if not (absolute(residual) <= m.alpha_limit):
                return False
            m.squares[0] += residual * residual
            m.y[o] = y - residual
        if m.separates and winner(m.y) != m.labels[i]:
            m.mistakes[0] += 1
    return True


@kernel
def commit(m: BatchModel) -> None:
    """Copy the solution to the model.  O(L D)."""
    n = m.count[0]
    m.press[0] = m.squares[0] * (real(1) / real(n * len(m.y)))
    m.mistaken[0] = real(m.mistakes[0]) / real(n)
    for i in range(len(m.v)):
        copy(m.inputs[i], m.v[i], len(m.v[0]))
        if i < n:
            copy(m.solved[i], m.alpha[i], len(m.bias))
        else:
            zero(m.alpha[i], len(m.bias))
    copy(m.shift, m.bias, len(m.bias))
    m.n[0] = n


@kernel
def train(m: BatchModel) -> Index:
    """Train: make a new model from the collected samples.  O(L^3 / 3 + L^2 D).

    Returns DONE if the model was trained.  If the status is TOO_FEW or ILL_CONDITIONED, the model is unchanged.
    """
    if not countable(m):
        return Status.REFUSED_STATE
    if not represented(m):
        return BatchStatus.TOO_FEW
    largest = compare(m)
    if not (m.ridge >= m.least * largest):
        return BatchStatus.ILL_CONDITIONED
    n = m.count[0]
    factorised = factorise(m, n)
    if not factorised:
        return BatchStatus.ILL_CONDITIONED
    invert(m, n)
    bounded = spread_out(m, n)
    if not bounded:
        return BatchStatus.ILL_CONDITIONED
    for o in range(len(m.bias)):
        solved = solve(m, o)
        if not solved:
            return BatchStatus.ILL_CONDITIONED
    settled = leave_out(m)
    if not settled:
        return BatchStatus.ILL_CONDITIONED
    commit(m)
    return Status.DONE


@kernel
def leave_one_out(m: BatchModel, out: Real[2]) -> Index:
    """Write the leave-one-out results of the training: out[0] is the mean squared residual, and out[1] is the error
    rate.

    If the labels are numbers, the error rate is 0.
    Returns DONE.  If the model was not trained, returns NOT_TRAINED without writing to out.
    """
    if m.n[0] == 0:
        return BatchStatus.NOT_TRAINED
    out[0] = m.press[0]
    out[1] = m.mistaken[0]
    return Status.DONE


# -------------------------------------------------------------------------------------- self-test and snapshots


@kernel
def valid_samples(m: BatchModel) -> Bool:
    """Whether m.count and m.next agree, the samples' classes exist, and unused places are zero.  O(L D)."""
    n = m.count[0]
    if n < len(m.inputs) and m.next[0] != n:
        return False
    for i in range(len(m.inputs)):
        if i >= n and not all_zero(m.inputs[i], len(m.inputs[0])):
            return False
        if m.separates:
            if m.labels[i] < 0 or m.labels[i] >= m.classes:
                return False
            if i >= n and m.labels[i] != 0:
                return False
        elif i >= n and not all_zero(m.targets[i], len(m.targets[0])):
            return False
    return True


@kernel
def valid_trained(m: BatchModel) -> Bool:
    """Whether unused places of the trained model are zero.  O(L D)."""
    n = m.n[0]
    for i in range(len(m.v)):
        if i >= n and not (all_zero(m.v[i], len(m.v[0])) and all_zero(m.alpha[i], len(m.bias))):
            return False
    return True


@kernel
def valid(m: BatchModel) -> Bool:
    """Whether learning could have led to this state; the fields' ranges have been checked before.  O(L D)."""
    return valid_samples(m) and valid_trained(m)


COLLECTS = {
    "write f(x) to y.": "write f(x) to y.  Before the first training f(x) is 0.",
    "Learn one sample: for the input x, the prediction should be y.": "Collect a sample for the next training; if the "
    "memory for samples is full, the sample replaces the oldest one.",
    "Learn one sample: the input x belongs to the class whose number, counted from 0, is ``label``.": "Collect a sample for the "
    "next training; ``label`` is the number of its class, counted from 0.",
    "The prediction f(x) has one value for each class; the largest value belongs to the predicted class.": ""
    "If the memory for samples is full, the sample replaces the oldest one.",
    "With two classes, f(x) is a single value; if it is positive, the second class is predicted, otherwise the first.": ""
    "The model does not change before train is called.",
}
"""Sentence in a docstring of the frame -> the replacement for models that collect samples and train later."""
STAND_INS = standing(
    BatchModel,
    {
        frame.intact: intact,
        frame.respond: respond,
        frame.acceptable_label: acceptable_label,
        frame.take: collect,
        frame.take_class: collect_class,
        "O(learn)": "O(D)",
        **COLLECTS,
    },
    "O(L D)",
)

BATCH: dict[LabelKind, Program] = {
    kind: Program(
        name="batch",
        structs=(Samples, Trained, BatchWork),
        persistent=(Samples, Trained),
        configs=(BatchConfig, InputConfig, KernelConfig),
        statuses=(Status, BatchStatus),
        entries=(
            *questions(kind),
            Entry("update", UPDATES[kind], "update"),
            Entry("train", train, "training"),
            Entry("leave_one_out", leave_one_out, "reading"),
            Entry("restart", forget_samples, "action"),
        ),
        valid=valid,
        between=("train",),
        stand_ins=STAND_INS,
    )
    for kind in LABELLED
}
