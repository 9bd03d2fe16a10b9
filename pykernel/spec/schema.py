"""The JSON Schema of a spec for editors, and the descriptions of keys for docstrings.  Both are made from the families' declarations."""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from pykernel.dialect import PRECISIONS
from pykernel.spec.base import Spec
from pykernel.spec.defaults import groups
from pykernel.spec.model import declared, int16_rules, rules, sections
from pykernel.spec.sections import fields_of, section_of, shown_value

Schema = dict[str, Any]


# ---------------------------------------------------------------------------------------------------------- JSON Schema


def spec_schema() -> Schema:
    """Return a JSON Schema (draft 7) of a spec.  Conditions with ``if`` and ``then`` make the allowed keys depend on
    the rule, and on whether the precision is int16.

    The schema has names, types and ranges; only ``load_spec`` checks whether the values of several keys fit together.
    """
    plain = _plain(Spec.model_json_schema()["properties"], {})
    definitions: Schema = {}
    cases: dict[tuple[bool, str], tuple[list[str], Schema]] = {}
    every = [(False, rule, family) for rule, family in rules().items()]
    every += [(True, rule, family) for rule, family in int16_rules().items()]
    for int16, rule, family in every:
        properties: Schema = {}
        drawn = _drawn(family.spec)
        has = {section for section, _, _ in fields_of(family.spec, rule)}
        for name in sections():
            field = family.spec.model_fields.get(name)
            if field is None or name not in has:
                properties[name] = False
                continue
            section = _section(drawn, field, family.spec, rule)
            what = f"{name} of {rule}{' in int16' * int16}"
            called = next((called for called, known in definitions.items() if known == section), what)
            definitions[called] = section
            properties[name] = {"$ref": f"#/definitions/{called.replace(' ', '%20')}"}
        cases.setdefault((int16, json.dumps(properties)), ([], properties))[0].append(rule)
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pykernel: the spec of a model",
        "type": "object",
        "properties": {
            "name": plain["name"],
            "format": plain["format"],
            "precision": plain["precision"] | {"enum": list(PRECISIONS)},
        }
        | {name: {"description": _summary(name), "properties": _all_keys(name)} for name in sections()},
        "required": ["name", "input"],
        "additionalProperties": False,
        "allOf": [
            {"if": _if(names, int16), "then": {"properties": then}} for (int16, _), (names, then) in cases.items()
        ],
        "definitions": definitions,
    }


def _has(key: str, value: Schema | None = None) -> Schema:
    """Return the schema of an object that has this key, with a value that matches the schema ``value``."""
    return {"properties": {key: value or {}}, "required": [key]}


INT16 = _has("precision", {"enum": ["int16"]})


def _if(names: list[str], int16: bool) -> Schema:
    """Return a condition that holds if the rule is in ``names``, or if the spec names no rule and its default rule is
    in ``names``.

    int16: whether the precision must be int16; if False, it must not be int16.
    """
    chosen = [_has("learning", _has("rule", {"enum": names})), *_defaults(names, int16)]
    return {"allOf": [INT16 if int16 else {"not": INT16}, {"anyOf": chosen}]}


def _defaults(names: list[str], int16: bool) -> Iterator[Schema]:
    """Yield schemas of the specs that name no rule, and whose default rule is in ``names`` unless a limit in [target] excludes it."""
    watched, classes = _has("novelty"), _has("label", _has("classes"))
    learns = [] if int16 else [{"not": watched}]
    for task, of in (("monitor", [watched]), ("class", [*learns, classes]), ("number", [*learns, {"not": classes}])):
        case = [{"not": _has("learning", _has("rule"))}, *of]
        for first, *_ in groups(task, int16):
            lacks = [
                _has(section, _has(key, {"not": {"const": but}} if but else {}) if key else {})
                for section, key, but in first.lacks
            ]
            if first.rule in names:
                yield {"allOf": [*case, *([{"not": {"anyOf": lacks}}] if lacks else [])]}
            case.append({"anyOf": lacks})


