"""Training and cross-validation by their definitions, in float64: each fold is really left out, the rest trained anew.

No fold shares anything with another, and nothing has a closed form: rows and columns are taken out of the Gram matrix,
targets are coded with the counts that are left, and the system is solved as it is written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pykernel.host.model import HostModel
from pykernel.host.snapshot import is_valid
from pykernel.spec.model import Spec

MODELS = ("kfd", "ls-svm", "krr")


def coded(positions: np.ndarray, count: int, coding: str) -> np.ndarray:
    """Targets (l, o) of classes by position: +N/N_o and -N/(N - N_o), or +1 and -1; of two classes the second's only."""
    columns = []
    for o in [1] if count == 2 else range(count):
        of_class = positions == o
        n, n_o = len(positions), int(of_class.sum())
        if coding == "counts":
            columns.append([n / n_o if mine else -n / (n - n_o) for mine in of_class])
        else:
            columns.append([1.0 if mine else -1.0 for mine in of_class])
    return np.array(columns).reshape(len(columns), len(positions)).T


def decided(predictions: np.ndarray) -> np.ndarray:
    """Classes by position: of two the second if f > 0, of more the largest, of equal ones the first."""
    if predictions.shape[1] == 1:
        return np.array([1 if f[0] > 0 else 0 for f in predictions])
    return np.array([list(f).index(max(f)) for f in predictions])


def system(model: str, gram: np.ndarray, ridge: float) -> np.ndarray:
    """The matrix of the linear system, or least-squares problem, whose solution is [alpha; b]."""
    rows, columns = gram.shape
    one = np.ones((rows, 1))
    if model == "kfd":  # |y - K alpha - b 1|^2 + mu |alpha|^2
        return np.block([[gram, one], [np.sqrt(ridge) * np.eye(columns), np.zeros((columns, 1))]])
    if model == "ls-svm":
        return np.block([[gram + ridge * np.eye(rows), one], [one.T, np.zeros((1, 1))]])
    return gram + ridge * np.eye(rows)


