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
def wave(c: LinearConfig, i: Index, x: Real[DIM]) -> Real:
    """Random Fourier feature i.  O(D).  Rahimi and Recht 2007, algorithm 1."""
    turns = c.phases[i]
    for j in unroll(len(x)):
        turns += c.frequencies[i, j] * x[j]
    return c.amplitude * cosine(turns)


@kernel
def make_features(w: LinearWork, c: LinearConfig, x: Real[DIM]) -> None:
    """Compute all features.  O(F), or O(F D) for random features."""
    if c.feature_kind == FeatureKind.FOURIER:
        for i in range(len(c.phases)):
            w.phi[i] = wave(c, i, x)
    else:
        for j in range(len(x)):
            w.phi[j] = x[j]
    if c.feature_kind == FeatureKind.PRODUCTS:
        k = len(x)
        for i in range(len(x)):
            for j in range(i, len(x)):
                w.phi[k] = x[i] * x[j]
                k += 1
    w.phi[len(w.phi) - 1] = real(1)


@kernel
def value(s: Linear, w: LinearWork, o: Index) -> Real:
    """Output o for the features in phi, with exactly the bits of weigh().  O(F)."""
    total = s.weights[o, len(w.phi) - 1]
    for k in range(len(w.phi) - 1):
        total += s.weights[o, k] * w.phi[k]
    return total


