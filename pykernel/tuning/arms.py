"""The models that a plan tries.  An arm is a combination of a rule and a technique, with its trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pykernel.spec.defaults import DEFAULT_BUDGET, completed, width
from pykernel.spec.model import make_spec
from pykernel.spec.sections import fpu_of
from pykernel.tuning.combinations import (
    NETWORK,
    NUMBERS_INPUT,
    NUMBERS_LABEL,
    TRAINED,
    TRAINING,
    Combination,
    Content,
    Knob,
    Known,
    Whole,
    combine,
    held,
    int16_combinations,
    knobs,
    rules,
    trained_at_once,
)
from pykernel.tuning.data import Table
from pykernel.tuning.promises import Losses

MOST = 128
"""The largest size of a model that a plan tries."""
COMPONENTS = (2, 3, 4, 8)
"""The numbers of Gaussians that are tried for a monitor's bank."""
MONITOR: tuple[Knob, ...] = (
    Knob("novelty", "smoothing", math.log(2), 0.05, 1.0),
    Whole("novelty", "relearn_after", math.log(2), 10, 400),
)
"""Parameters of a monitor that are searched."""
MOST_TRAINED = 64
"""Maximum number of trained vectors.  More vectors take a long time to train, and are rarely better."""


@dataclass
class Trial:
    """A model to try (an arm, a size, and the parameters' values by "section.key"), and the result of the trial."""

    arm: Arm
    size: int | None
    values: dict[str, float]
    result: dict[str, Any] = field(default_factory=dict)
    fits: bool | None = None  # None: not measured
    _losses: Losses | None = field(default=None, repr=False)

    @property
    def content(self) -> Content:
        """The content of the spec to try or, after the trial, of the spec that was tried."""
        return dict(self.result["spec"]) if "spec" in self.result else self.arm.made.with_values(self.size, self.values)

    @property
    def report(self) -> dict[str, Any] | None:
        """The results by which the trial is ranked: those of the learning model if the model learns on the device, else
        those of the frozen model."""
        return self.result.get("learning") or self.result.get("frozen")

    @property
    def score(self) -> float:
        """The value to minimise: the error, or infinity if the trial has no result or the model does not fit.

        A monitor that exceeds the permitted false-alarm rate ranks after all monitors that do not.
        """
        report = self.report
        if self.fits is False or report is None or self.result.get("diverged") or not math.isfinite(report["error"]):
            return math.inf
        broken = 0.0 if report.get("keeps_rate", True) else 1 + report["other_rows"]
        return float(report["error"]) + broken

    @property
    def bytes(self) -> int:
        return int(self.result.get("ram_bytes", 0) + self.result.get("table_bytes", 0))

    @property
    def learns(self) -> bool:
        """Whether the model learns on the device."""
        return self.result.get("learning") is not None

    @property
    def losses(self) -> Losses:
        """The losses on the judged rows, by block."""
        report = self.report
        assert report is not None
        if self._losses is None:
            self._losses = Losses.from_report(report, "classes" in self.arm.made.content["label"])
        return self._losses

    def key(self) -> tuple[Any, ...]:
        return (self.arm.name, self.size, *sorted(self.values.items()))


@dataclass
class Arm:
    """A combination that is tried, and its trials.  own: the parameters' initial values."""

    made: Combination
    knobs: tuple[Knob, ...] = field(repr=False)
    own: dict[str, float] = field(repr=False)
    most: int = MOST
    trials: list[Trial] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, made: Combination) -> Arm:
        if made.technique in (TRAINED, NETWORK):
            return cls(made, TRAINING if made.technique == TRAINED else (), {}, MOST_TRAINED)
        sigma = width(_dim(made.content))
        known = tuple(knob for knob in knobs(sigma) if made.means(knob.section, knob.key))
        own = {"kernel.sigma": sigma} if made.spec is None else {knob.name: held(made.spec, knob) for knob in known}
        return cls(made, known, own)

    def began_with(self, training: Content) -> None:
        """Keep the settings that the first training chose.  Later trainings use these settings, without cross-validation."""
        self.made = replace(self.made, training=training)
        self.own = {knob.name: training[knob.key] for knob in self.knobs}

    @property
    def name(self) -> str:
        return self.made.name

    def task(self, trial: Trial, ram: int | None) -> dict[str, Any]:
        values = {**self.own, **trial.values} if self.made.spec is None else trial.values
        return {"do": "judge", "ram": ram, **self.made.task(trial.size, values)}

    @property
    def kind(self) -> str:
        """The name of this kind of model in plots."""
        if self.made.rule == "frozen":
            return "trained here, frozen"
        if self.made.technique == NETWORK:
            return "learning, features"
        spec = self.made.spec
        if spec is None or trained_at_once(spec):
            return "trained on the device"
        if spec.label_kind == "none":
            return "monitor"
        if not spec.family.online:
            return "learning with a basis"
        return "learning, kernel" if self.made.budget == ("reduction", "n_max") else "learning, features"

    @property
    def best(self) -> Trial | None:
        return min((t for t in self.trials if math.isfinite(t.score)), key=lambda t: t.score, default=None)


