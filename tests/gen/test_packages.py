"""One folder, a package for each toolchain: built where the toolchain's rules can be followed here, linted elsewhere."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import kconfiglib
import numpy as np
import pytest
import yaml

from pykernel.cli.app import main
from pykernel.errors import UserError
from pykernel.gen.check import check
from pykernel.gen.packages import TEMPLATES, semantic_version
from pykernel.gen.project import build, generate, state_hash
from pykernel.gen.record import record, record_proof, require_project
from pykernel.gen.write import EXTRAS
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec
from tests.gen.test_project import forecast_of, has_fma, learned, spec_of, unguarded
from tests.support.machines import machine
from tests.support.tools import needs
from tests.support.toys import LABELS, toy_spec

needs_cmake = needs("cmake")
needs_gcc = needs("gcc", "g++")
NATIVE = ("-march=native",) if has_fma() else ()


def run(*words, **how):
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True, **how)
    assert result.returncode == 0, f"{words}\n{result.stdout}\n{result.stderr}"
    return result.stdout


MADE = {}
"""Folder -> its spec and what it had learned."""


RARELY = ("fresh", "reals", "predicts", "trained")
KINDS = ("fresh", "fitted", "reals", "class", "predicts", "trained", "monitor")


MACHINES_OF = {"predicts": "pairs", "trained": "kfd-classes", "monitor": "monitor"}


@pytest.fixture(params=[pytest.param(k, marks=pytest.mark.exhaustive) if k in RARELY else k for k in KINDS])
def package(request, tmp_path):
    """A generated folder: of a regression, of one that has learned, of several labels, of classes; of a model that only
    predicts, of one that is trained at once, and of one that learns without labels and raises alarms."""
    kind = request.param if request.param in LABELS else "real"
    spec = spec_of() if kind == "real" else toy_spec(kind, name="flow")
    if request.param in MACHINES_OF:
        spec = machine(MACHINES_OF[request.param])
    memory = learned(spec) if request.param == "fitted" else None
    generate(spec, tmp_path / "flow", memory)
    MADE[tmp_path / "flow"] = spec, memory
    return tmp_path / "flow"


def sources(folder):
    return sorted((folder / "src").glob("*.c"))


def example_hash(steps, package=None):
    """The state's hash after the examples' samples, by the simulation."""
    spec, memory = MADE[package] if package else (spec_of(), None)
    model = HostModel(spec, build(spec).drop)
    if memory is not None:
        model.memory.copy_from(memory)
    turn = np.arange(steps) % 20
    phase = turn.astype(np.float32) / np.float32(20)
    if not spec.program.learns:
        model.ask("classify" if spec.label.classes else "predict", np.repeat(phase[:, None], spec.dim, 1))
        return f"{state_hash(spec, model.memory):08x}"
    if spec.program.label_kind == "none":
        assert (model.update(np.repeat(phase[:, None], spec.dim, 1)) >= 0).all()
        return f"{state_hash(spec, model.memory):08x}"
    y = np.where(phase < 0.5, 1, -1)
    if spec.label.classes:
        y = turn * len(spec.label.classes) // 20
    elif spec.outputs > 1:
        y = np.repeat(y[:, None], spec.outputs, 1)
    for start in range(0, steps, 20):  # after each round, what can be trained is
        x, part = np.repeat(phase[:, None], spec.dim, 1)[start : start + 20], y[start : start + 20]
        assert (model.update(x, part) >= 0).all()
        if "train" in spec.program.actions and len(x) == 20:
            assert model.train() == 0
    return f"{state_hash(spec, model.memory):08x}"


def test_the_folder_holds_every_package_and_the_manifest_vouches_for_it(tmp_path):
    generate(spec_of(), tmp_path)
    files = {str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()}
    assert files >= {
        "src/flow.h", "src/flow.hpp", "src/flow.c", "flow.toml", "flow.cdx.json", "LICENSE", "README.md", "VALIDITY.md", "manifest.json", "CMakeLists.txt",
        "examples/main.c", "library.properties", "library.json", "examples/flow/flow.ino", "idf_component.yml",
        "zephyr/module.yml", "zephyr/Kconfig", "zephyr/CMakeLists.txt", "examples/zephyr-app/CMakeLists.txt",
        "examples/zephyr-app/prj.conf", "examples/zephyr-app/sample.yaml", "examples/zephyr-app/src/main.c",
        "examples/esp-idf/CMakeLists.txt", "examples/esp-idf/main/CMakeLists.txt", "examples/esp-idf/main/main.c",
    }  # fmt: skip
    vouched = json.loads((tmp_path / "manifest.json").read_text())["sha256"]
    assert set(vouched) == files - {"manifest.json"}
    for file, digest in vouched.items():
        assert hashlib.sha256((tmp_path / file).read_bytes()).hexdigest() == digest, file


@pytest.mark.parametrize(
    "spec",
    [spec_of(), *(machine(name, model=f"m{i}") for i, name in enumerate(("pairs", "kfd-classes")))],
    ids=lambda spec: spec.name,
)
def test_the_numbers_of_a_manifest_are_those_of_the_c(spec, tmp_path):
    """Its own keys are none that a capacity of some model could have: extents are in a table of their own."""
    generate(spec, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert set(manifest) == {"format", "generator", "figures", "sha256"} and manifest["format"] == 1
    figures, macro = manifest["figures"], spec.name.upper()
    text = "".join(path.read_text() for path in sorted((tmp_path / "src").glob("*.[ch]")))
    defined = {name.lower(): int(value, 0) for name, value in re.findall(rf"#define {macro}_(\w+) (\w+?)u? /\*", text)}
    extents = figures["extents"]
    assert extents == {name.lower(): size for name, size in spec.capacities.items() if size} | (
        {"classes": len(spec.label.classes)} if spec.label.classes else {}
    )
    assert {name: defined[name] for name in extents if name in defined} == {
        n: s for n, s in extents.items() if n in defined
    }
    assert {"dim", "outputs"} <= set(defined)
    hashes = {key for key in ("config_hash", "state_kind") if key in figures}
    assert ("state_kind" in hashes) == spec.program.learns and "config_hash" in hashes
    assert all(int(figures[key], 16) == defined[key] for key in hashes)
    assert all(figures[key] == defined[key] for key in figures if key.endswith("_bytes") and key in defined)
    changed = next((tmp_path / "src").glob("*.h"))
    changed.write_text("mine")
    with pytest.raises(UserError, match="was changed by hand"):
        generate(spec, tmp_path)


def test_every_build_file_that_can_switches_contraction_off(tmp_path):
    generate(spec_of(), tmp_path)
    for file in ("CMakeLists.txt", "library.json", "zephyr/CMakeLists.txt"):
        assert "-ffp-contract=off" in (tmp_path / file).read_text(), file
    # once for ESP-IDF, once for plain CMake
    assert (tmp_path / "CMakeLists.txt").read_text().count("-ffp-contract=off") == 2


@pytest.mark.exhaustive
def test_text_from_a_spec_does_not_reach_the_packages():
    """Whatever columns are called, and whatever the folder's format is: only the model's name gets in."""
    hostile = [
        "*/ int x;",
        "a\\",
        '"; system("x"); "',
        "${HOME}",
        "$ENV{HOME}",
        "{{ 7*7 }}",
        "x\u00b2: [",
        "#",
        "%1d",
        "a=b",
    ]
    tame = [f"c{i}" for i in range(len(hostile))]
    for labels in ({"column": "y"}, {"columns": ["y", "z"]}, {"column": "y", "classes": ["a", "b", "c"]}):
        wild = {key: hostile[: len(names)] if key != "column" else "*/ y: {" for key, names in labels.items()}
        both = (tame, labels), ([f"{name} " + "!" for name in hostile], wild)
        made = [build(toy_spec("real", input={"columns": list(inputs)}, label=label)).files for inputs, label in both]
        # the label is a channel, which is forecast
        made += [build(forecast_of(inputs, name="toy")).files for inputs, _ in both]
        for path in (each.format(name="toy") for each in TEMPLATES):
            # the hashes of the model tell its columns
            texts = [re.sub(r"`[0-9a-f]{8}`", "", each[path]) for each in made]
            assert texts[0] == texts[1] and texts[2] == texts[3], path


@pytest.mark.parametrize(
    ("python", "manifest"),
    [("0.1.0", "0.1.0"), ("1.2", "1.2.0"), ("1.2.dev3+g12ab", "1.2.0"), ("3", "3.0.0"), ("1.02.3.4rc1", "1.2.3")],
)
def test_versions_are_semantic(python, manifest):
    assert semantic_version(python) == manifest


# ------------------------------------------------------------------------------------------------- plain CMake


def cmake(source, folder, *options):
    # nothing of this machine's settings; warnings are errors
    environment = {k: v for k, v in os.environ.items() if k not in ("CFLAGS", "CMAKE_PREFIX_PATH")}
    run("cmake", "-S", source, "-B", folder, "-Werror=dev", *options, env=environment)
    run("cmake", "--build", folder, env=environment)
    return folder


@pytest.mark.in_turn
@needs_cmake
def test_cmake_alone(package, tmp_path):
    """GNU dialect and FMA asked for by the surroundings: the target's own flags win."""
    folder = cmake(package, tmp_path / "build", f"-DCMAKE_C_FLAGS=-O3 {' '.join(NATIVE)} -ffp-contract=fast")
    out = run(folder / "flow_example")
    assert f"hash {example_hash(200, package)}" in out


