"""A monitor over a recording: what is told of it beyond its alarms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pykernel.host.monitoring import Monitoring
from pykernel.spec.model import make_spec

ROWS = 2000
"""Of warm-up and commissioning."""


def told(x: np.ndarray, pieces: int = 1, **novelty: Any) -> dict[str, Any]:
    run = Monitoring(make_spec({"name": "m", "input": {"dim": x.shape[1]}, "novelty": novelty}))
    for part in np.array_split(x, pieces):
        for _ in run.run(part, np.zeros((len(part), 0))):
            pass
    return run.report()


def normal(rows: int = 6500) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(rows, 4))


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize("rows", [6500, 3000])
def test_a_fault_in_the_beginning_is_told(rows: int, pieces: int) -> None:
    """Where most of its rows are faulty, and all over it; of a short recording, the beginning is a third."""
    begin = min(ROWS, rows // 3)
    for first, last in ((0, begin // 4), (begin // 2, begin // 2 + begin // 5)):
        x = normal(rows)
        x[first:last, 1] += 7.0
        found = told(x, pieces)["beginning"]
        ((start, end),) = found["unlike"]
        assert found["rows"] == begin and abs(start - first) <= begin / 20 and abs(end + 1 - last) <= begin / 20
    x = normal(rows)
    x[np.arange(rows) % 10 == 0] += 7.0 * (np.arange(rows) < begin)[::10, None]
    found = told(x, pieces)["beginning"]
    assert 0.08 <= found["scattered"] <= 0.4 and not found["unlike"]
    assert told(normal(rows), pieces)["beginning"] == {"rows": begin, "unlike": [], "scattered": 0.0}


def test_states_are_told() -> None:
    """Which are known, when one became normal, and when the monitor is armed."""
    x = normal(4000)
    x[3000:] += 30.0
    found = told(x, pieces=3)
    assert len(found["regimes"]) == 2 and found["until_armed"] == 0
    (born,) = (row for row in found["became_normal"] if row >= ROWS)
    assert 3070 <= born <= 3090
    assert told(x[:1700])["until_armed"] == 300
    assert "until_armed" not in told(x, life="changing")


def test_a_stream_may_begin_within_an_alarm() -> None:
    """The state goes on with the alarm, which is then the first of this run."""
    x, spec = normal(4000), make_spec({"name": "m", "input": {"dim": 4}, "novelty": {}})
    x[3000:3040] += 30.0
    first, then = Monitoring(spec), Monitoring(spec)
    for _ in first.run(x[:3020], np.zeros((3020, 0))):
        pass
    then.model.memory.copy_from(first.model.memory)
    for _ in then.run(x[3020:3040], np.zeros((20, 0))):
        pass
    found = then.report()["alarms"]
    assert (found["count"], found["samples"], found["listed"][0]["rows"]) == (1, 20, 20)


def test_rows_that_are_refused_are_an_alarm_of_their_kind() -> None:
    x = normal(4000)
    x[3000:3040, 2] = np.nan
    x[3500:3503, 1] = np.inf
    listed = [alarm for alarm in told(x, pieces=9)["alarms"]["listed"] if alarm.get("kind") == "absent"]
    assert [(a["first_row"], a["last_row"], a["input"], a["share"]) for a in listed] == [(3005, 3039, "input 2", 1.0)]
