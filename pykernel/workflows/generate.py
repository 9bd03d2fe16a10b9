"""Generate a model's C project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pykernel.errors import UserError, did_you_mean, shown_option
from pykernel.request.kinds import words
from pykernel.request.option import function
from pykernel.workflows.models import need_ram, spec_and_memory
from pykernel.workflows.requests import Generate

if TYPE_CHECKING:
    from pykernel.gen.project import Generated


def run(request: Generate) -> Generated:
    """Write a model as a C project.  If an estimator is given, the device starts from the estimator's learned state."""
    from pykernel.gen.project import generate
    from pykernel.gen.write import EXTRAS, starts_learned

    spec, own = spec_and_memory(request.model, request.name)
    also = words(request.for_)
    for each in also:
        if each not in EXTRAS:
            remedy = did_you_mean(each, EXTRAS, f"the extras are {', '.join(EXTRAS)}; other toolchains need no extra")
            raise UserError(f"{shown_option('for_')} {each} is not known; {remedy}")
    need_ram(spec)
    if request.start is not None:
        if request.memory is not None or own is not None:
            raise UserError(
                "the argument start is for a model that has learned nothing yet, but this model has learned; leave the argument out"
            )
        from pykernel.host.start import started  # slow to load

        own = started(spec, request.start, request.watch)
    memory = own if request.memory is None else request.memory
    if memory is None and not request.force and starts_learned(Path(request.output), spec.name):
        raise UserError(
            f"{request.output}: the project has a learned state, which would be lost; give {shown_option('start')} with this state again, or "
            f"{shown_option('force')} for a device that has learned nothing"
        )
    return generate(spec, request.output, memory=memory, force=request.force, also=also)


generate = function(Generate, run)
