"""``expansion-nlms``, ``expansion-rls`` and the linear rules in int16 by their definition, in integers that cannot overflow.

Kernels are Gaussian, and there are no stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pykernel.algorithms.int16.kernels import Int16Function
from pykernel.spec.families.int16_errors import powers
from tests.support.whole_filter import (
    Covariance,
    condensed,
    gain,
    nearest,
    shortened,
    top,
    toward_zero,
    watched,
    within,
)


class WholeWeights:
    """Weights of features, of which 1 is 2^unit."""

    def __init__(self, spec: Any, unit: int) -> None:
        self.c, self.outputs, self.unit = spec.config, spec.outputs, unit
        self.weights = np.zeros((self.outputs, len(self.c.prior)), np.int64)
        self.covariance = Covariance(self.c.prior, self.c.forgets, 1, bool(self.c.refines))

    def errors(self, y: np.ndarray, value: np.ndarray) -> np.ndarray:
        if not self.c.separates:
            return y - value
        return np.where(((y > 0) & (value >= y)) | ((y < 0) & (value <= y)), 0, y - value)

    def move(self, phi: np.ndarray, error: np.ndarray) -> None:
        if self.c.separates and not error.any():
            return
        h, lost = condensed(phi[None])
        if self.c.filters:
            if not self.covariance.renewed:
                self.covariance.renew()
            g, known = self.covariance.times(h, self.unit - lost)
        else:
            g, more = shortened(phi[None])
            known = self.unit - more
        t, scale = gain(g, h, known, self.unit - lost, int(self.c.noise))
        for o in range(self.outputs):
            coarse = max(top(error[o]) - 14, 0)
            step = toward_zero(int(within(nearest(error[o], coarse), 32767)), int(self.c.rate))
            moved = watched(
                self.weights[o]
                + nearest(t[0] * step, int(np.clip(scale - coarse - 1 - int(self.c.weight_places), 0, 31)))
            )
            self.weights[o] = within(moved, int(self.c.weight_most))
        if self.c.filters:
            self.covariance.update(t, g, scale + known - 27)


class WholeLine(WholeWeights):
    """Recursive least squares of the inputs."""

    def __init__(self, spec: Any) -> None:
        super().__init__(spec, int(spec.config.octave))

    def answers(self, z: np.ndarray) -> np.ndarray:
        phi = [*z.tolist(), 2**self.unit]
        sums = [sum(toward_zero(w, h) for w, h in zip(row, phi, strict=True)) for row in self.weights.tolist()]
        assert max(map(abs, sums)) <= 2**29
        return np.array(sums, np.int64)

    def learn(self, z: np.ndarray, y: np.ndarray) -> None:
        self.move(np.append(z, 2**self.unit), self.errors(y, self.answers(z)))


def falling(t: int) -> int:
    """Half of 2^-(t / 2^16), in units of 2^-16."""
    return int(powers(np.array(t))) >> ((t >> 16) + 1) if t < 2**20 else 0


def logistic(t: int) -> int:
    certain = 2**30 // (2**15 + falling(abs(t)))
    return 2**15 - certain if t < 0 else certain


class WholeExpansion(WholeWeights):
    def __init__(self, spec: Any) -> None:
        super().__init__(spec, int(spec.config.feature_unit))
        self.softens = spec.learning.rule == "expansion-softmax"
        self.vectors = self.c.vectors.astype(np.int64)

    def compare(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The trained functions, (outputs,), and the features, (N + 1,)."""
        if self.c.hidden:
            return self.of_units(self.vectors @ z.astype(np.int64) + self.c.shifts)
        octaves = ((z - self.vectors) ** 2).sum(1) >> int(self.c.fine)
        power, fall = powers(octaves), octaves >> 16
        parts = self.c.weights.astype(np.int64) * power[:, None]
        trained = self.c.bias + (parts >> np.minimum(fall + int(self.c.weight_shift), 40)[:, None]).sum(0)
        return watched(trained), np.append((power >> np.minimum(fall, 40)) >> 1, 32767)

    def of_units(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same of hidden units, from their arguments: a value k / 2^n, or none."""
        trained, phi = self.c.bias.astype(np.int64).copy(), [0] * len(sums)
        for i, s in enumerate(sums.tolist()):
            k, n = 0, int(self.c.weight_shift)
            if self.c.function in (Int16Function.TANH, Int16Function.LOGISTIC):
                k = 2 * logistic(toward_zero(s, 47274) >> int(self.c.octave_shift))
                k = max(-65535, min(65535, k if self.c.function == Int16Function.LOGISTIC else 2 * k - 65535))
            elif s > 0 or (s and self.c.function == Int16Function.IDENTITY):
                lost = 31 - top(abs(s))
                k, n = ((abs(s) << lost) >> 16) * (1 if s > 0 else -1), n + lost
            if n < 32:
                trained += (self.c.weights[i].astype(np.int64) * k) >> n
                phi[i] = (k >> max(0, n - int(self.c.weight_shift) - int(self.c.unit_lift))) >> 1
        return watched(trained), np.append(phi, int(self.c.constant))

    def surprise(self, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """4 (1_y - p) for the softmax p of f."""

        def octaves(value: int) -> int:
            part = toward_zero(max(-int(self.c.sure), min(int(self.c.sure), value)), 47274)
            return (part << int(self.c.octave_lift)) >> int(self.c.octave_drop)

        if len(f) == 1:
            p = [logistic(octaves(int(f[0])))]
        else:
            f = within(f, 2**29)
            parts = [falling(octaves(int(f.max() - each))) for each in f]
            p = [part * 2**15 // sum(parts) for part in parts]
        off = np.where(y > 0, 2**15, 0) - np.array(p)
        return (off << int(self.c.error_lift)) >> int(self.c.error_drop)

    def learned(self, phi: np.ndarray) -> np.ndarray:
        sums = [
            sum(
                nearest(toward_zero(int(w), 2 * max(int(k), -32767)), int(self.c.sum_places))
                for w, k in zip(row, phi, strict=True)
            )
            for row in self.weights.tolist()
        ]
        assert max(map(abs, sums)) <= 2**30
        return np.array(sums, np.int64)

    def answers(self, z: np.ndarray) -> np.ndarray:
        trained, phi = self.compare(z)
        rest = within(self.learned(phi), (2**31 - 1) >> int(self.c.coarser))
        return 2 * within((trained + (rest << int(self.c.coarser))) >> 1, 2**30 - 2) + (trained & 1)

    def learn(self, z: np.ndarray, y: np.ndarray) -> None:
        """z: converted inputs, y: labels in their unit; of classes in that of what is learned."""
        trained, phi = self.compare(z)
        coarser, value = int(self.c.coarser), self.learned(phi)
        if self.softens:
            error = self.surprise(y, value + nearest(trained, coarser))
        elif self.c.separates:
            error = self.errors(y, value + nearest(trained, coarser))
        else:
            error = within(nearest(y, coarser) - nearest(trained, coarser), int(self.c.label_most)) - value
        self.move(phi, error)
