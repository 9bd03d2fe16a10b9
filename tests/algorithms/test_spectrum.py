"""Sparse spectra with learned frequencies: a twin from the formulas, the covariance's bounds, what is learned and refused."""

import itertools
import math

import numpy as np
import pytest

from pykernel.algorithms.doubt import DoubtStatus
from pykernel.algorithms.spectrum import FREQUENCY_MOST
from pykernel.algorithms.stages import TRUSTED
from pykernel.dialect import FLOAT64
from pykernel.errors import UserError
from pykernel.gen.project import build
from pykernel.host.bikeshare import bikeshare
from pykernel.host.model import HostModel
from pykernel.spec.families.spectrum import (
    FREQUENCY_VARIANCE,
    HORIZON,
    RULES,
    SLOWER,
    SOFTMAX,
    block_of,
    count_of,
    even_features,
    first_features,
    orthogonal_features,
)
from pykernel.spec.model import make_spec
from tests.support import ROOT
from tests.support.following import is_valid
from tests.support.hard_streams import streams_of_numbers

OF_NUMBERS = [rule for rule in RULES if rule != SOFTMAX]
STAGED = {
    "input": {"standardise": True, "clip": 3.0, "max_abs": 1e9},
    "label": {"center": True, "gain": True, "clip": 5.0, "max_abs": 1e6},
    "linear": {},
}


def spec_of(rule, precision="float64", dim=3, sigma=1.5, label=None, staged=False, **learning):
    content = {
        "name": "wave",
        "precision": precision,
        "input": {"dim": dim, "max_abs": 1e5},
        "label": label if "classes" in (label or {}) else {"max_abs": 1e4} | (label or {}),
        "kernel": {"sigma": sigma},
        "learning": {"rule": rule} | learning,
    }
    if staged:
        content |= {"input": content["input"] | STAGED["input"], "label": STAGED["label"] | (label or {}), "linear": {}}
    return make_spec(content)


# ------------------------------------------------------------------------------------------------------------- a twin


