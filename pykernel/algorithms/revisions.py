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
    # the first row is WARMING; a row that lasts ends the alarm in its status, too; no kind after the alarm
    "gmm": Revision(bits=2),
    # a dip does not end a run of useless labels; none is trusted half poisoned; one that is useful at once is kept
    "doubt": Revision(bits=2),
    "doubt int16": Revision(bits=2),
}
"""The revision of each algorithm that has changed, with a comment that says what changed.  All others have the first revision.  Names are
those of ``Spec.algorithms``: a rule such as "klms", or "gaussian kernel", "stages", "missing", "doubt" or "signal"; the suffix " int16" marks the
int16 version."""


def revision_of(algorithm: str) -> Revision:
    return RAISED.get(algorithm, Revision())
