"""Models that were trained elsewhere, in whole numbers: no call computes with reals, or divides but for probabilities.

The functions are f_o(x) = sum_i weights_io k(v_i, x) + bias_o, as in ``pykernel.algorithms.frozen``.
"""

from __future__ import annotations

from pykernel.algorithms import frame, inputs
from pykernel.algorithms.extents import FUNCTIONS, N_MAX, WEIGHTS
from pykernel.algorithms.fixed.inputs import FixedInputConfig, converted
from pykernel.algorithms.fixed.values import (
    FixedFunction,
    FixedKernelConfig,
    clip,
    distance,
    dot,
    octaves,
    places,
    power,
    size,
    square_norm,
    value_at,
)
from pykernel.algorithms.frame import LABELLED, Answering, Status, refusal
from pykernel.algorithms.frozen import Decision
from pykernel.dialect import (
    CLASSES,
    DIM,
    OUTPUTS,
    Bool,
    Config,
    Index,
    Int,
    Int16,
    Model,
    Real,
    Struct,
    Uint8,
    Word,
    as_signed,
    between,
    floor_shift,
    index,
    kernel,
    multiply_high,
    quotient,
    word,
)
from pykernel.dialect.program import LabelKind, Program

CERTAIN = 32768
"""A probability of 1."""


class FixedWork(Struct):
    """Working memory."""

    f: Word[FUNCTIONS]  # values of the functions, modulo 2^32: a sum may leave int32 on its way
    votes: Word[CLASSES]  # votes for each class
    clear: Word[CLASSES]  # how clear they were: the sum of the class's functions, in 64ths, modulo 2^32
    p: between(Int[CLASSES], 0, CERTAIN)  # probabilities, before they are divided by their sum
    x: between(Int16[DIM], "-reach", "reach")  # the converted inputs


class FixedFrozenConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.fixed``."""

    decision: Decision
    products: bool  # whether distances are computed from products
    single: bool  # whether there is one function
    breaks_ties: bool  # pairs: whether of classes with equal votes the clearer wins, not the first
    calibrated: bool  # whether functions give probabilities
    clamps: bool  # whether predictions are kept between low and high
    vectors: Int16[N_MAX, DIM]  # expansion vectors, in the unit of the converted inputs
    norms: Word[N_MAX]  # |v|^2
    weights: Int16[N_MAX, WEIGHTS]  # weights of each vector; for pairs of classes, in the functions of its class
    factors: Int16[FUNCTIONS, DIM]  # linear: the factor of each input in each function
    bias: Int[FUNCTIONS]
    support_class: Uint8[N_MAX]  # class of each vector
    weight_shift: Index  # a weight times a kernel value is divided by 2 to this power
    # probabilities: 1 / (1 + 2^-t) with t = (f / 2^coarse) slope / 2^slope_shift + offset, in octaves / 2^16
    limits: Int[FUNCTIONS]  # largest |f| that makes a difference
    coarse: Uint8[FUNCTIONS]
    slope: Int16[FUNCTIONS]
    slope_shift: Uint8[FUNCTIONS]
    offset: Int[FUNCTIONS]
    low: Index  # smallest prediction
    high: Index  # largest prediction


class FixedFrozenModel(Model):
    parts = FixedWork, FixedFrozenConfig, FixedInputConfig, FixedKernelConfig


@kernel
def share(m: FixedFrozenModel, i: Index, k: Index, n: Index) -> None:
    """Add vector i's part to the functions: its weights times k / 2^n.  Pairs: to those of its own class."""
    if m.decision == Decision.FUNCTIONS:
        for o in range(len(m.f)):
            m.f[o] += word(floor_shift(m.weights[i, o] * k, n))
    else:
        own = m.support_class[i]
        # pairs are in the order (0, 1), (0, 2), ... (1, 2), ...; this is (0, own)
        pair = own - 1
        for r in range(len(m.weights[0])):
            if r >= own:
                pair += 1
            m.f[pair] += word(floor_shift(m.weights[i, r] * k, n))
            if r < own:
                pair += len(m.weights[0]) - r - 1


