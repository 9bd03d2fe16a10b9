"""Models that were trained elsewhere, in integers: no call uses floating point, and only probabilities need divisions.

The functions are f_o(x) = sum_i weights_io k(v_i, x) + bias_o, as in ``pykernel.algorithms.frozen``.
"""

from pykernel.algorithms import frame, frozen, inputs
from pykernel.algorithms.extents import FUNCTIONS, N_MAX, WEIGHTS
from pykernel.algorithms.frame import Status, refusal
from pykernel.algorithms.frozen import FrozenModel, FunctionsConfig, share
from pykernel.algorithms.int16.arithmetic import clip, part_of, places, size
from pykernel.algorithms.int16.frame import Int16Framed, acceptable
from pykernel.algorithms.int16.inputs import Int16InputConfig
from pykernel.algorithms.int16.kernels import (
    ONE,
    STEEP,
    Int16Function,
    Int16KernelConfig,
    distance,
    dot,
    dot_eight,
    octaves,
    power,
    square_norm,
    value_at,
)
from pykernel.algorithms.rule import LABELLED, questions, standing
from pykernel.dialect import (
    CLASSES,
    DIM,
    OUTPUTS,
    Config,
    Index,
    Int,
    Int8,
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


class Int16Work(Struct):
    """Working memory."""

    f: Word[FUNCTIONS]  # values of the functions, modulo 2^32, because intermediate sums may exceed int32
    votes: Word[CLASSES]  # votes for each class
    # how clear each class's votes are: the sum, over its pairs, of f / 64 in favour of this class, modulo 2^32
    clear: Word[CLASSES]
    p: between(Int[CLASSES], 0, CERTAIN)  # probabilities, before they are divided by their sum
    x: between(Int16[DIM], "-reach", "reach")  # the converted inputs


class Int16TableConfig(Config):
    """The trained functions, derived from a spec by ``pykernel.spec.families.int16``."""

    vectors: Int16[N_MAX, DIM]  # expansion vectors, in the unit of the converted inputs
    eight: bool  # hidden units: whether the vectors have 8 bits per element and are stored in the field ``eights``
    eights: Int8[N_MAX, DIM]  # hidden units: the vectors, if they have 8 bits per element
    norms: Word[N_MAX]  # |v|^2
    shifts: Int[N_MAX]  # hidden units: the offset of each, on the scale of a'b
    # weights of each vector; for pairs of classes, a vector has weights only for the pairs that include its class
    weights: Int16[N_MAX, WEIGHTS]
    bias: Int[FUNCTIONS]
    weight_shift: Index  # a weight times a kernel value is divided by 2 to this power
    # a probability is 1 / (1 + 2^-t), where t, in units of 2^-16, is (f / 2^coarse) steepness / 2^steepness_shift + offset
    limits: Int[FUNCTIONS]  # |f| is clipped to this; a larger |f| would give the same probability
    coarse: Uint8[FUNCTIONS]
    steepness: Int16[FUNCTIONS]
    steepness_shift: Uint8[FUNCTIONS]
    offset: Int[FUNCTIONS]


class Int16FrozenConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.int16``."""

    factors: Int16[FUNCTIONS, DIM]  # linear kernel: the factor of each input in each function
    support_class: Uint8[N_MAX]  # class of each vector
    low: Index  # smallest prediction
    high: Index  # largest prediction


class Int16FrozenModel(Model):
    parts = Int16Work, FunctionsConfig, Int16TableConfig, Int16FrozenConfig, Int16InputConfig, Int16KernelConfig


@kernel
def add_part(m: Int16FrozenModel, f: Index, i: Index, o: Index, k: Index, n: Index) -> None:
    """Add weight o of vector i, multiplied by k / 2^n, to the value of function f."""
    m.f[f] += word(floor_shift(m.weights[i, o] * k, n))


@kernel
def octaves_to(m: Int16FrozenModel, i: Index, square: Word) -> Word:
    """The n, in units of 2^-16, for which the exponential in k(v_i, x) is 2^-n.  square: |x|^2.  O(D)."""
    if m.products:
        # both sides of |x - v|^2 = |x|^2 + |v|^2 - 2 v'x are equal modulo 2^32, and the left side is below 2^32
        return octaves(m, square + m.norms[i] - word(dot(m.x, m.vectors[i])) * 2)
    return octaves(m, distance(m, m.x, m.vectors[i]))


@kernel
def sum_single(m: Int16FrozenModel) -> None:
    """Compute the value of a single function, for a kernel that depends on a distance.  O(N D)."""
    square = square_norm(m.x) if m.products else word(0)
    total = m.bias[0]
    for i in range(len(m.vectors)):
        u = octaves_to(m, i, square)
        if m.rises:
            total += floor_shift(m.weights[i, 0] * value_at(m, u), m.weight_shift)
        else:
            n = index(u >> 16)
            # two separate shifts, because the count of a single shift could exceed 31
            total += floor_shift(floor_shift(m.weights[i, 0] * power(u), n if n < 31 else 31), m.weight_shift)
    m.f[0] = word(total)


@kernel
def logistic(t: Index) -> Index:
    """1 / (1 + 2^-t) in units of 2^-15, for t in units of 2^-16."""
    d = word(-t if t < 0 else t)
    n = index(d >> 16)
    falls = floor_shift(power(d), n + 1) if n < 16 else 0
    share_of = quotient(CERTAIN * CERTAIN, CERTAIN + falls)
    return CERTAIN - share_of if t < 0 else share_of


@kernel
def share_bent(m: Int16FrozenModel, i: Index, s: Index) -> None:
    """For a tanh or logistic unit, add vector i's contribution to the functions.  s: a'b + offset.
    The magnitude of the unit's value is at most 1."""
    k = 2 * logistic(floor_shift(part_of(s, STEEP), m.octave_shift))
    if m.function == Int16Function.TANH:
        k = 2 * k - ONE
    share(m, i, clip(k, -ONE, ONE), m.weight_shift)


@kernel
def share_power(m: Int16FrozenModel, i: Index, s: Index) -> None:
    """For a polynomial kernel or an unbounded hidden unit, add vector i's contribution to the functions.
    s: a'b + coef0; for a hidden unit, a'b + offset.

    The kernel value is k / 2^16 times a power of two, computed from the leading 16 bits of s.  Relative error:
    (degree + 1) 2^-15.
    """
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
def share_product(m: Int16FrozenModel, i: Index) -> None:
    """For a kernel that depends on a'b, add vector i's contribution to the functions.  O(D)."""
    s = (dot_eight(m.x, m.eights[i]) if m.eight else dot(m.x, m.vectors[i])) + (m.shifts[i] if m.hidden else m.coef0)
    if m.function == Int16Function.TANH or m.function == Int16Function.LOGISTIC:
        share_bent(m, i, s)
    elif m.function != Int16Function.RELU or s > 0:
        share_power(m, i, s)


@kernel
def sum_all(m: Int16FrozenModel) -> None:
    """Compute the functions, for a kernel that depends on distances or products.  O(N (D + W)) for W weights per vector."""
    square = square_norm(m.x) if m.products else word(0)
    for o in range(len(m.f)):
        m.f[o] = word(m.bias[o])
    for i in range(len(m.vectors)):
        if m.multiplies:
            share_product(m, i)
        else:
            u = octaves_to(m, i, square)
            if m.rises:
                share(m, i, value_at(m, u), m.weight_shift)
            else:
                n = index(u >> 16) + m.weight_shift
                share(m, i, power(u), n if n < 31 else 31)


@kernel
def evaluate(m: Int16FrozenModel, x: Int16[DIM]) -> None:
    """Compute the functions at the converted inputs m.x.  O(N (D + W)) for W weights per vector; linear: O(D) for each
    function."""
    if m.function == Int16Function.LINEAR:
        for o in range(len(m.f)):
            m.f[o] = word(dot(m.x, m.factors[o]) + m.bias[o])
    elif m.single and not m.multiplies:
        sum_single(m)
    else:
        sum_all(m)


@kernel
def best_function(m: Int16FrozenModel, x: Int16[DIM]) -> Index:
    """The class with the largest function value at x, or a negative status if the input was refused.

    Two classes share one function: a positive value means the second class.
    """
    refused = refusal(m, x)
    if refused < 0:
        return refused
    evaluate(m, x)
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
def count_votes(m: Int16FrozenModel) -> None:
    """Count the votes: in each pair of classes, the winner gets one vote."""
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
def most_voted(m: Int16FrozenModel) -> Index:
    """The class with the most votes; in a tie, the first of the tied classes or, if ``breaks_ties`` is set, the one
    with the clearest votes."""
    best = 0
    for a in range(1, len(m.votes)):
        if m.votes[a] > m.votes[best] or (
            m.breaks_ties and m.votes[a] == m.votes[best] and as_signed(m.clear[a]) > as_signed(m.clear[best])
        ):
            best = a
    return best


@kernel
def decide(m: Int16FrozenModel, y: Int[OUTPUTS]) -> None:
    """Write the values of the functions to y.  [clamps] These values are clipped to the range from low to high."""
    for o in range(len(y)):
        f = as_signed(m.f[o])
        y[o] = clip(f, m.low, m.high) if m.clamps else f


@kernel
def calibrate(m: Int16FrozenModel, p: Int[CLASSES]) -> None:
    """Write to p the probability of each class, in units of 2^-15, computed from the values of the functions."""
    for o in range(len(m.f)):
        f = clip(as_signed(m.f[o]), -m.limits[o], m.limits[o])
        t = floor_shift(floor_shift(f, m.coarse[o]) * m.steepness[o], m.steepness_shift[o]) + m.offset[o]
        m.p[o] = logistic(t)
    if m.single:
        p[1] = m.p[0]
        p[0] = CERTAIN - m.p[0]
    else:
        total = 0
        for o in range(len(m.p)):
            total += m.p[o]
        for o in range(len(m.p)):
            p[o] = quotient(m.p[o] * CERTAIN, total) if total > 0 else quotient(CERTAIN, len(m.p))


@kernel
def chances(m: Int16FrozenModel, x: Int16[DIM], p: Int[CLASSES]) -> None:
    """Write the probability of each class to p.  With more than two classes, the probabilities are normalised.
    J. Platt, Probabilities for SV Machines, 1999."""
    evaluate(m, x)
    calibrate(m, p)


STAND_INS = standing(
    Int16FrozenModel,
    {
        Real[DIM]: Int16[DIM],
        Real[OUTPUTS]: Int[OUTPUTS],
        Real[CLASSES]: Int[CLASSES],
        FrozenModel: Int16FrozenModel,
        Int16Framed: Int16FrozenModel,
        Real: Int,
        inputs.acceptable: acceptable,
        frame.respond: frozen.respond,
        frame.most_likely: frozen.most_likely,
        frame.whole_chances: chances,
        frozen.add_part: add_part,
        frozen.evaluate: evaluate,
        frozen.decide: decide,
        frozen.best_function: best_function,
        frozen.count_votes: count_votes,
        frozen.most_voted: most_voted,
        "write f(x) to y.": "write f(x) to y, in units of 1 / LABEL_SCALE.",
        "each class at x to p.": "each class at x to p, in units of 1 / 32768 (Platt, Probabilities for SV Machines, 1999).",
    },
    "O(N D)",
)
INT16_FROZEN: dict[LabelKind, Program] = {
    kind: Program(
        name="frozen",
        structs=(Int16Work,),
        persistent=(),
        configs=(FunctionsConfig, Int16TableConfig, Int16FrozenConfig, Int16InputConfig, Int16KernelConfig),
        statuses=(Status,),
        entries=questions(kind, lambda config: bool(config.calibrated)),
        valid=None,
        labels=kind,
        stand_ins=STAND_INS,
    )
    for kind in LABELLED
}
