"""What a spec without a rule gets: the model that fits its [target], and the estimates by which that is decided."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.provenance import ROOT
from benchmarks.tables import load
from pykernel import generate, simulate
from pykernel.dialect import PRECISIONS
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.identity import identity
from pykernel.spec import defaults
from pykernel.spec.defaults import Size
from pykernel.spec.model import Spec, declared, int16_rules, keys_of, make_spec, rules, sections
from pykernel.spec.sections import fields_of, takes_ranges
from pykernel.targets.check import exceeded
from tests.support.every_model import MODELS, accepted, content_of
from tests.support.random_specs import random_content


def spec_of(dim: int = 3, n_max: int = 32, precision: str = "float32", **more: Any) -> Any:
    base = {"name": "m", "precision": precision, "input": {"dim": dim}, "reduction": {"n_max": n_max}}
    return make_spec(base | {"label": {"outputs": 1}} | more)


def ram_of(spec: Any) -> int:
    figures = build(spec).figures
    return int(figures["state_bytes"] + figures["work_bytes"])


SIZES: list[tuple[int, int | list[str] | None]] = [
    *((1, 1), (3, 2), (8, 1), (5, 4)),
    *((1, [*"ab"]), (13, [*"ab"]), (2, [*"abcdefg"]), (8, [*"abc"])),
    *((1, None), (6, None), (9, None)),
]


@pytest.mark.exhaustive
@pytest.mark.in_turn(27)
@pytest.mark.parametrize(("dim", "label"), SIZES, ids=str)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("n_max", [None, 8, 40])
def test_the_ram_of_recipes_is_known_before_there_is_c(
    precision: str, dim: int, label: int | list[str] | None, n_max: int | None
) -> None:
    """The first that fits is taken: exactly at its own bytes; below those of the last, the last one."""
    base: dict[str, Any] = {"name": "m", "precision": precision, "input": {"dim": dim}}
    classes = isinstance(label, list)
    base |= {"novelty": {}} if label is None else {"label": {"classes": label} if classes else {"outputs": label}}
    if label is None:
        n_max = None  # a monitor has no budget
    base |= {"reduction": {"n_max": n_max}} if n_max else {}
    task = "monitor" if label is None else "class" if classes else "number"
    rows = defaults.groups(task, False)[1 if n_max else 0]
    estimates: list[int] = []
    for row in rows:
        estimate, _ = row.costs(defaults.size_of(base))
        if not estimate or (estimates and estimate >= estimates[-1]):
            continue  # with one input, sixteen waves take more than four with their matrices, which are better
        content = base | {"target": {"ram": estimate}}
        spec = make_spec(content)
        assert defaults.recipe_of(content) is row and spec.learning.rule == row.rule
        assert ("mixture" in row.sections) == (getattr(spec, "mixture", None) is not None)
        # float64 has whole numbers of 32 bits, and pairs of them
        above = {"gmm": 0, "krls-t": 60}.get(row.rule, 40 if precision == "float64" else 0)
        assert estimate - above <= ram_of(spec) <= estimate
        estimates.append(estimate)
    assert len(estimates) >= min(5, len(rows) // 2)
    assert defaults.recipe_of(base | {"target": {"ram": estimates[-1] - 1 if estimates else 1}}) is rows[-1]


def drawn(count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Contents without a rule: some keys of random specs, and random limits."""
    rng = np.random.default_rng(seed)
    while count:
        content = random_content(rng, changes=int(rng.integers(0, 3)))
        kept = {
            name: dict(keys) if isinstance(keys, dict) else keys
            for name, keys in content.items()
            if name != "expansion"
        }
        kept["learning"].pop("rule")
        for name in kept.keys() - {"name", "input", "precision", "novelty"}:
            if rng.random() < 0.6:
                kept.pop(name)
        limits = {
            "name": "cortex-m0plus",
            "ram": int(10 ** rng.uniform(2, 5)),
            "instructions": int(10 ** rng.uniform(3, 7)),
        }
        kept["target"] = {key: value for key, value in limits.items() if key == "name" or rng.random() < 0.4}
        if accepted(kept) is not None:
            count -= 1
            yield kept


