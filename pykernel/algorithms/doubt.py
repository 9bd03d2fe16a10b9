"""Doubt: a model that has become useless begins anew.

Many labels without any relation to their inputs (a sensor that is not connected) can end a learner for ever: it has become
certain of a wrong function, or its memory is full of samples that say nothing.  So the model compares two running means: the
size of its errors, and the labels' distance from their own mean, which is the error of a model that always answers this mean.
For classes, these are the share of wrong answers, and the share that would be wrong if the answer were always the most
frequent class.

    settling   since the beginning.  Ends when the model has been useful: its errors are below 3/4 of the labels' distances (classes: 1/2).
    trusting   until, for RUN labels without interruption, the errors are at least 7/8 of the labels' distances (classes:
               3/4), and at least one and a half times as large as they usually are while the model is useful.  Then the model begins anew.
    searching  The new model may be learning nonsense, too.  After TRY and
               after KEEP labels, it begins anew if it is still useless.  When it becomes useful, the nonsense has ended, and the model begins anew for the last
               time, without the nonsense that it has learned.  If it is neither useless nor useful, it is trusted.

A constant label, such as that of a machine that is switched off, raises no doubt: then the model's errors are small
compared with its usual errors.
"""

from enum import IntEnum

from pykernel.algorithms.elementary import winner
from pykernel.algorithms.stages import Staged
from pykernel.dialect import OUTPUTS, Bool, Config, Constant, Index, Real, Struct, absolute, between, kernel

SETTLED = 150
"""Number of labels before the model can have been useful."""
DESPAIR = 350
"""SETTLED + RUN, where RUN is the number of consecutive useless labels after which the model begins anew."""
LOOKED = 414
"""Number of labels, plus DESPAIR, before a new model can be useful: with fewer labels, it may seem so by chance."""
TRIED, KEPT = 650, 950
"""TRY and KEEP, the numbers of labels after which a new model that is still useless begins anew, plus DESPAIR."""
BETTER, BETTER_CLASSES = 2, 1
"""A model is useful while its errors are below 1 - 2^-BETTER times the labels' distances, and useless while they are at least
1 - 2^-(BETTER + 1) times these distances.  The running means have more noise if they count wrong answers."""
FAST, SLOW = 6, 10
"""Each label moves the running means by 2^-FAST of its distance from the mean, or by 2^-SLOW."""
PARTS = Constant([1.0, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256, 1 / 512, 1 / 1024])


class Doubts(IntEnum):
    """What is compared with the labels."""

    NOTHING = 0  # there are no labels
    DISTANCES = 1
    CLASSES = 2


class Doubt(Struct):
    """How useful the model has been."""

    label_mean: between(Real[OUTPUTS], "-2 * label_limit", "2 * label_limit")  # running mean of the labels
    error_size: between(Real, 0, "4 * label_limit")  # running mean of the errors' sizes
    label_size: between(Real, 0, "4 * label_limit")  # running mean of the labels' distances from their mean
    usual_size: between(Real, 0, "4 * label_limit")  # running mean of the errors' sizes while the model is useful
    doubt: between(Index, 0, KEPT)  # number of labels in the present phase, plus the number at which this phase begins


class DoubtWork(Struct):
    """Intermediate results, which every call recomputes; zero is a valid initial value."""

    missed_by: between(Real, 0, "4 * label_limit")  # size of the sample's largest error


class DoubtConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.stages``."""

    doubts: Doubts


class Doubting(Staged):
    """A model that may doubt."""

    parts = Doubt, DoubtWork, DoubtConfig


@kernel
def part(value: Real, halvings: Index) -> Real:
    """The value, divided by a power of 2."""
    return value * PARTS[halvings]


@kernel
def toward(mean: Real, value: Real, halvings: Index) -> Real:
    """The running mean after another value."""
    return mean + part(value - mean, halvings)


@kernel
def weigh_distance(m: Doubting) -> Real:
    """The label's distance from the labels' mean, for the output for which it is largest."""
    most = absolute(m.label[0] - m.label_mean[0])
    for o in range(1, len(m.label)):
        size = absolute(m.label[o] - m.label_mean[o])
        if size > most:
            most = size
    return most


@kernel
def weigh_class(m: Doubting) -> Real:
    """The distance of a class from the most frequent one: 1 if they differ.  m.missed_by becomes 1 if the model's answer is wrong."""
    one = absolute(m.label[0])
    m.missed_by[0] = one if winner(m.value) != winner(m.label) else one - one
    return one if winner(m.label_mean) != winner(m.label) else one - one


@kernel
def despairs(m: Doubting) -> Bool:
    """Compare the learned sample's error with its label.  Returns whether the model should begin anew.  O(OUTPUTS)."""
    away = weigh_distance(m)
    if m.doubts == Doubts.CLASSES:
        away = weigh_class(m)
    pace = SLOW if m.doubt[0] >= SETTLED and m.doubt[0] < DESPAIR else FAST
    for o in range(len(m.label)):
        m.label_mean[o] = toward(m.label_mean[o], m.label[o], pace)
    m.error_size[0] = toward(m.error_size[0], m.missed_by[0], FAST)
    m.label_size[0] = toward(m.label_size[0], away, FAST)
    error = m.error_size[0]
    better = BETTER_CLASSES if m.doubts == Doubts.CLASSES else BETTER
    useful = error < m.label_size[0] - part(m.label_size[0], better)
    useless = error >= m.label_size[0] - part(m.label_size[0], better + 1)
    m.doubt[0] += 1
    if m.doubt[0] < SETTLED:
        return False
    if m.doubt[0] == SETTLED:
        m.usual_size[0] = error
        if not useful:
            m.doubt[0] = SETTLED - 1
        return False
    if m.doubt[0] <= DESPAIR:
        if useful:
            m.usual_size[0] = toward(m.usual_size[0], error, SLOW)
        if not useless or error < m.usual_size[0] + part(m.usual_size[0], 1):
            m.doubt[0] = SETTLED
        return m.doubt[0] == DESPAIR
    if m.doubt[0] > LOOKED and useful:
        m.doubt[0] = 0
        return True
    if useless and (m.doubt[0] == TRIED or m.doubt[0] == KEPT):
        m.doubt[0] = DESPAIR
        return True
    if m.doubt[0] == KEPT:
        m.doubt[0] = SETTLED
    return False
