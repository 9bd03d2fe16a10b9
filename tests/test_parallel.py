"""Tasks on processes: the same results everywhere, nothing done twice."""

import contextlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pykernel import parallel
from pykernel.errors import UserError
from pykernel.parallel import Workers
from tests.support import ROOT, interrupts
from tests.support.tools import needs

TASKS = [{"n": n, "scale": scale} for n in range(7) for scale in (0.1, 1 / 3)]


def work(task, shared):
    """Depends on every bit of its task and of what is shared."""
    if task.get("mark"):
        with open(task["mark"], "a") as file:
            file.write(f"{task['n']}\n")
    if task.get("seconds"):
        time.sleep(task["seconds"])
    while task.get("endless"):
        time.sleep(1)
    return {
        "sum": float((shared * task.get("scale", 1.0)).sum() + task["n"]),
        "array": np.arange(task["n"]),
        "nan": float("nan"),
    }


def die(task, shared):
    os._exit(7)


def die_once(task, shared):
    """The first two that are tried take their workers with them."""
    if task["n"] < 2:
        mark = Path(task["folder"]) / str(task["n"])
        if not mark.exists():
            mark.touch()
            os._exit(7)
    return task["n"]


def fail(task, shared):
    raise ZeroDivisionError(f"task {task['n']}")


SHARED = np.random.default_rng(0).normal(size=100)


def bits(results):
    return json.dumps(results)


@pytest.fixture(scope="module")
def reference():
    with Workers(work, SHARED, jobs=1) as workers:
        return bits(workers.run(TASKS))


def test_processes_give_what_this_process_gives_in_the_tasks_order(reference):
    with Workers(work, SHARED, jobs=2) as workers:
        # slowest first: order of finishing is not order of tasks
        slow = [{**TASKS[0], "seconds": 0.3}]
        assert bits(workers.run(slow + TASKS)[1:]) == reference
        assert bits(workers.run(TASKS[::-1])[::-1]) == reference
        assert workers.computed == len(TASKS) + 1


# ------------------------------------------------------------------------------------------------- interrupted


@pytest.mark.parametrize("jobs", [1, 2])
def test_tasks_that_are_late_are_given_up_with_their_processes(tmp_path, jobs):
    """But for so many as are wanted in any case; and there are new processes, if there is more to do."""
    before = multiprocessing.active_children()
    marks, now = tmp_path / "marks", time.monotonic()
    many = [{"n": 0, "mark": str(marks), "seconds": 0.2}, *({"n": n, "endless": jobs > 1} for n in (1, 2)), {"n": 3}]
    with Workers(work, SHARED, jobs=jobs) as workers:
        assert workers.run(many[1:3], now) == [None, None]
        first, *others = workers.run(many, now, 1)
        assert first["sum"] == SHARED.sum() and others == [None] * 3
        assert multiprocessing.active_children() == before
        assert None not in workers.run(many[:1] + many[3:]) and marks.read_text() == "0\n"
        assert None not in workers.run(TASKS[:4], time.monotonic() + 3600)


LEFT = """
import concurrent.futures, sys, time
from pykernel.parallel import Threads, go_on, run_program

def native():
    while True:
        go_on()
        time.sleep(0.01)

try:
    with Threads() as threads:
        child = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
        grandchild = f"open({sys.argv[1]!r}, 'w').write('.'); import time; time.sleep(3600)"
        calls = [threads.start(run_program, [sys.executable, "-c", child, grandchild], {})] + [
            threads.start(native) for _ in range(64)
        ]
        concurrent.futures.wait(calls)
except KeyboardInterrupt:
    print(sum(call.done() for call in calls))
"""


@needs("/proc")
def test_an_interrupt_ends_threads_and_all_that_their_programs_have_started(tmp_path):
    run = interrupts.start("-c", LEFT, tmp_path / "runs", stdout=subprocess.PIPE, text=True)
    interrupts.wait_until(lambda: (tmp_path / "runs").exists(), run)
    found = subprocess.run(["pgrep", "-f", str(tmp_path / "runs")], capture_output=True, text=True).stdout.split()
    assert len(found) == 3  # this one, the child and the grandchild
    run.send_signal(signal.SIGINT)
    assert run.communicate(timeout=interrupts.PATIENCE)[0] == "65\n" and run.returncode == 0
    deadline = time.monotonic() + interrupts.PATIENCE
    while any(Path(f"/proc/{pid}").exists() for pid in found) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not [pid for pid in found if Path(f"/proc/{pid}").exists()]


