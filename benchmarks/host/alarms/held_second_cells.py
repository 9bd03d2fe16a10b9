"""Held-out machines of cells and halls: robot arm, data hall."""

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


def robot(run: Run) -> None:
    """A robot of four axes, a row each half second: three programs of smooth moves, and waiting for parts."""
    rng, fixed = run.rng, np.random.default_rng(4107)
    state = run.spell(4, 460, (250, 2000), (0.3, 1, 1, 1))  # 0: waits at home
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
        run.show(f"motor{i + 1}", room + 4.0 + lag(amps**2 * 2.2, 90, 4.0))


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
        machine("unknown program", "regime", "angle1 angle2 angle3 angle4", 1.0, 1.0, tail=180),
        machine(
            "gear of axis three wears", "noise", "amps3", 0.6, 3.0, form="ramp", lasts=(120, 500), tail=150, moves=0.6
        ),
        machine("arm rubs a fence", "", "amps1", 0.6, 2.5, tail=200, moves=0.8),
        machine("belt of axis four slackens", "", "angle4", 0.15, 0.6, moves=15.0),
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
        jump("supply", 0.8, 4.0, tail=70),
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
        machine("all racks at full power", "regime", "power1 power2 power3 power4", 25.0, 50.0, tail=90),
        machine("cold aisle door open", "", "inlet3", 0.5, 1.5, tail=15),
        machine("chilled water weak", "drift", "flow valve", 0.3, 0.6, form="ramp", lasts=(120, 400), tail=160),
    ),
)

CELLS = (ROBOT, DATA_HALL)
