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
    target: str,
    read: Callable[[int], bytes],
    place: Callable[[int], str],
    starts: Collection[int],
    far: Collection[int] = (),
) -> Decode:
    """What ``Graph`` takes.

    target: whose cycles are counted, if it is one of CYCLES; else they are 0.  read: up to 4 bytes at an address.  place:
    what an address is called.  starts: of functions.  far: where Thumb's instruction for calls is a far jump within a
    function.
    """
    if arch == "riscv":
        return _riscv(read, place, starts)
    cycles, taken = CYCLES.get(target, (lambda word, operands: 0, 0))
    return _thumb(cycles, taken, read, place, starts, far)


# -------------------------------------------------------------------------------------------------------------- Thumb


def _thumb(
    cycles: Callable[[str, str], int],
    taken: int,
    read: Callable[[int], bytes],
    place: Callable[[int], str],
    starts: Collection[int],
    far: Collection[int],
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
        make = functools.partial(Instruction, address, size, f"{word} {operands}", cycles=cycles(word, operands))
        on = (Way(after),)
        if address in skipped and word[-2:] in CONDITIONS:
            word = word[:-2]
        number = re.search(r"#(0x[0-9a-f]+|\d+)$", operands)
        to = int(number[1], 0) if number else -1
        if word == "bl" and place(to).startswith("__gnu_thumb1_case"):
            raise Unbounded(f"an indirect branch in {place(address)}: a call of {place(to)}")  # it returns elsewhere
        if word == "bl" and number:
            return make((Way(to, branches=True),)) if address in far else make(on, called=to)
        if word in ("cbz", "cbnz") or (word[0] == "b" and word[1:] in CONDITIONS):
            return make((*on, Way(to, taken, branches=True)))
        maybe = on if address in skipped else ()
        if word == "b":
            if to not in starts:
                return make((*maybe, Way(to, branches=True)))
            if not maybe:
                return make((), called=to)
        returns = (word == "bx" and operands == "lr") or (
            re.search(r"\{.*\bpc\b", operands) and (word == "pop" or operands.startswith("sp"))
        )
        if returns or (word == "mov" and operands == "pc, lr") or (word == "ldr" and operands.startswith("pc, [sp]")):
            return make(maybe)
        if word in (*ENDS, "b") or operands.startswith("pc") or re.search(r"\{.*\bpc\b", operands):
            raise Unbounded(f"an indirect branch in {place(address)}: {word} {operands}")
        return make(on)

    return decode


def _registers(operands: str) -> int:
    """How many a list such as {r4-r7, lr} has."""
    count = 0
    for part in operands[operands.index("{") + 1 : operands.index("}")].split(","):
        numbers = [int(n) for n in re.findall(r"\d+", part)]
        count += numbers[1] - numbers[0] + 1 if "-" in part else 1
    return count


def _m0plus(word: str, operands: str) -> int:
    """The reference manual of the Cortex-M0+ (r0p1, table 3-1), without wait states and with the fast multiplier."""
    if "{" in operands:
        return 1 + _registers(operands) + (2 if re.search(r"\bpc\b", operands) else 0)
    if word.startswith(("ldr", "str")) or word in ("b", "bx") or operands.startswith("pc"):
        return 2
    return 3 if word in ("bl", "mrs", "msr", "dmb", "dsb", "isb") else 1


def _m4(word: str, operands: str) -> int:
    """An estimate for the Cortex-M3 and M4, by the reference manual of the M4 (r0p1, tables 3-1 and 7-1).

    Each branch takes the longest time that there is to fill the pipeline; what instructions save or lose by their
    neighbours, and wait states, are not known here.
    """
    refill = FILLING if re.search(r"\bpc\b", operands) else 0
    if "{" in operands:
        return 1 + _registers(operands) + refill
    if word in ("ldrd", "strd"):
        return 3
    if word.startswith(("ldr", "str", "vldr", "vstr")):
        return 2 + refill
    if word.startswith(("vdiv", "vsqrt")):
        return 14
    if word in ("udiv", "sdiv"):
        return 12
    if word in ("b", "bl", "bx"):
        return 1 + FILLING
    return 3 if re.match(r"v(n?ml[as]|fn?m[as])", word) else 2 if word.startswith(("mla", "mls", "mrs", "msr")) else 1


FILLING = 3
"""Cycles that a Cortex-M3 or M4 takes at most to fill its pipeline behind a branch."""
CYCLES: dict[str, tuple[Callable[[str, str], int], int]] = {
    "cortex-m0plus": (_m0plus, 1),
    "cortex-m3": (_m4, FILLING),
    "cortex-m4f": (_m4, FILLING),
}
"""Of an instruction, and what a branch that depends on a condition takes more if it is taken; by target."""
EXACT = ("cortex-m0plus",)
"""Targets whose CPU takes as many cycles as the manual's table says."""


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
        make = functools.partial(Instruction, address, size, f"{word} {text}")

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
        if word in ("ecall", "ebreak", "mret", "sret", "uret", "unimp", "wfi"):
            raise Unbounded(f"{word} in {place(address)}")
        return make((Way(after),))

    return decode
