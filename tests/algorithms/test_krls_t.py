"""KRLS-T's posterior covariance: the factor that is kept of it, against exact numbers and over long smooth streams."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.host import long
from pykernel.algorithms.online.klms import KLMS
from pykernel.algorithms.packed import (
    lower_column,
    lower_column_norms,
    lower_times,
    lower_transposed_times,
    narrow_factor,
)
from pykernel.algorithms.release import release_coordinate, release_coordinate_of, release_vector
from pykernel.dialect import FLOAT32, FLOAT64, bind
from pykernel.errors import UserError
from pykernel.host import snapshot
from pykernel.host.migrate import migrate
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.support.following import assert_sound, in_use, is_valid, posterior_of, triangle_of

Status = KLMS["real"].status

# ------------------------------------------------------------------------------------------------- the factor alone


def packed(factor: np.ndarray, room: int) -> np.ndarray:
    """A lower triangle, row by row, with places for ``room`` rows."""
    whole = np.zeros((room, room), factor.dtype)
    whole[: len(factor), : len(factor)] = factor
    return whole[np.tril_indices(room)]


def triangle(l: np.ndarray, n: int) -> np.ndarray:
    whole = np.zeros((n, n), l.dtype)
    whole[np.tril_indices(n)] = l[: n * (n + 1) // 2]
    return whole


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A factor with rows of very different lengths, and a further row, of n + 1 elements."""
    rng = np.random.default_rng(seed)
    return np.tril(rng.normal(size=(n, n))) * 10.0 ** rng.integers(-4, 1, (n, 1)), rng.normal(size=n + 1)


sizes = st.integers(1, 7)
seeds = st.integers(0, 2**32 - 1)


@given(sizes, seeds)
def test_products_of_a_packed_triangle(n: int, seed: int) -> None:
    factor, row = drawn(n, seed)
    l, z, out = packed(factor, n), row[:n], np.empty(n)
    tolerance = {"rtol": 1e-13, "atol": 1e-13}
    bind(lower_times, FLOAT64)(l, z, out, n)
    np.testing.assert_allclose(out, factor @ z, **tolerance)
    bind(lower_transposed_times, FLOAT64)(l, z, out, 0, n)
    np.testing.assert_allclose(out, factor.T @ z, **tolerance)
    bind(lower_transposed_times, FLOAT64)(l, in_place := z.copy(), in_place, 0, n)
    np.testing.assert_array_equal(in_place, out)
    bind(lower_column_norms, FLOAT64)(l, out, n)
    np.testing.assert_allclose(out, np.sum(factor**2, axis=0), **tolerance)
    for r in range(n):
        bind(lower_column, FLOAT64)(l, r, out, n)
        np.testing.assert_allclose(out, (factor.T @ factor)[:, r], **tolerance)


@given(sizes, seeds, st.sampled_from([1e-4, 0.1, 1e3]))
def test_an_observation_narrows_the_factor_as_it_narrows_the_covariance(n: int, seed: int, noise: float) -> None:
    """What is observed has a part in a coordinate of its own, of variance 1 before."""
    factor, row = drawn(n, seed)
    whole = np.eye(n + 1)
    whole[:n, :n] = factor
    prior = whole @ whole.T
    loads = prior @ row
    expected = prior - np.outer(loads, loads) / (noise + row @ loads)
    l, a, own, keep, share = packed(factor, n), factor.T @ row[:n], row[n] ** 2, np.zeros(n), np.zeros(n)
    bind(narrow_factor, FLOAT64)(l, a, keep, share, noise, own, 1.0, n)
    narrowed = np.zeros((n + 1, n + 1))
    narrowed[:n, :n] = triangle(l, n)
    narrowed[n] = np.append(-share * row[n], np.sqrt(noise / (noise + own)))
    np.testing.assert_allclose(narrowed @ narrowed.T, expected, rtol=0, atol=1e-11 * np.abs(prior).max())


