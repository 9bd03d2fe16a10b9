"""The command ``pykernel basis``: a basis chosen from many rows, as a spec for the device."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from pykernel.cli.output import print_report, show_document, warn
from pykernel.errors import UserError
from pykernel.workflows.requests import Basis


def basis(given: Basis, as_json: bool) -> None:
    from pykernel.workflows.basis import run

    if given.output is None and given.save is None:
        raise UserError("nothing is to be written; give --output SPEC, --save NPZ, or both")
    with stopped_by_sigterm():
        found = run(given)
    print_report(found.report, as_json, lambda _: show_document(found.page))
    warn(*found.report["warnings"])


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Within the block, SIGTERM has the effect of Ctrl-C: the current vector is finished, and the progress is kept."""
    before = signal.getsignal(signal.SIGTERM)
    if before != signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        yield
        return
    # also if interrupts are ignored, as in a background job
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
