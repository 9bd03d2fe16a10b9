"""Monitors with a bank of Gaussians (rule "gmm"): a twin from the formulas, decisions, damaged states."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

from benchmarks.host.alarms import pump
from pykernel.algorithms.novelty.gmm import GMM
from pykernel.host import snapshot
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec, make_spec
from tests.support.following import is_valid, persistent
from tests.support.gmm_twin import Twin

Status: Any = GMM["none"].status
PRECISIONS = ("float32", "float64")
COMPONENTS = (2, 8)
ACTIONS = ("acknowledge", "reject", "unlearn")


def spec_of(
    precision: str = "float64", dim: int = 3, components: int = 4, max_abs: float = 1e9, **novelty: Any
) -> Spec:
    return make_spec(
        {
            "name": "m",
            "precision": precision,
            "input": {"dim": dim, "max_abs": max_abs},
            "learning": {"rule": "gmm", "components": components},
            "novelty": novelty,
        }
    )


def regime(rng: np.random.Generator, rows: int, dim: int = 3, place: float = 0.0, offset: float = 0.0) -> np.ndarray:
    """Correlated noise around a place of a machine; offset: of the first sensor alone, in its standard deviations."""
    shared = rng.normal(size=(rows, 1))
    x = 50 + place * np.arange(1, dim + 1) + 0.5 * shared + rng.normal(size=(rows, dim))
    x[:, 0] += offset
    return np.asarray(x)


def fields_of(model: HostModel, *names: str) -> bytes:
    return b"".join(model.memory.field(name).tobytes() for name in names)


def bank(model: HostModel) -> bytes:
    return fields_of(model, "means", "roots", "counts", "weights", "rejected", "known", "newest", "unmet")


def in_alarm(model: HostModel) -> bool:
    return bool(model.read("alarm")[0][2] > 0)


def assert_sound(model: HostModel) -> None:
    """All numbers are finite and in the ranges that the fields declare; the state can be saved, and comes back."""
    other = HostModel(model.spec)
    snapshot.load(other, snapshot.save(model))
    assert persistent(other) == persistent(model)
    level, threshold, rows = model.read("alarm")[0]
    assert abs(level) <= 64 and np.isfinite(threshold) and rows >= 0
    shares, kind = model.read("blame")
    assert (shares >= 0).all() and shares.sum() <= 1.001
    assert kind == Status.DONE or Status.UNKNOWN <= kind <= Status.REGIME
    if model.memory.field("known")[0]:
        shares = model.read("regimes")[0]
        assert shares[shares > 0].sum() == pytest.approx(1, abs=1e-5)


# ------------------------------------------------------------------------------------------------------------ a twin


def glimpses(seed: int) -> np.ndarray:
    """A pump's first rows, then those around each of seven faults: between these, all sensors jump."""
    stream = pump(seed)
    around = [slice(max(0, f.first - 250), min(f.last, f.first + 130) + 40) for f in stream.faults[:7]]
    return np.concatenate([stream.rows[part] for part in (slice(0, 900), *around)]).astype(float)


@pytest.mark.exhaustive
@pytest.mark.parametrize("life", ["changing", "known", "fixed"])
@pytest.mark.parametrize(("seed", "components"), [(4, 4), (2, 2)])
@pytest.mark.in_turn
def test_the_rule_is_its_formulas(seed: int, components: int, life: str) -> None:
    """Levels, thresholds, statuses, kinds, blame and regimes, row by row; and decisions about some of the alarms."""
    rows = glimpses(seed)
    keys = {"life": life} | ({} if life == "changing" else {"commissioning": 350})
    spec = spec_of(dim=rows.shape[1], components=components, warmup=300, **keys)
    model, twin, seen, decided = HostModel(spec), Twin(spec), Counter[Any](), 0
    for t, x in enumerate(rows):
        (status,) = model.update(x[None])
        assert status == twin.update(x), t
        shares, kind = model.read("blame")
        assert kind == twin.blame()[1], t
        np.testing.assert_allclose(shares, twin.blame()[0], rtol=0, atol=1e-7, err_msg=str(t))
        np.testing.assert_allclose(model.read("alarm")[0], twin.alarm(), rtol=1e-7, atol=1e-7, err_msg=str(t))
        np.testing.assert_allclose(model.read("regimes")[0], twin.regimes(), rtol=0, atol=1e-7, err_msg=str(t))
        seen[Status(status)] += 1
        seen[Status(kind)] += 1
        seen["forbidden"] += t > 0 and twin.forbidden
        if twin.episode == 9:
            name = ["acknowledge", "reject", "", "acknowledge", "reject", "unlearn"][decided % 6]
            decided += 1
            if name:
                found = model.call(name)
                assert found == getattr(twin, name)(), t
                seen[name, Status(found)] += 1
    assert all(seen[each] for each in (Status.STRANGE, Status.HELD, Status.BORN)), seen
    assert sum(seen[Status(kind)] > 0 for kind in range(Status.UNKNOWN, Status.REGIME + 1)) >= 4 + (
        life == "changing"
    ), seen
    assert twin.merges and seen["forbidden"] and all(seen[name, Status.DONE] for name in ACTIONS), seen
    if components == 2:
        assert seen["reject", Status.NO_ROOM] or seen["acknowledge", Status.NO_ROOM], seen


