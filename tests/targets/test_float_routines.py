"""Our float routines for ARMv6-M and ARMv7-M, on emulated CPUs: the bits of this PC's FPU, and bounded time."""

import numpy as np
import pytest

from pykernel.errors import CheckFailed
from pykernel.gen.compilers import compile_c, write_sources
from pykernel.language.ranges import Turns
from pykernel.spec.model import make_spec
from pykernel.targets.bound import Code, longest
from pykernel.targets.build import (
    Image,
    found_toolchains,
    model_files,
    public_functions,
    toolchain,
    undefined_symbols,
)
from pykernel.targets.flow import Graph, Records
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import MAILBOX, EmulatedCpu
from tests.support.built import built
from tests.support.tools import need

pytest.importorskip("unicorn")

TARGET = find_target("cortex-m0plus")
BOUNDS = {"cortex-m0plus": (80, 69, 156), "cortex-m3": (51, 53, 122)}
"""Most instructions of a product, a sum and a quotient."""
NAMES = (
    *(f"f{name}" for name in "mul add sub rsub div cmpeq cmplt cmple cmpge cmpgt cmpun".split()),
    *("i2f", "ui2f", "f2iz", "f2uiz"),
)
LOOP = """
#include <stdint.h>
#include "flow_float.h"

typedef union { uint32_t bits; float real; } pair_t;
float __aeabi_frsub(float a, float b);
void run(const uint32_t *pairs, uint32_t *results, uint32_t count);

void run(const uint32_t *pairs, uint32_t *results, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        pair_t a, b, made;
        a.bits = *pairs++;
        b.bits = *pairs++;
        made.real = a.real * b.real;
        *results++ = made.bits;
        made.real = a.real + b.real;
        *results++ = made.bits;
        made.real = a.real - b.real;
        *results++ = made.bits;
        made.real = __aeabi_frsub(a.real, b.real);
        *results++ = made.bits;
        made.real = a.real / b.real;
        *results++ = made.bits;
        made.real = (float)(int32_t)a.bits;
        *results++ = made.bits;
        made.real = (float)a.bits;
        *results++ = made.bits;
        *results++ = (uint32_t)(int32_t)a.real;
        *results++ = (uint32_t)b.real;
        *results++ = (uint32_t)((a.real == b.real) | (a.real < b.real) << 1 | (a.real <= b.real) << 2
            | (a.real > b.real) << 3 | (a.real >= b.real) << 4 | __builtin_isunordered(a.real, b.real) << 5);
    }
}
"""
RESULTS = 10
AT_ONCE = 2048
"""Pairs in a call of ``run``: as many as the mailbox has room for."""
NAN = 0x7FC0_0000
NO_LOOPS = Turns({}, {})
PATTERNS = (0, 1, 2, 0x3FFFFF, 0x400000, 0x400001, 0x555555, 0x7FFF00, 0x7FFFFE, 0x7FFFFF)
"""Of a fraction's 23 bits."""


class Uncounted(EmulatedCpu):
    """For speed."""

    def _count_instructions(self, start):
        pass


def header():
    spec = make_spec({"name": "flow", "input": {"dim": 2}})
    return built(spec).sources["flow_float.h"]


def image_of(target, chain="gcc"):
    if chain not in found_toolchains(target):
        pytest.skip(
            f"needs {target.gcc.command if chain == 'gcc' else chain}; would run our float routines as it assembles them"
        )
    files = {"run.c": LOOP, "flow_float.h": header()}
    return Image(target, chain, files, "-Os", ("-Wno-float-equal",))


@pytest.fixture(scope="module", params=BOUNDS)
def cpu(request):
    return Uncounted(image_of(find_target(request.param)))


