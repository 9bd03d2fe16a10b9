"""Held-out machines of works and waters: weir, weighing hopper, air compressor, transformer, conveyor."""

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
    stick,
    swap,
)


def weir(run: Run) -> None:
    """A brook over a sharp-crested weir, a row each five minutes.  Flow is level to the power of 1.5; rain is rare."""
    rng, rain = run.rng, np.zeros(run.rows)
    starts, sizes = [150, 700, 1250], [0.45, 1.0, 0.2]  # a flood belongs to the first rows
    while starts[-1] < run.rows:
        starts.append(max(starts[-1], SOUND_FIRST) + int(rng.exponential(520)) + 30)
        sizes.append(min(0.1 * (1.0 + rng.pareto(1.3)), 1.0))
    for start, size in zip(starts, sizes, strict=True):
        long = int(rng.uniform(10, 60))
        rain[start : start + long] += size * 150_000.0 / long
    flow = 190.0 * np.exp(run.wander(5000, 0.08)) + lag(lag(rain, 15), 110)
    level = 1000.0 * (flow / 1000.0 / (1.84 * 3.0)) ** (2.0 / 3.0)
    level = np.hypot(level, run.upset["backwater"]) + run.upset["branches on the crest"]
    flow = flow - run.upset["leak below the weir"] * np.minimum(flow, 300.0)
    run.show("level", level * np.exp(0.006 * rng.normal(size=run.rows)))
    run.show("flow", flow * np.exp(0.03 * rng.standard_t(6, run.rows)))


WEIR = Machine(
    "weir",
    "a curve, floods, heavy tails",
    weir,
    (Probe("level mm", 1.0, 1.0, 5, 0.0, 800.0), Probe("flow l/s", 4.0, 1.0, 0.0, 0.0, 3000.0)),
    (
        jump("level", 10.0, 60.0),
        factor("flow", 0.1, 0.4),
        creep("level", 20.0, 80.0),
        creep("flow", 60.0, 200.0),
        stick("level", 6.0, lasts=(60, 300)),
        stick("flow", 15.0, dither=True, lasts=(60, 300)),
        hiss("level", 8.0, 30.0),
        hiss("flow", 40.0, 150.0),
        contact("level", 0.0),
        machine("backwater", "regime", "level", 120.0, 250.0),
        machine("branches on the crest", "drift", "level", 20.0, 70.0, lasts=(100, 500), form="ramp"),
        machine("leak below the weir", "", "flow", 0.2, 0.5, lasts=(60, 250)),
    ),
)


def hopper(run: Run) -> None:
    """A weighing hopper for three recipes, a row a second: coarse feed, fine feed, settle, dump, wait."""
    recipe = run.spell(3, 280, (300, 1500)).tolist()
    dense = np.exp(run.wander(900, 0.03) + 0.05 * run.rng.normal(size=run.rows)).tolist()
    pause = run.rng.integers(3, 14, run.rows).tolist()
    read, opening, amps = run.meter("weight"), np.zeros(run.rows), np.zeros(run.rows)
    alien, bridge, leak = (run.upset[k].tolist() for k in ("unknown recipe", "material bridges", "leaking gate"))
    weight, state, left, shown, long = 0.0, 0, 5, 0.0, 0
    for t in range(run.rows):
        target = 310.0 if alien[t] else (110.0, 170.0, 235.0)[recipe[t]]
        long += 1
        if state == 1 and (shown > 0.85 * target or long > 80):
            state, long = 2, 0
        elif state == 2 and (shown > target - 2.0 or long > 60):
            state, left = 3, 6
        elif state == 3 and left <= 0:
            state, left = 4, 15
        elif state == 4 and left <= 0:
            state, left = 0, pause[t]
        elif state == 0 and left <= 0:
            state, long = 1, 0
        left -= 1
        feed = (0.0, 8.5, 1.7, 0.0, 0.0)[state] * dense[t]
        weight += feed * (1.0 - bridge[t]) - leak[t] * (weight > 5.0)
        weight = weight * 0.68 if state == 4 else weight
        shown = read(t, weight)
        opening[t] = (0.0, 100.0, 24.0, 0.0, 0.0)[state]
        amps[t] = 1.4 + 0.62 * feed * (1.0 + 0.35 * bridge[t]) / dense[t] ** 0.5
    run.show("gate", lag(opening, 0.7))
    run.show("feeder", lag(amps, 0.8) * np.exp(0.03 * run.rng.normal(size=run.rows)))


