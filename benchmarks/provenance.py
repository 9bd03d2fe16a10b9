"""Where the results in docs/data come from, and whether what they measured is still what is there.

``docs/data/provenance.json`` has for each result of ``benchmarks/results.py`` the date and these digests:

script    the script and the benchmark modules that it imports.  Comments, docstrings and imports do not count, nor the
          modules that draw and fill pages (``SHOWING``), unless the result has figures.
code      the C of the models that are measured, without comments: moving a module of pykernel changes nothing.
bits      where no cost is measured: these models' revisions, and the bits of their answers and states after one stream.  Then
          C that computes the same changes nothing.
modules   the definitions of the Python modules that are measured, in any order: moving one changes nothing either.
reads     other results, of which this one is made.
outputs   the result's own files: a table that was edited is found.

seconds   how long it took.
"""

from __future__ import annotations

import ast
import datetime
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.bits import bits_of
from benchmarks.tables import alone
from pykernel.algorithms.revisions import revision_of
from pykernel.errors import UserError
from pykernel.files import whole_file
from pykernel.gen.model import model_code
from pykernel.language.c_text import tokens
from pykernel.parallel import ONE_THREAD
from pykernel.spec.model import Spec

ROOT = Path(__file__).parents[1]
PLUMBING = "benchmarks.tables"
"""How files are written: imported by every script, measures nothing."""
SAMPLES = 96
"""Of a stream for bits: a budget of 32 vectors is full for most of them."""
SHOWING = ("page", "figures")
"""Last words of the names of modules that show what others measured."""


KINDS = {
    **{"code": "the C of {}", "bits": "the bits of {}"},
    **{"modules": "{}", "reads": "{}", "outputs": "{} (by hand)"},
}
"""What a record has, and how a change of it is told."""


@dataclass(frozen=True)
class Result:
    """Some files in docs/data, and how they came about."""

    command: str  # of Python: "-m MODULE …" or "FILE …"
    outputs: tuple[str, ...]  # names in docs/data, or patterns; none if only a page is filled
    code: tuple[str, ...] = ()  # sets of models (``Tree.models``) that are measured
    modules: tuple[str, ...] = ()  # modules and packages of pykernel that are measured
    reads: tuple[str, ...] = ()  # names or patterns of other results' files
    cost: bool = False  # whether instructions, flash or seconds of these models are measured: then their C counts, not their bits
    timed: bool = False  # whether it measures seconds of this machine: then it is measured with nothing beside it


