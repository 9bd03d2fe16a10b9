"""The generated project: complete, clean under strict compilers, self-contained, safe to write, reproducible."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pykernel.errors import CheckFailed, UserError
from pykernel.gen.binding import CModel
from pykernel.gen.check import Reference
from pykernel.gen.compilers import STRICT, compile_c, compiler, find_compilers, takes
from pykernel.gen.project import build, generate
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.model import load_spec, make_spec
from tests.support import ROOT
from tests.support.compilers import EACH as EACH_COMPILER
from tests.support.compilers import compilers
from tests.support.specs import named
from tests.support.tools import lacking, need, needs
from tests.support.toys import LABELS, toy_spec

TECHNIQUES = ("nt", "fklms", "mklms")
PRECISIONS = ("float32", "float64")


def spec_of(technique="mklms", precision="float32", name="flow", dim=3, n_max=8, rho=0.0, **sections):
    return make_spec(
        named(
            {
                "name": name,
                "precision": precision,
                "input": {"dim": dim},
                "kernel": {"sigma": 1.0},
                "learning": {"rho": rho},
                "reduction": {"technique": technique, "n_max": n_max},
            }
            | sections
        )
    )


def learned(spec, samples=200):
    model = HostModel(spec)
    model.prequential(*mixed_stream(spec, samples))
    return model.memory


@pytest.mark.exhaustive
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_compiles_alone_and_brings_no_symbol_from_outside(technique, precision, tmp_path, exhaustive):
    """Strict C99 with every compiler, fitted and fresh; nothing undefined but what compilers insert themselves."""
    spec = spec_of(technique, precision, rho=0.1)
    for folder, memory in ((tmp_path / "fresh", None), (tmp_path / "fitted", learned(spec))):
        generate(spec, folder, memory)
        sources = sorted((folder / "src").glob("*.c"))
        assert len(sources) == (2 if memory is None else 3)
        first, *_ = compilers(exhaustive)
        for c in compilers(exhaustive) if exhaustive or memory is None else [first]:
            for level in ("-O0", "-O3") if c is first and memory is None else ("-O3",):
                compile_c(
                    c, [*sources, folder / "examples" / "main.c"], folder / "run", (level, f"-I{folder / 'src'}"), ()
                )
                target = folder / f"{c}{level}.o"
                compile_c(c, sources, target, (level, "-r", "-nostdlib"), ())
                symbols = subprocess.run(["nm", target], capture_output=True, text=True, check=True).stdout.splitlines()
                undefined = {line.split()[-1] for line in symbols if " U " in line}
                assert undefined <= {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"}, (c, level, undefined)
                # data: nothing that can change
                assert not [line for line in symbols if re.search(r" [dDbBC] ", line)], (c, level)
                external = {line.split()[-1] for line in symbols if " T " in line}
                assert external and all(name.startswith("flow_") for name in external)
        out = subprocess.run([folder / "run"], capture_output=True, text=True)
        assert out.returncode == 0 and "model hash" in out.stdout, out.stdout


@pytest.mark.in_turn(72)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label_compiles_and_its_example_learns(kind, precision, tmp_path, exhaustive):
    """Strict C99 with every compiler: the files one by one, and all in one unit, in any order."""
    spec = toy_spec(kind, precision)
    generate(spec, tmp_path, learned(spec))
    names = ("toy.c", "toy_snapshot.c", "toy_model.c")
    for i, order in enumerate([names, names[::-1]]):
        (tmp_path / f"unit{i}.c").write_text("".join(f'#include "{name}"\n' for name in order))
    include = f"-I{tmp_path / 'src'}"
    for c in compilers(exhaustive):
        for sources in ([tmp_path / "src" / n for n in names], [tmp_path / "unit0.c"], [tmp_path / "unit1.c"]):
            compile_c(c, [*sources, tmp_path / "examples" / "main.c"], tmp_path / "run", ("-O2", include), ())
            out = subprocess.run([tmp_path / "run"], capture_output=True, text=True, check=True).stdout
            assert "model hash" in out
    shown = re.findall(r"forecast +(\S+)  label +(\S+)", out)
    assert len({label for _, label in shown}) == (3 if kind == "class" else 2)
    if spec.label.classes:
        assert {label for _, label in shown} == {str(i) for i in range(len(spec.label.classes))}


def test_models_of_all_kinds_are_one_unit_too(tmp_path, exhaustive):
    """A firmware in one file: snapshots' copies of what the model has, too, do not clash, nor do two models."""
    text = ""
    for name, technique, precision in (("flow", "mklms", "float32"), ("level", "nt", "float64")):
        spec = spec_of(technique, precision, name, input={"dim": 2, "standardise": True}, label={"high": 1.0})
        generate(spec, tmp_path / name, learned(spec))
        text += "".join(f'#include "{name}/src/{name}{part}.c"\n' for part in ("_snapshot", "", "_model"))
    generate(make_spec({"name": "recipe", "input": {"dim": 3}, "label": {"column": "y"}}), tmp_path / "recipe")
    text += "".join(f'#include "recipe/src/recipe{part}.c"\n' for part in ("_snapshot", ""))
    (tmp_path / "unit.c").write_text(text)
    for c in compilers(exhaustive):
        compile_c(c, [tmp_path / "unit.c"], tmp_path / "unit.o", (), ("-c",))


