"""Held-out plants that make or hand on energy: an engine, a solar field, a heating substation, a wind turbine."""

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


def gas_engine(sim: Sim) -> None:
    """A six-cylinder gas engine that makes heat and power from biogas.

    It runs at five loads or stands still, as the grid asks.  A controller reads the power and moves the throttle.  Each
    cylinder has an exhaust thermocouple.  The methane share of the gas wanders over the days; fuel and mixture follow.
    """
    rng, rows = sim.rng, sim.rows
    mode = sim.regimes(6, (120, 3000), (0.6, 1.0, 1.0, 1.0, 1.0, 1.4))
    goal = lag(np.array([0.0, 200.0, 250.0, 300.0, 350.0, 400.0])[mode], 6)
    methane = 54.0 + sim.wander(2500, 2.0) + sim.wander(100, 0.4)
    hall = 24.0 + 4.0 * np.sin(np.arange(rows) * 2 * np.pi / 2880.0) + sim.wander(800, 0.8)
    spread = np.random.default_rng(5).normal(size=6) * 9.0
    each = np.column_stack([sim.wander(40, 2.0) for _ in range(6)])
    common, shake = sim.wander(25, 3.0), np.exp(0.1 * rng.normal(size=rows))
    propane, misfire = sim.upset["propane operation"] > 0, sim.upset["misfire of cylinder 4"]
    worn = sim.upset["worn oil pump"]
    power, boost, held, cool, oil, pot = 200.0, 1.0, 1.0, 78.0, 80.0, [440.0] * 6
    for t in range(rows):
        runs = goal[t] > 20.0
        seen = sim.read(t, 0, power)
        held = min(max(held + 0.0006 * (goal[t] - seen), 0.25), 3.2) if runs else 0.25
        boost += 0.5 * (min(max(held + 0.0012 * (goal[t] - seen), 0.25), 3.4) - boost)
        rich = 50.0 / methane[t] if not propane[t] else 0.82
        whole = 170.0 * max(boost - 0.2, 0.0) * (1.0 - misfire[t] / 6.0) * (methane[t] / 54.0) ** 0.3
        power += 0.5 * ((whole if runs else 0.0) - power)
        share = power / 400.0
        fuel = (12.0 + 0.235 * power) * rich * 54.0 / 50.0 * (1.0 + 0.1 * misfire[t]) if runs else 0.0
        cool += ((74.0 + 9.0 * share if runs else hall[t] + 28.0) - cool) / 45.0
        oil += ((76.0 + 12.0 * share + 0.3 * (hall[t] - 24.0) + 4.0 * worn[t] if runs else hall[t] + 25.0) - oil) / 60.0
        press = (4.9 - 0.022 * (oil - 80.0) + 0.15 * share) * (1.0 - 0.12 * worn[t]) if runs else 0.0
        for c in range(6):
            hot = 385.0 + 110.0 * share + spread[c] + each[t, c] + common[t] + (45.0 if propane[t] else 0.0)
            hot -= 90.0 * misfire[t] if c == 3 else 0.0
            pot[c] += 0.3 * ((hot if runs else 60.0) - pot[c])
            sim.read(t, 3 + c, pot[c])
        rough = (1.1 + 1.9 * share + 1.6 * misfire[t] if runs else 0.05) * shake[t]
        mix = (1.62 - 0.06 * share - 0.004 * (methane[t] - 54.0) - (0.14 if propane[t] else 0.0)) if runs else 2.2
        back = 62.0 + 0.35 * (cool - 75.0) if runs else cool - 2.0
        values = (None, boost, mix, *[None] * 6, back, cool, oil, press, methane[t] * (not propane[t]), fuel, rough)
        for c, value in enumerate(values):
            if value is not None:
                sim.read(t, c, value)


