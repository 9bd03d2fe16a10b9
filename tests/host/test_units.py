"""The defaults are free of units: inputs and labels times powers of two lead to the same bytes, but for that power.

Squares become subnormal, and rounded, where a deviation is below 2^-63 in float32; before that, nothing is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

KINDS: dict[str, dict[str, Any]] = {
    "number": {"label": {"column": "y"}},
    "classes": {"label": {"column": "y", "classes": ["a", "b", "c"]}},
    "monitor": {"novelty": {}},
}
ROWS = 300


def found(kind: str, exponents: tuple[int, int], most: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Answers and statuses for inputs and labels times these powers of two.  most: the limits of both, as exponents."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(ROWS, 3)) * [1, 4, 0.5]
    y = np.sin(2 * x[:, 0]) + x[:, 1] / 4 + 0.1 * rng.normal(size=ROWS)
    x[200:240, 1] += 16
    given, own = np.exp2(exponents, dtype=np.float32), KINDS[kind]
    label = own.get("label", {})
    if kind == "number":
        label = label | {"max_abs": 2.0 ** most[1]}
    labels: np.ndarray = np.zeros((ROWS, 0), np.float32)
    if label:
        labels = np.digitize(y, [-0.5, 0.5]).astype(np.int32) if kind == "classes" else y.astype(np.float32) * given[1]
    inputs = {"columns": ["a", "b", "c"], "max_abs": 2.0 ** most[0]}
    model = HostModel(make_spec({"name": "m", "input": inputs} | own | ({"label": label} if label else {})))
    answers, statuses = model.prequential(x.astype(np.float32) * given[0], labels)
    return (answers / given[1] if kind == "number" else answers), statuses


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("power", [-60, -50, -30, 10, 43])
def test_a_power_of_two_changes_no_error(kind: str, power: int) -> None:
    """Of inputs, of labels, and of both.  Below the limits of a spec these stay; above them, they are scaled along."""
    usual, more = (20, 0) if power <= 10 else (6, power)
    expected, statuses = found(kind, (0, 0), (usual, usual))
    for exponents in ((power, 0), (0, power), (power, power)):
        most = (usual + more * (exponents[0] != 0), usual + more * (exponents[1] != 0))
        answers, told = found(kind, exponents, most)
        assert told.tobytes() == statuses.tobytes() or (kind == "monitor" and power == -60)
        if kind == "monitor":
            # before it is known what surprises are usual, levels are those of the units
            assert np.abs(answers[100:] - expected[100:]).mean() < 0.01 * np.abs(expected[100:]).mean()
        elif exponents[0] > -60:
            assert answers.tobytes() == expected.tobytes()
        else:
            assert np.abs(answers - expected).max() < 1e-4
