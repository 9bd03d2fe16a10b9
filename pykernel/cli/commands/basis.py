"""The commands ``pykernel basis``, a basis chosen from many rows, as a spec for the device; and ``pykernel convert``."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pykernel.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from pykernel.bases.basis import Basis
    from pykernel.bases.gram import MercerKernel
    from pykernel.bases.sharding import Sharded
    from pykernel.rows import Rows
    from pykernel.spec.model import Spec
    from pykernel.training.reduced import ReducedModel
    from pykernel.training.selection import Selection

MODELS = ("krr", "ls-svm")
TUNED_ROWS = 5000
"""With more rows than these, width and ridge are chosen on so many of them, which are drawn."""
LIMIT_ROWS = 3000
"""Up to so many rows the eigenvalues of their Gram matrix tell what no basis can do better."""
COMPARED_ROWS = 1000
"""On at most so many rows the written spec is compared with what was computed here."""
BLOCK = 2**16
COARSE = 0.05
"""Rounding that moves a prediction by more than this part of a typical error is worth a warning."""
MARGIN = 1.01
"""A vector must leave over so many times what the precision resolves, as rounding its numbers changes that."""
DEFAULT_RIDGE = 0.1

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines, and nothing else.")]


def basis(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A .npy, .parquet or .arrow file, a folder of .parquet files, or a small .csv.",
            show_default=False,
        ),
    ],
    n: Annotated[int, typer.Option("--n", "-n", metavar="N", help="Vectors at most.")] = 100,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--output", "-o", metavar="SPEC", help="The spec to write.", show_default=False),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option("--save", metavar="NPZ", help="The basis, for Basis.load in Python.", show_default=False),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method",
            metavar="METHOD",
            help="efvs, sgma, rpcholesky, exhaustive, k-means, leverage, pivoted-cholesky, uniform or fvs.",
            show_default="auto: by size",
        ),
    ] = "auto",
    inputs: Annotated[
        str | None,
        typer.Option(
            "--inputs",
            metavar="A,B",
            help="The inputs' columns; of .npy, positions.",
            show_default="all others with numbers",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option("--label", metavar="Y", help="The label's column; of .npy, its position.", show_default="none"),
    ] = None,
    classes: Annotated[
        str | None,
        typer.Option("--classes", metavar="A,B", help="The label's classes, in this order.", show_default=False),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="|".join(MODELS),
            help="With a label: ridge regression, without a bias or with it.",
            show_default="ls-svm; krr with --learn",
        ),
    ] = None,
    learn: Annotated[
        bool,
        typer.Option("--learn", help="A model that learns on the device, on the basis, by recursive least squares."),
    ] = False,
    kfd: Annotated[
        bool, typer.Option("--kfd", help="A kernel Fisher discriminant that is trained on the device, on the basis.")
    ] = False,
    kernel: Annotated[
        str,
        typer.Option(
            "--kernel", metavar="KERNEL", help="gaussian, laplacian, matern32, matern52, polynomial or linear."
        ),
    ] = "gaussian",
    sigma: Annotated[
        str | None,
        typer.Option(
            "--sigma",
            metavar="S,S",
            help="Width of the Gaussian; with a label, several to try.",
            show_default="by the data",
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option("--gamma", metavar="G,G", help="The same of the other kernels.", show_default="by the data"),
    ] = None,
    coef0: Annotated[float, typer.Option("--coef0", metavar="C", help="Constant of the polynomial.")] = 1.0,
    degree: Annotated[int, typer.Option("--degree", metavar="N", help="Of the polynomial, 1 to 9.")] = 3,
    normalise: Annotated[
        bool, typer.Option("--normalise", help="k(a, b) / sqrt(k(a, a) k(b, b)), of polynomial and linear.")
    ] = False,
    ridge: Annotated[
        str | None,
        typer.Option(
            "--ridge",
            metavar="R,R",
            help="Ridges to try.",
            show_default=f"by the data; {DEFAULT_RIDGE} without a label",
        ),
    ] = None,
    candidates: Annotated[
        int, typer.Option("--candidates", metavar="K", help="efvs, sgma: rows tried for a vector; 0: all.")
    ] = 59,
    points: Annotated[
        int, typer.Option("--points", metavar="V", help="efvs: rows that judge a candidate; 0: all.")
    ] = 59,
    tau: Annotated[
        float, typer.Option("--tau", metavar="T", help="Stop when no more than this part is left out; 0: never.")
    ] = 0.0,
    standardise: Annotated[
        bool | None,
        typer.Option(
            "--standardise/--no-standardise",
            help="Scale inputs to mean 0 and deviation 1; the spec does it on the device.",
            show_default="if their scales differ",
        ),
    ] = None,
    shards: Annotated[
        int, typer.Option("--shards", metavar="S", help="Choose from so many shards, then from what they chose.")
    ] = 1,
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            metavar="N|ADDRESS",
            help="Of shards: processes, or a Dask scheduler.",
            show_default="all cores",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="FILE",
            help="What is done is kept there; the same command goes on.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of all draws.")] = 0,
    precision: Annotated[
        str, typer.Option("--precision", metavar="float32|float64", help="Of the device's numbers.")
    ] = "float32",
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Prefix of all names in C.", show_default="the spec's file"),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", metavar="PNG", help="Draw what is left out against n.", show_default=False),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite SPEC, NPZ and PNG.")] = False,
    as_json: Json = False,
) -> None:
    """Choose a basis in a kernel's feature space from up to millions of rows, and write it as a spec for the device.

    The vectors are rows of the data whose span in feature space comes near to all rows; a model on them costs what they
    cost, however many rows there were. Rows are read as they are needed: memory does not grow with the file.

        pykernel basis measured.npy --n 100 --sigma 2 --save basis.npz --figure curve.png
        pykernel basis flow.csv --label flow --n 40 --out flow.toml
        pykernel basis year.parquet --label load --n 64 --learn --out load.toml --checkpoint year.npz
        pykernel basis parts/ --n 200 --shards 16 --workers tcp://big-machine:8786 --save basis.npz

    **What is written**: with --label a model of rule *nystrom*: basis and weights in flash; width and ridge are chosen by
    leave-one-out (of many rows, on 5,000 that are drawn), the weights are those of all rows. Without a label a spec that
    predicts the coordinates z. With --learn rule *nystrom-rls*: the device learns the weights; with --kfd and a label of
    classes rule *kfd*. --save takes the basis to Python.

    **Columns**: *vectors*; *left out*: the part of tr K that so many vectors leave out, of all rows or estimated on some;
    *at best*: no basis of so many can leave out less (the sum of the other eigenvalues; up to 3,000 rows). Then the
    kernel values that were computed to choose, and what the model's error is.

    Ctrl-C and SIGTERM stop after the vector that is being chosen; with --checkpoint, however it ends, the same command
    goes on from there (at most a minute is lost) to the same result.

    **Exit codes**: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    from pykernel.cli import app as cli
    from pykernel.cli.commands.fit import _words
    from pykernel.spec.model import make_spec

    if out is None and save is None:
        raise UserError("nothing is to be written; give --out SPEC, --save NPZ, or both")
    _need_outputs(data, [out, save, figure, checkpoint], force, checkpoint)
    if learn and kfd:
        raise UserError("--learn and --kfd are two models; give one of them")
    if (learn or kfd) and out is None:
        raise UserError(f"--{'learn' if learn else 'kfd'} is of the spec; give --out SPEC")
    fitted = _model(model, learn, kfd)
    if kfd and label is None:
        raise UserError("--kfd separates classes; give --label, their column")
    if classes is not None and label is None:
        raise UserError("--classes are of the label; give --label, its column")
    if shards < 1:
        raise UserError(f"--shards is {shards}; it must be 1 or more")
    if tau and shards > 1:
        raise UserError("--tau does not go with --shards: what is left out is known when all are done; leave it out")
    if workers is not None and shards == 1:
        raise UserError("--workers is of shards; give --shards, more than one")
    for option, value in (("--candidates", candidates), ("--points", points)):
        if value < 0:
            raise UserError(f"{option} is {value}; it must be a number of rows, or 0 for all")
    called = "basis" if name is None and out is None else (name or out.stem)  # type: ignore[union-attr]
    # before the work, not after it
    make_spec({"name": called, "precision": precision, "input": {"dim": 1}, "kernel": {"sigma": 1.0}}, "pykernel basis")
    epsilon = _epsilon(precision, out)
    if figure:
        cli._need_matplotlib()
    widths = _need_kernel(kernel, sigma, gamma, label is not None)
    ridges = _numbers(ridge, "--ridge")
    if ridges and len(ridges) > 1 and label is None:
        raise UserError("--ridge holds several; without a label there is nothing to choose by: give one")

    with _stopped_by_sigterm():
        try:
            with cli._progress(as_json) as show:
                table = read(data, _words(inputs), label, _words(classes), kfd, show)
                seen = look(table.rows, show)
            scaled = _scaled(table, seen, standardise)
            job = _Job(
                table, scaled, n, method, kernel, coef0, degree, normalise, seed, precision, fitted, epsilon,
                {"candidates": candidates or None, "points": points or None}, tau, shards, workers, checkpoint, as_json,
            )  # fmt: skip
            chosen, found, selection = job.run(widths, ridges)
            weighs = selection is not None and out is not None and not learn and not kfd
            machine = job.solved(chosen, selection.ridge) if weighs and selection is not None else None
        except KeyboardInterrupt:
            kept = f"; {checkpoint} holds what was done: the same command goes on from there" if checkpoint else ""
            there = checkpoint is not None and checkpoint.exists()
            cli._say("error", f"interrupted{kept if there else ''}")
            # not KeyboardInterrupt, which typer turns into a bare exit
            raise typer.Exit(cli.INTERRUPTED) from None
    spec = None
    if out is not None:
        spec = _spec(job, chosen, selection, machine, called, learn, kfd, ridges)
    report = _report(job, chosen, found, selection, machine, spec)
    _write(report, job, chosen, spec, out, save, figure)
    if as_json:
        cli._print_json(report)
    else:
        _print_basis(report)
    for warning in report["warnings"]:
        cli._warn(warning)


