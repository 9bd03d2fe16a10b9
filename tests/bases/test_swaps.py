"""Exchanges of a chosen basis: those that trying each one from the definition finds, and never a worse basis."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pykernel import MercerKernel, select_basis
from pykernel.bases import swaps as swapping
from pykernel.bases.select import SELECTORS
from pykernel.errors import UserError
from pykernel.rows import SomeRows, as_rows

KERNELS = {
    "gaussian": MercerKernel("gaussian", gamma=0.5),
    "polynomial": MercerKernel("polynomial", gamma=0.2, coef0=1.0, degree=3),
    "cosine": MercerKernel("polynomial", gamma=0.2, coef0=1.0, degree=3, normalise=True),
}


def samples(count, seed=0, dim=2):
    return np.random.default_rng(seed).normal(size=(count, dim))


def left_out(gram, chosen):
    """tr R by least squares."""
    inverse = np.linalg.pinv(gram[np.ix_(chosen, chosen)], rcond=1e-14, hermitian=True)
    return float(np.trace(gram) - np.trace(gram[:, chosen] @ inverse @ gram[chosen]))


def exchanged(gram, chosen, rounds):
    """Each vector in turn, out, and the best row in; what was put in is the last."""
    chosen = list(chosen)
    for _ in range(rounds):
        changed = False
        for s in list(chosen):
            rest = [each for each in chosen if each != s]
            errors = {r: left_out(gram, [*rest, r]) for r in range(len(gram)) if r not in rest}
            best = min(errors, key=errors.__getitem__)
            if errors[best] < errors[s] * (1 - 1e-7):
                chosen, changed = [*rest, best], True
        if not changed:
            break
    return chosen


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_the_exchanges_are_those_that_trying_each_finds(kernel, rounds):
    exchanges = 0
    for seed in range(4):
        x, k = samples(40, seed), KERNELS[kernel]
        gram = k.gram(x, x)
        plain = select_basis(x, k, 5, "rpcholesky", seed=seed)
        found = select_basis(x, k, 5, "rpcholesky", seed=seed, swaps=rounds)
        expected = exchanged(gram, plain.indices.tolist(), rounds)
        assert sorted(found.indices.tolist()) == sorted(expected)
        assert found.trace[-1] == pytest.approx(left_out(gram, expected) / np.trace(gram), abs=1e-9)
        exchanges += len(set(expected) - set(plain.indices.tolist()))
    assert exchanges >= 8


@pytest.mark.parametrize("method", SELECTORS)
def test_a_basis_is_never_worse_and_is_one(method):
    """And its order is the greedy one: no other first vector leaves out less than the first, and so on."""
    x, k = samples(120, 3), KERNELS["gaussian"]
    plain, found = (select_basis(x, k, 12, method, swaps=rounds) for rounds in (0, 4))
    assert found.exact and len(found) == 12 and found.method == method
    assert found.trace[-1] <= plain.residual(x).mean() + 1e-12
    assert found.trace[-1] == pytest.approx(found.residual(x).mean(), abs=1e-9)
    assert found.evaluations > plain.evaluations
    assert np.array_equal(x[found.indices], found.vectors) and len(set(found.indices.tolist())) == 12
    assert np.allclose(found.factor @ found.factor.T, k.gram(found.vectors, found.vectors))
    if found.trace[-1] < plain.trace[-1]:  # otherwise nothing was exchanged
        for n in (1, 5):
            after = [
                float(
                    np.trace(k.gram(x, x)) - np.einsum("ij,ij->", values @ np.linalg.pinv(k.gram(some, some)), values)
                )
                for r in range(n - 1, 12)
                for some in [found.vectors[[*range(n - 1), r]]]
                for values in [k.gram(x, some)]
            ]
            assert after[0] <= min(after) * (1 + 1e-7)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), count=st.integers(2, 30), n=st.integers(1, 8), repeats=st.booleans())
def test_whatever_the_rows_are(seed, count, n, repeats):
    """Also equal rows, rows that are all chosen, and few dimensions."""
    x = np.round(samples(count, seed), 1 if repeats else 6)
    x = np.concatenate([x, x[: count // 2]]) if repeats else x
    for kernel in (KERNELS["gaussian"], MercerKernel("linear")):
        plain, found = (select_basis(x, kernel, n, "rpcholesky", seed=seed, swaps=rounds) for rounds in (0, 3))
        assert found.trace[-1] <= plain.trace[-1] and len(found) == len(plain)
        assert len(set(found.indices.tolist())) == len(found) and (found.factor.diagonal() > 0).all()


def test_where_a_gram_matrix_does_not_fit_drawn_rows_judge_and_others_measure(monkeypatch):
    x, k = samples(900, 1), KERNELS["gaussian"]
    monkeypatch.setattr(swapping, "JUDGES", 200)
    plain = select_basis(x, k, 15, "rpcholesky")
    found = swapping.refine(plain, as_rows(x), 3, memory=10**6)
    assert not found.exact and found.residual(x).mean() < 0.9 * plain.residual(x).mean()
    assert abs(found.trace[-1] - found.residual(x).mean()) < 0.05
    assert np.array_equal(x[found.indices], found.vectors)
    # what is better for the judges only is not returned
    monkeypatch.setattr(swapping, "_refined", lambda basis, *_: plain.head(3))
    assert swapping.refine(plain, as_rows(x), 3, memory=10**6).indices.tolist() == plain.indices.tolist()
    # of some rows, indices are those of these rows
    monkeypatch.undo()
    some = SomeRows(as_rows(x), np.arange(0, 900, 3))
    basis = select_basis(some, k, 8, "rpcholesky", swaps=2)
    assert np.array_equal(some.take(basis.indices), basis.vectors)


def test_bad_input_gets_a_sentence():
    with pytest.raises(UserError, match=r"swaps is -1; it must be a whole number of 0 or more"):
        select_basis(samples(9), KERNELS["gaussian"], 3, swaps=-1)
