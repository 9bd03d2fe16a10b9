"""Defaults for a spec that names no rule.  benchmarks/host/first_results.py measures these defaults on many raw
streams.

If the spec names a rule, no defaults are added: the rule learns as in its paper.  Otherwise, the spec gets the sections
of one recipe from recipes.toml, for a model that learns well from raw data.  A floating-point model that learns labels
standardises its inputs with running statistics, unless the spec gives the width of the kernel.  The default width is
comparable to the typical norm of a standardised sample.  If the labels are numbers, the model also has stages, as in
``algorithms/stages.py``.  Keys that the spec gives are not changed.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal, NamedTuple

import numpy as np

from pykernel.spec.sections import CPUS, DIM_LIMIT, Label, fpu_of

Content = Mapping[str, Any]
Sections = dict[str, dict[str, Any]]
FEATURES = {"spectrum-ekf": 4, "spectrum-nlms": 8, "spectrum-softmax": 16}
BLOCK = 4
"""Defaults for the rules with a sparse spectrum.  FEATURES: the number of features of each rule.  BLOCK: the largest
default block, where a block is the number of features that share a covariance matrix.  The default block is the largest
divisor of the number of features that is at most BLOCK."""
RANGE = 3.0
"""In integer models, the range of an input is assumed to be its center plus or minus this many standard deviations."""
DEFAULT_BUDGET = 32


# ------------------------------------------------------------------------------------------------- the cost of a recipe


class Size(NamedTuple):
    """The quantities that determine a model's cost: the numbers of inputs, of functions and of vectors; the bytes per
    number; and the cost of floating-point operations in software.
    """

    d: int
    o: int = 1
    n: int = DEFAULT_BUDGET
    number: int = 4
    soft: float = 0.0  # time of a float operation in software, relative to GCC's library; 0 if the FPU does it


OWN_FLOATS = {"cortex-m0plus": 0.5, "cortex-m3": 0.4}
"""CPU for which the generated code has its own float32 arithmetic (runtime_c/float_arm.S) -> the time of an operation,
relative to GCC's library on a Cortex-M0+."""
Cost = tuple[int, int]
"""Bytes of RAM, including the stages, and an estimate of the instructions in the most expensive update.  The estimate is within 25 % of the
instructions measured on cortex-m4f and cortex-m0plus (docs/data/default-cost.csv)."""


