"""Independent tasks on this machine's cores.  Results of finished tasks are kept and reused.

    def task(content, shared):        # a function of a module: workers import it
        return {"error": ...}

    with Workers(task, shared=(x, y), jobs=2, results="trials.jsonl", title="trials") as workers:
        coarse = workers.run([{"sigma": sigma} for sigma in (0.5, 1.0, 2.0)])
        fine = workers.run([{"sigma": sigma} for sigma in near(best(coarse))])

Results come in the order of the tasks and do not depend on where they were computed.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import importlib.metadata
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
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, overload

from pykernel.errors import UserError, option
from pykernel.files import kind, lock
from pykernel.progress import TaskBar

Task = Mapping[str, Any]
Function = Callable[[Task, Any], Any]
"""A function that is called with a task's content and the shared data; its result must be representable in JSON.

It must be a function of a module, without side effects.
"""

REPEATS = 2
"""So often tasks are done again whose worker process died, if none was finished since."""
MOST_PROCESSES = 1024
"""Most processes.  More processes do not get the pipes and semaphores that they need, on any machine."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def version() -> str:
    return importlib.metadata.version("pykernel-mcu")


def task_key(function: Function, content: Task, context: Any = None) -> str:
    """The key of a task's result: a digest of the function's name, the task's content, the context and our version."""
    meaning = [f"{function.__module__}.{function.__qualname__}", version(), context, content]
    return hashlib.sha256(json.dumps(meaning, sort_keys=True, default=_plain).encode()).hexdigest()[:32]


# --------------------------------------------------------------------------------------------------------- results


class Results:
    """Results of finished tasks, in memory and (given a path) in a file of JSON lines.

    Each task's line is written when the task finishes; it holds key, task, seconds and result.  An incomplete line is
    dropped when the file is opened again.  Raises UserError if the file is not of this kind, cannot be written, or is
    being written by another run.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.found: dict[str, Any] = {}
        self.path = Path(path) if path is not None else None
        self._file: Any = None
        self._whole = 0  # bytes of the file's complete lines
        self._new = False
        if self.path is None:
            return
        if self.path.exists() and not self.path.is_file():
            what = kind(self.path.stat().st_mode)
            raise UserError(f"{path}: cannot be written: is {what}, not a file; give another file for the results")
        new = not self.path.exists()
        try:
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}; give another file for the results") from None
        try:
            # without a name it was removed by a run that made it for nothing
            if lock(self._file.fileno()) is False or not os.fstat(self._file.fileno()).st_nlink:
                raise UserError(
                    f"{self.path}: is being written by another run; wait for that one, or give another file"
                )
            self._new = new
            self._read()
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        self._file.seek(0)
        with open(self._file.fileno(), "rb", closefd=False) as lines:
            for number, line in enumerate(lines, 1):
                try:
                    entry = json.loads(line)
                    key, result = entry["key"], entry["result"]
                except (ValueError, KeyError, TypeError, RecursionError):
                    if line.endswith(b"\n") or not line.startswith(b'{"key": "'[: len(line)]):
                        raise UserError(
                            f"{self.path}, line {number}: is not a task's result; give the results of an earlier run, or a new file"
                        ) from None
                    break
                if not line.endswith(b"\n"):
                    break
                self.found[key] = result
                self._whole += len(line)
        self._file.truncate(self._whole)

    def add(self, key: str, task: Task, result: Any, seconds: float) -> None:
        """Keep a result after a round trip through JSON.  So a new result equals the one that is read from the file."""
        entry = {"key": key, "task": task, "seconds": round(seconds, 4), "result": result}
        line = json.dumps(entry, default=_plain).encode() + b"\n"
        if self._file is not None:
            try:
                done = 0
                while done < len(line):  # a disk that is almost full may take only a part of the line
                    done += self._file.write(line[done:])
            except OSError as error:
                self._file.truncate(self._whole)
                raise UserError(f"{self.path}: cannot be written: {error.strerror}") from None
            self._whole += len(line)
        self.found[key] = json.loads(line)["result"]

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with file, contextlib.suppress(OSError):
                if self.path is not None and self._new and not self.found:  # it was made for nothing
                    self.path.unlink()


def _plain(value: Any) -> Any:
    """Python's numbers and lists for NumPy's scalars and arrays, which JSON cannot write."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a task's content and result must be what JSON can hold, not {type(value).__name__}")


