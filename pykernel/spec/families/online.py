"""Specs of kernel models: their rules and techniques, checks of the keys, and the parameters of the `@kernel` functions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from pykernel.algorithms.online.projections import PROJECTIONS, ProjectionRule
from pykernel.algorithms.online.techniques import AT, NT, TECHNIQUES, Technique
from pykernel.dialect.program import LabelKind, Program
from pykernel.spec import kernel_settings, stages
from pykernel.spec.families.online_keys import RULES, TIES, KernelLearning, OnlineRule, Reduction
from pykernel.spec.family import Family, Refuse
from pykernel.spec.sections import (
    AnyInput,
)

NOISE_LEAST = {"float32": 1e-4, "float64": 1e-10}
"""Smallest allowed ratio of noise variance to the function's variance.  Smaller ratios would be lost in rounding errors."""

LEAST_RELABELLED = 1e-3
"""Smallest ridge with `relabel`, which changes the stored labels.

The mean squared error on a sinc function was 2e-5 with this ridge, and 1e5 with a ridge of 1e-7.
"""

FAILS = {
    ("nt", "fklms"): 9.72e-01,
    ("nt", "ls"): 1.66e0,
    ("at", "fklms"): 1.18e17,
    ("at", "ls"): 3.38e12,
    ("lsreg", "fklms"): 1.95e12,
    ("lsridge", "fklms"): 6.23e6,
    ("fklms", "fklms"): 1.02e3,
    ("fmklms", "fklms"): 5.38e-01,
    ("afmklms", "none"): 4.22e-01,
    ("afmklms", "fklms"): 4.38e17,
    ("afmklms", "bounded"): 1.59e-01,
}
"""A pair (technique, projection) that fails -> its largest mean squared error in docs/data/pairs.csv, which benchmarks/host/pairs.py
measured."""


def failure(pair: tuple[str, str]) -> str:
    """Say that a pair of ``FAILS`` fails."""
    return (
        f"{pair[0]} with projection {pair[1]} diverges or learns little: its largest mean squared error in two tests was {FAILS[pair]:g} "
        "(docs/data/pairs.csv), and always predicting 0 has errors of 0.13 and 0.81 in these tests; force = true allows it"
    )


class KernelSpec(stages.StagedSpec):
    input: AnyInput
    learning: KernelLearning = KernelLearning()
    reduction: Reduction = Reduction()

    @property
    def family(self) -> Family:
        return next(family for family in KERNEL_MODELS if self.learning.rule in family.rules)

    @property
    def derived(self) -> dict[str, dict[str, Any]]:
        keys = {"projection": projection_of(self), "ridge": ridge_of(self), "ald_threshold": _ald_threshold(self)}
        return super().derived | {"reduction": keys}

    @property
    def _unread(self) -> tuple[str, ...]:
        matrices = {"factor": ("t",), "inverse": ("inverse",), "squared": ("squared",), "complex": ("z_re", "z_im")}
        return tuple(field for name in matrices.keys() - Choices.of(self).keeps for field in matrices[name])


KEPT = ("factor", "inverse", "squared", "complex", "neighbours", "overlap", "ages")
"""Names of the data that may be stored in addition to the vectors."""


@dataclass(frozen=True)
class Choices:
    """The choices in a spec that decide which branches of the `@kernel` functions are compiled.

    keeps: the members of ``KEPT`` that are stored.
    """

    rule: OnlineRule
    technique: Technique
    projection: ProjectionRule
    keeps: frozenset[str]
    thresholds: bool
    newest_only: bool
    before: bool

    @classmethod
    def of(cls, spec: KernelSpec) -> Choices:
        reduction, rule = spec.reduction, RULES[spec.learning.rule]
        technique, named = TECHNIQUES[reduction.technique], reduction.projection
        if rule.grows:
            technique, named = NT, "none"
        if rule.slides:
            technique, named = AT, "klms"
        projection = PROJECTIONS[technique.projection if named is None else named]
        keeps = {*technique.keeps, *projection.keeps, *(["factor"] if rule.recursive else [])}
        if reduction.tie != "smaller" or reduction.truncate_age is not None:
            keeps.add("ages")
        if reduction.candidates == "newest" and reduction.lambda_max is None:
            # no stored vector is ever removed, so the overlaps of stored vectors are not needed
            keeps.discard("overlap")
        return cls(
            rule=rule,
            technique=technique,
            projection=projection,
            keeps=frozenset(keeps),
            thresholds=reduction.lambda_max is not None,
            newest_only=reduction.candidates == "newest",
            before=reduction.when == "before",
        )

    @property
    def rounds(self) -> bool:
        return self.before or (self.thresholds and not self.newest_only)

    @property
    def drafts(self) -> bool:
        plain = self.projection.name == "none" and self.rule.gradient
        return not plain or not self.keeps.isdisjoint({"factor", "complex"}) or self.rounds


