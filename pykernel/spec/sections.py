"""Sections of a spec that several families share, and the markers with which a family declares its own sections.

A family's spec is a class (``pykernel.spec.base``).  The class's fields are sections; a section's fields are keys.  A
key is marked with ``Of`` if not every rule of the family has it.
"""

from __future__ import annotations

import functools
import importlib.resources
import math
import re
import tomllib
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, field_validator
from pydantic.fields import FieldInfo

from pykernel.algorithms.kernel_choice import KERNEL_RULES
from pykernel.errors import did_you_mean
from pykernel.request.option import declared
from pykernel.request.training import Training

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

DIM_LIMIT = 1024
OUTPUTS_LIMIT = 64
NAME_LIMIT, FORMULA_LIMIT = 100, 1000
RANGE = re.compile(r"(.*?)([0-9]{1,30})\.\.(\1)([0-9]{1,30})")
"""A range of numbered columns in a spec, such as "x0..x63"."""
LIKE_RANGE = re.compile(r".*[0-9]\s*\.\.+.*[0-9]")
"""A mistyped range: without this check it would be the name of one input."""

ROWS_LIMIT = 2**16
"""Maximum number of rows in a table of a spec, and of numbers in a row."""
Numbers = Annotated[tuple[float, ...], Field(strict=False, min_length=1, max_length=ROWS_LIMIT)]
Rows = Annotated[tuple[Numbers, ...], Field(strict=False, min_length=1, max_length=ROWS_LIMIT)]


def shown_value(value: Any) -> str:
    try:
        text = ascii(value).replace("\n", " ")  # the text of an array may have several lines
    except (RecursionError, ValueError):  # such as a thousand nested tables, or a number with thousands of digits
        text = "too long to show"
    return text if len(text) <= 60 else text[:57] + "..."


def visible_name(text: str) -> str:
    """Return the name of a column or a class.  Invisible characters and long names are refused, because names are printed
    into comments and manifests.
    """
    if not _is_visible(text, NAME_LIMIT):
        raise ValueError(
            f"has the name {shown_value(text)}; a name must have 1 to {NAME_LIMIT} visible characters, and no space at its beginning or end"
        )
    return text


def _is_visible(text: str, most: int) -> bool:
    hidden = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return (
        1 <= len(text) <= most and text == text.strip() and not any(unicodedata.category(ch) in hidden for ch in text)
    )


def visible_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    """Return formulas.  They are checked like names, because they, too, are printed into comments."""
    for line in lines:
        if not _is_visible(line, FORMULA_LIMIT):
            raise ValueError(
                f"holds {shown_value(line)}; a formula must have 1 to {FORMULA_LIMIT} visible characters, and no space at its beginning or end"
            )
    return lines


def list_of_names(names: Any) -> Any:
    """Return the value if it is a list, or raise ValueError.  The names in the list are checked later."""
    if not isinstance(names, (list, tuple)):
        raise ValueError(f'is {shown_value(names)}; it must be a list of names, such as ["a", "b"]')
    return names


def in_range(name: Any) -> list[Any]:
    """Return the names that a range such as "x0..x63" stands for, or [name] for anything else.  Raises ValueError."""
    found = RANGE.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        if isinstance(name, str) and LIKE_RANGE.fullmatch(name):
            raise ValueError(
                f"holds {shown_value(name)}, which is not a range of names: in a range, two dots stand between two names that differ "
                'in their last number, as in "x0..x63"; if a column has this name, rename the column'
            )
        return [name]
    before, first, _, last = found.groups()
    count = int(last) - int(first) + 1
    if not 1 <= count <= DIM_LIMIT:
        raise ValueError(
            f"holds the range {shown_value(name)} of {max(0, count)} names; a range must have 1 to {DIM_LIMIT} names"
        )
    width = len(first) if first.startswith("0") else 0  # x00..x63
    return [f"{before}{number:0{width}}" for number in range(int(first), int(last) + 1)]