@kernel
def weigh(s: Linear, c: LinearConfig, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x), without memory for the features.  O(F) for each output, and O(F D) once for random features."""
    for o in range(len(y)):
        total = s.weights[o, len(s.weights[0]) - 1]
        if c.feature_kind != FeatureKind.FOURIER:
            for j in range(len(x)):
                total += s.weights[o, j] * x[j]
        if c.feature_kind == FeatureKind.PRODUCTS:
            k = len(x)
            for i in range(len(x)):
                for j in range(i, len(x)):
                    total += s.weights[o, k] * (x[i] * x[j])
                    k += 1
        y[o] = total
    if c.feature_kind == FeatureKind.FOURIER:
        for i in range(len(c.phases)):
            height = wave(c, i, x)
            for o in range(len(y)):
                y[o] += s.weights[o, i] * height


# ---------------------------------------------------------------------------------------------------- questions


@kernel
def predict(
    s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS]
) -> Index:
    """Write f(x) to y.  O(F) for F features, O(F D) for random ones.

    Returns DONE, or REFUSED_INPUT with y unchanged.
    """
    if not bounded(c.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    if f.standardises:
        standardise(a, f, x, w.x)
        weigh(s, c, w.x, y)
        combine(a, f, w.x, y)
    else:
        weigh(s, c, x, y)
        combine(a, f, x, y)
    return LinearStatus.DONE


@kernel
def classify(
    s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM], label: Index[1]
) -> Index:
    """Write the most likely class of x to label, as a number from 0.  O(F) for F features, O(F D) for random ones.

    Returns DONE, or REFUSED_INPUT with label unchanged.
    """
    status = predict(s, a, w, c, f, x, w.step)
    if status == LinearStatus.DONE:
        best = 0
        if c.single:
            if w.step[0] > real(0):
                best = 1
        else:
            for o in range(1, len(w.step)):
                if w.step[o] > w.step[best]:
                    best = o
        label[0] = best
    return status


# ----------------------------------------------------------------------------------------------------- learning


@kernel
def miss(c: LinearConfig, y: Real, found: Real) -> Real:
    """The error y - f(x), where value = f(x).  For a class, the error is 0 if y f(x) >= 1."""
    if c.separates:
        if y * found >= real(1):
            return real(0)
    return y - found


@kernel
def correlate(s: Linear, w: LinearWork, c: LinearConfig) -> Real:
    """f = root phi, g = P phi and the diagonal of P; returns phi'P phi = f'f.  O(F^2)."""
    total = real(0)
    if s.started[0] == 0:
        for k in range(len(w.phi)):
            w.f[k] = c.start * w.phi[k]
            w.g[k] = c.start * w.f[k]
            w.p[k] = c.start * c.start
            total += w.f[k] * w.f[k]
        return total
    for k in range(len(w.phi)):
        w.g[k] = real(0)
        w.p[k] = real(0)
    for i in range(len(w.phi)):
        f = real(0)
        for k in range(len(w.phi)):
            f += s.root[i, k] * w.phi[k]
            if c.forgets:
                w.p[k] += s.root[i, k] * s.root[i, k]
        for k in range(len(w.phi)):
            w.g[k] += f * s.root[i, k]
        w.f[i] = f
        total += f * f
    return total


@kernel
def downdate(s: Linear, w: LinearWork, c: LinearConfig, scale: Real, growth: Real) -> None:
    """root = growth (root - scale f g').  O(F^2)."""
    if s.started[0] == 0:
        for i in range(len(w.f)):
            s.root[i, i] = c.start
        s.started[0] = 1
    for i in range(len(w.f)):
        share = scale * w.f[i]
        for k in range(len(w.f)):
            s.root[i, k] = growth * (s.root[i, k] - share * w.g[k])


@kernel
def revised(s: Linear, w: LinearWork, c: LinearConfig, o: Index, k: Index) -> Real:
    """A weight after this update."""
    if c.gain == Gain.NLMS:
        return s.weights[o, k] + w.step[o] * w.phi[k]
    return s.weights[o, k] + w.step[o] * w.g[k]


@kernel
def shift(s: Linear, w: LinearWork, c: LinearConfig, gain: Real) -> Bool:
    """Move the weights by gain times the errors, all or none of them.  O(F) for each output."""
    for o in range(len(w.y)):
        w.step[o] = w.step[o] * gain
        for k in range(len(w.phi)):
            if not (absolute(revised(s, w, c, o, k)) <= c.weight_limit):
                return False
    for o in range(len(w.y)):
        for k in range(len(w.phi)):
            s.weights[o, k] = revised(s, w, c, o, k)
    return True


@kernel
def learn_by_gradient(s: Linear, w: LinearWork, c: LinearConfig) -> Bool:
    """Learn by w + eta e phi / |phi|^2.  O(F)."""
    total = real(0)
    for k in range(len(w.phi)):
        total += w.phi[k] * w.phi[k]
    taken = shift(s, w, c, c.eta * (real(1) / total))
    return taken


@kernel
def bring_back(s: Linear, w: LinearWork, c: LinearConfig) -> None:
    """Reduce the largest variance in P to its start value, as if that weight had been measured.  O(F^2).

    P - g g' (p - start^2) / p^2, where g is column k of P and p = P_kk.
    """
    k = 0
    for j in range(1, len(w.p)):
        if w.p[j] > w.p[k]:
            k = j
    p = real(0)
    for i in range(len(w.f)):
        w.f[i] = s.root[i, k]
        w.g[i] = real(0)
        p += w.f[i] * w.f[i]
    if p > c.start * c.start:
        for i in range(len(w.f)):
            for j in range(len(w.f)):
                w.g[j] += w.f[i] * s.root[i, j]
        downdate(s, w, c, (real(1) - c.start / sqrt(p)) * (real(1) / p), real(1))


@kernel
def learn_by_least_squares(s: Linear, w: LinearWork, c: LinearConfig) -> Bool:
    """Learn by w + e P phi / (lambda + phi'P phi), and update P.  O(F^2)."""
    spread = correlate(s, w, c)
    remembered = real(1)
    growth = real(1)
    trace = real(0)
    if c.forgets:
        for k in range(len(w.p)):
            trace += w.p[k]
        if trace <= c.trace_limit:
            remembered = c.forgetting
            growth = real(1) / sqrt(remembered)
    total = remembered + spread
    taken = shift(s, w, c, real(1) / total)
    if taken:
        downdate(s, w, c, real(1) / (total + sqrt(remembered * total)), growth)
        if c.forgets:
            # forgetting also affects directions without inputs, where P would grow without limit
            if trace > c.trace_limit:
                bring_back(s, w, c)
    return taken


@kernel
def learn(s: Linear, w: LinearWork, c: LinearConfig, x: Real[DIM]) -> Index:
    """Learn that f(x) should be w.y.  Returns DONE, or REFUSED_WEIGHT with nothing changed."""
    make_features(w, c, x)
    wrong = False
    for o in range(len(w.y)):
        w.step[o] = miss(c, w.y[o], value(s, w, o))
        if w.step[o] != real(0):
            wrong = True
    if c.separates:
        # if nothing is learned, P must not shrink: otherwise later errors would move the weights too little
        if not wrong:
            return LinearStatus.DONE
    taken = False
    if c.gain == Gain.NLMS:
        taken = learn_by_gradient(s, w, c)
    else:
        taken = learn_by_least_squares(s, w, c)
    if not taken:
        return LinearStatus.REFUSED_WEIGHT
    return LinearStatus.DONE


@kernel
def follow(s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM]) -> Index:
    """Learn the sample, as the rule sees its input, between the stages of its label."""
    for o in range(len(w.y)):
        w.label[o] = w.y[o]
    remain(a, f, x, w.label, w.y)
    if f.judges:
        weigh(s, c, x, w.value)
    if f.limits:
        farthest(a, f, x, w.most)
        for o in range(len(w.y)):
            w.y[o] = clipped(w.y[o], w.value[o] - w.most[o], w.value[o] + w.most[o])
    status = learn(s, w, c, x)
    if status == LinearStatus.DONE:
        conclude(a, f, x, w.label, w.y, w.value, w.most)
    return status


