"""Prove that no integer leaves the range of its type, by interval analysis of one model's functions with the model's
tables and sizes.

A field's declared range (``between``) is an invariant: the range is assumed where the field is read, and proved where
the field is written.  All iterations (turns) of a loop are analysed together: the arrays that hold the intervals get
one more axis, with one element for each iteration.  Each iteration then uses its own row of a table, and a sum is
bounded by the sum of its terms' bounds.  If a loop has too many iterations for one element each, the bound of a sum is
the number of iterations times the largest term.

From the same intervals, ``most_turns`` finds the largest number of iterations of each loop.  If an argument bounds
loops of a function, each value of the argument is analysed separately, because a value that gives one loop many
iterations may give another loop few.

P. Cousot, R. Cousot, Abstract interpretation, POPL 1977.
"""

from __future__ import annotations

import functools
import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from pykernel.dialect import INDEX_MAX, Array, Bool, Extent, Index, Precision, Real, Scalar, Struct, Word, ends_of
from pykernel.language.effects import Effects, effects, root
from pykernel.language.ir import (
    Assign,
    Binary,
    Call,
    Choice,
    DialectError,
    Do,
    Element,
    Expr,
    Field,
    For,
    Function,
    Functions,
    If,
    Leave,
    Length,
    Literal,
    Local,
    Member,
    Named,
    Parameter,
    Return,
    Row,
    Statement,
    ToReal,
    Unary,
    walk,
)
from pykernel.language.widths import Widths

