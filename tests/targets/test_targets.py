"""Emulated targets: the same bytes as on the host, figures that can be trusted, and checks that bite."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
import zlib

import numpy as np
import pydantic
import pytest

from pykernel.cli.app import main
from pykernel.errors import CheckFailed, UserError, install_hint
from pykernel.gen.check import Reference
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.host.model import HostModel
from pykernel.spec.defaults import completed
from pykernel.spec.model import make_spec
from pykernel.targets import build as targets_build
from pykernel.targets.build import STACK_ALLOWANCE, Function, Image, found_toolchains, model_image, stack_bound
from pykernel.targets.check import check_targets, choose, found_emulators
from pykernel.targets.process_runner import ProcessModel
from pykernel.targets.target import Region, all_targets, find_target, make_target
from pykernel.targets.unicorn_runner import MAILBOX, EmulatedCpu, UnicornModel
from pykernel.targets.worst import worst_call
from pykernel.tuning.costs import memory_bytes
from tests.gen.test_check import CHOICES, PRESETS
from tests.release_check import as_installed
from tests.support.every_model import LABELS as EVERY_LABEL
from tests.support.every_model import MODELS as EVERY_MODEL
from tests.support.every_model import STAGES, content_of
from tests.support.specs import named
from tests.support.targets import EACH_TARGET, EIGHT, OFTEN, rarely

pytest.importorskip("unicorn")
pytest.importorskip("ziglang")


def spec_of(technique="mklms", precision="float32", dim=3, n_max=8, **sections):
    return make_spec(
        named(
            {
                "name": "flow",
                "precision": precision,
                "input": {"dim": dim},
                "kernel": {"sigma": 1.0},
                "reduction": {"technique": technique, "n_max": n_max},
            }
            | sections
        )
    )


def need(target, chain=None, emulator=None):
    """The way to build and run, or the reason why the test is skipped."""
    try:
        (way,) = choose([target], chain, emulator)
    except UserError as missing:
        pytest.skip(str(missing))
    return way


def assert_equal(report):
    assert report.ok, [(row["target"], row["flags"], row["first_difference"]) for row in report.rows]


@pytest.fixture(scope="module")
def m4f():
    """A model on a Cortex-M4F that has run its stream, and the reference it was compared with."""
    spec = spec_of()
    reference = Reference(build(spec), None, *mixed_stream(spec, 400))
    model = UnicornModel(reference.project, model_image(reference.project, find_target("cortex-m4f"), "zig"))
    model.paint_stack()
    assert reference.verdict(model)["equal"]
    return model, reference


# ------------------------------------------------------------------------------------------------ the same bytes


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("target", EACH_TARGET)
def test_every_target_computes_the_hosts_bytes(target, exhaustive):
    """With wheels alone; statuses of all kinds, refusals among them."""
    tries = 10 if exhaustive else 3
    report = check_targets(spec_of(), [target], samples=500, chain="zig", emulator="unicorn", tries=tries)
    assert_equal(report)
    (row,) = report.rows
    assert row["selftest"] == "passed" and row["samples"] == 500
    done = sum(count for status, count in report.statuses.items() if not status.startswith("refused"))
    assert done >= 400 and {"added", "replaced", "discarded", "absorbed", "merged"} <= set(report.statuses)
    assert row["data_bytes"] == row["bss_bytes"] == 0 and row["flash_bytes"] >= row["text_bytes"] > 1000
    for call in ("predict", "update"):
        figures = row[call]
        assert 0 < figures["min"] <= figures["median"] <= figures["max"] <= figures["worst"]
        assert figures["bound"] is figures["ratio"] is None  # zig's code has no marks
    assert row["predict"]["max"] < row["update"]["max"] < row["other_calls"]["selftest"]
    assert {"init", "refresh", "hash"} <= set(row["other_calls"]) and 0 < row["stack_bytes"] < 1024


MODELS = {name: ({}, {"technique": name}) for name in PRESETS} | {
    name: (learning, reduction) for name, (learning, reduction, _) in CHOICES.items()
}


@pytest.mark.exhaustive
@pytest.mark.in_turn(432)
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4f"])
@pytest.mark.parametrize("name", MODELS)
def test_every_preset_rule_and_strategy(name, target):
    """1000 updates with and without an FPU; the kinds of label in turn."""
    learning, reduction = MODELS[name]
    labels = ({"max_abs": 10.0}, {"outputs": 2, "max_abs": 10.0}, {"classes": ["a", "b", "c"]}, {"classes": ["a", "b"]})
    reduction = {"n_max": 6} | reduction | ({"force": True} if name in ("afmklms", "lsreg") else {})
    spec = spec_of(learning=learning, reduction=reduction, label=labels[list(MODELS).index(name) % 4])
    report = check_targets(spec, [target], samples=1000, chain="zig", tries=0)
    assert_equal(report)
    assert report.rows[0]["selftest"] == "passed" and set(report.rows[0]["calls"]) >= {"predict", "update", "novelty"}


@pytest.mark.exhaustive
def test_a_spec_without_a_rule_passes_its_selftest_without_an_fpu():
    """The library for floating point divides by zero in its own way, and counts that are wrong are divisors."""
    content = {"name": "flow", "input": {"dim": 3}, "label": {"column": "y"}, "reduction": {"n_max": 6}}
    report = check_targets(make_spec(dict(completed(content))), ["cortex-m0plus"], samples=100, chain="zig", tries=0)
    assert_equal(report)
    assert report.rows[0]["selftest"] == "passed"


def test_a_stack_that_does_not_fit_is_told(monkeypatch):
    """It was a write to unmapped memory, for the model's own pointers were overwritten."""
    monkeypatch.setattr(targets_build, "STACK_ALLOWANCE", 0)
    target, project = find_target("cortex-m4f"), build(spec_of())
    ram = target.part.ram.model_copy(update={"bytes": project.figures["ram_bytes"] + 128})
    small = target.model_copy(update={"part": target.part.model_copy(update={"ram": ram})})
    model = UnicornModel(project, model_image(project, small, "zig"))
    model.paint_stack()
    with pytest.raises(
        CheckFailed, match=r"flow_selftest needs more stack than is free: the model leaves [\d,]+ of the "
    ):
        model.call("selftest")


