"""Print functions as LLVM IR, for the host.  The same text serves all sizes and numbers, and computes the same bits as the
C code.

The text has no flag that lets a compiler change results: no fast-math flag and no contraction, and integers wrap.  A
comment explains each flag that the text has.

The code reaches fields, the configuration's tables and numbers, and sizes through a table of eight-byte words.  The
first parameter of every function is the address of this table of words.  ``Module.words`` says what each word holds:
the address of an array for ("field", name) and ("table", name), a number of the configuration for ("number", name), or
a size for ("extent", text).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
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
from pykernel.language.ir import (
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
# these instructions have no nsw flag, because a sum beyond int32 wraps.  Signed // and % are correct, because the
# checker allows them only if the left side is not negative and the right side is positive
WHOLES = {"+": "add", "-": "sub", "*": "mul", "//": "sdiv", "%": "srem", "<<": "shl", ">>": "lshr", "&": "and"}
# in these comparisons, NaN is unequal to every number, and neither less nor greater
COMPARE_REALS = {"==": "oeq", "!=": "une", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
COMPARE_INTEGERS = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
COMPARE_WORDS = {"==": "eq", "!=": "ne", "<": "ult", "<=": "ule", ">": "ugt", ">=": "uge"}

INTRINSICS: dict[str, tuple[str, ...]] = {
    "sqrt": ("call {real} @llvm.sqrt.f{bits}({real} {0})",),
    "absolute": ("call {real} @llvm.fabs.f{bits}({real} {0})",),
    # if the number does not fit, the result depends on the processor, as in C; freeze makes all uses see the same
    # result
    "truncate": ("fptosi {real} {0} to i32", "freeze i32 {1}"),
    "word": (),
    "index": (),
    "as_signed": (),
    "exact_square": ("mul i32 {0}, {0}",),
    "floor_shift": ("ashr i32 {0}, {1}",),
    "quotient": ("sdiv i32 {0}, {1}",),
    # nsw is correct, because the product of two int32 fits into int64
    "multiply_high": (
        "sext i32 {0} to i64",
        "sext i32 {1} to i64",
        "mul nsw i64 {2}, {3}",
        "ashr i64 {4}, 16",
        "trunc i64 {5} to i32",
    ),
}
"""The instructions of each intrinsic that is not in ``BY_BITS``.  {0}, {1} and so on stand first for the arguments, and
then for the results of the earlier instructions.
"""
POW2 = {
    32: ("add i32 {0}, {bias}", "shl i32 {1}, {fraction}", "bitcast i32 {2} to float"),
    64: ("add i32 {0}, {bias}", "sext i32 {1} to i64", "shl i64 {2}, {fraction}", "bitcast i64 {3} to double"),
}
POW2_ROUNDED = {
    bits: (
        f"bitcast {real} {{0}} to i{bits}",
        f"sub i{bits} {{1}}, {(bias + fraction) << fraction}",
        f"shl i{bits} {{2}}, {fraction}",
        f"icmp ult i{bits} {{2}}, {2 * bias + 1}",
        f"select i1 {{4}}, i{bits} {{3}}, i{bits} 0",
        f"bitcast i{bits} {{5}} to {real}",
    )
    for bits, real, bias, fraction in ((32, "float", 127, 23), (64, "double", 1023, 52))
}
FLOOR_LOG2 = {
    32: ("bitcast float {0} to i32", "lshr i32 {1}, {fraction}", "and i32 {2}, 255", "sub i32 {3}, {bias}"),
    64: (
        "bitcast double {0} to i64",
        "lshr i64 {1}, {fraction}",
        "trunc i64 {2} to i32",
        "and i32 {3}, 2047",
        "sub i32 {4}, {bias}",
    ),
}
BY_BITS: dict[str, Mapping[int, tuple[str, ...]]] = {
    "pow2": POW2,
    "pow2_rounded": POW2_ROUNDED,
    "floor_log2": FLOOR_LOG2,
}
"""The instructions of intrinsics that read or set the bits of a real."""

ROWS = "pk.rows"
"""Name of the function with the loop over samples, which every module has.  No kernel's name contains a dot."""

