"""Functions to LLVM IR, for the host.  One text serves every size and every number, and computes the same bits as the
C.

The text has no flag that lets a compiler compute other results: no fast-math flag, no contraction; integers wrap.  Each
flag that the text does have is explained in a comment beside it.

Memory, tables, numbers and sizes are reached through a table of eight-byte words.  The first parameter of every
function is the address of this table.  ``Module.words`` says what each word holds: ("field", name) and ("table", name)
the address of an array, ("number", name) a parameter's value, ("extent", text) a size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from typing import Any

from pykernel.dialect import (
    FLOAT64,
    INTEGERS,
    Array,
    Bool,
    Constant,
    Extent,
    Index,
    Kernel,
    Precision,
    Real,
    Word,
)
from pykernel.gen.ir import (
    Assign,
    Binary,
    Call,
    Choice,
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

TableWord = tuple[str, str]

REALS = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv"}
# no nsw: a sum beyond int32 wraps.  The checker allows // and % only if the left side is not negative and the right
# side is positive
WHOLES = {"+": "add", "-": "sub", "*": "mul", "//": "sdiv", "%": "srem", "<<": "shl", ">>": "lshr", "&": "and"}
# a NaN is unordered: it is unequal to everything, and neither less nor greater than anything
COMPARE_REALS = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
COMPARE_INTEGERS = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
COMPARE_WORDS = {"==": "eq", "!=": "ne", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}

ROWS = "pk.rows"
"""Name of the loop over samples, which every module has.  The dot keeps it different from all kernels' names."""

ROWS_TYPES = (c_void_p,) * 4 + (c_int64,) * 3 + (c_void_p, c_int64) * 4 + (c_void_p,)
"""Types of the loop's parameters."""
# Fixed text.  The loop calls public functions, which all take (table, pointer, pointer).
#   ask: a question or null; learn: the update, a visit or null; look: a reading or null
#   for each row t from ``first`` on: ask(x[t], answer), learn(x[t - delay], y[t - delay]), look(state)
# The status is the result of learn, or 0 if t < delay; without learn, the result of ask.
LOOP = f"""define void @{ROWS}(ptr %t, ptr %ask, ptr %learn, ptr %look, i64 %first, i64 %rows, i64 %delay, ptr %x, i64 %x_bytes, ptr %y, i64 %y_bytes, ptr %answers, i64 %answer_bytes, ptr %states, i64 %state_bytes, ptr %statuses) nounwind {{
entry:
  %asks = icmp ne ptr %ask, null
  %learns = icmp ne ptr %learn, null
  %looks = icmp ne ptr %look, null
  br label %head
head:
  %row = phi i64 [ %first, %entry ], [ %next, %step ]
  %more = icmp slt i64 %row, %rows
  br i1 %more, label %body, label %done
body:
  %i = sub i64 %row, %first
  %x_at = mul i64 %row, %x_bytes
  %xp = getelementptr i8, ptr %x, i64 %x_at
  br i1 %asks, label %asking, label %asked
asking:
  %a_at = mul i64 %i, %answer_bytes
  %ap = getelementptr i8, ptr %answers, i64 %a_at
  %answered = call i32 %ask(ptr %t, ptr %xp, ptr %ap)
  br label %asked
asked:
  %given = phi i32 [ 0, %body ], [ %answered, %asking ]
  br i1 %learns, label %due, label %told
due:
  %old = sub i64 %row, %delay
  %there = icmp sge i64 %old, 0
  br i1 %there, label %learning, label %told
learning:
  %o_at = mul i64 %old, %x_bytes
  %op = getelementptr i8, ptr %x, i64 %o_at
  %y_at = mul i64 %old, %y_bytes
  %yp = getelementptr i8, ptr %y, i64 %y_at
  %learned = call i32 %learn(ptr %t, ptr %op, ptr %yp)
  br label %told
told:
  %status = phi i32 [ %given, %asked ], [ 0, %due ], [ %learned, %learning ]
  %sp = getelementptr i32, ptr %statuses, i64 %i
  store i32 %status, ptr %sp
  br i1 %looks, label %looking, label %step
looking:
  %l_at = mul i64 %i, %state_bytes
  %lp = getelementptr i8, ptr %states, i64 %l_at
  %looked = call i32 %look(ptr %t, ptr %lp, ptr null)
  br label %step
step:
  %next = add i64 %row, 1
  br label %head
done:
  ret void
}}"""

