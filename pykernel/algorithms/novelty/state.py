"""The state of a monitor: the bank of Gaussians, the course of the rows, and the explanation of an alarm."""

from enum import IntEnum

from pykernel.algorithms.extents import COMPONENTS
from pykernel.algorithms.hooks import Framed
from pykernel.algorithms.novelty.threshold import SCORE_MOST, WHITE_MOST, Threshold, ThresholdConfig
from pykernel.dialect import DIM, Config, Index, Real, Struct, Uint8, Uint16, between

LONGEST = 65535
"""Repeats are counted up to this number."""
WEIGHT_MOST = 5000
"""While one regime learns all rows, its weight approaches this number of rows."""


class GmmStatus(IntEnum):
    """Status codes that only monitors return.  DONE: the row was learned."""

    BORN = 1  # the row was learned, and the bank has a new regime.  If there was an alarm, it ends
    STRANGE = 2  # the row was added to the candidate for a new regime, not to a known regime
    WARMING = 3  # the row was learned.  There are no alarms yet
    NOVEL = 4  # alarm: the level is above its threshold
    HELD = 5  # alarm: no known regime learned the row
    UNKNOWN = 8  # the fault is not one of the other kinds, or there are too few rows to decide its kind
    JUMP = 9  # a sensor's offset or gain has changed suddenly
    DRIFT = 10  # a sensor changes slowly
    STUCK = 11  # a sensor repeats its value
    NOISE = 12  # a sensor became noisier
    REGIME = 13  # several sensors have suddenly changed together
    UNARMED = 14  # the row was learned.  Alarms are possible, but an unknown state that repeats still becomes normal
    NOTHING_NEW = -10  # there is nothing to acknowledge, reject or unlearn; nothing changed
    NO_ROOM = -11  # no two regimes can be merged to make room, or unlearn would leave no normal regime; nothing changed
    ABSENT = -12  # alarm: more than five consecutive rows were refused; the model did not change


