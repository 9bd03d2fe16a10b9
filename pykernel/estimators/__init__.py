"""The scikit-learn face: one module a family of estimators, over what all of them share (``base``)."""

from __future__ import annotations

from pykernel.errors import MissingExtra

try:
    import sklearn  # type: ignore[import-untyped]  # noqa: F401
except ImportError as error:
    raise MissingExtra("pykernel.estimators", "sklearn") from error
