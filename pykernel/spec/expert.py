"""The linear expert beside a model: its section of a spec."""

from __future__ import annotations

from pydantic import Field

from pykernel.spec.sections import Section


class Mixture(Section):
    """A linear expert beside the model: the answer, or each class's probability, is the mean of both, weighted by how right they
    have been lately.
    """

    blocks: bool = Field(
        False,
        description="keep the linear expert's covariance within blocks of 8 inputs only: for many inputs, memory and time grow with D, not with D^2",
    )
    forgetting: float = Field(
        0.999,
        ge=0.9,
        le=1,
        description="each later label multiplies a label's weight by this for the linear expert: about the last 1 / (1 - forgetting) labels count",
    )
