"""Names that a spec cannot have: former names of keys and words, removed keys and words, and words from other
libraries.  A spec with such a name is refused, and the message says what to write instead.
"""

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


RENAMED: dict[tuple[str, ...], str] = {
    ("input", "limit"): "max_abs",
    ("input", "factor"): "scale",
    ("label", "limit"): "max_abs",
    ("kernel", "function", "own"): "custom",
    ("kernel", "most"): "max_value",
    ("learning", "covariance"): "prior_variance",
    ("reduction", "gate"): "ald_threshold",
    ("novelty", "rate"): "false_alarm_rate",
    ("novelty", "hold"): "relearn_after",
    ("expansion", "owners"): "support_class",
    ("expansion", "phases"): "offsets",
    ("expansion", "decision", "pairs"): "ovo",
    ("expansion", "decision", "votes"): "ovo_vote",
}
"""(section, key) of a renamed key, or (section, key, word) for a renamed value -> the new name."""

LEFT: dict[tuple[str, ...], str] = {
    ("expansion", "factor"): "leave it out; the Cholesky factor is now computed from [expansion] vectors and noise",
    ("novelty", "threshold"): "leave it out; a monitor adapts its threshold to false_alarm_rate",
}
"""(section, key) of a removed key, or (section, key, word) for a removed value -> what to do instead."""
