"""Models with River's interface, which learn from dictionaries, one sample at a time."""

from __future__ import annotations

from pykernel.errors import MissingExtra

try:
    import river  # noqa: F401
except ImportError as error:
    raise MissingExtra("pykernel.river", "river") from error

from pykernel.river.models import AnomalyDetector, Classifier, Regressor

__all__ = ["AnomalyDetector", "Classifier", "Regressor"]
