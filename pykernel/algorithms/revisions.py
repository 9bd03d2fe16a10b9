"""Revisions of the algorithms.  They tell whether two versions of the code give the same bits and can exchange states.

Revisions do not depend on the text of the source, so that renaming a variable does not invalidate the states of
devices.  Instead, intended changes of results are recorded here.  ``tests/host/test_identity.py`` compares the bits of
each algorithm with recorded bits: it demands a new revision number if the bits have changed, and refuses a new number
if they have not.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Revision:
    """bits: raise this number when the same samples lead to different predictions, statuses or numbers in memory.
    meaning: raise this number, too, when an older state would be misread.  Devices refuse states with a different
    value of ``meaning``."""

    bits: int = 1
    meaning: int = 1


RAISED: dict[str, Revision] = {
    # learning can be frozen, and the state says whether it is frozen
    # matrix rows are processed in pairs
    # the novelty threshold keeps the rate of rows in alarm at a given value, and a surprise during the warm-up does not
    # distort the threshold
    # a triangular factor of the inverse Gram matrix is stored instead of the matrix itself
    # for the novelty threshold, a whole alarm counts as one event
    # rotations need three products instead of four
    "okfeb": Revision(bits=6, meaning=2),
    # the same changes as for okfeb; the novelty level is the largest surprise
    # a sensor's blame is the part of an alarm that the sensor explains; alarms can be acknowledged and rejected
    # a kind of fault is named only if the evidence is sufficient
    # standard deviations may be below 2^-40
    # monitors can be armed, and the state says which regime is the newest
    # the part that a sensor explains is computed as one scalar product
    "gmm": Revision(bits=5, meaning=3),
    # matrices are stored as triangles, with vectors in order of arrival
    # mean and covariance of krls-t and ald-krls are kept in coordinates where the prior covariance is I
    # rls and quadratic-rls learn from the first sample on
    # rotations need three products instead of four, and the first of an odd number of rows is processed alone
    **dict.fromkeys(("sw-krls", "ald-krls", "rls", "quadratic-rls", "rff-rls"), Revision(bits=3)),
    # the same changes as for sw-krls, and the removal techniques score the newest sample like a stored vector
    **dict.fromkeys(("klms", "qklms", "fb-krls", "krls-t"), Revision(bits=4)),
    "frozen int16": Revision(bits=2),  # a vector's contributions of less than one unit are also rounded down
    # the linear expert of [mixture] does not forget beyond its prior
    # mean squares are in smaller units, and inputs may have standard deviations below 2^-40
    # labels may come late, and the expert clips labels around its own predictions
    # labels that the gain uses are counted separately from other labels
    "stages": Revision(bits=5, meaning=4),
    # labels may come late; the first label becomes the mean; the second label no longer replaces the mean of the first output
    "stages int16": Revision(bits=4, meaning=2),
    "nystrom-rls": Revision(bits=2),  # learning can be frozen
    # matrix rows are processed in pairs, and the first of an odd number of rows alone
    # the labels' unit and mean square are stored with a finer resolution
    # initial frequencies are not always drawn at random
    "spectrum-ekf": Revision(bits=5, meaning=2),
    "spectrum-nlms": Revision(bits=2, meaning=2),  # the unit and the mean square changed as for spectrum-ekf
}
"""The revision of each algorithm that has changed since its first revision.  Names are those of ``Spec.algorithms``: a rule such as
"klms", or "gaussian kernel", "stages", "missing" or "signal"; the suffix " int16" marks the int16 version."""


def revision_of(algorithm: str) -> Revision:
    return RAISED.get(algorithm, Revision())
