"""Held-out machines of basins, buildings and cells: aeration basin, decanter, ventilation unit, robot, data hall."""

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
        storm[start : start + int(rng.uniform(30, 150))] = rng.uniform(0.5, 1.0)
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
        creep("oxygen", 0.6, 2.0, tail=40),
        creep("acid", 0.3, 1.0),
        stick("oxygen", 0.1, lasts=(40, 160), tail=60),
        stick("ammonium", 0.5, dither=True),
        hiss("oxygen", 0.4, 1.5, tail=30),
        hiss("inflow", 120.0, 600.0),
        contact("acid", 0.0),
        sluggish("air", 12.0, 40.0, 200.0),
        machine("poisonous inflow", "regime", "ammonium acid air", 0.4, 0.9, tail=100),
        machine("diffusers clog", "drift", "air blower", 0.15, 0.4, form="ramp", lasts=(150, 700), tail=60),
        machine("blower control hunts", "", "air blower", 300.0, 1200.0, tail=20),
    ),
)


def decanter(run: Run) -> None:
    """A decanter centrifuge for sludge, a row each ten seconds: rest, run-up, flushing, two sludges."""
    rng = run.rng
    state = run.spell(4, 230, (150, 1800), (0.5, 0.4, 1.5, 1.2))  # rest, flush, thin sludge, thick sludge
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
    room = 17.0 + run.wander(3500, 2.0)
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
    run.show("bearing", room + lag(34.0 * (bowl / 3150.0) ** 1.5 * (1.0 + 0.5 * worn) + 1.5 * torque, 110))
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
        machine("foreign sludge", "regime", "torque cloud differ", 0.8, 1.6, tail=40, where=FEEDING),
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
    outside = 6.0 + run.wander(2500, 2.5) - 4.0 * np.cos((hour - 3.0) * np.pi / 12.0)
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
        sums = min(max(sums + 0.12 * wrong, 0.0), 100.0)
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
        machine("damper open to the roof", "regime", "recovered valve", 1.0, 1.0, tail=60),
    ),
)


