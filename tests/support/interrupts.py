"""Processes that tests interrupt: whatever runs the tests, and however slow it is.

CI that is started in the background ignores interrupts, and so would every process that it starts; and a process that is not
stopped on its way may have finished before its signal comes.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support import ROOT

PATIENCE = 300
"""Seconds that a machine under load may take, where it waits for a state."""
AS_USUAL = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


def start(*command, ignoring=False, **options):
    """A Python process with these arguments, which interrupts reach; or ``ignoring`` them, as in the background."""
    words = AS_USUAL.replace("SIG_DFL", "SIG_IGN") if ignoring else AS_USUAL
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-c", words, sys.executable, *map(str, command)], env=environment, **options
    )


def wait_until(state, process):
    """Until state() is true, for as long as the process is running."""
    limit = time.monotonic() + PATIENCE
    while not state():
        assert process.poll() is None, f"the process ended with {process.returncode} before it came that far"
        assert time.monotonic() < limit, "the process does not come that far"
        time.sleep(0.01)


def pause(folder):
    """Of the process: tell that it is there, and go on when ``signalled`` says so.  Its signals are handled meanwhile."""
    folder = Path(folder)
    (folder / "there").touch()
    limit = time.monotonic() + PATIENCE
    while not (folder / "go").exists():
        if time.monotonic() > limit:
            os._exit(99)
        time.sleep(0.01)


def signalled(process, how, folder, send=None):
    """Send the signal to a process that pauses, then let it go on."""
    folder = Path(folder)
    wait_until((folder / "there").exists, process)
    (send or process.send_signal)(how)
    (folder / "go").touch()


@contextlib.contextmanager
def interrupts():
    """In this process: interrupts are not ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
