"""What a comparison is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options of the command."""

    task: list[str] | None
    data: str | None
    spec_file: Path | None
    rule: list[str] | None
    technique: list[str] | None
    n_max: int
    seeds: int
    rows: int | None
    set_: list[str] | None
    precision: str
    jobs: str | None
    out: Path
    as_json: bool
