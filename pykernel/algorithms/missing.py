"""Missing inputs: an outer program completes each sample, and passes the complete sample to an inner program.

An input that is NaN is missing.  A missing input is replaced by its running mean, its center in the spec, or its latest
value.  Before an input has had its first value, its running mean is 0.  In place of a latest value, the mean or the
center is then used, or 0 if inputs are not scaled.  The inner model sees only complete samples.  The statistics
of an input ignore its missing values (``pykernel.algorithms.stages``).
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Any

from pykernel.algorithms.elementary import bounded
from pykernel.algorithms.hooks import Status
from pykernel.algorithms.inputs import InputConfig
from pykernel.algorithms.stages import Staged, Stages
from pykernel.dialect import (
    DIM,
    Bool,
    Index,
    Model,
    Real,
    Struct,
    Variable,
    kernel,
    placeholder,
    real,
    substitute,
)
from pykernel.dialect.program import Entry, Program

Answer = Variable("Answer")
"""The type of the array to which a question of the inner model writes."""
Truth = Variable("Truth")
"""The type of the inner model's labels."""


class Completed(Struct):
    """The completed sample.  Every call rewrites it, so zero is a valid initial value."""

    full: Real[DIM]  # the sample, with replacements for its missing inputs


class Completing(Staged):
    """A model with stages, and the completed sample."""

    parts = (Completed,)


class CompletingGiven(Model):
    """A model whose inputs are scaled by numbers in the spec, and the completed sample."""

    parts = Completed, InputConfig


@placeholder
def ask_whole(m: Completing, x: Real[DIM], y: Answer) -> Index:
    """A question of the inner model."""


@placeholder
def learn_whole(m: Completing, x: Real[DIM], y: Truth) -> Index:
    """An update of the inner model."""


@placeholder
def learn_whole_alone(m: Completing, x: Real[DIM]) -> Index:
    """An update of an inner model without labels."""


@kernel
def is_missing(value: Real) -> Bool:
    """Whether the number is NaN: it is not equal to itself."""
    return value != value


@kernel
def stand_in(m: Staged, j: Index) -> Real:
    """The replacement for a missing input j.  If there is no latest value yet, the replacement is the input's mean,
    which is then 0, or the input's center in the spec.  Without a mean or a center, the replacement is 0."""
    if m.keeps_latest:
        if m.values_seen[j] > 0:
            return m.latest_input[j]
    if m.standardises:
        # because of rounding, the mean may be a little above the limit
        return bounded(m.mean[j], m.input_max_abs)
    if m.rescales:
        return bounded(m.input_center[j], m.input_max_abs)
    return real(0)


@kernel
def complete(m: Completing, x: Real[DIM]) -> None:
    """Write the sample to m.full, with each missing input replaced.  O(D)."""
    for j in range(len(x)):
        if is_missing(x[j]):
            m.absent[j] = 1
            m.full[j] = stand_in(m, j)
        else:
            m.absent[j] = 0
            m.full[j] = x[j]


@kernel
def complete_by_center(m: CompletingGiven, x: Real[DIM]) -> None:
    """Write the sample to m.full, with each missing input replaced by its center.  O(D)."""
    for j in range(len(x)):
        m.full[j] = x[j]
        if is_missing(x[j]):
            m.full[j] = bounded(m.input_center[j], m.input_max_abs)


@kernel
def is_there(x: Real[DIM]) -> Bool:
    """Whether at least one input is present.  O(D)."""
    for j in range(len(x)):
        if not is_missing(x[j]):
            return True
    return False


@kernel
def ask(m: Completing, x: Real[DIM], y: Answer) -> Index:
    """ASKED"""
    complete(m, x)
    return ask_whole(m, m.full, y)


@kernel
def learn(m: Completing, x: Real[DIM], y: Truth) -> Index:
    """LEARNED"""
    if not is_there(x):
        return Status.REFUSED_INPUT
    complete(m, x)
    return learn_whole(m, m.full, y)


@kernel
def learn_alone(m: Completing, x: Real[DIM]) -> Index:
    """LEARNED"""
    if not is_there(x):
        return Status.REFUSED_INPUT
    complete(m, x)
    return learn_whole_alone(m, m.full)


ASKED = "An input that is NaN is missing: {} stands in for it."
LEARNED = "{} A sample without any input is refused with REFUSED_INPUT."


@functools.cache
def with_stand_ins(inner: Program, what: str) -> Program:
    """Build the program around an inner program; the result is cached.  what: the words that name the replacement in
    the documentation, such as "its mean"."""
    asked = ASKED.format(what)
    structs = (*inner.structs, Completed)
    around: Any = type("CompletedModel", (Model,), {"parts": (*structs, *inner.configs)})
    # the inner model's functions get new names, under which the outer functions call them
    behind = {
        entry.kernel: substitute(entry.kernel, {}, alias=f"{entry.kernel.name}_whole")
        for entry in inner.entries
        if entry.kind in ("question", "update", "visit", "promise")
    }
    own: dict[Any, Any] = {Completing: around, CompletingGiven: around}
    if Stages not in inner.structs:
        own[complete] = complete_by_center

    def completed(entry: Entry) -> Entry:
        last, learned = [*entry.kernel.params][-1], {"LEARNED": f"{entry.kernel.doc}\n\n{LEARNED.format(asked)}"}
        kernel, own_call, stand_ins = learn, learn_whole, {Truth: inner.label, **learned}
        if entry.kind == "question":
            doc = re.sub(rf"\b{last}\b", "y", entry.kernel.doc)
            stand_ins = {Answer: entry.kernel.params[last], "ASKED": f"{doc}\n\n{asked}"}
            kernel, own_call = ask, ask_whole
        elif inner.label is None or entry.kind == "promise":
            kernel, own_call, stand_ins = learn_alone, learn_whole_alone, learned
        stand_ins = {own_call: substitute(entry.kernel, behind), **stand_ins}
        return replace(entry, kernel=substitute(kernel, stand_ins, alias=entry.kernel.name))

    entries = tuple(completed(entry) if entry.kernel in behind else entry for entry in inner.entries)
    return replace(inner, structs=structs, entries=entries, stand_ins=own)
