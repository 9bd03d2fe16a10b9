"""The host's engine computes what plain Python computes: every construct, every kind of entry, every program."""

from __future__ import annotations

import gc
import re
import weakref
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

from pykernel import sealed
from pykernel.dialect import FLOAT32, FLOAT64, Kernel, Memory, Precision, is_choice
from pykernel.engine import llvm as engine
from pykernel.engine.engines import program_executor
from pykernel.engine.llvm import Compiled, compiled, print_module
from pykernel.host.model import HostModel
from pykernel.host.snapshot import is_valid
from pykernel.spec.model import Spec, load_spec, make_spec
from tests.spec.test_custom_kernel import written
from tests.support.dialect_cases import CAPACITIES, Box, load, plain_bytes
from tests.support.machines import MACHINES, machine
from tests.support.random_calls import first_difference, random_calls, trace
from tests.support.random_specs import random_spec
from tests.support.table_toy import frozen_spec
from tests.support.toys import toy_spec

BOTH = pytest.mark.parametrize("precision", [FLOAT32, FLOAT64], ids=str)


@pytest.fixture
def no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that are made up leave nothing in the user's cache."""
    monkeypatch.setattr(engine, "cache_folder", lambda kind, digest: None)


@pytest.fixture(
    params=[pytest.param(level, marks=pytest.mark.exhaustive if level else ()) for level in range(len(engine.LEVELS))]
)
def level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test at each level: it is kept to, whatever is on the disk or was compiled before."""
    monkeypatch.setattr(engine, "OPTIMISED", request.param)
    monkeypatch.setattr(engine, "LEVELS", [each._replace(patience=-1.0) for each in engine.LEVELS])
    compiled.cache_clear()


def code_of(kernels: list[Kernel], precision: Precision) -> engine.Code:
    return compiled(tuple(kernels), (), precision)


def both(spec: Spec) -> tuple[HostModel, HostModel]:
    return HostModel(spec), HostModel(spec, engine="python")


def compare_calls(spec: Spec, seed: int, count: int) -> None:
    calls = random_calls(spec, np.random.default_rng(seed), count)
    # saving needs the whole C project; a state is restored in a test of its own
    calls = [call for call in calls if call.kind not in ("save", "load")]
    mine, plain = both(spec)
    found = trace(mine, calls), trace(plain, calls)
    assert first_difference(calls, *found) is None, first_difference(calls, *found)
    assert plain_bytes(mine.memory.buffer) == plain_bytes(plain.memory.buffer)
    assert spec.program.valid is None or judged(mine) == judged(plain)


def judged(model: HostModel) -> bool:
    """What `valid` says of the model's memory."""
    return is_valid(model.spec, model.memory)


# ------------------------------------------------------------------------------------------------ the language

