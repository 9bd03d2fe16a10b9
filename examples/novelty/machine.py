"""A drive with a gearbox, as eight sensors see it: a seeded stream with regimes, drift and faults.

The motor's speed n wanders between 0.46 and 0.98 of nominal; the drive is in one of four gears for 40 to 160 samples.  All
else follows from speed, gear and load (torque 0.12 + 0.35 s^2 at the output's speed s):

    bands     logarithms of the vibration around five structural resonances.  What excites them: the motor (order n), the
              gears' mesh (n times the gear's teeth) and the output (2 s), each through the resonance curve, so that a band
              rises and falls with speed, otherwise in each gear
    current   friction and torque;  torque: at the output;  oil: lags 300 samples behind ambient and losses

Ambient temperature has a day of 20,000 samples, and the mesh wears.  The noise is that of each sensor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

SENSORS = ("band1", "band2", "band3", "band4", "band5", "current", "torque", "oil")
GEARS = {"first": (0.35, 1.9), "second": (0.55, 1.4), "third": (0.8, 1.15), "top": (1.1, 0.8)}
"""Speed of the output and frequency of the mesh, in parts of the motor's."""
RESONANCES = np.array([0.3, 0.5, 0.75, 1.0, 1.35])
DAMPING = 0.12
STAY = (40, 160)
"""Shortest and longest time in a gear, samples."""
DAY = 20_000
NOISE = np.array([0.06, 0.06, 0.06, 0.06, 0.06, 0.02, 0.02, 0.3])


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and how much."""

    kind: str
    size: float
    grade: str

    @property
    def name(self) -> str:
        return f"{self.kind}, {self.grade}"


def graded(kind: str, *sizes: float) -> tuple[Fault, ...]:
    return tuple(Fault(kind, size, grade) for size, grade in zip(sizes, ("small", "medium", "large"), strict=True))


KINDS = {
    "slip": "the output is slower than the gear says: a state between two gears",
    "loose": "a mounting gives way: resonances are lower",
    "drag": "a brake drags: more current at the same torque",
    "stuck": "band 3's sensor repeats its last value",
    "mesh": "a tooth is worn: the mesh excites more",
    "imbalance": "the motor excites more",
    "heat": "the oil is warmer",
}
FAULTS = (
    *graded("slip", 0.1, 0.2, 0.35),
    *graded("loose", 0.06, 0.12, 0.2),
    *graded("drag", 0.08, 0.16, 0.3),
    Fault("stuck", 1.0, "whole"),
    *graded("mesh", 0.4, 0.8, 1.4),
    *graded("imbalance", 0.35, 0.7, 1.4),
    *graded("heat", 8.0, 16.0, 32.0),
)


@dataclass(frozen=True)
class Stream:
    """x: (samples, 8) in the sensors' units; gear: (samples,) positions in GEARS."""

    x: np.ndarray
    gear: np.ndarray


class Drive:
    """The drive; ``run`` goes on where it stopped, and ``copy`` is a second drive in the same state."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.time, self.gear, self.left = 0, 0, 0
        self.phase = float(self.rng.uniform(0, 2 * math.pi))
        self.place, self.load, self.oil = 0.0, 0.0, self.ambient() + 12.0
        self.ratios = np.array(next(iter(GEARS.values())))
        self.last = np.zeros(len(SENSORS))

    def copy(self, seed: int) -> Drive:
        other = Drive(seed)
        rng = other.rng
        other.__dict__.update({name: np.copy(v) if isinstance(v, np.ndarray) else v for name, v in vars(self).items()})
        other.rng = rng
        return other

    def ambient(self) -> float:
        return 20.0 + 3.0 * math.sin(2 * math.pi * self.time / DAY + self.phase)

    def run(self, samples: int, fault: Fault | None = None) -> Stream:
        """The next samples; with a fault, of which the first is the first to show it."""
        x, gear = np.empty((samples, len(SENSORS))), np.empty(samples, np.int64)
        stuck = self.last[2]
        for t in range(samples):
            x[t] = self._sample(fault)
            if fault is not None and fault.kind == "stuck":
                x[t, 2] = stuck
            self.last, gear[t] = x[t], self.gear
        return Stream(x, gear)

    def _sample(self, fault: Fault | None) -> np.ndarray:
        rng = self.rng
        if self.left == 0:
            self.gear = int(rng.choice([gear for gear in range(len(GEARS)) if gear != self.gear]))
            self.left = int(rng.integers(*STAY))
        self.left -= 1
        self.time += 1
        self.place = 0.95 * self.place + 0.31 * rng.normal()
        self.load = 0.8 * self.load + 0.012 * rng.normal()
        self.ratios = self.ratios + (np.array(list(GEARS.values())[self.gear]) - self.ratios) / 1.3
        n, (output, teeth) = 0.72 + 0.26 * math.tanh(self.place), self.ratios

        def grown(kind: str) -> float:
            return fault.size if fault is not None and fault.kind == kind else 0.0

        s = n * output * (1 - grown("slip"))
        torque = 0.12 + 0.35 * s * s + self.load
        current = 0.1 + 0.25 * n + torque * output + grown("drag")
        wear = (1 + 0.15 * self.time / 50_000) * (1 + grown("mesh"))
        orders = np.array([n, n * teeth, 2 * s])
        forces = np.array([0.5 * math.exp(grown("imbalance")), (0.5 + 0.8 * torque) * wear, 0.3]) * orders
        v = (orders[:, None] / (RESONANCES * (1 - grown("loose")))) ** 2
        response = v / ((1 - v) ** 2 + 4 * DAMPING**2 * v)
        bands = 0.5 * np.log(0.02 + (forces[:, None] ** 2 * response).sum(0))
        warm = self.ambient() + 25 * current * n + grown("heat")
        self.oil += (warm - self.oil) / (60 if grown("heat") else 300)
        return np.array([*bands, current, torque, self.oil]) + NOISE * rng.normal(size=len(SENSORS))


def inside(x: np.ndarray, normal: np.ndarray) -> float:
    """The part of samples of which every sensor is within the range that it ever had in ``normal``."""
    return float(((x >= normal.min(0)) & (x <= normal.max(0))).all(1).mean())
