"""The benchmark of alarms: its detectors are what their names say, none looks ahead, and what is measured is right."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.host.alarms import measure, rivals
from benchmarks.host.alarms.stream import Fault, Stream

RNG = np.random.default_rng(7)


def colored(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    """Correlated rows, also in time, far from zero and in unequal units."""
    rng = np.random.default_rng(seed)
    x, mix = np.zeros((rows, dim)), rng.normal(size=(dim, dim))
    for t in range(1, rows):
        x[t] = 0.7 * x[t - 1] + mix @ rng.normal(size=dim)
    return ((x + 3) * 10.0 ** np.arange(dim)).astype(np.float32)


def weights(count: int, window: int) -> np.ndarray:
    """What each of ``count`` rows weighs in running moments with shares 1 / min(n, window)."""
    found = np.zeros(count)
    for n in range(1, count + 1):
        part = 1 / (min(n, window) if window else n)
        found *= 1 - part
        found[n - 1] = part
    return found


@pytest.mark.parametrize("window", [0, 30])
@pytest.mark.exhaustive
def test_distances_are_those_of_the_moments_of_all_rows_before(window: int) -> None:
    x = colored(120, 3)
    largest = rivals.Largest(window=window, hold=0).levels(x)
    mahalanobis = rivals.Mahalanobis(window=window, ridge=1e-2, hold=0).levels(x)
    for t in (40, 119):
        before, share = x[:t].astype(float), weights(t, window)
        mean = share @ before
        covariance = (before - mean).T @ np.diag(share) @ (before - mean)
        unit = np.sqrt(np.diag(covariance))
        z = (x[t] - mean) / unit
        correlation = covariance / np.outer(unit, unit) + 1e-2 * np.eye(3)
        assert largest[t] == pytest.approx(np.abs(z).max(), rel=1e-6)
        assert mahalanobis[t] == pytest.approx(math.sqrt(z @ np.linalg.solve(correlation, z)), rel=1e-6)


@pytest.mark.in_turn
@pytest.mark.parametrize("name", rivals.DETECTORS)
def test_levels_and_alarms_depend_on_no_later_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "SETTLING", 120)
    kind = rivals.named(name)
    if kind.why_absent():
        pytest.skip(kind.why_absent())
    rows, cut = (900, 700) if not kind.slow else (330, 300)
    x = colored(rows, 4)
    other = x.copy()
    other[cut:] = x[cut:] * 3 - 5
    for setting in (kind.grid[0], kind.grid[-1]):
        made = kind(kind.smoothings[-1], **setting)
        (levels, alarms), (later, later_alarms) = made.judged(x, 0.05), made.judged(other, 0.05)
        assert np.array_equal(levels[:cut], later[:cut], equal_nan=True)
        assert np.array_equal(alarms[:, :cut], later_alarms[:, :cut])
        assert np.isfinite(levels[cut:]).all()
        assert name == "chance" or levels[cut] != later[cut]  # the row itself counts


def test_the_common_threshold_is_the_quantile_of_the_levels_that_count() -> None:
    levels = RNG.gamma(2.0, size=1200).round(2)
    levels[:50] = np.nan
    levels[600:700] += 20
    alpha, window = 0.1, 200
    found, kept, run_of = np.zeros(1200, bool), [], 0
    for t, level in enumerate(levels.tolist()):
        if math.isnan(level):
            continue
        last = sorted(kept[-window:])
        if len(last) >= rivals.FIRST:
            found[t] = level > last[-max(1, round(alpha * (len(last) + 1)))]
        run_of = run_of + 1 if found[t] else 0
        if run_of <= rivals.COUNTED:
            kept.append(level)
    assert np.array_equal(rivals.common_alarms(levels, alpha), found)
    assert found[600 : 600 + rivals.COUNTED].all() and not found[:150].any()
    quiet = rivals.common_alarms(RNG.gamma(2.0, size=50_000), 0.01)
    assert quiet.mean() == pytest.approx(0.01, rel=0.15)


# ------------------------------------------------------------------------------------------------------- measuring


def hand_made() -> tuple[Stream, np.ndarray]:
    """300 rows, 100 of them settle; faults in rows 20 (too early), 150 to 159, 250 to 251."""
    faults = (Fault("a", 20, 30, (0,)), Fault("a", 150, 160, (0,)), Fault("b", 250, 252, (1,)))
    levels = np.arange(300) / 1000.0
    levels[154:158] = 5.0
    levels[160:219] = 9.0  # within 60 rows after the fault: not false
    levels[250:252] = 0.2205  # beside sound rows from 0.220 to 0.249
    levels[[100, 101]] = (2.0, 3.0)
    return Stream("hand", "hand", np.zeros((300, 2), np.float32), faults), levels


def test_faults_are_counted_at_equal_false_rows() -> None:
    stream, levels = hand_made()
    sound = measure.sound(stream)
    assert sound.sum() == 50 + 30 and sound[100] and sound[149] and sound[220] and not sound[219]
    assert not sound[252:].any()
    assert measure.threshold(levels[sound], 0.01) == 3.0
    assert measure.threshold(levels[sound], 0.0125) == 2.0
    seen = measure.at_equal_rates(stream, levels, 0.01)
    assert seen == measure.Seen(0.5, 4 / 12, (4 + 2) / 2)
    assert measure.at_equal_rates(stream, levels, 30 / 80).events == 0.5
    assert measure.at_equal_rates(stream, levels, 31 / 80).events == 1.0
    false, own = measure.own(stream, levels > 2.5)
    assert (false, own.events, own.rows) == (1 / 80, 0.5, 4 / 12)


# ------------------------------------------------------------------------------------------------------ the whole run


# ------------------------------------------------------------------------------------------------------------- theirs