HOPPER = Machine(
    "weighing hopper",
    "short cycles of three recipes",
    hopper,
    (
        Probe("weight kg", 0.25, 0.1, 4, -20.0, 400.0),
        Probe("gate %", 0.3, 0.5, 0.0, 0.0, 100.0),
        Probe("feeder A", 0.04, 0.02, 0.0, 0.0, 12.0),
    ),
    (
        jump("weight", 6.0, 40.0, tail=8),
        factor("weight", 0.12, 0.4, tail=8),
        jump("feeder", 0.4, 1.5),
        creep("feeder", 0.8, 2.5),
        creep("gate", 8.0, 25.0, sign=1),
        stick("gate", 20.0, lasts=(60, 250)),
        stick("feeder", 1.0, dither=True, lasts=(60, 250)),
        hiss("weight", 3.0, 15.0),
        contact("gate", 0.0, where=("gate", 20.0, 100.0), lasts=(20, 40)),
        contact("feeder", 12.0),
        machine("unknown recipe", "regime", "weight", 1.0, 1.0, lasts=(120, 300), tail=30),
        machine("material bridges", "", "feeder weight", 0.5, 0.9, tail=30),
        machine("leaking gate", "", "weight", 0.8, 3.0, tail=20),
    ),
)


def compressor(run: Run) -> None:
    """A screw compressor, a row each two seconds: it loads at 6.8 bar, unloads at 7.5 bar, and stops when idle."""
    shift = run.spell(3, 280, (500, 2500))
    need = lag(np.array([1.6, 5.0, 8.6])[shift], 25) * np.exp(run.wander(8, 0.1) + run.wander(150, 0.08))
    need = (need + run.upset["burst hose"]).tolist()
    hall = 24.0 + run.wander(2500, 1.2)
    stuck_valve, blocked = run.upset["unloader sticks"].tolist(), run.upset["blocked intake filter"].tolist()
    read = run.meter("net")
    load, flow, true = np.zeros(run.rows), np.zeros(run.rows), np.zeros(run.rows)
    p, on, idle, shown = 6.9, 1, 0, 6.9
    for t in range(run.rows):
        if shown < 6.8 or (stuck_valve[t] and on == 2):
            on, idle = 2, 0
        elif shown > 7.5 and on == 2:
            on, idle = 1, 0
        idle += 1
        if on == 1 and idle > 30:
            on = 0
        made = 10.0 * (1.0 - 0.02 * (p - 7.0)) * (1.0 - 0.5 * blocked[t]) if on == 2 else 0.0
        p += (made - need[t]) / 90.0
        p = min(max(p, 3.0), 8.4)  # the safety valve
        shown = read(t, p)
        load[t], flow[t], true[t] = on, made, p
    watts = np.where(load == 2, 63.0 + 6.5 * (true - 7.1), np.where(load == 1, 25.0, 0.0))
    watts = watts * (1.0 + 0.06 * run.upset["blocked intake filter"])
    heat = np.where(load == 2, 58.0, np.where(load == 1, 40.0, 12.0)) * (1.0 + 0.5 * run.upset["oil cooler clogged"])
    kick = np.where((load > 0) & (np.roll(load, 1) == 0), 45.0, 0.0)
    run.show("motor", lag(watts + kick, 0.8) * np.exp(0.012 * run.rng.standard_t(5, run.rows)))
    run.show("oil", hall + lag(heat, 90, 50.0) + 0.12 * lag(watts, 8))
    run.show("intake", 4.0 + lag(flow**2, 2.0) * (0.24 + 0.9 * run.upset["blocked intake filter"]))


