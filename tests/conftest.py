"""Options, hypothesis profiles, and the engine of the tests."""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.support.tools import Missing

# Numba takes seconds for each kind of model: it is asked for where it is what is tested
os.environ.setdefault("PYKERNEL_ENGINE", "llvm")
# small matrices: threads of linear algebra wait for one another, with the CPU that other tests need.  Before NumPy is there
for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(threads, "1")
# hundreds of commands are started: byte code pays
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# twenty thousand tests and the modules of River and scikit-learn: going through them takes a third of a second
gc.set_threshold(100_000, 20, 20)

ROOT = Path(__file__).resolve().parent.parent
ROTATED = {False: 30, True: 2}
"""Whether a test has the mark "exhaustive" -> functions whose turn it is beside a commit.  The first take 0.3 CPU seconds, the others
5 (docs' examples up to 60)."""
EVERY_COMMIT = (
    *("tests/gate/", "tests/algorithms/", "tests/dialect/", "tests/engine/"),
    *("tests/gen/test_golden", "tests/gen/test_random_specs", "tests/gen/test_selftest", "tests/host/test_identity"),
)
"""What runs beside every commit.  Of the rest each commit runs every other test function, drawn by its hash; a night runs all."""
# a busy machine is slow to draw examples, too
SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "default", max_examples=3, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW
)
# fresh examples each time; what fails is kept, and tried first the next time
FOUND = DirectoryBasedExampleDatabase(ROOT / "build" / "found")
hypothesis.settings.register_profile(
    "exhaustive", max_examples=600, deadline=None, derandomize=False, database=FOUND, print_blob=True
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="run the full product instead of a covering selection")
    parser.addoption("--third", type=int, choices=range(3), help="run one third of what would run: a night's share")
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew, to be looked at as a diff")
    parser.addoption("--missing", metavar="FILE", help="write which tests each missing tool cost")
    parser.addoption("--cpu", action="store_true", help="CPU seconds of each room at the end, beside its budget")


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("exhaustive" if config.getoption("--exhaustive") else "default")
    config.pluginmanager.register(Missing(config.getoption("--missing")))
    if config.getoption("--cpu"):
        from tests.support.cpu import CPU

        config.pluginmanager.register(CPU())


def pytest_collection_finish() -> None:
    """All modules and tests are there to stay: no collection of garbage goes through them again."""
    # Hypothesis asks the collector who holds NumPy's random numbers, which it does not tell of what is frozen
    hypothesis.find(hypothesis.strategies.none(), lambda _: True)
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (third := config.getoption("--third")) is not None:
        shares = [int(hashlib.sha256(item.nodeid.encode()).hexdigest(), 16) % 3 for item in items]
        config.hook.pytest_deselected(items=[each for each, share in zip(items, shares, strict=True) if share != third])
        items[:] = [item for item, share in zip(items, shares, strict=True) if share == third]
    if config.getoption("--exhaustive"):
        return
    in_turn: dict[str, list[Any]] = {}
    waiting: list[pytest.Item] = []
    for item in items:
        # not item.keywords: a parameter may be called so
        if item.get_closest_marker("exhaustive"):
            waiting.append(item)
        elif item.get_closest_marker("in_turn"):
            in_turn.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for combinations in in_turn.values():
        waiting += _others(combinations)
    # of a run of all tests: what is named on the command line is all that runs
    if {Path(each).resolve() for each in config.args} == {ROOT / each for each in config.getini("testpaths")}:
        turn = commit()
        taken = set(in_its_turn(waiting, turn))
        waiting = [item for item in waiting if item not in taken]
        chosen = {*taken, *waiting}
        waiting += left_out([item for item in items if item not in chosen], turn)
    # not skipped: eight thousand reports of skips take half a minute
    config.hook.pytest_deselected(items=waiting)
    wait = set(waiting)
    items[:] = [item for item in items if item not in wait]


def commit() -> str:
    """The hash of what is checked out; nothing outside of a repository."""
    try:
        told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    except OSError:
        return ""
    return told.stdout.strip()


def left_out(items: list[Any], turn: str) -> list[Any]:
    """What does not run beside this commit, though it is not of the exhaustive suite."""

    def drawn(nodeid: str) -> bool:
        return bool(hashlib.sha256(f"{turn} {nodeid.partition('[')[0]}".encode()).digest()[0] % 2)

    return [item for item in items if turn and not item.nodeid.startswith(EVERY_COMMIT) and drawn(item.nodeid)]


def in_its_turn(waiting: list[Any], turn: str) -> list[Any]:
    """What runs of the exhaustive suite beside this commit, at the size of any run: some test functions, with one combination
    of each.  So what is red there does not stay unseen until the nightly run."""

    def rank(name: str) -> bytes:
        return hashlib.sha256(f"{turn} {name}".encode()).digest()

    functions: dict[str, list[Any]] = {}
    for item in waiting if turn else ():
        if (mark := item.get_closest_marker("exhaustive")) and mark.args:
            continue  # takes minutes
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    found = []
    for exhaustive, most in ROTATED.items():
        names = [n for n, items in functions.items() if exhaustive == bool(items[0].get_closest_marker("exhaustive"))]
        chosen = sorted(names, key=rank)[:most]
        found += [min(functions[name], key=lambda item: rank(item.nodeid)) for name in chosen]
    return found


def _others(combinations: list[Any]) -> list[Any]:
    """Those that wait where one in ``part`` combinations runs: the next to run is the one whose values ran least so far."""
    arguments = combinations[0].get_closest_marker("in_turn").args
    part = arguments[0] if arguments else 18
    # pytest's callspec.indices number combinations, not values; all combinations of a test share their values
    values = {item: [(name, id(value)) for name, value in item.callspec.params.items()] for item in combinations}
    runs: Counter[tuple[str, int]] = Counter()
    for _ in range(-(-len(combinations) // part)):
        chosen = min(combinations, key=lambda item: sum(runs[value] for value in values[item]))
        runs.update(values[chosen])
        combinations.remove(chosen)
    return combinations


@pytest.fixture(scope="session")
def exhaustive(pytestconfig: pytest.Config) -> bool:
    """Whether to check everything, for tests that scale."""
    return bool(pytestconfig.getoption("--exhaustive"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str, str]]:
    """Run the command with some arguments: (exit code, standard output, standard error)."""
    from pykernel.cli.app import main

    def run(*arguments: str) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(arguments)
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


@pytest.fixture
def one_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Only the first compiler found, as with $CC: where the compilers are not what is tested."""
    from pykernel.gen.compilers import find_compilers

    find_compilers.cache_clear()
    monkeypatch.setenv("CC", " ".join(find_compilers()[0].command))
    find_compilers.cache_clear()
    yield
    monkeypatch.undo()
    find_compilers.cache_clear()


@pytest.fixture
def one_build(one_compiler: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that check the C build it once, at -O2, and a record tries two faults: where neither compilers nor levels
    nor the evidence are what is tested."""
    from pykernel.gen import check, coverage

    monkeypatch.setattr(check, "check", functools.partial(check.check, levels=("-O2",)))
    monkeypatch.setattr(coverage, "MOST_FAULTS", 2)
