"""Choosing a model for a device: the smallest error within limits of RAM, flash and instructions, checked on the target.

Costs come first: the largest size of each rule and technique that fits is found on the emulated target, then only what
fits is tuned; the winner is run again with the tuned values, compared byte for byte and searched for its worst case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from pykernel.errors import CheckFailed, UserError
from pykernel.parallel import Workers
from pykernel.spec.model import Spec, make_spec
from pykernel.tuning.columns import (
    Show,
    left_out,
    likely_inputs,
    numeric_columns,
    read_columns,
    round_limit,
    uneven,
    without_times,
)
from pykernel.tuning.sweep import (
    ROUNDS,
    Combination,
    Content,
    Data,
    Group,
    Knob,
    Score,
    combine,
    cost_task,
    knobs,
    know_memory,
    results,
    search,
    typical_distance,
)

LEAST, MOST = 4, 256
"""Sizes that a plan considers."""
SHARES = (1.0, 0.7, 0.5)
"""Sizes that are tuned, in parts of the largest that fits: more vectors are not always better."""
PROBES = 7
"""Most sizes of one rule and technique that are measured."""
CLOSE = 1.15
"""Sizes are told apart up to this factor."""
HEADROOM = 0.96
"""Part of the instructions that a measured size may use: the longer search for the worst case finds a little more."""
EAGER, CALM = 0.9, 0.2
"""Learning rates that costs are measured with: most samples are then stored, which is what takes most instructions; the
second where a model diverges with the first."""
CALLS = ("predict", "update", "classify")
"""What the limit of instructions is for."""
TRIES = 200
"""Of the search for the most expensive update, for each size that is measured; the winner gets more."""
VERIFIED = 12
"""Most models that are verified, from the best on, before the plan is given up."""
EMULATED = 600_000_000
"""About so many instructions of the stream are emulated to verify a model."""


class NothingFits(CheckFailed):
    """No model that was tried keeps all limits.  The command exits with 1."""


@dataclass(frozen=True)
class Limits:
    """What a model may take of a target: bytes of RAM (struct and stack) and of flash (all that is linked), and
    instructions of a single call of predict or update, in the worst case that is found."""

    target: str
    ram: int
    flash: int
    instructions: int | None = None

    def uses(self, ram: int | None, flash: int | None, instructions: int | None) -> dict[str, float]:
        """The part of each limit that is used."""
        every = {
            "ram": (ram, self.ram),
            "flash": (flash, self.flash),
            "instructions": (instructions, self.instructions),
        }
        return {name: used / limit for name, (used, limit) in every.items() if used is not None and limit is not None}


def parse_amount(text: str, option: str, thousand: int = 1024) -> int:
    """A number such as 4k, 4kB, 4KiB, 0.5M or 4096; ``thousand``: what k stands for."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([kKmM]?)(?:i?[bB])?\s*", text, re.ASCII)
    if found is None or len(text) > 30:
        raise UserError(f"{option} is {text[:40]!r}; it must be a number such as 4k, 4kB or 4096")
    amount = float(found[1]) * thousand ** {"": 0, "k": 1, "m": 2}[found[2].lower()]
    if amount < 1:
        raise UserError(f"{option} is {text!r}; it must be at least 1")
    if amount >= 2**40:
        raise UserError(f"{option} is {text!r}, which no microcontroller has; is the unit right?")
    return int(amount)


def make_limits(target: str, ram: int | None, flash: int | None, instructions: int | None) -> Limits:
    """Limits, with the target's part for what is not given.  Raises UserError if the part has less."""
    from pykernel.targets.target import find_target

    part = find_target(target).part
    for option, given, there in (("--ram", ram, part.ram.bytes), ("--flash", flash, part.flash.bytes)):
        if given is not None and given > there:
            raise UserError(f"{option} is {given:,} bytes, but {part.name}, which stands for {target}, has {there:,}")
    return Limits(target, ram or part.ram.bytes, flash or part.flash.bytes, instructions)


# --------------------------------------------------------------------------------------------- a spec from the data


