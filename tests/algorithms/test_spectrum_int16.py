"""Waves in int16: a twin from the formulas, bounds, and what is learned with how few bytes."""

import itertools
import math

import numpy as np
import pytest

from pykernel.algorithms.int16 import spectrum
from pykernel.dialect import INT16
from pykernel.dialect.interpreter import bind
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.families.int16_spectrum import FEATURES_MOST, OCTAVES
from pykernel.spec.families.spectrum import count_of, orthogonal_features
from pykernel.spec.model import make_spec
from tests.support.every_model import DOUBT
from tests.support.hard_streams import streams_of_numbers
from tests.support.random_specs import random_spec
from tests.support.specs import assert_refused_in_int16

RULE = "spectrum-nlms"


def spec_of(precision="int16", dim=3, sigma=1.2, reach=3.0, label=None, staged=False, **learning):
    content = {
        "name": "wave",
        "precision": precision,
        "input": {"dim": dim, "max_abs": reach},
        "label": label if "classes" in (label or {}) else {"max_abs": 4.0} | (label or {}),
        "kernel": {"sigma": sigma},
        "learning": {"rule": RULE} | learning,
    }
    if staged:
        content |= {"label": content["label"] | {"center": True, "gain": True}, "linear": {}}
        content["input"] |= {"scale": [1.0] * dim} if precision == "int16" else {"standardise": True, "clip": 3.0}
    return make_spec(content)


def stream(rng, n, outputs=1):
    x = np.clip(rng.normal(size=(n, 3)), -3, 3)
    y = np.sin(2 * x[:, :1] + np.arange(outputs)) + 0.3 * x[:, 1:2] * x[:, 2:] + 0.05 * rng.normal(size=(n, outputs))
    return x, np.clip(y, -4, 4)


def test_the_table_of_a_quarter_has_every_sine():
    run = bind(spectrum.sine, INT16)
    edges = [q * 2**30 + e for q, e in itertools.product(range(4), (0, 1, 2**24 - 1, 2**24, 2**30 - 1))]
    angles = np.concatenate([np.random.default_rng(0).integers(0, 2**32, 4000), edges])
    found = np.array([run(np.uint32(each)) for each in angles]) / spectrum.ONE
    np.testing.assert_allclose(found, np.sin(angles / 2**31 * math.pi), atol=7e-5)
    assert np.abs(found).max() == 1


class Twin:
    """The rule by its formulas, in reals: only the unit is the power of two that it has in int16."""

    def __init__(self, spec):
        self.spec, self.n, self.outputs = spec, count_of(spec), spec.outputs
        self.w = orthogonal_features(spec.learning.seed, self.n, spec.dim).copy()
        self.a, self.b, self.level = (
            np.zeros((spec.outputs, self.n)),
            np.zeros((spec.outputs, self.n)),
            np.zeros(spec.outputs),
        )
        self.count = 0

    def predict(self, x):
        angles = self.w @ x / self.spec.length_scale
        return self.a @ np.cos(angles) + self.b @ np.sin(angles)

    def learn(self, x, y):
        z, e, config = x / self.spec.length_scale, y - self.predict(x), self.spec.config
        c, s, one = np.cos(self.w @ z), np.sin(self.w @ z), 2.0**self.spec.label_shift
        self.count += 1
        self.level += (np.abs(y) - self.level) / 2 ** min(math.floor(math.log2(self.count)), 11)
        for o in range(self.outputs):
            unit = 2.0 ** max(math.floor(math.log2(self.level[o] * one)) + 1, config.unit_least) / one
            d = (self.b[o] * c - self.a[o] * s) / unit
            step = self.spec.learning.eta * e[o] / (self.n + len(x) * (z @ z) * (d @ d))
            self.a[o] += step * c
            self.b[o] += step * s
            self.w += len(x) / self.outputs * step / unit * np.outer(d, z)


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(("outputs", "features", "size"), [(1, 8, 1.0), (2, 5, 1.0), (1, 2, 0.3), (1, 16, 0.01)])
def test_the_rule_is_its_formulas(outputs, features, size):
    rng = np.random.default_rng(3)
    spec = spec_of(label={"outputs": outputs} if outputs > 1 else None, features=features, seed=5)
    model, twin = HostModel(spec), Twin(spec)
    x, y = stream(rng, 500, outputs)
    y *= size
    x = np.rint(x * spec.counts_per_unit) / spec.counts_per_unit
    for row, label in zip(x, y, strict=True):
        np.testing.assert_allclose(np.ravel(model.predict(row)), twin.predict(row), atol=0.02 * size)
        assert model.update(row, label if outputs > 1 else label[0]) == 0
        twin.learn(row, label)
    grain = 2 * math.pi * 2.0 ** (spec.config.turn_places + spec.scales.octave - 32)
    np.testing.assert_allclose(model.memory.field("frequencies") * grain, twin.w, atol=0.02)


