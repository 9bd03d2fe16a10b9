"""Which lines of a model's C the self-test runs, by gcov."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pykernel.errors import CheckFailed
from pykernel.gen.compilers import Compiler, compile_c, write_sources
from pykernel.gen.project import Project

MAIN = """#include "{name}.h"
static {name}_t model;
int main(void) {{ return {name}_selftest(&model) == {macro}_DONE ? 0 : 1; }}
"""


@dataclass(frozen=True)
class Coverage:
    """Coverage of NAME.c.

    lines: how many lines have code.  unexecuted: number and text of each line that the self-test does not run.
    """

    lines: int
    unexecuted: tuple[tuple[int, str], ...]

    def __str__(self) -> str:
        """Text for VALIDITY.md: how many lines are run, and the numbers of the lines that are not."""
        left = ", ".join(str(number) for number, _ in self.unexecuted)
        return f"{self.lines - len(self.unexecuted)} of {self.lines}" + (f", but not {left}" if left else "")

    @property
    def part(self) -> float:
        """The fraction of the lines that is run, from 0 to 1."""
        return 1 - len(self.unexecuted) / self.lines


def selftest_coverage(project: Project, compiler: Compiler) -> Coverage | None:
    """Build NAME.c for gcov, run only NAME_selftest, and count lines.  None if this compiler has no gcov.

    Raises CheckFailed if the C does not compile, or if the self-test fails.
    """
    if compiler.name != "gcc" or shutil.which("gcov") is None:
        return None
    name = project.spec.name
    with tempfile.TemporaryDirectory(prefix="pykernel-") as made:
        folder = Path(made)
        main = {"pk_main.c": MAIN.format(name=name, macro=name.upper())}
        sources = write_sources(folder, project.sources | main)
        compile_c(compiler, sources, folder / "run", ("-O0", "--coverage", "-I", str(folder)), ())
        if subprocess.run([str(folder / "run")], cwd=folder).returncode != 0:
            raise CheckFailed(f"{name}_selftest fails in a build for gcov")
        data = next(folder.glob(f"*{name}.gcda"))
        found = subprocess.run(
            ["gcov", "--json-format", "--stdout", data.name], cwd=folder, capture_output=True, text=True
        )
        if found.returncode != 0 or not found.stdout:
            return None
        code = project.files[f"src/{name}.c"].splitlines()
        runs: dict[int, int] = {}
        for file in json.loads(found.stdout.splitlines()[0])["files"]:
            if Path(file["file"]).name == f"{name}.c":
                for line in file["lines"]:
                    number = line["line_number"]
                    runs[number] = max(runs.get(number, 0), line["count"])
    return Coverage(len(runs), tuple((n, code[n - 1].strip()) for n, count in sorted(runs.items()) if count == 0))
