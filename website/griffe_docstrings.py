"""For mkdocstrings, which parses: some docstrings are put together when their module is imported."""

import importlib
import inspect
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring and "{" in cls.docstring.value:
            found = getattr(importlib.import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.getdoc(found) or ""
