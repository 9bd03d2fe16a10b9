"""Specs of monitors with a bank of Gaussians: checks of the keys, and the parameters of the `@kernel` functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from pykernel.algorithms.novelty.gmm import GMM, JUDGED
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import stages
from pykernel.spec.base import Spec
from pykernel.spec.family import Family, Models, Refuse
from pykernel.spec.novelty import Novelty, threshold_parameters
from pykernel.spec.sections import Input, Learning, Numbers, Within
from pykernel.spec.signal import sensors_of

COMPONENTS_LIMIT = 32
HORIZON = 2000
TAIL_OF_ROWS = 10.0
STRANGE = 4.0
"""A row is outlying if the cube root of its squared distance is at least this many standard deviations above the mean.  The cube roots
of squared distances are nearly normally distributed."""
PATIENCE = 20
SOONER = 6
REHEARSED = 64
SETTLES = 300
"""After a new regime begins, the monitor also learns during alarms, for this many rows or `relearn_after` rows, whichever is fewer."""
ABSENT_ROWS = 5
"""A gap of more than this many rows raises an alarm."""


class GmmInput(Input):
    """Inputs of a monitor: sensor values without scaling, because each regime has its own scale."""

    # standard deviations are at least 2^-62, about 2e-19, so the range of a sensor must be many times larger
    max_abs: Annotated[float | Numbers, Within(float32=(1e-15, 1e15), float64=(1e-15, 1e100))] = Field(
        1e6,
        description="largest magnitude of an input; a sample with a larger input is refused. Allowed values: from 1e-15 to 1e15 (float64: to 1e100)",
    )

    missing: Literal["refuse", "hold"] = Field(
        "refuse",
        description='what happens to a sample with a missing input (NaN or an empty cell). `"refuse"`: it is refused. `"hold"`: the input is replaced by its latest value',
    )

    sensors: tuple[Annotated[int, Field(ge=0, lt=1024)], ...] | None = Field(
        None,
        strict=False,
        description="the index of each input's sensor, such as `[0, 0, 1]`. Where the monitor requires that several sensors agree, the inputs of one sensor count as one. If not given, each input is a sensor; with `[signal]`, each channel is a sensor",
    )


class GmmLearning(Learning):
    """How many regimes the machine has."""

    components: int = Field(
        4,
        ge=2,
        le=COMPONENTS_LIMIT,
        description="number of Gaussians, about one for each regime; when one more is needed, the two most similar Gaussians are merged",
    )


class GmmSpec(Spec):
    input: GmmInput
    label: stages.StagedLabel = stages.StagedLabel()
    learning: GmmLearning = GmmLearning()
    novelty: Novelty = Novelty()


class GmmModels(Models):
    """A monitor that keeps a Gaussian for each regime."""

    rules: Mapping[str, str] = {"gmm": "mixture"}
    programs: Mapping[LabelKind, Program] = GMM
    spec = GmmSpec
    online = True

    def validate(self, spec: GmmSpec, refuse: Refuse) -> None:
        stages.validate(spec, refuse)
        if spec.input.sensors is not None and len(spec.input.sensors) != spec.dim:
            refuse(
                "[input] sensors",
                f"holds {len(spec.input.sensors)} numbers; it must hold {spec.dim}, one for each input",
            )
        spec.check_size(refuse)

    def capacities(self, spec: GmmSpec) -> dict[str, int]:
        return {"DIM": spec.dim, "COMPONENTS": spec.learning.components, "OUTPUTS": spec.outputs}

    def parameters(self, spec: GmmSpec) -> dict[str, Any]:
        novelty, dim, sensors = spec.novelty, spec.dim, spec.input.sensors
        if sensors is None and spec.signal is not None:
            sensors = sensors_of(spec.signal)
        spread, k = 2 / (9 * dim), spec.learning.components
        pairs, patience, soon = (
            k * (k - 1) // 2,
            min(PATIENCE, novelty.relearn_after),
            max(2, novelty.relearn_after // SOONER),
        )
        loud_first = 4 * dim
        # there are no alarms during the warm-up, or before the usual size of surprises is known; the self-test must last longer
        # than both (the warm-up is added to ``rehearsed``)
        rehearsed = REHEARSED + max(0, loud_first + JUDGED - novelty.warmup)
        return (
            stages.parameters(spec, 1.0)
            | threshold_parameters(novelty)
            | {
                "grouped": sensors is not None and len(set(sensors)) < dim,
                "sensors": np.arange(dim) if sensors is None else np.array(sensors),
                "horizon": HORIZON,
                "warmup": novelty.warmup,
                "relearn_after": novelty.relearn_after,
                "settles_for": min(SETTLES, novelty.relearn_after),
                "absent_after": ABSENT_ROWS * (1 if spec.signal is None else spec.signal.step),
                "relearn_soon": soon,
                "patience": patience,
                "unmet_most": 3 * HORIZON + 1,
                "watched_most": max(novelty.warmup, 4 * dim) + 1,
                "root_most": 8 * spec.input_max_abs,
                # Wilson, Hilferty 1931: the cube root of a chi-squared variable is nearly normal
                "outlying": dim * (1 - spread + STRANGE * math.sqrt(spread)) ** 3,
                # no pair of Gaussians is compared in a candidate's first row; all pairs are compared before it can become a regime
                "pairs_a_row": math.ceil(pairs / (min(patience, soon) - 1)),
                "fresh": 2 * dim + 2,
                "tail_of_rows": TAIL_OF_ROWS,
                "loud_first": loud_first,
                "rehearsed": spec.rehearsed(rehearsed),
            }
        )


GMM_MODELS: Family = GmmModels()
"""The family of monitors."""