class Bank(Struct):
    """Gaussians of the regimes.  The last place is for the candidate, which may become a regime."""

    # if the bank is full, the pair of regimes to merge is searched for while the candidate gathers rows
    merge_loss: Real  # loss of log-likelihood if the best pair so far is merged
    weights: between(Real[COMPONENTS], 0, 2 * WEIGHT_MOST)  # number of rows of each regime; earlier rows count less
    means: between(Real[COMPONENTS + 1, DIM], "-input_max_abs", "input_max_abs")
    # R of each Gaussian, where R'R is its covariance: an upper triangle, row by row from the diagonal on
    roots: between(Real[COMPONENTS + 1, DIM * (DIM + 1) // 2], "-root_most", "root_most")
    # number of rows that a Gaussian has learned, at most the horizon
    counts: between(Uint16[COMPONENTS + 1], 0, "horizon")
    unmet: between(Uint16, 0, "unmet_most")  # number of rows of known regimes since the candidate began
    sought: between(Uint16, 0, COMPONENTS * (COMPONENTS - 1) // 2)  # number of pairs that were compared
    rejected: between(Uint8[COMPONENTS], 0, 1)  # 1: the regime is rejected, so its rows are in alarm
    known: between(Uint8, 0, COMPONENTS)  # number of regimes
    merge_first: between(Uint8, 0, COMPONENTS - 1)  # the pair with the smallest loss so far
    merge_second: between(Uint8, 0, COMPONENTS - 1)
    # place of the newest regime since the warm-up, counted from 1; 0: there is none, or it was unlearned
    newest: between(Uint8, 0, COMPONENTS)


class Course(Struct):
    """Statistics of consecutive rows, of repeated values, and of surprises."""

    usual: between(Real[2], -SCORE_MOST, SCORE_MOST)  # usual surprise under the course and under the bank
    spread: between(Real[2], 0, 2.0**51)  # twice the mean squared excess over the usual surprise
    middle: between(Real[DIM], "-input_max_abs", "input_max_abs")  # mean of the rows
    followed: between(Uint16, 0, "horizon")  # number of rows learned, at most the horizon
    before: between(Real[DIM], "-input_max_abs", "input_max_abs")  # the previous row
    # smallest nonzero change of each sensor from one row to the next: the converter's step, or nearly zero if values are not rounded
    least_step: between(Real[DIM], 0, "root_most")
    repeats: between(Real[DIM], 0, 1)  # fraction of the rows in which a sensor repeats its value
    # root of the joint covariance of a row and the previous row
    joint: between(Real[DIM * (DIM * 2 + 1)], "-root_most", "root_most")
    run: Uint16[DIM]  # for how many rows, up to the latest, each sensor has repeated its value
    surprised: between(Uint16, 0, "horizon")  # number of rows learned in ``usual`` and ``spread``, at most the horizon
    settling: between(Uint16, 0, "settles_for")  # number of coming rows that are learned even if they are in alarm
    watched: between(Index, 0, "watched_most")  # number of rows; counting stops at a limit


class Blame(Struct):
    """The explanation of the present alarm or, if there is none, of the last alarm."""

    shares: between(Real[DIM], 0, 1.0625)  # mean share of each sensor in the alarm
    # squared innovation that each sensor explains in the alarm's first row, if the sensor moved and explains more than half; else 0
    leaps: between(Real[DIM], 0, WHITE_MOST)
    # 1: in the alarm's first row, the surprise under the course alone was above the threshold
    abrupt: between(Uint8, 0, 1)
    culprit: between(Uint16, 0, DIM - 1)  # the sensor with the largest share
    reported: between(Uint16, 0, "horizon")  # number of rows of the alarm with this culprit
    calm: between(Real, 0, 1.0625)  # fraction of the rows with this culprit in which the culprit's value hardly changed
    # mean square of the culprit's steps after the alarm's first row, relative to the usual mean square
    rough: between(Real, 0, 2.0**41)
    others: between(Real, 0, 2.0**41)  # mean of the squared distance without the culprit's part


class Sight(Struct):
    """Intermediate results about a row, which every call computes again."""

    nearest: Index  # the normal regime that explains the row best
    forbidden: Index  # 1: a rejected regime explains the row, and no normal regime explains it better
    barring: Index  # the rejected regime that explains the row best
    repeater: Index  # the sensor whose repeats are most surprising
    distance: Real  # squared distance from the nearest regime, in standard deviations of this regime
    innovation: Real  # square of the part of a row that the previous row does not predict
    surprise: Real[2]  # surprise under the course and under the bank
    loud: Real[3]  # the surprises under the course and under the bank, in usual spreads, and the surprise of repeats
    own: Real[DIM]  # deviations from the nearest regime, whitened
    turned: Real[DIM]
    pair: Real[DIM * 2]  # deviations of the previous row and of this row from the mean, whitened
    partner: Real[DIM * 2]
    norms: Real[DIM * 2]
    parts: Real[DIM]  # each sensor's part of the squared distance
    merged: Real[DIM * (DIM + 1) // 2]  # root of the Gaussian into which two Gaussians are merged


class Presence(Struct):
    """Whether valid rows arrive.  The model does not depend on the count of refused samples."""

    missed: between(Index, 0, "absent_after")  # number of samples refused since the latest accepted one


class GmmConfig(Config):
    """Parameters, derived from a spec by ``pykernel.spec.families.gmm``."""

    grouped: bool  # whether some sensors have several inputs
    sensors: Index[DIM]  # the sensor of each input
    horizon: Index  # number of latest rows that means and roots describe
    warmup: Index  # number of rows at the beginning without alarms
    relearn_after: Index  # number of rows after which a new regime, or a lasting alarm, becomes normal
    relearn_soon: Index  # number of rows after which a change of several sensors at once becomes normal
    patience: Index  # number of rows after which a candidate becomes a regime in the warm-up
    unmet_most: Index  # rows of known regimes since the candidate began are counted up to this number
    watched_most: Index  # rows are counted up to this number
    root_most: Real  # largest magnitude of the roots' elements
    outlying: Real  # squared distance above which a Gaussian does not explain a row
    pairs_a_row: Index  # number of pairs that are compared at each row of the candidate
    fresh: Index  # number of rows after which a Gaussian can judge a row
    tail_of_rows: Real  # nu: degrees of freedom of the bank's t-distributions
    loud_first: Index  # number of rows at the beginning that do not change the usual surprises
    settles_for: Index  # number of rows after a new regime that are learned even if they are in alarm
    absent_after: Index  # more than this many consecutive refused samples raise an alarm


class GmmModel(Framed):
    parts = (Bank, Course, Blame, Sight, Presence, GmmConfig, Threshold, ThresholdConfig)
