"""The command ``pykernel info``: the CPUs that a model can be checked on; the declarations of all keys, for editors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.workflows.requests import Info


def info(given: Info, as_json: bool) -> None:
    from pykernel.workflows.info import info as found

    output.print_report(found(given.about), as_json or given.about != "targets", print_targets)


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
