"""Whole numbers (precision int16): the same bits everywhere, near to real numbers by a bound, and no range that breaks."""

from __future__ import annotations

import itertools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.algorithms.int16 import arithmetic, kernels
from pykernel.algorithms.int16.stages import GAIN_FIRST
from pykernel.dialect import FLOAT32, INT16
from pykernel.dialect.interpreter import bind
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference
from pykernel.gen.compilers import takes
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream, near_halves, stream_of
from pykernel.host.model import HostModel
from pykernel.host.samples import Batch
from pykernel.host.signal import steps_of
from pykernel.host.snapshot import load, save
from pykernel.spec.defaults import width
from pykernel.spec.families.int16_errors import POWER_ERROR, faded, value_error
from pykernel.spec.families.int16_scales import FUNCTIONS, ROUNDED, in_eight_bits
from pykernel.spec.kernel_settings import HIDDEN
from pykernel.spec.model import make_spec
from tests.support.compilers import EACH, QUICK, in_one_build

LATE: dict[str, Any] = {
    "name": "m",
    "precision": "int16",
    "input": {"dim": 2, "max_abs": 4.0},
    "label": {"max_abs": 4.0, "gain": True},
    "kernel": {"sigma": 1.0},
    "learning": {"rule": "klms"},
    "reduction": {"n_max": 8},
}