# ------------------------------------------------------------------------------------------------------------- data


@dataclass
class Table:
    """Rows of inputs, (l, D); the label's values or positions of classes, (l,), if there is one; what was assumed."""

    name: str
    rows: Rows
    inputs: list[str] | None
    column: str | None
    classes: list[str] | None
    y: np.ndarray | None
    assumed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Seen:
    """Of each input, (D,): mean, deviation, least and largest."""

    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray


def read(
    data: str, inputs: Sequence[str], label: str | None, classes: Sequence[str], kfd: bool, show: Any = None
) -> Table:
    """A CSV file, in memory; or a file that is read in parts, of which only the label is in memory.  Raises UserError."""
    if data == "-" or Path(data).suffix.lower() == ".csv":
        return _read_csv(data, inputs, label, classes, kfd, show)
    import numpy as np

    from pykernel.rows import TABLES, as_rows, table_columns

    path = Path(data)
    assumed: list[str] = []
    names: list[str] | None = None
    if path.suffix.lower() in TABLES or path.is_dir():
        columns = table_columns(path)
        names = list(inputs) or [each for each, numeric in columns if numeric and each != label]
        left = [each for each, _ in columns if each not in (*names, label)]
        if not names:
            raise UserError(f"{data}: has no column with numbers for the inputs; give --inputs")
        if not inputs:
            assumed.append(f"{len(names)} inputs" + (f", without {', '.join(left[:8])}" if left else ""))
        wanted: list[str | int] | None = list(names)
        of_label: str | int | None = label
    else:
        rows = as_rows(path)
        of_label = None if label is None else _position(label, rows.dim, data, "--label")
        wanted = [_position(each, rows.dim, data, "--inputs") for each in inputs] or None
        if wanted is None and of_label is not None:
            wanted = [j for j in range(rows.dim) if j != of_label]
            assumed.append(f"{len(wanted)} inputs: all columns but {of_label}")
    if of_label is not None and wanted is not None and of_label in wanted:
        raise UserError(f"{data}: column {label!r} is the label; leave it out of --inputs")
    if wanted == []:
        raise UserError(f"{data}: has one column, the label; at least one input is needed")
    rows = as_rows(path, wanted)
    if len(rows) < 2:
        raise UserError(f"{data}: has {len(rows)} rows; at least 2 are needed")
    table = Table(data, rows, names, label, None, None, assumed)
    if of_label is not None:
        y = np.concatenate([block[:, 0] for _, block in as_rows(path, [of_label]).blocks(BLOCK)])
        table.y, table.classes = _labels(data, str(label), y, classes, kfd)
        assumed.append(
            f"{len(table.classes)} classes: {', '.join(table.classes)}" if table.classes else "labels are numbers"
        )
    return table