def trained(model: str, gram: np.ndarray, targets: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """alpha (p, o) and b (o,) for a Gram matrix (l, p) and targets (l, o)."""
    matrix = system(model, gram, ridge)
    right = np.vstack([targets, np.zeros((len(matrix) - len(targets), targets.shape[1]))])
    if model == "kfd":
        solution = np.linalg.lstsq(matrix, right, rcond=-1)[0]
    else:
        solution = np.linalg.solve(matrix, right)
    if model == "krr":
        return solution, np.zeros(targets.shape[1])
    return solution[:-1], solution[-1]


@dataclass(frozen=True)
class Task:
    """A model to be cross-validated: gram (l, p), the sample that each column is of (-1: none), and labels.

    Labels are values (l, o), or positions of ``count`` classes and their coding.
    """

    model: str
    gram: np.ndarray
    columns: np.ndarray
    ridge: float
    values: np.ndarray | None = None
    positions: np.ndarray | None = None
    count: int = 0
    coding: str = "counts"

    def __len__(self) -> int:
        return len(self.gram)

    @property
    def targets(self) -> np.ndarray:
        """As they are with all samples, (l, o)."""
        if self.positions is None:
            assert self.values is not None
            return self.values
        return coded(self.positions, self.count, self.coding)

    def rest(self, fold: np.ndarray, column: str, recode: bool) -> Task:
        """What is left to train on without the samples of a fold, (l,) bool."""
        kept = ~np.isin(self.columns, np.flatnonzero(fold)) if column == "deleted" else np.ones(len(self.columns), bool)
        left = replace(self, gram=self.gram[np.ix_(~fold, kept)], columns=self.columns[kept])
        if self.positions is not None and recode:
            return replace(left, positions=self.positions[~fold])
        return replace(left, values=self.targets[~fold], positions=None)

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        return trained(self.model, self.gram, self.targets, self.ridge)

    def condition(self) -> float:
        """Condition number of what is solved; of least squares that of the normal equations."""
        condition = float(np.linalg.cond(system(self.model, self.gram, self.ridge)))
        return condition**2 if self.model == "kfd" else condition


def left_out(task: Task, folds: np.ndarray, column: str = "deleted", recode: bool = True) -> np.ndarray:
    """Predictions (l, o) of each sample by the model that is trained without its fold."""
    assert task.model == "kfd" or column == "deleted", "a system with more unknowns than rows: left_out_of_objective"
    predictions = np.full(task.targets.shape, np.nan)
    for number in np.unique(folds):
        fold = folds == number
        rest = task.rest(fold, column, recode)
        alpha, bias = rest.solution()
        kept = ~np.isin(task.columns, np.flatnonzero(fold)) if column == "deleted" else slice(None)
        predictions[fold] = task.gram[fold][:, kept] @ alpha + bias
    return predictions


def worst_condition(task: Task, folds: np.ndarray, column: str = "deleted") -> float:
    """Of the whole problem and of all that are trained anew."""
    column = column if task.model == "kfd" else "deleted"
    rests = [task.rest(folds == number, column, False) for number in np.unique(folds)]
    return max(problem.condition() for problem in [task, *rests])


def objective_without(task: Task, fold: np.ndarray, recode: bool = True) -> np.ndarray:
    """KRR and LS-SVM with the column kept: |y - K alpha - b|^2 over the rest + lambda alpha' K alpha over all columns."""
    rest = task.rest(fold, "kept", recode)
    eigenvalues, vectors = np.linalg.eigh(task.gram)
    root = np.sqrt(task.ridge * np.clip(eigenvalues, 0, None))[:, None] * vectors.T
    one = np.full((len(rest.gram), 1), 1.0 if task.model == "ls-svm" else 0.0)
    matrix = np.block([[rest.gram, one], [root, np.zeros((len(root), 1))]])
    right = np.vstack([rest.targets, np.zeros((len(root), rest.targets.shape[1]))])
    solution = np.linalg.lstsq(matrix, right, rcond=1e-13)[0]
    return task.gram[fold] @ solution[:-1] + (solution[-1] if task.model == "ls-svm" else 0.0)


# ------------------------------------------------------------------------------------------------ kernels, devices

KERNELS = ("gaussian", "laplacian", "polynomial", "linear", "sigmoid")


def kernel_values(a: np.ndarray, b: np.ndarray, function: str, gamma: float, coef0: float, degree: int) -> np.ndarray:
    """k of the rows of a and those of b."""
    values = np.empty((len(a), len(b)))
    for i, u in enumerate(a):
        for j, v in enumerate(b):
            if function == "gaussian":
                values[i, j] = np.exp(-gamma * np.sum((u - v) ** 2))
            elif function == "laplacian":
                values[i, j] = np.exp(-gamma * np.sum(np.abs(u - v)))
            elif function == "polynomial":
                values[i, j] = (gamma * np.sum(u * v) + coef0) ** degree
            elif function == "sigmoid":
                values[i, j] = np.tanh(gamma * np.sum(u * v) + coef0)
            else:
                values[i, j] = np.sum(u * v)
    return values


class Inputs:
    """What a spec says of inputs, labels and the kernel; numbers as the device holds them."""

    def __init__(self, spec: Spec) -> None:
        self.spec, real = spec, spec.real.dtype
        assert spec.kernel is not None
        gamma = spec.kernel.gamma if spec.kernel.sigma is None else 0.5 / spec.kernel.sigma**2
        self.kernel = (spec.kernel.function, gamma or 0.0, spec.kernel.coef0, spec.kernel.degree)
        self.center = (
            np.zeros(spec.dim) if spec.input.center is None else np.array(spec.input.center, real).astype(float)
        )
        self.scale = np.ones(spec.dim) if spec.input.scale is None else np.array(spec.input.scale, real).astype(float)
        self.classes = len(spec.label.classes or ())

    def accepted(self, x: np.ndarray) -> bool:
        """Every input is a number within the limit."""
        limit = self.spec.real.dtype.type(self.spec.input.max_abs)
        return all(np.isfinite(value) and abs(value) <= limit for value in x)

    def known(self, label: Any) -> bool:
        """A class, or numbers within the limit."""
        if self.classes:
            return 0 <= label < self.classes
        limit = self.spec.real.dtype.type(self.spec.label.max_abs)
        return all(np.isfinite(value) and abs(value) <= limit for value in np.atleast_1d(label))

    def scaled(self, x: np.ndarray) -> np.ndarray:
        return (np.asarray(x, float) - self.center) * self.scale

    def gram(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """Of scaled inputs."""
        return kernel_values(np.asarray(a, float), np.asarray(b, float), *self.kernel)


Call = tuple[Any, ...]
"""The name of a function of the device, and what it is given."""


def made(model: HostModel, call: Call) -> tuple[int, np.ndarray]:
    """Make one call of a model: its status, and what it wrote."""
    name, *given = call
    program, nothing = model.spec.program, np.zeros(0)
    if name == "update" or name in program.visits:
        x, label = given
        kind = np.int64 if model.spec.label_kind == "class" else model.spec.real.dtype
        labels = np.zeros((1, 0)) if label is None else np.array([label], kind)
        return int(model.visit(name, x[None], labels)[0]), nothing
    if name in program.questions:
        values, statuses = model.ask(name, given[0][None].astype(model.spec.real.dtype))
        return int(statuses[0]), values[0]
    if name in program.readings:
        values, status = model.read(name)
        return int(status), values
    return int(model.call(name)), nothing


def persistent(model: Any) -> bytes:
    """The model's own bytes, without working memory."""
    return bytes(model.memory.bytes[: model.spec.program.state_bytes(model.memory.layout)])


def assert_finite(model: Any) -> None:
    """No NaN and no infinity anywhere in the state, and valid() takes it."""
    program = model.spec.program
    for struct in program.persistent:
        for name in struct.fields:
            assert np.isfinite(model.memory.field(name)).all(), name
    assert is_valid(model.spec, model.memory)


def follow(model: Any, twin: Any, calls: list[Call]) -> Counter[str]:
    """Make calls of the product and of its twin, and compare what can be seen after each.

    The twin's methods take a call's arguments and the product's status, and return the statuses that rounding allows;
    then the model's own numbers are compared by its ``agrees``.  Refusals, and questions, leave the state's bytes alone.
    """
    seen: Counter[str] = Counter()
    status_of = model.spec.program.status
    for call in calls:
        before = persistent(model)
        status, values = made(model, call)
        allowed = getattr(twin, call[0])(*call[1:], status)
        assert status in allowed, f"{call[0]} gave {status_of(status).name}; allowed: {allowed}"
        if status < 0 or call[0] in ("predict", "classify", "leave_one_out"):
            assert persistent(model) == before, f"{call[0]}, {status_of(status).name}, changed the state"
        if status < 0:
            assert (values == -1).all() if call[0] == "classify" else np.isnan(values).all()
        elif call[0] in ("predict", "classify", "leave_one_out"):
            twin.answers(call, values)
        else:
            twin.agrees(model)
            assert_finite(model)
        seen[f"{call[0]}: {status_of(status).name}"] += 1
    return seen


def label_of(spec: Spec, f: float, rng: np.random.Generator) -> Any:
    """A label for the value ``f`` of a function; one in twenty is none that the model takes."""
    bad, kind = rng.random() < 0.05, spec.label_kind
    if kind == "none":
        return None
    if kind == "class":
        classes = len(spec.label.classes or ())
        known = int((f + 1.3) / 2.6 * classes) % classes
        return int(rng.choice([-1, classes, -(2**31), 2**31 - 1, 2**40])) if bad else known
    labels = np.full(spec.outputs, rng.choice([np.nan, np.inf, -60.0, 1e30])) if bad else np.array([f, 1 - f * f])
    return spec.real.dtype.type(labels[0]) if kind == "real" else labels[: spec.outputs].astype(spec.real.dtype)
