"""Options that a command does not have: what the command calls the same thing, and what became of options and commands of earlier versions."""

from __future__ import annotations

from collections.abc import Container

FORMER = {
    "--check": "--data",
    "--checkpoint": "--results",
    "--figure": "--plot",
    "--limit": "--max-abs",
    "--n": "--n-max",
    "--out": "--output",
    "--scheduler": "--jobs",
    "--workers": "--jobs",
}
"""Name of an option in earlier versions -> its present name."""

ELSEWHERE: dict[str, dict[str, str]] = {
    "--basis": {"basis": "--method"},
    "--by": {"sweep": "--score"},
    "--columns": dict.fromkeys(("plan", "fit", "basis", "import"), "--inputs"),
    "--data": {"generate": "--start"},
    "--inputs": {"convert": "--columns"},
    "--method": {"fit": "--basis"},
    "--micropython": {"generate": "--for micropython"},
    "--n-max": {"import": "--vectors"},
    "--score": {"fit": "--by"},
    "--signal": {"plan": "--spec"},
    "--spec": {"fit": "--signal"},
    "--start": {"import": "--state"},
    "--state": dict.fromkeys(("simulate", "generate"), "--start"),
    "--vectors": dict.fromkeys(("demo", "sweep", "fit", "basis"), "--n-max"),
    "-n": {"import": "--vectors"},
}
"""What other commands call an option -> of each command its own name."""

_TABLE = "the table is given without an option's name"
_SIZE = "plan chooses the size, within --ram and --flash"
_MEASURE = "plan compares models by RMSE, of classes by their error rate"
_OF_SPEC = {
    "--classes": "the spec has them, in [label] classes",
    "--columns": "the spec has them, in [input] columns",
    "--inputs": "the spec has them, in [input] columns",
    "--label": "the spec has it, in [label] column",
    "--name": "the spec has it, in the key name",
    "--precision": "the spec has it, in the key precision",
}
_WITH_SPEC = ("simulate", "generate", "check", "prove", "page", "replay", "merge", "sweep")

INSTEAD: dict[str, dict[str, str]] = {
    **{option: dict.fromkeys(_WITH_SPEC, said) for option, said in _OF_SPEC.items()},
    "--classes": dict.fromkeys((*_WITH_SPEC, "plan"), "the spec has them, in [label] classes"),
    "--checkpoint": {"basis": "a choice that is interrupted begins anew; it takes minutes at most"},
    "--data": dict.fromkeys(("simulate", "page", "plan", "sweep", "fit", "basis", "convert"), _TABLE)
    | {"merge": "pykernel simulate, begun from the merged state, tells how good it is on a recording"},
    "--log": {"replay": _TABLE},
    "--n-max": {"plan": _SIZE},
    "-n": {"plan": _SIZE},
    "--vectors": {"plan": _SIZE},
    "--by": {"plan": _MEASURE},
    "--score": {"plan": _MEASURE},
    "--rounds": {"plan": "plan tries models for a time: give --time, or --trials"},
}
"""An option that a command has not -> of each command, how the same is said."""

COMMANDS = {"compare": "it is python -m benchmarks.compare now, in the repository"}
"""A command of earlier versions -> where it is."""


def meant(command: str, option: str, known: Container[str]) -> str | None:
    """What an option of another command, or of an earlier version, is in this command; known: the options that this command has."""
    if option in known:
        return None
    if said := INSTEAD.get(option, {}).get(command):
        return said
    if name := ELSEWHERE.get(option, {}).get(command):
        return f"here it is {name}"
    name = FORMER.get(option, "")
    return f"it is {name} now" if name in known else None
