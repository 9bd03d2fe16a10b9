"""Print specialised functions as C99."""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel import dialect
from pykernel.dialect import (
    Array,
    Bool,
    Extent,
    Index,
    Int,
    Int8,
    Int16,
    Kernel,
    Precision,
    Real,
    Scalar,
    Struct,
    Uint8,
    Uint16,
    Word,
    parts_of,
)
from pykernel.language import acsl
from pykernel.language.c_text import annotated, comment, comment_block, number, rows_of
from pykernel.language.calls import Argument, Signature
from pykernel.language.effects import Effects, effects
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
    Kind,
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
from pykernel.language.primitives import C_TYPES, primitive, primitive_file
from pykernel.language.widths import Widths

WIDTH = 110  # longer statements are broken into several lines
CONDITION = re.compile(r"(\s*)\[(not )?(\w+)(?: (\w+))?\] ")
"""Matches the mark before a docstring's sentence that is true only for one choice: ``[keeps]``, ``[not keeps]``, ``[update EKF]``."""
OPERATORS = {"and": "&&", "or": "||", "not": "!", "//": "/"}
PRECEDENCE = {
    "or": 1,
    "and": 2,
    "&": 3,
    "==": 4,
    "!=": 4,
    "<": 5,
    "<=": 5,
    ">": 5,
    ">=": 5,
    "<<": 6,
    ">>": 6,
    "+": 7,
    "-": 7,
    "*": 8,
    "/": 8,
    "//": 8,
    "%": 8,
}
COMPARING = (4, 5)
UNARY, ATOM = 9, 11
INTEGER_TYPES = {
    Index: "int32_t",
    Int: "int32_t",
    Word: "uint32_t",
    Int16: "int16_t",
    Uint16: "uint16_t",
    Int8: "int8_t",
    Uint8: "uint8_t",
}
# names that the templates use after the prefix: functions and types in lower case, macros in upper case
GENERATED = frozenset(
    """t s init reset hash selftest trial_t make_up call strike replay crc32 arithmetic CONST ASSERT H NO_FPU STATE_BYTES RAM_BYTES CONST_BYTES CONFIG_HASH
    STATE_KIND STAMP GENERATOR BROKEN_BUILD FLASH UNROLL save load store restore wipe write_fn read_fn header chunk number recognise
    LOOP TURN MARKS INLINE
    scan look LOOKS fetch newest write_all write_buffer PLACE SNAPSHOT_BYTES SNAPSHOT_MISSING SNAPSHOT_FOREIGN SNAPSHOT_BROKEN SNAPSHOT_INVALID SNAPSHOT_FORMAT
    STORAGE_FAILED SNAPSHOT_MAGIC SNAPSHOT_VERSION SNAPSHOT_HEADER SNAPSHOT_CHUNK CRC_OF_ALL""".split()
)


CASTS = {"truncate": "int32_t", "index": "int32_t"}
"""Intrinsics that C expresses by a type conversion."""


def _narrow(node: Expr) -> Scalar | None:
    """Return the type of an element in memory if it is narrower than the element's type in expressions, else None."""
    scalar = node.array.kind.scalar if isinstance(node, Element) else None
    return scalar if scalar is not None and scalar.stored not in ("", "<i4", "<u4") else None


