"""The checked-in examples of generated code: a change in the generator shows as a diff.

After a deliberate change: pytest tests/test_golden.py --update-golden, then read `git diff runtime_c/golden`.
"""

from pathlib import Path

import pytest

from pykernel.gen import build, mixed_stream
from pykernel.host import HostModel
from pykernel.spec import load_spec

GOLDEN = Path(__file__).parents[1] / "runtime_c" / "golden"


def project_of(name):
    """flow starts from nothing; pressure from what it learned of a made-up stream."""
    spec = load_spec(GOLDEN / f"{name}.toml")
    if name != "pressure":
        return build(spec)
    model = HostModel(spec)
    model.run(*mixed_stream(spec, 300))
    return build(spec, model.memory)


@pytest.mark.parametrize("name", ["flow", "level", "monitor", "pressure"])
def test_generated_code_is_the_golden_one(name, pytestconfig):
    files = project_of(name).files
    folder = GOLDEN / name
    if pytestconfig.getoption("--update-golden"):
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    found = {str(p.relative_to(folder)): p.read_text(encoding="utf-8") for p in folder.rglob("*") if p.is_file()}
    assert sorted(found) == sorted(files)
    for path, text in files.items():
        assert found[path] == text, f"{name}/{path} differs; see this file's first lines"
