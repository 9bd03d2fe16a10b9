"""What docs/versions.md promises within 1.x: what a version recorded here is still there, and its files are read or refused by a sentence.

tests/promises.json has what this version promises: keys of a spec, names of the C, commands with options, names and
parameters of Python, keys of ``--json`` (tests/cli/test_keys.py).  tests/promises/VERSION has
specs and snapshots that a version wrote.  ``--update-golden`` adds what is new.  Only files from before 1.0 may be refused.
"""

import inspect
import re

import pytest

import pykernel
from pykernel.cli.face import options_of
from pykernel.errors import UserError
from pykernel.gen.streams import mixed_stream
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec
from pykernel.spec.schema import spec_schema
from pykernel.workflows.requests import COMMANDS
from tests.gen.test_golden import GOLDEN, GOLDENS
from tests.release_check import VERSION
from tests.support import DOCS, ROOT
from tests.support.promises import keeps

FOLDER = ROOT / "tests" / "promises"
WRITTEN = sorted(FOLDER.glob("*/*.bin"))


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
    def found():
        for name in pykernel.__all__:
            yield name, "name"
            # the keys of a Spec are those of a spec
            if callable(value := getattr(pykernel, name)) and value is not pykernel.Spec:
                for parameter in inspect.signature(value).parameters.values():
                    yield f"{name}({parameter.name})", parameter.kind.description

    keeps(pytestconfig, "Python", dict(found()))


@pytest.mark.parametrize("name", GOLDENS)
def test_this_versions_snapshots_are_recorded(name, pytestconfig):
    """So that later versions are compared with them."""
    spec, folder = load_spec(GOLDEN / f"{name}.toml"), FOLDER / ".".join(VERSION.split(".")[:2])
    model = HostModel(spec)
    model.prequential(*mixed_stream(spec, 300))
    made = snapshot.save(model)
    if pytestconfig.getoption("--update-golden") and not (folder / f"{name}.bin").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_bytes((GOLDEN / f"{name}.toml").read_bytes())
        (folder / f"{name}.bin").write_bytes(made)


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.relative_to(FOLDER).with_suffix("").as_posix())
def test_what_a_version_wrote_is_read_or_refused(path):
    try:
        spec = load_spec(path.with_suffix(".toml"))
        model, kept = HostModel(spec), snapshot.read(spec, path.read_bytes())
        snapshot.load(model, path.read_bytes())
    except UserError as error:
        before_1 = path.parent.name.startswith("0.")
        assert before_1 and re.search(r"leave out|state kind|migrate|was renamed|format", str(error)), error
        return
    assert snapshot.read(spec, snapshot.save(model)).state_hash == kept.state_hash


def test_some_of_them_are_read():
    assert len(WRITTEN) >= 4
    for path in WRITTEN:
        if path.stem == "flow":
            snapshot.read(load_spec(path.with_suffix(".toml")), path.read_bytes())
