"""Combine rules, techniques and stages into models to try on a table, and list the parameters to search."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

import numpy as np

from pykernel.errors import UserError
from pykernel.spec import stages
from pykernel.spec.defaults import INPUT_LIMIT, STAGED
from pykernel.spec.families.online import KernelSpec, ridge_of
from pykernel.spec.families.online_keys import Reduction
from pykernel.spec.model import N_MAX_LIMIT, Spec, int16_rules, make_spec
from pykernel.spec.model import rules as every_rule
from pykernel.spec.sections import Tried, fields_of
from pykernel.telling import raise_first_error

Content = dict[str, Any]
"""A spec as nested dictionaries."""
TRAINED = "trained"
"""The technique that trains its vectors.  "sgma" and "efvs" select rows as vectors instead."""
NETWORK = "network"
"""The technique that trains the hidden layer of a network."""
LINEAR = "linear"
"""The technique without vectors: a linear function of the inputs."""
POLYNOMIALS = {"quadratic": 2, "cubic": 3}
"""Technique that is a ridge regression on products of inputs -> highest degree of the products."""
BASES: dict[str, tuple[str, ...]] = {
    "frozen": (TRAINED, NETWORK, LINEAR, *POLYNOMIALS, "sgma", "efvs"),
    "expansion-rls": (NETWORK,),
    "expansion-softmax": (NETWORK,),
    "kfd": ("sgma", "efvs"),
}
"""Rule that needs vectors from the beginning -> ways to get the vectors from the data.  Each way is the technique of a combination."""
WAYS = tuple(dict.fromkeys(way for ways in BASES.values() for way in ways))
NUMBERS_INPUT: Content = STAGED["input"]
NUMBERS_LABEL: Content = STAGED["label"]
"""The keys of [input] and [label] without which a rule cannot learn from unscaled numbers."""
MARGIN = 10.0
"""In a planned spec, max_abs of [input] is about this many times the largest recorded magnitude.

A plant may run hotter than while it was recorded.  The largest faults in a plan, of 20 standard deviations,
should raise an alarm, so rows with these faults should not be refused (docs/decisions.md, "Limits of inputs").
"""
FOREVER = 100_000.0
"""The longest memory, in samples.  With this memory, a model forgets nothing."""
_SCALING = ("standardise", "clip", "warmup", "horizon", "outliers", "center", "scale")
_LABEL_STAGES = ("center", "gain", "clip", "horizon")

# --------------------------------------------------------------------------------------------------------- parameters


@dataclass(frozen=True)
class Knob:
    """A parameter that is searched: its place in a spec, and the scale on which a search changes it.

    A position on this scale is the logarithm of a value, unless a subclass overrides ``position``.  step: unit of the search's
    changes, as a distance between positions.  least, most: the smallest and the largest value.
    """

    section: str
    key: str
    step: float
    least: float
    most: float

    @property
    def name(self) -> str:
        return f"{self.section}.{self.key}"

    def position(self, value: float) -> float:
        return math.log(value)

    def value(self, position: float) -> float:
        """Return the value at a position, rounded to three digits, as a person would write it."""
        return float(f"{min(max(math.exp(position), self.least), self.most):.3g}")


class Whole(Knob):
    """A searched parameter whose values are integers."""

    def value(self, position: float) -> float:
        return round(min(max(math.exp(position), self.least), self.most))


class Drawn(Knob):
    """A searched parameter whose values are integers without an order, such as a seed."""

    def position(self, value: float) -> float:
        return 0.0

    def value(self, position: float) -> float:
        return math.floor(self.least + abs(1000 * position) % (self.most - self.least + 1))


@dataclass(frozen=True)
class Memory(Knob):
    """A forgetting factor, expressed as a memory of 1 / (1 - factor) samples.

    The factor is 1 if the memory exceeds 0.9 FOREVER samples.
    """

    def position(self, value: float) -> float:
        return math.log(min(1 / (1 - value), FOREVER)) if value < 1 else math.log(FOREVER)

    def value(self, position: float) -> float:
        memory = math.exp(min(position, math.log(FOREVER)))
        value = 1.0 if memory > 0.9 * FOREVER else round(1 - float(f"{1 / memory:.2g}"), 9)
        return min(max(value, self.least), self.most)


def knobs(distance: float) -> tuple[Knob, ...]:
    """Return all parameters that a search may vary, section by section.

    distance: the typical distance between two inputs of the kernel.
    """
    kinds = {"number": Knob, "whole": Whole, "memory": Memory}
    found: dict[tuple[str, str], Knob] = {}
    for rule, family in every_rule().items():
        for section, key, declaration in fields_of(family.spec, rule):
            for tried in declaration.metadata:
                if isinstance(tried, Tried) and key is not None:
                    unit = distance if tried.widths else 1.0
                    ends = unit * tried.least, unit * tried.most
                    found.setdefault((section, key), kinds[tried.how](section, key, math.log(tried.step), *ends))
    return tuple(sorted(found.values(), key=lambda knob: knob.section))


TRAINING = (
    Knob("training", "ridge", math.log(10), 1e-7, 0.1),
    Whole("training", "steps", math.log(2), 10, 1000),
    Drawn("training", "start", 1.0, 0, 999),
)
"""Settings for training vectors.

