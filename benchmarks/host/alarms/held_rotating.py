"""Held-out plants that turn or move: a gearbox bench, a milling machine, a hoist, a paper line, a pump."""

from __future__ import annotations

import numpy as np

from benchmarks.host.alarms.held_kit import (
    Plant,
    Sensor,
    Sim,
    creep,
    gain,
    lag,
    noisy,
    offset,
    process,
    stuck,
)


def gearbox_bench(sim: Sim) -> None:
    """A test bench for six-speed gearboxes.

    An electric motor drives the input shaft, a brake loads the output shaft.  The bench runs one gear for a while, and
    steps through load points in it.  Ratios tie the two speeds, ratio and efficiency the two torques.  The oil warms up
    with the losses, and its pressure falls when it is hot.
    """
    rng, rows = sim.rng, sim.rows
    gear = sim.regimes(6, (80, 1200))
    ratio = np.array([4.12, 2.84, 2.03, 1.55, 1.21, 1.0])[gear]
    alien = sim.upset["crawler gear"] > 0
    ratio = np.where(alien, 6.9, ratio)
    point = np.repeat(rng.integers(0, 3, rows // 40 + 1), 40)[:rows]
    speed = lag(np.array([1400.0, 2100.0, 2900.0])[point], 4) + sim.wander(15, 12.0)
    torque = lag(np.array([90.0, 150.0, 60.0])[point] * (1.0 + 0.05 * gear), 3) + sim.wander(8, 2.0)
    slip = 1.0 - sim.upset["slipping clutch"]
    share = 0.965 - 0.006 * (np.minimum(ratio, 4.0) - 1.0)
    losses = speed * torque / 9550.0 * (1.0 - share + 0.15 * (1.0 - slip))
    oil = 48.0 + lag(losses * 22.0, 250) + sim.wander(4000, 1.5)
    sim.record("n_in", speed)
    sim.record("n_out", speed / ratio * slip)
    sim.record("t_in", torque)
    sim.record("t_out", torque * ratio * share)
    sim.record("oil", oil)
    sim.record("pressure", 2.2 + speed / 1450.0 - 0.022 * (oil - 60.0))
    tone = np.array([0.9, 0.7, 0.8, 0.5, 0.6, 0.35])[gear] * (1.0 + 6.0 * sim.upset["slipping clutch"])
    tone = np.where(alien, 1.5, tone)
    sim.record("vib", tone * (speed / 2000.0) ** 2 * np.exp(0.12 * rng.normal(size=rows)))
    sim.record("axial", 0.2 + tone * 0.6 * torque / 100.0 * np.exp(0.1 * rng.normal(size=rows)))


GEARBOX = Plant(
    "gearbox bench",
    "six gears, three loads",
    gearbox_bench,
    (
        Sensor("n_in rpm", 3.0, 1.0),
        Sensor("n_out rpm", 2.0, 1.0),
        Sensor("t_in Nm", 0.8),
        Sensor("t_out Nm", 1.5),
        Sensor("oil degC", 0.1, 0.1),
        Sensor("pressure bar", 0.02, 0.01),
        Sensor("vib g", 0.02, 0.0, 4),
        Sensor("axial g", 0.03, 0.0, 4),
    ),
    (
        offset("n_out", 25.0, 140.0),
        gain("t_out", 0.06, 0.3),
        creep("t_in", 15.0, 50.0),
        creep("oil", 4.0, 15.0),
        stuck("n_out", 60.0, 60.0),
        stuck("oil", 0.3, 0.3, least=90),
        noisy("pressure", 0.12, 0.5),
        noisy("t_out", 12.0, 50.0),
        offset("pressure", 0.2, 0.8),
        gain("axial", 0.8, 1.6, sign=1),
        process("crawler gear", "regime", "n_out t_out vib axial", 1.0, 1.0),
        process("slipping clutch", "", "n_out vib axial oil", 0.05, 0.15, tail=40),
    ),
)


def milling_machine(sim: Sim) -> None:
    """A milling centre that makes three parts, with eight tools each.

    A part is a fixed list of operations of 12 to 50 seconds; an operation has a spindle speed, a feed and a cutting
    load.  A batch of one part runs for some thousand seconds.  Tools wear slowly, are changed, and cut easily again.
    """
    rng, rows = sim.rng, sim.rows
    part = sim.regimes(3, (600, 4000))
    fixed = np.random.default_rng(712)
    tables = []
    for _ in range(3):
        lengths = fixed.integers(12, 50, 8)
        values = np.column_stack(
            [
                fixed.choice([0.0, 1800.0, 3200.0, 5400.0, 8000.0], 8, p=[0.1, 0.25, 0.25, 0.25, 0.15]),
                fixed.uniform(0.2, 1.0, 8),
                fixed.uniform(-1.0, 1.0, 8),
                fixed.uniform(-1.0, 1.0, 8),
            ]
        )
        tables.append(np.repeat(values, lengths, axis=0))
    steps, at = np.zeros((rows, 4)), 0
    for t in range(rows):
        at = 0 if t and part[t] != part[t - 1] else at + 1
        table = tables[part[t]]
        steps[t] = table[at % len(table)]
    alien = sim.upset["unknown part"] > 0
    wave = np.where(np.arange(rows) % 34 < 17, 1.0, -1.0)
    steps[alien] = np.column_stack([np.full(rows, 6600.0), 1.15 + 0.1 * wave, 1.3 * wave, np.full(rows, 1.4)])[alien]
    age = (np.arange(rows) + int(rng.integers(1700))) % 1700 / 1700.0
    speed = lag(steps[:, 0], 1.5)
    broken = sim.upset["broken tool"]
    load = lag(steps[:, 1] * (steps[:, 0] > 0), 1.2) * (1.0 + 0.15 * age) * (1.0 - broken)
    load = load * np.exp(0.04 * rng.normal(size=rows))
    current = 2.1 + speed * 0.0005 + 14.0 * load
    warm = 24.0 + lag(0.35 * current + speed * 0.0011, 400) + 0.8 * np.sin(np.arange(rows) / 4300.0)
    flow = lag(np.where(steps[:, 0] > 0, 9.0, 0.6), 2.0) + sim.wander(60, 0.1)
    sim.record("speed", speed)
    sim.record("spindle", current)
    sim.record("x_axis", 1.2 + 3.2 * lag(np.abs(steps[:, 2]), 1.5) + 1.1 * load)
    sim.record("z_axis", 2.6 + 2.4 * lag(steps[:, 3], 1.5) + 1.6 * load)
    shake = 0.15 + 1.3 * load * (0.6 + speed / 9000.0) + 0.9 * broken * (speed > 500)
    sim.record("vib", shake * np.exp(0.13 * rng.normal(size=rows)))
    sim.record("coolant", flow)
    sim.record("head", warm)
    sim.record("bus", 586.0 - 0.45 * current + sim.wander(90, 1.0))


MILLING = Plant(
    "milling machine",
    "three programs of eight short operations",
    milling_machine,
    (
        Sensor("speed rpm", 4.0, 1.0),
        Sensor("spindle A", 0.12, 0.1),
        Sensor("x_axis A", 0.1, 0.0, 5),
        Sensor("z_axis A", 0.1, 0.0, 5),
        Sensor("vib mm/s", 0.03),
        Sensor("coolant l/min", 0.1, 0.1),
        Sensor("head degC", 0.05, 0.1),
        Sensor("bus V", 0.4, 1.0),
    ),
    (
        offset("spindle", 2.0, 8.0),
        gain("x_axis", 0.3, 1.0, sign=1),
        offset("coolant", 1.0, 4.0, sign=-1, where=("coolant", 6.0, 12.0)),
        creep("bus", 10.0, 40.0),
        creep("z_axis", 1.5, 6.0),
        creep("head", 4.0, 12.0),
        stuck("coolant", 2.0, 2.0),
        stuck("spindle", 2.0, 2.0),
        stuck("speed", 900.0, 900.0),
        noisy("bus", 4.0, 16.0),
        noisy("x_axis", 1.0, 4.0),
        process("unknown part", "regime", "speed spindle x_axis z_axis vib", 1.0, 1.0, tail=4),
        process("broken tool", "", "vib spindle bus", 0.5, 0.95, tail=4),
    ),
)


def mine_hoist(sim: Sim) -> None:
    """A mine hoist that serves five levels.

    A trip accelerates, runs, brakes and pauses; the cage is empty or carries one of several loads.  The motor current
    follows load and acceleration, and gives power back when a load goes down.  The brake warms up with each stop.
    """
    rng, rows = sim.rng, sim.rows
    levels = np.array([0.0, 85.0, 140.0, 230.0, 310.0])
    here, height, load = 0, [], []
    while len(height) < rows:
        there = int(rng.choice(np.delete(np.arange(5), here)))
        mass = float(rng.choice([0.0, 12.0, 25.0, 40.0], p=[0.35, 0.2, 0.25, 0.2]) * rng.uniform(0.95, 1.05))
        way = levels[there] - levels[here]
        ride = int(8 + abs(way) / 6.0)
        path = (1.0 - np.cos(np.pi * np.arange(1, ride + 1) / ride)) / 2.0
        wait = int(rng.integers(8, 30))
        height += [levels[here]] * wait + list(levels[here] + way * path)
        load += [mass] * (wait + ride)
        here = there
    place, mass = np.array(height[:rows]), lag(np.array(load[:rows]), 1.5)
    alien = sim.upset["shaft inspection"] > 0
    slow = 170.0 + 60.0 * np.sin(np.arange(rows) / 45.0)
    speed = np.gradient(np.where(alien, slow, place))
    speed = np.clip(np.where(alien, np.gradient(slow), np.gradient(place)), -15.0, 15.0)
    place, mass = np.where(alien, slow, place), np.where(alien, 6.0, mass)
    moving = np.clip(np.abs(speed) / 0.5, 0.0, 1.0)
    push = moving * (26.0 - 4.2 * speed - 1.9 * mass * np.sign(speed) + 60.0 * np.gradient(speed) * (1 + mass / 40.0))
    push = push + moving * sim.upset["dragging brake"] * 40.0
    heat = np.abs(speed) * np.where(np.gradient(np.abs(speed)) < 0, 1.0, 0.0) * (1.0 + mass / 40.0)
    brake = 22.0 + lag(heat * 9.0 + 90.0 * sim.upset["dragging brake"] * moving, 45) + sim.wander(3000, 2.0)
    sim.record("depth", place)
    sim.record("speed", speed)
    sim.record("motor", push)
    sim.record("cell", 38.0 + mass + 1.2 * np.gradient(speed) + 0.012 * place)
    sim.record("brake", brake)


HOIST = Plant(
    "mine hoist",
    "irregular trips between five levels",
    mine_hoist,
    (
        Sensor("depth m", 0.1, 0.1),
        Sensor("speed m/s", 0.05),
        Sensor("motor A", 1.5, 0.0, 4),
        Sensor("cell kN", 0.3, 0.1),
        Sensor("brake degC", 0.2, 0.5),
    ),
    (
        stuck("depth", 40.0, 40.0),
        stuck("speed", 2.5, 2.5),
        stuck("cell", 4.0, 4.0),
        offset("cell", 4.0, 20.0, sign=-1),
        offset("speed", 0.6, 2.5),
        gain("motor", 0.5, 1.2, sign=1),
        creep("cell", 6.0, 22.0, sign=-1),
        creep("depth", 18.0, 70.0),
        offset("brake", 8.0, 30.0),
        noisy("speed", 0.5, 2.0),
        noisy("cell", 2.0, 8.0),
        noisy("depth", 4.0, 20.0),
        process("shaft inspection", "regime", "speed depth motor cell", 1.0, 1.0, tail=2),
        process("dragging brake", "", "brake motor", 0.5, 1.5, least=80, tail=90),
    ),
)


def paper_unwinder(sim: Sim) -> None:
    """The unwinder of a paper line, with a dancer roll.

    A roll of paper shrinks from 1.2 m to 0.25 m, and is then spliced to a new one.  A controller reads the dancer and
    sets the brake; brake torque is web tension times the radius.  The line runs at five speeds, for three papers.
    """
    rng, rows = sim.rng, sim.rows
    recipe = sim.regimes(7, (150, 2500))
    speed = lag(np.array([3.0, 4.5, 4.5, 6.0, 6.0, 7.5, 2.0])[recipe], 12) + sim.wander(30, 0.02)
    pull = lag(np.array([220.0, 220.0, 300.0, 300.0, 380.0, 380.0, 150.0])[recipe], 8)
    alien = lag((sim.upset["double web"] > 0).astype(float), 6)
    pull, speed = pull + alien * 180.0, speed - alien * 0.3 * speed
    thick, gust = 2.2e-5, sim.wander(6, 6.0)
    once = sim.wander(3, 1.0)
    bore, radius, arm, brake, total = 0.125, 0.25 + 0.1 * rng.uniform(), 0.0, 60.0, 60.0
    drag = sim.upset["dry bearing"]
    for t in range(rows):
        radius -= thick * speed[t] * 3.0 / (6.28 * radius)
        radius = 0.6 if radius < bore else radius
        force = brake / radius + gust[t] + (25.0 + 3.0 * once[t]) * drag[t]
        arm += 0.25 * ((pull[t] - force) / 40.0 - 0.35 * arm)
        seen = sim.read(t, 1, arm * 10.0) / 10.0
        total += 0.9 * radius * seen
        brake += 0.5 * (total + 14.0 * radius * seen - brake)
        sim.read(t, 0, speed[t])
        sim.read(t, 2, force)
        sim.read(t, 3, radius * 2000.0)
        sim.read(t, 4, brake)
        sim.read(t, 5, 4.0 + 0.016 * force * speed[t])


UNWINDER = Plant(
    "paper unwinder",
    "seven recipes, shrinking roll, closed loop",
    paper_unwinder,
    (
        Sensor("line m/s", 0.01),
        Sensor("dancer mm", 0.15, 0.1),
        Sensor("tension N", 3.0),
        Sensor("roll mm", 2.0, 1.0),
        Sensor("brake Nm", 0.6, 0.1),
        Sensor("drive kW", 0.25, 0.1),
    ),
    (
        offset("tension", 20.0, 100.0),
        gain("drive", 0.12, 0.5),
        creep("roll", 60.0, 250.0, least=120),
        creep("tension", 35.0, 120.0),
        stuck("dancer", 0.3, 0.3, loop=True, tail=30),
        stuck("tension", 5.0, 5.0),
        stuck("brake", 1.5, 1.5),
        noisy("roll", 12.0, 50.0),
        noisy("drive", 1.5, 6.0),
        offset("line", 0.25, 1.2),
        offset("brake", 10.0, 40.0),
        process("double web", "regime", "tension line brake drive", 1.0, 1.0, tail=60),
        process("dry bearing", "", "brake tension", 1.3, 4.0, tail=30),
    ),
)


def rain_sump(sim: Sim) -> None:
    """A sump of a sewer with one pump: its level and the pump's current.

    The pump starts at 1.8 m and stops at 0.6 m.  Inflow has a day, and showers with heavy tails.  At high level the
    pump has less head and draws more.  Only the two sensors exist, and the controller reads the level.
    """
    rng, rows = sim.rng, sim.rows
    time = np.arange(rows)
    showers = (rng.uniform(size=rows) < 0.0015) * rng.pareto(2.5, rows) * 0.25
    shower = np.convolve(np.minimum(showers, 1.5), np.exp(-np.arange(200) / 50.0))[:rows]
    inflow = 0.020 + 0.009 * np.sin(time * 2 * np.pi / 960.0) + 0.025 * np.minimum(shower, 1.0)
    inflow = inflow * np.exp(0.1 * rng.normal(size=rows))
    flood, clog = sim.upset["pump locked out"] > 0, sim.upset["clogged impeller"]
    level, runs, current = 1.0, False, 0.0
    for t in range(rows):
        seen = sim.read(t, 0, level)
        runs = True if seen > 1.8 else False if seen < 0.6 else runs
        on = runs and not flood[t]
        current += 0.7 * ((7.0 + 0.9 * level - 2.4 * clog[t] if on else 0.0) - current)
        level += inflow[t] - (0.085 * (1.0 - 0.55 * clog[t]) if on else 0.0)
        level = min(max(level, 0.1), 3.4)
        sim.read(t, 1, current)


SUMP = Plant(
    "rain sump",
    "two sensors, two-point control, showers",
    rain_sump,
    (Sensor("level m", 0.008, 0.01), Sensor("current A", 0.08, 0.1)),
    (
        offset("current", 1.2, 4.0, sign=1),
        gain("current", 0.2, 0.5, where=("current", 4.0, 12.0)),
        creep("current", 1.5, 5.0, sign=1),
        stuck("level", 0.15, 0.15, loop=True, tail=40),
        stuck("current", 2.5, 2.5),
        noisy("level", 0.06, 0.25, loop=True),
        noisy("current", 0.5, 2.0),
        offset("level", 0.9, 1.3, sign=-1, loop=True, tail=30),
        creep("level", 1.0, 1.5, sign=-1, loop=True, tail=30, least=120),
        process("pump locked out", "regime", "level current", 1.0, 1.0, least=90, tail=45),
        process("clogged impeller", "", "current level", 0.5, 1.0, tail=10),
    ),
)

ROTATING = (GEARBOX, MILLING, HOIST, UNWINDER, SUMP)
