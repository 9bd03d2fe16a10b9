"""The keys that every model has, the values that follow from these keys, and their TOML text.

Each family has a subclass of ``Spec`` (``pykernel.spec.base``) with the sections that the family declares.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, field_validator
from pydantic.fields import FieldInfo

from pykernel.dialect import PRECISIONS, Precision
from pykernel.dialect.reserved import C_KEYWORDS, SYSTEM_HEADERS
from pykernel.spec import missing
from pykernel.spec import signal as signals
from pykernel.spec.sections import (
    Counts,
    Input,
    Label,
    Learning,
    ScaledInput,
    Section,
    StandardisedInput,
    TargetSection,
    Trained,
    fields_of,
    section_of,
    shown_value,
)
from pykernel.spec.signal import SignalSection

FORMAT: Literal[1] = 1
"""Version of a spec's keys and of their meaning, as in docs/versions.md."""


def is_prefix(name: str) -> bool:
    """Return whether a name is allowed as the prefix of names in C."""
    return re.fullmatch(r"[a-z](_?[a-z0-9])*", name) is not None and len(name) <= 31


def checked_name(name: str) -> str:
    """Return ``name`` if a model can have this name.  Otherwise, raise a ValueError whose text completes a sentence
    that begins with the key.
    """
    if not is_prefix(name):
        raise ValueError(
            f"is {shown_value(name)}; it must have 1 to 31 characters (a-z, 0-9, single '_'), start with a letter and not end with '_', "
            "because C symbols and files are named after the model"
        )
    if name in C_KEYWORDS or re.fullmatch(r"pk|u?int\d*|u?int(_least|_fast)?\d+_t|std.*", name):
        raise ValueError(f"is {name!r}, which has a meaning in C or C++; choose another name")
    if name in SYSTEM_HEADERS or re.fullmatch(r"check|aux|con|nul|prn|(com|lpt)\d", name):
        raise ValueError(
            f"is {name!r}, and {name}.h would be mistaken for another file of that name; choose another name"
        )
    return name


