"""The second held-out plants: the same for the same seed, sound at first, with faults that differ from sound rows."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.host.alarms.held_second import PLANTS
from benchmarks.host.alarms.held_second_kit import GAP, ROWS, SOUND_FIRST, Machine, place, simulate, stream

WORDS = {"jump", "drift", "stuck", "noise", "regime", ""}


def test_the_machines_differ_in_width_and_name() -> None:
    assert len({plant.name for plant in PLANTS}) == len(PLANTS) == 14
    assert {2, 14} <= {len(plant.probes) for plant in PLANTS}


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_machine(plant: Machine) -> None:
    sound = simulate(plant, 5)
    events = place(plant, 5, sound)
    found = stream(plant, 5, events)

    assert found.rows.dtype == np.float32 and found.rows.shape == (ROWS, len(plant.probes))
    assert np.isfinite(found.rows).all()

    assert len(found.faults) >= 8
    assert not found.faulty[:SOUND_FIRST].any()
    assert np.array_equal(found.rows[:SOUND_FIRST], sound[:SOUND_FIRST])
    assert 0.02 <= found.faulty.mean() <= 0.06
    assert {fault.says for fault in found.faults} == WORDS
    for before, after in zip(found.faults, found.faults[1:], strict=False):
        assert after.first - before.last >= GAP
    for fault in found.faults:
        span = slice(fault.first, fault.last)
        changed = (found.rows[span] != sound[span]).any(axis=0)
        assert 20 <= fault.lasts <= 900
        assert changed[list(fault.channels)].all(), fault.kind


@pytest.mark.parametrize("plant", PLANTS[0::5], ids=lambda plant: plant.name)
def test_a_sensor_that_nobody_controls_by_changes_only_its_own_rows(plant: Machine) -> None:
    """A fault of the wiring without time to recover is such a one; the same seed gives the same rows."""
    sound = simulate(plant, 5)
    events = tuple(e for e in place(plant, 5, sound) if e.ask.how != "machine" and not e.ask.tail)
    changed = simulate(plant, 5, events) != sound
    assert events
    assert np.array_equal(simulate(plant, 5), sound), "not deterministic"
    assert not np.array_equal(simulate(plant, 6), sound)
    for event in events:
        changed[event.first : event.last, [plant.channel(name) for name in event.ask.channels]] = False
    assert not changed.any()
