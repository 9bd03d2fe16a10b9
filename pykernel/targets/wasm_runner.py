"""A model as WebAssembly, in the runtime of the wasmtime wheel."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pykernel.errors import CheckFailed
from pykernel.gen.compilers import compile_c, write_sources
from pykernel.gen.project import Project, check_sources
from pykernel.targets.build import COMMON, data_file, model_files, refuse_large_ram, toolchain
from pykernel.targets.jobs import JobModel
from pykernel.targets.target import Target

LINK = ("-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all")


def module(
    folder: Path,
    files: Mapping[str, str],
    entries: Sequence[str],
    target: Target,
    level: str = "-O2",
    flags: Sequence[str] = (),
) -> bytes:
    """Compile a WebAssembly module that exports the functions ``entries``.  files: dict that maps file names to C
    texts, which are written to ``folder``.
    """
    assert target.zig is not None
    sources = write_sources(folder, files)
    words = (*target.zig.flags, *COMMON, level, *flags)
    exports = [f"-Wl,--export={entry}" for entry in entries]
    compile_c(toolchain(target, "zig"), sources, folder / "module.wasm", words, (*LINK, *exports))
    return (folder / "module.wasm").read_bytes()


class WasmModel(JobModel):
    """A model in an instance of a WebAssembly module.

    flash_bytes: size in bytes of a module that contains only the model.
    """

    def __init__(self, project: Project, target: Target, level: str = "-O2", flags: Sequence[str] = ()) -> None:
        super().__init__(project)
        import wasmtime

        refuse_large_ram(project, target)
        self.target = target
        how = (target, level, flags)
        model, others = model_files(project)
        others |= check_sources(project) | {name: data_file(name) for name in ("wasm.c", "emulated.c")}
        entries = [project.calls[each.name].name for each in project.spec.program.entries_for(project.spec.config)]
        with tempfile.TemporaryDirectory(prefix="pykernel-") as place:
            self.flash_bytes = len(module(Path(place), model, entries, *how))
            whole = module(Path(place), model | others, ["check_job"], *how)
        self.store = wasmtime.Store()
        word = wasmtime.ValType.i32()
        kind = wasmtime.FuncType([word, word], [])
        functions = {"read": self._give, "write": self._take}
        made = wasmtime.Module(self.store.engine, whole)
        given = [wasmtime.Func(self.store, kind, functions[each.name]) for each in made.imports]  # type: ignore[index]
        instance = wasmtime.Instance(self.store, made, given)
        self.exports: Any = instance.exports(self.store)
        self.trap = (wasmtime.Trap, wasmtime.WasmtimeError)
        self.job, self.next, self.taken = b"", 0, bytearray()
        self.call("init")

    def _give(self, at: int, count: int) -> None:
        self.exports["memory"].write(self.store, self.job[self.next : self.next + count], at)
        self.next += count

    def _take(self, at: int, count: int) -> None:
        self.taken += self.exports["memory"].read(self.store, at, at + count)

    def exchange(self, job: bytes, expected: int, samples: int) -> bytes:
        self.job, self.next, self.taken = job, 0, bytearray()
        try:
            self.exports["check_job"](self.store)
        except self.trap as error:
            reason = " ".join(str(error).split())
            raise CheckFailed(f"{self.target.name}: the module stopped: {reason}") from None
        if len(self.taken) != expected:
            raise CheckFailed(f"{self.target.name}: the module wrote {len(self.taken)} of {expected} bytes")
        return bytes(self.taken)
