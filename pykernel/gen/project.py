"""Turn a spec into a folder of C code: specialise the functions, print them, and fill the templates."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import json
import re
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2

from pykernel.dialect import Memory
from pykernel.errors import UserError
from pykernel.gen.context import STAMP, of_code, of_memory, of_spec
from pykernel.gen.firmware import check_files, check_program, page_program
from pykernel.gen.micropython import micropython_files
from pykernel.gen.model import bare, model_code
from pykernel.gen.packages import bound_macros, package_files
from pykernel.gen.recorder import recorder_files
from pykernel.gen.sbom import sbom
from pykernel.gen.snapshot import snapshot_context
from pykernel.gen.write import MANIFEST_FORMAT, extras, project_folder, write_files
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.language.c_text import comment, fold
from pykernel.language.calls import Signature
from pykernel.language.ir import DialectError
from pykernel.language.primitives import runtime_text
from pykernel.report import sections
from pykernel.report.document import Document
from pykernel.spec.model import Spec

SAID = ("proof", "misra", "tools")
"""Keys of the manifest whose values are sentences about the results of checks."""
HASHES = ("config_hash", "state_kind")
"""Names of the numbers that identify a model.  A model that does not learn on the device has no state_kind."""


@dataclass(frozen=True)
class Project:
    """The generated files of a model, not yet written."""

    spec: Spec
    files: dict[str, str]
    figures: dict[str, Any]
    drop: tuple[str, ...]  # fields that the C code does not have
    calls: dict[str, Signature]  # the public functions, by the name after NAME_
    replay: str = field(repr=False)  # C code of the check's driver
    start: dict[str, bytes] = field(default_factory=dict, repr=False)
    """The learned state from which the device starts, as a file for ``pykernel state replay`` and for a later check."""

    @property
    def sources(self) -> dict[str, str]:
        """The text of the model's C files, by file name."""
        return {Path(path).name: text for path, text in self.files.items() if re.match(r"src/.*\.[ch]$", path)}


@dataclass(frozen=True, repr=False)
class Generated:
    """The result of ``generate``.

    figures: the project's figures, such as "state_bytes".  default: the default rule; None if the spec names a rule.
    """

    folder: Path
    files: list[Path]
    figures: dict[str, Any]
    default: dict[str, Any] | None

    def __repr__(self) -> str:
        parts = {"state": "state_bytes", "work": "work_bytes", "constants": "const_bytes"}
        sizes = ", ".join(f"{self.figures[key]:,} bytes of {part}" for part, key in parts.items())
        return f"{self.figures['name']} in {self.folder}: {len(self.files)} files; {sizes}"

    @property
    def page(self) -> Document:
        """The result as a document for people to read."""
        return sections.generated(str(self.folder), [str(path) for path in self.files], self.figures, self.default)

    def _repr_html_(self) -> str:
        return self.page._repr_html_()


def generate(
    spec: Spec,
    out: str | Path,
    memory: Memory | None = None,
    force: bool = False,
    also: Collection[str] = (),
) -> Generated:
    """Write the C project of a model.

    If there is an error, no file is written.
    memory: the learned state from which the device starts; if not given, the device starts untrained.
    force: also overwrite files that were changed by hand; without ``force``, a file that was changed by hand is an
    error.
    also: the ``EXTRAS`` to write in addition to the model.  Extras that the folder already has are written again.
    """
    folder = Path(out)
    project = build(spec, memory, also=also)
    with project_folder(folder):
        if (before := extras(folder)) - {*also}:
            project = build(spec, memory, also=before | {*also})
        files = write_files(folder, {**project.files, **project.start}, force)
    return Generated(folder, files, project.figures, spec.default)


def build(
    spec: Spec,
    memory: Memory | None = None,
    checks: Sequence[Mapping[str, str]] = (),
    also: Collection[str] = (),
    annotated: bool = False,
    said: Mapping[str, str] | None = None,
) -> Project:
    """Return everything that ``generate`` writes.

    checks, said: results for VALIDITY.md, its HTML and the manifest (see ``gen.record``).  The header also has the
    instruction bounds in ``checks``.  annotated: whether the C code has annotations for a proof.
    """
    try:
        return _build(spec, memory, checks, also, annotated, said or {})
    except DialectError as error:
        if spec.custom is None:
            raise
        # the custom kernel cannot be used with this model, for example because both define the same name
        place = (
            ""
            if error.file == spec.custom.file
            else f"{spec.custom.file}: {spec.custom.name} cannot be used with this model: "
        )
        raise UserError(f"{place}{error}") from None


