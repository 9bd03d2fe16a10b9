"""Whatever is registered is what twins define, the corpus holds and tests go through: names are read, and never copied.

An entry that is added alone fails here, or in a test that bears its name, with what is missing.
"""

import ast
import importlib
import pkgutil
import typing

import pytest

from pykernel import algorithms
from pykernel.algorithms.kernel_choice import KERNEL_RULES, KernelFunction
from pykernel.algorithms.online.projections import PROJECTIONS
from pykernel.algorithms.online.state import Metric, Projection
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.bases.select import SELECTORS
from pykernel.dialect import PRECISIONS
from pykernel.dialect.kernels import Kernel
from pykernel.spec.families import nystrom, online, subspace
from pykernel.spec.families.int16_scales import PRODUCTS
from pykernel.spec.kernel_settings import ACTIVATIONS, HIDDEN
from pykernel.spec.model import int16_rules, rules
from pykernel.spec.sections import CPUS, fields_of, section_of
from pykernel.targets.target import all_targets, find_target
from tests.host.test_identity import CORPUS, corpus
from tests.support import ROOT, naive, okfeb_twin
from tests.support.every_model import family_of

REGISTRIES = {
    "techniques": TECHNIQUES,
    "projections": PROJECTIONS,
    "kernels": KERNEL_RULES,
    "rules": rules(),
    "rules in int16": int16_rules(),
    "rules under a budget": online.RULES,
    "basis methods on the device": nystrom.METHODS,
    "updates of a subspace": subspace.UPDATES,
    "steps": subspace.STEPS,
    "budgets of a subspace": subspace.BUDGETS,
    "selectors": SELECTORS,
    "targets": all_targets(),
    "precisions": PRECISIONS,
}
ALL = 4
"""Names from which on a list of all of them is a copy; fewer may be a test's own choice."""
TWINS = {
    "techniques": naive.OWN_PROJECTION,
    "projections": naive.PROJECTIONS,
    "rules under a budget": naive.RULES,
    "steps": okfeb_twin.ETA,
}
"""What the slow twins define, by themselves."""


def names_in(node):
    return {each.value for each in node.elts if isinstance(each, ast.Constant)}


def copies(text):
    """Lists of all names of a registry: (line, registry)."""
    large = {name: set(entries) for name, entries in REGISTRIES.items() if len(entries) >= ALL}
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Tuple, ast.List, ast.Set))]
    return [(node.lineno, name) for node in nodes for name, entries in large.items() if names_in(node) == entries]


def test_no_test_has_a_copy_of_a_registry():
    """A test that goes through a copy does not go through what is added."""
    assert copies("A = ('parametric', 'nonparametric', 'hybrid', 'rls')") == [(1, "updates of a subspace")]
    found = {
        f"{path.relative_to(ROOT)}:{line} lists all {name}: take them from the registry"
        for path in (ROOT / "tests").rglob("*.py")
        if path.name != "naive.py"
        for line, name in copies(path.read_text(encoding="utf-8"))
    }
    assert not found


ELSEWHERE = {("target", "name"), ("kernel", "function")}
"""The target changes no bit; of kernels, the corpus names all but a user's own."""


@pytest.mark.parametrize("registry", TWINS)
def test_the_twins_define_what_is_registered(registry):
    missing = set(REGISTRIES[registry]) ^ set(TWINS[registry])
    assert not missing, (
        f"{registry}: {missing} is registered or in tests/support, not both; see 'To add' in CONTRIBUTING.md"
    )


def test_every_technique_has_the_projection_that_its_twin_has():
    assert {name: each.projection for name, each in TECHNIQUES.items()} == naive.OWN_PROJECTION


@pytest.mark.parametrize(
    ("numbers", "entries"),
    [
        (Metric, [each.metric for each in TECHNIQUES.values()]),
        (Projection, [each.number for each in PROJECTIONS.values()]),
        (KernelFunction, [each.number for each in KERNEL_RULES.values()]),
    ],
)
def test_every_number_is_one_entry_s(numbers, entries):
    """An entry with another's number would be compiled as that one, or in its place."""
    assert sorted(entries) == sorted(numbers), f"{numbers.__name__}: one entry for each number, and one number for each"


def words_of(field):
    parts = [each for part in typing.get_args(field.annotation) for each in (part, *typing.get_args(part))]
    return {each for each in parts if isinstance(each, str)}


def test_the_corpus_has_every_section_and_word():
    """Then tests/host/test_identity.py guards the bits of each; it looks after rules, precisions, kernels and defaults."""
    written = {
        (section, key) for rule in rules() for section, key, _ in fields_of(family_of(rule, "float32").spec, rule)
    }
    written = {each: set() for each in written}
    for entry in corpus().values():
        for section, keys in entry["spec"].items():
            for key, value in keys.items() if isinstance(keys, dict) else ():
                written.setdefault((section, None), set()).add("")
                written.setdefault((section, key), set()).update(
                    map(str, value if isinstance(value, list) else [value])
                )
    missing = set()
    for rule in rules():
        for section, key, field in fields_of(family_of(rule, "float32").spec, rule):
            if key is None and section_of(field) is not None and not written[section, None]:
                missing.add(f"[{section}]")
            if key is not None and (section, key) not in ELSEWHERE:
                missing |= {
                    f"[{section}] {key} = {word}" for word in words_of(field) - {field.default} - written[section, key]
                }
    assert not missing, (
        f"{CORPUS} has none of {sorted(missing)}: run pytest tests/host/test_identity.py --update-golden"
    )


def test_every_target_file_is_a_target_that_specs_and_docs_know():
    files = {path.stem for path in (ROOT / "targets").glob("*.toml")}
    assert files == {*all_targets()} == {*CPUS}
    pages = (ROOT / "docs" / "guide/boards.md").read_text(encoding="utf-8")
    for name in files:
        assert find_target(name).name == name and name in pages, f"{name}: docs/guide/boards.md does not name it"


def test_every_hidden_unit_has_its_function_in_float64():
    """And its part of the tables of int16, but for random features."""
    assert set(ACTIVATIONS) == set(HIDDEN) and set(HIDDEN) - {"fourier"} <= set(PRODUCTS)


def test_every_sentence_that_a_model_replaces_is_in_a_docstring_of_a_kernel():
    """Otherwise the generated C would silently describe another model's function."""
    names = [each.name for each in pkgutil.walk_packages(algorithms.__path__, "pykernel.algorithms.")]
    found = [value for name in names for value in vars(importlib.import_module(name)).values()]
    docstrings = [each.function.__doc__ or "" for each in found if isinstance(each, Kernel)]
    replaced = {key for each in found if isinstance(each, dict) for key in each if isinstance(key, str) and " " in key}
    sentences = {key for key in replaced if key.endswith(".")}
    assert len(sentences) > 3
    assert [key for key in sentences if not any(key in each for each in docstrings)] == []
