"""Pages of a paper: what the quick command of a test module's ``COMMAND`` leaves."""

import pytest

from benchmarks import tables


@pytest.fixture(scope="module")
def quick(request, tmp_path_factory, exhaustive):
    """The quick results, their folder, and the words of the command."""
    if not exhaustive:
        pytest.skip("runs with --exhaustive")
    folder = tmp_path_factory.mktemp("paper")
    words = ["--quick", "--jobs", "1", "-o", str(folder)]
    request.module.COMMAND.main(words)
    return {path.stem: tables.load(path) for path in folder.glob("*.csv")}, folder, words
