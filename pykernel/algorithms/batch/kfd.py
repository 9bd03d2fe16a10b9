"""The kernel Fisher discriminant on a basis, trained on the device, in memory that does not grow with the number of samples.

z(x) = (k(v_1, x), ..., k(v_P, x)) for the basis v.  If N_c of the N samples belong to a class, the function of this
class has the target N/N_c for these samples, and the target -N/(N - N_c) for all other samples.  Let y be the
vector of these targets, and let the rows of Z be the samples' z.  The alpha that minimises |y - Z alpha - b|^2 +
ridge |alpha|^2 is Fisher's discriminant (S. Mika et al., Fisher Discriminant Analysis with Kernels, 1999; with targets:
J. Xu, X. Zhang, Y. Li, Kernel MSE algorithm, 2001).  The state consists of the class counts, the means of z (over each
class and over all samples), and the packed upper triangular factor R with R'R = scatter of z + ridge I.  Givens
rotations add each sample to R: in float32 this allows smaller ridges than normal equations, which square R's condition
number.  Leave-one-out errors come from a second pass over the samples (G. C. Cawley, N. L. C. Talbot 2003, here with a
fixed basis, and with targets computed from the class counts without the left-out sample).
"""

from enum import IntEnum

from pykernel.algorithms import frame
from pykernel.algorithms.batch.krr import COLLECTS
from pykernel.algorithms.elementary import winner
from pykernel.algorithms.extents import P_MAX, PACKED
from pykernel.algorithms.frame import Status, refusal
from pykernel.algorithms.inputs import InputConfig, rescale
from pykernel.algorithms.kernel_choice import KernelConfig, kernel_value
from pykernel.algorithms.packed import columns_within, solve_lower, solve_upper
from pykernel.algorithms.rule import UPDATES, questions, standing
from pykernel.algorithms.vectors import all_zero, copy, minus_product, plus_product, zero
from pykernel.dialect import (
    CLASSES,
    DIM,
    OUTPUTS,
    Bool,
    Config,
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


class FisherStatus(IntEnum):
    """Status codes that only discriminants return."""

    TOO_FEW = -4  # there are fewer than two samples, or a class has no sample
    ILL_CONDITIONED = -5  # the ridge is too small for these samples and this precision
    NOT_TRAINED = -6  # the model was not trained on all samples, or no sample was assessed: call train, then assess
    FULL = -7  # the number of samples has reached the limit for this precision: call restart
    REFUSED_LEVERAGE = -8  # the leverage of the sample is too close to 1, or the model was trained without the sample


class Scatter(Struct):
    """Statistics of the collected samples."""

    # factor R: R'R = sum of (z - mean)(z - mean)' + ridge I; rows begin at the diagonal
    r: between(Real[PACKED], "-r_limit", "r_limit")
    mean: between(Real[P_MAX], "-z_limit", "z_limit")  # mean of z
    means: between(Real[CLASSES, P_MAX], "-z_limit", "z_limit")  # mean of z in each class
    counts: between(Index[CLASSES], 0, "most")  # number of samples of each class


class Discriminant(Struct):
    """The model is f(x) = alpha' z(x) + bias, where z(x) are the kernel values between x and the basis."""

    alpha: between(Real[OUTPUTS, P_MAX], "-alpha_limit", "alpha_limit")
    bias: between(Real[OUTPUTS], "-alpha_limit", "alpha_limit")
    press: between(Real, 0, "press_limit")  # sum of squared leave-one-out residuals
    # leave-one-out errors: number of samples that are classified wrongly when left out
    mistakes: between(Index, 0, "most")
    assessed: between(Index, 0, "most")  # number of assessed samples, over which press and mistakes are sums
    # number of training samples; 0 if update or restart was called after the training
    trained: between(Index, 0, "most")


class FisherWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    x: Real[DIM]  # a scaled input
    z: Real[P_MAX]  # kernel values between the input and the basis
    d: Real[P_MAX]  # z - mean
    solved: Real[OUTPUTS, P_MAX]  # alpha of the next model
    y: Real[OUTPUTS]  # function values


class FisherConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.batch``."""

    single: bool  # whether there is one function, positive for the second of two classes
    assesses: bool  # whether the caller keeps the samples, and passes them to assess() after the training
    basis: Real[P_MAX, DIM]  # scaled vectors of the basis
    ridge: Real  # weight of |alpha|^2
    root_ridge: Real  # square root of the ridge
    least: Real  # smallest allowed ratio of the ridge to the trace of R'R, for this precision
    most: Index  # largest number of samples between restarts: rounding errors in R add up
    free: Real  # smallest allowed value of 1 - leverage for a sample
    alpha_limit: Real  # largest allowed magnitude of the bias and of each element of alpha
    press_limit: Real  # bound on the sum of squared leave-one-out residuals
    z_limit: Real  # bound on the magnitude of every kernel value
    r_limit: Real  # bound on the magnitude of every element of R


class FisherModel(Model):
    parts = Scatter, Discriminant, FisherWork, FisherConfig, InputConfig, KernelConfig


# --------------------------------------------------------------------------------------------------- predicting


@kernel
def correlate(m: FisherModel, x: Real[DIM]) -> None:
    """Write the kernel values between the input x and the basis vectors to m.z.  O(P D)."""
    if m.rescales:
        rescale(m, x, m.x)
        for i in range(len(m.z)):
            m.z[i] = kernel_value(m, m.basis[i], m.x)
    else:
        for i in range(len(m.z)):
            m.z[i] = kernel_value(m, m.basis[i], x)


@kernel
def respond(m: FisherModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x)."""
    correlate(m, x)
    for o in range(len(y)):
        y[o] = plus_product(m.bias[o], m.alpha[o], m.z, len(m.z))


# ---------------------------------------------------------------------------------------------------- gathering


@kernel
def count_all(m: FisherModel) -> Index:
    """Number of samples collected since the last restart."""
    n = 0
    for k in range(len(m.counts)):
        n = n + m.counts[k]
    return n


@kernel
def countable(m: FisherModel) -> Bool:
    """Whether all counts are within their ranges.  In overwritten memory, a count may be out of range."""
    for k in range(len(m.counts)):
        if m.counts[k] < 0 or m.counts[k] > m.most:
            return False
    if m.assesses:
        return m.trained[0] >= 0 and m.trained[0] <= m.most and m.assessed[0] >= 0 and m.assessed[0] <= m.most
    return True


@kernel
def rotate(m: FisherModel) -> None:
    """Add d d' to R'R by Givens rotations.  O(P^2 / 2).  G. H. Golub, C. F. Van Loan, Matrix Computations, 6.5."""
    row = 0
    for j in range(len(m.d)):
        r = m.r[row]
        length = sqrt(r * r + m.d[j] * m.d[j])
        inverse = real(1) / length
        cosine = r * inverse
        sine = m.d[j] * inverse
        m.r[row] = length
        for i in range(j + 1, len(m.d)):
            old = m.r[row + i - j]
            m.r[row + i - j] = cosine * old + sine * m.d[i]
            m.d[i] = cosine * m.d[i] - sine * old
        row = row + len(m.d) - j


@kernel
def begin(m: FisherModel) -> None:
    """Set R such that R'R = ridge I."""
    row = 0
    for j in range(len(m.mean)):
        m.r[row] = m.root_ridge
        row = row + len(m.mean) - j


@kernel
def acceptable_class(m: FisherModel, label: Index) -> Bool:
    """Whether there is a class with this number."""
    return label >= 0 and label < len(m.counts)


@kernel
def collect(m: FisherModel, x: Real[DIM], label: Index) -> Index:
    """Collect the sample x of class ``label``.  O(P (P + D)).

    Returns DONE.  If too many samples have been collected, returns FULL and changes nothing.
    """
    n = count_all(m)
    # counts[label] >= most implies n >= most; the second check is for static analysis, which does not know that n is a sum of counts
    if n >= m.most or m.counts[label] >= m.most:
        return FisherStatus.FULL
    if n == 0:
        begin(m)
    correlate(m, x)
    part = real(1) / real(n + 1)
    weight = sqrt(real(n) * part)
    own = real(1) / real(m.counts[label] + 1)
    for i in range(len(m.z)):
        d = m.z[i] - m.mean[i]
        m.d[i] = weight * d
        m.mean[i] += part * d
        m.means[label, i] += own * (m.z[i] - m.means[label, i])
    m.counts[label] += 1
    if n > 0:
        rotate(m)
    m.trained[0] = 0
    return Status.DONE


@kernel
def forget_samples(m: FisherModel) -> Index:
    """Forget the collected samples.  The model does not change.  O(P^2)."""
    zero(m.r, len(m.r))
    for i in range(len(m.mean)):
        m.mean[i] = real(0)
        for k in range(len(m.counts)):
            m.means[k, i] = real(0)
    for k in range(len(m.counts)):
        m.counts[k] = 0
    m.trained[0] = 0
    return Status.DONE


# ----------------------------------------------------------------------------------------------------- training


@kernel
def forward(m: FisherModel) -> None:
    """Replace d by R'^-1 d.  O(P^2 / 2)."""
    solve_lower(m.r, m.d, len(m.d), len(m.d))


@kernel
def class_of(m: FisherModel, o: Index) -> Index:
    """The class for which function o is positive."""
    return 1 if m.single else o


@kernel
def solve(m: FisherModel, o: Index, n: Index) -> Bool:
    """Compute alpha = N^2 / (N - N_c) (R'R)^-1 (class mean - overall mean), and b = -alpha' (overall mean).

    Returns False if b or an element of alpha exceeds the limit.
    """
    k = class_of(m, o)
    scale = real(n) * (real(n) / real(n - m.counts[k]))
    for i in range(len(m.d)):
        m.d[i] = scale * (m.means[k, i] - m.mean[i])
    forward(m)
    solve_upper(m.r, m.d, len(m.d), len(m.d))
    bias = real(0)
    for i in range(len(m.d)):
        if not (absolute(m.d[i]) <= m.alpha_limit):
            return False
        m.solved[o, i] = m.d[i]
        bias = bias - m.d[i] * m.mean[i]
    m.y[o] = bias
    return absolute(bias) <= m.alpha_limit


@kernel
def train(m: FisherModel) -> Index:
    """Train: make a model from the collected samples.  More samples can be collected later.  O(P^2) for each function.

    Returns DONE if the model was trained.  If the status is TOO_FEW or ILL_CONDITIONED, the model is unchanged.
    """
    if not countable(m):
        return Status.REFUSED_STATE
    n = count_all(m)
    if n < 2:
        return FisherStatus.TOO_FEW
    for k in range(len(m.counts)):
        if m.counts[k] == 0:
            return FisherStatus.TOO_FEW
    # R'R has no eigenvalue above its trace or below the ridge, so this limits its condition number
    if not (m.ridge >= m.least * plus_product(real(0), m.r, m.r, len(m.r))):
        return FisherStatus.ILL_CONDITIONED
    for o in range(len(m.y)):
        solved = solve(m, o, n)
        if not solved:
            return FisherStatus.ILL_CONDITIONED
    copy(m.y, m.bias, len(m.y))
    for o in range(len(m.y)):
        copy(m.solved[o], m.alpha[o], len(m.z))
    # n <= most is always true; the check bounds n for static analysis, which does not know that n is a sum of counts
    if m.assesses and n <= m.most:
        m.trained[0] = n
    m.assessed[0] = 0
    m.mistakes[0] = 0
    m.press[0] = real(0)
    return Status.DONE


# -------------------------------------------------------------------------------------------------- leave one out


@kernel
def without(positive: Bool, own: Index, n: Index, fitted: Real, free: Real) -> Real:
    """Compute a function's value at a sample, as if this sample had been left out of the training and of the class counts
    from which the targets are computed.

    fitted: the function's value at the sample after training on all samples, with the target 1 in the class and 0
    elsewhere.  own: number of samples in the class.  free: 1 - the leverage of the sample.  If the sample is the only
    one in the class, or the only one outside the class, all other samples have the same target, and the result is this
    target.
    """
    one = real(1) if positive else real(0)
    left = own - 1 if positive else own
    rest = n - 1 - left
    if left == 0:
        return real(-1)
    if rest == 0:
        return real(1)
    value = one - (one - fitted) / free
    return real(n - 1) * (value / real(left) - (real(1) - value) / real(rest))


@kernel
def assess(m: FisherModel, x: Real[DIM], label: Index) -> Index:
    """Add a sample's leave-one-out error to the results.  The model must have been trained on this sample.  O(P (P + D)).

    Returns DONE if the error was added.  If the status is REFUSED_INPUT, REFUSED_LABEL, NOT_TRAINED, FULL or
    REFUSED_LEVERAGE, nothing has changed.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    if not acceptable_class(m, label):
        return Status.REFUSED_LABEL
    n = m.trained[0]
    if n == 0:
        return FisherStatus.NOT_TRAINED
    if m.assessed[0] >= m.most:
        return FisherStatus.FULL
    correlate(m, x)
    for i in range(len(m.z)):
        m.d[i] = m.z[i] - m.mean[i]
    squares = real(0)
    for o in range(len(m.y)):
        k = class_of(m, o)
        own = real(m.counts[k])
        others = real(n - m.counts[k])
        value = plus_product(real(0), m.alpha[o], m.d, len(m.d))
        # the function's value if the targets were 1 in the class and 0 elsewhere
        m.y[o] = own / real(n) + value * (own / real(n)) * (others / real(n))
    forward(m)
    free = minus_product(real(1) - real(1) / real(n), m.d, m.d, len(m.d))
    if not (free >= m.free):
        return FisherStatus.REFUSED_LEVERAGE
    for o in range(len(m.y)):
        k = class_of(m, o)
        target = real(n) / real(m.counts[k]) if k == label else -(real(n) / real(n - m.counts[k]))
        m.y[o] = without(k == label, m.counts[k], n, m.y[o], free)
        residual = target - m.y[o]
        squares += residual * residual
    if not (m.press[0] + squares <= m.press_limit):
        return FisherStatus.REFUSED_LEVERAGE
    m.press[0] += squares
    # mistakes <= assessed is always true; the check bounds mistakes for static analysis, which sees only one call
    if winner(m.y) != label and m.mistakes[0] <= m.assessed[0]:
        m.mistakes[0] += 1
    m.assessed[0] += 1
    return Status.DONE


@kernel
def leave_one_out(m: FisherModel, out: Real[2]) -> Index:
    """Write the leave-one-out results of the assessed samples: out[0] is the mean squared residual, and out[1] is the
    error rate.

    Returns DONE.  If no sample has been assessed since the training, returns NOT_TRAINED without writing to out.
    """
    if m.assessed[0] == 0:
        return FisherStatus.NOT_TRAINED
    out[0] = m.press[0] * (real(1) / real(m.assessed[0])) * (real(1) / real(len(m.bias)))
    out[1] = real(m.mistakes[0]) / real(m.assessed[0])
    return Status.DONE


# -------------------------------------------------------------------------------------- self-test and snapshots


@kernel
def valid_scatter(m: FisherModel, n: Index) -> Bool:
    """Whether R and the means are possible after n samples.

    Before the first sample, R and the means must be zero.  Later, no diagonal element of R may be too small to divide by,
    and R's columns must be within their limits.
    """
    row = 0
    for j in range(len(m.mean)):
        for k in range(len(m.counts)):
            if m.counts[k] == 0 and m.means[k, j] != real(0):
                return False
        if n == 0 and m.mean[j] != real(0):
            return False
        if n > 0 and not (m.r[row] >= real(0.5) * m.root_ridge):
            return False
        row = row + len(m.mean) - j
    # each element of a sample's z differs from its mean by at most 2 z_limit
    known = real(4) * m.z_limit * m.z_limit * real(n) + real(2) * m.root_ridge * m.root_ridge
    return columns_within(m.r, len(m.mean), known) and (n > 0 or all_zero(m.r, len(m.r)))


@kernel
def valid(m: FisherModel) -> Bool:
    """Whether collecting and training could have led to this state; the fields' ranges have been checked before.  O(P^2)."""
    n = 0
    for k in range(len(m.counts)):
        # each count is read only once, so that the sum cannot overflow even if the storage changes during the check
        more = m.counts[k]
        if more < 0 or more > m.most - n:
            return False
        n = n + more
    if not valid_scatter(m, n):
        return False
    if m.assesses and m.trained[0] != 0 and m.trained[0] != n:
        return False
    return m.mistakes[0] <= m.assessed[0]


STAND_INS = standing(
    FisherModel,
    {
        frame.intact: countable,
        frame.acceptable_class: acceptable_class,
        frame.respond: respond,
        frame.take_class: collect,
        "O(answer)": "O(P D)",
        **COLLECTS,
        "The prediction f(x) has one value for each class; the largest value belongs to the predicted class.": ""
        "Returns FULL if too many samples have been collected.",
    },
    "O(P (P + D))",
)

FISHER: dict[LabelKind, Program] = {
    "class": Program(
        name="fisher",
        structs=(Scatter, Discriminant, FisherWork),
        persistent=(Scatter, Discriminant),
        configs=(FisherConfig, InputConfig, KernelConfig),
        statuses=(Status, FisherStatus),
        entries=(
            *questions("class"),
            Entry("update", UPDATES["class"], "update"),
            Entry("train", train, "training"),
            Entry("assess", assess, "visit", lambda config: config.assesses),
            Entry("leave_one_out", leave_one_out, "reading"),
            Entry("restart", forget_samples, "action"),
        ),
        valid=valid,
        between=("train",),
        stand_ins=STAND_INS,
    ),
}
