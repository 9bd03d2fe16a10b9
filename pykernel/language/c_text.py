"""Print numbers and comments as C text, and limit the length of C lines."""

import re
import textwrap
import unicodedata
from typing import Any

import numpy as np

from pykernel.dialect import FLOAT32, Precision
from pykernel.language.calls import LONGEST


def number(value: Any, precision: Precision) -> str:
    """Return a number in this precision as a C literal: the shortest decimal that reads back to the same bits."""
    if precision.is_int16:
        return str(int(value))
    value = precision.real(value)
    if not np.isfinite(value):
        raise ValueError(f"C has no literal for {value}")
    if precision is not FLOAT32:
        return repr(value.item())
    # NumPy's versions write exponents in different ways.  The format is fixed here, because the checked-in examples
    # contain this text
    if value == 0 or 1e-4 <= abs(float(value)) < 1e6:
        return np.format_float_positional(value, trim="0") + "f"
    return np.format_float_scientific(value, trim="-", exp_digits=2) + "f"


def comment(text: str) -> str:
    """Make text safe within a C comment: break up comment delimiters and trigraphs, remove line splices, and replace
    invisible characters with blanks.
    """
    if not text.replace("\n", "").isprintable():
        text = "".join(ch if ch == "\n" or not unicodedata.category(ch).startswith("C") else " " for ch in text)
    text = re.sub(r"\?(?=\?)", "? ", text.replace("*/", "* /").replace("/*", "/ *"))
    return "\n".join(re.sub(r"[\s\\]+$", "", line) for line in text.splitlines())


def comment_block(text: str, indent: str = "") -> list[str]:
    lines = comment(textwrap.dedent(text)).strip().splitlines()
    if len(lines) <= 1:
        return [f"{indent}/* {line} */" for line in lines]
    return (
        [f"{indent}/* {lines[0]}"]
        + [f"{indent} * {line}".rstrip() for line in lines[1:-1]]
        + [f"{indent} * {lines[-1]} */"]
    )


def annotated(texts: list[str], indent: str) -> list[str]:
    """Return one line of C, ``/*@ … */``, for each annotation."""
    return [f"{indent}/*@ {text} */" for text in texts]


def fold(text: str) -> str:
    """Break the lines of C text that are longer than LONGEST, for example because of a long name."""
    lines: list[str] = []
    in_comment = spliced = False
    for line in text.removesuffix("\n").split("\n"):
        lines += _folded(line, in_comment, spliced or line.lstrip().startswith("#"))
        if line.rfind("/*") != line.rfind("*/"):
            in_comment = line.rfind("/*") > line.rfind("*/")
        spliced = line.endswith("\\")
    folded = "\n".join(lines) + "\n"
    if folded == text:
        return text
    assert tokens(folded) == tokens(text), "folding changed the code"
    return folded


TOKEN = re.compile(
    r"""/\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'  # comments, strings, characters
    | \.?\d(?:[eEpP][+-]|[\w.])* | \w+  # numbers, names
    | \n | <<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[-+*/%&|^<>=!]=|&&|\|\||\#\#|\S""",
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> list[str]:
    """Return the tokens of C text, without comments.  A line end is a token only if it ends a directive."""
    found, directive, first = [], False, True
    for token in TOKEN.findall(text.replace("\\\n", " ")):
        if token == "\n":
            if directive:
                found.append(token)
            directive, first = False, True
        elif not token.startswith("/*"):
            directive |= first and token == "#"
            found.append(token)
            first = False
    return found


def _folded(line: str, in_comment: bool, directive: bool, continued: bool = False) -> list[str]:
    """Break a line into shorter lines.

    in_comment: whether the line begins within a comment.  directive: whether the line belongs to a directive.
    """
    if len(line) <= LONGEST:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    if not in_comment and (
        match := re.fullmatch(r"(\s*)(\S.*?) /\* (.*) \*/", line)
    ):  # a comment that follows code moves to the line above
        return [*_folded(f"{indent}/* {match[3]} */", False, False), *_folded(indent + match[2], False, directive)]
    if in_comment or re.match(r"\s*/\* ", line):
        indent = indent if in_comment else indent + " "
        at = line.rfind(" ", len(indent) + 2, LONGEST + 1)
        return [line[:at].rstrip(), *_folded(f"{indent}* {line[at + 1 :]}", True, False)] if at > 0 else [line]
    # break after a comma or before an operator, else at a blank, else after an opening bracket, else between
    # two extents
    for pattern in (r"(?<=[,;]) | (?=&& |\|\| |\? |: )", " ", r"(?<=\()", r"(?<=\])(?=\[)"):
        places = [m.start() for m in re.finditer(pattern, line[: LONGEST - 1])]
        places = [at for at in places if at > len(indent) + 8 and line[:at].count('"') % 2 == 0]
        if places:
            at, splice = places[-1], " \\" if directive else ""
            deeper = indent if continued or len(indent) >= LONGEST // 2 else f"{indent}        "
            return [line[:at] + splice, *_folded(f"{deeper}{line[at:].lstrip()}", False, directive, True)]
    # the line cannot be broken, but may fit with less indentation
    return [line[min(len(line) - LONGEST, len(indent)) :]]


def rows_of(items: list[str], width: int = 100) -> str:
    """Return the items, separated by commas, in lines of at most about this width.  All lines but the first are indented."""
    lines, line = [], ""
    for item in items:
        if line and len(line) + len(item) + 2 > width:
            lines.append(line + ",")
            line = item
        else:
            line = f"{line}, {item}" if line else item
    return ",\n    ".join([part.rstrip(",") for part in lines] + [line])