def test_the_header_says_what_a_label_is():
    header = build(toy_spec("class", label={"column": "state", "classes": ["*/ low", "mid", "high"]})).files[
        "src/toy.h"
    ]
    assert "toy: a linear classifier of 3 classes that learns online (nlms)" in header
    assert " * Label: state\n * Classes: 0 * / low, 1 mid, 2 high\n" in header
    assert "#define TOY_CLASSES 3 " in header and "#define TOY_OUTPUTS 3 " in header
    assert re.search(r"int32_t toy_update\(toy_t \*s, const float x\[TOY_DIM\], int32_t label\);", header)
    assert re.search(r"int32_t toy_classify\(toy_t \*s, const float x\[TOY_DIM\], int32_t \*label\);", header)
    two = build(toy_spec("two classes"))
    assert two.figures["extents"]["outputs"] == 1 and two.figures["extents"]["classes"] == 2
    header = build(toy_spec("reals", label={"columns": ["a", "b"]})).files["src/toy.h"]
    assert " * Labels: y[0] a, y[1] b\n" in header and "regression of 2 labels" in header and "CLASSES" not in header
    assert "const float y[TOY_OUTPUTS]);" in header
    assert re.search(
        r"The test learns \d+ made-up samples in the given memory, and calls every public function", header
    )
    header = build(spec_of()).files["src/flow.h"]
    assert "an online kernel regression (klms) that learns within 8 expansion vectors (mklms)" in header
    assert "OUTPUTS 1 " in header


@needs("g++")
def test_header_serves_cpp_and_models_live_side_by_side(tmp_path):
    """Two models of different precision and technique in one C++ program, each learning its own stream."""
    specs = (spec_of("mklms", "float32", "flow"), spec_of("fklms", "float64", "pressure", dim=2))
    for spec in specs:
        generate(spec, tmp_path / spec.name)
    (tmp_path / "main.cpp").write_text("""
        #include "flow.h"
        #include "pressure.h"
        #include <cstdio>
        int main() {
            static flow_t a; static pressure_t b, b2;
            if (flow_selftest(&a) != FLOW_DONE || pressure_selftest(&b) != PRESSURE_DONE) return 1;
            flow_init(&a); pressure_init(&b); pressure_init(&b2);
            float x[FLOW_DIM] = {1, 2, 3}; double z[PRESSURE_DIM] = {0.5, 0.25};
            if (flow_update(&a, x, 1.0f) != FLOW_ADDED || pressure_update(&b, z, 1.0) != PRESSURE_ADDED) return 2;
            return a.n == 1 && b.n == 1 && b2.n == 0 ? 0 : 3;
        }""")
    objects = []
    for spec in specs:
        objects.append(tmp_path / f"{spec.name}.o")
        compile_c(compiler("gcc"), [tmp_path / spec.name / "src" / f"{spec.name}.c"], objects[-1], (), ("-c",))
    include = [f"-I{tmp_path / spec.name / 'src'}" for spec in specs]
    words = ["g++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror", *include, tmp_path / "main.cpp", *objects]
    subprocess.run([*words, "-o", tmp_path / "run"], check=True)
    assert subprocess.run([tmp_path / "run"]).returncode == 0