@dataclass(frozen=True)
class Inferred:
    """A spec made from data alone, the data, and what was assumed, in sentences."""

    spec: Spec
    x: np.ndarray
    y: np.ndarray
    assumed: list[str]


def infer(file: BinaryIO, name: str, inputs: Sequence[str], label: str | None, show: Show | None = None) -> Inferred:
    """A spec for a table of text with a header line.

    inputs: names of columns; all with different numbers but the label and times, if empty.  label: a column's name; the
    last of those with numbers, if not given.  A label that is not numbers is a class.  Limits are the next of 1, 2, 5, 10, ... above twice
    the largest magnitude.  Inputs are standardised if their scales differ by more than 4, or are far from zero.
    """
    _, columns = read_columns(file, name, show, inputs, label)
    numeric = numeric_columns(columns)
    if label is None:
        others = without_times(numeric, [column for column in numeric if column not in inputs])
        if not others:
            raise UserError(f"{name}: has no column of numbers that could be the label; give --label")
        label = others[-1]
    assumed = [f"label {label}"]
    chosen = list(inputs) or likely_inputs(numeric, label)
    for column in chosen:
        if column not in numeric:
            raise UserError(f"{name}: column {column!r} does not hold numbers; leave it out of --inputs")
    if not inputs:
        without = left_out(columns, numeric, [*chosen, label])
        assumed[:0] = [f"inputs {', '.join(chosen)}"] + ([f"without {', '.join(without)}"] if without else [])
    if not chosen:
        raise UserError(f"{name}: has no column of different numbers beside the label {label!r}; give --inputs")
    x = np.column_stack([numeric[column] for column in chosen])
    gaps = int(np.isnan(x).any(axis=1).sum())
    if gaps:
        assumed.append(f"{gaps:,} rows without a number for each input: neither predicted nor learned")
    part: Content = {"columns": chosen, "max_abs": round_limit(x)}
    if uneven(x):
        part["standardise"] = True
        assumed.append("inputs standardised: their scales differ, or are far from zero")
    assumed.append(f"input limit {part['max_abs']:g}")
    if label in numeric:
        y = numeric[label]
        named: Content = {"column": label, "max_abs": round_limit(y)}
        assumed.append(f"label limit {named['max_abs']:g}")
    else:
        cells = [cell.strip() for cell in columns[label]]
        classes = sorted({cell for cell in cells if cell})
        named = {"column": label, "classes": classes}
        positions = {kind: i for i, kind in enumerate(classes)} | {"": -1}
        y = np.array([positions[cell] for cell in cells], np.int32)
        assumed.append(f"{len(classes)} classes")
    content: Content = {"name": "planned", "input": part, "label": named}
    spec = make_spec(content | {"kernel": {"sigma": 1.0}}, name)
    sigma = float(f"{typical_distance(spec, x) / 2:.3g}")
    return Inferred(make_spec(content | {"kernel": {"sigma": sigma}}, name), x, y, assumed)


# ---------------------------------------------------------------------------------------------- what fits the limits


