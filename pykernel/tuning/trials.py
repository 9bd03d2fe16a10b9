"""Run one trial of a plan: a model learns the first rows of a table, and is evaluated on the last rows, which are the judged rows.

A model is evaluated twice: *frozen*, as it is after the first rows, and *learning*, where each row is predicted and then
learned.  Monitors have no labels.  Monitors are evaluated with faults that are put into recorded rows (``faults.py``):
a good monitor raises an alarm for each fault.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.host.simple import Rivals, Simple, linear_specs, simple_bytes
from pykernel.parallel import one_thread
from pykernel.rows.columns import apart_rows
from pykernel.spec.model import Spec
from pykernel.tuning.combinations import (
    LINEAR,
    NETWORK,
    POLYNOMIALS,
    TRAINED,
    Combination,
    Content,
    Known,
    scaled_input,
    trained_at_once,
)
from pykernel.tuning.costs import memory_bytes, table_bytes
from pykernel.tuning.data import FEWEST, Table
from pykernel.tuning.faults import COUNT, KINDS, LONGEST, MANNERS, PROMISED, Fault, Sensors, with_faults
from pykernel.tuning.promises import BLOCKS, NEW, Losses, follows

if TYPE_CHECKING:
    from pykernel.bases.basis import Basis
    from pykernel.training.machine import Machine
    from pykernel.training.vectors import Loss

ANSWERED = 0.95
"""Models that give a prediction for less than this fraction of the rows are not compared."""
MOST_PRODUCTS = 300
"""Polynomials with more products of inputs than this are not tried."""
TRAINED_ROWS = 4000
"""Maximum number of rows on which a model is trained on the host.  The rows are evenly spaced."""
MOVED_ROWS = 10_000
"""Maximum number of rows on which vectors are trained.  The maximum is larger than TRAINED_ROWS, because the training
time grows only linearly with the number of rows."""
RETRAINED = 5
"""How many times a model that is trained on the device is trained again within the judged rows."""
NEAR_BEST = 1.01
"""The chosen ridge is the largest one whose leave-one-out error is at most this many times the smallest error."""


def judged(task: Mapping[str, Any], table: Table) -> dict[str, Any]:
    """Run a trial, and return its result.  Raises UserError for a model that cannot be made."""
    if "signal" in task:
        table = table.with_signal(task["signal"])
    training: Content = {}
    if task.get("final"):
        return {"spec": content_of(task, replace(table, final=True))}
    missing = {} if task.get("missing", "refuse") == "refuse" else {"missing": task["missing"]}
    table = replace(table, completes="missing" in task or table.completes)

    def made(part: Table, known: Content) -> Content:
        content = content_of({**task, **known}, part, training)
        return content | {"input": content["input"] | missing}

    content = made(table, {})
    whole = table.whole(content)
    spec, ram = whole.inner, memory_bytes(whole)["ram_bytes"]
    if task.get("ram") is not None and ram > task["ram"]:
        return {"ram_bytes": ram, "reason": f"takes {ram:,} bytes of RAM", "training": training}
    if table.y is None:
        result = watch(spec, table, task.get("promise", False))
    else:  # the training of the first fold chooses settings for the other folds
        known = {"training": training} if training else {}
        others = [table.whole(made(fold, known)).inner for fold in table.folds[1:]]
        result = judge(spec, table, others)
    return (
        result
        | {"ram_bytes": ram, "table_bytes": table_bytes(spec)}
        | ({} if "spec" in task else {"spec": content})
        | ({"training": training} if training else {})
    )


def continues(spec: Spec) -> bool:
    """Return whether the model continues learning from weights trained on the PC."""
    return spec.program.learns and getattr(getattr(spec, "expansion", None), "weights", None) is not None


# -------------------------------------------------------------------------------------------------------- with labels


def judge(spec: Spec, table: Table, others: Sequence[Spec] = ()) -> dict[str, Any]:
    """Return a model's errors on the judged rows: the root mean square error or, for classes, the fraction of wrong predictions.

    others: the models for the table's second and later folds.
    In the result, "frozen" and "learning" are dicts with the error, its standard deviation (from blocks of rows), the
    number of scored rows, and the losses of each block.  They are None if too few rows got a prediction; "learning" is
    also None if the model does not learn.  "diverged" is the number of updates that were refused because the model
    would leave its range.
    """
    frozen, learning, wrong = zip(*map(_answers, (spec, *others), table.folds), strict=True)
    found = {
        "frozen": _error(np.concatenate(frozen), table, spec),
        "learning": None if learning[0] is None else _error(np.concatenate(learning), table, spec),
    }
    return found | {"diverged": sum(wrong)}


def _answers(spec: Spec, table: Table) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Return the frozen model's predictions for the judged rows, the learning model's predictions (None if the model does not learn), and
    the number of updates that were refused because the model would leave its range.
    """
    split, y, judged = table.split, table.labels, table.x[table.judged]
    question = "classify" if spec.label.classes else "predict"
    model = HostModel(spec)
    gone = ~np.isfinite(table.x).all(axis=1) & (table.completes and not spec.completes)
    if not spec.program.learns:
        answers, _ = model.ask(question, judged)
        # refused rows are scored as well, with the prediction that ``_stand_in`` chooses
        beyond = gone[table.judged] | (np.isfinite(judged).all(axis=1) & ~spec.accepts(judged))
        _stand_in(answers, beyond, y[:split], bool(spec.label.classes))
        return answers, None, 0
    late, trains = table.delay, trained_at_once(spec)
    # a model trained on the PC has already learned these rows
    taught = slice(0, 0 if continues(spec) else split - late)
    statuses = [model.update(table.x[taught], y[taught])]
    if trains and model.train() < 0:
        raise UserError("there are too few rows to train the model")
    frozen, _ = model.ask(question, judged)
    learning = []
    for begins, first, end in table.runs:
        if table.devices is not None:  # a new model for each device
            model = HostModel(spec)
            statuses.append(model.update(table.x[begins : first - late], y[begins : first - late]))
        if not trains:
            rows = slice(first - late, end)
            answers, more = model.prequential(table.x[rows], y[rows], first=late, delay=late, question=question)
            statuses.append(more)
        elif table.devices is not None and model.train() < 0:
            raise UserError("a device has too few rows to train the model")
        else:
            answers = _retrained(model, table, first, end, question)
        _stand_in(answers, gone[first:end], y[:split], bool(spec.label.classes))
        learning.append(answers)
    refused = np.concatenate(statuses)
    names = {int(status): status.name for status in spec.program.status}
    wrong = [s for s in refused[refused < 0].tolist() if names.get(s) not in ("REFUSED_INPUT", "REFUSED_LABEL")]
    return frozen, np.concatenate(learning), len(wrong)


