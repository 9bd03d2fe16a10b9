"""Read and write a model's snapshots on the host. A snapshot is the bytes that NAME_save writes and NAME_load reads.

A snapshot has three parts: a header (magic, version of the format, kind of state, sequence number, size of the state in
bytes); the model's bytes as in C; and the CRC-32 of the first two parts.  Numbers are little-endian.
Everything that is loaded is untrusted input.
"""

from __future__ import annotations

import functools
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pykernel.dialect import Memory, ends_of
from pykernel.engine.choice import Engine
from pykernel.engine.engines import make_executor
from pykernel.errors import UserError
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec

MAGIC = b"PKSN"
VERSION = 1
HEADER = struct.Struct("<4sIIII")
TRAILER = struct.Struct("<I")


@dataclass(frozen=True)
class Snapshot:
    """A valid snapshot.  memory: has the layout of the C struct; its working memory is zero."""

    state_kind: int  # NAME_STATE_KIND
    sequence: int
    state_hash: int  # the value that NAME_hash returns
    memory: Memory = field(repr=False)
    fields: dict[str, np.ndarray] = field(repr=False)  # the model's fields; scalars have the shape (1,)

    def ranges(self) -> list[dict[str, Any]]:
        """Return a dict for each field: its name, its shape, its number of nonzero values, and its smallest and largest value."""
        return [
            {
                "field": name,
                "shape": list(values.shape),
                "nonzero": int(np.count_nonzero(values)),
                "least": values.min().item(),
                "largest": values.max().item(),
            }
            for name, values in self.fields.items()
        ]

    def state(self) -> dict[str, Any]:
        """Return all values as Python numbers and lists."""
        scalars = {slot.name for slot in self.memory.layout.slots if slot.scalar}
        return {name: values.item() if name in scalars else values.tolist() for name, values in self.fields.items()}


def save(model: HostModel, sequence: int = 0) -> bytes:
    """Return the snapshot that NAME_save would write for the same state.

    Raises UserError if learning cannot have produced the model's memory.
    """
    spec = model.spec
    drop, state_kind = _identity(spec)
    if not is_valid(spec, model.memory, model.engine):
        raise UserError(
            f"{spec.name}: its memory holds a number that learning cannot produce, so the state was not saved; reset the model"
        )
    memory = spec.memory(drop)
    memory.copy_from(model.memory)
    state = bytes(memory.bytes[: spec.program.state_bytes(memory.layout)])
    return _sealed(HEADER.pack(MAGIC, VERSION, state_kind, sequence % 2**32, len(state)) + state)


def _sealed(body: bytes) -> bytes:
    return body + TRAILER.pack(zlib.crc32(body))


def saved(spec: Spec, memory: Memory) -> bytes:
    """Return the bytes of a file that holds this memory."""
    model = HostModel(spec)
    model.memory = memory
    return save(model)


def load(model: HostModel, data: bytes) -> None:
    """Load a snapshot into the model.  The model's working memory becomes zero.

    Raises UserError, and leaves the model unchanged, if NAME_load would refuse the snapshot.
    """
    model.memory.copy_from(read(model.spec, data, engine=model.engine).memory)


def read(spec: Spec, data: bytes, where: str = "the snapshot", engine: Engine | None = None) -> Snapshot:
    """Read a snapshot.  Raises UserError if NAME_load would refuse it.

    where: the beginning of the error's message.
    """
    drop, state_kind = _identity(spec)
    memory = spec.memory(drop)
    end = spec.program.state_bytes(memory.layout)
    if data[: len(MAGIC)] != MAGIC:
        raise UserError(f"{where}: is not a snapshot; a snapshot begins with the bytes {MAGIC.decode()}")
    if len(data) < HEADER.size:
        raise UserError(f"{where}: ends after {len(data)} bytes; a snapshot of {spec.name} has {snapshot_bytes(spec)}")
    _, version, found_kind, sequence, count = HEADER.unpack_from(data)
    if version != VERSION:
        raise UserError(f"{where}: has format {version}; this version of pykernel reads only format {VERSION}")
    if found_kind != state_kind:
        raise UserError(
            f"{where}: is a state of kind {found_kind:08x}, but {spec.name} needs kind {state_kind:08x}: another rule or size, or "
            "other names of inputs, labels or classes, or another order of these; give the spec from which the firmware was "
            "generated, or convert the state with pykernel state migrate"
        )
    if count != end or len(data) != snapshot_bytes(spec):
        raise UserError(
            f"{where}: {'is longer' if len(data) > snapshot_bytes(spec) else f'has {len(data)} bytes'}, and its header says that "
            f"the state has {count}; a snapshot of {spec.name} has {snapshot_bytes(spec)} bytes, with a state of {end}"
        )
    if _sealed(data[: -TRAILER.size]) != data:
        raise UserError(f"{where}: is damaged or was not written completely (its CRC-32 is wrong); use the other slot")
    state = data[HEADER.size : -TRAILER.size]
    if not is_valid(spec, _filled(memory, state), engine):
        raise UserError(
            f"{where}: holds a number that learning cannot produce, although its CRC-32 is right; do not use it"
        )
    slots = [slot for slot in memory.layout.slots if slot.struct and slot.offset < end]
    return Snapshot(
        state_kind, sequence, zlib.crc32(state), memory, {slot.name: memory.field(slot.name) for slot in slots}
    )


