"""A state that survives: both runtimes write the same snapshots, and none is trusted when it comes back."""

import itertools
import json
import re
import shutil
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import cffi
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pykernel.cli.app import main
from pykernel.dialect import Real
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compile_c, compiler, find_compilers
from pykernel.gen.context import SNAPSHOT_STATUSES
from pykernel.gen.project import generate, state_hash
from pykernel.gen.streams import mixed_stream
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.host.snapshot import HEADER
from pykernel.spec.model import make_spec
from tests.support import ROOT
from tests.support.built import built
from tests.support.compilers import EACH as EACH_COMPILER
from tests.support.machines import MACHINES
from tests.support.specs import named
from tests.support.tools import needs

TECHNIQUES = ("nt", "fklms", "mklms")
PRECISIONS = ("float32", "float64")
PAGE = ROOT / "docs" / "guide/snapshots.md"
DONE = 0
MISSING, FOREIGN, BROKEN, INVALID, STORAGE, FORMAT = (value for value, _ in SNAPSHOT_STATUSES.values())
needs_gcc = needs("gcc")


def spec_of(technique="mklms", precision="float32", dim=2, n_max=6, standardise=False, **sections):
    return make_spec(
        named(
            {
                "name": "flow",
                "precision": precision,
                "input": {"dim": dim, "standardise": standardise},
                "kernel": {"sigma": 1.0},
                "reduction": {"technique": technique, "n_max": n_max},
            }
            | sections
        )
    )


def taught(spec, samples=400, seed=0):
    model = HostModel(spec)
    model.prequential(*mixed_stream(spec, samples, seed))
    return model


COMPILED = {}
"""Spec and flags -> a device of it."""


class Device(CModel):
    """The C, with snapshots as Python's bytes; each spec is compiled once."""

    def __init__(self, spec, flags=("-O2",)):
        key = spec.to_toml(), flags
        if key not in COMPILED:
            project = built(spec)
            super().__init__(project, find_compilers()[0], flags)
            self.size, self.drop = project.figures["snapshot_bytes"], project.drop
            COMPILED[key] = self
        vars(self).update(vars(COMPILED[key]))
        self.memory = spec.memory(self.drop)
        self.call("init")

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
        return self.put(slot, offset, bytes(cffi.FFI().buffer(data, count)))

    def read(self, context, slot, offset, data, count):
        if slot in self.read_error:
            return -5
        cffi.FFI().buffer(data, count)[:] = self.slots[slot][offset : offset + count]
        return 0


def sealed(spec, memory, sequence=0, **changes):
    """A snapshot with a right CRC, whatever the memory holds."""
    good = snapshot.save(HostModel(spec))
    header = dict(zip(("magic", "version", "hash", "sequence", "count"), HEADER.unpack_from(good), strict=True))
    state = bytes(memory.bytes)[: header["count"]]
    body = HEADER.pack(*(header | {"sequence": sequence} | changes).values()) + state
    return body + struct.pack("<I", zlib.crc32(body))


def sealed_state(spec, state):
    """A snapshot of a state's bytes."""
    head = snapshot.save(HostModel(spec))[: HEADER.size]
    return head + state + struct.pack("<I", zlib.crc32(head + state))


def refused(spec, data, engine=None):
    try:
        snapshot.read(spec, data, engine=engine)
    except UserError as error:
        assert "\n" not in str(error)
        return str(error)
    return None


# -------------------------------------------------------------------------------------------------- the same bytes


