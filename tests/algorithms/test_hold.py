"""Outlying inputs that are held: what it gains on glitches, what it costs on inputs that are rightly rare, and by whose choice."""

import math

import numpy as np
import pytest

from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec


def spec_of(rule="krls-t", outliers="hold", precision="float32", **more):
    content = {
        "name": "m",
        "precision": precision,
        "input": {"dim": 3, "standardise": True, "clip": 3.0, "max_abs": 1e9, "outliers": outliers},
        "label": {"max_abs": 1e6},
        "kernel": {"sigma": 1.2},
        "learning": {"rule": rule},
    }
    return make_spec(content | ({"reduction": {"n_max": 16}} if rule in ("krls-t", "klms") else {}) | more)


def errors(x, y, rule, **more):
    """Root mean square errors of the second half, of an input at its limit, and of a held one."""
    found = []
    for outliers in ("clip", "hold"):
        answers = np.ravel(HostModel(spec_of(rule, outliers, **more)).prequential(x, y)[0])
        found.append(math.sqrt(np.mean((answers[len(y) // 2 :] - y[len(y) // 2 :]) ** 2)))
    return found


def slow(rng, n):
    """Inputs that move slowly: the latest value says much of the next."""
    x = np.sin(np.arange(n)[:, None] / np.array([13.0, 37.0, 101.0]) + rng.uniform(0, 6, 3))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("rule", ["krls-t", "klms", "spectrum-ekf", "spectrum-nlms"])
def test_glitches_cost_much_less(rule):
    rng = np.random.default_rng(0)
    x, y = slow(rng, 6000)
    hit = rng.random(x.shape) < 0.01
    x[hit] += rng.choice([-50.0, 50.0], hit.sum())
    clipped, held = errors(x, y, rule)
    assert held < 0.7 * clipped


def test_a_rare_input_that_matters_stays():
    """A flag that is up in one of a hundred samples, and moves the label: each input learns its own choice."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        x, y = slow(rng, 6000)
        x[:, 2] = rng.random(6000) < 0.01
        y = np.sin(2 * x[:, 0]) + 3 * x[:, 2]
        clipped, held = errors(x, y, "spectrum-ekf")
        assert held < 1.05 * clipped, seed
    model = HostModel(spec_of("spectrum-ekf"))
    model.update(x, y)
    assert model.memory.field("evidence")[2] < 0


def test_a_new_level_is_no_glitch():
    """Outlying samples in a row: the input is seen as it is after a few."""
    rng = np.random.default_rng(2)
    x, y = slow(rng, 3000)
    x[1500:, 0] += 40
    clipped, held = errors(x, y, "spectrum-ekf")
    assert held < 1.05 * clipped


def test_without_an_outlying_input_nothing_changes():
    rng = np.random.default_rng(3)
    x, y = slow(rng, 2000)
    answers = [HostModel(spec_of(outliers=each)).prequential(x, y)[0] for each in ("clip", "hold")]
    np.testing.assert_array_equal(*answers)


REFUSED = [
    ({"input": {"dim": 3, "outliers": "hold"}}, r'\[input\] outliers is "hold", which needs the usual range of each input; add standardise'),
    ({"input": {"dim": 3, "outliers": "drop"}}, r"outliers is 'drop'; it must be 'clip' or 'hold'"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "says"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused_in_a_sentence(change, says):
    with pytest.raises(UserError, match=says):
        make_spec({"name": "m", "kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}} | change)
    with pytest.raises(UserError, match=r"\[input\] outliers belongs to .*; gmm does not have it"):
        make_spec({"name": "m", "input": {"dim": 2, "outliers": "hold", "standardise": True}, "novelty": {}})
