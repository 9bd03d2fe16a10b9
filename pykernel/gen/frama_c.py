"""Run Frama-C: its plug-in Eva analyses the calls of a proof, and its plug-in WP proves the assertions about NaN."""

from __future__ import annotations

import csv
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pykernel.errors import UserError
from pykernel.files import whole_file
from pykernel.gen.proof import FINITE, FLOATS, Call
from pykernel.language.acsl import INSIDE, PASSED
from pykernel.parallel import run_program

PACKAGE = "frama-c-base"
MACHINE = "gcc_x86_32"
"""Frama-C's name for a little-endian 32-bit machine whose types have the same sizes as on the targets."""


PROVERS, DETECT = "why3.conf", ("why3", "config", "detect")
"""The file with the list of Why3's provers, and the command that writes it.  The file is in the proof's folder, so that the user need not
configure Why3."""
STATED = ("user assertion", "postcondition")
"""Frama-C's names for the kinds of properties in annotations."""
PROVER, PROVED = "z3", ("Valid", "Partially proven")
"""The prover, and the statuses of proved properties.  "Partially proven" means that a property holds if the preceding assertions hold."""
COARSE, UNROLLED = 1, 128
"""COARSE: Eva's precision in the first analysis, which analyses up to UNROLLED iterations of a loop separately."""
GOAL_SECONDS = 20
"""Seconds that the prover may take for one assertion about NaN."""
KINDS = {
    "index_bound": "an index may be outside its array",
    "mem_access": "a pointer may be outside its array",
    "signed_overflow": "a sum or product of integers may overflow",
    "unsigned_downcast": "an integer may be outside the range of the unsigned type that it is converted to",
    "is_nan_or_infinite": "a number that is converted to an integer may be NaN or infinite",
    "float_to_int": "a number that is converted to an integer may be too large",
    "initialization": "a variable may be read before it is set",
    "shift": "a shift count may be negative, or too large for the type",
    "division_by_zero": "a divisor may be zero",
    "ptr_comparison": "pointers into different arrays may be compared",
    INSIDE: "an index may be outside the array argument",
    PASSED: "after a comparison, a number may be NaN or beyond the limit that it was compared with; the prover could not rule this out",
    "check": "a callback may get wrong arguments",
}
"""Frama-C's name of a kind of alarm -> what the alarm means."""


@dataclass(frozen=True)
class Alarm:
    """An error that the analysis cannot rule out.

    condition: the condition that could not be proved.  stack: the function in which the error may occur, its caller, and
    so on up to the driver.
    """

    kind: str
    condition: str
    file: str
    line: int
    code: str
    stack: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        return KINDS.get(self.kind, f"the C code may have undefined behaviour ({self.kind})")


@dataclass(frozen=True)
class Finding:
    """The result of one call's analysis.

    ended: whether the analysis finished.  why: the reason if the analysis did not finish.  checks: name of an assertion
    -> whether it was proved.
    coverage: C function -> (number of statements reached, number of all statements).  passed: (file, line) of each
    assertion about NaN that Eva does not prove, and that is left to WP.
    """

    call: Call
    ended: bool
    why: str = ""
    alarms: tuple[Alarm, ...] = ()
    checks: dict[str, bool] = field(default_factory=dict)
    coverage: dict[str, tuple[int, int]] = field(default_factory=dict)
    passed: frozenset[tuple[str, int]] = frozenset()
    seconds: float = 0.0

    @property
    def proved(self) -> bool:
        """Whether everything is proved, apart from the assertions about NaN."""
        return self.ended and not self.alarms and list(self.checks.values()) == [True] * self.call.checks

    @property
    def functions(self) -> list[str]:
        """The C functions that the call reaches."""
        return sorted(self.call.reached or {name for name in self.coverage if not name.startswith("prove_")})

    @property
    def statements(self) -> tuple[int, int]:
        """Numbers of statements in the call's functions: (reached, all)."""
        counts = [self.coverage.get(name, (0, 0)) for name in self.functions]
        return sum(a for a, _ in counts), sum(b for _, b in counts)

    @property
    def unreached(self) -> tuple[str, ...]:
        """The call's functions with statements that the analysis did not reach."""
        found = {name: self.coverage.get(name, (0, 1)) for name in self.functions if self.ended}
        return tuple(
            f"{name} {reached} of {every}" if reached else name
            for name, (reached, every) in found.items()
            if reached < every
        )


