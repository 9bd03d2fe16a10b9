"""The spec: what a user writes down of a model, checked, and turned into the parameters that kernels take."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from pykernel.algorithms.kernel_choice import KernelConfig
from pykernel.dialect import PRECISIONS, Kernel, Memory, Precision
from pykernel.dialect.program import LabelKind, Program, Settings
from pykernel.dialect.reserved import C_KEYWORDS
from pykernel.errors import UntrustedCode, UserError
from pykernel.files import read_plain
from pykernel.spec import kernel_settings
from pykernel.spec.custom_kernel import judge_source, judge_values, plain_name, plain_path
from pykernel.spec.custom_kernel import load as load_kernel
from pykernel.spec.families.batch import BATCH_MODELS, FISHER_MODELS
from pykernel.spec.families.frozen import FROZEN_MODELS
from pykernel.spec.families.linear import LINEAR_MODELS
from pykernel.spec.families.nystrom import NYSTROM_LEARNERS, NYSTROM_MODELS
from pykernel.spec.families.online import KERNEL_MODELS
from pykernel.spec.families.subspace import SUBSPACE_MODELS
from pykernel.spec.family import STATE_LIMIT, Family, Refuse
from pykernel.spec.renamed import RENAMED

N_MAX_LIMIT = 4096
DIM_LIMIT = 1024
OUTPUTS_LIMIT = 64
SPEC_LIMIT = 8 * STATE_LIMIT
"""Most bytes of a spec's text: a number of a table takes more of them than of the state."""

FAMILIES: tuple[Family, ...] = (
    KERNEL_MODELS,
    LINEAR_MODELS,
    BATCH_MODELS,
    FISHER_MODELS,
    FROZEN_MODELS,
    NYSTROM_MODELS,
    NYSTROM_LEARNERS,
    SUBSPACE_MODELS,
)

SECTION_RULES = {"basis": "nystrom-rls", "subspace": "okfeb", "novelty": "okfeb"}
"""Sections that are of one rule."""

# a file of this name would stand before the compiler's own header, or cannot exist on Windows
RESERVED_FILES = frozenset(
    """complex ctype fenv float inttypes iso646 limits locale math setjmp signal stdarg stdbool stddef stdint stdio
    stdlib string strings tgmath threads time uchar unistd wchar wctype aux con nul prn""".split()
)

