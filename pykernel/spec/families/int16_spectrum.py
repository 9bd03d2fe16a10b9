"""Sparse spectra with learned frequencies in int16: how angles, weights and steps are scaled so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from pykernel.algorithms.int16.covariance import KNOWN, NOISE
from pykernel.algorithms.int16.frame import VALUE_MOST
from pykernel.algorithms.int16.spectrum import BEND, FINE, FREQUENCY_MOST, INT16_SPECTRUM, STEP
from pykernel.algorithms.int16.spectrum_ekf import INT16_SPECTRUM_EKF
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings
from pykernel.spec.families.int16 import Int16Family, Int16Spec, complain_of_inputs, complain_of_rate
from pykernel.spec.families.int16_online import (
    HEADROOM,
    Int16Label,
    complain_of_label,
    complain_of_width,
    frame_parameters,
)
from pykernel.spec.families.int16_scales import COUNTS, Scales, conversion, learning_rate
from pykernel.spec.families.spectrum import (
    FORM,
    FREQUENCY_VARIANCE,
    SLOWER,
    NoiseKey,
    WavesLearning,
    block_of,
    complain_of_spectrum,
    count_of,
    first_features,
    orthogonal_features,
)
from pykernel.spec.family import Models, Refuse
from pykernel.spec.sections import KernelSection
from pykernel.spec.stages import NOISE as GUESSES
from pykernel.spec.stages import LinearPart

FEATURES_MOST = 64
FREQUENCY_REACH = 8.0
"""Largest angular frequency that always fits, in units of 1 / sigma.

