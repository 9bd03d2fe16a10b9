"""How often the loops turn that the C of one model marks: for a bound of a call's instructions."""

from __future__ import annotations

from dataclasses import dataclass

from pykernel.gen.model import made_up_number, model_code
from pykernel.gen.primitives import CLEARING_LOOPS, LEARNED_LOOPS, written_loops
from pykernel.gen.ranges import most_turns
from pykernel.gen.rehearsal import rehearsal_loops
from pykernel.spec.model import Spec


@dataclass(frozen=True)
class FlowFacts:
    """How often loops turn at most, by the numbers of their marks.

    within: (loop, loop in its body) -> turns of the inner one for each time the outer one is begun; of a loop and itself,
    its own turns.  in_all: public function -> loop -> turns in one call.
    """

    within: dict[tuple[int, int], int]
    in_all: dict[str, dict[int, int]]


def flow_facts(spec: Spec) -> FlowFacts:
    """The facts of a model's C: those of the algorithms by intervals, those of what is written by hand from its text."""
    code, program = model_code(spec), spec.program
    names = {entry.kernel.name: entry.name for entry in code.entries}
    roots = [*names, made_up_number(spec).name]
    turns = most_turns(code.functions, roots, spec.config, spec.capacities, spec.real)
    number = code.printer.loops
    within = {(number[outer], number[inner]): most for (outer, inner), most in turns.within.items()}
    in_all = {
        names[root]: {number[loop]: most for loop, most in turned.items()}
        for root, turned in turns.in_all.items()
        if root in names
    }
    written = written_loops(spec.dim, program.hashed_bytes(code.layout), spec.real)
    written |= rehearsal_loops(spec, code.layout)
    for i, slot in enumerate(code.layout.slots):
        for axis, size in enumerate(slot.shape):
            written |= {first + 2 * i + axis: size for first in (CLEARING_LOOPS, LEARNED_LOOPS)}
    return FlowFacts(within | {(loop, loop): most for loop, most in written.items()}, in_all)
