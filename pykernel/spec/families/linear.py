"""Specs of linear models: their rules, checks of the keys, and the parameters of the `@kernel` functions."""

from __future__ import annotations

import functools
import math
import random
import statistics
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from pykernel.algorithms.linear import LINEAR, FeatureKind, Gain
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings, stages
from pykernel.spec.base import Spec
from pykernel.spec.family import Family, Models, Refuse
from pykernel.spec.sections import (
    SQUARED,
    TRIED_ETA,
    TRIED_FEATURES,
    TRIED_FORGETTING,
    KernelSection,
    Learning,
    Of,
    Rate,
    StandardisedInput,
)

RULES = {
    "nlms": (Gain.NLMS, FeatureKind.INPUTS),
    "rls": (Gain.RLS, FeatureKind.INPUTS),
    "quadratic-rls": (Gain.RLS, FeatureKind.PRODUCTS),
    "rff-rls": (Gain.RLS, FeatureKind.FOURIER),
}
FORMS = {
    FeatureKind.INPUTS: "linear",
    FeatureKind.PRODUCTS: "quadratic",
    FeatureKind.FOURIER: "random-feature",
}
RECURSIVE = tuple(rule for rule, (gain, _) in RULES.items() if gain is Gain.RLS)
RANDOM = tuple(rule for rule, (_, kind) in RULES.items() if kind is FeatureKind.FOURIER)

WINDUP = 64.0
"""P is the inverse correlation matrix of the features.  Forgetting pauses while the trace of P is above this multiple
of its initial value.  In directions that no input excites, a sample's gain is only P's rounding error.  With a limit of
1,024, weights drifted while inputs were constant (benchmarks/host/long.py, constant)."""


SPECTRA = ("gaussian", "laplacian", "matern12", "matern32", "matern52")
"""Kernels with random features: k(a, b) is the mean of cos(w'(a - b)) over a known distribution of w."""
DEGREES = {"matern12": 1, "matern32": 3, "matern52": 5}
"""Degrees of freedom, 2 nu, of the Student t distribution from which the frequencies of a Matern kernel are drawn."""
DEFAULT_FEATURES = 64
REHEARSED = 96
"""Number of samples in the self-test: enough for the longest warmup of a standardiser, and for learning after the warmup."""
GRAIN = 2.0**-16
"""Frequencies are rounded to multiples of this number, so that they are the same on machines whose math functions differ in the
last digits."""


class LinearLearning(Learning):
    """How a sample changes the model."""

    eta: Annotated[float, Of("nlms"), Rate(), TRIED_ETA] = Field(
        0.5,
        gt=0,
        lt=2,
        description="learning rate: the fraction of a sample's error that its update corrects. int16: at most 1",
    )
    forgetting: Annotated[float, Of(*RECURSIVE), TRIED_FORGETTING] = Field(
        1.0,
        gt=0.5,
        le=1,
        description="forgetting factor: about the last 1 / (1 - forgetting) samples count (with 0.99, the last 100)",
    )
    prior_variance: Annotated[float, Of(*RECURSIVE), SQUARED] = Field(
        100.0, gt=0, description="variance of the weights before the first sample; its inverse is the ridge penalty"
    )
    features: Annotated[int | None, Of(*RANDOM), TRIED_FEATURES] = Field(
        None, ge=1, le=4096, description="number of random Fourier features, 2 or more; 64 if not given"
    )
    seed: Annotated[int, Of(*RANDOM)] = Field(0, ge=0, le=2**31 - 1, description="seed of the random features")


class LinearSpec(Spec):
    input: StandardisedInput
    label: stages.StagedLabel = stages.StagedLabel()
    interval: stages.IntervalSection | None = None
    kernel: Annotated[KernelSection | None, Of(*RANDOM)] = None
    learning: LinearLearning = LinearLearning()

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        return super().derived | {"learning": {"features": random_count(self)}}


def random_count(spec: LinearSpec) -> int:
    """The number of random features."""
    return spec.learning.features or DEFAULT_FEATURES