@pytest.mark.parametrize("components", [2, 5, 8, 32])
def test_all_pairs_are_compared_before_two_are_merged(components: int) -> None:
    """Rows that make a regime come one by one from the candidate's second row on, and each compares some pairs."""
    for relearn_after in (2, 6, 12, 20, 80, 10_000):
        c = spec_of(components=components, relearn_after=relearn_after).config
        least = min(c.patience, c.relearn_soon, c.relearn_after)
        assert c.pairs_a_row * (least - 1) >= components * (components - 1) // 2, relearn_after


@pytest.mark.parametrize(("dim", "warmup"), [(1, 2), (8, 60), (40, 500)])
def test_a_threshold_is_of_levels_that_are_known_to_be_usual(dim: int, warmup: int) -> None:
    """In whatever unit: levels of the first rows, of which nothing is known, had made models blind for ten thousands of rows."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(warmup + 1200, dim))
    x[-10:, 0] += 12
    for unit in (2.0**-12, 2.0**14):
        _, states, statuses = HostModel(spec_of(dim=dim, warmup=warmup)).prequential_alarms(unit * x)
        assert 1 < states[-200, 1] < 10
        assert np.isin(statuses[-10:], (Status.NOVEL, Status.HELD)).all()
        assert np.isin(statuses[warmup:-10], (Status.NOVEL, Status.HELD)).mean() < 0.06


@pytest.mark.parametrize("surprise", ["a kick", "a regime"])
@pytest.mark.parametrize("at", [120, 128, 134, 250, 400])
@pytest.mark.in_turn(22)
def test_a_surprise_in_the_warmup_makes_nobody_blind(at: int, surprise: str) -> None:
    """It had put the threshold far too high for thousands of rows."""
    seen = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = regime(rng, 1530, dim=4)
        x[at : at + 3 if surprise == "a kick" else None] += 20 * rng.normal(size=4)
        for fault in (700, 1500):
            x[fault : fault + 30, seed % 4] += 6
        statuses = HostModel(spec_of(dim=4)).update(x)
        seen += [np.isin(statuses[fault : fault + 30], (Status.NOVEL, Status.HELD)).any() for fault in (700, 1500)]
    assert np.mean(seen) >= 0.9


@pytest.mark.in_turn(18)
@pytest.mark.parametrize("dim", [1, 3, 7])
@pytest.mark.parametrize("rate", [0.001, 0.003, 0.01, 0.05])
def test_a_young_threshold_does_not_climb_past_a_fault(rate: float, dim: int) -> None:
    """After some hundred rows.  Each row in alarm had lifted it: to three times of what it was, in five rows."""
    for seed, (warmup, rows), smoothing, alone in itertools.product(
        range(3), ((200, 300), (500, 560)), (0.2, 0.7), (True, False)
    ):
        rng = np.random.default_rng(seed)
        x = regime(rng, rows + 70, dim)
        x[rows:, seed % dim if alone else slice(None)] += 25
        keys = {"false_alarm_rate": rate, "warmup": warmup, "smoothing": smoothing, "relearn_after": 10_000}
        model = HostModel(spec_of(dim=dim, **keys))
        model.update(x[:rows])
        assert rows_in_alarm(model, x[rows:]) >= 0.8, (seed, warmup, smoothing, alone)


def rows_in_alarm(model: HostModel, x: np.ndarray) -> float:
    return float(np.isin(model.update(x), (Status.NOVEL, Status.HELD)).mean())


@pytest.mark.in_turn
@pytest.mark.parametrize("rate", [0.003, 0.01, 0.05])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_of_rows_without_faults_the_wanted_part_is_in_alarm(precision: str, rate: float) -> None:
    """Whatever the sensors' distributions are."""
    rng = np.random.default_rng(9)
    shape = 40_000, 4
    streams = (
        rng.normal(size=shape),
        rng.standard_t(3, size=shape),
        rng.lognormal(size=shape),
        rng.binomial(8, 0.5, shape),
    )
    for x in streams:
        model = HostModel(spec_of(precision, dim=4, false_alarm_rate=rate))
        model.update(x[:5000])
        assert rows_in_alarm(model, x[5000:]) == pytest.approx(rate, rel=0.2)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_machine_that_idles_is_no_alarm(precision: str) -> None:
    """From the beginning; and after it moved, once the alarm for sensors that stand still was the new normal."""
    rng = np.random.default_rng(10)
    still, moving = np.tile([0.0, 0.0, 5.0, 20.0], (4000, 1)), rng.normal(size=(2000, 4))
    assert rows_in_alarm(HostModel(spec_of(precision, dim=4)), still) == 0
    model = HostModel(spec_of(precision, dim=4))
    model.update(moving)
    assert rows_in_alarm(model, still[:10]) > 0.5
    model.update(still[:300])
    assert rows_in_alarm(model, still) == 0