def different(least: int, most: int, must: str) -> AfterValidator:
    """Return a marker for a list of ``least`` to ``most`` visible names that are all different.

    must: the end of the message about a repeated name.
    """

    def checked(names: tuple[str, ...]) -> tuple[str, ...]:
        if not least <= len(names) <= most:
            raise ValueError(f"holds {len(names)} names; it must hold from {least} to {most}")
        doubles = [name for name in map(visible_name, names) if names.count(name) > 1]
        if doubles:
            raise ValueError(f"has the name {doubles[0]!r} twice; {must}")
        return names

    return AfterValidator(checked)


Names = Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(list_of_names)]
TAKES_RANGES = object()
"""Marks a key whose ranges of names are expanded before the spec is validated."""
Columns = Annotated[Names, TAKES_RANGES]


def plain_path(source: str) -> str:
    """Return ``source`` if it is the path of a .py file in the spec's folder or below it.  Otherwise, raise ValueError."""
    parts = source.split("/")
    if (
        len(source) > 200
        or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*(/[A-Za-z0-9_][A-Za-z0-9_.\-]*)*", source)
        or any(".." in part for part in parts)
        or not source.endswith(".py")
    ):
        raise ValueError(
            f"is {shown_value(source)}; it must be a .py file in the spec's folder or below, such as my_kernels.py, and "
            "its path may contain only letters, digits, /, _, - and dots"
        )
    return source


def plain_name(name: str) -> str:
    """Return ``name`` if a kernel can have this name.  Otherwise, raise ValueError."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name):
        raise ValueError(
            f"is {shown_value(name)}; it must be the name of a kernel in the source file: a letter from a to z, followed by at most 30 of the characters a-z, 0-9 and _"
        )
    return name


@dataclass(frozen=True)
class Of:
    """Marks a key, or a section, that only some rules of a family have: ``eta: Annotated[float, Of("klms")]``."""

    rules: tuple[str, ...]

    def __init__(self, *rules: str) -> None:
        object.__setattr__(self, "rules", rules)


@dataclass(frozen=True)
class Tried:
    """Marks a number that ``plan`` varies: ``eta: Annotated[float, Tried(3, 0.003, 1.9)]``.

    step: a typical change multiplies or divides the value by this factor.
    least, most: the smallest and the largest value.
    how: "number" for a real number, "whole" for an integer, "memory" for a forgetting factor, whose step applies to the memory in
    samples, 1 / (1 - factor).
    widths: whether least and most are in units of the typical distance between inputs.
    """

    step: float
    least: float
    most: float
    how: Literal["number", "whole", "memory"] = "number"
    widths: bool = False


@dataclass(frozen=True)
class Rate:
    """Marks a learning rate.  Rules with a learning rate correct only a part of each error, so several passes help.

    but: rules that have the key, but for which a second pass would give every sample double weight.
    """

    but: tuple[str, ...] = ()


TRIED_ETA = Tried(3, 0.003, 1.9)
TRIED_FORGETTING = Tried(10, 0.9, 1.0, "memory")
TRIED_RIDGE = Tried(10, 1e-4, 1e3)
TRIED_FEATURES = Tried(1.5, 2, 256, "whole")


@dataclass(frozen=True)
class Counts:
    """Marks a key, or a section, that has an effect only with some values of another key.

    ``eta: Annotated[float, Counts('belongs to head = "logistic"; leave it out', ("subspace.head",), ("logistic",))]``

    otherwise: the message if the key has no effect; {} stands for the value of the first key in ``of``.
    of: other keys or properties of the spec, one of which must have one of ``values``.  If ``values`` is None, one of
    them must have a value other than None.
    """

    otherwise: str
    of: tuple[str, ...]
    values: tuple[Any, ...] | None = None

    def why_ignored(self, spec: Any) -> str | None:
        """Return a message that says why the key has no effect in a spec, or None if it has an effect."""
        found = [_at(spec, name) for name in self.of]
        counts = [value is not None if self.values is None else value in self.values for value in found]
        return None if any(counts) else self.otherwise.format(found[0])


def _at(spec: Any, name: str) -> Any:
    """Return the value of a key or of a property.  Return None if the section is None or does not have the key."""
    section, _, key = name.rpartition(".")
    return getattr(getattr(spec, section), key, None) if section else getattr(spec, key)


@dataclass(frozen=True)
class Within:
    """Marks a number whose limits depend on the precision.  Each field is a pair (least, most); ``float32`` also holds for int16."""

    float32: tuple[float, float]
    float64: tuple[float, float]

    def ends(self, precision: str) -> tuple[float, float]:
        return self.float64 if precision == "float64" else self.float32

    def wrong(self, value: float | tuple[float, ...], precision: str) -> str | None:
        """Return a message about the first number in a key's value that is outside the limits, or None if all are within."""
        low, high = self.ends(precision)
        several = isinstance(value, tuple)
        for each in value if isinstance(value, tuple) else (value,):
            if not low <= each <= high:
                return f"{'holds' if several else 'is'} {each:g}; it must be from {low:g} to {high:g} for {precision}"
        return None


