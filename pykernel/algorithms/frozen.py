"""Models that were trained elsewhere: tables of kernel expansions with one or several functions, and decisions between classes.

f_o(x) = sum_i weights_io k(v_i, x) + bias_o.  Support vector machines with more than two classes have one function for
each pair of them (C.-C. Chang, C.-J. Lin, LIBSVM: A Library for Support Vector Machines, 2011, section 7).
"""

from enum import IntEnum

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import (
    ROUNDING,
    clipped,
    exp2_rounded,
    platt,
    winner,
)
from pykernel.algorithms.extents import FUNCTIONS, N_MAX, ROW, ROWS, WEIGHTS
from pykernel.algorithms.frame import Status, predict, refusal
from pykernel.algorithms.inputs import InputConfig, rescale
from pykernel.algorithms.kernel_choice import KernelConfig, feature_value
from pykernel.algorithms.kernels import squared_norm
from pykernel.algorithms.rule import LABELLED, questions, standing
from pykernel.algorithms.vectors import copy, multiply, zero
from pykernel.dialect import (
    CLASSES,
    DIM,
    OUTPUTS,
    Config,
    Index,
    Model,
    Real,
    Struct,
    absolute,
    kernel,
    real,
    truncate,
    unroll,
)
from pykernel.dialect.program import LabelKind, Program


class Decision(IntEnum):
    """The meaning of the functions, and the values that a prediction writes."""

    FUNCTIONS = 0  # one function for each output; a prediction writes the values of these functions
    OVO = 1  # one function for each pair of classes; a prediction writes the values of these functions
    # one function for each pair of classes; a prediction writes each class's votes plus a number from -1/3 to 1/3 that
    # measures how clear the votes were
    OVO_VOTE = 2


class FrozenWork(Struct):
    """Working memory."""

    x: Real[DIM]  # the scaled inputs
    f: Real[FUNCTIONS]  # values of the functions
    y: Real[OUTPUTS]  # predicted values
    votes: Real[CLASSES]  # votes for each class


class FunctionsConfig(Config):
    """The functions of a floating-point or int16 model, and how they are used."""

    decision: Decision
    products: bool  # whether distances are computed from inner products
    single: bool  # whether there is one function
    breaks_ties: (
        bool  # for pairs of classes: whether a tie goes to the class with the clearest votes, not to the first class
    )
    calibrated: bool  # whether a calibration converts the functions to probabilities
    clamps: bool  # whether predictions are clipped to the range from low to high


class FrozenConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.frozen``."""

    vectors: Real[N_MAX, DIM]  # expansion vectors
    # for hidden units and Fourier features: the number that is added to each vector's inner product with the input
    shifts: Real[N_MAX]
    # weights of each vector; for pairs of classes, a vector has weights only for the pairs that include its class
    weights: Real[N_MAX, WEIGHTS]
    # one row for each vector v: the number -rate |v|^2, the vector 2 rate v, and v's weights; a row of zeros follows if the number of
    # vectors is odd
    rows: Real[ROWS, ROW]
    square_limit: Real  # if rate |x|^2 is above this, all kernel values are zero
    bias: Real[FUNCTIONS]
    support_class: Index[N_MAX]  # class of each vector
    slopes: Real[OUTPUTS]  # probability = 1 / (1 + exp(-(slope f + offset)))
    offsets: Real[OUTPUTS]
    low: Real  # smallest prediction
    high: Real  # largest prediction


class FrozenModel(Model):
    parts = FrozenWork, FunctionsConfig, FrozenConfig, InputConfig, KernelConfig


@kernel
def add_part(m: FrozenModel, f: Index, i: Index, o: Index, k: Real, n: Index) -> None:
    """Add weight o of vector i times the kernel value k to function f.  n: in int16 models, k is divided by 2^n."""
    m.f[f] += (m.rows[i, 1 + len(m.vectors[0]) + o] if m.products else m.weights[i, o]) * k


@kernel
def share(m: FrozenModel, i: Index, k: Real, n: Index) -> None:
    """Add vector i's contribution to the functions.  [not decision FUNCTIONS] Only the functions of pairs that include the
    vector's class are changed."""
    if m.decision == Decision.FUNCTIONS:
        for o in range(len(m.f)):
            add_part(m, o, i, o, k, n)
    else:
        own = m.support_class[i]
        # pairs are in the order (0, 1), (0, 2), ... (1, 2), ...; the first pair of this class is (0, own)
        pair = own - 1
        for r in range(len(m.weights[0])):
            if r >= own:
                pair += 1
            add_part(m, pair, i, r, k, n)
            if r < own:
                pair += len(m.weights[0]) - r - 1