ENGINE = Plant(
    "gas engine",
    "five loads and standstill, closed loop",
    gas_engine,
    (
        Sensor("power kW", 1.5, 1.0),
        Sensor("boost bar", 0.008, 0.01),
        Sensor("lambda -", 0.006, 0.001),
        *(Sensor(f"exhaust{c} degC", 1.5, 1.0) for c in range(1, 7)),
        Sensor("return degC", 0.15, 0.1),
        Sensor("coolant degC", 0.15, 0.1),
        Sensor("oil degC", 0.15, 0.1),
        Sensor("oil_pressure bar", 0.03, 0.01, 5),
        Sensor("methane %", 0.15, 0.1),
        Sensor("fuel m3/h", 0.8, 0.1),
        Sensor("vib mm/s", 0.03),
    ),
    (
        offset("power boost fuel", 40.0, 110.0, loop=True, tail=20, where=("power", 180.0, 420.0)),
        offset("exhaust2", 22.0, 90.0),
        creep("exhaust5", 35.0, 120.0),
        stuck("exhaust6", 5.0, 5.0),
        noisy("exhaust1", 12.0, 50.0),
        offset("return", 3.0, 14.0),
        offset("coolant", 4.0, 15.0),
        creep("oil_pressure", 0.5, 2.0, sign=-1, where=("oil_pressure", 3.0, 7.0)),
        creep("lambda", 0.08, 0.3),
        gain("fuel", 0.15, 0.6, where=("fuel", 30.0, 150.0)),
        stuck("methane", 0.35, 0.35),
        stuck("fuel", 1.2, 1.2),
        noisy("oil_pressure", 0.2, 0.9),
        noisy("methane", 1.2, 6.0),
        process(
            "propane operation",
            "regime",
            "methane fuel lambda exhaust1 exhaust2 exhaust3 exhaust4 exhaust5 exhaust6",
            1.0,
            1.0,
            where=("power", 180.0, 420.0),
            tail=15,
        ),
        process(
            "misfire of cylinder 4",
            "",
            "exhaust4 vib boost fuel",
            0.4,
            1.0,
            where=("power", 180.0, 420.0),
            tail=15,
        ),
        process("worn oil pump", "", "oil_pressure oil", 1.0, 3.5, tail=60, where=("power", 180.0, 420.0)),
    ),
)


