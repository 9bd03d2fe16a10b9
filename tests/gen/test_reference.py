"""What Numba computes is what the C computes, byte for byte over the whole memory: the project's central promise.

Other tests run the host's models in LLVM, which is quicker; here is the reference of ``pykernel check``.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.extending import is_jitted

from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.engine.jitted import Jitted
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.families.online_keys import RULES
from pykernel.spec.model import FAMILIES, Spec, make_spec, rules
from tests.algorithms.test_int16 import ONLINE as INT16_ONLINE
from tests.algorithms.test_int16 import frozen, online
from tests.conftest import commit
from tests.support import DOCS
from tests.support.compilers import QUICK
from tests.support.following import spec_of
from tests.support.machines import MACHINES, SIGNALS, machine
from tests.support.random_calls import first_difference, random_calls, trace
from tests.support.random_specs import random_spec


def rule_of(name: str, precision: str, **sections: Any) -> Spec:
    """A spec that says as little as it can."""
    return make_spec(
        {"name": "flow", "precision": precision, "learning": {"rule": name}, "input": {"dim": 2}} | sections
    )


def learned(precision: str, rule: str = "klms", **sections: Any) -> Spec:
    reduction = {"technique": "nt", "n_max": 4}
    return rule_of(rule, precision, kernel={"sigma": 1.0}, reduction=reduction, **sections)


def following(precision: str) -> Spec:
    sections = {"reduction": {"n_max": 5, "force": True}, "subspace": {"budget": "drop"}}
    inputs, kernel = {"dim": 2, "max_abs": 10.0}, {"function": "linear"}
    learning = {"rule": "okfeb", "features": 2}
    return rule_of("okfeb", precision, **sections, kernel=kernel, input=inputs, learning=learning)


def monitor(precision: str) -> Spec:
    """With births, merges and alarms on the stream of ``pykernel check``."""
    inputs, novelty = {"dim": 2, "max_abs": 10.0}, {"warmup": 30, "relearn_after": 6}
    learning = {"rule": "gmm", "components": 2}
    return rule_of("gmm", precision, input=inputs, learning=learning, novelty=novelty)


def behind_a_signal(precision: str) -> Spec:
    """The least program with a signal: the newest sample and a difference, and what a firmware says of them."""
    signal = {"channels": ["a"], "max_abs": 30.0, "lags": [0], "differences": [1]}
    labels = {"column": "y", "max_abs": 10.0}
    return make_spec(
        {"name": "flow", "precision": precision, "learning": {"rule": "nlms"}, "signal": signal, "label": labels}
    )


SMALLEST: dict[str, Callable[[], Spec]] = {
    "frozen": lambda: machine("two"),
    "linear": lambda: rule_of("nlms", "float32"),
    "spectrum": lambda: rule_of("spectrum-ekf", "float32", kernel={"sigma": 1.0}),
    "learned on a trained expansion": lambda: rule_of(
        "expansion-rls",
        "float32",
        kernel={"sigma": 1.0},
        expansion={"vectors": [[0.0, 1.0], [1.0, 0.0]], "weights": [[0.5], [-0.5]], "bias": [0.25]},
    ),
    "learned on a basis": lambda: machine("given", "float64"),
    "trained on the device": lambda: machine("krr"),
    "trained for classes": lambda: machine("kfd"),
    "frozen on a basis": lambda: machine("map-classes", "float64"),
    "online": lambda: learned("float32"),
    "subspace": lambda: following("float32"),
    "monitor": lambda: monitor("float32"),
    "int16, frozen": lambda: frozen(2),
    "int16, online": lambda: learned("int16", label={"max_abs": 4.0}, input={"dim": 2, "max_abs": 4.0}),
    "int16, linear": lambda: rule_of("nlms", "int16", label={"max_abs": 4.0}, input={"dim": 2, "max_abs": 4.0}),
    "int16, spectrum": lambda: rule_of(
        "spectrum-nlms", "int16", label={"max_abs": 4.0}, input={"dim": 2, "max_abs": 4.0}, kernel={"sigma": 1.0}
    ),
    "int16, filter": lambda: rule_of(
        "spectrum-ekf", "int16", label={"max_abs": 4.0}, input={"dim": 2, "max_abs": 4.0}, kernel={"sigma": 1.0}
    ),
    "int16, learned on a trained expansion": lambda: rule_of(
        "expansion-rls",
        "int16",
        label={"max_abs": 4.0},
        input={"dim": 2, "max_abs": 4.0},
        kernel={"sigma": 1.0},
        expansion={"vectors": [[0.0, 1.0], [1.0, 0.0]], "weights": [[0.5], [-0.5]], "bias": [0.25]},
    ),
    "signal": lambda: behind_a_signal("float32"),
}


def in_numba(spec: Spec, samples: int) -> Reference:
    """Compare with the C what Numba computes of the stream of ``pykernel check``; and that it was Numba, in each function."""
    reference = Reference(build(spec), None, *mixed_stream(spec, samples), engine="numba")
    verdict = reference.verdict(CModel(reference.project, QUICK[0], ("-O0",)))
    assert verdict["equal"], verdict["first_difference"]
    executor, program = reference.model.executor, spec.program
    assert isinstance(executor, Jitted)
    ran = executor.code.functions
    assert all(is_jitted(function) and len(function.nopython_signatures) == 1 for function, _ in ran.values())
    entries = {entry.kernel: entry.name for entry in program.entries_for(spec.config)}
    names = {entries[kernel] for each in ran for kernel in (each if isinstance(each, tuple) else [each])}
    asked = [*reference.between, *reference.others, *reference.visits, *reference.questions, *reference.readings]
    assert names == {program.asks, *([program.learner] if program.learns else []), *asked}
    return reference


def budgeted(rule: str, technique: str) -> Spec:
    """Paper 003: a rule that learns under a budget, which is soon full."""
    keys: dict[str, Any] = {"force": True} if RULES[rule].selects else {}
    if RULES[rule].selects and RULES[rule].recursive:
        keys["projection"] = "klms"
    return spec_of(technique, 6, 2, "float32", rule=rule, **keys)


def machines_with(holds: Callable[[dict[str, Any]], bool]) -> dict[str, Callable[[], Spec]]:
    return {name: functools.partial(machine, name) for name, content in MACHINES.items() if holds(content)}


LEARNERS: dict[str, dict[str, Callable[[], Spec]]] = {
    "paper-000": machines_with(lambda content: content.get("basis", {}).get("method") == "efvs"),
    "paper-001": machines_with(lambda content: content["learning"]["rule"] == "okfeb"),
    "paper-002": machines_with(lambda content: content.get("basis", {}).get("method") == "sgma"),
    "paper-003": {
        f"{rule} {technique}": functools.partial(budgeted, rule, technique)
        for rule in RULES
        for technique in (TECHNIQUES if RULES[rule].selects else ["mklms"])
    },
    "paper-004": machines_with(lambda content: content["learning"]["rule"] == "kfd"),
}
"""What learns on the device by each paper."""


def test_a_learner_of_a_paper() -> None:
    """Each commit draws another."""
    pages = {path.stem for path in DOCS.glob("paper-*.md")}
    assert LEARNERS.keys() <= pages and len(LEARNERS) == 5
    drawn = functools.partial(min, key=lambda name: hashlib.sha256(f"{commit()} {name}".encode()).digest())
    name = drawn(LEARNERS[paper := drawn(LEARNERS)])
    statuses = in_numba(LEARNERS[paper][name](), 200).report([]).statuses
    assert sum(statuses.values()) == 200 and len(statuses) > 1, name


@pytest.mark.exhaustive
@pytest.mark.parametrize(("paper", "name"), [(paper, name) for paper, found in LEARNERS.items() for name in found])
def test_every_learner_of_each_paper(paper: str, name: str) -> None:
    in_numba(LEARNERS[paper][name](), 1000)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_programs(name: str) -> None:
    statuses = in_numba(SMALLEST[name](), 200).report([]).statuses
    assert len(statuses) > 1 and sum(statuses.values()) == 200


def test_they_are_of_every_family_and_precision() -> None:
    specs = [make() for make in SMALLEST.values()]
    assert len(specs) == 18 and {spec.precision for spec in specs} == {"float32", "float64", "int16"}
    for family in FAMILIES:
        assert any(type(spec) is family.spec for spec in specs), family.rules
    assert any(spec.signal is not None for spec in specs)


EVERY: dict[str, Callable[[], Spec]] = {
    **{
        name: lambda name=name, i=i: machine(name, ("float32", "float64")[i % 2])  # type: ignore[misc]
        for i, name in enumerate([*MACHINES, *SIGNALS])
    },
    **{f"int16, frozen {seed}": lambda seed=seed: frozen(seed) for seed in range(6)},  # type: ignore[misc]
    **{f"int16, online {i}": lambda case=case: online(**case) for i, case in enumerate(INT16_ONLINE)},  # type: ignore[misc]
    **{
        f"{rule}, random": lambda rule=rule: random_spec(np.random.default_rng(5), rule)  # type: ignore[misc]
        for rule in rules()
    },
}


@pytest.mark.exhaustive("half a minute each")
@pytest.mark.parametrize("name", EVERY)
def test_every_program(name: str) -> None:
    """And whatever is called, in any order, samples at every limit; the whole memory is looked at after each call."""
    spec = EVERY[name]()
    project = in_numba(spec, 3000).project
    calls = random_calls(spec, np.random.default_rng(1), 300)
    numba, c = HostModel(spec, project.drop, engine="numba", raw=True), CModel(project, QUICK[0], ("-O2",))
    found = trace(numba, calls), trace(c, calls)
    assert first_difference(calls, *found) is None, first_difference(calls, *found)