def _stand_in(answers: np.ndarray, beyond: np.ndarray, y: np.ndarray, of_classes: bool) -> None:
    """Replace the predictions for refused rows by the previous prediction or by the usual label.

    The previous prediction is taken if a label in y is, on average, nearer to the previous label than to the usual one.
    """
    if not beyond.any():
        return
    usual, known = _usual(y, of_classes), y[y >= 0] if of_classes else y[np.isfinite(y).reshape(len(y), -1).all(axis=1)]
    apart = (
        (known[1:] != known[:-1], known != usual)
        if of_classes
        else (np.square(np.diff(known, axis=0)), np.square(known - usual))
    )
    holds = len(known) > 1 and np.mean(apart[0]) < np.mean(apart[1])
    for i in np.flatnonzero(beyond):
        there = i > 0 and bool((answers[i - 1] >= 0) if of_classes else np.isfinite(answers[i - 1]).all())
        answers[i] = answers[i - 1] if holds and there else usual


def _usual(y: np.ndarray, of_classes: bool) -> Any:
    """Return the most common class, or the mean of the known labels."""
    if of_classes:
        return np.bincount(y[y >= 0]).argmax()
    return np.nanmean(np.where(np.isfinite(y), y, np.nan), axis=0)


def _retrained(model: HostModel, table: Table, first: int, end: int, question: str) -> np.ndarray:
    """Return a model's predictions for the rows first, .., end - 1.  The model is trained again at regular intervals."""
    late, answers = table.delay, []
    for rows in np.array_split(np.arange(first, end), RETRAINED):
        if len(rows):
            answers.append(model.ask(question, table.x[rows])[0])
            model.update(table.x[rows - late], table.labels[rows - late])
            model.train()
    return np.concatenate(answers)


