"""The arguments that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pykernel.request.kinds import File, Files, Jobs, Words
from pykernel.request.option import Arg, Opt, Py

# ------------------------------------------------------------------------------------------------------------ arguments

Table = Annotated[
    Files,
    Arg("A table (-: stdin); many devices: folder or tables.", "DATA…", kind=list[str]),
]
OneTable = Annotated[File, Arg("A CSV file; - reads standard input.", "DATA", kind=str)]

# -------------------------------------------------------------------------------------------------------------- options

Report = Annotated[File | None, Opt("A report, FILE.html.", "FILE")]
FolderReport = Annotated[File | None, Opt("A report, FILE.html.", "FILE", without="FOLDER/report.html", rare=True)]
StateOut = Annotated[File | None, Opt("The snapshot to write.", "FILE", short="-o", needed=True)]
Folder = Annotated[File, Opt("Folder for the results.", "FOLDER", short="-o")]
Inputs = Annotated[Words, Opt("The inputs' columns.", "A,B", without="all others with numbers")]
Precision = Annotated[str, Opt("float32, float64 or int16.", "TYPE", key="precision")]
Name = Annotated[
    str | None, Opt("Prefix of all names in C.", "NAME", key="name", without="the name of the spec's file")
]
AllJobs = Annotated[
    Jobs,
    Opt(
        "Number of parallel processes.",
        "N",
        without="chosen to save time",
        rare=True,
    ),
]
Delay = Annotated[int, Opt("Labels arrive K rows (with [signal], K steps) late.", "K")]
Only = Annotated[
    Words,
    Opt(
        "Rules or techniques to try, like rls,frozen/trained.",
        "RULE|TECHNIQUE",
        kind=list[str],
    ),
]
Targets = Annotated[Words, Opt("Run on this emulated CPU; all: on every one.", "TARGET", kind=list[str])]
Classes = Annotated[
    Words, Opt("Classes; if there are two, the second is positive.", "A,B", key="label.classes", without="sorted")
]
Seed = Annotated[int, Opt("Seed of the random numbers.", "S", least=0, rare=True)]
Record = Annotated[File | None, Opt("Write the verdict to VALIDITY.md in the project FOLDER.", "FOLDER")]
Force = Annotated[bool, Opt("Overwrite files that are there.")]
Watched = Annotated[Any, Py("Object that receives progress and messages.")]

# ----------------------------------------------------------------------- hints for options that a command does not take

THE_TABLE = {"--data": "give the table without an option name"}
OF_SPEC = {
    "--classes": "the spec has them, in [label] classes",
    "--columns": "the spec has them, in [input] columns",
    "--inputs": "the spec has them, in [input] columns",
    "--label": "the spec has it, in [label] column",
    "--name": 'the spec has it, in the key "name"',
    "--precision": 'the spec has it, in the key "precision"',
}


@dataclass(frozen=True)
class Shell:
    """Options that only the shell has.  The attribute ``shell`` of a request lists those that the request takes."""

    trust_code: Annotated[bool, Opt("Execute the Python file that [kernel] source names.")] = False
    engine: Annotated[
        str | None,
        Opt(
            "Engine for the model on this PC: llvm, numba or python.",
            "ENGINE",
            without="llvm; check also uses numba",
            rare=True,
        ),
    ] = None
    json: Annotated[bool, Opt("Print only one JSON object.")] = False
    set: Annotated[Sequence[str], Opt("Set a key (see above); may be repeated.", "KEY=VALUE", kind=list[str])] = ()