# Numbers of different types never share memory: each field, table, input and answer is an array of one type.
TYPES = (Real, *INTEGERS)
ALIAS = {kind: f"!tbaa !{2 + 2 * i}" for i, kind in enumerate(TYPES)}
METADATA = "\n".join(
    ["!0 = !{}", '!1 = !{!"pykernel"}']
    + [
        f'!{2 + 2 * i} = !{{!{3 + 2 * i}, !{3 + 2 * i}, i64 0}}\n!{3 + 2 * i} = !{{!"{kind}", !1, i64 0}}'
        for i, kind in enumerate(TYPES)
    ]
)


@dataclass(frozen=True)
class Module:
    """LLVM IR, and the contents that it expects in the table of words."""

    text: str
    words: tuple[TableWord, ...]


def print_llvm(functions: Functions, roots: Iterable[Kernel], precision: Precision) -> Module:
    """The functions (with folded choices) as LLVM IR, and one public function for each root; see ``public_name``.

    A public function takes the table, and then one pointer for each parameter of the root that is an array or a number.
    It takes at least two pointers, so that the loop over samples can call every public function.  It returns int32 (0
    or 1 for a truth value, 0 for no result), or the root's Real.
    """
    return _Printer(functions, precision).module(roots)


def public_name(root: Kernel) -> str:
    return f"pk.{root.name}"


class _Printer:
    """Prints a module: the parts that all functions share."""

    def __init__(self, functions: Functions, precision: Precision) -> None:
        self.functions, self.precision = functions, precision
        self.real, self.bits = ("double", 64) if precision is FLOAT64 else ("float", 32)
        self.words: dict[TableWord, int] = {}
        self.tables: dict[int, tuple[str, Constant]] = {}  # by ``id``: two files may use one name for different tables

    def module(self, roots: Iterable[Kernel]) -> Module:
        made = [_Body(self, f).text() for f in self.functions.values()]
        made += [self.public(self.functions[root.name]) for root in roots]
        # loads from the table are marked: every word that is read exists, and no word changes while a function runs
        table = f"ptr noundef nonnull align 8 dereferenceable({8 * max(len(self.words), 1)}) %t"
        intrinsics = [f"declare {self.real} @llvm.{name}.f{self.bits}({self.real})" for name in ("sqrt", "fabs")]
        constants = [self.constant(name, constant) for name, constant in self.tables.values()]
        text = "\n".join([*intrinsics, *constants, *made, LOOP, METADATA, ""])
        return Module(text.replace("ptr %table", table), tuple(self.words))

    def type(self, kind: Any) -> str:
        if isinstance(kind, Array):
            return "ptr"
        return {Real: self.real, Bool: "i1", None: "void"}.get(kind) or f"i{8 * kind.dtype(self.precision).itemsize}"

    def number(self, value: Any) -> str:
        """A real as text: LLVM writes the bits of a double, also for float."""
        return f"0x{struct.pack('>d', float(self.precision.real(value))).hex().upper()}"

    def table(self, constant: Constant) -> str:
        return self.tables.setdefault(id(constant), (f"@table.{len(self.tables)}", constant))[0]

    def constant(self, name: str, constant: Constant) -> str:
        kind = self.type(constant.scalar)
        values = [
            f"{kind} {self.number(v) if constant.scalar is Real else int(v)}" for v in constant.value(self.precision)
        ]
        return f"{name} = private unnamed_addr constant [{len(values)} x {kind}] [{', '.join(values)}]"

    def public(self, f: Function) -> str:
        pointers = [f"ptr %p{i}" for i in range(max(len(f.params), 2))]
        result = self.real if f.returns is Real else "i32"
        lines = [f"define {result} @{public_name(f.kernel)}({', '.join(['ptr %table', *pointers])}) nounwind {{"]
        given = ["ptr %t"]
        for i, (_, kind) in enumerate(f.params):
            assert kind is not None
            if kind is Bool:
                lines += [f"  %n{i} = load i32, ptr %p{i}, {ALIAS[Index]}", f"  %v{i} = icmp ne i32 %n{i}, 0"]
            elif not isinstance(kind, Array):
                lines.append(f"  %v{i} = load {self.type(kind)}, ptr %p{i}, {ALIAS[kind]}")
            given.append(f"ptr %p{i}" if isinstance(kind, Array) else f"{self.type(kind)} %v{i}")
        call = f"call {self.type(f.returns)} @in.{f.name}({', '.join(given)})"
        lines.append(f"  {call}" if f.returns is None else f"  %r = {call}")
        if f.returns is Bool:
            lines.append("  %s = zext i1 %r to i32")
        value = "0" if f.returns is None else "%s" if f.returns is Bool else "%r"
        return "\n".join([*lines, f"  ret {result} {value}", "}"])


