"""The signal stage against definitions: features of windows, lags, phases; and the model inside it against itself alone."""

import json

import numpy as np
import pytest
from scipy import signal as scipy_signal

from pykernel.algorithms.signal.program import FEATURES
from pykernel.algorithms.signal.state import SignalStatus
from pykernel.cli.app import main
from pykernel.dialect.program import taken_by
from pykernel.errors import UserError
from pykernel.gen.compilers import find_compilers
from pykernel.gen.streams import raw_stream
from pykernel.host.model import HostModel
from pykernel.host.signal import SignalStage
from pykernel.spec.model import load_spec, make_spec
from pykernel.spec.signal import KINDS as ALL_KINDS
from pykernel.spec.signal import SPECTRAL, plan_of
from pykernel.spec.signal_int16 import MEASURED
from tests.support.compilers import QUICK, compilers, in_one_build, parting
from tests.support.signal_errors import EXTENDED, RATE, SHAPES, Long, Truth, promises


def named(content):
    return {"name": "gauge"} | content


CHANNELS = ("a", "b", "c")
PROMISED = promises()
needs_extended = pytest.mark.skipif(not EXTENDED, reason="NumPy's longdouble is no wider than float64 here")
KINDS = [kind for kind in ALL_KINDS if kind not in SPECTRAL]
BANDS = [[0.0, 2.0], [1.0, 10.0], [10.0, 50.0]]
RULES = {"nlms": {}, "rls": {"forgetting": 0.99}, "krls-t": {}}


def spec_of(signal, rule="nlms", label="y", **sections):
    content = {"signal": {"channels": list(CHANNELS)} | signal, "learning": {"rule": rule} | RULES.get(rule, {})}
    if rule == "krls-t":
        content |= {"kernel": {"sigma": 2.0}, "reduction": {"n_max": 6}}
    return make_spec(named(content | {"label": {"column": label} if isinstance(label, str) else label} | sections))


# ------------------------------------------------------------------------------------------------------ definitions


def windows_of(x, window, ends):
    """(windows, channels, samples), in float64."""
    return np.lib.stride_tricks.sliding_window_view(x, window, axis=0)[ends + 1 - window].astype(float)


def waves(samples, precision, offset=0.0, seed=0):
    rng, t = np.random.default_rng(seed), np.arange(samples)
    x = np.sin(t[:, None] / np.array([3.0, 7.0, 20.0])) + 0.3 * rng.normal(size=(samples, 3)) + offset
    x[200:300, 1] = 0.5 + offset  # constant
    x[300:340, 2] = np.round(x[300:340, 2])
    return x.astype(precision)


@needs_extended
@pytest.mark.in_turn(45)
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("window", "hop"), [(16, 16), (32, 8), (24, 2), (64, 32), (256, 256)])
def test_features_are_what_their_definitions_say(window, hop, precision):
    """Within what docs/guide/signals.md promises, at every border of windows and blocks: far from zero, small, with lone spikes."""
    spec = spec_of({"window": window, "hop": hop, "features": list(KINDS)}, precision=precision)
    plan = plan_of(spec.signal)
    for offset, unit in ((0.0, 1.0), (8.0, 30.0), (0.0, 1e-7), (1e3, 1.0), (1e5, 1.0)):
        x = waves(2000, precision, offset)
        x[1000::97, 2] += 20
        x *= unit
        found = SignalStage(spec).steps(x)
        ends = np.arange(window - 1, len(x), hop)
        assert found.rows.tolist() == ends.tolist()
        parts = windows_of(x, window, ends)
        for row, values in zip(plan.measures, found.features.T, strict=True):
            one, other = plan.pairs[row.of] if row.kind == "correlation" else (row.of, row.of)
            part = Truth(parts[:, one], parts[:, other])
            if row.kind in SHAPES:
                moves = (np.ptp(part.x, axis=-1) > 0) & (np.ptp(part.other, axis=-1) > 0)
                assert not values[~moves].any(), row.name
                part, values = Truth(part.x[moves], part.other[moves]), values[moves]
            most = part.allowed(PROMISED, row.kind, hop, precision)
            assert (part.error(row.kind, values.astype(Long)) <= most).all(), (row.name, offset, unit)


