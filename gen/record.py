"""Results of a check, written down in the project that was checked."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

from pykernel.errors import UserError
from pykernel.gen.check import Report
from pykernel.gen.project import build
from pykernel.gen.write import write_files
from pykernel.spec import Spec


def require_project(folder: str | Path, spec: Spec) -> None:
    """Raises UserError unless the folder holds the C that this version generates from the spec."""
    for path, text in build(spec).files.items():
        if path.startswith("src/"):
            try:
                same = (Path(folder) / path).read_bytes() == text.encode()
            except OSError:
                same = False
            if not same:
                raise UserError(
                    f"{Path(folder) / path}: is not what this spec and version generate, so a check says nothing of it; "
                    "generate it again, or record the check elsewhere"
                )


def record(folder: str | Path, spec: Spec, report: Report) -> Path:
    """Write a report's rows to the VALIDITY.md of the spec's project, and its digest to the manifest, both or none.

    Raises UserError if the folder holds something else, or a VALIDITY.md that was changed by hand.
    """
    require_project(folder, spec)
    checked = {"stream_hash": report.figures["stream_hash"], "rows": [_row(row) for row in report.rows]}
    files = build(spec, checked=checked).files
    write_files(Path(folder), {path: files[path] for path in ("VALIDITY.md", "manifest.json")})
    return Path(folder) / "VALIDITY.md"


def _row(row: dict[str, Any]) -> dict[str, str]:
    """One line of the table."""
    target = " on ".join(str(row[key]) for key in ("target", "emulator") if row.get(key))
    cells = {
        "built": f"{row['compiler']} {row['flags']} ({row['version']})",
        "target": target or f"this machine, {platform.machine()}",
        "samples": f"{row['samples']:,}",
        "equal": "yes" if row["equal"] else f"**no**: {row['first_difference']}",
        "hash": row.get("state_hash", ""),
    }
    return {key: text.replace("|", "/").replace("\n", " ") for key, text in cells.items()}
