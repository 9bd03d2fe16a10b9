"""docs/reference/c-interface.md: its tables are read from the headers that the generator writes; `--update-golden` writes them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from pykernel.spec.model import FAMILIES, Spec, make_spec
from tests.support import DOCS
from tests.support.built import built

PAGE = DOCS / "reference/c-interface.md"
INPUT: dict[str, Any] = {"input": {"dim": 3}, "kernel": {"sigma": 1.0}}
STANDARDISED = {"input": {"dim": 3, "standardise": True}}
CLASSES = {"label": {"classes": ["a", "b", "c"]}}
SOME = {"vectors": [[0.0, 0.0, 0.0], [0.5, -0.5, 0.5]]}
WEIGHTS = SOME | {"weights": [[1.0], [-1.0]]}
EACH = SOME | {"weights": [[1.0, 0.0, -1.0], [-1.0, 0.5, 0.0]]}
SIGNAL = {"channels": ["a", "b"], "window": 16, "hop": 8, "features": ["mean", "rms"]}
KINDS: dict[str, tuple[dict[str, Any], ...]] = {
    "online": (
        INPUT | CLASSES | {"learning": {"rule": "klms"}, "reduction": {"technique": "mklms"}},
        INPUT | {"learning": {"rule": "krls-t"}, "interval": {}},
        INPUT | STANDARDISED | {"learning": {"rule": "krls-t"}},
    ),
    "linear": (
        {"input": {"dim": 3}, "learning": {"rule": "rls"}} | CLASSES,
        {"learning": {"rule": "rls"}} | CLASSES | STANDARDISED,
    ),
    "monitor": ({"input": {"dim": 3}, "novelty": {}},),
    "subspace": (
        INPUT | {"learning": {"rule": "okfeb"}},
        INPUT | CLASSES | {"learning": {"rule": "okfeb"}, "subspace": {"head": "logistic"}},
    ),
    "trained": (
        INPUT | CLASSES | {"learning": {"rule": "krr", "samples": 12}},
        INPUT | CLASSES | {"learning": {"rule": "kfd"}, "expansion": SOME},
    ),
    "frozen": (
        INPUT
        | CLASSES
        | {"learning": {"rule": "frozen"}, "expansion": EACH | {"bias": [0.0] * 3, "calibration": [[-1.0, 0.0]] * 3}},
    ),
    "basis": (
        INPUT | {"learning": {"rule": "nystrom"}, "expansion": WEIGHTS | {"noise": 0.25, "prior_variance": 1.0}},
        INPUT
        | CLASSES
        | {"learning": {"rule": "nystrom-rls", "ridge": 0.25, "samples": 96}, "basis": {"method": "sgma"}},
    ),
    "signal": (
        {"signal": SIGNAL, "label": {"column": "a"}, "reduction": {"n_max": 32}},
        {"signal": SIGNAL, "label": {"column": "y", "classes": ["a", "b", "c"]}},
    ),
    "int16": (
        {"precision": "int16"}
        | INPUT
        | CLASSES
        | {"input": {"dim": 3, "max_abs": 1.0}}
        | {"learning": {"rule": "klms"}, "reduction": {"technique": "nt"}},
    ),
}
"""Of each kind of model some specs, which have all of its functions."""
SHARED = ("init", "reset", "hash", "selftest", "save", "load", "store", "restore", "wipe")
CALL = re.compile(
    r"/\*((?:(?!\*/).)*)\*/\n(?:typedef [^;]*;\n)*((?:int32_t|uint32_t|void) NAME_(\w+)\([^;]*\));", re.DOTALL
)


def header(spec: Spec) -> str:
    """The header, with NAME for the model's name."""
    text = built(spec, also=("check",)).files[f"src/{spec.name}.h"]
    return text.replace(f"{spec.name.upper()}_", "NAME_").replace(f"{spec.name}_", "NAME_")


pytestmark = pytest.mark.exhaustive
"""About twenty projects are generated."""


@pytest.fixture(scope="module")
def made() -> dict[str, list[tuple[Spec, str]]]:
    """kind -> specs, with their headers."""
    specs = {kind: [make_spec({"name": "qqq"} | content) for content in contents] for kind, contents in KINDS.items()}
    return {kind: [(spec, header(spec)) for spec in several] for kind, several in specs.items()}


def cell(text: str) -> str:
    return " ".join(re.sub(r"^ \* ?", "", text, flags=re.MULTILINE).split()).replace("|", "\\|")


