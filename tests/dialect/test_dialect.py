"""The dialect's own promises: layout, digests, checked execution."""

from __future__ import annotations

import copy
import dis
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import typeof

from pykernel.algorithms.extents import N_MAX
from pykernel.algorithms.frame import update
from pykernel.algorithms.online.state import Metric, Tie
from pykernel.algorithms.online.techniques import cost
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
    chosen,
    kernel,
    layout,
    real,
    sources_digest,
)
from pykernel.dialect.kernels import Kernel
from pykernel.engine.numba_structs import numba_type
from pykernel.spec.model import FAMILIES
from tests.support.dialect_cases import numba_function

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

    with pytest.raises(TypeError, match=r"Odd\.flag: a field must be"):

        class Odd(Struct):
            flag: Bool

    with pytest.raises(TypeError, match=r"Open\.rest: a field must be"):

        class Open(Struct):
            rest: Real[...]

    class Again(Struct):
        work: Real

    with pytest.raises(TypeError, match="field called work"):
        layout((globals()["Bench"], Again), FLOAT32, {"N_MAX": 1, "DIM": 1})
    with pytest.raises(KeyError, match="N_MAX"):
        layout((Again, Twin), FLOAT32, {"DIM": 1})


# ---------------------------------------------------------------------------------------------------- compiling


@kernel
def sum_bench(s: Bench) -> Real:
    total = real(0)
    for i in range(len(s.work)):
        total += s.work[i]
    return total


@kernel
def sum_twin(s: Twin) -> Real:
    total = real(0)
    for i in range(len(s.room)):
        total += s.room[i] + s.room[i]
    return total


@BOTH
def test_structs_with_equal_fields_are_two_types(precision: Precision) -> None:
    """Numba recognises a named tuple by its class's name and its fields' types."""
    benches = Memory((Bench,), precision, {"N_MAX": 3}), Memory((Twin,), precision, {"N_MAX": 3})
    other = Memory((Bench,), FLOAT64 if precision is FLOAT32 else FLOAT32, {"N_MAX": 3})
    for memory, name in zip(benches, ("work", "room"), strict=True):
        memory.field(name)[...] = [1, 2, 3]
    types = [typeof(memory.view(kind)) for memory, kind in zip((*benches, other), (Bench, Twin, Bench), strict=True)]
    assert len(set(types)) == 3
    assert [str(kind).partition("(")[0] for kind in types] == ["Bench", "Twin", "Bench"]
    assert types[0] == numba_type(Bench, precision)
    assert bind(sum_bench, precision)(benches[0].view(Bench)) == 6
    assert bind(sum_twin, precision)(benches[1].view(Twin)) == 12


def test_kernels_have_neither_recursion_nor_a_meaning_of_their_own() -> None:
    with pytest.raises(TypeError, match="bind"):
        sum_bench(None)
    with pytest.raises(TypeError, match="calls itself"):
        bind(recursive, FLOAT32)
    # made once: an engine asks at each call
    assert bind(work, FLOAT32) is bind(work, FLOAT32)
    # a kernel may have the name of a field that it reads
    assert bind(work, FLOAT32)(Memory((Bench,), FLOAT32, {"N_MAX": 1}).view(Bench)) == 0


@kernel
def recursive(x: Real) -> Real:
    return recursive(x)


@kernel
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


@kernel
def sum_rack(c: Rack) -> Real:
    y = real(0)
    for i in range(len(c.rows)):
        y = y * real(10) + row_sum(c.rows[c.order[i]], len(c.rows[0]))
    return y


@kernel
def overwrite(row: Real[...]) -> None:
    row[0] = real(7)


@kernel
def writes_a_table(c: Rack) -> None:
    overwrite(c.rows[0])


@BOTH
@pytest.mark.parametrize("made", [bind, numba_function])
def test_tables_of_a_configuration_cannot_be_written(precision: Precision, made: Any) -> None:
    given = {"rows": np.array([[0.1, 0.2], [3.0, 4.0], [5.0, 6.0]]), "order": [2, 0, 1]}
    config = Rack.of(precision, given, {"N_MAX": 3, "DIM": 2})
    assert config.rows.dtype == precision.dtype and config.rows[0, 0] == precision.real(0.1)
    expected = precision.real(1100) + (config.rows[0, 0] + config.rows[0, 1]) * precision.real(10) + precision.real(7)
    # joblib sends configurations to other processes, and scikit-learn copies them
    for same in (config, pickle.loads(pickle.dumps(config)), copy.deepcopy(config)):
        assert made(sum_rack, precision)(same) == expected
        with pytest.raises(ValueError, match="read-only"):
            same.rows[0, 0] = 7
        with pytest.raises(Exception, match=r"[Rr]ead-?only|is a table of the configuration, which is constant"):
            made(writes_a_table, precision)(same)
        assert same.rows[0, 0] == precision.real(0.1)
    given["rows"][0, 0] = 9
    assert config.rows[0, 0] == precision.real(0.1)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"rows": np.zeros((2, 3))}, r"rows has shape \(2, 3\); the shape of Real\[N_MAX, DIM\] must be \(3, 2\)"),
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
    with pytest.raises(TypeError, match="a table must hold Real or integers, and must have one or two fixed extents"):
        type("Shapeless", (Config,), {"__annotations__": {"rows": kind}})