ROWS_TYPES = (c_void_p,) * 5 + (c_int64,) * 3 + (c_void_p, c_int64) * 4 + (c_void_p,)
"""Types of the loop's parameters."""
# This text is the same in every module.  The loop calls up to four entries (see ``pykernel.dialect.program``), each given by
# its address or null: ``ask`` is a question, ``promise`` a promise, ``learn`` the update or a visit, and ``look`` a reading.
# All of them take (table, pointer, pointer).  For each row t >= ``first``, the loop calls
#   ask(x[t], answer), promise(x[t]), learn(x[t - delay], y[t - delay]), look(state)
# The row's status is the result of learn, or 0 if t < delay.  Without learn, the status is the result of ask, or 0 if
# there is no ask either.
LOOP = f"""define void @{ROWS}(ptr %t, ptr %ask, ptr %promise, ptr %learn, ptr %look, i64 %first, i64 %rows, i64 %delay, ptr %x, i64 %x_bytes, ptr %y, i64 %y_bytes, ptr %answers, i64 %answer_bytes, ptr %states, i64 %state_bytes, ptr %statuses) nounwind {{
entry:
  %asks = icmp ne ptr %ask, null
  %promises = icmp ne ptr %promise, null
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
  br i1 %promises, label %promising, label %after
promising:
  %promised = call i32 %promise(ptr %t, ptr %xp, ptr null)
  br label %after
after:
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
  %status = phi i32 [ %given, %after ], [ 0, %due ], [ %learned, %learning ]
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
    """LLVM IR, and the contents that the code expects in the table of words."""

    text: str
    words: tuple[TableWord, ...]


def print_llvm(functions: Functions, roots: Iterable[Kernel], precision: Precision) -> Module:
    """Return the functions (with folded choices) as LLVM IR, with one public function for each root; see
    ``public_name``.

    A public function takes the table, and then one pointer for each parameter of the root that is an array or a number.
    If there are fewer than two such parameters, the function takes two pointers all the same, so that the loop over
    samples can call every public function.  The result is a Real if the root returns a Real, else an int32: a truth
    value becomes 0 or 1, and no result becomes 0.
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
        self.tables: dict[int, tuple[str, Constant]] = {}  # by ``id``, because two tables may have the same name

    def module(self, roots: Iterable[Kernel]) -> Module:
        made = [_Body(self, f).text() for f in self.functions.values()]
        made += [self.public(self.functions[root.name]) for root in roots]
        # loads from the table are marked as safe and invariant: every word that is read exists, and no word changes
        # while a function runs
        table = f"ptr noundef nonnull align 8 dereferenceable({8 * max(len(self.words), 1)}) %t"
        intrinsics = [f"declare {self.real} @llvm.{name}.f{self.bits}({self.real})" for name in ("sqrt", "fabs")]
        constants = [self.constant(name, constant) for name, constant in self.tables.values()]
        text = "\n".join([*intrinsics, *constants, *made, LOOP, METADATA, ""])
        return Module(text.replace("ptr %table", table), tuple(self.words))

    def type(self, kind: Any) -> str:
        if isinstance(kind, Array):
            return "ptr"
        named = {Real: self.real, None: "void", Bool: "i1"}
        return named.get(kind) or f"i{8 * kind.dtype(self.precision).itemsize}"

    def number(self, value: Any) -> str:
        """Return a real as text.  LLVM IR writes the bits of a double, even for a number of type float."""
        return f"0x{struct.pack('>d', float(self.precision.real(value))).hex().upper()}"

    def literal(self, kind: Any, value: Any) -> str:
        if kind is Bool:
            return "true" if value else "false"
        return self.number(value) if kind is Real else str(int(value))

    def table(self, constant: Constant) -> str:
        return self.tables.setdefault(id(constant), (f"@table.{len(self.tables)}", constant))[0]

    def constant(self, name: str, constant: Constant) -> str:
        kind = self.type(constant.scalar)
        values = [f"{kind} {self.literal(constant.scalar, v)}" for v in constant.value(self.precision)]
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
    """Prints one function.  Locals are places on the stack, which LLVM turns into registers."""

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
                places[node.target.name] = node.target.kind  # a name has only one type in a function
            elif isinstance(node, For):
                places[node.variable] = Index
        for name, kind in places.items():
            self.out(f"%l.{name} = alloca {self.type(kind)}")
        for name, kind in scalars.items():
            self.out(f"store {self.type(kind)} %a.{name}, ptr %l.{name}")
        self.block(f.body)
        # a function with a result never gets here, because every path has returned a value
        self.end("ret void" if f.returns is None else "unreachable")
        head = f"define internal {self.type(f.returns)} @in.{f.name}({', '.join(params)}) nounwind {{"
        return "\n".join([head, "entry:", *self.lines, "}"])

    # ---- text

    def out(self, line: str) -> None:
        self.lines.append(f"  {line}")

    def new(self, value: str) -> str:
        """Write an instruction, and return the name of its result."""
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

    def next_block(self, label: str) -> None:
        """End the block, and continue in the block with this label."""
        self.go(label)
        self.start(label)

    def word(self, kind: str, name: str, type_: str) -> str:
        words = self.printer.words
        at = words.setdefault((kind, name), len(words))
        place = self.new(f"getelementptr i64, ptr %t, i64 {at}")
        return self.new(f"load {type_}, ptr {place}, align 8, !invariant.load !0")

    # ---- statements

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            if self.open:
                self.statement(statement)

    def statement(self, node: Statement) -> None:
        match node:
            case Assign(target=Local() as target):
                self.assign(node, target.kind, f"%l.{target.name}", "")
            case Assign(target=Element() as target):
                stored = target.array.kind.scalar
                self.assign(node, stored, self.address(target), f", {ALIAS[stored]}")
            case Do(call=call):
                self.value(call)
            case Return(value=None):
                self.end("ret void")
            case Return(value=Expr() as value):
                self.end(f"ret {self.type(self.f.returns)} {self.value(value)}")
            case Leave(word=word):
                after, step = self.loops[-1]
                self.go(after if word == "break" else step)
            case If():
                self.decide(node)
            case For():
                self.loop(node)
            case _:
                raise TypeError(type(node).__name__)

    def assign(self, node: Assign, stored: Any, place: str, alias: str) -> None:
        """Store at a place whose type may be narrower than the value's type."""
        kind, value = node.target.kind, self.value(node.value)
        if node.op:
            value = self.arithmetic(node.op, kind, self.load(stored, kind, place, alias), value)
        if self.type(stored) != self.type(kind):
            value = self.new(f"trunc {self.type(kind)} {value} to {self.type(stored)}")
        self.out(f"store {self.type(stored)} {value}, ptr {place}{alias}")

    def load(self, stored: Any, kind: Any, place: str, alias: str) -> str:
        """Load a local or an element, and widen it to its type in expressions."""
        value = self.new(f"load {self.type(stored)}, ptr {place}{alias}")
        if self.type(stored) == self.type(kind):
            return value
        return self.new(
            f"{'zext' if 'u' in stored.stored else 'sext'} {self.type(stored)} {value} to {self.type(kind)}"
        )

    def decide(self, node: If) -> None:
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

    def loop(self, node: For) -> None:
        start, stop = self.value(node.start), self.value(node.stop)
        head, body, step, after = (self.label() for _ in range(4))
        # the last increment may go beyond int32 if the step is above 1 or below -1.  The counter therefore has 64 bits,
        # so that it cannot overflow, and nsw is correct
        first, last = (self.new(f"sext i32 {bound} to i64") for bound in (start, stop))
        before = self.label()
        self.next_block(before)
        self.next_block(head)
        counter, moved = f"%c.{head}", f"%d.{head}"
        self.out(f"{counter} = phi i64 [ {first}, %{before} ], [ {moved}, %{step} ]")
        more = self.new(f"icmp {'slt' if node.step > 0 else 'sgt'} i64 {counter}, {last}")
        self.end(f"br i1 {more}, label %{body}, label %{after}")
        self.start(body)
        self.out(f"store i32 {self.new(f'trunc i64 {counter} to i32')}, ptr %l.{node.variable}")
        self.loops.append((after, step))
        self.block(node.body)
        self.loops.pop()
        self.next_block(step)
        self.out(f"{moved} = add nsw i64 {counter}, {node.step}")
        self.go(head)
        self.start(after)

    def branch(self, condition: Expr, yes: str, no: str) -> None:
        """Jump to one of two blocks.

        The right side of `and` and `or` is computed only if the left side does not decide the result.
        """
        match condition:
            case Binary(op="and" | "or" as op):
                right = self.label()
                self.branch(condition.left, *((right, no) if op == "and" else (yes, right)))
                self.start(right)
                self.branch(condition.right, yes, no)
            case Unary(op="not"):
                self.branch(condition.operand, no, yes)
            case _:
                self.end(f"br i1 {self.value(condition)}, label %{yes}, label %{no}")

    # ---- expressions; the text of a value is a literal or a name

    def value(self, node: Expr) -> str:
        match node:
            case Literal(kind=kind, value=value) | Member(kind=kind, value=value):
                return self.printer.literal(kind, value)
            case Local(kind=kind, name=name):
                return f"%a.{name}" if isinstance(kind, Array) else self.load(kind, kind, f"%l.{name}", "")
            case Parameter(kind=kind, name=name):
                return self.word("table" if isinstance(kind, Array) else "number", name, self.type(kind))
            case Named(constant=constant) if constant.is_table:
                return self.printer.table(constant)
            case Named(constant=constant):
                return self.printer.number(constant.value(self.printer.precision))
            case Field(name=name):
                return self.word("field", name, "ptr")
            case Length(table=Named(constant=constant)):
                return str(len(constant.value(self.printer.precision)))
            case Length(extent=extent):
                return self.extent(extent, "i32")
            case Row():
                return self.address(node)
            case Element(kind=kind, array=array):
                stored = array.kind.scalar
                return self.load(stored, kind, self.address(node), f", {ALIAS[stored]}")
            case Unary():
                return self.unary(node)
            case ToReal(operand=operand):
                return self.new(f"sitofp i32 {self.value(operand)} to {self.real}")
            case Binary():
                return self.binary(node)
            case Choice(condition=condition, yes=yes, no=no):
                return self.choose(condition, yes, no)
            case Call():
                return self.call(node)
        raise TypeError(type(node).__name__)

    def arithmetic(self, op: str, kind: Any, left: str, right: str) -> str:
        word = (REALS if kind is Real else WHOLES)[op]
        return self.new(f"{word} {self.type(kind)} {left}, {right}")

    def extent(self, extent: Any, type_: str) -> str:
        return self.word("extent", extent.text, type_) if isinstance(extent, Extent) else str(int(extent))

    def address(self, node: Element | Row) -> str:
        """Return the address of an element, or of a row's first element.  The offset, in C order, is computed in 64 bits."""
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

    def unary(self, node: Unary) -> str:
        operand = self.value(node.operand)
        if node.op == "not":
            return self.new(f"xor i1 {operand}, true")
        return self.new(f"fneg {self.real} {operand}" if node.kind is Real else f"sub i32 0, {operand}")

    def binary(self, node: Binary) -> str:
        if node.op in ("and", "or"):
            return self.choose(node, Literal(node.line, Bool, True), Literal(node.line, Bool, False))
        left, right = self.value(node.left), self.value(node.right)
        if node.kind is not Bool:
            return self.arithmetic(node.op, node.kind, left, right)
        if node.left.kind is Real:
            return self.new(f"fcmp {COMPARE_REALS[node.op]} {self.real} {left}, {right}")
        compare = COMPARE_WORDS if node.left.kind is Word else COMPARE_INTEGERS
        return self.new(f"icmp {compare[node.op]} i32 {left}, {right}")

    def choose(self, condition: Expr, yes: Expr, no: Expr) -> str:
        """Return one of two values.  The other value is not computed."""
        labels = self.label(), self.label()
        after = self.label()
        self.branch(condition, *labels)
        found = []
        for label, side in zip(labels, (yes, no), strict=True):
            self.start(label)
            value = self.value(side)
            end = self.label()  # the block in which the value's computation ends
            self.next_block(end)
            self.go(after)
            found.append(f"[ {value}, %{end} ]")
        self.start(after)
        return self.new(f"phi {self.type(yes.kind)} {', '.join(found)}")

    def call(self, node: Call) -> str:
        if node.callee.intrinsic is not None:
            return self.intrinsic(node.callee.name, [self.value(argument) for argument in node.args])
        f = self.printer.functions[node.callee.name]
        given = [f"{self.type(kind)} {self.value(a)}" for a, (_, kind) in zip(node.args, f.params, strict=True)]
        call = f"call {self.type(f.returns)} @in.{f.name}({', '.join(['ptr %t', *given])})"
        if f.returns is not None:
            return self.new(call)
        self.out(call)
        return ""

    def intrinsic(self, name: str, operands: list[str]) -> str:
        bits, precision = self.printer.bits, self.printer.precision
        for text in BY_BITS[name][bits] if name in BY_BITS else INTRINSICS[name]:
            filled = text.format(*operands, real=self.real, bits=bits, bias=precision.bias, fraction=precision.bits)
            operands.append(self.new(filled))
        return operands[-1]
