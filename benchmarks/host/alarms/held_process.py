"""Held-out plants that heat, cool and mould: a furnace, a reactor, a cold room, a moulding machine."""

from __future__ import annotations

import numpy as np

from benchmarks.host.alarms.held_kit import (
    Plant,
    Sensor,
    Sim,
    creep,
    gain,
    noisy,
    offset,
    process,
    stuck,
)


def belt_furnace(sim: Sim) -> None:
    """A belt furnace with three zones, for six products.

    Each zone has a thermocouple, a heater and a controller that reads that thermocouple; neighbours exchange heat.  A
    spare thermocouple sits in the middle zone.  The belt takes heat away, more when it is full.  A bias of a zone's
    thermocouple shows in the heater power, for the controller makes the reading right.
    """
    rng, rows = sim.rng, sim.rows
    product = sim.regimes(6, (250, 3000))
    goals = np.array(
        [[620, 700, 640], [620, 700, 640], [560, 760, 690], [560, 760, 690], [680, 720, 720], [540, 600, 520.0]]
    )
    belts = np.array([0.8, 1.2, 0.6, 0.9, 1.0, 1.4])
    empty = np.repeat(rng.uniform(size=rows // 45 + 1) < 0.25, 45)[:rows]
    fill = np.where(empty, 0.25, 1.0) * (1.0 + sim.wander(20, 0.04))
    mains = 1.0 + sim.wander(300, 0.015)
    shed, torn = sim.upset["load shedding"] > 0, sim.upset["torn curtain"]
    zone, heat = goals[product[0]].copy().tolist(), [14.0, 14.0, 14.0]
    held, goal, flue, full = list(heat), goals[product[0]].tolist(), 300.0, 0.8
    for t in range(rows):
        want = goals[product[t]]
        belt = belts[product[t]] * (0.35 if shed[t] else 1.0)
        full += 0.2 * (fill[t] - full)
        for z in range(3):
            step = float(want[z]) - (140.0 if shed[t] else 0.0) - goal[z]
            goal[z] += min(max(step, -8.0), 8.0)
            seen = sim.read(t, z, zone[z])
            miss = goal[z] - seen
            held[z] = min(max(held[z] + 0.03 * miss, 0.0), 40.0)
            heat[z] = min(max(held[z] + 0.35 * miss, 0.0), 40.0)
            near = (zone[z - 1] if z else 300.0) + (zone[z + 1] if z < 2 else 250.0 - 900.0 * torn[t])
            loss = 0.016 * (zone[z] - 25.0) + 0.008 * (2.0 * zone[z] - near)
            loss += 0.006 * (zone[z] - 25.0) * belt * full * (1.2, 0.6, 0.3)[z]
            zone[z] += 0.55 * (heat[z] * mains[t] - loss)
            sim.read(t, 3 + z, heat[z])
        flue += 0.15 * (120.0 + 0.25 * sum(zone) / 3.0 + 90.0 * torn[t] * -1.0 - flue)
        sim.read(t, 6, zone[1] - 6.0)
        sim.read(t, 7, belt)
        sim.read(t, 8, flue)


FURNACE = Plant(
    "belt furnace",
    "six products, three closed loops",
    belt_furnace,
    (
        Sensor("zone1 degC", 0.4, 0.1),
        Sensor("zone2 degC", 0.4, 0.1),
        Sensor("zone3 degC", 0.4, 0.1),
        Sensor("heater1 kW", 0.15, 0.1),
        Sensor("heater2 kW", 0.15, 0.1),
        Sensor("heater3 kW", 0.15, 0.1),
        Sensor("spare degC", 0.6, 1.0),
        Sensor("belt m/min", 0.01, 0.01),
        Sensor("flue degC", 1.0, 1.0),
    ),
    (
        offset("zone2 heater2 spare heater1 heater3", 12.0, 40.0, loop=True, tail=40),
        offset("zone1 heater1", 15.0, 50.0, loop=True, tail=40),
        offset("spare", 10.0, 40.0),
        creep("spare", 12.0, 50.0),
        creep("flue", 25.0, 90.0),
        stuck("zone3 heater3", 1.0, 1.0, loop=True, tail=40),
        stuck("heater1", 0.8, 0.8),
        stuck("belt", 0.005, 0.005, least=90),
        noisy("zone2 heater2", 3.0, 12.0, loop=True, tail=20),
        noisy("flue", 7.0, 30.0),
        gain("heater2", 0.25, 0.8),
        creep("heater3", 3.0, 12.0, where=("heater3", 4.0, 40.0)),
        process("load shedding", "regime", "zone2 zone1 zone3 belt heater1 heater2 heater3", 1.0, 1.0, tail=45),
        process("torn curtain", "", "heater3 flue zone3", 0.2, 0.6, tail=40),
    ),
)


def batch_reactor(sim: Sim) -> None:
    """A stirred reactor with a jacket, for four recipes.

    A batch is filled, heated, fed while it reacts, held, cooled and emptied; this takes some 300 to 500 rows of ten
    seconds.  A controller reads the batch temperature and sets the jacket.  The stirrer feels level and viscosity.
    """
    rng, rows = sim.rng, sim.rows
    recipes = [(62.0, 2.4, 0.5, 110), (78.0, 3.0, 0.9, 160), (85.0, 2.0, 0.7, 90), (70.0, 2.7, 1.3, 140)]
    plan, block, kept = [], sim.regimes(4, (900, 4500)), 0
    while len(plan) < rows:
        # The first batches go through all recipes once; later a campaign makes one recipe several times.
        kept = len([1 for step in plan if step[5]])
        recipe = kept if kept < 4 else int(block[len(plan)])
        hot, full, feed, long = recipes[recipe]
        stretch = rng.uniform(0.9, 1.1)
        for phase, lasts in enumerate((35, 80, long, 45, 70, 30)):
            count = int(lasts * stretch)
            plan += [(phase, hot, full, feed, recipe, phase == 0 and i == 0) for i in range(count)]
    alien, foam, foul = sim.upset["cleaning"] > 0, sim.upset["foaming"], sim.upset["runaway"]
    ambient = sim.wander(3000, 1.5)
    level, batch, jacket, held, thick, pool, speed = 0.3, 22.0, 22.0, 0.0, 0.0, 0.0, 40.0
    for t in range(rows):
        phase, hot, full, feed, recipe, _ = plan[t]
        fed = feed if phase == 2 else 0.0
        flow = (full - 0.3) / 32.0 if phase == 0 and level < full else 0.0
        level += flow + fed * 0.001
        if phase == 5:
            level = max(0.3, level - 0.12)
        goal = (22.0, hot, hot + 3.0, hot, 28.0, 25.0)[phase]
        rate = 110.0 if phase in (2, 3) else 85.0 if phase else 30.0
        if alien[t]:
            goal, rate = 52.0, 150.0
        speed += 0.3 * (rate - speed)
        seen = sim.read(t, 0, batch)
        held = min(max(held + 0.02 * (goal - seen), -20.0), 40.0)
        want = min(max(goal + held + 3.0 * (goal - seen), 8.0), 130.0)
        jacket += 0.22 * (want - jacket)
        pool += fed - 0.06 * pool * (1.0 + 0.01 * (batch - 60.0))
        made = 0.06 * max(pool, 0.0) * (1.0 + 1.5 * foul[t])
        batch += (0.14 * (jacket - batch) + 1.6 * made) / max(level, 0.5) - 0.004 * (batch - 21.0 - ambient[t])
        thick += 0.03 * ((2, 3).count(phase) * (0.4 + recipe * 0.25) - thick)
        load = 0.4 + (speed / 100.0) ** 2.4 * level * (1.0 + thick) * (1.0 - 0.45 * foam[t])
        gas = 1.02 + 0.9 * made + 0.01 * max(batch - 25.0, 0.0)
        values = (None, jacket, jacket - 0.12 * (jacket - batch), level + 0.4 * foam[t], speed, load, gas, fed)
        for c, value in enumerate(values):
            if value is not None:
                sim.read(t, c, value)
        sim.read(t, 8, 4.0 * abs(want - jacket) ** 0.5 + 2.0 * (phase in (1, 2, 3, 4)))


REACTOR = Plant(
    "batch reactor",
    "four recipes of six phases, closed loop",
    batch_reactor,
    (
        Sensor("batch degC", 0.1, 0.1),
        Sensor("jacket degC", 0.3, 0.1),
        Sensor("return degC", 0.3, 0.1),
        Sensor("level m", 0.008, 0.01),
        Sensor("stirrer rpm", 0.5, 1.0),
        Sensor("torque kNm", 0.03, 0.01),
        Sensor("pressure bar", 0.01, 0.01),
        Sensor("feed kg/s", 0.01, 0.01),
        Sensor("pump kW", 0.25),
    ),
    (
        offset("batch jacket return", 5.0, 15.0, loop=True, tail=40),
        offset("return", 5.0, 25.0),
        offset("level", 0.25, 1.0),
        gain("torque", 0.3, 1.0, sign=1, where=("torque", 1.2, 12.0)),
        creep("pressure", 0.2, 0.9),
        creep("return", 8.0, 30.0),
        creep("level", 0.35, 1.2),
        stuck("jacket", 5.0, 5.0),
        stuck("level", 0.3, 0.3),
        stuck("torque", 0.5, 0.5),
        noisy("jacket", 3.0, 14.0),
        noisy("stirrer", 4.0, 20.0),
        noisy("pressure", 0.08, 0.4),
        process("cleaning", "regime", "stirrer torque batch jacket", 1.0, 1.0, tail=40),
        process("foaming", "", "level torque", 0.5, 1.2, where=("level", 1.6, 4.0)),
        process("runaway", "", "batch pressure jacket", 1.0, 2.5, where=("feed", 0.3, 2.0), tail=20),
    ),
)


def cold_room(sim: Sim) -> None:
    """A cold room with a two-point controller.

    The compressor starts when the room is too warm and stops when it is cold enough; every 240 rows the coil is
    defrosted.  Doors open by day, the weather changes over the weeks, and deliveries bring in warm goods.
    """
    rng, rows = sim.rng, sim.rows
    time = np.arange(rows)
    day = np.sin(time * 2 * np.pi / 720.0 - 1.6)
    outside = 20.0 + 5.0 * day + 5.0 * np.sin(time * 2 * np.pi / 17000.0) + sim.wander(500, 1.2)
    door = (rng.uniform(size=rows) < np.where(day > 0, 0.04, 0.003)).astype(float) * rng.exponential(1.2, rows)
    goods = (rng.uniform(size=rows) < np.where(day > 0.3, 0.004, 0.0)) * rng.uniform(5, 25, rows)
    alien, short, fan = sim.upset["pull-down"] > 0, sim.upset["low charge"], sim.upset["dirty condenser"]
    room, coil, store, runs, low, high = 3.0, -4.0, 3.0, False, 3.0, 8.0
    for t in range(rows):
        seen = sim.read(t, 0, room)
        shift = -9.0 if alien[t] else 0.0
        if seen > 4.5 + shift:
            runs = True
        elif seen < 2.0 + shift:
            runs = False
        melting = t % 240 < 14
        on = runs and not melting
        pull = (10.5 - 0.06 * (outside[t] - 14.0)) * (1.0 - 0.4 * short[t])
        coil += 0.35 * ((room - pull if on else room + 6.0 if melting else room - 0.5) - coil)
        store += goods[t] * 0.02 + 0.01 * (room - store)
        room += 0.035 * (coil - room) + 0.009 * (outside[t] - room) + 0.3 * door[t] + 0.05 * (store - room)
        low += 0.5 * ((2.2 + 0.09 * coil - 0.5 * short[t] if on else 3.6 + 0.05 * room) - low)
        top = 7.5 + 0.24 * outside[t] + 0.12 * coil + 3.0 * fan[t] if on else 5.0 + 0.1 * outside[t]
        high += 0.4 * (top - high)
        sim.read(t, 1, coil)
        sim.read(t, 2, low)
        sim.read(t, 3, high)
        sim.read(t, 4, 0.4 + (3.0 + 0.42 * high + 0.3 * low if on else 4.2 if melting else 0.0))
        sim.read(t, 5, outside[t])


COLD_ROOM = Plant(
    "cold room",
    "two-point control, defrosting, weather",
    cold_room,
    (
        Sensor("room degC", 0.05, 0.1),
        Sensor("coil degC", 0.1, 0.1),
        Sensor("suction bar", 0.03, 0.01),
        Sensor("discharge bar", 0.06, 0.1),
        Sensor("current A", 0.06, 0.1),
        Sensor("outside degC", 0.1, 0.1),
    ),
    (
        offset("room coil suction", 2.5, 7.0, loop=True, tail=60),
        offset("discharge", 1.5, 5.0),
        offset("suction", 0.4, 1.5),
        gain("current", 0.3, 1.0, sign=1),
        creep("coil", 4.0, 14.0),
        creep("suction", 0.7, 2.5),
        stuck("coil", 2.5, 2.5),
        stuck("discharge", 0.8, 0.8),
        stuck("outside", 0.5, 0.5, least=90),
        noisy("outside", 0.8, 4.0),
        noisy("suction", 0.25, 1.0),
        noisy("current", 0.5, 2.5),
        process("pull-down", "regime", "room coil suction", 1.0, 1.0, least=80, tail=70),
        process("low charge", "", "suction coil room", 0.7, 1.5, tail=20),
        process("dirty condenser", "", "discharge current", 0.6, 1.8, tail=10),
    ),
)


def moulding_machine(sim: Sim) -> None:
    """An injection moulding machine; one row is one shot.

    Eight moulds return every now and then.  After a change the mould warms up for some twenty shots.  The screw wears
    over the months, and each lot of granulate has its own viscosity, which pressure, torque and fill time share.
    """
    rng, rows = sim.rng, sim.rows
    mould = sim.regimes(8, (120, 1800))
    new = np.concatenate([[True], np.diff(mould) != 0])
    age = np.arange(rows) - np.maximum.accumulate(np.where(new, np.arange(rows), 0))
    cold = np.exp(-age / 18.0)
    lots = np.repeat(rng.normal(size=rows // 150 + 1), 150)[:rows]
    thick = 0.5 * lots + sim.wander(60, 0.3) + sim.wander(2, 0.3) + 0.8 * cold
    wear = np.arange(rows) / rows
    fixed = np.random.default_rng(99)
    size, fast = fixed.uniform(25, 180, 8)[mould], fixed.uniform(40, 110, 8)[mould]
    melt = np.array([215.0, 230.0, 280.0, 255.0, 230.0, 215.0, 280.0, 255.0])[mould]
    wall = np.array([35.0, 50.0, 70.0, 90.0, 50.0, 35.0, 90.0, 70.0])[mould]
    cool = fixed.uniform(8, 24, 8)[mould]
    force = np.array([600.0, 900.0, 600.0, 1200.0, 900.0, 1200.0, 600.0, 900.0])[mould]
    alien, valve = sim.upset["trial mould"] > 0, sim.upset["leaking check valve"]
    size, fast = np.where(alien, 215.0, size), np.where(alien, 30.0, fast)
    melt, wall, cool = np.where(alien, 300.0, melt), np.where(alien, 22.0, wall), np.where(alien, 30.0, cool)
    force = np.where(alien, 1450.0, force)
    fill = size / fast * (1.0 + 0.015 * thick)
    peak = 420.0 + 3.2 * fast + 1.4 * size + 45.0 * thick - 0.9 * (melt - 230.0) - 70.0 * valve
    dose = size / (16.0 - 2.0 * wear) * (1.0 + 0.03 * thick) * (1.0 + 0.1 * valve)
    sim.record("fill", fill)
    sim.record("peak", peak)
    sim.record("hold", 0.62 * peak + sim.wander(3, 4.0))
    sim.record("cushion", 6.0 - 0.5 * thick - 3.0 * valve)
    sim.record("dose", dose)
    sim.record("torque", 180.0 + 20.0 * thick - 0.7 * (melt - 230.0) + 12.0 * wear)
    sim.record("melt", melt + 1.2 * thick + sim.wander(10, 0.7))
    sim.record("mould", wall - 0.5 * (wall - 22.0) * cold + sim.wander(12, 0.5))
    sim.record("clamp", force + 0.05 * peak)
    sim.record("cycle", 6.0 + fill + np.maximum(dose, cool) + 3.0 * cold)


MOULDING = Plant(
    "moulding machine",
    "eight moulds, lots of material, wear",
    moulding_machine,
    (
        Sensor("fill s", 0.008, 0.01),
        Sensor("peak bar", 6.0, 1.0, 4),
        Sensor("hold bar", 3.0, 1.0),
        Sensor("cushion mm", 0.12, 0.01, 4),
        Sensor("dose s", 0.06, 0.01),
        Sensor("torque Nm", 2.0, 1.0),
        Sensor("melt degC", 0.4, 0.1),
        Sensor("mould degC", 0.3, 0.1),
        Sensor("clamp kN", 3.0, 1.0),
        Sensor("cycle s", 0.05, 0.01, 3),
    ),
    (
        offset("melt", 8.0, 30.0),
        offset("hold", 45.0, 180.0),
        gain("clamp", 0.06, 0.3),
        offset("mould", 5.0, 20.0),
        creep("torque", 30.0, 110.0),
        creep("mould", 7.0, 30.0),
        creep("cushion", 2.0, 6.0, sign=-1),
        stuck("cushion", 0.3, 0.3),
        stuck("melt", 0.6, 0.6),
        stuck("hold", 12.0, 12.0),
        noisy("clamp", 20.0, 90.0),
        noisy("torque", 14.0, 60.0),
        noisy("mould", 2.5, 12.0),
        process("trial mould", "regime", "melt mould clamp peak fill cycle", 1.0, 1.0),
        process("leaking check valve", "", "cushion peak dose", 0.7, 1.6),
    ),
)


PROCESS = (FURNACE, REACTOR, COLD_ROOM, MOULDING)