EDGES = """
from pykernel.algorithms.extents import N_MAX
from pykernel.dialect import Bool, Index, Real, absolute, floor_log2, kernel, pow2, pow2_rounded, real, sqrt, truncate
from tests.support.dialect_cases import Box

@kernel
def add(s: Box, a: Index, b: Index) -> Index:
    s.n[0] = a + b
    return a + b

@kernel
def subtract(s: Box, a: Index, b: Index) -> Index:
    s.n[0] -= b - a
    return a - b

@kernel
def multiply(s: Box, a: Index, b: Index) -> Index:
    return a * b

@kernel
def negate(s: Box, a: Index, b: Index) -> Index:
    return -a

@kernel
def grows(s: Box, a: Index, b: Index) -> Index:
    return 1 if a + b > a else 0

@kernel
def as_real(s: Box, a: Index, b: Index) -> Real:
    return real(a)

@kernel
def turns_up(s: Box, a: Index, b: Index) -> Index:
    count = 0
    for i in range(a, b, 1000000000):
        count += 1
        s.counts[0] = i
    return count

@kernel
def turns_down(s: Box, a: Index, b: Index) -> Index:
    count = 0
    for i in range(b, a, -1500000000):
        count += 1
        s.counts[0] = i
    return count

@kernel
def last_turn(s: Box, a: Index, b: Index) -> Index:
    count = 0
    for i in range(2147483640, 2147483646):
        count += 1
        s.counts[0] = i
    return count

@kernel
def root(s: Box, x: Real, y: Real) -> Real:
    return sqrt(x)

@kernel
def magnitude(s: Box, x: Real, y: Real) -> Real:
    return absolute(x)

@kernel
def quotient(s: Box, x: Real, y: Real) -> Real:
    return x / y

@kernel
def muladd(s: Box, x: Real, y: Real) -> Real:
    return x * y + x

@kernel
def order(s: Box, x: Real, y: Real) -> Index:
    code = 1 if x < y else 0
    code += 2 if x <= y else 0
    code += 4 if x == y else 0
    code += 8 if x != y else 0
    code += 16 if x > y else 0
    code += 32 if x >= y else 0
    code += 64 if not (x < y) else 0
    return code

@kernel
def cut(s: Box, x: Real, y: Real) -> Index:
    return truncate(x) if absolute(x) < real(2147483000) else 0

@kernel
def unguarded(s: Box, x: Real, y: Real) -> Bool:
    k = truncate(x)
    return k == k and not k != k

@kernel
def power(s: Box, a: Index, b: Index) -> Real:
    return pow2(a)

@kernel
def rounded_power(s: Box, x: Real, y: Real) -> Real:
    return pow2_rounded(x)

@kernel
def exponent(s: Box, x: Real, y: Real) -> Index:
    return floor_log2(x)
"""


@pytest.fixture
def edges(tmp_path: Path, no_cache: None) -> Any:
    return load(tmp_path, EDGES)


def kernels_of(module: Any) -> list[Kernel]:
    return [k for k in vars(module).values() if isinstance(k, Kernel) and k.file == Path(str(module.__file__))]


LARGE = [0, 1, -1, 7, 46341, -46341, 2**30, 2**31 - 1, -(2**31 - 1), -(2**31)]


@np.errstate(over="ignore")
def test_integers_wrap_at_32_bits(edges: Any) -> None:
    """As int32 does in C where it is defined to: never what a compiler makes of a promise that it does not."""
    code, memory = code_of(kernels_of(edges), FLOAT64), Memory([Box], FLOAT64, CAPACITIES)
    machine = Compiled(code, memory, None)
    for a in map(np.int32, LARGE):
        assert machine.call(edges.negate, a, 0) == np.negative(a)
        assert machine.call(edges.as_real, a, 0) == float(a)
        for b in map(np.int32, LARGE):
            assert machine.call(edges.add, a, b) == a + b == memory.field("n")[0]
            assert machine.call(edges.multiply, a, b) == a * b
            assert machine.call(edges.grows, a, b) == (a + b > a)
            memory.field("n")[0] = 5
            assert machine.call(edges.subtract, a, b) == a - b
            assert memory.field("n")[0] == np.int32(5) - (b - a)


def test_loops_end_at_the_ends_of_int32(edges: Any) -> None:
    """range() counts without an end; a counter of 32 bits would start again from below."""
    memory = Memory([Box], FLOAT32, CAPACITIES)
    machine = Compiled(code_of(kernels_of(edges), FLOAT32), memory, None)
    for a in LARGE:
        for b in LARGE:
            for kernel, turns in ((edges.turns_up, range(a, b, 10**9)), (edges.turns_down, range(b, a, -1500000000))):
                memory.field("counts")[0] = 77
                assert machine.call(kernel, a, b) == len(turns)
                assert memory.field("counts")[0] == (turns[-1] if turns else 77)
    assert machine.call(edges.last_turn, 0, 0) == 6 and memory.field("counts")[0] == 2147483645


