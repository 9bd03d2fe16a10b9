"""Find the lines of a model's C code that the self-test runs, and the inserted faults that it detects.  gcov counts the lines."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pykernel.errors import CheckFailed
from pykernel.gen.compilers import Compiler, compile_c, write_sources
from pykernel.gen.project import Project
from pykernel.parallel import Threads

MAIN = """#include "{name}.h"
static {name}_t model;
int main(void) {{ return {name}_selftest(&model) == {macro}_DONE ? 0 : 1; }}
"""
FAULTS = {
    "+": "-",
    "-": "+",
    "*": "+",
    "+=": "-=",
    "-=": "+=",
    "<": ">=",
    ">": "<=",
    "<=": ">",
    ">=": "<",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
}
"""C operator -> the operator with which a fault replaces it."""
OPERATOR = re.compile(f"(?<= )({'|'.join(map(re.escape, FAULTS))})(?= )")
MOST_FAULTS = 40
"""At most this many faults are tried.  They are spread evenly over the file."""
SECOND, MOST_SECONDS = 1, 30
"""Limits of a self-test's CPU time in seconds, because a fault may make a loop endless: usually, and if a model is too large for that."""


@dataclass(frozen=True)
class Coverage:
    """Line numbers in NAME.c.

    reached: the lines that the self-test runs, or in which it detects the inserted fault.  missed: number of each of the
    other examined lines -> its text.
    """

    reached: tuple[int, ...]
    missed: dict[int, str]

    @property
    def lines(self) -> int:
        """The number of examined lines."""
        return len(self.reached) + len(self.missed)

    def __str__(self) -> str:
        """Return text for VALIDITY.md: the count of reached lines, and the numbers of the missed lines."""
        left = ", ".join(map(str, self.missed))
        return f"{len(self.reached)} of {self.lines}" + (f", but not {left}" if left else "")

    @property
    def part(self) -> float:
        """The fraction of lines that is reached, from 0 to 1."""
        return len(self.reached) / self.lines


def selftest_coverage(project: Project, compiler: Compiler) -> Coverage | None:
    """Build NAME.c for gcov, run only NAME_selftest, and find the lines that it runs.

    Returns None if the compiler is not gcc, if gcov or a shell is missing, or if gcov fails.
    Raises CheckFailed if the C code does not compile, or if the self-test fails.
    """
    if compiler.name != "gcc" or not (shutil.which("gcov") and shutil.which("sh")):
        return None
    name, code = project.spec.name, _code(project)
    with tempfile.TemporaryDirectory(prefix="pykernel-") as made:
        folder = Path(made)
        if not _passes(project, compiler, folder, code, MOST_SECONDS, "--coverage"):
            raise CheckFailed(f"{name}_selftest fails in a build for gcov")
        data = next(folder.glob(f"*{name}.gcda"))
        completed = subprocess.run(
            ["gcov", "--json-format", "--stdout", data.name], cwd=folder, capture_output=True, text=True
        )
    if completed.returncode != 0 or not completed.stdout:
        return None
    runs: dict[int, int] = {}
    for file in json.loads(completed.stdout.splitlines()[0])["files"]:
        if Path(file["file"]).name == f"{name}.c":
            for line in file["lines"]:
                number = line["line_number"]
                runs[number] = max(runs.get(number, 0), line["count"])
    return _coverage(code, {line: count > 0 for line, count in sorted(runs.items())})


def noticed_faults(project: Project, compiler: Compiler, lines: Sequence[int]) -> Coverage:
    """Insert faults, one at a time, into these lines of NAME.c, and find out which faults the self-test detects.

    A fault is a replaced operator (see ``FAULTS``).  Only lines of the model's functions get a fault, and each line gets
    at most one.  A fault is detected if the self-test fails, crashes, or does not end.
    """
    code = _code(project)
    end = next(i for i, line in enumerate(code) if f"uint32_t {project.spec.name}_hash(const" in line)
    sites = [
        (line, place)
        for line in lines
        if line <= end
        for place in itertools.islice(OPERATOR.finditer(code[line - 1]), 1)
    ]

    with tempfile.TemporaryDirectory(prefix="pykernel-") as made:
        limit = SECOND if _passes(project, compiler, Path(made), code, SECOND) else MOST_SECONDS

    def unnoticed(line: int, place: re.Match[str]) -> bool:
        before, after = place.span()
        faulty = [*code]
        faulty[line - 1] = code[line - 1][:before] + FAULTS[place[0]] + code[line - 1][after:]
        with tempfile.TemporaryDirectory(prefix="pykernel-") as folder:
            return _passes(project, compiler, Path(folder), faulty, limit)

    with Threads() as threads:
        tried = {site[0]: threads.start(unnoticed, *site) for site in sites[:: -(-len(sites) // MOST_FAULTS) or 1]}
        return _coverage(code, {line: not each.result() for line, each in tried.items()})


def _code(project: Project) -> list[str]:
    return project.files[f"src/{project.spec.name}.c"].splitlines()


def _coverage(code: Sequence[str], reached: Mapping[int, bool]) -> Coverage:
    missed = {line: code[line - 1].strip() for line, well in reached.items() if not well}
    return Coverage(tuple(line for line, well in reached.items() if well), missed)


def _passes(project: Project, compiler: Compiler, folder: Path, code: Sequence[str], limit: int, *flags: str) -> bool:
    """Compile this text of NAME.c, and return whether its self-test passes within a limit of CPU time in seconds."""
    name = project.spec.name
    more = {"pk_main.c": MAIN.format(name=name, macro=name.upper()), f"{name}.c": "\n".join(code)}
    sources = write_sources(folder, project.sources | more)
    compile_c(compiler, sources, folder / "run", ("-O0", "-w", *flags, "-I", str(folder)), ())
    return (
        subprocess.run(["sh", "-c", f"ulimit -t {limit}; exec ./run"], cwd=folder, capture_output=True).returncode == 0
    )
