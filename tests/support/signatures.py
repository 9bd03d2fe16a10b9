"""Signatures as text."""

import inspect


def shown(kind):
    """A class's signature without types: ``a=1, *, b=None``."""
    signature = inspect.signature(kind)
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))[1:-1]
