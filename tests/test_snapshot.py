"""A state that survives: both runtimes write the same snapshots, and none is trusted when it comes back."""

import itertools
import json
import re
import shutil
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pykernel import snapshot
from pykernel.cli import main
from pykernel.dialect import Real, bind
from pykernel.errors import UserError
from pykernel.gen import build, generate
from pykernel.gen.binding import CModel
from pykernel.gen.check import mixed_stream
from pykernel.gen.compilers import compile_c, compiler, find_compilers
from pykernel.gen.project import SNAPSHOT_STATUSES, state_hash
from pykernel.host import HostModel
from pykernel.linear import least_squares
from pykernel.snapshot import HEADER
from pykernel.spec import make_spec

pytestmark = pytest.mark.usefixtures("compiled")

TECHNIQUES = ("nt", "fklms", "mklms")
PRECISIONS = ("float32", "float64")
DONE = 0
MISSING, FOREIGN, BROKEN, INVALID, STORAGE = (value for value, _ in SNAPSHOT_STATUSES.values())
needs_gcc = pytest.mark.skipif(not shutil.which("gcc"), reason="needs gcc")


def spec_of(technique="mklms", precision="float32", dim=2, n_max=6, standardise=False, **sections):
    return make_spec(
        {
            "name": "flow",
            "precision": precision,
            "input": {"dim": dim, "standardise": standardise},
            "kernel": {"sigma": 1.0},
            "reduction": {"technique": technique, "n_max": n_max},
        }
        | sections
    )


def taught(spec, samples=400, seed=0):
    model = HostModel(spec)
    model.run(*mixed_stream(spec, samples, seed))
    return model


class Device(CModel):
    """The C, with snapshots as Python's bytes."""

    def __init__(self, spec, flags=("-O2",)):
        super().__init__(build(spec), find_compilers()[0], flags)
        self.size = build(spec).figures["snapshot_bytes"]

    @property
    def state(self):
        return bytes(self.memory.bytes[: self.spec.program.state_bytes(self.memory.layout)])

    def save(self):
        buffer = np.full(self.size, 0xEE, np.uint8)
        return self.call("save", self.pointer(buffer, "uint8_t *")), buffer.tobytes()

    def load(self, data):
        assert len(data) == self.size
        return self.call("load", self.pointer(np.frombuffer(data, np.uint8), "uint8_t *"))

    def store(self, storage):
        write, read = self.callback("write_fn", storage.write), self.callback("read_fn", storage.read)
        storage.device = self
        return self.call("store", write, read, self._ffi.NULL)

    def restore(self, storage):
        read = self.callback("read_fn", storage.read)
        storage.device = self
        return self.call("restore", read, self._ffi.NULL)


class Storage:
    """Two slots, and power for so many bytes of erasing and writing.

    erases: whether offset 0 erases the slot, as flash needs it, byte by byte; else bytes are replaced as they come.
    """

    def __init__(self, slots, erases=True, power=None):
        self.slots, self.erases, self.power = [bytearray(slot) for slot in slots], erases, power
        self.written, self.calls, self.read_error = 0, [], ()

    def put(self, slot, offset, data):
        for i, byte in enumerate(data):
            if self.written == self.power:
                return 1
            self.written += 1
            self.slots[slot][offset + i] = byte
        return 0

    def write(self, context, slot, offset, data, count):
        self.calls.append((slot, offset, count))
        if offset == 0 and self.erases and self.put(slot, 0, b"\xff" * len(self.slots[slot])):
            return 1
        return self.put(slot, offset, bytes(self.device.bytes_at(data, count)))

    def read(self, context, slot, offset, data, count):
        if slot in self.read_error:
            return -5
        self.device.bytes_at(data, count)[:] = self.slots[slot][offset : offset + count]
        return 0


