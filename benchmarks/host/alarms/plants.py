"""Simulated machines with sensors, and faults in them: the streams on which constants of detectors are chosen.

    python -m benchmarks.host.alarms.plants [--seed 0] [--kinds]

prints name, D, rows, number of faults, share of faulty rows, and how many faults stay within the normal range of each sensor
they change (then only correlation or dynamics shows them); with --kinds, the same for each kind of fault.

A stream is a machine (plants_machines.py, plants_more_machines.py) with faults (plants_faults.py), read in counts of each sensor.
The kind of a fault has its size after a comma: "jump, small".  Faults change what sensors say; the machine and its controllers
do not react.  In an unseen regime, every sensor says what it would say there.  After a "lasting change" only the first rows count as
a fault, and the machine stays changed.  Faults are the same for a seed and a name, whatever other plants there are.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator

import numpy as np

import benchmarks.host.alarms.plants_machines
import benchmarks.host.alarms.plants_more_machines  # noqa: F401  (they fill PLANTS)
from benchmarks.host.alarms.plants_draws import PLANTS, Plant
from benchmarks.host.alarms.plants_faults import inside, with_faults
from benchmarks.host.alarms.stream import Stream


def faulty(plant: Plant, seed: int) -> Stream:
    """A machine's stream with faults."""
    usual, other = (plant.simulated(seed, unseen) for unseen in (False, True))
    values, faults = with_faults(plant, plant.random(seed, 1), usual, other)
    return Stream(plant.name, plant.kind, plant.rows_of(plant.read(values)), tuple(faults))


def sound(plant: Plant, seed: int) -> Stream:
    """The same machine with the same noise, without faults and repairs."""
    return Stream(plant.name, plant.kind, plant.rows_of(plant.read(plant.simulated(seed, False))))


def plants(seed: int) -> Iterator[Stream]:
    """All streams with faults."""
    return (faulty(plant, seed) for plant in PLANTS)


def fault_free(seed: int) -> Iterator[Stream]:
    """All streams without faults, in the same order.  Where ``plants`` of the same seed has no fault, the rows are the same,
    unless a lasting change came before: take another seed for an independent threshold."""
    return (sound(plant, seed) for plant in PLANTS)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", action="store_true")
    options = parser.parse_args()
    all_kinds: Counter[str] = Counter()
    hidden: Counter[str] = Counter()
    print(f"{'name':20}{'kind':22}{'D':>3}{'rows':>8}{'faults':>8}{'share':>8}{'hidden':>8}")
    for stream, clean in zip(plants(options.seed), fault_free(options.seed), strict=True):
        kinds = [fault.kind for fault in stream.faults]
        within = [fault.kind for fault in stream.faults if inside(stream.rows, clean.rows, fault)]
        all_kinds.update(kinds)
        hidden.update(within)
        numbers = (
            f"{stream.rows.shape[1]:3}{len(stream.rows):8,}{len(kinds):8}{np.mean(stream.faulty):8.1%}{len(within):8}"
        )
        print(f"{stream.name:20}{stream.kind:22}{numbers}")
    print(f"{'':20}{len(PLANTS)} streams{all_kinds.total():35}{'':8}{hidden.total():8}")
    if options.kinds:
        for kind in sorted(all_kinds):
            print(f"{kind:30}{all_kinds[kind]:6}{hidden[kind]:6}")


if __name__ == "__main__":
    main()