@pytest.mark.in_turn(540)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("rule", "precision"), sorted({model[:2] for model in EVERY_MODEL}))
def test_every_rule_within_every_stage_without_an_fpu(rule, precision, stage):
    """The kinds of label in turn."""
    contents = (content_of(rule, precision, stage, kind) for kind in EVERY_LABEL)
    contents = [content for content in contents if content is not None]
    if not contents:
        pytest.skip("the rule has no such stage")
    content = contents[zlib.crc32(f"{rule} {precision} {stage}".encode()) % len(contents)]
    spec = make_spec(content)
    if memory_bytes(spec)["ram_bytes"] + 2 * STACK_ALLOWANCE > find_target("cortex-m0plus").part.ram.bytes:
        pytest.skip("the part has less RAM, with the stack of a self-test")
    report = check_targets(spec, ["cortex-m0plus"], samples=100, chain="zig", tries=0)
    assert_equal(report)
    assert report.rows[0]["selftest"] == "passed"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("target", "chain", "emulator"),
    [
        rarely("cortex-m0plus", "gcc", "qemu"),
        rarely("cortex-m3", "gcc", "unicorn"),
        ("cortex-m4f", "gcc", "qemu"),
        rarely("cortex-m33f", "zig", "qemu"),
        rarely("rv32imac", "gcc", "unicorn"),
        rarely("rv32imafc", "gcc", "qemu"),
    ],
)
def test_a_second_opinion(target, chain, emulator):
    """Other compilers, float libraries and emulators agree."""
    need(target, chain, emulator)
    report = check_targets(spec_of("mklms"), [target], samples=150, chain=chain, emulator=emulator, tries=0)
    assert_equal(report)
    assert report.rows[0]["emulator"] == emulator and report.rows[0]["selftest"] == "passed"


