"""Held-out machines of water and air: aeration basin, decanter, ventilation unit."""

from __future__ import annotations

import numpy as np

from benchmarks.host.alarms.held_kit import lag
from benchmarks.host.alarms.held_second_kit import (
    SOUND_FIRST,
    Machine,
    Probe,
    Run,
    contact,
    creep,
    factor,
    hiss,
    jump,
    machine,
    sluggish,
    stick,
    swap,
)


def basin(run: Run) -> None:
    """An aeration basin of a sewage works, a row each five minutes: days, storms, oxygen in a closed loop."""
    rng, hour = run.rng, (run.t / 12.0) % 24.0
    storm = np.zeros(run.rows)
    start = 500
    while start < run.rows:
        long, size = int(rng.uniform(30, 150)), float(rng.uniform(0.4, 0.9))
        storm[start : start + (long if start > 500 else 110)] = size if start > 500 else 0.95
        start = max(start + 200, SOUND_FIRST) + int(rng.exponential(1300))
    storm = lag(storm, 12)
    dry = 1.0 - 0.34 * np.cos((hour - 5.0) * np.pi / 12.0) + 0.13 * np.sin((hour - 1.0) * np.pi / 6.0)
    inflow = 820.0 * (dry * np.exp(run.wander(20, 0.04)) + 2.1 * storm)
    load = dry * np.exp(run.wander(60, 0.08)) * (1.0 - 0.3 * storm)
    warm = 15.0 + run.wander(3000, 1.4) - 2.2 * storm
    feeds, poison = load.tolist(), run.upset["poisonous inflow"].tolist()
    clog, hunts = run.upset["diffusers clog"].tolist(), run.upset["blower control hunts"].tolist()
    read, flow, salt = run.meter("oxygen"), np.zeros(run.rows), np.zeros(run.rows)
    o2, nh4, sums, shown, air = 2.0, 2.0, 2400.0, 2.0, 2400.0
    saturated = (14.2 - 0.33 * warm).tolist()
    for t in range(run.rows):
        wrong = 2.0 - shown
        sums = min(max(sums + 60.0 * wrong, 900.0), 6500.0)
        want = min(max(sums + 500.0 * wrong + hunts[t] * (1.0 if (t // 5) % 2 else -1.0), 900.0), 6500.0)
        air += 0.6 * (want - air)
        eats = 3.0 * o2 / (o2 + 0.5) * nh4 / (nh4 + 1.5) * (1.0 - poison[t])
        nh4 = max(nh4 + 0.12 * (1.7 * feeds[t] - eats), 0.05)
        move = (
            0.00044 * air**0.9 * (1.0 - clog[t]) * (saturated[t] - o2) - 1.1 * eats - 1.4 * feeds[t] * o2 / (o2 + 0.3)
        )
        o2 = min(max(o2 + 0.12 * move, 0.02), 9.0)
        shown = read(t, o2)
        flow[t], salt[t] = air, nh4
    run.show("inflow", inflow)
    run.show("ammonium", salt * np.exp(0.03 * rng.normal(size=run.rows)))
    run.show("air", flow)
    run.show("blower", 22.0 + 0.019 * flow * (1.0 + 0.35 * run.upset["diffusers clog"]))
    run.show("acid", 7.25 + 0.025 * salt - 0.15 * storm + run.wander(300, 0.03))
    run.show("water", warm)


BASIN = Machine(
    "aeration basin",
    "days, storms, closed loop",
    basin,
    (
        Probe("inflow m3/h", 12.0, 2.0, 4, 0.0, 6000.0),
        Probe("oxygen mg/l", 0.06, 0.01, 0.0, 0.0, 15.0),
        Probe("ammonium mg/l", 0.08, 0.05, 5, 0.0, 60.0),
        Probe("air m3/h", 35.0, 10.0, 0.0, 0.0, 9000.0),
        Probe("blower A", 0.8, 0.2, 0.0, 0.0, 250.0),
        Probe("acid pH", 0.012, 0.01, 0.0, 0.0, 14.0),
        Probe("water degC", 0.06, 0.1, 0.0, -10.0, 50.0),
    ),
    (
        jump("ammonium", 1.0, 5.0),
        factor("air", 0.1, 0.4),
        jump("acid", 0.15, 0.8),
        creep("oxygen air", 0.6, 2.0, tail=100),
        creep("acid", 0.3, 1.0),
        stick("oxygen", 0.1, lasts=(40, 160), tail=60),
        stick("ammonium", 0.5, dither=True),
        hiss("oxygen", 0.4, 1.5, tail=30),
        hiss("inflow", 120.0, 600.0),
        contact("acid", 0.0),
        sluggish("air", 12.0, 40.0, 200.0),
        machine("poisonous inflow", "regime", "ammonium acid air", 0.25, 0.6, lasts=(40, 150), tail=300),
        machine("diffusers clog", "drift", "air blower", 0.15, 0.4, form="ramp", lasts=(150, 700), tail=60),
        machine("blower control hunts", "", "air blower", 300.0, 1200.0, tail=20),
    ),
)


def decanter(run: Run) -> None:
    """A decanter centrifuge for sludge, a row each ten seconds: rest, run-up, flushing, two sludges."""
    rng = run.rng
    state = run.spell(4, 460, (150, 1800), (0.5, 0.4, 1.5, 1.2))  # rest, flush, thin sludge, thick sludge
    aim = np.array([0.0, 2100.0, 3150.0, 3150.0])[state]
    bowl = lag(aim, 14)
    feeding = (state >= 2) & (bowl > 2700.0)
    thick = np.where(state == 3, 1.5, 1.0) * np.exp(run.wander(60, 0.07) + run.wander(900, 0.05))
    thick = thick * (1.0 + run.upset["foreign sludge"])
    feed = lag(np.where(feeding, np.where(state == 3, 14.0, 21.0), np.where(state == 1, 9.0, 0.0)), 5) * np.exp(
        run.wander(15, 0.02)
    )
    cake = lag(feed * thick * feeding, 18) * (1.0 + run.upset["cake blocks the screw"])
    torque = lag(0.18 * (bowl > 200) + 0.075 * cake, 3) * np.exp(0.025 * rng.normal(size=run.rows))
    differ = (2.0 + 3.4 * torque) * np.minimum(bowl / 2000.0, 1.0)
    worn, skew = run.upset["main bearing wears"], run.upset["unbalance"]
    whirl = 6.0 * np.exp(-(((bowl - 1400.0) / 280.0) ** 2))  # passing the critical speed
    shake = 0.15 + (bowl / 3150.0) ** 2 * (2.1 + 2.0 * worn + 3.0 * skew) + whirl
    room = 17.0 + run.wander(3500, 1.2)
    cloud = lag(
        np.where(
            feeding, 110.0 * thick**1.5 * (feed / 20.0) ** 1.2 * (1.0 + 0.5 * run.upset["cake blocks the screw"]), 25.0
        ),
        9,
    )
    run.show("bowl", bowl * (1.0 + run.wander(10, 0.0007)))
    run.show("differ", differ)
    run.show("torque", torque)
    run.show("shake", shake * np.exp(0.1 * rng.normal(size=run.rows)))
    run.show("feed", feed)
    run.show("bearing", room + lag(34.0 * (bowl / 3150.0) ** 1.5 * (1.0 + 0.5 * worn) + 1.5 * torque, 60))
    run.show("cloud", cloud * np.exp(0.08 * rng.standard_t(5, run.rows)))


FEEDING = ("feed", 10.0, 30.0)
DECANTER = Machine(
    "decanter",
    "rest, flushing, two sludges, run-up through a critical speed",
    decanter,
    (
        Probe("bowl rpm", 1.5, 1.0, 0.0, 0.0, 4500.0),
        Probe("differ rpm", 0.05, 0.05, 0.0, 0.0, 30.0),
        Probe("torque kNm", 0.01, 0.01, 0.0, 0.0, 8.0),
        Probe("shake mm/s", 0.04, 0.02, 5, 0.0, 50.0),
        Probe("feed m3/h", 0.12, 0.05, 0.0, 0.0, 60.0),
        Probe("bearing degC", 0.2, 0.25, 0.0, -40.0, 150.0),
        Probe("cloud NTU", 2.0, 1.0, 0.0, 0.0, 2000.0),
    ),
    (
        factor("feed", 0.08, 0.35, where=FEEDING),
        jump("differ", 0.5, 3.0),
        jump("bearing", 4.0, 15.0),
        creep("cloud", 60.0, 250.0, sign=1),
        creep("torque", 0.3, 1.2, where=FEEDING),
        stick("torque", 0.12, lasts=(60, 300)),
        stick("bearing", 1.5, dither=True, lasts=(80, 300)),
        hiss("bowl", 15.0, 100.0),
        contact("shake", 0.0, where=("shake", 1.0, 20.0)),
        contact("bowl", 0.0, where=("bowl", 1500.0, 4000.0)),
        machine("foreign sludge", "regime", "torque cloud differ", 0.8, 1.6, tail=60, where=FEEDING),
        machine("unbalance", "jump", "shake", 0.6, 2.5, where=FEEDING),
        machine(
            "main bearing wears",
            "drift",
            "shake bearing",
            0.5,
            2.0,
            form="ramp",
            lasts=(150, 600),
            tail=200,
            where=FEEDING,
        ),
        machine(
            "cake blocks the screw",
            "",
            "torque differ cloud",
            0.3,
            1.2,
            form="rise",
            lasts=(50, 250),
            tail=60,
            where=FEEDING,
        ),
    ),
)


def ventilation(run: Run) -> None:
    """A ventilation unit of a school, a row a minute: days, weather, people; fan laws; carbon dioxide leads the fan."""
    rng, hour = run.rng, (run.t / 60.0) % 24.0
    outside = 6.0 + run.wander(2500, 1.5) - 4.0 * np.cos((hour - 3.0) * np.pi / 12.0)
    lesson = np.where((hour > 8) & (hour < 16) & ((hour * 60) % 60 > 10), 1.0, 0.0)
    people = lag(lesson * np.repeat(rng.uniform(0.5, 1.0, run.rows // 60 + 1), 60)[: run.rows], 4)
    crowd, dead = (people * 30.0).tolist(), run.upset["heater valve jams"].tolist()
    dust = 0.25 * (run.t % 9000) / 9000.0
    clog, belt_slip = run.upset["filter blocked"], run.upset["fan belt slips"]
    opens = (run.upset["damper open to the roof"] > 0).tolist()
    loss = (1.0 + dust + clog).tolist()
    pull, cold = (1.0 - belt_slip).tolist(), outside.tolist()
    read_gas, read_warm = run.meter("co2"), run.meter("supply")
    turn, flow, valve, recovered = (np.zeros(run.rows) for _ in range(4))
    gas, warm, sums, shown_gas, shown_warm, room, fan = 500.0, 19.0, 20.0, 500.0, 19.0, 20.5, 40.0
    rooms = np.zeros(run.rows)
    for t in range(run.rows):
        at = hour[t]
        want = min(max(40.0 + 0.09 * (shown_gas - 600.0), 40.0), 95.0) if 6.0 < at < 18.0 else 22.0
        fan += 0.2 * (want - fan)
        q = 62.0 * fan * pull[t] / (0.6 + 0.4 * loss[t]) ** 0.5
        gas += crowd[t] * 1.3 - q * (gas - 410.0) / 90_000.0
        shown_gas = read_gas(t, gas)
        back = cold[t] + (0.35 if opens[t] else 0.72) * (room - cold[t])
        wrong = 19.0 - shown_warm
        sums = min(max(sums + 0.3 * wrong, 0.0), 100.0)
        duty = min(max(sums + 2.0 * wrong, 0.0), 100.0)
        real = 8.0 if dead[t] else duty
        warm += 0.25 * (back + 0.22 * real * (2500.0 / (q + 600.0)) ** 0.5 - warm)
        shown_warm = read_warm(t, warm)
        room += 0.004 * (warm - room) + 0.0012 * crowd[t] + 0.003 * (21.0 - room)
        turn[t], flow[t], valve[t], recovered[t], rooms[t] = fan, q, duty, back, room
    losses = np.array(loss)
    gust = np.exp(0.03 * rng.normal(size=run.rows))
    run.show("outside", outside)
    run.show("room", rooms)
    run.show("recovered", recovered)
    run.show("fan", turn)
    run.show("flow", flow * np.exp(0.012 * rng.normal(size=run.rows)))
    run.show("filter", 95.0 * (flow / 4000.0) ** 2 * losses * gust)
    run.show("watts", 60.0 + 2300.0 * (turn / 80.0) ** 3 * (1.0 - 0.8 * belt_slip))
    run.show("valve", valve)


BY_DAY = ("fan", 38.0, 100.0)
VENTILATION = Machine(
    "ventilation unit",
    "days, people, fan laws, two loops",
    ventilation,
    (
        Probe("outside degC", 0.1, 0.1, 0.0, -40.0, 60.0),
        Probe("supply degC", 0.1, 0.1, 0.0, -40.0, 80.0),
        Probe("room degC", 0.05, 0.1, 0.0, -40.0, 60.0),
        Probe("recovered degC", 0.1, 0.1, 0.0, -40.0, 60.0),
        Probe("co2 ppm", 9.0, 5.0, 5, 0.0, 5000.0),
        Probe("fan %", 0.2, 0.5, 0.0, 0.0, 100.0),
        Probe("flow m3/h", 25.0, 10.0, 0.0, 0.0, 9000.0),
        Probe("filter Pa", 1.5, 1.0, 0.0, 0.0, 500.0),
        Probe("watts W", 12.0, 5.0, 0.0, 0.0, 6000.0),
        Probe("valve %", 0.2, 0.5, 0.0, 0.0, 100.0),
    ),
    (
        jump("outside", 3.0, 12.0),
        factor("flow", 0.1, 0.4),
        jump("supply", 1.0, 5.0, tail=60),
        creep("room", 2.0, 6.0),
        creep("co2", 150.0, 600.0, tail=60),
        stick("filter", 10.0, lasts=(60, 300)),
        stick("outside", 0.8, dither=True, lasts=(80, 300)),
        hiss("co2", 60.0, 250.0, tail=20),
        hiss("watts", 80.0, 400.0),
        contact("room", 60.0),
        swap("outside", "recovered", 3.0),
        machine(
            "filter blocked", "drift", "filter flow", 0.5, 1.5, form="ramp", lasts=(150, 600), tail=120, where=BY_DAY
        ),
        machine("fan belt slips", "", "flow watts filter", 0.15, 0.5, tail=120, where=BY_DAY),
        machine("heater valve jams", "", "supply valve", 1.0, 1.0, lasts=(60, 250), tail=120),
        machine("damper open to the roof", "regime", "recovered valve", 1.0, 1.0, lasts=(40, 200), tail=150),
    ),
)

ROOMS = (BASIN, DECANTER, VENTILATION)