# --------------------------------------------------------------------------------------------------------- workers


def checked_jobs(given: int | str | None) -> int | None:
    """A number of processes, which may be written as text.  Raises UserError."""
    text = str(given)
    if given is None:
        return None
    if not isinstance(given, bool) and text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_PROCESSES:
        return int(text)
    raise UserError(
        f"{option('jobs')} is {given!r}; it must be a number of processes from 1 to {MOST_PROCESSES:,}"
        + ("; there are no Dask clusters any more: give each machine a part of the data" if "://" in text else "")
    )


class Workers:
    """Runs tasks of one function, on processes of this machine.

    function: see ``Function``.  shared: what all tasks need, such as the data; sent to each worker once.
    jobs: a number of processes; if not given, the number of cores; with 1, tasks run in this process.
    results: a file of finished tasks, see ``Results``; tasks that are found there are not run again.
    context: what results depend on besides a task's content, such as a digest of the data; part of a task's key.
    title: the title of the bar, as ``progress.bar`` shows it; without a title there is no bar.
    expect: the total number of tasks, if it is known in advance and more than are run at once.

    An interrupt (or any exception) ends the workers at once.  Finished results are kept.  Processes are spawned: a
    script whose own functions are the tasks needs ``if __name__ == "__main__":``.

    What a worker was doing that dies is done again, up to ``REPEATS`` times.

    Raises UserError if jobs is no such number, or workers die again and again.
    """

    def __init__(
        self,
        function: Function,
        shared: Any = None,
        *,
        jobs: int | str | None = None,
        results: str | Path | None = None,
        context: Any = None,
        title: str | None = None,
        expect: int = 0,
    ) -> None:
        self.function, self.shared, self.context = function, shared, context
        self.jobs = checked_jobs(jobs) or cores()
        self.results = Results(results)
        self.computed = self.reused = 0
        """computed: the number of tasks that were run; reused: the number of tasks whose results were found."""
        self.seconds: dict[str, float] = {}
        """The key of each task that was run -> how long that took."""
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
        """End the workers; after an exception, without waiting for running tasks."""
        self._bar.stop()
        self._end.__exit__(kind, error, trace)
        self.results.close()

    def run(self, tasks: Sequence[Task], until: float = math.inf, least: int = 0) -> list[Any]:
        """The tasks' results, in the order of the tasks.

        Each result is kept as soon as it is there.  Equal tasks run once.
        until: a time of ``time.monotonic``.  Tasks that are unfinished then are given up, and their results are None.
        least: so many are waited for, nevertheless.
        """
        keys = [task_key(self.function, task, self.context) for task in tasks]
        wanted = dict(zip(keys, tasks, strict=True))
        missing = {key: task for key, task in wanted.items() if key not in self.results.found}
        self.reused += len(wanted) - len(missing)
        before = self.computed
        self._bar.begin(len(wanted), len(wanted) - len(missing))
        if self.jobs == 1:
            for key, task in missing.items():
                if time.monotonic() > until and len(wanted) - len(missing) + self.computed - before >= least:
                    break
                with whole_task():  # an interrupt waits, so that the task's result is kept
                    self._take(key, task, *_timed(self.function, task, self.shared))
        elif missing:
            self._run_elsewhere(missing, until, least - len(wanted) + len(missing))
        return [self.results.found.get(key) for key in keys]

    def finished(self, task: Task) -> Any:
        """The task's result; None if it has none yet."""
        return self.results.found.get(task_key(self.function, task, self.context))

    def took(self, task: Task) -> float:
        """How many seconds the task took; 0 if its result was found."""
        return self.seconds.get(task_key(self.function, task, self.context), 0.0)

    def _take(self, key: str, task: Task, result: Any, seconds: float) -> None:
        self.results.add(key, task, result, seconds)
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
                # it takes all that was running with it; a worker that was out of memory may find some the next time
                self._end_processes()
                repeated = 1 if self.computed > before else repeated + 1
                if repeated > REPEATS:
                    raise UserError(
                        "a worker process ended by itself, perhaps because memory was full; run the same again with fewer jobs"
                    ) from None
                left = {key: task for key, task in missing.items() if key not in self.results.found}
                wanted = least - len(missing) + len(left)
            else:
                break
        if not all(key in self.results.found for key in missing):
            self._end_processes()  # the next tasks get new ones

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
        """A function that submits a task to new processes."""
        executor = self._end.enter_context(_processes(self.jobs, self.function, self.shared))

        def submit(task: Task) -> Any:
            with _without_interrupts():
                return executor.submit(_call, self.function, task)

        return submit

    def _completed(self, futures: Any, until: float, least: int) -> Iterator[Any]:
        """The futures as they finish, until the time is over; but ``least`` of them."""
        if until == math.inf:
            yield from concurrent.futures.as_completed(futures)
        else:
            waiting = set(futures)
            while waiting and ((late := len(futures) - len(waiting) < least) or time.monotonic() < until):
                left = None if late else max(0.0, until - time.monotonic())
                done, waiting = concurrent.futures.wait(waiting, left, concurrent.futures.FIRST_COMPLETED)
                yield from done


