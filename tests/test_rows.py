"""Rows that need not fit into memory: each source gives the same numbers, in the memory that it says, and no NaN."""

import io
import os
import pickle
import subprocess
import sys
import threading
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pykernel.errors import UserError
from pykernel.host.samples import read_samples
from pykernel.rows import Rows, ScaledRows, SomeRows, as_rows, save_rows
from pykernel.rows.arrow import ParquetRows
from pykernel.rows.columns import Columns
from tests.support import ROOT

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

L, D = 1003, 5
NAMES = [f"x{j}" for j in range(D)]
X = np.random.default_rng(0).normal(size=(L, D)).astype(np.float32)


def table(x, names=NAMES):
    return pa.table({name: x[:, j] for j, name in enumerate(names)})


def write_ipc(path, content, chunk, compression=None):
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(path, content.schema, options=options) as file:
        file.write_table(content, max_chunksize=chunk)


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The same rows, in each way that they can be kept."""
    folder = tmp_path_factory.mktemp("rows")
    np.save(folder / "x.npy", X)
    np.save(folder / "fortran.npy", np.asfortranarray(X))
    np.save(folder / "big.npy", X.astype(">f8"))
    pq.write_table(table(X), folder / "x.parquet", row_group_size=130)
    write_ipc(folder / "x.arrow", table(X), 97)
    parts = folder / "parts"
    for i, (a, b) in enumerate([(0, 1), (1, 500), (500, 500), (500, L)]):
        (parts / f"p={i}").mkdir(parents=True)
        pq.write_table(table(X[a:b]), parts / f"p={i}" / "part.parquet", row_group_size=64)
    wide = np.memmap(folder / "raw", np.float32, "w+", offset=4096 + 12, shape=(L + 7, D))
    wide[3 : L + 3] = X
    return {
        "array": X,
        "integers": None,
        "list": X.tolist(),
        "strided": np.asfortranarray(np.repeat(X, 2, axis=0))[::2],
        "memmap": np.load(folder / "x.npy", mmap_mode="r"),
        "memmap, a part": wide[3 : L + 3],
        "memmap, private": np.load(folder / "x.npy", mmap_mode="c"),
        ".npy": folder / "x.npy",
        ".npy, big-endian": str(folder / "big.npy"),
        ".npy, column-major": folder / "fortran.npy",
        "Parquet": folder / "x.parquet",
        "Parquet folder": parts,
        "Arrow": folder / "x.arrow",
        "Table": pa.concat_tables([table(X[:10]), table(X[10:])]),
        "RecordBatch": table(X).combine_chunks().to_batches()[0],
    }


KINDS = [
    "array", "list", "strided", "memmap", "memmap, a part", "memmap, private", ".npy", ".npy, big-endian",
    ".npy, column-major", "Parquet", "Parquet folder", "Arrow", "Table", "RecordBatch",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cache", [0, 5000, 2**28])
@pytest.mark.in_turn
def test_every_source_gives_the_same_rows(sources, kind, cache):
    opened, expected = as_rows(sources[kind], cache=cache), X.astype(np.float64)
    assert isinstance(opened, Rows) and as_rows(opened) is opened
    assert (len(opened), opened.dim) == (L, D)
    rng = np.random.default_rng(1)
    for rows in (opened, pickle.loads(pickle.dumps(opened))):
        for count in (0, 1, 7, 300, 3 * L):
            chosen = rng.integers(0, L, count)
            found = rows.take(chosen)
            assert found.dtype == np.float64 and found.shape == (count, D) and np.array_equal(found, expected[chosen])
        assert np.array_equal(rows.take([L - 1, 0, 0]), expected[[L - 1, 0, 0]])
        for size in (1, 64, 130, 999, L, 10**9):
            blocks = list(rows.blocks(size))
            assert [start for start, _ in blocks] == list(range(0, L, size))
            assert all(len(block) == min(size, L - start) for start, block in blocks)
            assert np.array_equal(np.concatenate([block for _, block in blocks]), expected)
        # what a caller does to a block is not seen by the next
        for _, block in rows.blocks(L):
            assert block.flags.c_contiguous and block.flags.writeable
            block[:] = 7
        assert np.array_equal(rows.take(np.arange(L)), expected)
    for wrong in ([L], [-1], [0.5], [[1, 2]]):
        with pytest.raises(IndexError):
            rows.take(wrong)
    with pytest.raises(UserError, match="must have at least 1 row"):
        list(rows.blocks(0))


@pytest.mark.parametrize("kind", ["array", ".npy", "Parquet"])
def test_scaled(sources, kind):
    center, scale = np.arange(D), 2.0 ** np.arange(D)
    rows = ScaledRows(as_rows(sources[kind]), center, scale)
    expected = (X.astype(np.float64) - center) * scale
    assert isinstance(rows, Rows) and (len(rows), rows.dim) == (L, D)
    for _ in range(2):
        assert np.array_equal(rows.take([7, 3]), expected[[7, 3]])
        assert np.array_equal(np.concatenate([block for _, block in rows.blocks(100)]), expected)


@pytest.mark.parametrize("kind", ["array", ".npy", "Parquet", "Parquet folder", "Arrow"])
def test_some_of_them(sources, kind):
    rows, expected = as_rows(sources[kind]), X.astype(np.float64)
    chosen = np.random.default_rng(2).permutation(L)[:400]
    for some, part in [
        (SomeRows(rows, chosen), expected[chosen]),
        (SomeRows(SomeRows(rows, chosen), np.arange(1, 8)), expected[chosen[1:8]]),
        (SomeRows(rows, np.arange(0)), expected[:0]),
    ]:
        assert len(some) == len(part) and some.dim == D
        assert np.array_equal(some.take(np.arange(len(part))[::-1]), part[::-1])
        for size in (1, 50, 1000):
            blocks = list(some.blocks(size))
            assert [start for start, _ in blocks] == list(range(0, len(part), size))
            assert np.array_equal(np.concatenate([np.empty((0, D)), *(block for _, block in blocks)]), part)


@pytest.mark.parametrize(
    "kind", ["array", ".npy", ".npy, column-major", "memmap", "Parquet", "Parquet folder", "Arrow", "Table"]
)
def test_columns_are_chosen_by_position_or_by_name(sources, kind):
    named = kind in ("Parquet", "Parquet folder", "Arrow", "Table")
    for columns, positions in [([3, 1], [3, 1]), ([-1], [4]), (["x2", 0] if named else [2, 0], [2, 0])]:
        rows = as_rows(sources[kind], columns)
        assert np.array_equal(rows.take([5, 2]), X[np.ix_([5, 2], positions)])
        assert np.array_equal(np.concatenate([b for _, b in rows.blocks(100)]), X[:, positions])
    with pytest.raises(UserError, match="has 5 columns, so there is no column 5"):
        as_rows(sources[kind], [5])
    with pytest.raises(UserError, match="has no column 'x9'; it has 'x0'" if named else "its columns have no names"):
        as_rows(sources[kind], ["x9"])
    if named:
        assert np.array_equal(as_rows(sources[kind], ["x1"]).take([0]), X[:1, [1]])


@given(st.data())
def test_numbers_of_every_type_come_as_they_are(tmp_path_factory, data):
    kinds = ["int8", "uint16", "int64", "float16", "float32", "float64", "bool"]
    chosen = data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    columns = [(rng.normal(size=40) * 3).astype(kind) if kind not in ("uint16", "bool") else rng.integers(0, 2, 40).astype(kind)
               for kind in chosen]  # fmt: skip
    path = tmp_path_factory.mktemp("types") / "x.parquet"
    content = pa.table([pa.array(column) for column in columns], names=[str(j) for j in range(len(columns))])
    pq.write_table(content, path, row_group_size=11)
    write_ipc(path.with_suffix(".arrow"), content, 7)
    expected = np.column_stack([column.astype(np.float64) for column in columns])
    for source in (path, path.with_suffix(".arrow"), content):
        assert np.array_equal(as_rows(source).take(np.arange(40)), expected)
        assert np.array_equal(next(as_rows(source).blocks(40))[1], expected)
    for column in columns:
        if column.dtype.kind != "O":
            assert np.array_equal(as_rows(column[:, None]).take([3, 2])[:, 0], column[[3, 2]].astype(np.float64))


# ------------------------------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_no_number_is_refused_by_its_number_wherever_it_comes_up(tmp_path, value):
    x = X.copy()
    x[771, 2] = value
    np.save(tmp_path / "x.npy", x)
    pq.write_table(table(x), tmp_path / "x.parquet", row_group_size=130)
    write_ipc(tmp_path / "x.arrow", table(x), 97)
    for source in (x, tmp_path / "x.npy", tmp_path / "x.parquet", tmp_path / "x.arrow"):
        for cache in (0, 2**28):
            rows = as_rows(source, cache=cache)
            for read in (lambda rows=rows: rows.take([5, 771, 6]), lambda rows=rows: list(rows.blocks(100))):
                with pytest.raises(UserError, match=rf"row 771 \(from 0\): column ('x2'|2) is {value}; remove the row"):
                    read()
            # others can be read
            assert np.array_equal(rows.take([770, 772]), X[[770, 772]])
    # a sum that overflows is no reason
    assert as_rows(np.full((4, 3), 1e308)).take([0, 1]).max() == 1e308


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "bool"])
def test_nulls_are_refused_as_such(tmp_path, kind):
    whole = [True, False] * 200 if kind == "bool" else [1, 2] * 200
    holed = list(whole)
    holed[300] = None
    content = pa.table({"a": pa.array(whole, kind if kind != "float32" else pa.float32()), "b": pa.array(holed, kind)})
    (tmp_path / "parts").mkdir()
    pq.write_table(content.slice(0, 250), tmp_path / "parts" / "1.parquet", row_group_size=64)
    pq.write_table(content.slice(250), tmp_path / "parts" / "2.parquet", row_group_size=64)
    write_ipc(tmp_path / "x.arrow", content, 97)
    for source, place in [
        (tmp_path / "parts", r" \(row 50 of .*2\.parquet\)"),
        (tmp_path / "x.arrow", ""),
        (content, ""),
    ]:
        rows = as_rows(source)
        for read in (lambda rows=rows: rows.take([1, 300]), lambda rows=rows: list(rows.blocks(1000))):
            with pytest.raises(UserError, match=rf"row 300 \(from 0\): column 'b' is null{place}; remove the row"):
                read()
        assert np.array_equal(rows.take([299, 301]), [[0, 0], [0, 0]] if kind == "bool" else [[2, 2], [2, 2]])
        assert len(list(as_rows(source, ["a"]).blocks(1000))) == 1


def test_what_cannot_be_read_is_refused_in_one_sentence(tmp_path):
    def refused(source, columns=None):
        with pytest.raises(UserError) as caught:
            as_rows(source, columns)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    assert f"pykernel table {tmp_path}/x.csv --output {tmp_path}/x.npy" in refused(tmp_path / "x.csv")
    assert "no such file" in refused(tmp_path / "nothing.npy")
    (tmp_path / "x.txt").write_text("1 2\n")
    assert "give a .npy, .parquet or .arrow file" in refused(tmp_path / "x.txt")
    (tmp_path / "folder").mkdir()
    assert "without .parquet files" in refused(tmp_path / "folder")
    for name in ("x.npy", "x.parquet", "x.arrow"):
        (tmp_path / name).write_bytes(b"not at all" * 20)
    assert "is not an .npy file" in refused(tmp_path / "x.npy")
    assert "cannot be read as Parquet" in refused(tmp_path / "x.parquet")
    assert "is not an Arrow IPC file" in refused(tmp_path / "x.arrow")
    np.save(tmp_path / "cut.npy", X)
    os.truncate(tmp_path / "cut.npy", 128 + 20 * 77 + 3)
    assert "ends after 77 rows, but its header says 1,003" in refused(tmp_path / "cut.npy")
    np.save(tmp_path / "objects.npy", np.array([[None, {}]]), allow_pickle=True)
    assert "give real numbers, such as float32" in refused(tmp_path / "objects.npy")
    assert "has the shape (3,)" in refused(np.arange(3.0))
    assert "complex128" in refused(np.ones((2, 2), complex))
    assert "no columns" in refused(np.ones((2, 0)))
    write_ipc(tmp_path / "packed.arrow", table(X), 97, "lz4")
    assert "is compressed" in refused(tmp_path / "packed.arrow")
    words = table(X).append_column("word", pa.array(["w"] * L))
    pq.write_table(words, tmp_path / "words.parquet")
    assert "column 'word' holds string, not numbers" in refused(tmp_path / "words.parquet")
    assert len(as_rows(tmp_path / "words.parquet", NAMES)) == L
    pq.write_table(table(X), tmp_path / "folder" / "a.parquet")
    pq.write_table(table(X, ["x0", "x1", "x2", "x3", "y"]), tmp_path / "folder" / "b.parquet")
    assert "b.parquet: has no column 'x4', which other files" in refused(tmp_path / "folder")
    twice = pa.table([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    assert "names the column 'a' 2 times" in refused(twice)
    assert "a pyarrow DoubleScalar cannot be read row by row" in refused(pa.scalar(1.0))
    assert "from rows that are already open" in refused(as_rows(X), [1])


def test_a_file_that_shrinks_is_told(tmp_path):
    np.save(tmp_path / "x.npy", X)
    rows = as_rows(tmp_path / "x.npy")
    os.truncate(tmp_path / "x.npy", 500)
    with pytest.raises(UserError, match="became shorter"):
        rows.take([900])


# ------------------------------------------------------------------------------------------- saving, cost and memory


def test_saved_rows_are_the_same_and_a_failed_save_leaves_nothing(sources, tmp_path):
    seen = []
    save_rows(
        as_rows(sources["Parquet"]), tmp_path / "x.npy", progress=lambda done, of: seen.append((done, of)), block=400
    )
    assert np.array_equal(np.load(tmp_path / "x.npy"), X) and seen == [(400, L), (800, L), (L, L)]
    save_rows(as_rows(X.astype(np.float64) * 1e300), tmp_path / "wide.npy", np.float64)
    assert np.array_equal(np.load(tmp_path / "wide.npy"), X.astype(np.float64) * 1e300)
    with pytest.raises(UserError, match=r"as float32, row 0 .*is -?inf"):
        save_rows(as_rows(X.astype(np.float64) * 1e300), tmp_path / "narrow.npy")
    with pytest.raises(UserError, match="give float32 or float64"):
        save_rows(as_rows(X), tmp_path / "narrow.npy", np.int8)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wide.npy", "x.npy"]


def test_a_draw_decodes_the_row_groups_that_it_needs_and_keeps_the_last_of_them(tmp_path):
    pq.write_table(table(X), tmp_path / "x.parquet", row_group_size=100)
    group = 100 * D * 4
    rows = as_rows(tmp_path / "x.parquet", cache=3 * group)
    assert isinstance(rows, ParquetRows) and rows.decoded == 0
    for chosen, decoded in [([5, 17, 99], 1), ([50], 1), ([150, 250], 3), ([5, 150, 250], 3), ([350], 4), ([150, 250], 4),
                            ([5], 5), ([1002], 5.03), ([150], 6.03)]:  # fmt: skip
        assert np.array_equal(rows.take(chosen), X[chosen])
        assert rows.decoded == round(100 * decoded), chosen
        assert rows._kept_bytes == sum(each.nbytes for each in rows._kept.values()) <= 3 * group
    # one that is too large to keep is read through
    rows = as_rows(tmp_path / "x.parquet", cache=group - 1)
    for turn in (1, 2):
        assert np.array_equal(rows.take([5, 6]), X[[5, 6]]) and rows.decoded == 100 * turn
    assert rows._kept_bytes == 0


def test_threads_may_share_rows(sources):
    rows = as_rows(sources["Parquet"], cache=8000)
    wrong = []

    def read(seed):
        rng = np.random.default_rng(seed)
        for _ in range(60):
            chosen = rng.integers(0, L, 9)
            if not np.array_equal(rows.take(chosen), X[chosen]):
                wrong.append(seed)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("rows", [4096, 7])
@pytest.mark.parametrize("mapped", [False, True])
def test_columns_of_every_type_are_the_numbers_of_their_text(mapped, rows):
    """As a table of text that holds what Python prints of their values: the same numbers, bit for bit, and the same report."""
    rng, many = np.random.default_rng(0), 300
    holes = np.arange(many) % 7 == 0
    wide = rng.integers(-(2**63), 2**63 - 1, many)
    columns = {
        "float64": pa.array(np.frombuffer(rng.bytes(8 * many))),
        "float32": pa.array(np.frombuffer(rng.bytes(4 * many), np.float32)),
        "float16": pa.array(np.frombuffer(rng.bytes(2 * many), np.float16), mask=holes),
        "int64": pa.array(wide, mask=holes),
        "uint64": pa.array(wide.astype(np.uint64)),
        "int8": pa.array(wide.astype(np.int8), mask=holes),
        "bool": pa.array(wide % 2 == 0, mask=holes),
        "decimal": pa.array([Decimal(int(each)).scaleb(-7) for each in wide // 100], pa.decimal128(20, 7)),
        "words": pa.array([f" {each / 3!r} " if each % 9 else "n/a" for each in wide.tolist()]),
        "codes": pa.array((wide % 5).astype(str)).dictionary_encode(),
    }
    file = io.BytesIO()
    if mapped:
        with pa.ipc.new_file(file, pa.table(columns).schema) as writer:
            writer.write_table(pa.table(columns))
    else:
        pq.write_table(pa.table(columns), file, row_group_size=100)
    printed = [["" if each is None else str(int(each) if isinstance(each, bool) else each) for each in column.to_pylist()]
               for column in columns.values()]  # fmt: skip
    text = "\n".join([",".join(columns), *map(",".join, zip(*printed, strict=True))]).encode()
    found = []
    for head, opened in enumerate((io.BufferedReader(io.BytesIO(file.getvalue())), io.BytesIO(text))):
        seen = Columns()
        x = np.concatenate([batch.x for batch in read_samples(opened, "t", list(columns), (), rows, seen=seen)])
        told = seen.report()
        for each in (*told["not_numeric"], *told["outlying"]):
            each["line"] -= head
        found.append((x, told))
    np.testing.assert_equal(*found)
    assert {"float16", "words"} <= {each["column"] for each in found[0][1]["not_numeric"]}


MEMORY = """
import sys
import numpy as np
from pykernel.rows import as_rows

