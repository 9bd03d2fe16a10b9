"""An option or a subcommand of another command is refused with what this command calls the same thing."""

import ast
import re

import pytest

from pykernel.cli.face import options_of
from pykernel.request.option import Arg, declared
from pykernel.request.options import OF_SPEC
from pykernel.workflows.requests import COMMANDS
from tests.support import ROOT

OPTIONS = {
    name: {option for each in options_of(kind) if not isinstance(each.opt, Arg) for option in each.options}
    for name, kind in COMMANDS.items()
}
EVERYWHERE = set().union(*OPTIONS.values())
OTHERS = [
    (name, other, f"here it is {each.names[0]}")
    for name, kind in COMMANDS.items()
    for each in declared(kind)
    for other in each.opt.elsewhere
    if other not in getattr(kind, "instead", {})
]
SAID = [(name, other, said) for name, kind in COMMANDS.items() for other, said in getattr(kind, "instead", {}).items()]
KEYS = [
    (name, option, f"here it is {each.names[0]}={each.opt.value}")
    for name, kind in COMMANDS.items()
    for each in declared(kind)
    if each.opt.key and (option := f"--{each.name.strip('_').replace('_', '-')}") not in getattr(kind, "instead", {})
]


@pytest.mark.parametrize("command, option, said", [*OTHERS, *SAID, *KEYS])
def test_an_option_that_the_command_calls_otherwise(command, option, said, run):
    places = ["data.csv" for each in declared(COMMANDS[command]) if isinstance(each.opt, Arg)]
    code, out, err = run(*command.split(), *places, option, "1")
    assert (code, out) == (2, "")
    assert err == f"error: No such option: {option}; {said}; see pykernel {command} --help\n"
    assert option not in OPTIONS[command] and set(re.findall(r"--[a-z-]+", said)) <= OPTIONS[command]


def test_hints_are_about_options_and_keys_that_there_are():
    """A hint for a name that nothing has would keep what nobody can have written."""
    assert {option for _, option, _ in OTHERS} <= EVERYWHERE
    assert {option for _, option, _ in SAID} <= EVERYWHERE | OF_SPEC.keys()


@pytest.mark.parametrize("command", [name for name in COMMANDS if " " in name])
def test_a_subcommand_alone(command, run):
    word = command.split()[1]
    assert run(word, "spec.toml") == (
        2,
        "",
        f"error: No such command {word!r}; it is {command}; see pykernel --help\n",
    )


@pytest.mark.parametrize("words", [["fit", "x.csv", "--sigma=1"], ["plan", "x.csv", "-n8"]])
def test_a_value_may_follow_at_once(words, run):
    code, _, err = run(*words)
    assert code == 2 and ("here it is --set kernel.sigma=S,S" in err or "plan chooses the size" in err)


def test_messages_name_parameters_that_a_command_has():
    """A name that no command has would be the name before a renaming; Python's name and the shell's are the same."""
    named = {
        (path.name, each.args[0].value)
        for path in (ROOT / "pykernel").rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(each, ast.Call)
        and getattr(each.func, "id", "") == "shown_option"
        and isinstance(each.args[0], ast.Constant)
    }
    known = {each.name for kind in COMMANDS.values() for each in declared(kind) if not isinstance(each.opt, Arg)}
    assert len(named) > 40
    assert {(file, name) for file, name in named if name not in known} == set()
