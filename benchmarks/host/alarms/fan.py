"""A loose bolt lowers a fan's resonance: by which numbers of its vibration the monitor sees it.

    python -m benchmarks.host.alarms.fan          # docs/data/alarms-fan.csv, two minutes
    python -m benchmarks.host.alarms.fan --show

The fan's speed wanders between 25 and 65 turns a second, on both sides of a resonance at 45 Hz.  Imbalance excites the frame
with the speed's frequency, and the air does with all frequencies.  A bolt that is loose lowers the resonance by 6, 12 or 20 %, for 60
steps of a second.  At most speeds a sound fan vibrates as much at another speed: no number leaves its range.

``rms``: rows are speed, current and the root mean square of the acceleration: usual rows lie on a curve.  ``bands``: speed, current
and the powers of eight bands, by ``[signal]``.  Columns: as in alarms.csv, the means of four fans.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.host.alarms.measure import measured
from benchmarks.host.alarms.rivals import Bare, settling
from benchmarks.host.alarms.stream import Fault, Stream
from benchmarks.tables import DATA, Rows, load, markdown, save
from pykernel.host.signal import SignalStage
from pykernel.spec.model import make_spec

PATH = DATA / "alarms-fan.csv"
RATE, WINDOW, STEPS = 250, 256, 6000
RESONANCE, DAMPING = 45.0, 0.04
LOWER, LASTS, EVERY = (0.06, 0.12, 0.2), 60, 250
SEEDS = range(4)
FEATURES: dict[str, dict[str, Any]] = {
    "rms": {"features": ["rms"]},
    "bands": {"bands": [[b, b + 10] for b in range(10, 90, 10)], "log": True, "rate": RATE},
}


def resonator(forces: np.ndarray, resonances: np.ndarray) -> np.ndarray:
    """What a frame makes of forces, (n,); its resonance may change from sample to sample."""
    omega = 2 * math.pi * resonances / RATE
    keep = np.exp(-DAMPING * omega)
    turn, fade = (2 * keep * np.cos(omega)).tolist(), (keep * keep).tolist()
    found, last, before = [], 0.0, 0.0
    for force, t, f in zip(forces.tolist(), turn, fade, strict=True):
        last, before = force + t * last - f * before, last
        found.append(last)
    return np.array(found)


def fan(seed: int, loose: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Fault, ...]]:
    """loose: the part by which a loose bolt lowers the resonance.  Acceleration of each sample; speed and current of each step; the faults, in steps."""
    rng = np.random.default_rng(seed)
    place, places = 0.0, np.empty(STEPS)
    for t in range(STEPS):
        place = 0.99 * place + 0.141 * rng.normal()
        places[t] = place
    speed = 45 + 20 * np.tanh(places)
    lower, faults = np.zeros(STEPS), []
    for first in range(settling(STEPS), STEPS - EVERY, EVERY):
        start = first + int(rng.integers(EVERY - 2 * LASTS))
        lower[start : start + LASTS] = loose
        faults.append(Fault("loose bolt", start, start + LASTS, (2,)))
    turns = np.repeat(speed, WINDOW)
    force = (turns / 45) ** 2 * (np.sin(2 * math.pi * np.cumsum(turns) / RATE) + rng.normal(0, 0.5, len(turns)))
    shaken = resonator(force, RESONANCE * (1 - np.repeat(lower, WINDOW)))
    current = (speed / 45) ** 2 * (1 + rng.normal(0, 0.02, STEPS))
    return shaken, speed + rng.normal(0, 0.1, STEPS), current, tuple(faults)


def streams(seed: int, loose: float) -> Iterator[Stream]:
    """A fan by each kind of rows."""
    shaken, speed, current, faults = fan(seed, loose)
    for name, chosen in FEATURES.items():
        signal = {"channels": ["a"], "window": WINDOW, "hop": WINDOW, "max_abs": 1e4} | chosen
        stage = SignalStage(make_spec({"name": "fan", "signal": signal, "novelty": {}}))
        features = stage.steps(shaken[:, None]).features
        yield Stream(f"fan {seed}", name, np.column_stack([speed, current, features]).astype(np.float32), faults)


def seen() -> list[dict[str, Any]]:
    """A line for each kind of rows, fault and fan."""
    return [
        {"rows": stream.kind, "lower": loose, "fan": seed} | measured(Bare(), stream)
        for loose in LOWER
        for seed in SEEDS
        for stream in streams(seed, loose)
    ]


def mean(rows: Rows, kind: str, column: str) -> float:
    return float(np.mean([float(row[column]) for row in rows if row["rows"] == kind]))


def table(rows: Rows) -> str:
    """A line for each kind of rows and fault."""
    columns, lines = ("events_1", "rows_1", "events_01", "rows_01", "own_false", "own_events"), []
    for kind, lower in sorted({(row["rows"], row["lower"]) for row in rows}):
        own = [row for row in rows if row["lower"] == lower]
        lines.append([kind, lower, *(f"{mean(own, kind, column):.3f}" for column in columns)])
    return markdown(["rows", "lower by", *columns], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="only the table of what was measured")
    if not parser.parse_args().show:
        save(PATH, seen())
    print(table(load(PATH)))


if __name__ == "__main__":
    main()