LANES = 2**21
"""Each iteration gets its own element in the analysis if nested loops have at most this many iterations in total.
"""
UNKNOWN = 2**30
"""A number of iterations is treated as unknown if it is at least this large."""
ROUNDS = 4
"""Number of passes over a loop's body in which the range of a variable that one iteration hands to the next may grow.
If the range still grows after these passes, it becomes the range of the variable's type.
"""
PIECES = 2**11
"""Maximum number of parts into which the ranges of a call's arguments are divided.  The parts are analysed
separately.
"""
CASES = 2**7
"""Maximum number of cases (see ``Turns``) that are kept for a loop and the loops in it.  If there are more cases, their
numbers of iterations are rounded up until enough cases coincide.
"""
INT32 = (-INDEX_MAX - 1, INDEX_MAX)
INT16 = (-(2**15), 2**15 - 1)
"""The range of a 16-bit ``int``, in which C may compute with constants."""
WORD = (0, 2**32 - 1)
OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Interval:
    """The range of a value, both ends included, for each iteration of the enclosing loops.  A range is empty if low >
    high.
    """

    low: np.ndarray
    high: np.ndarray

    def joined(self, other: Interval) -> Interval:
        return Interval(np.minimum(self.low, other.low), np.maximum(self.high, other.high))

    def met(self, other: Interval) -> Interval:
        return Interval(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    def within(self, other: Interval) -> bool:
        return bool((self.low >= other.low).all() and (self.high <= other.high).all())

    def deeper(self) -> Interval:
        """Return the same range, with one more axis for a further inner loop."""
        return Interval(self.low[..., None], self.high[..., None])

    def over(self, mask: np.ndarray) -> Interval:
        """Return the union over those iterations of the innermost loop that the mask selects, or an empty range if the
        mask selects none.
        """
        low, high, mask = np.broadcast_arrays(self.low, self.high, mask)
        return Interval(
            np.where(mask, low, NONE.low).min(-1, initial=2**62),
            np.where(mask, high, NONE.high).max(-1, initial=-(2**62)),
        )

    def where(self, mask: np.ndarray, other: Interval) -> Interval:
        return Interval(np.where(mask, self.low, other.low), np.where(mask, self.high, other.high))

    @property
    def exact(self) -> bool:
        return bool((self.low == self.high).all())

    @property
    def empty(self) -> np.ndarray:
        return np.asarray(self.low > self.high)


def interval(low: Any, high: Any = None) -> Interval:
    return Interval(np.asarray(low, np.int64), np.asarray(low if high is None else high, np.int64))


NONE = Interval(np.array(2**62, np.int64), np.array(-(2**62), np.int64))
"""The empty interval."""


@dataclass(frozen=True)
class Place:
    """The array to which an expression refers: a field, a table, or an argument of a public function.

    before: the ranges of the indices that are already fixed, along the first axes; a row fixes one index.
    """

    kind: Array
    shape: tuple[int | None, ...]
    before: tuple[Interval, ...] = ()
    depth: int = 0  # number of loops around the code that fixed the indices
    table: np.ndarray | None = None
    struct: type[Struct] | None = None
    name: str = ""


@dataclass
class State:
    """The ranges that are known at one point of the code.

    alive: for each iteration, whether the point can be reached.  locals: name -> range.  elements: text, such as
    ``s.v[i]`` -> range.
    """

    alive: np.ndarray
    locals: dict[str, Interval] = field(default_factory=dict)
    elements: dict[str, Interval] = field(default_factory=dict)

    def copy(self) -> State:
        return State(self.alive, dict(self.locals), dict(self.elements))

    def joined(self, other: State) -> State:
        """Return the state where two control paths meet."""

        def both(a: dict[str, Interval], b: dict[str, Interval]) -> dict[str, Interval]:
            # a path that cannot be reached adds nothing to a range
            return {
                name: a[name].where(~other.alive, b[name].where(~self.alive, a[name].joined(b[name])))
                for name in a
                if name in b
            }

        return State(self.alive | other.alive, both(self.locals, other.locals), both(self.elements, other.elements))


def prove(
    functions: Functions,
    roots: Sequence[str],
    structs: Sequence[type[Struct]],
    config: Any,
    capacities: Mapping[str, int],
    precision: Precision,
) -> dict[str, tuple[int, int]]:
    """Prove that no sum, product, index or element in one model's functions leaves its type or its declared range.

    Returns the range of the result for each root that returns an integer.  If the proof fails for an expression, raises
    DialectError with the file, the line and the range that was found.
    """
    prover = _Prover(functions, config, capacities, precision)
    for struct in structs:
        for name in struct.ranges:
            low, high = prover.declared(struct, name)
            if not low <= 0 <= high:
                raise TypeError(
                    f"{struct.__name__}.{name} is 0 at first, but its declared range is from {low} to {high}"
                )
    results = {}
    for name in roots:
        result = prover.public(functions[name]).result
        if result is not None:
            results[name] = (int(result.low.min()), int(result.high.max()))
    return results


@dataclass(frozen=True)
class Turns:
    """The largest numbers of iterations of loops.  A loop is identified by the ``id`` of its node.

    within: outer loop -> loop (an inner loop, or the outer loop itself) -> bounds on the loop's iterations in one complete
    run of the outer loop, one bound for each of several cases.  At least one of the cases applies to each run: its bounds
    hold for all loops.
    in_all: root -> loop -> largest number of iterations in one call of the root.
    Loops for which no bound was found are missing.
    """

    within: dict[int, dict[int, tuple[int, ...]]]
    in_all: dict[str, dict[int, int]]


def most_turns(
    functions: Functions, roots: Sequence[str], config: Any, capacities: Mapping[str, int], precision: Precision
) -> Turns:
    """Return the largest numbers of iterations of the loops in one model's functions.

    Declared ranges are assumed to hold; ``prove`` proves those of integers.
    """
    prover = _Prover(functions, config, capacities, precision, refuses=False)
    in_all = {}
    for name in roots:
        turned = prover.public(functions[name]).turned
        in_all[name] = {loop: int(turns) for loop, turns in turned.items() if turns < UNKNOWN}
    # a loop that is never reached, or has no iterations, is listed with 0, because it may still be in the machine code
    loops = [n for f in functions.values() for n in walk(f.body) if isinstance(n, For)]
    within: dict[int, dict[int, tuple[int, ...]]] = {
        id(loop): {id(n): (0,) for n in walk(loop) if isinstance(n, For)} for loop in loops
    }
    for outer, (inside, cases) in prover.cases.items():
        known = cases.max(0) < UNKNOWN
        columns = zip(np.array(inside)[known], _fewer(cases[:, known]).T, strict=True)
        within[outer] = {int(loop): tuple(map(int, turns)) for loop, turns in columns}
    return Turns(within, in_all)


def _fewer(cases: np.ndarray) -> np.ndarray:
    """Return at most CASES cases (rows) that bound the given cases: for each given case, all numbers of some returned
    case are at least as large.
    """
    most = cases.max(0)
    for parts in (UNKNOWN, 64, 16, 4):
        unit = -(-most // parts) + (most == 0)
        left, kept = np.minimum(-(-cases // unit) * unit, most), list[np.ndarray]()
        while len(left) and len(kept) < CASES:
            kept.append(left[left.sum(1).argmax()])
            left = left[(left > kept[-1]).any(1)]
        if not len(left):
            return np.array(kept)
    return most[None]


class _Prover:
    def __init__(
        self,
        functions: Functions,
        config: Any,
        capacities: Mapping[str, int],
        precision: Precision,
        refuses: bool = True,
    ) -> None:
        self.functions, self.config, self.capacities, self.precision = functions, config, capacities, precision
        self.known: dict[str, Effects] = effects(functions)
        self.widths = Widths(capacities, config)
        self.refuses = refuses
        self.exploring = 0  # above 0 while a loop's body is analysed without refusing anything
        # outer loop -> the loops in it, and their iterations (columns) in each case (row)
        self.cases: dict[int, tuple[list[int], np.ndarray]] = {}

    def declared(self, struct: type[Struct], name: str) -> tuple[int, int]:
        """Return the range that a field declares, or the range of its type if the field declares none."""
        limits = np.iinfo(struct.fields[name].scalar.dtype(self.precision))
        if name not in struct.ranges:
            return int(limits.min), int(limits.max)
        low, high = ends_of(struct.ranges[name], self.capacities, self.config, self.precision)
        return max(low, int(limits.min)), min(high, int(limits.max))

    def size(self, extent: Any) -> int | None:
        if extent is ...:
            return None
        return extent.value(self.capacities) if isinstance(extent, Extent) else int(extent)

    def public(self, f: Function) -> _Frame:
        """Analyse a function for all possible values of its arguments."""
        given: list[Any] = []
        for name, kind in f.params:
            if isinstance(kind, Array):
                given.append(Place(kind, tuple(map(self.size, kind.extents)), name=name))
            elif kind is Real:
                given.append(None)
            else:
                given.append(interval(*_type_range(kind)))
        return _Frame(self, f, given, np.array(True))


def _type_range(kind: Any) -> tuple[int, int]:
    return {Index: INT32, Word: WORD, Bool: (0, 1)}[kind]


class _Frame:
    """The analysis of one call of a function."""

    def __init__(self, prover: _Prover, f: Function, arguments: list[Any], alive: np.ndarray) -> None:
        self.prover, self.f = prover, f
        self.places: dict[str, Place] = {}
        self.result: Interval | None = None
        # sums that start at 0 in the current pass, so that their range at the end is their change in one iteration
        self.relative: set[str] = set()
        self.left: list[State] = []  # the state at each break and continue in the innermost loop
        # loop -> its largest number of iterations, for each iteration of the enclosing loops
        self.turned: dict[int, np.ndarray] = {}
        self.depth = np.ndim(alive)
        state = State(alive)
        for (name, _), value in zip(f.params, arguments, strict=True):
            if isinstance(value, Place):
                self.places[name] = value
            elif value is not None:
                state.locals[name] = value
        self.block(f.body, state)

    # ------------------------------------------------------------------------------------------ what is refused

    def need(self, state: State, line: int, value: Interval, low: Any, high: Any, what: str, remedy: str) -> Interval:
        """Return the value's range, limited to low ... high.  Refuses the line if the value may be outside low ... high."""
        if not self.prover.refuses or self.prover.exploring:
            return value.met(interval(low, high))
        wrong = state.alive & ~value.empty & ((value.low < low) | (value.high > high))
        if wrong.any():
            least, most = (np.broadcast_to(end, wrong.shape)[wrong] for end in (value.low, value.high))
            message = f"{what} is from {least.min()} to {most.max()} here; {remedy}"
            text = linecache.getline(str(self.f.file), line).strip()
            raise DialectError(self.f.file, line, f"{message}, in: {text}" if text else message)
        return value.met(interval(low, high))

    def int32(self, state: State, line: int, value: Interval, what: str) -> Interval:
        return self.need(state, line, value, *INT32, what, "int32 cannot hold this: scale or clip first")

    def computed(self, state: State, node: Expr, value: Interval, what: str) -> Interval:
        """Return the range of a result.  Refuses the line if the result may not fit into the type in which C computes it."""
        if self.prover.widths.in_int(node) is not None:
            return self.need(state, node.line, value, *INT16, what, "an int of 16 bits cannot hold this")
        return self.int32(state, node.line, value, what)

    # --------------------------------------------------------------------------------------------- statements

    def block(self, body: tuple[Statement, ...], state: State) -> State:
        for i, statement in enumerate(body):
            if not state.alive.any():
                break
            if isinstance(statement, If) and not statement.orelse and isinstance(statement.body[-1], (Return, Leave)):
                # treat the remaining statements as the other branch, so that a loop is counted in only one of the two
                return self.do_If(replace(statement, orelse=body[i + 1 :]), state)
            state = getattr(self, f"do_{type(statement).__name__}")(statement, state)
        return state

    def do_Assign(self, node: Assign, state: State) -> State:
        target, value = node.target, node.value
        if isinstance(target, Local):
            for key in [key for key in state.elements if _mentions(key, target.name)]:
                del state.elements[key]
        if target.kind is Real:
            self.real(value, state)
            self.real(target, state)
            return state
        if isinstance(target, Local) and target.name in self.relative:
            op, term = _term(node)
            change = self.value(term, state)
            old = state.locals[target.name]
            state.locals[target.name] = (
                Interval(old.low + change.low, old.high + change.high)
                if op == "+"
                else Interval(old.low - change.high, old.high - change.low)
            )
            return state
        if node.op:
            value = Binary(node.line, target.kind, node.op, target, value)
        assigned = self.value(value, state)
        if isinstance(target, Local):
            state.locals[target.name] = assigned
            return state
        place = self.place(target.array, state)
        self.positions(target, place, state)
        scalar = place.kind.scalar
        name = f"an element of {place.name}" if place.name else "an element"
        if place.struct is not None:
            low, high = self.prover.declared(place.struct, place.name)
            if (low, high) != WORD:
                assigned = self.need(
                    state,
                    node.line,
                    assigned,
                    low,
                    high,
                    name,
                    f"its declared range is {low} to {high}: clip it, or refuse the sample",
                )
        elif scalar.stored and scalar is not Word:
            limits = np.iinfo(scalar.dtype(self.prover.precision))
            assigned = self.need(
                state, node.line, assigned, limits.min, limits.max, name, f"{scalar} cannot hold this: clip it"
            )
        self.forget(state, {place.name} if place.struct is not None else None)
        if (text := self.key(target)) is not None:
            state.elements[text] = assigned
        return state

    def forget(self, state: State, fields: set[str] | None) -> None:
        """Forget the ranges of elements that may have been written: the elements of these fields (None: of all fields), and
        of all arguments.
        """
        for key in list(state.elements):
            owner = key.split("[")[0]
            if fields is None or owner.removeprefix("s.") in fields or not owner.startswith("s."):
                del state.elements[key]

    def do_Do(self, node: Do, state: State) -> State:
        self.value(node.call, state)
        return state

    def do_Return(self, node: Return, state: State) -> State:
        if node.value is not None and node.value.kind is not Real:
            found = self.value(node.value, state).where(state.alive, NONE)
            # join the results of all iterations of the loops around the return, because the caller gets only one result
            while found.low.ndim > self.depth:
                found = found.over(np.array(True))
            self.result = found if self.result is None else self.result.joined(found)
        elif node.value is not None:
            self.real(node.value, state)
        state.alive = np.zeros_like(state.alive)
        return state

    def do_Leave(self, node: Leave, state: State) -> State:
        self.left.append(state.copy())
        state.alive = np.zeros_like(state.alive)
        return state

    def do_If(self, node: If, state: State) -> State:
        ways, turned = [], []
        for body, truth in ((node.body, True), (node.orelse, False)):
            kept, self.turned = self.turned, {}
            ways.append(self.block(body, self.assume(node.condition, truth, state.copy())))
            self.turned, way = kept, self.turned
            turned.append(way)
        none, (yes, no) = np.array(0), turned
        _add(self.turned, {loop: np.maximum(yes.get(loop, none), no.get(loop, none)) for loop in yes | no})
        yes_ends, no_ends = ways
        if not yes_ends.alive.any():
            return no_ends
        return yes_ends.joined(no_ends)

    # ---- loops

    def do_For(self, node: For, state: State) -> State:
        start, stop = self.value(node.start, state), self.value(node.stop, state)
        reached = np.broadcast_to(state.alive, np.broadcast_shapes(state.alive.shape, start.low.shape, stop.low.shape))
        # the largest number of iterations is the one from the earliest start to the latest stop
        far = stop.high - start.low if node.step > 0 else start.high - stop.low
        own = np.where(reached, np.maximum(-(-far // abs(node.step)), 0), 0)
        if not own.any():
            return state
        outer = state.copy()
        self.forget(outer, self.written(node.body))
        carried = [name for name in _assigned(node.body) if name in outer.locals]
        if not (self.prover.refuses or carried or any(map(_matters, walk(node.body)))):
            self.count(node, own, {})  # the rest of the analysis does not depend on what the body changes
            return outer
        lanes = _lanes_of(node, start, stop, reached, own)
        inner = State(
            outer.alive[..., None] & lanes.may,
            {name: value.deeper() for name, value in outer.locals.items()} | {node.variable: lanes.variable},
            {key: value.deeper() for key, value in outer.elements.items()},
        )
        for key in [key for key in outer.elements if any(_mentions(key, name) for name in carried)]:
            del inner.elements[key], outer.elements[key]
        sums = [name for name in carried if _is_sum(name, node.body)]
        others = [name for name in carried if name not in sums]
        self.widen(node.body, inner, others, sums)
        after = self.sum_up(node.body, inner, outer, sums, lanes)
        end = self.prove_turns(node, inner, own, lanes)
        for name in others:
            if name in end.locals:
                after[name] = outer.locals[name].joined(end.locals[name].over(end.alive))
        outer.locals |= after
        return outer

    def widen(self, body: tuple[Statement, ...], inner: State, others: list[str], sums: list[str]) -> None:
        """Widen the ranges of the variables that one iteration hands to the next, until they no longer grow."""
        for turn in range(ROUNDS + 2):
            before = {name: inner.locals[name] for name in others}
            ends = self.explore(body, inner, sums)
            for name in others:
                handed = ends.locals[name].over(ends.alive).deeper() if name in ends.locals else NONE
                wider = before[name].joined(handed)
                if not wider.within(before[name]) and turn == ROUNDS:
                    wider = interval(*_type_range(_kind_of(name, body))).deeper()
                inner.locals[name] = wider
            if all(inner.locals[name].within(before[name]) for name in others):
                break

    def sum_up(
        self, body: tuple[Statement, ...], inner: State, outer: State, sums: list[str], lanes: Lanes
    ) -> dict[str, Interval]:
        """Find the range of each sum from the term that one iteration adds.

        The ranges in each iteration are stored in ``inner``, and the ranges after the loop are returned.  Sums are treated
        one after another, because a sum's term may depend on an earlier sum, such as a position in an array.
        """
        jumps = any(isinstance(n, (Leave, Return)) for n in walk(body))
        sure = lanes.must & outer.alive[..., None] & (not jumps)
        after: dict[str, Interval] = {}
        for i, name in enumerate(sums):
            changes = self.explore(body, inner, sums[i:])
            change = changes.locals[name].where(changes.alive, interval(0))
            low, high = np.broadcast_arrays(change.low, change.high, inner.alive)[:2]
            low, high = np.where(sure, low, np.minimum(low, 0)), np.where(sure, high, np.maximum(high, 0))
            begin = outer.locals[name].deeper()
            if lanes.in_one > 1:
                low, high = np.minimum(low, 0) * lanes.in_one, np.maximum(high, 0) * lanes.in_one
                each = Interval(begin.low + low, begin.high + high)
                after[name] = each.over(np.array(True))
            else:
                each = Interval(begin.low + np.cumsum(low, -1) - low, begin.high + np.cumsum(high, -1) - high)
                after[name] = Interval(each.low[..., -1] + low[..., -1], each.high[..., -1] + high[..., -1])
                if jumps:
                    after[name] = after[name].joined(each.over(np.array(True)))
            inner.locals[name] = each
            if name not in self.relative:
                limits = interval(*_type_range(_kind_of(name, body)))
                inner.locals[name], after[name] = _wrapped(each, limits), _wrapped(after[name], limits)
        return after

    def prove_turns(self, node: For, inner: State, own: np.ndarray, lanes: Lanes) -> State:
        """Analyse all iterations, refuse lines that cannot be proved, and count the iterations of the inner loops."""
        around, self.turned = self.turned, {}
        end = self.ways(node.body, inner.copy())
        inside = dict[int, np.ndarray]()
        for loop, more in self.turned.items():
            counted = np.where(inner.alive, more, 0)
            each = np.stack([counted[..., at :: lanes.apart].sum(-1) for at in range(lanes.apart)]).max(0)
            inside[loop] = np.minimum(each, UNKNOWN) * (np.minimum(own, UNKNOWN) if lanes.in_one > 1 else 1)
        self.turned = around
        self.count(node, own, inside)
        return end

    def count(self, node: For, own: np.ndarray, inside: dict[int, np.ndarray]) -> None:
        """Record how many iterations a loop and its inner loops have in one run, for each iteration of the enclosing loops."""
        if self.prover.exploring:
            return
        turned = {loop: np.minimum(turns, UNKNOWN) for loop, turns in ({id(node): own} | inside).items()}
        _add(self.turned, turned)
        # each element of the arrays stands for one run: for one iteration of the enclosing loops and one value of each
        # argument.  The numbers of all loops in this element make one case.  Loops in a callee are left out, because
        # other callers may run them as well
        loops = [id(n) for n in (node, *walk(node.body)) if isinstance(n, For)]
        rows = np.stack(np.broadcast_arrays(*(turned.get(loop, np.array(0)) for loop in loops)), -1)
        _, known = self.prover.cases.get(id(node), (loops, np.zeros((0, len(loops)), np.int64)))
        self.prover.cases[id(node)] = loops, _fewer(np.concatenate([known, rows.reshape(-1, len(loops))]))

    def explore(self, body: tuple[Statement, ...], inner: State, sums: list[str]) -> State:
        """Return the state at the end of a loop's body, without refusing anything.  In this state, the range of each
        sum is the range of the term that one iteration adds.
        """
        state = inner.copy()
        state.locals |= {name: interval(np.zeros((1,) * inner.alive.ndim)) for name in sums}
        result, relative = self.result, set(self.relative)
        self.relative |= set(sums)
        self.prover.exploring += 1
        end = self.ways(body, state)
        self.prover.exploring -= 1
        self.result, self.relative = result, relative
        return end

    def ways(self, body: tuple[Statement, ...], state: State) -> State:
        """Return the state at the end of a loop's body, joined over all paths that reach it."""
        kept, self.left = self.left, []
        end = functools.reduce(State.joined, self.left, self.block(body, state))
        self.left = kept
        return end

    def written(self, body: tuple[Statement, ...]) -> set[str]:
        """Return the fields that a loop's body writes, directly or through callees."""
        fields, arrays = set[str](), list[Expr]()
        for node in walk(body):
            if isinstance(node, Assign) and isinstance(node.target, Element):
                arrays.append(node.target.array)
            elif isinstance(node, Call) and node.callee.name in self.prover.known:
                below = self.prover.known[node.callee.name]
                fields |= below.fields
                arrays += [argument for argument in node.args if below.params and isinstance(argument.kind, Array)]
        names = {target.name for array in arrays if (target := root(array)) is not None}
        return fields | {self.places[name].name if name in self.places else name for name in names}

    # ------------------------------------------------------------------------------------------- conditions

    def assume(self, condition: Expr, truth: bool, state: State) -> State:
        """Return the state under the assumption that a condition is true, or that it is false."""
        if isinstance(condition, Unary) and condition.op == "not":
            return self.assume(condition.operand, not truth, state)
        if isinstance(condition, Binary) and condition.op in ("and", "or"):
            if (condition.op == "and") == truth:
                return self.assume(condition.right, truth, self.assume(condition.left, truth, state))
            one = self.assume(condition.left, truth, state.copy())
            return one.joined(self.assume(condition.right, truth, self.assume(condition.left, not truth, state)))
        if isinstance(condition, Binary) and condition.op in OPPOSITE and condition.left.kind is not Real:
            op = condition.op if truth else OPPOSITE[condition.op]
            left, right = self.value(condition.left, state), self.value(condition.right, state)
            for side, mine, other, how in (
                (condition.left, left, right, op),
                (condition.right, right, left, MIRRORED[op]),
            ):
                narrowed = _narrowed(mine, other, how)
                state.alive = state.alive & ~narrowed.empty
                if isinstance(side, Local) and side.name in state.locals and side.name not in self.relative:
                    state.locals[side.name] = narrowed
                elif isinstance(side, Element) and (key := self.key(side)) is not None:
                    state.elements[key] = narrowed
            return state
        outcome = self.value(condition, state)
        state.alive = state.alive & ((outcome.high > 0) if truth else (outcome.low < 1))
        return state

    # ------------------------------------------------------------------------------------------- expressions

    def real(self, node: Expr, state: State) -> None:
        """Analyse the integers inside a Real expression, and the kernels that the expression calls."""
        if isinstance(node, Element):
            for position in node.indices:
                self.value(position, state)
        elif isinstance(node, Call):
            if node.callee.intrinsic is None:
                self.of_Call(node, state)
            else:
                self.reals(node.args, state)
        elif isinstance(node, Choice):
            self.real(node.yes, self.assume(node.condition, True, state.copy()))
            self.real(node.no, self.assume(node.condition, False, state.copy()))
        elif isinstance(node, (Unary, ToReal)):
            self.reals((node.operand,), state)
        elif isinstance(node, Binary):
            self.reals((node.left, node.right), state)

    def reals(self, nodes: Sequence[Expr], state: State) -> None:
        """Analyse the integers inside several expressions."""
        for node in nodes:
            if node.kind is Real:
                self.real(node, state)
            elif not isinstance(node.kind, Array):
                self.value(node, state)

    def value(self, node: Expr, state: State) -> Interval:
        return getattr(self, f"of_{type(node).__name__}")(node, state)  # type: ignore[no-any-return]

    def of_Literal(self, node: Literal | Member, state: State) -> Interval:
        return interval(int(node.value))

    of_Member = of_Literal

    def of_Parameter(self, node: Parameter, state: State) -> Interval:
        return interval(int(getattr(self.prover.config, node.name)))

    def of_Length(self, node: Length, state: State) -> Interval:
        if node.table is not None:
            return interval(len(node.table.constant.value(self.prover.precision)))
        return interval(self.prover.size(node.extent))

    def of_Local(self, node: Local, state: State) -> Interval:
        if node.name in self.relative or node.name not in state.locals:
            return interval(*_type_range(node.kind))
        return state.locals[node.name]

    def of_Unary(self, node: Unary, state: State) -> Interval:
        operand = self.value(node.operand, state)
        if node.op == "not":
            return Interval(1 - operand.high, 1 - operand.low)
        return self.computed(state, node, Interval(-operand.high, -operand.low), "the negative")

    def of_Choice(self, node: Choice, state: State) -> Interval:
        yes = self.assume(node.condition, True, state.copy())
        no = self.assume(node.condition, False, state.copy())
        first, second = self.value(node.yes, yes), self.value(node.no, no)
        return first.where(~no.alive, second.where(~yes.alive, first.joined(second)))

    def of_Binary(self, node: Binary, state: State) -> Interval:
        if node.op in ("and", "or"):
            left = self.value(node.left, state)
            right = self.value(node.right, self.assume(node.left, node.op == "and", state.copy()))
            join = np.minimum if node.op == "and" else np.maximum
            return Interval(join(left.low, right.low), join(left.high, right.high))
        if node.left.kind is Real:
            self.real(node, state)
            return interval(0, 1)
        left, right = self.value(node.left, state), self.value(node.right, state)
        if node.kind is Bool:
            holds, fails = (_narrowed(left, right, op).empty for op in (node.op, OPPOSITE[node.op]))
            return Interval(np.where(fails, 1, 0), np.where(holds, 0, 1))
        found = self.arithmetic(node, left, right, state)
        if node.kind is Word:
            # the result wraps if it leaves the type, and may then be any number of the type
            return _wrapped(found, interval(*WORD))
        names = {"+": "this sum", "-": "this difference", "*": "this product"}
        return self.computed(state, node, found, names.get(node.op, "this result"))

    def arithmetic(self, node: Binary, left: Interval, right: Interval, state: State) -> Interval:
        if node.op == "+":
            return Interval(left.low + right.low, left.high + right.high)
        if node.op == "-":
            return Interval(left.low - right.high, left.high - right.low)
        if node.op == "*":
            return _product(left, right)
        if node.op == "&":
            # the bitwise AND is not larger than either operand
            high = np.minimum(left.high, right.high)
            mask = right.low & (right.low + 1) == 0  # 2^k - 1
            whole = right.exact & mask & (left.high <= right.low)
            return Interval(np.where(whole, left.low, 0), high)
        if node.op in ("<<", ">>"):
            self.need(state, node.line, right, 0, 31, "this shift", "a shift must be from 0 to 31")
            right = right.met(interval(0, 31))
            if node.op == "<<":
                return Interval(left.low << np.clip(right.low, 0, 31), left.high << np.clip(right.high, 0, 31))
            return Interval(left.low >> np.clip(right.high, 0, 31), left.high >> np.clip(right.low, 0, 31))
        left, right = self.divided(node.line, left, right, state)
        if node.op == "//":
            return Interval(left.low // right.high, left.high // right.low)
        small = left.high < right.low  # if left < right, the remainder is the left side itself
        return Interval(np.where(small, left.low, 0), np.where(small, left.high, np.minimum(left.high, right.high - 1)))

    def divided(self, line: int, left: Interval, right: Interval, state: State) -> tuple[Interval, Interval]:
        left = self.need(state, line, left, 0, INDEX_MAX, "the dividend", "it must not be negative")
        right = self.need(state, line, right, 1, INDEX_MAX, "the divisor", "it must be above zero")
        return left, Interval(np.maximum(right.low, 1), np.maximum(right.high, 1))

    def of_Call(self, node: Call, state: State) -> Interval:
        if node.callee.intrinsic is not None:
            if any(argument.kind is Real for argument in node.args):
                self.reals(node.args, state)
                return interval(*_type_range(node.kind))
            arguments = [self.value(argument, state) for argument in node.args]
            return getattr(self, f"call_{node.callee.name}")(node, state, *arguments)  # type: ignore[no-any-return]
        f = self.prover.functions[node.callee.name]
        values: list[Any] = []
        for argument, (_, kind) in zip(node.args, f.params, strict=True):
            if isinstance(kind, Array):
                values.append(self.place(argument, state))
            elif kind is Real:
                self.real(argument, state)
                values.append(None)
            else:
                values.append(self.value(argument, state))
        shape = np.broadcast_shapes(state.alive.shape, *(v.low.shape for v in values if isinstance(v, Interval)))
        result, written = None, set(self.prover.known[f.name].fields)
        if not self.prover.exploring or f.returns not in (
            Real,
            None,
        ):  # otherwise, the analysis needs only the fields that f writes
            alive, parted = np.broadcast_to(state.alive, shape), False
            if not (self.prover.refuses or self.prover.exploring):
                values, alive, parted = _parted(f, values, alive)
            frame = _Frame(self.prover, f, values, alive)
            result, turned = frame.result, frame.turned
            if parted:
                # in one call, each argument has one value, so one element of the last axis describes the call
                result = None if result is None else result.over(np.array(True))
                turned = {loop: turns.max(-1) for loop, turns in turned.items()}
            _add(self.turned, turned)
        for argument, (param, _) in zip(values, f.params, strict=True):
            if isinstance(argument, Place) and param in self.prover.known[f.name].params:
                written.add(argument.name)
        if written:
            self.forget(state, written)
        return result if result is not None else interval(0)

    # ---- intrinsics

    def call_word(self, node: Call, state: State, a: Interval) -> Interval:
        return interval(*WORD).where(a.low < 0, a)

    def call_index(self, node: Call, state: State, w: Interval) -> Interval:
        return self.int32(state, node.line, w, "this Word")

    def call_as_signed(self, node: Call, state: State, w: Interval) -> Interval:
        low, high = ((end ^ 2**31) - 2**31 for end in (w.low, w.high))
        return interval(*INT32).where((w.low < 2**31) & (w.high >= 2**31), Interval(low, high))

    def call_quotient(self, node: Call, state: State, a: Interval, b: Interval) -> Interval:
        a, b = self.divided(node.line, a, b, state)
        return Interval(a.low // b.high, a.high // b.low)

    def call_exact_square(self, node: Call, state: State, e: Interval) -> Interval:
        most = np.maximum(np.abs(e.low), np.abs(e.high))
        least = np.where((e.low <= 0) & (e.high >= 0), 0, np.minimum(np.abs(e.low), np.abs(e.high)))
        return interval(*WORD).where(most > 65535, Interval(least * least, np.minimum(most, 65535) ** 2))

    def call_floor_shift(self, node: Call, state: State, a: Interval, k: Interval) -> Interval:
        k = self.need(state, node.line, k, 0, 31, "this shift", "a shift must be from 0 to 31")
        low, high = np.clip(k.low, 0, 31), np.clip(k.high, 0, 31)
        return Interval(np.minimum(a.low >> low, a.low >> high), np.maximum(a.high >> low, a.high >> high))

    def call_multiply_high(self, node: Call, state: State, a: Interval, k: Interval) -> Interval:
        k = self.need(state, node.line, k, 0, 65535, "the factor", "it must be from 0 to 65535")
        found = _product(a, k)
        return Interval(found.low >> 16, found.high >> 16)

    # ---- arrays

    def place(self, node: Expr, state: State) -> Place:
        """Return the array to which an expression refers."""
        if isinstance(node, Local):
            return self.places[node.name]
        if isinstance(node, Field):
            shape = tuple(map(self.prover.size, node.kind.extents))
            return Place(node.kind, shape, struct=node.struct, name=node.name)
        if isinstance(node, Parameter):
            table = np.asarray(getattr(self.prover.config, node.name))
            return Place(node.kind, table.shape, table=table, name=node.name)
        if isinstance(node, Named):
            table = np.asarray(node.constant.value(self.prover.precision))
            return Place(node.kind, table.shape, table=table, name=node.name)
        if isinstance(node, Row):
            whole = self.place(node.array, state)
            at = self.position(node.index, whole.shape[len(whole.before)], state)
            return replace(whole, before=(*self.before(whole, state), at), depth=state.alive.ndim)
        raise TypeError(type(node).__name__)

    def position(self, node: Expr, size: int | None, state: State) -> Interval:
        at = self.value(node, state)
        last = INDEX_MAX if size is None else size - 1
        return self.need(state, node.line, at, 0, last, "this position", f"the last one is {last}")

    def positions(self, node: Element, place: Place, state: State) -> tuple[Interval, ...]:
        sizes = place.shape[len(place.before) :]
        own = tuple(self.position(index, size, state) for index, size in zip(node.indices, sizes, strict=True))
        return (*self.before(place, state), *own)

    def before(self, place: Place, state: State) -> tuple[Interval, ...]:
        """Return the ranges of the indices that are already fixed, with one axis for each loop around the current code."""
        found = place.before
        for _ in range(state.alive.ndim - place.depth):
            found = tuple(at.deeper() for at in found)
        return found

    def of_Element(self, node: Element, state: State) -> Interval:
        place = self.place(node.array, state)
        positions = self.positions(node, place, state)
        if place.kind.scalar is Real:
            return interval(0)
        if (key := self.key(node)) is not None and key in state.elements:
            return state.elements[key]
        if place.table is not None:
            return _looked_up(place.table, positions)
        if place.struct is not None:
            return interval(*self.prover.declared(place.struct, place.name))
        limits = np.iinfo(place.kind.scalar.dtype(self.prover.precision))
        return interval(limits.min, limits.max)

    def key(self, node: Element) -> str | None:
        """Return text that identifies an element of a field or of an argument if all of its indices are literals or
        locals, else None.
        """
        array = node.array
        owner = f"s.{array.name}" if isinstance(array, Field) else array.name if isinstance(array, Local) else None
        if owner is None:
            return None
        parts = []
        for index in node.indices:
            if isinstance(index, Literal):
                parts.append(str(int(index.value)))
            elif isinstance(index, Local):
                parts.append(index.name)
            else:
                return None
        return f"{owner}[{','.join(parts)}]"


def _add(turned: dict[int, np.ndarray], more: Mapping[int, np.ndarray]) -> None:
    for loop, turns in more.items():
        turned[loop] = turned[loop] + turns if loop in turned else turns


def _matters(node: Any) -> bool:
    """Return whether the analysis must visit a node in a loop's body, because the node is a loop, a call or a return."""
    return isinstance(node, (For, Return)) or (isinstance(node, Call) and node.callee.intrinsic is None)


def _parted(f: Function, values: list[Any], alive: np.ndarray) -> tuple[list[Any], np.ndarray, bool]:
    """Return a call's arguments and ``alive`` with one more axis, and whether the axis was added.  The axis has an element
    for each combination of values of those arguments that bound the function's loops.

    If there are too many values, an element represents a range of values.  The axis is added only for functions with
    nested loops.
    """
    loops = [n for n in walk(f.body) if isinstance(n, For)]
    ends = {n.name for loop in loops for n in walk((loop.start, loop.stop)) if isinstance(n, Local)}
    positions = [
        i
        for i, ((name, kind), value) in enumerate(zip(f.params, values, strict=True))
        if kind is Index and name in ends and not value.exact
    ]
    if not (alive.any() and positions and any(isinstance(n, For) for loop in loops for n in walk(loop.body))):
        return values, alive, False
    each = int((PIECES / alive.size) ** (1 / len(positions)) + 1e-9)
    parts, widths = [], []
    for i in positions:
        low, high = (np.broadcast_to(end, alive.shape)[alive] for end in (values[i].low, values[i].high))
        first, last = int(low.min()), int(high.max())
        if each < 2 or last < first:
            return values, alive, False
        width = -(-(last - first + 1) // each)
        parts.append(np.arange(first, last + 1, width))
        widths.append(width)
    arguments, alive = [v.deeper() if isinstance(v, Interval) else v for v in values], alive[..., None]
    for i, low, width in zip(positions, np.meshgrid(*parts, indexing="ij"), widths, strict=True):
        arguments[i] = arguments[i].met(interval(low.ravel(), low.ravel() + width - 1))
        alive = alive & ~arguments[i].empty
    return arguments, alive, True


def _mentions(key: str, name: str) -> bool:
    return name in key[key.index("[") + 1 : -1].split(",")


class Lanes(NamedTuple):
    """A loop's iterations: either one element for each iteration, or one element for all iterations."""

    variable: Interval
    may: np.ndarray  # whether the loop may have this iteration
    must: np.ndarray  # whether the loop certainly has this iteration
    in_one: int  # the largest number of iterations that one element represents
    apart: int  # distance between the elements that belong to one run


def _lanes_of(node: For, start: Interval, stop: Interval, reached: np.ndarray, own: np.ndarray) -> Lanes:
    """Return a loop's iterations.

    own: the largest number of iterations, for each iteration of the enclosing loops.  reached: which iterations of the
    enclosing loops can be reached.
    """
    up = node.step > 0

    def ends(value: Interval) -> tuple[int, int]:
        low, high = (np.broadcast_to(end, reached.shape)[reached] for end in (value.low, value.high))
        return int(low.min()), int(high.max())

    first, last = (ends(start)[0], ends(stop)[1]) if up else (ends(start)[1], ends(stop)[0])
    starts = np.where(reached, start.low, first)
    exact = bool((starts == np.where(reached, start.high, first)).all())
    single = exact and bool((starts == first).all())
    # use one element for each iteration or, if the start is not exact, for each value that the variable may have
    step = node.step if exact else 1 if up else -1
    width = int(own.max()) if exact else abs(last - first)
    if width * max(1, reached.size) <= LANES:
        variable = interval((starts[..., None] if exact and not single else first) + step * np.arange(width))
        may, must = _taken(variable.low, start.deeper(), stop.deeper(), up)
        return Lanes(variable, may, must & (exact or abs(node.step) == 1), 1, 1 if exact else abs(node.step))
    turns = range(first, last, step if single else 1 if up else -1)
    variable, most = interval([min(turns[0], turns[-1])], [max(turns[0], turns[-1])]), int(own.max())
    return Lanes(variable, np.array([True]), np.array([False]), most, 1 if exact or most > 1 else abs(node.step))


def _taken(turn: np.ndarray, start: Interval, stop: Interval, up: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return two arrays with a truth value for each iteration: whether the loop may execute it, and whether it always does."""
    if up:
        return (turn >= start.low) & (turn < stop.high), (turn >= start.high) & (turn < stop.low)
    return (turn <= start.high) & (turn > stop.low), (turn <= start.low) & (turn > stop.high)


def _wrapped(value: Interval, limits: Interval) -> Interval:
    """Return the value's range, or the range of its type if the value may have left the type."""
    return limits.where((value.low < limits.low) | (value.high > limits.high), value)


def _product(a: Interval, b: Interval) -> Interval:
    # a product of two Words may overflow int64.  The product is then negative, and thus outside the range of a Word
    with np.errstate(over="ignore"):
        ends = np.stack(np.broadcast_arrays(a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high))
    return Interval(ends.min(0), ends.max(0))


def _narrowed(mine: Interval, other: Interval, op: str) -> Interval:
    """Return the range of those numbers in ``mine`` for which ``mine op other`` holds with at least one number in
    ``other``.
    """
    if op in ("<", "<="):
        return Interval(mine.low + 0 * other.high, np.minimum(mine.high, other.high - (op == "<")))
    if op in (">", ">="):
        return Interval(np.maximum(mine.low, other.low + (op == ">")), mine.high + 0 * other.low)
    if op == "==":
        return mine.met(other)
    single = other.low == other.high
    return Interval(
        np.where(single & (mine.low == other.low), mine.low + 1, mine.low),
        np.where(single & (mine.high == other.high), mine.high - 1, mine.high),
    )


def _looked_up(table: np.ndarray, positions: tuple[Interval, ...]) -> Interval:
    """Return the range of a table's values at these positions."""
    ends = [
        np.clip(end, 0, size - 1) for p, size in zip(positions, table.shape, strict=True) for end in (p.low, p.high)
    ]
    if all(p.exact for p in positions):
        values = table[tuple(np.broadcast_arrays(*ends[::2]))].astype(np.int64)
        return Interval(values, values)
    slices = tuple(slice(int(a.min()), int(b.max()) + 1) for a, b in zip(ends[::2], ends[1::2], strict=True))
    part = table[slices].astype(np.int64)
    # the part is empty if no iteration reaches this code
    return interval(part.min(), part.max()) if part.size else NONE


def _assigned(body: tuple[Statement, ...]) -> list[str]:
    """Return the names of the locals, except Reals, to which a loop's body assigns."""
    targets = [n.target for n in walk(body) if isinstance(n, Assign)]
    return list(dict.fromkeys(t.name for t in targets if isinstance(t, Local) and t.kind is not Real))


def _kind_of(name: str, body: tuple[Statement, ...]) -> Scalar:
    return next(
        n.target.kind
        for n in walk(body)
        if isinstance(n, Assign) and isinstance(n.target, Local) and n.target.name == name
    )


def _term(node: Assign) -> tuple[str, Expr]:
    """Return the operator and the term of ``name += term`` or ``name = name + term``."""
    if node.op:
        return node.op, node.value
    assert isinstance(node.target, Local)
    found = _added(node.value, node.target.name)
    assert found is not None
    return found


def _added(value: Expr, name: str) -> tuple[str, Expr] | None:
    """Return the operator and the term of a sum such as ``name + term``, ``term + name`` or ``name + a - b``."""
    if not isinstance(value, Binary) or value.op not in ("+", "-"):
        return None
    if isinstance(value.left, Local) and value.left.name == name:
        return value.op, value.right
    if value.op == "+" and isinstance(value.right, Local) and value.right.name == name:
        return "+", value.left
    before = _added(value.left, name)
    if before is None:
        return None
    op, term = before
    inner = value.op if op == "+" else "-" if value.op == "+" else "+"
    return op, Binary(value.line, value.kind, inner, term, value.right)


def _is_sum(name: str, body: tuple[Statement, ...]) -> bool:
    """Return whether a loop's body changes a local only by adding to it or subtracting from it."""
    for node in walk(body):
        if isinstance(node, Assign) and isinstance(node.target, Local) and node.target.name == name:
            if node.target.kind is Bool or node.declares or node.op not in ("", "+", "-"):
                return False
            found = (node.op, node.value) if node.op else _added(node.value, name)
            if found is None or any(isinstance(n, Local) and n.name == name for n in walk(found[1])):
                return False
    return True
