"""The command ``pykernel targets``: the CPUs that a model can be checked on."""

from __future__ import annotations

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
    from pykernel.targets.build import found_toolchains
    from pykernel.targets.check import found_emulators
    from pykernel.targets.target import all_targets

    rows: list[dict[str, Any]] = [
        {
            "target": target.name,
            "summary": target.summary,
            "part": target.part.name,
            "ram_bytes": target.part.ram.bytes,
            "flash_bytes": target.part.flash.bytes,
            "fpu": target.fpu,
            "toolchains": {name: name in found_toolchains(target) for name in target.toolchains},
            "emulators": {name: name in found_emulators(target) for name in target.emulators},
        }
        for target in all_targets().values()
    ]
    if as_json:
        output.print_json({"targets": rows})
        return
    table = output.new_table("target", "part", "RAM", "flash", "FPU", "built by", "run by")
    for row in rows:
        sizes = [f"{row[key] // 1024}K" for key in ("ram_bytes", "flash_bytes")]
        tools = [
            " ".join(name if there else f"({name})" for name, there in row[key].items())
            for key in ("toolchains", "emulators")
        ]
        fpu = {"none": "no", "single": "f32", "double": "f64"}[row["fpu"]]
        table.add_row(row["target"], row["part"], *sizes, fpu, *tools)
    output.show_table("targets", table)