# ----------------------------------------------------------------------------------------------- decisions


def alarmed(precision: str, rng: np.random.Generator, rows: int = 8, **keys: Any) -> HostModel:
    """A model whose first sensor was 12 deviations off for some rows."""
    model = HostModel(spec_of(precision, **{"warmup": 300, "relearn_after": 400} | keys))
    model.update(regime(rng, 1500, model.spec.dim))
    assert (model.update(regime(rng, rows, model.spec.dim, offset=12)) == Status.HELD).all()
    return model


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("components", COMPONENTS)
def test_what_is_acknowledged_is_no_alarm(components: int, precision: str) -> None:
    rng = np.random.default_rng(1)
    model = alarmed(precision, rng, components=components)
    other = HostModel(model.spec)
    snapshot.load(other, snapshot.save(model))
    before = int(model.memory.field("known")[0])
    assert model.call("acknowledge") == Status.DONE and not in_alarm(model)
    assert model.memory.field("known")[0] == min(before + 1, components)
    assert model.call("acknowledge") == Status.NOTHING_NEW
    later, quiet = regime(rng, 300, offset=12), regime(rng, 300)
    alarms = [np.isin(each.update(later), (Status.NOVEL, Status.HELD)).mean() for each in (model, other)]
    assert alarms[0] < 0.05 and alarms[1] == 1
    # both are known from now on
    both = np.where(rng.random((600, 1)) < 0.5, regime(rng, 600), regime(rng, 600, offset=12))
    statuses = [model.update(rows) for rows in (quiet, both)]
    assert np.isin(np.concatenate(statuses), (Status.NOVEL, Status.HELD)).mean() < 0.05
    shares = model.read("regimes")[0]
    assert (shares > 0.05).sum() >= 2 and shares.sum() == pytest.approx(1, abs=1e-6)
    assert_sound(model)


@pytest.mark.in_turn
@pytest.mark.parametrize("dim", [1, 3, 8])
@pytest.mark.parametrize("rows", [3, 8, 20])
def test_the_row_after_an_acknowledgement_is_no_alarm(rows: int, dim: int) -> None:
    """If it is like those that were acknowledged; the level before had gone on for some rows."""
    first, most = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = HostModel(spec_of(dim=dim, warmup=300, relearn_after=400))
        model.update(regime(rng, 1500, dim))
        model.update(regime(rng, rows, dim, place=12))
        assert model.call("acknowledge") == Status.DONE
        alarms = np.isin(model.update(regime(rng, 40, dim, place=12)), (Status.NOVEL, Status.HELD))
        first.append(alarms[0])
        most.append(alarms.mean())
    assert np.mean(first) <= 0.1 and np.mean(most) < 0.04


