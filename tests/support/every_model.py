"""One spec of every rule, in every precision, alone and within every stage: read off the declarations.

A new rule, precision or stage is here without a change: a content is put together of what the rule declares, and the first
one that ``make_spec`` takes is it.  Tests that promise something of every model are parametrised over ``MODELS``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any, get_args

from pykernel.dialect import PRECISIONS
from pykernel.errors import UserError
from pykernel.spec.model import Spec, int16_rules, make_spec, rules
from pykernel.spec.sections import fields_of
from pykernel.spec.signal import FeatureName, SignalSection, plan_of

Content = dict[str, Any]

DOUBT = 24
"""Bytes of the doubt of a model with one output of 32 bits."""
LABELS: dict[str, Content] = {
    "one": {"column": "y", "max_abs": 5.0},
    "several": {"outputs": 2, "max_abs": 5.0},
    "classes": {"classes": ["a", "b", "c"]},
    "none": {},
}
WINDOWS: Content = {
    "channels": ["a", "b"],
    "max_abs": 10.0,
    "rate": 100.0,
    "window": 16,
    "hop": 4,
    "features": ["mean", "rms", "std", "min", "max", "range", "crossings", "change"],
    "bands": [[10.0, 30.0]],
    "lags": [0, 1],
    "differences": [1],
    "averages": [3],
    "periods": [7],
}
RAW: Content = {"channels": ["a", "b"], "max_abs": 10.0, "lags": [0, 2], "differences": [1], "periods": [7]}
STAGES: dict[str, dict[str, Content]] = {
    "plain": {},
    "staged": {
        "input": {"standardise": True, "warmup": 4},
        "label": {"center": True, "gain": True, "clip": 5.0, "low": -4.0, "high": 4.0},
        "linear": {"eta": 0.05},
        "learning": {"rho": 0.01, "step_limit": 0.5, "forgetting": 0.99},
        "novelty": {"false_alarm_rate": 0.05, "warmup": 20, "life": "known", "commissioning": 15},
    },
    "windows": {"signal": WINDOWS},
    "spectra": {"signal": WINDOWS | {"features": list(get_args(FeatureName)), "log": True}},
    "forecast": {"signal": RAW, "label": {"column": "a"}},
}
"""What is around a rule: of each section the keys that the rule has."""


def family_of(rule: str, precision: str) -> Any:
    """The family that computes a rule in a precision; None if none does."""
    return (int16_rules() if PRECISIONS[precision].is_int16 else rules()).get(rule)


def _pieces(rule: str, precision: str, dim: int, functions: int) -> Iterator[dict[str, Content]]:
    """What a content may be put together of, the least first."""
    family = family_of(rule, precision)
    has = {(section, key) for section, key, _ in fields_of(family.spec, rule)}
    rows = [[0.25 * ((3 * i + 5 * j) % 7) - 0.75 for j in range(dim)] for i in range(4)]
    each: list[list[dict[str, Content]]] = []
    if ("kernel", None) in has:
        each.append([{"kernel": {"function": "gaussian", "sigma": 1.0}}])
    if ("expansion", "vectors") in has:
        tables: list[dict[str, Content]] = [{"expansion": {"vectors": rows}}]
        if ("expansion", "weights") in has:
            weights = [[0.5 - 0.25 * i + 0.125 * o for o in range(functions)] for i in range(4)]
            tables.append({"expansion": {"vectors": rows, "weights": weights, "bias": [0.25] * functions}})
        each.append([{}, *reversed(tables)])
    if ("learning", "features") in has:
        each.append([{"learning": {"features": 4}}])
    if ("learning", "samples") in has:
        each.append([{"learning": {"samples": 14}}, {}])
    if ("reduction", "n_max") in has:
        each.append([{"reduction": {"n_max": 5}}, {}])
    for (section, key), field in ((s, f) for s, f in _keys(family, rule)):
        # a method that says what else there must be
        if (section, key) == ("basis", "method"):
            each.append([{section: {key: choice}} for choice in get_args(field.annotation)])
    for chosen in itertools.product(*each):
        yield functools.reduce(_merged, chosen, {})


def _keys(family: Any, rule: str) -> Iterator[tuple[tuple[str, str], Any]]:
    for section, key, field in fields_of(family.spec, rule):
        if key is not None:
            yield (section, key), field


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return first | {section: {**first.get(section, {}), **keys} for section, keys in second.items()}


def _around(rule: str, precision: str, stage: str) -> dict[str, Content]:
    """The stage's keys that the rule has."""
    family = family_of(rule, precision)
    has = {(section, key) for section, key, _ in fields_of(family.spec, rule)}
    found: dict[str, Content] = {}
    for section, keys in STAGES[stage].items():
        own = {key: value for key, value in keys.items() if section == "signal" or (section, key) in has}
        if own:
            found[section] = own
    return found


def accepted(content: Content) -> Spec | None:
    try:
        return make_spec(content)
    except UserError:
        return None


@functools.cache
def _found(rule: str, precision: str, stage: str, kind: str) -> Content | None:
    label = LABELS[kind]
    around = _around(rule, precision, stage)
    if stage != "plain" and not around:
        return None
    functions = len(label.get("classes", ())) or label.get("outputs", 1)
    if stage == "forecast" and kind != "one":
        return None
    if "signal" in around:
        probe = {"name": "m", "precision": precision, "signal": around["signal"], "label": label}
        dim = _signal_dim(probe)
        given: Content = {}
    else:
        dim, given = 2, {"dim": 2, "max_abs": 10.0}
    keys = [(section, key) for section, own in around.items() if section != "signal" for key in own]
    for pieces in _pieces(rule, precision, dim, functions):
        plain = {"name": "m", "precision": precision, "learning": {"rule": rule}, "input": given, "label": label}
        content = _merged(plain, pieces)
        if "signal" in around:
            content = content | {"signal": around["signal"]}
            if stage == "forecast":
                content |= {"label": around["label"]}
        if accepted(content) is None:
            if "max_abs" in label:  # a model that learns no label
                content = content | {"label": {key: value for key, value in label.items() if key != "max_abs"}}
            if accepted(content) is None:
                continue
        for section, key in keys:  # as many of the stage's keys as go together
            more = _merged(content, {section: {key: around[section][key]}})
            content = more if accepted(more) is not None else content
        if stage == "staged" and not any(
            key in content.get(section, {}) and content[section][key] == around[section][key] for section, key in keys
        ):
            return None
        return content
    return None


def _signal_dim(content: Content) -> int:
    return len(plan_of(SignalSection.model_validate(content["signal"])).features)


def content_of(rule: str, precision: str, stage: str, kind: str | None = None) -> Content | None:
    """The content of one model; None if the rule has no such stage.  kind: of the label; the first that it can have."""
    kinds = [kind] if kind is not None else list(LABELS)
    return next((c for k in kinds if (c := _found(rule, precision, stage, k)) is not None), None)


def with_every_section(content: Content, rule: str, precision: str) -> Content:
    """The content with all stages that go together with it and need no key."""
    for section in dict.fromkeys(section for section, _, _ in fields_of(family_of(rule, precision).spec, rule)):
        more: Content = {section: {}} | content
        content = more if accepted(more) is not None else content
    return content


MODELS: list[tuple[str, str, str]] = [
    (rule, precision, stage)
    for rule in rules()
    for precision in PRECISIONS
    for stage in STAGES
    if family_of(rule, precision) is not None
]