LABELS = [
    {"max_abs": 4.0},
    {"outputs": 3, "max_abs": 50.0, "low": -1.0, "high": 20.0},
    {"classes": list("ab")},
    {"classes": list("abc")},
]


@pytest.mark.in_turn
@pytest.mark.parametrize("seed", [0, 1, 2, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(3, 150))])
def test_no_number_of_any_model_leaves_its_type(seed):
    """``build`` proves it, or refuses; the ends of all keys are frequent."""
    build(random_spec(np.random.default_rng(seed), RULE, precision="int16"))


@pytest.mark.in_turn(36)
@pytest.mark.parametrize("label", LABELS[:3], ids=str)
@pytest.mark.parametrize(
    ("dim", "features", "eta", "sigma"),
    [(1, 1, 1.0, 1.0), (300, 64, 1 / 65536, 100.0), (1, 64, 1.0, 3e5), (2, 3, 0.4, 3e-3)],
)
def test_nor_of_models_at_the_ends_of_the_scales(dim, features, eta, sigma, label):
    spec = spec_of(dim=dim, features=features, eta=eta, sigma=sigma, reach=1.0, label=label)
    assert spec.scales.octave in OCTAVES and build(spec)


def test_it_learns_what_the_rule_of_reals_learns_with_fewer_bytes():
    rng = np.random.default_rng(0)
    x, y = stream(rng, 6000)
    wrong, sizes = {}, {}
    for precision in ("float32", "int16"):
        spec = spec_of(precision, eta=0.4)
        answers, _ = HostModel(spec).prequential(x, y[:, 0])
        wrong[precision] = math.sqrt(np.mean((answers - y[:, 0])[3000:] ** 2))
        sizes[precision] = build(spec).figures["state_bytes"] - DOUBT
    assert wrong["int16"] <= 1.05 * wrong["float32"] < 0.15, wrong
    assert sizes["int16"] < 0.7 * sizes["float32"], sizes


@pytest.mark.exhaustive
@pytest.mark.parametrize("staged", [False, True])
def test_no_stream_leads_out_of_the_bounds(staged, exhaustive):
    """What is rounded in each sample does not add up: the error is near that of float64, and weights stay small."""
    rows = 1_000_000 if exhaustive else 10_000
    for name, x, y in streams_of_numbers(np.random.default_rng(1), rows):
        x, y = np.clip(x, -9, 9) / 3, np.clip(y, -1e5, 1e5)
        label = {"max_abs": float(1.01 * np.abs(y).max())}
        wrong = {}
        for precision in ("int16", "float64"):
            model = HostModel(spec_of(precision, sigma=0.7, label=label, staged=staged, eta=0.4))
            answers, statuses = model.prequential(x, y)
            assert (statuses >= 0).all(), name
            wrong[precision] = math.sqrt(np.square(np.ravel(answers) - y)[-rows // 10 :].mean())
            if precision == "int16":
                weights = max(np.abs(model.memory.field(each)).max() for each in "ab")
                assert weights <= model.spec.config.weight_most // 2, (name, weights)
        # 16 bits of a frequency leave a hundredth of a label's range; stages of reals are others
        most = 1.5 * max(wrong["float64"], float(y[-rows // 10 :].std()) if staged else 0.0) + 0.01 * np.abs(y).max()
        assert wrong["int16"] <= most, (name, wrong)


REFUSED = [
    ({"kernel": None}, r"\[kernel\] is missing; spectrum-nlms needs sigma, the width of the kernel"),
    ({"kernel": {"function": "laplacian", "gamma": 1.0}}, "it must be gaussian, the only kernel"),
    ({"learning": {"rule": RULE, "features": 65}}, rf"\[learning\] features is 65; int16 allows at most {FEATURES_MOST}"),
    ({"learning": {"rule": RULE, "noise": 0.1}}, "spectrum-nlms in int16 does not have it"),
    ({"learning": {"rule": RULE, "eta": 1e-6}}, "it must be at least 1.5e-05"),
    ({"kernel": {"sigma": 1e-4}}, "allows inputs that are too far apart for 16 bits"),
    ({"kernel": {"sigma": 1e8}}, "make the kernel narrower"),
    ({"label": {}}, r"\[label\] max_abs is missing"),
    ({"label": {"classes": ["a", "b"], "gain": True}}, "is for labels that are numbers"),
    ({"mixture": {}}, r"\[mixture\]"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    assert_refused_in_int16(RULE, change, says)