def sealed(spec, memory, sequence=0, **changes):
    """A snapshot with a right CRC, whatever the memory holds."""
    good = snapshot.save(HostModel(spec))
    header = dict(zip(("magic", "version", "hash", "sequence", "count"), HEADER.unpack_from(good), strict=True))
    state = bytes(memory.bytes)[: header["count"]]
    body = HEADER.pack(*(header | {"sequence": sequence} | changes).values()) + state
    return body + struct.pack("<I", zlib.crc32(body))


def refused(spec, data, jit=True):
    try:
        snapshot.read(spec, data, jit=jit)
    except UserError as error:
        assert "\n" not in str(error)
        return str(error)
    return None


# -------------------------------------------------------------------------------------------------- the same bytes


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_host_and_device_write_the_same_bytes_and_go_on_as_if_never_interrupted(technique, precision, standardise):
    """Learn on one side, load on the other, learn on both: states and statuses are those of the run without a stop."""
    spec = spec_of(technique, precision, 3, 16, standardise, learning={"eta": 0.4, "rho": 0.01})
    x, y = mixed_stream(spec, 3000, seed=4)
    whole = HostModel(spec, build(spec).drop)
    _, statuses = whole.run(x, y)
    first, rest = slice(0, 1700), slice(1700, None)
    host, device = HostModel(spec), Device(spec)
    host.run(x[first], y[first])
    device.run(x[first], y[first])
    data = snapshot.save(host)
    assert device.save() == (DONE, data) and len(data) == device.size
    # each goes on from the other's, in a memory that held something else
    new_host, new_device = taught(spec, 100, seed=9), Device(spec)
    new_device.run(*mixed_stream(spec, 100, seed=8))
    snapshot.load(new_host, device.save()[1])
    assert new_device.load(data) == DONE
    assert not any(bytes(new_device.memory.bytes)[len(new_device.state) :])  # working memory
    for model in (new_host, new_device):
        _, found = model.run(x[rest], y[rest])
        assert found.tobytes() == statuses[rest].tobytes()
    end = bytes(whole.memory.bytes)[: len(new_device.state)]
    assert new_device.state == end
    assert snapshot.save(new_host)[HEADER.size : -4] == end
    assert snapshot.read(spec, new_device.save()[1]).state_hash == state_hash(spec, whole.memory)


def test_a_snapshot_is_laid_out_as_documented():
    spec = spec_of("fklms", dim=1, n_max=2)
    model = taught(spec, 50)
    data = snapshot.save(model, sequence=7)
    figures = build(spec).figures
    assert len(data) == figures["snapshot_bytes"] == figures["state_bytes"] + 24
    magic, version, config_hash, sequence, count = struct.unpack_from("<4sIIII", data)
    assert (magic, version, sequence, count) == (b"PKSN", 1, 7, figures["state_bytes"])
    assert f"{config_hash:08x}" == figures["config_hash"]
    assert data[20 : 20 + 16] == model.memory.field("v").tobytes()[:8] + model.memory.field("alpha").tobytes()[:8]
    assert struct.unpack("<I", data[-4:])[0] == zlib.crc32(data[:-4])


@settings(max_examples=40)
@given(
    technique=st.sampled_from(TECHNIQUES),
    precision=st.sampled_from(PRECISIONS),
    standardise=st.booleans(),
    dim=st.integers(1, 4),
    n_max=st.integers(1, 12),
    sigma=st.floats(1e-3, 1e3),
    eta=st.floats(0.01, 1.99),
    rho=st.sampled_from([0.0, 1e-3, 0.3]),
    ridge=st.floats(1e-4, 0.1),
    limit=st.sampled_from([1.0, 1e6, 1e18]),
    seed=st.integers(0, 99),
)
def test_whatever_learning_leads_to_is_valid(
    technique, precision, standardise, dim, n_max, sigma, eta, rho, ridge, limit, seed
):
    spec = spec_of(
        technique,
        precision,
        input={"dim": dim, "limit": limit, "standardise": standardise},
        label={"limit": limit},
        kernel={"sigma": sigma},
        learning={"eta": eta, "rho": rho},
        reduction={"technique": technique, "n_max": n_max, "ridge": ridge},
    )
    model = HostModel(spec)
    x, y = mixed_stream(spec, 3000, seed)
    for part in np.split(np.arange(3000), [1, 20, 100, 1000]):
        model.run(x[part], y[part])
        model.refresh()
        valid = bind(spec.program.valid, spec.real)
        assert valid(*spec.program.arguments(spec.program.valid, model.memory, model.config))


