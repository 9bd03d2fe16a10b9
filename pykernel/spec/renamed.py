"""What keys and words of a spec were called before, and are called now: an old one is refused with the new one's name."""

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
    ("expansion", "decision", "pairs"): "ovo",
    ("expansion", "decision", "votes"): "ovo_vote",
}
"""(section, key), or (section, key, the word that is its value) -> the new name."""
