"""An option of another command, or of an earlier version, is refused with what this command calls the same thing."""

import re

import pytest

from pykernel.cli.app import COMMANDS, assembled
from pykernel.cli.spellings import COMMANDS as GONE
from pykernel.cli.spellings import ELSEWHERE, FORMER, INSTEAD

# what fills the places before the option
WORDS = {
    **dict.fromkeys(("simulate", "page", "replay", "sweep", "merge"), "spec.toml data.csv"),
    **dict.fromkeys(("generate", "check", "prove", "fit", "basis", "convert", "plan", "import"), "data.csv"),
}
OPTIONS = {
    name: {each for parameter in command.params for each in (*parameter.opts, *parameter.secondary_opts)}
    for name, command in assembled().commands.items()
}
SAME = [(command, old, new) for old, each in ELSEWHERE.items() for command, new in each.items()]
OTHER = [(command, old, said) for old, each in INSTEAD.items() for command, said in each.items()]
OLD = [(command, old, new) for old, new in FORMER.items() for command in COMMANDS if new in OPTIONS[command]]


def refused(run, command, option):
    code, out, err = run(command, *WORDS.get(command, "").split(), option, "1")
    assert (code, out) == (2, "") and err.count("\n") == 1
    return err


@pytest.mark.parametrize("command, old, new", SAME)
def test_what_another_command_calls_so(command, old, new, run):
    err = refused(run, command, old)
    assert err == f"error: No such option: {old}; here it is {new}; see pykernel {command} --help\n"
    assert new.split()[0] in OPTIONS[command] and old not in OPTIONS[command]
    assert old == "--micropython" or any(old in options for options in OPTIONS.values())  # which is Python's


@pytest.mark.parametrize("command, old, said", OTHER)
def test_what_is_said_in_another_way(command, old, said, run):
    assert refused(run, command, old) == f"error: No such option: {old}; {said}; see pykernel {command} --help\n"
    assert old not in OPTIONS[command] and set(re.findall(r"--[a-z-]+", said)) <= OPTIONS[command]
    assert old in FORMER or any(old in options for options in OPTIONS.values())
    assert old not in ELSEWHERE.get(command, {})


@pytest.mark.parametrize("command, old, new", OLD)
def test_what_an_earlier_version_called_so(command, old, new, run):
    if old in OPTIONS[command] or command in ELSEWHERE.get(old, {}) or command in INSTEAD.get(old, {}):
        return
    assert (
        refused(run, command, old) == f"error: No such option: {old}; it is {new} now; see pykernel {command} --help\n"
    )


def test_a_former_name_is_told_only_where_the_present_one_is(run):
    assert "--out" in FORMER and "--output" not in OPTIONS["check"] and "now" not in refused(run, "check", "--out")
    assert not set(FORMER) & set().union(*OPTIONS.values())


@pytest.mark.parametrize("command", GONE)
def test_a_command_of_an_earlier_version(command, run):
    code, out, err = run(command, "spec.toml")
    assert (code, out) == (2, "") and command not in COMMANDS
    assert err == f"error: No such command {command!r}; {GONE[command]}; see pykernel --help\n"


@pytest.mark.parametrize("words", [["basis", "x.csv", "--basis=efvs"], ["plan", "x.csv", "-n8"]])
def test_a_value_may_follow_at_once(words, run):
    code, _, err = run(*words)
    assert code == 2 and ("here it is --method" in err or "plan chooses the size" in err)


def test_an_unknown_option_is_refused_as_before(run):
    err = refused(run, "fit", "--bases")
    assert err.startswith("error: No such option: --bases") and "--basis" in err
