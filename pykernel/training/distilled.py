"""Approximation of a kernel machine by a machine with fewer vectors (distillation), in three steps.

1. Some of the machine's vectors are selected, one at a time: always the vector that leaves the smallest residual of the
   machine's functions in feature space.  The functions, with the weights w of all n vectors, are then projected onto
   the span of the m selected vectors, whose weights become a = K_mm^-1 K_mn w (B. Mitchinson, T. J. Dodd, R. F.
   Harrison, *Reduction of Kernel Models*, Sheffield 2003; orthogonal least squares, S. Chen, C. F. N. Cowan, P. M.
   Grant 1991).
2. Other weights for these vectors are computed by ridge regression on the values of the machine's functions for rows of
   data.  For a machine with a Gaussian kernel, two widths are tried.  The width and the weights with the smallest error
   on held-out rows are used.
3. Vectors, widths and weights are trained together to fit these values (``pykernel.training.vectors``), until the error
   on held-out rows stops falling.  The result is a reduced set (C. J. C. Burges, 1996).

The result has a Gaussian kernel, whatever kernel the machine has.  Labels are not needed, because the machine's
functions can be computed for any row.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pykernel.bases.arguments import checked_count
from pykernel.bases.basis import share
from pykernel.bases.candidates import Residual
from pykernel.errors import UserError, shown_option
from pykernel.parallel import one_thread
from pykernel.spec.kernel_settings import HIDDEN, INDEFINITE
from pykernel.training import vectors as trained
from pykernel.training.machine import Machine, votes
from pykernel.training.trained import compact

LEAST_ROWS = 30
"""Minimum number of rows in a recording.  With fewer rows, too few would remain to measure the loss."""
FEW = 1000
"""A recording with fewer rows than this is extended by rows that are generated from its rows.  The generated rows are
used only for the search.
"""
MADE_UP = 4000
"""Number of generated rows if there is no recording."""
MANY = 10_000
"""Maximum number of rows that are used.  From a longer recording, this many rows are drawn."""
ASIDE, JUDGED = 0.15, 0.2
"""ASIDE: the fraction of the rows that is used for early stopping.  JUDGED: the fraction that is used to measure the
loss.
"""
RIDGE = 1e-6
"""Ridge of the regression and of the search, relative to the mean loss.  The functions to be approximated are divided
by their standard deviations.
"""
STEPS = 1000
"""Maximum number of steps of a search."""
FAR = 1e6
"""Largest accepted difference between an input and its mean over the rows.  The unit is the kernel's width for Gaussian
kernels, and the input's standard deviation for other kernels.  Inputs on a device stay closer to their mean, and
k-means would overflow for much larger differences.
"""
VALUES = 2**22
"""Maximum number of kernel values in memory at once."""
SPANNED = 1e-6
"""A vector v is treated as a combination of the selected vectors if its squared residual in feature space is below this
fraction of k(v, v).
"""
NORMAL = 1.959964
"""Half the width of a 95 % confidence interval, in standard errors."""


@dataclass(frozen=True)
class Loss:
    """A loss measured on rows, with the limits of its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Distilled:
    """The result of ``distil``.

    machine: the smaller machine.  vectors_before: the number of vectors of the original machine, not counting vectors
    of weight 0, and counting equal vectors once.  rows: number of rows on which the loss was measured; none of them was
    used in the search.  made_up: whether these rows were generated from the original machine's vectors.
    error: root mean square difference between the two machines' functions, in units of the original functions' standard
    deviations; None if functions for pairs of classes were replaced by one function for each class.
    classes_differ: fraction of the rows for which the two machines predict different classes; None if the machine
    predicts numbers.
    steps: the value of ``error``, or of ``classes_differ`` if ``error`` is None, after each of the steps "projected",
    "weighed" and "moved".  The value for "projected" is None if the kernel is not positive definite, or if the machine is
    only a part of the model.
    """

    machine: Machine
    vectors_before: int
    rows: int
    made_up: bool
    error: Loss | None
    classes_differ: Loss | None
    steps: dict[str, float | None]

    @property
    def sentence(self) -> str:
        """A sentence about the loss."""
        found, lost = self.machine, []
        if (error := self.error) is not None:
            lost.append(
                f"its values change by {error.value:.2g} standard deviations (95 %: {error.low:.2g} to {error.high:.2g})"
            )
        if (differ := self.classes_differ) is not None:
            value, low, high = (100 * each for each in (differ.value, differ.low, differ.high))
            lost.append(f"its class changes for {value:.2g} % of the rows (95 %: {low:.2g} to {high:.2g} %)")
        which = "made-up rows" if self.made_up else "rows left out of the training"
        before = f"{len(found.vectors)} vectors instead of {self.vectors_before}"
        return f"{found.source}: with {before}, {' and '.join(lost)}, on {self.rows:,} {which}"


