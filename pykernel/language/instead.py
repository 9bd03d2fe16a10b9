"""Syntax, functions and names that the dialect does not have, and what to write instead."""

from __future__ import annotations

import ast

from pykernel.dialect.reserved import C_KEYWORDS

INSTEAD = {
    ast.Pow: "** differs between libraries; multiply",
    ast.LShift: "<< shifts a Word by an Index; shifts of an Index differ between Python and C for negative numbers and overflows: multiply, or use pow2()",
    ast.RShift: ">> shifts a Word by an Index; to shift an Index, use floor_shift()",
    ast.BitAnd: "& takes two Words; for conditions, use `and`; for an Index, use % with a power of two",
    ast.BitOr: "bit operations are not in the dialect; use `or` for conditions",
    ast.BitXor: "bit operations are not in the dialect; use `and`, `or` and `not` for conditions",
    ast.MatMult: "@ allocates memory; write the loops",
    ast.While: "`while` may run forever; use for … in range(…) with break",
    ast.With: "`with` has no meaning in C; leave it out",
    ast.Try: "exceptions do not exist on the device; return a status",
    ast.Raise: "exceptions do not exist on the device; return a status",
    ast.Assert: "assertions do not exist on the device; return a status",
    ast.Delete: "C cannot delete names; leave out `del`",
    ast.FunctionDef: "functions cannot be nested; move this one out and mark it @kernel",
    ast.AsyncFunctionDef: "functions cannot be nested; move this one out and mark it @kernel",
    ast.ClassDef: "classes belong at the top of the file",
    ast.Lambda: "functions cannot be nested; write a @kernel",
    ast.ListComp: "comprehensions allocate memory; write the loop",
    ast.SetComp: "comprehensions allocate memory; write the loop",
    ast.DictComp: "comprehensions allocate memory; write the loop",
    ast.GeneratorExp: "generators allocate memory; write the loop",
    ast.List: "lists allocate memory; use a field of a struct or a Constant table",
    ast.Tuple: "tuples have no C type; use separate names",
    ast.Dict: "dictionaries allocate memory; use fields of a struct",
    ast.Set: "sets allocate memory; use fields of a struct",
    ast.JoinedStr: "strings do not exist on the device; leave the string out",
    ast.Import: "imports belong at the top of the file",
    ast.ImportFrom: "imports belong at the top of the file",
    ast.Global: "the device has no globals; use a field of a struct",
    ast.Nonlocal: "the device has no globals; use a field of a struct",
    ast.AnnAssign: "the type of a local follows from its value; write name = value",
    ast.NamedExpr: "the order of side effects differs in C; assign in a separate statement",
    ast.Slice: "slices are not in the dialect; pass a row, as in s.v[i], or write a loop",
    ast.Starred: "C has no starred arguments; write each argument out",
    ast.Pass: "an empty block has no meaning; leave it out",
    ast.Match: "`match` is not in the dialect; use if / elif",
    ast.Yield: "generators do not exist on the device; write a loop",
    ast.YieldFrom: "generators do not exist on the device; write a loop",
}
"""Python's syntax -> what to write instead."""
IN_PLACE = {
    "abs": "absolute()",
    "int": "truncate()",
    "float": "real()",
    "min": "if",
    "max": "if",
    "print": "a status",
    "pow": "*",
}
"""Python's functions -> what to use instead."""
# macros and functions that a user's headers may define, and macros that compilers predefine in GNU mode
RESERVED = C_KEYWORDS | set(
    """offsetof typeof fabs fabsf exp memset memcpy stdin stdout stderr linux unix i386 mips sparc sun""".split()
)
