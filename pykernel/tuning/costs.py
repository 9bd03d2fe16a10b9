"""What a model costs on a device: bytes of memory, and instructions, stack and flash on an emulated target."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import importlib.resources
from collections.abc import Iterable
from typing import Any

import numpy as np

from pykernel.dialect import is_choice
from pykernel.errors import CheckFailed, UserError
from pykernel.host.model import HostModel
from pykernel.parallel import Workers
from pykernel.spec.model import Spec
from pykernel.tuning.combinations import Content
from pykernel.tuning.stage import dump

SAMPLES = 200
"""Samples of the stream's second half that are emulated."""
INSTRUCTIONS = 40_000_000
"""Emulation of a stream ends after that many instructions: with soft floating point, before its last sample."""

_unread: dict[Any, tuple[str, ...]] = {}
"""Choices -> unread fields.  Results of earlier searches are used as well; without them, a search that only reads
results would specialise every kind of model again, which takes longer than everything else."""


def choices(spec: Spec) -> tuple[Any, ...]:
    """The values that decide which fields the generated C has.  Sizes are not among them."""
    config, fields = spec.config, spec.program.parameters
    values = tuple((name, int(getattr(config, name))) for name, kind in fields.items() if is_choice(kind))
    return (spec.learning.rule, spec.label_kind, spec.precision, values)


def unread_fields(spec: Spec) -> tuple[str, ...]:
    """Fields that the generated C does not have."""
    from pykernel.gen.model import specialised

    key = choices(spec)
    if key not in _unread:
        _unread[key] = tuple(sorted(specialised(spec).unread))
    return _unread[key]


def know_fields(specs: Iterable[Spec], workers: Workers) -> None:
    """Let workers find the unread fields of each kind of model among the specs that is not known yet.

    This takes a while; afterwards ``memory_bytes`` of these specs is fast.
    """
    missing = {key: spec for spec in specs if (key := choices(spec)) not in _unread}
    tasks = [
        {"do": "fields", "spec": _nameless(dump(spec)), "generator": generator_digest()} for spec in missing.values()
    ]
    for key, found in zip(missing, workers.run(tasks), strict=True):
        _unread[key] = tuple(found["unread"])


def cost_task(content: Content, target: str, tries: int = 0) -> Content:
    """The task of measuring a model on a target, as ``target_costs`` does."""
    how = {"target": target, "tries": tries, "generator": generator_digest()}
    return {"do": "cost", "spec": _nameless(content), **how}


def _nameless(content: Content) -> Content:
    """The model's name must not change the task."""
    return content | {"name": "model"}


def memory_bytes(spec: Spec) -> dict[str, int]:
    """state_bytes (what has been learned), work_bytes and ram_bytes (both) of NAME_t, as in the generated header."""
    layout = spec.memory(unread_fields(spec)).layout
    state = spec.program.state_bytes(layout)
    return {"state_bytes": state, "work_bytes": layout.nbytes - state, "ram_bytes": layout.nbytes}


def target_costs(
    spec: Spec, x: np.ndarray, y: np.ndarray, name: str, samples: int = SAMPLES, tries: int = 0
) -> dict[str, Any]:
    """Instructions, stack and flash of a model on an emulated target, from the middle of a stream on.

    The host learns the first half.  The device continues from this state for ``samples`` samples or INSTRUCTIONS, and
    is compared with the host, byte for byte.  x: (rows, DIM), y: as for HostModel.update ((rows, 0) or None without
    labels);
    both without gaps.  tries: number of tries in the search for the most expensive update (for a model that does not
    learn, the main question); see ``worst_call``.  With a signal stage, samples are raw samples; their number is that
    of whole steps, at least two.

    Returns mean, max and worst instructions of the update (if the model learns) and of the main question, usually
    predict; with a signal stage, these are NAME_push and NAME_forecast.  Also flash_bytes (everything that is linked),
    ram_bytes (the struct), stack_bytes, samples, updates_refused and equal.  Or only ``refused``: the reason why the
    model does not fit the target.  Raises UserError if a tool is missing.
    """
    from pykernel.gen.check import as_taken
    from pykernel.gen.project import build as generated
    from pykernel.targets import bound, build, check, unicorn_runner, worst

    x, y = as_taken(spec, x, y)
    target, chain, _ = check.choose([name], None, "unicorn")[0]
    project = generated(spec)
    try:
        image = build.model_image(project, target, chain)
    except UserError as error:
        return {"refused": str(error)}
    host = HostModel(spec, project.drop)
    half, program = len(x) // 2, spec.program
    learns, samples = program.learns, spec.stride * -(-max(samples, 2 * spec.stride) // spec.stride)
    if learns:
        host.update(x[:half], y[:half])
        host.call("train")  # does nothing for a model without a training
    device = unicorn_runner.UnicornModel(project, image)
    device.memory.bytes[:] = host.memory.bytes
    device.paint_stack()
    end = device.machine.instructions + INSTRUCTIONS
    done, refused = half, 0
    try:
        while done < min(half + samples, len(x)) and device.machine.instructions < end:
            _, statuses = device.prequential(x[done : done + 1], y[done : done + 1])
            done, refused = done + 1, refused + int(statuses[0] < 0)
    except CheckFailed as error:
        return {"refused": str(error)}
    host.prequential(x[half:done], y[half:done])
    equal = bytes(device.memory.bytes) == bytes(host.memory.bytes)
    stack = device.machine.stack_used()
    names = {name: name for name in device.costs} | {program.asks: spec.inner.program.asks, program.learner: "update"}
    costs: dict[str, Any] = {
        names[call]: {"mean": round(float(np.mean(counts)), 1), "max": max(counts), "worst": None, "bound": None}
        if counts
        else None
        for call, counts in device.costs.items()
    }
    call = program.learner if learns else program.asks
    if tries and costs[names[call]]:
        bounds = {name: dataclasses.asdict(found) for name, found in bound.call_bounds(project, image).items()}
        costs["bounds"] = {names.get(name, name): found for name, found in bounds.items()}
        for name in device.costs:
            if costs[names[name]]:
                costs[names[name]]["bound"] = bounds[name]["instructions"]
        if costs[names[call]]["bound"] is None:
            most = worst.worst_call(device, call, x[half:done], y[half:done], tries=tries)
            costs[names[call]]["worst"] = most.instructions
    return costs | {
        "flash_bytes": image.flash_bytes,
        "ram_bytes": project.figures["ram_bytes"],
        "stack_bytes": stack,
        "samples": done - half,
        "updates_refused": refused,
        "equal": equal,
    }


@functools.cache
def generator_digest() -> str:
    """Digest of the tools that turn a spec into instructions: our generator and targets, the compiler and the
    emulator.
    """
    digest = hashlib.sha256()
    for package in ("gen", "gen.templates", "runtime_c", "targets"):
        entries = importlib.resources.files(f"pykernel.{package}").iterdir()
        for file in sorted((each for each in entries if each.is_file()), key=lambda each: each.name):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    for wheel in ("ziglang", "unicorn"):
        try:
            digest.update(f"{wheel} {importlib.metadata.version(wheel)}\0".encode())
        except importlib.metadata.PackageNotFoundError:
            digest.update(f"{wheel} missing\0".encode())
    return digest.hexdigest()
