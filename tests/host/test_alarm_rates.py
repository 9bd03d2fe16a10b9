"""What false_alarm_rate promises: the part of the rows without faults that are in alarm."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.host.alarms.plants import PLANTS, sound
from benchmarks.host.alarms.rates import NAMED, RATES, in_alarm, kept, monitor
from benchmarks.tables import DATA, load
from pykernel.host.model import HostModel
from pykernel.spec.model import make_spec


def promised(rule, counts, rate):
    found = kept(counts, rate)
    assert 0.7 < found.median < 1.3 and found.most < 2 and found.streams > 0, (rate, found)


@pytest.mark.parametrize("rule", NAMED)
def test_the_measured_rates_are_those_asked_for(rule):
    rows = [row for row in load(DATA / "alarm-rates.csv") if row["rule"] == rule]
    for rate in RATES:
        promised(rule, [(int(r["alarms"]), int(r["rows"])) for r in rows if float(r["rate"]) == rate], rate)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", NAMED)
def test_some_plants_keep_a_rate(rule):
    streams = [sound(plant, 11) for plant in PLANTS[::6]]
    for rate in (0.01, 0.05):
        promised(rule, [in_alarm(monitor(rule, stream.rows.shape[1], rate), stream) for stream in streams], rate)


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", NAMED)
def test_all_plants_keep_all_rates(rule):
    streams = [sound(plant, 11) for plant in PLANTS]
    for rate in RATES:
        promised(rule, [in_alarm(monitor(rule, stream.rows.shape[1], rate), stream) for stream in streams], rate)


def test_a_head_changes_no_alarm():
    x = sound(PLANTS[0], 3).rows[:4000].astype(float)
    content = {"name": "m", "learning": {"rule": "okfeb", "features": 6}, "reduction": {"n_max": 12}}
    content |= {"kernel": {"sigma": 2.0}, "novelty": {"smoothing": 0.5}}
    content |= {"input": {"dim": x.shape[1], "standardise": True, "max_abs": 1e6}}
    alone, labelled = HostModel(make_spec(content)), HostModel(make_spec(content | {"label": {"column": "y"}}))
    _, states, statuses = alone.prequential_alarms(x)
    _, other, others = labelled.prequential_alarms(x, np.tanh(x[:, 0]))
    assert states.tobytes() == other.tobytes() and (statuses == others).all() and (statuses >= 4).any()
