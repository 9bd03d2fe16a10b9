"""Generate the recorder: C code that sends rows as frames, which ``pykernel.rows.frames`` reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pykernel.host.replay import LogColumns
from pykernel.language.c_text import comment
from pykernel.rows.frames import CODES, FORMAT, PARTS
from pykernel.spec.model import Spec

CALL = 24
"""Largest number of characters in a recorded call."""
OFTEN = 16
"""Number of rows and calls between two of the frames that describe the recording.  One such frame names one column."""
AROUND = 2 + 1 + 2 + 4 + 1 + 4
"""Number of bytes in a row's frame besides the parts: two zeros around the frame, kind, number of the start, number of the row,
mask of the parts, CRC."""


def recorder_files(
    spec: Spec, context: Mapping[str, Any], render: Callable[[str, Mapping[str, Any]], str]
) -> dict[str, str]:
    """Return the recorder's two files: path -> text."""
    program, columns, name = spec.program, LogColumns(spec, "the log"), spec.name
    answers = [column for column, (question, _) in columns.answers.items() if question == program.asks]
    dtypes = {
        "x": spec.real.dtype,
        "label": program.label_dtype(spec.real),
        "answer": program.written(program.asks).scalar.dtype(spec.real),
    }
    named = {"x": columns.inputs, "label": columns.labels, "answer": answers}
    types = {"x": context["real"], "label": context["label_type"], "answer": context["main"]["type"]}
    sizes = {part: len(names) * dtypes[part].itemsize for part, names in named.items()}
    shown = {"time": "uint32_t", **types, "status": "int32_t", "hash": "uint32_t"}
    without = {"label"} if context["label_kind"] == "none" else set[str]()
    without |= set() if context["persists"] else {"hash"}
    every = [each for names in named.values() for each in names]
    longest = max([sum(sizes.values()) + 3 * 4, CALL, *(len(each.encode()) for each in every)]) + AROUND
    more: dict[str, Any] = {
        "columns": [{"name": comment(each), "bytes": ", ".join(map(str, [*each.encode(), 0]))} for each in every],
        "codes": {part: next(code for code in CODES if np.dtype(code) == dtype) for part, dtype in dtypes.items()},
        "counts": {part: len(names) for part, names in named.items()},
        "parts": [
            {"name": part, "bit": f"{1 << i}u", "type": shown[part], "count": len(named.get(part, [part]))}
            for i, part in enumerate(PARTS)
            if part not in without
        ],
        "frame": longest + longest // 254 + 1,
        "call": CALL,
        "format": FORMAT,
        "often": OFTEN,
        "asked": f"{name}_{program.asks}",
        "asked_short": program.asks,
    }
    return {f"src/{name}_log.{kind}": render(f"log.{kind}", {**context, **more}) for kind in "hc"}
