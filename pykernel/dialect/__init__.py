"""The dialect: typed Python that means the same in plain Python, in LLVM, in Numba and in generated C.

An algorithm is written once, as functions marked ``@kernel`` whose annotations give every type:

>>> class Line(Struct):
...     slope: Real[DIM]
>>> @kernel
... def predict(s: Line, x: Real[DIM]) -> Real:
...     y = real(0)
...     for j in range(len(x)):
...         y += s.slope[j] * x[j]
...     return y

``bind(predict, FLOAT32)`` returns a function that runs this kernel as plain Python on checked NumPy scalars;
``pykernel.engine`` compiles the kernel, and ``pykernel.language`` prints it as C.  A model's memory is one structured
array, whose bytes are the bytes of the C struct.  ``docs/dialect.md`` describes the language.
"""

from pykernel.dialect.digest import sources_digest
from pykernel.dialect.division import ratio
from pykernel.dialect.interpreter import Checked, bind
from pykernel.dialect.intrinsics import (
    absolute,
    as_signed,
    exact_square,
    floor_log2,
    floor_shift,
    index,
    multiply_high,
    pow2,
    pow2_rounded,
    quotient,
    sqrt,
    truncate,
    word,
)
from pykernel.dialect.kernels import (
    Kernel,
    chosen,
    intrinsic,
    kernel,
    placeholder,
    reachable,
    real,
    substitute,
    unroll,
    with_dsp,
)
from pykernel.dialect.memory import (
    Config,
    Layout,
    Memory,
    Model,
    Slot,
    Struct,
    Views,
    is_choice,
    layout,
    parts_of,
)
from pykernel.dialect.types import (
    CLASSES,
    DIM,
    FLOAT32,
    FLOAT64,
    INDEX_MAX,
    INT16,
    INTEGERS,
    OUTPUTS,
    PRECISIONS,
    Array,
    Bool,
    Constant,
    Extent,
    Index,
    Int,
    Int8,
    Int16,
    Precision,
    Ranged,
    Real,
    Scalar,
    Uint8,
    Uint16,
    Variable,
    Word,
    between,
    end_of,
    ends_of,
    extent,
    extents,
)

__all__ = [
    "CLASSES",
    "DIM",
    "FLOAT32",
    "FLOAT64",
    "INDEX_MAX",
    "INT16",
    "INTEGERS",
    "OUTPUTS",
    "PRECISIONS",
    "Array",
    "Bool",
    "Checked",
    "Config",
    "Constant",
    "Extent",
    "Index",
    "Int",
    "Int8",
    "Int16",
    "Kernel",
    "Layout",
    "Memory",
    "Model",
    "Precision",
    "Ranged",
    "Real",
    "Scalar",
    "Slot",
    "Struct",
    "Uint8",
    "Uint16",
    "Variable",
    "Views",
    "Word",
    "absolute",
    "as_signed",
    "between",
    "bind",
    "chosen",
    "end_of",
    "ends_of",
    "exact_square",
    "extent",
    "extents",
    "floor_log2",
    "floor_shift",
    "index",
    "intrinsic",
    "is_choice",
    "kernel",
    "layout",
    "multiply_high",
    "parts_of",
    "placeholder",
    "pow2",
    "pow2_rounded",
    "quotient",
    "ratio",
    "reachable",
    "real",
    "sources_digest",
    "sqrt",
    "substitute",
    "truncate",
    "unroll",
    "with_dsp",
    "word",
]