@BOTH
def test_reals_are_those_of_ieee_754(edges: Any, precision: Precision) -> None:
    """Signed zeros, numbers below the normal ones, infinities and NaN, which is unordered; each operation rounds once.

    But a quotient below twice the least normal number is zero.
    """
    info = np.finfo(precision.dtype)
    ends = [info.max, info.tiny, info.smallest_subnormal, info.tiny / 2, 1 + info.eps, 1e10, 3.0, 1.0, 0.0, np.inf]
    values = np.array([*ends, *np.negative(ends), np.nan, 2.5, -2.5, 0.1, 1 / 3], precision.dtype)
    memory = Memory([Box], precision, CAPACITIES)
    machine = Compiled(code_of(kernels_of(edges), precision), memory, None)
    with np.errstate(all="ignore"):
        for x in values:
            expected = {"root": np.sqrt(x), "magnitude": np.abs(x)}
            for y in values:
                relations = [x < y, x <= y, x == y, x != y, x > y, x >= y, not (x < y)]
                expected |= {
                    "quotient": precision.real(0) if np.abs(x / y) < 2 * info.tiny else x / y,
                    "muladd": x * y + x,
                    "order": sum(2**i * r for i, r in enumerate(relations)),
                }
                expected["cut"] = int(x) if abs(x) < 2147483000 else 0
                for name, value in expected.items():
                    found = machine.call(getattr(edges, name), x, y)
                    wanted = np.array(value, precision.dtype if name not in ("order", "cut") else np.int32)
                    assert plain_bytes(np.array(found, wanted.dtype)) == plain_bytes(wanted), (name, x, y)
            assert machine.call(edges.unguarded, x, x) == 1  # some number, and always the same
            k = np.frexp(x)[1] - 1 if info.tiny <= np.abs(x) <= info.max else -precision.bias
            assert machine.call(edges.exponent, x, x) == (k if np.abs(x) <= info.max else precision.bias + 1)
    for k in (1 - precision.bias, -60, -1, 0, 1, 60, precision.bias):
        assert machine.call(edges.power, k, 0) == np.ldexp(precision.real(1), k)
        x = precision.real(2.0**precision.bits + precision.bias + k)
        assert machine.call(edges.rounded_power, x, x) == np.ldexp(precision.real(1), k)
    for x in np.array([2.0**precision.bits, 2.0**precision.bits - 0.5, 1, 0, -1, -(2.0**60), -np.inf], precision.dtype):
        assert machine.call(edges.rounded_power, x, x) == 0


# ------------------------------------------------------------------------------------------- what is compiled

PROMISES = r"\b(fast|nnan|ninf|nsz|arcp|contract|afn|reassoc|fmuladd|nuw|inbounds|noalias)\b"


def module_of(spec: Spec) -> str:
    program, config = spec.program, spec.config
    roots = (*(entry.kernel for entry in program.entries_for(config)), program.valid)
    choices = tuple((name, int(getattr(config, name))) for name, kind in program.parameters.items() if is_choice(kind))
    return print_module(roots, choices, spec.real).text