@kernel
def sum_by_products(m: FrozenModel, x: Real[DIM], shift: Real) -> None:
    """Compute sum_i weights_i 2^(row_i' (1, x) - k), where shift = ROUNDING - k for an integer k.  O(N (D + W)).

    Adding shift to an exponent rounds it to an integer and subtracts k, both at once.
    """
    if m.single:
        total = real(0)
        # two rows are processed at a time: their sums are independent, so the processor can overlap them
        for i in range(0, len(m.rows), 2):
            t = m.rows[i, 0]
            u = m.rows[i + 1, 0]
            for j in unroll(len(x)):
                t += m.rows[i, 1 + j] * x[j]
                u += m.rows[i + 1, 1 + j] * x[j]
            rounded = t + shift
            total += m.rows[i, 1 + len(x)] * exp2_rounded(t - (rounded - shift), rounded)
            rounded = u + shift
            total += m.rows[i + 1, 1 + len(x)] * exp2_rounded(u - (rounded - shift), rounded)
        m.f[0] = total
    else:
        for i in range(len(m.vectors)):
            t = m.rows[i, 0]
            for j in unroll(len(x)):
                t += m.rows[i, 1 + j] * x[j]
            rounded = t + shift
            share(m, i, exp2_rounded(t - (rounded - shift), rounded), 0)


@kernel
def evaluate_by_products(m: FrozenModel, x: Real[DIM]) -> None:
    """Compute the functions for Gaussian kernels, using -rate |v - x|^2 = row' (1, x) - rate |x|^2.  O(N (D + W))."""
    square = m.rate * squared_norm(x)
    zero(m.f, len(m.f))
    # if the square is above the limit, all kernel values are zero; the condition is false if the square overflowed
    if square <= m.square_limit:
        # the integer nearest to the square is subtracted when each exponent is rounded; a factor at the end accounts
        # for the rest of the square
        whole = real(truncate(square + real(0.5)))
        sum_by_products(m, x, ROUNDING - whole)
        rest = exp2_rounded(whole - square, ROUNDING)
        multiply(m.f, rest, len(m.f))
    for o in range(len(m.f)):
        m.f[o] += m.bias[o]


@kernel
def evaluate_scaled(m: FrozenModel, x: Real[DIM]) -> None:
    """Compute the functions at scaled inputs.  O(N (D + W)) for W weights per vector."""
    if m.products:
        evaluate_by_products(m, x)
    elif m.single:
        # total is a local variable: if sums were stored in m.f, compilers would load x again for each vector
        total = m.bias[0]
        for i in range(len(m.vectors)):
            total += m.weights[i, 0] * feature_value(m, m.shifts[i], m.vectors[i], x)
        m.f[0] = total
    else:
        copy(m.bias, m.f, len(m.f))
        for i in range(len(m.vectors)):
            share(m, i, feature_value(m, m.shifts[i], m.vectors[i], x), 0)


@kernel
def count_votes(m: FrozenModel) -> None:
    """Count the votes: each class gets one vote for every class that it beats."""
    zero(m.votes, len(m.votes))
    pair = 0
    for a in range(len(m.votes)):
        for b in range(a + 1, len(m.votes)):
            if m.f[pair] > real(0):
                m.votes[a] += real(1)
            else:
                m.votes[b] += real(1)
            pair = pair + 1


