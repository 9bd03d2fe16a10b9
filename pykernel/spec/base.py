"""A spec: the keys that every model has, and the values that kernels and the generator take from it.

Each family has a subclass of ``Spec`` with the sections that the family declares.  ``pykernel.spec.model`` reads the
rule and then chooses the subclass.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

import numpy as np
from pydantic import Field, PrivateAttr, field_validator, model_validator
from pydantic.fields import FieldInfo

from pykernel.algorithms.signal.program import with_signal
from pykernel.dialect import INTEGERS, PRECISIONS, Array, Kernel, Memory, Precision, Real, layout
from pykernel.dialect.program import LabelKind, Program, Settings
from pykernel.dialect.reserved import C_KEYWORDS, SYSTEM_HEADERS
from pykernel.errors import UserError
from pykernel.report import sections
from pykernel.spec import missing
from pykernel.spec import signal as signals
from pykernel.spec.defaults import Chosen
from pykernel.spec.family import STATE_LIMIT, Family, Refuse, affordable, filling
from pykernel.spec.sections import (
    Counts,
    Fading,
    Input,
    Label,
    Learning,
    ScaledInput,
    Section,
    StandardisedInput,
    TargetSection,
    Trained,
    Within,
    fields_of,
    limits_of,
    section_of,
    shown_value,
)
from pykernel.spec.signal import SignalSection

# a file with such a name would hide a header of the compiler, or is impossible on Windows
FORMAT = 2
"""Version of a spec's keys and of their meaning, as in docs/versions.md.  Format 1 had keys that left; all others mean the same."""


def is_prefix(name: str) -> bool:
    """Whether a name is allowed as the prefix of names in C."""
    return re.fullmatch(r"[a-z](_?[a-z0-9])*", name) is not None and len(name) <= 31


def checked_name(name: str) -> str:
    """The name of a model.  Raises ValueError with a sentence without its beginning."""
    if not is_prefix(name):
        raise ValueError(
            f"is {shown_value(name)}; it must be 1 to 31 of a-z, 0-9 and single '_', start with a letter and not end with '_', "
            "because C symbols and files are named after it"
        )
    if name in C_KEYWORDS or re.fullmatch(r"pk|u?int\d*|u?int(_least|_fast)?\d+_t|std.*", name):
        raise ValueError(f"is {name!r}, which has a meaning in C or C++; choose another")
    if name in SYSTEM_HEADERS or re.fullmatch(r"check|aux|con|nul|prn|(com|lpt)\d", name):
        raise ValueError(f"is {name!r}, and {name}.h would be taken for another file of that name; choose another")
    return name


class Refusal(ValueError):
    """A sentence that says what is wrong in a spec, and what would be right."""


class NotComputed(Exception):
    """Each number of a spec is allowed, but nothing can be computed from all of them together."""

    def __init__(
        self, sentence: str = "its numbers are so large or small that nothing can be computed from them"
    ) -> None:
        super().__init__(sentence)


Names = Mapping[str, Sequence[str | None]]
"""What is named -> the names in their order, as in ``Spec.names``."""


def _beyond(values: Any, held: np.finfo | np.iinfo) -> tuple[float, str] | None:
    """The first number that a type cannot hold, and words for the type's limit; None if it holds all.

    A small element of a table may become 0.
    """
    if isinstance(values, tuple) and values:
        if isinstance(values[0], str):
            return None
        values = np.concatenate([np.atleast_1d(np.asarray(row, float)) for row in values])
    found = np.asarray(values, float)
    # not ">": NaN must fail
    if len(outside := found[~((found >= float(held.min)) & (found <= float(held.max)))].ravel()):
        return float(outside[0]), f"it holds {float(held.max):.2g} at most"
    if isinstance(held, np.finfo) and found.ndim == 0 and 0 < abs(found) < held.tiny:
        return float(found), f"it holds nothing below {float(held.tiny):.2g} but 0"
    return None


