"""The bound of a call: never below what runs, near it, and refused where nothing is proved."""

import ctypes
import functools
import json
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest

from pykernel.cli.app import main
from pykernel.gen import model as gen_model
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compiler
from pykernel.gen.flow import flow_facts
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.language.print_c import Printer
from pykernel.spec.model import make_spec
from pykernel.targets import bound as bounds
from pykernel.targets.bound import Code, call_bounds, known_routines
from pykernel.targets.build import Image, functions_of, model_image
from pykernel.targets.check import check_targets
from pykernel.targets.decode import decoder
from pykernel.targets.flow import Graph, Records, Unbounded, annotate, read_records
from pykernel.targets.load import load_of
from pykernel.targets.process_runner import ProcessModel
from pykernel.targets.target import find_target
from pykernel.targets.unicorn_runner import EmulatedCpu, UnicornModel
from pykernel.targets.worst import worst_call
from tests.support import simavr_count
from tests.support.random_calls import random_calls, trace
from tests.support.random_specs import RULES, content_of, random_spec
from tests.support.specs import named
from tests.support.tools import need, needs

pytest.importorskip("unicorn")
pytest.importorskip("capstone")

TECHNIQUES = ("fklms", "nt", "mklms", "ls", "afklms", "lsridge")


def need_gcc(target):
    need(find_target(target).gcc.command, would=f"that no call on {target} takes more than its bound")


READ = {"arm-none-eabi-gcc": "12.2.", "riscv64-unknown-elf-gcc": "12.2.", "avr-gcc": "5.4."}
"""The versions in whose libraries a person has read the loops, for targets/routines/gcc.toml."""


def need_read(target):
    """Another GCC brings other libraries: calls that need them have no bound, and the reason is told."""
    command = find_target(target).gcc.command
    words = [command, "-dumpfullversion", "-dumpversion"]
    version = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    if not version.startswith(READ[command]):
        pytest.skip(f"{command} {version}: nobody has read the loops of its libraries, only those of {READ[command]}x")


def assert_proved(found, target):
    """Every function has a bound; or none was read that a function needs."""
    refused = {name: bound.refused for name, bound in found.items() if bound.refused}
    if any(re.search(r"\b__\w+", reason) for reason in refused.values()):
        need_read(target)
    assert not refused
    assert all(bound.instructions is not None for bound in found.values())


def spec_of(technique="fklms", dim=4, n_max=12, **sections):
    content = {
        "name": "flow",
        "input": {"dim": dim},
        "kernel": {"sigma": 1.0},
        "reduction": {"technique": technique, "n_max": n_max},
    }
    return make_spec(named(content | sections))


def measured(spec, target, level, samples, tries):
    """Of each function: the bound, and the most that was executed, of a stream and of what a search made of it."""
    project = build(spec)
    image = model_image(project, find_target(target), "gcc", level=level)
    model, (x, y) = UnicornModel(project, image), mixed_stream(spec, samples)
    model.prequential(x, y)
    most = {name: max(costs) for name, costs in model.costs.items() if costs} | model.other_calls
    # where the inputs' center is beyond their limit, the stream has nothing that the model does not refuse
    for name in model.hardest:
        most[name] = max(most.get(name, 0), worst_call(model, name, x, y, tries=tries).instructions)
    for name in (*spec.program.actions, "reset", "hash"):
        if f"{spec.name}_{name}" in image.functions:
            model.call(name)
    return call_bounds(project, image), most | model.other_calls


def run(*words):
    """The command's exit code."""
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    return stopped.value.code


# ------------------------------------------------------------------------------------------ never below what runs


@pytest.mark.in_turn(216)
@pytest.mark.parametrize("level", ["-O2", "-Os"])
@pytest.mark.parametrize("target", ["cortex-m4f", "cortex-m0plus", "rv32imac", "cortex-m3"])
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_no_call_takes_more_than_its_bound(technique, target, level):
    """Streams with difficult samples; states that are restored, forged, refreshed, reset; extreme inputs."""
    need_gcc(target)
    found, most = measured(spec_of(technique), target, level, 100, 40)
    assert {"predict", "update", "init", "hash"} <= set(most)
    assert_proved({name: found[name] for name in most}, target)
    for name, instructions in most.items():
        bound = found[name]
        assert instructions <= bound.instructions <= 10 * instructions, name


