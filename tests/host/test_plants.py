"""The simulated machines of the benchmark of alarms: faults are where, and only where, the stream says."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.host.alarms.plants import PLANTS, fault_free, faulty, plants, sound
from benchmarks.host.alarms.plants_draws import SETTLING, Draws
from benchmarks.host.alarms.plants_faults import COUNTS, GAP, LASTING, WAYS, inside

SEED = 7


@pytest.fixture(scope="module")
def pairs():
    """(with faults, without) for each plant."""
    return list(zip(plants(SEED), fault_free(SEED), strict=True))


def kind_of(fault):
    return fault.kind.split(",")[0]


def test_there_are_streams_and_faults_of_ten_kinds_at_least(pairs):
    kinds = [stream.kind for stream, _ in pairs]
    assert len(set(kinds)) >= 10 and min(kinds.count(kind) for kind in kinds) >= 2
    assert len({stream.name for stream, _ in pairs}) == len(pairs)
    dims = {stream.rows.shape[1] for stream, _ in pairs}
    assert min(dims) == 1 and max(dims) == 24
    assert len({kind_of(fault) for stream, _ in pairs for fault in stream.faults}) >= 10
    for stream, _ in pairs:
        assert (
            (0.29 < stream.faulty.mean() < 0.37)
            if stream.kind == "dense faults"
            else (0.01 < stream.faulty.mean() < 0.031)
        )


def test_streams_depend_on_the_seed_alone():
    for plant in PLANTS[:: len(PLANTS) // 6]:
        first, again, another = faulty(plant, 1), faulty(plant, 1), faulty(plant, 2)
        assert first.rows.tobytes() == again.rows.tobytes() and first.faults == again.faults
        assert first.rows.tobytes() != another.rows.tobytes() and first.faults != another.faults


def test_rows_are_finite_and_in_counts_of_their_sensors(pairs):
    for plant, pair in zip(PLANTS, pairs, strict=True):
        for stream in pair:
            assert stream.rows.dtype == np.float32 and stream.rows.shape == (
                plant.rows,
                len(plant.sensors) * plant.lags,
            )
            assert len(stream.rows) >= 20_000 and np.isfinite(stream.rows).all()
            readings = stream.rows if plant.lags == 1 else stream.rows[:, :1]
            np.testing.assert_array_equal(readings, plant.read(readings.astype(float)).astype(np.float32))


def test_each_channel_moves_in_normal_rows(pairs):
    for _, clean in pairs:
        assert (clean.rows[SETTLING:].std(axis=0) > 0).all(), clean.name


def test_faults_come_after_the_settling_with_normal_rows_between(pairs):
    for stream, clean in pairs:
        ends = [SETTLING] + [fault.last for fault in stream.faults]
        starts = [fault.first for fault in stream.faults] + [len(stream.rows)]
        assert min(start - end for end, start in zip(ends, starts, strict=True)) > GAP // 2
        dim = stream.rows.shape[1]
        for fault in stream.faults:
            assert 40 <= fault.lasts <= (910 if stream.kind == "dense faults" else 310)
            assert fault.channels == tuple(sorted(set(fault.channels))) and set(fault.channels) <= set(range(dim))
            assert fault.says == ("regime" if kind_of(fault) == LASTING else WAYS[kind_of(fault)].says)
        assert not clean.faults


def test_faults_change_what_they_name_and_nothing_else(pairs):
    """Until a machine is repaired; from then on, all of it is different."""
    for stream, clean in pairs:
        changed = stream.rows != clean.rows
        repaired = next((fault.first for fault in stream.faults if kind_of(fault) == LASTING), len(changed))
        named = np.zeros(changed.shape, bool)
        for fault in stream.faults:
            here = changed[fault.first : fault.last, list(fault.channels)].any(axis=0)
            assert here.any() if fault.says == "regime" else here.all()
            named[fault.first : fault.last, list(fault.channels)] = True
        assert not changed[:repaired][~named[:repaired]].any(), stream.name
        if repaired < len(changed):
            assert changed[repaired + COUNTS :].any(axis=1).mean() > 0.9


def test_a_stuck_sensor_says_what_it_said_last(pairs):
    found = [(s, f) for s, _ in pairs for f in s.faults if kind_of(f).startswith("stuck") and s.name != "pipe pressure"]
    assert len(found) >= 10
    for stream, fault in found:
        count = {plant.name: plant for plant in PLANTS}[stream.name].sensors[fault.channels[0]].count
        away = (
            stream.rows[fault.first : fault.last, fault.channels[0]] - stream.rows[fault.first - 1, fault.channels[0]]
        ) / count
        assert np.abs(away).max() < (0.1 if fault.kind == "stuck" else 1.1)


def test_some_faults_hide_within_the_normal_range(pairs):
    hidden = [inside(stream.rows, clean.rows, fault) for stream, clean in pairs for fault in stream.faults]
    assert 0.2 < np.mean(hidden) < 0.8


def test_another_regime_has_the_same_noise_and_another_seed_the_same_machine():
    for plant in PLANTS:
        states = []
        for other in (False, True):
            draws = Draws(plant.random(SEED, 0), plant.rows, plant.random())
            plant.simulate(draws, other)
            states.append((draws.rng.bit_generator.state, draws.built.bit_generator.state))
        assert states[0] == states[1], plant.name
    (drives,) = (plant for plant in PLANTS if plant.name == "hall of drives")
    np.testing.assert_allclose(*(sound(drives, seed).rows.mean(axis=0) for seed in (1, 2)), rtol=0.1)
