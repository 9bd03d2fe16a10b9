"""Plants on which alarm detectors were judged once, before those of held_second; since then, constants of blame are chosen on them.

Thirteen simulated machines with raw sensors in physical units.  ``held`` gives each one with faults, ``held_sound``
without.  The first 2,000 rows are sound and visit every sound regime at least once; wear, weather and seasons go on
afterwards.  The drawings are in held_rotating, held_process and held_energy; held_kit makes sensors and faults.

``python -m benchmarks.host.alarms.held_plants`` lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchmarks.host.alarms.held_energy import ENERGY
from benchmarks.host.alarms.held_kit import SOUND_FIRST, place, simulate, stream
from benchmarks.host.alarms.held_process import PROCESS
from benchmarks.host.alarms.held_rotating import ROTATING
from benchmarks.host.alarms.stream import Stream

PLANTS = ROTATING + PROCESS + ENERGY
ROWS = 20_000


def held(seed: int) -> Iterator[Stream]:
    """Each plant with eight or more faults in 20,000 rows."""
    for plant in PLANTS:
        events = place(plant, seed, ROWS, simulate(plant, seed, ROWS))
        yield stream(plant, seed, ROWS, events)


def held_sound(seed: int) -> Iterator[Stream]:
    """The same plants without faults; the same seed gives the same weather as in ``held``."""
    for plant in PLANTS:
        yield stream(plant, seed, ROWS)


def main(seed: int = 0) -> None:
    print(f"{'plant':24s} {'D':>2s} {'rows':>6s} {'faulty':>7s}  faults")
    for found in held(seed):
        share = found.faulty[SOUND_FIRST:].mean()
        says = Counter(fault.says or "none fits" for fault in found.faults)
        counts = ", ".join(f"{says[word]} {word}" for word in sorted(says))
        print(f"{found.name:24s} {found.rows.shape[1]:2d} {len(found.rows):6d} {share:7.1%}  {counts}  ({found.kind})")


if __name__ == "__main__":
    main()