def distil(
    machine: Machine,
    m: int,
    x: np.ndarray | None = None,
    seed: int = 0,
    answers: Callable[[np.ndarray], np.ndarray] | None = None,
) -> Distilled:
    """Approximate the functions of a machine by a machine with m vectors.  The result is deterministic.

    x: rows of inputs, (rows, DIM), similar to those on which the machine will be used; None: rows are generated from
    the machine's vectors.
    answers: a function that returns the values of the model's functions at rows of scaled inputs, (rows, F); needed if
    the machine is only a part of the model.
    O(steps rows m D + rows n D + n^2 D) for n vectors.  Raises UserError.
    """
    where = machine.source
    if machine.linear and answers is None:
        raise UserError(
            f"{where}: is linear, and already has one vector for each function; leave out the option {shown_option('vectors')}"
        )
    whole, machine = machine, machine if machine.linear else compact(machine)
    m = checked_count(m, f"{where}: vectors", 1)
    if m >= len(machine.vectors):
        raise UserError(f"{where}: has {len(machine.vectors)} vectors, and {m} were asked for; ask for fewer")
    rng = np.random.default_rng(seed)
    with one_thread, np.errstate(over="ignore"):
        return _Search(machine, m, _rows(machine, x, rng), seed, answers).result(whole, made_up=x is None)


# -------------------------------------------------------------------------------------------------------- the rows


def _rows(machine: Machine, x: np.ndarray | None, rng: np.random.Generator) -> list[np.ndarray]:
    """Return scaled inputs in three parts: for training, for early stopping, and for measuring the loss."""
    if x is None:
        if machine.function in HIDDEN:
            raise UserError(
                f"{machine.source}: its vectors are weights of the inputs, so no rows can be generated from them; give rows with the "
                f"option {shown_option('data')}"
            )
        z = made_up(machine.vectors, MADE_UP, rng)
    else:
        x = np.asarray(x, np.float64)
        if x.ndim != 2 or x.shape[1] != machine.dim:
            raise UserError(f"{machine.source}: rows have shape {x.shape}; they must be (rows, {machine.dim})")
        if len(x) < LEAST_ROWS:
            raise UserError(
                f"{machine.source}: {len(x)} rows are too few to measure the loss; give at least {LEAST_ROWS} rows, or give none, and "
                "rows are generated from the model's vectors"
            )
        if not np.isfinite(x).all():
            raise UserError(f"{machine.source}: rows hold numbers that are not finite; leave those rows out")
        z = machine.scaled(x[np.sort(rng.permutation(len(x))[:MANY])])
    order = rng.permutation(len(z))
    first, second = round(JUDGED * len(z)), round((JUDGED + ASIDE) * len(z))
    judged, aside, train = z[order[:first]], z[order[first:second]], z[order[second:]]
    if len(z) < FEW:
        train = np.concatenate([train, made_up(train, FEW - len(z), rng)])
    return [train, aside, judged]


