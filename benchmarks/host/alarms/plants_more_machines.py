"""More machines: counts and contacts, many sensors, cycles, repairs, dense faults.  Written as in plants_machines.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.host.alarms.plants_draws import Draws, follow, hump, later, plant, wave

Series = Sequence[np.ndarray]

# ------------------------------------------------------------------------------------------------- counts and contacts


@plant(
    *("boiler", "counts and contacts", 30_000, "water °C 0.5", "flue °C 1", "burner on 1 0 1", "set °C 1"),
    *("pressure kPa 10", "lockout on 1 0 1"),
)
def boiler(draws: Draws, other: bool) -> Series:
    """A burner that goes on and off.  A person moves the set point every few thousand rows; the lockout is mostly off."""
    aim = draws.steps_of(4000, (60, 65, 70))
    phase = draws.phase(70, 0.12)
    burner = (phase < 0.35 + 0.004 * (aim - 60) + 0.3 * other).astype(float)
    water = aim - 5 + 10 * follow(burner, 25) + draws.wander(200, 0.6) + draws.white(0.1)
    flue = 45 + 130 * follow(burner, 6) * (1 + 0.3 * other) + draws.white(0.6)
    lockout = (draws.rng.random(draws.steps) < 1 / 1500).astype(float)
    return water, flue, burner, aim, 150 + 1.1 * (water - 60) + draws.white(1), lockout


@plant(
    *("sump", "counts and contacts", 28_000, "level counts 1 0 1023", "pump on 1 0 1", "second on 1 0 1"),
    *("current counts 1 0 255", "supply mV 50"),
)
def sump(draws: Draws, other: bool) -> Series:
    """A pit that fills and is pumped out, read by a coarse converter; the supply stays on one count or the next."""
    phase = draws.phase(240, 0.1)
    draining = phase > 0.75 - 0.35 * other
    level = np.where(draining, 820 - 600 * (phase - 0.75) / 0.25, 220 + 600 * phase / 0.75)
    level = follow(level + 160 * other, 2) + draws.white(0.4)
    second = draining & (draws.wander(400) > 1.6)
    current = 12 + 96 * follow(draining.astype(float), 1) + 60 * second + draws.white(0.5)
    return level, draining.astype(float), second.astype(float), current, 3274 + draws.white(4) - 40 * draining


@plant("panel", "counts and contacts", 26_000, "cabinet °C 0.5", "door on 1 0 1", "fan on 1 0 1", "humidity % 1 0 100")
def panel(draws: Draws, other: bool) -> Series:
    """An electrical cabinet: for hundreds of rows, rows are exactly the same."""
    warm = 34 + draws.wander(1500, 2.5) + 9 * other
    fan = (follow(warm, 30) > 35).astype(float)
    door = follow((draws.rng.random(draws.steps) < 1 / 900).astype(float), 8) > 0.04
    return (
        warm - 1.5 * follow(fan, 40),
        door.astype(float),
        fan,
        38 - 0.8 * (warm - 34) + draws.wander(2500, 2) + 6 * door,
    )


# --------------------------------------------------------------------------------------------------------- many sensors


@plant(
    *("battery pack", "many sensors", 30_000, *(f"cell-{i} mV 1 0 5000" for i in range(1, 17)), "current A 0.05"),
    *("warm °C 0.1", "cold °C 0.1", "charge % 0.1 0 100"),
)
def battery_pack(draws: Draws, other: bool) -> Series:
    """Sixteen cells in series, charged and discharged; the other one: fast charging in the cold."""
    phase = draws.phase(1100, 0.15)
    charging = phase < 0.45
    current = np.where(charging, 18 + 35.0 * other, -15 * (1 + draws.wander(30, 0.35))) + draws.white(0.1)
    charge = np.where(charging, 15 + 75 * phase / 0.45, 90 - 75 * (phase - 0.45) / 0.55)
    idle = 3050 + 650 * charge / 100 + 300 * np.exp(-0.12 * (100 - charge)) - 250 * np.exp(-0.15 * charge)
    warm = follow(22 + 0.03 * current**2, 200) + draws.wander(2500, 2) - 14 * other
    more, less = draws.built.normal(0, 6, 16), draws.built.uniform(0.8, 1.2, 16)
    cells = [
        idle
        + more[i]
        + current * (2.2 + 0.8 * other - 0.02 * (warm - 22)) * less[i]
        + draws.wander(60, 1.5)
        + draws.white(1)
        for i in range(16)
    ]
    cold = 0.7 * warm + 6 + draws.white(0.1)
    return *cells, current, warm + draws.white(0.1), cold, charge


@plant("hall of drives", "many sensors", 28_000, *(f"drive-{i} g 0.0005 0" for i in range(1, 25)))
def hall_of_drives(draws: Draws, other: bool) -> Series:
    """One accelerometer on each of 24 drives, which have little to do with each other."""
    level, moves = draws.built.uniform(0.04, 0.9, 24), draws.built.uniform(0.06, 0.15, 24)
    hall = draws.wander(500)
    worse = np.where(draws.built.random(24) < 0.4, 0.5, -0.1) * other
    return [
        level[i] * (1 + worse[i] + moves[i] * (0.25 * hall + draws.wander(3 + 2 * i) + 0.6 * draws.white()))
        for i in range(24)
    ]


@plant(
    *("paper machine", "many sensors", 30_000, *(f"drum-{i} °C 0.1" for i in range(1, 9))),
    *(
        *(f"draw-{i} N/m 0.5" for i in range(1, 7)),
        "speed m/s 0.001 0",
        "steam kPa 0.5 0",
        "moisture % 0.02",
        "weight g/m² 0.1",
    ),
)
def paper_machine(draws: Draws, other: bool) -> Series:
    """Three causes move most of eighteen sensors: speed, steam, pulp."""
    speed, steam = 14 + draws.wander(150, 0.25) - 1.6 * other, 310 + draws.wander(90, 9) + 25 * other
    pulp = draws.wander(200, 1.4)
    drums = [
        60 + 6 * i + 0.11 * (steam - 310) * (1 + i / 8) - 0.9 * pulp - 3 * (speed - 14) + draws.wander(40, 0.3)
        for i in range(8)
    ]
    pulls = [180 + 12 * i + 45 * (speed - 14) + 6 * pulp + draws.wander(4, 2.5) + draws.white(1) for i in range(6)]
    moisture = 6.5 + 0.35 * pulp + 0.8 * (speed - 14) - 0.03 * (steam - 310) + draws.white(0.06)
    return (
        *drums,
        *pulls,
        speed,
        steam + draws.white(1),
        moisture,
        80 + 1.1 * pulp - 1.5 * (speed - 14) + draws.white(0.2),
    )


# --------------------------------------------------------------------------------------------------------------- cycles


@plant("stamping press", "cycles", 30_000, "force kN 0.5 0", "ram mm 0.1", "motor A 0.05 0", "frame g 0.005")
def stamping_press(draws: Draws, other: bool) -> Series:
    """A stroke of some 40 rows; the other one: thicker sheet."""
    phase = draws.phase(40, 0.01)
    hit = hump(phase, 0.5 - 0.03 * other, 0.035 + 0.02 * other)
    force = 820 * hit * (1 + draws.wander(200, 0.02) + 0.25 * other) + np.abs(draws.white(3))
    ram = 60 + 60 * wave(phase, 1, 0.25) + draws.white(0.2)
    motor = 11 + 9 * hump(phase, 0.53, 0.09) * (1 + 0.4 * other) + draws.white(0.2)
    frame = 0.9 * later(hit, 1) * draws.white() + draws.white(0.02)
    return force, ram, motor, frame


@plant(
    *("injection moulding", "cycles", 34_000, "cavity MPa 0.05 0", "screw mm 0.05", "hydraulic MPa 0.02 0"),
    *("nozzle °C 0.1", "mould °C 0.1", "clamp kN 1 0"),
)
def injection_moulding(draws: Draws, other: bool) -> Series:
    """Fill, pack, cool, open, in some 90 rows; the other one: another mould."""
    phase = draws.phase(90, 0.02)
    shot = draws.wander(300, 0.02)
    cavity = (
        (62 - 20 * other) * (1 + shot) * np.clip((phase - 0.1) / 0.08, 0, 1) * np.exp(-np.clip(phase - 0.3, 0, 1) * 9)
    )
    screw = 95 - 78 * np.clip((phase - 0.06) / 0.14, 0, 1) + 78 * np.clip((phase - 0.45) / 0.35, 0, 1) + 4 * shot
    hydraulic = 3 + 11 * hump(phase, 0.15, 0.05) + 6 * hump(phase, 0.27, 0.05) + 2.5 * hump(phase, 0.6, 0.12)
    nozzle = 228 + draws.wander(150, 0.7) - 1.5 * follow(hydraulic - 5, 6) / 5 + draws.white(0.1)
    mould = 46 + 7 * follow(hump(phase, 0.25, 0.08), 12) + draws.wander(700, 0.6) + draws.white(0.12)
    clamp = 900 * np.clip(np.minimum(phase / 0.05, (0.9 - phase) / 0.05), 0, 1)
    return (
        cavity + np.abs(draws.white(0.2)),
        screw + draws.white(0.15),
        hydraulic + draws.white(0.1),
        nozzle,
        mould,
        clamp + draws.white(2),
    )


# ------------------------------------------------------------------------------------------------------ lasting changes


@plant(
    *("mixer", "lasting changes", 56_000, "speed rpm 0.5 0", "torque Nm 0.1", "power W 2 0", "product °C 0.1"),
    *("gear g 0.002 0", "seal kPa 0.2"),
    lasting=True,
)
def mixer(draws: Draws, other: bool) -> Series:
    """Batches; after an overhaul the gear is quieter, the seal tighter, the motor another."""
    thick = follow(1 + 0.5 * draws.phase(900, 0.1), 20) + draws.wander(60, 0.04)
    speed = 90 + draws.wander(40, 2.5)
    torque = 0.9 * thick * speed * (0.95 if other else 1.0) + draws.white(1.0) - 4 * other
    power = 120 + torque * speed * 0.105 * (1.06 if other else 1.0) + draws.white(8)
    product = follow(30 + 0.01 * power, 300) + draws.wander(2000, 0.8) + draws.white(0.1)
    gear = np.abs(0.25 + 0.0012 * torque - 0.06 * other + draws.white(0.015))
    return speed + draws.white(0.5), torque, power, product, gear, 160 + 0.4 * speed + 7 * other + draws.white(1)


@plant(
    *(
        "fermenter",
        "lasting changes",
        60_000,
        "acidity pH 0.01 0 14",
        "oxygen % 0.1",
        "broth °C 0.05",
        "stirrer rpm 1 0",
    ),
    *("air l/min 0.1 0", "carbon-dioxide % 0.02 0", "jacket °C 0.1", "foam mm 1 0"),
    lasting=True,
)
def fermenter(draws: Draws, other: bool) -> Series:
    """Batches of some 1,500 rows; after a calibration the probes are a little off from what they were."""
    age = draws.phase(1500, 0.06)
    growth = hump(age, 0.55, 0.17) * (1 + draws.wander(300, 0.04))
    stirrer = 320 + 260 * growth + draws.wander(20, 8)
    air = 22 + 14 * growth + draws.white(0.3)
    oxygen = 78 - 50 * growth + 0.03 * (stirrer - 320) + draws.wander(30, 1.5) + draws.white(0.3) + 5 * other
    acidity = 6.9 - 0.35 * follow(growth, 60) + draws.wander(50, 0.02) + draws.white(0.01) - 0.09 * other
    broth = 37 + draws.swing(70, 60, 0.12) + draws.white(0.03) + 0.3 * other
    jacket = 35.5 - 9 * growth + 8 * (37 - broth + 0.3 * other) + draws.white(0.15) - 0.8 * other
    foam = 18 + 40 * follow(growth, 40) * (1 + draws.wander(10, 0.15)) - 6 * other
    return acidity, oxygen, broth, stirrer, air, 0.4 + 4.5 * growth + draws.white(0.05), jacket, foam


@plant("weighing feeder", "lasting changes", 50_000, "mass kg 0.02", "rate g/s 0.2", "screw rpm 0.2 0", lasting=True)
def weighing_feeder(draws: Draws, other: bool) -> Series:
    """A hopper that empties and is filled; after a new screw, more is fed at each turn."""
    rate = 140 + draws.wander(80, 9)
    mass = 60 - 45 * draws.phase(600, 0.05) + draws.white(0.08) + 1.5 * other
    turns = rate / (1.9 + 0.003 * mass + 0.15 * other) + draws.white(0.4)
    return mass, rate + draws.white(1.2), turns


# --------------------------------------------------------------------------------------------------------- dense faults


@plant(
    *("chiller", "dense faults", 30_000, "evaporator °C 0.1", "condenser °C 0.1", "suction kPa 1", "discharge kPa 2"),
    *("current A 0.02 0", "flow l/s 0.01 0"),
    dense=True,
)
def chiller(draws: Draws, other: bool) -> Series:
    load = np.clip(0.6 + draws.wander(150, 0.13), 0.1, 1.1)
    outside = 26 + draws.wander(1500, 2.5)
    flow = 7.5 + draws.wander(50, 0.25) - 2.2 * other
    evaporator = 7 - 3 * load * 7.5 / flow + draws.white(0.1)
    condenser = outside + 5 + 9 * load + 6 * other + draws.white(0.12)
    current = 8 + 0.75 * load * (condenser - evaporator) + draws.white(0.2)
    return (
        evaporator,
        condenser,
        350 + 11 * evaporator + draws.white(1.5),
        800 + 26 * (condenser - 30) + draws.white(5),
        current,
        flow,
    )


@plant(
    *("robot joint", "dense faults", 28_000, "angle ° 0.02", "speed °/s 0.1", "current A 0.01", "motor °C 0.1"),
    *("gear g 0.001 0", "voltage V 0.05"),
    dense=True,
)
def robot_joint(draws: Draws, other: bool) -> Series:
    """One of two programs by turns, in cycles of some 70 rows; the other one: a heavier part."""
    program, phase = draws.visits(2, 200, 600), draws.phase(70, 0.005)
    wide = follow(np.array([55.0, 30.0])[program], 10)
    angle = wide * (wave(phase, 1) + 0.25 * wave(phase, 0.5))
    speed = np.gradient(angle) * 20
    push = np.gradient(speed)
    current = 1.1 * np.tanh(speed / 8) + (0.05 + 0.04 * other) * push + (1.3 + 1.2 * other) * np.cos(np.radians(angle))
    motor = follow(28 + 5 * current**2, 500) + draws.wander(2500, 1) + draws.white(0.12)
    gear = np.abs(0.02 + 0.0012 * np.abs(speed) + draws.white(0.008))
    voltage = 48 - 0.15 * np.abs(current) + draws.white(0.06)
    return angle + draws.white(0.05), speed + draws.white(0.8), current + draws.white(0.06), motor, gear, voltage


@plant("vibrating screen", "dense faults", 26_000, "left g 0.005", "right g 0.005", "motor A 0.02 0", dense=True)
def vibrating_screen(draws: Draws, other: bool) -> Series:
    load = 1 + draws.wander(100, 0.12) + 0.5 * other
    left = 4.2 / load + draws.white(0.05)
    return left, 0.92 * left + draws.wander(30, 0.05) + draws.white(0.03), 6 + 3.5 * load + draws.white(0.08)
