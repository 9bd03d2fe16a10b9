"""What this installation knows: the CPUs that a model can be checked on."""

from __future__ import annotations

from typing import Any

from pykernel.request.option import schema
from pykernel.spec.schema import spec_schema
from pykernel.targets import build, check, target
from pykernel.workflows.requests import COMMANDS


def info(about: str) -> dict[str, Any]:
    if about == "targets":
        return targets()
    return spec_schema() if about == "schema" else {name: schema(kind) for name, kind in COMMANDS.items()}


def targets() -> dict[str, Any]:
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
    return {"targets": rows}
