"""Write the results of a check to the project that was checked."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pykernel.dialect import Memory
from pykernel.errors import UserError, shown_option
from pykernel.files import read_plain
from pykernel.gen.check import Report
from pykernel.gen.compilers import find_compilers
from pykernel.gen.coverage import noticed_faults, selftest_coverage
from pykernel.gen.packages import BOARD
from pykernel.gen.project import SAID, Project, build, start_file
from pykernel.gen.write import (
    extras,
    project_folder,
    read_manifest,
    starts_learned,
    write_files,
)
from pykernel.host import snapshot
from pykernel.spec.model import Spec

COLUMNS = ("built", "target", "samples", "stream", "equal", "state", "bounds", "coverage", "faults", "sizes", "command")
CPPCHECK = "cppcheck --std=c99 --platform=arm32-wchar_t4 --quiet --addon=misra -DFLT_RADIX=2 -DFLT_MANT_DIG=24 -DDBL_MANT_DIG=53 -DFLT_EVAL_METHOD=0".split()
SIZES = {
    "flash_bytes": "flash",
    "ram_bytes": "RAM",
    "stack_bytes": "stack",
    "stack_bound_bytes": "stack at most",
}
HOST_SIZES = {"text_bytes": "code at -Os", "rodata_bytes": "constants"}
"""Key of a size (in bytes) in a build's row of the report -> name of this size in the table."""
COVERAGE = re.compile(r"(\d+ of \d+(, but not \d+(, \d+)*)?)?")
BOUNDS = re.compile(r"(\w+ \d+(, \w+ \d+)*)?")


def require_project(folder: str | Path, spec: Spec) -> Project:
    """Return the project that this version generates from the spec.  Raises UserError unless the folder has the same C code."""
    if Path(folder).is_dir():
        with project_folder(Path(folder)):  # this waits until no other run writes to the folder
            pass
    made = build(spec, start_of(Path(folder), spec), checks=_earlier(Path(folder)), also=extras(Path(folder)))
    for name, text in made.sources.items():
        path, found = Path(folder, "src", name), b""
        with contextlib.suppress(OSError):
            found = read_plain(path, len(text.encode()))
        if found != text.encode():
            raise UserError(
                f"{path}: is missing, or differs from what this version of pykernel generates from this spec, so the result "
                f"cannot be recorded there; generate the project again, or name another folder with {shown_option('record')}"
            )
    return made


def start_of(folder: Path, spec: Spec) -> Memory | None:
    """Return the learned state from which the project's device starts; None if it starts untrained.  Raises UserError."""
    path = folder / start_file(spec)
    if not starts_learned(folder, spec.name):
        return None
    try:
        return snapshot.read(spec, read_plain(path, snapshot.most_bytes(spec)), str(path)).memory
    except OSError:
        raise UserError(
            f"{path}: cannot be read, but the device starts from this state; generate the project again with {shown_option('start')}"
        ) from None


def record(folder: str | Path, spec: Spec, report: Report, recorded: bool = False) -> Path:
    """Add a report's rows to VALIDITY.md, the header and the manifest of the spec's project.

    VALIDITY.html and the bill of materials change with these files.  Either all five files are written, or none.  A new
    row replaces an earlier row for the same build and target.  Other earlier rows stay.  Generating the project again removes all rows.
    Raises UserError if the folder holds another project, or a VALIDITY.md that was changed by hand.  Raises CheckFailed
    if the self-test fails in the build for gcov.
    """
    made = require_project(folder, spec)
    rows = {(row["built"], row["target"]): row for row in _earlier(Path(folder))}
    said = _said(Path(folder))
    # if cppcheck is not installed or fails, its earlier result stays, because it is about the same C code
    said |= {
        "misra": misra(made.sources) or said["misra"],
        "tools": _tools(),
    }
    reached = _coverage(spec, report)
    for result in report.rows:
        row = _row(result, report, recorded) | _cells(
            {"coverage": "", "faults": "", "command": _command(spec, result, recorded)} | reached
        )
        reached = {}  # only the first row has these results
        rows[row["built"], row["target"]] = row
    return _write(Path(folder), spec, list(rows.values()), said)


def record_proof(folder: str | Path, spec: Spec, sentence: str) -> Path:
    """Write the result of ``pykernel prove`` to VALIDITY.md and the manifest, as ``record`` does for a check."""
    require_project(folder, spec)
    return _write(Path(folder), spec, _earlier(Path(folder)), _said(Path(folder)) | {"proof": sentence})


def _write(folder: Path, spec: Spec, rows: list[dict[str, str]], said: Mapping[str, str]) -> Path:
    files = build(spec, start_of(folder, spec), checks=rows, said=said, also=extras(folder)).files
    changed = ("VALIDITY.md", "VALIDITY.html", "manifest.json", f"{spec.name}.cdx.json", f"src/{spec.name}.h")
    write_files(folder, {path: files[path] for path in changed})
    return folder / "VALIDITY.md"