def frozen(seed: int, **changes: Any) -> Any:
    """A random frozen model in int16."""
    rng = np.random.default_rng(seed)
    dim, n = int(rng.integers(1, 12)), int(rng.integers(1, 40))
    classes, decision = int(rng.choice([0, 0, 2, 3, 4])), "functions"
    outputs = classes if classes > 2 else 1 if classes else int(rng.choice([1, 1, 3]))
    linear = rng.random() < 0.3
    kernel: dict[str, Any] = {"gamma": float(10.0 ** rng.uniform(-1.5, 1.0))}
    if linear:
        kernel = {"function": "linear"}
    elif seed % 3 == 0:
        names = [name for name in FUNCTIONS if name not in ("gaussian", "linear")]
        kernel["function"] = names[seed // 3 % len(names)]
    if kernel.get("function") in HIDDEN:
        del kernel["gamma"]
    if kernel.get("function") == "polynomial":
        kernel |= {"coef0": float(rng.normal()), "degree": int(rng.integers(1, 5))}
    widths = 10.0 ** rng.uniform(-2, 3, dim)
    alike = rng.random() < 0.4
    limits = [1.0] * dim if alike else widths.tolist()
    scale = None if alike else (1 / widths).tolist()
    center = None if rng.random() < 0.5 else (widths * rng.uniform(-3, 3, dim) * (not alike)).tolist()
    expansion: dict[str, Any] = {
        "vectors": rng.uniform(-1.2, 1.2, (n, dim)).tolist(),
        "weights": (rng.normal(size=(n, outputs)) * 10.0 ** rng.uniform(-4, 4)).tolist(),
        "bias": rng.normal(size=outputs).tolist(),
    }
    if kernel.get("function") in HIDDEN:
        expansion["offsets"] = rng.normal(size=n).tolist()
        if seed % 2:
            expansion["vectors"] = in_eight_bits(np.array(expansion["vectors"])).tolist()
    if classes > 2 and rng.random() < 0.6:
        pairs = classes * (classes - 1) // 2
        expansion |= {
            "decision": "ovo",
            "weights": rng.normal(size=(n, classes - 1)).tolist(),
            "bias": rng.normal(size=pairs).tolist(),
            "support_class": rng.integers(0, classes, n).tolist(),
            "break_ties": bool(rng.random() < 0.5),
        }
        decision = "ovo"
    if classes and decision == "functions" and rng.random() < 0.6:
        expansion["calibration"] = [[-float(rng.uniform(0.1, 5)), float(rng.normal())] for _ in range(outputs)]
    if kernel.get("function", "gaussian") == "gaussian" and rng.random() < 0.5:
        expansion["distance"] = "products"
    label: dict[str, Any] = {"classes": [f"c{i}" for i in range(classes)]} if classes else {"outputs": outputs}
    if not classes and rng.random() < 0.3:
        label |= {"low": -0.5, "high": 0.75}
    inputs = {"dim": dim, "max_abs": limits[0] if alike and center is None else limits}
    inputs |= {key: value for key, value in (("center", center), ("scale", scale)) if value is not None}
    return make_spec(
        {"name": "flow", "precision": "int16", "input": inputs, "label": label, "kernel": kernel}
        | {"learning": {"rule": "frozen"}, "expansion": expansion}
        | changes
    )


ONLINE = [
    {"technique": technique, "rule": rule, "dim": dim, "n": n, "kind": kind, "extra": extra}
    for technique, (rule, dim, n, kind, extra) in itertools.product(
        ("nt", "at", "fklms", "fmklms"),
        (
            ("klms", 4, 16, "number", {}),
            ("qklms", 1, 3, "number", {"stages": True}),
            ("klms", 3, 8, "numbers", {"rho": 0.01, "stages": True, "kernel": "matern32"}),
            ("qklms", 2, 5, "classes", {"step_limit": 0.25, "kernel": "matern52"}),
            ("klms", 2, 6, "number", {"kernel": "laplacian"}),
            ("klms", 5, 1, "class", {"projection": "none", "kernel": "matern12"}),
        ),
    )
]


def online(technique: str, rule: str, dim: int, n: int, kind: str, extra: dict[str, Any]) -> Any:
    """A model that learns in int16."""
    learning = {"rule": rule} | {key: extra[key] for key in ("rho", "step_limit") if key in extra}
    reduction = {"technique": technique, "n_max": n, "force": True}
    reduction |= {key: extra[key] for key in ("projection",) if key in extra}
    labels: dict[str, dict[str, Any]] = {
        "number": {"max_abs": 4.0},
        "numbers": {"outputs": 3, "max_abs": 100.0},
        "class": {"classes": ["no", "yes"]},
        "classes": {"classes": ["a", "b", "c"]},
    }
    content: dict[str, Any] = {
        "name": "flow",
        "precision": "int16",
        "input": {"dim": dim, "max_abs": 3.0},
        "label": labels[kind],
        "kernel": {"function": extra["kernel"], "gamma": 1.0} if "kernel" in extra else {"sigma": 1.0},
        "learning": learning,
        "reduction": reduction,
    }
    if extra.get("stages"):
        content["label"] = labels[kind] | {"center": True, "gain": True}
        content["linear"] = {}
    return make_spec(content)


# --------------------------------------------------------------------------------------------------- values


RADIAL = {
    "function": kernels.Int16Function.GAUSSIAN,
    "narrow": True,
    "rooted": False,
    "rises": False,
    "stretch": 1,
    "lift": 0,
} | {
    "multiplies": False,
    "hidden": False,
    "coef0": 0,
    "degree": 1,
    "odd": True,
    "octave_shift": 0,
}


def kernel_values(fine: int, d: Any) -> list[int]:
    """Kernel values of squared distances."""
    config = kernels.Int16KernelConfig.of(INT16, {"fine": fine} | RADIAL)
    run = bind(kernels.kernel_value, INT16)
    return [run(config, np.uint32(each)) for each in d]


def test_a_kernel_value_is_near_the_function() -> None:
    for fine in (0, 4, 8, 15):
        rng, octave = np.random.default_rng(fine), 16 + fine
        d = [0, 1, 2**32 - 1, 2**octave, 2**octave - 1, min(2**32 - 1, 16 * 2**octave)]
        d += rng.integers(0, min(2**32, 18 * 2**octave), 3000).tolist()
        for each, found in zip(d, kernel_values(fine, d), strict=True):
            assert abs(found / kernels.ONE - 2.0 ** -(each / 2**octave)) <= POWER_ERROR + 2.0**-16, (each, fine)
    assert kernel_values(4, [0]) == [kernels.ONE]


@pytest.mark.in_turn
@pytest.mark.parametrize("function", ["matern12", "matern32", "matern52"])
def test_a_matern_kernels_value_is_near_the_function(function: str) -> None:
    for octave in (4, 9, 12, 16):
        numbers = {
            "function": FUNCTIONS[function],
            "rooted": True,
            "rises": function != "matern12",
            "lift": 16 - octave,
        }
        run, rng = bind(kernels.kernel_value, INT16), np.random.default_rng(octave)
        config = kernels.Int16KernelConfig.of(INT16, RADIAL | numbers | {"fine": 0})
        d = [0, 1, 2, 2**32 - 1, *(2.0 ** rng.uniform(0, min(32, 2 * octave + 9), 3000)).astype(np.int64).tolist()]
        found = np.array([run(config, np.uint32(each)) for each in d])
        real = faded(function, np.sqrt(np.array(d, float)) / 2**octave * math.log(2))
        assert (np.abs(found / kernels.ONE - real) <= value_error(function) + 2.0**-16).all()
        assert found[0] == kernels.ONE


def test_a_nearer_input_has_no_smaller_kernel_value() -> None:
    assert all(a >= b for a, b in itertools.pairwise(kernel_values(0, range(0, 2**18, 7))))


@given(st.integers(0, 2**32 - 1))
def test_places(t: int) -> None:
    assert bind(arithmetic.places, INT16)(np.uint32(t)) == max(0, t.bit_length() - 1)


# --------------------------------------------------------------------------------------------------- prediction


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(
    "seed",
    [2, 3, 17, 23, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(200) if i not in (2, 3, 17, 23))],
)
def test_a_frozen_model_is_near_to_real_numbers_and_the_same_in_c(seed: int) -> None:
    spec = frozen(seed)
    family, model = spec.family, HostModel(spec)
    rng, made = np.random.default_rng(seed), spec.conversion
    counts = made.center + np.where(
        rng.random((400, spec.dim)) < 0.3,
        made.most * rng.choice([-1, 0, 1], (400, spec.dim)),
        np.floor(made.most * rng.uniform(-1, 1, (400, spec.dim))),
    ).astype(int)
    x = spec.offsets + counts / spec.counts_per_unit.astype(float)
    assert (spec.raw_inputs(x) == counts).all() and spec.accepts(x).all()
    exact, bound = family.functions(spec, x), family.error_bound(spec)
    found = np.asarray(model.predict(x)).reshape(len(x), -1)
    assert np.isfinite(found).all()
    assert (np.abs(found - family.answers(spec, x)) <= bound).all()
    # what was measured is about the same function as the bound, and the header says no more
    measured = family.measured_error(spec, lambda x: np.asarray(model.predict(x)).reshape(len(x), -1))
    assert (measured <= bound).all(), (measured, bound)
    # inputs that are no counts
    limits_ = made.most * spec.resolutions
    between = spec.unscaled(np.zeros((1, spec.dim))) + limits_ * rng.uniform(-0.999, 0.999, (400, spec.dim))
    between = between[spec.accepts(between)]
    found = np.asarray(model.predict(between)).reshape(len(between), -1)
    assert len(between) and (np.abs(found - family.answers(spec, between)) <= family.error_bound(spec, ROUNDED)).all()
    if model.has("classify") and spec.expansion.decision == "functions":
        sure = np.abs(exact[:, 0]) > bound[0] if exact.shape[1] == 1 else _margin(exact) > 2 * bound.max()
        winners = exact[:, 0] > 0 if exact.shape[1] == 1 else exact.argmax(1)
        assert (model.classify(x) == winners)[sure].all()
    if model.has("probability"):
        p, slopes = model.probability(x), -np.array(spec.expansion.calibration)
        real = 1 / (1 + np.exp(-np.clip(slopes[:, 0] * exact + slopes[:, 1], -500, 500)))
        real = np.column_stack([1 - real, real]) if real.shape[1] == 1 else real
        total = real.sum(1, keepdims=True)
        most = (0.25 * (np.abs(slopes[:, 0]) * bound).max() + 4e-4) * (1 + len(slopes)) / total
        assert (np.abs(p - real / total) <= np.minimum(most, 1)).all() and (p >= 0).all() and (p <= 1).all()
    # in C, with counts at the ends of 16 bits
    report = in_one_build(spec, samples=600)
    assert report.ok, report.rows


