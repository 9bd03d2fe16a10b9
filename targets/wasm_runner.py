"""A model as WebAssembly, in the runtime of the wasmtime wheel."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pykernel.errors import CheckFailed
from pykernel.gen.compilers import compile_c
from pykernel.gen.project import Project, check_sources
from pykernel.targets.build import COMMON, data_file, refuse_large_ram, toolchain
from pykernel.targets.jobs import JobModel
from pykernel.targets.target import Target

LINK = ("-nostdlib", "-Wl,--no-entry", "-Wl,--strip-all")


class WasmModel(JobModel):
    """One instance holds the model's memory, and takes its jobs.  flash_bytes: of the module with the model alone."""

    def __init__(self, project: Project, target: Target, level: str = "-O2", flags: Sequence[str] = ()) -> None:
        super().__init__(project)
        import wasmtime

        refuse_large_ram(project, target)
        self.target, self.level, self.flags = target, level, tuple(flags)
        self.folder = Path(tempfile.mkdtemp(prefix="pykernel-"))
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        model = {Path(path).name: text for path, text in project.files.items() if path.startswith("src/")}
        for name, text in (model | check_sources(project) | {"wasm.c": data_file("wasm.c")}).items():
            (self.folder / name).write_text(text, encoding="utf-8")
        name = project.spec.name
        others = {f"{name}_snapshot.c"}  # a program that does not save leaves this out
        own = sorted(file for file in model if file.endswith(".c") and file not in others)
        entries = [line.split("(")[0].split()[-1].lstrip("*") for line in project.declarations]
        self.flash_bytes = self._module("alone.wasm", own, entries).stat().st_size
        whole = self._module("model.wasm", [*own, "check.c", "wasm.c", *sorted(others & set(model))], ["check_job"])
        self.store = wasmtime.Store()
        word = wasmtime.ValType.i32()
        kind = wasmtime.FuncType([word, word], [])
        functions = [wasmtime.Func(self.store, kind, function) for function in (self._give, self._take)]
        module = wasmtime.Module(self.store.engine, whole.read_bytes())
        order = {"read": functions[0], "write": functions[1]}
        instance = wasmtime.Instance(self.store, module, [order[each.name] for each in module.imports])  # type: ignore[index]
        self.exports: Any = instance.exports(self.store)
        self.trap = wasmtime.WasmtimeError
        self.given, self.taken = b"", bytearray()
        self.call("init")

    def _module(self, name: str, sources: Sequence[str], entries: Sequence[str]) -> Path:
        assert self.target.zig is not None
        files = [self.folder / source for source in sources]
        words = (*self.target.zig.flags, *COMMON, self.level, *self.flags)
        exports = [f"-Wl,--export={entry}" for entry in entries]
        compile_c(toolchain(self.target, "zig"), files, self.folder / name, words, (*LINK, *exports))
        return self.folder / name

    def _give(self, at: int, count: int) -> None:
        self.exports["memory"].write(self.store, self.given[:count], at)
        self.given = self.given[count:]

    def _take(self, at: int, count: int) -> None:
        self.taken += self.exports["memory"].read(self.store, at, at + count)

    def exchange(self, job: bytes, expected: int) -> bytes:
        self.given, self.taken = job, bytearray()
        try:
            self.exports["check_job"](self.store)
        except self.trap as error:
            raise CheckFailed(f"{self.target.name}: the module stopped: {str(error).splitlines()[0]}") from None
        if len(self.taken) != expected:
            raise CheckFailed(f"{self.target.name}: the module wrote {len(self.taken)} bytes of {expected}")
        return bytes(self.taken)
