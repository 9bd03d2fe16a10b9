"""Kernel expansions that were trained elsewhere and keep learning: f(x) = f_0(x) + sum_i w_i k(v_i, x) + w_N.

The vectors v_i and the trained function f_0(x) = sum_i m_i k(v_i, x) + bias are constants.  Only w is learned.  Before
the first sample, w is zero, and the predictions equal those of the frozen model (``pykernel.algorithms.frozen``), bit
for bit.  The features phi are the kernel values k(v_i, x) and the constant 1.  Weights are learned as in
``pykernel.algorithms.linear`` by normalised least mean squares, or by recursive least squares whose forgetting leads
back to the prior (S. Van Vaerenbergh, M. Lazaro-Gredilla, I. Santamaria, Kernel Recursive Least-Squares Tracker, 2012,
III.A).  For the prediction error e, the weights' covariance P and the forgetting factor lambda, the recursion is

    w <- w + P phi e / (1 + phi'P phi),  P <- lambda (P - P phi phi'P / (1 + phi'P phi)) + (1 - lambda) P_0,  P_0 = prior_variance I.

The model keeps D = P_0 - P, which is zero at first: D <- lambda (D + P phi phi'P / (1 + phi'P phi)).  D is a sum of
outer products, so D is positive semidefinite, and P never exceeds P_0.  P also stays at or above (1 - lambda) P_0, far
above rounding errors.  The model therefore needs no square root of P.

If labels are classes, learning can instead minimise the loss -log p_y, where y is the label's class and p = softmax(f)
are the class probabilities.  With respect to the weights of class c, the loss has the gradient (p_c - t_c) phi, where
t_c is 1 for c = y and 0 for other classes.  With respect to f_c, its second derivative is at most 1/4 (D. Boehning,
Multinomial logistic regression algorithm, 1992).  For a second derivative of 1/4, Newton's step equals the
least-squares step for the error e_c = 4 (t_c - p_c).  Two classes share one function f, the log odds of the second
class; the softmax is applied to -f / 2 and f / 2.  A class without training data is never predicted before its first
label.

If labels are numbers, f_0 is first subtracted from the labels, so that every stage works with the residual of the
trained function.  Therefore, the model has its own ``respond`` instead of the frame's.
"""

from dataclasses import replace

from pykernel.algorithms import frame
from pykernel.algorithms.doubt import DoubtStatus
from pykernel.algorithms.elementary import (
    ROUNDING,
    bounded,
    clipped,
    each_class,
    exp2_rounded,
    platt,
)
from pykernel.algorithms.expert import calibrated, mix
from pykernel.algorithms.extents import FEATURES, PACKED
from pykernel.algorithms.frame import WILD, Status, hear, strays
from pykernel.algorithms.interval import Covered
from pykernel.algorithms.kernel_choice import KernelConfig, feature_value
from pykernel.algorithms.kernels import squared_norm
from pykernel.algorithms.linear import (
    Gain,
    Linear,
    LinearConfig,
    LinearModel,
    LinearStatus,
    LinearWork,
    learn_by_gradient,
    shift,
)
from pykernel.algorithms.poll import by_chance, calibrate, favour, poll, random_labels, soften, tell
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.stages import clamp, combine, see, warm_up
from pykernel.algorithms.vectors import all_zero, copy, multiply, plus_product
from pykernel.dialect import (
    CLASSES,
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Real,
    Struct,
    absolute,
    between,
    kernel,
    real,
    sqrt,
    truncate,
    unroll,
)


class ExpansionConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.expansion``."""

    begins: bool  # whether there is a trained function f_0
    continues: bool  # whether f_0 is subtracted from labels
    adds: bool  # whether there are classes without training data
    trained_classes: Index  # number of trained classes
    products: bool  # whether distances are computed from inner products
    calibrated: bool  # whether a calibration converts the functions to probabilities
    vectors: Real[FEATURES - 1, DIM]  # v
    # for hidden units and Fourier features: the number that is added to each vector's inner product with the input
    shifts: Real[FEATURES - 1]
    multipliers: Real[FEATURES - 1, OUTPUTS]  # m, the multipliers of the trained functions
    bias: Real[OUTPUTS]  # the constants of the trained functions
    folded: Real[FEATURES - 1, DIM + 1]  # one row for each vector v: the number -rate |v|^2, then the vector 2 rate v
    square_limit: Real  # if rate |x|^2 is above this, all kernel values are zero
    prior_variance: Real  # variance of each weight before the first sample
    settled_limit: Real  # limit to which |D_ij| is clipped: a little above prior_variance
    # probability = 1 / (1 + exp(-(slope f + offset)))
    calibration_slopes: Real[OUTPUTS]
    calibration_offsets: Real[OUTPUTS]

    tunable = frozenset("prior_variance settled_limit".split())


class ExpansionWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    trained: Real[OUTPUTS]  # values of the trained functions


class Settled(Struct):
    """How far learning has reduced the weights' covariance: D = P_0 - P."""

    # the lower triangle of D, row by row; D is the prior covariance minus the current covariance
    settled: between(Real[PACKED], "-settled_limit", "settled_limit")