@pytest.mark.parametrize("seed", [2, 3, 9, 23, 42])
def test_the_bound_for_rounded_inputs_holds_for_a_coarse_sensor(seed: int) -> None:
    """40 counts from the center to the limit: answers are beyond the bound for exact counts, and within the other."""
    content = frozen(seed).model_dump(mode="json", exclude_unset=True)
    content["input"]["resolution"] = (
        np.broadcast_to(content["input"]["max_abs"], content["input"]["dim"]) / 40
    ).tolist()
    spec = make_spec(content)
    rng, made, family = np.random.default_rng(seed), spec.conversion, spec.family
    x = (made.center + made.most * rng.uniform(-0.98, 0.98, (2000, spec.dim))) * spec.resolutions
    assert spec.accepts(x).all()
    wrong = np.abs(np.asarray(HostModel(spec).predict(x)).reshape(len(x), -1) - family.answers(spec, x)).max(0)
    assert (wrong <= family.error_bound(spec, ROUNDED)).all() and (wrong > family.error_bound(spec)).any()


def test_the_header_says_what_each_bound_is_about() -> None:
    spec = frozen(17)
    assert spec.label.low is not None
    project = build(spec)
    assert project.figures["error_measured"] <= project.figures["error_bound"]
    bounds = [f"{spec.family.error_bound(spec, rounded).max():.2g}" for rounded in (0.0, ROUNDED)]
    text = " ".join(project.files["src/flow.h"].replace(" * ", "").split())
    assert f"No prediction for counts is farther than {bounds[0]} from that of real numbers" in text
    assert f"Where an input was rounded to its count, no prediction is farther than {bounds[1]} from" in text


