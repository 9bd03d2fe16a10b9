"""The inner loops of rivals.py: each row is judged by the rows before it, then learned.

x: (T, D), float64.  window: rows that count, approximately; 0: all of them alike.  hold: how many rows in a row are not
learned while they are in alarm, by ``held_back``; 0: every row is learned.  Levels are at most MOST; a row that is judged
by nothing has level 0.
"""

from __future__ import annotations

import math

import numba
import numpy as np

MOST = 1e4
"""Largest level: after a larger one, a smoothed level would not come back within a fault's length."""
SETTLED, HELD_RATE, STEP = 200, 0.01, 0.1


@numba.njit(cache=True)
def held_back(state: np.ndarray, level: float, hold: int) -> bool:
    """Whether a row of this level is not learned, by a threshold that keeps HELD_RATE.

    state: rows that came; threshold; rows in a row above it.
    """
    state[0] += 1
    if hold == 0:
        return False
    if state[0] <= SETTLED:
        if state[0] > SETTLED // 2:
            state[1] = max(state[1], level)
        return False
    if level > state[1]:
        state[2] += 1
        if state[2] <= hold:
            return True
        state[1] *= math.exp(STEP * (1 - HELD_RATE))
        return False
    if 0 < state[2] <= hold:
        state[1] *= math.exp(STEP * (1 - HELD_RATE))
    state[2] = 0
    state[1] *= math.exp(-STEP * HELD_RATE)
    return False


@numba.njit(cache=True)
def share_of(count: int, window: int) -> float:
    """The weight of the newest of ``count`` rows."""
    return 1 / (count if window == 0 else min(count, window))


@numba.njit(cache=True)
def deviation(variance: float, mean: float) -> float:
    """If an input was constant, any other value is very far."""
    return math.sqrt(variance) + 1e-9 * abs(mean) + 1e-30


@numba.njit(cache=True)
def largest(x: np.ndarray, window: int, hold: int) -> np.ndarray:
    """max |z|.  O(T D)."""
    rows, dim = x.shape
    levels, mean, variance, state = np.zeros(rows), np.zeros(dim), np.zeros(dim), np.zeros(3)
    count = 0
    for t in range(rows):
        if count > 0:
            for j in range(dim):
                levels[t] = max(levels[t], min(MOST, abs(x[t, j] - mean[j]) / deviation(variance[j], mean[j])))
        if held_back(state, levels[t], hold):
            continue
        count += 1
        part = share_of(count, window)
        for j in range(dim):
            d = x[t, j] - mean[j]
            mean[j] += part * d
            variance[j] = (1 - part) * (variance[j] + part * d * d)
    return levels


@numba.njit(cache=True)
def factor(covariance: np.ndarray, scale: np.ndarray, ridge: float, lower: np.ndarray) -> float:
    """The Cholesky factor of S^-1 C S^-1 + ridge I, S = diag(scale); returns log |.|.  O(D^3)."""
    dim, logarithm = len(scale), 0.0
    for i in range(dim):
        for j in range(i + 1):
            total = covariance[i, j] / (scale[i] * scale[j])
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i == j:
                total = max(total + ridge, 1e-12)
                lower[i, i] = math.sqrt(total)
                logarithm += math.log(total)
            else:
                lower[i, j] = total / lower[j, j]
    return logarithm


@numba.njit(cache=True)
def square(lower: np.ndarray, z: np.ndarray, work: np.ndarray) -> float:
    """z' (L L')^-1 z.  O(D^2)."""
    found = 0.0
    for i in range(len(z)):
        total = z[i]
        for k in range(i):
            total -= lower[i, k] * work[k]
        work[i] = total / lower[i, i]
        found += work[i] * work[i]
    return found


@numba.njit(cache=True)
def follow(mean: np.ndarray, covariance: np.ndarray, d: np.ndarray, part: float) -> None:
    """Mean and covariance take in a row that is d from the mean.  O(D^2)."""
    for i in range(len(d)):
        mean[i] += part * d[i]
        for j in range(i + 1):
            covariance[i, j] = (1 - part) * (covariance[i, j] + part * d[i] * d[j])


@numba.njit(cache=True)
def mahalanobis(x: np.ndarray, window: int, ridge: float, hold: int) -> np.ndarray:
    """Mahalanobis distance; ``ridge`` is added to the diagonal of the correlation matrix.  O(T D^3)."""
    rows, dim = x.shape
    levels, mean, covariance, state = np.zeros(rows), np.zeros(dim), np.zeros((dim, dim)), np.zeros(3)
    scale, lower, d, z, work = np.ones(dim), np.zeros((dim, dim)), np.zeros(dim), np.zeros(dim), np.zeros(dim)
    count = 0
    for t in range(rows):
        for j in range(dim):
            d[j] = x[t, j] - mean[j]
        if count > 0:
            for j in range(dim):
                scale[j] = deviation(covariance[j, j], mean[j])
                z[j] = d[j] / scale[j]
            factor(covariance, scale, ridge, lower)
            levels[t] = min(MOST, math.sqrt(square(lower, z, work)))
        if held_back(state, levels[t], hold):
            continue
        count += 1
        follow(mean, covariance, d, share_of(count, window))
    return levels


