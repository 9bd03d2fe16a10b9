"""What a plan says of a recording before it tries a monitor."""

import numpy as np
import pytest

from pykernel.spec.model import make_spec
from pykernel.tuning.data import Devices, Table
from pykernel.tuning.recorded import period_of, states_told, told_of, unlike


def fan(rows=6000, seed=0, speeds=(1.0, 2.0, 3.0)):
    """Three sensors of a machine with three speeds, each of which lasts for some hundred rows."""
    rng = np.random.default_rng(seed)
    speed = np.concatenate([np.full(int(rng.integers(100, 300)), speeds[i % len(speeds)]) for i in range(rows // 100)])[
        :rows
    ]
    return np.column_stack([speed, speed**2, -speed]) + rng.normal(0, 0.05, (rows, 3))


@pytest.mark.parametrize("at", [300, 3000, 5800])
def test_a_fault_in_the_recording_is_found_wherever_it_is(at):
    x = fan()
    assert unlike(x) == []
    x[at : at + 120] += [0.5, -1.0, 0.5]
    ((first, last),) = unlike(x)
    assert abs(first - at) < 10 and abs(last - (at + 119)) < 10
    (told,) = told_of(Table(x, None), ("a", "b", "c"), 7000)  # the last of 7,000 rows
    assert told.startswith(f"rows {1001 + first:,} to {1001 + last:,} are unlike all other rows")
    assert told_of(Table(x, None, devices=Devices((4000,), (2000,))), ("a", "b", "c"), 6000) == []


def test_a_state_that_comes_late_and_twice_is_none():
    x = fan()
    for at in (3500, 4800):
        x[at : at + 500] = (
            x[at : at + 500] % 1e-9 + [4.0, 16.0, -4.0] + np.random.default_rng(at).normal(0, 0.05, (500, 3))
        )
    assert unlike(x) == []
    x[4800:5300] -= 3.0
    assert unlike(x)


def test_the_states_are_told():
    assert states_told(fan()).startswith(
        "after this recording, a monitor knows 3 normal states; any other state raises an alarm until"
    )
    assert "knows one normal state" in states_told(fan(speeds=(1.0,)))


def test_raw_waveforms_get_a_signal_and_nothing_else_does():
    rng = np.random.default_rng(0)
    noise, t = rng.normal(size=(6000, 2)), np.arange(6000)
    rung, walk, slow = np.zeros((6000, 2)), np.cumsum(noise, axis=0), np.zeros((6000, 2))
    for i in range(2, 6000):  # noise rings at a period of 12 rows
        rung[i] = 2 * 0.95 * np.cos(2 * np.pi / 12) * rung[i - 1] - 0.95**2 * rung[i - 2] + noise[i]
        slow[i] = 0.97 * slow[i - 1] + noise[i]
    rung[77, 0] = np.nan
    assert period_of(rung) == pytest.approx(12, abs=1)
    assert period_of(np.column_stack([np.sin(t / 3), noise])) is None  # one of three columns
    assert [period_of(x) for x in (noise, walk, slow, fan(), np.full((900, 2), np.nan))] == [None] * 5
    (told,) = told_of(Table(rung, None), ("ax", "ay"), 6000)
    assert [told] == told_of(Table(rung, None, devices=Devices((3000,), (3000,))), ("ax", "ay"), 6000)
    spec = told[told.index("channels") :]
    assert (
        spec == 'channels = ["ax", "ay"], window = 128, features = ["rms", "change", "kurtosis"]'
        and "a spec that has" in told
    )
    signal = {"channels": ["ax", "ay"], "window": 128, "features": ["rms", "change", "kurtosis"]}
    assert make_spec({"name": "m", "signal": signal, "novelty": {}}).dim == 6
