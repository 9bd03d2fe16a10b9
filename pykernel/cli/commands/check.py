"""The command ``pykernel check``: does the C compute what the host computes?"""

from __future__ import annotations

from pykernel.cli import output
from pykernel.errors import CheckFailed
from pykernel.workflows.requests import Check


def check(given: Check, as_json: bool) -> None:
    from pykernel.workflows.check import run

    found = run(given)
    spec = found.spec
    read = given.watch.read if isinstance(given.watch, output.Printing) else None
    report = found.report | ({} if read is None else {"data": read})
    output.print_report(report, as_json, lambda _: output.show_document(found.page, verdict=found.ok))
    if not found.equal:
        raise CheckFailed(output.first_difference([*found.rows, *found.on_target, *found.witnesses]))
    if found.exceeded:
        large = any(" takes " in sentence for sentence in found.exceeded)
        smaller = "; a smaller [reduction] n_max takes less" if large and spec.has("reduction", "n_max") else ""
        raise CheckFailed("; ".join(found.exceeded) + smaller)