SCRIPT = """
import sys
import numpy as np
from pykernel.parallel import Workers
from tests.test_parallel import SHARED, work

if __name__ == "__main__":
    with Workers(work, SHARED, jobs=2) as workers:
        workers.run([{"n": n, "mark": sys.argv[1], "endless": n >= 10} for n in range(300)])
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_a_run_ends_its_workers_end(tmp_path, how):
    script, marks = tmp_path / "run.py", tmp_path / "marks"
    script.write_text(SCRIPT)
    run = interrupts.start(script, marks, stderr=subprocess.DEVNULL, start_new_session=True)
    # ten are finished, and each worker is at work on one that has no end
    interrupts.wait_until(lambda: marks.exists() and marks.read_text().count("\n") == 12, run)
    if how is signal.SIGINT:  # as a terminal does: to all of them
        os.killpg(run.pid, how)
    else:
        run.send_signal(how)
    run.wait(interrupts.PATIENCE)

    deadline = time.monotonic() + interrupts.PATIENCE
    while _alive(run.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not _alive(run.pid) and marks.read_text().count("\n") == 12


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_signals_that_are_handled_wait_for_the_tasks_end_and_others_stay_ignored():
    def handle(number, frame):
        calls.append(number)

    calls = []
    for number in (signal.SIGINT, signal.SIGTERM):
        before = signal.signal(number, handle)
        try:
            with parallel.whole_task():
                signal.raise_signal(number)
                assert calls == []
            assert calls.pop() == number and signal.getsignal(number) is handle
            with parallel.whole_task():
                signal.raise_signal(number)
                signal.raise_signal(number)  # the second does not wait
                assert calls.pop() == number
            assert calls.pop() == number
            signal.signal(number, signal.SIG_IGN)
            with parallel.whole_task():
                assert signal.getsignal(number) == signal.SIG_IGN
                signal.raise_signal(number)
            assert calls == []
        finally:
            signal.signal(number, before)


def _alive(session):
    """Processes of a session that are still running."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(stat.parent.name)
    return found


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_task_that_fails_ends_the_run_and_keeps_the_others(jobs):
    with pytest.raises(ZeroDivisionError, match="task 3"), Workers(mixed, jobs=jobs) as workers:
        workers.run([{"n": n} for n in range(3)])
        workers.run([{"n": n} for n in range(3, 40)])
    assert [workers.finished({"n": n}) for n in range(4)] == [0, 1, 2, None]


def mixed(task, shared):
    return fail(task, shared) if task["n"] == 3 else task["n"]


# ------------------------------------------------------------------------------------------------------ bad input


class Beginning:
    """Knows whether interrupts were blocked where it was unpickled, before a worker could ignore them."""

    blocked = None

    def __setstate__(self, state):
        self.blocked = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    def __getstate__(self):
        return {"any": 1}


def began(task, shared):
    return [shared.blocked, signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])]


PLAIN = """
from pykernel.parallel import Workers
from tests.test_parallel import SHARED, work

print("begun", flush=True)
with Workers(work, SHARED, jobs=2) as workers:
    print(len(workers.run([{"n": 1}, {"n": 2}])), "results")
"""
OWN = """
from pykernel.parallel import Workers

def double(task, shared):
    return shared * task["n"]

if __name__ == "__main__":
    with Workers(double, 3, jobs=2) as workers:
        print(workers.run([{"n": 1}, {"n": 2}]))
"""


@pytest.mark.parametrize(("script", "told"), [(PLAIN, "begun\n2 results\n"), (OWN, "[3, 6]\n")], ids=["plain", "own"])
def test_workers_do_not_run_a_script_again_that_guards_nothing(tmp_path, script, told):
    """A script with the task's function has to be imported there, as Python's own processes do."""
    (tmp_path / "script.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, tmp_path / "script.py"], env=environment, capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, told), done.stderr


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows")
def test_an_interrupt_does_not_reach_workers_that_are_still_starting():
    with Workers(began, Beginning(), jobs=2) as workers:
        assert workers.run([{"n": n} for n in range(4)]) == [[True, False]] * 4
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_what_a_worker_did_that_dies_is_done_again(tmp_path):
    tasks = [{"n": n, "folder": str(tmp_path)} for n in range(6)]
    with Workers(die_once, jobs=2) as workers:
        assert workers.run(tasks) == list(range(6)) and workers.computed == 6


def test_bad_workers_are_told_in_one_sentence(monkeypatch, tmp_path):
    with pytest.raises(UserError, match="jobs is 0; it must be a number of processes from 1 to 1,024"):
        Workers(work, jobs=0)
    with pytest.raises(UserError, match="jobs is 9999999999; it must be a number of processes from 1 to 1,024"):
        Workers(work, jobs=9_999_999_999)
    with pytest.raises(UserError, match="a worker process ended unexpectedly"), Workers(die, jobs=2) as workers:
        workers.run([{"n": 0}])
    with (
        pytest.raises(TypeError, match="values that JSON can hold, not set"),
        Workers(returns_a_set, jobs=1) as workers,
    ):
        workers.run([{}])


def returns_a_set(task, shared):
    return {1, 2}
