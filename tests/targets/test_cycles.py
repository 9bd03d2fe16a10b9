"""Cycles of single instructions, as the manuals have them: written down here by hand, and not with the decoder's words.

Cortex-M0+: Technical Reference Manual r0p1, table 3-1, fast multiplier, no wait states.  AVR: Instruction Set Manual, a
core with 16 bits of program counter.
"""

import pytest

from pykernel.targets.decode import decoder
from pykernel.targets.flow import Graph, Records

pytest.importorskip("capstone")

BASE = 0x1000


def decode(arch, target, words):
    """Decode code at BASE: (what decodes an address, the code); words: of 16 bits."""
    code = b"".join(word.to_bytes(2, "little") for word in words)
    return decoder(
        arch, target, lambda at: code[at - BASE : at - BASE + 4], lambda at: f"{at:#x}", {BASE}, Records()
    )  # fmt: skip


def cycles_of(arch, target, words):
    """Of the first instruction: its cycles on the way on, and on the way of a branch that is taken, if it has one."""
    made = decode(arch, target, [*words, 0, 0, 0])(BASE)
    behind = BASE + made.size
    ways = {way.to: made.cycles + way.cycles for way in made.ways}
    others = [cycles for to, cycles in ways.items() if to != behind]
    return ways.get(behind, made.cycles), *others


# the first is 1 + N or 3 + N for N registers, with the program counter among them
M0PLUS = {
    "movs r0, #1": ([0x2001], 1),
    "mov r0, r1": ([0x4608], 1),
    "adds r0, r0, r1": ([0x1840], 1),
    "adds r0, #255": ([0x30FF], 1),
    "adcs r0, r1": ([0x4148], 1),
    "sbcs r0, r1": ([0x4188], 1),
    "rsbs r0, r1, #0": ([0x4248], 1),
    "muls r0, r1": ([0x4348], 1),
    "cmp r0, r1": ([0x4288], 1),
    "tst r0, r1": ([0x4208], 1),
    "lsls r0, r1": ([0x4088], 1),
    "asrs r0, r1, #31": ([0x17C8], 1),
    "sxth r0, r1": ([0xB208], 1),
    "rev r0, r1": ([0xBA08], 1),
    "nop": ([0xBF00], 1),
    "sub sp, #8": ([0xB082], 1),
    "adr r0, .": ([0xA000], 1),
    "ldr r0, [r1]": ([0x6808], 2),
    "ldr r0, [pc, #4]": ([0x4801], 2),
    "ldr r0, [sp]": ([0x9800], 2),
    "ldr r0, [r1, r2]": ([0x5888], 2),
    "ldrb r0, [r1]": ([0x7808], 2),
    "ldrsh r0, [r1, r2]": ([0x5E88], 2),
    "str r0, [r1]": ([0x6008], 2),
    "strh r0, [r1]": ([0x8008], 2),
    "strb r0, [r1, r2]": ([0x5488], 2),
    "str r0, [sp]": ([0x9000], 2),
    "ldm r1!, {r2}": ([0xC904], 2),
    "ldm r1!, {r2, r3}": ([0xC90C], 3),
    "stm r1!, {r2-r5}": ([0xC13C], 5),
    "push {r4}": ([0xB410], 2),
    "push {r4, lr}": ([0xB510], 3),
    "push {r4-r7, lr}": ([0xB5F0], 6),
    "pop {r4}": ([0xBC10], 2),
    "pop {r4-r7}": ([0xBCF0], 5),
    "pop {pc}": ([0xBD00], 4),
    "pop {r4, pc}": ([0xBD10], 5),
    "pop {r4-r7, pc}": ([0xBDF0], 8),
    "b .+8": ([0xE002], 2, 2),
    "beq .+8": ([0xD002], 1, 2),
    "bgt .+8": ([0xDC02], 1, 2),
    "bl .+8": ([0xF000, 0xF802], 3),
    "bx lr": ([0x4770], 2),
    "mov pc, lr": ([0x46F7], 2),
    "mrs r0, primask": ([0xF3EF, 0x8010], 3),
    "msr primask, r0": ([0xF380, 0x8810], 3),
    "dmb": ([0xF3BF, 0x8F5F], 3),
    "dsb": ([0xF3BF, 0x8F4F], 3),
    "isb": ([0xF3BF, 0x8F6F], 3),
}


