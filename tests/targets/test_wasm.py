"""WebAssembly as a target: the same bytes in wasmtime."""

from __future__ import annotations

import pytest

pytest.importorskip("wasmtime", reason="needs wasmtime; would show equal bytes in WebAssembly")
pytest.importorskip("ziglang", reason="needs ziglang; would show equal bytes in WebAssembly")

from pykernel.gen.check import Reference
from pykernel.gen.project import build
from pykernel.gen.streams import mixed_stream
from pykernel.targets.check import check_targets
from pykernel.targets.target import find_target
from pykernel.targets.wasm_runner import WasmModel
from tests.targets.test_boards import SPECS, spec_of


@pytest.mark.parametrize(
    "kind", ["number", *(pytest.param(k, marks=pytest.mark.exhaustive) for k in SPECS if k != "number")]
)
def test_every_kind_of_model(kind: str) -> None:
    report = check_targets(spec_of(kind), ["wasm32"], samples=2000)
    (row,) = report.rows
    assert report.ok, row["first_difference"]
    assert row["emulator"] == "wasmtime" and 500 < row["flash_bytes"] < 30_000


@pytest.mark.exhaustive
@pytest.mark.parametrize("flags", [(), ("-msimd128",)])
@pytest.mark.parametrize("level", ["-O0", "-Os", "-O2", "-O3"])
@pytest.mark.parametrize("kind", ["number", "double", "whole"])
def test_levels_and_vectors(kind: str, level: str, flags: tuple[str, ...]) -> None:
    spec = spec_of(kind)
    project = build(spec)
    reference = Reference(project, None, *mixed_stream(spec, 5000, 3))
    row = reference.verdict(WasmModel(project, find_target("wasm32"), level, flags))
    assert row["equal"], row["first_difference"]


def test_another_learning_rate_is_found() -> None:
    """Negative control: a model that learns a little otherwise."""
    spec = spec_of()
    project = build(spec)
    source = project.files["src/m.c"]
    project.files["src/m.c"] = source.replace("#define M_ETA 0.5f", "#define M_ETA 0.50001f")
    assert source != project.files["src/m.c"]
    reference = Reference(project, None, *mixed_stream(spec, 50, 3))
    assert not reference.verdict(WasmModel(project, find_target("wasm32")))["equal"]