def expected(pairs):
    """What this PC's FPU computes for pairs of bits, (pairs, RESULTS)."""
    bits_a, bits_b = pairs.T.copy()
    a, b = bits_a.view(np.float32), bits_b.view(np.float32)
    with np.errstate(all="ignore"):
        made = [a * b, a + b, a - b, b - a, a / b, bits_a.view(np.int32).astype(np.float32), bits_a.astype(np.float32)]
        made = [np.where(np.isnan(each), np.uint32(NAN), each.view(np.uint32)) for each in made]
        whole = [np.trunc(each.astype(float)) for each in (a, b)]
        # where C leaves the integer open, whatever we return
        signed = np.clip(np.where(np.isnan(a), np.copysign(np.inf, a), whole[0]), -(2.0**31), 2.0**31 - 1)
        unsigned = np.clip(np.where(np.isnan(b), np.copysign(np.inf, b), whole[1]), 0, 2.0**32 - 1)
    made += [signed.astype(np.int64).astype(np.uint32), unsigned.astype(np.int64).astype(np.uint32)]
    order = [a == b, a < b, a <= b, a > b, a >= b, np.isnan(a) | np.isnan(b)]
    return np.column_stack([*made, sum(each.astype(np.uint32) << i for i, each in enumerate(order))])


def assert_equal(cpu, pairs):
    results = MAILBOX + 8 * AT_ONCE
    for start in range(0, len(pairs), AT_ONCE):
        part = np.ascontiguousarray(pairs[start : start + AT_ONCE], np.uint32)
        cpu.uc.mem_write(MAILBOX, part.tobytes())
        cpu.call("run", MAILBOX, results, len(part))
        found = np.frombuffer(cpu.uc.mem_read(results, 4 * RESULTS * len(part)), np.uint32).reshape(-1, RESULTS)
        wrong = np.argwhere(found != expected(part))
        assert not len(wrong), [(f"{x:08x}" for x in part[wrong[0, 0]]), wrong[0, 1]]


def exponents_and(fraction_a, fraction_b):
    """All pairs of two exponents, with these fractions; signs that are equal and that differ."""
    exponents = np.arange(256, dtype=np.uint32) << 23
    a, b = np.meshgrid(exponents | fraction_a, exponents | fraction_b)
    same = np.column_stack([a.ravel(), b.ravel()])
    return np.concatenate([same, same | np.uint32([1 << 31, 0])]).astype(np.uint32)


def drawn(rng, count):
    """Random pairs: any; near each other; with few bits; that nearly cancel; whose products and quotients are subnormal."""
    pairs = rng.integers(0, 2**32, (count, 2), dtype=np.uint32)
    kind = rng.integers(0, 8, count)
    near = (pairs[:, 0] >> 23) + rng.integers(-28, 29, count).astype(np.uint32) & 255
    moved = (pairs[:, 1] & 0x807F_FFFF) | near << 23
    pairs[:, 1] = np.where(kind < 5, moved, pairs[:, 1])
    few = np.uint32(0xFFFF_FFFF) << rng.integers(0, 24, (count, 2)).astype(np.uint32)
    pairs &= np.where(kind[:, None] % 2, few, 0xFFFF_FFFF).astype(np.uint32)
    opposite = (pairs[:, 0] ^ np.uint32(1 << 31)) + rng.integers(0, 4096, count).astype(np.uint32)
    pairs[:, 1] = np.where(kind == 4, opposite, pairs[:, 1])
    total = rng.integers(95, 160, count).astype(np.uint32)
    other = np.minimum(total - np.minimum(pairs[:, 0] >> 23 & 255, total), 254)
    pairs[:, 1] = np.where(kind == 5, (pairs[:, 1] & 0x807F_FFFF) | other << 23, pairs[:, 1])
    small = pairs[:, 0] >> rng.integers(0, 32, count).astype(np.uint32)
    pairs[:, 0] = np.where(kind == 6, small, pairs[:, 0])
    return pairs


def test_all_pairs_of_exponents(cpu):
    assert_equal(cpu, exponents_and(PATTERNS[7], PATTERNS[5]))
    assert_equal(cpu, exponents_and(0, 0))


@pytest.mark.exhaustive("minutes")
@pytest.mark.parametrize("fraction", PATTERNS)
def test_all_pairs_of_exponents_with_all_patterns(cpu, fraction):
    for other in PATTERNS:
        assert_equal(cpu, exponents_and(fraction, other))


def test_random_pairs(cpu):
    assert_equal(cpu, drawn(np.random.default_rng(0), 100_000))


@pytest.mark.exhaustive("minutes")
def test_many_random_pairs(cpu):
    rng = np.random.default_rng()
    for _ in range(500):
        assert_equal(cpu, drawn(rng, 50_000))


