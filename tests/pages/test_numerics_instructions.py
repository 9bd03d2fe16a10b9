"""Imported support vector machines: the instructions of a prediction, and what docs/benchmarks.md says of them."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import tables
from benchmarks.device import imported_instructions
from pykernel.gen.project import build
from pykernel.importers.importing import from_sklearn
from pykernel.targets.build import found_toolchains, model_image, undefined_symbols
from pykernel.targets.unicorn_runner import UnicornModel
from tests.support.pages import stand

ROWS = tables.load(tables.DATA / "imported-instructions.csv")


def test_the_pages_table_is_the_results() -> None:
    assert stand(imported_instructions.tables(ROWS))


def test_the_results_keep_the_goal() -> None:
    for name in ("SVR", "SVC"):
        mine = [r for r in ROWS if r["estimator"] == name and r["code"] == "pykernel, products"]
        assert len(mine) == 4 and all(int(r["most"]) <= imported_instructions.GOAL for r in mine)
    for r in ROWS:
        if r["code"].startswith("pykernel"):
            assert (r["double"], r["library"]) == ("no", "none") and float(r["error"]) <= 1


@pytest.mark.in_turn
@pytest.mark.parametrize("name", ["SVR", "SVC"])
def test_a_prediction_keeps_the_goal(name: str) -> None:
    """64 vectors of 8 inputs at -O2, with each toolchain found: 3,400 instructions at most, whatever the input is."""
    chains = found_toolchains(imported_instructions.TARGET)
    if not chains:
        pytest.skip("no toolchain for the target")
    estimator = imported_instructions.estimators()[name]
    project = build(from_sklearn(estimator, "model"))
    inputs = imported_instructions.samples()[0][:20]
    inputs = np.concatenate([inputs, 0 * inputs[:1], 3 * inputs[:3], 1e4 * inputs[:1], estimator.support_vectors_[:3]])
    for chain in chains:
        image = model_image(project, imported_instructions.TARGET, chain)
        assert not {s for file in image.objects for s in undefined_symbols(file)}
        model = UnicornModel(project, image)
        for x in inputs.astype(np.float32):
            call, status = model.measure("predict", b"", x, None)
            assert status == 0 and call.instructions <= imported_instructions.GOAL, (chain, x)