@functools.lru_cache(maxsize=8)
def random_features(seed: int, count: int, dim: int, function: str = "gaussian") -> tuple[np.ndarray, np.ndarray]:
    """Two read-only arrays: frequencies w of a kernel of width 1, (count, dim), and phases, uniform over [0, 1), (count,).

    k(a, b) is the mean of cos(w'(a - b)), over w with these distributions (A. Rahimi, B. Recht 2007, figure 1; C. E.
    Rasmussen, C. K. I. Williams, Gaussian Processes for Machine Learning, 2006, section 4.2.1):

        gaussian, exp(-r^2 / 2): standard normal;
        laplacian, exp(-|a - b|_1): each element standard Cauchy;
        matern12 e^-r, matern32 (1 + r) e^-r, matern52 (1 + r + r^2 / 3) e^-r: a standard normal vector divided by the root
        of the sum of 1, 3 or 5 squared standard normal numbers.  This is a Student t vector with 1, 3 or 5 degrees of freedom
        and a scale of 1, 1 / sqrt(3) or 1 / sqrt(5).

    A seed always gives the same features.  With a larger count, the first features stay the same.  The random numbers come from
    Python's ``Random(seed).random()``, whose sequence Python promises not to change.  For each feature, the inverse of the
    distribution function converts ``dim`` random numbers to normal (or Cauchy) numbers.  Matern kernels use 1, 3 or 5 more
    random numbers.  The next random number is the phase.  Frequencies are rounded to multiples of 2^-16.
    """
    draw, normal = random.Random(seed).random, statistics.NormalDist()
    frequencies, phases = np.zeros((count, dim)), np.zeros(count)

    def part() -> float:
        # the middle of one of 2^32 intervals of [0, 1], so that the number is never 0 or 1
        return (math.floor(draw() * 2.0**32) + 0.5) * 2.0**-32

    for row in range(count):
        if function == "laplacian":
            values = [math.tan(math.pi * (part() - 0.5)) for _ in range(dim)]
        else:
            values = [normal.inv_cdf(part()) for _ in range(dim)]
        if function in DEGREES:
            length = math.sqrt(math.fsum(normal.inv_cdf(part()) ** 2 for _ in range(DEGREES[function])))
            values = [value / length for value in values]
        frequencies[row] = [round(value / GRAIN) * GRAIN for value in values]
        phases[row] = draw()
    frequencies.setflags(write=False)
    phases.setflags(write=False)
    return frequencies, phases