@pytest.mark.exhaustive
def test_a_learned_model_starts_on_the_target_where_the_host_ended():
    spec = spec_of("fklms")
    host = HostModel(spec)
    host.update(*mixed_stream(spec, 300, seed=5))
    learned = check_targets(spec, ["cortex-m0plus"], host.memory, samples=60, tries=0)
    fresh = check_targets(spec, ["cortex-m0plus"], samples=60, tries=0)
    assert_equal(learned)
    assert_equal(fresh)
    assert learned.rows[0]["flash_bytes"] > fresh.rows[0]["flash_bytes"]
    assert learned.rows[0]["state_hash"] != fresh.rows[0]["state_hash"]


# --------------------------------------------------------------------------------------------- the checks bite


@pytest.mark.exhaustive
def test_contraction_is_caught():
    """With GCC, which needs a pragma of its own; zig never contracts."""
    target, chain, _ = need("cortex-m4f", "gcc")
    spec = spec_of()
    reference = Reference(build(spec), None, *mixed_stream(spec, 500))

    def standard_only(text):
        return text.replace('#pragma GCC optimize ("fp-contract=off")', "")

    flags = ("-ffp-contract=fast",)
    careless = model_image(reference.project, target, chain, patch=standard_only, flags=flags)
    row = reference.verdict(UnicornModel(reference.project, careless))
    assert not row["equal"] and row["selftest"] == "broken build" and "update" in row["first_difference"]
    guarded = UnicornModel(reference.project, model_image(reference.project, target, chain, flags=flags))
    assert reference.verdict(guarded)["equal"]


def test_another_rounding_mode_is_caught_by_the_selftest(m4f):
    """FPSCR through an instruction: what Unicorn writes to the register does not reach its arithmetic."""
    model, _ = m4f
    machine = model.machine
    code, place = bytes.fromhex("e1ee100a7047"), machine.image.flash.start + 0x40000  # vmsr fpscr, r0; bx lr
    machine.uc.mem_write(place, code)
    machine.image.functions["set_fpscr"] = Function(place, len(code))
    found = {}
    for bits in (0, 1 << 22, 3 << 22, 1 << 24, 0):  # nearest, up, toward zero, flush to zero, nearest
        machine.call("set_fpscr", bits)
        found[bits] = model.call("selftest")
    assert found == {0: 0, 1 << 22: -100, 3 << 22: -100, 1 << 24: -100}


@pytest.mark.parametrize(("target", "cpu"), [("cortex-m4f", "CORTEX_M0"), rarely("rv32imafc", "SIFIVE_E31")])
def test_code_for_a_larger_cpu_stops_on_a_smaller_one(target, cpu):
    """The emulated CPU has the instructions of its model and no others."""
    project = build(spec_of("nt"))
    image = model_image(project, find_target(target), "zig")
    image.target = image.target.model_copy(update={"unicorn": image.target.unicorn.model_copy(update={"cpu": cpu})})
    x, y = mixed_stream(project.spec, 10)
    with pytest.raises(CheckFailed, match=rf"{target}: flow_\w+ stopped"):
        UnicornModel(project, image).prequential(x, y)


def right_additions(target, chain, precision):
    """Whether the float library adds two doubles as IEEE-754 has it, in a case that GCC's ARM assembly rounds wrongly."""
    if precision != "float64" or chain != "gcc" or target.unicorn is None:
        return True
    source = "void model_add(double *a);\nvoid model_add(double *a) { a[0] += a[1]; }\n"
    machine = EmulatedCpu(Image(target, chain, {"model.c": source}))
    a, b = -2.0, float.fromhex("0x1.410ade018a5a9p-32")
    machine.uc.mem_write(MAILBOX, np.array([a, b]).tobytes())
    machine.call("model_add", MAILBOX)
    return bool(np.frombuffer(machine.uc.mem_read(MAILBOX, 8))[0] == a + b)


