"""Contents of specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def named(content: Mapping[str, Any]) -> dict[str, Any]:
    """With the rule klms, unless the content names one: a spec without a rule gets a default that is more than a rule."""
    return {**content, "learning": {"rule": "klms", **content.get("learning", {})}}
