"""The command ``pykernel check``: does the C compute what the host computes?"""

from __future__ import annotations

from functools import partial

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.workflows.requests import Check


def check(given: Check, as_json: bool) -> None:
    from pykernel.workflows.check import run

    found = run(given)
    spec = found.spec
    read = given.watch.read if isinstance(given.watch, output.Printing) else None
    if as_json:
        output.print_json(found.report | ({} if read is None else {"data": read}))
    else:
        shown = (
            output.print_board
            if given.board
            else output.print_targets
            if given.target
            else partial(output.print_check, learns=spec.program.learns)
        )
        shown(found.rows)
        output.print_loads(found.loads)
        if found.on_target:
            output.print_targets(found.on_target)
        output.print_engines(found.engine, found.witnesses)
        output.print_sizes(found.figures, found.simple_bytes)
    if not found.equal:
        raise CheckFailed(output.first_difference([*found.rows, *found.on_target, *found.witnesses]))
    if found.exceeded:
        large = any(" takes " in sentence for sentence in found.exceeded)
        smaller = "; a smaller [reduction] n_max takes less" if large and spec.has("reduction", "n_max") else ""
        raise CheckFailed("; ".join(found.exceeded) + smaller)