def _margin(functions: np.ndarray) -> np.ndarray:
    ordered = np.sort(functions, axis=1)
    return np.asarray(ordered[:, -1] - ordered[:, -2])


@pytest.mark.parametrize("seed", [2, 4, 8, 10])
def test_products_and_differences_are_the_same_number(seed: int) -> None:
    """|x|^2 + |v|^2 - 2 v'x modulo 2^32 is |x - v|^2, wherever the latter is below 2^32, which the scales ensure."""
    answers = []
    for distance in ("differences", "products"):
        content = frozen(seed).model_dump(mode="json", exclude_unset=True)
        content["expansion"]["distance"] = distance
        spec = make_spec(content)
        rng = np.random.default_rng(seed)
        made = spec.conversion
        assert ((made.reach + np.abs(spec.scales.vectors)) ** 2).sum(1).max() < 2**32
        x = made.center + made.most * rng.choice([-1, 1], (500, spec.dim))
        answers.append(HostModel(spec, raw=True).predict(x.astype(np.int16)))
    assert (answers[0] == answers[1]).all()


def test_what_is_beyond_its_limit_is_refused() -> None:
    spec = make_spec(
        {"name": "flow", "precision": "int16", "input": {"dim": 2, "max_abs": [1.0, 200.0], "center": [0.5, -100.0]}}
        | {"kernel": {"sigma": 50.0}, "learning": {"rule": "frozen"}}
        | {"expansion": {"vectors": [[0.0, 0.0]], "weights": [[1.0]], "bias": [0.0]}}
    )
    model = HostModel(spec)
    x = [[0.5, -100], [1.5, 100], [1.51, 0], [-0.52, 0], [0, 101], [math.nan, 0], [math.inf, 0], [1e30, 0]]
    statuses = model.ask("predict", x)[1]
    assert statuses.tolist() == [0, 0, -1, -1, -1, -1, -1, -1]
    assert np.isnan(model.predict(x)[2:]).all()
    raw = HostModel(spec, raw=True)
    assert raw.ask("predict", np.array([[-32768, 0], [0, -32768], [32767, 32767]], np.int16))[1].tolist() == [-1] * 3


SENSORS = {"resolution": [2e-4, 2**-13, 1e-3], "offset": [-0.7, 0.0, 101325.3], "center": [-0.7, 0.0, 101325.3]}


def sensors(seed: int = 0, **changes: Any) -> Any:
    """A frozen model of three sensors, of which one is far from 0, and the counts of two are no powers of two."""
    ranges = (10.0 ** np.random.default_rng(seed).uniform(-1, 0, 3)).tolist()
    return make_spec(
        {"name": "flow", "precision": "int16", "kernel": {"sigma": 1.0}, "learning": {"rule": "frozen"}}
        | {"input": {"dim": 3, "max_abs": ranges, **SENSORS, **changes}}
        | {"expansion": {"vectors": [[0.0] * 3], "weights": [[1.0]], "bias": [0.0]}}
    )


FUSING = ("-O2", *(("-march=native",) if takes(QUICK[0], "-march=native") else ()))


@pytest.mark.parametrize("compiler", EACH, ids=str)
def test_counts_in_a_users_file_are_the_hosts_and_the_nearest(compiler: Any) -> None:
    """10^6 floats of any size, and at and beside the middles of two counts, where the compiler may fuse."""
    spec = sensors()
    rng, rows = np.random.default_rng(0), 340_000
    x = near_halves(spec, rows)
    with np.errstate(over="ignore"):
        x[::3] = (10.0 ** rng.uniform(-45, 39, x[::3].shape) * rng.choice([-1, 1], x[::3].shape)).astype(np.float32)
    found = CModel(build(spec), compiler, FUSING).counts(x)
    assert (found == spec.raw_inputs(x)).all()
    # by another way: float32 gives the counts, exact in float64, and no whole number is nearer
    with np.errstate(over="ignore", invalid="ignore"):
        counts = ((x - np.float32(spec.offsets)) * spec.counts_per_unit).astype(float)
        fits, off = (counts >= -32767.5) & (counts < 32767.5), counts - found
    assert (fits == (found != -32768)).all() and 0.4 < fits.mean() < 0.95
    assert ((off >= -0.5) & (off < 0.5))[fits].all()
    assert {-0.5, 0.0} <= set(off[fits]) and off[fits].max() > 0.499999