Positive = Annotated[float, Field(gt=0)]
Numbers = Annotated[tuple[float, ...], Field(strict=False, min_length=1, max_length=65536)]
Rows = Annotated[tuple[Numbers, ...], Field(strict=False, min_length=1, max_length=65536)]
Pair = Annotated[tuple[float, float], Field(strict=False)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Input(Section):
    """What the model sees."""

    columns: tuple[str, ...] | None = Field(
        None, strict=False, description="names of the inputs, as in the data's header"
    )
    dim: int | None = Field(None, ge=1, le=DIM_LIMIT, description="how many inputs, where they have no names")
    max_abs: Positive = Field(1e6, description="largest magnitude; samples beyond are refused")
    standardise: bool = Field(False, description="subtract a running mean, divide by a running standard deviation")
    clip: float = Field(
        5.0, ge=1, le=100, description="standardised inputs are kept within so many standard deviations"
    )
    warmup: int = Field(16, ge=2, le=32, description="samples that the standardiser sees before the model learns")
    horizon: int = Field(
        1000, ge=10, le=1_000_000, description="samples that the running mean and deviation reach back"
    )
    center: Numbers | None = Field(
        None, strict=False, description="frozen, krr, ls-svm, kfd: subtracted from the inputs"
    )
    scale: Numbers | None = Field(
        None, strict=False, description="frozen, krr, ls-svm, kfd: what the inputs are multiplied by after that"
    )

    @field_validator("columns", mode="before")
    @classmethod
    def _list(cls, columns: Any) -> Any:
        if columns is not None and not isinstance(columns, (list, tuple)):
            raise ValueError(f'is {shown_value(columns)}; it must be a list of names, such as ["a", "b"]')
        return columns

    @field_validator("columns")
    @classmethod
    def _names(cls, columns: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if columns is not None:
            if not 1 <= len(columns) <= DIM_LIMIT:
                raise ValueError(f"holds {len(columns)} names; it must hold from 1 to {DIM_LIMIT}")
            for name in columns:
                visible_name(name)
            doubles = [name for name in columns if columns.count(name) > 1]
            if doubles:
                raise ValueError(f"names {doubles[0]!r} twice; each input must be another column")
        return columns


class Label(Section):
    """What the model learns to predict: a number, several numbers, or one of several classes."""

    column: str | None = Field(None, description="name of the label, as in the data's header")
    columns: tuple[str, ...] | None = Field(
        None, strict=False, description="names of several labels that one model learns together"
    )
    outputs: int | None = Field(
        None, ge=1, le=OUTPUTS_LIMIT, description="how many labels, where they have no names; 1 if not given"
    )
    classes: tuple[str, ...] | None = Field(
        None, strict=False, description="what the label can be, as in the data's cells: the model then classifies"
    )
    max_abs: Positive = Field(1e6, description="largest magnitude; samples beyond are refused")
    low: float | None = Field(None, description="predictions are not below")
    high: float | None = Field(None, description="predictions are not above")

    @field_validator("column")
    @classmethod
    def _name(cls, column: str | None) -> str | None:
        return column if column is None else visible_name(column)

    @field_validator("columns", "classes", mode="before")
    @classmethod
    def _list(cls, names: Any) -> Any:
        if names is not None and not isinstance(names, (list, tuple)):
            raise ValueError(f'is {shown_value(names)}; it must be a list of names, such as ["a", "b"]')
        return names

    @field_validator("columns", "classes")
    @classmethod
    def _names(cls, names: tuple[str, ...] | None, info: ValidationInfo) -> tuple[str, ...] | None:
        if names is not None:
            least = 2 if info.field_name == "classes" else 1
            if not least <= len(names) <= OUTPUTS_LIMIT:
                raise ValueError(f"holds {len(names)} names; it must hold from {least} to {OUTPUTS_LIMIT}")
            for name in names:
                visible_name(name)
            doubles = [name for name in names if names.count(name) > 1]
            if doubles:
                raise ValueError(f"names {doubles[0]!r} twice; each must be another")
        return names


class KernelSection(Section):
    """How near two inputs are: k(a, b)."""

    function: Literal["gaussian", "laplacian", "polynomial", "linear", "sigmoid", "matern32", "matern52", "custom"] = (
        Field(
            "gaussian",
            description="gaussian: exp(-gamma |a - b|^2); laplacian: exp(-gamma |a - b|_1); polynomial: (gamma a'b + coef0)^degree; linear: a'b; sigmoid: tanh(gamma a'b + coef0); matern32: (1 + r) exp(-r), matern52: (1 + r + r^2 / 3) exp(-r), r = gamma |a - b|; custom: yours, see source",
        )
    )
    sigma: float | None = Field(None, description="gaussian: width, in the inputs' unit; gamma = 1 / (2 sigma^2)")
    gamma: float | None = Field(
        None, description="the kernel's gamma; for gaussian in place of sigma; custom: 1 if not given"
    )
    coef0: float = Field(0.0, description="polynomial, sigmoid, custom: what is added to gamma a'b")
    degree: int = Field(3, ge=1, le=9, description="polynomial, custom: the exponent")
    normalise: bool = Field(
        False, description="polynomial, linear, custom: divide k(a, b) by sqrt(k(a, a) k(b, b)); 0 where that is 0"
    )
    source: str | None = Field(
        None, description="custom: the Python file with your kernel, beside the spec; it is executed, see --trust-code"
    )
    kernel: str | None = Field(None, description="custom: the name of your kernel in that file")
    max_value: float | None = Field(None, description="custom: k(x, x) is at most this, for every input within max_abs")

    @field_validator("source")
    @classmethod
    def _path(cls, source: str | None) -> str | None:
        return source if source is None else plain_path(source)

    @field_validator("kernel")
    @classmethod
    def _kernel(cls, name: str | None) -> str | None:
        return name if name is None else plain_name(name)


class Learning(Section):
    """How a sample changes the model; which keys there are depends on the rule."""

    rule: Literal[
        "klms",
        "qklms",
        "krls-t",
        "fb-krls",
        "ald-krls",
        "nlms",
        "rls",
        "quadratic-rls",
        "rff-rls",
        "krr",
        "ls-svm",
        "kfd",
        "frozen",
        "nystrom",
        "nystrom-rls",
        "okfeb",
    ] = Field(
        "klms",
        description="klms: stochastic gradient; qklms: the same, near samples go to the nearest vector; krls-t: recursive least squares that forgets and knows its variance; fb-krls: least squares on the stored samples; ald-krls: recursive least squares on a growing dictionary; nlms, rls: linear; quadratic-rls: linear in products of inputs; rff-rls: linear in random Fourier features; krr, ls-svm: kernel ridge regression and least squares support vector machine, trained at once on the samples gathered; kfd: kernel Fisher discriminant on a basis; frozen: trained elsewhere, see [expansion]; nystrom: the same, on the coordinates in the span of a basis; nystrom-rls: recursive least squares on such coordinates, see [basis]; okfeb: features of a low-rank subspace that follows the stream, see [subspace], with a linear model on them if there is a label",
    )
    eta: float = Field(
        0.5,
        gt=0,
        lt=2,
        description="klms, qklms, nlms: the part of an error that one presentation corrects; okfeb: the step of a logistic head, in parts of the safe one",
    )
    rho: float = Field(
        0.0, ge=0, description="klms, qklms: decay: each presentation leaves 1 - eta rho of every multiplier"
    )
    step_limit: float | None = Field(
        None, gt=0, description="klms, qklms: most that one sample may change the function, at its place"
    )
    quantisation: float = Field(
        0.3,
        gt=0,
        le=2,
        description="qklms: samples go to the nearest vector if it is within so many sigma, or 1 / gamma; dot products: the sine of their angle",
    )
    relabel: bool = Field(
        False,
        description="fb-krls: whether every sample moves the labels of the vectors near it by eta; else only one too near to be stored does, and stored labels stay as they were when the world has changed",
    )
    forgetting: float = Field(
        1.0,
        gt=0.5,
        le=1,
        description="krls-t, *-rls, okfeb's ridge head: what a sample's weight is multiplied by at each later one",
    )
    noise: float = Field(
        0.01, gt=0, le=1e6, description="krls-t: variance of the labels' noise, in parts of the function's variance"
    )
    prior_variance: float = Field(
        100.0, gt=0, description="rls, quadratic-rls, rff-rls: variance of the weights before the first sample"
    )
    features: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="rff-rls: how many random features, 64 if not given; okfeb: how many features, the rank of the subspace, 8 if not given",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="rff-rls: which random features; nystrom-rls: which draws")
    ridge: float = Field(
        0.1,
        gt=0,
        description="krr, ls-svm: added to the Gram matrix's diagonal; kfd: weight of |alpha|^2; nystrom-rls, okfeb: of |coefficients|^2",
    )
    samples: int = Field(
        64,
        ge=2,
        le=4096,
        description="krr, ls-svm: how many samples are gathered; then the oldest go; nystrom-rls: rows of the reservoir",
    )


class Reduction(Section):
    """What happens when the budget is full, or before."""

    technique: Literal[
        "nt", "at", "klms", "mklms", "sup", "ls", "lsreg", "lsridge", "fklms", "fmklms", "afklms", "afmklms"
    ] = Field(
        "mklms",
        description="which vector goes, nt: the one of the smallest multiplier; at: the oldest; klms: the one that the others express best; mklms: the one whose loss changes the function least; sup: ... the function at its own place least; ls: ... the function at the vectors least; lsreg, lsridge: ls, with a penalty on multipliers; fklms: one of the closest pair; fmklms: the same, weighted by multipliers; afklms, afmklms: the same, by all distances",
    )
    projection: Literal["none", "klms", "fklms", "bounded", "ls", "lsridge"] | None = Field(
        None, description="how the other multipliers make up for it; the technique's own if not given"
    )
    n_max: int = Field(32, ge=1, le=N_MAX_LIMIT, description="the budget: most expansion vectors")
    ridge: float | None = Field(
        None,
        ge=0,
        le=1,
        description="techniques with a Gram matrix: added to its diagonal, in parts of it; 1e-3 if not given, fb-krls 0.1: it fits the labels that it stores, noise and all",
    )
    ald_threshold: float | None = Field(
        None,
        ge=0,
        lt=1,
        description="a sample is absorbed, not stored, if at most this of it is new; 2 ridge if not given",
    )
    penalty: float = Field(1e-4, gt=0, le=1, description="lsreg, lsridge: weight C of the squared multipliers, eq. 20")
    when: Literal["after", "before"] = Field(
        "after", description="whether the newest sample competes (after), or a full model makes room first (before)"
    )
    candidates: Literal["all", "newest"] = Field("all", description="which vectors may go; newest: only the sample")
    fading: float = Field(
        1.0,
        gt=0.5,
        le=1,
        description="what a vector's claim to stay is multiplied by at each later sample that does not come near it; below 1 the model follows inputs that move away",
    )
    lambda_max: float | None = Field(
        None, ge=1e-30, le=1e30, description="vectors go as soon as their score is at most this, full or not"
    )
    removals: int = Field(
        1, ge=1, le=16, description="most vectors that one update removes beyond the one that a new sample displaces"
    )
    truncate_below: float | None = Field(
        None, ge=1e-30, le=1e30, description="multipliers smaller than this are dropped"
    )
    truncate_age: int | None = Field(
        None, ge=1, le=10**9, description="vectors that many samples old are dropped, unless repeated"
    )
    tie: Literal["smaller", "newest", "oldest"] = Field(
        "smaller", description="which of equal scores goes: the smaller multiplier, the newest or the oldest vector"
    )
    force: bool = Field(False, description="take a combination that is known to diverge")


class BasisSection(Section):
    """Where the feature vectors come from whose span a model works in: nystrom-rls."""

    method: Literal["given", "stream", "efvs", "sgma"] = Field(
        "stream",
        description="given: they are [expansion] vectors; stream: samples, by the probability of what the basis leaves over of them, and by what a reservoir would miss; efvs, sgma: chosen from the reservoir when NAME_select() is called, by the largest gain in relative residual, or in the residual's trace",
    )
    candidates: int = Field(59, ge=1, le=4096, description="efvs, sgma: rows that are compared in each step")
    points: int = Field(59, ge=1, le=4096, description="efvs: rows that they are compared at")
    tau: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="efvs, sgma: enough is chosen when the mean part left over of the reservoir is this",
    )
    horizon: int = Field(
        0, ge=0, le=2**22, description="samples that the reservoir reaches back; 0: as far as it can, evenly"
    )
    cache: bool = Field(
        True,
        description="stream: whether the reservoir keeps its rows' coordinates; without, less memory and more time",
    )