CONSUMER = """
cmake_minimum_required(VERSION 3.13)
project(firmware LANGUAGES C)
enable_testing()
{find}
add_executable(app {source})
target_link_libraries(app PRIVATE {links} m)
"""


@needs_cmake
@pytest.mark.exhaustive
def test_cmake_below_a_firmware_and_installed(package, tmp_path):
    """Two models in one firmware, by add_subdirectory; one, by find_package."""
    generate(spec_of(name="level", technique="nt"), tmp_path / "level")
    above = tmp_path / "above"
    above.mkdir()
    find = "add_subdirectory(../flow flow)\nadd_subdirectory(../level level)"
    main = (package / "examples" / "main.c").read_text()
    (above / "main.c").write_text('#include "level.h"\n' + main)
    (above / "CMakeLists.txt").write_text(CONSUMER.format(find=find, source="main.c", links="flow::flow level::level"))
    assert " hash " in run(cmake(above, above / "build") / "app")

    prefix = tmp_path / "prefix"
    folder = cmake(package, tmp_path / "build", f"-DCMAKE_INSTALL_PREFIX={prefix}")
    run("cmake", "--install", folder)
    user = tmp_path / "user"
    user.mkdir()
    (user / "main.c").write_text(main)
    version = semantic_version(json.loads((package / "library.json").read_text())["version"])
    find = f"find_package(flow {version} CONFIG REQUIRED)"
    (user / "CMakeLists.txt").write_text(CONSUMER.format(find=find, source="main.c", links="flow::flow"))
    shutil.rmtree(package)  # what was installed needs nothing else
    assert " hash " in run(cmake(user, user / "build", f"-DCMAKE_PREFIX_PATH={prefix}") / "app")


@pytest.mark.exhaustive
@pytest.mark.in_turn(54)
@needs_cmake
@pytest.mark.parametrize("name", ["test", "m", "all", "install", "zephyr", "library", "flow_example"])
def test_names_that_mean_something_to_cmake_or_to_linkers(name, tmp_path):
    generate(spec_of(name=name), tmp_path / "model")
    find = "add_subdirectory(../model model)"
    (tmp_path / "app").mkdir()
    shutil.copy(tmp_path / "model" / "examples" / "main.c", tmp_path / "app")
    (tmp_path / "app" / "CMakeLists.txt").write_text(
        CONSUMER.format(find=find, source="main.c", links=f"{name}::{name}")
    )
    assert " hash " in run(cmake(tmp_path / "app", tmp_path / "build") / "app")
    assert " hash " in run(cmake(tmp_path / "model", tmp_path / "alone") / f"{name}_example")


