"""Findings of cppcheck and its MISRA C:2012 add-on in generated models: rule, count, verdict, as a markdown table.

Small models of every rule, and of every technique with all options, as a compiler sees them for a processor without and with an
FPU.  A finding is accepted if docs/misra.md has a deviation for its rule whose text is in `file:line: the line found`.
Ends with 1 if there is any other.

    python -m benchmarks.device.misra [--deviations docs/misra.md]
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.device.proof import SMALL
from benchmarks.tables import ROOT
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.gen.project import build
from pykernel.gen.record import CPPCHECK
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

DEVIATIONS = ROOT / "docs" / "misra.md"
PROCESSORS = {  # what compilers define
    "no FPU": ("__clang__",),
    "FPU": ("__GNUC__=12", "__arm__", "__ARM_FP=4"),
}
ENABLED = "--enable=style,warning,performance,portability"


def write_models(folder: Path) -> list[Path]:
    """A folder of C files for each model."""
    folders = []
    full = {
        f"{technique} {precision}": {
            "precision": precision,
            "input": {"dim": 3, "standardise": True},
            "label": {"low": -1.0, "high": 1.0},
            "kernel": {"sigma": 1.0},
            "learning": {"rule": "klms", "rho": 0.01, "step_limit": 0.5},
            "reduction": {"technique": technique, "n_max": 8, "force": True},
        }
        for technique in TECHNIQUES
        for precision in ("float32", "float64")
    }
    for name, content in (SMALL | full).items():
        spec = make_spec({"name": "m"} | content)
        start = None
        if name in full:
            model = HostModel(spec)
            model.prequential(*mixed_stream(spec, 100))
            start = model.memory
        target = folder / re.sub(r"\W+", "_", name)
        target.mkdir()
        for path, text in build(spec, start, also=("recorder",)).files.items():
            if path.startswith("src/"):
                (target / Path(path).name).write_text(text, encoding="utf-8")
        folders.append(target)
    return folders


def findings(folder: Path, defines: tuple[str, ...]) -> set[tuple[str, str]]:
    """What cppcheck says about the C files in a folder: (rule or message, file:line: its text)."""
    words = [*CPPCHECK, ENABLED, "--template={id}\t{file}\t{line}\t{message}", *(f"-D{each}" for each in defines)]
    run = subprocess.run([*words, "."], cwd=folder, capture_output=True, text=True, check=True)
    found = set()
    for report in run.stderr.splitlines():
        kind, file, line, _ = report.split("\t")
        rule = re.fullmatch(r"misra-c2012-(\d+\.\d+)", kind)
        source = (folder / file).read_text(encoding="utf-8").splitlines() if (folder / file).is_file() else []
        text = source[int(line) - 1].strip() if source else ""
        found.add((rule[1] if rule else kind, f"{folder.name}/{file}:{line}: {text}"))
    return found


def deviations(page: Path) -> list[tuple[str, str]]:
    """The rules that docs/misra.md deviates from, and what the lines concerned contain."""
    section = page.read_text(encoding="utf-8").partition("\n## Deviations\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([\w.]+) \| `(.+?)` \|", section, re.M)
    if not rows:
        raise SystemExit(f"{page}: has no table of deviations")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deviations", type=Path, default=DEVIATIONS)
    accepted = deviations(parser.parse_args().deviations)
    if not shutil.which("cppcheck"):
        raise SystemExit("cppcheck was not found; on Debian: apt install cppcheck")
    found: set[tuple[str, str]] = set()
    with tempfile.TemporaryDirectory() as folder:
        for model in write_models(Path(folder)):
            for defines in PROCESSORS.values():
                found |= findings(model, defines)
    verdicts: Counter[tuple[str, str]] = Counter()
    strange = []
    for rule, line in sorted(found):
        known = any(rule == number and part in line for number, part in accepted)
        verdicts[rule, "deviation" if known else "not documented"] += 1
        if not known:
            strange.append(f"{rule}  {line}")
    print("| rule | findings | verdict |\n|---|---|---|")
    for (rule, verdict), count in sorted(verdicts.items(), key=lambda item: (len(item[0][0]), item[0])):
        print(f"| {rule} | {count} | {verdict} |")
    for number in sorted({number for number, _ in accepted} - {rule for rule, _ in found}):
        print(f"\n{number} has a deviation and is not found any more")
    if strange:
        print("\nnot documented:", *strange, sep="\n")
    return 1 if strange else 0


if __name__ == "__main__":
    sys.exit(main())
