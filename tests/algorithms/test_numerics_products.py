"""Gaussian kernels from products: the rounding error is within the bound that the choice between the forms rests on."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import products_error


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("dim", [1, 3, 8, 32, 128])
def test_the_error_is_within_its_bound_and_needs_it(dim: int, exhaustive: bool) -> None:
    """Products: (2 + sqrt(D)) (1 + gamma R^2) 2^-23 sum |w|, and no bound without gamma R^2; differences: 3, whatever R is."""
    rng, models = np.random.default_rng(dim), 100 if exhaustive else 4
    for spread in (1 / 16, 1.0, 4.0, 64.0, 1024.0, 6000.0):
        for count in (1, 2, 33):
            worst = {
                distance: max(products_error.error(distance, spread, dim, rng, count) for _ in range(models))
                for distance in ("differences", "products")
            }
            assert worst["products"] <= products_error.bound(spread, dim), (spread, count)
            assert worst["differences"] <= 3, (spread, count)
            if count == 1 and spread >= 64:
                assert worst["products"] > 0.1 * products_error.bound(spread, dim)