@pytest.mark.in_turn(9)
@needs_extended
@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize(("window", "hop"), [(8, 4), (128, 16), (256, 256)])
def test_spectra_are_those_of_scipy(window, hop, precision):
    """Bands, centroid, flatness, the largest frequency; also of tones between two frequencies and of constants."""
    signal = {"window": window, "hop": hop, "rate": RATE, "features": ["centroid", "dominant", "flatness"]}
    bands = [band for band in BANDS if band[1] > 200 / window]
    spec = spec_of(signal | {"bands": bands}, precision=precision)
    logs = spec_of(signal | {"bands": bands, "log": True, "max_abs": 16.0}, precision=precision)
    rng, t = np.random.default_rng(1), np.arange(1100)
    x = np.sin(2 * np.pi * t[:, None] * np.array([7.0, 23.3, 49.0]) / RATE) + 0.2 * rng.normal(size=(1100, 3)) + 3.0
    x[520:800, 1] = 0.5
    x = x.astype(precision)
    found, logged = SignalStage(spec).steps(x), SignalStage(logs).steps(x)
    parts = windows_of(x, window, found.rows)
    _, density = scipy_signal.periodogram(parts, RATE, "hann", detrend="constant", scaling="density")
    powers = density[..., 1:] * RATE / window
    for row, values, other in zip(plan_of(spec.signal).measures, found.features.T, logged.features.T, strict=True):
        part = Truth(parts[:, row.of])
        np.testing.assert_allclose(part.powers().astype(float), powers[:, row.of], rtol=1e-9, atol=1e-25)
        if row.kind == "band":
            band = bands[row.steps]
            most = part.allowed(PROMISED, "bands", hop, precision)
            assert (part.error("band", values.astype(Long), band) <= most).all(), row.name
            true = np.log2(1 + part.value("band", band) ** 2 / (16.0 / 2**20) ** 2)
            assert (np.abs(other - true) <= part.allowed(PROMISED, "log", hop, precision, 16.0)).all(), row.name
            continue
        moves = part.std > 0
        assert not values[~moves].any()
        most = part.allowed(PROMISED, row.kind, hop, precision)
        assert (part.error(row.kind, values.astype(Long))[moves] <= most[moves]).all(), row.name


def test_a_constant_window_has_no_shape():
    spec = spec_of({"window": 8, "features": list(KINDS)})
    (features,) = SignalStage(spec).steps(np.full((8, 3), 3.25)).features
    named_ = dict(zip((row.name for row in plan_of(spec.signal).measures), features, strict=True))
    assert all(named_[f"{kind} a"] == 3.25 for kind in ("mean", "rms", "min", "max"))
    assert all(
        named_[f"{kind} a"] == 0 for kind in ("std", "range", "skewness", "kurtosis", "crossings", "change", "slope")
    )
    assert named_["crest a"] == 1 and named_["correlation a b"] == 0


@pytest.mark.parametrize("windowed", [False, True])
def test_lags_differences_averages_and_phases(windowed):
    """Of raw samples and of windows, by brute force; phases count raw samples."""
    lagged = {"lags": [0, 2, 5], "differences": [1, 4], "averages": [3], "periods": [7, 24]}
    window = {"window": 8, "hop": 4, "features": ["mean", "max"]} if windowed else {}
    spec = spec_of(lagged | window, precision="float64")
    x = waves(200, "float64")
    found = SignalStage(spec).steps(x)
    base = x
    ends = np.arange(len(x))
    if windowed:
        base, ends = SignalStage(spec_of(window, precision="float64")).steps(x).features, np.arange(7, 200, 4)
    assert found.rows.tolist() == ends[5:].tolist()
    for step, features in zip(range(5, len(base)), found.features, strict=True):
        want = [base[step - lag] for lag in (0, 2, 5)] + [base[step] - base[step - lag] for lag in (1, 4)]
        want.append(base[step - 2 : step + 1].mean(0))
        turns = (ends[step] + 1) / np.array([7, 24])
        want.append(np.column_stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)]).reshape(-1))
        np.testing.assert_allclose(features, np.concatenate(want), atol=1e-12)


