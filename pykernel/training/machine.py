"""Kernel machines that were trained elsewhere, in float64."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.bases.gram import MercerKernel
from pykernel.dialect import Kernel
from pykernel.errors import UserError
from pykernel.spec.kernel_settings import ACTIVATIONS
from pykernel.spec.model import OUTPUTS_LIMIT, Spec, shown_value

NUMBERS_LIMIT = 2**24
"""Maximum number of elements in a table.  The largest model that a spec can hold has fewer elements."""


@dataclass(frozen=True)
class Machine:
    """A kernel machine in float64: f(x) = sum_i weights_i k(vectors_i, (x - center) * scale) + bias.

    vectors: (n, DIM); weights: (n, W); bias: (F,) for F functions; center, scale: (DIM,) or None.  W equals F, except
    with ``support_class``: then W is the number of classes minus 1.  Fields without a comment are as in a spec.
    """

    source: str  # name of the model from which the machine was made
    function: str
    vectors: np.ndarray
    weights: np.ndarray
    bias: np.ndarray
    gamma: float = 1.0
    coef0: float = 0.0
    degree: int = 1
    decision: str = "functions"
    support_class: np.ndarray | None = None
    break_ties: bool = False
    classes: tuple[Any, ...] | None = None
    calibration: np.ndarray | None = None
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    columns: tuple[str, ...] | None = None
    label: dict[str, Any] | None = None  # the spec's [label], if it is known
    largest: float | None = None  # largest magnitude of the inputs; None: that of the vectors
    seen: np.ndarray | None = (
        None  # (rows, DIM): smallest, largest and other values of each training input, if the vectors are not inputs
    )
    notes: tuple[str, ...] = ()  # sentences about parts of the source that are left out
    normalise: bool = False
    custom: Kernel | None = None  # for function "custom"; max_value bounds its values
    max_value: float | None = None
    alpha: float = 1.0  # for function "rational-quadratic"
    offsets: np.ndarray | None = None  # (n,), added to x'v for hidden units and "fourier"; None: zeros
    taken: tuple[int, ...] | None = None  # positions of the source's inputs that are used; None: all
    inputs_of_source: int | None = None  # number of the source's inputs, if ``taken`` is given
    gross: np.ndarray | None = None  # (n, F): sums of the magnitudes that the source adds up to get the weights
    mixes: int = 0  # number of additional terms in the source's sum for a function
    signal: Spec | None = None  # a spec whose signal stage computes the inputs x; "columns" then names its channels

    @property
    def taking(self) -> int:
        """The number of the source's inputs."""
        return self.dim if self.taken is None or self.inputs_of_source is None else self.inputs_of_source

    @property
    def dim(self) -> int:
        return self.vectors.shape[1]

    @property
    def centers(self) -> np.ndarray:
        """The center (DIM,), or zeros if inputs are not centered."""
        return np.zeros(self.dim) if self.center is None else self.center

    @property
    def scales(self) -> np.ndarray:
        """The scale (DIM,), or ones if inputs are not scaled."""
        return np.ones(self.dim) if self.scale is None else self.scale

    @property
    def reach(self) -> float:
        """The largest magnitude of the inputs in training, or of the vectors if the inputs are not known."""
        return float(np.abs(self.inputs()).max(initial=0.0)) if self.largest is None else self.largest

    @property
    def kernel(self) -> MercerKernel:
        return MercerKernel(
            self.function, self.gamma, self.coef0, self.degree, self.normalise, self.custom, self.max_value, self.alpha
        )

    @property
    def shifts(self) -> np.ndarray:
        """The offset that hidden units and "fourier" add to x'v, for each vector, (n,)."""
        return np.zeros(len(self.vectors)) if self.offsets is None else self.offsets

    @property
    def linear(self) -> bool:
        """Whether the functions are linear in the inputs."""
        return not self.normalise and (
            self.function == "linear" or (self.function == "polynomial" and self.degree == 1)
        )

    def inputs(self) -> np.ndarray:
        """Return the vectors in the inputs' original units, (n, DIM)."""
        v = self.vectors if self.scale is None else self.vectors / self.scale
        return v if self.center is None else v + self.center

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """Return inputs in the units of the vectors, (rows, DIM)."""
        x = x if self.center is None else x - self.center
        return x if self.scale is None else x * self.scale

    def values(self, z: np.ndarray) -> np.ndarray:
        """Return k(v_i, z) at rows of scaled inputs z, (rows, n)."""
        if self.function in ACTIVATIONS:
            return np.asarray(ACTIVATIONS[self.function](z @ self.vectors.T + self.shifts))
        return self.kernel.gram(z, self.vectors)

    def functions(self, z: np.ndarray) -> np.ndarray:
        """Return the values of all functions at rows of scaled inputs z, (rows, F).  Functions for pairs of classes are
        in the order (0,1), (0,2), ..., (1,2).
        """
        return np.asarray(self.values(z) @ self.columns_of_weights() + self.bias)

    def columns_of_weights(self) -> np.ndarray:
        """Return the weights of each function, (n, F).

        In a function for a pair of classes, the vectors of other classes have the weight 0.
        """
        if self.support_class is None:
            return self.weights
        columns = np.zeros((len(self.vectors), len(self.bias)))
        for p, (i, j) in enumerate(pairs(self.weights.shape[1] + 1)):
            for mine, other in ((i, j - 1), (j, i)):
                columns[self.support_class == mine, p] = self.weights[self.support_class == mine, other]
        return columns


