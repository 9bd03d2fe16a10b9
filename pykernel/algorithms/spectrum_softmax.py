"""Classification by a linear part and a few sinusoids with learned frequencies: multinomial logistic regression,
without a matrix.

Class c has the function f_c(x) = u_c'h(x), with h = (1, sqrt(D) z, cos(w_1'z), sin(w_1'z), ...) and z = x / sigma;
probabilities are p = softmax(f), calibrated before they are returned (``pykernel.algorithms.poll``).  A sample of class y is
learned by steps down the gradient of -log p_y, each divided by the size of its effect:

    u_c <- u_c - eta r_c h / |h|^2
    w_i <- w_i - eta_w (sum_c r_c d_ic) / (1 + sum d^2) z / (|z|^2 + FLAT)

Here eta and eta_w are the learning rates.  The vector r is p - 1_y, where 1_y is 1 for class y and 0 for other classes.
For the weights a, b of sinusoid i, d_ic = b_ic cos(w_i'z) - a_ic sin(w_i'z).

The step of u changes f(x) by -eta r.  To first order, the step of w changes f(x) by at most eta_w |r|, and each angle
by at most eta_w / sqrt(2).  The second derivatives of -log p_y are at most 1/2, so steps with eta below 4 reduce -log p_y.

Two classes need only one function f: the first class has the function -f, and the second class has f.
"""

from enum import IntEnum

from pykernel.algorithms import frame
from pykernel.algorithms.elementary import bounded, each_class
from pykernel.algorithms.expert import calibrated
from pykernel.algorithms.frame import Status, hear, respond
from pykernel.algorithms.poll import calibrate, soften, tell
from pykernel.algorithms.rule import Rule, programs
from pykernel.algorithms.spectrum import (
    WEIGHT_MOST,
    SpectrumConfig,
    SpectrumWork,
    Waves,
    WavesModel,
    add_waves,
    keep_waves,
    move,
    retune,
    slope,
    tune,
)
from pykernel.algorithms.vectors import plus_product
from pykernel.dialect import CLASSES, DIM, OUTPUTS, Bool, Config, Constant, Index, Real, Struct, between, kernel, real

FLAT = Constant(0.1)
"""This number is added to |z|^2, because inputs near zero say little about frequencies."""


class SoftmaxStatus(IntEnum):
    """The rule has no status of its own."""


class Plane(Struct):
    """The linear part of each class's function."""

    # weights of the inputs sqrt(D) z; the last one belongs to the constant 1
    plane: between(Real[OUTPUTS, DIM + 1], -WEIGHT_MOST, WEIGHT_MOST, after="started")
    started: between(Index, 0, 1)  # 1: a sample was learned


class SoftmaxWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    surplus: Real[OUTPUTS]  # first the probabilities of the classes, later their excess over the targets


class SoftmaxConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.spectrum``."""

    frequency_eta: Real  # learning rate of the frequencies
    linear_share: Real  # sqrt(D) / sigma

    tunable = frozenset({"frequency_eta"})


class SoftmaxModel(WavesModel):
    parts = Plane, SoftmaxWork, SoftmaxConfig


@kernel
def level(m: SoftmaxModel, o: Index, x: Real[DIM]) -> Real:
    """The linear part of the function of output o.  O(D)."""
    return m.plane[o, len(x)] + m.linear_share * plus_product(real(0), m.plane[o], x, len(x))


@kernel
def weigh(m: SoftmaxModel, x: Real[DIM], y: Real[OUTPUTS]) -> None:
    """y = f(x).  O(N D), and O(N + D) for each output."""
    for o in range(len(y)):
        y[o] = level(m, o, x)
    add_waves(m, x, y)


@kernel
def chances(m: SoftmaxModel, x: Real[DIM], p: Real[CLASSES]) -> None:
    """Write the calibrated probability of each class at x to p."""
    respond(m, x, m.y)
    tell(m, m.y)
    each_class(m.y, p)


@kernel
def tell_apart(m: SoftmaxModel, x: Real[DIM]) -> None:
    """Write the sinusoids to m.h, f(x) to m.error, and p - 1_y to m.surplus.  Without a linear expert, update the
    calibration.  O(N D), and O(N + D) for each output."""
    for o in range(len(m.y)):
        m.error[o] = level(m, o, x)
    keep_waves(m, x)
    if not m.votes:
        calibrate(m, m.error, m.surplus, m.y)
    for o in range(len(m.y)):
        m.surplus[o] = m.error[o]
    soften(m.surplus, real(1))
    for o in range(len(m.y)):
        if m.y[o] > real(0):
            m.surplus[o] = m.surplus[o] - real(1)


@kernel
def steepness(m: SoftmaxModel) -> Real:
    """1 + the sum of the squared derivatives of all classes' functions with respect to all angles.  O(N) for each output."""
    bends = real(0)
    for o in range(len(m.y)):
        for i in range(len(m.frequencies)):
            bend = slope(m, o, i, i, 0)
            bends += bend * bend
    if len(m.y) == 1:
        bends = bends + bends
    return real(1) + bends