def _read_csv(
    data: str, inputs: Sequence[str], label: str | None, classes: Sequence[str], kfd: bool, show: Any
) -> Table:
    import numpy as np

    from pykernel.cli import app as cli
    from pykernel.cli.commands.fit import _listed, read_table
    from pykernel.rows import ArrayRows
    from pykernel.tuning.plan import _columns, _numbers

    with contextlib.ExitStack() as stack:
        source, file, _ = cli._open(data, stack)
        if label is not None:
            read = read_table(file, source, inputs, label, classes, "kfd" if kfd else "ls-svm", None)
            told = [each.split(", so the model is")[0] for each in read.assumed]
            return Table(source, ArrayRows(read.x, name=source), read.inputs, read.column, read.classes, read.y, told)
        header, columns = _columns(file, source, None)
    numeric = {each: values for each, cells in columns.items() if (values := _numbers(cells)) is not None}
    for each in inputs:
        if each not in numeric:
            what = "does not hold numbers" if each in header else "is not there"
            raise UserError(f"{source}: column {each!r} {what}; --inputs must be columns with numbers")
    chosen = list(inputs) or list(numeric)
    if not chosen:
        raise UserError(f"{source}: has no column with numbers; give a file that has some")
    x = np.column_stack([numeric[each] for each in chosen])
    whole = np.isfinite(x).all(axis=1)
    left = [each for each in header if each not in chosen]
    assumed = [f"{len(chosen)} inputs: {_listed(chosen)}" + (f", without {_listed(left)}" if left else "")]
    if not whole.all():
        assumed.append(f"{int((~whole).sum()):,} rows without an input left out")
    if whole.sum() < 2:
        raise UserError(f"{source}: has {int(whole.sum())} rows with all inputs; at least 2 are needed")
    return Table(source, ArrayRows(x[whole], name=source), chosen, None, None, None, assumed)


def _position(text: str, width: int, data: str, option: str) -> int:
    try:
        at = int(text)
    except ValueError:
        raise UserError(
            f"{option} is {text!r}; {data} has no names of columns: give positions from 0 to {width - 1}"
        ) from None
    if not -width <= at < width:
        raise UserError(f"{option} is {at}; {data} has {width} columns, at positions from 0 to {width - 1}")
    return at % width


def _labels(
    data: str, column: str, y: np.ndarray, given: Sequence[str], kfd: bool
) -> tuple[np.ndarray, list[str] | None]:
    """Numbers as they are, or positions of classes and their names."""
    import numpy as np

    from pykernel.spec.model import OUTPUTS_LIMIT

    if not given and not kfd:
        return y, None
    there = np.unique(y)
    if given:
        try:
            values = [float(each) for each in given]
        except ValueError:
            raise UserError(
                f"--classes is {','.join(given)}; {data} holds numbers: give those that are classes"
            ) from None
        unknown = sorted(set(there.tolist()) - set(values))
        if unknown:
            raise UserError(
                f"{data}: column {column} holds {unknown[0]:g}, which --classes does not name; add it there"
            )
        names = list(given)
    else:
        if len(there) > OUTPUTS_LIMIT:
            raise UserError(
                f"{data}: column {column} holds {len(there):,} different numbers; there may be {OUTPUTS_LIMIT} classes: is it "
                "the right column?"
            )
        values, names = there.tolist(), [f"{each:g}" for each in there.tolist()]
    if len(names) < 2:
        raise UserError(f"{data}: column {column} is always {names[0]}; two classes are needed at least")
    positions = np.full(len(y), -1, np.int64)
    for at, value in enumerate(values):
        positions[y == value] = at
    counts = np.bincount(positions, minlength=len(names))
    if not counts.all():
        raise UserError(f"{data}: column {column} never is {names[int(counts.argmin())]}; leave it out of --classes")
    return positions, names


