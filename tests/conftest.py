"""Options, hypothesis profiles, and the engine of the tests."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest

# Numba takes ten seconds for each kind of model: it is asked for where it is what is tested
os.environ["PYKERNEL_ENGINE"] = "llvm"

# a busy machine is slow to draw examples, too
SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile(
    "default", max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=SLOW
)
hypothesis.settings.register_profile("exhaustive", max_examples=600, deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--exhaustive", action="store_true", help="run the full product instead of a covering selection")
    parser.addoption(
        "--update-golden", action="store_true", help="write runtime_c/golden anew, to be looked at as a diff"
    )
    parser.addoption("--cpu", action="store_true", help="CPU seconds of each room at the end, beside its budget")


def pytest_configure(config: pytest.Config) -> None:
    hypothesis.settings.load_profile("exhaustive" if config.getoption("--exhaustive") else "default")
    if config.getoption("--cpu"):
        from tests.support.cpu import CPU

        config.pluginmanager.register(CPU())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--exhaustive"):
        return
    for item in items:
        # not item.keywords: a parameter may be called so
        turns = item.get_closest_marker("in_turn")
        if item.get_closest_marker("exhaustive") or (turns and not _chosen(item, *turns.args)):
            item.add_marker(pytest.mark.skip(reason="runs with --exhaustive"))


def _chosen(item: Any, part: int = 2) -> bool:
    """Whether it is its turn: of the combinations, numbered by the sum of their positions, one in ``part`` runs."""
    lists = [mark.args[0] for mark in item.iter_markers("parametrize")]
    first = [(names.split(",")[0].strip() if isinstance(names, str) else names[0]) for names in lists]
    return sum(item.callspec.indices[name] for name in first) % part == 0


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
