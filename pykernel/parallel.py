"""Run independent tasks on this machine's cores.  The results of finished tasks are kept in memory and reused.

    def task(content, shared):        # must be defined at module level, because workers import this function
        return {"error": ...}

    with Workers(task, shared=(x, y), jobs=2, title="trials") as workers:
        coarse = workers.run([{"sigma": sigma} for sigma in (0.5, 1.0, 2.0)])
        fine = workers.run([{"sigma": sigma} for sigma in near(best(coarse))])

Results are returned in the order of the tasks, and are the same for any number of processes.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import json
import math
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType, TracebackType
from typing import Any, overload

from pykernel.errors import UserError, shown_option
from pykernel.progress import TaskBar

Task = Mapping[str, Any]
Function = Callable[[Task, Any], Any]
"""A function that is called with a task's content and the shared data.  The result of the function must be representable in JSON.

The function must be defined at module level, and must not have side effects.
"""

REPEATS = 2
"""If a worker process dies, the unfinished tasks are run again, but at most this many times in a row without progress."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment of a worker: one thread for linear algebra, because more threads than cores would mostly wait for each other."""
MOST_PROCESSES = 1024
"""Largest number of processes that a user may ask for."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def task_key(content: Task) -> str:
    """Return the key under which a task's result is kept: the task's content as JSON."""
    return json.dumps(content, sort_keys=True, default=_plain)


def _plain(value: Any) -> Any:
    """Convert NumPy scalars and arrays, which JSON cannot hold, to Python numbers and lists."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a task's content and result must be values that JSON can hold, not {type(value).__name__}")


# --------------------------------------------------------------------------------------------------------- workers


def checked_jobs(jobs: int | str | None) -> int | None:
    """Return the number of processes as an int, or None if ``jobs`` is None.

    jobs: a number or its text.  Raises UserError if ``jobs`` is not a number from 1 to MOST_PROCESSES.
    """
    text = str(jobs)
    if jobs is None:
        return None
    if not isinstance(jobs, bool) and text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PROCESSES:
        return int(text)
    raise UserError(
        f"{shown_option('jobs')} is {jobs!r}; it must be a number of processes from 1 to {MOST_PROCESSES:,}"
    )