The first training chooses their values by cross-validation, and the search varies the chosen values.
"""


def held(spec: Spec, knob: Knob) -> float:
    """Return the value that the spec has for a searched parameter."""
    value = getattr(getattr(spec, knob.section), knob.key)
    if value == "auto":
        value = stages.NOISE["noise_first"]
    if value is None and knob.key == "features":
        return spec.capacities["RANK"]
    return float(ridge_of(spec) if isinstance(spec, KernelSpec) and value is None and knob.key == "ridge" else value)


def means(spec: Spec, section: str, key: str) -> bool:
    """Return whether a key has an effect on this model."""
    if section == "kernel":
        return spec.kernel is not None
    return spec.has(section, key)


def trained_at_once(spec: Spec) -> bool:
    """Return whether the device trains the model on all stored samples at once."""
    return any(entry.name == "train" for entry in spec.program.entries_for(spec.config))


def budget_of(spec: Spec) -> tuple[str, str] | None:
    """Return the (section, key) that sets the model's size, or None if the size depends only on the inputs."""
    keys = [("reduction", "n_max"), ("learning", "features")]
    if trained_at_once(spec):
        keys.append(("learning", "samples"))
    return next((key for key in keys if means(spec, *key)), None)


# -------------------------------------------------------------------------------------------------------- combinations


def techniques() -> tuple[str, ...]:
    """Return the possible values of the key "technique" in [reduction]."""

    def words(annotation: Any) -> Iterable[str]:
        for part in get_args(annotation):
            yield from [part] if isinstance(part, str) else words(part)

    return tuple(words(Reduction.model_fields["technique"].annotation))


def rules() -> tuple[str, ...]:
    """Return the rules that predict labels."""
    return tuple(rule for rule, family in every_rule().items() if rule != "nystrom" and {*family.programs} != {"none"})


def monitors() -> tuple[str, ...]:
    """Return the rules that raise alarms without labels."""
    families = every_rule().items()
    return tuple(rule for rule, family in families if "none" in family.programs and family.programs["none"].alarms)


