"""The definition of a rule, and the programs that consist of the frame and a rule, one for each kind of label."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Any

from pykernel.algorithms.doubt import Doubt, DoubtConfig, DoubtStatus, DoubtWork
from pykernel.algorithms.expert import Expert, ExpertConfig, ExpertWork
from pykernel.algorithms.frame import (
    Framed,
    Status,
    TakenStatus,
    classify,
    expect,
    freeze,
    interval,
    predict,
    probability,
    restart,
    update,
    update_alone,
    update_class,
    update_many,
    valid,
    whole_chances,
)
from pykernel.algorithms.hooks import FrameConfig, clear, miss_row
from pykernel.algorithms.inputs import InputConfig
from pykernel.algorithms.interval import Interval, IntervalConfig, IntervalWork
from pykernel.algorithms.pending import Pending, PendingWork
from pykernel.algorithms.stages import Sample, StageConfig, Stages
from pykernel.dialect import Config, Kernel, Model, Real, Struct, Word, kernel, real, word
from pykernel.dialect.program import Budget, Entry, LabelKind, Program, Programs

UPDATES: Mapping[LabelKind, Kernel] = {
    "real": update,
    "reals": update_many,
    "class": update_class,
    "none": update_alone,
}


@dataclass(frozen=True)
class Rule:
    """A rule, or a family of rules that share their memory.

    model: the class with all fields of the rule and of ``frame.py``.  memory: the structs that the rule keeps between
    calls.  work: the structs that every call recomputes.  statuses: the rule's own statuses.  hooks: mapping from
    placeholders of ``hooks.py``, and from kernels of the frame that the rule replaces, to the rule's kernels.
    costs: the costs of ``answer`` and ``learn``, for the documentation of the C code.  questions, actions: calls that
    only this rule adds to the C code.  calibrated: a function that takes a configuration and returns whether the rule
    itself computes class probabilities (``chances``).  labels: the kinds of label that the rule learns.  restarts:
    whether there is a function that makes the model forget everything.  The other attributes are those of ``Program``.
    """

    name: str
    model: type[Framed]
    memory: tuple[type[Struct], ...]
    work: tuple[type[Struct], ...]
    configs: tuple[type[Config], ...]
    statuses: type[IntEnum]
    hooks: Mapping[Any, Any]
    costs: tuple[str, str]
    questions: tuple[Entry, ...] = ()
    actions: tuple[Entry, ...] = ()
    labels: Sequence[LabelKind] = ("real", "reals", "class")
    calibrated: Callable[[Any], bool] = lambda config: False
    restarts: bool = False
    alarms: tuple[IntEnum, ...] = ()
    between: tuple[str, ...] = ()
    budget: Budget | None = None
    stand_ins: Mapping[Any, Any] = field(default_factory=dict)
    """Replacements for parts of the floating-point frame; a value ``Framed`` stands for the rule's own model."""


FRAME = (
    (Stages, Expert, Interval, Pending, Doubt),
    (Sample, ExpertWork, IntervalWork, PendingWork, DoubtWork),
    (StageConfig, InputConfig, FrameConfig, ExpertConfig, IntervalConfig, DoubtConfig),
)
"""The frame's own memory, working memory and configurations."""


ZEROS = {Real: "real(0)", Word: "word(0)"}
"""Type of a field -> zero, as kernels write it.  Other types are integers."""

LABELLED: tuple[LabelKind, ...] = ("real", "reals", "class")


def standing(model: type[Model], hooks: Mapping[Any, Any], answered: str, learned: str | None = None) -> dict[Any, Any]:
    """Return a dict of replacements for parts of the frame: its model, the kernels that the model defines itself, and
    the costs in the documentation of the C code.

    A model without a rule must replace ``respond``, which predicts for an unscaled input.  A model that only collects
    samples must also replace ``take`` or ``take_class``.
    """
    return {Framed: model, "O(answer)": answered, "O(learn)": learned or answered, **hooks}


def questions(kind: LabelKind, calibrated: Callable[[Any], bool] | None = None) -> tuple[Entry, ...]:
    """Return the entries of the frame's questions, which models without a rule have, too.  calibrated: a function that
    returns whether a configuration has class probabilities; None if no configuration has them."""
    found = [Entry("predict", predict, "question")]
    if kind == "class":
        found.append(Entry("classify", classify, "question"))
        if calibrated is not None:
            found.append(Entry("probability", probability, "question", calibrated))
    return tuple(found)


@functools.cache
def clearing(model: type[Model], structs: tuple[type[Struct], ...]) -> Kernel:
    """Return a kernel that sets every field of the structs to zero.  Its source is written here, so that it forgets no field."""
    lines = ["def clear(m: Model) -> None:", f'    """{clear.doc}"""']
    for struct in structs:
        for name, array in struct.fields.items():
            indices = "ijk"[: len(array.extents)]
            if name in struct.scalars:
                lines.append(f"    m.{name}[0] = {ZEROS.get(array.scalar, '0')}")
                continue
            for depth, index in enumerate(indices):
                lines.append(f"{'    ' * (depth + 1)}for {index} in range(len(m.{name}{'[0]' * depth})):")
            lines.append(
                f"{'    ' * (len(indices) + 1)}m.{name}[{', '.join(indices)}] = {ZEROS.get(array.scalar, '0')}"
            )
    space: dict[str, Any] = {"Model": model, "real": real, "word": word}
    source = "\n".join(lines)
    exec(compile(source, f"<{model.__name__}>", "exec"), space)
    made = kernel(space["clear"])
    made.source, made.rebuild = source.encode(), (clearing, (model, structs))
    return made


def programs(rule: Rule) -> Programs:
    """Return the programs of a rule, one for each kind of label that the rule learns."""
    return Programs({kind: partial(_program, rule, kind) for kind in rule.labels})


def _program(rule: Rule, kind: LabelKind) -> Program:
    own = {key: rule.model if value is Framed else value for key, value in rule.stand_ins.items()}
    memory, work, configs = ([rule.stand_ins.get(part, part) for part in parts] for parts in FRAME)
    # int16 models have no intervals; they have probabilities only if the rule computes them
    uncertain = rule.stand_ins and whole_chances not in rule.hooks
    first, *classes = questions(kind, None if uncertain else lambda c: c.votes or rule.calibrated(c))
    asked = [] if kind == "none" else [first]
    if kind in ("real", "reals") and not rule.stand_ins:
        asked.append(Entry("interval", interval, "question", lambda c: c.covers))
    return Program(
        name=rule.name,
        structs=(*rule.memory, *memory, *work, *rule.work),
        persistent=(*rule.memory, *memory),
        configs=(*rule.configs, *configs),
        statuses=(Status, TakenStatus, *([] if kind == "none" else [DoubtStatus]), rule.statuses),
        entries=(
            *asked,
            Entry("update", UPDATES[kind], "update"),
            *classes,
            *rule.questions,
            Entry("freeze", freeze, "switch"),
            *((Entry("expect", expect, "promise", lambda c: c.expects),) if kind != "none" else ()),
            *rule.actions,
            *((Entry("restart", restart, "action"),) if rule.restarts else ()),
        ),
        valid=valid,
        missed=miss_row if kind == "none" else None,
        alarms=rule.alarms,
        between=rule.between,
        budget=rule.budget,
        stand_ins=standing(
            rule.model, own | {clear: clearing(rule.model, (*rule.memory, *memory))} | dict(rule.hooks), *rule.costs
        ),
    )
