"""Projects that are generated once in each process of the tests.  Who changes a project's files takes ``build``."""

from __future__ import annotations

from typing import Any

from pykernel.gen.project import Project, build
from pykernel.spec.model import Spec

_BUILT: dict[Any, Project] = {}


def built(spec: Spec, with_check: bool = False) -> Project:
    key = spec.to_toml(), with_check
    if key not in _BUILT:
        _BUILT[key] = build(spec, with_check=with_check)
    return _BUILT[key]