@dataclass(frozen=True)
class Combination:
    """A rule, its technique (None if the rule has no techniques), and the keys of a spec that have an effect with this pair.

    budget: the (section, key) that sets the model's size, or None if the size depends only on the inputs.
    spec: the model that ``content`` describes, or None if the rule needs vectors from the beginning.  For such a rule, the
    technique is the way to get the vectors from the data, and ``content`` has the sections that do not depend on the
    vectors.  training: settings that a first training chose.  For trained vectors, these are units, widths, ridge,
    steps and start; for networks, the penalty.
    """

    rule: str
    technique: str | None
    content: Content = field(repr=False)
    spec: Spec | None = field(repr=False)
    budget: tuple[str, str] | None
    training: Content = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        words = [self.rule, self.technique, "int16" if self.content.get("precision") == "int16" else None]
        return " ".join(word for word in words if word)

    @property
    def trained_here(self) -> bool:
        """Whether the PC trains the model.  If such a model is chosen, it is trained again on all rows."""
        return self.spec is None and self.rule != "kfd"

    def means(self, section: str, key: str) -> bool:
        if self.spec is None:
            return (section, key) == ("kernel", "sigma") and self.technique in ("sgma", "efvs")
        return (section, key) != self.budget and means(self.spec, section, key)

    def task(self, size: int | None, values: Mapping[str, float]) -> Content:
        """Return the task from which ``trials.content_of`` makes a spec of this size, with these values by "section.key"."""
        if self.spec is not None:
            # the spec's name must not change the task
            return {"spec": self.with_values(size, values) | {"name": "model"}}
        how: Content = {"rule": self.rule, "size": size, "method": self.technique, "width": values.get("kernel.sigma")}
        if self.training:
            moved = {knob.key: values[knob.name] for knob in TRAINING if knob.name in values}
            how["training"] = self.training | moved
        return {"base": self.content, **how}

    def with_values(self, size: int | None, values: Mapping[str, float]) -> Content:
        """Return the content of a spec of this size, with these values.  Rules whose vectors come from the data have no such content."""
        assert self.spec is not None
        content = {key: dict(part) if isinstance(part, Mapping) else part for key, part in self.content.items()}
        if self.budget is not None and size is not None:
            content.setdefault(self.budget[0], {})[self.budget[1]] = size
        for name, value in values.items():
            section, key = name.split(".")
            content.setdefault(section, {})[key] = value
        return content

    def check(self, size: int | None, values: Mapping[str, float]) -> None:
        """Raise UserError if the spec is not valid."""
        if self.spec is not None:
            make_spec(self.with_values(size, values))
        elif self.budget is not None and (size is None or not 1 <= size <= N_MAX_LIMIT):
            raise UserError(f"a basis has {size} vectors; the number of vectors must be from 1 to {N_MAX_LIMIT:,}")


@dataclass(frozen=True)
class Known:
    """Data that may be used to set up a model.

    x: inputs, (rows, D).  largest: the largest magnitude of a label, or None for classes and if there are no labels.
    """

    x: np.ndarray
    largest: float | None = None

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Known:
        """Make the data from the inputs and labels of the rows that precede the judged rows."""
        if y.dtype.kind in "iu" or not np.isfinite(y).any():
            return cls(x)
        return cls(x, float(np.abs(y[np.isfinite(y)]).max()))

    @property
    def finite(self) -> np.ndarray:
        """The inputs, with NaN in place of numbers that are not finite."""
        return np.where(np.isfinite(self.x), self.x, np.nan)


def combine(
    content: Content, known: Known, chosen_rules: Sequence[str], chosen: Sequence[str] | None
) -> tuple[list[Combination], list[Content]]:
    """Return all valid combinations of a rule and a technique, and a list of the invalid combinations with the reasons.

    chosen: the techniques to combine.  If this is None, a rule that needs vectors from the beginning gets each of its
    techniques in BASES.  Any other rule gets the technique in the content or, if the content has no technique, the
    rule's default.
    """
    combinations: list[Combination] = []
    refused: list[Content] = []

    def take(rule: str, technique: str | None, make: Callable[[], Combination]) -> None:
        try:
            combinations.append(make())
        except UserError as error:
            refused.append({"rule": rule, "technique": technique, "size": None, "reason": reason_of(error)})

    around = list(_surroundings(content, known))
    ways, reductions = ([each for each in chosen or () if (each in WAYS) == way] for way in (True, False))
    for rule in chosen_rules:
        if rule in BASES:
            for method in BASES[rule]:
                if not ways or method in ways:
                    take(rule, method, partial(_from_data, content, rule, method))
        elif reductions and _chooses(around, content, rule, reductions):
            for technique in reductions:
                take(rule, technique, partial(_combination, around, content, rule, technique))
        else:
            take(rule, None, partial(_combination, around, content, rule, None))
    return combinations, refused


