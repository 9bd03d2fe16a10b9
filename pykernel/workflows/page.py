"""Make a page in which a model predicts and learns recorded rows, with figures from the report of ``pykernel simulate``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pykernel.errors import CheckFailed
from pykernel.files import need_free
from pykernel.report.document import Found, Sentence, document_of_parts
from pykernel.request.kinds import words
from pykernel.workflows.arguments import write_file
from pykernel.workflows.check import check
from pykernel.workflows.models import spec_and_memory
from pykernel.workflows.requests import Page
from pykernel.workflows.simulate import simulate
from pykernel.workflows.simulated import Simulated

if TYPE_CHECKING:
    from pykernel.spec.model import Spec

FIGURES = ("Errors", "Level and alarms", "Answers", "Bytes by part")
"""The sections of a simulation's report that the page shows."""


def run(request: Page) -> Found:
    """Run ``pykernel page``.  The result names the file and its size."""
    from pykernel.host.samples import read_rows
    from pykernel.rows.columns import Columns

    spec, out, data, seen = spec_and_memory(request.model)[0], Path(request.output), str(request.data), Columns()
    need_free(out, data, request.force)
    with request.watch.progress() as show:
        show(0, "reading")
        x, y = read_rows(spec, data, seen)
        read = seen.report()
        request.watch.data(read)
        show(0.1, "compiling and simulating")
        text, simulated = living_page(spec, x, y, words(request.target))
    write_file(out, text)
    report = {
        "output": str(out),
        "rows": len(x),
        "bytes": len(text.encode()),
        "advice": simulated.report.get("advice", []) if simulated else [],
        "data": read,
    }
    said = "{output}: {rows:,} rows, {bytes:,} bytes; open it in a browser".format_map(report)
    return Found(
        report,
        document_of_parts(
            Sentence(said), *(Sentence(f"advice: {each}") for each in (simulated.advice if simulated else ()))
        ),
    )


def living_page(
    spec: Spec, x: np.ndarray, y: np.ndarray | None, target: Sequence[str] = (), beside: Mapping[str, str] | None = None
) -> tuple[str, Simulated | None]:
    """Return the text of the page, and the simulation of the rows (None if the model predicts labels but gets none).

    x, y: inputs and labels from ``read_rows``; y is None without labels.  target: emulated CPUs on which the model learns the same
    rows, so that the page can show instructions, bounds and hashes.  beside: hashes from other machines.
    Raises CheckFailed if a CPU computes different bytes.
    """
    from pykernel.gen.streams import as_taken
    from pykernel.targets.page import make_page, need_page

    stream = as_taken(spec, x, y)
    need_page(spec, *stream)
    simulated: Simulated | None = None
    labelled = spec.inner.program.label_kind != "none"
    if not labelled or stream[1].size:  # a frozen model of a signal gets no labels, so its errors are unknown
        of_one_device = simulate(spec, (x, y if labelled else None))
        assert isinstance(of_one_device, Simulated)
        simulated = of_one_device
    figures = simulated.page.figures(*FIGURES) if simulated else []
    hashes = dict(beside or {})
    if target:
        checked = check(spec, target=target, stream=stream)
        if not checked.equal:
            raise CheckFailed(f"no page is made: {checked!r}")
        figures += checked.page.figures("Instructions of one call")
        hashes |= {f"an emulated {row['target']}": row["state_hash"] for row in checked.rows}
    return make_page(spec, *stream, beside=hashes, figures=figures), simulated
