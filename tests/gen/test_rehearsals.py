"""How many made-up samples a self-test takes: all that fill and change the budget, unless that would take minutes."""

import itertools

import pytest

from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.gen import context
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec import family
from pykernel.spec.family import affordable, filling
from pykernel.spec.model import make_spec
from pykernel.tuning.costs import unread_fields

CLASSES = [*"abcdefg"]
SIGNAL = {"channels": ["a", "b"], "window": 8, "features": ["mean", "std"]}
KERNEL = {"name": "m", "input": {"dim": 3}, "kernel": {"sigma": 1.0}}
LARGE = {
    "klms": KERNEL | {"learning": {"rule": "klms"}, "reduction": {"n_max": 4096, "technique": "nt"}},
    "mklms": KERNEL | {"learning": {"rule": "klms"}, "reduction": {"n_max": 1025, "technique": "mklms"}},
    "krls-t": {"name": "m", "signal": SIGNAL, "label": {"classes": CLASSES}, "kernel": {"sigma": 1.0}}
    | {"learning": {"rule": "krls-t"}, "reduction": {"n_max": 1025}},
    "quadratic-rls": {"name": "m", "input": {"dim": 64}, "learning": {"rule": "quadratic-rls"}},
    "int16": {"name": "m", "precision": "int16", "input": {"dim": 16, "max_abs": 1.0}, "kernel": {"sigma": 1.0}}
    | {"label": {"max_abs": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 4096}},
    **{
        method: KERNEL
        | {"learning": {"rule": "nystrom-rls", "samples": 2048}, "reduction": {"n_max": 256}}
        | {"basis": {"method": method}}
        for method in ("stream", "efvs", "sgma")
    },
}
FULL = {"klms": 8224, "mklms": 2082, "krls-t": 2082, "quadratic-rls": 96, "int16": 8224, "stream": 2052}
FULL |= {"efvs": 2048, "sgma": 2048}


def small(content):
    """The same model with a budget that fits anywhere."""
    made = {key: dict(value) if isinstance(value, dict) else value for key, value in content.items()}
    if "reduction" in made:
        made["reduction"]["n_max"] = 6
    if "samples" in made["learning"]:
        made["learning"]["samples"] = 24
    if made["learning"]["rule"] == "quadratic-rls":
        made["input"]["dim"] = 3
    return made


@pytest.mark.parametrize("name", LARGE)
def test_a_large_models_self_test_takes_fewer_samples_and_a_small_ones_all(name):
    large, little = make_spec(LARGE[name]), make_spec(small(LARGE[name]))
    assert 8 <= large.config.rehearsed < FULL[name]
    if "basis" in LARGE[name]:
        assert little.config.rehearsed == (28 if name == "stream" else 24)
    else:
        # as if there were no limit
        assert little.config.rehearsed == (96 if name == "quadratic-rls" else 44)


def test_the_issues_model_is_generated_at_once(monkeypatch):
    """krls-t for raw signals with seven classes and 1,025 vectors took 348 s; a silent two seconds are told."""
    told, run = [], []

    class Told:
        def __enter__(self):
            return lambda part, text: told.append(text)

        def __exit__(self, *_):
            return None

    monkeypatch.setattr(context, "told_late", Told)
    spec = make_spec(LARGE["krls-t"])
    whole = HostModel.executor.fget

    def executor(self):
        run.append(told[:])
        return whole(self)

    monkeypatch.setattr(HostModel, "executor", property(executor))
    build(spec)
    assert told == ["computing the expected result of m_selftest, which takes a long time for a model of this size"]
    assert told in run  # before it begins


def test_what_is_affordable():
    for budget in (1, 7, 1000):
        counts = [filling(m, budget) for m in range(3 * budget)]
        steps = [later - before for before, later in itertools.pairwise(counts)]
        assert all(0 < step <= 1 for step in steps) and filling(0, budget) == 0
    for most in (1, 2, 96, 8224):
        for each in (0, 1, 1e3, 1e6, 1e9):
            found = affordable(most, lambda m, each=each: m * each)
            assert 1 <= found <= most
            assert found * each <= family.REHEARSAL_LIMIT or found == 1
            assert found == most or (found + 1) * each > family.REHEARSAL_LIMIT


@pytest.mark.in_turn(13)
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_a_size_counts_as_many_matrices_as_the_c_has(technique):
    content = {"name": "m", "input": {"dim": 2}, "label": {"column": "y"}, "kernel": {"sigma": 1.0}}
    reduction = {"n_max": 1000, "technique": technique, "force": True}
    spec = make_spec(content | {"learning": {"rule": "klms"}, "reduction": reduction})
    found = spec.memory(unread_fields(spec)).layout.nbytes // 4
    assert found <= spec.numbers < found + 0.1 * 1000**2 / 2