def test_a_snapshot_is_laid_out_as_documented():
    spec = spec_of("fklms", dim=1, n_max=2)
    model = taught(spec, 50)
    data = snapshot.save(model, sequence=7)
    figures = built(spec).figures
    assert len(data) == figures["snapshot_bytes"] == figures["state_bytes"] + 24
    magic, version, state_kind, sequence, count = struct.unpack_from("<4sIIII", data)
    assert (magic, version, sequence, count) == (b"PKSN", 1, 7, figures["state_bytes"])
    assert f"#define FLOW_STATE_KIND 0x{state_kind:08X}u " in built(spec).files["src/flow.h"]
    assert data[20 : 20 + 16] == model.memory.field("v").tobytes()[:8] + model.memory.field("alpha").tobytes()[:8]
    assert struct.unpack("<I", data[-4:])[0] == zlib.crc32(data[:-4])


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("name", ["cortex-m0plus", "cortex-m4f", "rv32imac"])
def test_emulated_microcontrollers_read_and_write_the_hosts_snapshots(name, precision):
    pytest.importorskip("unicorn")
    pytest.importorskip("ziglang")
    from pykernel.targets.build import Image
    from pykernel.targets.target import find_target
    from pykernel.targets.unicorn_runner import MAILBOX, PAGE, EmulatedCpu

    spec = spec_of("mklms", precision)
    sources = {Path(path).name: text for path, text in built(spec).files.items() if path.startswith("src/")}
    machine = EmulatedCpu(Image(find_target(name), "zig", sources))
    uc, model, written = machine.uc, machine.free, MAILBOX + PAGE
    data = snapshot.save(taught(spec))
    uc.mem_write(MAILBOX, data)
    assert machine.call("flow_load", model, MAILBOX) == DONE
    assert bytes(uc.mem_read(model, len(data) - 24)) == data[HEADER.size : -4]
    assert machine.call("flow_save", model, written) == DONE
    assert bytes(uc.mem_read(written, len(data))) == data
    uc.mem_write(MAILBOX, data[:40] + b"\x01" + data[41:])
    assert machine.call("flow_load", model, MAILBOX) == BROKEN % 2**32
    machine.call("flow_wipe", model)
    assert not any(uc.mem_read(model, len(data) - 24))


# ------------------------------------------------------------------------------------------------------ power loss


@pytest.mark.exhaustive
@pytest.mark.in_turn(36)
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
        device.prequential(x[part], y[part])
        states.append(device.state)
        assert device.store(empty) == DONE
    before = [bytes(slot) for slot in empty.slots]
    device.prequential(x[60:], y[60:])
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


FAMILIES = {
    "nt": {"kernel": {"sigma": 1.0}, "reduction": {"technique": "nt", "n_max": 3}},
    "krls-t": {"kernel": {"sigma": 1.0}, "learning": {"rule": "krls-t"}, "reduction": {"n_max": 3}},
    "rls": {"learning": {"rule": "rls"}},
    "krr": {"kernel": {"sigma": 1.0}, "learning": {"rule": "krr", "samples": 4}},
    "kfd": MACHINES["kfd"],
    "stream": MACHINES["stream-uncached"],
    "sgma": MACHINES["sgma"],
    "monitor": MACHINES["subspace-drop"],
    "subspace": MACHINES["subspace-nonparametric"],
    "gmm": MACHINES["monitor"],
}


@pytest.mark.exhaustive
@pytest.mark.in_turn(54)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_slot_that_holds_no_sound_state_is_free_whatever_its_crc_says(family, exhaustive):
    """Of two whole slots the newer is not sound.  Whenever power is lost, once or twice, the older state or a later one is left."""
    content = FAMILIES[family]
    dim = len(content["expansion"]["vectors"][0]) if "expansion" in content else 3
    spec = make_spec(named(content | {"name": "flow", "input": {"dim": dim} | content.get("input", {})}))
    rng, device = np.random.default_rng(len(family)), Device(spec)
    x, y = mixed_stream(spec, 120, seed=1)
    host = HostModel(spec, built(spec).drop)
    host.update(x[:60], y[:60])
    good = snapshot.save(host, 8)
    bad = spec.memory(built(spec).drop)
    bad.copy_from(host.memory)
    name = next(s.name for s in bad.layout.slots if s.array.scalar is Real)
    bad.field(name).reshape(-1)[0] = np.nan
    forged = sealed(spec, bad, 9)
    device.visit("update", x, y)
    states = [good[HEADER.size : -4], device.state]
    device.visit("update", x[:30], y[:30])
    states.append(device.state)
    for place in (0, 1):
        slots = [forged, good] if place == 0 else [good, forged]
        storage = Storage(slots)
        device.load(sealed_state(spec, states[1]))
        assert device.store(storage) == DONE
        # the good one is not touched
        assert {slot for slot, *_ in storage.calls} == {place} and bytes(storage.slots[1 - place]) == good
        steps = storage.written
        for power in sorted({0, 1, steps - 1, *rng.integers(0, steps, 300 if exhaustive else 12).tolist()}):
            storage = Storage(slots, power=power)
            device.load(sealed_state(spec, states[1]))
            assert device.store(storage) == STORAGE
            assert device.restore(storage) == DONE and device.state in states[:2]
            # ... and once more, with a later state; a bit of what was being written flips besides
            broken = storage.slots[place]
            broken[int(rng.integers(len(broken)))] ^= 1 << int(rng.integers(8))
            storage.power = storage.written + int(rng.integers(steps))
            device.load(sealed_state(spec, states[2]))
            assert device.store(storage) == STORAGE
            assert device.restore(storage) == DONE and device.state in states
            storage.power = None
            device.load(sealed_state(spec, states[2]))
            assert device.store(storage) == DONE and device.restore(storage) == DONE and device.state == states[2]