@pytest.mark.parametrize("name", M0PLUS)
def test_an_instruction_of_a_cortex_m0plus(name):
    words, *cycles = M0PLUS[name]
    found = cycles_of("arm", "cortex-m0plus", words)
    assert found == tuple(cycles)


def test_a_function_of_a_cortex_m0plus():
    """push {r4, lr}; ldr r4, [r0]; ldr r1, [r0, #4]; muls r4, r1; str r4, [r0]; pop {r4, pc}: 3 + 2 + 2 + 1 + 2 + 5."""
    graph = Graph([BASE], decode("arm", "cortex-m0plus", [0xB510, 0x6804, 0x6841, 0x434C, 0x6004, 0xBD10]), Records())
    (block,) = graph.blocks
    assert (block.instructions, block.cycles) == (6, 15)


AVR = {
    "nop": ([0x0000], 1),
    "movw r24, r22": ([0x01CB], 1),
    "mul r0, r1": ([0x9C01], 2),
    "muls r16, r17": ([0x0201], 2),
    "fmul r16, r17": ([0x0309], 2),
    "adc r0, r1": ([0x1C01], 1),
    "cpc r0, r1": ([0x0401], 1),
    "eor r1, r1": ([0x2411], 1),
    "cpi r16, 0": ([0x3000], 1),
    "sbci r16, 0": ([0x4000], 1),
    "ldi r24, 0": ([0xE080], 1),
    "ldd r24, Y+1": ([0x8189], 2),
    "std Y+1, r24": ([0x8389], 2),
    "lds r24, 0x100": ([0x9180, 0x0100], 2),
    "sts 0x100, r24": ([0x9380, 0x0100], 2),
    "ld r24, X": ([0x918C], 2),
    "ld r24, Z+": ([0x9181], 2),
    "ld r24, -Y": ([0x918A], 2),
    "st X, r24": ([0x938C], 2),
    "push r28": ([0x93CF], 2),
    "pop r28": ([0x91CF], 2),
    "lpm r24, Z+": ([0x9185], 3),
    "lpm": ([0x95C8], 3),
    "com r24": ([0x9580], 1),
    "dec r24": ([0x958A], 1),
    "lsr r24": ([0x9586], 1),
    "ror r24": ([0x9587], 1),
    "asr r24": ([0x9585], 1),
    "adiw r24, 1": ([0x9601], 2),
    "sbiw r24, 1": ([0x9701], 2),
    "in r24, 0x3d": ([0xB78D], 1),
    "out 0x3d, r24": ([0xBF8D], 1),
    "cbi 0, 0": ([0x9800], 2),
    "sbi 0, 0": ([0x9A00], 2),
    "bst r24, 0": ([0xFB80], 1),
    "bld r24, 0": ([0xF980], 1),
    "sei": ([0x9478], 1),
    "rjmp .+4": ([0xC002], 2, 2),
    "jmp 0x1008": ([0x940C, 0x0804], 3, 3),
    "rcall .+4": ([0xD002], 3),
    "call 0x1008": ([0x940E, 0x0804], 4),
    "ret": ([0x9508], 4),
    "breq .+4": ([0xF011], 1, 2),
    "brne .+4": ([0xF411], 1, 2),
    # a skip takes one cycle more for each word that it skips
    "cpse r0, r1; nop": ([0x1001, 0x0000], 1, 2),
    "cpse r0, r1; call": ([0x1001, 0x940E, 0x0804], 1, 3),
    "sbrc r0, 0; nop": ([0xFC00, 0x0000], 1, 2),
    "sbrc r0, 0; lds": ([0xFC00, 0x9180, 0x0100], 1, 3),
    "sbrs r0, 0; jmp": ([0xFE00, 0x940C, 0x0804], 1, 3),
    "sbrs r0, 0; rjmp": ([0xFE00, 0xC002], 1, 2),
    "sbic 0, 0; sts": ([0x9900, 0x9380, 0x0100], 1, 3),
    "sbis 0, 0; ret": ([0x9B00, 0x9508], 1, 2),
}


@pytest.mark.parametrize("name", AVR)
def test_an_instruction_of_an_avr(name):
    words, *cycles = AVR[name]
    found = cycles_of("avr", "avr", words)
    assert found == tuple(cycles)


def test_a_skip_of_two_words_goes_behind_both():
    made = decode("avr", "avr", [0xFE00, 0x940C, 0x0804, 0])(BASE)
    assert {way.to for way in made.ways} == {BASE + 2, BASE + 6}