def projection_of(spec: KernelSpec) -> str:
    """Return the name of the projection that a spec uses."""
    return Choices.of(spec).projection.name


class KernelModels:
    """Expansions f(x) = sum_i alpha_i k(v_i, x) under a budget."""

    online = True
    spec = KernelSpec

    def __init__(self, programs: Mapping[LabelKind, Program]) -> None:
        self.rules: Mapping[str, str] = {name: "kernel" for name, rule in RULES.items() if rule.programs is programs}
        self.programs = programs

    def validate(self, spec: KernelSpec, refuse: Refuse) -> None:
        self._complain_of_kernel(spec, refuse)
        self._complain_of_learning(spec, refuse)
        self._complain_of_ridge(spec, refuse)
        if not RULES[spec.learning.rule].slides:
            self._complain_of_matrices(spec, refuse)
            self._complain_of_reduction(spec, refuse)
        self._complain_of_pairs(spec, refuse)
        stages.validate(spec, refuse)
        if RULES[spec.learning.rule].least_ridge:
            stages.refuse_moving(spec, refuse, spec.learning.rule)

    def _complain_of_kernel(self, spec: KernelSpec, refuse: Refuse) -> None:
        narrow = spec.precision == "float32"
        kernel, rule = spec.kernel, spec.learning.rule
        if kernel is None:
            refuse("[kernel]", f"is missing; {rule} needs sigma, the kernel's width")
        if kernel.function == "gaussian" and kernel.sigma is None and kernel.gamma is None:
            refuse("[kernel] sigma", f"is missing; {rule} needs sigma, the kernel's width")
        if kernel.function == "sigmoid":
            refuse(
                "[kernel] function",
                f"is sigmoid, which is not positive definite, so that {rule} cannot measure how new a sample is; "
                "choose another kernel",
            )
        kernel_settings.validate(spec, refuse)
        if kernel.function == "polynomial" and kernel.coef0 < 0:
            refuse(
                "[kernel] coef0",
                f"is {kernel.coef0:g}; it must be 0 or more, otherwise the kernel is not positive definite",
            )
        if (
            "quantisation" in RULES[rule].keys
            and kernel.function not in kernel_settings.UNIT
            and spec.learning.quantisation >= 1
        ):
            refuse(
                "[learning] quantisation",
                f"is {spec.learning.quantisation:g}; with a {kernel.function} kernel it is the sine of the angle between "
                "a sample and a vector, and must be below 1: otherwise no second vector is stored",
            )
        if kernel.function == "gaussian":
            far = (5e18 if narrow else 5e149) / math.sqrt(spec.dim)
            if max(spec.input_max_abs, kernel_settings.reach(spec).max()) > far:
                refuse(
                    "[input] max_abs",
                    f"is {spec.input_max_abs:g}; for {spec.dim} inputs in {spec.precision} it must be at most {far:.3g}, "
                    "otherwise distances overflow",
                )
        else:
            _most(spec, refuse)

    def _complain_of_learning(self, spec: KernelSpec, refuse: Refuse) -> None:
        learning, limit, narrow = spec.learning, spec.label_max_abs, spec.precision == "float32"
        if RULES[learning.rule].gradient:
            if learning.eta * learning.rho >= 1:
                refuse(
                    "[learning] rho",
                    f"is {learning.rho}; eta rho must be below 1, otherwise a single sample erases the model",
                )
            if learning.rho > 0 and spec.real.real(1 - learning.eta * learning.rho) == 1:
                refuse(
                    "[learning] rho",
                    f"is {learning.rho:g}, so small that 1 - eta rho is 1 in {spec.precision}; choose a larger rho, or 0",
                )
            if learning.eta * limit < 2.0**-100:
                refuse(
                    "[learning] eta",
                    f"is {learning.eta:g}; with labels up to {limit:g}, it must be larger, otherwise nothing is learned",
                )
            if learning.step_limit is not None and learning.step_limit < 1e-20:
                refuse("[learning] step_limit", f"is {learning.step_limit:g}; it must be 1e-20 or more")
        if learning.relabel and learning.eta > 1:
            refuse(
                "[learning] eta",
                f"is {learning.eta:g}; with relabel = true it must be at most 1: with a larger eta, labels change by more than the error, "
                "and the model diverges if the ridge is small",
            )
        if learning.relabel and ridge_of(spec) < LEAST_RELABELLED:
            refuse(
                "[reduction] ridge",
                f"is {ridge_of(spec):g}; with relabel = true it must be {LEAST_RELABELLED:g} or more: with a smaller ridge, changed "
                "labels lead to huge multipliers",
            )
        if "noise" in RULES[learning.rule].keys:
            least, most = NOISE_LEAST[spec.precision], 1e15 if narrow else 1e80
            near = 0.9999 if narrow else 1 - 1e-9
            if near < learning.forgetting < 1:
                refuse(
                    "[learning] forgetting",
                    f"is {learning.forgetting}; with {learning.rule} in {spec.precision} it must be 1, or {near} or less; between these "
                    "values the variance is lost in rounding errors",
                )
            if learning.noise != "auto" and learning.noise < least:
                refuse("[learning] noise", f"is {learning.noise:g}; it must be {least:g} or more for {spec.precision}")
            # the variance of a prediction can reach limit^2 k(x, x)
            most /= max(1.0, math.sqrt(_most(spec)))
            if limit > most:
                refuse(
                    "[label] max_abs",
                    f"is {limit:g}; with {learning.rule} it must be at most {most:g}, otherwise the variance overflows",
                )

    def _complain_of_ridge(self, spec: KernelSpec, refuse: Refuse) -> None:
        rule = RULES[spec.learning.rule]
        least = rule.least_ridge if spec.precision == "float32" else 1e-7 if rule.slides else 0.0
        if ridge_of(spec) < least:
            refuse(
                "[reduction] ridge",
                f"is {ridge_of(spec):g}; with {spec.learning.rule} it must be {least:g} or more for {spec.precision}",
            )

    def _complain_of_matrices(self, spec: KernelSpec, refuse: Refuse) -> None:
        reduction, narrow = spec.reduction, spec.precision == "float32"
        choices, ald_threshold = Choices.of(spec), _ald_threshold(spec)
        if ald_threshold >= 1:
            refuse(
                "[reduction] ald_threshold",
                f"is not given, and its default, twice the ridge, is {ald_threshold:g}; it must be below 1: give an ald_threshold, or a ridge below 0.5",
            )
        if "factor" in choices.keeps:
            least = 1e-4 if narrow else 0.0
            if ridge_of(spec) < least:
                refuse(
                    "[reduction] ridge",
                    f"is {ridge_of(spec):g}; it must be {least:g} or more for {spec.precision}",
                )
            if ald_threshold <= ridge_of(spec):
                refuse(
                    "[reduction] ald_threshold",
                    f"is {ald_threshold:g}; it must be above the ridge ({ridge_of(spec):g}), and at least twice the ridge to absorb repeated samples",
                )
            # if vectors are never removed, no inverse matrix is downdated
            least = 1e-4 if narrow else 1e-12 if reduction.force or choices.rule.grows else 1e-7
            if ald_threshold < least:
                forced = (
                    ""
                    if narrow or reduction.force
                    else ", or the kept inverse may lose all its digits; force = true allows it"
                )
                refuse(
                    "[reduction] ald_threshold",
                    f"is {ald_threshold:g}; it must be {least:g} or more for {spec.precision}{forced}",
                )
        if "complex" in choices.keeps:
            least = 1e-4 if narrow else 1e-12
            if reduction.penalty < least:
                refuse(
                    "[reduction] penalty",
                    f"is {reduction.penalty:g}; for lsridge it must be {least:g} or more in {spec.precision}",
                )

    def _complain_of_reduction(self, spec: KernelSpec, refuse: Refuse) -> None:
        reduction, rule, choices = spec.reduction, spec.learning.rule, Choices.of(spec)
        if choices.rule.recursive and choices.rule.selects and choices.projection.name != "klms":
            refuse(
                "[reduction] technique",
                f'is {reduction.technique} with the projection "{projection_of(spec)}"; with {rule}, removing a vector must not '
                'change f at the remaining vectors: give projection = "klms"',
            )
        if reduction.fading < 1 and not choices.technique.fades:
            refuse(
                "[reduction] fading",
                f'is {reduction.fading:g}, but the technique "{reduction.technique}" ignores fading, because it compares '
                f"{'ages' if choices.technique is AT else 'scores that can be negative'}; leave fading out",
            )
        if choices.thresholds and choices.technique is AT:
            refuse(
                "[reduction] lambda_max",
                'is given, but the technique "at" has no score to compare; give truncate_age instead',
            )
        truncation = [key for key in ("truncate_below", "truncate_age") if getattr(reduction, key) is not None]
        if choices.before:
            others = [*truncation, *(["lambda_max"] if choices.thresholds else [])]
            if others:
                refuse("[reduction] when", f'is "before", which does not go with {others[0]}; leave one of them out')
            if choices.newest_only:
                refuse(
                    "[reduction] when",
                    'is "before": a vector is removed before the new sample is stored, so candidates = "newest" leaves no '
                    "candidate; leave candidates out",
                )

    def _complain_of_pairs(self, spec: KernelSpec, refuse: Refuse) -> None:
        reduction = spec.reduction
        if reduction.force or not RULES[spec.learning.rule].selects:
            return
        pair = (reduction.technique, projection_of(spec))
        if pair in FAILS:
            where = "technique" if reduction.projection is None else "projection"
            refuse(
                f"[reduction] {where}",
                failure(pair),
            )
        if reduction.tie == "oldest" and reduction.technique == "fklms":
            refuse(
                "[reduction] tie",
                'is "oldest", so that fklms always removes the older vector of the closest pair: the model then learns '
                'almost nothing, or diverges with projection = "fklms"; force = true allows it',
            )

    def capacities(self, spec: KernelSpec) -> dict[str, int]:
        return {"DIM": spec.dim, "N_MAX": spec.reduction.n_max, "OUTPUTS": spec.outputs} | stages.probabilities(spec)

    def parameters(self, spec: KernelSpec) -> dict[str, Any]:
        choices, learning, reduction = Choices.of(spec), spec.learning, spec.reduction
        assert spec.kernel is not None
        function = spec.kernel.function
        sigma, limit, alpha_limit = spec.length_scale, stages.label_unit(spec), self._alpha_limit(spec)
        ald_threshold, mu = _ald_threshold(spec), reduction.penalty * (reduction.n_max + 1) / reduction.n_max
        # an estimated noise is at most noise_high
        noise = stages.NOISE["noise_high"] if learning.noise == "auto" else learning.noise
        most = alpha_limit * reduction.n_max * math.sqrt(_most(spec))
        own = kernel_settings.parameters(spec)
        if function == "gaussian":
            own["gamma"] = 0.5 / sigma / sigma if spec.kernel.sigma is not None else spec.kernel.gamma
        return (
            own
            | stages.parameters(spec, most)
            | self._branches(spec, choices)
            | {
                "keeps_diagonal": own["normalises"] or not own["unit"],
                "radial": function in kernel_settings.UNIT,
                "fading": reduction.fading,
                "eta": learning.eta,
                "epsilon": learning.epsilon,
                "keep": 1 - learning.eta * learning.rho,
                "forgetting": learning.forgetting,
                "root_forgetting": math.sqrt(learning.forgetting),
                "forgotten": 1 - learning.forgetting,
                "unsure": stages.estimates_noise(spec),
                "noise": noise,
                "noise_least": NOISE_LEAST[spec.precision],
                "label_scale": 1 / limit,
                # so that no variance overflows: a variance is at most (noise + prior) * k(x, x) * power * limit^2
                "power_limit": kernel_settings.largest(spec.precision)
                / ((noise + 1 + ridge_of(spec)) * max(1.0, _most(spec)) * max(1.0, limit * limit)),
                "ridge_diagonal": 1 + ridge_of(spec),
                "kappa_least": ridge_of(spec) or ald_threshold * 2.0**-10 or 2.0**-50,
                "ald_threshold": ald_threshold,
                "ald_distance": _ald_distance(spec, choices),
                "penalty": reduction.penalty,
                "root_mu": math.sqrt(mu),
                "lambda_max": reduction.lambda_max or 0.0,
                "truncate_below": reduction.truncate_below or 0.0,
                "truncate_age": reduction.truncate_age or 0,
                "removals": reduction.removals,
                "label_max_abs": limit,
                "alpha_limit": alpha_limit,
                "scaled_limit": 1.01 * float(kernel_settings.reach(spec).max()),
                "step_limit": min(learning.step_limit or alpha_limit, alpha_limit)
                if own["unit"]
                else learning.step_limit or 1.0,
                "rehearsed": spec.rehearsed(2 * reduction.n_max + 32, reduction.n_max),
            }
        )

    def _branches(self, spec: KernelSpec, choices: Choices) -> dict[str, Any]:
        """Return the parameters that decide which branches of the `@kernel` functions remain."""
        learning, reduction = spec.learning, spec.reduction
        return {
            "metric": choices.technique.metric,
            "projection": choices.projection.number,
            "tie": TIES[reduction.tie],
            "decays": learning.rho > 0,
            "forgets": learning.forgetting < 1,
            "relabels": learning.relabel,
            "limits_step": learning.step_limit is not None,
            "drafts": choices.drafts,
            "rounds": choices.rounds,
            "before": choices.before,
            "hears_other": choices.before and spec.interval is not None,
            "newest_only": choices.newest_only,
            "thresholds": choices.thresholds,
            "truncates_small": reduction.truncate_below is not None,
            "truncates_old": reduction.truncate_age is not None,
            "stores_all": choices.rule.slides,
            **{f"keeps_{name}": name in choices.keeps for name in KEPT},
            "fades": reduction.fading < 1,
        }

    def _alpha_limit(self, spec: KernelSpec) -> float:
        """Limit of the multipliers, within which no sum of multipliers overflows.  Typical multipliers are about f / sqrt(k(x, x))."""
        norm = math.sqrt(_most(spec))
        widest = (1e36 if spec.precision == "float32" else 1e300) / spec.reduction.n_max / max(1.0, norm)
        return min(2.0**20 * stages.label_unit(spec) * max(1.0, 1 / norm), 2.0**100, widest)


