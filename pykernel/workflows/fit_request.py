"""The request of ``fit``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pykernel.request.kinds import File, Numbers
from pykernel.request.option import Opt
from pykernel.request.options import (
    THE_TABLE,
    AllJobs,
    Classes,
    Force,
    Inputs,
    Name,
    Precision,
    Report,
    Seed,
    Table,
)
from pykernel.request.training import Training
from pykernel.telling import QUIET
from pykernel.workflows.models import Model, Watched

MANY_ROWS = 1000
"""All cores are used if rows * vectors^2 is at least the cube of this number.  Below that, several cores save no time."""
DEFAULT_RIDGE = 0.1


@dataclass(frozen=True, eq=False, repr=False)
class Fit(Training):
    """Train a kernel machine on a table, or choose a basis of its rows, and write the result as a spec.

    Leave-one-out chooses width and ridge. With few vectors (--n-max, --flash), trained vectors and a
    network are tried, too. Text labels are classes.

        pykernel fit flowers.csv --label kind -o iris.toml --set training.model=svm
        pykernel fit year.npy --label 4 -o flow.toml --set learning.rule=nystrom-rls

    Without --label, the spec computes coordinates in a basis: a few rows whose span is close to all rows. A model that learns can
    start from this spec.

    Columns: "errors" is the fraction of rows with a wrong class. "PRESS" is the mean squared difference from the targets.
    "RMSE" is its square root. "left out" is the part of tr K that a basis misses.

    Exit codes: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """

    data: Table
    _: KW_ONLY
    output: Annotated[
        File | None, Opt("Spec to write; FILE.npz for the basis alone.", "SPEC", short="-o", needed=True)
    ] = None
    label: Annotated[str | None, Opt("The label's column, or its position in .npy.", "Y", without="a basis")] = None
    inputs: Inputs = None
    spec: Annotated[
        Model | None,
        Opt(
            "Spec to take keys, columns or [signal] from.",
            "SPEC",
            without="none",
            kind=Path,
            more="If fit trained the spec's model, a new model is trained on this table in the same way.",
        ),
    ] = None
    classes: Classes = None
    rule: Annotated[
        Literal["frozen", "nystrom-rls", "kfd"] | None,
        Opt(
            "nystrom-rls: the device learns the weights; kfd: it trains a discriminant.",
            "RULE",
            key="learning.rule",
            without="frozen",
        ),
    ] = None
    kernel: Annotated[
        str,
        Opt(
            "gaussian, laplacian, matern12, matern32, matern52, polynomial or linear; with training.model=kfd, also sigmoid.",
            "KERNEL",
            key="kernel.function",
        ),
    ] = "gaussian"
    sigma: Annotated[
        Numbers, Opt("Gaussian width, or several to try.", "S,S", key="kernel.sigma", without="by the data")
    ] = None
    gamma: Annotated[
        Numbers, Opt("gamma of the other kernels, or several to try.", "G,G", key="kernel.gamma", without="by the data")
    ] = None
    coef0: Annotated[float, Opt("Constant of polynomial and sigmoid.", "C", key="kernel.coef0")] = 1.0
    degree: Annotated[int, Opt("Degree of the polynomial, 1 to 9.", "N", key="kernel.degree")] = 3
    n_max: Annotated[
        int | None,
        Opt(
            "Maximum number of vectors.",
            "N",
            short="-n",
            without="as many as train in 1 min; basis 100, coordinates 64",
            elsewhere=("--vectors",),
        ),
    ] = None
    flash: Annotated[str | int | None, Opt("Limit for vectors and weights.", "BYTES")] = None
    precision: Precision = "float32"
    name: Name = None
    hold_out: Annotated[
        str | float | None,
        Opt(
            "Keep this fraction of the rows for a test; .3,last or .3,random also says which rows.",
            "PART",
            rare=True,
            without="none",
        ),
    ] = None
    seed: Seed = 0
    jobs: AllJobs = None
    report: Report = None
    force: Force = False
    watch: Watched = QUIET

    shell: ClassVar = ("json",)
    instead: ClassVar = THE_TABLE | {"--save": "give --output a name that ends with .npz to save only the basis"}

    @property
    def of_basis(self) -> tuple[str, ...]:
        """The names of the arguments for which a basis is chosen: those that request one, and ``label`` if it is missing."""
        names = [name for name in OF_BASES if getattr(self, name) not in (getattr(type(self), name), "frozen")]
        if self.output is not None and not self.makes_spec:
            names.append("output")
        if self.label is None and self.spec is None:
            names.append("label")
        if isinstance(self.data, str | Path) and Path(self.data).suffix.lower() == ".npy":
            names.append("data")
        return tuple(names)

    @property
    def makes_spec(self) -> bool:
        """Whether a spec is written, and not only a basis."""
        return self.output is None or Path(self.output).suffix.lower() != ".npz"


OF_BASES = ("rule", "normalise", "features", "candidates", "points", "tau", "confidence")
"""Arguments that request a basis, which can be chosen from a table larger than memory."""
