"""docs/signals-cost.md: what the stage costs is what was measured, and its formula of memory is the layout's."""

import pytest

from benchmarks import tables
from benchmarks.device import signal_cost
from pykernel.gen.project import build
from pykernel.spec.model import make_spec
from tests.support.pages import stand

ROWS = tables.load(tables.DATA / "signal-cost.csv")
BYTES = tables.load(tables.DATA / "signal-memory.csv")


def test_the_pages_tables_are_the_results():
    assert stand(signal_cost.tables(ROWS, BYTES))


def test_what_the_page_says_is_so():
    calls = {(r["what"], r["code"], r["precision"], r["target"]): float(r["mean"]) for r in ROWS if r["part"] == "call"}
    for target in signal_cost.TARGETS:
        spectrum = calls["a spectrum", "pykernel", "float32", target]
        ratio = spectrum / calls["one frequency", "Goertzel by hand", "float32", target]
        assert (6 < ratio < 8) if target == "cortex-m4f" else (3.5 < ratio < 4.5)
        assert spectrum < 2 * calls["arm_rfft_fast_f32", "CMSIS-DSP 1.10.3", "float32", target]
        whole = calls["a spectrum", "pykernel", "int16", target]
        assert 0.9 < whole / (spectrum * {"cortex-m4f": 4, "cortex-m0plus": 1 / 4}[target]) < 1.1
    for row in ROWS:
        assert not row["bound"] or int(row["most"]) <= int(row["bound"])


@pytest.mark.in_turn(9)
@pytest.mark.parametrize(
    "signal",
    [
        {"features": list(signal_cost.ALONE[:-4]), "averages": [3], "differences": [5], "periods": [24, 50]},
        {
            "features": ["mean", "flatness", "kurtosis", "change"],
            "rate": 9.0,
            "bands": [[1, 2]],
            "ahead": 2,
            "lags": [4],
        },
    ],
)
def test_the_formula_of_memory(signal):
    content = {"channels": ["x", "y"], "window": 64, "hop": 16} | signal
    column = "x" if "ahead" in signal else "other"
    spec = make_spec({"name": "stage", "signal": content, "label": {"column": column}, "learning": {"rule": "nlms"}})
    assert signal_cost.stage_bytes(spec, build(spec)) == signal_cost.kept(spec)


def test_the_formula_of_memory_in_int16():
    content = {"channels": ["x", "y"], "window": 64, "hop": 16, "max_abs": 100, "rate": 9.0, "bands": [[1, 2]]}
    content |= {
        "features": ["mean", "std", "min", "crossings", "change"],
        "ahead": 2,
        "lags": [0, 4],
        "periods": [24, 50],
    }
    content = {"name": "stage", "precision": "int16", "signal": content, "label": {"column": "x"}}
    spec = make_spec(content | {"learning": {"rule": "nlms"}})
    c, b, m, inputs = 2, 4, 12, spec.dim
    window, sums = 2 * inputs + 4 * m + 4 * b * c + 2 * c + 28, (8 + 4 + 6 + 5) * b * c + 2 * c
    steps, spectrum = 2 * m * 4 + 2 * inputs + 2 * m * 2, 64 * (2 * c + 4) + 8
    assert signal_cost.stage_bytes(spec, build(spec)) == window + sums + steps + spectrum + 4 * 2