def solar_field(sim: Sim) -> None:
    """A solar field with one inverter, over some weeks of two-minute rows.

    Days are clear, broken or grey; clouds move the irradiance fast.  The inverter holds the best voltage, which falls
    when the modules are hot, and cuts off at 50 kW.  At night all is quiet, but for the temperatures.
    """
    rng, rows = sim.rng, sim.rows
    time = np.arange(rows) + 170.0
    hour = time % 720 / 30.0
    season = time / 720.0
    # The sky of each day; the first three days show one of each kind.
    sky = np.concatenate([rng.permutation(3), rng.integers(0, 3, 40)])[(time // 720).astype(int)]
    top = np.clip(np.sin((hour - 5.5) / 14.5 * np.pi), 0.0, None) * (hour > 5.5) * (hour < 20.0)
    cloud = np.clip(0.5 + 0.9 * sim.wander(6, 0.6), 0.0, 1.0)
    broken = 1.0 - 0.75 * (cloud > 0.75) * np.minimum(1.0, (cloud - 0.75) * 8.0)
    grey = np.clip(0.28 + sim.wander(30, 0.08), 0.1, 0.6)
    sun = 930.0 * top**1.15 * np.choose(sky, [np.full(rows, 0.98), broken, grey])
    sun = lag(sun, 0.8, 0.0)
    air = 14.0 + 6.0 * np.sin((hour - 9.5) / 24.0 * 2 * np.pi) + 0.12 * season + sim.wander(700, 1.5)
    gust = np.clip(2.5 + sim.wander(25, 1.2), 0.3, None)
    module = air + lag(0.034 * sun / (0.7 + 0.12 * gust), 5.0)
    shade, soil = sim.upset["lost string"], sim.upset["blown fan"]
    alien = sim.upset["grid curtailment"] > 0
    volt = (640.0 - 2.1 * (module - 25.0) + 14.0 * np.log(np.maximum(sun, 5.0) / 500.0)) * (sun > 15.0)
    amp = 0.0925 * sun * (1.0 - shade) * (sun > 15.0)
    limit = np.where(alien, 14.0, 50.0)
    over = np.maximum(volt * amp / 1000.0 / limit, 1.0)
    volt, amp = volt * (1.0 + 0.12 * (1.0 - 1.0 / over)), amp / over / (1.0 + 0.12 * (1.0 - 1.0 / over))
    power = np.minimum(volt * amp / 1000.0 * 0.97, limit)
    sim.record("sun", sun)
    sim.record("module", module)
    sim.record("dc_volt", volt)
    sim.record("dc_amp", amp)
    sim.record("ac", power)
    sim.record("inverter", air + 6.0 + lag(power * (0.55 + 0.4 * soil), 12.0))
    sim.record("air", air)


SOLAR = Plant(
    "solar field",
    "days, nights and clouds",
    solar_field,
    (
        Sensor("sun W/m2", 4.0, 1.0),
        Sensor("module degC", 0.2, 0.1),
        Sensor("dc_volt V", 1.5, 1.0),
        Sensor("dc_amp A", 0.25, 0.1),
        Sensor("ac kW", 0.15, 0.1),
        Sensor("inverter degC", 0.15, 0.1),
        Sensor("air degC", 0.1, 0.1),
    ),
    (
        gain("sun", 0.2, 0.6, where=("sun", 250.0, 1000.0)),
        offset("module", 6.0, 25.0),
        offset("dc_volt", 35.0, 160.0, where=("sun", 60.0, 1000.0)),
        creep("air", 6.0, 25.0),
        creep("inverter", 8.0, 35.0),
        creep("dc_amp", 8.0, 35.0, sign=1),
        stuck("sun", 80.0, 80.0),
        stuck("dc_amp", 8.0, 8.0),
        stuck("module", 2.0, 2.0),
        noisy("inverter", 1.5, 8.0),
        noisy("air", 1.0, 6.0),
        noisy("dc_volt", 12.0, 60.0),
        process("grid curtailment", "regime", "ac dc_amp dc_volt", 1.0, 1.0, where=("ac", 24.0, 60.0)),
        process("lost string", "", "dc_amp ac", 0.17, 0.5, where=("ac", 12.0, 48.0)),
        process("blown fan", "", "inverter", 0.8, 2.0, where=("ac", 15.0, 60.0), tail=40),
    ),
)


def heating_substation(sim: Sim) -> None:
    """A substation of a district heating net, for one block of flats, in autumn.

    A valve controller reads the temperature to the flats and holds a curve that depends on the weather; nights are set
    lower.  Hot water taps draw now and then.  It gets colder with the weeks, so normal values creep.
    """
    rng, rows = sim.rng, sim.rows
    time = np.arange(rows)
    hour = time % 480 / 20.0
    weather = 9.0 - 9.0 * time / rows + 3.0 * np.sin((hour - 9.0) / 24 * 2 * np.pi) + sim.wander(900, 2.0)
    net = 84.0 - 0.9 * (weather - 9.0) + sim.wander(50, 0.7)
    tap = (rng.uniform(size=rows) < np.where((hour > 6) & (hour < 22), 0.06, 0.008)) * rng.gamma(1.5, 0.5, rows)
    tap = np.minimum(np.convolve(tap, [0.5, 1.0, 0.6, 0.3])[:rows], 3.0)
    night, pump = (hour < 5.5) | (hour > 22.0), 1.0 + sim.wander(15, 0.02)
    dry, pump = sim.upset["screed drying"] > 0, pump * (1.0 - sim.upset["fouled exchanger"])
    flat, valve, held, goal, back = 48.0, 30.0, 30.0, 48.0, 36.0
    for t in range(rows):
        want = 52.0 - 1.1 * (weather[t] - 5.0) - (8.0 if night[t] else 0.0) + (24.0 if dry[t] else 0.0)
        goal += 0.1 * (want - goal)
        seen = sim.read(t, 0, flat)
        held = min(max(held + 0.12 * (goal - seen), 2.0), 98.0)
        ask = min(max(held + 1.2 * (goal - seen), 0.0), 100.0)
        valve += 0.35 * (ask - valve)
        flow = 0.9 * (valve / 100.0) ** 1.2 + 0.10 * tap[t]
        back += 0.15 * (flat - 11.0 - 0.06 * valve + 1.5 * tap[t] * -1.0 - back)
        flat += 0.2 * (back + 9.0 * flow / 0.3 * (net[t] - back) / 40.0 * pump[t] - 0.18 * (back - 20.0) - flat + 4.0)
        sim.read(t, 1, net[t])
        sim.read(t, 2, back)
        sim.read(t, 3, valve)
        sim.read(t, 4, flow)


SUBSTATION = Plant(
    "heating substation",
    "day and night, falling weather, closed loop",
    heating_substation,
    (
        Sensor("flats degC", 0.15, 0.1),
        Sensor("net degC", 0.15, 0.1),
        Sensor("return degC", 0.15, 0.1),
        Sensor("valve %", 0.3, 0.5),
        Sensor("flow kg/s", 0.006, 0.01),
    ),
    (
        offset("flats valve return flow", 7.0, 18.0, loop=True, tail=40),
        offset("return", 3.0, 14.0),
        offset("net", 6.0, 25.0),
        gain("flow", 0.5, 1.5, sign=1),
        creep("return", 5.0, 20.0),
        creep("net", 9.0, 35.0),
        creep("valve", 18.0, 50.0, sign=1),
        stuck("valve", 1.5, 1.5),
        stuck("flats valve", 0.5, 0.5, loop=True, tail=40),
        stuck("flow", 0.04, 0.04),
        noisy("net", 2.0, 9.0),
        noisy("return", 1.2, 6.0),
        noisy("valve", 3.0, 14.0),
        process("screed drying", "regime", "flats return valve flow", 1.0, 1.0, least=70, tail=60),
        process("fouled exchanger", "", "valve flow return", 0.16, 0.45, tail=30),
    ),
)


def wind_turbine(sim: Sim) -> None:
    """A wind turbine with pitch control, over two weeks of one-minute means.

    Below 3.5 m/s it idles, then its speed follows the wind, and above 12 m/s the blades pitch to hold 12 rpm.  The
    pitch controller reads the generator's speed.  Gearbox, bearing and winding warm up with the power.
    """
    rows, time = sim.rows, np.arange(sim.rows)
    calm = np.interp(time, np.linspace(0, rows, 41), sim.rng.permutation(np.linspace(3.5, 16.0, 41)))
    calm[:2000] = 9.5 - 6.5 * np.cos(time[:2000] * 2 * np.pi / 1000.0)
    wind = np.clip(calm + sim.wander(40, 0.9) + sim.wander(4, 0.5), 0.5, 24.0)
    ambient = 9.0 + 5.0 * np.sin(time * 2 * np.pi / 1440.0) + sim.wander(6000, 2.0)
    vane, sway = sim.wander(25, 5.0), np.exp(0.25 * sim.rng.normal(size=rows))
    stop = sim.upset["curtailed"] > 0
    ice, heat = sim.upset["ice on blades"], sim.upset["clogged cooler"]
    rotor, pitch, held, box, bearing, winding = 6.0, 0.0, 0.0, 45.0, 35.0, 50.0
    for t in range(rows):
        v = wind[t]
        catch = v * (1.0 - 0.22 * ice[t])
        goal = 0.4 if v < 3.5 else min(max(1.18 * catch, 5.5), 20.0)
        goal = max(goal - 0.55 * pitch, 0.3)
        rotor += 0.25 * (goal - rotor)
        seen = sim.read(t, 2, rotor * 97.0) / 97.0
        limit = 8.0 if stop[t] else 12.0
        held = min(max(held + 0.25 * (seen - limit), 0.0), 25.0)
        pitch += 0.6 * (min(max(held + 0.5 * (seen - limit), 0.0), 28.0) - pitch)
        power = 0.0 if rotor < 5.0 else 2000.0 * min(rotor / 12.0, 1.02) ** 2.8
        box += (ambient[t] + 22.0 + power * (0.016 + 0.008 * heat[t]) - box) / 70.0
        bearing += (ambient[t] + 10.0 + power * 0.010 + rotor * 0.8 - bearing) / 150.0
        winding += (ambient[t] + 20.0 + power * 0.034 - winding) / 60.0
        values = (v, rotor, None, power, pitch, box, bearing, winding, ambient[t] + 7.0 + power * 0.002, ambient[t])
        for c, value in enumerate(values):
            if value is not None:
                sim.read(t, c, value)
        sim.read(t, 10, vane[t])
        sim.read(t, 11, (0.02 + 0.0035 * v + 0.003 * rotor + 0.09 * ice[t] * (rotor > 3)) * sway[t])


WIND = Plant(
    "wind turbine",
    "idle, partial and full load, closed loop",
    wind_turbine,
    (
        Sensor("wind m/s", 0.25, 0.1),
        Sensor("rotor rpm", 0.04, 0.01),
        Sensor("generator rpm", 3.0, 1.0),
        Sensor("power kW", 12.0, 1.0),
        Sensor("pitch deg", 0.05, 0.1),
        Sensor("gearbox degC", 0.15, 0.1),
        Sensor("bearing degC", 0.15, 0.1),
        Sensor("winding degC", 0.3, 0.1),
        Sensor("nacelle degC", 0.15, 0.1),
        Sensor("ambient degC", 0.1, 0.1),
        Sensor("vane deg", 0.5),
        Sensor("tower m/s2", 0.004),
    ),
    (
        offset("generator pitch power rotor", 60.0, 250.0, loop=True, tail=30, where=("rotor", 5.0, 14.0)),
        gain("power", 0.12, 0.45, where=("power", 300.0, 2600.0)),
        offset("wind", 2.5, 7.0, sign=-1, where=("wind", 7.5, 25.0)),
        offset("winding", 8.0, 30.0),
        creep("bearing", 5.0, 18.0),
        creep("rotor", 0.8, 3.0, where=("rotor", 5.0, 14.0)),
        creep("gearbox", 6.0, 20.0, sign=1),
        stuck("wind", 0.7, 0.7),
        stuck("power", 150.0, 150.0),
        stuck("vane", 3.0, 3.0),
        stuck("winding", 2.0, 2.0),
        noisy("nacelle", 1.0, 5.0),
        noisy("pitch", 1.2, 5.0),
        noisy("vane", 14.0, 40.0),
        process("curtailed", "regime", "rotor generator power pitch", 1.0, 1.0, where=("wind", 9.0, 25.0), tail=30),
        process("ice on blades", "", "tower rotor power", 0.8, 2.0, where=("wind", 5.0, 10.0), tail=10),
        process("clogged cooler", "drift", "gearbox", 1.0, 2.0, where=("power", 700.0, 2600.0), least=90, tail=100),
    ),
)

ENERGY = (ENGINE, SOLAR, SUBSTATION, WIND)