@numba.njit(cache=True)
def gaussians(
    x: np.ndarray,
    weights: np.ndarray,
    means: np.ndarray,
    covariances: np.ndarray,
    counts: np.ndarray,
    nearest_level: bool,
    window: int,
    ridge: float,
    hold: int,
) -> np.ndarray:
    """A mixture of k: the distance to the nearest, or the root of -2 log of the density and a constant.  O(T k D^2).

    The nearest one, by its part of the density, learns the row, with a window of its own; window 0: nothing is learned.
    All arrays but x change.  ridge: what ``covariances`` have on the diagonal and keep.
    """
    rows, dim = x.shape
    k = len(weights)
    levels, state = np.zeros(rows), np.zeros(3)
    lowers, logarithms, one = np.zeros((k, dim, dim)), np.zeros(k), np.ones(dim)
    d, work, squares, parts = np.zeros(dim), np.zeros(dim), np.zeros(k), np.zeros(k)
    for i in range(k):
        logarithms[i] = factor(covariances[i], one, 0.0, lowers[i])
    for t in range(rows):
        best = 0
        for i in range(k):
            for j in range(dim):
                d[j] = x[t, j] - means[i, j]
            squares[i] = square(lowers[i], d, work)
            parts[i] = 2 * math.log(weights[i]) - logarithms[i] - squares[i]
            if parts[i] > parts[best]:
                best = i
        if nearest_level:
            levels[t] = min(MOST, math.sqrt(squares.min()))
        else:
            total = 0.0
            for i in range(k):
                total += math.exp(0.5 * (parts[i] - parts[best]))
            # log densities of standardised rows: a root keeps the order, and smoothing from being ruled by one row
            away = -parts[best] - 2 * math.log(total)
            levels[t] = min(MOST, math.copysign(math.sqrt(abs(away)), away))
        if window == 0 or held_back(state, levels[t], hold):
            continue
        counts[best] += 1
        part = share_of(counts[best], window)
        for j in range(dim):
            d[j] = x[t, j] - means[best, j]
        follow(means[best], covariances[best], d, part)
        for j in range(dim):
            covariances[best, j, j] += part * ridge
        logarithms[best] = factor(covariances[best], one, 0.0, lowers[best])
        for i in range(k):
            weights[i] += ((1.0 if i == best else 0.0) - weights[i]) / (k * window)
    return levels


@numba.njit(cache=True)
def moving_average(x: np.ndarray, rate: float, window: int) -> np.ndarray:
    """EWMA chart (Roberts 1959): the largest of the channels' smoothed z, in its standard deviations.  O(T D)."""
    rows, dim = x.shape
    levels, mean, variance, smooth = np.zeros(rows), np.zeros(dim), np.zeros(dim), np.zeros(dim)
    unit = math.sqrt(rate / (2 - rate))
    for t in range(rows):
        part = share_of(t + 1, window)
        for j in range(dim):
            d = x[t, j] - mean[j]
            if t > 0:
                z = max(-MOST, min(MOST, d / deviation(variance[j], mean[j])))
                smooth[j] += rate * (z - smooth[j])
                levels[t] = max(levels[t], abs(smooth[j]) / unit)
            mean[j] += part * d
            variance[j] = (1 - part) * (variance[j] + part * d * d)
    return levels


@numba.njit(cache=True)
def cumulative_sum(x: np.ndarray, slack: float, clip: float, most: float, window: int) -> np.ndarray:
    """Two-sided CUSUM chart (Page 1954) of each channel: the largest sum.  O(T D).

    slack: what z must exceed.  clip: limit of z.  most: limit of the sums, so that they come back after a fault.
    """
    rows, dim = x.shape
    levels, mean, variance, up, down = np.zeros(rows), np.zeros(dim), np.zeros(dim), np.zeros(dim), np.zeros(dim)
    for t in range(rows):
        part = share_of(t + 1, window)
        for j in range(dim):
            d = x[t, j] - mean[j]
            if t > 0:
                z = max(-clip, min(clip, d / deviation(variance[j], mean[j])))
                up[j] = max(0.0, min(most, up[j] + z - slack))
                down[j] = max(0.0, min(most, down[j] - z - slack))
                levels[t] = max(levels[t], up[j], down[j])
            mean[j] += part * d
            variance[j] = (1 - part) * (variance[j] + part * d * d)
    return levels


