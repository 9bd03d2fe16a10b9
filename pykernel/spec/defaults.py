"""Defaults for a spec that names no rule.  benchmarks/host/first_results.py measures these defaults on many raw
streams.

If the spec names a rule, the rule learns as in its paper, and nothing is added.  If the spec names no rule, it gets a
row of ``RECIPES``: a model that learns well from raw data, with inputs in running standard deviations, a kernel whose width is the
typical length of a sample, and, for labels that are numbers, the stages of ``algorithms/stages.py``.  Keys that the spec gives are not
changed.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from pykernel.spec.sections import CPUS, DIM_LIMIT, fpu_of

Content = Mapping[str, Any]
Sections = dict[str, dict[str, Any]]
STAGED_CLIP = 3.0
"""Limit of standardised inputs, in standard deviations."""
ALARM_CLIP = 6.0
"""The same for alarms.  It is larger than STAGED_CLIP, so that outliers stay visible."""
INPUT_LIMIT, LABEL_LIMIT = 1e12, 1e9
"""Limits of raw inputs and labels.  They may be this large, because the model computes with standardised inputs and
with labels in units of their limit."""
STANDARDISED: Sections = {"input": {"standardise": True, "clip": STAGED_CLIP, "max_abs": INPUT_LIMIT}}
"""Inputs in running standard deviations."""
NUMBERS: Sections = {"label": {"center": True, "gain": True, "clip": 5.0, "max_abs": LABEL_LIMIT}, "linear": {}}
"""Stages of labels that are numbers."""
INT16_NUMBERS: Sections = {"label": {"center": True, "gain": True}, "linear": {}}
"""The same for models of integers."""
FEATURES = {"spectrum-ekf": 4, "spectrum-nlms": 8, "spectrum-softmax": 16}
BLOCK = 4
"""What rules that are named have; of a block the largest divisor of the features up to this."""
DEFAULT_BUDGET = 32
COMMON_RAM = 8192
"""What a spec without limits is assumed to have for waves, and none of it for the largest.  That one takes more than it gives: for numbers
three times the memory and the time for an error a twentieth smaller, for classes twice the time for a fiftieth.  Who has both says so in
[target]."""
RANGE = 3.0
"""For models of integers: the range of an input is assumed to be this number of standard deviations on each side of the
center."""
INT16_WIDTH = 0.5
"""Factor of ``length`` for vectors of integers."""


# ------------------------------------------------------------------------------------------------- what a recipe costs


class Size(NamedTuple):
    """What decides a model's cost: inputs, functions, vectors, bytes of a number, whether there is no floating-point unit."""

    d: int
    o: int = 1
    n: int = DEFAULT_BUDGET
    number: int = 4
    soft: bool = False


Cost = tuple[int, int]
"""Bytes of RAM with the stages, and approximately the instructions of the most expensive update.  Instructions are measured on cortex-m4f
and cortex-m0plus (docs/data/default-cost.csv): within a quarter."""