def require() -> str:
    """Return Frama-C's version.  Raises UserError if Frama-C or a prover is missing."""
    if shutil.which("frama-c") is None:
        raise UserError(f"prove needs Frama-C, which is not installed; install it with: apt install {PACKAGE} why3 z3")
    if shutil.which(PROVER) is None or shutil.which("why3") is None:
        raise UserError("prove needs Why3 and Z3, which are not installed; install them with: apt install why3 z3")
    found = subprocess.run(["frama-c", "-version"], capture_output=True, text=True, timeout=60)
    return f"Frama-C {found.stdout.strip()}"


def _words(folder: Path, macro: str, level: str = "") -> list[str]:
    """Return the beginning of a command line, which sets the machine and allows any floating-point value.

    It also leaves out the marks of loops and, except at the level "finite", the FPU's square root, because these are
    written in assembly.
    """
    root = "" if level == FINITE else f" -D{macro}_NO_FPU"
    flags = f"-cpp-extra-args=-I{folder} -include {folder / FLOATS}{root} -D{macro}_MARKS=0"
    return ["frama-c", "-machdep", MACHINE, flags, "-warn-special-float", "none"]


def _run(words: list[str], times: Path, timeout: float) -> tuple[str | None, float]:
    """Run Frama-C.  Returns the printed text (None if the run took too long), and the CPU time in seconds."""
    begin = time.monotonic()
    environment = {**os.environ, "WHY3CONFIG": str(times.with_name(PROVERS))}
    ended = run_program([words[0], "-time", str(times), *words[1:]], environment, timeout)
    if ended is None:
        return None, time.monotonic() - begin
    found = re.findall(r"[\d.]+", times.read_text().rpartition(" ")[2]) if times.is_file() else []
    return ended.stdout + ended.stderr, float(found[0]) if found else time.monotonic() - begin


def _keep(path: Path, text: str) -> None:
    with whole_file(path, lasting=False) as file:
        file.write(text.encode())


def analyse(call: Call, folder: Path, macro: str, timeout: float) -> Finding:
    """Run Eva on one call of a driver in a folder.  If low precision does not prove everything, run Eva again with higher precision."""
    first = _analyse(replace(call, precision=COARSE), folder, macro, timeout)
    if first.proved:
        return first
    again = _analyse(call, folder, macro, timeout)
    # if the second analysis is stopped, the folder still has the files of the first analysis
    return replace(first if first.ended and not again.ended else again, seconds=first.seconds + again.seconds)


def _eva(call: Call, folder: Path, macro: str) -> list[str]:
    """Return the command line of one call's analysis, which writes the call's table."""
    split = ["-eva-split-return-function", ",".join(f"{name}:full" for name in call.split)] if call.split else []
    return [
        *_words(folder, macro, call.level),
        *("-eva", "-eva-precision", str(call.precision), "-main", call.main, "-eva-print-callstacks", *split),
        *(("-eva-auto-loop-unroll", str(UNROLLED)) if call.precision == COARSE else ()),
        *("-eva-msg-key=-final-states", *(str(folder / file) for file in call.files)),
        *("-then", "-metrics", "-metrics-eva-cover", "-then", "-report-csv", str(folder / f"{call.main}.csv")),
    ]


