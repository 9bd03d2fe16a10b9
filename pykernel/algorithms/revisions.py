"""Revisions of the algorithms: which of a state's bits two versions of the code have in common.

The source's text does not count: a renamed variable leaves states in the field as they are.  So a change that is meant to
change results says so here.  ``tests/host/test_identity.py`` compares the bits of each algorithm with recorded ones: it
asks for a new number where bits have changed, and refuses one where none has.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Revision:
    """bits: raise this number when the same samples lead to other answers, statuses or numbers in memory.  meaning: raise
    this one as well when a state of before would be misread: devices refuse states of another meaning."""

    bits: int = 1
    meaning: int = 1


RAISED: dict[str, Revision] = {
    # freeze, and where it is kept; then two rows of a matrix in a turn; then a threshold that keeps a rate in rows
    # which a surprise in the warm-up does not spoil; then a triangle in place of P; then an alarm teaches the threshold as one event;
    # then rotations of three products
    "okfeb": Revision(bits=6, meaning=2),
    # the same; the largest surprise makes the level; blame by what a sensor explains; what acknowledge and reject do; kinds that
    # thin evidence does not name; then deviations below 2^-40; then monitors that arm, and the newest regime; then what a sensor explains is
    # one scalar product
    "gmm": Revision(bits=5, meaning=3),
    # triangles, with vectors in the order in which they came; mean and covariance of krls-t and ald-krls where the prior is I; rls and
    # quadratic-rls from the first sample on; then rotations of three products, and of an odd number of rows the first one alone
    **dict.fromkeys(("sw-krls", "ald-krls", "rls", "quadratic-rls", "rff-rls"), Revision(bits=3)),
    # the same; then a technique's score of the newest sample is that of a stored vector
    **dict.fromkeys(("klms", "qklms", "fb-krls", "krls-t"), Revision(bits=4)),
    "frozen int16": Revision(bits=2),  # a vector's part below one unit is rounded down, too
    # the linear expert of [mixture] forgets no further than to what it knew before the first label; then mean squares in smaller units,
    # and inputs whose deviation is below 2^-40; then labels that come late, and the expert's own limit of its labels; then a count of the gain alone
    "stages": Revision(bits=5, meaning=4),
    "stages int16": Revision(bits=3, meaning=2),  # labels that come late; then the first label is its mean
    "nystrom-rls": Revision(bits=2),  # freeze
    # two rows of a matrix in a turn; of an odd number the first one alone; then the unit and the mean square in smaller units;
    # then first frequencies that are not drawn
    "spectrum-ekf": Revision(bits=5, meaning=2),
    "spectrum-nlms": Revision(bits=2, meaning=2),  # the same units
}
"""Algorithm -> its revision, of those that are not in their first one.  Names are those of ``Spec.algorithms``: a rule such as
"klms", "gaussian kernel", "stages", "missing" or "signal"; with " int16" behind, the same in whole numbers."""


def revision_of(algorithm: str) -> Revision:
    return RAISED.get(algorithm, Revision())