class Twin:
    """The rule by its formulas: whole matrices, and derivatives by differences."""

    def __init__(self, spec):
        self.spec, self.outputs = spec, spec.outputs
        self.n, self.group, width = count_of(spec), block_of(spec), spec.length_scale
        self.w = first_features(spec.learning.rule, spec.learning.seed, self.n, spec.dim) / width
        self.a, self.b = np.zeros((self.outputs, self.n)), np.zeros((self.outputs, self.n))
        prior = np.diag(([1.0, 1.0] + [FREQUENCY_VARIANCE / width**2] * spec.dim) * self.group)
        self.prior, self.p = prior, [prior.copy() for _ in range(self.n // self.group)]
        self.power, self.unit, self.count = np.zeros(self.outputs), np.zeros(self.outputs), 0

    def f(self, x, o, a=None, b=None, w=None):
        """In units of the output."""
        a, b, w = (self.a[o] if a is None else a), (self.b[o] if b is None else b), (self.w if w is None else w)
        return float(a @ np.cos(w @ x) + b @ np.sin(w @ x))

    def predict(self, x):
        return np.array([self.unit[o] * self.f(x, o) for o in range(self.outputs)])

    def learn(self, x, y):
        seen = self.predict(x)
        base = self.w.copy()
        self.count = min(self.count + 1, HORIZON)
        step = 2 / (self.count + 1)
        for o in range(self.outputs):
            square = y[o] ** 2 if self.count <= 40 else min(y[o] ** 2, 25 * (self.power[o] or 1e30))
            self.power[o] += step * (square - self.power[o])
            root = math.sqrt(self.power[o])
            largest = max(np.abs(self.a[o]).max(), np.abs(self.b[o]).max()) * self.unit[o]
            if root > 2 * self.unit[o] or (2 * root < self.unit[o] and largest <= 4 * root):
                self.a[o] *= self.unit[o] / root
                self.b[o] *= self.unit[o] / root
                self.unit[o] = root
            e = (y[o] - seen[o]) / self.unit[o]
            if self.spec.learning.rule == "spectrum-ekf":
                self._filter(x, o, e, base)
            else:
                self._descend(x, o, e, base)

    def _filter(self, x, o, e, base):
        """base: the frequencies before this sample, at which all derivatives are."""
        h = [self._slopes(x, o, range(i, i + self.group), base) for i in range(0, self.n, self.group)]
        g = [p @ each for p, each in zip(self.p, h, strict=True)]
        s = self.spec.learning.noise + sum(float(each @ one) for each, one in zip(h, g, strict=True))
        forgetting = self.spec.learning.forgetting ** (1 / self.outputs)
        shrink = 1 - (1 - forgetting) / SLOWER
        for block, gain in enumerate(g):
            for k, own in enumerate(gain.reshape(self.group, -1)):
                i = block * self.group + k
                self.a[o, i] = shrink * self.a[o, i] + own[0] * e / s
                self.b[o, i] = shrink * self.b[o, i] + own[1] * e / s
                self.w[i] += own[2:] * e / s / self.outputs
            shrunk = self.p[block] - np.outer(gain, gain) / s / self.outputs
            self.p[block] = forgetting * shrunk + (1 - forgetting) * self.prior

    def _descend(self, x, o, e, base):
        slopes = np.array([self._slopes(x, o, [i], base) for i in range(self.n)])
        share = self.spec.dim / self.spec.length_scale**2
        size = np.square(slopes[:, :2]).sum() + share * np.square(slopes[:, 2:]).sum()
        step = self.spec.learning.eta * e / (size * (1 + min(0.3 * self.spec.learning.noise, 30)))
        self.a[o] += step * slopes[:, 0]
        self.b[o] += step * slopes[:, 1]
        self.w += share * step * slopes[:, 2:] / self.outputs

    def _slopes(self, x, o, units, base):
        found, small = [], 1e-6
        for i in units:
            for kind in range(2 + len(x)):
                ends = []
                for sign in (1, -1):
                    a, b, w = self.a[o].copy(), self.b[o].copy(), base.copy()
                    if kind < 2:
                        (a, b)[kind][i] += sign * small
                    else:
                        w[i, kind - 2] += sign * small
                    ends.append(self.f(x, o, a, b, w))
                found.append((ends[0] - ends[1]) / (2 * small))
        return np.array(found)


def stream(rng, n, dim, outputs):
    x = rng.normal(size=(n, dim))
    y = np.sin(1.7 * x[:, :1] + np.arange(outputs)) + 0.3 * np.cos(x @ rng.normal(size=(dim, outputs)))
    return x, y * np.array([3.0, 0.1, 20.0])[:outputs]


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(("rule", "outputs", "block"), [
    ("spectrum-ekf", 1, 1), ("spectrum-ekf", 1, 2), ("spectrum-ekf", 3, 4), ("spectrum-nlms", 1, None), ("spectrum-nlms", 2, None),
])  # fmt: skip
def test_the_rule_is_its_formulas(rule, outputs, block):
    rng = np.random.default_rng(3)
    own = {} if block is None else {"block": block}
    label = {"outputs": outputs} if outputs > 1 else None
    spec = spec_of(rule, label=label, features=4, noise=0.05, seed=5, **own)
    model, twin = HostModel(spec), Twin(spec)
    x, y = stream(rng, 400, 3, outputs)
    y[200:] *= 5  # the units change
    for row, label in zip(x, y, strict=True):
        np.testing.assert_allclose(np.ravel(model.predict(row)), twin.predict(row), rtol=1e-5, atol=1e-5)
        assert model.update(row, label if outputs > 1 else label[0]) == 0
        twin.learn(row, label)
    np.testing.assert_allclose(model.memory.field("frequencies") / spec.length_scale, twin.w, rtol=1e-5, atol=1e-6)
    if rule == "spectrum-ekf":
        for packed, whole in zip(model.memory.field("covariance"), twin.p, strict=True):
            scale = np.tile([1.0, 1.0] + [1 / spec.length_scale] * 3, block)  # the device's frequencies have no unit
            np.testing.assert_allclose(symmetric(packed) * np.outer(scale, scale), whole, rtol=1e-4, atol=1e-6)


def symmetric(packed):
    size = math.isqrt(2 * len(packed))
    whole = np.zeros((size, size))
    whole[np.tril_indices(size)] = packed
    return whole + np.tril(whole, -1).T


# ------------------------------------------------------------------------------------------------------- what is proved

ROWS = 20_000


SETTINGS = [
    {},
    {"features": 8, "block": 8, "noise": 1e-3},
    {"forgetting": 0.9999},
    {"features": 6, "block": 1, "noise": 1e-3},
]


@pytest.mark.exhaustive
@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_covariance_stays_between_its_bounds_in_float32(settings, staged, exhaustive):
    """(1 - lambda) P0 <= P <= P0: no update leads out, whatever the inputs are, so that rounding cannot add up."""
    rng = np.random.default_rng(1)
    rows = 50 * ROWS if exhaustive else ROWS
    for name, x, y in streams_of_numbers(rng, rows):
        x, y = np.clip(x, -1e5, 1e5), np.clip(y, -1e6, 1e6)
        spec = spec_of("spectrum-ekf", "float32", label={"max_abs": 1e6}, staged=staged, **settings)
        model = HostModel(spec)
        for part in np.array_split(np.arange(rows), 10):
            statuses = model.update(x[part], y[part])
            assert (statuses >= 0).all(), name
            scale = 1 / np.sqrt(spec.config.prior)
            for packed in model.memory.field("covariance") if statuses[-1] != DoubtStatus.RESTARTED else ():
                values = np.linalg.eigvalsh(symmetric(packed.astype(np.float64)) * np.outer(scale, scale))
                assert 0.8 * (1 - spec.learning.forgetting) <= values[0] and values[-1] <= 1.001, (name, values)
            assert np.isfinite(model.predict(x[part])).all(), name


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_a_covariance_that_is_none_stays_within_its_limits(precision, outputs):
    """Memory that was overwritten: any numbers that load accepts, far from positive definite, and any inputs after that."""
    rng = np.random.default_rng(3)
    for forgetting in (0.5, 0.998, 0.9999):
        model = HostModel(
            spec_of("spectrum-ekf", precision, label={"outputs": outputs}, features=4, block=2, forgetting=forgetting)
        )
        config = model.spec.config
        x = rng.normal(size=(2, model.spec.dim))
        model.update(x, rng.normal(size=(2, outputs) if outputs > 1 else 2))
        rows = np.cumsum(np.arange(1, len(config.prior) + 1)) - 1
        for size in (1.0, 1e-3, 1e-6):
            p = model.memory.field("covariance")
            p[:] = size * config.covariance_limit * rng.choice([-1, 1], p.shape)
            p[:, rows] = config.prior * rng.uniform(
                0.25 * (1 - forgetting ** (1 / outputs)) + 1e-3, 1.99, (len(p), len(rows))
            )
            model.memory.field("a")[:] = 1024 * rng.choice([-1, 1], model.memory.field("a").shape)
            assert is_valid(model)
            for reach in (1e-30, 1e-3, 1.0, 1e4):
                x = reach * rng.normal(size=(20, model.spec.dim))
                assert (model.update(x, rng.normal(size=(20, outputs) if outputs > 1 else 20)) >= 0).all()
                assert is_valid(model)


# ----------------------------------------------------------------------------------------------------- what is learned


@pytest.mark.parametrize("rule", OF_NUMBERS)
def test_frequencies_that_no_start_has_are_found(rule):
    """A wave of three times the frequencies that the kernel's spectrum has: random features need many more weights."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (6000, 2))
    y = np.sin(6 * x[:, 0] + 2 * x[:, 1]) + 0.02 * rng.normal(size=len(x))
    model = HostModel(spec_of(rule, "float32", dim=2, sigma=0.7, features=4))
    fixed = HostModel(make_spec(named_rff(2, 0.7, 8)))
    errors = [np.ravel(each.prequential(x, y)[0])[4000:] - y[4000:] for each in (model, fixed)]
    assert math.sqrt(np.mean(errors[0] ** 2)) < 0.1 < 0.5 * math.sqrt(np.mean(errors[1] ** 2))


def named_rff(dim, sigma, features):
    return {
        "name": "m",
        "input": {"dim": dim},
        "kernel": {"sigma": sigma},
        "learning": {"rule": "rff-rls", "features": features},
    }


def test_the_error_does_not_grow_where_samples_are_rare():
    """Inputs and labels jump every 500 samples: what a sample does not hold must not wander."""
    rng = np.random.default_rng(4)
    jumps = 400
    x = np.repeat(rng.integers(0, 9, (jumps, 3)).astype(float), 500, axis=0)
    y = np.repeat(np.sin(np.arange(jumps)), 500)
    model = HostModel(spec_of("spectrum-ekf", "float32", staged=True))
    wrong = np.square(np.ravel(model.prequential(x, y)[0]) - y).reshape(8, -1).mean(axis=1)
    early, late = np.sqrt(wrong[1:4].mean()), np.sqrt(wrong[4:].mean())
    assert late < 0.2 and late < 1.1 * early


@pytest.mark.parametrize("rule", OF_NUMBERS)
def test_the_error_does_not_grow_where_labels_come_in_bursts(rule, exhaustive):
    """Between bursts of 100 samples, inputs and labels are zero for 4,900: the labels' mean square falls without end."""
    rng = np.random.default_rng(0)
    rows = 1_000_000 if exhaustive else 200_000
    on = np.arange(rows) % 5000 < 100
    x = rng.normal(size=(rows, 3)) * on[:, None]
    y = np.sin(2 * x[:, 0])
    found = np.ravel(HostModel(spec_of(rule, "float32")).prequential(x, y)[0])
    wrong = np.sqrt(np.square(found - y)[on].reshape(8, -1).mean(axis=1))
    assert wrong[1:].max() < 0.15, wrong


def test_labels_that_were_constant_may_begin_to_move():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    y = np.where(np.arange(4000) < 1000, 0.0, np.sin(2 * x[:, 0]))
    for rule in OF_NUMBERS:
        model = HostModel(spec_of(rule, "float32"))
        found = np.ravel(model.prequential(x, y)[0])
        assert math.sqrt(np.mean((found[3000:] - y[3000:]) ** 2)) < 0.3, rule


def test_the_seeds_frequencies_are_orthogonal_and_of_the_kernels_spectrum():
    for seed, dim in itertools.product((0, 7), (1, 3, 8)):
        made = orthogonal_features(seed, 16, dim)
        assert (made[:4] == orthogonal_features(seed, 4, dim)).all()
        for start in range(0, 16 - dim + 1, dim):
            group = made[start : start + dim]
            lengths = np.linalg.norm(group, axis=1)
            np.testing.assert_allclose(
                group @ group.T / np.outer(lengths, lengths), np.eye(dim), atol=2e-4 * max(1, 1 / lengths.min())
            )
    many = np.concatenate([orthogonal_features(seed, 12, 3) for seed in range(100)])
    np.testing.assert_allclose(np.cov(many.T), np.eye(3), atol=0.15)
    assert 5 * np.abs(many).max() < FREQUENCY_MOST.value(FLOAT64)


@pytest.mark.parametrize(("count", "dim"), [*itertools.product((1, 2, 4, 8, 64), (1, 2, 3, 4, 5, 8, 40))])
def test_a_start_that_is_not_drawn_gives_no_input_a_place_of_its_own(count, dim):
    """Columns in another order make the same frequencies, up to signs and their own order; and no two are the same, up to signs."""
    made = even_features(count, dim)
    cosets = {frozenset(map(tuple, (w, -w))) for w in made}
    assert len(cosets) == count
    for order in ([*range(1, dim), 0], [*range(dim)][::-1]):
        assert {frozenset(map(tuple, (w, -w))) for w in made[:, order]} == cosets


@pytest.mark.parametrize("rows", [lambda: bikeshare()[:2], lambda: (SPIRAL, SPIRAL[:, 2] * np.sin(3 * SPIRAL[:, 0]))])
def test_the_order_of_columns_is_no_seed(rows):
    """Of the default model: orders differ by what roundings lead to."""
    x, y = rows()
    rng, dim = np.random.default_rng(1), x.shape[1]
    spec = make_spec({"name": "m", "input": {"dim": dim}, "label": {"column": "y"}})
    means = []
    for _ in range(16):
        answers = np.ravel(HostModel(spec).prequential(x[:, rng.permutation(dim)], y)[0])
        means.append(np.abs(answers - y)[len(y) // 2 :].mean())
    assert max(means) <= 1.02 * min(means), means


SPIRAL = np.random.default_rng(2).normal(size=(3000, 3))


def test_noise_is_a_number_or_estimated():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    y = np.sin(2 * x[:, 0]) + rng.normal(size=3000)
    errors = {}
    for noise in ("auto", 1e-3, 3.0):
        model = HostModel(spec_of("spectrum-ekf", "float32", noise=noise))
        errors[noise] = np.mean((np.ravel(model.prequential(x, y)[0])[1500:] - np.sin(2 * x[1500:, 0])) ** 2)
    assert errors["auto"] < 0.5 * errors[1e-3] and errors["auto"] < 1.3 * errors[3.0] and TRUSTED == 20


REFUSED = [
    ({"learning": {"rule": "spectrum-ekf", "features": 6, "block": 4}}, r"\[learning\] block is 4; it must divide 6, the value of features"),
    ({"learning": {"rule": "spectrum-nlms", "block": 4}}, "block belongs to spectrum-ekf"),
    ({"learning": {"rule": "spectrum-ekf", "eta": 0.4}}, "eta belongs to"),
    ({"learning": {"rule": "spectrum-ekf", "noise": 1e-4}}, r"noise is 0.0001; it must be from 1e-3 to 1e3"),
    ({"kernel": {"function": "laplacian", "gamma": 1.0}}, "function is laplacian; it must be gaussian, the only kernel for which spectrum-ekf has"),
    ({"input": {"dim": 2, "max_abs": 1e12}}, "scaled inputs can reach 1e.12; they must be at most 1e.09 times sigma"),
    ({"label": {"max_abs": 1e33}}, r"\[label\] max_abs is 1e.33"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    base = {"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-ekf"}}
    with pytest.raises(UserError, match=says):
        make_spec(base | change)
    with pytest.raises(UserError, match=r"\[kernel\] is missing"):
        make_spec({key: value for key, value in base.items() if key != "kernel"})


def test_the_page_says_the_states_bytes():
    page = (ROOT / "docs" / "spectrum.md").read_text(encoding="utf-8")
    for rule in RULES:
        spec = spec_of(rule, "float32", label={"classes": ["a", "b", "c"]} if rule == SOFTMAX else None)
        assert f"| {build(spec).figures['state_bytes']} bytes at `features = {count_of(spec)}` |" in page
