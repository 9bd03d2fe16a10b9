"""The tables of docs/reference/spec.md: each key of a spec, from its declaration."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from pykernel.spec.base import Spec
from pykernel.spec.family import Family
from pykernel.spec.model import declared, int16_rules, keys_of, rules, sections
from pykernel.spec.sections import Section, fields_of, section_of


def key_tables() -> dict[str, str]:
    """Name -> Markdown table of keys.

    "shared" is the table of the keys that all specs share; each spec class has a table under the name of its first
    rule.
    """
    reals, whole = _of_specs(rules()), _of_specs(int16_rules())
    found = {"shared": _table(_shared(), headed=True)} | {
        names[0]: _table(_of_family(spec, names)) for spec, names in reals.items() if _own(spec)
    }
    return found | {f"int16-{names[0]}": _table(_of_family(spec, names)) for spec, names in whole.items()}


def _of_specs(families: Mapping[str, Family]) -> dict[type[Spec], tuple[str, ...]]:
    """The rules of each kind of spec."""
    found: dict[type[Spec], tuple[str, ...]] = {}
    for rule, family in families.items():
        found[family.spec] = (*found.get(family.spec, ()), rule)
    return found


Row = tuple[str, str, FieldInfo, tuple[str, ...]]
"""A section, one of its keys, the key's declaration, and the rules that have it; empty if all rules of the table have
it.
"""


def _owner(kind: type[Section], key: str) -> type[Section]:
    """The class that declares a key of a section."""
    return next(each for each in kind.__mro__ if key in vars(each).get("__annotations__", {}))


def _of_families(kind: type[Section]) -> bool:
    """Whether a section is declared in a family's module, not in a module that all families share."""
    return not kind.__module__.startswith("pykernel.spec.") or kind.__module__.startswith("pykernel.spec.families.")


def _shared() -> Iterator[Row]:
    """Keys that are declared in modules that all families share."""
    for section in sections():
        for key in keys_of(section):
            having = declared(section, key)
            for rule, field in having.items():
                kind = section_of(rules()[rule].spec.model_fields[section])
                if kind is not None and not _of_families(_owner(kind, key)):
                    yield section, key, field, () if len(having) == len(rules()) else tuple(having)
                    break


def _own(spec: type[Spec]) -> list[tuple[str, str]]:
    """The keys that a family itself declares."""
    return [
        (name, key)
        for name, field in spec.model_fields.items()
        if (kind := section_of(field)) is not None
        for key in kind.model_fields
        if _of_families(_owner(kind, key))
    ]


def _of_family(spec: type[Spec], names: tuple[str, ...]) -> Iterator[Row]:
    for section, key in _own(spec):
        having = [rule for rule in names if (section, key) in {(s, k) for s, k, _ in fields_of(spec, rule)}]
        kind = section_of(spec.model_fields[section])
        assert kind is not None
        yield section, key, kind.model_fields[key], () if len(having) == len(names) else tuple(having)


def _table(rows: Iterator[Row], headed: bool = False) -> str:
    """A Markdown table: rows grouped by section, each with the rules that have the key.

    headed: the heading has the rules.
    """
    lines, last = ["| key | rules | default | range | meaning |", "|---|---|---|---|---|"], None
    for section, key, field, having in rows:
        if (section, having if headed else ()) != last:
            last = (section, having if headed else ())
            lines.append(f"| **`[{section}]`** | {_named(last[1])} | | | |")
        default = "" if field.default in (None, "") or field.is_required() else f"`{json.dumps(field.default)}`"
        meaning = re.sub(r"(?<!\\)\|", r"\\|", field.description or "")
        of = "" if headed else _named(having)
        lines.append(" | ".join([f"| `{key}`", of, default, _range(field), meaning]) + " |")
    return "\n".join(re.sub(" +", " ", line) for line in lines) + "\n"


def _named(having: tuple[str, ...]) -> str:
    """Words for a set of rules; if it contains most rules, the words name the rules that are missing."""
    others = [rule for rule in rules() if rule not in having]
    if having and len(others) < len(having) / 2:
        return "all but " + ", ".join(f"`{rule}`" for rule in others)
    return ", ".join(f"`{rule}`" for rule in having)


def _range(field: FieldInfo) -> str:
    """The numbers that a declaration allows."""
    words = {"gt": "above", "ge": "from", "lt": "below", "le": "to"}
    # the key may be a number or a word
    kinds = get_args(field.annotation)
    numbers = [part for kind in kinds for part in get_args(kind) if isinstance(part, FieldInfo)]
    given = [*field.metadata, *(each for number in numbers for each in number.metadata)]
    bounds = {name: getattr(each, name) for name in words for each in given if hasattr(each, name)}
    shown = [
        f"{words[name]} {bound:g}" if isinstance(bound, float) else f"{words[name]} {bound:,}"
        for name, bound in bounds.items()
    ]
    if numbers:
        shown += [f'or `"{word}"`' for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    return ", ".join(shown)
