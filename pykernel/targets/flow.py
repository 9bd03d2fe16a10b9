"""Represent machine code as a graph: instructions, their possible successors, and the marks between them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from elftools.elf.elffile import ELFFile

RECORDS = ".debug_pykernel"
"""Section in the annotated assembly with the places of labels, marks and branches.  Linkers keep sections whose names begin with .debug."""
LABEL = re.compile(r"(?!\d+:)([.\w$]+):")
MARK = re.compile(r"/\* ((?:loop|turn) \d+) \*/")
BRANCH = re.compile(r"\s*(?:b|cb|j|rj)[a-z.]*\s(?:.*,\s*)?(\.L[\w$]+)\s*(?:[@#/;].*)?$")


class Unbounded(Exception):
    """No bound can be proved for some code.  The message says why."""


@dataclass(frozen=True)
class Way:
    """A possible successor of an instruction: the next instruction, or the target of a branch.

    cycles: number of additional cycles that the instruction takes if this successor follows.
    """

    to: int
    cycles: int = 0
    branches: bool = False


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    ways: the possible successors; a return has none.  called: the function, if any, that the instruction calls before
    execution continues at a successor.
    limit: (times, address): this instruction is executed at most ``times`` times for each execution of the instruction at
    ``address``.
    """

    address: int
    size: int
    text: str
    ways: tuple[Way, ...]
    called: int | None = None
    cycles: int = 0
    limit: tuple[int, int] | None = None


# ------------------------------------------------------------------------------------- records of the assembly


def annotate(assembly: str) -> str:
    """Add a record (an address and a text) of each label, mark and branch to a compiler's assembly.

    A mark and a label may have the same address.  Only the assembly shows which of the two comes first, and which label
    is the target of a branch.  The instructions do not change.
    """
    lines: list[str] = []
    for number, line in enumerate(assembly.splitlines()):
        if mark := MARK.search(line):
            lines += _record(f"mark {mark[1]}", number)
            continue
        if label := LABEL.match(line):
            lines += [label[0], *_record(f"label {label[1]}", number)]
            line = line[label.end() :]
        if branch := BRANCH.match(line):
            lines += _record(f"branch {branch[1]}", number)
        lines.append(line)
    return "\n".join(lines) + "\n"


def _record(text: str, number: int) -> list[str]:
    here = f".Lpykernel{number}"
    section = f'\t.pushsection {RECORDS},"",%progbits'
    return [f"{here}:", section, f"\t.long {here}", f'\t.asciz "{text}"', "\t.popsection"]


@dataclass(frozen=True)
class Records:
    """The records of an image.

    places: dict that maps addresses to the labels and marks there, in order.
    branches: dict that maps the address of a branch instruction to the label of its target.
    """

    places: dict[int, list[str]] = field(default_factory=dict)
    branches: dict[int, str] = field(default_factory=dict)


def read_records(elf: Path) -> Records:
    """Read the records that ``annotate`` wrote, with the addresses that the linker chose."""
    found = Records()
    with elf.open("rb") as file:
        section = ELFFile(file).get_section_by_name(RECORDS)
        data = section.data() if section else b""
    at = 0
    while at < len(data):
        address, end = int.from_bytes(data[at : at + 4], "little"), data.index(0, at + 4)
        kind, text = data[at + 4 : end].decode().split(" ", 1)
        if kind == "branch":
            found.branches[address] = text
        else:
            found.places.setdefault(address, []).append(f"{kind} {text}")
        at = end + 1
    return found


# --------------------------------------------------------------------------------------------------------- the graph


@dataclass
class Block:
    """Consecutive instructions that are all executed the same number of times.  address: the address of the first instruction."""

    address: int
    instructions: int = 0
    cycles: int = 0
    marks: Counter[str] = field(default_factory=Counter)
    calls: Counter[int] = field(default_factory=Counter)
    ways: list[tuple[int | None, int]] = field(default_factory=list)  # (block, or None for a return; cycles)


Point = tuple[int, int]
"""A position in the code: an address, and the number of labels and marks at this address that have been passed."""


class Graph:
    """The control flow graph of some functions and of all functions that they call.

    decode: a function that returns the instruction at an address, and raises Unbounded if the instruction's successors
    are not known.
    """

    def __init__(self, entries: Iterable[int], decode: Callable[[int], Instruction], records: Records) -> None:
        self.decode, self.records = decode, records
        self.reached: dict[Point, tuple[Instruction | None, list[tuple[Point, int]]]] = {}
        self.functions: set[int] = set()
        todo = list(entries)
        while todo:
            start = todo.pop()
            if start not in self.functions:
                self.functions.add(start)
                todo += self._follow(start)
        self._collapse()

    def _follow(self, start: int) -> list[int]:
        """Find all points that can be reached from a function's start.  Returns the functions that are called."""
        called, todo = [], [(start, 0)]
        while todo:
            point = todo.pop()
            if point in self.reached:
                continue
            address, passed = point
            if passed < len(self.records.places.get(address, ())):
                instruction, ways = None, [((address, passed + 1), 0)]
            else:
                instruction = self.decode(address)
                ways = [(self._target(instruction, way), way.cycles) for way in instruction.ways]
                if instruction.called is not None:
                    called.append(instruction.called)
            self.reached[point] = (instruction, ways)
            todo += [to for to, _ in ways]
        return called

    def _target(self, instruction: Instruction, way: Way) -> Point:
        to, places = way.to, self.records.places.get(way.to, [])
        if not places or not way.branches:
            return to, 0
        # a branch to a far label becomes a short branch that skips a long branch; the record belongs to the short branch
        for address in (instruction.address, instruction.address - 4, instruction.address - 2):
            label = f"label {self.records.branches.get(address)}"
            if label in places:
                return to, places.index(label)
        raise Unbounded(f"a branch to an unknown label at {instruction.address:#x}: {instruction.text}")

    def _collapse(self) -> None:
        entering: Counter[Point] = Counter(to for _, ways in self.reached.values() for to, _ in ways)
        starts = {(address, 0) for address in self.functions}
        starts |= {point for point in self.reached if entering[point] != 1}
        starts |= {to for _, ways in self.reached.values() if len(ways) != 1 for to, _ in ways}
        number = {point: i for i, point in enumerate(sorted(starts))}
        self.blocks: list[Block] = []
        self.entry = {address: number[address, 0] for address in self.functions}
        self.block_at: dict[int, int] = {}
        for i, start in enumerate(sorted(starts)):
            block, point = Block(start[0]), start
            while True:
                instruction, ways = self.reached[point]
                if instruction is None:
                    kind, text = self.records.places[point[0]][point[1]].split(" ", 1)
                    if kind == "mark":
                        block.marks[text] += 1
                else:
                    self.block_at[point[0]] = i
                    block.instructions += 1
                    block.cycles += instruction.cycles
                    if instruction.called is not None:
                        block.calls[instruction.called] += 1
                if len(ways) != 1 or ways[0][0] in number:
                    break
                block.cycles += ways[0][1]
                point = ways[0][0]
            block.ways = [(number[to], cycles) for to, cycles in ways] or [(None, 0)]
            self.blocks.append(block)