class _Body:
    """Prints one function.  Locals are places on the stack; LLVM turns them into registers."""

    def __init__(self, printer: _Printer, f: Function) -> None:
        self.printer, self.f = printer, f
        self.type, self.real = printer.type, printer.real
        self.lines: list[str] = []
        self.count = 0
        self.open = True  # whether the current block still needs a terminator
        self.loops: list[tuple[str, str]] = []  # for each enclosing loop: the labels to which break and continue jump

    def text(self) -> str:
        f = self.f
        params = ["ptr %table", *(f"{self.type(kind)} %a.{name}" for name, kind in f.params)]
        scalars = {name: kind for name, kind in f.params if not isinstance(kind, Array)}
        places = dict(scalars)
        for node in walk(f.body):
            if isinstance(node, Assign) and isinstance(node.target, Local):
                places[node.target.name] = node.target.kind  # a name has one type in the whole function
            elif isinstance(node, For):
                places[node.variable] = Index
        for name, kind in places.items():
            self.out(f"%l.{name} = alloca {self.type(kind)}")
        for name, kind in scalars.items():
            self.out(f"store {self.type(kind)} %a.{name}, ptr %l.{name}")
        self.block(f.body)
        self.end("ret void" if f.returns is None else "unreachable")  # every path has returned a value
        head = f"define internal {self.type(f.returns)} @in.{f.name}({', '.join(params)}) nounwind {{"
        return "\n".join([head, "entry:", *self.lines, "}"])

    # ---- text

    def out(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def new(self, value: str) -> str:
        """Write an instruction; returns the name of its result."""
        self.count += 1
        self.out(f"%v{self.count} = {value}")
        return f"%v{self.count}"

    def label(self) -> str:
        self.count += 1
        return f"b{self.count}"

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.open = True

    def end(self, line: str) -> None:
        """End the block with this line, unless the block has ended already."""
        if self.open:
            self.out(line)
        self.open = False

    def go(self, label: str) -> None:
        self.end(f"br label %{label}")

    def word(self, kind: str, name: str, type_: str) -> str:
        words = self.printer.words
        at = words.setdefault((kind, name), len(words))
        place = self.new(f"getelementptr i64, ptr %t, i64 {at}")
        return self.new(f"load {type_}, ptr {place}, align 8, !invariant.load !0")

    # ---- statements

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            if self.open:
                getattr(self, f"do_{type(statement).__name__}")(statement)

    def do_Assign(self, node: Assign) -> None:
        kind = node.target.kind
        if isinstance(node.target, Local):
            place, value = f"%l.{node.target.name}", self.value(node.value)
            if node.op:
                value = self.arithmetic(node.op, kind, self.new(f"load {self.type(kind)}, ptr {place}"), value)
            self.out(f"store {self.type(kind)} {value}, ptr {place}")
            return
        place, stored = self.address(node.target), node.target.array.kind.scalar
        value = self.value(node.value)
        if node.op:
            value = self.arithmetic(node.op, kind, self.load(stored, place), value)
        if self.type(stored) != self.type(kind):
            value = self.new(f"trunc {self.type(kind)} {value} to {self.type(stored)}")
        self.out(f"store {self.type(stored)} {value}, ptr {place}, {ALIAS[stored]}")

    def load(self, stored: Any, place: str) -> str:
        """Load an element and widen it to its type in expressions."""
        value = self.new(f"load {self.type(stored)}, ptr {place}, {ALIAS[stored]}")
        if self.type(stored) == self.type(stored.value):
            return value
        return self.new(
            f"{'zext' if 'u' in stored.stored else 'sext'} {self.type(stored)} {value} to {self.type(stored.value)}"
        )

    def do_Do(self, node: Do) -> None:
        self.value(node.call)

    def do_Return(self, node: Return) -> None:
        self.end("ret void" if node.value is None else f"ret {self.type(self.f.returns)} {self.value(node.value)}")

    def do_Leave(self, node: Leave) -> None:
        after, step = self.loops[-1]
        self.go(after if node.word == "break" else step)

    def do_If(self, node: If) -> None:
        yes, no, after = self.label(), self.label(), self.label()
        self.branch(node.condition, yes, no)
        left = True
        for label, body in ((yes, node.body), (no, node.orelse)):
            self.start(label)
            self.block(body)
            left = left and not self.open
            self.go(after)
        if not left:
            self.start(after)

    def do_For(self, node: For) -> None:
        start, stop = self.value(node.start), self.value(node.stop)
        variable = f"%l.{node.variable}"
        head, body, step, after = (self.label() for _ in range(4))
        # a counter of 64 bits: with a step above 1, the last increment may go beyond int32.  So nsw is correct
        first, last = (self.new(f"sext i32 {bound} to i64") for bound in (start, stop))
        before = self.label()
        self.go(before)
        self.start(before)
        self.go(head)
        self.start(head)
        counter, moved = f"%c.{head}", f"%d.{head}"
        self.out(f"{counter} = phi i64 [ {first}, %{before} ], [ {moved}, %{step} ]")
        more = self.new(f"icmp {'slt' if node.step > 0 else 'sgt'} i64 {counter}, {last}")
        self.end(f"br i1 {more}, label %{body}, label %{after}")
        self.start(body)
        self.out(f"store i32 {self.new(f'trunc i64 {counter} to i32')}, ptr {variable}")
        self.loops.append((after, step))
        self.block(node.body)
        self.loops.pop()
        self.go(step)
        self.start(step)
        self.out(f"{moved} = add nsw i64 {counter}, {node.step}")
        self.go(head)
        self.start(after)

    def branch(self, condition: Expr, yes: str, no: str) -> None:
        """Jump to one of two blocks.

        The right side of `and` and `or` is computed only if the left side does not decide.
        """
        if isinstance(condition, Binary) and condition.op in ("and", "or"):
            right = self.label()
            self.branch(condition.left, *((right, no) if condition.op == "and" else (yes, right)))
            self.start(right)
            self.branch(condition.right, yes, no)
        elif isinstance(condition, Unary) and condition.op == "not":
            self.branch(condition.operand, no, yes)
        else:
            self.end(f"br i1 {self.value(condition)}, label %{yes}, label %{no}")

    # ---- expressions: each method returns an operand of an instruction, a literal or a name

    def value(self, node: Expr) -> str:
        return getattr(self, f"of_{type(node).__name__}")(node)

    def arithmetic(self, op: str, kind: Any, left: str, right: str) -> str:
        word = (REALS if kind is Real else WHOLES)[op]
        return self.new(f"{word} {self.type(kind)} {left}, {right}")

    def of_Literal(self, node: Literal) -> str:
        if node.kind is Bool:
            return "true" if node.value else "false"
        return self.printer.number(node.value) if node.kind is Real else str(int(node.value))

    def of_Member(self, node: Member) -> str:
        return str(int(node.value))

    def of_Local(self, node: Local) -> str:
        if isinstance(node.kind, Array):
            return f"%a.{node.name}"
        return self.new(f"load {self.type(node.kind)}, ptr %l.{node.name}")

    def of_Parameter(self, node: Parameter) -> str:
        kind = "table" if isinstance(node.kind, Array) else "number"
        return self.word(kind, node.name, self.type(node.kind))

    def of_Named(self, node: Named) -> str:
        if node.constant.is_table:
            return self.printer.table(node.constant)
        return self.printer.number(node.constant.value(self.printer.precision))

    def of_Field(self, node: Field) -> str:
        return self.word("field", node.name, "ptr")

    def of_Length(self, node: Length) -> str:
        if node.table is not None:
            return str(len(node.table.constant.value(self.printer.precision)))
        return self.extent(node.extent, "i32")

    def extent(self, extent: Any, type_: str) -> str:
        return self.word("extent", extent.text, type_) if isinstance(extent, Extent) else str(int(extent))

    def of_Row(self, node: Row) -> str:
        return self.address(node)

    def of_Element(self, node: Element) -> str:
        return self.load(node.array.kind.scalar, self.address(node))

    def address(self, node: Element | Row) -> str:
        """The address of an element, or of a row's first element: C order, computed in 64 bits."""
        base, kind = self.value(node.array), node.array.kind
        given = [self.wide(i) for i in (node.indices if isinstance(node, Element) else (node.index,))]
        at = given[0]
        for axis, extent in enumerate(kind.extents[1:], 1):
            at = self.new(f"mul i64 {at}, {self.extent(extent, 'i64')}")
            if axis < len(given):
                at = self.new(f"add i64 {at}, {given[axis]}")
        return base if at == "0" else self.new(f"getelementptr {self.type(kind.scalar)}, ptr {base}, i64 {at}")

    def wide(self, node: Expr) -> str:
        value = self.value(node)
        return self.new(f"sext i32 {value} to i64") if value.startswith("%") else value

    def of_Unary(self, node: Unary) -> str:
        operand = self.value(node.operand)
        if node.op == "not":
            return self.new(f"xor i1 {operand}, true")
        return self.new(f"fneg {self.real} {operand}" if node.kind is Real else f"sub i32 0, {operand}")

    def of_ToReal(self, node: ToReal) -> str:
        return self.new(f"sitofp i32 {self.value(node.operand)} to {self.real}")

    def of_Binary(self, node: Binary) -> str:
        if node.op in ("and", "or"):
            return self.choose(node, Literal(node.line, Bool, True), Literal(node.line, Bool, False))
        left, right = self.value(node.left), self.value(node.right)
        if node.kind is not Bool:
            return self.arithmetic(node.op, node.kind, left, right)
        if node.left.kind is Real:
            return self.new(f"fcmp {COMPARE_REALS[node.op]} {self.real} {left}, {right}")
        compare = COMPARE_WORDS if node.left.kind is Word else COMPARE_INTEGERS
        return self.new(f"icmp {compare[node.op]} i32 {left}, {right}")

    def of_Choice(self, node: Choice) -> str:
        return self.choose(node.condition, node.yes, node.no)

    def choose(self, condition: Expr, yes: Expr, no: Expr) -> str:
        """One of two values; the other is not computed."""
        labels = self.label(), self.label()
        after = self.label()
        self.branch(condition, *labels)
        found = []
        for label, side in zip(labels, (yes, no), strict=True):
            self.start(label)
            value = self.value(side)
            end = self.label()  # the block in which the value's computation ends
            self.go(end)
            self.start(end)
            self.go(after)
            found.append(f"[ {value}, %{end} ]")
        self.start(after)
        return self.new(f"phi {self.type(yes.kind)} {', '.join(found)}")

    def of_Call(self, node: Call) -> str:
        if node.callee.intrinsic is not None:
            return getattr(self, f"call_{node.callee.name}")(*map(self.value, node.args))  # type: ignore[no-any-return]
        f = self.printer.functions[node.callee.name]
        given = [f"{self.type(kind)} {self.value(a)}" for a, (_, kind) in zip(node.args, f.params, strict=True)]
        call = f"call {self.type(f.returns)} @in.{f.name}({', '.join(['ptr %t', *given])})"
        if f.returns is not None:
            return self.new(call)
        self.out(call)
        return ""

    # ---- intrinsics, which each runtime implements itself

    def call_sqrt(self, x: str) -> str:
        return self.new(f"call {self.real} @llvm.sqrt.f{self.printer.bits}({self.real} {x})")

    def call_absolute(self, x: str) -> str:
        return self.new(f"call {self.real} @llvm.fabs.f{self.printer.bits}({self.real} {x})")

    def call_truncate(self, x: str) -> str:
        # freeze: a number that does not fit gives an unspecified result (that of the processor, as in C), always the
        # same
        return self.new(f"freeze i32 {self.new(f'fptosi {self.real} {x} to i32')}")

    def call_pow2(self, k: str) -> str:
        precision = self.printer.precision
        biased = self.new(f"add i32 {k}, {precision.bias}")
        if self.printer.bits == 64:
            biased = self.new(f"sext i32 {biased} to i64")
        bits = self.new(f"shl i{self.printer.bits} {biased}, {precision.bits}")
        return self.new(f"bitcast i{self.printer.bits} {bits} to {self.real}")

    def call_word(self, a: str) -> str:
        return a

    def call_index(self, w: str) -> str:
        return w

    def call_exact_square(self, e: str) -> str:
        return self.new(f"mul i32 {e}, {e}")

    def call_floor_shift(self, a: str, k: str) -> str:
        return self.new(f"ashr i32 {a}, {k}")

    def call_multiply_high(self, a: str, k: str) -> str:
        wide = self.new(f"mul nsw i64 {self.new(f'sext i32 {a} to i64')}, {self.new(f'sext i32 {k} to i64')}")
        return self.new(f"trunc i64 {self.new(f'ashr i64 {wide}, 16')} to i32")

    def call_as_signed(self, w: str) -> str:
        return w

    def call_quotient(self, a: str, b: str) -> str:
        return self.new(f"sdiv i32 {a}, {b}")