@kernel
def octaves_to(m: FixedFrozenModel, i: Index, square: Word) -> Word:
    """How far x is from v_i, in octaves of the kernel; square is |x|^2.  O(D)."""
    if m.products:
        # both sides of |x - v|^2 = |x|^2 + |v|^2 - 2 v'x are equal modulo 2^32, and the left one is below 2^32
        return octaves(m, square + m.norms[i] - word(dot(m.x, m.vectors[i])) * 2)
    return octaves(m, distance(m, m.x, m.vectors[i]))


@kernel
def sum_single(m: FixedFrozenModel) -> None:
    """The one function of a kernel of distances.  O(N D)."""
    square = square_norm(m.x) if m.products else word(0)
    total = m.bias[0]
    for i in range(len(m.vectors)):
        u = octaves_to(m, i, square)
        if m.rises:
            total += floor_shift(m.weights[i, 0] * value_at(m, u), m.weight_shift)
        else:
            n = index(u >> 16) + m.weight_shift
            if n < 32:
                total += floor_shift(m.weights[i, 0] * power(u), n)
    m.f[0] = word(total)


@kernel
def share_power(m: FixedFrozenModel, i: Index) -> None:
    """Add vector i's part to the functions of a polynomial kernel.  O(D).

    Its value is k / 2^16 times a power of two, from the first 16 bits of a'b.  Relative error: degree + 1 bits of 2^-15.
    """
    s = dot(m.x, m.vectors[i]) + m.coef0
    u = word(size(s))
    lost = 31 - places(u)
    top = index((u << lost) >> 16)
    p = top * 16384
    for turn in range(1, m.degree):
        p = multiply_high(p, top)
    gained = 29 - places(word(p))
    gained = gained if gained > 0 else 0
    k = index(((word(p) << gained) >> 14) & 65535)
    k = -k if s < 0 and m.odd else k
    n = lost * m.degree + gained + m.weight_shift
    if n < 32:
        share(m, i, k, n if n > 0 else 0)


@kernel
def evaluate(m: FixedFrozenModel) -> None:
    """Compute the functions at the converted inputs.  O(N (D + W)) for W weights of a vector; linear: O(D W)."""
    if m.function == FixedFunction.LINEAR:
        for o in range(len(m.f)):
            m.f[o] = word(dot(m.x, m.factors[o]) + m.bias[o])
    elif m.single and m.function != FixedFunction.POLYNOMIAL:
        sum_single(m)
    else:
        square = square_norm(m.x) if m.products else word(0)
        for o in range(len(m.f)):
            m.f[o] = word(m.bias[o])
        for i in range(len(m.vectors)):
            if m.function == FixedFunction.POLYNOMIAL:
                share_power(m, i)
            else:
                u = octaves_to(m, i, square)
                if m.rises:
                    share(m, i, value_at(m, u), m.weight_shift)
                else:
                    n = index(u >> 16) + m.weight_shift
                    if n < 32:
                        share(m, i, power(u), n)


@kernel
def value_of(m: FixedFrozenModel, o: Index) -> Index:
    """Function o, within its limits."""
    f = as_signed(m.f[o])
    return clip(f, m.low, m.high) if m.clamps else f


@kernel
def best_function(m: FixedFrozenModel) -> Index:
    """The class with the largest function.  Two classes share one function: a positive value means the second class."""
    best = 0
    if len(m.f) == 1:
        if as_signed(m.f[0]) > 0:
            best = 1
    else:
        for o in range(1, len(m.f)):
            if as_signed(m.f[o]) > as_signed(m.f[best]):
                best = o
    return best


@kernel
def count_votes(m: FixedFrozenModel) -> None:
    """Count the votes: each class gets a vote for each other class that it wins against."""
    for a in range(len(m.votes)):
        m.votes[a] = word(0)
        m.clear[a] = word(0)
    pair = 0
    for a in range(len(m.votes)):
        for b in range(a + 1, len(m.votes)):
            f = as_signed(m.f[pair])
            if f > 0:
                m.votes[a] += word(1)
            else:
                m.votes[b] += word(1)
            m.clear[a] += word(floor_shift(f, 6))
            m.clear[b] -= word(floor_shift(f, 6))
            pair += 1