class Workers:
    """Runs tasks in processes on this machine.  All tasks call the same function.

    function: see ``Function``.  shared: data that all tasks need; each worker receives the data once.
    jobs: the number of processes, by default the number of cores.  If jobs is 1, tasks run in this process.
    title: the title of the progress bar (see ``progress.bar``); without a title there is no bar.
    expect: the total number of tasks in all calls of ``run``, if it is known in advance.

    An interrupt (or any exception) ends the workers at once.  Processes are spawned, so a
    script that defines the task's function needs ``if __name__ == "__main__":``.

    If a worker dies, the unfinished tasks are run again, up to ``REPEATS`` times without progress.

    Raises UserError if jobs is invalid, or if workers keep dying.
    """

    def __init__(
        self,
        function: Function,
        shared: Any = None,
        *,
        jobs: int | str | None = None,
        title: str | None = None,
        expect: int = 0,
    ) -> None:
        self.function, self.shared = function, shared
        self.jobs = checked_jobs(jobs) or cores()
        self.results: dict[str, Any] = {}
        """Key of a finished task -> the task's result."""
        self.computed = 0
        """The number of tasks that were run."""
        self.seconds: dict[str, float] = {}
        """Key of a task that was run -> the seconds that the task took."""
        self._submit: Callable[[Task], Any] | None = None
        self._end = contextlib.ExitStack()
        self._bar = TaskBar(title, expect)
        self.after: Callable[[], None] = self._bar.advance
        """Called after each task that was run."""

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers.  After an exception, do not wait for running tasks."""
        self._bar.stop()
        self._end.__exit__(kind, error, trace)

    def run(self, tasks: Sequence[Task], until: float = math.inf, least: int = 0) -> list[Any]:
        """Run tasks, and return their results in the order of the tasks.

        Each result is kept as soon as it is known.  Equal tasks run once.
        until: the time, by ``time.monotonic``, at which unfinished tasks are abandoned; their results are None.
        least: the number of tasks that must be finished even after ``until``.
        """
        keys = [task_key(task) for task in tasks]
        wanted = dict(zip(keys, tasks, strict=True))
        missing = {key: task for key, task in wanted.items() if key not in self.results}
        before = self.computed
        self._bar.begin(len(wanted), len(wanted) - len(missing))
        if self.jobs == 1:
            for key, task in missing.items():
                if time.monotonic() > until and len(wanted) - len(missing) + self.computed - before >= least:
                    break
                with whole_task(), one_thread:  # an interrupt is delayed, so that the task's result is kept
                    self._take(key, task, *_timed(self.function, task, self.shared))
        elif missing:
            self._run_elsewhere(missing, until, least - len(wanted) + len(missing))
        return [self.results.get(key) for key in keys]

    def finished(self, task: Task) -> Any:
        """Return the task's result; None if the task is not finished."""
        return self.results.get(task_key(task))

    def took(self, task: Task) -> float:
        """Return the seconds that the task took; 0 if it was not run."""
        return self.seconds.get(task_key(task), 0.0)

    def _take(self, key: str, task: Task, result: Any, seconds: float) -> None:
        # converted to JSON and back, so that a result is the same whether this process or a worker computed it
        self.results[key] = json.loads(json.dumps(result, default=_plain))
        self.seconds[key] = seconds
        self.computed += 1
        self.after()

    def _run_elsewhere(self, missing: Mapping[str, Task], until: float, least: int) -> None:
        left, wanted, repeated = dict(missing), least, 0
        while left:
            before = self.computed
            try:
                self._run_there(left, until, wanted)
            except BrokenProcessPool:
                # all running tasks are lost; if a worker ran out of memory, there may be enough memory the next time
                self._end_processes()
                repeated = 1 if self.computed > before else repeated + 1
                if repeated > REPEATS:
                    raise UserError(
                        "a worker process ended unexpectedly, perhaps because the memory was full; try again with fewer jobs"
                    ) from None
                left = {key: task for key, task in missing.items() if key not in self.results}
                wanted = least - len(missing) + len(left)
            else:
                break
        if not all(key in self.results for key in missing):
            self._end_processes()  # abandoned tasks may still be running; the next call starts new processes

    def _run_there(self, missing: Mapping[str, Task], until: float, least: int) -> None:
        self._submit = self._submit or self._on_processes()
        futures = {self._submit(task): key for key, task in missing.items()}
        for future in self._completed(futures, until, least):
            key = futures[future]
            self._take(key, missing[key], *future.result())

    def _end_processes(self) -> None:
        self._submit = None
        self._end.__exit__(TimeoutError, TimeoutError(), None)

    def _on_processes(self) -> Callable[[Task], Any]:
        """Start processes, and return a function that submits a task to them."""
        executor = self._end.enter_context(_processes(self.jobs, self.function, self.shared))

        def submit(task: Task) -> Any:
            with _without_interrupts(), _environment(ONE_THREAD):
                return executor.submit(_call, self.function, task)

        return submit

    def _completed(self, futures: Any, until: float, least: int) -> Iterator[Any]:
        """Yield the futures as they finish, until the time ``until`` has passed and at least ``least`` of them have finished."""
        if until == math.inf:
            yield from concurrent.futures.as_completed(futures)
        else:
            waiting = set(futures)
            while waiting and ((late := len(futures) - len(waiting) < least) or time.monotonic() < until):
                left = None if late else max(0.0, until - time.monotonic())
                done, waiting = concurrent.futures.wait(waiting, left, concurrent.futures.FIRST_COMPLETED)
                yield from done


class _Process(SpawnProcess):
    """A spawned process that does not run the user's script again.

    A script without ``if __name__ == "__main__":`` would otherwise start all its work again in each process, endlessly.
    """

    @staticmethod
    def _Popen(process: Any) -> Any:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process)  # type: ignore[attr-defined]
        finally:
            sys.modules["__main__"] = main


class _Context(SpawnContext):
    Process = _Process  # type: ignore[assignment]


def _context(function: Function, shared: Any) -> SpawnContext:
    """Return the context that starts processes.  A process imports the user's script only if the function or the data need it."""
    with contextlib.suppress(Exception):  # an object that cannot be pickled is reported later, when the object is sent
        if function.__module__ != "__main__" and b"__main__" not in pickle.dumps(shared):
            return _Context()
    return multiprocessing.get_context("spawn")


@contextlib.contextmanager
def _processes(count: int, function: Function, shared: Any) -> Iterator[concurrent.futures.Executor]:
    """Start processes with shared data.  An exception in the block ends the processes at once."""
    others = multiprocessing.active_children()
    executor = concurrent.futures.ProcessPoolExecutor(count, _context(function, shared), _begin, (shared,))
    try:
        yield executor
    except BaseException:
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


# ------------------------------------------------------------------------------------------------------- threads

_here = threading.local()


