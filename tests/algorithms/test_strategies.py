"""When vectors go: before or after, at lambda_max, by truncation, all or the newest only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

from pykernel.algorithms.online.klms import KLMS
from pykernel.errors import UserError
from pykernel.host.model import HostModel
from pykernel.spec.families.online_keys import GRADIENT
from pykernel.spec.model import Spec
from tests.support.following import TECHNIQUES, assert_sound, follow, in_use, learned, problems, spec_of
from tests.support.streams003 import sinc

Status = KLMS["real"].status


# two vectors are too small after the projection: the first in order of arrival goes, as a matrix is kept
TWO_SMALL = (
    [[0, 1.75], [0.25, -2], [-0.75, 1.25], [1.75, 1], [0.25, -1]],
    [-0.85893449, 0.85893449, 0.99749499, 0.92260421, -0.7780732],
)


@given(problems(rules=GRADIENT, strategies=True))
@example(
    (
        spec_of("klms", 4, dim=2, sigma=1.0, eta=0.05, ridge=0.001, truncate_below=0.04, force=True),
        *map(np.array, TWO_SMALL),
    )
)
def test_every_strategy_does_what_the_definitions_say(problem: tuple[Spec, np.ndarray, np.ndarray]) -> None:
    follow(*problem)


# --------------------------------------------------------------------------------------------- before and after


@pytest.mark.in_turn(54)
@pytest.mark.parametrize("rho", [0.0, 0.3])
@pytest.mark.parametrize("technique", ["klms", "mklms", "sup", "ls", "lsridge"])
def test_before_with_one_vector_more_is_after(technique: str, rho: float) -> None:
    """The same algorithm with a shifted count: equal errors e = y - f(x) of eq. 2 (note, section 6)."""
    x, y = sinc(1000)
    errors: list[list[float]] = []
    for when, n_max in (("after", 9), ("before", 10)):
        # mu of lsridge is penalty (n_max + 1) / n_max
        penalty: dict[str, Any] = {"penalty": 1e-3 / (n_max + 1) * n_max} if technique == "lsridge" else {}
        ald_threshold: dict[str, Any] = {"ridge": 1e-6, "ald_threshold": 2e-6}
        model = HostModel(spec_of(technique, n_max, eta=0.1, rho=rho, when=when, **ald_threshold, **penalty))
        errors.append([])
        for t in range(len(x)):
            predicted = model.predict(x[t])[0]
            (status,) = model.update(x[t], y[t : t + 1])
            if when == "before" and status in (Status.ADDED, Status.REPLACED):  # stored, with multiplier eta e
                (newest,) = np.flatnonzero((in_use(model, "v") == x[t]).all(1))
                errors[-1].append(in_use(model, "alpha")[newest, 0] / 0.1)
            else:
                errors[-1].append(y[t] - predicted if when == "after" else np.nan)
    after, before = np.array(errors)
    assert np.isfinite(before).sum() > 900 and np.abs(after).max() > 0.1
    stored = np.isfinite(before)
    np.testing.assert_allclose(before[stored], after[stored], rtol=0, atol=1e-9)


def test_a_model_may_discard_its_first_sample() -> None:
    for technique in TECHNIQUES:
        model = HostModel(spec_of(technique, truncate_below=0.1, eta=0.5, force=True))
        model.update([[0.0]], [0.01])
        assert model.memory.field("n")[0] == 0
        assert_sound(model)
        assert learned(model.update([[0.0], [1.0]], [1.0, -1.0])) and len(in_use(model, "v")) == 2


def test_ages_are_no_losses() -> None:
    with pytest.raises(UserError, match="lambda_max"):
        spec_of("at", lambda_max=0.1)
