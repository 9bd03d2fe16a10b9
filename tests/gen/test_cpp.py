"""NAME.hpp: a class with every call of NAME.h, whose memory has the C's bytes."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pykernel.gen.binding import CModel
from pykernel.gen.compilers import compile_c, compiler
from pykernel.gen.project import generate
from pykernel.gen.streams import mixed_stream
from pykernel.spec.model import make_spec
from tests.support import DOCS
from tests.support.built import built
from tests.support.every_model import MODELS, WINDOWS, content_of
from tests.support.tools import needs

WARNINGS = ("-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
BARE = ("-fno-exceptions", "-fno-rtti")
INPUT = {"input": {"dim": 3}}
CASES = {
    "default": INPUT | {"label": {"column": "y"}},
    "klms": INPUT | {"kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}, "reduction": {"n_max": 8}},
    "two labels": INPUT | {"kernel": {"sigma": 1.0}, "learning": {"rule": "krls-t"}, "label": {"outputs": 2}},
    "classes": INPUT | {"label": {"column": "y", "classes": ["a", "b", "c"]}},
    "monitor": INPUT | {"novelty": {}},
    "signal": {"signal": WINDOWS, "label": {"column": "y", "classes": ["a", "b"]}},
    "int16": content_of("klms", "int16", "plain"),
    "frozen": content_of("frozen", "float32", "plain"),
    "trained": content_of("krr", "float64", "plain"),
}
CPP = """
#include <cstdio>
#include <cstring>
#include "m.hpp"
static pykernel_m::Model model;
static_assert(sizeof(model) == pykernel_m::ram_bytes && pykernel_m::dim == M_DIM, "sizes");
static_assert(noexcept(model.hash()), "throws nothing");
template <class T> static void tell(const T &what) {{ std::fwrite(&what, sizeof what, 1, stdout); }}
{slots}
int main()
{{
    if (model.selftest() != M_DONE) {{ return 1; }}
    model.init();
    {sample} x[M_{size}];
    {label}
    for (int t = 0; std::fread(&x, sizeof x, 1, stdin) == 1; t++) {{
        {read}
{calls}
    }}
    tell(*model.memory());
    {kept}
    return 0;
}}
"""
SLOTS = """
static uint8_t places[2][pykernel_m::snapshot_bytes];
static int32_t put(void *, int32_t slot, uint32_t at, const uint8_t *bytes, uint32_t count)
{ std::memcpy(&places[slot][at], bytes, count); return 0; }
static int32_t get(void *, int32_t slot, uint32_t at, uint8_t *bytes, uint32_t count)
{ std::memcpy(bytes, &places[slot][at], count); return 0; }
"""
KEPT = """
    static pykernel_m::Model other;
    uint8_t buffer[pykernel_m::snapshot_bytes];
    if (model.save(buffer) != M_DONE || other.load(buffer) != M_DONE || other.hash() != model.hash()) { return 2; }
    other.wipe();
    if (model.store(put, get, nullptr) != M_DONE || other.restore(get, nullptr) != M_DONE) { return 3; }
    if (other.hash() != model.hash()) { return 4; }
    other.reset();