def _drawn(spec: type[Spec]) -> Schema:
    """Return pydantic's schema of a family's spec.  The schema is cached, so do not change it."""
    return _drawn_once(spec)


@functools.cache
def _drawn_once(spec: type[Spec]) -> Schema:
    return spec.model_json_schema()


def _section(whole: Schema, field: FieldInfo, spec: type[Spec], rule: str) -> Schema:
    """Return the schema of a section with the keys that a rule has."""
    kind = section_of(field)
    assert kind is not None
    mine = {key for _, key, inner in fields_of(spec, rule) if key is not None and kind.model_fields.get(key) is inner}
    drawn = whole["$defs"][kind.__name__]
    properties = {key: value for key, value in _plain(drawn["properties"], whole["$defs"]).items() if key in mine}
    made: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | ({"required": drawn["required"]} if "required" in drawn else {})


def _all_keys(section: str) -> Schema:
    """Return all keys that a section has in any floating-point family, for completion in editors.  The key ``rule``
    lists all rules.
    """
    made: Schema = {}
    for rule, family in rules().items():
        field = declared(section).get(rule)
        if field is not None:
            for key, value in _section(_drawn(family.spec), field, family.spec, rule)["properties"].items():
                made.setdefault(key, {"description": value["description"]} if "description" in value else {})
    if section == "learning":
        made["rule"] = made["rule"] | {"enum": list(rules())}
    return made


def _plain(schema: Any, kinds: Schema) -> Any:
    """Return the schema without null, which TOML does not have, and without titles that only repeat the keys.  kinds:
    schemas of tables within sections; a reference to such a table is replaced by the table's schema.
    """
    if isinstance(schema, list):
        return [_plain(each, kinds) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and kinds:
        named = kinds[schema["$ref"].removeprefix("#/$defs/")]
        return _plain(named | {key: value for key, value in schema.items() if key != "$ref"}, kinds)
    if {"type": "null"} in schema.get("anyOf", ()):
        rest = [each for each in schema["anyOf"] if each != {"type": "null"}]
        others = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _plain({**(rest[0] if len(rest) == 1 else {"anyOf": rest}), **others}, kinds)
    return {key: _plain(value, kinds) for key, value in schema.items() if key != "title" or not isinstance(value, str)}


def _summary(section: str) -> str:
    texts = [(kind.__doc__ or "").strip() for kind in map(section_of, declared(section).values()) if kind is not None]
    return texts[0].splitlines()[0]


def key_told(section: str, key: str, of: Collection[str]) -> tuple[str, str, Any]:
    """Return a key's type, its meaning in each of the rules, and its default, for docstrings.

    If the rules have different defaults, the meanings include them, and the default is None.
    """
    having = {rule: field for rule, field in declared(section, key).items() if rule in of}
    defaults = dict.fromkeys(field.default for field in having.values())
    meanings: dict[str, list[str]] = {}
    for rule, field in having.items():
        usual = f"; {shown_value(field.default)} if not given" if len(defaults) > 1 else ""
        meanings.setdefault(f"{field.description or ''}{usual}", []).append(f'"{rule}"')
    alone = len(having) == len(of) and len(meanings) == 1
    said = [f"{'' if alone else ', '.join(rules) + ': '}{text}." for text, rules in meanings.items()]
    types = dict.fromkeys(_kind(field.annotation) for field in having.values())
    # capitalise lower-case words only, not symbols or words in backticks
    text = " ".join(each[0].upper() + each[1:] if "a" <= each[0] <= "z" else each for each in said).replace("`", "")
    return " or ".join(types), text, next(iter(defaults)) if len(defaults) == 1 else None


def _kind(annotation: Any) -> str:
    """Return the name of a type for docstrings.  None is left out, because the default shows that a key is optional."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return "{" + ", ".join(f'"{word}"' for word in get_args(annotation)) + "}"
    if parts := get_args(annotation):
        return " or ".join(dict.fromkeys(_kind(part) for part in parts if part is not type(None)))
    return str(getattr(annotation, "__name__", annotation))
