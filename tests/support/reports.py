"""What tests read of reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pykernel.telling import simple_errors, without_model_phrase


def without(report: Mapping[str, Any]) -> float:
    """Of ``fit`` and ``basis`` the error without a model."""
    return simple_errors(report)[without_model_phrase(report["classes"])]
