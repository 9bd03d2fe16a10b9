"""Every declared key at its edges: a spec is refused in one sentence, or C is generated from it; nothing else happens."""

from __future__ import annotations

import copy
import itertools
import shutil
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compiler
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from pykernel.spec.sections import fields_of, limits_of
from tests.support.every_model import MODELS, STAGES, content_of, family_of
from tests.support.random_calls import first_difference, random_calls, trace

Content = dict[str, Any]

REALS = [
    *(0.0, -0.0, 5e-324, 1e-308, 2.3e-308, 1e-150, 1e-45, 1e-38, 1.2e-38, 1e-30, 1e-20, 1e-10, 1e-5, 1.0),
    *(1e6, 1e10, 1e15, 1e20, 1e30, 1e38, 3.4e38, 3.5e38, 1e100, 1e150, 1e300, 1.7e308),
    *(-1.0, -1e-30, -1e30, -1e300, float("nan"), float("inf"), float("-inf")),
]
WHOLE = [0, 1, -1, 2**15, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**30]
OTHERS = [True, "1" * 400, "", [], [[]], {}, [0.5] * 3, [1e308] * 70_000]
EDGES: list[Any] = [*REALS, *WHOLE, *OTHERS]
SIZES = {"dim", "n_max", "samples", "features", "outputs", "window", "hop", "candidates", "points", "lags", "periods"}
"""Keys that make a model large: judged at their edges, but no C is made of what that leads to."""


def numbers_of(rule: str, precision: str) -> Iterator[tuple[str, str, Any]]:
    """Every key whose value may be a number, or holds some: section, key, declaration."""
    for section, key, field in fields_of(family_of(rule, precision).spec, rule):
        if key is not None and any(word in str(field.annotation) for word in ("int", "float")):
            yield section, key, field


def edges_of(field: Any) -> list[Any]:
    """Values at the limits that a key declares, beside them and far beyond."""
    near: list[Any] = []
    for end in limits_of(field):
        near += [float(end), float(np.nextafter(end, np.inf)), float(np.nextafter(end, -np.inf)), end / 2, end * 2]
        near += [int(end), int(end) + 1, int(end) - 1]
    return near + EDGES


FORMS = ("alone", "first", "all")


def changed(content: Content, section: str, key: str, edge: Any, form: str) -> Content:
    """The content with a key at an edge: alone, or as one or each element of a list."""
    before, value = content.get(section, {}).get(key), edge
    rows = before if isinstance(before, list) and before else [0.5, 1.0]
    if form != "alone" and isinstance(edge, (int, float)):
        if isinstance(rows[0], list):
            value = [[edge, *row[1:]] if form == "first" else [edge] * len(row) for row in rows]
        else:
            value = [edge, *rows[1:]] if form == "first" else [edge] * len(rows)
    return _with(content, {section: {key: value}})


def mutants(rule: str, precision: str, stage: str) -> Iterator[tuple[Content, str, str, Any, str]]:
    """One number of a model at an edge, as ``changed`` takes it."""
    base = content_of(rule, precision, stage)
    for section, key, field in numbers_of(rule, precision) if base is not None else ():
        for edge in edges_of(field):
            for form in FORMS:
                yield base, section, key, edge, form


def _with(content: Content, changes: dict[str, Content]) -> Content:
    return content | {section: {**content.get(section, {}), **keys} for section, keys in changes.items()}


def judged(content: Content) -> Spec | None:
    """The spec; None if it was refused in one sentence.  Anything else fails: another exception, a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return make_spec(content)
        except UserError as error:
            sentence = str(error)
            assert sentence.startswith("spec: ") and "\n" not in sentence and len(sentence) < 700, sentence
            for word in ("domain error", "Error", "division", "Assertion", "cannot convert", "object"):
                assert word not in sentence, sentence
            return None


def runs(content: Content) -> None:
    """The spec's C is printed, compiles without a warning, is as the host and says so of itself."""
    spec = make_spec(content)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        project = build(spec)
        called = random_calls(spec, np.random.default_rng(0), 40)
        host = trace(HostModel(spec, project.drop, raw=spec.program.is_int16), called)
    if shutil.which("gcc"):
        model = CModel(project, compiler("gcc"), ["-O1"])
        assert first_difference(called, host, trace(model, called)) is None
        assert model.call("selftest") == 0


def test_every_rule_has_a_model_in_every_precision() -> None:
    """The walk leaves nothing out: a new rule has to be put together by tests/support/every_model.py."""
    for rule, precision, stage in MODELS:
        if stage in ("plain", "windows"):
            assert content_of(rule, precision, stage) is not None, (rule, precision, stage)
    assert {stage for *model, stage in MODELS if content_of(*model, stage) is not None} == set(STAGES)


@pytest.mark.in_turn
@pytest.mark.parametrize("precision", ["float32", "float64", "int16"])
def test_one_number_at_an_edge_is_refused_in_a_sentence_or_computed(precision: str, exhaustive: bool) -> None:
    taken = tried = 0
    models = [model for model in MODELS if model[1] == precision]
    step = 47 if exhaustive else 251 if precision == "int16" else 1259
    for mutant in itertools.islice(itertools.chain(*(mutants(*model) for model in models)), 0, None, step):
        try:
            taken += judged(changed(*mutant)) is not None
        except BaseException as error:
            raise AssertionError(f"{error!r} of {changed(*mutant)}") from error
        tried += 1
    assert 0.02 * tried < taken < 0.5 * tried