SQUARED = Within(float32=(1e-18, 1e18), float64=(1e-150, 1e150))
"""Limits on numbers whose squares must be normal floating-point numbers."""


class Fading:
    """Marks a forgetting factor, which must be 1, or so far below 1 that the difference survives rounding."""

    def wrong(self, value: float, precision: str) -> str | None:
        """Return a message if the factor is too near 1, or None if it is allowed."""
        near = 1 - 1e-12 if precision == "float64" else 0.99999
        return f"is {value}; it must be exactly 1, or at most {near} for {precision}" if near < value < 1 else None


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False, defer_build=True)


def section_of(field: FieldInfo) -> type[Section] | None:
    """Return the section's class if a field of a spec is a section, or None for a key outside of sections."""
    kinds = (field.annotation, *get_args(field.annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)), None)


def takes_ranges(field: FieldInfo) -> bool:
    """Return whether a key's names may be given as ranges."""
    inner = (mark for kind in get_args(field.annotation) for mark in getattr(kind, "__metadata__", ()))
    return TAKES_RANGES in (*field.metadata, *inner)


def limits_of(field: FieldInfo) -> list[float]:
    """Return the limits that a key's declaration sets for its value."""
    ends = (getattr(mark, key, None) for mark in field.metadata for key in ("gt", "ge", "lt", "le"))
    return [end for end in ends if end is not None]


def fields_of(spec: type[Section], rule: str) -> tuple[tuple[str, str | None, FieldInfo], ...]:
    """Return the sections and keys that a rule's spec may have.  A section, or a key outside of sections, is (name,
    None, field).  A key within a section is (section, key, field).
    """
    return _fields_of(spec, rule)


@functools.cache
def _fields_of(spec: type[Section], rule: str) -> tuple[tuple[str, str | None, FieldInfo], ...]:
    found: list[tuple[str, str | None, FieldInfo]] = []
    for name, field in spec.model_fields.items():
        if not _has(field, rule):
            continue
        found.append((name, None, field))
        kind = section_of(field)
        keys = kind.model_fields.items() if kind is not None else ()
        found += [(name, key, inner) for key, inner in keys if _has(inner, rule)]
    return tuple(found)


def _has(field: FieldInfo, rule: str) -> bool:
    return all(rule in mark.rules for mark in field.metadata if isinstance(mark, Of))