class SubspaceSection(Section):
    """How a subspace of feature space follows the stream: okfeb."""

    update: Literal["parametric", "nonparametric", "hybrid", "rls"] = Field(
        "parametric",
        description="parametric: stochastic gradient in L; nonparametric: in A; hybrid: of the fit in A, of the ridge in L; rls: recursive least squares",
    )
    shrinkage: float = Field(0.1, gt=0, description="lambda: weight of |L|^2 and |q|^2; singular values shrink by it")
    step: Literal["constant", "normalised", "decreasing", "averaged"] | None = Field(
        None,
        description="mu; constant for parametric, normalised for nonparametric and hybrid if not given. constant: 4 eta lambda / k(x, x); normalised: eta / (|q|^2 + rho); decreasing: eta / sum (|q|^2 + rho); averaged: the same, of a sum that fades over the window",
    )
    eta: float | None = Field(
        None, gt=0, le=100, description="constant: below 2, 1 if not given; normalised: 0.5; decreasing, averaged: 8"
    )
    window: int = Field(
        1000, ge=0, le=2**22, description="samples that share the ridge: rho = lambda / min(n, window); 0: lambda / n"
    )
    forgetting: float = Field(1.0, gt=0.5, le=1, description="rls: what a sample leaves of the earlier ones' weight")
    budget: Literal["exact", "drop"] = Field(
        "exact",
        description="what becomes of a vector that the budget has no place for. exact: the others take over what they express of it; drop: nothing",
    )
    fading: float = Field(
        1.0,
        gt=0.5,
        le=1,
        description="beta: what a vector's claim to stay is multiplied by at each later sample; below 1 the subspace follows changes sooner",
    )
    insensitivity: float = Field(
        0.0, ge=0, lt=1, description="epsilon: nothing is learned of samples of which less than this part is left over"
    )
    censoring: float = Field(
        0.0,
        ge=0,
        le=0.99,
        description="in place of insensitivity: nothing is learned of this part of the samples, once the budget is full",
    )
    head: Literal["ridge", "logistic"] = Field(
        "ridge",
        description="the linear model on the features, with labels: ridge regression by recursive least squares, or for classes logistic regression by gradients",
    )