In 16 bits, a frequency of 1 / sigma is an integer from 2,048 to 4,095.
"""
OCTAVES = range(18, 4, -1)
"""Possible values of log2 sigma, finest first.  Sigma is in units of the converted inputs.  Outside this range, 16 bits are too coarse
for frequencies or inputs."""
REACH_MOST = 16383
REHEARSED = 96
NUMBERS_MOST = 2047
"""Largest count of numbers that a Kalman filter learns: weights, and elements of frequencies.  A sum with a derivative
for each of these numbers must fit in 32 bits."""
TUNED_REACH = 16.0
"""Largest angular frequency that always fits in 32 bits with a Kalman filter, in units of 1 / sigma."""


class Int16SpectrumLearning(WavesLearning):
    """How a sample changes the model."""

    eta: float = Field(
        0.4, gt=0, le=1, description="learning rate: the part of an error that one sample corrects; at least 1 / 65,536"
    )


class Int16FilterLearning(WavesLearning):
    """How a sample changes the model."""

    block: int | None = Field(
        None,
        ge=1,
        le=64,
        description="number of frequencies that share a covariance matrix; it must divide `features`. Larger blocks learn better, but the matrix of each block takes (block (dim + 2))^2 / 2 numbers. If not given, the largest divisor of `features` that is at most 4",
    )
    noise: NoiseKey = Field(
        "auto",
        description="variance of the labels' noise, relative to the function's variance; from 1e-3 to 1e3. `\"auto\"`: estimated from the latest residuals",
    )
    forgetting: float = Field(
        0.998,
        ge=0.5,
        le=0.9999,
        description="forgetting factor of weights and frequencies: about the last 1 / (1 - forgetting) samples count; this number is rounded to a power of two",
    )


class Int16SpectrumSpec(Int16Spec):
    label: Int16Label = Int16Label()
    kernel: KernelSection | None = None
    linear: LinearPart | None = None
    learning: Int16SpectrumLearning = Int16SpectrumLearning()

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        return super().derived | {"learning": {"features": count_of(self)}}

    @property
    def weight_shift(self) -> int:
        """log2 of the largest weight, chosen so that the sum of all waves stays within VALUE_MOST."""
        return math.floor(math.log2(VALUE_MOST / (2 * count_of(self))))


class Int16FilterSpec(Int16SpectrumSpec):
    learning: Int16FilterLearning = Int16FilterLearning()  # type: ignore[assignment]

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        return super().derived | {"learning": {"features": count_of(self), "block": block_of(self)}}


class Int16SpectrumModels(Models, Int16Family):
    """Sums of a few sinusoids with learned frequencies, in integers."""

    rules: Mapping[str, str] = {"spectrum-nlms": FORM}
    programs: Mapping[LabelKind, Program] = INT16_SPECTRUM
    online = True
    spec: type[Any] = Int16SpectrumSpec
    planned: tuple[tuple[str, str | None], ...] = (("spectrum-nlms", None),)

    def validate(self, spec: Any, refuse: Refuse) -> None:
        complain_of_spectrum(spec, refuse)
        kernel_settings.validate_function(spec, refuse)
        if count_of(spec) > FEATURES_MOST:
            refuse("[learning] features", f"is {count_of(spec)}; int16 allows at most {FEATURES_MOST}")
        complain_of_inputs(spec, refuse)
        complain_of_label(spec, refuse)
        self.complain_of_learning(spec, refuse)
        complain_of_width(spec, refuse)

    def complain_of_learning(self, spec: Any, refuse: Refuse) -> None:
        complain_of_rate("[learning] eta", spec.learning.eta, refuse)

    def scales(self, spec: Any) -> Scales | None:
        # the largest |z_i| of converted inputs z for which |z|^2 fits in 32 bits
        most = min(float(REACH_MOST), 65535 / math.sqrt(spec.dim))
        for octave in OCTAVES:
            made = conversion(spec, 2.0**octave / spec.length_scale)
            if made.reach.max() <= most and abs(made.factor).max() <= COUNTS:
                return Scales(made, octave, spec.weight_shift - HEADROOM - math.ceil(math.log2(spec.label_max_abs)))
        return None

    def capacities(self, spec: Any) -> dict[str, int]:
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs, "FEATURES": count_of(spec)} | spec.conversion.sizes

    def parameters(self, spec: Any) -> dict[str, Any]:
        octave, count = spec.scales.octave, count_of(spec)
        frame = frame_parameters(spec, int(spec.conversion.reach.max()), 4.0**octave)
        level_shift = max(0, 29 - int(frame["rest_most"]).bit_length())
        return {
            **spec.conversion.parameters(),
            **frame,
            "weight_most": 2**spec.weight_shift,
            "level_most": frame["rest_most"] * 2**level_shift,
            "level_factor": 2**level_shift,
            "level_shift": level_shift,
            "rehearsed": spec.rehearsed(REHEARSED),
            **self.learned(spec, octave, count),
        }

    def learned(self, spec: Any, octave: int, count: int) -> dict[str, Any]:
        """Parameters of the rule."""
        learning = spec.learning
        # with a frequency of 1 / sigma, an input of sigma makes 1 / (2 pi) turns
        turn = 2.0 ** (32 - octave) / (2 * math.pi)
        places = math.ceil(math.log2(turn * FREQUENCY_REACH / FREQUENCY_MOST))
        turn *= 2.0**-places
        start = np.clip(
            np.rint(orthogonal_features(learning.seed, count, spec.dim) * turn), -FREQUENCY_MOST, FREQUENCY_MOST
        )
        eta_shift = math.floor(math.log2(count / learning.eta))
        # frequencies learn dim / outputs times as fast as weights
        part, turn_shift = learning_rate(
            min(1.0, spec.dim / spec.outputs * turn * 2.0 ** -(BEND + STEP - FINE + octave))
        )
        return {
            "start": start.astype(np.int64),
            "turn_places": places,
            "unit_least": max(BEND, STEP - eta_shift),
            "size": 256 * count,
            "square_shift": 2 * octave - 8,
            "frequency_share": spec.dim,
            "bend_most": 2**29 // spec.dim,
            "eta": round(learning.eta * 2.0 ** (24 + eta_shift)),
            "eta_shift": eta_shift,
            "turn_factor": part,
            "turn_shift": turn_shift,
        }


class Int16FilterModels(Int16SpectrumModels):
    """Sums of a few sinusoids, learned in integers by an extended Kalman filter."""

    rules: Mapping[str, str] = {"spectrum-ekf": FORM}
    programs: Mapping[LabelKind, Program] = INT16_SPECTRUM_EKF
    spec: type[Any] = Int16FilterSpec
    planned: tuple[tuple[str, str | None], ...] = (("spectrum-ekf", None),)

    def complain_of_learning(self, spec: Any, refuse: Refuse) -> None:
        learning, count = spec.learning, count_of(spec)
        if count % block_of(spec):
            refuse("[learning] block", f"is {learning.block}; it must divide {count}, the value of features")
        if (numbers := count * (spec.dim + 2)) > NUMBERS_MOST:
            refuse(
                "[learning] features",
                f"is {count}, which with {spec.dim} inputs gives {numbers:,} numbers to learn; spectrum-ekf in int16 allows at most {NUMBERS_MOST:,}",
            )
        if learning.noise != "auto" and not 1e-3 <= learning.noise <= 1e3:
            refuse("[learning] noise", f"is {learning.noise:g}; it must be from 1e-3 to 1e3")

    def capacities(self, spec: Any) -> dict[str, int]:
        width = block_of(spec) * (spec.dim + 2)
        sizes = {"GROUP_SIZE": width, "GROUPS": count_of(spec) // block_of(spec), "PACKED": width * (width + 1) // 2}
        return super().capacities(spec) | sizes

    def learned(self, spec: Any, octave: int, count: int) -> dict[str, Any]:
        learning, auto = spec.learning, spec.learning.noise == "auto"
        fine = math.floor(30 - math.log2(TUNED_REACH * 2.0 ** (32 - octave) / (2 * math.pi)))
        turn = 2.0 ** (32 + fine - octave) / (2 * math.pi)
        places = math.floor(math.log2(turn / spec.outputs)) - 15
        prior = np.tile([1.0, 1.0] + [FREQUENCY_VARIANCE] * spec.dim, block_of(spec)) * 2**KNOWN
        forgets = round(math.log2(spec.outputs / (1 - learning.forgetting)))
        return {
            "first": np.rint(first_features("spectrum-ekf", learning.seed, count, spec.dim) * turn).astype(np.int64),
            "fine": fine,
            "tuned_most": 2**30 - 1,
            "octave": octave,
            "group": block_of(spec),
            "prior": np.rint(prior).astype(np.int64),
            "forgets": forgets,
            "refines": False,
            "shrinks": min(31, forgets + round(math.log2(SLOWER))),
            "estimates": auto,
            "noise": round((GUESSES["noise_first"] if auto else learning.noise) * 2**NOISE),
            "noise_least": round(GUESSES["noise_low"] * 2**NOISE),
            "noise_most": round(GUESSES["noise_high"] * 2**NOISE),
            "share": 65536 // spec.outputs if spec.outputs > 1 else 65535,
            "turned": min(65535, round(turn / spec.outputs * 2.0**-places)),
            "turned_places": places + 16,
            "unit_least": BEND,
        }


INT16_SPECTRUM_MODELS = Int16SpectrumModels()
INT16_FILTER_MODELS = Int16FilterModels()