@pytest.mark.exhaustive
def test_what_chose_a_recipe_is_told() -> None:
    """Without the keys that are told, a spec gets what is told; without anything told, it gets the first or the second recipe."""
    seen = set[str | None]()
    for content in drawn(90, 7):
        spec = make_spec(content)
        found = spec.default
        assert (
            found is not None
            and found["rule"].split(",")[0] == spec.learning.rule
            and found["rule"] in found["sentence"]
        )
        assert make_spec(tomllib.loads(spec.to_toml())).default is None  # the rule is named then
        assert make_spec(tomllib.loads(spec.to_toml())) == spec
        for stage in ("center", "gain"):
            assert (stage in found["stages"]) <= (getattr(spec.label, stage, False) is True)
        seen.add(found["otherwise"])
        row = defaults.recipe_of(content)
        first = defaults.groups(row.task, row.int16)[0]
        if not found["because"]:
            assert row in first[:2] and found["otherwise"] is None
            continue
        keys = [key.strip("[").replace("] ", "]").split("]")[:2] for key in found["because"] if "bytes" not in key]
        less: dict[str, Any] = {
            name: part if not isinstance(part, dict) else {key: v for key, v in part.items() if [name, key] not in keys}
            for name, part in content.items()
            if [name, ""] not in keys
        }
        less |= {} if keys else {"target": {"ram": 10**9}}
        assert str(found["otherwise"]).startswith(defaults.recipe_of(less).rule) or row in first[2:]
    assert len(seen) >= 5


def test_a_common_part_is_assumed_where_no_limit_is_given() -> None:
    """Bytes grow with the square of the inputs, and with the classes."""
    for task, label, o in (("number", {}, 1), ("class", {"label": {"classes": [*"abcdefghij"]}}, 10)):
        every = defaults.groups(task, False)[0]
        contents: dict[int, dict[str, Any]] = {dim: {"input": {"dim": dim}} | label for dim in (3, 13, 20, 28, 34, 64)}
        found = [defaults.recipe_of(content) for content in contents.values()]
        fitting = [[row for row in every[1:] if row.costs(Size(dim, o))[0] <= row.unlimited] for dim in contents]
        assert found == [rows[0] for rows in fitting] and len(set(found)) >= 4
        # there is always a linear expert; only that in blocks may take more than 8,192 bytes
        assert all("mixture" in row.sections for row in found)
        assert {row.unlimited for row in every[1:] if not row.sections.get("mixture")} == {8192}
        assert defaults.recipe_of(contents[3] | {"target": {"ram": 8192}}) is every[0]


