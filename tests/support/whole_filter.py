"""``spectrum-ekf`` in int16 by its definition, in integers that cannot overflow: whole matrices, rounded where the rule rounds.

No sum is taken modulo anything, but that of an angle.  Each number that the rule keeps in 32 bits is watched.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MOST = 2**31 - 1
SINES = [min(65535, round(65535 * math.sin(math.pi * i / 128) * (1 + 2.5e-5))) for i in range(65)]


def nearest(a: Any, k: int) -> Any:
    """a / 2^k, to the nearest integer; halves are rounded up."""
    return (a + ((1 << k) >> 1)) >> k


def toward_zero(a: int, k: int) -> int:
    """a k / 2^16, rounded towards zero."""
    return (abs(a * k) >> 16) * (1 if a * k >= 0 else -1)


def within(a: Any, most: int) -> Any:
    return np.clip(a, -most, most)


def top(a: Any) -> int:
    """The largest p for which 2^p is at most the largest |a|; 0 for 0."""
    return max(int(np.max(np.abs(a))).bit_length() - 1, 0)


def watched(a: Any) -> Any:
    assert np.max(np.abs(a)) <= MOST
    return a


def sine(angle: int) -> int:
    angle %= 2**32
    rest = angle % 2**30
    if angle >> 30 & 1:
        rest = 2**30 - 1 - rest
    i, part = rest >> 24, rest >> 8 & 65535
    value = min((SINES[i] + ((SINES[i + 1] - SINES[i]) * part >> 16) + 1) >> 1, 32767)
    return -value if angle >> 31 else value


def condensed(h: np.ndarray) -> tuple[np.ndarray, int]:
    """h / 2^k and k, with which the sum of |h| is below 2^16."""
    h = within(h, 2**19)
    total = int(np.abs(h).sum())
    coarse = int(np.clip(top(max(total + (total >> 5), 2 * int(np.abs(h).max()))) - 15, 0, 15))
    return within(nearest(h, coarse), 32767), coarse


def shortened(g: np.ndarray) -> tuple[np.ndarray, int]:
    """g / 2^k, whose largest number has 15 bits, and k."""
    assert np.abs(g).max() <= 2**30
    coarse = max(top(g) - 14, 0)
    return within(nearest(g, coarse), 32767), coarse


def gain(g: np.ndarray, h: np.ndarray, known: int, fine: int, noise: int) -> tuple[np.ndarray, int]:
    """t = g / (R + h'g) in units of 2^-k, and k."""
    more, finer = max(int(watched((h * g).sum())), 0), known + fine - 20
    up = int(np.clip(finer, 0, max(29 - top(noise), 0)))
    s = (more >> max(finer - up, 0)) + ((noise << up) >> max(-finer, 0))
    assert 0 < s < 2**32
    digits = top(s) - 14
    inverse = 2**29 // (s >> digits if digits >= 0 else s << -digits)
    scale = 14 + digits + known - (20 + up if finer >= 0 else 20 + finer)
    return within(nearest(g * inverse, 15), 32767), scale


class Covariance:
    """P of each block, (blocks, size, size)."""

    def __init__(self, prior: np.ndarray, forgets: int, blocks: int, refines: bool = False) -> None:
        self.refines = refines
        self.prior, self.forgets = prior.astype(np.int64), int(forgets)
        self.p = np.zeros((blocks, len(prior), len(prior)), np.int64)
        self.renewed = 0

    def renew(self) -> None:
        self.p[:] = np.diag(self.prior)
        self.renewed += 1

    def times(self, h: np.ndarray, fine: int) -> tuple[np.ndarray, int]:
        """g = P h in units of 2^-k, and k."""
        lift = int(np.clip(29 - top(np.diagonal(self.p, axis1=1, axis2=2)), 0, 16))
        whole = watched(self.p << lift)
        found = np.einsum("bij,bj->bi", whole >> 16, h)
        if self.refines:
            found += (((whole & 65535) >> 1) * h[:, None, :] >> 15).sum(2)
        else:
            found += h.sum(1, keepdims=True) >> 1
        g, lost = shortened(watched(found))
        return g, 11 + fine + lift - lost

    def update(self, t: np.ndarray, g: np.ndarray, shift: int) -> None:
        assert shift >= 1, "the filter takes more away than there is"
        less = nearest(t[:, :, None] * g[:, None, :], min(shift, 31))
        kept = np.tril(self.p - less)
        kept = watched(kept - np.tril(nearest(kept, self.forgets)))
        given = nearest(self.prior, self.forgets)
        kept += np.eye(len(given), dtype=np.int64) * given
        self.p = kept + np.swapaxes(np.tril(kept, -1), 1, 2)
        known, prior = np.diagonal(self.p, axis1=1, axis2=2), self.prior
        if (known < given >> 1).any() or (known > prior + (prior >> 1)).any():
            self.renew()

    @property
    def packed(self) -> np.ndarray:
        rows, columns = np.tril_indices(len(self.prior))
        return self.p[:, rows, columns]


class WholeFilter:
    """The rule without stages."""

    def __init__(self, spec: Any) -> None:
        self.c, self.outputs, self.dim = spec.config, spec.outputs, spec.dim
        self.n = len(self.c.first)
        self.size = self.c.group * (self.dim + 2)
        self.blocks = self.n // self.c.group
        self.w = np.zeros((self.n, self.dim), np.int64)
        self.covariance = Covariance(self.c.prior, self.c.forgets, self.blocks)
        self.a, self.b = np.zeros((2, self.outputs, self.n), np.int64)
        self.level, self.left = [0] * self.outputs, [0] * self.outputs
        self.counted = 0

    def waves(self, x: np.ndarray) -> np.ndarray:
        """Cosines and sines, (2, N)."""
        angles = [sum(int(w >> self.c.fine) * int(z) for w, z in zip(row, x, strict=True)) for row in self.w]
        return np.array([[sine(angle + 2**30) for angle in angles], [sine(angle) for angle in angles]], np.int64)

    def answers(self, waves: np.ndarray) -> list[int]:
        found = []
        for a, b in zip(self.a, self.b, strict=True):
            parts = [toward_zero(int(k), 2 * int(s)) for k, s in zip([*a, *b], [*waves[0], *waves[1]], strict=True)]
            found.append(int(within(sum(parts), 2**30)))
        return found

    def mean(self, before: int, size: int) -> int:
        pace = min(self.counted.bit_length() - 1, 11)
        return int(np.clip(before + ((size * self.c.level_factor - before) >> pace), 0, self.c.level_most))

    def noise(self, o: int) -> int:
        if not self.c.estimates or self.counted < 20:
            return int(self.c.noise)
        shift = max(self.level[o].bit_length() - 15, 0)
        whole = (self.level[o] >> shift) + 1
        left = min(self.left[o] >> shift, whole)
        known = max(whole**2 - left**2, whole**2 >> 4)
        part = min(left**2 // ((known >> 15) + 1), 2**20)
        return int(np.clip(32 * part, self.c.noise_least, self.c.noise_most))

    def learn(self, x: np.ndarray, y: list[int]) -> list[int]:
        """x: converted inputs, y: labels in their unit.  Returns f(x) before."""
        if self.counted == 0:
            self.w[:] = self.c.first
            self.covariance.renew()
        waves = self.waves(x)
        values = self.answers(waves)
        self.counted = min(self.counted + 1, 2048)
        for o in range(self.outputs):
            rest = y[o]
            error = rest - values[o]
            if self.c.separates and ((rest > 0 and values[o] >= rest) or (rest < 0 and values[o] <= rest)):
                error = 0
            self.level[o] = self.mean(self.level[o], abs(rest))
            u = int(np.clip((self.level[o] >> self.c.level_shift).bit_length(), self.c.unit_least, 30))
            if self.c.estimates:
                self.left[o] = self.mean(self.left[o], min(abs(error), self.c.rest_most))
            if self.level[o] > 0 and not (self.c.separates and error == 0):
                self.filter(o, u, x.astype(np.int64), waves, error)
        return values

    def derivatives(self, o: int, u: int, x: np.ndarray, waves: np.ndarray) -> tuple[np.ndarray, int]:
        """h of each block, (blocks, size), in units of 2^-(12 - k), and k."""
        rows = []
        for i in range(self.n):
            c, s = int(waves[0, i]), int(waves[1, i])
            bend = toward_zero(int(self.b[o, i]), 2 * c) - toward_zero(int(self.a[o, i]), 2 * s)
            bend = int(within(nearest(bend, u - 12), 32767))
            rows.append([nearest(c, 3), nearest(s, 3), *nearest(bend * x, int(self.c.octave))])
        h, coarse = condensed(np.array(rows, np.int64))
        return h.reshape(self.blocks, self.size), coarse

    def filter(self, o: int, u: int, x: np.ndarray, waves: np.ndarray, error: int) -> None:
        h, coarse = self.derivatives(o, u, x, waves)
        g, known = self.covariance.times(h, 12 - coarse)
        t, scale = gain(g, h, known, 12 - coarse, self.noise(o))
        self.advance(o, u, error, t, scale)
        if self.outputs > 1:
            t = np.array([[toward_zero(int(e), int(self.c.share)) for e in row] for row in t])
        self.covariance.update(t, g, scale + known - 27)

    def advance(self, o: int, u: int, error: int, t: np.ndarray, scale: int) -> None:
        step = int(within(error, 2 ** (min(u, 28) + 2)))
        coarse = max(top(step) - 14, 0)
        step = int(within(nearest(step, coarse), 32767))
        turned = toward_zero(step, int(self.c.turned))
        shift = int(np.clip(scale - coarse, 0, 31))
        turned_shift = int(np.clip(scale - coarse + u - self.c.turned_places, 0, 31))
        rows = t.reshape(self.n, self.dim + 2)
        for weights, column in ((self.a, 0), (self.b, 1)):
            moved = weights[o] - nearest(weights[o], int(self.c.shrinks)) + nearest(rows[:, column] * step, shift)
            weights[o] = within(watched(moved), int(self.c.weight_most))
        moved = watched(self.w + nearest(rows[:, 2:] * turned, turned_shift))
        self.w = within(moved, int(self.c.tuned_most))

    def fields(self) -> dict[str, np.ndarray]:
        """What the device keeps."""
        found = {
            "covariance": self.covariance.packed,
            "tuned": self.w,
            "a": self.a,
            "b": self.b,
            "level": np.array(self.level),
            "counted": np.array([self.counted]),
        }
        return found | ({"left": np.array(self.left)} if self.c.estimates else {})
