"""A model that has become useless begins anew, and no other does."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pykernel.algorithms.doubt import RUN, DoubtStatus
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, int16_rules, make_spec, rules

LABELS: list[dict[str, Any]] = [{"max_abs": 10.0}, {"max_abs": 10.0, "center": True, "gain": True}]
LABELS += [{"classes": list("ab")}, {"classes": list("abc")}]
NEEDED: list[dict[str, Any]] = [{}, {"kernel": {"sigma": 2.0}}, {"reduction": {"n_max": 32}}]
NEEDED += [NEEDED[1] | NEEDED[2], NEEDED[1] | {"input": {"dim": 3, "max_abs": 10.0, "standardise": True}}]


@functools.cache
def spec_of(precision: str, rule: str | None, label: str) -> Spec | None:
    """A model that learns as it goes, or None."""
    content = {"name": "m", "precision": precision, "input": {"dim": 3, "max_abs": 10.0}, "label": json.loads(label)}
    content |= {} if rule is None else {"learning": {"rule": rule}}
    for more in NEEDED:
        try:
            spec = make_spec(content | more)
        except UserError:
            continue
        if spec.program.learns and not spec.program.trainings and spec.program.label_kind != "none":
            return spec
    return None


def models() -> Iterator[Any]:
    for precision, known in (("float32", rules()), ("int16", int16_rules())):
        for rule in (None, *known):
            for label in map(json.dumps, LABELS):
                if spec_of(precision, rule, label) is not None:
                    yield pytest.param(precision, rule, label, id=f"{precision} {rule or 'default'} {label}")


def good(rng: np.random.Generator, spec: Spec, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, labels with noise, and without."""
    x = np.clip(2 * rng.normal(size=(rows, 3)), -9.9, 9.9)
    true = np.sin(0.8 * x[:, 0]) + 0.5 * x[:, 1] - 0.3 * x[:, 2]
    noisy = true + 0.1 * rng.normal(size=rows)
    if spec.label.classes is None:
        return x, noisy, true
    edges = [0.0] if len(spec.label.classes) == 2 else [-0.6, 0.6]
    return x, np.digitize(noisy, edges), np.digitize(true, edges)


def nonsense(rng: np.random.Generator, spec: Spec, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Of an input and a label that are not connected."""
    classes = spec.label.classes
    y = rng.uniform(-9.9, 9.9, rows) if classes is None else rng.integers(0, len(classes), rows)
    return rng.uniform(-9.9, 9.9, (rows, 3)), y


def wrong(model: HostModel, x: np.ndarray, true: np.ndarray) -> float:
    """The mean squared error, or the share of wrong classes."""
    if model.spec.label.classes is None:
        return float(np.mean((np.ravel(model.predict(x)) - true) ** 2))
    return float(np.mean(np.ravel(model.classify(x)) != true))


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(("precision", "rule", "label"), list(models()))
def test_after_nonsense_a_model_is_as_good_as_a_new_one(precision, rule, label, exhaustive):
    """The means over five streams; a fifth is for the labels that pass until the end of the nonsense is noticed, the rest for chance."""
    spec = spec_of(precision, rule, label)
    assert spec is not None
    for rows in (1000, 20_000, 100_000) if exhaustive else (1000,):
        found = np.zeros(2)
        for seed in range(5):
            rng = np.random.default_rng(seed)
            old, new = HostModel(spec), HostModel(spec)
            old.update(*good(rng, spec, 4000)[:2])
            old.update(*nonsense(rng, spec, rows))
            x, y, _ = good(rng, spec, rows)
            judged, _, true = good(rng, spec, 2000)
            for at, model in enumerate((old, new)):
                model.update(x, y)
                found[at] += wrong(model, judged, true)
        power = 1.0 if spec.label.classes else 0.5
        assert found[0] ** power <= 1.5 * found[1] ** power, (rows, found)


@pytest.mark.parametrize("precision", ["float32", "int16"])
def test_no_other_model_begins_anew(precision: str) -> None:
    """Not where the label jumps, stands still, or says nothing for a while; and not where a model never was useful."""
    spec = spec_of(precision, None, json.dumps(LABELS[0]))
    assert spec is not None
    rng = np.random.default_rng(0)
    x, y, _ = good(rng, spec, 12_000)
    jumps, still, lost = y.copy(), y.copy(), y.copy()
    jumps[4000:8000] += 4.0
    still[4000:9000] = -2.0
    lost[4000 : 4000 + RUN - 100] = rng.normal(size=RUN - 100)
    for labels in (y, jumps, still, lost, rng.normal(size=len(x))):
        assert DoubtStatus.RESTARTED not in HostModel(spec).update(x, np.clip(labels, -9.9, 9.9))


def test_rare_classes_raise_no_doubt() -> None:
    spec = spec_of("float32", None, json.dumps(LABELS[2]))
    assert spec is not None
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12_000, 3))
    y = (x[:, 0] + 0.3 * rng.normal(size=len(x)) > 1.6).astype(int)
    y[6000:] = rng.random(6000) < y[:6000].mean()
    assert DoubtStatus.RESTARTED not in HostModel(spec).update(x, y)