def _error(answers: np.ndarray, table: Table, spec: Spec) -> dict[str, Any] | None:
    """Return a dict with the error, its standard deviation, the number of scored rows, and the losses of each block (``Losses.report``).

    Returns None if too few rows got a prediction.
    """
    known = np.concatenate([fold.compared(fold.judged) for fold in table.folds])
    y = np.concatenate([fold.labels[fold.judged] for fold in table.folds])
    answers = np.asarray(answers, np.float64).reshape(y.shape)
    answered = (answers >= 0) if spec.label.classes else np.isfinite(answers)
    answered = np.asarray(answered.reshape(len(y), -1).all(axis=1))
    if answered[known].sum() < ANSWERED * known.sum():
        return None
    counts = known & answered
    lengths = [end - first for fold in table.folds for _, first, end in fold.runs]
    if spec.label.classes:
        return Losses.of((answers != y).astype(float), counts, True, lengths=lengths).report()
    errors = (answers - y).reshape(len(y), -1)
    losses, offsets = np.square(errors).mean(axis=1), errors.mean(axis=1)
    told = Losses.of(losses, counts, False, offsets, lengths).report()
    return told | {"follows": follows(errors, known & answered)}


def simple(spec: Spec, table: Table, labels: str | None = None) -> dict[str, dict[str, Any]]:
    """Return a dict for each simple predictor: its error on the judged rows, the error's standard deviation, and the
    predictor's bytes.

    The key "frozen" has the results of a predictor that learned only the first rows or, with many devices, the rows of the training
    devices.  The predictor "last label" has no such results.  labels: "never" if the device gets no labels.
    """
    if table.y is None:
        return {}
    late, sizes = table.delay, simple_bytes(spec)
    frozen = _simple_errors(0, True, spec, table)
    if labels == "never":
        numbers = {name: spec.outputs * (1 if name not in linear_specs(spec) else spec.dim + 1) for name in frozen}
        return {name: told | {"frozen": told, "bytes": 4 * numbers[name]} for name, told in frozen.items()}
    learning = _simple_errors(late, False, spec, table)
    return {name: told | {"frozen": frozen.get(name), "bytes": sizes.get(name, 0)} for name, told in learning.items()}


def _simple_errors(late: int, frozen: bool, spec: Spec, table: Table) -> dict[str, dict[str, Any]]:
    """Return the errors of simple predictors if each label arrives ``late`` rows after its row.

    A predictor starts anew at the same rows as a model.  frozen: whether predictors learn only the first rows or, with
    many devices, the rows of the training devices.
    """
    found: dict[str, list[np.ndarray]] = {}
    for fold in table.folds:
        for begins, first, end in [(0, fold.judged, len(fold.x))] if frozen else fold.runs:
            predictors = Simple(spec, late, fold.split - table.delay if frozen else None)
            y = fold.labels[begins:end]
            released = np.roll(y, late, axis=0)
            released[:late] = -1 if spec.label.classes else np.nan
            known = released.reshape(len(released), -1)
            known = known if spec.label.classes else known.astype(np.float64)
            answers = np.nan_to_num(predictors.step(fold.x[begins:end], y, 0, known))
            judged = first if frozen else slice(first - begins, None)
            for i, name in enumerate(predictors.names):
                found.setdefault(name, []).append(answers[judged, i])
    errors = {name: _error(np.concatenate(answers), table, spec) for name, answers in found.items()}
    return {name: told for name, told in errors.items() if told is not None}


# ------------------------------------------------------------------------------------- with vectors chosen from the data