def test_the_digest_is_that_of_what_is_reached() -> None:
    assert sources_digest([update]) == sources_digest([update]) != sources_digest([sum_bench])
    assert sources_digest([sum_bench]) != sources_digest([sum_twin]), "equal files, other structs"


# ----------------------------------------------------------------------------------------- checked execution


@kernel
def read_at(s: Bench, i: Index) -> Real:
    return s.work[i]


@kernel
def read_pair(s: Shelf, i: Index, j: Index) -> Real:
    return s.table[i, j]


@kernel
def read_row(s: Shelf, i: Index) -> Real:
    return total(s.table[i])


@kernel
def total(x: Real[DIM]) -> Real:
    y = real(0)
    for j in range(len(x)):
        y += x[j]
    return y


@kernel
def write_real(s: Bench, y: Real) -> None:
    s.work[0] = y


@kernel
def write_index(s: Bench, i: Index) -> None:
    s.turn[0] = i


@kernel
def add_to_index(s: Bench, i: Index) -> None:
    s.turn[0] += i


@kernel
def write_index_as_real(s: Bench, i: Index) -> None:
    s.work[0] = i


@kernel
def write_row(s: Shelf, y: Real) -> None:
    s.table[0] = y


@BOTH
def test_plain_execution_refuses_what_c_would_not_survive(precision: Precision) -> None:
    memory = Memory((Shelf, Bench), precision, {"N_MAX": 3, "DIM": 2})
    shelf, bench = memory.view(Shelf), memory.view(Bench)
    memory.field("table")[1] = [3, 4]
    number = precision.real

    def plain(k: Any, *args: Any) -> Any:
        return bind(k, precision)(*args)

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
        with pytest.raises(TypeError, match="stored in"):
            plain(write_real, bench, value)
    plain(write_real, bench, number(2))
    assert bench.work[0] == 2
    with pytest.raises(TypeError, match="stored in"):
        plain(write_index_as_real, bench, 1)
    with pytest.raises(TypeError, match="stored in"):
        plain(write_row, shelf, number(1))
    for value in (2**31, -(2**31) - 1):
        with pytest.raises(OverflowError, match="int32"):
            plain(write_index, bench, value)
    plain(write_index, bench, 2**31 - 1)
    with pytest.raises(OverflowError, match="int32"):
        plain(add_to_index, bench, 1)
    with pytest.raises(TypeError, match="stored in"):
        plain(write_index, bench, number(1))
    assert bench.turn[0] == 2**31 - 1


@kernel
def add(m: Shelf, y: Real) -> Real:
    return m.weight[0] + y


@kernel
def count(m: Shelf, y: Index) -> Index:
    return m.count[0] + y


def test_a_table_of_kernels_is_whole_and_of_one_type():
    with pytest.raises(
        TypeError,
        match="metric can be AGE, for which the table has no kernel; add a kernel, or pass the argument 'otherwise'",
    ):
        chosen("metric", {Metric.MAGNITUDE: add})
    with pytest.raises(TypeError, match="members of one enumeration, not of 2"):
        chosen("metric", {Metric.MAGNITUDE: add, Tie.NEWEST: add}, add)
    with pytest.raises(TypeError, match="count and add, which calls it, must have the same types"):
        chosen("metric", {Metric.MAGNITUDE: count}, add)(add.function)
    assert pickle.loads(pickle.dumps(cost)) is cost


def test_names_that_a_kernel_loads_are_those_that_dis_finds():
    """Of every kernel: callees, digests and the printed C depend on them."""
    programs = [program for family in FAMILIES for program in family.programs.values()]
    modules = {entry.kernel.function.__module__ for program in programs for entry in program.entries}
    some = {k for name in modules for k in vars(sys.modules[name]).values() if isinstance(k, Kernel)}
    assert len(some) > 100
    for k in some:
        if k.choice:  # its callees stand in a table
            assert len(k.callees()) == len(k.members) > 1
            continue
        code = dis.get_instructions(k.function.__code__)
        assert list(k._global_names) == list(
            dict.fromkeys(each.argval for each in code if each.opname == "LOAD_GLOBAL")
        )
    many = "def f():\n    return (" + ", ".join(f"name{i}" for i in range(300)) + ")"  # operands of more than one byte
    space: dict[str, Any] = {}
    exec(many, space)
    wide = object.__new__(Kernel)
    wide.function = space["f"]
    assert list(wide._global_names) == [f"name{i}" for i in range(300)]