class ExpansionModel(LinearModel):
    parts = Settled, ExpansionWork, ExpansionConfig, KernelConfig


# ------------------------------------------------------------------------------------------------ kernel values


@kernel
def compare(m: ExpansionModel, x: Real[DIM]) -> None:
    """phi_i = k(v_i, x).  O(N D)."""
    for i in range(len(m.vectors)):
        m.phi[i] = feature_value(m, m.shifts[i], m.vectors[i], x)


@kernel
def compare_by_products(m: ExpansionModel, x: Real[DIM]) -> Real:
    """Compute phi_i = k(v_i, x) / c, and return the common factor c.  O(N D).

    As in ``frozen.evaluate_by_products``, the exponents are -rate |v - x|^2 = row' (1, x) - rate |x|^2.
    """
    square = m.rate * squared_norm(x)
    # if the square is above the limit, all kernel values are zero; the condition is also true if the square overflowed
    if not (square <= m.square_limit):
        for i in range(len(m.vectors)):
            m.phi[i] = real(0)
        return real(1)
    whole = real(truncate(square + real(0.5)))
    offset = ROUNDING - whole
    for i in range(len(m.vectors)):
        t = m.folded[i, 0]
        for j in unroll(len(x)):
            t += m.folded[i, 1 + j] * x[j]
        rounded = t + offset
        m.phi[i] = exp2_rounded(t - (rounded - offset), rounded)
    return exp2_rounded(whole - square, ROUNDING)


@kernel
def make_values(m: ExpansionModel, x: Real[DIM]) -> None:
    """Write the features at x to m.phi, and the trained functions' values to m.trained.  O(N D), plus O(N) for each
    output."""
    rest = real(1)
    if m.products:
        rest = compare_by_products(m, x)
    else:
        compare(m, x)
    if m.begins:
        for o in range(len(m.trained)):
            # the terms are added in the same order as in the frozen model, so the sum has the same bits
            total = real(0) if m.products else m.bias[o]
            for i in range(len(m.vectors)):
                total += m.multipliers[i, o] * m.phi[i]
            m.trained[o] = rest * total + m.bias[o] if m.products else total
    if m.products:
        multiply(m.phi, rest, len(m.vectors))
    m.phi[len(m.vectors)] = real(1)


@kernel
def learned(m: ExpansionModel, o: Index) -> Real:
    """The rule's own prediction, computed from the features: the learned part, plus f_0 unless f_0 was subtracted from
    the labels."""
    total = plus_product(m.weights[o, len(m.vectors)], m.weights[o], m.phi, len(m.vectors))
    return m.trained[o] + total if m.begins and not m.continues else total


@kernel
def weigh(m: ExpansionModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x), or only its learned part if f_0 is subtracted from the labels.  O(N D), plus O(N) for each output."""
    make_values(m, x)
    for o in range(len(y)):
        y[o] = learned(m, o)


@kernel
def clamp_rest(m: ExpansionModel, y: Real[OUTPUTS]) -> None:
    """Clip the predictions y to the range from low to high.  If y does not include f_0, clip f_0 + y instead."""
    for o in range(len(y)):
        if m.continues:
            y[o] = clipped(m.trained[o] + y[o], m.low, m.high) - m.trained[o]
        else:
            y[o] = clipped(y[o], m.low, m.high)


@kernel
def respond(m: ExpansionModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x), including f_0, after applying the stages to the rule's own prediction."""
    see(m, x)
    weigh(m, m.x, y)
    combine(m, m.x, y)
    if m.mixes:
        if m.votes:
            poll(m, x, y)
        else:
            mix(m, x, y)
    for o in range(len(y)):
        if m.continues:
            y[o] = m.trained[o] + y[o]
        if m.clamps:
            y[o] = clipped(y[o], m.low, m.high)


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def take_off(m: ExpansionModel, x: Real[DIM], y: Real[OUTPUTS]) -> Bool:
    """Subtract f_0 from the labels.  Returns False: inputs are scaled by constants, so there is no warm-up."""
    if m.continues:
        see(m, x)
        make_values(m, m.x)
        for o in range(len(m.y)):
            m.y[o] = bounded(m.y[o] - m.trained[o], m.label_limit)
    return False