def calls(made: list[tuple[Spec, str]]) -> dict[str, str]:
    """name -> row of a table."""
    rows: dict[str, str] = {}
    for spec, text in made:
        asking = {entry.name for entry in spec.program.entries if entry.kind in ("question", "reading")}
        for said, declaration, name in CALL.findall(text):
            signature = " ".join(declaration.split())
            kept = "kept" if name in asking else "changed"
            model = "read" if re.search(r"\(const NAME_t", signature) else kept
            row = rows.setdefault(name, f"| `{signature}` | {model} | {cell(said)} |")
            if model == "kept" and "| read |" in row:
                assert spec.input.standardise, (spec.name, name)
                rows[name] = row.replace("| read |", "| read; with `standardise` kept, no `const` |")
    return rows


def table(rows: list[str], *heads: str) -> str:
    return "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows])


def listed(found: dict[tuple[str, ...], list[str]]) -> list[str]:
    """Rows of what several kinds have, with these kinds."""
    rows = []
    for key, kinds in found.items():
        without = [kind for kind in KINDS if kind not in kinds]
        short = f"all but {' and '.join(without)}" if without else "all"
        rows.append(f"| {' | '.join(key)} | {short if len(without) < 3 else ', '.join(kinds)} |")
    return rows


def tables(made: dict[str, list[tuple[Spec, str]]]) -> dict[str, str]:
    heads = ("call", "model", "what it does, takes and returns")
    first = calls(made["online"])
    written = {"shared": table([first[name] for name in SHARED], *heads)}
    macros: dict[tuple[str, ...], list[str]] = {}
    statuses: dict[tuple[str, ...], list[str]] = {}
    for kind, several in made.items():
        texts = [text for _, text in several]
        own = {name: row for name, row in calls(several).items() if name not in SHARED}
        written[kind] = table(list(own.values()), *heads)
        for text in texts:
            for name, said in re.findall(r"^#define (NAME_\w+) .*?/\* (.*?) \*/$", text, re.MULTILINE):
                kinds = macros.setdefault((f"`{name}`", re.sub(r"0 to \d+", "0 to NAME_CLASSES - 1", cell(said))), [])
                kinds += [kind] * (kind not in kinds)
            body = text[text.index("\nenum {") : text.index("\n};")]
            for above, name, value, beside in re.findall(
                r"(?:/\* ([^\n]*) \*/\n)? *NAME_(\w+) = (-?\d+),?(?: /\* (.*?) \*/)?(?=\n|$)", body
            ):
                kinds = statuses.setdefault((f"`{name}`", value, cell(beside or above) or "done"), [])
                kinds += [kind] * (kind not in kinds)
    written["macros"] = table(listed(macros), "macro", "meaning", "models")
    order = sorted(statuses, key=lambda key: (int(key[1]) < 0, abs(int(key[1])), key[0]))
    written["statuses"] = table(listed({key: statuses[key] for key in order}), "status", "value", "meaning", "models")
    return written


def test_the_tables_are_the_headers(made, pytestconfig):
    text = PAGE.read_text(encoding="utf-8")
    made_tables = tables(made)
    assert sorted(re.findall(r"<!-- c: (\S+) -->", text)) == sorted(made_tables)
    now = re.sub(
        r"(<!-- c: (\S+) -->\n).*?(<!-- end -->)",
        lambda m: f"{m[1]}\n{made_tables[m[2]]}\n\n{m[3]}",
        text,
        flags=re.DOTALL,
    )
    if pytestconfig.getoption("--update-golden"):
        PAGE.write_text(now, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == now


def test_no_function_and_no_status_is_left_out(made):
    text = PAGE.read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `\w+ NAME_(\w+)\(", text, re.MULTILINE))
    values = set(re.findall(r"^\| `([A-Z_]+)` \| (-?\d+) \|", text, re.MULTILINE))
    for family in FAMILIES:
        for program in family.programs.values():
            assert {entry.name for entry in program.entries} <= listed
    for several in made.values():
        for spec, header in several:
            assert {entry.name for entry in spec.program.entries_for(spec.config)} | set(SHARED[:1]) <= listed
            assert {
                (name, value) for name, value in re.findall(r"^ +NAME_(\w+) = (-?\d+)", header, re.MULTILINE)
            } <= values
            assert "#define NAME_CONFIG_HASH" in header


def test_every_file_is_named(made):
    text = PAGE.read_text(encoding="utf-8")
    for several in made.values():
        for spec, _ in several:
            for path in built(spec, also=("check",)).files:
                name = path.replace("qqq", "NAME")
                assert f"`{name}`" in text or any(
                    f"`{name[: i + 1]}`" in text for i, c in enumerate(name) if c == "/"
                ), name