@pytest.mark.in_turn(72)
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
    device.prequential(*mixed_stream(spec, 10, seed=5))
    assert device.store(storage) == DONE
    assert {slot for slot, *_ in storage.calls} == {1 - newer_slot}
    assert snapshot.read(spec, bytes(storage.slots[1 - newer_slot])).sequence == (newer + 1) % 2**32


def test_storage_that_fails_or_lies():
    spec = spec_of("mklms")
    device = Device(spec)
    device.prequential(*mixed_stream(spec, 50))
    older = device.state
    storage = Storage([b"\0" * device.size] * 2)
    assert device.restore(storage) == MISSING
    assert device.store(storage) == DONE
    device.prequential(*mixed_stream(spec, 50, seed=3))
    newer = device.state

    # where nothing can be read, nothing is written: either slot may be the one to keep
    storage.read_error, storage.calls = (0, 1), []
    assert device.store(storage) == STORAGE and storage.calls == []
    assert device.restore(storage) == STORAGE and device.state == newer
    # the good slot stays while the other cannot be read
    storage.read_error = (1,)
    assert device.store(storage) == STORAGE and {slot for slot, *_ in storage.calls} == {1}
    assert device.restore(storage) == DONE and device.state == older
    device.load(sealed_state(spec, newer))

    # a slot that cannot be read, beside one that has no snapshot: what was hidden is not found later
    hidden = Storage([snapshot.save(taught(spec, 50), 17), b"\0" * device.size])
    hidden.read_error = (0,)
    assert device.store(hidden) == DONE and [slot for slot, *_ in hidden.calls[:-1]] == [1] * (len(hidden.calls) - 1)
    hidden.read_error = ()
    device.load(sealed_state(spec, older))
    assert device.restore(hidden) == DONE and device.state == newer
    storage.read_error = ()

    # a write that reports success and does nothing
    device.prequential(*mixed_stream(spec, 50, seed=3))
    kept = [bytes(slot) for slot in storage.slots]
    storage.put = lambda *_: 0
    assert device.store(storage) == STORAGE
    assert [bytes(slot) for slot in storage.slots] == kept
    del storage.put
    assert device.store(storage) == DONE


# ------------------------------------------------------------------------------------------------ untrusted input


@pytest.mark.in_turn
@pytest.mark.parametrize(("technique", "precision"), [("fklms", "float32"), ("mklms", "float64")])
def test_every_flipped_bit_is_detected_and_changes_nothing(technique, precision):
    spec = spec_of(technique, precision, dim=1, n_max=3)
    data = snapshot.save(taught(spec, 60))
    device = Device(spec)
    device.prequential(*mixed_stream(spec, 60, seed=1))
    before = bytes(device.memory.bytes)
    host = HostModel(spec)
    host_before = bytes(host.memory.bytes)
    expected = [MISSING] * 4 + [FORMAT] * 4 + [FOREIGN] * 4 + [BROKEN] * (len(data) - 12)
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