def votes(functions: np.ndarray, classes: int) -> np.ndarray:
    """Return the number of votes for each class, (rows, classes), counted from the functions for pairs of classes.

    A term between -1/3 and 1/3 is added to each number of votes; the clearer the votes for the class, the larger the
    term.  The result equals scikit-learn's decision_function, with one exception: a value of exactly zero is a vote for
    the second class, as in scikit-learn's predict.
    """
    counted, clear = np.zeros((2, len(functions), classes))
    for p, (i, j) in enumerate(pairs(classes)):
        f = functions[:, p]
        counted[:, i] += f > 0
        counted[:, j] += f <= 0
        clear[:, i] += f
        clear[:, j] -= f
    return np.asarray(counted + clear / (3 * (np.abs(clear) + 1)))


def pairs(classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes in libsvm's order."""
    return [(i, j) for i in range(classes) for j in range(i + 1, classes)]


def checked(machine: Machine, where: str) -> Machine:
    """Return the machine.  Raises UserError if a number is not finite, if two classes are equal, or if a scale is 0."""
    if machine.classes is not None and len(set(machine.classes)) < len(machine.classes):
        raise UserError(f"{where}: holds the same class twice; fit the model again")
    for name in ("vectors", "weights", "bias", "center", "scale", "calibration", "offsets"):
        values = getattr(machine, name)
        if values is not None and not np.isfinite(values).all():
            raise UserError(f"{where}: a number in its {name} overflows; scale the data and fit the model again")
    if machine.scale is not None and not machine.scale.all():
        raise UserError(f"{where}: scales an input by 0; leave that input out")
    return machine


def array_of(values: Any, shape: tuple[int, ...] | None, where: str, name: str) -> np.ndarray:
    """Return the values as a finite float64 array.  shape: the required shape; None: any shape.  Raises UserError."""
    try:
        if math.prod(getattr(values, "shape", ())) > NUMBERS_LIMIT:
            raise UserError(f"{where}: {name} holds more than {NUMBERS_LIMIT:,} numbers; no device holds such a model")
        if shape is not None and tuple(np.shape(values) if not hasattr(values, "shape") else values.shape) != shape:
            found = tuple(values.shape) if hasattr(values, "shape") else np.shape(values)
            raise UserError(f"{where}: {name} has shape {found}; it must be {shape} to fit the other parts")
        if np.iscomplexobj(values):
            raise TypeError
        if hasattr(values, "check_format"):
            values.check_format(full_check=True)  # otherwise indices could lie outside the sparse matrix
        array = np.array(values.toarray() if hasattr(values, "toarray") else values, np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{where}: the values of {name} are not numbers; fit the model again") from None
    if not np.isfinite(array).all():
        raise UserError(f"{where}: {name} holds numbers that are not finite; scale the data and fit the model again")
    return array


def number_of(value: Any, where: str, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UserError(f"{where}: {name} is {shown_value(value)}; it must be a number") from None
    if not math.isfinite(number):
        raise UserError(f"{where}: {name} is {number}; it must be finite")
    return number


def require_classes(count: int, where: str) -> None:
    if not 2 <= count <= OUTPUTS_LIMIT:
        raise UserError(f"{where}: has {count} class{'es' * (count != 1)}; a model has from 2 to {OUTPUTS_LIMIT}")
