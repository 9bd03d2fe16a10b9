"""Streams that learning is tried on: sinc, Lorenz's attractor, and one whose inputs and function move on."""

from __future__ import annotations

import numpy as np


def sinc(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The task of Mitchinson et al. 2003, section 3: sin(pi x) / (pi x) on [-3, 3], without noise; x (count, 1)."""
    x = np.random.default_rng(seed).uniform(-3, 3, (count, 1))
    return x, np.sinc(x[:, 0])


def lorenz(count: int) -> tuple[np.ndarray, np.ndarray]:
    """States of Lorenz's system with unit variance, and the next first coordinate (Euler steps of 0.01, every 5th)."""
    states = np.empty((count + 1, 3))
    a, b, c = 1.0, 1.0, 20.0
    for row in states:
        for _ in range(5):
            a, b, c = (
                a + 0.01 * 10 * (b - a),
                b + 0.01 * (a * (28 - c) - b),
                c + 0.01 * (a * b - 8 / 3 * c),
            )
        row[:] = a, b, c
    states = (states - states.mean(0)) / states.std(0)
    return states[:-1], states[1:, 0]


def sliding(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A window of width 2 slides over the plane while the function under it changes; x (count, 2), |x| below 20.

    What was stored is soon far from the data, then near again after 20,000 samples, when the function is another.
    """
    rng = np.random.default_rng(seed)
    t = np.arange(count)
    centre = 15 * np.stack([np.sin(2 * np.pi * t / 20_000), np.cos(2 * np.pi * t / 47_000)], 1)
    x = centre + rng.uniform(-1, 1, (count, 2))
    return x, np.sin(2 * x[:, 0] + t / 5000) * np.cos(x[:, 1]) + 0.1 * rng.normal(size=count)


STREAMS = {"sinc": (sinc, 0.5), "lorenz": (lorenz, 1.0), "sliding": (sliding, 1.0)}
"""name -> generator, and a width sigma that suits it."""