@kernel
def gather(m: ExpansionModel, fresh: Bool) -> Real:
    """Compute g = P phi, and return phi'P phi.  fresh: whether P is taken as P_0.  O(N^2)."""
    for i in range(len(m.phi)):
        m.g[i] = m.prior_variance * m.phi[i]
    if not fresh:
        row = 0
        for i in range(len(m.phi)):
            taken = m.settled[row + i] * m.phi[i]
            for j in range(i):
                taken += m.settled[row + j] * m.phi[j]
                m.g[j] = m.g[j] - m.settled[row + j] * m.phi[i]
            m.g[i] = m.g[i] - taken
            row += i + 1
    return plus_product(real(0), m.phi, m.g, len(m.phi))


@kernel
def settle(m: ExpansionModel, inverse: Real, fresh: Bool) -> None:
    """Update D to lambda (D + inverse g g').  fresh: whether D is taken as 0.  O(N^2)."""
    row = 0
    for i in range(len(m.g)):
        share = inverse * m.g[i]
        for j in range(i + 1):
            before = real(0) if fresh else m.settled[row + j]
            m.settled[row + j] = bounded(m.forgetting * (before + share * m.g[j]), m.settled_limit)
        row += i + 1


@kernel
def learn_by_least_squares(m: ExpansionModel) -> Index:
    """Replace w by w + P phi e / (1 + phi'P phi), and update P.  O(N^2)."""
    spread = gather(m, False)
    # P can fail to be positive semidefinite only if memory was overwritten; P is then reset
    fresh = not (spread >= real(0))
    if fresh:
        spread = gather(m, True)
    if strays(m, sqrt(real(1) + spread)):
        return DoubtStatus.RESTARTED
    inverse = real(1) / (real(1) + spread)
    status = shift(m, inverse)
    if status == Status.DONE:
        settle(m, inverse, fresh)
    return status


@kernel
def learn(m: ExpansionModel, x: Real[DIM]) -> Index:
    """Learn a sample: the rule's own prediction should be m.y.  Returns DONE, RESTARTED, or REFUSED_WEIGHT with nothing
    changed."""
    if not m.continues:
        make_values(m, x)
    for o in range(len(m.y)):
        m.error[o] = learned(m, o)
    hear(m)
    # if nothing is learned, P must not shrink: otherwise later errors would move the weights too little
    if m.separates and all_zero(m.error, len(m.y)):
        return Status.DONE
    if m.gain == Gain.NLMS:
        return learn_by_gradient(m)
    return learn_by_least_squares(m)


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def blank(m: ExpansionModel) -> Bool:
    """Whether nothing has been learned yet.  O(N), or O(N^2) with least squares."""
    for o in range(len(m.weights)):
        if not all_zero(m.weights[o], len(m.weights[0])):
            return False
    return m.gain == Gain.NLMS or all_zero(m.settled, len(m.settled))


@kernel
def keeps(m: ExpansionModel) -> Bool:
    """Whether learning could have led to this state: D_ii >= 0 and |D_ij| <= D_ii + D_jj, which leaves room for rounding.
    O(N^2).
    """
    if m.gain == Gain.RLS:
        row = 0
        for i in range(len(m.phi)):
            if not (m.settled[row + i] >= real(0)):
                return False
            diagonal = 0
            for j in range(i):
                if not (absolute(m.settled[row + j]) <= m.settled[row + i] + m.settled[diagonal]):
                    return False
                diagonal += j + 2
            row += i + 1
    return True


# ------------------------------------------------------------------------------------------------ probabilities


@kernel
def chances(m: ExpansionModel, x: Real[DIM], p: Real[CLASSES]) -> None:
    """Write the probability of each class at x to p."""
    respond(m, x, m.y)
    platt(m.y, m.calibration_slopes, m.calibration_offsets, p, m.single)


# -------------------------------------------------------------------------------------------------- softmax of classes


@kernel
def halve(m: ExpansionModel, y: Real[OUTPUTS]) -> None:
    """Prepare y for the softmax: two classes have the functions -f / 2 and f / 2, so a single f is halved."""
    if m.single:
        y[0] = real(0.5) * y[0]


@kernel
def unknown(m: ExpansionModel, o: Index) -> Bool:
    """Whether no sample of class o has been learned yet.  Until then, the weight of the class's constant feature is 0."""
    return m.weights[o, len(m.vectors)] == real(0)


