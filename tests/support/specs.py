"""Contents of specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pykernel.errors import UserError
from pykernel.spec.model import make_spec


def named(content: Mapping[str, Any]) -> dict[str, Any]:
    """With the rule klms, unless the content names one: a spec without a rule gets a default that is more than a rule."""
    return {**content, "learning": {"rule": "klms", **content.get("learning", {})}}


def assert_refused_in_int16(rule: str, change: Mapping[str, Any], says: str) -> None:
    """A small spec of the rule with these tables in place of its own (None: without it) is refused with this sentence."""
    base = {
        "name": "m",
        "precision": "int16",
        "input": {"dim": 2, "max_abs": 1.0},
        "label": {"max_abs": 1.0},
        "kernel": {"sigma": 1.0},
        "learning": {"rule": rule},
    }
    content = {key: value for key, value in (base | change).items() if value is not None}
    with pytest.raises(UserError, match=says):
        make_spec(content)