@given(sizes, seeds, st.data())
def test_a_vector_leaves_with_a_coordinate(n: int, seed: int, data: st.DataObject) -> None:
    """What the others have stays: their inverse factor is that of the others' matrix, and their covariances do not change."""
    r = data.draw(st.integers(0, n - 1))
    rng = np.random.default_rng(seed)
    lower, factor = np.tril(rng.normal(size=(n, n))), np.tril(rng.normal(size=(n, n)))
    lower[np.diag_indices(n)] = rng.uniform(0.5, 2, n)
    others = [i for i in range(n) if i != r]
    gram, t = lower @ lower.T, np.linalg.inv(lower)
    sigma = lower @ factor @ factor.T @ lower.T
    kept, l, s = packed(t, n), packed(factor, n), packed(np.tril(factor @ factor.T), n)
    turns, shared = np.zeros((3, n)), packed(t, n)
    bind(release_vector, FLOAT64)(kept, column := np.zeros(n), *turns, r, n, 0.0)
    np.testing.assert_allclose(column, (t.T @ t)[:, r], rtol=1e-12, atol=1e-12 * np.abs(t).max() ** 2)
    bind(release_vector, FLOAT64)(shared, weight := np.zeros(n), np.zeros(n), np.zeros(n), weight, r, n, 0.0)
    np.testing.assert_array_equal(shared, kept)
    bind(release_coordinate, FLOAT64)(l, np.zeros(n), *turns, np.zeros(n), np.zeros(n), r, n, 0.0)
    bind(release_coordinate_of, FLOAT64)(s, np.zeros(n), *turns, r, n)
    for found in (kept, l, s):
        assert not found[n * (n - 1) // 2 :].any()
    m = n - 1
    left, root, lower_s = triangle(kept, m), triangle(l, m), triangle(s, m)
    covariance = lower_s + np.tril(lower_s, -1).T
    largest = np.abs(t).max() ** 2 * np.abs(gram).max()
    np.testing.assert_allclose(left @ gram[np.ix_(others, others)] @ left.T, np.eye(m), rtol=0, atol=1e-12 * largest)
    np.testing.assert_allclose(
        left @ sigma[np.ix_(others, others)] @ left.T, root @ root.T, rtol=0, atol=1e-10 * largest**2
    )
    np.testing.assert_allclose(covariance, root @ root.T, rtol=0, atol=1e-11 * (1 + np.abs(covariance).max(initial=0)))


@given(sizes, seeds)
def test_no_bits_of_a_factor_are_too_small_or_make_it_grow(n: int, seed: int) -> None:
    """Zeros and numbers whose squares float32 does not hold are no divisors, and no variance grows."""
    rng = np.random.default_rng(seed)

    def bits() -> np.ndarray:
        l = (rng.normal(size=n * (n + 1) // 2) * 10.0 ** rng.integers(-40, 1, n * (n + 1) // 2)).astype(np.float32)
        l[rng.random(len(l)) < 0.3] = 0
        return l

    t, l, r, least = bits(), bits(), int(rng.integers(0, n)), np.float32(2.0**-50)
    work = [np.zeros(n, np.float32) for _ in range(6)]
    before = [np.sum(triangle(each.astype(float), n) ** 2) for each in (t, l)]
    with np.errstate(under="ignore"):
        bind(narrow_factor, FLOAT32)(
            l, np.zeros(n, np.float32), *work[:2], np.float32(1e-4), np.float32(0), np.float32(1), n
        )
        bind(release_vector, FLOAT32)(t, *work[:4], r, n, least)
        bind(release_coordinate, FLOAT32)(l, *work, r, n, least)
    for each, size in zip((t, l), before, strict=True):
        assert np.isfinite(each).all() and np.sum(triangle(each.astype(float), n) ** 2) <= size * (1 + 1e-5) + 1e-28


# ------------------------------------------------------------------------------------------------ within the model


def smooth(precision: str, n_max: int, **reduction: Any) -> HostModel:
    """Of Lorenz's states, with the least noise and ridge that float32 may have."""
    content = {
        "name": "m", "precision": precision, "input": {"dim": 3, "max_abs": 100.0}, "label": {"max_abs": 10.0},
        "kernel": {"sigma": 2.0}, "learning": {"rule": "krls-t", "noise": 1e-4},
        "reduction": {"technique": "sup", "n_max": n_max, "ridge": 1e-4, **reduction},
    }  # fmt: skip
    return HostModel(make_spec(content))


class Exact:
    """Sigma of the vectors that a model has, in 50 digits, by the paper's formulas."""

    def __init__(self, noise: float, ridge: float) -> None:
        self.noise, self.own = mpmath.mpf(noise), 1 + mpmath.mpf(ridge)
        self.v: list[np.ndarray] = []
        self.spread = mpmath.matrix(0, 0)

    def kernel(self, a: np.ndarray, b: np.ndarray) -> Any:
        """The Gaussian one with sigma 2."""
        squared = sum((mpmath.mpf(float(p)) - mpmath.mpf(float(q))) ** 2 for p, q in zip(a, b, strict=True))
        return mpmath.exp(-squared / 8)

    def learn(self, x: np.ndarray, v: np.ndarray) -> None:
        """v: the vectors after this sample."""
        n = len(self.v)
        gram = mpmath.matrix(n, n)
        for i in range(n):
            for j in range(n):
                gram[i, j] = self.own if i == j else self.kernel(self.v[i], self.v[j])
        k = mpmath.matrix([self.kernel(a, x) for a in self.v])
        q = mpmath.lu_solve(gram, k) if n else k
        h = self.spread * q if n else k
        p = [*h, self.own + sum(q[i] * (h[i] - k[i]) for i in range(n))]
        whole = mpmath.matrix(n + 1, n + 1)
        for i in range(n + 1):
            for j in range(n + 1):
                before = p[min(i, j)] if max(i, j) == n else self.spread[i, j]
                whole[i, j] = before - p[i] * p[j] / (self.noise + p[n])
        known = [*self.v, x]
        stored = [max(i for i, each in enumerate(known) if np.array_equal(each, row)) for row in v]
        self.v = [known[i] for i in stored]
        self.spread = mpmath.matrix([[whole[i, j] for j in stored] for i in stored])


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 1e-9), ("float32", 0.02)])
def test_the_factor_is_that_of_the_exact_covariance(precision: str, tolerance: float) -> None:
    """In parts of the two standard deviations, which fall to a hundredth of the prior's: K - Sigma would not have these digits."""
    x, y = long.lorenz(150)
    x = x.astype(np.float32).astype(float)
    model = smooth(precision, 5)
    twin, replaced = Exact(float(model.config.noise), float(model.config.ridge_diagonal) - 1), 0
    with mpmath.workdps(50):
        for t in range(len(x)):
            (status,) = model.update(x[t : t + 1], y[t : t + 1])
            replaced += status == Status.REPLACED
            twin.learn(x[t], in_use(model, "v"))
        exact = np.array(twin.spread.tolist(), float)
    deviations = np.sqrt(np.diag(exact))
    assert replaced > 10 and deviations.min() < 0.03
    np.testing.assert_allclose(posterior_of(model) / np.outer(deviations, deviations),
                               exact / np.outer(deviations, deviations), rtol=0, atol=tolerance)  # fmt: skip


