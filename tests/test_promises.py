"""What docs/versions.md promises from the first published version on: what was written down is still there.

tests/promises.json has what a user writes down or reads by a program: keys of a spec, names of the C, commands with options,
names of Python, keys of ``--json`` that docs/reference/commands.md lists.
"""

import re

import pykernel
from pykernel.cli.face import options_of
from pykernel.spec.schema import spec_schema
from pykernel.workflows.requests import COMMANDS
from tests.support import DOCS
from tests.support.promises import keeps


def test_keys_of_a_spec(pytestconfig):
    schema = spec_schema()

    def found(node, path):
        node = schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        for each in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
            yield from found(each, path)
        for key, inner in node.get("properties", {}).items():
            yield f"{path}{key}"
            yield from found(inner, f"{path}{key}.")

    keeps(pytestconfig, "keys of a spec", dict.fromkeys(found(schema, ""), "key"))


def test_names_of_the_c(pytestconfig):
    page = (DOCS / "reference" / "c-interface.md").read_text(encoding="utf-8")
    calls = {re.search(r"(\w+)\(", call)[1]: call for call in re.findall(r"^\| `([^`]*\))` \|", page, re.MULTILINE)}
    macros = dict.fromkeys(re.findall(r"^\| `(NAME_[A-Z_]+)` \|", page, re.MULTILINE), "macro")
    statuses = dict(re.findall(r"^\| `([A-Z_]+)` \| (-?\d+) \|", page, re.MULTILINE))
    assert calls and macros and statuses
    keeps(pytestconfig, "names of the C", calls | macros | statuses)


def test_commands_and_options(pytestconfig):
    named = {name: [option for each in options_of(kind) for option in each.options] for name, kind in COMMANDS.items()}
    keeps(pytestconfig, "commands", {f"{name} {option}": "option" for name in named for option in ("", *named[name])})


def test_names_of_python(pytestconfig):
    keeps(pytestconfig, "Python", dict.fromkeys(pykernel.__all__, "name"))


def test_keys_of_json(pytestconfig):
    """That the commands print them with these types: tests/cli/test_keys.py."""
    page = (DOCS / "reference" / "commands.md").read_text(encoding="utf-8")
    (glossary,) = re.findall(r"^## Keys of --json$(.*?)^## ", page, re.MULTILINE | re.DOTALL)
    keeps(pytestconfig, "keys of --json", dict(re.findall(r"^\| `(\w+)` \| ([a-z ]+) \|", glossary, re.MULTILINE)))