@pytest.mark.exhaustive
def test_a_wrong_float_library_is_caught():
    """GCC 12's addition of doubles for ARMv7-M errs where exponents are 33 apart; a version without that is equal."""
    target, chain, _ = need("cortex-m3", "gcc")
    report = check_targets(spec_of(precision="float64", n_max=4), ["cortex-m3"], chain=chain, samples=100, tries=0)
    right = right_additions(target, chain, "float64")
    assert report.ok == right and (report.rows[0]["selftest"] == "passed") == right


@pytest.mark.exhaustive
def test_what_does_not_fit_is_refused_with_the_numbers(monkeypatch):
    def compiled_too_early(*_args, **_how):
        raise AssertionError("refused after the compilation")

    monkeypatch.setattr(targets_build, "compile_c", compiled_too_early)
    project = build(spec_of(n_max=100))
    ram = project.figures["ram_bytes"]
    assert ram > 20_480
    with pytest.raises(UserError, match=rf"cortex-m3: flow needs {ram:,} bytes of RAM .* STM32F103C8 has only 20,480"):
        check_targets(spec_of(n_max=100), ["rv32imac", "cortex-m3"])
    monkeypatch.undo()
    target = find_target("cortex-m4f")
    part = target.part.model_copy(update={"flash": Region(start=0x0800_0000, bytes=4096)})
    small, usual = (target.model_copy(update={"part": part}), "zig", "unicorn"), (target, "zig", "unicorn")
    sentence = r"flow takes [\d,]+ bytes of flash, but STM32F411RE has 4,096"
    for names, ways, rows in ((["cortex-m4f"], [small, usual], 0), (["all"], [small], 0), (["all"], [small, usual], 1)):
        monkeypatch.setattr("pykernel.targets.check.choose", lambda *_, ways=ways: ways)
        with contextlib.nullcontext() if rows else pytest.raises(UserError, match=sentence):
            assert len(check_targets(spec_of(), names, samples=20, tries=0).rows) == rows


# ------------------------------------------------------------------------------------- figures to be trusted


def test_instructions_are_those_that_a_hook_in_python_sees(m4f):
    """A slow twin: one callback for each instruction."""
    import unicorn

    model, reference = m4f
    for i in (100, 200, 399):
        state = model.contents()
        fast, _ = model.measure("update", state, reference.x[i], reference.y[i])
        seen = []
        hook = model.machine.uc.hook_add(
            unicorn.UC_HOOK_CODE, lambda uc, address, size, data, seen=seen: seen.append(address)
        )
        model.machine.uc.ctl_flush_tb()
        model.restore(state)
        slow, _ = model.measure("update", state, reference.x[i], reference.y[i])
        model.machine.uc.hook_del(hook)
        model.machine.uc.ctl_flush_tb()
        assert fast.instructions == slow.instructions == len(seen)


@pytest.mark.exhaustive
def test_the_search_finds_what_the_stream_did_not_and_repeats(m4f):
    target = find_target("cortex-m4f")
    spec = spec_of("fklms", n_max=12)
    reference = Reference(build(spec), None, *mixed_stream(spec, 100))
    found = []
    for _ in range(2):
        model = UnicornModel(reference.project, model_image(reference.project, target, "zig"))
        reference.verdict(model)
        found.append(worst_call(model, "update", reference.x, reference.y, seed=3, tries=200))
    first, second = found
    assert (first.instructions, first.state) == (second.instructions, second.state)
    assert first.instructions > model.hardest["update"].instructions
    model.restore(first.state)
    again, status = model.measure("update", first.state, first.x, first.y)
    assert again.instructions == first.instructions and status >= 0


@pytest.mark.exhaustive
def test_the_stack_is_within_gccs_bound():
    need("cortex-m4f", "gcc")
    (row,) = check_targets(spec_of(), ["cortex-m4f"], samples=150, chain="gcc", emulator="unicorn", tries=30).rows
    assert row["stack_bound_bytes"] / 2 < row["stack_bytes"] <= row["stack_bound_bytes"]
    # where the float library takes part, or zig compiled, no bound is claimed
    project = build(spec_of())
    assert stack_bound(model_image(project, find_target("cortex-m3"), "gcc")) is None
    assert stack_bound(model_image(project, find_target("cortex-m4f"), "zig")) is None