class NoveltySection(Section):
    """When a sample is an alarm: okfeb."""

    false_alarm_rate: float = Field(
        0.01,
        gt=0,
        le=0.5,
        description="alarms for each sample of normal operation, which the threshold adapts to",
    )
    threshold: float | None = Field(
        None, gt=0, lt=1, description="in place of false_alarm_rate: the level above which there is an alarm"
    )
    smoothing: float = Field(
        1.0, gt=0, le=1, description="level = (1 - smoothing) level + smoothing score; 1: every sample by itself"
    )
    warmup: int = Field(500, ge=2, le=1_000_000, description="samples before there are alarms")
    relearn_after: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="most samples in a row, above the threshold, that the subspace does not learn; then they are the new normal",
    )


class Expansion(Section):
    """Vectors that the device has in flash: a frozen model's, with all its values, or a discriminant's basis."""

    vectors: Rows = Field(
        strict=False, description="expansion vectors, or basis: a row for each, scaled as the inputs are"
    )
    weights: Rows | None = Field(
        None,
        strict=False,
        description="a row for each vector, a number for each function; decision ovo and ovo_vote: in the functions of its class against each other one",
    )
    bias: Numbers | None = Field(None, strict=False, description="what each function is far from all vectors")
    decision: Literal["functions", "ovo", "ovo_vote"] = Field(
        "functions",
        description="functions: one for each output, or class; ovo: one for each pair of classes; ovo_vote: the same, and predictions are votes",
    )
    support_class: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=65536)] | None = (
        Field(None, strict=False, description="ovo, ovo_vote: the position of the class that each vector is of")
    )
    break_ties: bool = Field(
        False, description="ovo, ovo_vote: of classes with equal votes the clearer wins, not the first"
    )
    calibration: Annotated[tuple[Pair, ...], Field(min_length=1)] | None = Field(
        None,
        strict=False,
        description="classes: a and b of each function f, for the probability 1 / (1 + exp(a f + b))",
    )
    distance: Literal["differences", "products"] = Field(
        "differences", description="gaussian: how |x - v|^2 is computed; products: faster, and less exact"
    )

    @field_validator("vectors", "weights", "bias", "support_class", "calibration", mode="before")
    @classmethod
    def _list(cls, values: Any) -> Any:
        if values is not None and not isinstance(values, (list, tuple)):
            raise ValueError(f"is {shown_value(values)}; it must be a list, such as [1.0, 2.0]")
        return values


