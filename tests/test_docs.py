"""What the documentation says is what happens: its commands run, its numbers are those that the code gives."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from pykernel.cli import main
from pykernel.gen import build
from pykernel.gen.compilers import compile_c, find_compilers
from pykernel.spec import Spec, load_spec

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


@pytest.fixture
def tour(tmp_path, monkeypatch):
    """A folder with the tour's spec and some recorded data."""
    monkeypatch.chdir(tmp_path)
    Path("flow.toml").write_text(blocks("toml")[0], encoding="utf-8")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3))
    rows = ["temperature,pressure,valve,flow", *(f"{a:.4f},{b:.4f},{c:.4f},{np.sin(a) + b * c:.4f}" for a, b, c in x)]
    Path("recorded.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_the_tours_commands_run(tour, capsys):
    commands = [line for block in blocks("sh") for line in block.splitlines() if line.startswith("pykernel ")]
    assert [c.split()[1] for c in commands] == ["simulate", "check", "generate"]
    for command in commands:
        words = command.split("#")[0].split()[1:]
        with pytest.raises(SystemExit) as stopped:
            main([*words, "--json", *(["--samples", "2000"] if words[0] == "check" else [])])
        report = json.loads(capsys.readouterr().out)
        assert stopped.value.code == 0, report
    # and the C around it compiles, with the sizes that the text gives
    code = blocks("c")[0]
    ram = build(load_spec("flow.toml")).figures["ram_bytes"]
    assert f"{ram:,} bytes" in code
    Path("firmware.c").write_text(code)
    for c in find_compilers():
        compile_c(c, [Path("firmware.c")], Path("firmware.o"), ("-Iflow/src",), ("-c",))


def test_the_python_block_runs(tour):
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    exec(compile(blocks("python")[0], "README.md", "exec"), {"X": X, "y": np.sin(X[:, 0])})
    assert Path("flow/src/flow_model.c").is_file()


def test_the_demos_output_is_the_demos(tmp_path):
    from pykernel.demo import run_demo

    result = run_demo(tmp_path, progress=lambda *_: None)
    for row in result["accuracy"]:
        name, error, size = row["predictor"], f"{row['mae']:.1f}", f"{row['state_bytes']:,} B"
        assert re.search(rf"^ *{re.escape(name)} +{re.escape(error)} +{re.escape(size)}$", README, re.MULTILINE), name
    assert result["check"][0]["state_hash"] in README


def test_ci_runs_the_readmes_test_command():
    (command,) = [line for block in blocks("sh") for line in block.splitlines() if "pytest" in line]
    assert command in (ROOT / ".ci" / "run").read_text().splitlines()


def test_every_key_of_a_spec_is_documented_with_its_default():
    text = (ROOT / "docs" / "spec.md").read_text(encoding="utf-8")
    rows = {}
    for names, default in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| *([^|]*?) *\|", text, re.MULTILINE):
        rows |= dict.fromkeys(re.findall(r"\w+", names), default)
    for key, field in Spec.model_fields.items():
        section = next((kind for kind in get_args(field.annotation) if kind is not type(None)), field.annotation)
        if hasattr(section, "model_fields"):
            assert f"`[{key}]`" in text
            for inner, option in section.model_fields.items():
                assert inner in rows, f"[{key}] {inner}"
                if isinstance(option.default, bool):
                    assert rows[inner] == f"`{str(option.default).lower()}`", inner
                elif isinstance(option.default, (int, float)) and inner != "limit":
                    assert float(rows[inner].strip("`")) == option.default, inner
        else:
            assert key in rows, key


def test_links_lead_somewhere():
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
        for file in re.findall(r"`((?:tests|benchmarks|gen|pykernel|runtime_c)/[\w./]+)`", text):
            assert (ROOT / file).exists(), f"{page.name}: {file}"


def test_the_package_is_complete_when_installed(tmp_path):
    """Templates, C and data are in the wheel: everything that is read at run time."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, ROOT], check=True, capture_output=True
    )
    import zipfile

    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for folder, pattern, inside in (
        ("gen/templates", "*", "pykernel/gen/templates"),
        ("runtime_c", "*.h", "pykernel/runtime_c"),
        ("pykernel/data", "*.*", "pykernel/data"),
        ("targets", "*.[tchl]*", "pykernel/targets"),
        ("targets", "*.py", "pykernel/targets"),
        ("pykernel", "*.py", "pykernel"),
        ("gen", "*.py", "pykernel/gen"),
    ):
        for file in (ROOT / folder).glob(pattern):
            assert f"{inside}/{file.name}" in names, file
