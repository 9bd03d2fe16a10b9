"""What a spec gets that names no rule.  benchmarks/host/first_results.py measures it on many raw streams.

A rule that is named learns as its paper says, and nothing is added.  Without a name there is a model that learns well from raw
data: inputs in running standard deviations, a kernel as wide as a sample is long, and for numbers the stages of
``algorithms/stages.py``.  What the spec gives stays as it is given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pykernel.spec.sections import CPUS, DIM_LIMIT, fpu_of

STAGED_CLIP = 3.0
"""Standardised inputs are limited to so many standard deviations."""
INPUT_LIMIT, LABEL_LIMIT = 1e12, 1e9
"""Raw numbers may be large: what is standardised, and in units of its limit, overflows nothing."""
NUMBERS: dict[str, Any] = {
    "label": {"center": True, "gain": True, "clip": 5.0, "max_abs": LABEL_LIMIT},
    "linear": {},
    "learning": {"rule": "krls-t", "noise": "auto", "forgetting": 0.999},
}
CLASSES: dict[str, Any] = {"learning": {"rule": "krls-t", "noise": 1.0, "forgetting": 0.9999}}
SMALL_NUMBERS: dict[str, Any] = NUMBERS | {
    "learning": {"rule": "qklms", "eta": 0.3, "quantisation": 1.0},
    "reduction": {"technique": "nt"},
}
SMALL_CLASSES: dict[str, Any] = {
    "learning": {"rule": "qklms", "eta": 0.2, "quantisation": 0.7},
    "reduction": {"technique": "nt"},
}
"""Where the ones above do not fit the target: no matrix, a tenth of the instructions."""
SMALL_WIDTH = 0.7
"""Of numbers: times ``width``."""
DEFAULT_BUDGET = 32
WHOLE_NUMBERS: dict[str, Any] = {
    "label": {"center": True, "gain": True},
    "linear": {},
    "learning": {"rule": "qklms", "eta": 0.2, "quantisation": 1.0},
    "reduction": {"technique": "nt"},
}
WHOLE_CLASSES: dict[str, Any] = {
    "learning": {"rule": "qklms", "eta": 0.2, "quantisation": 0.7},
    "reduction": {"technique": "nt"},
}
WHOLE_WIDTH = 0.5
RANGE = 3.0
"""Of whole numbers: a range is taken for so many standard deviations on either side of the center."""
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
    if _is(content.get("precision"), "int16"):
        return _whole(content)
    alarms, classes = content.get("novelty") is not None, _section(content, "label").get("classes") is not None
    small = not alarms and not fits(content)
    if alarms:
        made = dict(ALARMS)
        budget = _section(content, "reduction").get("n_max")
        if isinstance(budget, int) and 0 < budget < ALARMS["learning"]["features"]:
            made["learning"] = ALARMS["learning"] | {"features": budget}
    elif classes:
        made = dict(SMALL_CLASSES if small else CLASSES)
    else:
        made = dict(SMALL_NUMBERS if small else NUMBERS)
    input, kernel = _section(content, "input"), _section(content, "kernel")
    own_unit = any(kernel.get(key) is not None for key in ("sigma", "gamma"))
    if input.get("standardise", not own_unit) is True:
        made["input"] = {"standardise": True, "clip": ALARM_CLIP if alarms else STAGED_CLIP, "max_abs": INPUT_LIMIT}
        if not own_unit and _is(kernel.get("function", "gaussian"), "gaussian") and (dim := _dim(input)):
            sigma = length(dim) if alarms else width(dim) * (SMALL_WIDTH if small and not classes else 1.0)
            made["kernel"] = {"sigma": float(f"{sigma:.4g}")}
    else:
        made.pop("linear", None)
    return {**content, **{name: _over(made[name], content.get(name)) for name in made}}


def _whole(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """In whole numbers: no matrix, and inputs in a quarter of their range, which stands for a standard deviation."""
    classes = _section(content, "label").get("classes") is not None
    made: dict[str, Any] = dict(WHOLE_CLASSES if classes else WHOLE_NUMBERS)
    input, kernel = _section(content, "input"), _section(content, "kernel")
    ranges = input.get("max_abs")
    given = list(ranges) if isinstance(ranges, (list, tuple)) else [ranges] * min(_dim(input), DIM_LIMIT)
    known = [value for value in given if isinstance(value, (int, float)) and 0 < value < math.inf]
    if given and len(known) == len(given):
        if "scale" not in input and not any(kernel.get(key) is not None for key in ("sigma", "gamma")):
            made["input"] = {"scale": [float(f"{RANGE / value:.6g}") for value in known]}
    if _is(kernel.get("function", "gaussian"), "gaussian") and not any(
        kernel.get(key) is not None for key in ("sigma", "gamma")
    ):
        made["kernel"] = {"sigma": float(f"{WHOLE_WIDTH * math.sqrt(max(1, _dim(input))):.4g}")}
    return {**content, **{name: _over(made[name], content.get(name)) for name in made}}


def fits(content: Mapping[str, Any]) -> bool:
    """Whether the spec's target has the RAM and the instructions that krls-t within its stages takes."""
    target, label = _section(content, "target"), _section(content, "label")
    named = [len(given) for key in ("columns", "classes") if isinstance(given := label.get(key), (list, tuple))]
    given, classes = named[0] if named else label.get("outputs"), label.get("classes") is not None
    outputs = given if isinstance(given, int) else 1
    if outputs == 2 and classes:
        outputs = 1  # one function tells two classes apart
    n, d = _budget(content), _dim(_section(content, "input"))
    wide = _is(content.get("precision"), "float64")
    ram, instructions, name = (target.get(key) for key in ("ram", "instructions", "name"))
    fpu = fpu_of(name) if isinstance(name, str) and name in CPUS else "single"
    soft = fpu == "none" or (wide and fpu == "single")
    return not (
        (isinstance(ram, int) and ram_bytes(n, d, outputs, 8 if wide else 4, classes) > ram)
        or (isinstance(instructions, int) and update_instructions(n, soft) > instructions)
    )


