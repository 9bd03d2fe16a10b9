"""Defaults for a spec that names no rule.  benchmarks/host/first_results.py measures these defaults on many raw
streams.

If the spec names a rule, the rule learns as in its paper, and nothing is added.  If the spec names no rule, it gets a
model that learns well from raw data: inputs in running standard deviations, a kernel whose width is the typical length
of a sample, and, for labels that are numbers, the stages of ``algorithms/stages.py``.  Keys that the spec gives are not
changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from pykernel.spec.sections import CPUS, DIM_LIMIT, fpu_of

STAGED_CLIP = 3.0
"""Limit of standardised inputs, in standard deviations."""
INPUT_LIMIT, LABEL_LIMIT = 1e12, 1e9
"""Limits of raw inputs and labels.  They may be this large, because the model computes with standardised inputs and
with labels in units of their limit."""
NUMBERS: dict[str, Any] = {"label": {"center": True, "gain": True, "clip": 5.0, "max_abs": LABEL_LIMIT}, "linear": {}}
"""Stages of labels that are numbers."""


FEATURES = {"spectrum-ekf": 4, "spectrum-nlms": 8, "spectrum-softmax": 16}
BLOCK = 4
"""What rules that are named have; of a block the largest divisor of the features up to this."""


class Waves(NamedTuple):
    """A sparse spectrum with learned frequencies."""

    rule: str
    features: int
    block: int  # frequencies that share a covariance; 0: they learn by the gradient, without one
    mixed: bool  # whether a linear expert stands beside them

    @property
    def of_classes(self) -> bool:
        return self.rule == "spectrum-softmax"

    @property
    def width(self) -> float:
        """Factor of ``width``."""
        return 1.2 if self.block else 1.0

    @property
    def sections(self) -> dict[str, Any]:
        learning: dict[str, Any] = {"rule": self.rule}
        if self.features != FEATURES[self.rule]:
            learning["features"] = self.features
        if self.block not in (0, BLOCK):
            learning["block"] = self.block
        stages = {} if self.of_classes else NUMBERS
        return stages | {"learning": learning} | ({"mixture": {}} if self.mixed else {})

    def ram_bytes(self, d: int, o: int, size: int = 4) -> int:
        """Bytes of RAM with the stages, for d inputs, o functions and numbers of ``size`` bytes.  Exact for float32."""
        m, block = self.features, self.block * (d + 2)
        matrices = m // self.block * (block * (block + 1) // 2 + 2 * block) if self.block else 2 * m
        stages = 4 * d + o * (d + 4) + 6 if self.of_classes else 7 * d + o * (d + 12) + 8
        pairs, judged = (d + 1) * (d + 2) // 2, o + 5 if self.of_classes else 2
        expert = pairs + 3 * d + o * (d + 5) + judged if self.mixed else 0
        return size * (m * (d + 2 * o) + matrices + stages + expert)

    def instructions(self, d: int, o: int, soft: bool) -> int:
        """Approximate instructions of the most expensive update with the stages: of numbers, one with an outlying input.

        soft: without a floating-point unit.

        Measured on cortex-m4f and cortex-m0plus (docs/data/default-cost.csv): within a quarter.
        """
        m, block = self.features, self.block * (d + 2)
        expert = 14 * (d + 1) * (d + 2) + o * 60 * (d + 1) if self.mixed else 0
        if self.of_classes:
            return (m * (60 + 33 * d + 55 * o) + 400 * o + expert) * (31 if soft else 1)
        rule = o * (m // self.block) * (10 * block * block + 60 * block) if self.block else o * m * (24 * d + 40)
        twice = 2 * m * (100 + 5 * d)  # what the model answers with both choices for an outlying input
        return (rule + twice + 150 * m + 100 * d + expert + 500 * o) * (34 if soft else 1)


WAVES = (
    *(Waves("spectrum-ekf", *each, True) for each in ((8, 8), (4, 4), (4, 2))),
    *(Waves("spectrum-nlms", features, 0, True) for features in (16, 8)),
    Waves("spectrum-nlms", 8, 0, False),
)
"""For labels that are numbers: the first of these that fits the target, else the last one.  Measured by
benchmarks/host/spectrum_front.py."""
CLASS_WAVES = (
    *(Waves("spectrum-softmax", features, 0, True) for features in (32, 16, 8, 4)),
    Waves("spectrum-softmax", 4, 0, False),
)
"""The same for classes, measured by benchmarks/host/class_front.py."""
COMMON_RAM = 8192
"""For a spec without limits: the first but one that fits so many bytes.  The first takes more than it gives: for numbers three times
the memory and the time for an error a twentieth smaller, for classes twice the time for a fiftieth.  Who has both says so in [target]."""
STORED: dict[str, tuple[str, ...]] = {"reduction": (), "input": ("center", "scale")}
CLASSES_STORED = STORED | {"learning": ("noise", "forgetting", "rho", "step_limit", "quantisation")}
"""What waves do not have, and rules that store vectors have: a section's keys, or without keys the section.  Neither have waves
another kernel than the Gaussian one."""
KERNEL_NUMBERS: dict[str, Any] = NUMBERS | {"learning": {"rule": "krls-t", "noise": "auto", "forgetting": 0.999}}
KERNEL_CLASSES: dict[str, Any] = {"learning": {"rule": "krls-t", "noise": 1.0, "forgetting": 0.9999}}
"""In the place of waves where a spec names what they do not have, such as a budget or another kernel."""
SMALL_NUMBERS: dict[str, Any] = NUMBERS | {
    "learning": {"rule": "qklms", "eta": 0.3, "quantisation": 1.0},
    "reduction": {"technique": "nt"},
}
SMALL_CLASSES: dict[str, Any] = {
    "learning": {"rule": "qklms", "eta": 0.2, "quantisation": 0.7},
    "reduction": {"technique": "nt"},
}
"""SMALL_NUMBERS and SMALL_CLASSES replace KERNEL_NUMBERS and KERNEL_CLASSES if these do not fit the target: they need no matrix, and
a tenth of the instructions."""
KERNEL_RULES = {
    (False, False): KERNEL_NUMBERS,
    (False, True): KERNEL_CLASSES,
    (True, False): SMALL_NUMBERS,
    (True, True): SMALL_CLASSES,
}
"""(small, classes) -> the default."""
SMALL_WIDTH = 0.7
"""Factor of ``width`` for SMALL_NUMBERS."""
DEFAULT_BUDGET = 32
WHOLE_STORED: dict[str, tuple[str, ...]] = {"reduction": (), "learning": ("rho", "step_limit", "quantisation")}
"""The same for models of integers, whose waves have a center and a scale."""
WHOLE_STAGES: dict[str, Any] = {"label": {"center": True, "gain": True}, "linear": {}}
"""Stages of labels that are numbers, for models of integers."""
WHOLE_WAVES: dict[str, Any] = {"learning": {"rule": "spectrum-nlms"}}
"""Measured by benchmarks/host/spectrum_whole.py."""
WHOLE_VECTORS: dict[str, Any] = {
    "learning": {"rule": "qklms", "eta": 0.2, "quantisation": 1.0},
    "reduction": {"technique": "nt"},
}
"""In the place of waves of integers where a spec names what they do not have; of classes, SMALL_CLASSES."""
WHOLE_WIDTH = 0.5
"""Factor of ``length`` for vectors of integers."""
RANGE = 3.0
"""For models of integers: the range of an input is assumed to be this number of standard deviations on each side of the
center."""
MONITOR: dict[str, Any] = {"learning": {"rule": "gmm"}}
"""Measured by benchmarks/host/alarms."""
MONITOR_COMPONENTS = (4, 3, 2)
"""How many Gaussians there are: the first number that fits the target, else the last one."""
MONITOR_STORED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("kernel", "subspace", "reduction", "label", "linear", "mixture", "interval"), ()),
    "input": ("standardise", "clip", "center", "scale", "warmup", "horizon", "outliers"),
    "learning": ("features", "ridge", "forgetting", "eta"),
    "novelty": ("threshold",),
}
"""What a bank of Gaussians does not have: a section's keys, or without keys the section."""
ALARMS: dict[str, Any] = {
    "learning": {"rule": "okfeb", "features": 12},
    "novelty": {"smoothing": 0.5, "relearn_after": 10},
}
"""In its place where a spec names what a bank of Gaussians does not have."""
ALARM_CLIP = 6.0
"""Limit of standardised inputs for alarms, in standard deviations.  It is larger than STAGED_CLIP, so that outliers
stay visible."""