def test_clocks_count_a_day_of_seconds_and_the_longest_period():
    periods = [86400, 2**24]
    stage = SignalStage(spec_of({"channels": ["a"], "periods": periods}), "python")
    assert stage.gap(2**24 - 10) == 0
    turns = np.arange(2**24 - 9, 2**24 + 11)[:, None] / periods
    found = stage.steps(np.zeros((20, 1))).features[:, 1:]
    np.testing.assert_allclose(found[:, ::2], np.cos(2 * np.pi * turns), atol=1e-6)
    np.testing.assert_allclose(found[:, 1::2], np.sin(2 * np.pi * turns), atol=1e-6)
    whole = {"precision": "int16", "learning": {"rule": "nlms"}, "label": {"column": "y", "max_abs": 1.0}}
    with pytest.raises(UserError, match="periods holds 86400; with precision int16, a period is at most 65536"):
        make_spec(named(whole | {"signal": {"channels": ["a"], "max_abs": 1.0, "periods": [86400]}}))


# ------------------------------------------------------------------------------------------------ around a model


def inner_bytes(model, spec):
    inner = spec.inner.program.persistent
    return b"".join(model.memory.field(name).tobytes() for struct in inner for name in struct.fields)


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("ahead", [1, 3])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_a_forecast_is_the_model_that_learns_each_step_with_its_truth(rule, windowed, ahead):
    """The model within the stage ends with the bytes of the model alone, which was given features and their truths."""
    window = {"window": 8, "hop": 4, "features": ["mean", "std"]} if windowed else {}
    spec = spec_of({"lags": [0, 1, 3], "periods": [24], "ahead": ahead} | window, rule, "b", input={"warmup": 4})
    x = raw_stream(spec, 600, 5)[0]
    model = HostModel(spec)
    forecasts, statuses = model.prequential(x)
    steps = SignalStage(spec).steps(x)
    alone = HostModel(spec.inner)
    truth = steps.features[:, spec.input.columns.index("mean b" if windowed else "b")]
    learned = alone.update(steps.features[:-ahead], truth[ahead:])
    assert inner_bytes(model, spec) == inner_bytes(alone, spec)
    assert forecasts[-1] == alone.predict(steps.features[-1:])[0]
    told = statuses[steps.rows[ahead:]]
    assert (told == np.where(learned < 0, SignalStatus.PASSED_OVER, learned)).all()
    assert (statuses[steps.rows[:ahead]] == SignalStatus.READY).all()


@pytest.mark.parametrize("classes", [None, ["n", "y", "z"]])
def test_labels_may_come_with_the_sample_or_later(classes):
    """push and label, later, are push_labelled; and what is inside is the model alone."""
    spec = spec_of(
        {"window": 8, "hop": 4, "features": ["mean", "rms"]},
        label={"column": "y", **({"classes": classes} if classes else {})},
    )
    x, y = raw_stream(spec, 400, 3)
    together, apart, alone = HostModel(spec), HostModel(spec), HostModel(spec.inner)
    together.update(x, y)
    for row, label in zip(x, y, strict=True):
        status = apart.executor.call(spec.program.entry("push"), row)
        if status == SignalStatus.READY:
            apart.executor.call(spec.program.entry("label"), label)
            # a window has one label; a label that was refused may be given again
            assert apart.memory.field("waiting")[0] == 0 or not np.isfinite(label) or classes
    steps = SignalStage(spec).steps(x)
    alone.update(steps.features, y[steps.rows])
    assert inner_bytes(together, spec) == inner_bytes(apart, spec) == inner_bytes(alone, spec)


@pytest.mark.in_turn(216)
@pytest.mark.parametrize("precision", ["float32", "int16"])
@pytest.mark.parametrize("kind", [*ALL_KINDS, "none"])
def test_each_feature_can_be_alone(kind, precision, exhaustive):
    """What the others need is not kept, and is not read: neither by push nor by the check of a snapshot."""
    if precision == "int16" and kind not in (*MEASURED, "band", "none"):
        pytest.skip("int16 does not have it")
    asked = {"none": {"lags": [0, 1]}, "band": {"bands": [[5.0, 30.0]]}}.get(kind, {"features": [kind]})
    rate = {"rate": RATE} if kind in SPECTRAL else {}
    size = {} if kind == "none" else {"window": 16, "hop": 8}
    label = {"column": "y", "max_abs": 5.0}
    spec = spec_of({"max_abs": 10.0} | asked | rate | size, rule="nlms", label=label, precision=precision)
    for c in compilers(exhaustive) if exhaustive else QUICK[:1]:
        assert in_one_build(spec, samples=200, c=c).ok


