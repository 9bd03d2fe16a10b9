"""Digests of the sources that turn kernels into machine code, computed when this module is imported.

The digests are part of the name under which compiled code is stored.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import pykernel.dialect
import pykernel.language


def files_digest(folder: Path) -> str:
    """Return a digest of the names and contents of the Python files in a folder."""
    parts = [path.name.encode() + b"\0" + path.read_bytes() for path in sorted(folder.glob("*.py"))]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


MAKERS = {
    "dialect": files_digest(Path(pykernel.dialect.__file__).parent),
    "language": files_digest(Path(pykernel.language.__file__).parent),
    "engine": files_digest(Path(__file__).parent),
}
"""Digests of the folders with the sources that print and compile kernels."""