@numba.njit(cache=True)
def begin(p: np.ndarray) -> None:
    """100 I."""
    for i in range(len(p)):
        for j in range(len(p)):
            p[i, j] = 100.0 if i == j else 0.0


@numba.njit(cache=True)
def autoregression(x: np.ndarray, forgetting: float, window: int, ridge: float, hold: int) -> np.ndarray:
    """VAR(1) by recursive least squares: Mahalanobis distance of a row from what the row before predicts.  O(T D^3).

    Rows are standardised by all rows before them, and limited to 10.  The matrix P of the filter begins with 100 I; with
    forgetting it is set back to that where its trace is beyond 1e4 (D + 1), in directions that nothing excites.
    """
    rows, dim = x.shape
    levels, mean, variance, state = np.zeros(rows), np.zeros(dim), np.zeros(dim), np.zeros(3)
    p, w, g, phi = np.zeros((dim + 1, dim + 1)), np.zeros((dim, dim + 1)), np.zeros(dim + 1), np.zeros(dim + 1)
    begin(p)
    center, covariance, lower = np.zeros(dim), np.zeros((dim, dim)), np.zeros((dim, dim))
    scale, z, e, d, work = np.ones(dim), np.zeros(dim), np.zeros(dim), np.zeros(dim), np.zeros(dim)
    phi[dim] = 1.0
    count = 0
    for t in range(rows):
        for j in range(dim):
            away = (x[t, j] - mean[j]) / deviation(variance[j], mean[j]) if t > 0 else 0.0
            z[j] = max(-10.0, min(10.0, away))
        held = False
        if t > 1:
            for j in range(dim):
                e[j] = z[j]
                for i in range(dim + 1):
                    e[j] -= w[j, i] * phi[i]
                d[j] = e[j] - center[j]
            if count > 0:
                for j in range(dim):
                    scale[j] = math.sqrt(covariance[j, j]) + 1e-6
                    work[j] = d[j] / scale[j]
                factor(covariance, scale, ridge, lower)
                levels[t] = min(MOST, math.sqrt(square(lower, work, work)))
            held = held_back(state, levels[t], hold)
            if not held:
                count += 1
                follow(center, covariance, d, share_of(count, window))
                total, trace = forgetting, 0.0
                for i in range(dim + 1):
                    g[i] = 0.0
                    for j in range(dim + 1):
                        g[i] += p[i, j] * phi[j]
                    total += phi[i] * g[i]
                for i in range(dim + 1):
                    for j in range(i + 1):
                        p[i, j] = (p[i, j] - g[i] * g[j] / total) / forgetting
                        p[j, i] = p[i, j]
                    trace += p[i, i]
                for j in range(dim):
                    for i in range(dim + 1):
                        w[j, i] += g[i] / total * e[j]
                if trace > 1e4 * (dim + 1):
                    begin(p)
        for j in range(dim):
            phi[j] = z[j]
        if not held:
            part = 1 / (t + 1)
            for j in range(dim):
                d[j] = x[t, j] - mean[j]
                mean[j] += part * d[j]
                variance[j] = (1 - part) * (variance[j] + part * d[j] * d[j])
    return levels


@numba.njit(cache=True)
def smoothed(levels: np.ndarray, smoothing: float) -> np.ndarray:
    """Exponentially smoothed levels; NaN before the first number."""
    found, value = np.full(len(levels), np.nan), np.nan
    for t in range(len(levels)):
        value = levels[t] if np.isnan(value) else value + smoothing * (levels[t] - value)
        found[t] = value
    return found


@numba.njit(cache=True)
def place_of(kept: np.ndarray, n: int, level: float) -> int:
    """The first of n sorted numbers that is not below a level.  O(log n)."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if kept[middle] < level:
            low = middle + 1
        else:
            high = middle
    return low


@numba.njit(cache=True)
def in_alarm(levels: np.ndarray, alpha: float, window: int, counted: int, first: int) -> np.ndarray:
    """Which rows are in alarm by the common threshold of rivals: see ``rivals.Rival.judged``.  O(T window) at worst."""
    kept = np.empty(window)  # in order of level
    ring = np.empty(window)  # in order of time
    found = np.zeros(len(levels), np.bool_)
    n, at, run = 0, 0, 0
    for t in range(len(levels)):
        level = levels[t]
        if np.isnan(level):
            continue
        if n >= first:
            place = max(1, round(alpha * (n + 1)))
            found[t] = level > kept[n - place]
        run = run + 1 if found[t] else 0
        if run > counted:
            continue
        if n == window:
            n -= 1
            for i in range(place_of(kept, window, ring[at]), n):
                kept[i] = kept[i + 1]
        new = place_of(kept, n, level)
        for i in range(n, new, -1):
            kept[i] = kept[i - 1]
        kept[new] = level
        n += 1
        ring[at] = level
        at = (at + 1) % window
    return found