def ridge_of(spec: KernelSpec) -> float:
    """Return the ridge: the fraction of the Gram matrix's diagonal that is added to the diagonal."""
    if spec.reduction.ridge is not None:
        return spec.reduction.ridge
    return 0.1 if RULES[spec.learning.rule].least_ridge else 1e-3


def _ald_threshold(spec: KernelSpec) -> float:
    return spec.reduction.ald_threshold if spec.reduction.ald_threshold is not None else 2 * ridge_of(spec)


def _ald_distance(spec: KernelSpec, choices: Choices) -> float:
    """Return a threshold in the model's unit of distance: a sample is not stored if its distance from a vector is at most
    this threshold.
    """
    assert spec.kernel is not None
    function, sigma, ald_threshold = spec.kernel.function, spec.length_scale, _ald_threshold(spec)
    if "quantisation" in choices.rule.keys:
        return _quantum(spec)
    if "coherence" in choices.rule.keys:  # the distance at which |k| equals the coherence
        coherence = spec.learning.coherence
        return -2 * math.log(coherence) * sigma * sigma if function == "gaussian" else 1 - coherence
    if not choices.keeps.isdisjoint({"factor", "complex"}):
        return 0.0  # only exact repeats are this near; with "factor", ald_threshold limits the residual instead
    if function == "gaussian":  # 1 - k^2 <= ald_threshold, k = exp(-d / (2 sigma^2))
        return -math.log1p(-ald_threshold) * sigma * sigma
    return _beyond(ald_threshold)


