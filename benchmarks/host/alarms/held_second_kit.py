"""What the second held-out plants are made of: sensors with their wiring faults, machines, places for faults.

All chance is drawn before a machine walks: a run with faults and one without see the same weather.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.host.alarms.held_kit import generator, lag
from benchmarks.host.alarms.stream import Fault, Stream

ROWS = 20_000
SOUND_FIRST = 2000
GAP = 250  # the fewest sound rows between two faults
FEWEST, MOST = 420, 1150  # faulty rows of a stream


class Probe(NamedTuple):
    """A sensor: name with unit, noise, one count of its converter, tails (Student's degrees of freedom), range."""

    name: str
    noise: float
    step: float = 0.0
    tails: float = 0.0
    low: float = -np.inf
    high: float = np.inf


class Ask(NamedTuple):
    """A fault that can happen.  ``how``: what the wiring does to a sensor, or "machine" with its ``form`` in time."""

    kind: str
    how: str
    channels: tuple[str, ...]
    low: float  # the size is drawn between these two
    high: float
    says: str
    lasts: tuple[int, int]
    form: str = "step"  # of a machine's fault: step; ramp: it grows to the end; rise: grows for a third, then stays
    tail: int = 0  # rows at the end in which the machine recovers
    sign: int = 0  # 0: either
    where: tuple[str, float, float] | None = None  # the machine must mostly run with this sensor in this range
    moves: float = 0.0  # how much the sound sensor must move meanwhile, or else nobody could see the fault


class Event(NamedTuple):
    ask: Ask
    first: int
    last: int
    size: float


class Machine(NamedTuple):
    name: str
    kind: str
    walk: Callable[[Run], None]
    probes: tuple[Probe, ...]
    asks: tuple[Ask, ...]

    def channel(self, name: str) -> int:
        return [probe.name.split()[0] for probe in self.probes].index(name)


def _wiring(how: str, says: str, lasts: tuple[int, int], sign: int = 0) -> Callable[..., Ask]:
    def make(channel: str, low: float, high: float, **more: Any) -> Ask:
        settings: dict[str, Any] = {"lasts": lasts, "sign": sign} | more
        return Ask(f"{how} {channel}", how, tuple(channel.split()), low, high, says, **settings)

    return make


jump, factor = _wiring("jump", "jump", (20, 130)), _wiring("factor", "jump", (25, 180))
creep, hiss = _wiring("creep", "drift", (130, 900)), _wiring("hiss", "noise", (20, 130))


def stick(channel: str, moves: float, *, dither: bool = False, lasts: tuple[int, int] = (30, 200), **more: Any) -> Ask:
    how = "dither" if dither else "stick"
    return Ask(f"{how} {channel}", how, (channel,), 1.0, 1.0, "stuck", lasts, moves=moves, sign=1, **more)


def contact(channel: str, rail: float, lasts: tuple[int, int] = (20, 120), **more: Any) -> Ask:
    """A loose wire: the sensor shows the end of its range for a few rows again and again."""
    return Ask(f"contact {channel}", "contact", (channel,), rail, rail, "", lasts, sign=1, **more)


def swap(one: str, other: str, moves: float, lasts: tuple[int, int] = (40, 200), **more: Any) -> Ask:
    return Ask(f"swap {one} {other}", "swap", (one, other), 1.0, 1.0, "", lasts, sign=1, moves=moves, **more)


def sluggish(
    channel: str, low: float, high: float, moves: float, lasts: tuple[int, int] = (80, 300), **more: Any
) -> Ask:
    """A clogged sensing line: the sensor follows with a time constant of this many rows."""
    return Ask(f"sluggish {channel}", "sluggish", (channel,), low, high, "", lasts, sign=1, moves=moves, **more)


def machine(
    name: str, says: str, channels: str, low: float, high: float, lasts: tuple[int, int] = (30, 200), **more: Any
) -> Ask:
    return Ask(name, "machine", tuple(channels.split()), low, high, says, lasts, sign=1, **more)


class Run:
    """One run of a machine: what it draws from, is upset by, and shows."""

    def __init__(self, of: Machine, seed: int, events: tuple[Event, ...] = ()):
        self.of, self.rows = of, ROWS
        self.rng = generator(seed, of.name, 10)
        self.t = np.arange(ROWS)
        wide = (ROWS, len(of.probes))
        self.out = np.zeros(wide)
        noise, chance = generator(seed, of.name, 11), generator(seed, of.name, 12)
        self._add = np.column_stack(
            [p.noise * (noise.standard_t(p.tails, ROWS) if p.tails else noise.normal(size=ROWS)) for p in of.probes]
        )
        extra = chance.normal(size=wide)
        self._loose = np.repeat(chance.uniform(size=(ROWS // 3 + 1, wide[1])), 3, axis=0)[:ROWS] < 0.35
        self._count = chance.integers(-1, 2, wide)
        self._scale, self._keep = np.ones(wide), np.zeros(wide)
        self._hold, self._rail = np.zeros(wide, int), np.full(wide, np.nan)
        self._swaps: list[tuple[slice, int, int]] = []
        self.upset = {ask.kind: np.zeros(ROWS) for ask in of.asks if ask.how == "machine"}
        for ask, first, last, size in events:
            span = slice(first, last - ask.tail)
            ramp = np.linspace(0.0, 1.0, span.stop - first + 1)[1:]
            c = of.channel(ask.channels[0])
            if ask.how == "machine":
                form = {"step": np.ones_like(ramp), "ramp": ramp, "rise": np.minimum(3.0 * ramp, 1.0)}[ask.form]
                self.upset[ask.kind][span] = size * form
            elif ask.how == "jump":
                self._add[span, c] += size
            elif ask.how == "creep":
                self._add[span, c] += size * ramp
            elif ask.how == "hiss":
                self._add[span, c] += size * extra[span, c]
            elif ask.how == "factor":
                self._scale[span, c] += size
            elif ask.how == "sluggish":
                self._keep[span, c] = np.exp(-1.0 / size)
            elif ask.how == "contact":
                self._loose[first, c] = True
                self._rail[span, c] = np.where(self._loose[span, c], ask.low, np.nan)
            elif ask.how == "swap":
                self._swaps.append((span, c, of.channel(ask.channels[1])))
            else:
                self._hold[span, c] = 2 if ask.how == "dither" else 1

    def meter(self, name: str) -> Callable[[int, float], float]:
        """A sensor that is read row by row, for controllers."""
        c = self.of.channel(name)
        probe, out = self.of.probes[c], self.out[:, c]
        add, scale, keep, hold, rail = (
            part[:, c].tolist() for part in (self._add, self._scale, self._keep, self._hold, self._rail)
        )
        step, low, high, count = probe.step, probe.low, probe.high, self._count[:, c].tolist()
        last = held = 0.0

        def read(t: int, true: float) -> float:
            nonlocal last, held
            value = true * scale[t] + add[t]
            if keep[t]:
                value = keep[t] * last + (1.0 - keep[t]) * value
            last = value
            if step:
                value = round(value / step) * step
            value = min(max(value, low), high)
            if hold[t]:
                value = held + (count[t] * step if hold[t] == 2 else 0.0)
            elif rail[t] == rail[t]:
                value = rail[t]
            else:
                held = value
            out[t] = value
            return value

        return read

    def show(self, name: str, true: np.ndarray) -> None:
        """What a sensor shows of true values that are known for all rows."""
        c = self.of.channel(name)
        probe = self.of.probes[c]
        value = true * self._scale[:, c] + self._add[:, c]
        for t in np.flatnonzero(self._keep[:, c]):
            value[t] = self._keep[t, c] * value[t - 1] + (1.0 - self._keep[t, c]) * value[t]
        value = np.round(value / probe.step) * probe.step if probe.step else value
        value = np.clip(value, probe.low, probe.high)
        hold = self._hold[:, c]
        value = value[np.maximum.accumulate(np.where(hold > 0, 0, self.t))]
        value = value + np.where(hold == 2, self._count[:, c] * probe.step, 0.0)
        self.out[:, c] = np.where(np.isnan(self._rail[:, c]), value, self._rail[:, c])

    def finished(self) -> np.ndarray:
        for span, one, other in self._swaps:
            self.out[span, [one, other]] = self.out[span, [other, one]]
        return self.out.astype(np.float32)

    def wander(self, tau: float, sigma: float) -> np.ndarray:
        """Slow chance with this time constant in rows and this standard deviation."""
        start = sigma * float(self.rng.normal())
        wide = sigma * np.sqrt(2.0 * tau)
        return lag(self.rng.normal(size=self.rows) * wide, tau, start)

    def spell(
        self, count: int, short: int, dwell: tuple[int, int], weights: tuple[float, ...] | None = None
    ) -> np.ndarray:
        """Which regime runs in each row; commissioning visits all of them, for about ``short`` rows each."""
        rng = self.rng
        found: list[int] = []
        while len(found) < SOUND_FIRST - 50 - count * short:
            for regime in rng.permutation(count):
                found += [int(regime)] * int(rng.uniform(0.6, 1.0) * short)
        chance = np.ones(count) if weights is None else np.asarray(weights, float)
        while len(found) < self.rows:
            odds = np.where(np.arange(count) == found[-1], 0.0, chance)
            found += [int(rng.choice(count, p=odds / odds.sum()))] * int(np.exp(rng.uniform(*np.log(dwell))))
        return np.array(found[: self.rows])


def simulate(of: Machine, seed: int, events: tuple[Event, ...] = ()) -> np.ndarray:
    """The rows of one run, (ROWS, D), float32."""
    run = Run(of, seed, events)
    of.walk(run)
    return run.finished()


def _seen(ask: Ask, of: Machine, clean: np.ndarray, first: int, last: int) -> bool:
    span = slice(first, last - ask.tail)
    if ask.where is not None:
        name, low, high = ask.where
        values = clean[span, of.channel(name)]
        if np.mean((values >= low) & (values <= high)) < 0.75:
            return False
    c = of.channel(ask.channels[0])
    if ask.how == "factor" and np.abs(clean[span, c]).mean() < 0.5 * np.abs(clean[:, c]).mean():
        return False
    if not ask.moves:
        return True
    if ask.how == "swap":
        away = clean[span, c] - clean[span, of.channel(ask.channels[1])]
    elif ask.how == "sluggish":
        away = clean[span, c] - clean[span, c].mean()
    else:
        away = clean[span, c] - clean[first - 1, c]
    return bool(np.sqrt(np.mean(away**2)) >= ask.moves)


def place(of: Machine, seed: int, clean: np.ndarray) -> tuple[Event, ...]:
    """Eight to eleven faults of different kinds with rows and sizes; each word of the machine comes."""
    rng = generator(seed, of.name, 13)
    longest = 450 if rng.uniform() < 0.4 else 0  # some streams have a fault that takes its time
    most = MOST if longest else rng.uniform(750, MOST)
    for attempt in range(20_000):
        if attempt == 4000:
            longest, most = 0, MOST
        chosen = rng.permutation(len(of.asks))[: int(rng.integers(8, min(len(of.asks), 11) + 1))]
        asks = [of.asks[i] for i in chosen]
        lasts = [int(np.exp(rng.uniform(*np.log(ask.lasts)))) + ask.tail for ask in asks]
        if not FEWEST <= sum(lasts) <= most or max(lasts) < longest:
            continue
        if {ask.says for ask in asks} != {ask.says for ask in of.asks}:
            continue
        events: list[Event] = []
        for ask, long in zip(asks, lasts, strict=True):
            for _ in range(600):
                first = int(rng.integers(SOUND_FIRST + 50, ROWS - long - 50))
                if any(first < e.last + GAP and first + long + GAP > e.first for e in events):
                    continue
                if _seen(ask, of, clean, first, first + long):
                    size = ask.low if ask.low == ask.high else float(np.exp(rng.uniform(*np.log([ask.low, ask.high]))))
                    events.append(Event(ask, first, first + long, size * (ask.sign or int(rng.choice([-1, 1])))))
                    break
        if len(events) == len(asks):
            return tuple(sorted(events, key=lambda event: event.first))
    raise ValueError(f"no room for eight faults in {of.name}")


def stream(of: Machine, seed: int, events: tuple[Event, ...] = ()) -> Stream:
    """One run as a stream, with its faults as labels."""
    faults = tuple(
        Fault(e.ask.kind, e.first, e.last, tuple(map(of.channel, e.ask.channels)), e.ask.says) for e in events
    )
    return Stream(f"{of.name}/{seed}", of.kind, simulate(of, seed, events), faults)