@dataclass
class Fit:
    """The search for the largest size of a combination that keeps the limits.

    fits, fails: sizes, the largest and the smallest known; misses: what failed, with the part of each limit it used.
    """

    combination: Combination
    limits: Limits
    values: dict[str, float]  # measured with
    most: int  # by RAM alone
    fits: int | None = None
    fails: int | None = None
    misses: tuple[dict[str, Any], ...] = ()
    known: tuple[tuple[int, float], ...] = ()  # sizes and the part of the instructions that they used

    def next(self) -> int | None:
        """The next size to be measured; None if there is no more to learn."""
        if self.combination.budget is None:
            return None if self.fits or self.fails else self.most
        # the largest that is known to fit, and the smallest that is known not to
        low, high = self.fits or LEAST - 1, min(self.fails or self.most + 1, self.most + 1)
        if high - low <= 1 or (self.fits and high <= CLOSE * self.fits):
            return None
        if not self.known and not self.misses:
            return self.most
        if self.fits is None and high <= CLOSE * LEAST:
            return LEAST
        return min(max(self._guess(), low + 1), high - 1)

    def _guess(self) -> int:
        """The size that would just fit, if instructions grow as a power of the size; else the middle."""
        if self.known:
            size, used = self.known[-1]
            power = 1.5
            if len(self.known) > 1 and self.known[-2][0] != size:
                other, also = self.known[-2]
                power = min(max(math.log(used / also) / math.log(size / other), 0.5), 3.0)
            return math.floor(size * (0.99 * HEADROOM / used) ** (1 / power))
        return ((self.fits or LEAST) + (self.fails or self.most)) // 2

    def take(self, size: int, costs: Mapping[str, Any]) -> None:
        """What was measured at a size."""
        if costs.get("updates_refused") and self.values.get("learning.eta") == EAGER:
            self.values = {**self.values, "learning.eta": CALM}
            return
        if costs.get("refused") or not costs.get("update"):
            reason = costs.get("refused") or "refuses every update"
            self._fail(size, {"reason": reason, "uses": {}})
            return
        uses, amounts = _uses(costs, self.limits)
        if "instructions" in uses:
            self.known = (*self.known, (size, uses["instructions"]))
        if max(uses.values()) <= 1 and uses.get("instructions", 0) <= HEADROOM:
            self.fits = size
            return
        self._fail(size, {"uses": uses} | amounts)
        if uses["flash"] > 1 and size > LEAST:  # which hardly depends on the size: one more try
            self.fails = LEAST + 1
        if uses["ram"] > 1:  # the stack, which hardly depends on the size: the least is tried in any case
            most = _largest(self.combination, self.values, self.limits.ram - costs["stack_bytes"])
            self.most = min(size - 1, max(LEAST, most))

    def _fail(self, size: int, miss: dict[str, Any]) -> None:
        self.fails = min(self.fails or size, size)
        name = {"rule": self.combination.rule, "technique": self.combination.technique}
        self.misses = (*self.misses, name | {"size": size if self.combination.budget else None} | miss)


def _uses(costs: Mapping[str, Any], limits: Limits) -> tuple[dict[str, float], dict[str, int]]:
    """The part of each limit that a measured model uses, and the amounts."""
    amounts = {
        "ram": int(costs["ram_bytes"] + costs["stack_bytes"]),
        "flash": int(costs["flash_bytes"]),
        "instructions": int(max(costs[call]["worst"] or costs[call]["max"] for call in CALLS if costs.get(call))),
    }
    return limits.uses(**amounts), amounts


def _largest(combination: Combination, values: Mapping[str, float], ram: int) -> int:
    """The largest size whose struct is within so many bytes; below LEAST if there is none."""
    from pykernel.tuning.costs import memory_bytes

    def within(size: int) -> bool:
        try:
            spec = make_spec(combination.with_values(size, values))
        except UserError:
            return False
        return memory_bytes(spec)["ram_bytes"] <= ram

    if combination.budget is None:
        return MOST if within(MOST) else 0
    low, high = LEAST - 1, MOST + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if within(middle) else (low, middle)
    return low


