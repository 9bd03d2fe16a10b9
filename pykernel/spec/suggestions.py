"""Words of other libraries that a user may write in a spec or an option, and what they are called here."""

from __future__ import annotations

from collections.abc import Collection

from pykernel.errors import did_you_mean

ELSEWHERE = {
    "rbf": "gaussian",
    "squared_exponential": "gaussian",
    "poly": "polynomial",
    "exponential": "laplacian",
    "float": "float32",
    "single": "float32",
    "double": "float64",
}
"""Word in other libraries -> word in a spec or an option."""


def word_meant(word: str, known: Collection[str], otherwise: str) -> str:
    """Return the end of a message about an unknown word: the known word that was probably meant, or else ``otherwise``."""
    here = ELSEWHERE.get(word.lower(), word)
    return did_you_mean(here if here in known else word, known, otherwise)