class Input(Section):
    """The inputs of the model."""

    columns: Annotated[Columns, different(1, DIM_LIMIT, "each input must be a different column")] | None = Field(
        None,
        description='names of the inputs, as in the data\'s header; `simulate` needs them. A range such as `"x0..x63"` stands for 64 names',
    )
    dim: int | None = Field(None, ge=1, le=DIM_LIMIT, description="number of inputs, if they have no names")
    max_abs: Annotated[float | Numbers, SQUARED] = Field(
        1e6,
        description="largest magnitude of an input: a sample with a larger one is refused. (max_abs)² · 4 · (number of inputs) must not overflow. In float32, `max_abs` is at most 1e18. If `max_abs` is a list, it gives the largest |x − center| of each input",
    )
    formulas: Annotated[Names, AfterValidator(visible_lines)] | None = Field(
        None,
        description="formulas by which the firmware computes inputs from measurements. Each is a string of the form `NAME = …`, where `NAME` is an input. pykernel does not evaluate the formulas; it only prints them in the generated header. `plan` and `fit` copy the formulas from a table that `pykernel table` made",
    )

    @field_validator("max_abs", mode="before")
    @classmethod
    def _positive(cls, numbers: Any) -> Any:
        several = isinstance(numbers, (list, tuple))
        for value in numbers if several else [numbers]:
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
                verb = "holds" if several else "is"
                raise ValueError(
                    f"{verb} {shown_value(value)}; it must be a number above 0, or a list with such a number for each input"
                )
        return numbers


class StandardisedInput(Input):
    """Inputs of a model that learns sample by sample and may standardise them."""

    standardise: bool = Field(
        False,
        description="subtract each input's running mean and divide by its running standard deviation; `[kernel] sigma` is then in units of these standard deviations",
    )
    clip: float = Field(
        5.0, ge=1, le=100, description="standardised inputs are clipped to ± this many standard deviations"
    )
    warmup: int = Field(
        16,
        ge=2,
        le=32,
        description="number of samples at the start that update the standardiser, but not the model (status `OBSERVED`)",
    )
    horizon: int = Field(
        2000,
        ge=10,
        le=1_000_000,
        description="the running mean and standard deviation describe about this many of the latest samples",
    )
    outliers: Literal["clip", "hold"] = Field(
        "clip",
        description='with `standardise`, what happens to an input that is 5 or more standard deviations from its mean. `"clip"`: it is clipped. `"hold"`: it is clipped, or replaced by its latest value that was not an outlier; for each input, the model learns which of the two is better',
    )
    missing: Literal["refuse", "mean", "hold"] = Field(
        "refuse",
        description='what happens to a sample with a missing input (NaN or an empty cell). `"refuse"`: it is refused. `"mean"`: the input is replaced by its `center` if the spec gives one, otherwise by its running mean. `"hold"`: the input is replaced by its latest value that was not an outlier',
    )


class ScaledInput(Input):
    """Inputs of a model whose vectors are fixed, so the scaling of the inputs must not change."""

    center: Numbers | None = Field(
        None, strict=False, description="a number for each input: the kernel sees (x − center) · scale"
    )
    scale: Numbers | None = Field(
        None, strict=False, description="a number for each input: the kernel sees (x − center) · scale"
    )


class FrozenInput(ScaledInput):
    """Inputs of a model that does not learn."""

    missing: Literal["refuse", "mean"] = Field(
        "refuse",
        description='what happens to a sample with a missing input (NaN or an empty cell). `"refuse"`: it is refused. `"mean"`: the input is replaced by its `center`',
    )


class GivenInput(ScaledInput):
    """Inputs of a model that learns sample by sample, with fixed vectors."""

    missing: Literal["refuse", "mean", "hold"] = Field(
        "refuse",
        description='what happens to a sample with a missing input (NaN or an empty cell). `"refuse"`: it is refused. `"mean"`: the input is replaced by its `center`. `"hold"`: the input is replaced by its latest value',
    )


class AnyInput(StandardisedInput, ScaledInput):
    """Inputs of a model that learns sample by sample, scaled by ``center`` and ``scale`` or by running statistics."""