def _typical(combination: Combination, every: Sequence[Knob]) -> dict[str, float]:
    """Values to measure costs with: usual ones, with everything that takes memory."""
    usual = {"learning.eta": EAGER, "learning.forgetting": 0.999}
    values = {}
    for knob in every:
        if combination.means(knob.section, knob.key):
            if knob.name in usual:
                values[knob.name] = usual[knob.name]
            elif knob.key == "sigma":
                values[knob.name] = knob.value(knob.grid[len(knob.grid) // 2])
    return values


def _possible(combination: Combination, values: Mapping[str, float]) -> bool:
    try:
        make_spec(combination.with_values(LEAST, values))
    except UserError:
        return False
    return True


def fit(combinations: Sequence[Combination], data: Data, base: Spec, limits: Limits, workers: Workers) -> list[Fit]:
    """The largest size of each combination that keeps the limits, by measuring some on the emulated target."""
    from pykernel.tuning.costs import memory_bytes

    every = knobs(typical_distance(base, data.x))
    typical = [_typical(combination, every) for combination in combinations]
    pairs = list(zip(combinations, typical, strict=True))
    know_memory((c.with_values(LEAST, values) for c, values in pairs if _possible(c, values)), workers)
    fits = []
    for combination, values in pairs:
        found = Fit(combination, limits, values, _largest(combination, values, limits.ram))
        if found.most < LEAST:
            try:
                ram = memory_bytes(make_spec(combination.with_values(LEAST, values)))["ram_bytes"]
                found._fail(LEAST, {"uses": limits.uses(ram, None, None), "ram": ram})
            except UserError as error:
                found._fail(LEAST, {"uses": {}, "reason": str(error).removeprefix("spec: ")})
        fits.append(found)
    for _ in range(PROBES):
        asked = [(found, size) for found in fits if (size := found.next()) is not None]
        if not asked:
            break
        tasks = [cost_task(f.combination.with_values(size, f.values), limits.target, TRIES) for f, size in asked]
        for (found, size), costs in zip(asked, workers.run(tasks), strict=True):
            found.take(size, costs)
    return fits


# ----------------------------------------------------------------------------------------------------------- the plan


@dataclass(frozen=True)
class Plan:
    """What a plan found.

    row: the winner, as of a sweep; verified: its measurements on the target; uses: the part of each limit.  rows: all
    that fit, best first; refused: what could not be used, with the reason; misses: what did not fit.
    """

    row: dict[str, Any]
    verified: dict[str, Any]
    limits: Limits
    uses: dict[str, float]
    rows: list[dict[str, Any]]
    refused: list[dict[str, Any]]
    misses: list[dict[str, Any]]


def make_plan(
    base: Spec,
    data: Data,
    limits: Limits,
    workers: Workers,
    chosen_rules: Sequence[str],
    chosen_techniques: Sequence[str],
    by: Score,
    rounds: int = ROUNDS,
    say: Callable[[str], None] = lambda text: None,
) -> Plan:
    """The model of smallest error that keeps the limits.  Raises NothingFits, with the nearest miss, if there is none."""
    combinations, refused = combine(base, chosen_rules, chosen_techniques)
    say(
        f"measuring which sizes fit {limits.target}: {len(combinations)} rules and techniques, up to {PROBES} sizes each"
    )
    fits = fit(combinations, data, base, limits, workers)
    misses = [miss for found in fits for miss in found.misses]
    groups = [group for found in fits for group in _groups(found, base, data)]
    if not groups:
        raise NothingFits(nearest_miss(_measured(fits, limits, workers), limits))
    bound = sum(group.bound(rounds) for group in groups)
    say(f"tuning the models that fit: at most {bound:,} runs over {len(data.x):,} rows, for {len(groups)} models")
    search(groups, workers, by, data.delay, rounds)
    rows, hopeless = results(groups, workers, by)
    if not rows:
        raise NothingFits(
            f"every model that fits diverges on this data; the first of {len(hopeless)}: {hopeless[0]['reason']}"
        )
    too_large: dict[tuple[str, Any], int] = {}
    tried = 0
    for row in rows:
        name = row["rule"], row["technique"]
        if row["size"] is not None and row["size"] >= too_large.get(name, math.inf):
            continue
        if tried == VERIFIED:
            break
        tried += 1
        say(f"verifying {' '.join(str(part) for part in (*name, row['size']) if part is not None)} on {limits.target}")
        measured = verify(make_spec(row["spec"]), data, limits.target)
        uses, miss = _verdict(row, measured, limits)
        if miss is None:
            return Plan(row, measured, limits, uses, rows, [*refused, *hopeless], misses)
        misses.append(miss)
        too_large[name] = row["size"] or 0
    raise NothingFits(nearest_miss(misses, limits))


def _groups(found: Fit, base: Spec, data: Data) -> list[Group]:
    """What of a combination is tuned."""
    if found.fits is None:
        return []
    sizes: Sequence[int | None] = [None]
    if found.combination.budget is not None:
        sizes = sorted({max(LEAST, int(found.fits * share)) for share in SHARES})
    every = knobs(typical_distance(base, data.x))
    return [Group(found.combination, size, every, base) for size in sizes]


def verify(spec: Spec, data: Data, target: str) -> dict[str, Any]:
    """A row of the check on the target: the data's first labelled rows, byte for byte, and the worst case found.

    Raises CheckFailed if the device's memory differs from the host's.
    """
    from pykernel.targets.check import check_targets

    usable = data.known & (np.abs(data.x) <= spec.input.max_abs).all(axis=1)
    x, y = data.x[usable], data.y[usable]
    first = check_targets(spec, [target], emulator="unicorn", stream=(x[:50], y[:50]), tries=0).rows[0]
    per_sample = sum(first[call]["max"] for call in CALLS if call in first) or EMULATED
    size = spec.capacities.get("N_MAX", 0)
    rows = min(len(x), max(2 * size + 50, min(2000, EMULATED // int(per_sample))))
    row = check_targets(spec, [target], emulator="unicorn", stream=(x[:rows], y[:rows])).rows[0]
    if not row["equal"]:
        raise CheckFailed(f"{target}: the C differs from the simulation: {row['first_difference']}")
    return row


def _verdict(
    row: Mapping[str, Any], measured: Mapping[str, Any], limits: Limits
) -> tuple[dict[str, float], dict[str, Any] | None]:
    """The part of each limit that a verified model uses; and the miss, if that is too much."""
    uses, amounts = _uses(measured, limits)
    name = {key: row[key] for key in ("rule", "technique", "size")}
    return uses, None if max(uses.values()) <= 1 else name | {"uses": uses} | amounts


def _measured(fits: Sequence[Fit], limits: Limits, workers: Workers) -> list[dict[str, Any]]:
    """All misses, and each combination's smallest model, measured: what RAM ruled out was only sized."""
    misses = [miss for found in fits for miss in found.misses if "flash" in miss["uses"] or not miss["uses"]]
    known = {(miss["rule"], miss["technique"]) for miss in misses if (miss["size"] or LEAST) == LEAST}
    small = [f for f in fits if (f.combination.rule, f.combination.technique) not in known]
    small = [f for f in small if _possible(f.combination, f.values)]
    tasks = [cost_task(f.combination.with_values(LEAST, f.values), limits.target, TRIES) for f in small]
    for found, costs in zip(small, workers.run(tasks), strict=True):
        if costs.get("update"):
            uses, amounts = _uses(costs, limits)
            found._fail(LEAST, {"uses": uses} | amounts)
        else:
            found._fail(LEAST, {"uses": {}, "reason": costs.get("refused") or "refuses every update"})
        misses.append(found.misses[-1])
    return misses


def _nearest(misses: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The miss whose worst excess is least."""
    return min((miss for miss in misses if miss["uses"]), key=lambda miss: max(miss["uses"].values()), default=None)


def nearest_miss(misses: Sequence[dict[str, Any]], limits: Limits) -> str:
    """A sentence on the model that came nearest to the limits."""
    allowed = [f"{limits.ram:,} bytes of RAM", f"{limits.flash:,} of flash"]
    if limits.instructions is not None:
        allowed.append(f"{limits.instructions:,} instructions")
    head = f"nothing fits {', '.join(allowed)} on {limits.target}"
    best = _nearest(misses)
    if best is None:
        return f"{head}: {misses[0]['reason']}" if misses else head
    name = " ".join(str(best[key]) for key in ("rule", "technique", "size") if best[key] is not None)
    units = {"ram": "bytes of RAM", "flash": "of flash", "instructions": "instructions"}
    takes = ", ".join(f"{best[key]:,} {units[key]}" for key in units if key in best)
    # what a plan with that limit would find to fit
    enough = dict(best) | {"instructions": _round_up(best["instructions"] / HEADROOM)}
    over = [
        f"--{key} {enough[key]}"
        for key, part in best["uses"].items()
        if part > (HEADROOM if key == "instructions" else 1)
    ]
    return f"{head}; the nearest is {name}, which takes {takes}: give {' and '.join(over)} or more"


def _round_up(value: float) -> int:
    """To two digits."""
    step = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step) * step
