"""What a monitor keeps: a bank of Gaussians, how a row follows from the row before, which sensors repeat, and what is wrong."""

from enum import IntEnum

from pykernel.algorithms.extents import COMPONENTS
from pykernel.algorithms.hooks import Framed
from pykernel.algorithms.novelty.threshold import SCORE_MOST, WHITE_MOST, Threshold, ThresholdConfig
from pykernel.dialect import DIM, Config, Index, Real, Struct, Uint8, Uint16, between

LONGEST = 65535
"""Counting of repeats stops here."""
WEIGHT_MOST = 5000
"""The weights of the bank sum up to at most this many rows."""


class GmmStatus(IntEnum):
    """What only monitors return.  DONE: the row was learned."""

    BORN = 1  # the row was learned, and the bank knows one regime more.  An alarm that lasted ends with it
    STRANGE = 2  # the row was learned, but not as one of a known regime
    WARMING = 3  # the row was learned.  There are no alarms yet
    NOVEL = 4  # alarm: the level is above its threshold
    HELD = 5  # alarm: the level is above its threshold, and no known regime learned the row
    UNKNOWN = 8  # none of the others, or too few rows to tell
    JUMP = 9  # a sensor's offset or gain is suddenly another one
    DRIFT = 10  # a sensor creeps away
    STUCK = 11  # a sensor repeats itself
    NOISE = 12  # a sensor became noisier
    REGIME = 13  # several sensors at once say what was never seen
    UNARMED = 14  # the row was learned.  Alarms are raised, but states that repeat still become normal
    NOTHING_NEW = -10  # there is no regime that could be acknowledged, rejected or unlearned; nothing changed
    NO_ROOM = -11  # no normal regime would be left, or none that could be merged; nothing changed
    ABSENT = -12  # alarm: in five rows' time all samples were refused; the model did not change