def assembly(text: str, triple: str, cpu: str) -> str:
    target = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=3)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = triple, str(target.target_data)
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(module, passes)
    return target.emit_assembly(module)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    ("triple", "cpu", "fused"),
    [
        ("x86_64-unknown-linux-gnu", "skylake-avx512", r"\bvf(n)?m(add|sub)\w*"),
        ("x86_64-unknown-linux-gnu", "bdver2", r"\bvf(n)?m(add|sub)\w*"),  # with FMA4, too
        ("aarch64-unknown-linux-gnu", "neoverse-v1", r"\b(fn?m(add|sub|la|ls|ad|sb)|fcmla)\b"),
    ],
)
def test_no_product_is_fused_with_a_sum(triple: str, cpu: str, fused: str) -> None:
    """On processors that could, at the highest level; with a flag that allows it they do, so that this is seen."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError:
        pytest.skip(f"this llvmlite compiles nothing for {triple}")
    llvm.initialize_native_target()
    for precision in ("float32", "float64"):
        text = module_of(frozen_spec(precision))
        assert not re.search(fused, assembly(text, triple, cpu))
        assert re.search(fused, assembly(re.sub(r" = (f(?:mul|add|sub)) ", r" = \1 contract ", text), triple, cpu))


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["krr", "subspace"])
def test_no_operation_is_promised_to_be_harmless(name: str) -> None:
    text = module_of(machine(name))
    assert not re.search(PROMISES, text)
    # nsw only for counters of 64 bits, which begin as 32
    assert set(re.findall(r".*\bnsw\b.*", text)) == set(re.findall(r"  %d\.b\d+ = add nsw i64 %c\.b\d+, -?\d+", text))
    after = str(engine.optimised(text, engine.OPTIMISED))
    assert re.search(r"\bfmul\b", after) and not re.search(
        r"\bf\w+ (fast|contract|reassoc|nnan|ninf|nsz|arcp|afn)\b", after
    )
    for level in range(len(engine.LEVELS)):
        made = engine._target(level).emit_assembly(engine.optimised(text, level))
        assert not re.search(r"\bvf(n)?m(add|sub)\w*|\bfn?m(add|sub|la|ls)\b", made)


def test_one_compilation_serves_all_sizes_and_numbers() -> None:
    """Of the same choices and precision; each computes with its own."""
    shared = {"reduction": {"n_max": 5}, "kernel": {"sigma": 1.0}}
    content = [
        {"input": {"dim": 3}} | shared,
        {"input": {"dim": 2}, "kernel": {"sigma": 2.5}, "reduction": {"n_max": 11}},
    ]
    specs = [make_spec({"name": "flow"} | each) for each in content]
    specs.append(make_spec({"name": "flow", "precision": "float64"} | content[0]))
    specs.append(make_spec({"name": "flow", "learning": {"rule": "krls-t"}} | content[0]))
    codes = [HostModel(spec).executor.code for spec in specs]
    assert codes[0] is codes[1] and len({*map(id, codes)}) == 3
    assert module_of(specs[0]) == module_of(specs[1])
    for spec in specs[:2]:
        compare_calls(spec, 3, 120)


def test_what_makes_the_code_is_part_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels' sources, gen's own, what is asked for; and of the machine code the IR, LLVM and the processor."""
    found: list[Path] = []
    monkeypatch.setattr(engine, "cache_folder", lambda kind, digest: Path(digest))
    for module in (engine, sealed):
        monkeypatch.setattr(module, "read_sealed", lambda path: found.append(path))
    monkeypatch.setattr(sealed, "write_sealed", lambda path, content: None)
    program = frozen_spec().program
    roots = (program.entry("update"), program.entry("predict"))

    def files(roots: tuple[Kernel, ...] = roots, precision: Precision = FLOAT32, flag: int = 0) -> list[Path]:
        found.clear()
        compiled.__wrapped__(roots, (("flag", flag),), precision)
        return list(found)

    before = files()
    assert files() == before
    others = [files(roots[:1]), files(precision=FLOAT64), files(flag=1)]
    with monkeypatch.context() as patch:
        patch.setitem(engine.MAKERS, "language", "other")
        others.append(files())
    with monkeypatch.context() as patch:
        patch.setattr(roots[0], "source", roots[0].source + b"# edited\n")
        others.append(files())
    assert len({tuple(paths[:1]) for paths in (before, *others)}) == 6
    # another choice, of which this code knows nothing: the same IR, and the same machine code
    assert [each[1] == before[1] for each in others] == [False, False, True, False, False]
    made, plainer = set(), (*engine._processor()[:2], "")
    for name, value in (("OPTIMISED", engine.OPTIMISED), ("OPTIMISED", 1), ("_processor", lambda: plainer)):
        with monkeypatch.context() as patch:
            patch.setattr(engine, name, value)
            made.add(files()[1])
    assert before[1] in made and len(made) == 3


