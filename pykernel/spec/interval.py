"""The section of a spec for intervals around a model's predictions, and the parameters of the interval kernels."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

from pydantic import Field

from pykernel.spec.sections import Section

PACE = 0.2
"""Step size for the adaptation of the interval's width; docs/records.md describes the tuning (record "intervals")."""


class IntervalSection(Section):
    """An interval around each prediction.  The key ``level`` is the fraction of the labels that lie within the intervals."""

    level: float = Field(0.9, ge=0.5, le=0.99, description="fraction of the labels that the interval covers")


def parameters(spec: Any) -> dict[str, Any]:
    """Return the values of IntervalConfig, for a rule that learns from the prediction that the model returns.

    A family with another rule sets ``hears_other`` itself.
    """
    section = getattr(spec, "interval", None)
    level = section.level if section is not None else 0.5
    return {
        "covers": section is not None,
        "hears_other": False,
        "coverage": level,
        "normal_width": float(f"{NormalDist().inv_cdf((1 + level) / 2):.12g}"),
        "pace": PACE,
    }