@dataclass(frozen=True)
class Tree:
    """Results, what they measure, and the folder that all of it lies in."""

    root: Path
    results: Mapping[str, Result]
    models: Mapping[str, Any]  # name -> function that makes specs

    @property
    def data(self) -> Path:
        return self.root / "docs" / "data"

    @property
    def records(self) -> Path:
        return self.data / "provenance.json"

    # ------------------------------------------------------------------------------------------------ digests

    def files(self, patterns: Iterable[str]) -> list[Path]:
        """The files that are meant.  Raises UserError if a pattern has none."""
        found: list[Path] = []
        for pattern in patterns:
            # a file of finished tasks is kept by nobody else
            there = sorted(path for path in self.data.glob(pattern) if path.is_file() and path.suffix != ".jsonl")
            if not there:
                raise UserError(f"docs/data has no {pattern}; benchmarks/results.py says that a script writes it")
            found += there
        return found

    def contents(self, patterns: Iterable[str]) -> dict[str, str]:
        return {p.relative_to(self.data).as_posix(): digest(p.read_bytes()) for p in self.files(patterns)}

    def script(self, result: Result) -> str:
        first, *words = result.command.split()
        start = self.root / (f"{words[0].replace('.', '/')}.py" if first == "-m" else first)
        figures = any(not output.endswith(".csv") for output in result.outputs) or not result.outputs
        seen: dict[Path, Python] = {}
        todo = [start]
        while todo:
            path = todo.pop()
            if path in seen or (path.stem.split("_")[-1] in SHOWING and not figures):
                continue
            seen[path] = python(path.read_bytes())
            for name in seen[path].imports:
                near = [path.parent / f"{name}.py", self.root / f"{name.replace('.', '/')}.py"]
                todo += [
                    p for p in near if name != PLUMBING and p.is_file() and not p.is_relative_to(self.root / "pykernel")
                ]
        return digest(repr(sorted(module.statements for module in seen.values())).encode())

    def modules(self, names: Iterable[str]) -> dict[str, str]:
        return {name: digest(repr(sorted(self._definitions(name))).encode()) for name in names}

    def _definitions(self, name: str) -> Iterator[str]:
        place = self.root / name.replace(".", "/")
        paths = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
        for path in paths:
            if not path.is_file():
                raise UserError(f"there is no module {name}; where it is now must be said in benchmarks/results.py")
            yield from python(path.read_bytes()).statements

    def now(self, result: Result, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The digests as they would be recorded now.  old: a record, to compare with; where its C is the same, its bits are,
        and none are computed where it has no bits, or where anything else, or a revision, makes it stale."""
        found = {
            "script": self.script(result),
            "code": {name: c_digest(self.models[name]) for name in result.code},
            "modules": self.modules(result.modules),
            "reads": self.contents(result.reads),
            "outputs": self.contents(result.outputs),
        }
        known = (old or {}).get("bits", {})
        changed = old is not None and any(old.get(kind, {}) != what for kind, what in found.items() if kind != "code")
        compared = [name for name in result.code if known.get(name)]
        raised = {name for name in compared if not known[name].startswith(revisions_digest(self.models[name]))}

        def bits(name: str) -> str:
            if old is None or not (
                changed or raised or old["code"][name] == found["code"][name] or not known.get(name)
            ):
                return bits_digest(self.models[name])
            return revisions_digest(self.models[name]) if name in raised else known.get(name, "")

        return found | {"bits": {} if result.cost else {name: bits(name) for name in result.code}}

    # ------------------------------------------------------------------------------------------------ records

    def recorded(self) -> dict[str, Any]:
        return json.loads(self.records.read_text(encoding="utf-8")) if self.records.is_file() else {}

    def record(self, name: str, seconds: int | None = None) -> None:
        """Write down that a result was measured today, and how long it took, if that is known."""
        entry: dict[str, Any] = {"command": self.results[name].command, "date": datetime.date.today().isoformat()}
        if seconds := seconds or self.seconds(name):
            entry["seconds"] = seconds
        entry |= {key: value for key, value in self.now(self.results[name]).items() if value}
        with alone("records"):
            records = {known: old for known, old in self.recorded().items() if known in self.results} | {name: entry}
            with whole_file(self.records) as file:
                file.write((json.dumps(dict(sorted(records.items())), indent=1) + "\n").encode())

    def seconds(self, name: str) -> int:
        """How long a result took when it was measured; 0 if nobody knows."""
        return int(self.recorded().get(name, {}).get("seconds", 0))

    def stale(self, name: str) -> list[str]:
        """What has changed since a result was measured; empty if nothing has."""
        old = self.recorded().get(name)
        if old is None:
            return ["it was never recorded"]
        try:
            new = self.now(self.results[name], old)
        except UserError as error:
            return [str(error)]
        why = ["the script"] if old["script"] != new["script"] else []
        for kind, say in KINDS.items():
            before, after = old.get(kind, {}), new[kind]
            if kind != "code" or not new["bits"]:
                why += [say.format(key) for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
        return [f"changed: {', '.join(why)}"] if why else []

    def remeasure(self, name: str) -> None:
        """Run the script with one thread of BLAS and OpenMP, and record that.  Raises UserError if it fails or leaves a file as it was.

        With more threads, results that train with BLAS have other last digits on a PC with another number of cores.
        """
        result, env = self.results[name], os.environ | {"PYTHONPATH": str(self.root)} | ONE_THREAD
        with alone("measuring", beside_others=not result.timed):
            began = time.time_ns()
            done = subprocess.run([sys.executable, *result.command.split()], cwd=self.root, env=env)
            seconds = round((time.time_ns() - began) / 1e9)
        if done.returncode != 0:
            raise UserError(f"{name}: python {result.command} failed; its record stays as it was")
        for path in self.files(result.outputs):
            if path.stat().st_mtime_ns < began:
                raise UserError(f"{name}: python {result.command} did not write {path.relative_to(self.root)}")
        self.record(name, seconds)

    def measured_once(self) -> dict[str, list[str]]:
        """What docs/records.md lists: the command of each record -> its files, or patterns."""
        page = self.root / "docs" / "records.md"
        rows = re.findall(r"^\| [\w-]+: `(.+?)` \|.*\| (.+?) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
        return {command: re.findall("`(.+?)`", files) for command, files in rows}

    def unclaimed(self) -> list[str]:
        """Files in docs/data that no result and no record has."""
        outputs = [*(result.outputs for result in self.results.values()), *self.measured_once().values()]
        claimed = {path for patterns in outputs for path in self.files(patterns)}
        there = {path for path in self.data.rglob("*") if path.is_file() and path.suffix != ".jsonl"}
        return sorted(path.relative_to(self.data).as_posix() for path in there - claimed - {self.records})


# ---------------------------------------------------------------------------------------------------- digests


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


class Python(NamedTuple):
    """What a module's text comes to."""

    statements: tuple[str, ...]
    imports: frozenset[str]  # names of modules that it may import, wherever it does


@functools.cache
def python(source: bytes) -> Python:
    names: set[str] = set()
    for node in ast.walk(module := ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return Python(tuple(filter(None, map(plain, module.body))), frozenset(names))


def plain(node: Any) -> str:
    """What a piece of Python does, as text: no comments, docstrings, imports; the same in all versions of Python."""
    if isinstance(node, list):
        return f"[{', '.join(filter(None, map(plain, node)))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    told = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    if told or isinstance(node, (ast.Import, ast.ImportFrom)):
        return ""
    fields = [(name, value) for name, value in ast.iter_fields(node) if value is not None and value != []]
    return f"{type(node).__name__}({', '.join(f'{name}={plain(value)}' for name, value in fields)})"


@functools.cache
def c_digest(models: Any) -> str:
    """Of the C of some models: their functions, numbers and memory, without comments."""
    return digest("\n".join(c_of(spec) for spec in models()).encode())


def revisions_digest(models: Any) -> str:
    """Of the revisions of some models' algorithms, for which longer streams speak than the one of the bits (tests/host/corpus.json)."""
    return digest(repr([[(each, revision_of(each)) for each in sorted(spec.algorithms)] for spec in models()]).encode())


@functools.cache
def bits_digest(models: Any) -> str:
    """The digest of the revisions, and one of what the models compute."""
    return f"{revisions_digest(models)} {digest(repr([bits_of(spec, SAMPLES) for spec in models()]).encode())}"


def c_of(spec: Spec) -> str:
    code = model_code(spec)
    lines = [f"{name} {value}" for name, value in spec.capacities.items() if value]
    lines += [f"{p['name']} {p['value']}" for p in (*code.parameters, *code.constants)]
    lines += [f"{t['declaration']} {t['text']}" for t in code.tables] + [slot["declaration"] for slot in code.slots]
    return " ".join(tokens("\n".join([*lines, *("\n".join(part) for part in code.printed.values())])))
