"""Prove an upper bound on the number of instructions that a call executes, for exactly the machine code that is
shipped.

The execution counts of the edges of the control flow graph form a flow: a block is entered as often as it is left.
Marks in the code identify the loops.  The number of iterations of a loop, summed over all copies of the loop that the
compiler made, is at most a known factor times the number of entries into the loop.  A linear program finds the most
expensive flow that satisfies these limits.

Y.-T. S. Li, S. Malik, Performance analysis of embedded software using implicit path enumeration, DAC 1995.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from pykernel.errors import install_hint
from pykernel.gen.flow import flow_facts
from pykernel.gen.project import Project
from pykernel.language.ranges import Turns
from pykernel.targets.build import Image, data_file, has_module, model_files
from pykernel.targets.decode import COUNTED, EXACT, decoder
from pykernel.targets.flow import Graph, Instruction, Records, Unbounded, Way, annotate, read_records

Cost = Literal["instructions", "cycles"]
NOTHING = Records()
AROUND = 512
"""Number of bytes before and after a function that may belong to the same routine, because some routines in AVR's
library have several names.
"""


@dataclass(frozen=True)
class Bound:
    """The bound for a call of one function.

    instructions: None if no bound could be proved; then ``refused`` is the reason.
    cycles: None if no bound could be proved, or if the CPU's cycles cannot be derived from the executed instructions.
    estimated: whether the cycles are an estimate instead of a bound.
    """

    instructions: int | None
    cycles: int | None = None
    estimated: bool = False
    refused: str = ""


@dataclass(frozen=True)
class Routine:
    """Facts about a function in a compiler's library, found by reading the function's code.  Offsets count from the
    function's first byte.

    sha256: digest of the instructions that the function may execute (``digest``).
    limits: (places, times, place): the instructions at ``places`` together are executed at most ``times`` times for
    each execution of the instruction at ``place``, such as the routine's first instruction.
    jumps: dict that maps the offset of each indirect branch to its possible targets.
    linked: offsets of instructions that contain addresses chosen by the linker.
    """

    name: str
    sha256: str
    why: str
    limits: Sequence[tuple[Sequence[int], int, int]]
    jumps: Mapping[int, Sequence[int]]
    linked: Sequence[int]


@functools.cache
def known_routines() -> tuple[Routine, ...]:
    number = functools.partial(int, base=16)
    return tuple(
        Routine(
            row["name"],
            row["sha256"],
            row["why"],
            [([number(at) for at in row["places"]], row["most"], number(row["each"])) for row in row.get("limits", ())],
            {number(at): [number(to) for to in targets] for at, targets in row.get("jumps", {}).items()},
            [number(at) for at in row.get("linked", ())],
        )
        for row in tomllib.loads(data_file("routines/gcc.toml"))["routine"]
    )


class Code:
    """The instructions of an image, with facts about known library routines."""

    def __init__(self, image: Image, records: Records = NOTHING) -> None:
        self.image = image
        self.functions = sorted((f.start, f.size, name) for name, f in image.functions.items())
        self.riscv = image.target.arch == "riscv"
        starts = {start for start, _, _ in self.functions}
        self._decode = decoder(image.target.arch, image.target.name, self.read, self.place, starts, records)
        self._jumps: dict[int, list[int]] = {}
        self.limits: list[tuple[list[int], int, int]] = []  # as in ``Routine``, with addresses instead of offsets
        for start, size, name in self.functions:
            for routine in known_routines():
                if routine.name == name and digest(self, start, size, routine) == routine.sha256:
                    at = self.offsets(start, size)
                    self._jumps |= {at[jump]: [at[to] for to in targets] for jump, targets in routine.jumps.items()}
                    self.limits += [([at[p] for p in places], most, at[of]) for places, most, of in routine.limits]

    def read(self, address: int) -> bytes:
        for start, _, data in self.image.segments:
            if start <= address < start + len(data):
                return bytes(data[address - start : address - start + 4])
        raise Unbounded(f"there is no code at {address:#x}")

    def place(self, address: int) -> str:
        start, _, name = self.functions[max(0, bisect.bisect(self.functions, (address, 2**32)) - 1)]
        return f"{name} at {address - start:#x}"

    def decode(self, address: int, jumps: Mapping[int, Sequence[int]] | None = None) -> Instruction:
        jumps = self._jumps if jumps is None else jumps
        if address in jumps:
            ways = tuple(Way(to, branches=True) for to in jumps[address])
            return Instruction(address, 2, "a jump through a table", ways, cycles=2)
        found = self._decode(address)
        if found.limit is not None:
            self.limits.append(([address], *found.limit))
        return found

    def offsets(self, start: int, size: int) -> dict[int, int]:
        """Return a dictionary that maps offsets in a routine to addresses in this image.

        A RISC-V linker may shorten calls, which moves the instructions that follow.  Offsets refer to the routine as it
        was before the linker shortened the calls in it.
        """
        if not self.riscv:
            return {offset: start + offset for offset in range(-AROUND, size + AROUND)}
        found, address, shorter = dict[int, int](), start, 0
        while address < start + size:
            found[address - start + shorter] = address
            try:
                instruction = self._decode(address)
                calls, length = instruction.called is not None and instruction.text.startswith("jal "), instruction.size
            except Unbounded:
                calls, length = False, 2 if self.read(address)[0] & 3 != 3 else 4
            shorter += 8 - length if calls else 0
            address += length
        return found


def digest(code: Code, start: int, size: int, routine: Routine) -> str:
    """Return a digest of the instructions that a routine may execute, without its callees, or "" if not all of these
    instructions are known.
    """
    at = code.offsets(start, size)
    offset = {address: place for place, address in at.items()}
    seen, todo = dict[int, str](), [start]
    try:
        jumps = {at[jump]: [at[to] for to in targets] for jump, targets in routine.jumps.items()}
        while todo:
            address = todo.pop()
            if address in seen:
                continue
            found = code.decode(address, jumps)
            here = offset.get(address, address - start)
            ways = [way.to for way in found.ways if way.branches]
            text = found.text.split()[0] if ways else found.text
            if found.called is not None or here in routine.linked:
                text = "linked"
            seen[address] = f"{here:x} {text} {sorted({offset.get(to, to - start) for to in ways})}"
            todo += [way.to for way in found.ways]
    except (Unbounded, KeyError):
        return ""
    return hashlib.sha256("\n".join(text for _, text in sorted(seen.items())).encode()).hexdigest()


def call_bounds(project: Project, image: Image) -> dict[str, Bound]:
    """Return a dictionary that maps each public function's name, without the model's prefix, to its bound in this
    image.

    The self-test is left out: it has no inputs and a state of its own, so it always executes the same number of
    instructions.
    """
    name = project.spec.name
    files, others = model_files(project)
    names = [f.removeprefix(f"{name}_") for f in image.public if f != f"{name}_selftest"]
    theirs = (
        f"was compiled by {image.chain}"
        if image.chain != "gcc"
        else "is for another CPU"
        if image.target.arch == "wasm"
        else ""
    )
    if theirs or "-O3" in image.flags:
        why = f"pykernel proves bounds only for code that GCC compiled at -Os, or at -O2 or below; this code {theirs or 'was compiled at -O3'}"
        return dict.fromkeys(names, Bound(None, refused=why))
    if not (has_module("capstone") and has_module("scipy")):
        why = f"bounds need capstone and SciPy; install with: {install_hint('emulate')}"
        return dict.fromkeys(names, Bound(None, refused=why))
    twin = Image(
        image.target, image.chain, files, image.flags[0], image.flags[1:], others, annotate=annotate,
        flash=image.flash, ram=image.ram,
    )  # fmt: skip
    if twin.segments != image.segments:
        return dict.fromkeys(
            names,
            Bound(
                None,
                refused="with pykernel's records of loops and branches added, the compiler's assembly code no longer assembles to the bytes of the image",
            ),
        )
    records, facts = read_records(twin.elf), flow_facts(project.spec)
    code = Code(image, records)
    bounds = {}
    for short in names:
        start = image.functions[f"{name}_{short}"].start
        try:
            graph = Graph([start], code.decode, records)
            most = functools.partial(longest, graph, start, code, facts, short)
            cycles = most("cycles") if image.target.name in COUNTED else None
            bounds[short] = Bound(most("instructions"), cycles, cycles is not None and image.target.name not in EXACT)
        except Unbounded as error:
            bounds[short] = Bound(None, refused=str(error))
    return bounds


Terms = list[tuple[int, float]]
"""A weighted sum of the blocks' execution counts and of the additional unknowns (see ``_limits``), as pairs (index,
weight).
"""


def _sparse(entries: Sequence[tuple[int, int, float]], rows: int, columns: int) -> Any:
    """Return a sparse matrix made from triples (row, column, value).  Values at the same place are added."""
    from scipy.sparse import csr_array

    row, column, values = np.array(entries, float).reshape(-1, 3).T
    return csr_array((values, (row.astype(int), column.astype(int))), (rows, columns))


def _limits(graph: Graph, code: Code, facts: Turns, name: str) -> tuple[list[tuple[Terms, float]], int]:
    """Return the limits, as pairs (weighted sum, its upper limit), and the number of additional unknowns.

    The indices of the additional unknowns follow those of the blocks.  The runs of an outer loop are divided into
    cases, in which the inner loops have different maximum numbers of iterations.  Each additional unknown is the number
    of runs in a case.  The counts of any real call satisfy the limits: the runs in all cases add up to the outer loop's
    runs, and an inner loop has at most as many iterations as the cases of these runs allow.
    """
    marked: dict[str, Terms] = {}
    for i, block in enumerate(graph.blocks):
        for mark, times in block.marks.items():
            marked.setdefault(mark, []).append((i, float(times)))
    turning = {int(mark.split()[1]): terms for mark, terms in marked.items() if mark.startswith("turn")}
    limits: list[tuple[Terms, float]] = []
    unknowns = 0
    for outer, inside in facts.within.items():
        runs = [(i, -times) for i, times in marked.get(f"loop {outer}", ())]
        within = {inner: turns for inner, turns in inside.items() if inner in turning}
        count = max(map(len, within.values()), default=0)
        if count > 1:
            cases = range(len(graph.blocks) + unknowns, len(graph.blocks) + unknowns + count)
            unknowns += count
            limits.append(([*((case, 1.0) for case in cases), *runs], 0))
            limits += [
                ([*turning[inner], *((case, -float(most)) for case, most in zip(cases, turns, strict=True))], 0)
                for inner, turns in within.items()
            ]
        else:
            limits += [
                ([*turning[inner], *((i, turns * times) for i, times in runs)], 0) for inner, (turns,) in within.items()
            ]
    limits += [(turning[loop], turns) for loop, turns in facts.in_all.get(name, {}).items() if loop in turning]
    for places, turns, other in code.limits:
        if other in graph.block_at:
            there = [(graph.block_at[place], 1.0) for place in places if place in graph.block_at]
            limits.append(([*there, (graph.block_at[other], -float(turns))], 0))
    return limits, unknowns


def longest(graph: Graph, start: int, code: Code, facts: Turns, name: str, cost: Cost) -> int:
    """Return an upper bound on the cost of one call of the function at ``start``.

    name: the function's name in ``facts``.  Raises Unbounded if a loop has no limit, or if the solver fails.
    """
    from scipy.optimize import linprog
    from scipy.sparse.csgraph import connected_components

    blocks, (limits, more) = graph.blocks, _limits(graph, code, facts, name)
    edges = [(i, to, cycles) for i, block in enumerate(blocks) for to, cycles in block.ways]
    arriving = [(to, k, 1.0) for k, (_, to, _) in enumerate(edges) if to is not None]
    arriving += [
        (graph.entry[function], k, float(times))
        for k, (i, _, _) in enumerate(edges)
        for function, times in blocks[i].calls.items()
    ]
    # each edge has one unknown: the number of times that it is taken.  A block's count is the sum over its outgoing edges
    leaving = [(i, k, 1.0) for k, (i, _, _) in enumerate(edges)]
    unknowns = len(edges) + more
    flow = _sparse(leaving, len(blocks), unknowns) - _sparse(arriving, len(blocks), unknowns)
    leaving += [(len(blocks) + k, len(edges) + k, 1.0) for k in range(more)]
    executed = _sparse(leaving, len(blocks) + more, unknowns)
    rows = [(row, i, weight) for row, (terms, _) in enumerate(limits) for i, weight in terms]
    most, begun = [most for _, most in limits], np.zeros(len(blocks))
    begun[graph.entry[start]] = 1
    costs = np.zeros(unknowns)
    costs[: len(edges)] = [getattr(blocks[i], cost) + (cycles if cost == "cycles" else 0) for i, _, cycles in edges]
    solve = functools.partial(
        linprog, A_ub=_sparse(rows, len(limits), len(blocks) + more) @ executed, A_eq=flow, method="highs"
    )
    answer = solve(-costs, b_ub=most, b_eq=begun)
    if answer.status == 3:
        # status 3: the flow is unbounded, because a loop has no limit
        rounds = solve(
            np.where(np.arange(unknowns) < len(edges), -1.0, 0.0),
            b_ub=np.zeros(len(limits)),
            b_eq=np.zeros(len(blocks)),
            bounds=(0, 1),
        )
        if rounds.x is None:
            raise Unbounded(f"a loop without a known limit; the solver failed to locate it: {rounds.message}")
        taken = [(i, to) for (i, to, _), x in zip(edges, rounds.x, strict=False) if x > 1e-6 and to is not None]
        within = connected_components(
            _sparse([(*edge, 1.0) for edge in taken], len(blocks), len(blocks)), connection="strong"
        )[1]
        first = min(i for i, to in taken if within[i] == within[to])  # an edge of the loop itself, not of its callees
        raise Unbounded(f"a loop without a known limit in {code.place(blocks[first].address)}")
    if answer.status != 0:
        raise Unbounded(f"the linear program was not solved: {answer.message}")
    # the margin covers the error of the solver, whose tolerance is 1e-7
    return math.floor(-answer.fun * (1 + 1e-7) + 0.01)
