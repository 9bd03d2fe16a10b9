"""Rules of learning beyond the paper's, several labels and classes, what firmware may ask."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from pykernel.algorithms.doubt import DoubtStatus
from pykernel.algorithms.online import hooks
from pykernel.algorithms.online.budget import budgeted
from pykernel.algorithms.online.gradient import adapt_gradient, propose_gradient
from pykernel.algorithms.online.klms import KLMS, similarity
from pykernel.algorithms.online.state import OnlineModel, OnlineStatus
from pykernel.algorithms.online.techniques import TECHNIQUES
from pykernel.dialect import kernel, real
from pykernel.host.model import HostModel
from pykernel.spec.families.online import RULES
from pykernel.spec.model import Spec
from tests.support import ROOT
from tests.support.following import FIXED, follow, in_use, learned, problems, spec_of
from tests.support.naive import kernels
from tests.support.streams003 import sinc

Status = KLMS["real"].status


@given(problems(rules=("krls-t", "fb-krls", "sw-krls", "ald-krls", "knlms"), strategies=True))
def test_recursive_rules_do_what_their_papers_say(problem: tuple[Spec, np.ndarray, np.ndarray]) -> None:
    follow(*problem)


@given(problems(rules=tuple(RULES), kinds=("reals", "class"), strategies=True))
def test_several_labels_and_classes_do_what_the_definitions_say(problem: tuple[Spec, np.ndarray, np.ndarray]) -> None:
    follow(*problem)


@pytest.mark.parametrize("rule", RULES)
def test_equal_labels_are_learned_as_one(rule: str) -> None:
    """Outputs share the dictionary: three times the same label is the model of one, to the bit but for sums' order."""
    x, y = sinc(300)
    keys: dict[str, Any] = {"rule": rule} if rule in FIXED else {"rule": rule, "technique": "sup"}
    one, three = HostModel(spec_of(n_max=8, **keys)), HostModel(spec_of(n_max=8, outputs=3, **keys))
    np.testing.assert_array_equal(three.update(x, np.tile(y[:, None], 3)), one.update(x, y))
    np.testing.assert_array_equal(in_use(three, "v"), in_use(one, "v"))
    np.testing.assert_allclose(in_use(three, "alpha"), np.tile(in_use(one, "alpha"), 3), rtol=0, atol=1e-9)


@kernel
def half_a_step(m: OnlineModel) -> None:
    """The gradient rules' step, halved: a rule of its own."""
    propose_gradient(m)
    for o in range(len(m.error)):
        if m.drafts:
            m.beta[m.n[0], o] = real(0.5) * m.beta[m.n[0], o]
        else:
            m.step[o] = real(0.5) * m.step[o]


