"""What a spec gets that names no rule.  benchmarks/host/first_results.py measures it on many raw streams.

A rule that is named is the published algorithm and nothing else.  Without a name there is a model that learns well from raw
data: inputs in running standard deviations, a kernel as wide as a sample is long, and for numbers the stages of
``algorithms/stages.py``.  What the spec gives stays as it is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

STAGED_CLIP = 3.0
"""Standardised inputs are limited to so many standard deviations."""
INPUT_LIMIT, LABEL_LIMIT = 1e12, 1e9
"""Raw numbers may be large: what is standardised, and in units of its limit, overflows nothing."""
NUMBERS: dict[str, Any] = {
    "label": {"center": True, "gain": True, "max_abs": LABEL_LIMIT},
    "linear": {},
    "learning": {"rule": "krls-t", "noise": "auto", "forgetting": 0.999},
}
CLASSES: dict[str, Any] = {"learning": {"rule": "krls-t", "noise": 1.0, "forgetting": 0.9999}}
ALARMS: dict[str, Any] = {
    "learning": {"rule": "okfeb", "features": 12},
    "novelty": {"smoothing": 0.5, "relearn_after": 100},
}
"""Measured by benchmarks/host/first_alarms.py."""
ALARM_CLIP = 6.0
"""For alarms: what is far stays far."""


def length(dim: int) -> float:
    """The length of a sample whose inputs are in standard deviations, sqrt(D): sigma for alarms."""
    return float(f"{math.sqrt(dim):.4g}")


def width(dim: int) -> float:
    """sigma for labels, with inputs in standard deviations: the length of a sample, and less where D is below 6."""
    return float(f"{min(1.0, 0.4 + 0.1 * dim) * math.sqrt(dim):.4g}")


def completed(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content with a rule, and with what belongs to the rule if the content names none."""
    learning = content.get("learning", {})
    if not isinstance(learning, Mapping) or "rule" in learning:
        return content
    alarms = "novelty" in content
    if alarms:
        made = dict(ALARMS)
        budget = _section(content, "reduction").get("n_max")
        if isinstance(budget, int) and 0 < budget < ALARMS["learning"]["features"]:
            made["learning"] = ALARMS["learning"] | {"features": budget}
    else:
        made = dict(CLASSES if _section(content, "label").get("classes") is not None else NUMBERS)
    input, kernel = _section(content, "input"), _section(content, "kernel")
    own_unit = any(kernel.get(key) is not None for key in ("sigma", "gamma"))
    if input.get("standardise", not own_unit) is True:
        made["input"] = {"standardise": True, "clip": ALARM_CLIP if alarms else STAGED_CLIP, "max_abs": INPUT_LIMIT}
        if not own_unit and kernel.get("function", "gaussian") == "gaussian" and (dim := _dim(input)):
            made["kernel"] = {"sigma": length(dim) if alarms else width(dim)}
    else:
        made.pop("linear", None)
    return {**content, **{name: _over(made[name], content.get(name)) for name in made}}


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = content.get(name)
    return given if isinstance(given, Mapping) else {}


def _over(default: Mapping[str, Any], given: Any) -> Any:
    """The default below what is given; what is no section stays, and is refused later."""
    if given is None:
        return dict(default)
    return {**default, **given} if isinstance(given, Mapping) else given


def _dim(input: Mapping[str, Any]) -> int:
    """How many inputs there are, 0 if the spec does not say it as it should."""
    columns, dim = input.get("columns"), input.get("dim")
    if columns is not None:
        return len(columns) if isinstance(columns, (list, tuple)) else 0
    return dim if isinstance(dim, int) and dim > 0 else 0
