"""Migrate a saved state to another spec: the learned model continues with other parameters, or another budget."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pykernel.dialect import Memory
from pykernel.engine.choice import Engine
from pykernel.engine.engines import make_executor
from pykernel.engine.executor import Executor
from pykernel.errors import UserError, shown_option
from pykernel.host import snapshot
from pykernel.host.identity import identity
from pykernel.host.model import HostModel
from pykernel.spec.base import require_order
from pykernel.spec.model import Spec, make_spec, shown_value


@dataclass(frozen=True)
class Migrated:
    """A state for the new spec.  changed: the keys in which the two specs differ.  removed: how many vectors were
    removed.
    """

    data: bytes  # the snapshot
    changed: tuple[str, ...]
    vectors: int | None  # number of vectors in the new state, or None for a model without vectors
    removed: int


def migrate(old: Spec, data: bytes, new: Spec, where: str = "the snapshot", engine: Engine | None = None) -> Migrated:
    """Turn a snapshot of ``old`` into a snapshot of ``new`` with the same state.

    The specs may differ in parameters that control further learning, and in the budget.  With a larger budget, the
    memory for the additional vectors is zero, and the answers are the same bit for bit.  If the state has more vectors
    than a smaller budget allows, the old model's reduction removes vectors one by one, in O(N^2 + N D) for each vector.
    where: the beginning of the message about a refused snapshot.  Raises UserError if the state cannot be migrated.
    """
    stored = snapshot.read(old, data, where, engine)
    if not new.program.persistent:
        raise UserError(
            f"{new.name}: learns nothing on the device, so it cannot continue from a state; {_frozen(old, where)}"
        )
    budget = old.program.budget if new.program.budget is not None else None
    require_meaning(old, new, where)
    memory, removed = stored.memory, 0
    if budget is not None:
        memory, removed = _reduced(old, stored.memory, new.capacities[budget.capacity], where, engine)
    model = HostModel(new, engine=engine)
    for struct in new.program.persistent:
        for name in struct.fields:
            target, source = model.memory.field(name), memory.field(name)
            both = tuple(slice(min(sizes)) for sizes in zip(target.shape, source.shape, strict=True))
            target[both] = source[both]
        for name, unit, power in struct.units:
            model.memory.field(name)[...] *= (getattr(new.config, unit) / getattr(old.config, unit)) ** power
    if not snapshot.is_valid(new, model.memory, engine):
        raise UserError(
            f"{where}: holds a number that is beyond a limit of {new.name}; give {new.name} the limits of {old.name}"
            f"{_told(_changes(old, new))}"
        )
    vectors = int(model.memory.field("n")[0]) if budget is not None else None
    return Migrated(snapshot.save(model, stored.sequence), tuple(_changes(old, new)), vectors, removed)


def _reduced(old: Spec, memory: Memory, room: int, where: str, engine: Engine | None) -> tuple[Memory, int]:
    """Reduce a state to at most ``room`` vectors.  Returns the state, and how many vectors were removed."""
    budget, count = old.program.budget, int(memory.field("n")[0])
    assert budget is not None
    excess = max(0, count - room)
    if not excess:
        return memory, 0
    if budget.remove is None:
        raise UserError(
            f"{where}: holds {count} vectors, but the new spec has room for only {room}, and a migration cannot remove vectors "
            f"from this model ({old.learning.rule}, {old.precision}); {_frozen(old, where, room)}"
        )
    smaller = old.memory()
    smaller.copy_from(memory)
    config = budget.remove.settings(old.program, old.real, old.config_values, old.capacities)
    executor: Executor = make_executor([budget.remove.kernel], smaller, config, engine)
    for _ in range(excess):
        if executor.call(budget.remove.kernel) < 0:
            raise UserError(
                f"{where}: a multiplier would leave its range if one more vector were removed; {_frozen(old, where, room)}"
            )
    return smaller, excess


def _meaning(spec: Spec, capacity: str) -> dict[str, str]:
    """Return the facts that decide what the values in a state mean, except for names, the capacity of this name, units that
    ``migrate`` converts, and the types, shapes and offsets of fields.
    """
    units = (parameter for struct in spec.program.persistent for _, parameter, _ in struct.units)
    left = {f"capacity {capacity}", *units, *(f"names of {what}" for what in spec.names)}
    facts = {name: fact for name, fact in identity(spec).meaning.items() if name not in left}
    fields = {name: fact for name, fact in facts.items() if name.startswith("field ")}
    return {name: fact for name, fact in facts.items() if name not in fields} | {name: "" for name in fields}


def require_meaning(old: Spec, new: Spec, where: str) -> None:
    """Raise UserError if the values of a state of ``old`` would have another meaning in ``new``. The budgets may
    differ.

    The message names the responsible keys.  where: how the message names the state.
    """
    require_order(old.names, new.names, where, new.name)
    budget = old.program.budget if new.program.budget is not None else None
    capacity = budget.capacity if budget is not None else ""

    mine = _meaning(old, capacity)
    if mine == _meaning(new, capacity):
        return
    content = tomllib.loads(old.to_toml(complete=True))
    blamed = []
    for key, (before, after) in _changes(old, new).items():
        section, _, name = key.strip("[").rpartition("] ")
        changed = content | ({section: content.get(section, {}) | {name: after}} if section else {name: after})
        try:
            tried: Mapping[str, str] | None = _meaning(make_spec(changed, custom=old.custom), capacity)
        except UserError:
            tried = None  # the new value cannot be combined with the old values of the other keys
        if tried != mine:
            blamed.append(f"{key} is {shown_value(after)}, and was {shown_value(before)}")
    if not blamed:
        blamed = ["the custom kernel differs" if old.custom != new.custom else "its fields differ"]
    raise UserError(
        f"{new.name}: {'; '.join(blamed[:3])}: the values of the state would have another meaning; change this back, or "
        f"{_frozen(old, where)}"
    )


def _changes(old: Spec, new: Spec) -> dict[str, tuple[Any, Any]]:
    """Return key -> (old value, new value) for keys that differ.  The model's name is ignored."""
    before, after = (
        {"precision": spec.precision} | {f"[{section}] {key}": value for section, key, _, value in spec.given_keys()}
        for spec in (old, new)
    )
    keys = dict.fromkeys([*before, *after])
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


def _frozen(old: Spec, where: str, vectors: int | None = None) -> str:
    few = "VECTORS" if vectors is None else str(vectors)
    return f"make a frozen model from the state: import {old.name}.toml with {shown_option('start')} {where} and {shown_option('vectors')} {few}"


def _told(changes: Mapping[str, tuple[Any, Any]]) -> str:
    keys = [key for key in changes if "max_abs" in key or "clip" in key or "limit" in key]
    return f": {', '.join(keys)}" if keys else ""