def snapshot_bytes(spec: Spec) -> int:
    """Return the value of the C macro NAME_SNAPSHOT_BYTES."""
    memory = spec.memory(_identity(spec)[0])
    return HEADER.size + spec.program.state_bytes(memory.layout) + TRAILER.size


def most_bytes(spec: Spec) -> int:
    """Return how many bytes of a file to read: one more than a snapshot has, so that a longer file is recognised."""
    return snapshot_bytes(spec) + 1


def differing(pairs: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Yield (name, count, position) for each field whose bytes differ: the number of its differing values, and the position
    of the first one.

    pairs: name of a field -> its values in two states.
    """
    for name, (a, b) in pairs.items():
        integers = f"<u{a.dtype.itemsize}"
        where = np.argwhere(a.view(integers) != b.view(integers))
        if len(where):
            yield name, len(where), tuple(map(int, where[0]))


def difference(a: Snapshot, b: Snapshot) -> list[dict[str, Any]]:
    """Return a dict for each field whose bytes differ: its name, the number of its differing values, the position of the
    first one, and the two values there.
    """
    return [
        {
            "field": name,
            "values": count,
            "first": list(at),
            "a": a.fields[name][at].item(),
            "b": b.fields[name][at].item(),
        }
        for name, count, at in differing({name: (mine, b.fields[name]) for name, mine in a.fields.items()})
    ]


def device_memory(spec: Spec, data: bytes, where: str) -> Memory:
    """Return the memory from a snapshot (NAME_save), or from a dump of NAME_STATE_BYTES bytes.

    where: the beginning of an error's message.  Raises UserError if ``data`` is neither of the two.
    """
    if not spec.program.persistent:
        raise UserError(f"{spec.name} learns nothing on the device, so there is no state to compare; leave {where} out")
    memory = spec.memory(_identity(spec)[0])
    end = spec.program.state_bytes(memory.layout)
    if len(data) == end:
        return _filled(memory, data)
    if data[: len(MAGIC)] == MAGIC:
        return read(spec, data, where).memory
    raise UserError(
        f"{where}: has {len(data)} bytes; expected a snapshot, as {spec.name}_save writes it, or a state of "
        f"{spec.name.upper()}_STATE_BYTES = {end} bytes"
    )


def _filled(memory: Memory, state: bytes) -> Memory:
    """Copy the bytes of a state to the beginning of a memory, and return the memory."""
    memory.buffer.reshape(1).view(np.uint8)[: len(state)] = np.frombuffer(state, np.uint8)
    return memory


def is_valid(spec: Spec, memory: Memory, engine: Engine | None = None) -> bool:
    """Return whether learning could have produced a state. NAME_load makes the same check."""
    program = spec.program
    assert program.valid is not None  # _identity() raises for models without a check
    end = program.state_bytes(memory.layout)
    if any(
        memory.field(slot.name).any() for slot in memory.layout.slots if not slot.struct and slot.offset < end
    ):  # padding
        return False
    # spec.config is read once, because it is computed at each access
    kept, config = {slot.name for slot in memory.layout.slots}, spec.config
    ranges = {name: ends for owner in program.persistent for name, ends in owner.ranges.items() if name in kept}
    for name, ends in ranges.items():
        low, high = ends_of(ends, memory.capacities, config, spec.real)
        values = memory.field(name)
        # written with >= and <=, so that NaN fails the check
        if not ((values >= low) & (values <= high)).all():
            return False
    if any(memory.field(count)[0] == 0 and memory.field(name).any() for name, count in program.waiting(kept).items()):
        return False
    return bool(make_executor([program.valid], memory, config, engine).call(program.valid))


@functools.lru_cache(maxsize=32)
def _identity(spec: Spec) -> tuple[tuple[str, ...], int]:
    """Return the fields that the C struct lacks, and NAME_STATE_KIND.  Raises UserError if the model has nothing to save."""
    if not spec.program.persistent:
        raise UserError(f"{spec.name} learns nothing on the device, so it has no snapshots")

    whose = identity(spec)
    return whose.drop, whose.state_kind