@kernel
def most_voted(m: FixedFrozenModel) -> Index:
    """The class that wins against most others; of classes that win as often, the first one or the clearest."""
    best = 0
    for a in range(1, len(m.votes)):
        if m.votes[a] > m.votes[best]:
            best = a
        elif m.breaks_ties and m.votes[a] == m.votes[best]:
            if as_signed(m.clear[a]) > as_signed(m.clear[best]):
                best = a
    return best


@kernel
def acceptable(m: FixedFrozenModel, x: Int16[DIM]) -> Bool:
    """Whether every input is within its limit; m.x is then the converted input."""
    return converted(m, x, m.x)


@kernel
def respond(m: FixedFrozenModel, x: Int16[DIM], y: Int[OUTPUTS]) -> None:
    """y = f(x).  m.x is the input."""
    evaluate(m)
    for o in range(len(y)):
        y[o] = value_of(m, o)


@kernel
def most_likely(m: FixedFrozenModel, x: Int16[DIM]) -> Index:
    """The most likely class of x; below 0: why the input was refused."""
    refused = refusal(m, x)
    if refused < 0:
        return refused
    evaluate(m)
    if m.decision == Decision.FUNCTIONS:
        return best_function(m)
    count_votes(m)
    return most_voted(m)


@kernel
def logistic(t: Index) -> Index:
    """1 / (1 + 2^-t) in units of 2^-15, for t in units of 2^-16."""
    d = word(-t if t < 0 else t)
    n = index(d >> 16)
    falls = floor_shift(power(d), n + 1) if n < 16 else 0
    share_of = quotient(CERTAIN * CERTAIN, CERTAIN + falls)
    return CERTAIN - share_of if t < 0 else share_of


@kernel
def calibrate(m: FixedFrozenModel) -> None:
    """Compute a probability of each function, in units of 2^-15."""
    for o in range(len(m.f)):
        f = clip(as_signed(m.f[o]), -m.limits[o], m.limits[o])
        t = floor_shift(floor_shift(f, m.coarse[o]) * m.slope[o], m.slope_shift[o]) + m.offset[o]
        m.p[o] = logistic(t)


@kernel
def chances(m: FixedFrozenModel, x: Int16[DIM], p: Int[CLASSES]) -> None:
    """p: the probability of each class.  J. Platt, Probabilities for SV Machines, 1999.  Of several classes, normalised."""
    evaluate(m)
    calibrate(m)
    if m.single:
        p[1] = m.p[0]
        p[0] = CERTAIN - m.p[0]
    else:
        total = 0
        for o in range(len(m.p)):
            total += m.p[o]
        for o in range(len(m.p)):
            p[o] = quotient(m.p[o] * CERTAIN, total) if total > 0 else quotient(CERTAIN, len(m.p))


ANSWERING = Answering(
    FixedFrozenModel,
    "O(N D)",
    {
        Real[DIM]: Int16[DIM],
        Real[OUTPUTS]: Int[OUTPUTS],
        Real[CLASSES]: Int[CLASSES],
        inputs.acceptable: acceptable,
        frame.respond: respond,
        frame.most_likely: most_likely,
        frame.chances: chances,
        "write f(x) to y.": "write f(x) to y, in units of 1 / LABEL_SCALE.",
        "each class at x to p.": "each class at x to p, in units of 1 / 32768 (Platt, Probabilities for SV Machines, 1999).",
    },
    lambda config: bool(config.calibrated),
)
FIXED_FROZEN: dict[LabelKind, Program] = {
    kind: Program(
        name="frozen",
        structs=(FixedWork,),
        persistent=(),
        configs=(FixedFrozenConfig, FixedInputConfig, FixedKernelConfig),
        statuses=(Status,),
        entries=ANSWERING.questions(kind),
        valid=None,
        labels=kind,
    )
    for kind in LABELLED
}
