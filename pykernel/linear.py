"""Recursive least squares: the linear model to compare with, and the honest one where the world is linear.

Minimises sum_t lambda^(T-t) (y_t - w'x_t)^2 + lambda^T |w|^2 / covariance over w, sample by sample, in O(D^2).  The
inverse correlation matrix P is kept as a square root, P = root' root, and updated in Potter's form (G. J. Bierman,
Factorization Methods for Discrete Sequential Estimation, 1977, II.6): in float32 P itself soon loses its positive
definiteness.  There is no constant term: give an input that is always 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from pykernel.dialect import (
    DIM,
    PRECISIONS,
    Bool,
    Config,
    Index,
    Memory,
    Precision,
    Real,
    Struct,
    absolute,
    entry,
    kernel,
    real,
    sqrt,
)
from pykernel.errors import UserError
from pykernel.program import Entry, Program
from pykernel.rehearsal import LARGEST, strained


class LinearStatus(IntEnum):
    """What a call did: 0 done, below 0 refused and the model unchanged."""

    DONE = 0
    REFUSED_INPUT = -1  # an input is not finite or beyond the declared limit
    REFUSED_LABEL = -2  # the label is not finite or beyond the declared limit
    REFUSED_WEIGHT = -3  # a weight would leave its range


class Linear(Struct):
    """The model: f(x) = w'x."""

    weights: Real[DIM]
    root: Real[DIM, DIM]  # a square root of the inverse correlation matrix: root' root = P
    started: Index  # 0 until a sample is learnt (then P = covariance I and root is still zero), 1 from then on


class LinearWork(Struct):
    """Intermediate results.  No update depends on what an earlier one left here; zeros are always valid."""

    f: Real[DIM]  # root x
    g: Real[DIM]  # P x
    revised: Real[DIM]  # the weights after this update, until it is certain
    trace: Real  # of P


class LinearConfig(Config):
    """Parameters, derived by ``LinearSpec``."""

    forgets: bool  # whether forgetting < 1
    forgetting: Real  # lambda: what a sample's weight is multiplied by at each later one
    start: Real  # square root of the initial covariance
    trace_limit: Real  # forgetting pauses when P's trace is above
    input_limit: Real  # largest |x_j| that is taken
    label_limit: Real  # largest |y| that is taken
    weight_limit: Real  # largest |w_j| that is stored
    rehearsal_input: Real  # width of the self-test's inputs
    rehearsal_label: Real  # width of the self-test's labels


@kernel
def bounded(limit: Real, x: Real[DIM]) -> Bool:
    """Whether every element is a number within the limit."""
    for j in range(len(x)):
        # not "> limit": NaN must fail
        if not (absolute(x[j]) <= limit):
            return False
    return True


@kernel
def weigh(s: Linear, x: Real[DIM]) -> Real:
    """f(x) = w'x.  O(D)."""
    y = real(0)
    for j in range(len(x)):
        y += s.weights[j] * x[j]
    return y


@entry
def predict(s: Linear, c: LinearConfig, x: Real[DIM], y: Real[1]) -> Index:
    """Write f(x) to y.  O(D).

    DONE, or REFUSED_INPUT with y unchanged.
    """
    if not bounded(c.input_limit, x):
        return LinearStatus.REFUSED_INPUT
    y[0] = weigh(s, x)
    return LinearStatus.DONE


@kernel
def correlate(s: Linear, w: LinearWork, c: LinearConfig, x: Real[DIM]) -> Real:
    """f = root x, g = P x and the trace of P; returns x'P x = f'f.  O(D^2)."""
    total = real(0)
    w.trace[0] = real(0)
    if s.started[0] == 0:
        for j in range(len(x)):
            w.f[j] = c.start * x[j]
            w.g[j] = c.start * w.f[j]
            total += w.f[j] * w.f[j]
        return total
    for j in range(len(x)):
        w.g[j] = real(0)
    for i in range(len(x)):
        f = real(0)
        for j in range(len(x)):
            f += s.root[i, j] * x[j]
            w.trace[0] += s.root[i, j] * s.root[i, j]
        for j in range(len(x)):
            w.g[j] += f * s.root[i, j]
        w.f[i] = f
        total += f * f
    return total


@kernel
def begin(s: Linear, c: LinearConfig) -> None:
    """P = covariance I."""
    for i in range(len(s.weights)):
        s.root[i, i] = c.start
    s.started[0] = 1


@kernel
def downdate(s: Linear, w: LinearWork, scale: Real, growth: Real) -> None:
    """root = growth (root - scale f g').  O(D^2)."""
    for i in range(len(s.weights)):
        share = scale * w.f[i]
        for j in range(len(s.weights)):
            s.root[i, j] = growth * (s.root[i, j] - share * w.g[j])


