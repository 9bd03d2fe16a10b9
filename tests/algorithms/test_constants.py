"""In the C of a model a constant's name has one meaning, whatever a spec brings together."""

from __future__ import annotations

import importlib
import pkgutil

import pykernel.algorithms
from pykernel.dialect import Constant


def test_a_constants_name_is_that_of_one_constant() -> None:
    """All definitions, not those of some models: any two files may meet in a model."""
    found: dict[str, set[int]] = {}
    for module in pkgutil.walk_packages(pykernel.algorithms.__path__, "pykernel.algorithms."):
        for name, value in vars(importlib.import_module(module.name)).items():
            if isinstance(value, Constant):
                found.setdefault(name, set()).add(id(value))
    assert found and not [name for name, values in found.items() if len(values) > 1]
