"""The linear expert beside a model: its section of a spec, and its sizes."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from pykernel.spec.sections import Section


class Mixture(Section):
    """A linear expert beside the model: the answer, or each class's probability, is the mean of both, weighted by how right they
    have been lately.
    """

    forgetting: float = Field(
        0.999,
        ge=0.9,
        le=1,
        description="each later label multiplies a label's weight by this for the linear expert: about the last 1 / (1 - forgetting) labels count",
    )


def size_bound(spec: Any) -> int:
    """A bound of the numbers that the linear expert takes; the families count the other stages."""
    if getattr(spec, "mixture", None) is None:
        return 0
    return spec.dim * (spec.dim + 1) // 2 + 5 * (spec.dim + 1) + spec.outputs * (spec.dim + 7) + 7
