"""Decode instructions of the targets' CPUs: the possible successors of each instruction, and its cycles."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection
from typing import Any

from pykernel.targets.flow import Instruction, Records, Unbounded, Way

Decode = Callable[[int], Instruction]
CONDITIONS = frozenset("eq ne cs cc mi pl vs vc hi ls ge lt gt le hs lo".split())
ENDS = frozenset("bx blx bxns blxns tbb tbh udf svc bkpt".split())
"""Thumb instructions whose successor cannot be read from the code."""


def decoder(
    arch: str,
    target: str,
    read: Callable[[int], bytes],
    place: Callable[[int], str],
    starts: Collection[int],
    records: Records,
) -> Decode:
    """Return the function ``decode`` for ``Graph``.

    target: the target's name.  If it is in CYCLES, the cycles of Thumb instructions are counted; otherwise they are 0.
    read: a function that returns up to 4 bytes at an address.  place: a function that describes an address in words,
    for error messages.
    starts: addresses of functions.  records: records of the assembly.  A branch with a record stays within its function,
    although the instruction may look like a call.
    """
    if arch == "riscv":
        return _riscv(read, place, starts, records)
    if arch == "avr":
        return _avr(read, place, starts, records)
    cycles, taken = CYCLES.get(target, (lambda word, operands: 0, 0))
    return _thumb(cycles, taken, read, place, starts, records.branches)


def _disassembled(
    disassembler: Any, read: Callable[[int], bytes], place: Callable[[int], str], address: int
) -> tuple[int, str, str]:
    """Return size, mnemonic and operands of the instruction at an address."""
    for _, size, word, operands in disassembler.disasm_lite(read(address), address, 1):
        return size, word, operands
    raise Unbounded(f"an unknown instruction in {place(address)}")


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

    raw = functools.partial(
        _disassembled, capstone.Cs(capstone.CS_ARCH_ARM, capstone.CS_MODE_THUMB | capstone.CS_MODE_MCLASS), read, place
    )
    skipped: set[int] = set()  # instructions within IT blocks, which are executed only under a condition

    def decode(address: int) -> Instruction:
        size, word, operands = raw(address)
        word, after = word.split(".")[0], address + size
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
            # the called function does not return to the next instruction
            raise Unbounded(f"an indirect branch in {place(address)}: a call of {place(to)}")
        if word == "bl" and number:
            return make((Way(to, branches=True),)) if address in far else make(on, called=to)
        if word in ("cbz", "cbnz") or (word[0] == "b" and word[1:] in CONDITIONS):
            return make((*on, Way(to, taken, branches=True)))
        maybe = on if address in skipped else ()
        if word == "b" and to not in starts:
            return make((*maybe, Way(to, branches=True)))
        if word == "b" and not maybe:
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
    """Return the number of registers in a list such as {r4, r5, lr}.  Capstone lists each register instead of ranges."""
    return operands[operands.index("{") : operands.index("}")].count(",") + 1


def _m0plus(word: str, operands: str) -> int:
    """Return the cycles of an instruction on a Cortex-M0+ without wait states, with the fast multiplier (manual r0p1, table 3-1)."""
    if "{" in operands:
        return 1 + _registers(operands) + (2 if re.search(r"\bpc\b", operands) else 0)
    if word.startswith(("ldr", "str")) or word in ("b", "bx") or operands.startswith("pc"):
        return 2
    return 3 if word in ("bl", "mrs", "msr", "dmb", "dsb", "isb") else 1


def _m4(word: str, operands: str) -> int:
    """Estimate the cycles of an instruction on the Cortex-M3 and M4, according to the reference manual of the M4 (r0p1, tables 3-1 and
    7-1).

    Each branch is counted with the longest time to fill the pipeline.  The estimate includes neither wait states nor cycles
    that an instruction saves or loses because of its neighbours.
    """
    refill = FILLING if re.search(r"\bpc\b", operands) else 0
    if "{" in operands:
        return 1 + _registers(operands) + refill
    if re.match(r"v?(ldr|str)(?!d$)", word):
        return 2 + refill
    return next((cycles for pattern, cycles in M4 if re.match(pattern, word)), 1)


FILLING = 3
"""The largest number of cycles that a Cortex-M3 or M4 needs to fill its pipeline after a branch."""
M4 = (
    (r"(ldrd|strd)$", 3),
    (r"vdiv|vsqrt", 14),
    (r"(udiv|sdiv)$", 12),
    (r"(b|bl|bx)$", 1 + FILLING),
    (r"v(n?ml[as]|fn?m[as])", 3),
    (r"mla|mls|mrs|msr", 2),
)
"""Patterns for the start of a mnemonic, each with its cycles.  All other instructions take one cycle, except the loads and
stores that ``_m4`` counts itself.
"""
CYCLES: dict[str, tuple[Callable[[str, str], int], int]] = {
    "cortex-m0plus": (_m0plus, 1),
    "cortex-m3": (_m4, FILLING),
    "cortex-m4f": (_m4, FILLING),
}
"""Target -> a function that returns an instruction's cycles, and the additional cycles of a conditional branch if it is taken."""
COUNTED = (*CYCLES, "avr", "atmega328p")
"""Targets whose cycles are counted."""
EXACT = ("cortex-m0plus", "avr", "atmega328p")
"""Targets whose cycles are exact, because the CPU takes exactly the cycles in the manual's table."""