def length(dim: int) -> float:
    """The length of a sample whose inputs are in standard deviations, sqrt(D): sigma for alarms."""
    return float(f"{math.sqrt(dim):.4g}")


def width(dim: int) -> float:
    """sigma for models with labels and inputs in standard deviations: the length of a sample, and less if D is below
    6.
    """
    return float(f"{min(1.0, 0.4 + 0.1 * dim) * math.sqrt(dim):.4g}")


def completed(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """The content of a spec.  If it names no rule, the default rule and the rule's keys are added."""
    learning = content.get("learning", {})
    if not isinstance(learning, Mapping) or "rule" in learning:
        return content
    # monitors are of reals only; what a spec of one in int16 is told, names the monitor's rule
    whole = _is(content.get("precision"), "int16") and content.get("novelty") is None
    made = _whole(content) if whole else _real(content)
    return {**content, **{name: _over(made[name], content.get(name)) for name in made}}


def _real(content: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults for models of reals."""
    input, kernel = _section(content, "input"), _section(content, "kernel")
    alarms, classes = content.get("novelty") is not None, _has_classes(content)
    if alarms and not _names_any(content, MONITOR_STORED):
        return _monitor(content)
    waves = None if alarms or not _takes_waves(content) else waves_of(content)
    small = not alarms and waves is None and not fits(content)
    made = dict(ALARMS if alarms else waves.sections if waves is not None else KERNEL_RULES[small, classes])
    budget = _section(content, "reduction").get("n_max")
    if alarms and isinstance(budget, int) and 0 < budget < ALARMS["learning"]["features"]:
        made["learning"] = ALARMS["learning"] | {"features": budget}
    if input.get("standardise", not _has_width(kernel)) is not True:
        made.pop("linear", None)
        made.pop("mixture", None)
        return made
    made["input"] = {"standardise": True, "clip": ALARM_CLIP if alarms else STAGED_CLIP, "max_abs": INPUT_LIMIT}
    factor = SMALL_WIDTH if small and not classes else 1.0
    if waves is not None:
        factor = waves.width
        if not classes:
            made["input"]["outliers"] = "hold"
    if dim := _dim(input):
        made |= _width(kernel, length(dim) if alarms else width(dim) * factor)
    return made


def _monitor(content: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults for a monitor: the largest bank of Gaussians that fits the target."""
    made = MONITOR | {"input": {"max_abs": INPUT_LIMIT}}
    ram, dim = _section(content, "target").get("ram"), _dim(_section(content, "input"))
    if isinstance(ram, int):
        size = 8 if _is(content.get("precision"), "float64") else 4
        fitting = [k for k in MONITOR_COMPONENTS if monitor_bytes(k, dim, size) <= ram]
        made["learning"] = MONITOR["learning"] | {"components": (fitting or MONITOR_COMPONENTS[-1:])[0]}
    return made


def monitor_bytes(k: int, d: int, size: int = 4) -> int:
    """Bytes of RAM of a monitor with k Gaussians, for d inputs and numbers of ``size`` bytes.  Exact."""
    triangle = d * (d + 1) // 2
    # of the bank, the course, the blame, the threshold, what surrounds the rule, and the work: numbers, and bytes of counts
    parts = (
        ((k + 1) * (triangle + d + 1), 2 * (k + 3) + k + 3),
        (d * (2 * d + 5) + 4, 4 + 2 * (d + 3)),
        (2 * d + 3, 6),
        (4, 7),
        (0, 4),
        (triangle + 11 * d + 7, 12),
    )
    return sum(size * (numbers + -(-counts // size)) for numbers, counts in parts)


def _names_any(content: Mapping[str, Any], stored: Mapping[str, tuple[str, ...]]) -> bool:
    """Whether the spec has one of these keys, or one of the sections without keys."""
    for name, keys in stored.items():
        given = _section(content, name)
        if any(given.get(key) is not None for key in keys) or (not keys and content.get(name) is not None):
            return True
    return False


def _takes_waves(content: Mapping[str, Any]) -> bool:
    """Whether the spec names nothing that waves do not have."""
    whole = _is(content.get("precision"), "int16")
    stored = WHOLE_STORED if whole else CLASSES_STORED if _has_classes(content) else STORED
    if _names_any(content, stored):
        return False
    return _is(_section(content, "kernel").get("function", "gaussian"), "gaussian")


def waves_of(content: Mapping[str, Any]) -> Waves:
    """The best waves that fit the target."""
    target, d, o = _section(content, "target"), _dim(_section(content, "input")), _outputs(content)
    size, soft = 8 if _is(content.get("precision"), "float64") else 4, _soft(content)
    every = CLASS_WAVES if _has_classes(content) else WAVES
    ram, instructions = target.get("ram"), target.get("instructions")
    if not isinstance(ram, int) and not isinstance(instructions, int):
        ram, every = COMMON_RAM, every[1:]
    for waves in every:
        if isinstance(ram, int) and waves.ram_bytes(d, o, size) > ram:
            continue
        if isinstance(instructions, int) and waves.instructions(d, o, soft) > instructions:
            continue
        return waves
    return every[-1]


def _whole(content: Mapping[str, Any]) -> dict[str, Any]:
    """Defaults for models of integers: rules without a matrix.

    A fixed part of an input's range takes the place of the standard deviation.
    """
    input, kernel = _section(content, "input"), _section(content, "kernel")
    ranges = input.get("max_abs")
    given = list(ranges) if isinstance(ranges, (list, tuple)) else [ranges] * min(_dim(input), DIM_LIMIT)
    known = [value for value in given if isinstance(value, (int, float)) and 0 < value < math.inf]
    classes, waves = _has_classes(content), _takes_waves(content)
    made = WHOLE_WAVES if waves else SMALL_CLASSES if classes else WHOLE_VECTORS
    made = made if classes else WHOLE_STAGES | made
    if given and len(known) == len(given) and scales_by_range(content):
        made = made | {"input": {"scale": [float(f"{RANGE / value:.6g}") for value in known]}}
    dim = max(1, _dim(input))
    return made | _width(kernel, width(dim) if waves else WHOLE_WIDTH * math.sqrt(dim))


def scales_by_range(content: Mapping[str, Any]) -> bool:
    """Of models of integers: whether a part of an input's range stands for its deviation.  So it is where the spec gives no rule, no
    scale and no width.
    """
    given = _section(content, "input").get("scale") is not None or _has_width(_section(content, "kernel"))
    return "rule" not in _section(content, "learning") and not given


def _has_width(kernel: Mapping[str, Any]) -> bool:
    return any(kernel.get(key) is not None for key in ("sigma", "gamma"))


def _width(kernel: Mapping[str, Any], sigma: float) -> dict[str, Any]:
    """The section [kernel] of a Gaussian kernel without a width; else nothing."""
    lacks = _is(kernel.get("function", "gaussian"), "gaussian") and not _has_width(kernel)
    return {"kernel": {"sigma": float(f"{sigma:.4g}")}} if lacks else {}


def fits(content: Mapping[str, Any]) -> bool:
    """Whether the spec's target has enough RAM and instructions for krls-t with its stages."""
    target, classes = _section(content, "target"), _has_classes(content)
    n, d = _budget(content), _dim(_section(content, "input"))
    size = 8 if _is(content.get("precision"), "float64") else 4
    ram, instructions = target.get("ram"), target.get("instructions")
    return not (
        (isinstance(ram, int) and ram_bytes(n, d, _outputs(content), size, classes) > ram)
        or (isinstance(instructions, int) and update_instructions(n, _soft(content)) > instructions)
    )


def _has_classes(content: Mapping[str, Any]) -> bool:
    return _section(content, "label").get("classes") is not None


def _outputs(content: Mapping[str, Any]) -> int:
    """How many functions the model has."""
    label = _section(content, "label")
    named = [len(given) for key in ("columns", "classes") if isinstance(given := label.get(key), (list, tuple))]
    given = named[0] if named else label.get("outputs")
    outputs = given if isinstance(given, int) else 1
    return 1 if outputs == 2 and _has_classes(content) else outputs  # one function separates two classes


def _soft(content: Mapping[str, Any]) -> bool:
    """Whether the target computes the spec's numbers without a floating-point unit."""
    name = _section(content, "target").get("name")
    fpu = fpu_of(name) if isinstance(name, str) and name in CPUS else "single"
    return fpu == "none" or (fpu == "single" and _is(content.get("precision"), "float64"))


def ram_bytes(n: int, d: int, o: int, size: int = 4, classes: bool = False) -> int:
    """Bytes of RAM of krls-t with its stages, for n vectors, d inputs, o functions and numbers of ``size`` bytes."""
    stages = 0 if classes else d * o + 8 * o + 5
    return size * ((n + 1) * (n + 2 + o) + n * (d + 2 * o + 8) + 4 * d + 3 * o + 15 + stages)


def update_instructions(n: int, soft: bool) -> int:
    """Approximate instructions of the most expensive update of krls-t with its stages, for n vectors.

    soft: without a floating-point unit.

    Measured for 8 to 64 vectors on cortex-m4f and cortex-m0plus (docs/data/default-cost.csv): within a quarter.
    """
    return (30 * n * n + 540 * n) * (41 if soft else 1)


def _budget(content: Mapping[str, Any]) -> int:
    given = _section(content, "reduction").get("n_max", DEFAULT_BUDGET)
    return given if isinstance(given, int) and given > 0 else DEFAULT_BUDGET


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    given = content.get(name)
    return given if isinstance(given, Mapping) else {}


def _over(default: Mapping[str, Any], given: Any) -> Any:
    """The given section, with defaults for the keys that it lacks.

    A value that is not a section stays, and is refused later.
    """
    if given is None:
        return dict(default)
    return {**default, **given} if isinstance(given, Mapping) else given


def _is(value: Any, word: str) -> bool:
    """Whether a value of any type equals a word."""
    return isinstance(value, str) and value == word


def _dim(input: Mapping[str, Any]) -> int:
    """The number of inputs; 0 if the spec does not give it correctly."""
    columns, dim = input.get("columns"), input.get("dim")
    if columns is not None:
        return len(columns) if isinstance(columns, (list, tuple)) else 0
    return dim if isinstance(dim, int) and 0 < dim <= DIM_LIMIT else 0
