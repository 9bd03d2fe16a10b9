"""What a workflow tells whoever waits for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from pykernel.errors import told_late

Show = Callable[[float, str], None]
"""Takes how much is done, and what is next."""


class Watch:
    """Says on standard error what takes more than two seconds, and nothing else.  The command line has one that prints; a
    program may have one that logs."""

    bars = False
    """Whether long work may draw its own progress bars on standard error."""

    def note(self, sentence: str) -> None:
        """What was assumed; belongs to the result."""

    def tell(self, sentence: str) -> None:
        """What is about to be done, or what has happened."""

    def warn(self, sentence: str) -> None:
        """What is probably not as it was meant."""

    def progress(self, total: float | None = 1) -> contextlib.AbstractContextManager[Show]:
        """total: 1, or a number of bytes, or None if it is not known."""
        return told_late()


QUIET = Watch()