def content_of(task: Mapping[str, Any], table: Table, training: Content | None = None) -> Content:
    """Return the content of a task's spec.

    A task from ``Combination.task`` already holds this content, unless vectors are chosen from the data.

    If they are, the task has the keys "base" (name, input and label of the spec), "rule", "size" (number of vectors n),
    "method" (technique) and "width" (sigma for standardised inputs).  The ridge is the largest ridge with a good leave-one-out error.  A
    "frozen" model is an LS-SVM on the basis, or a ridge regression; "kfd" takes only the vectors and the ridge, and is trained on the
    device.  O(l n^2) for l rows.  Raises UserError if the model cannot be made.

    For trained vectors and networks, the task may have the key "training": settings that a first training chose.  Otherwise, the settings
    are chosen on held-out rows, and written to the argument ``training``.
    """
    if "spec" in task:
        content = dict(task["spec"])
        # the center and scale in the given spec belong to the features of another [signal], so they are replaced
        if "signal" in task and "center" in content["input"]:
            own = None if table.stage is None else table.stage.base.get("input")
            content["input"] = content["input"] | (own or scaled_input(Known(table.x[: table.split])))
        return content
    base = task["base"]
    if base.get("precision") == "int16" and (task["rule"] == "kfd" or table.stage is not None):
        raise UserError("plan does not train this model in int16; use pykernel fit")
    settings = {} if training is None else training
    if task["method"] == TRAINED:
        return _trained(base, int(task["size"]), *_first_rows(table, MOVED_ROWS), task.get("training"), settings)
    rows = _first_rows(table, TRAINED_ROWS)
    return _network(task, *rows, settings) if task["method"] == NETWORK else _on_basis(task, *rows)


def _on_basis(task: Mapping[str, Any], x: np.ndarray, y: np.ndarray) -> Content:
    """Return the content of a model with vectors that are chosen from the rows."""
    from pykernel.training.coding import Targets
    from pykernel.training.machine import Machine
    from pykernel.training.reduced import ReducedProblem, nystrom_content
    from pykernel.training.selection import default_ridges
    from pykernel.training.squares import squares

    base, fisher = task["base"], task["rule"] == "kfd"
    center, deviation = x.mean(axis=0), x.std(axis=0)
    scale = 1 / np.where(deviation > 0, deviation, 1.0)
    z = (x - center) * scale
    basis = _basis(task, z)
    kernel = basis.kernel
    classes = base["label"].get("classes")
    if classes:
        targets = Targets.of_classes(y, len(classes), "counts" if fisher else "signs")
    else:
        targets = Targets.of_values(y.astype(np.float64))
    problem = ReducedProblem("kfd" if fisher else "ls-svm", basis, z, targets)
    ridges = default_ridges(problem.model, kernel, z)
    left_out = problem.leave_one_out_path(ridges)
    errors = np.array([float(np.square(predicted - targets.values).mean()) for predicted in left_out])
    ridge = ridges[max(i for i, error in enumerate(errors) if error <= NEAR_BEST**2 * np.nanmin(errors))]
    if fisher:
        options = {"columns": base["input"].get("columns"), "label": base["label"], "center": center, "scale": scale}
        largest, precision = np.abs(z).max(axis=0), base.get("precision", "float32")
        made = nystrom_content(basis, base["name"], precision, largest, max_abs=base["input"].get("max_abs"), **options)
        return made | {"learning": {"rule": "kfd", "ridge": ridge}}
    model = problem.solve(ridge)
    machine = Machine(
        "a plan", kernel.function, basis.vectors, model.alpha, model.bias, kernel.gamma, kernel.coef0, kernel.degree,
        classes=tuple(classes) if classes else None, center=center, scale=scale,
        largest=float(np.abs(x).max()),
    )  # fmt: skip
    return _frozen(base, squares(machine) if task["method"] == "quadratic" else machine, x)


def _basis(task: Mapping[str, Any], z: np.ndarray) -> Basis:
    """Select vectors from the rows.  For a polynomial, select as many vectors as the polynomial has coefficients.

    For a linear function of the inputs, return the unit vectors, which span the space of the linear kernel.
    """
    from pykernel.bases.basis import Basis
    from pykernel.bases.gram import MercerKernel
    from pykernel.bases.select import select_basis

    if (degree := POLYNOMIALS.get(task["method"])) is not None:
        kernel = MercerKernel("polynomial", 1 / z.shape[1], 1.0, degree)
        if (count := math.comb(z.shape[1] + degree, degree)) > MOST_PRODUCTS:
            raise UserError(f"{count:,} products of inputs are too many")
        return select_basis(z, kernel, min(count, len(z)), method="efvs")
    if task["method"] != LINEAR:
        kernel = MercerKernel("gaussian", gamma=0.5 / task["width"] ** 2)
        return select_basis(z, kernel, min(int(task["size"]), len(z)), method=task["method"])
    unit = np.eye(z.shape[1])
    nowhere, left = np.full(len(unit), -1), np.linspace(1, 0, len(unit) + 1)
    return Basis(MercerKernel("linear"), unit, nowhere, unit, left, True, 0, LINEAR, "spanned")