SECTIONS: dict[str, type[Section]] = {
    "input": Input,
    "label": Label,
    "kernel": KernelSection,
    "learning": Learning,
    "reduction": Reduction,
    "basis": BasisSection,
    "subspace": SubspaceSection,
    "novelty": NoveltySection,
    "expansion": Expansion,
}


class Spec(Section):
    """A model, completely.  Read one with ``load_spec``; the fields are those of the TOML file."""

    name: str = Field(description="prefix of every symbol and file in C")
    precision: Literal["float32", "float64"] = "float32"
    input: Input
    label: Label = Label()
    kernel: KernelSection | None = None
    learning: Learning = Learning()
    reduction: Reduction = Reduction()
    basis: BasisSection = BasisSection()
    subspace: SubspaceSection = SubspaceSection()
    novelty: NoveltySection | None = None
    expansion: Expansion | None = None
    _custom: Kernel | None = PrivateAttr(None)

    @field_validator("name")
    @classmethod
    def _identifier(cls, name: str) -> str:
        if not re.fullmatch(r"[a-z][a-z0-9_]{0,30}", name) or name.endswith("_") or "__" in name:
            raise ValueError(
                f"is {shown_value(name)}; it must be 1 to 31 of a-z, 0-9 and single '_', start with a letter and not end with '_', "
                "because C symbols and files are named after it"
            )
        if name in C_KEYWORDS or re.fullmatch(r"pk|u?int\d*|u?int(_least|_fast)?\d+_t|std.*", name):
            raise ValueError(f"is {name!r}, which has a meaning in C or C++; choose another")
        if name in RESERVED_FILES or re.fullmatch(r"(com|lpt)\d", name):
            raise ValueError(f"is {name!r}, and {name}.h would be taken for a system's own file; choose another")
        return name

    @model_validator(mode="after")
    def _together(self) -> Spec:
        def refuse(where: str, message: str) -> NoReturn:
            raise ValueError(f"{where} {message}")

        if self.input.columns is None and self.input.dim is None:
            refuse("[input]", 'says nothing of the inputs; give columns = ["…"] or dim = …')
        if self.input.columns is not None and self.input.dim not in (None, len(self.input.columns)):
            refuse(
                "[input] dim", f"is {self.input.dim}, but columns holds {len(self.input.columns)} names; leave dim out"
            )
        self._check_label(refuse)
        if self.input.horizon < self.input.warmup:
            refuse(
                "[input] horizon",
                f"is {self.input.horizon}; it must be at least warmup, {self.input.warmup}, or learning never begins",
            )
        if self.label_kind not in self.family.programs:
            refuse("[label] classes", f"is missing; {self.learning.rule} tells classes apart, so they must be given")
        for section in ("input", "kernel", "learning", "reduction", "basis", "subspace", "novelty", "expansion"):
            given = getattr(self, section)
            if section == "novelty" and given is not None and self.learning.rule != "okfeb":
                refuse("[novelty]", f"is of okfeb; {self.learning.rule} does not have it: leave it out")
            for key in sorted(given.model_fields_set) if given is not None else ():
                if getattr(given, key) == type(given).model_fields[key].default:
                    continue  # written out, it changes nothing
                if (owner := SECTION_RULES.get(section, self.learning.rule)) != self.learning.rule:
                    refuse(f"[{section}] {key}", f"is of {owner}; {self.learning.rule} does not have it: leave it out")
                if (reason := self.family.why_ignored(self, section, key)) is not None:
                    refuse(f"[{section}] {key}", reason)
        self.family.validate(self, refuse)
        if self.state_bytes_bound > STATE_LIMIT:
            refuse(
                {KERNEL_MODELS: "[reduction] n_max", BATCH_MODELS: "[learning] samples"}.get(
                    self.family, "[input] dim"
                ),
                f"makes a model of {self.state_bytes_bound:,} bytes; they must be at most {STATE_LIMIT:,}",
            )
        self._check_parameters(refuse)
        return self

    def _check_parameters(self, refuse: Refuse) -> None:
        """Every number that kernels take must be one in the precision: finite, and not lost near zero."""
        limits = np.finfo(self.real.dtype)
        for name, value in self.config_values.items():
            if isinstance(value, (bool, int)):
                continue
            sizes = np.abs(np.asarray(value, float))
            largest = float(sizes.max(initial=0.0))
            # not ">": NaN must fail
            if not largest <= float(limits.max):
                rest = f"it holds {float(limits.max):.2g} at most"
            elif sizes.ndim == 0 and 0 < largest < float(limits.tiny):
                rest = f"it holds nothing below {float(limits.tiny):.2g} but 0"
            else:
                continue
            sections = ((key, getattr(self, key)) for key in SECTIONS)
            written = next((f"[{key}] {name}" for key, given in sections if getattr(given, name, None) == value), None)
            if written is not None:
                refuse(written, f"is {value:g}; choose a number that {self.precision} can hold: {rest}")
            raise ValueError(
                f"its numbers lead to the parameter {name} = {largest:g}, which {self.precision} cannot hold: {rest}; choose limits, "
                "scales and weights nearer to 1, or precision float64"
            )

    def _check_label(self, refuse: Refuse) -> None:
        label, narrow = self.label, self.precision == "float32"
        given = [name for name in ("column", "columns", "outputs") if getattr(label, name) is not None]
        if label.columns is not None and label.column is not None:
            refuse("[label]", "has both column and columns; give the one or the other")
        if label.columns is not None and label.outputs not in (None, len(label.columns)):
            refuse("[label] outputs", f"is {label.outputs}, but columns holds {len(label.columns)} names; leave it out")
        if label.column is not None and (label.outputs or 1) > 1:
            refuse("[label] outputs", f"is {label.outputs}, but column names one label; give columns")
        if label.classes is not None and set(given) - {"column"}:
            refuse("[label]", f"has both classes and {given[-1]}; a classifier has one label, its class")
        if self.input.columns:
            for name in self.label_columns:
                if name in self.input.columns:
                    where = "column" if label.column else "columns"
                    refuse(f"[label] {where}", f"is {name!r}, which is also an input; a model must not see its label")
        low, high = (1e-20, 1e24) if narrow else (1e-20, 1e100)
        if not low <= label.max_abs <= high:
            refuse("[label] max_abs", f"is {label.max_abs:g}; it must be from {low:g} to {high:g} for {self.precision}")
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

    # ---- what kernels and the generator take

    @property
    def family(self) -> Family:
        return next(family for family in FAMILIES if self.learning.rule in family.rules)

    @property
    def program(self) -> Program:
        program = self.family.programs[self.label_kind]
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
    def dim(self) -> int:
        return self.input.dim if self.input.dim is not None else len(self.input.columns or ())

    @property
    def label_columns(self) -> tuple[str, ...]:
        """Names of the labels in the data; empty where the spec has none."""
        return self.label.columns or ((self.label.column,) if self.label.column else ())

    @property
    def label_kind(self) -> LabelKind:
        """What update takes: a number, several, the position of a class; nothing, where a rule needs no label and has none."""
        if self.label.classes is not None:
            return "class"
        if "none" in self.family.programs and self._nameless:
            return "none"
        return "real" if self.outputs == 1 else "reals"

    @property
    def _nameless(self) -> bool:
        """Whether nothing says that there are labels."""
        label = self.label
        return label.column is None and label.columns is None and label.outputs is None

    @property
    def outputs(self) -> int:
        """How many functions are learned: one for each label; for classes one (two classes) or one for each; 1 without labels."""
        if self.label.classes is not None:
            return 1 if len(self.label.classes) == 2 else len(self.label.classes)
        return len(self.label.columns) if self.label.columns is not None else self.label.outputs or 1

    @property
    def label_max_abs(self) -> float:
        """The largest magnitude that a function is taught; classes are -1 and 1."""
        return 1.0 if self.label_kind == "class" else self.label.max_abs

    @property
    def length_scale(self) -> float:
        """The length by which inputs differ."""
        return kernel_settings.length_scale(self)

    def unscaled(self, x: np.ndarray) -> np.ndarray:
        """The inputs that the kernel sees as x, (samples, DIM)."""
        x = x if self.input.scale is None else x / np.array(self.input.scale)
        return x if self.input.center is None else x + np.array(self.input.center)

    @property
    def real(self) -> Precision:
        return PRECISIONS[self.precision]

    @property
    def capacities(self) -> dict[str, int]:
        return self.family.capacities(self)

    @property
    def state_bytes_bound(self) -> int:
        return self.family.size_bound(self) * self.real.dtype.itemsize

    @property
    def config_values(self) -> dict[str, Any]:
        """Parameters, derived in float64; each is rounded once when the precision is bound."""
        return self.family.parameters(self)

    @property
    def config(self) -> Settings:
        return self.program.settings(self.real, self.config_values, self.capacities)

    def memory(self, drop: tuple[str, ...] = ()) -> Memory:
        return self.program.memory(self.real, self.capacities, drop)

    def to_toml(self) -> str:
        """The spec as a file's text; defaults that were not given are left out."""

        def shown(value: Any) -> str:
            if isinstance(value, (list, tuple)):
                if value and isinstance(value[0], (list, tuple)):
                    return "[\n" + "".join(f"    {shown(row)},\n" for row in value) + "]"
                return "[" + ", ".join(map(shown, value)) + "]"
            return json.dumps(value, ensure_ascii=False)

        given = self.model_dump(mode="json", exclude_unset=True)
        lines = [f"{key} = {shown(value)}" for key, value in given.items() if not isinstance(value, dict)]
        for section, content in given.items():
            if isinstance(content, dict):
                lines += ["", f"[{section}]"] + [f"{k} = {shown(v)}" for k, v in content.items() if v is not None]
        return "\n".join(lines) + "\n"


