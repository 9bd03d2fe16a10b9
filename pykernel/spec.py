"""The spec: what a user writes down of a model, checked, and turned into the parameters that kernels take."""

from __future__ import annotations

import difflib
import json
import math
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pykernel.dialect import PRECISIONS, Memory, Precision
from pykernel.errors import UserError
from pykernel.expansion import Metric, Projection
from pykernel.online import ONLINE
from pykernel.program import Program

DRIFT_LIMIT = 0.01
"""Elements of (K + ridge I) P - I above which a refresh is due; predictions do not depend on P, reductions do."""
N_MAX_LIMIT = 4096
DIM_LIMIT = 1024
STATE_LIMIT = 64 * 2**20
"""Most bytes of one model; no microcontroller has more, and a typing error should not fill a PC's memory."""

TECHNIQUES = {
    "nt": (Metric.MAGNITUDE, Projection.NONE),
    "fklms": (Metric.FKLMS, Projection.FKLMS),
    "mklms": (Metric.MKLMS, Projection.KLMS),
}

C_KEYWORDS = frozenset(
    """alignas alignof and and_eq asm atomic_cancel auto bitand bitor bool break case catch char char16_t char32_t
    char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue
    decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if
    inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    reflexpr register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    struct switch synchronized template this thread_local throw true try typedef typeid typename typeof union unsigned
    using virtual void volatile wchar_t while xor xor_eq main errno assert defined far near interrupt""".split()
)

# a file of this name would stand before the compiler's own header, or cannot exist on Windows
RESERVED_FILES = frozenset(
    """complex ctype fenv float inttypes iso646 limits locale math setjmp signal stdarg stdbool stddef stdint stdio
    stdlib string strings tgmath threads time uchar unistd wchar wctype aux con nul prn""".split()
)