def _wp(name: str, folder: Path, macro: str, text: str) -> list[str]:
    """Return the command line that proves a file's assertions about NaN and writes a table of them.  text: the file's content."""
    absolute = re.findall(r"^static \w+ (\w+_absolute)\(", text, flags=re.MULTILINE)
    return [
        *_words(folder, macro),
        *(("-inline-calls", absolute[0]) if absolute else ()),
        *("-wp", f"-wp-prop={PASSED}", "-wp-prover", PROVER, "-wp-timeout", str(GOAL_SECONDS), str(folder / name)),
        *("-then", "-report-csv", str(folder / f"wp_{Path(name).stem}.csv")),
    ]


def _analyse(call: Call, folder: Path, macro: str, timeout: float) -> Finding:
    table, words = folder / f"{call.main}.csv", _eva(call, folder, macro)
    text, seconds = _run(words, folder / f"{call.main}.time", timeout)
    if text is None:
        return Finding(call, False, f"took more than {timeout:g} s", seconds=seconds)
    _keep(folder / f"{call.main}.log", text)
    if "ANALYSIS SUMMARY" not in text or not table.is_file():
        wrong = re.findall(r"(?:User Error|Failure|error): *\n? *(.+)", text) or text.strip().splitlines()[-1:] or [""]
        return Finding(call, False, f"Frama-C stopped: {wrong[0].strip()}", seconds=seconds)
    coverage = {
        name: (int(reached), int(every))
        for name, reached, every in re.findall(r"^  (\w+): (\d+) stmts out of (\d+)", text, flags=re.MULTILINE)
    }
    alarms, checks, passed = _properties(call, folder, table, text)
    strange = set(re.findall(r"Neither code nor specification for function (\w+)", text))
    alarms += [Alarm("unknown function", f"{name} has no C", f"{call.files[0]}", 0, "") for name in sorted(strange)]
    return Finding(call, True, "", tuple(alarms), checks, coverage, frozenset(passed), seconds)


def _properties(
    call: Call, folder: Path, table: Path, log: str
) -> tuple[list[Alarm], dict[str, bool], set[tuple[str, int]]]:
    """Return the alarms, the driver's assertions, and the assertions about NaN that only WP can prove."""
    alarms, checks, passed = list[Alarm](), dict[str, bool](), set[tuple[str, int]]()
    stacks, lines = _stacks(log), dict[str, list[str]]()
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        # row["directory"] is absolute, or relative to $PWD; for Frama-C's own files, it begins with FRAMAC_SHARE
        name, number, status, kind = row["file"], int(row["line"]), row["status"], row["property kind"]
        foreign = row["directory"].startswith("FRAMAC_SHARE") or not (folder / name).is_file()
        if foreign or kind in ("assigns clause", "from clause"):
            continue
        if name not in lines:
            lines[name] = (folder / name).read_text(encoding="utf-8").splitlines()
        code = lines[name][number - 1].strip()
        if kind == "user check" and row["function"] == call.main:
            stated = re.match(r"/\*@ check (\w+):", code)
            checks[stated[1] if stated else code] = status == "Valid"
            continue
        if status in ("Dead", "Considered valid") or status.startswith("Valid"):
            continue
        if kind in STATED:
            stated = re.match(r"(?:.*)/\*@ (?:assert|ensures) (\w+):", code)
            kind = stated[1] if stated else kind
            code = next((text.strip() for text in lines[name][number:] if not text.strip().startswith("/*@")), code)
            if kind == PASSED:
                passed.add((name, number))
                continue
        kind = kind.replace("user check", "check")
        alarms.append(Alarm(kind, row["property"], name, number, code, stacks.get((name, number), ())))
    return alarms, checks, passed