@kernel
def name_classes(m: ExpansionModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x), except that each class with neither training data nor a label so far gets a value below all others.
    O(N D), plus O(N) for each output."""
    weigh(m, x, y)
    if m.adds:
        for o in range(m.trained_classes, len(y)):
            if unknown(m, o):
                y[o] = m.low


@kernel
def hold_back(m: ExpansionModel, y: Real[OUTPUTS]) -> None:
    """Change y, the joint prediction of model and expert, so that a class with neither training data nor a label so far
    is never predicted, regardless of its class weight.  Such a class gets at most e / k, the probability that random
    labels contribute (see poll.py), and the other classes share the rest.  O(classes)."""
    least = random_labels(m) * by_chance(len(y))
    known = real(0)
    rest = real(1)
    for o in range(len(y)):
        if o >= m.trained_classes and unknown(m, o):
            if m.polled[o] > least:
                m.polled[o] = least
            rest = rest - m.polled[o]
        else:
            known += m.polled[o]
    for o in range(len(y)):
        if not (o >= m.trained_classes and unknown(m, o)):
            m.polled[o] = m.polled[o] * (rest / known)
        y[o] = real(2) * m.polled[o] - real(1)
        m.polled[o] = real(0.5) * (y[o] + real(1))
    if m.weights_classes:
        favour(m, y)
        for o in range(m.trained_classes, len(y)):
            if unknown(m, o):
                y[o] = real(-1)


@kernel
def weigh_classes(m: ExpansionModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Write to y the values from which probabilities are computed.  O(N D), plus O(N) for each output."""
    name_classes(m, x, y)
    halve(m, y)


@kernel
def respond_classes(m: ExpansionModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """Write f(x) to y or, if there is a linear expert, the joint prediction of model and expert."""
    see(m, x)
    name_classes(m, m.x, y)
    if m.votes:
        halve(m, y)
        poll(m, x, y)
        if m.adds:
            hold_back(m, y)


@kernel
def chances_of_classes(m: ExpansionModel, x: Real[DIM], p: Real[CLASSES]) -> None:
    """Write the calibrated probability of each class at x to p."""
    respond_classes(m, x, m.y)
    halve(m, m.y)
    tell(m, m.y)
    each_class(m.y, p)


@kernel
def errs_wildly(m: ExpansionModel) -> Bool:
    """Whether another class's value in m.error exceeds the value of the label's class by more than a limit.  For two
    classes: whether the magnitude of the single value exceeds this limit.  O(N).

    The limit is WILD times sqrt(1 + prior_variance |phi|^2).  Learning takes small steps, so only overwritten memory
    can lead to such values.
    """
    square = real(0)
    for k in range(len(m.phi)):
        square += m.phi[k] * m.phi[k]
    most = WILD * sqrt(real(1) + m.prior_variance * square)
    for o in range(len(m.y)):
        if m.single:
            if not (absolute(m.error[o]) <= most):
                return True
        elif m.y[o] > real(0) and not unknown(m, o):
            for c in range(len(m.y)):
                if not (m.error[c] - m.error[o] <= most):
                    return True
    return False


@kernel
def learn_classes(m: ExpansionModel, x: Real[DIM]) -> Index:
    """Learn that x belongs to the class whose m.y is 1.  Returns DONE or RESTARTED."""
    weigh_classes(m, x, m.error)
    copy(m.error, m.value, len(m.y))
    if not m.votes:
        calibrate(m, m.error, m.trained, m.y)
    wild = errs_wildly(m)
    soften(m.error, real(1))
    for o in range(len(m.y)):
        m.error[o] = real(4) * ((real(1) if m.y[o] > real(0) else real(0)) - m.error[o])
    status = LinearStatus.REFUSED_WEIGHT
    if not wild:
        status = learn_by_least_squares(m)
    if status == LinearStatus.REFUSED_WEIGHT:
        return DoubtStatus.RESTARTED
    return status


@kernel
def keeps_classes(m: ExpansionModel) -> Bool:
    """Whether learning could have led to this state.  O(N^2)."""
    return keeps(m) and (m.votes or calibrated(m))


RULE = Rule(
    name="expansion",
    model=ExpansionModel,
    memory=(Linear, Settled),
    work=(LinearWork, ExpansionWork),
    configs=(LinearConfig, ExpansionConfig, KernelConfig),
    statuses=LinearStatus,
    hooks={
        LinearModel: ExpansionModel,
        Covered: ExpansionModel,
        frame.answer: weigh,
        frame.learn: learn,
        frame.respond: respond,
        warm_up: take_off,
        clamp: clamp_rest,
        frame.blank: blank,
        frame.keeps: keeps,
        frame.chances: chances,
    },
    costs=(
        "O(N D) for N vectors",
        "[not gain RLS] O(N D) for N vectors.  [gain RLS] O(N^2 + N D) for N vectors",
    ),
    calibrated=lambda config: bool(config.calibrated),
)
EXPANSION = programs(RULE)
EXPANSION_SOFTMAX = programs(
    replace(
        RULE,
        name="expansion-softmax",
        hooks={
            **RULE.hooks,
            frame.answer: weigh_classes,
            frame.learn: learn_classes,
            frame.respond: respond_classes,
            frame.keeps: keeps_classes,
            frame.chances: chances_of_classes,
        },
        calibrated=lambda config: True,
        labels=("class",),
    )
)
