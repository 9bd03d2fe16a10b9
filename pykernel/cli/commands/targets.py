"""The command ``pykernel targets``: the CPUs that a model can be checked on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.workflows.requests import Targets


def targets(given: Targets, as_json: bool) -> None:
    output.print_report(given.run(), as_json, print_targets)


def print_targets(report: Mapping[str, Any]) -> None:
    cells = []
    for row in report["targets"]:
        sizes = [f"{row[key] // 1024}K" for key in ("ram_bytes", "flash_bytes")]
        tools = [
            " ".join(name if there else f"({name})" for name, there in row[key].items())
            for key in ("toolchains", "emulators")
        ]
        fpu = {"none": "no", "single": "f32", "double": "f64"}[row["fpu"]]
        cells.append([row["target"], row["part"], *sizes, fpu, *tools])
    output.show_table("targets", ("target", "part", "RAM", "flash", "FPU", "built by", "run by"), cells)
