"""Measure the cost of a model on an emulated target (memory, instructions, stack, flash), and compare it with limits."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from pykernel.dialect import Array, is_choice
from pykernel.errors import CheckFailed, UserError, shown_option
from pykernel.host.model import HostModel
from pykernel.spec.model import Spec
from pykernel.tuning.combinations import Content

SAMPLES = 200
"""Number of samples that are emulated, from the stream's second half."""
INSTRUCTIONS = 40_000_000
"""Emulation of a stream ends after this many instructions.

Models with soft floating point may reach this limit before the last sample.
"""

NAMELESS = {"name": "model"}
"""The name of every model in a task, because the user's name must not change the task."""

HEADROOM = 0.96
"""Fraction of the instruction limit that a model without a proved bound may use.  The rest is a reserve, because at the
end of a plan, a longer search for the worst case usually finds a slightly more expensive call.
"""
CODE = 24 * 1024
"""Bytes of flash that are assumed for the code of a model that was not measured.  Its constants are added.

On a Cortex-M4F at -O2 the default models take at most 17 KB, including constants (docs/data/default-cost.csv).  Models
with subspaces took 20 to 49 KB when they were last measured.  All other models take less than 24 KB
(streaming-cost.csv, training-cost.csv, signal-cost.csv).
"""
ASKED = ("predict", "classify", "novelty")
CALLS = ("update", "push", "push_labelled", *ASKED)
"""The functions to which limits of instructions and cycles apply."""

_tables: dict[Any, tuple[set[str], int]] = {}
"""``choices`` of a spec -> (parameters that are tables in the generated C code, bytes of all other tables in this code)."""
_unread: dict[Any, tuple[str, ...]] = {}
"""``choices`` of a spec -> the fields that the generated C code does not read.  The fields are cached for later
searches in this process, because finding them takes longer than the rest of a search that only reads stored results."""


def choices(spec: Spec) -> tuple[Any, ...]:
    """Return the values, apart from sizes, that determine which fields the generated C code has."""
    config, fields = spec.config, spec.program.parameters
    values = tuple((name, int(getattr(config, name))) for name, kind in fields.items() if is_choice(kind))
    return (spec.learning.rule, spec.label_kind, spec.precision, values)


def unread_fields(spec: Spec) -> tuple[str, ...]:
    """Return the fields that the generated C code leaves out."""
    from pykernel.host.identity import specialised

    key = choices(spec)
    if key not in _unread:
        _unread[key] = tuple(sorted(specialised(spec).unread))
    return _unread[key]


def table_bytes(spec: Spec) -> int:
    """Return the number of bytes of flash that a model's constants take.  The generated header states the same number."""
    from pykernel.host.identity import specialised
    from pykernel.language.ir import Named, Parameter, walk

    key = choices(spec)
    if key not in _tables:
        nodes = [node for f in specialised(spec).functions.values() for node in walk(f.body)]
        arrays = [node for node in nodes if isinstance(node, Named | Parameter) and isinstance(node.kind, Array)]
        constants = {node.name: node.constant.value(spec.real).nbytes for node in arrays if isinstance(node, Named)}
        _tables[key] = {node.name for node in arrays if isinstance(node, Parameter)}, sum(constants.values())
    names, fixed = _tables[key]
    kinds = [spec.program.parameters[name] for name in names]
    return fixed + sum(math.prod(kind.shape(spec.capacities)) * kind.scalar.dtype(spec.real).itemsize for kind in kinds)


def cost_task(content: Content, target: str, tries: int = 0) -> Content:
    """Return the task that measures a model on a target with ``target_costs``."""
    return {
        "do": "cost",
        "spec": content | NAMELESS,
        "target": target,
        "tries": tries,
        "generator": generator_digest(),
    }


def memory_bytes(spec: Spec) -> dict[str, int]:
    """Return a dict with the bytes of NAME_t, as the generated header states them.

    "state_bytes" is the learned state, "work_bytes" the rest of the struct, and "ram_bytes" the whole struct.
    """
    layout = spec.memory(unread_fields(spec)).layout
    state = spec.program.state_bytes(layout)
    return {"state_bytes": state, "work_bytes": layout.nbytes - state, "ram_bytes": layout.nbytes}