class _Process(SpawnProcess):
    """A spawned process that does not run the user's script again: in a script without ``if __name__ == "__main__":`` it would begin
    the whole work anew, and so would its own processes.
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
    """How processes begin.  Where the function or the data are of the script itself, the script has to be imported."""
    with contextlib.suppress(Exception):  # what cannot be pickled is said when it is sent
        if function.__module__ != "__main__" and b"__main__" not in pickle.dumps(shared):
            return _Context()
    return multiprocessing.get_context("spawn")


@contextlib.contextmanager
def _processes(count: int, function: Function, shared: Any) -> Iterator[concurrent.futures.Executor]:
    """Processes with shared data; an exception ends them at once."""
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
    """Threads of this process, one for each core, for work outside of the interpreter: compilers and machine code.

    An exception in the block, such as an interrupt, ends them soon: calls that wait are not started, programs that
    ``run_program`` has started are killed, and ``go_on`` raises.
    """

    def __init__(self) -> None:
        self._pool = concurrent.futures.ThreadPoolExecutor(cores(), initializer=self._begin)
        self._calls: list[concurrent.futures.Future[Any]] = []
        self.programs: set[subprocess.Popen[str]] = set()
        self.ended = threading.Event()

    def _begin(self) -> None:
        _here.threads = self

    def start(self, function: Callable[..., Any], *args: Any) -> concurrent.futures.Future[Any]:
        """Call the function in one of the threads.  Calls begin in the order in which they were given."""
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
    """For long calls in ``Threads``: raises CancelledError if the threads are to end."""
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
    """Run a program to its end, and take what it prints.  Within ``Threads`` it is killed with all that it has started
    when they end.  The same happens after ``timeout`` seconds; then the result is None.
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
    """A compiler's driver alone would leave the compiler itself behind."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(program.pid, signal.SIGKILL)
        else:
            program.kill()


# ------------------------------------------------------------------------------------------------- in the workers

_shared: Any = None


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Block interrupts in this thread, and in processes that it starts until ``_begin`` ignores interrupts there.

    Ctrl-C goes to all processes of a terminal.  A process that is still importing would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(shared: Any) -> None:
    """Start of a new process: keep the shared data, ignore interrupts (the parent handles them), end with the
    parent.
    """
    global _shared
    _shared = shared
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
    """An interrupt or SIGTERM waits for the end of the task; a second one does not wait.

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
    """While a thread is inside, linear algebra uses one thread.  So its sums do not depend on the number of threads."""

    def __init__(self) -> None:
        self.lock, self.inside = threading.Lock(), 0
        self.limits: Any = None
        self.found: tuple[int, Any] | None = None

    def __enter__(self) -> None:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

        with self.lock:
            if not self.inside:
                # looking for libraries takes milliseconds; new ones come with new modules
                if self.found is None or self.found[0] != len(sys.modules):
                    controller = ThreadpoolController()
                    self.found = len(sys.modules), controller
                self.limits = self.found[1].limit(limits=1)
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                self.limits.restore_original_limits()


one_thread = _OneThread()


def _handlers() -> dict[int, Any]:
    """The Python functions that handle SIGINT and SIGTERM.

    Empty outside of the main thread, which alone handles signals.
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