def load_spec(path: str | Path, trust: bool = False, announce: Callable[[str], None] | None = None) -> Spec:
    """Read a spec from a TOML file.  Raises UserError, one sentence, for whatever is wrong with it.

    A spec whose [kernel] names a source is code: it is refused unless ``trust``, which executes that file;
    ``announce`` is called with its path before.
    """
    where = str(path) if str(path).isprintable() else shown_value(str(path))
    help_ = "see `pykernel generate --help` for one that is"
    try:
        content = tomllib.loads(read_plain(path, SPEC_LIMIT).decode())
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
    spec = _validated(content, where)
    kernel = spec.kernel
    if kernel is None or kernel.function != "custom":
        return spec
    source, name = _custom_names(kernel, where)
    if not trust:
        raise UntrustedCode(
            f"{where}: [kernel] source names {source}, Python code that this would execute; read that file, then allow it "
            "with --trust-code (in Python: load_spec(path, trust=True))"
        )
    return _with_custom(spec, load_kernel(Path(path).parent, source, name, announce, where), where)


def make_spec(content: Mapping[str, Any], where: str = "spec", custom: Kernel | None = None) -> Spec:
    """A spec from nested dictionaries; ``where`` begins the error's sentence; custom: the user's kernel, if it names one."""
    spec = _validated(content, where)
    kernel = spec.kernel
    if kernel is None or kernel.function != "custom":
        return spec
    source, name = _custom_names(kernel, where)
    if custom is None:
        raise UserError(
            f"{where}: [kernel] source names {source}, which is code, and it is not there; load the spec from its file, or "
            "give the kernel: make_spec(content, custom=kernel)"
        )
    if custom.name != name:
        raise UserError(f"{where}: [kernel] kernel is {name}, but the kernel given is {custom.name}; name that one")
    return _with_custom(spec, custom, where)