class Threads:
    """Threads of this process, one for each core, for calls that run outside the interpreter, in compilers or machine code.

    An exception in the block, such as an interrupt, ends the threads soon: calls that have not begun are dropped, programs
    that ``run_program`` has started are killed, and ``go_on`` raises.
    """

    def __init__(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(cores(), initializer=self._begin)
        self._calls: list[concurrent.futures.Future[Any]] = []
        self.programs: set[subprocess.Popen[str]] = set()
        self.ended = threading.Event()

    def _begin(self) -> None:
        _here.threads = self

    def start(self, function: Callable[..., Any], *args: Any) -> concurrent.futures.Future[Any]:
        """Call the function in one of the threads.  Calls begin in the order in which they were submitted."""
        self._calls.append(self._pool.submit(function, *args))
        return self._calls[-1]

    def __enter__(self) -> Threads:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.ended.set()
            self._pool.shutdown(wait=False, cancel_futures=True)
            while not all(call.done() for call in self._calls):
                for program in list(self.programs):
                    _kill(program)
                time.sleep(0.01)
        self._pool.shutdown()


def go_on() -> None:
    """Raise CancelledError if the caller runs in ``Threads`` that an exception has ended.

    Code that runs for a long time in ``Threads`` should call this function from time to time.
    """
    threads = getattr(_here, "threads", None)
    if threads is not None and threads.ended.is_set():
        raise concurrent.futures.CancelledError


@overload
def run_program(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]: ...


@overload
def run_program(
    words: Sequence[str], environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str] | None: ...


def run_program(
    words: Sequence[str], environment: Mapping[str, str], timeout: float | None = None
) -> subprocess.CompletedProcess[str] | None:
    """Run a program to its end, and capture its output.

    Within ``Threads``, the program and its children are killed if an exception ends the threads.  If the program takes
    more than ``timeout`` seconds, the program and its children are killed, and the result is None.
    """
    threads = getattr(_here, "threads", None)
    known = set() if threads is None else threads.programs
    pipe, apart = subprocess.PIPE, (threads is not None or timeout is not None) and hasattr(os, "killpg")
    with subprocess.Popen(
        words, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=apart
    ) as program:
        known.add(program)
        try:
            out, err = program.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _kill(program)
            program.communicate()
            return None
        except BaseException:
            _kill(program) if apart else program.kill()
            raise
        finally:
            known.discard(program)
    go_on()
    return subprocess.CompletedProcess(words, program.returncode, out, err)


def _kill(program: subprocess.Popen[str]) -> None:
    """Kill a program and its children.  If only a compiler driver were killed, its compiler would keep running."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(program.pid, signal.SIGKILL)
        else:
            program.kill()


# ------------------------------------------------------------------------------------------------- in the workers

_shared: Any = None


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold back interrupts in this thread during the block, and in processes started in the block until they run ``_begin``.

    Ctrl-C is sent to all processes of a terminal, and a process that is still importing modules would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _environment(more: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that start in the block, except those that the user has set."""
    new = {name: value for name, value in more.items() if name not in os.environ}
    os.environ.update(new)
    try:
        yield
    finally:
        for name in new:
            del os.environ[name]


def collect_seldom() -> None:
    """Collect garbage rarely: scanning the many small, long-lived objects of typed programs would take a tenth of a plan's time."""
    gc.set_threshold(100_000, 20, 20)


def _begin(shared: Any) -> None:
    """Prepare a new process: keep the shared data, ignore interrupts (the parent handles them), and end when the parent ends."""
    global _shared
    _shared = shared
    collect_seldom()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _timed(function: Function, task: Task, shared: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    return function(task, shared), time.perf_counter() - start


@contextlib.contextmanager
def whole_task() -> Iterator[None]:
    """Delay an interrupt or SIGTERM until the task ends.  A second signal is not delayed.

    A signal handler that raises within compiled code can crash the process.  A signal that is ignored, such as the
    interrupt of a background job, stays ignored.
    """
    before = _handlers()
    came: list[int] = []

    def wait(number: int, frame: Any) -> None:
        came.append(number)
        _handle(before)

    _handle(dict.fromkeys(before, wait))
    try:
        yield
    finally:
        _handle(before)
    for number in came:
        before[number](number, None)


class _OneThread(contextlib.ContextDecorator):
    """Within the block, linear algebra uses one thread, so that results do not depend on the number of threads."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.limits: list[Any] = []
        self.module_count = 0  # number of imported modules when libraries were last searched for
        self.libraries: Any = None

    def __enter__(self) -> None:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

        with self.lock:
            # searching for libraries takes milliseconds, and only a new module can load a new library
            if new := self.module_count != len(sys.modules):
                self.module_count, self.libraries = len(sys.modules), ThreadpoolController()
            if new or not self.inside:
                self.limits.append(self.libraries.limit(limits=1))
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            while self.limits and not self.inside:
                self.limits.pop().restore_original_limits()


one_thread = _OneThread()


def _handlers() -> dict[int, Any]:
    """Return the Python functions that handle SIGINT and SIGTERM.

    In threads other than the main thread, the result is empty, because only the main thread handles signals.
    """
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = (signal.SIGINT, signal.SIGTERM)
    return {number: handler for number in numbers if callable(handler := signal.getsignal(number))}


def _handle(handlers: Mapping[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _call(function: Function, task: Task) -> tuple[Any, float]:
    return _timed(function, task, _shared)
