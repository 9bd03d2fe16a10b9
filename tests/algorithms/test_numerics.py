"""exp, sqrt and the other elementary functions: accuracy, order, and the same bits plain and jitted."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath
import numba
import numpy as np
import pytest

from pykernel.algorithms import elementary as numerics
from pykernel.algorithms.elementary import (
    COSINE_POLYNOMIAL,
    EXP2_LOWEST,
    EXP2_POLYNOMIAL,
    EXP_LOWEST,
    EXP_POLYNOMIAL,
    FLOOR_EXPONENT,
    LOG2_POLYNOMIAL,
    SINE_POLYNOMIAL,
    TANH_POLYNOMIAL,
    WHOLE,
    exp2_negative,
    exp_negative,
    log2_one_plus,
)
from pykernel.algorithms.elementary import cosine as cosine_kernel
from pykernel.algorithms.elementary import sine as sine_kernel
from pykernel.dialect import (
    FLOAT32,
    FLOAT64,
    Kernel,
    Precision,
    Real,
    absolute,
    bind,
    floor_log2,
    kernel,
    pow2,
    pow2_rounded,
    sqrt,
    truncate,
)
from tests.support import ROOT
from tests.support.dialect_cases import numba_function

if np.finfo(np.longdouble).eps == np.finfo(np.float64).eps:
    pytest.skip("exact values are taken from a long double, which is a double here", allow_module_level=True)

BOTH = pytest.mark.parametrize("precision", [FLOAT32, FLOAT64], ids=str)
LN2 = np.log(np.longdouble(2))


@numba.njit
def _each(f, x, y):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        y[i] = f(x[i])


def over(function: Callable, inputs: np.ndarray, result: Any = None) -> np.ndarray:
    """A jitted function of one argument, for each element."""
    outputs = np.empty(inputs.shape, result or inputs.dtype)
    _each(function, inputs, outputs)
    return outputs


def plainly(k: Kernel, precision: Precision, inputs: np.ndarray, result: Any = None) -> np.ndarray:
    function = bind(k, precision)
    take = int if inputs.dtype.kind == "i" else precision.real
    return np.array([function(take(x)) for x in inputs], result or inputs.dtype)


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def neighbours(centres: np.ndarray, each_side: int) -> np.ndarray:
    """The numbers around each centre, in ascending bit patterns (for negative numbers: descending values)."""
    integer = np.int32 if centres.dtype == np.float32 else np.int64
    steps = np.arange(-each_side, each_side + 1, dtype=integer)
    return np.add.outer(centres.view(integer), steps).view(centres.dtype)


def special(precision: Precision) -> np.ndarray:
    tiny = np.finfo(precision.dtype).smallest_subnormal
    normal = np.finfo(precision.dtype).tiny
    eps = np.finfo(precision.dtype).eps
    largest = np.finfo(precision.dtype).max
    values = [0.0, tiny, 2 * tiny, normal - tiny, normal, normal + tiny, eps / 4, eps / 2, eps, 2.0**-12, 0.5, 1, 2]
    values += [41.5, 41.6, 42, 87, 88, 104, 709, 746, 2.0**31, 2.0**63, largest, np.inf]
    return np.append(-np.array(values, precision.dtype), [precision.real(0), precision.real(np.nan)])


# --------------------------------------------------------------------------------------------------------- exp


@BOTH
def test_exp_special_values(precision: Precision) -> None:
    lowest = EXP_LOWEST.value(precision)
    assert lowest == precision.real(-FLOOR_EXPONENT * LN2)
    exp = numba_function(exp_negative, precision)
    below = np.nextafter(lowest, precision.real(-np.inf))
    for x in (below, precision.real(-1e4), precision.real(-np.inf), precision.real(np.nan)):
        assert exp(x) == 0
    # at the floor itself the result is 2^-60 but for the rounding of the floor
    assert abs(float(exp(lowest)) * 2.0**60 - 1) < 64 * np.finfo(precision.dtype).eps
    assert exp(precision.real(0)) == exp(precision.real(-0.0)) == 1
    assert exp(-np.finfo(precision.dtype).smallest_subnormal) == 1


# --------------------------------------------------------------------------------------------------------- exp2


@BOTH
def test_exp2_special_values(precision: Precision) -> None:
    exp2 = numba_function(exp2_negative, precision)
    for k in range(FLOOR_EXPONENT + 1):  # whole powers are exact, so k(v, v) = 1
        assert exp2(precision.real(-k)) == precision.real(2.0**-k)
    lowest = precision.real(EXP2_LOWEST.value(precision))
    assert lowest == -FLOOR_EXPONENT
    for t in (np.nextafter(lowest, precision.real(-np.inf)), *precision.dtype.type([-1e4, -np.inf, np.nan])):
        assert exp2(t) == 0
    assert exp2(precision.real(-0.0)) == exp2(-np.finfo(precision.dtype).smallest_subnormal) == 1


# ------------------------------------------------------------------------------- functions that rise or fall

NEGATIVE_ZERO, NEGATIVE_INFINITY = 0x80000000, 0xFF800000


class Rising(NamedTuple):
    """A function that rises with its argument, and how far it may be off."""

    exact: Callable
    in_mpmath: Callable
    least: float  # below it in size, no result is looked at
    ulp: float
    disorder: float  # largest step against the order, in ulp
    highest: float  # of its domain
    most: float  # of its results
    centres: list[float]  # where branches meet, k changes and results begin to differ from 1


HALVES = [k / 2 for k in range(1, 2 * FLOOR_EXPONENT + 1)]
LOW, HALF = 2.0**-FLOOR_EXPONENT, np.nextafter(np.float32(0.5), np.float32(0))
BRANCHES = [0.625, 2.0**-12, 0.693147, 1.0, 8.5, 9.01, 17.0, 20.8, 41.58]
FUNCTIONS = {
    "exp_negative": Rising(lambda x: np.exp(x), mpmath.exp, LOW, 1, 0, -0.0, 1, [-1e-7, *(-x * float(LN2) for x in HALVES)]),
    "exp2_negative": Rising(
        lambda x: np.exp2(x), lambda t: mpmath.power(2, t), LOW, 2, 2, HALF, 1.4142137, [2.0**-24, -(2.0**-25), *(-x for x in HALVES)]
    ),
    "hyperbolic_tangent": Rising(lambda x: np.tanh(x), mpmath.tanh, 1e-45, 2, 1, np.inf, 1, [*BRANCHES, *(-x for x in BRANCHES)]),
    "logistic": Rising(
        lambda x: 1 / (1 + np.exp(-x)), lambda x: 1 / (1 + mpmath.exp(-x)), 2.0**-59, 2, 1, np.inf, 1,
        [*BRANCHES, *(-x for x in BRANCHES)],
    ),
}  # fmt: skip
EACH = pytest.mark.parametrize("name", FUNCTIONS)
RISING = pytest.mark.parametrize("name", ["hyperbolic_tangent", "logistic"])


@numba.njit
def _scan_rising(function, exact, least, most, first, last, stride):  # type: ignore[no-untyped-def]
    """Over float32 bit patterns of one sign: (largest error in ulp where the result is not below ``least`` in size, where,
    largest step against the order in ulp, results beyond ``most``)."""
    worst, where, disorder, beyond = 0.0, first, 0.0, 0
    previous = np.float64(function(np.uint32(first).view(np.float32)))
    for bits in range(first, last + 1, stride):
        x = np.uint32(bits).view(np.float32)
        y, known = np.float64(function(x)), exact(np.float64(x))
        if abs(known) >= least:
            ulp = 2.0 ** max(np.floor(np.log2(abs(known))) - 23, -149)
            error = abs(y - known) / ulp
            if error > worst:
                worst, where = error, bits
            wrong = (y - previous if x < 0 else previous - y) / ulp
            if wrong > disorder:
                disorder = wrong
        if not (abs(y) <= most):
            beyond += 1
        previous = y
    return worst, where, disorder, beyond


@EACH
def test_float32_over_all_bit_patterns(name: str, exhaustive: bool) -> None:
    """Every float32 of the domain, infinities too (exhaustive: each one; else about a million of each sign)."""
    rule, function = FUNCTIONS[name], numba_function(getattr(numerics, name), FLOAT32)
    exact, stride = numba.njit(rule.exact), 1 if exhaustive else 2039
    ends = [(NEGATIVE_ZERO, NEGATIVE_INFINITY)]
    if rule.highest > 0:
        ends.append((0, int(np.float32(rule.highest).view(np.uint32))))
    middles = [int(np.float32(centre).view(np.uint32)) for centre in rule.centres]
    parts = [(*each, stride) for each in ends] + [(each - 10_000, each + 10_000, 1) for each in middles]
    for first, last, step in parts:
        worst, where, disorder, beyond = _scan_rising(function, exact, rule.least, rule.most, first, last, step)
        at = np.uint32(where).view(np.float32)
        assert worst <= rule.ulp and disorder <= rule.disorder and not beyond, (at, worst, disorder)


def inputs_of(rule: Rising, rng: np.random.Generator, count: int, turn: int) -> np.ndarray:
    """Evenly, over the magnitudes, around where branches meet."""
    size = np.exp(rng.uniform(-60 if rule.highest > 1 else -40, 3.7, count)) * rng.choice([-1.0, 1.0], count)
    near = rng.choice(rule.centres, count) * (1 + np.exp(rng.uniform(-37, -1, count)))
    x = (rng.uniform(-41, 41, count), size, near)[turn % 3]
    return x if rule.highest > 1 else np.clip(-np.abs(x), -FLOOR_EXPONENT * float(LN2), None)


@EACH
def test_float64_is_within_its_bound(name: str, exhaustive: bool) -> None:
    rule, rng = FUNCTIONS[name], np.random.default_rng(0)
    function = numba_function(getattr(numerics, name), FLOAT64)
    for turn in range(500 if exhaustive else 6):
        x = inputs_of(rule, rng, 200_000, turn)
        exact, y = rule.exact(x.astype(np.longdouble)), over(function, x)
        kept = np.abs(exact) >= rule.least
        size = np.ldexp(np.longdouble(1), np.frexp(exact)[1] - 1 - FLOAT64.bits)
        assert (np.abs(y) <= rule.most).all() and (np.abs(y - exact) / size)[kept].max() <= rule.ulp
    with mpmath.workdps(50):  # and against a library that shares nothing with this one
        for x in inputs_of(rule, rng, 300, 0):
            y = function(x)
            assert abs(mpmath.mpf(float(y)) - rule.in_mpmath(mpmath.mpf(float(x)))) <= 2 * np.spacing(abs(y))


@pytest.mark.in_turn(9)
@BOTH
@RISING
def test_rising_functions_at_special_values_plain_and_jitted(name: str, precision: Precision) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([
        special(precision),
        -special(precision),
        neighbours(precision.dtype.type([-0.625, 0.625, -20.8, 20.8, 1.0, -1.0]), 3).ravel(),
        rng.uniform(-43, 43, 3000),
        np.exp(rng.uniform(-90, 5, 3000)) * rng.choice([-1, 1], 3000),
    ]).astype(precision.dtype)  # fmt: skip
    jitted = over(numba_function(getattr(numerics, name), precision), x)
    assert same_bits(jitted, plainly(getattr(numerics, name), precision, x))
    assert not np.isnan(jitted).any() and (jitted[np.isnan(x)] == 1).all()
    function = numba_function(getattr(numerics, name), precision)
    if name == "hyperbolic_tangent":
        numbers = x[~np.isnan(x)]
        assert (over(function, -numbers) == -over(function, numbers)).all()
        assert [function(precision.real(v)) for v in (0, np.inf, -np.inf)] == [0, 1, -1]
    else:
        assert [function(precision.real(v)) for v in (0, np.inf, -np.inf)] == [0.5, 1, 0]
        assert jitted[~np.isnan(x)].min() >= 0


# --------------------------------------------------------------------------------------------- cosine and sine

TWO_PI = 2 * np.longdouble("3.14159265358979323846264338327950288")


@numba.njit
def _exact_cosine(x):  # type: ignore[no-untyped-def]
    """cos(2 pi x) of a float32 in float64, whose errors are 2^-29 of a float32 ulp."""
    rest = abs(np.fmod(np.float64(x), 1.0))
    rest = min(rest, 1.0 - rest)
    near = min(rest, 0.5 - rest)
    value = np.cos(2 * np.pi * near) if near <= 0.125 else np.sin(2 * np.pi * (0.25 - near))
    return value if rest <= 0.25 else -value


def exact_cosine(x: np.ndarray) -> np.ndarray:
    """cos(2 pi x) in long double, of float64."""
    rest = np.abs(np.fmod(x, 1.0))
    rest = np.minimum(rest, 1 - rest)
    near = np.minimum(rest, 0.5 - rest).astype(np.longdouble)
    value = np.where(near <= 0.125, np.cos(TWO_PI * near), np.sin(TWO_PI * (np.longdouble(0.25) - near)))
    return np.where(rest <= 0.25, value, -value)


@numba.njit
def _exact_sine(x):  # type: ignore[no-untyped-def]
    """sin(2 pi x) of a float32 in float64, whose errors are 2^-29 of a float32 ulp."""
    rest = abs(np.fmod(np.float64(x), 1.0))
    sign = 1.0 if (x >= 0) == (rest <= 0.5) else -1.0
    rest = min(rest, 1.0 - rest)
    rest = min(rest, 0.5 - rest)
    return sign * (np.sin(2 * np.pi * rest) if rest <= 0.125 else np.cos(2 * np.pi * (0.25 - rest)))


def exact_sine(x: np.ndarray) -> np.ndarray:
    """sin(2 pi x) in long double, of float64."""
    rest = np.abs(np.fmod(x, 1.0))
    sign = np.where((x >= 0) == (rest <= 0.5), 1, -1)
    rest = np.minimum(rest, 1 - rest)
    rest = np.minimum(rest, 0.5 - rest).astype(np.longdouble)
    return sign * np.where(rest <= 0.125, np.sin(TWO_PI * rest), np.cos(TWO_PI * (np.longdouble(0.25) - rest)))


@numba.njit
def _scan_wave(wave, exactly, first, last, stride):  # type: ignore[no-untyped-def]
    """Over float32 bit patterns of finite numbers: (largest error in ulp of the result, where, results beyond 1)."""
    worst, where, beyond = 0.0, first, 0
    for bits in range(first, last, stride):
        x = np.uint32(bits).view(np.float32)
        y, exact = np.float64(wave(x)), exactly(x)
        if exact != 0:
            error = abs(y - exact) / max(2.0 ** (np.floor(np.log2(abs(exact))) - 23), 2.0**-149)
        else:
            error = 0.0 if y == 0 else np.inf
        if error > worst:
            worst, where = error, bits
        if not (abs(y) <= 1):
            beyond += 1
    return worst, where, beyond


WAVES = pytest.mark.parametrize("name", ["cosine", "sine"])
EXACT = {"cosine": (cosine_kernel, _exact_cosine, exact_cosine), "sine": (sine_kernel, _exact_sine, exact_sine)}


@WAVES
def test_waves_in_float32_over_all_bit_patterns(name: str, exhaustive: bool) -> None:
    """Every finite float32 of both signs (exhaustive: each one; else about a million spread over all)."""
    made, exactly, _ = EXACT[name]
    wave = numba_function(made, FLOAT32)
    stride = 1 if exhaustive else 4079
    for sign in (0, 0x80000000):
        worst, where, beyond = _scan_wave(wave, exactly, sign, sign + 0x7F800000, stride)
        print(
            f"{name}, float32, every {stride}th bit pattern: at most {worst:.4f} ulp, at {np.uint32(where).view(np.float32)!r}"
        )
        assert worst <= 2 and not beyond
    # densely where the branches meet, and where numbers become whole
    for centre in [k / 8 for k in range(1, 17)] + [2.0**22, 2.0**23, 2.0**24]:
        middle = int(np.float32(centre).view(np.uint32))
        worst, _, beyond = _scan_wave(wave, exactly, middle - 20_000, middle + 20_000, 1)
        assert worst <= 2 and not beyond


@WAVES
def test_waves_in_float64_are_within_two_ulp(name: str, exhaustive: bool) -> None:
    made, _, exactly = EXACT[name]
    wave = numba_function(made, FLOAT64)
    rng = np.random.default_rng(0)
    worst, block = 0.0, 250_000
    for turn in range(200 if exhaustive else 6):
        x = (
            rng.uniform(-2, 2, block)
            if turn % 2
            else np.exp(rng.uniform(-40, 36.7, block)) * rng.choice([-1, 1], block)
        )
        if turn % 3 == 0:  # around the branches and the zeros
            x = (np.round(8 * x) / 8) * (1 + np.exp(rng.uniform(-37, -3, block)))
        y, exact = over(wave, x), exactly(x)
        assert (np.abs(y) <= 1).all() and not y[exact == 0].any()
        size = np.ldexp(np.longdouble(1), np.frexp(exact)[1] - 1 - FLOAT64.bits)
        worst = max(worst, float((np.abs(y - exact) / size)[exact != 0].max()))
    print(f"{name}, float64, {(turn + 1) * block:.0e} samples: at most {worst:.4f} ulp")
    assert worst <= 2


@BOTH
def test_the_sine_is_odd_and_zero_for_what_is_no_angle(precision: Precision) -> None:
    sine = numba_function(sine_kernel, precision)
    whole = precision.real(WHOLE.value(precision))
    for x, y in ((0.25, 1), (0.5, 0), (0.75, -1), (1, 0), (3.25, 1), (2.5, 0)):
        assert sine(precision.real(x)) == precision.real(y) and sine(precision.real(-x)) == precision.real(-y)
    for x in (0.0, whole, np.finfo(precision.dtype).max, np.inf, -np.inf, np.nan):
        assert sine(precision.real(x)) == 0
    least = np.finfo(precision.dtype).smallest_subnormal
    assert sine(least) == 6 * least and sine(-least) == -6 * least


@BOTH
def test_cosine_special_values(precision: Precision) -> None:
    cosine = numba_function(cosine_kernel, precision)
    whole = precision.real(WHOLE.value(precision))
    half = np.nextafter(whole / 2, precision.real(0))  # its last bit is a half
    for x, y in ((0, 1), (0.25, 0), (0.5, -1), (0.75, 0), (1, 1), (3.25, 0), (2.5, -1), (whole, 1)):
        for signed in (precision.real(x), precision.real(-x)):
            assert cosine(signed) == precision.real(y), signed
    assert cosine(half) == -1 and cosine(-half) == -1
    for x in (whole - 1, whole, 2 * whole, np.finfo(precision.dtype).max, np.inf, -np.inf, np.nan):
        assert cosine(precision.real(x)) == 1
    assert cosine(np.finfo(precision.dtype).smallest_subnormal) == 1


def test_the_tables_are_those_that_the_script_prints() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.host.exp_tables"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    parts = re.split(r"^(\w+ \w+) truncation error.*$", ran.stdout, flags=re.MULTILINE)[1:]
    printed = {name: [float(v) for v in text.split()] for name, text in zip(parts[::2], parts[1::2], strict=True)}
    tables = {
        "EXP_POLYNOMIAL": EXP_POLYNOMIAL,
        "EXP2_POLYNOMIAL": EXP2_POLYNOMIAL,
        "SINE_POLYNOMIAL": SINE_POLYNOMIAL,
        "LOG2_POLYNOMIAL": LOG2_POLYNOMIAL,
        "TANH_POLYNOMIAL": TANH_POLYNOMIAL,
        "COSINE_POLYNOMIAL": COSINE_POLYNOMIAL,
    }
    assert printed == {
        f"{name} {precision}": list(values)
        for name, t in tables.items()
        for precision, values in t.by_precision.items()
    }


# -------------------------------------------------------------------------------------------------- intrinsics


@kernel
def square_root(x: Real) -> Real:  # type: ignore[valid-type]
    return sqrt(x)


@kernel
def magnitude(x: Real) -> Real:  # type: ignore[valid-type]
    return absolute(x)


def positive_patterns(precision: Precision, count: int) -> np.ndarray:
    """Positive numbers spread evenly over bit patterns, subnormals and infinity included."""
    top = int(np.array(np.inf, precision.dtype).view(precision.integer))
    return (
        np.append(np.linspace(0, top - 1, count).astype(precision.integer), [0, 1, 2, top])
        .astype(precision.integer)
        .view(precision.dtype)
    )


@BOTH
def test_sqrt_is_correctly_rounded_everywhere_alike(precision: Precision) -> None:
    x = positive_patterns(precision, 5000)
    jitted = over(numba_function(square_root, precision), x)
    assert same_bits(jitted, plainly(square_root, precision, x))
    wide = np.longdouble if precision is FLOAT64 else np.float64
    assert same_bits(jitted, np.sqrt(x.astype(wide)).astype(precision.dtype))
    assert np.isnan(numba_function(square_root, precision)(precision.real(-1)))


@BOTH
def test_truncate_rounds_toward_zero(precision: Precision) -> None:
    rng = np.random.default_rng(0)
    ends = np.nextafter(precision.real(2.0**31), precision.real(0))
    x = np.append(rng.normal(0, 1e4, 2000), [0.0, -0.0, 0.5, -0.5, 0.999999, -0.999999, -1.0, ends, -ends]).astype(
        precision.dtype
    )
    jitted = over(numba_function(truncate, precision), x, np.int64)
    assert same_bits(jitted, plainly(truncate, precision, x, np.int64))
    assert same_bits(jitted, np.trunc(x).astype(np.int64))


@BOTH
def test_pow2_over_all_normal_exponents(precision: Precision) -> None:
    k = np.arange(1 - precision.bias, precision.bias + 1)
    expected = np.ldexp(precision.real(1), k)
    assert same_bits(over(numba_function(pow2, precision), k, precision.dtype), expected)
    assert same_bits(plainly(pow2, precision, k, precision.dtype), expected)
    for beyond in (-precision.bias, precision.bias + 1):
        with pytest.raises(OverflowError):
            bind(pow2, precision)(beyond)


@BOTH
def test_pow2_rounded_over_all_normal_exponents(precision: Precision) -> None:
    """Also of smaller numbers, whole or not: they give zero."""
    d = np.arange(1, 2 * precision.bias + 1)
    start = precision.real(2.0**precision.bits)
    below = np.array([start, start - 0.5, start / 2, 1.5, 0.0, -0.0, -1.0, -start, -1e30, -np.inf], precision.dtype)
    x = np.append(start + d.astype(precision.dtype), below)
    expected = np.append(np.ldexp(precision.real(1), d - precision.bias), np.zeros(len(below), precision.dtype))
    assert same_bits(over(numba_function(pow2_rounded, precision), x, precision.dtype), expected)
    assert same_bits(plainly(pow2_rounded, precision, x, precision.dtype), expected)
    for beyond in (start + 2 * precision.bias + 1, precision.real(np.nan)):
        with pytest.raises(OverflowError):
            bind(pow2_rounded, precision)(beyond)


@BOTH
def test_floor_log2_over_all_exponents(precision: Precision) -> None:
    """Also of what is no normal number: NaN and infinity are one above, zero and subnormal numbers one below."""
    k = np.arange(1 - precision.bias, precision.bias + 1)
    low = np.ldexp(precision.real(1), k)
    tiny, odd = np.nextafter(low[0], 0, dtype=precision.dtype), [np.inf, np.nan]
    below = [tiny, 0.0]
    x = np.array([*low, *np.nextafter(2 * low[:-1], 0, dtype=precision.dtype), *odd, *below], precision.dtype)
    expected = np.array([*k, *k[:-1], *[precision.bias + 1] * 2, *[-precision.bias] * 2])
    for sign in (1, -1):
        jitted = over(numba_function(floor_log2, precision), sign * x, np.int64)
        assert same_bits(jitted, expected)
        assert same_bits(plainly(floor_log2, precision, sign * x, np.int64), expected)


@BOTH
def test_log2_of_all_magnitudes(precision: Precision) -> None:
    rng = np.random.default_rng(0)
    most = float(np.finfo(precision.dtype).max)
    x = np.concatenate(
        [np.exp2(rng.uniform(-60, np.log2(most) - 0.01, 20000)), 2.0 ** np.arange(precision.bias), [0.0, most]]
    ).astype(precision.dtype)
    found = over(numba_function(log2_one_plus, precision), x, precision.dtype)
    assert same_bits(found, plainly(log2_one_plus, precision, x, precision.dtype))
    right = np.log1p(x.astype(np.longdouble)) / np.log(np.longdouble(2))
    assert (np.abs(found - right) <= 4 * np.spacing(np.abs(right).astype(precision.dtype))).all()
    for bad in (np.inf, np.nan):
        assert np.isnan(bind(log2_one_plus, precision)(precision.real(bad)))
