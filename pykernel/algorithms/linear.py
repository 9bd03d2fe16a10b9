"""Linear models f(x) = sum_k w_k phi_k(x): the cheapest baseline, and the right choice if the function is linear.

There are three choices of features phi: the inputs; the inputs and their products; or random Fourier features (A. Rahimi,
B. Recht, Random Features for Large-Scale Kernel Machines, 2007).  The last feature is always the constant 1.

Weights are learned by normalised least mean squares, or by recursive least squares.  If the features are inputs or their
products, recursive least squares first subtracts the inputs of the first sample from all inputs.  Without this step, a
pressure that varies by 1 hPa around 1013 hPa would be nearly a multiple of the constant feature 1, and float32 has
too few digits to distinguish the two features.  Subtracting constants does not change which functions f the model can
represent.  Recursive least squares minimises, sample by sample, sum_t lambda^(T-t) (y_t - f(x_t))^2 + lambda^T |w|^2 /
prior_variance.  T is the number of samples so far, and lambda is the forgetting factor.  The inverse correlation matrix
P of the features is stored as a triangular factor L, where P = L L', because a full matrix P in float32 would soon lose
its positive definiteness.  L is updated in Carlson's form (G. J. Bierman, Factorization Methods for Discrete Sequential
Estimation, 1977, V.4).  Several outputs share P.
"""

from enum import IntEnum

from pykernel.algorithms import frame
from pykernel.algorithms.doubt import DoubtStatus
from pykernel.algorithms.extents import FEATURES
from pykernel.algorithms.frame import Framed, Status, hear, strays
from pykernel.algorithms.kernels import fourier
from pykernel.algorithms.packed import lower_times, lower_transposed_times, narrow_factor, rows_within
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.vectors import all_zero, copy, plus_product
from pykernel.dialect import (
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
)


class LinearStatus(IntEnum):
    """Statuses that only linear models return."""

    REFUSED_WEIGHT = -3  # a weight would leave its range: learning diverges.  Call reset


class Gain(IntEnum):
    """The vector by which an error is multiplied to change the weights."""

    NLMS = 0  # eta phi / |phi|^2 (J. Nagumo, A. Noda 1967); |phi|^2 is at least 1, because phi contains the constant 1
    RLS = 1  # P phi / (lambda + phi'P phi)


class FeatureKind(IntEnum):
    """The kinds of features."""

    INPUTS = 0  # x_j
    PRODUCTS = 1  # x_j, then x_i x_j for i <= j
    FOURIER = 2  # sqrt(2 / number) cos(2 pi (frequencies x + phases))


