"""Doubt: a model that has become useless begins anew.

Many labels without any relation to their inputs (a sensor that is not connected) can end a learner for ever: it has become
certain of a wrong function, or its memory is full of samples that say nothing.  So the model compares two running means: the
size of its errors, and the labels' distance from their own mean, which is the error of a model that always answers this mean.
For classes, these are the share of wrong answers, and the share that would be wrong if the answer were always the most
frequent class.

The model is useful while its errors are below 3/4 of the labels' distances, and useless while they are at least 7/8 of them
(classes: 1/2 and 3/4).  How many labels it needed until it was useful for the first time says how long it may take to learn:
a trial has SETTLED labels more.  Until then, nothing is doubted.

    trusting   After a trial, the labels are counted for which the model is useless and its errors are at least 4/3 of what they
               usually were while it was useful.  Any other label counts as one less, and when the model is useful, the count
               begins again.  At RUN labels, the model begins anew.
    searching  The new model may be learning nonsense, too.  After each trial, it begins anew if it is still useless.  When it
               becomes useful, or is no longer useless after two trials, the nonsense has ended: it begins anew for the last time,
               to forget what it has learned of the nonsense, and is trusted.  A model that is useful as early as it can be has
               learned nearly no nonsense; it is trusted as it is.

A constant label, such as that of a machine that is switched off, raises no doubt: then the model's errors are small
compared with its usual errors.
"""

from enum import IntEnum
from types import MappingProxyType

from pykernel.algorithms.elementary import bounded, winner
from pykernel.algorithms.stages import PART_OF_LIMIT, Staged
from pykernel.dialect import (
    OUTPUTS,
    Bool,
    Config,
    Constant,
    Index,
    Real,
    Struct,
    Uint8,
    Uint16,
    absolute,
    between,
    kernel,
    real,
)

SETTLED = 150
"""Number of labels before the model can have been useful for the first time."""
LOOKED = 64
"""Number of labels before a model can be useful while searching: with fewer labels, it may seem so by chance."""
RUN = 500
"""Number of useless labels after which the model begins anew."""
LIVED_MOST = 2**16 - 1
"""Labels are counted up to this number."""
USEFUL, USELESS = 6, 7
USEFUL_CLASSES, USELESS_CLASSES = 4, 6
"""A model is useful while its errors are below USEFUL eighths of the labels' distances, and useless while they are at least USELESS
eighths of them.  The limits are further apart for classes, because running means of wrong answers have more noise."""
SCARCE = Constant(0.25)
"""Classes: no doubt while a smaller share of the labels differs from the most frequent class, because errors are then too few."""


class DoubtStatus(IntEnum):
    """Status of a sample after which nothing is left."""

    RESTARTED = 8  # the model diverged, had an impossible state, or was useless: it has forgotten all samples, including this one


class Doubts(IntEnum):
    """What is compared with the labels."""

    NOTHING = 0  # there are no labels
    NEVER = 1  # with class weights, a useful model may give more wrong answers than the most frequent class
    DISTANCES = 2
    CLASSES = 3


class Doubt(Struct):
    """How useful the model has been."""

    label_mean: between(Real[OUTPUTS], "-4 * label_limit", "4 * label_limit")  # running mean of the labels
    error_size: between(Real, "-4 * label_limit", "4 * label_limit")  # running mean of the errors' sizes
    label_size: between(
        Real, "-4 * label_limit", "4 * label_limit"
    )  # running mean of the labels' distances from their mean
    usual_size: between(
        Real, "-4 * label_limit", "4 * label_limit"
    )  # slow running mean of the errors' sizes while the model is useful
    lived: between(Uint16, 0, LIVED_MOST)  # number of labels since the model began
    needed: between(Uint16, 0, LIVED_MOST)  # its age when it was useful for the first time; 0: it was never useful
    useless_run: between(Uint16, 0, RUN)  # number of labels for which it has been useless, see above
    searching: between(Uint8, 0, 1)  # 1: the model is searching for the end of the nonsense

    soon = MappingProxyType(
        {"label_size": 0.5, "error_size": 1.0, "needed": 1, "lived": SETTLED + 1, "useless_run": RUN - 1}
    )


class DoubtWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    answered: Real[OUTPUTS]  # the complete prediction, before the sample was learned or when its label was announced


class DoubtConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.stages``."""

    doubts: Doubts


class Doubting(Staged):
    """A model that may doubt."""

    parts = Doubt, DoubtWork, DoubtConfig


@kernel
def ended(m: Doubting, status: Index) -> Bool:
    """Whether the model must begin anew."""
    if m.doubts == Doubts.NOTHING:
        return False
    return status == DoubtStatus.RESTARTED


@kernel
def eighths(value: Real, number: Index) -> Real:
    """The value, times number / 8."""
    return value * (real(number) * real(0.125))


@kernel
def longest_step(m: Doubting) -> Real:
    """The largest change of a running mean by one label, so that a single outlying label changes none of them much."""
    if m.lived[0] <= LOOKED:
        return m.label_limit
    return eighths(m.label_size[0], 1) + PART_OF_LIMIT * m.label_limit


@kernel
def toward(m: Doubting, mean: Real, value: Real, slow: Bool) -> Real:
    """The running mean of the latest 64, or 1024, values after another value."""
    rate = real(0.0009765625) if slow else real(0.015625)
    return bounded(mean + bounded(rate * (value - mean), longest_step(m)), real(4) * m.label_limit)


@kernel
def apart(m: Doubting, a: Real[OUTPUTS], b: Real[OUTPUTS]) -> Real:
    """[doubts DISTANCES] The largest difference between the elements of a and b.  [doubts CLASSES] 1 if a and b name different
    classes, otherwise 0."""
    if m.doubts == Doubts.CLASSES:
        return real(1) if winner(a) != winner(b) else real(0)
    most = real(0)
    for o in range(len(a)):
        size = absolute(bounded(a[o] - b[o], real(2) * m.label_limit))
        if size > most:
            most = size
    return most


@kernel
def varied(m: Doubting) -> Bool:
    """For classes: whether enough labels differ from the most frequent class."""
    return m.doubts == Doubts.DISTANCES or m.label_size[0] >= SCARCE


@kernel
def despairs(m: Doubting) -> Bool:
    """Compare the learned sample's label with m.answered, the complete prediction before the sample was learned.

    O(OUTPUTS).  Returns whether the model should begin anew.
    """
    error = apart(m, m.label, m.answered)
    away = apart(m, m.label, m.label_mean)
    trial = SETTLED + m.needed[0]
    m.lived[0] = m.lived[0] + 1 if m.lived[0] < LIVED_MOST else LIVED_MOST
    for o in range(len(m.label)):
        m.label_mean[o] = toward(m, m.label_mean[o], m.label[o], m.lived[0] > trial)
    m.label_size[0] = toward(m, m.label_size[0], away, False)
    error = toward(m, m.error_size[0], error, False)
    m.error_size[0] = error
    various = varied(m)
    useful = various and error < eighths(m.label_size[0], USEFUL_CLASSES if m.doubts == Doubts.CLASSES else USEFUL)
    useless = various and error >= eighths(m.label_size[0], USELESS_CLASSES if m.doubts == Doubts.CLASSES else USELESS)
    if m.needed[0] == 0:
        if useful and m.lived[0] >= SETTLED:
            m.needed[0] = m.lived[0]
            m.usual_size[0] = error
        return False
    if m.searching[0] == 0:
        if useful:
            m.usual_size[0] = toward(m, m.usual_size[0], error, True)
        doubtful = useless and m.lived[0] > trial and eighths(error, USEFUL) >= m.usual_size[0]
        if useful:
            m.useless_run[0] = 0
        elif doubtful and m.useless_run[0] < RUN:
            m.useless_run[0] += 1
        elif m.useless_run[0] > 0:
            m.useless_run[0] -= 1
        m.searching[0] = 1 if m.useless_run[0] == RUN else 0
        return m.searching[0] == 1
    if (useful and m.lived[0] >= LOOKED) or (m.lived[0] >= 2 * trial and not useless):
        m.searching[0] = 0
        return m.lived[0] > LOOKED
    return useless and (m.lived[0] == trial or m.lived[0] >= 2 * trial)