# ----------------------------------------------------------------------------------------- Arduino, PlatformIO

ARDUINO_H = """
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define F(text) (text)
#define HEX 16
struct Port {
  void begin(long) {}
  void print(const char *s) { fputs(s, stdout); }
  void print(double v, int digits = 2) { printf("%.*f", digits, v); }
  void print(int v) { printf("%d", v); }
  void print(long v) { printf("%ld", v); }
  void println(const char *s) { puts(s); }
  void println(unsigned int v, int) { printf("%x\\n", v); }
  void println(unsigned long v, int) { printf("%lx\\n", v); }
};
extern Port Serial;
void delay(unsigned long ms);
"""
CORE = """
#include <Arduino.h>
Port Serial;
static unsigned long now;
void delay(unsigned long ms) { now += ms; if (now > 1000000) exit(1); }
void setup();
void loop();
int main() { setup(); for (int i = 0; i < STEPS; i++) loop(); }
"""
# those of Arduino's SAMD and Mbed cores, and PlatformIO's
C_FLAGS = ("-std=gnu11", "-Os", "-g", "-Wall", "-Wextra", "-ffunction-sections", "-fdata-sections", "-nostdlib")
CPP_FLAGS = (
    "-Os",
    "-g",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-threadsafe-statics",
    "-fno-rtti",
    "-fno-exceptions",
)


def sketch(package, folder):
    """What the Arduino builder makes of a sketch: Arduino.h in front, and a prototype for each function."""
    text = (package / "examples" / "flow" / "flow.ino").read_text()
    functions = re.findall(r"^((?:static )?\w+ \w+\([^)]*\))\s*\{", text, re.MULTILINE)
    assert {re.search(r"(\w+)\(", f)[1] for f in functions} == {"setup", "loop", "sample"}
    at = re.search(r"^static \w+ sample", text, re.MULTILINE).start()
    prototypes = "".join(f"{f};\n" for f in functions)
    (folder / "flow.ino.cpp").write_text(
        f'#include <Arduino.h>\n#line 1 "flow.ino"\n{text[:at]}{prototypes}{text[at:]}'
    )
    (folder / "Arduino.h").write_text(ARDUINO_H)
    return folder / "flow.ino.cpp"


def firmware(package, folder, prefix="", c_flags=C_FLAGS, cpp_flags=CPP_FLAGS, dialect="-std=gnu++17", steps=50):
    """The library's sources, the sketch and a core, compiled and linked as a builder does: the program."""
    folder.mkdir(exist_ok=True)
    (folder / "core.cpp").write_text(CORE)
    cpp = [sketch(package, folder), folder / "core.cpp"]
    include = (f"-I{folder}", f"-I{package / 'src'}", f"-DSTEPS={steps}")
    objects = []
    for source in [*sources(package), *cpp]:
        objects.append(folder / f"{source.name}.o")
        chosen = (f"{prefix}gcc", *c_flags) if source.suffix == ".c" else (f"{prefix}g++", dialect, *cpp_flags)
        run(*chosen, *include, "-c", source, "-o", objects[-1])
    if not prefix:
        run("g++", "-Wl,--gc-sections", *objects, "-o", folder / "run")
    return folder / "run"


@needs_gcc
@pytest.mark.parametrize("style", ["arduino", "platformio"])
@pytest.mark.parametrize("level", ["-Os", "-O3"])
@pytest.mark.exhaustive
def test_sketch_as_the_builders_compile_it(package, style, level, tmp_path):
    """GNU dialects, a processor with FMA: the selftest passes, and 50 loops leave the simulation's state."""
    manifest = json.loads((package / "library.json").read_text())
    # Arduino's libraries have no flags of their own: the source alone has to see to it
    own = tuple(manifest["build"]["flags"]) if style == "platformio" else ()
    dialect = "-std=gnu++17" if style == "platformio" else "-std=gnu++11"
    cpp = (*CPP_FLAGS, *NATIVE, *own, *(() if style == "platformio" else ("-fpermissive",)))
    program = firmware(package, tmp_path / "build", "", (*C_FLAGS, *NATIVE, level, *own), cpp, dialect)
    lines = run(program).splitlines()
    assert len(lines) == 50 and lines[-1].endswith(f"hash {int(example_hash(50, package), 16):x}")


@pytest.mark.exhaustive
@needs_gcc
@pytest.mark.skipif(not has_fma(), reason="needs a processor with FMA")
def test_these_dialects_do_contract_and_the_sketch_tells(tmp_path):
    """Negative control: without what the source says, the sketch stops at the selftest.

    PlatformIO's flags save it where only expressions are contracted; GCC's vectors on x86 need the source's pragma.
    """
    generate(spec_of(), tmp_path / "flow")
    source = tmp_path / "flow" / "src" / "flow.c"
    source.write_text(unguarded(source.read_text()))
    careless = (*C_FLAGS, *NATIVE, "-O3", "-Wno-unused-function")
    program = firmware(tmp_path / "flow", tmp_path / "build", "", careless)
    stopped = subprocess.run([program], capture_output=True, text=True)
    assert stopped.returncode == 1 and "does not give the promised bits" in stopped.stdout
    own = json.loads((tmp_path / "flow" / "library.json").read_text())["build"]["flags"]
    careless += ("-fno-tree-loop-vectorize", "-fno-tree-slp-vectorize")
    program = firmware(tmp_path / "flow", tmp_path / "build", "", (*careless, *own))
    assert run(program).splitlines()[-1].endswith(f"hash {int(example_hash(50), 16):x}")


M4F = ("-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")


