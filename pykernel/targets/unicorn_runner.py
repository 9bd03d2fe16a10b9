"""Run a model on a CPU that Unicorn emulates in this process, count its instructions, and measure its stack."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.dialect import Memory
from pykernel.errors import CheckFailed, MissingExtra
from pykernel.gen.project import Project
from pykernel.targets.build import Image, has_module

PAGE = 4096
MAILBOX = 0x6000_0000
"""Address of samples and results.  It lies outside the part's memory, so that only the model uses that memory."""
RETURN = MAILBOX + 32 * PAGE
PAINT = 0xA5
FPU_ON = 1 << 13  # a bit in the mstatus register of RISC-V


class EmulatedCpu:
    """The target's CPU and memory, with an image loaded.

    Functions are called as a C program calls them, with arguments where the ELF file's ABI expects them.
    """

    def __init__(self, image: Image) -> None:
        if not has_module("unicorn"):
            raise MissingExtra(f"emulating {image.target.name}", "emulate")
        import unicorn

        self.image = image
        self.uc, flash, ram = _cpu(image), image.flash, image.ram
        self.uc.mem_map(flash.start, _whole_pages(flash.bytes), unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        self.uc.mem_map(ram.start, _whole_pages(ram.bytes), unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        self.uc.mem_map(MAILBOX, RETURN + PAGE - MAILBOX)
        for address, load_address, data in image.segments:
            self.uc.mem_write(load_address, data)
            if address != load_address:  # copy initialised data, as start-up code does
                self.uc.mem_write(address, data)
        self.free = ram.start + -(-image.data_bytes // 16) * 16
        self.top = ram.start + ram.bytes & ~15
        self.floor = self.top  # the stack is not painted yet
        self._count_instructions(flash.start)
        self._find_registers()

    def _find_registers(self) -> None:
        if self.image.target.unicorn.arch == "arm":  # type: ignore[union-attr]
            from unicorn import arm_const as c

            self.integers = [c.UC_ARM_REG_R0, c.UC_ARM_REG_R1, c.UC_ARM_REG_R2, c.UC_ARM_REG_R3]
            self.reals = {4: c.UC_ARM_REG_S0, 8: c.UC_ARM_REG_D0} if self.image.hard_float else {}
            self.sp, self.ra, self.thumb = c.UC_ARM_REG_SP, c.UC_ARM_REG_LR, 1
            return
        from unicorn import riscv_const as c

        self.integers = [c.UC_RISCV_REG_A0, c.UC_RISCV_REG_A1, c.UC_RISCV_REG_A2, c.UC_RISCV_REG_A3]
        self.reals = {4: c.UC_RISCV_REG_FA0} if self.image.hard_float else {}
        self.sp, self.ra, self.thumb = c.UC_RISCV_REG_SP, c.UC_RISCV_REG_RA, 0
        if self.image.target.fpu != "none":
            self.uc.reg_write(c.UC_RISCV_REG_MSTATUS, self.uc.reg_read(c.UC_RISCV_REG_MSTATUS) | FPU_ON)

    def call(self, name: str, *pointers: int, real: np.ndarray | None = None) -> int:
        """Call a function whose arguments are pointers or integers, followed by the floating-point number ``real`` if
        it is given.  Returns the function's result as an unsigned 32-bit integer.

        Raises CheckFailed if the CPU stops, for example at an unknown instruction or an invalid address.
        """
        import unicorn

        words = list(pointers)
        if real is not None:
            bits, size = int.from_bytes(real.tobytes(), "little"), real.itemsize
            if size in self.reals:
                # RISC-V: in a register for doubles, the bits above a float must be ones
                self.uc.reg_write(self.reals[size], bits | (0 if self.thumb else 0xFFFF_FFFF_0000_0000))
            else:
                words += [bits & 0xFFFF_FFFF, bits >> 32][: size // 4]
        for register, word in zip(self.integers, words, strict=False):
            self.uc.reg_write(register, word)
        self.uc.reg_write(self.sp, self.top)
        self.uc.reg_write(self.ra, RETURN | self.thumb)
        try:
            self.uc.emu_start(self.image.functions[name].start | self.thumb, RETURN)
        except unicorn.UcError as error:
            raise CheckFailed(f"{self.image.target.name}: {name} {self._why(str(error))}") from None
        return int(self.uc.reg_read(self.integers[0])) & 0xFFFF_FFFF

    def _why(self, error: str) -> str:
        room = self.top - self.floor
        if room > 0 and room - self.stack_used() < UNWRITTEN:
            part = self.image.target.part
            return (
                f"needs more stack than is free: the model leaves {room:,} of the {part.ram.bytes:,} bytes of RAM on {part.name}; "
                "take a smaller model, or a larger part"
            )
        return f"stopped: {error}"

    # ---- measuring

    def _count_instructions(self, start: int) -> None:
        """Make each executed instruction increment its element of ``counts``.  The hook is compiled, for speed."""
        import unicorn
        from unicorn.unicorn_py3.unicorn import uclib

        size = max(load + len(data) for _, load, data in self.image.segments) - start
        self.counts = np.zeros(1 + (size + 1) // 2, np.uint64)
        self.counts[0] = start
        hook = ctypes.c_size_t()
        status = uclib.uc_hook_add(
            self.uc._uch,
            ctypes.byref(hook),
            unicorn.UC_HOOK_CODE,
            ctypes.cast(_counter().address, ctypes.c_void_p),
            ctypes.cast(self.counts.ctypes.data, ctypes.c_void_p),
            ctypes.c_uint64(start),
            ctypes.c_uint64(start + size - 1),
        )
        if status != unicorn.UC_ERR_OK:
            raise unicorn.UcError(status)
        self.uc.ctl_flush_tb()  # code that is already translated does not call new hooks

    @property
    def instructions(self) -> int:
        """Return the number of instructions executed so far.  A conditional instruction is counted only if its condition was true."""
        return int(self.counts[1:].sum())

    def executed(self) -> dict[int, int]:
        """Return a dictionary that maps each instruction's address to the number of its executions so far."""
        return {int(self.counts[0]) + 2 * int(i): int(self.counts[1 + i]) for i in np.flatnonzero(self.counts[1:])}

    def paint_stack(self, floor: int) -> None:
        """Fill the RAM from address ``floor`` with a pattern, so that ``stack_used`` can see which bytes have changed."""
        self.floor = floor
        self.uc.mem_write(floor, bytes([PAINT]) * (self.top - floor))

    def stack_used(self) -> int:
        """Return the number of bytes of the stack that have been used since it was painted."""
        area = np.frombuffer(self.uc.mem_read(self.floor, self.top - self.floor), np.uint8)
        touched = np.flatnonzero(area != PAINT)
        return len(area) - int(touched[0]) if len(touched) else 0


UNWRITTEN = 64
"""Number of bytes at the end of the used stack that may stay unwritten, because a function need not write all of its variables."""


@dataclass(frozen=True)
class Call:
    """A call: its number of instructions, and the state and arguments with which it can be repeated."""

    instructions: int
    state: bytes
    x: np.ndarray
    y: Any


class UnicornModel:
    """A model on the emulated CPU, with the same methods as CModel.

    The model follows the image's own data at the start of the part's RAM, and the stack is at the end of the RAM.
    costs: dict that maps each function to a list with the number of instructions of each call that was not refused.
    The functions are the main question (such as predict) and the update, called by ``prequential``; the questions,
    called by ``ask``; the visits; and the actions.
    hardest: dict that maps the main question and the update to their most expensive calls.
    other_calls: dict that maps the functions called by ``call`` or ``read`` to the largest number of instructions in one
    call.
    at_once: number of rows that a caller should pass to one call of ``prequential``.  A caller that must stop after some
    number of instructions can read the number executed so far (``spent``) between two calls.
    """

    at_once = 1

    def __init__(self, project: Project, image: Image) -> None:
        self.project, self.spec, self.image = project, project.spec, image
        self.machine = EmulatedCpu(image)
        self.memory: Memory = self.spec.memory(project.drop)
        self.program = self.spec.program
        self.dtype, self.label_dtype = self.spec.real.dtype, self.program.label_dtype(self.spec.real)
        self.model = self.machine.free
        self.costs: dict[str, list[int]] = {
            self.program.asks: [],
            **({self.program.learner: []} if self.program.learns else {}),
        }
        self.hardest: dict[str, Call] = {}
        self.other_calls: dict[str, int] = {}
        self.x = MAILBOX
        self.label = self.x + -(-max(self.spec.dim, self.spec.width) * self.dtype.itemsize // 8) * 8
        self.answer = self.label + self.spec.outputs * 8
        self.call("init")

    @contextlib.contextmanager
    def _on_device(self) -> Iterator[None]:
        """Within the ``with`` block, the model is on the device; afterwards, ``memory`` has the model's new bytes."""
        self.restore(bytes(self.memory.bytes))
        yield
        self.memory.bytes[:] = self.contents()

    def call(self, name: str) -> int:
        """Call NAME_<name>(s) on the model."""
        with self._on_device():
            result = self._call(name)
        self._note(name)
        if name in self.program.actions:
            self._counted(name, _signed(result))
        return result if name == "hash" else _signed(result)

    def prequential(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn it.  Returns (answers, statuses).

        If the main question is a reading, it is called after the row is learned.  The statuses are those of the update,
        or those of the predictions if the model does not learn.
        """
        x, y = np.ascontiguousarray(x, self.dtype), np.ascontiguousarray(y, self.label_dtype)
        asks, learner = self.program.asks, self.program.learner
        answers, statuses = self.program.answers(asks, len(x), self.memory), np.zeros(len(x), np.int32)
        with self._on_device():
            for t in range(len(x)):
                if self.program.reads:  # a reading describes the newest sample
                    statuses[t] = self._hard(learner, x[t], y[t])
                asked = self._hard(asks, x[t], y[t])
                if asked >= 0:
                    answers[t] = self.answered(asks)
                if not self.program.reads:
                    statuses[t] = self._hard(learner, x[t], y[t]) if self.program.learns else asked
        return answers[:, 0] if answers.shape[1] == 1 else answers, statuses

    def ask(self, question: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays, like HostModel.ask: one of shape (samples, values) with the values that NAME_<question> writes for
        each row, and one with the statuses.
        """
        answers, statuses = self.program.answers(question, len(x), self.memory), np.zeros(len(x), np.int32)
        with self._on_device():
            for t, row in enumerate(np.ascontiguousarray(x, self.dtype)):
                statuses[t] = self._counted(question, self._question(question, row))
                if statuses[t] >= 0:
                    answers[t] = self.answered(question)
        return answers, statuses

    def visit(self, name: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Call NAME_<name> with each row and its label.  Returns the statuses, like HostModel.visit."""
        x, y = np.ascontiguousarray(x, self.dtype), np.ascontiguousarray(y, self.label_dtype)
        with self._on_device():
            statuses = [self._counted(name, self.take(name, *row)) for row in zip(x, y, strict=True)]
        return np.array(statuses, np.int32)

    def read(self, name: str) -> tuple[np.ndarray, int]:
        """Return an array of the values that NAME_<name> writes, and the function's status, like HostModel.read."""
        room = self.program.reading(name, self.memory)
        with self._on_device():
            self.machine.uc.mem_write(self.answer, room.tobytes())
            status = _signed(self._call(name, self.answer))
        self._note(name)
        return np.frombuffer(self.machine.uc.mem_read(self.answer, room.nbytes), room.dtype), status

    def _note(self, name: str) -> None:
        self.other_calls[name] = max(self.other_calls.get(name, 0), self.taken)

    def _counted(self, name: str, status: int) -> int:
        """Record the instructions of the last call, unless it was refused, and return its status."""
        if status >= 0:
            self.costs.setdefault(name, []).append(self.taken)
        return status

    def _hard(self, name: str, x: np.ndarray, y: Any) -> int:
        """Call the main question or the update, record its instructions, and keep the most expensive call."""
        call, status = self.measure(name, self.contents(), x, y)
        if status >= 0 and (name not in self.hardest or call.instructions > self.hardest[name].instructions):
            self.hardest[name] = call
        return self._counted(name, status)

    def measure(self, name: str, state: bytes, x: np.ndarray, y: Any) -> tuple[Call, int]:
        """Call a question or the update for one sample.  Returns the call and its status.  state: the device's present state."""
        status = self.take(name, x, y) if name == self.program.learner else self._question(name, x)
        return Call(self.taken, state, x, y), status

    # ---- one call on the device's memory, without copying it

    def _question(self, name: str, x: np.ndarray) -> int:
        self.machine.uc.mem_write(self.x, x.tobytes())
        if name in self.program.readings:
            return _signed(self._call(name, self.answer))
        return _signed(self._call(name, self.x, self.answer))

    def answered(self, question: str) -> np.ndarray:
        """Return the values that the last call of this question wrote, (values,)."""
        room = self.program.answers(question, 1, self.memory)
        return np.frombuffer(self.machine.uc.mem_read(self.answer, room.nbytes), room.dtype)

    def take(self, name: str, x: np.ndarray, y: Any) -> int:
        """Call the update or a visit for one sample and its label (an empty array if there are no labels).  Returns the status."""
        y = np.asarray(y, self.label_dtype)
        self.machine.uc.mem_write(self.x, x.tobytes())
        if self.program.label_kind == "none" or name in self.program.promises:
            return _signed(self._call(name, self.x))
        if y.ndim:
            self.machine.uc.mem_write(self.label, y.tobytes())
            return _signed(self._call(name, self.x, self.label))
        if self.program.label_kind == "class" or self.program.is_int16:
            return _signed(self._call(name, self.x, int(y) & 0xFFFF_FFFF))
        return _signed(self._call(name, self.x, real=y))

    def contents(self) -> bytes:
        """Return the model's bytes on the device."""
        return bytes(self.machine.uc.mem_read(self.model, self.memory.layout.nbytes))

    def after(self, contents: bytes, name: str) -> bytes:
        """Call NAME_<name>(s) on a model whose bytes are ``contents``, and return the new bytes.

        If the model does not have this function, ``contents`` is returned.
        """
        if f"{self.spec.name}_{name}" not in self.image.functions:
            return contents
        self.restore(contents)
        self._call(name)
        return self.contents()

    def restore(self, contents: bytes) -> None:
        """Write the model's bytes to the device."""
        self.machine.uc.mem_write(self.model, contents)

    @property
    def spent(self) -> int:
        return self.machine.instructions

    @property
    def stack_bytes(self) -> int:
        """The largest stack use in bytes since ``paint_stack``."""
        return self.machine.stack_used()

    def paint_stack(self) -> None:
        self.machine.paint_stack(self.model + self.memory.layout.nbytes)

    def _call(self, name: str, *pointers: int, real: np.ndarray | None = None) -> int:
        before = self.machine.instructions
        result = self.machine.call(f"{self.spec.name}_{name}", self.model, *pointers, real=real)
        self.taken = self.machine.instructions - before
        return result


def _cpu(image: Image) -> Any:
    """Return an emulator of exactly the target's CPU model."""
    import unicorn
    from unicorn import arm_const, riscv_const

    chosen = image.target.unicorn
    if chosen is None:
        raise ValueError(f"Unicorn has no {image.target.name}")
    if chosen.arch == "arm":
        # without UC_MODE_MCLASS: this mode silently turns every CPU into a Cortex-M33
        model = getattr(arm_const, f"UC_CPU_ARM_{chosen.cpu}")
        uc = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB)
    else:
        model = getattr(riscv_const, f"UC_CPU_RISCV32_{chosen.cpu}")
        uc = unicorn.Uc(unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV32)
    uc.ctl_set_cpu_model(model)
    if uc.ctl_get_cpu_model() != model:
        raise RuntimeError(f"this version of unicorn does not emulate {chosen.cpu}")
    return uc


@functools.cache
def _counter() -> Any:
    """Return a compiled hook that does counts[1 + (address - counts[0]) / 2] += 1."""
    from numba import cfunc, types

    def count(uc, address, size, counts):  # type: ignore[no-untyped-def]
        counts[1 + ((address - counts[0]) >> 1)] += 1

    return cfunc(types.void(types.voidptr, types.uint64, types.uint32, types.CPointer(types.uint64)))(count)


def _whole_pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)
