"""The user C module for MicroPython: compiled against a stub of MicroPython's headers, and run with a stub of its objects.

With MicroPython itself it was built and run by hand (docs/reference/c-interface.md).
"""

import re
import subprocess

import cffi
import numpy as np
import pytest

from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import check
from pykernel.gen.compilers import compile_c, compiler
from pykernel.gen.project import build, generate
from pykernel.gen.record import record
from pykernel.spec.model import make_spec
from tests.gen.test_cpp import CASES, OFTEN, order_of, stream
from tests.gen.test_project import spec_of
from tests.support import ROOT
from tests.support.every_model import MODELS, content_of
from tests.support.tools import needs

STUB = ROOT / "tests" / "support" / "micropython"
FLAGS = ("-std=gnu99", "-Wall", "-Wextra", "-Wpointer-arith", "-Wdouble-promotion", "-Wfloat-conversion", "-Werror")
"""Those of MicroPython's ports, and more."""
DECLARED = """
void *stub_array(void *items, size_t bytes, int typecode, int writable);
void *stub_float(double value);
void *stub_int(int64_t value);
void *stub_list(size_t count, void **items);
void *stub_nothing(void);
int stub_kind(void *object);
double stub_real(void *object);
int64_t stub_whole(void *object);
size_t stub_length(void *tuple);
void *stub_item(void *tuple, size_t i);
void *stub_items(void *array);
size_t stub_bytes(void *array);
const char *stub_said(void);
int stub_raised(void);
void *stub_global(int name);
void *stub_call(int name, size_t count, void **args);
"""
FLOATS = {"float": 1, "double": 2}
"""The numbers by which headers tell which floats there are."""
needs_gcc = needs("gcc")


def written(folder, text):
    """The header of names, as MicroPython's build makes it; the names' numbers."""
    names = {name: i + 1 for i, name in enumerate(sorted(set(re.findall(r"MP_QSTR_(\w+)", text))))}
    (folder / "names.h").write_text("".join(f"#define MP_QSTR_{name} {i}\n" for name, i in names.items()))
    return names


class Module:
    """A generated module, loaded: Model() and the constants, as a script in MicroPython sees them."""

    def __init__(self, spec, folder):
        generate(spec, folder, also=("micropython",))
        module = folder / "micropython" / f"mod_{spec.name}.c"
        self.names, objects = written(folder, module.read_text()), []
        for source in sorted((folder / "src").glob("*.c")):
            objects.append(folder / f"{source.stem}.o")
            compile_c(compiler("gcc"), [source], objects[-1], ("-O2", "-fPIC"), ("-c",))
        include = (f"-I{folder}", f"-I{folder / 'src'}", f"-I{STUB}", f"-DSTUB_FLOAT={FLOATS['double']}")
        own = [module, STUB / "stub.c", *objects]
        subprocess.run(["gcc", *FLAGS, *include, "-shared", "-fPIC", *own, "-o", folder / "module.so"], check=True)
        self.ffi = cffi.FFI()
        self.ffi.cdef(DECLARED)
        self.lib, self.kept = self.ffi.dlopen(str(folder / "module.so")), []

    def __getattr__(self, name):
        return self.value(self.lib.stub_global(self.names[name]))

    def object(self, value):
        if isinstance(value, np.ndarray):
            self.kept.append(value)
            letter = {"float32": "f", "float64": "d", "int16": "h", "int32": "i", "uint8": "B"}[str(value.dtype)]
            data = self.ffi.cast("void *", value.ctypes.data)
            return self.lib.stub_array(data, value.nbytes, ord(letter), value.flags.writeable)
        if isinstance(value, list):
            return self.lib.stub_list(len(value), [self.object(each) for each in value])
        if isinstance(value, bytes):
            read_only = np.frombuffer(value, np.uint8)
            return self.object(read_only)
        if value is None:
            return self.lib.stub_nothing()
        return self.lib.stub_int(value) if isinstance(value, int) else self.lib.stub_float(value)

    def value(self, told):
        kind = self.lib.stub_kind(told)
        if kind == 3:
            return tuple(self.value(self.lib.stub_item(told, i)) for i in range(self.lib.stub_length(told)))
        if kind == 4:
            return bytes(self.ffi.buffer(self.lib.stub_items(told), self.lib.stub_bytes(told)))
        return {0: lambda _: None, 1: self.lib.stub_whole, 2: self.lib.stub_real}[kind](told)

    def called(self, name, *args):
        told = self.lib.stub_call(self.names[name], len(args), list(args))
        if told == self.ffi.NULL:
            kind = {1: ValueError, 2: TypeError}[self.lib.stub_raised()]
            raise kind(self.ffi.string(self.lib.stub_said()).decode())
        return told

    def Model(self, *args):
        return Model(self, self.called("Model", *map(self.object, args)))


