"""Information about this installation: the CPUs on which a model can be checked, and schemas."""

from __future__ import annotations

from typing import Any

from pykernel.report.document import Found, Table, document_of_parts
from pykernel.request.option import schema
from pykernel.spec.schema import spec_schema
from pykernel.targets import build, check, target
from pykernel.workflows.requests import COMMANDS, Info


def run(request: Info) -> Found:
    """Return the information.  Targets are shown as a table; schemas are only in the report."""
    if request.about == "targets":
        return targets()
    report = spec_schema() if request.about == "schema" else {name: schema(kind) for name, kind in COMMANDS.items()}
    return Found(report, document_of_parts())


def targets() -> Found:
    rows: list[dict[str, Any]] = [
        {
            "target": each.name,
            "summary": each.summary,
            "part": each.part.name,
            "ram_bytes": each.part.ram.bytes,
            "flash_bytes": each.part.flash.bytes,
            "fpu": each.fpu,
            "toolchains": {name: name in build.found_toolchains(each) for name in each.toolchains},
            "emulators": {name: name in check.found_emulators(each) for name in each.emulators},
        }
        for each in target.all_targets().values()
    ]
    cells = []
    for row in rows:
        sizes = [f"{row[key] // 1024}K" for key in ("ram_bytes", "flash_bytes")]
        tools = [
            " ".join(name if there else f"({name})" for name, there in row[key].items())
            for key in ("toolchains", "emulators")
        ]
        fpu = {"none": "no", "single": "f32", "double": "f64"}[row["fpu"]]
        cells.append([row["target"], row["part"], *sizes, fpu, *tools])
    columns = ("target", "part", "RAM", "flash", "FPU", "built by", "run by")
    return Found({"targets": rows}, document_of_parts(Table(columns, cells, title="targets")))
