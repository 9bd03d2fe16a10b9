"""Specs of sparse spectra with learned frequencies: their rules, checks of the keys, and the parameters of the `@kernel` functions."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from pykernel.algorithms.spectrum import SPECTRUM, UNIT_MOST, WEIGHT_MOST, Update
from pykernel.algorithms.spectrum_softmax import SPECTRUM_SOFTMAX
from pykernel.algorithms.stages import PARTS
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings, stages
from pykernel.spec.defaults import BLOCK, FEATURES
from pykernel.spec.families.linear import GRAIN, random_features
from pykernel.spec.family import Family, Refuse
from pykernel.spec.sections import TRIED_ETA, Learning, Of, Rate, StandardisedInput, Tried

SOFTMAX = "spectrum-softmax"
RULES = {"spectrum-ekf": Update.EKF, "spectrum-nlms": Update.NLMS, SOFTMAX: Update.NLMS}
FORM = "sparse-spectrum"
FREQUENCY_VARIANCE = 0.8
"""Prior variance of an angular frequency, in units of 1 / sigma^2.  The prior variance of a weight is 1.  docs/records.md (record
"spectrum-front") describes how this constant and the constants below were tuned."""
EVEN_LENGTH, EVEN_LENGTHS = 0.7, (0.3, 1.2)
"""Magnitudes of the elements of frequencies that are not random.  All elements of a frequency have the same magnitude.
This magnitude is EVEN_LENGTH if one element has a flipped sign.  The magnitudes for all other frequencies are evenly
spaced from the first to the second number of EVEN_LENGTHS; if there is only one such frequency, the magnitude is
EVEN_LENGTH."""
SLOWER = 30.0
"""Weights return to zero this many times more slowly than their variances return to the prior.  Without this decay, weights that
samples rarely determine would drift further and further."""
HORIZON = 2000
"""The unit of an output is estimated from about this many of the latest labels."""
REACH_MOST = 1e9
"""Largest magnitude of a scaled input, in units of sigma, so that nothing overflows."""
REHEARSED = 96
NoiseKey = float | Literal["auto"]


class WavesLearning(Learning):
    """How many waves there are, and where their frequencies start."""

    features: Annotated[int | None, Tried(1.5, 1, 64, "whole")] = Field(
        None,
        ge=1,
        le=256,
        description="number of frequencies, each with a cosine and a sine. If not given, 4 for spectrum-ekf, 8 for spectrum-nlms and 16 for spectrum-softmax",
    )
    seed: int = Field(
        0,
        ge=0,
        le=2**31 - 1,
        description="seed of the random initial frequencies. With `spectrum-ekf`, 0 gives fixed frequencies that treat all inputs alike, so that the order of the columns hardly matters",
    )


class SpectrumLearning(WavesLearning):
    """How a sample changes the model."""

    block: Annotated[int | None, Of("spectrum-ekf")] = Field(
        None,
        ge=1,
        le=64,
        description="number of frequencies that share a covariance matrix; it must divide `features`. Larger blocks learn better, but the matrix of each block takes (block (dim + 2))^2 / 2 numbers. If not given, the largest divisor of `features` that is at most 4",
    )
    noise: Annotated[NoiseKey, Of("spectrum-ekf", "spectrum-nlms"), Tried(10, 1e-3, 30)] = Field(
        "auto",
        description="variance of the labels' noise, relative to the function's variance; from 1e-3 to 1e3. `\"auto\"`: estimated from the latest residuals",
    )
    forgetting: Annotated[float, Of("spectrum-ekf"), Tried(3, 0.98, 0.9998, "memory")] = Field(
        0.998,
        ge=0.5,
        le=0.9999,
        description="forgetting factor of weights and frequencies: about the last 1 / (1 - forgetting) samples count",
    )
    eta: Annotated[float, Of("spectrum-nlms", SOFTMAX), Rate(), TRIED_ETA] = Field(
        0.6,
        gt=0,
        lt=2,
        description="learning rate: the part of an error that one sample corrects. With spectrum-softmax, a sample adds `eta` (t − p) to the function of each class; p is the predicted probability of the class, and t is 1 for the label's class and 0 for the others",
    )
    frequency_eta: Annotated[float, Of(SOFTMAX), Tried(3, 0.01, 1.9)] = Field(
        0.5, gt=0, lt=2, description="learning rate of the frequencies; `eta` is the learning rate of the weights"
    )


class SpectrumSpec(stages.StagedSpec):
    input: StandardisedInput
    learning: SpectrumLearning = SpectrumLearning()

    @property
    def family(self) -> Family:
        return next(family for family in SPECTRUM_MODELS if self.learning.rule in family.rules)

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        found: dict[str, Any] = {"features": count_of(self)}
        if self.learning.rule == "spectrum-ekf":
            found["block"] = block_of(self)
        return super().derived | {"learning": found}


def complain_of_spectrum(spec: Any, refuse: Refuse) -> None:
    """Refuse a spec unless it has a kernel whose spectrum can initialise the waves."""
    rule, kernel = spec.learning.rule, spec.kernel
    if kernel is None:
        refuse("[kernel]", f"is missing; {rule} needs sigma, the width of the kernel, to scale the frequencies")
    if kernel.function != "gaussian":
        refuse(
            "[kernel] function",
            f"is {kernel.function}; it must be gaussian, the only kernel for which {rule} has initial frequencies",
        )


def count_of(spec: Any) -> int:
    """Return the number of frequencies."""
    return spec.learning.features or FEATURES[spec.learning.rule]


def block_of(spec: Any) -> int:
    """Return the number of frequencies that share a covariance matrix; 1 if the rule has no matrix."""
    count = count_of(spec)
    if RULES[spec.learning.rule] is not Update.EKF:
        return 1
    return spec.learning.block or next(b for b in range(min(BLOCK, count), 0, -1) if count % b == 0)


@functools.lru_cache(maxsize=8)
def orthogonal_features(seed: int, count: int, dim: int) -> np.ndarray:
    """Return random angular frequencies for a Gaussian kernel of width 1, as a read-only array of shape (count, dim).

    Each group of ``dim`` frequencies has orthogonal directions, so that few frequencies cover all directions.  The lengths of
    the frequencies are distributed like those of standard normal vectors (F. X. Yu et al., Orthogonal Random Features, 2016).
    A seed always gives the same frequencies, rounded to multiples of 2^-16.  With a larger count, the first frequencies stay the same.
    """
    drawn = random_features(seed, 2 * count, dim)[0]
    made, directions = np.zeros((count, dim)), list[list[float]]()
    for i in range(count):
        v = [float(value) for value in drawn[2 * i]]
        for other in directions[i - i % dim : i]:
            part = math.fsum(a * b for a, b in zip(v, other, strict=True))
            v = [a - part * b for a, b in zip(v, other, strict=True)]
        length = math.sqrt(math.fsum(a * a for a in v)) or 1.0
        directions.append([a / length for a in v])
        wanted = math.sqrt(math.fsum(float(a) ** 2 for a in drawn[2 * i + 1]))
        made[i] = [round(a * wanted / GRAIN) * GRAIN for a in directions[i]]
        if not made[i].any():
            made[i, i % dim] = GRAIN
    made.setflags(write=False)
    return made


def even_features(count: int, dim: int) -> np.ndarray:
    """Return angular frequencies that treat all inputs alike, for a kernel of width 1, as an array of shape (count, dim).

    If the initial frequencies are random, results depend on the order of the columns.  With the frequencies of this function, the
    order changes only rounding errors.  If there are three to ``count`` inputs, one frequency for each input has the sign of that
    input's element flipped; all these frequencies have the same length.  All other frequencies are parallel to (1, ..., 1) and
    differ in length.
    These frequencies are only for Kalman filters, which soon give them different directions; gradient steps would take too long.
    """
    turned = dim if 3 <= dim <= count else 0
    lengths = np.linspace(*EVEN_LENGTHS, count - turned) if count - turned > 1 else np.full(count - turned, EVEN_LENGTH)
    made = np.concatenate([np.full(turned, EVEN_LENGTH), lengths])[:, None] * np.ones(dim)
    made[range(turned), range(turned)] *= -1
    return np.round(made / GRAIN) * GRAIN


def first_features(rule: str, seed: int, count: int, dim: int) -> np.ndarray:
    """Return the initial angular frequencies for a kernel of width 1, as an array of shape (count, dim)."""
    if RULES[rule] is Update.EKF and seed == 0:
        return even_features(count, dim)
    return orthogonal_features(seed, count, dim)


class SpectrumModels:
    """Sums of a few sinusoids with learned frequencies."""

    online = True
    spec = SpectrumSpec

    def __init__(self, programs: Mapping[LabelKind, Program], *rules: str) -> None:
        self.programs = programs
        self.rules: Mapping[str, str] = dict.fromkeys(rules, FORM)

    def validate(self, spec: SpectrumSpec, refuse: Refuse) -> None:
        rule, learning = spec.learning.rule, spec.learning
        stages.validate(spec, refuse)
        complain_of_spectrum(spec, refuse)
        kernel_settings.validate(spec, refuse)
        count = count_of(spec)
        if count % block_of(spec):
            refuse("[learning] block", f"is {learning.block}; it must divide {count}, the value of features")
        if learning.noise != "auto" and not 1e-3 <= learning.noise <= 1e3:
            refuse("[learning] noise", f"is {learning.noise:g}; it must be from 1e-3 to 1e3")
        if (most := self._answer_limit(spec)) > kernel_settings.largest(spec.precision):
            refuse(
                "[label] max_abs",
                f"is {spec.label_max_abs:g}, for which {rule} overflows {spec.precision}; it must be at most "
                f"{spec.label_max_abs / most * kernel_settings.largest(spec.precision):.3g}",
            )
        if (reach := float(kernel_settings.reach(spec).max())) > REACH_MOST * spec.length_scale:
            refuse(
                "[input] max_abs",
                f"is {spec.input_max_abs:g}, so that scaled inputs can reach {reach:g}; they must be at most {REACH_MOST:g} times sigma "
                f"({spec.length_scale:g}): lower max_abs, or standardise the inputs",
            )
        spec.check_size(refuse)

    def _answer_limit(self, spec: SpectrumSpec) -> float:
        """An upper bound on |f(x)|."""
        if spec.learning.rule == SOFTMAX:
            # |f| is at most the largest weight times the sum of the features' magnitudes.  The features are the
            # constant 1, a cosine and a sine for each frequency, and the inputs of the linear part
            parts = 1 + 2 * count_of(spec) + _linear_share(spec) * float(kernel_settings.reach(spec).sum())
            return float(WEIGHT_MOST.value(spec.real)) * parts
        unit, weight = (float(most.value(spec.real)) for most in (UNIT_MOST, WEIGHT_MOST))
        return spec.label_max_abs * unit / PARTS * 2 * weight * count_of(spec)

    def _block(self, spec: SpectrumSpec) -> int:
        """The number of elements in a block.  If the rule has no matrix, a block is a cosine and a sine."""
        return block_of(spec) * (spec.dim + 2) if RULES[spec.learning.rule] is Update.EKF else 2

    def capacities(self, spec: SpectrumSpec) -> dict[str, int]:
        width = self._block(spec)
        sizes = {
            "DIM": spec.dim,
            "FEATURES": count_of(spec),
            "GROUP_SIZE": width,
            "GROUPS": count_of(spec) // block_of(spec),
            "PACKED": width * (width + 1) // 2,
            "OUTPUTS": spec.outputs,
        }
        return sizes | stages.probabilities(spec, calibrated=spec.learning.rule == SOFTMAX)

    def parameters(self, spec: SpectrumSpec) -> dict[str, Any]:
        learning, count, outputs, width = spec.learning, count_of(spec), spec.outputs, spec.length_scale
        prior = np.tile([1.0, 1.0] + [FREQUENCY_VARIANCE] * spec.dim, block_of(spec))[: self._block(spec)]
        # each output has its own update, which forgets; all updates for one sample together forget by learning.forgetting
        forgetting = learning.forgetting ** (1 / outputs)
        auto = learning.noise == "auto"
        return stages.parameters(spec, self._answer_limit(spec)) | {
            "update": RULES[learning.rule],
            "start": first_features(learning.rule, learning.seed, count, spec.dim),
            "group": block_of(spec),
            "prior": prior,
            "forgetting": forgetting,
            "renewal": 1 - forgetting,
            "shrink": 1 - (1 - forgetting) / SLOWER if RULES[learning.rule] is Update.EKF else 1.0,
            "noise": 0.0 if auto else learning.noise,
            # each update multiplies an element of the covariance by forgetting, and adds at most 2.5 times the largest
            # prior variance; the limit is doubled for rounding errors
            "covariance_limit": 5 * float(prior.max()) / (1 - forgetting),
            "eta": learning.eta,
            # frequencies learn dim times as fast as weights
            "frequency_share": spec.dim,
            "turns": 1 / (2 * math.pi * width),
            "inverse_width": 1 / width,
            "sharpens": stages.votes(spec) and learning.rule != SOFTMAX,
            "frequency_eta": learning.frequency_eta,
            "linear_share": _linear_share(spec),
            "share": 1 / outputs,
            "power_horizon": HORIZON,
            "rehearsed": spec.rehearsed(REHEARSED),
        }


def _linear_share(spec: SpectrumSpec) -> float:
    """The factor by which the inputs of the linear part are multiplied.

    If the typical length of a sample is sigma, the typical magnitude of a multiplied input is 1.
    """
    return math.sqrt(spec.dim) / spec.length_scale


SPECTRUM_MODELS: tuple[Family, ...] = (
    SpectrumModels(SPECTRUM, "spectrum-ekf", "spectrum-nlms"),
    SpectrumModels(SPECTRUM_SOFTMAX, SOFTMAX),
)
"""One family for each program."""