def peak():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024

# what libraries take once, whatever is read
as_rows(sys.argv[2]).take([0])
rows = as_rows(sys.argv[1], cache=int(sys.argv[3]))
before, total = peak(), 0.0
for start, block in rows.blocks(8192):
    total += block.sum()
rng = np.random.default_rng(0)
for _ in range(int(sys.argv[4])):
    total += rows.take(rng.integers(0, len(rows), 118)).sum()
assert total > 0
print(peak() - before)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="how much memory was in use at most is read there")
def test_memory_is_bounded_whatever_the_size(tmp_path):
    """160 MB on disk, 320 MB as float64; the bounds are in docs/bases.md."""
    rows, dim = 2_500_000, 16
    x = np.random.default_rng(0).random((rows, dim), np.float32)
    names = [str(j) for j in range(dim)]
    plain = {"compression": "none", "use_dictionary": False}
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "tiny.npy", x[:2])
    pq.write_table(table(x[:2], names), tmp_path / "tiny.parquet", **plain)
    pq.write_table(table(x, names), tmp_path / "groups.parquet", row_group_size=50_000, **plain)
    pq.write_table(table(x, names), tmp_path / "one.parquet", row_group_size=rows, **plain)
    for name, cache, draws, most in [
        ("x.npy", 0, 2000, 12),
        ("groups.parquet", 16 * 2**20, 10, 16 + 28),
        ("one.parquet", 16 * 2**20, 1, 64),
    ]:
        tiny = f"tiny{Path(name).suffix}"
        arguments = [sys.executable, "-c", MEMORY, str(tmp_path / name), str(tmp_path / tiny), str(cache), str(draws)]
        done = subprocess.run(arguments, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        print(name, done.stdout)
        assert 0 < float(done.stdout) < most, (name, done.stdout)
