"""What takes long and need not be done again: results in docs/data, the exhaustive suite.  ``make`` lists the commands."""

import datetime
import hashlib
import math
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.results import TREE
from pykernel.errors import UserError

ROOT = Path(__file__).parents[1]
Path(ROOT, "build").mkdir(exist_ok=True)
DOIT_CONFIG = {"dep_file": "build/doit.db", "verbosity": 2, "default_tasks": ["remeasure"]}


def remeasure(name):
    try:
        TREE.remeasure(name)
    except UserError as error:
        print(error, file=sys.stderr)
        return False


def task_remeasure():
    """A task for each result; what counts is docs/data/provenance.json, not this machine's memory."""
    results = TREE.results
    reads = {
        name: [other for other in results if {*results[other].outputs} & {*results[name].reads}] for name in results
    }

    def seconds(name):
        """With those of the results that wait for this one."""
        return (TREE.seconds(name) or math.inf) + sum(
            TREE.seconds(other) or 0 for other in reads if name in reads[other]
        )

    # the longest first, and those of unknown duration; what measures seconds comes last, because it waits until nothing else runs
    for name in sorted(results, key=lambda name: (results[name].timed, -seconds(name))):
        recorded = [lambda task, values, name=name: not TREE.stale(name)]
        needed = [f"remeasure:{other}" for other in reads[name]]
        yield {"name": name, "actions": [(remeasure, [name])], "uptodate": recorded, "task_dep": needed}


def task_nightly():
    """A third of the exhaustive suite, file by file: three nights take all.  A file that passed on the same tree leaves a mark, and is
    not run again.  THIRD=0, 1, 2 or all: which third; if not given, the day says."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    )
    tree = hashlib.sha256()
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        if (path := ROOT / name).is_file():
            tree.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    third = os.environ.get("THIRD", str(datetime.date.today().toordinal() % 3))
    drawn = "" if third == "all" else f" --third={third}"
    passed = Path("build", "nightly", tree.hexdigest()[:16], third)
    for path in sorted(ROOT.glob("tests/**/test_*.py")):
        name = path.relative_to(ROOT / "tests").as_posix()
        mark = passed / name.replace("/", "-")
        missing = f'--missing="{mark.with_suffix(".missing")}"'
        # 5: none of the file's tests are of this third
        command = f'"{sys.executable}" -m pytest --exhaustive{drawn} {missing} "tests/{name}" || [ $? -eq 5 ]'
        yield {
            "name": name,
            "actions": [f'({command}) && mkdir -p "{passed}" && touch "{mark}"'],
            "targets": [mark],
            "uptodate": [True],
        }