@pytest.mark.parametrize("beyond", [60, -12])
@pytest.mark.parametrize("dim", [1, 3, 8])
@pytest.mark.parametrize("rows", [3, 8, 30])
@pytest.mark.in_turn
def test_what_lies_beyond_a_rejected_regime_can_become_normal(rows: int, dim: int, beyond: int) -> None:
    """Few rejected rows do not tell how wide their regime is: once they forbade whatever was new."""
    rng = np.random.default_rng(11)
    model = alarmed("float64", rng, rows, dim=dim)
    assert model.call("reject") == Status.DONE
    assert (model.update(regime(rng, 60, dim, offset=12)) == Status.HELD).all()
    model.update(regime(rng, 900, dim, offset=beyond))
    assert rows_in_alarm(model, regime(rng, 200, dim, offset=beyond)) < 0.05
    assert (model.update(regime(rng, 60, dim, offset=12)) == Status.HELD).all()


@pytest.mark.parametrize("dim", [1, 4])
def test_a_fault_never_becomes_normal_in_its_first_rows(dim: int) -> None:
    # short faults fill the candidate; in the first row of one of them it has enough rows for a regime
    rng = np.random.default_rng(dim)
    model = HostModel(spec_of(dim=dim))
    novelty = model.spec.novelty
    model.update(regime(rng, 1500, dim))
    full = 0
    for _ in range(12):
        model.update(regime(rng, 20, dim))
        for row in regime(rng, 9, dim, place=30.0):
            level, threshold, age = model.read("alarm")[0]
            full += int(model.memory.field("counts")[-1] >= novelty.relearn_after)
            level += novelty.smoothing * (model.novelty(row[np.newaxis])[0] - level)
            status = model.update(row[np.newaxis])[0]
            assert status != Status.BORN or level <= threshold or age + 1 >= novelty.relearn_after // 6
    statuses = np.asarray(model.update(regime(rng, 100, dim, place=30.0)))
    alarms = [int(status) for status in GMM["none"].alarms]
    assert full and not np.isin(statuses[-10:], alarms).any()  # what lasts becomes normal


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("components", [3, 8])
def test_what_is_rejected_is_always_in_alarm_and_teaches_nothing(components: int, precision: str) -> None:
    rng = np.random.default_rng(2)
    model = alarmed(precision, rng, 40, components=components)
    assert model.call("reject") == Status.DONE
    known = int(model.memory.field("known")[0])
    shares = model.read("regimes")[0]
    assert model.memory.field("rejected")[:known].sum() == 1 and (shares[:known] > 0).sum() == known - 1
    assert (shares == -1).sum() == 1
    for _ in range(3):
        assert model.update(regime(rng, 1, offset=12)) == Status.HELD  # a candidate of alarms before ends with it
        kept = bank(model), fields_of(model, "middle", "joint", "usual", "spread", "repeats", "least_step")
        assert (model.update(regime(rng, 1000, offset=12)) == Status.HELD).all()
        assert kept == (bank(model), fields_of(model, "middle", "joint", "usual", "spread", "repeats", "least_step"))
        # a usual row ends the alarm, and is learned
        assert np.isin(model.update(regime(rng, 400)), (Status.NOVEL, Status.HELD)).mean() < 0.1
    assert_sound(model)
    again = HostModel(model.spec)
    snapshot.load(again, snapshot.save(model))
    assert (again.update(regime(rng, 50, offset=12)) == Status.HELD).all()
    # who changes his mind says so in the next such alarm, or at once
    assert again.call("acknowledge") == Status.DONE and rows_in_alarm(again, regime(rng, 300, offset=12)) < 0.05
    assert model.call("unlearn") == Status.DONE and model.read("regimes")[0].min() == 0
    assert model.call("unlearn") == Status.NOTHING_NEW


@pytest.mark.parametrize(("life", "least"), [("known", 0.9), ("fixed", 0.9), ("changing", 0.0)])
def test_a_fault_that_repeats_stays_an_alarm_of_an_armed_monitor(life: str, least: float) -> None:
    """Four hundred times.  Where the machine changes, it becomes normal: nobody can tell the two apart."""
    rows, alike = np.arange(63_000), np.random.default_rng(3).normal(size=(63_000, 4))
    faulty = (rows >= 3000) & (rows % 150 < 40)
    alike[faulty] += 8.0
    statuses = HostModel(spec_of(dim=4, life=life)).update(alike)
    seen = np.isin(statuses, (Status.NOVEL, Status.HELD))[3000:].reshape(-1, 150)[:, :40].mean(axis=1)
    assert min(seen[0], seen[-100:].mean()) >= least if least else seen[-100:].mean() < 0.1