def require_order(known: Names, given: Names, where: str, whose: str) -> None:
    """Refuse names of which one stands at another's place; new names are allowed, because columns may be renamed.

    where: what has the known names; whose: what has the given ones.  Raises UserError with both orders.
    """
    for what, names in known.items():
        for at, (name, other) in enumerate(zip(names, given.get(what, ()), strict=False)):
            if name != other and None not in (name, other) and (name in given[what] or other in names):
                mine, others = (", ".join(map(str, each[at : at + 8])) for each in (names, given[what]))
                raise UserError(
                    f"{where}: its {what}{f' from {at + 1} on' * (at > 0)} are {mine}, but {whose} has {others}; keep the first order: what was learned "
                    "belongs to places, not to names"
                )


class Spec(Section):
    """A model, completely.  Read one with ``load_spec``; the fields are those of the TOML file."""

    name: str = Field(
        description="prefix of every symbol and file in C: 1 to 31 of a-z, 0-9 and single `_`; starts with a letter"
    )
    format: Literal[1, 2] = Field(
        FORMAT, description="version of the spec's keys and their meaning, as in docs/versions.md"
    )
    precision: Literal["float32", "float64"] = Field("float32", description="of every number, on both sides")
    signal: SignalSection | None = None
    input: Input
    label: Label = Label()
    target: TargetSection | None = None
    training: Trained | None = Field(
        None, description="a table: how `fit` trained it, by its keys `training.…`. It changes no byte of the C"
    )
    if TYPE_CHECKING:  # each family declares its own class of this section
        learning: Learning
    _custom: Kernel | None = PrivateAttr(None)
    _chosen: Chosen = PrivateAttr(Chosen())
    models: ClassVar[Family]
    """The family, if it is the only one of a class of specs."""

    def _repr_html_(self) -> str:
        return sections.spec_keys(self.name, self.learning.rule, self.given_keys())._repr_html_()

    _named = field_validator("name")(checked_name)

    @model_validator(mode="after")
    def _together(self) -> Spec:
        def refuse(where: str, message: str) -> NoReturn:
            raise Refusal(f"{where} {message}")

        try:
            self._judge(refuse)
        except Refusal:
            raise
        except (ArithmeticError, ValueError) as error:
            self._check_written(refuse)  # if one number alone is the cause, this message is better
            raise NotComputed from error
        return self

    def _judge(self, refuse: Refuse) -> None:
        self._check_input(refuse)
        self._check_label(refuse)
        if self.target is not None and self.target.name is None:
            for key in ("flash", "instructions", "cycles"):
                if getattr(self.target, key) is not None:
                    refuse(f"[target] {key}", "depends on the CPU; give name, too")
        if self.label_kind not in self.family.programs:
            refuse("[label] classes", f"is missing; {self.learning.rule} tells classes apart, so they must be given")
        for section, key, field, value in self.given_keys():
            if value == field.default:
                continue  # it changes nothing
            wrong = [self.why_ignored(section, key)]
            wrong += [
                mark.wrong(value, self.precision) for mark in field.metadata if isinstance(mark, (Within, Fading))
            ]
            for sentence in filter(None, wrong):
                refuse(f"[{section}] {key}", sentence)
        self.family.validate(self, refuse)
        self.check_size(refuse)
        self._check_written(refuse)
        self._check_parameters()

    def _check_input(self, refuse: Refuse) -> None:
        names, dim = self.input.columns, self.input.dim
        if names is None and dim is None:
            refuse("[input]", 'says nothing of the inputs; give columns = ["…"] or dim = …')
        if names is not None and dim not in (None, len(names)):
            refuse("[input] dim", f"is {dim}, but columns holds {len(names)} names; leave dim out")
        if len(self.formulas) < len(self.input.formulas or ()):
            refuse(
                "[input] formulas",
                'must be one for each of some inputs, such as "NAME = 2 * pressure", with a name of columns',
            )
        if isinstance(self.input, StandardisedInput) and self.input.horizon < self.input.warmup:
            refuse(
                "[input] horizon",
                f"is {self.input.horizon}; it must be at least warmup, {self.input.warmup}, or learning never begins",
            )
        missing.validate(self, refuse)

    def check_size(self, refuse: Refuse) -> None:
        """Refuse a model that takes too many bytes.  The sentence names the key that probably makes it large."""
        if (taken := self.numbers * self.real.alignment) <= STATE_LIMIT:
            return
        where, value = "[input] dim", self.dim
        for section, key in (("learning", "features"), ("learning", "samples"), ("reduction", "n_max")):
            if self.has(section, key) and (given := getattr(getattr(self, section), key)) is not None:
                where, value = f"[{section}] {key}", given
        takes = f"takes {taken:,} bytes; they must be at most {STATE_LIMIT:,}"
        refuse(where, f"is {value}, which {takes}")

    def given_keys(self) -> Iterator[tuple[str, str, FieldInfo, Any]]:
        """Section, name, declaration and value of each key of the sections that the spec has."""
        for section in type(self).model_fields:
            given = getattr(self, section)
            for key, field in type(given).model_fields.items() if isinstance(given, Section) else ():
                yield section, key, field, getattr(given, key)

    @property
    def _held(self) -> np.finfo:
        """The type that must hold the spec's numbers; float32 for models of integers, whose inputs and labels come as
        float.
        """
        return np.finfo(np.float32 if self.real.is_int16 else self.real.dtype)

    def _check_written(self, refuse: Refuse) -> None:
        """Refuse a number of the spec that the precision cannot hold: it would overflow, become 0, or round to its
        limit.
        """
        rounded = self._held.dtype.type
        for section, key, field, value in self.given_keys():
            if not isinstance(value, (float, tuple)):
                continue
            if (wrong := _beyond(value, self._held)) is not None:
                number, rest = wrong
                verb = "holds" if isinstance(value, tuple) else "is"
                refuse(
                    f"[{section}] {key}", f"{verb} {number:g}; choose a number that {self._held.dtype} can hold: {rest}"
                )
            for end in limits_of(field):
                if isinstance(value, float) and value != end and rounded(value) == rounded(end):
                    refuse(
                        f"[{section}] {key}",
                        f"is {value!r}, which {self._held.dtype} does not tell from {end:g}; choose another number",
                    )

    def _check_parameters(self) -> None:
        """Refuse a spec if a parameter that follows from it does not fit into the kernels' types, real or integer."""
        program, values = self._around(self._family_program), self.config_values
        for name, kind in program.parameters.items():
            value = values[name]
            scalar = kind.scalar if isinstance(kind, Array) else kind
            if scalar is Real:
                wrong = _beyond(value, self._held)
            elif scalar in INTEGERS:
                wrong = _beyond(value, np.iinfo(scalar.dtype(self.real)))  # type: ignore[union-attr]
            else:
                continue  # a choice
            if wrong is not None:
                number, rest = wrong
                raise NotComputed(
                    f"its numbers lead to the parameter {name} = {number:g}, which {self.precision} cannot hold: {rest}"
                )
        program.settings(self.real, values, self.capacities)  # raises if a table's shape does not fit its extents

    def _check_label(self, refuse: Refuse) -> None:
        label = self.label
        given = [name for name in ("column", "columns", "outputs") if getattr(label, name) is not None]
        if label.columns is not None and label.column is not None:
            refuse("[label]", "has both column and columns; give the one or the other")
        if label.columns is not None and label.outputs not in (None, len(label.columns)):
            refuse("[label] outputs", f"is {label.outputs}, but columns holds {len(label.columns)} names; leave it out")
        if label.column is not None and (label.outputs or 1) > 1:
            refuse("[label] outputs", f"is {label.outputs}, but column names one label; give columns")
        if label.classes is not None and set(given) - {"column"}:
            refuse("[label]", f"has both classes and {given[-1]}; a classifier has one label, its class")
        if self.forecasts:
            self._check_forecast(refuse)
        elif self.input.columns:
            for name in self.label_columns:
                if name in self.input.columns:
                    where = "column" if label.column else "columns"
                    refuse(f"[label] {where}", f"is {name!r}, which is also an input; a model must not see its label")
        self._check_bounds(refuse)

    def _check_bounds(self, refuse: Refuse) -> None:
        limits, label = self.input.max_abs, self.label
        if isinstance(limits, tuple) and len(limits) != self.dim:
            refuse("[input] max_abs", f"holds {len(limits)} numbers; it must hold {self.dim}, one for each input")
        bounds = [bound for bound in (label.low, label.high) if bound is not None]
        if bounds and label.classes is not None:
            refuse("[label]", "has both classes and low or high; a class has no bounds")
        for name in ("low", "high"):
            if abs(getattr(label, name) or 0.0) > label.max_abs:
                refuse(
                    f"[label] {name}",
                    f"is {getattr(label, name):g}; it must be within max_abs, {label.max_abs:g}",
                )
        if bounds != sorted(set(bounds)):
            refuse("[label] low", f"is {label.low:g}; it must be below high, {label.high:g}")

    def _check_forecast(self, refuse: Refuse) -> None:
        signal = self.signal
        assert signal is not None and self.label.column is not None
        measured = signal.of_channels[signal.channels.index(self.label.column)]
        if signal.window is not None and "mean" not in measured:
            refuse(
                "[label] column",
                f'is {self.label.column!r}, whose mean is what comes; add "mean" to the features of that channel',
            )
        if self.label.classes is not None:
            refuse("[label] classes", "is for labels that are no numbers, and a channel is one; leave it out")

    def __getattr__(self, name: str) -> Any:
        """A section that other families have.

        It is None if several families share the section; else AttributeError.
        """
        if name in ("kernel", "expansion", "linear"):
            return None
        if TYPE_CHECKING:
            return None
        return super().__getattr__(name)

    # ---- what kernels and the generator take

    @property
    def family(self) -> Family:
        """The family of the model."""
        return self.models

    def has(self, section: str, key: str) -> bool:
        """Whether a key has an effect: the family declares the key for this rule, and no other key switches it off."""
        declared = ((s, k) for s, k, _ in fields_of(type(self), self.learning.rule))
        return (section, key) in declared and self.why_ignored(section, key) is None

    def why_ignored(self, section: str, key: str) -> str | None:
        """Why a key has no effect beside the spec's other keys, and what to do; None if it has an effect."""
        field = type(self).model_fields[section]
        kind = section_of(field)
        assert kind is not None
        marks = (mark for mark in (*field.metadata, *kind.model_fields[key].metadata) if isinstance(mark, Counts))
        return next(filter(None, (mark.why_ignored(self) for mark in marks)), None)

    @property
    def forecasts(self) -> bool:
        """Whether the label is a channel of the signal, some steps later."""
        return self.signal is not None and self.label.column in self.signal.channels

    @property
    def inner(self) -> Spec:
        """The model inside of a signal stage: its inputs are the features."""
        if self.signal is None:
            return self
        # formulas are of channels, which the inner model does not know
        own: dict[str, Any] = {"formulas": None} if self.input.formulas else {}
        if "sensors" in type(self.input).model_fields and getattr(self.input, "sensors", None) is None:
            own["sensors"] = signals.sensors_of(self.signal)
        changed = {"input": self.input.model_copy(update=own)} if own else {}
        return self.model_copy(update={"signal": None, **changed})

    def model_copy(self, **how: Any) -> Self:
        copy = super().model_copy(**how)
        vars(copy).pop("config", None)  # it is of the original's keys
        return copy

    @property
    def width(self) -> int:
        """How many numbers a sample has before the signal stage: channels with a signal stage, else inputs."""
        return self.dim if self.signal is None else len(self.signal.channels)

    @property
    def sample_columns(self) -> tuple[str, ...] | None:
        """Names of a sample's numbers, as in the header of the data; None if the spec has no names."""
        return self.input.columns if self.signal is None else self.signal.channels

    @property
    def names(self) -> dict[str, tuple[str | None, ...]]:
        """Names whose order decides what numbers mean: of a sample's numbers and then the labels, None where there is none; of classes."""
        inputs = self.sample_columns or (None,) * self.width
        return {"columns": (*inputs, *self.label_columns), "classes": self.label.classes or ()}

    @property
    def formulas(self) -> dict[int, str]:
        """Position in a sample -> how the firmware computes this number; of those of which it is known."""
        found = {}
        for line in self.input.formulas or ():
            begins = {
                j: f"{name} = " for j, name in enumerate(self.sample_columns or ()) if line.startswith(f"{name} = ")
            }
            if begins:
                j = max(begins, key=lambda i: len(begins[i]))
                found[j] = line.removeprefix(begins[j])
        return found

    @property
    def stride(self) -> int:
        """Raw samples between two samples of the inner model; 1 without a signal stage."""
        return 1 if self.signal is None else self.signal.step

    @property
    def program(self) -> Program:
        return self._around(self._inner_program)

    def _around(self, program: Program) -> Program:
        """The program within the signal stage, if there is one."""
        return program if self.signal is None else with_signal(program, self.forecasts)

    @property
    def _family_program(self) -> Program:
        """The family's program, with the stage that completes samples if there is one."""
        return missing.around(self, self.family.programs[self.label_kind])

    @property
    def _inner_program(self) -> Program:
        program = self._family_program
        if self.kernel is None or self.kernel.function != "custom":
            return program
        if self._custom is None:
            raise UserError(f"{self.name}: the custom kernel is not there; make the spec with load_spec or make_spec")
        return program.with_kernel(self._custom)

    @property
    def custom(self) -> Kernel | None:
        """The custom kernel; None where the kernel is one of the project's."""
        return self._custom

    @property
    def default(self) -> dict[str, Any] | None:
        """How the spec got its rule, see ``defaults.chosen``; None if it names its own."""
        return self._chosen.report

    @property
    def dim(self) -> int:
        return self.input.dim if self.input.dim is not None else len(self.input.columns or ())

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Names of the labels in the data; empty where the spec has none."""
        return self.label.columns or ((self.label.column,) if self.label.column else ())

    @property
    def label_kind(self) -> LabelKind:
        """The kind of label that the update takes: a number, several numbers, a class index, or none."""
        if self.label.classes is not None:
            return "class"
        if "none" in self.family.programs and self._nameless:
            return "none"
        return "real" if self.outputs == 1 else "reals"

    @property
    def _nameless(self) -> bool:
        """Whether no key of the spec says that there are labels."""
        label = self.label
        return label.column is None and label.columns is None and label.outputs is None

    @property
    def outputs(self) -> int:
        """How many functions are learned: one for each label; for classes, one if there are two, else one for each; 1
        without labels.
        """
        if self.label.classes is not None:
            return 1 if len(self.label.classes) == 2 else len(self.label.classes)
        return len(self.label.columns) if self.label.columns is not None else self.label.outputs or 1

    @property
    def label_max_abs(self) -> float:
        """The largest magnitude of a function's target value.  For classes it is 1: the targets are -1 and 1."""
        return 1.0 if self.label_kind == "class" else self.label.max_abs

    @property
    def length_scale(self) -> float:
        """The typical distance between inputs, from the kernel's width."""
        kernel = self.kernel
        if kernel is not None and kernel.sigma is not None:
            return float(kernel.sigma)
        if kernel is not None and kernel.gamma is not None:
            if kernel.function in ("laplacian", "matern12", "matern32", "matern52"):
                return 1 / float(kernel.gamma)
            if kernel.function in ("gaussian", "rational-quadratic"):
                return math.sqrt(0.5 / kernel.gamma)
        return min(1.0, self.input_max_abs)

    @property
    def input_max_abs(self) -> float:
        """The largest magnitude that any input may have."""
        return float(np.abs(self.input_ranges).max())

    @property
    def input_ranges(self) -> np.ndarray:
        """The smallest and the largest value of each input that is accepted, (2, DIM)."""
        limits = np.array(self.input.max_abs, float)
        center = np.array(self.scaling[0] or 0.0) if limits.ndim else 0.0
        return np.array(np.broadcast_arrays(center - limits, center + limits, np.zeros(self.dim))[:2])

    @property
    def scaling(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """(center, scale): the scaled input is (x - center) * scale; None for either if there is none."""
        return (self.input.center, self.input.scale) if isinstance(self.input, ScaledInput) else (None, None)

    @property
    def completes(self) -> bool:
        """Whether something stands in for missing inputs."""
        return missing.choice(self) != "refuse"

    @property
    def standardises(self) -> bool:
        """Whether the kernel sees inputs in running standard deviations."""
        return isinstance(self.input, StandardisedInput) and self.input.standardise

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """The inverse of the scaling, (samples, DIM): inputs in the data's units for scaled inputs x."""
        center, scale = self.scaling
        x = x if scale is None else x / np.array(scale)
        return x if center is None else x + np.array(center)

    # ---- inputs, labels and answers, in their units and as the C takes and gives them

    @property
    def number(self) -> np.dtype:
        """The type of inputs and answers in their units: the type in C; float64 for models of integers."""
        return np.dtype(np.float64) if self.real.is_int16 else self.real.dtype

    @property
    def label_number(self) -> np.dtype:
        """The type of labels in their units; int32 for class indices."""
        return np.dtype(np.int32) if self.label_kind == "class" else self.number

    def accepted(self, x: np.ndarray) -> np.ndarray:
        """For each number of x: whether it is within its limit, or is missing and something stands in for it."""
        if self.signal is None:
            low, high = self.input_ranges.astype(self.number)
        else:
            low, high = self.number.type(-self.signal.most), self.number.type(self.signal.most)
        within = np.asarray((x >= low) & (x <= high))
        return within | np.isnan(x) if self.completes else within

    def accepts(self, x: np.ndarray) -> np.ndarray:
        """For each row: whether all of its inputs are within their limits, (samples,)."""
        return np.asarray(self.accepted(x).all(axis=1))

    def limit_told(self, j: int) -> str:
        """Words for the limit of input j."""
        if not isinstance(self.input.max_abs, tuple):
            return f"{self.input.max_abs:g}"
        center = self.scaling[0] or (0.0,) * self.dim
        return f"{self.input.max_abs[j]:g} from the center, {center[j]:g}"

    def raw_inputs(self, x: Any) -> np.ndarray:
        """Inputs, (samples, DIM), in the type that the C takes."""
        with np.errstate(over="ignore"):  # a number beyond the precision becomes infinite, which is beyond the limit
            return np.array(x, self.real.dtype, order="C", ndmin=2)

    def as_seen(self, x: np.ndarray) -> np.ndarray:
        """Inputs as the device sees them, in their own units."""
        return x

    def raw_labels(self, y: Any) -> np.ndarray:
        """Labels that are numbers, in the type that the C takes."""
        with np.errstate(over="ignore"):
            return np.array(y, self.program.label_dtype(self.real), order="C")

    def in_units(self, question: str, answers: np.ndarray) -> np.ndarray:
        """A question's answers in the units of the labels."""
        return answers

    @property
    def real(self) -> Precision:
        return PRECISIONS[self.precision]

    @property
    def capacities(self) -> dict[str, int]:
        own = self.family.capacities(self)
        return own if self.signal is None else own | signals.capacities(self.signal, self.forecasts)

    @property
    def _unread(self) -> tuple[str, ...]:
        """Large fields of the memory that the C does not have."""
        return ()

    @property
    def numbers(self) -> int:
        """About how many numbers the memory and the tables hold."""
        program, capacities = self._around(self._family_program), self.capacities
        tables = (kind.shape(capacities) for kind in program.parameters.values() if isinstance(kind, Array))
        memory = layout(program.structs, self.real, capacities, self._unread).nbytes // self.real.alignment
        return memory + sum(math.prod(shape) for shape in tables)

    def rehearsed(self, most: int, budget: int = 0) -> int:
        """How many samples, at most so many, the self-test learns if these fill a budget first; see ``affordable``."""
        return affordable(most, lambda m: filling(m, budget) * self.numbers)

    @property
    def config_values(self) -> dict[str, Any]:
        """Values of the configs' fields, computed in float64.  Each is rounded once, when the precision is bound."""
        own = self.family.parameters(self)
        if self.signal is None:
            return own
        program = self._around(self._family_program)
        return own | self.signal_values(self.signal, any(entry.kind == "label" for entry in program.entries))

    def signal_inputs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Keys of [input] that follow from the signal.  given: the keys that the user wrote."""
        assert self.signal is not None
        return signals.inputs_of(self.signal)

    def signal_values(self, signal: SignalSection, awaits: bool) -> dict[str, Any]:
        """Parameters of the signal stage.  awaits: whether the labels come later, from the firmware."""
        return signals.parameters(signal, self.label.column, awaits)

    @property
    def feature_units(self) -> tuple[np.ndarray, np.ndarray]:
        """The value of 1, in physical units, in each measure and in each feature, as the signal stage stores them."""
        return np.ones(1), np.ones(1)

    @functools.cached_property
    def config(self) -> Settings:
        return self.program.settings(self.real, self.config_values, self.capacities)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms that decide the model's bits, as in ``pykernel.algorithms.revisions``."""
        kernel, staged = self.kernel, self.config
        used = [self.learning.rule]
        if kernel is not None and kernel.function != "custom":
            used.append(f"{kernel.function} kernel")
        if any(getattr(staged, choice, False) for choice in ("standardises", "follows", "mixes")):
            used.append("stages")
        if self.completes:
            used.append("missing")
        if self.signal is not None:
            used.append("signal")
        return tuple(f"{name} int16" if self.real.is_int16 else name for name in used)

    def memory(self, drop: tuple[str, ...] = ()) -> Memory:
        return self.program.memory(self.real, self.capacities, drop)

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        """Section -> key -> value, for keys whose values follow from other keys if they are not given."""
        if self.signal is None:
            return {}
        windowed = {"hop": self.signal.step} if self.signal.window is not None else {}
        return {"signal": {"lags": [0]} | windowed}

    def to_toml(self, complete: bool = False) -> str:
        """The spec as the text of a TOML file.  Keys that were not given are left out, but for ``format``.

        complete: write every key that has an effect, with its value; so a changed default of a later version does not
        change the model.  A key without a value is left out, which means that there is none.
        """
        given: dict[str, Any] = {"name": self.name, "format": FORMAT}
        given |= self.model_dump(mode="json", exclude={"format"}, exclude_unset=not complete)
        if complete:
            for section, keys in self.derived.items():
                given[section] |= {key: value for key, value in keys.items() if given[section][key] is None}
            for section, content in given.items():
                if isinstance(content, dict):
                    given[section] = {
                        key: value for key, value in content.items() if section == "training" or self.has(section, key)
                    }
        if self.signal is not None:  # keys that follow from the signal are left out
            written = {key: value for key, value in given["input"].items() if key != "max_abs"}
            own = self.signal_inputs(written)
            given["input"] = {key: value for key, value in given["input"].items() if value != own.get(key)}
        lines = [
            f"{key} = {_toml(value)}"
            for key, value in given.items()
            if not isinstance(value, dict) and value is not None
        ]
        for section, content in given.items():
            if isinstance(content, dict):
                lines += ["", f"[{section}]"] + [f"{k} = {_toml(v)}" for k, v in content.items() if v is not None]
        return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML has it; a table of numbers with a line for each row, formulas with a line for each."""
    if isinstance(value, (list, tuple)):
        if value and (isinstance(value[0], (list, tuple)) or " = " in str(value[0])):
            return "[\n" + "".join(f"    {_toml(row)},\n" for row in value) + "]"
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        known = {key: each for key, each in value.items() if each is not None}
        return "{" + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in known.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
