"""Instructions of the targets' CPUs: where each goes on, and how many cycles it takes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection

from pykernel.targets.flow import Instruction, Unbounded, Way

Decode = Callable[[int], Instruction]
CONDITIONS = frozenset("eq ne cs cc mi pl vs vc hi ls ge lt gt le hs lo".split())
ENDS = frozenset("bx blx bxns blxns tbb tbh udf svc bkpt".split())
"""Of Thumb: where these go is not to be seen in the code."""


def decoder(
    arch: str,
    read: Callable[[int], bytes],
    place: Callable[[int], str],
    starts: Collection[int],
    far: Collection[int] = (),
) -> Decode:
    """What ``Graph`` takes.

    read: up to 4 bytes at an address.  place: what an address is called.  starts: of functions.  far: where Thumb's
    instruction for calls is a far jump within a function.
    """
    return _thumb(read, place, starts, far) if arch == "arm" else _riscv(read, place, starts)


# -------------------------------------------------------------------------------------------------------------- Thumb


def _thumb(
    read: Callable[[int], bytes], place: Callable[[int], str], starts: Collection[int], far: Collection[int]
) -> Decode:
    import capstone

    disassembler = capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS)
    skipped: set[int] = set()  # instructions within IT blocks: executed or not

    def raw(address: int) -> tuple[int, str, str]:
        for _, size, word, operands in disassembler.disasm_lite(read(address), address, 1):
            return size, word.split(".")[0], operands
        raise Unbounded(f"an unknown instruction in {place(address)}")

    def decode(address: int) -> Instruction:
        size, word, operands = raw(address)
        after = address + size
        if it := re.fullmatch(r"it([te]*)", word):
            at = after
            for _ in range(len(it[1]) + 1):
                skipped.add(at)
                at += raw(at)[0]
        make = functools.partial(Instruction, address, size, f"{word} {operands}", cycles=_cycles(word, operands))
        on = (Way(after),)
        if address in skipped and word[-2:] in CONDITIONS:
            word = word[:-2]
        number = re.search(r"#(0x[0-9a-f]+|\d+)$", operands)
        to = int(number[1], 0) if number else -1
        if word == "bl" and number:
            return make((Way(to, branches=True),)) if address in far else make(on, called=to)
        if word in ("cbz", "cbnz") or (word[0] == "b" and word[1:] in CONDITIONS):
            return make((*on, Way(to, 1, branches=True)))
        maybe = on if address in skipped else ()
        if word == "b":
            if to not in starts:
                return make((*maybe, Way(to, branches=True)))
            if not maybe:
                return make((), called=to)
        returns = (word == "bx" and operands == "lr") or (word in ("pop", "ldm") and re.search(r"\bpc\b", operands))
        if returns or (word == "mov" and operands == "pc, lr") or (word == "ldr" and operands.startswith("pc, [sp]")):
            return make(maybe)
        if word in (*ENDS, "b") or operands.startswith("pc"):
            raise Unbounded(f"an indirect branch in {place(address)}: {word} {operands}")
        return make(on)

    return decode


def _cycles(word: str, operands: str) -> int:
    """Of an instruction of a Cortex-M0+ by the table in its reference manual (r0p1, 3.3), without wait states and with the
    fast multiplier; a branch that is taken costs one more, which its ways say."""
    if word in ("ldm", "stm", "push", "pop"):
        registers = operands[operands.index("{") :].count(",") + 1
        return 1 + registers + (2 if re.search(r"\bpc\b", operands) else 0)
    if word.startswith(("ldr", "str")) or word in ("b", "bx") or operands.startswith("pc"):
        return 2
    return 3 if word in ("bl", "mrs", "msr", "dmb", "dsb", "isb") else 1


# ------------------------------------------------------------------------------------------------------------- RISC-V


def _riscv(read: Callable[[int], bytes], place: Callable[[int], str], starts: Collection[int]) -> Decode:
    import capstone

    disassembler = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC)
    upper: dict[int, tuple[str, int]] = {}  # behind an auipc: its register and value

    def decode(address: int) -> Instruction:
        found = next(iter(disassembler.disasm_lite(read(address), address, 1)), None)
        if found is None:
            raise Unbounded(f"an unknown instruction in {place(address)}")
        _, size, word, text = found
        word, operands, after = word.removeprefix("c."), [part.strip() for part in text.split(",")], address + size
        make = functools.partial(Instruction, address, size, f"{word} {text}", cycles=1)

        def goes(to: int, link: str) -> Instruction:
            if link == "ra":
                return make((Way(after),), called=to)
            if link != "zero":
                raise Unbounded(f"a call by {link} in {place(address)}")
            return make((), called=to) if to in starts else make((Way(to, branches=True),))

        if word == "auipc":
            upper[after] = (operands[0], address + (int(operands[1], 0) << 12))
        if word in ("j", "jal"):
            link = operands[0] if len(operands) == 2 else "ra" if word == "jal" else "zero"
            return goes(address + int(operands[-1], 0), link)
        if word in ("jalr", "jr", "ret"):
            if word == "ret" or (word == "jr" and text in ("ra", "0(ra)")):
                return make(())
            shape = re.fullmatch(r"(?:(\w+), )?(-?\w+)\((\w+)\)", text)
            if shape and address in upper and shape[3] == upper[address][0]:
                to = (upper[address][1] + int(shape[2], 0)) & 0xFFFF_FFFE
                return goes(to, shape[1] or ("ra" if word == "jalr" else "zero"))
            raise Unbounded(f"an indirect branch in {place(address)}: {word} {text}")
        if re.fullmatch(r"b(eq|ne|lt|ge|ltu|geu|eqz|nez|lez|gez|ltz|gtz)", word):
            return make((Way(after), Way(address + int(operands[-1], 0), branches=True)))
        if word in ("ecall", "ebreak", "mret", "wfi"):
            raise Unbounded(f"{word} in {place(address)}")
        return make((Way(after),))

    return decode
