"""``expansion-nlms`` and ``expansion-rls`` in whole numbers by their definition, in integers that cannot overflow.

Kernels are Gaussian, and there are no stages.
"""

from __future__ import annotations

from typing import Any

import numpy as np

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


class WholeExpansion:
    def __init__(self, spec: Any) -> None:
        self.c, self.outputs = spec.config, spec.outputs
        self.vectors = self.c.vectors.astype(np.int64)
        self.weights = np.zeros((self.outputs, len(self.vectors) + 1), np.int64)
        self.covariance = Covariance(self.c.prior, self.c.forgets, 1)

    def compare(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The trained functions, (outputs,), and the features, (N + 1,)."""
        octaves = ((z - self.vectors) ** 2).sum(1) >> int(self.c.fine)
        power, fall = powers(octaves), octaves >> 16
        parts = self.c.weights.astype(np.int64) * power[:, None]
        trained = self.c.bias + (parts >> np.minimum(fall + int(self.c.weight_shift), 40)[:, None]).sum(0)
        return watched(trained), np.append((power >> np.minimum(fall, 40)) >> 1, 32767)

    def learned(self, phi: np.ndarray) -> np.ndarray:
        sums = [
            sum(
                nearest(toward_zero(int(w), 2 * int(k)), int(self.c.weight_places))
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
        if self.c.separates:
            value = value + nearest(trained, coarser)
            clear = ((y > 0) & (value >= y)) | ((y < 0) & (value <= y))
            error = np.where(clear, 0, y - value)
            if not error.any():
                return
        else:
            error = within(nearest(y, coarser) - nearest(trained, coarser), int(self.c.label_most)) - value
        h, lost = condensed(phi[None])
        if self.c.filters:
            if not self.covariance.renewed:
                self.covariance.renew()
            g, known = self.covariance.times(h, 15 - lost)
        else:
            g, more = shortened(phi[None])
            known = 15 - more
        t, scale = gain(g, h, known, 15 - lost, int(self.c.noise))
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