def check_sources(project: Project, timed: bool = False) -> dict[str, str]:
    """Return the program that runs the host's jobs in an emulator: file name -> text.  timed: whether it also counts CPU cycles."""
    return check_program(project.spec, project.files[f"src/{project.spec.name}.h"], timed, render)


def page_source(project: Project) -> str:
    """Return the C code through which a web page calls a model."""
    return page_program(project.spec, project.files[f"src/{project.spec.name}.h"], render)


def _build(
    spec: Spec,
    memory: Memory | None,
    checks: Sequence[Mapping[str, str]],
    also: Collection[str],
    annotated: bool,
    said: Mapping[str, str],
) -> Project:
    code, valid = model_code(spec, annotated), spec.program.valid
    if not code.layout.slots:
        first = spec.program.entries[0].kernel
        raise DialectError(
            first.file,
            first.function.__code__.co_firstlineno,
            "no public function reads a field of a struct, so the model's C struct would be empty, which C does not allow; "
            f"in {first.name}, store a result in a field, and read this field",
        )
    context = of_spec(spec, code.printer) | of_code(spec, code) | of_memory(spec, code, memory)
    context |= {key: comment(said.get(key, "")) for key in SAID}
    context["bounds"] = [
        {"built": comment(row["built"]), "macros": macros}
        for row in checks
        if (macros := bound_macros(row, code.printer.macro))
    ]
    if valid is not None:
        context["snapshot"] = storage = snapshot_context(
            spec, valid, code.layout, frozenset(code.whose.drop), annotated
        )
        # tables that both NAME.c and NAME_snapshot.c use; NAME.c defines them
        storage["shared"] = {table["name"] for table in code.tables} & {table["name"] for table in storage["tables"]}
    files = {path.format(name=spec.name): render(template, context) for path, template in _sources(context).items()}
    if "recorder" in also:
        files |= recorder_files(spec, context, render)
    files["LICENSE"] = runtime_text("LICENSE")
    files[f"{spec.name}.toml"] = spec.to_toml(complete=True)
    files["README.md"] = render("project.md", context)
    if spec.custom is not None and spec.kernel is not None and spec.kernel.source is not None:
        files[spec.kernel.source] = spec.custom.source.decode()
    packaged = package_files(files, context, render, checks)
    if "check" in also:
        packaged |= check_files(spec, files[f"src/{spec.name}.h"], render)
    if "micropython" in also:
        packaged |= micropython_files([path for path in files if path.endswith(".c")], context, render)
    if checks or any(said.values()):
        packaged["VALIDITY.html"] = page_of(f"{spec.name}: what was tested", packaged["VALIDITY.md"])
    stamp = stamp_of(files)
    files = {path: text.replace(STAMP, stamp) for path, text in (files | packaged).items()}
    figures = _figures(spec, context)
    files[f"{spec.name}.cdx.json"] = sbom(files, context, {key: figures[key] for key in HASHES if key in figures})
    start = dict[str, bytes]()
    if memory is not None and context["learned"] and "snapshot" in context:
        start[start_file(spec)] = snapshot.saved(spec, memory)
    everything = {path: text.encode() for path, text in files.items()} | start
    manifest = {
        "format": MANIFEST_FORMAT,
        "generator": f"pykernel {context['version']}",
        "figures": figures,
        **({"checks": list(checks)} if checks else {}),
        **{key: text for key, text in said.items() if text},
        "sha256": {path: hashlib.sha256(content).hexdigest() for path, content in everything.items()},
    }
    files["manifest.json"] = json.dumps(manifest, indent=2, ensure_ascii=True) + "\n"
    return Project(spec, files, figures, code.whose.drop, context["calls"], render("replay.c", context), start)


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>body{{font:16px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}}table{{border-collapse:collapse;display:block;overflow-x:auto}}
td,th{{border:1px solid #999;padding:.2em .6em;text-align:left}}</style></head><body>
{body}</body></html>
"""


def page_of(title: str, markdown: str) -> str:
    """Convert Markdown to a self-contained HTML page."""
    from markdown_it import MarkdownIt

    return PAGE.format(title=title, body=MarkdownIt("js-default").render(markdown))


def start_file(spec: Spec) -> str:
    """Return the path of the file with the state from which the device starts."""
    return f"{spec.name}.bin"


def _sources(context: Mapping[str, Any]) -> dict[str, str]:
    """Return path -> template, for the model's C files."""
    return {
        "src/{name}.h": "model.h",
        "src/{name}.c": "model.c",
        **({"src/{name}_counts.h": "counts.h"} if context["int16"] else {}),
        **({"src/{name}_float.h": "float.h"} if context["real"] == "float" else {}),
        **({"src/{name}_snapshot.c": "snapshot.c"} if "snapshot" in context else {}),
        **({"src/{name}_model.c": "model_values.c"} if context["learned"] else {}),
        "src/{name}.hpp": "model.hpp",
    }


def _figures(spec: Spec, context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a project's figures, such as sizes in bytes, for ``Generated`` and the manifest.  The entry "extents" has
    the sizes that are macros in the C code, under the macros' names in lower case.
    """
    shown = ("name", "state_bytes", "ram_bytes", "const_bytes", "snapshot_bytes")
    return {
        **{key: context[key] for key in shown if key in context},
        "work_bytes": context["ram_bytes"] - context["state_bytes"],
        **{key: f"{context[key]:08x}" for key in HASHES if key != "state_kind" or context["persists"]},
        "precision": str(spec.real),
        **{f"error_{key}": context["int16"][key] for key in ("bound", "measured") if key in context["int16"]},
        "learned": bool(context["learned"]),
        "extents": {key.lower(): value for key, value in spec.capacities.items() if value}
        | ({"classes": len(spec.label.classes)} if spec.label.classes else {}),
    }


def stamp_of(files: Mapping[str, str]) -> str:
    """Return NAME_STAMP as a C literal: 32 bits that change when the code of any file in src/ changes.

    Comments are ignored, so that the stamp stays the same when ``gen.record`` adds comments to the header.
    """
    code = "".join(f"{path}\n{bare(text)}\n" for path, text in sorted(files.items()) if path.startswith("src/"))
    return f"0x{int.from_bytes(hashlib.sha256(code.encode()).digest()[:4], 'little'):08X}u"


def state_hash(spec: Spec, memory: Memory) -> int:
    """Return the value of NAME_hash for this memory.

    Where pykernel reports this hash after a number of samples, the main question was asked about each sample.
    """
    return zlib.crc32(memory.bytes[: spec.program.hashed_bytes(memory.layout)])


def inside(spec: Spec, memory: Memory | None = None, event: str = "") -> dict[str, Any]:
    """Return, for a report, the sizes of the model's parts and of simple predictors, and the hashes of the
    configuration and of a state.

    event: the event after which the model has this state.  The entry "parts" has (name, bytes, contents) of each part.
    """
    from pykernel.host.simple import simple_bytes

    whose = identity(spec)
    there = spec.memory(whose.drop)
    docs = {struct.__name__: (struct.__doc__ or "").strip().splitlines()[0] for struct in spec.program.structs}
    parts, before = [], 0
    for name, end in there.layout.ends.items():
        if end > before:
            parts.append((name, end - before, docs[name]))
        before = max(before, end)
    state = spec.program.state_bytes(there.layout)
    report = {"parts": parts, "state_bytes": state, "work_bytes": there.layout.nbytes - state}
    report |= {"simple": dict(simple_bytes(spec)), "config_hash": f"{whose.config_hash:08x}"}
    if memory is not None:
        there.copy_from(memory)
        report |= {"state_hash": f"{state_hash(spec, there):08x}", "hash_told": event}
    return report


def _template(name: str) -> str:
    return importlib.resources.files("pykernel.data.gen").joinpath(name).read_text(encoding="utf-8")


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, context: Mapping[str, Any]) -> str:
    text = _environment().get_template(template).render(**context)
    return fold(text) if template.endswith((".c", ".h", ".hpp")) else text
