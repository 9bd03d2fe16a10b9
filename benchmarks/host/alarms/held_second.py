"""A second set of plants on which an alarm detector is judged once: never tune a detector on them.

Fourteen simulated machines with raw sensors in physical units, drawn by somebody who has not seen the detector.
``held`` gives each one with faults, ``held_sound`` without.  The first 2,000 rows are sound and visit every sound
regime; weather, wear and seasons go on afterwards.  A fault lasts 20 to 900 rows, and some rows in which its machine
recovers.

``python -m benchmarks.host.alarms.held_second`` lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchmarks.host.alarms.held_second_cells import CELLS
from benchmarks.host.alarms.held_second_kit import place, simulate, stream
from benchmarks.host.alarms.held_second_lines import LINES
from benchmarks.host.alarms.held_second_machines import MACHINES
from benchmarks.host.alarms.held_second_rooms import ROOMS
from benchmarks.host.alarms.stream import Stream

PLANTS = MACHINES + LINES + ROOMS + CELLS


def held(seed: int) -> Iterator[Stream]:
    """Each machine with eight or more faults in 20,000 rows."""
    for plant in PLANTS:
        yield stream(plant, seed, place(plant, seed, simulate(plant, seed)))


def held_sound(seed: int) -> Iterator[Stream]:
    """The same machines without faults; the same seed gives the same weather as in ``held``."""
    for plant in PLANTS:
        yield stream(plant, seed)


def main(seed: int = 0) -> None:
    print(f"{'plant':20s} {'D':>2s} {'rows':>6s} {'faults':>6s} {'faulty':>7s}  what they say")
    for found in held(seed):
        says = Counter(fault.says or "none fits" for fault in found.faults)
        counts = ", ".join(f"{says[word]} {word}" for word in sorted(says))
        rows, wide = found.rows.shape
        print(f"{found.name:20s} {wide:2d} {rows:6d} {len(found.faults):6d} {found.faulty.mean():7.1%}  {counts}")
        print(f"{'':24s}{', '.join(f'{fault.kind} ({fault.lasts})' for fault in found.faults)}")


if __name__ == "__main__":
    main()