@kernel
def take(s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM]) -> Index:
    """Learn the sample x with label w.y; both were checked."""
    if s.frozen[0] != 0:
        return LinearStatus.FROZEN
    if f.standardises:
        if a.observed[0] < f.input_warmup:
            observe_both(a, f, x, w.y)
            return LinearStatus.OBSERVED
        standardise(a, f, x, w.x)
        if f.follows:
            taken = follow(s, a, w, c, f, w.x)
            if taken == LinearStatus.DONE:
                observe(a, f, x)
            return taken
        status = learn(s, w, c, w.x)
        if status == LinearStatus.DONE:
            observe(a, f, x)
        return status
    if f.follows:
        return follow(s, a, w, c, f, x)
    return learn(s, w, c, x)


@kernel
def update(s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM], y: Real) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(F) for F features, with recursive least squares O(F^2); O(F D) more for random features.
    Returns 0: learned.  Above 0: why not.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not bounded(c.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    if f.follows:
        if not (absolute(y) <= f.label_limit):
            return LinearStatus.REFUSED_LABEL
    elif not (absolute(y) <= c.label_max_abs):
        return LinearStatus.REFUSED_LABEL
    w.y[0] = y
    return take(s, a, w, c, f, x)


@kernel
def update_many(
    s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM], y: Real[OUTPUTS]
) -> Index:
    """Learn one sample: for the input x, the prediction should be y.

    O(F) for F features, with recursive least squares O(F^2); O(F D) more for random features.
    Returns 0: learned.  Above 0: why not.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not bounded(c.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    for o in range(len(y)):
        if f.follows:
            if not (absolute(y[o]) <= f.label_limit):
                return LinearStatus.REFUSED_LABEL
        elif not (absolute(y[o]) <= c.label_max_abs):
            return LinearStatus.REFUSED_LABEL
    for o in range(len(y)):
        w.y[o] = y[o]
    return take(s, a, w, c, f, x)


@kernel
def update_class(
    s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM], label: Index
) -> Index:
    """Learn one sample: the input x belongs to class number label, counted from 0.

    Each class has a function.  The function should be at least 1 for inputs of its class, and at most -1 for others.
    If this is so already, the sample changes nothing.  Two classes share one function: that of the second class.
    O(F) for F features, with recursive least squares O(F^2); O(F D) more for random features.
    Returns 0: learned.  Above 0: why not.  Below 0: why the sample was refused; the model is unchanged.
    """
    if not bounded(c.input_max_abs, x):
        return LinearStatus.REFUSED_INPUT
    if label < 0 or label >= c.classes:
        return LinearStatus.REFUSED_LABEL
    for o in range(len(w.y)):
        w.y[o] = real(-1)
        if c.single:
            if label == 1:
                w.y[o] = real(1)
        elif label == o:
            w.y[o] = real(1)
    return take(s, a, w, c, f, x)


@kernel
def freeze(s: Linear, frozen: Index) -> Index:
    """Switch learning off (1) or on (0).  While learning is off, update only checks the sample."""
    s.frozen[0] = 0
    if frozen != 0:
        s.frozen[0] = 1
    return LinearStatus.DONE


@kernel
def rehearse(s: Linear, a: Stages, w: LinearWork, c: LinearConfig, f: StageConfig, x: Real[DIM]) -> None:
    """Learn a fixed sequence of made-up samples, for the self-test."""
    seed = 1
    for t in range(REHEARSED):
        if c.shortens:
            if t >= c.rehearsed:
                break
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = c.rehearsal_input * (real(seed) / real(65536) - real(0.5))
        for o in range(len(w.y)):
            seed = (seed * 75 + 74) % 65537
            w.y[o] = c.rehearsal_label * strained(real(seed) / real(65536) - real(0.5))
        status = take(s, a, w, c, f, x)
        if status < 0:
            break


@kernel
def valid_root(s: Linear) -> Bool:
    """Whether root is zero before the first sample.  O(F^2)."""
    if s.started[0] == 0:
        for i in range(len(s.root)):
            for k in range(len(s.root)):
                if s.root[i, k] != real(0):
                    return False
    return True


@kernel
def valid(s: Linear, a: Stages, c: LinearConfig, f: StageConfig) -> Bool:
    """Whether learning could have led to this state: nothing was learned too early.

    O(F) with NLMS, O(F^2) with RLS.
    """
    blank = True
    for o in range(len(s.weights)):
        for k in range(len(s.weights[0])):
            if s.weights[o, k] != real(0):
                blank = False
    if c.gain == Gain.RLS:
        if not valid_root(s):
            return False
        if s.started[0] == 0 and not blank:
            return False
    if f.standardises:
        if a.observed[0] < f.input_warmup and not blank:
            return False
        if c.gain == Gain.RLS:
            if a.observed[0] < f.input_warmup and s.started[0] == 1:
                return False
    return valid_stages(a, f, c.input_max_abs)


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
