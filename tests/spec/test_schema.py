"""What is written from the declarations: the JSON Schema, the tables of docs/reference/spec.md."""

import copy
import json
import re
import tomllib

import numpy as np
import pytest

from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.spec.defaults import groups
from pykernel.spec.families.online_keys import GRADIENT
from pykernel.spec.model import declared, keys_of, make_spec, rules, sections
from pykernel.spec.schema import spec_schema
from tests.support import ROOT
from tests.support.json_schema import misfits
from tests.support.key_tables import key_tables
from tests.support.random_specs import random_spec
from tests.support.specs import named

SCHEMA = spec_schema()
SPECS = sorted(p for p in ROOT.glob("**/*.toml") if "name =" in p.read_text(encoding="utf-8") and "[input]" in p.read_text(encoding="utf-8") and not {".venv", "build", "pykernel-demo", "promises"} & set(p.parts))  # fmt: skip
KERNEL = {"kernel": {"sigma": 1.0}}


def as_written(spec):
    return tomllib.loads(spec.to_toml())


def test_the_command_prints_it(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["info", "schema"])
    assert not stopped.value.code and json.loads(capsys.readouterr().out) == json.loads(json.dumps(SCHEMA))


@pytest.mark.exhaustive
def test_every_key_of_a_rule_is_in_its_schema_and_no_other():
    for rule in rules():
        base = {"name": "m", "input": {"dim": 2}, "learning": {"rule": rule}}
        for section in sections():
            for key in keys_of(section):
                if (section, key) == ("learning", "rule"):
                    continue
                content = copy.deepcopy(base)
                content.setdefault(section, {})[key] = "no value of any key\n"
                where = [path for path, why in misfits(SCHEMA, content) if why == "is not a key here"]
                known = rule in declared(section, key)
                absent = rule not in declared(section)
                assert (where == []) is known, (rule, section, key, where)
                assert where in ([], [section] if absent else [f"{section}.{key}"])


def test_what_is_accepted_fits():
    rng = np.random.default_rng(0)
    for rule in rules():
        written = as_written(random_spec(rng, rule))
        assert misfits(SCHEMA, written) == [], written
    assert len(SPECS) >= 10
    for path in SPECS:
        assert misfits(SCHEMA, tomllib.loads(path.read_text(encoding="utf-8"))) == [], path


def test_int16_has_its_own_keys():
    base = {"name": "m", "precision": "int16", "input": {"dim": 2, "max_abs": [1.0, 2.0]}, "label": {"max_abs": 1.0}}
    for more in ({}, {"learning": {"rule": "klms"}} | KERNEL, {"label": {"classes": ["a", "b"]}}):
        assert misfits(SCHEMA, base | more) == [] and make_spec(base | more)
    for change, where in (
        ({"learning": {"rule": "krls-t"}}, ""),
        ({"input": {"dim": 2, "max_abs": 1.0, "standardise": True}}, "input.standardise"),
        ({"reduction": {"technique": "mklms"}}, "reduction.technique"),
        ({"precision": "int8"}, "precision"),
    ):
        assert not where or where in {path for path, _ in misfits(SCHEMA, base | change)}
        with pytest.raises(UserError):
            make_spec(base | change)
    real = {"name": "m", "input": {"dim": 2, "resolution": 1.0}}
    assert "input.resolution" in {path for path, _ in misfits(SCHEMA, real)}


WRONG = [
    ({"learning": {"rule": "krr", "eta": 0.3}}, "learning.eta"),
    ({"learning": {"rule": "krr"}, "reduction": {"n_max": 3}}, "reduction"),
    ({"learning": {"eta": 2.0}}, "learning.eta"),
    ({"learning": {"eta": "0.3"}}, "learning.eta"),
    ({"learning": {"rule": "lms"}}, "learning.rule"),
    ({"reduction": {"technique": "lms"}}, "reduction.technique"),
    ({"reduction": {"n_max": 1.5}}, "reduction.n_max"),
    ({"novelty": {}}, "novelty"),
    ({"kernl": {}}, "kernl"),
    ({"input": {"dim": 0}}, "input.dim"),
    ({"learning": {"rule": "frozen"}, "expansion": {"weights": [[1.0]]}}, "expansion.vectors"),
    ({"learning": {"rule": "frozen"}, "expansion": {"vectors": [[1.0, "2"]]}}, "expansion.vectors.0.1"),
    *(
        (
            {"learning": {"rule": "frozen"}, "expansion": {"vectors": [[1.0, 2.0]], "trained": told}},
            f"expansion.trained{key}",
        )
        for told, key in (
            ({"scaling": "a", "rows": 0}, ".rows"),
            ({"rows": 3}, ".scaling"),
            ({"scaling": "a", "row": 3}, ".row"),
            (3, ""),
        )
    ),
]


