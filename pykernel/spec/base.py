"""``Spec`` checks that the keys of a spec go together, and computes the values that the kernels and the generator need.

Each family has a subclass of ``Spec`` with the sections that the family declares.  ``pykernel.spec.model`` reads the
rule and chooses the subclass for it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from pydantic import PrivateAttr, model_validator

from pykernel.algorithms.doubt import Doubts
from pykernel.algorithms.signal.program import with_signal
from pykernel.dialect import INTEGERS, Array, Kernel, Memory, Real, layout
from pykernel.dialect.program import LabelKind, Program, Settings
from pykernel.errors import UserError
from pykernel.report import sections
from pykernel.spec import expert, missing
from pykernel.spec import signal as signals
from pykernel.spec.defaults import Chosen
from pykernel.spec.family import STATE_LIMIT, Family, Refuse, affordable, filling
from pykernel.spec.keys import Keys
from pykernel.spec.sections import (
    Fading,
    StandardisedInput,
    Within,
    limits_of,
)
from pykernel.spec.signal import SignalSection


class Refusal(ValueError):
    """An error in a spec.  Its text is a sentence that says what is wrong and what would be right."""


class NotComputed(Exception):
    """Each number in the spec is allowed, but no model can be computed from this combination of numbers."""

    def __init__(
        self, sentence: str = "no model can be computed, because some numbers in the spec are too large or too small"
    ) -> None:
        super().__init__(sentence)


Names = Mapping[str, Sequence[str | None]]
"""Kind of name -> the names in order, as in ``Spec.names``."""


def _beyond(values: Any, held: np.finfo | np.iinfo) -> tuple[float, str] | None:
    """Return (number, phrase) for the first number in ``values`` that the type cannot hold, or None if it can hold all of
    them.  The phrase states the type's limit.

    A number in a table may underflow; a single number must not.
    """
    if isinstance(values, tuple) and values:
        if isinstance(values[0], str):
            return None
        values = np.concatenate([np.atleast_1d(np.asarray(row, float)) for row in values])
    found = np.asarray(values, float)
    # the negated condition is also true for NaN
    if len(outside := found[~((found >= float(held.min)) & (found <= float(held.max)))].ravel()):
        return float(outside[0]), f"the largest number is {float(held.max):.2g}"
    if isinstance(held, np.finfo) and found.ndim == 0 and 0 < abs(found) < held.tiny:
        return float(found), f"the smallest number above 0 is {float(held.tiny):.2g}"
    return None


def require_order(known: Names, actual: Names, where: str, whose: str) -> None:
    """Raise UserError if a known name is at another position in ``actual``.  New names are allowed, because columns may be
    renamed.

    where, whose: the owners of the known names and of the actual names, for the message, which shows both orders.
    """
    for what, names in known.items():
        for at, (name, other) in enumerate(zip(names, actual.get(what, ()), strict=False)):
            if name != other and None not in (name, other) and (name in actual[what] or other in names):
                mine, others = (", ".join(map(str, each[at : at + 8])) for each in (names, actual[what]))
                raise UserError(
                    f"{where}: its {what}{f', starting with number {at + 1},' * (at > 0)} are {mine}, but {whose} has {others}; keep the "
                    "original order: the model has learned positions, not names"
                )


class Spec(Keys):
    """The complete description of a model.  Its fields are the keys and sections of the TOML file, which ``load_spec`` reads."""

    _custom: Kernel | None = PrivateAttr(None)
    _chosen: Chosen = PrivateAttr(Chosen())
    models: ClassVar[Family]
    """The family, if all specs of this class belong to a single family."""

    def _repr_html_(self) -> str:
        return sections.spec_keys(self.name, self.learning.rule, self.given_keys())._repr_html_()

    @model_validator(mode="after")
    def _together(self) -> Spec:
        def refuse(where: str, message: str) -> NoReturn:
            raise Refusal(f"{where} {message}")

        try:
            self._judge(refuse)
        except Refusal:
            raise
        except (ArithmeticError, ValueError) as error:
            self._check_written(refuse)  # if a single number is the cause, this check names it
            raise NotComputed from error
        return self

    def _judge(self, refuse: Refuse) -> None:
        self._check_input(refuse)
        self._check_label(refuse)
        if self.target is not None and self.target.name is None:
            for key in ("flash", "instructions", "cycles"):
                if getattr(self.target, key) is not None:
                    refuse(f"[target] {key}", "depends on the CPU; give [target] name, too")
        if {*self.family.programs} == {"none"} and self.label_kind != "none":
            refuse("[label]", f"must be left out: {self.learning.rule} learns without labels")
        if self.label_kind not in self.family.programs:
            refuse(
                "[label] classes", f"is missing; {self.learning.rule} separates classes, so the classes must be named"
            )
        for section, key, field, value in self.given_keys():
            if value == field.default:
                continue  # the default changes nothing
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
            refuse("[input]", 'does not describe the inputs; give columns = ["…"] or dim = …')
        if names is not None and dim not in (None, len(names)):
            refuse("[input] dim", f"is {dim}, but columns holds {len(names)} names; leave dim out")
        if len(self.formulas) < len(self.input.formulas or ()):
            refuse(
                "[input] formulas",
                'must each define a different input, as in "NAME = 2 * pressure", where NAME is one of the names in columns',
            )
        if isinstance(self.input, StandardisedInput) and self.input.horizon < self.input.warmup:
            refuse(
                "[input] horizon",
                f"is {self.input.horizon}; it must be at least {self.input.warmup}, the value of warmup, or learning never begins",
            )
        missing.validate(self, refuse)

    def check_size(self, refuse: Refuse) -> None:
        """Refuse a model that needs more than ``STATE_LIMIT`` bytes.  The message names the key whose value is probably too large."""
        if (taken := self.numbers * self.real.alignment) <= STATE_LIMIT:
            return
        where, value = "[input] dim", self.dim
        for section, key in (("learning", "features"), ("learning", "samples"), ("reduction", "n_max")):
            if self.has(section, key) and (given := getattr(getattr(self, section), key)) is not None:
                where, value = f"[{section}] {key}", given
        takes = f"takes {taken:,} bytes; at most {STATE_LIMIT:,} are allowed"
        refuse(where, f"is {value}, which {takes}")

    @property
    def _held(self) -> np.finfo:
        """The type that must be able to hold the spec's numbers.  For integer models, this type is float32, because
        their inputs and labels are given as floats.
        """
        return np.finfo(np.float32 if self.real.is_int16 else self.real.dtype)

    def _check_written(self, refuse: Refuse) -> None:
        """Refuse numbers that overflow, become 0, or become equal to a limit of their key when rounded to the model's precision."""
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
                        f"is {value!r}, which {self._held.dtype} cannot distinguish from {end:g}; choose another number",
                    )

    def _check_parameters(self) -> None:
        """Refuse a spec if it gives a parameter of the kernels a value that the parameter's type cannot hold."""
        program, values = self._around(self._family_program), self.config_values
        for name, kind in program.parameters.items():
            value = values[name]
            scalar = kind.scalar if isinstance(kind, Array) else kind
            if scalar is Real:
                wrong = _beyond(value, self._held)
            elif scalar in INTEGERS:
                wrong = _beyond(value, np.iinfo(scalar.dtype(self.real)))  # type: ignore[union-attr]
            else:
                continue  # an enum or a bool, not a number
            if wrong is not None:
                number, rest = wrong
                raise NotComputed(
                    f"with the numbers in the spec, the parameter {name} is {number:g}, which its type cannot hold: {rest}"
                )
        program.settings(self.real, values, self.capacities)  # raises if a table's shape does not fit its extents

    def _check_label(self, refuse: Refuse) -> None:
        label = self.label
        given = [name for name in ("column", "columns", "outputs") if getattr(label, name) is not None]
        if label.columns is not None and label.column is not None:
            refuse("[label]", "has both column and columns; give only one of them")
        if label.columns is not None and label.outputs not in (None, len(label.columns)):
            refuse(
                "[label] outputs",
                f"is {label.outputs}, but columns holds {len(label.columns)} names; leave outputs out",
            )
        if label.column is not None and (label.outputs or 1) > 1:
            refuse(
                "[label] outputs",
                f"is {label.outputs}, but column holds a single name; give {label.outputs} names in columns instead",
            )
        if label.classes is not None and set(given) - {"column"}:
            refuse("[label]", f"has both classes and {given[-1]}; a classifier has a single label, the class")
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
            refuse("[label]", "has classes, and also low or high; a class has no bounds: leave low and high out")
        for name in ("low", "high"):
            if (bound := getattr(label, name)) is not None and not self.within_limit(bound):
                refuse(f"[label] {name}", f"is {bound:g}; it must be within max_abs ({self.label_limit_told})")
        if bounds != sorted(set(bounds)):
            refuse("[label] low", f"is {label.low:g}; it must be below {label.high:g}, the value of high")

    def _check_forecast(self, refuse: Refuse) -> None:
        signal = self.signal
        assert signal is not None and self.label.column is not None
        measured = signal.of_channels[signal.channels.index(self.label.column)]
        if signal.window is not None and "mean" not in measured:
            refuse(
                "[label] column",
                f'is {self.label.column!r}, whose mean is forecast; add "mean" to the features of that channel',
            )
        if self.label.classes is not None:
            refuse(
                "[label] classes", "cannot be used for a forecast, because a channel holds numbers; leave classes out"
            )

    # ---- for the kernels and the generator

    @property
    def family(self) -> Family:
        """The family of the model."""
        return self.models

    @property
    def inner(self) -> Spec:
        """The spec of the model behind the signal stage, whose inputs are the features; ``self`` if there is no signal stage."""
        if self.signal is None:
            return self
        # formulas describe channels, which the inner model does not have
        own: dict[str, Any] = {"formulas": None} if self.input.formulas else {}
        if "sensors" in type(self.input).model_fields and getattr(self.input, "sensors", None) is None:
            own["sensors"] = signals.sensors_of(self.signal)
        changed = {"input": self.input.model_copy(update=own)} if own else {}
        return self.model_copy(update={"signal": None, **changed})

    def model_copy(self, **how: Any) -> Self:
        copy = super().model_copy(**how)
        vars(copy).pop("config", None)  # the cached config belongs to the original spec
        return copy

    @property
    def program(self) -> Program:
        return self._around(self._inner_program)

    def _around(self, program: Program) -> Program:
        """Return ``program``, wrapped in a signal stage if the spec has [signal]."""
        return program if self.signal is None else with_signal(program, self.forecasts)

    @property
    def _family_program(self) -> Program:
        """The family's program.  If the spec replaces missing inputs, the program includes a stage that does so."""
        return missing.around(self, self.family.programs[self.label_kind])

    @property
    def _inner_program(self) -> Program:
        program = self._family_program
        if self.kernel is None or self.kernel.function != "custom":
            return program
        if self._custom is None:
            raise UserError(f"{self.name}: the custom kernel is missing; make the spec with load_spec or make_spec")
        return program.with_kernel(self._custom)

    @property
    def custom(self) -> Kernel | None:
        """The custom kernel; None if the kernel is built in."""
        return self._custom

    @property
    def default(self) -> dict[str, Any] | None:
        """What ``defaults.chosen`` reports about the default rule; None if the spec names a rule."""
        return self._chosen.report

    @property
    def label_kind(self) -> LabelKind:
        """The kind of label that the update takes: a number, several numbers, a class index, or none."""
        if self.label.classes is not None:
            return "class"
        says = self.label.column, self.label.columns, self.label.outputs
        if "none" in self.family.programs and says == (None, None, None):
            return "none"
        return "real" if self.outputs == 1 else "reals"

    @property
    def label_max_abs(self) -> float:
        """The largest magnitude of a function's target value.  For classes it is 1: the targets are -1 and 1."""
        return 1.0 if self.label_kind == "class" else self.label.max_abs

    @property
    def label_offset(self) -> float:
        """The value of a label that the C code represents as 0."""
        return float(getattr(self.label, "offset", 0.0))

    @property
    def label_limit_told(self) -> str:
        return f"{self.label.max_abs:g}{f', measured from {self.label_offset:.9g}' if self.label_offset else ''}"

    def within_limit(self, y: Any) -> Any:
        """Return a Boolean array with the shape of y, which is True for the labels within the limit.  The labels must be numbers."""
        return np.abs(y - self.label_offset) <= self.label.max_abs

    # ---- inputs, labels and outputs, in the user's units and in the types of the C code

    @property
    def number(self) -> np.dtype:
        """The NumPy type of inputs and outputs in the user's units: the C type, or float64 for integer models."""
        return np.dtype(np.float64) if self.real.is_int16 else self.real.dtype

    @property
    def label_number(self) -> np.dtype:
        """The NumPy type of labels in the user's units: ``number``, or int32 for class indices."""
        return np.dtype(np.int32) if self.label_kind == "class" else self.number

    def accepted(self, x: np.ndarray) -> np.ndarray:
        """Return a Boolean array with the shape of x, which is True for the numbers that are within their limits, or
        are missing and will be replaced.
        """
        if self.signal is None:
            low, high = self.input_ranges.astype(self.number)
        else:
            low, high = self.number.type(-self.signal.most), self.number.type(self.signal.most)
        within = np.asarray((x >= low) & (x <= high))
        return within | np.isnan(x) if self.completes else within

    def accepts(self, x: np.ndarray) -> np.ndarray:
        """Return a Boolean array, (samples,), which is True for the rows of x in which all inputs are accepted."""
        return np.asarray(self.accepted(x).all(axis=1))

    def raw_inputs(self, x: Any) -> np.ndarray:
        """Convert inputs, (samples, DIM), to the type that the C code takes."""
        # a number too large for the precision becomes infinite, and is then refused, because it exceeds its limit
        with np.errstate(over="ignore"):
            return np.array(x, self.real.dtype, order="C", ndmin=2)

    def as_seen(self, x: np.ndarray) -> np.ndarray:
        """Return the inputs after their conversion to the device's type, in the user's units."""
        return x

    def raw_labels(self, y: Any) -> np.ndarray:
        """Convert labels that are numbers to the type that the C code takes."""
        with np.errstate(over="ignore"):
            return np.array(y, self.program.label_dtype(self.real), order="C")

    def in_units(self, question: str, answers: np.ndarray) -> np.ndarray:
        """Convert the values that NAME_<question> writes to the units of the labels."""
        return answers

    @property
    def capacities(self) -> dict[str, int]:
        own = self.family.capacities(self) | expert.extents(getattr(self, "mixture", None), self.dim, self.outputs)
        return own if self.signal is None else own | signals.capacities(self.signal, self.forecasts)

    @property
    def _unread(self) -> tuple[str, ...]:
        """Large memory fields that the C code omits because it never reads them."""
        return ()

    @property
    def numbers(self) -> int:
        """The approximate count of numbers in the memory and in the tables."""
        program, capacities = self._around(self._family_program), self.capacities
        tables = (kind.shape(capacities) for kind in program.parameters.values() if isinstance(kind, Array))
        memory = layout(program.structs, self.real, capacities, self._unread).nbytes // self.real.alignment
        return memory + sum(math.prod(shape) for shape in tables)

    def rehearsed(self, most: int, budget: int = 0) -> int:
        """Return the number of samples that the self-test learns: ``most``, or fewer if ``most`` samples would
        read and write too many numbers (see ``affordable``).

        budget: the number of samples that fill the memory step by step (see ``filling``).
        """
        return affordable(most, lambda m: filling(m, budget) * self.numbers)

    @property
    def config_values(self) -> dict[str, Any]:
        """Values of the configs' fields, computed in float64.  Each value is rounded once, to the model's precision."""
        own = self.family.parameters(self)
        if self.signal is None:
            return own
        program = self._around(self._family_program)
        return own | self.signal_values(self.signal, any(entry.kind == "label" for entry in program.entries))

    def signal_values(self, signal: SignalSection, awaits: bool) -> dict[str, Any]:
        """Parameters of the signal stage.  awaits: whether the firmware gives the labels later, in a separate call."""
        return signals.parameters(signal, self.label.column, awaits)

    @property
    def feature_units(self) -> tuple[np.ndarray, np.ndarray]:
        """The physical values that a stored 1 stands for: one array for the measures of the signal stage, and one for its features."""
        return np.ones(1), np.ones(1)

    @functools.cached_property
    def config(self) -> Settings:
        return self.program.settings(self.real, self.config_values, self.capacities)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Names of the algorithms that determine the bits of the model's results, as in ``pykernel.algorithms.revisions``."""
        kernel, staged = self.kernel, self.config
        used = [self.learning.rule]
        if kernel is not None and kernel.function != "custom":
            used.append(f"{kernel.function} kernel")
        if any(getattr(staged, choice, False) for choice in ("standardises", "follows", "mixes")):
            used.append("stages")
        if self.completes:
            used.append("missing")
        if getattr(staged, "doubts", 0) >= Doubts.DISTANCES:
            used.append("doubt")
        if self.signal is not None:
            used.append("signal")
        return tuple(f"{name} int16" if self.real.is_int16 else name for name in used)

    def memory(self, drop: tuple[str, ...] = ()) -> Memory:
        return self.program.memory(self.real, self.capacities, drop)