@needs("arm-none-eabi-g++")
@pytest.mark.parametrize("level", ["-Os", "-O3"])
@pytest.mark.exhaustive
def test_sketch_for_a_cortex_m4f(package, level, tmp_path):
    """As the cores compile it, there is no fused instruction, and nothing from libm or in double."""
    folder = tmp_path / "build"
    firmware(package, folder, "arm-none-eabi-", (*C_FLAGS, *M4F, level), (*CPP_FLAGS, *M4F))
    for file in folder.glob("*.c.o"):
        assert not re.search(r"\bvfm[as]|\bvfnm[as]", run("arm-none-eabi-objdump", "-d", file)), file
        undefined = set(run("arm-none-eabi-nm", "-u", file).split()) - {"U"}
        ours = {name for name in undefined if name.startswith("flow_")}
        assert undefined - ours <= {"memcpy", "memmove", "memset"}, file
    # negative control: the same flags do fuse, where the source does not forbid it
    careless = tmp_path / "careless.c"
    careless.write_text(unguarded((package / "src" / "flow.c").read_text()))
    run(
        "arm-none-eabi-gcc", *C_FLAGS, *M4F, "-w", f"-I{package / 'src'}", "-c", careless, "-o", tmp_path / "careless.o"
    )
    assert re.search(r"\bvfm[as]", run("arm-none-eabi-objdump", "-d", tmp_path / "careless.o"))


@pytest.mark.in_turn
@needs("avr-gcc")
def test_library_for_an_arduino_mega(package, tmp_path):
    flags = (
        "-Os",
        "-std=gnu11",
        "-ffunction-sections",
        "-fdata-sections",
        "-flto",
        "-fno-fat-lto-objects",
        "-mmcu=atmega2560",
    )
    for source in sources(package):
        run("avr-gcc", *flags, "-Wall", "-Wextra", "-c", source, "-o", tmp_path / f"{source.name}.o")


def properties(text):
    """Arduino's properties, strictly: key=value lines, comments and nothing else, no key twice."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [line.partition("=")[::2] for line in lines]
    assert all("=" in line for line in lines) and len(dict(pairs)) == len(pairs)
    return dict(pairs)


SEMVER = r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)"
NAMES = ["flow", "arduino_uno", "a", "zephyr", "x" * 31, "esp32_s3", "library"]


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_arduino_and_platformio_manifests_keep_the_rules(name, tmp_path):
    """Those of arduino-lint's schema (level "specification") and of PlatformIO's ManifestSchema."""
    generate(spec_of(name=name), tmp_path)
    found = properties((tmp_path / "library.properties").read_text())
    required = {"name", "version", "author", "maintainer", "sentence", "paragraph", "category", "url", "architectures"}
    assert set(found) == required | {"includes"} and all(found[key] for key in found if key != "url")
    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9 _.-]{0,62}", found["name"])
    for key in ("name", "maintainer"):
        assert not found[key].lower().startswith("arduino")
    assert re.fullmatch(SEMVER, found["version"])
    assert found["category"] == "Data Processing" and found["architectures"] == "*"
    assert found["url"] == ""  # until there is a public page
    assert (tmp_path / "src" / found["includes"]).is_file()
    assert not (tmp_path / "utility").exists()  # which src excludes
    for folder in (tmp_path / "examples").iterdir():  # a folder is a sketch only if the sketch is called like it
        assert {f.stem for f in folder.glob("*.ino")} <= {folder.name}

    def no_doubles(pairs):
        assert len(dict(pairs)) == len(pairs)
        return dict(pairs)

    manifest = json.loads((tmp_path / "library.json").read_text(), object_pairs_hook=no_doubles)
    assert set(manifest) == {
        "name", "version", "description", "keywords", "license", "frameworks", "platforms", "headers", "build", "examples",
    }  # fmt: skip
    assert re.fullmatch(r"[^:;/,@<>]{1,50}", manifest["name"]) and re.fullmatch(SEMVER, manifest["version"])
    assert 1 <= len(manifest["description"]) <= 255
    assert all(re.fullmatch(r"[a-z\d\-+. ]{1,50}", word) for word in manifest["keywords"])
    assert manifest["license"] == "0BSD" and manifest["frameworks"] == manifest["platforms"] == "*"
    assert (tmp_path / "src" / manifest["headers"]).is_file()
    assert manifest["build"]["srcDir"] == manifest["build"]["includeDir"] == "src"
    for example in manifest["examples"]:
        assert re.fullmatch(r"[a-zA-Z\d\-_/]{1,100}", example["name"])
        assert all((tmp_path / example["base"] / file).is_file() for file in example["files"])


# --------------------------------------------------------------------------------------------- Zephyr, ESP-IDF


class Strict(yaml.SafeLoader):
    """YAML without keys given twice."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(set(keys)) == len(keys), keys
        return super().construct_mapping(node, deep)


def read_yaml(path):
    return yaml.load(path.read_text(encoding="ascii"), Strict)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", NAMES)
