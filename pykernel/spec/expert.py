"""The section [mixture] of a spec, which adds a linear expert to a model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pykernel.spec.sections import Counts, Section


class Mixture(Section):
    """A linear expert next to the model.

    The prediction, or the probability of each class, is a weighted mean of the model's value and the expert's value.
    Whichever of model and expert was more accurate recently has the larger weight.
    """

    blocks: bool = Field(
        False,
        description="store only the diagonal blocks of the linear expert's covariance matrix, each for 8 inputs: memory and time then grow in proportion to the number of inputs, not to its square",
    )
    last: Annotated[int, Counts("is for labels that are numbers; leave it out", ("label_kind",), ("real", "reals"))] = (
        Field(
            0,
            ge=0,
            le=1024,
            description="how many of the latest labels are stored. If this number is not 0, the linear expert has the latest known label as an additional input. Give 1 if labels come immediately, or d + 1 if they come d rows late",
        )
    )
    forgetting: float = Field(
        0.999,
        ge=0.9,
        le=1,
        description="forgetting factor of the linear expert: about the last 1 / (1 - forgetting) labels count",
    )


def extents(mixture: Mixture | None, dim: int, outputs: int) -> dict[str, int]:
    """Return the sizes of the linear expert's memory.  All sizes are 0 if the model has no expert."""
    if mixture is None:
        return {"EXPERT": 0, "LAST": 0}
    return {"EXPERT": dim + 1 + (outputs if mixture.last else 0), "LAST": mixture.last}
