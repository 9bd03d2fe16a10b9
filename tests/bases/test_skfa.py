"""Sparse kernel feature analysis against the definition, written out on the Gram matrix with each sample's coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from pykernel.bases.gram import MercerKernel
from pykernel.bases.select import select_basis
from pykernel.bases.skfa import Skfa
from pykernel.errors import UserError
from pykernel.rows import as_rows
from tests.bases.test_greedy import KERNELS, cloud, one_thread

__all__ = ["one_thread"]
CRITERIA = ("columns", "kurtosis")


def score(criterion: str, values: np.ndarray) -> np.ndarray:
    """Of each row: what is to be largest."""
    if criterion == "columns":
        return (values**2).sum(axis=1)
    return -scipy.stats.kurtosis(values, axis=1, fisher=False)


def analysed(gram: np.ndarray, tried: list[np.ndarray], criterion: str) -> tuple[list[int], np.ndarray, bool]:
    """Each sample is a direction, with coefficients of all samples.  Choose; project all on the complement; l1 norm 1.

    Returns what was chosen, its coefficients, and whether each choice was clear.
    """
    directions, chosen, found = np.eye(len(gram)), list[int](), list[np.ndarray]()
    for rows in tried:
        scores = score(criterion, directions[rows] @ gram)
        best = rows[np.argmax(scores)]
        others = np.delete(scores, np.argmax(scores))
        if len(others) and others.max() > scores.max() - 1e-6 * abs(scores.max()):
            return chosen, np.array(found), False
        v = directions[best].copy()
        chosen.append(int(best))
        found.append(v)
        directions = directions - np.outer(directions @ gram @ v / (v @ gram @ v), v)
        directions[chosen] = np.nan
        directions /= np.abs(directions).sum(axis=1, keepdims=True)
    return chosen, np.array(found), True


class Recorded(Skfa):
    """Writes down which rows were tried."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.tried: list[np.ndarray] = []

    def _scores(self, columns: np.ndarray, tried: np.ndarray) -> np.ndarray:
        self.tried.append(tried)
        return super()._scores(columns, tried)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_it_is_the_definition(criterion: str) -> None:
    clear = 0

    @settings(max_examples=60, deadline=None)
    @given(
        st.integers(0, 2**32), st.integers(6, 40), st.integers(2, 4), st.sampled_from(KERNELS), st.sampled_from([None, 3, 9])
    )  # fmt: skip
    def compare(seed: int, l: int, dim: int, kernel: MercerKernel, candidates: int | None) -> None:
        nonlocal clear
        x = cloud(l, dim, seed)
        selector = Recorded(as_rows(x), kernel, 6, candidates=candidates, seed=seed, epsilon=1e-4, criterion=criterion)
        while selector.step():
            pass
        basis = selector.basis()
        if candidates is None:
            assert (selector.tried[0] == np.arange(l)).all()
        else:
            assert all(len(set(rows.tolist())) == len(rows) <= candidates for rows in selector.tried)
        chosen, found, sure = analysed(kernel.gram(x, x), selector.tried, criterion)
        assert basis.indices[: len(chosen)].tolist() == chosen
        if len(chosen):
            expected = basis.directions()[: len(chosen)]
            assert np.abs(found[:, basis.indices] - expected).max() < 1e-7
            assert np.abs(np.delete(found, basis.indices[: len(chosen)], axis=1)).max(initial=0) < 1e-12
        clear += sure and len(chosen) >= 2

    compare()
    assert clear >= 20


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("criterion", CRITERIA)
def test_directions_are_orthogonal_of_norm_one_and_take_few_samples(criterion: str, kernel: MercerKernel) -> None:
    x = cloud(60, 4, 1)
    basis = select_basis(x, kernel, 4, "skfa", criterion=criterion)
    a, own = basis.directions(), kernel.gram(basis.vectors, basis.vectors)
    assert (a == np.tril(a)).all() and (a.diagonal() > 0).all()
    assert np.abs(np.abs(a).sum(axis=1) - 1).max() < 1e-14
    products = a @ own @ a.T
    lengths = np.sqrt(products.diagonal())
    assert np.abs(products / lengths / lengths[:, None] - np.eye(len(a))).max() < 1e-9
    values = kernel.gram(x, basis.vectors) @ a.T
    assert np.abs(values).max() <= np.abs(kernel.gram(x, basis.vectors)).max() * (1 + 1e-14)
    z = basis.features(x)
    assert np.abs(values - z * lengths).max() < 1e-9 * np.abs(values).max()
    # the first one is a sample's image
    gram = kernel.gram(x, x)
    whole = select_basis(x, kernel, 1, "skfa", criterion=criterion, candidates=None)
    assert whole.indices[0] == np.argmax(score(criterion, gram)) and whole.directions().tolist() == [[1.0]]


def test_the_normalisation_changes_what_is_chosen() -> None:
    """Beside rule 4.3, which it is without: it prefers what the chosen samples say little about."""
    x, kernel = cloud(120, 3, 0), KERNELS[0]
    plain = select_basis(x, kernel, 30, "sgma", rule="4.3", candidates=None)
    found = select_basis(x, kernel, 30, "skfa", candidates=None)
    assert found.indices[0] == plain.indices[0] and set(found.indices) != set(plain.indices)


def test_pursuit_finds_two_clusters_that_kernel_pca_does_not_show_first() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = np.column_stack(
            [rng.normal(0, 3, 300), rng.choice([-1, 1], 300) + rng.normal(0, 0.1, 300), rng.normal(0, 0.5, 300)]
        )
        kernel = MercerKernel("linear")

        def planted(direction: np.ndarray) -> float:
            return abs(direction[1]) / float(np.linalg.norm(direction))

        leading = x.T @ np.linalg.eigh(kernel.gram(x, x))[1][:, -1]
        first = {
            name: select_basis(x, kernel, 1, "skfa", candidates=None, criterion=name).vectors[0] for name in CRITERIA
        }
        assert planted(leading) < 0.2 and planted(first["columns"]) < 0.5 and planted(first["kurtosis"]) > 0.99


def test_an_outlier_is_no_direction_of_pursuit() -> None:
    x = np.concatenate([cloud(80, 2, 4), [[9.0, 9.0]]])
    for n, seed in ((1, 0), (5, 1)):
        assert (
            80 not in select_basis(x, KERNELS[0], n, "skfa", seed=seed, candidates=None, criterion="kurtosis").indices
        )


def test_bad_input_gets_a_sentence() -> None:
    x = cloud(20)
    for options, sentence in (
        ({"criterion": "variance"}, "^criterion is 'variance'; it must be one of columns, kurtosis$"),
        ({"rule": "4.2"}, "^skfa has no option 'rule'; its options are criterion, memory$"),
        ({"memory": 100}, "use the method efvs, which does not store C$"),
        ({"candidates": 0}, "^candidates is 0; it must be a whole number of 1 or more$"),
    ):
        with pytest.raises(UserError, match=sentence):
            select_basis(x, KERNELS[0], 3, "skfa", **options)