# ------------------------------------------------------------------------------------------------------------- RISC-V


def _riscv(
    read: Callable[[int], bytes], place: Callable[[int], str], starts: Collection[int], records: Records
) -> Decode:
    import capstone

    raw = functools.partial(
        _disassembled,
        capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV32 | capstone.CS_MODE_RISCVC),
        read,
        place,
    )
    upper: dict[int, tuple[str, int]] = {}  # address after an auipc -> the auipc's register and value

    def behind_jump(address: int) -> int | None:
        """Return the address after the jump at this address, or None if there is no jump."""
        size, word, _ = raw(address)
        return address + size if word in ("j", "c.j") else None

    def decode(address: int) -> Instruction:
        size, word, text = raw(address)
        word, operands, after = word.removeprefix("c."), [part.strip() for part in text.split(",")], address + size
        make = functools.partial(Instruction, address, size, f"{word} {text}")

        def goes(to: int, link: str) -> Instruction:
            if link == "ra":
                return make((Way(after),), called=to)
            if link != "zero":
                raise Unbounded(f"a call in {place(address)} that keeps its return address in {link} instead of ra")
            return make((), called=to) if to in starts else make((Way(to, branches=True),))

        link = "ra" if word in ("jal", "jalr") else "zero"
        match word:
            case "auipc":
                upper[after] = (operands[0], address + (int(operands[1], 0) << 12))
            case "j" | "jal":
                return goes(address + int(operands[-1], 0), operands[0] if len(operands) == 2 else link)
            case "ret":
                return make(())
            case "jr" if text in ("ra", "0(ra)"):
                return make(())
            case "jalr" | "jr":
                shape = re.fullmatch(r"(?:(\w+), )?(-?\w+)\((\w+)\)", text)
                if shape and address in upper and shape[3] == upper[address][0]:
                    return goes((upper[address][1] + int(shape[2], 0)) & 0xFFFF_FFFE, shape[1] or link)
                raise Unbounded(f"an indirect branch in {place(address)}: {word} {text}")
            case "ecall" | "ebreak" | "mret" | "sret" | "uret" | "unimp" | "wfi":
                raise Unbounded(f"{word} in {place(address)}")
        if re.fullmatch(r"b(eq|ne|lt|ge|ltu|geu|eqz|nez|lez|gez|ltz|gtz)", word):
            to = address + int(operands[-1], 0)
            # for a branch to a far label, the assembler writes the opposite branch, which skips a jump to the label
            label = records.branches.get(address)
            skips = label is not None and f"label {label}" not in records.places.get(to, ())
            return make((Way(after), Way(to, branches=not (skips and to == behind_jump(after)))))
        return make((Way(after),))

    return decode


# ---------------------------------------------------------------------------------------------------------------- AVR

# in a pattern, "_" matches any bit; the cycles are those of a core with a 16-bit program counter (AVR instruction set
# manual, column AVRe)
AVR = tuple(
    (int(bits.replace("0", "1").replace("_", "0"), 2), int(bits.replace("_", "0"), 2), word, cycles)
    for bits, word, cycles in (
        ("0000000000000000", "nop", 1),
        ("00000001________", "movw", 1),
        ("0000001_________", "mul", 2),  # muls, mulsu, fmul and similar
        ("000001__________", "cpc", 1),
        ("00001___________", "sbc, add", 1),
        ("000100__________", "cpse", 1),
        ("0001____________", "cp, sub, adc", 1),
        ("0010____________", "and, eor, or, mov", 1),
        ("0011____________", "cpi", 1),
        ("01______________", "sbci, subi, ori, andi", 1),
        ("10_0____________", "ldd, std", 2),
        ("100100______0000", "lds, sts", 2),
        ("100100______0001", "ld, st", 2),
        ("100100______0010", "ld, st", 2),
        ("1001000_____01__", "lpm, elpm", 3),
        ("100100______1001", "ld, st", 2),
        ("100100______1010", "ld, st", 2),
        ("100100______11__", "ld, st, push, pop", 2),
        ("1001010_____00__", "com, neg, swap, inc", 1),
        ("1001010_____0101", "asr", 1),
        ("1001010_____0110", "lsr", 1),
        ("1001010_____0111", "ror", 1),
        ("1001010_____1010", "dec", 1),
        ("1001010_____110_", "jmp", 3),
        ("1001010_____111_", "call", 4),
        ("10010100____1000", "bset, bclr", 1),
        ("1001010100001000", "ret", 4),
        ("1001010_000_1001", "indirect", 0),  # ijmp, icall and similar
        ("100101011100100_", "lpm", 3),
        ("1001011_________", "adiw, sbiw", 2),
        ("100110_0________", "cbi, sbi", 2),
        ("100110_1________", "sbic, sbis", 1),
        ("100111__________", "mul", 2),
        ("1011____________", "in, out", 1),
        ("1100____________", "rjmp", 2),
        ("1101____________", "rcall", 3),
        ("1110____________", "ldi", 1),
        ("11110___________", "br", 1),
        ("111110______0___", "bld, bst", 1),
        ("111111______0___", "sbrc, sbrs", 1),
    )
)
SHIFTS = ("sbc, add", "cp, sub, adc", "asr", "lsr", "ror")
"""The instructions in the loops that avr-gcc writes for shifts.  lsl and rol are encoded as add and adc."""


