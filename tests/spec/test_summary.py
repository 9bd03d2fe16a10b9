"""What a model is called, in headers, manifests and pages."""

from __future__ import annotations

import numpy as np
import pytest

from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec, rules
from pykernel.spec.summary import summary
from tests.support.every_model import content_of


@pytest.mark.parametrize("rule", rules())
def test_what_is_called_linear_is_linear(rule):
    """Halfway between two inputs, a linear model answers halfway between the answers; no other model does."""
    content = content_of(rule, "float64", "plain", "one")
    spec = None if content is None else make_spec(content)
    if (
        spec is None
        or not spec.program.learns
        or any(e.kind == "training" for e in spec.program.entries_for(spec.config))
    ):
        pytest.skip("learns no number, sample by sample")
    rng, model = np.random.default_rng(3), HostModel(spec)
    x = rng.uniform(-1, 1, (80, spec.dim))
    model.update(x, np.sin(3 * x[:, 0]) * x[:, 1])
    a, b = x[:20], x[20:40]
    answers = [np.ravel(model.predict(rows)) for rows in (a, b, (a + b) / 2)]
    assert np.ptp(answers[0]) > 0.01
    away = np.abs(answers[2] - (answers[0] + answers[1]) / 2).max()
    assert ("linear" in summary(spec)) == (away < 1e-9), (summary(spec), away)
