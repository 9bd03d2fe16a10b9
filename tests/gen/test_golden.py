"""The checked-in examples of generated code: a change in the generator shows as a diff.

After a deliberate change: pytest tests/gen/test_golden.py --update-golden, then read `git diff tests/golden`.
"""

import re
import subprocess
from pathlib import Path

import pytest

from pykernel.dialect.types import FLOAT32, FLOAT64
from pykernel.gen.compilers import compile_c, find_compilers
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.language.c_text import number, tokens
from pykernel.spec.model import load_spec, make_spec
from tests.support import ROOT
from tests.support.harness import DIVISIONS, SANITIZERS
from tests.support.tools import need

GOLDEN = ROOT / "tests" / "golden"
GOLDENS = sorted(path.stem for path in GOLDEN.glob("*.toml"))
"""The defaults for a number, classes and alarms and in int16, and a model of the papers."""


def project_of(name):
    """pressure starts from what it learned of a made-up stream, the others from nothing."""
    spec = load_spec(GOLDEN / f"{name}.toml")
    if name != "pressure":
        return build(spec)
    model = HostModel(spec)
    model.prequential(*mixed_stream(spec, 300))
    return build(spec, model.memory)


def found_in(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", GOLDENS)
def test_generated_code_is_the_golden_one(name, pytestconfig):
    project = project_of(name)
    files = {path: text.encode() for path, text in project.files.items()} | project.start
    folder = GOLDEN / name
    if pytestconfig.getoption("--update-golden"):
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
        for path in set(found_in(folder)) - set(files):
            (folder / path).unlink()
    found = found_in(folder)
    assert sorted(found) == sorted(files)
    for path, content in files.items():
        assert found[path] == content, f"{name}/{path} differs; see this file's first lines"


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("name", GOLDENS)
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_examples_run_under_sanitizers(compiler, name, tmp_path):
    """The self-test and the first program: no undefined behaviour, and no division by zero, which stops some builds."""
    need(compiler)
    src = GOLDEN / name / "src"
    sources = [str(path) for path in (*src.glob("*.c"), GOLDEN / name / "examples" / "main.c")]
    program = tmp_path / "run"
    subprocess.run([compiler, "-std=c99", *SANITIZERS, DIVISIONS, f"-I{src}", *sources, "-o", program], check=True)
    run = subprocess.run([program], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]


@pytest.mark.exhaustive
@pytest.mark.parametrize("golden", GOLDENS)
@pytest.mark.in_turn(18)
def test_a_name_of_any_length_makes_the_same_code(golden, tmp_path, exhaustive):
    """Long names make long lines, which are broken: what is code stays code, and compiles."""
    content = load_spec(GOLDEN / f"{golden}.toml").model_dump(exclude_unset=True)
    lengths = range(1, 31, 1 if exhaustive else 7)
    names = ["temperature_control_valve_01xyz"[:length].replace("_", "n") for length in lengths]
    codes, sources = {}, []
    for name in (*names, "temperature_control_valve_01xyz"):
        for path, text in build(make_spec(content | {"name": name})).files.items():
            if path.startswith("src/"):
                (tmp_path / Path(path).name).write_text(text)
                sources += [tmp_path / Path(path).name] if path.endswith(".c") else []
                plain = re.sub(
                    rf"(\b|(?<=pykernel_)){name}(?=_|\.h\b| {{)", "x", re.sub(rf"\b{name.upper()}_", "X_", text)
                )
                plain = re.sub(r"(?<=_STAMP )(!= )?0x\w+", "", plain)  # names count in it
                codes.setdefault(path.replace(name, "x"), set()).add(" ".join(tokens(plain)))
    assert {path: len(found) for path, found in codes.items()} == dict.fromkeys(codes, 1)
    compile_c(find_compilers()[0], sources, tmp_path / "none", ("-fsyntax-only",), ())


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0f"), (-0.0, "-0.0f"), (0.1, "0.1f"), (2.0, "2.0f"), (-999999.94, "-999999.94f"), (1e6, "1e+06f"),
        (104857600.0, "1.048576e+08f"), (1e-4, "1e-04f"), (1.00001e-4, "0.000100001f"), (2.0**-149, "1e-45f"),
    ],
)  # fmt: skip
def test_literals_are_the_same_with_every_numpy(value, text):
    """NAME_CONFIG_HASH has them, and NumPy's str() has not always put the exponent at the same sizes."""
    assert number(value, FLOAT32) == text
    assert number(value, FLOAT64) == repr(value)
