"""The scikit-learn estimators: one module for each family.

The common code is in ``base``, ``functions``, ``kernel_machine`` and ``parameters``.
"""

from __future__ import annotations

from pykernel.errors import MissingExtra

try:
    import sklearn  # type: ignore[import-untyped]  # noqa: F401
except ImportError as error:
    raise MissingExtra("pykernel.estimators", "sklearn") from error
