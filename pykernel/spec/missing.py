"""The key [input] missing, which selects the values that replace missing inputs."""

from __future__ import annotations

from typing import Any

from pykernel.algorithms.missing import with_stand_ins
from pykernel.dialect.program import Program
from pykernel.spec.family import Refuse

WORDS = {"mean": "its mean", "hold": "its latest value"}
"""Value of the key -> a phrase for the value that replaces a missing input."""


def choice(spec: Any) -> str:
    """Return the value of the key: "refuse", "mean" or "hold"."""
    return str(getattr(spec.input, "missing", "refuse"))


def around(spec: Any, program: Program) -> Program:
    """Return the program, with an additional stage for missing inputs if the spec replaces them."""
    chosen = choice(spec)
    return program if chosen == "refuse" else with_stand_ins(program, WORDS[chosen])


def validate(spec: Any, refuse: Refuse) -> None:
    """If a spec replaces missing inputs, refuse it if it has a signal stage, or if it needs the mean and the mean is not known."""
    chosen = choice(spec)
    if chosen == "refuse":
        return
    if spec.signal is not None:
        refuse(
            "[input] missing",
            f'is "{chosen}", but [signal] accepts only complete raw rows; report a missing row with NAME_gap, and leave this key out',
        )
    if chosen == "mean" and not spec.standardises and spec.scaling[0] is None:
        known = "standardise = true or center" if "standardise" in type(spec.input).model_fields else "center"
        refuse("[input] missing", f'is "mean", but the mean is not known; add {known}')