class LinearModels(Models):
    """Weighted sums of features."""

    rules: Mapping[str, str] = {rule: FORMS[kind] for rule, (_, kind) in RULES.items()}
    programs: Mapping[LabelKind, Program] = LINEAR
    online = True
    spec = LinearSpec

    def validate(self, spec: LinearSpec, refuse: Refuse) -> None:
        rule, learning, narrow = spec.learning.rule, spec.learning, spec.precision == "float32"
        gain, kind = RULES[rule]
        stages.validate(spec, refuse)
        spec.check_size(refuse)
        if kind is FeatureKind.FOURIER:
            self._complain_of_kernel(spec, refuse)
            return
        # log10 of the largest sum of squares (NLMS) or phi'P phi (RLS), whose inverse must not be subnormal
        largest = 2 * (
            math.log10(self._features(spec)) + math.log10(_reach(spec)) * (2 if kind is FeatureKind.PRODUCTS else 1)
        )
        other = ""
        if gain is Gain.RLS:
            largest += math.log10(WINDUP * learning.prior_variance / learning.forgetting)
            other = f" with prior_variance {learning.prior_variance:g}"
        # centring makes features up to 4 times as large, and sums of their squares up to 16 times; with the higher
        # limit, the inverse is still not subnormal
        if largest > (36 if narrow else 300) + (1.3 if _centres(spec) else 0):
            key, most = ("clip", spec.input.clip) if spec.input.standardise else ("max_abs", spec.input_max_abs)
            refuse(
                f"[input] {key}",
                f"is {most:g}, for which {rule}{other} overflows {spec.precision}; choose a lower limit",
            )

    def _complain_of_kernel(self, spec: LinearSpec, refuse: Refuse) -> None:
        """Refuse kernels that have no random features, or inputs that are too large for the kernel's width."""
        rule, kernel = spec.learning.rule, spec.kernel
        if random_count(spec) < 2:
            refuse("[learning] features", f"is {random_count(spec)}; it must be 2 or more for {rule}")
        if kernel is None:
            refuse("[kernel]", f"is missing; {rule} needs sigma, the width of the kernel that it approximates")
        if kernel.function not in SPECTRA:
            refuse(
                "[kernel] function",
                f"is {kernel.function}, for which {rule} has no random Fourier features; choose "
                f"{', '.join(SPECTRA[:-1])} or {SPECTRA[-1]}",
            )
        if kernel.function == "gaussian" and kernel.sigma is None and kernel.gamma is None:
            refuse("[kernel] sigma", f"is missing; {rule} needs sigma, the width of the kernel that it approximates")
        kernel_settings.validate(spec, refuse)
        # with 2^32 intervals, a Cauchy number is at most 2^33 / pi, about 2^31.3, and a quotient of two normal numbers
        # is at most 2^36
        tail = {"laplacian": 2.0**32, "matern12": 2.0**36}.get(kernel.function, 1.0)
        if _reach(spec) / spec.length_scale * spec.dim * tail > (1e36 if spec.precision == "float32" else 1e300):
            width = "sigma" if kernel.function == "gaussian" else "1 / gamma"
            refuse(
                "[input] max_abs",
                f"is {spec.input_max_abs:g}, too large for {width} = {spec.length_scale:g}; lower max_abs, or standardise the inputs",
            )

    def _features(self, spec: LinearSpec) -> int:
        """The number of features, including the constant."""
        kind, dim = RULES[spec.learning.rule][1], spec.dim
        if kind is FeatureKind.FOURIER:
            return random_count(spec) + 1
        return dim + 1 + (dim * (dim + 1) // 2 if kind is FeatureKind.PRODUCTS else 0)

    def _largest(self, spec: LinearSpec) -> float:
        """An upper bound on the magnitudes of all features."""
        reach = _reach(spec)
        return {FeatureKind.INPUTS: reach, FeatureKind.PRODUCTS: max(reach, reach * reach), FeatureKind.FOURIER: 1.0}[
            RULES[spec.learning.rule][1]
        ]

    def _weight_limit(self, spec: LinearSpec) -> float:
        """Limit of the weights' magnitudes, within which no prediction overflows."""
        most = (1e37 if spec.precision == "float32" else 1e300) / self._features(spec) / self._largest(spec)
        return min(2.0**20 * stages.label_unit(spec), 2.0**100, most)

    def capacities(self, spec: LinearSpec) -> dict[str, int]:
        return {"DIM": spec.dim, "FEATURES": self._features(spec), "OUTPUTS": spec.outputs}

    def parameters(self, spec: LinearSpec) -> dict[str, Any]:
        gain, kind = RULES[spec.learning.rule]
        learning, features = spec.learning, self._features(spec)
        frequencies, phases = np.zeros((features - 1, spec.dim)), np.zeros(features - 1)
        if kind is FeatureKind.FOURIER:
            assert spec.kernel is not None
            frequencies, phases = random_features(learning.seed, features - 1, spec.dim, spec.kernel.function)
            frequencies = frequencies / (2 * math.pi * spec.length_scale)
        weight_limit, start = self._weight_limit(spec), math.sqrt(learning.prior_variance)
        trace_limit = WINDUP * features * learning.prior_variance
        most = min(weight_limit * features * self._largest(spec), 1e37 if spec.precision == "float32" else 1e300)
        return stages.parameters(spec, most) | {
            "gain": gain,
            "feature_kind": kind,
            "forgets": learning.forgetting < 1,
            "centres": _centres(spec),
            "origin_limit": spec.input.clip if spec.input.standardise else spec.input_max_abs,
            "eta": learning.eta,
            "forgetting": learning.forgetting,
            "start": start,
            "trace_limit": trace_limit,
            # forgetting at most doubles the trace, and thus multiplies a root by sqrt(2); the rest of the factor 2 allows for rounding
            "root_limit": 2 * math.sqrt(trace_limit),
            "amplitude": math.sqrt(2 / (features - 1)),
            "frequencies": frequencies,
            "phases": phases,
            "weight_limit": weight_limit,
            "rehearsed": spec.rehearsed(REHEARSED),
        }


def _centres(spec: LinearSpec) -> bool:
    """Whether features are computed from the inputs minus the first sample's inputs."""
    gain, kind = RULES[spec.learning.rule]
    return gain is Gain.RLS and kind is not FeatureKind.FOURIER


def _reach(spec: LinearSpec) -> float:
    """The largest |x| from which features are computed; at least 1."""
    return max(spec.input.clip if spec.input.standardise else spec.input_max_abs, 1.0) * (2 if _centres(spec) else 1)


LINEAR_MODELS: Family = LinearModels()
