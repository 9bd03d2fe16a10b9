"""Machines with motors, regimes and weather: one regime, several, twelve, lagged dynamics, heavy tails, seasons.

Each function gives the series of its sensors, in the order of the list above it.  ``other`` is a regime that the machine
normally never has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.host.alarms.plants_draws import DAY, Draws, follow, later, plant, wave

Series = Sequence[np.ndarray]

# -------------------------------------------------------------------------------------------------------- one regime


@plant(
    *("induction motor", "one regime", 30_000, "voltage V 0.1 0", "current A 0.01 0", "speed rpm 1 0", "power W 5 0"),
    *("winding °C 0.1", "vibration g 0.0005 0"),
)
def induction_motor(draws: Draws, other: bool) -> Series:
    load = np.clip(0.6 + draws.wander(40, 0.12), 0.1, 1.1) + 0.45 * other
    voltage = 400 + draws.wander(300, 3) + draws.white(0.4) - 30 * other
    slip = 0.04 * load * (400 / voltage) ** 2
    speed = 1500 * (1 - slip) + draws.white(1.0)
    current = 4 + 11 * load * 400 / voltage + draws.white(0.06)
    power = np.sqrt(3) * voltage * current * (0.55 + 0.3 * load) + draws.white(25)
    winding = follow(24 + 55 * load**2, 400) + draws.wander(2000, 1.5) + draws.white(0.15)
    vibration = 0.08 + 0.06 * load + 0.01 * np.abs(draws.white())
    return voltage, current, speed, power, winding, vibration


@plant(
    *("centrifugal pump", "one regime", 32_000, "flow m³/h 0.05 0", "suction Pa 50", "discharge Pa 100"),
    *("current A 0.01 0", "bearing °C 0.1"),
)
def centrifugal_pump(draws: Draws, other: bool) -> Series:
    valve = np.clip(0.55 + draws.wander(80, 0.08), 0.2, 0.9) - 0.38 * other  # almost shut
    flow = 100 * valve / (0.4 + valve) + draws.wander(5, 0.4)
    suction = 102_000 - 5.5 * flow**2 + draws.wander(500, 600) + draws.white(150)
    discharge = suction + 430_000 - 38 * flow**2 + draws.white(800)
    current = 9 + 0.14 * flow + draws.white(0.05)
    bearing = follow(38 + 0.18 * flow + 14 * other, 250) + draws.wander(3000, 1.2) + draws.white(0.1)
    return flow, suction, discharge, current, bearing


@plant("duct fan", "one regime", 26_000, "speed rpm 1 0", "pressure Pa 0.5", "current A 0.005 0")
def duct_fan(draws: Draws, other: bool) -> Series:
    speed = 1180 + draws.wander(30, 45) + 260 * other
    clogged = 1 + draws.wander(4000, 0.03) + 0.25 * other
    pressure = 240 * (speed / 1180) ** 2 * clogged + draws.white(3)
    current = 0.6 + 2.1 * (speed / 1180) ** 3 / clogged + draws.white(0.02)
    return speed + draws.white(1.5), pressure, current


# ---------------------------------------------------------------------------------------------------- several regimes


@plant(
    *("milling spindle", "several regimes", 34_000, "speed rpm 5 0", "torque Nm 0.02", "feed mm/s 0.05 0"),
    *("current A 0.02 0", "vibration g 0.002 0", "coolant l/min 0.02 0", "spindle °C 0.1"),
)
def milling_spindle(draws: Draws, other: bool) -> Series:
    """Idle, roughing, finishing, drilling; the other one: a hard material at low speed."""
    now = draws.visits(4, 150, 450)
    now = np.full(draws.steps, 4) if other else now
    aim = np.array([[0, 0, 0, 0], [4200, 18, 30, 9], [9000, 6, 14, 9], [2600, 11, 3, 14], [1500, 31, 8, 14]])[now]
    speed, torque, feed, coolant = (follow(aim[:, i].astype(float), time) for i, time in enumerate((4, 2, 2, 6)))
    torque = torque * (1 + draws.wander(8, 0.08)) + draws.white(0.08)
    current = 1.2 + torque * (0.2 + speed / 9000) + draws.white(0.15)
    vibration = np.abs(0.02 + 0.004 * torque + speed / 60_000 + 0.01 * draws.white(1 + torque / 10))
    spindle = follow(23 + 0.0016 * speed + 0.5 * torque, 300) + draws.white(0.1)
    return speed + draws.white(6), torque, feed + draws.white(0.1), current, vibration, coolant, spindle


@plant(
    *("conveyor", "several regimes", 30_000, "speed m/s 0.002 0", "current A 0.01 0", "tension N 2 0"),
    "load kg/m 0.1 0",
)
def conveyor(draws: Draws, other: bool) -> Series:
    """Stopped, empty, half full, full; the other one: full and slow, as with a slipping belt."""
    now = draws.visits(4, 100, 350)
    now = np.full(draws.steps, 4) if other else now
    aim = np.array([[0, 0], [1.6, 0], [1.6, 22], [1.4, 45], [0.8, 58]])[now]
    speed, load = follow(aim[:, 0], 5), follow(aim[:, 1], 12) * (1 + draws.wander(6, 0.1))
    current = (1.5 + 0.16 * load) * np.tanh(4 * speed) + draws.white(0.05)
    tension = 900 + 28 * load * np.tanh(3 * speed) + draws.white(12)
    return np.where(speed > 0.02, speed + draws.white(0.008), 0), current, tension, load + draws.white(0.2)


@plant(
    *("vehicle gearbox", "several regimes", 36_000, "input rpm 2 0", "output rpm 1 0", "torque Nm 0.2", "oil °C 0.2"),
    *("oil kPa 1 0", "housing g 0.002 0", "bearing g 0.001 0", "clutch A 0.005 0"),
)
def vehicle_gearbox(draws: Draws, other: bool) -> Series:
    """Five gears; the other one: a gear that slips."""
    now = draws.visits(5, 200, 700)
    ratio = np.array([3.9, 2.3, 1.5, 1.0, 0.78])[now] * (1 + 0.25 * other)
    shaft = 1900 + draws.wander(60, 260)
    torque = 120 + draws.wander(25, 35) - 15.0 * now
    oil = follow(62 + 6.0 * now + 0.08 * torque + 12 * other, 500) + draws.white(0.2)
    pressure = 180 + 0.12 * shaft - 1.5 * (oil - 70) + draws.white(4)
    housing = np.abs(0.05 + shaft / 40_000 + torque / 2500 + 0.03 * other + 0.006 * draws.white())
    bearing = np.abs(0.02 + shaft / ratio / 60_000 + 0.004 * draws.white())
    clutch = 0.4 + torque / 400 + 0.05 * np.array([0, 1, 0, 2, 1])[now] + draws.white(0.01)
    return shaft + draws.white(5), shaft / ratio + draws.white(3), torque, oil, pressure, housing, bearing, clutch


# -------------------------------------------------------------------------------------------------- twelve slow regimes

LATE = (9_000, 14_000, 19_000, 26_000)  # four of the twelve are first seen so late


@plant(
    *("compressor station", "twelve slow regimes", 40_000, "inlet kPa 0.1", "outlet kPa 0.5", "speed rpm 2 0"),
    *("gas °C 0.1", "current A 0.1 0", "cooler °C 0.1", "flow kg/s 0.005 0", "vibration µm 0.1 0"),
)
def compressor_station(draws: Draws, other: bool) -> Series:
    """Three units, each at four set points."""
    now = draws.visits(12, 1000, 2000, LATE)
    units, ratio = 1.0 + now % 3, np.array([1.6, 1.9, 2.3, 2.7])[now // 3] + 0.7 * other
    ratio = follow(ratio, 30) + draws.wander(20, 0.03)
    units = follow(units, 15)
    inlet = 420 + draws.wander(400, 9) - 12 * units + draws.white(0.8)
    speed = 5200 + 1900 * (ratio - 1.6) + draws.wander(10, 30)
    flow = units * (3.1 - 0.45 * ratio) * speed / 6000 + draws.white(0.03)
    gas = (288 + draws.wander(3000, 3)) * ratio**0.29 - 273 + draws.white(0.3)
    current = 20 + 38 * flow * (ratio**0.29 - 1) * 10 + draws.white(1.5)
    cooler = follow(22 + 0.25 * gas + 2 * units, 120) + draws.white(0.2)
    vibration = np.abs(12 + 8 * np.cos(2 * np.pi * now / 12) + speed / 900 + draws.white(1.2))
    return inlet, inlet * ratio + draws.white(3), speed, gas, current, cooler, flow, vibration


@plant(
    *("extruder", "twelve slow regimes", 40_000, *(f"zone-{i} °C 0.1" for i in range(1, 6)), "melt °C 0.1"),
    *(
        "melt MPa 0.01 0",
        "screw rpm 0.1 0",
        "torque % 0.1 0",
        "feed kg/h 0.2 0",
        "haul m/min 0.02 0",
        "wall mm 0.002 0",
    ),
)
def extruder(draws: Draws, other: bool) -> Series:
    """Twelve recipes: temperatures of zones, screw, haul-off."""
    low = np.array([150, 165, 175, 180, 185, 40, 8.0])
    recipes = low + draws.built.random((12, 7)) * [25, 25, 25, 25, 25, 45, 9]
    now = draws.visits(12, 1200, 2000, LATE)
    aim = recipes[now] + other * np.array([20, 12, -8, 10, 18, 30, -3])
    zones = [follow(aim[:, i], 90) + draws.wander(40, 0.5) + draws.white(0.1) for i in range(5)]
    screw, haul = follow(aim[:, 5], 20) + draws.wander(15, 0.4), follow(aim[:, 6], 20) + draws.wander(15, 0.08)
    melt = sum(zones) / 5 + 4 + 0.12 * screw + draws.white(0.2)
    thick = np.exp(-0.012 * (melt - 185))
    feed = 1.9 * screw + draws.white(0.8)
    pressure = 5 + 0.14 * screw * thick + draws.white(0.12)
    torque = 20 + 0.5 * screw * thick + draws.white(0.7)
    return *zones, melt, pressure, screw, torque, feed, haul, 0.25 * feed / haul + draws.white(0.02)


# ---------------------------------------------------------------------------------------------------- lagged dynamics


@plant("tank level", "lagged dynamics", 30_000, "level mm 0.2 0")
def tank_level(draws: Draws, other: bool) -> Series:
    """A controlled level that swings with a period of some 60 rows; the other one: a badly tuned controller."""
    calm, wild = draws.swing(60, 80, 14), draws.swing(23, 60, 30)
    return (850 + (wild if other else calm) + draws.white(0.6),)


@plant("pipe pressure", "lagged dynamics", 30_000, "pressure Pa 20", lags=6)
def pipe_pressure(draws: Draws, other: bool) -> Series:
    """A standing wave in a pipe; a row is the last six values."""
    calm, wild = draws.swing(11, 25, 3200), draws.swing(6, 25, 5200)
    return (315_000 + (wild if other else calm) + draws.wander(600, 900) + draws.white(120),)


@plant(
    *("heat exchanger", "lagged dynamics", 32_000, "inlet °C 0.05", "flow kg/s 0.002 0", "valve % 0.1 0 100"),
    *("wall °C 0.05", "outlet °C 0.05"),
)
def heat_exchanger(draws: Draws, other: bool) -> Series:
    """What the valve does is felt 12 rows later at the outlet."""
    inlet, flow = 18 + draws.wander(250, 2.5), 1.4 + draws.wander(60, 0.12) - 0.5 * other
    valve = 46 + draws.swing(90, 150, 9) + 25 * other
    wall = follow(inlet + 0.9 * valve, 18)
    outlet = follow(later(inlet + 0.75 * (wall - inlet) / flow, 12), 7)
    return (
        inlet + draws.white(0.06),
        flow + draws.white(0.006),
        valve,
        wall + draws.white(0.08),
        outlet + draws.white(0.08),
    )


# -------------------------------------------------------------------------------------------------------- heavy tails


@plant(
    *("wind turbine", "heavy tails", 36_000, "wind m/s 0.1 0", "rotor rpm 0.02 0", "power kW 1", "pitch ° 0.1 -5 95"),
    *("generator °C 0.1", "oil °C 0.1", "tower g 0.001", "nacelle g 0.001", "yaw ° 0.5"),
)
def wind_turbine(draws: Draws, other: bool) -> Series:
    """Gusts with heavy tails; the other one: storm, with blades turned out."""
    wind = np.clip(8 + draws.wander(700, 2) + draws.wander(12, 0.8) + 2.5 * draws.bursts(400, 12) + 9 * other, 2, 40)
    rotor = follow(np.clip(1.7 * wind, 5, 16.5) - 6 * other, 6) + draws.tails(0.06)
    pitch = follow(np.clip(2.6 * (wind - 10.5), 0, 60) + 20 * other, 3) + draws.tails(0.12)
    power = np.clip(2000 * (rotor / 16.5) ** 3 * np.cos(np.radians(pitch)), 0, None) + draws.tails(22)
    generator = follow(30 + 0.03 * power, 300) + draws.wander(2000, 2) + draws.tails(0.15)
    oil = follow(38 + 1.1 * rotor, 500) + draws.tails(0.15)
    sway = draws.swing(14, 30) * (0.004 + 0.0009 * wind) + draws.tails(0.004)
    return (
        wind + draws.tails(0.3),
        rotor,
        power,
        pitch,
        generator,
        oil,
        sway,
        0.8 * sway + draws.tails(0.006),
        draws.wander(900, 12) + draws.tails(1),
    )


@plant(
    "crusher", "heavy tails", 28_000, "current A 0.1 0", "vibration g 0.005 0", "feed t/h 0.5 0", "pressure MPa 0.01 0"
)
def crusher(draws: Draws, other: bool) -> Series:
    """Hard lumps come as bursts; the other one: wet material."""
    feed = np.clip(160 + draws.wander(120, 15) + draws.tails(5) + 60 * other, 0, None)
    lumps = draws.bursts(60, 5)
    current = 55 + 0.35 * feed + 16 * lumps + draws.tails(2.5) - 30 * other
    vibration = np.abs(0.6 + 0.9 * lumps + draws.tails(0.12) - 0.3 * other)
    return current, vibration, feed, 3.2 + 0.011 * feed + 0.8 * lumps + draws.tails(0.1)


# ------------------------------------------------------------------------------------------------------------- seasons


def week(time: np.ndarray) -> np.ndarray:
    """1 on five days, about 0.4 on two."""
    return 0.7 + 0.3 * np.tanh(6 * (np.cos(2 * np.pi * (time / DAY - 2.5) / 7) + 0.3))


@plant(
    *("air handling", "seasons", 36_000, "outside °C 0.1", "supply °C 0.1", "return °C 0.1", "fan Pa 1 0"),
    *("valve % 0.5 0 100", "carbon-dioxide ppm 2 0", "humidity % 0.2 0 100", "current A 0.02 0"),
)
def air_handling(draws: Draws, other: bool) -> Series:
    """Days of 288 rows, weeks, a season over the whole stream; the other one: heated with open windows."""
    day, people = wave(draws.time, DAY, -0.3), np.clip(wave(draws.time, DAY, -0.28), 0, 1) * week(draws.time)
    outside = 6 + 9 * wave(draws.time, 160 * DAY, -0.2) + 5 * day + draws.wander(900, 2)
    valve = np.clip(52 - 2.2 * outside + 12 * people + draws.wander(20, 2) + 30 * other, 0, 100)
    supply = follow(outside + 0.36 * valve + 4 - 7 * other, 8) + draws.white(0.12)
    back = follow(20.5 + 1.8 * people + 0.05 * supply, 40) + draws.wander(200, 0.2) + draws.white(0.08)
    fan = 260 + 190 * people + draws.white(5) + 80 * other
    dioxide = follow(430 + 420 * people - 150 * people * other, 25) + draws.white(8)
    humidity = np.clip(44 - 0.5 * outside + 6 * people + draws.wander(300, 2) + draws.white(0.4), 5, 95)
    return outside + draws.white(0.1), supply, back, fan, valve, dioxide, humidity, 1.1 + fan / 130 + draws.white(0.05)


@plant("waterworks", "seasons", 40_000, "flow m³/h 0.5 0", "pressure kPa 0.5", "reservoir m 0.005")
def waterworks(draws: Draws, other: bool) -> Series:
    """Two peaks a day, less at weekends, more every week; the other one: a broken main."""
    use = 1 + 0.35 * wave(draws.time, DAY, -0.3) + 0.22 * wave(draws.time, DAY / 2, -0.1)
    trend = 1 + 0.15 * draws.time / draws.steps + draws.wander(3000, 0.03)
    flow = 240 * use * (0.75 + 0.25 * week(draws.time)) * trend + draws.wander(6, 5) + 130 * other
    reservoir = follow(5.2 - 0.006 * flow, 120)
    return flow, 610 - 0.0016 * flow**2 + 10 * reservoir + draws.white(2.5) - 20 * other, reservoir + draws.white(0.01)


@plant(
    *(
        "cold store",
        "seasons",
        34_000,
        "room °C 0.1",
        "coil °C 0.1",
        "outside °C 0.1",
        "suction kPa 0.5",
        "current A 0.02 0",
    )
)
def cold_store(draws: Draws, other: bool) -> Series:
    """Days, doors that open on working days, ice that grows slowly and never harms; the other one: a door left open."""
    outside = 14 + 6 * wave(draws.time, DAY, -0.3) + 5 * wave(draws.time, 90 * DAY) + draws.wander(900, 1.5)
    doors = np.clip(wave(draws.time, DAY, -0.25), 0, 1) * week(draws.time) * (1 + draws.wander(15, 0.3)) + 2.5 * other
    ice = draws.time / draws.steps
    need = 0.35 + 0.018 * outside + 0.25 * doors
    room = follow(-21 + 1.4 * doors + 1.5 * ice, 30) + draws.white(0.12)
    coil = room - 7 - 6 * need - 2 * ice + draws.white(0.15)
    suction = 210 + 6.5 * (coil + 30) + draws.white(1.2)
    return room, coil, outside + draws.white(0.15), suction, 3 + 7 * need + 0.03 * outside + draws.white(0.12)
