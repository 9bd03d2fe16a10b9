"""The table of docs/licences.md: what is installed with pykernel and with each extra, and the licence that its metadata say.

python -m benchmarks.licences
"""

from __future__ import annotations

import re
from collections import defaultdict
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from benchmarks.tables import ROOT
from pykernel.errors import EXTRAS

PAGE = ROOT / "docs" / "licences.md"
OURS = "pykernel-mcu"
CORRECTED = {"unicorn": "**GPL-2.0**: its engine is QEMU's; the metadata say BSD, which is its Python code's"}
"""Where the metadata do not say all."""


def licence(name: str) -> str:
    """An SPDX expression if there is one; else the classifier's words, the first line of a short text, or that of the licence's file."""
    about = distribution(name).metadata
    classifiers = [
        line.split(" :: ")[-1] for line in about.get_all("Classifier") or () if line.startswith("License ::")
    ]
    files = [file for file in distribution(name).files or () if re.match(r"LICEN[CS]E", file.name)]
    given = [
        CORRECTED.get(name),
        about.get("License-Expression"),
        *(words for words in classifiers if words != "OSI Approved"),
        next((line for line in (about.get("License") or "").splitlines() if line.strip("=- ")), None),
        files[0].read_text().strip().splitlines()[0] if files else None,
    ]
    return next((words for words in given if words), "not said")


def needed(name: str, extras: frozenset[str], found: set[str]) -> set[str]:
    """All that a package with extras needs on this machine, itself included."""
    key = f"{name}[{','.join(sorted(extras))}]"
    if key in found:
        return found
    found.add(key)
    for line in distribution(name).requires or ():
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in (*extras, "")):
            try:
                needed(canonicalize_name(need.name), frozenset(need.extras), found)
            except PackageNotFoundError:  # beside an extra that is not installed
                found.add(f"{canonicalize_name(need.name)}[]")
    return found


def table() -> str:
    comes: dict[str, list[str]] = defaultdict(list)
    for extra in ("", *EXTRAS):
        for name in sorted({key.partition("[")[0] for key in needed(OURS, frozenset({extra} - {""}), set())} - {OURS}):
            if "always" not in comes[name]:
                comes[name].append(f"`{extra}`" if extra else "always")
    rows = [f"| {name} | {licence(name)} | {', '.join(where)} |" for name, where in sorted(comes.items())]
    return "\n".join(["| package | licence | comes with |", "|---|---|---|", *rows])


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, after = re.split(r"(?<=<!-- licences -->\n)(.*?)(?=<!-- end -->)", text, flags=re.DOTALL)
    PAGE.write_text(f"{before}\n{table()}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
