"""Held-out machines that drive or burn: tram, fuel cell, steam boiler, film extruder."""

from __future__ import annotations

import numpy as np

from benchmarks.host.alarms.held_kit import lag
from benchmarks.host.alarms.held_second_kit import (
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


def tram(run: Run) -> None:
    """A tram's drive, a row a second: depot, stops, acceleration, cruising, recuperative braking, hills, passengers."""
    rng = run.rng
    depot = run.spell(6, 150, (400, 3000), (0.3, 1, 1, 1, 1, 1)) == 0
    aim, limits = np.zeros(run.rows), (6.0, 9.0, 12.5, 15.5)
    at = 0
    while at < run.rows:
        ride, halt = int(rng.uniform(35, 95)), int(18 + rng.exponential(9))
        aim[at : at + ride] = limits[int(rng.integers(4))]
        at += ride + halt
    aim[depot] = 0.0
    load = np.repeat(rng.uniform(0.0, 1.0, run.rows // 90 + 1), 90)[: run.rows]
    hill = run.wander(25, 0.012)
    push, speed, dead = np.zeros(run.rows), np.zeros(run.rows), run.upset["dragging brake"].tolist()
    v, force, aims = 0.0, 0.0, aim.tolist()
    for t, (grade, people) in enumerate(zip(hill.tolist(), load.tolist(), strict=True)):
        want = min(max(0.6 * (aims[t] - v), -1.25), 1.1) if aims[t] or v > 0.3 else 0.0
        mass = 38.0 + 13.0 * people
        resist = 0.004 * mass * 9.81 + 0.012 * v * v + dead[t] * 20.0 if v > 0.2 else 0.0
        slope = grade * mass * 9.81 if v > 0.2 else 0.0
        force = 0.35 * force + 0.65 * (mass * want + resist + slope)
        v = max(v + (force - resist - slope) / mass, 0.0) if aims[t] or v > 0.5 else 0.0
        push[t], speed[t] = force if v > 0.0 else 0.0, v
    halted = (speed < 0.1).astype(float)
    power = push * speed / np.where(push > 0, 0.87, 1.15)  # kW
    power = power + np.where(depot, 4.0, 14.0)
    volts = (
        735.0 + run.wander(60, 9.0) - np.where(run.upset["sagging line"] > 0, run.upset["sagging line"], 0.035) * power
    )
    run.show("speed", speed * 3.6)
    run.show("torque", push * 6.2)
    run.show("line", volts)
    run.show("current", 1000.0 * power / volts)
    run.show("brake", lag(0.2 + 3.4 * halted + 2.5 * run.upset["dragging brake"], 1.2))
    air = 17.0 + run.wander(4000, 2.5)
    warm = lag((push * 6.2) ** 2 * 2.4e-4, 260, 3.0)
    run.show("motor", air + warm)
    chill = 1.0 + 1.2 * lag(run.upset["inverter fan dead"], 20)
    run.show("inverter", air + 6.0 + lag(np.abs(power) * 0.18, 70, 8.0) * chill + 12.0 * (chill - 1.0))
    run.show(
        "axle",
        (0.25 + (speed / 9.0) ** 1.5 * (1.0 + run.upset["flat wheel"])) * np.exp(0.2 * rng.normal(size=run.rows)),
    )


MOVING = ("speed", 8.0, 70.0)
TRAM = Machine(
    "tram drive",
    "stops and rides at random, depot",
    tram,
    (
        Probe("speed km/h", 0.15, 0.1, 0.0, 0.0, 90.0),
        Probe("torque Nm", 4.0, 1.0, 0.0, -900.0, 900.0),
        Probe("line V", 2.0, 1.0, 5, 0.0, 1000.0),
        Probe("current A", 4.0, 1.0, 0.0, -1500.0, 1500.0),
        Probe("brake bar", 0.02, 0.02, 0.0, 0.0, 10.0),
        Probe("motor degC", 0.3, 0.5, 0.0, -40.0, 200.0),
        Probe("inverter degC", 0.3, 0.5, 0.0, -40.0, 150.0),
        Probe("axle g", 0.02, 0.01, 5, 0.0, 20.0),
    ),
    (
        factor("speed", 0.12, 0.5),
        jump("torque", 30.0, 150.0),
        factor("current", 0.2, 0.6),
        creep("line", 30.0, 120.0),
        creep("motor", 12.0, 40.0),
        stick("speed", 12.0, lasts=(40, 200)),
        stick("inverter", 2.0, dither=True, lasts=(60, 250)),
        hiss("current", 25.0, 120.0),
        contact("line", 0.0),
        contact("brake", 10.0),
        sluggish("torque", 8.0, 25.0, 60.0),
        machine("dragging brake", "", "brake torque", 0.3, 1.0, tail=160),
        machine("sagging line", "", "line", 0.12, 0.35, lasts=(80, 300), where=("inverter", 33.0, 150.0)),
        machine(
            "inverter fan dead", "", "inverter", 0.3, 1.0, lasts=(100, 400), tail=80, where=("inverter", 33.0, 150.0)
        ),
        machine("flat wheel", "regime", "axle", 1.5, 4.0, moves=0.8),
    ),
)


def fuel_cell(run: Run) -> None:
    """A fuel-cell stack of two halves with its cooling loop, a row each five seconds; purges each eighty rows."""
    rng = run.rng
    state = run.spell(5, 180, (90, 1100))
    amps = lag(np.array([0.0, 60.0, 130.0, 210.0, 290.0])[state], 4) * (1.0 + run.wander(30, 0.012))
    amps = np.where(run.upset["overload"] > 0, lag(np.full(run.rows, 365.0), 3), amps)
    aged = 1.0 - 0.012 * run.t / run.rows
    purge = lag((run.t % 80 < 2).astype(float), 2)
    cool, heat = run.upset["coolant pump weak"].tolist(), (amps * 0.155).tolist()
    read = run.meter("t_out")
    fan, flow = np.zeros(run.rows), (4.0 + 0.045 * amps) * (1.0 - run.upset["coolant pump weak"])
    hot, cold, valve, sums, shown = 45.0, 40.0, 30.0, 30.0, 45.0
    cold_side = np.zeros(run.rows)
    for t, around in enumerate((19.0 + run.wander(3500, 2.0)).tolist()):
        wrong = shown - 66.0
        sums = min(max(sums + 0.02 * wrong, 0.0), 100.0)
        valve = min(max(sums + 3.0 * wrong, 0.0), 100.0)
        stream = (4.0 + heat[t] * 0.29) * (1.0 - cool[t])
        hot += (heat[t] - 1.4 * stream * (hot - cold) - 0.03 * (hot - around)) / 25.0
        cold += (1.4 * stream * (hot - cold) - 0.0222 * valve * (cold - around) - 0.02 * (cold - around)) / 25.0
        shown = read(t, hot)
        fan[t], cold_side[t] = valve, cold
    density = amps / 200.0 + 1e-3
    cell = 0.97 * aged - 0.045 * np.log(1.0 + density * 40.0) - 0.11 * density - 0.004 * np.exp(1.6 * density)
    cell = cell + 0.00006 * lag(amps, 200)
    drop = run.upset["half one flooded"] * (0.4 + 0.6 * (run.wander(4, 1.0) > 0)) * (amps > 20.0)
    dry = run.upset["membrane dries"] * amps / 290.0
    one, two = 48.0 * (cell - drop + 0.006 * purge - dry), 48.0 * (cell * 0.994 + 0.006 * purge - dry)
    run.show("current", amps)
    run.show("stack", one + two)
    run.show("half1", one)
    run.show("half2", two)
    run.show("t_in", cold_side)
    leak = run.upset["hydrogen leaks"]
    run.show("hydrogen", 1.55 - 0.0006 * amps - 0.28 * purge - leak + run.wander(20, 0.006))
    run.show("fan", fan)
    run.show("coolant", flow)
    run.show("supply", 3.0 + 0.7 * amps * np.exp(0.02 * rng.normal(size=run.rows)) + 420.0 * leak)


FUEL_CELL = Machine(
    "fuel cell",
    "five loads, a polarisation curve, closed loop",
    fuel_cell,
    (
        Probe("current A", 0.6, 0.25, 0.0, 0.0, 500.0),
        Probe("stack V", 0.08, 0.05, 0.0, 0.0, 120.0),
        Probe("half1 V", 0.05, 0.025, 0.0, 0.0, 60.0),
        Probe("half2 V", 0.05, 0.025, 0.0, 0.0, 60.0),
        Probe("t_out degC", 0.12, 0.1, 0.0, -40.0, 120.0),
        Probe("t_in degC", 0.12, 0.1, 0.0, -40.0, 120.0),
        Probe("hydrogen bar", 0.006, 0.005, 0.0, 0.0, 4.0),
        Probe("supply l/min", 1.5, 0.5, 5, 0.0, 400.0),
        Probe("fan %", 0.2, 0.5, 0.0, 0.0, 100.0),
        Probe("coolant l/min", 0.1, 0.05, 0.0, 0.0, 40.0),
    ),
    (
        factor("current", 0.04, 0.2),
        jump("half2", 0.3, 1.5),
        jump("hydrogen", 0.04, 0.2),
        creep("stack", 1.0, 5.0),
        creep("coolant", 1.0, 4.0),
        stick("t_in", 0.8, dither=True),
        stick("current", 20.0),
        hiss("supply", 10.0, 40.0),
        hiss("half1", 0.3, 1.5),
        contact("coolant", 0.0),
        swap("half1", "half2", 0.2, where=("current", 40.0, 320.0)),
        machine("overload", "regime", "current stack supply", 1.0, 1.0, tail=220, lasts=(40, 160)),
        machine("half one flooded", "", "half1 stack", 0.02, 0.12, where=("current", 50.0, 400.0)),
        machine(
            "membrane dries",
            "drift",
            "half1 half2 stack",
            0.04,
            0.12,
            form="ramp",
            lasts=(150, 500),
            where=("current", 50.0, 400.0),
        ),
        machine("coolant pump weak", "", "coolant t_in", 0.25, 0.6, tail=100),
        machine("hydrogen leaks", "", "hydrogen supply", 0.03, 0.15),
    ),
)


def boiler(run: Run) -> None:
    """A steam boiler, a row each two seconds: drum level in a three-element loop, steam pressure in a firing loop."""
    rng = run.rng
    state = run.spell(4, 230, (200, 1500))
    draw = (
        lag(np.array([3.0, 6.0, 9.0, 11.5])[state], 30) * np.exp(run.wander(12, 0.025)) + run.upset["steam pipe bursts"]
    )
    read_level, read_steam, read_bar = run.meter("level"), run.meter("steam"), run.meter("bar")
    tube, lazy, draws = (run.upset["tube leaks"].tolist(), run.upset["feed valve hunts"].tolist(), draw.tolist())
    feed, fuel, value = np.zeros(run.rows), np.zeros(run.rows), np.zeros(run.rows)
    level, water, bar, fire, sums, firing = 0.0, 6.0, 10.0, 50.0, 0.0, 50.0
    for t in range(run.rows):
        flow = draws[t]
        bar += 0.004 * (fire * 0.14 - flow) + 0.0004 * (10.0 - bar)
        bar = min(max(bar, 4.0), 12.5)
        swell = 30.0 * (10.0 - bar)  # bubbles lift the level when the pressure falls
        shown, out, pressure = read_level(t, level + swell), read_steam(t, flow), read_bar(t, bar)
        sums = min(max(sums - 0.0008 * shown, -4.0), 4.0)
        want = out + sums - 0.035 * shown + lazy[t] * (1.0 if (t // 9) % 2 else -1.0)
        water += (min(max(want, 0.0), 15.0) - water) / 4.0
        level += 0.5 * (water - flow - tube[t])
        level = min(max(level, -250.0), 250.0)
        firing = min(max(firing + 0.25 * (10.0 - pressure), -40.0), 60.0)
        fire += (min(max(firing + 5.5 * out * 0.9 + 40.0 * (10.0 - pressure), 8.0), 100.0) - fire) / 8.0
        feed[t], fuel[t], value[t] = water, fire, bar
    run.show("feed", feed)
    run.show("valve", 100.0 * (feed / 15.0) ** 0.6)
    gas = fuel * 6.4
    lean = 3.2 + 2.5 * np.exp(-fuel / 25.0) + run.wander(80, 0.12) + run.upset["air leaks in"]
    run.show("gas", gas)
    run.show("air", gas * 10.0 / (1.0 - lean / 21.0) * np.exp(0.008 * rng.normal(size=run.rows)))
    run.show("oxygen", lag(lean, 4))
    soot = run.upset["soot on the tubes"]
    run.show("stack", 128.0 + lag(fuel * 0.95, 45) + lag(soot, 10) + 3.0 * (lean - 3.2) + run.wander(900, 1.2))
    run.show("drum", 184.0 + 9.2 * (value - 10.0))


BOILER = Machine(
    "steam boiler",
    "four loads, two coupled loops",
    boiler,
    (
        Probe("bar bar", 0.02, 0.01, 0.0, 0.0, 16.0),
        Probe("steam t/h", 0.06, 0.02, 0.0, 0.0, 20.0),
        Probe("feed t/h", 0.08, 0.02, 0.0, 0.0, 20.0),
        Probe("level mm", 4.0, 1.0, 0.0, -300.0, 300.0),
        Probe("valve %", 0.3, 0.5, 0.0, 0.0, 100.0),
        Probe("gas m3/h", 2.0, 1.0, 0.0, 0.0, 1000.0),
        Probe("air m3/h", 25.0, 10.0, 0.0, 0.0, 12000.0),
        Probe("oxygen %", 0.06, 0.05, 5, 0.0, 21.0),
        Probe("stack degC", 0.5, 0.5, 0.0, 0.0, 400.0),
        Probe("drum degC", 0.3, 0.25, 0.0, 0.0, 300.0),
    ),
    (
        factor("steam", 0.06, 0.25, tail=250),
        jump("level", 15.0, 80.0, tail=250),
        jump("drum", 2.0, 10.0),
        factor("gas", 0.08, 0.3),
        creep("oxygen", 0.8, 3.0),
        creep("feed", 0.8, 3.0),
        stick("stack", 5.0, dither=True),
        stick("feed", 0.6),
        hiss("level", 12.0, 60.0, tail=60),
        hiss("air", 250.0, 1000.0),
        contact("oxygen", 21.0),
        contact("drum", 300.0),
        sluggish("air", 15.0, 50.0, 300.0),
        machine("steam pipe bursts", "regime", "steam bar gas", 4.0, 7.0, lasts=(40, 120), tail=300),
        machine("tube leaks", "", "feed steam", 0.5, 2.0, lasts=(80, 250), tail=200),
        machine("feed valve hunts", "", "feed valve", 0.8, 3.0, tail=40),
        machine("air leaks in", "jump", "oxygen", 0.6, 2.5, tail=15),
        machine("soot on the tubes", "drift", "stack", 10.0, 40.0, form="ramp", lasts=(150, 600), tail=40),
    ),
)


def extruder(run: Run) -> None:
    """A film extruder, a row each five seconds: four heated zones in closed loops, three products, standstill at random."""
    rng = run.rng
    state = run.spell(4, 240, (300, 2500), (0.35, 1, 1, 1))
    rpm = lag(np.array([0.0, 62.0, 80.0, 98.0])[state], 14) * (1.0 + run.wander(20, 0.003))
    aims = np.array([[150, 165, 175, 180], [168, 185, 198, 205], [175, 196, 210, 216], [180, 202, 220, 226]], float)
    wrong_grade = run.upset["wrong resin"]
    zone = [lag(aims[state, i], 30).tolist() for i in range(4)]
    turn, dead = (rpm / 80.0).tolist(), run.upset["heater of zone three burns out"].tolist()
    room = (24.0 + run.wander(3500, 1.5)).tolist()
    read = [run.meter(f"zone{i + 1}") for i in range(4)]
    heat, temp, sums = np.zeros((run.rows, 4)), [150.0, 165.0, 175.0, 180.0], [30.0] * 4
    shown, true = temp.copy(), np.zeros((run.rows, 4))
    for t in range(run.rows):
        for i in range(4):
            wrong = zone[i][t] - shown[i]
            sums[i] = min(max(sums[i] + 0.035 * wrong, 0.0), 100.0)
            duty = min(max(sums[i] + 2.2 * wrong, 0.0), 100.0)
            power = duty * (1.0 - dead[t]) if i == 2 else duty
            before = temp[i - 1] if i else room[t]
            pull = (0.05 if i else 0.012) * turn[t] * (before - temp[i])
            temp[i] += 0.05 * power * 0.55 + 0.05 * pull + 0.1 * turn[t] - 0.0062 * (temp[i] - room[t])
            shown[i] = read[i](t, temp[i])
            heat[t, i], true[t, i] = duty, temp[i]
    melt = lag(0.3 * true[:, 2] + 0.7 * true[:, 3] + 0.06 * rpm, 12)
    thick = np.exp(-0.011 * (melt - 205.0)) * (1.0 + wrong_grade) * np.exp(run.wander(200, 0.015))
    screen = 1.0 + run.upset["screen clogs"]
    head = 48.0 * (np.maximum(rpm, 0.0) / 80.0) ** 0.42 * thick**0.6 * screen
    ripple = np.exp((0.008 + 0.05 * run.upset["feed surges"]) * np.sin(run.t * 0.55) * (rpm > 5))
    run.show("duty1", heat[:, 0])
    run.show("duty3", heat[:, 2])
    run.show("screw", rpm)
    run.show(
        "torque", (4.0 + 46.0 * thick * (rpm / 80.0) ** 0.35 + 0.12 * head * (screen - 1.0) * 3.0) * ripple * (rpm > 1)
    )
    run.show("pressure", 2.0 + 3.2 * head * ripple)
    run.show("melt", melt)
    out = rpm * 1.31 * (1.0 - 0.12 * (screen - 1.0)) * ripple**1.5 * np.exp(0.008 * rng.normal(size=run.rows))
    run.show("rate", lag(out, 2))


RUNNING = ("screw", 50.0, 120.0)
EXTRUDER = Machine(
    "film extruder",
    "three products and standstill, four loops",
    extruder,
    (
        *(Probe(f"zone{i} degC", 0.15, 0.1, 0.0, -50.0, 400.0) for i in (1, 2, 3, 4)),
        Probe("duty1 %", 0.1, 0.5, 0.0, 0.0, 100.0),
        Probe("duty3 %", 0.1, 0.5, 0.0, 0.0, 100.0),
        Probe("screw rpm", 0.15, 0.1, 0.0, 0.0, 150.0),
        Probe("torque %", 0.5, 0.1, 0.0, 0.0, 120.0),
        Probe("pressure bar", 0.8, 0.5, 5, 0.0, 400.0),
        Probe("melt degC", 0.25, 0.1, 0.0, -50.0, 400.0),
        Probe("rate kg/h", 0.5, 0.2, 0.0, 0.0, 250.0),
    ),
    (
        jump("zone2", 2.0, 15.0, tail=150),
        jump("melt", 2.0, 10.0),
        factor("rate", 0.06, 0.3, where=RUNNING),
        creep("pressure", 20.0, 80.0),
        creep("zone4 melt", 5.0, 20.0, tail=150),
        stick("melt", 1.0, dither=True),
        stick("torque", 4.0),
        hiss("pressure", 6.0, 25.0),
        hiss("zone1", 1.0, 6.0, tail=40),
        contact("zone3", 400.0, tail=200, lasts=(20, 60)),
        sluggish("pressure", 25.0, 80.0, 12.0),
        machine(
            "heater of zone three burns out", "", "zone3 duty3", 0.6, 1.0, tail=250, lasts=(40, 150), where=RUNNING
        ),
        machine("wrong resin", "regime", "torque pressure", 0.25, 0.6, where=RUNNING),
        machine("screen clogs", "drift", "pressure", 0.2, 0.6, form="ramp", lasts=(150, 600), where=RUNNING),
        machine("feed surges", "", "pressure torque rate", 0.8, 3.0, where=RUNNING),
    ),
)

LINES = (TRAM, FUEL_CELL, BOILER, EXTRUDER)