@pytest.mark.parametrize("relearn_after", [80, 3000, "never"])
@pytest.mark.parametrize("life", ["known", "fixed", "changing"])
def test_what_comes_first_after_commissioning(life: str, relearn_after: int | str) -> None:
    """A state that lasts is normal after ``relearn_after`` rows of one alarm, more than a candidate counts, too; of a machine that changes
    after a sixth."""
    rng = np.random.default_rng(5)
    x = np.concatenate([regime(rng, 2500), regime(rng, 4000, place=9)])
    model = HostModel(spec_of(life=life, relearn_after=relearn_after))
    alarms = np.isin(model.update(x)[2500:], (Status.NOVEL, Status.HELD))
    calm = np.flatnonzero(np.convolve(alarms, np.ones(20), "valid") == 0)
    rows = 4000 if relearn_after == "never" else relearn_after // 6 if life == "changing" else relearn_after
    assert alarms[0] and 0.9 * rows <= (calm[0] if len(calm) else len(alarms)) <= 1.1 * rows + 20
    if relearn_after == "never":
        assert model.call("acknowledge") == Status.DONE and rows_in_alarm(model, regime(rng, 400, place=9)) < 0.05


@pytest.mark.parametrize("window", [{}, {"window": 16, "hop": 8, "features": ["rms"]}])
def test_where_no_row_comes_that_is_an_alarm(window: dict[str, Any]) -> None:
    """For longer than five rows' time.  Afterwards everything is as if those had never been."""
    signal = {"channels": ["a", "b"], "max_abs": 1e6} | window
    spec = make_spec({"name": "m", "signal": signal, "novelty": {}})
    x = np.random.default_rng(6).normal(size=(1200 * spec.stride, 2)).astype(np.float32)
    model, other = HostModel(spec), HostModel(spec)
    for each in (model, other):
        each.update(x)
    gone = np.tile(np.float32([0.1, np.nan]), (20 * spec.stride, 1))
    state = persistent(model)
    statuses = model.update(gone)
    first, later = statuses[: 5 * spec.stride], statuses[5 * spec.stride :]
    assert set(first) == {spec.program.status.REFUSED_SAMPLE} and set(later) == {Status.ABSENT}
    assert persistent(model) == state
    assert (model.update(x) == other.update(x)).all() and persistent(model) == persistent(other)


PRESENT = "level episode quiet frozen before run shares leaps abrupt culprit reported calm rough others".split()
"""What is known of the present row and its alarm."""


@pytest.mark.parametrize("stage", [{}, {"missing": "hold"}], ids=["plain", "missing"])
def test_a_frozen_monitor_judges_and_learns_nothing(stage: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3000, 4))
    spec = make_spec({"name": "m", "input": {"dim": 4} | stage, "novelty": {}})
    model, other = HostModel(spec), HostModel(spec)
    for each in (model, other):
        each.update(x)
    model.freeze()
    alarms, frozen = [int(status) for status in spec.program.alarms], int(spec.program.status.FROZEN)
    assert np.isin(model.update(x[:40] + 12.0), alarms).mean() >= 0.9
    gaps = np.where(rng.random((300, 4)) < 0.1, np.nan, x[100:400]) if stage else x[100:400]
    quiet = model.update(gaps)
    judged = quiet[quiet >= 0]
    assert np.isin(judged, [frozen, *alarms]).all() and np.isin(judged, alarms).mean() < 0.1
    end = spec.program.state_bytes(model.memory.layout)
    for slot in model.memory.layout.slots:
        if slot.name not in PRESENT and slot.name != "latest_input" and slot.offset < end:
            assert model.memory.field(slot.name).tobytes() == other.memory.field(slot.name).tobytes(), slot.name
        assert np.isfinite(model.memory.field(slot.name)).all(), slot.name