def _first_rows(table: Table, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and labels to train on: at most ``most`` evenly spaced rows before the judged rows."""
    known = table.known(slice(0, table.split - table.delay))
    numbers = table.x if table.of_classes else np.column_stack([table.x, table.labels.reshape(len(table.x), -1)])
    rows = np.flatnonzero(known & ~apart_rows(numbers[: len(known)]))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(len(rows), most)).astype(np.int64))]
    if len(rows) < 2:
        raise UserError("there are too few labelled rows to train on")
    return table.x[rows], table.labels[rows]


def _trained(
    base: Content, size: int, x: np.ndarray, y: np.ndarray, training: Content | None, chosen: Content
) -> Content:
    """Return the content of a frozen model with ``size`` trained vectors."""
    from pykernel.training.vectors import Candidate, Job, Rows, class_targets, k_means, train, value_targets

    classes, counts, m = base["label"].get("classes"), np.ones(len(x)), min(size, len(x))
    middle, deviation = None, None
    if classes:
        targets = class_targets(y, len(classes))
    else:
        targets, middle, deviation = value_targets(y.astype(np.float64).reshape(len(y), -1), counts)
    loss: Loss = "classes" if classes else "squared"
    rows = Rows(x, targets, counts)
    if training is None:
        made = train(rows, m, loss)
        model, taken = made.model, made.taken
        chosen |= {"units": taken.units, "widths": taken.widths, "ridge": taken.ridge, "steps": taken.step, "start": 0}
    else:
        job, steps, start = Job(rows, m, loss, k_means, 0), int(training["steps"]), int(training["start"])
        candidate = Candidate(training["units"], training["widths"], training["ridge"])
        with one_thread:  # with more threads, the result would depend on the number of threads
            path = job.search(rows, candidate, start, None, steps, lambda step: None)
        model = job.unscaled(path.best, candidate.units)
    if not all(np.isfinite(part).all() for part in vars(model).values()):
        raise UserError("the training diverged")
    if middle is not None and deviation is not None:
        model = model.answering(middle, deviation)
    return _frozen(base, model.machine("a plan", classes=tuple(classes) if classes else None), x)


def _network(task: Mapping[str, Any], x: np.ndarray, y: np.ndarray, chosen: Content) -> Content:
    """Return the content of a frozen network, or of a network whose output layer continues to learn."""
    from pykernel.importers.sklearn import read_estimator
    from pykernel.training.network import PENALTIES, trained_network

    base, classes = task["base"], task["base"]["label"].get("classes")
    if classes and len(np.unique(y)) != len(classes):
        raise UserError("a class has no row to train on")
    known = (task["training"]["penalty"],) if "training" in task else PENALTIES
    model, chosen["penalty"] = trained_network(x, y, int(task["size"]), bool(classes), penalties=known)
    machine = read_estimator(model)
    return headed(_frozen(base, replace(machine, classes=tuple(classes) if classes else None), x), task["rule"])


def headed(content: Content, rule: str) -> Content:
    """Return the content of a model that starts as the frozen model, continues to learn with this rule, and is mixed with a linear expert.

    For rule "frozen", the content is returned unchanged.
    """
    if rule == "frozen":
        return content
    tables = {key: value for key, value in content["expansion"].items() if key != "calibration"}
    return content | {"learning": {"rule": rule}, "expansion": tables, "mixture": {}}


def stand_in(made: Combination, size: int, table: Table) -> Content:
    """Return the content of a model with ``size`` random vectors.

    On a device, this model needs as many bytes and as much time as a model that ``content_of`` trains.
    """
    from pykernel.training.vectors import Vectors

    base, (x, y) = made.content, _first_rows(table, MOVED_ROWS)
    deviation, rng = x.std(axis=0), np.random.default_rng(0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    classes = base["label"].get("classes")
    count = len(classes or ())
    outputs = (1 if count == 2 else count) or y[0].size
    vectors = x.mean(axis=0) + deviation * rng.normal(size=(size, x.shape[1]))
    found = Vectors(vectors, -np.log(deviation), rng.normal(size=(size, outputs)), np.zeros(outputs))
    machine = found.machine("a plan", classes=tuple(classes) if classes else None)
    if made.technique == NETWORK:
        machine = replace(machine, function="relu", gamma=1.0, offsets=rng.normal(size=size))
    return headed(_frozen(base, machine, x), made.rule)


def _frozen(base: Content, machine: Machine, x: np.ndarray) -> Content:
    """Return the content of a frozen model.  x: the rows on which it was trained."""
    from pykernel.training.trained import centered, content, nearer_limit

    precision, columns, classes = base.get("precision", "float32"), base["input"].get("columns"), machine.classes
    if precision != "int16":
        machine = centered(machine, x)
    made = content(replace(machine, seen=x), base["name"], precision, None, columns, classes)
    if precision != "int16" and (most := base["input"].get("max_abs")) is not None:
        made["input"]["max_abs"] = nearer_limit(made["input"]["max_abs"], most, made["input"].get("center"))
    return made | {"label": {**made.get("label", {}), **base["label"]}}


# ------------------------------------------------------------------------------------------------------ without labels

GUARD = 20
"""Number of rows after a fault that are counted neither as faulty nor as fault-free.  The sensor recovers at once, but
the monitor's smoothed level stays high for some rows."""
TWICE = 2.0
"""A monitor keeps its false-alarm rate if the fraction of fault-free rows in alarm is at most this many times the wanted fraction."""
CHOICE, PROMISE = (0, COUNT), (1, PROMISED)
"""Seed and number of the faults by which models are chosen, and of the faults for a promise.

A promise needs other faults, because the error on the faults used for the choice is optimistic.  The seed is larger by 2 for each further
device, so that choice and promise never use the same seed.
"""


def watched_rows(spec: Spec, table: Table, promise: bool = True) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return, for each judging device, the rows that a monitor learns first, and the rows after the warm-up into which faults are put.

    promise: True for the judged rows of the table, on which the planned model's error is reported; False for the
    preceding rows, on which the model is chosen.  In short recordings, the judged rows are returned in both cases.
    Raises UserError if there are too few rows.
    """
    found, longest = [], 0
    for fold in table.folds:
        for begins, first, end in fold.runs:
            warm = begins + spec.novelty.warmup
            middle = max(warm, (begins + first) // 2)
            if not promise and first - middle >= LONGEST:
                first, end = middle, first
            first, longest = max(first, warm), max(longest, end - begins)
            if end - first >= FEWEST:
                found.append((fold.x[begins:first], fold.x[first:end]))
    if not found:
        where = "the table has" if table.devices is None else "the longest recording has"
        raise UserError(
            f"a monitor raises no alarm in its warm-up of {spec.novelty.warmup:,} rows, and {where} {longest:,}: "
            "record more rows, or give a spec with a shorter [novelty] warmup"
        )
    return found


@dataclass
class Watched:
    """The results of a monitor on rows with faults."""

    rate: float  # the wanted fraction of fault-free rows in alarm
    # (fault, device, whether the monitor missed the fault)
    faults: list[tuple[Fault, int, bool]] = field(default_factory=list)
    # number of fault-free rows, and how many of them are in alarm
    others: list[int] = field(default_factory=lambda: [0, 0])

    def take(self, alarmed: np.ndarray, faults: Sequence[Fault], device: int = 0) -> None:
        """Count the rows of a repetition.  alarmed: whether each row is in alarm.  A fault is detected if one of its rows is in alarm."""
        self.faults += [(each, device, not alarmed[each.first : each.last].any()) for each in faults]
        quiet = quiet_rows(len(alarmed), faults)
        self.others[0] += int(quiet.sum())
        self.others[1] += int((alarmed & quiet).sum())

    def report(self) -> dict[str, Any]:
        """Return the results as plain values.

        error: the fraction of faults that are missed.  deviation, within: the error's standard deviation, and half the width of its 95 %
        interval, from blocks of the recording or from devices.  scored: number of faults.  other_rows: the fraction of fault-free rows in
        alarm.  rate: the wanted value of other_rows.  keeps_rate: whether other_rows is at most TWICE times rate.  missed, manners:
        (number of missed faults, number of all faults) for each kind of fault, and for each manner.
        """
        if not self.faults:
            raise UserError(
                "no fault can be put into these rows: no input changes, or too few rows have values of all inputs"
            )
        faults, device, missed = zip(*self.faults, strict=True)
        devices, gone = 1 + max(device), np.array(missed, float)
        blocks = BLOCKS if devices == 1 else min(BLOCKS, devices)
        block = [int((number + fault.place) * blocks) // devices for fault, number in zip(faults, device, strict=True)]
        sums, rows = (np.bincount(block, part, blocks) for part in (gone, np.ones(len(gone))))
        report = Losses(sums, rows, True, np.zeros(blocks), devices == 1).report()
        other = self.others[1] / max(1, self.others[0])
        report |= {
            "within": NEW * report["within"],
            "other_rows": other,
            "rate": self.rate,
            "keeps_rate": other <= TWICE * self.rate,
        }

        def of(names: Iterable[str], which: int) -> dict[str, tuple[int, int]]:
            found = {name: gone[[fault[which] == name for fault in faults]] for name in names}
            return {name: (int(each.sum()), len(each)) for name, each in found.items() if len(each)}

        return {"frozen": None, "learning": report, "diverged": 0, "missed": of(KINDS, 0), "manners": of(MANNERS, 1)}


def quiet_rows(rows: int, faults: Sequence[Fault]) -> np.ndarray:
    """Return a Boolean array, (rows,), which is True for rows that count as fault-free."""
    quiet = np.ones(rows, bool)
    for fault in faults:
        quiet[fault.first : fault.last + GUARD] = False
    return quiet


def watch(spec: Spec, table: Table, promise: bool = False) -> dict[str, Any]:
    """Return the results of a monitor, which uses its own threshold, on rows with faults: see ``Watched.report``.

    As on a device, the monitor continues to learn through all repetitions with one manner of faults.  There is a new
    monitor for each device and each manner.
    promise: whether to use rows that took no part in choosing a model, with more and different faults.
    """
    found, alarms = Watched(spec.novelty.false_alarm_rate), [int(status) for status in spec.program.alarms]
    for statuses, faults, device in _repetitions(spec, table, promise, lambda: HostModel(spec).update):
        found.take(np.isin(statuses, alarms), faults, device)
    return found.report()


def _repetitions(
    spec: Spec, table: Table, promise: bool, made: Callable[[], Callable[[np.ndarray], np.ndarray]]
) -> Iterator[tuple[np.ndarray, list[Fault], int]]:
    """Yield (results, faults, device) for each repetition of a device's rows: the monitor's result for each row, the faults in this
    repetition, and the index of the device.

    Each device gets a new monitor for each manner, because a real machine fails in only one manner.  made: makes a new monitor, a
    function that returns a result for each row.
    """
    watched, (seed, count) = watched_rows(spec, table, promise), PROMISE if promise else CHOICE
    for number, (before, rows) in enumerate(watched):
        manner = ""
        for changed, faults in with_faults(
            rows, Sensors.of(before), seed + 2 * number, math.ceil(count / len(watched))
        ):
            if faults[0].manner != manner:
                manner, answer = faults[0].manner, made()
                answer(before)
            yield answer(changed), faults, number


def watched_simply(spec: Spec, table: Table, part: float) -> dict[str, dict[str, Any]]:
    """Return the results of simple monitors on the faults of a promise.

    A monitor is in alarm above the level that a fraction ``part`` of the fault-free rows exceeds.  All monitors
    therefore have the same false-alarm rate.
    """
    dim, found = table.x.shape[1], {}
    every = list(_repetitions(spec, table, True, lambda: Rivals(dim, spec.completes).step))
    for i, (name, size) in enumerate(Rivals.numbers(dim).items()):
        told, levels = (
            Watched(spec.novelty.false_alarm_rate),
            [np.nan_to_num(each[:, i], nan=-np.inf) for each, _, _ in every],
        )
        quiet = [level[quiet_rows(len(level), faults)] for level, (_, faults, _) in zip(levels, every, strict=True)]
        above = float(np.quantile(np.concatenate(quiet), 1 - part, method="higher"))
        for level, (_, faults, device) in zip(levels, every, strict=True):
            told.take(level > above, faults, device)
        found[name] = told.report()["learning"] | {"bytes": 4 * size, "above": above}
    return found
