"""Linear models f(x) = sum_k w_k phi_k(x): the cheapest comparison, and the right choice for linear functions.

The features phi are the inputs, the inputs and their products, or random Fourier features (A. Rahimi, B. Recht, Random
Features for Large-Scale Kernel Machines, 2007), and last of all the constant 1.  Weights are learned by normalised
least mean squares, or by recursive least squares, which minimises, sample by sample,
sum_t lambda^(T-t) (y_t - f(x_t))^2 + lambda^T |w|^2 / prior_variance.  The inverse correlation matrix P of the features is
kept as a square root, P = root' root, and updated in Potter's form (G. J. Bierman, Factorization Methods for Discrete
Sequential Estimation, 1977, II.6): in float32 P itself soon loses its positive definiteness.  Several outputs share it.
"""

from __future__ import annotations

from enum import IntEnum

from pykernel.algorithms.elementary import clipped, cosine
from pykernel.algorithms.extents import FEATURES
from pykernel.algorithms.selftest import strained
from pykernel.algorithms.stages import (
    StageConfig,
    Staged,
    Stages,
    combine,
    conclude,
    farthest,
    observe,
    observe_both,
    remain,
    standardise,
    valid_stages,
)
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
    unroll,
)
from pykernel.dialect.program import Entry, LabelKind, Program

REHEARSED = 96
"""Samples of the self-test: twice as many as a standardiser's longest warmup, and as many again to learn."""


class LinearStatus(IntEnum):
    """What a call returns.  0: done.  Above 0: done, with a remark.  Below 0: refused, and nothing changed."""

    DONE = 0
    OBSERVED = 6  # the standardiser still needs more samples: it used the sample, but the model did not learn it
    FROZEN = 7  # learning is switched off: the sample was checked, but not learned
    REFUSED_INPUT = -1  # an input is not finite, or is beyond its limit
    REFUSED_LABEL = -2  # the label is not finite, is beyond its limit, or is not a class
    REFUSED_WEIGHT = -3  # a weight would leave its range: learning diverges.  Call reset


class Gain(IntEnum):
    """How far, and in which direction, an error moves the weights."""

    NLMS = 0  # eta phi / |phi|^2 (J. Nagumo, A. Noda 1967); |phi|^2 is 1 or more, for the constant
    RLS = 1  # P phi / (lambda + phi'P phi)


class FeatureKind(IntEnum):
    """What features are made of."""

    INPUTS = 0  # x_j
    PRODUCTS = 1  # x_j, then x_i x_j for i <= j
    FOURIER = 2  # sqrt(2 / number) cos(2 pi (frequencies x + phases))


class Linear(Struct):
    """The model is f(x) = sum_k w_k phi_k(x), with features phi_k and weights w_k."""

    # weights of the features; the last one belongs to the constant 1
    weights: between(Real[OUTPUTS, FEATURES], "-weight_limit", "weight_limit")
    # a square root of the inverse correlation matrix: root' root = P
    root: between(Real[FEATURES, FEATURES], "-root_limit", "root_limit")
    # 0: nothing was learned, P is prior_variance I and root is zero; 1: a sample was learned
    started: between(Index, 0, 1)
    frozen: between(Index, 0, 1)  # 1: learning is switched off


class LinearWork(Struct):
    """Intermediate results.  Every call computes them anew; zeros are always valid."""

    x: Real[DIM]  # the standardised sample
    phi: Real[FEATURES]  # the sample's features
    f: Real[FEATURES]  # root phi
    g: Real[FEATURES]  # P phi
    y: Real[OUTPUTS]  # the sample's label: what f(x) should be
    label: Real[OUTPUTS]  # the label before the stages took their part off
    value: Real[OUTPUTS]  # f(x) before the sample was learned
    most: Real[OUTPUTS]  # how far from that value a label counts in full
    step: Real[OUTPUTS]  # y - f(x); then this error times the gain
    p: Real[FEATURES]  # the diagonal of P


class LinearConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.linear``."""

    gain: Gain
    feature_kind: FeatureKind
    single: bool  # whether there is one output
    separates: bool  # whether the label is a class: then there is no error where the class is clear enough
    forgets: bool  # whether forgetting < 1
    eta: Real  # learning rate
    forgetting: Real  # lambda: each new sample multiplies the weight of all earlier ones by this factor
    start: Real  # square root of prior_variance
    trace_limit: Real  # forgetting pauses when P's trace is above
    root_limit: Real  # limit above every element of P's square root
    amplitude: Real  # sqrt(2 / number of random features)
    frequencies: Real[FEATURES - 1, DIM]  # turns of each random feature for each unit of an input
    phases: Real[FEATURES - 1]  # turns of each random feature where all inputs are zero
    input_max_abs: Real  # largest |x_j| that is accepted
    label_max_abs: Real  # largest |y| that is accepted
    weight_limit: Real  # largest |w_k| that is stored
    classes: Index  # number of classes
    shortens: bool  # whether the self-test takes fewer samples, because each takes long
    rehearsed: Index  # number of samples in that self-test
    rehearsal_input: Real  # the self-test's inputs are within +- half of this
    rehearsal_label: Real  # the self-test's labels are within +- half of this


class LinearModel(Staged):
    parts = Linear, LinearWork, LinearConfig


# ----------------------------------------------------------------------------------------------------- features


@kernel
def bounded(limit: Real, x: Real[DIM]) -> Bool:
    """Whether every element is a number within the limit."""
    for j in range(len(x)):
        # not "if (.. > limit)": NaN must fail
        if not (absolute(x[j]) <= limit):
            return False
    return True


@kernel
def wave(m: LinearModel, i: Index, x: Real[DIM]) -> Real:
    """Random Fourier feature i.  O(D).  Rahimi and Recht 2007, algorithm 1."""
    turns = m.phases[i]
    for j in unroll(len(x)):
        turns += m.frequencies[i, j] * x[j]
    return m.amplitude * cosine(turns)


@kernel
def make_features(m: LinearModel, x: Real[DIM]) -> None:
    """Compute all features.  O(F), or O(F D) for random features."""
    if m.feature_kind == FeatureKind.FOURIER:
        for i in range(len(m.phases)):
            m.phi[i] = wave(m, i, x)
    else:
        for j in range(len(x)):
            m.phi[j] = x[j]
    if m.feature_kind == FeatureKind.PRODUCTS:
        k = len(x)
        for i in range(len(x)):
            for j in range(i, len(x)):
                m.phi[k] = x[i] * x[j]
                k += 1
    m.phi[len(m.phi) - 1] = real(1)


@kernel
def value(m: LinearModel, o: Index) -> Real:
    """Output o for the features in phi, with exactly the bits of weigh().  O(F)."""
    total = m.weights[o, len(m.phi) - 1]
    for k in range(len(m.phi) - 1):
        total += m.weights[o, k] * m.phi[k]
    return total


@kernel
def weigh(m: LinearModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x), without memory for the features.  O(F) for each output, and O(F D) once for random features."""
    for o in range(len(y)):
        total = m.weights[o, len(m.weights[0]) - 1]
        if m.feature_kind != FeatureKind.FOURIER:
            for j in range(len(x)):
                total += m.weights[o, j] * x[j]
        if m.feature_kind == FeatureKind.PRODUCTS:
            k = len(x)
            for i in range(len(x)):
                for j in range(i, len(x)):
                    total += m.weights[o, k] * (x[i] * x[j])
                    k += 1
        y[o] = total
    if m.feature_kind == FeatureKind.FOURIER:
        for i in range(len(m.phases)):
            height = wave(m, i, x)
            for o in range(len(y)):
                y[o] += m.weights[o, i] * height


# ---------------------------------------------------------------------------------------------------- questions