def test_a_refused_label_may_be_given_again_and_broken_memory_is_told():
    spec = spec_of({"window": 8, "hop": 4, "features": ["mean", "rms"]}, rule="krls-t", label={"column": "y"})
    model, x = HostModel(spec), waves(12, "float32")
    labels = np.ones(12)
    labels[11] = np.nan
    learned, refused = model.update(x, labels)[[7, 11]]
    assert learned < SignalStatus.READY and refused == SignalStatus.PASSED_OVER
    assert model.call("label", np.inf) < 0 and model.call("label", 1.0) >= 0
    assert model.call("label", 1.0) == SignalStatus.NO_WINDOW
    sound = bytes(model.memory.bytes)
    for field, value in (("block", 2), ("block", -1), ("latest", 1), ("gathered", -1), ("blocks", 3), ("steps", 2)):
        model.memory.bytes[:] = np.frombuffer(sound, np.uint8)
        model.memory.field(field)[0] = value
        broken = bytes(model.memory.bytes)
        assert model.update(x[:1], np.ones(1)).tolist() == [SignalStatus.REFUSED_STATE], field
        assert model.call("gap", 1) == SignalStatus.REFUSED_STATE and bytes(model.memory.bytes) == broken
    model.memory.bytes[:] = np.frombuffer(sound, np.uint8)
    model.memory.field("n")[0] = 1000  # of the model inside
    assert model.update(x[:4], np.ones(4))[-1] == SignalStatus.REFUSED_STATE


def test_a_gap_restarts_windows_and_lags_and_nothing_else():
    """After it the stage goes on as one that begins, but for the phase; what was learned stays."""
    signal = {"window": 8, "hop": 4, "features": list(KINDS), "lags": [0, 1], "periods": [24]}
    spec, x = spec_of(signal), waves(120, "float32")
    broken, fresh = SignalStage(spec), SignalStage(spec)
    broken.push(x[:53])
    assert broken.gap(0) == 0 and broken.memory.field("ready")[0] == 1
    assert broken.gap(17) == 0 and broken.memory.field("ready")[0] == 0
    fresh.gap(70)
    (s, f), (t, h) = broken.push(x[70:]), fresh.push(x[70:])
    assert s.tolist() == t.tolist() and f.tobytes() == h.tobytes()
    model = HostModel(spec)
    model.update(x, np.ones(120))
    learned = inner_bytes(model, spec)
    assert model.call("gap", 2**31 - 1) == 0 and inner_bytes(model, spec) == learned
    # the phase is that of time, not of samples
    assert int(model.memory.field("clock")[0]) == (120 + 2**31 - 1) % 24


def test_before_there_are_features_nothing_is_said():
    spec = spec_of({"window": 8, "features": ["mean"]})
    model = HostModel(spec)
    for reading in ("predict_newest", "signal"):
        values, status = model.read(reading)
        assert status == SignalStatus.NO_FEATURES and np.isnan(values).all()


# --------------------------------------------------------------------------------------------- the same bytes in C


def whole_content(content, rng):
    """The same in int16, as far as there is such a thing."""
    signal = content["signal"]
    signal.pop("log", None)
    if "features" in signal:
        signal["features"] = [str(kind) for kind in rng.permutation(MEASURED[:-1])[: rng.integers(1, 6)]]
    signal["max_abs"] = [float(rng.choice([1.0, 100.0, 2048.0, 32767.0])) for _ in signal["channels"]]
    if rng.random() < 0.5:
        signal["resolution"] = [most / float(rng.choice([10, 1000, 32767])) for most in signal["max_abs"]]
    kind = rng.integers(3)
    content |= {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 6}}
    if kind == 0:
        signal["ahead"] = int(rng.integers(1, 4))
        if "features" in signal:
            signal["features"].append("mean")
        return content | {"label": {"column": signal["channels"][0]}, "linear": {}}
    if kind == 1:
        return content | {"label": {"column": "y", "classes": ["n", "y", "z"]}}
    plain = {key: content[key] for key in ("signal", "precision")}
    return plain | {"label": {"column": "y", "max_abs": 2.0}, "learning": {"rule": "nlms"}}


