"""Specs of frozen models: checks of the tables, and the parameters of the `@kernel` functions."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from pykernel.algorithms.elementary import FLOOR_EXPONENT
from pykernel.algorithms.frozen import FROZEN, Decision
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings
from pykernel.spec.base import Spec
from pykernel.spec.families.features import need_count, need_sums, need_vectors, need_weights
from pykernel.spec.family import Family, Models, Refuse
from pykernel.spec.sections import SQUARED, FrozenInput, KernelSection, Learning, Numbers, Rows, Section, VectorsSection

PRODUCTS_LIMIT = 10_000.0
"""Largest (gamma / ln 2) |v|^2 with distance = "products".  With this limit, exponents stay far below the largest exponent that can be
rounded to an integer by adding a constant."""

DECISIONS = {"functions": Decision.FUNCTIONS, "ovo": Decision.OVO, "ovo_vote": Decision.OVO_VOTE}


Pair = Annotated[tuple[float, float], Field(strict=False)]
ClassIndices = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1, max_length=65536)]


class Training(Section):
    """Facts about the training of the vectors: the scaling of the inputs, the training table and the promised error."""

    scaling: str
    rows: int | None = Field(None, ge=1)
    data: str | None = None
    low: Numbers | None = Field(None, strict=False)
    high: Numbers | None = Field(None, strict=False)
    promise: Pair | None = None


class Expansion(VectorsSection):
    """The tables of a frozen model, which are stored in flash."""

    trained: Training | None = Field(
        None,
        description="written by `plan` and `fit`. `scaling`: a digest of the `center` and `scale` that the training used; a spec with another `center` or `scale` is refused. `rows`, `data`: the number of rows of the training table, and a digest by which `simulate` recognises these rows. `low`, `high`: the smallest and the largest value of each input in these rows. `promise`: the error that `plan` promised, and half the width of the interval around this error",
    )
    weights: Rows | None = Field(
        None,
        strict=False,
        description="a row for each vector, with a number for each function. `ovo`, `ovo_vote`: a number for each function that separates the vector's class from another class",
    )
    bias: Numbers | None = Field(None, strict=False, description="the constant added to each function")
    decision: Literal["functions", "ovo", "ovo_vote"] = Field(
        "functions",
        description='`"functions"`: a function for each label, or for each class (only one function if there are two classes). `"ovo"`, with three or more classes: a function for each pair of classes, as in libsvm; `NAME_predict` writes the values of the functions. `"ovo_vote"`: the same functions, but `NAME_predict` writes the number of votes for each class, plus a number between -1/3 and 1/3 that measures how clear these votes were',
    )
    support_class: ClassIndices | None = Field(
        None,
        strict=False,
        description="`ovo`, `ovo_vote`: the class of each vector; `weights` is then the transpose of scikit-learn's `dual_coef_`",
    )
    break_ties: bool = Field(
        False,
        description="`ovo`, `ovo_vote`: if several classes have the most votes, the winner is the class with the clearest votes (`true`) or the first of these classes (`false`)",
    )
    calibration: Annotated[tuple[Pair, ...], Field(min_length=1)] | None = Field(
        None,
        strict=False,
        description="for classes: a pair (a, b) for each function f. `NAME_probability` writes 1 / (1 + exp(a f + b)); with more than two classes, these values are divided by their sum",
    )
    offsets: Numbers | None = Field(
        None,
        strict=False,
        description="hidden units (`relu`, `tanh`, `logistic`, `identity`): the number added to v'x for each vector v; 0 if not given. `fourier`: the phase of each cosine, from -1 to 1 turn",
    )
    distance: Literal["differences", "products"] = Field(
        "differences",
        description='`gaussian`: how ‖x − v‖² is computed. `"products"` computes it as ‖x‖² + ‖v‖² − 2 x\'v with precomputed ‖v‖²: fewer instructions, but a larger rounding error',
    )


class FrozenSpec(Spec):
    input: FrozenInput
    kernel: KernelSection | None = None
    learning: Learning = Learning()
    expansion: Expansion | None = None


class FrozenModels(Models):
    """Expansions that were trained elsewhere and do not learn."""

    rules: Mapping[str, str] = {"frozen": "kernel"}
    programs: Mapping[LabelKind, Program] = FROZEN
    spec: type[Spec] = FrozenSpec

    def validate(self, spec: Spec, refuse: Refuse) -> None:
        if spec.expansion is None:
            refuse("[expansion]", "is missing; a frozen model must have vectors, weights and bias")
        if spec.expansion.weights is None or spec.expansion.bias is None:
            refuse("[expansion]", "has no weights or no bias; a frozen model must have both")
        kernel_settings.validate(spec, refuse)
        self._complain_of_tables(spec, refuse)
        self._complain_of_decision(spec, refuse)
        self._complain_of_numbers(spec, refuse)

    def _complain_of_tables(self, spec: Spec, refuse: Refuse) -> None:
        tables = spec.expansion
        need_vectors(spec, refuse)
        for key in ("low", "high") if tables.trained is not None else ():
            need_count(refuse, f"trained.{key}", getattr(tables.trained, key), spec.dim, "input")
        if tables.trained is not None and tables.trained.scaling != scaling_digest(spec):
            refuse(
                "[input]",
                "has a center or scale that differs from the one in training; restore the old values, or train again",
            )
        if tables.weights is not None:
            need_weights(spec, refuse, self._weights(spec), self._functions(spec))
        if tables.offsets is not None:
            if spec.kernel.function not in kernel_settings.HIDDEN:
                refuse(
                    "[expansion] offsets",
                    f"belongs to {', '.join(kernel_settings.HIDDEN)}; a {spec.kernel.function} kernel has no offsets: leave them out",
                )
            need_count(refuse, "offsets", tables.offsets, len(tables.vectors), "vector")
            most = SQUARED.ends(spec.precision)[1]
            if max(map(abs, tables.offsets)) > most:
                refuse(
                    "[expansion] offsets",
                    f"holds {max(tables.offsets, key=abs):g}; magnitudes must be at most {most:g} for {spec.precision}",
                )
            if spec.kernel.function == "fourier" and max(map(abs, tables.offsets)) > 1:
                refuse(
                    "[expansion] offsets", f"holds {max(tables.offsets, key=abs):g}; a phase must be from -1 to 1 turn"
                )

    def _complain_of_decision(self, spec: Spec, refuse: Refuse) -> None:
        tables, classes = spec.expansion, len(spec.label.classes or ())
        ovo = tables.decision != "functions"
        if ovo and classes < 3:
            refuse("[expansion] decision", f'is "{tables.decision}", which needs three or more classes')
        if ovo != (tables.support_class is not None):
            given = 'is given, but decision is "functions"; leave support_class out'
            refuse("[expansion] support_class", "is missing; it must hold the class of each vector" if ovo else given)
        need_count(refuse, "support_class", tables.support_class, len(tables.vectors), "vector", "classes")
        if tables.support_class is not None and max(tables.support_class) >= classes:
            refuse(
                "[expansion] support_class",
                f"holds {max(tables.support_class)}; classes must be from 0 to {classes - 1}",
            )
        if tables.break_ties and not ovo:
            refuse("[expansion] break_ties", 'belongs to decision "ovo" and "ovo_vote"; leave break_ties out')
        if tables.calibration is not None and (ovo or not classes):
            refuse("[expansion] calibration", 'needs classes and decision "functions"; leave calibration out')
        need_count(refuse, "calibration", tables.calibration, self._functions(spec), "function", "rows")
        if tables.distance == "products" and spec.kernel.function != "gaussian":
            refuse("[expansion] distance", 'is "products", which only gaussian kernels allow; leave distance out')

    def _complain_of_numbers(self, spec: Spec, refuse: Refuse) -> float:
        """Refuse numbers that lead to an overflow.  Return an upper bound on the kernel's values."""
        vectors = np.array(spec.expansion.vectors, float)
        slope, offset = np.abs(spec.expansion.calibration or ((0.0, 0.0),)).max(0)
        value = kernel_settings.bound(spec, refuse, np.abs(vectors).max(0))
        if spec.expansion.weights is not None:
            need_sums(spec, refuse, value, max(1.0, slope), offset)
        if spec.expansion.distance == "products":
            square = kernel_settings.rate(spec) * float(np.sum(vectors**2, axis=1).max())
            if not square <= PRODUCTS_LIMIT:
                refuse(
                    "[expansion] distance",
                    f'is "products", for which gamma |v|^2 must be at most {PRODUCTS_LIMIT * math.log(2):.0f}, but it reaches '
                    f"{square * math.log(2):.3g}: center the inputs, or leave distance out",
                )
        return value

    def _functions(self, spec: Spec) -> int:
        classes = len(spec.label.classes or ())
        return spec.outputs if spec.expansion.decision == "functions" else classes * (classes - 1) // 2

    def _weights(self, spec: Spec) -> int:
        return spec.outputs if spec.expansion.decision == "functions" else len(spec.label.classes or ()) - 1

    def capacities(self, spec: Spec) -> dict[str, int]:
        expansion, functions = spec.expansion, self._functions(spec)
        return {
            "DIM": spec.dim,
            "N_MAX": len(expansion.vectors),
            "OUTPUTS": functions if expansion.decision == "ovo" else spec.outputs,
            "CLASSES": max(1, len(spec.label.classes or ())),
            "FUNCTIONS": functions,
            "WEIGHTS": self._weights(spec),
            "ROWS": (len(expansion.vectors) + 1) // 2 * 2,
            "ROW": spec.dim + 1 + self._weights(spec),
        }

    def parameters(self, spec: Spec) -> dict[str, Any]:
        expansion, functions = spec.expansion, self._functions(spec)
        vectors = np.array(expansion.vectors, float)
        weights, capacities = np.array(expansion.weights, float), self.capacities(spec)
        rows, square_limit = np.zeros((capacities["ROWS"], capacities["ROW"])), 0.0
        if expansion.distance == "products":
            folded, square_limit = folded_rows(spec)
            rows[: len(vectors)] = np.column_stack([folded, weights])
        calibration = np.array(expansion.calibration or np.zeros((capacities["OUTPUTS"], 2)), float)
        most = 1e37 if spec.precision == "float32" else 1e305
        return kernel_settings.parameters(spec) | {
            "decision": DECISIONS[expansion.decision],
            "products": expansion.distance == "products",
            "single": functions == 1,
            "breaks_ties": expansion.break_ties,
            "calibrated": expansion.calibration is not None,
            "clamps": spec.label.low is not None or spec.label.high is not None,
            "vectors": vectors,
            "shifts": expansion.offsets or np.zeros(len(vectors)),
            "rows": rows,
            "square_limit": square_limit,
            "weights": weights,
            "bias": expansion.bias,
            "support_class": expansion.support_class or np.zeros(len(vectors), int),
            "slopes": -calibration[:, 0],
            "offsets": -calibration[:, 1],
            "low": spec.label.low if spec.label.low is not None else -most,
            "high": spec.label.high if spec.label.high is not None else most,
        }


def scaling_digest(spec: Spec) -> str:
    """A digest of the center and scale of the inputs that are compared with the vectors."""
    return hashlib.sha256(json.dumps(spec.scaling).encode()).hexdigest()[:12]


def folded_rows(spec: Spec) -> tuple[np.ndarray, float]:
    """Return (table, limit) for computing distances from products.

    The table has a row (-rate |v|^2, 2 rate v) for each vector v.  If rate |x|^2 is above the limit, all kernel values are zero.
    """
    rate, vectors = kernel_settings.rate(spec), np.array(spec.expansion.vectors, float)
    squares = rate * np.sum(vectors**2, axis=1)
    # above this limit, sqrt(rate) |x - v| exceeds sqrt(FLOOR_EXPONENT) for every v; the factor 1.001 allows for
    # rounding
    limit = 1.001 * (math.sqrt(squares.max()) + math.sqrt(FLOOR_EXPONENT)) ** 2 + 1
    return np.column_stack([-squares, 2 * rate * vectors]), limit


FROZEN_MODELS: Family = FrozenModels()