def test_a_stack_that_meets_the_model_would_be_seen(m4f):
    """All RAM that is not the model is painted; memory beyond the part's is not there."""
    import unicorn

    model, _ = m4f
    ram = model.image.target.part.ram
    assert model.machine.floor == model.model + model.memory.layout.nbytes
    with pytest.raises(unicorn.UcError):
        model.machine.uc.mem_read(ram.start + ram.bytes, 1)
    before = model.machine.stack_used()
    model.machine.uc.mem_write(model.machine.floor, b"\0")
    assert model.machine.stack_used() == model.machine.top - model.machine.floor > before


# -------------------------------------------------------------------------------------------- data and command


@pytest.mark.exhaustive
def test_one_file_adds_a_target(tmp_path):
    """In a copy of what is installed: a spec may name the CPU, limits are known, the model runs there."""
    package = as_installed(tmp_path)
    ours = (package / "data" / "targets" / "cortex-m3.toml").read_text()
    assert ours.count("bytes = 65_536") == 1 and ours.count("STM32F103C8") == 1
    file = package / "data" / "targets" / "our-board.toml"
    file.write_text(ours.replace("bytes = 65_536", "bytes = 10_000").replace("STM32F103C8", "OURS"))
    (tmp_path / "known.py").write_text(
        """
from pykernel.spec.defaults import recipe_of
from pykernel.spec.model import make_spec
from pykernel.spec.schema import spec_schema
from pykernel.targets.check import check_targets
from pykernel.targets.target import all_targets
from pykernel.tuning.costs import make_limits

target = {"name": "our-board", "flash": 8000}
content = {"name": "m", "input": {"dim": 2}, "kernel": {"sigma": 1.0}, "learning": {"rule": "klms"}}
spec = make_spec(content | {"target": target})
assert "our-board" in all_targets() and "our-board" in str(spec_schema())
limits = {"target": target | {"instructions": 500_000}, "reduction": {"n_max": 32}}
assert recipe_of(limits).rule == "qklms"  # it has no FPU
assert make_limits("our-board", None, None, None).flash == 10_000
(row,) = check_targets(spec, ["our-board"], samples=50, tries=0).rows
print(row["target"], row["equal"])
"""
    )
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    result = subprocess.run([sys.executable, "known.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert result.stdout.split() == ["our-board", "True"], result.stdout + result.stderr


def test_targets_are_complete():
    targets = all_targets()
    assert set(targets) == {*EIGHT, "atmega328p", "avr", "cortex-m55", "wasm32"} and list(targets)[-4:] == [
        "atmega328p",
        "avr",
        "cortex-m55",
        "wasm32",
    ]
    # no other program emulates Helium
    assert targets["cortex-m55"].emulators == ("qemu",)
    for name in EIGHT:
        target = targets[name]
        assert target.toolchains == ("gcc", "zig") and target.emulators == ("unicorn", "qemu")
    content = tomllib.loads(targets_build.data_file("cortex-m4f.toml"))
    assert make_target("cortex-m4f", content) == targets["cortex-m4f"]
    for broken in (
        {**content, "fpu": "quad"},
        {**content, "typo": 1},
        {key: value for key, value in content.items() if key != "part"},
        {**content, "part": {**content["part"], "ram": {"start": 0, "bytes": 0}}},
    ):
        with pytest.raises(pydantic.ValidationError):
            make_target("cortex-m4f", broken)


def run(capsys, *words):
    with pytest.raises(SystemExit) as stopped:
        main(list(words))
    done = capsys.readouterr()
    return stopped.value.code, done.out, done.err


@pytest.fixture
def spec_file(tmp_path):
    path = tmp_path / "flow.toml"
    path.write_text(spec_of("nt").to_toml())
    return str(path)


@pytest.mark.exhaustive
def test_the_command(spec_file, capsys):
    words = ("check", spec_file, "--target", "cortex-m4f", "--target", "cortex-m0plus", "--samples", "60")
    code, out, _ = run(capsys, *words, "--json")
    report = json.loads(out)
    assert code == 0 and report["ok"] and [row["target"] for row in report["check"]] == ["cortex-m4f", "cortex-m0plus"]
    assert {"min", "mean", "median", "max", "worst", "bound", "ratio"} == set(report["check"][0]["update"])
    code, out, _ = run(capsys, "info", "--json")
    listed = json.loads(out)["targets"]
    assert code == 0 and [row["target"] for row in listed] == list(all_targets())
    assert listed[0]["toolchains"]["zig"] and listed[0]["emulators"]["unicorn"] and listed[0]["ram_bytes"] == 36_864
    code, out, _ = run(capsys, "info")
    assert code == 0 and all(name in out for name in all_targets()) and "STM32F411RE" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--target", "z80"], f"target 'z80' is not known; there are: {', '.join(all_targets())}"),
        (["--target", "avr", "--toolchain", "zig"], "avr has no toolchain zig; it has: gcc"),
        (["--target", "cortex-m3", "--emulator", "simavr"], "cortex-m3 has no emulator simavr; it has: unicorn, qemu"),
        (["--target", "cortex-m3", "--toolchain", "tcc"], "toolchain 'tcc' is not known; there are: zig, gcc"),
        (["--emulator", "qemu"], "--emulator qemu is for targets; add --target"),
        (["--target", "cortex-m3", "--samples", "0"], "--samples is 0"),
    ],
)
def test_bad_requests_get_one_sentence(words, sentence, spec_file, capsys):
    code, out, err = run(capsys, "check", spec_file, *words)
    assert code == 2 and not out and err.startswith(f"error: {sentence}") and err.count("\n") == 1