def random_content(rng):
    """A signal of any kind, and a model inside of it."""
    channels = [f"ch{j}" for j in range(int(rng.integers(1, 4)))]
    signal = {"channels": channels, "max_abs": float(rng.choice([4.0, 1000.0, 1e6]))}
    if rng.random() < 0.6:
        hop = int(rng.integers(2, 9))
        kinds = [str(kind) for kind in rng.permutation(KINDS)[: rng.integers(1, 6)]]
        kinds = [kind for kind in kinds if kind != "correlation" or len(channels) > 1] or ["mean"]
        signal |= {"hop": hop, "window": hop * int(rng.integers(1, 4)), "features": kinds}
        if rng.random() < 0.3 and "correlation" not in kinds:
            signal["features"] = {name: ["mean", *kinds[:1]] if name == channels[0] else kinds for name in channels}
        if rng.random() < 0.4:
            signal |= {"window": int(2 ** rng.integers(3, 6)), "rate": 100.0}
            signal |= {"hop": signal["window"] // int(2 ** rng.integers(0, 3))}
            signal |= {"bands": [[1.0, 30.0]], "log": bool(rng.random() < 0.5)}
    for key, most in (("lags", 6), ("differences", 4), ("averages", 5)):
        if rng.random() < 0.4:
            signal[key] = sorted({int(n) for n in rng.integers(0 if key == "lags" else 1, most, 2)})
    if rng.random() < 0.4:
        signal["periods"] = [int(n) for n in rng.integers(2, 60, int(rng.integers(1, 3)))]
    content = {"signal": signal, "precision": str(rng.choice(["float32", "float64", "int16"]))}
    if content["precision"] == "int16":
        return whole_content(content, rng)
    kind = rng.integers(4)
    if kind == 0:
        signal["ahead"] = int(rng.integers(1, 4))
        label = channels[0]
        if "features" in signal and isinstance(signal["features"], list) and "mean" not in signal["features"]:
            signal["features"].append("mean")
        return content | {
            "label": {"column": label},
            "learning": {"rule": str(rng.choice(["nlms", "rls", "quadratic-rls"]))},
        }
    if kind == 1:
        return content | {"novelty": {}, "learning": {"components": 2}}
    if kind == 2:
        return content | {"label": {"column": "y", "classes": ["n", "y"]}, "reduction": {"n_max": 6}}
    return content | {
        "label": {"column": "y"},
        "learning": {"rule": "krls-t"},
        "kernel": {"sigma": 2.0},
        "reduction": {"n_max": 5},
    }


def random_spec(seed):
    try:
        return make_spec(named(random_content(np.random.default_rng(seed))))
    except UserError:
        return None


@pytest.mark.skipif(not find_compilers(), reason="needs a C compiler")
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 40))])
def test_all_functions_in_any_order(part):
    """Gaps, labels, saves, loads and hostile samples among them: the same on the host, in plain Python and in C."""
    if (spec := random_spec(100 + part)) is not None:
        assert parting(spec, seed=100 + part) is None


