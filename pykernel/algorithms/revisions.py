"""Revisions of the algorithms: whether two versions of the code give the same bits and can exchange states.

The text of the source does not matter: renaming a variable does not invalidate states in the field.  So an intended change of
results is recorded here.  ``tests/host/test_identity.py`` compares the bits of each algorithm with recorded ones: it demands a
new number where bits have changed, and refuses one where none has.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Revision:
    """bits: raise this number when the same samples lead to other answers, statuses or numbers in memory.  meaning: raise this
    one as well when an older state would be misread: devices refuse states with another meaning."""

    bits: int = 1
    meaning: int = 1


RAISED: dict[str, Revision] = {
    # freeze and its place in memory; then two matrix rows per turn; then a threshold that keeps a rate in rows and that a
    # surprise in the warm-up does not spoil; then a triangle instead of P; then the threshold learns an alarm as one event;
    # then rotations with three products
    "okfeb": Revision(bits=6, meaning=2),
    # the same; the level is the largest surprise; blame by what a sensor explains; acknowledge and reject; no kind is named on
    # thin evidence; then deviations below 2^-40; then monitors that arm, and the newest regime; then what a sensor explains as
    # one scalar product
    "gmm": Revision(bits=5, meaning=3),
    # triangles, with vectors in order of arrival; mean and covariance of krls-t and ald-krls in coordinates where the prior is
    # I; rls and quadratic-rls from the first sample on; then rotations with three products, and the first of an odd number of
    # rows alone
    **dict.fromkeys(("sw-krls", "ald-krls", "rls", "quadratic-rls", "rff-rls"), Revision(bits=3)),
    # the same; then techniques score the newest sample like a stored vector
    **dict.fromkeys(("klms", "qklms", "fb-krls", "krls-t"), Revision(bits=4)),
    "frozen int16": Revision(bits=2),  # a vector's part below one unit is rounded down, too
    # the linear expert of [mixture] forgets no further than its prior; then mean squares in smaller units, and inputs whose
    # deviation is below 2^-40; then late labels, and the expert's own clipping of labels; then a separate count for the gain
    "stages": Revision(bits=5, meaning=4),
    "stages int16": Revision(bits=3, meaning=2),  # late labels; then the first label is the mean
    "nystrom-rls": Revision(bits=2),  # freeze
    # two matrix rows per turn, and the first of an odd number alone; then the unit and the mean square in smaller units; then
    # initial frequencies that are not drawn at random
    "spectrum-ekf": Revision(bits=5, meaning=2),
    "spectrum-nlms": Revision(bits=2, meaning=2),  # the same units
}
"""Algorithm -> its revision, for algorithms beyond their first one.  Names are those of ``Spec.algorithms``: a rule such as
"klms", or "gaussian kernel", "stages", "missing" or "signal"; the suffix " int16" marks the int16 version."""


def revision_of(algorithm: str) -> Revision:
    return RAISED.get(algorithm, Revision())
