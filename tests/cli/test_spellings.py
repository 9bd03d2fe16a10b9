"""An option of another command, or of an earlier version, is refused with what this command calls the same thing."""

import ast
import json
import re
from pathlib import Path

import pytest

from pykernel.cli.face import options_of
from pykernel.request.option import Arg, declared, former
from pykernel.workflows.requests import COMMANDS, GONE
from tests.support import ROOT

OPTIONS = {
    name: {option for each in options_of(kind) if not isinstance(each.opt, Arg) for option in each.options}
    for name, kind in COMMANDS.items()
}
EVERYWHERE = set().union(*OPTIONS.values())
WAS = [(name, old, each) for name, kind in COMMANDS.items() for each in declared(kind) for old in each.opt.was]
SAID = [(name, old, said) for name, kind in COMMANDS.items() for old, said in getattr(kind, "gone", {}).items()]


def refused(run, command, option):
    places = ["data.csv" for each in declared(COMMANDS[command]) if isinstance(each.opt, Arg)]
    code, out, err = run(*command.split(), *places, option, "1")
    assert (code, out) == (2, "") and err.count("\n") == 1
    return err


@pytest.mark.parametrize("command, old, now", WAS)
def test_another_name_of_an_option(command, old, now, run):
    if old in getattr(COMMANDS[command], "gone", {}):
        return
    name = now.names[0] + (f"={now.opt.value}" if now.opt.key else "")
    told = f"here it is {name}" if old in EVERYWHERE else f"it is {name} now"
    assert refused(run, command, old) == f"error: No such option: {old}; {told}; see pykernel {command} --help\n"
    assert old not in OPTIONS[command]


@pytest.mark.parametrize("command, old, said", SAID)
def test_what_is_said_in_another_way(command, old, said, run):
    assert refused(run, command, old) == f"error: No such option: {old}; {said}; see pykernel {command} --help\n"
    assert old not in OPTIONS[command] and set(re.findall(r"--[a-z-]+", said)) <= OPTIONS[command]


def test_every_option_of_version_0_3_is_there_or_told():
    """Of a command that has another name now: it is an option of that one, or told there.  The page has each that left."""
    before = json.loads(Path(__file__).with_name("options-0.3.json").read_text(encoding="utf-8"))
    assert len(before) == 20 and sum(len(options.split()) for options in before.values()) > 198
    page = (ROOT / "docs/migration.md").read_text(encoding="utf-8")
    for command, options in before.items():
        there = GONE.get(command.split()[0], f"it is {command} now")
        now = max((name for name in COMMANDS if there.startswith(f"it is {name} ")), key=len)
        left = {old for old in options.split() if old not in OPTIONS[now]}
        told = {old for old in left if former(COMMANDS[now], old, EVERYWHERE) and re.search(f"{old}[` ]", page)}
        assert told == left, (command, now)


@pytest.mark.parametrize("command", GONE)
def test_a_command_of_an_earlier_version(command, run):
    code, out, err = run(command, "spec.toml")
    assert (code, out) == (2, "") and command not in COMMANDS
    assert err == f"error: No such command {command!r}; {GONE[command]}; see pykernel --help\n"


@pytest.mark.parametrize("words", [["fit", "x.csv", "--basis=efvs"], ["plan", "x.csv", "-n8"]])
def test_a_value_may_follow_at_once(words, run):
    code, _, err = run(*words)
    assert code == 2 and ("it is --set training.method=METHOD now" in err or "plan chooses the size" in err)


def test_messages_name_parameters_that_a_command_has():
    """A name that no command has would be the name before a renaming; Python's name and the shell's are the same."""
    named = {
        (path.name, each.args[0].value)
        for path in (ROOT / "pykernel").rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(each, ast.Call)
        and getattr(each.func, "id", "") == "option"
        and isinstance(each.args[0], ast.Constant)
    }
    known = {each.name for kind in COMMANDS.values() for each in declared(kind) if not isinstance(each.opt, Arg)}
    assert len(named) > 40
    assert {(file, name) for file, name in named if name not in known} == set()
