"""Find C compilers on this machine, and build shared libraries with them."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pykernel.errors import CheckFailed, UserError, install_hint
from pykernel.files import private_folder
from pykernel.parallel import run_program

STRICT = (
    "-std=c99",
    "-pedantic",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wdouble-promotion",
    "-Wshadow",
    "-Wvla",
    "-Werror",
)
LEVELS = ("-O0", "-O3", "-O3 -march=native")
"""Compiler flags of the builds that a check compares.  The last build may use every instruction of this processor,
because some compilers have changed results by using vector and fused multiply-add instructions."""


@dataclass(frozen=True)
class Compiler:
    """A C compiler: the name that is shown, the command that starts it, and the version that it reports."""

    name: str
    command: tuple[str, ...]
    version: str

    def __str__(self) -> str:
        return self.name


def probe(name: str, command: Sequence[str]) -> Compiler | None:
    try:
        run = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return (
        Compiler(name, tuple(command), run.stdout.splitlines()[0].strip())
        if run.returncode == 0 and run.stdout
        else None
    )


def zig_command() -> list[str]:
    """Return the command that starts the compiler of the ziglang wheel, or an empty list if the wheel is not installed.

    The wheel's module only starts the program in its folder.  Starting the program directly avoids starting Python.
    """
    found = importlib.util.find_spec("ziglang")
    if found is None:
        return []
    programs = [Path(folder, "zig") for folder in found.submodule_search_locations or ()]
    start = next((str(program) for program in programs if program.is_file()), None)
    return [start, "cc"] if start else [sys.executable, "-m", "ziglang", "cc"]


@functools.cache
def find_compilers() -> tuple[Compiler, ...]:
    """Return the compiler $CC if it is set, or else the installed compilers among gcc, clang and the ziglang wheel.

    Raises UserError with a hint on how to install a compiler if none is found.
    """
    if os.environ.get("CC"):
        command = shlex.split(os.environ["CC"])
        chosen = probe(Path(command[0]).name, command)
        if chosen is None:
            raise UserError(f"$CC is {os.environ['CC']!r}, which does not run; set it to a C compiler or unset it")
        return (chosen,)
    candidates = [(name, [name]) for name in ("gcc", "clang") if shutil.which(name)]
    if zig := zig_command():
        candidates.append(("zig", zig))
    found = tuple(c for c in (probe(name, command) for name, command in candidates) if c)
    if not found:
        raise UserError(f"no C compiler was found; install gcc or clang, or install zig with: {install_hint('zig')}")
    return found


def compiler(name: str) -> Compiler:
    for candidate in find_compilers():
        if candidate.name == name:
            return candidate
    raise UserError(
        f"compiler {name!r} was not found; the compilers found are: {', '.join(map(str, find_compilers()))}"
    )


@functools.cache
def takes(chosen: Compiler, flags: str) -> bool:
    """Return whether a compiler accepts these flags.  Some compilers do not accept -march=native on every processor."""
    words = [*chosen.command, *flags.split(), "-E", "-x", "c", os.devnull, "-o", os.devnull]
    return _run(chosen, words).returncode == 0


def write_sources(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write C files (file name -> text) to a folder, and return the files to be compiled."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in sorted(files) if name.endswith(".c")]


def compile_c(
    chosen: Compiler,
    sources: Sequence[Path],
    output: Path,
    flags: Sequence[str] = (),
    mode: Sequence[str] = ("-shared", "-fPIC"),
) -> None:
    """Compile and link.  Raises CheckFailed with the compiler's first error message."""
    words = [*chosen.command, *STRICT, *flags, *mode, "-o", str(output), *map(str, sources)]
    if chosen.name == "zig":
        # zig adds its sanitizer to debug builds, and the sanitizer needs zig's runtime library
        words += ["-fno-sanitize=all", "-fno-stack-protector", *([] if "-g" in flags else ["-g0"])]
        if "-shared" in mode and sys.platform == "linux":
            # otherwise zig compiles its libraries first, for half a minute; memset and the like are already in this process
            words.append("-nostdlib")
    run = _run(chosen, words, output.parent)
    if run.returncode != 0:
        complaints = (
            [line for line in run.stderr.splitlines() if "error" in line] or run.stderr.splitlines() or ["no message"]
        )
        raise CheckFailed(f"{chosen.name} {' '.join(flags)} refuses the generated C: {complaints[0].strip()}")


def _run(chosen: Compiler, words: Sequence[str], folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a compiler.  folder: where the compiler puts temporary files; a compiler that is killed leaves them behind."""
    environment = {**os.environ, **({"TMPDIR": str(folder)} if folder else {})}
    if chosen.name == "zig":
        # zig's cache is keyed by content, so it stays valid between runs; pykernel keeps it in a folder of its own
        cache = str(_zig_cache())
        environment |= {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    return run_program(words, environment)


@functools.cache
def _zig_cache() -> Path:
    """Return a folder for zig's cache.  zig links the files in its cache, so no other user may write to the folder.

    The folder is in the user's cache folder; if that cannot be used, in the folder for temporary files; or else it is a
    new temporary folder.
    """
    import platformdirs

    user = getattr(os, "getuid", lambda: 0)()
    for folder in (
        platformdirs.user_cache_path("pykernel") / "zig",
        Path(tempfile.gettempdir()) / f"pykernel-zig-{user}",
    ):
        if private_folder(folder):
            return folder
    fresh = tempfile.mkdtemp(prefix="pykernel-")
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    return Path(fresh)
