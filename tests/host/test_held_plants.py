"""The held-out plants: the same for the same seed, sound at first, with faults that stay in their rows."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.host.alarms.held_kit import SOUND_FIRST, place, simulate, stream
from benchmarks.host.alarms.held_plants import PLANTS, ROWS

pytestmark = pytest.mark.exhaustive  # data of a benchmark: nothing of the product makes them

WORDS = {"jump", "drift", "stuck", "noise", "regime", ""}


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_plant(plant):
    sound = simulate(plant, 3, ROWS)
    events = place(plant, 3, ROWS, sound)
    found = stream(plant, 3, ROWS, events)

    assert np.array_equal(simulate(plant, 3, ROWS, events), found.rows), "not deterministic"
    assert np.array_equal(simulate(plant, 3, ROWS), sound)
    assert place(plant, 3, ROWS, sound) == events
    assert not np.array_equal(simulate(plant, 4, ROWS), sound)
    assert found.rows.dtype == np.float32 and found.rows.shape == (ROWS, len(plant.sensors))
    assert np.isfinite(found.rows).all()
    assert 2 <= found.rows.shape[1] <= 16

    assert len(found.faults) >= 8
    assert not found.faulty[:SOUND_FIRST].any()
    assert np.array_equal(found.rows[:SOUND_FIRST], sound[:SOUND_FIRST])
    assert 0.01 <= found.faulty[SOUND_FIRST:].mean() <= 0.04
    assert {fault.says for fault in found.faults} == WORDS
    assert len({fault.channels[0] for fault in found.faults}) >= min(4, found.rows.shape[1])
    for before, after in zip(found.faults, found.faults[1:], strict=False):
        assert after.first - before.last >= 300
    for fault in found.faults:
        assert 60 <= fault.lasts <= 300
        span = slice(fault.first, fault.last)
        assert not np.array_equal(found.rows[span, fault.channels[0]], sound[span, fault.channels[0]])


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_open_loop_faults_change_only_their_rows_and_channels(plant):
    sound = simulate(plant, 3, ROWS)
    events = tuple(event for event in place(plant, 3, ROWS, sound) if not event.plan.loop)
    changed = simulate(plant, 3, ROWS, events) != sound
    allowed = np.zeros_like(changed)
    for event in events:
        span, channel = slice(event.first, event.last), plant.channel(event.plan.channels[0])
        assert changed[span, channel].any(), event.plan.kind
        allowed[span, channel] = True
    assert not (changed & ~allowed).any()