def test_other_models_are_foreign_and_other_versions_have_another_format():
    spec = spec_of("fklms")
    device = Device(spec)
    memory = taught(spec).memory
    drop = built(spec).drop
    pruned = spec.memory(drop)
    pruned.copy_from(memory)
    assert device.load(sealed(spec, pruned)) == DONE
    for changes, status, sentence in (
        ({"magic": b"ELF!"}, MISSING, "is not a snapshot"),
        ({"version": 2}, FORMAT, "has format 2"),
        ({"hash": 1}, FOREIGN, "state of kind 00000001"),
        ({"count": 4}, BROKEN, "says that the state has 4;"),
        ({"count": 2**32 - 1}, BROKEN, "says that the state has 4294967295;"),
    ):
        data = sealed(spec, pruned, **changes)
        assert device.load(data) == status
        assert sentence in refused(spec, data)
    assert "of kind" in refused(spec_of("fklms", kernel={"sigma": 2.0}), sealed(spec, pruned))
    # of two slots, what is nearest to a snapshot of this model says why there is none; a format comes before nothing at all
    slots = {
        MISSING: b"\xff" * device.size,
        FORMAT: sealed(spec, pruned, version=2),
        FOREIGN: sealed(spec, pruned, hash=1),
        BROKEN: sealed(spec, pruned, count=4),
    }
    order = list(slots)
    for a, b in itertools.product(order, order):
        assert device.restore(Storage([slots[a], slots[b]])) == order[max(order.index(a), order.index(b))], (a, b)


