"""Kernel machines trained on the PC, in float64.  Like pykernel.bases, this package needs SciPy."""

import pykernel.bases  # noqa: F401