def measured(kind: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The measured updates of waves, and what their spec says of its size."""
    rows = [row for row in load(ROOT / "docs" / "data" / "default-cost.csv") if kind in row["model"]]
    rows = [row for row in rows if "vectors" not in row["model"] and row["level"] == "-O2"]
    found = []
    for row in rows:
        ram = row["model"].partition("target of ")[2].removesuffix(" bytes")
        content: dict[str, Any] = {"input": {"dim": 8 if "eight inputs" in row["model"] else 3}}
        if "classes" in kind:
            content["label"] = {"classes": [*("abcdef" if "six" in row["model"] else "abc")]}
        found.append((row, content | ({"target": {"ram": int(ram)}} if ram else {})))
    return found


@pytest.mark.parametrize(
    ("kind", "count", "least", "most"), [("no rule, a number", 8, 0.95, 2.2), (" classes", 10, 0.8, 1.25)]
)
def test_the_instructions_of_waves_are_those_measured(kind: str, count: int, least: float, most: float) -> None:
    """For numbers, they are of an update with an outlying input, which answers twice; the stream of the measurement has none."""
    rows = measured(kind)
    assert len(rows) == count
    for row, content in rows:
        at = Size(content["input"]["dim"], len(content.get("label", {}).get("classes", "1")))
        waves = defaults.recipe_of(content)
        assert int(row["ram_bytes"]) == waves.costs(at)[0]
        soft = defaults.size_of({"target": {"name": row["target"]}}).soft
        estimate = waves.costs(at._replace(soft=soft))[1]
        assert least <= estimate / int(row["update_max"]) <= most, (row, estimate)


@pytest.mark.parametrize(("task", "int16"), [("number", False), ("class", False), ("number", True), ("class", True)])
def test_waves_leave_to_stored_vectors_what_these_alone_have(task: str, int16: bool) -> None:
    """Whatever key the stored vectors' rules have, a spec may name it without a rule; of integers, centers and scales do not say which."""
    label = {"max_abs": 1.0} if task == "number" else {"classes": [*"abc"]}
    base: dict[str, Any] = {"name": "m", "input": {"dim": 2, "max_abs": 1.0}, "label": label}
    base |= {"precision": "int16"} if int16 else {"kernel": {"sigma": 1.0}}
    known, (*_, waves, vectors) = int16_rules() if int16 else rules(), defaults.groups(task, int16)
    special = {"projection": "none", "rho": 0.01, "truncate_age": 100, "center": [1.0, 2.0], "scale": [1.0, 2.0]}
    for row, target in zip(vectors, ({}, {"target": {"ram": 100}}), strict=False):
        spec = make_spec(base | {"kernel": {"sigma": 1.0}, "learning": {"rule": row.rule}})
        stored, of_waves = (
            {(s, k) for s, k, _ in fields_of(known[rows[0].rule].spec, rows[0].rule)} for rows in ([row], waves)
        )
        parts = ["reduction"] * int16 + ["learning"] * (int16 or task == "class") + ["input"] * (not int16)
        alone = {(section, key) for section, key in stored - of_waves if section in parts and key is not None}
        assert len(alone) > 1 and (int16 or ("input", "scale") in alone)
        for section, key in alone:
            value = getattr(getattr(spec, section), key)
            value = special.get(key, 0.5 if value is None else value)
            made = make_spec(base | target | {section: base.get(section, {}) | {key: value}})
            assert made.learning.rule == row.rule, (section, key)
    if not int16:  # a width is one of raw inputs
        raw = make_spec(base)
        assert raw.learning.rule == waves[1].rule and raw.mixture is None and not raw.input.standardise
    else:
        assert make_spec(base | {"kernel": {"function": "matern32", "gamma": 1.0}}).learning.rule == "qklms"
        for more in ({}, {"center": [1.0, 2.0], "max_abs": [1.0, 1.0]}, {"scale": [1.0, 2.0]}):
            for kernel in ({}, {"kernel": {"sigma": 2.0}}, {"kernel": {"gamma": 2.0}}, {"target": {"ram": 1}}):
                found = make_spec(base | {"input": base["input"] | more} | kernel)
                little = task == "class" or "target" in kernel
                assert found.learning.rule == ("spectrum-nlms" if little else "spectrum-ekf")
                assert (found.linear is not None) is (task == "number")


VECTORS, CLASS_VECTORS = (defaults.groups(task, False)[1][0] for task in ("number", "class"))


def test_instructions_of_vectors_are_those_measured_within_a_quarter() -> None:
    rows = [row for row in load(ROOT / "docs" / "data" / "default-cost.csv") if "vectors" in row["model"]]
    rows = [row for row in rows if row["level"] == "-O2"]
    assert len(rows) == 10
    for row in rows:
        *_, last = row["model"].split(", ")
        n = int(last.split()[0])
        outputs = 3 if "three classes" in row["model"] else 1
        soft = defaults.size_of({"target": {"name": row["target"]}}).soft
        estimate = VECTORS.costs(Size(3, outputs, n=n, soft=soft))[1]
        assert 0.8 <= estimate / int(row["update_max"]) <= 1.25, (row, estimate)


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(
    ("target", "small"),
    [
        ({"ram": VECTORS.costs(Size(3))[0]}, False),
        ({"ram": CLASS_VECTORS.costs(Size(3))[0] - 1}, True),
        ({"name": "cortex-m4f", "instructions": 100_000}, False),
        ({"name": "cortex-m0plus", "instructions": 100_000}, True),
        ({"name": "cortex-m4f", "flash": 9000}, False),
        ({"name": "rv32imac", "instructions": VECTORS.costs(Size(3, soft=1.0))[1]}, False),
    ],
)
@pytest.mark.parametrize("label", [{"column": "y"}, {"column": "y", "classes": ["a", "b"]}], ids=["number", "class"])
def test_a_target_that_is_too_small_gets_a_model_without_a_matrix(target: dict, small: bool, label: dict) -> None:
    spec = spec_of(target=target, label=label)
    assert spec.learning.rule == ("qklms" if small else "krls-t")
    if small:
        assert ram_of(spec) < 1500
    # what the spec names stays as it is
    named = {"kernel": {"sigma": 1.0}, "learning": {"rule": "krls-t"}}
    assert spec_of(target=target, label=label, **named).learning.rule == "krls-t"


RANGED = [(s, key) for s in sections() for key in keys_of(s) if any(map(takes_ranges, declared(s, key).values()))]
"""Every key that takes ranges of names, read off the declarations."""


@pytest.mark.exhaustive
@pytest.mark.parametrize(("section", "key"), RANGED, ids=str)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_range_is_the_list_of_its_names(section: str, key: str, precision: str) -> None:
    """In every key that takes one, of every rule and every default: the same spec, memory and C."""
    contents = [content for model in MODELS if model[1] == precision and (content := content_of(*model)) is not None]
    defaults = [{name: keys for name, keys in c.items() if name not in ("learning", "expansion")} for c in contents]
    small = [content | {"target": {"ram": 3000}} for content in defaults]
    different = {str(content): content for content in (*defaults, *small)}.values()
    taken: dict[int, list[tuple[Spec, Spec]]] = {2: [], 5: []}
    for content, count in (*((content, 2) for content in contents), *((content, 5) for content in different)):
        beside = ("dim", "outputs", "column", "columns")
        own = {name: value for name, value in content.get(section, {}).items() if name not in beside}
        given = ([f"n{i}" for i in range(count)], [f"n0..n{count - 1}"])
        listed, ranged = (accepted(content | {section: own | {key: names}}) for names in given)
        assert listed == ranged
        if listed is not None and ranged is not None:
            assert listed.memory().bytes.nbytes == ranged.memory().bytes.nbytes
            taken[count].append((listed, ranged))
    assert min(map(len, taken.values())) >= 2
    for each in taken.values():
        listed, ranged = each[len(each) // 2]
        assert build(listed).files == build(ranged).files


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("label", [{"column": "y"}, {"column": "y", "classes": ["a", "b"]}, None], ids=str)
@pytest.mark.parametrize("named", [False, True])
def test_a_model_above_its_ram_is_refused_where_it_is_used(label: Any, named: bool, tmp_path: Path) -> None:
    """The smallest default, and a rule that is named: at their own bytes they are taken, one byte below they are not."""
    base: dict[str, Any] = {"name": "m", "input": {"columns": ["a", "b"]}}
    base |= {"novelty": {}} if label is None else {"label": label}
    base |= {name: keys for name, keys in defaults.completed(base).items() if named and name in ("learning", "kernel")}
    ram = ram_of(make_spec(base | {"target": {"ram": 1}}))
    x = np.random.default_rng(3).normal(size=(40, 2))
    rows = x, None if label is None else (x[:, 0] > 0).astype(int if "classes" in label else float)
    fits, above = (make_spec(base | {"target": {"ram": room}}) for room in (ram, ram - 1))
    generate(fits, tmp_path / "fits")
    simulate(fits, rows)
    told = set()
    for use in (lambda: generate(above, tmp_path / "above"), lambda: simulate(above, rows)):
        with pytest.raises(UserError) as raised:
            use()
        told.add(str(raised.value))
    assert len(told) == 1 and f"takes {ram:,} bytes of RAM; [target] ram is {ram - 1:,}: " in told.pop()
    assert not (tmp_path / "above").exists()


def test_a_target_changes_no_byte_of_the_c() -> None:
    with_target = spec_of(target={"name": "cortex-m7f", "ram": 100_000, "flash": 1000, "instructions": 200_000})
    with_it, without = ({name: text for name, text in build(spec).files.items() if name.endswith((".c", ".h"))}
                        for spec in (with_target, spec_of()))  # fmt: skip
    assert with_it == without and identity(with_target) == identity(spec_of())


@pytest.mark.parametrize(
    "target",
    [
        *({"ram": 0}, {"ram": "8 kB"}, {"cycles": 3}, {"name": 7}, 5, {"name": "cortex-m4"}, {"name": ["avr"]}),
        # these depend on the CPU
        *({"flash": 9000}, {"instructions": 9000}),
    ],
)
def test_targets_that_are_none(target: Any) -> None:
    with pytest.raises(UserError, match="target"):
        spec_of(target=target)


HOSTILE: list[dict[str, Any]] = [
    {"input": {"dim": 10**400}},
    {"input": {"dim": 10**400}, "novelty": {}},
    {"novelty": {"smoothing": 5e-324}},
    *({"target": {"name": value}} for value in ([], {}, np.array([1, 2]))),
    *({"precision": value} for value in (np.array([1, 2]), [])),
    *({"label": {"outputs": value}} for value in (np.array([1, 2]), 10**400, "2")),
    *({"kernel": {"function": value}} for value in (np.array([1, 2]), {})),
    *({"signal": value} for value in ([], {}, 3, {"channels": 3}, {"channels": []}, {"channels": [[]]}, np.array([1]))),
    *({"signal": {"channels": ["a"]}, "label": {"column": value}} for value in ([], np.array([1, 2]), {}, 3)),
    *({"signal": {"channels": ["a"], "lags": value}} for value in ([10**400], [-1], "0", [0.5], [True])),
    {"signal": {"channels": ["a"], "window": 8, "features": {"a": ["mean"]}, "bands": [[1, 2, 3]]}},
    {"signal": {"channels": ["a"], "window": 8, "rate": 1.0, "bands": [[np.nan, 2]]}},
    *({"reduction": {"n_max": value}} for value in (10**400, True, np.array([3, 4]))),
]


@pytest.mark.parametrize("content", HOSTILE, ids=str)
@pytest.mark.parametrize("ram", [None, 100])
def test_what_is_completed_may_be_anything(content: dict, ram: int | None) -> None:
    """A spec without a rule is completed before anything is judged."""
    target = {"target": {"ram": ram}} if ram and "target" not in content else {}
    inputs = {} if "signal" in content else {"input": {"dim": 2}}
    with pytest.raises(UserError) as raised:
        make_spec({"name": "m"} | inputs | content | target)
    assert "\n" not in str(raised.value)


def test_no_novelty_is_none() -> None:
    assert spec_of(novelty=None) == spec_of()


def test_limits_that_cannot_be_judged_are_told() -> None:
    spec = spec_of(target={"name": "avr", "flash": 10_000, "instructions": 1_000_000})
    figures = {"state_bytes": 1, "work_bytes": 1}
    row = {"target": "avr", "emulator": "simavr", "flash_bytes": 9000}
    assert exceeded(spec, figures, [row]) == [
        f"[target] instructions cannot be checked: {call} has no bound on avr (none was computed), and simavr does not count instructions"
        for call in ("update", "predict")
    ]
    assert exceeded(spec, figures, [row | {"target": "cortex-m3"}]) == []
    bound = {"instructions": 900_000, "cycles": 1_100_000, "estimated": False, "refused": ""}
    row["bounds"] = {"update": bound, "predict": bound}
    assert exceeded(spec, figures, [row]) == []
    spec = spec_of(target={"name": "avr", "cycles": 1_000_000})
    assert exceeded(spec, figures, [row]) == [
        f"m_{call} takes up to 1,100,000 cycles on avr; [target] cycles is 1,000,000" for call in ("update", "predict")
    ]
    assert exceeded(spec, figures, [row | {"bounds": {}}]) == [
        f"[target] cycles cannot be checked: {call} has no bound on avr (none was computed)"
        for call in ("update", "predict")
    ]


def test_features_of_a_signal_are_standardised_unless_their_scale_is_given():
    content = {"name": "m", "signal": {"channels": ["a", "b"]}, "label": {"column": "y"}, "kernel": {"sigma": 1.0}}
    content["learning"] = {"rule": "krls-t"}
    assert make_spec(content).input.standardise
    for given in ({"scale": [1.0, 2.0]}, {"center": [0.0, 1.0]}, {"standardise": False}):
        assert not make_spec(content | {"input": given}).input.standardise


def test_a_monitor_in_int16_is_told_of_the_monitor() -> None:
    """Once it was told that another rule, which it had not named, has no [novelty]."""
    content = {"name": "m", "precision": "int16", "input": {"dim": 2, "max_abs": 1.0}, "novelty": {}}
    with pytest.raises(UserError, match=r'precision is "int16".*for gmm, choose "float32" or "float64"'):
        make_spec(content)