"""
needs_cpp = needs("g++", "gcc")
OFTEN = 40  # rows between which all calls are called


def order_of(spec):
    """The names of the calls of a usual row, and of all calls."""
    program = spec.program
    names = [entry.name for entry in program.entries_for(spec.config)]
    return [name for name in (program.asks, program.learner) if name], names


def program_of(spec, calls):
    """The C++ that reads a stream, calls the methods, and tells all that they write and return, then the memory."""
    usual, names = order_of(spec)
    kinds = {entry.name: entry.kind for entry in spec.program.entries}
    sample = next(a for name in names for a in calls[name].arguments if a.name == "x")
    label = next(
        (a for n in names if kinds[n] in ("update", "label") for a in calls[n].arguments[1:] if a.name != "x"), None
    )
    lines = []
    for name in names:
        passed, told, before = [], [], []
        for each in calls[name].arguments[1:]:
            if each.written:
                before.append(
                    f"{each.type} {each.name}_{'' if each.values == 1 else f'[{each.values}]'} = {'0' if each.values == 1 else '{}'};"
                )
                told.append(f"tell({each.name}_);")
            passed.append(
                f"{each.name}_"
                if each.written
                else "x"
                if each.name == "x"
                else "0"
                if kinds[name] == "switch"
                else "y"
            )
        when = "" if name in usual else f"if (t % {OFTEN} == {OFTEN - 1}) "
        lines.append(
            f"        {when}{{ {' '.join(before)} tell(model.{name}({', '.join(passed)})); {' '.join(told)} }}"
        )
    persists = bool(spec.program.persistent)
    return CPP.format(
        sample=sample.type,
        size=spec.program.sample_size,
        label="" if label is None else f"{label.type} y{f'[{label.values}]' if label.size else ''};",
        read="" if label is None else "if (std::fread(&y, sizeof y, 1, stdin) != 1) { return 5; }",
        calls="\n".join(lines),
        slots=SLOTS if persists else "",
        kept=KEPT if persists else "",
    ), label  # fmt: skip


def told_by_c(spec, project, x, y):
    """What the C writes and returns, in the same order."""
    c, told = CModel(project, compiler("gcc")), b""
    usual, names = order_of(spec)
    kinds = {entry.name: entry.kind for entry in spec.program.entries}
    for t, (row, label) in enumerate(zip(x, y, strict=True)):
        for name in names if t % OFTEN == OFTEN - 1 else [n for n in names if n in usual]:
            passed, written = [], []
            for each in project.calls[name].arguments[1:]:
                if each.written:
                    dtype = {"float": "f4", "double": "f8", "int32_t": "i4", "int16_t": "i2"}[each.type]
                    written.append(np.zeros(each.values, dtype))
                    passed.append(c._numbers(written[-1]))
                elif each.name == "x":
                    passed.append(c._numbers(row))
                else:
                    passed.append(0 if kinds[name] == "switch" else c._numbers(label) if each.size else label.item())
            told += np.int32(c.call(name, *passed)).tobytes() + b"".join(array.tobytes() for array in written)
    return told + c.memory.bytes.tobytes()


def stream(spec, rows):
    x, y = mixed_stream(spec, rows)
    x = np.ascontiguousarray(x, spec.real.dtype)
    return x, np.ascontiguousarray(y, spec.program.label_dtype(spec.real))


@pytest.mark.exhaustive
@needs_cpp
@pytest.mark.in_turn
@pytest.mark.parametrize("case", CASES)
def test_the_class_computes_the_same_bytes(case, tmp_path):
    """Every method called over a stream, of a static object: what they return and write, and the whole memory at the end."""
    spec = make_spec({"name": "m"} | CASES[case])
    project = built(spec)
    generate(spec, tmp_path)
    text, label = program_of(spec, project.calls)
    (tmp_path / "main.cpp").write_text(text)
    objects = []
    for source in sorted((tmp_path / "src").glob("*.c")):
        objects.append(tmp_path / f"{source.stem}.o")
        compile_c(compiler("gcc"), [source], objects[-1], ("-O2",), ("-c",))
    x, y = stream(spec, 130)
    rows = b"".join(row.tobytes() + (b"" if label is None else to.tobytes()) for row, to in zip(x, y, strict=True))
    expected = told_by_c(spec, project, x, y)
    for name in filter(shutil.which, ("g++", "clang++")):
        words = [name, *WARNINGS, "-O2", f"-I{tmp_path / 'src'}", tmp_path / "main.cpp", *objects]
        done = subprocess.run([*words, "-o", tmp_path / name], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        ran = subprocess.run([tmp_path / name], input=rows, capture_output=True)
        assert ran.returncode == 0 and ran.stdout == expected, (name, ran.returncode)


@needs_cpp
@pytest.mark.in_turn(180)
@pytest.mark.parametrize(("rule", "precision", "stage"), MODELS)
def test_the_class_of_every_model_compiles_and_has_every_call(rule, precision, stage, tmp_path):
    content = content_of(rule, precision, stage)
    if content is None:
        pytest.skip("the rule has no such stage")
    project = built(make_spec(content))
    files = project.files
    headers = [path for path in files if re.match(r"src/.*\.h(pp)?$", path)]
    for path in headers:
        (tmp_path / Path(path).name).write_text(files[path])
    declared = re.findall(r"^\w+ m_(\w+)\(", files["src/m.h"], re.MULTILINE)
    forwarded = re.findall(r"(?<= )m_(\w+)\(&memory_", files["src/m.hpp"])
    assert sorted(declared) == sorted(forwarded) and len(declared) >= 4
    use = "static pykernel_m::Model model;\nint main() { return model.hash() == 0u; }\n"
    (tmp_path / "unit.cpp").write_text("".join(f'#include "{Path(path).name}"\n' for path in headers) + use)
    # the header refuses an AVR's double, which has 32 bits
    small = ("avr-g++",) if project.figures["ram_bytes"] < 2**15 and precision != "float64" else ()
    for name in filter(shutil.which, ("g++", "clang++", "arm-none-eabi-g++", *small)):
        warned = ("-Wold-style-cast", *(() if name == "clang++" else ("-Wuseless-cast",)))
        for standard in ("c++98", "c++11", "c++17"):
            words = [name, *WARNINGS, *warned, *BARE, f"-std={standard}", "-fsyntax-only", tmp_path / "unit.cpp"]
            done = subprocess.run(words, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


@needs_cpp
@pytest.mark.parametrize(
    ("array", "compiles"), [("float (&x)[3]", True), ("float (&x)[4]", False), ("float *x", False)]
)
def test_an_array_of_another_size_does_not_compile(array, compiles, tmp_path):
    for path in ("m.h", "m.hpp"):
        (tmp_path / path).write_text(built(make_spec({"name": "m"} | CASES["klms"])).files[f"src/{path}"])
    learn = f"static inline int32_t learn(pykernel_m::Model &model, const {array}) {{ return model.update(x, 1.0f); }}"
    (tmp_path / "unit.cpp").write_text(f'#include "m.hpp"\n{learn}\n')
    done = subprocess.run(
        ["g++", *WARNINGS, "-Wno-unused-function", "-fsyntax-only", tmp_path / "unit.cpp"], capture_output=True
    )
    assert (done.returncode == 0) is compiles


@needs_cpp
def test_the_class_refuses_the_header_of_another_model(tmp_path):
    own, other = (built(make_spec({"name": "m"} | CASES[case])).files for case in ("klms", "default"))
    (tmp_path / "m.hpp").write_text(own["src/m.hpp"])
    for files, builds in ((own, True), (other, False)):
        (tmp_path / "m.h").write_text(files["src/m.h"])
        words = ["g++", *WARNINGS, "-fsyntax-only", "-x", "c++", tmp_path / "m.hpp"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert (done.returncode == 0) is builds and (
            "m.h and this file do not belong together" in done.stderr
        ) != builds


@needs_cpp
def test_the_page_shows_what_compiles(tmp_path):
    spec = make_spec({"name": "flow"} | CASES["default"])
    for path in ("flow.h", "flow.hpp"):
        (tmp_path / path).write_text(built(spec).files[f"src/{path}"])
    (shown,) = re.findall(
        r"```cpp\n(.*?)```", (DOCS / "reference/c-interface.md").read_text(encoding="utf-8"), re.DOTALL
    )
    (tmp_path / "unit.cpp").write_text(shown)
    subprocess.run(["g++", *WARNINGS, *BARE, "-fsyntax-only", tmp_path / "unit.cpp"], check=True)
