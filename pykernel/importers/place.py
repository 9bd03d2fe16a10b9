"""Places of errors in an imported model, for error messages."""

from __future__ import annotations

from pathlib import Path

from pykernel.errors import UserError
from pykernel.spec.model import shown_value


class Place(str):
    """A part of a model.  Messages about the part begin with its name.

    The file itself is the part with an empty name; the code that reads the file inserts the file's name.
    """

    @classmethod
    def of_file(cls, path: str | Path) -> Place:
        return cls(path if str(path).isprintable() else shown_value(str(path)))

    def error(self, sentence: str) -> UserError:
        return UserError(f"{self}: {sentence}" if self else sentence)

    def need(self, holds: object, sentence: str) -> None:
        """Raise UserError with the sentence unless the condition is true."""
        if not holds:
            raise self.error(sentence)

    def step(self, name: object) -> Place:
        return Place(f"{self}, step {shown_value(name)}")