def _avr_raw(read: Callable[[int], bytes], address: int) -> tuple[int, int, str, int]:
    """Decode the instruction at an address.  Returns its first 16 bits, its size in bytes, its name and its cycles."""
    bits = int.from_bytes(read(address)[:2], "little")
    for mask, value, word, cycles in AVR:
        if bits & mask == value:
            return bits, 4 if word in ("lds, sts", "jmp", "call") else 2, word, cycles
    return bits, 2, "unknown", 0


def _avr(
    read: Callable[[int], bytes], place: Callable[[int], str], starts: Collection[int], records: Records
) -> Decode:
    raw = functools.partial(_avr_raw, read)

    def target(address: int, bits: int, word: str) -> int:
        if word in ("jmp", "call"):
            return 2 * int.from_bytes(read(address)[2:4], "little")
        width, bits = (7, bits >> 3) if word == "br" else (12, bits)
        return address + 2 + 2 * (bits % 2**width - 2**width * (bits >> width - 1 & 1))

    def loop(address: int, to: int) -> tuple[int, int] | None:
        """Return the limit on a loop that avr-gcc writes for a single operation, such as a shift, or None for other
        loops.

        The loop's branch back to ``to`` is at ``address``.  The limit is (times, address of an instruction before the loop):
        the branch is executed at most ``times`` times for each execution of this instruction.
        """
        body = [raw(at) for at in range(to, address, 2)]
        counter = body[-1][0] >> 4 & 31
        shifts = all(word in SHIFTS and bits >> 4 & 31 != counter for bits, _, word, _ in body[:-1])
        if not shifts or body[-1][2] != "dec" or any(at in records.places for at in range(to, address + 2, 2)):
            return None
        bits, _, word, _ = raw(to - 2)
        if word == "ldi" and 16 + (bits >> 4 & 15) == counter and raw(address)[0] & 0x0407 == 0x0401:  # brne
            return (bits >> 4 & 0xF0) | bits & 15 or 256, to - 2
        skipped = word == "rjmp" and target(to - 2, bits, word) == address - 2
        return (8 * len(body[:-1]), to - 2) if skipped else None  # in C, a shift count is below the width of the type

    def decode(address: int) -> Instruction:
        bits, size, word, cycles = raw(address)
        after = address + size
        kind = f"{word}{bits & 0x0407:x}" if word == "br" else word
        make = functools.partial(Instruction, address, size, f"{kind} {read(address)[:size].hex()}", cycles=cycles)
        on = (Way(after),)
        match word:
            case "indirect" | "unknown":
                raise Unbounded(f"an {word} {'branch' if word == 'indirect' else 'instruction'} in {place(address)}")
            case "ret":
                return make(())
            case "cpse" | "sbic, sbis" | "sbrc, sbrs":
                skipped = raw(after)[1]
                return make((*on, Way(after + skipped, skipped // 2)))
            case "call" | "rcall":
                to = target(address, bits, word)
                # a call of the next instruction only makes room on the stack
                return make(on, called=None if to == after else to)
            case "br" | "rjmp" | "jmp":
                to = target(address, bits, word)
                if word == "jmp" and address not in records.branches and to in starts:
                    return make((), called=to)
                skips = address not in records.branches and to in (after + 2, after + 4)  # "brne .+2", without a label
                way = Way(to, 1 if word == "br" else 0, branches=not skips)
                if word == "br":
                    return make((*on, way), limit=loop(address, to) if to < address else None)
                return make((way,))
        return make(on)

    return decode