def _said(folder: Path) -> dict[str, str]:
    """Return the sentences of ``SAID`` in the folder's manifest; "" for a missing sentence."""
    manifest = read_manifest(folder)
    return {key: " ".join(re.sub(r"[^\w .,:;()-]", " ", str(manifest.get(key, ""))).split()) for key in SAID}


def misra(sources: Mapping[str, str]) -> str:
    """Return a sentence with the findings of cppcheck's MISRA C:2012 add-on; "" if cppcheck is missing or fails."""
    if not shutil.which("cppcheck"):
        return ""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, text in sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        words = [*CPPCHECK, "--enable=style", "-D__clang__", "."]
        run = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    if run.returncode or "internalError" in run.stderr:
        return ""
    found = Counter(re.findall(r"\[misra-c2012-(\d+\.\d+)\]", run.stderr))
    rules = ", ".join(f"{rule} ({count})" for rule, count in sorted(found.items(), key=lambda each: -each[1]))
    version = subprocess.run(["cppcheck", "--version"], capture_output=True, text=True).stdout.strip()
    return (
        f"{version} with its MISRA C:2012 add-on finds violations of rules {rules}"
        if rules
        else f"{version} finds no violation of MISRA C:2012"
    )


def _tools() -> str:
    """Return the versions of the software with which the check was made."""
    found = [f"Python {platform.python_version()}"]
    for name in ("pykernel-mcu", "numpy", "llvmlite", "numba", "unicorn", "wasmtime"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found)


def _earlier(folder: Path) -> list[dict[str, str]]:
    """Return the rows in the folder's manifest.  Raises UserError if the manifest cannot be read."""
    try:
        rows = read_manifest(folder).get("checks", [])
        found = [_cells({key: str(row[key]) for key in COLUMNS}) for row in rows]
        forms = {"bounds": BOUNDS, "coverage": COVERAGE, "faults": COVERAGE}
        if not all(form.fullmatch(row[key]) for row in found for key, form in forms.items()):
            raise ValueError("bounds")
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{folder / 'manifest.json'}: cannot be read; generate the project again") from None


def _coverage(spec: Spec, report: Report) -> dict[str, str]:
    """Return the cells "coverage", the lines that the self-test runs, and "faults", the faults that it detects.

    Returns {} unless gcc has compiled the C code on this machine, all rows are equal, and gcov works.
    """
    built = {row["compiler"] for row in report.rows if report.ok and not {"target", "board"} & set(row)}
    project = build(spec)
    for each in find_compilers() if built else []:
        if each.name in built and (lines := selftest_coverage(project, each)):
            return {"coverage": str(lines), "faults": str(noticed_faults(project, each, lines.reached))}
    return {}


def _command(spec: Spec, row: dict[str, Any], recorded: bool) -> str:
    """Return the command that repeats a row's check."""
    where = " --board PORT" if "board" in row else ""
    if "target" in row:
        where = f" --target {row['target']} --toolchain {row['toolchain']} --level {row['flags'].split()[0]}"
    stream = "--data RECORDING" if recorded else f"--samples {row['samples']}"
    return f"pykernel check {spec.name}.toml{where} {stream} --record ."


def _row(row: dict[str, Any], report: Report, recorded: bool) -> dict[str, str]:
    """Return one row of the table.  recorded: whether the samples are from a recording; otherwise they are random."""
    equal = ", ".join([report.engine, *(each["engine"] for each in report.witnesses if each["equal"])])
    wrong = {each["engine"]: each["first_difference"] for each in report.witnesses if not each["equal"]}
    place = f"{BOARD}{row['board']}" if "board" in row else f"this machine, {platform.machine()}"
    target = f"{row['target']} in {row['emulator']}" if "target" in row else place
    return _cells(
        {
            "built": f"{row['compiler']} {row['flags']}".strip() + (f" ({row['version']})" if "version" in row else ""),
            "target": target,
            "samples": f"{row['samples']:,}{' recorded' * recorded}" + (f", on {row['date']}" if "date" in row else ""),
            "stream": report.figures["stream_hash"],
            "equal": (f"yes ({equal})" if row["equal"] else f"**no**: {row['first_difference']}")
            + "".join(f"; **not {name}**: {difference}" for name, difference in wrong.items()),
            "state": row.get("state_hash", ""),
            "sizes": ", ".join(
                f"{words} {row[key]:,}"
                for key, words in (SIZES if "flash_bytes" in row else HOST_SIZES).items()
                if row.get(key) is not None
            ),
            "bounds": ", ".join(
                f"{name} {bound['instructions']}"
                for name, bound in row.get("bounds", {}).items()
                if bound["instructions"] is not None
            ),
        }
    )


def _cells(row: dict[str, str]) -> dict[str, str]:
    """Return the row's text without characters that would end a cell of a Markdown table."""
    return {key: " ".join(text.replace("|", "/").replace("`", "'").split()) for key, text in row.items()}
