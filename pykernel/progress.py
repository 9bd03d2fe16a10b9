"""Show the progress of long tasks: as a bar on a terminal or in a notebook, and elsewhere as lines on standard error."""

from __future__ import annotations

import contextlib
import contextvars
import html
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from pykernel.errors import visible

Show = Callable[[float, str], None]
"""A function that is called with the amount of work done and the name of the step."""
PAUSE = 2.0
"""Seconds before progress is shown."""
BLINK = 0.5
"""Seconds between two updates of a notebook's bar."""


@contextlib.contextmanager
def bar(total: float | None = 1) -> Iterator[Show]:
    """Show a bar if standard error is a terminal, else use ``told_late``.  total: the total amount of work; None if it
    is not known.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    if not console.is_terminal:
        with told_late(total) as say:
            yield say
        return
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn()]
    columns += [TimeElapsedColumn(), TimeRemainingColumn()]
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda done, what: progress.update(task, completed=done, description=visible(what))


@contextlib.contextmanager
def told_late(total: float | None = 1, pause: float | None = None) -> Iterator[Show]:
    """Yield a function say(amount done, text) that shows progress.

    Nothing is shown for the first ``pause`` seconds (default ``PAUSE``).  After that, a notebook shows a bar with the
    newest text until the task ends.  Elsewhere the text is printed on standard error, with the percentage of work done
    if it is between 0 and 100 %.  The next text is printed after ``pause`` seconds or a tenth of the time so far,
    whichever is longer, so that long tasks print few lines.
    """
    display = _notebook()
    pause = PAUSE if pause is None else pause
    with _lines(pause) if display is None else _in_place(pause, display) as say:
        yield lambda amount, text: say(amount / total if total else 0.0, visible(text))


def _line(part: float, text: str) -> str:
    return f"{text} ({part:.0%})" if 0 < part < 1 else text


@contextlib.contextmanager
def _lines(pause: float) -> Iterator[Show]:
    started = time.monotonic()
    newest, printed, waiting = "", "", None

    def show() -> None:
        nonlocal printed, waiting
        printed, waiting = newest, None
        print(f"pykernel: {printed}", file=sys.stderr, flush=True)

    def say(part: float, text: str) -> None:
        nonlocal newest, waiting
        newest = _line(part, text)
        if waiting is None and newest != printed:
            waiting = threading.Timer(max(pause, (time.monotonic() - started) / 10), show)
            waiting.daemon = True
            waiting.start()

    try:
        yield say
    finally:
        if waiting is not None:
            waiting.cancel()


@contextlib.contextmanager
def _in_place(pause: float, display: Callable[..., Any]) -> Iterator[Show]:
    """Show progress in one output of a notebook's cell.  A thread updates the output, and clears it at the end."""
    started, ended = time.monotonic(), threading.Event()
    newest = (0.0, "")

    def show() -> None:
        handle, wait = None, pause
        while not ended.wait(wait):
            part, text = newest
            told = {"text/plain": _line(part, text), "text/html": _html(part, text, time.monotonic() - started)}
            if handle is not None:
                handle.update(told, raw=True)
            elif text:
                handle = display(told, raw=True, display_id=True)
            wait = BLINK
        if handle is not None:
            handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def say(part: float, text: str) -> None:
        nonlocal newest
        newest = part, text

    # run in a copy of the cell's context, in which Jupyter finds the cell that the output belongs to
    thread = threading.Thread(target=contextvars.copy_context().run, args=(show,), daemon=True)
    thread.start()
    try:
        yield say
    finally:
        ended.set()
        thread.join()


def _notebook() -> Callable[..., Any] | None:
    """Return Jupyter's ``display`` function, whose output can be changed later, or None outside a notebook."""
    # another thread may be importing IPython, which then has no function yet
    found = getattr(sys.modules.get("IPython"), "get_ipython", None)
    if found is None or getattr(found(), "kernel", None) is None:
        return None
    from IPython.display import display

    return display


def _html(part: float, text: str, seconds: float) -> str:
    """Return a bar as HTML.  If it is not known how much of the work is done, the bar moves back and forth."""
    known, told = (f' value="{part:.3f}"', f" {part:.0%}") if 0 < part <= 1 else ("", "")
    return f"<progress{known}></progress>{told} {html.escape(text)}, {seconds:.0f} s"


@contextlib.contextmanager
def working(title: str | None, steps: int = 1) -> Iterator[Callable[[], None]]:
    """Show progress, and yield the function to call after each step.

    Without a title, nothing is shown.
    """
    steps_done = TaskBar(title)
    steps_done.begin(steps, 0)
    try:
        yield steps_done.advance
    finally:
        steps_done.stop()


class TaskBar:
    """A progress bar that counts finished tasks (see ``bar``)."""

    def __init__(self, title: str | None, expect: int = 0) -> None:
        self.title, self.expect, self.total, self.done = title, expect, 0, 0
        self._shown = contextlib.ExitStack()
        self._say: Show | None = None

    def begin(self, tasks: int, done: int) -> None:
        """Add tasks to the bar.  tasks: number of tasks.  done: number of tasks that are already done."""
        self.total += tasks
        self.done += done
        if self.title is not None and self._say is None:
            self._say = self._shown.enter_context(bar())
        self._show()

    def _show(self) -> None:
        if self._say is not None:
            of = max(self.total, self.expect, 1)
            self._say(self.done / of, f"{self.title} {self.done:,} of {of:,}" if of > 1 else str(self.title))

    def advance(self) -> None:
        self.done += 1
        self._show()

    def stop(self) -> None:
        self._shown.close()
        self._say = None
