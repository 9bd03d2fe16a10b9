"""Kernel models in a spec: rules, techniques, what goes together, and the parameters of the kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pykernel.expansion import Metric, Projection, Rule, Tie
from pykernel.families import Family, Refuse, unused_online
from pykernel.online import ONLINE
from pykernel.program import LabelKind, Program

if TYPE_CHECKING:
    from pykernel.spec import Spec

DRIFT_LIMIT = 0.01
"""Elements of (K + ridge I) P - I above which a refresh is due; predictions do not depend on P, reductions do."""

RULES = {
    "klms": Rule.KLMS,
    "qklms": Rule.QKLMS,
    "krls-t": Rule.KRLS_T,
    "fb-krls": Rule.FB_KRLS,
    "ald-krls": Rule.ALD_KRLS,
}
GRADIENT = ("klms", "qklms")
RECURSIVE = ("krls-t", "fb-krls", "ald-krls")

TECHNIQUES = {
    "nt": (Metric.MAGNITUDE, Projection.NONE),
    "at": (Metric.AGE, Projection.NONE),
    "klms": (Metric.KLMS, Projection.KLMS),
    "mklms": (Metric.MKLMS, Projection.KLMS),
    "sup": (Metric.SUP, Projection.KLMS),
    "ls": (Metric.LS, Projection.LS),
    "lsreg": (Metric.LSREG, Projection.LS),
    "lsridge": (Metric.LSRIDGE, Projection.LSRIDGE),
    "fklms": (Metric.FKLMS, Projection.FKLMS),
    "fmklms": (Metric.FMKLMS, Projection.FKLMS),
    "afklms": (Metric.AFKLMS, Projection.FKLMS),
    "afmklms": (Metric.AFMKLMS, Projection.FKLMS),
}
"""What each technique removes by, and how the others make up for it."""

PROJECTIONS = {
    "none": Projection.NONE,
    "klms": Projection.KLMS,
    "fklms": Projection.FKLMS,
    "ls": Projection.LS,
    "lsridge": Projection.LSRIDGE,
}
TIES = {"smaller": Tie.SMALLER, "newest": Tie.NEWEST, "oldest": Tie.OLDEST}

LEARNING_KEYS = {
    "eta": ("klms", "qklms", "fb-krls"),
    "rho": GRADIENT,
    "step_limit": GRADIENT,
    "quantisation": ("qklms",),
    "forgetting": ("krls-t",),
    "noise": ("krls-t",),
    "covariance": (),
    "features": (),
    "seed": (),
}
"""Which rules of kernel models each key of [learning] is for."""

DIVERGES = {
    ("nt", "ls"): "on a sinc, where zero has an error of 0.13, 1.69e+00 with 8 vectors in float64",
    ("at", "fklms"): "on a sinc, where zero has an error of 0.13, 1.50e+24 with 24 vectors in float64",
    ("at", "ls"): "on a sinc, where zero has an error of 0.13, 3.43e+16 with 14 vectors in float64",
    ("lsreg", "fklms"): "on a sinc, where zero has an error of 0.13, 1.11e+00 with 14 vectors in float64",
    ("lsridge", "fklms"): "on a sinc, where zero has an error of 0.13, 2.58e+06 with 24 vectors in float64",
    ("afmklms", "fklms"): "on a sinc, where zero has an error of 0.13, 1.87e+24 with 14 vectors in float64",
}
"""(technique, projection) -> mean squared error that was measured; docs/pairs.csv, by benchmarks/pairs.py."""


@dataclass(frozen=True)
class Choices:
    """What a spec means for the kernels' branches."""

    rule: Rule
    metric: Metric
    projection: Projection
    factor: bool
    inverse: bool
    squared: bool
    complex: bool
    neighbours: bool
    overlap: bool
    ages: bool
    thresholds: bool
    newest_only: bool
    before: bool

    @classmethod
    def of(cls, spec: Spec) -> Choices:
        reduction, rule = spec.reduction, RULES[spec.learning.rule]
        metric, projection = TECHNIQUES[reduction.technique]
        if reduction.projection is not None:
            projection = PROJECTIONS[reduction.projection]
        if rule is Rule.ALD_KRLS:  # nothing is ever removed
            metric, projection = Metric.MAGNITUDE, Projection.NONE
        by_factor = (Metric.KLMS, Metric.MKLMS, Metric.SUP, Metric.LS, Metric.LSREG)
        return cls(
            rule=rule,
            metric=metric,
            projection=projection,
            factor=metric in by_factor
            or projection in (Projection.KLMS, Projection.LS)
            or spec.learning.rule in RECURSIVE,
            inverse=metric is Metric.LS,
            squared=metric is Metric.LSREG,
            complex=metric is Metric.LSRIDGE or projection is Projection.LSRIDGE,
            neighbours=metric in (Metric.FKLMS, Metric.FMKLMS),
            overlap=metric in (Metric.AFKLMS, Metric.AFMKLMS),
            ages=metric is Metric.AGE or reduction.tie != "smaller" or reduction.truncate_age is not None,
            thresholds=reduction.lambda_max is not None,
            newest_only=reduction.candidates == "newest",
            before=reduction.when == "before",
        )

    @property
    def rounds(self) -> bool:
        return self.before or (self.thresholds and not self.newest_only)

    @property
    def stages(self) -> bool:
        plain = self.projection is Projection.NONE and self.rule in (Rule.KLMS, Rule.QKLMS)
        return not plain or self.factor or self.complex or self.rounds


