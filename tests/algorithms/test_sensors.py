"""Inputs of one sensor are one witness: a fault of a channel is no new regime, whatever features it changes."""

import numpy as np
import pytest

from pykernel.algorithms.novelty.gmm import GmmStatus
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import find_compilers
from pykernel.gen.project import build
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec

RELEARN = 300


def pump(seed: int = 0, fault: bool = False, speed: bool = False) -> np.ndarray:
    """Four features of each of two channels: their sizes follow the load of the machine, and have noise of their own."""
    rng = np.random.default_rng(seed)
    load = 0.2 * np.repeat(rng.normal(size=60), 20)[:1200, None]
    x = 1 + load + 0.05 * rng.normal(size=(1200, 8))
    if fault:
        x[600:, :4] += [0.8, 1.2, -0.7, 1.0]
    if speed:
        x[600:] += [0.8, 1.2, -0.7, 1.0, 0.9, -1.1, 0.8, 0.6]
    return x


def held(content: dict, x: np.ndarray) -> int:
    """How many rows of the second half are in alarm."""
    base = {"name": "m", "novelty": {"relearn_after": RELEARN, "warmup": 200}, "learning": {"rule": "gmm"}}
    statuses = HostModel(make_spec(base | content)).update(x)[600:]
    return int(np.isin(statuses, (GmmStatus.NOVEL, GmmStatus.HELD)).sum())


def test_features_of_one_channel_that_agree_are_one_sensor_that_fails():
    """It stays an alarm for about ``relearn_after`` rows; what changes both channels becomes normal after a sixth of that."""
    grouped = {"input": {"dim": 8, "sensors": [0, 0, 0, 0, 1, 1, 1, 1]}}
    for seed in range(3):
        assert held({"input": {"dim": 8}}, pump(seed, fault=True)) < RELEARN // 3
        assert held(grouped, pump(seed, fault=True)) > 0.7 * RELEARN
        assert held(grouped, pump(seed, speed=True)) < RELEARN // 3
        # each input is a sensor: the same as without the key, to the byte
        alone = {"input": {"dim": 8, "sensors": list(range(8))}}
        assert held(alone, pump(seed, fault=True)) == held({"input": {"dim": 8}}, pump(seed, fault=True))


def test_the_channels_of_a_signal_are_its_sensors_on_the_host_and_in_c():
    signal = {
        "channels": ["a", "b"],
        "window": 16,
        "hop": 8,
        "max_abs": 20.0,
        "features": ["rms", "mean", "kurtosis", "correlation"],
    }
    spec = make_spec({"name": "m", "signal": signal, "novelty": {"warmup": 60}})
    # sorted by kind: mean a, mean b, rms a, ...; the correlation of both is a sensor of its own
    names, sensors = spec.input.columns, spec.inner.config.sensors
    assert {name: int(sensor) for name, sensor in zip(names, sensors, strict=True)} == {
        name: 2 if "correlation" in name else int(name.endswith("b")) for name in names
    }
    assert spec.config.grouped and (spec.config.sensors == sensors).all()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 2))
    x[4000:, 0] *= 3
    project = build(spec)
    host, device = HostModel(spec, project.drop), CModel(project, find_compilers()[0])
    (_, statuses), (_, there) = (model.prequential(x, x[:, :0]) for model in (host, device))
    assert (statuses == there).all() and np.isin(statuses, (GmmStatus.NOVEL, GmmStatus.HELD)).any()
    end = spec.program.state_bytes(host.memory.layout)
    assert bytes(host.memory.bytes[:end]) == bytes(device.memory.bytes[:end])


def test_sensors_that_are_given_beside_a_signal_are_those_of_host_and_device():
    signal = {"channels": ["a", "b"], "window": 16, "hop": 8, "max_abs": 20.0, "features": ["rms", "mean"]}
    spec = make_spec({"name": "m", "signal": signal, "novelty": {}, "input": {"sensors": [0, 0, 0, 1]}})
    assert spec.config.sensors.tolist() == spec.inner.config.sensors.tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("sensors", "said"),
    [([0], "sensors holds 1 numbers; it must hold 2"), ([0, -1], "sensors"), ([0, 2000], "sensors")],
)
def test_sensors_that_cannot_be(sensors, said):
    with pytest.raises(UserError, match=said):
        make_spec({"name": "m", "input": {"dim": 2, "sensors": sensors}, "learning": {"rule": "gmm"}})