@pytest.mark.parametrize(("change", "where"), WRONG, ids=str)
def test_what_does_not_fit_is_refused_by_both(change, where):
    content = named({"name": "m", "input": {"dim": 2}, **KERNEL, **change})
    assert where in {path for path, _ in misfits(SCHEMA, content)}
    with pytest.raises(UserError, match=re.escape(where.split(".")[-1] if not where[-1].isdigit() else "vectors")):
        make_spec(content)


def test_the_tables_of_the_docs_are_the_declarations(pytestconfig):
    path = ROOT / "docs" / "reference/spec.md"
    text = path.read_text(encoding="utf-8")
    tables = key_tables()
    assert re.findall(r"<!-- keys: (\S+) -->", text) == list(tables)
    written = re.sub(
        r"(<!-- keys: (\S+) -->\n).*?(<!-- end -->)",
        lambda m: m[1] + "\n" + tables[m[2]] + "\n" + m[3],
        text,
        flags=re.DOTALL,
    )
    if pytestconfig.getoption("--update-golden"):
        path.write_text(written, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == written
    for rule in rules():  # each key of each rule is in exactly one table that the rule reads
        for section in sections():
            for key in keys_of(section):
                assert rule not in declared(section, key) or f"| `{key}` |" in written
    assert (
        "| `n_max` | | `32` |" in tables["okfeb"]
        and f"| `rho` | {', '.join(f'`{rule}`' for rule in GRADIENT)} | `0.0` | from 0 |" in tables["klms"]
    )


@pytest.mark.parametrize("label", [{}, {"label": {"classes": ["a", "b"]}}], ids=["number", "class"])
@pytest.mark.parametrize(
    "more",
    [
        *({}, {"kernel": {"gamma": 1.0}}, {"kernel": {"function": "gaussian"}}, {"novelty": {}}),
        *({"reduction": {"n_max": 8}}, {"kernel": {"function": "laplacian", "gamma": 1.0}}, {"precision": "int16"}),
        *({"learning": {"noise": 0.5}}, {"learning": {"forgetting": 0.99}}, {"learning": {"seed": 1}}),
        {"input": {"dim": 2, "scale": [1.0, 2.0]}, **KERNEL},
        {"precision": "int16", "reduction": {"n_max": 8}},
        {"precision": "int16", "kernel": {"function": "laplacian", "gamma": 1.0}},
        {"precision": "int16", "learning": {"rho": 0.01}},
        {"precision": "int16", "learning": {"features": 4}},
        {"precision": "int16", "input": {"dim": 2, "max_abs": [1.0, 1.0], "center": [1.0, 2.0], "scale": [1.0, 2.0]}},
    ],
    ids=str,
)
def test_the_schema_of_a_spec_without_a_rule_is_that_of_the_rule_that_it_gets(label, more):
    """With a wrong value for every key of every rule, the schema forbids the same."""
    if "novelty" in more:
        label = {}  # a monitor has none
    content = copy.deepcopy({"name": "m", "input": {"dim": 2, "max_abs": 1.0}} | label | more)
    if "precision" in more:
        content.setdefault("label", {}).setdefault("max_abs", 1.0)
    rule = make_spec(content).learning.rule
    deciding = {(lack.section, lack.key) for lack in groups("class", False)[0][0].lacks}
    if more.get("precision") == "int16" and not label:
        deciding |= {(lack.section, lack.key) for lack in groups("number", True)[0][0].lacks if lack.key == "eta"}
    for section in sections():
        for key in keys_of(section):
            if {section, key} & {"rule", "novelty", "classes"} or deciding & {(section, None), (section, key)}:
                continue  # these say which rule is taken
            content.setdefault(section, {}).setdefault(key, "no value of any key\n")
    without = misfits(SCHEMA, content)
    content["learning"]["rule"] = rule
    assert len(without) > 20 and without == misfits(SCHEMA, content)


def test_every_key_says_what_it_means():
    for section in sections():
        for key in keys_of(section):
            for rule, field in declared(section, key).items():
                assert field.description, (rule, section, key)