def _validated(content: Mapping[str, Any], where: str) -> Spec:
    try:
        return Spec.model_validate(content)
    except ValidationError as error:
        raise UserError(f"{where}: {_sentence(error)}") from None


def _custom_names(kernel: KernelSection, where: str) -> tuple[str, str]:
    """Where a custom kernel is.  Raises UserError if a key is missing."""
    for key in ("source", "kernel", "max_value"):
        if getattr(kernel, key) is None:
            raise UserError(
                f"{where}: [kernel] {key} is missing; a custom kernel must have source, kernel and max_value"
            )
    return str(kernel.source), str(kernel.kernel)


def _with_custom(spec: Spec, custom: Kernel, where: str) -> Spec:
    """The spec with the user's kernel in its place, once that has been judged."""
    spec._custom = custom
    try:
        reach = kernel_settings.reach(spec)
        judge_source(custom)
        judge_values(custom, spec.config.views[KernelConfig], spec.real, reach)
    except UserError as error:
        raise UserError(f"{where}: {error}" if str(error).startswith("[") else str(error)) from None
    return spec


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong, where, and what would be right."""
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"]]
    section = f"[{location[0]}] " if len(location) > 1 else ""
    key = location[1 if len(location) > 1 else 0] if location else ""
    word = first["input"] if first["type"] == "literal_error" else None
    if first["type"] == "extra_forbidden" and (new := RENAMED.get(tuple(location))):
        return f"{section}{key} is called {new} now"
    if isinstance(word, str) and (new := RENAMED.get((*location, word))):
        return f'{section}{key} "{word}" is called "{new}" now'
    if first["type"] == "extra_forbidden":
        model: Any = SECTIONS[location[0]] if len(location) > 1 else Spec
        near = difflib.get_close_matches(key, list(model.model_fields), 1)
        remedy = f"did you mean {near[0]!r}?" if near else f"the keys are: {', '.join(model.model_fields)}"
        return f"{section}{shown_value(key)} is not a key of a spec; {remedy}"
    if first["type"] == "missing":
        return (
            f"{section}{key} is missing" if section else f"[{key}] is missing" if key != "name" else "name is missing"
        )
    message = first["msg"]
    if first["type"] == "value_error":
        message = str(first["ctx"]["error"])
        return f"{section}{key} {message}".strip() if key else message
    if first["type"] == "model_type":
        return f"{key or 'it'} is {shown_value(first['input'])}; it must be a section, [{key or 'input'}], with keys of its own"
    message = (
        message.replace("Input should be", "it must be").replace("a valid", "a").replace("a integer", "a whole number")
    )
    return f"{section}{key} is {shown_value(first['input'])}; {message[0].lower()}{message[1:]}"


def visible_name(text: str) -> str:
    """A column's name: it reaches comments and manifests, so nothing invisible and nothing endless."""
    if (
        not 1 <= len(text) <= 100
        or text != text.strip()
        or any(unicodedata.category(ch) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for ch in text)
    ):
        raise ValueError(f"names {shown_value(text)}; a column's name must have 1 to 100 visible characters")
    return text


def shown_value(value: Any) -> str:
    text = ascii(value).replace("\n", " ")  # an array has lines
    return text if len(text) <= 60 else text[:57] + "..."