@pytest.mark.exhaustive
def test_same_spec_same_bytes_in_another_process(tmp_path):
    spec = spec_of(input={"columns": ["a", "b", "c"]}, label={"column": "y"})
    (tmp_path / "flow.toml").write_text(spec.to_toml())
    code = "import sys; from pykernel.gen.project import generate; from pykernel.spec.model import load_spec; generate(load_spec(sys.argv[1]), sys.argv[2])"
    seed = "1" if hash("a") % 2 else "2"  # of this process
    generate(spec, tmp_path / "a")
    subprocess.run(
        [sys.executable, "-c", code, tmp_path / "flow.toml", tmp_path / "b"],
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    files = sorted(p.relative_to(tmp_path / "a") for p in (tmp_path / "a").rglob("*") if p.is_file())
    assert {Path("src/flow.c"), Path("manifest.json"), Path("library.json")} <= set(files)
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


@pytest.mark.exhaustive
@pytest.mark.in_turn(9)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_fitted_model_starts_from_what_it_learned(precision):
    spec = spec_of("mklms", precision)
    memory = learned(spec)
    device = CModel(build(spec, memory), find_compilers()[0])
    for field in ("v", "alpha", "t", "n"):
        assert device.memory.field(field).tobytes() == memory.field(field).tobytes()
    x, y = mixed_stream(spec, 500, seed=1)
    host = HostModel(spec, build(spec).drop)
    host.memory.copy_from(memory)
    _, statuses = host.prequential(x, y)
    _, found = device.prequential(x, y)
    assert statuses.tobytes() == found.tobytes()
    assert host.memory.field("alpha").tobytes() == device.memory.field("alpha").tobytes()
    device.call("reset")
    assert not any(device.memory.bytes)


# -------------------------------------------------------------------------------- the code protects itself


def has_fma():
    try:
        return " fma " in Path("/proc/cpuinfo").read_text()
    except OSError:
        return False


needs_gcc_fma = pytest.mark.skipif(bool(lacking("gcc")) or not has_fma(), reason="needs a processor with FMA")
CONTRACTING = ("-O3", "-march=native", "-ffp-contract=fast")


def unguarded(text):
    """The generated C without its pragmas and #errors, as a careless port would have it."""
    text = re.sub(r"^#pragma.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"^#error.*$", "", text, flags=re.MULTILINE)


@pytest.mark.in_turn(13)
@needs_gcc_fma
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_contraction_is_off_even_where_flags_ask_for_it_and_caught_where_it_is_not(technique):
    spec = spec_of(technique, n_max=12)
    reference = Reference(build(spec), None, *mixed_stream(spec, 4000))
    gcc = compiler("gcc")
    for flags in (CONTRACTING, ("-O3", "-march=native", "-std=gnu99")):
        device = CModel(reference.project, gcc, flags)
        assert reference.verdict(device)["equal"]

    # the standard pragma alone is ignored by GCC: without its own one, results change, and both checks see it
    def standard_only(text):
        return text.replace('#pragma GCC optimize ("fp-contract=off")', "#pragma STDC FP_CONTRACT OFF")

    device = CModel(reference.project, gcc, (*CONTRACTING, "-Wno-unknown-pragmas"), patch=standard_only)
    assert device.call("selftest") == -100
    row = reference.compare(gcc, "-O3", extra=(*CONTRACTING, "-Wno-unknown-pragmas"), patch=standard_only)
    assert not row["equal"] and row["selftest"] == "broken build"
    assert re.search(r"(update|prediction) \d+", row["first_difference"])


def alternating(precision):
    """GCC 12 makes vfmaddsub of this model's sums at -O3, where an FPU has it, though contraction is off."""
    times = 1 if precision == "float64" else 2
    expansion = {"vectors": [[-0.77], [1.01]], "weights": [[0.9, 0.27] * times, [0.51, 0.24] * times]}
    return make_spec(
        {
            "name": "flow",
            "precision": precision,
            "input": {"dim": 1, "max_abs": 10.0},
            "kernel": {"sigma": 1.0},
            "learning": {"rule": "frozen"},
            "label": {"outputs": 2 * times},
            "expansion": expansion | {"bias": [-0.22, 0.2] * times},
        }
    )


def vectorised(text):
    """The generated C without the pragma that keeps GCC's vectorisers out."""
    return re.sub(r'^#pragma GCC optimize \("no-tree.*$', "", text, flags=re.MULTILINE)


def is_gcc_12(c):
    """What a compiler makes of a flag or of code without its guards, is known of this one; others may leave it."""
    return c.name == "gcc" and re.search(r" 12\.\d+\.\d+", c.version) is not None


@pytest.mark.exhaustive
@pytest.mark.in_turn
@needs_gcc_fma
@pytest.mark.parametrize("precision", PRECISIONS)
def test_gcc_fuses_nothing_in_vectors_and_the_selftest_tells_where_it_would(precision):
    spec = alternating(precision)
    project, gcc = build(spec), compiler("gcc")
    x = np.append(np.linspace(-3, 3, 4000), -0.965611434909349)[:, None]
    host, _ = HostModel(spec, project.drop).ask("predict", x)
    told, differ = [], []
    for flags in (
        ("-O2", "-mfma", "-mavx2"),
        ("-O3", "-march=native"),
        ("-O3", "-march=native", "-std=gnu99", "-flto"),
    ):
        device = CModel(project, gcc, flags)
        assert device.call("selftest") == 0
        assert device.ask("predict", x)[0].tobytes() == host.tobytes()
        careless = CModel(project, gcc, flags, patch=vectorised)
        told.append(careless.call("selftest") == -100)
        differ.append(careless.ask("predict", x)[0].tobytes() != host.tobytes())
        assert told[-1] or not differ[-1]
    if not is_gcc_12(gcc) and not any(told):
        pytest.skip(f"{gcc.version} fuses nothing here, as GCC 12 does: there is nothing to tell")
    # the self-test speaks of what really happens
    assert all(told) and any(differ)


VECTOR_TARGETS = {
    "AArch64 from 8.3": ("aarch64-linux-gnu-gcc", ["-march=armv8.3-a"], r"\bfcmla\b"),
    "AArch64 with SVE": ("aarch64-linux-gnu-gcc", ["-march=armv8.2-a+sve"], r"\bfcmla\b"),
    "Helium": ("arm-none-eabi-gcc", ["-mcpu=cortex-m55", "-mfloat-abi=hard"], r"\bvcmla"),
}
FUSED = r"\b(v?fn?m(ad|sb|la|ls|add|sub)|v?fm[as]|v?f?cmla|vfms|vfma)\w*"


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("target", VECTOR_TARGETS)
def test_no_fused_instruction_is_printed_for_vectors_of_other_processors(target, tmp_path):
    """Complex multiplications of GCC fuse products of vectors, too."""
    command, flags, instruction = VECTOR_TARGETS[target]
    need(command, would=f"that no fused instruction is printed for {target}")
    sources = [
        ROOT / "tests" / "golden" / name / "src" / f"{name}.c" for name in ("flow", "machine", "monitor", "level")
    ]

    def instructions(source, text):
        copy = tmp_path / source.name
        copy.write_text(text)
        words = [command, *flags, "-O3", "-std=gnu99", "-S", "-o", "-", f"-I{source.parent}", str(copy)]
        run = subprocess.run(words, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return run.stdout

    for source in sources:
        assert not re.search(FUSED, instructions(source, source.read_text()))
    # not every model has products that a compiler takes for complex ones
    assert any(re.search(instruction, instructions(source, vectorised(source.read_text()))) for source in sources)


@pytest.mark.exhaustive
@pytest.mark.in_turn(108)
@pytest.mark.parametrize("c", EACH_COMPILER, ids=str)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize(
    "flags",
    [("-fno-signed-zeros",), ("-fno-honor-nans",), ("-march=native", "-ffp-contract=fast"), ("-fassociative-math",)],
    ids=" ".join,
)
def test_flags_that_change_results_are_told_by_the_selftest(flags, precision, c):
    """Of flags that have no macro: either nothing changes, or NAME_selftest says so."""
    spec = spec_of("mklms", precision)
    project = build(spec)
    if not takes(c, " ".join(("-O2", "-Werror", *flags))):
        pytest.skip(f"{c} does not know {flags[-1]}")
    x, y = mixed_stream(spec, 3000)
    host = HostModel(spec, project.drop)
    host.prequential(x, y)
    for level in ("-O1", "-O2", "-O3"):
        device = CModel(project, c, (level, *flags))
        told = device.call("selftest") == -100
        device.call("init")
        device.prequential(x, y)
        assert told or device.memory.bytes == host.memory.bytes
        if flags[0] in ("-fno-signed-zeros", "-fno-honor-nans") and (c.name != "gcc" or is_gcc_12(c)):
            assert told  # GCC 11 has the flag, and computes the same here


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("c", EACH_COMPILER, ids=str)
@pytest.mark.parametrize("flag", ["-ffast-math", "-Ofast", "-ffinite-math-only"])
def test_fast_math_does_not_compile(c, flag, tmp_path):
    generate(spec_of(), tmp_path)
    try:
        compile_c(c, [tmp_path / "src" / "flow.c"], tmp_path / "flow.o", (flag,), ("-c",))
    except CheckFailed as error:
        assert "fast" in str(error)
    else:
        # zig takes -Ofast for its own "release fast", which keeps IEEE arithmetic
        assert (c.name, flag) == ("zig", "-Ofast")


@pytest.mark.in_turn(27)
@pytest.mark.parametrize("c", EACH_COMPILER, ids=str)
@pytest.mark.parametrize("technique", TECHNIQUES)
def test_fast_math_without_the_guard_is_caught_by_the_selftest(c, technique, tmp_path):
    """In a process of its own: loading such code would set this one to flush small numbers to zero."""
    generate(spec_of(technique), tmp_path)
    source = tmp_path / "src" / "flow.c"
    source.write_text(unguarded(source.read_text()))
    include = f"-I{tmp_path / 'src'}"
    compile_c(c, [source, tmp_path / "examples" / "main.c"], tmp_path / "run", ("-O3", "-ffast-math", include), ())
    run = subprocess.run([tmp_path / "run"], capture_output=True, text=True)
    assert run.returncode == 1 and "does not compute the promised bits" in run.stdout


@needs("gcc")
def test_a_process_that_flushes_to_zero_is_refused(tmp_path):
    (tmp_path / "empty.c").write_text("int nothing(void); int nothing(void) { return 0; }\n")
    words = ["gcc", "-shared", "-fPIC", "-ffast-math", tmp_path / "empty.c", "-o", tmp_path / "fast.so"]
    subprocess.run(words, check=True)
    code = "import ctypes, sys; from pykernel.host.model import require_ieee; require_ieee(); ctypes.CDLL(sys.argv[1]); require_ieee()"
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "fast.so"], capture_output=True, text=True)
    assert "rounds subnormal numbers to zero" in run.stderr or "-ffast-math" not in gcc_specs()


def gcc_specs():
    return subprocess.run(["gcc", "-dumpspecs"], capture_output=True, text=True).stdout


@needs("gcc")
def test_excess_precision_does_not_compile():
    with pytest.raises(CheckFailed, match="more digits than the type has"):
        CModel(build(spec_of()), compiler("gcc"), ("-mfpmath=387",))


@needs("gcc")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_what_a_target_computes_in_decides_whether_it_is_refused(precision, tmp_path):
    """Of other processors only what their compilers predefine: Cortex-M55 has 16 in GNU dialects, s390x is big-endian and has 1."""
    generate(spec_of(precision=precision), tmp_path)

    def complaint(*macros):
        words = ["gcc", "-E", "-o", os.devnull, *macros, str(tmp_path / "src" / "flow.c")]
        run = subprocess.run(words, capture_output=True, text=True)
        return next((line for line in run.stderr.splitlines() if "#error" in line), "")

    def evaluates(method):
        return ("-U__FLT_EVAL_METHOD__", f"-D__FLT_EVAL_METHOD__={method}")

    accepted = {method for method in (-1, 0, 1, 2, 16) if not complaint(*evaluates(method))}
    assert accepted == ({0, 16} if precision == "float32" else {0, 1, 16})
    assert "little-endian" in complaint(*BIG_ENDIAN, *evaluates(1))


BIG_ENDIAN = ("-U__BYTE_ORDER__", "-D__BYTE_ORDER__=__ORDER_BIG_ENDIAN__")


@pytest.mark.in_turn
@pytest.mark.parametrize("precision", ["float32", "float64", "int16"])
def test_a_big_endian_target_is_refused(precision, tmp_path):
    """Each file that takes the memory's bytes as they lie; by a compiler for such a machine, where there is one."""
    generate(spec_of("fklms", precision, input={"dim": 3, "max_abs": 3.0}, label={"max_abs": 4.0}), tmp_path)
    refused = []
    for name in ("flow.c", "flow_snapshot.c"):
        for words in (["gcc", *BIG_ENDIAN], ["s390x-linux-gnu-gcc"]):
            if shutil.which(words[0]):
                command = [*words, "-std=c99", "-fsyntax-only", str(tmp_path / "src" / name)]
                run = subprocess.run(command, capture_output=True, text=True)
                assert run.returncode != 0
                assert '#error "the state\'s bytes are defined for little-endian targets"' in run.stderr
                refused.append(name)
    if not refused:
        need("gcc")


def test_selftest_sees_another_rounding_mode_and_flushing_to_zero(tmp_path):
    """Changed MXCSR: rounding toward zero (bits 13-14), flush to zero and denormals are zero (bits 15 and 6)."""
    need("gcc")
    generate(spec_of(), tmp_path)
    (tmp_path / "main.c").write_text("""
        #include "src/flow.h"
        #include <stdlib.h>
        #include <xmmintrin.h>
        static flow_t m;
        int main(int argc, char **argv) {
            _mm_setcsr(_mm_getcsr() | (unsigned)atoi(argv[argc - 1]));
            return flow_selftest(&m) == FLOW_DONE ? 0 : 1;
        }""")
    words = ["gcc", "-std=c99", "-O2", tmp_path / "src" / "flow.c", tmp_path / "main.c", "-o", tmp_path / "run"]
    subprocess.run(words, check=True)
    results = {bits: subprocess.run([tmp_path / "run", str(bits)]).returncode for bits in (0, 0x6000, 0x8000, 0x40)}
    assert results == {0: 0, 0x6000: 1, 0x8000: 1, 0x40: 1}


@needs("gcc")
@pytest.mark.parametrize("precision", PRECISIONS)
def test_integer_square_root_equals_the_processors(precision, tmp_path):
    """Where there is no FPU: correctly rounded too, over a stride through all values and all powers of two around."""
    generate(spec_of("mklms", precision), tmp_path)
    source = (tmp_path / "src" / "flow.c").read_text()
    soft = re.search(r"/\* The square root.*?\n}\n", source, re.DOTALL)[0].replace("flow_sqrt", "soft_sqrt")
    soft = re.sub(r"FLOW_(LOOP|TURN)\(\d+\)", "", soft)
    real, bits = ("float", "uint32_t") if precision == "float32" else ("double", "uint64_t")
    step = "1009u" if precision == "float32" else "4611686018427387ull"
    last = "0x7F800000u" if precision == "float32" else "0x7FF0000000000000ull"
    (tmp_path / "sqrt.c").write_text(
        f"#include <math.h>\n#include <stdint.h>\n#define FLOW_NO_FPU\n{soft}"
        f"static int differ({bits} b) {{ union {{ {real} v; {bits} b; }} x, r, s; x.b = b; r.v = ({real})sqrt{'f' if real == 'float' else ''}(x.v);"
        f" s.v = soft_sqrt(x.v); return r.b != s.b; }}\n"
        f"int main(void) {{ for ({bits} b = 0; b < {last} - {step}; b += {step}) if (differ(b)) return 1;\n"
        f" for (int e = 1; e < {254 if real == 'float' else 2046}; e++) for (int d = -40; d <= 40; d++)"
        f" if (differ((({bits})e << {23 if real == 'float' else 52}) + ({bits})d)) return 2; return 0; }}"
    )
    subprocess.run(["gcc", "-O2", tmp_path / "sqrt.c", "-o", tmp_path / "run", "-lm"], check=True)
    assert subprocess.run([tmp_path / "run"]).returncode == 0


# ------------------------------------------------------------------------------------------ writing the files


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def test_regenerating_replaces_its_own_files_and_keeps_edited_ones(tmp_path):
    out = tmp_path / "out"
    generate(spec_of(), out)
    generate(spec_of(n_max=9), out)
    assert "FLOW_N_MAX 9" in (out / "src" / "flow.h").read_text()
    (out / "examples" / "main.c").write_text("int main(void) { return 0; } /* mine */\n")
    before = tree(out)
    with pytest.raises(UserError, match=r"main\.c: was changed by hand"):
        generate(spec_of(n_max=10), out)
    assert tree(out) == before
    generate(spec_of(n_max=10), out, force=True)
    assert "mine" not in (out / "examples" / "main.c").read_text()


def test_nothing_is_written_through_links_or_over_strangers(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for trap in ("src", "src/flow.c", "manifest.json"):
        out = tmp_path / trap.replace("/", "_")
        (out / trap).parent.mkdir(parents=True)
        (out / trap).symlink_to(elsewhere if trap == "src" else elsewhere / "stolen")
        for force in (False, True):
            with pytest.raises(UserError, match="is a link"):
                generate(spec_of(), out, force=force)
        assert not list(elsewhere.iterdir()) and not tree(out)
    out = tmp_path / "strange"
    out.mkdir()
    (out / "CMakeLists.txt").write_text("project(mine)\n")
    with pytest.raises(UserError, match=r"CMakeLists\.txt: was changed by hand or is not pykernel's"):
        generate(spec_of(), out)
    assert tree(out) == {"CMakeLists.txt": b"project(mine)\n"}
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="is a file"):
        generate(spec_of(), tmp_path / "file")


def forecast_of(channels, **more):
    """A model that forecasts the first of its channels."""
    signal = {"channels": list(channels), "lags": [0], "differences": [1]}
    return make_spec({"name": "flow", "signal": signal, "label": {"column": channels[0]}, **more})


@pytest.mark.parametrize("forecasts", [False, True])
def test_text_from_a_spec_cannot_leave_a_comment_or_a_string(forecasts, tmp_path, exhaustive):
    hostile = ["*/ int x; /*", "a\\", "??/", '"; system("x"); "', "${HOME}", "{{ 7*7 }}", "#include <x>", "a'b"]
    spec = forecast_of(hostile) if forecasts else spec_of(input={"columns": hostile}, label={"column": "*/ y"})
    generate(spec, tmp_path)
    for c in compilers(exhaustive):
        compile_c(c, [tmp_path / "src" / "flow.c"], tmp_path / "x.o", (), ("-c",))
    header = (tmp_path / "src" / "flow.h").read_text()
    assert "49" not in header.split("#ifndef")[0] and "* / int x; / *" in header
    read = load_spec(tmp_path / "flow.toml")
    assert list(read.signal.channels if forecasts else read.input.columns) == hostile
    # an odd number of tokens in a comment would show as code
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    assert "system" not in code and "int x" not in code


def test_generated_files_say_their_licence(tmp_path):
    generate(spec_of(), tmp_path)
    for file in ("src/flow.h", "src/flow.c", "examples/main.c", "CMakeLists.txt"):
        assert "SPDX-License-Identifier: 0BSD" in (tmp_path / file).read_text(), file
    assert "0BSD" in (tmp_path / "LICENSE").read_text()


def test_strict_flags_are_those_of_the_promise():
    assert {
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wconversion",
        "-Wdouble-promotion",
        "-Wshadow",
        "-Wvla",
        "-Werror",
    } <= set(STRICT)


def test_memory_and_numpy_agree_on_every_offset():
    """The C asserts offsets at compile time; here NumPy's are the same ones."""
    for technique in TECHNIQUES:
        for precision in PRECISIONS:
            project = build(spec_of(technique, precision, n_max=5))
            dtype = project.spec.memory(project.drop).buffer.dtype
            asserted = dict(re.findall(r"offsetof\(flow_t, (\w+)\) == (\d+)u", project.files["src/flow.c"]))
            assert {name: int(offset) for name, offset in asserted.items()} == {
                name: dtype.fields[name][1] for name in dtype.names
            }
            assert dtype.itemsize == project.figures["ram_bytes"] and dtype.itemsize % np.dtype(precision).itemsize == 0


@pytest.mark.parametrize("precision", [*PRECISIONS, "int16"])
def test_a_file_that_packs_its_structs_does_not_build_with_the_header(precision, tmp_path):
    """Its memory would begin anywhere, and a Cortex-M0 stops where a number of four bytes does."""
    whole = {"name": "flow", "precision": "int16", "input": {"dim": 2, "max_abs": 3.0}, "label": {"max_abs": 9.0}}
    spec = make_spec(whole) if precision == "int16" else spec_of("nt", precision, dim=2)
    (tmp_path / "flow.h").write_text(build(spec).files["src/flow.h"])
    caller = tmp_path / "caller.c"
    for before, flags, packed in (("", (), False), ("", ("-fpack-struct",), True), ("#pragma pack(1)\n", (), True)):
        caller.write_text(f'{before}#include "flow.h"\nextern flow_t given;\n')
        if packed:
            with pytest.raises(CheckFailed, match=r"flow_assert_(alignment|size)"):
                compile_c(find_compilers()[0], [caller], tmp_path / "caller.o", flags, ("-c",))
        else:
            compile_c(find_compilers()[0], [caller], tmp_path / "caller.o", flags, ("-c",))