def made_up(z: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Generate ``count`` rows that are similar to the rows of ``z``.  Each generated row mixes two rows of ``z``: every
    input is taken from one of the two, chosen at random.

    docs/data/distilled-rows.csv compares this with other methods.
    """
    first, second = z[rng.integers(len(z), size=count)], z[rng.integers(len(z), size=count)]
    return np.asarray(np.where(rng.integers(2, size=first.shape) == 1, first, second))


def width_of(machine: Machine, z: np.ndarray) -> np.ndarray:
    """Return, for each input, the width of the Gaussian kernel, or for other kernels the input's standard deviation, (D,)."""
    if machine.function == "gaussian":
        return np.full(machine.dim, 1 / math.sqrt(2 * machine.gamma))
    deviation = z.std(axis=0)
    return np.where(deviation > 0, deviation, 1.0)


# -------------------------------------------------------------------------------------------------- the projection


def blocks(machine: Machine, z: np.ndarray, values: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return ``values(z)`` for all rows z, computed in blocks of rows that fit into memory."""
    size = max(1, VALUES // len(machine.vectors))
    return np.concatenate([values(z[at : at + size]) for at in range(0, len(z), size)])


def projected(machine: Machine, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the selected vectors, (up to m,), and the weights of the functions' projections, (up to m,
    F).

    Each selection minimises the residual of the functions, which are divided by their norms in feature space.  Fewer
    than m vectors are selected if fewer already span all the others.  O(n^2 D + n m (m + D)).
    """
    kernel, v, weights = machine.kernel, machine.vectors, machine.columns_of_weights()
    # the inner product of each function's residual with k(v_i, .), for each vector v_i
    left_of_functions = blocks(machine, v, lambda z: kernel.gram(z, v) @ weights)
    norms = np.sqrt(np.maximum((weights * left_of_functions).sum(axis=0), 0.0))
    unit = np.where(norms > 0, norms, 1.0)
    left_of_functions = left_of_functions / unit
    residual, along = Residual(kernel.diagonal(v), min(m, len(v)), SPANNED), np.zeros((m, weights.shape[1]))
    chosen: list[int] = []
    for k in range(m):
        gains = np.where(residual.live, share(np.square(left_of_functions).sum(axis=1), residual.left), 0.0)
        i = int(gains.argmax())
        if not gains[i] > 0:
            break
        column = residual.column(kernel.gram(v, v[i : i + 1])[:, 0], i)
        along[k] = left_of_functions[i] / math.sqrt(column[i])
        residual.take_in(i, column)
        left_of_functions = left_of_functions - np.outer(residual.projected[k], along[k])
        chosen.append(i)
    factor = np.tril(residual.projected[: len(chosen), chosen].T)
    return np.array(chosen, int), np.linalg.solve(factor.T, along[: len(chosen)]) * unit


# ------------------------------------------------------------------------------------------------------ the search


def classes_of(machine: Machine, functions: np.ndarray) -> np.ndarray:
    """Return the index of the predicted class for each row of function values, (rows,)."""
    if machine.support_class is None:
        return np.asarray(functions[:, 0] > 0 if functions.shape[1] == 1 else functions.argmax(axis=1), int)
    counted = votes(functions, len(machine.classes or ()))
    return np.asarray((counted if machine.break_ties else np.rint(counted)).argmax(axis=1))


class _Search:
    """The search for a smaller machine.  Rows are centered at their mean and divided by the result of ``width_of``;
    functions are centered at their means and divided by their standard deviations.
    """

    def __init__(
        self,
        machine: Machine,
        m: int,
        rows: list[np.ndarray],
        seed: int,
        own: Callable[[np.ndarray], np.ndarray] | None,
    ) -> None:
        self.machine, self.m, self.seed, self.whole = machine, m, seed, own is None
        self.pairs = machine.support_class is not None
        self.middle, self.unit = rows[0].mean(axis=0), width_of(machine, rows[0])
        self.judged = rows[2]
        with np.errstate(all="ignore"):
            far = max(float(np.abs((z - self.middle) / self.unit).max()) for z in rows)
        if not (far < FAR and np.isfinite(self.unit).all()):
            raise UserError(
                f"{machine.source}: some rows are too far from the mean of the rows: more than {FAR:,.0f} kernel widths or standard deviations; give "
                "rows like those that the model was trained on"
            )
        answers = [blocks(machine, z, own or machine.functions) for z in rows]
        if not all(np.isfinite(each).all() for each in answers):
            raise UserError(
                f"{machine.source}: its functions overflow on these rows; give rows like those that the model was trained on"
            )
        self.answers = answers[2]
        self.mean, self.deviation = answers[0].mean(axis=0), answers[0].std(axis=0)
        # a nearly constant function cannot be learned, so it is not divided by its standard deviation
        self.deviation = np.where(self.deviation > 1e-12 * np.abs(self.mean), self.deviation, 1.0)
        self.train, self.aside = (
            trained.Rows((z - self.middle) / self.unit, self._targets(f), np.ones(len(z)))
            for z, f in zip(rows[:2], answers, strict=False)
        )
        self.loss: trained.Loss = "classes" if self.pairs else "squared"

    def _targets(self, functions: np.ndarray) -> np.ndarray:
        if self.pairs:
            return np.eye(len(self.machine.classes or ()))[classes_of(self.machine, functions)]
        return (functions - self.mean) / self.deviation

    def risk(self, model: trained.Vectors) -> float:
        return trained.risk(self.loss, model.functions(self.aside.x), self.aside)[0]

    def result(self, source: Machine, made_up: bool) -> Distilled:
        first, from_projection = self._projected()
        starts = [self._weighed(first, from_projection)]
        starts.append(self._weighed(trained.k_means(self.train.x, self.m, np.random.default_rng(self.seed))))
        found = []
        for number, start in enumerate(starts):
            for each in (start, replace(start, log_scale=np.repeat(start.log_scale, self.machine.dim))):
                path = trained.search(self.loss, RIDGE, each, self.train, self.risk, STEPS)
                found.append((self.risk(path.best), number, path.best))
            # the start itself is a candidate, in case no search improves it
            found.append((self.risk(start), number, start))
        smaller = self._machine(min(found, key=lambda each: each[:2])[2], source)
        steps = [
            None if from_projection is None else self._values(from_projection, by_pairs=self.pairs).value,
            self._values(self._machine(starts[0], source)).value,
            self._values(smaller).value,
        ]
        error = None if self.pairs else self._error(smaller)
        differ = None if self.machine.classes is None else self._differ(smaller)
        named = dict(zip(("projected", "weighed", "moved"), steps, strict=True))
        told = replace(smaller, notes=(*smaller.notes, *self._notes()))
        return Distilled(told, len(self.machine.vectors), len(self.judged), made_up, error, differ, named)

    def _projected(self) -> tuple[np.ndarray, Machine | None]:
        """Return the initial vectors and the projected machine.  The machine is None if the kernel is indefinite, or if
        the source is only a part of a model.
        """
        drawn = trained.drawn_rows(self.train.x, self.m, np.random.default_rng(self.seed))
        # an indefinite kernel is not an inner product in a feature space, so there is no projection
        if self.machine.function in INDEFINITE:
            return drawn, None
        chosen, weights = projected(self.machine, self.m)
        own = self.machine.vectors[chosen]
        machine = replace(self.machine, vectors=own, weights=weights, support_class=None, decision="functions")
        start = (own - self.middle) / self.unit
        return np.concatenate([start, drawn[: self.m - len(start)]]), machine if self.whole else None

    def _weighed(self, start: np.ndarray, projection: Machine | None = None) -> trained.Vectors:
        """Return the starting point of a search.

        The weights come from ridge regression, and the width is half the median distance.  If the machine's kernel is
        Gaussian, the machine's width is tried as well.  So is the unchanged projection, if it is given and has m
        vectors, and if the machine has no functions for pairs of classes.  The starting point with the smallest risk on
        held-out rows is taken.
        """
        begun = trained.begin(self.train, self.loss, start, "one", np.random.default_rng(self.seed))
        ridge = RIDGE * len(self.train) * self.train.targets.shape[1]
        found = [trained.weighed(begun, self.train, self.loss, ridge)]
        if self.machine.function == "gaussian":
            own = replace(begun, log_scale=np.zeros(1))
            found.append(trained.weighed(own, self.train, self.loss, ridge))
            if projection is not None and not self.pairs and len(projection.weights) == self.m:
                bias = (projection.bias - self.mean) / self.deviation
                found.append(replace(own, weights=projection.weights / self.deviation, bias=bias))
        return min(found, key=self.risk)

    def _machine(self, model: trained.Vectors, source: Machine) -> Machine:
        """Return the trained parameters as a machine that takes the source's inputs."""
        one = len(model.log_scale) == 1 and bool((self.unit == self.unit[0]).all())
        e = np.exp(model.log_scale) / self.unit
        own = model.vectors * self.unit + self.middle
        scale = np.ones(source.dim) if source.scale is None else source.scale
        return replace(
            source,
            function="gaussian",
            vectors=own if one else own * e,
            scale=source.scale if one else scale * e,
            gamma=0.5 * float(e[0]) ** 2 if one else 0.5,
            weights=model.weights if self.pairs else model.weights * self.deviation,
            bias=model.bias if self.pairs else model.bias * self.deviation + self.mean,
            coef0=0.0, degree=1, alpha=1.0, normalise=False, custom=None, max_value=None, offsets=None,
            decision="functions", support_class=None, break_ties=False, largest=source.reach, gross=None, mixes=0,
        )  # fmt: skip

    # ---- the loss

    def _functions(self, smaller: Machine) -> np.ndarray:
        """Return the values of a smaller machine's functions at the rows on which the loss is measured."""
        z = self.judged
        if smaller.scale is not None:  # the rows are scaled for the source machine, so undo that scaling first
            own = np.ones(smaller.dim) if self.machine.scale is None else self.machine.scale
            z = z * (smaller.scale / own)
        return blocks(smaller, z, smaller.functions)

    def _values(self, smaller: Machine, by_pairs: bool = False) -> Loss:
        return self._differ(smaller, by_pairs) if self.pairs else self._error(smaller)

    def _error(self, smaller: Machine) -> Loss:
        squares = np.square((self._functions(smaller) - self.answers) / self.deviation).mean(axis=1)
        mean, off = float(squares.mean()), NORMAL * float(squares.std(ddof=1)) / math.sqrt(len(squares))
        return Loss(math.sqrt(mean), math.sqrt(max(0.0, mean - off)), math.sqrt(mean + off))

    def _differ(self, smaller: Machine, by_pairs: bool = False) -> Loss:
        """Return the fraction of rows for which the two machines predict different classes, with E. B. Wilson's
        confidence interval (1927).

        by_pairs: whether the smaller machine's functions are for pairs of classes, as in the source.
        """
        teller = self.machine if by_pairs else smaller
        differ = classes_of(teller, self._functions(smaller)) != classes_of(self.machine, self.answers)
        n, share, q = len(differ), float(differ.mean()), NORMAL**2
        middle = (share + q / (2 * n)) / (1 + q / n)
        half = NORMAL / (1 + q / n) * math.sqrt(share * (1 - share) / n + q / (4 * n * n))
        return Loss(share, max(0.0, middle - half), min(1.0, middle + half))

    def _notes(self) -> list[str]:
        """Return sentences about the parts of the source that the smaller machine replaces."""
        where, notes = self.machine.source, []
        if self.pairs:
            notes.append(f"{where}: its functions for pairs of classes became one function for each class")
        if self.machine.function != "gaussian":
            notes.append(f"{where}: its {self.machine.function} kernel became a Gaussian kernel")
        return notes