@kernel
def predict(m: LinearModel, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Write f(x) to y.  O(F) for F features, O(F D) for random ones.

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not bounded(m.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    if m.standardises:
        standardise(m, x, m.x)
        weigh(m, m.x, y)
        combine(m, m.x, y)
    else:
        weigh(m, x, y)
        combine(m, x, y)
    return LinearStatus.DONE


@kernel
def classify(m: LinearModel, x: Real[DIM], label: Index[1]) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(F) for F features, O(F D) for random ones.

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    status = predict(m, x, m.step)
    if status == LinearStatus.DONE:
        best = 0
        if m.single:
            if m.step[0] > real(0):
                best = 1
        else:
            for o in range(1, len(m.step)):
                if m.step[o] > m.step[best]:
                    best = o
        label[0] = best
    return status


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def miss(m: LinearModel, y: Real, found: Real) -> Real:
    """The error y - f(x), where value = f(x).  For a class, the error is 0 if y f(x) >= 1."""
    if m.separates:
        if y * found >= real(1):
            return real(0)
    return y - found


@kernel
def correlate(m: LinearModel) -> Real:
    """f = root phi, g = P phi and the diagonal of P; returns phi'P phi = f'f.  O(F^2)."""
    total = real(0)
    if m.started[0] == 0:
        for k in range(len(m.phi)):
            m.f[k] = m.start * m.phi[k]
            m.g[k] = m.start * m.f[k]
            m.p[k] = m.start * m.start
            total += m.f[k] * m.f[k]
        return total
    for k in range(len(m.phi)):
        m.g[k] = real(0)
        m.p[k] = real(0)
    for i in range(len(m.phi)):
        f = real(0)
        for k in range(len(m.phi)):
            f += m.root[i, k] * m.phi[k]
            if m.forgets:
                m.p[k] += m.root[i, k] * m.root[i, k]
        for k in range(len(m.phi)):
            m.g[k] += f * m.root[i, k]
        m.f[i] = f
        total += f * f
    return total


@kernel
def downdate(m: LinearModel, scale: Real, growth: Real) -> None:
    """root = growth (root - scale f g').  O(F^2)."""
    if m.started[0] == 0:
        for i in range(len(m.f)):
            m.root[i, i] = m.start
        m.started[0] = 1
    for i in range(len(m.f)):
        share = scale * m.f[i]
        for k in range(len(m.f)):
            m.root[i, k] = growth * (m.root[i, k] - share * m.g[k])


@kernel
def revised(m: LinearModel, o: Index, k: Index) -> Real:
    """A weight after this update."""
    if m.gain == Gain.NLMS:
        return m.weights[o, k] + m.step[o] * m.phi[k]
    return m.weights[o, k] + m.step[o] * m.g[k]


@kernel
def shift(m: LinearModel, gain: Real) -> Bool:
    """Move the weights by gain times the errors, all or none of them.  O(F) for each output."""
    for o in range(len(m.y)):
        m.step[o] = m.step[o] * gain
        for k in range(len(m.phi)):
            if not (absolute(revised(m, o, k)) <= m.weight_limit):
                return False
    for o in range(len(m.y)):
        for k in range(len(m.phi)):
            m.weights[o, k] = revised(m, o, k)
    return True


@kernel
def learn_by_gradient(m: LinearModel) -> Bool:
    """Learn by w + eta e phi / |phi|^2.  O(F)."""
    total = real(0)
    for k in range(len(m.phi)):
        total += m.phi[k] * m.phi[k]
    taken = shift(m, m.eta * (real(1) / total))
    return taken


@kernel
def bring_back(m: LinearModel) -> None:
    """Reduce the largest variance in P to its start value, as if that weight had been measured.  O(F^2).

    P - g g' (p - start^2) / p^2, where g is column k of P and p = P_kk.
    """
    k = 0
    for j in range(1, len(m.p)):
        if m.p[j] > m.p[k]:
            k = j
    p = real(0)
    for i in range(len(m.f)):
        m.f[i] = m.root[i, k]
        m.g[i] = real(0)
        p += m.f[i] * m.f[i]
    if p > m.start * m.start:
        for i in range(len(m.f)):
            for j in range(len(m.f)):
                m.g[j] += m.f[i] * m.root[i, j]
        downdate(m, (real(1) - m.start / sqrt(p)) * (real(1) / p), real(1))


@kernel
def learn_by_least_squares(m: LinearModel) -> Bool:
    """Learn by w + e P phi / (lambda + phi'P phi), and update P.  O(F^2)."""
    spread = correlate(m)
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
    taken = shift(m, real(1) / total)
    if taken:
        downdate(m, real(1) / (total + sqrt(remembered * total)), growth)
        if m.forgets:
            # forgetting also affects directions without inputs, where P would grow without limit
            if trace > m.trace_limit:
                bring_back(m)
    return taken


@kernel
def learn(m: LinearModel, x: Real[DIM]) -> Index:
    """Learn that f(x) should be m.y.  Returns DONE, or REFUSED_WEIGHT with nothing changed."""
    make_features(m, x)
    wrong = False
    for o in range(len(m.y)):
        m.step[o] = miss(m, m.y[o], value(m, o))
        if m.step[o] != real(0):
            wrong = True
    if m.separates:
        # if nothing is learned, P must not shrink: otherwise later errors would move the weights too little
        if not wrong:
            return LinearStatus.DONE
    taken = False
    if m.gain == Gain.NLMS:
        taken = learn_by_gradient(m)
    else:
        taken = learn_by_least_squares(m)
    if not taken:
        return LinearStatus.REFUSED_WEIGHT
    return LinearStatus.DONE


@kernel
def follow(m: LinearModel, x: Real[DIM]) -> Index:
    """Learn the sample, as the rule sees its input, between the stages of its label."""
    for o in range(len(m.y)):
        m.label[o] = m.y[o]
    remain(m, x, m.label, m.y)
    if m.judges:
        weigh(m, x, m.value)
    if m.limits:
        farthest(m, x, m.most)
        for o in range(len(m.y)):
            m.y[o] = clipped(m.y[o], m.value[o] - m.most[o], m.value[o] + m.most[o])
    status = learn(m, x)
    if status == LinearStatus.DONE:
        conclude(m, x, m.label, m.y, m.value, m.most)
    return status


@kernel
def take(m: LinearModel, x: Real[DIM]) -> Index:
    """Learn the sample x with label m.y; both were checked."""
    if m.frozen[0] != 0:
        return LinearStatus.FROZEN
    if m.standardises:
        if m.observed[0] < m.input_warmup:
            observe_both(m, x, m.y)
            return LinearStatus.OBSERVED
        standardise(m, x, m.x)
        if m.follows:
            taken = follow(m, m.x)
            if taken == LinearStatus.DONE:
                observe(m, x)
            return taken
        status = learn(m, m.x)
        if status == LinearStatus.DONE:
            observe(m, x)
        return status
    if m.follows:
        return follow(m, x)
    return learn(m, x)


@kernel
def update(m: LinearModel, x: Real[DIM], y: Real) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(F) for F features, with recursive least squares O(F^2); O(F D) more for random features.
    Returns 0: learned.  Above 0: why not.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not bounded(m.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    if m.follows:
        if not (absolute(y) <= m.label_limit):
            return LinearStatus.REFUSED_LABEL
    elif not (absolute(y) <= m.label_max_abs):
        return LinearStatus.REFUSED_LABEL
    m.y[0] = y
    return take(m, x)


@kernel
def update_many(m: LinearModel, x: Real[DIM], y: Real[OUTPUTS]) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(F) for F features, with recursive least squares O(F^2); O(F D) more for random features.
    Returns 0: learned.  Above 0: why not.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not bounded(m.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    for o in range(len(y)):
        if m.follows:
            if not (absolute(y[o]) <= m.label_limit):
                return LinearStatus.REFUSED_LABEL
        elif not (absolute(y[o]) <= m.label_max_abs):
            return LinearStatus.REFUSED_LABEL
    for o in range(len(y)):
        m.y[o] = y[o]
    return take(m, x)


@kernel
def update_class(m: LinearModel, x: Real[DIM], label: Index) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.

    Each class has a function.  The function should be at least 1 for inputs of its class, and at most -1 for others.
    If this is so already, the sample changes nothing.  Two classes share one function: that of the second class.
    O(F) for F features, with recursive least squares O(F^2); O(F D) more for random features.
    Returns 0: learned.  Above 0: why not.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not bounded(m.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    if label < 0 or label >= m.classes:
        return LinearStatus.REFUSED_LABEL
    for o in range(len(m.y)):
        m.y[o] = real(-1)
        if m.single:
            if label == 1:
                m.y[o] = real(1)
        elif label == o:
            m.y[o] = real(1)
    return take(m, x)


@kernel
def freeze(m: LinearModel, frozen: Index) -> Index:
    """Switch learning off (1) or on (0).  While learning is off, update only checks the sample."""
    m.frozen[0] = 0
    if frozen != 0:
        m.frozen[0] = 1
    return LinearStatus.DONE


@kernel
def rehearse(m: LinearModel, x: Real[DIM]) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test."""
    seed = 1
    for t in range(REHEARSED):
        if m.shortens:
            if t >= m.rehearsed:
                break
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = m.rehearsal_input * (real(seed) / real(65536) - real(0.5))
        for o in range(len(m.y)):
            seed = (seed * 75 + 74) % 65537
            m.y[o] = m.rehearsal_label * strained(real(seed) / real(65536) - real(0.5))
        status = take(m, x)
        if status < 0:
            break


@kernel
def valid_root(m: LinearModel) -> Bool:
    """Whether root is zero before the first sample.  O(F^2)."""
    if m.started[0] == 0:
        for i in range(len(m.root)):
            for k in range(len(m.root)):
                if m.root[i, k] != real(0):
                    return False
    return True


@kernel
def valid(m: LinearModel) -> Bool:
    """Whether learning could have led to this state: nothing was learned too early.

    O(F) with NLMS, O(F^2) with RLS.
    """
    blank = True
    for o in range(len(m.weights)):
        for k in range(len(m.weights[0])):
            if m.weights[o, k] != real(0):
                blank = False
    if m.gain == Gain.RLS:
        if not valid_root(m):
            return False
        if m.started[0] == 0 and not blank:
            return False
    if m.standardises:
        if m.observed[0] < m.input_warmup and not blank:
            return False
        if m.gain == Gain.RLS:
            if m.observed[0] < m.input_warmup and m.started[0] == 1:
                return False
    return valid_stages(m, m.input_max_abs)


def _program(*learning: Entry) -> Program:
    return Program(
        name="linear",
        structs=(Linear, Stages, LinearWork),
        persistent=(Linear, Stages),
        configs=(LinearConfig, StageConfig),
        status=LinearStatus,
        entries=(Entry("predict", predict, "question"), *learning, Entry("freeze", freeze, "switch")),
        rehearse=rehearse,
        valid=valid,
    )


LINEAR: dict[LabelKind, Program] = {
    "real": _program(Entry("update", update, "update")),
    "reals": _program(Entry("update", update_many, "update")),
    "class": _program(Entry("update", update_class, "update"), Entry("classify", classify, "question")),
}