@kernel
def descend(m: SoftmaxModel, x: Real[DIM]) -> None:
    """Learn from m.surplus by normalised steps down the gradient.  O(N D), and O(N + D) for each output."""
    square = real(0)
    for j in range(len(x)):
        z = m.inverse_width * x[j]
        square += z * z
    along = m.frequency_eta / (steepness(m) * (square + FLAT))
    if len(m.y) == 1:
        along = along + along
    # the denominator is |h|^2; each sinusoid adds 1 to it, because cos^2 + sin^2 = 1
    rate = m.eta / (real(1) + real(len(x)) * square + real(len(m.frequencies)))
    for i in range(len(m.frequencies)):
        bend = real(0)
        for o in range(len(m.y)):
            bend += m.surplus[o] * slope(m, o, i, i, 0)
        for o in range(len(m.y)):
            step = rate * m.surplus[o]
            move(m, o, i, -(step * m.h[i, 0]), -(step * m.h[i, 1]))
        for j in range(len(x)):
            retune(m, i, j, -(along * bend * (m.inverse_width * x[j])))
    for o in range(len(m.y)):
        step = rate * m.surplus[o]
        for j in range(len(x)):
            m.plane[o, j] = bounded(m.plane[o, j] - step * (m.linear_share * x[j]), WEIGHT_MOST)
        m.plane[o, len(x)] = bounded(m.plane[o, len(x)] - step, WEIGHT_MOST)


@kernel
def learn(m: SoftmaxModel, x: Real[DIM]) -> Index:
    """Learn that x belongs to the class whose m.y is 1.  Returns DONE."""
    if m.started[0] == 0:
        tune(m)
        m.started[0] = 1
    tell_apart(m, x)
    hear(m)
    descend(m, x)
    return Status.DONE


@kernel
def blank(m: SoftmaxModel) -> Bool:
    """Whether nothing has been learned yet."""
    return m.started[0] == 0


@kernel
def keeps(m: SoftmaxModel) -> Bool:
    """Whether learning could have led to this calibration, which must be zero before the first sample.  O(1)."""
    if not m.votes:
        if not calibrated(m):
            return False
        if m.started[0] == 0 and m.told_sharpness[0] != real(0):
            return False
    return True


SPECTRUM_SOFTMAX = programs(
    Rule(
        name="spectrum-softmax",
        model=SoftmaxModel,
        memory=(Waves, Plane),
        work=(SpectrumWork, SoftmaxWork),
        configs=(SpectrumConfig, SoftmaxConfig),
        statuses=SoftmaxStatus,
        hooks={
            frame.answer: weigh,
            frame.chances: chances,
            frame.learn: learn,
            frame.blank: blank,
            frame.keeps: keeps,
        },
        costs=("O(N D) for N frequencies", "O(N D) for N frequencies"),
        calibrated=lambda config: True,
        labels=("class",),
    )
)
