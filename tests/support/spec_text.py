"""A spec as the text of a file, and that text damaged: what a user, a script or an attacker may hand in."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

Content = dict[str, Any]

WORDS = (
    "-1", "0", "1", "2", "-0.0", "1e-320", "1e-45", "1e-38", "1e-7", "0.5", "1e7", "1e38", "1e39", "1e308", "1e400", "inf",
    "-inf", "nan", "2147483647", "2147483648", "9223372036854775808", "1" * 400, "true", '""', '"m"', '"\\u0000"',
    '"../x"', '"gaussian"', '"klms"', '"nt"', "[]", "[[]]", "[1, 2]", "[[1.0], [1.0, 2.0]]", '["a", "a"]', "{}",
    '{ a = 1 }', "1979-05-27", "'''x'''",
)  # fmt: skip
"""Values that belong nowhere, or only just."""


def toml(content: Content) -> str:
    top = [f"{key} = {_value(value)}" for key, value in content.items() if not isinstance(value, dict)]
    for section, keys in content.items():
        if isinstance(keys, dict):
            top += [f"[{section}]", *(f"{key} = {_value(value)}" for key, value in keys.items())]
    return "\n".join(top) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value)


def damaged(text: str, rng: np.random.Generator) -> str:
    """One to three lines changed, dropped, doubled, moved or broken."""
    lines = text.splitlines()
    for _ in range(int(rng.integers(1, 4))):
        i = int(rng.integers(len(lines)))
        key, equals, value = lines[i].partition(" = ")
        how = rng.random()
        if how < 0.55 and equals:
            lines[i] = f"{key} = {_other(value, rng)}"
        elif how < 0.65:
            lines.insert(i, lines[int(rng.integers(len(lines)))])
        elif how < 0.75 and len(lines) > 1:
            del lines[i]
        elif how < 0.85 and equals:
            lines[i] = f"{key[:-1]} = {value}" if rng.random() < 0.5 else f"{key}_ = {value}"
        elif how < 0.92:
            lines.append(lines.pop(i))
        else:
            at = int(rng.integers(len(lines[i]) + 1))
            lines[i] = (
                lines[i][:at] + str(rng.choice(["\x00", "é", '"', "]", "#", "\u2028", "= ", "\\"])) + lines[i][at + 1 :]
            )
    return "\n".join(lines) + "\n"


def _other(value: str, rng: np.random.Generator) -> str:
    try:
        number = float(value)
    except ValueError:
        return str(rng.choice(WORDS))
    near = [number * 10.0 ** rng.uniform(-40, 40), number * 10.0 ** rng.uniform(-3, 3), -number, number + 1, number - 1]
    other = float(rng.choice(near))
    if "." not in value and "e" not in value and abs(other) < 1e15:
        return str(round(other))
    return repr(other) if rng.random() < 0.7 else str(rng.choice(WORDS))