def sorted_posterior(model: HostModel) -> tuple[np.ndarray, np.ndarray]:
    """The vectors in the order of their first numbers, and the covariance of the function at them."""
    v = in_use(model, "v")
    order = np.argsort(v[:, 0])
    return v[order], posterior_of(model)[np.ix_(order, order)]


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("room", [1, 3, 5, 9])
def test_a_smaller_budget_keeps_the_covariance_of_those_that_stay(room: int) -> None:
    """Whichever vectors go, and however the last ones take their places.  A larger one changes nothing."""
    for seed in range(6):
        x = np.random.default_rng(seed).normal(size=(40, 3))
        model = smooth("float64", 6)
        model.update(x, np.sin(x.sum(1)))
        moved = smooth("float64", room)
        snapshot.load(moved, migrate(model.spec, snapshot.save(model), moved.spec).data)
        v, posterior = sorted_posterior(model)
        left, found = sorted_posterior(moved)
        stay = [int(np.flatnonzero((v == each).all(axis=1))[0]) for each in left]
        assert len(stay) == min(room, 6)
        np.testing.assert_allclose(found, posterior[np.ix_(stay, stay)], rtol=0, atol=1e-14)


def test_vectors_that_go_leave_zeros() -> None:
    """Those of little use do, wherever they stand, and the last ones take their places."""
    model = smooth("float32", 8, lambda_max=0.02, removals=3)
    x = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    counts = set()
    for t in range(len(x)):
        model.update(x[t : t + 1 + t % 2], np.sin(x[t : t + 1 + t % 2].sum(1)))
        counts.add(len(in_use(model, "v")))
        assert_sound(model)
    assert len(counts) > 3


def test_a_state_with_a_factor_is_none_with_a_covariance() -> None:
    def of(forgetting: float) -> HostModel:
        content = {
            "name": "m", "input": {"dim": 3, "max_abs": 9.0}, "kernel": {"sigma": 1.0},
            "learning": {"rule": "krls-t", "forgetting": forgetting}, "reduction": {"n_max": 5},
        }  # fmt: skip
        return HostModel(make_spec(content))

    for before, after in ((1.0, 0.99), (0.99, 1.0)):
        model = of(before)
        with pytest.raises(UserError, match=r"forgetting is .*: the values of the state would have another meaning"):
            migrate(model.spec, snapshot.save(model), of(after).spec)
    model = of(0.99)
    assert migrate(model.spec, snapshot.save(model), of(0.98).spec).removed == 0


def test_a_factor_has_zeros_where_no_vector_is() -> None:
    model = smooth("float32", 4)
    model.update(np.eye(3)[:2], np.ones(2))
    assert is_valid(model)
    for name in ("root", "t"):
        field = model.memory.field(name)
        for place in range(15):
            kept, field[place] = field[place], 0.5
            # the multipliers are not of another T
            assert is_valid(model) == (place < 3 and name == "root"), place
            field[place] = kept


def test_float32_learns_a_smooth_stream_as_float64_does() -> None:
    """With K - Sigma in place of a factor, nearly all updates were refused from sample 400 on."""
    x, clean = long.lorenz(6_000)
    y = clean + long.NOISE * np.random.default_rng(0).normal(size=len(clean))
    errors = []
    for precision in ("float32", "float64"):
        model = smooth(precision, 48)
        forecasts, statuses = model.prequential(x, y)
        assert (statuses > 0).all() and is_valid(model)
        assert (triangle_of(model, "root").diagonal() > 0).all()
        errors.append(np.sqrt(np.mean((forecasts[1_000:].reshape(-1) - clean[1_000:]) ** 2)))
    assert errors[0] < 1.2 * errors[1] < 0.05


def test_a_power_beyond_what_labels_can_leave_is_refused() -> None:
    spec = make_spec({"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, "learning": {"rule": "krls-t"}})
    model = HostModel(spec)
    model.update(np.zeros((1, 2)), [1.0])
    for part, sound in ((0.99, True), (1.01, False)):
        model.memory.field("power")[0] = part * spec.config.power_limit
        assert is_valid(model) == sound