def ram_bytes(n: int, d: int, o: int, size: int = 4, classes: bool = False) -> int:
    """RAM of krls-t within its stages, for n vectors, d inputs, o functions and numbers of that size."""
    stages = 0 if classes else d * o + 8 * o + 5
    return size * (2 * n * n + n * (d + 2 * o + 6) + 4 * d + 3 * o + 16 + stages)


def update_instructions(n: int, soft: bool) -> int:
    """About the most expensive update of krls-t within its stages, n vectors; soft: without a floating-point unit.

    Measured for 8 to 64 vectors on cortex-m4f and cortex-m0plus (docs/data/default-cost.csv): within a quarter.
    """
    return (88 * n * n + 300 * n) * (30 if soft else 1)


def _budget(content: Mapping[str, Any]) -> int:
    given = _section(content, "reduction").get("n_max", DEFAULT_BUDGET)
    return given if isinstance(given, int) and given > 0 else DEFAULT_BUDGET


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = content.get(name)
    return given if isinstance(given, Mapping) else {}


def _over(default: Mapping[str, Any], given: Any) -> Any:
    """The default below what is given; what is no section stays, and is refused later."""
    if given is None:
        return dict(default)
    return {**default, **given} if isinstance(given, Mapping) else given


def _is(value: Any, word: str) -> bool:
    """Whether a value that may be anything is a word."""
    return isinstance(value, str) and value == word


def _dim(input: Mapping[str, Any]) -> int:
    """How many inputs there are, 0 if the spec does not say it as it should."""
    columns, dim = input.get("columns"), input.get("dim")
    if columns is not None:
        return len(columns) if isinstance(columns, (list, tuple)) else 0
    return dim if isinstance(dim, int) and 0 < dim <= DIM_LIMIT else 0