@pytest.mark.exhaustive
def test_turns_of_loops_over_a_triangle_are_added_up():
    """Multiplied, as across two functions, they would be twice as many."""
    need_gcc("cortex-m4f")
    found, most = measured(spec_of("mklms", n_max=32), "cortex-m4f", "-O2", 200, 10)
    assert found["update"].instructions < 1.2 * most["update"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("target", ["cortex-m4f", "cortex-m3", "rv32imc", "cortex-m0plus"])
@pytest.mark.parametrize("part", range(6))
def test_no_call_of_any_spec_takes_more_than_its_bound(part, target):
    need_gcc(target)
    for seed in range(5 * part, 5 * part + 5):
        content = content_of(random_spec(np.random.default_rng(seed), RULES[seed % len(RULES)]))
        if content.get("precision") == "float64" and target != "cortex-m4f":
            continue
        found, most = measured(make_spec(content), target, "-O2", 60, 30)
        for name, instructions in most.items():
            bound = found[name]
            assert bound.instructions is None or instructions <= bound.instructions, (seed, name)


@pytest.mark.parametrize("target", ["rv32imac", pytest.param("cortex-m0plus", marks=pytest.mark.exhaustive)])
def test_a_loop_that_never_turns_has_a_limit(target):
    """A subspace of one dimension: loops over the elements beside a diagonal are there, and never turn."""
    need_gcc(target)
    kernel = {"input": {"dim": 3, "max_abs": 10.0}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 8}}
    project = build(make_spec({"name": "m", "learning": {"rule": "okfeb", "features": 1}} | kernel))
    found = call_bounds(project, model_image(project, find_target(target), "gcc", level="-Os"))
    assert_proved(found, target)


MODELS = {
    "float32": {},
    "int16": {"precision": "int16", "input": {"dim": 4, "max_abs": 4.0}, "label": {"max_abs": 4.0}},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", MODELS)
def test_bounds_are_near_what_runs(precision):
    """On a CPU that computes what the model is made of, the bound is hardly above the worst call that is known."""
    need_gcc("cortex-m4f")
    spec = spec_of("nt", **MODELS[precision])
    found, most = measured(spec, "cortex-m4f", "-O2", 300, 300)
    assert found["predict"].instructions <= 1.15 * most["predict"]
    assert found["update"].instructions <= 1.5 * most["update"]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("target", "most"), [("cortex-m4f", 1.5), ("cortex-m3", 2.0), ("cortex-m0plus", 2.3)])
@pytest.mark.parametrize("level", ["-O2", "-Os"])
@pytest.mark.parametrize("dim", [3, 8])
def test_bounds_of_a_monitor_are_near_what_its_check_finds(dim, level, target, most):
    """Its stream has alarms, births and merges, and the ways that exclude each other are not added up."""
    need_gcc(target)
    need_read(target)
    spec = make_spec({"name": "monitor", "input": {"dim": dim}, "learning": {"rule": "gmm"}})
    (row,) = check_targets(spec, [target], chain="gcc", emulator="unicorn", level=level).rows
    assert row["equal"]
    for call in ("update", "novelty"):
        assert row[call]["ratio"] <= most, call


# ------------------------------------------------------------------------------------------------- what is known


def counting(text):
    """The C, with marks that count."""
    counters = "__attribute__((weak)) unsigned int counted[40000];"
    text = re.sub(r"(#define \w+_LOOP\(loop\))$", r"\1 counted[2 * (loop)]++;", text, flags=re.MULTILINE)
    text = re.sub(r"(#define \w+_TURN\(loop\))$", r"\1 counted[(2 * (loop)) + 1]++;", text, flags=re.MULTILINE)
    return re.sub(r'(#include "\w+\.h"\n)', rf"\1extern unsigned int counted[40000];\n{counters}\n", text, count=1)


def assert_facts_hold(spec, seed, count):
    """Every fact of a model's loops, after each of many random calls."""
    facts, project = flow_facts(spec), build(spec)
    model = CModel(project, compiler("gcc"), ("-O1", "-Wno-error"), patch=counting)
    counted = (ctypes.c_uint * 40000).in_dll(ctypes.CDLL(str(model.library)), "counted")
    numbers = np.frombuffer(counted, np.uint32)
    state = spec.program.state_bytes(model.memory.layout)
    rng = np.random.default_rng(seed)
    for call in random_calls(spec, rng, count):
        if call.kind in ("save", "load"):
            model.memory.bytes[state:] = bytes(len(model.memory.bytes) - state)  # what is not saved
            continue
        numbers[:] = 0
        trace(model, [call])
        begun, turned = numbers[::2].astype(int), numbers[1::2].astype(int)
        for outer, inside in facts.within.items():
            loops = [loop for loop in inside if begun[outer] or loop == outer]
            if loops:
                cases = np.array([inside[loop] for loop in loops])
                # of one run; several runs may be different cases
                most = cases if begun[outer] == 1 else cases.max(1, keepdims=True) * begun[outer]
                assert (turned[loops][:, None] <= most).all(0).any(), (call.name, outer)
        for loop, most in facts.in_all.get(call.name, {}).items():
            assert turned[loop] <= most, (call.name, loop)
        known = set(facts.in_all.get(call.name, ()))
        assert call.name not in facts.in_all or {int(i) for i in np.flatnonzero(turned) if i < 9000} <= known