# ------------------------------------------------------------------------------------------------------ models

PRECISIONS = ("float32", "float64")


@pytest.mark.in_turn(72)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.usefixtures("level")
def test_every_call_of_every_program(name: str, precision: str) -> None:
    """Update, questions, visits, actions, readings and `valid`, in random order and with hostile numbers."""
    compare_calls(machine(name, precision), 1, 150)


@pytest.mark.parametrize("name", ["class", "table", "several"])
def test_every_call_of_programs_that_nothing_knows(name: str) -> None:
    specs = {
        "class": lambda: toy_spec("class"),
        "table": lambda: frozen_spec("float64", spare=True),
        "several": lambda: toy_spec("reals", "float64"),
    }
    compare_calls(specs[name](), 2, 200)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(60))
def test_random_specs(seed: int) -> None:
    compare_calls(random_spec(np.random.default_rng([88, seed])), seed, 400)


@pytest.mark.in_turn
@pytest.mark.parametrize("kernel", ["rational_quadratic", "products"])
def test_a_custom_kernel(kernel: str, tmp_path: Path) -> None:
    """In a model that predicts, and in one that learns."""
    path = written(tmp_path, kernel=kernel, coef0=0.5, max_value=1.0 if kernel == "rational_quadratic" else 1e12)
    compare_calls(load_spec(path, trust=True), 1, 60)
    own = path.read_text().partition("[kernel]")[2].partition("[")[0]
    path.write_text(f'name = "flow"\n[input]\ndim = 3\nmax_abs = 50.0\n[reduction]\nn_max = 5\n[kernel]{own}')
    compare_calls(load_spec(path, trust=True), 2, 150)


@pytest.mark.exhaustive
def test_streams() -> None:
    """First rows left out, labels that come late, alarms that are read after each row, and no labels at all."""
    labelled = make_spec(
        MACHINES["subspace-rls"]
        | {"name": "flow", "input": {"dim": 3, "max_abs": 10.0}, "learning": {"rule": "okfeb", "features": 4}}
    )
    monitor = make_spec({"name": "m", "input": {"dim": 3}, "novelty": {"warmup": 20}})
    for spec in (labelled, monitor, machine("subspace")):
        rng = np.random.default_rng(5)
        x = rng.normal(size=(60, 3))
        x[::5, 1] = np.nan  # refused: by the question, and later by update
        y = None
        if spec.program.label_kind == "class":
            y = rng.integers(len(spec.label.classes), size=60)
        elif spec.program.label_kind == "real":
            y = rng.normal(size=60)
        for first, delay in ((0, 0), (0, 7), (13, 30), (60, 0), (20, 200)):
            mine, plain = both(spec)
            results = [[*each.prequential(x, y, first, delay)] for each in (mine, plain)]
            if spec.program.alarms:
                for each, result in zip((mine, plain), results, strict=True):
                    result += each.prequential_alarms(x, y, first, delay)
            for a, b in zip(*results, strict=True):
                assert a.tobytes() == b.tobytes() and a.shape == b.shape, (spec.learning.rule, first, delay)
            assert mine.memory.bytes == plain.memory.bytes


def test_what_a_machine_works_on_stays_alive() -> None:
    """spec.config is made anew each time: its tables would go, and others come to lie where they were."""
    spec = frozen_spec("float64")
    config, memory = spec.config, spec.memory(())
    machine = program_executor(spec.program, memory, config)
    tables = [value for value in vars(config).values() if isinstance(value, np.ndarray)]
    kept = [weakref.ref(array) for array in (*tables, memory.buffer)]
    assert len(kept) > 2
    del config, memory, tables
    gc.collect()
    assert all(each() is not None for each in kept)
    x, answers, statuses = np.ones((1, 2)), np.zeros((1, 1)), np.zeros(1, np.int32)
    machine.rows(x, statuses, ask=spec.program.entry("predict"), answers=answers)
    assert answers[0, 0] == HostModel(spec, engine="python").predict(x)[0] and statuses[0] == 0