def _beyond(part: float) -> float:
    """Return 1 - |k| for 1 - k^2 = ``part``."""
    return part / (1 + math.sqrt(1 - part))


def _quantum(spec: KernelSpec) -> float:
    """Return a threshold in the model's unit of distance: a sample is merged with the nearest vector if its distance from this
    vector is at most the threshold.
    """
    assert spec.kernel is not None
    units, function = spec.learning.quantisation, spec.kernel.function
    if function == "gaussian":
        return (units * spec.length_scale) ** 2
    fading = -math.expm1(-units)
    if function in ("laplacian", "matern12"):
        return fading
    if function == "matern32":
        return fading - units * math.exp(-units)
    if function == "matern52":
        return fading - (units + units * units / 3) * math.exp(-units)
    return _beyond(units * units)


def _most(spec: KernelSpec, refuse: Refuse | None = None) -> float:
    """Return the largest k(x, x).

    refuse: if given, an input limit with which a kernel value or an intermediate result could overflow is refused.
    """
    assert spec.kernel is not None
    if refuse is None and (spec.kernel.normalise or spec.kernel.function in kernel_settings.UNIT):
        return 1.0
    key = "clip" if spec.input.standardise else "max_abs"
    limit = spec.input.clip if spec.input.standardise else spec.input_max_abs

    def reworded(where: str, message: str) -> NoReturn:
        assert refuse is not None
        refuse(f"[input] {key}", message)

    most = kernel_settings.bound(spec, reworded, kernel_settings.reach(spec))
    # the product of two values of k(x, x) must not overflow
    largest = math.sqrt(kernel_settings.largest(spec.precision))
    if refuse is not None and most > largest:
        reworded(
            "",
            f"is {limit:g}; with this limit, k(x, x) of a {spec.kernel.function} kernel can be {most:.3g}, but in {spec.precision} "
            f"it must be at most {largest:.0e}: lower {key}",
        )
    return most


KERNEL_MODELS: tuple[Family, ...] = tuple(
    KernelModels(programs) for programs in {id(rule.programs): rule.programs for rule in RULES.values()}.values()
)
"""One family for the rules that share their programs."""
