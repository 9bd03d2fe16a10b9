"""Streams that leave directions without inputs, or that are far from what a prior says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

DIM = 3
Streams = Iterator[tuple[str, np.ndarray, np.ndarray]]


def streams_of_numbers(rng: np.random.Generator, n: int) -> Streams:
    """Streams that leave directions without inputs, or that are far from what a prior says: (name, inputs, labels)."""
    t = np.arange(n)
    normal, on = rng.normal(size=(n, DIM)), (t % 5000 < 200).astype(float)
    yield "constant", np.ones((n, DIM)), rng.normal(size=n)
    yield "collinear", np.repeat(normal[:, :1], DIM, 1), np.sin(normal[:, 0])
    yield "ramp", np.c_[t / 1e3, np.sin(t / 50), np.cos(t / 300)], np.sin(t / 77)
    yield "jumps", np.repeat(rng.integers(0, 9, (n // 500 + 1, DIM)), 500, 0)[:n], np.sin(t // 500)
    yield "tiny labels", normal, 1e-9 * rng.normal(size=n)
    yield "outliers", rng.standard_t(1.2, (n, DIM)), rng.standard_t(1.1, n)
    yield "steps", normal, np.where(t % 8000 < 4000, 1e-3, 1e5) * rng.normal(size=n)
    yield "bursts", normal * on[:, None], rng.normal(size=n) * on
    yield "sorted", np.sort(normal, axis=0), np.sin(3 * np.sort(normal[:, 0]))
    yield "bursts of a wave", normal * on[:, None], np.sin(3 * normal[:, 0] * on)


def streams_of_classes(rng: np.random.Generator, n: int, classes: int) -> Streams:
    """The same for classes: (name, inputs, classes)."""
    t = np.arange(n)
    normal, any_class = rng.normal(size=(n, DIM)), rng.integers(0, classes, n)
    on = (t % 5000 < 200).astype(float)
    order = np.argsort(normal[:, 0])
    by_wave = (np.sin(4 * normal[:, 0]) > 0).astype(int)
    yield "constant", np.ones((n, DIM)), any_class
    yield "collinear", np.repeat(normal[:, :1], DIM, 1), by_wave
    yield "bursts", normal * on[:, None], any_class
    yield "one class", normal, np.zeros(n, int)
    yield "one class, then another", normal, (t > n // 2).astype(int)
    yield "sorted", normal[order], by_wave[order]
    yield "chance", normal, any_class
    yield "separable", normal, (normal[:, 0] > 0).astype(int)
    yield "outliers", np.clip(rng.standard_t(1.1, (n, DIM)), -1e6, 1e6), any_class
    yield "steps", normal * np.where(t % 2000 < 1000, 1e-3, 1e3)[:, None], by_wave