class Model:
    def __init__(self, module, own):
        self.module, self.own = module, own

    def call(self, name, *args):
        return self.module.value(self.module.called(name, self.own, *map(self.module.object, args)))


@pytest.mark.exhaustive
@needs_gcc
@pytest.mark.in_turn
@pytest.mark.parametrize("case", CASES)
def test_every_method_gives_what_the_c_gives(case, tmp_path):
    """Over a stream, with lists and arrays in turn; answers as values or in an array; and snapshots."""
    spec = make_spec({"name": "m"} | CASES[case])
    module, project = Module(spec, tmp_path), build(spec)
    c, model = CModel(project, compiler("gcc")), module.Model()
    assert model.call("selftest") == module.DONE == 0
    model.call("init")
    usual, names = order_of(spec)
    kinds = {entry.name: entry.kind for entry in spec.program.entries}
    x, y = stream(spec, 130)
    for t, (row, label) in enumerate(zip(x, y, strict=True)):
        for name in names if t % OFTEN == OFTEN - 1 else [n for n in names if n in usual]:
            given, passed, answer = [], [], None
            for each in project.calls[name].arguments[1:]:
                if each.written:
                    types = {"float": np.float32, "double": np.float64, "int32_t": np.int32, "int16_t": np.int16}
                    answer = np.zeros(each.values, types[each.type])
                    passed.append(c._numbers(answer))
                elif each.name == "x" or each.size:
                    array = row if each.name == "x" else label
                    given.append(array.copy() if t % 2 else array.tolist())
                    passed.append(c._numbers(array))
                else:
                    given.append(0 if kinds[name] == "switch" else label.item())
                    passed.append(given[-1])
            status = c.call(name, *passed)
            if answer is None:
                assert model.call(name, *given) == status, (t, name)
                continue
            told = model.call(name, *given)
            assert model.call("status") == status
            single = tuple(answer.tolist()) if len(answer) > 1 else answer[0].item()
            assert repr(told) == repr(single if status >= 0 else None), (t, name)
            found = np.zeros_like(answer)
            assert model.call(name, *given, found) == status and found.tobytes() == answer.tobytes()
    assert model.call("hash") == c.call("hash")
    if spec.program.persistent:
        other, snapshot = module.Model(), model.call("save")
        assert len(snapshot) == project.figures["snapshot_bytes"]
        assert other.call("hash") != model.call("hash") and other.call("load", snapshot) == module.DONE
        assert other.call("hash") == model.call("hash")
        assert other.call("load", bytes(len(snapshot))) == module.SNAPSHOT_MISSING
        assert other.call("load", snapshot + b"names, from the PC") == module.DONE
        with pytest.raises(ValueError, match="snapshot is too short"):
            other.call("load", snapshot[:-1])
        other.call("wipe")
        assert other.call("hash") == module.Model().call("hash")


@needs_gcc
def test_what_is_wrong_is_an_exception_and_changes_nothing(tmp_path):
    module = Module(spec_of(), tmp_path)
    model = module.Model()
    assert model.call("update", [1, 2.0, 3], 1) == module.ADDED == 1
    before, right, room = model.call("hash"), [0.0, 0.0, 0.0], np.zeros(1, np.float32)
    wrong = [np.zeros(2, np.float32), np.zeros(3), np.zeros(3, np.int32), b"123456789012"]
    for x in wrong:
        for call in (("update", x, 1.0), ("predict", x)):
            with pytest.raises(ValueError, match="array of another type or size"):
                model.call(*call)
    with pytest.raises(ValueError, match="another number of values"):
        model.call("predict", [1.0, 2.0])
    with pytest.raises(ValueError, match="array of another type or size"):
        model.call("predict", right, np.zeros(2, np.float32))
    room.flags.writeable = False
    for call in (
        ("update", 5, 1.0), ("update", [1, None, 3], 1.0), ("update", right, None), ("update", right), ("predict",),
        ("predict", right, room), ("predict", right, [0.0]), ("predict", right, room, 1), ("freeze", 0.5),
    ):  # fmt: skip
        with pytest.raises(TypeError):
            model.call(*call)
    with pytest.raises(ValueError, match="number out of range"):
        model.call("freeze", 2**40)
    with pytest.raises(TypeError):
        module.Model(1)
    assert model.call("predict", [1.0, float("nan"), 3.0]) is None
    assert model.call("status") == module.REFUSED_INPUT < 0 and model.call("hash") == before


@needs_gcc
def test_counts_beyond_16_bits_are_refused(tmp_path):
    module = Module(make_spec({"name": "m"} | CASES["int16"]), tmp_path)
    for most in (2**15, -(2**15) - 1, 2**16 + 1):
        with pytest.raises(ValueError, match="number out of range"):
            module.Model().call("predict", [0, most])


