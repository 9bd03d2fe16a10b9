"""A model on an emulated CPU, in this process: Unicorn, with exact counts of instructions and of stack."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from pykernel.dialect import Memory
from pykernel.errors import CheckFailed, MissingExtra
from pykernel.targets.build import Image, has_module

PAGE = 4096
MAILBOX = 0x6000_0000
"""Where samples and results are handed over: outside of the part's memory, which is the model's alone."""
RETURN = MAILBOX + PAGE
PAINT = 0xA5
MSTATUS_FS = 1 << 13  # RISC-V: the FPU is on
REFUSED = -1  # below 0: what statuses of refusals have in common


@dataclass(frozen=True)
class Cost:
    """What one call took."""

    instructions: int
    stack: int


class UnicornModel:
    """The same calls as CModel's, on the emulated CPU.

    Functions are called as a C program would call them, with arguments where the ABI in the ELF file has them; the
    model lies at the start of the part's RAM and the stack at its end, and there is no other memory.
    """

    def __init__(self, image: Image) -> None:
        if not has_module("unicorn"):
            raise MissingExtra("--emulator unicorn", "emulate")
        import unicorn

        self.image, self.spec = image, image.project.spec
        self.memory: Memory = self.spec.memory(image.project.drop)
        self.word = self.spec.real.dtype.itemsize
        self.uc = _cpu(image)
        flash, ram = image.flash, image.ram
        self.uc.mem_map(flash.start, _whole_pages(flash.bytes), unicorn.UC_PROT_READ | unicorn.UC_PROT_EXEC)
        self.uc.mem_map(ram.start, _whole_pages(ram.bytes), unicorn.UC_PROT_READ | unicorn.UC_PROT_WRITE)
        self.uc.mem_map(MAILBOX, 2 * PAGE)
        for address, load_address, data in image.segments:
            self.uc.mem_write(load_address, data)
            if address != load_address:  # what start-up code does
                self.uc.mem_write(address, data)
        self.model = ram.start + -(-image.data_bytes // 16) * 16
        self.top = ram.start + ram.bytes & ~15
        self.floor = self.model + self.memory.layout.nbytes
        self.x, self.y = MAILBOX, MAILBOX + self.spec.dim * self.word
        self._count(flash.start)
        self._registers(unicorn)
        self.call("init")

    # ---- calls

    def call(self, name: str) -> int:
        """Call NAME_<name>(s) on the model."""
        self._push()
        result = self._run(name, self.model)
        self._pull()
        return result if name == "hash" else _signed(result)

    def predict(self, x: np.ndarray) -> tuple[Any, int]:
        """f(x) of one row (NaN where refused), and the status.  The state in ``memory`` is not read."""
        self.uc.mem_write(self.x, x.tobytes() + bytes(self.word))
        status = _signed(self._run("predict", self.model, self.x, self.y))
        value = np.frombuffer(self.uc.mem_read(self.y, self.word), self.spec.real.dtype)[0]
        return (value if status >= 0 else self.spec.real.dtype.type(np.nan)), status

    def update(self, x: np.ndarray, y: Any) -> int:
        """Learn one row; the status."""
        self.uc.mem_write(self.x, x.tobytes())
        return _signed(self._run("update", self.model, self.x, real=np.asarray(y, self.spec.real.dtype)))

    def run(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Predict each row, then learn it: (predictions, statuses)."""
        x, y = (np.ascontiguousarray(a, self.spec.real.dtype) for a in (x, y))
        predictions, statuses = np.full(len(x), np.nan, x.dtype), np.zeros(len(x), np.int32)
        self._push()
        for t in range(len(x)):
            predictions[t], _ = self.predict(x[t])
            statuses[t] = self.update(x[t], y[t])
        self._pull()
        return predictions, statuses

    def _push(self) -> None:
        self.uc.mem_write(self.model, bytes(self.memory.bytes))

    def _pull(self) -> None:
        self.memory.bytes[:] = self.contents()

    def contents(self) -> bytes:
        """The model's bytes on the device, as they are now."""
        return bytes(self.uc.mem_read(self.model, self.memory.layout.nbytes))

    def restore(self, contents: bytes) -> None:
        """Put the model's bytes on the device."""
        self.uc.mem_write(self.model, contents)

    # ---- measuring

    @property
    def instructions(self) -> int:
        """Instructions executed so far; of conditional ones, those whose condition held."""
        return int(self.counts[1:].sum())

    def profile(self) -> dict[str, int]:
        """Instructions executed so far, by function."""
        counts, start = self.counts[1:], self.image.flash.start
        found = {
            name: int(counts[(f.start - start) // 2 : (f.start - start + f.size + 1) // 2].sum())
            for name, f in self.image.functions.items()
        }
        return {name: count for name, count in found.items() if count}

    def clear_counts(self) -> None:
        self.counts[1:] = 0

    def paint_stack(self) -> None:
        self.uc.mem_write(self.floor, bytes([PAINT]) * (self.top - self.floor))

    def stack_used(self) -> int:
        """Bytes of stack touched since it was painted."""
        area = np.frombuffer(self.uc.mem_read(self.floor, self.top - self.floor), np.uint8)
        touched = np.flatnonzero(area != PAINT)
        return len(area) - int(touched[0]) if len(touched) else 0

    def _count(self, start: int) -> None:
        """Let each instruction executed add 1 to its address's place in ``counts``; compiled, for speed."""
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
        self.uc.ctl_flush_tb()  # hooks bind when code is translated

    # ---- registers

    def _registers(self, unicorn: Any) -> None:
        if self.image.target.unicorn.arch == "arm":  # type: ignore[union-attr]
            from unicorn import arm_const as c

            self.integers = [c.UC_ARM_REG_R0, c.UC_ARM_REG_R1, c.UC_ARM_REG_R2, c.UC_ARM_REG_R3]
            self.real = c.UC_ARM_REG_S0 if self.word == 4 else c.UC_ARM_REG_D0
            self.sp, self.ra, self.thumb = c.UC_ARM_REG_SP, c.UC_ARM_REG_LR, 1
        else:
            from unicorn import riscv_const as c

            self.integers = [c.UC_RISCV_REG_A0, c.UC_RISCV_REG_A1, c.UC_RISCV_REG_A2, c.UC_RISCV_REG_A3]
            self.real, self.thumb = c.UC_RISCV_REG_FA0, 0
            self.sp, self.ra = c.UC_RISCV_REG_SP, c.UC_RISCV_REG_RA
            if self.image.target.fpu != "none":
                self.uc.reg_write(c.UC_RISCV_REG_MSTATUS, self.uc.reg_read(c.UC_RISCV_REG_MSTATUS) | MSTATUS_FS)
        self.in_fpu = self.image.hard_float and (
            self.word == 4 or self.thumb == 1 or self.image.target.fpu == "double"
        )

    def _run(self, name: str, *pointers: int, real: np.ndarray | None = None) -> int:
        """Call a function: pointers, then one number; what it returns, as 32 bits without sign."""
        import unicorn

        words = list(pointers)
        if real is not None:
            bits = int.from_bytes(real.tobytes(), "little")
            if self.in_fpu:
                if self.thumb == 0 and self.word == 4:
                    bits |= 0xFFFF_FFFF_0000_0000  # a float in a wider register
                self.uc.reg_write(self.real, bits)
            else:
                words += [bits & 0xFFFF_FFFF, bits >> 32][: self.word // 4]
        for register, word in zip(self.integers, words, strict=False):
            self.uc.reg_write(register, word)
        self.uc.reg_write(self.sp, self.top)
        self.uc.reg_write(self.ra, RETURN | self.thumb)
        function = self.image.functions[f"{self.spec.name}_{name}"]
        try:
            self.uc.emu_start(function.start | self.thumb, RETURN)
        except unicorn.UcError as error:
            raise CheckFailed(f"{self.image.target.name}: {name} stopped: {error}") from None
        return int(self.uc.reg_read(self.integers[0])) & 0xFFFF_FFFF


def _cpu(image: Image) -> Any:
    """A CPU of exactly the target's model."""
    import unicorn
    from unicorn import arm_const, riscv_const

    chosen = image.target.unicorn
    if chosen is None:
        raise ValueError(f"Unicorn has no {image.target.name}")
    if chosen.arch == "arm":
        # not UC_MODE_MCLASS: it silently makes every CPU a Cortex-M33
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
    """counts[1 + (address - counts[0]) / 2] += 1, as C code."""
    from numba import cfunc, types

    def count(uc, address, size, counts):  # type: ignore[no-untyped-def]
        counts[1 + ((address - counts[0]) >> 1)] += 1

    return cfunc(types.void(types.voidptr, types.uint64, types.uint32, types.CPointer(types.uint64)))(count)


def _whole_pages(size: int) -> int:
    return -(-size // PAGE) * PAGE


def _signed(word: int) -> int:
    return word - (word >> 31 << 32)