def waves_cost(at: Size, sections: Sections) -> Cost:
    """Of numbers, the update has an outlying input.  Bytes are exact for float32."""
    (d, o, _, number, soft), learning, mixed = at, sections["learning"], "mixture" in sections
    m, classes = learning.get("features", FEATURES[learning["rule"]]), "label" not in sections
    each = learning.get("block", BLOCK) if learning["rule"] == "spectrum-ekf" else 0  # waves that share a covariance
    block, pairs = each * (d + 2), (d + 1) * (d + 2) // 2
    matrices = m // each * (block * (block + 1) // 2 + 2 * block) if each else 2 * m
    stages = 4 * d + o * (d + 4) + 6 if classes else 7 * d + o * (d + 12) + 8
    expert = pairs + 3 * d + o * (d + 5) + (o + 5 if classes else 2) if mixed else 0
    taken = number * (m * (d + 2 * o) + matrices + stages + expert)
    judged = 28 * pairs + o * 60 * (d + 1) if mixed else 0
    if classes:
        return taken, (m * (60 + 33 * d + 55 * o) + 400 * o + judged) * (31 if soft else 1)
    rule = o * (m // each) * (10 * block * block + 60 * block) if each else o * m * (24 * d + 40)
    twice = 2 * m * (100 + 5 * d)  # what the model answers with both choices for an outlying input
    return taken, (rule + twice + 150 * m + 100 * d + judged + 500 * o) * (34 if soft else 1)


def vectors_cost(at: Size, sections: Sections) -> Cost:
    """Of krls-t; measured for 8 to 64 vectors."""
    d, o, n, number, soft = at
    stages = d * o + 8 * o + 5 if "label" in sections else 0
    taken = number * ((n + 1) * (n + 2 + o) + n * (d + 2 * o + 8) + 4 * d + 3 * o + 15 + stages)
    return taken, (30 * n * n + 540 * n) * (41 if soft else 1)


def bank_cost(at: Size, sections: Sections) -> Cost:
    """Of a monitor.  Bytes are exact; the time is not limited."""
    d, k = at.d, sections["learning"].get("components", 4)
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
    return sum(at.number * (numbers + -(-counts // at.number)) for numbers, counts in parts), 0


def length(dim: int) -> float:
    """The length of a sample whose inputs are in standard deviations, sqrt(D): sigma for alarms."""
    return float(f"{math.sqrt(dim):.4g}")


def width(dim: int) -> float:
    """sigma for models with labels and inputs in standard deviations: the length of a sample, and less if D is below
    6.
    """
    return float(f"{min(1.0, 0.4 + 0.1 * dim) * math.sqrt(dim):.4g}")


def _int16_sigma(dim: int) -> float:
    return INT16_WIDTH * math.sqrt(dim)


# ------------------------------------------------------------------------------------------------------------ the table


class Lack(NamedTuple):
    """What a recipe does not have: a section, or a key of it, or any other word of a key."""

    section: str
    key: str | None = None
    but: str | None = None

    def __str__(self) -> str:
        return f"[{self.section}]{f' {self.key}' if self.key else ''}"

    def named_by(self, content: Content) -> bool:
        given = _section(content, self.section).get(self.key) if self.key else content.get(self.section)
        return given is not None and _word(given) != self.but


def named(content: Content, keys: Iterable[Lack]) -> list[Lack]:
    """Those of the keys that the spec has."""
    return [key for key in keys if key.named_by(content)]


def _lacks(section: str, *keys: str) -> tuple[Lack, ...]:
    return tuple(Lack(section, key) for key in keys)


@dataclass(frozen=True, eq=False)
class Recipe:
    """What a spec without a rule may get.

    lacks: who names any of it gets a later recipe.  sigma: of D inputs.  unlimited: the bytes that it may take where the spec has no limits.
    """

    task: Literal["number", "class", "monitor"]
    sections: Sections
    sigma: Callable[[int], float] | None
    lacks: tuple[Lack, ...] = ()
    cost: Callable[[Size, Sections], Cost] = lambda *_: (0, 0)
    unlimited: float = math.inf
    int16: bool = False

    @property
    def rule(self) -> str:
        return str(self.sections["learning"]["rule"])

    def costs(self, at: Size) -> Cost:
        return self.cost(at, self.sections)

    def fits(self, content: Content) -> bool:
        """Whether the recipe is within the spec's limits."""
        target, (taken, steps) = _section(content, "target"), self.costs(size_of(content))
        limits = {key: target[key] for key in ("ram", "instructions") if isinstance(target.get(key), int)}
        most = limits.get("ram", math.inf) if limits else self.unlimited
        return taken <= most and steps <= limits.get("instructions", math.inf)


LIMITS, WIDTHS = _lacks("target", "ram", "instructions"), _lacks("kernel", "sigma", "gamma")
WATCHED, CLASSES = (Lack("novelty"),), _lacks("label", "classes")
OTHER_KERNEL = Lack("kernel", "function", "gaussian")
NO_VECTORS = (Lack("reduction"), *_lacks("input", "center", "scale"), OTHER_KERNEL)
"""What waves do not have, and rules that store vectors have."""
NO_CLASS_VECTORS = NO_VECTORS + _lacks("learning", "noise", "forgetting", "rho", "step_limit", "quantisation")
NO_INT16_VECTORS = (Lack("reduction"), *_lacks("learning", "rho", "step_limit", "quantisation"), OTHER_KERNEL)
"""Waves of integers have a center and a scale."""
NO_SUBSPACE = (
    *map(Lack, ("kernel", "subspace", "reduction", "label", "linear", "mixture", "interval")),
    *_lacks("input", "standardise", "clip", "center", "scale", "warmup", "horizon", "outliers"),
    *_lacks("learning", "features", "ridge", "forgetting", "eta"),
    Lack("novelty", "threshold"),
)
"""What a bank of Gaussians does not have."""


def _learning(rule: str, **keys: Any) -> Sections:
    return {"learning": {"rule": rule, **keys}}


def _qklms(eta: float, quantisation: float) -> Sections:
    return _learning("qklms", eta=eta, quantisation=quantisation) | {"reduction": {"technique": "nt"}}


def _wide(factor: float) -> Callable[[int], float]:
    return lambda dim: width(dim) * factor


HELD: Sections = {"input": STANDARDISED["input"] | {"outliers": "hold"}} | NUMBERS
EKF, NLMS, SOFTMAX = (functools.partial(_learning, rule) for rule in FEATURES)
MIXED: Sections = {"mixture": {}}
RECIPES = (
    # measured by benchmarks/host/spectrum_front.py
    *(
        Recipe("number", HELD | waves, _wide(wide), NO_VECTORS, waves_cost, ram)
        for waves, wide, ram in (
            (MIXED | EKF(features=8, block=8), 1.2, 0),
            (MIXED | EKF(), 1.2, COMMON_RAM),
            (MIXED | EKF(block=2), 1.2, COMMON_RAM),
            (MIXED | NLMS(features=16), 1.0, COMMON_RAM),
            (MIXED | NLMS(), 1.0, COMMON_RAM),
            (NLMS(), 1.0, COMMON_RAM),
        )
    ),
    Recipe("number", STANDARDISED | NUMBERS | _learning("krls-t", noise="auto", forgetting=0.999), width, (), vectors_cost),
    Recipe("number", STANDARDISED | NUMBERS | _qklms(0.3, 1.0), _wide(0.7)),  # without a matrix
    # measured by benchmarks/host/class_front.py
    *(
        Recipe("class", STANDARDISED | waves, width, NO_CLASS_VECTORS, waves_cost, ram)
        for waves, ram in (
            (MIXED | SOFTMAX(features=32), 0),
            (MIXED | SOFTMAX(), COMMON_RAM),
            (MIXED | SOFTMAX(features=8), COMMON_RAM),
            (MIXED | SOFTMAX(features=4), COMMON_RAM),
            (SOFTMAX(features=4), COMMON_RAM),
        )
    ),
    Recipe("class", STANDARDISED | _learning("krls-t", noise=1.0, forgetting=0.9999), width, (), vectors_cost),
    Recipe("class", STANDARDISED | _qklms(0.2, 0.7), width),
    # measured by benchmarks/host/alarms
    *(
        Recipe("monitor", {"input": {"max_abs": INPUT_LIMIT}} | _learning("gmm", **size), None, NO_SUBSPACE, bank_cost)
        for size in ({}, {"components": 3}, {"components": 2})
    ),
    Recipe("monitor", {
        "input": STANDARDISED["input"] | {"clip": ALARM_CLIP},
        "novelty": {"smoothing": 0.5, "relearn_after": 10},
    } | _learning("okfeb", features=12), length),
    # measured by benchmarks/host/spectrum_whole.py
    Recipe("number", INT16_NUMBERS | NLMS(), width, NO_INT16_VECTORS, int16=True),
    Recipe("number", INT16_NUMBERS | _qklms(0.2, 1.0), _int16_sigma, int16=True),
    Recipe("class", NLMS(), width, NO_INT16_VECTORS, int16=True),
    Recipe("class", _qklms(0.2, 0.7), _int16_sigma, int16=True),
)  # fmt: skip
"""Best first.  Of those with the same task and numbers, a spec gets the first that has what the spec names and fits its limits; where
none of these fits, the last one that lacks no more than the first."""


def groups(task: str, int16: bool) -> list[list[Recipe]]:
    """A task's recipes, those that lack the same together."""
    rows = (row for row in RECIPES if (row.task, row.int16) == (task, int16))
    return [list(alike) for _, alike in itertools.groupby(rows, key=lambda row: row.lacks)]


@dataclass(frozen=True)
class Chosen:
    """How a spec without a rule got one; without a rule here, the spec names its own.  It is no part of what the spec says: all are equal.

    stages: what stands around the rule.  because: the keys, or the limit, that chose the recipe; otherwise: what the spec gets without these.
    """

    rule: str = field(default="", compare=False)
    stages: tuple[str, ...] = field(default=(), compare=False)
    because: tuple[str, ...] = field(default=(), compare=False)
    otherwise: str | None = field(default=None, compare=False)

    @property
    def report(self) -> dict[str, Any] | None:
        """All of it, and a sentence; None if the spec names its rule."""
        stages = f" with {', '.join(self.stages)}" if self.stages else ""
        left = f", because of {', '.join(self.because)}; without that, it gets {self.otherwise}" if self.because else ""
        told = f"the spec names no rule and gets {self.rule}{stages}{left}"
        return asdict(self) | {"told": told} if self.rule else None


def recipe_of(content: Content) -> Recipe:
    """What the spec gets if it names no rule."""
    task = "monitor" if named(content, WATCHED) else "class" if named(content, CLASSES) else "number"
    # monitors are of reals only; what a spec of one in int16 is told, names the monitor's rule
    int16 = _word(content.get("precision")) == "int16" and task != "monitor"
    alike = next(rows for rows in groups(task, int16) if not named(content, rows[0].lacks))
    return next((row for row in alike if row.fits(content)), alike[-1])


def completed(content: Content) -> Content:
    """The content of a spec.  If it names no rule, the default rule and the rule's keys are added."""
    learning = content.get("learning", {})
    if not isinstance(learning, Mapping) or "rule" in learning:
        return content
    made = _made(recipe_of(content), content)
    return {**content, **{name: _over(made[name], content.get(name)) for name in made}}


def _made(recipe: Recipe, content: Content) -> Sections:
    """A recipe's sections for a spec."""
    input, made = _section(content, "input"), dict(recipe.sections)
    dim, budget, wide = _dim(input), _section(content, "reduction").get("n_max"), named(content, WIDTHS)
    if recipe.task == "monitor" and isinstance(budget, int) and 0 < budget < made["learning"]["features"]:
        made["learning"] = made["learning"] | {"features": budget}
    if recipe.int16:
        made |= _scaled(content)
        dim = max(1, dim)
    elif "standardise" in made["input"] and input.get("standardise", not wide) is not True:
        return {name: keys for name, keys in made.items() if name not in ("input", "linear", "mixture")}
    if recipe.sigma and dim and not named(content, (OTHER_KERNEL, *WIDTHS)):
        made["kernel"] = {"sigma": float(f"{recipe.sigma(dim):.4g}")}
    return made


def chosen(content: Content) -> Chosen:
    """How a spec that names no rule gets its rule."""
    found, full, plain, because = recipe_of(content), completed(content), content, list[str]()
    first = groups(found.task, found.int16)[0]
    for keys in (first[0].lacks, LIMITS):
        given = named(content, keys)
        limited = keys is LIMITS and found in first[2:]  # it is not the usual one, which is the first or the second
        if limited or recipe_of(_without(content, given)) is not found:
            because += map(str, given) if given else [f"the {COMMON_RAM:,} bytes that a spec without limits may take"]
            plain = _without(plain, given)
    other = recipe_of(plain)
    otherwise = _told((first[0] if other is found else other).sections) if because else None
    added = {
        key or f"[{name}]": full[name].get(key, value)
        for name, keys in _made(found, content).items()
        for key, value in (keys or {"": True}).items()
    }
    stages = tuple(key for key, value in added.items() if value is True)
    return Chosen(_told(full), stages, tuple(because), otherwise)


def _told(sections: Content) -> str:
    """The rule, and what other recipes with this rule have otherwise."""
    learning = sections["learning"]
    sizes = [f"{key} = {learning[key]}" for key in ("features", "block", "components") if key in learning]
    return ", ".join([str(learning["rule"]), *sizes])


def _without(content: Content, keys: Iterable[Lack]) -> Content:
    made = dict(content)
    for section, key, _ in keys:
        made[section] = {**made[section], key: None} if key else None
    return made


def size_of(content: Content) -> Size:
    precision, name = _word(content.get("precision")), _word(_section(content, "target").get("name"))
    n, wide = _section(content, "reduction").get("n_max"), precision == "float64"
    soft = (fpu_of(name) if name in CPUS else "single") in (("none", "single") if wide else ("none",))
    vectors = n if isinstance(n, int) and n > 0 else DEFAULT_BUDGET
    return Size(_dim(_section(content, "input")), _outputs(content), vectors, 8 if wide else 4, soft)


def _scaled(content: Content) -> Sections:
    """For models of integers: a fixed part of an input's range takes the place of the standard deviation."""
    input = _section(content, "input")
    ranges = input.get("max_abs")
    given = list(ranges) if isinstance(ranges, (list, tuple)) else [ranges] * min(_dim(input), DIM_LIMIT)
    known = [value for value in given if isinstance(value, (int, float)) and 0 < value < math.inf]
    scales = given and len(known) == len(given) and scales_by_range(content)
    return {"input": {"scale": [float(f"{RANGE / value:.6g}") for value in known]}} if scales else {}


def scales_by_range(content: Content) -> bool:
    """Of models of integers: whether a part of an input's range stands for its deviation.  So it is where the spec gives no rule, no
    scale and no width.
    """
    return not named(content, (*_lacks("learning", "rule"), *_lacks("input", "scale"), *WIDTHS))


def _outputs(content: Content) -> int:
    """How many functions the model has."""
    label = _section(content, "label")
    names = [len(given) for key in ("columns", "classes") if isinstance(given := label.get(key), (list, tuple))]
    given = [*names, label.get("outputs")][0]
    outputs = given if isinstance(given, int) else 1
    return 1 if outputs == 2 and named(content, CLASSES) else outputs  # one function separates two classes


def _section(content: Content, name: str) -> Content:
    given = content.get(name)
    return given if isinstance(given, Mapping) else {}


def _word(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _over(default: Content, given: Any) -> Any:
    """The given section, with defaults for the keys that it lacks.

    A value that is not a section stays, and is refused later.
    """
    if given is None:
        return dict(default)
    return {**default, **given} if isinstance(given, Mapping) else given


def _dim(input: Content) -> int:
    """The number of inputs; 0 if the spec does not give it correctly."""
    columns, dim = input.get("columns"), input.get("dim")
    if columns is not None:
        return len(columns) if isinstance(columns, (list, tuple)) else 0
    return dim if isinstance(dim, int) and 0 < dim <= DIM_LIMIT else 0