COMPRESSOR = Machine(
    "air compressor",
    "two-point control, three shifts",
    compressor,
    (
        Probe("net bar", 0.012, 0.01, 0.0, 0.0, 10.0),
        Probe("motor A", 0.4, 0.25, 0.0, 0.0, 150.0),
        Probe("oil degC", 0.15, 0.25, 0.0, -40.0, 150.0),
        Probe("intake mbar", 0.5, 0.2, 5, -5.0, 100.0),
    ),
    (
        jump("net", 0.15, 0.8, tail=40),
        factor("motor", 0.15, 0.5),
        jump("oil", 4.0, 20.0),
        creep("oil", 12.0, 35.0),
        creep("intake", 8.0, 25.0, sign=1),
        stick("oil", 1.5, dither=True, lasts=(80, 300)),
        stick("intake", 4.0),
        hiss("motor", 6.0, 25.0),
        hiss("net", 0.08, 0.3),
        contact("oil", 150.0),
        machine("burst hose", "", "net motor", 7.0, 14.0, tail=120),
        machine(
            "unloader sticks", "regime", "net motor", 1.0, 1.0, tail=60, where=("motor", 40.0, 120.0), lasts=(60, 160)
        ),
        machine("blocked intake filter", "drift", "intake", 0.25, 0.6, form="ramp", lasts=(150, 500), tail=60),
        machine("oil cooler clogged", "drift", "oil", 0.3, 0.7, form="rise", lasts=(120, 400), tail=250),
    ),
)