def test_a_slow_drift_is_an_alarm_of_a_frozen_monitor_alone() -> None:
    """docs/guide/monitor-settings.md: freeze after the commissioning, if faults take weeks."""
    x = regime(np.random.default_rng(5), 9000)
    x[:, 0] += np.maximum(np.arange(9000) - 3000, 0) / 6000 * 20
    alarms = {}
    for freezes in (False, True):
        model = HostModel(spec_of(warmup=500, commissioning=1500))
        model.prequential(x[:2500])
        if freezes:
            model.freeze()
        statuses = [model.update(row)[0] for row in x[2500:]]
        alarms[freezes] = np.mean(np.isin(statuses[-2000:], (Status.NOVEL, Status.HELD)))
    assert alarms[True] > 0.99 and alarms[False] < 0.1


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("components", [2, 4])
def test_one_regime_is_never_rejected(components: int, precision: str) -> None:
    rng = np.random.default_rng(3)
    model = HostModel(spec_of(precision, components=components, warmup=100, relearn_after=400))
    model.update(regime(rng, 500))
    found = []
    for number in range(1, components + 1):
        far = regime(rng, 30)
        far[:, number // 2] += 40 * (-1) ** number
        assert (model.update(far) == Status.HELD).all()
        state = persistent(model)
        found.append(model.call("reject"))
        if found[-1] == Status.NO_ROOM:
            assert persistent(model) == state
        else:
            assert model.call("reject") == Status.NOTHING_NEW
        assert is_valid(model)
        model.update(regime(rng, 300))
    assert found == [Status.DONE] * (components - 1) + [Status.NO_ROOM]
    assert model.memory.field("rejected").sum() == components - 1
    # the one regime that is left does not become one with another: what is new stays in alarm, and teaches no regime
    far, normal = regime(rng, 30, offset=-80), int(np.flatnonzero(model.memory.field("rejected") == 0)[0])
    assert (model.update(far) == Status.HELD).all()
    state = persistent(model)
    assert model.call("acknowledge") == Status.NO_ROOM and persistent(model) == state
    counted, mean = int(model.memory.field("counts")[normal]), model.memory.field("means")[normal].copy()
    assert Status.BORN not in model.update(regime(rng, 1000, offset=-80))
    assert model.memory.field("counts")[normal] == counted and (model.memory.field("means")[normal] == mean).all()
    assert_sound(model)


# ----------------------------------------------------------------------------------------------- damaged states


UNSOUND: list[tuple[str, Any, float]] = [
    ("counts", 0, 0), ("counts", 3, 5), ("means", (3, 0), 1.0), ("roots", (3, 0), 1.0), ("roots", (0, 0), 0.0),
    ("roots", (4, 0), 0.0), ("weights", 0, 0.0), ("weights", 3, 1.0), ("rejected", 3, 1), ("rejected", slice(0, 1), 1),
    ("joint", 0, 0.0), ("joint", -1, -1.0), ("known", 0, 0), ("followed", 0, 0), ("watched", 0, 0), ("quiet", 0, 5),
    ("taught", 0, 0), ("newest", 0, 2), ("culprit", 0, 3), ("merge_first", 0, 4), ("merge_second", 0, 4), ("known", 0, 5), ("repeats", 0, 1.5),
]  # fmt: skip
OVERWRITTEN = [("known", 5), ("known", 0), ("newest", 2), ("culprit", 3), ("merge_first", 4), ("merge_second", 4)]


def test_what_learning_cannot_lead_to_is_refused() -> None:
    """Each part of a sound state alone; and what would lead out of the arrays, if the memory of a running model is damaged."""
    rng = np.random.default_rng(12)
    model = alarmed("float32", rng, 3)
    assert model.memory.field("known")[0] == 1 and is_valid(model)
    row, state = regime(rng, 1), model.memory.buffer.copy()
    for name, at, value in UNSOUND:
        model.memory.field(name)[at] = value
        assert not is_valid(model), (name, at)
        model.memory.buffer[...] = state
    assert is_valid(model)
    for name, value in OVERWRITTEN:
        model.memory.field(name)[0] = value
        damage = persistent(model)
        told = [model.update(row)[0], *(model.call(action) for action in ACTIONS)]
        told += [model.read(reading)[1] for reading in ("alarm", "blame", "regimes")]
        assert set(told) == {Status.REFUSED_STATE} and persistent(model) == damage, name
        model.memory.buffer[...] = state
    assert model.update(row)[0] >= 0


@pytest.mark.parametrize("components", COMPONENTS)
def test_after_any_life_an_acknowledged_state_can_be_saved(components: int) -> None:
    """An acknowledged state takes at least the mean weight, and a full bank adds two weights to make room for it."""
    rng = np.random.default_rng(0)
    model = HostModel(spec_of(components=components))
    model.update(regime(rng, 30_000))
    merged = 0
    for k in range(3 * components):
        rows = regime(rng, 15, place=1000.0 * (k + 1))
        model.update(rows[:1])
        merged += model.call("acknowledge") == Status.DONE and k >= components
        model.update(rows[1:])
        assert is_valid(model), k
    assert merged > 1
    snapshot.load(HostModel(model.spec), snapshot.save(model))
