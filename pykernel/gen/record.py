"""Results of a check, written down in the project that was checked."""

from __future__ import annotations

import contextlib
import platform
import re
from pathlib import Path
from typing import Any

from pykernel.dialect import Memory
from pykernel.errors import UserError, option
from pykernel.files import read_plain
from pykernel.gen.check import Report
from pykernel.gen.compilers import find_compilers
from pykernel.gen.coverage import selftest_coverage
from pykernel.gen.packages import BOARD
from pykernel.gen.project import build, start_file
from pykernel.gen.write import (
    extras,
    project_folder,
    read_manifest,
    starts_learned,
    write_files,
)
from pykernel.host import snapshot
from pykernel.spec.model import Spec

COLUMNS = ("built", "target", "samples", "stream", "equal", "state")
COVERAGE = re.compile(r"(\d+ of \d+(, but not \d+(, \d+)*)?)?")
BOUNDS = re.compile(r"(\w+ \d+(, \w+ \d+)*)?")


def require_project(folder: str | Path, spec: Spec) -> None:
    """Raises UserError unless the folder holds the C that this version generates from the spec."""
    if Path(folder).is_dir():
        with project_folder(Path(folder)):  # if a run died while it wrote, its old files are restored first
            pass
    for name, text in build(spec, start_of(Path(folder), spec), checks=_earlier(Path(folder))).sources.items():
        path, found = Path(folder, "src", name), b""
        with contextlib.suppress(OSError):
            found = read_plain(path, len(text.encode()))
        if found != text.encode():
            raise UserError(
                f"{path}: differs from what this spec and this version generate, so the check does not apply to it; "
                "generate it again, or record the check elsewhere"
            )


def start_of(folder: Path, spec: Spec) -> Memory | None:
    """The learned state from which the project's device starts; None if it starts untrained.  Raises UserError."""
    path = folder / start_file(spec)
    if not starts_learned(folder, spec.name):
        return None
    try:
        return snapshot.read(spec, read_plain(path, snapshot.most_bytes(spec)), str(path)).memory
    except OSError:
        raise UserError(
            f"{path}: cannot be read, and the device starts from it; generate the project again with {option('start')}"
        ) from None


def record(folder: str | Path, spec: Spec, report: Report, recorded: bool = False) -> Path:
    """Add a report's rows to VALIDITY.md, the header and the manifest of the spec's project.

    With the header changes the bill of materials.  Either all four files are written, or none.  A new row replaces an earlier row of the same build and target; other
    earlier rows stay.  Generating the project again removes all rows.  Raises UserError if the folder holds another
    project, or a VALIDITY.md that was changed by hand; CheckFailed if the self-test fails in the build that counts lines.
    """
    require_project(folder, spec)
    rows = {(row["built"], row["target"]): row for row in _earlier(Path(folder))}
    coverage = _coverage(spec, report)
    for result in report.rows:
        row = _row(result, report, recorded) | {"coverage": coverage}
        coverage = ""  # once is enough
        rows[row["built"], row["target"]] = row
    return _write(Path(folder), spec, list(rows.values()), _proof(Path(folder)))


def record_proof(folder: str | Path, spec: Spec, sentence: str) -> Path:
    """Write what ``pykernel prove`` found to VALIDITY.md and the manifest; otherwise as ``record``."""
    require_project(folder, spec)
    return _write(Path(folder), spec, _earlier(Path(folder)), sentence)


def _write(folder: Path, spec: Spec, rows: list[dict[str, str]], proof: str) -> Path:
    files = build(spec, start_of(folder, spec), checks=rows, proof=proof, also=extras(folder)).files
    changed = ("VALIDITY.md", "manifest.json", f"{spec.name}.cdx.json", f"src/{spec.name}.h")
    write_files(folder, {path: files[path] for path in changed})
    return folder / "VALIDITY.md"


def _proof(folder: Path) -> str:
    """The sentence about a proof in the folder's manifest; "" if there is none."""
    return " ".join(re.sub(r"[^\w .,:;()-]", " ", str(read_manifest(folder).get("proof", ""))).split())


def _earlier(folder: Path) -> list[dict[str, str]]:
    """The rows in the folder's manifest.  Raises UserError if the manifest cannot be read."""
    try:
        rows = read_manifest(folder).get("checks", [])
        found = [
            _cells({key: str(row[key]) for key in (*COLUMNS, "bounds")} | {"coverage": str(row.get("coverage", ""))})
            for row in rows
        ]
        if not all(BOUNDS.fullmatch(row["bounds"]) and COVERAGE.fullmatch(row["coverage"]) for row in found):
            raise ValueError("bounds")
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise UserError(f"{folder / 'manifest.json'}: cannot be read; generate the project again") from None


def _coverage(spec: Spec, report: Report) -> str:
    """Which lines the self-test runs, if gcc has compiled the C on this machine and the C is right."""
    built = {row["compiler"] for row in report.rows if report.ok and not {"target", "board"} & set(row)}
    found = [selftest_coverage(build(spec), each) for each in find_compilers() if each.name in built] if built else []
    return "".join(str(each) for each in found if each)


def _row(row: dict[str, Any], report: Report, recorded: bool) -> dict[str, str]:
    """One line of the table.  recorded: whether the samples are of a recording; otherwise they are random."""
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
            "bounds": ", ".join(
                f"{name} {bound['instructions']}"
                for name, bound in row.get("bounds", {}).items()
                if bound["instructions"] is not None
            ),
        }
    )


def _cells(row: dict[str, str]) -> dict[str, str]:
    """The row's text, with the characters escaped that would end a cell of a Markdown table."""
    return {key: " ".join(text.replace("|", "/").replace("`", "'").split()) for key, text in row.items()}