@pytest.mark.parametrize(
    ("signal", "says"),
    [
        ({"window": 8}, "[signal] features are missing"),
        ({"hop": 8}, "[signal] hop also requires the key window"),
        ({"window": 9, "hop": 4, "features": ["mean"]}, "[signal] hop is 4, which does not divide window (9)"),
        ({"window": 8, "hop": 1, "features": ["mean"]}, "[signal] hop is 1"),
        ({"window": 8, "features": ["men"]}, "did you mean 'mean'"),
        ({"window": 8, "features": {"a": ["mean"]}}, "[signal] features has no entry for the channel 'b'"),
        ({"window": 8, "features": {"x": ["mean"]}}, "features has an entry for 'x', which is not a channel"),
        ({"channels": ["a"], "window": 8, "features": ["correlation"]}, "needs two channels"),
        ({"channels": ["a", "a"]}, "[signal] channels has the name 'a' twice"),
        ({"window": 8, "features": {"a": ["mean"], "b": ["correlation"], "c": ["rms"]}}, "correlation only for 'b'"),
        (
            {"window": 8, "features": {"a": ["mean"], "b": [], "c": ["rms"]}},
            "[signal] features has [] for 'b'; it must be",
        ),
        (
            {"window": 8, "features": {"a": ["mean"], "b": ["men"], "c": ["rms"]}},
            "features has 'men' for 'b'; did you mean",
        ),
        (
            {"channels": ["a", "a lag 1"], "lags": [0, 1]},
            "[signal] channels make two features that are called 'a lag 1'",
        ),
        ({"channels": ["a" * 99], "lags": [1]}, "[signal] channels make a feature whose name has 105 characters"),
        ({"lags": []}, "[signal] lags is [], and nothing else makes features"),
        ({"lags": 3}, "[signal] lags is 3; it must be a list"),
        ({"lags": list(range(500))}, "[signal] makes 1500 features"),
        ({"periods": [1]}, "[signal] periods"),
        ({"periods": [2**24 + 1]}, "[signal] periods is 16777217; it must be less than or equal to 16777216"),
        ({"averages": [0]}, "[signal] averages"),
        ({"max_abs": 0.0}, "[signal] max_abs"),
        (
            {"window": 8, "features": {"a": ["mean"], "b": ["kurtosis"], "c": ["rms"]}, "max_abs": 1.01e8},
            "[signal] max_abs is 1.01e+08; with the feature kurtosis it must be at most 1e+08",
        ),
        (
            {"window": 8, "features": ["skewness"], "max_abs": 1e12},
            "[signal] max_abs is 1e+12; with the feature skewness it must be at most 1e+11, because powers of larger numbers overflow",
        ),
        ({"ahead": 2}, "[signal] ahead"),
        ({"window": 8, "features": ["centroid"]}, "[signal] rate is missing; for centroid, give the rate"),
        ({"window": 24, "rate": 9.0, "bands": [[1, 2]]}, "[signal] window is 24; for bands, it must be a power of two"),
        ({"window": 16, "rate": 16.0, "bands": [[2, 1]]}, "[signal] bands holds [2, 1]; the first number must be"),
        (
            {"window": 16, "rate": 16.0, "bands": [[1.1, 1.9]]},
            "choose a band that contains a multiple of 1 Hz, from 1 to 8 Hz",
        ),
        ({"window": 16, "rate": 16.0, "bands": [3]}, "[signal] bands holds 3; it must hold pairs"),
        ({"window": 16, "rate": 16.0, "bands": [[1, 3], [1, 3]]}, "[signal] bands holds [1, 3] twice"),
        ({"window": 16, "features": ["mean"], "log": True}, "[signal] log needs bands"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(signal, says):
    with pytest.raises(UserError) as refused:
        spec_of(signal)
    assert says in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_shapes_of_numbers_up_to_their_limit_are_right_in_the_longest_window(precision):
    """Two values, as far apart as max_abs lets them be: their powers add up to the most."""
    for kind, most, true in (("kurtosis", 1e8, -2.0), ("skewness", 1e11, 0.0)):
        most *= 1.0 if precision == "float32" else 1e4
        for hop in (65536, 1024, 2):
            raw = {"channels": ["a"], "window": 65536, "hop": hop, "features": [kind], "max_abs": most}
            stage = SignalStage(spec_of(raw, precision=precision))
            for x in (np.repeat([1.0, -1.0], 32768), np.tile([-1.0, 1.0], 32768)):
                steps = stage.steps(most * x[:, None])
                assert abs(steps.features[-1, 0] - true) < 0.05, (kind, hop)  # rounding; beyond, it is -3 or 65536
                stage.gap(1)


def test_inputs_beside_a_signal_are_refused(tmp_path):
    spec, path = spec_of({}), tmp_path / "gauge.toml"
    dumped = spec.model_dump(mode="json", exclude_unset=True)
    assert dumped["input"]["columns"] == list(CHANNELS) and make_spec(dumped) == spec
    path.write_text(spec.to_toml())
    assert load_spec(path) == spec
    for key in ("columns", "max_abs"):  # right, but nobody needs to write them
        path.write_text(spec.to_toml().replace("[input]", f"[input]\n{key} = {json.dumps(dumped['input'][key])}"))
        with pytest.raises(UserError, match=rf"\[input\] {key} contradicts \[signal\]"):
            load_spec(path)
    for given, where in (({"dim": 3}, "dim"), ({"columns": ["a"]}, "columns"), ({"max_abs": 3.0}, "max_abs")):
        with pytest.raises(UserError, match=rf"\[input\] {where} contradicts \[signal\]"):
            spec_of({}, input=given)
    with pytest.raises(UserError, match='add "mean" to the features'):
        spec_of({"window": 8, "features": ["rms"]}, label="a")


def test_switched_off_it_leaves_nothing():
    """The program without a signal is the family's own; its stage takes what a firmware pushes."""
    assert taken_by(FEATURES.entry("push"))[0] == FEATURES.sample
    spec = make_spec(named({"input": {"dim": 2}, "learning": {"rule": "nlms"}}))
    assert spec.program is spec.family.programs["real"] and spec.inner is spec


# ---------------------------------------------------------------------------------------------------- as users see it


def written(tmp_path, content):
    (tmp_path / "gauge.toml").write_text(make_spec(named(content)).to_toml())
    return tmp_path / "gauge.toml"


def table_of(tmp_path, x, labels=None):
    rows = [",".join(map(str, row)) for row in x.tolist()]
    if labels is not None:
        rows = [f"{row},{label}" for row, label in zip(rows, labels, strict=True)]
    head = ",".join([*CHANNELS[: x.shape[1]], *(["y"] if labels is not None else [])])
    path = tmp_path / "data.csv"
    path.write_text("\n".join([head, *rows]).replace("nan", "") + "\n")
    return path


def run(*words):
    with pytest.raises(SystemExit) as stopped:
        main(list(map(str, words)))
    return stopped.value.code


@pytest.mark.parametrize("ahead", [1, 4])
def test_simulate_takes_raw_rows_and_forecasts(ahead, tmp_path, capsys):
    """The forecasts are those of the device's loop: push a row, then ask; where a row is missing, tell the gap."""
    signal = {"channels": ["a", "b"], "lags": [0, 1, 2], "ahead": ahead}
    content = {"signal": signal, "label": {"column": "b"}, "learning": {"rule": "rls"}, "precision": "float64"}
    x = waves(300, "float64")[:, :2]
    x[130, 1] = np.nan
    spec_file, data = written(tmp_path, content), table_of(tmp_path, x)
    assert run("simulate", spec_file, data, "--json", "-o", tmp_path / "out.csv") == 0
    report = json.loads(capsys.readouterr().out)
    spec = make_spec(named(content))
    model, forecasts = HostModel(spec), []
    for row in x:
        status = model.update(row[None])[0]
        if status < 0:
            model.call("gap", 1)
        if status >= 0 and model.read("signal")[1] == 0:
            forecasts.append(model.read("forecast")[0][0])
    lines = (tmp_path / "out.csv").read_text().splitlines()[1:]
    assert len(lines) == len(forecasts) == report["rows"] == 300 - 2 - 3
    told = np.array([float(line.split(",")[1]) for line in lines])
    np.testing.assert_array_equal(told, forecasts)
    assert report["all"]["rmse"]["model"] < report["all"]["rmse"]["running mean"]


def test_simulate_takes_raw_rows_with_labels(tmp_path, capsys):
    signal = {"channels": list(CHANNELS), "window": 16, "hop": 8, "features": ["mean", "std"]}
    content = {"signal": signal, "label": {"column": "y", "classes": ["calm", "loud"]}}
    rng = np.random.default_rng(0)
    loud = rng.random(80).repeat(32) < 0.5
    x = rng.normal(size=(len(loud), 3)) * np.where(loud, 3.0, 0.5)[:, None]
    spec_file, data = written(tmp_path, content), table_of(tmp_path, x, np.where(loud, "loud", "calm"))
    assert run("simulate", spec_file, data, "--json", "--delay", "2") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["rows"] == len(loud) // 8 - 1 and report["second_half"]["error_rate"]["model"] < 0.2


def test_monitors_watch_raw_rows(tmp_path, capsys):
    signal = {"channels": ["a", "b", "c"], "window": 16, "features": ["rms", "change"]}
    spec_file, data = written(tmp_path, {"signal": signal, "novelty": {}}), table_of(tmp_path, waves(3000, "float64"))
    assert run("simulate", spec_file, data, "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 3000 // 16


def test_a_page_takes_no_forecast_of_the_signal_itself_and_a_forecast_no_delay(tmp_path, capsys):
    content = {"signal": {"channels": ["a", "b"]}, "label": {"column": "a"}}
    spec_file, data = written(tmp_path, content), table_of(tmp_path, waves(50, "float64")[:, :2])
    assert run("page", spec_file, data, "-o", tmp_path / "p.html") == 2
    assert "gauge forecasts its own signal, which a page does not support yet" in capsys.readouterr().err
    assert run("simulate", spec_file, data, "--delay", "3") == 2
    assert "[signal] ahead says when the true value comes" in capsys.readouterr().err
