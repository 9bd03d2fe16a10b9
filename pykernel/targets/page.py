"""Make an HTML file that needs no network, in which a model's generated C code predicts and learns recorded rows while
the reader watches.
"""

from __future__ import annotations

import base64
import html
import json
import re
import string
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pykernel.algorithms.signal.state import SignalStatus
from pykernel.errors import UserError
from pykernel.gen.project import build, page_source, state_hash
from pykernel.host.model import HostModel
from pykernel.report.markup import Html, element
from pykernel.report.page import HINT, SCRIPT, STYLE, policy
from pykernel.spec.model import Spec
from pykernel.spec.summary import summary
from pykernel.targets.build import data_file, model_files
from pykernel.targets.target import find_target
from pykernel.targets.wasm_runner import module

MOST_BYTES = 8_000_000
"""Largest number of bytes of rows in a page.  Encoded as text, the rows take a third more space."""
ENTRIES = ("model", "x", "label", "values", "position", "init", "ask", "learn", "alarm", "hash")


def need_page(spec: Spec, x: np.ndarray, y: np.ndarray) -> None:
    """Raise UserError if there are too many rows, or if the model forecasts a channel of its signal.  x, y: see ``make_page``."""
    if x.nbytes + y.nbytes > MOST_BYTES:
        most = MOST_BYTES * len(x) // (x.nbytes + y.nbytes)
        raise UserError(f"{len(x):,} rows are too many for a page; give at most {most:,} of them")
    if spec.forecasts:
        raise UserError(
            f"{spec.name} forecasts its own signal, which a page does not support yet; use pykernel simulate"
        )


def make_page(
    spec: Spec,
    x: np.ndarray,
    y: np.ndarray,
    beside: Mapping[str, str] | None = None,
    figures: Sequence[Html] = (),
) -> str:
    """Return the text of the page.

    x, y: inputs (rows, D) and labels, in the types of ``pykernel.gen.streams.as_taken``.  beside: dict that maps the
    name of another machine to its hash of the state after the last row.  figures: figures of a report on these rows.

    The page contains the host's hash of the state after the last row, and compares it with the browser's hash.  Raises
    UserError as ``need_page`` does.
    """
    need_page(spec, x, y)
    program, learns = spec.program, spec.inner.program.learns
    inputs = list(spec.input.columns or [f"x{j}" for j in range(spec.dim)])
    project = build(spec)
    files = model_files(project)[0] | {"page.c": page_source(project)}
    with tempfile.TemporaryDirectory(prefix="pykernel-") as folder:
        code = module(Path(folder), files, [f"page_{entry}" for entry in ENTRIES], find_target("wasm32"))
    host = HostModel(spec, project.drop, raw=True)
    host.prequential(x, y)
    content = {
        "name": spec.name,
        "kind": program.label_kind,
        "learns": learns,
        "columns": list(spec.signal.channels) if spec.signal is not None else inputs,
        "inputs": inputs,
        "between": [SignalStatus.GATHERING] if program.reads else [],  # for a signal, the status between steps
        "raises": bool(program.alarms),
        "labels": list(spec.label_columns or ["y"]) if program.label_kind != "none" else [],
        "classes": list(spec.label.classes or ()),
        "statuses": {int(status): status.name for status in program.status},
        "alarms": [int(status) for status in program.alarms],
        "number": _type(x.dtype),
        "labelType": _type(y.dtype),
        "labelCount": int(np.prod(y.shape[1:], dtype=int)),
        "labelUnit": 2.0**-spec.label_shift if program.is_int16 and program.label_kind != "class" else 1.0,  # type: ignore[attr-defined]
        "labelZero": spec.label_offset,
        "answer": "values"
        if program.written(program.forecasts(spec.config)).scalar.value.name == "Real"
        else "position",
        "rows": len(x),
        "fields": _fields(host),
        "asStored": ", standardised" if spec.standardises else "",
        "bytes": project.figures["ram_bytes"],
        "codeBytes": len(code),
        "hash": f"{state_hash(spec, host.memory):08x}",
        "beside": dict(beside or {}),
        "code": _text(code),
        "x": _text(x.tobytes()),
        "y": _text(y.tobytes()),
    }
    template = data_file("page.html")
    # only the template's scripts may run; the element with the rows holds data, which is not run
    scripts = [
        string.Template(each).substitute(script=SCRIPT) for each in re.findall(r"(?s)<script>(.*?)</script>", template)
    ]
    return string.Template(template).substitute(
        policy=policy(*scripts, more="'wasm-unsafe-eval'"),
        style=STYLE,
        figures=_beside(figures),
        script=SCRIPT,
        title=html.escape(f"{spec.name} {'learns' if learns else 'predicts'} {len(x):,} rows while you watch"),
        then=", then learns it" if learns else "",
        summary=html.escape(summary(spec)[:1].upper() + summary(spec)[1:]),
        # text within a <script> element must not contain the element's end tag
        content=json.dumps(content, allow_nan=False).replace("<", "\\u003c"),
    )


def _beside(figures: Sequence[Html]) -> Html:
    if not figures:
        return Html("")
    told = element("p", f"This report on the same rows was made on the PC, together with this page. {HINT}")
    return element("section", told, element("div", *figures, class_="two"), class_="made")


def _type(dtype: np.dtype) -> str:
    return f"{'Float' if dtype.kind == 'f' else 'Int'}{8 * dtype.itemsize}Array"


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _fields(host: HostModel) -> dict[str, Any]:
    """Return the positions in memory, the shapes and the types of the stored vectors (``v``) and of their number
    (``n``).

    The result is empty for models without a budget.
    """
    found = {}
    for slot in host.memory.layout.slots:
        if slot.struct and slot.name in ("v", "n"):
            dtype = slot.array.scalar.dtype(host.spec.real)
            found[slot.name] = {"at": slot.offset, "shape": list(slot.shape), "type": _type(dtype)}
    return found if len(found) == 2 else {}