def _stacks(log: str) -> dict[tuple[str, int], tuple[str, ...]]:
    """Return the call stack of each alarm: (file, line) of the alarm -> functions, innermost first."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    for block in re.findall(r"^\[eva:alarm\] (.*(?:\n  .*)*)", log, flags=re.MULTILINE):
        place = re.match(r"(\S+):(\d+): Warning:", block)
        _, _, stack = block.partition("stack: ")
        if place and stack:
            calls = tuple(part.split("::")[0].strip() for part in stack.replace("\n", " ").split("<-"))
            found.setdefault((Path(place[1]).name, int(place[2])), calls)
    return found


def prove_passed(
    places: Iterable[tuple[str, int]], folder: Path, macro: str, timeout: float
) -> tuple[set[tuple[str, int]], float]:
    """Prove assertions about NaN with WP.  Returns the (file, line) of each proved assertion, and the CPU time in seconds.

    WP assumes nothing about callers, but it assumes the preceding assertions about indices, which Eva proves or reports.
    """
    proved, seconds = set[tuple[str, int]](), 0.0
    files = sorted({name for name, _ in places})
    if files:
        run_program(DETECT, {**os.environ, "WHY3CONFIG": str(folder / PROVERS)})
    for name in files:
        table = folder / f"wp_{Path(name).stem}.csv"
        words = _wp(name, folder, macro, (folder / name).read_text(encoding="utf-8"))
        text, took = _run(words, folder / f"wp_{Path(name).stem}.time", timeout)
        seconds += took
        if text is None or not table.is_file():
            continue
        _keep(folder / f"wp_{Path(name).stem}.log", text)
        with table.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                if row["file"] == name and row["property kind"] in STATED and row["status"] in PROVED:
                    proved.add((name, int(row["line"])))
    return proved, seconds


# ------------------------------------------------------------------------------------------------ the Makefile

MAKEFILE = """\
# Repeats the proof of the C code in this folder; needs only Frama-C, Why3 and Z3:
#
#     make -j 2           # fails if anything is left unproved
#
# Written by pykernel prove for {about}.
# What is proved, and what is not: docs/proof.md of pykernel.

# Frama-C resolves paths against $PWD.  make -C does not change this variable of the shell, so it is set here.
export PWD := $(CURDIR)
export WHY3CONFIG := $(CURDIR)/{provers}

unproved.txt: {tables}
\tawk -F '\\t' '$(UNPROVED)' $^ | sort -u > $@
\t@cat $@; test ! -s $@ && echo 'proved: {count} calls'

# Selects the table rows that count as unproved: properties that Eva leaves open, unless WP proves them; and the driver's
# checks after a call, if the analysis does not reach the end of the call.
UNPROVED = FILENAME ~ /^wp_/ {{ if ($$5 ~ /^(user assertion|postcondition)$$/ && $$6 ~ /^(Valid|Partially proven)$$/) wp[$$2 ":" $$3]; next }} \\
    $$2 ~ /^({name}|{name}_snapshot|prove_[a-z]+)[.]c$$/ && $$5 !~ /^(assigns|from) clause$$/ && \\
    ($$6 !~ /^(Valid|Dead|Considered valid)/ || ($$6 == "Dead" && $$5 == "user check" && $$4 ".csv" == FILENAME)) && \\
    !(($$2 ":" $$3) in wp) {{ print $$2 ":" $$3 ": " $$5 ": " $$7 }}

{rules}
{provers}:
\t{detect}

clean:
\trm -f unproved.txt {provers} *.csv

.PHONY: clean
.DELETE_ON_ERROR:
"""


def makefile(calls: Sequence[Call], stepped: Mapping[str, str], name: str, about: str) -> str:
    """Return a Makefile that repeats the analyses without pykernel.  stepped: name of each file with assertions about
    NaN -> its text.
    """
    here, macro = Path(), name.upper()
    commands = {f"{call.main}.csv": (call.files, _eva(call, here, macro)) for call in calls}
    # the rules for WP's tables
    commands |= {
        f"wp_{Path(file).stem}.csv": ((file, PROVERS), _wp(file, here, macro, text)) for file, text in stepped.items()
    }
    rules = [f"{table}: {' '.join(files)}\n\t{shlex.join(words)}\n" for table, (files, words) in commands.items()]
    tables = " ".join(sorted(commands, key=lambda table: not table.startswith("wp_")))
    return MAKEFILE.format(
        about=about,
        tables=tables,
        count=len(calls),
        name=name,
        rules="\n".join(rules),
        provers=PROVERS,
        detect=shlex.join(DETECT),
    )
