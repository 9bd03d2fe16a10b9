"""The arguments of ``fit`` and ``basis`` as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pykernel.errors import UserError, option
from pykernel.telling import QUIET, Watch
from pykernel.workflows.given import Numbers

MANY_ROWS = 1000
"""Number of rows from which starting all cores is worth it, if all rows are vectors; or the same amount of work with
fewer vectors."""
BASIS_MODELS = ("krr", "ls-svm")
DEFAULT_RIDGE = 0.1
TRAINED = "trained"
"""The method that trains its vectors; other methods choose rows as vectors."""

Words = str | Sequence[str] | None
"""Names as a sequence, or as text with commas."""


@dataclass(frozen=True, kw_only=True)
class FitAsked:
    """The arguments of ``fit``."""

    data: str
    output: Path | None = None
    label: str | None = None
    inputs: Words = None
    signal: Any = None  # a Spec, or the path of one
    classes: Words = None
    model: str | None = None
    kernel: str = "gaussian"
    sigma: Numbers = None
    gamma: Numbers = None
    coef0: float = 1.0
    degree: int = 3
    ridge: Numbers = None
    coding: str | None = None
    n_max: int | None = None
    basis: str | None = None
    with_: str | Mapping[str, Any] | None = None
    flash: str | int | None = None
    cv: str | int = "deleted"
    by: str | None = None
    loss: str | None = None
    hold_out: float = 0.0
    standardise: bool | None = None
    seed: int = 0
    jobs: str | int | None = None
    precision: str = "float32"
    name: str | None = None
    plot: Path | None = None
    force: bool = False
    watch: Watch = QUIET

    @property
    def called(self) -> str:
        """The name in C."""
        if self.name is not None:
            return self.name
        return "model" if self.output is None else prefix(self.output)


@dataclass(frozen=True, kw_only=True)
class BasisAsked:
    """The arguments of ``basis``."""

    data: str
    n_max: int = 100
    output: Path | None = None
    save: Path | None = None
    method: str = "auto"
    inputs: Words = None
    label: str | None = None
    classes: Words = None
    model: str | None = None
    learn: bool = False
    kfd: bool = False
    features: int | None = None
    shrinkage: float = 0.1
    kernel: str = "gaussian"
    sigma: Numbers = None
    gamma: Numbers = None
    coef0: float = 1.0
    degree: int = 3
    normalise: bool = False
    ridge: Numbers = None
    candidates: int = 59
    points: int = 59
    with_: str | Mapping[str, Any] | None = None
    tau: float = 0.0
    confidence: float | None = None
    standardise: bool | None = None
    shards: int = 1
    jobs: str | int | None = None
    checkpoint: Path | None = None
    seed: int = 0
    precision: str = "float32"
    name: str | None = None
    plot: Path | None = None
    force: bool = False
    watch: Watch = QUIET

    @property
    def called(self) -> str:
        """The name in C."""
        return self.name or ("basis" if self.output is None else prefix(self.output))

    @property
    def makes_spec(self) -> bool:
        """Whether a spec is made: yes, unless only the basis is saved."""
        return self.output is not None or self.save is None


Asked = TypeVar("Asked", FitAsked, BasisAsked)


def asked(kind: type[Asked], given: Mapping[str, Any]) -> Asked:
    """The arguments of a function as an object; paths that are given as text become Path objects."""
    paths = {"output", "save", "plot", "checkpoint"}
    taken: dict[str, Any] = {
        name: Path(value) if name in paths and value is not None else value for name, value in given.items()
    }
    return kind(**taken | {"data": str(given["data"])})


def prefix(out: Path) -> str:
    """The prefix of the names in C, from the name of the spec's file."""
    from pykernel.spec.base import is_prefix

    if not is_prefix(out.stem):
        raise UserError(
            f"{out}: names in C would begin with {out.stem!r}, which they cannot; give {option('name')}, or call the file by 1 to 31 of "
            "a-z, 0-9 and single '_', a letter first"
        )
    return out.stem
