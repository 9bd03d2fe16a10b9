"""The arguments of ``fit`` and ``basis`` as objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pykernel.errors import UserError, option
from pykernel.telling import QUIET, Watch
from pykernel.workflows.given import Numbers, need_known

if TYPE_CHECKING:
    from pykernel.rows.recordings import Recordings

MANY_ROWS = 1000
"""Number of rows from which starting all cores is worth it, if all rows are vectors; or the same amount of work with
fewer vectors."""
LARGE = 16 * 1024
"""If vectors and weights need more bytes, fewer vectors are tried as well, unless the user gave the size."""
BASIS_MODELS = ("krr", "ls-svm")
DEFAULT_RIDGE = 0.1
COMPARED_ROWS = 1000
"""Most rows on which the written spec is compared with what was computed here."""
COARSE = 0.05
"""Rounding that moves a prediction by more than this part of a typical error is worth a warning."""
TRAINED = "trained"
"""The method that trains its vectors; other methods choose rows as vectors."""

Words = str | Sequence[str] | None
"""Names as a sequence, or as text with commas."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments that both have."""

    UNNAMED: ClassVar[str]
    """The name in C if neither a name nor a file is given."""

    data: str
    output: Path | None = None
    label: str | None = None
    inputs: Words = None
    classes: Words = None
    model: str | None = None
    kernel: str = "gaussian"
    sigma: Numbers = None
    gamma: Numbers = None
    coef0: float = 1.0
    degree: int = 3
    ridge: Numbers = None
    with_: str | Mapping[str, Any] | None = None
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
        return self.UNNAMED if self.output is None else prefix(self.output)

    def need_unset(self, names: Sequence[str], trained: str) -> None:
        """Raises UserError if one of the arguments is given, which have no meaning for vectors that are trained.

        trained: the argument that says so.
        """
        by = f"{option(trained)} {TRAINED}, which trains vectors and widths"
        for name in names:
            if getattr(self, name) != getattr(type(self), name):
                told = option(name.strip("_"))
                raise UserError(f"{told} is not of {by}; leave {told} out")

    def width(self, known: Sequence[str], where: str = "") -> tuple[str | None, Numbers]:
        """The name of the kernel's width, None if the kernel has none, and the width that was given.

        known: the kernels.  where: in which command, for the sentence.  Raises UserError for an unknown kernel, and for
        a width that this kernel does not have.
        """
        need_known(self.kernel, known, "kernel", where)
        given = {"sigma": self.sigma, "gamma": self.gamma}
        own = {"gaussian": "sigma", "linear": None}.get(self.kernel, "gamma")
        remedy = f"it has {option(own)}" if own else "it has no width"
        for name, value in given.items():
            if value is not None and name != own:
                raise UserError(f"{option(name)} is not of the {self.kernel} kernel; {remedy}")
        return own, given.get(own or "")


@dataclass(frozen=True, kw_only=True)
class FitAsked(Asked):
    """The arguments of ``fit``."""

    UNNAMED = "model"

    many: Recordings | None = None
    signal: Any = None  # a Spec, or the path of one
    coding: str | None = None
    n_max: int | None = None
    basis: str | None = None
    flash: str | int | None = None
    cv: str | int = "deleted"
    by: str | None = None
    loss: str | None = None
    hold_out: float = 0.0


@dataclass(frozen=True, kw_only=True)
class BasisAsked(Asked):
    """The arguments of ``basis``."""

    UNNAMED = "basis"

    n_max: int = 100
    save: Path | None = None
    method: str = "auto"
    learn: bool = False
    kfd: bool = False
    features: int | None = None
    shrinkage: float = 0.1
    normalise: bool = False
    candidates: int = 59
    points: int = 59
    tau: float = 0.0
    confidence: float | None = None
    shards: int = 1

    @property
    def makes_spec(self) -> bool:
        """Whether a spec is made: yes, unless only the basis is saved."""
        return self.output is not None or self.save is None


Kind = TypeVar("Kind", FitAsked, BasisAsked)


def asked(kind: type[Kind], given: Mapping[str, Any]) -> Kind:
    """The arguments of a function as an object; paths that are given as text become Path objects."""
    paths = {"output", "save", "plot"}
    taken: dict[str, Any] = {
        name: Path(value) if name in paths and value is not None else value for name, value in given.items()
    }
    return kind(**taken | {"data": str(given["data"])})


def prefix(out: Path) -> str:
    """The prefix of the names in C, from the name of the spec's file."""
    from pykernel.spec.base import checked_name

    try:
        return checked_name(out.stem)
    except ValueError as error:
        raise UserError(f"{out}: the model's name {error}, or give {option('name')}") from None
