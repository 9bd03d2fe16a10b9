"""Compute two hashes of a model, one for the states that it accepts and one for the bits that it computes, and list the
fields that its C struct lacks.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np

from pykernel.algorithms.extents import EXPERT, LAST
from pykernel.algorithms.revisions import revision_of
from pykernel.algorithms.selftest import made_up, made_up_count
from pykernel.dialect import Kernel, ends_of, is_choice
from pykernel.dialect.program import Program
from pykernel.engine.engines import choices_of
from pykernel.language.functions import specialised_functions
from pykernel.language.ir import Parameter, walk
from pykernel.language.specialise import Specialised, reached_from
from pykernel.spec.model import Spec


def made_up_number(spec: Spec) -> Kernel:
    """Return the kernel that generates the self-test's pseudo-random numbers."""
    return made_up_count if spec.program.is_int16 else made_up


def specialised(spec: Spec) -> Specialised:
    """Return the functions that a model needs."""
    program = spec.program
    roots = (*(entry.kernel for entry in program.entries_for(spec.config)), made_up_number(spec))
    fields = tuple(name for struct in program.structs for name in struct.fields)
    return specialised_functions(roots, choices_of(spec.config), spec.real, fields)


@dataclass(frozen=True)
class Identity:
    """The facts that decide which states a model accepts and which bits it computes.  Each fact has a name and a text.

    meaning: facts about the layout and the meaning of the values in memory. rest: all other facts on which the computed
    bits depend.
    """

    drop: tuple[str, ...]  # fields that the C struct lacks
    meaning: Mapping[str, str]
    rest: Mapping[str, str]

    @property
    def state_kind(self) -> int:
        """NAME_STATE_KIND.

        Two models with the same value accept each other's states, if the values in the states are valid.
        """
        return _hash_of(self.meaning)

    @property
    def config_hash(self) -> int:
        """NAME_CONFIG_HASH.  Two models with the same value compute the same bits."""
        return _hash_of({**self.meaning, **self.rest})


def _hash_of(facts: Mapping[str, str]) -> int:
    text = "\n".join(f"{name} = {facts[name]}" for name in sorted(facts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


def identity(spec: Spec) -> Identity:
    """Return the facts that identify the states of this model.

    The facts do not include the source text of the algorithms, the model's name, parameters that only the self-test
    reads, or compiler options.  Instead of its source text, each algorithm contributes the two numbers of its
    ``Revision``.  One number is raised whenever the bits that the algorithm computes change, the other whenever its
    values in memory get another meaning.  A custom kernel has no ``Revision``, so every byte of its file is included.
    """
    program, config, precision = spec.program, spec.config, spec.real
    code = specialised(spec)
    drop = tuple(sorted(code.unread))
    layout = spec.memory(drop).layout
    reached = reached_from(code.functions, [entry.kernel.name for entry in program.entries_for(config)])
    read = {n.name for f in reached.values() for n in walk(f.body) if isinstance(n, Parameter)}
    tunable = frozenset().union(*(each.tunable for each in program.configs))
    unseen = frozenset().union(*(each.unseen for each in program.configs))
    revisions = {name: revision_of(name) for name in spec.algorithms}

    meaning: dict[str, str] = {"precision": spec.precision, "label": spec.label_kind}
    # the linear expert's sizes are left out, because its fields, which are facts below, determine them
    sizes = {name: size for name, size in spec.capacities.items() if name not in (EXPERT.text, LAST.text)}
    meaning |= {f"capacity {name}": str(size) for name, size in sizes.items()}
    # a state holds values by position, so other names, or the same names in another order, give it another meaning
    meaning |= {f"names of {what}": json.dumps(names) for what, names in spec.names.items() if any(names)}
    meaning |= {f"meaning of {name}": str(revision.meaning) for name, revision in revisions.items()}
    meaning |= {
        f"field {slot.name}": f"{slot.array.scalar} {slot.shape} at {slot.offset}"
        for slot in layout.slots
        if slot.struct and slot.offset < program.hashed_bytes(layout)
    }
    zero = np.append(getattr(spec, "offsets", ()), spec.label_offset)
    meaning |= {"what is 0 in counts": _exact(zero)} if zero.any() else {}
    if spec.custom is not None:
        meaning["custom kernel"] = hashlib.sha256(spec.custom.source).hexdigest()

    rest = {f"revision of {name}": str(revision.bits) for name, revision in revisions.items()}
    for owner in program.persistent:
        for name in set(owner.ranges) - set(drop):
            low, high = ends_of(owner.ranges[name], spec.capacities, config, precision)
            rest[f"range of {name}"] = f"{_exact(low)} to {_exact(high)}"
    parameters = {k: text for k, text in _parameters(program, config, read).items() if k not in unseen}
    meaning |= {name: text for name, text in parameters.items() if name not in tunable}
    rest |= {name: text for name, text in parameters.items() if name in tunable}
    return Identity(drop, meaning, rest)


def _parameters(program: Program, config: Any, read: set[str]) -> dict[str, str]:
    """Return the parameters on which the computed bits depend: choices that are not off, and numbers that the code reads."""
    found = {}
    for name, kind in program.parameters.items():
        value = getattr(config, name)
        # choices that are off are left out, so that adding a choice does not make older states invalid
        if is_choice(kind) and value:
            found[name] = kind(value).name if issubclass(kind, IntEnum) else "true"
        elif not is_choice(kind) and name in read:
            found[name] = _exact(value)
    return found


def _exact(value: Any) -> str:
    """Return the exact value of a number as text, or the shape and the digest of a table. The text is the same on every
    platform.
    """
    if isinstance(value, np.ndarray):
        table = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        return f"{table.shape} {hashlib.sha256(table.tobytes()).hexdigest()}"
    return str(int(value)) if isinstance(value, (int, np.integer)) else float(value).hex()