@pytest.mark.exhaustive
@needs("gcc")
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 20))])
def test_loops_turn_at_most_as_often_as_said(part):
    """The generator's facts, counted: in specs of the whole language, whatever is called."""
    for seed in range(6 * part, 6 * part + 6):
        content = content_of(random_spec(np.random.default_rng(seed), RULES[seed % len(RULES)]))
        assert_facts_hold(make_spec(content), seed, 150)


def random_float(rng, exponent, fraction):
    """Any kind of number: subnormal, near one, near another, infinite, none."""
    bits, top = rng.getrandbits(fraction), (1 << exponent) - 1
    middle = rng.randrange(top // 2 - 8, top // 2 + 8)
    kinds = [
        bits >> rng.randrange(fraction),
        rng.choice([0, 1, top << fraction, (top << fraction) | 1]),
        (rng.randrange(1, top) << fraction) | bits,
        (middle << fraction) | (bits >> rng.randrange(fraction)),
        (middle << fraction) | (((1 << fraction) - 1) ^ (bits >> rng.randrange(fraction))),
        rng.getrandbits(rng.randrange(1, exponent + fraction + 2)),
    ]
    return rng.choice(kinds) | rng.getrandbits(1) << (exponent + fraction)


LIBRARIES = {
    "cortex-m0plus": {4: ("__divsi3", "__udivsi3"), 8: ("__aeabi_ddiv",)},
    "cortex-m4f": {4: (), 8: ("__muldf3", "__divdf3", "__adddf3")},
    "rv32imac": {4: ("__divsf3", "__mulsf3"), 8: ("__divdf3", "__muldf3")},
    "rv32imc": {4: ("__divsf3",), 8: ("__divdf3",)},
    "rv32imafc": {4: (), 8: ("__divdf3",)},
}


@pytest.mark.parametrize("target", LIBRARIES)
@pytest.mark.in_turn
@pytest.mark.exhaustive
def test_what_was_read_of_library_routines_holds(target, exhaustive):
    """Every limit of the table, and the bound, of many numbers of all kinds."""
    import random

    need_gcc(target)
    need_read(target)
    names = [name for group in LIBRARIES[target].values() for name in group]
    declared = "\n".join(f"extern int {name}(void);" for name in names)
    table = f"{declared}\ntypedef int (*call)(void);\ncall f(int i);\nstatic const call t[] = {{{', '.join(names)}}};\n"
    image = Image(find_target(target), "gcc", {"a.c": f"{table}call f(int i) {{ return t[i]; }}\n"})
    cpu, code, rng = EmulatedCpu(image), Code(image), random.Random(0)
    listed = {routine.name for routine in known_routines()}
    assert len(code.limits) + len(code._jumps) > 0
    for size, group in LIBRARIES[target].items():
        for name in group:
            start = image.functions[name].start
            most = bounds.longest(Graph([start], code.decode, Records()), start, code, FREE, name, "instructions")
            highest = 0
            for _ in range(20000 if exhaustive else 500):
                a, b = (random_float(rng, *((8, 23) if size == 4 else (11, 52))) for _ in range(2))
                words = (a, b) if size == 4 else (a & 0xFFFF_FFFF, a >> 32, b & 0xFFFF_FFFF, b >> 32)
                before = cpu.executed()
                cpu.call(name, *words)
                after = cpu.executed()
                ran = {at: n - before.get(at, 0) for at, n in after.items()}
                highest = max(highest, sum(ran.values()))
                for places, times, each in code.limits:
                    assert sum(ran.get(place, 0) for place in places) <= times * ran.get(each, 0), (
                        name,
                        hex(a),
                        hex(b),
                    )
            assert highest <= most, name
            assert name not in listed or most <= 2 * highest, name


FREE = bounds.Turns({}, {})


def test_a_branch_over_a_jump_to_a_far_label_has_a_bound():
    """RISC-V's assembler makes both of one branch, whose label is elsewhere; behind the jump are a label and a mark."""
    need_gcc("rv32imac")
    begun = '__asm__ volatile("/* loop 0 */");'
    far = '__asm__ volatile("/* turn 0 */"); __asm__ volatile(".rept 3000\\n\\tnop\\n\\t.endr");'
    source = f"int f(int a);\nint f(int a) {{ if (a > 0) {{ {begun} for (int i = 0; i < a; i++) {{ {far} }} }} return a; }}\n"
    image = Image(find_target("rv32imac"), "gcc", {"a.c": source}, annotate=annotate)
    records, start = read_records(image.elf), image.functions["f"].start
    code, facts = Code(image, records), bounds.Turns({0: {0: (5,)}}, {})
    cpu, ran = EmulatedCpu(image), []
    for turns in (0, 5):
        before = sum(cpu.executed().values())
        cpu.call("f", turns)
        ran.append(sum(cpu.executed().values()) - before)
    most = bounds.longest(Graph([start], code.decode, records), start, code, facts, "f", "instructions")
    assert most == ran[1] > 5 * 3000 > ran[0]


def test_loops_that_share_their_turns_are_bounded_together():
    """Of two loops in a loop, one turns r times and the other 4 - r times; which one costs more, the proof cannot know."""
    need_gcc("cortex-m4f")
    mark, many = '__asm__ volatile("/* {} */");'.format, '__asm__ volatile(".rept {}\\n\\tnop\\n\\t.endr");'.format
    first = f"{mark('loop 1')} for (int j = 0; j < r; j++) {{ {mark('turn 1')} {many(300)} }}"
    second = f"{mark('loop 2')} for (int j = r; j < 4; j++) {{ {mark('turn 2')} {many(500)} }}"
    source = f"int f(int r);\nint f(int r) {{ {mark('loop 0')} for (int i = 0; i < 3; i++) {{ {mark('turn 0')} {first} {second} }} return r; }}\n"
    image = Image(find_target("cortex-m4f"), "gcc", {"a.c": source}, annotate=annotate)
    records, start = read_records(image.elf), image.functions["f"].start
    code, cpu, ran = Code(image, records), EmulatedCpu(image), []
    for r in range(5):
        before = sum(cpu.executed().values())
        cpu.call("f", r)
        ran.append(sum(cpu.executed().values()) - before)
    graph = Graph([start], code.decode, records)
    alone = {1: {1: (4,)}, 2: {2: (4,)}}
    together = {0: (3,) * 5, 1: (12, 9, 6, 3, 0), 2: (0, 3, 6, 9, 12)}
    apart = {loop: (max(turns),) for loop, turns in together.items()}
    most, far = (
        bounds.longest(graph, start, code, bounds.Turns(alone | {0: inside}, {}), "f", "instructions")
        for inside in (together, apart)
    )
    assert max(ran) <= most <= max(ran) + 30
    assert far >= most + 12 * 300


# -------------------------------------------------------------------------------------------------------------- AVR

AVR = needs(*simavr_count.TOOLS, would="that no call on an AVR takes more than its bound")


@pytest.mark.parametrize("count", range(256))
def test_a_counted_loop_on_an_avr_turns_as_often_as_its_counter_says(count):
    """ldi r24, count; lsr r25; dec r24; brne to lsr; ret.  A counter of 0 is 256 turns."""
    words = [0xE080 | count >> 4 << 8 | count & 15, 0x9596, 0x958A, 0xF7E9, 0x9508]
    code = b"".join(word.to_bytes(2, "little") for word in [*words, 0])
    decode = decoder("avr", "avr", lambda at: code[at : at + 4], hex, {0}, Records())
    (branch,) = (each for each in map(decode, range(0, 10, 2)) if each.limit)
    turns, left = 1, count - 1 & 255
    while left:
        turns, left = turns + 1, left - 1 & 255
    assert branch.address == 6 and branch.limit == (turns, 0)


@pytest.mark.exhaustive
@AVR
@pytest.mark.parametrize("level", ["-O2", "-Os"])
@pytest.mark.parametrize("precision", MODELS)
@pytest.mark.parametrize("technique", ["fklms", "nt", "mklms"])
def test_no_call_on_an_avr_takes_more_than_its_bound(technique, precision, level):
    """Cycles as well, counted exactly."""
    if precision == "int16" and technique == "mklms":
        pytest.skip("not for int16")
    spec = spec_of(technique, **MODELS[precision])
    project, target = build(spec), find_target("avr")
    found = call_bounds(project, model_image(project, target, "gcc", level=level))
    assert_proved({name: found[name] for name in ("predict", "update")}, "avr")
    model, (x, y) = ProcessModel(project, target, "gcc", level=level), mixed_stream(spec, 100)
    model.prequential(x, y)
    functions = functions_of(model.image)
    names = {functions[f"flow_{name}"].start: name for name in ("predict", "update")}
    most = {name: (0, 0) for name in names.values()}
    calls = simavr_count.counted(model.image.elf, list(names))
    for start, instructions, cycles in calls:
        bound = found[names[start]]
        assert instructions <= bound.instructions and cycles <= bound.cycles and not bound.estimated
        most[names[start]] = max(most[names[start]], (instructions, cycles))
    assert len(calls) == 200
    near = {"float32": 5, "int16": 1.5}[precision]
    assert all(found[name].cycles <= near * cycles for name, (_, cycles) in most.items())


@pytest.mark.exhaustive
@AVR
def test_the_bound_of_an_avr_is_reached():
    """A function without a choice takes exactly as many cycles; the driver's timer has its own beside them."""
    spec = spec_of("nt")
    project, target = build(spec), find_target("avr")
    found = call_bounds(project, model_image(project, target, "gcc"))
    model = ProcessModel(project, target, "gcc")
    for name in ("init", "hash"):
        model.call(name)
        (call,) = simavr_count.counted(model.image.elf, [functions_of(model.image)[f"flow_{name}"].start])
        assert (found[name].instructions, found[name].cycles) == tuple(call[1:])
        assert call[2] < model.ticks[name][-1] < call[2] + 150 + 50 * (call[2] // 65536 + 1)


OPERATIONS = """#include <stdint.h>
void each(float a, float b, int32_t i, int32_t j);
volatile float r;
volatile int32_t n;
void each(float a, float b, int32_t i, int32_t j)
{
    r = a + b; r = a - b; r = a * b; r = a / b; r = (float)i; r = (float)(uint32_t)i;
    n = a < b; n = (int32_t)a; n = (int32_t)(uint32_t)b; n = i * j; n = i / j; n = (int32_t)((uint32_t)i % (uint32_t)j);
}
"""
RUNS = """#include <avr/interrupt.h>
#include <avr/pgmspace.h>
#include <avr/sleep.h>
static const uint32_t operands[][2] PROGMEM = {NUMBERS};
void each(float a, float b, int32_t i, int32_t j);
int main(void)
{
    for (uint16_t t = 0; t < sizeof operands / sizeof operands[0]; t++) {
        union { uint32_t bits; float number; int32_t whole; } a, b;
        a.bits = pgm_read_dword_far((uint_farptr_t)(uint16_t)&operands[t][0]);
        b.bits = pgm_read_dword_far((uint_farptr_t)(uint16_t)&operands[t][1]);
        each(a.number, b.number, a.whole, b.whole == 0 ? 1 : b.whole);
    }
    cli();
    sleep_enable();
    sleep_cpu();
    return 0;
}
"""
ROUTINES = ("__addsf3", "__subsf3", "__mulsf3", "__divsf3", "__fixsfsi", "__fixunssfsi", "__floatsisf", "__floatunsisf")
WHOLE_ROUTINES = ("__divmodsi4", "__udivmodsi4", "__mulsi3")


@AVR
@pytest.mark.parametrize("part", [0, *(pytest.param(i, marks=pytest.mark.exhaustive) for i in range(1, 15))])
def test_what_was_read_of_the_avr_library_holds(part):
    """Every limit of the table, and the bound in instructions and cycles, of many numbers of all kinds."""
    import random

    need_read("avr")
    rng = random.Random(part)
    pairs = [(random_float(rng, 8, 23), random_float(rng, 8, 23)) for _ in range(800)]
    huge, tiny = 0x7F7F_FFFF, (1, 2, 0x0040_0000, 0x007F_FFFF, 0x0080_0000)
    pairs += [(a, b) for small in tiny for a, b in ((small, huge), (huge, small), (small, 1), (1, small))]
    pairs += [(a, b ^ 1 << 31) for a in (0x3F80_0000, 0x0100_0000) for b in range(a - 3, a + 3)]
    numbers = ", ".join(f"{{{a}ul, {b}ul}}" for a, b in pairs)
    extra = {"main.c": RUNS.replace("NUMBERS", numbers)}
    image = Image(find_target("avr"), "gcc", {"a.c": OPERATIONS}, "-O2", ("-Wno-error", "-std=gnu99"), extra)
    code, entries = Code(image), {image.functions[name].start: name for name in (*ROUTINES, *WHOLE_ROUTINES)}
    starts = sorted(entries)
    known = {at for places, _, each in code.limits for at in (*places, each)}
    places = sorted(known)
    most = {}
    for start, name in entries.items():
        graph = Graph([start], code.decode, Records())
        most[start] = [bounds.longest(graph, start, code, FREE, name, cost) for cost in ("instructions", "cycles")]
    highest = dict.fromkeys(entries, 0)
    for start, instructions, cycles, *executed in simavr_count.counted(image.elf, starts, places):
        ran = dict(zip(places, executed, strict=True))
        for group, times, each in code.limits:
            assert sum(ran[at] for at in group) <= times * ran[each], entries[start]
        assert instructions <= most[start][0] and cycles <= most[start][1], entries[start]
        highest[start] = max(highest[start], cycles)
    for start, name in entries.items():
        assert 0 < most[start][1] <= 2 * highest[start], name


@AVR
@needs("avr-objdump")
def test_the_avr_decoder_agrees_with_the_disassembler():
    """Sizes, and where branches and calls go, of all the code of a model and of the library."""
    image = model_image(build(spec_of("mklms")), find_target("avr"), "gcc", level="-Os")
    said = subprocess.run(["avr-objdump", "-d", str(image.elf)], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^ *([0-9a-f]+):\t((?:[0-9a-f]{2} )+) *\t(\w+)\t?([^\n]*)", said, re.MULTILINE)
    code, seen = Code(image), set()
    for address, data, word, operands in lines:
        at, size = int(address, 16), len(data.split())
        found = code.decode(at)
        assert found.size == size, (address, word)
        named = found.text.split(" ")[:-1]
        ways = {way.to for way in found.ways}
        target = (
            re.search(r"0x([0-9a-f]+)", operands) if word in ("call", "jmp") else re.search(r"\.([+-]\d+)", operands)
        )
        if target:
            to = int(target[1], 16) if word in ("call", "jmp") else at + 2 + int(target[1])
            assert to in ways | {found.called}, (address, word)
        if word.startswith("br") and word not in ("break",):
            assert ways == {at + 2, to}
        elif word == "ret":
            assert not ways
        elif word in ("cpse", "sbrc", "sbrs", "sbic", "sbis"):
            assert at + 2 in ways and len(ways) == 2
        elif word not in ("jmp", "rjmp", "reti"):
            assert ways == {at + size}, (address, word)
        seen |= {word, *named}
    assert {"ret", "rjmp", "call", "rcall", "brne", "cpse", "sbrs", "mul", "std", "push", "movw"} <= seen


# ---------------------------------------------------------------------------------------------------- what is refused


def test_a_bound_that_is_too_low_is_caught(monkeypatch):
    """Negative control: one loop of one function is said to turn once less."""
    need_gcc("cortex-m4f")
    spec = spec_of()
    right = flow_facts(spec)
    own = [loop for loop, turns in right.in_all["predict"].items() if turns == 12]
    wrong = replace(right, in_all=right.in_all | {"predict": right.in_all["predict"] | {own[0]: 11}})
    monkeypatch.setattr(bounds, "flow_facts", lambda spec: wrong)
    (row,) = check_targets(spec, ["cortex-m4f"], samples=100, chain="gcc", emulator="unicorn", tries=10).rows
    assert not row["equal"] and "predict took" in row["first_difference"]
    assert "more than its bound of" in row["first_difference"]


@pytest.mark.exhaustive
def test_what_is_not_proved_is_refused_by_name(monkeypatch):
    need_gcc("cortex-m0plus")
    project = build(spec_of())
    target = find_target("cortex-m0plus")
    image = model_image(project, target, "gcc")
    monkeypatch.setattr(bounds, "known_routines", lambda: ())
    library = model_image(project, target, "gcc", flags=("-DFLOW_LIBRARY_FLOAT",))
    assert call_bounds(project, library)["update"].refused == "an indirect branch in __aeabi_fdiv at 0x68: mov pc, r3"
    monkeypatch.undo()
    monkeypatch.setattr(bounds, "annotate", lambda text: annotate(re.sub(r"/\* (loop|turn) \d+ \*/", "", text)))
    assert "a loop without a known limit in flow_predict" in call_bounds(project, image)["predict"].refused
    monkeypatch.setattr(bounds, "annotate", lambda text: annotate(text.replace("\tadds\t", "\tsubs\t", 1)))
    assert "no longer assembles to the bytes of the image" in call_bounds(project, image)["predict"].refused
    fast = model_image(project, target, "gcc", level="-O3")
    assert "this code was compiled at -O3" in call_bounds(project, fast)["predict"].refused


def test_a_jump_table_is_refused():
    """A helper of GCC's for it returns behind the table: what stands there is no code."""
    need_gcc("cortex-m0plus")
    cases = " ".join(f"case {i}: r = (n * {i + 3}) ^ (r >> {i}); break;" for i in range(9))
    source = f"int f(int x, int n);\nint f(int x, int n) {{ int r = n; switch (x) {{ {cases} default: r = 1; }} return r / n; }}\n"
    for target in ("cortex-m0plus", "cortex-m3", "rv32imac"):
        if shutil.which(find_target(target).gcc.command):
            for level in ("-O2", "-Os"):
                image = Image(find_target(target), "gcc", {"a.c": source}, level=level, flags=("-Wno-error",))
                code, start = Code(image), image.functions["f"].start
                with pytest.raises(Unbounded, match="an indirect branch in f at"):
                    bounds.longest(Graph([start], code.decode, Records()), start, code, FREE, "f", "instructions")


@pytest.mark.exhaustive
def test_marks_change_neither_the_hash_nor_the_code_of_clang(monkeypatch):
    spec = spec_of()
    marked = gen_model.model_code(spec)
    plain = functools.partial(Printer, marks=False)
    monkeypatch.setattr(gen_model, "Printer", lambda *given, marks, **more: plain(*given, **more))
    unmarked = gen_model.model_code(spec)
    assert marked.printed != unmarked.printed and marked.whose == unmarked.whose
    monkeypatch.undo()
    pytest.importorskip("ziglang")
    project, target = build(spec), find_target("cortex-m4f")
    images = [model_image(project, target, "zig", patch=patch) for patch in (str, "#define FLOW_MARKS 0\n{}".format)]
    assert images[0].segments == images[1].segments


@pytest.mark.exhaustive
def test_the_command_shows_and_records_bounds(tmp_path, monkeypatch, capsys):
    need_gcc("cortex-m4f")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.toml").write_text(spec_of().to_toml())
    assert run("generate", "flow.toml", "-o", "out") == 0
    assert (
        run("check", "flow.toml", "--target", "cortex-m4f", "--toolchain", "gcc", "--samples", "100", "--record", "out")
        == 0
    )
    assert "instructions at most: " in capsys.readouterr().out
    header = (tmp_path / "out" / "src" / "flow.h").read_text()
    bound = int(re.search(r"FLOW_UPDATE_MAX_INSTRUCTIONS_CORTEX_M4F (\d+)\n", header)[1])
    assert f"`update` {bound:,}" in (tmp_path / "out" / "VALIDITY.md").read_text()
    # the folder is still the spec's: another check is recorded beside the first
    assert (
        run("check", "flow.toml", "--target", "cortex-m4f", "--level=-Os", "--samples", "100", "--record", "out") == 0
    )
    assert len(re.findall("FLOW_UPDATE_MAX_INSTRUCTIONS", (tmp_path / "out" / "src" / "flow.h").read_text())) == 2
    limited = spec_of().to_toml() + f'\n[target]\nname = "cortex-m4f"\ninstructions = {bound - 1}\n'
    (tmp_path / "flow.toml").write_text(limited)
    capsys.readouterr()
    assert run("check", "flow.toml", "--target", "cortex-m4f", "--toolchain", "gcc", "--samples", "50") == 1
    assert (
        f"flow_update takes up to {bound:,} instructions on cortex-m4f; [target] instructions is"
        in capsys.readouterr().err
    )


def test_raw_samples_wait_for_the_longest_and_load_the_processor_by_the_mean():
    """A hop of 64 samples: one of them takes three periods, so that three must wait; the processor sleeps most of the time."""
    signal = {"channels": ["x"], "window": 256, "hop": 64, "max_abs": 10.0, "features": ["rms"]}
    spec = make_spec({"name": "m", "signal": signal, "novelty": {}})
    bounds = {
        name: {"instructions": n, "cycles": 2 * n, "estimated": False} for name, n in (("push", 30), ("novelty", 5))
    }
    asks = spec.program.asks
    bounds[asks] = bounds.pop("novelty")
    row = {"bounds": bounds, "push": {"mean": 2.0}, asks: {"mean": 4.0}}
    load = load_of(spec, row, clock=2000.0, rate=100.0)
    assert (load.most, load.waiting) == (60.0, 2) and load.share == pytest.approx(3.0)  # a push's status is the alarm
    bounds["acknowledge"] = {"instructions": 9, "cycles": 21, "estimated": False}
    assert load_of(spec, row, clock=2000.0, rate=100.0).waiting == 4
    labelled = make_spec({"name": "m", "signal": signal, "label": {"outputs": 1}, "learning": {"rule": "rls"}})
    asks, learner = labelled.program.asks, labelled.program.learner
    row = {"bounds": {asks: bounds["push"], learner: bounds["push"]}, learner: {"mean": 2.0}, asks: {"mean": 4.0}}
    load = load_of(labelled, row, clock=2000.0, rate=100.0)
    assert (
        load.most == 120.0
        and load.mean == pytest.approx(2 * 2.0 + 2 * 4.0 / 64)
        and load.mean_share == pytest.approx(load.mean * 100 / 2000)
    )


@pytest.mark.exhaustive
def test_what_people_ask_is_told_or_refused_in_a_sentence(tmp_path, monkeypatch, capsys):
    need_gcc("cortex-m0plus")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.toml").write_text(spec_of(n_max=4).to_toml())
    check = ("check", "flow.toml", "--target", "cortex-m0plus", "--samples", "8")
    asked = ("--clock", "48M", "--rate", "10", "--current", "120")
    if shutil.which("qemu-system-arm"):
        assert run(*check, "--toolchain", "gcc", "--emulator", "qemu", *asked) == 0
        assert "the number of cycles is unknown" in capsys.readouterr().out
    wrong = {
        ("--clock", "fast"): "--clock is 'fast'; it must be a number above 0, such as 48M",
        ("--clock", "48", "--rate", "1"): "--clock is 48, which is 48 Hz; for megahertz write 48M",
        ("--clock", "48M"): "--clock 48M needs the number of samples per second, too; add --rate",
        ("--rate", "x"): "--rate is 'x'; it must be a number above 0, such as 10",
        ("--rate", "1"): "--rate needs the processor's clock, too; add --clock",
        ("--level", "-O9"): "--level is '-O9'; it must be -O0 or",
    }
    for words, sentence in wrong.items():
        assert run(*check, *words) == 2
        assert sentence in capsys.readouterr().err
    plain = (tmp_path / "flow.toml").read_text()
    (tmp_path / "flow.toml").write_text(plain + '\n[target]\nname = "cortex-m4f"\ncycles = 9\n')
    assert run("check", "flow.toml", "--target", "cortex-m4f", "--samples", "8") == 1
    assert "set [target] instructions instead" in capsys.readouterr().err
    (tmp_path / "flow.toml").write_text(plain)
    assert run(*check, "--toolchain", "gcc", *asked, "--json") == 0
    (load,) = json.loads(capsys.readouterr().out)["load"]
    if "kind" not in load:
        need_read("cortex-m0plus")
    assert load["kind"] == "proved" and load["share"] == pytest.approx(load["cycles"] * 10 / 48e6)
    assert 0 < load["mah_a_day"] < load["share"] * 48 * 120 * 24 / 1000


def test_a_forged_manifest_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow.toml").write_text(spec_of().to_toml())
    assert run("generate", "flow.toml", "-o", "out") == 0
    path = tmp_path / "out" / "manifest.json"
    row = {key: "x" for key in ("built", "target", "samples", "stream", "equal", "state")} | {"bounds": "a 1 */ #error"}
    content = json.loads(path.read_text()) | {"checks": [row]}
    path.write_text(json.dumps(content))
    assert run("check", "flow.toml", "--samples", "100", "--record", "out") == 2
    assert "manifest.json: cannot be read" in capsys.readouterr().err


def test_without_capstone_there_is_a_reason_in_place_of_a_bound(monkeypatch):
    """A plain installation beside Debian's GCC and QEMU: `pykernel demo` goes on."""
    need_gcc("cortex-m4f")
    project = build(spec_of())
    image = model_image(project, find_target("cortex-m4f"), "gcc")
    monkeypatch.setattr(bounds, "has_module", lambda name: name != "capstone")
    found = call_bounds(project, image)
    assert found and all("emulate" in bound.refused and bound.instructions is None for bound in found.values())