class Keys(Section):
    """The keys that every model has; the fields are named as in the TOML file."""

    name: str = Field(
        description="prefix of every symbol and file in C; it has 1 to 31 characters (a-z, 0-9, `_`), starts with a letter, does not end with `_`, and does not contain `__`"
    )
    format: Literal[1] = Field(
        FORMAT, description="version of the spec's keys and their meaning, as in docs/versions.md"
    )
    precision: Literal["float32", "float64"] = Field("float32", description="number format, on the PC and in C")
    signal: SignalSection | None = None
    input: Input
    label: Label = Label()
    target: TargetSection | None = None
    training: Trained | None = Field(
        None,
        description="settings with which `fit` trained the model: the keys of `--set training.…`. They do not change the C code",
    )
    if TYPE_CHECKING:  # each family declares its own class of this section
        learning: Learning
    _named = field_validator("name")(checked_name)

    def given_keys(self) -> Iterator[tuple[str, str, FieldInfo, Any]]:
        """Yield (section, key, declaration, value) for each key in each section of the spec."""
        for section in type(self).model_fields:
            given = getattr(self, section)
            for key, field in type(given).model_fields.items() if isinstance(given, Section) else ():
                yield section, key, field, getattr(given, key)

    def __getattr__(self, name: str) -> Any:
        """Return None for [kernel], [expansion] and [linear] if the family does not have them.  Raises AttributeError for
        any other missing attribute.
        """
        if name in ("kernel", "expansion", "linear"):
            return None
        if TYPE_CHECKING:
            return None
        return super().__getattr__(name)

    def has(self, section: str, key: str) -> bool:
        """Return whether a key has an effect: the family declares the key for this rule, and no other key switches it off."""
        declared = ((s, k) for s, k, _ in fields_of(type(self), self.learning.rule))
        return (section, key) in declared and self.why_ignored(section, key) is None

    def why_ignored(self, section: str, key: str) -> str | None:
        """Return None if a key has an effect.  If other keys of the spec prevent this, return a message with the reason and the remedy."""
        field = type(self).model_fields[section]
        kind = section_of(field)
        assert kind is not None
        marks = (mark for mark in (*field.metadata, *kind.model_fields[key].metadata) if isinstance(mark, Counts))
        return next(filter(None, (mark.why_ignored(self) for mark in marks)), None)

    @property
    def forecasts(self) -> bool:
        """Whether the label is a future value of one of the signal's channels."""
        return self.signal is not None and self.label.column in self.signal.channels

    @property
    def width(self) -> int:
        """The number of values in a raw sample: the number of channels if there is a signal stage, otherwise the number of inputs."""
        return self.dim if self.signal is None else len(self.signal.channels)

    @property
    def sample_columns(self) -> tuple[str, ...] | None:
        """Names of a sample's values, as in the header of the data, or None if the spec has no names."""
        return self.input.columns if self.signal is None else self.signal.channels

    @property
    def names(self) -> dict[str, tuple[str | None, ...]]:
        """Two tuples: "columns" has the names of a raw sample's values (None for unnamed inputs), followed by the names of the
        labels; "classes" has the names of the classes.
        """
        inputs = self.sample_columns or (None,) * self.width
        return {"columns": (*inputs, *self.label_columns), "classes": self.label.classes or ()}

    @property
    def formulas(self) -> dict[int, str]:
        """Position in a sample -> the formula by which the firmware computes the value at this position, if the formula is known."""
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
        """Number of raw samples from one step of the signal stage to the next; 1 without a signal stage."""
        return 1 if self.signal is None else self.signal.step

    @property
    def dim(self) -> int:
        return self.input.dim if self.input.dim is not None else len(self.input.columns or ())

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Names of the labels in the data; empty if the spec has no such names."""
        return self.label.columns or ((self.label.column,) if self.label.column else ())

    @property
    def outputs(self) -> int:
        """The number of functions that are learned: one for each numeric label; one for two classes; one for each class
        if there are more than two classes; one without labels.
        """
        if self.label.classes is not None:
            return 1 if len(self.label.classes) == 2 else len(self.label.classes)
        return len(self.label.columns) if self.label.columns is not None else self.label.outputs or 1

    @property
    def length_scale(self) -> float:
        """The typical distance between inputs: the kernel's width.  If the kernel has none, the distance is 1, or the
        input limit if that is smaller.
        """
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
        """The smallest and the largest accepted value of each input, (2, DIM)."""
        limits = np.array(self.input.max_abs, float)
        center = np.array(self.scaling[0] or 0.0) if limits.ndim else 0.0
        return np.array(np.broadcast_arrays(center - limits, center + limits, np.zeros(self.dim))[:2])

    @property
    def scaling(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """(center, scale), where the scaled input is (x - center) * scale.  Either may be None."""
        return (self.input.center, self.input.scale) if isinstance(self.input, ScaledInput) else (None, None)

    @property
    def completes(self) -> bool:
        """Whether missing inputs are replaced by other values."""
        return missing.choice(self) != "refuse"

    @property
    def standardises(self) -> bool:
        """Whether the inputs are standardised with their running means and standard deviations."""
        return isinstance(self.input, StandardisedInput) and self.input.standardise

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """Invert the scaling: return inputs in the data's units for scaled inputs x, (samples, DIM)."""
        center, scale = self.scaling
        x = x if scale is None else x / np.array(scale)
        return x if center is None else x + np.array(center)

    def limit_told(self, j: int) -> str:
        """Return a phrase that states the limit of input j."""
        if not isinstance(self.input.max_abs, tuple):
            return f"{self.input.max_abs:g}"
        center = self.scaling[0] or (0.0,) * self.dim
        return f"{self.input.max_abs[j]:g}, measured from the center, {center[j]:g}"

    @property
    def real(self) -> Precision:
        return PRECISIONS[self.precision]

    def signal_inputs(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of [input] that follow from the signal.  written: the keys of [input] that the user wrote."""
        assert self.signal is not None
        return signals.inputs_of(self.signal)

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        """Section -> key -> value, for keys whose values follow from other keys unless the user gives them."""
        if self.signal is None:
            return {}
        windowed = {"hop": self.signal.step} if self.signal.window is not None else {}
        return {"signal": {"lags": [0]} | windowed}

    def to_toml(self, complete: bool = False) -> str:
        """Return the spec as the text of a TOML file.  By default, it has only the keys that the user gave, and ``format``.

        complete: write every key that has an effect, with its value, so that a later version with other defaults does not
        change the model.  A key whose value is None is left out.
        """
        document: dict[str, Any] = {"name": self.name, "format": FORMAT}
        document |= self.model_dump(mode="json", exclude={"format"}, exclude_unset=not complete)
        if complete:
            for section, keys in self.derived.items():
                document[section] |= {key: value for key, value in keys.items() if document[section][key] is None}
            for section, content in document.items():
                if isinstance(content, dict):
                    document[section] = {
                        key: value for key, value in content.items() if section == "training" or self.has(section, key)
                    }
        if self.signal is not None:  # keys that follow from the signal are left out
            written = {key: value for key, value in document["input"].items() if key != "max_abs"}
            own = self.signal_inputs(written)
            document["input"] = {key: value for key, value in document["input"].items() if value != own.get(key)}
        lines = [
            f"{key} = {_toml(value)}"
            for key, value in document.items()
            if not isinstance(value, dict) and value is not None
        ]
        for section, content in document.items():
            if isinstance(content, dict):
                lines += ["", f"[{section}]"] + [f"{k} = {_toml(v)}" for k, v in content.items() if v is not None]
        return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Return a value as TOML text, with a line for each row of a table and for each formula."""
    if isinstance(value, (list, tuple)):
        if value and (isinstance(value[0], (list, tuple)) or " = " in str(value[0])):
            return "[\n" + "".join(f"    {_toml(row)},\n" for row in value) + "]"
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        known = {key: each for key, each in value.items() if each is not None}
        return "{" + ", ".join(f"{_toml(key)} = {_toml(each)}" for key, each in known.items()) + "}"
    return json.dumps(value, ensure_ascii=False)