def look(rows: Rows, show: Any = None) -> Seen:
    """One pass over all rows, in blocks: refuses what is no number before the work, and tells the inputs' scales."""
    import numpy as np

    count, low, high = 0, np.full(rows.dim, np.inf), np.full(rows.dim, -np.inf)
    mean, squares = np.zeros(rows.dim), np.zeros(rows.dim)
    for start, block in rows.blocks(BLOCK):
        # Chan, Golub and LeVeque's merging of moments
        here, added = block.mean(axis=0), len(block)
        apart = here - mean
        count += added
        squares += np.square(block - here).sum(axis=0) + apart**2 * (added * (count - added) / count)
        mean += apart * (added / count)
        low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
        if show is not None:
            show((start + added) / len(rows), "looking at all rows")
    return Seen(mean, np.sqrt(squares / count), low, high)


@dataclass(frozen=True)
class Scaled:
    """Rows as the kernel sees them; center and factor are None where inputs are as they come; largest: (D,) magnitudes."""

    rows: Rows
    center: np.ndarray | None
    factor: np.ndarray | None
    largest: np.ndarray


def _scaled(table: Table, seen: Seen, wanted: bool | None) -> Scaled:
    import numpy as np

    from pykernel.rows import ScaledRows

    spread = np.where(seen.deviation > 0, seen.deviation, 1.0)
    if wanted is None:
        uneven = spread.max() > 4 * spread.min() or bool((np.abs(seen.mean) > 100 * spread).any())
        wanted = uneven
        if uneven:
            table.assumed.append("inputs standardised: their scales differ, or are far from zero")
    if not wanted:
        return Scaled(table.rows, None, None, np.maximum(np.abs(seen.low), np.abs(seen.high)))
    center, factor = seen.mean, 1 / spread
    largest = np.maximum(np.abs(seen.low - center), np.abs(seen.high - center)) * factor
    return Scaled(ScaledRows(table.rows, center, factor), center, factor, largest)


# --------------------------------------------------------------------------------------------------------- the work