@dataclass
class Printer:
    """Prints functions for one model.

    prefix: the model's name.  public: name of a kernel -> name of the entry that the kernel implements.
    """

    prefix: str
    precision: Precision
    scalars: frozenset[str]  # fields that are scalars in C
    public: dict[str, str]
    primitives: set[str] = field(default_factory=set)  # runtime_c files that the code needs
    dsp: bool = False  # whether any function has a second implementation, for CPUs with DSP instructions
    unrolls: bool = False  # whether the code asks the compiler to unroll a loop
    inlines: bool = False  # whether some functions are to be inlined only if code size does not matter
    marks: bool = False  # whether loops and their iterations get marks, by which they are counted
    annotated: bool = False  # whether comments hold the annotations that a proof needs, see ``acsl``
    loops: dict[int, int] = field(default_factory=dict)  # ``id`` of a loop's node -> the number in its marks
    known: dict[str, Effects] = field(default_factory=dict)
    lengths: dict[str, dict[str, int]] = field(default_factory=dict)  # lengths of arrays, only if annotated
    in_ram: set[Any] = field(default_factory=lambda: {""})  # tables and function parameters in RAM, see ``places``
    functions: Functions = field(default_factory=dict)
    pointer: str = "s"
    # the configuration's choices; some sentences of docstrings are printed only for certain choices
    choices: Mapping[str, Any] = field(default_factory=dict)
    statuses: tuple[type[IntEnum], ...] = ()  # only members of these enumerations are printed as macros
    widths: Widths = field(default_factory=lambda: Widths({}, None))  # decides which operations on constants get a cast

    @property
    def macro(self) -> str:
        return self.prefix.upper()

    @property
    def real(self) -> str:
        """The C type of a Real, or of an input if the model has no reals."""
        return C_TYPES[self.precision.dtype.str[1:]]

    def type(self, kind: Any) -> str:
        others: dict[Any, str] = {Real: self.real, Bool: "bool", None: "void"}
        return others.get(kind) or INTEGER_TYPES[kind]

    def size(self, extent: Any) -> int:
        """Return an extent's value."""
        return extent.value(self.widths.capacities) if isinstance(extent, Extent) else int(extent)

    def extent(self, extent: Any, wide: str = "(int32_t)%s") -> str:
        """Return an extent as C text.  wide: the format of a capacity's macro if the size may not fit into an ``int``."""
        if not isinstance(extent, Extent):
            return str(extent)
        shape = wide if self.widths.extent_needs_width(extent) else "%s"
        return re.sub(r"[A-Z_]+", lambda m: shape % f"{self.macro}_{m[0]}", extent.text.replace("//", "/"))

    # ------------------------------------------------------------------------------------------ functions

    def all(self, functions: Functions) -> dict[str, list[str]]:
        """Return name -> lines of C, for every function."""
        self.functions = functions
        self.known = effects(functions)
        self.places(functions)
        if self.annotated:
            self.lengths = acsl.lengths(functions, frozenset(self.public), self.size)
        self.check_names(functions)
        self.callers = Counter(call.callee.name for f in functions.values() for call in f.calls)
        return {name: self.function(f) for name, f in functions.items()}

    def places(self, functions: Functions) -> None:
        """Find the parameters that take arrays in RAM, and the tables that must therefore be in RAM.

        Some CPUs need special instructions to read flash, so a pointer's type says whether it points to flash.  A
        parameter has one type, so all arrays that are passed to it must be in the same memory.  The place "" means RAM.
        """
        links = [
            *(
                {"", (name, param)}
                for name in self.public.keys() & functions.keys()
                for param, _ in functions[name].params
            ),
            *(
                {_lies(f, argument), (node.callee.name, param)}
                for f in functions.values()
                for node in walk(f.body)
                if isinstance(node, Call) and node.callee.name in functions
                for argument, (param, kind) in zip(node.args, functions[node.callee.name].params, strict=True)
                if isinstance(kind, Array)
            ),
        ]
        while new := {place for link in links if link & self.in_ram for place in link} - self.in_ram:
            self.in_ram |= new

    def flash(self, place: Any) -> str:
        return "" if place in self.in_ram else f"{self.macro}_FLASH "

    def takes_struct(self, name: str) -> bool:
        """Return whether a function takes a pointer to the model's memory."""
        return name in self.public or self.touches_struct(self.functions[name])

    def touches_struct(self, f: Function) -> bool:
        """Return whether a function uses the model's memory, directly or through its callees."""
        return bool(f.names[Field]) or any(self.takes_struct(name) for name in f.called & self.functions.keys())

    def is_elementary(self, f: Function) -> bool:
        """Return whether a function only computes a number from its arguments, and so should be inlined into its
        callers' loops.
        """
        return f.returns is Real and not self.takes_struct(f.name) and not self.known[f.name].writes

    def is_shared(self, f: Function) -> bool:
        """Return whether a function is called from three or more places, returns a value without side effects, and
        contains a condition but no loop.

        Such a function should not be inlined if the code must be short.  For int16, the result is always false, because
        int16 code calls small functions in place of operators.
        """
        whole = self.precision.is_int16
        asks = not whole and self.callers[f.name] >= 3 and f.returns is not None and not self.known[f.name].writes
        nodes = list(walk(f.body)) if asks else []
        chooses = any(isinstance(node, (If, Choice)) or getattr(node, "op", "") in ("and", "or") for node in nodes)
        return chooses and not any(isinstance(node, For) for node in nodes)

    def name(self, kernel_name: str) -> str:
        return f"{self.prefix}_{self.public.get(kernel_name, kernel_name)}"

    def pointer_of(self, f: Function) -> str:
        """Return the name of a function's pointer to the model: s, or the name in the source if s is the name of
        another variable.
        """
        taken = f.names[Local].union(name for name, _ in f.params)
        return "s" if "s" not in taken else f.pointer

    def doc(self, f: Function) -> str:
        """Return a docstring without the sentences that are true only for other choices, and without those that
        describe removed parameters.
        """
        gone = f.kernel.params.keys() - {f.pointer, *(name for name, _ in f.params)}
        about = re.compile(rf"\s*(?:{'|'.join(gone)}): |.*``(?:{'|'.join(gone)})``", re.DOTALL) if gone else None

        def resolve(sentence: str) -> str:
            found = CONDITION.match(sentence)
            if found and found[3] in self.choices:  # a user's docstring may begin with any text in brackets
                value = self.choices[found[3]]
                holds = (value.name == found[4] if found[4] else bool(value)) != bool(found[2])
                return found[1] + sentence[found.end() :] if holds else ""
            return "" if about and about.match(sentence) else sentence

        return "".join(map(resolve, re.split(r"(?<=\.)(?=\s)", f.doc))).strip()

    def said(self, text: str) -> str:
        """Return the text of a comment, with m.FIELD replaced by the field's name in C."""
        return re.sub(r"\bm\.([a-z]\w*)", lambda match: self._in_c(match[0], match[1]), text)

    def _in_c(self, text: str, name: str) -> str:
        owners = [kind.owners for kind in self.current.kernel.params.values() if getattr(kind, "owners", None)]
        if not owners or name not in owners[0]:
            return text
        return f"{self.pointer}->{name}" if issubclass(owners[0][name], Struct) else name

    def signature(self, f: Function) -> Signature:
        params = [self.pointer_parameter(f)] if self.takes_struct(f.name) else []
        params += [self.parameter(f, name, kind) for name, kind in f.params]
        return Signature(self.type(f.returns), self.name(f.name), tuple(params))

    def pointer_parameter(self, f: Function) -> Argument:
        return Argument(self.pointer_of(f), f"{self.prefix}_t", "*", bool(self.known[f.name].fields))

    def parameter(self, f: Function, name: str, kind: Kind) -> Argument:
        if not isinstance(kind, Array):
            return Argument(name, self.type(kind))
        size = "*" if kind.extents in ((1,), (...,)) else self.extent(kind.extents[0])
        # the number of values is known only for arrays of fixed length in public calls
        known = f.name in self.public and kind.extents[0] is not ...
        values = self.size(kind.extents[0]) if known else 0
        type_ = self.flash((f.name, name)) + self.type(kind.scalar)
        return Argument(name, type_, size, name in self.known[f.name].params, values)

    def function(self, f: Function) -> list[str]:
        self.pointer = self.pointer_of(f)
        self.current = f
        targets = (node.target for node in walk(f.body) if isinstance(node, Assign))
        self.assignments = Counter(target.name for target in targets if isinstance(target, Local))
        doc = comment_block(self.said(self.doc(f))) if f.doc and f.name not in self.public else []
        shared = self.is_shared(f)
        self.inlines |= shared
        inline = f"{self.macro}_INLINE " if shared else "inline " if self.is_elementary(f) else ""
        storage = f"{self.macro}_APART " if f.name in self.public else f"static {inline}"
        idle = [f"    (void){name};" for name, _ in f.params if name not in f.names[Local]]
        if f.name in self.public and not self.touches_struct(f):
            idle.insert(0, f"    (void){self.pointer};")
        lines = [*self.wrap(f"{storage}{self.signature(f)}"), "{", *idle, *self.block(f.body, 1), "}"]
        if f.kernel.dsp:
            faster = primitive(f.kernel.dsp, self.prefix).splitlines()
            lines = [f"#if {self.macro}_DSP", *faster, "#else", *lines, "#endif"]
            self.dsp = True
        return [*doc, *lines]

    # ----------------------------------------------------------------------------------------- statements

    def wrap(self, line: str) -> list[str]:
        """Break a long line at its outermost commas and operators."""
        if len(line) <= WIDTH:
            return [line]
        indent = " " * (len(line) - len(line.lstrip()) + 8)
        depth, best = 0, (99, 0)
        for i, ch in enumerate(line[:WIDTH]):
            depth += (ch in "([") - (ch in ")]")
            if (
                ch == " "
                and i > len(indent)
                and re.match(r" (&&|\|\||[-+*/] )|, ", line[i:] if ch == " " and line[i - 1] != "," else ", ")
            ):
                if depth <= best[0]:
                    best = (depth, i)
        if not best[1]:
            return [line]
        return [line[: best[1]].rstrip(), *self.wrap(indent + line[best[1] + 1 :])]

    def block(self, body: tuple[Statement, ...], depth: int) -> list[str]:
        lines: list[str] = []
        for statement, after in itertools.zip_longest(body, body[1:]):
            indent = "    " * depth
            if statement.above:
                lines += comment_block(self.said("\n".join(statement.above)), indent)
            if self.annotated:
                lines += annotated(self.said_before(statement), indent)
            first, *others = self.statement(statement, depth)
            if statement.beside and len(others) == 0 and len(first) + len(statement.beside) + 7 <= WIDTH:
                first += f" /* {comment(self.said(statement.beside))} */"
            elif statement.beside:
                lines += comment_block(self.said(statement.beside), indent)
            lines += [first, *others]
            if self.annotated:
                lines += annotated(acsl.after(statement, after, self.expression, self.real), indent)
        return lines

    def statement(self, node: Statement, depth: int) -> list[str]:
        indent = "    " * depth
        match node:
            case Assign():
                return self.wrap(f"{indent}{self.assignment(node)}")
            case Do(call=call):
                return self.wrap(f"{indent}{'' if call.kind is None else '(void)'}{self.expression(call)};")
            case Return(value=None):
                return [f"{indent}return;"]
            case Return(value=Expr() as value):
                return self.wrap(f"{indent}return {self.expression(value)};")
            case Leave(word=word):
                return [f"{indent}{word};"]
            case For():
                return self.loop(node, depth)
            case If():
                return self.chain(node, depth)
        raise TypeError(type(node).__name__)

    def said_before(self, node: Statement) -> list[str]:
        """Return the annotations before a statement."""
        f = self.current
        return acsl.before(node, f, self.expression, self.lengths[f.name])

    def loop(self, node: For, depth: int) -> list[str]:
        indent, v, up = "    " * depth, node.variable, node.step > 0
        move = f"{v}{'++' if up else '--'}" if abs(node.step) == 1 else f"{v} {'+' if up else '-'}= {abs(node.step)}"
        head = (
            f"{indent}for (int32_t {v} = {self.expression(node.start)}; "
            f"{v} {'<' if up else '>'} {self.operand(node.stop, UNARY)}; {move}) {{"
        )
        ask = [f"{indent}{self.macro}_UNROLL"] if node.unroll else []
        self.unrolls |= node.unroll
        turn = []
        if self.marks:
            loop = self.loops.setdefault(id(node), len(self.loops) + 1)
            ask.insert(0, f"{indent}{self.macro}_LOOP({loop})")
            turn = [f"{indent}    {self.macro}_TURN({loop})"]
        return [*ask, *self.wrap(head), *turn, *self.block(node.body, depth + 1), f"{indent}}}"]

    def chain(self, node: If, depth: int) -> list[str]:
        """Return the lines of an if.  An if that is the only statement of an else is printed as ``else if``."""
        indent, word, lines = "    " * depth, "if", list[str]()
        while True:
            lines += self.wrap(f"{indent}{word} ({self.expression(node.condition)}) {{")
            if self.annotated:
                lines += annotated(acsl.within(node, self.expression, self.real), indent + "    ")
            lines += self.block(node.body, depth + 1)
            match node.orelse:
                case (If(above=(), beside="") as only,):
                    said = self.said_before(only) if self.annotated else []
                    node, word = only, " ".join(["} else", *annotated(said, ""), "if"])
                case ():
                    idle = [f"{indent}}} else {{", f"{indent}    /* nothing */"] if word != "if" else []
                    return [*lines, *idle, f"{indent}}}"]
                case others:
                    return [*lines, f"{indent}}} else {{", *self.block(others, depth + 1), f"{indent}}}"]

    def assignment(self, node: Assign) -> str:
        target = self.element(node.target) if isinstance(node.target, Element) else self.expression(node.target)
        if (narrow := _narrow(node.target)) is not None:
            value = self.expression(node.value)
            if node.op:
                value = f"{self.expression(node.target)} {node.op} {self.operand(node.value, UNARY)}"
            return f"{target} = ({self.type(narrow)})({value});"
        one = isinstance(node.value, Literal) and node.value.kind is Index and node.value.value == 1
        if one and node.op in ("+", "-"):
            return f"({target}){node.op * 2};" if target.startswith("*") else f"{target}{node.op * 2};"
        declare = ""
        if node.declares and isinstance(node.target, Local):
            const = "const " if self.assignments[node.target.name] == 1 else ""
            declare = f"{const}{self.type(node.target.kind)} "
        return f"{declare}{target} {node.op}= {self.expression(node.value)};"

    # ---------------------------------------------------------------------------------------- expressions

    def operand(self, node: Expr, least: int) -> str:
        text = self.expression(node)
        return f"({text})" if self.level(node) < least else text

    def level(self, node: Expr) -> int:
        match node:
            case Binary(op=op):
                return PRECEDENCE[op]
            case Choice():
                return 0
            case Unary() | ToReal():
                return UNARY
            case Element() if _narrow(node):
                return UNARY
            case Literal(kind=kind, value=value) | Member(kind=kind, value=value) if kind is not Bool and value < 0:
                return UNARY
        return ATOM

    def expression(self, node: Expr) -> str:
        match node:
            case Literal(kind=kind, value=value) if kind is Bool:
                return "true" if value else "false"
            case Literal(kind=kind, value=value):
                return self.number(kind, value)
            case Member(value=value):
                return f"{self.macro}_{value.name}" if type(value) in self.statuses else str(int(value))
            case Parameter(kind=Array(), name=name) | Named(kind=Array(), name=name):
                return f"{self.prefix}_{name.lower()}"
            case Parameter(name=name) | Named(name=name):
                return f"{self.macro}_{name.upper()}"
            case Local(name=name):
                return name
            case Length(extent=extent):
                return self.extent(extent)
            case Field(name=name):
                return f"{'&' if name in self.scalars else ''}{self.pointer}->{name}"
            case Row(array=array, index=index):
                return f"{self.expression(array)}[{self.expression(index)}]"
            case Element():
                # a narrow element is widened when it is read, because an int may have 16 bits
                return f"({self.type(node.kind)}){self.element(node)}" if _narrow(node) else self.element(node)
            case Unary(op=op, operand=operand):
                return f"{OPERATORS.get(op, op)}{self.operand(operand, UNARY + 1)}"
            case ToReal(operand=operand):
                return f"({self.real}){self.operand(operand, UNARY + 1)}"
            case Choice(condition=condition, yes=yes, no=no):
                return f"{self.operand(condition, ATOM)} ? {self.operand(yes, UNARY)} : {self.operand(no, UNARY)}"
            case Binary():
                return self.binary(node)
            case Call():
                return self.call(node)
        raise TypeError(type(node).__name__)

    def element(self, node: Element) -> str:
        array = node.array
        if isinstance(array, Field) and array.name in self.scalars:
            return f"{self.pointer}->{array.name}"
        if isinstance(array, Local) and isinstance(array.kind, Array) and array.kind.extents == (1,):
            return f"*{array.name}"
        return self.expression(array) + "".join(f"[{self.expression(i)}]" for i in node.indices)

    def binary(self, node: Binary) -> str:
        level = PRECEDENCE[node.op]
        # brackets make C's rules of precedence visible; a chain of operators of equal precedence needs no brackets
        chained = isinstance(node.left, Binary) and self.level(node.left) == level and level not in COMPARING
        left = self.operand(node.left, level if chained else UNARY)
        if self.widths.needs_width(node):  # an int may have 16 bits
            left = f"({self.type(node.kind)}){self.operand(node.left, ATOM)}"
        right = self.operand(node.right, UNARY)
        return f"{left} {OPERATORS.get(node.op, node.op)} {right}"

    def call(self, node: Call) -> str:
        callee: Kernel = node.callee
        args = [self.expression(argument) for argument in node.args]
        if callee.intrinsic is not None:
            if callee.name in CASTS:
                return f"({CASTS[callee.name]}){self.operand(node.args[0], ATOM)}"
            self.primitives.add(callee.name)
            return f"{self.prefix}_{callee.name}({', '.join(args)})"
        if self.takes_struct(callee.name):
            args.insert(0, self.pointer)
        return f"{self.name(callee.name)}({', '.join(args)})"

    def runtime(self) -> list[str]:
        """Return the text of the files of runtime_c that the printed code needs."""
        # files of macros, such as the one that asks the compiler to unroll a loop
        asked = (
            ["apart"] * bool(self.public)
            + ["dsp"] * self.dsp
            + ["unroll"] * self.unrolls
            + ["inline"] * self.inlines
            + ["marks"] * self.marks
        )
        called = [primitive_file(name, self.precision) for name in sorted(self.primitives)]
        files = [*(f"{name}.h" for name in asked), *called, "crc32.h"]
        return [primitive(file, self.prefix, annotated=self.annotated) for file in files]

    # ------------------------------------------------------------------------------------------------- names

    def check_names(self, functions: Functions) -> None:
        """Refuse the code if two things in it would have the same name in C."""
        kernels = (value for value in vars(dialect).values() if isinstance(value, Kernel))
        meanings: dict[str, Any] = {f"{self.prefix}_{kernel.name}": kernel for kernel in kernels}
        meanings |= {f"{self.macro}_{member.name}": member for kind in self.statuses for member in kind}
        meanings |= {f"{self.macro}_{symbol}": symbol for f in functions.values() for symbol in _capacities(f.kernel)}

        def claim(f: Function, line: int, name: str, meaning: Any, what: str) -> None:
            own = name[len(self.prefix) + 1 :]
            if (
                own in GENERATED
                or own.startswith(("learned_", "assert_", "snapshot_", "stored_"))
                or meanings.setdefault(name, meaning) != meaning
            ):
                raise DialectError(f.file, line, f"{what} would be a second {name} in C; choose another name")

        for f in functions.values():
            claim(f, f.kernel.function.__code__.co_firstlineno, self.name(f.name), f.kernel, f"the kernel {f.name}")
            for node in walk(f.body):
                if isinstance(node, Named):
                    claim(f, node.line, self.expression(node), node.constant, f"the constant {node.name}")
                elif isinstance(node, Parameter):
                    claim(f, node.line, self.expression(node), (Parameter, node.name), f"the parameter {node.name}")

    # -------------------------------------------------------------------------------------------------- data

    def data(self, functions: Functions, config: Any, docs: Mapping[str, str]) -> dict[str, list[dict[str, Any]]]:
        """Return the parameters, constants and tables that the functions still use, in the form that the templates take.

        Tables of modules come first, and tables of the configuration follow.  docs: name of a parameter -> its comment.
        """
        nodes = [node for f in functions.values() for node in walk(f.body)]
        named = {node.name: node for node in nodes if isinstance(node, Named)}
        used = {node.name: node for node in nodes if isinstance(node, Parameter)}
        parameters = [(used[name], getattr(config, name), comment(docs.get(name, ""))) for name in sorted(used)]
        constants = [(node, node.constant.value(self.precision)) for node in named.values()]
        return {
            "parameters": [
                {"name": node.name.upper(), "value": self.macro_value(node.kind, value), "doc": doc}
                for node, value, doc in parameters
                if not isinstance(node.kind, Array)
            ],
            "constants": [
                {"name": node.name, "value": self.macro_value(Real, value)}
                for node, value in constants
                if node.kind is Real
            ],
            "tables": [
                *(self.table(node, value, "") for node, value in constants if isinstance(node.kind, Array)),
                *(self.table(node, value, doc) for node, value, doc in parameters if isinstance(node.kind, Array)),
            ],
        }

    def number(self, kind: Any, value: Any) -> str:
        """Return a number of this kind as a literal."""
        if kind is Real:
            return number(value, self.precision)
        return f"{int(value)}{'u' if kind is Word else ''}"

    def macro_value(self, kind: Any, value: Any) -> str:
        text = self.number(kind, value)
        return f"({text})" if text.startswith("-") else text

    def table(self, node: Named | Parameter, values: np.ndarray, doc: str) -> dict[str, Any]:
        """Return a table of constant numbers.  The entry "text" is the part between the initialiser's outermost braces."""
        scalar, width = node.kind.scalar, values.shape[-1]
        # a constant may have a different length in each precision
        sizes = node.kind.extents if isinstance(node, Parameter) else values.shape
        extents = "".join(f"[{self.extent(size)}]" for size in sizes)
        items = [self.number(scalar, value) for value in values.flat]
        rows = [rows_of(items[start : start + width]) for start in range(0, len(items), width)]
        name = self.expression(node)
        return {
            "name": name,
            "declaration": f"static const {self.flash(node.name)}{self.type(scalar)} {name}{extents}",
            "text": rows[0] if values.ndim == 1 else ",\n    ".join(f"{{{row}}}" for row in rows),
            "bytes": values.nbytes,
            "doc": doc,
        }


def _lies(f: Function, array: Expr) -> Any:
    """Return the place of an array: the name of a table, a parameter of the function, or "" for RAM."""
    while isinstance(array, (Row, Element)):
        array = array.array
    if isinstance(array, Local):
        return (f.name, array.name) if array.name in dict(f.params) else ""
    return array.name if isinstance(array, (Named, Parameter)) else ""


@functools.cache
def _capacities(kernel: Kernel) -> list[str]:
    """Return the capacities on which the sizes of a kernel's structs and tables depend."""
    kinds = [part for kind in kernel.params.values() for part in parts_of(kind)]
    arrays = [array for kind in kinds for array in kind.fields.values() if isinstance(array, Array)]
    extents = [e for array in arrays for e in array.extents]
    return [symbol for e in extents if isinstance(e, Extent) for symbol in e.symbols]
