"""The dialect's own promises: layout, one compilation for all sizes, a cache that is never stale, checked execution."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.online.online import update
from pykernel.dialect import (
    DIM,
    FLOAT32,
    FLOAT64,
    Bool,
    Config,
    Constant,
    Index,
    Memory,
    Precision,
    Real,
    Struct,
    bind,
    driver,
    entry,
    kernel,
    layout,
    real,
    sources_digest,
)

# mypy: ignore-errors

BOTH = pytest.mark.parametrize("precision", [FLOAT32, FLOAT64], ids=str)


class Shelf(Struct):
    """Fields in the wrong order on purpose: indices before reals."""

    count: Index
    weight: Real
    table: Real[N_MAX, DIM]
    tags: Index[N_MAX + 2]
    pairs: Real[N_MAX * 2]


class Bench(Struct):
    """A second struct of the same memory."""

    turn: Index
    work: Real[N_MAX]


class Twin(Struct):
    """The fields of Bench, in another struct."""

    at: Index
    room: Real[N_MAX]


# ------------------------------------------------------------------------------------------------------ layout


@given(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([FLOAT32, FLOAT64]),
    st.sets(st.sampled_from([*Shelf.fields, *Bench.fields])),
)
def test_fields_follow_each_other_without_gaps(n_max: int, dim: int, precision: Precision, drop: set[str]) -> None:
    capacities = {"N_MAX": n_max, "DIM": dim}
    made = layout((Shelf, Bench), precision, capacities, drop)
    size = precision.dtype.itemsize
    offset = 0
    for slot in made.slots:
        assert slot.offset == offset, "implicit padding"
        item = size if slot.array.scalar is Real else 4
        assert slot.offset % item == 0 and slot.nbytes == int(np.prod(slot.shape)) * item
        offset += slot.nbytes
    assert made.nbytes == offset and offset % size == 0
    padding = [slot for slot in made.slots if not slot.struct]
    assert all(slot.name.startswith("reserved_") and slot.nbytes == 4 for slot in padding)
    assert precision is FLOAT64 or not padding
    names = [slot.name for slot in made.slots if slot.struct]
    reals_first = ["weight", "table", "pairs", "count", "tags", "work", "turn"]
    assert names == [name for name in reals_first if name not in drop]
    dtype = made.dtype(precision)
    assert dtype.itemsize == made.nbytes and all(dtype.fields[s.name][1] == s.offset for s in made.slots)
    ends = {slot.struct: slot.offset + slot.nbytes for slot in made.slots if slot.struct}
    assert all(end <= made.ends[struct] < end + size for struct, end in ends.items())


@BOTH
def test_views_are_the_bytes_and_survive_dropped_fields(precision: Precision) -> None:
    capacities = {"N_MAX": 3, "DIM": 2}
    whole, part = (Memory((Shelf, Bench), precision, capacities, drop) for drop in ((), ("table", "turn")))
    for memory in (whole, part):
        shelf, bench = memory.view(Shelf), memory.view(Bench)
        for view, struct in ((shelf, Shelf), (bench, Bench)):
            for number, name in enumerate(struct.fields):
                getattr(view, name)[...] = number + 1
                assert getattr(view, name).flags.c_contiguous and getattr(view, name).flags.aligned
        assert (memory.field("table") == 3).all() and shelf.table.shape == (3, 2) and shelf.weight.shape == (1,)
    assert len(part.bytes) == part.layout.nbytes < len(whole.bytes) == whole.layout.nbytes
    slot = next(slot for slot in whole.layout.slots if slot.name == "pairs")
    in_bytes = np.frombuffer(whole.bytes, precision.dtype, 6, slot.offset)
    assert (in_bytes == 5).all()
    whole.clear()
    assert not any(whole.bytes)
    whole.copy_from(part)
    assert (whole.field("table") == 3).all() and (whole.field("turn") == 1).all()


def test_structs_and_fields_are_told_apart_by_name() -> None:
    with pytest.raises(TypeError, match="called Bench exists already"):

        class Bench(Struct):
            other: Real

    with pytest.raises(TypeError, match=r"Odd\.flag: a field is"):

        class Odd(Struct):
            flag: Bool

    with pytest.raises(TypeError, match=r"Open\.rest: a field is"):

        class Open(Struct):
            rest: Real[...]

    class Again(Struct):
        work: Real

    with pytest.raises(TypeError, match="field called work"):
        layout((globals()["Bench"], Again), FLOAT32, {"N_MAX": 1, "DIM": 1})
    with pytest.raises(KeyError, match="N_MAX"):
        layout((Again, Twin), FLOAT32, {"DIM": 1})


# ---------------------------------------------------------------------------------------------------- compiling


@entry
def sum_bench(s: Bench) -> Real:
    total = real(0)
    for i in range(len(s.work)):
        total += s.work[i]
    return total


@entry
def sum_twin(s: Twin) -> Real:
    total = real(0)
    for i in range(len(s.room)):
        total += s.room[i] + s.room[i]
    return total


@BOTH
def test_structs_with_equal_fields_are_two_types(precision: Precision) -> None:
    """Numba recognises a named tuple by its class's name and its fields' types."""
    benches = Memory((Bench,), precision, {"N_MAX": 3}), Memory((Twin,), precision, {"N_MAX": 3})
    for memory, name in zip(benches, ("work", "room"), strict=True):
        memory.field(name)[...] = [1, 2, 3]
    for _ in range(2):
        assert bind(sum_bench, precision)(benches[0].view(Bench)) == 6
        assert bind(sum_twin, precision)(benches[1].view(Twin)) == 12
    with pytest.raises(TypeError):
        bind(sum_bench, precision)(benches[1].view(Twin))


@kernel
def half_promoted(x: Real) -> Real:
    return x * 0.5


@entry
def calls_half_promoted(x: Real) -> Real:
    return half_promoted(x) * real(2)


@entry
def mixes_index_and_real(s: Bench) -> None:
    s.work[0] = s.work[0] * s.turn[0]


@entry
def compares_in_double(s: Bench) -> None:
    if s.work[0] < 0.1:
        s.work[0] = real(0)


@kernel
def takes_real(x: Real) -> Real:
    return x


@entry
def passes_a_double(s: Bench) -> None:
    s.work[0] = takes_real(0.1)


@pytest.mark.parametrize("promoting", [calls_half_promoted, mixes_index_and_real, compares_in_double, passes_a_double])
def test_float32_stays_float32(promoting: Any) -> None:
    """Where Numba would compute in float64 and round only the result, binding fails, at first and ever after."""
    for _ in range(2):
        with pytest.raises(TypeError, match=r"float64.* where .*(Real is float32|declares float32)"):
            bind(promoting, FLOAT32)


@BOTH
def test_what_is_called_with_other_types_is_not_compiled_again(precision: Precision) -> None:
    memory = Memory((Bench,), precision, {"N_MAX": 3})
    other = Memory((Bench,), FLOAT64 if precision is FLOAT32 else FLOAT32, {"N_MAX": 3})
    function = bind(sum_bench, precision)
    assert function(memory.view(Bench)) == 0
    with pytest.raises(TypeError, match="No matching definition"):
        function(other.view(Bench))


def test_kernels_have_neither_recursion_nor_a_meaning_of_their_own() -> None:
    with pytest.raises(TypeError, match="bind"):
        sum_bench(None)
    with pytest.raises(TypeError, match="calls itself"):
        bind(recursive, FLOAT32)
    # a kernel may have the name of a field that it reads
    assert bind(work, FLOAT32)(Memory((Bench,), FLOAT32, {"N_MAX": 1}).view(Bench)) == 0


@kernel
def recursive(x: Real) -> Real:
    return recursive(x)


@entry
def work(s: Bench) -> Real:
    return s.work[0]


@BOTH
def test_constants_and_parameters_are_rounded_once(precision: Precision) -> None:
    third = Constant(1 / 3).value(precision)
    table = Constant(float32=[0.1, 0.2], float64=[0.3, 0.4])
    assert type(third) is precision.real and third == precision.real(1 / 3)
    assert table.is_table and table.value(precision).dtype == precision.dtype
    assert table.value(precision)[1] == precision.real(0.2 if precision is FLOAT32 else 0.4)
    config = Knob.of(precision, {"gain": 1 / 3, "on": True})
    assert type(config.gain) is precision.real and type(config.on) is int


class Knob(Config):
    gain: Real
    on: bool


class Rack(Config):
    rows: Real[N_MAX, DIM]
    order: Index[N_MAX]


@kernel
def row_sum(row: Real[...], n: Index) -> Real:
    y = real(0)
    for j in range(n):
        y += row[j]
    return y


@entry
def sum_rack(c: Rack) -> Real:
    y = real(0)
    for i in range(len(c.rows)):
        y = y * real(10) + row_sum(c.rows[c.order[i]], len(c.rows[0]))
    return y


@kernel
def overwrite(row: Real[...]) -> None:
    row[0] = real(7)


@entry
def writes_a_table(c: Rack) -> None:
    overwrite(c.rows[0])


@BOTH
@pytest.mark.parametrize("jit", [True, False])
def test_tables_of_a_configuration_cannot_be_written(precision: Precision, jit: bool) -> None:
    given = {"rows": np.array([[0.1, 0.2], [3.0, 4.0], [5.0, 6.0]]), "order": [2, 0, 1]}
    config = Rack.of(precision, given, {"N_MAX": 3, "DIM": 2})
    assert config.rows.dtype == precision.dtype and config.rows[0, 0] == precision.real(0.1)
    expected = precision.real(1100) + (config.rows[0, 0] + config.rows[0, 1]) * precision.real(10) + precision.real(7)
    # joblib and Dask send configurations to other processes, and scikit-learn copies them
    for same in (config, pickle.loads(pickle.dumps(config)), copy.deepcopy(config)):
        assert bind(sum_rack, precision, jit)(same) == expected
        with pytest.raises(ValueError, match="read-only"):
            same.rows[0, 0] = 7
        with pytest.raises(Exception, match=r"[Rr]ead-?only"):
            bind(writes_a_table, precision, jit)(same)
        assert same.rows[0, 0] == precision.real(0.1)
    given["rows"][0, 0] = 9
    assert config.rows[0, 0] == precision.real(0.1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rows": np.zeros((2, 3))}, r"rows has shape \(2, 3\); it must be Real\[N_MAX, DIM\], \(3, 2\)"),
        ({"rows": np.zeros(6)}, "rows has shape"),
        ({"rows": [[1, 2], [3, np.nan], [5, 6]]}, "rows holds a number that does not fit in Real"),
        ({"rows": [[1, 2], [3, 1e39], [5, 6]]}, "rows holds a number that does not fit in Real"),
        ({"order": [0, 1, 2**31]}, "order holds a number that does not fit in Index"),
    ],
)
def test_impossible_tables(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rack.of(FLOAT32, {"rows": np.zeros((3, 2)), "order": [0, 1, 2]} | change, {"N_MAX": 3, "DIM": 2})


@pytest.mark.parametrize("kind", [Real[...], Real[2, 2, 2], Bool[2]])
def test_tables_have_one_or_two_extents(kind: Any) -> None:
    with pytest.raises(TypeError, match="a table is of Real or Index, with one or two fixed extents"):
        type("Shapeless", (Config,), {"__annotations__": {"rows": kind}})


# -------------------------------------------------------------------------------------------------- the cache

PACKAGE = {
    "constants.py": """
        from pykernel.dialect import Constant
        OFFSET = Constant(100.0)
    """,
    "choices.py": """
        from enum import IntEnum
        class Sign(IntEnum):
            PLUS = 1
    """,
    "callee.py": """
        from choices import Sign
        from constants import OFFSET
        from pykernel.dialect import Real, kernel, real
        @kernel
        def shifted(x: Real) -> Real:
            if Sign.PLUS == 1:
                return x * real(2) + OFFSET
            return x * real(2) - OFFSET
    """,
    "caller.py": """
        from callee import shifted
        from pykernel.dialect import Real, entry, kernel, real
        @entry
        def compute(x: Real) -> Real:
            return shifted(x) + real(1)
    """,
    "run.py": """
        import json, sys
        from pathlib import Path
        import caller, callee
        from pykernel.dialect import FLOAT32, bind
        if len(sys.argv) > 1:  # edited while a process has it already imported
            file = Path(callee.__file__)
            file.write_text(file.read_text().replace("real(2)", "real(" + sys.argv[1] + ")"))
        compute = bind(caller.compute, FLOAT32)
        stats = compute.stats
        print(json.dumps([compute(1.0), sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
    """,
}


class Processes:
    """Runs a small package in new processes with a cache folder of their own: (result, cache hits, misses)."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.cache = folder, folder / "cache"
        for name, text in PACKAGE.items():
            (folder / name).write_text(textwrap.dedent(text))

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert old in text
        (self.folder / name).write_text(text.replace(old, new))

    def run(self, *args: str) -> list[float]:
        # no bytecode: an edit within the same second and of the same length would go unseen by Python itself
        variables = {"XDG_CACHE_HOME": str(self.cache), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "run.py", *args],
            cwd=self.folder,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


ON_LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the cache's place is set by XDG_CACHE_HOME")


@ON_LINUX
def test_the_cache_serves_other_processes_and_is_never_stale(processes: Processes) -> None:
    assert processes.run() == [103, 0, 1]
    assert processes.run() == [103, 1, 0]
    processes.edit("callee.py", "real(2)", "real(4)")
    assert processes.run() == [105, 0, 1]
    processes.edit("constants.py", "100.0", "200.0")
    assert processes.run() == [205, 0, 1]
    processes.edit("choices.py", "PLUS = 1", "PLUS = 3")
    assert processes.run() == [-195, 0, 1]
    assert processes.run() == [-195, 1, 0]
    processes.edit("caller.py", "real(1)", "real(7)")
    assert processes.run() == [-189, 0, 1]


@ON_LINUX
def test_an_edit_during_a_process_does_not_mislead_the_next(processes: Processes) -> None:
    """The first compiles what it has imported, the next what is in the file."""
    assert processes.run("5") == [103, 0, 1]
    assert processes.run() == [106, 0, 1]


@ON_LINUX
def test_an_unwritable_cache_folder_only_costs_time(processes: Processes) -> None:
    processes.cache.write_text("a file where the folder would be")
    assert processes.run() == [103, 0, 1]
    assert processes.run() == [103, 0, 1]


def test_the_digest_is_that_of_what_is_reached() -> None:
    assert sources_digest([update]) == sources_digest([update]) != sources_digest([sum_bench])
    assert sources_digest([sum_bench]) != sources_digest([sum_twin]), "equal files, other structs"


# ----------------------------------------------------------------------------------------- checked execution


@entry
def read_at(s: Bench, i: Index) -> Real:
    return s.work[i]


@entry
def read_pair(s: Shelf, i: Index, j: Index) -> Real:
    return s.table[i, j]


@entry
def read_row(s: Shelf, i: Index) -> Real:
    return total(s.table[i])


@kernel
def total(x: Real[DIM]) -> Real:
    y = real(0)
    for j in range(len(x)):
        y += x[j]
    return y


@entry
def write_real(s: Bench, y: Real) -> None:
    s.work[0] = y


@entry
def write_index(s: Bench, i: Index) -> None:
    s.turn[0] = i


@entry
def add_to_index(s: Bench, i: Index) -> None:
    s.turn[0] += i


@entry
def write_index_as_real(s: Bench, i: Index) -> None:
    s.work[0] = i


@entry
def write_row(s: Shelf, y: Real) -> None:
    s.table[0] = y


@BOTH
def test_plain_execution_refuses_what_c_would_not_survive(precision: Precision) -> None:
    memory = Memory((Shelf, Bench), precision, {"N_MAX": 3, "DIM": 2})
    shelf, bench = memory.view(Shelf), memory.view(Bench)
    memory.field("table")[1] = [3, 4]
    number = precision.real

    def plain(k: Any, *args: Any) -> Any:
        return bind(k, precision, jit=False)(*args)

    assert type(plain(read_at, bench, 2)) is number
    assert plain(read_row, shelf, 1) == 7 and plain(read_pair, shelf, 1, 1) == 4
    for position in (-1, 3, 2**40, 1.0, np.int64(1), True):
        with pytest.raises(IndexError, match="position"):
            plain(read_at, bench, position)
    for pair in ((0, 2), (3, 0), (0, -1)):
        with pytest.raises(IndexError, match="position"):
            plain(read_pair, shelf, *pair)
    other = np.float64 if precision is FLOAT32 else np.float32
    for value in (other(1), 1, 1.0):
        with pytest.raises(TypeError, match="stored into"):
            plain(write_real, bench, value)
    plain(write_real, bench, number(2))
    assert bench.work[0] == 2
    with pytest.raises(TypeError, match="stored into"):
        plain(write_index_as_real, bench, 1)
    with pytest.raises(TypeError, match="stored into"):
        plain(write_row, shelf, number(1))
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError, match="int32"):
            plain(write_index, bench, value)
    plain(write_index, bench, 2**31 - 1)
    with pytest.raises(OverflowError, match="int32"):
        plain(add_to_index, bench, 1)
    with pytest.raises(TypeError, match="stored into"):
        plain(write_index, bench, number(1))
    assert bench.turn[0] == 2**31 - 1


@driver
def sums(s: Bench, out):
    for i in range(len(out)):
        out[i] = sum_bench(s)


@BOTH
def test_drivers_run_in_both_executions(precision: Precision) -> None:
    memory = Memory((Bench,), precision, {"N_MAX": 3})
    memory.field("work")[...] = [0.5, 1, 2]
    for jit in (True, False):
        out = np.zeros(4, precision.dtype)
        bind(sums, precision, jit)(memory.view(Bench), out)
        assert (out == 3.5).all()