def transformer(run: Run) -> None:
    """A power transformer, a row each ten minutes: days, weeks, weather; fans switch at 52 and 46 degrees of the oil."""
    hour, day = (run.t / 6.0) % 24.0, (run.t // 144) % 7
    shape = 0.62 - 0.2 * np.cos((hour - 3.5) * np.pi / 12.0) + 0.11 * np.cos((hour - 1.0) * np.pi / 6.0)
    share = shape * np.where(day >= 5, 0.72, 1.0) * np.exp(run.wander(30, 0.04) + run.wander(1200, 0.05))
    share = share * (1.0 + run.upset["neighbour's load taken over"])
    air = (
        14.0
        + run.wander(700, 2.5)
        + 3.0 * np.sin(2 * np.pi * run.t / 52_000.0)
        - 4.5 * np.cos((hour - 3.0) * np.pi / 12)
    )
    oil, fan, loss = np.zeros(run.rows), np.zeros(run.rows), (0.12 + share**1.7).tolist()
    rise, on = 20.0, 0.0
    for t, (around, dead) in enumerate(zip(air.tolist(), run.upset["fans fail"].tolist(), strict=True)):
        on = 1.0 if rise + around > 52.0 else 0.0 if rise + around < 46.0 else on
        rise += ((47.0 - 15.0 * on * (1.0 - dead)) * loss[t] - rise) / 16.0
        oil[t], fan[t] = rise + around, on * (1.0 - dead)
    run.show("load", 610.0 * share)
    run.show("air", air)
    run.show("oil", oil)
    run.show("winding", oil + lag(21.0 * share**1.7, 1.0))
    gas = 38.0 + run.wander(3000, 2.5) + 0.05 * (oil - 40.0) + lag(run.upset["partial discharge"], 12)
    run.show("hydrogen", gas)


TRANSFORMER = Machine(
    "power transformer",
    "days, weeks, weather",
    transformer,
    (
        Probe("load A", 2.5, 1.0, 0.0, 0.0, 1200.0),
        Probe("air degC", 0.3, 0.1, 4, -40.0, 80.0),
        Probe("oil degC", 0.2, 0.25, 0.0, -40.0, 150.0),
        Probe("winding degC", 0.3, 0.25, 0.0, -40.0, 180.0),
        Probe("hydrogen ppm", 1.2, 1.0, 5, 0.0, 2000.0),
    ),
    (
        factor("load", 0.1, 0.4),
        jump("winding", 3.0, 12.0),
        jump("air", 4.0, 15.0),
        creep("oil", 6.0, 20.0),
        creep("hydrogen", 8.0, 40.0, sign=1),
        stick("load", 60.0),
        stick("air", 2.0, dither=True),
        hiss("winding", 2.0, 8.0),
        contact("oil", 150.0),
        swap("oil", "winding", 5.0, where=("load", 350.0, 900.0), lasts=(30, 60)),
        machine("fans fail", "", "oil winding", 1.0, 1.0, where=("load", 420.0, 900.0), lasts=(30, 80), tail=60),
        machine("neighbour's load taken over", "regime", "load winding oil", 0.5, 0.9, lasts=(30, 200), tail=60),
        machine("partial discharge", "jump", "hydrogen", 10.0, 60.0, tail=70),
    ),
)


def belt(run: Run) -> None:
    """A quarry's conveyor with two motors, a row each five seconds: standstill, empty, half and full load, in shifts."""
    rng, state = run.rng, run.spell(4, 460, (120, 1600), (0.6, 0.7, 1.5, 1.8))
    creeping = run.upset["inspection speed"] > 0
    speed = lag(np.where(creeping, 0.6, np.where(state > 0, 2.6, 0.0)), 5) * (1.0 + run.wander(40, 0.002))
    heap = lag(np.array([0.0, 0.0, 420.0, 880.0])[state], 9) * np.exp(run.wander(5, 0.08) + run.wander(300, 0.05))
    heap = heap * speed / 2.6
    air = 15.0 + run.wander(3000, 1.2)
    drag = np.where(speed > 0.05, 31.0, 0.0) * (1.0 - 0.006 * (air - 15.0)) + 0.058 * heap
    drag = drag * (1.0 + run.upset["carrying rollers jam"])
    lost = run.upset["coupling of motor two slips"]
    slip = run.upset["belt slips"]
    run.show("speed", speed * (1.0 - slip))
    run.show("motor1", drag * (1.02 + 0.9 * lost) * np.exp(0.02 * rng.normal(size=run.rows)))
    run.show("motor2", drag * (0.98 - 0.9 * lost) * np.exp(0.02 * rng.normal(size=run.rows)))
    run.show("scale", heap * (1.0 - 0.4 * slip))
    hot = lag(drag * 0.32 + 70.0 * run.upset["drum bearing wears"], 70)
    run.show("bearing", air + hot)
    shake = (0.3 + 0.9 * speed / 2.6 + heap / 1600.0) * (1.0 + 4.0 * run.upset["drum bearing wears"])
    run.show("vibration", shake * np.exp(0.14 * rng.normal(size=run.rows)))


BELT = Machine(
    "quarry conveyor",
    "standstill and three loads, shared torque",
    belt,
    (
        Probe("speed m/s", 0.008, 0.01, 0.0, 0.0, 5.0),
        Probe("motor1 A", 0.5, 0.2, 0.0, 0.0, 200.0),
        Probe("motor2 A", 0.5, 0.2, 0.0, 0.0, 200.0),
        Probe("scale t/h", 6.0, 2.0, 5, 0.0, 1500.0),
        Probe("bearing degC", 0.2, 0.1, 0.0, -30.0, 150.0),
        Probe("vibration mm/s", 0.02, 0.01, 0.0, 0.0, 30.0),
    ),
    (
        jump("scale", 40.0, 200.0, sign=1),
        factor("motor2", 0.12, 0.4, where=("speed", 2.0, 3.0)),
        creep("scale", 120.0, 400.0, sign=1),
        creep("bearing", 8.0, 30.0),
        stick("scale", 60.0),
        stick("motor1", 8.0, dither=True),
        hiss("speed", 0.06, 0.4, where=("speed", 2.0, 3.0)),
        contact("speed", 0.0, where=("speed", 2.0, 3.0)),
        machine("inspection speed", "regime", "speed motor1 scale", 1.0, 1.0, tail=120, where=("scale", 150.0, 1500.0)),
        machine("carrying rollers jam", "", "motor1 motor2", 0.12, 0.4, tail=120, where=("speed", 2.0, 3.0)),
        machine("coupling of motor two slips", "", "motor1 motor2", 0.12, 0.6, where=("speed", 2.0, 3.0)),
        machine("belt slips", "", "speed scale", 0.06, 0.3, where=("scale", 150.0, 1500.0)),
        machine(
            "drum bearing wears",
            "drift",
            "vibration bearing",
            0.12,
            0.5,
            lasts=(150, 600),
            form="ramp",
            tail=300,
            where=("speed", 2.0, 3.0),
        ),
    ),
)

MACHINES = (WEIR, HOPPER, COMPRESSOR, TRANSFORMER, BELT)