def int16_combinations(content: Content, known: Known, chosen: Sequence[str]) -> list[Combination]:
    """Return int16 models: each rule with each of its techniques.

    Where the rule allows it, numeric labels are centered and scaled, and a linear part is added.  Each input's range
    in the known rows is widened by at least a quarter on each side.  Numeric labels may be twice as
    large as the largest known label.
    """
    columns = {key: content["input"][key] for key in ("columns", "dim") if key in content["input"]}
    finite = known.finite
    low, high, deviation = np.nanmin(finite, axis=0), np.nanmax(finite, axis=0), np.nanstd(finite, axis=0)
    center, margin = (low + high) / 2, 1.5 * np.maximum(high - low, 1e-9 * np.maximum(np.abs(high), 1.0)) / 2
    deviation = np.where(deviation > 0, deviation, margin)
    # an input that hardly changed in the known rows may change more later
    margin = np.maximum(margin, 0.5 * (margin / deviation).max() * deviation)
    input = columns | {name: _shown(values) for name, values in (("center", center), ("max_abs", margin))}
    label = {key: value for key, value in content["label"].items() if key not in (*_LABEL_STAGES, "max_abs")}
    plain: Content = {"name": content.get("name", "model"), "precision": "int16", "label": label}
    plain["input"] = input | {"scale": _shown(1 / deviation)}
    kernel = {"kernel": {"sigma": content.get("kernel", {}).get("sigma") or math.sqrt(finite.shape[1])}}
    around: list[Content] = [plain]
    if "classes" not in label:
        plain["label"] = label | {"max_abs": float(f"{2 * (known.largest or 1.0):.2g}")}
        around.insert(0, plain | {"label": plain["label"] | {"center": True, "gain": True}, "linear": {}})
    combinations = []
    families = dict.fromkeys(int16_rules().values())
    for rule, technique in (pair for family in families for pair in family.planned if pair[0] in chosen):
        with contextlib.suppress(UserError):
            if rule in BASES and technique is not None:
                combinations.append(_from_data(content | {"precision": "int16"}, rule, technique))
            else:
                combinations.append(_combination(around, kernel, rule, technique))
    return combinations