def test_two_numbers_at_edges_are_refused_in_a_sentence_or_computed(exhaustive: bool) -> None:
    rng = np.random.default_rng(0)
    known = [(model, list(numbers_of(*model[:2]))) for model in MODELS if content_of(*model) is not None]
    found: list[Spec] = []
    for _ in range(10_000 if exhaustive else 800):
        model, keys = known[int(rng.integers(len(known)))]
        content = copy.deepcopy(content_of(*model)) or {}
        for at in rng.integers(len(keys), size=2):
            section, key, field = keys[int(at)]
            edges = edges_of(field)
            edge = edges[int(rng.integers(len(edges) - len(OTHERS)))]
            content = changed(content, section, key, edge, FORMS[int(rng.integers(3))])
        try:
            spec = judged(content)
        except BaseException as error:
            raise AssertionError(f"{error!r} of {content}") from error
        if spec is not None:
            found.append(spec)
    assert found


def accepted_edges(seed: int, count: int) -> list[Content]:
    """Contents that are accepted, of small models, each of another model and key where possible."""
    rng = np.random.default_rng(seed)
    found: list[Content] = []
    for at in rng.permutation(len(MODELS)):
        own = [mutant for mutant in mutants(*MODELS[at]) if mutant[2] not in SIZES]
        for i in rng.permutation(len(own))[:60]:
            spec = judged(changed(*own[i]))
            if spec is not None and spec.numbers < 5e4:
                found.append(changed(*own[i]))
                break
        if len(found) == count:
            break
    return found


@pytest.mark.parametrize("seed", range(1))
def test_what_is_accepted_at_an_edge_is_the_same_in_c(seed: int) -> None:
    for content in accepted_edges(seed, 1):
        runs(content)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 7))
def test_more_specs_at_edges_are_the_same_in_c(seed: int) -> None:
    for content in accepted_edges(seed, 13):
        try:
            runs(content)
        except BaseException as error:
            raise AssertionError(f"{error!r} of {content}") from error


# ------------------------------------------------------------------------------------------------- what was wrong

WHOLE_BASE: Content = {
    "name": "m",
    "precision": "int16",
    "input": {"dim": 2, "max_abs": 10.0},
    "label": {"max_abs": 5.0},
    "kernel": {"sigma": 1.0},
    "learning": {"rule": "klms"},
}
CRASHED: list[tuple[str, dict[str, Content], str]] = [
    ("klms", {"kernel": {"sigma": 1e6}}, "[kernel] sigma is 1e+06"),
    ("klms", {"learning": {"rule": "klms", "step_limit": 1e308}}, "[learning] step_limit is 1e+308"),
    ("klms", {"learning": {"rule": "klms", "rho": 1.7e308}}, "[learning] rho is 1.7e+308"),
    ("klms", {"learning": {"rule": "klms", "eta": 5e-324}}, "[learning] eta is 4.94066e-324"),
    ("nlms", {"input": {"dim": 2, "max_abs": 1e30}}, "[input] max_abs holds 1e+30"),
    ("nlms", {"learning": {"rule": "nlms", "eta": 5e-324}}, "[learning] eta is 4.94066e-324"),
]


@pytest.mark.parametrize(("rule", "changes", "sentence"), CRASHED)
def test_what_divided_by_zero_or_overflowed_is_refused(rule: str, changes: dict[str, Content], sentence: str) -> None:
    content = _with(WHOLE_BASE, {"learning": {"rule": rule}} | changes)
    if rule == "nlms":
        del content["kernel"]
    with pytest.raises(UserError) as caught:
        make_spec(content)
    assert sentence in str(caught.value)


def test_a_signal_and_a_wide_kernel_are_refused() -> None:
    content = content_of("qklms", "int16", "windows")
    assert content is not None
    with pytest.raises(UserError, match=r"\[kernel\] sigma is 2e\+30; it must be from"):
        make_spec(_with(content, {"kernel": {"sigma": 2e30}}))


def test_numbers_that_only_together_lead_to_none_are_named_with_the_nearest_that_does() -> None:
    """The one that alone is to blame, and a value in its place that is accepted."""
    content = content_of("qklms", "float32", "plain")
    assert content is not None
    with pytest.raises(
        UserError, match=r"\[learning\] quantisation is 1e-30, .* this number must be at least (\S+)$"
    ) as caught:
        make_spec(_with(content, {"learning": {"rule": "qklms", "quantisation": 1e-30}}))
    nearest = float(str(caught.value).rpartition(" ")[2])
    assert judged(_with(content, {"learning": {"rule": "qklms", "quantisation": 1.01 * nearest}})) is not None
    assert judged(_with(content, {"learning": {"rule": "qklms", "quantisation": 0.97 * nearest}})) is None


def test_numbers_that_the_precision_rounds_to_their_limit_are_refused() -> None:
    content = content_of("klms", "float32", "plain")
    assert content is not None
    with pytest.raises(
        UserError, match=r"\[reduction\] fading is 0.999999999, which float32 cannot distinguish from 1"
    ):
        make_spec(_with(content, {"reduction": {"fading": 1 - 1e-9}}))
    with pytest.raises(UserError, match=r"\[learning\] rho is 1e-09, so small that 1 - eta rho is 1 in float32"):
        make_spec(_with(content, {"learning": {"rule": "klms", "rho": 1e-9}}))
    assert judged(_with(content, {"reduction": {"fading": 1 - 1e-9}}) | {"precision": "float64"}) is not None