@pytest.mark.in_turn(13)
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_runtimes_agree_on_any_words_in_a_snapshot_and_go_on_equally(technique):
    """Words of a good state replaced by any; what is accepted is learned on: the same bytes.

    And it is valid again, if only after a refresh: a factor that is not that of the vectors cannot be told at loading.
    """
    spec = spec_of(technique, standardise=technique == "nt")
    device = Device(spec)
    good = spec.memory(built(spec).drop)
    good.copy_from(taught(spec).memory)
    size = len(device.state)
    x, y = mixed_stream(spec, 60, seed=3)
    seen = set()

    @example([(0, 0x80000000)])
    @given(st.lists(st.tuples(st.integers(0, size // 4 - 1), interesting_words()), min_size=1, max_size=6))
    def check(words):
        memory = spec.memory(built(spec).drop)
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
            host = HostModel(spec, built(spec).drop)
            snapshot.load(host, data)
            _, statuses = host.prequential(x, y)
            _, found = device.prequential(x, y)
            assert found.tobytes() == statuses.tobytes()
            host.refresh()
            if technique == "mklms":
                device.call("refresh")
            assert device.state == bytes(host.memory.bytes)[:size]
            assert device.save() == (DONE, snapshot.save(host))

    check()
    assert seen == {DONE, INVALID}


def interesting_words():
    """Any 32 bits; more often small integers, numbers near one, and the specials of float32."""
    reals = st.floats(-4, 4, width=32).map(lambda v: struct.unpack("<I", struct.pack("<f", v))[0])
    special = st.sampled_from([0, 1, 0x7F800000, 0xFF800000, 0x7FC00000, 0x80000000, 0x00000001, 0x7F7FFFFF])
    return reals | special | st.integers(0, 40) | st.integers(0, 2**32 - 1)


# ------------------------------------------------------------------------------------------------- wipe, and sizes


@pytest.mark.parametrize("technique", TECHNIQUES)
def test_wiping_leaves_no_byte(technique):
    spec = spec_of(technique)
    device = Device(spec)
    device.prequential(*mixed_stream(spec, 60))
    assert any(device.memory.bytes)
    device.call("wipe")
    assert not any(device.memory.bytes)
    assert device.prequential(*mixed_stream(spec, 1))[1][0] == 1  # a reset model


@pytest.mark.in_turn(9)
@pytest.mark.skipif(sys.platform != "linux", reason="needs swapcontext")
@pytest.mark.parametrize("c", [c for c in find_compilers() if c.name != "zig"], ids=str)
def test_compilers_keep_the_wiping_of_memory_that_is_not_read_again(c, tmp_path):
    """A model on a stack of its own, used by code that wipes it last, all in one file at -O3; then that stack is searched.

    Without volatile the compiler leaves the wiping out, which shows that the search finds what is there.
    """
    generate(spec_of("nt"), tmp_path)
    source = tmp_path / "src" / "flow_snapshot.c"
    text = source.read_text()
    (tmp_path / "main.c").write_text("""
        #define _XOPEN_SOURCE 700
        #include "flow_snapshot.c"
        #include <ucontext.h>
        #include <string.h>
        static unsigned char stack[65536];
        static ucontext_t outside, inside;
        static volatile float sink;
        static void work(void)
        {
            flow_t m;
            float x[FLOW_DIM] = {1.25f}, y = 0.0f;
            flow_init(&m);
            (void)flow_update(&m, x, 1.0f);
            x[0] = 0.0f;
            (void)flow_predict(&m, x, &y);
            sink = y;
            flow_wipe(&m);
        }
        int main(void)
        {
            const float secret = 1.25f;
            getcontext(&inside);
            inside.uc_stack.ss_sp = stack;
            inside.uc_stack.ss_size = sizeof stack;
            inside.uc_link = &outside;
            makecontext(&inside, work, 0);
            swapcontext(&outside, &inside);
            for (unsigned i = 0; i + sizeof secret <= sizeof stack; i++) {
                if (memcmp(&stack[i], &secret, sizeof secret) == 0) return 1;
            }
            return 0;
        }
""")
    found = []
    for version in (text, text.replace("volatile uint8_t *", "uint8_t *")):
        source.write_text(version)
        flags = ("-O3", f"-I{tmp_path / 'src'}")
        compile_c(c, [tmp_path / "main.c", tmp_path / "src" / "flow.c"], tmp_path / "run", flags, ())
        found.append(subprocess.run([tmp_path / "run"]).returncode)
    assert found == [0, 1]


@needs_gcc
def test_a_firmware_that_does_not_save_is_linked_without_all_this(tmp_path):
    generate(spec_of(), tmp_path)
    folder = tmp_path / "src"
    flags = ("-Os", "-ffunction-sections", "-Wl,--gc-sections", f"-I{folder}")
    sources = [tmp_path / "examples" / "main.c", *sorted(folder.glob("*.c"))]
    compile_c(compiler("gcc"), sources, tmp_path / "run", flags, ())
    symbols = set(
        re.findall(r" [tT] (flow_\w+)", subprocess.run(["nm", tmp_path / "run"], capture_output=True, text=True).stdout)
    )
    assert "flow_update" in symbols
    assert not symbols & {
        f"flow_{name}" for name in ("save", "load", "store", "restore", "wipe", "scan", "valid", "sound")
    }


def test_sizes_are_in_the_header_and_the_stack_stays_small(tmp_path):
    spec = spec_of("mklms", n_max=64, dim=8)
    header = built(spec).files["src/flow.h"]
    figures = built(spec).figures
    assert f"FLOW_SNAPSHOT_BYTES {figures['snapshot_bytes']}" in header
    assert figures["snapshot_bytes"] == snapshot.snapshot_bytes(spec) == figures["state_bytes"] + 24
    if shutil.which("gcc"):
        generate(spec, tmp_path)
        source = tmp_path / "src" / "flow_snapshot.c"
        compile_c(compiler("gcc"), [source], tmp_path / "x.o", ("-Os", "-fstack-usage"), ("-c",))
        usage = next(tmp_path.glob("*.su")).read_text()
        frames = {line.split(":")[-1].split("\t")[0]: int(line.split("\t")[1]) for line in usage.splitlines()}
        assert {"flow_store", "flow_restore", "flow_load", "flow_save"} <= set(frames)
        assert max(frames.values()) <= 256, frames


# ---------------------------------------------------------------------------------------------- what the docs show


def documented(language):
    return re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)[1]


@pytest.mark.parametrize("c", EACH_COMPILER, ids=str)
def test_the_documented_firmware_compiles(c, tmp_path):
    generate(spec_of(), tmp_path)
    code = documented("c")
    for function in ("start", "keep"):  # as a header of the firmware's would declare them
        code = re.sub(rf"^(\w+ {function}\(void\))$", r"\1;\n\1", code, flags=re.MULTILINE)
    (tmp_path / "firmware.c").write_text(code)
    compile_c(c, [tmp_path / "firmware.c"], tmp_path / "firmware.o", (f"-I{tmp_path / 'src'}",), ("-c",))


def test_the_documented_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = spec_of()
    (tmp_path / "flow.toml").write_text(spec.to_toml())
    (tmp_path / "state.bin").write_bytes(snapshot.save(taught(spec)))
    x, y = mixed_stream(spec, 30, seed=1)
    exec(compile(documented("python"), "guide/snapshots.md", "exec"), {"x": x, "y": y})
    assert (tmp_path / "next.bin").read_bytes() != (tmp_path / "state.bin").read_bytes()


# ------------------------------------------------------------------------------------------------------ the command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    spec = spec_of("mklms", n_max=4)
    (tmp_path / "spec.toml").write_text(spec.to_toml())
    (tmp_path / "a.bin").write_bytes(snapshot.save(taught(spec, 40), 3))
    (tmp_path / "b.bin").write_bytes(snapshot.save(taught(spec, 41), 4))
    (tmp_path / "empty.bin").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(capsys):
    def run(*arguments):
        with pytest.raises(SystemExit) as stopped:
            main(["state", *arguments])
        captured = capsys.readouterr()
        return stopped.value.code, captured.out, captured.err

    return run


def test_show_of_one_state_and_of_two(folder, run):
    spec = spec_of("mklms", n_max=4)
    model = taught(spec, 40)
    expected = f"{state_hash(spec, snapshot.read(spec, (folder / 'a.bin').read_bytes()).memory):08x}"
    code, out, err = run("show", "spec.toml", "a.bin")
    assert (code, err) == (0, "") and expected in out and "sequence number 3" in out
    for field in ("v", "alpha", "t", "n", "frozen"):
        assert re.search(rf"^ *{field} ", out, re.MULTILINE), field
    report = json.loads(run("show", "spec.toml", "a.bin", "--json")[1])
    rows = {row["field"]: row for row in report["fields"]}
    assert report["state_hash"] == expected and report["sequence"] == 3
    assert rows["n"]["largest"] == model.memory.field("n")[0]
    assert rows["alpha"]["least"] == model.memory.field("alpha").min() and rows["v"]["shape"] == [4, 2]

    assert report["state"]["n"] == int(model.memory.field("n")[0])
    again = np.array(report["state"]["v"], np.float32)
    assert again.tobytes() == model.memory.field("v").tobytes()

    assert run("show", "spec.toml", "a.bin", "a.bin") == (0, "equal\n", "")
    code, out, err = run("show", "spec.toml", "a.bin", "b.bin", "--json")
    assert code == 1 and err.startswith("error: a.bin and b.bin differ, first in ") and err.count("\n") == 1
    other = taught(spec, 41)
    for row in json.loads(out)["fields"]:
        mine, theirs = (m.memory.field(row["field"]) for m in (model, other))
        assert row["values"] == np.count_nonzero(mine != theirs)
        at = tuple(row["first"])
        assert (row["a"], row["b"]) == (mine[at], theirs[at]) and mine[at] != theirs[at]
    assert run("show", "spec.toml", "a.bin", "b.bin")[0] == 1


def test_hostile_files_get_one_sentence(folder, run):
    good = (folder / "a.bin").read_bytes()
    rng = np.random.default_rng(0)
    spec = spec_of("mklms", n_max=4)
    bad = taught(spec, 40).memory
    bad.field("n")[0] = -1
    pruned = spec.memory(built(spec).drop)
    pruned.copy_from(bad)
    hostile = {
        "empty": (b"", "is not a snapshot"),
        "short": (good[:10], "ends after 10 bytes"),
        "cut": (good[:-1], "its header says that the state has"),
        "long": (good + b"\0", "its header says that the state has"),
        "random": (rng.bytes(500), "is not a snapshot"),
        "magic": (b"PKSN" + rng.bytes(500), "has format"),
        "damaged": (good[:50] + b"\x55\xaa" + good[52:], "CRC-32"),
        "forged": (sealed(spec, pruned), "learning cannot produce"),
    }
    for name, (data, sentence) in hostile.items():
        (folder / name).write_bytes(data)
        for words in (
            ("show", "spec.toml", name),
            ("show", "spec.toml", name, "--json"),
            ("show", "spec.toml", "a.bin", name),
        ):
            code, out, err = run(*words)
            assert code == 2 and out == "" and err.startswith(f"error: {name}: ") and sentence in err, (name, err)
            assert err.count("\n") == 1
    with (folder / "huge").open("wb") as file:
        file.write(good)
        file.truncate(2**33)
    for name, sentence in (("huge", "its header says"), ("none.bin", "cannot be read"), (".", "cannot be read")):
        code, out, err = run("show", "spec.toml", name)
        assert code == 2 and out == "" and sentence in err and err.count("\n") == 1
    (folder / "other.toml").write_text(spec_of("nt").to_toml())
    code, _, err = run("show", "other.toml", "a.bin")
    assert code == 2 and "of kind" in err and "give the spec" in err