@kernel
def weigh_votes(m: FrozenModel) -> None:
    """Add to each class's votes a number between -1/3 and 1/3 that measures how clear these votes were, as
    scikit-learn's decision_function does."""
    for a in range(len(m.votes)):
        clear = real(0)
        # the pairs are (b, a) for b < a; (0, a) is the first of them
        pair = a - 1
        for b in range(a):
            clear = clear - m.f[pair]
            pair = pair + len(m.votes) - b - 2
        for b in range(a + 1, len(m.votes)):
            pair = pair + 1
            clear = clear + m.f[pair]
        m.votes[a] += clear * (real(1) / (real(3) * (absolute(clear) + real(1))))


@kernel
def decide(m: FrozenModel, y: Real[OUTPUTS]) -> None:
    """Compute the predicted values from the functions."""
    if m.decision == Decision.OVO_VOTE:
        count_votes(m)
        weigh_votes(m)
        copy(m.votes, y, len(y))
    else:
        for o in range(len(y)):
            y[o] = clipped(m.f[o], m.low, m.high) if m.clamps else m.f[o]


@kernel
def evaluate(m: FrozenModel, x: Real[DIM]) -> None:
    """Compute the functions at x."""
    if m.rescales:
        rescale(m, x, m.x)
        evaluate_scaled(m, m.x)
    else:
        evaluate_scaled(m, x)


@kernel
def respond(m: FrozenModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x)."""
    evaluate(m, x)
    decide(m, y)


@kernel
def best_function(m: FrozenModel, x: Real[DIM]) -> Index:
    """The class with the largest function value at x, or a negative status if the input was refused.

    This function calls predict, as ask_probability does, so that only one C function contains the whole computation.
    With several copies of the computation, GCC 12 would unroll the loop over inputs less often.
    """
    refused = predict(m, x, m.y)
    if refused < 0:
        return refused
    return winner(m.y)


@kernel
def most_voted(m: FrozenModel) -> Index:
    """The class with the most votes.  If several classes tie, the result is the first of them or, if ``breaks_ties`` is
    set, the one with the clearest votes."""
    if m.breaks_ties:
        weigh_votes(m)
    best = 0
    for a in range(1, len(m.votes)):
        if m.votes[a] > m.votes[best]:
            best = a
    return best


@kernel
def most_likely(m: FrozenModel, x: Real[DIM]) -> Index:
    """The most likely class of x, or a negative status if the input was refused."""
    if m.decision == Decision.FUNCTIONS:
        return best_function(m, x)
    refused = refusal(m, x)
    if refused < 0:
        return refused
    evaluate(m, x)
    count_votes(m)
    return most_voted(m)


@kernel
def ask_probability(m: FrozenModel, x: Real[DIM], p: Real[CLASSES]) -> Index:
    """Write the probability of each class at x to p (Platt, Probabilities for SV Machines, 1999).  The probabilities sum to 1.

    O(answer).
    Returns DONE, or REFUSED_INPUT with p unchanged.
    """
    refused = predict(m, x, m.y)
    if refused < 0:
        return refused
    platt(m.y, m.slopes, m.offsets, p, m.single)
    return Status.DONE


STAND_INS = standing(
    FrozenModel,
    {
        frame.respond: respond,
        frame.most_likely: most_likely,
        frame.probability: ask_probability,
    },
    "O(N D)",
)
FROZEN: dict[LabelKind, Program] = {
    kind: Program(
        name="frozen",
        structs=(FrozenWork,),
        persistent=(),
        configs=(FunctionsConfig, FrozenConfig, InputConfig, KernelConfig),
        statuses=(Status,),
        entries=questions(kind, lambda config: bool(config.calibrated)),
        valid=None,
        labels=kind,
        stand_ins=STAND_INS,
    )
    for kind in LABELLED
}