@needs_gcc
@pytest.mark.in_turn(180)
@pytest.mark.parametrize("floats", ["float", "double"])
@pytest.mark.parametrize(("rule", "precision", "stage"), MODELS)
def test_the_module_of_every_model_compiles(rule, precision, stage, floats, tmp_path):
    """With floats of both widths, and as a native module; every call but those with callbacks is a method."""
    content = content_of(rule, precision, stage)
    if content is None:
        pytest.skip("the rule has no such stage")
    project = build(make_spec(content), also=("micropython",))
    text = project.files["micropython/mod_m.c"]
    for name, source in project.sources.items():
        (tmp_path / name).write_text(source)
    (tmp_path / "mod_m.c").write_text(text)
    names = written(tmp_path, text)
    assert set(project.calls) - {"store", "restore"} <= set(names) and "status" not in project.calls
    include = (f"-I{tmp_path}", f"-I{STUB}", f"-DSTUB_FLOAT={FLOATS[floats]}")
    for how in ((), ("-DMICROPY_ENABLE_DYNRUNTIME", "-U__linux__", "-Wno-unused-parameter")):
        words = ["gcc", *FLAGS, *how, *include, "-fsyntax-only", tmp_path / "mod_m.c"]
        done = subprocess.run(words, capture_output=True, text=True)
        if (precision, floats) == ("float64", "float"):
            assert "this MicroPython's floats have 32 bits" in done.stderr
        else:
            assert done.returncode == 0, done.stderr


@needs("cmake", "gcc")
def test_cmake_takes_the_module_as_a_port_does(tmp_path):
    generate(spec_of(), tmp_path / "flow", also=("micropython",))
    written(tmp_path, (tmp_path / "flow" / "micropython" / "mod_flow.c").read_text())
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.13)
        project(port LANGUAGES C)
        add_library(usermod INTERFACE)
        include(flow/micropython.cmake)
        get_property(options SOURCE flow/src/flow.c PROPERTY COMPILE_OPTIONS)
        message(STATUS "options: ${{options}}")
        add_library(port SHARED {STUB}/stub.c)
        target_include_directories(port PRIVATE {STUB} .)
        target_compile_definitions(port PRIVATE STUB_FLOAT=2)
        target_link_libraries(port usermod)
    """)
    done = subprocess.run(
        ["cmake", "-S", tmp_path, "-B", tmp_path / "build"], capture_output=True, text=True, check=True
    )
    assert "options: -ffp-contract=off;-fno-fast-math" in done.stdout
    subprocess.run(["cmake", "--build", tmp_path / "build"], check=True, capture_output=True)
    ffi = cffi.FFI()
    ffi.cdef(DECLARED)
    assert ffi.dlopen(str(next((tmp_path / "build").glob("libport*")))).stub_raised() == 0


@needs("make")
def test_make_lists_the_module_as_micropython_reads_it(tmp_path):
    generate(spec_of(), tmp_path / "flow", also=("micropython",))
    (tmp_path / "Makefile").write_text(
        "USERMOD_DIR := flow\ninclude flow/micropython.mk\nUSERMOD_DIR := other\n"
        "all:\n\t@echo $(SRC_USERMOD_C) $(SRC_USERMOD_LIB_C) $(CFLAGS_USERMOD)\n"
    )
    done = subprocess.run(["make", "-s", "-C", tmp_path], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "flow/micropython/mod_flow.c", "flow/src/flow.c", "flow/src/flow_snapshot.c", "-Iflow/src",
    ]  # fmt: skip


def run(*words, code=0):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == code


@pytest.mark.exhaustive
def test_a_folder_keeps_its_module(tmp_path, monkeypatch, one_build):
    """Generated again, and when a check is recorded; without --for no folder has it."""
    monkeypatch.chdir(tmp_path)
    spec = spec_of()
    (tmp_path / "flow.toml").write_text(spec.to_toml())
    module = tmp_path / "out" / "micropython" / "mod_flow.c"
    run("generate", "flow.toml", "-o", "out")
    assert not module.exists()
    run("generate", "flow.toml", "-o", "out", "--for", "micropython")
    text = module.read_text()
    record(tmp_path / "out", spec, check(spec, samples=20, levels=("-O0",)))
    run("generate", "flow.toml", "-o", "out", "--for", "check")
    assert module.read_text() == text and (tmp_path / "out" / "examples" / "flow_check" / "check.c").exists()


def test_names_that_mean_something_in_micropython_are_refused(tmp_path, capsys):
    for name in ("machine", "random", "lambda", "mp", "array"):
        with pytest.raises(UserError, match=f"^{name} already has another meaning in MicroPython"):
            build(spec_of(name=name), also=("micropython",))
    (tmp_path / "flow.toml").write_text(spec_of().to_toml())
    run("generate", str(tmp_path / "flow.toml"), "-o", str(tmp_path / "out"), "--for", "circuitpython", code=2)
    assert "circuitpython is not known" in capsys.readouterr().err and not (tmp_path / "out").exists()