def projection_of(spec: Spec) -> str:
    """The name of the projection that a spec's technique ends up with."""
    projection = Choices.of(spec).projection
    return next(name for name, value in PROJECTIONS.items() if value is projection)


class KernelModels:
    """Expansions f(x) = sum_i alpha_i k(v_i, x) under a budget."""

    rules: tuple[str, ...] = tuple(RULES)
    programs: Mapping[LabelKind, Program] = ONLINE
    online = True

    def unused(self, spec: Spec, section: str, key: str) -> str | None:
        rule, reduction = spec.learning.rule, spec.reduction
        if (reason := unused_online(rule, section, key)) is not None:
            return reason
        if section == "learning" and rule not in LEARNING_KEYS.get(key, (rule,)):
            owners = LEARNING_KEYS[key]
            return (
                f"is of {' and '.join(owners)}; {rule} does not have it: leave it out"
                if owners
                else (f"is of linear models; {rule} does not have it: leave it out")
            )
        if section == "reduction":
            if rule == "ald-krls" and key not in ("n_max", "ridge", "gate"):
                return "is given, but ald-krls removes nothing: a full dictionary grows no further; leave it out"
            if key == "penalty" and not (
                reduction.technique in ("lsreg", "lsridge") or reduction.projection == "lsridge"
            ):
                return f"is of lsreg and lsridge; {reduction.technique} does not have it: leave it out"
            truncates = reduction.truncate_below is not None or reduction.truncate_age is not None
            if key == "removals" and reduction.lambda_max is None and not truncates:
                return "counts with lambda_max, truncate_below or truncate_age; give one of them, or leave it out"
        return None

    def complain(self, spec: Spec, refuse: Refuse) -> None:
        self._complain_of_numbers(spec, refuse)
        self._complain_of_learning(spec, refuse)
        self._complain_of_reduction(spec, refuse)
        self._complain_of_pairs(spec, refuse)

    def _complain_of_numbers(self, spec: Spec, refuse: Refuse) -> None:
        narrow = spec.precision == "float32"
        if spec.kernel is None:
            refuse("[kernel]", f"is missing; {spec.learning.rule} needs sigma, the kernel's width")
        sigma = spec.kernel.sigma
        if sigma is None:
            refuse("[kernel] sigma", f"is missing; {spec.learning.rule} must have it, the kernel's width")
        low, high = (1e-18, 1e18) if narrow else (1e-150, 1e150)
        if not low <= sigma <= high:
            refuse("[kernel] sigma", f"is {sigma:g}; it must be from {low:g} to {high:g} for {spec.precision}")
        far = (5e18 if narrow else 5e149) / math.sqrt(spec.dim)
        if spec.input.limit < low:
            refuse("[input] limit", f"is {spec.input.limit:g}; it must be {low:g} or more for {spec.precision}")
        if spec.input.limit > far:
            refuse(
                "[input] limit",
                f"is {spec.input.limit:g}; for {spec.dim} inputs in {spec.precision} it can be at most {far:.3g}, or distances overflow",
            )

    def _complain_of_learning(self, spec: Spec, refuse: Refuse) -> None:
        learning, limit, narrow = spec.learning, spec.label_limit, spec.precision == "float32"
        if learning.rule in GRADIENT:
            if learning.eta * learning.rho >= 1:
                refuse(
                    "[learning] rho",
                    f"is {learning.rho}; eta rho must be below 1, or one presentation erases the model",
                )
            if learning.eta * limit < 2.0**-100:
                refuse(
                    "[learning] eta",
                    f"is {learning.eta:g}; it must be larger, or no label up to {limit:g} is learned",
                )
            if learning.step_limit is not None and learning.step_limit < 1e-20:
                refuse("[learning] step_limit", f"is {learning.step_limit:g}; it must be 1e-20 or more")
        if learning.rule == "krls-t":
            least, most = (1e-4, 1e15) if narrow else (1e-10, 1e80)
            near = 0.9999 if narrow else 1 - 1e-9
            if near < learning.forgetting < 1:
                refuse(
                    "[learning] forgetting",
                    f"is {learning.forgetting}; with krls-t in {spec.precision} it must be 1 or at most {near}, or what is "
                    "left of the variance is lost in rounding",
                )
            if learning.noise < least:
                refuse("[learning] noise", f"is {learning.noise:g}; it must be {least:g} or more for {spec.precision}")
            if limit > most:
                refuse(
                    "[label] limit", f"is {limit:g}; with krls-t it can be at most {most:g}, or its variance overflows"
                )

    def _complain_of_reduction(self, spec: Spec, refuse: Refuse) -> None:
        reduction, rule, narrow = spec.reduction, spec.learning.rule, spec.precision == "float32"
        choices, gate = Choices.of(spec), _gate(spec)
        if gate >= 1:
            refuse(
                "[reduction] gate",
                f"is 2 ridge = {gate:g}, with which no sample is stored; give a gate below 1, or a smaller ridge",
            )
        if choices.factor:
            least = 1e-4 if narrow else 0.0
            if reduction.ridge < least:
                refuse(
                    "[reduction] ridge",
                    f"is {reduction.ridge:g}; it must be {least:g} or more for {spec.precision}",
                )
            if gate <= reduction.ridge:
                refuse(
                    "[reduction] gate",
                    f"is {gate:g}; it must be above the ridge ({reduction.ridge:g}), 2 ridge or more to absorb repeats",
                )
            least = 1e-4 if narrow else 1e-12
            if gate < least:
                refuse("[reduction] gate", f"is {gate:g}; it must be {least:g} or more for {spec.precision}")
        if choices.complex:
            least = 1e-4 if narrow else 1e-12
            if reduction.penalty < least:
                refuse(
                    "[reduction] penalty",
                    f"is {reduction.penalty:g}; for lsridge it must be {least:g} or more in {spec.precision}",
                )
        if rule in ("krls-t", "fb-krls") and choices.projection is not Projection.KLMS:
            refuse(
                "[reduction] technique",
                f'is {reduction.technique} with the projection "{projection_of(spec)}"; {rule} keeps the values at the '
                'vectors that stay: give projection = "klms"',
            )
        if choices.thresholds and choices.metric is Metric.AGE:
            refuse("[reduction] lambda_max", "is given, but at has no score to compare; give truncate_age")
        truncation = [key for key in ("truncate_below", "truncate_age") if getattr(reduction, key) is not None]
        if truncation and rule not in GRADIENT:
            refuse(f"[reduction] {truncation[0]}", f"is of klms and qklms; {rule} does not have it: leave it out")
        if choices.before:
            if rule not in GRADIENT:
                refuse(
                    "[reduction] when",
                    f'is "before", which is of klms and qklms; {rule} does not have it: leave it out',
                )
            others = [*truncation, *(["lambda_max"] if choices.thresholds else [])]
            if others:
                refuse("[reduction] when", f'is "before", which does not go with {others[0]}; leave one of them out')
            if choices.newest_only:
                refuse("[reduction] when", 'is "before", where the newest sample is no candidate; leave candidates out')

    def _complain_of_pairs(self, spec: Spec, refuse: Refuse) -> None:
        reduction = spec.reduction
        if reduction.force or spec.learning.rule == "ald-krls":
            return
        pair = (reduction.technique, projection_of(spec))
        if pair in DIVERGES:
            where = "technique" if reduction.projection is None else "projection"
            refuse(
                f"[reduction] {where}",
                f"{pair[0]} with projection {pair[1]} diverges: {DIVERGES[pair]}; force = true takes it",
            )
        if reduction.tie == "oldest" and reduction.technique == "fklms":
            refuse(
                "[reduction] tie",
                'is "oldest": of a closest pair the older always goes, and fklms then diverges from about 7 vectors on '
                "(errors of 1e32 and more on a noiseless sinc); force = true takes it",
            )

    def capacities(self, spec: Spec) -> dict[str, int]:
        return {"DIM": spec.dim, "N_MAX": spec.reduction.n_max, "OUTPUTS": spec.outputs}

    def reals(self, spec: Spec) -> int:
        choices, n = Choices.of(spec), spec.reduction.n_max + 1
        matrices = choices.factor + choices.inverse + choices.squared + 2 * choices.complex
        matrices += choices.rule in (Rule.KRLS_T, Rule.ALD_KRLS)
        return n * (spec.dim + 3 * spec.outputs + 16) + 4 * spec.dim + 4 * spec.outputs + 32 + matrices * n * n

    def parameters(self, spec: Spec) -> dict[str, Any]:
        choices, learning, reduction = Choices.of(spec), spec.learning, spec.reduction
        sigma, limit, alpha_limit = spec.scale, spec.label_limit, self._alpha_limit(spec)
        gate, mu = _gate(spec), reduction.penalty * (reduction.n_max + 1) / reduction.n_max
        forgetting = learning.forgetting if choices.rule is Rule.KRLS_T else 1.0
        most = alpha_limit * reduction.n_max
        if choices.rule is Rule.QKLMS:
            gate_distance = (learning.quantisation * sigma) ** 2
        elif choices.factor or choices.complex:
            gate_distance = 0.0  # exact repeats
        else:
            # 1 - k^2 <= gate, k = exp(-d / (2 sigma^2))
            gate_distance = -math.log1p(-gate) * sigma * sigma
        return {
            "rule": choices.rule,
            "metric": choices.metric,
            "projection": choices.projection,
            "tie": TIES[reduction.tie],
            "single": spec.outputs == 1,
            "separates": spec.label_kind == "class",
            "decays": learning.rho > 0,
            "forgets": forgetting < 1,
            "standardises": spec.input.standardise,
            "clamps": spec.label.low is not None or spec.label.high is not None,
            "limits_step": learning.step_limit is not None,
            "stages": choices.stages,
            "rounds": choices.rounds,
            "before": choices.before,
            "newest_only": choices.newest_only,
            "thresholds": choices.thresholds,
            "truncates_small": reduction.truncate_below is not None,
            "truncates_old": reduction.truncate_age is not None,
            "keeps_factor": choices.factor,
            "keeps_inverse": choices.inverse,
            "keeps_squared": choices.squared,
            "keeps_complex": choices.complex,
            "keeps_neighbours": choices.neighbours,
            "keeps_overlap": choices.overlap,
            "keeps_ages": choices.ages,
            "gamma": 0.5 / sigma / sigma,
            "eta": learning.eta,
            "keep": 1 - learning.eta * learning.rho,
            "forgetting": forgetting,
            "root_forgetting": math.sqrt(forgetting),
            "noise": learning.noise,
            "label_scale": 1 / limit,
            "ridge_diagonal": 1 + reduction.ridge,
            "kappa_least": reduction.ridge or gate * 2.0**-10 or 2.0**-50,
            "gate": gate,
            "gate_distance": gate_distance,
            "penalty": reduction.penalty,
            "root_mu": math.sqrt(mu),
            "lambda_max": reduction.lambda_max or 0.0,
            "truncate_below": reduction.truncate_below or 0.0,
            "truncate_age": reduction.truncate_age or 0,
            "removals": reduction.removals,
            "input_limit": spec.input.limit,
            "label_limit": limit,
            "alpha_limit": alpha_limit,
            "step_limit": min(learning.step_limit or alpha_limit, alpha_limit),
            "low": spec.label.low if spec.label.low is not None else -most,
            "high": spec.label.high if spec.label.high is not None else most,
            "clip": spec.input.clip,
            "warmup": spec.input.warmup,
            "horizon": spec.input.horizon,
            "drift_limit": DRIFT_LIMIT,
            "classes": len(spec.label.classes or ()),
            "rehearsal_input": min(3 * sigma / math.sqrt(spec.dim), 2 * spec.input.limit),
            "rehearsal_label": min(1.0, limit),
        }

    def _alpha_limit(self, spec: Spec) -> float:
        return min(2.0**20 * spec.label_limit, 2.0**100)


def _gate(spec: Spec) -> float:
    return spec.reduction.gate if spec.reduction.gate is not None else 2 * spec.reduction.ridge


KERNEL_MODELS: Family = KernelModels()