def test_arrays_of_another_kind_are_refused() -> None:
    """Nothing is computed and nothing written: the code would read or write beyond them."""
    spec = make_spec({"name": "flow", "input": {"dim": 3}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 4}})
    model = HostModel(spec)
    run, program = model.executor.rows, spec.program
    predict, update = program.entry("predict"), program.entry("update")
    x, y, statuses, answers = np.ones((5, 3), "f4"), np.ones(5, "f4"), np.zeros(5, "i4"), np.zeros((5, 1), "f4")
    wrong: list[tuple[Any, dict[str, Any], str]] = [
        (x[:, :2].copy(), {}, "x must be"),
        (x.astype("f8"), {}, "x must be"),
        (np.ones((3, 5), "f4").T, {}, "x must be"),
        (x, {"y": y[:4]}, "y must be"),
        (x, {"y": y.astype("f8")}, "y must be"),
        (x, {"y": None}, "y must be"),
        (x, {"y": [1.0] * 5}, "y must be"),
        (x, {"answers": answers[:4]}, "answers must be"),
        (x, {"answers": np.zeros((5, 2), "f4")}, "answers must be"),
        (x, {"statuses": statuses[:4]}, "statuses must be"),
        (x, {"statuses": statuses.astype("i8")}, "statuses must be an array of int32"),
        (x, {"first": 6}, "first is 6 and delay is 0; for 5 rows"),
        (x, {"delay": -1}, "first is 0 and delay is -1"),
    ]
    for inputs, given, says in wrong:
        given = {"statuses": statuses, "ask": predict, "answers": answers, "learn": update, "y": y} | given
        with pytest.raises(ValueError, match=re.escape(says)):
            run(inputs, **given)
    with pytest.raises(ValueError, match="update must be"):
        model.executor.call(update, x, 1.0)
    with pytest.raises(TypeError, match="takes 2 arguments, not 1"):
        model.executor.call(update, x[0])
    assert not any(model.memory.bytes)
    run(x, statuses, ask=predict, answers=answers, learn=update, y=y)
    assert any(model.memory.bytes)


def test_bound_calls_go_on_where_the_code_is_optimised(monkeypatch: pytest.MonkeyPatch, no_cache: None) -> None:
    """On arrays that stay: what they hold is what is computed with."""
    compiled.cache_clear()
    spec = make_spec({"name": "flow", "input": {"dim": 3}, "kernel": {"sigma": 1.0}, "reduction": {"n_max": 4}})
    model, twin, program = HostModel(spec), HostModel(spec, engine="python"), spec.program
    x, y, answer = np.zeros(3, "f4"), np.zeros((), "f4"), np.zeros(1, "f4")
    machine = model.executor
    assert isinstance(machine, Compiled)
    learn, ask = machine.bound(program.entry("update"), x, y), machine.bound(program.entry("predict"), x, answer)
    levels = set()
    for i, (row, label) in enumerate(np.random.default_rng(0).normal(size=(40, 2, 3)).astype("f4")):
        x[:], y[()] = row, label[0]
        assert ask() == 0 and answer[0] == twin.predict(row)[0]
        assert learn() == twin.update(row, label[:1])[0]
        levels.add(machine.code.level)
        if i == 20:
            monkeypatch.setattr(machine.code, "patience", 0.0)
    assert levels == {engine.QUICK, engine.QUICK + 1}
    for wrong in ((x[:2], y), (x.astype("f8"), y), (x, np.zeros(1, "f4")), (x,)):
        with pytest.raises(ValueError):
            machine.bound(program.entry("update"), *wrong)
    compiled.cache_clear()
