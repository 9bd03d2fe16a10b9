"""docs/benchmarks.md, beside other generators: the other side is as good as it can be."""

from __future__ import annotations

import dataclasses
import shutil
from typing import Any

import numpy as np
import pytest

from benchmarks.device import others
from pykernel.targets.build import has_module

EMULATES = shutil.which("arm-none-eabi-gcc") is not None and has_module("unicorn")


def small(classes: int) -> others.Set:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(200, 3)) * [1, 100, 0.01] + [5, -30, 0]).astype(np.float32)
    values = np.sin(x[:, 0]) + x[:, 1] / 100
    y: Any = np.digitize(values, np.quantile(values, np.arange(1, classes) / classes)) if classes else 40 + 9 * values
    return others.Set("small", x, y.astype(np.int32 if classes else np.float32), classes, None)


@pytest.mark.in_turn
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_the_other_side_answers_as_its_network_does(classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With standardisation within its layers, and in the programs by hand."""
    monkeypatch.setattr(others.Network, "CHOICES", [{"solver": "lbfgs", "max_iter": 30}])
    data = small(classes)
    model = others.network_of(data, 4)
    x = data.x[data.judged].astype(float)
    known = model.predict(x)
    assert np.allclose(known, model.standard_.predict(x), rtol=1e-9)
    if not EMULATES:
        pytest.skip("needs arm-none-eabi-gcc and unicorn")
    ran = [others.run(make(data, model), data.judged) for make in (others.network_by_hand, others.network_in_int8)]
    if classes:
        assert (ran[0].answers == known).all() and (ran[1].answers == known).mean() > 0.9
    else:
        assert np.allclose(ran[0].answers, known, rtol=1e-4) and np.allclose(ran[1].answers, known, atol=1.5)


@pytest.mark.exhaustive
@pytest.mark.skipif(not EMULATES, reason="needs arm-none-eabi-gcc and unicorn")
def test_a_row_that_our_model_refuses_is_an_error() -> None:
    from pykernel.estimators.trained import TrainedKernelClassifier

    data = small(2)
    spec = TrainedKernelClassifier(3, max_iter=20, n_init=1).fit(*data.train).to_spec("model", precision="int16")
    _, error, whole = others.ours(data, spec)
    x = data.x.copy()
    x[data.judged[:20]] = 1e6
    ran, more, _ = others.ours(dataclasses.replace(data, x=x), spec)
    assert more >= error + 20 / len(data.judged) * (1 - error) - 0.1 and more >= 20 / len(data.judged)
    assert ran.flash < whole
