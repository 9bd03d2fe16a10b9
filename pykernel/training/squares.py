"""Write a quadratic function of the inputs as a sum of a few squares of linear functions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pykernel.training.machine import Machine

LEAST = 1e-5
"""A square is left out if its coefficient is below this fraction of the function's largest coefficient."""


def squares(machine: Machine) -> Machine:
    """Return a machine with the same functions, a polynomial kernel of degree 2, and at most D + 2 vectors for each function.  If this
    would not reduce the number of vectors, return the given machine.  O(n D^2 + D^3) for each function.

    With f(z) = z'A z + h'z + k and A = sum_j a_j q_j q_j', each a_j (1 + q_j'z)^2 gives the curvature along one eigenvector.
    Two more vectors, of opposite signs, give the remaining linear part.
    """
    v, gamma, coef0 = machine.vectors, machine.gamma, machine.coef0
    vectors, weights, bias = [], [], []
    for alpha, constant in zip(machine.columns_of_weights().T, machine.bias, strict=True):
        curvature, directions = np.linalg.eigh(gamma**2 * (v.T * alpha) @ v)
        slope = 2 * gamma * coef0 * alpha @ v
        kept = np.abs(curvature) > LEAST * max(np.abs(curvature).max(), np.abs(slope).max())
        curvature, directions = curvature[kept], directions.T[kept]
        slope = slope - 2 * curvature @ directions
        size = float(np.linalg.norm(slope)) or 1.0
        vectors.append([*directions, slope / size, -slope / size])
        weights.append([*curvature, size / 4, -size / 4])
        bias.append(coef0**2 * alpha.sum() + constant - curvature.sum())
    if sum(map(len, vectors)) >= len(v):
        return machine
    every = np.zeros((sum(map(len, vectors)), len(bias)))
    ends = np.cumsum([0, *map(len, weights)])
    for function, (first, each) in enumerate(zip(ends, weights, strict=False)):
        every[first : first + len(each), function] = each
    return replace(
        machine, vectors=np.concatenate(vectors), weights=every, bias=np.array(bias), support_class=None, gamma=1.0, coef0=1.0
    )  # fmt: skip