class Bank(Struct):
    """Gaussians of the regimes.  The last place is the candidate: rows that may become a regime."""

    # where the bank is full, which two regimes to merge is sought while the candidate gathers rows
    merge_loss: Real  # what is lost if the best pair so far becomes one
    weights: between(Real[COMPONENTS], 0, 2 * WEIGHT_MOST)  # rows of each, lately
    means: between(Real[COMPONENTS + 1, DIM], "-input_max_abs", "input_max_abs")
    # R of each, where R'R is its covariance: an upper triangle, row by row from the diagonal on
    roots: between(Real[COMPONENTS + 1, DIM * (DIM + 1) // 2], "-root_most", "root_most")
    counts: between(Uint16[COMPONENTS + 1], 0, "horizon")  # rows behind each, at most the horizon
    unmet: between(Uint16, 0, "unmet_most")  # rows of known regimes since the candidate began
    sought: between(Uint16, 0, COMPONENTS * (COMPONENTS - 1) // 2)  # number of pairs that were compared
    rejected: between(Uint8[COMPONENTS], 0, 1)  # 1: a regime that never may be normal
    known: between(Uint8, 0, COMPONENTS)  # number of regimes
    merge_first: between(Uint8, 0, COMPONENTS - 1)  # the best pair so far
    merge_second: between(Uint8, 0, COMPONENTS - 1)
    newest: between(
        Uint8, 0, COMPONENTS
    )  # place of the latest regime since the warm-up, from 1; 0: there is none, or it was unlearned


class Course(Struct):
    """How a row follows from the row before, which sensors repeat themselves, and what is usual."""

    usual: between(Real[2], -SCORE_MOST, SCORE_MOST)  # usual surprise by the course and by the bank
    spread: between(Real[2], 0, 2.0**51)  # how far it lies above, squared
    middle: between(Real[DIM], "-input_max_abs", "input_max_abs")  # mean of the rows
    followed: between(Uint16, 0, "horizon")  # number of rows behind it, at most the horizon
    before: between(Real[DIM], "-input_max_abs", "input_max_abs")  # the row before
    least_step: between(
        Real[DIM], 0, "root_most"
    )  # the smallest step that a sensor has made: a converter's, or next to nothing
    repeats: between(Real[DIM], 0, 1)  # part of the rows in which a sensor repeats its value
    # root of the covariance of a row before and its row together
    joint: between(Real[DIM * (DIM * 2 + 1)], "-root_most", "root_most")
    run: Uint16[DIM]  # number of latest rows with the same value
    surprised: between(Uint16, 0, "horizon")  # number of rows behind these, at most the horizon
    settling: between(Uint16, 0, "settles_for")  # rows to go in which alarms do not stop learning
    watched: between(Index, 0, "watched_most")  # number of rows, at most those that matter


class Blame(Struct):
    """What the present alarm, or the last one, is about."""

    shares: between(Real[DIM], 0, 1.0625)  # mean share of each sensor in the alarm
    leaps: between(Real[DIM], 0, WHITE_MOST)  # squared deviations of the first row that each explains, if it is most
    abrupt: between(Uint8, 0, 1)  # 1: the course alone would have begun the alarm
    culprit: between(Uint16, 0, DIM - 1)  # the sensor with the largest share
    told: between(Uint16, 0, "horizon")  # rows of the alarm since it is
    calm: between(Real, 0, 1.0625)  # part of them in which it hardly moved
    rough: between(Real, 0, 2.0**41)  # the mean square of its steps after the first of them, in usual ones
    others: between(Real, 0, 2.0**41)  # what the squared distance would be without it, in the mean


class Sight(Struct):
    """What a row looks like.  Every call computes it anew; zeros are always valid."""

    nearest: Index  # the regime that explains the row best
    forbidden: Index  # 1: within the reach of a rejected regime, which explains it better, or no other does
    barring: Index  # that one
    repeater: Index  # the sensor whose repeats surprise most
    distance: Real  # squared distance from the nearest, in its standard deviations
    innovation: Real  # square of what does not follow from the row before
    surprise: Real[2]  # by the course and by the bank
    loud: Real[3]  # both in usual spreads, and the surprise of repeats
    own: Real[DIM]  # deviations from the nearest regime, whitened
    turned: Real[DIM]
    pair: Real[DIM * 2]  # deviations of the row before and of this row from the mean, whitened
    partner: Real[DIM * 2]
    norms: Real[DIM * 2]
    parts: Real[DIM]  # what each sensor has of an alarm
    merged: Real[DIM * (DIM + 1) // 2]  # root of two Gaussians taken for one


class Presence(Struct):
    """Whether rows come.  The model does not depend on it."""

    missed: between(Index, 0, "absent_after")  # number of latest samples that were refused


class GmmConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.gmm``."""

    grouped: bool  # whether some inputs are of one sensor
    sensors: Index[DIM]  # the sensor of each input
    horizon: Index  # number of latest rows that means and roots describe
    warmup: Index  # rows without alarms at first
    relearn_after: Index  # rows that make a new regime, or a lasting alarm, normal
    relearn_soon: Index  # the same, if several sensors agree on it
    patience: Index  # rows that make a new regime in the warm-up
    unmet_most: Index  # counting of rows without the candidate stops here
    watched_most: Index  # counting of rows stops here
    root_most: Real  # bound of the roots
    outlying: Real  # squared distance from which a row is strange to a Gaussian
    pairs_a_row: Index  # pairs that are compared with each of the candidate's rows
    fresh: Index  # rows from which a Gaussian can tell
    tail_of_rows: Real  # nu: degrees of freedom of the bank's t-distributions
    loud_first: Index  # rows before it is learned what surprises are usual
    settles_for: Index  # rows after a new regime in which alarms do not stop learning
    absent_after: Index  # refused samples in a row that are an alarm


class GmmModel(Framed):
    parts = (Bank, Course, Blame, Sight, Presence, GmmConfig, Threshold, ThresholdConfig)