def test_every_estimate_of_a_division(cpu):
    """It depends on a divisor's high 16 bits alone: each of them, with the lowest and the highest rest."""
    high = np.arange(2**15, dtype=np.uint32) << 8
    for divisor in (high, high | 255):
        for dividend in (np.full_like(high, 0x7F_FFFF), divisor - 1):
            assert_equal(cpu, np.column_stack([dividend & 0x7F_FFFF, divisor]) | np.uint32(127 << 23))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", BOUNDS)
def test_zig_assembles_the_same(name):
    pytest.importorskip("ziglang")
    pairs = drawn(np.random.default_rng(1), 10_000)
    assert_equal(Uncounted(image_of(find_target(name), "zig")), pairs)


# ----------------------------------------------------------------------------------------------------------- time


@pytest.mark.parametrize("name", BOUNDS)
def test_no_routine_takes_more_than_its_bound(name):
    """Bounded without a fact that a person read, and near what subnormal numbers take."""
    image = image_of(find_target(name))
    cpu, code = EmulatedCpu(image), Code(image)
    bound = {}
    for each in NAMES:
        start = image.functions[f"__aeabi_{each}"].start
        bound[each] = longest(Graph([start], code.decode, Records()), start, code, NO_LOOPS, each, "instructions")
    assert all(bound[each] <= most for each, most in zip(("fmul", "fadd", "fdiv"), BOUNDS[name], strict=True))
    pairs = np.concatenate([drawn(np.random.default_rng(2), 20_000), exponents_and(3, 5)[::13]])
    most = dict.fromkeys(bound, 0)
    for each in bound:
        for pair in pairs[::60]:
            before = cpu.instructions
            cpu.call(f"__aeabi_{each}", *map(int, pair))
            most[each] = max(most[each], cpu.instructions - before)
    assert all(0 < most[each] <= bound[each] for each in bound)
    assert most["fmul"] >= 0.8 * bound["fmul"] and most["fadd"] >= 0.8 * bound["fadd"]


# ----------------------------------------------------------------------------------- whose routines a program has


def wrapped(*flags):
    """The program of a model whose linker takes other routines wherever a file asks for one, as the Pico's SDK wants it."""
    need(TARGET.gcc.command, would="a model that is linked as a Pico's SDK does")
    files, others = model_files(built(make_spec({"name": "flow", "input": {"dim": 2}})))
    wraps = [f"-Wl,--wrap=__aeabi_{name}" for name in NAMES]
    return Image(TARGET, "gcc", files | others, "-Os", flags, libraries=wraps)


def test_a_model_keeps_its_routines_where_others_are_put_in_their_place():
    assert {f"__aeabi_{name}" for name in ("fmul", "fadd", "fdiv")} <= set(wrapped().functions)


def test_a_user_can_leave_them_out():
    with pytest.raises(CheckFailed, match="flow"):
        wrapped("-DFLOW_LIBRARY_FLOAT")


@pytest.mark.exhaustive
@pytest.mark.in_turn(6)
@pytest.mark.parametrize("target", [find_target(name) for name in BOUNDS], ids=BOUNDS)
@pytest.mark.parametrize("flags", [(), ("-flto", "-flinker-output=nolto-rel")])
def test_two_models_share_them(tmp_path, flags, target):
    need(target.gcc.command, would="two models, each file by itself and all as one")
    for name in ("flow", "level"):
        files = built(make_spec({"name": name, "input": {"dim": 2}})).sources
        write_sources(tmp_path, files)
    words = (*target.gcc.flags, "-Os", "-ffp-contract=off", "-ffunction-sections", "-Wno-error", *flags)
    program = tmp_path / "program.o"
    compile_c(toolchain(target, "gcc"), sorted(tmp_path.glob("*.c")), program, words, ("-r", "-nostdlib"))
    assert {"flow_update", "level_update", "level_save"} <= set(public_functions(program))
    assert not {f"__aeabi_{name}" for name in NAMES} & undefined_symbols(program)


def test_only_models_of_float_bring_them():
    for precision in ("float64", "int16"):
        sources = built(make_spec({"name": "flow", "precision": precision, "input": {"dim": 2, "max_abs": 4.0},
                                   "label": {"max_abs": 4.0}})).sources  # fmt: skip
        assert not [name for name, text in sources.items() if "flow_float.h" in name + text]