def _shown(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def reason_of(error: UserError) -> str:
    return str(error).removeprefix("spec: ")


def _surroundings(content: Content, known: Known) -> Iterator[Content]:
    """Yield contents without a rule: first with all given stages of inputs and labels, then with other or fewer."""
    given, label = content.get("input", {}), content.get("label", {})
    bare = {key: value for key, value in given.items() if key not in _SCALING}
    inputs = [given]
    if given.get("standardise"):
        own = {"max_abs": bare["max_abs"]} if bare.get("max_abs", INPUT_LIMIT) != INPUT_LIMIT else {}
        inputs.append(bare | scaled_input(known) | own)
    elif given.get("center") is not None or given.get("scale") is not None:
        inputs.append(bare | {"standardise": True})
    plain = {key: value for key, value in label.items() if key not in _LABEL_STAGES}
    labels = [label, *([plain] if plain != label else [])]
    if known.largest:
        labels.append(plain | {"max_abs": float(f"{2 * known.largest:.1g}")})
    parts: list[Content] = [{key: content[key] for key in ("linear", "mixture") if content.get(key) is not None}]
    while parts[-1]:
        parts.append(dict(list(parts[-1].items())[:-1]))
    rest = {key: value for key, value in content.items() if key in ("name", "precision")}
    for input, around, part in itertools.product(inputs, labels, parts):
        yield {**rest, **part, "input": input, "label": around}


def input_limit(x: np.ndarray, sentinels: Iterable[float] = ()) -> float:
    """Return [input] max_abs for recorded rows: MARGIN times their largest magnitude, rounded up to 1, 2 or 5 times a power of 10.

    If a sentinel that is larger than all recorded numbers would be within this limit, a smaller limit is returned.
    """
    most = max(1e-6, float(np.abs(x[np.isfinite(x)]).max(initial=0.0)))
    steps = [float(f"{step}e{n}") for n in range(-8, 310) for step in (1, 2, 5)]
    limit = next((each for each in steps if each >= MARGIN * most * (1 - 1e-12)), most)
    code = min((abs(each) for each in sentinels if abs(each) > most), default=math.inf)
    if limit < code:
        return limit
    below = [*(each for each in steps if each < code), float(f"{math.sqrt(most * code):.2g}"), most]
    return max(each for each in below if most <= each < code)


def scaled_input(known: Known) -> Content:
    """Return [input] with a center and a scale that are computed from the known rows."""
    finite = known.finite
    deviation = np.nanstd(finite, axis=0)
    return {
        "center": np.nanmean(finite, axis=0).tolist(),
        "scale": (1 / np.where(deviation > 0, deviation, 1.0)).tolist(),
        "max_abs": float(f"{100 * max(1e-6, float(np.nanmax(np.abs(finite)))):.1g}"),
    }


def _probe(around: Content, content: Content, rule: str, technique: str | None) -> Spec:
    """Return the simplest spec of a rule and a technique.  Raises UserError if no spec is valid."""
    plain: Content = {**around, "learning": {"rule": rule}}
    if technique is not None:
        force = content.get("reduction", {}).get("force")
        plain["reduction"] = {"technique": technique, **({"force": True} if force else {})}
    try:
        return make_spec(plain | {"kernel": content.get("kernel") or {"sigma": 1.0}})
    except UserError as error:
        if "[kernel]" not in str(error):
            raise
        return make_spec(plain)


def _chooses(around: Sequence[Content], content: Content, rule: str, chosen: Sequence[str]) -> bool:
    """Return whether the rule has techniques, that is, whether the key "technique" in [reduction] has an effect in the
    rule's first valid spec.

    This spec has the rule's default technique or, if the default is not valid, one of ``chosen``.
    """
    for technique in (None, *chosen):
        for each in around:
            with contextlib.suppress(UserError):
                return means(_probe(each, content, rule, technique), "reduction", "technique")
    return False


def _combination(around: Sequence[Content], content: Content, rule: str, technique: str | None) -> Combination:
    first, *others = around
    try:
        return _within(first, content, rule, technique)
    except UserError:
        for each in others:
            with contextlib.suppress(UserError):
                return _within(each, content, rule, technique)
        raise


def _within(around: Content, content: Content, rule: str, technique: str | None) -> Combination:
    probe = _probe(around, content, rule, technique)
    kept: Content = dict(around)
    if probe.kernel is not None:
        kept["kernel"] = probe.kernel.model_dump(mode="json", exclude_unset=True)
    for section, chosen in (("learning", {"rule": rule}), ("reduction", {"technique": technique} if technique else {})):
        own = {k: v for k, v in content.get(section, {}).items() if k not in chosen and means(probe, section, k)}
        if technique is not None:
            own.pop("technique", None)
        if chosen or own:
            kept[section] = chosen | own
    spec = make_spec(kept)  # raises UserError if the user's keys exclude this combination
    if technique is None and spec.has("reduction", "technique"):
        technique = spec.reduction.technique
    return Combination(rule, technique, kept, spec, budget_of(spec))


def _from_data(content: Content, rule: str, method: str) -> Combination:
    function = content.get("kernel", {}).get("function", "gaussian")
    raise_first_error(
        (
            function != "gaussian",
            f"[kernel] function is {function}, but {rule} is tried only with Gaussian kernels; for other kernels see pykernel fit",
        ),
        (
            rule in ("kfd", "expansion-softmax") and not content["label"].get("classes"),
            f"[label] classes is missing; rule {rule} needs the list of classes",
        ),
        (
            rule == "expansion-rls" and bool(content["label"].get("classes")),
            "[label] classes is given, but rule expansion-rls predicts numbers; for classes, take rule expansion-softmax",
        ),
    )
    input = {key: content["input"][key] for key in ("columns", "dim", "max_abs") if key in content["input"]}
    label = {key: value for key, value in content["label"].items() if key not in (*_LABEL_STAGES, "max_abs")}
    rest = {key: value for key, value in content.items() if key in ("name", "precision")}
    return Combination(
        rule,
        method,
        {**rest, "input": input, "label": label},
        None,
        None if method in (LINEAR, *POLYNOMIALS) else ("", "n"),
    )
