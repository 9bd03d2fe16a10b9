"""What false_alarm_rate promises: the part of the rows without faults that are in alarm."""

import pytest

pytest.importorskip("scipy")

from benchmarks.host.alarms.plants import PLANTS, sound
from benchmarks.host.alarms.rates import RATES, in_alarm, kept, monitor
from benchmarks.tables import DATA, load


def promised(counts, rate):
    found = kept(counts, rate)
    assert 0.7 < found.median < 1.3 and found.most < 2 and found.streams > 0, (rate, found)


def test_the_measured_rates_are_those_asked_for():
    rows = load(DATA / "alarm-rates.csv")
    for rate in RATES:
        promised([(int(r["alarms"]), int(r["rows"])) for r in rows if float(r["rate"]) == rate], rate)


@pytest.mark.exhaustive
def test_some_plants_keep_a_rate():
    streams = [sound(plant, 11) for plant in PLANTS[::6]]
    for rate in (0.01, 0.05):
        promised([in_alarm(monitor(stream.rows.shape[1], rate), stream) for stream in streams], rate)


@pytest.mark.exhaustive
def test_all_plants_keep_all_rates():
    streams = [sound(plant, 11) for plant in PLANTS]
    for rate in RATES:
        promised([in_alarm(monitor(stream.rows.shape[1], rate), stream) for stream in streams], rate)