@dataclass
class _Job:
    """All that a run was asked for."""

    table: Table
    scaled: Scaled
    n: int
    method: str
    function: str
    coef0: float
    degree: int
    normalise: bool
    seed: int
    precision: str
    model: Any
    epsilon: float
    draws: dict[str, Any]
    tau: float
    shards: int
    workers: str | None
    checkpoint: Path | None
    quiet: bool
    seconds: float = 0.0

    def mercer(self, width: float) -> MercerKernel:
        from pykernel.bases.gram import MercerKernel

        gamma = 0.5 / width / width if self.function == "gaussian" else width
        coef0, degree = (self.coef0, self.degree) if self.function == "polynomial" else (0.0, 1)
        return MercerKernel(self.function, gamma, coef0, degree, self.normalise)

    def run(
        self, widths: list[float] | None, ridges: list[float] | None
    ) -> tuple[Basis, Sharded | None, Selection | None]:
        """The basis; its shards, if there are any; with a label, how width and ridge were chosen."""
        from pykernel.training.reduced import select_reduced
        from pykernel.training.selection import one_thread

        rows, table = self.scaled.rows, self.table
        sample = self._sample()
        targets = self._targets()
        with one_thread:  # so that the spec's bits do not depend on how many there are
            if widths is None:
                widths = self._default_widths(sample[1], targets is not None)
            if len(widths) > 1:
                at, x = sample
                if len(x) < len(rows):
                    table.assumed.append(f"the width chosen on {len(x):,} of {len(rows):,} rows")
                tuned = select_reduced(
                    self.model, x, self._some(at), self.mercer(1.0), widths, ridges, basis=min(self.n, len(x)),
                    method="auto" if self.shards > 1 else self.method, epsilon=self.epsilon, seed=self.seed,
                    progress=not self.quiet, **self.draws,
                )  # fmt: skip
                widths = [tuned.width]
            kernel = self.mercer(widths[0])
            start = time.perf_counter()
            found = None
            if self.shards > 1:
                found = self._in_shards(kernel)
                chosen = found.basis
            else:
                chosen = self._at_once(kernel)
            self.seconds = time.perf_counter() - start
            selection = None
            if targets is not None:
                selection = select_reduced(
                    self.model,
                    rows,
                    targets,
                    kernel,
                    None,
                    ridges,
                    basis=chosen,
                    seed=self.seed,
                    progress=not self.quiet,
                )
        return chosen, found, selection

    def solved(self, chosen: Basis, ridge: float) -> ReducedModel:
        """The weights of all rows."""
        from pykernel.training.reduced import ReducedProblem
        from pykernel.training.selection import one_thread

        with one_thread:
            return ReducedProblem(self.model, chosen, self.scaled.rows, self._targets()).solve(ridge)

    def _at_once(self, kernel: MercerKernel) -> Basis:
        from pykernel.bases.basis import select_basis

        return select_basis(
            self.scaled.rows, kernel, self.n, self.method, seed=self.seed, tau=self.tau, epsilon=self.epsilon,
            checkpoint=self.checkpoint, progress=None if self.quiet else "vectors", **self.draws,
        )  # fmt: skip

    def _in_shards(self, kernel: MercerKernel) -> Sharded:
        from pykernel.bases.sharding import select_sharded

        return select_sharded(
            self.scaled.rows, kernel, self.n, self.shards, method=self.method, seed=self.seed, epsilon=self.epsilon,
            workers=_workers(self.workers), results=self.checkpoint, title=None if self.quiet else "shards",
            options=self.draws,
        )  # fmt: skip

    def _sample(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions of at most TUNED_ROWS rows, drawn, ascending; and these rows."""
        import numpy as np

        count = len(self.scaled.rows)
        at = np.arange(count)
        if count > TUNED_ROWS:
            at = np.sort(np.random.default_rng(self.seed).choice(count, TUNED_ROWS, replace=False, shuffle=False))
        return at, self.scaled.rows.take(at)

    def _targets(self) -> Any:
        import numpy as np

        return None if self.table.y is None else self._some(np.arange(len(self.table.y)))

    def _some(self, at: np.ndarray) -> Any:
        from pykernel.training.closed_form import Targets

        assert self.table.y is not None
        if self.table.classes is None:
            return Targets.of_values(self.table.y[at])
        return Targets.of_classes(
            self.table.y[at], len(self.table.classes), "counts" if self.model == "kfd" else "signs"
        )

    def _default_widths(self, x: np.ndarray, several: bool) -> list[float]:
        from pykernel.training.selection import default_widths

        shown = "sigma" if self.function == "gaussian" else "gamma"
        if self.function in ("matern32", "matern52"):
            length = math.sqrt(3 if self.function == "matern32" else 5)
            found = [float(f"{length / width:.3g}") for width in reversed(default_widths("gaussian", x))]
        else:
            found = list(default_widths(self.function, x))  # type: ignore[arg-type]
        if several:
            return found
        middle = found[len(found) // 2]
        if self.function != "linear":
            what = (
                "half the median distance of two rows" if shown == "sigma" else "by the rows' distances, or their size"
            )
            self.table.assumed.append(f"{shown} {middle:g}, {what}")
        return [middle]


def _model(given: str | None, learn: bool, kfd: bool) -> str:
    """What is fitted to the label, to choose width and ridge, and for the weights."""
    if given is not None and given not in MODELS:
        raise UserError(f"--model {given} is not known; there are: {', '.join(MODELS)}")
    if kfd:
        if given is not None:
            raise UserError(f"--model {given} does not go with --kfd, which is a model itself; leave it out")
        return "kfd"
    if learn and given == "ls-svm":
        raise UserError(
            "--model ls-svm has a bias, and what --learn learns has none; give --model krr, or leave it out"
        )
    return given or ("krr" if learn else "ls-svm")


def _epsilon(precision: str, out: Path | None) -> float:
    """Less than this of a vector is nothing new: for a spec, what the device's numbers resolve."""
    from pykernel.spec.families.nystrom import LEAST_GATE

    if precision not in LEAST_GATE:
        raise UserError(f"--precision is {precision}; it must be float32 or float64")
    return 1e-10 if out is None else MARGIN * LEAST_GATE[precision]


def _workers(text: str | None) -> int | str | None:
    from pykernel.cli.commands.fit import _workers as parsed

    return None if text is None else parsed(text, 0)


def _need_kernel(kernel: str, sigma: str | None, gamma: str | None, several: bool) -> list[float] | None:
    """The widths that were given."""
    from pykernel.bases.gram import KERNELS

    known = [each for each in KERNELS if each != "sigmoid"]
    if kernel not in known:
        raise UserError(f"--kernel {kernel} is not known here; there are: {', '.join(known)}")
    own = {"gaussian": "sigma", "linear": None}.get(kernel, "gamma")
    for option, value in (("sigma", sigma), ("gamma", gamma)):
        if value is not None and option != own:
            raise UserError(
                f"--{option} is not of the {kernel} kernel; {f'it has --{own}' if own else 'it has no width'}"
            )
    if kernel == "linear":
        return [1.0]
    widths = _numbers(sigma if own == "sigma" else gamma, f"--{own}")
    if widths and len(widths) > 1 and not several:
        raise UserError(f"--{own} holds several; without a label there is nothing to choose by: give one")
    return widths


def _numbers(text: str | None, option: str) -> list[float] | None:
    from pykernel.cli.commands.fit import _numbers as parsed

    return None if text is None else sorted(set(parsed(text, option)))


def _need_outputs(data: str, paths: Sequence[Path | None], force: bool, checkpoint: Path | None) -> None:
    from pykernel.cli.commands.fit import _need_free

    for path in paths:
        _need_free(path, data, force or path is checkpoint)
    given = [path.absolute() for path in paths if path is not None]
    if len(set(given)) < len(given):
        twice = next(path for path in given if given.count(path) > 1)
        raise UserError(f"{twice}: is to be two files at once; give two names")


@contextlib.contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM is as Ctrl-C: the vector that is being chosen is finished, and what is done is kept."""
    before = signal.getsignal(signal.SIGTERM)
    if before != signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return
    # also where interrupts are ignored, as in the background
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


# --------------------------------------------------------------------------------------------------------- the spec


def _spec(
    job: _Job,
    chosen: Basis,
    selection: Selection | None,
    machine: ReducedModel | None,
    name: str,
    learn: bool,
    kfd: bool,
    ridges: list[float] | None,
) -> Spec:
    from pykernel.spec.model import make_spec
    from pykernel.training.reduced import nystrom_content
    from pykernel.tuning.plan import _limit

    table, scaled = job.table, job.scaled
    label: dict[str, Any] | None = None
    if table.column is not None:
        label = {"column": table.column} if table.inputs is not None else {}
        label |= {"classes": table.classes} if table.classes else {}
    content = nystrom_content(
        chosen, name, job.precision, scaled.largest, columns=None if table.inputs is None else tuple(table.inputs),
        label=label, weights=None if machine is None else machine.w, bias=None if machine is None else machine.bias,
        center=scaled.center, factor=scaled.factor,
    )  # fmt: skip
    if learn or kfd:
        content["label"] = label or {}
        if learn:
            if table.y is not None and not table.classes:
                content["label"]["limit"] = _limit(table.y)
            best = selection.ridge if selection is not None else (ridges or [DEFAULT_RIDGE])[0]
            content["learning"] = {"rule": "nystrom-rls", "ridge": best}
            content["basis"] = {"method": "given"}
        else:
            assert selection is not None
            content["learning"] = {"rule": "kfd", "ridge": selection.ridge}
    return make_spec(content, table.name)


# ---------------------------------------------------------------------------------------------------------- results


def _report(
    job: _Job,
    chosen: Basis,
    found: Sharded | None,
    selection: Selection | None,
    machine: ReducedModel | None,
    spec: Spec | None,
) -> dict[str, Any]:
    import numpy as np

    from pykernel.cli.commands.fit import _root

    table, kernel = job.table, chosen.kernel
    limit = _limit_of(job, kernel, len(chosen))
    errors: dict[str, Any] = {}
    if selection is not None and table.y is not None:
        if table.classes:
            assert selection.error is not None
            errors["leave_one_out"] = float(selection.error[selection.best])
            errors["trivial"] = float(1 - np.bincount(table.y).max() / len(table.y))
        else:
            errors["leave_one_out"] = _root(float(selection.press[selection.best]))
            errors["trivial"] = float(table.y.std())
        errors["measure"] = "error_rate" if table.classes else "rmse"
    width = {"gaussian": "sigma", "linear": None}.get(kernel.function, "gamma")
    shown = math.sqrt(0.5 / kernel.gamma) if width == "sigma" else kernel.gamma
    report: dict[str, Any] = {
        "rows": len(table.rows),
        "inputs": table.inputs,
        "columns": table.rows.dim,
        "label": table.column,
        "classes": table.classes,
        "assumed": table.assumed,
        "kernel": kernel.section(),
        "best": {
            **({width: float(f"{shown:.6g}")} if width else {}),
            **({"ridge": selection.ridge} if selection else {}),
        },
        "method": chosen.method,
        "reason": chosen.reason,
        "stopped": chosen.stopped,
        "vectors": len(chosen),
        "left_out": chosen.trace.tolist(),
        "exact": chosen.exact,
        "limit": limit,
        "kernel_values": chosen.evaluations,
        "seconds": job.seconds,
        "errors": errors,
        "typical_error": None if selection is None else _root(float(selection.press[selection.best])),
        "warnings": [],
        "shards": None if found is None else [vars(shard) for shard in found.shards],
        "measured_rows": len(table.rows) if chosen.exact else None if found is None else found.measured,
    }
    if spec is not None:
        from pykernel.gen import build

        report |= {"name": spec.name, "rule": spec.learning.rule, "flash_bytes": build(spec).figures["const_bytes"]}
        if spec.learning.rule == "nystrom":
            rounding = report["rounding"] = _compare(job, chosen, machine, spec)
            if machine is not None and rounding["difference"] > COARSE * report["typical_error"]:
                report["warnings"].append(
                    f"in {spec.precision}, predictions differ by up to {rounding['difference']:.3g} from what was computed "
                    "here; take a larger --ridge, fewer vectors, or --precision float64"
                )
    return report


def _limit_of(job: _Job, kernel: MercerKernel, n: int) -> list[float] | None:
    """What no basis of 0, ..., n vectors can be below: the sum of the other eigenvalues of K / tr K.  O(l^3)."""
    import numpy as np

    rows = job.scaled.rows
    if len(rows) > LIMIT_ROWS:
        return None
    x = rows.take(np.arange(len(rows)))
    values = np.linalg.eigvalsh(kernel.gram(x, x))[::-1].clip(0)
    left = values.sum() - np.concatenate([[0.0], np.cumsum(values[:n])])
    return [float(each) for each in (left / values.sum()).clip(0)]


def _compare(job: _Job, chosen: Basis, machine: ReducedModel | None, spec: Spec) -> dict[str, Any]:
    """How far the device's numbers are from those of float64, on some rows."""
    import numpy as np

    from pykernel.host.model import HostModel

    count = len(job.table.rows)
    at = np.unique(np.linspace(0, count - 1, COMPARED_ROWS).astype(np.int64))
    predicted = np.asarray(HostModel(spec).predict(job.table.rows.take(at)), np.float64).reshape(len(at), -1)
    x = job.scaled.rows.take(at)
    expected = chosen.features(x) if machine is None else machine.predict(x)
    return {"rows": len(at), "difference": float(np.abs(predicted - expected).max())}


def _write(
    report: dict[str, Any], job: _Job, chosen: Basis, spec: Spec | None, out: Path | None, save: Path | None,
    figure: Path | None,
) -> None:  # fmt: skip
    from pykernel.files import all_or_none, whole_file

    with all_or_none():
        if spec is not None and out is not None:
            with whole_file(out) as file:
                file.write(spec.to_toml().encode())
        if save is not None:
            chosen.save(save)
        if figure is not None:
            draw(figure, f"{job.table.name}: {chosen.method}", chosen, report["limit"])
    if job.checkpoint is not None and job.shards > 1:
        job.checkpoint.unlink(missing_ok=True)
    for key, path in (("spec", out), ("basis", save), ("figure", figure)):
        report[key] = str(path) if path else None


def draw(path: Path, title: str, chosen: Basis, limit: Sequence[float] | None) -> None:
    """What is left out after 1, ..., n vectors, and at best, as PNG."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from pykernel.files import whole_file
    from pykernel.plots import COLOURS, TRUTH

    figure = Figure(figsize=(7, 4), layout="constrained", dpi=150)
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    number = np.arange(1, len(chosen) + 1)
    axes.plot(
        number,
        chosen.trace[1:],
        color=COLOURS[0],
        linewidth=2,
        label="left out" + ("" if chosen.exact else " (estimated)"),
    )
    if limit is not None:
        axes.plot(number, limit[1:], color=TRUTH, linestyle="--", linewidth=1, label="at best (eigenvalues)")
    if chosen.trace[-1] > 0 and (limit is None or limit[-1] > 0):
        axes.set_yscale("log")
    axes.set_xlabel("vectors")
    axes.set_ylabel("tr R / tr K")
    axes.set_title(title[:90], loc="left", fontsize=12, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    with whole_file(path) as file:
        figure.savefig(file, format="png")


def _part(value: float) -> str:
    return f"{100 * value:.3g} %"


def _print_basis(report: Mapping[str, Any]) -> None:
    from pykernel.cli import app as cli

    if report["assumed"]:
        print(f"assumed: {'; '.join(report['assumed'])}\n")
    n, limit = report["vectors"], report["limit"]
    how = "left out" if report["exact"] else "left out, estimated"
    table = cli._table("vectors", how, *(["at best"] if limit else []))
    for count in sorted({max(1, n // 8), max(1, n // 4), max(1, n // 2), n}):
        cells = [f"{count:,}", _part(report["left_out"][count])]
        table.add_row(*cells, *([_part(limit[count])] if limit else []), style="bold" if count == n else "")
    width = ", ".join(f"{key} {value:g}" for key, value in report["best"].items() if key != "ridge")
    kernel = f"{report['kernel']['function']} kernel" + (f", {width}" if width else "")
    cli._print(f"{report['rows']:,} rows of {report['columns']} inputs, {kernel}", table)
    why = f" ({report['reason']})" if report["reason"] else ""
    print(f"method    {report['method']}{why}")
    ends = {
        "tau": "no more than --tau is left out",
        "spanned": "of every other row less than --precision resolves is left over"
        if report["spec"]
        else "every row is spanned",
        "exhausted": "there are no more rows",
    }
    if report["stopped"] in ends:
        print(f"stopped   at {n:,} vectors: {ends[report['stopped']]}")
    print(f"cost      {report['kernel_values']:,} kernel values, {report['seconds']:.1f} s")
    if report["shards"]:
        taken = ", ".join(f"{shard['taken']} of {shard['proposed']}" for shard in report["shards"][:8])
        more = ", …" if len(report["shards"]) > 8 else ""
        print(f"shards    {len(report['shards'])}, of which were taken {taken}{more}")
        if not report["exact"]:
            print(f"estimate  on {report['measured_rows']:,} rows, which were drawn")
    errors = report["errors"]
    if errors:
        shown = cli._rate if errors["measure"] == "error_rate" else cli._number
        other = "always the most frequent class" if report["classes"] else "always the mean"
        print(
            f"error     {shown(errors['leave_one_out'])} by leave-one-out with ridge {report['best']['ridge']:g} "
            f"({other}: {shown(errors['trivial'])})"
        )
    if report.get("rule"):
        print(f"flash     {report['flash_bytes']:,} bytes, rule {report['rule']}")
    if report.get("rounding"):
        print(
            f"rounding  {report['rounding']['difference']:.2g} at most on {report['rounding']['rows']:,} rows, from float64"
        )
    for key in ("spec", "basis", "figure"):
        if report[key]:
            print(f"{key:<9} {report[key]}")
    if report["spec"]:
        print(f"\nnext:\n  pykernel generate {cli._quoted(report['spec'])} -o out/")


# ---------------------------------------------------------------------------------------------------------- convert


def convert(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A .csv, .parquet, .arrow or .npy file, or a folder; - reads CSV from standard input.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "--output", "-o", metavar="NPY", help="The file to write.", show_default=False)
    ],
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B", help="Which columns, in this order.", show_default="all with numbers"),
    ] = None,
    precision: Annotated[
        str, typer.Option("--precision", metavar="float32|float64", help="Of the numbers.")
    ] = "float32",
    force: Annotated[bool, typer.Option("--force", help="Overwrite NPY.")] = False,
    as_json: Json = False,
) -> None:
    """Write a table as .npy, from which any row can be read at once; in memory that does not depend on its length.

    For `pykernel basis` of a CSV file that is large, or of a Parquet file whose row groups are: the file is gone through
    once. Rows of a CSV file with an empty cell are left out, and counted; of others they are refused.

        pykernel convert year.csv --out year.npy
        pykernel convert parts/ --columns temperature,pressure,load --out year.npy

    **Columns**: their names and positions in the file that is written are printed.

    **Exit codes**: 0 done, 2 bad input (nothing is written then), 130 interrupted.
    """
    import numpy as np

    from pykernel.cli import app as cli
    from pykernel.cli.commands.fit import _need_free, _words
    from pykernel.rows import TABLES, as_rows, save_rows, table_columns

    _need_free(out, data, force)
    if precision not in ("float32", "float64"):
        raise UserError(f"--precision is {precision}; it must be float32 or float64")
    kind, wanted = np.dtype(precision), _words(columns)
    path = Path(data)
    if data == "-" or path.suffix.lower() == ".csv":
        names, rows, without = _convert_csv(data, out, wanted, kind, as_json)
    else:
        named = path.is_dir() or path.suffix.lower() in TABLES
        names = wanted or ([each for each, numeric in table_columns(path) if numeric] if named else [])
        if named and not names:
            raise UserError(f"{data}: has no column with numbers; give a file that has some")
        source = as_rows(path, list(names) if names else None)
        names, without = names or [str(j) for j in range(source.dim)], 0
        with cli._progress(as_json) as show:
            save_rows(source, out, kind, lambda done, of: show(done / of, f"writing {out}"))
        rows = len(source)
    report = {"file": str(out), "rows": rows, "without": without, "columns": names, "precision": precision}
    if as_json:
        cli._print_json(report)
        return
    if without:
        print(f"left out  {without:,} rows with an empty cell")
    print(f"columns   {', '.join(f'{j}: {each}' for j, each in enumerate(names))}")
    print(f"file      {out}, {rows:,} rows of {precision}, {rows * len(names) * kind.itemsize + 128:,} bytes")


def _convert_csv(
    data: str, out: Path, wanted: Sequence[str], kind: np.dtype, as_json: bool
) -> tuple[list[str], int, int]:
    """The columns' names, rows written, and rows left out.  Without ``wanted``: columns whose first 4,096 cells are numbers."""
    import numpy as np

    from pykernel.cli import app as cli
    from pykernel.files import whole_file
    from pykernel.host.simulate import _numbers, read_cells
    from pykernel.rows import finite

    names: list[str] = list(wanted)
    rows = without = 0
    with contextlib.ExitStack() as stack:
        source, file, size = cli._open(data, stack)
        show = stack.enter_context(cli._progress(as_json, size))
        header: list[str] = []

        def choose(found: list[str]) -> list[str]:
            header.extend(found)
            return list(wanted) or found

        target = stack.enter_context(whole_file(out))
        places: list[int] = []
        for cells in read_cells(file, source, _at_least_two(choose), "a,b"):
            if not places:
                here = list(wanted) or header
                numeric = [all(_is_number(row[j]) for row in cells.rows) for j in range(len(here))]
                places = [j for j in range(len(here)) if numeric[j] or wanted]
                names = [here[j] for j in places]
                if not names:
                    raise UserError(f"{source}: has no column with numbers; give a file that has some")
                target.write(_header(kind, 0, len(names)))
            picked = [tuple(row[j] for j in places) for row in cells.rows]
            whole = [all(cell.strip() for cell in row) for row in picked]
            kept = [row for row, there in zip(picked, whole, strict=True) if there]
            lines = [line for line, there in zip(cells.lines, whole, strict=True) if there]
            without += len(picked) - len(kept)
            if kept:
                x = _numbers(kept, lines, source, names, 0)
                with np.errstate(over="ignore"):
                    narrow = x.astype(kind)
                finite(narrow, np.array(lines), f"{source}, as {kind}, line of")
                target.write(narrow.tobytes())
                rows += len(kept)
            show(cells.position, f"reading {source}")
        if not rows:
            raise UserError(f"{source}: has no row with all cells; fill them, or choose --columns")
        target.seek(0)
        target.write(_header(kind, rows, len(names)))
    return names, rows, without


def _at_least_two(choose: Callable[[list[str]], list[str]]) -> Callable[[list[str]], list[str]]:
    """``read_cells`` takes two columns or more: of one, the same twice."""

    def chosen(header: list[str]) -> list[str]:
        names = choose(header)
        return names * 2 if len(names) == 1 else names

    return chosen


def _is_number(cell: str) -> bool:
    if not cell.strip():
        return True
    try:
        return math.isfinite(float(cell)) or True
    except ValueError:
        return False


def _header(kind: np.dtype, rows: int, width: int) -> bytes:
    """Of an .npy file; as long whatever ``rows`` is."""
    import io

    import numpy as np

    text = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (rows, width)}
    np.lib.format.write_array_header_1_0(text, described)
    return text.getvalue()