def waves_cost(at: Size, sections: Sections) -> Cost:
    """Cost of the spectrum rules.  For regression, the cost includes the treatment of an outlying input.  Bytes are exact for float32."""
    (d, o, _, number, soft), learning, mixed = at, sections["learning"], "mixture" in sections
    m, classes = learning.get("features", FEATURES[learning["rule"]]), "label" not in sections
    # number of features that share a covariance matrix
    each = learning.get("block", BLOCK) if learning["rule"] == "spectrum-ekf" else 0
    block = each * (d + 2)
    pairs = 5 * d + 29 if sections.get("mixture", {}).get("blocks") else (d + 1) * (d + 2) // 2
    matrices = m // each * (block * (block + 1) // 2 + 2 * block) if each else 2 * m
    stages = 4 * d + o * (d + 6) + 11 if classes else 7 * d + o * (d + 17) + 19
    expert = pairs + 3 * d + o * (d + 6) + (2 * o + 10 if classes else 3) if mixed else 2 * o if classes else 0
    taken = number * (m * (d + 2 * o) + matrices + stages + expert)
    judged = 28 * pairs + o * 60 * (d + 1) if mixed else 0
    if classes:
        polls = (2 if mixed else 1) * 400 * o  # with a mixture, the probabilities before the sample is learned, too
        return taken, round((m * (60 + 33 * d + 55 * o) + polls + judged) * max(1, 31 * soft))
    rule = o * (m // each) * (10 * block * block + 60 * block) if each else o * m * (24 * d + 40)
    twice = 2 * m * (100 + 5 * d)  # an outlying input is treated in two ways, with a prediction for each
    return taken, round((rule + twice + 150 * m + 100 * d + judged + 500 * o) * max(1, 34 * soft))


def whole_cost(at: Size, sections: Sections) -> Cost:
    """Cost of the int16 spectrum rules with stages.  Bytes are exact except for padding; instructions are those on cortex-m0plus."""
    (d, o, *_), learning = at, sections["learning"]
    m, stages = FEATURES[learning["rule"]], 4 * o * d + 48 * o + 2 * d + 54
    if learning["rule"] != "spectrum-ekf":
        return 2 * m * d + 8 * m * o + 4 * (o + m + 1) + stages, m * o * (50 * d + 400)
    each = learning.get("block", BLOCK) * (d + 2)
    pairs, numbers = m * (d + 2) * (each + 1) // 2, m * (d + 2)
    return 4 * (pairs + m * d + 2 * (m + 1) * o + m + 1) + 8 * numbers + stages, o * (25 * pairs + 500 * numbers)


def vectors_cost(at: Size, sections: Sections) -> Cost:
    """Cost of krls-t, from measurements with 8 to 64 vectors."""
    d, o, n, number, soft = at
    stages = d * o + 11 * o + 11 if "label" in sections else 2 * o
    taken = number * ((n + 1) * (n + 2 + o) + n * (d + 2 * o + 8) + 4 * d + 5 * o + 20 + stages)
    return taken, round((30 * n * n + (330 + 210 * o) * n) * max(1, 41 * soft))


def bank_cost(at: Size, sections: Sections) -> Cost:
    """Cost of a monitor.  Bytes are exact; the number of instructions is given as 0, so that a limit on instructions never excludes a monitor."""
    d, k = at.d, sections["learning"].get("components", 4)
    triangle = d * (d + 1) // 2
    # (numbers, bytes of counts) for each part: Bank, Course, Blame, the threshold, the frame around the rule, and the work memory
    parts = (
        ((k + 1) * (triangle + d + 1), 2 * (k + 3) + k + 4),
        (d * (2 * d + 5) + 4, 4 + 2 * (d + 3)),
        (2 * d + 3, 6),
        (4, 7) if sections.get("novelty", {}).get("life") == "changing" else (5, 11),
        (0, 4),
        (triangle + 9 * d + 7, 20),
    )
    return sum(at.number * (numbers + -(-counts // at.number)) for numbers, counts in parts), 0


def width(dim: int) -> float:
    """Return the default sigma for standardised inputs: the typical norm of a sample, sqrt(D), reduced by a factor if D < 6."""
    return float(f"{min(1.0, 0.4 + 0.1 * dim) * math.sqrt(dim):.4g}")


# ------------------------------------------------------------------------------------------------------------ the table


class Lack(NamedTuple):
    """Something that a recipe does not support: a section, one of its keys, or all values of a key except ``but``."""

    section: str
    key: str | None = None
    but: str | None = None

    def __str__(self) -> str:
        return f"[{self.section}]{f' {self.key}' if self.key else ''}"

    def named_by(self, content: Content) -> bool:
        given = _section(content, self.section).get(self.key) if self.key else content.get(self.section)
        return given is not None and _word(given) != self.but


def named(content: Content, keys: Iterable[Lack]) -> list[Lack]:
    """Return the items of ``keys`` that the spec contains."""
    return [key for key in keys if key.named_by(content)]


def _lacks(section: str, *keys: str) -> tuple[Lack, ...]:
    return tuple(Lack(section, key) for key in keys)


@dataclass(frozen=True, eq=False)
class Recipe:
    """A default for specs without a rule, read from a row of recipes.toml.  That file explains the fields."""

    sections: Sections
    lacks: tuple[Lack, ...]
    task: Literal["number", "class", "monitor"]
    int16: bool = False
    cost: str = ""
    width: float = 0.0
    length: float = 0.0
    unlimited: float = math.inf

    @property
    def rule(self) -> str:
        return str(self.sections["learning"]["rule"])

    def costs(self, at: Size) -> Cost:
        return COSTS[self.cost](at, self.sections) if self.cost else (0, 0)

    def sigma(self, dim: int) -> float:
        return float(f"{self.width * width(dim) + self.length * math.sqrt(dim):.4g}")

    def fits(self, content: Content) -> bool:
        """Return whether the cost of the recipe is within the spec's limits.

        If the spec has no limits, return whether the recipe takes at most ``unlimited`` bytes.
        """
        target, (taken, steps) = _section(content, "target"), self.costs(size_of(content))
        limits = {key: target[key] for key in ("ram", "instructions") if isinstance(target.get(key), int)}
        most = limits.get("ram", math.inf) if limits else self.unlimited
        return taken <= most and steps <= limits.get("instructions", math.inf)


def _read() -> Iterator[list[Recipe]]:
    for group in tomllib.loads(resources.files("pykernel.spec").joinpath("recipes.toml").read_text("utf-8"))["group"]:
        lacks = tuple(Lack(*words.split(".")) for words in group.pop("lacks", ()))
        rows = [(group | row).items() for row in group.pop("rows")]
        yield [
            Recipe(
                {k: v for k, v in row if isinstance(v, dict)},
                lacks,
                **{k: v for k, v in row if not isinstance(v, dict)},
            )
            for row in rows
        ]


LIMITS, WIDTHS = _lacks("target", "ram", "instructions"), _lacks("kernel", "sigma", "gamma")
WATCHED, CLASSES = (Lack("novelty"),), _lacks("label", "classes")
OTHER_KERNEL = Lack("kernel", "function", "gaussian")
COSTS = {"waves": waves_cost, "whole": whole_cost, "vectors": vectors_cost, "bank": bank_cost}
RECIPES = tuple(_read())
"""Groups of recipes.  All recipes in a group have the same ``lacks``."""


def round_limit(values: np.ndarray) -> float:
    """Return twice the largest magnitude, rounded up to 1, 2 or 5 times a power of 10."""
    most = 2 * max(float(np.abs(values[np.isfinite(values)]).max(initial=0.0)), 1e-6)
    decade = 10.0 ** math.floor(math.log10(most))
    return float(f"{next(decade * step for step in (1, 2, 5, 10) if decade * step >= most):.1g}")


def label_limit(labels: np.ndarray) -> dict[str, float]:
    """Return [label] max_abs for such labels as a dict, which is empty if the default limit of every rule is large enough."""
    limit = round_limit(labels)
    return {"max_abs": max(limit, LABEL_LIMIT)} if limit > Label.model_fields["max_abs"].default else {}


def groups(task: str, int16: bool) -> list[list[Recipe]]:
    """Return the groups of recipes for a task."""
    return [rows for rows in RECIPES if (rows[0].task, rows[0].int16) == (task, int16)]


STAGED = groups("number", False)[-1][0].sections
"""The sections of a default recipe for labels that are numbers, including the sections of the stages."""
INPUT_LIMIT, LABEL_LIMIT = (float(STAGED[section]["max_abs"]) for section in ("input", "label"))
"""Default limits of raw inputs and labels.  They can be this large because the model computes with standardised numbers."""


@dataclass(frozen=True)
class Chosen:
    """What ``chosen`` reports about a spec's default rule; None if the spec names a rule.  Comparisons of specs ignore the report."""

    report: dict[str, Any] | None = field(default=None, compare=False)


def recipe_of(content: Content) -> Recipe:
    """The recipe that the spec gets if it names no rule."""
    task = "monitor" if named(content, WATCHED) else "class" if named(content, CLASSES) else "number"
    # monitors exist only in floating point.  A monitor in int16 gets the floating-point recipe, too, so that the later
    # error message names the monitor's rule
    int16 = _word(content.get("precision")) == "int16" and task != "monitor"
    alike = next(rows for rows in groups(task, int16) if not named(content, rows[0].lacks))
    return next((row for row in alike if row.fits(content)), alike[-1])


def completed(content: Content) -> Content:
    """Return the content of a spec.  If it names no rule, add the default rule and its keys."""
    learning = content.get("learning", {})
    if not isinstance(learning, Mapping) or "rule" in learning:
        return content
    made = _made(recipe_of(content), content)
    return {**content, **{name: _over(made[name], content.get(name)) for name in made}}


def _made(recipe: Recipe, content: Content) -> Sections:
    """The sections of a recipe, adapted to the inputs and the keys of a spec."""
    input, made = _section(content, "input"), dict(recipe.sections)
    dim, wide = _dim(input), named(content, WIDTHS)
    if recipe.int16:
        made |= _scaled(content)
        dim = max(1, dim)
    elif "standardise" in made["input"] and input.get("standardise", not wide) is not True:
        return {name: keys for name, keys in made.items() if name not in ("input", "linear", "mixture")}
    if (sigma := recipe.sigma(dim)) and not named(content, (OTHER_KERNEL, *WIDTHS)):
        made["kernel"] = {"sigma": sigma}
    return made


def chosen(content: Content) -> dict[str, Any]:
    """Return a report of the default rule that a spec without a rule gets, and of the reasons.

    The report has these entries.  rule, stages: the default rule and its stages.  because: the keys or the limit that
    determined the rule.  otherwise: the rule that the spec would get without these keys and limits.  sentence: a
    sentence that states all of this.
    """
    recipe, full, plain, because = recipe_of(content), completed(content), content, list[str]()
    first = groups(recipe.task, recipe.int16)[0]
    for keys in (first[0].lacks, LIMITS):
        written = named(content, keys)
        # the third and later recipes are chosen only because of a limit
        limited = keys is LIMITS and recipe in first[2:]
        if limited or recipe_of(_without(content, written)) is not recipe:
            because += [*map(str, written)] or [f"the default limit of {first[1].unlimited:,} bytes of RAM"]
            plain = _without(plain, written)
    rule, other = _told(full), recipe_of(plain)
    otherwise = _told((first[0] if other is recipe else other).sections) if because else None
    made = [
        (name, key)
        for name, keys in _made(recipe, content).items()
        for key in ([""] if name == "linear" else keys or [""])
    ]
    stages = [key or f"[{name}]" for name, key in made if full[name].get(key, True) is True]
    sentence = f"the spec names no rule and gets {rule}{' with ' * bool(stages)}{', '.join(stages)}"
    sentence += f", because of {', '.join(because)}; otherwise it would get {otherwise}" if because else ""
    return {"rule": rule, "stages": stages, "because": because, "otherwise": otherwise, "sentence": sentence}


def _told(sections: Content) -> str:
    """Return the name of the rule and its sizes, such as features, because several recipes use the same rule with different sizes."""
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
    soft = float((fpu_of(name) if name in CPUS else "single") in (("none", "single") if wide else ("none",)))
    if not wide:
        soft *= OWN_FLOATS.get(name, 1.0)
    vectors = n if isinstance(n, int) and n > 0 else DEFAULT_BUDGET
    return Size(_dim(_section(content, "input")), _outputs(content), vectors, 8 if wide else 4, soft)


def _scaled(content: Content) -> Sections:
    """Return the input scales of an integer model, computed from the inputs' ranges, or {} if ``scales_by_range`` is
    false or a range is unknown.
    """
    input = _section(content, "input")
    ranges = input.get("max_abs")
    given = list(ranges) if isinstance(ranges, (list, tuple)) else [ranges] * min(_dim(input), DIM_LIMIT)
    known = [value for value in given if isinstance(value, (int, float)) and 0 < value < math.inf]
    scales = given and len(known) == len(given) and scales_by_range(content)
    return {"input": {"scale": [float(f"{RANGE / value:.6g}") for value in known]}} if scales else {}


def scales_by_range(content: Content) -> bool:
    """Return whether an integer model scales its inputs by their ranges.  It does if the spec gives neither rule nor scale nor width."""
    return not named(content, (*_lacks("learning", "rule"), *_lacks("input", "scale"), *WIDTHS))


def _outputs(content: Content) -> int:
    """Return the number of functions that the model learns."""
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


def _over(default: Content, section: Any) -> Any:
    """Return ``section``, with defaults for the keys that it lacks.

    If ``section`` is not a section, return it unchanged; it is refused later.
    """
    if section is None:
        return dict(default)
    return {**default, **section} if isinstance(section, Mapping) else section


def _dim(input: Content) -> int:
    """The number of inputs, or 0 if the spec does not give a valid number."""
    columns, dim = input.get("columns"), input.get("dim")
    if columns is not None:
        return len(columns) if isinstance(columns, (list, tuple)) else 0
    return dim if isinstance(dim, int) and 0 < dim <= DIM_LIMIT else 0