@entry
def update(s: Linear, w: LinearWork, c: LinearConfig, x: Real[DIM], y: Real) -> Index:
    """Learn that f(x) should be y.  O(D^2).

    DONE, or why the sample was refused; the model is then unchanged.
    """
    if not bounded(c.input_limit, x):
        return LinearStatus.REFUSED_INPUT
    if not (absolute(y) <= c.label_limit):
        return LinearStatus.REFUSED_LABEL
    spread = correlate(s, w, c, x)
    remembered = real(1)
    growth = real(1)
    # directions that no input takes are forgotten too: P would grow without end
    if c.forgets and w.trace[0] <= c.trace_limit:
        remembered = c.forgetting
        growth = real(1) / sqrt(remembered)
    total = remembered + spread
    step = (y - weigh(s, x)) * (real(1) / total)
    for j in range(len(x)):
        w.revised[j] = s.weights[j] + step * w.g[j]
        if not (absolute(w.revised[j]) <= c.weight_limit):
            return LinearStatus.REFUSED_WEIGHT
    if s.started[0] == 0:
        begin(s, c)
    downdate(s, w, real(1) / (total + sqrt(remembered * total)), growth)
    for j in range(len(x)):
        s.weights[j] = w.revised[j]
    return LinearStatus.DONE


@entry
def rehearse(s: Linear, w: LinearWork, c: LinearConfig, x: Real[DIM]) -> None:
    """Learn a fixed sequence of pseudo-random samples, twice as many as there are weights and more."""
    seed = 1
    for t in range(2 * len(s.weights) + 32):
        for j in range(len(x)):
            seed = (seed * 75 + 74) % 65537
            x[j] = c.rehearsal_input * (real(seed) / real(65536) - real(0.5))
        seed = (seed * 75 + 74) % 65537
        y = c.rehearsal_label * strained(real(seed) / real(65536) - real(0.5))
        status = update(s, w, c, x, y)
        if status < 0:
            break


@entry
def valid(s: Linear, c: LinearConfig) -> Bool:
    """Whether learning could have led to this state: weights within their limit, a finite root.  O(D^2)."""
    if s.started[0] != 0 and s.started[0] != 1:
        return False
    if not bounded(c.weight_limit, s.weights):
        return False
    for i in range(len(s.weights)):
        if s.started[0] == 0 and s.weights[i] != real(0):
            return False
        for j in range(len(s.weights)):
            if not (absolute(s.root[i, j]) <= LARGEST) or (s.started[0] == 0 and s.root[i, j] != real(0)):
                return False
    return True


LINEAR = Program(
    name="linear",
    structs=(Linear, LinearWork),
    persistent=(Linear,),
    config=LinearConfig,
    status=LinearStatus,
    entries=(Entry("predict", predict), Entry("update", update)),
    rehearse=rehearse,
    valid=valid,
)


WINDUP = 1024.0
"""How far forgetting may raise the trace of P above its initial value; float32 still holds P's small directions."""


@dataclass(frozen=True)
class LinearSpec:
    """What ``HostModel`` wants to know of a linear model.

    forgetting: lambda, in (0.5, 1]; about the last 1 / (1 - lambda) samples count.
    covariance: P before the first sample, times I; its inverse is the ridge penalty.
    """

    dim: int
    precision: str = "float32"
    forgetting: float = 1.0
    covariance: float = 100.0
    input_limit: float = 1e6
    label_limit: float = 1e6

    program = LINEAR

    def __post_init__(self) -> None:
        if self.dim < 1:
            raise UserError(f"dim is {self.dim}; a linear model has at least one input")
        if self.precision not in PRECISIONS:
            raise UserError(f"precision is {self.precision!r}; it must be one of {', '.join(PRECISIONS)}")
        if not 0.5 < self.forgetting <= 1:
            raise UserError(
                f"forgetting is {self.forgetting}; it must be above 0.5 and at most 1, which forgets nothing"
            )
        for name in ("covariance", "input_limit", "label_limit"):
            if not 1e-18 <= getattr(self, name) <= 1e18:
                raise UserError(f"{name} is {getattr(self, name)}; it must be from 1e-18 to 1e18")
        # x'P x, whose inverse must be a normal number
        largest = WINDUP * (self.dim * self.input_limit) ** 2 * self.covariance / self.forgetting
        if largest > (1e36 if self.precision == "float32" else 1e300):
            raise UserError(
                f"input_limit is {self.input_limit:g} and covariance {self.covariance:g}; together they overflow "
                f"{self.precision}, lower one of them"
            )

    @property
    def real(self) -> Precision:
        return PRECISIONS[self.precision]

    @property
    def capacities(self) -> dict[str, int]:
        return {"DIM": self.dim}

    @property
    def config_values(self) -> dict[str, Any]:
        """Parameters, derived in float64; each is rounded once when the precision is bound."""
        return {
            "forgets": self.forgetting < 1,
            "forgetting": self.forgetting,
            "start": math.sqrt(self.covariance),
            "trace_limit": WINDUP * self.dim * self.covariance,
            "input_limit": self.input_limit,
            "label_limit": self.label_limit,
            "weight_limit": min(2.0**20 * self.label_limit, 2.0**100),
            "rehearsal_input": min(1.0, self.input_limit),
            "rehearsal_label": min(1.0, self.label_limit),
        }

    @property
    def config(self) -> Any:
        return self.program.config.of(self.real, self.config_values)

    def memory(self, drop: tuple[str, ...] = ()) -> Memory:
        return self.program.memory(self.real, self.capacities, drop)


def least_squares(dim: int, **settings: Any) -> Any:
    """A recursive least-squares model on the host; settings as in ``LinearSpec``."""
    from pykernel.host import HostModel

    return HostModel(LinearSpec(dim, **settings))  # type: ignore[arg-type]