Positive = Annotated[float, Field(gt=0)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Input(Section):
    """What the model sees."""

    columns: tuple[str, ...] | None = Field(
        None, strict=False, description="names of the inputs, as in the data's header"
    )
    dim: int | None = Field(None, ge=1, le=DIM_LIMIT, description="how many inputs, where they have no names")
    limit: Positive = Field(1e6, description="largest magnitude; samples beyond are refused")
    standardise: bool = Field(False, description="subtract a running mean, divide by a running standard deviation")
    clip: float = Field(
        5.0, ge=1, le=100, description="standardised inputs are kept within so many standard deviations"
    )
    warmup: int = Field(16, ge=2, le=32, description="samples that the standardiser sees before the model learns")
    horizon: int = Field(
        1000, ge=10, le=1_000_000, description="samples that the running mean and deviation reach back"
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _list(cls, columns: Any) -> Any:
        if columns is not None and not isinstance(columns, (list, tuple)):
            raise ValueError(f'is {_shown(columns)}; it must be a list of names, such as ["a", "b"]')
        return columns

    @field_validator("columns")
    @classmethod
    def _names(cls, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if columns is not None:
            if not 1 <= len(columns) <= DIM_LIMIT:
                raise ValueError(f"holds {len(columns)} names; it must hold from 1 to {DIM_LIMIT}")
            for name in columns:
                _plain(name)
            doubles = [name for name in columns if columns.count(name) > 1]
            if doubles:
                raise ValueError(f"names {doubles[0]!r} twice; each input must be another column")
        return columns


class Label(Section):
    """What the model learns to predict."""

    column: str | None = Field(None, description="name of the label, as in the data's header")
    limit: Positive = Field(1e6, description="largest magnitude; samples beyond are refused")
    low: float | None = Field(None, description="predictions are not below")
    high: float | None = Field(None, description="predictions are not above")

    @field_validator("column")
    @classmethod
    def _name(cls, column: str | None) -> str | None:
        return column if column is None else _plain(column)


class KernelSection(Section):
    """k(a, b) = exp(-|a - b|^2 / (2 sigma^2))."""

    sigma: float = Field(description="width, in the inputs' unit")


class Learning(Section):
    """Mitchinson et al. 2003, eq. 2-6."""

    eta: float = Field(
        0.5, gt=0, lt=2, description="learning rate: the part of an error that one presentation corrects"
    )
    rho: float = Field(0.0, ge=0, description="decay: each presentation leaves 1 - eta rho of every multiplier")
    step_limit: float | None = Field(
        None, gt=0, description="most that one sample may change the function, at its place"
    )


class Reduction(Section):
    """What happens when the budget is full."""

    technique: Literal["nt", "fklms", "mklms"] = Field(
        "mklms",
        description="nt: drop the smallest multiplier; fklms: drop one of the closest pair; mklms: drop what changes the function least (keeps an N x N factor)",
    )
    n_max: int = Field(32, ge=1, le=N_MAX_LIMIT, description="the budget: most expansion vectors")
    ridge: float = Field(1e-3, ge=0, le=1, description="mklms: added to the Gram matrix's diagonal")
    gate: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="a sample is absorbed, not stored, if at most this of it is new; 2 ridge if not given",
    )


class Spec(Section):
    """A model, completely.  Read one with ``load_spec``; the fields are those of the TOML file."""

    name: str = Field(description="prefix of every symbol and file in C")
    precision: Literal["float32", "float64"] = "float32"
    input: Input
    label: Label = Label()
    kernel: KernelSection
    learning: Learning = Learning()
    reduction: Reduction = Reduction()

    @field_validator("name")
    @classmethod
    def _identifier(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or name.endswith("_") or "__" in name:
            raise ValueError(
                f"is {_shown(name)}; it must be 1 to 31 of a-z, 0-9 and single '_', start with a letter and not end with '_', "
                "because C symbols and files are named after it"
            )
        if name in C_KEYWORDS or re.fullmatch(r"pk|u?int\d*|u?int(_least|_fast)?\d+_t|std.*", name):
            raise ValueError(f"is {name!r}, which has a meaning in C or C++; choose another")
        if name in RESERVED_FILES or re.fullmatch(r"(com|lpt)\d", name):
            raise ValueError(f"is {name!r}, and {name}.h would be taken for a system's own file; choose another")
        return name

    @model_validator(mode="after")
    def _together(self) -> Spec:
        def refuse(where: str, message: str) -> None:
            raise ValueError(f"{where} {message}")

        if self.input.columns is None and self.input.dim is None:
            refuse("[input]", 'says nothing of the inputs; give columns = ["…"] or dim = …')
        if self.input.columns is not None and self.input.dim not in (None, len(self.input.columns)):
            refuse(
                "[input] dim", f"is {self.input.dim}, but columns holds {len(self.input.columns)} names; leave dim out"
            )
        if self.input.columns and self.label.column in self.input.columns:
            refuse(
                "[label] column", f"is {self.label.column!r}, which is also an input; a model must not see its label"
            )
        if self.learning.eta * self.learning.rho >= 1:
            refuse(
                "[learning] rho",
                f"is {self.learning.rho}; eta rho must be below 1, or one presentation erases the model",
            )
        narrow = self.precision == "float32"
        low, high = (1e-18, 1e18) if narrow else (1e-150, 1e150)
        if not low <= self.kernel.sigma <= high:
            refuse(
                "[kernel] sigma", f"is {self.kernel.sigma:g}; it must be from {low:g} to {high:g} for {self.precision}"
            )
        far = (5e18 if narrow else 5e149) / math.sqrt(self.dim)
        if self.input.limit < low:
            refuse("[input] limit", f"is {self.input.limit:g}; it must be {low:g} or more for {self.precision}")
        if self.input.limit > far:
            refuse(
                "[input] limit",
                f"is {self.input.limit:g}; for {self.dim} inputs in {self.precision} it can be at most {far:.3g}, or distances overflow",
            )
        low, high = (1e-20, 1e24) if narrow else (1e-20, 1e100)
        if not low <= self.label.limit <= high:
            refuse(
                "[label] limit", f"is {self.label.limit:g}; it must be from {low:g} to {high:g} for {self.precision}"
            )
        if self.learning.eta * self.label.limit < 2.0**-100:
            refuse(
                "[learning] eta",
                f"is {self.learning.eta:g}; it must be larger, or no label up to {self.label.limit:g} is learned",
            )
        if self.input.horizon < self.input.warmup:
            refuse(
                "[input] horizon",
                f"is {self.input.horizon}; it must be at least warmup, {self.input.warmup}, or learning never begins",
            )
        bounds = [bound for bound in (self.label.low, self.label.high) if bound is not None]
        for name in ("low", "high"):
            if abs(getattr(self.label, name) or 0.0) > self.label.limit:
                refuse(
                    f"[label] {name}",
                    f"is {getattr(self.label, name):g}; it must be within the limit, {self.label.limit:g}",
                )
        if bounds != sorted(set(bounds)):
            refuse("[label] low", f"is {self.label.low:g}; it must be below high, {self.label.high:g}")
        if self.learning.step_limit is not None and self.learning.step_limit < 1e-20:
            refuse("[learning] step_limit", f"is {self.learning.step_limit:g}; it must be 1e-20 or more")
        if self.gate >= 1:
            refuse(
                "[reduction] gate",
                f"is 2 ridge = {self.gate:g}, with which no sample is stored; give a gate below 1, or a smaller ridge",
            )
        least = 1e-4 if narrow else 0.0
        if self.reduction.technique == "mklms":
            if self.reduction.ridge < least:
                refuse(
                    "[reduction] ridge",
                    f"is {self.reduction.ridge:g}; it must be {least:g} or more for {self.precision}",
                )
            if self.gate <= self.reduction.ridge:
                refuse(
                    "[reduction] gate",
                    f"is {self.gate:g}; it must be above the ridge ({self.reduction.ridge:g}), 2 ridge or more to absorb repeats",
                )
            if self.gate < (1e-4 if narrow else 1e-12):
                refuse(
                    "[reduction] gate",
                    f"is {self.gate:g}; it must be {1e-4 if narrow else 1e-12:g} or more for {self.precision}",
                )
        if self.state_bytes_bound > STATE_LIMIT:
            refuse(
                "[reduction] n_max",
                f"is {self.reduction.n_max}, which takes {self.state_bytes_bound:,} bytes; they must be at most "
                f"{STATE_LIMIT:,}",
            )
        return self

    # ---- what kernels and the generator take

    @property
    def program(self) -> Program:
        return ONLINE

    @property
    def dim(self) -> int:
        return self.input.dim if self.input.dim is not None else len(self.input.columns or ())

    @property
    def gate(self) -> float:
        return self.reduction.gate if self.reduction.gate is not None else 2 * self.reduction.ridge

    @property
    def real(self) -> Precision:
        return PRECISIONS[self.precision]

    @property
    def capacities(self) -> dict[str, int]:
        return {"DIM": self.dim, "N_MAX": self.reduction.n_max}

    @property
    def state_bytes_bound(self) -> int:
        n = self.reduction.n_max
        factor = n * n if self.reduction.technique == "mklms" else 0
        return (n * (self.dim + 8) + 4 * self.dim + 8 + factor) * self.real.dtype.itemsize

    @property
    def config_values(self) -> dict[str, Any]:
        """Parameters, derived in float64; each is rounded once when the precision is bound."""
        metric, projection = TECHNIQUES[self.reduction.technique]
        sigma, eta, rho, ridge = self.kernel.sigma, self.learning.eta, self.learning.rho, self.reduction.ridge
        by_factor = projection is Projection.KLMS
        return {
            "metric": metric,
            "projection": projection,
            "decays": rho > 0,
            "standardises": self.input.standardise,
            "clamps": self.label.low is not None or self.label.high is not None,
            "limits_step": self.learning.step_limit is not None,
            "gamma": 0.5 / sigma / sigma,
            "eta": eta,
            "keep": 1 - eta * rho,
            "ridge_diagonal": 1 + ridge,
            "kappa_least": ridge or self.gate * 2.0**-10,
            "gate": self.gate,
            # 1 - k^2 <= gate, k = exp(-d / (2 sigma^2)); with a Gram matrix, only exact repeats
            "gate_distance": 0.0 if by_factor else -math.log1p(-self.gate) * sigma * sigma,
            "input_limit": self.input.limit,
            "label_limit": self.label.limit,
            "alpha_limit": self.alpha_limit,
            "step_limit": min(self.learning.step_limit or self.alpha_limit, self.alpha_limit),
            "low": self.low,
            "high": self.high,
            "clip": self.input.clip,
            "warmup": self.input.warmup,
            "horizon": self.input.horizon,
            "drift_limit": DRIFT_LIMIT,
            "rehearsal_input": min(3 * sigma / math.sqrt(self.dim), 2 * self.input.limit),
            "rehearsal_label": min(1.0, self.label.limit),
        }

    @property
    def alpha_limit(self) -> float:
        return min(2.0**20 * self.label.limit, 2.0**100)

    @property
    def low(self) -> float:
        return self.label.low if self.label.low is not None else -self.most

    @property
    def high(self) -> float:
        return self.label.high if self.label.high is not None else self.most

    @property
    def most(self) -> float:
        """A bound on any prediction."""
        return self.alpha_limit * self.reduction.n_max

    @property
    def config(self) -> Any:
        return self.program.config.of(self.real, self.config_values)

    def memory(self, drop: tuple[str, ...] = ()) -> Memory:
        return self.program.memory(self.real, self.capacities, drop)

    def to_toml(self) -> str:
        """The spec as a file's text; defaults that were not given are left out."""

        def shown(value: Any) -> str:
            if isinstance(value, (list, tuple)):
                return "[" + ", ".join(map(shown, value)) + "]"
            return json.dumps(value, ensure_ascii=False)

        given = self.model_dump(mode="json", exclude_unset=True)
        lines = [f"{key} = {shown(value)}" for key, value in given.items() if not isinstance(value, dict)]
        for section, content in given.items():
            if isinstance(content, dict):
                lines += ["", f"[{section}]"] + [f"{k} = {shown(v)}" for k, v in content.items() if v is not None]
        return "\n".join(lines) + "\n"


def load_spec(path: str | Path) -> Spec:
    """Read a spec from a TOML file.  Raises UserError, one sentence, for whatever is wrong with it."""
    where = str(path) if str(path).isprintable() else _shown(str(path))
    help_ = "see `pykernel generate --help` for one that is"
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except FileNotFoundError:
        raise UserError(
            f"{where}: there is no such file; a spec is a TOML file, see `pykernel generate --help`"
        ) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: is not UTF-8 text from byte {error.start} on; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{where}: is not TOML: {error}; {help_}") from None
    except OSError as error:
        raise UserError(f"{where}: cannot be read ({error.strerror}); give the path of a TOML file") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end, NUL in the path
        raise UserError(f"{where}: is not a spec; {help_}") from None
    return make_spec(content, where)


def make_spec(content: Mapping[str, Any], where: str = "spec") -> Spec:
    """A spec from nested dictionaries; ``where`` begins the error's sentence."""
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{where}: {_sentence(error)}") from None


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong, where, and what would be right."""
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"]]
    section = f"[{location[0]}] " if len(location) > 1 else ""
    key = location[1 if len(location) > 1 else 0] if location else ""
    if first["type"] == "extra_forbidden":
        model: Any = Spec.model_fields[location[0]].annotation if len(location) > 1 else Spec
        near = difflib.get_close_matches(key, list(model.model_fields), 1)
        remedy = f"did you mean {near[0]!r}?" if near else f"the keys are: {', '.join(model.model_fields)}"
        return f"{section}{_shown(key)} is not a key of a spec; {remedy}"
    if first["type"] == "missing":
        return (
            f"{section}{key} is missing" if section else f"[{key}] is missing" if key != "name" else "name is missing"
        )
    message = first["msg"]
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return f"{section}{key} {message}".strip() if key else message
    if first["type"] == "model_type":
        return (
            f"{key or 'it'} is {_shown(first['input'])}; it must be a section, [{key or 'input'}], with keys of its own"
        )
    message = (
        message.replace("Input should be", "it must be").replace("a valid", "a").replace("a integer", "a whole number")
    )
    return f"{section}{key} is {_shown(first['input'])}; {message[0].lower()}{message[1:]}"


def _plain(text: str) -> str:
    """A column's name: it reaches comments and manifests, so nothing invisible and nothing endless."""
    if (
        not 1 <= len(text) <= 100
        or text != text.strip()
        or any(unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for ch in text)
    ):
        raise ValueError(f"names {_shown(text)}; a column's name must have 1 to 100 visible characters")
    return text


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
