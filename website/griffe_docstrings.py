"""For mkdocstrings, which parses: some docstrings and signatures are put together when they are asked for."""

import importlib
import inspect
from typing import Any

import griffe


class Docstrings(griffe.Extension):
    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if cls.docstring and "{" in cls.docstring.value:
            found = getattr(importlib.import_module(cls.module.path), cls.name)
            cls.docstring.value = inspect.getdoc(found) or ""
            # names suffice, against which griffe checks the docstring: it has the types and the defaults
            names = (griffe.Parameter(name) for name in inspect.signature(found).parameters)
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*names)))

    def on_attribute(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if str(attr.value).startswith("function("):  # of a request
            found = getattr(importlib.import_module(attr.module.path), attr.name)
            attr.docstring = griffe.Docstring(inspect.getdoc(found) or "", parent=attr, parser="numpy")