class Linear(Struct):
    """The model is f(x) = sum_k w_k phi_k(x), with features phi_k and weights w_k."""

    # weights of the features; the last one belongs to the constant 1
    weights: between(Real[OUTPUTS, FEATURES], "-weight_limit", "weight_limit")
    # L of the inverse correlation matrix P = L L', packed
    root: between(Real[FEATURES * (FEATURES + 1) // 2], "-root_limit", "root_limit")
    # inputs of the first learned sample, which are subtracted from the inputs before features are computed
    origin: between(Real[DIM], "-origin_limit", "origin_limit")
    # 1: a sample has been learned; 0: none, so P is prior_variance times the unit matrix, and ``root`` and ``origin`` are zero
    started: between(Index, 0, 1)


class LinearWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    phi: Real[FEATURES]  # the sample's features
    f: Real[FEATURES]  # L'phi
    g: Real[FEATURES]  # P phi
    p: Real[FEATURES]  # the diagonal of P
    narrowing: Real[FEATURES]  # in the update of L: the factor by which each column is multiplied
    share: Real[FEATURES]  # in the update of L: for each column, the factor of the vector that is subtracted from it


class LinearConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.linear``."""

    gain: Gain
    feature_kind: FeatureKind
    forgets: bool  # whether forgetting < 1
    centres: bool  # whether features are computed from the inputs minus those of the first sample
    origin_limit: Real  # largest |input| that is passed to the rule
    eta: Real  # learning rate
    forgetting: Real  # lambda: each new sample multiplies the weight of all earlier samples by this factor
    start: Real  # square root of prior_variance
    trace_limit: Real  # forgetting pauses while P's trace is above this
    root_limit: Real  # upper limit of |L_ij|, where P = L L'
    amplitude: Real  # sqrt(2 / number of random features)
    frequencies: Real[FEATURES - 1, DIM]  # frequencies of each random feature, in turns per unit of each input
    phases: Real[FEATURES - 1]  # phase of each random feature, in turns: its angle when all inputs are zero
    weight_limit: Real  # largest |w_k| that is stored

    tunable = frozenset("eta forgets forgetting origin_limit start trace_limit root_limit weight_limit".split())


class LinearModel(Framed):
    parts = Linear, LinearWork, LinearConfig


# ----------------------------------------------------------------------------------------------------- features


@kernel
def wave(m: LinearModel, i: Index, x: Real[DIM]) -> Real:
    """Random Fourier feature i.  O(D).  Rahimi and Recht 2007, algorithm 1."""
    return m.amplitude * fourier(m.phases[i], m.frequencies[i], x)


@kernel
def input_of(m: LinearModel, x: Real[DIM], j: Index) -> Real:
    """The value of input j from which features are computed.  [centres] The inputs of the first sample are subtracted.
    Until this sample has been learned, the result is 0."""
    if not m.centres:
        return x[j]
    if m.started[0] == 0:
        return real(0)
    return x[j] - m.origin[j]


@kernel
def make_features(m: LinearModel, x: Real[DIM]) -> None:
    """Compute all features.  [not feature_kind FOURIER] O(F).  [feature_kind FOURIER] O(F D)."""
    if m.feature_kind == FeatureKind.FOURIER:
        for i in range(len(m.phases)):
            m.phi[i] = wave(m, i, x)
    else:
        for j in range(len(x)):
            m.phi[j] = input_of(m, x, j)
    if m.feature_kind == FeatureKind.PRODUCTS:
        k = len(x)
        for i in range(len(x)):
            for j in range(i, len(x)):
                m.phi[k] = m.phi[i] * m.phi[j]
                k += 1
    m.phi[len(m.phi) - 1] = real(1)


@kernel
def weigh(m: LinearModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x), without storing the features.  O(F) for each output.  [feature_kind FOURIER] Plus O(F D) once."""
    for o in range(len(y)):
        total = m.weights[o, len(m.weights[0]) - 1]
        if m.feature_kind != FeatureKind.FOURIER:
            for j in range(len(x)):
                total += m.weights[o, j] * input_of(m, x, j)
        if m.feature_kind == FeatureKind.PRODUCTS:
            k = len(x)
            for i in range(len(x)):
                one = input_of(m, x, i)
                for j in range(i, len(x)):
                    total += m.weights[o, k] * (one * input_of(m, x, j))
                    k += 1
        y[o] = total
    if m.feature_kind == FeatureKind.FOURIER:
        for i in range(len(m.phases)):
            height = wave(m, i, x)
            for o in range(len(y)):
                y[o] += m.weights[o, i] * height


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def correlate(m: LinearModel) -> Real:
    """Compute f = L'phi and g = P phi = L f, and return phi'P phi = f'f.  If forgetting < 1, also compute the
    diagonal of P.  O(F^2)."""
    if m.started[0] == 0:
        for k in range(len(m.phi)):
            m.f[k] = m.start * m.phi[k]
            m.g[k] = m.start * m.f[k]
            m.p[k] = m.start * m.start
    else:
        lower_transposed_times(m.root, m.phi, m.f, 0, len(m.phi))
        lower_times(m.root, m.f, m.g, len(m.phi))
        if m.forgets:
            row = 0
            for i in range(len(m.phi)):
                p = real(0)
                for k in range(i + 1):
                    p += m.root[row + k] * m.root[row + k]
                m.p[i] = p
                row = row + i + 1
    total = real(0)
    for k in range(len(m.phi)):
        total += m.f[k] * m.f[k]
    return total


@kernel
def narrow(m: LinearModel, noise: Real, growth: Real) -> None:
    """Update P to growth^2 (P - g g' / (noise + f'f)), where g = L f.  O(F^2)."""
    if m.started[0] == 0:
        row = 0
        for i in range(len(m.f)):
            m.root[row + i] = m.start
            row = row + i + 1
        m.started[0] = 1
    narrow_factor(m.root, m.f, m.narrowing, m.share, noise, real(0), growth, len(m.f))


@kernel
def revised(m: LinearModel, o: Index, k: Index) -> Real:
    """The new value of a weight; m.error already includes the scalar factor of the gain."""
    if m.gain == Gain.NLMS:
        return m.weights[o, k] + m.error[o] * m.phi[k]
    return m.weights[o, k] + m.error[o] * m.g[k]


@kernel
def shift(m: LinearModel, gain: Real) -> Index:
    """Add gain e phi (NLMS) or gain e g (RLS) to the weights of each output, where e is the error of this output.  If
    any weight would leave its range, no weight changes.  Returns DONE or REFUSED_WEIGHT.  O(F) for each output.

    With a single output, the new weights are first written over the features, and copied to the weights only if all of
    the new weights are in range.
    """
    if m.single:
        m.error[0] = m.error[0] * gain
        for k in range(len(m.phi)):
            m.phi[k] = revised(m, 0, k)
            if not (absolute(m.phi[k]) <= m.weight_limit):
                return LinearStatus.REFUSED_WEIGHT
        copy(m.phi, m.weights[0], len(m.phi))
        return Status.DONE
    for o in range(len(m.y)):
        m.error[o] = m.error[o] * gain
        for k in range(len(m.phi)):
            if not (absolute(revised(m, o, k)) <= m.weight_limit):
                return LinearStatus.REFUSED_WEIGHT
    for o in range(len(m.y)):
        for k in range(len(m.phi)):
            m.weights[o, k] = revised(m, o, k)
    return Status.DONE


@kernel
def learn_by_gradient(m: LinearModel) -> Index:
    """Replace w by w + eta e phi / |phi|^2.  O(F)."""
    total = real(0)
    for k in range(len(m.phi)):
        total += m.phi[k] * m.phi[k]
    if strays(m, sqrt(real(1) + total)):
        return DoubtStatus.RESTARTED
    return shift(m, m.eta * (real(1) / total))


@kernel
def bring_back(m: LinearModel) -> None:
    """Reduce the largest diagonal element of P to its start value, as if the corresponding weight had been measured.
    O(F^2).

    The noise of that measurement is such that p = P_kk becomes start^2.
    """
    k = 0
    row = 0
    at = 0
    for j in range(1, len(m.p)):
        at = at + j
        if m.p[j] > m.p[k]:
            k = j
            row = at
    p = real(0)
    for i in range(len(m.f)):
        m.f[i] = real(0)
    for i in range(k + 1):
        m.f[i] = m.root[row + i]
        p += m.f[i] * m.f[i]
    least = m.start * m.start
    if p > least:
        narrow(m, p * least / (p - least), real(1))


@kernel
def learn_by_least_squares(m: LinearModel, x: Real[DIM]) -> Index:
    """Replace w by w + e P phi / (lambda + phi'P phi), and update P.  O(F^2)."""
    spread = correlate(m)
    if strays(m, sqrt(real(1) + spread)):
        return DoubtStatus.RESTARTED
    remembered = real(1)
    growth = real(1)
    trace = real(0)
    if m.forgets:
        for k in range(len(m.p)):
            trace += m.p[k]
        if trace <= m.trace_limit:
            remembered = m.forgetting
            growth = real(1) / sqrt(remembered)
    total = remembered + spread
    status = shift(m, real(1) / total)
    if status == Status.DONE:
        if m.centres and m.started[0] == 0:
            copy(x, m.origin, len(x))
        narrow(m, remembered, growth)
        # forgetting would let P grow without limit in directions where there are no inputs
        if m.forgets and trace > m.trace_limit:
            bring_back(m)
    return status


@kernel
def learn(m: LinearModel, x: Real[DIM]) -> Index:
    """Learn a sample: f(x) should be m.y.  Returns DONE, RESTARTED, or REFUSED_WEIGHT with nothing changed."""
    make_features(m, x)
    for o in range(len(m.y)):
        # this sum has the same bits as in weigh()
        m.error[o] = plus_product(m.weights[o, len(m.phi) - 1], m.weights[o], m.phi, len(m.phi) - 1)
    hear(m)
    # if nothing is learned, P must not shrink: otherwise later errors would move the weights too little
    if m.separates and all_zero(m.error, len(m.y)):
        return Status.DONE
    if m.gain == Gain.NLMS:
        return learn_by_gradient(m)
    return learn_by_least_squares(m, x)


# ---------------------------------------------------------------------------------------------------- snapshots


@kernel
def valid_root(m: LinearModel) -> Bool:
    """Whether L is within its limit or, before the first sample, whether L and the origin are zero.  O(F^2)."""
    if m.started[0] != 0:
        # the squared lengths of L's rows add up to the trace of P, which grows only while it is at most trace_limit, and at most
        # doubles in one update; the limit here is 3 trace_limit, which leaves room for rounding
        return rows_within(m.root, len(m.phi), real(0.75) * m.root_limit * m.root_limit)
    if m.centres and not all_zero(m.origin, len(m.origin)):
        return False
    return all_zero(m.root, len(m.root))


@kernel
def blank(m: LinearModel) -> Bool:
    """Whether nothing has been learned yet.  O(F)."""
    for o in range(len(m.weights)):
        if not all_zero(m.weights[o], len(m.weights[0])):
            return False
    return m.gain != Gain.RLS or m.started[0] == 0


@kernel
def keeps(m: LinearModel) -> Bool:
    """Whether learning could have led to this state: with RLS, all numbers must be zero before the first sample.
    O(F^2), with NLMS O(1)."""
    if m.gain == Gain.NLMS:
        return True
    return valid_root(m) and (m.started[0] != 0 or blank(m))


LINEAR = programs(
    Rule(
        name="linear",
        model=LinearModel,
        memory=(Linear,),
        work=(LinearWork,),
        configs=(LinearConfig,),
        statuses=LinearStatus,
        hooks={frame.answer: weigh, frame.learn: learn, frame.blank: blank, frame.keeps: keeps},
        costs=(
            "[not feature_kind FOURIER] O(F) for F features.  [feature_kind FOURIER] O(F D) for F random features",
            "[not gain RLS] O(F) for F features.  [gain RLS] O(F^2) for F features.  [feature_kind FOURIER] Plus O(F D) for random features",
        ),
    )
)