def test_zephyr_and_esp_idf_manifests_keep_the_rules(name, tmp_path):
    """Those of zephyr_module.py's schema, of Kconfig's parser, and of the IDF component manager."""
    generate(spec_of(name=name), tmp_path)
    module = read_yaml(tmp_path / "zephyr" / "module.yml")
    assert set(module) == {"name", "build", "samples"} and set(module["build"]) == {"cmake", "kconfig"}
    assert module["name"] == f"pykernel_{name}"
    assert (tmp_path / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    for sample in module["samples"]:
        listed = read_yaml(tmp_path / sample / "sample.yaml")
        assert set(listed) == {"sample", "tests"} and set(listed["sample"]) == {"name", "description"}
        assert all(re.fullmatch(r"[\w-]+(\.[\w-]+)+", test) for test in listed["tests"])
        assert (tmp_path / sample / "prj.conf").is_file()

    symbol = f"PYKERNEL_{name.upper()}"
    (tmp_path / "Kconfig").write_text(
        f'menu "pykernel_{name}"\nosource "{tmp_path / module["build"]["kconfig"]}"\nendmenu\n'
        'config CBPRINTF_FP_SUPPORT\n\tbool "numbers"\n'
    )
    tree = kconfiglib.Kconfig(str(tmp_path / "Kconfig"), warn_to_stderr=False)
    assert [s.name for s in tree.unique_defined_syms] == [symbol, "CBPRINTF_FP_SUPPORT"] and not tree.warnings
    assert tree.syms[symbol].str_value == "n"
    assert len(tree.syms[symbol].nodes[0].prompt[0]) <= 72
    tree.load_config(str(tmp_path / "examples" / "zephyr-app" / "prj.conf"))
    assert tree.syms[symbol].str_value == "y" and not tree.warnings
    assert f"CONFIG_{symbol})" in (tmp_path / "zephyr" / "CMakeLists.txt").read_text()

    component = read_yaml(tmp_path / "idf_component.yml")
    assert set(component) == {"version", "description", "license", "dependencies"}
    assert re.fullmatch(SEMVER, component["version"]) and component["license"] == "0BSD"
    assert component["dependencies"] == {"idf": ">=4.4"}


ZEPHYR_STUBS = """
cmake_minimum_required(VERSION 3.20)
project(zephyr_stub LANGUAGES C)
set(CONFIG_PYKERNEL_FLOW {chosen})
add_library(zephyr_interface INTERFACE)
macro(zephyr_library_named name)
  set(ZEPHYR_CURRENT_LIBRARY ${{name}})
  add_library(${{name}} STATIC)
  target_link_libraries(${{name}} PUBLIC zephyr_interface)
endmacro()
macro(zephyr_library_sources)
  target_sources(${{ZEPHYR_CURRENT_LIBRARY}} PRIVATE ${{ARGN}})
endmacro()
macro(zephyr_library_compile_options)
  target_compile_options(${{ZEPHYR_CURRENT_LIBRARY}} PRIVATE ${{ARGN}})
endmacro()
macro(zephyr_include_directories)
  foreach(folder ${{ARGN}})
    get_filename_component(path ${{folder}} ABSOLUTE)
    target_include_directories(zephyr_interface INTERFACE ${{path}})
  endforeach()
endmacro()
add_subdirectory({package}/zephyr module)
if(TARGET pykernel_flow)
  add_executable(app {package}/examples/zephyr-app/src/main.c)
  target_include_directories(app PRIVATE ${{CMAKE_SOURCE_DIR}}/include)
  target_link_libraries(app PRIVATE pykernel_flow)
endif()
"""


@pytest.mark.exhaustive
@needs_cmake
def test_zephyr_module_builds_with_stubs(package, tmp_path):
    """The module's CMake run for real, its example linked and run with printk and k_msleep made up."""
    include = tmp_path / "stub" / "include" / "zephyr" / "sys"
    include.mkdir(parents=True)
    (include / "printk.h").write_text("#include <stdio.h>\n#define printk printf\n")
    (include.parent / "kernel.h").write_text(
        "#include <stdlib.h>\nstatic int left = 50;\nstatic void k_msleep(int ms) { left -= ms / 100; if (left == 0) exit(0); }\n"
    )
    (tmp_path / "stub" / "CMakeLists.txt").write_text(ZEPHYR_STUBS.format(chosen="y", package=package))
    commands = tmp_path / "build" / "compile_commands.json"
    cmake(tmp_path / "stub", tmp_path / "build", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", "-DCMAKE_C_FLAGS=-std=gnu11 -Os")
    built = {Path(c["file"]).resolve(): c["command"] for c in json.loads(commands.read_text())}
    for source in sources(package):
        assert "-ffp-contract=off" in built[source.resolve()]
    assert run(tmp_path / "build" / "app").splitlines()[-1].endswith(f"hash {example_hash(50, package)}")
    # not chosen in Kconfig: nothing is built
    (tmp_path / "stub" / "CMakeLists.txt").write_text(ZEPHYR_STUBS.format(chosen="", package=package))
    cmake(tmp_path / "stub", tmp_path / "without")
    assert not list((tmp_path / "without").rglob("*.a"))


IDF_STUBS = """
cmake_minimum_required(VERSION 3.16)
project(idf_stub LANGUAGES C)
set(ESP_PLATFORM 1)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
macro(idf_component_register)
  cmake_parse_arguments(_ "" "" "SRCS;INCLUDE_DIRS" ${{ARGN}})
  if(DEFINED __UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "unknown: ${{__UNPARSED_ARGUMENTS}}")
  endif()
  get_filename_component(COMPONENT_NAME ${{CMAKE_CURRENT_LIST_DIR}} NAME)
  set(COMPONENT_LIB __idf_${{COMPONENT_NAME}})
  add_library(${{COMPONENT_LIB}} STATIC ${{__SRCS}})
  if(DEFINED __INCLUDE_DIRS)
    target_include_directories(${{COMPONENT_LIB}} PUBLIC ${{__INCLUDE_DIRS}})
  endif()
  target_include_directories(${{COMPONENT_LIB}} PRIVATE ${{CMAKE_SOURCE_DIR}}/include)
  # main sees every component
  if(COMPONENT_NAME STREQUAL main)
    target_link_libraries(${{COMPONENT_LIB}} PUBLIC __idf_flow)
  endif()
endmacro()
add_subdirectory({package} flow)
add_subdirectory({package}/examples/esp-idf/main main)
add_executable(app start.c)
target_link_libraries(app PRIVATE __idf_main)
"""


@pytest.mark.exhaustive
@needs_cmake
def test_esp_idf_component_builds_with_stubs(package, tmp_path):
    """The component's CMake run for real, its app_main linked and run with the log and vTaskDelay made up."""
    stub = tmp_path / "stub"
    include = stub / "include" / "freertos"
    include.mkdir(parents=True)
    (stub / "include" / "esp_log.h").write_text(
        '#include <stdio.h>\n#define ESP_LOGI(tag, ...) (printf("I (%s) ", tag), printf(__VA_ARGS__), puts(""))\n'
        "#define ESP_LOGE ESP_LOGI\n#define ESP_LOGW ESP_LOGI\n"
    )
    (include / "FreeRTOS.h").write_text("#define pdMS_TO_TICKS(ms) ((ms) / 10)\n")
    (include / "task.h").write_text(
        "#include <stdlib.h>\nstatic int left = 50;\nstatic void vTaskDelay(int ticks) { left -= ticks / 10; if (left == 0) exit(0); }\n"
    )
    (stub / "start.c").write_text("void app_main(void);\nint main(void) { app_main(); return 1; }\n")
    (stub / "CMakeLists.txt").write_text(IDF_STUBS.format(package=package))
    cmake(stub, tmp_path / "build", "-DCMAKE_C_FLAGS=-std=gnu17 -O2 -Wall -Wextra -Werror -Wno-unused-variable")
    commands = json.loads((tmp_path / "build" / "compile_commands.json").read_text())
    for source in sources(package):
        (command,) = [c["command"] for c in commands if Path(c["file"]).resolve() == source.resolve()]
        assert "-ffp-contract=off" in command
    assert run(tmp_path / "build" / "app").splitlines()[-1].endswith(f"hash {example_hash(50, package)}")

    # IDF first reads a component's needs in script mode, where only the registration may be reached
    (tmp_path / "needs.cmake").write_text(
        f'set(ESP_PLATFORM 1)\nmacro(idf_component_register)\n  message(STATUS "registered ${{ARGN}}")\n  return()\nendmacro()\n'
        f"include({package}/CMakeLists.txt)\n"
    )
    assert "registered SRCS;src/flow.c" in run("cmake", "-P", tmp_path / "needs.cmake")


@pytest.mark.in_turn(9)
@needs_cmake
@pytest.mark.parametrize("example", ["zephyr-app", "zephyr-check", "esp-idf", "esp-idf-check"])
def test_examples_find_the_model_they_lie_in(example, tmp_path):
    """The examples' own CMake, with the toolchain's entry replaced: which folder do they add?"""
    generate(spec_of(), tmp_path / "flow", also=("check",))
    if example.startswith("zephyr"):
        stub = tmp_path / "zephyr" / "share" / "zephyr-package" / "cmake"
        stub.mkdir(parents=True)
        (stub / "ZephyrConfig.cmake").write_text(
            "file(WRITE ${CMAKE_BINARY_DIR}/found.txt ${ZEPHYR_EXTRA_MODULES})\nenable_language(C)\nadd_library(app OBJECT)\n"
            "target_include_directories(app PRIVATE ${ZEPHYR_EXTRA_MODULES}/src)\n"
        )
    else:
        stub = tmp_path / "idf" / "tools" / "cmake"
        stub.mkdir(parents=True)
        (stub / "project.cmake").write_text("file(WRITE ${CMAKE_BINARY_DIR}/found.txt ${EXTRA_COMPONENT_DIRS})\n")
    places = {"ZEPHYR_BASE": str(tmp_path / "zephyr"), "IDF_PATH": str(tmp_path / "idf")}
    source = tmp_path / "flow" / "examples" / example
    run("cmake", "-S", source, "-B", tmp_path / "build", env=os.environ | places)
    assert (tmp_path / "build" / "found.txt").read_text() == str(tmp_path / "flow")


# ---------------------------------------------------------------------------------------- what is known of a model


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = spec_of(input={"columns": ["a", "b"]}, label={"column": "y"})
    Path("flow.toml").write_text(spec.to_toml())
    generate(spec, "flow")
    return spec


def command(*words):
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    return stopped.value.code


def test_a_new_project_says_that_nothing_was_run(project):
    text = Path("flow/VALIDITY.md").read_text()
    figures = build(project).figures
    header, code = Path("flow/src/flow.h").read_text(), Path("flow/src/flow.c").read_text()
    known = re.findall(r"^\| [^|]*\| `([0-9a-f]{8})` \|$", text, re.MULTILINE)
    assert known[0] == figures["config_hash"] and known[0].upper() in header
    assert f"0x{known[1].upper()}" in code
    assert "Nothing was compiled or run" in text and "Nothing was run on a real chip" in text
    assert f"{figures['state_bytes']} bytes of state" in text


@pytest.mark.exhaustive
@pytest.mark.usefixtures("one_build")
@pytest.mark.usefixtures("one_build")
def test_a_check_is_recorded_with_what_was_run(project, capsys, monkeypatch):
    assert command("check", "flow.toml", "--samples", "500", "--record", "flow", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    text = Path("flow/VALIDITY.md").read_text()
    assert (
        "Nothing was compiled" not in text
        and report["sizes"]["stream_hash"] in text
        and "Nothing was run on a real chip" in text
    )
    rows = re.findall(
        r"^\| (\w+ -O\d(?: -march=native)?) \((.*)\) \| this machine, \w+ \| 500 \| yes \(llvm\) \| `\w{8}` \| `(\w{8})` \| code at -Os [\d,]+, constants [\d,]+ \|$",
        text,
        re.MULTILINE,
    )
    assert [r[0] for r in rows] == [f"{row['compiler']} {row['flags']}" for row in report["check"]] and rows
    assert {r[2] for r in rows} == {report["sizes"]["state_hash"]}
    vouched = json.loads(Path("flow/manifest.json").read_text())["sha256"]["VALIDITY.md"]
    assert vouched == hashlib.sha256(text.encode()).hexdigest()
    # generating again, from the same spec, forgets it; the command that stands with the row writes the same
    generate(project, "flow")
    assert "Nothing was compiled" in Path("flow/VALIDITY.md").read_text()
    monkeypatch.chdir("flow")
    (said,) = re.findall(r"^pykernel (check .* --record \.)$", text, re.MULTILINE)
    assert command(*said.split()) == 0 and Path("VALIDITY.md").read_text() == text
    # what was not shown stands first, and the page says the same
    assert text.index("## What was not shown") < text.index("## With this model") and "numpy " in text
    cells = re.findall(r"<td>(.*?)</td>", Path("VALIDITY.html").read_text())
    assert {state for *_, state in rows} <= {re.sub("<.*?>", "", cell) for cell in cells}


@pytest.mark.exhaustive
@pytest.mark.parametrize("extra", EXTRAS)
def test_what_is_beside_the_model_stays_and_is_checked_too(project, extra):
    """After a record, and when the folder is generated again."""
    assert command("generate", "flow.toml", "-o", "flow", "--for", extra) == 0
    beside = {path.relative_to("flow"): path.read_bytes() for path in Path("flow").rglob("*") if path.is_file()}
    require_project("flow", project)
    record_proof("flow", project, "proved: nothing")
    assert command("generate", "flow.toml", "-o", "flow") == 0
    assert {path: Path("flow", path).read_bytes() for path in beside} == beside


@pytest.mark.exhaustive
@pytest.mark.usefixtures("one_compiler")
def test_checks_on_other_targets_and_streams_add_up(project, capsys):
    pytest.importorskip("unicorn")
    assert command("check", "flow.toml", "--samples", "100", "--record", "flow") == 0
    assert command("check", "flow.toml", "--samples", "60", "--target", "cortex-m0plus", "--record", "flow") == 0
    first = Path("flow/VALIDITY.md").read_text()
    (said,) = re.findall(r"^pykernel (check .* --target .* --record) \.$", first, re.MULTILINE)
    assert command(*said.split(), "flow") == 0 and Path("flow/VALIDITY.md").read_text() == first
    assert first.count("| this machine, ") >= 2 and first.count("| cortex-m0plus in unicorn | 60 | yes (llvm) |") == 1
    # the same builds again, with another stream, take the place of the earlier ones
    assert command("check", "flow.toml", "--samples", "120", "--record", "flow") == 0
    again = Path("flow/VALIDITY.md").read_text()
    assert again.count("| this machine, ") == first.count("| this machine, ") == again.count("| 120 | yes (llvm) |")
    assert "| cortex-m0plus in unicorn | 60 | yes (llvm) |" in again


@pytest.mark.usefixtures("one_compiler")
@pytest.mark.exhaustive
def test_a_check_is_not_recorded_where_it_says_nothing(project, tmp_path, capsys):
    before = Path("flow/VALIDITY.md").read_text()
    Path("other.toml").write_text(spec_of(n_max=9).to_toml())
    assert command("check", "other.toml", "--samples", "50", "--record", "flow") == 2
    assert "differs from what this version of pykernel generates from this spec" in capsys.readouterr().err
    assert command("check", "flow.toml", "--samples", "50", "--record", "nowhere") == 2 and not Path("nowhere").exists()
    code = Path("flow/src/flow.c")
    code.write_text(code.read_text().replace("0.5f", "0.25f", 1))
    assert command("check", "flow.toml", "--samples", "50", "--record", "flow") == 2
    assert Path("flow/VALIDITY.md").read_text() == before
    generate(project, "flow", force=True)
    Path("flow/VALIDITY.md").write_text("mine\n")
    assert command("check", "flow.toml", "--samples", "50", "--record", "flow") == 2
    assert "was changed by hand" in capsys.readouterr().err and Path("flow/VALIDITY.md").read_text() == "mine\n"


@pytest.mark.exhaustive
@pytest.mark.usefixtures("one_build")
def test_a_failed_check_is_recorded_as_failed(project):
    report = check(project, samples=50, levels=("-O0",))
    report.rows[0] |= {"equal": False, "first_difference": "update 3: alpha[1] | a\nb"}
    text = record("flow", project, report).read_text()
    assert "| **no**: update 3: alpha[1] / a b |" in text


# ------------------------------------------------------------------------------------------------- the examples


@pytest.mark.exhaustive
@needs_gcc
@pytest.mark.parametrize(
    "labels", [{"label": {"column": "a"}}, {"label": {"classes": ["u", "v"]}}, {"novelty": {}}], ids=str
)
def test_the_first_program_of_a_signal_goes_on_where_there_are_no_features_yet(labels, tmp_path):
    signal = {"channels": ["a", "b"], "window": 8, "hop": 4, "features": ["mean", "rms"]}
    generate(make_spec({"name": "m", "signal": signal} | labels), tmp_path)
    words = ["gcc", "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{tmp_path / 'src'}"]
    run(*words, tmp_path / "examples" / "main.c", *sources(tmp_path), "-o", tmp_path / "run")
    statuses = re.findall(r"status +(-?\d+)$", run(tmp_path / "run"), re.MULTILINE)
    # the first of eleven had no answer yet
    assert len(statuses) == 10 and set(statuses) >= {
        "3" if "novelty" in labels else "0",
        "41",
    }


# --------------------------------------------------------------------------------------------------- the README

FIRMWARE = """
#include "readme.c"
#include <stdio.h>
{sample}
static int32_t t = 0;
static {label} y{shape};
static uint32_t last = 0u;
int32_t read_inputs({real} x[FLOW_DIM])
{{
    if (t == 40) {{
        printf("hash %08lx\\n", (unsigned long)last);
    }}
    {take}
    return (t++ < 40) ? 1 : 0;
}}
{answer}
{give}
void raise_alarm(void);
void raise_alarm(void) {{}}
int32_t training_is_due(void);
int32_t training_is_due(void) {{ return (t % 20 == 0) ? 1 : 0; }}
void log_hash(uint32_t hash) {{ last = hash; }}
"""


@pytest.mark.exhaustive
@needs_gcc
def test_the_loop_of_the_readme_is_one_that_learns(package, tmp_path):
    """It is compiled as it stands, with the examples' samples for the firmware's functions."""
    readme = (package / "README.md").read_text(encoding="utf-8")
    assert readme.count("\n") < 90, readme
    (code,) = re.findall(r"```c\n(.*?)```", readme, re.DOTALL)
    spec, _ = MADE[package]
    persists = bool(spec.program.persistent)
    assert code.count("samples++ % 100u") == persists  # here the last sample's hash is compared
    (tmp_path / "readme.c").write_text(code.replace("samples++ % 100u", "samples++ % 1u"))
    kind = spec.program.label_kind if spec.program.learns else "none"
    (sample,) = re.findall(r"^static \S+ sample\(.*?^}", (package / "examples" / "main.c").read_text(), re.M | re.S)
    ((answer, answer_name),) = re.findall(r"extern (void use_(\w+)\(.*\));", code)
    label, shape = "int32_t" if kind == "class" else "float", ""
    take, give = "y = sample(t, x);", f"{label} read_label(void);\n{label} read_label(void) {{ return y; }}"
    if kind == "reals":
        shape, take = "[FLOW_OUTPUTS]", "sample(t, x, y);"
        give = "void read_label(float z[FLOW_OUTPUTS]) { for (int o = 0; o < FLOW_OUTPUTS; o++) { z[o] = y[o]; } }"
    elif kind == "none":
        take = "y = 0; sample(t, x);"
    (tmp_path / "main.c").write_text(
        FIRMWARE.format(
            sample=sample,
            real="float",
            label=label,
            shape=shape,
            take=take,
            answer=f"{answer} {{ (void){answer_name}; }}",
            give=give,
        )
    )
    words = ["gcc", "-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{package / 'src'}"]
    run(*words, tmp_path / "main.c", *sources(package), "-o", tmp_path / "run")
    assert run(tmp_path / "run") == f"hash {example_hash(40, package) if persists else '00000000'}\n"
    # sizes and statuses are the header's, and no status is told that this model cannot return
    header, c = (package / "src" / "flow.h").read_text(), (package / "src" / "flow.c").read_text()
    sizes = re.findall(r"([\d,]+) bytes \(`(\w+_BYTES)`\)", readme)
    assert len(sizes) == (3 if spec.program.persistent else 2)
    for size, macro in sizes:
        assert f"#define {macro} {size.replace(',', '')}u" in header
    told = re.findall(r"^- `(FLOW_\w+)` \((-?\d+)\)", readme, re.MULTILINE)
    assert told
    for status, value in told:
        assert re.search(rf"\b{status} = {value}\b", header) and re.search(rf"\b{status}\b", c), status


def test_the_readme_quotes_names_that_are_no_markdown(tmp_path):
    hostile = ["a`b`", "**c**", "](http://x)", "<b>"]
    files = build(toy_spec("real", input={"columns": hostile}, label={"column": "`# y", "max_abs": 5.0})).files
    lines = [line for line in files["README.md"].splitlines() if line.startswith("- ")]
    assert lines[0].startswith("- Inputs: `x[0] a'b'`, `x[1] **c**`, `x[2] ](http://x)`, `x[3] <b>`; each a `float`")
    assert lines[1] == "- Label: `'# y`."
    assert str(tmp_path) not in files["README.md"]


def test_the_readme_of_raw_counts_has_the_range_and_the_clamp_of_every_channel():
    def readme_of(**signal):
        raw = {"channels": ["a", "`b`"], "resolution": 1.0} | signal
        made = {
            "precision": "int16",
            "label": {"column": "y", "max_abs": 1.0},
            "learning": {"rule": "nlms"},
            "signal": raw,
        }
        text = build(make_spec({"name": "gauge"} | made)).files["README.md"]
        return [line for line in text.splitlines() if "1 count is" in line], re.findall(r"```c\n(.*?)```", text, re.S)[
            1
        ]

    rows, code = readme_of(max_abs=[100.0, 2047.0])
    assert rows == ["  - `a`: 1 count is 1; from -100 to 100", "  - `'b'`: 1 count is 1; from -2047 to 2047"]
    assert code == "if (x[0] < -100) { x[0] = -100; }\nif (x[1] < -2047) { x[1] = -2047; }\n"
    _, code = readme_of(max_abs=1000.0)
    assert code == "for (int i = 0; i < 2; ++i) { if (x[i] < -1000) { x[i] = -1000; } }\n"


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(
    "sections",
    [
        {},
        {"label": {"column": "y", "classes": ["a", "b", "c"]}},
        {"label": {"column": "y"}, "learning": {"rule": "okfeb"}, "kernel": {"sigma": 1.0}},
        {"learning": {"rule": "krr"}, "kernel": {"sigma": 1.0}},
    ],
)
def test_readmes_are_short(sections):
    content = {"name": "temperature_of_the_valve", "input": {"columns": ["a", "b"]}, **sections}
    readme = build(make_spec(content)).files["README.md"]
    assert readme.count("\n") < 85 and "\n\n\n" not in readme, readme


@pytest.mark.exhaustive
def test_platformios_own_packer_takes_the_folder(tmp_path, monkeypatch):
    """``pip install platformio``; its list of licences comes from the network, so here it has ours alone."""
    schema = pytest.importorskip("platformio.package.manifest.schema")
    pack = pytest.importorskip("platformio.package.pack")
    licences = {"licenses": [{"licenseId": "0BSD"}]}
    monkeypatch.setattr(schema.ManifestSchema, "load_spdx_licenses", staticmethod(lambda: licences))
    generate(spec_of(), tmp_path / "flow")
    packed = pack.PackagePacker(str(tmp_path / "flow")).pack(str(tmp_path / "flow.tar.gz"))
    with tarfile.open(packed) as archive:
        assert {"library.json", "src/flow.c", "src/flow.h", "LICENSE"} <= set(archive.getnames())
    broken = json.loads((tmp_path / "flow" / "library.json").read_text()) | {"version": "one"}
    (tmp_path / "flow" / "library.json").write_text(json.dumps(broken))
    with pytest.raises(Exception, match="version"):
        pack.PackagePacker(str(tmp_path / "flow")).pack(str(tmp_path / "again.tar.gz"))
