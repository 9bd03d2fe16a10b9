"""What false_alarm_rate promises: the part of the rows without faults that are in alarm."""

import numpy as np
import pytest

pytest.importorskip("scipy")

from benchmarks.host.alarms.measure import ALPHAS, rates
from benchmarks.host.alarms.page import ARMED, BELOW, NEW_STATES, WITHIN, kept
from benchmarks.host.alarms.plants import PLANTS, sound
from benchmarks.host.alarms.rivals import Bare, Changing
from benchmarks.tables import DATA, load

LIVES = (Bare, Changing)


def promised(rows):
    rows = [row for row in rows if row["detector"] != ARMED or row["kind"] not in NEW_STATES]
    found = {(name, rate): parts for name, rate, parts in kept(rows)}
    assert set(found) == {(each.name, rate) for each in LIVES for rate in ALPHAS}
    for which, parts in found.items():
        assert abs(np.median(parts) - 1) < WITHIN and np.quantile(parts, 0.9) < BELOW, (which, parts)


def in_alarm(seed):
    for plant in PLANTS:
        stream = sound(plant, seed)
        for each in LIVES:
            head = {"detector": each.name, "kind": plant.kind, "stream": plant.name, "seed": seed}
            yield from (head | counts for counts in rates(each(), stream))


def test_the_measured_rates_are_those_asked_for():
    names = {each.name for each in LIVES}
    promised([row for row in load(DATA / "alarms-rates.csv") if row["detector"] in names])


@pytest.mark.exhaustive("minutes")
def test_all_plants_keep_all_rates():
    promised([*in_alarm(11), *in_alarm(12)])  # one seed has three streams of 200,000 rows