def test_a_linear_model_knows_what_is_valid():
    model = least_squares(3, forgetting=0.98)

    def valid():
        program = model.spec.program
        found = {
            bool(bind(program.valid, model.spec.real, jit)(*program.arguments(program.valid, model.memory, model.config)))
            for jit in (True, False)
        }
        assert len(found) == 1
        return found.pop()

    assert valid()
    rng = np.random.default_rng(0)
    model.learn(rng.normal(size=(500, 3)), rng.normal(size=500))
    assert valid()
    for name, value in (("started", 2), ("started", 0), ("weights", np.nan), ("weights", 1e30), ("root", np.inf)):
        kept = model.memory.field(name).copy()
        model.memory.field(name)[...] = value
        assert not valid(), name
        model.memory.field(name)[...] = kept


# ------------------------------------------------------------------------------------------------------ power loss


@pytest.mark.parametrize("erases", [False, True])
@pytest.mark.parametrize(("technique", "precision"), [("mklms", "float32"), ("nt", "float64")])
def test_power_lost_at_any_byte_leaves_the_older_or_the_newer_state(technique, precision, erases):
    """Three saves; the third is cut after each byte that it erases or writes."""
    spec = spec_of(technique, precision, dim=2, n_max=4)
    device, reader = Device(spec), Device(spec)
    x, y = mixed_stream(spec, 90, seed=2)
    empty = Storage([b"\xff" * device.size] * 2, erases)
    states = []
    for part in (slice(0, 30), slice(30, 60)):
        device.run(x[part], y[part])
        states.append(device.state)
        assert device.store(empty) == DONE
    before = [bytes(slot) for slot in empty.slots]
    device.run(x[60:], y[60:])
    states.append(device.state)
    assert len(set(states)) == 3
    full = Storage(before, erases)
    assert device.store(full) == DONE
    assert full.calls == [(0, o, min(64, device.size - o)) for o in range(0, device.size, 64)]
    assert full.slots[1] == before[1]
    steps = full.written
    assert steps == device.size * (2 if erases else 1)
    found = []
    for power in range(steps + 1):
        storage = Storage(before, erases, power)
        assert device.store(storage) == (DONE if power == steps else STORAGE)
        assert device.state == states[2]
        reader.memory.buffer[...] = 0
        assert reader.restore(storage) == DONE
        found.append(states.index(reader.state))
        # the host, shown the same slots, takes the same ones for whole
        for slot in storage.slots:
            assert (refused(spec, bytes(slot)) is None) == (reader.load(bytes(slot)) == DONE)
        # and the next save mends what was cut
        storage.power = None
        assert device.store(storage) == DONE and reader.restore(storage) == DONE and reader.state == states[2]
    # a cut after the last byte that differs is none
    assert found == sorted(found) and set(found) == {1, 2}
    assert found.index(2) >= steps - 4


def test_the_first_save_of_all_may_be_cut_too():
    spec = spec_of("fklms")
    device = Device(spec)
    device.run(*mixed_stream(spec, 50))
    for power in range(2 * device.size):
        storage = Storage([b"\xff" * device.size] * 2, power=power)
        assert device.store(storage) == STORAGE
        reader = device
        before = bytes(device.memory.bytes)
        assert reader.restore(storage) in (MISSING, FOREIGN, BROKEN)
        assert bytes(device.memory.bytes) == before


