"""Sparse spectra with learned frequencies in whole numbers: how angles, weights and steps are scaled, so that nothing overflows."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from pydantic import Field

from pykernel.algorithms.int16.frame import VALUE_MOST
from pykernel.algorithms.int16.spectrum import BEND, FINE, FREQUENCY_MOST, INT16_SPECTRUM, STEP
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings
from pykernel.spec.families.int16 import Int16Family, Int16Spec, complain_of_inputs, complain_of_rate
from pykernel.spec.families.int16_online import (
    HEADROOM,
    Int16Label,
    complain_of_label_range,
    complain_of_stages,
    complain_of_width,
    frame_parameters,
)
from pykernel.spec.families.int16_scales import COUNTS, Scales, conversion, learning_rate
from pykernel.spec.families.spectrum import FORM, WavesLearning, complain_of_spectrum, count_of, orthogonal_features
from pykernel.spec.family import Models, Refuse
from pykernel.spec.sections import KernelSection
from pykernel.spec.stages import LinearPart

FEATURES_MOST = 64
FREQUENCY_REACH = 8.0
"""Largest angular frequency that always fits, in parts of 1 / sigma: 16 bits have 2,048 to 4,095 steps for 1."""
OCTAVES = range(18, 4, -1)
"""log2 of what sigma may be in the converted inputs, the finest first: beyond, frequencies of 16 bits are too coarse, or inputs."""
REACH_MOST = 16383
REHEARSED = 96


class Int16SpectrumLearning(WavesLearning):
    """How a sample changes the model."""

    eta: float = Field(
        0.4, gt=0, le=1, description="learning rate: the part of an error that one sample corrects; at least 1 / 65,536"
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
        """log2 of the largest weight: no sum of the waves is beyond VALUE_MOST."""
        return math.floor(math.log2(VALUE_MOST / (2 * count_of(self))))


class Int16SpectrumModels(Models, Int16Family):
    """Sums of few sinusoids whose frequencies learn, in whole numbers."""

    rules: Mapping[str, str] = {"spectrum-nlms": FORM}
    programs: Mapping[LabelKind, Program] = INT16_SPECTRUM
    online = True
    spec = Int16SpectrumSpec
    planned: tuple[tuple[str, str | None], ...] = (("spectrum-nlms", None),)

    def validate(self, spec: Any, refuse: Refuse) -> None:
        complain_of_spectrum(spec, refuse)
        kernel_settings.validate_function(spec, refuse)
        if count_of(spec) > FEATURES_MOST:
            refuse("[learning] features", f"is {count_of(spec)}; int16 has at most {FEATURES_MOST}")
        complain_of_inputs(spec, refuse)
        complain_of_label_range(spec, refuse)
        complain_of_stages(spec, refuse)
        complain_of_rate("[learning] eta", spec.learning.eta, refuse)
        complain_of_width(spec, refuse)

    def scales(self, spec: Any) -> Scales | None:
        # |z|^2 fits in 32 bits
        most = min(float(REACH_MOST), 65535 / math.sqrt(spec.dim))
        for octave in OCTAVES:
            made = conversion(spec, 2.0**octave / spec.length_scale)
            if made.reach.max() <= most and abs(made.factor).max() <= COUNTS:
                return Scales(made, octave, spec.weight_shift - HEADROOM - math.ceil(math.log2(spec.label_max_abs)))
        return None

    def capacities(self, spec: Any) -> dict[str, int]:
        return {"DIM": spec.dim, "OUTPUTS": spec.outputs, "FEATURES": count_of(spec)} | spec.conversion.sizes

    def parameters(self, spec: Any) -> dict[str, Any]:
        learning, octave, count = spec.learning, spec.scales.octave, count_of(spec)
        # a frequency of 1 / sigma turns by 1 / (2 pi) where an input is sigma
        turn = 2.0 ** (32 - octave) / (2 * math.pi)
        places = math.ceil(math.log2(turn * FREQUENCY_REACH / FREQUENCY_MOST))
        turn *= 2.0**-places
        start = np.clip(
            np.rint(orthogonal_features(learning.seed, count, spec.dim) * turn), -FREQUENCY_MOST, FREQUENCY_MOST
        )
        eta_shift = math.floor(math.log2(count / learning.eta))
        frame = frame_parameters(spec, int(spec.conversion.reach.max()), 4.0**octave)
        level_shift = max(0, 29 - int(frame["rest_most"]).bit_length())
        # frequencies learn dim times as fast as weights, each output's share of it
        part, turn_shift = learning_rate(
            min(1.0, spec.dim / spec.outputs * turn * 2.0 ** -(BEND + STEP - FINE + octave))
        )
        return {
            **spec.conversion.parameters(),
            **frame,
            "start": start.astype(np.int64),
            "turn_places": places,
            "weight_most": 2**spec.weight_shift,
            "level_most": frame["rest_most"] * 2**level_shift,
            "level_factor": 2**level_shift,
            "level_shift": level_shift,
            "unit_least": max(BEND, STEP - eta_shift),
            "size": 256 * count,
            "square_shift": 2 * octave - 8,
            "frequency_share": spec.dim,
            "bend_most": 2**29 // spec.dim,
            "eta": round(learning.eta * 2.0 ** (24 + eta_shift)),
            "eta_shift": eta_shift,
            "turn_factor": part,
            "turn_shift": turn_shift,
            "rehearsed": spec.rehearsed(REHEARSED),
        }


INT16_SPECTRUM_MODELS = Int16SpectrumModels()