def test_the_check_sees_a_header_that_a_compiler_may_fuse() -> None:
    """The header of before: -1 for 0 at a tie where multiplication and addition are one operation, and 1 for 0.49999997."""
    spec = sensors()
    old = """    const float counts = (value * per_unit) + 0.5f;
    int32_t whole;
    if (!((counts >= -32767.0f) && (counts < 32768.0f))) {
        return FLOW_CAST(int16_t, -32768);
    }
    whole = FLOW_CAST(int32_t, counts);
    return FLOW_CAST(int16_t, (FLOW_CAST(float, whole) > counts) ? (whole - 1) : whole);
}
"""

    def patch(text: str) -> str:
        return re.sub(r"    const float counts = value.*?\n}\n", lambda _: old, text, flags=re.DOTALL)

    x, y = stream_of(spec, 50, 0, None)
    reference = Reference(build(spec), None, x, y)
    for flags in ("-O2", " ".join(FUSING)):
        row = reference.compare(QUICK[0], flags, patch=patch)
        assert not row["equal"] and "flow_counts.h: the counts differ from the host's for" in row["first_difference"]
    assert reference.compare(QUICK[0], "-O2")["equal"]


def test_a_count_is_of_the_range_and_not_of_the_distance_to_zero() -> None:
    """Pressure of 101,325 Pa, up to 11 more or less: a count was 4 Pa."""
    pressure = {"dim": 1, "center": [101325.3], "max_abs": [11.0]}
    model = {"name": "flow", "precision": "int16", "learning": {"rule": "frozen"}, "input": pressure} | {
        "kernel": {"function": "linear"},
        "expansion": {"vectors": [[1.0]], "weights": [[1.0]], "bias": [0.0]},
    }
    x = (101325.3 + np.linspace(-10.9, 10.9, 1000)).astype(np.float32).astype(float)[:, None]
    wrong = {}
    for offset in (None, 0.0):
        spec = make_spec({**model, "input": pressure | ({} if offset is None else {"offset": offset})})
        taken = spec.accepts(x)
        wrong[offset] = np.abs(HostModel(spec).predict(x[taken]) - (x[taken, 0] - 101325.3)).max()
        assert taken.mean() > 0.7 and np.abs(spec.as_seen(x) - x).max() <= spec.resolutions[0] * 0.51
        assert wrong[offset] <= spec.family.error_bound(spec, ROUNDED)[0]
    assert wrong[None] < 2**-10 and wrong[0.0] > 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "rule",
    [
        {"kernel": {"sigma": 1.0}, "learning": {"rule": "spectrum-nlms"}},
        {"kernel": {"sigma": 1.0}, "learning": {"rule": "qklms"}, "reduction": {"n_max": 16}},
        {"learning": {"rule": "nlms"}},
        {},
    ],
)
def test_labels_are_learned_far_from_zero_as_near_to_it(rule: dict[str, Any]) -> None:
    """The counts are the same; without an offset a label of 101,325 has a count of a 32nd at best."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (3000, 2))
    y = np.round(1024 * (5 * np.sin(x[:, 0]) + x[:, 1])) / 1024
    made = {
        "name": "flow",
        "precision": "int16",
        "input": {"dim": 2, "max_abs": [3.0, 3.0], "center": [0.0, 0.0]},
        **rule,
    }
    answers, wrong = {}, {}
    for where, label in (
        ("near", {"max_abs": 9.0, "high": 4.0}),
        ("far", {"max_abs": 9.0, "high": 101329.0, "offset": 101325.0}),
        ("plain", {"max_abs": 101334.0, "high": 101329.0}),
    ):
        spec = make_spec({**made, "label": label})
        away = 0.0 if where == "near" else 101325.0
        found, statuses = HostModel(spec).prequential(x, y + away)
        answers[where] = found - away
        wrong[where] = np.abs(found - away - y)[1500:].mean()
        assert (statuses >= 0).all() and HostModel(spec).prequential(x[:1], y[:1] + away + 9.1)[1][0] < 0
        header = build(spec).files["src/flow.h"]
        assert ("#define FLOW_LABEL_OFFSET 101325.0" in header) == (where == "far")
    assert np.array_equal(answers["near"], answers["far"]) and answers["far"].max() == 4.0
    assert wrong["plain"] > 10 * wrong["far"]
    report = in_one_build(make_spec({**made, "label": {"max_abs": 9.0, "offset": -500.0}}), samples=400)
    assert report.ok and sum(n for name, n in report.statuses.items() if "refused" not in name) > 200


def test_a_label_offset_is_of_numbers_alone() -> None:
    made = {"name": "flow", "precision": "int16", "input": {"dim": 1, "max_abs": 3.0}}
    for label, message in (
        ({"classes": ["a", "b"], "offset": 3.0}, "is for labels that are numbers"),
        (
            {"max_abs": 10.0, "offset": 500.0, "low": 0.0},
            r"low is 0; it must be within max_abs \(10, measured from 500\)",
        ),
        ({"max_abs": 10.0, "offset": math.inf}, "must be a finite number"),
    ):
        with pytest.raises(UserError, match=message):
            make_spec({**made, "label": label})
    channel = {"channels": ["a"], "max_abs": [10.0], "window": 8, "features": ["mean"]}
    with pytest.raises(UserError, match=r"not channels of \[signal\]; leave offset out"):
        make_spec({"name": "flow", "precision": "int16", "signal": channel, "label": {"column": "a", "offset": 3.0}})
    spec = make_spec(
        {
            "name": "flow",
            "precision": "int16",
            "signal": channel,
            "label": {"column": "y", "max_abs": 9.0, "offset": 500.0},
        }
    )
    assert in_one_build(spec, samples=300).ok
    far, near = (make_spec({**made, "label": {"max_abs": 9.0, "offset": offset}}) for offset in (500.0, 0.0))
    with pytest.raises(UserError, match="is a state of kind"):
        load(HostModel(far), save(HostModel(near)))


def test_counts_whose_zero_is_elsewhere_are_another_model() -> None:
    """A state that was learned around 1,013 means nothing around 1,500, whatever the numbers in it."""
    levels = {"name": "flow", "precision": "int16", "label": {"max_abs": 5.0}}
    near, far = (
        make_spec({**levels, "input": {"dim": 1, "center": [center], "max_abs": [60.0]}}) for center in (1013.0, 1500.0)
    )
    assert near.conversion.parameters() == far.conversion.parameters()
    with pytest.raises(UserError, match="is a state of kind"):
        load(HostModel(far), save(HostModel(near)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"resolution": 2e-4, "offset": None},
            r"resolution is 0.0002 for x\[2\].*counts; give at least .*, or bring \[input\] offset nearer to center",
        ),
        ({"resolution": 9.0, "offset": 0.0}, r"is 9 for x\[0\], more than max_abs, .*; give a smaller one$"),
        (
            {"resolution": None, "offset": [0, 0, 3e9]},
            r"131072 for x\[2\], more than .*; give a smaller one, or bring \[input\] offset nearer to center, because the device counts x\[2\] - offset",
        ),
        ({"offset": [1.0, 2.0]}, r"\[input\] offset holds 2 numbers; it must hold 3, one for each input"),
        ({"offset": 1e300}, r"\[input\] offset is 1e\+300"),
    ],
)
def test_a_refusal_of_counts_names_the_offset_where_it_is_the_cure(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        sensors(**changes)


# --------------------------------------------------------------------------------------------------- learning


def test_until_an_answer_is_compared_with_its_label_the_gain_changes_nothing() -> None:
    """If labels come late, that takes longer than the first labels that the model learns."""
    spec = make_spec(LATE)
    models = HostModel(spec), HostModel(make_spec(LATE | {"label": {**LATE["label"], "gain": False}}))
    x = np.random.default_rng(0).uniform(-3, 3, (300, 2))
    alike, delay = 0, 40
    for t in range(len(x)):
        answers = [model.predict(x[t : t + 1]) for model in models]
        models[0].expect(x[t : t + 1])
        if models[0].memory.field("square")[0] == 0:
            assert np.array_equal(answers[0], answers[1], equal_nan=True), t
            alike += int(models[0].memory.field("count")[0]) >= GAIN_FIRST and bool(np.any(answers[0]))
        for model in models if t >= delay else ():
            model.update(x[t - delay : t - delay + 1], 2 * np.sin(x[t - delay : t - delay + 1, 0]))
    assert alike > 30


def test_a_line_in_int16_is_as_good() -> None:
    rng = np.random.default_rng(0)
    x = np.clip(rng.normal(size=(4000, 3)), -3, 3)
    y = x @ [1.0, -2.0, 0.3] + 0.7 + 0.1 * rng.normal(size=4000)
    errors = {}
    for precision in ("float32", "int16"):
        content = {
            "name": "flow",
            "precision": precision,
            "input": {"dim": 3, "max_abs": 3.5},
            "label": {"max_abs": 9.0},
        }
        answers, _ = HostModel(make_spec(content | {"learning": {"rule": "nlms", "eta": 0.1}})).prequential(x, y)
        errors[precision] = float(np.sqrt(np.mean((answers - y)[2000:] ** 2)))
    assert errors["int16"] <= 1.05 * errors["float32"] <= 0.12, errors


@pytest.mark.parametrize("technique", ["fklms", "fmklms"])
def test_neighbours_are_exact_or_bounds(technique: str) -> None:
    spec = online(technique, "klms", 3, 12, "number", {})
    model = HostModel(spec, raw=True)
    x, y = mixed_stream(spec, 3000, seed=2)
    for row in range(0, len(x), 50):
        model.update(x[row : row + 50], y[row : row + 50])
        n = int(model.memory.field("n")[0])
        v = model.memory.field("v")[:n].astype(np.int64)
        distances = ((v[:, None] - v[None]) ** 2).sum(-1)
        np.fill_diagonal(distances, 2**31 - 1)
        told = model.memory.field("neighbour")[:n].astype(np.int64)
        nearest = distances.min(1, initial=2**31 - 1)
        assert (np.where(told > 0, told == nearest, -told <= nearest)).all()


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("technique", ["nt", "at", "fklms", "fmklms"])
@pytest.mark.parametrize("stages_", [False, True])
def test_int16_learns_as_well_as_real_numbers(technique: str, stages_: bool) -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, (4000, 2))
    y = np.sin(2 * x[:, 0]) * x[:, 1] + 0.3 * x[:, 0] + 0.05 * rng.normal(size=4000) + (1.5 if stages_ else 0)
    errors = {}
    for precision in ("float32", "int16"):
        content: dict[str, Any] = {"name": "flow", "precision": precision, "input": {"dim": 2, "max_abs": 3.0}}
        content |= {"kernel": {"sigma": 0.7}, "label": {"max_abs": 8.0}}
        content |= {"learning": {"rule": "klms"}, "reduction": {"technique": technique, "n_max": 40}}
        if stages_:
            content["label"] |= {"center": True, "gain": True, "horizon": 1024}
        answers, _ = HostModel(make_spec(content)).prequential(x, y)
        errors[precision] = float(np.sqrt(np.mean((answers - y)[2000:] ** 2)))
    assert errors["int16"] <= 1.1 * errors["float32"], errors


def test_what_is_beyond_a_limit_has_its_status() -> None:
    model = HostModel(online("fklms", "klms", 2, 4, "number", {"stages": True}))
    model.update([[0.5, 0.5]] * 30 + [[-0.5, 1]] * 30, [1.0] * 60)
    assert model.update([[1.0, 1.0]], [2.0])[0] > 0
    assert model.update([[9.0, 1.0]], [2.0])[0] == -1 and model.update([[1.0, 1.0]], [4.1])[0] == -2
    assert model.update([[1.0, 1.0]], [math.nan])[0] == -2


# --------------------------------------------------------------------------------------------------- specs

REFUSED = {
    "[input] max_abs is missing; int16 needs the range of each input": {"input": {"dim": 2}},
    "[input] max_abs holds 0; give one number from 1e-20 to 1e20": {"input": {"dim": 2, "max_abs": 0}},
    "[input] max_abs holds 3 numbers; it must hold 2": {"input": {"dim": 2, "max_abs": [1.0, 2.0, 3.0]}},
    "[input] resolution is 1e-06 for x[0], which then has up to 1,000,000 counts; give at least 3.05e-05": {
        "input": {"dim": 2, "max_abs": 1.0, "resolution": 1e-6}
    },
    "[input] resolution is 5 for x[0], more than max_abs, 1": {"input": {"dim": 2, "max_abs": 1.0, "resolution": 5.0}},
    "[input] max_abs allows inputs that are too far apart for 16 bits": {"kernel": {"sigma": 1e-3}},
    "[label] max_abs is missing; int16 needs the range of the labels": {"label": {}},
    "[kernel] function is sigmoid, which int16 does not compute; choose gaussian, laplacian, matern12": {
        "kernel": {"function": "sigmoid", "gamma": 1.0}
    },
    "[kernel] function is linear, which int16 cannot learn with": {"kernel": {"function": "linear"}},
    'precision is "int16", which only klms, qklms, nlms, rls, expansion-nlms, expansion-rls, expansion-softmax, spectrum-nlms, spectrum-ekf, frozen can have; for krls-t, choose': {
        "learning": {"rule": "krls-t"}
    },
    "[reduction] technique is 'mklms'; did you mean 'fmklms'?": {"reduction": {"technique": "mklms"}},
    "[learning] rho is 1e-09": {"learning": {"rule": "klms", "rho": 1e-9}},
    "[reduction] projection nt with projection fklms diverges or learns little": {
        "reduction": {"technique": "nt", "projection": "fklms"}
    },
    "[linear] is for labels that are numbers": {"label": {"classes": ["a", "b"]}, "linear": {}},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_refusals(sentence: str) -> None:
    content: dict[str, Any] = {
        "name": "flow",
        "precision": "int16",
        "input": {"dim": 2, "max_abs": 1.0},
        "label": {"max_abs": 1.0},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": "klms"},
    }
    with pytest.raises(UserError) as caught:
        make_spec(content | REFUSED[sentence])
    assert sentence in str(caught.value)


def test_without_a_rule_there_is_a_model_that_learns_well() -> None:
    content = {"name": "flow", "precision": "int16", "input": {"dim": 4, "max_abs": [2.0, 20.0, 0.1, 1.0]}}
    spec = make_spec(content | {"label": {"max_abs": 10.0}})
    vectors = make_spec(content | {"label": {"max_abs": 10.0}, "reduction": {}})
    assert (vectors.learning.rule, vectors.reduction.technique) == ("qklms", "nt")
    assert spec.learning.rule == "spectrum-ekf" and vectors.kernel.sigma < spec.kernel.sigma == float(
        f"{1.4 * width(4):.4g}"
    )
    for each in (spec, vectors):
        assert each.label.center and each.label.gain and each.linear is not None
        assert each.input.scale == (1.5, 0.15, 30.0, 3.0)
    given = make_spec(content | {"label": {"max_abs": 10.0}, "kernel": {"sigma": 3.0}})
    assert given.input.scale is None and given.kernel.sigma == 3.0


def test_without_a_rule_the_features_of_a_signal_are_in_parts_of_their_range_too() -> None:
    """They were a third as large as they would be in columns: a kernel so wide learned a logistic map five times worse."""
    x = [0.3]
    for _ in range(3000):
        x.append(3.8 * x[-1] * (1 - x[-1]))
    signal = {"channels": ["a"], "max_abs": 1.0, "lags": [0, 1]}
    spec = make_spec({"name": "flow", "precision": "int16", "signal": signal, "label": {"column": "a"}})
    columns = {"columns": ["a", "b"], "max_abs": list(spec.input.max_abs), "resolution": list(spec.input.resolution)}
    plain = make_spec({"name": "flow", "precision": "int16", "input": columns, "label": {"max_abs": 1.0}})
    assert spec.learning.rule == plain.learning.rule == "spectrum-ekf"
    assert spec.input.scale == plain.input.scale and spec.kernel == plain.kernel
    batches = list(steps_of(spec, [Batch(np.array(x)[:, None], np.zeros(len(x)), 0)]))
    features, truth = (np.concatenate([getattr(batch, key) for batch in batches]) for key in ("x", "y"))
    known = ~np.isnan(truth)
    answers = HostModel(spec.inner).prequential(features, truth)[0][known]
    left = np.sqrt(np.mean((answers - truth[known])[1500:] ** 2))
    assert left < 0.06 * np.std(x)
    named = {"learning": {"rule": "spectrum-nlms"}, "kernel": {"sigma": 1.0}}
    given = make_spec({"name": "flow", "precision": "int16", "signal": signal, "label": {"column": "a"}} | named)
    assert given.input.scale == (1.0, 1.0)


def test_ram_is_far_below_that_of_real_numbers() -> None:
    for technique in ("nt", "fklms"):
        sizes = {}
        for precision in ("float32", "int16"):
            content: dict[str, Any] = {"name": "flow", "precision": precision, "input": {"dim": 8, "max_abs": 3.0}}
            content |= {"kernel": {"sigma": 1.0}, "label": {"max_abs": 4.0}, "learning": {"rule": "klms"}}
            sizes[precision] = build(make_spec(content | {"reduction": {"technique": technique, "n_max": 32}})).figures
        assert sizes["int16"]["ram_bytes"] <= 0.6 * sizes["float32"]["ram_bytes"], sizes
    assert FLOAT32.is_int16 is False and INT16.is_int16


def test_a_network_written_by_hand_keeps_its_answers() -> None:
    """Inputs and weights of very different size have units of their own."""
    tables = {"vectors": [[-0.00122]], "offsets": [0.3], "weights": [[2.0]], "bias": [0.1]}
    content = {"name": "m", "precision": "int16", "input": {"dim": 1, "max_abs": 1000.0}, "expansion": tables}
    spec = make_spec(content | {"kernel": {"function": "relu"}, "learning": {"rule": "frozen"}})
    x = spec.as_seen(np.linspace(-990, 990, 99)[:, None])
    exact = 2 * np.maximum(0.3 - 0.00122 * x[:, 0], 0) + 0.1
    assert np.abs(HostModel(spec).predict(x).ravel() - exact).max() < 2e-4
