"""Sizes of the golden models, and how they changed: a markdown table.

Bytes of code and constants without the snapshot's file and of that file alone, and of RAM, at -Os; for this machine's
gcc and, where it is installed, Debian's GCC for Cortex-M0+ and Cortex-M4F.  Both sides are compiled in this run, so
that only the C makes a difference.

    python -m benchmarks.device.size_report [--against REV]

REV is by default the last commit, or the one before where the golden models are those of the last commit.
"""

import argparse
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmarks.tables import ROOT
from pykernel.gen.compilers import STRICT
from pykernel.targets.build import COMMON, GCC, ZIG, object_bytes
from pykernel.targets.target import find_target

GOLDEN = "tests/golden"
CROSS = ("cortex-m0plus", "cortex-m4f")
Sources = dict[str, str]  # text of each C file of a model, by its name


def git(*words: str) -> str | None:
    """What git says; None where it fails."""
    if not shutil.which("git"):
        return None
    run = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return run.stdout if run.returncode == 0 else None


def golden_now() -> dict[str, Sources]:
    return {
        folder.name: {path.name: path.read_text(encoding="utf-8") for path in (folder / "src").iterdir()}
        for folder in sorted((ROOT / GOLDEN).iterdir())
        if (folder / "src").is_dir()
    }


def golden_at(revision: str) -> dict[str, Sources]:
    models: dict[str, Sources] = {}
    for path in (git("ls-tree", "-r", "--name-only", revision, GOLDEN) or "").splitlines():
        found = re.fullmatch(rf"{GOLDEN}/(\w+)/src/(\w+\.[ch])", path)
        if found and (text := git("show", f"{revision}:{path}")) is not None:
            models.setdefault(found[1], {})[found[2]] = text
    return models


def compilers() -> dict[str, list[str]]:
    """Words that start each compiler found."""
    found = {"host": ["gcc"]} if shutil.which("gcc") else {}
    for name in CROSS:
        gcc = find_target(name).gcc
        if gcc and shutil.which(gcc.command):
            found[name] = [gcc.command, *gcc.flags]
    return found


def sizes(sources: Sources, name: str, words: list[str]) -> dict[str, int]:
    """Bytes of a model in each kind of memory."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file, text in sources.items():
            (folder / file).write_text(text, encoding="utf-8")
        result = {"code": 0, "constants": 0, "data": 0, "snapshot": 0}
        for file in sorted(file for file in sources if file.endswith(".c")):
            target = folder / f"{file}.o"
            flags = [flag for flag in STRICT if flag != "-Werror"]
            subprocess.run([*words, *flags, *COMMON, *GCC, *ZIG, "-Os", "-c", folder / file, "-o", target], check=True)
            found = object_bytes([target])
            if file.endswith("_snapshot.c"):
                result["snapshot"] += found["text_bytes"] + found["rodata_bytes"]
            else:
                result["code"] += found["text_bytes"]
                result["constants"] += found["rodata_bytes"]
            result["data"] += found["data_bytes"] + found["bss_bytes"]
        header = sources[f"{name}.h"]
        for key, macro in (("state", "STATE_BYTES"), ("RAM", "RAM_BYTES")):
            found_macro = re.search(rf"^#define \w+_{macro} (\d+)", header, re.M)
            result[key] = int(found_macro[1]) if found_macro else 0
        return result


def cell(now: int, then: int | None) -> str:
    change = "" if then is None or now == then else f" ({now - then:+,})"
    return f"{now:,}{change}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", help="a commit to compare with")
    revision = parser.parse_args().against
    now = golden_now()
    if revision is None:
        revision = "HEAD" if golden_at("HEAD") != now else "HEAD~1"
    then = golden_at(revision)
    found = compilers()
    if not found:
        print("sizes: neither gcc nor arm-none-eabi-gcc was found")
        return
    name = (git("log", "-1", "--format=%h, %s", revision) or "").strip()
    print(f"Bytes at -Os; in brackets the change since {name}\n" if then else "Bytes at -Os; nothing to compare with\n")
    heads = ("code", "constants", "data", "snapshot", "state", "RAM")
    print(f"| model | compiled for | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}")
    for model, sources in now.items():
        for compiler, words in found.items():
            new = sizes(sources, model, words)
            old = sizes(then[model], model, words) if model in then else {}
            print(f"| {model} | {compiler} | {' | '.join(cell(new[h], old.get(h)) for h in heads)} |")


if __name__ == "__main__":
    main()
