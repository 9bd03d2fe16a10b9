"""The command ``pykernel targets``: the CPUs that a model can be checked on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.cli import output
from pykernel.cli.options import JSON, command


@command(
    as_json=JSON,
)
def targets(as_json: bool) -> None:
    """List the CPUs that a model can be checked on.

        pykernel targets

    The table also says which of them this machine can build for and emulate.

    Columns: part is the microcontroller whose RAM and flash a model must fit. Built by names the
    toolchains, run by the emulators. Brackets mean: not found on this machine. To install zig, unicorn and wasmtime, run
    pip install -e '.[emulate]' in a clone of pykernel. Your system's package manager installs the others.

    Exit codes: 0 done.
    """
    from pykernel.targets import build, check, target

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
    output.print_report({"targets": rows}, as_json, print_targets)


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
