"""Projects that are generated once in each process of the tests.  Who changes a project's files takes ``build``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from pykernel.gen.project import Project, build
from pykernel.spec.model import Spec

_BUILT: dict[Any, Project] = {}


def built(spec: Spec, also: Collection[str] = ()) -> Project:
    key = spec.to_toml(), frozenset(also)
    if key not in _BUILT:
        _BUILT[key] = build(spec, also=also)
    return _BUILT[key]
