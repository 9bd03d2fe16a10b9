"""pykernel compare: the tasks are their equations, published results come again, and each rule has a source."""

from __future__ import annotations

import re

import numpy as np
import pytest

from benchmarks.compare import contenders as compare
from benchmarks.compare import sources
from benchmarks.compare.contenders import Setting, contenders
from benchmarks.compare.tasks import TASKS, channel, lorenz, mackey_glass, recursion, switching
from pykernel.errors import UserError
from pykernel.spec.model import rules


def base(task: str) -> dict[str, object]:
    x, _ = TASKS[task].make(0, 100)
    return {"name": "m", "input": {"dim": x.shape[1]}, "kernel": {"sigma": TASKS[task].sigma}}


def run(task: str, rule: str, size: int, seeds: int) -> compare.Outcome:
    """A rule as its source sets it for a task."""
    ((contender,), refused) = contenders(task, base(task), [rule], (), size, ())
    assert not refused
    rows = TASKS[task].rows
    return compare.outcome(
        contender, [compare.work(compare.task_of(contender, seed, rows), None) for seed in range(seeds)]
    )


# --------------------------------------------------------------------------------------------------------------- tasks


@pytest.mark.parametrize("task", TASKS)
def test_a_stream_is_its_seeds(task: str) -> None:
    x, y = TASKS[task].make(3, 200)
    again, other = TASKS[task].make(3, 200), TASKS[task].make(4, 200)
    assert x.shape[0] == 200 and y.shape == (200,) and x.flags.c_contiguous and np.isfinite(x).all()
    assert x.tobytes() == again[0].tobytes() and y.tobytes() == again[1].tobytes()
    assert y.tobytes() != other[1].tobytes()


def test_streams_are_their_equations() -> None:
    for make, lags in ((lorenz, 6), (mackey_glass, 10), (recursion, 2)):  # a series, its latest value first
        x, y = make(1, 300)
        assert x.shape == (300, lags)
        np.testing.assert_array_equal(x[1:, 0], y[:-1])
        np.testing.assert_array_equal(x[1:, 1:], x[:-1, :-1])
    x, s = channel(1, 20_000)
    assert set(s) == {-1.0, 1.0}
    z = s[1:] + 0.5 * s[:-1]
    noise = x[1:, 2] - (z - 0.9 * z**2)
    assert abs(noise.mean()) < 0.02 and abs(noise.std() - 0.4) < 0.02
    x, y = switching(1, 20_000)
    for half, taps in (
        (slice(0, 10_000), (1, 0.0668, -0.4764, 0.8070)),
        (slice(10_000, None), (1, -0.4326, -0.6656, 0.7153)),
    ):
        clean = np.tanh(x[half] @ taps)
        assert 10 * np.log10(np.mean(clean**2) / np.mean((y[half] - clean) ** 2)) == pytest.approx(20, abs=0.3)


# --------------------------------------------------------------------------------------------------- published results


def test_knlms_on_the_first_experiment_of_its_paper() -> None:
    """Richard et al. 2009: with coherence 0.5 the dictionary has 21.3 vectors in the mean."""
    found = run("recursion", "knlms", 64, 10)
    assert found.row["vectors"] == pytest.approx(21.3, abs=0.5) and found.row["refused"] == 0
    assert -17.5 < found.row["mse_db"] < -16  # noise in inputs and labels has -20


def test_sw_krls_forgets_a_switched_channel_within_its_window() -> None:
    """Van Vaerenbergh et al. 2006: a window of 150, a switch at 500; at its own level again 150 samples later."""
    found = run("switching", "sw-krls", 150, 10)
    ends = list(compare.blocks(1000)[1:])
    before = found.mean[ends.index(440) : ends.index(500) + 1].mean()
    after = found.mean[ends.index(680) : ends.index(740) + 1].mean()
    assert before < -21.5 and after == pytest.approx(before, abs=0.5)
    assert found.mean[ends.index(520)] > -13 and (found.mean[ends.index(540) : ends.index(580)] > before + 3).all()


# ------------------------------------------------------------------------------------------------------------- results


def test_errors_are_means_in_decibels_with_standard_errors() -> None:
    mean, error = compare.decibels(np.array([[0.1, 1.0], [0.1, 3.0]]))
    np.testing.assert_allclose(mean, [-10, 10 * np.log10(2)])
    np.testing.assert_allclose(error, [0, 10 / np.log(10) * 1 / 2], atol=1e-12)
    assert np.isnan(compare.decibels(np.array([[0.1]]))[1]).all()


def test_what_is_set_is_told_with_its_origin() -> None:
    given = [Setting("eta", 0.2), Setting("noise", 0.1, "krls-t")]
    found, refused = contenders("sinc", base("sinc"), ["klms", "krls-t", "rls"], ["nt", "mklms"], 8, given)
    assert [each.name for each in found] == ["klms nt", "klms mklms", "krls-t mklms", "rls"]
    assert [name for name, _ in refused] == ["krls-t nt"] and 'give projection = "klms"' in refused[0][1]
    klms, _, krls_t, rls = found
    assert (klms.settings["eta"], klms.origin["eta"]) == (0.2, "given")
    assert (klms.settings["sigma"], klms.origin["sigma"]) == (0.5, "task")
    assert (krls_t.settings["noise"], krls_t.settings["forgetting"]) == (0.1, 1.0)
    assert krls_t.origin["noise"] == "given" and "forgetting" not in krls_t.origin
    assert "sigma" not in rls.settings
    with pytest.raises(UserError, match="set quantisation: none of these rules has such a key"):
        compare.check_settings([Setting("quantisation", 0.1)], ["klms"])


def test_every_rule_and_task_has_its_sources() -> None:
    assert set(sources.RULES) == set(rules())
    named = {key for keys in sources.RULES.values() for key in keys} | {sources.TECHNIQUE}
    named |= {key for task in TASKS.values() for key in task.sources}
    assert named == set(sources.ENTRIES)
    assert all(keys for rule, keys in sources.RULES.items() if rule != "frozen")
    for key, entry in sources.ENTRIES.items():
        assert re.match(rf"@\w+{{{key},\n", entry) and entry.count("{") == entry.count("}") and entry.isascii()
        assert {"author", "title", "year"} <= set(re.findall(r"^  (\w+) = {", entry, re.MULTILINE))
        assert f"year = {{{key[-4:]}}}" in entry
    for task in TASKS.values():
        assert set(task.settings) <= set(compare.comparable())