def robot(run: Run) -> None:
    """A robot of four axes, a row each quarter second: three programs of smooth moves, and waiting for parts."""
    rng, fixed = run.rng, np.random.default_rng(4107)
    state = run.spell(4, 230, (250, 2000), (0.3, 1, 1, 1))  # 0: waits at home
    home = np.array([0.0, -30.0, 60.0, 0.0])
    programs = [home + np.array([110.0, 45.0, 50.0, 140.0]) * fixed.uniform(-1, 1, (6, 4)) for _ in range(3)]
    strange = programs[0][::-1] * 1.15 + 22.0
    place = np.tile(home, (run.rows, 1))
    hold = rng.integers(7, 12, run.rows)
    at, step, alien = 0, 0, run.upset["unknown program"] > 0
    while at < run.rows:
        long = int(hold[step])
        route = strange if alien[at] else programs[state[at] - 1] if state[at] else home[None]
        place[at : at + long] = route[step % len(route)]
        at, step = at + long, step + 1
    arm = np.column_stack([lag(lag(place[:, i], 1.4), 1.4) for i in range(4)])
    speed = np.diff(arm, axis=0, prepend=arm[:1])
    push = np.diff(speed, axis=0, prepend=speed[:1])
    part = np.where((np.arange(run.rows) // 30) % 2 == 0, 1.0, 0.0) * (state > 0)
    weight = np.zeros((run.rows, 4))
    weight[:, 1] = 2.6 * np.sin(np.radians(arm[:, 1])) * (1.0 + 0.3 * part)
    weight[:, 2] = 1.9 * np.cos(np.radians(arm[:, 1] + arm[:, 2])) * (1.0 + 0.4 * part)
    room = 22.0 + run.wander(4000, 1.2)
    rub = np.tile([0.8, 0.9, 0.6, 0.3], (run.rows, 1))
    rub[:, 2] = rub[:, 2] * (1.0 + run.upset["gear of axis three wears"])
    crash = run.upset["arm rubs a fence"]
    for i in range(4):
        drag = rub[:, i] * np.tanh(speed[:, i] / 0.8) + 0.03 * speed[:, i]
        if i == 0:
            drag = drag + crash * np.sign(speed[:, 0]) * (np.abs(speed[:, 0]) > 0.3)
        slack = run.upset["belt of axis four slackens"] * speed[:, 3] if i == 3 else 0.0
        amps = drag + 0.075 * push[:, i] + weight[:, i]
        worn = run.upset["gear of axis three wears"] * 0.25 * (i == 2) * np.sin(arm[:, i] * 1.9)
        run.show(f"angle{i + 1}", arm[:, i] - slack)
        run.show(f"amps{i + 1}", (amps + worn) * (1.0 + 0.04 * rng.normal(size=run.rows)))
        run.show(f"motor{i + 1}", room + 4.0 + lag(amps**2 * 2.2, 700, 8.0))


ROBOT = Machine(
    "robot arm",
    "three programs of smooth moves",
    robot,
    tuple(
        probe
        for i in (1, 2, 3, 4)
        for probe in (
            Probe(f"angle{i} deg", 0.02, 0.05, 0.0, -360.0, 360.0),
            Probe(f"amps{i} A", 0.06, 0.02, 5, -25.0, 25.0),
            Probe(f"motor{i} degC", 0.2, 0.5, 0.0, -40.0, 150.0),
        )
    ),
    (
        jump("angle1", 4.0, 25.0),
        jump("amps2", 0.4, 2.0),
        jump("motor3", 5.0, 20.0),
        creep("amps4", 0.6, 2.0),
        creep("motor1", 8.0, 30.0),
        stick("amps3", 0.6),
        stick("angle4", 15.0),
        stick("amps1", 0.5, dither=True),
        hiss("amps2", 0.5, 2.5),
        hiss("angle3", 1.0, 8.0),
        contact("motor2", 150.0),
        contact("angle2", -360.0),
        swap("amps1", "amps4", 0.8),
        machine(
            "unknown program", "regime", "angle1 angle2 angle3 angle4", 1.0, 1.0, tail=15, where=("amps3", -25.0, 25.0)
        ),
        machine("gear of axis three wears", "noise", "amps3", 0.6, 3.0, form="ramp", lasts=(120, 500), tail=20),
        machine("arm rubs a fence", "", "amps1", 0.8, 4.0),
        machine("belt of axis four slackens", "", "angle4", 0.15, 0.6),
    ),
)


def data_hall(run: Run) -> None:
    """A data hall of four rows of racks, a row a minute: jobs come and go, chilled water cools, weather, nights."""
    rng, hour = run.rng, (run.t / 60.0) % 24.0
    outside = 13.0 + run.wander(2600, 3.0) - 5.0 * np.cos((hour - 3.0) * np.pi / 12.0)
    powers = np.zeros((run.rows, 4))
    for i in range(4):
        jobs = run.spell(3, 210, (60, 900))
        idle, busy = 38.0 + 4.0 * i, np.array([0.0, 22.0, 48.0])
        powers[:, i] = lag(idle + busy[jobs] + 6.0 * np.sin((hour - 9.0) * np.pi / 12.0), 2) * np.exp(
            run.wander(6, 0.02)
        )
    powers += run.upset["all racks at full power"][:, None]
    total = powers.sum(axis=1)
    weak, bypass = run.upset["chilled water weak"], run.upset["cold aisle door open"]
    fans = np.clip(30.0 + 0.17 * lag(total, 5), 30.0, 100.0)
    read = run.meter("supply")
    opened, real = np.zeros(run.rows), np.zeros(run.rows)
    heat, wet, lack, blow = total.tolist(), outside.tolist(), weak.tolist(), fans.tolist()
    water = 7.5 + np.clip(outside - 16.0, 0.0, 20.0) * 0.12 + run.wander(40, 0.15)
    cold = water.tolist()
    warm, sums, shown = 19.0, 45.0, 19.0
    for t in range(len(wet)):
        wrong = shown - 19.0
        sums = min(max(sums + 0.25 * wrong, 2.0), 100.0)
        valve = min(max(sums + 3.0 * wrong, 2.0), 100.0)
        back = 19.0 + (warm - 19.0) + heat[t] / (0.33 * blow[t])
        grip = 0.0155 * valve * (1.0 - lack[t]) * (60.0 / blow[t]) ** 0.4
        warm += 0.2 * (back - grip / (1.0 + 0.5 * grip) * (back - cold[t]) - warm)
        shown = read(t, warm)
        opened[t], real[t] = valve, warm
    returns = real + total / (0.33 * fans)
    for i in range(4):
        share = 0.04 + 0.015 * i + 0.22 * bypass * (i == 2)
        run.show(f"power{i + 1}", powers[:, i])
        run.show(f"inlet{i + 1}", lag(real + share * (returns - real) * (powers[:, i] / 70.0), 3))
    run.show("return", lag(returns, 4))
    run.show("fans", fans)
    run.show("valve", opened)
    run.show("water", water)
    run.show("flow", 0.6 + 31.0 * (opened / 100.0) ** 1.3 * (1.0 - weak) * np.exp(0.01 * rng.normal(size=run.rows)))


DATA_HALL = Machine(
    "data hall",
    "jobs at random, closed loop, weather",
    data_hall,
    (
        *(Probe(f"power{i} kW", 0.4, 0.1, 0.0, 0.0, 200.0) for i in (1, 2, 3, 4)),
        *(Probe(f"inlet{i} degC", 0.12, 0.25, 0.0, -20.0, 80.0) for i in (1, 2, 3, 4)),
        Probe("supply degC", 0.08, 0.1, 0.0, -20.0, 80.0),
        Probe("return degC", 0.12, 0.1, 0.0, -20.0, 80.0),
        Probe("fans %", 0.2, 0.5, 0.0, 0.0, 100.0),
        Probe("valve %", 0.3, 0.5, 0.0, 0.0, 100.0),
        Probe("water degC", 0.1, 0.1, 4, -20.0, 80.0),
        Probe("flow l/s", 0.12, 0.05, 5, 0.0, 60.0),
    ),
    (
        jump("inlet1", 1.0, 6.0),
        factor("power2", 0.1, 0.5),
        jump("supply", 0.8, 4.0, tail=40),
        creep("inlet4", 2.0, 8.0),
        creep("water", 1.0, 5.0),
        stick("power3", 8.0),
        stick("return", 1.0, dither=True),
        hiss("flow", 0.8, 4.0),
        hiss("power1", 4.0, 20.0),
        contact("inlet2", 80.0),
        contact("fans", 0.0),
        swap("power1", "power4", 10.0),
        sluggish("flow", 20.0, 60.0, 1.0),
        machine("all racks at full power", "regime", "power1 power2 power3 power4", 25.0, 50.0, tail=40),
        machine("cold aisle door open", "", "inlet3", 0.5, 1.5, tail=15),
        machine("chilled water weak", "drift", "flow valve", 0.3, 0.6, form="ramp", lasts=(120, 400), tail=40),
    ),
)

ROOMS = (BASIN, DECANTER, VENTILATION, ROBOT, DATA_HALL)