class Label(Section):
    """The label, which the model learns to predict: a number, several numbers, or one of several classes."""

    column: Annotated[str, AfterValidator(visible_name)] | None = Field(
        None, description="name of the label, as in the data's header; `simulate` needs `column` or `columns`"
    )
    columns: Annotated[Columns, different(1, OUTPUTS_LIMIT, "all names must be different")] | None = Field(
        None,
        description="names of up to 64 labels that one model learns together; the labels share the expansion vectors",
    )
    outputs: int | None = Field(None, ge=1, le=OUTPUTS_LIMIT, description="number of labels, if they have no names")
    classes: Annotated[Names, different(2, OUTPUTS_LIMIT, "all names must be different")] | None = Field(
        None,
        description="the 2 to 64 values that the label can have, written as in the data's cells; the model is then a classifier",
    )
    max_abs: Annotated[float, Within(float32=(1e-20, 1e24), float64=(1e-20, 1e100))] = Field(
        1e6,
        gt=0,
        description="largest magnitude of a label: a sample with a larger one is refused. It also determines how large the multipliers and weights that a model learns can become",
    )
    low: float | None = Field(
        None,
        description="lower limit: a smaller prediction is replaced by this number. The limit does not affect learning, and a classifier cannot have it",
    )
    high: float | None = Field(
        None,
        description="upper limit: a larger prediction is replaced by this number. The limit does not affect learning, and a classifier cannot have it",
    )


if TYPE_CHECKING:
    KernelFunctionName = str
else:
    KernelFunctionName = Literal[tuple(KERNEL_RULES)]


def _of_kernels(key: str) -> Counts:
    """Return a marker for a key of [kernel] that only some kernels have."""
    owners = tuple(name for name, rule in KERNEL_RULES.items() if key in rule.keys)
    *others, last = owners
    listed = f"{', '.join(others)} and {last}" if others else last
    return Counts(f"belongs to {listed} kernels; {{}} does not have it: leave it out", ("kernel.function",), owners)


UNLIKE_UNIT = Counts(
    "changes nothing: with a {} kernel, k(x, x) is 1 for every x; leave it out",
    ("kernel.function",),
    tuple(name for name, rule in KERNEL_RULES.items() if not rule.unit),
)


class KernelSection(Section):
    """The kernel k(a, b), which measures how similar two input vectors are."""

    function: KernelFunctionName = Field(
        "gaussian", description="; ".join(f"{name}: {rule.says}" for name, rule in KERNEL_RULES.items())
    )
    sigma: Annotated[float | None, Tried(2, 1 / 100, 100, widths=True), _of_kernels("sigma")] = Field(
        None, description="`gaussian`: width, in the inputs' unit"
    )
    gamma: Annotated[float | None, _of_kernels("gamma")] = Field(
        None,
        description="γ in the kernel's formula; `linear`, `fourier` and the hidden units (`relu`, `tanh`, `logistic`, `identity`) have none. `gaussian`: may be given instead of `sigma`; γ = 1 / (2 σ²). `custom`: 1 if not given",
    )
    alpha: Annotated[float, _of_kernels("alpha")] = Field(1.0, gt=0, description="`rational-quadratic`: the exponent")
    coef0: Annotated[float, _of_kernels("coef0")] = Field(
        0.0, description="`polynomial`, `sigmoid`, `custom`: the number added to γ a'b"
    )
    degree: Annotated[int, _of_kernels("degree")] = Field(
        3, ge=1, le=9, description="`polynomial`, `custom`: the exponent"
    )
    normalise: Annotated[bool, UNLIKE_UNIT, _of_kernels("normalise")] = Field(
        False,
        description="`polynomial`, `linear`, `custom`: use k(a, b) / √(k(a, a) k(b, b)) instead of k(a, b); the quotient is 0 where k(a, a) or k(b, b) is 0",
    )
    source: Annotated[Annotated[str, AfterValidator(plain_path)] | None, _of_kernels("source")] = Field(
        None,
        description="`custom`: the Python file with your kernel, in the spec's folder or below. It is executed, so `--trust-code` must be given",
    )
    kernel: Annotated[Annotated[str, AfterValidator(plain_name)] | None, _of_kernels("kernel")] = Field(
        None, description="`custom`: the name of your kernel in that file"
    )
    max_value: Annotated[float | None, _of_kernels("max_value")] = Field(
        None,
        description="`custom`: an upper bound of k(x, x) for inputs within `max_abs`; kernel values are clipped to ± this number",
    )