@pytest.mark.parametrize(
    ("older", "newer"),
    [(0, 1), (1, 2), (2**32 - 1, 0), (2**32 - 2, 2**32 - 1), (2**31 - 1, 2**31), (5, 5 + 2**31 - 1)],
)
@pytest.mark.parametrize("newer_slot", [0, 1])
def test_sequence_numbers_wrap_around(older, newer, newer_slot):
    spec = spec_of("nt")
    a, b = taught(spec, 40), taught(spec, 80)
    slots = [snapshot.save(a, older), snapshot.save(b, newer)]
    storage = Storage(slots if newer_slot == 1 else slots[::-1])
    device = Device(spec)
    assert device.restore(storage) == DONE
    assert device.state == snapshot.save(b)[HEADER.size : -4]
    device.run(*mixed_stream(spec, 10, seed=5))
    assert device.store(storage) == DONE
    assert {slot for slot, *_ in storage.calls} == {1 - newer_slot}
    assert snapshot.read(spec, bytes(storage.slots[1 - newer_slot])).sequence == (newer + 1) % 2**32


def test_storage_that_fails_or_lies():
    spec = spec_of("mklms")
    device = Device(spec)
    device.run(*mixed_stream(spec, 50))
    older = device.state
    storage = Storage([b"\0" * device.size] * 2)
    assert device.restore(storage) == MISSING
    assert device.store(storage) == DONE
    device.run(*mixed_stream(spec, 50, seed=3))
    newer = device.state

    # what cannot be read is not written over: it may be the one to keep
    for slot in (0, 1):
        storage.read_error, storage.calls = (slot,), []
        assert device.store(storage) == STORAGE and storage.calls == []
    storage.read_error = (0, 1)
    assert device.restore(storage) == STORAGE and device.state == newer
    storage.read_error = (1,)
    assert device.restore(storage) == DONE and device.state == older
    storage.read_error = ()

    # a write that reports success and does nothing
    device.run(*mixed_stream(spec, 50, seed=3))
    kept = [bytes(slot) for slot in storage.slots]
    storage.put = lambda *_: 0
    assert device.store(storage) == STORAGE
    assert [bytes(slot) for slot in storage.slots] == kept
    del storage.put
    assert device.store(storage) == DONE

    # bytes that change between the first look and the copying
    reads = itertools.count()
    chunks = -(-device.size // 64)
    honest = storage.read

    def moody(context, slot, offset, data, count):
        status = honest(context, slot, offset, data, count)
        if next(reads) >= 2 * chunks:
            device.bytes_at(data, count)[count - 1 : count] = b"\x77"
        return status

    storage.read = moody
    assert device.restore(storage) == BROKEN
    assert not any(device.memory.bytes)


def test_a_newest_snapshot_that_is_not_valid_gives_way_to_the_older():
    spec = spec_of("nt")
    good, bad = taught(spec, 60), taught(spec, 60)
    bad.memory.field("alpha")[0] = np.nan
    device = Device(spec)
    assert device.restore(Storage([sealed(spec, bad.memory, 9), snapshot.save(good, 8)])) == DONE
    assert device.state == snapshot.save(good)[HEADER.size : -4]
    assert device.restore(Storage([sealed(spec, bad.memory, 9), b"\xff" * device.size])) == INVALID
    assert not any(device.memory.bytes)


# ------------------------------------------------------------------------------------------------ untrusted input


@pytest.mark.parametrize(("technique", "precision"), [("fklms", "float32"), ("mklms", "float64")])
def test_every_flipped_bit_is_detected_and_changes_nothing(technique, precision):
    spec = spec_of(technique, precision, dim=1, n_max=3)
    data = snapshot.save(taught(spec, 60))
    device = Device(spec)
    device.run(*mixed_stream(spec, 60, seed=1))
    before = bytes(device.memory.bytes)
    host = HostModel(spec)
    host_before = bytes(host.memory.bytes)
    expected = [MISSING] * 4 + [FOREIGN] * 8 + [BROKEN] * (len(data) - 12)
    for place in range(len(data)):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[place] ^= 1 << bit
            assert device.load(bytes(flipped)) == expected[place], place
            assert bytes(device.memory.bytes) == before
            with pytest.raises(UserError):
                snapshot.load(host, bytes(flipped))
    assert bytes(host.memory.bytes) == host_before
    for cut in range(len(data)):
        assert refused(spec, data[:cut]) and refused(spec, data + data[:cut] + b"\0")
    assert device.load(data) == DONE


def hostile_states(spec):
    """(what, memory) that learning never leads to."""
    tiny = float(np.finfo(spec.real.dtype).smallest_subnormal)
    n_max, config = spec.reduction.n_max, spec.config
    full, part = taught(spec), HostModel(spec)
    for x, y in zip(*mixed_stream(spec, 60, seed=6), strict=True):
        if part.memory.field("n")[0] < 3:  # so that there are slots beyond
            part.learn(x, y)
    assert full.memory.field("n")[0] == n_max
    last = n_max - 1
    changes = [
        ("n", 0, -1), ("n", 0, n_max + 1), ("n", 0, 2**31 - 1), ("n", 0, -(2**31)), ("n", 0, n_max - 1),
        ("frozen", 0, 2), ("frozen", 0, -1), ("frozen", 0, 2**30),
        *((field, at, bad) for bad in (np.nan, np.inf, -np.inf) for field, at in (("v", (0, 1)), ("alpha", last))),
        ("alpha", 0, float(config.alpha_limit) * 1.001), ("alpha", 1, -1e33), ("alpha", 1, tiny), ("alpha", 1, -(2.0**-101)),
        ("v", (last, 0), 2 * float(config.input_limit)), ("v", (0, 0), -1e20),
    ]  # fmt: skip
    if spec.reduction.technique == "mklms":
        changes += [
            *(("m", (1, 2), bad) for bad in (np.nan, np.inf, -np.inf, 1e30)), ("m", (slice(None), 1), 0.0),
            ("drift", 0, np.nan), ("drift", 0, -1.0), ("drift", 0, np.inf), ("probe", 0, -1), ("probe", 0, n_max + 1),
        ]  # fmt: skip
    if spec.input.standardise:
        changes += [
            *((field, 1, bad) for bad in (np.nan, np.inf) for field in ("mean", "variance", "scale")),
            ("seen", 0, -1), ("seen", 0, 0), ("seen", 0, spec.input.horizon + 1), ("seen", 0, spec.input.warmup - 1),
            ("mean", 0, 3 * float(config.input_limit)), ("variance", 0, -1.0), ("scale", 0, 1e30),
        ]  # fmt: skip
    for name, at, value in changes:
        memory = spec.memory(build(spec).drop)
        memory.copy_from(full.memory)
        memory.field(name)[at] = value
        yield f"{name}[{at}] = {value}", memory
    beyond = [("v", (last, 1), 1.0), ("alpha", last, 1.0), ("v", (last, 0), tiny)]
    beyond += [("m", (last, 0), 1.0), ("m", (0, last), 1.0)] if spec.reduction.technique == "mklms" else []
    for name, at, value in beyond:
        memory = spec.memory(build(spec).drop)
        memory.copy_from(part.memory)
        assert memory.field("n")[0] < n_max
        memory.field(name)[at] = value
        yield f"beyond n: {name}[{at}] = {value}", memory
    for slot in spec.memory(build(spec).drop).layout.slots:
        if not slot.struct:
            memory = spec.memory(build(spec).drop)
            memory.copy_from(full.memory)
            memory.field(slot.name)[...] = 1
            if slot.offset < spec.program.state_bytes(memory.layout):
                yield f"padding {slot.name}", memory


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_hostile_states_with_a_right_crc_are_refused_by_both_runtimes(technique, precision, standardise):
    spec = spec_of(technique, precision, standardise=standardise)
    device = Device(spec)
    for what, memory in hostile_states(spec):
        data = sealed(spec, memory)
        device.run(*mixed_stream(spec, 20))
        assert device.load(data) == INVALID, what
        assert not any(device.memory.bytes), what
        host = taught(spec, 20)
        before = bytes(host.memory.bytes)
        with pytest.raises(UserError, match="learning does not lead to"):
            snapshot.load(host, data)
        assert bytes(host.memory.bytes) == before
        assert "learning does not lead to" in refused(spec, data, jit=False), what
        # nor is such a state written
        device.memory.copy_from(memory)
        for slot in memory.layout.slots:
            device.memory.field(slot.name)[...] = memory.field(slot.name)
        assert device.save() == (INVALID, b"\xee" * device.size), what
        storage = Storage([b"\xff" * device.size] * 2)
        assert device.store(storage) == INVALID and not storage.calls, what
        if not what.startswith("padding"):
            host.memory.copy_from(memory)
            with pytest.raises(UserError, match="not saved"):
                snapshot.save(host)
        device.call("reset")


def test_other_models_and_versions_are_foreign():
    spec = spec_of("fklms")
    device = Device(spec)
    memory = taught(spec).memory
    drop = build(spec).drop
    pruned = spec.memory(drop)
    pruned.copy_from(memory)
    assert device.load(sealed(spec, pruned)) == DONE
    for changes, status, sentence in (
        ({"magic": b"ELF!"}, MISSING, "is not a snapshot"),
        ({"version": 2}, FOREIGN, "has the format 2"),
        ({"hash": 1}, FOREIGN, "configuration 00000001"),
        ({"count": 4}, BROKEN, "for a state of 4"),
        ({"count": 2**32 - 1}, BROKEN, "for a state of 4294967295"),
    ):
        data = sealed(spec, pruned, **changes)
        assert device.load(data) == status
        assert sentence in refused(spec, data)
    assert "configuration" in refused(spec_of("fklms", kernel={"sigma": 2.0}), sealed(spec, pruned))


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_runtimes_agree_on_any_words_in_a_snapshot_and_go_on_equally(technique):
    """Words of a good state replaced by any; what is accepted is learned on: the same bytes, and valid again."""
    spec = spec_of(technique, standardise=technique == "nt")
    device = Device(spec)
    good = spec.memory(build(spec).drop)
    good.copy_from(taught(spec).memory)
    size = len(device.state)
    x, y = mixed_stream(spec, 60, seed=3)
    seen = set()

    @example([(0, 0x80000000)])
    @given(st.lists(st.tuples(st.integers(0, size // 4 - 1), interesting_words()), min_size=1, max_size=6))
    def check(words):
        memory = spec.memory(build(spec).drop)
        memory.copy_from(good)
        whole = np.frombuffer(memory.bytes, "<u4")
        for place, word in words:
            whole[place] = word
        data = sealed(spec, memory)
        status = device.load(data)
        seen.add(status)
        sentence = refused(spec, data)
        assert status == (INVALID if sentence else DONE)
        if status == DONE:
            host = HostModel(spec, build(spec).drop)
            snapshot.load(host, data)
            _, statuses = host.run(x, y)
            _, found = device.run(x, y)
            assert found.tobytes() == statuses.tobytes()
            assert device.state == bytes(host.memory.bytes)[:size]
            assert device.save()[0] == DONE

    check()
    assert seen == {DONE, INVALID}


def interesting_words():
    """Any 32 bits; more often small integers, numbers near one, and the specials of float32."""
    reals = st.floats(-4, 4, width=32).map(lambda v: struct.unpack("<I", struct.pack("<f", v))[0])
    special = st.sampled_from([0, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 0x00000001, 0x7F7FFFFF])
    return reals | special | st.integers(0, 40) | st.integers(0, 2**32 - 1)
