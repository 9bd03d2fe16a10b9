"""[input] missing: what stands in for missing inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pykernel.algorithms.missing import with_stand_ins
from pykernel.dialect.program import Program
from pykernel.spec.family import Refuse

if TYPE_CHECKING:
    from pykernel.spec.base import Spec

WORDS = {"mean": "its mean", "hold": "its latest value"}
"""Choice -> words for what stands in."""


def choice(spec: Spec) -> str:
    """What becomes of a sample with a missing input: refuse, mean or hold."""
    return str(getattr(spec.input, "missing", "refuse"))


def around(spec: Spec, program: Program) -> Program:
    """The program, with samples completed before anything else if the spec says so."""
    chosen = choice(spec)
    return program if chosen == "refuse" else with_stand_ins(program, WORDS[chosen])


def size_bound(spec: Spec) -> int:
    """About how many numbers the memory holds for it, from above."""
    return 4 * spec.dim if spec.completes else 0


def validate(spec: Spec, refuse: Refuse) -> None:
    """Refuse stand-ins that are not known."""
    chosen = choice(spec)
    if chosen == "refuse":
        return
    if spec.signal is not None:
        refuse(
            "[input] missing",
            f'is "{chosen}", and a raw row of [signal] is taken whole or is a gap, which NAME_gap tells the model; leave it out',
        )
    if chosen == "mean" and not spec.standardises and spec.scaling[0] is None:
        known = "standardise = true or center" if "standardise" in type(spec.input).model_fields else "center"
        refuse("[input] missing", f'is "mean", which must be known; add {known}')
