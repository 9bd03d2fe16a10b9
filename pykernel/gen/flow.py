"""Compute upper bounds on the iteration counts of the marked loops in a model's C code.

The bound on the instructions of a call is computed from these bounds.
"""

from __future__ import annotations

from pykernel.gen.model import model_code
from pykernel.language.primitives import LEARNED_LOOPS, written_loops
from pykernel.language.ranges import Turns, most_turns
from pykernel.spec.model import Spec


def flow_facts(spec: Spec) -> Turns:
    """Return the bounds for a model's C code.  A loop is identified by the number of its mark, and a public function by
    its name.

    The bounds of the algorithms' loops are computed with intervals (``language.ranges``).  The bounds of loops in
    hand-written C code are known constants.
    """
    code, program = model_code(spec), spec.program
    names = {entry.kernel.name: entry.name for entry in code.entries}
    turns = most_turns(code.functions, list(names), spec.config, spec.capacities, spec.real)
    number = code.printer.loops
    within = {
        number[outer]: {number[inner]: most for inner, most in inside.items()} for outer, inside in turns.within.items()
    }
    in_all = {
        names[root]: {number[loop]: most for loop, most in turned.items()}
        for root, turned in turns.in_all.items()
        if root in names
    }
    written = written_loops(spec.dim, program.hashed_bytes(code.layout), code.layout.nbytes, spec.real)
    for i, slot in enumerate(code.layout.slots):
        for axis, size in enumerate(slot.shape):
            written[LEARNED_LOOPS + 2 * i + axis] = size
    return Turns(within | {loop: {loop: (most,)} for loop, most in written.items()}, in_all)