def test_without_the_extra_a_sentence_says_what_to_install(spec_file, capsys, monkeypatch):
    monkeypatch.setattr("pykernel.targets.build.has_module", lambda name: False)
    monkeypatch.setattr("pykernel.targets.check.has_module", lambda name: False)
    monkeypatch.setenv("PATH", "")
    for words in (["--target", "cortex-m4f"], ["--target", "all"]):
        code, _, err = run(capsys, "check", spec_file, *words)
        assert code == 2 and err.endswith(f"; install with: {install_hint('zig')}\n"), err
    code, _, err = run(capsys, "check", spec_file, "--target", "cortex-m4f", "--toolchain", "gcc")
    assert code == 2 and "arm-none-eabi-gcc was not found" in err


@pytest.mark.exhaustive
def test_wheels_are_enough(spec_file, exhaustive):
    """Nothing of the system: no compiler, no emulator, no path to find one."""
    names = ["all"] if exhaustive else OFTEN[:1]
    words = ["check", spec_file, *(f"--target={name}" for name in names), "--samples", "60", "--json"]
    environment = {key: value for key, value in os.environ.items() if key not in ("PATH", "CC")} | {"PATH": "/nowhere"}
    done = subprocess.run([sys.executable, "-m", "pykernel", *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["check"]
    assert {row["target"] for row in rows} - {"wasm32"} == set(EIGHT if exhaustive else OFTEN[:1])
    emulators = {"wasm32": "wasmtime"}
    assert all(row["equal"] and row["toolchain"] == "zig" for row in rows)
    assert all(row["emulator"] == emulators.get(row["target"], "unicorn") for row in rows)


def test_what_is_found_is_what_is_there():
    for target in all_targets().values():
        if target.gcc:
            assert ("gcc" in found_toolchains(target)) == (shutil.which(target.gcc.command) is not None)
        if target.qemu:
            assert ("qemu" in found_emulators(target)) == (shutil.which(target.qemu.command) is not None)


def test_a_job_that_ends_early_is_a_failure(monkeypatch):
    target, chain, _ = need("cortex-m4f", None, "qemu")
    model = ProcessModel(build(spec_of("nt")), target, chain)
    model.target = target.model_copy(update={"qemu": target.qemu.model_copy(update={"machine": "none"})})
    with pytest.raises(CheckFailed, match=r"wrote 0 of \d+ bytes"):
        model.call("init")
