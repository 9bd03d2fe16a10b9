"""Random numbers that host and device draw alike."""

from __future__ import annotations

import numpy as np
import pytest

from pykernel.algorithms.basis.reservoir import shuffle
from pykernel.algorithms.random_numbers import advance, draw, position
from pykernel.dialect import FLOAT32, FLOAT64, Precision
from tests.support.dialect_cases import numba_function

BOTH = pytest.mark.parametrize("precision", [FLOAT32, FLOAT64], ids=str)
MODULI, FACTORS = np.array([30269, 30307, 30323]), np.array([171, 172, 170])


def drawn(precision: Precision, count: int, seeds: tuple[int, int, int] = (1, 2, 3)) -> np.ndarray:
    state, one = np.array(seeds, np.int32), numba_function(draw, precision)
    return np.array([one(state) for _ in range(count)])


def test_the_states_are_those_of_as_183_and_come_back_after_their_periods() -> None:
    state, step = np.array([1, 2, 3], np.int32), numba_function(advance, FLOAT32)
    expected = np.array([1, 2, 3])
    for _ in range(1000):
        step(state)
        expected = expected * FACTORS % MODULI
        assert np.array_equal(state, expected)
    for modulus, factor in zip(MODULI, FACTORS, strict=True):
        # prime moduli, and factors that generate all their residues but zero
        order, value = 1, factor % modulus
        while value != 1:
            value, order = value * factor % modulus, order + 1
        assert order == modulus - 1


@BOTH
def test_draws_are_uniform_and_independent_as_far_as_simple_tests_can_tell(precision: Precision) -> None:
    u = drawn(precision, 60_000)
    assert u.min() >= 0 and u.max() < 1
    counts = np.histogram(u, 100, (0, 1))[0]
    assert ((counts - 600) ** 2 / 600).sum() < 160  # chi-squared of 99 degrees of freedom: 1e-4
    pairs = np.histogram2d(u[::2], u[1::2], 10, ((0, 1), (0, 1)))[0]
    assert ((pairs - 300) ** 2 / 300).sum() < 160
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.02


def test_both_precisions_draw_alike() -> None:
    assert np.abs(drawn(FLOAT32, 5000) - drawn(FLOAT64, 5000)).max() < 4 * 2.0**-23


@BOTH
def test_positions_are_within_their_count(precision: Precision) -> None:
    at = numba_function(position, precision)
    for count in (1, 2, 7, 100, 4_194_304):
        state = np.array([5, 6, 7], np.int32)
        seen = np.array([at(state, count) for _ in range(4000)])
        assert seen.min() >= 0 and seen.max() < count
        assert abs(seen.mean() / count - 0.5 * (count - 1) / count) < 0.02


def test_a_shuffle_draws_without_replacement_and_evenly() -> None:
    mix, state = numba_function(shuffle, FLOAT64), np.array([9, 8, 7], np.int32)
    hits = np.zeros(7)
    for _ in range(7000):
        order = np.arange(7, dtype=np.int32)
        mix(state, order, 7, 3)
        assert sorted(order) == list(range(7))
        hits[order[:3]] += 1
    assert ((hits - 3000) ** 2 / 3000).sum() < 25


def test_seeds_that_were_forged_do_no_harm() -> None:
    state = np.array([-5, 0, 30322], np.int32)
    assert 0 <= numba_function(draw, FLOAT32)(state) < 1 and (state > 0).all()
