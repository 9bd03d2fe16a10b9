"""The signal stage in int16 against definitions."""

import numpy as np
import pytest

from pykernel.algorithms.int16 import arithmetic
from pykernel.algorithms.signal import int16_lags
from pykernel.algorithms.signal.state import SignalStatus
from pykernel.dialect import INT16, bind
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.host.signal import SignalStage
from pykernel.spec.model import make_spec
from pykernel.spec.signal import plan_of
from pykernel.spec.signal_int16 import MEASURED, measure_units
from tests.support.compilers import in_one_build
from tests.support.signal_errors import Truth

CHANNELS = ("a", "b", "c")
KINDS = list(MEASURED[:-1])
MOST = [2048.0, 1.0, 300.0]


def spec_of(signal, label="y", **sections):
    content = {"signal": {"channels": list(CHANNELS), "max_abs": MOST} | signal, "precision": "int16", "name": "gauge"}
    content |= {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 6}}
    label = {"column": label} | ({} if label in CHANNELS else {"max_abs": 4.0})
    return make_spec(content | {"label": label} | sections)


def waves(samples, seed=0):
    """Small, large and saturated; with a constant and with steps; of channels with different counts."""
    rng, t = np.random.default_rng(seed), np.arange(samples)
    x = 0.3 * np.sin(t[:, None] / np.array([3.0, 7.0, 20.0])) + 0.1 * rng.normal(size=(samples, 3))
    x += rng.choice([0.0, 0.0, 0.6, -0.6], (samples // 100 + 1, 3)).repeat(100, axis=0)[:samples]
    x *= 10.0 ** rng.choice([0.0, 0.0, -1.0, -3.0], (samples // 80 + 1, 1)).repeat(80, axis=0)[:samples]
    x[200:300, 1] = 0.25
    x[350:420] = np.sign(x[350:420])
    return np.clip(x, -1, 1) * np.array(MOST)


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("resolution", [None, [1.0, 1 / 500, 0.3]])
@pytest.mark.parametrize(("window", "hop"), [(16, 16), (32, 8), (24, 2), (64, 32)])
def test_features_are_what_their_definitions_say(window, hop, resolution):
    """Within half a count, roots within one, at every border of windows and blocks."""
    spec = spec_of({"window": window, "hop": hop, "features": KINDS, "resolution": resolution})
    x = waves(600)
    found, seen = SignalStage(spec).steps(x), spec.as_seen(x)
    ends = np.arange(window - 1, len(x), hop)
    assert found.rows.tolist() == ends.tolist()
    plan, units = plan_of(spec.signal), measure_units(spec.signal)
    for end, features in zip(ends, found.features, strict=True):
        part = seen[end + 1 - window : end + 1]
        for row, unit, value in zip(plan.measures, units, features, strict=True):
            exact = {"min": 1e-9, "max": 1e-9, "rms": 1.001, "std": 1.001}.get(row.kind, 0.501)
            if row.kind == "crossings":
                exact = 1.001  # what is always is not quite 1
            assert abs(value - Truth(part[:, row.of]).value(row.kind)) <= exact * unit, (row.name, end)


@pytest.mark.parametrize(("window", "hop"), [(8, 4), (64, 16), (256, 256), (4096, 2048)])
def test_bands_are_those_of_reals(window, hop):
    """Within two counts of the float64 stage, which is compared with SciPy: tones, noise, silence, full scale."""
    bands = [band for band in ([0.0, 2.0], [1.0, 10.0], [10.0, 50.1]) if band[1] > 200 / window]
    signal = {"window": window, "hop": hop, "rate": 100.0, "features": ["mean"], "bands": bands}
    spec = spec_of(signal)
    reals = make_spec(
        {"name": "gauge", "precision": "float64", "signal": {"channels": list(CHANNELS)} | signal}
        | {"label": {"column": "y"}, "learning": {"rule": "nlms"}}
    )
    x = np.concatenate([waves(700, 3) for _ in range(1 + 3 * window // 700)])
    x[:window, 0] = MOST[0] * np.sign(np.sin(2 * np.pi * 7 * np.arange(window) / 100))
    found, true = SignalStage(spec).steps(x), SignalStage(reals).steps(spec.as_seen(x))
    units = measure_units(spec.signal)
    for row, unit, value, exact in zip(
        plan_of(spec.signal).measures, units, found.features.T, true.features.T, strict=True
    ):
        if row.kind == "band":
            assert (np.abs(value - np.minimum(exact, 32767 * unit)) <= 2 * unit).all(), row.name
            assert value.max() > 1000 * unit


def test_lags_differences_averages_and_phases():
    """By brute force; a difference and a phase within a count."""
    spec = spec_of({"lags": [0, 2, 5], "differences": [1, 4], "averages": [3], "periods": [7, 24, 65536]})
    x = waves(300)
    found, seen = SignalStage(spec).steps(x), spec.as_seen(x)
    unit = np.array(spec.input.resolution)
    for step, features in zip(range(5, len(x)), found.features, strict=True):
        want = [seen[step - lag] for lag in (0, 2, 5)] + [seen[step] - seen[step - lag] for lag in (1, 4)]
        want.append(seen[step - 2 : step + 1].mean(0))
        turns = (step + 1) / np.array([7, 24, 65536])
        want.append(np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)]).reshape(-1))
        off = np.abs(features - np.concatenate(want)) / unit
        assert (off[:9] < 1e-6).all() and (off[9:18] <= 0.501).all() and (off[18:] <= 2.5).all()


def test_a_feature_with_its_center_taken_off_fits_16_bits():
    """It has a coarser unit, by which it is rounded, and the model takes it wherever it is."""
    signal = {"window": 16, "features": ["mean", "range"], "periods": [24]}
    plain = spec_of(signal, learning={"rule": "nlms"}, kernel=None, reduction=None)
    away = [0.9 * limit for limit in plain.input.max_abs]
    spec = spec_of(signal, learning={"rule": "nlms"}, kernel=None, reduction=None, input={"center": away})
    x = np.concatenate([waves(500), -waves(500), np.full((40, 3), MOST), -np.full((40, 3), MOST)])
    found, true = SignalStage(spec).steps(x).features, SignalStage(plain).steps(x).features
    units = np.array(spec.input.resolution)
    assert (units > np.array(plain.input.resolution)).all()
    assert (np.abs(found - true) <= 0.5 * units).all()
    assert not (HostModel(spec).update(x, np.ones(len(x))) == SignalStatus.PASSED_OVER).any()
    assert in_one_build(spec, samples=1000).ok


def test_roots_and_products_of_two_words():
    rng = np.random.default_rng(0)
    root, product = bind(arithmetic.long_root, INT16), bind(arithmetic.product_high, INT16)
    values = [0, 1, 2, 3, 2**16, 2**31, 2**32 - 1, 2**32, 2**62, 2**64 - 1]
    values += [int(2.0**e) + int(d) for e, d in zip(rng.uniform(0, 63, 2000), rng.integers(0, 9, 2000), strict=True)]
    for v in values:
        found, true = int(root(np.uint32(v >> 32), np.uint32(v & 0xFFFFFFFF))), v**0.5
        assert abs(found - true) <= 1 + true * 2.0**-16, v
    for a, b in rng.integers(0, 2**32, (2000, 2), dtype=np.uint64):
        assert int(product(np.uint32(a), np.uint32(b))) == int(a) * int(b) >> 32


def test_cosines_are_within_a_count():
    cosine = bind(int16_lags.cosine, INT16)
    turns = np.arange(0, 65536, 7)
    found = np.array([int(cosine(int(t))) for t in turns])
    assert np.abs(found - 16384 * np.cos(2 * np.pi * turns / 65536)).max() <= 1.5


def test_a_model_in_int16_forecasts():
    """A wave in noise: better than the last value."""
    rng, t = np.random.default_rng(0), np.arange(4000)
    x = 1000 * np.sin(2 * np.pi * t / 24) + 100 * rng.normal(size=len(t))
    content = {"signal": {"channels": ["a"], "max_abs": 2048, "resolution": 1, "lags": [0, 1, 2, 3]}, "name": "gauge"}
    content |= {"precision": "int16", "label": {"column": "a"}, "kernel": {"sigma": 0.3}, "linear": {}}
    spec = make_spec(content | {"learning": {"rule": "klms"}, "reduction": {"n_max": 32}})
    model = HostModel(spec)
    said, _ = model.prequential(x[:, None])
    errors = np.abs(said[2000:-1].reshape(-1) - x[2001:]).mean()
    assert errors < 0.7 * np.abs(np.diff(x[2000:])).mean()


@pytest.mark.parametrize(
    ("signal", "says"),
    [
        ({"max_abs": [1.0, 2.0]}, "[signal] max_abs holds 2 numbers; it must hold 3"),
        ({"resolution": 0.001}, "[signal] resolution is 0.001 for a, so its max_abs is 2,048,000 counts"),
        ({"resolution": 5}, "for b, so its max_abs is 0 counts"),
        (
            {"window": 8, "features": ["kurtosis"]},
            "[signal] features has kurtosis, which is not available with precision int16",
        ),
        ({"window": 8, "rate": 8.0, "bands": [[1, 3]], "log": True}, "[signal] log is not available"),
        ({"window": 8192, "rate": 8.0, "bands": [[1, 3]]}, "bands in int16 need a window of at most 4096"),
    ],
)
def test_what_int16_does_not_have_is_refused_in_a_sentence(signal, says):
    with pytest.raises(UserError) as refused:
        spec_of(signal)
    assert says in str(refused.value) and "\n" not in str(refused.value)


def test_ranges_must_be_given_and_are_of_whole_numbers():
    content = {"name": "gauge", "signal": {"channels": ["a"]}, "label": {"column": "y", "max_abs": 1.0}}
    with pytest.raises(UserError, match=r"\[signal\] max_abs is missing; int16 needs"):
        make_spec(content | {"precision": "int16", "learning": {"rule": "nlms"}})
    for key in ("max_abs", "resolution"):
        with pytest.raises(UserError, match="only precision int16"):
            make_spec(content | {"signal": {"channels": ["a"], key: [1.0]}})
