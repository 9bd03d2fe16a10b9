"""Integer weights of features, learned by recursive least squares or normalised least mean squares.

The update is w <- w + t e with t = P h / (R + h'P h).  Here e is the error, h contains the features, P is the
covariance of ``pykernel.algorithms.int16.covariance`` with prior 1, and R = 1 / prior_variance.  Normalised least mean
squares uses this update with P = I, R = 0 and a learning rate.  Each sample needs one division.
"""

from pykernel.algorithms.extents import FEATURES
from pykernel.algorithms.int16.arithmetic import clip, nearest_shift, part_of, places, size
from pykernel.algorithms.int16.covariance import (
    KNOWN,
    MANTISSA,
    Int16CovarianceModel,
    condense,
    downdate,
    keeps_covariance,
    make_gain,
    renew,
    shorten,
    spread,
)
from pykernel.algorithms.int16.frame import Int16Framed
from pykernel.dialect import OUTPUTS, Bool, Config, Index, Int, Struct, between, kernel, word


class Int16Learned(Struct):
    """The learned weights of the features."""

    learned: between(Int[OUTPUTS, FEATURES], "-weight_most", "weight_most")  # w


class Int16WeightsConfig(Config):
    """Parameters, derived from a spec by its family."""

    filters: bool  # whether weights are learned by recursive least squares, with P
    weight_places: Index  # the unit of weights is finer than the unit of the result, by a factor of 2 to this power
    weight_most: Index  # largest |w|
    rate: Index  # learning rate, times 2^15; for recursive least squares, the learning rate is 1
    noise: Index  # R

    tunable = frozenset("rate noise".split())


class Int16WeightsModel(Int16Framed, Int16CovarianceModel):
    parts = Int16Learned, Int16WeightsConfig


@kernel
def advance(m: Int16WeightsModel, o: Index, scale: Index) -> None:
    """Move an output's weights by t e, for t in units of 2^-scale.  O(N)."""
    coarse = clip(places(word(size(m.error[o]))) - 14, 0, 31)
    step = part_of(clip(nearest_shift(m.error[o], coarse), -MANTISSA, MANTISSA), m.rate)
    for i in range(len(m.prior)):
        w = clip(m.learned[o, i], -m.weight_most, m.weight_most)
        w += nearest_shift(m.h[0, i] * step, clip(scale - coarse - 1 - m.weight_places, 0, 31))
        m.learned[o, i] = clip(w, -m.weight_most, m.weight_most)


@kernel
def learn_weights(m: Int16WeightsModel, unit: Index) -> None:
    """Update the weights with the errors m.error.  The features m.wide are in units of 2^-unit.  O(N) for each output.
    [filters] Plus O(N^2) once."""
    errs = False
    for o in range(len(m.y)):
        errs = errs or m.error[o] != 0
    # if nothing is learned, P must not shrink: otherwise later errors would move the weights too little
    if m.separates and not errs:
        return
    coarse = condense(m)
    # without P, shorten() copies the features themselves to m.g
    known = unit
    if m.filters:
        if m.covariance[0, 0] == 0:
            renew(m)
        lifted = spread(m)
        known = 11 + unit - coarse + lifted
    shortened = shorten(m)
    known -= shortened
    scale = make_gain(m, known, unit - coarse, m.noise)
    for o in range(len(m.y)):
        advance(m, o, scale)
    if m.filters:
        downdate(m, clip(scale + known - KNOWN, 0, 31))


@kernel
def keeps(m: Int16WeightsModel) -> Bool:
    """Whether learning could have led to this state.  O(1), or O(N^2) with least squares."""
    return not m.filters or keeps_covariance(m, m.covariance[0, 0] != 0)
