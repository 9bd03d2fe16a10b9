"""What of a JSON Schema this project's own uses, read as the standard says (draft 7): what does not fit, and where."""

from __future__ import annotations

import operator
from typing import Any
from urllib.parse import unquote

KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
OPERATORS = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
USED = {
    "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const", "default", "definitions", "description", "enum",
    "exclusiveMaximum", "exclusiveMinimum", "if", "items", "maxItems", "maximum", "minItems", "minimum", "not", "prefixItems",
    "properties", "required", "then", "title", "type",
}  # fmt: skip


def misfits(schema: Any, value: Any) -> list[tuple[str, str]]:
    """(path, why) of everything in a value that a schema forbids."""
    return list(dict.fromkeys(_misfits(schema, value, "", schema)))


def _misfits(schema: Any, value: Any, path: str, root: Any) -> list[tuple[str, str]]:
    if schema is False:
        return [(path, "is not a key here")]
    if schema is True:
        return []
    assert set(schema) <= USED, set(schema) - USED
    if "$ref" in schema:
        return _misfits(root["definitions"][unquote(schema["$ref"]).removeprefix("#/definitions/")], value, path, root)
    found: list[tuple[str, str]] = []
    kind = schema.get("type")
    if kind and (not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and kind in ("integer", "number"))):
        return [(path, f"is no {kind}")]
    if ("enum" in schema and value not in schema["enum"]) or ("const" in schema and value != schema["const"]):
        found.append((path, "is none of the words"))
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not all(OPERATORS[word](value, schema[word]) for word in OPERATORS if word in schema):
            found.append((path, "is out of range"))
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append((path, "has another length"))
        for i, each in enumerate(value):
            found += _misfits(schema.get("items", True), each, f"{path}.{i}".lstrip("."), root)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for key in schema.get("required", ()):
            if key not in value:
                found.append((f"{path}.{key}".lstrip("."), "is missing"))
        for key, each in value.items():
            inner = known.get(key, schema.get("additionalProperties", True))
            found += _misfits(inner, each, f"{path}.{key}".lstrip("."), root)
    if "anyOf" in schema and all(_misfits(part, value, path, root) for part in schema["anyOf"]):
        found.append((path, "is none of the kinds"))
    if "not" in schema and not _misfits(schema["not"], value, path, root):
        found.append((path, "is what it must not be"))
    for part in schema.get("allOf", ()):
        found += _misfits(part, value, path, root)
    if "if" in schema and not _misfits(schema["if"], value, path, root):
        found += _misfits(schema["then"], value, path, root)
    return found