def target_costs(
    spec: Spec, x: np.ndarray, y: np.ndarray, name: str, samples: int = SAMPLES, tries: int = 0
) -> dict[str, Any]:
    """Measure instructions, stack and flash of a model on an emulated target, beginning in the middle of a stream.

    The model learns the first half of the stream on the host.  The device continues from the host's state for ``samples`` samples or
    INSTRUCTIONS instructions, and its memory is compared with the host's, byte for byte.  With a signal stage, ``samples`` is a number of
    raw samples, which is rounded up to whole steps, at least two.
    x: (rows, DIM), without gaps.  y: labels, without gaps, in the form that HostModel.update takes; if there are no labels, None or an
    array of shape (rows, 0).
    tries: number of tries in the search for the most expensive call (``worst_call``) of the update or, if the model
    does not learn, of the main question (usually predict).  If a bound is proved for this function, there is no search.
    If tries is 0, nothing is searched, and no bounds are proved.

    Returns a dict.  For the update (if the model learns) and for the main question, it has the mean and the maximum number of
    instructions, and "worst" if there was a search.  With a signal stage, these are the counts of NAME_push and of the call that answers
    the main question for the newest features.  For an AVR, cycles are counted instead of instructions.  The other keys are "bounds" (if
    ``tries`` is not 0), "flash_bytes" (everything that is linked), "ram_bytes" (the struct), "stack_bytes", "samples" and
    "updates_refused".  If the model does not fit the target or its emulation stops, the only key is
    "refused", which has the reason.

    Raises UserError if a tool is missing, and CheckFailed if the device's memory differs from the host's.
    """
    from pykernel.gen.project import build as generated
    from pykernel.gen.streams import as_taken
    from pykernel.targets import bound, build, check, process_runner, unicorn_runner, worst
    from pykernel.targets.target import find_target

    x, y = as_taken(spec, x, y)
    target, chain, emulator = check.choose([name], None, find_target(name).counting)[0]
    project = generated(spec)
    device: unicorn_runner.UnicornModel | process_runner.ProcessModel
    try:
        image = build.model_image(project, target, chain)
        if emulator == "unicorn":
            device = unicorn_runner.UnicornModel(project, image)
            device.paint_stack()
        else:
            device = process_runner.ProcessModel(project, target, chain)
    except UserError as error:
        return {"refused": str(error)}
    host = HostModel(spec, project.drop, raw=True)
    half, program = len(x) // 2, spec.program
    learns, samples = program.learns, spec.stride * -(-max(samples, 2 * spec.stride) // spec.stride)
    if learns:
        host.update(x[:half], y[:half])
        host.call("train")  # has no effect if the model has no NAME_train
    device.memory.bytes[:] = host.memory.bytes
    end, last = device.spent + INSTRUCTIONS, min(half + samples, len(x))
    done, refused = half, 0
    try:
        while done < last and device.spent < end:
            part = slice(done, min(done + device.at_once, last))
            _, statuses = device.prequential(x[part], y[part])
            done, refused = part.stop, refused + int((statuses < 0).sum())
    except CheckFailed as error:
        return {"refused": str(error)}
    host.prequential(x[half:done], y[half:done])
    if bytes(device.memory.bytes) != bytes(host.memory.bytes):
        raise CheckFailed(f"{name}: the C code differs from the simulation after {done - half} samples")
    names = {name: name for name in device.costs} | {**program.answering, program.learner: "update"}
    costs: dict[str, Any] = {
        names[call]: {"mean": round(float(np.mean(counts)), 1), "max": max(counts)} if counts else None
        for call, counts in device.costs.items()
    }
    call = program.learner if learns else program.asks
    if tries and costs[names[call]]:
        bounds = {name: asdict(proved) for name, proved in bound.call_bounds(project, image).items()}
        costs["bounds"] = {names.get(name, name): proved for name, proved in bounds.items()}
        if bounds[call]["instructions"] is None and isinstance(device, unicorn_runner.UnicornModel):
            most = worst.worst_call(device, call, x[half:done], y[half:done], tries=tries)
            costs[names[call]]["worst"] = most.instructions
    device.call("selftest")  # this call may need more stack than all other calls
    return costs | {
        "flash_bytes": image.flash_bytes,
        "ram_bytes": project.figures["ram_bytes"],
        "stack_bytes": device.stack_bytes,
        "samples": done - half,
        "updates_refused": refused,
    }


@functools.cache
def generator_digest() -> str:
    """Return a digest of the tools that turn a spec into instructions: pykernel's generator and targets, the compiler and the emulator."""
    digest = hashlib.sha256()
    for package in ("language", "gen", "targets", "data.gen", "data.runtime_c", "data.targets"):
        entries = importlib.resources.files(f"pykernel.{package}").iterdir()
        for file in sorted((each for each in entries if each.is_file()), key=lambda each: each.name):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    for wheel in ("ziglang", "unicorn"):
        try:
            digest.update(f"{wheel} {importlib.metadata.version(wheel)}\0".encode())
        except importlib.metadata.PackageNotFoundError:
            digest.update(f"{wheel} missing\0".encode())
    return digest.hexdigest()


# -------------------------------------------------------------------------------------------------------------- limits


@dataclass(frozen=True)
class Limits:
    """Limits for a model: bytes of RAM and flash, and instructions and cycles of a single call.

    With a target, RAM includes the struct and the stack, flash includes everything that is linked, and a call's cost is the proved
    bound or, if there is no bound, the worst case that was found.  Without a target, RAM is the struct alone, and flash is the constants
    plus CODE.
    """

    target: str | None = None
    ram: int | None = None
    flash: int | None = None
    instructions: int | None = None
    cycles: int | None = None

    def uses(self, **taken: int | None) -> dict[str, float]:
        """Return the used fraction of each limit."""
        return {
            name: used / limit
            for name, used in taken.items()
            if used is not None and (limit := getattr(self, name)) is not None
        }


def flash_of(result: Mapping[str, Any]) -> int:
    """Estimate the bytes of flash of a model that was not measured."""
    return int(result.get("table_bytes", 0)) + CODE


def make_limits(
    target: str | None, ram: int | None, flash: int | None, instructions: int | None, cycles: int | None = None
) -> Limits:
    """Return the limits.  If RAM or flash is not limited, the limit is that of the microcontroller that represents the target.

    Without a target, only RAM is limited.

    Raises UserError if this microcontroller has less RAM or flash than a limit allows.  If cycles are limited, also raises UserError if
    the target's cycles are not known, or if gcc is missing.
    """
    from pykernel.targets import build, decode
    from pykernel.targets.target import find_target

    if target is None:
        return Limits(None, ram)
    part = find_target(target).part
    for name, limit, there in (("ram", ram, part.ram.bytes), ("flash", flash, part.flash.bytes)):
        if limit is not None and limit > there:
            raise UserError(
                f"{shown_option(name)} is {limit:,} bytes, but {part.name}, which represents {target}, has {there:,}"
            )
    if cycles is not None and target not in decode.EXACT:
        raise UserError(
            f"{shown_option('cycles')}: on {target}, a cycle count cannot be derived from the instruction count; give {shown_option('instructions')} instead, or {shown_option('target')} {' or '.join(decode.EXACT)}"
        )
    if cycles is not None:
        # raises UserError if gcc is missing: bounds are proved only for code that gcc compiled
        build.toolchain(find_target(target), "gcc")
    return Limits(target, ram or part.ram.bytes, flash or part.flash.bytes, instructions, cycles)


def called(costs: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the counts of the calls to which limits apply: instructions or, for an AVR, cycles."""
    counted = costs | costs.get("times", {})
    return {name: counted[name] for name in CALLS if counted.get(name)}


def taken(costs: Mapping[str, Any], limits: Limits, headroom: float = 1.0) -> tuple[dict[str, int], dict[str, float]]:
    """Return the costs of a measured model and the used fraction of each limit.  Both results are empty if the model was not measured.

    headroom: fraction of the instruction limit that a model without a proved bound may use.
    """
    calls = called(costs)
    if costs.get("refused") or not calls:
        return {}, {}
    bounds = [costs.get("bounds", {}).get(name, {}) for name in calls]
    proved = [bound.get("instructions") for bound in bounds]
    counted = (call.get("worst") or call["max"] for call in calls.values())
    amounts = {
        "ram": int(costs["ram_bytes"] + costs["stack_bytes"]),
        "flash": int(costs["flash_bytes"]),
        "instructions": int(max(most or count for most, count in zip(proved, counted, strict=True))),
    }
    if all(bound.get("cycles") and not bound["estimated"] for bound in bounds):
        amounts["cycles"] = max(bound["cycles"] for bound in bounds)
    uses = limits.uses(**amounts)
    if "instructions" in uses and not all(proved):
        uses["instructions"] /= headroom
    return amounts, uses


def fits(uses: Mapping[str, float]) -> bool:
    """Return True if the model was measured and exceeds no limit."""
    return max(uses.values(), default=math.inf) <= 1
