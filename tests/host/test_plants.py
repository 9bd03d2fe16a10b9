"""The simulated machines of the benchmark of alarms: faults are where, and only where, the stream says."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.host.alarms.plants import PLANTS, fault_free, plants
from benchmarks.host.alarms.plants_draws import SETTLING
from benchmarks.host.alarms.plants_faults import COUNTS, GAP, LASTING, WAYS

SEED = 7


@pytest.fixture(scope="module")
def pairs():
    """(with faults, without) for each plant."""
    return list(zip(plants(SEED), fault_free(SEED), strict=True))


def kind_of(fault):
    return fault.kind.split(",")[0]


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