class Learning(Section):
    """How a sample changes the model."""

    rule: str = Field(
        "",
        description="name of the learning rule, which determines how a sample changes the model. If not given, the spec gets a model for raw data, with a rule that depends on the other keys: `gmm` if the spec has `[novelty]`; `krls-t` if it has a budget, a kernel that is not Gaussian, or `[input] center` or `scale`; `spectrum-softmax` if it has classes; otherwise `spectrum-ekf`. In int16, the rule is `qklms` if the spec has a budget or a kernel that is not Gaussian, `spectrum-nlms` if it has classes or `eta`, and otherwise `spectrum-ekf`. If the model would take too much memory or time, a cheaper rule can replace these, such as `spectrum-nlms`",
    )


def target_files() -> dict[str, Traversable]:
    """Return name of a target -> its TOML file in the folder ``targets``."""
    files = importlib.resources.files("pykernel.data.targets").iterdir()
    return {name.removesuffix(".toml"): file for file in files if (name := file.name).endswith(".toml")}


CPUS: tuple[str, ...] = tuple(sorted(target_files()))
"""The CPUs that have a target in the folder ``targets``."""
if TYPE_CHECKING:
    CPU = str
else:
    CPU = Literal[CPUS]


@functools.cache
def fpu_of(cpu: str) -> str:
    """Return the precision of a CPU's floating-point unit: "none", "single" or "double"."""
    return str(tomllib.loads(target_files()[cpu].read_text(encoding="utf-8"))["fpu"])


class TargetSection(Section):
    """Limits of the model on the device.

    They change the C code only if the spec names no rule, because the default rule depends on them.
    """

    name: CPU | None = Field(
        None,
        description="name of the CPU, as `pykernel info` lists it; if `flash`, `instructions` or `cycles` is given, `check` also runs the model on this CPU",
    )
    ram: int | None = Field(
        None, gt=0, description="bytes of RAM that the model may take, for its state and working memory"
    )
    flash: int | None = Field(
        None, gt=0, description="bytes of flash that a program with the model may take; needs `name`"
    )
    instructions: int | None = Field(
        None,
        gt=0,
        description="largest number of instructions in one call of the function that learns (such as `NAME_update`) or of the function that answers (such as `NAME_predict`); needs `name`",
    )
    cycles: int | None = Field(
        None,
        gt=0,
        description="largest number of cycles in one call of the function that learns or of the function that answers; `name` must be cortex-m0plus, avr or atmega328p",
    )


def _training(table: Any) -> tuple[tuple[str, str | int | float | bool], ...]:
    """Return the (key, value) pairs of [training].  ``request.training`` declares the keys.

    A list of numbers becomes one string with commas, in the form that --set accepts.
    """
    if not isinstance(table, dict):
        raise ValueError(f"is {shown_value(table)}; it must be a table of keys")
    known, found = {each.name.strip("_"): each for each in declared(Training)}, []
    for key, value in table.items():
        if key not in known:
            remedy = did_you_mean(key, known, "it has " + ", ".join(known))
            raise ValueError(f"has no key {shown_value(key)}; {remedy}")
        text = ",".join(map(str, value)) if isinstance(value, list | tuple) else value
        if not isinstance(text, str | int | float):
            raise ValueError(f"{key} is {shown_value(value)}; it must be text or a number")
        known[key].checked(text, key)
        found.append((key, text))
    return tuple(found)


Trained = Annotated[
    tuple[tuple[str, str | int | float | bool], ...],
    BeforeValidator(_training),
    PlainSerializer(dict, return_type=dict),
]


class VectorsSection(Section):
    """Vectors that are stored in the device's flash."""

    vectors: Rows = Field(strict=False, description="a row of numbers for each vector, scaled like the inputs")

    @field_validator(
        "vectors",
        "factor",
        "weights",
        "bias",
        "support_class",
        "calibration",
        "offsets",
        mode="before",
        check_fields=False,
    )
    @classmethod
    def _list(cls, values: Any) -> Any:
        if values is not None and not isinstance(values, (list, tuple)):
            raise ValueError(f"is {shown_value(values)}; it must be a list, such as [1.0, 2.0]")
        return values