HALVED = budgeted({hooks.propose: half_a_step, hooks.adapt: adapt_gradient, hooks.share_of_nearest: similarity})


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("when", ["after", "before"])
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_every_step_is_the_rule_s_own(technique: str, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half the step with eta is the step with eta / 2, to the bit: for stored samples, absorbed ones and full models."""
    x, y = sinc(400)
    x[::7] = x[3]
    keys: dict[str, Any] = {"rule": "klms", "when": when, "force": True}
    usual = HostModel(spec_of(technique, 8, eta=0.25, **keys))
    seen = usual.update(x, y)
    assert {OnlineStatus.REPLACED, OnlineStatus.MERGED} <= {*seen} and DoubtStatus.RESTARTED not in seen
    spec = spec_of(technique, 8, eta=0.5, **keys)
    monkeypatch.setattr(spec.family, "programs", HALVED)
    own = HostModel(spec)
    np.testing.assert_array_equal(own.update(x, y), seen)
    for field in ("n", "v", "alpha"):
        assert own.memory.field(field).tobytes() == usual.memory.field(field).tobytes(), field


@pytest.mark.parametrize("when", ["after", "before"])
def test_the_recipe_s_rule_is_one(when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule that CONTRIBUTING prints: the same bits in LLVM and in plain Python, and users' step_limit holds."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (source,) = re.findall(r"^```python\n(\"{3}Sign KLMS.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "sign_klms.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    programs = importlib.import_module("sign_klms").SIGN_KLMS
    x, y = sinc(300)
    states = []
    for engine, limit in (("llvm", None), ("python", None), ("llvm", 0.01)):
        spec = spec_of("mklms", 6, eta=0.1, rule="klms", when=when, step_limit=limit)
        monkeypatch.setattr(spec.family, "programs", programs)
        model = HostModel(spec, engine=engine)
        assert (model.update(x, y) > 0).all()
        states.append(in_use(model, "alpha"))
    assert states[0].tobytes() == states[1].tobytes()
    assert np.abs(np.diff(states[0], axis=0)).max() > 0.05 and states[2].tobytes() != states[0].tobytes()


# ------------------------------------------------------------------------------------------ least squares


def test_fb_krls_fits_the_samples_it_holds() -> None:
    """alpha = P y: f(v_i) = y_i - ridge alpha_i (Van Vaerenbergh et al. 2010)."""
    x, y = sinc(2000)
    model = HostModel(spec_of("sup", 10, rule="fb-krls", ridge=1e-6, ald_threshold=2e-6))
    assert learned(model.update(x, y))
    v, alpha = in_use(model, "v"), in_use(model, "alpha")[:, 0]
    np.testing.assert_allclose(model.predict(v) + 1e-6 * alpha, np.sinc(v[:, 0]), rtol=0, atol=1e-4)


def test_krls_t_with_room_for_all_is_kernel_ridge_regression() -> None:
    """lambda = 1 and no removal: the posterior mean of all samples, in closed form."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (60, 2))
    y = np.sin(x.sum(1)) + 0.1 * rng.normal(size=60)
    made = spec_of("sup", 64, 2, rule="krls-t", sigma=1.0, noise=0.05, ridge=1e-6, ald_threshold=2e-6)
    model = HostModel(made)
    assert (model.update(x, y) == Status.ADDED).all()
    distance = np.sum((x[:, None] - x[None]) ** 2, axis=-1)
    gram = np.exp(-distance / 2) + 1e-6 * np.eye(60)
    grid = rng.uniform(-2, 2, (50, 2))
    cross = np.exp(-np.sum((grid[:, None] - x[None]) ** 2, axis=-1) / 2)
    weights = np.linalg.solve(gram + 0.05 * np.eye(60), y)
    np.testing.assert_allclose(model.predict(grid), cross @ weights, rtol=0, atol=1e-7)
    # the variance of a label there: noise and what the samples leave open of the function
    left = 1 + 1e-6 - np.sum(cross * np.linalg.solve(gram + 0.05 * np.eye(60), cross.T).T, axis=1)
    expected = (0.05 + left) * float(model.memory.field("power")[0]) * made.label.max_abs**2
    np.testing.assert_allclose(model.variance(grid), expected, rtol=1e-6)


def test_krls_t_knows_how_wrong_it_may_be() -> None:
    """Nineteen of twenty labels are within two predicted standard deviations, near the data and far from them."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (3000, 1))
    y = 5 * np.sinc(x[:, 0]) + 0.3 * rng.normal(size=3000)
    model = HostModel(spec_of("sup", 20, rule="krls-t", sigma=0.5, noise=0.04, max_abs=100.0))
    assert model.variance([[0.0]])[0] == pytest.approx(100.0**2 * (1.001 + 0.04))  # nothing is known
    assert learned(model.update(x[:2000], y[:2000]))
    within = np.abs(y[2000:] - model.predict(x[2000:])) <= 2 * np.sqrt(model.variance(x[2000:]))
    assert 0.9 < within.mean() < 0.995
    near, far = model.variance([[0.0], [30.0]])
    assert near < 0.2 * far


def test_krls_t_forgets_what_is_no_longer_so() -> None:
    """After the function changed sign, the model that forgets is the better one; before, it is not much worse."""
    x, y = sinc(2000)
    y[1000:] *= -1
    errors = {}
    for forgetting in (1.0, 0.99):
        model = HostModel(spec_of("sup", 14, rule="krls-t", forgetting=forgetting, noise=0.01))
        predictions, statuses = model.prequential(x, y)
        assert learned(statuses)
        errors[forgetting] = np.abs(y - predictions)
    assert errors[0.99][1300:].mean() < 0.1 * errors[1.0][1300:].mean()
    assert errors[0.99][500:1000].mean() < 0.02


def test_an_ald_dictionary_grows_until_it_is_full_and_no_further() -> None:
    x, y = sinc(500)
    model = HostModel(spec_of(rule="ald-krls", n_max=40, ald_threshold=0.01))
    statuses = model.update(x, y)
    assert set(statuses) == {Status.ADDED, Status.ABSORBED}
    v = in_use(model, "v")
    assert 8 < len(v) < 40
    # every sample is expressed by the dictionary up to nu, and each of it was new in its turn
    assert model.novelty(x).max() <= 0.01
    full = HostModel(spec_of(rule="ald-krls", n_max=6, ald_threshold=0.01))
    full.update(x, y)
    np.testing.assert_array_equal(in_use(full, "v"), v[:6])


def test_qklms_stores_nothing_within_its_quantum() -> None:
    x, y = sinc(3000)
    model = HostModel(spec_of("nt", 100, rule="qklms", quantisation=0.4, sigma=0.5, eta=0.5))
    statuses = model.update(x, y)
    assert set(statuses) == {Status.ADDED, Status.ABSORBED}
    v = np.sort(in_use(model, "v")[:, 0])
    assert np.diff(v).min() > 0.2 and np.diff(v).max() <= 0.4
    assert np.abs(model.predict(x) - y).mean() < 0.02


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_sw_krls_is_ridge_regression_on_the_last_samples(precision: str) -> None:
    """alpha = (K + c I)^-1 y of the window (Van Vaerenbergh et al. 2006), repeats too, after a hundred windows."""
    rng = np.random.default_rng(0)
    x = np.round(rng.uniform(-2, 2, (3000, 2)), 1).astype(precision)
    x[1::7] = x[::7][: len(x[1::7])]
    y = (np.sin(2 * x.sum(1)) + 0.1 * rng.normal(size=3000)).astype(precision)
    model = HostModel(spec_of(n_max=30, dim=2, rule="sw-krls", precision=precision, ridge=0.05))
    statuses = model.update(x, y)
    assert (statuses[:30] == Status.ADDED).all() and (statuses[30:] == Status.REPLACED).all()
    window = x[-30:].astype(float)
    assert len(np.unique(window, axis=0)) < 30
    alpha = np.linalg.solve(kernels(window, window, 0.5) + 0.05 * np.eye(30), y[-30:].astype(float))
    grid = rng.uniform(-2, 2, (50, 2))
    expected = kernels(grid, window, 0.5) @ alpha
    np.testing.assert_allclose(model.predict(grid), expected, rtol=0, atol=3e-3 if precision == "float32" else 1e-9)


def test_sw_krls_is_fb_krls_that_absorbs_nothing_and_removes_the_oldest() -> None:
    x, y = sinc(2000)
    window = HostModel(spec_of(n_max=12, rule="sw-krls", precision="float32", ridge=0.02))
    budget = HostModel(
        spec_of("at", 12, rule="fb-krls", projection="klms", precision="float32", ridge=0.02, ald_threshold=0.0201)
    )
    spanned = budget.update(x, y) == Status.ABSORBED
    # where an almost exact repeat came, the two differ from there on
    until = int(spanned.argmax()) if spanned.any() else len(x)
    assert until > 100
    budget.reset()
    for model in (window, budget):
        model.update(x[:until], y[:until])
    for name in ("v", "alpha", "t", "age"):
        assert in_use(window, name).tobytes() == in_use(budget, name).tobytes()


def test_knlms_stores_what_is_not_coherent_until_it_is_full() -> None:
    x, y = sinc(3000)
    model = HostModel(spec_of(n_max=40, rule="knlms", coherence=0.5, sigma=0.5, eta=0.5, epsilon=1e-3))
    assert set(model.update(x, y)) == {Status.ADDED, Status.ABSORBED}
    v = in_use(model, "v")
    gram = kernels(v, v, 0.5) - np.eye(len(v))
    assert 6 < len(v) < 14 and gram.max() <= 0.5
    assert (kernels(x, v, 0.5).max(1) > 0.5).all()
    assert np.abs(model.predict(x) - y).mean() < 0.04
    # one step of the definition: it divides what is left of the error by 1 + eps / |k|^2, at eta = 1
    full = HostModel(spec_of(n_max=3, rule="knlms", coherence=0.5, eta=1.0, epsilon=1e-4))
    assert Status.DISCARDED in set(full.update(x, y)) and len(in_use(full, "v")) == 3
    k = kernels(x[:1], in_use(full, "v"), 0.5)[0]
    before = y[0] + 1.0 - full.predict(x[:1])[0]
    full.update(x[:1], y[:1] + 1.0)
    left = y[0] + 1.0 - full.predict(x[:1])[0]
    assert left == pytest.approx(before * (1 - k @ k / (1e-4 + k @ k)), abs=1e-9)


# ----------------------------------------------------------------------------------------------------- classes


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("classes", [2, 3])
def test_classifiers_learn_rings(classes: int, rule: str) -> None:
    """Classes around each other, which no line tells apart."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1500, 2))
    label = np.digitize(np.sum(x**2, axis=1), [1.4, 3.5][: classes - 1])
    keys = {} if rule in FIXED else {"technique": "mklms" if rule in ("klms", "qklms") else "sup"}
    model = HostModel(spec_of(n_max=40, dim=2, classes=classes, rule=rule, sigma=0.8, **keys))
    assert learned(model.update(x[:1000], label[:1000]))
    answers = model.classify(x[1000:])
    values = np.atleast_2d(model.predict(x[1000:]).T).T
    np.testing.assert_array_equal(answers, values[:, 0] > 0 if classes == 2 else values.argmax(1))
    # the last 40 samples alone know less
    assert (answers == label[1000:]).mean() > (0.8 if rule == "sw-krls" else 0.85)
    before = bytes(model.memory.bytes)
    for wrong in (-1, classes, 2**31 - 1):
        assert model.update(x[:1], [wrong]) == Status.REFUSED_LABEL
    assert bytes(model.memory.bytes) == before