def arms(
    base: Content,
    table: Table,
    chosen: Sequence[str] | None,
    techniques: Sequence[str] | None,
    target: str | None = None,
    labels: str | None = None,
) -> list[Arm]:
    """Return the arms of all chosen rules for this data.  Arms with trained vectors come first.

    Each rule is combined with its default technique, or with each of ``techniques``.  For a target without an FPU,
    int16 models are tried as well, where possible.  labels: "never" if the device gets no labels.  In this case, if no
    rules are chosen, the arms are frozen models, and the default model as it is after training on the recording.
    """
    if "label" not in base:
        return _monitors(base, chosen)
    known = Known.of(table.x[: table.split], table.labels[: table.split])
    every = [rule for rule in rules() if chosen is None or rule in chosen]
    combinations: list[Combination] = []
    stored = {} if "reduction" in base else {"reduction": {"n_max": DEFAULT_BUDGET}}
    recipes = [completed(base), completed(base | {"target": {"ram": 1}}), completed(base | stored)]
    taught = [recipe["learning"]["rule"] for recipe in recipes if recipe["learning"]["rule"] in every]
    if labels == "never" and chosen is None:
        every, taught = ["frozen"], taught[:1]
    for recipe in recipes:
        if recipe["learning"]["rule"] in taught:
            combinations += combine(dict(recipe), known, [recipe["learning"]["rule"]], techniques)[0]
    combinations += combine(_staged(base), known, every, techniques)[0]
    if (
        target is not None and fpu_of(target) == "none" and table.stage is None
    ):  # models with [signal] get no int16 arms
        whole = int16_combinations(base, known, every)
        combinations = [
            made for made in whole if not techniques or made.technique in (None, *techniques)
        ] + combinations
    first: dict[str, Combination] = {}
    # arms with trained vectors take longest: they start first, while other cores run the remaining trials
    for made in sorted(combinations, key=lambda made: made.technique != TRAINED):
        first.setdefault(made.name, made)
    return [Arm.of(made) for made in first.values()]


def _staged(base: Content) -> Content:
    """Add the kernel width and the stages without which a rule cannot learn from unscaled numbers.

    Existing keys are not changed.
    """
    made = {**base, "kernel": {"sigma": width(_dim(base))} | base.get("kernel", {})}
    if not {"standardise", "center", "scale"} & set(base["input"]):
        made["input"] = NUMBERS_INPUT | base["input"]
        if "classes" not in base["label"]:
            made |= {"label": NUMBERS_LABEL | base["label"], "linear": base.get("linear", {})}
    return made


def _monitors(base: Content, chosen: Sequence[str] | None) -> list[Arm]:
    """Return the arms of monitors, one for each number of Gaussians in the bank."""
    learning, found = base.get("learning", {}), []
    for k in (learning["components"],) if "components" in learning else COMPONENTS:
        content = base | {"learning": learning | {"components": k}}
        spec = make_spec(content)
        if chosen is None or spec.learning.rule in chosen:
            made = Combination(spec.learning.rule, f"{k} components", dict(completed(content)), spec, None)
            found.append(Arm(made, MONITOR, {knob.name: held(spec, knob) for knob in MONITOR}))
    return found


def _dim(base: Content) -> int:
    return len(base["input"].get("columns") or ()) or int(base["input"].get("dim", 1))
